"""Which kernels and λ are worth a look, and which one is taken: rules for a table of losses, kernels × λ × folds.

Not all of the table is worth computing. A path begins near the λ that was best in the ranking of the kernels, goes on
towards smaller λ until two in a row are not worth it, and towards larger λ while that helps.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from infinitask._base.arrays import HostArray
from infinitask.tuning._defaults import CLEARLY_WORSE, SLIGHTLY_WORSE, TOLERATED_ERRORS


def walk(
    losses: Callable[[int], list[float]],
    count: int,
    begin: int,
    ignoring: HostArray,
    leader: float = np.inf,
    *,
    flat_ends: bool = True,
) -> HostArray:
    """From a first λ to smaller ones until two in a row are not worth it or nothing changes, then to larger ones while
    that helps.

    Parameters
    ----------
    losses : callable
        The number of a λ, of which there are ``count`` that fall → its losses, one for each fold.
    count, begin : int
    ignoring : ndarray (folds,)
        The losses of what ignores the features.
    leader : float
        The mean loss of the best so far; a path ends at its second λ if it is far from it.
    flat_ends : bool
        Whether a path ends where its losses no longer change. Not so for λ that may lie close together.

    Returns
    -------
    ndarray (count, folds)
        inf for every λ that was not looked at.
    """
    column = np.full((count, ignoring.size), np.inf)
    misses = 0
    for i in range(begin, count):
        column[i] = losses(i)
        best = int(np.argmin(column.mean(axis=1)))
        misses = misses + 1 if _not_worth_it(column[i], column[best], ignoring, len(column[i])) else 0
        if (misses == 2 and i > best) or (flat_ends and _is_flat(column[begin : i + 1], ignoring)):
            break
        if i == begin + 1 and is_hopeless(column, begin, leader):
            return column
    for i in range(begin - 1, -1, -1):
        best = int(np.argmin(column.mean(axis=1)))
        if _more_than_slightly_worse(column[i + 1], column[best], len(column[i])):
            break
        column[i] = losses(i)
    return column


def _is_flat(path: HostArray, ignoring: HostArray) -> bool:
    """Whether the last losses of a path (λ, folds) are all the same, and not those of ignoring the features."""
    last = path[-4:].mean(axis=1)
    alike, known = np.max(last) <= SLIGHTLY_WORSE * np.min(last), np.max(last) < np.mean(ignoring) / SLIGHTLY_WORSE
    return bool(last.size == 4 and alike and known)


def is_hopeless(column: HostArray, begin: int, leader: float) -> bool:
    """Whether a path is far from the best so far at its first two λ, and does not come nearer fast."""
    better, worse = np.sort(column[begin : begin + 2].mean(axis=1))
    return bool(better * (better / worse) ** 2 > CLEARLY_WORSE * leader) if worse > 0.0 else False


def left_where_hopeless(column: HostArray, begin: int, leader: float) -> HostArray:
    """A path that was walked without a leader, as it would be with one: the table is that of one process."""
    if begin + 1 == len(column) or not is_hopeless(column, begin, leader):
        return column
    left = np.full_like(column, np.inf)
    left[begin : begin + 2] = column[begin : begin + 2]
    return left


def _not_worth_it(losses: HostArray, best: HostArray, ignoring: HostArray, folds: int) -> bool:
    """Whether a smaller λ cannot win against the best one."""
    if np.mean(losses) > CLEARLY_WORSE * np.mean(best) and surely_worse(ignoring, best, folds):
        return True
    return _more_than_slightly_worse(losses, best, folds)


def _more_than_slightly_worse(losses: HostArray, best: HostArray, folds: int) -> bool:
    """Whether the folds agree that a λ is worse than the best one, by a difference that means something."""
    return bool(np.mean(losses) > SLIGHTLY_WORSE * np.mean(best)) and surely_worse(losses, best, folds)


def chosen_of(table: HostArray, ignoring: HostArray, rule: str, folds: int) -> tuple[int, int]:
    """The positions of the kernel and of λ; the first λ where nothing beats ignoring the features."""
    k, i = _best(table)
    if rule == "best" and not surely_worse(ignoring, table[k, i], folds, TOLERATED_ERRORS):
        return k, 0
    if rule == "one-se":
        if not surely_worse(ignoring, table[k, i], folds):
            return k, 0
        most = CLEARLY_WORSE * float(np.mean(table[k, i]))
        near = (j for j in range(i) if float(np.mean(table[k, j])) <= most)
        good = (j for j in near if not surely_worse(table[k, j], table[k, i], folds, TOLERATED_ERRORS))
        i = next(good, i)
    return k, i


def _best(table: HostArray) -> tuple[int, int]:
    mean = table.mean(axis=2)
    k, i = np.unravel_index(np.argmin(mean), mean.shape)
    return int(k), int(i)


def surely_worse(losses: HostArray, best: HostArray, folds: int, errors: float = 1.0) -> bool:
    """Whether the mean difference is above a number of standard errors.

    Repeats make the mean more exact, but they see the same rows again: the error is that of the folds of one.
    """
    if not np.all(np.isfinite(losses)):
        return True
    difference = losses - best
    error = np.std(difference, ddof=1) / np.sqrt(folds) if difference.size > 1 else 0.0
    return bool(np.mean(difference) > errors * error)
