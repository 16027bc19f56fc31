"""Arguments of the metrics as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from infinitask._array import HostArray

__all__ = ["finite", "levels_of", "normalised", "prediction", "targets"]


def finite(name: str, values: Any, ndim: int) -> HostArray:
    """``values`` as finite numbers with so many axes, or an error."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} was given as {type(values).__name__}; it must be an array of numbers.") from None
    if array.ndim != ndim or array.size == 0:
        raise ValueError(f"{name} of shape {array.shape} was given; it must have {ndim} axes and not be empty.")
    if not np.all(np.isfinite(array)):
        raise ValueError(f"{name} contains NaN or infinity; remove or replace these entries.")
    return array


def targets(y_true: Any) -> HostArray:
    """y (n,); a column is taken as a vector."""
    y = np.asarray(y_true)
    return finite("y_true", y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y, 1)


def levels_of(name: str, levels: Any, low: float, high: float) -> HostArray:
    """Levels (q,) in the closed interval; a single number is one level."""
    found = finite(name, np.atleast_1d(np.asarray(levels)), 1)
    if not np.all((found >= low) & (found <= high)):
        raise ValueError(f"{name} contains values outside [{low:g}, {high:g}].")
    return found


def prediction(y_pred: Any, n: int, q: int, what: str) -> HostArray:
    """Predictions (n, q); (n,) is taken for one level."""
    found = np.asarray(y_pred)
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
