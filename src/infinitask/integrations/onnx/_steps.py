"""What stands around a model, as a graph: steps of scikit-learn before it, and the inverse of a transformed target."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from infinitask._base.arrays import HostArray
from infinitask.integrations.onnx._graph import Tensor
from infinitask.pipelines import TransformedTarget
from infinitask.pipelines._target import ROUNDING


def changed(step: Any, X: Tensor) -> Tensor:
    """What a step makes of the features (n, d)."""
    write = None if getattr(step, "func", None) is not None else _STEPS.get(type(step))
    if write is None:
        raise TypeError(
            f"The pipeline has the step {type(step).__name__}, which has no ONNX graph here; "
            f"{', '.join(cls.__name__ for cls in _STEPS)} have. Export the last step alone, to_onnx(model[-1]), and "
            "give the graph what model[:-1].transform(X) makes."
        )
    return write(step, X)


def undone(step: Any, X: HostArray) -> HostArray:
    """Inputs that a step makes these of, but for what it has lost."""
    if not isinstance(step, SimpleImputer):
        return np.asarray(step.inverse_transform(X))
    before = np.tile(np.nan_to_num(np.asarray(step.statistics_, dtype=float)), (X.shape[0], 1))
    kept = _kept(step)
    before[:, kept] = X[:, : kept.size]
    return before


def _kept(step: SimpleImputer) -> HostArray:
    """Columns that the fit has seen a number in."""
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
    """g⁻¹ of predictions of g(y); NaN where it is not the inverse of a monotone function, which Python refuses."""
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
