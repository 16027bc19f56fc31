"""Intervals with a guaranteed coverage, whatever the model: split conformal prediction from quantile functions."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from infinitask._base.arrays import HostArray
from infinitask._base.validation import coverages
from infinitask.calibration._rearrangement import Rearrangement

OUTWARD_ROUNDING = 1e-12
"""Levels and ends are rounded outwards by this part of their size: curves of the same x differ by about 1e-14 from one
batch of rows to another."""

FLAT_SPREAD = 1e-6
"""A quantile function whose spread is below this part of the scale counts as a point."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class ConformalCalibration:
    """Widens or narrows intervals so that they hold the fraction of new targets that they promise.

    The interval is [Q_x(½ − q), Q_x(½ + q)] with q the ⌈(n + 1)·coverage⌉-th smallest of n calibration scores

        s(x, y) = inf {q : Q_x(½ − q) ≤ y ≤ Q_x(½ + q)}.

    If the calibration pairs and the new pair are exchangeable and the quantile functions were learnt from other data,
    the interval holds the new y with probability at least ``coverage``, and exactly ⌈(n + 1)·coverage⌉/(n + 1) if no
    scores are tied, whatever the quality of the quantile functions (Vovk, Gammerman and Shafer, 2005; for scores of
    this kind Chernozhukov, Wüthrich and Zhu, 2021). The scores do not depend on the coverage: one calibration serves
    all. The probability is one over new and calibration pairs together, not for each x.

    Beyond the ends of Θ a quantile function continues as a straight line with its own mean slope, or with the slope
    ``scale`` where it is flat, so that every score is finite.

    Parameters
    ----------
    scores : ndarray (n,)
        Ascending.
    scale : float
        Positive, in the units of y, chosen without the calibration data.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.linspace(-3.0, 3.0, 19)
    >>> unit = Rearrangement(np.array([0.0, 1.0]), np.tile([-1.0, 1.0], (19, 1)))  # too narrow
    >>> calibration = ConformalCalibration.of(unit, y, scale=1.0)
    >>> calibration
    ConformalCalibration(n=19, coverage up to 0.95)
    >>> calibration.interval(unit, calibration.radius(0.9))[0].round(3)
    array([-3.,  3.])
    """

    scores: HostArray
    scale: float

    @classmethod
    def of(cls, curves: Rearrangement, y: HostArray, scale: float) -> ConformalCalibration:
        """From the quantile functions of n calibration rows, and their targets (n,)."""
        return cls(np.sort(cls.score(curves, y, scale)), scale)

    @staticmethod
    def score(curves: Rearrangement, y: HostArray, scale: float) -> HostArray:
        """s = max(F⁻(y) − ½, ½ − F⁺(y), 0), F⁻ and F⁺ the first and the last level with Q(τ) = y: (n,)."""
        beyond = (y - np.clip(y, curves.values[:, 0], curves.values[:, -1])) / _slope(curves, scale)
        first = curves.inverse(y[:, None], "left")[:, 0] + beyond
        last = curves.inverse(y[:, None], "right")[:, 0] + beyond
        return np.asarray(np.maximum(np.maximum(first - 0.5, 0.5 - last), 0.0))

    def __repr__(self) -> str:
        n = self.scores.size
        return f"{type(self).__name__}(n={n}, coverage up to {n / (n + 1):.4g})"

    def radius(self, coverage: Any) -> Any:
        """q, in levels away from ½; infinite, with a warning, where the calibration pairs are too few.

        Parameters
        ----------
        coverage : float or array (k,)
            In (0, 1).

        Returns
        -------
        float, or ndarray (k,) for several coverages
        """
        asked, single = coverages(coverage)
        n = self.scores.size
        ranks = np.array([outer_rank(float(each), n, rows="calibration points") for each in asked])
        found = np.append(self.scores, math.inf)[n - ranks]
        return float(found[0]) if single else found

    def interval(self, curves: Rearrangement, radius: Any) -> HostArray:
        """[Q(½ − radius), Q(½ + radius)] of new rows, rounded outwards: (n, 2), or (n, k, 2) for k radii.

        A y whose score is the radius lies on an end. If many are tied there, an end that rounding moved inwards would
        leave all of them out, and the coverage would be too small.
        """
        radii = np.atleast_1d(radius)
        known = np.where(np.isinf(radii), 0.0, radii) * (1.0 + OUTWARD_ROUNDING) + OUTWARD_ROUNDING
        side = np.array([-1.0, 1.0])
        levels = (0.5 + side * known[:, None]).ravel()
        beyond = levels - np.clip(levels, curves.levels[0], curves.levels[-1])
        slope = _slope(curves, self.scale)[:, None]
        ends = (curves(levels) + slope * beyond).reshape(-1, radii.size, 2)
        ends += side * OUTWARD_ROUNDING * (np.abs(ends) + slope[:, None])
        ends[:, np.isinf(radii)] = side * math.inf
        return np.asarray(ends if np.ndim(radius) else ends[:, 0])


def outer_rank(coverage: float, n: int, *, rows: str = "") -> int:
    """c = n + 1 − ⌈(n + 1)·coverage⌉: of n scores, the c-th largest is the radius.

    Where n are too few it is 0, and the interval is infinite, with a warning that asks for more ``rows``.
    """
    # 0.55 · 100 is slightly above 55 in floating point, and must not become the 56th
    rank = n + 1 - math.ceil((n + 1) * coverage * (1.0 - 1e-12))
    if rank == 0 and rows:
        needed = math.ceil(coverage / (1.0 - coverage) * (1.0 - 1e-12))
        warnings.warn(
            f"coverage={coverage:g} needs at least {needed} {rows} and {n} were given; the interval is infinite. Give "
            f"more {rows}, or ask for at most {n / (n + 1):.4g}.",
            UserWarning,
            stacklevel=4,
        )
    return rank


def _slope(curves: Rearrangement, scale: float) -> HostArray:
    """dQ/dτ beyond the ends of Θ, (n,)."""
    width = float(curves.levels[-1] - curves.levels[0])
    spread = (curves.values[:, -1] - curves.values[:, 0]) / (width or 1.0)
    return np.where(spread > FLAT_SPREAD * scale, spread, scale)
