r"""What is asked of h besides fitting the data: to be small, and to be in order.

A :class:`Penalty` is quadratic. It says in which coordinates of ψ it is the plain ridge (λ/2)‖C‖²_F, and that is all
the solvers see of it.

* :class:`Ridge`: (λ/2)‖h‖² in the RKHS of the product kernel.
* :class:`IntegratedRidge`: (λ/2) ∫ ρ(θ) ‖h(·)(θ)‖²_{k_X} dμ(θ), the paper's L^{2,1} norm.

:class:`NonCrossing`, λ_nc ∫∫ (−∂h/∂θ)₊, is a loss on the derivative and so a row of the table in
:mod:`infinitask.losses`. It has two smooth relatives, :class:`SmoothedNonCrossing` and :class:`SquaredNonCrossing`:

===================  ==============  =====  ==========
penalty              u lives in      ε      q for u > 0
===================  ==============  =====  ==========
λ_nc (−d)₊           [0, λ_nc]       0      0
λ_nc ψ₊^κ(−d)        [0, λ_nc]       0      κ / λ_nc
λ_nc (−d)₊²          [0, ∞)          0      1 / (2 λ_nc)
===================  ==============  =====  ==========
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from infinitask._array import HostArray
from infinitask._validation import choice
from infinitask.features import TaskFeatures, integrated_basis, node_basis
from infinitask.kernels import Gaussian, MaternTask, TaskKernel
from infinitask.losses import BoxLoss
from infinitask.losses._rows import NonCrossing, SmoothedNonCrossing, SquaredNonCrossing
from infinitask.measures import Quadrature

__all__ = [
    "CROSSING_LOSSES",
    "IntegratedRidge",
    "NonCrossing",
    "Penalty",
    "Ridge",
    "SmoothedNonCrossing",
    "SquaredNonCrossing",
    "crossing_loss",
]

CROSSING_LOSSES = ("hinge", "smoothed", "squared")
"""What ``noncrossing_loss`` may be: (−d)₊, ψ₊^κ(−d) and (−d)₊² of the derivative d."""

NODE_ERROR = 2e-3
"""The integrated ridge leaves h free at every node, as the mathematics has it, if ψ reproduces the values at the nodes
to this accuracy. This is the error of the worst function; solutions are ten times better. With many nodes the Gram
matrix of a smooth kernel is singular to rounding, and h is limited to what the kernel spans numerically."""


class Penalty(BaseEstimator, ABC):
    """Keeps h small: a quadratic penalty that is (λ/2)‖C‖²_F in suitable coordinates of ψ.

    To write another one, derive from this class and implement ``basis``.
    """

    sees_nodes_only: ClassVar[bool] = False
    """Whether the penalty ignores h between the nodes. Functions that vanish at the nodes then cost nothing, and could
    undo a penalty on the derivative in θ."""

    @abstractmethod
    def basis(self, psi: TaskFeatures, kernel: TaskKernel, quadrature: Quadrature) -> TaskFeatures:
        """The ψ in whose coordinates the penalty is (λ/2)‖C‖²_F.

        Parameters
        ----------
        psi : TaskFeatures
            Features of the task kernel on the nodes.
        kernel : TaskKernel
            The resolved task kernel.
        quadrature : Quadrature
            Nodes and weights.
        """


class Ridge(Penalty):
    """Keeps h small in the RKHS of k_X·k_Θ: (λ/2)‖h‖².

    Examples
    --------
    >>> Ridge()
    Ridge()
    """

    def basis(self, psi: TaskFeatures, kernel: TaskKernel, quadrature: Quadrature) -> TaskFeatures:
        """ψ itself, because it is isometric."""
        return psi


class IntegratedRidge(Penalty):
    """Keeps h(·)(θ) small at every node: (λ/2) Σ_j w_j ρ(θ_j) ‖h(·)(θ_j)‖²_{k_X}.

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

    sees_nodes_only = True

    def __init__(self, weight: Callable[[HostArray], HostArray] | None = None) -> None:
        self.weight = weight

    def basis(self, psi: TaskFeatures, kernel: TaskKernel, quadrature: Quadrature) -> TaskFeatures:
        """A basis orthonormal in L²(ρμ): of all functions on the nodes if rounding allows, else of ψ's span."""
        nodes, weights = quadrature.nodes, quadrature.weights
        rho = self.rho(nodes)
        if isinstance(kernel, (Gaussian, MaternTask)) and np.all(weights > 0.0):
            free = node_basis(kernel, nodes, weights, rho)
            error = np.max(np.abs(free.map(nodes) - free.values[0])) / np.max(free.values[0])
            if error <= NODE_ERROR:
                return free
        return integrated_basis(psi, weights, rho)

    def rho(self, nodes: HostArray) -> HostArray:
        """ρ at the nodes, (m,)."""
        if self.weight is None:
            return np.ones(nodes.shape[0])
        if not callable(self.weight):
            raise TypeError(f"IntegratedRidge: weight={self.weight!r} was given; it must be a function of the nodes.")
        rho = np.asarray(self.weight(nodes), dtype=np.float64)
        if rho.shape != (nodes.shape[0],) or not np.all(np.isfinite(rho)) or np.any(rho <= 0.0):
            raise ValueError(
                f"The weight of IntegratedRidge returned an array of shape {rho.shape} at {nodes.shape[0]} nodes; "
                f"it must return positive finite numbers of shape ({nodes.shape[0]},)."
            )
        return rho


def crossing_loss(kind: str, weight: float, kappa: float = 0.0) -> BoxLoss:
    """The penalty on curves that fall with θ, by its name.

    Parameters
    ----------
    kind : {"hinge", "smoothed", "squared"}
    weight : float
        λ_nc.
    kappa : float
        κ of "smoothed", that of the loss; for 0 the smoothed positive part is the positive part itself.

    Examples
    --------
    >>> crossing_loss("smoothed", 2.0, kappa=0.5)
    SmoothedNonCrossing(kappa=0.5, weight=2.0)
    >>> crossing_loss("smoothed", 2.0)
    NonCrossing(weight=2.0)
    """
    choice("noncrossing_loss", kind, CROSSING_LOSSES)
    if kind == "squared":
        return SquaredNonCrossing(weight)
    return SmoothedNonCrossing(weight, kappa) if kind == "smoothed" and kappa > 0.0 else NonCrossing(weight)
