"""Checks of a row of the table of your own, and what checks find."""

from __future__ import annotations

import math
from typing import Any

from infinitask._base.arrays import Array, namespace
from infinitask.losses._base import Finding, Row, as_entry

ENDS = ("low", "soft_low"), ("high", "soft_high")
"""The ends of the interval of slopes, and the softness on the same side."""


def check_row(name: str, row: Any, theta: Array, y: Array | None, *, smooth: bool) -> Finding | None:
    """An error unless entries broadcast, the interval contains 0, nothing is negative, and the loss is finite.

    ``smooth``: whether the loss calls itself so; a kink is then a finding.
    """
    if not isinstance(row, Row):
        raise TypeError(f"{name}.row returned {named(row)}; it must return a Row, such as Row(theta - 1.0, theta).")
    # without targets a row cannot know n
    xp, m, n = namespace(theta), theta.shape[0], 1 if y is None else y.shape[0]
    entries: dict[str, Any] = row._asdict()
    for entry_name, entry in entries.items():
        if entry is None:
            continue
        if not isinstance(entry, (int, float)) and not hasattr(entry, "shape"):
            raise TypeError(
                f"{name}.row gave a {entry_name} of type {type(entry).__name__}; it must be a number, an array of the "
                "library of theta, or None."
            )
        shape = tuple(getattr(entry, "shape", ()))
        if any(size not in (1, full) for size, full in zip(shape[::-1], (m, n), strict=False)) or len(shape) > 2:
            of_sample = "" if y is None else f", ({n}, 1) for one value per sample, or ({n}, {m})"
            raise ValueError(
                f"{name}.row gave a {entry_name} of shape {shape} for {m} tasks"
                f"{'' if y is None else f' and {n} samples'}; expected a number, ({m},) for one value per task"
                f"{of_sample}."
            )
        sign, values = -1.0 if entry_name == "low" else 1.0, as_entry(entry, theta)
        if bool(xp.any(xp.isnan(values))):
            raise ValueError(
                f"{name}.row gave a {entry_name} that is NaN somewhere; it must be a number at every θ and y. Look for "
                "a division by 0, or for θ outside the domain of the loss."
            )
        if not bool(xp.all(sign * values >= 0.0)):
            raise ValueError(
                f"{name}.row gave a {entry_name} that is {'above' if sign < 0 else 'below'} 0 somewhere; the interval "
                "of slopes must contain 0 (low ≤ 0 ≤ high), dead zone and softness be at least 0."
            )
    for end, soft in ENDS:
        if bool(xp.any((_length(entries[end], theta) == math.inf) & (as_entry(entries[soft], theta) == 0.0))):
            raise ValueError(
                f"{name}.row gave no finite {end} and no {soft}; the loss is then infinite wherever y and h differ. "
                f"Give a finite {end}, or a {soft} above 0."
            )
    for end, soft in ENDS if smooth else ():
        if bool(xp.any((_length(entries[end], theta) > 0.0) & (as_entry(entries[soft], theta) == 0.0))):
            return kinked(name, f"its row has a slope without softness ({soft} is 0), which is a kink")
    return None


def _length(end: Any, like: Array) -> Array:
    """How far an interval of slopes reaches to one side: None is ∞."""
    return as_entry(math.inf if end is None else abs(as_entry(end, like)), like)


def named(value: Any) -> str:
    """What a method returned instead of an array, in words."""
    return "None" if value is None else f"a {type(value).__name__}"


def kinked(name: str, found: str) -> Finding:
    """The finding that a loss has a kink, and says that it has none."""
    return Finding(
        f"{name} says that it needs no smoothing, but {found}; a solver that trusts it gets stuck there. Leave out "
        "`smooth_scale`, or the method `smooth`: the kink is then smoothed at first, and not at the end.",
        certified=True,
    )
