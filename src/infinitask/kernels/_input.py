"""Input kernels k_X, and the distances and ``gamma`` rules that both families of kernels share.

Most kernels here are a distance and a decreasing profile: exp(−γ·distance), or a Matérn of it. The distances
are written so that neither huge nor tiny inputs overflow, and so that equal rows are at distance exactly 0.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.base import BaseEstimator, clone

from infinitask._array import Array, HostArray, as_like, namespace, to_host

__all__ = [
    "RBF",
    "CallableKernel",
    "Chi2",
    "InputKernel",
    "Laplacian",
    "Linear",
    "Matern",
    "Polynomial",
    "Precomputed",
    "Product",
    "Sum",
    "input_kernel",
]

BLOCK = 2**19  # entries of a temporary: 4 MB of float64, which stay in the cache
DIRECT = 4  # up to this many columns, differences cost no more than the matrix product and are exact
MEDIAN_ROWS = 1000  # half a million pairs fix a median to three digits


def matrix(X: Array) -> Array:
    """``X`` as an (n, d) array of floats."""
    xp = namespace(X)
    X = xp.asarray(X)
    if X.ndim != 2:
        raise ValueError(
            f"A kernel compares rows of a matrix (n, d), and was given an array of shape {tuple(X.shape)}; "
            "use X.reshape(-1, 1) for a single column, X.reshape(1, -1) for a single row."
        )
    return X if xp.isdtype(X.dtype, "real floating") else xp.astype(X, xp.float64)


def matrices(X: Array, Z: Array) -> tuple[Array, Array]:
    """Two matrices with as many columns each, in their common dtype."""
    xp = namespace(X, Z)
    X, Z = matrix(X), matrix(Z)
    if X.shape[1] != Z.shape[1]:
        raise ValueError(
            f"A kernel compares rows of equal length, and was given {X.shape[1]} columns on the left and "
            f"{Z.shape[1]} on the right; pass data with the columns seen in fit."
        )
    dtype = xp.result_type(X, Z)
    return xp.astype(X, dtype, copy=False), xp.astype(Z, dtype, copy=False)


def positive(value: Any, name: str, owner: str) -> float:
    """``value`` as a positive, finite float; an unresolved rule or nonsense is refused by a sentence."""
    if value is None or isinstance(value, str):
        raise ValueError(
            f"{owner}({name}={value!r}) has no number yet; call resolve(data) first, which returns a kernel whose "
            f"{name} is one, or pass a positive number."
        )
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 < float(value) < math.inf:
        raise ValueError(f"{owner} needs a positive, finite {name}, and was given {value!r}.")
    return float(value)


def _unit(*arrays: Array) -> float:
    """A power of two near the largest absolute value, or 1 if that is of ordinary size.

    Dividing by it is exact, and distances of what remains neither overflow nor vanish.
    """
    xp = namespace(*arrays)
    ends = [float(end) for a in arrays if 0 not in a.shape for end in (xp.max(a), xp.min(a))]
    largest = max(map(abs, ends), default=0.0)
    ordinary = float(xp.finfo(arrays[0].dtype).max) ** 0.1  # about 1e31 in double, 1e4 in single precision
    # Zeros alone, or a NaN among the data, have no size: they stay as they are.
    extreme = 0 < largest < 1 / ordinary or ordinary < largest < math.inf
    return math.ldexp(1.0, math.frexp(largest)[1] - 1) if extreme else 1.0


def _capped(rate: float, like: Array) -> float:
    """``rate``, or a bound so large that exp(−bound · distance) is 0, but bound · distance is still finite."""
    return min(rate, math.pow(float(namespace(like).finfo(like.dtype).max), 0.7))


def _sum_over_columns(X: Array, Z: Array, term: Callable[[Array, Array], Array]) -> Array:
    """Σ_k term(x_k, z_k) for all pairs of rows, (n, p), with temporaries of at most about BLOCK entries."""
    xp = namespace(X, Z)
    (n, d), p = X.shape, Z.shape[0]
    width = max(1, min(d, BLOCK // max(p, 1)))
    height = max(1, BLOCK // max(p * width, 1))
    # An (n, p) array of zeros where X lives, made without asking for its device.
    total = xp.zeros_like(xp.sum(X, axis=1))[:, None] + xp.zeros_like(xp.sum(Z, axis=1))[None, :]
    for i in range(0, n, height):
        rows = slice(i, min(i + height, n))  # the standard leaves a stop beyond the end open
        for k in range(0, d, width):
            columns = slice(k, min(k + width, d))
            # Columns first: the sum then runs over whole (rows, p) slabs, which vectorises.
            left, right = X[rows, columns].T, Z[:, columns].T
            total[rows, :] += xp.sum(term(left[:, :, None], right[:, None, :]), axis=0)
    return total


def squared_distances(X: Array, Z: Array, gamma: float = 1.0) -> Array:
    """γ‖x − z‖² for all pairs of rows, (n, p): never negative, never NaN for finite rows, 0 for equal rows.

    Rows of extreme size are divided by a common power of two, so that no square overflows. A few
    columns are subtracted one by one. More of them take one matrix product of the centred rows, with a rounding
    error of about √d·eps·(‖x‖² + ‖z‖²); what lies below that counts as 0, so that equal rows have equal values.
    """
    xp = namespace(X, Z)
    direct = X.shape[1] <= DIRECT
    if not direct and Z.shape[0] > 0:
        origin = Z[:1, :]  # a constant column becomes exactly 0, which subtracting its mean alone would not give
        X, Z = X - origin, Z - origin
        middle = xp.mean(Z, axis=0, keepdims=True)
        X, Z = X - middle, Z - middle
    unit = _unit(X, Z)
    X, Z = X / unit, Z / unit
    rate = _capped(gamma * unit * unit, X)
    if direct:
        return _sum_over_columns(X, Z, lambda x, z: (x - z) ** 2) * rate
    norms = xp.sum(X * X, axis=1)[:, None] + xp.sum(Z * Z, axis=1)[None, :]
    squares = norms - 2.0 * (X @ Z.T)
    noise = (8.0 + math.sqrt(X.shape[1])) * float(xp.finfo(X.dtype).eps)
    # The test is "below the noise", not "above": a NaN in the data must stay one.
    return xp.where(squares <= noise * norms, as_like(0.0, X), squares) * rate


def _l1(X: Array, Z: Array) -> Array:
    xp = namespace(X, Z)
    return _sum_over_columns(X, Z, lambda x, z: xp.abs(x - z))


def _chi2(X: Array, Z: Array) -> Array:
    xp = namespace(X, Z)

    def term(x: Array, z: Array) -> Array:
        difference, total = x - z, x + z
        # (x−z)²/(x+z) without squaring; where x = z = 0 the denominator becomes 1, and the term is 0.
        return difference * (difference / (total + xp.astype(total == 0, total.dtype)))

    return _sum_over_columns(X, Z, term)


def _decay(distances: Callable[[Array, Array], Array], X: Array, Z: Array, gamma: float) -> Array:
    """exp(−γ·distance) for a distance that grows with its arguments, brought into range as the squares are."""
    xp, unit = namespace(X, Z), _unit(X, Z)
    return xp.exp(-_capped(gamma * unit, X) * distances(X / unit, Z / unit))


def few_rows(X: Array) -> HostArray:
    """At most MEDIAN_ROWS rows of X on the host, evenly spaced, hence the same on every call and device."""
    X = matrix(X)
    return to_host(X[:: max(1, -(-X.shape[0] // MEDIAN_ROWS)), :]).astype(np.float64)


def typical(values: HostArray) -> float | None:
    """The median; where that is 0, the mean of the positive values; where there are none, None."""
    if not np.all(np.isfinite(values)):
        raise ValueError(
            "gamma cannot be derived from data with NaN or infinite values; impute or drop them, or pass a number."
        )
    above = values[values > 0]
    if above.size == 0:
        return None
    return float(np.median(values)) or float(np.mean(above))


def within_range(gamma: float) -> float:
    """``gamma`` as the nearest positive, finite float: 1/σ² of extreme data may be neither."""
    return min(max(gamma, sys.float_info.min), sys.float_info.max)


def euclidean_gamma(rows: HostArray) -> float:
    """γ = 1/(2σ²) with σ the median Euclidean distance of the rows; 1 where all rows are equal."""
    unit = _unit(rows)
    sigma = typical(pdist(rows / unit))
    return 1.0 if sigma is None else within_range(0.5 / sigma / sigma / unit / unit)


def polynomial_parameters(degree: Any, coef0: Any, owner: str) -> tuple[int, float]:
    """A degree ≥ 1 and a constant ≥ 0, without which (u + c)^degree is no kernel."""
    if not isinstance(degree, Integral) or isinstance(degree, bool) or degree < 1:
        raise ValueError(f"{owner} needs a whole degree ≥ 1, and was given degree={degree!r}.")
    if not isinstance(coef0, Real) or not 0 <= float(coef0) < math.inf:
        raise ValueError(f"{owner} needs a finite coef0 ≥ 0 to be a kernel, and was given coef0={coef0!r}.")
    return int(degree), float(coef0)


def ones(X: Array) -> Array:
    """One per row of X, (n,)."""
    X = matrix(X)
    return namespace(X).ones_like(namespace(X).sum(X, axis=1))


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


class _GammaKernel(InputKernel):
    """A kernel with a ``gamma``: subclasses say what "median" means for them."""

    gamma: float | str

    def resolve(self, X: Array) -> Self:
        """A copy whose ``gamma`` is a number."""
        return clone(self).set_params(gamma=self._number(X))  # type: ignore[no-any-return]

    def _number(self, X: Array) -> float:
        if not isinstance(self.gamma, str):
            return self._gamma
        if self.gamma == "median":
            return self._median(few_rows(X))
        if self.gamma == "scale":
            X = matrix(X)
            unit = _unit(X)
            variance = typical(np.asarray([float(namespace(X).var(X / unit))]))
            return 1.0 if variance is None else within_range(1.0 / X.shape[1] / variance / unit / unit)
        raise ValueError(
            f"{type(self).__name__} was given gamma={self.gamma!r}; expected 'median', 'scale' or a positive number."
        )

    @property
    def _gamma(self) -> float:
        return positive(self.gamma, "gamma", type(self).__name__)

    @abstractmethod
    def _median(self, rows: HostArray) -> float:
        """The ``gamma`` of the rule "median"."""


class _Stationary(_GammaKernel):
    """A function of x − z that is 1 at 0."""

    @property
    def stationary(self) -> bool:
        """True."""
        return True

    def diag(self, X: Array) -> Array:
        """Ones, (n,)."""
        return ones(X)


class RBF(_Stationary):
    """k(x, z) = exp(−γ‖x − z‖²), the Gaussian kernel.

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

    def __init__(self, gamma: float | str = "median") -> None:
        self.gamma = gamma

    def __call__(self, X: Array, Z: Array) -> Array:
        return namespace(X, Z).exp(-squared_distances(*matrices(X, Z), self._gamma))

    def spectral(self, n_features_in: int, n_components: int, rng: np.random.Generator) -> HostArray:
        """W (d, n_components) with entries from N(0, 2γ)."""
        return math.sqrt(2.0 * self._gamma) * rng.standard_normal((n_features_in, n_components))

    def _median(self, rows: HostArray) -> float:
        return euclidean_gamma(rows)


