"""What one fit leaves to the next: features, eigenvectors, and a place to start from.

A fit with the same inputs and the same kernel takes over the features. A fit of the same problem with another λ, λ_b or
tolerance takes over everything but the solution, and starts from it. :func:`~infinitask.learn.learn` is given a memory
and fills it; nothing is remembered behind its back.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from infinitask._array import HostArray
from infinitask.features import Features
from infinitask.problem import Data, Problem, Recipe, pose, tolerance
from infinitask.solvers import Eigenbasis, Solution, Start

__all__ = ["Memory", "same_but_for_ridge"]

RIDGE = {"alpha", "alpha_bias", "tol", "solver", "max_iter", "verbose", "random_state"}
"""Fields of a recipe that may differ between problems that share everything but the solution."""

INPUT_FEATURES = {"kernel", "gamma", "features", "rank", "device"}
"""Fields of a recipe that φ depends on, beside the inputs and the random state."""

FINER_THAN_NOW = 1e-3
"""Where no smallest λ is known, features are built for the present λ times this: they serve again where λ falls from
fit to fit, and a few more of them cost little."""

FARTHEST_AHEAD = 1.5
"""The most steps of log λ by which a start is extrapolated along the last two solutions."""


@dataclass
class Memory:
    """The memory of a series of fits.

    Parameters
    ----------
    finest : float or None
        The smallest λ to come, if it is known: features that are exact enough for it are built at once.
    extrapolates : bool
        Whether a start is extrapolated along the last two solutions.

    Examples
    --------
    >>> from infinitask import InfiniteQuantileRegressor
    >>> from infinitask.datasets import make_sine
    >>> X, y = make_sine(60, random_state=0)
    >>> model = InfiniteQuantileRegressor(warm_start=True, n_nodes=10).fit(X, y)
    >>> first = model.solution_.n_evaluations
    >>> model.fit(X, y).solution_.n_evaluations < first  # the second fit starts at the solution
    True
    """

    finest: float | None = None
    extrapolates: bool = True
    basis: Eigenbasis | None = field(default=None, repr=False)
    last: Start | None = field(default=None, repr=False)
    """The end of the last fit."""
    _posed: tuple[Recipe, Data, Problem, float] | None = field(default=None, repr=False)
    _constant: float | None = field(default=None, repr=False)
    _alpha: float = field(default=0.0, repr=False)
    _before: tuple[float, HostArray] | None = field(default=None, repr=False)

    def knows(self, recipe: Recipe, data: Data, problem: Problem, exact: float) -> None:
        """Take in a problem that was posed elsewhere, with features of this exactness."""
        self._posed = recipe, data, problem, exact
        self._constant = problem.constant

    def pose(self, recipe: Recipe, data: Data, rng: np.random.Generator) -> Problem:
        """The problem, made of what is remembered as far as it fits."""
        needed = tolerance(recipe, data)
        finest = FINER_THAN_NOW * recipe.alpha if self.finest is None else min(self.finest, recipe.alpha)
        phi: Features | None = None
        exact = 0.0
        if self._posed is not None:
            before, known, problem, exact = self._posed
            same_inputs = _alike(known.X, data.X)
            if same_inputs and exact <= needed and _same(before, recipe, known, data, problem):
                objective = problem.objective.with_ridge(recipe.alpha, recipe.alpha_bias)
                return self._keep(recipe, data, replace(problem, objective=objective), exact)
            if same_inputs and exact <= needed and _equal(before, recipe, INPUT_FEATURES | {"random_state"}):
                phi = problem.phi
            else:
                self.basis = None
            # another problem: the level of its objective and the way of its solutions are its own
            self._before = None
            self.last = self.last.elsewhere() if same_inputs and self.last is not None else None
        built = exact if phi is not None else tolerance(replace(recipe, alpha=finest), data)
        return self._keep(recipe, data, pose(recipe, data, rng, phi=phi, tol=built), built)

    def _keep(self, recipe: Recipe, data: Data, problem: Problem, exact: float) -> Problem:
        if self._posed is None or self._posed[1] is not data:
            # copies: arrays may be changed in place before the next fit
            data = Data(np.array(data.X), None if data.y is None else np.array(data.y), np.array(data.weight))
        self._posed = recipe, data, problem, exact
        return problem

    def start(self, problem: Problem) -> Start | None:
        """Where to start, if the last solution has the unknowns of this problem."""
        start, s = self.last, problem.objective.shape[1]
        if start is not None and self._before is not None and self._before[1].shape == start.z.shape:
            # solutions follow log λ smoothly: the line through the last two points at the next
            (alpha, z), last, now = self._before, self._alpha, problem.objective.alpha
            if min(alpha, last, now) > 0.0 and alpha != last:
                ahead = float(np.clip(np.log(now / last) / np.log(last / alpha), 0.0, FARTHEST_AHEAD))
                start = start._replace(z=start.z + ahead * (start.z - z))
        if start is None or start.z.size != problem.objective.size:
            return None
        if len(start.smoothing.kappa) != len(problem.objective.integrals) or (self._constant is None) != (
            problem.constant is None
        ):
            return None
        if problem.constant is None or problem.constant == self._constant:
            return start
        # the bias is the first feature, whose value is not what it was
        z = start.z.copy()
        z[:s] *= self._constant / problem.constant  # type: ignore[operator]
        return start._replace(z=z)

    def learn(self, problem: Problem, solution: Solution, basis: Eigenbasis) -> None:
        """Remember how a fit ended."""
        same = self.extrapolates and self.last is not None and self._constant == problem.constant
        self._before = (self._alpha, self.last.z) if same and self.last is not None else None
        self.last = Start(solution.z, solution.smoothing, solution.floor)
        self._constant, self._alpha, self.basis = problem.constant, problem.objective.alpha, basis


def same_but_for_ridge(a: Recipe, b: Recipe) -> bool:
    """Whether two recipes differ by no more than λ, λ_b, the tolerance and the solver."""
    return _equal(a, b, {f.name for f in fields(Recipe)} - RIDGE)


def _same(a: Recipe, b: Recipe, known: Data, data: Data, problem: Problem) -> bool:
    """Whether the posed problem serves with another λ and λ_b.

    A bias that joined φ through a constant feature holds the ratio of the two; a free bias has other features.
    """
    held = problem.constant is not None or a.alpha_bias == 0.0 or b.alpha_bias == 0.0
    if held and b.alpha_bias * a.alpha != b.alpha * a.alpha_bias:
        return False
    same_draws = _alike(a.random_state, b.random_state)
    return same_draws and same_but_for_ridge(a, b) and _alike(known.y, data.y) and _alike(known.weight, data.weight)


def _equal(a: Recipe, b: Recipe, names: set[str]) -> bool:
    return all(_alike(getattr(a, name), getattr(b, name)) for name in names)


def _alike(a: Any, b: Any) -> bool:
    """Equality of parameters; objects of the library are equal if their parameters are."""
    if a is b:
        return True
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.shape(a) == np.shape(b) and bool(np.array_equal(a, b))
    if type(a) is not type(b):
        return False
    if hasattr(a, "get_params"):
        mine, other = a.get_params(deep=False), b.get_params(deep=False)
        return mine.keys() == other.keys() and all(_alike(mine[name], other[name]) for name in mine)
    try:
        return bool(a == b)
    except (TypeError, ValueError):
        return False
