"""Order that is proved: ∂h/∂θ ≥ 0 for all θ at the training inputs, by the constraint that a fit can be given."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest

from infinitask import InfiniteExpectileRegressor, InfiniteQuantileRegressor
from infinitask.datasets import make_sine
from infinitask.kernels import Gaussian, MaternTask, TaskKernel

CROSSING: dict[str, Any] = {"gamma": 15.0, "task_gamma": 15.0, "alpha": 1e-4}
EVERYWHERE = np.linspace(0.0, 1.0, 10_000)


def falling(model: Any, X: np.ndarray) -> float:
    """The share of (training input, θ) at which a model falls."""
    return float(np.mean(model.field_(X, EVERYWHERE, order=1) < 0.0))


CASES: list[Any] = [
    (InfiniteQuantileRegressor, CROSSING),
    pytest.param(InfiniteQuantileRegressor, {**CROSSING, "task_gamma": 30.0, "alpha": 1e-5}, marks=pytest.mark.slow),
    pytest.param(InfiniteQuantileRegressor, {**CROSSING, "smoothing": 0.1, "alpha": 1e-5}, marks=pytest.mark.slow),
    (InfiniteQuantileRegressor, {**CROSSING, "alpha_bias": 1e-4}),
    (InfiniteQuantileRegressor, {**CROSSING, "bias_kernel": "matern52", "alpha_bias": 1e-4, "n_nodes": 20}),
    pytest.param(
        InfiniteQuantileRegressor,
        {**CROSSING, "task_kernel": "matern52", "task_gamma": 5.0, "measure": (0.0, 1.0)},
        marks=pytest.mark.slow,
    ),
    (InfiniteExpectileRegressor, {**CROSSING, "gamma": 300.0, "alpha": 1e-3}),
]


@pytest.mark.slow
def test_flat_curves_of_a_narrow_task_kernel_reach_the_tolerance() -> None:
    """Without noise all quantiles are equal, and the slopes of a narrow kernel dip below 0 between any few nodes."""
    X = np.random.default_rng(0).normal(size=(20, 1))
    model = InfiniteQuantileRegressor(noncrossing="hard", alpha=4e-5, n_nodes=38, task_gamma=30.0)
    model.fit(X, np.sin(2.0 * X[:, 0]))
    assert model.dual_gap_ <= model.tol
    assert np.min(model.field_(X, EVERYWHERE, order=1)) >= model.smallest_slope_ >= 0.0


@pytest.mark.quick(every=3)
@pytest.mark.parametrize(("kind", "params"), CASES)
def test_no_curve_falls_anywhere_at_the_training_rows(kind: type[Any], params: dict[str, Any]) -> None:
    X, y = make_sine(40, random_state=0)
    free = kind(noncrossing=0.0, **params).fit(X, y)
    assert falling(free, X) >= 0.05, "the fit without the constraint must cross, or this shows nothing"
    model = kind(noncrossing="hard", **params).fit(X, y)
    slopes = model.field_(X, EVERYWHERE, order=1)
    assert np.min(slopes) >= model.smallest_slope_ >= 0.0
    assert model.dual_gap_ <= 1e-4
    # a constraint costs something, and not more than the certificate allows
    assert model.objective_ * (1.0 + 1e-4) >= free.solution_.dual


@pytest.mark.slow
def test_the_certificate_is_for_the_constrained_problem() -> None:
    """The objective with the constraint lies above any penalised one, and a heavy penalty comes close to it."""
    X, y = make_sine(40, random_state=0)
    hard = InfiniteQuantileRegressor(noncrossing="hard", n_nodes=20, **CROSSING).fit(X, y)
    for weight in (0.0, 0.1, 1.0):
        penalised = InfiniteQuantileRegressor(noncrossing=weight, tol=1e-6, n_nodes=20, **CROSSING).fit(X, y)
        assert penalised.solution_.dual <= hard.objective_
    heavy = InfiniteQuantileRegressor(noncrossing=100.0, tol=1e-6, n_nodes=20, **CROSSING).fit(X, y)
    assert hard.solution_.dual == pytest.approx(heavy.objective_, rel=3e-4)


@pytest.mark.slow
def test_the_optimum_is_that_of_the_constrained_problem() -> None:
    """Judged by cvxpy, which has the constraint at 385 levels, in the same features."""
    X, y = make_sine(14, random_state=0)
    settings = {"gamma": 15.0, "task_gamma": 30.0, "alpha": 1e-4, "alpha_bias": 1e-4, "n_nodes": 12}
    model = InfiniteQuantileRegressor(noncrossing="hard", **settings).fit(X, y)
    field, nodes, weights = model.field_, model.nodes_, model.weights_
    phi = np.column_stack([field.phi(X), np.ones(len(y))])  # the bias is a constant feature
    coef = cp.Variable((phi.shape[1], field.psi.rank))
    residual = y[:, None] - phi @ coef @ field.psi(nodes).T
    levels = np.broadcast_to(nodes, residual.shape)
    pinball = cp.maximum(cp.multiply(levels, residual), cp.multiply(levels - 1.0, residual))
    risk = cp.sum(pinball @ weights) / len(y)
    slopes = phi @ coef @ field.psi(np.linspace(0.0, 1.0, 385), 1).T  # among them the levels of the fit
    free = cp.Problem(cp.Minimize(risk + 0.5e-4 * cp.sum_squares(coef)))
    judge = cp.Problem(free.objective, [slopes >= 0.0])
    best = judge.solve(solver="CLARABEL")
    assert free.solve(solver="CLARABEL") < best * (1.0 - 1e-3), "the constraint must cost something"
    assert model.solution_.dual <= best * (1.0 + 1e-7) <= model.objective_ * (1.0 + 1e-6)
    assert model.objective_ <= best * (1.0 + 2e-4)


def test_a_model_that_is_in_order_by_itself_pays_nothing() -> None:
    X, y = make_sine(300, random_state=0)
    free = InfiniteQuantileRegressor(noncrossing=0.0).fit(X, y)
    hard = InfiniteQuantileRegressor(noncrossing="hard").fit(X, y)
    assert free.field_(X, EVERYWHERE, order=1).min() > 0.0
    assert hard.objective_ == pytest.approx(free.objective_, rel=2e-4)


@pytest.mark.parametrize("kernel", [Gaussian(gamma=3.0), Gaussian(gamma=40.0), MaternTask(nu=2.5, gamma=3.0)])
@pytest.mark.parametrize("step", [0.2, 0.02])
def test_slopes_stray_from_their_interpolation_by_no_more_than_the_bound(kernel: TaskKernel, step: float) -> None:
    rng = np.random.default_rng(0)
    grid = np.arange(0.0, 1.0 + step / 2.0, step)
    fine = np.linspace(0.0, float(grid[-1]), 2001)
    worst = 0.0
    for _ in range(50):
        centres = rng.uniform(-0.2, 1.2, size=5)
        c = rng.normal(size=5)
        norm = np.sqrt(c @ kernel(centres, centres) @ c)
        slope = kernel(fine, centres, orders=(1, 0)) @ c / norm
        straight = np.interp(fine, grid, kernel(grid, centres, orders=(1, 0)) @ c / norm)
        worst = max(worst, float(np.max(np.abs(slope - straight))))
    bound = kernel.slope_error(step)
    assert worst <= bound
    assert worst >= 0.02 * bound, "a bound that is never felt proves nothing"


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"task_kernel": "matern32"}, "known for 'rbf' and 'matern52'"),
        ({"bias_kernel": None}, "bias_kernel=None"),
        ({"bias_kernel": "constant"}, "known for 'rbf' and 'matern52'"),
        ({"noncrossing": "soft"}, "'rearrange'"),
    ],
)
def test_what_cannot_be_proved_is_refused(params: dict[str, Any], sentence: str) -> None:
    X, y = make_sine(30, random_state=0)
    with pytest.raises(ValueError, match=sentence):
        InfiniteQuantileRegressor(**{"noncrossing": "hard", **params}).fit(X, y)


def test_order_is_promised_at_rows_of_positive_weight() -> None:
    # a row of weight 0 is no row: to hold the order there would change the fit
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(30, 1))
    y = X[:, 0] + (1.2 + X[:, 0]) * rng.normal(size=30)
    far = np.linspace(-3.0, 3.0, 60)[:, None]
    model = InfiniteQuantileRegressor(noncrossing="hard", alpha=1e-3, alpha_bias=1e-3, n_nodes=15)
    alone = model.fit(X, y).field_(far, EVERYWHERE, order=1)
    model.fit(np.vstack([X, far]), np.append(y, np.zeros(60)), sample_weight=np.repeat([1.0, 0.0], [30, 60]))
    np.testing.assert_array_equal(model.field_(far, EVERYWHERE, order=1), alone)
    assert alone.min() < 0.0, "a row at which nothing crosses proves nothing"
    assert model.field_(X, EVERYWHERE, order=1).min() >= model.smallest_slope_ >= 0.0
    assert "positive weight" in type(model).__doc__
