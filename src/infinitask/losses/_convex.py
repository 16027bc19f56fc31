r"""A loss given by its value and its slope, or by a plain function.

A tangent of a convex loss lies below it, and so does every mixture of two tangents. With slopes s₁ ≤ s₂ at p₁, p₂ and
0 ≤ t ≤ 1,

.. math::

    \ell(h) \ge (1-t) \, [\ell(p_1) + s_1 (h - p_1)] + t \, [\ell(p_2) + s_2 (h - p_2)] ,
    \qquad u = -(1-t) s_1 - t s_2 ,

and this is a lower bound for the dual point u whatever p₁ and p₂ are. A solver needs the u that maximises this bound
less (κ/2)(u − v)². There F(u) = ℓ'(h + κ(u − v)) + u changes its sign. F grows, and F(v) = ℓ'(h) + v, so the change of
sign lies between v and −ℓ'(h), and two tangents close in on it.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from infinitask._base.arrays import Array, differentiate, namespace
from infinitask._base.validation import number
from infinitask.losses._base import FINEST, SLOPE_SLACK, Finding, Loss, Pointwise, _is_zero
from infinitask.losses._findings import check_convex, slope_jump
from infinitask.losses._tangents import MAX_STEPS, Tangent, crossing, either, mixture, narrow


class ConvexLoss(Loss):
    """A loss of your own: a subclass implements :meth:`value`, ℓ_θ(y, h), and :meth:`slope`, ∂ℓ_θ(y, h)/∂h.

    The loss must be convex in h. A fit checks this at sample points; if it fails, the fit warns, and nothing is
    certified. Envelope, dual point and lower bound are computed from tangents of the loss, so the duality gap is as
    good a certificate as that of a :class:`~infinitask.losses.BoxLoss`.

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
    """Distance in h over which the slope changes slowly; 0 if it has kinks."""

    @abstractmethod
    def value(self, theta: Array, y: Array | None, h: Array) -> Array:
        """ℓ_θ(y, h), (n, m)."""

    @abstractmethod
    def slope(self, theta: Array, y: Array | None, h: Array) -> Array:
        """∂ℓ_θ(y, h)/∂h, (n, m); any subgradient at a kink."""

    def _value_and_slope(self, theta: Array, y: Array | None, h: Array) -> tuple[Array, Array]:
        return self.value(theta, y, h), self.slope(theta, y, h)

    def smooth(self, scale: float) -> bool:
        """See :meth:`Loss.smooth`: whether ``smooth_scale`` is at least ``scale``."""
        if self.smooth_scale == math.inf:
            return True
        return number("smooth_scale", self.smooth_scale, low=0.0, open_low=False) >= scale

    @np.errstate(all="ignore")  # a loss may overflow at a step that is too long
    def pointwise(
        self, theta: Array, y: Array | None, h: Array, kappa: Any = 0.0, centre: Array | None = None
    ) -> Pointwise:
        """See :meth:`Loss.pointwise`."""
        xp = namespace(h)
        value, slope = self._value_and_slope(theta, y, h)
        if _is_zero(kappa):
            return Pointwise(value, value, -slope)
        v = xp.zeros_like(h) if centre is None else centre
        return self._envelope(theta, y, h, kappa, Tangent(v, value, slope))

    def _envelope(self, theta: Array, y: Array | None, h: Array, kappa: Any, here: Tangent) -> Pointwise:
        """:meth:`pointwise` with κ > 0 from the tangent at h, whose x is the centre v."""
        xp = namespace(h)
        v = here.x

        def tangent(u: Array) -> Tangent:
            return Tangent(u, *self._value_and_slope(theta, y, h + kappa * (u - v)))

        largest = 1e-4 * float(xp.finfo(h.dtype).max) ** 0.5
        there = tangent(xp.clip(-here.slope, -largest, largest))
        falls = here.slope + v > 0
        ends = either(falls, there, here), either(falls, here, there)
        low, high = narrow(tangent, lambda u: u, ends, scale=kappa, unit=(1.0 + xp.abs(h)) / kappa)
        # the best mixture of the two tangents is where they cross, unless one of them alone is better
        best = xp.minimum(xp.maximum(crossing(low, high, kappa)[0], -high.slope), -low.slope)
        t = mixture(low, high, -best)
        parts = [(part * end.value, part * end.slope, v - end.x) for part, end in ((1.0 - t, low), (t, high))]
        lower = sum(at + kappa * slope * way for at, slope, way in parts)
        # rounding must not lift the bound
        eps = float(xp.finfo(h.dtype).eps)
        lower = lower - 4.0 * eps * sum(xp.abs(at) + kappa * xp.abs(slope * way) for at, slope, way in parts)
        return Pointwise(here.value, lower, -parts[0][1] - parts[1][1])

    def curvature(
        self, theta: Array, y: Array | None, h: Array, kappa: Any = 0.0, centre: Array | None = None
    ) -> Array:
        """See :meth:`Loss.curvature`: 1/(κ + 1/ℓ''), with ℓ'' from two slopes close to each other.

        It guides the steps of a solver and does not enter the certificate.
        """
        xp = namespace(h)
        eps = float(xp.finfo(h.dtype).eps)
        point = h
        step = eps ** (1 / 3) * xp.mean(xp.abs(h if y is None else h - y)) + 1e-3 * eps**0.5 * xp.abs(h)
        if not _is_zero(kappa):
            u = self.pointwise(theta, y, h, kappa, centre).dual
            point = h + kappa * (u if centre is None else u - centre)
            # far below the width of the smoothed part, so that a kink still looks like one
            step = xp.minimum(step, 1e-4 * kappa + 0.0 * h)
        step = xp.maximum(step, 8.0 * eps * (xp.abs(h) + xp.abs(point)) + float(xp.finfo(h.dtype).smallest_normal))
        rise = self.slope(theta, y, point + step) - self.slope(theta, y, point - step)
        curved = rise > 0
        return xp.where(curved, 1.0 / (kappa + 2.0 * step / xp.where(curved, rise, 1.0 + 0.0 * h)), 0.0 * h)

    @np.errstate(all="ignore")
    def dual(self, theta: Array, y: Array | None, u: Array) -> Array:
        """See :meth:`Loss.dual`: min_p ℓ(p) + u p, sought outwards from p = 0, and −∞ where the slope never is −u."""
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
            outer = either(found, outer, fresh)
            inner = either(found | over, inner, fresh)
            found = found | over
            reach = xp.where(found, reach, 2.0 * reach)
        ends = either(side < 0, outer, inner), either(side < 0, inner, outer)
        low, high = narrow(tangent, lambda p: u, ends, scale=1.0, unit=1.0 + xp.abs(outer.x))
        t = mixture(low, high, -u)
        term = (1.0 - t) * (low.value - low.slope * low.x) + t * (high.value - high.slope * high.x)
        return xp.where(found, term, xp.full_like(u, -math.inf))

    # ---------------------------------------------------------------------------------------------- the check
    def check(self, theta: Array, y: Array | None) -> Finding | None:
        """Check the loss at sample points: shapes, finite numbers, a smallest value, no tangent above the loss.

        Where it calls itself smooth, its slope must not jump.
        """
        name = type(self).__name__
        found = check_convex(name, self._value_and_slope, theta, y)
        if found is not None or not self.smooth(FINEST):
            return found
        return slope_jump(name, self.slope, theta, y)


