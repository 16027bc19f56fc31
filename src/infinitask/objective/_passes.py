"""A pass over blocks of rows, compiled: products and losses without a word of Python in between.

So threads need the interpreter once for a group of blocks instead of ten times for each, and really run side by side.
"""

from __future__ import annotations

import numpy as np

from infinitask._array import HostArray
from infinitask.losses._kernels import compiled, visit

__all__ = ["visit_blocks"]


@compiled
def _add(total: HostArray, part: HostArray, sign: float) -> None:
    # as an array expression this takes longer than the product that makes the part
    for i in range(part.shape[0]):
        for j in range(part.shape[1]):
            total[i, j] += sign * part[i, j]


@compiled
def _weigh(rows: HostArray, weight: HostArray, out: HostArray) -> None:
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = weight[i] * rows[i, j]


@compiled
def visit_blocks(
    blocks: HostArray,
    flat: HostArray,
    C: HostArray,
    cols: HostArray,
    weighted_cols: HostArray,
    bias: HostArray,
    y: HostArray,
    omega: HostArray,
    kind: HostArray,
    ends: HostArray,
    shapes: HostArray,
    table: HostArray,
    centre: HostArray,
    totals: HostArray,
    nodes: HostArray,
    mass: HostArray,
    gradient: HostArray,
    pull: HostArray,
    A: HostArray,
    H: HostArray,
    pulled: HostArray,
    part: HostArray,
    weighted: HostArray,
    pull_part: HostArray,
) -> None:
    """Add up what some blocks of rows contribute to an evaluation.

    Parameters
    ----------
    blocks : ndarray (blocks, 4) of int
        Where a block begins and ends, how many features it has, and where these begin in ``flat``.
    flat : ndarray
        Φ, block by block and row by row.
    C, cols, weighted_cols : ndarray (r, s), (s, nodes), (nodes, s)
    bias : ndarray (nodes,) or (0,)
        b at the nodes.
    y, omega, kind, ends, shapes, table, centre
        As for :func:`infinitask.losses._kernels.visit`, of all rows.
    totals, nodes, mass, gradient, pull : ndarray
        What is added to: see there, and Σ ω u at the nodes, (nodes,) or (0,); −Φᵀ diag(ω) u diag(w) Ψ, (r, s); and Φᵀ
        diag(ω) u at the nodes of the first integral where the bias is free, (r, m), else (0, m).
    A, H, pulled, part, weighted, pull_part : ndarray
        Room for a block: (rows, s), (rows, nodes), (rows, s), (r, s), and where the bias is free (rows, m), (r, m).
    """
    for k in range(blocks.shape[0]):
        start, stop, width, offset = blocks[k]
        n = stop - start
        phi = flat[offset : offset + n * width].reshape((n, width))
        h, p = H[:n], pulled[:n]
        np.dot(phi, C[:width], A[:n])
        np.dot(A[:n], cols, h)
        if bias.shape[0] > 0:
            _add(h, np.broadcast_to(bias, h.shape), 1.0)
        around = centre[start:stop] if centre.shape[0] > 0 else centre
        visit(h, y[start:stop], omega[start:stop], kind[start:stop], ends, shapes, table, around, totals, nodes)
        np.dot(h, weighted_cols, p)
        weight = omega[start:stop]
        _weigh(p, weight, p)
        np.dot(phi.T, p, part[:width])
        _add(gradient, part[:width], -1.0)
        if mass.shape[0] > 0:
            mass += np.dot(weight, h)
        if pull.shape[0] > 0:
            _weigh(h, weight, weighted[:n])
            np.dot(phi.T, weighted[:n], pull_part[:width])
            _add(pull, pull_part[:width], 1.0)
