"""The choice of a kernel and λ by their losses on held-out rows.

Candidates are ranked (:mod:`~infinitask.tuning._candidates`), the first ones and sums of them are fitted
(:mod:`~infinitask.tuning._runner`), and rules say what is worth a look and what is taken
(:mod:`~infinitask.tuning._rules`). Of many rows some choose the kernel; λ and the rank are then refined with all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from infinitask._base.arrays import HostArray, one_blas_thread
from infinitask._base.events import Chosen, CutShort
from infinitask._base.validation import positive_numbers
from infinitask.calibration._folds import Splits
from infinitask.calibration._log_odds import held_out_log_losses
from infinitask.estimators._base import Prepared
from infinitask.features import RandomFourier, feature_recipe
from infinitask.fitting._data import Data
from infinitask.fitting._defaults import RIDGE_RATE
from infinitask.fitting._metric_learning import learnt_metrics, with_learnt_kernels
from infinitask.fitting._recipe import Recipe
from infinitask.kernels import InputKernel, Laplacian, LearntMetric, Matern, input_kernel
from infinitask.losses import Loss
from infinitask.measures import Measure
from infinitask.tuning._candidates import Candidate, Kind, contenders, given_kernels, in_spreads, ranked
from infinitask.tuning._defaults import (
    FEW_ROWS,
    KERNELS,
    LAMBDAS,
    MAX_FEATURES,
    MAX_HELD_OUT,
    MAX_ROWS,
    RANKS,
    ROWS_PER_KERNEL,
    SLIGHTLY_WORSE,
)
from infinitask.tuning._progress import Progress
from infinitask.tuning._race import Race, nearest, raced, walked
from infinitask.tuning._rules import chosen_of
from infinitask.tuning._runner import Runner

NO_MATRIX = "kernels that compete are computed from X. Tune a known Gram matrix with GridSearchCV over alpha instead."
"""Why 'precomputed' is refused."""


@dataclass(frozen=True, eq=False)
class Selection:
    """The kernel and λ that were chosen, and what they were chosen from.

    Parameters
    ----------
    kernel : InputKernel
    alpha : float
        λ, in the units of the targets as they were given.
    results : dict
        The table, see ``cv_results_`` of the self-tuned models.
    landmarks : int or None
        How many of them are enough for many rows; None: features are exact.
    """

    kernel: InputKernel
    alpha: float
    results: dict[str, Any]
    landmarks: int | None = None

    @property
    def ignores_inputs(self) -> bool:
        """Whether a λ was taken that nearly ignores the features."""
        return bool(self.results["best"][1] == 0)


@dataclass(frozen=True, eq=False)
class Contest:
    """A comparison of kernels and λ, in units in which the targets are of size one.

    Parameters
    ----------
    rows : Prepared
        The final fit, as it would be for any kernel and λ; compared are quick fits with fewer nodes and a larger gap.
    targets : ndarray (n,)
        In the units of the contest.
    unit : float
        The size of the targets before: losses and 1/λ are measured in it.
    levels : ndarray (q,)
        Tasks at which models are compared.
    loss, criterion : Loss
        What a quick fit minimises, and by what it is compared.
    as_odds : bool
        Whether h is compared by the log loss of classes instead.
    ordered : bool
        Whether h is sorted along the levels before it is compared, as predictions are.
    folds : list of (train, test)
        Repeated folds one after the other.
    folds_at_once : int
        How many of them make up one cross-validation.
    constant : callable
        Targets and weights of some rows, and levels → what is best without features, (q,).
    progress : Progress
    rank : int
        The most features of a fit.
    landmarks : bool
        Whether features come from landmarks sampled at random, fewer than there are rows.
    device : str or None
        Where the data live.
    keeps_best : bool
        Whether an interrupt ends the comparison with the best so far.
    """

    rows: Prepared
    targets: HostArray
    levels: HostArray
    loss: Loss
    criterion: Loss
    folds: Splits
    folds_at_once: int
    constant: Callable[[HostArray, HostArray, HostArray], HostArray]
    progress: Progress
    unit: float = 1.0
    as_odds: bool = False
    ordered: bool = False
    rank: int = MAX_FEATURES
    landmarks: bool = False
    device: str | None = None
    keeps_best: bool = False

    def on(self, rows: HostArray) -> Contest:
        """The same contest with some of the rows (positions that ascend)."""
        place = np.full(self.targets.size, -1)
        place[rows] = np.arange(rows.size)

        def kept(positions: HostArray) -> HostArray:
            found = place[positions]
            return np.asarray(found[found >= 0])

        prepared = self.rows
        assert prepared.y is not None
        some = prepared._replace(X=prepared.X[rows], y=prepared.y[rows], weight=prepared.weight[rows])
        # of many small folds some may have no row here
        pairs = ((kept(train), kept(test)) for train, test in self.folds)
        folds = [(train, test) for train, test in pairs if train.size and test.size]
        once = min(self.folds_at_once, len(folds))
        return replace(self, rows=some, targets=self.targets[rows], folds=folds, folds_at_once=once)

    def ignoring(self) -> HostArray:
        """The losses of what ignores the features, (folds,)."""
        weight, found = self.rows.weight, []
        for train, test in self.folds:
            train = train[weight[train] > 0.0]
            constant = self.constant(self.targets[train], weight[train], self.levels)
            found.append(np.broadcast_to(constant, (test.size, constant.size)))
        return np.array(self.losses(found))

    def losses(self, h: list[HostArray]) -> list[float]:
        """The loss of each fold, from h at its held-out rows, (n_test, q) each."""
        tests = [test for _, test in self.folds]
        if self.as_odds:
            # decisions are calibrated after the fit, for any cost: what counts is how well h tells rows apart
            weight = [self.rows.weight[test] for test in tests]
            return held_out_log_losses(h, [self.targets[test] > 0.0 for test in tests], weight)
        return [self._loss(test, values) for test, values in zip(tests, h, strict=True)]

    def choose(self, kernels: Any, alphas: Any, rule: str, n_jobs: int | None) -> tuple[Selection, Runner]:
        """Let kernels and λ compete; the choice, and the fits of the kernel that won.

        Parameters
        ----------
        kernels : "auto" or sequence of kernels
        alphas : array (k,) or None
            λ in the units of the targets as they were given; None: as many of a list as are needed.
        rule : {"one-se", "best"}
            "one-se": a λ that ignores the features unless the best is better by a standard error, else the largest that
            is about as good as the best. "best": the one with the smallest loss, unless that is better than ignoring
            the features by less than half of one.
        n_jobs : int or None
            Kernels that are compared in parallel processes; the choice does not depend on it.
        """
        lambdas = LAMBDAS
        if alphas is not None:
            lambdas = np.sort(positive_numbers("alphas", alphas))[::-1] * self.unit
            if lambdas[0] < LAMBDAS[0]:  # there must be one that ignores the features
                lambdas = np.concatenate([LAMBDAS[:1], lambdas])
        with one_blas_thread():
            self.progress.say(f"ranking kernels on {self.targets.size} rows")
            entrants = self._entrants(kernels)
            if alphas is None and given_kernels(kernels, NO_MATRIX) is None:
                race = raced(self, entrants, lambdas, n_jobs)
            else:
                begins = [0 if alphas is not None else nearest(lambdas, entrant.ridge) for entrant in entrants]
                every = list(range(len(entrants)))
                table, _ = walked(self, entrants, lambdas, begins, every, n_jobs, given=alphas is not None)
                race = Race(table, self)
        table, ignoring = race.losses, race.contest.ignoring()
        k, i = chosen_of(table, ignoring, rule, race.contest.folds_at_once)
        results = {
            "kernels": [entrant.name for entrant in entrants],
            "alphas": lambdas / self.unit,
            "losses": table * self.unit,
            "ignoring_x": ignoring * self.unit,
            "best": (k, i),
        }
        alpha = float(lambdas[i] * (race.rate if i > 0 else 1.0) / self.unit)
        self.progress.say(f"chosen: {entrants[k].name}, λ = {alpha:.2g}", Chosen)
        runner = Runner(self, entrants[k], lambdas)
        return Selection(runner.kernel, alpha, results), runner

    def refined(self, choice: Selection, used: HostArray, seed: int) -> tuple[Selection, Runner]:
        """The choice for all rows, from a kernel and λ that were chosen with fewer of them.

        λ follows the rows, and then the loss of rows held out; the number of features grows until that loss stops
        falling.

        Parameters
        ----------
        choice : Selection
        used : ndarray
            Positions of the rows by which it was made. Rows that are held out had no part in the kernel, as far as
            there are enough others.
        seed : int
            For the rows that are held out.
        """
        n, fewer = self.targets.size, used.size
        order = np.random.default_rng(seed).permutation(n)
        order = np.concatenate([order[~np.isin(order, used)], order[np.isin(order, used)]])
        count = int(min(0.2 * n, MAX_HELD_OUT))
        hold_out = replace(self, folds=[(np.sort(order[count:]), np.sort(order[:count]))], folds_at_once=1)
        lambdas = choice.results["alphas"] * self.unit
        begin = nearest(lambdas, choice.alpha * self.unit * (fewer / n) ** RIDGE_RATE)
        ignoring, best, columns = hold_out.ignoring(), None, []
        entrant = Candidate("", Kind.fixed(choice.kernel), float("nan"), float("nan"))
        with one_blas_thread():
            for rank in RANKS:
                runner = Runner(replace(hold_out, rank=rank, landmarks=True), entrant, lambdas)
                try:
                    column = runner.walked(begin, ignoring)
                except KeyboardInterrupt:
                    if not self.keeps_best or best is None:
                        raise
                    self.progress.say("interrupted: the best so far is taken", CutShort)
                    break
                runner.forget()  # the features of many rows are large
                i = int(np.argmin(column[:, 0]))
                columns.append(column[:, 0] * self.unit)
                loss, alpha = column[i, 0] * self.unit, lambdas[i] / self.unit
                self.progress.say(f"{n} rows, {rank} features: loss {loss:.4g} at λ = {alpha:.2g}")
                if best is not None and column[i, 0] > best[2] / SLIGHTLY_WORSE:
                    break
                best, begin = (runner, i, float(column[i, 0])), i
        assert best is not None
        runner, i, _ = best
        results = choice.results | {"refined": np.array(columns), "best": (choice.results["best"][0], i)}
        return Selection(choice.kernel, float(lambdas[i] / self.unit), results, runner.contest.rank), runner

    def _entrants(self, kernels: Any) -> list[Candidate]:
        """The kernels that compete: all given ones, or the first of the ranking and sums of them."""
        recipe, X, y, weight, *_ = self.rows
        stationary = isinstance(feature_recipe(recipe.features, recipe.rank), RandomFourier)
        counted = np.flatnonzero(weight > 0.0)
        given = given_kernels(kernels, NO_MATRIX)
        if given is not None:
            given = {name: in_spreads(kernel, X[counted]) for name, kernel in given.items()}
        assert y is not None
        ranking = ranked(
            X[counted], y[counted], given, learn=self._learnt, fitted=self._given_on, stationary_only=stationary
        )
        if given is not None:
            return ranking
        few = max(1, counted.size // ROWS_PER_KERNEL)
        summed = 0 if stationary or few < 2 else KERNELS
        return contenders(ranking, min(KERNELS, few), summed)

    def _given_on(self, kernel: InputKernel, rows: HostArray) -> InputKernel:
        """A given kernel that learns from targets, as some rows have it."""
        recipe, data = self._to_learn(self.rows.X[self.rows.weight > 0.0], rows, MAX_ROWS)
        return input_kernel(with_learnt_kernels(replace(recipe, kernel=kernel), data).kernel)

    def _learnt(self, Z: HostArray, rows: HostArray, whole: bool) -> HostArray:
        """A metric from some rows of the features Z: R (d,) or (d, p)."""
        # all rows: for the final fit
        recipe, data = self._to_learn(Z, rows, MAX_ROWS if rows.size == len(Z) else FEW_ROWS)
        spec = LearntMetric(Matern(nu=1.5) if whole else Laplacian(), diagonal=not whole, iterations=2)
        # with a λ that is given, no width is chosen: each candidate has its own
        *_, kernel = learnt_metrics(replace(recipe, alpha=1.0), data, spec)
        return np.asarray(kernel.root if whole else kernel.scales)

    def _to_learn(self, X: HostArray, rows: HostArray, most: int) -> tuple[Recipe, Data]:
        """The recipe by which a kernel is learnt, and at most ``most`` of some rows of X, the rows that count."""
        some = rows[np.linspace(0, rows.size - 1, min(rows.size, most)).astype(int)]
        targets = self.targets[self.rows.weight > 0.0]
        recipe = self.rows.recipe.with_task(loss=self.loss)
        recipe = replace(recipe, device=None, features="auto", rank=None)
        return recipe, Data(X[some], targets[some], np.full(some.size, 1.0 / some.size))

    def _loss(self, rows: HostArray, h: HostArray) -> float:
        """The weighted mean loss of h (k, q) at the levels for some rows."""
        weight = self.rows.weight[rows]
        h = np.sort(h, axis=1) if self.ordered else h
        losses = np.mean(self.criterion.value(self.levels, self.targets[rows][:, None], h), axis=1)
        total = float(np.sum(weight))
        return float(weight @ losses) / total if total > 0.0 else 0.0


def chosen(
    contest: Contest, kernels: Any, alphas: Any, rule: str, n_jobs: int | None, seed: int, device: str | None
) -> tuple[Selection, Runner]:
    """The kernel and λ for a contest of any size, and the fits of that kernel; parameters as there."""
    counted = np.flatnonzero(contest.rows.weight > 0.0)
    if counted.size <= MAX_ROWS:
        return contest.choose(kernels, alphas, rule, n_jobs)
    some = np.sort(np.random.default_rng(seed).choice(counted, MAX_ROWS, replace=False))
    fewer = contest.on(some)
    if not fewer.folds:
        raise ValueError(
            f"cv was given; of the {MAX_ROWS} rows by which kernels are compared none is left out by its folds. Give "
            "folds that leave out more rows."
        )
    choice, runner = fewer.choose(kernels, alphas, rule, n_jobs)
    if choice.ignores_inputs:
        return choice, runner
    place = np.searchsorted(counted, some)
    return replace(contest, device=device).on(counted).refined(choice, place, seed)


def comparison_levels(measure: Measure) -> HostArray:
    """Tasks at which models are compared: the atoms of μ, or its deciles."""
    if measure.dim != 1:
        raise ValueError(f"measure={measure!r} was given; a self-tuned model has tasks on the line.")
    atoms = measure.atoms()
    nodes = measure.ppf(np.arange(1, 10)[:, None] / 10.0) if atoms is None else atoms.nodes
    return np.asarray(nodes[:, 0])
