"""The parts of an objective, and what a visit to the data yields."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from infinitask._array import Array, HostArray
from infinitask.losses import Loss

__all__ = ["Evaluation", "Integral", "Pairs", "Smoothing"]


@dataclass(frozen=True)
class Integral:
    """One data term: Σ_ij ω_i w_j ℓ(θ_j, y_i, (rows · C · colsᵀ + 1 (bias_cols · c)ᵀ)_ij).

    Parameters
    ----------
    loss : Loss
    theta : array (m,) or (m, d)
    weights : array (m,)
        w, the quadrature weights.
    cols : array (m, s)
        ψ or one of its derivatives at the nodes.
    bias_cols : array (m, s_b) or None
    targets : array (n, 1), or (n, m) for targets of their own at every node, or None
    """

    loss: Loss
    theta: Array
    weights: Array
    cols: Array
    bias_cols: Array | None = None
    targets: Array | None = None

    @cached_property
    def width(self) -> Array:
        """Relative smoothing of the nodes, (m,)."""
        return self.loss.width(self.theta)

    @cached_property
    def weighted_cols(self) -> Array:
        """diag(w) Ψ: the weights enter the gradient here, once, and no array of size n × m is multiplied by them."""
        return self.weights[:, None] * self.cols


class Evaluation(NamedTuple):
    """What one pass over the data yields at a point z."""

    primal: float
    """P(z), of the losses themselves."""
    smoothed: float
    """P_κ(z)."""
    gradient: HostArray
    """∇P_κ(z), (r·s + s_b,)."""
    dual_data: float
    """Σ ω w (−ℓ*(−u)) at the dual point u made of the slopes; −∞ where no feasible one was found."""
    slack: tuple[float, ...]
    """For each integral Σ ω w (ℓ − lower bound at u) ≥ 0: its share of the gap that is due to κ."""
    dual_z: HostArray
    """z_u, the coefficients that the dual point stands for, (r·s + s_b,); 0 for a free bias."""
    error: float
    """P(z) − D(u) − Σ slack ≥ 0: the share of the gap that more steps at the same κ remove. It is ‖∇P_κ‖²/2 in the
    metric of Λ⁻¹ where no bias is free."""


class Pairs(NamedTuple):
    """Pairs (i, j) of one integral at which the smoothed loss is curved."""

    row: HostArray
    node: HostArray
    weight: HostArray
    """ω_i w_j ∂²ℓ^κ_ij."""


@dataclass(frozen=True)
class Smoothing:
    """How the losses are smoothed.

    Parameters
    ----------
    kappa : tuple of float
        κ of each integral; 0: none.
    centre : tuple of arrays (n, m) or None
        The dual point around which the envelope is taken, for each integral; None: around 0. This is the one place
        where a number per pair is kept, and only the last phase of a solver (small problems) asks for it.
    """

    kappa: tuple[float, ...]
    centre: tuple[Array | None, ...] | None = None

    def reordered(self, order: HostArray) -> Smoothing:
        """The same for rows in another order."""
        if self.centre is None:
            return self
        return replace(self, centre=tuple(None if part is None else part[order] for part in self.centre))

    def of(self, t: int, term: Integral, block: slice) -> tuple[Any, Array | None]:
        """What the loss of integral t receives on a block of rows: κ·width and the centre."""
        if self.kappa[t] == 0.0:
            return 0.0, None
        centre = None if self.centre is None else self.centre[t]
        return self.kappa[t] * term.width, None if centre is None else centre[block, :]
