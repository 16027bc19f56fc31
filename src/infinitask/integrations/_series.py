"""A series as rows of a regression: features known at an origin, the step, and the distance from a reference.

At the origin t, for the step k and the season sp, the reference is the last value of the same season, y at
t + k − sp⌈k/sp⌉ (the last value itself where sp is 1), and the mean change of ⌈k/sp⌉ seasons. Features are differences
of values, and so is the target: a trend does not lead them out of the range of the fit, and kernels need not
extrapolate.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from infinitask._base.arrays import HostArray
from infinitask.estimators import InfiniteQuantileRegressor
from infinitask.kernels import RBF, Linear
from infinitask.tuning import InfiniteQuantileRegressorCV

CHOOSING_ROWS = 2000
"""About the largest number of rows that choose kernel and λ."""

FOLDS = 4
"""Blocks of consecutive times that are held out in turn."""


class Rows(NamedTuple):
    """Rows of a regression, made from a series.

    Parameters
    ----------
    inputs : ndarray (n, d)
        Differences y(t−j) − y(t−j−sp) for j = 0, 1, …, the reference less the mean of the last values, the step, and
        what is known of the time t + k and of the time of the reference.
    reference : ndarray (n,)
        What targets are counted from.
    times : ndarray of int (n,)
        The position t + k of each target in the series.
    """

    inputs: HostArray
    reference: HostArray
    times: HostArray


class Window(NamedTuple):
    """The part of a series that is known at an origin.

    Parameters
    ----------
    length : int
        How many differences.
    season : int
        Over which time they are taken.
    drift : float
        The mean change of the series over a season.
    """

    length: int
    season: int
    drift: float = 0.0

    @classmethod
    def of(cls, values: HostArray, length: int, season: int) -> Window:
        """The window with the drift of a series."""
        rises = values[season:] - values[:-season]
        return cls(length, season, float(np.mean(rises)) if rises.size else 0.0)

    @property
    def reach(self) -> int:
        """The number of values that features need, up to the origin itself."""
        return self.length + self.season

    def rows(self, values: HostArray, origin: HostArray, step: HostArray, known: HostArray | None = None) -> Rows:
        """The rows of origins and steps, (n,) each; ``known`` (times, k) has a row for each time.

        Examples
        --------
        >>> import numpy as np
        >>> rows = Window(length=2, season=1).rows(np.arange(10.0), np.array([7, 7]), np.array([1, 2]))
        >>> rows.inputs  # two differences, the last value less the mean of two, the step
        array([[1. , 1. , 0.5, 1. ],
               [1. , 1. , 0.5, 2. ]])
        >>> rows.reference, rows.times
        (array([7., 7.]), array([8, 9]))
        """
        lagged = origin[:, None] - np.arange(self.length)
        span = max(self.length, self.season)
        means = np.convolve(values, np.full(span, 1.0 / span), mode="valid")[origin - span + 1]
        seasons = -(-step // self.season)
        before, then = origin + step - self.season * seasons, origin + step
        reference = values[before] + self.drift * seasons
        parts = [values[lagged] - values[lagged - self.season], (reference - means)[:, None], step[:, None]]
        # the target is a difference of two times, and what was known of both explains it
        parts += [] if known is None else [known[then], known[before]]
        return Rows(np.hstack(parts).astype(np.float64), reference, then)

    def training(self, values: HostArray, steps: HostArray, known: HostArray | None = None) -> Rows:
        """The rows of every origin and step whose target is in the series, origin by origin."""
        origins = np.arange(self.reach - 1, values.size - int(steps.min()))
        if origins.size < 2:
            raise ValueError(
                f"The series has {values.size} values; with window_length={self.length}, sp={self.season} and a first "
                f"step of {int(steps.min())} at least {self.reach + int(steps.min()) + 1} are needed. Give a longer "
                "series, or a smaller window_length or sp."
            )
        origin, step = np.repeat(origins, steps.size), np.tile(steps, origins.size)
        there = origin + step < values.size
        return self.rows(values, origin[there], step[there], known)

    def scales(self, inputs: HostArray) -> HostArray:
        """What features are divided by, (d,): their spread, for the j-th difference times 1 + j.

        What happened long ago counts less, which the data of a short series could not tell.
        """
        spread = np.std(inputs, axis=0)
        spread[: self.length] = np.sqrt(np.mean(spread[: self.length] ** 2)) * (1.0 + np.arange(self.length))
        return np.where(spread > 0.0, spread, 1.0)


def blocks_of_time(times: HostArray) -> list[tuple[HostArray, HostArray]]:
    """Folds (train, test) that hold out the targets of consecutive times.

    Rows of several steps share a target. If one of them were held out alone, the others would give its target away.
    """
    blocks = np.array_split(np.unique(times), min(FOLDS, np.unique(times).size))
    held_out = [np.isin(times, block) for block in blocks]
    return [(np.flatnonzero(~test), np.flatnonzero(test)) for test in held_out]


def tuned_fit(inputs: HostArray, targets: HostArray, times: HostArray, n_steps: int) -> Any:
    """The fitted regressor whose kernel and λ do best on held-out blocks of times, with levels calibrated by them.

    Parameters
    ----------
    inputs : ndarray (n, d)
        In units of their spread.
    targets, times : ndarray (n,)
    n_steps : int
        Rows of one origin, which stand together; the last origins may have fewer.
    """
    if np.unique(times).size < 2 * FOLDS:
        return InfiniteQuantileRegressor(noncrossing="rearrange", alpha=1.0, tol=1e-3).fit(inputs, targets)
    # whole origins, evenly spaced
    apart = max(1, -(-targets.size // CHOOSING_ROWS))
    some = np.flatnonzero((np.arange(targets.size) // n_steps) % apart == 0)
    first, second = np.array_split(inputs[some], 2)
    gamma = 0.5 / (float(np.median(np.sum((first[:, None] - second) ** 2, axis=2))) or 1.0)
    # Gaussian kernels of half, once and twice the median distance
    kernels = [*(RBF(gamma / width**2) for width in (0.5, 1.0, 2.0)), Linear()]
    tuned = InfiniteQuantileRegressorCV(
        kernels=kernels, cv=blocks_of_time(times[some]), rule="best", tol=1e-3, random_state=0
    )
    model: Any = tuned.fit(inputs[some], targets[some]).best_estimator_
    if apart > 1:
        levels = getattr(model, "levels_", None)
        model.fit(inputs, targets)
        if levels is not None:
            model.levels_ = levels
    return model