class Matern(_Stationary):
    """k(x, z) = Matérn_ν(‖x − z‖/ℓ) with ℓ = (2γ)^(−1/2).

    With r = ‖x − z‖/ℓ: exp(−r) for ν = 1/2, (1 + √3r)exp(−√3r) for ν = 3/2 and
    (1 + √5r + 5r²/3)exp(−√5r) for ν = 5/2. As ν → ∞ this becomes exp(−γ‖x − z‖²): a ``gamma`` stands for the same
    length scale as in :class:`RBF`.

    Parameters
    ----------
    nu : {0.5, 1.5, 2.5}, default=1.5
        Smoothness: functions are ⌈ν⌉ − 1 times differentiable.
    gamma : float, "median" or "scale", default="median"
        The rules are those of :class:`InputKernel`.

    Examples
    --------
    >>> import numpy as np
    >>> Matern(nu=0.5, gamma=0.5)(np.array([[0.0]]), np.array([[0.0], [2.0]])).round(3)
    array([[1.   , 0.135]])
    """

    def __init__(self, nu: float = 1.5, gamma: float | str = "median") -> None:
        self.nu = nu
        self.gamma = gamma

    def __call__(self, X: Array, Z: Array) -> Array:
        xp, nu = namespace(X, Z), self._nu
        r = xp.sqrt(4.0 * nu * squared_distances(*matrices(X, Z), self._gamma))
        polynomial = 1.0 if nu == 0.5 else 1.0 + r if nu == 1.5 else 1.0 + r + r * r / 3.0
        return polynomial * xp.exp(-r)

    def spectral(self, n_features_in: int, n_components: int, rng: np.random.Generator) -> HostArray:
        """W (d, n_components) with columns from a multivariate t with 2ν degrees of freedom and scale 1/ℓ."""
        normal = rng.standard_normal((n_features_in, n_components))
        shrink = rng.chisquare(2.0 * self._nu, size=n_components) / (2.0 * self._nu)
        return math.sqrt(2.0 * self._gamma) * normal / np.sqrt(shrink)

    @property
    def _nu(self) -> float:
        if self.nu not in (0.5, 1.5, 2.5):
            raise ValueError(f"Matern has closed forms for nu = 0.5, 1.5 and 2.5, and was given nu={self.nu!r}.")
        return float(self.nu)

    def _median(self, rows: HostArray) -> float:
        return euclidean_gamma(rows)


