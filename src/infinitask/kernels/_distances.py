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
DIRECT_NUMPY = 3  # the same for compiled loops
FEW = 64  # rows on either side: what the matrix product saves, its preparation takes; compiled loops again
CAREFUL = 10  # up to this many columns, compiled loops are fast enough to be taken where the product is less exact
ROUNDING = 2e-15
"""The rounding error of γ‖x − z‖², eps·γ‖x‖², up to which the product is exact enough: γ‖x‖² is then below 9, and for
Gaussian data with the median rule it is below 2. With 8 columns and 1000 rows on the other side the product takes
1.0 ns for a pair, the loops take 2.2 ns, and exp takes 0.8 ns."""
NEAR = 1e-4  # parts of ‖x‖²: below, the product has lost four digits or more, and the difference is taken after all


def magnitude(*arrays: Array) -> float:
    """A power of two near the largest absolute value, or 1 if that is of ordinary size.

    Dividing by it is exact, and distances of what remains neither overflow nor vanish.
    """
    ends = [float(end) for a in arrays if 0 not in a.shape for end in _ends(a)]
    largest = max(map(abs, ends), default=0.0)
    ordinary = _largest(arrays[0]) ** 0.1  # about 1e31 in double, 1e4 in single precision
    # Zeros alone, or a NaN among the data, have no size: they stay as they are.
    extreme = 0 < largest < 1 / ordinary or ordinary < largest < math.inf
    return math.ldexp(1.0, math.frexp(largest)[1] - 1) if extreme else 1.0


# For a single row the way to a library takes longer than what it does: NumPy is asked directly.
def _ends(a: Array) -> tuple[Array, Array]:
    """The largest and the smallest entry."""
    if isinstance(a, np.ndarray):
        return a.max(), a.min()
    return namespace(a).max(a), namespace(a).min(a)


def _largest(a: Array) -> float:
    """The largest number of that precision."""
    return float((np if isinstance(a, np.ndarray) else namespace(a)).finfo(a.dtype).max)


def squared_distances(X: Array, Z: Array, gamma: float = 1.0) -> Array:
    """γ‖x − z‖² for all pairs of rows, (n, p): never negative, never NaN for finite rows, 0 for equal rows.

    A few columns are subtracted one by one, and so are few rows. More of them take one matrix product of the centred
    rows, [x, ‖x‖², 1]ᵀ[−2z, 1, ‖z‖²], with a rounding error of about √d·eps·(‖x‖² + ‖z‖²). Near rows are subtracted
    afterwards; where these are many, what lies below the error counts as 0, so that equal rows have equal values.
    """
    d, on_host = X.shape[1], isinstance(X, np.ndarray)
    if d <= (DIRECT_NUMPY if on_host else DIRECT) or (on_host and min(X.shape[0], Z.shape[0]) < FEW):
        return _squares(X, Z, gamma)
    xp = namespace(X, Z)
    left, right = X, Z
    if Z.shape[0] > 0:
        origin = Z[:1, :]  # a constant column becomes exactly 0, which subtracting its mean alone would not give
        left, right = X - origin, Z - origin
        middle = xp.mean(right, axis=0, keepdims=True)
        left, right = left - middle, right - middle
    left, right, rate = _in_range(left, right, gamma, 2)
    left, right = math.sqrt(rate) * left, math.sqrt(rate) * right
    norms, others = (xp.sum(a * a, axis=1, keepdims=True) for a in (left, right))
    eps = float(xp.finfo(X.dtype).eps)
    if on_host and d <= CAREFUL and not eps * max(norms.max(), others.max()) <= ROUNDING:
        return _squares(X, Z, gamma)
    ones = xp.ones_like(norms), xp.ones_like(others)
    squares = xp.concat([left, norms, ones[0]], axis=1) @ xp.concat([-2.0 * right, ones[1], others], axis=1).T
    # Near rows have near norms: ‖x‖² stands for both.
    if on_host:
        rows, columns = _at_most(squares, NEAR * norms)
        if rows.size <= squares.size // FEW:
            for start in range(0, rows.size, step := max(1, BLOCK // d)):
                i, j = rows[start : start + step], columns[start : start + step]
                squares[i, j] = np.sum((left[i] - right[j]) ** 2, axis=1)
            return squares
        if d <= CAREFUL:
            return _squares(X, Z, gamma)
    # "Below the noise", not "above": a NaN in the data must stay one.
    squares[squares <= 2.0 * (8.0 + math.sqrt(d)) * eps * norms] = 0.0
    return squares


def _at_most(squares: HostArray, bound: HostArray) -> tuple[HostArray, HostArray]:
    """Where squares (n, p) do not exceed the bound of their row, (n, 1), or are NaN: rows and columns.

    New inputs have few near landmarks: most rows are passed over after a look at their smallest entry.
    """
    some = np.flatnonzero(~(squares.min(axis=1) > bound[:, 0]))
    part, limit = (squares, bound) if some.size == squares.shape[0] else (squares[some], bound[some])
    rows, columns = np.nonzero(~(part > limit))
    return some[rows], columns


def _squares(X: Array, Z: Array, gamma: float) -> Array:
    """γ‖x − z‖² by differences."""
    return _additive(X, Z, gamma, 2, lambda x, z: (x - z) ** 2, partial(cdist, metric="sqeuclidean"))


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
    rate = min(rate, _largest(X) ** 0.7)
    return (X, Z, rate) if unit == 1.0 else (X / unit, Z / unit, rate)


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
    X, Z = (np.require(a, requirements="W") for a in (X, Z))  # and what is read-only
    with config_context(assume_finite=True):  # and NaN, which here gives NaN as with any other kernel
        return -additive_chi2_kernel(X, Z)
