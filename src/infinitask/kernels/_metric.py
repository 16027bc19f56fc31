"""A kernel that measures distances in a metric of its own."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from infinitask._array import Array, HostArray, as_like
from infinitask._validation import numbers

from ._base import InputKernel
from ._composed import _Around
from ._distances import matrices, matrix


class Metric(_Around):
    """Compares inputs along chosen directions: distances become √((x − z)ᵀ R Rᵀ (x − z)).

    k(x, z) = k₀(xR, zR). The columns of R are the directions that count, and their lengths say how much.
    :class:`Scaled` is the case of a diagonal R.

    Parameters
    ----------
    kernel : InputKernel
        k₀. A data dependent ``gamma`` is found from xR.
    root : array (d, p)
        R.

    Examples
    --------
    >>> import numpy as np
    >>> from infinitask.kernels import RBF
    >>> kernel = Metric(RBF(gamma=1.0), [[1.0], [-1.0]])
    >>> kernel(np.array([[1.0, 5.0]]), np.array([[2.0, 6.0]]))  # the sum of both inputs does not count
    array([[1.]])
    >>> kernel
    Metric(kernel=RBF(gamma=1.0), root=<2 × 1>)
    """

    def __init__(self, kernel: InputKernel, root: Any) -> None:
        self.kernel = kernel
        self.root = root

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        # short: a learnt root has as many numbers as there are pairs of inputs
        return f"{type(self).__name__}(kernel={self.kernel!r}, root=<{' × '.join(map(str, np.shape(self.root)))}>)"

    @property
    def stationary(self) -> bool:
        """Whether k₀ is stationary."""
        return self._inner().stationary

    def resolve(self, X: Array) -> Self:
        """A copy with k₀ resolved on xR."""
        return type(self)(self._inner().resolve(self._turned(matrix(X))), self.root)

    def __call__(self, X: Array, Z: Array) -> Array:
        X, Z = matrices(X, Z)
        return self._inner()(self._turned(X), self._turned(Z))

    def diag(self, X: Array) -> Array:
        """k(x_i, x_i), (n,)."""
        return self._inner().diag(self._turned(matrix(X)))

    def spectral(self, n_features_in: int, n_components: int, rng: np.random.Generator) -> HostArray:
        """R w for the frequencies w of k₀."""
        root = self._numbers(n_features_in)
        return np.asarray(root @ self._inner().spectral(root.shape[1], n_components, rng))

    def _slopes(self, X: Array, Z: Array, W: Array) -> Array:
        inner = self._inner()._slopes(self._turned(X), self._turned(Z), W)
        return inner @ as_like(self._numbers(int(X.shape[1])).T, X)

    def _turned(self, X: Array) -> Array:
        return X @ as_like(self._numbers(int(X.shape[1])), X)

    def _numbers(self, d: int) -> HostArray:
        root: HostArray = self.root
        if type(root) is not np.ndarray or root.dtype != np.float64:
            root = numbers("Metric: root", root)
        if root.ndim != 2 or root.shape[0] != d or root.shape[1] == 0 or not np.all(np.isfinite(root)):
            raise ValueError(
                f"Metric was given a root of shape {root.shape} for inputs with {d} columns; it must be an array "
                f"({d}, p) of finite numbers, with a column for each direction."
            )
        return root