class Laplacian(_Stationary):
    """k(x, z) = exp(−γ‖x − z‖₁).

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

    def __init__(self, gamma: float | str = "median") -> None:
        self.gamma = gamma

    def __call__(self, X: Array, Z: Array) -> Array:
        return _decay(_l1, *matrices(X, Z), self._gamma)

    def spectral(self, n_features_in: int, n_components: int, rng: np.random.Generator) -> HostArray:
        """W (d, n_components) with independent Cauchy entries of scale γ."""
        return self._gamma * rng.standard_cauchy((n_features_in, n_components))

    def _median(self, rows: HostArray) -> float:
        unit = _unit(rows)
        sigma = typical(pdist(rows / unit, "cityblock"))
        return 1.0 if sigma is None else within_range(1.0 / sigma / unit)


class Chi2(_GammaKernel):
    """k(x, z) = exp(−γ Σ_k (x_k − z_k)²/(x_k + z_k)) for x, z ≥ 0, with 0/0 = 0: a kernel of histograms.

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

    def __init__(self, gamma: float | str = "median") -> None:
        self.gamma = gamma

    def __call__(self, X: Array, Z: Array) -> Array:
        X, Z = matrices(X, Z)
        self._check(X, Z)
        return _decay(_chi2, X, Z, self._gamma)

    def diag(self, X: Array) -> Array:
        """Ones, (n,)."""
        return ones(X)

    def _median(self, rows: HostArray) -> float:
        self._check(rows)
        unit = _unit(rows)
        pairs = np.triu_indices(rows.shape[0], 1)
        sigma = typical(to_host(_chi2(rows / unit, rows / unit))[pairs])
        return 1.0 if sigma is None else within_range(1.0 / sigma / unit)

    @staticmethod
    def _check(*arrays: Array) -> None:
        xp = namespace(*arrays)
        if any(bool(xp.any(a < 0)) for a in arrays):
            raise ValueError(
                "Chi2 compares histograms and needs entries ≥ 0, and was given negative ones; "
                "rescale X to [0, 1], for example with sklearn.preprocessing.MinMaxScaler(clip=True), or use 'rbf'."
            )


