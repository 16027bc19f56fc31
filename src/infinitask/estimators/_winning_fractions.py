"""Predictions of saved models in which the fields of all classes sum to zero at every list of costs.

New models have a continuum of trade-offs for each class, see :mod:`infinitask.estimators._many_classes`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from infinitask._base.arrays import HostArray
from infinitask.calibration._class_probabilities import with_classes
from infinitask.calibration._winning_fractions import (
    away_from_zero,
    cost_points,
    for_classes,
    winning_fractions_in_blocks,
)
from infinitask.estimators._parameters import ROUNDING, check_nodes

if TYPE_CHECKING:
    from infinitask.estimators._base import BaseInfiniteTask


def coupled_fields(model: BaseInfiniteTask, X: Any, costs: HostArray, per_sample: bool) -> HostArray:
    """f_k(x)(θ) for a checked X."""
    field, found, (q, K) = model.field_, [], costs.shape
    if field.knows_nodes_only:
        costs = check_nodes("theta", costs, model.nodes_)
    tasks = with_classes(costs, K)
    for rows, block in model._dense_blocks(X):
        if per_sample:
            own = tasks.reshape(q, K, K + 1)[rows]
            found.append(np.stack([field.paired(block, own[:, k]) for k in range(K)], axis=1))
        else:
            found.append(field(block, tasks).reshape(-1, q, K))
    return np.concatenate(found)


def winning_probabilities(model: BaseInfiniteTask, X: Any) -> HostArray:
    """(n, K): the fraction of all costs at which a class wins; the largest is the decision at equal costs."""
    K, field, scale = model.classes_.size, model.field_, getattr(model, "share_scale_", None)
    known = field.knows_nodes_only
    points = model.nodes_ if known else for_classes(cost_points(K), model.class_order_)
    equal = np.full((1, K), 1.0 / K)
    # if decisions follow the probabilities, the two agree already
    decided = scale is None and (not known or np.any(np.all(np.abs(points - equal) <= ROUNDING, axis=1)))
    fields, found = field.at(with_classes(points, K)), []  # ψ of all these tasks is computed once
    for _, block in model._dense_blocks(X):

        def values(rows: slice, block: Any = block) -> HostArray:
            return fields(block[rows, :])

        p = winning_fractions_in_blocks(values, block.shape[0], points)
        p = away_from_zero(p, model.n_samples_fit_)
        p = p if scale is None else scale(p, model.n_samples_fit_)
        found.append(_largest_at(p, np.argmax(field(block, with_classes(equal, K)), axis=1)) if decided else p)
    return np.concatenate(found)


def _largest_at(p: HostArray, decided: HostArray) -> HostArray:
    """Probabilities (n, K) changed so that the one at ``decided`` (n,) is the largest.

    If it is not, it is raised just above the largest; the sum stays one.
    """
    wrong = np.flatnonzero(np.argmax(p, axis=1) != decided)
    p[wrong, decided[wrong]] = np.max(p[wrong], axis=1) * (1.0 + 1e-9)  # above it despite rounding
    p[wrong] /= np.sum(p[wrong], axis=1, keepdims=True)
    return p
