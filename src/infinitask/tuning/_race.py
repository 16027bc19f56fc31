"""The choice of a kernel and λ: kernels race along paths of λ, and a rule selects the winner.

Candidates are ranked (:mod:`~infinitask.tuning._candidates`). The first ones and sums of them race by their losses on
held-out rows (:mod:`~infinitask.tuning._contest`), first on a subset of the rows if there are many. The result is a
table of losses, kernels × λ × folds, of which only a part is computed. A path starts near the best λ of the ranking.
It proceeds towards smaller λ until two in a row are clearly worse, and towards larger λ while that improves. With
thousands of rows, a subset chooses the kernel; λ and the rank are then refined on all rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from infinitask._base.arrays import HostArray, one_blas_thread
from infinitask._base.events import Chosen, CutShort
from infinitask.fitting._defaults import RIDGE_RATE
from infinitask.kernels import InputKernel
from infinitask.tuning._candidates import (
    Candidate,
    Kind,
    Learner,
    contenders,
    given_kernels,
    only_stationary,
    ranked,
    ranking_rows,
)
from infinitask.tuning._contest import Contest, QuickFits
from infinitask.tuning._defaults import (
    CLEARLY_WORSE,
    FEW_ROWS,
    FINALISTS,
    KERNELS,
    MAX_ROWS,
    RANKS,
    ROWS_PER_KERNEL,
    SLIGHTLY_WORSE,
    TOLERATED_ERRORS,
)

NO_MATRIX = "kernels that compete are computed from X. Tune a known Gram matrix with GridSearchCV over alpha instead."
"""The reason why 'precomputed' is not supported."""


class Selection(NamedTuple):
    """The chosen kernel and λ, with the candidates."""

    kernel: InputKernel
    kind: Kind
    """Creates the kernel from rows."""
    alpha: float
    """λ in the units of the given targets."""
    results: dict[str, Any]
    """The table, see ``cv_results_`` of the self-tuned models."""
    contest: Contest
    """The contest of all rows, with a sufficient number of landmarks if there are many."""

    @property
    def ignores_inputs(self) -> bool:
        """Whether the chosen λ nearly ignores the features."""
        return bool(self.results["best"][1] == 0)


def chosen(contest: Contest, kernels: Any, rule: str, seed: int) -> Selection:
    """Return the kernel and λ for a contest of any size.

    Parameters
    ----------
    contest : Contest
    kernels : "auto" or sequence of kernels
    rule : {"one-se", "best"}
        "one-se": a λ that ignores the features unless the best one is better by a standard error, otherwise the largest
        λ that is about as good as the best one. "best": the λ with the smallest loss, unless it improves on ignoring
        the features by less than half a standard error.
    seed : int
        Samples the rows that choose the kernel if there are many.
    """
    counted = contest.counted
    with one_blas_thread():
        if counted.size <= MAX_ROWS:
            return _chosen(contest, kernels, rule)
        some = np.sort(np.random.default_rng(seed).choice(counted, MAX_ROWS, replace=False))
        fewer = contest.on(some)
        if not fewer.folds:
            raise ValueError(
                f"cv was given; of the {MAX_ROWS} rows by which kernels are compared none is left out by its folds. "
                "Give folds that leave out more rows."
            )
        choice = _chosen(fewer, kernels, rule)
        if choice.ignores_inputs:
            return choice
        return _refined(contest.on(counted), choice, np.searchsorted(counted, some), seed)


def _chosen(contest: Contest, kernels: Any, rule: str) -> Selection:
    """Return the choice based on all rows of a contest."""
    unit, lambdas = contest.units.spread, contest.lambdas
    contest.progress.say(f"ranking kernels on {contest.targets.size} rows")
    entrants = _entrants(contest, kernels)
    table, last = _raced(contest, entrants, heats=isinstance(kernels, str) and not contest.listed)
    k, i = chosen_of(table, last.ignoring, rule, last.folds_at_once)
    results = {
        "kernels": [entrant.name for entrant in entrants],
        "alphas": lambdas / unit,
        "losses": table * unit,
        "ignoring_x": last.ignoring * unit,
        "best": (k, i),
    }
    alpha = float(lambdas[i] * (_rate(last, contest) if i > 0 else 1.0) / unit)
    contest.progress.say(f"chosen: {entrants[k].name}, λ = {alpha:.2g}", Chosen)
    kind = entrants[k].kind
    return Selection(kind.on(np.arange(contest.counted.size)), kind, alpha, results, contest)


def _refined(contest: Contest, choice: Selection, used: HostArray, seed: int) -> Selection:
    """Refine on all rows a kernel and λ that were chosen on some of them, at the positions ``used``.

    λ is scaled to the number of rows, then chosen by the loss on a fifth of them. The number of features grows until
    this loss no longer decreases. Held-out rows were not used for the kernel if there are enough others.
    """
    n, unit, lambdas = contest.targets.size, contest.units.spread, contest.lambdas
    order = np.random.default_rng(seed).permutation(n)
    order = np.concatenate([order[~np.isin(order, used)], order[np.isin(order, used)]])
    fifth = n // 5
    contest = replace(contest, folds=[(np.sort(order[fifth:]), np.sort(order[:fifth]))], folds_at_once=1)
    begin = nearest(lambdas, choice.alpha * unit * _rate(choice.contest, contest))
    best, lowest, columns = choice._replace(kind=Kind.fixed(choice.kernel)), np.inf, list[HostArray]()
    for rank in RANKS:
        with_landmarks = replace(contest, landmarks=rank)
        try:
            column = path_of(with_landmarks, best.kind, begin)[:, 0] * unit
        except KeyboardInterrupt:
            if not (contest.keeps_best and columns):
                raise
            contest.progress.say("interrupted: the best so far is taken", CutShort)
            break
        columns.append(column)
        i = int(np.argmin(column))
        alpha = float(lambdas[i] / unit)
        contest.progress.say(f"{n} rows, {rank} features: loss {column[i]:.4g} at λ = {alpha:.2g}")
        if column[i] > lowest / SLIGHTLY_WORSE:
            break
        lowest, begin, best = column[i], i, best._replace(alpha=alpha, contest=with_landmarks)
    found = {"refined": np.array(columns), "best": (choice.results["best"][0], begin)}
    return best._replace(results=choice.results | found)


def _entrants(contest: Contest, kernels: Any) -> list[Candidate]:
    """Return the kernels that compete: all given ones, or the first ranked ones and sums of them."""
    recipe, X, y, *_ = contest.rows
    counted, stationary = contest.counted, only_stationary(recipe)
    given = given_kernels(kernels, X[counted], NO_MATRIX)
    assert y is not None
    learner = Learner(contest.recipe, contest.targets[counted])
    ranking = ranked(X[counted], y[counted], given, learner=learner, stationary_only=stationary)
    if given is not None:
        return ranking
    few = max(1, counted.size // ROWS_PER_KERNEL)
    return contenders(ranking, min(KERNELS, few), 0 if stationary or few < 2 else KERNELS)


# ------------------------------------------------------------------------------------------------------- the race
def _raced(contest: Contest, entrants: list[Candidate], *, heats: bool) -> tuple[HostArray, Contest]:
    """Race ranked kernels along descending λ; paths start at the λ of the ranking.

    A path over λ listed by the user starts where it ignores the features, which contains no information on a kernel,
    and does not end if neighbours are equal. With ``heats`` and enough rows, all kernels race on some of them first.

    Returns
    -------
    losses : ndarray (kernels, λ, folds)
        inf for fits that were not computed.
    contest : Contest
        The contest of these losses: an interrupted race may have ended in its heat.
    """
    assert contest.rows.y is not None
    counted, lambdas = contest.counted, contest.lambdas
    begins = [0 if contest.listed else nearest(lambdas, entrant.ridge) for entrant in entrants]
    rows, others = ranking_rows(contest.rows.y[counted])
    heat = contest.on(counted[rows])
    worth_it = counted.size >= FEW_ROWS and len(entrants) > FINALISTS and len(heat.folds) == len(contest.folds)
    if not (heats and worth_it):
        contest.progress.say(f"{len(entrants)} kernels with all rows")
        return _walked(contest, entrants, begins)[0], contest
    # kernels that learn from targets are created from the other rows, as for the ranking
    known = [replace(entrant, kind=Kind.fixed(entrant.kind.on(others))) for entrant in entrants]
    contest.progress.say(f"{len(entrants)} kernels on {rows.size} rows")
    first, ended = _walked(heat, known, begins)
    if not ended:
        return first, heat
    means = first.mean(axis=2)
    finalists = np.argsort(np.min(means, axis=1), kind="stable")[:FINALISTS].tolist()
    begins = [nearest(lambdas, _rate(heat, contest) * lambdas[i]) for i in np.argmin(means, axis=1)]
    contest.progress.say(f"the best {FINALISTS} with all rows")
    last, _ = _walked(contest, entrants, begins, finalists)
    return (last, contest) if np.any(np.isfinite(last)) else (first, heat)


def _rate(fewer: Contest, contest: Contest) -> float:
    """The factor from λ for fewer rows to λ for all."""
    return float((fewer.counted.size / contest.counted.size) ** RIDGE_RATE)


def _walked(
    contest: Contest, entrants: list[Candidate], begins: list[int], finalists: list[int] | None = None
) -> tuple[HostArray, bool]:
    """Return losses of all kernels, or of the finalists, (kernels, λ, folds), and whether all of them were tried.

    An interrupt before the first loss is an error, unless finalists have losses of a heat.
    """
    table = np.full((len(entrants), contest.lambdas.size, len(contest.folds)), np.inf)
    some = list(range(len(entrants))) if finalists is None else finalists

    def leader() -> float:
        return np.inf if contest.listed else float(np.min(table.mean(axis=2)))

    if contest.n_jobs not in (None, 1):
        paths = (delayed(path_of)(contest, entrants[k].kind, begins[k]) for k in some)
        for k, column in zip(some, Parallel(n_jobs=contest.n_jobs)(paths), strict=True):
            if begins[k] + 1 < len(column) and is_hopeless(column, begins[k], leader()):
                column[begins[k] + 2 :], column[: begins[k]] = np.inf, np.inf  # as in a single process
            table[k] = column
        return table, True
    for count, k in enumerate(some, 1):
        try:
            contest.progress.trying(count, len(some), entrants[k].name)  # a listener may interrupt here
            table[k] = path_of(contest, entrants[k].kind, begins[k], leader())
        except KeyboardInterrupt:
            if not contest.keeps_best or (finalists is None and not np.any(np.isfinite(table))):
                raise
            contest.progress.say("interrupted: the best so far is taken", CutShort)
            return table, False
        loss, best = (contest.units.spread * float(np.min(part.mean(axis=-1))) for part in (table[k], table))
        contest.progress.tried(count, len(some), entrants[k].name, loss, best)
    return table, True


def nearest(lambdas: HostArray, value: float) -> int:
    """The position of the λ that is closest on a logarithmic scale."""
    return int(np.argmin(np.abs(np.log(lambdas / value))))


def path_of(contest: Contest, kind: Kind, begin: int, leader: float = np.inf) -> HostArray:
    """Return the losses of a kernel, (k, folds), for the λ visited by :func:`walk`."""
    lambdas, fits = contest.lambdas, QuickFits(contest, kind)

    def losses(i: int) -> list[float]:
        return contest.losses(fits.values(float(lambdas[i])))

    return walk(losses, lambdas.size, begin, contest.ignoring, leader, flat_ends=not contest.listed)


# ------------------------------------------------------------------------------------------- rules for the table
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
    while that improves.

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
        best = int(np.argmin(column.mean(axis=1)))
        # a smaller λ cannot win if the folds agree that this one is worse, or if it is and the best λ uses X
        far = np.mean(column[i]) > CLEARLY_WORSE * np.mean(column[best])
        lost = (far and surely_worse(ignoring, column[best], folds)) or _is_worse(column[i], column[best], folds)
        misses = misses + 1 if lost else 0
        if (misses == 2 and i > best) or (flat_ends and _is_flat(column[begin : i + 1], ignoring)):
            break
        if i == begin + 1 and is_hopeless(column, begin, leader):
            return column
    for i in range(begin - 1, -1, -1):
        if _is_worse(column[i + 1], column[int(np.argmin(column.mean(axis=1)))], folds):
            break
        column[i] = losses(i)
    return column


def _is_worse(losses: HostArray, best: HostArray, folds: int) -> bool:
    """Whether the folds agree that a λ is worse than the best one, by a relevant difference."""
    return bool(np.mean(losses) > SLIGHTLY_WORSE * np.mean(best)) and surely_worse(losses, best, folds)


def _is_flat(path: HostArray, ignoring: HostArray) -> bool:
    """Whether the last losses of a path (λ, folds) are all equal, and not those of ignoring the features."""
    last = path[-4:].mean(axis=1)
    alike, known = np.max(last) <= SLIGHTLY_WORSE * np.min(last), np.max(last) < np.mean(ignoring) / SLIGHTLY_WORSE
    return bool(last.size == 4 and alike and known)


def is_hopeless(column: HostArray, begin: int, leader: float) -> bool:
    """Whether a path is far worse than the best one at its first two λ, and does not approach it fast."""
    better, worse = np.sort(column[begin : begin + 2].mean(axis=1))
    return bool(better * (better / worse) ** 2 > CLEARLY_WORSE * leader) if worse > 0.0 else False


def chosen_of(table: HostArray, ignoring: HostArray, rule: str, folds: int) -> tuple[int, int]:
    """The positions of the kernel and of λ; the first λ if nothing is better than ignoring the features."""
    means = table.mean(axis=2)
    k, i = (int(place) for place in np.unravel_index(np.argmin(means), means.shape))
    if not surely_worse(ignoring, table[k, i], folds, TOLERATED_ERRORS if rule == "best" else 1.0):
        return k, 0
    if rule == "best":
        return k, i
    near = (j for j in range(i) if means[k, j] <= CLEARLY_WORSE * means[k, i])
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
