"""How a row of the table becomes a loss."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, NamedTuple

from infinitask._base.arrays import Array, HostArray, as_like, namespace
from infinitask.losses._base import FINEST, SLOPE_SLACK, Finding, Loss, Pointwise, Sums, _is_zero, kinked, named


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
        """Whether the row is an interval of slopes and nothing else."""
        return self.dead_zone is self.soft_low is self.soft_high is None


class BoxLoss(Loss):
    """A loss given by its row of the table; a subclass implements :meth:`row` and nothing else.

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
        """The interval, dead zone and softness at (θ, y)."""

    def check(self, theta: Array, y: Array | None) -> Finding | None:
        """The entries must broadcast, the interval must contain 0, dead zone and softness must not be negative.

        Where the interval has no end there must be softness, and where the loss calls itself smooth, everywhere.
        """
        name, row = type(self).__name__, self.row(theta, y)
        _check_row(name, row, theta, y)
        return _row_kink(name, row, theta) if self.smooth(FINEST) else None

    def goal(self, y: Array | None) -> Array | None:
        """What h is compared with: the target itself, or None for 0. Labels that are no numbers have another goal."""
        return y

    def residual(self, y: Array | None, h: Array) -> Array:
        """r = y − h, or −h without targets."""
        goal = self.goal(y)
        return -h if goal is None else goal - h

    def _soft(self, row: Row, r: Array) -> Array | None:
        """q on the side of the kink where r lies (or u, which has the same sign); None for 0."""
        if row.soft_low is None and row.soft_high is None:
            return None
        return namespace(r).where(r > 0, as_entry(row.soft_high, r), as_entry(row.soft_low, r))

    def _maximiser(self, row: Row, r: Array, kappa: Any, q: Array | None) -> Array:
        """The u that attains the maximum of u r − ε|u| − (κ + q) u²/2."""
        xp = namespace(r)
        if row.dead_zone is not None:
            r = xp.sign(r) * xp.clip(xp.abs(r) - row.dead_zone, 0.0)
        if _is_zero(kappa) and q is None:
            zero = xp.zeros_like(r)
            return xp.where(r > 0, as_entry(row.high, r) + zero, xp.where(r < 0, as_entry(row.low, r) + zero, zero))
        # κ alone is one number for each node: invert it there, not at every pair
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
        """r / q; on a side without softness the end of the interval."""
        if row.soft_low is not None and row.soft_high is not None:
            return r / q
        xp = namespace(r)
        hard = self._maximiser(Row(row.low, row.high), r, 0.0, None)
        return xp.where(q > 0, r / xp.where(q > 0, q, xp.ones_like(q)), hard)

    def _lower(self, row: Row, r: Array, u: Array, q: Array | None) -> Array:
        """u r − ε|u| − q u²/2."""
        lower = u * (r if q is None else r - 0.5 * q * u)
        return lower if row.dead_zone is None else lower - row.dead_zone * namespace(r).abs(u)

    def pointwise(
        self, theta: Array, y: Array | None, h: Array, kappa: Any = 0.0, centre: Array | None = None
    ) -> Pointwise:
        """See :meth:`Loss.pointwise`."""
        r = self.residual(y, h)
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

        The hot path is a loss with a kink at zero and nothing else. There max(b r, a r) = ((b − a)|r| + (a + b) r)/2,
        so its sum over the nodes is two products with vectors and needs no array of size n × m: an evaluation takes
        half the time. With ``room`` no array of that size is made at all, which halves it again where an array is too
        large for the allocator to keep.
        """
        row = self.row(theta, y) if row is None else row
        ends = [getattr(end, "ndim", 0) for end in (row.low, row.high)]
        kinked = row.dead_zone is row.soft_low is row.soft_high is None and 0 not in ends
        if _is_zero(kappa) or not kinked or type(self).residual is not BoxLoss.residual:
            return super().sums(theta, y, h, weights, kappa, centre)
        xp, kappa = namespace(h), as_entry(kappa, h)
        here: dict[str, Any] = {} if room is None else {"out": h}
        there: dict[str, Any] = {} if room is None else {"out": room}
        goal = self.goal(y)
        r = xp.negative(h, **here) if goal is None else xp.subtract(goal, h, **here)
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
        """See :meth:`Loss.corner`: the ends of the interval, where it has them."""
        row = self.row(theta, y)
        end = row.low if side > 0 else row.high
        if end is None or not bool(namespace(zero).all(namespace(zero).isfinite(as_entry(end, zero)))):
            return super().corner(theta, y, zero, side, reach)
        u = as_entry(end, zero) + zero
        return u, self.dual(theta, y, u)

    def curvature(
        self, theta: Array, y: Array | None, h: Array, kappa: Any = 0.0, centre: Array | None = None
    ) -> Array:
        """See :meth:`Loss.curvature`: 1/(κ + q) where u is strictly inside its interval, 0 elsewhere."""
        xp = namespace(h)
        r = self.residual(y, h)
        if centre is not None:
            r = r + kappa * centre
        row = self.row(theta, y)
        q = self._soft(row, r)
        zero = xp.zeros_like(r)
        if _is_zero(kappa) and q is None:
            return zero
        # without q one number for each node: nothing of size n × m is made of it
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
        """∂ℓ^κ/∂h, (n, m); at a kink of the loss itself (κ = 0) the subgradient of least modulus."""
        return -self.pointwise(theta, y, h, kappa).dual

    def dual(self, theta: Array, y: Array | None, u: Array) -> Array:
        """See :meth:`Loss.dual`."""
        return self._dual(self.row(theta, y), self.goal(y), u)

    def _dual(self, row: Row, goal: Array | None, u: Array) -> Array:
        """−ℓ*(−u) of a row of the table."""
        xp = namespace(u)
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


def _check_row(name: str, row: Any, theta: Array, y: Array | None) -> None:
    """An error unless entries broadcast, the interval contains 0, nothing is negative, and the loss is finite."""
    if not isinstance(row, Row):
        raise TypeError(f"{name}.row returned {named(row)}; it must return a Row, such as Row(theta - 1.0, theta).")
    # without targets a row cannot know n
    xp, m, n = namespace(theta), theta.shape[0], 1 if y is None else y.shape[0]
    entries: dict[str, Any] = row._asdict()
    for entry_name, entry in entries.items():
        if entry is None:
            continue
        if not isinstance(entry, (int, float)) and not hasattr(entry, "shape"):
            raise TypeError(
                f"{name}.row gave a {entry_name} of type {type(entry).__name__}; it must be a number, an array of the "
                "library of theta, or None."
            )
        shape = tuple(getattr(entry, "shape", ()))
        if any(size not in (1, full) for size, full in zip(shape[::-1], (m, n), strict=False)) or len(shape) > 2:
            of_sample = "" if y is None else f", ({n}, 1) for one value per sample, or ({n}, {m})"
            raise ValueError(
                f"{name}.row gave a {entry_name} of shape {shape} for {m} tasks"
                f"{'' if y is None else f' and {n} samples'}; expected a number, ({m},) for one value per task"
                f"{of_sample}."
            )
        sign, values = -1.0 if entry_name == "low" else 1.0, as_entry(entry, theta)
        if bool(xp.any(xp.isnan(values))):
            raise ValueError(
                f"{name}.row gave a {entry_name} that is NaN somewhere; it must be a number at every θ and y. Look for "
                "a division by 0, or for θ outside the domain of the loss."
            )
        if not bool(xp.all(sign * values >= 0.0)):
            raise ValueError(
                f"{name}.row gave a {entry_name} that is {'above' if sign < 0 else 'below'} 0 somewhere; the interval "
                "of slopes must contain 0 (low ≤ 0 ≤ high), dead zone and softness be at least 0."
            )
    for end, soft in (("low", "soft_low"), ("high", "soft_high")):
        if bool(xp.any((_length(entries[end], theta) == math.inf) & (as_entry(entries[soft], theta) == 0.0))):
            raise ValueError(
                f"{name}.row gave no finite {end} and no {soft}; the loss is then infinite wherever y and h differ. "
                f"Give a finite {end}, or a {soft} above 0."
            )


def _row_kink(name: str, row: Row, theta: Array) -> Finding | None:
    """What to say of a row with a kink of a loss that calls itself smooth."""
    xp = namespace(theta)
    for end, soft, side in ((row.low, row.soft_low, "soft_low"), (row.high, row.soft_high, "soft_high")):
        if bool(xp.any((_length(end, theta) > 0.0) & (as_entry(soft, theta) == 0.0))):
            return kinked(name, f"its row has a slope without softness ({side} is 0), which is a kink")
    return None


def _length(end: Any, like: Array) -> Array:
    """How far an interval of slopes reaches to one side: None is ∞."""
    return as_entry(math.inf if end is None else abs(as_entry(end, like)), like)


def as_entry(value: Any, like: Array) -> Array:
    """An entry of a row as an array: None is 0, a number becomes an array without axes."""
    if value is None or isinstance(value, (int, float)):
        return as_like(0.0 if value is None else value, like)
    return value
