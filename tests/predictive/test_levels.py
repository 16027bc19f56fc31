"""Calibrated levels: the law they promise, order, units, ties, few rows, and that every answer goes through them."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from scipy import sparse, stats
from scipy.signal import find_peaks

from infinitask import InfiniteQuantileRegressor
from infinitask.calibration._levels import Levels, Rearrangement
from infinitask.datasets import make_sine
from infinitask.measures import Discrete
from infinitask.predictive import QuantileDistribution
from tests.support.each import each

GRID = Levels.grid()
ASKED = np.array([0.001, 0.005, 0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975, 0.995, 0.999])


def narrow(n: int, seed: int, scale: float = 0.4) -> tuple[np.ndarray, np.ndarray, Any]:
    """Normal targets, and the quantile functions of a model that takes deviations for ``scale`` times as large."""
    rng = np.random.default_rng(seed)
    centre, width = rng.normal(size=n), rng.uniform(0.5, 2.0, size=n)

    def Q(q: np.ndarray) -> np.ndarray:
        return np.asarray(centre[:, None] + scale * width[:, None] * stats.norm.ppf(q))

    return centre + width * rng.normal(size=n), Q(GRID), Q


@each("scale", [0.3, 1.0, 3.0])
def test_calibrated_quantiles_have_their_coverage_on_new_rows(scale: float) -> None:
    y, Q, _ = narrow(4000, 0, scale)
    new, _, there = narrow(20000, 1, scale)
    levels = Levels.of(y, Q, GRID)
    below = np.mean(new[:, None] <= levels.at(there, ASKED), axis=0)
    assert np.all(np.abs(below - ASKED) < 0.004 + 3.0 * np.sqrt(ASKED * (1.0 - ASKED) / 4000))
    before = np.mean(new[:, None] <= there(ASKED), axis=0)
    assert scale == 1.0 or np.max(np.abs(before - ASKED)) > 0.1  # there was something to do


def test_tails_beyond_the_last_level_come_from_the_exceedances() -> None:
    y, Q, _ = narrow(4000, 0)
    taken = Levels.of(y, Q, GRID)(np.array([0.01, 0.99]))
    assert taken[0] < GRID[0]
    assert taken[1] > GRID[-1]


def test_what_is_calibrated_stays() -> None:
    centre = np.random.default_rng(0).normal(size=999)
    Q = centre[:, None] + stats.norm.ppf(GRID)
    y = centre + stats.norm.ppf(np.arange(1, 1000) / 1000)  # the ranks themselves, in any order
    levels = Levels.of(y, Q, GRID)
    found = levels.at(lambda q: stats.norm.ppf(q)[None, :], ASKED[1:-1])[0]
    np.testing.assert_allclose(found, stats.norm.ppf(ASKED[1:-1]), atol=0.03)


@each("n", [1, 2, 5, 20])
def test_few_rows_leave_the_levels_nearly_as_they_are(n: int) -> None:
    worst = 0.0
    for seed in range(20):
        y, Q, _ = narrow(n, seed, scale=1.0)
        levels = Levels.of(y, Q, GRID)
        taken = levels(np.linspace(0.0, 1.0, 500))
        assert np.all(np.isfinite(taken))
        assert np.all(np.diff(taken) >= 0.0)
        worst = max(worst, float(np.max(np.abs(levels(ASKED[3:-3]) - ASKED[3:-3]))))
    assert worst < 0.35


def test_order_is_kept_to_the_last_bit() -> None:
    rng = np.random.default_rng(0)
    y, Q, _ = narrow(300, 0)
    levels = Levels.of(y, Q, GRID)
    curves = Rearrangement.of(np.linspace(0.0, 1.0, 1001), rng.normal(size=(50, 1001)) * 1e-3 + 1e3)
    asked = np.sort(np.concatenate([rng.uniform(size=3000), levels.asked, np.nextafter(levels.asked[1:-1], 0.0)]))
    assert np.all(np.diff(levels(asked)) >= 0.0)
    assert np.all(np.diff(levels.at(curves, asked), axis=1) >= 0.0)


@each("a", [0.01, 3e5, -7.0])
def test_levels_do_not_depend_on_the_units_of_y(a: float) -> None:
    y, Q, _ = narrow(200, 0)
    one = Levels.of(y, Q, GRID)
    values = a * Q + 12.0
    two = Levels.of(a * y + 12.0, values if a > 0.0 else values[:, ::-1], GRID)
    there, back = (two(ASKED), ASKED) if a > 0.0 else (1.0 - two(1.0 - ASKED), ASKED)
    np.testing.assert_allclose(there, one(back), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(two.least_spread, abs(a) * one.least_spread)


def test_equal_weights_are_none_and_a_weight_of_zero_is_no_row() -> None:
    y, Q, _ = narrow(100, 0)
    plain = Levels.of(y, Q, GRID)
    np.testing.assert_allclose(Levels.of(y, Q, GRID, np.full(100, 7.0)).taken, plain.taken)
    extra = Levels.of(np.append(y, 1e9), np.vstack([Q, Q[:1]]), GRID, np.append(np.ones(100), 0.0))
    np.testing.assert_allclose(extra.taken, plain.taken)


def test_a_model_with_point_masses_at_the_right_places_keeps_its_levels() -> None:
    # y = 0 with a probability of its own in each row, else uniform on (0, 1)
    rng = np.random.default_rng(0)
    p = rng.choice([0.2, 0.7], size=4000)
    u = rng.uniform(size=4000)
    y = np.maximum(u - p, 0.0) / (1.0 - p)
    Q = np.maximum(GRID - p[:, None], 0.0) / (1.0 - p[:, None])
    taken = Levels.of(y, Q, GRID)(np.arange(1, 20) / 20)
    np.testing.assert_allclose(taken, np.arange(1, 20) / 20, atol=0.03)


@each("n", [50, 1000])
def test_an_outlier_moves_the_last_level_only(n: int) -> None:
    y, Q, _ = narrow(n, 0, scale=0.8)
    asked = np.linspace(2.5 / n, 1.0 - 4.0 / n, 200)
    before = Levels.of(y, Q, GRID).at(lambda q: stats.norm.ppf(q)[None, :], asked)[0]
    y[7] = 1e9
    after = Levels.of(y, Q, GRID).at(lambda q: stats.norm.ppf(q)[None, :], asked)[0]
    assert np.max(np.abs(after - before)) < 1.5


def test_a_constant_target_is_no_trouble() -> None:
    flat = Levels.of(np.ones(10), np.ones((10, GRID.size)), GRID)
    assert np.all(np.isfinite(flat(ASKED)))
    assert np.all(flat.at(lambda q: np.ones((1, q.size)), [0.1, 0.9]) == 1.0)
    off = Levels.of(np.ones(10), np.zeros((10, GRID.size)), GRID)
    assert 0.5 < off.at(lambda q: np.zeros((1, q.size)), [0.9])[0, 0] <= 1.5


# ----------------------------------------------------------------------------------------- through the estimator
X, Y = make_sine(120, random_state=0)
HALF = np.arange(1, 20) / 20


def calibrated(**options: Any) -> tuple[InfiniteQuantileRegressor, InfiniteQuantileRegressor]:
    """The same fit, as it is and with levels of half the width."""
    before = InfiniteQuantileRegressor(n_nodes=12, **options).fit(X, Y)
    after = pickle.loads(pickle.dumps(before))
    grid = np.linspace(0.05, 0.95, 91)
    curves = before.predict(X, grid)
    middle = before.predict(X, 0.5)
    after.levels_ = Levels.of(middle + 3.0 * (Y - middle), np.sort(curves, axis=1), grid)
    return before, after


@each("noncrossing", [1.0, "rearrange"])
def test_every_answer_goes_through_the_levels(noncrossing: Any) -> None:
    before, after = calibrated(noncrossing=noncrossing)
    taken = after.levels_(HALF)
    inside = (taken > 0.05) & (taken < 0.95)
    quantiles = after.predict(X, HALF)
    np.testing.assert_allclose(quantiles[:, inside], before.predict(X, taken[inside]), rtol=1e-9)
    assert np.all(quantiles[:, -1] > before.predict(X, 0.95))  # wider than any level of the fit
    law = after.predict_distribution(X)
    np.testing.assert_allclose(law.ppf(HALF), quantiles, atol=1e-3)
    np.testing.assert_allclose(after.predict_interval(X, 0.8), quantiles[:, [1, -2]])
    np.testing.assert_allclose(after.predict_cdf(X, quantiles[:, 6:13]), np.tile(HALF[6:13], (120, 1)), atol=2e-3)
    below = np.mean(after.sample(X, 2000, random_state=0) <= quantiles[:, [1]])
    assert abs(below - 0.1) < 0.005
    assert after.score(X, Y) < before.score(X, Y)  # levels that are wrong for these targets
    np.testing.assert_array_equal(after.field_(X, HALF), before.field_(X, HALF))
    after.conformalize(X, Y)
    assert after.calibration_.scores[60] < 0.7 * before.conformalize(X, Y).calibration_.scores[60]


def test_calibrated_quantiles_do_not_cross() -> None:
    _, after = calibrated(noncrossing="rearrange")
    assert np.all(np.diff(after.predict(X, np.linspace(0.001, 0.999, 4001)), axis=1) >= 0.0)


def test_levels_travel_with_a_pickle_and_are_forgotten_by_the_next_fit() -> None:
    _, after = calibrated()
    quantiles = after.predict(X, HALF)
    again = pickle.loads(pickle.dumps(after))
    np.testing.assert_array_equal(again.predict(X, HALF), quantiles)
    assert not hasattr(again.fit(X, Y), "levels_")


def test_the_answer_at_a_level_does_not_depend_on_the_others() -> None:
    _, after = calibrated()
    together = after.predict(X, HALF)
    for j in (0, 9, 18):
        np.testing.assert_allclose(after.predict(X, HALF[j]), together[:, j], rtol=1e-9, atol=1e-10)
    np.testing.assert_array_equal(after.predict(X, HALF), together)


@each(
    "options",
    [{"measure": (0.2, 0.7)}, {"task_kernel": "diagonal", "noncrossing": 0.0}, {"measure": Discrete(HALF)}],
    ids=["a part of the levels", "nodes only", "a few levels"],
)
def test_levels_beyond_those_that_a_model_knows_are_reached(options: dict[str, Any]) -> None:
    model = InfiniteQuantileRegressor(n_nodes=12, quantiles=0.5, **options)
    model.fit(X, Y)
    known = np.unique(model.nodes_) if "measure" not in options or model.measure_.atoms() else np.linspace(0.2, 0.7, 51)
    middle = model.predict(X, known[known.size // 2])
    spread = 3.0 * (Y - middle)  # targets that are farther away than those of the fit
    model.levels_ = Levels.of(middle + spread, model.predict(X, known), known)
    asked = known[[1, known.size // 2, -2]]
    below = np.mean((middle + spread)[:, None] <= model.predict(X, asked), axis=0)
    np.testing.assert_allclose(below, asked, atol=0.09)
    np.testing.assert_allclose(model.predict_distribution(X).ppf(asked), model.predict(X, asked), rtol=0.02, atol=0.02)


def test_a_calibrated_model_follows_the_units_of_y() -> None:
    grid = Levels.grid()
    answers = []
    for a, b in ((1.0, 0.0), (2e4, 3e5)):
        model = InfiniteQuantileRegressor(n_nodes=12, tol=1e-3, noncrossing="rearrange").fit(X[::2], a * Y[::2] + b)
        model.levels_ = Levels.of(a * Y[1::2] + b, model.predict(X[1::2], grid), grid)
        answers.append((model.predict(X, ASKED) - b) / a)
    np.testing.assert_allclose(answers[1], answers[0], atol=1e-6)


def test_sparse_features_are_predicted_as_dense_ones() -> None:
    _, after = calibrated()
    np.testing.assert_allclose(after.predict(sparse.csr_array(X), HALF), after.predict(X, HALF))


@each(
    ("change", "named"),
    [
        ({"y": Y[:5]}, "y of shape"),
        ({"y": np.where(Y > 0.0, np.nan, Y)}, "y contains NaN"),
        ({"Q": np.ones((120, 2))}, "Q of shape"),
        ({"grid": [0.1, 50, 0.9]}, "grid contains 50"),
        ({"grid": [0.5, 0.1, 0.9]}, "ascend"),
        ({"weight": -np.ones(120)}, "weight"),
    ],
    ids=str,
)
def test_wrong_calls_are_named(change: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        Levels.of(**{"y": Y, "Q": np.tile([0.0, 1.0, 2.0], (120, 1)), "grid": [0.1, 0.5, 0.9], **change})


def test_densities_are_no_combs() -> None:
    tau = np.linspace(0.001, 0.999, 999)
    modes = []
    for seed in range(20):
        y, Q, _ = narrow(100, seed, scale=0.6)
        values = Levels.of(y, Q, GRID).at(lambda q: stats.norm.ppf(q)[None, :], tau)
        law = QuantileDistribution(tau, values)
        density = law.pdf(np.linspace(values[0, 0], values[0, -1], 400)[None, :])[0]
        peaks, _ = find_peaks(np.concatenate([[0.0], density, [0.0]]), prominence=0.15 * np.max(density))
        modes.append(peaks.size)
    assert np.mean(modes) < 1.6  # 3 if the map went through every rank
