"""Curves in order, and distributions that are known by their quantile functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.exceptions import NotFittedError
from sklearn.metrics import mean_pinball_loss

from infinitask import InfiniteQuantileRegressor
from infinitask.calibration._levels import Rearrangement
from infinitask.datasets import make_sine, sine_quantile
from infinitask.measures import Discrete
from infinitask.predictive import QuantileDistribution
from tests.support.each import each

GRID = np.linspace(0.0, 1.0, 101)


def wavy(n: int = 50, k: int = 101, seed: int = 0) -> np.ndarray:
    """Curves that rise on the whole and fall now and then."""
    rng = np.random.default_rng(seed)
    return np.cumsum(rng.normal(0.3, 1.0, size=(n, k)), axis=1)


# ------------------------------------------------------------------------------------------------ rearrangement
def test_a_curve_in_order_stays_what_it_is() -> None:
    values = np.sort(wavy(), axis=1)
    assert np.array_equal(Rearrangement.of(GRID, values)(GRID), values)
    assert np.array_equal(Rearrangement.of(GRID, values[:, ::-1], increasing=False)(GRID), values[:, ::-1])


@each("increasing", [True, False])
def test_rearranged_curves_are_in_order_to_the_last_bit(increasing: bool) -> None:
    values = wavy()
    assert np.any(np.diff(values, axis=1) < 0.0)
    tasks = np.sort(np.random.default_rng(1).uniform(size=20_000))
    tasks = np.concatenate([tasks, np.nextafter(GRID[1:-1], 0.0), GRID, np.nextafter(GRID[1:-1], 1.0)])
    tasks = np.sort(tasks)
    steps = np.diff(Rearrangement.of(GRID, values, increasing)(tasks), axis=1)
    assert np.all(steps >= 0.0 if increasing else steps <= 0.0)


@each("p", [1, 2, 5])
def test_rearranged_curves_come_no_further_from_any_increasing_curve(p: int) -> None:
    values, truth = wavy(seed=1), np.sort(wavy(seed=2), axis=1)
    before = np.sum(np.abs(values - truth) ** p, axis=1)
    after = np.sum(np.abs(Rearrangement.of(GRID, values).values - truth) ** p, axis=1)
    assert np.all(after <= before * (1.0 + 1e-12))
    assert np.mean(after < before) > 0.5


@each("increasing", [True, False])
def test_each_curve_at_its_own_tasks(increasing: bool) -> None:
    curves = Rearrangement.of(GRID, wavy(n=7), increasing)
    tasks = np.random.default_rng(0).uniform(size=(7, 4))
    rows = np.arange(7)
    expected = np.stack([curves(tasks[:, q])[rows, rows] for q in range(4)], axis=1)
    assert np.array_equal(curves.paired(tasks), expected)
    assert np.array_equal(curves.paired(tasks[:, 0]), expected[:, 0])


@each("increasing", [True, False])
def test_the_inverse_finds_the_task_of_a_value(increasing: bool) -> None:
    curves = Rearrangement.of(GRID, wavy(n=7), increasing)
    tasks = np.random.default_rng(0).uniform(size=(7, 30))
    for side in ("left", "right"):
        np.testing.assert_allclose(curves.inverse(curves.paired(tasks), side), tasks, atol=1e-12)
    ends = np.tile([-1e9, 1e9], (7, 1))
    assert np.array_equal(curves.inverse(ends), np.tile([0.0, 1.0] if increasing else [1.0, 0.0], (7, 1)))


def test_the_inverse_knows_both_ends_of_a_flat_piece() -> None:
    curves = Rearrangement(np.linspace(0.0, 1.0, 5), np.array([[0.0, 1.0, 1.0, 1.0, 2.0], [3.0, 3.0, 3.0, 3.0, 3.0]]))
    values = np.array([[1.0], [3.0]])
    assert curves.inverse(values, "left").ravel().tolist() == [0.25, 0.0]
    assert curves.inverse(values, "right").ravel().tolist() == [0.75, 1.0]


def test_one_level_is_a_constant_curve() -> None:
    curves = Rearrangement.of(np.array([0.5]), np.array([[2.0], [3.0]]))
    assert curves(np.array([0.1, 0.5])).tolist() == [[2.0, 2.0], [3.0, 3.0]]
    assert curves.inverse(np.array([[1.0, 2.0], [3.0, 9.0]])).tolist() == [[0.5, 0.5], [0.5, 0.5]]


# ------------------------------------------------------------------------------------------------- distributions
def normal(k: int = 1001, low: float = 0.001, high: float = 0.999) -> QuantileDistribution:
    levels = np.linspace(low, high, k)
    return QuantileDistribution(levels, np.array([[0.0, 1.0], [3.0, 0.2]]) @ [np.ones(k), stats.norm.ppf(levels)])


def tied() -> QuantileDistribution:
    """Steps of random lengths with many ties, and a row that is one point."""
    rng = np.random.default_rng(4)
    values = np.sort(np.round(rng.normal(size=(5, 21)), 1), axis=1)
    values[4] = 0.7
    assert np.any(np.diff(values, axis=1) == 0.0)
    return QuantileDistribution(np.sort(np.append(rng.uniform(0.05, 0.95, size=19), [0.0, 1.0])), values)


def cut() -> QuantileDistribution:
    """Levels that miss a tenth of the mass below and a fifth above."""
    return QuantileDistribution(np.linspace(0.1, 0.8, 29), np.sort(wavy(6, 29, seed=3), axis=1))


CASES = {
    "uniform": QuantileDistribution([0.0, 1.0], [[0.0, 1.0], [-2.0, 6.0]]),
    "normal": normal(),
    "tied": tied(),
    "cut": cut(),
}


each_case = each("case", CASES.values(), ids=CASES.keys())


def integrals(distribution: QuantileDistribution, function: Any) -> np.ndarray:
    """∫₀¹ f(τ, Q(τ)) dτ by the midpoint rule, the missing mass at the end values."""
    tau = (np.arange(200_000) + 0.5) / 200_000
    Q = distribution.ppf(np.clip(tau, distribution.levels[0], distribution.levels[-1]))
    return np.mean(function(tau, Q), axis=1)


@each_case
def test_the_cdf_undoes_the_quantile_function(case: QuantileDistribution) -> None:
    low, high = case.levels[[0, -1]]
    tau = low + (high - low) * np.random.default_rng(0).uniform(size=200)
    back = case.cdf(case.ppf(tau))
    assert np.all(back >= tau - 1e-12)  # F(Q(τ)) ≥ τ always, with equality where Q rises strictly
    rises = np.all(np.diff(case.values, axis=1) > 0.0, axis=1)
    np.testing.assert_allclose(back[rises], np.broadcast_to(tau, back.shape)[rises], atol=1e-12)
    y = case.values[:, :1] + (case.values[:, -1:] - case.values[:, :1]) * np.linspace(0.0, 1.0, 50)[:-1]
    levels = case.cdf(y)
    again = np.stack(
        [row.ppf(u)[0] for row, u in zip(case, levels, strict=True) if row.values[0, 0] < row.values[0, -1]]
    )
    spread = case.values[:, 0] < case.values[:, -1]
    np.testing.assert_allclose(again, y[spread], atol=1e-9)


@each_case
def test_the_cdf_is_the_fraction_of_levels_below(case: QuantileDistribution) -> None:
    some = np.linspace(0, case.levels.size - 1, 8).astype(int)
    y = np.column_stack([case.values[:, some], *(case.mean() + shift for shift in (-50.0, -0.3, 0.2, 50.0))])
    expected = [integrals(case, lambda tau, Q, points=points: points[:, None] >= Q) for points in y.T]
    expected = np.stack(expected, axis=1)
    np.testing.assert_allclose(case.cdf(y), expected, atol=1e-4)
    assert np.all(case.cdf(-np.inf) == 0.0)
    assert np.all(case.cdf(np.inf) == 1.0)


@each_case
def test_moments_are_integrals_of_the_quantile_function(case: QuantileDistribution) -> None:
    mean = integrals(case, lambda tau, Q: Q)
    np.testing.assert_allclose(case.mean(), mean, atol=1e-4)
    variance = integrals(case, lambda tau, Q: (Q - mean[:, None]) ** 2)
    np.testing.assert_allclose(case.variance(), variance, rtol=1e-3, atol=1e-12)
    np.testing.assert_allclose(case.std() ** 2, case.variance())


@each_case
def test_samples_follow_the_distribution(case: QuantileDistribution) -> None:
    draws = case.sample(4000, random_state=0)
    assert draws.shape == (len(case), 4000)
    error = 5.0 * case.std() / np.sqrt(4000) + 1e-12
    assert np.all(np.abs(draws.mean(axis=1) - case.mean()) <= error)
    np.testing.assert_allclose(draws.var(axis=1), case.variance(), rtol=0.15, atol=1e-12)
    for y in np.quantile(draws, [0.05, 0.3, 0.5, 0.9], axis=1):
        assert np.all(np.abs(np.mean(draws <= y[:, None], axis=1) - case.cdf(y)) < 0.035)  # 4 standard errors
    assert np.array_equal(draws, case.sample(4000, random_state=0))
    assert not np.array_equal(draws[0], draws[1])


def test_the_missing_mass_sits_at_the_ends() -> None:
    draws = cut().sample(4000, random_state=1)
    first, last = cut().values[:, :1], cut().values[:, -1:]
    np.testing.assert_allclose(np.mean(draws == first, axis=1), 0.1, atol=0.02)
    np.testing.assert_allclose(np.mean(draws == last, axis=1), 0.2, atol=0.03)
    np.testing.assert_allclose(cut().cdf(first[:, 0]), 0.1)
    assert np.all(cut().cdf(np.nextafter(first[:, 0], -np.inf)) == 0.0)
    for level in (0.05, 0.9, 1.0):
        with pytest.raises(ValueError, match=rf"level contains {level}, outside .*\[0\.1, 0\.8\]"):
            cut().ppf([0.5, level])
    with pytest.raises(ValueError, match=r"level contains 0\.9, outside"):
        cut().interval(0.8)
    assert cut().interval(0.6).shape == (6, 2)


# ------------------------------------------------------------------------------------------------------ the crps
def test_the_crps_of_uniform_distributions_is_known() -> None:
    low, width = np.array([0.0, -2.0]), np.array([1.0, 8.0])
    for z in (-1.5, 0.0, 0.2, 0.5, 0.9, 1.0, 3.0):  # on the scale of the unit interval
        inside = np.clip(z, 0.0, 1.0)
        expected = width * (abs(z - inside) + inside**2 - inside + 1.0 / 3.0)
        np.testing.assert_allclose(CASES["uniform"].crps(low + width * z), expected, rtol=1e-13)


def test_the_crps_of_normal_distributions_is_known() -> None:
    # Gneiting and Raftery (2007), equation 21; the levels leave out a ten-thousandth at either end
    distribution, z = normal(20_001, 1e-4, 1.0 - 1e-4), np.array([-0.4, 1.3])
    expected = np.array([1.0, 0.2]) * (z * (2.0 * stats.norm.cdf(z) - 1.0) + 2.0 * stats.norm.pdf(z) - np.pi**-0.5)
    np.testing.assert_allclose(distribution.crps(np.array([0.0, 3.0]) + np.array([1.0, 0.2]) * z), expected, atol=1e-4)


@each_case
@each("shift", [-4.0, -0.3, 0.0, 0.15, 2.0])
def test_the_crps_is_the_squared_distance_of_cdfs(case: QuantileDistribution, shift: float) -> None:
    y = case.mean() + shift
    x, w = np.polynomial.legendre.leggauss(3)  # between the values the integrand is a parabola
    expected = []
    for row, observed in zip(case, y, strict=True):
        ends = np.unique(np.append(row.values[0], observed))
        start, width = ends[:-1, None], np.diff(ends)[:, None]
        z = start + 0.5 * width * (1.0 + x)
        F = row.cdf(z.reshape(1, -1)).reshape(z.shape)
        expected.append(np.sum(0.5 * width * w * (F - (observed <= z)) ** 2))
    np.testing.assert_allclose(case.crps(y), expected, rtol=1e-10, atol=1e-12)


@each_case
def test_the_crps_is_twice_the_mean_pinball_loss(case: QuantileDistribution) -> None:
    y = case.mean() + 0.4
    expected = integrals(case, lambda tau, Q: np.maximum(tau * (y[:, None] - Q), (tau - 1.0) * (y[:, None] - Q)))
    np.testing.assert_allclose(case.crps(y), 2.0 * expected, rtol=1e-4)
    levels = (np.arange(200) + 0.5) / 200.0
    Q = case.ppf(np.clip(levels, case.levels[0], case.levels[-1]))
    outside_judge = np.mean([mean_pinball_loss(y, Q[:, j], alpha=tau) for j, tau in enumerate(levels)])
    assert np.isclose(np.mean(case.crps(y)), 2.0 * outside_judge, rtol=1e-2)


def test_the_crps_of_a_point_is_a_distance() -> None:
    points = QuantileDistribution([0.2, 0.6], [[1.0, 1.0], [-3.0, -3.0]])
    assert points.crps([1.5, -3.0]).tolist() == [0.5, 0.0]
    assert np.all(np.isinf(points.pdf([1.0, -3.0])))
    assert np.all(points.pdf([1.1, 0.0]) == 0.0)
    hair = QuantileDistribution([0.0, 0.5, 1.0], [[1.0, np.nextafter(1.0, 2.0), np.nextafter(1.0, 2.0)]])
    np.testing.assert_allclose(hair.crps(1e-3), 0.999, rtol=1e-12)


# ------------------------------------------------------------------------------------------------------- density
@each_case
def test_the_density_integrates_to_the_mass_between_the_ends(case: QuantileDistribution) -> None:
    spread = case.values[:, -1] > case.values[:, 0]
    rows = case[spread]
    y = np.linspace(rows.values[:, 0], rows.values[:, -1], 100_001, axis=1)
    density = rows.pdf(y)
    assert np.all((density >= 0.0) & np.isfinite(density))
    np.testing.assert_allclose(np.trapezoid(density, y, axis=1), case.levels[-1] - case.levels[0], rtol=1e-3)
    assert np.all(rows.pdf(rows.values[:, 0] - 1e-6) == 0.0)
    assert np.all(rows.pdf(rows.values[:, -1] + 1e-6) == 0.0)


def test_densities_that_are_known() -> None:
    uniform = CASES["uniform"]
    np.testing.assert_allclose(uniform.pdf([[0.0, 0.01, 0.5, 1.0]]), [[1.0] * 4, [0.125] * 4], rtol=1e-12)
    z = np.linspace(-2.5, 2.5, 101)
    np.testing.assert_allclose(normal().pdf([z, 3.0 + 0.2 * z]) * [[1.0], [0.2]], [stats.norm.pdf(z)] * 2, atol=0.005)


def test_the_density_is_bounded_where_the_quantile_function_is_nearly_flat() -> None:
    levels = np.linspace(0.0, 1.0, 1001)
    values = levels + 0.0
    values[400:420] = values[400] + 1e-12 * np.arange(20)
    assert np.max(np.diff(levels) / np.diff(values)) > 1e6
    y = np.linspace(0.0, 1.0, 501)[None]
    assert np.max(QuantileDistribution(levels, values[None]).pdf(y)) < 1.5


# ---------------------------------------------------------------------------------------------- shapes and errors
@each_case
def test_predictions_move_with_the_units(case: QuantileDistribution) -> None:
    moved = QuantileDistribution(case.levels, 3.0 * case.values - 1.0)
    y = case.mean() + 0.1
    np.testing.assert_allclose(moved.mean(), 3.0 * case.mean() - 1.0)
    np.testing.assert_allclose(moved.std(), 3.0 * case.std(), atol=1e-12)
    np.testing.assert_allclose(moved.crps(3.0 * y - 1.0), 3.0 * case.crps(y), atol=1e-12)
    np.testing.assert_allclose(moved.cdf(3.0 * y - 1.0), case.cdf(y), atol=1e-9)
    np.testing.assert_allclose(moved.pdf(3.0 * y - 1.0), case.pdf(y) / 3.0, atol=1e-9)
    np.testing.assert_allclose(moved.interval(0.5), 3.0 * case.interval(0.5) - 1.0)


@each_case
@each("ask", ["cdf", "pdf"])
def test_shapes_of_y(case: QuantileDistribution, ask: str) -> None:
    function, n = getattr(case, ask), len(case)
    whole = function([[-0.5, 0.0, 0.25]])
    assert whole.shape == (n, 3)
    assert np.array_equal(whole[:, 1], function(0.0))
    assert np.array_equal(whole[:, 1], function(np.zeros(n)))
    assert np.array_equal(whole, function(np.tile([-0.5, 0.0, 0.25], (n, 1))))
    for bad in (np.zeros(n + 1), np.zeros((n + 1, 2)), np.zeros((1, 1, 1)), np.nan, "much"):
        with pytest.raises(ValueError, match="y"):
            function(bad)


def test_a_distribution_is_a_collection_of_rows() -> None:
    distribution = normal()
    assert repr(distribution) == "QuantileDistribution(n=2, 1001 levels from 0.001 to 0.999)"
    assert len(distribution) == 2
    assert [len(row) for row in distribution] == [1, 1]
    assert np.array_equal(distribution[1].values, distribution.values[1:])
    np.testing.assert_allclose(distribution[np.array([False, True])].mean(), distribution.mean()[1:], rtol=1e-14)
    assert np.array_equal(distribution[::-1].median(), distribution.median()[::-1])
    with pytest.raises(IndexError):
        distribution[2]
    np.testing.assert_allclose(distribution.interval(0.9), distribution.ppf([0.05, 0.95]))


@each(
    ("levels", "values", "sentence"),
    [
        ([0.5], [[1.0]], "k ≥ 2 levels"),
        ([0.1, 0.9], [1.0, 2.0], "k ≥ 2 levels"),
        ([0.1, 0.9], [[1.0, 2.0, 3.0]], "k ≥ 2 levels"),
        ([0.9, 0.1], [[1.0, 2.0]], "ascend"),
        ([0.5, 0.5], [[1.0, 2.0]], "ascend"),
        ([-0.1, 0.5], [[1.0, 2.0]], "ascend"),
        ([0.5, np.nan], [[1.0, 2.0]], "ascend"),
        ([0.1, 0.9], [[1.0, np.nan]], "finite"),
        ([0.1, 0.9], [[1.0, np.inf]], "finite"),
        ([0.1, 0.9], [[1.0, 2.0], [2.0, 1.0]], "row 1"),
        ([0.1, 0.9], [["low", "high"]], "numbers"),
    ],
)
def test_levels_and_values_of_a_quantile_function_are_checked(levels: Any, values: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        QuantileDistribution(levels, values)


@each(
    ("ask", "value"),
    [
        ("crps", [1.0]),
        ("crps", [1.0, np.nan]),
        ("crps", [1.0, np.inf]),
        ("crps", [[1.0, 2.0]]),
        ("ppf", [[0.5, 0.6]]),
        ("ppf", np.nan),
        ("sample", 0),
        ("sample", 1.5),
        ("interval", 0.0),
        ("interval", 1.1),
        ("interval", np.nan),
        ("interval", "most"),
    ],
)
def test_questions_without_an_answer(ask: str, value: Any) -> None:
    with pytest.raises(ValueError, match=r"given|outside"):
        getattr(normal(), ask)(value)


# ----------------------------------------------------------------------------------------- from a fitted regressor
@pytest.fixture(scope="module")
def sine() -> InfiniteQuantileRegressor:
    return InfiniteQuantileRegressor(alpha=1e-5, n_nodes=30).fit(*make_sine(1000, random_state=0))


def test_predicted_distributions_are_near_the_truth(sine: InfiniteQuantileRegressor) -> None:
    X, y = make_sine(2000, random_state=1)
    distribution = sine.predict_distribution(X)
    # the probability integral transform of new data is uniform
    assert stats.kstest(distribution.cdf(y), "uniform").statistic < 0.06
    centre = sine_quantile(X, 0.5)[:, 0]
    scale = sine_quantile(X, stats.norm.cdf(1.0))[:, 0] - centre
    z = (y - centre) / scale
    best = scale * (z * (2.0 * stats.norm.cdf(z) - 1.0) + 2.0 * stats.norm.pdf(z) - np.pi**-0.5)
    assert np.mean(best) * 0.97 < np.mean(distribution.crps(y)) < np.mean(best) * 1.03
    assert np.mean(np.abs(distribution.mean() - centre)) < 0.1
    assert 0.85 < np.median(distribution.std() / scale) < 1.05


def test_methods_of_a_predicted_distribution_agree(sine: InfiniteQuantileRegressor) -> None:
    X, y = make_sine(1500, random_state=2)  # more rows than are sorted at a time
    distribution = sine.predict_distribution(X)
    assert len(distribution) == 1500
    levels = [0.1, 0.5, 0.9]
    np.testing.assert_allclose(distribution.ppf(levels), sine.predict(X, levels), atol=1e-4)
    np.testing.assert_allclose(distribution.interval(0.8), sine.predict_interval(X, 0.8), atol=1e-4)
    for points in (y, 0.3, np.column_stack([y, y + 0.1]), [[-1.0, 0.0, 1.0]]):
        assert np.array_equal(sine.predict_cdf(X, points), distribution.cdf(points))
    draws = sine.sample(X, n_samples=3, random_state=5)
    assert np.array_equal(draws, distribution.sample(3, random_state=5))
    assert sine.sample(X[:4]).shape == (4, 1)
    with pytest.raises(ValueError, match="n_samples"):
        sine.sample(X, n_samples=0)
    with pytest.raises(ValueError, match=r"y of shape \(7,\) was given for 1500"):
        sine.predict_cdf(X, np.zeros(7))


def test_a_distribution_is_in_order_where_the_fit_is_not() -> None:
    X, y = make_sine(40, random_state=3)
    model = InfiniteQuantileRegressor(noncrossing=0.0, alpha=1e-4, gamma=30.0, n_nodes=12).fit(X, y)
    levels = np.linspace(0.0, 1.0, 1001)
    raw = model.field_(X, levels)
    assert np.mean(np.diff(raw, axis=1) < 0.0) > 0.05
    distribution = model.predict_distribution(X)
    assert np.array_equal(distribution.levels, levels)
    np.testing.assert_allclose(distribution.values, np.sort(raw, axis=1), atol=1e-9)


def test_distributions_on_a_part_of_the_levels() -> None:
    X, y = make_sine(60, random_state=0)
    model = InfiniteQuantileRegressor(measure=(0.05, 0.95), n_nodes=8).fit(X, y)
    distribution = model.predict_distribution(X)
    assert distribution.levels[[0, -1]].tolist() == [0.05, 0.95]
    with pytest.raises(ValueError, match="measure that covers it"):
        distribution.ppf(0.01)


@each(
    "params",
    [
        {"task_kernel": "diagonal", "noncrossing": 0.0},
        {"task_kernel": "diagonal", "noncrossing": "rearrange"},
        {"measure": Discrete([0.9, 0.1, 0.5])},
    ],
    ids=str,
)
def test_distributions_from_nodes(params: dict[str, Any]) -> None:
    X, y = make_sine(60, random_state=0)
    model = InfiniteQuantileRegressor(n_nodes=8, **params).fit(X, y)
    distribution = model.predict_distribution(X)
    assert np.array_equal(distribution.levels, model.nodes_)
    np.testing.assert_allclose(distribution.values, np.sort(model.predict(X, model.nodes_), axis=1), atol=1e-9)


def test_one_level_is_no_distribution() -> None:
    X, y = make_sine(60, random_state=0)
    model = InfiniteQuantileRegressor(measure=Discrete([0.5])).fit(X, y)
    for ask in (model.predict_distribution, model.sample, lambda X: model.predict_cdf(X, 0.0)):
        with pytest.raises(ValueError, match=r"level 0\.5 only"):
            ask(X)


def test_no_distribution_without_a_fit() -> None:
    X, y = make_sine(20, random_state=0)
    model = InfiniteQuantileRegressor()
    for ask in (model.predict_distribution, model.sample, lambda X: model.predict_cdf(X, y)):
        with pytest.raises(NotFittedError):
            ask(X)
