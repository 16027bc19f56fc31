"""What an input kernel k_X is, and the kernels without a formula of their own.

These are sums and products of kernels, which ``+`` and ``*`` make, functions and known matrices.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from infinitask._array import Array, HostArray, as_like, namespace

from ._checks import matrices, matrix

__all__ = ["CallableKernel", "InputKernel", "Precomputed", "Product", "Sum"]


class InputKernel(BaseEstimator, ABC):
    """k_X(x, z), a positive semi-definite function of two rows.

    ``kernel.resolve(X)`` turns a data dependent ``gamma`` into a number, in a new object; the resolved kernel
    maps X (n, d) and Z (p, d) to the Gram matrix (n, p). Kernels add and multiply: ``RBF() + Linear()``.

    Notes
    -----
    A ``gamma`` is a positive number or one of two rules:

    * ``"median"``: the typical distance of two rows is where the kernel has decayed, γ = 1/(2σ²) for kernels of
      the Euclidean distance and γ = 1/σ for the others, with σ the median distance over the pairs of at most
      1000 evenly spaced rows. Where more than half of these pairs coincide, σ is the mean of the positive
      distances; where all do, γ = 1.
    * ``"scale"``: γ = 1/(d·Var(X)), the variance taken over all entries, as scikit-learn's SVMs have it; 1 for
      a constant X.

    To write another kernel, derive from this class and implement ``__call__`` and ``diag``.
    """

    precomputed: ClassVar[bool] = False

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        # every fit names its kernel, and scikit-learn's own takes a second for a sum of ten kernels
        defaults = inspect.signature(type(self)).parameters
        given = self.get_params(deep=False)
        changed = [f"{k}={v!r}" for k, v in given.items() if repr(v) != repr(defaults[k].default)]
        return f"{type(self).__name__}({', '.join(changed)})"

    @property
    def stationary(self) -> bool:
        """Whether k(x, z) depends on x − z only and k(x, x) = 1."""
        return False

    def resolve(self, X: Array) -> Self:
        """A copy whose data dependent parameters are numbers."""
        return clone(self)  # type: ignore[no-any-return]

    @abstractmethod
    def __call__(self, X: Array, Z: Array) -> Array:
        """The Gram matrix (n, p) of X (n, d) and Z (p, d)."""

    @abstractmethod
    def diag(self, X: Array) -> Array:
        """k(x_i, x_i), (n,)."""

    def spectral(self, n_features_in: int, n_components: int, rng: np.random.Generator) -> HostArray:
        """Frequencies W (d, n_components), independent draws w with k(x, z) = E cos(wᵀ(x − z))."""
        raise TypeError(
            f"{type(self).__name__} has no random Fourier features; RBF, Laplacian, Matern and products of these "
            "have. Use one of them, or features that need Gram matrices only, such as Nyström's."
        )

    def __add__(self, other: InputKernel) -> Sum:
        return Sum(self, other) if isinstance(other, InputKernel) else NotImplemented

    def __mul__(self, other: InputKernel) -> Product:
        return Product(self, other) if isinstance(other, InputKernel) else NotImplemented


class _Pair(InputKernel):
    """Two kernels joined."""

    left: InputKernel
    right: InputKernel

    def resolve(self, X: Array) -> Self:
        """The same pair of resolved kernels."""
        for name, kernel in (("left", self.left), ("right", self.right)):
            if not isinstance(kernel, InputKernel):
                raise TypeError(
                    f"{type(self).__name__} joins two input kernels, and its {name} is {kernel!r}; "
                    "pass an object such as RBF() (input_kernel('rbf') makes one of a name)."
                )
        return type(self)(left=self.left.resolve(X), right=self.right.resolve(X))


class Sum(_Pair):
    """k(x, z) = k_left(x, z) + k_right(x, z); ``left + right`` is the same.

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

    def __init__(self, left: InputKernel, right: InputKernel) -> None:
        self.left = left
        self.right = right

    def __call__(self, X: Array, Z: Array) -> Array:
        return self.left(X, Z) + self.right(X, Z)

    def diag(self, X: Array) -> Array:
        """k(x_i, x_i), (n,)."""
        return self.left.diag(X) + self.right.diag(X)


class Product(_Pair):
    """k(x, z) = k_left(x, z) · k_right(x, z); ``left * right`` is the same.

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

    def __init__(self, left: InputKernel, right: InputKernel) -> None:
        self.left = left
        self.right = right

    @property
    def stationary(self) -> bool:
        """Whether both factors are."""
        return self.left.stationary and self.right.stationary

    def __call__(self, X: Array, Z: Array) -> Array:
        return self.left(X, Z) * self.right(X, Z)

    def diag(self, X: Array) -> Array:
        """k(x_i, x_i), (n,)."""
        return self.left.diag(X) * self.right.diag(X)

    def spectral(self, n_features_in: int, n_components: int, rng: np.random.Generator) -> HostArray:
        """Sums of independent frequencies of the factors, because characteristic functions multiply."""
        first = self.left.spectral(n_features_in, n_components, rng)
        return first + self.right.spectral(n_features_in, n_components, rng)


class CallableKernel(InputKernel):
    """k(x, z) given by a function of two matrices.

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

    def __call__(self, X: Array, Z: Array) -> Array:
        X, Z = matrices(X, Z)
        gram = as_like(self.function(X, Z), X)
        if tuple(gram.shape) != (X.shape[0], Z.shape[0]):
            raise ValueError(
                f"The kernel function returned shape {tuple(gram.shape)} for X {tuple(X.shape)} and Z "
                f"{tuple(Z.shape)}; expected {(X.shape[0], Z.shape[0])}. It takes two matrices, not two rows."
            )
        return gram

    def diag(self, X: Array) -> Array:
        """k(x_i, x_i), (n,), from small square blocks: the function only makes whole Gram matrices."""
        X = matrix(X)
        xp, n, size = namespace(X), X.shape[0], 32
        blocks = [X[i : min(i + size, n), :] for i in range(0, max(n, 1), size)]
        return xp.concat([xp.linalg.diagonal(self(block, block)) for block in blocks])


class Precomputed(InputKernel):
    """k(x, z) known as a matrix: X holds the rows k(x, x_1), …, k(x, x_n) for the n training points.

    There is nothing to compute. The attribute ``precomputed`` tells whoever builds features to take columns of
    X instead of calling the kernel.

    Examples
    --------
    >>> Precomputed().precomputed
    True
    """

    precomputed: ClassVar[bool] = True

    def __call__(self, X: Array, Z: Array) -> Array:
        raise TypeError(self._message)

    def diag(self, X: Array) -> Array:
        """Refuse: where a row stands in the Gram matrix is not known here."""
        raise TypeError(self._message)

    @property
    def _message(self) -> str:
        return (
            "A precomputed kernel cannot be evaluated: X holds rows of its Gram matrix. Take their columns, or use "
            "a kernel of inputs, for example 'rbf', where kernel values at new points are needed."
        )
