"""Intervals with a guaranteed coverage from rows that several fits hold out: CV+ and the jackknife+."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from infinitask._base.arrays import IN_MEMORY, HostArray
from infinitask._base.validation import coverages
from infinitask.calibration._conformal import ConformalCalibration, outer_rank
from infinitask.calibration._rearrangement import Rearrangement


@final
@dataclass(frozen=True, eq=False, repr=False)
class CrossCalibration:
    """Intervals that no row has to be kept aside for: each row is scored by a fit that has not seen it.

    K fits hold out one fold each. Row i of fold k has the score s_i = inf {q : Q^k(½ − q) ≤ y_i ≤ Q^k(½ + q)}, with Q^k
    its quantile function by the fit without fold k, as in
    ``ConformalCalibration``. With c = ⌊(1 − coverage)(n + 1)⌋ the interval of a new x runs
    from the c-th smallest of the n lower ends Q^k(i)_x(½ − s_i) to the c-th largest of the n upper ends Q^k(i)_x(½ +
    s_i) (CV+; the jackknife+ if every fold is a single row: Barber, Candès, Ramdas and Tibshirani, 2021; for scores of
    any kind Gupta, Kuchibhotla and Ramdas, 2022). The coverage is close to ``coverage`` for fits that change little
    from fold to fold, and proved to be at least :meth:`guaranteed`, about 2·coverage − 1, for any fit.

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
        """n, the rows of all folds."""
        return sum(fold.scores.size for fold in self.folds)

    def guaranteed(self, coverage: Any) -> Any:
        """The proved coverage, on average over training rows and a new one, all exchangeable: a float, or (k,).

        1 − 2α − min{2(K − 1)/(n + K), (1 − K/n)/(K + 1)} with α = 1 − coverage, up to rounding of ranks. The first
        term holds for any folds: twice a mean of p-values is one. The second needs folds of equal size, and is 0 if
        every fold is a single row.

        Parameters
        ----------
        coverage : float or array (k,)
        """
        asked, single = coverages(coverage)
        n, K = self.size, len(self.folds)
        rank = np.array([outer_rank(float(each), n) for each in asked])
        # y is missed if at most c − 1 of n intervals hold it: then the mean of the p-values of the folds, weighted by
        # their sizes plus one, is at most (K + c − 1)/(n + K)
        missed = 2.0 * (K + rank - 1.0) / (n + K)
        if len({fold.scores.size for fold in self.folds}) == 1:
            missed = np.minimum(missed, 2.0 * rank / (n + 1.0) + (1.0 - K / n) / (K + 1.0))
        found = np.where(rank > 0, np.maximum(1.0 - missed, 0.0), 1.0)
        return float(found[0]) if single else found

    def interval(self, curves: Sequence[Rearrangement], coverage: Any) -> HostArray:
        """The intervals of new rows: (n_new, 2), or (n_new, k, 2) for k coverages.

        Parameters
        ----------
        curves : sequence of Rearrangement
            The quantile functions of the new rows by the fit of each fold.
        coverage : float or array (k,)
        """
        asked, single = coverages(coverage)
        if len(curves) != len(self.folds):
            raise ValueError(f"curves of {len(curves)} fits were given for {len(self.folds)} folds; give one for each.")
        ranks = np.array([outer_rank(float(each), self.size, rows="rows") for each in asked])
        n_new = curves[0].values.shape[0]
        found = np.empty((n_new, asked.size, 2))
        step = max(1, IN_MEMORY // self.size)
        for start in range(0, n_new, step):
            rows = slice(start, start + step)
            parts = [Rearrangement(part.levels, part.values[rows]) for part in curves]
            ends = [fold.interval(part, fold.scores) for fold, part in zip(self.folds, parts, strict=True)]
            found[rows] = _outer(np.concatenate(ends, axis=1), ranks)
        return found[:, 0] if single else found


def _outer(ends: HostArray, ranks: HostArray) -> HostArray:
    """From the c-th smallest lower end to the c-th largest upper one, for each rank c: (n, N, 2) → (n, k, 2)."""
    found = np.tile([-math.inf, math.inf], (ends.shape[0], ranks.size, 1))
    at = ranks[ranks > 0] - 1
    if at.size:
        low = np.partition(ends[:, :, 0], at, axis=1)[:, at]
        high = -np.partition(-ends[:, :, 1], at, axis=1)[:, at]
        found[:, ranks > 0] = np.stack([low, high], axis=2)
    return found
