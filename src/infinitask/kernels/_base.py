"""The base classes of all kernels and of input kernels k_X, and the description of a kernel as plain data.

``kernel.describe()`` returns a :class:`Description`. An HTML page, an ONNX graph, predictions and the command line
use it, and do not check the class of a kernel. Its ``kind`` is one of a few operations:

=============  ==================  ===========================================================================
kind           values              k(x, z)
=============  ==================  ===========================================================================
"function"     those of a Profile  f(s(x, z)) for a distance, a product or another number s of the pair
"sum"                              Σ_i k_i(x, z) over the parts
"product"                          Π_i k_i(x, z)
"scaled"       scales (d,)         k₀(x∘scales, z∘scales)
"metric"       root (d, p)         k₀(xR, zR)
"ranks"        ranks               k₀(w(x), w(z)), with w_j linear through ``ranks.columns[j]``, constant beyond
"each"                             (1/d) Σ_j k_j(x_j, z_j); a single part applies to all features
"matrix"       matrix, tasks       A_ij for the tasks with the names i and j
"classes"      n_classes, coupled  k₀(θ, θ')·δ, or k₀(θ, θ')·(K δ − 1)/(K − 1), δ from the last coordinate
"python"                           a Python function
"precomputed"                      a Gram matrix that the caller computes
"unknown"                          known to the kernel itself only
=============  ==================  ===========================================================================
"""

from __future__ import annotations

import inspect
from abc import ABC
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias, final

import numpy as np
from sklearn.base import BaseEstimator, clone

from infinitask._base.arrays import Array, HostArray, as_like, namespace, row_blocks

from ._distances import STATISTICS, decay, matrices, matrix, positive_gamma

if TYPE_CHECKING:
    from ._composed import Product, Sum


@final
@dataclass(frozen=True, eq=False)
class Profile:
    """k(x, z) = f(u) for a number s(x, z) of each pair, with u = factor·γ·s + offset, or √(factor·γ·s) + offset.

    f(u) = Σ_i u^i/series_i · exp(−u) if there is a series, and u^power otherwise.

    Parameters
    ----------
    of : {"squared", "l1", "chi2", "product", "minimum", "equal"}
        s: ‖x − z‖², ‖x − z‖₁, Σ_k (x_k − z_k)²/(x_k + z_k), xᵀz, min(x, z), or 1 if x = z and 0 otherwise.
    gamma : float or str
        γ; the name of a rule if the kernel is not resolved.
    factor : float
    root : bool
    series : tuple of float
        Divisors of the powers of u; the first two are 1.
    offset, power : float

    Examples
    --------
    >>> import numpy as np
    >>> Profile("squared", gamma=2.0, series=(1.0,))(np.array([0.0, 1.0])).round(3)  # of γ·s
    array([1.   , 0.368])
    """

    of: str
    gamma: Any = 1.0
    factor: float = 1.0
    root: bool = False
    series: tuple[float, ...] = ()
    offset: float = 0.0
    power: float = 1

    @property
    def is_exponential(self) -> bool:
        """Whether k = exp(−γ·s)."""
        return self.series == (1.0,) and self.factor == 1.0 and self.offset == 0.0 and not self.root

    @property
    def is_linear(self) -> bool:
        """Whether k = xᵀz."""
        plain = self.gamma == self.factor == self.power == 1.0 and self.offset == 0.0
        return self.of == "product" and plain and not (self.root or self.series)

    @property
    def is_smooth(self) -> bool:
        """Whether f has a finite slope in s at 0."""
        return not self.root or len(self.series) > 1

    def __call__(self, s: Array) -> Array:
        """Return f for an array of γ·s(x, z), which is overwritten."""
        return self.at(s, lambda u: namespace(u).sqrt(u), decay)

    def at(self, s: Any, sqrt: Callable[[Any], Any], decay: Callable[[Any], Any]) -> Any:
        """Return f for any object with the arithmetic of arrays; ``decay`` is exp(−u)."""
        u = self.argument(s, sqrt)
        if not self.series:
            return u if self.power == 1 else u**self.power
        if len(self.series) == 1:
            return decay(u)
        return self.polynomial(u) * decay(u)  # last, because it may overwrite u

    def argument(self, s: Any, sqrt: Callable[[Any], Any]) -> Any:
        """Return u, given γ·s."""
        u = s if self.factor == 1.0 else s * self.factor
        u = sqrt(u) if self.root else u
        return u if self.offset == 0.0 else u + self.offset

    def polynomial(self, u: Any) -> Any:
        """Return Σ_i u^i/series_i, for more than one term."""
        total, power = 1.0 + u, u
        for divisor in self.series[2:]:
            power = power * u
            total = total + power / divisor
        return total

    def slope(self, u: Any, divided: bool = False) -> Any:
        """Return the polynomial in f′(u) = slope(u)·exp(−u) of a series, ``divided`` by u if it has several terms."""
        coefficients = [1.0 / divisor for divisor in self.series] + [0.0]
        terms = [(i + 1) * coefficients[i + 1] - c for i, c in enumerate(coefficients[:-1])]
        total = u * 0.0 + terms[-1]
        for term in terms[-2 : 0 if divided else None : -1]:
            total = total * u + term
        return total

    def derivative(self, s: Array, rate: float) -> Array:
        """Return ``rate`` times the derivative of f at an array of γ·s, which is overwritten; 0 at a kink."""
        xp = namespace(s)
        u = self.argument(s, xp.sqrt)
        if not self.series:
            return rate * self.factor * self.power * u ** (self.power - 1)
        if not self.root:
            return (rate * self.factor) * (self.slope(u) * decay(u))
        if len(self.series) > 1:
            polynomial = self.slope(u, divided=True)
        else:
            away = xp.astype(u > 0, u.dtype)
            polynomial = -away / (u + (1.0 - away))
        return (0.5 * rate * self.factor) * (polynomial * decay(u))


