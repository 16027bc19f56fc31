"""Distances between all pairs of rows, times γ, their gradients, and the rules that compute ``gamma`` from them.

All functions check that their arguments are matrices with the same number of columns.

Huge and tiny features do not overflow, and equal rows have distance exactly 0. Each distance is one formula in the
array API. For NumPy arrays, compiled loops of SciPy and scikit-learn replace it. They need no temporaries: at n = 3000,
L1 and χ² are 2 to 7 times faster with them.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist, pdist
from sklearn import config_context
from sklearn.metrics.pairwise import additive_chi2_kernel

from infinitask._base.arrays import IN_MEMORY, ON_DEVICE, Array, HostArray, namespace, row_blocks, to_host
from infinitask._base.validation import number

DIFFERENCE_COLUMNS = 3
"""Up to this number of columns, subtracting rows is as fast as a matrix product, and it is exact."""

FEW_ROWS = 64
"""With fewer rows on either side compiled loops are faster than a matrix product and its preparation."""

MANY_NEAR = 64
"""If more than one pair in 64 is near, subtracting them one by one is too slow."""

CAREFUL_COLUMNS = 10
"""Up to this number of columns, compiled loops are fast enough to replace a less exact matrix product."""

PRODUCT_ROUNDING = 2e-15
"""The largest rounding error of γ‖x − z‖², eps·γ‖x‖², for which the product counts as exact: γ‖x‖² is then below 9."""

NEAR_FRACTION = 1e-4
"""Pairs below this fraction of ‖x‖² have lost four digits or more in the product and are recomputed by subtraction."""

MEDIAN_ROWS = 1000
"""The maximum number of rows for a median distance: half a million pairs determine it to three digits."""


# ------------------------------------------------------------------------------------------- rows of matrices
def matrix(X: Array) -> Array:
    """Return ``X`` as an (n, d) array of floats, in its own library."""
    xp = namespace(X)
    X = xp.asarray(X)
    if X.ndim != 2:
        raise ValueError(
            f"An array of shape {tuple(X.shape)} was given to a kernel, which compares the rows of a matrix (n, d); "
            "use X.reshape(-1, 1) for a single column, X.reshape(1, -1) for a single row."
        )
    return X if xp.isdtype(X.dtype, "real floating") else xp.astype(X, xp.float64)


def matrices(X: Array, Z: Array) -> tuple[Array, Array]:
    """Return two matrices with the same number of columns, in their common dtype."""
    xp = namespace(X, Z)
    X, Z = matrix(X), matrix(Z)
    if X.shape[1] != Z.shape[1]:
        raise ValueError(
            f"A kernel compares rows of equal length, and was given {X.shape[1]} columns on the left and "
            f"{Z.shape[1]} on the right; pass data with the columns seen in fit."
        )
    dtype = xp.result_type(X, Z)
    return xp.astype(X, dtype, copy=False), xp.astype(Z, dtype, copy=False)


# -------------------------------------------------------------------------------------------------- distances
def magnitude(*arrays: Array) -> float:
    """Return a power of two near the largest absolute value, or 1 if that value is neither huge nor tiny.

    Dividing by it is exact, and the distances of the quotients neither overflow nor vanish.
    """
    xp = namespace(*arrays)
    ends = [float(end(a)) for a in arrays if 0 not in a.shape for end in (xp.max, xp.min)]
    largest = max(map(abs, ends), default=0.0)
    ordinary = float(xp.finfo(arrays[0].dtype).max) ** 0.1  # about 1e31 in double, 1e4 in single precision
    # Data that are all zeros or contain a NaN stay unchanged.
    extreme = 0 < largest < 1 / ordinary or ordinary < largest < math.inf
    return math.ldexp(1.0, math.frexp(largest)[1] - 1) if extreme else 1.0


def squared_distances(X: Array, Z: Array, gamma: float = 1.0) -> Array:
    """Return γ‖x − z‖² for all pairs of rows, (n, p): never negative, never NaN for finite rows, 0 for equal rows.

    Rows are subtracted one by one if there are few columns or few rows. Otherwise one matrix product of the centred
    rows, [x, ‖x‖², 1]ᵀ[−2z, 1, ‖z‖²], gives all distances with a rounding error of about √d·eps·(‖x‖² + ‖z‖²). Near
    pairs are then recomputed by subtraction. If many pairs are near, distances below the error count as 0: equal rows
    have equal values.
    """
    X, Z = matrices(X, Z)
    d, on_host = X.shape[1], isinstance(X, np.ndarray)
    if d <= DIFFERENCE_COLUMNS or (on_host and min(X.shape[0], Z.shape[0]) < FEW_ROWS):
        return _squares(X, Z, gamma)
    xp = namespace(X, Z)
    left, right = X, Z
    if Z.shape[0] > 0:
        origin = Z[:1, :]  # a constant column becomes exactly 0, unlike after subtracting its mean
        left, right = X - origin, Z - origin
        middle = xp.mean(right, axis=0, keepdims=True)
        left, right = left - middle, right - middle
    left, right, rate = _in_range(left, right, gamma, 2)
    left, right = math.sqrt(rate) * left, math.sqrt(rate) * right
    norms, others = (xp.sum(a * a, axis=1, keepdims=True) for a in (left, right))
    eps = float(xp.finfo(X.dtype).eps)
    if on_host and d <= CAREFUL_COLUMNS and not eps * max(norms.max(), others.max()) <= PRODUCT_ROUNDING:
        return _squares(X, Z, gamma)
    ones = xp.ones_like(norms), xp.ones_like(others)
    squares = xp.concat([left, norms, ones[0]], axis=1) @ xp.concat([-2.0 * right, ones[1], others], axis=1).T
    # Near rows have nearly equal norms, so ‖x‖² can replace both.
    if on_host:
        rows, columns = _at_most(squares, NEAR_FRACTION * norms)
        if rows.size <= squares.size // MANY_NEAR:
            for some in row_blocks(rows.size, d, IN_MEMORY):
                i, j = rows[some], columns[some]
                squares[i, j] = np.sum((left[i] - right[j]) ** 2, axis=1)
            return squares
        if d <= CAREFUL_COLUMNS:
            return _squares(X, Z, gamma)
    # "Below the noise", not "above": a NaN in the data must remain NaN.
    squares[squares <= 2.0 * (8.0 + math.sqrt(d)) * eps * norms] = 0.0
    return squares


def _at_most(squares: HostArray, bound: HostArray) -> tuple[HostArray, HostArray]:
    """Return the rows and columns where squares (n, p) are NaN or at most the bound of their row, (n, 1).

    New rows have few near landmarks, so most rows are skipped after a check of their smallest entry.
    """
    some = np.flatnonzero(~(squares.min(axis=1) > bound[:, 0]))
    part, limit = (squares, bound) if some.size == squares.shape[0] else (squares[some], bound[some])
    rows, columns = np.nonzero(~(part > limit))
    return some[rows], columns


def _squares(X: Array, Z: Array, gamma: float) -> Array:
    """Return γ‖x − z‖², computed from differences."""
    return _additive(X, Z, gamma, 2, lambda x, z: (x - z) ** 2, partial(cdist, metric="sqeuclidean"))


def l1_distances(X: Array, Z: Array, gamma: float = 1.0) -> Array:
    """Return γ‖x − z‖₁ for all pairs of rows, (n, p)."""
    X, Z = matrices(X, Z)
    return _additive(X, Z, gamma, 1, lambda x, z: abs(x - z), partial(cdist, metric="cityblock"))


def chi2_distances(X: Array, Z: Array, gamma: float = 1.0) -> Array:
    """Return γ Σ_k (x_k − z_k)²/(x_k + z_k) for all pairs of rows, (n, p), with 0/0 = 0.

    Raise an error if an entry is negative.
    """
    X, Z = matrices(X, Z)
    xp = namespace(X, Z)
    if any(bool(xp.any(a < 0)) for a in (X, Z)):
        raise ValueError(
            "Chi2 was given negative entries; it compares histograms and needs entries ≥ 0: "
            "rescale X to [0, 1], for example with sklearn.preprocessing.MinMaxScaler(clip=True), or use 'rbf'."
        )

    def term(x: Array, z: Array) -> Array:
        difference, total = x - z, x + z
        # (x−z)²/(x+z) without squaring; if x = z = 0 the denominator becomes 1, and the term is 0.
        return difference * (difference / (total + xp.astype(total == 0, total.dtype)))

    return _additive(X, Z, gamma, 1, term, _chi2_numpy)


def products(X: Array, Z: Array, gamma: float = 1.0) -> Array:
    """Return γ xᵀz for all pairs of rows, (n, p)."""
    X, Z = matrices(X, Z)
    root = math.sqrt(gamma)  # on both sides: huge rows with a tiny gamma do not overflow
    return X @ Z.T if gamma == 1.0 else (root * X) @ (root * Z).T


def decay(distances: Array) -> Array:
    """Return exp(−distance), in place if the library supports it."""
    distances *= -1.0
    # Allocating a large Gram matrix takes NumPy about as long as filling it.
    if isinstance(distances, np.ndarray):
        return np.exp(distances, out=distances)
    return namespace(distances).exp(distances)


def _in_range(X: Array, Z: Array, gamma: float, power: int) -> tuple[Array, Array, float]:
    """Return X/u, Z/u and γu^power for a unit u in which neither overflows.

    The rate is capped by a bound for which exp(−bound · distance) is 0 and bound · distance is still finite.
    """
    unit = magnitude(X, Z)
    rate = math.prod([unit] * power, start=gamma)  # from the left: u² alone may overflow
    rate = min(rate, float(namespace(X).finfo(X.dtype).max) ** 0.7)
    return (X, Z, rate) if unit == 1.0 else (X / unit, Z / unit, rate)


def _additive(
    X: Array, Z: Array, gamma: float, power: int, term: Callable[[Array, Array], Array], compiled: Callable[..., Array]
) -> Array:
    """Return γ Σ_k term(x_k, z_k) for all pairs of rows, (n, p); term(ux, uz) = u^power · term(x, z)."""
    X, Z, rate = _in_range(X, Z, gamma, power)
    on_host = isinstance(X, np.ndarray)
    total = compiled(X, Z).astype(X.dtype, copy=False) if on_host else _sum_over_columns(X, Z, term)
    total *= rate
    return total


def _sum_over_columns(X: Array, Z: Array, term: Callable[[Array, Array], Array]) -> Array:
    """Return Σ_k term(x_k, z_k) for all pairs of rows, (n, p), with temporaries of about ON_DEVICE entries."""
    xp = namespace(X, Z)
    blocks = row_blocks(X.shape[0], Z.shape[0] * Z.shape[1], ON_DEVICE) or [slice(0, 0)]
    # With columns first, the sum runs over whole (rows, p) slabs, which vectorises.
    right = Z.T[:, None, :]
    return xp.concat([xp.sum(term(X[rows, :].T[:, :, None], right), axis=0) for rows in blocks], axis=0)


def _chi2_numpy(X: HostArray, Z: HostArray) -> Array:
    if 0 in (*X.shape, *Z.shape):
        return np.zeros((X.shape[0], Z.shape[0]))  # scikit-learn refuses empty arrays
    X, Z = (np.require(a, requirements="W") for a in (X, Z))  # it refuses read-only ones
    with config_context(assume_finite=True):  # and NaN, which gives NaN with every other kernel
        return -additive_chi2_kernel(X, Z)


# ------------------------------------------------------------------------------------------- rules for gamma
def gamma_by_rule(owner: str, gamma: Any, rules: Mapping[str, Callable[[Array], float]], data: Array) -> float:
    """Return the ``gamma`` of a kernel as a number, computed from the data if it names a rule."""
    if isinstance(gamma, str) and gamma in rules:
        return rules[gamma](data)
    if isinstance(gamma, str):
        names = ", ".join(map(repr, rules))
        raise ValueError(f"{owner} was given gamma={gamma!r}; expected {names} or a positive number.")
    return positive_gamma(owner, gamma)


def positive_gamma(owner: str, gamma: Any) -> float:
    """Return ``gamma`` as a positive finite float; raise an error if ``resolve`` has not made it a number."""
    if type(gamma) is float and 0.0 < gamma < math.inf:
        return gamma
    if gamma is None or isinstance(gamma, str):
        raise ValueError(
            f"{owner}(gamma={gamma!r}) has no number yet; call resolve(data) first, which returns a kernel whose "
            "gamma is one, or pass a positive number."
        )
    return number(f"{owner}: gamma", gamma, low=0.0)


def _few_rows(X: Array) -> tuple[HostArray, float]:
    """Return at most MEDIAN_ROWS rows of X on the host, divided by a unit, and the unit.

    The rows are evenly spaced: the same on every call and device.
    """
    X = matrix(X)
    rows = to_host(X[:: max(1, -(-X.shape[0] // MEDIAN_ROWS)), :]).astype(np.float64)
    unit = magnitude(rows)
    return rows / unit, unit


def euclidean_gamma(X: Array) -> float:
    """γ = 1/(2σ²) with σ the median Euclidean distance of the rows; 1 if all rows are equal."""
    rows, unit = _few_rows(X)
    sigma = _typical(pdist(rows))
    return _one_over(2.0, sigma, sigma, unit, unit)


def l1_gamma(X: Array) -> float:
    """γ = 1/σ with σ the median L1 distance of the rows; 1 if all rows are equal."""
    rows, unit = _few_rows(X)
    return _one_over(_typical(pdist(rows, "cityblock")), unit)


def chi2_gamma(X: Array) -> float:
    """γ = 1/σ with σ the median χ² distance of the rows; 1 if all rows are equal."""
    rows, unit = _few_rows(X)
    return _one_over(_typical(chi2_distances(rows, rows)[np.triu_indices(rows.shape[0], 1)]), unit)


def norm_gamma(X: Array) -> float:
    """γ = 1/σ² with σ² the median of ‖x‖² over the rows; 1 if all rows are 0."""
    rows, unit = _few_rows(X)
    return _one_over(_typical(np.sum(rows**2, axis=1)), unit, unit)


def variance_gamma(X: Array) -> float:
    """γ = 1/(d·Var(X)), with the variance over all entries; 1 if it is 0."""
    X = matrix(X)
    unit = magnitude(X)
    variance = _typical(np.asarray([float(namespace(X).var(X / unit))]))
    return _one_over(float(X.shape[1]), variance, unit, unit)


def _typical(values: HostArray) -> float | None:
    """Return the median; the mean of the positive values if it is 0; None if no value is positive."""
    if not np.all(np.isfinite(values)):
        raise ValueError(
            "gamma cannot be derived from data with NaN or infinite values; impute or drop them, or pass a number."
        )
    above = values[values > 0]
    if above.size == 0:
        return None
    return float(np.median(values)) or float(np.mean(above))


def _one_over(*factors: float | None) -> float:
    """Return one over the product as the nearest positive finite float; for extreme data 1/σ² may be neither."""
    gamma = 1.0
    for factor in factors:  # one by one, since the product may overflow
        if factor is None:
            return 1.0
        gamma /= factor
    return min(max(gamma, sys.float_info.min), sys.float_info.max)


# --------------------------------------------------------------------------------------------------- gradients
class Statistic(NamedTuple):
    """A number of each pair of rows.

    ``values(X, Z, γ)`` is γ·s(x_i, z_j), (n, p). ``slopes(X, Z, W, pairs)`` is Σ_j W_sij pairs_ij ∂s(x_i, z_j)/∂x_i,
    (s, n, d). ``own(X, γ)`` is γ·s(x_i, x_i), (n,). ``median(X)`` is the γ of the rule "median" for the rows of X.
    """

    values: Callable[[Array, Array, float], Array]
    slopes: Callable[[Array, Array, Array, Array], Array]
    own: Callable[[Array, float], Array]
    median: Callable[[Array], float]


def radial_slopes(X: Array, Z: Array, W: Array, pairs: Array) -> Array:
    """2 Σ_j W_sij pairs_ij (x_i − z_j) by two matrix products, (s, n, d).

    x_i and the sum of z_j cancel if rows are near; both are centred at the mean of Z, which makes them small.
    """
    xp = namespace(X, Z)
    middle = xp.mean(Z, axis=0, keepdims=True) if Z.shape[0] > 0 else xp.zeros_like(X[:1, :])
    X, Z = X - middle, Z - middle
    each = []
    for s in range(int(W.shape[0])):  # one function at a time, which needs (n, p) numbers instead of (s, n, p)
        weights = W[s, :, :] * pairs
        each.append(2.0 * (xp.sum(weights, axis=1, keepdims=True) * X - weights @ Z))
    return xp.stack(each, axis=0)


def product_slopes(X: Array, Z: Array, W: Array, pairs: Array) -> Array:
    """Σ_j W_sij pairs_ij z_j, (s, n, d)."""
    return namespace(X, Z).stack([(W[s, :, :] * pairs) @ Z for s in range(int(W.shape[0]))], axis=0)


def _column_slopes(X: Array, Z: Array, W: Array, pairs: Array, slope: Callable[[Array, Array], Array]) -> Array:
    """Σ_j W_sij pairs_ij slope(x_ik, z_jk), (s, n, d): with one pass over all pairs for each column k."""
    xp = namespace(X, Z)
    if W.shape[1] == 1:  # weights that do not depend on x: a matrix product for all functions
        A = xp.matrix_transpose(W[:, 0, :])
        each = [(pairs * slope(X[:, k : k + 1], Z[:, k : k + 1].T)) @ A for k in range(X.shape[1])]
        return xp.permute_dims(xp.stack(each, axis=2), (1, 0, 2))
    Wp = W * pairs[None, :, :]
    columns = [xp.sum(Wp * slope(X[:, k : k + 1], Z[:, k : k + 1].T)[None, :, :], axis=2) for k in range(X.shape[1])]
    return xp.stack(columns, axis=2)


def _sign(x: Array, z: Array) -> Array:
    return namespace(x, z).sign(x - z)


def _chi2_slope(x: Array, z: Array) -> Array:
    """Return the slope of (x − z)²/(x + z); at x = z = 0, where only one side exists, the slope to the right."""
    total = x + z
    fraction = z / (total + namespace(total).astype(total == 0, total.dtype))
    return 1.0 - 4.0 * fraction * fraction


def _no_distance(X: Array, gamma: float) -> Array:
    xp = namespace(X)
    return xp.zeros_like(xp.sum(X, axis=1))


def _squared_norms(X: Array, gamma: float) -> Array:
    X = math.sqrt(gamma) * X
    return namespace(X).sum(X * X, axis=1)


STATISTICS = {
    "squared": Statistic(squared_distances, radial_slopes, _no_distance, euclidean_gamma),
    "l1": Statistic(l1_distances, partial(_column_slopes, slope=_sign), _no_distance, l1_gamma),
    "chi2": Statistic(chi2_distances, partial(_column_slopes, slope=_chi2_slope), _no_distance, chi2_gamma),
    "product": Statistic(products, product_slopes, _squared_norms, norm_gamma),
}
