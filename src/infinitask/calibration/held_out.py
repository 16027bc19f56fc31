"""Held-out predictions: the engine of calibration and tuning.

A row that a fit has seen looks better than a new one. Hence every prediction that calibrates or compares models comes
from a fit that has not seen the row. :class:`~infinitask.calibration._folds.Folds` contain the held-out rows.

=====================================  =====================================  ========================================
fits                                   solved                                 used for
=====================================  =====================================  ========================================
:class:`HeldOut`, bound to a fit: its  one after the other or together, in    thresholds of level sets, decisions,
problem without each fold              the features of the fit                class probabilities
``solved_one_by_one``, ``JointFits``   the same, for a problem that is posed  the race of self-tuned models, the map of
(``_folds``): a posed problem          once for many λ or kernels             levels, volumes of level sets
without each fold
:func:`out_of_fold`: whole models,     each by its own ``fit``                ``score_path``, ``OptunaSearch``,
tuning and calibration included                                               ``CrossConformal``, out-of-fold scores
=====================================  =====================================  ========================================

The ranking of kernels before a race uses the closed form of leave-one-out instead
(:mod:`infinitask.fitting._defaults`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self, final

import numpy as np
from sklearn.base import clone
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.parallel import Parallel, delayed

from infinitask._base.arrays import Array, HostArray, as_like, one_blas_thread, to_host
from infinitask._base.budget import Budget, current_budget, within
from infinitask._base.events import CutShort, Stage, tell
from infinitask.calibration._folds import Folds, JointFits, Splits, solved_one_by_one, stratified
from infinitask.field import Field, Problem
from infinitask.objective import Smoothing
from infinitask.solvers import MAX_SPLIT_PAIRS, Eigenbasis, Solution, Splitting, Start

FOLDS = 10
"""The number of folds that calibrate a fit. With five, ν = 0.05 on 1000 rows gives fractions of 0.03 to 0.045."""

ROWS_FOR_ONE_FOLD = 10_000
"""From this number of rows on, a single fit holds out a tenth of them: 1000 values suffice for a threshold."""

FEW_FOLDS, FEW_PAIRS = 5, 2_000
"""The number of folds solved together, with more than this number of rows × fields. With fewer there are ten, and the
log loss of 14 tables of two classes is 0.6% smaller."""


@final
@dataclass(frozen=True, eq=False)
class HeldOut:
    """The engine for held-out predictions of one fit.

    Parameters
    ----------
    problem : Problem
    field : Field
        Its solution.
    solution : Solution
        Its solution, at which fits without a fold start.
    copies : ndarray (n,)
        The number of equal rows that each row represents.
    solver : str
    tol : float
        The gap of the fit.
    max_iter : int
    verbose : int
    sampled : bool
        Whether the rows are a small sample of the fitted rows: fits without them are not needed then.
    """

    problem: Problem
    field: Field
    solution: Solution
    copies: HostArray
    solver: str = "auto"
    tol: float = 1e-4
    max_iter: int = 10_000
    verbose: int = 0
    sampled: bool = False

    @property
    def count(self) -> float:
        """The number of rows that the rows of the problem represent."""
        return float(np.sum(self.copies))

    def fits(self, tol: float) -> HeldOutFits:
        """Return fits without each of ten folds, or without one fold if there are many rows, one after the other.

        There are fewer folds if time runs out, but at least one. An interrupt ends them as well, if the best so far is
        kept; before the end of the first one, the fit itself takes its place.

        Parameters
        ----------
        tol : float
            Their duality gap.
        """
        problem = self.problem
        weight = to_host(problem.objective.sample_weight).astype(np.float64)
        if self.sampled:
            return self._itself(weight)
        folds = Folds.of_copies(self.copies, FOLDS, only_first=self.count >= ROWS_FOR_ONE_FOLD)
        fields, budget = list[Field](), current_budget()
        # a solution that time cuts off near its start would have seen the fold
        with one_blas_thread(), within(Budget()):
            basis = Eigenbasis.of(problem.objective)
            start = Start(self.solution.z, Smoothing(self.solution.smoothing.kappa))
            solved = solved_one_by_one(problem, folds, self.solver, tol, self.max_iter, start=start, basis=basis)
            for k in range(1, folds.count + 1):
                if fields and budget.over:
                    break
                try:
                    tell(Stage(f"held-out fit {k} of {folds.count}", (k - 1) / folds.count))
                    if self.verbose:
                        print(f"calibration: fit without fold {k} of {folds.count}", file=sys.stderr, flush=True)
                    fields.append(next(solved))
                except KeyboardInterrupt as interrupt:
                    budget.ended_by(interrupt)
                    tell(CutShort(f"interrupted: calibrated with {len(fields)} of {folds.count} folds"))
                    break
        if not fields:
            return self._itself(weight)
        folds = folds.only(folds.fold < len(fields))
        count = float(np.sum(self.copies[folds.rows] * folds.fraction))
        return HeldOutFits.of(problem, folds, fields, count)

    def _itself(self, weight: HostArray) -> HeldOutFits:
        """The fit itself in place of fits that have not seen the rows."""
        rows = np.arange(weight.size)
        return HeldOutFits(rows, np.zeros_like(rows), _features(self.problem), weight, self.count, [self.field])

    def stratified(self, label: HostArray, tol: float, n_fields: int = 1, *, whole: bool = False) -> HeldOutFits:
        """Return fits without each of several folds that have equal fractions of all labels, solved together.

        They start at the fit itself, which has seen the held-out rows: with a larger gap than :meth:`_determining_gap`,
        their predictions would be too good. If the bias has unknowns of its own, the result is that of :meth:`fits`.

        Parameters
        ----------
        label : ndarray (n,) of int
            The label of each row of the problem, 0, 1, …
        tol : float
            The largest duality gap.
        n_fields : int
            The number of fields that each fit learns.
        whole : bool
            Whether the fit to all rows is solved with them, for :meth:`HeldOutFits.on_scale_of`.
        """
        objective = self.problem.objective
        if self.sampled:
            return self._itself(to_host(objective.sample_weight).astype(np.float64))
        # a table of categories has few different rows: copies of one must be in several folds
        unmerged = self.unmerged() if Splitting.solves(objective) else None
        if unmerged is None:
            return self.fits(self._determining_gap(tol))
        each, rows = unmerged
        count = FOLDS if rows.size * n_fields <= FEW_PAIRS else FEW_FOLDS
        pairs = rows.size * self.problem.quadrature.weights.size
        folds = Folds.of_labels(stratified(label[rows], count), int(np.clip(MAX_SPLIT_PAIRS // pairs - 1, 1, count)))
        found = each._together(folds, each._determining_gap(tol), whole=whole)
        return replace(found, rows=rows[found.rows])

    def _determining_gap(self, tol: float) -> float:
        """The largest gap, at most ``tol``, at which a fit is closer to its optimum than to h = b(θ).

        (λ/2)‖C − C*‖² ≤ P − P*, so it must be below the part of the ridge in P. With a rare class and a large ridge
        that part is below a thousandth.
        """
        objective, z = self.problem.objective, self.solution.z
        r, s = objective.shape
        varying = z[: r * s].reshape(r, s)[int(objective.constant_first) :]
        ridge = 0.5 * objective.alpha * float(np.sum(varying**2))
        primal = abs(objective.evaluate(z, objective.widest).primal)
        # single precision reaches no smaller gap
        return min(tol, max(3e-6, ridge / primal)) if primal > 0.0 else tol

    def unmerged(self) -> tuple[HeldOut, HostArray] | None:
        """Return the same with a row for each copy, and the row of the problem that it is a copy of.

        None if there would be many more rows.
        """
        copies = np.maximum(np.round(self.copies), 1.0)
        if np.sum(copies) > max(2 * copies.size, ROWS_FOR_ONE_FOLD):
            return None
        rows = np.repeat(np.arange(copies.size), copies.astype(np.intp))
        objective, solution = self.problem.objective, self.solution
        weight = to_host(objective.sample_weight).astype(np.float64) / copies
        lighter = replace(objective, sample_weight=as_like(weight, objective.sample_weight))
        problem = replace(self.problem, objective=lighter).only(rows)
        solution = replace(solution, smoothing=solution.smoothing.reordered(rows))
        return replace(self, problem=problem, solution=solution, copies=np.ones(rows.size)), rows

    def _together(self, folds: Folds, tol: float, *, whole: bool) -> HeldOutFits:
        """Solve the fits without each fold together, in single precision with common eigenvectors."""
        problem, objective = self.problem, self.problem.objective
        if self.verbose:
            print(f"calibration: fits without each of {folds.count} folds", file=sys.stderr, flush=True)
        try:
            tell(Stage(f"held-out fits without each of {folds.count} folds"))
            # a solution that time cuts off near its start would have seen the fold
            with one_blas_thread(), within(Budget()):
                single = isinstance(objective.rows, np.ndarray)
                joint = JointFits.of(problem, folds.and_whole() if whole else folds, single=single, leading=True)
                fields = joint.started(self.solution).solved(objective.alpha, tol, every=20).fields()
        except KeyboardInterrupt as interrupt:
            current_budget().ended_by(interrupt)
            tell(CutShort("interrupted: calibrated without held-out rows"))
            return self._itself(to_host(objective.sample_weight).astype(np.float64))
        omega = to_host(objective.sample_weight).astype(np.float64)[folds.rows]
        count = self.count * float(np.sum(omega))
        return HeldOutFits.of(problem, folds, fields[: folds.count], count, fields[-1] if whole else None)


@final
@dataclass(frozen=True, eq=False)
class HeldOutFits:
    """Fits that each hold out some rows, and these rows.

    Parameters
    ----------
    rows : ndarray (k,) of int
        Positions of the held-out rows; a row that represents several may be repeated.
    fold : ndarray (k,) of int
        The fit that has not seen them.
    phi : array (k, r)
        Their features.
    omega : ndarray (k,)
        Their weights, summing to one.
    count : float
        The number of rows that they represent.
    fields : list of Field
        The field of each fold.
    whole : Field or None
        The field of the fit to all rows that was solved with them.
    """

    rows: HostArray
    fold: HostArray
    phi: Array
    omega: HostArray
    count: float
    fields: list[Field]
    whole: Field | None = None

    @classmethod
    def of(cls, problem: Problem, folds: Folds, fields: list[Field], count: float, whole: Field | None = None) -> Self:
        """Create the fits of a problem without each fold; ``count`` rows are held out."""
        omega = to_host(problem.objective.sample_weight).astype(np.float64)[folds.rows] * folds.fraction
        return cls(
            folds.rows, folds.fold, _features(problem)[folds.rows, :], omega / np.sum(omega), count, fields, whole
        )

    def values(self, tasks: HostArray, some: slice = slice(None)) -> HostArray:
        """h without the bias at tasks (q,) or (q, d), by fits that have not seen the rows: (k, q), or a slice of k."""
        phi, fold = self.phi[some, :], self.fold[some]
        values = np.empty((fold.size, len(tasks)))
        for k, field in enumerate(self.fields):
            values[fold == k] = _without_bias(phi[fold == k], field, tasks)
        return values

    def with_medians_of(self, field: Field, phi: Array, levels: HostArray) -> HostArray:
        """h without the bias at the levels, (k, q), each fit shifted to the medians of the whole ``field``.

        With few features h is almost flat near the rows, and fits differ more from each other than h differs between
        rows: quantiles over all of them would separate fits, not rows. A fit is shifted by the median difference at the
        rows that both have seen. It is shifted only if the medians of its own rows and of the held-out ones differ by
        less: with a narrow kernel h is larger at rows that a fit has seen, which is not a difference of level.

        Parameters
        ----------
        field : Field
            The fit of all rows.
        phi : array (n, r)
            Features of all rows.
        levels : ndarray (q,)
        """
        values = self.values(levels)
        whole = _without_bias(phi, field, levels)
        for k, part in enumerate(self.fields):
            held_out = np.zeros(whole.shape[0], dtype=bool)
            held_out[self.rows[self.fold == k]] = True
            if np.all(held_out) or not np.any(held_out):
                continue
            h = _without_bias(phi, part, levels)
            apart = np.median(h[~held_out] - whole[~held_out], axis=0)
            own = np.abs(np.median(h[~held_out], axis=0) - np.median(h[held_out], axis=0))
            values[self.fold == k] -= np.where(own < np.abs(apart), apart, 0.0)
        return values

    def on_scale_of(self, field: Field, levels: HostArray) -> HostArray:
        """h at the levels, (k, q), on the scale of the ``field`` of all rows.

        The level of h depends on the few rows of a rare class that a fit has seen: each fit is shifted to the mean of
        the field. With a large ridge it would differ more between fits than h differs between rows. If that is so, the
        field also has an error of its own, which its gap allows. Its regression on the more accurate ``whole`` says how
        much of its spread is signal.
        """
        middle = to_host(as_like(self.omega, self.phi) @ self.phi).astype(np.float64)
        means = np.stack([(middle @ part.coef) @ part.psi(levels).T for part in self.fields])
        values = self.values(levels) - means[self.fold]
        own = _without_bias(self.phi, field, levels)
        mean = self.omega @ own
        if self.whole is not None:
            whole = _without_bias(self.phi, self.whole, levels)
            apart = self.omega[:, None] * (own - mean)
            size, shared = (np.sum(apart * part, axis=0) for part in (own - mean, whole))
            values = values * np.divide(size, shared, out=0.0 * size, where=shared > 0.0)
        return np.asarray(values + mean + field.bias(levels))


def _without_bias(phi: Array, field: Field, tasks: HostArray) -> HostArray:
    """h without the bias, (rows, q)."""
    psi = as_like(field.psi(tasks).T, phi)  # fewer features of tasks than tasks, or the reverse
    coef = as_like(field.coef, phi)
    return to_host((phi @ coef) @ psi if psi.shape[0] < psi.shape[1] else phi @ (coef @ psi))


def _features(problem: Problem) -> Array:
    """φ of all rows, without a constant column for the bias."""
    return problem.objective.rows if problem.constant is None else problem.objective.rows[:, 1:]


# ------------------------------------------------------------------------------------------------- whole models
def out_of_fold(
    job: Callable[[Any, dict[str, Any], Any, Any], Any],
    model: Any,
    X: Any,
    y: Any,
    splits: Splits,
    *,
    weight: HostArray | None = None,
    parallel: Parallel | None = None,
) -> list[Any]:
    """Return the results of a job for each fold, as a list; folds are independent.

    Parameters
    ----------
    job : callable
        (a copy of the model, the arguments of its ``fit`` to the training rows, held-out X, held-out y) → anything,
        such as scores of the held-out rows.
    model : estimator
        It is copied.
    X, y : array-like
        y may be None.
    splits : list of (train, test)
    weight : ndarray (n,) or None
    parallel : joblib.Parallel or None
        Runs the folds as jobs.
    """
    folds = (delayed(_fold)(job, model, X, y, weight, train, test) for train, test in splits)
    return list((parallel or Parallel(n_jobs=1))(folds))


def _fold(
    job: Callable[..., Any], model: Any, X: Any, y: Any, weight: HostArray | None, train: HostArray, test: HostArray
) -> Any:
    model = clone(model)
    X_train, y_train = _safe_split(model, X, y, train)
    given = {"X": X_train, "y": y_train, "sample_weight": None if weight is None else weight[train]}
    seen = {name: value for name, value in given.items() if value is not None}
    return job(model, seen, *_safe_split(model, X, y, test, train))
