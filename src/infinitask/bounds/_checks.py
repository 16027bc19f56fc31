"""Arguments that are numbers."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

__all__ = ["count", "number"]


def count(name: str, value: Any) -> int:
    """``value`` as an integer of at least 1, or an error."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name}={value!r} was given; it must be an integer of at least 1.")
    return int(value)


def number(name: str, value: Any, *, zero: bool = False, below: float = math.inf) -> float:
    """``value`` as a positive (or nonnegative) number below a limit, or an error."""
    known = isinstance(value, Real) and not isinstance(value, bool)
    if not known or not (0.0 <= value < below) or (value == 0.0 and not zero):
        limit = "" if below == math.inf else f" and below {below:g}"
        raise ValueError(
            f"{name}={value!r} was given; it must be a number {'of at least' if zero else 'above'} 0{limit}."
        )
    return float(value)
