"""Solvers: from an objective to a certified solution.

:func:`solve` follows a path of ever less smoothed problems. On it :mod:`~infinitask.solvers.lbfgs` makes the first,
rough steps and :mod:`~infinitask.solvers.newton` the last, exact ones; both see the objective only through values,
gradients and curvatures. What they share is in :mod:`~infinitask.solvers.base`: the certificate and the
:class:`Solution`. :func:`solve_in_order` adds the constraint that no curve falls.
"""

from .base import Reason, Solution, Start
from .basis import Eigenbasis
from .continuation import SOLVERS, solve
from .free_levels import suits_levels
from .order import solve_in_order
from .splitting import Splitting, State

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
