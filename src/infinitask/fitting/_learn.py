"""The functional core: the one way to a fit.

    learn(recipe, data, memory=None, stream=None) → Fit

Estimators, self-tuned models, paths and experiments all use it, for rows in memory and for rows elsewhere. A
:class:`Recipe` says what to learn and how, :class:`Data` are rows with weights, a :class:`Memory`, if there is one,
holds what earlier fits left, and a :class:`Stream` are rows that are visited in parts. Everything that is read after a
fit is read from its :class:`Fit`.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Protocol, final

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from infinitask._base.arrays import one_blas_thread
from infinitask.calibration.held_out import HeldOut
from infinitask.features import FeatureRecipe, NodeMap
from infinitask.field import Field
from infinitask.fitting._data import Data
from infinitask.fitting._defaults import resolved, with_width
from infinitask.fitting._kernel_gap import check_certifiable, check_map, kernel_gap
from infinitask.fitting._metric_learning import with_learnt_kernels
from infinitask.fitting._pose import pose
from infinitask.fitting._recipe import Recipe, in_units
from infinitask.fitting._uncertified import silenced, with_few_evaluations, without_false_certificate
from infinitask.fitting._units import Units
from infinitask.fitting._warm_start import Memory, alike
from infinitask.measures import Quadrature
from infinitask.objective import Smoothing
from infinitask.problem import Problem
from infinitask.solvers import Eigenbasis, Reason, Solution, Start, solve, solve_in_order, suits_levels

SMOOTH_BIAS_RIDGE, ROUGH_GAP, ROUGH_EVALUATIONS = 1e-6, 1e-2, 300
"""Ridge of the smooth bias with which a fit with a free one begins, its duality gap, and the most evaluations."""

FIRST_RANK, LARGEST_RANK, STILL_MOVES = 250, 4_000, 0.98
"""Ranks that "auto" begins with, doubles up to, and the fraction of the last kernel gap below which the next one must
be for it to go on."""

SMALL_KERNEL_GAP, GAPS_OF_RANK = 1e-2, 10.0
"""A rank is enough where the kernel gap is at most the first, or the second times the tolerance."""

MAX_REFITS = 4
"""How often a fit is repeated with a wider kernel if its task asks for it."""


class Stream(Protocol):
    """Rows that are visited in parts; the data of the fit are a sample of them."""

    @property
    def n(self) -> int:
        """How many rows there are."""
        ...

    def described(self, problem: Problem) -> Problem:
        """The problem of the sample, whose features say where their landmarks come from."""
        ...

    def solve(self, recipe: Recipe, problem: Problem, units: Units) -> Solution:
        """The solution over all rows, in the features of the problem of the sample."""
        ...


@final
@dataclass(frozen=True, eq=False)
class Fit:
    """The result of a fit.

    Parameters
    ----------
    field : Field
        h.
    solution : Solution
        The unknowns, the certified bounds and why the solver stopped.
    recipe : Recipe
        The recipe that was used, with everything that the data decided as numbers.
    given : Recipe
        The recipe as it was given.
    problem : Problem
        The problem that was posed, in the units of the recipe, with the features of the training rows.
    smallest_slope : float or None
        Where order is a constraint: ∂h/∂θ is proved to be at least this, for all θ and all training inputs.
    calibration : object or None
        What the task calibrated after the fit: see :meth:`~infinitask.tasks.Task.finish`.
    kernel_gap : float or None
        Where it was asked for: the gap to the model of the kernel itself.
    n_rows : float
        How many rows of data there were, before equal ones were merged.
    n_sampled : float or None
        Where the problem is that of a sample: its rows, before equal ones were merged; None: it is that of all rows.
    """

    field: Field
    solution: Solution
    recipe: Recipe
    given: Recipe
    problem: Problem
    smallest_slope: float | None = None
    calibration: Any = None
    kernel_gap: float | None = None
    n_rows: float = 0.0
    n_sampled: float | None = None

    @property
    def quadrature(self) -> Quadrature:
        """Nodes and weights on Θ."""
        return self.problem.quadrature

    def warnings(self) -> Iterator[str]:
        """Sentences for the cases in which a certified optimum is still a poor model, each with what to do.

        A duality gap says that the problem is solved, not that it was the right problem.
        """
        if self.problem.finding is not None:
            yield self.problem.finding.sentence
        yield from self.recipe.task.warnings(self)


def learn(recipe: Recipe, data: Data, memory: Memory | None = None, stream: Stream | None = None) -> Fit:
    """Pose the problem of a recipe on some data, solve it, and calibrate the fit.

    Parameters
    ----------
    recipe : Recipe
    data : Data
    memory : Memory or None
        What earlier fits left; this one is added to it.
    stream : Stream or None
        All rows, where the data are a sample of them.

    Returns
    -------
    Fit

    Examples
    --------
    >>> import numpy as np
    >>> from infinitask.datasets import make_sine
    >>> from infinitask.tasks import QuantileTask
    >>> X, y = make_sine(50, random_state=0)
    >>> fit = learn(Recipe(QuantileTask(), n_nodes=10), Data.canonical(X, y, np.ones(50)))
    >>> fit.field(X[:2], [0.1, 0.9]).shape
    (2, 2)
    >>> fit.solution.gap <= fit.recipe.tol
    True
    """
    if not isinstance(recipe, Recipe):
        raise TypeError(
            f"{type(recipe).__name__} was given; learn takes a Recipe. Of an estimator, pass estimator.recipe()."
        )
    if recipe.certify is not None or recipe.rank == "auto":
        check_certifiable(recipe)
    rng, given = generator(recipe.random_state), recipe
    with one_blas_thread():
        if getattr(recipe.kernel, "needs_targets", False):
            recipe = (with_learnt_kernels if memory is None else memory.with_learnt_kernels)(recipe, data)
        # a kernel that is given as an object has its width already
        open_width = isinstance(recipe.kernel, str) and recipe.gamma == "auto" and stream is None
        recipe = resolved(recipe, data, rows=None if stream is None else stream.n)
        if recipe.rank == "auto":
            fit = _with_grown_rank(recipe, data, memory, rng)
        else:
            fit = _fitted(recipe, data, memory, copy.deepcopy(rng), stream)
            for _ in range(MAX_REFITS if open_width and hasattr(recipe.kernel, "kernel") else 0):
                factor = recipe.task.widened(fit)
                if factor is None:
                    break
                recipe = replace(recipe, kernel=with_width(recipe.kernel, factor))
                fit = _fitted(recipe, data, memory, copy.deepcopy(rng), stream)
        return _calibrated(replace(fit, given=given), data, sampled=stream is not None)


def _fitted(
    recipe: Recipe, data: Data, memory: Memory | None, rng: np.random.Generator, stream: Stream | None = None
) -> Fit:
    """The fit of a resolved recipe."""
    posed, rows, units = in_units(recipe), in_units_of(recipe, data), recipe.units or Units()
    unit = float(posed.alpha) / float(recipe.alpha) if recipe.alpha else 1.0
    problem = pose(posed, rows, rng) if memory is None else memory.pose(posed, rows, rng, unit)
    problem = problem if stream is None else stream.described(problem)
    if recipe.verbose and stream is None:
        r, s = problem.objective.shape
        print(f"{problem.phi.description}; {r} × {s} unknowns", file=sys.stderr)
        if units.spread != 1.0:
            print(f"the objective below is that of y in units of its spread, {units.spread:.3g}", file=sys.stderr)
    if recipe.certify is not None:
        check_map(problem.phi.map)
    posed, smallest_slope = posed if problem.finding is None else with_few_evaluations(posed, problem), None
    with nullcontext() if problem.finding is None else silenced(problem):
        if stream is not None:
            solution = stream.solve(posed, problem, units)
        else:
            near = _near_free_bias(posed, rows, problem, rng) if memory is None else None
            solution, smallest_slope = _solved(posed, problem, memory, near)
    certified = None if recipe.certify is None else kernel_gap(posed, rows, problem, solution)
    solution = solution if problem.finding is None else without_false_certificate(problem, solution)
    certified = np.inf if certified is not None and solution.reason is Reason.NOT_CERTIFIED else certified
    if recipe.verbose and certified is not None:
        print(f"kernel gap {certified:.1e}", file=sys.stderr)
    field = units.field(problem.field(solution.z))
    # a smoothing around a centre holds a number for every pair: that is not kept
    solution = replace(solution, smoothing=Smoothing(solution.smoothing.kappa), dual_at=None)
    solution = units.solution(solution, recipe.loss.degree or 0)
    counted = float(np.sum(data.multiplicity))
    return Fit(
        field,
        solution,
        recipe,
        recipe,
        problem,
        None if smallest_slope is None else units.spread * smallest_slope,
        kernel_gap=certified,
        n_rows=counted if stream is None else float(stream.n),
        n_sampled=None if stream is None else counted,
    )


def _calibrated(fit: Fit, data: Data, *, sampled: bool) -> Fit:
    """The fit with what its task calibrates afterwards."""
    recipe = fit.recipe
    held_out = HeldOut(
        fit.problem,
        fit.field,
        fit.solution,
        data.multiplicity,
        recipe.solver,
        recipe.tol,
        recipe.max_iter,
        recipe.verbose,
        sampled,
    )
    return replace(fit, calibration=recipe.task.finish(fit, held_out))


def _with_grown_rank(recipe: Recipe, data: Data, memory: Memory | None, rng: np.random.Generator) -> Fit:
    """The fit with the number of features that a small kernel gap takes.

    The generator is the same for every rank, and so landmarks that are drawn at random, or are pivots, are those of the
    rank before and more.
    """
    enough = max(GAPS_OF_RANK * recipe.tol, SMALL_KERNEL_GAP)
    ranks, gaps = [FIRST_RANK], []
    while True:
        fit = _fitted(_with_rank(recipe, ranks[-1]), data, memory, copy.deepcopy(rng))
        assert fit.kernel_gap is not None
        gaps.append(fit.kernel_gap)
        moves = len(gaps) < 2 or gaps[-1] < STILL_MOVES * gaps[-2]
        largest = min(LARGEST_RANK, int(fit.problem.phi.values.shape[0]))
        if gaps[-1] <= enough or fit.problem.phi.exact or ranks[-1] >= largest or not moves:
            break
        ranks.append(min(2 * ranks[-1], largest))
    way = ", ".join(f"{gap:.1e} at {rank}" for rank, gap in zip(ranks, gaps, strict=True))
    phi = replace(fit.problem.phi, description=f"{fit.problem.phi.description}; kernel gap {way}")
    return replace(fit, problem=replace(fit.problem, phi=phi))


def _with_rank(recipe: Recipe, rank: int) -> Recipe:
    """The recipe with a number of features, and a certificate."""
    features = recipe.features
    if isinstance(features, FeatureRecipe):
        if features.rank is not None:
            raise ValueError(
                f"rank='auto' was given with features={features!r}, which have a rank of their own. Leave one of them "
                "out."
            )
        features = clone(features).set_params(rank=rank)
    return replace(recipe, features=features, rank=rank, certify="kernel")


def in_units_of(recipe: Recipe, data: Data) -> Data:
    """The data with targets in the units of a recipe.

    Parameters
    ----------
    recipe : Recipe
    data : Data

    Examples
    --------
    >>> from infinitask import InfiniteQuantileRegressor
    >>> recipe = replace(InfiniteQuantileRegressor().recipe(), units=Units(centre=5.0, spread=2.0))
    >>> in_units_of(recipe, Data.canonical([[0.0], [1.0]], [5.0, 9.0])).y
    array([0., 2.])
    """
    if data.y is None or recipe.units is None or recipe.loss.degree is None:
        return data
    return replace(data, y=recipe.units.inside(data.y))


def generator(random_state: Any) -> np.random.Generator:
    """The generator of a fit, from what scikit-learn calls a random state."""
    if isinstance(random_state, int):
        return np.random.default_rng(_first_draw(random_state))
    return np.random.default_rng(check_random_state(random_state).randint(2**31))


@lru_cache(maxsize=64)
def _first_draw(seed: int) -> int:
    # kept, because setting up a RandomState takes 0.1 ms, a tenth of a small fit on a path
    return int(check_random_state(seed).randint(2**31))


def _near_free_bias(recipe: Recipe, data: Data, problem: Problem, rng: np.random.Generator) -> Start | None:
    """Where to start if the bias is free at every node: at a rough solution with a smooth bias, which is found quickly.

    With rare classes that saves up to three quarters of the time (n = 1000, one positive in twenty).
    """
    bias = problem.psi_bias
    if bias is None or not isinstance(bias.map, NodeMap) or recipe.task.bias_slope != 0.0 or recipe.solver == "newton":
        return None
    if recipe.solver == "auto" and suits_levels(problem.objective):  # which need no start
        return None
    smooth = pose(replace(recipe, alpha_bias=SMOOTH_BIAS_RIDGE), data, rng, phi=problem.phi)
    if not alike(smooth.quadrature.nodes, problem.quadrature.nodes):  # a rule that draws
        return None
    tol = max(recipe.tol, ROUGH_GAP)
    rough = solve(smooth.objective, solver=recipe.solver, tol=tol, max_iter=min(recipe.max_iter, ROUGH_EVALUATIONS))
    field = smooth.field(rough.z)
    z = np.concatenate([field.coef.ravel(), field.bias(bias.map.nodes)])
    return Start(z, Smoothing(rough.smoothing.kappa))


def _solved(
    recipe: Recipe, problem: Problem, memory: Memory | None, near: Start | None
) -> tuple[Solution, float | None]:
    """The solution and, where order is a constraint, the smallest slope that was proved."""
    objective, bias = problem.objective, problem.psi_bias
    how: dict[str, Any] = {
        "solver": recipe.solver,
        "tol": recipe.tol,
        "max_iter": recipe.max_iter,
        "verbose": recipe.verbose,
    }
    if recipe.order.hard:
        bias_map = None if bias is None else bias.map
        return solve_in_order(objective, problem.psi.map, bias_map, problem.constant, recipe.measure.support, **how)
    if memory is None:
        return solve(objective, start=near, gram=problem.phi.gram, **how), None
    basis = Eigenbasis.of(objective, memory.basis)
    solution = solve(objective, start=memory.start(problem), basis=basis, gram=problem.phi.gram, **how)
    memory.remember(problem, solution, basis)
    return solution, None
