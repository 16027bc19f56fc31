"""Conformal intervals: finite samples, every coverage from one calibration."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from infinitask import InfiniteQuantileRegressor
from infinitask.calibration._conformal import ConformalCalibration
from infinitask.calibration._levels import Rearrangement
from infinitask.datasets import make_sine
from infinitask.measures import Discrete
from tests.support.each import each

COVERAGES = [0.5, 0.8, 0.9, 0.95]


def splits(sizes: list[int], seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Independent pairs in random order, cut into sets."""
    X, y = make_sine(sum(sizes), random_state=seed)
    order = np.random.default_rng(seed).permutation(len(y))
    return [(X[rows], y[rows]) for rows in np.split(order, np.cumsum(sizes)[:-1])]


def holds(interval: np.ndarray, y: np.ndarray) -> np.ndarray:
    return (interval[:, 0] <= y) & (y <= interval[:, 1])


# ------------------------------------------------------------------------------------------------------ the promise
REPETITIONS, CALIBRATION, NEW = 200, 79, 40


@pytest.mark.parametrize(
    ("params", "raw_error"),
    [
        ({"alpha": 1e-3, "gamma": 5.0}, 0.06),
        # held at nearly 0: its own intervals hold nothing
        pytest.param({"alpha": 1.0, "alpha_bias": 1.0}, 0.4, marks=pytest.mark.slow),
    ],
    ids=["a fair model", "a useless model"],
)
def test_coverage_over_repetitions(params: dict[str, Any], raw_error: float) -> None:
    hits, raw = np.zeros((REPETITIONS, 4)), []
    for seed in range(REPETITIONS):
        train, calibration, (X, y) = splits([40, CALIBRATION, NEW], seed)
        if seed % 10 == 0:  # any model will do
            model = InfiniteQuantileRegressor(n_nodes=6, noncrossing=0.0, tol=1e-2, **params).fit(*train)
            raw.append([np.mean(holds(model.predict_interval(X, c), y)) for c in COVERAGES])
        model.conformalize(*calibration)
        hits[seed] = [np.sum(holds(model.predict_interval(X, c), y)) for c in COVERAGES]
    # given the calibration, the coverage is Beta(k, n + 1 − k): hits are beta-binomial with mean k/(n + 1)
    for coverage, counts in zip(COVERAGES, hits.T, strict=True):
        k = math.ceil((CALIBRATION + 1) * coverage)
        law = stats.betabinom(NEW, k, CALIBRATION + 1 - k)
        assert k / (CALIBRATION + 1) == coverage
        assert abs(np.mean(counts) - law.mean()) < 4.0 * law.std() / np.sqrt(REPETITIONS)
        assert 0.75 < np.std(counts) / law.std() < 1.25
    assert np.max(np.abs(np.mean(raw, axis=0) - COVERAGES)) > raw_error  # calibration was needed


@each(
    "params",
    [
        {"measure": (0.2, 0.6)},
        {"measure": (0.6, 0.9)},  # without the median
        {"measure": Discrete([0.5])},
        {"task_kernel": "diagonal"},
        {"task_kernel": "constant"},  # no spread at all
        {"alpha": 1e6},
    ],
    ids=str,
)
def test_any_part_of_the_levels_will_do(params: dict[str, Any]) -> None:
    train, calibration, (X, y) = splits([40, 1999, 2000], 0)
    model = InfiniteQuantileRegressor(n_nodes=6, **{"noncrossing": 0.0, "alpha": 1e-3, **params}).fit(*train)
    model.conformalize(*calibration)
    for coverage in COVERAGES:
        interval = model.predict_interval(X, coverage)
        assert np.all(np.isfinite(interval))
        assert abs(np.mean(holds(interval, y)) - coverage) < 4.0 * math.sqrt(2.0 * coverage * (1.0 - coverage) / 2000)


