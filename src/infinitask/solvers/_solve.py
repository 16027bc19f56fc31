"""The list of engines, and the walk over it."""

from __future__ import annotations

from infinitask.objective import Objective
from infinitask.solvers._base import Ledger, Solution, Start, aim_at
from infinitask.solvers._basis import Eigenbasis
from infinitask.solvers._continuation import Continuation
from infinitask.solvers._engine import Engine, Given
from infinitask.solvers._free_levels import FreeLevels
from infinitask.solvers._level_sets import OneClassWalk
from infinitask.solvers._small_ridge import SmallRidge

SOLVERS = ("auto", "lbfgs", "newton")

ENGINES: tuple[Engine, ...] = (SmallRidge(), FreeLevels(), OneClassWalk())
"""Engines for objectives of some structure. The last one, :class:`Continuation`, solves any objective."""


def solve(
    objective: Objective,
    *,
    solver: str = "auto",
    tol: float = 1e-4,
    max_iter: int = 10_000,
    verbose: int = 0,
    start: Start | None = None,
    basis: Eigenbasis | None = None,
) -> Solution:
    """Minimise P to a relative duality gap of ``tol``.

    Parameters
    ----------
    objective : Objective
        One whose rows are in parts needs a ``basis`` and takes L-BFGS.
    solver : {"auto", "lbfgs", "newton"}
        "auto" starts with L-BFGS and lets Newton finish where L-BFGS is slow; for a small λ it starts with splitting.
    tol : float
        From 1e-6 down to 1e-9 the aim is a hundredth of it on small problems, where that is cheap.
    max_iter : int
        The most evaluations of the objective.
    verbose : int
    start : Start or None
        The end of the way of a problem that is close to this one; None: from 0.
    basis : Eigenbasis or None
        Of this objective; None: it is computed.

    Returns
    -------
    Solution
    """
    if solver not in SOLVERS:
        raise ValueError(f"solver={solver!r} was given; it must be one of {', '.join(map(repr, SOLVERS))}.")
    ledger = Ledger(objective, tol, max_iter, verbose=verbose, aim=aim_at(objective, tol))
    given = Given(start, basis)
    if objective.elsewhere is not None:
        return Continuation("lbfgs").run(objective, ledger, given)[0]
    last = Continuation(solver)
    # one evaluation is a look at the start
    for engine in (*ENGINES, last) if solver == "auto" and max_iter > 1 else (last,):
        if engine is not last and not engine.worthwhile(objective, given, last.cost(objective, given)):
            continue
        found, start = engine.run(objective, ledger, given)
        if ledger.converged or ledger.exhausted:
            break
        given = given._replace(start=start)
    return found
