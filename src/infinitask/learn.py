"""The one door to a fit.

    learn(recipe, data, memory=None) → Fit

Estimators, self-tuned models, paths and experiments all come through here: a recipe says what to learn and how, data
are rows with weights, and a memory, where there is one, holds what earlier fits left. Everything that is read after a
fit is read from its :class:`Fit`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from sklearn.utils import check_random_state

from infinitask._array import namespace, one_blas_thread, to_host
from infinitask.field import Field
from infinitask.losses import CostSensitiveHinge, LevelSet
from infinitask.measures import Quadrature
from infinitask.memory import Memory
from infinitask.objective import Smoothing
from infinitask.problem import Data, Problem, Recipe, pose
from infinitask.solvers import Eigenbasis, Solution, solve, solve_in_order
from infinitask.threshold import Shift

__all__ = ["Fit", "learn"]

STANDARDISED = 5.0
"""Targets whose root mean square is at most this count as standardised."""

HEAVY_RIDGE = 0.1
"""A ridge on the bias is heavy if it weighs more than this part of the errors of a constant."""

MAX_ROWS_LOOKED_AT = 2_000
"""At most about this many training rows are looked at."""

ON_BOUNDARY = 1e-4
"""A row is on the boundary of a level set where |h − t| is below this part of t."""

FEWEST_ROWS_FOR_BOUNDARY = 100
"""With fewer rows, many of them on the boundary are no surprise."""


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
        The recipe that was used.
    problem : Problem
        The problem that was posed, with the features of the training rows.
    smallest_slope : float or None
        Where order is a constraint: ∂h/∂θ is proved to be at least this, for all θ and all training inputs.
    shift : Shift or None
        Where fractions are exact: a correction of the threshold.
    """

    field: Field
    solution: Solution
    recipe: Recipe
    problem: Problem
    smallest_slope: float | None = None
    shift: Shift | None = None

    @property
    def quadrature(self) -> Quadrature:
        """Nodes and weights on Θ."""
        return self.problem.quadrature

    def remarks(self) -> Iterator[str]:
        """Sentences for the cases in which a certified optimum is still a poor model, each with what to do.

        A duality gap says that the problem is solved, not that it was the right problem.
        """
        if isinstance(self.recipe.loss, LevelSet):
            yield from _rows_on_the_boundary(self)
        elif isinstance(self.recipe.loss, CostSensitiveHinge):
            yield from _one_decision_for_all(self)
        else:
            yield from _heavy_ridge_on_the_bias(self)


def learn(recipe: Recipe, data: Data, memory: Memory | None = None) -> Fit:
    """Pose the problem of a recipe on some data, and solve it.

    Parameters
    ----------
    recipe : Recipe
    data : Data
    memory : Memory or None
        What earlier fits left; this one is added to it.

    Returns
    -------
    Fit

    Examples
    --------
    >>> import numpy as np
    >>> from infinitask.datasets import make_sine
    >>> from infinitask.losses import Pinball
    >>> from infinitask.measures import Uniform
    >>> from infinitask.penalties import Ridge
    >>> X, y = make_sine(50, random_state=0)
    >>> fit = learn(Recipe(Pinball(), Uniform(), Ridge(), n_nodes=10), Data.canonical(X, y, np.ones(50)))
    >>> fit.field(X[:2], [0.1, 0.9]).shape
    (2, 2)
    >>> fit.solution.gap <= fit.recipe.tol
    True
    """
    if recipe.offset != 0.0 and data.y is not None:
        data = replace(data, y=data.y - recipe.offset)
    rng = np.random.default_rng(check_random_state(recipe.random_state).randint(2**31))
    with one_blas_thread():
        problem = pose(recipe, data, rng) if memory is None else memory.pose(recipe, data, rng)
        if recipe.verbose:
            r, s = problem.objective.shape
            print(f"{problem.phi.description}; {r} × {s} unknowns", file=sys.stderr)
        solution, smallest_slope = _solved(recipe, problem, memory)
    field = problem.field(solution.z, recipe.offset)
    # a smoothing around a centre holds a number for every pair: that is not kept
    solution = replace(solution, smoothing=Smoothing(solution.smoothing.kappa))
    shift = Shift.of(problem, field, recipe.measure) if recipe.exact_fractions else None
    return Fit(field, solution, recipe, problem, smallest_slope, shift)


