"""Fits with little regularisation: what splitting leaves out is accounted for, and it ends where others do."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from infinitask import InfiniteQuantileRegressor, fit_path
from infinitask.losses import Pinball
from infinitask.losses._rows import NonCrossing
from infinitask.objective import Integral, Objective, Smoothing
from infinitask.solvers import Solution, Splitting, State, _solve, _splitting, _splitting_run, iterate, solve
from infinitask.solvers._base import Ledger, Start
from infinitask.solvers._splitting_run import Run

Floats = np.ndarray[Any, Any]
WEIGHTS = pytest.mark.parametrize("weight", [0.0, 1.0], ids=["plain", "order"])


@pytest.fixture(autouse=True)
def small_problems_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Splitting is tried for the small problems of these tests as it is for large ones."""
    monkeypatch.setattr(_solve, "continuation_cost", lambda _: np.inf)


def quantiles(weight: float, alpha: float, n: int = 80, d: int = 1) -> Objective:
    """Quantiles of noisy rows by all features of a Gaussian kernel, a constant among them; the curves would cross."""
    rng = np.random.default_rng(2)
    x, theta = rng.uniform(-1.0, 1.0, size=(n, d)), np.linspace(0.1, 0.9, 9)
    y = np.sin(4.0 * x[:, :1]) + 0.4 * rng.normal(size=(n, 1))
    e, V = np.linalg.eigh(np.exp(-8.0 / d * np.sum((x[:, None] - x) ** 2, axis=2)))
    f, W = np.linalg.eigh(np.exp(-4.0 * (theta[:, None] - theta) ** 2))
    rows, cols = V * np.sqrt(np.maximum(e, 0.0)), W * np.sqrt(np.maximum(f, 0.0))
    step = np.linalg.pinv(np.exp(-4.0 * (theta[:, None] - theta) ** 2), rcond=1e-8) @ cols
    slope = (-8.0 * (theta[:, None] - theta) * np.exp(-4.0 * (theta[:, None] - theta) ** 2)) @ step
    weights = np.full(9, 1.0 / 9.0)
    terms = [Integral(Pinball(), theta, weights, cols, targets=y)]
    if weight:
        terms.append(Integral(NonCrossing(weight), theta, weights, slope))
    return Objective(np.hstack([np.full((n, 1), 5.0), rows]), np.full(n, 1.0 / n), tuple(terms), alpha)


def by_splitting(objective: Objective, tol: float = 1e-4) -> Solution:
    """The solution by splitting alone."""
    return _splitting_run.by_splitting(objective, Ledger(objective, tol, 10_000), None)[0]


@cache
def optimum(weight: float) -> Solution:
    """The solution of ``quantiles(weight, alpha=1e-5)`` by Newton's method."""
    found = solve(quantiles(weight, alpha=1e-5), solver="newton", tol=1e-8)
    assert found.converged
    return found


