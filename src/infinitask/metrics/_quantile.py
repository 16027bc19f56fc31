"""Metrics of predicted quantiles and intervals."""

from __future__ import annotations

from typing import Any

import numpy as np

from infinitask._base.arrays import HostArray
from infinitask._base.validation import (
    coverages,
    finite,
    intervals,
    levels_within,
    nonnegative,
    predictions,
    shares,
    targets,
)
from infinitask.tasks import QuantileTask


def integrated_pinball_loss(
    y_true: Any, y_pred: Any, quantiles: Any, weights: Any = None, sample_weight: Any = None
) -> float:
    """Compute the integrated pinball loss Σ_j w_j Σ_i ω_i max(θ_j r_ij, (θ_j − 1) r_ij), r_ij = y_i − q_ij.

    Parameters
    ----------
    y_true : array (n,)
    y_pred : array (n, q)
        Predicted quantiles, one column per level; (n,) for one level.
    quantiles : float or array (q,)
        The levels θ_j in [0, 1].
    weights : array (q,) or None
        The weights w_j of a quadrature, used without normalisation; None: 1/q each, the mean over the levels. The sum
        over levels reported in papers is q times that mean.
    sample_weight : array (n,) or None

    Returns
    -------
    float

    Examples
    --------
    >>> integrated_pinball_loss([0.0, 1.0], [[0.0, 0.5], [0.0, 0.5]], quantiles=[0.1, 0.9])
    0.15
    """
    y, predicted, levels = _quantiles(y_true, y_pred, quantiles)
    q = levels.size
    weights = np.full(q, 1.0 / q) if weights is None else nonnegative("weights", weights, q, "levels")
    return float(shares(sample_weight, y.size) @ _pinball(y, predicted, levels) @ weights)


def crossing_loss(y_pred: Any, quantiles: Any = None, sample_weight: Any = None) -> float:
    """Compute Σ_j Σ_i ω_i (q_ij − q_i(j+1))₊: by how much the quantiles of adjacent levels decrease.

    This is the mean decrease, summed over adjacent levels, as in the paper but without its factor 100. It depends on
    the levels: compare models at the same levels.

    Parameters
    ----------
    y_pred : array (n, q)
        Predicted quantiles.
    quantiles : array (q,) or None
        Levels; None: the columns are in ascending order of their levels.
    sample_weight : array (n,) or None

    Returns
    -------
    float

    Examples
    --------
    >>> crossing_loss([[0.0, 1.0, 0.5], [0.0, 1.0, 2.0]])
    0.25
    """
    predicted = finite("y_pred", y_pred, 2)
    n = len(predicted)
    if quantiles is not None:
        levels = levels_within("quantiles", quantiles, 0.0, 1.0)
        predicted = predictions(predicted, n, levels.size, "quantiles")[:, np.argsort(levels, kind="stable")]
    falls = np.maximum(predicted[:, :-1] - predicted[:, 1:], 0.0)
    return float(np.sum(shares(sample_weight, n) @ falls))


def crps(y_true: Any, y_pred: Any, quantiles: Any = None, sample_weight: Any = None) -> float:
    """Compute the CRPS, ∫ (F_i(z) − 1[y_i ≤ z])² dz = 2 ∫₀¹ ρ_θ(y_i − q_i(θ)) dθ, averaged over i.

    This is the continuous ranked probability score. For quantiles, the integral over θ is a sum in which each level
    represents the part of (0, 1) nearest to it; with 99 levels the relative error is about one percent.

    Parameters
    ----------
    y_true : array (n,)
    y_pred : array (n, q) or predictive distribution
        Predicted quantiles, or an object with a method ``crps(y)`` that returns (n,).
    quantiles : array (q,) or None
        Levels in [0, 1]; not for a distribution.
    sample_weight : array (n,) or None

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> levels = (np.arange(100) + 0.5) / 100
    >>> round(crps([0.5], levels[None], levels), 4)  # a uniform distribution on (0, 1), at its middle: 1/12
    0.0834
    """
    if hasattr(y_pred, "crps"):
        y = targets(y_true)
        scores = np.broadcast_to(np.asarray(y_pred.crps(y), dtype=np.float64), y.shape)
        return float(shares(sample_weight, y.size) @ scores)
    if quantiles is None:
        raise ValueError("quantiles=None was given with predicted quantiles; crps needs the level of every column.")
    y, predicted, levels = _quantiles(y_true, y_pred, quantiles)
    order = np.argsort(levels, kind="stable")
    ends = np.concatenate([[0.0], 0.5 * (levels[order][1:] + levels[order][:-1]), [1.0]])
    return float(2.0 * (shares(sample_weight, y.size) @ _pinball(y, predicted, levels)[:, order] @ np.diff(ends)))