@final
@dataclass(frozen=True, eq=False)
class Description:
    """A kernel as plain data: an operation, its values, and the inner kernels. ``str`` equals ``repr`` of the kernel.

    Parameters
    ----------
    name : str
        The name of the class.
    kind : str
        The operation; see the table in the module docstring.
    values : mapping
        Numbers, arrays and strings that the operation needs.
    parts : tuple of Description
    kernel : Kernel
        The kernel itself, which Python can call; other readers ignore it.

    Examples
    --------
    >>> from infinitask.kernels import RBF, Linear, Scaled
    >>> found = (Scaled(RBF(gamma=0.5), (1.0, 2.0)) + Linear()).describe()
    >>> found.kind, found.outline
    ('sum', 'Sum(Scaled(RBF), Linear)')
    >>> found.parts[0].parts[0].values["gamma"]
    0.5
    """

    name: str
    kind: str
    values: Mapping[str, Any]
    parts: tuple[Description, ...]
    kernel: Kernel = field(repr=False)

    def __str__(self) -> str:
        return repr(self.kernel)

    @property
    def outline(self) -> str:
        """The names of the kernels without their parameters, such as Scaled(RBF)."""
        names = [part.outline for part in self.parts]
        if self.kind == "each":
            names = list(dict.fromkeys(names))
        return self.name + (f"({', '.join(names)})" if names else "")

    @property
    def profile(self) -> Profile | None:
        """f and s if the kind is "function"."""
        return Profile(**self.values) if self.kind == "function" else None


Names: TypeAlias = Mapping[str, Mapping[str, Any]]
"""The strings that select a kernel, and the parameters that they imply."""

Named: TypeAlias = dict[str, Callable[[], Any]]
"""The constructor of the kernel for each string."""

Formula: TypeAlias = tuple[str, Mapping[str, Any], tuple["Kernel", ...]]
"""An operation, its values, and the inner kernels."""


class Kernel(BaseEstimator, ABC):
    """A parameter object that describes itself.

    Attributes
    ----------
    names : mapping from str to dict
        The strings that a user may pass instead of an object, such as "rbf", and the parameters that they imply. A
        subclass that sets it can be selected by these names.
    """

    names: ClassVar[Names] = {}
    _named: ClassVar[Named]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name, given in vars(cls).get("names", {}).items():
            cls._named[name] = partial(cls, **given)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        # that of scikit-learn takes a second for a sum of ten kernels
        defaults = inspect.signature(type(self)).parameters
        given = {name: _short(value) for name, value in self.get_params(deep=False).items()}
        changed = [f"{name}={text}" for name, text in given.items() if text != repr(defaults[name].default)]
        return f"{type(self).__name__}({', '.join(changed)})"

    def describe(self) -> Description:
        """Return the kernel as plain data: an operation, its values, and the inner kernels.

        The description of a resolved kernel determines k, so other languages can evaluate it. A class that computes its
        Gram matrix itself and has neither ``profile`` nor ``formula`` is "unknown".
        """
        kind, values, parts = self.formula() if _knows_itself(type(self)) else ("unknown", {}, ())
        return Description(type(self).__name__, kind, values, tuple(part.describe() for part in parts), self)

    def formula(self) -> Formula:
        """Return the operation, its values, and the inner kernels; see the table in the module docstring."""
        return "function", vars(self.profile()), ()

    def profile(self) -> Profile:
        """Return f and s if the kernel has the form k(x, z) = f(s(x, z))."""
        raise TypeError(f"{type(self).__name__} computes nothing yet; implement its profile, or __call__ and diag.")


def _knows_itself(cls: type[Any]) -> bool:
    """Whether the class that computes the Gram matrix also describes it; a subclass may override only the former."""
    saying = {"formula", "profile"}
    own = next(vars(c).keys() for c in cls.__mro__ if vars(c).keys() & (saying | {"__call__", "_gram"}))
    return bool(saying & own)


def _short(value: Any) -> str:
    """Return the text of a parameter; a matrix is shown by its shape."""
    shape = np.array(value, dtype=object).shape if isinstance(value, list) else getattr(value, "shape", ())
    return f"<{' × '.join(map(str, shape))}>" if len(shape) == 2 else repr(value)


