"""The duals as quadratic programs, for PIQP and, through cvxpy, Clarabel and OSQP.

With v = n u for one level, u the dual point, and V = n m U for joint levels (see :mod:`suite.duality`):

    one level    min ½ vᵀ (K/(λn)) v − yᵀv            v ∈ [θ−1, θ]
    joint        min ½ Vᵀ (T ⊗ K/(λnm)) V − (y, …, y)ᵀV    V_j ∈ [θ_j−1, θ_j],  Σ_i V_ij = 0
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import rbf_kernel

from suite.clock import Clock, Measured, one_by_one, repeated
from suite.duality import Bounds, joint_levels, one_level
from suite.problems import CHECKED, LEVELS, Joint, Regression, Small
from suite.scores import quantile_scores

Array = NDArray[np.float64]

LOOSE = 1e-4
"""The tolerance of the loose runs: they end at a relative gap of about 1e-4 to 1e-6, where ours ends too."""


@dataclass(frozen=True)
class QuadraticProgram:
    """min ½ vᵀPv + qᵀv with low ≤ v ≤ high and, where there are rows of A, A v = 0."""

    P: Array
    q: Array
    low: Array
    high: Array
    A: Array | None = None


def piqp_solution(program: QuadraticProgram, loose: bool) -> Array:
    """Solve by PIQP's dense interior point method."""
    import piqp

    solver = piqp.DenseSolver()
    solver.settings.verbose = False
    if loose:
        for name in ("eps_abs", "eps_rel", "eps_duality_gap_abs", "eps_duality_gap_rel"):
            setattr(solver.settings, name, LOOSE)
    b = None if program.A is None else np.zeros(program.A.shape[0])
    solver.setup(program.P, program.q, program.A, b, x_l=program.low, x_u=program.high)
    status = solver.solve()
    if status != piqp.PIQP_SOLVED:
        raise RuntimeError(f"PIQP ended with {status}.")
    return np.asarray(solver.result.x)


def cvxpy_solution(program: QuadraticProgram, loose: bool, solver: str) -> Array:
    """Solve by a solver behind cvxpy; stating the program is part of the time."""
    import cvxpy as cp

    v = cp.Variable(program.q.size)
    constraints = [v >= program.low, v <= program.high]
    if program.A is not None:
        constraints.append(program.A @ v == 0)
    objective = cp.Minimize(0.5 * cp.quad_form(v, cp.psd_wrap(program.P)) + program.q @ v)
    options: dict[str, Any] = {}
    if loose and solver == "CLARABEL":
        options = {"tol_gap_abs": LOOSE, "tol_gap_rel": LOOSE, "tol_feas": LOOSE}
    elif solver == "OSQP":
        options = {"max_iter": 100_000}
    problem = cp.Problem(objective, constraints)
    problem.solve(solver=solver, **options)
    if v.value is None:
        raise RuntimeError(f"{solver} ended with {problem.status}.")
    return np.asarray(v.value)


SOLVERS = {
    "PIQP": piqp_solution,
    "Clarabel": partial(cvxpy_solution, solver="CLARABEL"),
    "OSQP": partial(cvxpy_solution, solver="OSQP"),
}


def level_program(K: Array, y: Array, level: float, alpha: float, *, free: bool = False) -> QuadraticProgram:
    """The dual of one level, without a bias or with a free one."""
    n = y.size
    A = np.ones((1, n)) if free else None
    return QuadraticProgram(K / (alpha * n), -y, np.full(n, level - 1.0), np.full(n, level), A)


def each_level(case: Regression, clock: Clock, solver: str, loose: bool) -> Measured:
    """Level by level, with y shifted by its sample quantile, as in liquidSVM."""
    X, y, X_test, y_test = case.data
    started = time.perf_counter()
    K, K_test = rbf_kernel(X, gamma=case.gamma), rbf_kernel(X_test, X, gamma=case.gamma)
    shared = time.perf_counter() - started

    def solve(level: float) -> tuple[Array, Array]:
        q = np.quantile(y, level)
        v = SOLVERS[solver](level_program(K, y - q, level, case.alpha), loose)
        return v, K_test @ v / (case.alpha * y.size) + q

    order = [*CHECKED, *np.setdiff1d(LEVELS, CHECKED).tolist()]
    answers = one_by_one(solve, order, len(CHECKED), clock, shared=shared, fork=True)
    bounds = [
        one_level(K, y - np.quantile(y, level), v, level, case.alpha)
        for level, (v, _) in answers.results.items()
        if level in CHECKED
    ]
    metrics = quantile_scores({level: curve for level, (_, curve) in answers.results.items()}, y_test)
    return answers.measured(**metrics, **certificate(bounds, len(CHECKED)))


def certificate(bounds: list[Bounds], wanted: int) -> dict[str, float]:
    """The largest gap and, if all requested levels were solved, the mean objective."""
    found = {"gap": max(b.gap for b in bounds)}
    return found if len(bounds) < wanted else found | {"objective": float(np.mean([b.primal for b in bounds]))}


def joint_program(K: Array, T: Array, y: Array, levels: Array, alpha: float) -> QuadraticProgram:
    """The dual of joint levels; level by level in one long vector."""
    n, m = y.size, levels.size
    high = np.repeat(levels, n)
    return QuadraticProgram(
        np.kron(T, K) / (alpha * n * m), -np.tile(y, m), high - 1.0, high, np.kron(np.eye(m), np.ones((1, n)))
    )


def joint(case: Joint, clock: Clock, solver: str, loose: bool) -> Measured:
    """All levels in one program."""
    X, y, X_test, y_test = case.data
    levels = np.asarray(case.quantiles)
    T = rbf_kernel(levels[:, None], gamma=case.task_gamma)

    def answer() -> tuple[Bounds, Array]:
        K = rbf_kernel(X, gamma=case.gamma)
        program = joint_program(K, T, y, levels, case.alpha)
        V = SOLVERS[solver](program, loose).reshape(levels.size, y.size).T
        bounds, b = joint_levels(K, T, y, V, levels, case.alpha)
        return bounds, rbf_kernel(X_test, X, gamma=case.gamma) @ V @ T / (case.alpha * V.size) + b

    raw, (bounds, curves) = repeated(answer, clock)
    predicted = dict(zip(case.quantiles, curves.T, strict=True))
    metrics = quantile_scores(predicted, y_test) | {"objective": bounds.primal, "gap": bounds.gap}
    return Measured(float(np.median(raw)), raw, metrics=metrics)


def small(case: Small, clock: Clock) -> Measured:
    """The levels one by one by PIQP, from the kernel matrix on, for every data set and λ; the seconds of the median."""
    found = [each_level(regression, clock, "PIQP", loose=False) for regression in case.regressions()]
    return summary(found)


def summary(found: list[Measured]) -> Measured:
    """The median, the quantile 0.9 and the largest of many small answers."""
    raw = [one.seconds for one in found]
    metrics = {
        "quantile 0.9": float(np.quantile(raw, 0.9)),
        "largest": max(raw),
        "gap": max(one.metrics["gap"] for one in found),
    }
    return Measured(float(np.median(raw)), raw, len(raw), len(raw), metrics)
