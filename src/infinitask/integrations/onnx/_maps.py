"""φ(x) and ψ(θ) as a graph, and the bias b(θ)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from infinitask._base.arrays import HostArray, to_host
from infinitask.features._maps import CombinedMap, FeatureMap, FourierMap, KernelMap, PrecomputedMap
from infinitask.features._task import NodeMap, TaskMap
from infinitask.field import Field
from infinitask.integrations.onnx._graph import Tensor, interpolated
from infinitask.integrations.onnx._kernels import OPERATIONS, gram


def features(left: FeatureMap, X: Tensor) -> Tensor:
    """x ↦ left(x), (n, s), for the kinds of maps that fits make."""
    if isinstance(left, CombinedMap):
        return features(left.map, X) @ _host(left.right)
    if isinstance(left, FourierMap):
        angles, q = X @ _host(left.frequencies), int(left.frequencies.shape[1])
        both = X.graph.joined([X.graph("Cos", angles), X.graph("Sin", angles)], axis=1)
        return both * math.sqrt(1.0 / q)
    if isinstance(left, PrecomputedMap):
        return X.take(np.asarray(left.columns, dtype=np.int64), axis=1) @ _host(left.transform)
    if isinstance(left, KernelMap):
        return gram(left.kernel.describe(), X, _host(left.landmarks)) @ _host(left.transform)
    raise TypeError(
        f"The model has features of the kind {type(left).__name__}, which are not of infinitask and have no ONNX "
        "graph; fit with features='auto', 'exact', 'nystroem' or 'fourier'."
    )


def _host(values: Any) -> HostArray:
    return np.asarray(to_host(values), dtype=np.float64)


def task_features(psi: TaskMap | NodeMap, theta: Tensor) -> Tensor:
    """ψ(θ) at tasks (q, d): (q, s)."""
    if isinstance(psi, NodeMap):
        return _of_nodes(psi.nodes, theta)
    node = psi.kernel.describe()
    if node.kind not in OPERATIONS:
        raise TypeError(
            f"The model uses the task kernel {node.name}, which has no ONNX graph here; fit with "
            "task_kernel='rbf', 'matern32', 'matern52', 'polynomial' or another named kernel."
        )
    columns = [gram(node, theta, np.asarray(nodes), order) for nodes, order in psi.landmarks]
    values = theta.graph.joined(columns, axis=1) @ psi.transform
    return values if psi.rest is None else values + task_features(psi.rest[0], theta) @ psi.rest[1]


def bias(field: Field, theta: Tensor) -> Tensor:
    """b(θ) at tasks (q, d), as a row (1, q)."""
    if field.bias_psi is None or field.bias_coef is None:
        return (theta * 0.0).sum(axis=1).with_axis(0) + float(field.offset)
    return (task_features(field.bias_psi, theta) @ field.bias_coef[:, None]).T + float(field.offset)


def _of_nodes(nodes: HostArray, theta: Tensor) -> Tensor:
    """The functions that are 1 at one node, 0 at the others and linear between: (q, m)."""
    if nodes.size == 1:
        return theta * 0.0 + 1.0
    before, after, share = interpolated(theta, nodes)
    places = np.arange(nodes.size)[None, :]
    at_start, at_end = (theta.graph("Equal", at.with_axis(1), places).real() for at in (before, after))
    share = share.with_axis(1)
    return at_start * (1.0 - share) + at_end * share
