"""Distributions that are given by their quantile functions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from sklearn.utils import check_random_state

from infinitask._base.arrays import HostArray
from infinitask._base.validation import count, coverages, naming, numbers, parse_tasks, seed
from infinitask.calibration._levels import Rearrangement

HALF_WINDOW = 0.1
"""The half-width of the window over which ``pdf`` computes the slope of the cdf, in interquartile ranges; 0.13 standard
deviations of a normal distribution."""

LEAST_HALF_WINDOW = 0.005
"""The smallest half-width, relative to the distance between the ends."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class QuantileDistribution:
    """Predictive distributions of n rows, given by their quantile functions.

    Q_i(τ_j) = values_ij, and Q_i is linear in between. If the levels do not reach 0 and 1, the remaining mass is
    assigned to the ends: ``cdf``, ``mean``, ``variance``, ``std``, ``sample`` and ``crps`` put it on the first and the
    last value, which understates the spread. ``ppf``, ``interval`` and ``median`` raise an error for levels outside,
    and ``pdf`` integrates to the mass between the ends.

    Parameters
    ----------
    levels : array (k,)
        At least two levels τ in [0, 1], ascending.
    values : array (n, k)
        The quantiles; each row is nondecreasing.

    Examples
    --------
    >>> import numpy as np
    >>> uniform = QuantileDistribution([0.0, 1.0], [[0.0, 1.0], [2.0, 6.0]])
    >>> uniform
    QuantileDistribution(n=2, 2 levels from 0 to 1)
    >>> uniform.mean(), uniform.median()
    (array([0.5, 4. ]), array([0.5, 4. ]))
    >>> uniform.cdf([0.25, 3.0]), uniform.pdf([0.25, 3.0])
    (array([0.25, 0.25]), array([1.  , 0.25]))
    >>> uniform.interval(0.5)
    array([[0.25, 0.75],
           [3.  , 5.  ]])
    >>> uniform.crps([0.5, 4.0]).round(4)
    array([0.0833, 0.3333])
    """

    levels: HostArray
    values: HostArray

    def __post_init__(self) -> None:
        levels, values = (numbers(name, getattr(self, name)) for name in ("levels", "values"))
        if levels.ndim != 1 or levels.size < 2 or values.ndim != 2 or values.shape[1] != levels.size:
            raise ValueError(
                f"QuantileDistribution was given levels of shape {levels.shape} and values of shape "
                f"{values.shape}; it needs k ≥ 2 levels of shape (k,) and values of shape (n, k)."
            )
        if not (levels[0] >= 0.0 and levels[-1] <= 1.0 and np.all(np.diff(levels) > 0.0)):
            raise ValueError(
                f"levels run from {levels[0]:g} to {levels[-1]:g}; they must ascend strictly and lie in [0, 1]."
            )
        if not np.all(np.isfinite(values)):
            raise ValueError("values contain NaN or infinity; those of a quantile function are finite.")
        if not np.all(values[:, 1:] >= values[:, :-1]):
            row = int(np.argmax(np.any(values[:, 1:] < values[:, :-1], axis=1)))
            raise ValueError(
                f"values fall with the level in row {row}; a quantile function does not. Sort them first, as "
                "Rearrangement.of does."
            )
        object.__setattr__(self, "levels", levels)
        object.__setattr__(self, "values", values)

    # ------------------------------------------------------------------------------------------- a collection
    def __repr__(self) -> str:
        low, high = self.levels[[0, -1]]
        return f"{type(self).__name__}(n={len(self)}, {self.levels.size} levels from {low:g} to {high:g})"

    def __len__(self) -> int:
        return int(self.values.shape[0])

    def __getitem__(self, rows: Any) -> QuantileDistribution:
        """Return the distributions of some rows: an integer, a slice, a mask or an array of integers."""
        return QuantileDistribution(self.levels, self.values[np.atleast_1d(np.arange(len(self))[rows])])

    def __iter__(self) -> Iterator[QuantileDistribution]:
        return (self[i] for i in range(len(self)))

    # ------------------------------------------------------------------------------------------------ functions
    def ppf(self, level: Any) -> HostArray:
        """Return the quantiles Q(τ): (n,) for one level, (n, q) for several.

        Parameters
        ----------
        level : float or array (q,)
            Between the first and the last of ``levels``.
        """
        levels, single = parse_tasks(level, "level", (self.levels[:1], self.levels[-1:]), percent=True)
        values = self._curve(levels[:, 0])
        return values[:, 0] if single else values

    def cdf(self, y: Any) -> HostArray:
        """Return F(y) = sup {τ : Q(τ) ≤ y}.

        It is 0 below the first value and 1 at and above the last value.

        Parameters
        ----------
        y : float, array (n,) or array (n, q)
            One number for all rows, one for each row, or q for each row; a single row (1, q) is used for all rows.

        Returns
        -------
        ndarray (n,) or (n, q)
        """
        points, flat = as_points(y, len(self))
        inside = self._curve.inverse(points)
        inside = np.where(points < self.values[:, :1], 0.0, np.where(points >= self.values[:, -1:], 1.0, inside))
        return inside[:, 0] if flat else inside

    def pdf(self, y: Any) -> HostArray:
        """Return the density f(y) = (F(y + δ) − F(y − δ)) / 2δ, the slope of the cdf over a window.

        The slope at a single point would jump where the quantile function is nearly flat. δ is a tenth of the
        distance between the quartiles, at least 1/200 of the distance between the ends. F is reflected at the ends, so
        f is 0 beyond them and integrates exactly to the mass between them. A row of equal values is a point mass: f is
        infinite there and 0 elsewhere.

        Parameters
        ----------
        y : float, array (n,) or array (n, q)
            See :meth:`cdf`.

        Returns
        -------
        ndarray (n,) or (n, q)
        """
        points, flat = as_points(y, len(self))
        first, last = self.values[:, :1], self.values[:, -1:]
        low, high = self.levels[0], self.levels[-1]
        quartiles = self._curve(low + (high - low) * np.array([0.25, 0.75]))
        delta = np.maximum(HALF_WINDOW * np.diff(quartiles, axis=1), LEAST_HALF_WINDOW * (last - first))
        inside = (points >= first) & (points <= last)
        points = np.clip(points, first, last)

        def reflected(z: HostArray) -> HostArray:
            below, above = z < first, z > last
            at = self._curve.inverse(np.where(below, 2.0 * first - z, np.where(above, 2.0 * last - z, z)))
            return np.where(below, 2.0 * low - at, np.where(above, 2.0 * high - at, at))

        rise = np.maximum(reflected(points + delta) - reflected(points - delta), 0.0)
        slope = np.divide(rise, 2.0 * delta, out=np.full(rise.shape, np.inf), where=delta > 0.0)
        density = np.where(inside, slope, 0.0)
        return density[:, 0] if flat else density

    def sample(self, n_samples: int = 1, random_state: Any = None) -> HostArray:
        """Return independent samples of each row, (n, n_samples): Q(U) with U uniform on (0, 1).

        Parameters
        ----------
        n_samples : int
        random_state : int, RandomState or None
        """
        uniform = check_random_state(seed("random_state", random_state)).uniform(
            size=(len(self), count("n_samples", n_samples))
        )
        return self._curve.paired(uniform)

    # -------------------------------------------------------------------------------------------------- numbers
    def mean(self) -> HostArray:
        """Return ∫ Q(τ) dτ, (n,)."""
        width, values = self._pieces()
        return np.asarray(0.5 * (values[:, 1:] + values[:, :-1]) @ width)

    def variance(self) -> HostArray:
        """Return ∫ (Q(τ) − mean)² dτ, (n,)."""
        width, values = self._pieces()
        centred = values - self.mean()[:, None]
        start, end = centred[:, :-1], centred[:, 1:]
        return np.asarray((start**2 + start * end + end**2) @ width / 3.0)

    def std(self) -> HostArray:
        """Return the square root of the variance, (n,)."""
        return np.sqrt(self.variance())

    def median(self) -> HostArray:
        """Return Q(½), (n,)."""
        return self.ppf(0.5)

    def interval(self, coverage: Any = 0.9) -> HostArray:
        """Return the central interval [Q((1 − coverage)/2), Q((1 + coverage)/2)]: (n, 2), or (n, q, 2) for q coverages.

        Parameters
        ----------
        coverage : float or array (q,)
            In (0, 1], within the range of ``levels``.
        """
        asked, single = coverages(coverage, open_high=False)
        ends = np.round(np.stack([0.5 - 0.5 * asked, 0.5 + 0.5 * asked], axis=1), 15)
        with naming("coverage"):
            found = self.ppf(ends.ravel()).reshape(-1, asked.size, 2)
        return found[:, 0] if single else found

    def crps(self, y: Any) -> HostArray:
        """Return the CRPS, ∫ (F(z) − 1[y ≤ z])² dz = 2 ∫ max(τr, (τ − 1)r) dτ with r = y − Q(τ).

        This is the continuous ranked probability score. The second integral is computed exactly, piece by piece (Laio
        and Tamea, 2007). Smaller is better, in the units of y; a point mass scores |y − Q|.

        Parameters
        ----------
        y : float or array (n,)
            The observed values.

        Returns
        -------
        ndarray (n,)
        """
        observed, flat = as_points(y, len(self))
        if not flat or not np.all(np.isfinite(observed)):
            raise ValueError(
                f"y of shape {np.shape(y)} was given to be scored by {len(self)} distributions; it must hold one "
                "finite number for each."
            )
        width, values = self._pieces()
        start = np.concatenate([[0.0], np.cumsum(width)[:-1]])
        over = values - observed  # Q − y at the ends of the pieces
        u, v = over[:, :-1], over[:, 1:]
        # ∫ (1 − τ)(Q − y)₊ + τ(y − Q)₊ = ∫ (Q − y)₊ − ∫ τ(Q − y)
        up, down = np.maximum(v, 0.0), np.maximum(u, 0.0)
        part = np.divide(up - down, v - u, out=np.ones(u.shape), where=v > u)
        above = (part * (up + down)) @ (0.5 * width)
        slanted = (u + v) @ (0.5 * start * width) + (u + 2.0 * v) @ (width**2 / 6.0)
        return np.asarray(2.0 * np.maximum(above - slanted, 0.0))

    # ------------------------------------------------------------------------------------------------- in common
    @property
    def _curve(self) -> Rearrangement:
        return Rearrangement(self.levels, self.values)

    def _pieces(self) -> tuple[HostArray, HostArray]:
        """Return the lengths (p,) of pieces that cover [0, 1], and the values at their ends (n, p + 1)."""
        levels = np.concatenate([[0.0], self.levels, [1.0]])
        return np.diff(levels), np.concatenate([self.values[:, :1], self.values, self.values[:, -1:]], axis=1)


def as_points(y: Any, n: int) -> tuple[HostArray, bool]:
    """Return y as (n, q), and whether it was a single number or one number for each of n distributions."""
    points = numbers("y", y)
    fits = points.ndim == 0 or (points.ndim == 1 and points.size == n)
    fits = fits or (points.ndim == 2 and points.shape[0] in (1, n))
    if not fits or np.any(np.isnan(points)):
        raise ValueError(
            f"y of shape {points.shape} was given for {n} distributions; it must be a number or an array of shape "
            f"({n},), ({n}, q) or (1, q), without NaN."
        )
    flat = points.ndim < 2
    points = points.reshape(-1, 1) if flat else points
    return np.broadcast_to(points, (n, points.shape[1])), flat
