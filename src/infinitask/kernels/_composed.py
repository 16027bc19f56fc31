"""Input kernels composed of other input kernels: sums, products, means over features, and kernels of normal scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from operator import add, mul
from typing import Any, ClassVar, Self, final

import numpy as np
from scipy.special import ndtri

from infinitask._base.arrays import Array, HostArray, as_like, namespace, to_host

from ._base import Formula, InputKernel
from ._distances import FEW_ROWS, matrices, matrix
from ._input import _Around, _Changing

MAX_KNOTS = 257
"""The maximum number of values of a feature kept for its normal scores, evenly spaced in rank."""


class _Pair:
    """Two kernels combined by an operation."""

    kind: ClassVar[str]
    _joined: Callable[[Array, Array], Array]
    """Return their sum or product."""

    def __init__(self, left: InputKernel, right: InputKernel) -> None:
        self.left = left
        self.right = right

    def formula(self) -> Formula:
        """Return a sum or a product."""
        return self.kind, {}, self._checked()

    def resolve(self, X: Array) -> Self:
        """Return a copy with both kernels resolved."""
        left, right = self._checked()
        return type(self)(left=left.resolve(X), right=right.resolve(X))

    def __call__(self, X: Array, Z: Array) -> Array:
        left, right = self._checked()
        return self._joined(left(X, Z), right(X, Z))

    def diag(self, X: Array) -> Array:
        """Return k(x_i, x_i), (n,)."""
        left, right = self._checked()
        return self._joined(left.diag(X), right.diag(X))

    def _checked(self) -> tuple[InputKernel, InputKernel]:
        """Return both kernels; raise an error if one is not an input kernel."""
        for name, kernel in (("left", self.left), ("right", self.right)):
            if not isinstance(kernel, InputKernel):
                raise TypeError(
                    f"{type(self).__name__} joins two input kernels, and its {name} is {kernel!r}; "
                    "pass an object such as RBF(); input_kernel('rbf') makes one from a name."
                )
        return self.left, self.right


class Sum(_Pair, InputKernel):
    """Sum of two kernels, for functions that are a sum of one part of each; ``left + right`` creates it.

    k(x, z) = k_left(x, z) + k_right(x, z).

    Parameters
    ----------
    left, right : InputKernel

    Examples
    --------
    >>> import numpy as np
    >>> from infinitask.kernels import Linear
    >>> (Linear() + Linear())(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[22.]])
    """

    kind = "sum"
    _joined = staticmethod(add)

    def _slopes(self, X: Array, Z: Array, W: Array) -> Array:
        left, right = self._checked()
        return left._slopes(X, Z, W) + right._slopes(X, Z, W)


class Product(_Pair, InputKernel):
    """Product of two kernels: rows are similar only if both kernels agree; ``left * right`` creates it.

    k(x, z) = k_left(x, z) · k_right(x, z).

    Parameters
    ----------
    left, right : InputKernel

    Examples
    --------
    >>> import numpy as np
    >>> from infinitask.kernels import Linear
    >>> (Linear() * Linear())(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[121.]])
    """

    kind = "product"
    _joined = staticmethod(mul)

    @property
    def stationary(self) -> bool:
        """Whether both factors are stationary."""
        left, right = self._checked()
        return left.stationary and right.stationary

    def _slopes(self, X: Array, Z: Array, W: Array) -> Array:
        left, right = self._checked()
        return left._slopes(X, Z, W * right(X, Z)[None, :, :]) + right._slopes(X, Z, W * left(X, Z)[None, :, :])

    def spectral(self, n_features_in: int, n_components: int, rng: np.random.Generator) -> HostArray:
        """Return sums of independent frequencies of the factors, because characteristic functions multiply."""
        first = self.left.spectral(n_features_in, n_components, rng)
        return first + self.right.spectral(n_features_in, n_components, rng)


class Additive(_Around, InputKernel):
    """Kernel of an additive model: its functions are sums of functions of one feature each.

    k(x, z) = (1/d) Σ_j k₀(x_j, z_j). With few rows and many features such a sum can be learnt even when a function of
    all features together cannot.

    Parameters
    ----------
    kernel : InputKernel
        k₀, of one feature. A data-dependent ``gamma`` is computed for each feature separately.
    parts : tuple of InputKernel or None
        k₀ as resolved on each feature; ``resolve`` sets it.

    Examples
    --------
    >>> import numpy as np
    >>> from infinitask.kernels import RBF
    >>> Additive(RBF(gamma=1.0))(np.array([[1.0, 5.0]]), np.array([[1.0, -7.0]]))
    array([[0.5]])
    """

    def __init__(self, kernel: InputKernel, parts: tuple[InputKernel, ...] | None = None) -> None:
        self.kernel = kernel
        self.parts = parts

    def formula(self) -> Formula:
        """Return a mean over the features; a single part applies to all of them."""
        return "each", {}, self.parts or (self._inner(),)

    def resolve(self, X: Array) -> Self:
        """Return a copy with k₀ resolved on every column."""
        X = matrix(X)
        return type(self)(self._inner(), tuple(self._inner().resolve(column) for column in _columns(X)))

    def __call__(self, X: Array, Z: Array) -> Array:
        X, Z = matrices(X, Z)
        if isinstance(X, np.ndarray) and X.dtype == np.float64:
            from ._towards import mean_over_features  # circular import

            # in blocks that fit into the cache: 0.08 instead of 0.14 s for 1500 rows and 20 features
            gram = mean_over_features(self, X, Z)
            if gram is not None:
                return gram
        grams = (part(x, z) for part, x, z in zip(self._each(X), _columns(X), _columns(Z), strict=True))
        return sum(grams, 0.0) / int(X.shape[1])

    def _slopes(self, X: Array, Z: Array, W: Array) -> Array:
        each = zip(self._each(X), _columns(X), _columns(Z), strict=True)
        return namespace(X, Z).concat([part._slopes(x, z, W) for part, x, z in each], axis=2) / int(X.shape[1])

    def diag(self, X: Array) -> Array:
        """Return k(x_i, x_i), (n,)."""
        X = matrix(X)
        return sum((part.diag(x) for part, x in zip(self._each(X), _columns(X), strict=True)), 0.0) / int(X.shape[1])

    def _each(self, X: Array) -> tuple[InputKernel, ...]:
        """Return k₀ for each column."""
        d = int(X.shape[1])
        if self.parts is None:
            return (self._inner(),) * d
        if len(self.parts) != d:
            raise ValueError(f"Additive was resolved on {len(self.parts)} columns and is given {d}; give it as many.")
        return self.parts


class Warped(_Changing, InputKernel):
    """Replaces each feature by its normal score, which removes the effect of tails, outliers and units on distances.

    k(x, z) = k₀(w(x), w(z)), where w_j(x_j) is the normal score of x_j among the rows on which the kernel was resolved.
    w_j passes through the normal quantiles of the ranks. It is linear between neighbouring rows and constant beyond the
    first and the last one. The kernel is invariant to monotone transformations of a feature, and its functions stay
    bounded outside the data.

    Parameters
    ----------
    kernel : InputKernel
        k₀. A data-dependent ``gamma`` is computed from w(x).
    ranks : Ranks or None
        w; None: ``resolve`` computes it.

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

    stationary = False

    def __init__(self, kernel: InputKernel, ranks: Ranks | None = None) -> None:
        self.kernel = kernel
        self.ranks = ranks

    def formula(self) -> Formula:
        """Return k₀ of normal scores."""
        return "ranks", {"ranks": self.ranks}, (self._inner(),)

    def resolve(self, X: Array) -> Self:
        """Return a copy with the ranks of the rows of X, unless ``ranks`` is given."""
        ranks = Ranks.of(matrix(X)) if self.ranks is None else self.ranks
        return _Changing.resolve(type(self)(self.kernel, ranks), X)

    def warp(self, X: Array) -> Array:
        """Return w(x) for each row, (n, d)."""
        X = matrix(X)
        xp, known = namespace(X), self._known(X)
        if isinstance(X, np.ndarray) and self.ranks is not None:
            return as_like(self.ranks(X), X)
        # a copy of each column: torch warns if it searches an array that is not contiguous
        columns = [_piecewise_linear(xp.asarray(X[:, j], copy=True), *k) for j, k in enumerate(known)]
        return xp.stack(columns, axis=1)

    def _known(self, X: Array) -> tuple[tuple[HostArray, HostArray], ...]:
        """Return the values and scores of each column of X."""
        if self.ranks is None:
            raise ValueError("Warped has no ranks yet; call resolve(X) first, which returns a kernel that has.")
        known = self.ranks.columns
        if len(known) != X.shape[1]:
            raise ValueError(f"Warped was resolved on {len(known)} columns and is given {X.shape[1]}; give it as many.")
        return known

    def _changed(self, X: Array) -> Array:
        return self.warp(X)

    def _pulled_back(self, slopes: Array, X: Array) -> Array:
        xp, known = namespace(X), self._known(X)
        own = [_slope(xp.asarray(X[:, j], copy=True), *k) for j, k in enumerate(known)]
        return slopes * xp.stack(own, axis=1)[None, :, :]


