"""Kernels race along paths of λ: all of them with some rows, then the best of them with all rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from infinitask._base.arrays import HostArray
from infinitask._base.events import CutShort, Trying, tell
from infinitask.fitting._defaults import RIDGE_RATE
from infinitask.tuning._candidates import Candidate, Kind, ranking_rows
from infinitask.tuning._defaults import FEW_ROWS, FINALISTS
from infinitask.tuning._rules import left_where_hopeless
from infinitask.tuning._runner import Runner

if TYPE_CHECKING:
    from infinitask.tuning._choice import Contest


class Race(NamedTuple):
    """How a race ended."""

    losses: HostArray
    """(kernels, λ, folds); inf for fits that were not made."""
    contest: Contest
    """Whose losses these are: a race that was broken off may have ended in its heat."""
    rate: float = 1.0
    """The factor from λ there to λ with all rows."""


def raced(contest: Contest, entrants: list[Candidate], lambdas: HostArray, n_jobs: int | None) -> Race:
    """Let ranked kernels race; paths begin at the λ of the ranking.

    Parameters
    ----------
    contest : Contest
    entrants : list of Candidate
    lambdas : ndarray (k,)
        They fall.
    n_jobs : int or None
        Kernels that race in parallel processes.
    """
    begins = [nearest(lambdas, entrant.ridge) for entrant in entrants]
    every = list(range(len(entrants)))
    heat, others = _heat(contest)
    if heat is None or len(entrants) <= FINALISTS:
        return Race(walked(contest, entrants, lambdas, begins, every, n_jobs)[0], contest)
    rate = (heat.targets.size / np.count_nonzero(contest.rows.weight)) ** RIDGE_RATE  # λ follows the rows
    # kernels that learn from targets are made from the other rows, as they were for the ranking
    known = [replace(entrant, kind=Kind.fixed(entrant.kind.on(others))) for entrant in entrants]
    contest.progress.say(f"{len(entrants)} kernels on {heat.targets.size} rows")
    first, ended = walked(heat, known, lambdas, begins, every, n_jobs)
    if not ended:
        return Race(first, heat, rate)
    means = first.mean(axis=2)
    finalists = np.argsort(np.min(means, axis=1), kind="stable")[:FINALISTS].tolist()
    begins = [nearest(lambdas, rate * lambdas[i]) for i in np.argmin(means, axis=1)]
    contest.progress.say(f"the best {FINALISTS} with all rows")
    last, _ = walked(contest, entrants, lambdas, begins, finalists, n_jobs, may_be_empty=True)
    return Race(last, contest) if np.any(np.isfinite(last)) else Race(first, heat, rate)


def _heat(contest: Contest) -> tuple[Contest | None, HostArray]:
    """The contest with the rows of the ranking, if it is worth it, and the positions of the others that count."""
    counted = np.flatnonzero(contest.rows.weight > 0.0)
    assert contest.rows.y is not None
    rows, others = ranking_rows(contest.rows.y[counted])
    if counted.size < FEW_ROWS:
        return None, others
    heat = contest.on(counted[rows])
    return (heat if len(heat.folds) == len(contest.folds) else None), others


def walked(
    contest: Contest,
    entrants: list[Candidate],
    lambdas: HostArray,
    begins: list[int],
    some: list[int],
    n_jobs: int | None,
    *,
    given: bool = False,
    may_be_empty: bool = False,
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
        The kernels that take part, in this order.
    n_jobs : int or None
    given : bool
        Whether the λ were given: a path over them begins where it ignores the features, which says nothing about a
        kernel, and does not end where neighbours are alike.
    may_be_empty : bool
        Whether an interrupt before the first loss is no error if the contest keeps the best so far.
    """
    ignoring = contest.ignoring()
    table = np.full((len(entrants), lambdas.size, len(contest.folds)), np.inf)
    contest.progress.comparing()

    def leader() -> float:
        return np.inf if given else float(np.min(table.mean(axis=2)))

    runners = {k: Runner(contest, entrants[k], lambdas) for k in some}
    if n_jobs not in (None, 1):
        jobs = (delayed(_walked)(runner, begins[k], ignoring, given) for k, runner in runners.items())
        for k, column in zip(some, Parallel(n_jobs=n_jobs)(jobs), strict=True):
            table[k] = left_where_hopeless(column, begins[k], leader())
        return table, True
    for count, (k, runner) in enumerate(runners.items(), 1):
        try:
            tell(Trying(count, len(some), entrants[k].name))  # a listener may interrupt here
            table[k] = runner.walked(begins[k], ignoring, leader(), flat_ends=not given)
        except KeyboardInterrupt:
            if not contest.keeps_best or not (may_be_empty or np.any(np.isfinite(table))):
                raise
            contest.progress.say("interrupted: the best so far is taken", CutShort)
            return table, False
        runner.forget()
        contest.progress.tried(count, len(some), entrants[k].name, table[k], table, contest.unit)
    return table, True


def _walked(runner: Runner, begin: int, ignoring: HostArray, given: bool) -> HostArray:
    return runner.walked(begin, ignoring, flat_ends=not given)


def nearest(lambdas: HostArray, value: float) -> int:
    """The position of the λ that is closest on a logarithmic scale."""
    return int(np.argmin(np.abs(np.log(lambdas / value))))
