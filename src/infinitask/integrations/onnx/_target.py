"""Targets on another scale, as a graph: quantiles of g(y) become quantiles of y by the inverse of g."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from infinitask.integrations.onnx._graph import Tensor
from infinitask.pipelines import TransformedTarget
from infinitask.pipelines._target import ROUNDING

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
