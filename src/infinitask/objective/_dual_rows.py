r"""Dual points row by row, for the same problem in other features than those of the objective.

A dual point u enters the dual through its data term, its pull on the bias, and

.. math:: T = \sum_{\text{integrals}} \mathrm{diag}(\omega)\, U \,\mathrm{diag}(w)\, \Psi ,

an (n, s) matrix: the coefficients that it stands for are C_u = Φᵀ T / λ. With other features Φ' the same u is feasible,
has the same data term and the coefficients Φ'ᵀ T / λ.

Slopes at a point that is nearly optimal do not quite pull the bias to where it is, and where hardly any ridge holds it
that costs the bound more than all else. As in :class:`Balance`, u of every node therefore moves towards one of two
corners, until it does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from infinitask._base.arrays import Array, HostArray, as_like, namespace, to_host
from infinitask.objective._balance import Balance, NodeSums
from infinitask.objective._terms import Smoothing, product

if TYPE_CHECKING:
    from infinitask.objective._objective import Objective

Slopes: TypeAlias = Callable[[slice], list[tuple[Array, Array]]]
"""Rows → u and −ℓ*(−u) of every integral, each (rows, m)."""


@dataclass(frozen=True, eq=False)
class DualRows:
    """A dual point u.

    Parameters
    ----------
    data : float
        Σ ω w (−ℓ*(−u)), or a lower bound of it.
    rows : array (n, s)
        T.
    pull : ndarray (s_b,)
        Σ ω w u ψ_b − v: λ_b times the bias that it stands for. 0 for a free bias, empty where there is none.
    """

    data: float
    rows: Array
    pull: HostArray


def dual_rows(
    objective: Objective, z: HostArray, smoothing: Smoothing, constant: float | None = None
) -> list[DualRows]:
    """Dual points from the slopes of the smoothed losses at z: these, unless the bias is free, and balanced ones.

    Parameters
    ----------
    objective : Objective
    z : ndarray (size,)
    smoothing : Smoothing
    constant : float or None
        The first column of Φ, where that is constant and carries a bias with the features Ψ: ``pull`` is its pull then.
    """

    def slopes(block: slice) -> list[tuple[Array, Array]]:
        ((_, fields),) = objective.fields(z, [block])
        found = []
        for t, (term, H) in enumerate(zip(objective.integrals, fields, strict=True)):
            kappa, centre = objective._smoothed(t, smoothing, block)
            seen = term.loss.pointwise(term.theta, term.targets_of(block), H, kappa, centre)
            found.append((seen.dual, seen.lower + seen.dual * H))
        return found

    (_, s), size = objective.shape, objective.size - objective.bias_size
    # λ_b c, or for a column of Φ with coefficients C_0 the same in terms of ψ: b = constant · C_0, λ_b = λ / constant²
    wanted = objective.alpha * z[:s] / constant if constant is not None else objective.alpha_bias * z[size:]
    return _with_balanced(objective, slopes, wanted, constant)


def origin_rows(objective: Objective, constant: float | None = None) -> list[DualRows]:
    """The dual point u = 0 or, where the bias is free, what balances next to it; none where nothing does."""

    def slopes(block: slice) -> list[tuple[Array, Array]]:
        found = []
        for term in objective.integrals:
            zero = 0.0 * objective.sample_weight[block][:, None] * term.weights
            at_rest = term.loss.rests_at_zero
            found.append((zero, zero if at_rest else term.loss.dual(term.theta, term.targets_of(block), zero)))
        return found

    if objective.free:
        return _with_balanced(objective, slopes, np.zeros(objective.bias_size), constant)
    found = _visited(objective, slopes, constant)[0]
    return [found] if np.isfinite(found.data) else []


def _with_balanced(objective: Objective, slopes: Slopes, wanted: HostArray, constant: float | None) -> list[DualRows]:
    """The dual point of some slopes, unless a free bias forbids it, and the one whose pull is as ``wanted``, if any."""
    found, nodes = _visited(objective, slopes, constant)
    if not np.isfinite(found.data):
        return []
    if found.pull.size == 0:
        return [found]
    plain = [] if objective.free else [found]
    host = objective.host_integrals[0]
    balance = Balance.of(objective, host.cols if constant is not None else host.bias_cols, rows=False)
    steps = balance.steps(nodes, wanted - found.pull)
    if steps is None:
        return plain
    share, up = steps

    def moved(block: slice) -> list[tuple[Array, Array]]:
        (u, data), *others = slopes(block)
        high, low = (objective.corner(block, side)[0] for side in (-1.0, 1.0))
        corner = namespace(u).where(as_like(up, u) > 0.0, high, low)
        return [(u + as_like(share, u) * (corner - u), data), *others]

    # −ℓ* is concave: it loses no more than the segment does
    gain = np.where(up, balance.high.data, balance.low.data) - nodes.data
    data = found.data + float((host.weights * share) @ gain)
    there = replace(_visited(objective, moved, constant)[0], data=data)
    return [*plain, replace(there, pull=0.0 * there.pull) if objective.free else there]


def _visited(objective: Objective, slopes: Slopes, constant: float | None) -> tuple[DualRows, NodeSums]:
    """The dual point that some slopes make, and its sums at the nodes of the first integral."""
    integrals = objective.integrals

    def visit(blocks: list[slice]) -> tuple[list[Array], list[Array], list[Array]]:
        parts, masses, datas = (
            [],
            [0.0 * term.weights for term in integrals],
            [0.0 * term.weights for term in integrals],
        )
        for block in blocks:
            total = None
            for t, (term, (u, data)) in enumerate(zip(integrals, slopes(block), strict=True)):
                omega = objective.weight_of(term)[block]
                masses[t], datas[t] = masses[t] + omega @ u, datas[t] + omega @ data
                part = omega[:, None] * product(u, term.weighted_cols)
                total = part if total is None else total + part
            parts.append(total)
        return parts, masses, datas

    parts, masses, datas = zip(*objective._shared_out(visit), strict=True)
    rows = [part for group in parts for part in group]
    mass, data = (
        [to_host(sum(each)).astype(np.float64) for each in zip(*group, strict=True)] for group in (masses, datas)
    )
    hosts = objective.host_integrals
    pull = -objective.linear[objective.size - objective.bias_size :]
    for term, sums in zip(hosts, mass, strict=True):
        cols = term.cols if constant is not None else term.bias_cols
        pull = pull if cols is None else (pull if pull.size else 0.0) + cols.T @ (term.weights * sums)
    total = sum(float(term.weights @ sums) for term, sums in zip(hosts, data, strict=True))
    nothing = np.zeros((0, mass[0].size))
    return DualRows(total, namespace(rows[0]).concat(rows, axis=0), pull), NodeSums(mass[0], data[0], nothing)