def _solved(recipe: Recipe, problem: Problem, memory: Memory | None) -> tuple[Solution, float | None]:
    """The solution and, where order is a constraint, the smallest slope that was proved."""
    objective, bias = problem.objective, problem.psi_bias
    how: dict[str, Any] = {
        "solver": recipe.solver,
        "tol": recipe.tol,
        "max_iter": recipe.max_iter,
        "verbose": recipe.verbose,
    }
    if recipe.hard:
        maps = problem.psi.map, None if bias is None else bias.map
        return solve_in_order(objective, *maps, problem.constant, recipe.measure.support, **how)
    if memory is None:
        return solve(objective, **how), None
    basis = Eigenbasis.of(objective, memory.basis)
    solution = solve(objective, start=memory.start(problem), basis=basis, **how)
    memory.learn(problem, solution, basis)
    return solution, None


# ---------------------------------------------------------------------------------------------------- remarks
def _some_rows(fit: Fit) -> slice:
    return slice(None, None, -(-int(fit.problem.objective.rows.shape[0]) // MAX_ROWS_LOOKED_AT))


def _heavy_ridge_on_the_bias(fit: Fit) -> Iterator[str]:
    recipe, objective = fit.recipe, fit.problem.objective
    term, omega = objective.integrals[0], objective.sample_weight
    if term.targets is None or recipe.bias_kernel is None or recipe.alpha_bias == 0.0:
        return
    size = float(np.max(to_host(omega @ term.targets**2))) ** 0.5
    if size <= STANDARDISED:
        return
    rows = _some_rows(fit)
    y, omega = term.targets[rows, :], omega[rows]
    total = float(namespace(omega).sum(omega))
    constant = (omega @ y) / total + 0.0 * (omega[:, None] * term.weights)
    errors = float(omega @ (term.loss.value(term.theta, y, constant) @ term.weights)) / total
    if 0.5 * recipe.alpha_bias * size**2 > HEAVY_RIDGE * errors:
        yield (
            f"y has a root mean square of {size:.3g}, and the ridge holds the bias b(θ) towards 0 with "
            f"alpha_bias={recipe.alpha_bias:g}: too heavily for targets of that size. Standardise y, for instance "
            "with TransformedTargetRegressor, or set alpha_bias=0, which leaves the bias free, and an alpha "
            "that is as many times smaller."
        )


def _one_decision_for_all(fit: Fit) -> Iterator[str]:
    nodes = fit.quadrature.nodes
    decisions = fit.problem.values(fit.solution.z, _some_rows(fit)) > 0.0
    if np.min(nodes) < 0.0 < np.max(nodes) and (np.all(decisions) or not np.any(decisions)):
        yield (
            "the decision is the same for all training rows and all θ of nodes_; the ridge outweighs the errors. "
            "Lower alpha, and set alpha_bias=0 if one class is rare."
        )


def _rows_on_the_boundary(fit: Fit) -> Iterator[str]:
    z = fit.solution.z
    values = fit.problem.values(z, _some_rows(fit))
    mean_threshold = abs(float(fit.problem.objective.linear @ z))
    share = np.mean(np.abs(values) <= ON_BOUNDARY * mean_threshold, axis=0)
    if values.shape[0] >= FEWEST_ROWS_FOR_BOUNDARY and np.max(share) > 0.5:
        yield (
            f"at ν = {fit.quadrature.nodes[np.argmax(share), 0]:.2g}, {np.max(share):.0%} of the training rows "
            "lie on the boundary of the set itself, to the accuracy of the fit; their side, and so the fraction "
            "outside, is an accident, as in any one-class SVM whose kernel is too narrow for the data, or cannot "
            "enclose them. Try a smaller gamma, or another kernel."
        )
