"""The base classes of losses: the interface of a loss, and losses given by a row of the table."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from infinitask._base.arrays import Array, HostArray, as_like, namespace

if TYPE_CHECKING:
    from infinitask.losses._checks import Finding
    from infinitask.losses._rows import Stability

FINEST = 1e-6
"""A loss that is smooth over distances of this size, by its own claim, has no kink."""

SLOPE_SLACK = 1e-12
"""The tolerance outside the interval of slopes within which a dual point counts as its end."""


class Pointwise(NamedTuple):
    """Value, lower bound and dual point for every pair (i, j); each field is an array with the shape of h."""

    value: Array
    """The loss itself, ℓ."""
    lower: Array
    """u r − ε|u| − q u²/2, the lower bound of the loss at h for the dual point u."""
    dual: Array
    """u = −∂ℓ^κ/∂h, the dual point."""


class Sums(NamedTuple):
    """:class:`Pointwise` summed over the nodes with the weights w_j, (n,) each, and the dual point."""

    value: Array
    lower: Array
    square: Array
    """Σ_j w_j κ_j (u_ij − v_ij)², with the centre v."""
    dual: Array
    """u, (n, m)."""

    @classmethod
    def of(cls, point: Pointwise, weights: Array, kappa: Any, centre: Array | None) -> Sums:
        """Return the sums of pointwise values."""
        u, lower = point.dual, point.lower @ weights
        value = lower if point.value is point.lower else point.value @ weights
        if _is_zero(kappa):
            return cls(value, lower, namespace(u).zeros_like(lower), u)
        away = u if centre is None else u - centre
        return cls(value, lower, (away * away) @ (weights * kappa), u)


class Row(NamedTuple):
    """A row of the table: scalars, or arrays that broadcast against h (n, m)."""

    low: Any
    """a, at most 0; None for −∞."""
    high: Any
    """b, at least 0; None for +∞."""
    dead_zone: Any = None
    """ε, None for 0."""
    soft_low: Any = None
    """q for u < 0, None for 0."""
    soft_high: Any = None
    """q for u > 0, None for 0."""

    @property
    def plain(self) -> bool:
        """Whether the row is only an interval of slopes."""
        return self.dead_zone is self.soft_low is self.soft_high is None


class Loss(BaseEstimator, ABC):
    """The loss ℓ_θ(y, h) of a prediction h for task θ, given the target y; convex in h.

    In all methods ``theta`` is (m,) (or (m, d) when Θ is d-dimensional), ``y`` is (n, 1) (or (n, m) if every task has
    its own targets) or None, ``h`` is (n, m).
    """

    domain: tuple[Any, Any] | tuple[tuple[float, float], ...] = (0.0, 1.0)
    """The interval (low, high) on which the loss is defined; if θ has several coordinates, a pair for each,
    ((low, high), (low, high)), or one pair for all."""

    support: tuple[Any, Any] | tuple[tuple[float, float], ...] | None = None
    """The support of the default measure, written as the domain; None: the domain."""

    dim: int | None = None
    """The dimension of θ; None: any."""

    degree: int | None = None
    """p, if the loss depends on r = y − h alone and ℓ(a r) = a^p ℓ(r) for a > 0, see :meth:`in_units`. None: this does
    not hold or is unknown, and targets are not rescaled."""

    rests_at_zero: bool = True
    """Whether the smallest value of the loss is 0, for every θ and y."""

    rounding: float = 0.0
    """κ, if the model itself rounds kinks over that length; the non-crossing penalty may be rounded likewise."""

    separate_fields: int = 1
    """The number of groups of tasks whose fields share nothing but φ, such as those of each class."""

    target_bound: float | None = None
    """The largest |y| that the loss accepts; None: any."""

    @property
    def degree_verified(self) -> bool:
        """Whether the tests of this library verify the degree, so a fit need not; False for derived classes."""
        return type(self).__module__ == "infinitask.losses._rows" and "degree" not in vars(self)

    def stability(
        self, theta: HostArray, weights: HostArray, ends: tuple[Any, Any], y_bound: float
    ) -> Stability | None:
        """Return the constants of the loss in a bound by uniform stability; None if they are unknown.

        If θ has several coordinates, ``value_rate`` and ``slope_rate`` are a and c of
        |ℓ_θ(y, h) − ℓ_θ'(y, h')| ≤ a (B + |h|)·d + c |h − h'|, where d is the largest difference of a coordinate,
        relative to the side of Θ.

        Parameters
        ----------
        theta : ndarray (m,) or (m, d)
            The nodes.
        weights : ndarray (m,)
            The absolute values of their weights.
        ends : (low, high)
            The ends of Θ: numbers, or arrays (d,).
        y_bound : float
            B ≥ |y|.

        Returns
        -------
        tuple or None
            ℒ, the mean over Θ of the largest slope in h; L₀, a bound on the risk of h = 0; B; ``value_rate``;
            ``slope_rate``. In one dimension the last two are a and c of :mod:`infinitask.bounds`.
        """
        return None

    weighted: bool = False
    """Whether each pair of a row and a node has its own weight beside its target."""

    few: bool = False
    """Whether only few of the pairs have a target."""

    def values_of(self, targets: Array) -> Array:
        """Return the targets as numbers, (n, 1) or (n, m), without other information in ``targets``."""
        return targets

    def shares_of(self, targets: Array) -> Array | None:
        """Return the weight of each target beside the weights of rows and nodes, (n, m); None: all are equal."""
        return None

    def in_units(self, spread: float) -> Loss:
        """Return the loss ℓ' of residuals in units of a spread: ℓ(spread · r) = spread^p · ℓ'(r)."""
        return self

    def check_targets(self, y: Array | None) -> None:
        """Raise an error if the loss does not support these targets."""

    def check(self, theta: Array, y: Array | None) -> Finding | None:
        """Raise an error if the loss cannot be fitted at (θ, y); return any other problem, or None."""
        return None

    def box(self, dim: int) -> tuple[HostArray, HostArray]:
        """Return the ends (low, high) of the domain in each of ``dim`` coordinates of θ, (dim,) each.

        A class with several coordinates and without its own domain is defined everywhere.
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
        """Return the value, lower bound and dual point of the envelope.

        ``kappa`` is a scalar or (m,). With a ``centre`` v (n, m) the envelope is centred there: u maximises the lower
        bound minus (κ/2)(u − v)² instead of (κ/2)u².
        """

    @abstractmethod
    def curvature(
        self, theta: Array, y: Array | None, h: Array, kappa: Any = 0.0, centre: Array | None = None
    ) -> Array:
        """Return ∂²ℓ^κ/∂h², (n, m), an element of the generalised derivative of the slope."""

    @abstractmethod
    def dual(self, theta: Array, y: Array | None, u: Array) -> Array:
        """Return −ℓ*(−u), the dual term; −∞ outside the interval of u."""

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
        """Return :meth:`pointwise` summed over the nodes with ``weights`` (m,), for the objective.

        ``row`` is the row of the table at (θ, y), if already computed. With ``room``, a NumPy array like h, both may be
        overwritten, and the dual point may be one of them.
        """
        return Sums.of(self.pointwise(theta, y, h, kappa, centre), weights, kappa, centre)

    def corner(self, theta: Array, y: Array | None, zero: Array, side: float, reach: float) -> tuple[Array, Array]:
        """Return the dual point u of a field far above (``side`` = 1) or far below (−1) the targets, and −ℓ*(−u).

        ``zero`` is an array of zeros (n, m). If the slopes are not bounded, far means ``reach``.
        """
        h = zero + side * reach if y is None else zero + self.values_of(y) + side * reach
        point = self.pointwise(theta, y, h)
        return point.dual, point.lower + point.dual * h

    def width(self, theta: Array) -> Array:
        """Return the smoothing of each node relative to the others, (m,): a solver passes κ·width as ``kappa``."""
        return namespace(theta).ones_like(theta if theta.ndim == 1 else theta[:, 0])

    def smooth(self, scale: float) -> bool:
        """Whether the slope changes slowly over distances of ``scale`` in h, so a solver need not smooth it."""
        return False

    def value(self, theta: Array, y: Array | None, h: Array) -> Array:
        """Return ℓ_θ(y, h), (n, m)."""
        return self.pointwise(theta, y, h).value

    def slope(self, theta: Array, y: Array | None, h: Array) -> Array:
        """Return ∂ℓ/∂h, (n, m); a subgradient at a kink."""
        return -self.pointwise(theta, y, h).dual


