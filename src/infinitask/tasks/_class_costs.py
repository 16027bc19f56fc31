"""Costs of many classes: what a user gives, and the order of the classes in evenly spread costs."""

from __future__ import annotations

from typing import Any

import numpy as np

from infinitask._base.arrays import HostArray
from infinitask._base.validation import numbers


def class_costs(theta: Any, n_classes: int, name: str = "theta") -> tuple[HostArray, bool]:
    """Costs of the classes as (q, K), each summing to one, and whether one list of them was given.

    The constructor's 0, and None, stand for equal costs.
    """
    K = n_classes
    if theta is None or (np.ndim(theta) == 0 and np.asarray(theta).dtype.kind in "biuf" and theta == 0.0):
        return np.full((1, K), 1.0 / K), True
    costs = numbers(name, theta)
    if costs.ndim not in (1, 2) or costs.shape[-1] != K or costs.size == 0:
        raise ValueError(
            f"{name} of shape {costs.shape} was given to a model of {K} classes; it must hold what a missed row of "
            f"each class costs, ({K},) or (q, {K}) in the order of classes_. A single number is a trade-off of two "
            "classes."
        )
    single, costs = costs.ndim == 1, np.atleast_2d(costs)
    if not np.all(np.isfinite(costs)) or np.any(costs < 0.0):
        raise ValueError(f"{name} holds a cost that is negative or not finite; give numbers of at least 0.")
    size = np.max(costs, axis=1, keepdims=True)
    if np.any(size == 0.0):
        raise ValueError(f"{name} holds costs that are all 0; nothing is to be decided then. Give at least one cost.")
    costs = costs / size
    return np.asarray(costs / np.sum(costs, axis=1, keepdims=True)), single


def class_order(X: HostArray, label: HostArray, weight: HostArray, n_classes: int) -> HostArray:
    """The classes in an order that does not depend on their names, (K,): by their weight, then by their mean inputs.

    Nodes are not symmetric in the classes; in this order other names of the labels change no decision.
    """
    chosen = 1.0 * (label[:, None] == np.arange(n_classes)) * weight[:, None]
    mass = np.sum(chosen, axis=0)
    means = (chosen.T @ X) / mass[:, None]
    return np.lexsort((*means.T[::-1], mass))


def for_classes(costs: HostArray, order: HostArray) -> HostArray:
    """Evenly spread costs with each coordinate at the class that it stands for."""
    found = np.empty_like(costs)
    found[:, order] = costs
    return found
