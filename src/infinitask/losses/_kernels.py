r"""The rows of the table, compiled: one pass over the pairs, where NumPy makes ten.

A *table* has one column per node, of all integrals side by side, and one line per kind of sample. On the way through, a
row of h becomes the residuals r and then the dual points u.

numba compiles a function when it is first called and keeps the result on disk, until the file of that function changes:
all that is compiled is therefore in this one. A loop is a function of its own, on slices of its own: then the compiler
takes eight nodes at a time (1.0 ns a pair, 2.7 without).
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from infinitask._array import HostArray

__all__ = ["KINKED", "ROUNDED", "SHARP", "STEEPEST", "curvatures", "visit", "visit_blocks"]

STEEPEST = 1e30
"""1/(κ + q) where κ + q = 0: any residual but 0 then goes to an end of the interval."""

LOW, HIGH, DEAD, SOFT_LOW, SOFT_HIGH = range(5)
"""What a :class:`Row` holds, with infinite ends where the interval has none."""

STEEP_LOW, STEEP_HIGH, BARE_LOW, BARE_HIGH = range(5, 9)
"""1/(κ + q) and 1/q, for u < 0 and u > 0."""

WEIGHT, KAPPA, SPREAD, TILT = range(9, 13)
"""w, κ, w (high − low)/2, w (high + low)/2."""

KINKED, SHARP, ROUNDED = range(3)
"""A kink at 0 and nothing else; any row with κ = 0, which is its own lower bound; any row with κ > 0."""


def _compiled(function: Any) -> Any:
    # a sum over the nodes may be taken in any order
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"reassoc", "contract", "nsz"}}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # there is no folder to keep the result in
        return numba.njit(**options)(function)


@_compiled
def _residuals(h: HostArray, y: HostArray) -> None:
    """h becomes y − h; y is empty, one number or one for each node."""
    if y.shape[0] == h.shape[0]:
        for j in range(h.shape[0]):
            h[j] = y[j] - h[j]
    else:
        goal = 0.0 if y.shape[0] == 0 else y[0]
        for j in range(h.shape[0]):
            h[j] = goal - h[j]


@_compiled
def _kinked_row(
    r: HostArray,
    low: HostArray,
    high: HostArray,
    steep: HostArray,
    spread: HostArray,
    tilt: HostArray,
    weight: HostArray,
    kappa: HostArray,
) -> tuple[float, float, float]:
    """Σ w (ℓ, lower bound, κu²) of a loss with a kink at 0 and nothing else: ℓ = (b − a)/2 |r| + (b + a)/2 r."""
    value, bound, square = 0.0, 0.0, 0.0
    for j in range(r.shape[0]):
        u = min(max(r[j] * steep[j], low[j]), high[j])
        value += spread[j] * abs(r[j]) + tilt[j] * r[j]
        bound += weight[j] * (u * r[j])
        square += weight[j] * (kappa[j] * (u * u))
        r[j] = u
    return value, bound, square


@_compiled
def _kinked_row_around(
    r: HostArray,
    centre: HostArray,
    low: HostArray,
    high: HostArray,
    steep: HostArray,
    spread: HostArray,
    tilt: HostArray,
    weight: HostArray,
    kappa: HostArray,
) -> tuple[float, float, float]:
    """The same for the envelope around a centre v: r/κ + v takes the place of r/κ, u − v that of u in the square."""
    value, bound, square = 0.0, 0.0, 0.0
    for j in range(r.shape[0]):
        u = min(max(r[j] * steep[j] + centre[j], low[j]), high[j])
        away = u - centre[j]
        value += spread[j] * abs(r[j]) + tilt[j] * r[j]
        bound += weight[j] * (u * r[j])
        square += weight[j] * (kappa[j] * (away * away))
        r[j] = u
    return value, bound, square


@_compiled
def _balance(
    u: HostArray,
    y: HostArray,
    omega: float,
    dead: HostArray,
    soft_low: HostArray,
    soft_high: HostArray,
    nodes: HostArray,
) -> None:
    """Σ_i ω_i (u, −ℓ*(−u)) at every node, with −ℓ*(−u) = y u − ε|u| − q u²/2."""
    goal = 0.0 if y.shape[0] == 0 else y[0]
    own = y.shape[0] == u.shape[0]
    for j in range(nodes.shape[1]):
        q = soft_high[j] if u[j] > 0.0 else soft_low[j]
        nodes[0, j] += omega * u[j]
        nodes[1, j] += omega * ((y[j] if own else goal) * u[j] - dead[j] * abs(u[j]) - 0.5 * q * u[j] * u[j])


@_compiled
def _losses(
    r: HostArray,
    low: HostArray,
    high: HostArray,
    dead: HostArray,
    soft_low: HostArray,
    soft_high: HostArray,
    bare_low: HostArray,
    bare_high: HostArray,
    weight: HostArray,
) -> float:
    """Σ w ℓ for any row of the table: ℓ is its own best lower bound, u r − ε|u| − q u²/2."""
    value = 0.0
    for j in range(r.shape[0]):
        far = max(abs(r[j]) - dead[j], 0.0)
        above, below = min(far * bare_high[j], high[j]), min(far * bare_low[j], -low[j])
        size, q = (above, soft_high[j]) if r[j] > 0.0 else (below, soft_low[j])
        value += weight[j] * (size * (abs(r[j]) - dead[j] - 0.5 * q * size))
    return value


@_compiled
def _general_row(
    r: HostArray,
    low: HostArray,
    high: HostArray,
    dead: HostArray,
    soft_low: HostArray,
    soft_high: HostArray,
    steep_low: HostArray,
    steep_high: HostArray,
    weight: HostArray,
    kappa: HostArray,
) -> tuple[float, float]:
    """Σ w (lower bound, κu²) for any row of the table."""
    bound, square = 0.0, 0.0
    for j in range(r.shape[0]):
        far = max(abs(r[j]) - dead[j], 0.0)
        above, below = min(far * steep_high[j], high[j]), min(far * steep_low[j], -low[j])
        size, q = (above, soft_high[j]) if r[j] > 0.0 else (below, soft_low[j])
        bound += weight[j] * (size * (abs(r[j]) - dead[j] - 0.5 * q * size))
        square += weight[j] * (kappa[j] * (size * size))
        r[j] = size if r[j] > 0.0 else -size
    return bound, square


@_compiled
def _general_row_around(
    r: HostArray,
    centre: HostArray,
    low: HostArray,
    high: HostArray,
    dead: HostArray,
    soft_low: HostArray,
    soft_high: HostArray,
    steep_low: HostArray,
    steep_high: HostArray,
    weight: HostArray,
    kappa: HostArray,
) -> tuple[float, float]:
    """The same around a centre v, which shifts the residual to r + κv."""
    bound, square = 0.0, 0.0
    for j in range(r.shape[0]):
        shifted = r[j] + kappa[j] * centre[j]
        far = max(abs(shifted) - dead[j], 0.0)
        above, below = min(far * steep_high[j], high[j]), max(-far * steep_low[j], low[j])
        u, q = (above, soft_high[j]) if shifted > 0.0 else (below, soft_low[j])
        away = u - centre[j]
        bound += weight[j] * (u * r[j] - dead[j] * abs(u) - 0.5 * q * u * u)
        square += weight[j] * (kappa[j] * (away * away))
        r[j] = u
    return bound, square


@_compiled
def visit(
    h: HostArray,
    y: HostArray,
    omega: HostArray,
    kind: HostArray,
    ends: HostArray,
    shapes: HostArray,
    table: HostArray,
    centre: HostArray,
    totals: HostArray,
    nodes: HostArray,
) -> None:
    """h (n, nodes) becomes u, and Σ ω w (ℓ, lower bound, κ(u − v)²) of every integral is added to ``totals``.

    Parameters
    ----------
    h : ndarray (n, nodes)
    y : ndarray (n, 0), (n, 1) or (n, nodes of the first integral)
        Targets, which the first integral sees.
    omega, kind : ndarray (n,)
        Weight of a sample, and its line of the table.
    ends : ndarray (integrals + 1,)
        Where the nodes of an integral begin, and the last end.
    shapes : ndarray (integrals,)
        KINKED, SHARP or ROUNDED.
    table : ndarray (13, kinds, nodes)
        See the constants above.
    centre : ndarray (n, nodes), or (0, nodes) for none
    totals : ndarray (integrals, 3)
    nodes : ndarray (2, m) or (2, 0)
        Where the bias is free: Σ_i ω_i (u, −ℓ*(−u)) at the nodes of the first integral are added.
    """
    for i in range(h.shape[0]):
        k = kind[i]
        for t in range(ends.shape[0] - 1):
            a, b = ends[t], ends[t + 1]
            row = h[i, a:b]
            box = table[LOW, k, a:b], table[HIGH, k, a:b]
            weights = table[WEIGHT, k, a:b], table[KAPPA, k, a:b]
            _residuals(row, y[i] if t == 0 else y[i, :0])
            if shapes[t] == KINKED:
                halves = table[SPREAD, k, a:b], table[TILT, k, a:b]
                if centre.shape[0] > 0:
                    sums = _kinked_row_around(row, centre[i, a:b], *box, table[STEEP_HIGH, k, a:b], *halves, *weights)
                else:
                    sums = _kinked_row(row, *box, table[STEEP_HIGH, k, a:b], *halves, *weights)
            else:
                line = table[DEAD, k, a:b], table[SOFT_LOW, k, a:b], table[SOFT_HIGH, k, a:b]
                steep = table[STEEP_LOW, k, a:b], table[STEEP_HIGH, k, a:b]
                value = 0.0
                if shapes[t] == ROUNDED:
                    value = _losses(row, *box, *line, table[BARE_LOW, k, a:b], table[BARE_HIGH, k, a:b], weights[0])
                if centre.shape[0] > 0:
                    bound, square = _general_row_around(row, centre[i, a:b], *box, *line, *steep, *weights)
                else:
                    bound, square = _general_row(row, *box, *line, *steep, *weights)
                sums = (value if shapes[t] == ROUNDED else bound), bound, square
            for part in range(3):
                totals[t, part] += omega[i] * sums[part]
        if nodes.shape[1] > 0:
            _balance(h[i, : ends[1]], y[i], omega[i], table[DEAD, k], table[SOFT_LOW, k], table[SOFT_HIGH, k], nodes)


@_compiled
def _curvature_row(
    r: HostArray,
    low: HostArray,
    high: HostArray,
    dead: HostArray,
    steep_low: HostArray,
    steep_high: HostArray,
) -> None:
    for j in range(r.shape[0]):
        far = abs(r[j]) - dead[j]
        steep = steep_high[j] if r[j] > 0.0 else steep_low[j]
        end = high[j] if r[j] > 0.0 else -low[j]
        # a residual of 0 is inside only if the interval goes on to both sides
        inside = (far * steep < end) & ((far > 0.0) | ((r[j] == 0.0) & (dead[j] == 0.0) & (high[j] > 0.0)))
        r[j] = steep if inside & (steep < STEEPEST) else 0.0


@_compiled
def curvatures(
    h: HostArray,
    y: HostArray,
    kind: HostArray,
    ends: HostArray,
    table: HostArray,
    centre: HostArray,
) -> None:
    """h becomes ∂²ℓ^κ/∂h²: 1/(κ + q) where u is strictly inside its interval, 0 elsewhere."""
    for i in range(h.shape[0]):
        k = kind[i]
        for t in range(ends.shape[0] - 1):
            a, b = ends[t], ends[t + 1]
            row = h[i, a:b]
            _residuals(row, y[i] if t == 0 else y[i, :0])
            if centre.shape[0] > 0:
                for j in range(b - a):
                    row[j] += table[KAPPA, k, a + j] * centre[i, a + j]
            steep = table[STEEP_LOW, k, a:b], table[STEEP_HIGH, k, a:b]
            _curvature_row(row, table[LOW, k, a:b], table[HIGH, k, a:b], table[DEAD, k, a:b], *steep)


@_compiled
def _add(total: HostArray, part: HostArray, sign: float) -> None:
    # as an array expression this takes longer than the product that makes the part
    for i in range(part.shape[0]):
        for j in range(part.shape[1]):
            total[i, j] += sign * part[i, j]


@_compiled
def _weigh(rows: HostArray, weight: HostArray, out: HostArray) -> None:
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = weight[i] * rows[i, j]


@_compiled
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
        As for :func:`visit`, of all rows.
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
