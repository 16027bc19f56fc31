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
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from infinitask._base.arrays import HostArray, one_blas_thread
from infinitask._base.budget import Budget, OutOfTimeError, current_budget, within
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
from infinitask.tuning._default_model import default_candidate
from infinitask.tuning._defaults import (
    FEW_ROWS,
    FINALISTS,
    KERNELS,
    MAX_ROWS,
    RANKS,
    ROWS_PER_KERNEL,
    SLIGHTLY_WORSE,
)
from infinitask.tuning._rules import chosen_of, is_hopeless, is_worse, walk

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
    contest.progress.expect(_costs(counted.size, int(contest.rows.X.shape[1]), contest.criterion is None))
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
    """Return the choice based on all rows of a contest; the default if the comparison ends before any result."""
    automatic, progress = isinstance(kernels, str), contest.progress
    try:
        progress.begin("ranking", f"ranking kernels on {contest.targets.size} rows")
        with within(progress.comparing()):
            entrants = _entrants(contest, kernels)
            if automatic:
                default = default_candidate(contest)
                entrants = [default, *entrants]
                contest = contest if contest.listed else contest.with_own(default.ridge)
        table, last, entrants = _raced(contest, entrants, heats=automatic and not contest.listed)
        if not np.any(np.isfinite(table)):
            raise OutOfTimeError
        bound = float(np.min(table[0].mean(axis=1))) if automatic else np.inf
        k, i = chosen_of(table, last.ignoring, rule, last.folds_at_once, bound)
        rate, ignoring = 1.0 if i in (0, contest.own) else _rate(last, contest), last.ignoring
    except (KeyboardInterrupt, OutOfTimeError) as stop:
        progress.nothing_compared(stop, keeps_best=contest.keeps_best)
        contest, entrants, i = _only_default(contest, kernels)
        table = np.full((1, contest.lambdas.size, len(contest.folds)), np.inf)
        k, rate, ignoring = 0, 1.0, contest.ignoring
    try:
        return _selected(contest, entrants, table, ignoring, (k, i), rate)
    except KeyboardInterrupt as stop:
        progress.stopped(stop, keeps_best=contest.keeps_best)
    return _selected(contest, entrants, table, ignoring, (k, i), rate)  # a comparison that has ended is not lost


def _selected(
    contest: Contest,
    entrants: list[Candidate],
    table: HostArray,
    ignoring: HostArray,
    best: tuple[int, int],
    rate: float,
) -> Selection:
    """Return the choice at a position of the table; its λ is multiplied by a rate."""
    (k, i), unit = best, contest.units.spread
    results = {
        "kernels": [entrant.name for entrant in entrants],
        "alphas": contest.lambdas / unit,
        "losses": table * unit,
        "ignoring_x": ignoring * unit,
        "best": best,
    }
    alpha, kind = float(contest.lambdas[i] * rate / unit), entrants[k].kind
    contest.progress.begin("kernel", f"chosen: {entrants[k].name}, λ = {alpha:.2g}")
    return Selection(kind.on(np.arange(contest.counted.size)), kind, alpha, results, contest)


def _only_default(contest: Contest, kernels: Any) -> tuple[Contest, list[Candidate], int]:
    """The default, or the first kernel given by the user, without a comparison: the position of its λ is returned."""
    given = given_kernels(kernels, contest.rows.X[contest.counted], NO_MATRIX)
    name, kernel = (None, None) if given is None else next(iter(given.items()))
    default = default_candidate(contest, kernel)
    default = default if name is None else replace(default, name=name)
    if contest.listed:
        return contest, [default], int(contest.grid[contest.nearest(default.ridge)])
    contest = contest if contest.own is not None else contest.with_own(default.ridge)
    return contest, [default], int(contest.own or 0)