class InputKernel(Kernel):
    """A kernel on the rows of X: it measures how similar two rows are.

    k_X(x, z) is a positive semi-definite function of two rows. ``kernel.resolve(X)`` returns a copy in which a
    data-dependent ``gamma`` is a number. The copy maps X (n, d) and Z (p, d) to the Gram matrix (n, p). Kernels can be
    added and multiplied: ``RBF() + Linear()``.

    Notes
    -----
    A ``gamma`` is a positive number or one of two rules:

    * ``"median"``: the length scale is the typical distance of two rows. γ = 1/(2σ²) for kernels of
      the Euclidean distance and γ = 1/σ for the others, with σ the median distance over the pairs of at most
      1000 evenly spaced rows. σ is the mean of the positive
      distances if more than half of these pairs coincide, and γ = 1 if all do.
    * ``"scale"``: γ = 1/(d·Var(X)), with the variance over all entries, as in scikit-learn's SVMs; 1 for
      a constant X.

    To write another kernel, derive from this class and implement ``profile``, or ``__call__`` and ``diag`` if it is not
    a function of a distance or a product. ``names`` lets users select it by name. Without a profile, implement
    ``_slopes`` if its functions need gradients.
    """

    precomputed: ClassVar[bool] = False
    _named: ClassVar[Named] = {}

    @property
    def stationary(self) -> bool:
        """Whether k(x, z) depends on x − z only and k(x, x) = 1."""
        return False

    @property
    def needs_targets(self) -> bool:
        """Whether the kernel, or a part of it, is learnt from targets; ``resolve`` then raises an error."""
        parts = self.get_params(deep=False).values()
        return any(part.needs_targets for part in parts if isinstance(part, InputKernel))

    def resolve(self, X: Array) -> Self:
        """Return a copy whose data-dependent parameters are numbers."""
        return clone(self)  # type: ignore[no-any-return]

    def __call__(self, X: Array, Z: Array) -> Array:
        """Return the Gram matrix (n, p) of X (n, d) and Z (p, d)."""
        profile, gamma = self._resolved()
        return profile(STATISTICS[profile.of].values(X, Z, gamma))

    def diag(self, X: Array) -> Array:
        """Return k(x_i, x_i), (n,)."""
        profile, gamma = self._resolved()
        return profile(STATISTICS[profile.of].own(matrix(X), gamma))

    def spectral(self, n_features_in: int, n_components: int, rng: np.random.Generator) -> HostArray:
        """Return independently sampled frequencies W (d, n_components) with k(x, z) = E cos(wᵀ(x − z))."""
        raise TypeError(
            f"The kernel {type(self).__name__} has no random Fourier features; RBF, Laplacian, Matern and products of "
            "these have. Use one of them, or features that need only Gram matrices, such as Nyström's."
        )

    def gradient(self, X: Array, Z: Array, A: Array) -> Array:
        """Return the gradients in x of the functions f_s(x) = Σ_j k(x, z_j) A_js, at the rows of X.

        At a kink of the kernel it is the mean of the slopes on both sides: 0 at z_j for a function of ‖x − z_j‖.

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
        xp, A = namespace(X, Z), as_like(A, X)
        if A.ndim != 2 or A.shape[0] != Z.shape[0]:
            raise ValueError(
                f"Coefficients of shape {tuple(A.shape)} were given for {Z.shape[0]} rows of Z; expected "
                f"({Z.shape[0]}, s), a column for each function."
            )
        W = xp.matrix_transpose(A)[:, None, :]
        blocks = row_blocks(int(X.shape[0]), int(A.shape[0] * A.shape[1])) or [slice(0, 0)]
        return xp.concat([self._slopes(X[rows, :], Z, W) for rows in blocks], axis=1)

    def _slopes(self, X: Array, Z: Array, W: Array) -> Array:
        """Return Σ_j W_sij ∂k(x_i, z_j)/∂x_i, (s, n, d), for weights W of shape (s, n, p) or (s, 1, p)."""
        if self.describe().kind != "function":
            raise TypeError(
                f"The kernel {type(self).__name__} has no gradient in x; the named kernels, Metric, Scaled, Additive, "
                "Warped, sums and products of these have. Use one of them, or implement _slopes of your own kernel."
            )
        profile, gamma = self._resolved()
        of = STATISTICS[profile.of]
        return of.slopes(X, Z, W, profile.derivative(of.values(X, Z, gamma), gamma))

    def _resolved(self) -> tuple[Profile, float]:
        """Return the profile and its γ; raise an error if γ is not a number yet."""
        profile = self.profile()
        return profile, positive_gamma(type(self).__name__, profile.gamma)

    def __add__(self, other: InputKernel) -> Sum:
        from ._composed import Sum  # that module imports this one

        return Sum(self, other) if isinstance(other, InputKernel) else NotImplemented

    def __mul__(self, other: InputKernel) -> Product:
        from ._composed import Product

        return Product(self, other) if isinstance(other, InputKernel) else NotImplemented


# The class itself is abstract, a subclass is not: it may implement profile, or __call__ and diag.
InputKernel.__abstractmethods__ = frozenset({"profile"})
