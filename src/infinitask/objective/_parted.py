r"""An objective whose rows live in parts: on disk, on a device, on other machines.

Each part is an ``Objective`` of its own rows, in the columns that are at hand there, such as
k(x, Z) for landmarks Z. The features of the model are combinations of them, Φ = K M with M (p, r), so that

.. math:: H = K \, (M C V^\top) \, \Psi^\top, \qquad \nabla_C = M^\top (K^\top u \Psi) V ,

with V the rotation of the task features. Only M C Vᵀ (p × s) goes out and only KᵀuΨ (p × s) comes back, however many
rows there are; Φ itself, for which every row would be multiplied by M, is never made.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from infinitask._base.arrays import Array, HostArray, as_like, floats, to_host
from infinitask.objective._balance import CORNER_DISTANCE, NodeSums
from infinitask.objective._base import BaseObjective
from infinitask.objective._objective import Objective
from infinitask.objective._terms import Integral, RowSums, Smoothing

Sums: TypeAlias = list[HostArray]
"""What a part contributes: arrays of float64 on the host, to be added to those of the other parts."""

Visit: TypeAlias = Callable[..., Sums]
"""A function of a part and of some arguments; at the top of a module, so that it can travel."""


class Parts(ABC):
    """Rows in parts. Their weights sum to one over all parts."""

    passes: int = 0
    """How often all rows were visited."""

    description: str = ""
    """What is kept between passes, in words."""

    @property
    @abstractmethod
    def n(self) -> int:
        """The number of rows."""

    @abstractmethod
    def total(self, visit: Visit, *arguments: Any) -> Sums:
        """The sum of ``visit(part, *arguments)`` over all parts, always in the same order."""


def added(first: Sums, *others: Sums) -> Sums:
    """The sums of several parts."""
    return [np.sum(arrays, axis=0) for arrays in zip(first, *others, strict=True)]


@dataclass(frozen=True, eq=False)
class PartedObjective(BaseObjective):
    """P(z) over rows in parts.

    Parameters
    ----------
    parts : Parts
    integrals : tuple of Integral
        Without targets, on the host; rotated, as the unknowns are.
    alpha, alpha_bias : float
        λ and λ_b.
    bias_linear : ndarray (s_b,) or None
        v.
    M : array (p, r) or None
        From the columns of the parts to the features, where it is quickly multiplied; None: they have the features.
    sample : Objective
        Some of the rows, in memory, with the same unknowns: they tell the scale of the targets and the curvature.
    U, V, V_b : ndarray (r, r), (s, s), (s_b, s_b) or None
        By which the unknowns are rotated; None is the identity.
    """

    parts: Parts
    integrals: tuple[Integral, ...]
    alpha: float
    alpha_bias: float
    bias_linear: HostArray | None
    M: Array | None
    sample: Objective
    U: HostArray | None = None
    V: HostArray | None = None
    V_b: HostArray | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """(r, s), the shape of C."""
        return self.sample.shape

    @property
    def n_pairs(self) -> int:
        """Samples × nodes of all integrals."""
        return self.parts.n * sum(int(term.theta.shape[0]) for term in self.integrals)

    # ------------------------------------------------------------------------------ unknowns there and back
    def sent(self, z: HostArray) -> HostArray:
        """The unknowns as the parts know them: M C Vᵀ and V_b c."""
        r, s = self.shape
        C, c = z[: r * s].reshape(r, s), z[r * s :]
        C = self._times(C if self.V is None else C @ self.V.T)
        return np.concatenate([C.ravel(), c if self.V_b is None else self.V_b @ c])

    def _times(self, C: HostArray) -> HostArray:
        if self.U is not None:
            C = self.U @ C
        return C if self.M is None else to_host(self.M @ as_like(C, self.M))

    def _lifted(self, C: HostArray) -> HostArray:
        """Uᵀ Mᵀ C."""
        C = C if self.M is None else to_host(self.M.T @ as_like(C, self.M))
        return C if self.U is None else self.U.T @ C

    def _back(self, C: HostArray) -> HostArray:
        C = self._lifted(C)
        return C if self.V is None else C @ self.V

    def row_sums(self, z: HostArray, smoothing: Smoothing) -> RowSums:
        """See :meth:`BaseObjective.row_sums`."""
        losses, C, c, *nodes = self.parts.total(sums_of, self.sent(z), smoothing.kappa)
        c = c if self.V_b is None else self.V_b.T @ c
        return RowSums(list(losses), self._back(C), c if self.bias_size else None, self._nodes(nodes))

    def _nodes(self, nodes: Sums) -> NodeSums | None:
        if not nodes:
            return None
        mass, data, pull = nodes
        return NodeSums(mass, data, self._lifted(pull))

    def node_curvature(self, z: HostArray, smoothing: Smoothing) -> list[HostArray]:
        """See :meth:`BaseObjective.node_curvature`; of the sample, since it only says how long steps should be."""
        return self.sample.node_curvature(z, smoothing)

    # ------------------------------------------------------------------------------------ dual and start
    def resting_loss(self) -> float:
        """See :meth:`BaseObjective.resting_loss`."""
        if all(term.loss.rests_at_zero for term in self.integrals):
            return 0.0
        return float(self.parts.total(resting_loss_of)[0])

    def corner_sums(self, side: float, *, rows: bool = True) -> NodeSums:
        """See :meth:`BaseObjective.corner_sums`."""
        found = self._nodes(self.parts.total(corner_of, side, CORNER_DISTANCE * self.scale))
        assert found is not None
        return found

    def slopes_at_zero(self) -> HostArray:
        """See :meth:`BaseObjective.slopes_at_zero`."""
        return self.parts.total(slopes_of)[0]

    def start(self) -> HostArray:
        """See :meth:`BaseObjective.start`."""
        return self.sample.start()

    @property
    def scale(self) -> float:
        """See :attr:`BaseObjective.scale`."""
        return self.sample.scale

    @property
    def typical_loss(self) -> float:
        """See :attr:`BaseObjective.typical_loss`."""
        return self.sample.typical_loss

    def rotated(self, U: HostArray | None, V: HostArray, V_b: HostArray | None) -> PartedObjective:
        """The same objective in the unknowns Uᵀ C V and V_bᵀ c, for orthogonal U, V, V_b; None is the identity."""
        terms = tuple(
            replace(
                term,
                cols=term.cols @ V,
                bias_cols=term.bias_cols if term.bias_cols is None or V_b is None else term.bias_cols @ V_b,
            )
            for term in self.integrals
        )
        return replace(
            self,
            integrals=terms,
            bias_linear=self.bias_linear if self.bias_linear is None or V_b is None else V_b.T @ self.bias_linear,
            U=self.U if U is None else U if self.U is None else self.U @ U,
            sample=self.sample.rotated(U, V, V_b),
            V=V if self.V is None else self.V @ V,
            V_b=self.V_b if V_b is None else V_b if self.V_b is None else self.V_b @ V_b,
        )


# ------------------------------------------------------------------------------------------------ what a part does
def _host(values: Any) -> HostArray:
    return np.asarray(to_host(values), dtype=np.float64)


def sums_of(part: Objective, z: HostArray, kappa: tuple[float, ...]) -> Sums:
    """The losses of all integrals (3 k,), the gradient in C and c and, where a dual point must balance, its nodes."""
    sums = part.row_sums(z, Smoothing(kappa))
    found = [np.array(floats(sums.losses)), _host(sums.C)]
    found.append(np.zeros(0) if sums.c is None else _host(sums.c))
    if sums.nodes is not None:
        nodes = sums.nodes.on_host()
        found += [nodes.mass, nodes.data, nodes.pull]
    return found


def resting_loss_of(part: Objective) -> Sums:
    """See :meth:`BaseObjective.resting_loss`."""
    return [np.array(part.resting_loss())]


def corner_of(part: Objective, side: float, reach: float) -> Sums:
    """See :meth:`BaseObjective.corner_sums`."""
    nodes = part.corner_sums(side, reach)
    return [nodes.mass, nodes.data, nodes.pull]


def slopes_of(part: Objective) -> Sums:
    """See :meth:`BaseObjective.slopes_at_zero`."""
    return [part.slopes_at_zero()]
