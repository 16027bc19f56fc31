r"""The way from a very smooth problem to the certified solution of the problem itself.

At a point z with slopes of the κ-smoothed losses as dual point, the duality gap of the *non-smooth* problem splits in two:

.. math::

    P(z) - D(u) = \underbrace{\sum \omega w \,(\ell - \text{lower bound at } u)}_{\text{slack: due to } \kappa}
                + \underbrace{\tfrac{1}{2} \|\nabla P_\kappa(z)\|^2_{\Lambda^{-1}}}_{\text{optimisation error}} .

Steps at the same κ remove the second part, a smaller κ the first. So: step until the second is below the first, then shrink the
κ of every integral whose slack is above its share of the tolerance, and so on until the gap is reached.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from infinitask._array import namespace, to_host
from infinitask.objective import Evaluation, Objective
from infinitask.solvers.base import Ledger, Solution
from infinitask.solvers.basis import Eigenbasis
from infinitask.solvers.lbfgs import lbfgs_stage
from infinitask.solvers.newton import NewtonSystem, newton_stage, predict

__all__ = ["SOLVERS", "SolverName", "solve"]

SolverName: TypeAlias = Literal["auto", "lbfgs", "newton"]
SOLVERS: tuple[SolverName, ...] = ("auto", "lbfgs", "newton")

PATIENCE = 60
"""Evaluations of L-BFGS at one level of smoothing after which Newton takes over."""

SHRINK_MOST, SHRINK_LEAST = 0.1, 0.5
"""The range of the factor by which κ shrinks. Smaller steps cost stages, larger ones leave Newton's region."""


def natural_scale(objective: Objective) -> float:
    """The size of what the losses look at: spread of the targets, or of the field where there are none."""
    first = objective.integrals[0]
    xp = namespace(objective.rows)
    if first.targets is not None:
        y = first.targets[:, 0]
        centre = objective.sample_weight @ y
        for centred in (y - centre, y):
            scale = float(objective.sample_weight @ xp.abs(centred))
            if scale > 0.0:
                return scale
        return 1.0
    mean = objective.rows.T @ objective.sample_weight
    field = (objective.rows @ mean)[:, None] * (first.cols @ (first.cols.T @ first.weights))[None, :]
    scale = float(xp.mean(xp.abs(field))) / objective.alpha
    return scale if scale > 0.0 else 1.0


def solve(
    objective: Objective,
    *,
    solver: SolverName = "auto",
    tol: float = 1e-4,
    max_iter: int = 10_000,
    verbose: int = 0,
    start: np.ndarray | None = None,
) -> Solution:
    """Minimise P to a relative duality gap of ``tol``.

    Parameters
    ----------
    objective : Objective
    solver : {"auto", "lbfgs", "newton"}
        "auto" starts with L-BFGS and lets Newton finish where L-BFGS is slow.
    tol : float
    max_iter : int
        The most evaluations of the objective.
    verbose : int
    start : ndarray (size,), optional
        Where to start.

    Returns
    -------
    Solution
    """
    basis = Eigenbasis.of(objective)
    rotated = basis.objective
    scale = natural_scale(objective)
    kappa = tuple(
        0.0 if t.loss.smooth else 0.1 * scale * _relative_size(objective, k) for k, t in enumerate(objective.integrals)
    )
    z = np.zeros(objective.size)
    at_zero = objective.evaluate(z, kappa)
    ledger = Ledger(rotated, tol, max_iter, floor=1e-9 * max(abs(at_zero.primal), 1e-3 * scale), verbose=verbose)
    system = NewtonSystem(rotated)
    newton = solver == "newton"
    stalled: str | None = None
    failures = 0
    while not ledger.done:
        diagonal = basis.curvature_diagonal(z, kappa)

        def enough(evaluation: Evaluation) -> bool:
            error = ledger.optimisation_error(evaluation)
            return error <= max(0.3 * sum(evaluation.slack), 0.2 * tol * ledger.certificate.scale)

        if not newton:
            z = lbfgs_stage(ledger, z, kappa, diagonal, enough, PATIENCE if solver == "auto" else ledger.max_iter)
            here = ledger.evaluate(z, kappa)
            if not (ledger.done or enough(here)):
                if solver == "lbfgs":
                    stalled = "L-BFGS made no further progress"
                    break
                newton = True
                continue
        else:
            z, fine = newton_stage(ledger, system, z, kappa, diagonal, enough, max_steps=60)
            here = ledger.evaluate(z, kappa)
            if not (fine or ledger.done):
                failures += 1
                if failures > 2:
                    stalled = "Newton's method made no further progress"
                    break
        if ledger.done:
            break
        shrunk = _shrink(kappa, here, tol * ledger.certificate.scale)
        if shrunk == kappa and enough(here):
            stalled = "Smoothing and steps are exhausted"
            break
        if newton and shrunk != kappa:
            ratio = np.array([1.0 if k == 0.0 else new / k for new, k in zip(shrunk, kappa, strict=True)])
            guess = predict(system, z, system.active(z, kappa), here.gradient, ratio)
            if guess is not None and ledger.evaluate(guess, shrunk).smoothed < ledger.evaluate(z, shrunk).smoothed:
                z = guess
        kappa = shrunk
    solution = ledger.solution(stalled)
    return _in_original_unknowns(solution, basis)


def _relative_size(objective: Objective, k: int) -> float:
    """How large what integral k looks at is, relative to the first one (a derivative is larger for a narrow kernel)."""

    def size(index: int) -> float:
        term = objective.integrals[index]
        cols, weights = to_host(term.cols), to_host(term.weights)
        return float(np.sqrt(weights @ np.sum(cols**2, axis=1)))

    first = size(0)
    return size(k) / first if first > 0.0 and size(k) > 0.0 else 1.0


def _shrink(kappa: tuple[float, ...], here: Evaluation, gap: float) -> tuple[float, ...]:
    """κ of each integral for the next stage, given the absolute gap asked for."""
    share = 0.5 * gap / len(kappa)
    fresh = []
    for k, slack in zip(kappa, here.slack, strict=True):
        if k == 0.0 or slack <= share:
            fresh.append(k)
        else:
            fresh.append(k * min(SHRINK_LEAST, max(SHRINK_MOST, 0.7 * share / slack)))
    return tuple(fresh)


def _in_original_unknowns(solution: Solution, basis: Eigenbasis) -> Solution:
    from dataclasses import replace

    return replace(solution, z=basis.back(solution.z))
