"""The choice of a kernel and λ by their losses on rows left out.

The losses form a table: kernels × λ × folds. Not all of it is worth computing. A path begins near the λ that was best
in the ranking of the kernels, goes on towards smaller λ until two in a row are not worth it, and towards larger λ while
that helps. Where folds are repeated, only kernels and λ that may still win go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from infinitask._array import HostArray, one_blas_thread
from infinitask._validation import naming, positive_numbers
from infinitask.estimators.base import Prepared
from infinitask.features import RandomFourier, feature_recipe
from infinitask.kernels import Gaussian, InputKernel, input_kernel
from infinitask.losses import Loss
from infinitask.measures import Measure
from infinitask.problem import Data
from infinitask.tuning._candidates import Candidate, contenders, ranked
from infinitask.tuning._left_out import Fold, Splits, shared_folds
from infinitask.units import Units

LAMBDAS: HostArray = np.logspace(1.5, -7.0, 18)
"""λ for targets whose typical distance from their centre is 1; the first one all but ignores the inputs."""

SINGLE_KERNELS, SUMMED_KERNELS = 5, 5
"""Kernels of the ranking that compete by themselves, and in sums."""

ROWS_PER_KERNEL = 10
"""At least this many rows for every kernel that competes: with a handful of rows chance would decide between them, and
five rows took 11 s."""

LARGER_THAN_RANKED = 3.0
"""A path begins at the λ that was best in the ranking times this."""

QUICK_GAP, QUICK_EVALUATIONS, QUICK_NODES = 2e-2, 100, 9
"""The duality gap of a fit that is only compared, the most evaluations it may take, and its nodes."""

TOLERATED_ERRORS = 0.5
"""Standard errors of the difference by which a larger λ may be worse than the best. On the first splits of the twenty
sets of the paper's Table 1 a whole one loses half a percent; to ignore the inputs, a whole one is asked for."""

SLIGHTLY_WORSE, CLEARLY_WORSE = 1.01, 1.03
"""Factors on the loss of the best λ. A smaller λ is not worth it in two cases: the folds agree that it is worse and it
is more than slightly worse; or it is clearly worse and the best λ is known to beat ignoring the inputs. The first case
asks for a difference, because on the flat part of a path all folds may agree on one that means nothing. The second does
without the folds' agreement, because the smallest λ all but interpolate, and few rows never tell them apart."""


@dataclass(frozen=True, eq=False)
class Choice:
    """The kernel and λ that were chosen, and what they were chosen from.

    Parameters
    ----------
    kernel : InputKernel
    alpha : float
        λ, in the units of the targets as they were given.
    results : dict
        The table, see ``cv_results_`` of the self-tuned models.
    """

    kernel: InputKernel
    alpha: float
    results: dict[str, Any]

    @property
    def ignores_inputs(self) -> bool:
        """Whether a λ was taken that all but ignores the inputs."""
        return bool(self.results["best"][1] == 0)