def _piecewise_linear(x: Array, values: HostArray, scores: HostArray) -> Array:
    """Evaluate the function through (values, scores), constant beyond its ends."""
    xp = namespace(x)
    if values.size == 1:
        return xp.zeros_like(x) + float(scores[0])
    v, s = as_like(values, x), as_like(scores, x)
    right = xp.clip(xp.searchsorted(v, x), 1, values.size - 1)
    left = right - 1
    fraction = (x - xp.take(v, left)) / (xp.take(v, right) - xp.take(v, left))
    fraction = xp.clip(fraction, 0.0, 1.0)
    return xp.take(s, left) + fraction * (xp.take(s, right) - xp.take(s, left))


def _slope(x: Array, values: HostArray, scores: HostArray) -> Array:
    """Return the slope of that function; at a value, the mean of the slopes on both sides."""
    xp = namespace(x)
    if values.size == 1:
        return xp.zeros_like(x)
    # 0 beyond the ends
    slopes = as_like(np.concatenate([[0.0], np.diff(scores) / np.diff(values), [0.0]]), x)
    v = as_like(values, x)
    return 0.5 * (
        xp.take(slopes, xp.searchsorted(v, x, side="left")) + xp.take(slopes, xp.searchsorted(v, x, side="right"))
    )


def _columns(X: Array) -> list[Array]:
    return [X[:, j : j + 1] for j in range(int(X.shape[1]))]


