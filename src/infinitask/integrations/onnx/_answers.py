"""The predictions of a model at (X, θ) as a graph: h, and all post-processing by the model.

The model may be preceded by steps of scikit-learn, or predict a transformed target, whose inverse is then applied.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from typing import Any, NamedTuple, final

import numpy as np
from sklearn.base import ClassifierMixin, OutlierMixin
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from infinitask._base.arrays import HostArray, to_host
from infinitask._base.inner_model import steps_and_model
from infinitask._base.validation import LARGEST, SUPPORT_SLACK
from infinitask.calibration._levels import Levels, _quartile_levels
from infinitask.estimators import CrossConformal
from infinitask.estimators._base import BaseInfiniteTask
from infinitask.features import KernelMap
from infinitask.features._maps import FourierMap
from infinitask.field import Field
from infinitask.integrations.onnx._graph import Tensor, interpolated, piecewise_linear, total
from infinitask.integrations.onnx._kernels import bias, features, same_task, task_features
from infinitask.kernels._task import SAME_TASK
from infinitask.pipelines import TransformedTarget
from infinitask.pipelines._target import ROUNDING


@final
@dataclass(frozen=True)
class Bare:
    """A field as a model, h alone at any task, with the attributes of a fitted model that a graph needs."""

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


class Opened(NamedTuple):
    """A model behind the steps of a pipeline.

    Parameters
    ----------
    steps : list of transformers
        The transformers that are applied before the model.
    core : estimator or Bare
    inside : list of Opened
        The models that the core uses: one for each fold, or that of a transformed target.
    method, tasks : str
        The method of the core that the graph computes, and the name of its task argument.
    """

    steps: list[Any]
    core: Any
    inside: list[Opened]
    method: str
    tasks: str

    @classmethod
    def of(cls, model: Any) -> Opened:
        """Open a pipeline, a search, a self-tuned model, or a field."""
        if isinstance(model, Field):
            return cls([], Bare.of(model), [], "field_", "theta")
        steps, core = steps_and_model(model, stop=lambda inner: hasattr(inner, "inverse_func"))
        asked = core.estimators_ if isinstance(core, CrossConformal) else []
        asked = [core.estimator_] if isinstance(core, TransformedTarget) else asked
        method, tasks = ("predict", "quantiles") if asked else _question(core)
        return cls([step for _, step in steps], core, [cls.of(one) for one in asked], method, tasks)

    @property
    def innermost(self) -> Any:
        """A model that knows its tasks."""
        return self.inside[0].innermost if self.inside else self.core

    @property
    def columns(self) -> int:
        """The number of columns of X."""
        if self.inside and not self.steps:
            return self.inside[0].columns
        return int([*self.steps, self.core][0].n_features_in_)

    @property
    def knows_nodes_only(self) -> bool:
        """Whether the model predicts only at the tasks of its fit."""
        field = self.innermost.field_
        return bool(field.knows_nodes_only or field.psi.kernel.describe().kind == "matrix")


def _question(model: Any) -> tuple[str, str]:
    """The method of a model to export: decisions of classifiers and of level sets, predictions of others."""
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
    return method, list(signature(getattr(model, method)).parameters)[1]


def predictions(opened: Opened, X: Tensor, theta: Tensor) -> Tensor:
    """The predictions, after the steps of a pipeline."""
    core, given = opened.core, X
    for step in opened.steps:
        X = changed(step, X)
    if isinstance(core, TransformedTarget):
        values = in_units(core, predictions(opened.inside[0], X, theta if core.increasing_ else 1.0 - theta))
    elif opened.inside:
        values = total([predictions(one, X, theta) for one in opened.inside]) * (1.0 / len(opened.inside))
    else:
        values = _answer(opened, X, theta)
    if not opened.steps:
        return values
    # a step that clips would turn values that Python refuses into numbers
    infinite = given.graph("IsInf", given).where(np.nan, 0.0)
    return values + infinite.sum(axis=1, keepdims=True)


def _answer(opened: Opened, X: Tensor, theta: Tensor) -> Tensor:
    """(n, q) for checked features X (n, d) and tasks (q, d_Θ); NaN if Python refuses the row or the task."""
    model = opened.core
    X = (X.abs() <= LARGEST).where(X, np.nan)
    if hasattr(model, "training_rows_"):
        X = X.take(model.training_rows_, axis=1)
    theta = _allowed(opened, theta)
    if isinstance(model, OutlierMixin):
        values = _level_sets(model, X, theta)
    else:
        values = (_shifted if isinstance(model, (Bare, ClassifierMixin)) else _regressions)(model, X, theta)
    # sorting and clipping may lose a NaN
    return values + ((X * 0.0).sum(axis=1, keepdims=True) + (theta * 0.0).sum(axis=1).with_axis(0))


def _allowed(opened: Opened, theta: Tensor) -> Tensor:
    """The tasks, with NaN for those that Python refuses; if only a few tasks are known, they are made exact."""
    model = opened.core
    low, high = (np.asarray(end, dtype=float)[None, :] for end in model._support)
    bounds = np.abs(np.concatenate([low, high]))
    slack = SUPPORT_SLACK * np.max(np.where(np.isfinite(bounds), bounds, 0.0), axis=0, keepdims=True)
    inside = (theta >= low - slack) & (theta <= high + slack)
    if opened.tasks in ("quantiles", "expectiles"):  # the ends of their domain are excluded
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
    """h at constant levels, whose ψ and b are constants: (n, k)."""
    return features(field.left, X) @ field.psi(levels).T + field.bias(levels)[None, :]


def _in_order(values: Tensor, count: int, *, increasing: bool = True) -> Tensor:
    """Sort each row."""
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


# --------------------------------------------------------------------------------------------------- predictions
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
    """Quantiles at the levels that are calibrated on held-out rows; linear extrapolation beyond the outer ones."""
    table = levels._table
    taken = piecewise_linear(theta, [(table.levels, table.values[0])])
    inside = taken.at_least(float(levels.low)).at_most(float(levels.high))
    beyond = taken - inside
    excess = beyond.at_most(0.0) * float(levels.slopes[0]) + beyond.at_least(0.0) * float(levels.slopes[1])
    quartiles = Q(theta.graph.constant(_quartile_levels(levels.low, levels.high)[:, None]))
    spread = quartiles.take(np.array([1]), axis=1) - quartiles.take(np.array([0]), axis=1)
    return Q(inside) + spread.at_least(float(levels.least_spread)) * excess.T


def _shifted(model: Any, X: Tensor, theta: Tensor, sign: float = 1.0) -> Tensor:
    """h with the calibrated shift of decisions, if there is one."""
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
    """The tasks at which falling curves (n, k) cross 0, (n, 1); just below Θ for curves that are always negative."""
    last = levels.size - 1
    top, bottom = curves.take(np.arange(last), axis=1), curves.take(np.arange(1, last + 1), axis=1)
    depth = top - bottom
    fraction = (top.graph.constant(0.0) < depth).where(top / depth, (top >= 0.0).real())
    change = fraction.at_least(0.0).at_most(1.0) @ np.diff(levels)[:, None] + float(levels[0])
    negative = curves.take(np.array([0]), axis=1) < 0.0
    return negative.where(float(np.nextafter(low, -np.inf)), change.at_least(low).at_most(high))


def changed(step: Any, X: Tensor) -> Tensor:
    """Apply a step to the features (n, d)."""
    write = None if getattr(step, "func", None) is not None else _STEPS.get(type(step))
    if write is None:
        raise TypeError(
            f"The pipeline has the step {type(step).__name__}, which has no ONNX graph here; "
            f"{', '.join(cls.__name__ for cls in _STEPS)} have. Export the last step alone, to_onnx(model[-1]), and "
            "give the graph what model[:-1].transform(X) makes."
        )
    return write(step, X)


def undone(step: Any, X: HostArray) -> HostArray:
    """Features that a step maps to the given values, except for what it has lost."""
    if not isinstance(step, SimpleImputer):
        return np.asarray(step.inverse_transform(X))
    before = np.tile(np.nan_to_num(np.asarray(step.statistics_, dtype=float)), (X.shape[0], 1))
    kept = _kept(step)
    before[:, kept] = X[:, : kept.size]
    return before


def _kept(step: SimpleImputer) -> HostArray:
    """Columns in which the fit has seen a number."""
    return np.flatnonzero(~np.isnan(np.asarray(step.statistics_, dtype=float)))


def _moved(X: Tensor, middle: HostArray | None, scale: HostArray | None) -> Tensor:
    X = X if middle is None else X - middle[None, :]
    return X if scale is None else X / scale[None, :]


def _min_max(step: MinMaxScaler, X: Tensor) -> Tensor:
    X = X * step.scale_[None, :] + step.min_[None, :]
    if not step.clip:
        return X
    low, high = (float(end) for end in step.feature_range)
    return X.graph("IsNaN", X).where(X, X.at_least(low).at_most(high))


def _imputed(step: SimpleImputer, X: Tensor) -> Tensor:
    statistics = np.asarray(step.statistics_)
    if statistics.dtype.kind not in "fiu" or not isinstance(step.missing_values, (int, float)):
        raise TypeError("The pipeline has a SimpleImputer of texts; an ONNX graph takes numbers. Export the last step.")
    missing = X.graph("IsNaN", X) if np.isnan(step.missing_values) else X.graph("Equal", X, float(step.missing_values))
    filled = missing.where(statistics.astype(float)[None, :], X).take(_kept(step), axis=1)
    if step.indicator_ is None:
        return filled
    marked = missing.take(np.asarray(step.indicator_.features_, dtype=np.int64), axis=1).real()
    return X.graph.joined([filled, marked], axis=1)


_STEPS: dict[type[Any], Callable[[Any, Tensor], Tensor]] = {
    StandardScaler: lambda step, X: _moved(X, step.mean_ if step.with_mean else None, step.scale_),
    RobustScaler: lambda step, X: _moved(X, step.center_, step.scale_),
    MaxAbsScaler: lambda step, X: _moved(X, None, step.scale_),
    MinMaxScaler: _min_max,
    SimpleImputer: _imputed,
    FunctionTransformer: lambda step, X: X,
}


# ------------------------------------------------------------------------------------------- targets on another scale
_INVERSES: dict[Any, Callable[[Tensor], Tensor]] = {
    np.exp: lambda z: z.exp(),
    np.expm1: lambda z: z.exp() - 1.0,
    np.exp2: lambda z: (z * float(np.log(2.0))).exp(),
    np.sinh: lambda z: (z.exp() - (-z).exp()) * 0.5,
    np.square: lambda z: z * z,
    np.sqrt: lambda z: z.sqrt(),
    np.log: lambda z: z.graph("Log", z),
    np.log1p: lambda z: z.graph("Log", z + 1.0),
    np.negative: lambda z: -z,
    np.reciprocal: lambda z: z.graph("Reciprocal", z),
}


def in_units(model: TransformedTarget, z: Tensor) -> Tensor:
    """g⁻¹ of predictions of g(y); NaN if it is not the inverse of a monotone function, which Python refuses."""
    write = _INVERSES.get(model.inverse_func)
    if write is None:
        names = ", ".join(f"np.{function.__name__}" for function in _INVERSES)
        raise TypeError(
            f"TransformedTarget has inverse_func={model.inverse_func!r}, which has no ONNX graph here; {names} have. "
            "Export the model inside, to_onnx(model.estimator_), and apply the function to what the graph answers."
        )
    sign, (low, high) = 1.0 if model.increasing_ else -1.0, model._range
    ends = sign * model._inverse(np.array([low, high]))
    slack = ROUNDING * float(np.max(np.abs(ends)))
    u = write(z) * sign
    below, above = z < low, z.graph.constant(high) < z
    least = above.where(ends[1] - slack, below.where(-np.inf, ends[0] - slack))
    most = below.where(ends[0] + slack, above.where(np.inf, ends[1] + slack))
    return ((u >= least) & (u <= most)).where(u * sign, np.nan)
