"""Input kernels k_X: kernels with names, kernels of scaled features, and kernels that the caller computes.

A kernel with a name is a function of a distance or a product, given by its ``profile``.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from infinitask._base.arrays import Array, HostArray, as_like, namespace, row_blocks
from infinitask._base.validation import numbers, polynomial_parameters

from ._base import Formula, InputKernel, Names, Profile
from ._distances import FEW_ROWS, STATISTICS, gamma_by_rule, matrices, matrix, positive_gamma, variance_gamma


class _GammaKernel:
    """A kernel with a ``gamma``."""

    def __init__(self, gamma: float | str = "median") -> None:
        self.gamma = gamma

    def resolve(self, X: Array) -> Self:
        """Return a copy whose ``gamma`` is a number."""
        of = self.profile().of  # type: ignore[attr-defined]
        rules = {"median": STATISTICS[of].median, "scale": variance_gamma}
        gamma = gamma_by_rule(type(self).__name__, self.gamma, rules, X)
        return clone(self).set_params(gamma=gamma)  # type: ignore[no-any-return]

    @property
    def _gamma(self) -> float:
        return positive_gamma(type(self).__name__, self.gamma)


class RBF(_GammaKernel, InputKernel):
    """The Gaussian kernel, for smooth functions: k(x, z) = exp(−γ‖x − z‖²).

    Parameters
    ----------
    gamma : float, "median" or "scale", default="median"
        γ = 1/(2σ²) for a length scale σ; the rules are those of :class:`InputKernel`.

    Examples
    --------
    >>> import numpy as np
    >>> RBF(gamma=0.5)(np.array([[0.0]]), np.array([[0.0], [2.0]])).round(3)
    array([[1.   , 0.135]])
    """

    names: ClassVar[Names] = {"rbf": {}}
    stationary = True

    def profile(self) -> Profile:
        """Return exp(−u) with u = γ‖x − z‖²."""
        return Profile("squared", self.gamma, series=(1.0,))

    def spectral(self, n_features_in: int, n_components: int, rng: np.random.Generator) -> HostArray:
        """Return W (d, n_components) with entries from N(0, 2γ)."""
        return math.sqrt(2.0 * self._gamma) * rng.standard_normal((n_features_in, n_components))


class Matern(_GammaKernel, InputKernel):
    """The Matérn kernel, for functions of smoothness ν: k(x, z) = Matérn_ν(‖x − z‖/ℓ) with ℓ = (2γ)^(−1/2).

    With r = ‖x − z‖/ℓ: exp(−r) for ν = 1/2, (1 + √3r)exp(−√3r) for ν = 3/2 and
    (1 + √5r + 5r²/3)exp(−√5r) for ν = 5/2. It tends to exp(−γ‖x − z‖²) as ν → ∞, so ``gamma`` implies the same
    length scale as in :class:`RBF`.

    Parameters
    ----------
    nu : {0.5, 1.5, 2.5}, default=1.5
        The smoothness: functions are ⌈ν⌉ − 1 times differentiable.
    gamma : float, "median" or "scale", default="median"
        The rules are those of :class:`InputKernel`.

    Examples
    --------
    >>> import numpy as np
    >>> Matern(nu=0.5, gamma=0.5)(np.array([[0.0]]), np.array([[0.0], [2.0]])).round(3)
    array([[1.   , 0.135]])
    """

    names: ClassVar[Names] = {"matern12": {"nu": 0.5}, "matern32": {"nu": 1.5}, "matern52": {"nu": 2.5}}
    stationary = True

    def __init__(self, nu: float = 1.5, gamma: float | str = "median") -> None:
        self.nu = nu
        self.gamma = gamma

    def profile(self) -> Profile:
        """Return a polynomial of r times exp(−r) with r = √(4νγ)‖x − z‖."""
        series = (1.0, 1.0, 3.0)[: round(self._nu + 0.5)]
        return Profile("squared", self.gamma, 4.0 * self._nu, root=True, series=series)

    def spectral(self, n_features_in: int, n_components: int, rng: np.random.Generator) -> HostArray:
        """Return W (d, n_components) with columns from a multivariate t with 2ν degrees of freedom and scale 1/ℓ."""
        normal = rng.standard_normal((n_features_in, n_components))
        shrink = rng.chisquare(2.0 * self._nu, size=n_components) / (2.0 * self._nu)
        return math.sqrt(2.0 * self._gamma) * normal / np.sqrt(shrink)

    @property
    def _nu(self) -> float:
        if self.nu not in (0.5, 1.5, 2.5):
            raise ValueError(f"Matern was given nu={self.nu!r}; it must be 0.5, 1.5 or 2.5, which have closed forms.")
        return float(self.nu)


class Laplacian(_GammaKernel, InputKernel):
    """The Laplacian kernel, for rough functions: k(x, z) = exp(−γ‖x − z‖₁).

    Parameters
    ----------
    gamma : float, "median" or "scale", default="median"
        The rules are those of :class:`InputKernel`; "median" is one over the median L1 distance.

    Examples
    --------
    >>> import numpy as np
    >>> Laplacian(gamma=0.5)(np.array([[0.0, 0.0]]), np.array([[1.0, 1.0]])).round(3)
    array([[0.368]])
    """

    names: ClassVar[Names] = {"laplacian": {}}
    stationary = True

    def profile(self) -> Profile:
        """Return exp(−u) with u = γ‖x − z‖₁."""
        return Profile("l1", self.gamma, series=(1.0,))

    def spectral(self, n_features_in: int, n_components: int, rng: np.random.Generator) -> HostArray:
        """Return W (d, n_components) with independent Cauchy entries of scale γ."""
        return self._gamma * rng.standard_cauchy((n_features_in, n_components))


class Chi2(_GammaKernel, InputKernel):
    """The χ² kernel, for histograms: k(x, z) = exp(−γ Σ_k (x_k − z_k)²/(x_k + z_k)) for x, z ≥ 0, with 0/0 = 0.

    Parameters
    ----------
    gamma : float, "median" or "scale", default="median"
        The rules are those of :class:`InputKernel`; "median" is one over the median χ² distance.

    Examples
    --------
    >>> import numpy as np
    >>> Chi2(gamma=1.0)(np.array([[0.0, 1.0]]), np.array([[0.0, 3.0]])).round(3)
    array([[0.368]])
    """

    names: ClassVar[Names] = {"chi2": {}}

    def profile(self) -> Profile:
        """Return exp(−u) with u = γ times the χ² distance."""
        return Profile("chi2", self.gamma, series=(1.0,))


class Linear(InputKernel):
    """The linear kernel, for linear functions: k(x, z) = xᵀz.

    Examples
    --------
    >>> import numpy as np
    >>> Linear()(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[11.]])
    """

    names: ClassVar[Names] = {"linear": {}}

    def profile(self) -> Profile:
        """Return xᵀz."""
        return Profile("product")


class Polynomial(_GammaKernel, InputKernel):
    """The polynomial kernel: k(x, z) = (γ xᵀz + c)^degree.

    Parameters
    ----------
    degree : int, default=3
    gamma : float, "median" or "scale", default=1.0
        The kernel uses no distance: "median" is one over the median of ‖x‖² over at most 1000 evenly spaced rows,
        which makes γ xᵀx about 1; "scale" is the rule of :class:`InputKernel`.
    coef0 : float, default=1.0
        The c ≥ 0 of the formula.

    Examples
    --------
    >>> import numpy as np
    >>> Polynomial(degree=2)(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[144.]])
    """

    names: ClassVar[Names] = {"poly": {}, "polynomial": {}}

    def __init__(self, degree: int = 3, gamma: float | str = 1.0, coef0: float = 1.0) -> None:
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0

    def profile(self) -> Profile:
        """Return u^degree with u = γ xᵀz + c."""
        degree, coef0 = polynomial_parameters("Polynomial", self.degree, self.coef0)
        return Profile("product", self.gamma, offset=coef0, power=degree)


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
        """Return a Python function."""
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
        """Return k(x_i, x_i), (n,), from small square blocks, because the function returns Gram matrices only."""
        X = matrix(X)
        xp, blocks = namespace(X), row_blocks(X.shape[0], 1, FEW_ROWS) or [slice(0, 0)]
        return xp.concat([xp.linalg.diagonal(self(X[rows, :], X[rows, :])) for rows in blocks])


class Precomputed(InputKernel):
    """Kernel whose Gram matrix the caller has computed.

    X contains the rows k(x, x_1), …, k(x, x_n) for the n training points. The attribute ``precomputed`` tells the
    builders of feature maps to use columns of X instead of calling the kernel.

    Examples
    --------
    >>> Precomputed().precomputed
    True
    """

    precomputed: ClassVar[bool] = True
    names: ClassVar[Names] = {"precomputed": {}}

    def formula(self) -> Formula:
        """Return a matrix that the caller computes."""
        return "precomputed", {}, ()

    def __call__(self, X: Array, Z: Array) -> Array:
        raise TypeError(
            "A precomputed kernel cannot be evaluated: X holds rows of its Gram matrix. Take their columns, or use "
            "a kernel of inputs, for example 'rbf', where kernel values at new points are needed."
        )

    def diag(self, X: Array) -> Array:
        """Raise an error: the position of a row in the Gram matrix is unknown here."""
        return self(X, X)


class _Around:
    """A kernel around another one, k₀."""

    kernel: InputKernel

    def _inner(self) -> InputKernel:
        if not isinstance(self.kernel, InputKernel) or self.kernel.precomputed:
            raise TypeError(
                f"{type(self).__name__} was given kernel={self.kernel!r}; it must be an input kernel that is computed, "
                "such as RBF()."
            )
        return self.kernel


class _Changing(_Around):
    """A kernel of transformed features, k(x, z) = k₀(g(x), g(z))."""

    @abstractmethod
    def _changed(self, X: Array) -> Array:
        """Return g(x) for the rows of a matrix."""

    @abstractmethod
    def _pulled_back(self, slopes: Array, X: Array) -> Array:
        """Return gradients in x, (s, n, d), from those in g(x)."""

    @property
    def stationary(self) -> bool:
        """Whether k₀ is stationary, for a linear g."""
        return self._inner().stationary

    def resolve(self, X: Array) -> Self:
        """Return a copy with k₀ resolved on g(x)."""
        resolved = copy(self)
        resolved.kernel = self._inner().resolve(self._changed(matrix(X)))
        return resolved

    def __call__(self, X: Array, Z: Array) -> Array:
        X, Z = matrices(X, Z)
        return self._inner()(self._changed(X), self._changed(Z))

    def diag(self, X: Array) -> Array:
        """Return k(x_i, x_i), (n,)."""
        return self._inner().diag(self._changed(matrix(X)))

    def _slopes(self, X: Array, Z: Array, W: Array) -> Array:
        return self._pulled_back(self._inner()._slopes(self._changed(X), self._changed(Z), W), X)


class Scaled(_Changing, InputKernel):
    """Gives each feature its own length scale, 1/s_j times that of k₀.

    k(x, z) = k₀(x∘s, z∘s).

    Parameters
    ----------
    kernel : InputKernel
        k₀. A data-dependent ``gamma`` is computed from x∘s.
    scales : sequence of float
        s_j ≥ 0 for each feature; a feature with s_j = 0 is ignored.

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
        """Return k₀ of scaled features."""
        return "scaled", {"scales": numbers("Scaled: scales", self.scales)}, (self._inner(),)

    def spectral(self, n_features_in: int, n_components: int, rng: np.random.Generator) -> HostArray:
        """Return the frequencies of k₀, those of each feature multiplied by its s_j."""
        return self._numbers(n_features_in)[:, None] * self._inner().spectral(n_features_in, n_components, rng)

    def _changed(self, X: Array) -> Array:
        return X * as_like(self._numbers(int(X.shape[1])), X)

    def _pulled_back(self, slopes: Array, X: Array) -> Array:
        return slopes * as_like(self._numbers(int(X.shape[1])), X)

    def _numbers(self, d: int) -> HostArray:
        scales = numbers("Scaled: scales", self.scales)
        if scales.shape != (d,) or not np.all(np.isfinite(scales)) or np.any(scales < 0.0):
            raise ValueError(
                f"Scaled was given scales={self.scales!r} for data with {d} columns; it must hold "
                f"{d} finite numbers ≥ 0."
            )
        return scales


