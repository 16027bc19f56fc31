"""One fit of a resolved recipe: pose the problem, solve it, and return h in the units of the user."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, Protocol, final

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from infinitask.features import NodeMap
from infinitask.field import Field, Problem
from infinitask.fitting._data import Data
from infinitask.fitting._kernel_gap import check_map, kernel_gap
from infinitask.fitting._pose import pose
from infinitask.fitting._recipe import Recipe, Units
from infinitask.fitting._warm_start import Memory
from infinitask.kernels import input_kernel
from infinitask.losses._checks import Finding
from infinitask.measures import Quadrature
from infinitask.objective import Smoothing
from infinitask.solvers import Eigenbasis, Reason, Solution, Start, solve, solve_in_order, suits_levels
from infinitask.tasks.base import ROUGH_EVALUATIONS, ROUGH_GAP

SMOOTH_BIAS_RIDGE = 1e-6
"""λ_b of the rough fit with a smooth bias whose solution is the start of a fit with a free bias."""


class Stream(Protocol):
    """Rows that are visited in parts; the data of the fit are a sample of them."""

    @property
    def n(self) -> int:
        """The number of rows."""

    def described(self, problem: Problem) -> Problem:
        """Return the problem of the sample, with a description of the origin of its landmarks."""

    def solve(self, recipe: Recipe, problem: Problem, units: Units) -> Solution:
        """Return the solution over all rows, in the features of the problem of the sample."""


@final
@dataclass(frozen=True, eq=False)
class Fit:
    """The result of a fit.

    Parameters
    ----------
    field : Field
        h.
    solution : Solution
        The unknowns, the certified bounds and the reason why the solver stopped.
    recipe : Recipe
        The recipe with all data-dependent defaults resolved.
    given : Recipe
        The recipe before its defaults were resolved.
    problem : Problem
        The posed problem, in the units of the recipe, with the features of the training rows.
    smallest_slope : float or None
        If order is a constraint: a proved lower bound on ∂h/∂θ for all θ and all training rows.
    calibration : object or None
        The post-fit calibration of the task; see :meth:`~infinitask.tasks.Task.finish`.
    kernel_gap : float or None
        The gap to the model of the kernel itself, if requested.
    n_rows : float
        The number of rows of data, before equal rows were merged.
    n_sampled : float or None
        The number of rows of the sample, before equal rows were merged; None: the problem contains all rows.
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
        """The nodes and weights on Θ."""
        return self.problem.quadrature

    def warnings(self, *, of_model: bool = True) -> Iterator[Warning]:
        """Yield the warnings about the fit, each with advice.

        A duality gap certifies that the problem is solved, not that it is the right problem. With ``of_model``, a
        certified optimum that is still a poor model causes warnings too.
        """
        if not self.solution.converged:
            yield ConvergenceWarning(self.solution.message)
        elif of_model:
            if self.problem.finding is not None:
                yield UserWarning(self.problem.finding.sentence)
            yield from map(UserWarning, self.recipe.task.warnings(self))

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes of an estimator, by name."""
        recipe, solution, phi = self.recipe, self.solution, self.problem.phi
        measure, rule = recipe.task.shown(self.quadrature)
        kernel = getattr(phi.map, "kernel", None)  # resolved; random features have none
        found = {
            "alpha_": recipe.alpha,
            "alpha_bias_": recipe.alpha_bias,
            "measure_": measure,
            "nodes_": rule.nodes[:, 0] if rule.nodes.shape[1] == 1 else rule.nodes,
            "weights_": rule.weights,
            "objective_": solution.objective,
            "dual_gap_": solution.gap,
            "n_iter_": solution.n_iter,
            "solution_": solution,
            "features_": phi.description,
            "task_kernel_": self.problem.task_kernel,
            "kernel_": input_kernel(recipe.kernel, recipe.gamma) if kernel is None else kernel,
            "recipe_": recipe,
            "field_": self.field.compact(),
            "_kernel_gap": self.kernel_gap,
            "_support": recipe.task.measure.support,  # stored because SciPy takes longer than a prediction
        }
        optional = {"smallest_slope_": self.smallest_slope, recipe.task.calibrated_as: self.calibration}
        return found | {name: value for name, value in optional.items() if value is not None}


def in_units(recipe: Recipe) -> Recipe:
    """Return the recipe of the same problem for targets in the units of the recipe."""
    units, degree = recipe.units, recipe.task.loss.degree
    if units is None or degree is None:
        return recipe
    ridge = units.spread ** (2 - degree)
    return replace(
        recipe,
        task=recipe.task.in_units(units.spread, units.centre),
        alpha=ridge * recipe.alpha,
        alpha_bias=None if recipe.alpha_bias is None else ridge * recipe.alpha_bias,
        units=None,
    )


def in_units_of(recipe: Recipe, data: Data) -> Data:
    """Return the data with targets in the units of a recipe.

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
    if data.y is None or recipe.units is None or recipe.task.loss.degree is None:
        return data
    return replace(data, y=recipe.units.inside(data.y))


