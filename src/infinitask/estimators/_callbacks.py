"""Callbacks of scikit-learn (from version 1.9 on): a fit reports how far its duality gap has fallen.

A fit is a task with at most :data:`STEPS` subtasks, "gap". Each subtask is the same fraction of the decrease of
log(gap) to log(tol), so a progress bar shows roughly the fraction done. The fit of a self-tuned model has a subtask
"kernel" for each kernel that was tried. A callback cannot stop a fit: the result would have no certificate.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import floor, isfinite, log
from typing import Any

from infinitask._base.events import Event, Solving, Tried, listening

try:
    from sklearn.callback import CallbackSupportMixin as CallbackSupportMixin  # others import it from here
    from sklearn.callback._callback_support import callback_management_context
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """A placeholder: this release of scikit-learn has no callbacks."""


STEPS = 20
"""The maximum number of subtasks of a fit."""


class GapSteps:
    """Report subtasks of a fit: steps of log(gap) from log(1), or from the first gap if that is less, to log(tol)."""

    def __init__(self, estimator: Any, context: Any) -> None:
        self._estimator, self._context = estimator, context
        self._first: float | None = None
        self._done = 0

    def __call__(self, event: Event) -> None:
        """Report the steps that the gap has passed."""
        if not isinstance(event, Solving) or not isfinite(event.gap):
            return
        gap, tol = event.gap, event.tol
        self._first = min(gap, 1.0) if self._first is None else self._first
        way = log(self._first / tol) if self._first > tol else 0.0
        done = 1.0 if gap <= tol or way <= 0.0 else log(self._first / gap) / way
        while self._done < min(floor(STEPS * done), STEPS):
            self._done += 1
            _subtask(self._estimator, self._context, "gap")


@contextmanager
def reported(estimator: Any, X: Any, y: Any, sample_weight: Any, tuning: bool = False, **more: Any) -> Iterator[None]:
    """Report the fit in this context to the callbacks of an estimator, if it has any.

    ``tuning``: report the kernels that were tried, not the steps of the many candidate fits. ``more`` holds further
    arguments of ``fit``; None means that an argument was not given.
    """
    if "_skl_callbacks" not in vars(estimator):
        yield
        return
    metadata = {name: value for name, value in {"sample_weight": sample_weight, **more}.items() if value is not None}
    data = {"X": X, "y": y, "metadata": metadata or None}
    with callback_management_context(estimator):
        context = estimator._init_callback_context(max_subtasks=None if tuning else STEPS)
        context.call_on_fit_task_begin(estimator=estimator, **data)

        def kernels(event: Event) -> None:
            if isinstance(event, Tried):
                _subtask(estimator, context, "kernel")

        with listening(kernels if tuning else GapSteps(estimator, context)):
            yield
        # the estimator is fitted by now, so a callback may score a copy of it
        context.call_on_fit_task_end(estimator=estimator, **data, reconstruction_attributes=dict)


def _subtask(estimator: Any, context: Any, name: str) -> None:
    """Report a subtask that has begun and ended."""
    task = context.subcontext(task_name=name)
    task.call_on_fit_task_begin(estimator=estimator)
    task.call_on_fit_task_end(estimator=estimator)
