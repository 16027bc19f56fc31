"""Who is told of the progress of a fit, from solvers and comparisons that know nothing of who asked for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol


class Listener(Protocol):
    """What may be told."""

    def gap(self, gap: float, tol: float) -> None:
        """The relative duality gap is this, and that is asked for."""

    def tried(self) -> None:
        """One of the candidates of a self-tuned model was tried."""


_LISTENER: ContextVar[Listener | None] = ContextVar("infinitask_listener", default=None)


def listener() -> Listener | None:
    """Whoever listens to the fit that is going on here."""
    return _LISTENER.get()


@contextmanager
def listening(one: Listener) -> Iterator[None]:
    """Have one told of all that happens inside."""
    token = _LISTENER.set(one)
    try:
        yield
    finally:
        _LISTENER.reset(token)
