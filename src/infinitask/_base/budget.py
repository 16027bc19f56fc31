"""The time that a piece of work may take.

A long run asks its budget at natural points: between two candidates, folds or evaluations of an objective. Nothing is
cut off in the middle of a computation, so no thread and no signal is needed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf


class OutOfTimeError(Exception):
    """The budget of a comparison is used up; the best so far is taken."""


class Budget:
    """A number of seconds of wall-clock time, counted from the creation of the object.

    Parameters
    ----------
    seconds : float
        ∞: no limit.
    keeps_best : bool
        Whether a solver that is interrupted returns the best point so far.

    Examples
    --------
    >>> budget = Budget(60.0)
    >>> budget.over, budget.before(60.0).over
    (False, True)
    """

    def __init__(self, seconds: float = inf, *, keeps_best: bool = False) -> None:
        self.ends = time.monotonic() + seconds
        self.keeps_best = keeps_best

    @property
    def left(self) -> float:
        """The seconds left, possibly negative."""
        return self.ends - time.monotonic()

    @property
    def over(self) -> bool:
        """Whether no time is left."""
        return self.ends < inf and self.left <= 0.0

    def before(self, seconds: float) -> Budget:
        """Return a budget that ends earlier by some seconds, which are reserved for later work."""
        return Budget(self.left - seconds)

    def check(self) -> None:
        """Raise an error if no time is left."""
        if self.over:
            raise OutOfTimeError

    def ended_by(self, interrupt: KeyboardInterrupt) -> None:
        """End the work after an interrupt, or raise it again if it ends the whole fit."""
        if not self.keeps_best:
            raise interrupt
        self.ends = time.monotonic()


_CURRENT: ContextVar[Budget | None] = ContextVar("infinitask_budget", default=None)


def current_budget() -> Budget:
    """Return the budget of the work in this context; without one, there is no limit."""
    return _CURRENT.get() or Budget()


@contextmanager
def within(budget: Budget) -> Iterator[Budget]:
    """Set the budget of the work in this context.

    Examples
    --------
    >>> with within(Budget(0.0)):
    ...     current_budget().over
    True
    >>> current_budget().over
    False
    """
    token = _CURRENT.set(budget)
    try:
        yield budget
    finally:
        _CURRENT.reset(token)
