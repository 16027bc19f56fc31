"""Events of a long fit, for a progress bar or for a clock that ends a search.

Solvers and comparisons :func:`tell` events. By default there is no listener, and an event costs one lookup;
:func:`listening` sends the events of this thread to a function. ``verbose`` of an estimator prints lines instead and
needs no listener.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class Solving:
    """A solver evaluated the objective: the certified gap so far, and the requested one."""

    evaluations: int
    gap: float
    tol: float


@dataclass(frozen=True)
class Stage:
    """A new stage of the work begins; ``done`` is the fraction of the calibration before it, if it is a part of it."""

    text: str
    done: float | None = None


@dataclass(frozen=True)
class Trying:
    """A candidate is about to be fitted; a listener that raises KeyboardInterrupt ends the comparison."""

    count: int
    total: int | None
    name: str


@dataclass(frozen=True)
class Tried:
    """A candidate was fitted: its loss (infinite: the fit failed), the best so far; ``total`` is None if unknown."""

    count: int
    total: int | None
    name: str
    loss: float
    best: float


@dataclass(frozen=True)
class Chosen:
    """A comparison ended; the selected candidate is fitted next."""

    text: str


@dataclass(frozen=True)
class CutShort:
    """A comparison, or a fit, ended early and continues with the best so far: interrupted, or out of time."""

    text: str
    interrupted: bool = True


Event = Solving | Stage | Trying | Tried | Chosen | CutShort

LISTENER: ContextVar[Callable[[Event], None] | None] = ContextVar("infinitask_listener", default=None)
"""The listener of this thread; events that are slow to create are created only if there is one."""


def tell(event: Event) -> None:
    """Pass an event to the listener, if there is one."""
    listener = LISTENER.get()
    if listener is not None:
        listener(event)


@contextmanager
def listening(listener: Callable[[Event], None]) -> Iterator[None]:
    """Send the events of this thread to a function; an existing listener receives them first.

    Parameters
    ----------
    listener : callable
        Called with each event, often thousands of times per second.

    Examples
    --------
    >>> from infinitask import InfiniteQuantileRegressor
    >>> from infinitask._base.events import Solving, listening
    >>> from infinitask.datasets import make_sine
    >>> X, y = make_sine(40, random_state=0)
    >>> heard = []
    >>> with listening(heard.append):
    ...     model = InfiniteQuantileRegressor(n_nodes=8).fit(X, y)
    >>> all(isinstance(event, Solving) for event in heard), heard[-1].gap <= 1e-4
    (True, True)
    """
    outer = LISTENER.get()

    def both(event: Event) -> None:
        if outer is not None:
            outer(event)
        listener(event)

    token = LISTENER.set(both)
    try:
        yield
    finally:
        LISTENER.reset(token)
