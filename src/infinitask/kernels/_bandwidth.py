"""Rules that read a kernel's ``gamma`` off the data: one over a typical distance, or over the variance."""

from __future__ import annotations

import sys

import numpy as np
from scipy.spatial.distance import pdist

from infinitask._array import Array, HostArray, namespace, to_host

from ._checks import matrix
from ._distances import chi2_distances, magnitude

__all__ = ["chi2_gamma", "euclidean_gamma", "few_rows", "l1_gamma", "norm_gamma", "variance_gamma"]

MEDIAN_ROWS = 1000  # half a million pairs fix a median to three digits


def few_rows(X: Array) -> HostArray:
    """At most MEDIAN_ROWS rows of X on the host, evenly spaced, hence the same on every call and device."""
    X = matrix(X)
    return to_host(X[:: max(1, -(-X.shape[0] // MEDIAN_ROWS)), :]).astype(np.float64)


def euclidean_gamma(rows: HostArray) -> float:
    """γ = 1/(2σ²) with σ the median Euclidean distance of the rows; 1 where all rows are equal."""
    unit = magnitude(rows)
    sigma = _typical(pdist(rows / unit))
    return _one_over(2.0, sigma, sigma, unit, unit)


def l1_gamma(rows: HostArray) -> float:
    """γ = 1/σ with σ the median L1 distance of the rows; 1 where all rows are equal."""
    unit = magnitude(rows)
    return _one_over(_typical(pdist(rows / unit, "cityblock")), unit)


def chi2_gamma(rows: HostArray) -> float:
    """γ = 1/σ with σ the median χ² distance of the rows; 1 where all rows are equal."""
    unit = magnitude(rows)
    distances = chi2_distances(rows / unit, rows / unit)
    return _one_over(_typical(distances[np.triu_indices(rows.shape[0], 1)]), unit)


def norm_gamma(rows: HostArray) -> float:
    """γ = 1/σ² with σ² the median of ‖x‖² over the rows; 1 where all rows are 0."""
    unit = magnitude(rows)
    return _one_over(_typical(np.sum((rows / unit) ** 2, axis=1)), unit, unit)


def variance_gamma(X: Array) -> float:
    """γ = 1/(d·Var(X)), the variance over all entries; 1 where that is 0."""
    X = matrix(X)
    unit = magnitude(X)
    variance = _typical(np.asarray([float(namespace(X).var(X / unit))]))
    return _one_over(float(X.shape[1]), variance, unit, unit)


def _typical(values: HostArray) -> float | None:
    """The median; where that is 0, the mean of the positive values; where there are none, None."""
    if not np.all(np.isfinite(values)):
        raise ValueError(
            "gamma cannot be derived from data with NaN or infinite values; impute or drop them, or pass a number."
        )
    above = values[values > 0]
    if above.size == 0:
        return None
    return float(np.median(values)) or float(np.mean(above))


def _one_over(*factors: float | None) -> float:
    """One over the product, as the nearest positive, finite float: 1/σ² of extreme data may be neither."""
    gamma = 1.0
    for factor in factors:  # one by one, since the product may overflow
        if factor is None:
            return 1.0
        gamma /= factor
    return min(max(gamma, sys.float_info.min), sys.float_info.max)