def _refined(contest: Contest, choice: Selection, used: HostArray, seed: int) -> Selection:
    """Refine on all rows a kernel and λ that were chosen on some of them, at the positions ``used``.

    λ is scaled to the number of rows, then chosen by the loss on a fifth of them. The number of features grows until
    this loss no longer decreases. Held-out rows were not used for the kernel if there are enough others.
    """
    n, unit, rate = contest.targets.size, contest.units.spread, _rate(choice.contest, contest)
    contest, choice, begin = _with_ridges_of(contest, choice, rate)
    lambdas = contest.lambdas
    order = np.random.default_rng(seed).permutation(n)
    order = np.concatenate([order[~np.isin(order, used)], order[np.isin(order, used)]])
    fifth = n // 5
    contest = replace(contest, folds=[(np.sort(order[fifth:]), np.sort(order[:fifth]))], folds_at_once=1)
    best, lowest, columns = choice._replace(kind=Kind.fixed(choice.kernel)), np.inf, list[HostArray]()
    best = best._replace(alpha=float(lambdas[begin] / unit), contest=replace(contest, landmarks=RANKS[1]))
    try:
        for rank in RANKS:
            with_landmarks = replace(contest, landmarks=rank)
            contest.progress.begin(stage_of(rank), f"refining λ on {n} rows with {rank} features")
            with within(contest.progress.comparing()) as budget:
                if not contest.progress.worthwhile(stage_of(rank)):
                    raise OutOfTimeError
                column = path_of(with_landmarks, best.kind, begin)[:, 0] * unit
                if not np.any(np.isfinite(column)):
                    budget.check()
            columns.append(column)
            i = int(np.argmin(column))
            alpha = float(lambdas[i] / unit)
            enough = column[i] > lowest / SLIGHTLY_WORSE
            # the first number only tells whether more landmarks help
            if column[i] < lowest and (not enough or rank == RANKS[1]):
                lowest, begin, best = column[i], i, best._replace(alpha=alpha, contest=with_landmarks)
            contest.progress.say(f"{n} rows, {rank} features: loss {column[i]:.4g} at λ = {alpha:.2g}")
            if enough:
                break
            following = RANKS[RANKS.index(rank) + 1 :][:1]
            if following and rank != RANKS[0]:  # usually it is not tried
                contest.progress.expect_next(stage_of(following[0]), _rank_cost(following[0]) / _rank_cost(rank))
    except (KeyboardInterrupt, OutOfTimeError) as stop:
        contest.progress.stopped(stop, keeps_best=contest.keeps_best)
    found = {"refined": np.reshape(columns, (-1, lambdas.size)), "best": (choice.results["best"][0], begin)}
    return best._replace(results=choice.results | found)


def _with_ridges_of(contest: Contest, choice: Selection, rate: float) -> tuple[Contest, Selection, int]:
    """Return a contest of more rows with the λ of a choice, the choice in their order, and the λ to begin with.

    The λ of the default is that of the larger number of rows; only the default uses it.
    """
    fewer, (k, i), own = choice.contest, choice.results["best"], choice.contest.own
    lambdas = fewer.lambdas.copy()
    if own is not None:
        lambdas[own] *= rate
    order = np.argsort(-lambdas, kind="stable")
    position = None if own is None else int(np.flatnonzero(order == own)[0])
    used = own is not None and i == own
    contest = replace(contest, lambdas=lambdas[order], own=None if used else position)
    begin = position if used else int(contest.grid[contest.nearest(choice.alpha * contest.units.spread * rate)])
    assert begin is not None
    alphas, losses = contest.lambdas / contest.units.spread, choice.results["losses"][:, order]
    results = choice.results | {"alphas": alphas, "losses": losses, "best": (k, begin)}
    return contest, choice._replace(results=results), begin


