"""The line search that L-BFGS and Newton's method share."""

from __future__ import annotations

import numpy as np

from infinitask._base.arrays import HostArray
from infinitask.objective import Evaluation, Smoothing
from infinitask.solvers._base import Ledger


def line_search(
    ledger: Ledger,
    z: HostArray,
    smoothing: Smoothing,
    here: Evaluation,
    direction: HostArray,
    label: str,
    curvature: float = 0.5,
) -> tuple[float, Evaluation | None]:
    """A step along a descent direction at whose end the slope is small against the one at its start.

    P_κ is convex and piecewise quadratic along the line, so the zero of its slope is bracketed and found by regula
    falsi; rounding, which hides the decrease of P_κ near the minimum, does not hide the slope.
    """
    slope = float(here.gradient @ direction)
    if not slope < 0.0:
        return 0.0, None
    low, low_slope, high, high_slope, last = 0.0, slope, np.inf, np.inf, 0.0
    step = 1.0
    rounding = 1e-13 * abs(here.smoothed)
    for _ in range(30):
        fresh = ledger.evaluate(z + step * direction, smoothing, label)
        end = float(fresh.gradient @ direction)
        descended = fresh.smoothed <= here.smoothed + 1e-4 * step * slope + rounding
        if descended and (abs(end) <= curvature * abs(slope) or (step == 1.0 and end < 0.0)):
            return step, fresh
        if ledger.exhausted:
            break
        if end < 0.0 and not np.isfinite(high):
            return (step, fresh) if fresh.smoothed <= here.smoothed + rounding else (0.0, None)
        # an end that stays while the other moves twice counts half: regula falsi alone creeps up to a kink
        if end < 0.0:
            high_slope = 0.5 * high_slope if last < 0.0 else high_slope
            low, low_slope = step, end
        else:
            low_slope = 0.5 * low_slope if last > 0.0 else low_slope
            high, high_slope = step, end
        last = end
        share = -low_slope / (high_slope - low_slope) if np.isfinite(high_slope) else 0.1
        step = low + min(0.9, max(0.1, share)) * (high - low)
    return 0.0, None
