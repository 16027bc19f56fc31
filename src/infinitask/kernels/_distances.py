"""Distances of all pairs of rows, times γ, and exp(−distance).

They are written so that neither huge nor tiny inputs overflow, and so that equal rows are at distance exactly 0.
Each is one formula in the array API. NumPy takes compiled loops of SciPy and scikit-learn in its place, which
need no temporaries: at n = 3000, L1 and χ² are 2 to 7 times as fast with them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.spatial.distance import cdist
from sklearn import config_context
from sklearn.metrics.pairwise import additive_chi2_kernel

from infinitask._array import Array, HostArray, namespace

__all__ = ["chi2_distances", "decay", "l1_distances", "magnitude", "squared_distances"]

BLOCK = 2**19  # entries of a temporary: 4 MB of float64, which stay in the cache
DIRECT = 4  # up to this many columns, differences cost no more than the matrix product and are exact
DIRECT_NUMPY = 10  # the same for compiled loops


def magnitude(*arrays: Array) -> float:
    """A power of two near the largest absolute value, or 1 if that is of ordinary size.

    Dividing by it is exact, and distances of what remains neither overflow nor vanish.
    """
    xp = namespace(*arrays)
    ends = [float(end) for a in arrays if 0 not in a.shape for end in (xp.max(a), xp.min(a))]
    largest = max(map(abs, ends), default=0.0)
    ordinary = float(xp.finfo(arrays[0].dtype).max) ** 0.1  # about 1e31 in double, 1e4 in single precision
    # Zeros alone, or a NaN among the data, have no size: they stay as they are.
    extreme = 0 < largest < 1 / ordinary or ordinary < largest < math.inf
    return math.ldexp(1.0, math.frexp(largest)[1] - 1) if extreme else 1.0


def squared_distances(X: Array, Z: Array, gamma: float = 1.0) -> Array:
    """γ‖x − z‖² for all pairs of rows, (n, p): never negative, never NaN for finite rows, 0 for equal rows.

    A few columns are subtracted one by one. More of them take one matrix product of the centred rows, with a rounding
    error of about √d·eps·(‖x‖² + ‖z‖²); what lies below that counts as 0, so that equal rows have equal values.
    """
    xp, d = namespace(X, Z), X.shape[1]
    if d <= (DIRECT_NUMPY if isinstance(X, np.ndarray) else DIRECT):
        return _additive(X, Z, gamma, 2, lambda x, z: (x - z) ** 2, partial(cdist, metric="sqeuclidean"))
    if Z.shape[0] > 0:
        origin = Z[:1, :]  # a constant column becomes exactly 0, which subtracting its mean alone would not give
        X, Z = X - origin, Z - origin
        middle = xp.mean(Z, axis=0, keepdims=True)
        X, Z = X - middle, Z - middle
    X, Z, rate = _in_range(X, Z, gamma, 2)
    X, Z = math.sqrt(rate) * X, math.sqrt(rate) * Z
    norms = xp.sum(X * X, axis=1)[:, None]
    squares = X @ (-2.0 * Z).T
    squares += norms
    squares += xp.sum(Z * Z, axis=1)[None, :]
    noise = (8.0 + math.sqrt(d)) * float(xp.finfo(X.dtype).eps)
    # Near rows have near norms: ‖x‖² stands for both. "Below the noise", not "above": a NaN in the data must stay one.
    squares[squares <= 2.0 * noise * norms] = 0.0
    return squares


def l1_distances(X: Array, Z: Array, gamma: float = 1.0) -> Array:
    """γ‖x − z‖₁ for all pairs of rows, (n, p)."""
    return _additive(X, Z, gamma, 1, lambda x, z: namespace(x).abs(x - z), partial(cdist, metric="cityblock"))


def chi2_distances(X: Array, Z: Array, gamma: float = 1.0) -> Array:
    """γ Σ_k (x_k − z_k)²/(x_k + z_k) for all pairs of rows, (n, p), where 0/0 = 0; negative entries are refused."""
    xp = namespace(X, Z)
    if any(bool(xp.any(a < 0)) for a in (X, Z)):
        raise ValueError(
            "Chi2 compares histograms and needs entries ≥ 0, and was given negative ones; "
            "rescale X to [0, 1], for example with sklearn.preprocessing.MinMaxScaler(clip=True), or use 'rbf'."
        )

    def term(x: Array, z: Array) -> Array:
        difference, total = x - z, x + z
        # (x−z)²/(x+z) without squaring; where x = z = 0 the denominator becomes 1, and the term is 0.
        return difference * (difference / (total + xp.astype(total == 0, total.dtype)))

    return _additive(X, Z, gamma, 1, term, _chi2_numpy)


def decay(distances: Array) -> Array:
    """exp(−distance), in the place of its argument where the library can."""
    distances *= -1.0
    # Fresh memory for a large Gram matrix costs NumPy about as much as filling it.
    if isinstance(distances, np.ndarray):
        return np.exp(distances, out=distances)
    return namespace(distances).exp(distances)


def _in_range(X: Array, Z: Array, gamma: float, power: int) -> tuple[Array, Array, float]:
    """X/u, Z/u and γu^power for a unit u in which neither overflows.

    The rate stays below a bound so large that exp(−bound · distance) is 0, but bound · distance is still finite.
    """
    unit = magnitude(X, Z)
    rate = math.prod([unit] * power, start=gamma)  # from the left: u² alone may overflow
    return X / unit, Z / unit, min(rate, float(namespace(X).finfo(X.dtype).max) ** 0.7)


def _additive(
    X: Array, Z: Array, gamma: float, power: int, term: Callable[[Array, Array], Array], compiled: Callable[..., Array]
) -> Array:
    """γ Σ_k term(x_k, z_k) for all pairs of rows, (n, p); term(ux, uz) = u^power · term(x, z)."""
    X, Z, rate = _in_range(X, Z, gamma, power)
    on_host = isinstance(X, np.ndarray)
    total = compiled(X, Z).astype(X.dtype, copy=False) if on_host else _sum_over_columns(X, Z, term)
    total *= rate
    return total


def _sum_over_columns(X: Array, Z: Array, term: Callable[[Array, Array], Array]) -> Array:
    """Σ_k term(x_k, z_k) for all pairs of rows, (n, p), with temporaries of at most about BLOCK entries."""
    xp = namespace(X, Z)
    (n, d), p = X.shape, Z.shape[0]
    width = max(1, min(d, BLOCK // max(p, 1)))
    height = max(1, BLOCK // max(p * width, 1))
    # An (n, p) array of zeros where X lives, made without asking for its device.
    total = xp.zeros_like(xp.sum(X, axis=1))[:, None] + xp.zeros_like(xp.sum(Z, axis=1))[None, :]
    for i in range(0, n, height):
        rows = slice(i, min(i + height, n))  # the standard leaves a stop beyond the end open
        for k in range(0, d, width):
            columns = slice(k, min(k + width, d))
            # Columns first: the sum then runs over whole (rows, p) slabs, which vectorises.
            left, right = X[rows, columns].T, Z[:, columns].T
            total[rows, :] += xp.sum(term(left[:, :, None], right[:, None, :]), axis=0)
    return total


def _chi2_numpy(X: HostArray, Z: HostArray) -> Array:
    if 0 in (*X.shape, *Z.shape):
        return np.zeros((X.shape[0], Z.shape[0]))  # scikit-learn refuses what is empty
    with config_context(assume_finite=True):  # and NaN, which here gives NaN as with any other kernel
        return -additive_chi2_kernel(X, Z)
