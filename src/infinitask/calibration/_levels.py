"""Curves of levels: sorted, so that they do not cross, and calibrated by a monotone map of levels.

The map gives every quantile its nominal coverage on held-out rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal, final

import numpy as np
from scipy.interpolate import PchipInterpolator

from infinitask._base.arrays import HostArray, weighted_quantiles
from infinitask._base.validation import finite, levels_within, shares

# The constants were chosen by the pinball loss and the coverage on test rows of 229 fits.

PSEUDO_RANKS = 10
"""The number of ranks of a calibrated model, evenly spaced in (0, 1), added to those of the held-out rows: they keep
the map near the identity if there are few rows."""

SMOOTHING = 8.0
"""Ranks are smoothed over SMOOTHING/√n in the logits of the levels. With half of it, densities fitted to 30 rows have
three modes if the distribution has one."""

BEND = 0.2
"""Ranks further than about this beyond 0 and 1 are smoothed in logarithms: otherwise an outlier would determine all
levels near it. For a normal distribution 0.2 is two standard deviations."""

FAR_FRACTION, TIMES_FAR = 0.9, 10.0
"""Ranks beyond 0 or 1 are clipped to a distance of 1, or of TIMES_FAR times the distance that contains this fraction of
the rows: an outlier contains no information on other rows."""

KNOTS = 40
"""The number of knots of the map, besides its ends, evenly spaced in the logits of the levels; 12 are too few."""

OUTER_LEVEL, TAIL_ROWS, LEAST_OUTER_LEVEL = 0.05, 50.0, 0.005
"""Beyond OUTER_LEVEL, or the level with TAIL_ROWS rows beyond it, held-out rows determine the tails, not the fit. This
reduces the pinball loss of extreme levels by 15%."""

END_WIDTH = 0.03
"""The slope of a quantile function at the outer levels is computed over this distance."""

TABLE_SIZE = 1001
"""The number of equally spaced levels at which the map is tabulated, besides its knots; it is linear in between."""

POINTS_OF_A_TIE = 8
"""A row whose y is on a flat piece of its quantile function has all ranks of the piece, and counts as this number of
ranks."""


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


@final
@dataclass(frozen=True, eq=False, repr=False)
class Levels:
    """Replace each level such that quantiles and intervals have their nominal coverage on held-out rows.

    Let Q_i be the quantile function of row i by a fit that has not seen it. The rank of the row is v_i = u with
    Q_i(u) = y_i, and beyond two outer levels, ``low`` and ``high``,

        v_i = high + (y_i − Q_i(high)) / (a⁺ s_i),    v_i = low − (Q_i(low) − y_i) / (a⁻ s_i),

    with s_i the spread of the row, the distance between the quartiles of Q_i or, if that is more, the median of these
    distances, and a⁺, a⁻ the typical slopes of Q_i/s_i at the outer levels. The ranks of a calibrated model are
    uniform. For any other model, g(q), the q-quantile of the ranks, is the level below which a fraction q of the
    held-out rows was found. The calibrated quantile function is Q_x ∘ g. Beyond the outer levels it is a straight line
    with the slope a s(x).

    g is monotone, so ordered quantiles remain ordered. It is a smooth curve through the quantiles of the ranks (PCHIP
    with about 40 knots). A few pseudo-ranks of the identity stabilise it if there are few rows, and are negligible if
    there are many. Coverage is an average over x, not for each x, and is not guaranteed for finite samples;
    ``ConformalCalibration`` and :class:`~infinitask.CrossConformal` guarantee one.

    Parameters
    ----------
    asked : array (k,)
        Knots: levels q, from 0 to 1, ascending.
    taken : array (k,)
        g(q), ascending; less than ``low`` or more than ``high`` in the tails.
    low, high : float
        The outer levels, between which quantile functions are evaluated.
    slopes : (float, float)
        a⁻ and a⁺, positive.
    least_spread : float
        The smallest s, in the units of y, positive.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.random.default_rng(0).uniform(-1.0, 2.0, size=2000)
    >>> Q = np.tile(Levels.grid(), (2000, 1))  # a model that takes y for uniform on (0, 1)
    >>> levels = Levels.of(y, Q, Levels.grid())
    >>> levels.at(lambda q: q[None, :], [0.1, 0.5, 0.9]).round(1)  # the truth
    array([[-0.7,  0.5,  1.7]])
    """

    asked: HostArray
    taken: HostArray
    low: float
    high: float
    slopes: tuple[float, float]
    least_spread: float

    @staticmethod
    def grid(low: float = 0.0, high: float = 1.0) -> HostArray:
        """Levels at which to evaluate held-out quantile functions: the percentiles of [low, high], denser at the ends.

        Parameters
        ----------
        low, high : float
            The ends of Θ.
        """
        levels = np.concatenate([[LEAST_OUTER_LEVEL], np.arange(1, 100) / 100, [1.0 - LEAST_OUTER_LEVEL]])
        return np.asarray(low + (high - low) * levels)

    @classmethod
    def of(cls, y: Any, Q: Any, grid: Any, weight: Any = None) -> Levels:
        """Compute the map of levels from held-out rows.

        Parameters
        ----------
        y : array (n,)
            Targets that the fits behind Q have not seen.
        Q : array (n, k)
            Their quantile functions at the levels of ``grid``; crossing ones are sorted.
        grid : array (k,)
            Ascending levels, at least 3, such as ``Levels.grid()``.
        weight : array (n,) or None
            Only ratios matter.
        """
        grid = levels_within("grid", grid, 0.0, 1.0)
        y, Q = finite("y", y, 1), finite("Q", Q, 2)
        if grid.size < 3 or Q.shape != (y.size, grid.size):
            raise ValueError(
                f"y of shape {y.shape}, Q of shape {Q.shape} and grid of shape {grid.shape} were given; Levels needs "
                "y (n,), Q (n, k) and grid (k,) with k ≥ 3."
            )
        if np.any(grid[1:] <= grid[:-1]):
            raise ValueError("the levels of grid do not ascend strictly; sort them, and the columns of Q with them.")
        omega = shares(weight, y.size, "weight", "rows")
        rows = 1.0 / float(omega @ omega)  # unequal weights reduce the effective number of rows
        counted, kept = omega > 0.0, _between_outer_levels(grid, rows)
        y, omega, curves = y[counted], omega[counted], Rearrangement.of(grid[kept], Q[np.ix_(counted, kept)])
        excess = y - np.clip(y, curves.values[:, 0], curves.values[:, -1])
        spread, least, slopes = _ends(curves, omega, fallback=float(omega @ np.abs(excess)) or 1.0)
        beyond = excess / (spread * np.where(excess < 0.0, *slopes))
        first, last = (curves.inverse(y[:, None], side)[:, 0] + beyond for side in ("left", "right"))
        asked, taken = _knots(*_spread_out(first, last, rows * omega))
        return cls(asked, taken, float(curves.levels[0]), float(curves.levels[-1]), slopes, least)

    def __repr__(self) -> str:
        shown = ", ".join(f"{q:g} → {float(self([q])[0]):.3g}" for q in (0.05, 0.5, 0.95))
        return f"{type(self).__name__}({shown})"

    def __call__(self, levels: Any) -> HostArray:
        """g(q) for levels q (k,) in [0, 1]: (k,), exactly monotone."""
        return np.asarray(self._table(np.asarray(levels, dtype=np.float64))[0])

    def at(self, Q: Callable[[HostArray], HostArray], levels: Any) -> HostArray:
        """Return calibrated quantiles: (n, k) for levels (k,).

        Parameters
        ----------
        Q : callable
            Quantile functions: levels (k,) between ``low`` and ``high`` → values (n, k), such as a
            ``Rearrangement``.
        levels : array (k,)
            In [0, 1].
        """
        inside, tails, excess = _plan(self, np.asarray(levels, dtype=np.float64).tobytes())
        values = Q(inside)
        if not tails.size:
            return values
        spread = np.maximum(values[:, -1:] - values[:, -2:-1], self.least_spread)
        values = values[:, :-2].copy()  # Q may return an array that it stores
        # sums and products of floating-point numbers are monotone: ordered values remain ordered
        values[:, tails] += spread * excess
        return values

    def curves(self, curves: Rearrangement) -> Rearrangement:
        """Return calibrated quantile functions at the same levels as the given ones."""
        return Rearrangement(curves.levels, self.at(curves, curves.levels))

    @cached_property
    def _table(self) -> Rearrangement:
        """g at many levels, exactly monotone; PCHIP itself is monotone only up to rounding."""
        levels = np.union1d(self.asked, np.linspace(0.0, 1.0, TABLE_SIZE))
        values = np.clip(PchipInterpolator(self.asked, self.taken)(levels), self.taken[0], self.taken[-1])
        return Rearrangement(levels, np.maximum.accumulate(values)[None, :])


@lru_cache(maxsize=64)
def _plan(levels_map: Levels, key: bytes) -> tuple[HostArray, HostArray, HostArray]:
    """The evaluations of quantile functions that a list of levels needs.

    The result is cached: it takes longer than the prediction of a row, and a service repeats the same levels.

    Returns
    -------
    inside : ndarray
        The levels to evaluate; the quartiles come last, if there are tails.
    tails : ndarray of int
        The positions of the levels beyond the outer ones.
    excess : ndarray
        Their distances in spreads.
    """
    low, high = levels_map.low, levels_map.high
    taken = levels_map(np.frombuffer(key))
    inside = np.minimum(np.maximum(taken, low), high)
    tails = np.flatnonzero(taken != inside)
    excess = (taken - inside)[tails]
    excess = excess * np.where(excess < 0.0, *levels_map.slopes)
    return np.concatenate([inside, _quartile_levels(low, high)]) if tails.size else inside, tails, excess


def _ends(curves: Rearrangement, omega: HostArray, fallback: float) -> tuple[HostArray, float, tuple[float, float]]:
    """The extrapolation of the quantile functions of n rows beyond the outer levels.

    Returns
    -------
    spread : ndarray (n,)
    least : float
        The smallest spread; ``fallback`` if all curves are flat.
    slopes : (float, float)
        The typical slopes at both ends.
    """
    low, high = float(curves.levels[0]), float(curves.levels[-1])
    own = np.diff(curves(_quartile_levels(low, high)), axis=1)[:, 0]
    least = _median(own, omega) or float(omega @ own) or fallback
    spread = np.maximum(own, least)
    width = min(END_WIDTH, 0.25 * (high - low))
    rise = np.diff(curves(np.array([low, low + width, high - width, high])), axis=1) / (width * spread[:, None])
    # approximately at least as steep as the curve between its quartiles
    down, up = (max(_median(rise[:, side], omega), 1.0) for side in (0, 2))
    return spread, least, (down, up)


def _between_outer_levels(grid: HostArray, rows: float) -> HostArray:
    """The levels of the grid to use, (k,): all but the outer ones, if at least three remain."""
    outer = float(np.clip(TAIL_ROWS / rows, LEAST_OUTER_LEVEL, OUTER_LEVEL)) * (1.0 - 1e-9)
    kept = (grid >= outer) & (grid <= 1.0 - outer)
    return np.asarray(kept if np.count_nonzero(kept) > 2 else np.full(grid.size, True))


def _quartile_levels(low: float, high: float) -> HostArray:
    return low + (high - low) * np.array([0.25, 0.75])


def _median(values: HostArray, omega: HostArray) -> float:
    return float(weighted_quantiles(values, omega, np.array([0.5]))[0])


def _spread_out(first: HostArray, last: HostArray, mass: HostArray) -> tuple[HostArray, HostArray]:
    """Return ranks and their masses; a row with the ranks from ``first`` to ``last`` has all of them with equal mass.

    With ranks in the middle instead, the map would change the levels of a model with correct point masses.
    """
    tied = last > first
    steps = (np.arange(POINTS_OF_A_TIE) + 0.5) / POINTS_OF_A_TIE
    among = (first[tied, None] + steps * (last - first)[tied, None]).ravel()
    return (
        np.concatenate([first[~tied], among]),
        np.concatenate([mass[~tied], np.repeat(mass[tied] / POINTS_OF_A_TIE, POINTS_OF_A_TIE)]),
    )


def _knots(ranks: HostArray, mass: HostArray) -> tuple[HostArray, HostArray]:
    """Return levels from 0 to 1, and the quantiles of ranks and pseudo-ranks there; a row has mass 1.

    Smooths the difference between a rank and its level by local lines: it is 0 for a calibrated model.
    """
    beyond = ranks - np.clip(ranks, 0.0, 1.0)
    farthest = max(1.0, TIMES_FAR * float(weighted_quantiles(np.abs(beyond), mass, np.array([FAR_FRACTION]))[0]))
    ranks = ranks - beyond + np.clip(beyond, -farthest, farthest)
    ranks = np.concatenate([ranks, (np.arange(PSEUDO_RANKS) + 0.5) / PSEUDO_RANKS])
    mass = np.concatenate([mass, np.ones(PSEUDO_RANKS)])
    order = np.argsort(ranks, kind="stable")
    ranks, mass = ranks[order], mass[order]
    total = float(np.sum(mass))
    # the i-th of N is at i/(N + 1), the probability that a new rank is not above it
    position = (np.cumsum(mass) - 0.5 * mass + 0.5) / (total + 1.0)
    logit, above = np.log(position / (1.0 - position)), _bent(ranks) - position
    at = np.linspace(-np.log(total), np.log(total), KNOTS)
    levels = 1.0 / (1.0 + np.exp(-at))
    width = SMOOTHING / np.sqrt(total)
    reach = 6.0 * width
    # use at least one rank on either side; more distant ones have no weight, and exponentials that underflow are slow
    first = np.maximum(np.searchsorted(logit, at - reach) - 1, 0)
    last = np.searchsorted(logit, at + reach) + 1
    near = [slice(start, stop) for start, stop in zip(first, last, strict=True)]
    found = levels + [_local_line(logit[j] - t, above[j], mass[j], width) for t, j in zip(at, near, strict=True)]
    # a local line may exceed the ranks
    found = np.maximum.accumulate(np.clip(_straightened(found), ranks[0], ranks[-1]))
    # nothing is known beyond the last rank: the map ends there, or at the end of the levels
    low, high = min(float(ranks[0]), 0.0), max(float(ranks[-1]), 1.0)
    return np.concatenate([[0.0], levels, [1.0]]), np.concatenate([[low], found, [high]])


def _bent(ranks: HostArray) -> HostArray:
    """Replace ranks beyond 0 and 1 by logarithms."""
    beyond = ranks - np.clip(ranks, 0.0, 1.0)
    return np.asarray(ranks - beyond + np.sign(beyond) * BEND * np.log1p(np.abs(beyond) / BEND))


def _straightened(bent: HostArray) -> HostArray:
    """The inverse of :func:`_bent`."""
    beyond = bent - np.clip(bent, 0.0, 1.0)
    return np.asarray(bent - beyond + np.sign(beyond) * BEND * np.expm1(np.abs(beyond) / BEND))


def _local_line(away: HostArray, values: HostArray, mass: HostArray, width: float) -> float:
    """The value at 0 of a line fitted to ``values`` at distances ``away`` from 0, with Gaussian weights."""
    nearest = float(np.min(np.abs(away)))
    weight = mass * np.exp(-0.5 * (away**2 - nearest**2) / width**2)
    weight /= np.sum(weight)
    centre = float(weight @ away)
    spread = float(weight @ (away - centre) ** 2)
    mean = float(weight @ values)
    if spread <= 1e-12 * width**2:
        return mean
    return mean - centre * float((weight * (away - centre)) @ values) / spread
