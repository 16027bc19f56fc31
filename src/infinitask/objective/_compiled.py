r"""The rows of the table, compiled: one pass over the pairs where NumPy makes ten.

For a residual r, an interval [a, b], a dead zone ε, the softness q on either side, κ and a centre v,

.. math::

    \ell = \max_{a \le u \le b} u r - \varepsilon |u| - \tfrac{q}{2} u^2 , \qquad
    u^\kappa = \arg\max_{a \le u \le b} u r - \varepsilon |u| - \tfrac{q}{2} u^2 - \tfrac{\kappa}{2} (u - v)^2 .

A maximiser is (|r| − ε)₊/q, cut at the end of the interval, with the sign of r; for u^κ it is the same with r + κv in
place of r and q + κ in place of q. This holds for any row. A row with a kink at 0 and nothing else (ε = q = 0, as for
quantiles, hinges and non-crossing) has ℓ = (b − a)/2 |r| + (b + a)/2 r and a loop of its own: 1.5 ns a pair instead of
3.2, and a quantile fit with n = 50 000 and m = 100 takes 0.7 s instead of 1.1.

numba compiles a function when it is first called and keeps the result on disk until the file of that function changes:
all that is compiled is therefore in this file. A loop over the nodes is a function of its own, on slices of its own:
the compiler then takes several nodes at a time.
"""

from __future__ import annotations

from typing import Any

import numba

from infinitask._array import HostArray

STEEPEST = 1e30
"""The inverse of a softness of 0: any residual but 0 then goes to an end of the interval."""

LOW, HIGH, DEAD, SOFT_LOW, SOFT_HIGH, STEEP_LOW, STEEP_HIGH, BARE_LOW, BARE_HIGH, WEIGHT, KAPPA, SPREAD, TILT = range(
    13
)
"""The lines of a table: a, b, ε, q for u < 0 and u > 0, 1/(κ + q) and 1/q likewise, w, κ, w (b − a)/2, w (b + a)/2."""


def _compiled(function: Any) -> Any:
    # a sum over the nodes may be taken in any order
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"reassoc", "contract", "nsz"}}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # there is no folder to keep the result in
        return numba.njit(**options)(function)


@_compiled
def _residuals(h: HostArray, y: HostArray) -> None:
    """h becomes y − h; y has one number, or one for each node."""
    if y.shape[0] == h.shape[0]:
        for j in range(h.shape[0]):
            h[j] = y[j] - h[j]
    else:
        goal = y[0]
        for j in range(h.shape[0]):
            h[j] = goal - h[j]


@_compiled
def _kinked_row(
    r: HostArray,
    centre: HostArray,
    low: HostArray,
    high: HostArray,
    steep: HostArray,
    weight: HostArray,
    kappa: HostArray,
    spread: HostArray,
    tilt: HostArray,
) -> tuple[float, float, float]:
    """Σ w (ℓ, lower bound at u, κ(u − v)²) over the nodes, for a kink at 0 and nothing else; r becomes u."""
    value, bound, square = 0.0, 0.0, 0.0
    for j in range(r.shape[0]):
        u = min(max(r[j] * steep[j] + centre[j], low[j]), high[j])
        value += spread[j] * abs(r[j]) + tilt[j] * r[j]
        bound += weight[j] * (u * r[j])
        square += weight[j] * (kappa[j] * ((u - centre[j]) * (u - centre[j])))
        r[j] = u
    return value, bound, square


@_compiled
def _row_sums(
    r: HostArray,
    centre: HostArray,
    low: HostArray,
    high: HostArray,
    dead: HostArray,
    soft_low: HostArray,
    soft_high: HostArray,
    steep_low: HostArray,
    steep_high: HostArray,
    bare_low: HostArray,
    bare_high: HostArray,
    weight: HostArray,
    kappa: HostArray,
) -> tuple[float, float, float]:
    """The same for any row; r stays."""
    value, bound, square = 0.0, 0.0, 0.0
    for j in range(r.shape[0]):
        # both sides are computed before one is chosen, or the compiler takes one node at a time
        far = max(abs(r[j]) - dead[j], 0.0)
        above, below = min(far * bare_high[j], high[j]), max(-far * bare_low[j], low[j])
        own, q = (above, soft_high[j]) if r[j] > 0.0 else (below, soft_low[j])
        value += weight[j] * (own * r[j] - abs(own) * (dead[j] + 0.5 * q * abs(own)))
        shifted = r[j] + kappa[j] * centre[j]
        far = max(abs(shifted) - dead[j], 0.0)
        above, below = min(far * steep_high[j], high[j]), max(-far * steep_low[j], low[j])
        u, q = (above, soft_high[j]) if shifted > 0.0 else (below, soft_low[j])
        bound += weight[j] * (u * r[j] - abs(u) * (dead[j] + 0.5 * q * abs(u)))
        square += weight[j] * (kappa[j] * ((u - centre[j]) * (u - centre[j])))
    return value, bound, square


