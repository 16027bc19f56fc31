"""A fitted model as plain data: all that another language needs to evaluate it.

An array is {"shape": [...], "data": base64 of its float64 numbers, little-endian, row by row}. A part without a formula
of this library, such as a kernel given as a function, cannot be exported; the error says so.
"""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from infinitask._base.arrays import HostArray, to_host
from infinitask.calibration._levels import Levels
from infinitask.features._maps import CombinedMap, FeatureMap, FourierMap, KernelMap, PrecomputedMap
from infinitask.features._task import NodeMap, TaskMap
from infinitask.field import Field
from infinitask.kernels import Precomputed, Ranks
from infinitask.kernels._base import Description
from infinitask.tasks.level_set import SORTING_LEVELS

Exported = dict[str, Any]

FRACTIONS = np.arange(1, 201) / 200.0
"""The fractions at which a slider stops."""


def packed(values: Any) -> Exported:
    """Encode an array as text."""
    array = np.ascontiguousarray(to_host(values), dtype="<f8")
    return {"shape": list(array.shape), "data": base64.b64encode(array.tobytes()).decode("ascii")}


# ----------------------------------------------------------------------------------------------------- kernels
KINDS = ("function", "sum", "product", "scaled", "metric", "ranks", "each")
"""Kinds of descriptions that ``assets/kernels.js`` evaluates."""


def input_kernel(node: Description) -> Exported:
    """The description of an input kernel; raise an error if it has no formula of this library."""
    if node.kind in KINDS:
        return _written(node)
    known = {
        "python": "a kernel that is a function of Python",
        "precomputed": "a kernel matrix that was computed beforehand",
    }
    what = known.get(node.kind, f"the kernel {node.name}, which is not one of infinitask.kernels")
    raise ValueError(_cannot(what, "a named kernel such as 'rbf', or sums and products of those in infinitask.kernels"))


def task_kernel(node: Description) -> Exported:
    """The description of a task kernel; raise an error if it only knows its own tasks or is not of this library."""
    if node.kind != "function" or node.values["of"] == "equal":
        what = f"the task kernel {node.name}, which a slider cannot follow from task to task"
        raise ValueError(_cannot(what, "task_kernel='rbf', 'matern32', 'matern52', 'polynomial' or 'piecewise-linear'"))
    return _written(node)


def _written(node: Description) -> Exported:
    values = {name: _number(value) for name, value in node.values.items()}
    return {"kind": node.kind, **values, "parts": [input_kernel(part) for part in node.parts]}


def _number(value: Any) -> Any:
    """A value of a description as plain data; arrays become text."""
    if isinstance(value, Ranks):
        return [[packed(values), packed(scores)] for values, scores in value.columns]
    return packed(value) if isinstance(value, np.ndarray) else value


def _cannot(what: str, instead: str) -> str:
    return (
        f"The model uses {what}; a page evaluates the model without Python and cannot follow it. Fit with {instead} to "
        "explore it."
    )


# ---------------------------------------------------------------------------------------------------- features
def feature_map(left: FeatureMap) -> Exported:
    """x ↦ left(x)."""
    if isinstance(left, KernelMap):
        return {
            "type": "kernel",
            "kernel": input_kernel(left.kernel.describe()),
            "landmarks": packed(left.landmarks),
            "transform": packed(left.transform),
        }
    if isinstance(left, CombinedMap) and isinstance(left.map, FourierMap):
        return {"type": "fourier", "frequencies": packed(left.map.frequencies), "transform": packed(left.right)}
    if isinstance(left, PrecomputedMap):
        return input_kernel(Precomputed().describe())  # raises the error that says what is wrong
    what = f"features of the kind {type(left).__name__}"
    raise ValueError(_cannot(what, "features='auto', 'exact', 'nystroem' or 'fourier'"))


def task_map(psi: TaskMap | NodeMap) -> Exported:
    """θ ↦ ψ(θ), for tasks that are numbers."""
    if isinstance(psi, NodeMap):
        return {"type": "nodes", "nodes": packed(psi.nodes)}
    if any(nodes.shape[1] != 1 for nodes, _ in psi.landmarks):
        raise ValueError(_cannot("tasks with several coordinates", "a measure on an interval"))
    rest = None if psi.rest is None else {"map": task_map(psi.rest[0]), "right": packed(psi.rest[1])}
    return {
        "type": "kernel",
        "kernel": task_kernel(psi.kernel.describe()),
        "landmarks": [{"nodes": packed(nodes[:, 0]), "order": int(order)} for nodes, order in psi.landmarks],
        "transform": packed(psi.transform),
        "rest": rest,
    }


