"""The ranking of points beyond the trained fractions: outside every level set, or inside every one."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from infinitask._base.arrays import HostArray, row_blocks

FAR = 1e-3
"""Points with h below this fraction of the threshold are ranked by their distance: there the error of the feature map
matters, and far away a Gaussian kernel is 0 in floating point."""

SMALLEST = 1e-290
"""The score of points with h = 0 if there is no centre; scores are smaller if h is negative."""


class Beyond(NamedTuple):
    """Ranks points that are on the same side of every trained level set.

    A point is as far outside as its ratio r(x) = max_θ h(x)(θ)/t(θ) is below 1, and as far inside as min_θ h(x)(θ)/t(θ)
    is above. If a threshold is not positive, 1 + (h − t)/max |t| replaces h/t.

    Parameters
    ----------
    h : callable
        (n, d) → (n, k): h without the threshold, at k fractions.
    thresholds : ndarray (k,)
        t at these fractions.
    centre : ndarray (d,) or None
        A point inside; None: there is none, and distant points are ranked by r alone.

    Examples
    --------
    >>> import numpy as np
    >>> beyond = Beyond(lambda X: np.exp(-(X**2)), np.array([0.5]), np.zeros(1))
    >>> beyond.outside(np.array([[1.0], [2.0], [40.0], [80.0]])).round(6)
    array([7.35759e-01, 3.66310e-02, 6.90000e-05, 3.40000e-05])
    """

    h: Callable[[HostArray], HostArray]
    thresholds: HostArray
    centre: HostArray | None

    def outside(self, X: HostArray) -> HostArray:
        """Score points outside, (n,): from 1 at the boundary to 0 at infinity; r(x), or a distance if r(x) is tiny.

        The distance is a gauge: the fraction s of the segment from ``centre`` to x at which r is :data:`FAR`.
        """
        ratio = self._ratios(X, np.max)
        far = np.flatnonzero(ratio < FAR)
        if far.size:
            ratio[far] = FAR * self._gauge(X[far], ratio[far])
        return ratio

    def inside(self, X: HostArray) -> HostArray:
        """Score points inside, (n,): one over the smallest ratio, from 1 at the boundary to 0 for large h."""
        return np.asarray(1.0 / np.maximum(self._ratios(X, np.min), 1.0))

    def _ratios(self, X: HostArray, reduce: Callable[..., HostArray]) -> HostArray:
        t = self.thresholds
        ratios = np.empty(X.shape[0])
        for rows in row_blocks(X.shape[0], t.size):
            h = self.h(X[rows])
            of_threshold = h / t if np.min(t) > 0.0 else 1.0 + (h - t) / (np.max(np.abs(t)) or 1.0)
            ratios[rows] = reduce(of_threshold, axis=1)
        return ratios

    def _gauge(self, X: HostArray, ratio: HostArray) -> HostArray:
        """Return s in (0, 1), (n,)."""
        top = -np.inf if self.centre is None else float(self._ratios(self.centre[None, :], np.max)[0])
        if self.centre is None or top <= FAR:
            below = SMALLEST / (1.0 - np.minimum(ratio, 0))
            return np.where(ratio > 0.0, np.maximum(ratio / FAR, 2.0 * SMALLEST), below)
        centre, way, everyone = self.centre, X - self.centre, np.arange(len(X))
        # the ends of an interval of the ray that contains r = FAR, and r at the ends
        near, at_near = np.zeros(len(X)), np.full(len(X), top)
        end, at_end = np.ones(len(X)), ratio.copy()

        def halve(rows: HostArray) -> HostArray:
            """Halve the intervals of some rows; return the rows whose midpoint is still outside."""
            middle = 0.5 * (near[rows] + end[rows])
            found = self._ratios(centre + middle[:, None] * way[rows], np.max)
            inner, outer = found >= FAR, found < FAR
            near[rows[inner]], at_near[rows[inner]] = middle[inner], found[inner]
            end[rows[outer]], at_end[rows[outer]] = middle[outer], found[outer]
            return rows[outer]

        outside = everyone
        while outside.size:  # at the centre r is above FAR
            outside = halve(outside)
        for _ in range(12):  # until h is exponential, or linear, on an interval
            halve(everyone)
        decays = at_end > 0.0
        start, stop, level = (np.log(v, out=v.copy(), where=decays) for v in (at_near, at_end, np.full(len(X), FAR)))
        part = np.clip((start - level) / (start - stop), 0.0, 1.0)
        return np.asarray(near + part * (end - near))
