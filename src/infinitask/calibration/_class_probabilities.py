"""What many classes need beside a field: tasks for all of them, and probabilities from their decisions.

The decision at costs θ is the class with the largest f_k(x)(θ), and in the best case the one with the largest
θ_k p_k. Over the costs of :class:`~infinitask.measures.ClassCosts` class k then wins for a share p_k of them: the
shares are the probabilities (:func:`shares`).

A ridge holds decisions near those that suit most rows, and a rare class may hardly ever win. :class:`ShareScale`
corrects that as :class:`~infinitask.calibration._thresholds.Shift` does for two classes: held-out rows tell by which
power and offsets the shares have to be changed, p_k^a exp(b_k).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import final

import numpy as np
from scipy.special import logsumexp

from infinitask._base.arrays import HostArray, as_like, one_blas_thread, to_host
from infinitask.calibration._log_odds import multinomial_scaling
from infinitask.field import Field
from infinitask.fitting._recipe import Recipe
from infinitask.losses import MultiClassHinge
from infinitask.measures import ClassCosts, Sobol
from infinitask.problem import Problem
from infinitask.solvers import Splitting

POINTS = 512
"""Costs whose decisions are counted. With 1024 the log loss of eight data sets changes by at most a part in forty."""

FOLDS, LEAST_ROWS = 4, 20
"""Left-out rows: each is left out of one of four fits; with fewer than twenty rows shares stay as they are."""

ROUGH, MAX_STEPS, EVERY = 1e-2, 400, 20
"""The duality gap of these fits, the most steps, and how many are between two looks at the gap. They must know all
nodes of the fit: at half of them some classes hardly ever win, and offsets then make up for what the fit itself does
not lack."""

HELD = 0.02
"""Directions of the rows with an eigenvalue below this part of λ are held by the ridge, and left out."""

ENTRIES_AT_A_TIME = 1_000_000
"""Rows × costs × classes that are held in memory."""

MAX_LEFT_OUT_ENTRIES = 40_000_000
"""Rows × nodes × folds up to which all folds are solved, at once; beyond, one fold alone."""


@lru_cache(maxsize=16)
def cost_points(n_classes: int, n_points: int = POINTS) -> HostArray:
    """Costs spread evenly over all of them, (n_points, K); always the same, equal costs first."""
    points = Sobol()(ClassCosts(n_classes), n_points, np.random.default_rng(0)).nodes
    points[0] = 1.0 / n_classes
    points.flags.writeable = False
    return points


def with_classes(costs: HostArray) -> HostArray:
    """Costs (q, K) with each class, (q K, K + 1): the tasks of :class:`~infinitask.losses.MultiClassHinge`.

    Examples
    --------
    >>> with_classes(np.array([[0.25, 0.75]]))
    array([[0.25, 0.75, 0.  ],
           [0.25, 0.75, 1.  ]])
    """
    q, K = costs.shape
    return np.column_stack([np.repeat(costs, K, axis=0), np.tile(np.arange(K, dtype=np.float64), q)])


def shares(values: HostArray) -> HostArray:
    """The share of all costs at which each class wins: values f (n, q, K) → (n, K).

    Examples
    --------
    >>> shares(np.array([[[1.0, -1.0], [0.5, -0.5], [-2.0, 2.0], [0.1, -0.1]]]))
    array([[0.75, 0.25]])
    """
    winner, K = np.argmax(values, axis=2), values.shape[2]
    return np.stack([np.mean(winner == k, axis=1) for k in range(K)], axis=1)


def shares_in_parts(values: Callable[[slice], HostArray], n: int, points: HostArray) -> HostArray:
    """The shares (n, K) of rows whose fields at ``points`` (q, K) are computed some rows at a time.

    Parameters
    ----------
    values : callable
        A slice of rows ↦ f (rows, q K), in the order of :func:`with_classes`.
    n : int
    points : ndarray (q, K)

    Examples
    --------
    >>> f = np.array([[1.0, -1.0, 2.0, -2.0], [1.0, -1.0, -2.0, 2.0]])
    >>> shares_in_parts(lambda rows: f[rows], 2, np.array([[0.5, 0.5], [0.1, 0.9]]))
    array([[1. , 0. ],
           [0.5, 0.5]])
    """
    size = max(1, ENTRIES_AT_A_TIME // points.size)
    parts = (slice(start, min(start + size, n)) for start in range(0, n, size))
    return np.concatenate([shares(values(rows).reshape(-1, *points.shape)) for rows in parts])


def smallest_probability(n: float, n_classes: int) -> float:
    """1/((n + K)(K − 1)), which is 1/(n + 2) for two classes: n rows tell nothing of rarer events."""
    return 1.0 / ((n + n_classes) * (n_classes - 1.0))


def away_from_zero(p: HostArray, n: float) -> HostArray:
    """Probabilities (n, K) with a little of each class, so that none is below about :func:`smallest_probability`."""
    least = smallest_probability(n, p.shape[1])
    return np.asarray((p + least) / (1.0 + p.shape[1] * least))


@final
@dataclass(frozen=True, eq=False)
class ShareScale:
    """Probabilities from shares: p ↦ p_k^a exp(b_k), normalised.

    Parameters
    ----------
    power : float
        a.
    offsets : ndarray (K,)
        b.

    Examples
    --------
    >>> ShareScale(1.0, np.log([1.0, 1.0, 2.0]))(np.array([[0.4, 0.4, 0.2]]), 100.0).round(3)
    array([[0.333, 0.333, 0.333]])
    """

    power: float
    offsets: HostArray

    def __call__(self, p: HostArray, n: float) -> HostArray:
        """The probabilities that shares (k, K), all positive, stand for where n rows were fitted: (k, K)."""
        logs = self.power * np.log(p) + self.offsets
        changed = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
        changed = np.maximum(changed, smallest_probability(n, p.shape[1]))
        return np.asarray(changed / np.sum(changed, axis=1, keepdims=True))

    @classmethod
    def of(
        cls, problem: Problem, recipe: Recipe, count: float, points: HostArray, order: HostArray
    ) -> ShareScale | None:
        """The scale that suits rows which fits have left out; None where they are too few, or nothing can be asked.

        Parameters
        ----------
        problem : Problem
        recipe : Recipe
        count : float
            How many rows those of the problem stand for.
        points : ndarray (q, K)
            Costs whose decisions are counted.
        order : ndarray (K,) of int
            The classes in an order that does not depend on their names: rows are left out in this order.
        """
        n = int(problem.objective.rows.shape[0])
        if n < LEAST_ROWS or not Splitting.solves(problem.objective) or problem.task_kernel.diagonal:
            return None
        loss, targets = recipe.loss, problem.objective.integrals[0].targets
        assert isinstance(loss, MultiClassHinge)
        assert targets is not None
        label = np.argmin(np.abs(to_host(targets) - loss.codes), axis=1)
        fold = _folds(np.argsort(order)[label])
        used = FOLDS if n * problem.quadrature.weights.size * FOLDS <= MAX_LEFT_OUT_ENTRIES else 1
        if recipe.verbose:
            print(f"costs: fits without each of {used} folds", file=sys.stderr, flush=True)
        with one_blas_thread():
            fields = _fields_without(problem, fold, used)
        rows = np.flatnonzero(fold < used)
        p = np.empty((n, loss.n_classes))
        for k, values in enumerate(fields):
            p[fold == k] = values(np.flatnonzero(fold == k), points)
        omega = to_host(problem.objective.sample_weight).astype(np.float64)[rows]
        counted = count * float(np.sum(omega))
        p = away_from_zero(p[rows], count)
        return cls(*multinomial_scaling(p, label[rows], omega / np.sum(omega), counted))


def _folds(label: HostArray) -> HostArray:
    """A fold for each row, the same share of each class in all; always the same for the same labels 0, …, K − 1."""
    rng, fold = np.random.default_rng(0), np.empty(label.size, dtype=np.intp)
    order = np.lexsort((rng.permutation(label.size), label))
    fold[order] = np.arange(label.size) % FOLDS
    return fold


def _fields_without(problem: Problem, fold: HostArray, used: int) -> list[Callable[[HostArray, HostArray], HostArray]]:
    """For each fold a function of rows and costs: the shares of the classes there, as a fit without the fold has them.

    All fits are solved at once, in single precision, and share their eigenvectors.
    """
    objective = problem.objective
    splitting = Splitting.of(objective, single=isinstance(objective.rows, np.ndarray))
    splitting = splitting.without(HELD * objective.alpha)
    live = np.stack([fold != k for k in range(used)])
    state = splitting.solve(objective.alpha, live=live, tol=ROUGH, max_iter=MAX_STEPS, every=EVERY)

    def reader(b: int) -> Callable[[HostArray, HostArray], HostArray]:
        field = problem.field(splitting.coefficients(state, b).ravel())
        return lambda rows, points: _shares_at(problem, field, rows, points)

    return [reader(b) for b in range(used)]


def _shares_at(problem: Problem, field: Field, rows: HostArray, points: HostArray) -> HostArray:
    """The shares of the classes at rows of the problem."""
    phi = problem.objective.rows if problem.constant is None else problem.objective.rows[:, 1:]
    tasks = with_classes(points)
    psi, bias = as_like(field.coef @ field.psi(tasks).T, phi), field.bias(tasks)
    return shares_in_parts(lambda some: to_host(phi[rows[some], :] @ psi) + bias, rows.size, points)
