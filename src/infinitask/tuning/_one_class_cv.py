"""Level sets that choose their own kernel by the mass and volume of the sets on held-out rows.

Of two families of sets that contain the same fraction of held-out rows, the one with the smaller volume represents the
distribution better (:func:`~infinitask.metrics.mass_volume_area`). Only the order in which points leave the sets
matters, so kernels of any kind can be compared. Each family of kernels is searched along its widths.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import OutlierMixin, clone
from sklearn.model_selection import KFold
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed

from infinitask._base.arrays import HostArray, one_blas_thread
from infinitask._base.budget import Budget, OutOfTimeError, current_budget, within
from infinitask.calibration._folds import Folds, check_weights, solved_one_by_one, splits_of
from infinitask.calibration._leave_one_out import leave_one_out
from infinitask.calibration._thresholds import new_row_quantile
from infinitask.calibration.held_out import HeldOutFits
from infinitask.estimators import InfiniteOneClassSVM
from infinitask.estimators._base import Prepared
from infinitask.estimators._callbacks import reported
from infinitask.estimators._shared import estimator
from infinitask.field import Field, Problem
from infinitask.fitting._data import Data
from infinitask.fitting._defaults import IQR_OF_NORMAL, resolved, spreads
from infinitask.fitting._pose import pose
from infinitask.fitting._recipe import Recipe
from infinitask.kernels import RBF, InputKernel, Laplacian, Metric, Scaled, Warped
from infinitask.measures import Measure
from infinitask.solvers import solve
from infinitask.tuning._candidates import given_kernels, only_stationary
from infinitask.tuning._defaults import (
    EDGE,
    FACTORS,
    FOLDS,
    MARGIN,
    MAX_BOX_FEATURES,
    MAX_SET_ROWS,
    OUTLIER,
    QUICK,
    QUICK_NODES,
)
from infinitask.tuning._progress import Progress
from infinitask.tuning._self_tuned import SelfTuned

NO_MATRIX = "a volume needs the kernel at new points, not a matrix. Give kernels of inputs."
"""The reason why 'precomputed' is not supported."""


Family = Sequence[tuple[str, InputKernel]]
"""Kernels that differ only in their width, by name, the widest one first."""


def families(kernels: Any, X: HostArray, *, stationary_only: bool) -> list[Family]:
    """Return the kernels that compete: all given ones, or the candidates for some rows."""
    given = given_kernels(kernels, X, NO_MATRIX, robust=True)
    if given is not None:
        return [[(name, kernel.resolve(X))] for name, kernel in given.items()]
    return [
        [(f"{name}, {f:g}", clone(kernel).set_params(kernel__gamma=f * kernel.kernel.gamma)) for f in FACTORS]
        for name, kernel in candidates(X).items()
        if kernel.stationary or not stationary_only
    ]


def candidates(X: HostArray) -> dict[str, Any]:
    """Return kernels with the γ of the median rule for some rows; the first one is the default.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> list(candidates(X))
    ['Gaussian', 'Gaussian by covariance', 'Gaussian of ranks', 'Laplacian']
    """
    scales = spreads(X, robust=True)
    found: dict[str, Any] = {"Gaussian": Scaled(RBF(), scales)}
    root = _covariance_root(X * np.asarray(scales))
    if root is not None:
        found["Gaussian by covariance"] = Metric(RBF(), np.asarray(scales)[:, None] * root)
    if any(np.unique(column).size > 2 for column in X.T):  # ranks of two values are equivalent to the values
        found["Gaussian of ranks"] = Warped(RBF())
    found["Laplacian"] = Scaled(Laplacian(), scales)
    return {name: kernel.resolve(X) for name, kernel in found.items()}


def _covariance_root(Z: HostArray) -> HostArray | None:
    """R with R Rᵀ the inverse of the covariance, shrunk towards a multiple of the identity; None if it is one."""
    d = Z.shape[1]
    if d < 2 or len(Z) < 3:
        return None
    # clip outliers, which would dominate the covariance, to the edge of the other rows
    covariance = np.cov(np.clip(Z, *_edges(Z)).T)
    size = float(np.trace(covariance)) / d
    if not size > 0.0:
        return None
    e, U = np.linalg.eigh(0.9 * covariance + 0.1 * size * np.eye(d))
    return np.asarray((U / np.sqrt(e)) @ U.T)


# ------------------------------------------------------------------------------------------------ the comparison
class Entrant(NamedTuple):
    """A kernel and its result in the comparison."""

    name: str
    kernel: InputKernel
    volumes: HostArray
    """The fraction of the reference points inside, at each level: (q,)."""

    @property
    def area(self) -> float:
        """The mean of the volumes."""
        return float(np.mean(self.volumes))


@dataclass(frozen=True, eq=False)
class VolumeComparison:
    """A comparison of kernels on some rows.

    Parameters
    ----------
    recipe : Recipe
        The recipe of a fit that is compared.
    data : Data
    folds : Folds
    reference : ndarray (m, d)
        The points that measure volumes.
    levels : ndarray (q,)
        The fractions at which volumes are compared.
    leave_one_out : bool
        Whether leave-one-out in closed form replaces the folds where it holds.
    """

    recipe: Recipe
    data: Data
    folds: Folds
    reference: HostArray
    levels: HostArray
    leave_one_out: bool = False

    @classmethod
    def of(cls, rows: Prepared, cv: Any, rng: Any) -> VolumeComparison:
        """Create the comparison for the rows of a fit; ``cv`` is as in scikit-learn."""
        recipe, X, _, weight, *_ = rows
        merged = Data.canonical(X, None, weight)
        if cv is None:
            # equal rows in different folds would be memorised: they are merged to one row with a weight
            X, weight = merged.X, merged.weight
            if weight.size > MAX_SET_ROWS:
                some = np.sort(rng.choice(weight.size, MAX_SET_ROWS, replace=False))
                X, weight = X[some], weight[some]
            folds = KFold(max(2, min(FOLDS, weight.size)), shuffle=True, random_state=rng.randint(2**31 - 1))
            splits = list(folds.split(X)) if weight.size > 1 else [(np.arange(1), np.arange(1))]
        else:
            splits = splits_of(cv, X)
            check_weights([part for fold in splits for part in fold], weight, "train on or to judge by")
        quick = replace(
            recipe,
            task=recipe.task.uncalibrated(),
            n_nodes=QUICK_NODES if recipe.task.measure.atoms() is None else recipe.n_nodes,
            tol=QUICK.gap,
            max_iter=300,
            solver="lbfgs",
            verbose=0,
            device=None,
            rank=None if recipe.rank == "auto" else recipe.rank,
            certify=None,
        )
        reference = reference_points(merged.X, np.random.default_rng(rng.randint(2**31 - 1)))
        data, held_out = Data(X, None, weight / np.sum(weight)), Folds.of_splits(splits, weight.size)
        return cls(quick, data, held_out, reference, _levels(recipe.task.measure), cv is None)

    def compare(
        self, kinds: Sequence[Family], n_jobs: int | None, progress: Progress, *, keeps_best: bool
    ) -> list[Entrant]:
        """Compare members of all families and return them; fewer if no time is left, or after an interrupt."""
        found: dict[str, Entrant] = {}
        try:
            progress.begin("race", f"comparing kernels on {self.data.weight.size} rows")
            if n_jobs not in (None, 1):
                budget = progress.comparing()
                for part in Parallel(n_jobs=n_jobs)(delayed(self._walk_within)(budget, family) for family in kinds):
                    found |= part
            for family in kinds if not found else ():
                self.walk(family, found, progress, kinds)
        except (KeyboardInterrupt, OutOfTimeError) as stop:
            if found:
                progress.stopped(stop, keeps_best=keeps_best)
            else:
                progress.nothing_compared(stop, keeps_best=keeps_best)
        return [found[name] for family in kinds for name, _ in family if name in found]

    def _walk_within(self, budget: Budget, family: Family) -> dict[str, Entrant]:
        """Compare members of a family in another process, until no time is left."""
        found: dict[str, Entrant] = {}
        with within(budget), suppress(OutOfTimeError):
            self.walk(family, found)
        return found

    def walk(
        self, family: Family, found: dict[str, Entrant], progress: Progress | None = None, kinds: Sequence[Family] = ()
    ) -> dict[str, Entrant]:
        """Compare members of a family, and add them to ``found`` by their names.

        The search starts at the middle width and proceeds in both directions while the volume decreases.
        """
        total = sum(len(each) // 2 + 1 for each in kinds)  # a walk ends early

        def at(k: int) -> float:
            name, kernel = family[k]
            if name in found:
                return found[name].area
            count, budget = len(found) + 1, current_budget()
            if progress is not None:
                progress.trying(count, None, name)
                budget = progress.comparing()
            with within(budget):
                budget.check()
                fresh = self.entrant(name, kernel)
                budget.check()  # fits that time cut off have other volumes
            found[name] = fresh
            if progress is None:
                return fresh.area
            best = min(entrant.area for entrant in found.values())
            progress.tried(count, None, name, found[name].area, best, of=max(total, count))
            return found[name].area

        best = len(family) // 2
        for step in (1, -1):
            at(best)
            while 0 <= best + step < len(family) and at(best + step) < at(best):
                best += step
        return found

    def entrant(self, name: str, kernel: InputKernel) -> Entrant:
        """Fit a kernel: held-out rows give the thresholds, and the reference points the volumes."""
        recipe = resolved(replace(self.recipe, kernel=kernel), self.data)
        t, fields = self._thresholds(pose(recipe, self.data, np.random.default_rng(0)))
        levels = self.levels[:, None]
        reference = (np.asarray(field(self.reference, levels)) - field.bias(levels) for field in fields)
        volumes = np.mean([np.mean(h >= t, axis=0) for h in reference], axis=0)
        return Entrant(name, kernel, volumes)

    def _thresholds(self, problem: Problem) -> tuple[HostArray, list[Field]]:
        """Return the quantiles of h without t over held-out rows, (q,), and the fits that they belong to.

        From leave-one-out of one fit, or from fits without each fold if these were given or the closed form fails.
        """
        recipe, levels = self.recipe, self.levels
        if self.leave_one_out and problem.objective.one_class:
            solution = solve(problem.objective, tol=recipe.tol, max_iter=recipe.max_iter)
            left_out = leave_one_out(problem, solution, self.data.copies)
            if left_out is not None:
                h = left_out.values(levels) - left_out.field.bias(levels)
                return new_row_quantile(h, self.data.weight, levels), [left_out.field]
        fields = list(solved_one_by_one(problem, self.folds, recipe.solver, recipe.tol, recipe.max_iter))
        fits = HeldOutFits.of(problem, self.folds, fields, self.folds.rows.size)
        # h without t: fits to other rows have different thresholds
        return new_row_quantile(fits.values(levels), fits.omega, levels), fields


def _costs(some: int, n: float) -> dict[str, float]:
    """The expected seconds of the stages with one thread, which matter only relative to each other."""
    return {"race": 4.5 * some / MAX_SET_ROWS, "fit": 2.7 * (n / 3_000.0) ** 2}


def _levels(measure: Measure) -> HostArray:
    """The fractions at which volumes are compared: the atoms of μ below 1, or its 5% quantiles up to 90%."""
    atoms = measure.atoms()
    nodes = measure.ppf(np.arange(0.05, 0.91, 0.05)[:, None]) if atoms is None else atoms.nodes
    levels = np.unique(nodes[:, 0])
    return levels[levels < 1.0] if np.any(levels < 1.0) else levels


def _edges(X: HostArray) -> tuple[HostArray, HostArray]:
    """The range of each feature without outliers, (d,) each."""
    low, first, middle, third, high = np.quantile(X, [EDGE, 0.25, 0.5, 0.75, 1.0 - EDGE], axis=0)
    far = np.where(third > first, OUTLIER * (third - first) / IQR_OF_NORMAL, np.inf)
    return np.maximum(low, middle - far), np.minimum(high, middle + far)


def reference_points(X: HostArray, rng: np.random.Generator, count: int = 2_000) -> HostArray:
    """Sample the points that measure volumes, see the notes of :class:`InfiniteOneClassSVMCV`."""
    d = X.shape[1]
    low, high = _edges(X)
    margin = MARGIN * (high - low)
    sampled = rng.uniform(low - margin, high + margin, size=(count, d))
    if d <= MAX_BOX_FEATURES:
        return sampled
    sizes = np.unique(np.append(2 ** np.arange(int(np.log2(d)) + 1), d))
    changed = np.argsort(rng.random((count, d)), axis=1) < rng.choice(sizes, count)[:, None]
    return np.asarray(np.where(changed, sampled, X[rng.integers(len(X), size=count)]))


# ----------------------------------------------------------------------------------------------------- the model
@estimator
class InfiniteOneClassSVMCV(OutlierMixin, SelfTuned):
    """Nested density level sets for every outlier fraction, with the kernel and its width chosen by cross-validation.

    The result is an :class:`~infinitask.InfiniteOneClassSVM`, ``best_estimator_``; all its methods and fitted
    attributes are available here as well. No labels are needed: kernels compete by the area under the mass–volume curve
    on held-out rows, ∫ vol{x: h(x)(θ) ≥ t(θ)} dθ with t(θ) the θ-quantile of h over these rows. The candidates are
    Gaussian kernels with each feature in units of its own spread, Gaussian kernels in the metric of the covariance for
    dependent features, Gaussian kernels of the ranks of the features, and Laplacian kernels. In each family the search
    starts at the default width and changes it while the volume decreases. The winner is fitted to all rows.

    Parameters
    ----------
    kernels : "auto", or sequence of kernels
        Names or objects of input kernels that all compete in place of the candidates. A kernel given by name scales
        each feature by its own spread; an object uses the features unchanged.
    cv : int, splitter, iterable of (train, test) or None
        As in scikit-learn: a number means folds in the order of the rows. None: leave-one-out of at most 1000 rows in
        closed form, or five shuffled folds of them where it does not hold.
    n_jobs : int or None
        The number of families compared in parallel processes; the choice does not depend on it.
    nu, nested, exact_fractions
        As in :class:`~infinitask.InfiniteOneClassSVM`.
    task_kernel, task_gamma, bias_kernel, alpha, measure, quadrature, n_nodes, features, rank, certify, \
