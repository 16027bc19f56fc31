"""Values of curves at many points, block by block, and the constant that is nearest to some values."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar

from infinitask._base.arrays import HostArray
from infinitask.field import Field
from infinitask.losses import Loss, Squared

MOST_UNASKED = 4
"""All rows are evaluated at all points where that is at most this many times what was asked."""

BLOCK_ENTRIES = 2**22
"""Numbers that are held at a time."""

LEVEL_TOLERANCE = 1e-9
"""How exact the best constant is, in parts of the range of what it is to meet."""


def values_at(field: Field, left: HostArray, row: HostArray, tasks: HostArray, order: int = 0) -> HostArray:
    """h, or its derivative, of some rows at as many tasks: (N,).

    Parameters
    ----------
    field : Field
    left : ndarray (n, s)
        Cᵀφ(x) of all rows.
    row : ndarray (N,) of int
    tasks : ndarray (N, 1)
    order : int
    """
    points, place = np.unique(tasks[:, 0], return_inverse=True)
    if left.shape[0] * points.size <= MOST_UNASKED * row.size:  # most curves are asked for at most of the points
        return _as_a_table(field, left, row, points, place, order)
    values = np.empty(row.size)
    size = _rows_of_block(left.shape[1])
    for start in range(0, row.size, size):
        here = slice(start, start + size)
        some, at = np.unique(tasks[here, 0], return_inverse=True)
        psi, bias = field.psi(some[:, None], order), field.bias(some[:, None], order)
        values[here] = np.einsum("ks,ks->k", left[row[here]], psi[at]) + bias[at]
    return values


def _as_a_table(
    field: Field, left: HostArray, row: HostArray, points: HostArray, place: HostArray, order: int
) -> HostArray:
    """Values of all rows at distinct points, of which those at ``place`` (N,) are asked for."""
    values = np.empty(row.size)
    size = _rows_of_block(left.shape[1] + left.shape[0])
    for start in range(0, points.size, size):
        some = points[start : start + size, None]
        here = np.flatnonzero((place >= start) & (place < start + size))
        table = left @ field.psi(some, order).T + field.bias(some, order)
        values[here] = table[row[here], place[here] - start]
    return values


def one_curve_at(field: Field, left: HostArray, tasks: HostArray) -> HostArray:
    """The curve of one Cᵀφ(x), (s,), at tasks (N, 1): (N,)."""
    points, place = np.unique(tasks[:, 0], return_inverse=True)
    size = _rows_of_block(left.size)
    parts = [points[start : start + size, None] for start in range(0, points.size, size)]
    return np.asarray(np.concatenate([field.psi(part) @ left + field.bias(part) for part in parts])[place])


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

    # in parts of the range: the search has no notion of the units of r
    found = minimize_scalar(lost, bounds=(0.0, 1.0), method="bounded", options={"xatol": LEVEL_TOLERANCE})
    return low + float(found.x) * (high - low)


def _rows_of_block(width: int) -> int:
    """How many rows are held at a time, by the numbers in each."""
    return max(1, BLOCK_ENTRIES // max(1, width))