def fitted(
    recipe: Recipe, data: Data, memory: Memory | None, rng: np.random.Generator, stream: Stream | None = None
) -> Fit:
    """Fit a resolved recipe."""
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
    smallest_slope, faulty = None, problem.finding is not None and not problem.finding.certified
    if faulty:  # nothing can be certified
        posed = replace(posed, max_iter=min(posed.max_iter, ROUGH_EVALUATIONS))
    with np.errstate(all="ignore") if faulty else nullcontext():  # one warning is enough
        if stream is not None:
            solution = stream.solve(posed, problem, units)
        else:
            near = _near_free_bias(posed, rows, problem, rng) if memory is None else None
            solution, smallest_slope = _solved(posed, problem, memory, near)
    certified = None if recipe.certify is None else kernel_gap(posed, rows, problem, solution)
    solution = _believable(problem.finding, solution)
    certified = np.inf if certified is not None and faulty else certified
    if recipe.verbose and certified is not None:
        print(f"kernel gap {certified:.1e}", file=sys.stderr)
    field = units.field(problem.field(solution.z))
    solution = units.solution(solution, recipe.task.loss.degree or 0)
    counted = float(np.sum(data.copies))
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


def _near_free_bias(recipe: Recipe, data: Data, problem: Problem, rng: np.random.Generator) -> Start | None:
    """Return a start for a bias that is free at every node: a rough solution with a smooth bias, which is fast.

    With rare classes this saves up to three quarters of the time (n = 1000, one positive in twenty).
    """
    bias = problem.psi_bias
    if bias is None or not isinstance(bias.map, NodeMap) or recipe.task.bias_slope != 0.0 or recipe.solver == "newton":
        return None
    if recipe.solver == "auto" and suits_levels(problem.objective):  # these need no start
        return None
    smooth = pose(replace(recipe, alpha_bias=SMOOTH_BIAS_RIDGE), data, rng, phi=problem.phi)
    if not np.array_equal(smooth.quadrature.nodes, problem.quadrature.nodes):  # a rule that samples
        return None
    tol = max(recipe.tol, ROUGH_GAP)
    rough = solve(smooth.objective, solver=recipe.solver, tol=tol, max_iter=min(recipe.max_iter, ROUGH_EVALUATIONS))
    field = smooth.field(rough.z)
    z = np.concatenate([field.coef.ravel(), field.bias(bias.map.nodes)])
    return Start(z, Smoothing(rough.smoothing.kappa))


def _solved(
    recipe: Recipe, problem: Problem, memory: Memory | None, near: Start | None
) -> tuple[Solution, float | None]:
    """Return the solution and, if order is a constraint, the proved lower bound on the slope."""
    objective, bias = problem.objective, problem.psi_bias
    how: dict[str, Any] = {
        "solver": recipe.solver,
        "tol": recipe.tol,
        "max_iter": recipe.max_iter,
        "verbose": recipe.verbose,
    }
    if recipe.task.order.hard:
        bias_map = None if bias is None else bias.map
        order, support = recipe.task.order, recipe.task.measure.support
        return solve_in_order(objective, order.falling, problem.psi.map, bias_map, problem.constant, support, **how)
    if memory is None:
        return solve(objective, start=near, **how), None
    basis = Eigenbasis.of(objective, memory.basis)
    solution = solve(objective, start=memory.start(problem), basis=basis, **how)
    memory.remember(problem, solution, basis)
    return solution, None


def _believable(finding: Finding | None, solution: Solution) -> Solution:
    """Return the solution with a valid gap: infinite if the loss violates its own claims."""
    if finding is None or (finding.certified and solution.converged):
        return solution
    if finding.certified:
        return replace(solution, note=finding.sentence, reason=Reason.NOT_SMOOTH)
    history = solution.history.copy()
    history[:, 2] = -np.inf
    return replace(
        solution,
        gap=np.inf,
        dual=-np.inf,
        history=history,
        reason=Reason.NOT_CERTIFIED,
        note=finding.sentence,
    )
