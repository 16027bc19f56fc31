"""Fits to the training rows of every fold, and what they say of the rows left out.

Features are made once, from all rows, and a fold takes its rows of Φ: the function that is learnt is the same, because
it lies in the span of the rows that were seen. All folds then have the same unknowns C, and each fit starts from a
neighbour: the last one of the same fold, or the one of the fold before it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from infinitask._array import HostArray
from infinitask.estimators.problem import Data, Problem, Recipe, pose
from infinitask.solvers import Eigenbasis, Start, solve

__all__ = ["Apart", "Folds"]


@dataclass(eq=False)
class Folds:
    """One problem and its folds.

    Parameters
    ----------
    recipe : Recipe
        Of the fits; its ``tol`` is their gap.
    X : ndarray (n, d)
    y : ndarray (n,)
    weight : ndarray (n,)
        Positive at some training row of every fold.
    splits : list of (train, test)
        Positions of rows.
    theta : ndarray (q,)
        Where the left-out rows are predicted.
    max_iter : int
        The most evaluations of one fit.
    exact : float or None
        How exact the features are; None: enough for the λ of the recipe.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import KFold
    >>> from infinitask import InfiniteQuantileRegressor
    >>> from infinitask.datasets import make_sine
    >>> X, y = make_sine(100, random_state=0)
    >>> recipe = InfiniteQuantileRegressor(tol=1e-2)._recipe()
    >>> folds = Folds(recipe, X, y, np.ones(100), list(KFold(5).split(X)), np.array([0.1, 0.9]))
    >>> [h.shape for h in folds.left_out()]
    [(20, 2), (20, 2), (20, 2), (20, 2), (20, 2)]
    """

    recipe: Recipe
    X: HostArray
    y: HostArray
    weight: HostArray
    splits: list[tuple[HostArray, HostArray]]
    theta: HostArray
    max_iter: int = 300
    exact: float | None = None
    problem: Problem = field(init=False)

    def __post_init__(self) -> None:
        data = Data(self.X, self.y, self.weight / np.sum(self.weight))
        self.problem = pose(self.recipe, data, np.random.default_rng(0), tol=self.exact)
        posed, tasks = self.problem, self.theta[:, None]
        self._parts = [posed.objective.only(train[self.weight[train] > 0.0]) for train, _ in self.splits]
        self._bases: list[Eigenbasis | None] = [None] * len(self.splits)
        self._starts: list[Start | None] = [None] * len(self.splits)
        self._psi = posed.psi.map(tasks)
        self._psi_bias = None if posed.psi_bias is None else posed.psi_bias.map(tasks)

    def left_out(
        self,
        alpha: float | None = None,
        alpha_bias: float | None = None,
        *,
        tol: float | None = None,
        max_iter: int | None = None,
    ) -> list[HostArray]:
        """h at the left-out rows of every fold, (n_test, q) each.

        Parameters
        ----------
        alpha, alpha_bias : float or None
            λ and λ_b; None: those of the recipe. A bias with the task kernel is part of φ, and its λ_b follows λ.
        tol : float or None
            The gap of the fits, if it is not that of the recipe.
        max_iter : int or None
            The most evaluations of one fit, if others than at first.
        """
        found, last = [], None
        for k, (_, test) in enumerate(self.splits):
            objective = self._parts[k].with_ridge(
                self.recipe.alpha if alpha is None else alpha,
                self.recipe.alpha_bias if alpha_bias is None else alpha_bias,
            )
            self._bases[k] = basis = Eigenbasis.of(objective, self._bases[k])
            solution = solve(
                objective,
                # to be compared and thrown away: a Newton step would be too much of an effort
                solver="lbfgs",
                tol=self.recipe.tol if tol is None else tol,
                max_iter=self.max_iter if max_iter is None else max_iter,
                start=self._starts[k] or last,
                basis=basis,
            )
            self._starts[k] = here = Start(solution.z, solution.smoothing, solution.floor)
            last = here.elsewhere()
            found.append(self._values(solution.z, test))
        return found

    def _values(self, z: HostArray, rows: HostArray) -> HostArray:
        r, s = self.problem.objective.shape
        h = self.problem.objective.rows[rows] @ z[: r * s].reshape(r, s) @ self._psi.T
        return np.asarray(h if self._psi_bias is None else h + self._psi_bias @ z[r * s :])


@dataclass(frozen=True, eq=False)
class Apart:
    """Folds that share nothing, because each has a kernel of its own."""

    parts: list[Folds]

    def left_out(self, alpha: float, alpha_bias: float) -> list[HostArray]:
        """h at the left-out rows of every fold, (n_test, q) each."""
        return [h for part in self.parts for h in part.left_out(alpha, alpha_bias)]
