"""Which kernel and which λ, by what they are worth on rows left out.

The losses form a table: kernels × λ × folds. Not all of it is worth computing. A path begins near the λ that was best
in the ranking, goes on towards smaller λ until two in a row are not worth it, and towards larger λ while that helps;
where folds are repeated, only kernels and λ that may still win go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from infinitask._array import HostArray
from infinitask.tuning._candidates import Candidate
from infinitask.tuning._folds import Apart, Folds

__all__ = ["Choice", "Splits", "checked_alphas", "choose", "contest", "surely_worse"]

HALF = 0.5
"""Standard errors of the difference by which a larger λ may be worse than the best. On the first splits of the twenty
sets of the paper's Table 1 a whole one loses half a percent; to ignore the inputs, a whole one is asked for."""

SLIGHT, CLEAR = 1.01, 1.03
"""Times the loss of the best λ: a smaller λ is not worth it if it is surely worse, and more than slightly, or if it is
clearly worse and the best one surely better than ignoring the inputs. On the flat part of a path, where λ is large, all
folds may agree on a difference that means nothing; the smallest λ all but interpolate, and are so much alike that few
rows never show them to be surely worse."""

Splits = list[tuple[HostArray, HostArray]]


@dataclass(frozen=True, eq=False)
class Choice:
    """What was chosen, by its position among kernels and λ, and the table it was chosen from.

    Parameters
    ----------
    kernel, ridge : int
    losses : ndarray (kernels, k, folds)
        inf where nobody looked.
    """

    kernel: int
    ridge: int
    losses: HostArray


def contest(
    entrants: list[Candidate],
    lambdas: HostArray,
    repeats: list[Splits],
    begin: Callable[[Candidate], int],
    folds: Callable[[Candidate, Splits], Folds | Apart],
    loss: Callable[[HostArray, HostArray], float],
    alpha_bias: float,
    ignoring: HostArray,
) -> HostArray:
    """The losses, (kernels, k, folds), as far as they are worth computing; inf beyond.

    Parameters
    ----------
    entrants : list of Candidate
    lambdas : ndarray (k,), falling
    repeats : list of lists of (train, test)
        The folds, once and again.
    begin : callable
        The position of the first λ of a kernel.
    folds : callable
        The problem of a kernel with these folds.
    loss : callable
        rows, h → what h is worth there.
    alpha_bias : float
    ignoring : ndarray (folds,)
        The losses of what ignores the inputs.
    """
    sizes = [len(splits) for splits in repeats]
    first = np.cumsum([0, *sizes])
    table = np.full((len(entrants), lambdas.size, int(first[-1])), np.inf)
    for turn, splits in enumerate(repeats):
        seen = table[:, :, : first[turn]]
        for k, entrant in enumerate(entrants):
            column = table[k, :, first[turn] : first[turn + 1]]
            open_to: Iterable[int] = range(lambdas.size)
            if turn:
                leader = _best(seen)
                own = int(np.argmin(seen[k].mean(axis=1)))
                open_to = [
                    i
                    for i in range(lambdas.size)
                    if not surely_worse(seen[k, i], seen[leader], sizes[0])
                    and not (i > own and _in_vain(seen[k, i], seen[k, own], ignoring[: first[turn]], sizes[0]))
                ]
                if not open_to:
                    continue
            posed = folds(entrant, splits)

            def look(i: int, column: HostArray = column, posed: Folds | Apart = posed, splits: Splits = splits) -> None:
                found = posed.left_out(float(lambdas[i]), alpha_bias)
                column[i] = [loss(test, h) for (_, test), h in zip(splits, found, strict=True)]

            if turn:
                for i in open_to:
                    look(i)
            else:
                _walk(column, begin(entrant), look, ignoring[: first[1]])
    return table


def _walk(column: HostArray, begin: int, look: Callable[[int], None], ignoring: HostArray) -> None:
    """From λ number ``begin`` to smaller ones until two in a row are in vain, then to larger ones."""
    vain = 0
    for i in range(begin, len(column)):
        look(i)
        best = int(np.argmin(column.mean(axis=1)))
        vain = vain + 1 if _in_vain(column[i], column[best], ignoring, len(column[i])) else 0
        if vain == 2 and i > best:
            break
    for i in range(begin - 1, -1, -1):
        best = int(np.argmin(column.mean(axis=1)))
        if _more_than_slightly(column[i + 1], column[best], len(column[i])):
            break
        look(i)


def _in_vain(losses: HostArray, best: HostArray, ignoring: HostArray, folds: int) -> bool:
    """Whether a λ is not worth it next to the best one."""
    if np.mean(losses) > CLEAR * np.mean(best) and surely_worse(ignoring, best, folds):
        return True
    return _more_than_slightly(losses, best, folds)


def _more_than_slightly(losses: HostArray, best: HostArray, folds: int) -> bool:
    """Whether a λ is surely worse than the best one, by a difference that means something."""
    return bool(np.mean(losses) > SLIGHT * np.mean(best)) and surely_worse(losses, best, folds)


def choose(table: HostArray, ignoring: HostArray, rule: str, folds: int) -> Choice:
    """The kernel and λ to take; the first λ where nothing beats ignoring the inputs.

    Parameters
    ----------
    table : ndarray (kernels, k, folds)
    ignoring : ndarray (folds,)
        The losses of what ignores the inputs.
    rule : {"one-se", "best"}
    folds : int
        Of one repetition.
    """
    k, i = _best(table)
    if rule == "one-se":
        if not surely_worse(ignoring, table[k, i], folds):
            i = 0
        else:
            i = next(j for j in range(i + 1) if j == i or not surely_worse(table[k, j], table[k, i], folds, HALF))
    return Choice(k, i, table)


def _best(table: HostArray) -> tuple[int, int]:
    mean = table.mean(axis=2)
    k, i = np.unravel_index(np.argmin(mean), mean.shape)
    return int(k), int(i)


def surely_worse(losses: HostArray, best: HostArray, folds: int, errors: float = 1.0) -> bool:
    """Whether the mean difference is above so many standard errors.

    Repetitions make the mean more exact, but they see the same rows again: the error is that of the folds of one.
    """
    if not np.all(np.isfinite(losses)):
        return True
    difference = losses - best
    error = np.std(difference, ddof=1) / np.sqrt(folds) if difference.size > 1 else 0.0
    return bool(np.mean(difference) > errors * error)


def checked_alphas(given: Any) -> HostArray:
    """Values of λ, falling."""
    try:
        alphas = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        alphas = np.empty(0)
    if alphas.ndim != 1 or not alphas.size or not np.all(np.isfinite(alphas)) or np.any(alphas <= 0.0):
        raise ValueError(f"alphas={given!r} was given; it must be a list of positive finite numbers.")
    return np.sort(alphas)[::-1]
