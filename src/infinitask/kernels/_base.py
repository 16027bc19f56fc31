"""What an input kernel k_X is, and the two kinds without a formula of ours: functions and known matrices."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from infinitask._base.arrays import Array, HostArray, as_like, namespace

from ._distances import matrices, matrix

if TYPE_CHECKING:
    from ._composed import Product, Sum


DIAGONAL_BLOCK = 32
"""Rows of the square blocks from which a function's diagonal is read."""

GRADIENT_ENTRIES = 2**21
"""Pairs of rows, times functions, that a gradient holds at a time: 16 MiB of float64."""


class InputKernel(BaseEstimator, ABC):
    """Says how similar two rows of X are.

    k_X(x, z) is a positive semi-definite function of two rows. ``kernel.resolve(X)`` returns a copy in which a data
    dependent ``gamma`` is a number; the copy maps X (n, d) and Z (p, d) to the Gram matrix (n, p). Kernels can be added
    and multiplied: ``RBF() + Linear()``.

    Notes
    -----
    A ``gamma`` is a positive number or one of two rules:

    * ``"median"``: the typical distance of two rows is where the kernel has decayed, γ = 1/(2σ²) for kernels of
      the Euclidean distance and γ = 1/σ for the others, with σ the median distance over the pairs of at most
      1000 evenly spaced rows. Where more than half of these pairs coincide, σ is the mean of the positive
      distances; where all do, γ = 1.
    * ``"scale"``: γ = 1/(d·Var(X)), the variance taken over all entries, as scikit-learn's SVMs have it; 1 for
      a constant X.

    To write another kernel, derive from this class and implement ``__call__`` and ``diag``; and ``_slopes``, if its
    functions shall have gradients.
    """

    precomputed: ClassVar[bool] = False

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        # scikit-learn's own takes a second for a sum of ten kernels
        defaults = inspect.signature(type(self)).parameters
        given = self.get_params(deep=False)
        changed = [f"{k}={v!r}" for k, v in given.items() if repr(v) != repr(defaults[k].default)]
        return f"{type(self).__name__}({', '.join(changed)})"

    @property
    def stationary(self) -> bool:
        """Whether k(x, z) depends on x − z only and k(x, x) = 1."""
        return False

    @property
    def needs_targets(self) -> bool:
        """Whether the kernel, or a part of it, is learnt from targets; ``resolve`` is an error then."""
        parts = self.get_params(deep=False).values()
        return any(part.needs_targets for part in parts if isinstance(part, InputKernel))

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
            f"The kernel {type(self).__name__} has no random Fourier features; RBF, Laplacian, Matern and products of "
            "these have. Use one of them, or features that need only Gram matrices, such as Nyström's."
        )

    def gradient(self, X: Array, Z: Array, A: Array) -> Array:
        """The gradients in x of the functions f_s(x) = Σ_j k(x, z_j) A_js, at the rows of X.

        Where a kernel has a kink the mean of the slopes on both sides is taken: 0 at z_j for a function of ‖x − z_j‖.

        Parameters
        ----------
        X : array (n, d)
        Z : array (p, d)
        A : array (p, s)

        Returns
        -------
        array (s, n, d)

        Examples
        --------
        >>> import numpy as np
        >>> from infinitask.kernels import Linear
        >>> Linear().gradient(np.zeros((1, 2)), np.array([[3.0, 4.0]]), np.ones((1, 1)))
        array([[[3., 4.]]])
        """
        X, Z = matrices(X, Z)
        xp, n = namespace(X, Z), int(X.shape[0])
        A = as_like(A, X)
        if A.ndim != 2 or A.shape[0] != Z.shape[0]:
            raise ValueError(
                f"Coefficients of shape {tuple(A.shape)} were given for {Z.shape[0]} rows of Z; expected "
                f"({Z.shape[0]}, s), a column for each function."
            )
        W = xp.matrix_transpose(A)[:, None, :]
        step = max(1, GRADIENT_ENTRIES // max(1, int(A.shape[0] * A.shape[1])))
        blocks = [self._slopes(X[i : min(i + step, n), :], Z, W) for i in range(0, max(n, 1), step)]
        return blocks[0] if len(blocks) == 1 else xp.concat(blocks, axis=1)

    def _slopes(self, X: Array, Z: Array, W: Array) -> Array:
        """Σ_j W_sij ∂k(x_i, z_j)/∂x_i, (s, n, d), for weights W of shape (s, n, p) or (s, 1, p)."""
        raise TypeError(
            f"The kernel {type(self).__name__} has no gradient in x; the named kernels, Metric, Scaled, Additive, "
            "Warped, sums and products of these have. Use one of them, or implement _slopes of your own kernel."
        )

    def __add__(self, other: InputKernel) -> Sum:
        from ._composed import Sum  # that module imports this one

        return Sum(self, other) if isinstance(other, InputKernel) else NotImplemented

    def __mul__(self, other: InputKernel) -> Product:
        from ._composed import Product

        return Product(self, other) if isinstance(other, InputKernel) else NotImplemented


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
        blocks = [X[i : min(i + DIAGONAL_BLOCK, n), :] for i in range(0, max(n, 1), DIAGONAL_BLOCK)]
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

    def __call__(self, X: Array, Z: Array) -> Array:
        raise TypeError(
            "A precomputed kernel cannot be evaluated: X holds rows of its Gram matrix. Take their columns, or use "
            "a kernel of inputs, for example 'rbf', where kernel values at new points are needed."
        )

    def diag(self, X: Array) -> Array:
        """An error: the place of a row in the Gram matrix is not known here."""
        return self(X, X)
