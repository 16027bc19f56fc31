"""Splitting ends where every other solver does, for many problems at once, and what it certifies is true."""

from __future__ import annotations

import importlib.util
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from infinitask._base.arrays import place
from infinitask.losses import ConvexLoss, Pinball
from infinitask.losses._rows import NonCrossing, SquaredNonCrossing
from infinitask.objective import Integral, Objective
from infinitask.solvers import Splitting, State, _splitting_run, iterate, solve
from tests.support.limits import use_threads
from tests.support.random_objectives import LOSSES, posed

Floats = np.ndarray[Any, Any]


class Asymmetric(ConvexLoss):
    """log cosh with more weight on one side, by value and slope only."""

    domain = (0.0, 1.0)

    def value(self, theta: Any, y: Any, h: Any) -> Any:
        r = y - h
        return np.where(r > 0.0, theta, 1.0 - theta) * (np.logaddexp(r, -r) - np.log(2.0))

    def slope(self, theta: Any, y: Any, h: Any) -> Any:
        r = y - h
        return -np.where(r > 0.0, theta, 1.0 - theta) * np.tanh(r)


CASES = {name: LOSSES[name] for name in ("pinball", "M-quantile", "expectile", "hinge", "epsilon-insensitive", "tube")}
CASES["own"] = Asymmetric()


def with_level(objective: Objective) -> Objective:
    """The first feature is a constant, as a bias that hardly any ridge holds is."""
    rows = objective.rows.copy()
    rows[:, 0] = 10.0
    return replace(objective, rows=rows)


def primal(objective: Objective, C: Floats) -> float:
    """P of the losses themselves, by the formula."""
    h, omega = objective.rows @ C, objective.sample_weight
    terms = (omega @ t.loss.value(t.theta, t.targets, h @ t.cols.T) @ t.weights for t in objective.integrals)
    return float(sum(terms)) + 0.5 * objective.alpha * float(np.sum(C**2))


def quantiles(n: int = 60, alpha: float = 1e-3) -> Objective:
    """Quantiles with a constant and some cosines."""
    rng = np.random.default_rng(1)
    x, theta = rng.uniform(size=(n, 1)), np.linspace(0.1, 0.9, 5)
    y = np.sin(6.0 * x) + 0.3 * rng.normal(size=(n, 1))
    rows = np.hstack([3.0 * np.ones((n, 1)), np.cos(np.pi * x * np.arange(1, 9)) / np.arange(1, 9)])
    cols = np.exp(-4.0 * (theta[:, None] - theta) ** 2)
    omega = rng.uniform(0.5, 1.5, size=n)
    term = Integral(Pinball(), theta, np.full(5, 0.2), cols, targets=y)
    return Objective(rows, omega / omega.sum(), (term,), alpha)


# ------------------------------------------------------------------------------------------------------ the certificate
@pytest.mark.quick(every=5)
@pytest.mark.parametrize(
    "order",
    [None, pytest.param(NonCrossing(0.7), marks=pytest.mark.slow), SquaredNonCrossing(0.7)],
    ids=["plain", "order", "squared"],
)
@pytest.mark.parametrize("level", [False, True], ids=["no level", "level"])
@pytest.mark.parametrize("name", CASES)
def test_the_certificate_is_true(name: str, level: bool, order: Any) -> None:
    objective = posed(CASES[name], others=() if order is None else ((order, 5),))
    objective = with_level(objective) if level else objective
    best = solve(objective, tol=1e-9)
    solver = Splitting.of(objective)
    for tol in (1e-1, 1e-4):
        state = iterate(solver, objective.alpha, tol=tol, max_iter=20_000)
        assert state.gap[0] <= tol
        assert state.primal[0] == pytest.approx(primal(objective, solver.coefficients(state)), rel=1e-9)
        assert state.dual[0] <= best.objective * (1.0 + 1e-9)
        assert state.primal[0] >= best.dual * (1.0 - 1e-9)
    np.testing.assert_allclose(
        solver.values(state)[:, 0, :6], objective.rows @ solver.coefficients(state) @ _cols(objective)
    )


def _cols(objective: Objective) -> Floats:
    return objective.integrals[0].cols.T


@pytest.mark.parametrize("alpha", [10.0, 1e-1, 1e-3, 1e-5])
def test_any_ridge(alpha: float) -> None:
    objective = quantiles(alpha=alpha)
    solver = Splitting.of(objective)
    state = iterate(solver, alpha, tol=1e-4, max_iter=5_000)
    best = solve(objective, tol=1e-8)
    assert state.gap[0] <= 1e-4
    assert best.dual <= state.primal[0] * (1.0 + 1e-12)
    assert state.primal[0] <= best.objective * (1.0 + 2e-4)
    assert state.dual[0] <= best.objective


