"""Every solver ends at the same optimum, and what it certifies is true."""

from __future__ import annotations

import re
import tracemalloc
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from infinitask.fitting import Data, Recipe
from infinitask.fitting._pose import pose
from infinitask.losses import CostSensitiveHinge, EpsilonInsensitive, Expectile, LevelSet, Loss, MQuantile, Pinball
from infinitask.measures import Uniform
from infinitask.objective import Evaluation, Objective, Smoothing
from infinitask.penalties import IntegratedRidge, Ridge
from infinitask.solvers import SOLVERS, Solution, _lbfgs, _newton, solve
from infinitask.solvers._base import Certificate, Ledger
from infinitask.tasks import LevelSetTask, Order, Task

Floats = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Case:
    """A small problem, posed as the estimators pose it."""

    name: str
    loss: Loss
    options: dict[str, Any] = field(default_factory=dict)
    penalty: Ridge | IntegratedRidge = field(default_factory=Ridge)

    def __repr__(self) -> str:
        return self.name

    @cached_property
    def best(self) -> Solution:
        """The solution to ten digits."""
        return solve(self.objective(), solver="newton", tol=1e-10)

    def objective(self, n: int = 25, y: Floats | None = None) -> Objective:
        rng = np.random.default_rng(0)
        X = rng.uniform(-1.0, 1.0, size=(n, 1))
        noisy = np.sin(3.0 * X[:, 0]) + 0.5 * rng.normal(size=n) if y is None else y
        targets: Floats | None = noisy
        if isinstance(self.loss, CostSensitiveHinge):
            targets = np.sign(noisy)
        elif isinstance(self.loss, LevelSet):
            targets = None
        options = {"alpha": 1e-2, "alpha_bias": 1e-2, "n_nodes": 6} | self.options
        order = Order(options.pop("noncrossing", 0.0))
        kind = LevelSetTask if isinstance(self.loss, LevelSet) else Task
        task = kind(self.loss, Uniform(*(self.loss.support or self.loss.domain)), self.penalty, order)
        recipe = Recipe(task, **options)
        return pose(recipe, Data.canonical(X, targets, np.ones(n)), rng).objective


QUANTILE = Case("quantile", Pinball())
EXPECTILE = Case("expectile", Expectile())
LEVEL_SET = Case("level set", LevelSet(), {"alpha": 1.0, "alpha_bias": 0.05}, penalty=IntegratedRidge())
CASES = [
    QUANTILE,
    Case("quantile with non-crossing", Pinball(), {"noncrossing": 1.0, "task_gamma": 30.0}),
    Case("quantile with a constant bias", Pinball(), {"noncrossing": 0.1, "bias_kernel": "constant"}),
    Case("one quantile at a time", Pinball(), {"task_kernel": "diagonal"}),
    Case("M-quantile", MQuantile(0.2)),
    EXPECTILE,
    Case("cost-sensitive", CostSensitiveHinge()),
    Case("epsilon-insensitive", EpsilonInsensitive()),
    LEVEL_SET,
]
TOL = 1e-4


