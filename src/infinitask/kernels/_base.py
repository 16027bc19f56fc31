"""What kernels have in common, and what an input kernel k_X is."""

from __future__ import annotations

import inspect
import math
from abc import ABC
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, clone

from infinitask._base.arrays import Array, HostArray, as_like, namespace

from ._description import Description, Profile
from ._distances import TEMPORARY_ENTRIES, matrices, matrix, one_per_row, positive_gamma
from ._statistics import STATISTICS

if TYPE_CHECKING:
    from ._composed import Product, Sum


Names: TypeAlias = Mapping[str, Mapping[str, Any]]
"""Texts that stand for a kernel, and the parameters that they stand for."""

Named: TypeAlias = dict[str, tuple[type[Any], Mapping[str, Any]]]
"""The class and the parameters for each text."""

Formula: TypeAlias = tuple[str, Mapping[str, Any], tuple["Kernel", ...]]
"""An operation, its numbers, and the kernels inside."""


class Kernel(BaseEstimator, ABC):
    """A parameter object that describes itself.

    Attributes
    ----------
    names : mapping from str to dict
        What a user may give instead of an object, such as "rbf", and the parameters that it stands for. A subclass
        that sets it is found by these names.
    """

    names: ClassVar[Names] = {}
    _named: ClassVar[Named]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name, given in vars(cls).get("names", {}).items():
            cls._named[name] = cls, given

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        # scikit-learn's own takes a second for a sum of ten kernels
        defaults = inspect.signature(type(self)).parameters
        given = {name: _short(value) for name, value in self.get_params(deep=False).items()}
        changed = [f"{name}={text}" for name, text in given.items() if text != repr(defaults[name].default)]
        return f"{type(self).__name__}({', '.join(changed)})"

    @classmethod
    def from_name(cls, name: str, gamma: Any) -> Self:
        """The kernel of that name; ``gamma`` is used if it has one."""
        found, given = cls._named[name]
        return found(**given, **({"gamma": gamma} if "gamma" in found._get_param_names() else {}))  # type: ignore[no-any-return]

    def describe(self) -> Description:
        """What the kernel is, as plain data: an operation, its numbers, and the kernels inside.

        The description of a resolved kernel determines k, and other languages evaluate it. A class that computes its
        Gram matrix by itself and has neither ``profile`` nor ``formula`` is "unknown".
        """
        kind, values, parts = self.formula() if _knows_itself(type(self)) else ("unknown", {}, ())
        return Description(type(self).__name__, kind, values, tuple(part.describe() for part in parts), self)

    def formula(self) -> Formula:
        """The operation, its numbers, and the kernels inside: see ``kernels/_description.py``."""
        return "function", vars(self.profile()), ()

    def profile(self) -> Profile:
        """f and s with k(x, z) = f(s(x, z)), for a kernel of that form."""
        raise TypeError(f"{type(self).__name__} computes nothing yet; implement its profile, or __call__ and diag.")


@lru_cache(maxsize=256)
def _knows_itself(cls: type[Any]) -> bool:
    """Whether the class that computes the Gram matrix also says how: one that derives from ours may do otherwise."""
    saying = {"formula", "profile"}
    own = next(vars(c).keys() for c in cls.__mro__ if vars(c).keys() & (saying | {"__call__", "_gram"}))
    return bool(saying & own)


def _short(value: Any) -> str:
    """The text of a parameter; a matrix is written by its shape."""
    shape = np.array(value, dtype=object).shape if isinstance(value, list) else getattr(value, "shape", ())
    return f"<{' × '.join(map(str, shape))}>" if len(shape) == 2 else repr(value)


class InputKernel(Kernel):
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

    To write another kernel, derive from this class and implement ``profile``; or ``__call__`` and ``diag``, if it is no
    function of a distance or a product. ``names`` lets users give it by name. Without a profile, implement ``_slopes``
    if its functions shall have gradients.
    """

    precomputed: ClassVar[bool] = False
    _named: ClassVar[Named] = {}

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

    def __call__(self, X: Array, Z: Array) -> Array:
        """The Gram matrix (n, p) of X (n, d) and Z (p, d)."""
        profile = self.profile()
        return profile(STATISTICS[profile.of].values(X, Z, positive_gamma(type(self).__name__, profile.gamma)))

    def diag(self, X: Array) -> Array:
        """k(x_i, x_i), (n,)."""
        profile, X = self.profile(), matrix(X)
        if profile.is_distance:
            return profile(0.0 * one_per_row(X))
        X = math.sqrt(positive_gamma(type(self).__name__, profile.gamma)) * X
        return profile(namespace(X).sum(X * X, axis=1))

    def spectral(self, n_features_in: int, n_components: int, rng: np.random.Generator) -> HostArray:
        """Frequencies W (d, n_components), sampled independently, with k(x, z) = E cos(wᵀ(x − z))."""
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
        step = max(1, TEMPORARY_ENTRIES // max(1, int(A.shape[0] * A.shape[1])))
        blocks = [self._slopes(X[i : min(i + step, n), :], Z, W) for i in range(0, max(n, 1), step)]
        return blocks[0] if len(blocks) == 1 else xp.concat(blocks, axis=1)

    def _slopes(self, X: Array, Z: Array, W: Array) -> Array:
        """Σ_j W_sij ∂k(x_i, z_j)/∂x_i, (s, n, d), for weights W of shape (s, n, p) or (s, 1, p)."""
        if self.describe().kind != "function":
            raise TypeError(
                f"The kernel {type(self).__name__} has no gradient in x; the named kernels, Metric, Scaled, Additive, "
                "Warped, sums and products of these have. Use one of them, or implement _slopes of your own kernel."
            )
        profile, gamma = self.profile(), positive_gamma(type(self).__name__, self.profile().gamma)
        values, slopes = STATISTICS[profile.of]
        return slopes(X, Z, W, profile.derivative(values(X, Z, gamma), gamma))

    def __add__(self, other: InputKernel) -> Sum:
        from ._composed import Sum  # that module imports this one

        return Sum(self, other) if isinstance(other, InputKernel) else NotImplemented

    def __mul__(self, other: InputKernel) -> Product:
        from ._composed import Product

        return Product(self, other) if isinstance(other, InputKernel) else NotImplemented


# The class itself is abstract, a subclass is not: it may give its profile, or __call__ and diag.
InputKernel.__abstractmethods__ = frozenset({"profile"})