@_compiled
def _row_duals(
    r: HostArray,
    centre: HostArray,
    low: HostArray,
    high: HostArray,
    dead: HostArray,
    steep_low: HostArray,
    steep_high: HostArray,
    kappa: HostArray,
) -> None:
    """r becomes u.

    A loop of its own: one that writes must check that what it writes is not among what it reads, and for more arrays
    than these the compiler would rather take one node at a time. It costs 0.3 ns a pair and saves 1.5.
    """
    for j in range(r.shape[0]):
        shifted = r[j] + kappa[j] * centre[j]
        far = max(abs(shifted) - dead[j], 0.0)
        above, below = min(far * steep_high[j], high[j]), max(-far * steep_low[j], low[j])
        r[j] = above if shifted > 0.0 else below


@_compiled
def visit(
    h: HostArray,
    y: HostArray,
    kind: HostArray,
    table: HostArray,
    centre: HostArray,
    kinked: bool,
    sums: HostArray,
) -> None:
    """h becomes u, and ``sums`` Σ w (ℓ, lower bound at u, κ(u − v)²) of each row.

    Parameters
    ----------
    h : ndarray (n, m)
    y : ndarray (n, 1) or (n, m)
    kind : ndarray (n,) of int
        The line of the table of every sample.
    table : ndarray (13, kinds, m)
    centre : ndarray (n, m), or (1, m) for the same everywhere
    kinked : bool
        Whether all rows have a kink at 0 and nothing else.
    sums : ndarray (n, 3)
    """
    for i in range(h.shape[0]):
        k, v = kind[i], centre[i if centre.shape[0] > 1 else 0]
        _residuals(h[i], y[i])
        ends, weights = (table[LOW, k], table[HIGH, k]), (table[WEIGHT, k], table[KAPPA, k])
        steep = table[STEEP_LOW, k], table[STEEP_HIGH, k]
        if kinked:
            found = _kinked_row(h[i], v, *ends, steep[1], *weights, table[SPREAD, k], table[TILT, k])
        else:
            soft, bare = (table[SOFT_LOW, k], table[SOFT_HIGH, k]), (table[BARE_LOW, k], table[BARE_HIGH, k])
            found = _row_sums(h[i], v, *ends, table[DEAD, k], *soft, *steep, *bare, *weights)
            _row_duals(h[i], v, *ends, table[DEAD, k], *steep, table[KAPPA, k])
        sums[i, 0], sums[i, 1], sums[i, 2] = found


@_compiled
def _curvature_row(
    r: HostArray,
    centre: HostArray,
    low: HostArray,
    high: HostArray,
    dead: HostArray,
    steep_low: HostArray,
    steep_high: HostArray,
    kappa: HostArray,
) -> None:
    for j in range(r.shape[0]):
        shifted = r[j] + kappa[j] * centre[j]
        far = abs(shifted) - dead[j]
        steep = steep_high[j] if shifted > 0.0 else steep_low[j]
        end = high[j] if shifted > 0.0 else -low[j]
        # a residual of 0 is inside only if the interval goes on to both sides
        inside = (far * steep < end) & ((far > 0.0) | ((shifted == 0.0) & (dead[j] == 0.0) & (high[j] > 0.0)))
        r[j] = steep if inside & (steep < STEEPEST) else 0.0


@_compiled
def curvatures(h: HostArray, y: HostArray, kind: HostArray, table: HostArray, centre: HostArray) -> None:
    """h becomes ∂²ℓ^κ/∂h²: 1/(κ + q) where u is strictly inside its interval, 0 elsewhere; see :func:`visit`."""
    for i in range(h.shape[0]):
        k = kind[i]
        _residuals(h[i], y[i])
        _curvature_row(
            h[i],
            centre[i if centre.shape[0] > 1 else 0],
            table[LOW, k],
            table[HIGH, k],
            table[DEAD, k],
            table[STEEP_LOW, k],
            table[STEEP_HIGH, k],
            table[KAPPA, k],
        )
