"""Kernels that the caller computes, by a function or as a matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from infinitask._base.arrays import Array, as_like, namespace, row_blocks

from ._base import Formula, InputKernel, Names
from ._distances import FEW_ROWS, matrices, matrix


class CallableKernel(InputKernel):
    """Wraps a function of two matrices that returns their Gram matrix.

    k(X, Z) = function(X, Z).

    Parameters
    ----------
    function : callable
        ``function(X, Z)`` maps (n, d) and (p, d) to the Gram matrix (n, p) of a positive semi-definite kernel.

    Examples
    --------
    >>> import numpy as np
    >>> CallableKernel(lambda X, Z: X @ Z.T)(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[11.]])
    """

    def __init__(self, function: Callable[[Array, Array], Array]) -> None:
        self.function = function

    def formula(self) -> Formula:
        """A function of Python."""
        return "python", {}, ()

    def __call__(self, X: Array, Z: Array) -> Array:
        X, Z = matrices(X, Z)
        if not callable(self.function):
            raise TypeError(f"CallableKernel: function={self.function!r} was given; it must be a function of (X, Z).")
        gram = as_like(self.function(X, Z), X)
        if tuple(gram.shape) != (X.shape[0], Z.shape[0]):
            raise ValueError(
                f"The function of the kernel returned shape {tuple(gram.shape)} for X {tuple(X.shape)} and Z "
                f"{tuple(Z.shape)}; expected {(X.shape[0], Z.shape[0])}. It takes two matrices, not two rows."
            )
        return gram

    def diag(self, X: Array) -> Array:
        """k(x_i, x_i), (n,), from small square blocks: the function can only make whole Gram matrices."""
        X = matrix(X)
        xp, blocks = namespace(X), row_blocks(X.shape[0], 1, FEW_ROWS) or [slice(0, 0)]
        return xp.concat([xp.linalg.diagonal(self(X[rows, :], X[rows, :])) for rows in blocks])


class Precomputed(InputKernel):
    """Stands for a Gram matrix that the caller has computed.

    X holds the rows k(x, x_1), …, k(x, x_n) for the n training points. The attribute ``precomputed`` tells the builders
    of features to take columns of X instead of calling the kernel.

    Examples
    --------
    >>> Precomputed().precomputed
    True
    """

    precomputed: ClassVar[bool] = True
    names: ClassVar[Names] = {"precomputed": {}}

    def formula(self) -> Formula:
        """A matrix that the caller computes."""
        return "precomputed", {}, ()

    def __call__(self, X: Array, Z: Array) -> Array:
        raise TypeError(
            "A precomputed kernel cannot be evaluated: X holds rows of its Gram matrix. Take their columns, or use "
            "a kernel of inputs, for example 'rbf', where kernel values at new points are needed."
        )

    def diag(self, X: Array) -> Array:
        """An error: the place of a row in the Gram matrix is not known here."""
        return self(X, X)
