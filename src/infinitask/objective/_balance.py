r"""Free biases: dual points that balance.

Where the bias has no ridge, λ_b = 0, the dual problem asks for more than the intervals of u: the gradient in c must
vanish,

.. math:: \Psi_b^\top \mathrm{diag}(w)\, S(u) + \dots = v, \qquad S_j(u) = \sum_i \omega_i u_{ij} ,

the dots for what other integrals add. The slopes of a smoothed loss fulfil this at its minimum and nearly so close to
it. They are made to fulfil it by moving the u of every node towards one of two corners, where all its samples lie
far below or far above the field: a point of the segment is feasible, S moves in proportion, and because the dual data
term is concave it loses no more than the segment does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg.lapack import dtrtrs

from infinitask._base.arrays import Array, HostArray, as_like, double, to_host
from infinitask.losses import BoxLoss

if TYPE_CHECKING:
    from infinitask.objective._base import BaseObjective


ROUNDING = 1e-12
"""Part of the range of S below which a node is at its corner: sums in another order differ by that much."""

CORNER_DISTANCE = 4.0
"""How far from every target the corners look, in units of :attr:`Objective.scale`, where the slopes of the loss have no
end: a longer distance would only cost more of the dual."""


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
        """The sums over a block of rows φ (k, r) with weights ω, from u and −ℓ*(−u), each (k, m)."""
        shares = double(omega)
        return cls(shares @ double(u), shares @ double(data), double(phi.T @ (omega[:, None] * u)))

    def plus(self, other: NodeSums | None) -> NodeSums:
        """The sums over both sets of rows."""
        if other is None:
            return self
        return NodeSums(self.mass + other.mass, self.data + other.data, self.pull + other.pull)

    def on_host(self) -> NodeSums:
        """The same as NumPy arrays."""
        return NodeSums(*(to_host(part).astype(np.float64) for part in (self.mass, self.data, self.pull)))


@dataclass(frozen=True, eq=False)
class Balance:
    """Moves dual points to where they balance.

    Parameters
    ----------
    low, high : NodeSums
        The corners: u where every sample lies far below the field, and far above it.
    weights : ndarray (m,)
        w.
    cols, bias_cols : ndarray (m, s), (m, s_b)
        Ψ and Ψ_b.
    alpha : float
        λ.
    exact : bool
        Whether the dual term of all integrals but the first is 0: they have kinks at 0 and no targets.
    size : ndarray (m,)
        Σ_i ω_i |u_ij| at h = 0 where slopes have no end, else ∞. A far corner may have slopes of any size, exp(30) for
        a Poisson likelihood: a part of their range is no rounding then.
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
    def of(cls, objective: BaseObjective, bias_cols: HostArray | None = None, *, rows: bool = True) -> Balance:
        """The balance of an objective.

        Parameters
        ----------
        objective : BaseObjective
        bias_cols : ndarray (m, s_b) or None
            Ψ_b; None: that of the objective.
        rows : bool
            Whether sums with Φ are made, which :meth:`steps` does not need.
        """
        first, *others = objective.integrals
        rows_of = [None if t.targets is not None else t.row_of(slice(None)) for t in others]
        exact = all(row is not None and row.plain for row in rows_of)
        host = objective.host_integrals[0]
        bias_cols = host.bias_cols if bias_cols is None else bias_cols
        assert bias_cols is not None
        corners = objective.corner_sums(1.0, rows=rows), objective.corner_sums(-1.0, rows=rows)
        ends = isinstance(first.loss, BoxLoss)
        size = np.full(host.weights.size, np.inf) if ends else objective.slopes_at_zero()
        return cls(*corners, host.weights, host.cols, bias_cols, objective.alpha, exact, size)

    def origin(self, data: float, objective: BaseObjective) -> tuple[float, HostArray]:
        """The dual point next to u = 0, whose data term is ``data``; see :meth:`dual`."""
        r, m = objective.shape[0], self.weights.size
        nothing = NodeSums(np.zeros(m), np.zeros(m), np.zeros((r, m)))
        return self._moved(data, np.zeros(objective.size), objective.linear, nothing)

    def dual(self, data: float, pulled: HostArray, gradient: HostArray, nodes: NodeSums) -> tuple[float, HostArray]:
        """The dual point that balances: its data term, −∞ where there is none, and z_u.

        Parameters
        ----------
        data : float
            The data term of the dual point that the slopes make.
        pulled : ndarray (size,)
            Its Σ ω w u (φ ⊗ ψ, ψ_b).
        gradient : ndarray (size,)
        nodes : NodeSums
        """
        if self.exact:
            # the same number without h, which may be far from the data
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
        """How the dual data term and Σ ω w u φ ψᵀ (r, s) change on the way to balance; None where there is none.

        Parameters
        ----------
        nodes : NodeSums
            Of the dual point, on the host.
        excess : ndarray (s_b,)
            The gradient in c.
        """
        found = self.steps(nodes, excess)
        if found is None:
            return None
        s, up = found
        share = self.weights * s
        data = float(share @ (np.where(up, self.high.data, self.low.data) - nodes.data))
        moved = np.where(up, self.high.pull, self.low.pull) - nodes.pull
        return data, np.asarray((moved * share) @ self.cols)

    def steps(self, nodes: NodeSums, excess: HostArray) -> tuple[HostArray, HostArray] | None:
        """How far u of every node moves to a corner, in [0, 1], and whether to the upper one, (m,) each; see above."""
        below, above = nodes.mass - self.low.mass, self.high.mass - nodes.mass
        span = np.minimum(below + above, self.size)
        below, above = (np.where(way <= ROUNDING * span, 0.0, way) for way in (below, above))
        # a node at a corner can only leave it: first move the others, each by as much as it is free to
        for room in (np.minimum(below, above), below + above):
            delta = self._change(room, excess)
            if delta is None:
                continue
            # a node at a corner that would have to go beyond it by rounding stays there
            delta = np.where(np.abs(delta) <= 1e-14 * span, 0.0, delta)
            up = delta > 0.0
            way = np.where(up, above, -below)
            s = np.divide(delta, way, out=np.where(delta == 0.0, 0.0, np.inf), where=way != 0.0)
            if np.all((s >= 0.0) & (s <= 1.0)):
                return s, up
        return None

    def _change(self, room: HostArray, excess: HostArray) -> HostArray | None:
        """The δ of least Σ w δ²/room with Ψ_bᵀ diag(w) δ = excess, (m,); None where there is none."""
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
        delta = delta + towards(missing(delta))  # R may be badly conditioned: once more with what is left
        slack = 1e-9 * np.max(np.abs(excess)) + 1e-14 * np.abs(self.bias_cols).T @ (
            self.weights * np.minimum(room, self.size)
        )
        return delta if np.all(np.abs(missing(delta)) <= slack) else None
