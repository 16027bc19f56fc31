"""Kernels as a graph, k(x, Z) for constants Z such as landmarks, and the maps φ(x), ψ(θ) and b(θ) based on them."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from infinitask._base.arrays import HostArray, to_host
from infinitask.features._maps import CombinedMap, FeatureMap, FourierMap, KernelMap, PrecomputedMap
from infinitask.features._task import NodeMap, TaskMap
from infinitask.field import Field
from infinitask.integrations.onnx._graph import Tensor, interpolated, piecewise_linear, total
from infinitask.kernels import Ranks
from infinitask.kernels._base import Description, Profile
from infinitask.kernels._distances import DIFFERENCE_COLUMNS, PRODUCT_ROUNDING
from infinitask.kernels._task import SAME_TASK

ENTRIES_PER_ROW = 2**12
"""The maximum size of the differences to landmarks per row, 32 KiB: a thousand rows take 32 MiB."""


def gram(node: Description, X: Tensor, Z: HostArray, order: int = 0) -> Tensor:
    """k(x, z) for the rows of X (n, d) and Z (p, d), or ∂₂k(x, z) for d = 1 and order 1: (n, p)."""
    write = OPERATIONS.get(node.kind)
    if write is not None:
        return write(node, X, Z, order)
    what = "a kernel that is a function of Python" if node.kind == "python" else f"the kernel {node.name}"
    raise TypeError(
        f"The model uses {what}, which has no ONNX graph here; fit with a named kernel such as 'rbf', or with sums and "
        "products of those in infinitask.kernels."
    )


# ---------------------------------------------------------------------------------------------------- distances
def _chi2_term(x: Tensor, z: HostArray) -> Tensor:
    x = (x >= 0.0).where(x, np.nan)  # Python refuses negative numbers
    apart, both = x - z, x + z
    # if x = z = 0, the denominator becomes 1 and the term is 0
    return apart * (apart / (both + (both <= 0.0).real()))


_TERMS: dict[str, Callable[[Tensor, HostArray], Tensor]] = {
    "squared": lambda x, z: (x - z) * (x - z),
    "l1": lambda x, z: (x - z).abs(),
    "chi2": _chi2_term,
    "product": lambda x, z: x * z,
}
"""The contribution of each column to s(x, z)."""


def _over_columns(X: Tensor, Z: HostArray, write: Callable[[Tensor, HostArray, HostArray], Tensor]) -> Tensor:
    """Σ of ``write(x, z, columns)`` (n, p, c) over all columns, (n, p), for x (n, 1, c) and z (1, p, c)."""
    d, width = Z.shape[1], max(1, ENTRIES_PER_ROW // max(1, Z.shape[0]))
    blocks = [np.arange(start, min(start + width, d)) for start in range(0, d, width)]
    return total(write(X.take(at, axis=1).with_axis(1), Z[None, :, at], at).sum(axis=2) for at in blocks)


def _distance(X: Tensor, Z: HostArray, p: Profile) -> Tensor:
    term = _TERMS[p.of]
    return _over_columns(X, Z, lambda x, z, at: term(x, z)) * float(p.gamma)


def _squared(X: Tensor, Z: HostArray, p: Profile) -> Tensor:
    """γ‖x − z‖², (n, p)."""
    # if f has a finite slope at 0, rounding there is harmless
    if p.is_smooth and Z.shape[1] > DIFFERENCE_COLUMNS:
        gamma, middle = float(p.gamma), Z[:1] + np.mean(Z - Z[:1], axis=0, keepdims=True)
        right = Z - middle
        norms = np.sum(right * right, axis=1)
        if sys.float_info.epsilon * gamma * float(norms.max()) <= PRODUCT_ROUNDING:
            left = X - middle
            own = (left * left).sum(axis=1, keepdims=True)
            squares: Tensor = (own + norms[None, :] + left @ (-2.0 * right.T)).at_least(0.0) * gamma
            return squares
    return _distance(X, Z, p)


def _product(X: Tensor, Z: HostArray, p: Profile) -> Tensor:
    root = math.sqrt(p.gamma)
    product: Tensor = (X * root) @ (root * Z).T
    return product


def same_task(S: Tensor, T: HostArray, tolerance: float = SAME_TASK) -> Tensor:
    """Whether tasks (q, d) equal those of T (p, d), up to rounding: (q, p)."""
    slack = np.broadcast_to(tolerance * np.maximum(np.abs(T), 1.0), T.shape)
    near = ((S.with_axis(1) - T[None]).abs() <= slack[None]).cast(np.int64)
    return S.graph("Equal", near.sum(axis=2), np.array([T.shape[1]]))


_STATISTICS: dict[str, Callable[[Tensor, HostArray, Profile], Tensor]] = {
    "squared": _squared,
    "l1": _distance,
    "chi2": _distance,
    "product": _product,
    "minimum": lambda S, T, p: S.at_most(T.T),
    "equal": lambda S, T, p: same_task(S, T).real(),
}


# --------------------------------------------------------------------------------------------------- operations
def _decay(u: Tensor) -> Tensor:
    return (-u).exp()


def _function(node: Description, X: Tensor, Z: HostArray, order: int) -> Tensor:
    p = Profile(**node.values)
    s = _STATISTICS[p.of](X, Z, p)
    if order == 0:
        values: Tensor = p.at(s, Tensor.sqrt, _decay)
        return values
    u: Tensor = p.argument(s, Tensor.sqrt)
    if p.of == "product":
        return u * 0.0 if p.power == 0 else (u ** (p.power - 1)) * float(p.power * p.gamma) * X
    rate = float(p.factor * p.gamma)
    inner = X.graph("Sign", X - Z.T) * -math.sqrt(rate) if p.root else (X - Z.T) * (-2.0 * rate)
    slope: Tensor = p.slope(u)
    return inner * slope * _decay(u)


def _scaled(node: Description, X: Tensor, Z: HostArray, order: int) -> Tensor:
    scales = node.values["scales"]
    inner = gram(node.parts[0], X * scales[None, :], Z * scales, order)
    return inner if order == 0 else inner * float(scales[0])


def _metric(node: Description, X: Tensor, Z: HostArray, order: int) -> Tensor:
    root = node.values["root"]
    return gram(node.parts[0], X @ root, Z @ root)


def _ranks(node: Description, X: Tensor, Z: HostArray, order: int) -> Tensor:
    ranks: Ranks = node.values["ranks"]
    return gram(node.parts[0], piecewise_linear(X, ranks.columns), ranks(Z))


def _each(node: Description, X: Tensor, Z: HostArray, order: int) -> Tensor:
    d = int(Z.shape[1])
    parts = node.parts if len(node.parts) == d else node.parts * d
    profile = parts[0].profile
    if profile is None:
        each = [gram(part, X.take(np.array([j]), axis=1), Z[:, j : j + 1]) for j, part in enumerate(parts)]
        return total(each) * (1.0 / d)
    # one kernel resolved on each feature: they differ by γ alone
    term, gammas = _TERMS[profile.of], np.array([part.values["gamma"] for part in parts])

    def values(x: Tensor, z: HostArray, at: HostArray) -> Tensor:
        found: Tensor = profile.at(term(x, z) * gammas[at], Tensor.sqrt, _decay)
        return found

    return _over_columns(X, Z, values) * (1.0 / d)


def _matrix(node: Description, S: Tensor, T: HostArray, order: int) -> Tensor:
    names = node.values["tasks"]
    places = np.argmin(np.abs(names[:, None] - T[:, 0]), axis=0)
    columns: HostArray = node.values["matrix"][:, places]
    return same_task(S, names[:, None]).real() @ columns


OPERATIONS: dict[str, Callable[[Description, Tensor, HostArray, int], Tensor]] = {
    "function": _function,
    "sum": lambda node, X, Z, order: total(gram(part, X, Z, order) for part in node.parts),
    "product": lambda node, X, Z, order: gram(node.parts[0], X, Z) * gram(node.parts[1], X, Z),
    "scaled": _scaled,
    "metric": _metric,
    "ranks": _ranks,
    "each": _each,
    "matrix": _matrix,
}
"""The function that writes each kind of description."""


# ------------------------------------------------------------------------------------------------------- feature maps
def features(left: FeatureMap, X: Tensor) -> Tensor:
    """x ↦ left(x), (n, s), for the feature maps that fits create."""
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
    before, after, fraction = interpolated(theta, nodes)
    places = np.arange(nodes.size)[None, :]
    at_start, at_end = (theta.graph("Equal", at.with_axis(1), places).real() for at in (before, after))
    fraction = fraction.with_axis(1)
    return at_start * (1.0 - fraction) + at_end * fraction
