"""From decisions to probabilities: log-odds that are linear in a score of h(x)(θ)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit, logsumexp, ndtri

from infinitask._base.arrays import HostArray

MAX_STEPS = 50
"""The maximum number of Newton steps of a logistic fit, and of halvings of one step."""


@final
@dataclass(frozen=True, eq=False)
class Scale:
    """The scale of the values h of each column: their standard deviation, or their ranks.

    Parameters
    ----------
    h : ndarray (n, k)
    scores : ndarray (n, k)
        Mean 0 and standard deviation 1, or normal scores.
    by_order : bool

    Examples
    --------
    >>> import numpy as np
    >>> h = np.array([[1.0], [2.0], [30.0]])
    >>> Scale.of(h, np.full(3, 1 / 3), by_order=True).scores[:, 0].round(2) + 0.0
    array([-0.97,  0.  ,  0.97])
    >>> Scale.of(h, np.full(3, 1 / 3), by_order=True).values(np.array([0.0])).round(6)
    array([2.])
    """

    h: HostArray
    scores: HostArray
    by_order: bool

    @classmethod
    def of(cls, h: HostArray, omega: HostArray, by_order: bool) -> Scale:
        """Compute the scores of values (n, k)."""
        if by_order:
            return cls(h, np.stack([_normal_scores(column, omega) for column in h.T], axis=1), by_order)
        mean = omega @ h
        deviation = np.sqrt(omega @ (h - mean) ** 2)
        return cls(h, (h - mean) / np.where(deviation > 0.0, deviation, 1.0), by_order)

    def values(self, scores: HostArray) -> HostArray:
        """The value of h in each column for a score, (k,); ±∞ beyond the scores of the rows.

        Beyond them nothing is known, and h of a fit of all rows varies more than held-out h.
        """
        found = np.empty(scores.size)
        for k, score in enumerate(scores):
            known, first = np.unique(self.scores[:, k], return_index=True)
            inside = known[0] <= score <= known[-1]
            found[k] = np.interp(score, known, self.h[first, k]) if inside else np.copysign(np.inf, score - known[0])
        return found


def _normal_scores(values: HostArray, omega: HostArray) -> HostArray:
    """Normal scores of values (n,), from their weighted ranks; equal values have equal scores."""
    _, place = np.unique(values, return_inverse=True)
    mass = np.bincount(place, weights=omega)
    return np.asarray(ndtri(np.cumsum(mass) - 0.5 * mass)[place])


def logistic_lines(
    h: HostArray, positive: HostArray, omega: HostArray, count: float | None = None
) -> tuple[HostArray, HostArray, HostArray]:
    """Slopes and intercepts of log-odds that are linear in each column of h, and the mean log loss: (k,) each.

    A slope is at least 0.

    Targets are Platt's: (n₊ + 1)/(n₊ + 2) for a positive row and 1/(n₋ + 2) for a negative one, with n₊ positive and
    n₋ negative rows. Hence separable classes have finite slopes too.

    Parameters
    ----------
    h : ndarray (n, k)
    positive : ndarray (n,) of bool
    omega : ndarray (n,)
        Weights that sum to one.
    count : float or None
        The number of rows, if some represent several; None: 1/Σω².

    Examples
    --------
    >>> import numpy as np
    >>> slope, intercept, loss = logistic_lines(np.array([[-1.0], [1.0]]), np.array([False, True]), np.full(2, 0.5))
    >>> slope.round(3), abs(intercept).round(3)
    (array([0.693]), array([0.]))
    """
    count = 1.0 / float(np.sum(omega**2)) if count is None else count
    ones = count * float(omega @ positive)
    target = np.where(positive, (ones + 1.0) / (ones + 2.0), 1.0 / (count - ones + 2.0))[:, None]
    mean = omega @ h
    deviation = np.sqrt(omega @ (h - mean) ** 2)
    known = deviation > 1e-10 * np.max(np.abs(h), initial=0.0)
    z = np.where(known, (h - mean) / np.where(known, deviation, 1.0), 0.0)
    a, c = np.zeros(h.shape[1]), np.full(h.shape[1], float(logit(omega @ target[:, 0])))

    def loss(a: HostArray, c: HostArray) -> HostArray:
        odds = a * z + c
        return np.asarray(omega @ (np.logaddexp(0.0, odds) - target * odds))

    now = loss(a, c)
    for _ in range(MAX_STEPS):
        p = expit(a * z + c)
        error, curve = omega[:, None] * (p - target), omega[:, None] * p * (1.0 - p)
        ga, gc = np.sum(error * z, axis=0), np.sum(error, axis=0)
        # a ridge of the order of rounding, for columns z without information
        aa, ac, cc = np.sum(curve * z**2, axis=0) + 1e-12, np.sum(curve * z, axis=0), np.sum(curve, axis=0) + 1e-12
        det = aa * cc - ac**2
        da, dc = (cc * ga - ac * gc) / det, (aa * gc - ac * ga) / det
        step = np.ones(a.size)
        for _ in range(MAX_STEPS):
            fresh = loss(a - step * da, c - step * dc)
            lower = fresh <= now + 1e-14 * np.abs(now)  # up to rounding: columns that have converged must not wait
            if np.all(lower):
                break
            step = np.where(lower, step, 0.5 * step)
        step = np.where(lower, step, 0.0)
        a, c, now = a - step * da, c - step * dc, np.minimum(fresh, now)
        if np.max(step * (np.abs(da) + np.abs(dc))) < 1e-8:
            break
    rises = known & (a > 0.0)
    slope = np.where(rises, a / np.where(known, deviation, 1.0), 0.0)
    flat = float(logit(omega @ target[:, 0]))
    intercept = np.where(rises, c - slope * mean, flat)
    odds = slope * h + intercept
    return slope, intercept, np.asarray(omega @ (np.logaddexp(0.0, odds) - target * odds))


def held_out_log_losses(h: list[HostArray], positive: list[HostArray], weight: list[HostArray]) -> list[HostArray]:
    """The log losses of two classes on each fold, with log-odds linear in h that are fitted to the other folds.

    Parameters
    ----------
    h : list of ndarray (n_k, q)
        Held-out values of each fold.
    positive : list of ndarray (n_k,) of bool
    weight : list of ndarray (n_k,)
    """
    found = []
    for k, values in enumerate(h):
        others = [b for b in range(len(h)) if b != k] or [k]
        known, label, omega = (np.concatenate([part[b] for b in others]) for part in (h, positive, weight))
        slope, intercept, _ = logistic_lines(known, label, omega / np.sum(omega))
        odds = slope * values + intercept
        found.append(np.logaddexp(0.0, odds) - positive[k][:, None] * odds)
    return found


def multinomial_scaling(
    scores: tuple[HostArray, ...], label: HostArray, omega: HostArray, count: float | None = None
) -> tuple[HostArray, HostArray]:
    """Fit weights a_j > 0 and offsets b (K,), which sum to 0, by the likelihood of p_k ∝ exp(Σ_j a_j s_jk + b_k).

    The prior of each log a_j and of the b_k is a standard normal distribution: they stay near zero if there are few
    rows, or if all predictions are right. If a class has a fraction s < 1/K of the rows, the variance of b_k is
    1/(K s), so that the mean probability of a rare class is its fraction of the rows.

    Parameters
    ----------
    scores : tuple of ndarray (n, K)
        s_j, one or several scores of each class.
    label : ndarray (n,) of int
        The class of each row, 0, …, K − 1.
    omega : ndarray (n,)
        Weights that sum to one.
    count : float or None
        The number of rows, if some represent several; None: 1/Σω².

    Examples
    --------
    >>> p = np.tile([0.5, 0.25, 0.25], (1000, 1))  # and class 1 is as frequent as class 0
    >>> a, b = multinomial_scaling((np.log(p),), np.repeat([0, 1, 2], [400, 400, 200]), np.full(1000, 1e-3))
    >>> q = p[0] ** a[0] * np.exp(b)
    >>> (q / q.sum()).round(2)
    array([0.4, 0.4, 0.2])
    """
    count = 1.0 / float(np.sum(omega**2)) if count is None else count
    (n, K), J = scores[0].shape, len(scores)
    rows, weight = np.arange(n), count * omega
    fraction = np.bincount(label, weights=omega, minlength=K)
    # every class counts as at least one row: a class may be absent from the held-out rows
    prior = np.append(np.ones(J), np.clip(K * np.maximum(fraction, 1.0 / count), 0.0, 1.0))

    def minus_likelihood(v: HostArray) -> tuple[float, HostArray]:
        a = np.exp(v[:J])
        odds = sum(a[j] * scores[j] for j in range(J)) + v[J:]
        odds = odds - logsumexp(odds, axis=1, keepdims=True)
        wrong = np.exp(odds)
        wrong[rows, label] -= 1.0
        wrong *= weight[:, None]
        value = -float(weight @ odds[rows, label]) + 0.5 * float(v @ (prior * v))
        by_weight = [a[j] * np.sum(wrong * scores[j]) for j in range(J)]
        return value, np.append(by_weight, np.sum(wrong, axis=0)) + prior * v

    bounds = [(-8.0, 3.0)] * J + [(-20.0, 20.0)] * K
    found = minimize(minus_likelihood, np.zeros(J + K), jac=True, method="L-BFGS-B", bounds=bounds).x
    return np.exp(found[:J]), np.asarray(found[J:] - np.mean(found[J:]))
