r"""The joint eigenbasis of rows and columns, in which the Hessian is nearly diagonal.

Diagonalise Φᵀ diag(ω) Φ = U diag(e) Uᵀ and Σ_t ρ_t Ψ_tᵀ diag(w) Ψ_t = V diag(f) Vᵀ. If the curvature of integral t
were the same number ρ_t for all pairs, the Hessian in the unknowns Uᵀ C V would be *exactly* diagonal, λ + e_i f_j. It
is not the same for all, but its mean is known after one pass over the data, and the scaling (λ + e_i f_j)^(−1/2) is
what a first-order method needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from infinitask._array import HostArray, to_host
from infinitask.objective import Integral, Objective, Smoothing

__all__ = ["Eigenbasis"]

DAMPING = 1e-2
"""See :attr:`Eigenbasis.damping`."""


def _gram(cols: HostArray, weights: HostArray) -> HostArray:
    return (cols.T * weights) @ cols


@dataclass(frozen=True)
class Eigenbasis:
    """The rotation, and the objective in rotated unknowns.

    Parameters
    ----------
    U, V : ndarray (r, r), (s, s)
    V_b : ndarray (s_b, s_b) or None
    e : ndarray (r,)
        Eigenvalues of the rows.
    objective : Objective
        Rotated.
    """

    U: HostArray
    V: HostArray
    V_b: HostArray | None
    e: HostArray
    objective: Objective

    @classmethod
    def of(cls, objective: Objective) -> Eigenbasis:
        """Diagonalise an objective."""
        omega = objective.sample_weight
        e, U = np.linalg.eigh(to_host(objective.rows.T @ (omega[:, None] * objective.rows)).astype(np.float64))
        grams = [_gram(*cls._host(term)) for term in objective.integrals]
        # The relative curvature of the integrals is not known yet. A tenth of the first one's, trace for trace, is
        # where the measured ones lie for the non-crossing term; the exact ratio turns the basis little.
        traces = [max(float(np.trace(g)), np.finfo(float).tiny) for g in grams]
        mixed = sum(g * (1.0 if t == 0 else 0.1 * traces[0] / traces[t]) for t, g in enumerate(grams))
        V = np.linalg.eigh(np.asarray(mixed))[1]
        V_b = None
        first = objective.integrals[0]
        if first.bias_cols is not None:
            V_b = np.linalg.eigh(
                _gram(to_host(first.bias_cols).astype(np.float64), to_host(first.weights).astype(np.float64))
            )[1]
        return cls(U, V, V_b, np.maximum(e, 0.0), objective.rotated(U, V, V_b))

    @staticmethod
    def _host(term: Integral) -> tuple[HostArray, HostArray]:
        return to_host(term.cols).astype(np.float64), to_host(term.weights).astype(np.float64)

    def curvature_diagonal(self, z: HostArray, smoothing: Smoothing) -> HostArray:
        """The diagonal of the Hessian if every node had its mean curvature, (size,); with the ridge."""
        objective = self.objective
        f = np.zeros(objective.shape[1])
        f_b = np.zeros(objective.bias_size)
        for curvature, term in zip(objective.node_curvature(z, smoothing), objective.integrals, strict=True):
            f += curvature @ to_host(term.cols).astype(np.float64) ** 2
            if term.bias_cols is not None:
                f_b += curvature @ to_host(term.bias_cols).astype(np.float64) ** 2
        return np.asarray(objective.ridge + self.damping + np.concatenate([np.outer(self.e, f).ravel(), f_b]))

    @cached_property
    def damping(self) -> HostArray:
        """What stands in for the ridge of a free bias in a step, (size,); 0 elsewhere.

        A node where no loss is curved gives a free bias nothing to hold on to. A hundredth of the curvature that it has
        otherwise keeps its steps bounded: that of targets spread evenly over their scale, or, because a field that
        mimics the bias costs no more than λ, λ itself if that is less.
        """
        objective = self.objective
        damping = np.zeros(objective.size)
        first = objective.integrals[0]
        if objective.free and first.bias_cols is not None:
            f = to_host(first.weights).astype(np.float64) @ to_host(first.bias_cols).astype(np.float64) ** 2
            damping[objective.size - objective.bias_size :] = DAMPING * np.minimum(f / objective.scale, objective.alpha)
        return damping

    def back(self, z: HostArray) -> HostArray:
        """Rotated unknowns → the original ones."""
        r, s = self.objective.shape
        C = self.U @ z[: r * s].reshape(r, s) @ self.V.T
        c = z[r * s :] if self.V_b is None else self.V_b @ z[r * s :]
        return np.concatenate([C.ravel(), c])
