r"""Rows of an objective stored in parts: on disk, on a device, or on other machines.

Each part is an ``Objective`` of its own rows, with the columns available there, such as
k(x, Z) for landmarks Z. The features of the model are linear combinations of them, Φ = K M with M (p, r). Hence

.. math:: H = K \, (M C V^\top) \, \Psi^\top, \qquad \nabla_C = M^\top (K^\top u \Psi) V ,

with V the rotation of the task features. For any number of rows, only M C Vᵀ (p × s) is sent and only KᵀuΨ (p × s)
returns. Φ itself is never computed, which would multiply every row by M.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from infinitask._base.arrays import Array, HostArray, as_like, floats, host_double, to_host
from infinitask.objective._balance import NodeSums, corner_sums, slopes_at_zero
from infinitask.objective._objective import Objective
from infinitask.objective._terms import RowSums, Smoothing

Sums: TypeAlias = list[HostArray]
"""The contribution of a part: arrays of float64 on the host, which are added to those of the other parts."""

Visit: TypeAlias = Callable[..., Sums]
"""A function of a part and of some arguments, defined at the top of a module because it must be picklable."""


class Parts(ABC):
    """Rows in parts, whose weights sum to one over all parts."""

    n: int
    """The number of rows."""

    passes: int = 0
    """The number of passes over all rows."""

    description: str = ""
    """A description of the data kept between passes."""

    @abstractmethod
    def total(self, visit: Visit, *arguments: Any) -> Sums:
        """Return the sum of ``visit(part, *arguments)`` over all parts, always in the same order."""


def added(first: Sums, *others: Sums) -> Sums:
    """Add the sums of several parts."""
    return [np.sum(arrays, axis=0) for arrays in zip(first, *others, strict=True)]


@dataclass(frozen=True, eq=False)
class PartedRows:
    """The sums of an objective over rows in parts.

    Parameters
    ----------
    parts : Parts
    M : array (p, r) or None
        Maps the columns of the parts to the features, on the device for fast products; None: they are the features.
    U, V, V_b : ndarray (r, r), (s, s), (s_b, s_b) or None
        The rotations of the unknowns; None is the identity.
    """

    parts: Parts
    M: Array | None = None
    U: HostArray | None = None
    V: HostArray | None = None
    V_b: HostArray | None = None

    # ------------------------------------------------------------------------------ unknowns of model and parts
    def _sent(self, z: HostArray, shape: tuple[int, int]) -> HostArray:
        """The unknowns of the parts: M U C Vᵀ and V_b c."""
        r, s = shape
        C, c = z[: r * s].reshape(r, s), z[r * s :]
        C = C if self.V is None else C @ self.V.T
        C = C if self.U is None else self.U @ C
        C = C if self.M is None else to_host(self.M @ as_like(C, self.M))
        return np.concatenate([C.ravel(), c if self.V_b is None else self.V_b @ c])

    def _lifted(self, C: HostArray) -> HostArray:
        """Uᵀ Mᵀ C."""
        C = C if self.M is None else to_host(self.M.T @ as_like(C, self.M))
        return C if self.U is None else self.U.T @ C

    def _nodes(self, mass: HostArray, data: HostArray, pull: HostArray) -> NodeSums:
        return NodeSums(mass, data, self._lifted(pull))

    # ------------------------------------------------------------------------------ sums over all parts
    def row_sums(self, z: HostArray, smoothing: Smoothing, shape: tuple[int, int]) -> RowSums:
        """See :meth:`Objective.row_sums`, for C of this shape."""
        losses, C, c, *nodes = self.parts.total(sums_of, self._sent(z, shape), smoothing.kappa)
        C = self._lifted(C) if self.V is None else self._lifted(C) @ self.V
        c = c if self.V_b is None else self.V_b.T @ c
        return RowSums(list(losses), C, c if c.size else None, self._nodes(*nodes) if nodes else None)

    def resting_loss(self) -> float:
        """See :meth:`Objective.resting_loss`."""
        return float(self.parts.total(resting_loss_of)[0])

    def corner_sums(self, side: float, reach: float) -> NodeSums:
        """See :func:`~infinitask.objective._balance.corner_sums`."""
        return self._nodes(*self.parts.total(corner_of, side, reach))

    def slopes_at_zero(self) -> HostArray:
        """See :func:`~infinitask.objective._balance.slopes_at_zero`."""
        return self.parts.total(slopes_of)[0]

    def rotated(self, U: HostArray | None, V: HostArray, V_b: HostArray | None) -> PartedRows:
        """Return the same rows for the unknowns Uᵀ C V and V_bᵀ c."""

        def then(first: HostArray | None, second: HostArray | None) -> HostArray | None:
            return second if first is None else first if second is None else first @ second

        return replace(self, U=then(self.U, U), V=then(self.V, V), V_b=then(self.V_b, V_b))


# ------------------------------------------------------------------------------------------------ computed by a part
def sums_of(part: Objective, z: HostArray, kappa: tuple[float, ...]) -> Sums:
    """The losses of all integrals (3 k,), the gradient in C and c and, if a dual point must balance, its nodes."""
    sums = part.row_sums(z, Smoothing(kappa))
    found = [np.array(floats(sums.losses)), host_double(sums.C)]
    found.append(np.zeros(0) if sums.c is None else host_double(sums.c))
    if sums.nodes is not None:
        nodes = sums.nodes.on_host()
        found += [nodes.mass, nodes.data, nodes.pull]
    return found


def resting_loss_of(part: Objective) -> Sums:
    """Σ ω w (−ℓ*(0)) of a part."""
    return [np.array(part.resting_loss())]


def corner_of(part: Objective, side: float, reach: float) -> Sums:
    """The contribution of a part to the sums at a corner."""
    nodes = corner_sums(part, side, reach)
    return [nodes.mass, nodes.data, nodes.pull]


def slopes_of(part: Objective) -> Sums:
    """The contribution of a part to Σ ω |u| at h = 0."""
    return [slopes_at_zero(part)]
