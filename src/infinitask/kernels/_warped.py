"""A kernel that sees inputs by their ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import ndtri

from infinitask._array import Array, HostArray, as_like, namespace, to_host

from ._base import InputKernel
from ._checks import matrix
from ._features import _Around

__all__ = ["Ranks", "Warped"]

KNOTS = 257
"""Of more distinct values so many quantiles are kept."""


@dataclass(frozen=True, eq=False)
class Ranks:
    """The normal scores of the values of each input.

    Parameters
    ----------
    columns : tuple of (values, scores)
        Two ascending arrays for each input.
    """

    columns: tuple[tuple[HostArray, HostArray], ...]

    def __repr__(self) -> str:
        # short: kernels name themselves in every fit, and scikit-learn takes seconds to write out hundreds of numbers
        return f"<ranks of {len(self.columns)} inputs>"

    @classmethod
    def of(cls, X: Array) -> Ranks:
        """Of the rows of X."""
        return cls(tuple(_scores(column) for column in to_host(X).astype(float).T))


class Warped(_Around):
    """k(x, z) = k₀(w(x), w(z)), with w_j(x_j) the normal score of x_j among the rows the kernel was resolved on.

    w_j goes through the normal quantiles of the ranks, is linear between neighbouring rows and constant beyond the
    first and the last: neither a long tail nor an outlier of an input decides what is near, units and monotone
    transformations of an input make no difference, and a function does not run away outside the data.

    Parameters
    ----------
    kernel : InputKernel
        k₀. A ``gamma`` that follows the data follows w(x).
    ranks : Ranks or None
        w; None: ``resolve`` finds it.

    Examples
    --------
    >>> import numpy as np
    >>> from infinitask.kernels import RBF
    >>> X = np.array([[1.0], [2.0], [4.0], [8.0]])
    >>> kernel = Warped(RBF(gamma=1.0)).resolve(X)
    >>> again = Warped(RBF(gamma=1.0)).resolve(np.log(X))
    >>> np.allclose(kernel(X, X), again(np.log(X), np.log(X)))
    True
    """

    def __init__(self, kernel: InputKernel, ranks: Ranks | None = None) -> None:
        self.kernel = kernel
        self.ranks = ranks

    def resolve(self, X: Array) -> Self:
        """A copy that knows the ranks of the rows of X, unless it knows those of others."""
        X = matrix(X)
        ranks = Ranks.of(X) if self.ranks is None else self.ranks
        return type(self)(self._inner().resolve(type(self)(self._inner(), ranks).warp(X)), ranks)

    def warp(self, X: Array) -> Array:
        """w(x) for each row, (n, d)."""
        X = matrix(X)
        if self.ranks is None:
            raise ValueError("Warped must know some rows before it can rank others; call resolve(X) first.")
        known = self.ranks.columns
        if len(known) != X.shape[1]:
            raise ValueError(f"Warped was resolved on {len(known)} columns and is given {X.shape[1]}; give it as many.")
        xp = namespace(X)
        # a copy of each column: torch searches in contiguous numbers only without a warning
        columns = [_piecewise_linear(xp.asarray(X[:, j], copy=True), *k) for j, k in enumerate(known)]
        return xp.stack(columns, axis=1)

    def __call__(self, X: Array, Z: Array) -> Array:
        return self._inner()(self.warp(X), self.warp(Z))

    def diag(self, X: Array) -> Array:
        """k(x_i, x_i), (n,)."""
        return self._inner().diag(self.warp(X))


def _scores(column: HostArray) -> tuple[HostArray, HostArray]:
    """Distinct values and the normal quantiles of their mid-ranks."""
    values, counts = np.unique(column, return_counts=True)
    scores = ndtri((np.cumsum(counts) - 0.5 * counts) / column.size)
    if values.size > KNOTS:
        kept = np.unique(np.linspace(0, values.size - 1, KNOTS).astype(int))
        values, scores = values[kept], scores[kept]
    return values, scores


def _piecewise_linear(x: Array, values: HostArray, scores: HostArray) -> Array:
    """The function through (values, scores), constant beyond its ends."""
    xp = namespace(x)
    if values.size == 1:
        return xp.zeros_like(x) + float(scores[0])
    v, s = as_like(values, x), as_like(scores, x)
    right = xp.clip(xp.searchsorted(v, x), 1, values.size - 1)
    left = right - 1
    share = (x - xp.take(v, left)) / (xp.take(v, right) - xp.take(v, left))
    share = xp.clip(share, 0.0, 1.0)
    return xp.take(s, left) + share * (xp.take(s, right) - xp.take(s, left))
