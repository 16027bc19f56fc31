"""Probabilities of saved models whose fields of all classes sum to zero, one for each list of costs.

The decision at costs θ is the class with the largest f_k(x)(θ), ideally the one with the largest θ_k p_k. Over the
costs of :class:`~infinitask.measures.ClassCosts` class k then wins for a fraction p_k of them: the winning fractions
are the probabilities (:func:`winning_fractions`). New models have a continuum of trade-offs for each class instead, see
:mod:`~infinitask.calibration._class_probabilities`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import final

import numpy as np
from scipy.special import logsumexp

from infinitask._base.arrays import HostArray, row_blocks
from infinitask.calibration._class_probabilities import smallest_probability
from infinitask.measures import ClassCosts, Sobol


@lru_cache(maxsize=16)
def cost_points(n_classes: int, n_points: int = 512) -> HostArray:
    """Costs spread evenly over all possible costs, (n_points, K); always the same, equal costs first.

    Saved models were calibrated with 512 of them.
    """
    points = Sobol()(ClassCosts(n_classes), n_points, np.random.default_rng(0)).nodes
    points[0] = 1.0 / n_classes
    points.flags.writeable = False
    return points


def for_classes(costs: HostArray, order: HostArray) -> HostArray:
    """Return evenly spread costs with the coordinates in the order of the classes."""
    found = np.empty_like(costs)
    found[:, order] = costs
    return found


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
        A slice of rows ↦ f (rows, q K), in the order of ``with_classes``.
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
