"""The quick fits of one kernel, which compare it with others, and those whose predictions calibrate the model.

All folds are solved at once, because they share the eigenvectors of the rows: :mod:`~infinitask.solvers._splitting`. A
kernel that targets had a part in is made without the rows by which it is judged.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from infinitask._base.arrays import HostArray, take, to_host
from infinitask.features import Nystroem
from infinitask.fitting._data import Data
from infinitask.fitting._pose import pose
from infinitask.fitting._recipe import Recipe
from infinitask.fitting._units import Units
from infinitask.kernels import InputKernel
from infinitask.problem import Problem
from infinitask.solvers import Splitting, State
from infinitask.tasks import Order
from infinitask.tuning._candidates import Candidate
from infinitask.tuning._left_out import Splits
from infinitask.tuning._rules import walk

if TYPE_CHECKING:
    from infinitask.tuning._choice import Contest

QUICK_GAP, QUICK_ITERATIONS, QUICK_NODES = 1e-2, 200, 9
"""The duality gap of a fit that is only compared, the most iterations it may take, and its nodes."""

SMALL_OBJECTIVE = 0.01
"""Where P is less, gaps are relative to this; targets are of size one. Next to nothing is left to compare there, and
classes that are far apart took four times as many iterations."""

TINY_OBJECTIVE = 1e-6
"""The same for fits that calibrate: of a line with noise of 1e-4 the intervals were six times as wide as they should be
where such fits stopped at errors of that size."""

CALIBRATION_GAP, CALIBRATION_ITERATIONS, PATIENT_ITERATIONS = 5e-3, 300, 5_000
"""The same for the fits whose predictions of rows left out calibrate the model; they have all nodes. The last number is
for few rows, which may have next to no noise, and in double precision."""

MAX_RELEARNT_ROWS = 600
"""Up to this many rows a kernel that targets had a part in is made anew for every fold of the calibration; a single one
of more rows hardly changes it."""

LIGHT_BIAS = 1e-2
"""λ_b of a fit that is compared, in terms of λ."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Fits to the folds with one kernel, which share features and eigenvectors.

    Parameters
    ----------
    problem : Problem
        Of all rows that count, and of others that are predicted.
    splitting : Splitting
    live : ndarray (B, n) of bool
        The training rows of each fold.
    judges : ndarray (n,) of bool
        The rows that had no part in the kernel.
    """

    problem: Problem
    splitting: Splitting
    live: HostArray
    judges: HostArray

    def solve(
        self, alpha: float, start: State | None, gap: float, max_iter: int, floor: float
    ) -> tuple[Splitting, State]:
        """The fits with one λ, and the eigenvectors they are written in."""
        splitting = self.splitting.leading(alpha)
        state = splitting.solve(alpha, live=self.live, start=start, tol=gap, max_iter=max_iter, floor=floor)
        return splitting, state


class Runner:
    """The quick fits of one kernel to all folds.

    A kernel that targets have a part in is made twice, from either half of the rows: it judges the other half.
    """

    def __init__(self, contest: Contest, entrant: Candidate, lambdas: HostArray) -> None:
        self.contest, self.entrant, self.lambdas = contest, entrant, lambdas
        weight = contest.rows.weight
        self._counted = np.flatnonzero(weight > 0.0)
        # rows of weight 0 are predicted, not fitted
        self._every = np.concatenate([self._counted, np.flatnonzero(weight == 0.0)])
        self._place = np.argsort(self._every)

    def forget(self) -> None:
        """Let go of features and eigenvectors; they are made again where they are needed."""
        self.__dict__.pop("batches", None)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "batches"}

    @cached_property
    def batches(self) -> list[Batch]:
        """One, or two where targets have a part in the kernel."""
        kind, n = self.entrant.kind, self._counted.size
        if kind.adapt is None:
            return [self._batch(kind.on(np.arange(n)))]
        first = np.arange(self._every.size) % 2 == 0
        return [self._batch(kind.on(np.flatnonzero(half[:n])), ~half) for half in (first, ~first)]

    def _batch(self, kernel: InputKernel, judges: HostArray | None = None, *, single: bool = True) -> Batch:
        contest, every = self.contest, self._every
        weight = contest.rows.weight[every]
        data = Data(contest.rows.X[every], contest.targets[every], weight / np.sum(weight))
        exact = 1e-2 * QUICK_GAP * float(np.min(self.lambdas))
        problem = pose(replace(_quick(contest), kernel=kernel), data, np.random.default_rng(0), tol=exact)
        live = np.zeros((len(contest.folds), every.size), dtype=bool)
        for b, (train, _) in enumerate(contest.folds):
            live[b, self._place[train[contest.rows.weight[train] > 0.0]]] = True
        judges = np.ones(every.size, dtype=bool) if judges is None else judges
        return Batch(problem, Splitting.of(problem.objective, single=single), live, judges)

    def walked(self, begin: int, ignoring: HostArray, leader: float = np.inf, *, flat_ends: bool = True) -> HostArray:
        """The losses (k, folds), as far as a walk along λ looks at them; see :func:`~infinitask.tuning._rules.walk`."""
        contest, states = self.contest, [None] * len(self.batches)

        def losses(i: int) -> list[float]:
            found = self._left_out(
                self.batches, float(self.lambdas[i]), contest.levels, QUICK_GAP, QUICK_ITERATIONS, states
            )
            return contest.losses(found)

        return walk(losses, self.lambdas.size, begin, ignoring, leader, flat_ends=flat_ends)

    def _left_out(
        self,
        batches: list[Batch],
        alpha: float,
        levels: HostArray,
        gap: float,
        max_iter: int,
        states: list[Any],
        floor: float = SMALL_OBJECTIVE,
    ) -> list[HostArray]:
        """h at the rows left out of each fold, (n_test, q); ``states`` are where to start, and then where it ended."""
        folds = self.contest.folds[: batches[0].live.shape[0]]
        found = [np.empty((test.size, levels.size)) for _, test in folds]
        for k, batch in enumerate(batches):
            splitting, states[k] = batch.solve(alpha, states[k], gap, max_iter, floor)
            cols = to_host(batch.problem.psi.map(levels)) @ to_host(splitting.columns.W)
            for b, (_, test) in enumerate(folds):
                rows = self._place[test]
                judged = batch.judges[rows]
                values = take(splitting.rows, rows[judged], 0) @ states[k].coef[:, b, :]
                found[b][judged] = to_host(values) @ cols.T
        return found

    def left_out(self, recipe: Recipe, alpha: float, levels: HostArray, folds: Splits) -> HostArray:
        """h at every row by a fit that has not seen it, (n, q), with the nodes and tasks of a recipe; NaN for others.

        Parameters
        ----------
        recipe : Recipe
            Of the last fit.
        alpha : float
            λ in the units of the contest.
        levels : ndarray (q,)
        folds : list of (train, test)
        """
        found = np.full((self.contest.targets.size, levels.size), np.nan)
        few = self._counted.size <= MAX_RELEARNT_ROWS
        relearnt = self.entrant.kind.adapt is not None and few
        for some in ([fold] for fold in folds) if relearnt else [folds]:
            runner = Runner(replace(self.contest, folds=some), self.entrant, self.lambdas)
            batch = runner._batch(runner._kernel_of(some[0][0]) if relearnt else self.kernel, single=not few)
            tasks = [_with_tasks_of(recipe, batch, self.contest.device)]
            gap, most = CALIBRATION_GAP, PATIENT_ITERATIONS if few else CALIBRATION_ITERATIONS
            h = runner._left_out(tasks, alpha, levels, gap, most, [None], TINY_OBJECTIVE)
            for values, (_, test) in zip(h, some, strict=True):
                found[test] = values
        return found

    def _kernel_of(self, rows: HostArray) -> InputKernel:
        """The kernel that follows from some rows, positions among all."""
        counted = np.cumsum(self.contest.rows.weight > 0.0) - 1
        return self.entrant.kind.on(counted[rows[self.contest.rows.weight[rows] > 0.0]])

    @cached_property
    def kernel(self) -> InputKernel:
        """The kernel of all rows."""
        return self.entrant.kind.on(np.arange(self._counted.size))


def _quick(contest: Contest) -> Recipe:
    """The recipe of the fits that are compared."""
    recipe = contest.rows.recipe
    return replace(
        recipe.with_task(loss=contest.loss, order=Order()),
        task_kernel="rbf",
        task_gamma=None,
        quadrature="gauss-legendre",
        n_nodes=QUICK_NODES,
        bias_kernel="task",
        alpha=1.0,  # paths have their own
        alpha_bias=LIGHT_BIAS,
        units=Units(),  # the targets of a contest have theirs
        features=Nystroem(contest.rank) if contest.landmarks and recipe.features == "auto" else recipe.features,
        rank=contest.rank if recipe.rank in (None, "auto") else min(recipe.rank, contest.rank),
        certify=None,
        tol=QUICK_GAP,
        verbose=0,
        device=contest.device,
    )


def _with_tasks_of(recipe: Recipe, batch: Batch, device: str | None) -> Batch:
    """The same rows and folds with the nodes and the task kernel of a recipe."""
    problem, objective = batch.problem, batch.problem.objective
    y = objective.integrals[0].targets
    tasks = replace(
        recipe.with_task(loss=objective.integrals[0].loss, order=Order()),
        alpha=1.0,
        alpha_bias=LIGHT_BIAS,
        bias_kernel="task",
        device=device,
    )
    data = Data(
        np.empty((int(objective.rows.shape[0]), 0)),
        None if y is None else to_host(y)[:, 0],
        to_host(objective.sample_weight),
    )
    again = pose(tasks, data, np.random.default_rng(0), phi=problem.phi)
    splitting = batch.splitting.with_integrals(again.objective)
    return replace(batch, problem=again, splitting=splitting)