@dataclass(frozen=True, eq=False)
class Contest:
    """A comparison of kernels and λ, in units in which the targets are of size one.

    Parameters
    ----------
    rows : Prepared
        The last fit, as it would be for any kernel and λ; compared are quick fits with fewer nodes and a larger gap.
    targets : ndarray (n,)
        In the units of the contest.
    unit : float
        The size of the targets before: losses and 1/λ are measured in it.
    levels : ndarray (q,)
        Tasks at which models are compared.
    loss, judge : Loss
        What a quick fit minimises, and what it is judged by.
    bias_gamma, bias_ridge : float
        Kernel and ridge of the bias of a quick fit: hardly any ridge, so that large λ ignores the inputs, not the data.
    repeats : list of list of (train, test)
        The folds, once and again.
    constants : list of ndarray (q,)
        What is best without inputs, for the training rows of every fold of every repeat.
    """

    rows: Prepared
    targets: HostArray
    unit: float
    levels: HostArray
    loss: Loss
    judge: Loss
    bias_gamma: float
    bias_ridge: float
    repeats: list[Splits]
    constants: list[HostArray]

    def choose(self, kernels: Any, alphas: Any, rule: str, n_jobs: int | None) -> Choice:
        """Let kernels and λ compete.

        Parameters
        ----------
        kernels : "auto" or sequence of kernels
        alphas : array (k,) or None
            λ in the units of the targets as they were given; None: as many as needed of a list.
        rule : {"one-se", "best"}
            "one-se": a λ that ignores the inputs unless the best is better by a standard error, else the largest that
            is about as good as the best. "best": the one with the smallest loss.
        n_jobs : int or None
            Kernels that are compared side by side, in processes; the choice does not depend on it.
        """
        lambdas = LAMBDAS
        if alphas is not None:
            lambdas = np.sort(positive_numbers("alphas", alphas))[::-1] * self.unit
            if lambdas[0] < LAMBDAS[0]:  # there must be one that ignores the inputs
                lambdas = np.concatenate([LAMBDAS[:1], lambdas])
        entrants = self._entrants(kernels)
        begins = [0 if alphas is not None else _nearest(lambdas, LARGER_THAN_RANKED * e.ridge) for e in entrants]
        folds = [fold for splits in self.repeats for fold in splits]
        ignoring = np.array(
            [
                self._loss(test, np.broadcast_to(constant, (test.size, constant.size)))
                for (_, test), constant in zip(folds, self.constants, strict=True)
            ]
        )
        with one_blas_thread(), Parallel(n_jobs=n_jobs) as parallel:
            table = self._table(entrants, begins, lambdas, ignoring, parallel)
        k, i = _chosen(table, ignoring, rule, len(self.repeats[0]))
        results = {
            "kernels": [entrant.name for entrant in entrants],
            "alphas": lambdas / self.unit,
            "losses": table * self.unit,
            "ignoring_x": ignoring * self.unit,
            "best": (k, i),
        }
        return Choice(entrants[k].kind.kernel, float(lambdas[i] / self.unit), results)

    def _entrants(self, kernels: Any) -> list[Candidate]:
        """The kernels that compete: all given ones, or the first of the ranking and sums of them."""
        recipe, X, y, weight, _ = self.rows
        stationary = isinstance(feature_recipe(recipe.features, recipe.rank), RandomFourier)
        counted = np.flatnonzero(weight > 0.0)
        ranking = ranked(X[counted], y[counted], _given(kernels), stationary_only=stationary)  # type: ignore[index]
        if not isinstance(kernels, str):
            return ranking
        few = max(1, counted.size // ROWS_PER_KERNEL)
        summed = 0 if stationary or few < 2 else SUMMED_KERNELS
        return contenders(ranking, min(SINGLE_KERNELS, few), summed)

    def _table(
        self,
        entrants: list[Candidate],
        begins: list[int],
        lambdas: HostArray,
        ignoring: HostArray,
        parallel: Parallel,
    ) -> HostArray:
        """The losses, (kernels, k, folds), as far as they are worth computing; inf beyond."""
        sizes = [len(splits) for splits in self.repeats]
        first = np.cumsum([0, *sizes])
        table = np.full((len(entrants), lambdas.size, int(first[-1])), np.inf)
        for turn in range(len(self.repeats)):
            seen, known = table[:, :, : first[turn]], ignoring[: first[max(turn, 1)]]
            jobs = {}
            for k, entrant in enumerate(entrants):
                if turn == 0:
                    jobs[k] = delayed(_walked)(self, entrant, lambdas, begins[k], known)
                elif open_to := _still_open(seen, k, known, sizes[0]):
                    jobs[k] = delayed(_repeated)(self, entrant, lambdas, turn, open_to)
            for k, column in zip(jobs, parallel(jobs.values()), strict=True):
                table[k, :, first[turn] : first[turn + 1]] = column
        return table

    def _loss(self, rows: HostArray, h: HostArray) -> float:
        """The weighted mean loss of h (k, q) at the levels for some rows."""
        weight = self.rows.weight[rows]
        losses = np.mean(self.judge.value(self.levels, self.targets[rows][:, None], h), axis=1)
        total = float(np.sum(weight))
        return float(weight @ losses) / total if total > 0.0 else 0.0


class _Runner:
    """The quick fits of one kernel on the folds of one repeat."""

    def __init__(self, contest: Contest, entrant: Candidate, lambdas: HostArray, turn: int) -> None:
        self.contest, self.lambdas, self.splits = contest, lambdas, contest.repeats[turn]
        quick = replace(
            contest.rows.recipe,
            loss=contest.loss,
            task_kernel="rbf",
            task_gamma=None,
            noncrossing=0.0,
            hard=False,
            calibrated=False,  # only compared
            quadrature="gauss-legendre",
            n_nodes=QUICK_NODES,
            bias_kernel=Gaussian(gamma=contest.bias_gamma),
            alpha=float(np.max(lambdas)),
            alpha_bias=contest.bias_ridge,
            units=Units(),  # the targets of a contest have theirs
            solver="lbfgs",  # compared and thrown away: a Newton step would be too much of an effort
            tol=QUICK_GAP,
            max_iter=QUICK_EVALUATIONS,
            verbose=0,
            device=None,
        )
        weight = contest.rows.weight
        data = Data(contest.rows.X, contest.targets, weight / np.sum(weight))
        exact = 1e-2 * QUICK_GAP * float(np.min(lambdas))

        def folds(kernel: InputKernel, splits: Splits) -> list[Fold]:
            recipe = replace(quick, kernel=kernel)
            return shared_folds(recipe, data, splits, exact=exact, extrapolates=False)

        self.chains: list[list[Fold]]
        """Folds in which a first fit starts from the fold before it."""
        if entrant.kind.adapt is None:
            self.chains = [folds(entrant.kind.kernel, self.splits)]
        else:
            # a kernel that targets had a part in is made anew without the rows by which it is judged
            position = np.cumsum(weight > 0.0) - 1
            trains = [position[train[weight[train] > 0.0]] for train, _ in self.splits]
            pairs = zip(trains, self.splits, strict=True)
            self.chains = [folds(entrant.kind.on(rows), [split]) for rows, split in pairs]

    def losses(self, i: int) -> list[float]:
        """The losses of λ number i on the rows left out, one for each fold."""
        contest, found, tests = self.contest, [], iter(self.splits)
        for chain in self.chains:
            near = None
            for fold in chain:
                fit = fold.fit(near, alpha=float(self.lambdas[i]))
                near = None if fold.memory.last is None else fold.memory.last.elsewhere()
                found.append(contest._loss(next(tests)[1], fold.values(fit, contest.levels)))
        return found


def _walked(contest: Contest, entrant: Candidate, lambdas: HostArray, begin: int, ignoring: HostArray) -> HostArray:
    """The losses (k, folds) of the first repeat, as far as a walk along λ looks at them."""
    return walk(_Runner(contest, entrant, lambdas, turn=0).losses, lambdas.size, begin, ignoring)


def walk(losses: Callable[[int], list[float]], count: int, begin: int, ignoring: HostArray) -> HostArray:
    """From a first λ to smaller ones until two in a row are not worth it, then to larger ones while that helps.

    Parameters
    ----------
    losses : callable
        The number of a λ, of which there are ``count`` that fall → its losses, one for each fold.
    count, begin : int
    ignoring : ndarray (folds,)
        The losses of what ignores the inputs.

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
        if misses == 2 and i > best:
            break
    for i in range(begin - 1, -1, -1):
        best = int(np.argmin(column.mean(axis=1)))
        if _more_than_slightly_worse(column[i + 1], column[best], len(column[i])):
            break
        column[i] = losses(i)
    return column


def _repeated(
    contest: Contest, entrant: Candidate, lambdas: HostArray, turn: int, positions: Iterable[int]
) -> HostArray:
    """The losses (k, folds) of a later repeat, at some λ."""
    runner = _Runner(contest, entrant, lambdas, turn)
    column = np.full((lambdas.size, len(runner.splits)), np.inf)
    for i in positions:
        column[i] = runner.losses(i)
    return column


def _still_open(seen: HostArray, k: int, ignoring: HostArray, folds: int) -> list[int]:
    """The λ of kernel k that may still win."""
    leader = _best(seen)
    own = int(np.argmin(seen[k].mean(axis=1)))
    return [
        i
        for i in range(seen.shape[1])
        if not surely_worse(seen[k, i], seen[leader], folds)
        and not (i > own and _not_worth_it(seen[k, i], seen[k, own], ignoring, folds))
    ]


def _not_worth_it(losses: HostArray, best: HostArray, ignoring: HostArray, folds: int) -> bool:
    """Whether a smaller λ cannot win against the best one."""
    if np.mean(losses) > CLEARLY_WORSE * np.mean(best) and surely_worse(ignoring, best, folds):
        return True
    return _more_than_slightly_worse(losses, best, folds)


def _more_than_slightly_worse(losses: HostArray, best: HostArray, folds: int) -> bool:
    """Whether the folds agree that a λ is worse than the best one, by a difference that means something."""
    return bool(np.mean(losses) > SLIGHTLY_WORSE * np.mean(best)) and surely_worse(losses, best, folds)


def _chosen(table: HostArray, ignoring: HostArray, rule: str, folds: int) -> tuple[int, int]:
    """The positions of the kernel and of λ; the first λ where nothing beats ignoring the inputs."""
    k, i = _best(table)
    if rule == "one-se":
        if not surely_worse(ignoring, table[k, i], folds):
            return k, 0
        good = (j for j in range(i) if not surely_worse(table[k, j], table[k, i], folds, TOLERATED_ERRORS))
        i = next(good, i)
    return k, i


def _best(table: HostArray) -> tuple[int, int]:
    mean = table.mean(axis=2)
    k, i = np.unravel_index(np.argmin(mean), mean.shape)
    return int(k), int(i)


def surely_worse(losses: HostArray, best: HostArray, folds: int, errors: float = 1.0) -> bool:
    """Whether the mean difference is above this many standard errors.

    Repeats make the mean more exact, but they see the same rows again: the error is that of the folds of one.
    """
    if not np.all(np.isfinite(losses)):
        return True
    difference = losses - best
    error = np.std(difference, ddof=1) / np.sqrt(folds) if difference.size > 1 else 0.0
    return bool(np.mean(difference) > errors * error)


def comparison_levels(measure: Measure) -> HostArray:
    """Tasks at which models are compared: the atoms of μ, or its deciles."""
    if measure.dim != 1:
        raise ValueError(f"measure={measure!r} was given; a self-tuned model has tasks on the line.")
    atoms = measure.atoms()
    nodes = measure.ppf(np.arange(1, 10)[:, None] / 10.0) if atoms is None else atoms.nodes
    return np.asarray(nodes[:, 0])


def _nearest(lambdas: HostArray, value: float) -> int:
    """The position of the λ that is closest on a logarithmic scale."""
    return int(np.argmin(np.abs(np.log(lambdas / value))))


def _given(kernels: Any) -> dict[str, InputKernel] | None:
    """The kernels that a user listed, by their names; None for "auto"."""
    if isinstance(kernels, str) and kernels == "auto":
        return None
    if isinstance(kernels, str) or not isinstance(kernels, Iterable):
        raise ValueError(f"kernels={kernels!r} was given; it must be 'auto' or a list of kernels.")
    with naming("kernels"):
        found = {repr(kernel): input_kernel(kernel) for kernel in kernels}
    if not found:
        raise ValueError("kernels=[] was given; give at least one kernel, or 'auto'.")
    if any(kernel.precomputed for kernel in found.values()):
        raise ValueError(
            "kernels holds 'precomputed'; kernels that compete are computed from X. Tune a known Gram matrix with "
            "GridSearchCV over alpha instead."
        )
    return found