@pytest.mark.quick(every=5)
@WEIGHTS
@pytest.mark.parametrize("by_node", [False, True], ids=["one-step", "by-node"])
@pytest.mark.parametrize("single", [False, True], ids=["double", "single"])
@pytest.mark.parametrize("least", [1e-1, 1e-2, 1e-4], ids=str)
def test_every_look_holds_the_optimum_between_its_bounds(
    weight: float, least: float, single: bool, by_node: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if single:
        monkeypatch.setattr(_splitting, "MIN_SINGLE_ENTRIES", 0)
    objective = quantiles(weight, alpha=1e-5)
    best = optimum(weight)
    fewer = Splitting.of(objective).without(least * objective.alpha)
    looks: list[State] = []

    def seen(state: State) -> int:
        looks.append(state)
        return 30

    iterate(fewer, objective.alpha, tol=0.0, max_iter=400, seen=seen, by_node=by_node)
    assert (fewer.exact is not None) == single
    assert fewer.e.size * fewer.columns.f.size < objective.size
    assert len(looks) > 5
    assert (looks[-1].nodes is not None) == by_node
    for state in looks:
        assert state.dual[0] <= best.objective * (1.0 + 1e-9)
        assert state.primal[0] >= best.dual * (1.0 - 1e-9)
    assert looks[-1].gap[0] < 0.1


def test_the_pull_of_dropped_directions_is_bounded() -> None:
    """‖Φᵀ u Ψ‖² over all directions is that of the kept ones and at most what `lost` says."""
    objective = quantiles(0.0, alpha=1e-5)
    whole = Splitting.of(objective)
    fewer = whole.without(1e-2)
    assert fewer.exact is None  # so few rows are in double precision as they are
    rng = np.random.default_rng(0)
    for _ in range(20):
        u = rng.normal(size=(80, 9)) * rng.uniform(size=(1, 9))
        pulls, inner = [], u @ (whole.columns.weights[:, None] * fewer.columns.cols)
        for solver in (whole, fewer):
            weighted = solver.columns.weights[:, None] * solver.columns.cols
            pulls.append(solver.rows.T @ (solver.omega[:, None] * (u @ weighted)))
        energy, square = fewer.omega @ inner**2, np.array([float(fewer.omega @ u**2 @ whole.columns.weights)])
        lost = fewer.lost(energy[None, :], square, pulls[1][:, None, :])
        missing = np.sum(pulls[0] ** 2) - np.sum(pulls[1] ** 2)
        assert 0.0 < missing <= lost[0] * (1.0 + 1e-9)


@pytest.mark.quick(every=3)
@WEIGHTS
@pytest.mark.parametrize("alpha", [1e-5, 1e-7], ids=str)
def test_all_engines_agree_within_their_gaps(weight: float, alpha: float) -> None:
    objective = quantiles(weight, alpha)
    one, other = by_splitting(objective), solve(objective, solver="newton", tol=1e-6)
    assert one.converged
    assert other.converged
    assert other.dual * (1.0 - 1e-12) <= one.objective <= other.objective * (1.0 + 2e-4)
    assert one.dual <= other.objective
    np.testing.assert_array_equal(solve(objective, tol=1e-4).z, one.z)


@WEIGHTS
def test_where_splitting_stops_early_others_finish(weight: float, monkeypatch: pytest.MonkeyPatch) -> None:
    objective, steps = quantiles(weight, alpha=1e-6), []

    def short(*args: Any, **kwargs: Any) -> State:
        state = iterate(*args, **{**kwargs, "max_iter": 40})
        steps.append(state.n_iter)
        return state

    monkeypatch.setattr(_splitting_run, "iterate", short)
    found = solve(objective, tol=1e-5)
    assert steps == [40]
    assert found.converged
    assert found.n_evaluations > 40
    assert found.history[-1, 0] == found.n_evaluations


def test_a_start_at_the_solution_is_recognised() -> None:
    objective = quantiles(1.0, alpha=1e-5)
    first = solve(objective, tol=1e-4)
    assert first.smoothing.centre is not None
    again = solve(objective, tol=1e-4, start=Start(first.z, first.smoothing, first.floor))
    assert again.converged
    assert again.n_evaluations < first.n_evaluations / 2
    # without a centre, as after other solvers
    near = solve(objective, tol=1e-4, start=Start(first.z, Smoothing((1e-3, 0.0)), first.floor))
    assert near.converged


@pytest.mark.quick("plain")
@WEIGHTS
def test_a_path_is_separate_fits_within_their_gaps(weight: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(60, 2))
    y = np.sin(3.0 * X[:, 0]) + 0.3 * rng.normal(size=60)
    model = InfiniteQuantileRegressor(noncrossing=weight, n_nodes=10, gamma=2.0, random_state=0)
    alphas = np.geomspace(1e-3, 1e-7, 5)
    for alpha, fit in zip(alphas, fit_path(model, X, y, alphas=alphas), strict=True):
        alone = InfiniteQuantileRegressor(**{**model.get_params(), "alpha": float(alpha)}).fit(X, y)
        assert fit.dual_gap_ <= 1e-4
        assert alone.dual_gap_ <= 1e-4
        assert fit.objective_ == pytest.approx(alone.objective_, rel=2.5e-4)


@WEIGHTS
@pytest.mark.parametrize("by_node", [False, True], ids=["one-step", "by-node"])
@pytest.mark.parametrize("alpha", [1e-6, 1e-9], ids=str)
def test_the_objective_told_is_that_of_the_point_told(
    alpha: float, by_node: bool, weight: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_splitting, "MIN_SINGLE_ENTRIES", 0)
    objective = quantiles(weight, alpha=alpha)
    solver = Splitting.of(objective).without(1e-12)
    assert solver.exact is not None
    state = iterate(solver, alpha, tol=1e-3, max_iter=500, by_node=by_node)
    z = solver.coefficients(state).ravel()
    assert objective.evaluate(z, Smoothing((0.0,) * len(objective.integrals))).primal == pytest.approx(
        float(state.primal[0]), rel=1e-10
    )


@pytest.mark.parametrize("weight", [0.0, pytest.param(1.0, marks=pytest.mark.slow)], ids=["plain", "order"])
def test_steps_of_nodes_take_fewer_iterations_where_rows_are_all_but_interpolated(weight: float) -> None:
    objective = quantiles(weight, alpha=1e-6, n=100, d=4)
    one, other = (iterate(Splitting.of(objective), 1e-6, tol=1e-3, max_iter=10_000, by_node=by) for by in (False, True))
    assert other.gap[0] <= 1e-3
    assert other.n_iter < 0.5 * one.n_iter
    assert other.nodes is not None
    assert np.max(other.nodes) > 2.0 * np.min(other.nodes)


def test_an_objective_far_below_a_typical_target_is_certified() -> None:
    """Directions that are left out must not cost more than the gap asked for."""
    objective = quantiles(0.0, alpha=1e-7, n=150, d=6)
    found = by_splitting(objective)
    assert found.converged
    assert found.objective < 1e-3 * objective.scale


@WEIGHTS
def test_dual_points_of_single_precision_are_brought_into_their_intervals(
    weight: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_splitting, "MIN_SINGLE_ENTRIES", 0)
    objective = quantiles(weight, alpha=1e-6)
    solver = Splitting.of(objective).without(1e-12)
    run = Run(solver, 1e-6, np.ones(1), None)
    u = np.random.default_rng(0).normal(size=(80, 1, sum(term.theta.size for term in objective.integrals)))
    found = run.bounds._within(slice(None), 2.0 * u)[:, 0, :]
    theta = objective.integrals[0].theta
    np.testing.assert_array_equal(found[:, :9], np.clip(2.0 * u[:, 0, :9], theta - 1.0, theta))
    if weight:
        np.testing.assert_array_equal(found[:, 9:], np.clip(2.0 * u[:, 0, 9:], 0.0, weight))
