"""What one fit leaves to the next: features, eigenvectors, and a place to start from.

Two cases: with the same inputs and the same kernel, the same features; with the same problem but for λ, λ_b and the
tolerance all but the solution, and the solution is close.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from infinitask._array import HostArray
from infinitask.estimators.problem import Data, Problem, Recipe, pose, tolerance
from infinitask.features import Features
from infinitask.solvers import Eigenbasis, Solution, Start

__all__ = ["Warm"]

FREE = {"alpha", "alpha_bias", "tol"}
"""What may differ between problems that are the same otherwise."""

FINER = 1e-3
"""Features are built for a λ that is so many times smaller than the present one, if none is known to come: where λ
falls from fit to fit they serve again, and a few more of them cost little."""

PHI = {"kernel", "gamma", "features", "rank", "device", "random_state"}
"""What φ depends on, beside the inputs."""


@dataclass
class Warm:
    """The memory of an estimator between fits.

    Parameters
    ----------
    finest : float or None
        The smallest λ to come, if it is known: features that are exact enough for it are built at once.
    """

    finest: float | None = None
    basis: Eigenbasis | None = None
    _last: tuple[Recipe, Data, Problem, float] | None = field(default=None, repr=False)
    _start: Start | None = field(default=None, repr=False)
    _constant: float | None = field(default=None, repr=False)
    _alpha: float = field(default=0.0, repr=False)
    _before: tuple[float, HostArray] | None = field(default=None, repr=False)

    def pose(self, recipe: Recipe, data: Data, rng: np.random.Generator) -> Problem:
        """The problem, made of what is there as far as it fits."""
        needed = tolerance(recipe, data)
        finest = FINER * recipe.alpha if self.finest is None else min(self.finest, recipe.alpha)
        phi: Features | None = None
        exact = 0.0
        if self._last is not None:
            before, known, problem, exact = self._last
            same_inputs = known.X.shape == data.X.shape and np.array_equal(known.X, data.X)
            same = same_inputs and exact <= needed and _same(before, recipe, known, data)
            if same and recipe.alpha_bias * before.alpha == recipe.alpha * before.alpha_bias:
                objective = replace(problem.objective, alpha=recipe.alpha, alpha_bias=recipe.alpha_bias)
                return self._keep(recipe, data, replace(problem, objective=objective), exact)
            if same_inputs and exact <= needed and _equal(before, recipe, PHI):
                phi = problem.phi
            else:
                self.basis = None
            self._forget(everything=not same_inputs)
        built = exact if phi is not None else tolerance(replace(recipe, alpha=finest), data)
        return self._keep(recipe, data, pose(recipe, data, rng, phi=phi, tol=built), built)

    def _forget(self, everything: bool) -> None:
        """Another problem: the level of its objective and the way of its solutions are its own."""
        self._before = None
        self._start = None if everything or self._start is None else self._start.elsewhere()

    def _keep(self, recipe: Recipe, data: Data, problem: Problem, exact: float) -> Problem:
        # copies: parameters and arrays may be changed in place before the next fit
        kept = Data(np.array(data.X), None if data.y is None else np.array(data.y), np.array(data.weight))
        self._last = copy.deepcopy(recipe), kept, problem, exact
        return problem

    def start(self, problem: Problem) -> Start | None:
        """Where to start, if the last solution has the unknowns of this problem."""
        start, s = self._start, problem.objective.shape[1]
        if start is not None and self._before is not None and self._before[1].shape == start.z.shape:
            # solutions follow log λ smoothly: the line through the last two ones points at the next
            (alpha, z), last, now = self._before, self._alpha, problem.objective.alpha
            if min(alpha, last, now) > 0.0 and alpha != last:
                ahead = float(np.clip(np.log(now / last) / np.log(last / alpha), 0.0, 1.5))
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
        same = self._start is not None and self._constant == problem.constant
        self._before = (self._alpha, self._start.z) if same and self._start is not None else None
        self._start = Start(solution.z, solution.smoothing, solution.floor)
        self._constant, self._alpha, self.basis = problem.constant, problem.objective.alpha, basis


def _equal(a: Recipe, b: Recipe, names: set[str]) -> bool:
    return all(_alike(getattr(a, name), getattr(b, name)) for name in names)


def _same(a: Recipe, b: Recipe, known: Data, data: Data) -> bool:
    """Whether two problems on the same inputs differ by no more than λ, λ_b and the tolerance."""
    names = {f.name for f in fields(Recipe)} - FREE
    return _equal(a, b, names) and _alike(known.y, data.y) and _alike(known.weight, data.weight)


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
