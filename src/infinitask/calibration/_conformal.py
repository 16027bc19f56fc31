"""Intervals with a guaranteed coverage for any model: conformal prediction from quantile functions.

:class:`ConformalCalibration` uses a separate set of calibration rows, :class:`CrossCalibration` the held-out rows of
several fits (CV+ and the jackknife+).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from infinitask._base.arrays import IN_MEMORY, HostArray, row_blocks
from infinitask._base.validation import coverages
from infinitask.calibration._levels import Rearrangement

OUTWARD_ROUNDING = 1e-12
"""Levels and endpoints are rounded outwards by this relative amount: curves of the same x differ by about 1e-14 between
batches of rows."""

FLAT_SPREAD = 1e-6
"""A quantile function whose spread is below this fraction of the scale counts as a point."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class ConformalCalibration:
    """Widen or narrow intervals until they have the nominal coverage of new targets.

    The interval is [Q_x(½ − q), Q_x(½ + q)] with q the ⌈(n + 1)·coverage⌉-th smallest of n calibration scores

        s(x, y) = inf {q : Q_x(½ − q) ≤ y ≤ Q_x(½ + q)}.

    If the calibration pairs and the new pair are exchangeable and the quantile functions were learnt from other data,
    the interval contains the new y with probability at least ``coverage``, and exactly ⌈(n + 1)·coverage⌉/(n + 1)
    without ties among the scores, for quantile functions of any quality (Vovk, Gammerman and Shafer, 2005; for scores
    of this kind Chernozhukov, Wüthrich and Zhu, 2021). The scores do not depend on the coverage: one calibration serves
    all. The probability is over new and calibration pairs together, not for each x.

    Beyond the ends of Θ a quantile function is extrapolated linearly with its own mean slope, or with the slope
    ``scale`` if it is flat. Hence every score is finite.

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
        """Calibrate with the quantile functions of n calibration rows, and their targets (n,)."""
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
        """q, the distance of levels from ½; infinite, with a warning, if there are too few calibration pairs.

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
        ranks = np.array([_outer_rank(float(each), n, rows="calibration points") for each in asked])
        found = np.append(self.scores, math.inf)[n - ranks]
        return float(found[0]) if single else found

    def interval(self, curves: Rearrangement, radius: Any) -> HostArray:
        """[Q(½ − radius), Q(½ + radius)] of new rows, rounded outwards: (n, 2), or (n, k, 2) for k radii.

        A y whose score equals the radius is on an endpoint. With many ties at this score, an endpoint rounded inwards
        would exclude all of them, and the coverage would be too small.
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


@final
@dataclass(frozen=True, eq=False, repr=False)
class CrossCalibration:
    """Intervals without a separate calibration set: each row is scored by a fit that has not seen it.

    K fits hold out one fold each. Row i of fold k has the score s_i = inf {q : Q^k(½ − q) ≤ y_i ≤ Q^k(½ + q)}, with Q^k
    its quantile function by the fit without fold k, as in
    ``ConformalCalibration``. With c = ⌊(1 − coverage)(n + 1)⌋ the interval of a new x extends
    from the c-th smallest of the n lower ends Q^k(i)_x(½ − s_i) to the c-th largest of the n upper ends Q^k(i)_x(½ +
    s_i) (CV+; the jackknife+ if every fold is a single row: Barber, Candès, Ramdas and Tibshirani, 2021; for scores of
    any kind Gupta, Kuchibhotla and Ramdas, 2022). The coverage is close to ``coverage`` for fits that change little
    from fold to fold. For any fit it is at least :meth:`guaranteed`, about 2·coverage − 1.

    Parameters
    ----------
    folds : tuple of ConformalCalibration
        The scores of the rows of each fold, and the scale of its fit.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.linspace(-3.0, 3.0, 20)
    >>> unit = Rearrangement(np.array([0.0, 1.0]), np.tile([-1.0, 1.0], (10, 1)))  # two fits with the same answer
    >>> calibration = CrossCalibration(tuple(ConformalCalibration.of(unit, part, 1.0) for part in (y[::2], y[1::2])))
    >>> calibration
    CrossCalibration(n=20, 2 folds)
    >>> calibration.interval([unit, unit], 0.9)[0].round(3)
    array([-3.,  3.])
    """

    folds: tuple[ConformalCalibration, ...]

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n={self.size}, {len(self.folds)} folds)"

    @property
    def size(self) -> int:
        """n, the number of rows of all folds."""
        return sum(fold.scores.size for fold in self.folds)

    def guaranteed(self, coverage: Any) -> Any:
        """The proved coverage, on average over training rows and a new one, all exchangeable: a float, or (k,).

        1 − 2α − min{2(K − 1)/(n + K), (1 − K/n)/(K + 1)} with α = 1 − coverage, up to rounding of ranks. The first
        term holds for any folds: twice a mean of p-values is a p-value. The second requires folds of equal size, and is
        0 if every fold is a single row.

        Parameters
        ----------
        coverage : float or array (k,)
        """
        asked, single = coverages(coverage)
        n, K = self.size, len(self.folds)
        rank = np.array([_outer_rank(float(each), n) for each in asked])
        # y is not covered if at most c − 1 of n intervals contain it: then the mean of the p-values of the folds,
        # weighted by their sizes plus one, is at most (K + c − 1)/(n + K)
        missed = 2.0 * (K + rank - 1.0) / (n + K)
        if len({fold.scores.size for fold in self.folds}) == 1:
            missed = np.minimum(missed, 2.0 * rank / (n + 1.0) + (1.0 - K / n) / (K + 1.0))
        found = np.where(rank > 0, np.maximum(1.0 - missed, 0.0), 1.0)
        return float(found[0]) if single else found

    def interval(self, curves: Sequence[Rearrangement], coverage: Any) -> HostArray:
        """Return the intervals of new rows: (n_new, 2), or (n_new, k, 2) for k coverages.

        Parameters
        ----------
        curves : sequence of Rearrangement
            The quantile functions of the new rows by the fit of each fold.
        coverage : float or array (k,)
        """
        asked, single = coverages(coverage)
        if len(curves) != len(self.folds):
            raise ValueError(f"curves of {len(curves)} fits were given for {len(self.folds)} folds; give one for each.")
        ranks = np.array([_outer_rank(float(each), self.size, rows="rows") for each in asked])
        n_new = curves[0].values.shape[0]
        found = np.empty((n_new, asked.size, 2))
        for rows in row_blocks(n_new, self.size, IN_MEMORY):
            parts = [Rearrangement(part.levels, part.values[rows]) for part in curves]
            ends = [fold.interval(part, fold.scores) for fold, part in zip(self.folds, parts, strict=True)]
            found[rows] = _outer(np.concatenate(ends, axis=1), ranks)
        return found[:, 0] if single else found


def _outer_rank(coverage: float, n: int, *, rows: str = "") -> int:
    """c = n + 1 − ⌈(n + 1)·coverage⌉: the radius is the c-th largest of n scores.

    It is 0 if n is too small; the interval is then infinite, with a warning that asks for more ``rows``.
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
    """The slope dQ/dτ beyond the ends of Θ, (n,)."""
    width = float(curves.levels[-1] - curves.levels[0])
    spread = (curves.values[:, -1] - curves.values[:, 0]) / (width or 1.0)
    return np.where(spread > FLAT_SPREAD * scale, spread, scale)


def _outer(ends: HostArray, ranks: HostArray) -> HostArray:
    """The c-th smallest lower end and the c-th largest upper end, for each rank c: (n, N, 2) → (n, k, 2)."""
    found = np.tile([-math.inf, math.inf], (ends.shape[0], ranks.size, 1))
    at = ranks[ranks > 0] - 1
    if at.size:
        low = np.partition(ends[:, :, 0], at, axis=1)[:, at]
        high = -np.partition(-ends[:, :, 1], at, axis=1)[:, at]
        found[:, ranks > 0] = np.stack([low, high], axis=2)
    return found
