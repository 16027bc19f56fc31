"""Probability measures on the tasks Θ ⊂ ℝ^d, given by their inverse distribution functions."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import stats
from sklearn.base import BaseEstimator

from infinitask._base.arrays import HostArray
from infinitask._base.validation import finite, in_support, is_number, number, numbers, shares
from infinitask.measures._rules import Quadrature


class Measure(BaseEstimator, ABC):
    """A probability measure μ on Θ ⊂ ℝ^d: it weights the tasks.

    To write another measure, derive from this class and implement ``support`` and ``ppf``, the inverse of the
    distribution function.
    """

    @property
    def dim(self) -> int:
        """The dimension d of Θ."""
        return 1

    @property
    @abstractmethod
    def support(self) -> tuple[HostArray, HostArray]:
        """The bounds (low, high) of the smallest box that contains μ, each of shape (d,)."""

    @abstractmethod
    def ppf(self, u: HostArray) -> HostArray:
        """Return F⁻¹(u) for each coordinate: (m, d) → (m, d)."""

    def pdf(self, theta: HostArray) -> HostArray:
        """Return the density f_μ(θ) for each coordinate: (m, d) → (m, d); raise an error if it is unknown."""
        raise ValueError(
            f"{self!r} has no density; use a quadrature rule with density=False, or a measure such as Beta, "
            "TruncatedNormal or ScipyMeasure."
        )

    def marginals(self) -> tuple[Measure, ...]:
        """Return the d one-dimensional measures whose product is μ."""
        return (self,)

    def atoms(self) -> Quadrature | None:
        """Return μ as a quadrature if it is a finite sum of point masses, otherwise None."""
        return None

    def contains(self, theta: HostArray) -> HostArray:
        """Whether each θ is in the closed support: (q, d), or (q,) if d = 1, → bool (q,).

        The bounds are widened by a rounding error of single precision.
        """
        return in_support(_as_points(theta, self.dim), self.support)


BOUND_DIGITS = 14
"""The number of digits, relative to its width, to which the ends of a SciPy distribution are rounded."""


@lru_cache(maxsize=32)
def _frozen(distribution: Any, *parameters: float) -> Any:
    """Return a frozen SciPy distribution. Creating one takes 0.8 ms, a tenth of a small fit, so it is cached."""
    return distribution(*parameters)


class _Marginal(Measure):
    """A measure on an interval, given by a frozen SciPy distribution; its ends are parameters unless overridden."""

    low: float
    high: float

    @abstractmethod
    def _distribution(self) -> Any:
        """Check the parameters and return the frozen distribution."""

    def _bounds(self) -> tuple[float, float]:
        """Return the ends of the interval. Due to rounding, those of SciPy may be outside the domain of a loss."""
        low, high = self.low, self.high
        if not (is_number(low) and is_number(high) and low < high):
            raise ValueError(f"{self!r} has low={low!r} and high={high!r}; give finite numbers with low < high.")
        return float(low), float(high)

    @property
    def support(self) -> tuple[HostArray, HostArray]:
        """The bounds (low, high), each of shape (d,)."""
        self._distribution()  # which checks the parameters
        low, high = self._bounds()
        return np.asarray([low]), np.asarray([high])

    def ppf(self, u: HostArray) -> HostArray:
        """Return F⁻¹(u) for each coordinate: (m, d) → (m, d)."""
        values = np.asarray(self._distribution().ppf(_as_points(u, 1)), dtype=float)
        return np.asarray(np.clip(values, *self._bounds()))

    def pdf(self, theta: HostArray) -> HostArray:
        """Return the density f_μ(θ): (m, 1) → (m, 1)."""
        return np.asarray(self._distribution().pdf(_as_points(theta, 1)), dtype=float)


class Uniform(_Marginal):
    """The uniform measure, which weights all tasks of an interval equally: dμ(θ) = dθ / (high − low) on [low, high].

    Parameters
    ----------
    low, high : float

    Examples
    --------
    >>> Uniform(-1.0, 1.0).ppf([[0.0], [0.25]]).tolist()
    [[-1.0], [-0.5]]
    """

    def __init__(self, low: float = 0.0, high: float = 1.0) -> None:
        self.low = low
        self.high = high

    def _distribution(self) -> Any:
        low, high = self._bounds()
        return _frozen(stats.uniform, low, high - low)


class Beta(_Marginal):
    """A beta distribution, which gives chosen parts of an interval more weight.

    dμ(θ) ∝ t^(a−1) (1 − t)^(b−1) dθ with t = (θ − low) / (high − low), on [low, high].

    Parameters
    ----------
    a, b : float
        Values above one move mass away from the lower and the upper bound, respectively.
    low, high : float

    Examples
    --------
    >>> round(float(Beta(2.0, 2.0).ppf([[0.5]])[0, 0]), 12)
    0.5
    """

    def __init__(self, a: float, b: float, low: float = 0.0, high: float = 1.0) -> None:
        self.a = a
        self.b = b
        self.low = low
        self.high = high

    def _distribution(self) -> Any:
        low, high = self._bounds()
        a, b = number("Beta: a", self.a, low=0.0), number("Beta: b", self.b, low=0.0)
        return _frozen(stats.beta, a, b, low, high - low)


class TruncatedNormal(_Marginal):
    """A truncated normal distribution, which gives tasks near ``loc`` more weight.

    dμ(θ) ∝ exp(−(θ − loc)² / (2 scale²)) dθ on [low, high]; the bounds are values of θ.

    Parameters
    ----------
    loc, scale : float
        The mean and standard deviation before truncation.
    low, high : float

    Examples
    --------
    >>> TruncatedNormal(loc=0.5, scale=0.2, low=0.0, high=1.0).support
    (array([0.]), array([1.]))
    """

    def __init__(self, loc: float = 0.0, scale: float = 1.0, low: float = -1.0, high: float = 1.0) -> None:
        self.loc = loc
        self.scale = scale
        self.low = low
        self.high = high

    def _distribution(self) -> Any:
        low, high = self._bounds()
        loc, scale = number("TruncatedNormal: loc", self.loc), number("TruncatedNormal: scale", self.scale, low=0.0)
        return _frozen(stats.truncnorm, (low - loc) / scale, (high - loc) / scale, loc, scale)


class ScipyMeasure(_Marginal):
    """A measure given by any frozen continuous distribution of ``scipy.stats``.

    Parameters
    ----------
    distribution : frozen distribution
        For instance ``scipy.stats.triang(0.5)``.

    Examples
    --------
    >>> from scipy import stats
    >>> ScipyMeasure(stats.norm(2.0, 1.0)).ppf([[0.5]]).tolist()
    [[2.0]]
    """

    def __init__(self, distribution: Any) -> None:
        self.distribution = distribution

    def _distribution(self) -> Any:
        if not _is_frozen_continuous(self.distribution):
            raise ValueError(
                f"ScipyMeasure: distribution={self.distribution!r} was given; it must be frozen and continuous, with "
                "scalar parameters, such as scipy.stats.norm(0.0, 1.0); use Discrete for point masses."
            )
        return self.distribution

    def _bounds(self) -> tuple[float, float]:
        low, high = map(float, self._distribution().support())
        if not (math.isfinite(low) and math.isfinite(high)):
            return low, high
        # truncnorm truncated at 0 begins at −1e-16: rounding restores the intended ends
        digits = BOUND_DIGITS - math.ceil(math.log10(high - low))
        return round(low, digits) + 0.0, round(high, digits) + 0.0  # + 0.0: no −0


class Discrete(Measure):
    """Finitely many tasks: μ = Σ_j w_j δ(θ_j), for any rule and number of nodes.

    Parameters
    ----------
    points : array-like of shape (m,) or (m, d)
        Distinct tasks.
    weights : array-like of shape (m,), optional
        Nonnegative masses, divided by their sum; equal by default. A point of weight 0 is not a task: it does not
        belong to Θ, and a model cannot predict for it.

    Examples
    --------
    >>> tasks = Discrete([0.9, 0.1, 0.5]).atoms()
    >>> tasks.nodes[:, 0].tolist()
    [0.1, 0.5, 0.9]
    """

    def __init__(self, points: Any, weights: Any = None) -> None:
        self.points = points
        self.weights = weights

    @property
    def dim(self) -> int:
        """The dimension d of Θ."""
        return int(self.atoms().nodes.shape[1])

    @property
    def support(self) -> tuple[HostArray, HostArray]:
        """The bounds (low, high) of the bounding box of the points, each of shape (d,)."""
        nodes = self.atoms().nodes
        return np.min(nodes, axis=0), np.max(nodes, axis=0)

    def ppf(self, u: HostArray) -> HostArray:
        """Return F⁻¹(u) = min{θ_j : F(θ_j) ≥ u}, for one-dimensional points: (m, 1) → (m, 1)."""
        atoms = self.atoms()
        if atoms.nodes.shape[1] > 1:
            raise ValueError(
                f"A Discrete measure in {atoms.nodes.shape[1]} dimensions has no inverse distribution function "
                "per coordinate; use its atoms(), as every quadrature rule does."
            )
        cdf = np.cumsum(atoms.weights)
        # the last step counts as 1, whatever the rounding of the sum
        steps = np.searchsorted(cdf[:-1], _as_points(u, 1))
        return np.asarray(atoms.nodes[steps, 0])

    def atoms(self) -> Quadrature:
        """Return the points and their normalised weights, in ascending order if d = 1."""
        points = numbers("Discrete: points", self.points)
        points = finite("Discrete: points", points[:, None] if points.ndim == 1 else points, 2)
        m = points.shape[0]
        if np.unique(points, axis=0).shape[0] < m:
            raise ValueError("Discrete: points holds a point twice; name each point once and add its weights.")
        weights = shares(self.weights, m, "Discrete: weights", "points")
        # at a point without weight no loss would determine h or a free bias
        counted = weights > 0.0
        return Quadrature.ascending(points[counted], weights[counted])


class ProductMeasure(Measure):
    """A product measure, for tasks with several coordinates: μ = μ_1 ⊗ … ⊗ μ_d.

    Parameters
    ----------
    measures : sequence of one-dimensional Measure

    Examples
    --------
    >>> square = ProductMeasure([Uniform(0.0, 1.0), Uniform(-1.0, 1.0)])
    >>> square.dim, square.ppf([[0.5, 0.5]]).tolist()
    (2, [[0.5, 0.0]])
    """

    def __init__(self, measures: Sequence[Measure]) -> None:
        self.measures = measures

    @property
    def dim(self) -> int:
        """The dimension d of Θ."""
        return len(self.marginals())

    @property
    def support(self) -> tuple[HostArray, HostArray]:
        """The bounds (low, high), each of shape (d,)."""
        bounds = [measure.support for measure in self.marginals()]
        return np.concatenate([low for low, _ in bounds]), np.concatenate([high for _, high in bounds])

    def ppf(self, u: HostArray) -> HostArray:
        """Return F⁻¹(u) for each coordinate: (m, d) → (m, d)."""
        u = _as_points(u, self.dim)
        return np.concatenate([mu.ppf(u[:, [k]]) for k, mu in enumerate(self.marginals())], axis=1)

    def marginals(self) -> tuple[Measure, ...]:
        """Return the factors μ_1, …, μ_d."""
        given = self.measures
        known = isinstance(given, (list, tuple)) and len(given) > 0
        if not known or not all(isinstance(mu, Measure) and mu.dim == 1 for mu in given):
            raise ValueError(
                f"ProductMeasure: measures={given!r} was given; it must be a list of one-dimensional measures, such as "
                "[Uniform(0.0, 1.0), Beta(2.0, 2.0)]."
            )
        return tuple(given)

    def atoms(self) -> Quadrature | None:
        """Return all combinations of the point masses of the factors, or None if a factor has a continuous part."""
        factors = [mu.atoms() for mu in self.marginals()]
        found = [factor for factor in factors if factor is not None]
        return Quadrature.tensor(found) if len(found) == len(factors) else None


def as_measure(spec: Any, default: Measure) -> Measure:
    """Return the measure given by ``spec``.

    Parameters
    ----------
    spec : None, Measure, frozen SciPy distribution, (low, high) or list of these
        None means ``default``, and a pair of numbers the uniform measure between them. A list of pairs, measures or
        distributions has one for each coordinate of θ.
    default : Measure

    Examples
    --------
    >>> as_measure((0.0, 2.0), default=Uniform())
    Uniform(high=2.0)
    >>> as_measure([(0.0, 1.0), (20.0, 1000.0)], default=Uniform()).dim
    2
    """
    if spec is None:
        return default
    if isinstance(spec, Measure):
        return spec
    if _is_frozen_continuous(spec):
        return ScipyMeasure(spec)
    if isinstance(spec, tuple) and len(spec) == 2 and all(map(is_number, spec)):
        return Uniform(float(spec[0]), float(spec[1]))
    if isinstance(spec, (list, tuple)) and len(spec) > 0 and not any(map(is_number, spec)):
        pairs = [tuple(one) if isinstance(one, list) else one for one in spec]
        if all(one is not None and not isinstance(one, str) for one in pairs):
            return ProductMeasure([as_measure(one, default) for one in pairs])
    raise ValueError(
        f"measure={spec!r} is not a measure on the tasks; give None, a Measure such as Uniform(0.1, 0.9), a pair "
        "(low, high) of finite numbers, a frozen continuous distribution of scipy.stats, or a list with one of these "
        f"for each coordinate of θ.{_points_meant(spec)}"
    )


def _points_meant(spec: Any) -> str:
    """Return advice on how to specify single tasks, for numbers that were given."""
    values = [spec] if is_number(spec) else list(spec) if isinstance(spec, (list, tuple, np.ndarray)) else []
    if not values or not all(map(is_number, values)):
        return ""
    shown = ", ".join(f"{value:g}" for value in values[:5]) + (", …" if len(values) > 5 else "")
    return f" For {'this task' if len(values) == 1 else 'these tasks'} alone, give Discrete([{shown}])."


def _is_frozen_continuous(spec: Any) -> bool:
    """Whether ``spec`` is a frozen continuous distribution whose parameters are scalars."""
    return isinstance(getattr(spec, "dist", None), stats.rv_continuous) and np.ndim(spec.ppf(0.5)) == 0


def _as_points(values: Any, dim: int) -> HostArray:
    """Return ``values`` as an array of shape (q, d); a vector is a column if d = 1."""
    points = np.asarray(values, dtype=float)
    if points.ndim == 1 and dim == 1:
        points = points[:, None]
    if points.ndim != 2 or points.shape[1] != dim:
        raise ValueError(
            f"Points on Θ were given with shape {points.shape}; in dimension {dim} the shape must be (q, {dim})."
        )
    return points
