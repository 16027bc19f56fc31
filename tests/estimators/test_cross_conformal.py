"""Intervals from rows that several fits leave out: the formula, the guarantee, and what may be inside."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, KFold, LeaveOneOut, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from infinitask import CrossConformal, InfiniteQuantileRegressor, JointQuantileRegressor
from infinitask.calibration._conformal import ConformalCalibration, CrossCalibration
from infinitask.calibration._levels import Rearrangement
from infinitask.datasets import make_sine

LEVELS = np.linspace(0.05, 0.95, 19)


def curves(n: int, seed: int) -> Rearrangement:
    return Rearrangement(LEVELS, np.sort(np.random.default_rng(seed).normal(size=(n, 19)), axis=1))


def folds(sizes: list[int]) -> CrossCalibration:
    rng = np.random.default_rng(0)
    return CrossCalibration(
        tuple(ConformalCalibration.of(curves(m, k), 1.5 * rng.normal(size=m), 1.0) for k, m in enumerate(sizes))
    )


# ------------------------------------------------------------------------------------------------- the construction
@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9])
def test_the_interval_is_that_of_the_definition(coverage: float) -> None:
    calibration = folds([7, 8, 5])
    new = [curves(4, 10 + k) for k in range(3)]
    found = calibration.interval(new, coverage)
    c = math.floor((1.0 - coverage) * 21 + 1e-9)
    for row in range(4):
        ends = [
            fold.interval(Rearrangement(LEVELS, part.values[[row]]), score)[0]
            for fold, part in zip(calibration.folds, new, strict=True)
            for score in fold.scores
        ]
        low, high = sorted(a for a, _ in ends)[c - 1], sorted((b for _, b in ends), reverse=True)[c - 1]
        np.testing.assert_allclose(found[row], [low, high])
        # it holds every y that is no stranger than c of the rows left out
        for y in np.linspace(-6.0, 6.0, 301):
            if sum(a <= y <= b for a, b in ends) >= c:
                assert low <= y <= high


def test_fits_that_agree_give_the_interval_of_a_split() -> None:
    rng = np.random.default_rng(0)
    same, y = Rearrangement(LEVELS, np.tile(LEVELS, (60, 1))), rng.normal(size=60)
    rows = np.arange(60).reshape(4, 15)
    parts = tuple(ConformalCalibration.of(Rearrangement(LEVELS, same.values[r]), y[r], 1.0) for r in rows)
    pooled = ConformalCalibration.of(same, y, 1.0)
    asked = [0.3, 0.5, 0.9, 0.95]
    expected = pooled.interval(same, pooled.radius(asked))
    np.testing.assert_allclose(CrossCalibration(parts).interval([same] * 4, asked), expected)


def test_new_rows_are_answered_one_by_one_as_all_together(monkeypatch: pytest.MonkeyPatch) -> None:
    calibration = folds([7, 8, 5])
    new = [curves(9, 10 + k) for k in range(3)]
    together = calibration.interval(new, [0.5, 0.9])
    monkeypatch.setattr("infinitask.calibration._conformal.IN_MEMORY", 40)
    np.testing.assert_array_equal(calibration.interval(new, [0.5, 0.9]), together)


def test_too_few_rows_for_a_coverage() -> None:
    calibration = folds([4, 4])
    with pytest.warns(UserWarning, match="needs at least 19 rows and 8 were given"):
        both = calibration.interval([curves(3, 1), curves(3, 2)], [0.5, 0.95])
    assert np.all(np.isfinite(both[:, 0]))
    assert np.all(np.isinf(both[:, 1]))
    assert calibration.guaranteed(0.95) == 1.0
    with pytest.raises(ValueError, match="curves of 1 fits were given for 2 folds"):
        calibration.interval([curves(3, 1)], 0.5)


def test_coverage_is_guaranteed() -> None:
    single = folds([1] * 19)  # the jackknife+
    assert single.guaranteed(0.9) == pytest.approx(1.0 - 2 * 2 / 20)
    equal = folds([10] * 5)
    ranks = {0.9: 5, 0.8: 10}
    for coverage, c in ranks.items():
        by_p_values, by_comparisons = 2 * (5 + c - 1) / 55, 2 * c / 51 + 0.9 / 6
        assert equal.guaranteed(coverage) == pytest.approx(1.0 - min(by_p_values, by_comparisons))
    uneven = folds([20, 10, 10, 5, 5])
    assert uneven.guaranteed(0.8) == pytest.approx(1.0 - 2 * (5 + 10 - 1) / 55)
    np.testing.assert_allclose(equal.guaranteed([0.9, 0.8]), [equal.guaranteed(0.9), equal.guaranteed(0.8)])


# ------------------------------------------------------------------------------------------------------ the promise
class Constant(RegressorMixin, BaseEstimator):
    """The quantiles of the training targets, too narrow by a factor, for every x."""

    def __init__(self, width: float = 1.0) -> None:
        self.width = width

    def fit(self, X: Any, y: Any) -> Constant:
        self.rows_, self.y_ = np.asarray(X)[:, 0], y
        return self

    def predict(self, X: Any, quantiles: Any = 0.5) -> Any:
        middle = np.mean(self.y_)
        values = middle + self.width * (np.quantile(self.y_, quantiles) - middle)
        return np.tile(values, (len(X), 1)) if np.ndim(quantiles) else np.full(len(X), values)


class Nearest(Constant):
    """The target of the nearest training row, and nothing around it: a fit that learns its rows by heart."""

    def predict(self, X: Any, quantiles: Any = 0.5) -> Any:
        nearest = np.argmin(np.abs(np.asarray(X)[:, :1] - self.rows_), axis=1)
        return np.repeat(self.y_[nearest][:, None], np.size(quantiles), axis=1)


@pytest.mark.quick("Nearest()-5-120")
@pytest.mark.parametrize(("cv", "repetitions"), [(5, 120), pytest.param(30, 40, marks=pytest.mark.slow)])
@pytest.mark.parametrize("model", [Constant(), pytest.param(Constant(0.2), marks=pytest.mark.slow), Nearest()], ids=str)
def test_coverage_over_repetitions(model: Any, cv: int, repetitions: int) -> None:
    asked, hits = [0.7, 0.9], []
    for seed in range(repetitions):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(70, 1)), rng.standard_t(3, size=70)
        found = CrossConformal(model, cv=cv, random_state=0).fit(X[:30], y[:30])
        low, high = np.moveaxis(found.predict_interval(X[30:], asked), -1, 0)
        hits.append(np.mean((low <= y[30:, None]) & (y[30:, None] <= high), axis=0))
    mean, error = np.mean(hits, axis=0), np.std(hits, axis=0) / math.sqrt(repetitions)
    assert np.all(mean > found.calibration_.guaranteed(asked) - 3.0 * error)
    assert np.all(mean > np.array(asked) - 0.05)  # what is proved is less than what is seen
    assert np.all(mean < np.array(asked) + 0.12)


# --------------------------------------------------------------------------------------------------- the estimator
X, Y = make_sine(80, random_state=0)
SMALL = InfiniteQuantileRegressor(n_nodes=6, alpha=1e-2, gamma=1.0, tol=1e-2)


def test_every_row_is_scored_by_a_fit_that_has_not_seen_it() -> None:
    rows = np.arange(20.0)[:, None]
    found = CrossConformal(Constant(), cv=4, random_state=1).fit(rows, rows[:, 0])
    left_out = [np.setdiff1d(rows[:, 0], part.rows_) for part in found.estimators_]
    assert sorted(np.concatenate(left_out)) == list(range(20))
    for part, away, fold in zip(found.estimators_, left_out, found.calibration_.folds, strict=True):
        levels = np.arange(1, 100) / 100
        Q = Rearrangement.of(levels, part.predict(away[:, None], levels))
        np.testing.assert_allclose(fold.scores, np.sort(ConformalCalibration.score(Q, away, fold.scale)))


@pytest.mark.parametrize(
    "model",
    [
        SMALL,
        make_pipeline(StandardScaler(), SMALL),
        GridSearchCV(SMALL, {"alpha": [1e-1, 1e-2]}, cv=2),
        JointQuantileRegressor(quantiles=[0.1, 0.5, 0.9], alpha=1e-2, gamma=1.0, tol=1e-2),
    ],
    ids=["a regressor", "a pipeline", "a search", "a few levels"],
)
def test_any_model_of_quantiles_may_be_inside(model: Any) -> None:
    found = CrossConformal(clone(model), cv=4, random_state=0).fit(X, Y)
    low, high = found.predict_interval(X, 0.8).T
    assert 0.7 < np.mean((low <= Y) & (high >= Y)) < 0.97
    assert found.predict_interval(X[:5], [0.5, 0.8]).shape == (5, 2, 2)


def test_quantiles_are_the_mean_of_all_fits() -> None:
    found = CrossConformal(SMALL, cv=KFold(4), quantiles=[0.1, 0.9]).fit(X, Y)
    expected = np.mean([part.predict(X, [0.1, 0.9]) for part in found.estimators_], axis=0)
    np.testing.assert_allclose(found.predict(X), expected)
    assert found.predict(X, 0.5).shape == (80,)


@pytest.mark.slow
def test_a_copy_or_a_saved_model_predicts_alike() -> None:
    found = CrossConformal(SMALL, cv=4, random_state=3).fit(X, Y)
    asked = found.predict_interval(X, 0.9)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(found)).predict_interval(X, 0.9), asked)
    again = clone(found).set_params(n_jobs=2).fit(X, Y)
    np.testing.assert_allclose(again.predict_interval(X, 0.9), asked)
    with pytest.raises(NotFittedError):
        clone(found).predict_interval(X)


def test_the_units_of_y_do_not_matter() -> None:
    model = CrossConformal(InfiniteQuantileRegressor(n_nodes=6, tol=1e-3), cv=KFold(4))
    one = clone(model).fit(X, Y).predict_interval(X, 0.8)
    two = clone(model).fit(X, 1e4 * Y + 7e5).predict_interval(X, 0.8)
    np.testing.assert_allclose(two, 1e4 * one + 7e5, rtol=1e-6)


@pytest.mark.parametrize(
    "cv", [ShuffleSplit(3, random_state=0), [(np.arange(80), np.arange(80))]], ids=["some twice", "seen"]
)
def test_folds_that_are_none(cv: Any) -> None:
    with pytest.raises(ValueError, match="folds of cv do not hold out each of the"):
        CrossConformal(SMALL, cv=cv).fit(X, Y)


def test_wrong_calls_are_named() -> None:
    with pytest.raises(TypeError, match=r"estimator=.* takes no quantiles"):
        CrossConformal(LinearRegression()).fit(X, Y)
    with pytest.raises(ValueError, match="cv"):
        CrossConformal(SMALL, cv=1).fit(X, Y)
    with pytest.raises(ValueError, match="n_jobs"):
        CrossConformal(SMALL, n_jobs=0).fit(X, Y)
    with pytest.raises(ValueError, match="y"):
        CrossConformal(SMALL).fit(X, Y[:5])
    found = CrossConformal(Constant(), cv=LeaveOneOut()).fit(X, Y)
    with pytest.raises(ValueError, match="coverage"):
        found.predict_interval(X, 90)


class OneModelForEachLevel(RegressorMixin, BaseEstimator):
    """A wrapper that people write: it holds an estimator, and answers quantiles itself."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: Any) -> Any:
        self.models_ = {q: clone(self.estimator).set_params(quantile=q).fit(X, y) for q in (0.1, 0.5, 0.9)}
        return self

    def predict(self, X: Any, quantiles: Any = 0.5) -> Any:
        near = [min(self.models_, key=lambda known: abs(known - q)) for q in np.atleast_1d(quantiles)]
        found = np.column_stack([self.models_[q].predict(X) for q in near])
        return found if np.ndim(quantiles) else found[:, 0]


def test_a_model_that_holds_another_and_answers_quantiles_itself() -> None:
    X, y = make_sine(300, random_state=0)
    inner = HistGradientBoostingRegressor(loss="quantile", quantile=0.5, max_iter=20, random_state=0)
    model = CrossConformal(OneModelForEachLevel(inner), cv=3).fit(X[::2], y[::2])
    low, high = model.predict_interval(X[1::2], 0.8).T
    assert 0.7 < np.mean((low <= y[1::2]) & (y[1::2] <= high)) < 1.0