def input_kernel(spec: Any, gamma: float | str = "median") -> InputKernel:
    """Return the input kernel for a name, a function or a kernel object.

    Parameters
    ----------
    spec : str, InputKernel or callable
        "rbf", "laplacian", "matern12", "matern32", "matern52", "chi2", "linear", "poly" (or "polynomial"),
        "precomputed", or one of the ``names`` of a custom class; a kernel object, returned unchanged; or a function
        f(X, Z) of two matrices that returns their Gram matrix.
    gamma : float, "median" or "scale", default="median"
        The ``gamma`` for names of kernels that have one (see :func:`takes_gamma`); an object has its own.

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
        named: InputKernel = InputKernel._named[spec]()
        if hasattr(named, "gamma"):
            named.gamma = gamma
        return named
    # A class or another estimator is callable too, but it is not a function of two matrices.
    if callable(spec) and not isinstance(spec, type | BaseEstimator | str):
        return CallableKernel(spec)
    raise ValueError(
        f"kernel={spec!r} is not an input kernel; expected one of {', '.join(map(repr, InputKernel._named))}, "
        "an object such as RBF(gamma=0.5), or a function of two matrices that returns their Gram matrix."
    )


def takes_gamma(spec: Any) -> bool:
    """Whether :func:`input_kernel` uses its ``gamma`` for this ``spec``.

    True for names of kernels that have one. False for "linear" and "precomputed", for functions, and for kernel
    objects, which have their own.

    Examples
    --------
    >>> from infinitask.kernels import RBF
    >>> takes_gamma("rbf"), takes_gamma("linear"), takes_gamma(RBF())
    (True, False, False)
    """
    return isinstance(spec, str) and "gamma" in input_kernel(spec).get_params(deep=False)
