"""Calibrated levels: a monotone map of levels that gives every quantile its coverage on rows left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, final

import numpy as np
from scipy.interpolate import PchipInterpolator

from infinitask._array import HostArray
from infinitask._validation import finite, levels_within, number, shares
from infinitask.predictive._rearrangement import Rearrangement
from infinitask.units import weighted_quantiles

PSEUDO_RANKS = 10
"""Ranks of a model that needs no calibration, spread evenly over (0, 1), that join those of the rows left out: with few
rows the map stays near the identity."""

MOST_KNOTS = 40
"""Knots of the map, besides its ends. They are evenly spaced in the logits of the levels, so that tails have their
share."""

ROWS_PER_KNOT = 2
"""With few rows there are fewer knots: a map through every single rank is a comb, and so is its density."""

LEAST_SPREAD = 0.1
"""The spread of a row counts as at least this part of the typical one: where a fit goes through its rows it is close to
0, and tails measured in it would be endless."""

TABLE_SIZE = 1001
"""Equally spaced levels at which the map is tabulated, besides its knots; it is linear in between."""

PERCENTILES = np.arange(1, 100) / 100
TAIL_LEVELS = np.array([0.001, 0.002, 0.005])
"""Where quantile functions of rows left out are asked; levels nearer to 0 and 1 than these are guesses of a fit."""

POINTS_OF_A_TIE = 8
"""A row whose y lies on a flat piece of its quantile function has all ranks of the piece: it counts as this many."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class Levels:
    """Replaces each level by the one that holds on rows left out, so that quantiles and intervals cover what they say.

    Let Q_i be the quantile function of row i by a fit that has not seen it. Its rank is v_i = u with Q_i(u) = y_i, and
    beyond the ends of the levels at which Q_i is known

        v_i = high + (y_i − Q_i(high)) / s_i,    v_i = low − (Q_i(low) − y_i) / s_i,

    with s_i the spread of the row, the distance between the quartiles of Q_i. A model that is calibrated has uniform
    ranks. For any other, g(q), the q-quantile of the ranks, is the level below which a share q of the rows left
    out was found. The calibrated quantile function is Q_x ∘ g, continued beyond low and high as a straight line with
    the slope s(x):

        Q_x(g) = Q_x(high) + (g − high) s(x) for g > high,    Q_x(low) − (low − g) s(x) for g < low.

    g is monotone, so quantiles that are in order stay so. It is a smooth interpolation of the ranks' quantiles at some
    levels (PCHIP), with a few pseudo-ranks of the identity, which have no weight where there are many rows and
    keep it sane where there are few. Calibration is on average over x, not for each x, and no guarantee for finite
    samples: see :class:`~infinitask.predictive.ConformalCalibration` for that.

    Parameters
    ----------
    asked : array (k,)
        Knots: levels q, from 0 to 1, ascending.
    taken : array (k,)
        g(q), ascending; less than ``low`` or more than ``high`` in the tails.
    low, high : float
        The ends of the levels at which quantile functions are asked.
    least_spread : float
        The smallest s, in the units of y.

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
    least_spread: float

    def __post_init__(self) -> None:
        asked, taken = finite("asked", self.asked, 1), finite("taken", self.taken, 1)
        if asked.size < 2 or asked[0] != 0.0 or asked[-1] != 1.0 or np.any(asked[1:] <= asked[:-1]):
            raise ValueError("asked must be levels that ascend strictly from 0 to 1.")
        if taken.shape != asked.shape or np.any(taken[1:] < taken[:-1]):
            raise ValueError(f"taken of shape {taken.shape} was given; it must ascend and have the shape of asked.")
        low, high = number("low", self.low), number("high", self.high)
        if not low < high:
            raise ValueError(f"low={low:g} and high={high:g} were given; low must be less than high.")
        number("least_spread", self.least_spread, low=0.0)

    @staticmethod
    def grid(low: float = 0.0, high: float = 1.0) -> HostArray:
        """Levels at which to ask left-out quantile functions: the percentiles of [low, high], and some in the tails.

        Parameters
        ----------
        low, high : float
            The ends of Θ.
        """
        low, high = number("low", low), number("high", high)
        levels = np.concatenate([TAIL_LEVELS, PERCENTILES, 1.0 - TAIL_LEVELS[::-1]])
        return np.asarray(low + (high - low) * levels)

    @classmethod
    def of(cls, y: Any, Q: Any, grid: Any, weight: Any = None) -> Levels:
        """The map of levels from rows left out.

        Parameters
        ----------
        y : array (n,)
            Targets that the fits behind Q have not seen.
        Q : array (n, k)
            Their quantile functions at the levels of ``grid``; sorted here where they cross.
        grid : array (k,)
            Ascending levels, at least 3, such as ``Levels.grid()``. Beyond its ends tails are measured in spreads.
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
        share = shares(weight, y.size, "weight", "rows")
        counted = share > 0.0
        y, share, curves = y[counted], share[counted], Rearrangement.of(grid, Q[counted])
        low, high = float(grid[0]), float(grid[-1])
        excess = y - np.clip(y, curves.values[:, 0], curves.values[:, -1])
        spread = _quartiles_apart(curves, low, high)
        least = LEAST_SPREAD * _typical(spread, share) or float(share @ np.abs(excess)) or 1.0
        beyond = excess / np.maximum(spread, least)
        first, last = (curves.inverse(y[:, None], side)[:, 0] + beyond for side in ("left", "right"))
        # weights that differ much are worth fewer rows
        ranks, mass = _spread_out(first, last, share / float(share @ share))
        return cls(*_knots(ranks, mass, PSEUDO_RANKS), low, high, least)

    def __repr__(self) -> str:
        shown = ", ".join(f"{q:g} → {float(self([q])[0]):.3g}" for q in (0.05, 0.5, 0.95))
        return f"{type(self).__name__}({shown})"

    def __call__(self, levels: Any) -> HostArray:
        """g(q) for levels q (k,) in [0, 1]: (k,), in order to the last bit."""
        return np.asarray(self._table(np.asarray(levels, dtype=np.float64))[0])

    def at(self, Q: Callable[[HostArray], HostArray], levels: Any) -> HostArray:
        """Calibrated quantiles: (n, k) for levels (k,).

        Parameters
        ----------
        Q : callable
            Quantile functions: levels (k,) between ``low`` and ``high`` → values (n, k), such as a
            :class:`~infinitask.predictive.Rearrangement`.
        levels : array (k,)
            In [0, 1].
        """
        inside, tails, excess = self._plan(np.asarray(levels, dtype=np.float64))
        values = Q(inside)
        if not tails.size:
            return values
        spread = np.maximum(values[:, -1:] - values[:, -2:-1], self.least_spread)
        values = values[:, :-2].copy()  # what Q returned may be its own
        # sums and products of floating point are monotone: what is in order stays so
        values[:, tails] += spread * excess
        return values

    def curves(self, curves: Rearrangement) -> Rearrangement:
        """Calibrated quantile functions, at the same levels as the given ones."""
        return Rearrangement(curves.levels, self.at(curves, curves.levels))

    def _plan(self, levels: HostArray) -> tuple[HostArray, HostArray, HostArray]:
        """The levels at which to ask Q, with the quartiles last if any are beyond; which are, and how far.

        The last plan is kept: it takes longer than the prediction of a row, and a service asks for the same levels all
        the time.
        """
        key = levels.tobytes()
        kept = vars(self).get("_kept")
        if kept is not None and kept[0] == key:
            return kept[1]  # type: ignore[no-any-return]
        taken = self(levels)
        inside = np.minimum(np.maximum(taken, self.low), self.high)
        tails = np.flatnonzero(taken != inside)
        if tails.size:
            excess = (taken - inside)[tails]
            plan = np.concatenate([inside, _quartile_levels(self.low, self.high)]), tails, excess
        else:
            plan = inside, tails, taken[:0]
        object.__setattr__(self, "_kept", (key, plan))  # one assignment, so that threads do not meet half a plan
        return plan

    def __getstate__(self) -> dict[str, Any]:
        return {part.name: getattr(self, part.name) for part in fields(self)}  # without what is kept

    @cached_property
    def _table(self) -> Rearrangement:
        """g at many levels, in order; PCHIP itself is so only up to rounding."""
        levels = np.union1d(self.asked, np.linspace(0.0, 1.0, TABLE_SIZE))
        values = np.clip(PchipInterpolator(self.asked, self.taken)(levels), self.taken[0], self.taken[-1])
        return Rearrangement(levels, np.maximum.accumulate(values)[None, :])


