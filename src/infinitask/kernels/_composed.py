"""Kernels that tell the inputs apart: a length scale for each, or a function of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from infinitask._array import Array, HostArray, as_like

from ._base import InputKernel
from ._checks import matrices, matrix

__all__ = ["Additive", "Scaled"]


class _Around(InputKernel):
    """A kernel made of another one."""

    kernel: InputKernel

    def _inner(self) -> InputKernel:
        if not isinstance(self.kernel, InputKernel) or self.kernel.precomputed:
            raise TypeError(
                f"{type(self).__name__} was given kernel={self.kernel!r}; expected an input kernel that is computed, "
                "such as RBF()."
            )
        return self.kernel


class Scaled(_Around):
    """k(x, z) = k₀(x∘s, z∘s): each input has a length scale of its own, 1/s_j times that of k₀.

    Parameters
    ----------
    kernel : InputKernel
        k₀. A ``gamma`` that follows the data follows x∘s.
    scales : sequence of float
        s_j ≥ 0, one for each input; an input with s_j = 0 is ignored.

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

    @property
    def stationary(self) -> bool:
        """Whether k₀ is."""
        return self._inner().stationary

    def resolve(self, X: Array) -> Self:
        """A copy with k₀ resolved on x∘s."""
        return type(self)(self._inner().resolve(self._scaled(matrix(X))), self.scales)

    def __call__(self, X: Array, Z: Array) -> Array:
        X, Z = matrices(X, Z)
        return self._inner()(self._scaled(X), self._scaled(Z))

    def diag(self, X: Array) -> Array:
        """k(x_i, x_i), (n,)."""
        return self._inner().diag(self._scaled(matrix(X)))

    def spectral(self, n_features_in: int, n_components: int, rng: np.random.Generator) -> HostArray:
        """Frequencies of k₀, those of an input times its s_j."""
        return self._numbers(n_features_in)[:, None] * self._inner().spectral(n_features_in, n_components, rng)

    def _scaled(self, X: Array) -> Array:
        return X * as_like(self._numbers(int(X.shape[1])), X)

    def _numbers(self, d: int) -> HostArray:
        scales = np.asarray(self.scales, dtype=float)
        if scales.shape != (d,) or not np.all(np.isfinite(scales)) or np.any(scales < 0.0):
            raise ValueError(
                f"Scaled was given scales={self.scales!r} for inputs with {d} columns; expected {d} finite numbers ≥ 0."
            )
        return scales


class Additive(_Around):
    """k(x, z) = (1/d) Σ_j k₀(x_j, z_j): functions that are sums of functions of one input each.

    With few rows and many inputs such a function is learnt where one of all inputs together is not.

    Parameters
    ----------
    kernel : InputKernel
        k₀, of one input. A ``gamma`` that follows the data is found for each input by itself.

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

    def resolve(self, X: Array) -> Self:
        """A copy with k₀ resolved on every column."""
        X = matrix(X)
        return type(self)(self._inner(), tuple(self._inner().resolve(column) for column in _columns(X)))

    def __call__(self, X: Array, Z: Array) -> Array:
        X, Z = matrices(X, Z)
        total: Any = 0.0
        for part, x, z in zip(self._each(X), _columns(X), _columns(Z), strict=True):
            total = total + part(x, z)
        return total / int(X.shape[1])

    def diag(self, X: Array) -> Array:
        """k(x_i, x_i), (n,)."""
        X = matrix(X)
        total: Any = 0.0
        for part, x in zip(self._each(X), _columns(X), strict=True):
            total = total + part.diag(x)
        return total / int(X.shape[1])

    def _each(self, X: Array) -> tuple[InputKernel, ...]:
        """k₀ for each column."""
        d = int(X.shape[1])
        if self.parts is None:
            return (self._inner(),) * d
        if len(self.parts) != d:
            raise ValueError(f"Additive was resolved on {len(self.parts)} columns and is given {d}; give it as many.")
        return self.parts


def _columns(X: Array) -> list[Array]:
    return [X[:, j : j + 1] for j in range(int(X.shape[1]))]
