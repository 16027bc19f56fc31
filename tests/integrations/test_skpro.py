"""Quantile models in skpro: its own checks pass, and its numbers are ours."""

from __future__ import annotations

import importlib
import pickle
import sys
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

pytest.importorskip("skpro", reason="skpro is not installed: pip install infinitask[skpro]")

import pandas as pd
from skpro.metrics import CRPS, LogLoss, PinballLoss, SquaredDistrLoss
from skpro.model_selection import GridSearchCV
from skpro.regression.compose import Pipeline
from skpro.utils import check_estimator

from infinitask import (
    InfiniteQuantileRegressor,
    InfiniteQuantileRegressorCV,
    make_pipeline,
    tabular,
)
from infinitask.datasets import make_sine
from infinitask.integrations.skpro import InfiniteQuantileProba, QuantileCurveDistribution
from infinitask.predictive import QuantileDistribution

LEVELS = [0.05, 0.5, 0.3, 0.95]
QUICK = {"n_nodes": 8, "tol": 1e-3}


@pytest.fixture(scope="module")
def rows() -> tuple[Any, Any]:
    """A table with names and an index of its own."""
    X, y = make_sine(60, random_state=0)
    index = pd.Index([f"row {k}" for k in range(60)])
    return pd.DataFrame(X, index=index, columns=["x"]), pd.DataFrame({"height": y}, index=index)


@pytest.fixture(scope="module")
def plain(rows: tuple[Any, Any]) -> Any:
    return InfiniteQuantileRegressor(**QUICK).fit(rows[0], rows[1]["height"].to_numpy())


@pytest.fixture(scope="module")
def guest(rows: tuple[Any, Any]) -> Any:
    return InfiniteQuantileProba(InfiniteQuantileRegressor(**QUICK)).fit(*rows)


@pytest.fixture(scope="module")
def law() -> QuantileDistribution:
    """A distribution that is flat in places, and whose levels do not reach the ends."""
    rng = np.random.default_rng(0)
    values = np.cumsum(rng.exponential(size=(6, 9)) * (rng.uniform(size=(6, 9)) < 0.7), axis=1)
    assert np.any(np.diff(values, axis=1) == 0.0)
    return QuantileDistribution(np.linspace(0.05, 0.9, 9), values)


def as_skpro(law: QuantileDistribution) -> QuantileCurveDistribution:
    index = pd.Index([f"row {k}" for k in range(len(law))])
    return QuantileCurveDistribution(law.levels, law.values, index, ["y"])


def failed(results: dict[str, Any]) -> dict[str, Any]:
    return {name: result for name, result in results.items() if result != "PASSED"}


# ------------------------------------------------------------------------------------------------ skpro's own checks
def test_skpro_accepts_the_distribution() -> None:
    results = check_estimator(QuantileCurveDistribution, verbose=False)
    assert len(results) > 100
    assert failed(results) == {}


def test_skpro_accepts_what_the_regressor_answers() -> None:
    results = check_estimator(InfiniteQuantileProba, tests_to_run="test_input_output_contract", verbose=False)
    assert len(results) == 2
    assert failed(results) == {}


@pytest.mark.slow
def test_skpro_accepts_the_regressor() -> None:
    results = check_estimator(InfiniteQuantileProba, verbose=False)
    assert len(results) > 50
    assert failed(results) == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator",
    [
        None,
        InfiniteQuantileRegressorCV(kernels=["rbf"], n_nodes=10),
        make_pipeline(StandardScaler(), InfiniteQuantileRegressor(n_nodes=8)),
    ],
    ids=["default", "self-tuned", "pipeline"],
)
def test_skpro_accepts_every_model_of_quantiles(estimator: Any) -> None:
    names = ["test_input_output_contract", "test_fit_does_not_overwrite_hyper_params", "test_clone"]
    names += ["test_predict_proba_no_param_mutation"]
    results = check_estimator(InfiniteQuantileProba(estimator), tests_to_run=names, verbose=False)
    assert len(results) >= len(names)
    assert failed(results) == {}


