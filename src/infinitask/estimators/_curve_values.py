"""Values of curves at many points, in blocks, and the constant with the smallest loss."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar

from infinitask._base.arrays import HostArray, row_blocks
from infinitask.field import Field
from infinitask.losses import Loss, Squared


def values_at(field: Field, left: HostArray, row: HostArray, tasks: HostArray, order: int = 0) -> HostArray:
    """h, or its derivative, of row ``row[k]`` at task ``tasks[k]``: (N,).

    Parameters
    ----------
    field : Field
    left : ndarray (n, s)
        Cᵀφ(x) of all rows.
    row : ndarray (N,) of int
    tasks : ndarray (N, 1)
    order : int
    """
    values = np.empty(row.size)
    for here in row_blocks(row.size, left.shape[1]):
        some, at = np.unique(tasks[here, 0], return_inverse=True)
        psi, bias = field.psi(some[:, None], order), field.bias(some[:, None], order)
        values[here] = np.einsum("ks,ks->k", left[row[here]], psi[at]) + bias[at]
    return values


def one_curve_at(field: Field, left: HostArray, tasks: HostArray) -> HostArray:
    """The curve of one Cᵀφ(x), (s,), at tasks (N, 1): (N,)."""
    return values_at(field, left[None], np.zeros(len(tasks), dtype=np.intp), tasks)


def best_level(loss: Loss, r: HostArray, weight: HostArray) -> float:
    """The constant with the smallest loss of r."""
    if isinstance(loss, Squared):
        return float(weight @ r) / float(np.sum(weight))
    low, high = float(np.min(r)), float(np.max(r))
    if not high > low:
        return low
    nodes = np.zeros(1)

    def lost(part: float) -> float:
        return float(weight @ loss.value(nodes, r[:, None], np.full((r.size, 1), low + part * (high - low)))[:, 0])

    # relative to the range, because the search does not know the units of r
    found = minimize_scalar(lost, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-9})
    return low + float(found.x) * (high - low)