def test_directions_that_the_ridge_holds_do_not_matter() -> None:
    objective = quantiles(alpha=1.0)
    solver = Splitting.of(objective)
    fewer = solver.leading(1.0)
    assert fewer.e.size < solver.e.size
    one, other = (iterate(s, 1.0, tol=1e-5, max_iter=5_000) for s in (solver, fewer))
    assert other.primal[0] == pytest.approx(one.primal[0], rel=5e-3)
    assert solver.leading(1e-9) is solver


def test_bounds_that_are_no_numbers_certify_nothing() -> None:
    nothing = np.zeros((1, 1, 1))
    primal, dual = np.array([1.0, 1.0, 0.0, np.nan, 1.0]), np.array([0.9, np.nan, 0.0, 0.0, 2.0])
    state = State(nothing, nothing, np.ones(5), nothing, primal, dual, 0)
    np.testing.assert_allclose(state.gap, [0.1, np.inf, 0.0, np.inf, 0.0])


@pytest.mark.parametrize("single", [False, True])
def test_targets_that_are_all_equal(single: bool) -> None:
    objective = quantiles()
    for value in (0.0, 1.0):
        term = replace(objective.integrals[0], targets=np.full((60, 1), value))
        solver = Splitting.of(replace(objective, integrals=(term,)), single=single)
        state = iterate(solver, 1e-6, tol=1e-2, max_iter=2_000)
        assert state.gap[0] <= 1e-2 or state.primal[0] < 1e-6
        np.testing.assert_allclose(solver.values(state), value, atol=1e-2)


# ------------------------------------------------------------------------------------------------ many problems at once
def folds(n: int, count: int = 4) -> Floats:
    return np.arange(n) % count != np.arange(count)[:, None]


@pytest.mark.quick(every=3)
@pytest.mark.parametrize(
    "order", [pytest.param(None, marks=pytest.mark.slow), NonCrossing(0.3)], ids=["plain", "order"]
)
@pytest.mark.parametrize("name", CASES)
def test_folds_at_once_are_fits_to_their_rows(name: str, order: Any) -> None:
    objective = posed(CASES[name], others=() if order is None else ((order, 5),), n=40)
    live = folds(40)
    solver = Splitting.of(objective)
    state = iterate(solver, objective.alpha, live=live, tol=1e-4, max_iter=20_000)
    for b, counted in enumerate(live):
        part = objective.only(np.flatnonzero(counted))
        best = solve(part, tol=1e-8)
        C = solver.coefficients(state, b)
        assert state.gap[b] <= 1e-4
        assert state.primal[b] == pytest.approx(primal(part, C), rel=1e-9)
        assert best.dual * (1.0 - 1e-9) <= state.primal[b] <= best.objective * (1.0 + 2e-4)
        assert state.dual[b] <= best.objective * (1.0 + 1e-9)
        # rows left out are predicted by what the others have taught
        left_out = objective.rows[~counted] @ C @ _cols(objective)
        np.testing.assert_allclose(solver.values(state)[~counted, b, :6], left_out, atol=1e-10)


def test_targets_of_held_out_rows_do_not_matter() -> None:
    objective, live = quantiles(), folds(60)
    state = iterate(Splitting.of(objective), 1e-3, live=live, max_iter=50, tol=0.0)
    term, rng = objective.integrals[0], np.random.default_rng(0)
    for b, counted in enumerate(live):
        targets = np.where(counted[:, None], term.targets, term.targets + 0.1 * rng.normal(size=(60, 1)))
        # the median size of a target, where iterations begin, is the one thing that all targets decide together
        targets[~counted] *= np.sign(targets[~counted]) * np.sign(term.targets[~counted])
        solver = Splitting.of(replace(objective, integrals=(replace(term, targets=targets),)))
        begun = solver.start(4)._replace(sigma=Splitting.of(objective).start(4).sigma)
        again = iterate(solver, 1e-3, live=live, start=begun, max_iter=50, tol=0.0)
        np.testing.assert_allclose(again.coef[:, b], state.coef[:, b], atol=1e-12)


