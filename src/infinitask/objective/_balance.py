r"""Free biases: dual points that balance.

If the bias has no ridge, λ_b = 0, the dual problem has a constraint besides the intervals of u: the gradient in c must
vanish,

.. math:: \Psi_b^\top \mathrm{diag}(w)\, S(u) + \dots = v, \qquad S_j(u) = \sum_i \omega_i u_{ij} ,

where the dots are the terms of other integrals. The slopes of a smoothed loss satisfy the constraint at its minimum,
and nearly satisfy it close by. To satisfy it exactly, the u of every node moves towards one of two corners, at which
all samples are far below or far above the field. Each point of the segment is feasible and S changes linearly. The dual
data term is concave, so it loses no more than its linear interpolation along the segment.

:func:`dual_rows` computes dual points row by row, for the same problem in other features than those of the objective.
A dual point u enters the dual through its data term, its pull on the bias, and

.. math:: T = \sum_{\text{integrals}} \mathrm{diag}(\omega)\, U \,\mathrm{diag}(w)\, \Psi ,

an (n, s) matrix with the coefficients C_u = Φᵀ T / λ. With other features Φ' the same u is feasible, with the same data
term and the coefficients Φ'ᵀ T / λ.

Slopes at a nearly optimal point do not quite reproduce the bias. With hardly any ridge on the bias, this error
dominates the loss of the bound. In this case the u of every node also moves towards one of two corners, until the bias
is reproduced.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy.linalg.lapack import dtrtrs

from infinitask._base.arrays import Array, HostArray, as_like, double, namespace, to_host
from infinitask.losses import BoxLoss
from infinitask.objective._terms import Smoothing, product

if TYPE_CHECKING:
    from infinitask.objective._objective import Objective


ROUNDING = 1e-12
"""A node is at its corner below this fraction of the range of S: sums in another order differ by the same amount."""

CORNER_DISTANCE = 4.0
"""Distance of the corners from every target, in units of :attr:`Objective.scale`, if the slopes of the loss are
unbounded: a larger distance would only reduce the dual."""


@dataclass
class NodeSums:
    """Sums over the rows at every node of the first integral."""

    mass: Array
    """Σ_i ω_i u_ij, (m,)."""
    data: Array
    """Σ_i ω_i (−ℓ*(−u_ij)), (m,)."""
    pull: Array
    """Σ_i ω_i φ_i u_ij, (r, m)."""

    @classmethod
    def of(cls, phi: Array, omega: Array, u: Array, data: Array) -> NodeSums:
        """Compute the sums over a block of rows φ (k, r) with weights ω, from u and −ℓ*(−u), each (k, m)."""
        row_weights = double(omega)
        return cls(row_weights @ double(u), row_weights @ double(data), double(phi.T @ (omega[:, None] * u)))

    def plus(self, other: NodeSums | None) -> NodeSums:
        """Return the sums over both sets of rows."""
        if other is None:
            return self
        return NodeSums(self.mass + other.mass, self.data + other.data, self.pull + other.pull)

    def on_host(self) -> NodeSums:
        """Return the same sums as NumPy arrays."""
        return NodeSums(*(to_host(part).astype(np.float64) for part in (self.mass, self.data, self.pull)))


@dataclass(frozen=True, eq=False)
class Balance:
    """Move dual points until they balance.

    Parameters
    ----------
    low, high : NodeSums
        The corners: u with every sample far below the field, and far above it.
    weights : ndarray (m,)
        w.
    cols, bias_cols : ndarray (m, s), (m, s_b)
        Ψ and Ψ_b.
    alpha : float
        λ.
    exact : bool
        Whether the dual term of all other integrals than the first is 0: they have kinks at 0 and no targets.
    size : ndarray (m,)
        Σ_i ω_i |u_ij| at h = 0 if slopes are unbounded, else ∞. A far corner may have slopes of any size, for example
        exp(30) for a Poisson likelihood: a fraction of their range is then not a rounding error.
    """

    low: NodeSums
    high: NodeSums
    weights: HostArray
    cols: HostArray
    bias_cols: HostArray
    alpha: float
    exact: bool
    size: HostArray

    @classmethod
    def of(cls, objective: Objective, bias_cols: HostArray | None = None, *, rows: bool = True) -> Balance:
        """Create the balance of an objective.

        Parameters
        ----------
        objective : Objective
        bias_cols : ndarray (m, s_b) or None
            Ψ_b; None: that of the objective.
        rows : bool
            Whether to compute sums with Φ, which :meth:`steps` does not need.
        """
        first, *others = objective.integrals
        rows_of = [None if t.targets is not None or t.has_goal else t.row_of(slice(None)) for t in others]
        exact = all(row is not None and row.plain for row in rows_of)
        host = objective.host_integrals[0]
        bias_cols = host.bias_cols if bias_cols is None else bias_cols
        assert bias_cols is not None
        low, high = (corner_sums(objective, side, rows=rows) for side in (1.0, -1.0))
        ends = isinstance(first.loss, BoxLoss)
        size = np.full(host.weights.size, np.inf) if ends else slopes_at_zero(objective)
        return cls(low, high, host.weights, host.cols, bias_cols, objective.alpha, exact, size)

    def origin(self, data: float, objective: Objective) -> tuple[float, HostArray]:
        """The dual point next to u = 0, whose data term is ``data``; see :meth:`dual`."""
        r, m = objective.shape[0], self.weights.size
        nothing = NodeSums(np.zeros(m), np.zeros(m), np.zeros((r, m)))
        return self._moved(data, np.zeros(objective.size), objective.linear, nothing)

    def dual(self, data: float, pulled: HostArray, gradient: HostArray, nodes: NodeSums) -> tuple[float, HostArray]:
        """Return the dual point that balances: its data term, −∞ if there is none, and z_u.

        Parameters
        ----------
        data : float
            The data term of the dual point given by the slopes.
        pulled : ndarray (size,)
            Its Σ ω w u (φ ⊗ ψ, ψ_b).
        gradient : ndarray (size,)
        nodes : NodeSums
        """
        if self.exact:
            # the same number computed without h, which may be far from the data
            data = float(to_host(as_like(self.weights, nodes.data) @ nodes.data))
        return self._moved(data, pulled, gradient, nodes)

    def _moved(self, data: float, pulled: HostArray, gradient: HostArray, nodes: NodeSums) -> tuple[float, HostArray]:
        size = nodes.pull.shape[0] * self.cols.shape[1]
        shift = self.shift(nodes.on_host(), gradient[size:])
        C, rest = pulled[:size].copy(), np.zeros(pulled.size - size)
        if shift is None:
            return -np.inf, np.concatenate([C / self.alpha, rest])
        C += shift[1].ravel()
        return data + shift[0], np.concatenate([C / self.alpha, rest])

    def shift(self, nodes: NodeSums, excess: HostArray) -> tuple[float, HostArray] | None:
        """The changes of the dual data term and of Σ ω w u φ ψᵀ (r, s) due to balancing; None if it is impossible.

        Parameters
        ----------
        nodes : NodeSums
            The sums of the dual point, on the host.
        excess : ndarray (s_b,)
            The gradient in c.
        """
        found = self.steps(nodes, excess)
        if found is None:
            return None
        step, up = found
        weight = self.weights * step
        data = float(weight @ (np.where(up, self.high.data, self.low.data) - nodes.data))
        moved = np.where(up, self.high.pull, self.low.pull) - nodes.pull
        return data, np.asarray((moved * weight) @ self.cols)

    def steps(self, nodes: NodeSums, excess: HostArray) -> tuple[HostArray, HostArray] | None:
        """The step in [0, 1] of u of every node to a corner, and whether it is the upper one, (m,) each; see above."""
        below, above = nodes.mass - self.low.mass, self.high.mass - nodes.mass
        span = np.minimum(below + above, self.size)
        below, above = (np.where(way <= ROUNDING * span, 0.0, way) for way in (below, above))
        # a node at a corner can only leave it: move the others first, each in proportion to its free range
        for room in (np.minimum(below, above), below + above):
            delta = self._change(room, excess)
            if delta is None:
                continue
            # a node stays at its corner if only rounding would move it beyond
            delta = np.where(np.abs(delta) <= 1e-14 * span, 0.0, delta)
            up = delta > 0.0
            way = np.where(up, above, -below)
            s = np.divide(delta, way, out=np.where(delta == 0.0, 0.0, np.inf), where=way != 0.0)
            if np.all((s >= 0.0) & (s <= 1.0)):
                return s, up
        return None

    def _change(self, room: HostArray, excess: HostArray) -> HostArray | None:
        """The δ that minimises Σ w δ²/room subject to Ψ_bᵀ diag(w) δ = excess, (m,); None if there is none."""
        R = np.asarray(np.linalg.qr(np.sqrt(self.weights * room)[:, None] * self.bias_cols, mode="r"))
        if R.shape[0] < R.shape[1] or np.min(np.abs(np.diag(R))) <= 1e-12 * np.max(np.abs(R)):
            return None

        def towards(missing: HostArray) -> HostArray:
            # RᵀR x = missing by LAPACK itself: R has few rows, and the checks of SciPy take longer than both solves
            x = dtrtrs(R.T, dtrtrs(R.T, missing, lower=1)[0], lower=1, trans=1)[0]
            return np.asarray(room * (self.bias_cols @ x))

        def missing(delta: HostArray) -> HostArray:
            return np.asarray(excess - self.bias_cols.T @ (self.weights * delta))

        delta = towards(excess)
        delta = delta + towards(missing(delta))  # R may be ill-conditioned: one step of refinement
        slack = 1e-9 * np.max(np.abs(excess)) + 1e-14 * np.abs(self.bias_cols).T @ (
            self.weights * np.minimum(room, self.size)
        )
        return delta if np.all(np.abs(missing(delta)) <= slack) else None


# -------------------------------------------------------------------------------------------------------- corners
def corner(objective: Objective, block: slice, side: float, reach: float | None = None) -> tuple[Array, Array]:
    """u and −ℓ*(−u) of a field far above (``side`` = 1) or far below (−1) the targets of a block, each (rows, m).

    ``reach`` is the distance if the slopes are unbounded.
    """
    first = objective.integrals[0]
    zero = 0.0 * objective.sample_weight[block][:, None] * first.weights
    reach = CORNER_DISTANCE * objective.scale if reach is None else reach
    return first.loss.corner(first.theta, first.targets_of(block), zero, side, reach)


def corner_sums(objective: Objective, side: float, reach: float | None = None, *, rows: bool = True) -> NodeSums:
    """The sums, on the host, of the dual point of a field far above or far below every target; see :func:`corner`.

    ``rows``: whether to compute the sums with Φ.
    """
    if objective.elsewhere is not None:
        return objective.elsewhere.corner_sums(side, CORNER_DISTANCE * objective.scale)
    total = None
    for block in objective.blocks():
        phi = objective.rows[block, :] if rows else objective.rows[block, :0]
        total = NodeSums.of(phi, objective.sample_weight[block], *corner(objective, block, side, reach)).plus(total)
    assert total is not None
    return total.on_host()


def slopes_at_zero(objective: Objective) -> HostArray:
    """Σ_i ω_i |u_ij| of the first integral at h = 0, (m,)."""
    if objective.elsewhere is not None:
        return objective.elsewhere.slopes_at_zero()
    first = objective.integrals[0]
    size = np.zeros(int(first.weights.shape[0]))
    for block in objective.blocks():
        omega = objective.sample_weight[block]
        u = first.pointwise(block, 0.0 * omega[:, None] * first.weights).dual
        size += to_host(omega @ abs(u)).astype(np.float64)
    return size


# ------------------------------------------------------------------------------------------------ row by row
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
        Σ ω w u ψ_b − v: λ_b times the bias of this dual point. 0 for a free bias, empty without a bias.
    """

    data: float
    rows: Array
    pull: HostArray


