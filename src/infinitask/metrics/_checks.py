"""Arguments of the metrics as arrays."""

from __future__ import annotations

from numbers import Real
from reprlib import Repr
from typing import Any

import numpy as np

from infinitask._array import HostArray

__all__ = ["averaged", "finite", "intervals", "levels_of", "normalised", "numbers", "prediction", "share", "targets"]

AXES = {1: "one-dimensional", 2: "two-dimensional"}

SHORT = Repr()
SHORT.maxlist = SHORT.maxtuple = SHORT.maxarray = 4
SHORT.maxother = 60


def numbers(name: str, values: Any) -> HostArray:
    """``values`` as an array of numbers of any shape, or an error that shows them."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name}={SHORT.repr(values)} was given; it must be an array of numbers.") from None


def finite(name: str, values: Any, ndim: int) -> HostArray:
    """``values`` as finite numbers with so many axes, or an error."""
    array = _shaped(name, values, ndim)
    if not np.all(np.isfinite(array)):
        raise ValueError(f"{name} contains NaN or infinity; remove or replace these entries.")
    return array


def _shaped(name: str, values: Any, ndim: int) -> HostArray:
    array = numbers(name, values)
    if array.ndim != ndim or array.size == 0:
        raise ValueError(f"{name} of shape {array.shape} was given; it must be {AXES[ndim]} and not empty.")
    return array


def intervals(y_interval: Any) -> tuple[HostArray, HostArray]:
    """Lower and upper ends (n,) of intervals (n, 2); −∞ below and +∞ above are ends too."""
    ends = _shaped("y_interval", y_interval, 2)
    if ends.shape[1] != 2:
        raise ValueError(f"y_interval of shape {ends.shape} was given; expected (n, 2), lower and upper ends.")
    low, high = ends[:, 0], ends[:, 1]
    if np.any(np.isnan(ends)):
        raise ValueError("y_interval contains NaN; remove or replace these entries.")
    if np.any(low == np.inf) or np.any(high == -np.inf):
        raise ValueError(
            "y_interval contains a lower end of +∞ or an upper end of −∞; an interval without limits is (−∞, +∞)."
        )
    return low, high


def targets(y_true: Any) -> HostArray:
    """y (n,); a column is taken as a vector."""
    y = numbers("y_true", y_true)
    return finite("y_true", y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y, 1)


def levels_of(name: str, levels: Any, low: float, high: float) -> HostArray:
    """Levels (q,) in the closed interval; a single number is one level."""
    found = finite(name, np.atleast_1d(numbers(name, levels)), 1)
    if not np.all((found >= low) & (found <= high)):
        raise ValueError(f"{name} contains values outside [{low:g}, {high:g}].")
    return found


def prediction(y_pred: Any, n: int, q: int, what: str) -> HostArray:
    """Predictions (n, q); (n,) is taken for one level."""
    found = numbers("y_pred", y_pred)
    found = finite("y_pred", found[:, None] if found.ndim == 1 and q == 1 else found, 2)
    if found.shape != (n, q):
        raise ValueError(
            f"y_pred of shape {found.shape} was given for {n} samples and {q} {what}; expected ({n}, {q})."
        )
    return found


def normalised(sample_weight: Any, n: int) -> HostArray:
    """Weights (n,) that sum to one; None: 1/n."""
    if sample_weight is None:
        return np.full(n, 1.0 / n)
    weight = finite("sample_weight", sample_weight, 1)
    if weight.shape != (n,) or np.any(weight < 0.0) or not np.any(weight > 0.0):
        raise ValueError(
            f"sample_weight of shape {weight.shape} was given for {n} samples; give one nonnegative number each, not "
            "all of them 0."
        )
    return np.asarray(weight / np.sum(weight))


def averaged(weight: HostArray, values: HostArray) -> float:
    """Σ_i ω_i v_i, in which values without weight do not count even where they are infinite."""
    return float(np.sum(weight * np.where(weight > 0.0, values, 0.0)))


def share(name: str, value: Any) -> float:
    """``value`` as a number strictly between 0 and 1, or an error."""
    if not isinstance(value, Real) or not 0.0 < float(value) < 1.0:
        raise ValueError(f"{name}={SHORT.repr(value)} was given; it must be a number strictly between 0 and 1.")
    return float(value)
