"""Normal scores of inputs, by which :class:`~infinitask.kernels.Warped` replaces them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
from scipy.special import ndtri

from infinitask._base.arrays import Array, HostArray, to_host

from ._distances import FEW_ROWS

MAX_KNOTS = 257
"""Values of a feature that are kept for its normal scores, evenly spaced in rank."""


@final
@dataclass(frozen=True, eq=False)
class Ranks:
    """Knows the normal score of every value of each input; :class:`Warped` keeps one.

    Parameters
    ----------
    columns : tuple of (values, scores)
        Two ascending arrays for each input.
    """

    columns: tuple[tuple[HostArray, HostArray], ...]

    def __repr__(self) -> str:
        # short: a kernel may be printed, and scikit-learn takes seconds to write out hundreds of numbers
        return f"<ranks of {len(self.columns)} inputs>"

    @classmethod
    def of(cls, X: Array) -> Ranks:
        """From the rows of X."""
        return cls(tuple(_scores(column) for column in to_host(X).astype(float).T))

    def __call__(self, X: HostArray) -> HostArray:
        """w(x) for the rows of a NumPy array (n, d)."""
        if X.shape[0] >= FEW_ROWS:
            return np.stack([np.interp(X[:, j], *known) for j, known in enumerate(self.columns)], axis=1)
        values, scores, lowest, highest = self._in_a_row
        places = np.empty(X.shape, dtype=complex)
        places.real, places.imag = self._numbers, X
        right = np.clip(np.searchsorted(values, places), lowest, highest)
        left = right - 1
        before = values.imag[left]
        fraction = np.clip((X - before) / (values.imag[right] - before), 0.0, 1.0)
        start = scores[left]
        return np.asarray(start + fraction * (scores[right] - start))

    @cached_property
    def _numbers(self) -> HostArray:
        """0, 1, ...: one for each input."""
        return np.arange(len(self.columns), dtype=float)

    @cached_property
    def _in_a_row(self) -> tuple[HostArray, HostArray, HostArray, HostArray]:
        """All inputs' values and scores one after the other, and the first and last right neighbour of each input.

        Complex numbers are in order by their real and then by their imaginary part: with the number of the input as the
        real part, one search finds the places of a whole row. With 30 inputs that takes 11 µs instead of 46.
        """
        # a single value gets a second one with the same score
        known = [
            (np.append(v, v[0] + max(1.0, abs(v[0]))), np.append(s, s[0])) if v.size == 1 else (v, s)
            for v, s in self.columns
        ]
        values = np.empty(sum(v.size for v, _ in known), dtype=complex)
        values.real = np.repeat(self._numbers, [v.size for v, _ in known])
        values.imag = np.concatenate([v for v, _ in known])
        end = np.cumsum([v.size for v, _ in known])
        start = end - np.array([v.size for v, _ in known])
        return values, np.concatenate([s for _, s in known]), start + 1, end - 1

    def __getstate__(self) -> dict[str, Any]:
        return {"columns": self.columns}  # the rest can be made again

    def __deepcopy__(self, memo: dict[int, Any]) -> Ranks:
        return self  # it never changes: copies of a kernel share it, and a sum of kernels is saved with one


def _scores(column: HostArray) -> tuple[HostArray, HostArray]:
    """Distinct values and the normal quantiles of their mid-ranks."""
    values, counts = np.unique(column, return_counts=True)
    scores = ndtri((np.cumsum(counts) - 0.5 * counts) / column.size)
    if values.size > MAX_KNOTS:
        kept = np.unique(np.linspace(0, values.size - 1, MAX_KNOTS).astype(int))
        values, scores = values[kept], scores[kept]
    return values, scores
