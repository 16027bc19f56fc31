"""What an engine is: one way to the solution of an objective, and what it needs of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from infinitask.objective import Objective
from infinitask.solvers._base import Ledger, Solution, Start
from infinitask.solvers._basis import Eigenbasis


class Given(NamedTuple):
    """What a caller of :func:`~infinitask.solvers.solve` knows beside the objective."""

    start: Start | None = None
    """The end of a similar problem, or where the engine before stopped."""
    basis: Eigenbasis | None = None


NOTHING = Given()


class Engine(ABC):
    """One way to the solution.

    :func:`~infinitask.solvers.solve` walks a list of engines. It runs those whose needs the objective meets and that
    are expected to cost no more than the last one, until the gap is reached. They share a ledger, and each begins where
    the one before stopped.
    """

    needs: tuple[str, ...] = ()
    """Properties of ``Objective`` that must hold."""

    def worthwhile(self, objective: Objective, given: Given = NOTHING, most: float = np.inf) -> bool:
        """Whether the objective meets all needs, and the engine is expected to take at most ``most`` evaluations."""
        if not all(getattr(objective, need) for need in self.needs):
            return False
        cost = self.cost(objective, given)
        return cost < np.inf and cost <= most

    @abstractmethod
    def cost(self, objective: Objective, given: Given) -> float:
        """About how many evaluations of the objective it takes; ∞: it should not be tried."""

    @abstractmethod
    def run(self, objective: Objective, ledger: Ledger, given: Given) -> tuple[Solution, Start]:
        """The best point it finds, and where to go on if that is not good enough."""