class Linear(InputKernel):
    """k(x, z) = xᵀz.

    Examples
    --------
    >>> import numpy as np
    >>> Linear()(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[11.]])
    """

    def __call__(self, X: Array, Z: Array) -> Array:
        X, Z = matrices(X, Z)
        return X @ Z.T

    def diag(self, X: Array) -> Array:
        """‖x_i‖², (n,)."""
        X = matrix(X)
        return namespace(X).sum(X * X, axis=1)


class Polynomial(_GammaKernel):
    """k(x, z) = (γ xᵀz + c)^degree.

    Parameters
    ----------
    degree : int, default=3
    gamma : float, "median" or "scale", default=1.0
        No distance appears here: "median" is one over the median of ‖x‖² over at most 1000 evenly spaced rows,
        which makes γ xᵀx about 1 wherever the data lie; "scale" is that of :class:`InputKernel`.
    coef0 : float, default=1.0
        The c ≥ 0 of the formula.

    Examples
    --------
    >>> import numpy as np
    >>> Polynomial(degree=2)(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[144.]])
    """

    def __init__(self, degree: int = 3, gamma: float | str = 1.0, coef0: float = 1.0) -> None:
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0

    def __call__(self, X: Array, Z: Array) -> Array:
        X, Z = matrices(X, Z)
        degree, coef0 = polynomial_parameters(self.degree, self.coef0, "Polynomial")
        root = math.sqrt(self._gamma)  # on either side, so that huge rows with a tiny gamma do not overflow
        return ((root * X) @ (root * Z).T + coef0) ** degree

    def diag(self, X: Array) -> Array:
        """(γ‖x_i‖² + c)^degree, (n,)."""
        X = math.sqrt(self._gamma) * matrix(X)
        degree, coef0 = polynomial_parameters(self.degree, self.coef0, "Polynomial")
        return (namespace(X).sum(X * X, axis=1) + coef0) ** degree

    def _median(self, rows: HostArray) -> float:
        unit = _unit(rows)
        size = typical(np.sum((rows / unit) ** 2, axis=1))
        return 1.0 if size is None else within_range(1.0 / size / unit / unit)


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


