"""Rules for the table of losses: where a path of λ ends, which kernels are hopeless, and which λ is chosen."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from infinitask._base.arrays import HostArray
from infinitask._base.budget import current_budget
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
    """Walk from a first λ to smaller ones until two in a row are clearly worse or nothing changes, then to larger ones
    while that improves, and until no time is left.

    Parameters
    ----------
    losses : callable
        The number of a λ, of ``count`` descending ones → its losses, one for each fold.
    count, begin : int
    ignoring : ndarray (folds,)
        The losses of predictions that ignore the features.
    leader : float
        The mean loss of the best path so far; a path ends at its second λ if it is far worse.
    flat_ends : bool
        Whether a path ends if its losses no longer change. False for λ that may be close to each other.

    Returns
    -------
    ndarray (count, folds)
        inf for every λ that was not visited.
    """
    column, folds = np.full((count, ignoring.size), np.inf), ignoring.size
    misses = 0
    for i in range(begin, count):
        column[i] = losses(i)
        if current_budget().over:
            return column
        best = int(np.argmin(column.mean(axis=1)))
        # a smaller λ cannot win if the folds agree that this one is worse, or if it is and the best λ uses X
        far = np.mean(column[i]) > CLEARLY_WORSE * np.mean(column[best])
        lost = (far and surely_worse(ignoring, column[best], folds)) or is_worse(column[i], column[best], folds)
        misses = misses + 1 if lost else 0
        if (misses == 2 and i > best) or (flat_ends and _is_flat(column[begin : i + 1], ignoring)):
            break
        if i == begin + 1 and is_hopeless(column, begin, leader):
            return column
    for i in range(begin - 1, -1, -1):
        if is_worse(column[i + 1], column[int(np.argmin(column.mean(axis=1)))], folds):
            break
        column[i] = losses(i)
        if current_budget().over:
            break
    return column


def is_worse(losses: HostArray, best: HostArray, folds: int) -> bool:
    """Whether the folds agree that a λ or a kernel is worse than the best one, by a relevant difference."""
    return bool(np.mean(losses) > SLIGHTLY_WORSE * np.mean(best)) and surely_worse(losses, best, folds)


def _is_flat(path: HostArray, ignoring: HostArray) -> bool:
    """Whether the last losses of a path (λ, folds) are all equal, and not those of ignoring the features."""
    last = path[-4:].mean(axis=1)
    alike, known = np.max(last) <= SLIGHTLY_WORSE * np.min(last), np.max(last) < np.mean(ignoring) / SLIGHTLY_WORSE
    return bool(last.size == 4 and alike and known)


def is_hopeless(column: HostArray, begin: int, leader: float) -> bool:
    """Whether a path is far worse than the best one at its first two λ, and does not approach it fast."""
    better, worse = np.sort(column[begin : begin + 2].mean(axis=1))
    return bool(better * (better / worse) ** 2 > CLEARLY_WORSE * leader) if 0.0 < worse < np.inf else False


def chosen_of(table: HostArray, ignoring: HostArray, rule: str, folds: int, bound: float = np.inf) -> tuple[int, int]:
    """The positions of the kernel and of λ; the first λ if nothing is better than ignoring the features.

    A λ larger than the best has a loss of at most ``bound``, that of the default.
    """
    means = table.mean(axis=2)
    k, i = (int(place) for place in np.unravel_index(np.argmin(means), means.shape))
    if not surely_worse(ignoring, table[k, i], folds, TOLERATED_ERRORS if rule == "best" else 1.0):
        return k, 0
    if rule == "best":
        return k, i
    near = (j for j in range(i) if means[k, j] <= min(CLEARLY_WORSE * means[k, i], bound))
    return k, next((j for j in near if not surely_worse(table[k, j], table[k, i], folds, TOLERATED_ERRORS)), i)


def surely_worse(losses: HostArray, best: HostArray, folds: int, errors: float = 1.0) -> bool:
    """Whether the mean difference exceeds a number of standard errors.

    Repeats reduce the variance of the mean but reuse the same rows: the standard error is that of a single repeat.
    """
    if not np.all(np.isfinite(losses)):
        return True
    difference = losses - best
    error = np.std(difference, ddof=1) / np.sqrt(folds) if difference.size > 1 else 0.0
    return bool(np.mean(difference) > errors * error)
