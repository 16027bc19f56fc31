"""Solvers: from an objective to a certified solution.

:func:`solve` tries a list of engines in order (:mod:`~infinitask.solvers._solve`). Four of them require some structure
of the objective: splitting for targets of two values, for a small λ and for free levels, and one-class machines. The
last one solves any objective along a path of decreasing smoothing: :mod:`~infinitask.solvers._lbfgs` makes the first,
rough steps and :mod:`~infinitask.solvers._newton` the last, exact ones. All engines share the certificate, the ledger
and the :class:`Solution` of :mod:`~infinitask.solvers._base`. :func:`solve_in_order` adds the constraint that no curve
falls.
"""

from ._base import Reason, Solution
from ._base import Start as Start
from ._basis import Eigenbasis as Eigenbasis
from ._order import solve_in_order as solve_in_order
from ._solve import MAX_SPLIT_PAIRS as MAX_SPLIT_PAIRS
from ._solve import SOLVERS as SOLVERS
from ._solve import solve
from ._solve import suits_levels as suits_levels
from ._splitting import Splitting as Splitting
from ._splitting import State as State
from ._splitting_run import iterate as iterate

__all__ = ["Reason", "Solution", "solve"]
