"""The rows of the table: one small class for each loss."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from infinitask._base.arrays import Array, HostArray, namespace
from infinitask._base.validation import number
from infinitask.losses._base import BoxLoss, Row


class Stability(NamedTuple):
    """The constants of a loss with bounded slopes in a bound; the formulas are in :mod:`infinitask.bounds`."""

    slope: float
    """ℒ, the mean over Θ of the largest slope in h."""
    zero: float
    """L₀, a bound on the risk of h = 0."""
    reach: float
    """B ≥ |y|."""
    value_rate: float
    """a: ∫ |∂ℓ/∂θ| dθ ≤ a (B + |h|), apart from the term in ∂h/∂θ."""
    slope_rate: float
    """c: the factor of |∂h/∂θ|, integrated over θ."""

    @classmethod
    def of_levels(cls, reach: float, low: float, high: float, *, slope: float, middle: float) -> Stability:
        """Return the constants for levels on [low, high]: |dℓ/dθ| ≤ |y − h| + max(θ, 1 − θ)|∂h/∂θ|."""

        def steep(t: float) -> float:
            """Return ∫ max(θ, 1 − θ) dθ from 0 to t."""
            return t - t * t / 2.0 if t < 0.5 else t * t / 2.0 + 0.25

        return cls(slope, reach * middle, reach, high - low, steep(high) - steep(low))

    @classmethod
    def of_costs(cls, low: float, high: float, *, slope: float) -> Stability:
        """Return the constants for costs on [low, high]: |dℓ/dθ| ≤ (1 + |h|)/2 + c_θ(y)|∂h/∂θ|."""
        return cls(slope, slope, 1.0, (high - low) / 2.0, (high - low) / 2.0 + abs(high * high - low * low) / 4.0)


def _positive(a: Array) -> Array:
    """Return ``a``, at least the smallest safe divisor: at θ = 0 or 1 one side has no slope, and its q is ignored."""
    xp = namespace(a)
    smallest = 1e3 * float(xp.finfo(a.dtype).smallest_normal)
    return xp.clip(a, smallest)


class _Rounded:
    """A loss whose kink can be rounded over a width κ."""

    kappa: float

    def smooth(self, scale: float) -> bool:
        """Whether the rounded part is as wide as the initial smoothing of a solver."""
        return 0.0 < scale <= self.kappa

    def _softness(self, slope: Array) -> Array | None:
        """Return κ/slope; None for κ = 0, because compiled loops and sums are faster for a pure kink."""
        kappa = number(f"{type(self).__name__}: kappa", self.kappa, low=0.0, open_low=False)
        return None if kappa == 0.0 else kappa / _positive(slope)


class _Levels:
    """A loss with levels θ in (0, 1) whose slopes lie in [θ − 1, θ]."""

    dim: int | None = 1
    degree: int | None = 1

    def stability(
        self, theta: HostArray, weights: HostArray, ends: tuple[float, float], y_bound: float
    ) -> Stability | None:
        """See :meth:`Loss.stability`; None for a derived loss whose θ has several coordinates."""
        if theta.ndim > 1:
            return None
        mean, mass = float(weights @ theta), float(np.sum(weights))
        slope = float(weights @ np.maximum(theta, 1.0 - theta))
        return Stability.of_levels(y_bound, *ends, slope=slope, middle=max(mean, mass - mean))


class Pinball(_Levels, BoxLoss):
    """The pinball loss for quantiles: max(θ r, (θ − 1) r), r = y − h, is minimal at the θ-quantile.

    Examples
    --------
    >>> import numpy as np
    >>> Pinball().value(np.array([0.1, 0.9]), np.array([[1.0]]), np.array([[0.0, 0.0]]))
    array([[0.1, 0.9]])
    """

    def row(self, theta: Array, y: Array | None) -> Row:
        """Return u ∈ [θ − 1, θ]."""
        return Row(theta - 1.0, theta)


class MQuantile(_Levels, BoxLoss):
    """The loss for M-quantiles: the pinball loss with its kink rounded on [−κ, κ], |θ − 1[r<0]| ψ₁^κ(r).

    ψ₁^κ(r) is r²/(2κ) if |r| ≤ κ and |r| − κ/2 beyond.

    Parameters
    ----------
    kappa : float, positive
        Half the width of the rounded part, in units of y.

    Examples
    --------
    >>> import numpy as np
    >>> MQuantile(kappa=0.5).value(np.array([0.5]), np.array([[1.0]]), np.array([[0.0]]))
    array([[0.375]])
    """

    def __init__(self, kappa: float = 0.1) -> None:
        self.kappa = kappa

    def _kappa(self) -> float:
        return number("MQuantile: kappa", self.kappa, low=0.0, hint="Use the Pinball loss for kappa = 0.")

    @property
    def rounding(self) -> float:  # type: ignore[override]
        """κ."""
        return self.kappa

    def in_units(self, spread: float) -> MQuantile:
        """Return the loss with κ in the same units."""
        return MQuantile(self._kappa() / spread)

    def smooth(self, scale: float) -> bool:
        """Whether the rounded part is as wide as the initial smoothing of a solver."""
        return self.kappa >= scale

    def row(self, theta: Array, y: Array | None) -> Row:
        """Return u ∈ [θ − 1, θ], q = κ/a with a = θ if u > 0 else 1 − θ."""
        kappa = self._kappa()
        return Row(theta - 1.0, theta, soft_low=kappa / _positive(1.0 - theta), soft_high=kappa / _positive(theta))


class Expectile(BoxLoss):
    """The loss for expectiles: |θ − 1[r<0]| r², r = y − h, is minimal at the θ-expectile.

    Examples
    --------
    >>> import numpy as np
    >>> Expectile().value(np.array([0.25]), np.array([[2.0]]), np.array([[0.0]]))
    array([[1.]])
    """

    dim = 1

    degree = 2

    def smooth(self, scale: float) -> bool:
        """Always: the slope is piecewise linear."""
        return True

    def row(self, theta: Array, y: Array | None) -> Row:
        """Return u ∈ ℝ, q = 1/(2a) with a = θ if u > 0 else 1 − θ."""
        return Row(None, None, soft_low=0.5 / _positive(1.0 - theta), soft_high=0.5 / _positive(theta))


class CostSensitiveHinge(_Rounded, BoxLoss):
    """For decisions with a trade-off θ of the two errors: c (1 − y h)₊, c = |(θ + 1)/2 − 1[y = −1]|, y ∈ {−1, 1}.

    Parameters
    ----------
    kappa : float, at least 0
        If positive, the kink is rounded: c ψ₊^κ(1 − y h), where ψ₊^κ(p) is p₊²/(2κ) for p ≤ κ and p − κ/2 beyond.

    Examples
    --------
    >>> import numpy as np
    >>> CostSensitiveHinge().value(np.array([-1.0, 0.0, 1.0]), np.array([[1.0]]), np.zeros((1, 3)))
    array([[0. , 0.5, 1. ]])
    >>> CostSensitiveHinge(kappa=0.5).value(np.array([1.0]), np.array([[1.0], [1.0]]), np.array([[0.0], [0.75]]))
    array([[0.75  ],
           [0.0625]])
    """

    dim = 1

    domain = (-1.0, 1.0)
    target_bound = 1.0

    def __init__(self, kappa: float = 0.0) -> None:
        self.kappa = kappa

    def stability(
        self, theta: HostArray, weights: HostArray, ends: tuple[float, float], y_bound: float
    ) -> Stability | None:
        """See :meth:`Loss.stability`; None for a derived loss whose θ has several coordinates."""
        if theta.ndim > 1:
            return None
        return Stability.of_costs(*ends, slope=0.5 * (float(np.sum(weights)) + abs(float(weights @ theta))))

    def check_targets(self, y: Array | None) -> None:
        """Check that the labels are −1 and 1."""
        if y is None or not bool(namespace(y).all((y == 1.0) | (y == -1.0))):
            raise ValueError(
                "CostSensitiveHinge was given targets other than −1 and 1; recode the labels, "
                "or use InfiniteCostSensitiveClassifier, which takes any two labels."
            )

    def row(self, theta: Array, y: Array | None) -> Row:
        """Return y·u ∈ [0, c], c = (1 + θ y)/2, q = κ/c."""
        xp = namespace(theta, y)
        if y is None:
            raise ValueError("CostSensitiveHinge was given no labels; it needs targets −1 and 1.")
        cost = 0.5 * (y + theta)  # c·y, because y² = 1: its sign is that of y
        soft = self._softness(xp.abs(cost))
        return Row(xp.clip(cost, max=0.0), xp.clip(cost, 0.0), soft_low=soft, soft_high=soft)


class LevelSet(BoxLoss):
    """The loss for level sets: (1/θ)(−z)₊ with z = h − t, the mass outside the set divided by its allowed fraction.

    The other term of the one-class problem, −t(θ), is linear in the unknowns and is added by the objective.

    Examples
    --------
    >>> import numpy as np
    >>> LevelSet().value(np.array([0.5]), None, np.array([[-1.0]]))
    array([[2.]])
    """

    dim = 1

    domain = (0.0, 1.0)
    support = (0.05, 1.0)

    def row(self, theta: Array, y: Array | None) -> Row:
        """Return u ∈ [0, 1/θ]."""
        return Row(0.0 * theta, 1.0 / theta)

    def width(self, theta: Array) -> Array:
        """Return θ: the smoothed part is then equally wide at every level."""
        return 1.0 * theta


class EpsilonInsensitive(BoxLoss):
    """The loss for support vector regression: (|r| − θ)₊, r = y − h, with θ the half-width of the tube.

    Parameters
    ----------
    spread : float, positive
        The unit of r, if θ is not measured in it: (|r| − θ/spread)₊.

    Examples
    --------
    >>> import numpy as np
    >>> EpsilonInsensitive().value(np.array([0.25]), np.array([[1.0]]), np.array([[0.0]]))
    array([[0.75]])
    """

    dim = 1

    domain = (0.0, math.inf)
    support = (0.0, 1.0)
    degree = 1

    def __init__(self, spread: float = 1.0) -> None:
        self.spread = spread

    def in_units(self, spread: float) -> EpsilonInsensitive:
        """Return the loss of r in these units; θ stays in the units of y."""
        return EpsilonInsensitive(self.spread * spread)

    def row(self, theta: Array, y: Array | None) -> Row:
        """Return u ∈ [−1, 1], ε = θ/spread."""
        spread = number("EpsilonInsensitive: spread", self.spread, low=0.0)
        return Row(-1.0 + 0.0 * theta, 1.0 + 0.0 * theta, dead_zone=theta / spread)


class Squared(BoxLoss):
    """The squared loss for least squares: r²/2, r = y − h, for every θ; θ enters through the penalty or the targets.

    Examples
    --------
    >>> import numpy as np
    >>> Squared().value(np.array([-3.0]), np.array([[2.0]]), np.array([[0.0]]))
    array([[2.]])
    """

    domain = (-math.inf, math.inf)
    support = (0.0, 1.0)
    degree = 2

    def smooth(self, scale: float) -> bool:
        """Always: the slope is linear."""
        return True

    def row(self, theta: Array, y: Array | None) -> Row:
        """Return u ∈ ℝ, q = 1."""
        return Row(None, None, soft_low=1.0, soft_high=1.0)


class Huber(BoxLoss):
    """The Huber loss for least squares with outliers: r²/2 if |r| ≤ δ and δ|r| − δ²/2 beyond, r = y − h.

    Parameters
    ----------
    delta : float, positive
        δ, in units of y.

    Examples
    --------
    >>> import numpy as np
    >>> Huber(0.5).value(np.array([0.0]), np.array([[0.4], [2.0]]), np.zeros((2, 1)))
    array([[0.08 ],
           [0.875]])
    """

    domain = (-math.inf, math.inf)
    support = (0.0, 1.0)
    degree = 2

    def __init__(self, delta: float = 1.0) -> None:
        self.delta = delta

    def _delta(self) -> float:
        return number("Huber: delta", self.delta, low=0.0)

    def in_units(self, spread: float) -> Huber:
        """Return the loss with δ in the same units."""
        return Huber(self._delta() / spread)

    def smooth(self, scale: float) -> bool:
        """Whether the quadratic part is as wide as the initial smoothing of a solver."""
        return self.delta >= scale

    def row(self, theta: Array, y: Array | None) -> Row:
        """Return u ∈ [−δ, δ], q = 1."""
        delta = self._delta()
        zero = 0.0 * (theta if theta.ndim == 1 else theta[:, 0])
        return Row(zero - delta, zero + delta, soft_low=1.0, soft_high=1.0)


class _Falling:
    """A penalty on negative derivatives d = ∂h/∂θ, which replace h."""

    weight: float

    def width(self, theta: Array) -> Array:
        """Return 1/λ_nc: the width of the smoothed part does not depend on the weight."""
        return 0.0 * theta + 1.0 / self._weight()

    def _weight(self) -> float:
        name = f"{type(self).__name__}: weight"
        return number(name, self.weight, low=0.0, hint="Leave the penalty out for a weight of 0.")


class NonCrossing(_Falling, _Rounded, BoxLoss):
    """Penalises curves that decrease in θ: λ_nc (−d)₊ for the derivative d = ∂h/∂θ, which replaces h.

    With κ > 0 the kink is rounded on [−κ, 0], as in the paper for M-quantiles: λ_nc ψ₊^κ(−d), where ψ₊^κ(p) is
    p₊²/(2κ) for p ≤ κ and p − κ/2 beyond. It is public in :mod:`infinitask.penalties`.

    Parameters
    ----------
    weight : float, positive
        λ_nc.
    kappa : float, at least 0
        The width of the rounded part, in units of y.

    Examples
    --------
    >>> import numpy as np
    >>> NonCrossing(2.0).value(np.array([0.5]), None, np.array([[-0.5]]))
    array([[1.]])
    >>> NonCrossing(2.0, kappa=0.5).value(np.array([0.5]), None, np.array([[-1.0, -0.5]]))
    array([[1.5, 0.5]])
    """

    def __init__(self, weight: float = 1.0, kappa: float = 0.0) -> None:
        self.weight = weight
        self.kappa = kappa

    def row(self, theta: Array, y: Array | None) -> Row:
        """Return u ∈ [0, λ_nc], q = κ/λ_nc."""
        weight = self._weight() + 0.0 * theta
        return Row(0.0 * theta, weight, soft_high=self._softness(weight))


class SquaredNonCrossing(_Falling, BoxLoss):
    """The squared non-crossing penalty: λ_nc (−d)₊², as in the paper for expectiles.

    Small decreases cost almost nothing, so more of them remain than with :class:`NonCrossing`.

    Parameters
    ----------
    weight : float, positive
        λ_nc.

    Examples
    --------
    >>> import numpy as np
    >>> SquaredNonCrossing(2.0).value(np.array([0.5]), None, np.array([[-1.0, -0.5]]))
    array([[2. , 0.5]])
    """

    # Its slope has no kink, but a solver smooths it like the hinge. With a weight of 1000 and a narrow task kernel this
    # takes 429 evaluations instead of 2343, and a problem with a free bias that otherwise stalls at a gap of 0.1 is
    # solved.

    def __init__(self, weight: float = 1.0) -> None:
        self.weight = weight

    def row(self, theta: Array, y: Array | None) -> Row:
        """Return u ≥ 0, q = 1/(2 λ_nc)."""
        return Row(0.0 * theta, None, soft_high=0.5 / self._weight() + 0.0 * theta)
