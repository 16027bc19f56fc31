"""Metrics of cost-sensitive classifiers, which predict labels for every trade-off of the two errors."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from infinitask._base.arrays import HostArray
from infinitask._base.extras import display
from infinitask._base.validation import levels_within, shares
from infinitask.predictive import ROCCurve


class SensitivitySpecificity(NamedTuple):
    """The sensitivity and specificity at each task; it unpacks as ``sensitivity, specificity``.

    Parameters
    ----------
    sensitivity, specificity : ndarray (q,), or ()

    Examples
    --------
    >>> import numpy as np
    >>> rates = SensitivitySpecificity(np.array([0.5, 1.0]), np.array([1.0, 0.5]))
    >>> rates.sensitivity, rates.specificity
    (array([0.5, 1. ]), array([1. , 0.5]))
    """

    sensitivity: HostArray
    specificity: HostArray

    def plot(self, theta: Any, ax: Any = None, *, chosen: Any = None, look: Any = None) -> Any:
        """Plot the policies; return a :class:`~infinitask.plotting.ThetaROCDisplay` (extra "plot").

        Parameters
        ----------
        theta : array (q,)
            The trade-offs at which the labels were predicted.
        ax : matplotlib axes or None
            None: a new figure.
        chosen : float, array (k,) or None
            The trade-offs to mark.
        look : {"light", "dark"}, Look or None
        """
        levels = levels_within("theta", theta, -1.0, 1.0)
        sensitivity, specificity = np.atleast_1d(self.sensitivity), np.atleast_1d(self.specificity)
        if levels.shape != sensitivity.shape:
            raise ValueError(f"theta holds {levels.size} values for {sensitivity.size} tasks; give one for each.")
        order = np.argsort(levels)
        curve = ROCCurve(levels[order], 1.0 - specificity[order], sensitivity[order])
        return display("ThetaROCDisplay")(curve, chosen).plot(ax, look=look)


def sensitivity_specificity(
    y_true: Any, y_pred: Any, pos_label: Any = None, sample_weight: Any = None
) -> SensitivitySpecificity:
    """Compute P(ŷ = + | y = +) and P(ŷ = − | y = −) for each task.

    Parameters
    ----------
    y_true : array (n,)
        Two labels.
    y_pred : array (n,) or (n, q)
        Predicted labels, one column per task.
    pos_label : label or None
        The positive class; None: the larger label.
    sample_weight : array (n,) or None

    Returns
    -------
    SensitivitySpecificity
        ``sensitivity`` and ``specificity``, (q,) each, or () for predictions (n,).

    Examples
    --------
    >>> sensitivity, specificity = sensitivity_specificity([0, 0, 1, 1], [[0, 1], [0, 0], [0, 1], [1, 1]])
    >>> sensitivity, specificity
    (array([0.5, 1. ]), array([1. , 0.5]))
    """
    positive, said, weight = _decisions(y_true, y_pred, pos_label, sample_weight)
    if not (np.any(weight[positive] > 0.0) and np.any(weight[~positive] > 0.0)):
        raise ValueError(
            f"y_true holds one class only, as pos_label={pos_label!r} and sample_weight see it: its labels are "
            f"{np.unique(y_true).tolist()}. Sensitivity and specificity need samples of both."
        )
    weight = np.ones(positive.size) if sample_weight is None else weight  # counts are exact
    rates = []
    for of, right in ((positive, said), (~positive, ~said)):
        found, missed = (weight * of) @ right, (weight * of) @ ~right
        rates.append(np.asarray(found / (found + missed)))  # 1 if nothing is missed, whatever the rounding
    return SensitivitySpecificity(*rates)


def integrated_cost(y_true: Any, y_pred: Any, theta: Any, pos_label: Any = None, sample_weight: Any = None) -> float:
    """Compute (1/q) Σ_j Σ_i ω_i c_θj(y_i) 1[ŷ_ij ≠ y_i], c = (1 + θ)/2 for positives and (1 − θ)/2 for negatives.

    This is the cost of false decisions, averaged over the trade-offs θ_j. For levels symmetric around 0, the better of
    the two constant decisions costs at most 1/2.

    Parameters
    ----------
    y_true : array (n,)
        Two labels.
    y_pred : array (n, q)
        Predicted labels, one column per θ; (n,) for one.
    theta : float or array (q,)
        In [−1, 1].
    pos_label : label or None
        The positive class; None: the larger label.
    sample_weight : array (n,) or None

    Returns
    -------
    float

    Examples
    --------
    >>> integrated_cost([0, 1], [[1, 0], [1, 0]], theta=[-0.5, 0.5])
    0.375
    """
    levels = levels_within("theta", theta, -1.0, 1.0)
    positive, said, weight = _decisions(y_true, y_pred, pos_label, sample_weight)
    said = said.reshape(said.shape[0], -1)
    if said.shape[1] != levels.size:
        raise ValueError(f"y_pred has {said.shape[1]} columns for {levels.size} values of theta; give one each.")
    cost = np.where(positive[:, None], 0.5 * (1.0 + levels), 0.5 * (1.0 - levels))
    return float(np.mean(weight @ (cost * (said != positive[:, None]))))


def _decisions(y_true: Any, y_pred: Any, pos_label: Any, sample_weight: Any) -> tuple[HostArray, HostArray, HostArray]:
    """Return whether labels are positive (n,), are predicted positive (n,) or (n, q), and the weights (n,)."""
    y, predicted = np.asarray(y_true), np.asarray(y_pred)
    if y.ndim != 1 or y.size == 0 or predicted.ndim not in (1, 2) or predicted.shape[0] != y.size:
        raise ValueError(
            f"y_true of shape {y.shape} and y_pred of shape {predicted.shape} were given; they must be (n,), and (n,) "
            "or (n, q)."
        )
    labels = np.unique(np.concatenate([np.unique(y), np.unique(predicted)]))
    if labels.size > 2:
        raise ValueError(f"y_true and y_pred hold the labels {labels.tolist()}; give two labels at most.")
    # if the data contain one label only, pos_label may be the other one
    if pos_label is not None and labels.size == 2 and pos_label not in labels.tolist():
        raise ValueError(
            f"pos_label={pos_label!r} was given, and y_true and y_pred hold the labels {labels.tolist()}; give one of "
            "them, or None for the larger."
        )
    label = labels[-1] if pos_label is None else pos_label
    return y == label, predicted == label, shares(sample_weight, y.size)