# ------------------------------------------------------------------------------------------------------ same numbers
def test_quantiles_and_intervals_are_those_of_the_model(rows: tuple[Any, Any], plain: Any, guest: Any) -> None:
    X, _ = rows
    quantiles = guest.predict_quantiles(X, LEVELS)
    assert np.array_equal(quantiles.to_numpy(), plain.predict(X, quantiles=LEVELS))
    assert list(quantiles.columns) == [("height", level) for level in LEVELS]
    intervals = guest.predict_interval(X, [0.5, 0.9])
    assert np.array_equal(intervals.to_numpy(), plain.predict_interval(X, coverage=[0.5, 0.9]).reshape(60, 4))
    assert list(intervals.columns) == [("height", c, side) for c in (0.5, 0.9) for side in ("lower", "upper")]
    assert quantiles.index.equals(X.index)
    assert intervals.index.equals(X.index)


def test_distributions_are_those_of_the_model(rows: tuple[Any, Any], plain: Any, guest: Any) -> None:
    X, y = rows
    ours, theirs = plain.predict_distribution(X), guest.predict_proba(X)
    target = y["height"].to_numpy()
    for found, expected in [
        (theirs.mean(), ours.mean()),
        (guest.predict(X), ours.mean()),
        (theirs.var(), ours.variance()),
        (guest.predict_var(X), ours.variance()),
        (theirs.cdf(y), ours.cdf(target)),
        (theirs.pdf(y), ours.pdf(target)),
        (theirs.ppf(0.3), ours.ppf(0.3)),
    ]:
        assert np.array_equal(found.to_numpy().ravel(), expected)
        assert found.index.equals(X.index)
        assert list(found.columns) == ["height"]
    assert np.array_equal(theirs.quantile(LEVELS).to_numpy(), ours.ppf(LEVELS))


def test_metrics_of_skpro_are_ours(law: QuantileDistribution) -> None:
    theirs = as_skpro(law)
    inside, outside = law.ppf(0.4), law.values[:, -1] + 1.0
    for target in (inside, outside, law.values[:, 0] - 2.0):
        y = pd.DataFrame({"y": target}, index=theirs.index)
        assert np.allclose(CRPS().evaluate_by_index(y, theirs).to_numpy().ravel(), law.crps(target), rtol=1e-12)
    y = pd.DataFrame({"y": inside}, index=theirs.index)
    assert np.allclose(LogLoss().evaluate_by_index(y, theirs).to_numpy().ravel(), -np.log(law.pdf(inside)))
    found = PinballLoss(alpha=[0.2]).evaluate_by_index(y, theirs.quantile([0.2])).to_numpy().ravel()
    rest = inside - law.ppf(0.2)
    assert np.allclose(found, np.maximum(0.2 * rest, -0.8 * rest))
    assert np.isfinite(SquaredDistrLoss().evaluate(y, theirs))


def test_energies_are_expected_distances(law: QuantileDistribution) -> None:
    theirs, rng = as_skpro(law), np.random.default_rng(0)
    first, second = (law.sample(20_000, rng.integers(2**31)) for _ in range(2))
    y = pd.DataFrame({"y": law.ppf(0.7)}, index=theirs.index)
    to_y = np.mean(np.abs(first - y.to_numpy()), axis=1)
    assert np.allclose(theirs.energy().to_numpy().ravel(), np.mean(np.abs(first - second), axis=1), rtol=0.03)
    assert np.allclose(theirs.energy(y).to_numpy().ravel(), to_y, rtol=0.03)


def test_masses_and_densities_add_up_to_one(law: QuantileDistribution) -> None:
    at_ends = QuantileDistribution(law.levels, np.cumsum(np.ones((2, 9)), axis=1))
    theirs = as_skpro(at_ends)
    assert theirs.get_tag("distr:measuretype") == "mixed"
    assert np.allclose(theirs.pmf(1.0), 0.05)
    assert np.allclose(theirs.pmf(9.0), 0.1)
    assert np.all(theirs.pmf(4.5) == 0.0)
    assert np.all(theirs.log_pmf(4.5) == -np.inf)
    grid = np.linspace(1.0, 9.0, 4001)
    assert np.trapezoid(at_ends.pdf(grid[None, :]), grid, axis=1) == pytest.approx(0.85, abs=1e-4)
    # a jump of the cdf is what the quantile function is flat for
    theirs, jump = as_skpro(law), law.values[:, 3]
    below = law.cdf(np.nextafter(jump, -np.inf))
    assert np.allclose(
        theirs.pmf(pd.DataFrame({"y": jump}, index=theirs.index)).to_numpy().ravel(), law.cdf(jump) - below
    )


