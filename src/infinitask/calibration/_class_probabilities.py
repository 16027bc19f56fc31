"""Multiclass problems beyond a field: tasks for all classes, and probabilities from their decisions.

The decision at costs θ is the class with the largest f_k(x)(θ), ideally the one with the largest θ_k p_k. Over the
costs of :class:`~infinitask.measures.ClassCosts` class k then wins for a fraction p_k of them: the winning fractions
are the probabilities (:func:`winning_fractions`).

The ridge pulls decisions towards those that suit most rows, and a rare class may hardly ever win. ``ShareScale``
corrects this, as ``Shift`` does for two classes: held-out rows determine a power and offsets that change the winning
fractions to p_k^a exp(b_k).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import final

import numpy as np
from scipy.special import logsumexp

from infinitask._base.arrays import HostArray, row_blocks
from infinitask.calibration._log_odds import multinomial_scaling
from infinitask.calibration.held_out import HeldOutFits
from infinitask.measures import ClassCosts, Sobol

POINTS = 512
"""The number of costs whose decisions are counted. With 1024, log losses of eight data sets change by at most 1/40."""


@lru_cache(maxsize=16)
def cost_points(n_classes: int, n_points: int = POINTS) -> HostArray:
    """Costs spread evenly over all possible costs, (n_points, K); always the same, equal costs first."""
    points = Sobol()(ClassCosts(n_classes), n_points, np.random.default_rng(0)).nodes
    points[0] = 1.0 / n_classes
    points.flags.writeable = False
    return points


def with_classes(costs: HostArray) -> HostArray:
    """Combine costs (q, K) with each class, (q K, K + 1): the tasks of the model.

    Examples
    --------
    >>> with_classes(np.array([[0.25, 0.75]]))
    array([[0.25, 0.75, 0.  ],
           [0.25, 0.75, 1.  ]])
    """
    q, K = costs.shape
    return np.column_stack([np.repeat(costs, K, axis=0), np.tile(np.arange(K, dtype=np.float64), q)])


def winning_fractions(values: HostArray) -> HostArray:
    """The fraction of all costs at which each class wins: values f (n, q, K) → (n, K).

    Examples
    --------
    >>> winning_fractions(np.array([[[1.0, -1.0], [0.5, -0.5], [-2.0, 2.0], [0.1, -0.1]]]))
    array([[0.75, 0.25]])
    """
    winner, K = np.argmax(values, axis=2), values.shape[2]
    return np.stack([np.mean(winner == k, axis=1) for k in range(K)], axis=1)


def winning_fractions_in_blocks(values: Callable[[slice], HostArray], n: int, points: HostArray) -> HostArray:
    """The winning fractions (n, K) of rows whose fields at ``points`` (q, K) are computed in blocks of rows.

    Parameters
    ----------
    values : callable
        A slice of rows ↦ f (rows, q K), in the order of :func:`with_classes`.
    n : int
    points : ndarray (q, K)

    Examples
    --------
    >>> f = np.array([[1.0, -1.0, 2.0, -2.0], [1.0, -1.0, -2.0, 2.0]])
    >>> winning_fractions_in_blocks(lambda rows: f[rows], 2, np.array([[0.5, 0.5], [0.1, 0.9]]))
    array([[1. , 0. ],
           [0.5, 0.5]])
    """
    return np.concatenate(
        [winning_fractions(values(rows).reshape(-1, *points.shape)) for rows in row_blocks(n, points.size)]
    )


def smallest_probability(n: float, n_classes: int) -> float:
    """1/((n + K)(K − 1)), which is 1/(n + 2) for two classes: n rows contain no information on rarer events."""
    return 1.0 / ((n + n_classes) * (n_classes - 1.0))


def away_from_zero(p: HostArray, n: float) -> HostArray:
    """Mix probabilities (n, K) with a uniform part, so that all are at least about :func:`smallest_probability`."""
    least = smallest_probability(n, p.shape[1])
    return np.asarray((p + least) / (1.0 + p.shape[1] * least))


@final
@dataclass(frozen=True, eq=False)
class ShareScale:
    """Probabilities from winning fractions: p ↦ p_k^a exp(b_k), normalised.

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
        """Convert winning fractions (k, K), all positive, to probabilities (k, K) for a fit of n rows."""
        logs = self.power * np.log(p) + self.offsets
        changed = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
        changed = np.maximum(changed, smallest_probability(n, p.shape[1]))
        return np.asarray(changed / np.sum(changed, axis=1, keepdims=True))

    @classmethod
    def of(cls, fits: HeldOutFits, label: HostArray, count: float, points: HostArray) -> ShareScale:
        """Fit the scale to held-out rows.

        Parameters
        ----------
        fits : HeldOutFits
        label : ndarray (n,) of int
            The class of each row of the problem, 0, …, K − 1.
        count : float
            The number of fitted rows.
        points : ndarray (q, K)
            The costs at which decisions are counted.
        """
        tasks = with_classes(points)
        bias = np.stack([field.bias(tasks) for field in fits.fields])

        def values(some: slice) -> HostArray:
            return np.asarray(fits.values(tasks, some) + bias[fits.fold[some]])

        p = winning_fractions_in_blocks(values, fits.rows.size, points)
        return cls(*multinomial_scaling(away_from_zero(p, count), label[fits.rows], fits.omega, fits.count))
