"""The quick fits of one kernel, which compare it with others, and the fits whose predictions calibrate the model.

All folds are solved together (:class:`~infinitask.calibration._fold_fits.JointFits`). A kernel that has learnt from
targets is made without the rows by which it is compared.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from infinitask._base.arrays import HostArray, to_host
from infinitask.calibration._fold_fits import JointFits
from infinitask.calibration._folds import Folds, Splits
from infinitask.features import Nystroem
from infinitask.fitting._data import Data
from infinitask.fitting._pose import pose
from infinitask.fitting._recipe import Recipe, Units
from infinitask.kernels import InputKernel
from infinitask.losses import Loss
from infinitask.tasks import Order
from infinitask.tuning._candidates import Candidate
from infinitask.tuning._defaults import CALIBRATING, FEW_ROWS, QUICK, QUICK_NODES, Effort
from infinitask.tuning._rules import walk

if TYPE_CHECKING:
    from infinitask.tuning._choice import Contest


class Runner:
    """The quick fits of one kernel to all folds.

    A kernel that learns from targets is made twice, from either half of the rows; each is compared by the other half.
    """

    def __init__(self, contest: Contest, entrant: Candidate, lambdas: HostArray) -> None:
        self.contest, self.entrant, self.lambdas = contest, entrant, lambdas
        weight = contest.rows.weight
        self._counted = np.flatnonzero(weight > 0.0)
        # rows of weight 0 are predicted, not fitted
        self._every = np.concatenate([self._counted, np.flatnonzero(weight == 0.0)])
        place = np.argsort(self._every)
        splits = [(place[train[weight[train] > 0.0]], place[test]) for train, test in contest.folds]
        self._folds = Folds.of_splits(splits, weight.size)

    def forget(self) -> None:
        """Let go of features and eigenvectors; they are made again where they are needed."""
        self.__dict__.pop("fits", None)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "fits"}

    @cached_property
    def fits(self) -> list[tuple[HostArray, JointFits]]:
        """Which held-out rows have no part in a kernel, (k,), and its fits: one, or two if it learns from targets."""
        kind, n, held_out = self.entrant.kind, self._counted.size, self._folds.rows
        if not kind.learns:
            return [(np.ones(held_out.size, dtype=bool), self._fits(kind.on(np.arange(n)), self._folds))]
        first = np.arange(self._every.size) % 2 == 0
        unseen = [~half[held_out] for half in (first, ~first)]
        kernels = (kind.on(np.flatnonzero(half[:n])) for half in (first, ~first))
        return [
            (mask, self._fits(kernel, self._folds.only(mask))) for mask, kernel in zip(unseen, kernels, strict=True)
        ]

    def _fits(self, kernel: InputKernel, folds: Folds, *, single: bool = True) -> JointFits:
        contest, every = self.contest, self._every
        weight = contest.rows.weight[every]
        data = Data(contest.rows.X[every], contest.targets[every], weight / np.sum(weight))
        exact = 1e-2 * QUICK.gap * float(np.min(self.lambdas))
        problem = pose(replace(_quick(contest), kernel=kernel), data, np.random.default_rng(0), tol=exact)
        return JointFits.of(problem, folds, single=single)

    def walked(self, begin: int, ignoring: HostArray, leader: float = np.inf, *, flat_ends: bool = True) -> HostArray:
        """The losses (k, folds), as far as a walk along λ looks at them; see :func:`~infinitask.tuning._rules.walk`."""
        states: list[Any] = [None] * len(self.fits)

        def losses(i: int) -> list[float]:
            return self.contest.losses(self.values(float(self.lambdas[i]), self.contest.levels, states))

        return walk(losses, self.lambdas.size, begin, ignoring, leader, flat_ends=flat_ends)

    def values(self, alpha: float, levels: HostArray, states: list[Any], effort: Effort = QUICK) -> list[HostArray]:
        """h at the held-out rows of each fold, (n_test, q) each.

        Parameters
        ----------
        alpha : float
        levels : ndarray (q,)
        states : list of State or None
            Where the fits start; then, where they ended.
        effort : Effort
        """
        found = np.empty((self._folds.rows.size, levels.size))
        for k, (unseen, fits) in enumerate(self.fits):
            solved = fits.solved(alpha, effort.gap, effort.max_iter, start=states[k], floor=effort.floor)
            states[k], found[unseen] = solved.state, solved.values(levels)
        return self._folds.split(found)

    def held_out(self, recipe: Recipe, alpha: float, levels: HostArray, splits: Splits) -> HostArray:
        """h at every row by a fit that has not seen it, (n, q), with the nodes and tasks of a recipe; NaN for others.

        Parameters
        ----------
        recipe : Recipe
            Of the final fit.
        alpha : float
            λ in the units of the contest.
        levels : ndarray (q,)
        splits : list of (train, test)
        """
        few, found = self._counted.size <= FEW_ROWS, []
        relearnt = self.entrant.kind.learns and few
        for some in [[split] for split in splits] if relearnt else [splits]:
            runner = Runner(replace(self.contest, folds=some), self.entrant, self.lambdas)
            kernel = self.entrant.kind.on(np.flatnonzero(runner._folds.seen[0])) if relearnt else self.kernel
            fits = _with_tasks_of(recipe, runner._fits(kernel, runner._folds, single=not few), self.contest.device)
            # few rows may have next to no noise, and double precision reaches any gap
            most = 5_000 if few else CALIBRATING.max_iter
            found.append(fits.solved(alpha, CALIBRATING.gap, most, floor=CALIBRATING.floor).values(levels))
        return Folds.of_splits(splits, self.contest.targets.size).assembled(np.concatenate(found))

    @cached_property
    def kernel(self) -> InputKernel:
        """The kernel of all rows."""
        return self.entrant.kind.on(np.arange(self._counted.size))


def _quick(contest: Contest) -> Recipe:
    """The recipe of the fits that are compared."""
    recipe = contest.rows.recipe
    return replace(
        _with_light_bias(recipe, contest.loss, contest.device),
        task_kernel="rbf",
        task_gamma=None,
        quadrature="gauss-legendre",
        n_nodes=QUICK_NODES,
        units=Units(),  # the targets of a contest have theirs
        features=Nystroem(contest.rank) if contest.landmarks and recipe.features == "auto" else recipe.features,
        rank=contest.rank if recipe.rank in (None, "auto") else min(recipe.rank, contest.rank),
        certify=None,
        tol=QUICK.gap,
        verbose=0,
    )


def _with_light_bias(recipe: Recipe, loss: Loss, device: str | None) -> Recipe:
    """A recipe whose bias joins φ with a hundredth of the ridge; a path has its own λ."""
    light = recipe.with_task(loss=loss, order=Order())
    return replace(light, alpha=1.0, alpha_bias=1e-2, bias_kernel="task", device=device)


def _with_tasks_of(recipe: Recipe, fits: JointFits, device: str | None) -> JointFits:
    """The same rows and folds with the nodes and the task kernel of a recipe."""
    problem, objective = fits.problem, fits.problem.objective
    y = objective.integrals[0].targets
    tasks = _with_light_bias(recipe, objective.integrals[0].loss, device)
    data = Data(
        np.empty((int(objective.rows.shape[0]), 0)),
        None if y is None else to_host(y)[:, 0],
        to_host(objective.sample_weight),
    )
    return fits.with_tasks_of(pose(tasks, data, np.random.default_rng(0), phi=problem.phi))