def field(learnt: Field, together: HostArray, single: HostArray = FRACTIONS[:0]) -> Exported:
    """h(x)(θ) = left(x)ᵀψ(θ) + b(θ), with ψ and b stored at the levels that are used most.

    The features of level sets differ greatly in size, so ψ has rounding errors of 1e-6, which depend on the levels that
    are evaluated together: if another library computed ψ again, p-values would differ by up to 3e-4.

    Parameters
    ----------
    learnt : Field
    together : ndarray (k,)
        Levels that are always evaluated together.
    single : ndarray (q,)
        Levels that are evaluated one at a time.
    """
    bias = None
    if learnt.bias_psi is not None and learnt.bias_coef is not None:
        bias = {"psi": task_map(learnt.bias_psi), "coef": packed(learnt.bias_coef)}
    return {
        "left": feature_map(learnt.left),
        "psi": task_map(learnt.psi),
        "bias": bias,
        "offset": float(learnt.offset),
        "together": {"psi": packed(learnt.psi(together)), "bias": packed(learnt.bias(together))},
        "single": {
            "levels": packed(single),
            "psi": packed(np.concatenate([learnt.psi(level) for level in single[:, None]] or [np.empty((0, 1))])),
            "bias": packed([learnt.bias(level)[0] for level in single[:, None]]),
        },
    }


# ------------------------------------------------------------------------------------------ post-fit calibration
def _parts(value: Any, arrays: tuple[str, ...], numbers: tuple[str, ...] = ()) -> Any:
    """Attributes of a calibration as plain data; None if there is no calibration."""
    if value is None:
        return None
    found = {name: packed(getattr(value, name)) for name in arrays}
    return found | {name: float(getattr(value, name)) for name in numbers}


def calibrated_levels(levels: Levels | None) -> Exported | None:
    """The map of levels as a lookup table: its knots and many levels in between."""
    if levels is None:
        return None
    table, slopes = levels._table, [float(slope) for slope in levels.slopes]
    numbers = _parts(levels, (), ("low", "high", "least_spread"))
    return {"asked": packed(table.levels), "taken": packed(table.values[0]), "slopes": slopes, **numbers}


# --------------------------------------------------------------------------------------------------- estimators
def quantiles(model: Any) -> Exported:
    """Export an InfiniteQuantileRegressor."""
    levels = model._curve_levels()
    if levels.size < 2:
        raise ValueError(_cannot(f"the single level {levels[0]:g}", "a measure on an interval, or several levels"))
    return {
        "field": field(model.field_, levels),
        "support": list(model._ends()),
        "levels": packed(levels),
        "rearranged": bool(model.recipe_.task.order.rearranged),
        "calibrated": calibrated_levels(getattr(model, "levels_", None)),
        "conformal": _parts(getattr(model, "calibration_", None), ("scores",), ("scale",)),
    }


def decisions(model: Any) -> Exported:
    """Export an InfiniteCostSensitiveClassifier, with the levels used for questions about all of Θ."""
    if model.classes_.size > 2:
        raise ValueError(
            f"The model has {model.classes_.size} classes; a page is made for decisions between two. Ask the model "
            "itself: predict(X, theta) with a cost for each class, and predict_proba(X)."
        )
    levels = model._trade_offs()
    return {
        "field": field(model.field_, levels),
        "support": list(model._ends()),
        "levels": packed(levels),
        "shift": _parts(getattr(model, "shift_", None), ("levels", "values")),
        "samples": float(model.n_samples_fit_),
    }


def level_sets(model: Any) -> Exported:
    """Export an InfiniteOneClassSVM, with the levels at which scores search for the sign change."""
    low, high = model._ends()
    fractions = FRACTIONS[(low <= FRACTIONS) & (high >= FRACTIONS)]
    nested, nu = bool(model.recipe_.task.order.rearranged), float(model.offset_)
    levels = model._curve_levels() if nested else np.unique(np.append(model._levels(SORTING_LEVELS), nu))
    if levels.size < 2:
        raise ValueError(_cannot(f"the single fraction {levels[0]:g}", "a measure on an interval"))
    return {
        "field": field(model.field_, levels, np.union1d(fractions, [nu, levels[0], levels[-1]])),
        "support": list(model._ends()),
        "levels": packed(levels),
        "nested": nested,
        "nu": nu,
        "shift": _parts(getattr(model, "shift_", None), ("levels", "values")),
        "deepest": None if model._deepest is None else packed(model._deepest),
    }