def _quartile_levels(low: float, high: float) -> HostArray:
    return low + (high - low) * np.array([0.25, 0.75])


def _quartiles_apart(curves: Rearrangement, low: float, high: float) -> HostArray:
    """The distance of the quartiles of each curve, (n,)."""
    return np.asarray(np.diff(curves(_quartile_levels(low, high)), axis=1)[:, 0])


def _typical(spread: HostArray, share: HostArray) -> float:
    """The median, or the mean where most are 0."""
    return float(weighted_quantiles(spread, share, np.array([0.5]))[0]) or float(share @ spread)


def _spread_out(first: HostArray, last: HostArray, mass: HostArray) -> tuple[HostArray, HostArray]:
    """Ranks and their masses; a row with the ranks from ``first`` to ``last`` has them all evenly.

    With ranks in the middle instead, a model with point masses at the right places would not keep its levels.
    """
    tied = last > first
    if not np.any(tied):
        return first, mass
    steps = (np.arange(POINTS_OF_A_TIE) + 0.5) / POINTS_OF_A_TIE
    among = (first[tied, None] + steps * (last - first)[tied, None]).ravel()
    return (
        np.concatenate([first[~tied], among]),
        np.concatenate([mass[~tied], np.repeat(mass[tied] / POINTS_OF_A_TIE, POINTS_OF_A_TIE)]),
    )


def _knots(ranks: HostArray, mass: HostArray, pseudo: int) -> tuple[HostArray, HostArray]:
    """Levels from 0 to 1, and the quantiles of ranks and pseudo-ranks there; a mass of 1 is a row."""
    ranks = np.concatenate([ranks, (np.arange(pseudo) + 0.5) / pseudo])
    mass = np.concatenate([mass, np.ones(pseudo)])
    order = np.argsort(ranks, kind="stable")
    ranks, mass = ranks[order], mass[order]
    total = float(np.sum(mass))
    # the i-th of N is at i/(N + 1), the chance that a new rank is not above it
    position = (np.cumsum(mass) - 0.5 * mass + 0.5) / (total + 1.0)
    count = int(np.clip(np.ceil(total / ROWS_PER_KNOT), 5, MOST_KNOTS))
    farthest = np.log(total)
    levels = 1.0 / (1.0 + np.exp(-np.linspace(-farthest, farthest, count)))
    # beyond the last rank nothing is known: the map ends there, or at the end of the levels
    asked = np.concatenate([[0.0], levels, [1.0]])
    taken = np.interp(asked, position, ranks)
    taken[0], taken[-1] = min(float(ranks[0]), 0.0), max(float(ranks[-1]), 1.0)
    return asked, taken
