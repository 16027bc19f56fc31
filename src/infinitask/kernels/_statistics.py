"""The numbers s(x, z) of pairs of rows of which kernels are functions, and gradients in x of such functions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from infinitask._base.arrays import Array, namespace

from ._distances import chi2_distances, l1_distances, products, squared_distances


class Statistic(NamedTuple):
    """A number of each pair of rows.

    ``values(X, Z, γ)`` is γ·s(x_i, z_j), (n, p). ``slopes(X, Z, W, pairs)`` is Σ_j W_sij pairs_ij ∂s(x_i, z_j)/∂x_i,
    (s, n, d).
    """

    values: Callable[[Array, Array, float], Array]
    slopes: Callable[[Array, Array, Array, Array], Array]


def radial_slopes(X: Array, Z: Array, W: Array, pairs: Array) -> Array:
    """2 Σ_j W_sij pairs_ij (x_i − z_j) by two matrix products, (s, n, d).

    x_i and the sum of z_j cancel where rows are near: around the mean of Z they are as small as they can be.
    """
    xp = namespace(X, Z)
    middle = xp.mean(Z, axis=0, keepdims=True) if Z.shape[0] > 0 else xp.zeros_like(X[:1, :])
    X, Z = X - middle, Z - middle
    each = []
    for s in range(int(W.shape[0])):  # one function at a time: (n, p) numbers, not (s, n, p)
        weights = W[s, :, :] * pairs
        each.append(2.0 * (xp.sum(weights, axis=1, keepdims=True) * X - weights @ Z))
    return xp.stack(each, axis=0)


def product_slopes(X: Array, Z: Array, W: Array, pairs: Array) -> Array:
    """Σ_j W_sij pairs_ij z_j, (s, n, d)."""
    return namespace(X, Z).stack([(W[s, :, :] * pairs) @ Z for s in range(int(W.shape[0]))], axis=0)


def _column_slopes(X: Array, Z: Array, W: Array, pairs: Array, slope: Callable[[Array, Array], Array]) -> Array:
    """Σ_j W_sij pairs_ij slope(x_ik, z_jk), (s, n, d): a pass over all pairs for each column k."""
    xp, Wp = namespace(X, Z), W * pairs[None, :, :]
    columns = [xp.sum(Wp * slope(X[:, k : k + 1], Z[:, k : k + 1].T)[None, :, :], axis=2) for k in range(X.shape[1])]
    return xp.stack(columns, axis=2)


def _sign(x: Array, z: Array) -> Array:
    return namespace(x, z).sign(x - z)


def _chi2_slope(x: Array, z: Array) -> Array:
    """Of (x − z)²/(x + z); at x = z = 0 it is the slope to the right, for there is no other side."""
    total = x + z
    fraction = z / (total + namespace(total).astype(total == 0, total.dtype))
    return 1.0 - 4.0 * fraction * fraction


STATISTICS = {
    "squared": Statistic(squared_distances, radial_slopes),
    "l1": Statistic(l1_distances, partial(_column_slopes, slope=_sign)),
    "chi2": Statistic(chi2_distances, partial(_column_slopes, slope=_chi2_slope)),
    "product": Statistic(products, product_slopes),
}