# ------------------------------------------------------------------------------------------------- the construction
def curves(n: int, seed: int = 0) -> Rearrangement:
    rng = np.random.default_rng(seed)
    values = np.sort(rng.normal(size=(n, 21)), axis=1)
    values[: n // 4, 5:12] = values[: n // 4, 5:6]  # flat pieces
    values[n // 2 : n // 2 + 5] = values[n // 2 : n // 2 + 5, :1]  # and points
    return Rearrangement(np.linspace(0.1, 0.9, 21), values)


def test_a_score_is_the_radius_at_which_the_interval_reaches_y() -> None:
    Q, y = curves(200), np.random.default_rng(1).normal(scale=2.0, size=200)
    scores = ConformalCalibration.score(Q, y, 0.5)
    assert np.all(np.isfinite(scores) & (scores >= 0.0))
    assert np.mean(scores > 0.5) > 0.1  # some beyond every level
    calibration = ConformalCalibration.of(Q, y, 0.5)
    assert np.array_equal(calibration.scores, np.sort(scores))
    for i, score in enumerate(scores):
        row = Rearrangement(Q.levels, Q.values[[i]])
        wider, narrower = (calibration.interval(row, max(score + step, 0.0)) for step in (1e-9, -1e-9))
        assert holds(wider, y[i])
        assert score == 0.0 or not holds(narrower, y[i])


def test_intervals_are_nested_and_cover_their_fraction_of_the_calibration_pairs() -> None:
    Q, y = curves(99), np.random.default_rng(1).normal(scale=2.0, size=99)
    calibration = ConformalCalibration.of(Q, y, 0.5)
    before = calibration.interval(Q, 0.0)
    np.testing.assert_allclose(before[:, 0], before[:, 1], atol=1e-9)
    for coverage in np.linspace(0.01, 0.99, 99):
        interval = calibration.interval(Q, calibration.radius(coverage))
        assert np.all((interval[:, 0] <= before[:, 0]) & (interval[:, 1] >= before[:, 1]))
        assert np.sum((interval[:, 0] <= y) & (y <= interval[:, 1])) >= round(100 * coverage)
        before = interval


@each("n", [1, 9, 19, 99, 999])
def test_the_rank_of_the_radius(n: int) -> None:
    calibration = ConformalCalibration(np.arange(1.0, n + 1.0), 1.0)
    for hundredths in range(1, 100):
        k = -((-hundredths * (n + 1)) // 100)  # ⌈(n + 1)·coverage⌉ in whole numbers
        if k <= n:
            assert calibration.radius(hundredths / 100) == k
        else:
            needed = -((-hundredths) // (100 - hundredths))
            with pytest.warns(UserWarning, match=rf"needs at least {needed} calibration points and {n} were given"):
                assert math.isinf(calibration.radius(hundredths / 100))


# ---------------------------------------------------------------------------------------------------- the estimator
@pytest.fixture(scope="module")
def data() -> list[tuple[np.ndarray, np.ndarray]]:
    return splits([60, 39, 50], 1)


def test_calibration_changes_intervals_only(data: list[tuple[np.ndarray, np.ndarray]]) -> None:
    train, calibration, (X, y) = data
    model = InfiniteQuantileRegressor(n_nodes=8).fit(*train)
    quantiles, raw, score = model.predict(X, [0.1, 0.9]), model.predict_interval(X, 0.8), model.score(X, y)
    assert not hasattr(model, "calibration_")
    assert model.conformalize(*calibration) is model
    assert repr(model.calibration_) == "ConformalCalibration(n=39, coverage up to 0.975)"
    assert np.array_equal(model.predict(X, [0.1, 0.9]), quantiles)
    assert model.score(X, y) == score
    assert not np.allclose(model.predict_interval(X, 0.8), raw)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict_interval(X, 0.8), model.predict_interval(X, 0.8))
    assert not hasattr(clone(model), "calibration_")
    model.fit(*train)
    assert not hasattr(model, "calibration_")
    assert np.array_equal(model.predict_interval(X, 0.8), raw)


def test_a_second_calibration_replaces_the_first(data: list[tuple[np.ndarray, np.ndarray]]) -> None:
    train, calibration, (X, y) = data
    model = InfiniteQuantileRegressor(n_nodes=8).fit(*train).conformalize(X, y)
    model.conformalize(*calibration)
    fresh = InfiniteQuantileRegressor(n_nodes=8).fit(*train).conformalize(*calibration)
    assert np.array_equal(model.predict_interval(X), fresh.predict_interval(X))


def test_too_few_pairs_for_a_coverage(data: list[tuple[np.ndarray, np.ndarray]]) -> None:
    train, (X, y), _ = data
    model = InfiniteQuantileRegressor(n_nodes=8).fit(*train).conformalize(X[:9], y[:9])
    assert np.all(np.isfinite(model.predict_interval(X, 0.9)))
    with pytest.warns(UserWarning, match=r"coverage=0\.95 needs at least 19 calibration points and 9 were given"):
        interval = model.predict_interval(X, 0.95)
    assert np.array_equal(interval, np.tile([-np.inf, np.inf], (len(X), 1)))


def test_the_units_of_y_do_not_matter(data: list[tuple[np.ndarray, np.ndarray]]) -> None:
    train, (X, y), (new, _) = data
    model = InfiniteQuantileRegressor(task_kernel="constant", n_nodes=4, noncrossing=0.0).fit(*train)
    one = model.conformalize(X, y).predict_interval(new, 0.8)
    # a model without spread: the interval is the prediction and a quantile of the absolute errors
    errors = np.sort(np.abs(y - model.predict(X)))
    np.testing.assert_allclose(one[:, 1] - one[:, 0], 2.0 * errors[math.ceil(40 * 0.8) - 1], rtol=1e-9)


@each(
    ("change", "sentence"),
    [
        (lambda X, y: (X, y[:-1]), "inconsistent"),
        (lambda X, y: (X, np.column_stack([y, y])), "1d"),
        (lambda X, y: (X, np.where(y > 0.0, np.nan, y)), "NaN"),
        (lambda X, y: (X[:0], y[:0]), "0 sample"),
        (lambda X, y: (np.hstack([X, X]), y), "features"),
    ],
)
def test_pairs_that_cannot_calibrate(change: Any, sentence: str, data: list[tuple[np.ndarray, np.ndarray]]) -> None:
    model = InfiniteQuantileRegressor(n_nodes=4).fit(*data[0])
    with pytest.raises(ValueError, match=sentence):
        model.conformalize(*change(*data[1]))
    assert not hasattr(model, "calibration_")


@each("coverage", [0.0, -0.5, 1.0, 1.5, np.nan, "most", None])
def test_a_calibrated_interval_covers_its_fraction(coverage: Any, data: list[tuple[np.ndarray, np.ndarray]]) -> None:
    model = InfiniteQuantileRegressor(n_nodes=4).fit(*data[0]).conformalize(*data[1])
    with pytest.raises(ValueError, match="coverage"):
        model.predict_interval(data[2][0], coverage)


def test_no_calibration_without_a_fit(data: list[tuple[np.ndarray, np.ndarray]]) -> None:
    with pytest.raises(NotFittedError):
        InfiniteQuantileRegressor().conformalize(*data[1])


@pytest.mark.slow
def test_targets_that_repeat_are_covered_as_promised() -> None:
    """Ties: a few values of y, each the end of many intervals, which rounding must not draw in."""
    rng = np.random.default_rng(0)
    low = []
    for seed in range(12):
        X = rng.integers(0, 2, size=(40, 1)).astype(float)
        y = rng.choice([-1.0, 0.3, 1.7], size=40) + 0.1 * X[:, 0]
        model = InfiniteQuantileRegressor(n_nodes=8, alpha=10.0 ** rng.uniform(-4, 0), random_state=seed).fit(X, y)
        covered = []
        for _ in range(20):
            X_cal, X_new = (rng.integers(0, 2, size=(size, 1)).astype(float) for size in (50, 400))
            y_cal, y_new = (rng.choice([-1.0, 0.3, 1.7], size=len(Z)) + 0.1 * Z[:, 0] for Z in (X_cal, X_new))
            interval = model.conformalize(X_cal, y_cal).predict_interval(X_new, coverage=0.9)
            covered.append(np.mean((interval[:, 0] <= y_new) & (y_new <= interval[:, 1])))
        low.append(np.mean(covered))
    assert min(low) > 0.88, "at least 0.9, up to the noise of 20 calibrations"
