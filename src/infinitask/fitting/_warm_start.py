"""Warm starts: a fit passes features, eigenvectors, and a start to the next fit."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

import numpy as np

from infinitask.features import Features
from infinitask.field import Problem
from infinitask.fitting._data import Data
from infinitask.fitting._pose import pose, tolerance
from infinitask.fitting._recipe import Recipe
from infinitask.solvers import Eigenbasis, Solution, Start

MAY_DIFFER = {"alpha", "alpha_bias", "tol", "solver", "max_iter", "verbose", "certify"}
"""The fields of a recipe that may differ between problems that share everything except the solution."""

INPUT_FEATURES = {"kernel", "gamma", "features", "rank", "device", "random_state"}
"""The fields of a recipe that φ depends on, besides the rows."""

FINER_THAN_NOW = 1e-3
"""If no smallest λ is known, features are built for the current λ times this: they can be reused as λ decreases,
and a few additional features cost little."""


@dataclass
class Memory:
    """Results of a fit that the next fit can reuse: features, eigenvectors, and a start.

    A fit with the same X and the same kernel reuses the features. A fit of the same problem with another λ, λ_b or
    tolerance reuses the whole problem, and starts from the last solution.

    Parameters
    ----------
    finest : float or None
        The smallest future λ, if known, in the units of the user: features that are exact enough for it are
        built at once.

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
    basis: Eigenbasis | None = field(default=None, repr=False)
    last: Start | None = field(default=None, repr=False)
    """The end of the last fit."""
    learnt: tuple[Recipe, Data, Any] | None = field(default=None, repr=False)
    """The last recipe with a kernel to learn, its data, and the learnt kernel."""
    _posed: tuple[Recipe, Data, Problem, float] | None = field(default=None, repr=False)
    _constant: float | None = field(default=None, repr=False)
    """The value of the constant feature of the last fit, see :class:`~infinitask.field.Problem`."""

    def learnt_kernel(self, recipe: Recipe, data: Data) -> Any:
        """Return the kernel learnt for the same recipe and data, or None; a path of λ learns it once."""
        if self.learnt is None:
            return None
        before, rows, kernel = self.learnt
        same_rows = all(alike(getattr(rows, name), getattr(data, name)) for name in ("X", "y", "weight", "share"))
        same = alike(before.kernel, recipe.kernel) and isinstance(before.alpha, str) == isinstance(recipe.alpha, str)
        return kernel if same and same_rows else None

    def pose(self, recipe: Recipe, data: Data, rng: np.random.Generator, unit: float = 1.0) -> Problem:
        """Pose the problem, with the stored parts that still apply; λ of the recipe is ``unit`` times the user's."""
        needed = tolerance(recipe, data)
        finest = FINER_THAN_NOW * recipe.alpha if self.finest is None else min(unit * self.finest, recipe.alpha)
        phi: Features | None = None
        exact = 0.0
        if self._posed is not None:
            before, known, problem, exact = self._posed
            same_inputs = alike(known.X, data.X) and alike(before.task.named, recipe.task.named)
            if same_inputs and exact <= needed and _same(before, recipe, known, data):
                again = problem.with_ridge(recipe.alpha, recipe.alpha_bias)
                if again.constant != problem.constant:
                    self.basis = None  # eigenvectors of other rows: they would cost more evaluations than they save
                return self._keep(recipe, data, again, exact)
            if same_inputs and exact <= needed and _equal(before, recipe, INPUT_FEATURES):
                phi = problem.phi
            else:
                self.basis = None
            # another problem: its objective has different values
            self.last = self.last.elsewhere() if same_inputs and self.last is not None else None
        built = exact if phi is not None else tolerance(replace(recipe, alpha=finest), data)
        return self._keep(recipe, data, pose(recipe, data, rng, phi=phi, tol=built), built)

    def _keep(self, recipe: Recipe, data: Data, problem: Problem, exact: float) -> Problem:
        if self._posed is None or self._posed[1] is not data:
            # copies: arrays may be changed in place before the next fit
            y, share = (None if part is None else np.array(part) for part in (data.y, data.share))
            data = Data(np.array(data.X), y, np.array(data.weight), data.copies, share)
        self._posed = recipe, data, problem, exact
        return problem

    def start(self, problem: Problem) -> Start | None:
        """Return the last solution as a start; None if this problem has other unknowns."""
        start, before, now = self.last, self._constant, problem.constant
        if start is None or start.z.size != problem.objective.size or (before is None) != (now is None):
            return None
        if len(start.smoothing.kappa) != len(problem.objective.integrals):
            return None
        if before is None or now is None:
            return start
        z = start.z.copy()
        z[: problem.objective.shape[1]] *= before / now  # the coefficients of the constant feature
        return start._replace(z=z)

    def remember(self, problem: Problem, solution: Solution, basis: Eigenbasis) -> None:
        """Store the final state of a fit."""
        self.last = Start(solution.z, solution.smoothing, solution.floor)
        self._constant, self.basis = problem.constant, basis


def _same(a: Recipe, b: Recipe, known: Data, data: Data) -> bool:
    """Whether the posed problem can be reused with another λ and λ_b; a free bias has other features."""
    same_recipe = _equal(a, b, {f.name for f in fields(Recipe)} - MAY_DIFFER) and a.bias_is_free == b.bias_is_free
    same_targets = alike(known.y, data.y) and alike(known.share, data.share)
    return same_recipe and same_targets and alike(known.weight, data.weight)


def _equal(a: Recipe, b: Recipe, names: set[str]) -> bool:
    return all(alike(getattr(a, name), getattr(b, name)) for name in names)


def alike(a: Any, b: Any) -> bool:
    """Return whether two parameters are equal; objects of the library are equal if their parameters are."""
    if a is b:
        return True
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.shape(a) == np.shape(b) and bool(np.array_equal(a, b))
    if type(a) is not type(b):
        return False
    if is_dataclass(a):
        return all(alike(getattr(a, part.name), getattr(b, part.name)) for part in fields(a))
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(alike(one, other) for one, other in zip(a, b, strict=True))
    if hasattr(a, "get_params"):
        mine, its = a.get_params(deep=False), b.get_params(deep=False)
        return mine.keys() == its.keys() and all(alike(mine[name], its[name]) for name in mine)
    try:
        return bool(a == b)
    except (TypeError, ValueError):
        return False
