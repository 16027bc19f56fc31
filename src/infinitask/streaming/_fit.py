"""Fits of data that do not fit into memory, or are stored on a device or on other machines.

    learn_stream(recipe, source, survey, sample, classes) → Fit

A sample of the rows determines everything that a fit chooses: units, bandwidth, λ and landmarks. The solver starts at a
rough solution of the sample's problem, and uses its curvature as metric. The objective, its gradient and its duality
gap are sums over *all* rows: the certificate is the distance to the best function of these features on all the data. A
few dozen passes over the rows suffice.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from scipy.linalg import block_diag

from infinitask._base.arrays import HostArray, as_like, to_host
from infinitask.features import KernelMap, PivotedCholesky, feature_recipe
from infinitask.features._cholesky import Inverse
from infinitask.field import Problem
from infinitask.fitting._data import Data
from infinitask.fitting._fit import Fit
from infinitask.fitting._learn import learn
from infinitask.fitting._recipe import Recipe, Units
from infinitask.kernels import Precomputed
from infinitask.objective import Objective, PartedRows, Smoothing
from infinitask.objective._terms import compiles
from infinitask.solvers import Eigenbasis, Solution, Start, solve
from infinitask.streaming._blocks import RowSource
from infinitask.streaming._parts import PartMaker, Targets
from infinitask.streaming._sampling import Survey
from infinitask.tasks.base import ROUGH_EVALUATIONS, ROUGH_GAP

SAMPLE_ROWS, SAMPLE_ROWS_PER_FEATURE = 20_000, 8
"""The number of rows of the sample: 20 000, or 8 per feature if that is more."""


def sample_size(recipe: Recipe) -> int:
    """The number of rows of the sample for a recipe."""
    rank = feature_recipe(recipe.features, recipe.rank).rank
    return max(SAMPLE_ROWS, SAMPLE_ROWS_PER_FEATURE * int(rank or 0))


def holds_all(survey: Survey) -> bool:
    """Whether the sample contains all rows: they fit into memory then, and solvers reach any gap."""
    return int(survey.X.shape[0]) == survey.n


def learn_stream(
    recipe: Recipe, source: RowSource, survey: Survey, sample: Data, classes: HostArray | None = None
) -> Fit:
    """Fit rows in parts. Calls :func:`~infinitask.fitting.learn` on a sample, or on all rows if it contains them.

    Parameters
    ----------
    recipe : Recipe
    source : RowSource
        All rows.
    survey : Survey
        The result of one pass over them.
    sample : Data
        Their sample, with numeric targets.
    classes : ndarray (2,) or None
        The labels, if the targets are classes.

    Returns
    -------
    Fit
        Its ``problem`` is that of the sample.
    """
    return learn(recipe, sample, stream=None if holds_all(survey) else _Rows(source, survey, classes))


@final
@dataclass(frozen=True, eq=False)
class _Rows:
    """All rows of a source, in the form required by :class:`~infinitask.fitting._fit.Stream`."""

    source: RowSource
    survey: Survey
    classes: HostArray | None

    @property
    def n(self) -> int:
        """The number of rows."""
        return self.survey.n

    def described(self, problem: Problem) -> Problem:
        """Return the problem of the sample with features that record the origin of their landmarks."""
        k, phi = int(self.survey.X.shape[0]), problem.phi
        if k == self.n or not isinstance(phi.map, KernelMap):
            return problem
        described = f"{phi.description}; landmarks from a sample of {k} of {self.n} rows"
        return replace(problem, phi=replace(phi, description=described))

    def solve(self, recipe: Recipe, problem: Problem, units: Units) -> Solution:
        """Solve the problem of all rows, starting at a rough solution of the sample."""
        rows = self._parted(recipe, problem, units)
        if recipe.verbose:
            r, s = problem.objective.shape
            features = f"{problem.phi.description}; {r} × {s} unknowns"
            print(f"{self.n} rows; {features}; {rows.parts.description}", file=sys.stderr)
        basis = Eigenbasis.of(problem.objective)
        rough = solve(
            problem.objective,
            basis=basis,
            solver=recipe.solver,
            tol=max(recipe.tol, ROUGH_GAP),
            max_iter=min(recipe.max_iter, ROUGH_EVALUATIONS),
        )
        parted = replace(problem.objective, elsewhere=rows)
        solution = solve(
            parted,
            solver="lbfgs",
            tol=recipe.tol,
            max_iter=recipe.max_iter,
            verbose=recipe.verbose,
            start=Start(rough.z, Smoothing(rough.smoothing.kappa), rough.floor),
            basis=basis.over(parted),
        )
        if recipe.verbose:
            print(f"{rows.parts.passes} passes over the rows, after the first", file=sys.stderr)
        return solution

    def _parted(self, recipe: Recipe, problem: Problem, units: Units) -> PartedRows:
        """Return all rows in parts, with the features of the sample's problem."""
        units = Units() if recipe.task.loss.degree is None else units
        y = self.survey.y
        phi, objective = problem.phi.map, problem.objective
        r = phi.rank
        columns: Any = phi
        left = np.eye(r)
        if isinstance(phi, KernelMap):
            T = phi.transform
            columns = phi.with_transform(np.empty((r, 0))).columns_of  # T need not be sent with them
            left = to_host(T.beside(objective.rows[:1, :]) if isinstance(T, Inverse) else T).astype(np.float64)
        if problem.constant is not None:
            left = block_diag(problem.constant, left)
        terms = tuple(objective.host_integrals)
        pairs = self.n * sum(int(term.theta.shape[0]) for term in terms)
        make = PartMaker(
            columns=columns,
            constant=problem.constant is not None,
            objective=Objective(
                np.empty((0, r)),
                np.empty(0),
                terms,
                objective.alpha,
                objective.alpha_bias,
                objective.bias_linear,
                compiled=compiles(pairs) and recipe.device is None,
                alone=False,
            ),
            targets=None if y is None else Targets(self.classes, units),
            n=self.n,
            mass=self.survey.mass,
            given=self.survey.X.shape[1] + (0 if y is None else y[0].size) + 1,
            width=int(left.shape[0]),
            device=recipe.device,
        )
        return PartedRows(self.source.parts(make), as_like(left, objective.rows[:1, :]))


