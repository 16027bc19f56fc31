"""Kernels that the caller computes, by a function or as a matrix; and :func:`input_kernel`, which takes any kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from sklearn.base import BaseEstimator

from infinitask._base.arrays import Array, as_like, namespace

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
        xp, n = namespace(X), X.shape[0]
        blocks = [X[i : min(i + FEW_ROWS, n), :] for i in range(0, max(n, 1), FEW_ROWS)]
        return xp.concat([xp.linalg.diagonal(self(block, block)) for block in blocks])


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


def input_kernel(spec: Any, gamma: float | str = "median") -> InputKernel:
    """The input kernel that a name, a function or a kernel object stands for.

    Parameters
    ----------
    spec : str, InputKernel or callable
        "rbf", "laplacian", "matern12", "matern32", "matern52", "chi2", "linear", "poly" (or "polynomial"),
        "precomputed", or one of the ``names`` of your own class; a kernel object, returned as it is; or a function
        f(X, Z) of two matrices that returns their Gram matrix.
    gamma : float, "median" or "scale", default="median"
        For names of kernels that have one (see :func:`takes_gamma`); an object has its own.

    Returns
    -------
    InputKernel

    Examples
    --------
    >>> input_kernel("matern52", gamma=2.0)
    Matern(gamma=2.0, nu=2.5)
    """
    if isinstance(spec, InputKernel):
        return spec
    if isinstance(spec, str) and spec in InputKernel._named:
        return InputKernel.from_name(spec, gamma)
    # A class, or some other estimator, is callable too, but not a function of two matrices.
    if callable(spec) and not isinstance(spec, type | BaseEstimator | str):
        return CallableKernel(spec)
    raise ValueError(
        f"kernel={spec!r} is not an input kernel; expected one of {', '.join(map(repr, InputKernel._named))}, "
        "an object such as RBF(gamma=0.5), or a function of two matrices that returns their Gram matrix."
    )


def takes_gamma(spec: Any) -> bool:
    """Whether :func:`input_kernel` uses its ``gamma`` for this ``spec``.

    True for names of kernels that have one. False for "linear" and "precomputed", for kernel objects, which have their
    own, and for functions.

    Examples
    --------
    >>> from infinitask.kernels import RBF
    >>> takes_gamma("rbf"), takes_gamma("linear"), takes_gamma(RBF())
    (True, False, False)
    """
    return isinstance(spec, str) and "gamma" in input_kernel(spec).get_params(deep=False)
