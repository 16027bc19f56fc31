r"""A loss given by its value and its slope, or by a plain function.

A tangent of a convex loss lies below it, and so does every mixture of two tangents. With slopes s₁ ≤ s₂ at p₁, p₂ and
0 ≤ t ≤ 1,

.. math::

    \ell(h) \ge (1-t) \, [\ell(p_1) + s_1 (h - p_1)] + t \, [\ell(p_2) + s_2 (h - p_2)] ,
    \qquad u = -(1-t) s_1 - t s_2 ,

and this is a lower bound for the dual point u for all p₁ and p₂. A solver needs the u that maximises this bound
minus (κ/2)(u − v)². There F(u) = ℓ'(h + κ(u − v)) + u changes its sign. F increases, and F(v) = ℓ'(h) + v, so the
change of sign lies between v and −ℓ'(h), and two tangents bracket it.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from infinitask._base.arrays import Array, differentiate, namespace
from infinitask._base.validation import number
from infinitask.losses._base import SLOPE_SLACK, Loss, Pointwise, _is_zero
from infinitask.losses._checks import MAX_STEPS, Finding, check_convex


class ConvexLoss(Loss):
    """A custom loss: a subclass implements :meth:`value`, ℓ_θ(y, h), and :meth:`slope`, ∂ℓ_θ(y, h)/∂h.

    The loss must be convex in h. A fit checks this at sample points; if the check fails, the fit warns, and its result
    is not certified. Envelope, dual point and lower bound are computed from tangents of the loss, so the duality gap is
    as valid a certificate as that of a :class:`~infinitask.losses.BoxLoss`.

    ``smooth_scale`` tells a solver that the slope has no kinks: it is the distance in h over which the slope changes by
    about one, math.inf for a loss that never needs smoothing, and 0 (the default) for a loss with kinks. An estimator
    needs a ``measure``, unless the class has a finite ``domain`` or ``support``.

    Examples
    --------
    >>> import math
    >>> import numpy as np
    >>> class Quartic(ConvexLoss):
    ...     smooth_scale = math.inf
    ...
    ...     def value(self, theta, y, h):
    ...         return theta * (y - h) ** 4
    ...
    ...     def slope(self, theta, y, h):
    ...         return -4.0 * theta * (y - h) ** 3
    >>> theta, y, h = np.array([0.25]), np.array([[1.0]]), np.array([[0.0]])
    >>> Quartic().pointwise(theta, y, h).dual
    array([[1.]])
    >>> Quartic().dual(theta, y, np.array([[1.0]]))
    array([[0.25]])
    """

    domain = (-math.inf, math.inf)
    rests_at_zero = False

    smooth_scale: float = 0.0
    """The distance in h over which the slope changes slowly; 0 if it has kinks."""

    @abstractmethod
    def value(self, theta: Array, y: Array | None, h: Array) -> Array:
        """Return ℓ_θ(y, h), (n, m)."""

    @abstractmethod
    def slope(self, theta: Array, y: Array | None, h: Array) -> Array:
        """Return ∂ℓ_θ(y, h)/∂h, (n, m); any subgradient at a kink."""

    def _value_and_slope(self, theta: Array, y: Array | None, h: Array) -> tuple[Array, Array]:
        return self.value(theta, y, h), self.slope(theta, y, h)

    def smooth(self, scale: float) -> bool:
        """See :meth:`Loss.smooth`: whether ``smooth_scale`` is at least ``scale``."""
        if self.smooth_scale == math.inf:
            return True
        return number("smooth_scale", self.smooth_scale, low=0.0, open_low=False) >= scale

    @np.errstate(all="ignore")  # a loss may overflow if a step is too long
    def pointwise(
        self, theta: Array, y: Array | None, h: Array, kappa: Any = 0.0, centre: Array | None = None
    ) -> Pointwise:
        """See :meth:`Loss.pointwise`."""
        xp = namespace(h)
        value, slope = self._value_and_slope(theta, y, h)
        if _is_zero(kappa):
            return Pointwise(value, value, -slope)
        v = xp.zeros_like(h) if centre is None else centre
        here = Tangent(v, value, slope)

        def tangent(u: Array) -> Tangent:
            return Tangent(u, *self._value_and_slope(theta, y, h + kappa * (u - v)))

        largest = 1e-4 * float(xp.finfo(h.dtype).max) ** 0.5
        there = tangent(xp.clip(-slope, -largest, largest))
        falls = slope + v > 0
        ends = _either(falls, there, here), _either(falls, here, there)
        low, high = _narrow(tangent, lambda u: u, ends, scale=kappa, unit=(1.0 + xp.abs(h)) / kappa)
        # the best mixture of the two tangents is where they cross, unless one of them alone is better
        best = xp.minimum(xp.maximum(_crossing(low, high, kappa)[0], -high.slope), -low.slope)
        t = _mixture(low, high, -best)
        parts = [(part * end.value, part * end.slope, v - end.x) for part, end in ((1.0 - t, low), (t, high))]
        lower = sum(at + kappa * force * way for at, force, way in parts)
        # rounding must not raise the bound
        eps = float(xp.finfo(h.dtype).eps)
        lower = lower - 4.0 * eps * sum(xp.abs(at) + kappa * xp.abs(force * way) for at, force, way in parts)
        return Pointwise(value, lower, -parts[0][1] - parts[1][1])

    def curvature(
        self, theta: Array, y: Array | None, h: Array, kappa: Any = 0.0, centre: Array | None = None
    ) -> Array:
        """See :meth:`Loss.curvature`: 1/(κ + 1/ℓ''), with ℓ'' from two slopes close to each other.

        It guides the steps of a solver and does not affect the certificate.
        """
        xp = namespace(h)
        eps = float(xp.finfo(h.dtype).eps)
        point = h
        step = eps ** (1 / 3) * xp.mean(xp.abs(h if y is None else h - y)) + 1e-3 * eps**0.5 * xp.abs(h)
        if not _is_zero(kappa):
            u = self.pointwise(theta, y, h, kappa, centre).dual
            point = h + kappa * (u if centre is None else u - centre)
            # far below the width of the smoothed part, to resolve a kink
            step = xp.minimum(step, 1e-4 * kappa + 0.0 * h)
        step = xp.maximum(step, 8.0 * eps * (xp.abs(h) + xp.abs(point)) + float(xp.finfo(h.dtype).smallest_normal))
        rise = self.slope(theta, y, point + step) - self.slope(theta, y, point - step)
        curved = rise > 0
        return xp.where(curved, 1.0 / (kappa + 2.0 * step / xp.where(curved, rise, 1.0 + 0.0 * h)), 0.0 * h)

    @np.errstate(all="ignore")
    def dual(self, theta: Array, y: Array | None, u: Array) -> Array:
        """See :meth:`Loss.dual`: min_p ℓ(p) + u p, searched outwards from p = 0; −∞ if the slope is never −u."""
        xp = namespace(u)

        def tangent(p: Array) -> Tangent:
            return Tangent(p, *self._value_and_slope(theta, y, p))

        inner = outer = tangent(xp.zeros_like(u))
        force = inner.slope + u
        found = xp.abs(force) <= SLOPE_SLACK
        side = xp.where(force > 0, -xp.ones_like(u), xp.ones_like(u))
        reach = side
        for _ in range(MAX_STEPS):
            if bool(xp.all(found)):
                break
            fresh = tangent(reach)
            over = side * (fresh.slope + u) >= -SLOPE_SLACK
            outer = _either(found, outer, fresh)
            inner = _either(found | over, inner, fresh)
            found = found | over
            reach = xp.where(found, reach, 2.0 * reach)
        ends = _either(side < 0, outer, inner), _either(side < 0, inner, outer)
        low, high = _narrow(tangent, lambda p: u, ends, scale=1.0, unit=1.0 + xp.abs(outer.x))
        t = _mixture(low, high, -u)
        term = (1.0 - t) * (low.value - low.slope * low.x) + t * (high.value - high.slope * high.x)
        return xp.where(found, term, xp.full_like(u, -math.inf))

    # ---------------------------------------------------------------------------------------------- the check
    def check(self, theta: Array, y: Array | None) -> Finding | None:
        """Check the loss at sample points: shapes, finite numbers, a minimum, no tangent above the loss.

        If the loss claims to be smooth, its slope must not jump.
        """
        return check_convex(self, theta, y)


class FunctionLoss(ConvexLoss):
    """A loss given by a plain function; torch or jax differentiates it.

    ℓ_θ(y, h) = function(θ, y, h), and ∂ℓ/∂h is computed by automatic differentiation. The function receives tensors of
    that library, ``theta`` (m,) or (m, d), ``y`` (n, 1) and ``h`` (n, m), and returns the loss of every pair, (n, m).
    Write it with operators and with functions of that library (``torch.abs``, ``jax.numpy.abs``), not with those of
    NumPy. Like every :class:`ConvexLoss` it must be convex in h.

    Parameters
    ----------
    function : callable
        (theta, y, h) → loss. A function defined at the top of a module can be pickled; a lambda cannot.
    backend : {"auto", "torch", "jax"}, default="auto"
        The library for differentiation; "auto": torch if it is installed, else jax.
    smooth_scale : float, default=0.0
        The distance in h over which the slope changes slowly: math.inf if it never needs smoothing, 0 if it may have
        kinks. A fit of a loss without kinks is faster if this is set.

    Examples
    --------
    >>> import math
    >>> def quartic(theta, y, h):
    ...     return theta * (y - h) ** 4
    >>> loss = FunctionLoss(quartic, smooth_scale=math.inf)
    >>> loss.smooth(0.1)
    True

    With torch or jax installed ``loss.slope(theta, y, h)`` is −4 θ (y − h)³, and
    ``InfiniteTaskEstimator(quartic, measure=(1, 2))`` wraps the function automatically.
    """

    def __init__(
        self, function: Callable[[Array, Array, Array], Array], backend: str = "auto", smooth_scale: float = 0.0
    ) -> None:
        self.function = function
        self.backend = backend
        self.smooth_scale = smooth_scale

    def _value_and_slope(self, theta: Array, y: Array | None, h: Array) -> tuple[Array, Array]:
        if not callable(self.function):
            raise TypeError(f"FunctionLoss: function={self.function!r} was given; it must be a function of (θ, y, h).")
        return differentiate(self.function, self.backend)(theta, y, h)

    def value(self, theta: Array, y: Array | None, h: Array) -> Array:
        """See :meth:`ConvexLoss.value`."""
        return self._value_and_slope(theta, y, h)[0]

    def slope(self, theta: Array, y: Array | None, h: Array) -> Array:
        """See :meth:`ConvexLoss.slope`; at a kink, the derivative that the library returns."""
        return self._value_and_slope(theta, y, h)[1]


# ---------------------------------------------------------------------------------------------------- tangents
class Tangent(NamedTuple):
    """Tangents of the loss at the points x; arrays of the shape of h."""

    x: Array
    value: Array
    slope: Array

    @property
    def finite(self) -> Array:
        """Return where value and slope are finite; far from y a loss may overflow."""
        isfinite = namespace(self.x).isfinite
        return isfinite(self.value) & isfinite(self.slope)


def _either(condition: Array, a: Tangent, b: Tangent) -> Tangent:
    """Return ``a`` where the condition holds, else ``b``."""
    where = namespace(a.x).where
    return Tangent(*(where(condition, p, q) for p, q in zip(a, b, strict=True)))


def _mixture(low: Tangent, high: Tangent, slope: Array) -> Array:
    """Return t in [0, 1] for which (1 − t) s₁ + t s₂ is ``slope``."""
    xp = namespace(slope)
    jump = high.slope - low.slope
    one = xp.ones_like(jump)
    return xp.clip(xp.where(jump > 0, (slope - low.slope) / xp.where(jump > 0, jump, one), 0.0 * one), 0.0, 1.0)


def _crossing(low: Tangent, high: Tangent, scale: Any) -> tuple[Array, Array, Array]:
    """Return where two tangents cross, and how far each is below the loss at the point of the other.

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


