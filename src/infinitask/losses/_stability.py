"""The constants of a loss in a bound by uniform stability."""

from __future__ import annotations

from typing import NamedTuple


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
