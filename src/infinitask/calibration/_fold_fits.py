"""Fits without each fold of a problem, solved one after the other or together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, Self, final

import numpy as np

from infinitask._base.arrays import HostArray, take, to_host
from infinitask.calibration._folds import Folds
from infinitask.field import Field, Problem
from infinitask.objective import Smoothing
from infinitask.solvers import Eigenbasis, Splitting, Start, State, solve


def solved_one_by_one(
    problem: Problem,
    folds: Folds,
    solver: str,
    tol: float,
    max_iter: int,
    *,
    start: Start | None = None,
    basis: Eigenbasis | None = None,
) -> Iterator[Field]:
    """The solutions without each of the folds, one after the other.

    Parameters
    ----------
    problem : Problem
        Of all rows.
    folds : Folds
    solver : str
    tol : float
        Their duality gap.
    max_iter : int
    start : Start or None
        Where each fit starts; None: at the end of the one before it.
    basis : Eigenbasis or None
        Eigenvectors of all rows; None: each fit computes its own.
    """
    near = start
    for k in range(folds.count):
        part = folds.training_part(problem, k)
        own = Eigenbasis.of(part.objective, basis)
        found = solve(
            part.objective, solver=solver, tol=tol, max_iter=max_iter, start=near, basis=own, gram=part.phi.gram
        )
        if start is None:
            near = Start(found.z, Smoothing(found.smoothing.kappa))
        yield part.field(found.z)


@final
@dataclass(frozen=True, eq=False)
class JointFits:
    """Fits without each fold that are solved together: they share features and eigenvectors.

    Parameters
    ----------
    problem : Problem
        Of all rows; those of weight 0 are predicted only.
    splitting : Splitting
    folds : Folds
    """

    problem: Problem
    splitting: Splitting
    folds: Folds

    @classmethod
    def of(cls, problem: Problem, folds: Folds, *, single: bool) -> Self:
        """Diagonalise rows and columns of a problem; ``single``: iterate in single precision."""
        return cls(problem, Splitting.of(problem.objective, single=single), folds)

    def with_tasks_of(self, problem: Problem) -> Self:
        """The same rows and folds with the nodes and task features of another problem."""
        return replace(self, problem=problem, splitting=self.splitting.with_integrals(problem.objective))

    def solved(
        self,
        alpha: float,
        tol: float,
        max_iter: int = 400,
        *,
        start: State | None = None,
        floor: float = 0.0,
        every: int = 10,
    ) -> JointSolution:
        """The fits with one λ.

        Parameters
        ----------
        alpha : float
        tol : float
            Their duality gap.
        max_iter : int
        start : State or None
            The end of the fits with another λ.
        floor : float
            If an objective is smaller, its gap is relative to this.
        every : int
            Iterations between two looks at the gaps.
        """
        splitting = self.splitting.leading(alpha)
        live = self.folds.seen > 0.0
        state = splitting.solve(alpha, live=live, start=start, tol=tol, max_iter=max_iter, every=every, floor=floor)
        return JointSolution(self, splitting, state)


class JointSolution(NamedTuple):
    """How joint fits ended."""

    fits: JointFits
    splitting: Splitting
    """The eigenvectors in which the solutions are written."""
    state: State

    def fields(self) -> list[Field]:
        """h of each fit."""
        problem, count = self.fits.problem, self.fits.folds.count
        return [problem.field(self.splitting.coefficients(self.state, b).ravel()) for b in range(count)]

    def values(self, levels: HostArray) -> HostArray:
        """h at levels (q,), each held-out row by the fit that has not seen it: (k, q)."""
        folds = self.fits.folds
        cols = to_host(self.fits.problem.psi.map(levels)) @ to_host(self.splitting.columns.W)
        values = np.empty((folds.rows.size, levels.size))
        for b in range(folds.count):
            rows = take(self.splitting.rows, folds.rows[folds.fold == b], 0)
            values[folds.fold == b] = to_host(rows @ self.state.coef[:, b, :]) @ cols.T
        return values