def interval_coverage(y_true: Any, y_interval: Any, sample_weight: Any = None) -> Any:
    """Compute the fraction of targets inside their intervals, Σ_i ω_i 1[l_i ≤ y_i ≤ u_i].

    Parameters
    ----------
    y_true : array (n,)
    y_interval : array (n, 2), or (n, q, 2) for q coverages
        The lower and upper ends, as returned by ``predict_interval``. −∞ and +∞ are allowed: they exclude nothing.
    sample_weight : array (n,) or None

    Returns
    -------
    float, or ndarray (q,) for q coverages

    Examples
    --------
    >>> interval_coverage([0.0, 1.0, 2.0, 3.0], [[-1.0, 1.0]] * 4)
    0.5
    """
    y, (low, high) = _interval(y_true, y_interval)
    return _average(shares(sample_weight, y.shape[0]), ((low <= y) & (y <= high)).astype(np.float64))


def calibration_error(y_true: Any, y_pred: Any, quantiles: Any, sample_weight: Any = None) -> float:
    """Compute (1/q) Σ_j |Σ_i ω_i 1[y_i ≤ q_ij] − θ_j|, the mean distance between empirical coverage and level.

    Parameters
    ----------
    y_true : array (n,)
    y_pred : array (n, q)
        Predicted quantiles; (n,) for one level.
    quantiles : float or array (q,)
    sample_weight : array (n,) or None

    Returns
    -------
    float

    Examples
    --------
    >>> calibration_error([1.0, 2.0, 3.0, 4.0], [[1.5, 3.5]] * 4, quantiles=[0.25, 0.5])
    0.125
    """
    y, predicted, levels = _quantiles(y_true, y_pred, quantiles)
    return float(np.mean(np.abs(shares(sample_weight, y.size) @ (y[:, None] <= predicted) - levels)))


def mean_interval_width(y_interval: Any, sample_weight: Any = None) -> Any:
    """Compute the mean width Σ_i ω_i (u_i − l_i); an interval whose ends cross has a negative width.

    Parameters
    ----------
    y_interval : array (n, 2), or (n, q, 2) for q coverages
        The lower and upper ends; −∞ and +∞ are allowed.
    sample_weight : array (n,) or None

    Returns
    -------
    float, or ndarray (q,) for q coverages
        Infinite if an interval with positive weight is.

    Examples
    --------
    >>> mean_interval_width([[0.0, 1.0], [0.0, 3.0]])
    2.0
    """
    low, high = intervals(y_interval)
    return _average(shares(sample_weight, low.shape[0]), high - low)


def interval_score(y_true: Any, y_interval: Any, coverage: Any, sample_weight: Any = None) -> Any:
    """Compute the interval score Σ_i ω_i [(u_i − l_i) + (2/α)(l_i − y_i)₊ + (2/α)(y_i − u_i)₊], α = 1 − coverage.

    It combines width and coverage. It is minimal for the quantiles of levels α/2 and 1 − α/2 (Gneiting and Raftery,
    2007).

    Parameters
    ----------
    y_true : array (n,)
    y_interval : array (n, 2), or (n, q, 2) for q coverages
        The lower and upper ends; −∞ and +∞ are allowed.
    coverage : float or array (q,)
        In (0, 1).
    sample_weight : array (n,) or None

    Returns
    -------
    float, or ndarray (q,) for q coverages
        Infinite if an interval with positive weight is.

    Examples
    --------
    >>> interval_score([0.0, 2.0], [[-1.0, 1.0], [-1.0, 1.0]], coverage=0.5)
    4.0
    """
    asked, single = coverages(coverage)
    y, (low, high) = _interval(y_true, y_interval)
    if low.shape[1:] != (() if single else asked.shape):
        raise ValueError(
            f"coverage={coverage!r} was given for y_interval of shape {np.shape(y_interval)}; give one coverage for "
            "intervals (n, 2), and q for (n, q, 2)."
        )
    alpha = 1.0 - (asked[0] if single else asked)
    missed = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
    return _average(shares(sample_weight, y.shape[0]), high - low + 2.0 / alpha * missed)


def _quantiles(y_true: Any, y_pred: Any, quantiles: Any) -> tuple[HostArray, HostArray, HostArray]:
    y, levels = targets(y_true), levels_within("quantiles", quantiles, 0.0, 1.0)
    return y, predictions(y_pred, y.size, levels.size, "quantiles"), levels


def _pinball(y: HostArray, predicted: HostArray, levels: HostArray) -> HostArray:
    return np.asarray(QuantileTask().loss.value(levels, y[:, None], predicted))


def _average(weight: HostArray, values: HostArray) -> Any:
    """Return Σ_i ω_i v_i of values (n,) or each column of (n, q); infinite values of weight 0 are ignored."""
    weight = weight.reshape(-1, *[1] * (values.ndim - 1))
    total = np.sum(weight * np.where(weight > 0.0, values, 0.0), axis=0)
    return total if total.ndim else float(total)


def _interval(y_true: Any, y_interval: Any) -> tuple[HostArray, tuple[HostArray, HostArray]]:
    """Return targets (n,) with ends (n,), or targets (n, 1) with ends (n, q) for q coverages."""
    y, ends = targets(y_true), intervals(y_interval)
    if ends[0].shape[0] != y.size:
        raise ValueError(f"y_interval has {ends[0].shape[0]} rows for {y.size} targets; give one interval per target.")
    return y.reshape(-1, *[1] * (ends[0].ndim - 1)), ends