def _narrow(
    tangent: Callable[[Array], Tangent],
    added: Callable[[Array], Array],
    ends: tuple[Tangent, Tangent],
    *,
    scale: Any,
    unit: Array,
) -> tuple[Tangent, Tangent]:
    """Return tangents on both sides of the point where slope + added(x), which increases in x, changes its sign.

    Three guesses alternate: the crossing of the tangents, which is the kink if there is one; the zero of the chord,
    which is accurate for a curved loss; and the midpoint, which shrinks the interval for every loss.

    Parameters
    ----------
    tangent : callable
        x → tangent of the loss at x.
    added : callable
        x → the number added to the slope.
    ends : pair of Tangent
        Tangents at two points with the change of sign between them.
    scale : float or array (m,)
        The distance in h of one unit of x.
    unit : array
        The distance in x that corresponds to the size of h. Intervals wider than this are halved on a logarithmic
        scale, because an exponential loss may span many orders of magnitude. The precision of x is at best a rounding
        error of it.
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
            guess = _crossing(low, high, scale)[0]
        elif step % 3 == 1:
            force = low.slope + added(low.x)
            rise = high.slope + added(high.x) - force
            guess = low.x - width * force / xp.where(rise > 0, rise, xp.ones_like(rise))
        elif bool(xp.any(width > unit)):
            guess = unit * xp.sinh(0.5 * (xp.asinh(low.x / unit) + xp.asinh(high.x / unit)))
        fresh = tangent(xp.where((guess > low.x) & (guess < high.x), guess, middle))
        left = fresh.slope + added(fresh.x) < 0
        low = _either(left & ~converged, fresh, low)
        high = _either(~left & ~converged, fresh, high)
    return _either(low.finite, low, high), _either(high.finite, high, low)


def _converged(low: Tangent, high: Tangent, added: Callable[[Array], Array], scale: Any, noise: Array) -> Array:
    """Return where more steps would change only the last digits.

    Either the sum is zero to rounding at one end, or the ends are as close as rounding allows, or one end is a kink
    through which the other tangent passes.
    """
    xp = namespace(low.x)
    eps = float(xp.finfo(low.x.dtype).eps)
    width = high.x - low.x
    more_low, more_high = added(low.x), added(high.x)
    force_low, force_high = low.slope + more_low, high.slope + more_high
    _, below_low, below_high = _crossing(low, high, scale)
    triangle = below_low + below_high
    # between the ends of a smooth piece the slope is almost linear, and the distance of x from the root is
    # width·force/rise
    line = (below_low > 0.1 * triangle) & (below_high > 0.1 * triangle)
    one = xp.ones_like(width)
    blur = xp.where(line, noise * (force_high - force_low) / xp.where(width > 0, width, one), 0.0 * one)
    zero_low = xp.abs(force_low) <= 2.0 * eps * (xp.abs(low.slope) + xp.abs(more_low)) + blur
    zero_high = xp.abs(force_high) <= 2.0 * eps * (xp.abs(high.slope) + xp.abs(more_high)) + blur
    rounding = 8.0 * eps * (xp.abs(low.value) + xp.abs(high.value)) + 4.0 * noise * scale * (high.slope - low.slope)
    product = 8.0 * eps * scale * width
    # half of the triangle is at each end of a smooth piece; it vanishes at an end that is a kink
    kink_low = (below_low <= rounding + product * xp.abs(high.slope)) & (below_low <= 1e-3 * triangle)
    kink_high = (below_high <= rounding + product * xp.abs(low.slope)) & (below_high <= 1e-3 * triangle)
    kink = (kink_low & (more_low >= -high.slope)) | (kink_high & (more_high <= -low.slope))
    close = width <= 2.0 * eps * (xp.abs(low.x) + xp.abs(high.x)) + noise
    return close | ((zero_low | zero_high | kink) & xp.isfinite(triangle))
