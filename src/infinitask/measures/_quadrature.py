"""The value that every rule returns: nodes on Θ and their weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from infinitask._array import HostArray

__all__ = ["Quadrature"]


@dataclass(frozen=True, eq=False)
class Quadrature:
    """Σ_j w_j f(θ_j), with weights that sum to one.

    Attributes
    ----------
    nodes : ndarray of shape (m, d)
        θ_j; ascending if d = 1.
    weights : ndarray of shape (m,)
        w_j.

    Examples
    --------
    >>> simpson = Quadrature(np.asarray([[0.0], [0.5], [1.0]]), np.asarray([1.0, 4.0, 1.0]) / 6.0)
    >>> round(float(simpson.integrate(simpson.nodes[:, 0] ** 2)), 12)
    0.333333333333
    """

    nodes: HostArray
    weights: HostArray

    def __post_init__(self) -> None:
        if self.nodes.ndim != 2 or self.weights.shape != self.nodes.shape[:1]:
            raise ValueError(
                f"A quadrature needs nodes of shape (m, d) and weights of shape (m,); it was given the shapes "
                f"{self.nodes.shape} and {self.weights.shape}."
            )

    def integrate(self, values: HostArray) -> HostArray:
        """Σ_j w_j values_j, for values of shape (m, ...) taken at the nodes."""
        return np.tensordot(self.weights, values, axes=1)

    @classmethod
    def ascending(cls, nodes: HostArray, weights: HostArray) -> Quadrature:
        """The rule with these nodes and weights, put in ascending order if d = 1."""
        if nodes.shape[1] == 1:
            order = np.argsort(nodes[:, 0], kind="stable")
            nodes, weights = nodes[order], weights[order]
        return cls(nodes, weights)

    @classmethod
    def tensor(cls, factors: Sequence[Quadrature]) -> Quadrature:
        """The rule on the product space: all combinations of nodes, products of weights."""
        nodes, weights = factors[0].nodes, factors[0].weights
        for factor in factors[1:]:
            m = factor.weights.shape[0]
            nodes = np.hstack([np.repeat(nodes, m, axis=0), np.tile(factor.nodes, (weights.shape[0], 1))])
            weights = np.kron(weights, factor.weights)
        return cls(nodes, weights)
