"""The learnt function of an input and a task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from infinitask._array import Array, HostArray, as_like, to_host
from infinitask.features import FeatureMap, TaskMap

__all__ = ["Field"]

CHUNK = 4_096
"""Rows whose features are held at a time, so that memory does not grow with the number of predictions."""


@final
@dataclass(frozen=True, eq=False)
class Field:
    """h(x)(θ) = φ(x)ᵀ C ψ(θ) + b(θ), with b(θ) = ψ_b(θ)ᵀ c.

    Parameters
    ----------
    phi : FeatureMap
        φ, r features of the input.
    psi : TaskMap
        ψ, s features of the task.
    coef : ndarray (r, s)
        C.
    bias_psi : TaskMap or None
        ψ_b; None where there is no bias.
    bias_coef : ndarray (s_b,) or None
        c.

    Examples
    --------
    >>> import numpy as np
    >>> from infinitask import InfiniteQuantileRegressor
    >>> from infinitask.datasets import make_sine
    >>> X, y = make_sine(50, random_state=0)
    >>> field = InfiniteQuantileRegressor(n_nodes=10).fit(X, y).field_
    >>> field(X[:3], [0.1, 0.5, 0.9]).shape
    (3, 3)
    >>> field(X[:3], [0.5], order=1).shape  # the slope in θ
    (3, 1)
    >>> field.paired(X[:3], [0.1, 0.5, 0.9]).shape  # to each input its own task
    (3,)
    """

    phi: FeatureMap
    psi: TaskMap
    coef: HostArray
    bias_psi: TaskMap | None = None
    bias_coef: HostArray | None = None

    def __call__(self, X: Array, theta: Array, order: int = 0) -> HostArray:
        """∂^order h(x)(θ)/∂θ^order for every input (n, d) and task (q, d_Θ) or (q,): (n, q)."""
        right = self.coef @ self.psi(theta, order).T
        bias = self.bias(theta, order)
        n = X.shape[0]
        values = np.empty((n, right.shape[1]))
        for start in range(0, n, CHUNK):
            rows = slice(start, min(start + CHUNK, n))
            phi = self.phi(X[rows, :])
            values[rows] = to_host(phi @ as_like(right, phi))
        return values + bias

    def paired(self, X: Array, theta: Array, order: int = 0) -> HostArray:
        """∂^order h(x_i)(θ_i)/∂θ^order for inputs (n, d), each with its own task, (n, d_Θ) or (n,): (n,)."""
        tasks = to_host(theta)
        n = X.shape[0]
        if tasks.shape[:1] != (n,):
            raise ValueError(
                f"Tasks of shape {tasks.shape} were given for {n} inputs; to pair them, give one task for each input, "
                f"an array of shape ({n},)."
            )
        values = np.empty(n)
        for start in range(0, n, CHUNK):
            rows = slice(start, min(start + CHUNK, n))
            phi = self.phi(X[rows, :])
            left = to_host(phi @ as_like(self.coef, phi))
            values[rows] = np.sum(left * self.psi(tasks[rows], order), axis=1) + self.bias(tasks[rows], order)
        return values

    def bias(self, theta: Array, order: int = 0) -> HostArray:
        """b(θ), or its derivative, for every task: (q,)."""
        if self.bias_psi is None or self.bias_coef is None:
            return np.zeros(self.psi(theta, order).shape[0])
        return np.asarray(self.bias_psi(theta, order) @ self.bias_coef)

    @property
    def norm(self) -> float:
        """‖C‖_F: the norm of φᵀCψ in its RKHS, because φ and ψ are isometric."""
        return float(np.linalg.norm(self.coef))
