"""Monotone functions take quantiles to quantiles: a model of g(y) answers in the units of y."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline as plain_pipeline
from sklearn.preprocessing import StandardScaler

from infinitask import (
    CrossConformal,
    InfiniteExpectileRegressor,
    InfiniteQuantileRegressor,
    InfiniteQuantileRegressorCV,
    TransformedTarget,
    load,
    make_pipeline,
    save,
    tabular,
)
from infinitask.metrics import integrated_pinball_loss, scorer
from infinitask.plotting._asked import CURVES, QUANTILES, asked
from infinitask.report import explore
from tests.support.scikit_learn_checks import run_checks

rng = np.random.default_rng(0)
X = rng.uniform(0.0, 1.0, (80, 2))
PRICE = np.exp(3.0 * X[:, 0] + (0.1 + X[:, 0]) * rng.normal(size=80))
WEIGHT = rng.uniform(0.5, 2.0, 80)
SHARE = expit(np.log(PRICE) - 2.0)
LEVELS = np.array([0.05, 0.3, 0.5, 0.95])
QUICK: dict[str, Any] = {"n_nodes": 8, "gamma": 1.0, "alpha": 1e-3, "tol": 1e-2, "random_state": 0}
MODEL = InfiniteQuantileRegressor(**QUICK, quantiles=[0.2, 0.9], noncrossing="rearrange")

PAIRS: dict[str, tuple[Any, Any, Any]] = {
    "log": (np.log, np.exp, PRICE),
    "reciprocal": (np.reciprocal, np.reciprocal, PRICE + 500.0),
    "negative": (np.negative, np.negative, PRICE),
    "logit": (logit, expit, SHARE),
    "falling logit": (lambda y: -logit(y), lambda z: expit(-z), SHARE),
}


@pytest.fixture(scope="module", params=PAIRS.values(), ids=PAIRS)
def pair(request: pytest.FixtureRequest) -> tuple[Any, Any, Any, Any]:
    """A model of the first rows, the model of g(y) by hand, g, and y."""
    func, inverse, y = request.param
    whole = TransformedTarget(MODEL, func=func, inverse_func=inverse).fit(X[:50], y[:50])
    return whole, clone(MODEL).fit(X[:50], func(y[:50])), func, y


def flips(whole: Any) -> bool:
    return not whole.increasing_


def test_levels_of_a_decreasing_function_are_turned() -> None:
    assert [TransformedTarget(MODEL, func=f, inverse_func=g).fit(X, y).increasing_ for f, g, y in PAIRS.values()] == [
        True,
        False,
        False,
        True,
        False,
    ]


def test_quantiles_of_the_inverse_are_inverses_of_quantiles(pair: Any) -> None:
    whole, by_hand, _, _ = pair
    asked_inside = 1.0 - LEVELS if flips(whole) else LEVELS
    expected = whole.inverse_func(by_hand.predict(X, quantiles=asked_inside))
    found = whole.predict(X, quantiles=LEVELS)
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    assert np.all(np.diff(found, axis=1) >= 0.0)  # levels of y, in their order
    np.testing.assert_array_equal(whole.predict(X), whole.predict(X, quantiles=[0.2, 0.9]))  # of the constructor
    np.testing.assert_allclose(whole.predict(X, quantiles=0.3), found[:, 1], rtol=1e-10)


@pytest.mark.parametrize("coverage", [0.8, [0.5, 0.9]])
@pytest.mark.parametrize("conformal", [False, True])
def test_intervals_hold_what_they_hold_on_the_other_scale(pair: Any, coverage: Any, conformal: bool) -> None:
    whole, by_hand, func, y = copy.deepcopy(pair)
    if conformal:
        assert whole.conformalize(X[50:], y[50:]) is whole
        by_hand.conformalize(X[50:], func(y[50:]))
    ends, inside = whole.predict_interval(X, coverage), by_hand.predict_interval(X, coverage)
    assert ends.shape == inside.shape
    target, scaled = (y[:, None], func(y)[:, None]) if np.ndim(coverage) else (y, func(y))
    assert np.all(ends[..., 0] <= ends[..., 1])
    np.testing.assert_array_equal(
        (ends[..., 0] <= target) & (target <= ends[..., 1]), (inside[..., 0] <= scaled) & (scaled <= inside[..., 1])
    )


def test_an_interval_without_ends_has_none_in_units_of_y(pair: Any) -> None:
    whole, _, _, y = pair
    few = copy.deepcopy(whole).conformalize(X[50:53], y[50:53])
    with pytest.warns(UserWarning, match="interval is infinite"):
        low, high = few.predict_interval(X, 0.9).T
    assert np.all(low <= 0.0)  # the least that the inverse reaches, or −∞
    assert np.all(high >= 1.0)


def test_distributions_are_those_of_the_quantiles(pair: Any) -> None:
    whole, by_hand, _, y = pair
    law, inside = whole.predict_distribution(X), by_hand.predict_distribution(X)
    at = law.levels[[50, 300, 700]]
    expected = whole.inverse_func(inside.ppf(1.0 - at if flips(whole) else at))
    np.testing.assert_allclose(law.ppf(at), expected, rtol=1e-9)
    np.testing.assert_allclose(whole.predict_cdf(X, y), law.cdf(y))
    np.testing.assert_allclose(whole.predict_cdf(X, law.ppf(0.4)), 0.4, atol=1e-6)
    draws = whole.sample(X, 3, random_state=0)
    assert np.all((draws >= law.values[:, :1] - 1e-9) & (draws <= law.values[:, -1:] + 1e-9))
    np.testing.assert_array_equal(draws, whole.inverse_func(by_hand.sample(X, 3, random_state=0)))


def test_no_price_is_negative() -> None:
    whole = TransformedTarget(MODEL).fit(X, PRICE)
    assert np.all(whole.predict_cdf(X, -1.0) == 0.0)
    assert np.all(whole.predict_interval(X, 0.99) > 0.0)


def test_the_score_is_in_units_of_y(pair: Any) -> None:
    whole, by_hand, _, y = pair
    nodes = 1.0 - by_hand.nodes_ if flips(whole) else by_hand.nodes_
    constants = np.quantile(y, nodes, method="inverted_cdf", weights=WEIGHT)

    def loss(predicted: Any) -> float:
        each = [
            integrated_pinball_loss(y, predicted[:, [j]], nodes[[j]], sample_weight=WEIGHT) for j in range(nodes.size)
        ]
        return float(by_hand.weights_ @ each)

    expected = 1.0 - loss(whole.predict(X, quantiles=nodes)) / loss(np.tile(constants, (80, 1)))
    assert whole.score(X, y, sample_weight=WEIGHT) == pytest.approx(expected, abs=1e-12)


def test_the_identity_changes_nothing() -> None:
    same = TransformedTarget(MODEL, func=np.positive, inverse_func=np.positive).fit(X, PRICE, sample_weight=WEIGHT)
    plain = clone(MODEL).fit(X, PRICE, sample_weight=WEIGHT)
    np.testing.assert_array_equal(same.predict(X), plain.predict(X))
    np.testing.assert_array_equal(same.predict_interval(X), plain.predict_interval(X))
    assert same.score(X, PRICE) == plain.score(X, PRICE)
    assert (same.dual_gap_, same.n_features_in_) == (plain.dual_gap_, 2)
    assert same.relevance_.names == ("x0", "x1")


def test_the_logarithm_helps_where_spread_grows_with_size() -> None:
    plain, logs = (cross_val_score(m, X, PRICE, cv=4).mean() for m in (MODEL, TransformedTarget(MODEL)))
    assert logs > plain


# ------------------------------------------------------------------------------------------------ with other models
def test_searches_go_around_it_and_into_it() -> None:
    around = GridSearchCV(TransformedTarget(MODEL), {"estimator__alpha": [1e-3, 1e3]}, cv=3).fit(X, PRICE)
    assert around.best_params_ == {"estimator__alpha": 1e-3}
    inner = GridSearchCV(clone(MODEL), {"alpha": [1e-3, 1e3]}, cv=3)
    into = TransformedTarget(inner).fit(X, PRICE)
    np.testing.assert_allclose(into.predict(X, [0.1, 0.9]), around.best_estimator_.predict(X, [0.1, 0.9]))
    assert into.conformalize(X, PRICE).predict_interval(X).shape == (80, 2)
    assert into.score(X, PRICE) == around.best_estimator_.score(X, PRICE)


def test_pipelines_end_with_it_or_stand_inside() -> None:
    ends = make_pipeline(StandardScaler(), TransformedTarget(MODEL)).fit(X, PRICE)
    inside = TransformedTarget(make_pipeline(StandardScaler(), MODEL)).fit(X, PRICE)
    for name, options in (("predict", {"quantiles": [0.1, 0.9]}), ("predict_interval", {"coverage": 0.8})):
        np.testing.assert_array_equal(getattr(ends, name)(X, **options), getattr(inside, name)(X, **options))
    assert ends.conformalize(X, PRICE) is ends
    assert ends.score(X, PRICE) == inside.score(X, PRICE)
    assert ends.increasing_
    other = TransformedTarget(plain_pipeline(StandardScaler(), clone(MODEL))).fit(X, PRICE)
    np.testing.assert_array_equal(other.predict(X, [0.1, 0.9]), inside.predict(X, [0.1, 0.9]))
    assert not hasattr(other, "predict_interval")  # as scikit-learn's pipeline has none
    assert scorer("crps")(inside, X, PRICE) == pytest.approx(scorer("crps")(ends, X, PRICE))


@pytest.mark.slow
def test_tables_self_tuned_models_and_folds() -> None:
    pd = pytest.importorskip("pandas")
    pytest.importorskip("skrub")
    table = pd.DataFrame({"size": X[:, 0], "town": rng.choice(["Aix", "Pau"], 80)})
    for model in (tabular(TransformedTarget(MODEL)), TransformedTarget(tabular(MODEL))):
        found = model.fit(table, PRICE).predict(table, quantiles=[0.1, 0.9])
        assert np.all(found > 0.0)
        assert "size" in model.relevance_.names
    tuned = TransformedTarget(InfiniteQuantileRegressorCV(kernels=["linear"], n_nodes=8, random_state=0)).fit(X, PRICE)
    by_hand = InfiniteQuantileRegressorCV(kernels=["linear"], n_nodes=8, random_state=0).fit(X, np.log(PRICE))
    np.testing.assert_array_equal(tuned.predict(X, LEVELS), np.exp(by_hand.predict(X, LEVELS)))
    assert tuned.best_estimator_.alpha_ == by_hand.alpha_
    crossed = CrossConformal(TransformedTarget(MODEL), cv=4, random_state=0).fit(X, PRICE)
    low, high = crossed.predict_interval(X, coverage=0.8).T
    assert np.mean((low <= PRICE) & (high >= PRICE)) > 0.7
    folded = TransformedTarget(CrossConformal(MODEL, cv=4, random_state=0)).fit(X, PRICE)
    assert np.all(folded.predict_interval(X, coverage=0.8) > 0.0)
    assert not hasattr(folded, "predict_distribution")
    assert 0.2 < folded.score(X, PRICE) < 1.0


def test_a_copy_answers_the_same(tmp_path: Any) -> None:
    model = TransformedTarget(MODEL).fit(X, PRICE).conformalize(X, PRICE)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_interval(X), model.predict_interval(X))
    assert not hasattr(clone(model), "increasing_")
    pytest.importorskip("safetensors")
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.func is np.log
    np.testing.assert_array_equal(loaded.predict_interval(X), model.predict_interval(X))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_frames_are_named_by_levels_of_y() -> None:
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(X, columns=["a", "b"], index=np.arange(80) + 7)
    model = TransformedTarget(MODEL, func=np.negative, inverse_func=np.negative).fit(table, PRICE)
    model.set_output(predict="pandas")
    frame = model.predict(table, quantiles=[0.1, 0.9])
    assert frame.columns.tolist() == ["q0.1", "q0.9"]
    assert frame.index.equals(table.index)
    assert model.predict(table).columns.tolist() == ["q0.2", "q0.9"]
    assert model.predict_interval(table).columns.tolist() == ["low", "high"]
    assert list(model.feature_names_in_) == ["a", "b"]


def test_displays_take_it_and_a_page_says_why_not() -> None:
    model = TransformedTarget(MODEL).fit(X, PRICE)
    for kind in (CURVES, QUANTILES):
        assert asked(model, kind, "A display").model is model
    with pytest.raises(TypeError, match=r"explore\(model\.estimator_, X, func\(y\)\)"):
        explore(model, X, PRICE)
    assert explore(model.estimator_, X, np.log(PRICE)).payload["kind"] == "quantiles"


# -------------------------------------------------------------------------------------------------------- refusals
@pytest.mark.parametrize(
    ("changes", "y", "said"),
    [
        ({"func": np.square, "inverse_func": np.sqrt}, PRICE - 5.0, "others the other way round; it must be incr"),
        (
            {"func": np.log, "inverse_func": np.exp2},
            PRICE,
            r"such as np.log and np.exp",
        ),
        ({"func": lambda y: np.minimum(y, 5.0), "inverse_func": np.positive}, PRICE, "must be inverse to each other"),
        ({}, PRICE - PRICE.min(), "func of the target 0 is not a finite number.*np.log1p"),
        ({"func": np.sum}, PRICE, "it must return a number for each target"),
        ({"func": "log"}, PRICE, "func='log' was given; it must be a function"),
        ({"estimator": InfiniteExpectileRegressor()}, PRICE, "predict takes no quantiles"),
    ],
)
def test_wrong_values_are_refused(changes: dict[str, Any], y: Any, said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        TransformedTarget(MODEL).set_params(**changes).fit(X, y)


@pytest.mark.parametrize("func", [np.positive, np.negative])
def test_wrong_levels_are_named_as_they_were_given(func: Any) -> None:
    model = TransformedTarget(MODEL, func=func, inverse_func=func).fit(X, PRICE)
    with pytest.raises(ValueError, match=r"95.*Did you mean 0\.95\?"):
        model.predict(X, quantiles=95)
    with pytest.raises(ValueError, match="quantiles contains 0 or 1"):
        model.predict(X, quantiles=[0.0, 0.5])
    with pytest.raises(ValueError, match="quantiles='half' was given"):
        model.predict(X, quantiles="half")


@pytest.mark.parametrize("func", [np.negative, np.log])
def test_equal_targets_have_equal_quantiles(func: Any) -> None:
    model = TransformedTarget(MODEL, func=func, inverse_func=np.exp if func is np.log else np.negative)
    np.testing.assert_allclose(model.fit(X, np.full(80, 3.0)).predict(X, quantiles=[0.1, 0.9]), 3.0)
    assert model.increasing_ == (func is np.log)


def test_an_inverse_that_turns_beyond_the_targets_is_refused_where_it_matters() -> None:
    count = np.maximum(rng.poisson(2.0 * X[:, 0]), 0).astype(float)
    model = TransformedTarget(MODEL, func=np.sqrt, inverse_func=np.square).fit(X, count)
    assert np.min(model.estimator_.predict(X, 0.01)) < -0.01  # or nothing is tested
    with pytest.raises(ValueError, match="it is not the inverse of a monotone function"):
        model.predict(X, quantiles=0.01)
    held = TransformedTarget(MODEL, func=np.sqrt, inverse_func=lambda z: np.maximum(z, 0.0) ** 2).fit(X, count)
    assert np.all(held.predict(X, quantiles=0.01) >= 0.0)
    with pytest.raises(ValueError, match="func of the target -1 is not"):
        model.conformalize(X, count - 1.0)


def test_answers_far_beyond_the_targets_are_warned_of() -> None:
    line = np.linspace(0.0, 1.0, 40)[:, None]
    model = TransformedTarget(InfiniteQuantileRegressor(n_nodes=6, kernel="linear", alpha=1e-4))
    model.fit(line, np.exp(line[:, 0] + 0.1 * rng.normal(size=40)))
    assert np.all(model.predict(np.array([[1.2]])) < 5.0)  # a little beyond: no warning
    with pytest.warns(UserWarning, match=r"1 of 2 predictions of func\(y\) are further .* far from those") as caught:
        model.predict(np.array([[0.5], [50.0]]))
    assert caught[0].filename == __file__  # the line of the user


@pytest.mark.slow
def test_scikit_learn_accepts_it() -> None:
    run_checks(TransformedTarget(InfiniteQuantileRegressor(n_nodes=5), func=np.arcsinh, inverse_func=np.sinh))
