"""What Newton's method asks of an objective: the pairs at which it is curved, and products with its Hessian."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from infinitask._array import HostArray, namespace, to_host
from infinitask.objective._objective import Objective
from infinitask.objective._terms import Smoothing

NO_CURVATURE = 1e-100
"""Curvature below this is none: its inverse must not overflow."""


class Pairs(NamedTuple):
    """Pairs (i, j) at which the smoothed loss is curved."""

    row: HostArray
    node: HostArray
    weight: HostArray
    """ω_i w_j ∂²ℓ^κ_ij."""


def curved_pairs(objective: Objective, z: HostArray, smoothing: Smoothing) -> int:
    """The number of pairs at which the smoothed losses are curved."""
    xp = namespace(objective.rows)
    return sum(
        int(xp.sum(xp.astype(part > NO_CURVATURE, xp.int64)))
        for _, parts in objective.curvatures(z, smoothing)
        for part in parts
    )


def pairs(objective: Objective, z: HostArray, smoothing: Smoothing) -> list[Pairs]:
    """The pairs of every integral at which the smoothed loss is curved."""
    found: list[list[Pairs]] = [[] for _ in objective.integrals]
    for block, parts in objective.curvatures(z, smoothing):
        for t, part in enumerate(parts):
            weight = to_host(part)
            row, node = np.nonzero(weight > NO_CURVATURE)
            found[t].append(Pairs(row + block.start, node, weight[row, node]))
    return [Pairs(*(np.concatenate(part) for part in zip(*parts, strict=True))) for parts in found]


def hessian_product(objective: Objective, z: HostArray, smoothing: Smoothing, v: HostArray) -> HostArray:
    """∇²P_κ(z) v, (size,), by one more pass over the data."""
    xp = namespace(objective.rows)
    V, b = objective.split(v)
    out_C, out_c = 0.0 * V, None if b is None else 0.0 * b
    # the field is linear in the unknowns: its derivative along v is the field at v
    for (block, weights), (_, along) in zip(objective.curvatures(z, smoothing), objective.fields(v), strict=True):
        pulled = None
        for term, weight, moved in zip(objective.integrals, weights, along, strict=True):
            force = weight * moved
            part = force @ term.cols
            pulled = part if pulled is None else pulled + part
            if out_c is not None and term.bias_cols is not None:
                out_c = out_c + term.bias_cols.T @ xp.sum(force, axis=0)
        out_C = out_C + objective.rows[block, :].T @ pulled
    product = to_host(xp.reshape(out_C, (-1,))).astype(np.float64)
    if out_c is not None:
        product = np.concatenate([product, to_host(out_c).astype(np.float64)])
    return np.asarray(product + objective.ridge * v)
