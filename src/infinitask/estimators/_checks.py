"""What the estimators are given, checked: numbers, tasks, magnitudes."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np

from infinitask._array import HostArray
from infinitask.measures import Measure

__all__ = ["LARGEST", "check_magnitude", "check_number", "parse_tasks"]

LARGEST = 1e100
"""Magnitudes beyond this overflow when squared and summed; below its inverse they vanish."""


def check_number(name: str, value: Any, *, low: float, high: float = np.inf, open_low: bool = True) -> float:
    """``value`` as a float in the interval, or an error that says what is expected."""
    inside = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value) and value <= high
    if not (inside and (value > low if open_low else value >= low)):
        bound = f"{'above' if open_low else 'at least'} {low:g}" + ("" if high == np.inf else f" and at most {high:g}")
        raise ValueError(f"{name}={value!r} was given; it must be a finite number {bound}.")
    return float(value)


def parse_tasks(theta: Any, name: str, measure: Measure) -> tuple[HostArray, bool]:
    """θ as (q, d) inside the support of the measure, and whether it was a single task without a list around it."""
    d = measure.dim
    try:
        tasks = np.asarray(theta, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name}={theta!r} was given; it must be a number or an array of numbers.") from None
    single = tasks.ndim == (0 if d == 1 else 1)
    if d == 1:
        fits = tasks.ndim <= 1 or (tasks.ndim == 2 and tasks.shape[1] == 1)
        expected = "a number or an array of shape (q,)"
    else:
        fits = tasks.ndim in (1, 2) and tasks.shape[-1] == d
        expected = f"an array of shape ({d},) or (q, {d})"
    if not fits or tasks.size == 0:
        raise ValueError(f"{name} of shape {tasks.shape} was given; it must be {expected}, and not empty.")
    tasks = tasks.reshape(-1, d)
    inside = np.all(np.isfinite(tasks), axis=1) & measure.contains(tasks)
    if not np.all(inside):
        low, high = measure.support
        where = ", ".join(f"[{a:g}, {b:g}]" for a, b in zip(np.ravel(low), np.ravel(high), strict=True))
        wrong = tasks[~inside][0]
        raise ValueError(
            f"{name} contains {wrong[0] if d == 1 else tuple(wrong.tolist())}, outside Θ = {where} on which the model "
            "is trained. Ask for a value inside, or fit with a measure that covers it."
        )
    return tasks, single


def check_magnitude(name: str, values: HostArray, smallest: float = 1.0 / LARGEST) -> None:
    """Refuse values whose squares leave the range of floating point."""
    size = float(np.max(np.abs(values)))
    if size > LARGEST or 0.0 < size < smallest:
        raise ValueError(
            f"{name} holds values of magnitude {size:.1e}; beyond 1e±100 sums of squares leave the range of "
            f"floating point. Rescale {name}, for instance with StandardScaler."
        )