def dual_rows(
    objective: Objective, z: HostArray, smoothing: Smoothing, constant: float | None = None
) -> list[DualRows]:
    """Return dual points from the slopes at z: the slopes themselves, unless the bias is free, and a balanced one.

    Parameters
    ----------
    objective : Objective
    z : ndarray (size,)
    smoothing : Smoothing
    constant : float or None
        The first column of Φ, if it is constant and represents a bias with the features Ψ: ``pull`` refers to it then.
    """

    def slopes(block: slice) -> list[tuple[Array, Array]]:
        ((_, fields),) = objective.fields(z, [block])
        found = []
        for t, (term, H) in enumerate(zip(objective.integrals, fields, strict=True)):
            seen = term.pointwise(block, H, *smoothing.of(t))
            found.append((seen.dual, seen.lower + seen.dual * H))
        return found

    (_, s), size = objective.shape, objective.size - objective.bias_size
    # λ_b c, or for a column of Φ with coefficients C_0 the same in units of ψ: b = constant · C_0, λ_b = λ / constant²
    wanted = objective.alpha * z[:s] / constant if constant is not None else objective.alpha_bias * z[size:]
    return _with_balanced(objective, slopes, wanted, constant)


def origin_rows(objective: Objective, constant: float | None = None) -> list[DualRows]:
    """Return the dual point u = 0 or, if the bias is free, a balanced one next to it; empty if none balances."""

    def slopes(block: slice) -> list[tuple[Array, Array]]:
        found = []
        for term in objective.integrals:
            zero = 0.0 * objective.sample_weight[block][:, None] * term.weights
            at_rest = term.loss.rests_at_zero
            found.append((zero, zero if at_rest else term.dual(term.targets_of(block), zero)))
        return found

    if objective.free:
        return _with_balanced(objective, slopes, np.zeros(objective.bias_size), constant)
    found = _visited(objective, slopes, constant)[0]
    return [found] if np.isfinite(found.data) else []


