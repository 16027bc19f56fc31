"""Units of y: a problem and its answers do not depend on how targets are written down."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from infinitask import (
    InfiniteExpectileRegressor,
    InfiniteKernelRidge,
    InfiniteQuantileRegressor,
    InfiniteSVR,
    InfiniteTaskEstimator,
)
from infinitask.datasets import make_sine
from infinitask.fitting import Units
from infinitask.losses import EpsilonInsensitive, Expectile, MQuantile, Pinball, Squared
from infinitask.measures import Discrete

LEVELS = np.array([0.05, 0.5, 0.95])
EVEN = np.array([3.0, -1.0, 7.0, 4.0, 12.0, 0.5])


def units_of(y: Any, weight: Any = None, *, centred: bool = True) -> Units:
    y = np.asarray(y, dtype=float)
    weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=float)
    return Units.of(y, weight / weight.sum(), centred=centred)


# ------------------------------------------------------------------------------------------------ centre and spread
@pytest.mark.parametrize("y", [EVEN, EVEN[:5], np.r_[EVEN, 7.0, 7.0]], ids=len)
def test_units_follow_the_targets(y: np.ndarray) -> None:
    here = units_of(y)
    assert here == units_of(y[::-1])
    # powers of two: the same to the last bit
    assert units_of(-4.0 * y) == Units(-4.0 * here.centre, 4.0 * here.spread)
    assert units_of(y + 32.0) == Units(here.centre + 32.0, here.spread)
    np.testing.assert_allclose(here.centre + here.spread * here.inside(y), y, rtol=1e-14)


def test_the_centre_is_the_median_and_the_spread_the_median_distance_from_it() -> None:
    y = np.random.default_rng(0).normal(size=101)
    assert units_of(y) == Units(float(np.median(y)), float(np.median(np.abs(y - np.median(y)))))
    y = y[:100]
    assert units_of(y).centre == pytest.approx(np.median(y), rel=1e-14)
    assert units_of(y, centred=False) == Units(0.0, units_of(y).spread)


def test_weights_are_repeats() -> None:
    rng = np.random.default_rng(0)
    for n in (6, 7, 20, 33):
        y, repeats = rng.normal(size=n), rng.integers(1, 4, size=n)
        assert units_of(y, repeats) == units_of(np.repeat(y, repeats))


def test_rounding_of_weights_does_not_choose_a_median() -> None:
    y = np.arange(10.0)
    rng = np.random.default_rng(0)
    for _ in range(20):
        assert units_of(y, 1.0 + 1e-14 * rng.normal(size=10)) == Units(4.5, 2.5)


def test_a_few_far_targets_do_not_matter() -> None:
    y = np.random.default_rng(0).normal(size=200)
    far = y.copy()
    far[np.argmax(y)] = 1e12
    assert units_of(far) == units_of(y)


@pytest.mark.parametrize(
    ("y", "expected"),
    [
        ([5.0, 5.0, 5.0], Units(5.0, 5.0)),
        ([0.0, 0.0], Units(0.0, 1.0)),
        ([1e-12, 3e-12], Units(2e-12, 1e-12)),
        ([0.0] * 17 + [2.0], Units(0.0, 2.0)),
        ([3.0] * 60 + [4.0] * 40, Units(3.0, 1.0)),
        ([7.0], Units(7.0, 7.0)),
    ],
    ids=lambda case: str(case)[:30],
)
def test_targets_that_are_mostly_equal_have_a_spread(y: list[float], expected: Units) -> None:
    found = units_of(y)
    assert (found.centre, found.spread) == (pytest.approx(expected.centre), pytest.approx(expected.spread))


def test_rounding_is_no_spread() -> None:
    y = 1e6 * (1.0 + 1e-16 * np.arange(10))
    assert units_of(y).spread == pytest.approx(1e6)


# ---------------------------------------------------------------------------------------------------------- losses
@pytest.mark.parametrize("loss", [Pinball(), MQuantile(0.3), EpsilonInsensitive(), Expectile(), Squared()], ids=repr)
def test_the_degree_of_a_loss_is_how_it_scales(loss: Any) -> None:
    rng = np.random.default_rng(0)
    theta, y, h = np.array([0.1, 0.5, 0.8]), rng.normal(size=(20, 1)), rng.normal(size=(20, 3))
    inside = loss.in_units(8.0).value(theta, y, h)
    assert np.any(inside > 0.0)
    np.testing.assert_allclose(loss.value(theta, 8.0 * y, 8.0 * h), 8.0**loss.degree * inside, rtol=1e-12)


# ------------------------------------------------------------------------------------- λ means what the formula says
def written_down(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """The documented objective, from what ``field_`` answers at the nodes and from its coefficients."""
    field, theta, w = model.field_, model.nodes_, model.weights_
    recipe = model.recipe_
    risk = np.mean(recipe.task.loss.value(theta, y[:, None], field(X, theta)) @ w)
    ridge = 0.5 * model.alpha_ * np.sum(field.coef**2)
    bias = 0.0 if field.bias_coef is None else 0.5 * model.alpha_bias_ * np.sum(field.bias_coef**2)
    crossing = 0.0
    if recipe.task.order.weight > 0.0:
        fall = np.maximum(-field(X, theta, order=1), 0.0)
        kappa = getattr(recipe.task.loss, "kappa", 0.0)
        if recipe.task.order.loss == "squared":
            fall = fall**2
        elif recipe.task.order.loss == "smoothed" and kappa > 0.0:
            fall = np.where(fall <= kappa, fall**2 / (2.0 * kappa), fall - 0.5 * kappa)
        crossing = recipe.task.order.weight * np.mean(fall @ w)
    return float(risk + ridge + bias + crossing)


PRICES: list[tuple[type[Any], dict[str, Any]]] = [
    (InfiniteQuantileRegressor, {"alpha": 1e-5, "alpha_bias": 1e-7, "noncrossing": 0.0}),
    (InfiniteQuantileRegressor, {"alpha": 1e-7, "alpha_bias": None, "noncrossing": 0.5}),
    (InfiniteQuantileRegressor, {"alpha": 1e-7, "alpha_bias": 0.0, "noncrossing": 0.5}),
    (InfiniteQuantileRegressor, {"alpha": 1e-7, "noncrossing": 1e-4, "noncrossing_loss": "squared"}),
    (
        InfiniteQuantileRegressor,
        {"alpha": 1e-7, "noncrossing": 0.5, "noncrossing_loss": "smoothed", "smoothing": 200.0},
    ),
    (InfiniteQuantileRegressor, {"alpha": 1e-5, "smoothing": 300.0, "noncrossing": 0.0}),
    (InfiniteExpectileRegressor, {"alpha": 1e-4, "alpha_bias": 1e-5, "noncrossing": 0.0}),
    (InfiniteExpectileRegressor, {"alpha": 1e-4, "noncrossing": 500.0}),
    (InfiniteExpectileRegressor, {"alpha": 1e-4, "noncrossing": 0.1, "noncrossing_loss": "squared"}),
    (InfiniteSVR, {"alpha": 1e-5, "alpha_bias": 1e-6}),
    (InfiniteTaskEstimator, {"alpha": 1e-5, "bias_kernel": None}),
]


@pytest.mark.parametrize(("cls", "params"), PRICES, ids=lambda p: p.__name__ if isinstance(p, type) else str(p))
@pytest.mark.filterwarnings("ignore:.*root mean square")
def test_explicit_weights_are_those_of_the_formula_in_the_units_of_y(cls: type[Any], params: dict[str, Any]) -> None:
    X, y = make_sine(40, random_state=3)
    y = 1e5 + 1000.0 * y
    model = cls(gamma=30.0, n_nodes=8, **params).fit(X, y)
    assert (model.alpha_, model.recipe_.alpha) == (params["alpha"], params["alpha"])
    if params.get("alpha_bias", 0.0) is None:
        assert model.alpha_bias_ == params["alpha"]
    elif params.get("alpha_bias", 0.0) > 0.0:
        assert model.alpha_bias_ == params["alpha_bias"]
    assert written_down(model, X, y) == pytest.approx(model.objective_, rel=1e-9)
    assert model.dual_gap_ <= model.tol


@pytest.mark.parametrize("noncrossing", [0.0, 0.2])
@pytest.mark.filterwarnings("ignore:.*root mean square")
def test_the_optimum_is_that_of_the_formula(noncrossing: float) -> None:
    cp = pytest.importorskip("cvxpy")
    X, y = make_sine(25, random_state=1)
    y = 1e5 + 1000.0 * y
    levels, alpha, alpha_bias = np.array([0.1, 0.4, 0.6, 0.9]), 1e-5, 1e-6
    model = InfiniteQuantileRegressor(
        gamma=5.0,
        task_gamma=3.0,
        measure=Discrete(levels),
        alpha=alpha,
        alpha_bias=alpha_bias,
        noncrossing=noncrossing,
        tol=1e-6,
    ).fit(X, y)

    def task(s: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, ...]:
        d = s[:, None] - t[None, :]
        k = np.exp(-3.0 * d**2)
        return k, -6.0 * d * k, (6.0 - 36.0 * d**2) * k

    # functions of θ: the kernel at the levels and its derivatives there
    k, by_first, by_both = task(levels, levels)
    gram = np.block([[k, -by_first], [by_first, by_both]])
    e, V = np.linalg.eigh(gram)
    psi = V * np.sqrt(np.maximum(e, 0.0))
    K = np.exp(-5.0 * (X - X.T) ** 2)
    e, V = np.linalg.eigh(K)
    phi = V * np.sqrt(np.maximum(e, 0.0))
    C, c = cp.Variable((25, 8)), cp.Variable((1, 8))
    unit = 1000.0  # the variables are in thousands, for the sake of the judge
    f = phi @ C + np.ones((25, 1)) @ c
    r = y[:, None] / unit - f @ psi[:4].T
    weights = np.broadcast_to(levels, (25, 4))
    risk = unit * cp.sum(cp.multiply(weights, cp.pos(r)) + cp.multiply(1.0 - weights, cp.neg(r))) / 100.0
    falls = unit * noncrossing * cp.sum(cp.neg(f @ psi[4:].T)) / 100.0
    ridge = 0.5 * unit**2 * (alpha * cp.sum_squares(C) + alpha_bias * cp.sum_squares(c))
    best = cp.Problem(cp.Minimize(risk + falls + ridge)).solve(solver="CLARABEL")
    assert model.objective_ - model.dual_gap_ * model.objective_ <= best * (1.0 + 1e-6)
    assert model.objective_ == pytest.approx(best, rel=3e-6)


# ------------------------------------------------------------------------------------------------- targets as they are
def hetero(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, size=(n, 1))
    return X, np.sin(2.0 * X[:, 0]) + 0.3 * (1.2 + X[:, 0] / 2.0) * rng.normal(size=n)


@pytest.mark.parametrize("absurd", [1e4, 1e6, 1e9])
def test_one_extreme_target_does_not_spoil_the_quantiles(absurd: float) -> None:
    X, y = hetero(200, 2)
    far = y.copy()
    far[17] = absurd
    clean, model = (InfiniteQuantileRegressor(n_nodes=20).fit(X, target) for target in (y, far))
    assert model.dual_gap_ <= model.tol
    X_new, y_new = hetero(4000, 1)
    below, usual = (np.mean(y_new[:, None] <= m.predict(X_new, LEVELS), axis=0) for m in (model, clean))
    np.testing.assert_allclose(below, LEVELS, atol=0.05)
    np.testing.assert_allclose(below, usual, atol=0.02)


ESTIMATORS = [
    InfiniteQuantileRegressor,
    InfiniteExpectileRegressor,
    InfiniteSVR,
    InfiniteKernelRidge,
    InfiniteTaskEstimator,
]


@pytest.mark.parametrize("cls", ESTIMATORS)
@pytest.mark.parametrize("constant", [0.0, 7.0, -1e6, 1e-12])
def test_a_constant_target_is_answered_exactly_and_at_once(cls: type[Any], constant: float) -> None:
    X, _ = hetero(30, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = cls(n_nodes=6).fit(X, np.full(30, constant))
    theta = model.nodes_[[0, 2, 5]]
    np.testing.assert_allclose(model.field_(X, theta), constant, rtol=1e-12, atol=0.0)
    assert model.solution_.n_evaluations == 1
    assert model.dual_gap_ <= model.tol


@pytest.mark.parametrize("cls", [InfiniteQuantileRegressor, InfiniteExpectileRegressor, InfiniteSVR])
def test_targets_with_two_values_or_mostly_one_are_fitted(cls: type[Any]) -> None:
    X, noise = hetero(120, 0)
    two = np.where(noise > 0.0, 5.0, 3.0)
    mostly = np.where(noise > 0.7, noise, 0.0)
    assert np.mean(mostly == 0.0) > 0.6
    for y in (two, mostly):
        model = cls(n_nodes=8).fit(X, y)
        assert model.dual_gap_ <= model.tol
        h = model.field_(X, model.nodes_)
        assert np.all(np.isfinite(h))
        assert y.min() - np.ptp(y) <= h.min() <= h.max() <= y.max() + np.ptp(y)
        assert np.corrcoef(model.predict(X), noise)[0, 1] > 0.6


@pytest.mark.parametrize("far", [1e18, -1e30])
def test_a_target_that_hides_all_others_is_refused(far: float) -> None:
    """Beside it the objective is the same number whatever is predicted for the others, and no gap certifies them."""
    X, y = make_sine(40, random_state=0)
    y[3] = far
    with pytest.raises(ValueError, match="double precision loses the others"):
        InfiniteQuantileRegressor(n_nodes=5).fit(X, y)
    weight = np.ones(40)
    weight[3] = 0.0  # a row that does not count hides nothing
    InfiniteQuantileRegressor(n_nodes=5).fit(X, y, sample_weight=weight)