_NAMES: dict[str, Callable[[float | str], InputKernel]] = {
    "rbf": lambda gamma: RBF(gamma=gamma),
    "laplacian": lambda gamma: Laplacian(gamma=gamma),
    "matern12": lambda gamma: Matern(nu=0.5, gamma=gamma),
    "matern32": lambda gamma: Matern(nu=1.5, gamma=gamma),
    "matern52": lambda gamma: Matern(nu=2.5, gamma=gamma),
    "chi2": lambda gamma: Chi2(gamma=gamma),
    "linear": lambda gamma: Linear(),
    "poly": lambda gamma: Polynomial(gamma=gamma),
    "polynomial": lambda gamma: Polynomial(gamma=gamma),
    "precomputed": lambda gamma: Precomputed(),
}


def input_kernel(spec: Any, gamma: float | str = "median") -> InputKernel:
    """The input kernel meant by a name, a function or a kernel object.

    Parameters
    ----------
    spec : str, InputKernel or callable
        "rbf", "laplacian", "matern12", "matern32", "matern52", "chi2", "linear", "poly" (or "polynomial"),
        "precomputed"; a kernel object, returned as it is; or a function f(X, Z) of two matrices that returns
        their Gram matrix.
    gamma : float, "median" or "scale", default="median"
        For names of kernels that have one; an object brings its own.

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
    if isinstance(spec, str) and spec in _NAMES:
        return _NAMES[spec](gamma)
    # A class, or some other estimator, is callable too, but not a function of two matrices.
    if callable(spec) and not isinstance(spec, type | BaseEstimator | str):
        return CallableKernel(spec)
    raise ValueError(
        f"kernel={spec!r} is not an input kernel; expected one of {', '.join(map(repr, _NAMES))}, "
        "an object such as RBF(gamma=0.5), or a function of two matrices that returns their Gram matrix."
    )