@pytest.fixture(params=CASES, ids=repr)
def case(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(params=SOLVERS)
def solver(request: pytest.FixtureRequest) -> Any:
    return request.param


def value(objective: Objective, z: Floats) -> float:
    """P(z), not smoothed."""
    return objective.evaluate(z, Smoothing((0.0,) * len(objective.integrals))).primal


# ----------------------------------------------------------------------------------------------- the optimum
def test_solution_is_what_it_says(case: Case, solver: Any) -> None:
    objective = case.objective()
    found = solve(objective, solver=solver, tol=TOL)
    assert found.converged
    assert found.gap <= TOL
    assert found.objective == pytest.approx(value(objective, found.z), rel=1e-12)
    assert found.gap == pytest.approx((found.objective - found.dual) / abs(found.objective), rel=1e-6, abs=1e-13)
    assert 1 <= found.n_iter <= found.n_evaluations
    assert re.fullmatch(r"The duality gap .* is within the tolerance .*\.", found.message)


def test_certificate_is_true(case: Case, solver: Any) -> None:
    objective = case.objective()
    best = case.best
    assert best.converged
    found = solve(objective, solver=solver, tol=TOL)
    assert found.dual <= best.objective + 1e-12
    assert best.dual <= found.objective + 1e-12
    assert found.objective - best.objective <= found.gap * abs(found.objective) + 1e-12
    # λ-strong convexity: the certificate bounds the distance to the solution as well
    squared = float(np.sum(objective.ridge * (found.z - best.z) ** 2))
    assert 0.5 * squared <= (found.objective - best.dual) + 1e-12


def test_solution_cannot_be_improved(case: Case) -> None:
    objective = case.objective()
    best = case.best
    rng = np.random.default_rng(1)
    for scale in (1e-1, 1e-2, 1e-3, 1e-4):
        for _ in range(10):
            other = best.z + scale * rng.normal(size=best.z.size)
            assert value(objective, other) >= best.objective - 1e-10


def test_sub_gradient_steps_get_there_slowly() -> None:
    """Steps of 1/(λt), averaged: the distance falls like 1/t, where the library needs a few dozen evaluations."""
    objective, best = QUANTILE.objective(), QUANTILE.best
    sharp, z = Smoothing((0.0,) * len(objective.integrals)), np.zeros(objective.size)
    mean, excess = np.zeros_like(z), []
    for t in range(1, 2001):
        z = z - objective.evaluate(z, sharp).gradient / (objective.ridge * t)
        mean += 2.0 / (t + 1.0) * (z - mean)  # later steps weigh more
        if t in (200, 2000):
            excess.append(value(objective, mean) / best.objective - 1.0)
    quick = solve(objective, tol=1e-4)
    assert excess[0] > 3.0 * excess[1] > 0.0
    assert excess[0] > 1e-4 > quick.objective / best.objective - 1.0
    assert quick.n_evaluations < 100


def test_scipy_finds_the_same_dual_optimum() -> None:
    objective = CASES[1].objective(n=12)
    found = solve(objective, solver="newton", tol=1e-9)
    # max_u Σ y u − ½‖z_u‖²_Λ over the boxes, one unknown per pair; v = ω w u keeps the scales of the pairs
    Z, mass, y, low, high = [], [], [], [], []
    for term in objective.integrals:
        n, m = objective.rows.shape[0], term.weights.size
        Z.append(np.einsum("ia,jb->ijab", objective.rows, term.cols).reshape(n * m, -1))
        mass.append(np.outer(objective.sample_weight, term.weights).ravel())
        y.append(np.zeros(n * m) if term.targets is None else np.repeat(term.targets[:, 0], m))
        row = term.loss.row(term.theta, term.targets)
        low.append(np.tile(row.low, n))
        high.append(np.tile(row.high, n))
    assert objective.bias_size == 0
    A = np.concatenate(Z) * np.concatenate(mass)[:, None]
    gain = np.concatenate(mass) * np.concatenate(y)

    def negative(u: Floats) -> tuple[float, Floats]:
        z = A.T @ u / objective.alpha
        return 0.5 * objective.alpha * float(z @ z) - float(gain @ u), A @ z - gain

    bounds = list(zip(np.concatenate(low), np.concatenate(high), strict=True))
    options = {"maxiter": 20_000, "maxfun": 200_000, "ftol": 0.0, "gtol": 1e-10, "maxcor": 50}
    reached = minimize(negative, np.zeros(gain.size), jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    assert -reached.fun == pytest.approx(found.objective, rel=1e-6)


def test_steps_by_unknowns_arrive_as_well(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    objective = case.objective()
    best = case.best
    monkeypatch.setattr(_newton, "MIN_PAIRS_UNLISTED", 0)
    monkeypatch.setattr(_newton.NewtonSystem, "active", None)  # not asked
    found = solve(objective, solver="newton", tol=TOL)
    assert found.converged
    assert found.objective == pytest.approx(best.objective, rel=TOL)


def test_conjugate_gradients_arrive_as_well(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    objective = case.objective()
    best = case.best
    monkeypatch.setattr(_newton, "MAX_SOLVE_COST", 0.0)
    found = solve(objective, solver="newton", tol=TOL)
    assert found.converged
    assert found.objective == pytest.approx(best.objective, rel=TOL)


@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-6])
def test_what_is_asked_for_is_reached(case: Case, tol: float) -> None:
    found = solve(case.objective(), tol=tol)
    assert found.gap <= tol
    assert found.objective - case.best.objective <= tol * abs(found.objective) + 1e-12


# ------------------------------------------------------------------------------------------------ the history
def test_bounds_hold_all_along_the_way(case: Case, solver: Any) -> None:
    found = solve(case.objective(), solver=solver, tol=TOL)
    count, primal, dual = found.history.T
    assert np.all(np.diff(count) > 0)
    assert count[-1] <= found.n_evaluations
    assert np.all(primal >= dual - 1e-13)
    assert np.min(primal) == found.objective
    assert dual[-1] == found.dual
    # the best lower bound never sinks, up to rounding
    assert np.all(np.diff(dual) >= -1e-13)


def test_certificate_keeps_the_best_of_both_bounds() -> None:
    objective = QUANTILE.objective()
    certificate = Certificate(objective)
    certificate.floor = 1e-12
    smoothing = Smoothing((0.3,))
    rng = np.random.default_rng(0)
    gaps, primals = [], []
    for scale in (0.3, 3.0, 0.1, 1.0, 0.01):
        z = scale * rng.normal(size=objective.size)
        evaluation = objective.evaluate(z, smoothing)
        certificate.update(z, evaluation)
        primals.append(evaluation.primal)
        gaps.append(certificate.primal - certificate.dual)
        assert certificate.primal == min(primals)
        assert value(objective, certificate.z) == pytest.approx(certificate.primal)
    assert gaps == sorted(gaps, reverse=True)
    assert certificate.dual >= 0.0  # u = 0 is feasible for every loss


# ------------------------------------------------------------------------------------------------- the end
def test_running_out_of_evaluations_is_told(solver: Any) -> None:
    found = solve(QUANTILE.objective(), solver=solver, tol=1e-12, max_iter=8)
    assert not found.converged
    assert found.gap > 1e-12
    said = f"The 8 evaluations allowed were used up at a duality gap of {found.gap:.1e}, "
    assert found.message.startswith(said)
    assert found.message.endswith("raise max_iter or tol.")


def test_more_evaluations_do_not_harm(solver: Any) -> None:
    objective = QUANTILE.objective()
    found = [solve(objective, solver=solver, tol=1e-9, max_iter=k) for k in (1, 3, 10, 30)]
    absolute = [f.objective - f.dual for f in found]
    assert absolute == sorted(absolute, reverse=True)


class Visits:
    """Counts the evaluations of all objectives, and knows where they were."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.points: list[Floats] = []
        evaluate = Objective.evaluate

        def counted(objective: Objective, z: Floats, smoothing: Smoothing) -> Evaluation:
            self.points.append(z.copy())
            return evaluate(objective, z, smoothing)

        monkeypatch.setattr(Objective, "evaluate", counted)


@pytest.mark.quick(every=4)
def test_no_more_evaluations_than_allowed(case: Case, solver: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    objective = case.objective()
    visits = Visits(monkeypatch)
    for max_iter in (*range(1, 8), 11, 19, 29, 45, 80):
        visits.points.clear()
        found = solve(objective, solver=solver, tol=1e-14, max_iter=max_iter)
        assert found.n_evaluations <= max_iter
        # the book is honest, and its first line is the look at zero, which a walk does not need
        if solver == "auto" and objective.two_targets:  # an iteration of splitting counts as an evaluation
            assert len(visits.points) <= found.n_evaluations
            assert len(found.history) <= found.n_evaluations
        else:
            assert found.n_evaluations == len(visits.points) == len(found.history)
        if solver != "auto" or max_iter == 1 or not objective.one_class:
            np.testing.assert_array_equal(visits.points[0], 0.0)
        if not found.converged:
            assert found.n_evaluations == max_iter or not found.message.startswith(f"The {max_iter} evaluations")


@pytest.mark.parametrize("case", [QUANTILE, EXPECTILE, CASES[1]], ids=repr)
def test_zero_targets_are_fitted_by_zero(case: Case, solver: Any) -> None:
    found = solve(case.objective(y=np.zeros(25)), solver=solver)
    assert found.converged
    assert found.gap == 0.0
    assert found.objective == 0.0
    np.testing.assert_array_equal(found.z, 0.0)


@pytest.mark.parametrize("case", [QUANTILE, EXPECTILE, CASES[1]], ids=repr)
def test_zero_targets_need_one_look(case: Case, solver: Any) -> None:
    assert solve(case.objective(y=np.zeros(25)), solver=solver).n_evaluations == 1


@pytest.mark.parametrize("constant", [0.1, 0.3, -7.0, 1e9 / 3])
def test_constant_targets_do_not_loop(solver: Any, constant: float) -> None:
    # λ in the units of the target, so that the problem is the same for all of them
    objective = QUANTILE.objective(y=np.full(25, constant))
    objective = replace(objective, alpha=objective.alpha / abs(constant))
    assert solve(objective, solver=solver, max_iter=300).converged


@pytest.mark.quick(every=4)
@pytest.mark.parametrize("constant", [0.1, 0.3, -7.0])
def test_a_weak_ridge_under_constant_targets_does_not_loop(solver: Any, constant: float) -> None:
    # the objective is a thousandth of what it is at zero, and the gap is relative to it
    assert solve(QUANTILE.objective(y=np.full(25, constant)), solver=solver, max_iter=1_000).converged


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_units_of_the_targets_do_not_matter(solver: Any, scale: float) -> None:
    plain = QUANTILE.objective()
    term = plain.integrals[0]
    # y → s·y and λ → λ/s pose the same problem in other units: z → s·z, P → s·P
    other = replace(plain, alpha=plain.alpha / scale, integrals=(replace(term, targets=scale * term.targets),))
    a, b = (solve(o, solver=solver, tol=TOL) for o in (plain, other))
    assert b.converged
    assert b.objective / scale == pytest.approx(a.objective, rel=2 * TOL)


# ---------------------------------------------------------------------------------------------- good manners
def test_two_solves_are_the_same_to_the_last_bit(solver: Any) -> None:
    for case in (QUANTILE, LEVEL_SET):
        a, b = (solve(case.objective(), solver=solver, tol=TOL) for _ in range(2))
        np.testing.assert_array_equal(a.z, b.z)
        np.testing.assert_array_equal(a.history, b.history)
        assert (a.objective, a.dual, a.n_iter, a.message) == (b.objective, b.dual, b.n_iter, b.message)


def test_silence_is_the_default(solver: Any, capsys: pytest.CaptureFixture[str]) -> None:
    solve(QUANTILE.objective(), solver=solver)
    assert capsys.readouterr() == ("", "")


def test_verbose_writes_a_table_to_standard_error(solver: Any, capsys: pytest.CaptureFixture[str]) -> None:
    found = solve(QUANTILE.objective(), solver=solver, verbose=2)
    out, err = capsys.readouterr()
    assert out == ""
    header, *lines = err.splitlines()
    assert header.split() == ["evaluations", "objective", "gap", "seconds", "left", "step"]
    assert len(lines) == found.n_evaluations + 1
    assert lines[-1].endswith("done")
    counts = [int(line.split()[0]) for line in lines]
    assert counts == [*range(1, found.n_evaluations + 1), found.n_evaluations]
    objectives = [float(line.split()[1]) for line in lines]
    assert objectives == sorted(objectives, reverse=True)
    assert float(lines[-1].split()[2]) == pytest.approx(found.gap, rel=0.1)


def test_a_little_verbose_is_less(solver: Any, capsys: pytest.CaptureFixture[str]) -> None:
    found = solve(QUANTILE.objective(), solver=solver, verbose=1)
    lines = capsys.readouterr().err.splitlines()
    assert 3 <= len(lines) < found.n_evaluations


@pytest.mark.quick("quantile")
@pytest.mark.parametrize(
    "case",
    [QUANTILE, LEVEL_SET],
    ids=repr,
)
def test_nothing_as_large_as_rows_times_nodes_is_stored(case: Case) -> None:
    n, m = 8_000, 200
    # each thread holds a block: small ones, so that the number of cores does not decide
    objective = replace(replace(case, options=case.options | {"n_nodes": m}).objective(n=n), block_entries=2_048)
    tracemalloc.start()
    try:
        solve(objective, solver="lbfgs", max_iter=3)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < n * m * 8 / 2


class Interrupting(Pinball):
    """The user's patience ends at the given visit."""

    visits = 0

    def sums(self, *args: Any, **kwargs: Any) -> Any:
        type(self).visits += 1
        if self.visits == 6:
            raise KeyboardInterrupt
        return super().sums(*args, **kwargs)


def test_an_interrupt_comes_through(solver: Any) -> None:
    Interrupting.visits = 0
    objective = Case("interrupted", Interrupting()).objective()
    with pytest.raises(KeyboardInterrupt):
        solve(objective, solver=solver)
    assert Interrupting.visits == 6


def test_an_interrupt_comes_through_threads(solver: Any) -> None:
    Interrupting.visits = 0
    objective = replace(Case("interrupted", Interrupting()).objective(n=100), block_entries=12)
    assert len(list(objective.blocks())) > 20
    with pytest.raises(KeyboardInterrupt):
        solve(objective, solver=solver)
    # and the threads are there for the next one
    assert solve(objective, solver=solver, tol=0.1).converged


def test_objective_is_left_as_it_was(case: Case, solver: Any) -> None:
    objective = case.objective()
    before = [np.array(a) for a in (objective.rows, objective.sample_weight, objective.integrals[0].cols)]
    solve(objective, solver=solver)
    for a, b in zip(before, (objective.rows, objective.sample_weight, objective.integrals[0].cols), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_solution_cannot_be_changed() -> None:
    found = solve(EXPECTILE.objective())
    assert isinstance(found, Solution)
    with pytest.raises(AttributeError):
        found.gap = 0.0  # type: ignore[misc]


@pytest.mark.parametrize("name", ["sgd", "", "Newton", "lbfgs ", None, 3])
def test_an_unknown_solver_is_told(name: Any) -> None:
    said = rf"^solver={re.escape(repr(name))} was given; it must be one of 'auto', 'lbfgs', 'newton'\.$"
    with pytest.raises(ValueError, match=said):
        solve(QUANTILE.objective(), solver=name)


def test_a_perfect_fit_is_measured_against_the_floor() -> None:
    objective = QUANTILE.objective(y=np.zeros(25))
    z = np.full(objective.size, 1e-8)
    ledger = Ledger(objective, tol=TOL, max_iter=10)
    assert ledger.certificate.floor == 0.0
    at = ledger.evaluate(z, Smoothing((1.0,)))
    gap = at.primal - ledger.certificate.dual
    assert 0.0 < gap < 1e-6
    assert ledger.certificate.gap == pytest.approx(gap / at.primal)
    assert not ledger.converged
    ledger.certificate.floor = 1.0
    assert ledger.certificate.gap == pytest.approx(gap)
    assert ledger.converged


def test_an_evaluation_that_is_not_finite_is_not_entered() -> None:
    objective = QUANTILE.objective()
    ledger = Ledger(objective, tol=TOL, max_iter=10)
    with np.errstate(all="ignore"):
        ledger.evaluate(np.full(objective.size, np.nan), Smoothing((0.3,)))
    assert ledger.n_evaluations == 1
    assert not ledger.history
    assert not ledger.converged


class Line:
    """A ledger of a convex function of one number, steep for a moment and then nearly flat up to its minimum at 4."""

    exhausted = False

    def evaluate(self, z: Floats, smoothing: Smoothing, label: str = "") -> Evaluation:
        t = float(z[0])
        assert np.isfinite(t), "the search left the line"
        slope = -1.0 if t <= 0.0 else -5e-5 if t < 4.0 else 1.0
        smoothed = -5e-5 * t if t < 4.0 else t - 4.0 - 2e-4
        return Evaluation(smoothed, smoothed, np.array([slope]), smoothed, (0.0,), z, 0.0)


def test_line_search_takes_what_it_can_get() -> None:
    ledger: Any = Line()
    z, smoothing = np.zeros(1), Smoothing((1.0,))
    here = ledger.evaluate(z, smoothing)
    step, fresh = _lbfgs.line_search(ledger, z, smoothing, here, np.ones(1), "")
    assert step > 0.0
    assert fresh is not None
    assert fresh.smoothed < here.smoothed
