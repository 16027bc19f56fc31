"""What a loss is, and what it tells."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from infinitask._base.arrays import Array, HostArray, namespace

FINEST = 1e-6
"""A loss that calls itself smooth over distances of this size has no kink."""

SLOPE_SLACK = 1e-12
"""A dual point that leaves the interval of slopes by at most this much counts as its end."""


class Pointwise(NamedTuple):
    """Value, lower bound and dual point at every pair (i, j); each field is an array of the shape of h."""

    value: Array
    """The loss itself, ℓ."""
    lower: Array
    """u r − ε|u| − q u²/2, the lower bound of the loss at h that belongs to the dual point u."""
    dual: Array
    """u = −∂ℓ^κ/∂h, the dual point."""


class Sums(NamedTuple):
    """:class:`Pointwise` summed over the nodes with the weights w_j, (n,) each, and the dual point."""

    value: Array
    lower: Array
    square: Array
    """Σ_j w_j κ_j (u_ij − v_ij)², v the centre."""
    dual: Array
    """u, (n, m)."""

    @classmethod
    def of(cls, point: Pointwise, weights: Array, kappa: Any, centre: Array | None) -> Sums:
        """The sums of values known at every pair."""
        u, lower = point.dual, point.lower @ weights
        value = lower if point.value is point.lower else point.value @ weights
        if _is_zero(kappa):
            return cls(value, lower, namespace(u).zeros_like(lower), u)
        away = u if centre is None else u - centre
        return cls(value, lower, (away * away) @ (weights * kappa), u)


class Finding(NamedTuple):
    """What is wrong with a loss that can still be fitted."""

    sentence: str
    """What was found, and what to do."""
    certified: bool
    """Whether a duality gap still means something."""
    endless: bool = False
    """Whether nothing but a ridge holds h: without one there is no minimiser."""


class Stability(NamedTuple):
    """What a bound needs of a loss whose slopes are bounded; the formulas are those of :mod:`infinitask.bounds`."""

    slope: float
    """ℒ, the mean over Θ of the largest slope in h."""
    zero: float
    """L₀, a bound of the risk of h = 0."""
    reach: float
    """B ≥ |y|."""
    value_rate: float
    """a: ∫ |∂ℓ/∂θ| dθ ≤ a (B + |h|), up to the part of ∂h/∂θ."""
    slope_rate: float
    """c: the factor of |∂h/∂θ|, integrated over θ."""

    @classmethod
    def of_levels(cls, reach: float, low: float, high: float, *, slope: float, middle: float) -> Stability:
        """Levels on [low, high]: |dℓ/dθ| ≤ |y − h| + max(θ, 1 − θ)|∂h/∂θ|."""

        def steep(t: float) -> float:
            """∫ max(θ, 1 − θ) dθ from 0 to t."""
            return t - t * t / 2.0 if t < 0.5 else t * t / 2.0 + 0.25

        return cls(slope, reach * middle, reach, high - low, steep(high) - steep(low))

    @classmethod
    def of_costs(cls, low: float, high: float, *, slope: float) -> Stability:
        """Costs on [low, high]: |dℓ/dθ| ≤ (1 + |h|)/2 + c_θ(y)|∂h/∂θ|."""
        return cls(slope, slope, 1.0, (high - low) / 2.0, (high - low) / 2.0 + abs(high * high - low * low) / 4.0)


class Loss(BaseEstimator, ABC):
    """Measures how bad a prediction h for task θ is, given the target y: ℓ_θ(y, h), convex in h.

    In all methods ``theta`` is (m,) (or (m, d) when Θ is d-dimensional), ``y`` is (n, 1) (or (n, m) when every task has
    its own targets) or None, ``h`` is (n, m).
    """

    domain: tuple[Any, Any] | tuple[tuple[float, float], ...] = (0.0, 1.0)
    """The interval (low, high) on which the loss is defined; where θ has several coordinates, a pair for each of them,
    ((low, high), (low, high)), or one that holds for all."""

    support: tuple[Any, Any] | tuple[tuple[float, float], ...] | None = None
    """The support of the default measure, written as the domain; None: the domain."""

    dim: int | None = None
    """The dimension of θ; None: any."""

    degree: int | None = None
    """p, if the loss depends on r = y − h alone and ℓ(a r) = a^p ℓ(r) for a > 0, see :meth:`in_units`; None: it is not
    so, or not known, and targets are taken as they are."""

    rests_at_zero: bool = True
    """Whether the smallest value of the loss is 0, for every θ and y."""

    zero_sum: int = 1
    """How many neighbouring nodes have values of h that sum to 0, as those of all classes at one cost do; 1: none."""

    target_bound: float | None = None
    """The largest |y| that the loss takes; None: any."""

    @property
    def degree_verified(self) -> bool:
        """Whether the tests of this library verify the degree, so that a fit need not; not so for derived classes."""
        return type(self).__module__ == "infinitask.losses._rows" and "degree" not in vars(self)

    def stability(
        self, theta: HostArray, weights: HostArray, ends: tuple[float, float], y_bound: float
    ) -> Stability | None:
        """The constants of the loss in a bound by uniform stability; None: none are known.

        Parameters
        ----------
        theta, weights : ndarray (m,)
            Nodes, and the moduli of their weights.
        ends : (float, float)
            The ends of Θ.
        y_bound : float
            B ≥ |y|.
        """
        return None

    few: bool = False
    """Whether few of the pairs have a target, so that little is computed at the others."""

    def values_of(self, targets: Array) -> Array:
        """The targets as numbers, (n, 1) or (n, m), where ``targets`` may say more of them."""
        return targets

    def shares_of(self, targets: Array) -> Array | None:
        """How much each of these targets counts beside the weights of rows and nodes, (n, m); None: all the same."""
        return None

    def in_units(self, spread: float) -> Loss:
        """The loss of residuals measured in a spread: ℓ(spread · r) = spread^p · that loss of r."""
        return self

    def check_targets(self, y: Array | None) -> None:
        """Raise an error if the loss cannot take these targets."""

    def check(self, theta: Array, y: Array | None) -> Finding | None:
        """Raise an error if the loss cannot be fitted at (θ, y); what else is wrong with it, None: nothing."""
        return None

    def box(self, dim: int) -> tuple[HostArray, HostArray]:
        """The ends (low, high) of the domain in each of ``dim`` coordinates of θ, (dim,) each.

        A class with several coordinates that names no domain of its own is defined everywhere.
        """
        if dim > 1 and self.domain is Loss.domain:
            return np.full(dim, -math.inf), np.full(dim, math.inf)
        pairs = np.asarray(self.domain, dtype=np.float64)
        if pairs.shape not in ((2,), (dim, 2)):
            raise ValueError(
                f"{type(self).__name__} has domain = {self.domain!r} for θ of dimension {dim}; it must be a pair (low, "
                f"high){'' if dim == 1 else ', or one pair for each coordinate, ((low, high), (low, high), …)'}."
            )
        low, high = np.broadcast_to(pairs, (dim, 2)).T
        return low, high

    @abstractmethod
    def pointwise(
        self, theta: Array, y: Array | None, h: Array, kappa: Any = 0.0, centre: Array | None = None
    ) -> Pointwise:
        """Value, lower bound and dual point of the envelope, computed together.

        ``kappa`` is a scalar or (m,). With a ``centre`` v (n, m) the envelope is taken around it: u maximises the lower
        bound less (κ/2)(u − v)² instead of (κ/2)u².
        """

    @abstractmethod
    def curvature(
        self, theta: Array, y: Array | None, h: Array, kappa: Any = 0.0, centre: Array | None = None
    ) -> Array:
        """∂²ℓ^κ/∂h², an element of the generalised derivative of the slope; (n, m)."""

    @abstractmethod
    def dual(self, theta: Array, y: Array | None, u: Array) -> Array:
        """−ℓ*(−u), the dual term; −∞ outside the interval of u."""

    def sums(
        self,
        theta: Array,
        y: Array | None,
        h: Array,
        weights: Array,
        kappa: Any = 0.0,
        centre: Array | None = None,
        *,
        row: Any = None,
        room: HostArray | None = None,
    ) -> Sums:
        """:meth:`pointwise` summed over the nodes with ``weights`` (m,), as the objective needs it.

        ``row`` is the row of the table at (θ, y), if it is known. With ``room``, a NumPy array like h, both may be
        overwritten, and the dual point may be one of them.
        """
        return Sums.of(self.pointwise(theta, y, h, kappa, centre), weights, kappa, centre)

    def corner(self, theta: Array, y: Array | None, zero: Array, side: float, reach: float) -> tuple[Array, Array]:
        """The dual point u of a field far above (``side`` = 1) or far below (−1) the targets, and −ℓ*(−u).

        ``zero`` is an array of zeros (n, m). If the slopes are not bounded, far means ``reach``.
        """
        h = zero + side * reach if y is None else zero + self.values_of(y) + side * reach
        point = self.pointwise(theta, y, h)
        return point.dual, point.lower + point.dual * h

    def width(self, theta: Array) -> Array:
        """Smoothing of each node relative to the others, (m,): a solver passes κ·width as ``kappa``."""
        return namespace(theta).ones_like(theta if theta.ndim == 1 else theta[:, 0])

    def smooth(self, scale: float) -> bool:
        """Whether the slope changes slowly over distances of ``scale`` in h, so that a solver need not smooth it."""
        return False

    def value(self, theta: Array, y: Array | None, h: Array) -> Array:
        """ℓ_θ(y, h), (n, m)."""
        return self.pointwise(theta, y, h).value

    def slope(self, theta: Array, y: Array | None, h: Array) -> Array:
        """∂ℓ/∂h, (n, m); a subgradient at a kink."""
        return -self.pointwise(theta, y, h).dual


def _is_zero(kappa: Any) -> bool:
    return isinstance(kappa, (int, float)) and kappa == 0.0


def named(value: Any) -> str:
    """What a method returned instead of an array, in words."""
    return "None" if value is None else f"a {type(value).__name__}"


def kinked(name: str, found: str) -> Finding:
    """The finding that a loss has a kink, and says that it has none."""
    return Finding(
        f"{name} says that it needs no smoothing, but {found}; a solver that trusts it gets stuck there. Leave out "
        "`smooth_scale`, or the method `smooth`: the kink is then smoothed at first, and not at the end.",
        certified=True,
    )
