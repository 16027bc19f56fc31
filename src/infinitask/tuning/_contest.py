"""A comparison of kernels and λ on held-out rows: its rows, folds and losses, and the quick fits of one kernel.

All folds are solved together (:class:`~infinitask.calibration._folds.JointFits`). A kernel that learns from targets is
created without the rows on which it is compared.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils import check_random_state

from infinitask._base.arrays import HostArray, one_blas_thread, weighted_quantiles
from infinitask._base.validation import positive_numbers
from infinitask.calibration._folds import Folds, JointFits, Splits, check_weights, splits_of
from infinitask.calibration._levels import Levels
from infinitask.calibration._log_odds import held_out_log_losses
from infinitask.estimators._base import Prepared
from infinitask.features import Nystroem
from infinitask.fitting._data import Data
from infinitask.fitting._pose import pose
from infinitask.fitting._recipe import Recipe, Units
from infinitask.kernels import InputKernel
from infinitask.losses import Loss
from infinitask.tasks import Order
from infinitask.tuning._candidates import Kind
from infinitask.tuning._defaults import (
    CALIBRATING,
    FARTHEST_TARGET,
    FEW_ROWS,
    FOLDS,
    LAMBDAS,
    MAX_FEATURES,
    MAX_REPEATS,
    QUICK,
    QUICK_NODES,
    ROWS_TO_HOLD_OUT,
)
from infinitask.tuning._progress import Progress


@dataclass(frozen=True, eq=False)
class Contest:
    """A comparison of kernels and λ, in units in which the targets have size one.

    Parameters
    ----------
    rows : Prepared
        The final fit for any kernel and λ. The comparison uses quick fits with fewer nodes and a larger gap.
    units : Units
        The units of the comparison: losses and 1/λ are relative to their spread.
    levels : ndarray (q,)
        Tasks at which models are compared.
    criterion : Loss or None
        The loss that compares h, sorted along the levels if predictions are; None: the log loss of two classes, with
        log-odds that are linear in h.
    folds : list of (train, test)
        Repetitions of the folds come one after the other.
    folds_at_once : int
        The number of folds in one cross-validation.
    lambdas : ndarray (k,)
        λ in the units of the comparison, descending; the first one ignores the features.
    progress : Progress
    listed : bool
        Whether a user listed the λ: they may be close to each other.
    landmarks : int or None
        The number of randomly sampled landmarks of the features; None: features are exact.
    keeps_best : bool
        Whether an interrupt ends the comparison and keeps the best candidate so far.
    n_jobs : int or None
        The number of kernels that are compared in parallel processes; the choice does not depend on it.
    own : int or None
        The position of a λ that only the default uses.
    """

    rows: Prepared
    units: Units
    levels: HostArray
    criterion: Loss | None
    folds: Splits
    folds_at_once: int
    lambdas: HostArray
    progress: Progress
    listed: bool = False
    landmarks: int | None = None
    keeps_best: bool = False
    n_jobs: int | None = None
    own: int | None = None

    @classmethod
    def of(cls, model: Any, rows: Prepared, criterion: Loss | None, progress: Progress) -> Contest:
        """Create the comparison of a self-tuned model for some rows."""
        assert rows.y is not None
        repeats = _repeated_splits(model.cv, rows, model.random_state, classes=criterion is None)
        measure, counted = rows.recipe.task.measure, rows.weight > 0.0
        if measure.dim != 1:
            raise ValueError(f"measure={measure!r} was given; a self-tuned model has tasks on the line.")
        atoms = measure.atoms()
        nodes = measure.ppf(np.arange(1, 10)[:, None] / 10.0) if atoms is None else atoms.nodes
        units = Units() if criterion is None else Units.of(rows.y[counted], rows.weight[counted], centred=True)
        lambdas = LAMBDAS
        if model.alphas is not None:
            lambdas = np.sort(positive_numbers("alphas", model.alphas))[::-1] * units.spread
            if lambdas[0] < LAMBDAS[0]:  # one of them must ignore the features
                lambdas = np.concatenate([LAMBDAS[:1], lambdas])
        return cls(
            rows=rows,
            units=units,
            levels=np.asarray(nodes[:, 0]),
            criterion=criterion,
            folds=[fold for splits in repeats for fold in splits],
            folds_at_once=len(repeats[0]),
            lambdas=lambdas,
            progress=progress,
            listed=model.alphas is not None,
            keeps_best=model.on_interrupt == "best",
            n_jobs=model.n_jobs,
        )

    @cached_property
    def targets(self) -> HostArray:
        """The targets in the units of the comparison, (n,)."""
        assert self.rows.y is not None
        return np.clip(self.units.inside(self.rows.y), -FARTHEST_TARGET, FARTHEST_TARGET)

    @cached_property
    def counted(self) -> HostArray:
        """Positions of the rows of positive weight."""
        return np.flatnonzero(self.rows.weight > 0.0)

    @cached_property
    def recipe(self) -> Recipe:
        """The recipe of fits for any kernel and λ, with the nodes of the final fit.

        The bias is part of φ, with a hundredth of the ridge for every λ of a path.
        """
        recipe, most = self.rows.recipe, self.landmarks or MAX_FEATURES
        return replace(
            recipe,
            task=replace(recipe.task.in_units(self.units.spread, self.units.centre), order=Order()),
            alpha=1.0,
            alpha_bias=1e-2,
            bias_kernel="task",
            units=Units(),  # the targets are scaled already
            features=Nystroem(most) if self.landmarks and recipe.features == "auto" else recipe.features,
            rank=most if recipe.rank in (None, "auto") else min(recipe.rank, most),
            certify=None,
            device=recipe.device if self.landmarks else None,  # few rows stay on the host
            verbose=0,
        )

    def on(self, rows: HostArray) -> Contest:
        """Return the same contest with some of the rows (ascending positions)."""
        place = np.full(self.rows.weight.size, -1)
        place[rows] = np.arange(rows.size)

        def kept(positions: HostArray) -> HostArray:
            found = place[positions]
            return np.asarray(found[found >= 0])

        prepared = self.rows
        assert prepared.y is not None
        some = prepared._replace(X=prepared.X[rows], y=prepared.y[rows], weight=prepared.weight[rows])
        # small folds may have no rows here
        pairs = ((kept(train), kept(test)) for train, test in self.folds)
        folds = [(train, test) for train, test in pairs if train.size and test.size]
        return replace(self, rows=some, folds=folds, folds_at_once=min(self.folds_at_once, len(folds)))

    # ----------------------------------------------------------------------------------------------------------- λ
    @cached_property
    def grid(self) -> HostArray:
        """Positions of the λ that all kernels use."""
        return np.setdiff1d(np.arange(self.lambdas.size), [] if self.own is None else [self.own])

    def nearest(self, value: float) -> int:
        """The position in the grid of the λ that is closest on a logarithmic scale."""
        return int(np.argmin(np.abs(np.log(self.lambdas[self.grid] / value))))

    def with_own(self, value: float) -> Contest:
        """Return the same contest with a λ for the default alone."""
        position = max(1, int(np.searchsorted(-self.lambdas, -value)))  # the first one ignores the features
        return replace(self, lambdas=np.insert(self.lambdas, position, value), own=position)

    def for_fewer(self, fewer: Contest, rate: float) -> Contest:
        """Return a contest of fewer rows with the λ of the default divided by a rate."""
        lambdas = self.lambdas.copy()
        if self.own is not None:
            lambdas[self.own] /= rate
        return replace(fewer, lambdas=lambdas, own=self.own)

    @cached_property
    def ignoring(self) -> HostArray:
        """The losses of predictions that ignore the features, (folds,)."""
        weight, found = self.rows.weight, []
        for train, test in self.folds:
            train = train[weight[train] > 0.0]
            if self.criterion is None:  # only the intercepts of the log-odds matter
                constant = np.zeros(1)
            else:
                constant = weighted_quantiles(self.targets[train], weight[train], self.levels)
            found.append(np.broadcast_to(constant, (test.size, constant.size)))
        return np.array(self.losses(found))

    def losses(self, h: list[HostArray]) -> list[float]:
        """Return the loss of each fold, from h at its held-out rows, (n_test, q) each."""
        tests = [test for _, test in self.folds]
        targets, weights = ([values[test] for test in tests] for values in (self.targets, self.rows.weight))
        if self.criterion is None:
            # decisions are calibrated after the fit, for any cost: only the discrimination between rows matters
            tables = held_out_log_losses(h, [y > 0.0 for y in targets], weights)
        else:
            h = [np.sort(values, axis=1) for values in h] if self.rows.recipe.task.order.rearranged else h
            pairs = zip(targets, h, strict=True)
            tables = [self.criterion.value(self.levels, y[:, None], values) for y, values in pairs]
        rows = zip(weights, tables, strict=True)
        return [float(omega @ np.mean(table, axis=1)) / (float(np.sum(omega)) or 1.0) for omega, table in rows]

    # -------------------------------------------------------------------------------------------------------- the fits
    def joint_folds(self, splits: Splits) -> Folds:
        """Return the folds of some fits; rows of weight 0 are predicted, not fitted."""
        weight = self.rows.weight
        return Folds.of_splits([(train[weight[train] > 0.0], test) for train, test in splits], weight.size)

    def joint_fits(
        self, recipe: Recipe, kernel: InputKernel, folds: Folds, finest: float, *, single: bool = True
    ) -> JointFits:
        """The fits of a kernel to some folds; the features are accurate enough for the smallest λ, ``finest``."""
        weight = self.rows.weight
        data = Data(self.rows.X, self.targets, weight / np.sum(weight))
        posed = pose(replace(recipe, kernel=kernel), data, np.random.default_rng(0), tol=1e-2 * QUICK.gap * finest)
        return JointFits.of(posed, folds, single=single)

    def held_out(self, kind: Kind, kernel: InputKernel, alpha: float, levels: HostArray, splits: Splits) -> HostArray:
        """Return h at every row by a fit that has not seen it, (n, q), with the nodes of the final fit, or NaN.

        Parameters
        ----------
        kind : Kind
            Creates the kernel. With few rows, a kernel that learns from targets is created again for every fold.
        kernel : InputKernel
            The kernel of all rows.
        alpha : float
            λ in the units of the contest.
        levels : ndarray (q,)
        splits : list of (train, test)
        """
        few, found = self.counted.size <= FEW_ROWS, []
        relearnt = kind.learns and few
        for some in [[split] for split in splits] if relearnt else [splits]:
            folds = self.joint_folds(some)
            own = kind.on(np.flatnonzero(folds.seen[0, self.counted])) if relearnt else kernel
            fits = self.joint_fits(self.recipe, own, folds, alpha, single=not few)
            # few rows may have hardly any noise, and double precision reaches any gap
            most = 5_000 if few else CALIBRATING.max_iter
            found.append(fits.solved(alpha, CALIBRATING.gap, most, floor=CALIBRATING.floor).values(levels))
        return Folds.of_splits(splits, self.rows.weight.size).assembled(np.concatenate(found))

    def calibrated_levels(self, kind: Kind, kernel: InputKernel, alpha: float, splits: Splits) -> Levels:
        """Return the map of levels from held-out rows; for the parameters see :meth:`held_out`."""
        rows, units = self.rows, self.units
        (low,), (high,) = rows.recipe.task.measure.support
        grid = Levels.grid(low, high)
        # as in the comparison: with two threads on two busy cores it took eleven times the processor time of one
        with one_blas_thread():
            Q = self.held_out(kind, kernel, alpha, grid, splits)
        known = np.all(np.isfinite(Q), axis=1)
        assert rows.y is not None
        return Levels.of(rows.y[known], units.centre + units.spread * Q[known], grid, rows.weight[known])


class QuickFits:
    """The quick fits of one kernel to all folds; fits with another λ start at the previous solutions.

    A kernel that learns from targets is created twice, from each half of the rows, and compared on the other half.

    Parameters
    ----------
    contest : Contest
    kind : Kind
    """

    def __init__(self, contest: Contest, kind: Kind) -> None:
        self.contest, counted = contest, contest.rows.weight > 0.0
        self._folds = folds = contest.joint_folds(contest.folds)
        quick = replace(
            contest.recipe,
            task_kernel="rbf",
            task_gamma=None,
            quadrature="gauss-legendre",
            n_nodes=QUICK_NODES,
            tol=QUICK.gap,
        )
        self._fits: list[tuple[HostArray, JointFits]] = []
        finest = float(np.min(contest.lambdas))
        first = np.cumsum(counted) % 2 == 1
        for half in (first, ~first) if kind.learns else (np.full(counted.size, True),):
            unseen = ~half[folds.rows] if kind.learns else half[folds.rows]
            kernel = kind.on(np.flatnonzero(half[counted]))
            self._fits.append((unseen, contest.joint_fits(quick, kernel, folds.only(unseen), finest)))

    def values(self, alpha: float) -> list[HostArray]:
        """Return h at the levels of the contest and the held-out rows of each fold, (n_test, q) each."""
        found = np.empty((self._folds.rows.size, self.contest.levels.size))
        for k, (unseen, fits) in enumerate(self._fits):
            solved = fits.solved(alpha, QUICK.gap, QUICK.max_iter, floor=QUICK.floor)
            self._fits[k], found[unseen] = (unseen, solved), solved.values(self.contest.levels)
        return self._folds.split(found)


def _repeated_splits(cv: Any, rows: Prepared, random_state: Any, *, classes: bool) -> list[Splits]:
    """Return the folds of a cross-validation, repeated if there are few rows.

    Parameters
    ----------
    cv : int, splitter, iterable or None
        As in scikit-learn, used once; None: shuffled folds, repeated.
    rows : Prepared
    random_state : int, RandomState or None
    classes : bool
        Whether y contains the signs of two classes; folds are then stratified.
    """
    _, X, y, weight, *_ = rows
    assert y is not None
    n = y.size
    if cv is not None:
        found = [splits_of(cv, X, y, classifier=classes)]
    elif n < 2:
        raise ValueError(f"{n} row was given; a cross-validation needs at least 2.")
    else:
        rng = check_random_state(random_state)
        size, telling, splitter = min(FOLDS, n), n, KFold
        if classes:
            # the number of rows of a rare class determines the variance of the loss of a fold
            positive = int(np.count_nonzero(y > 0.0))
            rare = min(positive, n - positive)
            splitter, telling = StratifiedKFold if rare >= size else KFold, max(1, 2 * rare)
        count = int(np.clip(np.ceil(ROWS_TO_HOLD_OUT / telling), 1, MAX_REPEATS))
        splitters = [splitter(size, shuffle=True, random_state=rng.randint(2**31 - 1)) for _ in range(count)]
        found = [list(each.split(X, y)) for each in splitters]
    for splits in found:
        check_weights([train for train, _ in splits], weight, "train on")
    return found
