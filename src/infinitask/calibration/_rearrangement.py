"""Monotone rearrangement of curves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

import numpy as np

from infinitask._base.arrays import HostArray


@final
@dataclass(frozen=True, eq=False)
class Rearrangement:
    """Sort curves over θ, so that quantiles do not cross.

    θ ↦ the value that a fraction (θ − low)/(high − low) of the levels does not exceed: the values of a curve at equally
    spaced levels are sorted. The result has the same distribution of values. A monotone curve does not change. For any
    other curve the distance to each increasing curve does not grow, in every L^p (Chernozhukov, Fernández-Val and
    Galichon, 2010). The curve is linear between levels. The result is exactly monotone for every pair of tasks,
    independent of the order and grouping in which they are evaluated.

    Parameters
    ----------
    levels : ndarray (k,)
        Ascending, equally spaced.
    values : ndarray (n, k)
        The sorted curves at the levels; :meth:`of` sorts them.
    increasing : bool
        The direction of the order.

    Examples
    --------
    >>> import numpy as np
    >>> curve = Rearrangement.of(np.linspace(0, 1, 5), np.array([[0.0, 2.0, 1.0, 3.0, 4.0]]))
    >>> curve(np.array([0.25, 0.5, 0.6]))
    array([[1. , 2. , 2.4]])
    >>> curve.inverse(np.array([[1.0, 2.4, 7.0]]))
    array([[0.25, 0.6 , 1.  ]])
    """

    levels: HostArray
    values: HostArray
    increasing: bool = True

    @classmethod
    def of(cls, levels: HostArray, values: HostArray, increasing: bool = True) -> Rearrangement:
        """Sort the curves that are not monotone. Checking a curve takes 0.6 µs at 1001 levels, sorting it 11 µs."""
        before, after = values[:, :-1], values[:, 1:]
        unsorted = np.flatnonzero(~np.all(before <= after if increasing else before >= after, axis=1))
        if unsorted.size:
            ordered = np.sort(values[unsorted], axis=1)
            values = values.copy()
            values[unsorted] = ordered if increasing else ordered[:, ::-1]
        return cls(levels, values, increasing)

    def __call__(self, theta: HostArray) -> HostArray:
        """The rearranged curves at common tasks (q,): (n, q)."""
        left, right, fraction = self._place(theta)
        return self._between(self.values[:, left], self.values[:, right], fraction)

    def paired(self, theta: HostArray) -> HostArray:
        """Curve i at its own task θ_i, (n,) → (n,), or at its own tasks, (n, q) → (n, q)."""
        left, right, fraction = self._place(theta)
        rows = np.arange(self.values.shape[0]).reshape(-1, *[1] * (theta.ndim - 1))
        return self._between(self.values[rows, left], self.values[rows, right], fraction)

    def inverse(self, y: HostArray, side: Literal["left", "right"] = "right") -> HostArray:
        """The first (left) or last (right) task at which curve i has the value y_i: (n, q) → (n, q).

        The result for values beyond the ends of a curve is an end of Θ.
        """
        values, y = (self.values, y) if self.increasing else (-self.values, -y)
        count = _count(values, y, side)
        right = np.minimum(np.maximum(count, 1), self.levels.size - 1)
        left = np.maximum(right - 1, 0)
        start, end = (np.take_along_axis(values, place, axis=1) for place in (left, right))
        beyond = (count == self.levels.size).astype(np.float64)
        fraction = np.divide(y - start, end - start, out=beyond, where=end > start)
        width = self.levels[right] - self.levels[left]
        return np.asarray(np.minimum(self.levels[left] + np.clip(fraction, 0.0, 1.0) * width, self.levels[right]))

    def _place(self, theta: HostArray) -> tuple[HostArray, HostArray, HostArray]:
        last = self.levels.size - 1
        right = np.minimum(np.maximum(np.searchsorted(self.levels, theta, side="left"), min(1, last)), last)
        left = np.maximum(right - 1, 0)
        start, width = self.levels[left], self.levels[right] - self.levels[left]
        fraction = np.divide(theta - start, width, out=np.zeros(np.shape(theta)), where=width > 0.0)
        return left, right, np.minimum(np.maximum(fraction, 0.0), 1.0)  # half the time of np.clip for a single row

    def _between(self, start: HostArray, end: HostArray, fraction: HostArray) -> HostArray:
        # floating-point products and sums are monotone, but rounding may miss the end of a piece
        inside = start + fraction * (end - start)
        bounded = np.minimum(inside, end) if self.increasing else np.maximum(inside, end)
        return np.where(fraction < 1.0, bounded, end)


def _count(values: HostArray, y: HostArray, side: Literal["left", "right"]) -> HostArray:
    """The number of values of its own row below y (left), or at most y (right): (n, k), (n, q) → (n, q).

    Runs a binary search in all rows at once.
    """
    k = values.shape[1]
    low, high = np.zeros(y.shape, dtype=np.intp), np.full(y.shape, k, dtype=np.intp)
    for _ in range(k.bit_length()):
        middle = (low + high) // 2
        met = np.take_along_axis(values, np.minimum(middle, k - 1), axis=1)
        passed = ((met <= y) if side == "right" else (met < y)) & (low < high)
        low, high = np.where(passed, middle + 1, low), np.where(passed, high, middle)
    return low
