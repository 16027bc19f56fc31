"""The one door to a fit.

    learn(recipe, data, memory=None) → Fit

Estimators, self-tuned models, paths and experiments all come through here: a recipe says what to learn and how, data
are rows with weights, and a memory, where there is one, holds what earlier fits left. Everything that is read after a
fit is read from its :class:`Fit`.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from sklearn.utils import check_random_state

from infinitask._array import one_blas_thread
from infinitask.field import Field
from infinitask.measures import Quadrature
from infinitask.memory import Memory
from infinitask.objective import Smoothing
from infinitask.problem import Data, Problem, Recipe, pose
from infinitask.solvers import Eigenbasis, Solution, solve, solve_in_order
from infinitask.threshold import Shift

__all__ = ["Fit", "learn"]


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