def check_parts(recipe: Recipe, *, sampled: bool = True) -> None:
    """Raise an error if a recipe needs all rows at once, see :func:`needs_all_rows`.

    Parameters
    ----------
    recipe : Recipe
    sampled : bool
    """
    reason = needs_all_rows(recipe, sampled=sampled)
    if reason is not None:
        raise ValueError(reason)


def needs_all_rows(recipe: Recipe, *, sampled: bool = True) -> str | None:
    """Return the reason why rows cannot be visited in parts, as a sentence; None if they can.

    Parameters
    ----------
    recipe : Recipe
    sampled : bool
        Whether there are more rows than in the sample. False: all rows are in memory, or this is not known yet.
    """
    if recipe.task.order.hard:
        return (
            "noncrossing='hard' was given for rows that are visited in parts; the proof of order needs all of them in "
            "memory. Use a weight such as noncrossing=1.0, or 'rearrange'."
        )
    if recipe.task.named:
        return (
            f"{recipe.task.name_of(recipe.task.named[0])} was given for rows that are visited in parts; the penalty is "
            "then a mean over the visited rows. Leave it out."
        )
    if recipe.certify is not None or recipe.rank == "auto":
        asked = "rank='auto'" if recipe.certify is None else f"certify={recipe.certify!r}"
        return (
            f"{asked} was given for rows that are visited in parts; the comparison with the kernel itself needs all "
            "pairs of rows in memory. Give rank a number, or fit a sample of the rows to find one."
        )
    if isinstance(recipe.kernel, Precomputed) or (isinstance(recipe.kernel, str) and recipe.kernel == "precomputed"):
        return (
            "kernel='precomputed' was given for rows that are visited in parts; use a kernel that is a function of "
            "inputs."
        )
    if sampled and isinstance(feature_recipe(recipe.features, recipe.rank), PivotedCholesky):
        return (
            f"features={recipe.features!r} was given for rows that are visited in parts; landmarks come from a sample "
            "of them, and features of a sample are not exact for the others. Use features='auto' or 'nystroem', or "
            "give arrays that fit into memory."
        )
    if sampled and recipe.solver == "newton":
        return (
            "solver='newton' was given for rows that are visited in parts; its steps need all rows in memory. Use "
            "solver='auto' or 'lbfgs', or give arrays that fit into memory."
        )
    return None
