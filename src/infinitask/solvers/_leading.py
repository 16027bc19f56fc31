"""Splitting in the leading directions of the rows: a start for problems whose targets have two values.

With two targets, most losses have their kink at the same value of h, and h is near it for most rows: with one positive
in fifty, h = −1 for nearly all. L-BFGS then takes 100 to 300 evaluations at any λ, and splitting, which handles kinks
exactly, less than half of the time. The ridge dominates most directions of the rows, and those that it does not are
few. Splitting solves the problem in these to ten times the tolerance; L-BFGS adds the other directions, starting from
that dual point, in 20 to 60 evaluations.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from infinitask.objective import Objective
from infinitask.solvers._base import Ledger, Solution, Start
from infinitask.solvers._basis import Eigenbasis
from infinitask.solvers._splitting_run import by_splitting


def by_leading_directions(objective: Objective, ledger: Ledger, start: Start | None) -> tuple[Solution, Start | None]:
    """Solve the problem for C = U C′, with the leading eigenvectors U; return a start for all of C."""
    leading = Eigenbasis.of(objective).leading()
    left = ledger.max_iter - 2  # the evaluations at the start and at the end are not those of splitting
    if leading is None or leading[0].size == objective.shape[0] or left < 1:
        return by_splitting(objective, ledger, start)
    U, (_, s) = leading[1], objective.shape
    ledger.begin(objective.widest)
    if U.size == 0:  # the ridge dominates all
        return replace(ledger.solution(), smoothing=objective.widest), start
    thin = objective.rotated(U, np.eye(s), None)
    # a smaller gap takes as long as it saves L-BFGS
    found, near = by_splitting(thin, Ledger(thin, 10.0 * ledger.tol, left, ledger.verbose), None)
    z = np.ravel(U @ found.z.reshape(-1, s))
    ledger.n_evaluations += found.n_iter
    ledger.n_iter = found.n_iter
    ledger.evaluate(z, near.smoothing, "leading directions")
    return replace(ledger.solution(), smoothing=near.smoothing), Start(z, near.smoothing, ledger.certificate.floor)