solver, tol, max_iter, device
        As there, for the final fit.
    random_state : None, int or numpy.random.RandomState
        Seed of the folds, of the points that measure volumes, and of the final fit.
    verbose : int
        1: a line for each kernel that is compared; otherwise as there.
    on_interrupt : {"raise", "best"}, default="raise"
        The effect of Ctrl-C. "raise" ends the fit. "best" ends the current stage with the best so far: a comparison
        with the best candidate, or the default if none was tried; the final fit with its best point, certified by
        ``dual_gap_``, and at most one held-out fit to calibrate it; the calibration with the folds that are done (with
        ``n_jobs`` an interrupted comparison always ends the fit).
    max_seconds : float or None
        The time that the whole fit may take, by the clock; None: no limit. Comparisons end early enough for the final
        fit and its calibration. If even these take too long, the final fit has fewer landmarks or a larger certified
        gap, with a warning. The result then depends on the speed of the machine.

    Attributes
    ----------
    best_estimator_ : InfiniteOneClassSVM
        Fitted to all rows with the chosen kernel.
    kernel_ : InputKernel
    cv_results_ : dict
        ``kernels`` (names), ``levels`` (q,), ``volumes`` (kernels, q): the fraction of the reference points in the set
        that excludes a fraction ``levels`` of the held-out rows; ``areas`` (kernels,): their means; and ``best``, the
        position of the chosen kernel.

    Notes
    -----
    With up to three features the reference points are uniform in a box around the data, and volumes are volumes. In
    higher dimensions no point of a box is near the data, and all kernels would look alike. There, a reference point is
    a row in which some features (one, two, four, …, or all) are sampled again from their range. Hence the sets should
    also exclude points that differ from a row in a few features.

    Examples
    --------
    >>> import numpy as np
    >>> from infinitask.datasets import make_mixture
    >>> from infinitask import InfiniteOneClassSVMCV
    >>> X = make_mixture(150, random_state=0)
    >>> model = InfiniteOneClassSVMCV(kernels=["rbf", "laplacian"], random_state=0).fit(X)
    >>> new = make_mixture(1000, random_state=1)
    >>> bool(abs(np.mean(model.predict(new, nu=0.2) == -1) - 0.2) < 0.08)
    True
    >>> results = model.cv_results_
    >>> bool(results["areas"][results["best"]] == results["areas"].min())
    True
    """

    _model: ClassVar = InfiniteOneClassSVM
    _default_task: ClassVar = "nu"

    nu: Any = 0.1
    nested: bool = False
    exact_fractions: bool | str = "auto"
    bias_kernel: Any = "task"
    alpha: float | str = "auto"
    tol: float = 1e-4

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Choose the kernel and learn the level sets.

        Parameters
        ----------
        X : array (n, d), :class:`~infinitask.streaming.Blocks`, or array or frame of Dask
            For blocks and Dask collections, the kernel is chosen on a sample of at least 20 000 rows.
        y : ignored
        sample_weight : array (n,) or None
        """
        with reported(self, X, y, sample_weight, tuning=True):
            given, rows, progress = self._begin(X, None, sample_weight)
            comparison = VolumeComparison.of(rows, self.cv, check_random_state(self.random_state))
            merged = Data.canonical(rows.X, None, rows.weight)
            kinds = families(self.kernels, merged.X, stationary_only=only_stationary(rows.recipe))
            progress.expect(_costs(comparison.data.weight.size, float(np.sum(merged.copies))))
            with one_blas_thread():
                entrants = comparison.compare(kinds, self.n_jobs, progress, keeps_best=self.on_interrupt == "best")
            if not entrants:  # the default, or the first kernel given by the user
                name, kernel = kinds[0][len(kinds[0]) // 2]
                entrants = [Entrant(name, kernel, np.full(comparison.levels.size, np.inf))]
            areas = [entrant.area for entrant in entrants]
            best = int(np.argmin(areas))
            progress.say(f"chosen: {entrants[best].name}")
            self.kernel_ = entrants[best].kernel
            chosen = self._estimator(kernel=self.kernel_)
            self._fitted(chosen, given, progress)
            self.cv_results_ = {
                "kernels": [entrant.name for entrant in entrants],
                "levels": comparison.levels,
                "volumes": np.array([entrant.volumes for entrant in entrants]),
                "areas": np.array(areas),
                "best": best,
            }
            self.best_estimator_ = chosen
        return self
