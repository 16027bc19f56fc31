"""Callbacks of scikit-learn, from its release 1.9 on: a fit tells them how far its gap has fallen.

A fit is a task with at most :data:`STEPS` subtasks, "gap". Each stands for the same share of the way of log(gap) down
to log(tol), so that a progress bar shows about how much is done. The fit of a self-tuned model has a subtask "kernel"
for each kernel that was tried. A callback that asks a fit to stop is not obeyed: what would be left has no certificate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from math import floor, isfinite, log
from typing import Any, TypeVar, cast

from infinitask._base.events import Event, Solving, Tried, listening

try:
    from sklearn.callback import CallbackSupportMixin as CallbackSupportMixin  # others import it from here
    from sklearn.callback._callback_support import callback_management_context
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing: this release of scikit-learn has no callbacks."""

    callback_management_context = None

STEPS = 20
"""Subtasks of a fit."""

_Fit = TypeVar("_Fit", bound=Callable[..., Any])


class GapSteps:
    """Subtasks of a fit: shares of the way of log(gap) from 1, or where it began if that is less, to log(tol)."""

    def __init__(self, estimator: Any, context: Any) -> None:
        self._estimator, self._context = estimator, context
        self._first: float | None = None
        self._done = 0

    def __call__(self, event: Event) -> None:
        """The gap has changed."""
        if not isinstance(event, Solving) or not isfinite(event.gap):
            return
        gap, tol = event.gap, event.tol
        self._first = min(gap, 1.0) if self._first is None else self._first
        way = log(self._first / tol) if self._first > tol else 0.0
        share = 1.0 if gap <= tol or way <= 0.0 else log(self._first / gap) / way
        while self._done < min(floor(STEPS * share), STEPS):
            self._done += 1
            _subtask(self._estimator, self._context, "gap")


class Candidates:
    """Subtasks of the fit of a self-tuned model: kernels that were tried."""

    def __init__(self, estimator: Any, context: Any) -> None:
        self._estimator, self._context = estimator, context

    def __call__(self, event: Event) -> None:
        """A kernel was tried; fits of candidates are many, and are not told."""
        if isinstance(event, Tried):
            _subtask(self._estimator, self._context, "kernel")


@contextmanager
def callbacks_told(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    by: type[GapSteps] | type[Candidates] = GapSteps,
    **more: Any,
) -> Iterator[None]:
    """Tell the callbacks of an estimator of the fit inside; nothing, where it has none.

    ``more`` is what else the fit was given; what is None was not.
    """
    if callback_management_context is None or not hasattr(estimator, "_skl_callbacks"):
        yield
        return
    metadata = {name: value for name, value in {"sample_weight": sample_weight, **more}.items() if value is not None}
    data = {"X": X, "y": y, "metadata": metadata or None}
    with callback_management_context(estimator):
        context = estimator._init_callback_context(max_subtasks=STEPS if by is GapSteps else None)
        context.call_on_fit_task_begin(estimator=estimator, **data)
        with listening(by(estimator, context)):
            yield
        # the estimator is fitted by now: a copy of it can be judged
        context.call_on_fit_task_end(estimator=estimator, **data, reconstruction_attributes=dict)


def tells_callbacks(fit: _Fit) -> _Fit:
    """A ``fit`` of a self-tuned model that tells callbacks of the kernels it tries."""

    @wraps(fit)
    def told(self: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        with callbacks_told(self, X, y, sample_weight, by=Candidates):
            return fit(self, X, y, sample_weight)

    return cast(_Fit, told)


def _subtask(estimator: Any, context: Any, name: str) -> None:
    """A subtask that has begun and ended."""
    task = context.subcontext(task_name=name)
    task.call_on_fit_task_begin(estimator=estimator)
    task.call_on_fit_task_end(estimator=estimator)
