"""What a model predicts at (X, θ), as a graph: h, and all that the model does to it before a user sees it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from typing import Any, NamedTuple, final

import numpy as np
from sklearn.base import ClassifierMixin, OutlierMixin

from infinitask._base.arrays import HostArray, to_host
from infinitask._base.validation import LARGEST, SUPPORT_SLACK
from infinitask.calibration._levels import Levels, _quartile_levels
from infinitask.estimators._base import BaseInfiniteTask
from infinitask.features import KernelMap
from infinitask.features._maps import FourierMap
from infinitask.field import Field
from infinitask.integrations.onnx._graph import Tensor, interpolated, piecewise_linear
from infinitask.integrations.onnx._kernels import bias, features, same_task, task_features
from infinitask.kernels._task import SAME_TASK


@final
@dataclass(frozen=True)
class Bare:
    """A field as a model, h alone at any task: what a graph asks of a fitted model."""

    field_: Field
    n_features_in_: int
    nodes_: HostArray
    _support: tuple[HostArray, HostArray]
    _looked_at: tuple[HostArray] | None

    @classmethod
    def of(cls, field: Field) -> Bare:
        """The model of a field whose columns are known."""
        left, nodes = getattr(field.left, "map", field.left), field.psi.landmarks[0][0]
        far = np.full(nodes.shape[1], np.inf)
        nodes = nodes[:, 0] if nodes.shape[1] == 1 else nodes
        if isinstance(left, KernelMap):
            return cls(field, int(left.landmarks.shape[1]), nodes, (-far, far), (to_host(left.landmarks),))
        if isinstance(left, FourierMap):
            return cls(field, int(left.frequencies.shape[0]), nodes, (-far, far), None)
        raise TypeError(
            "A field of a Gram matrix that was computed beforehand does not know its columns; export the model."
        )


class Question(NamedTuple):
    """The method of a model that a graph stands for, and what its tasks are called there."""

    method: str
    tasks: str


def question(model: Any) -> Question:
    """What is asked of a model: decisions of classifiers and of level sets, predictions of others."""
    if isinstance(model, Bare):
        return Question("field_", "theta")
    if not isinstance(model, BaseInfiniteTask):
        hint = " Its function h can be exported alone: to_onnx(model.field_)." if hasattr(model, "field_") else ""
        raise TypeError(
            f"{type(model).__name__} has no ONNX graph; the models of infinitask for quantiles, expectiles, costs, "
            "level sets, SVR, kernel ridge, curves and InfiniteTaskEstimator have one, those that tune themselves too."
            + hint
        )
    classes = getattr(model, "classes_", ())
    if len(classes) > 2:
        raise ValueError(
            f"{type(model).__name__} was fitted to {len(classes)} classes; the ONNX graph of a decision has two. "
            "Export one model of two classes after the other."
        )
    method = "decision_function" if isinstance(model, (ClassifierMixin, OutlierMixin)) else "predict"
    return Question(method, list(signature(getattr(model, method)).parameters)[1])


def answer(model: Any, X: Tensor, theta: Tensor) -> Tensor:
    """(n, q) for checked features X (n, d) and tasks (q, d_Θ); NaN where Python refuses a row or a task."""
    asked = question(model)
    X = (X.abs() <= LARGEST).where(X, np.nan)
    if hasattr(model, "training_rows_"):
        X = X.take(model.training_rows_, axis=1)
    theta = _allowed(model, theta, asked)
    if isinstance(model, OutlierMixin):
        values = _level_sets(model, X, theta)
    else:
        values = (_shifted if isinstance(model, (Bare, ClassifierMixin)) else _regressions)(model, X, theta)
    # sorting and clipping may lose a NaN on the way
    return values + ((X * 0.0).sum(axis=1, keepdims=True) + (theta * 0.0).sum(axis=1).with_axis(0))


def _allowed(model: Any, theta: Tensor, asked: Question) -> Tensor:
    """The tasks, with NaN for those that Python refuses; where few are known, these to the last bit."""
    low, high = (np.asarray(end, dtype=float)[None, :] for end in model._support)
    bounds = np.abs(np.concatenate([low, high]))
    slack = SUPPORT_SLACK * np.max(np.where(np.isfinite(bounds), bounds, 0.0), axis=0, keepdims=True)
    inside = (theta >= low - slack) & (theta <= high + slack)
    if asked.tasks in ("quantiles", "expectiles"):  # the ends of their domain are none
        (first,), (last,) = model.recipe_.task.loss.box(1)
        inside = inside & (theta.graph.constant(float(first)) < theta) & (theta < float(last))
    theta = inside.where(theta, np.nan)
    nodes = np.asarray(model.nodes_, dtype=float).reshape(len(model.nodes_), -1)
    kernel = model.field_.psi.kernel.describe()
    if kernel.kind == "matrix":
        nodes = kernel.values["tasks"][:, None]
    elif not model.field_.knows_nodes_only:
        return theta
    nodes = np.unique(nodes, axis=0)
    # a number in single precision is as near to its task as it can be
    same = same_task(theta, nodes, tolerance=SAME_TASK if theta.graph.double else SUPPORT_SLACK).real()
    known = (same.graph.constant(0.5) < same.sum(axis=1, keepdims=True)).where(0.0, np.nan)
    return same @ nodes + known


# ------------------------------------------------------------------------------------------------------------- h
def _plain(field: Field, X: Tensor, theta: Tensor) -> Tensor:
    """h(x)(θ) = φ(x)ᵀ C ψ(θ) + b(θ), (n, q)."""
    return features(field.left, X) @ task_features(field.psi, theta).T + bias(field, theta)


def _at_levels(field: Field, X: Tensor, levels: HostArray) -> Tensor:
    """h at levels that stay the same, whose ψ and b are constants: (n, k)."""
    return features(field.left, X) @ field.psi(levels).T + field.bias(levels)[None, :]


def _in_order(values: Tensor, count: int, *, increasing: bool = True) -> Tensor:
    """Each row sorted."""
    return values.graph("TopK", values, np.array([count]), axis=1, largest=int(not increasing), sorted=1)


def _along(curves: Tensor, levels: HostArray, theta: Tensor, *, increasing: bool = True) -> Tensor:
    """Curves (n, k) at tasks (q, 1), linear between their levels: (n, q)."""
    if levels.size == 1:
        return curves + (theta * 0.0).T
    before, after, fraction = interpolated(theta, levels)
    fraction = fraction.at_least(0.0).at_most(1.0).with_axis(0)
    start, end = curves.take(before, axis=1), curves.take(after, axis=1)
    between = start + fraction * (end - start)
    return (fraction < 1.0).where(between.at_most(end) if increasing else between.at_least(end), end)


# ------------------------------------------------------------------------------------------------------- answers
def _regressions(model: Any, X: Tensor, theta: Tensor) -> Tensor:
    field, levels = model.field_, getattr(model, "levels_", None)
    sorted_curves = model.recipe_.task.order.rearranged or (levels is not None and field.knows_nodes_only)
    if sorted_curves:
        at = model._curve_levels()
        curves = _in_order(_at_levels(field, X, at), at.size)

    def quantiles(tasks: Tensor) -> Tensor:
        return _along(curves, at, tasks) if sorted_curves else _plain(field, X, tasks)

    return quantiles(theta) if levels is None else _calibrated(levels, quantiles, theta)


def _calibrated(levels: Levels, Q: Callable[[Tensor], Tensor], theta: Tensor) -> Tensor:
    """Quantiles at the levels that hold on held-out rows; straight lines beyond the outer ones."""
    table = levels._table
    taken = piecewise_linear(theta, [(table.levels, table.values[0])])
    inside = taken.at_least(float(levels.low)).at_most(float(levels.high))
    beyond = taken - inside
    excess = beyond.at_most(0.0) * float(levels.slopes[0]) + beyond.at_least(0.0) * float(levels.slopes[1])
    quartiles = Q(theta.graph.constant(_quartile_levels(levels.low, levels.high)[:, None]))
    spread = quartiles.take(np.array([1]), axis=1) - quartiles.take(np.array([0]), axis=1)
    return Q(inside) + spread.at_least(float(levels.least_spread)) * excess.T


def _shifted(model: Any, X: Tensor, theta: Tensor, sign: float = 1.0) -> Tensor:
    """h with the shift of decisions that was calibrated, if there is one."""
    values, shift = _plain(model.field_, X, theta), getattr(model, "shift_", None)
    return values if shift is None else values + piecewise_linear(theta, [(shift.levels, sign * shift.values)]).T


def _level_sets(model: Any, X: Tensor, theta: Tensor) -> Tensor:
    if not model.recipe_.task.order.rearranged:
        return _shifted(model, X, theta, sign=-1.0)  # of a threshold
    levels = model._curve_levels()
    curves = _at_levels(model.field_, X, levels) - np.broadcast_to(model._learnt().shift(levels), levels.shape)[None, :]
    curves = _in_order(curves, levels.size, increasing=False)
    low, high = model._ends()
    fractions = theta.at_least(low).at_most(high)
    values = _along(curves, levels, fractions, increasing=False)
    if levels.size == 1:
        return values
    # the sign is that of θ*(x) − ν, where interpolation may round to 0
    inside = _fall(curves, levels, low, high) >= fractions.T
    return inside.where(values.at_least(0.0), values.at_most(float(np.nextafter(0.0, -1.0))))


def _fall(curves: Tensor, levels: HostArray, low: float, high: float) -> Tensor:
    """Where falling curves (n, k) pass 0, (n, 1); just below Θ for those that are negative throughout."""
    last = levels.size - 1
    top, bottom = curves.take(np.arange(last), axis=1), curves.take(np.arange(1, last + 1), axis=1)
    depth = top - bottom
    fraction = (top.graph.constant(0.0) < depth).where(top / depth, (top >= 0.0).real())
    change = fraction.at_least(0.0).at_most(1.0) @ np.diff(levels)[:, None] + float(levels[0])
    negative = curves.take(np.array([0]), axis=1) < 0.0
    return negative.where(float(np.nextafter(low, -np.inf)), change.at_least(low).at_most(high))