def _entrants(contest: Contest, kernels: Any) -> list[Candidate]:
    """Return the kernels that compete: all given ones, or the first ranked ones and sums of them."""
    recipe, X, y, *_ = contest.rows
    counted, stationary = contest.counted, only_stationary(recipe)
    given = given_kernels(kernels, X[counted], NO_MATRIX)
    assert y is not None
    learner = Learner(contest.recipe, contest.targets[counted])
    ranking = ranked(
        X[counted], y[counted], given, learner=learner, stationary_only=stationary, done=contest.progress.ranked
    )
    if given is not None:
        return ranking
    few = max(1, counted.size // ROWS_PER_KERNEL)
    return contenders(ranking, min(KERNELS, few), 0 if stationary or few < 2 else KERNELS)


# ------------------------------------------------------------------------------------------------------- the race
def stage_of(rank: int) -> str:
    """The name of the stage that tries a number of landmarks."""
    return f"{rank} features"


def _rank_cost(rank: int) -> float:
    """The time of a path with a number of landmarks, relative to that with the usual number."""
    return float((rank / RANKS[1]) ** 1.4)


def _costs(n: int, d: int, classes: bool) -> dict[str, float]:
    """The expected seconds of the stages with n rows, d features and one thread, which matter only relative to each
    other.

    Classes take longer than quantiles: more rows are at the kink of their losses, and their log-odds are calibrated. A
    metric of many features takes longer to learn.
    """
    few, rows, slower = min(n, MAX_ROWS), n / 5_000.0, 2.0 if classes else 1.0
    heat, finals = (0.8, 1e-6 * few**2) if few >= FEW_ROWS else (0.0, 0.9)
    costs = {"ranking": 0.2 + 1.4e-3 * few, "heat": slower**2 * heat, "finals": slower * finals}
    costs["kernel"] = 0.2e-3 * few * max(1.0, d / 30.0)
    if n > MAX_ROWS:
        costs |= {stage_of(rank): slower * rows * _rank_cost(rank) for rank in RANKS[:2]}
    fit = slower * (0.5 * rows if n > MAX_ROWS else 0.1e-3 * n)
    return costs | {"fit": fit, "calibration": slower * fit if classes else 0.5 * max(1.0, rows)}


def _raced(contest: Contest, entrants: list[Candidate], *, heats: bool) -> tuple[HostArray, Contest, list[Candidate]]:
    """Race ranked kernels along descending λ; paths start at the λ of the ranking.

    A path over λ listed by the user starts where it ignores the features, which contains no information on a kernel,
    and does not end if neighbours are equal. With ``heats`` and enough rows, all kernels race on some of them first.

    Returns
    -------
    losses : ndarray (kernels, λ, folds)
        inf for fits that were not computed.
    contest : Contest
        The contest of these losses: an interrupted race may have ended in its heat.
    entrants : list of Candidate
        Their kernels, which a heat creates once.
    """
    assert contest.rows.y is not None
    counted, lambdas, grid = contest.counted, contest.lambdas, contest.grid
    begins = [0 if contest.listed else int(grid[contest.nearest(entrant.ridge)]) for entrant in entrants]
    if contest.own is not None:
        begins[0] = contest.own
    rows, others = ranking_rows(contest.rows.y[counted])
    heat = contest.on(counted[rows])
    worth_it = counted.size >= FEW_ROWS and len(entrants) > FINALISTS and len(heat.folds) == len(contest.folds)
    if not (heats and worth_it):
        contest.progress.begin("finals", f"{len(entrants)} kernels with all rows")
        return _walked(contest, entrants, begins)[0], contest, entrants
    heat = contest.for_fewer(heat, _rate(heat, contest))
    # kernels that learn from targets are created from the other rows, as for the ranking
    known = [replace(entrant, kind=Kind.fixed(entrant.kind.on(others))) for entrant in entrants]
    contest.progress.begin("heat", f"{len(entrants)} kernels on {rows.size} rows")
    first, ended = _walked(heat, known, begins)
    if not ended:
        return first, heat, _used(contest, entrants, known)
    means = first.mean(axis=2)
    finalists = _finalists(first, heat.folds_at_once)
    begins = [
        begin if entrant.own else int(grid[contest.nearest(_rate(heat, contest) * lambdas[i])])
        for entrant, begin, i in zip(entrants, begins, np.argmin(means, axis=1), strict=True)
    ]
    contest.progress.expect({"finals": len(finalists) / 2 * contest.progress.forecast.costs.get("finals", 0.0)})
    contest.progress.begin("finals", f"the best {len(finalists)} with all rows")
    last, _ = _walked(contest, entrants, begins, finalists)
    if np.any(np.isfinite(last)):
        return last, contest, entrants
    return first, heat, _used(contest, entrants, known)


def _finalists(table: HostArray, folds: int) -> list[int]:
    """The positions of the best kernels of a heat, the best one first, without those that the folds agree are worse."""
    means = table.mean(axis=2)
    bests = [table[k, i] for k, i in enumerate(np.argmin(means, axis=1))]
    order = np.argsort(np.min(means, axis=1), kind="stable").tolist()
    return [k for k in order[:FINALISTS] if not is_worse(bests[k], bests[order[0]], folds)]


def _used(contest: Contest, entrants: list[Candidate], known: list[Candidate]) -> list[Candidate]:
    """Return the kernels of an interrupted race: those of its heat if there is no time to learn them from all rows."""
    return known if contest.progress.comparing().over else entrants


def _rate(fewer: Contest, contest: Contest) -> float:
    """The factor from λ for fewer rows to λ for all."""
    return float((fewer.counted.size / contest.counted.size) ** RIDGE_RATE)


def _walked(
    contest: Contest, entrants: list[Candidate], begins: list[int], finalists: list[int] | None = None
) -> tuple[HostArray, bool]:
    """Return losses of all kernels, or of the finalists, (kernels, λ, folds), and whether all of them were tried.

    The comparison ends early if there is no time left, or after an interrupt if the best so far is kept.
    """
    table = np.full((len(entrants), contest.lambdas.size, len(contest.folds)), np.inf)
    some, progress = list(range(len(entrants))) if finalists is None else finalists, contest.progress

    def leader() -> float:
        return np.inf if contest.listed else float(np.min(table.mean(axis=2)))

    if contest.n_jobs not in (None, 1):
        budget = progress.comparing()
        paths = (delayed(_path_within)(budget, contest, entrants[k].kind, begins[k]) for k in some)
        for k, column in zip(some, Parallel(n_jobs=contest.n_jobs)(paths), strict=True):
            part, begin = column[contest.grid], int(np.searchsorted(contest.grid, begins[k]))
            if not entrants[k].own and begin + 1 < len(part) and is_hopeless(part, begin, leader()):
                part[begin + 2 :], part[:begin] = np.inf, np.inf  # as in a single process
                column[contest.grid] = part
            table[k] = column
        return table, not budget.over
    for tried, k in enumerate(some, 1):
        try:
            progress.trying(tried, len(some), entrants[k].name)  # a listener may interrupt here
            with within(progress.comparing()) as budget:
                budget.check()
                visited = partial(progress.visited, tried, len(some))
                table[k] = path_of(contest, entrants[k].kind, begins[k], leader(), visited)
        except (KeyboardInterrupt, OutOfTimeError) as stop:
            progress.stopped(stop, keeps_best=contest.keeps_best)
            return table, False
        loss, best = (contest.units.spread * float(np.min(part.mean(axis=-1))) for part in (table[k], table))
        progress.tried(tried, len(some), entrants[k].name, loss, best)
    return table, True


def _path_within(budget: Budget, *arguments: Any) -> HostArray:
    """Return the losses of a kernel in another process."""
    with within(budget):
        return path_of(*arguments)


def path_of(
    contest: Contest,
    kind: Kind,
    begin: int,
    leader: float = np.inf,
    visited: Callable[[int], None] = lambda count: None,
) -> HostArray:
    """Return the losses of a kernel, (k, folds), for the λ visited by :func:`walk`; the default has one λ.

    ``visited`` is called with the number of λ so far.
    """
    lambdas, fits, grid = contest.lambdas, QuickFits(contest, kind), contest.grid
    column, number = np.full((lambdas.size, len(contest.folds)), np.inf), count(1)

    def losses(i: int) -> list[float]:
        found = contest.losses(fits.values(float(lambdas[i])))
        visited(next(number))
        # fits that time cuts off are not those of this λ
        return [np.inf] * len(found) if current_budget().over else found

    if begin == contest.own:
        column[begin] = losses(begin)
    else:
        start, how = int(np.searchsorted(grid, begin)), {"flat_ends": not contest.listed}
        column[grid] = walk(lambda i: losses(int(grid[i])), grid.size, start, contest.ignoring, leader, **how)
    return column