def test_a_distribution_without_jumps_is_continuous() -> None:
    spread = np.array([1.0, 4.0])
    theirs = QuantileCurveDistribution(np.linspace(0.0, 1.0, 501), spread[:, None] * np.linspace(0.0, 1.0, 501))
    assert theirs.get_tag("distr:measuretype") == "continuous"
    assert np.all(theirs.pmf(0.5) == 0.0)
    assert np.allclose(theirs.pdfnorm(2).to_numpy().ravel(), 1.0 / spread)
    assert np.allclose(theirs.pdfnorm(1), 1.0)
    assert np.allclose(theirs.iat[1, 0].pdfnorm(3), 1.0 / 16.0)


def test_samples_follow_the_distribution_and_the_seed_of_numpy(law: QuantileDistribution) -> None:
    theirs = as_skpro(law)
    draws = []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002 - skpro has no other way
        draws.append(theirs.sample(2000))
    assert draws[0].equals(draws[1])
    assert draws[0].index.nlevels == 2
    values = draws[0]["y"].unstack().to_numpy()  # (draws, rows)
    for level in (0.2, 0.5, 0.8):
        y = law.ppf(level)
        assert np.allclose(np.mean(values <= y, axis=0), law.cdf(y), atol=0.04)
    assert theirs.sample().shape == theirs.shape
    single = theirs.iat[0, 0]
    assert np.isscalar(single.sample())
    assert single.sample(4).shape == (4, 1)


def test_parts_keep_their_labels(law: QuantileDistribution) -> None:
    theirs = as_skpro(law)
    part = theirs.loc[["row 4", "row 1"]]
    assert list(part.index) == ["row 4", "row 1"]
    assert np.allclose(part.mean().to_numpy().ravel(), law.mean()[[4, 1]])
    assert np.allclose(theirs.iloc[1:3].mean().to_numpy().ravel(), law.mean()[1:3])
    assert theirs.head(2).shape == (2, 1)
    assert theirs.at["row 3", "y"].mean() == pytest.approx(law.mean()[3])
    # a frame in another order is matched by its labels
    y = pd.DataFrame({"y": law.ppf(0.4)}, index=theirs.index)
    assert theirs.cdf(y.iloc[::-1]).equals(theirs.cdf(y).iloc[::-1])
    with pytest.raises(KeyError, match="nobody"):
        theirs.loc[["nobody"]]


def test_several_columns_are_several_distributions() -> None:
    values = np.cumsum(np.random.default_rng(0).exponential(size=(4, 3, 7)), axis=2)
    levels = np.linspace(0.0, 1.0, 7)
    table = QuantileCurveDistribution(levels, values, columns=list("abc"))
    for k, name in enumerate("abc"):
        one = QuantileDistribution(levels, values[:, k])
        assert np.allclose(table.mean()[name], one.mean())
        assert np.allclose(table.loc[:, [name]].var().to_numpy().ravel(), one.variance())
    assert np.allclose(
        table.energy(1.0).to_numpy().ravel(), sum(table.iloc[:, [k]].energy(1.0).to_numpy().ravel() for k in range(3))
    )


# ------------------------------------------------------------------------------------------------- as one of skpro's
def test_pipelines_and_searches_of_skpro_take_it(rows: tuple[Any, Any]) -> None:
    X, y = rows
    model = make_pipeline(StandardScaler(), InfiniteQuantileRegressor(alpha=1e-4, **QUICK))
    own = clone(model).fit(X, y["height"].to_numpy())
    search = GridSearchCV(
        InfiniteQuantileProba(model),
        cv=KFold(3, shuffle=True, random_state=0),
        param_grid={"estimator__infinitequantileregressor__alpha": [1e2, 1e-4]},
        scoring=CRPS(),
        backend="None",
        error_score="raise",
    ).fit(X, y)
    assert list(search.best_params_.values()) == [1e-4]
    assert np.array_equal(search.predict_quantiles(X, LEVELS), own.predict(X, quantiles=LEVELS))
    steps = Pipeline([("scaler", StandardScaler()), ("model", InfiniteQuantileProba(model[-1]))]).fit(X, y)
    assert np.allclose(steps.predict_interval(X, [0.8]), own.predict_interval(X, coverage=0.8), atol=1e-6)
    assert steps.predict_proba(X).shape == (60, 1)


