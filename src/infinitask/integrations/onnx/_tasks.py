"""ψ as a graph: kernels of tasks, k(θ, t) for landmarks t that are constants, and the bias b(θ)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from infinitask._base.arrays import HostArray
from infinitask.features import NodeMap, TaskMap
from infinitask.field import Field
from infinitask.integrations.onnx._graph import Tensor, interpolated
from infinitask.kernels import (
    ConstantTask,
    Diagonal,
    Gaussian,
    MaternTask,
    PiecewiseLinear,
    PolynomialTask,
    TaskKernel,
    TaskMatrix,
)

SAME_TASK = 1e-12
"""A task this close to one that a finite kernel knows is that task."""


def task_features(psi: TaskMap | NodeMap, theta: Tensor) -> Tensor:
    """ψ(θ) at tasks (q, d): (q, s)."""
    if isinstance(psi, NodeMap):
        return _of_nodes(psi.nodes, theta)
    columns = [_gram(psi.kernel, theta, np.asarray(nodes), inner) for nodes, inner in psi.landmarks]
    values = theta.graph.joined(columns, axis=1) @ psi.transform
    return values if psi.rest is None else values + task_features(psi.rest[0], theta) @ psi.rest[1]


def bias(field: Field, theta: Tensor) -> Tensor:
    """b(θ) at tasks (q, d), as a row (1, q)."""
    if field.bias_psi is None or field.bias_coef is None:
        return (theta * 0.0).sum(axis=1).with_axis(0) + float(field.offset)
    return (task_features(field.bias_psi, theta) @ field.bias_coef[:, None]).T + float(field.offset)


def _of_nodes(nodes: HostArray, theta: Tensor) -> Tensor:
    """The functions that are 1 at one node, 0 at the others and linear between: (q, m)."""
    task = theta.sum(axis=1)  # of one coordinate
    if nodes.size == 1:
        return theta * 0.0 + 1.0
    before, after, share = interpolated(task, nodes)
    places = np.arange(nodes.size)[None, :]
    at_start, at_end = (theta.graph("Equal", at.with_axis(1), places).real() for at in (before, after))
    share = share.with_axis(1)
    return at_start * (1.0 - share) + at_end * share


def _gram(kernel: TaskKernel, S: Tensor, T: HostArray, order: int) -> Tensor:
    """∂₂^order k(s, t) for tasks S (q, d) and landmarks T (p, d): (q, p)."""
    write = _KERNELS.get(type(kernel))
    if write is None:
        raise TypeError(
            f"The model uses the task kernel {type(kernel).__name__}, which has no ONNX graph here; fit with "
            "task_kernel='rbf', 'matern32', 'matern52', 'polynomial' or another named kernel."
        )
    return write(kernel, S, T, order)


def _rates(kernel: Any, d: int) -> HostArray:
    """√γ of each coordinate, (d,)."""
    gammas = kernel._gammas(d) if isinstance(kernel.gamma, tuple) else (kernel._gamma,) * d
    return np.asarray(np.sqrt(np.array(gammas)))


def _length(S: Tensor, T: HostArray, rates: HostArray) -> Tensor:
    """‖(s − t)∘rates‖², (q, p)."""
    away = (S.with_axis(1) - T[None]) * rates[None, None, :]
    return S.graph("ReduceSumSquare", away, axes=[2], keepdims=0)


def _gaussian(k: Gaussian, S: Tensor, T: HostArray, order: int) -> Tensor:
    rates = _rates(k, T.shape[1])
    bell = (-_length(S, T, rates)).exp()
    return bell if order == 0 else (S - T.T) * (2.0 * rates[0] ** 2) * bell


def _matern(k: MaternTask, S: Tensor, T: HostArray, order: int) -> Tensor:
    rate = math.sqrt(4.0 * float(k.nu))
    rates = rate * _rates(k, T.shape[1])
    r = _length(S, T, rates).sqrt()
    fall = (-r).exp()
    rough = k.nu == 1.5
    if order == 0:
        return (r + 1.0 if rough else r * r * (1.0 / 3.0) + r + 1.0) * fall
    # ∂₂k = −a f′(v) with v = a(s − t), and f′(v) = −v e^(−r) or −v (1 + r) e^(−r) / 3
    slope: Tensor = (S - T.T) * float(rates[0] ** 2)
    return slope * fall if rough else slope * ((r + 1.0) * (1.0 / 3.0)) * fall


def _polynomial(k: PolynomialTask, S: Tensor, T: HostArray, order: int) -> Tensor:
    degree, base = int(k.degree), S @ T.T + float(k.coef0)
    return base**degree if order == 0 else (base ** (degree - 1)) * float(degree) * S


def _constant(k: ConstantTask, S: Tensor, T: HostArray, order: int) -> Tensor:
    return (S * 0.0).sum(axis=1, keepdims=True) + np.full((1, T.shape[0]), 1.0 if order == 0 else 0.0)


def _piecewise(k: PiecewiseLinear, S: Tensor, T: HostArray, order: int) -> Tensor:
    return S.at_most(T.T) + float(k.offset)


def _diagonal(k: Diagonal, S: Tensor, T: HostArray, order: int) -> Tensor:
    return same_task(S, T).real()


def _matrix(k: TaskMatrix, S: Tensor, T: HostArray, order: int) -> Tensor:
    _, names = k._checked()
    return same_task(S, names[:, None]).real() @ np.asarray(k(names, T))


def same_task(S: Tensor, T: HostArray, tolerance: float = SAME_TASK) -> Tensor:
    """Whether tasks (q, d) are those of T (p, d), up to rounding: (q, p)."""
    slack = np.broadcast_to(tolerance * np.maximum(np.abs(T), 1.0), T.shape)
    near = ((S.with_axis(1) - T[None]).abs() <= slack[None]).cast(np.int64)
    return S.graph("Equal", near.sum(axis=2), np.array([T.shape[1]]))


_KERNELS: dict[type[TaskKernel], Callable[[Any, Tensor, HostArray, int], Tensor]] = {
    Gaussian: _gaussian,
    MaternTask: _matern,
    PolynomialTask: _polynomial,
    ConstantTask: _constant,
    PiecewiseLinear: _piecewise,
    Diagonal: _diagonal,
    TaskMatrix: _matrix,
}
