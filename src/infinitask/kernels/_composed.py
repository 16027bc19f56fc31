"""Input kernels made of other input kernels: sums, products, and kernels of changed inputs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Self

import numpy as np

from infinitask._base.arrays import Array, HostArray, as_like, namespace
from infinitask._base.validation import numbers

from ._base import Formula, InputKernel
from ._distances import matrices, matrix
from ._ranks import Ranks


class _Pair:
    """Two kernels joined by an operation."""

    def __init__(self, left: InputKernel, right: InputKernel) -> None:
        self.left = left
        self.right = right

    def resolve(self, X: Array) -> Self:
        """A copy with both kernels resolved."""
        left, right = self._checked()
        return type(self)(left=left.resolve(X), right=right.resolve(X))

    def _checked(self) -> tuple[InputKernel, InputKernel]:
        """Both kernels, or an error where one is none."""
        for name, kernel in (("left", self.left), ("right", self.right)):
            if not isinstance(kernel, InputKernel):
                raise TypeError(
                    f"{type(self).__name__} joins two input kernels, and its {name} is {kernel!r}; "
                    "pass an object such as RBF(); input_kernel('rbf') makes one from a name."
                )
        return self.left, self.right


class Sum(_Pair, InputKernel):
    """Functions that are a sum of two parts, one of each kernel; ``left + right`` makes it.

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

    def formula(self) -> Formula:
        """A sum."""
        return "sum", {}, self._checked()

    def __call__(self, X: Array, Z: Array) -> Array:
        left, right = self._checked()
        return left(X, Z) + right(X, Z)

    def _slopes(self, X: Array, Z: Array, W: Array) -> Array:
        left, right = self._checked()
        return left._slopes(X, Z, W) + right._slopes(X, Z, W)

    def diag(self, X: Array) -> Array:
        """k(x_i, x_i), (n,)."""
        left, right = self._checked()
        return left.diag(X) + right.diag(X)


class Product(_Pair, InputKernel):
    """Rows are similar only if both kernels find them similar; ``left * right`` makes it.

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

    def formula(self) -> Formula:
        """A product."""
        return "product", {}, self._checked()

    @property
    def stationary(self) -> bool:
        """Whether both factors are stationary."""
        left, right = self._checked()
        return left.stationary and right.stationary

    def __call__(self, X: Array, Z: Array) -> Array:
        left, right = self._checked()
        return left(X, Z) * right(X, Z)

    def _slopes(self, X: Array, Z: Array, W: Array) -> Array:
        left, right = self._checked()
        return left._slopes(X, Z, W * right(X, Z)[None, :, :]) + right._slopes(X, Z, W * left(X, Z)[None, :, :])

    def diag(self, X: Array) -> Array:
        """k(x_i, x_i), (n,)."""
        left, right = self._checked()
        return left.diag(X) * right.diag(X)

    def spectral(self, n_features_in: int, n_components: int, rng: np.random.Generator) -> HostArray:
        """Sums of independent frequencies of the factors, because characteristic functions multiply."""
        first = self.left.spectral(n_features_in, n_components, rng)
        return first + self.right.spectral(n_features_in, n_components, rng)


class _Around:
    """A kernel that changes the inputs of another one, k₀."""

    kernel: InputKernel

    def _inner(self) -> InputKernel:
        if not isinstance(self.kernel, InputKernel) or self.kernel.precomputed:
            raise TypeError(
                f"{type(self).__name__} was given kernel={self.kernel!r}; it must be an input kernel that is computed, "
                "such as RBF()."
            )
        return self.kernel


class _Changing(_Around):
    """k(x, z) = k₀(g(x), g(z))."""

    @abstractmethod
    def _changed(self, X: Array) -> Array:
        """g(x) for the rows of a matrix."""

    def __call__(self, X: Array, Z: Array) -> Array:
        X, Z = matrices(X, Z)
        return self._inner()(self._changed(X), self._changed(Z))

    def diag(self, X: Array) -> Array:
        """k(x_i, x_i), (n,)."""
        return self._inner().diag(self._changed(matrix(X)))


class Scaled(_Changing, InputKernel):
    """Gives each feature its own length scale, 1/s_j times that of k₀.

    k(x, z) = k₀(x∘s, z∘s).

    Parameters
    ----------
    kernel : InputKernel
        k₀. A data dependent ``gamma`` is found from x∘s.
    scales : sequence of float
        s_j ≥ 0, one for each feature; a feature with s_j = 0 is ignored.

    Examples
    --------
    >>> import numpy as np
    >>> from infinitask.kernels import RBF
    >>> Scaled(RBF(gamma=1.0), (1.0, 0.0))(np.array([[1.0, 5.0]]), np.array([[1.0, -7.0]]))
    array([[1.]])
    """

    def __init__(self, kernel: InputKernel, scales: Sequence[float]) -> None:
        self.kernel = kernel
        self.scales = scales

    def formula(self) -> Formula:
        """k₀ of scaled inputs."""
        return "scaled", {"scales": numbers("Scaled: scales", self.scales)}, (self._inner(),)

    @property
    def stationary(self) -> bool:
        """Whether k₀ is stationary."""
        return self._inner().stationary

    def resolve(self, X: Array) -> Self:
        """A copy with k₀ resolved on x∘s."""
        return type(self)(self._inner().resolve(self._changed(matrix(X))), self.scales)

    def _slopes(self, X: Array, Z: Array, W: Array) -> Array:
        inner = self._inner()._slopes(self._changed(X), self._changed(Z), W)
        return inner * as_like(self._numbers(int(X.shape[1])), X)

    def spectral(self, n_features_in: int, n_components: int, rng: np.random.Generator) -> HostArray:
        """Frequencies of k₀, each feature's multiplied by its s_j."""
        return self._numbers(n_features_in)[:, None] * self._inner().spectral(n_features_in, n_components, rng)

    def _changed(self, X: Array) -> Array:
        return X * as_like(self._numbers(int(X.shape[1])), X)

    def _numbers(self, d: int) -> HostArray:
        scales = numbers("Scaled: scales", self.scales)
        if scales.shape != (d,) or not np.all(np.isfinite(scales)) or np.any(scales < 0.0):
            raise ValueError(
                f"Scaled was given scales={self.scales!r} for inputs with {d} columns; it must hold "
                f"{d} finite numbers ≥ 0."
            )
        return scales