def test_weights_are_repeats() -> None:
    objective = quantiles(20)
    repeats = np.random.default_rng(0).integers(0, 4, size=20)
    term = objective.integrals[0]
    each = np.repeat(np.arange(20), repeats)
    weighted = replace(objective, sample_weight=repeats / repeats.sum())
    repeated = replace(
        objective,
        rows=objective.rows[each],
        sample_weight=np.full(each.size, 1.0 / each.size),
        integrals=(replace(term, targets=term.targets[each]),),
    )
    one, other = (iterate(Splitting.of(o), 1e-3, tol=1e-5, max_iter=10_000) for o in (weighted, repeated))
    assert one.primal[0] == pytest.approx(other.primal[0], rel=2e-5)
    # a row that does not count in a fold is as one of no weight
    counted = repeats > 0
    uniform = replace(objective, sample_weight=np.full(20, 0.05))
    live = iterate(Splitting.of(uniform), 1e-3, live=counted[None, :], tol=1e-5, max_iter=10_000)
    alone = iterate(Splitting.of(uniform.only(np.flatnonzero(counted))), 1e-3, tol=1e-5, max_iter=10_000)
    assert live.primal[0] == pytest.approx(alone.primal[0], rel=2e-5)


def test_a_start_is_not_changed_and_helps() -> None:
    objective = quantiles()
    solver = Splitting.of(objective)
    first = iterate(solver, 1e-3, tol=1e-3)
    kept = first.H.copy(), first.D.copy()
    near = iterate(solver, 0.8e-3, start=first, tol=1e-3)
    assert near.n_iter < iterate(solver, 0.8e-3, tol=1e-3).n_iter
    np.testing.assert_array_equal(first.H, kept[0])
    np.testing.assert_array_equal(first.D, kept[1])


# ------------------------------------------------------------------------------------------------ precision and devices
@pytest.mark.parametrize("name", CASES)
def test_single_precision_is_good_to_a_percent(name: str) -> None:
    objective = with_level(posed(CASES[name], n=40))
    live = folds(40)
    one, other = (Splitting.of(objective, single=single) for single in (False, True))
    exact = iterate(one, objective.alpha, live=live, tol=1e-3, max_iter=5_000)
    single = iterate(other, objective.alpha, live=live, tol=1e-2, max_iter=5_000)
    assert single.H.dtype == np.float32
    assert np.all(single.gap <= 1e-2)
    np.testing.assert_allclose(single.primal, exact.primal, rtol=1e-2)
    assert np.all(single.dual <= exact.primal * (1.0 + 1e-5))


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
@pytest.mark.parametrize("single", [False, True])
def test_tensors_give_what_arrays_give(single: bool) -> None:
    objective, live = quantiles(), folds(60)
    term = objective.integrals[0]
    parts = {name: place(getattr(term, name), "cpu") for name in ("theta", "weights", "cols", "targets")}
    tensors = replace(
        objective,
        rows=place(objective.rows, "cpu"),
        sample_weight=place(objective.sample_weight, "cpu"),
        integrals=(replace(term, **parts),),
    )
    one, other = (iterate(Splitting.of(o, single=single), 1e-3, live=live, tol=1e-2) for o in (objective, tensors))
    np.testing.assert_allclose(other.primal, one.primal, rtol=1e-3 if single else 1e-9)


def test_the_number_of_threads_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    objective, live = quantiles(400), folds(400)
    monkeypatch.setattr(_splitting_run, "BLOCK_ENTRIES", 1)  # blocks of 64 rows
    found = []
    for pool in (None, ThreadPoolExecutor(2), ThreadPoolExecutor(4)):
        use_threads(monkeypatch, pool)
        found.append(iterate(Splitting.of(objective), 1e-4, live=live, tol=1e-3, max_iter=60))
    for state in found[1:]:
        np.testing.assert_array_equal(state.coef, found[0].coef)
        np.testing.assert_array_equal(state.dual, found[0].dual)


# --------------------------------------------------------------------------------------------------------- what it asks
def test_splitting_takes_problems_without_a_bias() -> None:
    assert Splitting.solves(quantiles())
    assert Splitting.solves(posed(LOSSES["hinge"]))
    assert not Splitting.solves(posed(LOSSES["pinball"], bias="penalised"))
    assert not Splitting.solves(posed(LOSSES["pinball"], bias="free"))


@pytest.mark.parametrize("alpha", [1e-8, 1e-10, 1e-12])
def test_the_bound_holds_where_directions_are_dropped(alpha: float) -> None:
    """A feature so small that its eigenvalue is taken for 0 still lowers the optimum where λ is smaller."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=(60, 1))
    rows = np.hstack([np.ones((60, 1)), 2e-7 * np.sign(y)])
    term = Integral(Pinball(), np.array([0.3, 0.7]), np.full(2, 0.5), np.eye(2), targets=y)
    objective = Objective(rows, np.full(60, 1 / 60), (term,), alpha=alpha)
    best = solve(objective, solver="newton", tol=1e-7)
    splitting = Splitting.of(objective)
    assert splitting.lost_rows > 0.0
    state = iterate(splitting, alpha, tol=1e-9, max_iter=300)
    assert float(state.dual[0]) <= best.objective * (1.0 + 1e-9)
