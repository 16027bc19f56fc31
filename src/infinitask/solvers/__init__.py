"""Solvers: from an objective to a certified solution.

:func:`solve` follows a path of ever less smoothed problems. On it :mod:`~infinitask.solvers._lbfgs` makes the first,
rough steps and :mod:`~infinitask.solvers._newton` the last, exact ones; both see the objective only through values,
gradients and curvatures. What they share is in :mod:`~infinitask.solvers._base`: the certificate and the
:class:`Solution`. :func:`solve_in_order` adds the constraint that no curve falls.
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
