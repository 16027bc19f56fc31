"""More than two classes: costs of errors, decisions and probabilities.

With K > 2 classes there is a field for each class against all others, and a trade-off for each. Their probabilities are
coupled, and with costs θ = (θ_1, …, θ_K) of false negatives of each class the largest θ_k p_k decides. The loss is
:class:`~infinitask.losses.OneAgainstRest`, and :class:`~infinitask.kernels.ClassTask` keeps the fields apart.
Everything else is the same as in every fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import _num_samples

from infinitask._base.arrays import HostArray, row_blocks
from infinitask._base.validation import finite
from infinitask.calibration._class_probabilities import ClassScale, class_scores, trade_off_levels, with_classes
from infinitask.estimators._parameters import ROUNDING
from infinitask.estimators._winning_fractions import coupled_fields, winning_probabilities
from infinitask.tasks import ClassesTask
from infinitask.tasks.classes import class_costs

if TYPE_CHECKING:
    from infinitask.estimators._base import BaseInfiniteTask


def several_classes(y: Any, sample_weight: Any) -> bool:
    """Whether more than two labels have rows of positive weight; False if y is not a list of labels."""
    try:
        counted = slice(None) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64) > 0.0
        with np.errstate(invalid="ignore"):  # NaN is refused later
            return bool(type_of_target(np.asarray(y)[counted]) == "multiclass")
    except (TypeError, ValueError, IndexError):  # later checks raise an error
        return False


def check_one_type(y: Any) -> None:
    """Raise an error if labels cannot be sorted because they have several types, or if one is None.

    Examples
    --------
    >>> check_one_type(np.array(["dry", "fog"]))
    """
    labels = np.asarray(y)
    if labels.dtype != object or labels.ndim != 1:
        return
    try:
        np.unique(labels)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in labels})
        raise TypeError(
            f"y holds labels of the types {', '.join(kinds)}; they must be of one type, all texts or all numbers, and "
            "none missing. Convert them, say by str, and leave out rows without a label."
        ) from None


# -------------------------------------------------------------------------------------------------- costs
def costs_by_name(theta: Any, classes: HostArray) -> Any:
    """Costs of a dictionary, a series or the columns of a table, in the order of ``classes``.

    Everything else, and tables with the default names 0, 1, 2, …, is returned unchanged.

    Examples
    --------
    >>> costs_by_name({"fog": 9.0, "dry": 1.0}, np.array(["dry", "fog"])).tolist()
    [1.0, 9.0]
    """
    if isinstance(theta, Mapping):
        return _ordered(list(theta.values()), list(theta), classes, "the names of theta")
    columns = getattr(theta, "columns", None)
    if columns is not None:
        return _ordered(np.asarray(theta), columns, classes, "the columns of theta")
    return _ordered(theta, getattr(theta, "index", None), classes, "the index of theta")


def cost_matrix(costs: Any, classes: HostArray, n: int) -> HostArray:
    """The cost of each prediction beyond that of the correct one, (1, K, K) or (n, K, K): C_ij − C_ii.

    The cost or gain of the correct prediction does not change which prediction is best. Rows and columns that a table
    names may have any order. A Polars table names only its columns; its rows must be in the order of ``classes``.
    """
    K = classes.size
    columns = getattr(costs, "columns", None)
    if columns is not None:
        costs = _ordered(np.asarray(costs), getattr(costs, "index", None), classes, "the index of costs", axis=0)
        costs = _ordered(costs, columns, classes, "the columns of costs")
    C = finite("costs", costs, np.ndim(costs))
    if C.shape not in ((K, K), (n, K, K)):
        raise ValueError(
            f"costs of shape {C.shape} was given for {K} classes and {n} rows; give a matrix ({K}, {K}), in which "
            "costs[i, j] is the cost of predicting classes_[j] where the truth is classes_[i], or one for each row, "
            f"({n}, {K}, {K})."
        )
    C = C.reshape(-1, K, K)
    more = C - np.diagonal(C, axis1=1, axis2=2)[:, :, None]
    if np.any(np.max(np.abs(more), axis=(1, 2)) <= ROUNDING * np.max(np.abs(C), axis=(1, 2), initial=0.0)):
        raise ValueError(
            "costs holds a matrix in which every prediction costs the same; nothing is to be decided then. Give a "
            "wrong prediction a cost that differs from that of the right one."
        )
    return np.asarray(more)


def costs_of_matrix(more: HostArray) -> HostArray | None:
    """The class costs (q, K) that are equivalent to matrices (q, K, K) of :func:`cost_matrix`; None if there are none.

    A false negative of class i costs θ_i for any prediction: all entries but C_ii are equal, and not negative.
    """
    K = more.shape[1]
    off = more[:, ~np.eye(K, dtype=bool)].reshape(-1, K, K - 1)
    size = np.max(np.abs(more), axis=(1, 2), keepdims=True)
    if np.any(np.ptp(off, axis=2, keepdims=True) > ROUNDING * size) or np.any(off < 0.0):
        return None
    return np.asarray(off[:, :, 0])


def _ordered(values: Any, names: Any, classes: HostArray, what: str, axis: int = -1) -> Any:
    """Values in the order of ``classes`` along an axis; unchanged if they have no names, or only default ones."""
    default = type(names).__name__ == "RangeIndex" and names.start == 0 and names.step == 1
    if names is None or callable(names) or default:
        return values
    return np.take(np.asarray(values), _places(list(names), classes, what), axis=axis)


def _places(names: list[Any], classes: HostArray, what: str) -> list[int]:
    """The position of each class among the names, which are labels or labels as text, each exactly once."""
    labels = classes.tolist()
    known = names if set(names) & set(labels) else [str(given) for given in names]
    asked = labels if known is names else [str(label) for label in labels]
    unknown = [names[i] for i, given in enumerate(known) if given not in asked]
    missing = [labels[i] for i, label in enumerate(asked) if label not in known]
    if unknown or missing or len(set(known)) < len(known):
        found = [f"holds {unknown}, which are no classes" if unknown else "", f"lacks {missing}" if missing else ""]
        found += ["" if unknown or missing else "holds a class twice"]
        raise ValueError(
            f"{what} must name each of the classes {labels} once: it {' and '.join(filter(None, found))}. Give the "
            "names of classes_, or an array in their order."
        )
    return [known.index(label) for label in asked]


# -------------------------------------------------------------------------------------------------- predictions
def decision_values(model: BaseInfiniteTask, X: Any, theta: Any, per_sample: bool) -> HostArray:
    """Decision values, log θ_k p_k minus its mean: (n, K) for one list of costs or one for each row, else (n, q, K)."""
    costs, single = class_costs(costs_by_name(theta, model.classes_), model.classes_.size)
    if per_sample and costs.shape[0] != _num_samples(X):
        raise ValueError(
            f"theta holds {costs.shape[0]} lists of costs for {_num_samples(X)} rows of X; with per_sample=True "
            "give one for each input."
        )
    if isinstance(model.recipe_.task, ClassesTask) and not hasattr(model, "share_scale_"):
        values = coupled_fields(model, model._inputs(X), costs, per_sample)
    else:
        p = probabilities(model, X)
        values = np.log(np.maximum(costs, 1e-300)) + np.log(p if per_sample else p[:, None, :])
        values -= np.mean(values, axis=-1, keepdims=True)
    return values[:, 0] if single and not per_sample else values


def probabilities(model: BaseInfiniteTask, X: Any) -> HostArray:
    """(n, K): the probabilities of all classes, coupled; normalised odds if they are not calibrated."""
    X, K, n = model._inputs(X), model.classes_.size, model.n_samples_fit_
    if isinstance(model.recipe_.task, ClassesTask):
        return winning_probabilities(model, X)
    levels = trade_off_levels(model.field_, model.nodes_, model.measure_.support)
    scale = getattr(model, "class_scale_", None) or ClassScale.uncalibrated(K)
    fields, found = model.field_.at(with_classes(levels[:, None], K)), []
    for _, block in model._dense_blocks(X):
        for rows in row_blocks(block.shape[0], levels.size * K):
            values = fields(block[rows, :]).reshape(-1, levels.size, K)
            found.append(scale(class_scores(levels, values, n), n))
    p = np.empty((X.shape[0], K))
    p[:, model.class_order_] = np.concatenate(found)
    return p
