"""Integrands of penalties: convex functions ω(θ, v) of a value of h or of its derivative, as losses without targets."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, final

import numpy as np

from infinitask._base.arrays import Array, namespace
from infinitask.losses._base import BoxLoss, Loss, Row, as_entry
from infinitask.losses._checks import Finding, check_convex
from infinitask.losses._convex import ConvexLoss, FunctionLoss


@final
class Distance(BoxLoss):
    """The distance of v from an interval, (low − v)₊ + (v − high)₊; |v| for the interval [0, 0].

    Parameters
    ----------
    low, high : float
        The ends, low ≤ high; one of them may be infinite.

    Examples
    --------
    >>> import numpy as np
    >>> Distance(-1.0, 2.0).value(np.array([0.5]), None, np.array([[-3.0], [0.0], [2.5]])).ravel()
    array([2. , 0. , 0.5])
    >>> Distance(-math.inf, 2.0).value(np.array([0.5]), None, np.array([[-3.0], [2.5]])).ravel()
    array([0. , 0.5])
    """

    def __init__(self, low: float = 0.0, high: float = 0.0) -> None:
        self.low = low
        self.high = high

    def goal(self, theta: Array, y: Array | None) -> Any:
        """Return the middle of the interval, or its finite end; None for 0."""
        ends = [end for end in (self.low, self.high) if math.isfinite(end)]
        return sum(ends) / len(ends) or None

    def row(self, theta: Array, y: Array | None) -> Row:
        """Return u ∈ [−1, 1], or one half of it if an end is infinite, and as ε half the width."""
        zero = 0.0 * (theta if theta.ndim == 1 else theta[:, 0])
        half = 0.5 * (self.high - self.low)
        low, high = zero - float(math.isfinite(self.high)), zero + float(math.isfinite(self.low))
        return Row(low, high, dead_zone=half if 0.0 < half < math.inf else None)


class _Rescaled:
    """a ω(θ, s v + c): an integrand with a weight a, of values that are measured in other units.

    Parameters
    ----------
    loss : Loss
        ω.
    weight, spread, centre : float
        a, s and c.
    """

    loss: Any
    weight: float
    spread: float
    centre: float

    def __init__(self, loss: Loss, weight: float = 1.0, spread: float = 1.0, centre: float = 0.0) -> None:
        self.loss = loss
        self.weight = weight
        self.spread = spread
        self.centre = centre

    @property
    def rests_at_zero(self) -> bool:
        """Whether the smallest value of ω is 0."""
        return bool(self.loss.rests_at_zero)

    @property
    def steepness(self) -> float:
        """The factor a s of the slopes."""
        return self.weight * self.spread

    def width(self, theta: Array) -> Array:
        """Return the width of ω over a s: the smoothed part does not depend on the weight."""
        return self.loss.width(theta) / self.steepness


@final
class RescaledRow(_Rescaled, BoxLoss):  # type: ignore[override]
    """a ω(θ, s v + c) for a row of the table.

    Examples
    --------
    >>> import numpy as np
    >>> RescaledRow(Distance(0.0, 1.0), 3.0, spread=2.0, centre=1.0).value(np.array([0.5]), None, np.array([[0.5]]))
    array([[3.]])
    """

    def smooth(self, scale: float) -> bool:
        """Whether ω is smooth over s times the distance, and a s times that if its slopes are steeper here."""
        return bool(self.loss.smooth(self.spread * max(1.0, self.steepness) * scale))

    def goal(self, theta: Array, y: Array | None) -> Any:
        """Return (goal − c)/s, which needs no targets."""
        goal = self.loss.goal(theta, None)
        return (
            None
            if goal is None and self.centre == 0.0
            else ((0.0 if goal is None else goal) - self.centre) / self.spread
        )

    def row(self, theta: Array, y: Array | None) -> Row:
        """Return the interval a s [low, high], the dead zone ε/s and the softness q/(a s²)."""
        row, steep = self.loss.row(theta, None), self.steepness
        soft = 1.0 / (steep * self.spread)
        factors = (steep, steep, 1.0 / self.spread, soft, soft)
        return Row(*(None if entry is None else factor * entry for entry, factor in zip(row, factors, strict=True)))

    def width(self, theta: Array) -> Array:
        """Return 1 over the largest slope, whose smoothed part then does not depend on units; as ω if there is none."""
        low, high = self.row(theta, None)[:2]
        if low is None or high is None:
            return super().width(theta)
        xp, ones = namespace(theta), _Rescaled.width(self, theta)
        steepest = xp.maximum(xp.abs(as_entry(low, theta)), xp.abs(as_entry(high, theta))) + 0.0 * ones
        return xp.where(steepest > 0.0, 1.0 / xp.where(steepest > 0.0, steepest, 1.0), ones)


@final
class RescaledConvex(_Rescaled, ConvexLoss):  # type: ignore[override]
    """a ω(θ, s v + c) for any convex ω."""

    @property
    def smooth_scale(self) -> float:  # type: ignore[override]
        """The distance over which the slope changes slowly, in the new units."""
        return float(self.loss.smooth_scale) / (self.spread * max(1.0, self.steepness))

    def _value_and_slope(self, theta: Array, y: Array | None, h: Array) -> tuple[Array, Array]:
        value, slope = self.loss._value_and_slope(theta, None, self.spread * h + self.centre)
        return self.weight * value, self.steepness * slope

    def value(self, theta: Array, y: Array | None, h: Array) -> Array:
        """See :meth:`ConvexLoss.value`."""
        return self._value_and_slope(theta, y, h)[0]

    def slope(self, theta: Array, y: Array | None, h: Array) -> Array:
        """See :meth:`ConvexLoss.slope`."""
        return self._value_and_slope(theta, y, h)[1]


@final
@dataclass(frozen=True)
class OfValue:
    """A function of (θ, v) as a function of (θ, y, h) without targets."""

    function: Callable[[Array, Array], Array]

    def __call__(self, theta: Array, y: Array | None, h: Array) -> Array:
        """Return ω(θ, h)."""
        return self.function(theta, h)


def integrand(given: Any) -> Loss:
    """Return ω for a loss, a function of (θ, v), or the ends of an interval; raise an error for anything else.

    Examples
    --------
    >>> integrand((0, 2))
    Distance(high=2.0)
    """
    if isinstance(given, (BoxLoss, ConvexLoss)):
        return given
    if callable(given) and not isinstance(given, type):
        return FunctionLoss(OfValue(given))
    if isinstance(given, np.ndarray) and given.shape == (2,):
        given = given.tolist()
    if isinstance(given, (tuple, list)) and len(given) == 2 and all(isinstance(end, Real) for end in given):
        low, high = (float(end) for end in given)
        if low <= high and (math.isfinite(low) or math.isfinite(high)):
            return Distance(low, high)
    raise ValueError(
        f"IntegratedPenalty: loss={given!r} was given; it must be a pair (low, high) with low ≤ high, of which one may "
        "be infinite, for the distance from this interval; a function of (theta, v); or an object of infinitask.losses "
        "that needs no targets."
    )


def check_integrand(loss: Loss, theta: Array, near: Array | None = None) -> Finding | None:
    """Raise an error if ω cannot be computed, or falls on both sides; return any other problem.

    ω is checked in the units of its user, around 0 and around the values ``near``, (n, 1) or (n, m), at which it will
    be computed.
    """
    inner = loss
    if isinstance(loss, _Rescaled):
        inner, near = loss.loss, None if near is None else loss.spread * near + loss.centre
    try:
        return check_convex(inner, theta, None, near) if isinstance(inner, ConvexLoss) else inner.check(theta, None)
    except TypeError as error:
        if isinstance(inner, FunctionLoss):
            raise TypeError(f"The function of an IntegratedPenalty failed ({error}); it takes (θ, v).") from error
        raise TypeError(
            f"An IntegratedPenalty of {inner!r} failed ({error}). A penalty has no targets: it is computed with "
            "y = None."
        ) from error


def rescaled(loss: Loss, weight: float = 1.0, spread: float = 1.0, centre: float = 0.0) -> Loss:
    """Return a ω(θ, s v + c).

    Examples
    --------
    >>> rescaled(Distance())
    Distance()
    >>> rescaled(rescaled(Distance(), 2.0), 3.0)
    RescaledRow(loss=Distance(), weight=6.0)
    """
    if isinstance(loss, _Rescaled):
        centre = loss.spread * centre + loss.centre
        loss, weight, spread = loss.loss, weight * loss.weight, spread * loss.spread
    if weight == spread == 1.0 and centre == 0.0:
        return loss
    kind = RescaledRow if isinstance(loss, BoxLoss) else RescaledConvex
    return kind(loss, weight, spread, centre)
