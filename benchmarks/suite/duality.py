r"""How exact an answer is: primal and dual values of the peers' problems, computed from their coefficients.

All Gaussian kernels; K the Gram matrix of the n training inputs, ρ the pinball loss, h = K c.

=================  ====================================================  ====================================  =========
problem            primal                                                dual                                  c
=================  ====================================================  ====================================  =========
one level θ        (1/n) Σ ρ_θ(y − h − b) + (λ/2) cᵀKc                   (1/n) Σ v y − (λ/2) cᵀKc              v/(λn)
                   b fixed, taken into y                                 v ∈ [θ−1, θ]
                   b free                                                and Σ v = 0
levels θ_j         (1/nm) Σ ρ_θj(y − h_j − b_j) + (λ/2)⟨C, K C T⟩        (1/nm) Σ v y − (λ/2)⟨C, K C T⟩        V/(λnm)
                   b_j free, h = K C T                                   v_j ∈ [θ_j−1, θ_j], Σ_i v_ij = 0
costs c_i          (1/n) Σ c (1 − y (h + b))₊ + (λ/2) cᵀKc               λ Σ a − (λ/2) cᵀKc                    a y
                   b free, y = ±1                                        a ∈ [0, c/(λn)], Σ a y = 0
fraction ν         ½ cᵀKc + (1/νn) Σ (t − h)₊ − t                        −½ cᵀKc                               a
                                                                         a ∈ [0, 1/(νn)], Σ a = 1
=================  ====================================================  ====================================  =========

A point of the box gives a lower bound of the optimum, its function an upper bound.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Bounds(NamedTuple):
    """dual ≤ optimum ≤ primal."""

    primal: float
    dual: float

    @property
    def gap(self) -> float:
        """Relative to the primal value."""
        return float((self.primal - self.dual) / abs(self.primal))


def pinball(r: Array, level: float | Array) -> Array:
    """ρ_θ(r) = max(θr, (θ − 1)r)."""
    return np.maximum(level * r, (level - 1.0) * r)


def balanced(v: Array, level: float | Array) -> Array:
    """A point of the box [θ−1, θ] whose columns sum to zero, close to v: clip(v + τ) with τ found by bisection."""
    v = np.clip(v, level - 1.0, level)  # of width 1: then |τ| ≤ 1
    low, high = np.full(v.shape[1:], -1.0), np.full(v.shape[1:], 1.0)
    for _ in range(60):
        middle = 0.5 * (low + high)
        above = np.clip(v + middle, level - 1.0, level).sum(axis=0) > 0.0
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return np.clip(v + low, level - 1.0, level)


def one_level(K: Array, y: Array, v: Array, level: float, alpha: float, *, free: bool = False) -> Bounds:
    """The bounds at v, (n,), clipped to the box; without a bias, or with the free bias that is best for v."""
    v = balanced(v, level) if free else np.clip(v, level - 1.0, level)
    c = v / (alpha * y.size)
    h = K @ c
    b = free_bias(y - h, level) if free else 0.0
    ridge = 0.5 * alpha * float(c @ h)
    return Bounds(float(pinball(y - h - b, level).mean()) + ridge, float(v @ y) / y.size - ridge)


def free_bias(r: Array, level: float) -> float:
    """The b that minimises Σ ρ_θ(r − b)."""
    return float(np.quantile(r, level, method="inverted_cdf"))


def joint_levels(K: Array, T: Array, y: Array, V: Array, levels: Array, alpha: float) -> tuple[Bounds, Array]:
    """The bounds at V, (n, m), and the best free biases."""
    V = balanced(V, levels)
    size = V.size
    H = K @ V @ T / (alpha * size)
    b = np.asarray([free_bias(y - h, level) for h, level in zip(H.T, levels, strict=True)])
    ridge = 0.5 * float(np.vdot(V, H)) / size
    risk = float(pinball(y[:, None] - H - b, levels).mean())
    return Bounds(risk + ridge, float(np.sum(V * y[:, None])) / size - ridge), b


def costs(K: Array, y: Array, support: Array, coef: Array, bias: float, weights: Array, alpha: float) -> Bounds:
    """The bounds of a support vector machine with labels y = ±1 and costs ``weights``, both (n,).

    ``support`` are the s rows with a_i > 0, ``coef`` their y_i a_i, K (n, s) the kernel with them.
    """
    h = K @ coef
    risk = float(np.mean(weights * np.maximum(1.0 - y * (h + bias), 0.0)))
    ridge = 0.5 * alpha * float(coef @ h[support])
    return Bounds(risk + ridge, alpha * float(np.abs(coef).sum()) - ridge)


def one_class(K: Array, support: Array, coef: Array, threshold: float, nu: float) -> Bounds:
    """The bounds of a one-class support vector machine; ``coef`` are the a_i of the s rows in ``support``, K (n, s)."""
    h = K @ coef
    ridge = 0.5 * float(coef @ h[support])
    return Bounds(ridge + float(np.mean(np.maximum(threshold - h, 0.0))) / nu - threshold, -ridge)