class FunctionLoss(ConvexLoss):
    """A loss given by a plain function; torch or jax find its slope.

    ℓ_θ(y, h) = function(θ, y, h), and ∂ℓ/∂h by automatic differentiation. The function receives tensors of that
    library, ``theta`` (m,) or (m, d), ``y`` (n, 1) and ``h`` (n, m), and returns the loss of every pair, (n, m). Write
    it with operators and with functions of that library (``torch.abs``, ``jax.numpy.abs``), not with those of NumPy. As
    every :class:`ConvexLoss` it must be convex in h.

    Parameters
    ----------
    function : callable
        (theta, y, h) → loss. A function defined at the top of a module can be pickled; a lambda cannot.
    backend : {"auto", "torch", "jax"}, default="auto"
        The library that differentiates; "auto": torch if it is installed, else jax.
    smooth_scale : float, default=0.0
        Distance in h over which the slope changes slowly: math.inf if it never needs smoothing, 0 if it may have kinks.
        A fit is faster if a loss without kinks says so.

    Examples
    --------
    >>> import math
    >>> def quartic(theta, y, h):
    ...     return theta * (y - h) ** 4
    >>> loss = FunctionLoss(quartic, smooth_scale=math.inf)
    >>> loss.smooth(0.1)
    True

    With torch or jax installed ``loss.slope(theta, y, h)`` is −4 θ (y − h)³, and
    ``InfiniteTaskEstimator(quartic, measure=(1, 2))`` wraps the function by itself.
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
        """See :meth:`ConvexLoss.slope`; at a kink the derivative that the library gives."""
        return self._value_and_slope(theta, y, h)[1]