@final
@dataclass(frozen=True, eq=False)
class Ranks:
    """The normal score of every value of each feature, as stored by :class:`Warped`.

    Parameters
    ----------
    columns : tuple of (values, scores)
        Two ascending arrays for each feature.
    """

    columns: tuple[tuple[HostArray, HostArray], ...]

    def __repr__(self) -> str:
        # short, because scikit-learn takes seconds to print a kernel with hundreds of numbers
        return f"<ranks of {len(self.columns)} features>"

    @classmethod
    def of(cls, X: Array) -> Ranks:
        """Compute the ranks of the rows of X."""
        return cls(tuple(_scores(column) for column in to_host(X).astype(float).T))

    def __call__(self, X: HostArray) -> HostArray:
        """Return w(x) for the rows of a NumPy array (n, d)."""
        if X.shape[0] >= FEW_ROWS:
            return np.stack([np.interp(X[:, j], *known) for j, known in enumerate(self.columns)], axis=1)
        values, scores, lowest, highest = self._in_a_row
        places = np.empty(X.shape, dtype=complex)
        places.real, places.imag = self._numbers, X
        right = np.clip(np.searchsorted(values, places), lowest, highest)
        left = right - 1
        before = values.imag[left]
        fraction = np.clip((X - before) / (values.imag[right] - before), 0.0, 1.0)
        start = scores[left]
        return np.asarray(start + fraction * (scores[right] - start))

    @cached_property
    def _numbers(self) -> HostArray:
        """0, 1, …: the index of each feature."""
        return np.arange(len(self.columns), dtype=float)

    @cached_property
    def _in_a_row(self) -> tuple[HostArray, HostArray, HostArray, HostArray]:
        """The concatenated values and scores of all features, and the first and last right neighbour of each feature.

        NumPy orders complex numbers by their real and then by their imaginary part. With the index of the feature as
        the real part, one search locates a whole row. With 30 features this takes 11 µs instead of 46.
        """
        # a single value is duplicated with the same score
        known = [
            (np.append(v, v[0] + max(1.0, abs(v[0]))), np.append(s, s[0])) if v.size == 1 else (v, s)
            for v, s in self.columns
        ]
        values = np.empty(sum(v.size for v, _ in known), dtype=complex)
        values.real = np.repeat(self._numbers, [v.size for v, _ in known])
        values.imag = np.concatenate([v for v, _ in known])
        end = np.cumsum([v.size for v, _ in known])
        start = end - np.array([v.size for v, _ in known])
        return values, np.concatenate([s for _, s in known]), start + 1, end - 1

    def __getstate__(self) -> dict[str, Any]:
        return {"columns": self.columns}  # the rest can be recomputed

    def __deepcopy__(self, memo: dict[int, Any]) -> Ranks:
        return self  # it is immutable: copies of a kernel share it, and a sum of kernels saves it once


def _scores(column: HostArray) -> tuple[HostArray, HostArray]:
    """Return the distinct values and the normal quantiles of their mid-ranks."""
    values, counts = np.unique(column, return_counts=True)
    scores = ndtri((np.cumsum(counts) - 0.5 * counts) / column.size)
    if values.size > MAX_KNOTS:
        kept = np.unique(np.linspace(0, values.size - 1, MAX_KNOTS).astype(int))
        values, scores = values[kept], scores[kept]
    return values, scores
