"""Splitting in the leading directions of the rows: a start for problems whose targets have two values.

With two targets, most losses have their kink at the same value of h, and h is near it for most rows: with one positive
in fifty, h = −1 for nearly all. L-BFGS then takes 100 to 300 evaluations at any λ, and splitting, which handles kinks
exactly, less than half of the time. The ridge dominates most directions of the rows, and those that it does not are
few. Splitting solves the problem in these to ten times the tolerance. In the others C is nearly that of the dual point,
and L-BFGS needs 20 to 60 evaluations from there.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from infinitask._base.arrays import HostArray
from infinitask.objective import Objective
from infinitask.solvers._base import Ledger, Solution, Start
from infinitask.solvers._basis import Eigenbasis
from infinitask.solvers._splitting_run import by_splitting


def by_leading_directions(objective: Objective, ledger: Ledger, start: Start | None) -> tuple[Solution, Start | None]:
    """Solve the problem for C = U C′, with the leading eigenvectors U; return a start for all of C."""
    leading = Eigenbasis.of(objective).leading()
    left = ledger.max_iter - 3  # the evaluations at the start and at the end are not those of splitting
    if left < 1 or (leading is not None and float(np.max(leading[0])) <= 0.0):  # or there are no directions
        return replace(ledger.solution(), smoothing=objective.widest), start
    if leading is None or leading[0].size == objective.shape[0]:
        return by_splitting(objective, ledger, start)
    U, (_, s) = leading[1], objective.shape
    ledger.begin(objective.widest)
    thin = objective.rotated(U, np.eye(s), None)
    inner = Ledger(thin, 10.0 * ledger.tol, left)  # a smaller gap takes as long as it saves L-BFGS
    try:
        found, near = by_splitting(thin, inner, None)
    except KeyboardInterrupt:
        best = inner.certificate
        ledger.take(_lifted(U, best.z, s), best.primal, -np.inf, inner.n_evaluations, "leading directions")
        raise
    z = _lifted(U, found.z, s)
    ledger.n_evaluations += found.n_iter
    ledger.n_iter = found.n_iter
    here = ledger.evaluate(z, near.smoothing, "leading directions")
    # where the ridge dominates, C is nearly that of the dual point
    dual = here.dual_z.reshape(-1, s)
    z = z + np.ravel(dual - U @ (U.T @ dual))
    ledger.evaluate(z, near.smoothing, "all directions")
    return replace(ledger.solution(), smoothing=near.smoothing), Start(z, near.smoothing, ledger.certificate.floor)


def _lifted(U: HostArray, z: HostArray, s: int) -> HostArray:
    """C = U C′ as unknowns."""
    return np.ravel(U @ z.reshape(-1, s))
