"""Folds: the training and held-out rows of each fit, and the fits of a problem without each fold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Self, final

import numpy as np
from sklearn.model_selection import KFold, check_cv
from sklearn.utils.validation import _num_samples

from infinitask._base.arrays import HostArray, as_like, take, to_host
from infinitask._base.validation import naming
from infinitask.field import Field, Problem
from infinitask.objective import Smoothing
from infinitask.solvers import Eigenbasis, Solution, Splitting, Start, State, iterate, solve

Splits = list[tuple[HostArray, HostArray]]
"""Positions of the training rows and of the held-out rows, for each fold."""


def splits_of(cv: Any, X: Any, y: Any = None, *, classifier: bool = False) -> Splits:
    """Convert the ``cv`` argument of scikit-learn to folds, as positions of rows.

    Parameters
    ----------
    cv : int, splitter or iterable of (train, test)
    X : array-like (n, d)
    y : array-like (n,) or None
    classifier : bool
        Whether folds are stratified by y if ``cv`` is a number.

    Examples
    --------
    >>> [test.tolist() for _, test in splits_of(2, np.zeros((4, 1)))]
    [[0, 1], [2, 3]]
    """
    n = _num_samples(X)
    with naming("cv"):
        try:
            folds = list(check_cv(cv, y, classifier=classifier).split(X, y))
        except ValueError as error:
            if "groups" not in str(error):
                raise
            raise ValueError(
                f"cv={cv!r} was given; it needs groups, which fit does not take. Give its folds: "
                "cv=list(splitter.split(X, y, groups))."
            ) from error
        splits = [(_positions(train), _positions(test)) for train, test in folds]
        for position in (int(end) for fold in splits for part in fold if part.size for end in (part.min(), part.max())):
            if not -n <= position < n:
                raise ValueError(f"cv holds the position {position}, but X has {n} rows; the first one is 0.")
    return splits


def _positions(part: Any) -> HostArray:
    """Convert rows given as positions or as a mask to positions."""
    part = np.asarray(part)
    return np.flatnonzero(part) if part.dtype == bool else part


def check_weights(parts: list[HostArray], weight: HostArray, purpose: str) -> None:
    """Raise an error if all rows of a part have weight 0; ``purpose`` says what the rows are used for."""
    if not all(np.any(weight[part] > 0.0) for part in parts):
        raise ValueError(
            f"{np.count_nonzero(weight)} rows have a positive sample_weight, and a fold is left without any to "
            f"{purpose}. Give weight to more rows, or other folds as cv."
        )


def partition_of(cv: Any, X: Any, y: Any = None, *, random_state: Any = None) -> Splits:
    """Return the folds of ``cv``, which must hold out each row exactly once; rows are shuffled if it is a number."""
    with naming("cv"):
        splitter = KFold(int(cv), shuffle=True, random_state=random_state) if isinstance(cv, Integral) else cv
    splits, n = splits_of(splitter, X, y), _num_samples(X)
    times = np.bincount(np.concatenate([test for _, test in splits]), minlength=n)
    if np.any(times != 1) or any(np.intersect1d(train, test).size for train, test in splits):
        raise ValueError(
            f"The {len(splits)} folds of cv do not hold out each of the {n} rows exactly once, or fit rows that they "
            "hold out. Give an integer, or a splitter such as KFold."
        )
    return splits


@final
@dataclass(frozen=True, eq=False)
class Folds:
    """The training and held-out rows of each of B fits to n rows.

    Parameters
    ----------
    seen : ndarray (B, n)
        The fraction of each row that each fit sees: a row that represents several may be seen in part.
    rows : ndarray (k,) of int
        Positions of the held-out rows, possibly repeated.
    fold : ndarray (k,) of int
        The fit that holds them out, 0, …, B − 1.
    fraction : ndarray (k,)
        The fraction of each of them that is held out.

    Examples
    --------
    >>> folds = Folds.of_splits([(np.array([0, 1]), np.array([2])), (np.array([2]), np.array([1, 0]))], 3)
    >>> folds.assembled(np.array([7.0, 8.0, 9.0]))
    array([9., 8., 7.])
    """

    seen: HostArray
    rows: HostArray
    fold: HostArray
    fraction: HostArray

    @classmethod
    def of_splits(cls, splits: Splits, n: int) -> Self:
        """Create folds from positions; the held-out rows are in the order of the folds."""
        seen = np.zeros((len(splits), n))
        for k, (train, _) in enumerate(splits):
            seen[k, train] = 1.0
        fold = np.repeat(np.arange(len(splits)), [test.size for _, test in splits])
        return cls(seen, np.concatenate([test for _, test in splits]), fold, np.ones(fold.size))

    @classmethod
    def of_labels(cls, label: HostArray, count: int) -> Self:
        """Create the first ``count`` folds from labels (n,), 0, 1, …; rows of later labels are in all training sets."""
        rows = np.flatnonzero(label < count)
        seen = np.stack([label != k for k in range(count)]).astype(np.float64)
        return cls(seen, rows, label[rows], np.ones(rows.size))

    @classmethod
    def of_copies(cls, copies: HostArray, folds: int, *, only_first: bool = False) -> Self:
        """Create folds if row i represents ``copies[i]`` equal rows, (n,); neighbours are mostly in different folds.

        The result is deterministic: a fit without random numbers must not depend on ``random_state``.
        """
        numbers = np.maximum(np.round(copies), 1.0).astype(np.intp)
        total = int(np.sum(numbers))
        rng, count = np.random.default_rng(0), min(folds, total)
        label = np.concatenate([rng.permutation(count) for _ in range(-(-total // count))])[:total]
        held_out = np.zeros((numbers.size, count))
        np.add.at(held_out, (np.repeat(np.arange(numbers.size), numbers), label), 1.0)
        held_out = (held_out / numbers[:, None])[:, : 1 if only_first else count]
        rows, fold = np.nonzero(held_out)
        return cls(1.0 - held_out.T, rows, fold, held_out[rows, fold])

    @property
    def count(self) -> int:
        """B."""
        return len(self.seen)

    def training_part(self, problem: Problem, k: int) -> Problem:
        """Return the problem of the rows that fit k sees, without rows of weight 0."""
        weight = problem.objective.sample_weight
        rest = to_host(weight).astype(np.float64) * self.seen[k]
        lighter = replace(problem.objective, sample_weight=as_like(rest, weight))
        return replace(problem, objective=lighter).only(np.flatnonzero(rest > 0.0))

    def and_whole(self) -> Self:
        """Return the same fits and, as the last one, the fit to all rows."""
        return replace(self, seen=np.vstack([self.seen, np.ones_like(self.seen[0])]))

    def only(self, kept: HostArray) -> Self:
        """Return the same fits with only the held-out rows selected by a mask (k,)."""
        return replace(self, rows=self.rows[kept], fold=self.fold[kept], fraction=self.fraction[kept])

    def split(self, values: HostArray) -> list[HostArray]:
        """Split values of the held-out rows, (k, …), by folds."""
        return [values[self.fold == k] for k in range(self.count)]

    def assembled(self, values: HostArray) -> HostArray:
        """Reorder values of the held-out rows, (k, …), to all rows, (n, …); NaN for rows that no fit holds out."""
        found = np.full((self.seen.shape[1], *values.shape[1:]), np.nan)
        found[self.rows] = values
        return found


def stratified(label: HostArray, count: int) -> HostArray:
    """Return the fold of each row, 0, …, count − 1, with equal fractions of all labels, whatever their names.

    Examples
    --------
    >>> np.bincount(stratified(np.array([0, 0, 1, 0, 1, 0]), 2), weights=[0, 0, 1, 0, 1, 0])
    array([1., 1.])
    """
    shuffled, fold = np.random.default_rng(0).permutation(label.size), np.empty(label.size, dtype=np.intp)
    _, first, place = np.unique(label[shuffled], return_index=True, return_inverse=True)
    fold[shuffled[np.argsort(first[place], kind="stable")]] = np.arange(label.size) % count
    return fold


# ------------------------------------------------------------------------------------------------------------- fits
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
    """Return the solutions without each of the folds, computed one after the other.

    Parameters
    ----------
    problem : Problem
        The problem of all rows.
    folds : Folds
    solver : str
    tol : float
        The duality gap of the solutions.
    max_iter : int
    start : Start or None
        The start of each fit; None: the end of the previous fit.
    basis : Eigenbasis or None
        Eigenvectors of all rows; None: each fit computes its own.
    """
    near = start
    for k in range(folds.count):
        part = folds.training_part(problem, k)
        own = Eigenbasis.of(part.objective, basis)
        found = solve(part.objective, solver=solver, tol=tol, max_iter=max_iter, start=near, basis=own)
        if start is None:
            near = Start(found.z, Smoothing(found.smoothing.kappa))
        yield part.field(found.z)


@final
@dataclass(frozen=True, eq=False)
class JointFits:
    """Fits without each fold, solved together with the same features and eigenvectors.

    Parameters
    ----------
    problem : Problem
        The problem of all rows; rows of weight 0 are only predicted.
    folds : Folds
    splitting : Splitting
        Eigenvectors of rows and columns.
    leading : Splitting or None
        The eigenvectors in which the solutions are expressed.
    state : State or None
        The solutions; None before the first λ.
    """

    problem: Problem
    folds: Folds
    splitting: Splitting
    leading: Splitting | None = None
    state: State | None = None

    @classmethod
    def of(cls, problem: Problem, folds: Folds, *, single: bool, leading: bool = False) -> Self:
        """Diagonalise rows and columns of a problem; ``single`` and ``leading`` are those of :class:`Splitting`."""
        return cls(problem, folds, Splitting.of(problem.objective, single=single, leading=leading))

    def started(self, solution: Solution) -> Self:
        """Return the same fits, to be started at the solution for all rows and its dual point."""
        leading = self.splitting.leading(self.problem.objective.alpha)
        near = Start(solution.z, solution.smoothing)
        return replace(self, state=leading.begun(self.problem.objective, near, self.folds.count))

    def solved(self, alpha: float, tol: float, max_iter: int = 400, *, floor: float = 0.0, every: int = 10) -> Self:
        """Return the fits with one λ; they start at the solutions for the previous one.

        Parameters
        ----------
        alpha : float
        tol : float
            The duality gap of the solutions.
        max_iter : int
        floor : float
            The gap is relative to this value if the objective is smaller.
        every : int
            The number of iterations between two computations of the gaps.
        """
        leading, live = self.splitting.leading(alpha), self.folds.seen > 0.0
        options: dict[str, Any] = {"tol": tol, "max_iter": max_iter, "every": every, "floor": floor}
        return replace(self, leading=leading, state=iterate(leading, alpha, live=live, start=self.state, **options))

    def fields(self) -> list[Field]:
        """h of each fit."""
        assert self.leading is not None
        assert self.state is not None
        found = (self.leading.coefficients(self.state, b) for b in range(self.folds.count))
        return [self.problem.field(coef.ravel()) for coef in found]

    def values(self, levels: HostArray) -> HostArray:
        """h at levels (q,), for each held-out row by the fit that has not seen it: (k, q)."""
        assert self.leading is not None
        assert self.state is not None
        folds, values = self.folds, np.empty((self.folds.rows.size, levels.size))
        cols = to_host(self.problem.psi.map(levels)) @ to_host(self.leading.columns.W)
        for b in range(folds.count):
            rows = take(self.leading.rows, folds.rows[folds.fold == b], 0)
            values[folds.fold == b] = to_host(rows @ self.state.coef[:, b, :]) @ cols.T
        return values