class Additive(_Around, InputKernel):
    """Learns sums of functions of one feature each.

    k(x, z) = (1/d) Σ_j k₀(x_j, z_j). With few rows and many features such a sum can be learnt if a function of all
    features together cannot.

    Parameters
    ----------
    kernel : InputKernel
        k₀, of one feature. A data dependent ``gamma`` is found for each feature separately.
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
        """A mean over the features; a single part stands for all of them."""
        return "each", {}, self.parts or (self._inner(),)

    def resolve(self, X: Array) -> Self:
        """A copy with k₀ resolved on every column."""
        X = matrix(X)
        return type(self)(self._inner(), tuple(self._inner().resolve(column) for column in _columns(X)))

    def __call__(self, X: Array, Z: Array) -> Array:
        X, Z = matrices(X, Z)
        if isinstance(X, np.ndarray) and X.dtype == np.float64:
            from ._towards import mean_over_inputs  # that module imports this one

            # in blocks that stay in the cache: 0.08 instead of 0.14 s for 1500 rows and 20 inputs
            gram = mean_over_inputs(self, X, Z)
            if gram is not None:
                return gram
        grams = (part(x, z) for part, x, z in zip(self._each(X), _columns(X), _columns(Z), strict=True))
        return sum(grams, 0.0) / int(X.shape[1])

    def _slopes(self, X: Array, Z: Array, W: Array) -> Array:
        each = zip(self._each(X), _columns(X), _columns(Z), strict=True)
        return namespace(X, Z).concat([part._slopes(x, z, W) for part, x, z in each], axis=2) / int(X.shape[1])

    def diag(self, X: Array) -> Array:
        """k(x_i, x_i), (n,)."""
        X = matrix(X)
        return sum((part.diag(x) for part, x in zip(self._each(X), _columns(X), strict=True)), 0.0) / int(X.shape[1])

    def _each(self, X: Array) -> tuple[InputKernel, ...]:
        """k₀ for each column."""
        d = int(X.shape[1])
        if self.parts is None:
            return (self._inner(),) * d
        if len(self.parts) != d:
            raise ValueError(f"Additive was resolved on {len(self.parts)} columns and is given {d}; give it as many.")
        return self.parts


class Warped(_Changing, InputKernel):
    """Replaces each feature by its normal score, so that tails, outliers and units do not decide which rows are near.

    k(x, z) = k₀(w(x), w(z)), with w_j(x_j) the normal score of x_j among the rows the kernel was resolved on. w_j goes
    through the normal quantiles of the ranks, is linear between neighbouring rows and constant beyond the first and the
    last one. Monotone transformations of a feature make no difference, and a function stays bounded outside the data.

    Parameters
    ----------
    kernel : InputKernel
        k₀. A data dependent ``gamma`` is found from w(x).
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

    def __init__(self, kernel: InputKernel, ranks: Ranks | None = None) -> None:
        self.kernel = kernel
        self.ranks = ranks

    def formula(self) -> Formula:
        """k₀ of normal scores."""
        return "ranks", {"ranks": self.ranks}, (self._inner(),)

    def resolve(self, X: Array) -> Self:
        """A copy that knows the ranks of the rows of X, or those it had already."""
        X = matrix(X)
        ranks = Ranks.of(X) if self.ranks is None else self.ranks
        return type(self)(self._inner().resolve(type(self)(self._inner(), ranks).warp(X)), ranks)

    def warp(self, X: Array) -> Array:
        """w(x) for each row, (n, d)."""
        X = matrix(X)
        xp, known = namespace(X), self._known(X)
        if isinstance(X, np.ndarray) and self.ranks is not None:
            return as_like(self.ranks(X), X)
        # a copy of each column: torch warns when it searches an array that is not contiguous
        columns = [_piecewise_linear(xp.asarray(X[:, j], copy=True), *k) for j, k in enumerate(known)]
        return xp.stack(columns, axis=1)

    def _known(self, X: Array) -> tuple[tuple[HostArray, HostArray], ...]:
        """Values and scores of each column of X."""
        if self.ranks is None:
            raise ValueError("Warped has no ranks yet; call resolve(X) first, which returns a kernel that has.")
        known = self.ranks.columns
        if len(known) != X.shape[1]:
            raise ValueError(f"Warped was resolved on {len(known)} columns and is given {X.shape[1]}; give it as many.")
        return known

    def _changed(self, X: Array) -> Array:
        return self.warp(X)

    def _slopes(self, X: Array, Z: Array, W: Array) -> Array:
        inner = self._inner()._slopes(self.warp(X), self.warp(Z), W)
        xp, known = namespace(X), self._known(X)
        slopes = [_slope(xp.asarray(X[:, j], copy=True), *k) for j, k in enumerate(known)]
        return inner * xp.stack(slopes, axis=1)[None, :, :]


def _piecewise_linear(x: Array, values: HostArray, scores: HostArray) -> Array:
    """The function through (values, scores), constant beyond its ends."""
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
    """The slope of that function; at a value, the mean of the slopes on both sides."""
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
