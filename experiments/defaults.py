"""What the studies of the defaults share. Each study is a module of its own, and ``defaults`` runs all or some of them.

The studies ask what a user gets who sets nothing: ``InfiniteQuantileRegressor().fit(X, y)`` on data in their own units.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from .tuned import Values

__all__ = ["PARTS", "REVISION", "geometric_mean", "measured", "shares_below", "within"]

PARTS = ("tables", "laws", "units", "rare", "outlier")
"""The studies, in the order in which they are run; the experiment of a part is ``defaults-`` and its name."""

REVISION = 1
"""Revision of our models as far as these studies see it, raised with every change of the defaults or of a self-tuned
model. It is part of their units: older records are then not used, while the records of the peers stay valid."""

T = TypeVar("T")


def measured(call: Callable[[], T]) -> tuple[T, float, list[str]]:
    """What the call returns, its wall-clock seconds, and the warnings that a user would see, each once."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        start = time.perf_counter()
        result = call()
        seconds = time.perf_counter() - start
    return result, round(seconds, 4), list(dict.fromkeys(f"{w.category.__name__}: {w.message}" for w in seen))


def shares_below(y: Values, h: Values) -> list[float]:
    """The fraction of y (n,) below each column of h (n, q); a tie counts half, as for a y between two atoms."""
    difference = h - y[:, None]
    return [float(share) for share in np.mean((difference > 0.0) + 0.5 * (difference == 0.0), axis=0)]


def within(value: float, band: Sequence[float]) -> bool:
    """Whether a value is in the closed interval; NaN is not."""
    return bool(band[0] <= value <= band[1])


def geometric_mean(values: Sequence[float]) -> float:
    """exp of the mean logarithm; NaN if there are no values."""
    return float(np.exp(np.mean(np.log(values)))) if len(values) else float("nan")
