"""Curves in order: the monotone rearrangement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from infinitask._array import HostArray

__all__ = ["Rearrangement"]


@final
@dataclass(frozen=True, eq=False)
class Rearrangement:
    """θ ↦ the value that a share (θ − low)/(high − low) of the levels does not exceed.

    Sorting the values of a curve at equally spaced levels gives the increasing curve with the same distribution of
    values (Chernozhukov, Fernández-Val and Galichon, 2010): a curve that is in order stays what it is, and one that is
    not comes no further from any increasing curve, in every L^p. Between levels it is linear. The
    result is in order to the last bit, for every pair of tasks, however they are asked for.

    Parameters
    ----------
    levels : ndarray (k,)
        Ascending, equally spaced.
    values : ndarray (n, k)
        The curves at the levels; sorted here.
    increasing : bool
        Which order.

    Examples
    --------
    >>> import numpy as np
    >>> curve = Rearrangement.of(np.linspace(0, 1, 5), np.array([[0.0, 2.0, 1.0, 3.0, 4.0]]))
    >>> curve(np.array([0.25, 0.5, 0.6]))
    array([[1. , 2. , 2.4]])
    """

    levels: HostArray
    values: HostArray
    increasing: bool = True

    @classmethod
    def of(cls, levels: HostArray, values: HostArray, increasing: bool = True) -> Rearrangement:
        """Sort the curves."""
        ordered = np.sort(values, axis=1)
        return cls(levels, ordered if increasing else ordered[:, ::-1], increasing)

    def __call__(self, theta: HostArray) -> HostArray:
        """The rearranged curves at tasks (q,), the same for all: (n, q)."""
        right, share = self._place(theta)
        return self._between(self.values[:, right - 1], self.values[:, right], share)

    def paired(self, theta: HostArray) -> HostArray:
        """Curve i at its own task θ_i: (n,)."""
        right, share = self._place(theta)
        rows = np.arange(self.values.shape[0])
        return self._between(self.values[rows, right - 1], self.values[rows, right], share)

    def _place(self, theta: HostArray) -> tuple[HostArray, HostArray]:
        right = np.clip(np.searchsorted(self.levels, theta, side="left"), 1, self.levels.size - 1)
        left = self.levels[right - 1]
        return right, np.clip((theta - left) / (self.levels[right] - left), 0.0, 1.0)

    def _between(self, start: HostArray, end: HostArray, share: HostArray) -> HostArray:
        # products and sums of floating point are monotone; only the sum at the end of a piece may overshoot it
        inside = start + share * (end - start)
        return np.asarray(np.minimum(inside, end) if self.increasing else np.maximum(inside, end))