class BoxLoss(Loss):
    """A loss given by its row of the table; a subclass implements only :meth:`row`.

    Examples
    --------
    >>> import numpy as np
    >>> class Huber(BoxLoss):
    ...     domain = (0.1, 2.0)
    ...
    ...     def row(self, theta, y):
    ...         return Row(-theta, theta, soft_low=1.0, soft_high=1.0)
    >>> Huber().value(np.array([0.5, 2.0]), np.array([[1.0]]), np.array([[0.0, 0.0]]))
    array([[0.375, 0.5  ]])
    """

    @abstractmethod
    def row(self, theta: Array, y: Array | None) -> Row:
        """Return the interval, dead zone and softness at (θ, y)."""

    def check(self, theta: Array, y: Array | None) -> Finding | None:
        """Check that entries broadcast, the interval contains 0, and dead zone and softness are not negative.

        A side without an end of the interval needs softness. A loss that claims to be smooth needs it on both sides.
        The tests of this library verify its own rows, so a fit need not.
        """
        if type(self).__module__.startswith("infinitask.losses."):
            return None
        from ._checks import check_row  # circular import

        return check_row(self, theta, y)

    def goal(self, theta: Array, y: Array | None) -> Any:
        """Return the value that h is compared with: the target, or None for 0; an interval without targets has its own.

        It is an array, or a number.
        """
        return y

    def residual(self, theta: Array, y: Array | None, h: Array) -> Array:
        """Return r = y − h, or −h without targets."""
        goal = self.goal(theta, y)
        return -h if goal is None else goal - h

    def _soft(self, row: Row, r: Array) -> Array | None:
        """Return q on the side of the kink given by the sign of r (or u, which has the same sign); None for 0."""
        if row.soft_low is None and row.soft_high is None:
            return None
        return namespace(r).where(r > 0, as_entry(row.soft_high, r), as_entry(row.soft_low, r))

    def _maximiser(self, row: Row, r: Array, kappa: Any, q: Array | None) -> Array:
        """Return the u that attains the maximum of u r − ε|u| − (κ + q) u²/2."""
        xp = namespace(r)
        if row.dead_zone is not None:
            r = xp.sign(r) * xp.clip(xp.abs(r) - row.dead_zone, 0.0)
        if _is_zero(kappa) and q is None:
            zero = xp.zeros_like(r)
            return xp.where(r > 0, as_entry(row.high, r) + zero, xp.where(r < 0, as_entry(row.low, r) + zero, zero))
        # κ alone is one number per node: invert it per node, not per pair
        if q is None:
            u = r * (1.0 / kappa)
        elif _is_zero(kappa):
            u = self._over(row, r, q)
        else:
            u = r / (kappa + q)
        # two calls are faster than one of clip with a bound per node
        u = u if row.low is None else xp.maximum(u, as_entry(row.low, u))
        return u if row.high is None else xp.minimum(u, as_entry(row.high, u))

    def _over(self, row: Row, r: Array, q: Array) -> Array:
        """Return r / q; on a side without softness, the end of the interval."""
        if row.soft_low is not None and row.soft_high is not None:
            return r / q
        xp = namespace(r)
        hard = self._maximiser(Row(row.low, row.high), r, 0.0, None)
        return xp.where(q > 0, r / xp.where(q > 0, q, xp.ones_like(q)), hard)

    def _lower(self, row: Row, r: Array, u: Array, q: Array | None) -> Array:
        """Return u r − ε|u| − q u²/2."""
        lower = u * (r if q is None else r - 0.5 * q * u)
        return lower if row.dead_zone is None else lower - row.dead_zone * namespace(r).abs(u)

    def pointwise(
        self, theta: Array, y: Array | None, h: Array, kappa: Any = 0.0, centre: Array | None = None
    ) -> Pointwise:
        """See :meth:`Loss.pointwise`."""
        r = self.residual(theta, y, h)
        row = self.row(theta, y)
        # u r − (κ/2)(u − v)² is u (r + κv) − (κ/2)u² up to a constant: a centre shifts the residual
        shifted = r if centre is None else r + kappa * centre
        q = self._soft(row, shifted)
        u = self._maximiser(row, shifted, kappa, q)
        lower = self._lower(row, r, u, q)
        if _is_zero(kappa):
            return Pointwise(lower, lower, u)
        q = q if centre is None else self._soft(row, r)
        return Pointwise(self._lower(row, r, self._maximiser(row, r, 0.0, q), q), lower, u)

    def sums(
        self,
        theta: Array,
        y: Array | None,
        h: Array,
        weights: Array,
        kappa: Any = 0.0,
        centre: Array | None = None,
        *,
        row: Row | None = None,
        room: HostArray | None = None,
    ) -> Sums:
        """See :meth:`Loss.sums`.

        The hot path is a loss that has only a kink at zero. In that case max(b r, a r) = ((b − a)|r| + (a + b) r)/2,
        so its sum over the nodes is two products with vectors and needs no array of size n × m: an evaluation takes
        half the time. With ``room`` no array of that size is allocated, which halves the time again if an array is too
        large for the allocator to reuse.
        """
        row = self.row(theta, y) if row is None else row
        ends = [getattr(end, "ndim", 0) for end in (row.low, row.high)]
        kinked = row.dead_zone is row.soft_low is row.soft_high is None and 0 not in ends
        if _is_zero(kappa) or not kinked or self.weighted:
            return super().sums(theta, y, h, weights, kappa, centre)
        xp, kappa = namespace(h), as_entry(kappa, h)
        here: dict[str, Any] = {} if room is None else {"out": h}
        there: dict[str, Any] = {} if room is None else {"out": room}
        goal = self.goal(theta, y)
        r = xp.negative(h, **here) if goal is None else xp.subtract(as_entry(goal, h), h, **here)
        if ends == [1, 1]:
            half = 0.5 * weights
            value = xp.abs(r, **there) @ (half * (row.high - row.low)) + r @ (half * (row.high + row.low))
        else:
            value = xp.maximum(xp.multiply(row.high, r, **there), row.low * r, **there) @ weights
        shifted = r if centre is None else xp.add(r, xp.multiply(kappa, centre, **there), **there)
        u = xp.multiply(shifted, 1.0 / kappa, **there)
        # two calls are faster than one of clip with a bound per node
        u = xp.minimum(xp.maximum(u, row.low, **there), row.high, **there)
        lower = xp.multiply(u, r, **here) @ weights
        away = u if centre is None else xp.subtract(u, centre, **here)
        return Sums(value, lower, xp.multiply(away, away, **here) @ (weights * kappa), u)

    def corner(self, theta: Array, y: Array | None, zero: Array, side: float, reach: float) -> tuple[Array, Array]:
        """See :meth:`Loss.corner`: the ends of the interval, if they are finite."""
        row = self.row(theta, y)
        end = row.low if side > 0 else row.high
        if end is None or not bool(namespace(zero).all(namespace(zero).isfinite(as_entry(end, zero)))):
            return super().corner(theta, y, zero, side, reach)
        u = as_entry(end, zero) + zero
        return u, self.dual(theta, y, u)

    def curvature(
        self, theta: Array, y: Array | None, h: Array, kappa: Any = 0.0, centre: Array | None = None
    ) -> Array:
        """See :meth:`Loss.curvature`: 1/(κ + q) if u is strictly inside its interval, else 0."""
        xp = namespace(h)
        r = self.residual(theta, y, h)
        if centre is not None:
            r = r + kappa * centre
        row = self.row(theta, y)
        q = self._soft(row, r)
        zero = xp.zeros_like(r)
        if _is_zero(kappa) and q is None:
            return zero
        # without q it is one number per node: no array of size n × m is needed
        soft = as_entry(kappa, r) if q is None else kappa + q
        inside = soft > 0
        soft = xp.where(inside, soft, xp.ones_like(soft))
        if row.dead_zone is not None:
            beyond = xp.abs(r) - row.dead_zone
            r = xp.sign(r) * xp.clip(beyond, 0.0)
            inside = inside & ((beyond > 0) | (as_entry(row.dead_zone, r) == 0))
        u = r / soft
        if row.low is not None:
            inside = inside & (u > row.low)
        if row.high is not None:
            inside = inside & (u < row.high)
        return xp.where(inside, 1.0 / soft, zero)

    def slope(self, theta: Array, y: Array | None, h: Array, kappa: Any = 0.0) -> Array:
        """Return ∂ℓ^κ/∂h, (n, m); at a kink of the loss itself (κ = 0) the subgradient of least modulus."""
        return -self.pointwise(theta, y, h, kappa).dual

    def dual(self, theta: Array, y: Array | None, u: Array) -> Array:
        """See :meth:`Loss.dual`."""
        xp, row, goal = namespace(u), self.row(theta, y), self.goal(theta, y)
        term = xp.zeros_like(u) if goal is None else goal * u
        if row.dead_zone is not None:
            term = term - row.dead_zone * xp.abs(u)
        q = self._soft(row, u)
        if q is not None:
            term = term - 0.5 * q * u * u
        outside = xp.zeros_like(u, dtype=xp.bool)
        if row.low is not None:
            outside = outside | (u < row.low - SLOPE_SLACK)
        if row.high is not None:
            outside = outside | (u > row.high + SLOPE_SLACK)
        return xp.where(outside, xp.full_like(u, -math.inf), term)


def as_entry(value: Any, like: Array) -> Array:
    """Return an entry of a row as an array: None is 0, a number becomes an array without axes."""
    if value is None or isinstance(value, (int, float)):
        return as_like(0.0 if value is None else value, like)
    return value


def _is_zero(kappa: Any) -> bool:
    return isinstance(kappa, (int, float)) and kappa == 0.0
