"""A loss given by a plain function, whose slope is found by automatic differentiation."""

from __future__ import annotations

from collections.abc import Callable

from infinitask._base.arrays import Array, differentiate
from infinitask.losses._convex import ConvexLoss


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
