"""A comparison of kernels and λ by held-out rows: its rows, folds and losses, and the quick fits of one kernel.

All folds are solved together (:class:`~infinitask.calibration._folds.JointFits`). A kernel that has learnt from
targets is made without the rows by which it is compared.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from infinitask._base.arrays import HostArray
from infinitask._base.events import Chosen, CutShort, Stage, Tried, tell
from infinitask._base.validation import naming
from infinitask.calibration._folds import Folds, JointFits, Splits
from infinitask.calibration._log_odds import held_out_log_losses
from infinitask.estimators._base import Prepared
from infinitask.features import Nystroem
from infinitask.fitting._data import Data
from infinitask.fitting._defaults import spreads
from infinitask.fitting._pose import pose
from infinitask.fitting._recipe import Recipe, Units
from infinitask.kernels import Chi2, InputKernel, Scaled, input_kernel
from infinitask.losses import Loss
from infinitask.tasks import Order
from infinitask.tuning._candidates import Kind
from infinitask.tuning._defaults import CALIBRATING, FEW_ROWS, MAX_FEATURES, QUICK, QUICK_NODES, Effort


class Progress:
    """What a self-tuned model tells while it works: lines on standard error, and events for a listener.

    Parameters
    ----------
    name : str
        Of the model.
    verbose : int
        0: silent.
    """

    def __init__(self, name: str, verbose: int) -> None:
        self.name, self.verbose = name, verbose
        self._begun = self._stage = time.perf_counter()

    def say(self, line: str, kind: type[Stage | Chosen | CutShort] = Stage) -> None:
        """One line, with the seconds since the beginning, and an event: another stage, a choice, or an interrupt."""
        tell(kind(line))
        self._stage = time.perf_counter()
        if self.verbose:
            print(f"{self.name}: {self._stage - self._begun:6.1f} s  {line}", file=sys.stderr, flush=True)

    def tried(self, count: int, total: int, kernel: str, loss: float, best: float) -> None:
        """A kernel was tried: its loss, the best so far, and about how long the others of this stage will take."""
        tell(Tried(count, total, kernel, loss, best))
        now = time.perf_counter()
        left = (now - self._stage) / count * (total - count)
        if self.verbose:
            line = f"{count} of {total} kernels, {kernel}: loss {loss:.4g}, best {best:.4g}; about {left:.0f} s left"
            print(f"{self.name}: {now - self._begun:6.1f} s  {line}", file=sys.stderr, flush=True)


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
    landmarks : int or None
        How many of them, sampled at random, features come from; None: features are exact.
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
    landmarks: int | None = None
    device: str | None = None
    keeps_best: bool = False

    @property
    def counted(self) -> HostArray:
        """Positions of the rows of positive weight."""
        return np.flatnonzero(self.rows.weight > 0.0)

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

    def _loss(self, rows: HostArray, h: HostArray) -> float:
        """The weighted mean loss of h (k, q) at the levels for some rows."""
        weight = self.rows.weight[rows]
        h = np.sort(h, axis=1) if self.ordered else h
        losses = np.mean(self.criterion.value(self.levels, self.targets[rows][:, None], h), axis=1)
        total = float(np.sum(weight))
        return float(weight @ losses) / total if total > 0.0 else 0.0


def given_kernels(kernels: Any, X: HostArray, no_matrix: str, *, robust: bool = False) -> dict[str, InputKernel] | None:
    """The names and kernels that a user listed, by what they were called; None for "auto".

    A kernel that was named measures each feature in its own spread, as that of a single fit does.

    Parameters
    ----------
    kernels : "auto" or sequence of kernels
    X : ndarray (n, d)
    no_matrix : str
        Why "precomputed" is refused.
    robust : bool
        Whether spreads are.
    """
    if isinstance(kernels, str) and kernels == "auto":
        return None
    if isinstance(kernels, str) or not isinstance(kernels, Iterable):
        raise ValueError(f"kernels={kernels!r} was given; it must be 'auto' or a list of kernels.")
    listed = list(kernels)
    with naming("kernels"):
        found = [input_kernel(kernel) for kernel in listed]
    if not found:
        raise ValueError("kernels=[] was given; give at least one kernel, or 'auto'.")
    if any(kernel.precomputed for kernel in found):
        raise ValueError(f"kernels holds 'precomputed'; {no_matrix}")
    distinct = np.unique(X, axis=0)  # a weight of two is a row written twice
    for place, kernel in enumerate(found):
        if isinstance(listed[place], str) and not isinstance(kernel, Chi2):  # parts of a histogram have their own units
            found[place] = Scaled(kernel, spreads(distinct, robust=robust)).resolve(distinct)
    return {repr(name): kernel for name, kernel in zip(listed, found, strict=True)}


class QuickFits:
    """The quick fits of one kernel to all folds; those with another λ start where the last ones ended.

    A kernel that learns from targets is made twice, from either half of the rows; each is compared by the other half.

    Parameters
    ----------
    contest : Contest
    kind : Kind
    finest : float
        The smallest λ, for which features are exact enough.
    """

    def __init__(self, contest: Contest, kind: Kind, finest: float) -> None:
        self.contest, counted = contest, contest.rows.weight > 0.0
        self._folds = folds = _joint_folds(contest, contest.folds)
        quick = replace(
            contest.rows.recipe,
            task_kernel="rbf",
            task_gamma=None,
            quadrature="gauss-legendre",
            n_nodes=QUICK_NODES,
            tol=QUICK.gap,
        )
        self._fits: list[tuple[HostArray, JointFits]] = []
        self._states: list[Any] = []
        first = np.cumsum(counted) % 2 == 1
        for half in (first, ~first) if kind.learns else (np.full(counted.size, True),):
            unseen = ~half[folds.rows] if kind.learns else half[folds.rows]
            kernel = kind.on(np.flatnonzero(half[counted]))
            self._fits.append((unseen, _joint_fits(contest, quick, kernel, folds.only(unseen), finest)))
            self._states.append(None)

    def values(self, alpha: float, effort: Effort = QUICK) -> list[HostArray]:
        """h at the levels of the contest and the held-out rows of each fold, (n_test, q) each."""
        levels = self.contest.levels
        found = np.empty((self._folds.rows.size, levels.size))
        for k, (unseen, fits) in enumerate(self._fits):
            solved = fits.solved(alpha, effort.gap, effort.max_iter, start=self._states[k], floor=effort.floor)
            self._states[k], found[unseen] = solved.state, solved.values(levels)
        return self._folds.split(found)


def held_out(
    contest: Contest, recipe: Recipe, kind: Kind, kernel: InputKernel, alpha: float, levels: HostArray, splits: Splits
) -> HostArray:
    """h at every row by a fit that has not seen it, (n, q), with the nodes and tasks of a recipe; NaN for others.

    Parameters
    ----------
    contest : Contest
    recipe : Recipe
        Of the final fit.
    kind : Kind
        How the kernel is made: with few rows, one that learns from targets is made again for every fold.
    kernel : InputKernel
        Of all rows.
    alpha : float
        λ in the units of the contest.
    levels : ndarray (q,)
    splits : list of (train, test)
    """
    few, found = contest.counted.size <= FEW_ROWS, []
    relearnt = kind.learns and few
    for some in [[split] for split in splits] if relearnt else [splits]:
        folds = _joint_folds(contest, some)
        own = kind.on(np.flatnonzero(folds.seen[0, contest.counted])) if relearnt else kernel
        fits = _joint_fits(contest, recipe, own, folds, alpha, single=not few)
        # few rows may have next to no noise, and double precision reaches any gap
        most = 5_000 if few else CALIBRATING.max_iter
        found.append(fits.solved(alpha, CALIBRATING.gap, most, floor=CALIBRATING.floor).values(levels))
    return Folds.of_splits(splits, contest.targets.size).assembled(np.concatenate(found))


def _joint_folds(contest: Contest, splits: Splits) -> Folds:
    """The folds of some fits; rows of weight 0 are predicted, not fitted."""
    weight = contest.rows.weight
    return Folds.of_splits([(train[weight[train] > 0.0], test) for train, test in splits], weight.size)


def _joint_fits(
    contest: Contest, recipe: Recipe, kernel: InputKernel, folds: Folds, finest: float, *, single: bool = True
) -> JointFits:
    """The fits of a kernel to some folds, with the nodes and tasks of a recipe; ``finest`` is the smallest λ.

    The bias joins φ with a hundredth of the ridge, which a path of λ has of its own.
    """
    weight, most = contest.rows.weight, contest.landmarks or MAX_FEATURES
    data = Data(contest.rows.X, contest.targets, weight / np.sum(weight))
    light = replace(
        recipe.with_task(loss=contest.loss, order=Order()),
        kernel=kernel,
        alpha=1.0,
        alpha_bias=1e-2,
        bias_kernel="task",
        units=Units(),  # the targets of a contest have theirs
        features=Nystroem(most) if contest.landmarks and recipe.features == "auto" else recipe.features,
        rank=most if recipe.rank in (None, "auto") else min(recipe.rank, most),
        certify=None,
        device=contest.device,
        verbose=0,
    )
    problem = pose(light, data, np.random.default_rng(0), tol=1e-2 * QUICK.gap * finest)
    return JointFits.of(problem, folds, single=single)