@pytest.mark.parametrize("kind", ["array", "series", "polars"])
def test_other_kinds_of_tables(rows: tuple[Any, Any], plain: Any, kind: str) -> None:
    X, y = rows
    if kind == "polars":
        polars = pytest.importorskip("polars")
        pytest.importorskip("pyarrow")
        X, y = polars.from_pandas(X), polars.from_pandas(y)
    else:
        X, y = (X.to_numpy(), y.to_numpy()) if kind == "array" else (X, y["height"])
    model = InfiniteQuantileProba(InfiniteQuantileRegressor(**QUICK)).fit(X, y)
    predicted = model.predict(X)
    assert type(predicted) is type(y)
    assert np.allclose(np.ravel(predicted), plain.predict_distribution(rows[0]).mean())
    assert np.allclose(model.predict_quantiles(X, [0.2]).to_numpy().ravel(), plain.predict(rows[0], quantiles=0.2))


@pytest.mark.slow
def test_tables_with_categories_go_through_a_pipeline(rows: tuple[Any, Any]) -> None:
    pytest.importorskip("skrub")
    X, y = rows
    X = X.assign(side=np.where(X["x"] > X["x"].median(), "right", "left"))
    model = tabular(InfiniteQuantileRegressor(**QUICK))
    guest = InfiniteQuantileProba(model).fit(X, y)
    own = clone(model).fit(X, y["height"].to_numpy())
    assert np.array_equal(guest.predict_quantiles(X, [0.1, 0.9]), own.predict(X, quantiles=[0.1, 0.9]))
    assert list(guest.estimator_.feature_names_in_) == ["x", "side"]


def test_a_fitted_guest_can_be_pickled(rows: tuple[Any, Any], guest: Any) -> None:
    again = pickle.loads(pickle.dumps(guest))
    assert again.predict_interval(rows[0]).equals(guest.predict_interval(rows[0]))
    law = guest.predict_proba(rows[0])
    assert pickle.loads(pickle.dumps(law)).mean().equals(law.mean())


# ----------------------------------------------------------------------------------------------------------- refusals
def test_anything_but_a_model_of_quantiles_is_refused(rows: tuple[Any, Any]) -> None:
    from sklearn.linear_model import LinearRegression

    with pytest.raises(TypeError, match="it has no predict_interval, predict_distribution"):
        InfiniteQuantileProba(LinearRegression()).fit(*rows)
    with pytest.raises(TypeError, match="which is a class"):
        InfiniteQuantileProba(InfiniteQuantileRegressor).fit(*rows)


def test_several_targets_are_refused(rows: tuple[Any, Any]) -> None:
    X, y = rows
    with pytest.raises(ValueError, match="y has 2 columns"):
        InfiniteQuantileProba().fit(X, y.assign(weight=1.0))


def test_levels_that_the_model_does_not_know_are_refused(rows: tuple[Any, Any]) -> None:
    middle = InfiniteQuantileRegressor(measure=(0.2, 0.8), **QUICK)
    guest = InfiniteQuantileProba(middle).fit(*rows)
    with pytest.raises(ValueError, match=r"0\.1"):
        guest.predict_quantiles(rows[0], 0.1)
    # a distribution has quantiles of all levels: the mass beyond lies at the ends
    law = guest.predict_proba(rows[0])
    assert law.ppf(0.1).equals(law.ppf(0.2))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"values": np.zeros((2, 2, 2, 2))}, "values of shape"),
        ({"values": [[0.0, 1.0]], "index": ["a", "b"]}, "an index of 2"),
        ({"values": [[0.0, 1.0]], "columns": ["a", "b"]}, "columns of 2"),
        ({"values": [0.0, 1.0], "index": ["a"]}, "leave them out"),
        ({"values": [[1.0, 0.0]]}, "fall with the level"),
        ({"values": [[0.0, np.nan]]}, "NaN"),
    ],
)
def test_distributions_that_are_none_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        QuantileCurveDistribution([0.0, 1.0], **parameters)


def test_levels_outside_of_the_unit_interval_are_refused() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        QuantileCurveDistribution([0.0, 1.0], [[0.0, 1.0]]).ppf(1.5)


def test_without_skpro_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "infinitask.integrations.skpro")
    monkeypatch.setitem(sys.modules, "skpro.distributions.base", None)
    assert importlib.import_module("infinitask.integrations")
    with pytest.raises(ImportError, match=r"pip install infinitask\[skpro\]"):
        importlib.import_module("infinitask.integrations.skpro")
