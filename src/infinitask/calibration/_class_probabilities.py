"""Probabilities of many classes from the decisions of each class against the rest.

At a trade-off θ a row belongs to class k if f_k(x)(θ) > 0, ideally if p_k is above (1 − θ)/2. The fraction of all
trade-offs at which it does is therefore its probability, apart from what the ridge does: it pulls decisions towards
those that suit most rows, the more the rarer a class is. Two scores of each class contain what the fields say
(:func:`class_scores`), and held-out rows determine how both become probabilities that sum to one (``ClassScale``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy.special import logit, logsumexp

from infinitask._base.arrays import HostArray, row_blocks
from infinitask.calibration._log_odds import multinomial_scaling
from infinitask.calibration._sign_change import sign_change
from infinitask.calibration.held_out import HeldOutFits

LEVELS = 65
"""The number of equally spaced trade-offs at which fields are computed, which are smooth in between. With 257, log
losses change in the fourth digit."""


def with_classes(theta: HostArray, n_classes: int) -> HostArray:
    """Combine θ (q, d) with each class, (q K, d + 1): the tasks of the model.

    Examples
    --------
    >>> with_classes(np.array([[0.25, 0.75]]), 2)
    array([[0.25, 0.75, 0.  ],
           [0.25, 0.75, 1.  ]])
    """
    K = n_classes
    return np.column_stack([np.repeat(theta, K, axis=0), np.tile(np.arange(K, dtype=np.float64), len(theta))])


def smallest_probability(n: float, n_classes: int) -> float:
    """1/((n + K)(K − 1)), which is 1/(n + 2) for two classes: n rows contain no information on rarer events."""
    return 1.0 / ((n + n_classes) * (n_classes - 1.0))


def class_scores(levels: HostArray, values: HostArray, n: float) -> tuple[HostArray, HostArray]:
    """Two scores of each class, (n, K) each: the log-odds of its decisions, and twice the mean of its field.

    The log-odds are those of the fraction of trade-offs at which the class is decided for, at least 1/(n + 2) away from
    0 and 1. They are right where classes overlap. The mean also tells rows apart that are decided alike at all
    trade-offs.

    Parameters
    ----------
    levels : ndarray (q,)
        Trade-offs, ascending.
    values : ndarray (n, q, K)
        f_k(x)(θ) at the levels.
    n : float
        The number of fitted rows.

    Examples
    --------
    >>> values = np.array([[[-1.0, -1.0], [1.0, -1.0], [3.0, 1.0]]])
    >>> odds, mean = class_scores(np.array([-1.0, 0.0, 1.0]), values, 100.0)
    >>> odds.round(2), mean
    (array([[ 1.1, -1.1]]), array([[ 2., -1.]]))
    """
    rows, q, K = values.shape
    flip = sign_change(levels, -np.reshape(np.swapaxes(values, 1, 2), (rows * K, q))).reshape(rows, K)
    least, gaps = 1.0 / (n + 2.0), np.diff(levels)
    odds = logit(np.clip(0.5 - 0.5 * flip, least, 1.0 - least))
    weight = np.append(gaps, 0.0) + np.append(0.0, gaps) if q > 1 else np.ones(1)
    return odds, 2.0 * np.einsum("nqk,q->nk", values, weight / np.sum(weight))


def trade_off_levels(field: Any, nodes: HostArray, support: tuple[HostArray, HostArray]) -> HostArray:
    """The trade-offs at which the fields of the classes are computed; the nodes if they are known only there."""
    if field.knows_nodes_only:
        return np.unique(nodes)
    low, high = (float(np.ravel(end)[0]) for end in support)
    return np.linspace(low, high, LEVELS)


@final
@dataclass(frozen=True, eq=False)
class ClassScale:
    """Probabilities from scores of classes: p_k ∝ exp(a o_k + c m_k + b_k).

    Parameters
    ----------
    odds : float
        a, the weight of the log-odds o of the decisions.
    mean : float
        c, the weight of the mean m of the field.
    offsets : ndarray (K,)
        b.

    Examples
    --------
    >>> ClassScale(1.0, 0.0, np.zeros(2))((np.log([[3.0, 1.0]]), np.zeros((1, 2))), 100.0)
    array([[0.75, 0.25]])
    """

    odds: float
    mean: float
    offsets: HostArray

    @classmethod
    def uncalibrated(cls, n_classes: int) -> ClassScale:
        """Normalise the odds of the decisions."""
        return cls(1.0, 0.0, np.zeros(n_classes))

    def __call__(self, scores: tuple[HostArray, HostArray], n: float) -> HostArray:
        """Convert scores, (k, K) each, to probabilities (k, K) for a fit of n rows."""
        logs = self.odds * scores[0] + self.mean * scores[1] + self.offsets
        p = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
        p = np.maximum(p, smallest_probability(n, p.shape[1]))
        return np.asarray(p / np.sum(p, axis=1, keepdims=True))

    @classmethod
    def of(cls, fits: HeldOutFits, label: HostArray, count: float, levels: HostArray, n_classes: int) -> ClassScale:
        """Fit the scale to held-out rows.

        Parameters
        ----------
        fits : HeldOutFits
        label : ndarray (n,) of int
            The class of each row of the problem, 0, …, K − 1.
        count : float
            The number of fitted rows.
        levels : ndarray (q,)
            Trade-offs.
        n_classes : int
        """
        tasks = with_classes(levels[:, None], n_classes)
        bias, found = np.stack([field.bias(tasks) for field in fits.fields]), []
        for some in row_blocks(fits.rows.size, tasks.shape[0]):
            values = fits.values(tasks, some) + bias[fits.fold[some]]
            found.append(class_scores(levels, values.reshape(-1, levels.size, n_classes), count))
        scores = tuple(np.concatenate(parts) for parts in zip(*found, strict=True))
        (odds, mean), offsets = multinomial_scaling(scores, label[fits.rows], fits.omega, fits.count)
        return cls(float(odds), float(mean), offsets)
