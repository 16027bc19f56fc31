r"""Tangents of a convex loss, and how two of them close in on the point where a growing function changes its sign."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from infinitask._base.arrays import Array, namespace

MAX_STEPS = 60
"""The most steps of a search that doubles or narrows an interval, with one evaluation of the loss each."""


class Tangent(NamedTuple):
    """Tangents of the loss at the points x; arrays of the shape of h."""

    x: Array
    value: Array
    slope: Array

    @property
    def finite(self) -> Array:
        """Where value and slope are finite: far out a loss may overflow."""
        isfinite = namespace(self.x).isfinite
        return isfinite(self.value) & isfinite(self.slope)


def either(condition: Array, a: Tangent, b: Tangent) -> Tangent:
    """``a`` where the condition holds, else ``b``."""
    where = namespace(a.x).where
    return Tangent(*(where(condition, p, q) for p, q in zip(a, b, strict=True)))


def mixture(low: Tangent, high: Tangent, slope: Array) -> Array:
    """t for which (1 − t) s₁ + t s₂ is ``slope``, within [0, 1]."""
    xp = namespace(slope)
    jump = high.slope - low.slope
    one = xp.ones_like(jump)
    return xp.clip(xp.where(jump > 0, (slope - low.slope) / xp.where(jump > 0, jump, one), 0.0 * one), 0.0, 1.0)


def crossing(low: Tangent, high: Tangent, scale: Any) -> tuple[Array, Array, Array]:
    """Where two tangents cross, and how far below the loss each one is at the other's point.

    ``scale`` is the distance in h of one unit of x.
    """
    xp = namespace(low.x)
    width = scale * (high.x - low.x)
    below_low = low.value - high.value + high.slope * width
    below_high = high.value - low.value - low.slope * width
    total = below_low + below_high
    one = xp.ones_like(total)
    part = xp.where(total > 0, below_low / xp.where(total > 0, total, one), 0.5 * one)
    return low.x + (high.x - low.x) * xp.clip(part, 0.0, 1.0), below_low, below_high


def narrow(
    tangent: Callable[[Array], Tangent],
    added: Callable[[Array], Array],
    ends: tuple[Tangent, Tangent],
    *,
    scale: Any,
    unit: Array,
) -> tuple[Tangent, Tangent]:
    """The tangents at both sides of the point where slope + added(x), which grows with x, changes its sign.

    Three guesses take turns: where the tangents cross, which is the kink if there is one; where the chord is zero,
    which is good for a curved loss; the middle, which shrinks the interval for every loss.

    Parameters
    ----------
    tangent : callable
        x → tangent of the loss there.
    added : callable
        x → the number added to the slope.
    ends : pair of Tangent
        At two points with the change of sign between them.
    scale : float or array (m,)
        The distance in h of one unit of x.
    unit : array
        The size in x of about the size of h. Intervals wider than this are halved on a logarithmic scale, because an
        exponential loss may span many orders of magnitude; and x is known at best to a rounding error of it.
    """
    low, high = ends
    xp = namespace(low.x)
    converged = xp.zeros_like(low.x, dtype=xp.bool)
    noise = float(xp.finfo(low.x.dtype).eps) * unit
    for step in range(MAX_STEPS):
        converged = converged | _converged(low, high, added, scale, noise)
        if bool(xp.all(converged)):
            break
        width = high.x - low.x
        middle = low.x + 0.5 * width
        guess = middle
        if step % 3 == 0:
            guess = crossing(low, high, scale)[0]
        elif step % 3 == 1:
            force = low.slope + added(low.x)
            rise = high.slope + added(high.x) - force
            guess = low.x - width * force / xp.where(rise > 0, rise, xp.ones_like(rise))
        elif bool(xp.any(width > unit)):
            guess = unit * xp.sinh(0.5 * (xp.asinh(low.x / unit) + xp.asinh(high.x / unit)))
        fresh = tangent(xp.where((guess > low.x) & (guess < high.x), guess, middle))
        left = fresh.slope + added(fresh.x) < 0
        low = either(left & ~converged, fresh, low)
        high = either(~left & ~converged, fresh, high)
    return either(low.finite, low, high), either(high.finite, high, low)


def _converged(low: Tangent, high: Tangent, added: Callable[[Array], Array], scale: Any, noise: Array) -> Array:
    """Where more steps would change only the last digits.

    Either the sum is zero to rounding at one end, or the ends are as close as rounding allows, or one end is a kink
    through which the other tangent passes.
    """
    xp = namespace(low.x)
    eps = float(xp.finfo(low.x.dtype).eps)
    width = high.x - low.x
    more_low, more_high = added(low.x), added(high.x)
    force_low, force_high = low.slope + more_low, high.slope + more_high
    _, below_low, below_high = crossing(low, high, scale)
    triangle = below_low + below_high
    # between the ends of a smooth piece the slope is close to a line, and x is off the root by width·force/rise
    line = (below_low > 0.1 * triangle) & (below_high > 0.1 * triangle)
    one = xp.ones_like(width)
    blur = xp.where(line, noise * (force_high - force_low) / xp.where(width > 0, width, one), 0.0 * one)
    zero_low = xp.abs(force_low) <= 2.0 * eps * (xp.abs(low.slope) + xp.abs(more_low)) + blur
    zero_high = xp.abs(force_high) <= 2.0 * eps * (xp.abs(high.slope) + xp.abs(more_high)) + blur
    rounding = 8.0 * eps * (xp.abs(low.value) + xp.abs(high.value)) + 4.0 * noise * scale * (high.slope - low.slope)
    product = 8.0 * eps * scale * width
    # half of the triangle lies at each end of a smooth piece; a kink at one end leaves nothing there
    kink_low = (below_low <= rounding + product * xp.abs(high.slope)) & (below_low <= 1e-3 * triangle)
    kink_high = (below_high <= rounding + product * xp.abs(low.slope)) & (below_high <= 1e-3 * triangle)
    kink = (kink_low & (more_low >= -high.slope)) | (kink_high & (more_high <= -low.slope))
    close = width <= 2.0 * eps * (xp.abs(low.x) + xp.abs(high.x)) + noise
    return close | ((zero_low | zero_high | kink) & xp.isfinite(triangle))