def _with_balanced(objective: Objective, slopes: Slopes, wanted: HostArray, constant: float | None) -> list[DualRows]:
    """Return the dual point of some slopes, unless a free bias forbids it, and one with the ``wanted`` pull, if any."""
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
    fraction, up = steps

    def moved(block: slice) -> list[tuple[Array, Array]]:
        (u, data), *others = slopes(block)
        high, low = (corner(objective, block, side)[0] for side in (-1.0, 1.0))
        far = namespace(u).where(as_like(up, u) > 0.0, high, low)
        return [(u + as_like(fraction, u) * (far - u), data), *others]

    # −ℓ* is concave: it loses no more than its linear interpolation
    gain = np.where(up, balance.high.data, balance.low.data) - nodes.data
    data = found.data + float((host.weights * fraction) @ gain)
    there = replace(_visited(objective, moved, constant)[0], data=data)
    return [*plain, replace(there, pull=0.0 * there.pull) if objective.free else there]


def _visited(objective: Objective, slopes: Slopes, constant: float | None) -> tuple[DualRows, NodeSums]:
    """Return the dual point given by some slopes, and its sums at the nodes of the first integral."""
    integrals = objective.integrals

    def visit(blocks: list[slice]) -> tuple[list[Array], list[Array], list[Array]]:
        parts: list[Array] = []
        masses, datas = ([0.0 * term.weights for term in integrals] for _ in range(2))
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
