"""Validation of the specs, tasks, targets and weights that estimators are given.

Numbers, words and flags are checked by the table of :mod:`infinitask._base.validation`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight, check_array, check_consistent_length, column_or_1d

from infinitask._base.arrays import HostArray
from infinitask._base.validation import naming
from infinitask.estimators._sources import on_host
from infinitask.features import feature_recipe
from infinitask.kernels import input_kernel, task_kernel
from infinitask.losses import Loss
from infinitask.measures import Measure
from infinitask.measures._rules import quadrature_rule

ROUNDING = 1e-12
"""Tasks and costs that differ by less than this are equal."""


def stack_level() -> int:
    """The ``stacklevel`` at which a warning of the calling function points at the user's line."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").startswith("infinitask"):
        frame, level = frame.f_back, level + 1
    return level


def is_as_task(bias_kernel: Any) -> bool:
    """Whether there is no bias, or one with the kernel of the tasks."""
    return bias_kernel is None or (isinstance(bias_kernel, str) and bias_kernel == "task")


def is_fraction(loss: Loss) -> bool:
    """Whether a task of this loss is a fraction, which users may give as a percentage by mistake."""
    return loss.domain == (0.0, 1.0)


def check_nodes(name: str, tasks: HostArray, nodes: HostArray) -> HostArray:
    """The nodes (m, d) that the tasks (q, d) are, up to rounding; raises an error if a task is not a node."""
    same = np.all(np.abs(tasks[:, None, :] - nodes[None]) <= ROUNDING, axis=2)
    known = np.any(same, axis=1)
    if not np.all(known):
        raise ValueError(
            f"{name} contains {np.squeeze(tasks[~known][0])}, which is not a node; the model knows "
            f"{np.squeeze(nodes, axis=1).tolist() if nodes.shape[1] == 1 else nodes.tolist()} and nothing between. Ask "
            "for one of these, or fit with other tasks or another kernel of tasks."
        )
    return np.asarray(nodes[np.argmax(same, axis=1)])


def check_inside(name: str, tasks: HostArray, loss: Loss) -> None:
    """Raise an error if a task is an end of the loss's domain."""
    (low,), (high,) = loss.box(1)
    if not (low < tasks.min() and tasks.max() < high):
        raise ValueError(
            f"{name} contains {low:g} or {high:g}, where no finite prediction exists; ask for levels strictly between."
        )


def check_domain(measure: Measure, loss: Loss) -> None:
    """Raise an error if the loss is not defined on all of Θ."""
    if loss.dim not in (None, measure.dim):
        raise ValueError(
            f"measure={measure!r} lives in {measure.dim} dimensions; {type(loss).__name__} takes θ of dimension "
            f"{loss.dim}."
        )
    (low, high), (first, last) = measure.support, loss.box(measure.dim)
    if not (np.all(low >= first) and np.all(high <= last)):
        several = measure.dim > 1
        hint = ", or give the loss a domain with one pair for each coordinate" if several else ""
        raise ValueError(
            f"measure={measure!r} lives on {_box(low, high)}; {type(loss).__name__} is defined for θ in "
            f"{_box(first, last)}. Restrict the measure to {'these intervals' if several else 'that interval'}{hint}."
        )


def _box(low: HostArray, high: HostArray) -> str:
    """The intervals of a box, one for each coordinate."""
    return " × ".join(f"[{a:g}, {b:g}]" for a, b in zip(low, high, strict=True))


def targets_of(X: Any, y: Any) -> HostArray:
    """y as finite numbers, one for each row of X."""
    with naming("y"):
        y = check_array(column_or_1d(on_host(y)), ensure_2d=False, dtype=np.float64, input_name="y")
        check_consistent_length(X, y)
    return np.asarray(y)


def weights_of(sample_weight: Any, X: Any) -> HostArray:
    """Nonnegative weights, one for each row of X, not all of them 0; None: 1 each."""
    with naming("sample_weight"):
        weight = _check_sample_weight(on_host(sample_weight), X, dtype=np.float64, ensure_non_negative=True)
    if not np.any(weight > 0.0):
        raise ValueError("sample_weight is zero for every row; at least one row must count.")
    return np.asarray(weight)


SPEC_READERS: Mapping[str, Callable[[Any], Any]] = {
    "kernel": input_kernel,
    "task_kernel": task_kernel,
    "bias_kernel": lambda spec: None if is_as_task(spec) else task_kernel(spec, name="bias_kernel"),
    "quadrature": quadrature_rule,
    "features": feature_recipe,
}
"""The functions that read specs, so that a wrong spec raises an error before the data are read."""


def check_specs(parameters: Mapping[str, Any]) -> None:
    """Raise an error for the first invalid spec."""
    for name, read in SPEC_READERS.items():
        if name in parameters:
            read(parameters[name])
