r"""What is asked of h beyond the data: to be small, and to be in order.

* :class:`Ridge`: (λ/2)‖h‖² in the RKHS of the product kernel; in features (λ/2)‖C‖²_F.
* :class:`IntegratedRidge`: (λ/2) ∫ ρ(θ) ‖h(·)(θ)‖²_{k_X} dμ(θ), the paper's L^{2,1} norm; a plain ridge once ψ is a
  basis orthonormal in L²(ρμ).
* :class:`NonCrossing`: λ_nc ∫∫ (−∂h/∂θ)₊, which is a loss on the derivative and so a row of the table in
  :mod:`infinitask.losses`.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real

import numpy as np
from sklearn.base import BaseEstimator

from infinitask._array import Array, HostArray
from infinitask.losses import BoxLoss, Row

__all__ = ["IntegratedRidge", "NonCrossing", "Ridge"]


class Ridge(BaseEstimator):
    """(λ/2)‖h‖²: the squared norm of the RKHS of k_X·k_Θ.

    Examples
    --------
    >>> Ridge()
    Ridge()
    """


class IntegratedRidge(BaseEstimator):
    """(λ/2) Σ_j w_j ρ(θ_j) ‖h(·)(θ_j)‖²_{k_X}.

    Parameters
    ----------
    weight : callable or None
        ρ, a positive function of the nodes: (m, d) → (m,). None is ρ = 1.

    Examples
    --------
    >>> import numpy as np
    >>> IntegratedRidge(lambda theta: 2 * theta[:, 0]).rho(np.array([[0.5], [1.0]]))
    array([1., 2.])
    """

    def __init__(self, weight: Callable[[HostArray], HostArray] | None = None) -> None:
        self.weight = weight

    def rho(self, nodes: HostArray) -> HostArray:
        """ρ at the nodes, (m,)."""
        if self.weight is None:
            return np.ones(nodes.shape[0])
        rho = np.asarray(self.weight(nodes), dtype=np.float64)
        if rho.shape != (nodes.shape[0],) or not np.all(np.isfinite(rho)) or np.any(rho <= 0.0):
            raise ValueError(
                f"The weight of IntegratedRidge returned an array of shape {rho.shape} at {nodes.shape[0]} nodes; "
                f"it must return positive finite numbers of shape ({nodes.shape[0]},)."
            )
        return rho


class NonCrossing(BoxLoss):
    """λ_nc (−d)₊ of the derivative d = ∂h/∂θ: what h loses where it decreases in θ.

    Parameters
    ----------
    weight : float, positive
        λ_nc.

    Examples
    --------
    >>> import numpy as np
    >>> NonCrossing(2.0).value(np.array([0.5]), None, np.array([[-0.5]]))
    array([[1.]])
    """

    def __init__(self, weight: float = 1.0) -> None:
        self.weight = weight

    def row(self, theta: Array, y: Array | None) -> Row:
        """u ∈ [0, λ_nc]."""
        if not (isinstance(self.weight, Real) and 0.0 < self.weight < np.inf):
            raise ValueError(
                f"NonCrossing got weight={self.weight!r}; it must be a positive finite number. "
                "Leave the penalty out for a weight of 0."
            )
        return Row(0.0 * theta, self.weight + 0.0 * theta)

    def width(self, theta: Array) -> Array:
        """1/λ_nc: the width of the smoothed part does not depend on the weight."""
        self.row(theta, None)  # a weight that cannot be divided by is refused there
        return 0.0 * theta + 1.0 / self.weight
