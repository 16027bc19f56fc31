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

import numpy as np
from scipy.linalg import solve_triangular

from infinitask._array import Array, HostArray, to_host

__all__ = ["Balance", "NodeSums"]

ROUNDING = 1e-14
"""Part of the range of S by which a node may miss its balance."""

ROOM = 1e-12
"""Part of the range of S below which a node is at its corner: sums in another order differ by that much."""

BALANCED = 1e-9
"""Part of the excess that may be left."""


@dataclass
class NodeSums:
    """Sums over the rows at every node of the first integral."""

    mass: Array
    """Σ_i ω_i u_ij, (m,)."""
    data: Array
    """Σ_i ω_i (−ℓ*(−u_ij)), (m,)."""
    pull: Array
    """Σ_i ω_i φ_i u_ij, (r, m)."""

    def plus(self, other: NodeSums) -> NodeSums:
        """The sums over both sets of rows."""
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
    """

    low: NodeSums
    high: NodeSums
    weights: HostArray
    cols: HostArray
    bias_cols: HostArray

    def shift(self, nodes: NodeSums, excess: HostArray) -> tuple[float, HostArray] | None:
        """How the dual data term and Σ ω w u φ ψᵀ (r, s) change on the way to balance; None where there is none.

        Parameters
        ----------
        nodes : NodeSums
            Of the dual point, on the host.
        excess : ndarray (s_b,)
            The gradient in c.
        """
        below, above = nodes.mass - self.low.mass, self.high.mass - nodes.mass
        span = below + above
        below, above = (np.where(way <= ROOM * span, 0.0, way) for way in (below, above))
        # a node at a corner can only leave it: first move the others, each by as much as it is free to
        for room in (np.minimum(below, above), below + above):
            delta = self._change(room, excess)
            if delta is None:
                continue
            # a node at a corner that would have to go beyond it by rounding stays there
            delta = np.where(np.abs(delta) <= ROUNDING * span, 0.0, delta)
            up = delta > 0.0
            way = np.where(up, above, -below)
            s = np.divide(delta, way, out=np.where(delta == 0.0, 0.0, np.inf), where=way != 0.0)
            if np.all((s >= 0.0) & (s <= 1.0)):
                share = self.weights * s
                data = float(share @ (np.where(up, self.high.data, self.low.data) - nodes.data))
                moved = np.where(up, self.high.pull, self.low.pull) - nodes.pull
                return data, np.asarray((moved * share) @ self.cols)
        return None

    def _change(self, room: HostArray, excess: HostArray) -> HostArray | None:
        """The δ of least Σ w δ²/room with Ψ_bᵀ diag(w) δ = excess, (m,); None where there is none."""
        R = np.asarray(np.linalg.qr(np.sqrt(self.weights * room)[:, None] * self.bias_cols, mode="r"))
        if R.shape[0] < R.shape[1] or np.min(np.abs(np.diag(R))) <= 1e-12 * np.max(np.abs(R)):
            return None

        def towards(missing: HostArray) -> HostArray:
            return np.asarray(room * (self.bias_cols @ solve_triangular(R, solve_triangular(R, missing, trans="T"))))

        def missing(delta: HostArray) -> HostArray:
            return np.asarray(excess - self.bias_cols.T @ (self.weights * delta))

        delta = towards(excess)
        delta = delta + towards(missing(delta))  # R may be badly conditioned: once more with what is left
        slack = BALANCED * np.max(np.abs(excess)) + ROUNDING * np.abs(self.bias_cols).T @ (self.weights * room)
        return delta if np.all(np.abs(missing(delta)) <= slack) else None
