"""Kernels race along paths of λ: all of them with some rows, then the best of them with all rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from infinitask._array import HostArray
from infinitask.settle import RIDGE_RATE
from infinitask.tuning._candidates import Candidate, Kind, ranking_rows
from infinitask.tuning._rules import left_where_hopeless
from infinitask.tuning._runner import Runner

if TYPE_CHECKING:
    from infinitask.tuning._choice import Contest

MIN_ROWS_FOR_HEAT, FINALISTS = 600, 3
"""From this number of rows on, so many kernels are left after a heat with at most half of the rows."""


def raced(contest: Contest, entrants: list[Candidate], lambdas: HostArray, n_jobs: int | None) -> HostArray:
    """The losses of ranked kernels, (kernels, λ, folds); inf for what could not win and was left out.

    Parameters
    ----------
    contest : Contest
    entrants : list of Candidate
    lambdas : ndarray (k,)
        They fall.
    n_jobs : int or None
        Kernels that race side by side, in processes.
    """
    begins = [nearest(lambdas, entrant.ridge) for entrant in entrants]
    every = list(range(len(entrants)))
    counted = np.flatnonzero(contest.rows.weight > 0.0)
    if counted.size < MIN_ROWS_FOR_HEAT or len(entrants) <= FINALISTS:
        return walked(contest, entrants, lambdas, begins, every, n_jobs)[0]
    assert contest.rows.y is not None
    rows, rest = ranking_rows(contest.rows.y[counted])
    heat = contest.on(counted[rows])
    # what targets had a part in is made from the other rows, as it was for the ranking
    fixed = [replace(entrant, kind=Kind(entrant.kind.on(rest))) for entrant in entrants]
    contest.progress.say(f"{len(entrants)} kernels on {rows.size} rows")
    first, ended = walked(heat, fixed, lambdas, begins, every, n_jobs)
    if not ended:
        return first
    means = first.mean(axis=2)
    finalists = sorted(np.argsort(np.min(means, axis=1), kind="stable")[:FINALISTS].tolist())
    fewer = (rows.size / counted.size) ** RIDGE_RATE  # λ follows the rows
    begins = [nearest(lambdas, fewer * lambdas[i]) for i in np.argmin(means, axis=1)]
    contest.progress.say(f"the best {FINALISTS} on {counted.size} rows")
    final, ended = walked(contest, entrants, lambdas, begins, finalists, n_jobs)
    return final if np.any(np.isfinite(final)) else first


def walked(
    contest: Contest,
    entrants: list[Candidate],
    lambdas: HostArray,
    begins: list[int],
    some: list[int],
    n_jobs: int | None,
    *,
    may_leave: bool = True,
) -> tuple[HostArray, bool]:
    """The losses of some of the kernels, (kernels, λ, folds), and whether all of them were tried.

    Parameters
    ----------
    contest : Contest
    entrants : list of Candidate
    lambdas : ndarray (k,)
    begins : list of int
        Where the path of each kernel begins.
    some : list of int
        The kernels that take part.
    n_jobs : int or None
    may_leave : bool
        Whether a kernel is left where others are far better at the first two λ. A path over given λ begins where it
        ignores the inputs, which says nothing about a kernel.
    """
    ignoring = contest.ignoring()
    table = np.full((len(entrants), lambdas.size, len(contest.folds)), np.inf)
    contest.progress.comparing()

    def leader() -> float:
        return float(np.min(table.mean(axis=2))) if may_leave else np.inf

    runners = {k: Runner(contest, entrants[k], lambdas) for k in some}
    if n_jobs not in (None, 1):
        jobs = (delayed(_walked)(runner, begins[k], ignoring) for k, runner in runners.items())
        for k, column in zip(some, Parallel(n_jobs=n_jobs)(jobs), strict=True):
            table[k] = left_where_hopeless(column, begins[k], leader())
        return table, True
    for count, (k, runner) in enumerate(runners.items(), 1):
        try:
            table[k] = runner.walked(begins[k], ignoring, leader())
        except KeyboardInterrupt:
            if not contest.keeps_best or not np.any(np.isfinite(table)):
                raise
            contest.progress.say("interrupted: the best so far is taken")
            return table, False
        runner.forget()
        contest.progress.tried(count, len(some), entrants[k].name, table[k], table, contest.unit)
    return table, True


def _walked(runner: Runner, begin: int, ignoring: HostArray) -> HostArray:
    return runner.walked(begin, ignoring)


def nearest(lambdas: HostArray, value: float) -> int:
    """The position of the λ that is closest on a logarithmic scale."""
    return int(np.argmin(np.abs(np.log(lambdas / value))))
