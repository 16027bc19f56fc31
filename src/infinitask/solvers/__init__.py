"""Solvers: from an objective to a certified solution.

:func:`solve` walks a list of engines (:mod:`~infinitask.solvers._engine`). Three of them need some structure of the
objective: splitting for a small λ, splitting for free levels, and the walk over all one-class machines. The last one
solves any objective. It follows a path of ever less smoothed problems, on which :mod:`~infinitask.solvers._lbfgs` makes
the first, rough steps and :mod:`~infinitask.solvers._newton` the last, exact ones. All engines share the certificate,
the ledger and the :class:`Solution` of :mod:`~infinitask.solvers._base`. :func:`solve_in_order` adds the constraint
that no curve falls.
"""

from ._base import Reason, Solution, Start
from ._basis import Eigenbasis
from ._free_levels import suits_levels
from ._order import solve_in_order
from ._solve import SOLVERS, solve
from ._splitting import Splitting, State

__all__ = [
    "SOLVERS",
    "Eigenbasis",
    "Reason",
    "Solution",
    "Splitting",
    "Start",
    "State",
    "solve",
    "solve_in_order",
    "suits_levels",
]
