"""ψ: features of the task kernel, of its values and of its derivatives alike.

Tasks are few (nodes of a quadrature), so all this happens on the host, whatever library holds the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from infinitask._array import Array, HostArray, to_host
from infinitask.features._cholesky import factorise, tolerance_for
from infinitask.kernels import TaskKernel

__all__ = ["TaskFeatures", "TaskMap", "as_tasks", "integrated_basis", "node_basis", "task_features"]

NEGLIGIBLE = 1e-13
"""Eigenvalues of M below this part of the largest are rounding; see :func:`integrated_basis`."""


@final
@dataclass(frozen=True, eq=False)
class TaskMap:
    """ψ^(o)(θ) = [∂₁^o ∂₂^(o_k) k(θ, z)  for z in Z_k, for each k] T.

    Parameters
    ----------
    kernel : TaskKernel
        Resolved: its bandwidth is a number.
    landmarks : tuple of (nodes (p_k, d), order o_k)
        Where, and with which derivative in the second argument, the kernel spans the features; Σ p_k = p.
    transform : ndarray (p, s)
        T.

    Examples
    --------
    >>> import numpy as np
    >>> from infinitask.kernels import Gaussian
    >>> psi = TaskMap(Gaussian(gamma=1.0), ((np.array([[0.5]]), 0),), np.eye(1))
    >>> psi(np.array([0.5])), psi(np.array([0.5]), order=1)
    (array([[1.]]), array([[0.]]))
    """

    kernel: TaskKernel
    landmarks: tuple[tuple[HostArray, int], ...]
    transform: HostArray

    def __call__(self, theta: Array, order: int = 0) -> HostArray:
        """Features (q, s), or their derivative of that order in θ, at tasks (q, d) or (q,); on the host."""
        tasks = as_tasks(theta)
        columns = [self.kernel(tasks, nodes, orders=(order, inner)) for nodes, inner in self.landmarks]
        return np.asarray(np.concatenate(columns, axis=1) @ self.transform)

    @property
    def rank(self) -> int:
        """How many features, s."""
        return int(self.transform.shape[1])

    def whiten(self, W: HostArray) -> TaskMap:
        """θ ↦ ψ(θ) W, for W of shape (s, s')."""
        return replace(self, transform=self.transform @ W)


@final
@dataclass(frozen=True, eq=False)
class TaskFeatures:
    """A task map together with its values on the nodes.

    Parameters
    ----------
    map : TaskMap
        ψ, for any θ.
    values : tuple of ndarray (m, s)
        Ψ_0, Ψ_1, ...: one for each order asked for.

    Examples
    --------
    >>> import numpy as np
    >>> from infinitask.kernels import ConstantTask
    >>> features = task_features(ConstantTask(), np.array([0.1, 0.9]))
    >>> features.rank, features.values[0].tolist()
    (1, [[1.0], [1.0]])
    """

    map: TaskMap
    values: tuple[HostArray, ...]

    @property
    def rank(self) -> int:
        """How many features, s."""
        return self.map.rank


def task_features(
    kernel: TaskKernel, nodes: Array, orders: Sequence[int] = (0,), tolerance: float = 1e-12
) -> TaskFeatures:
    """Features with Ψ_a Ψ_bᵀ = ∂₁^a ∂₂^b k(nodes, nodes) for all a, b in ``orders``.

    The joint Gram of values and derivatives, [[k, ∂₂k], [∂₁k, ∂₁∂₂k]], is factorised by one pivoted Cholesky. A
    derivative is larger than a value by the inverse length scale of the kernel, so each order is first divided by
    its largest norm: the relative tolerance then holds for each order in its own units.

    Parameters
    ----------
    kernel : TaskKernel
        A data dependent bandwidth is resolved on the nodes; the map keeps the resolved kernel.
    nodes : array (m, d) or (m,)
    orders : sequence of int
        Which derivatives the objective looks at.
    tolerance : float
        Relative to the largest diagonal entry of each order.

    Examples
    --------
    >>> import numpy as np
    >>> from infinitask.kernels import Gaussian
    >>> features = task_features(Gaussian(gamma=1.0), np.linspace(0, 1, 50), orders=(0, 1))
    >>> len(features.values), features.values[1].shape == (50, features.rank)
    (2, True)
    """
    tasks = as_tasks(nodes)
    kernel = kernel.resolve(tasks)
    m = tasks.shape[0]
    blocks = [[np.asarray(kernel(tasks, tasks, orders=(a, b)), dtype=float) for b in orders] for a in orders]
    largest = [np.max(np.diagonal(blocks[k][k]), initial=0.0) for k in range(len(orders))]
    # An order on which the kernel is constant has nothing to scale.
    scales = np.array([size**0.5 if size > 0 else 1.0 for size in largest])
    spread = np.repeat(scales, m)
    joint = np.block(blocks) / (spread[:, None] * spread)
    factor = factorise(joint, tolerance_for(tolerance, joint), name=repr(kernel))
    kind, place = np.divmod(factor.pivots, m)
    present = [k for k in range(len(orders)) if np.any(kind == k)]
    by_kind = np.argsort(kind, kind="stable")
    return TaskFeatures(
        TaskMap(
            kernel,
            tuple((tasks[place[kind == k]], int(orders[k])) for k in present),
            (factor.transform.matrix / spread[factor.pivots][:, None])[by_kind],
        ),
        tuple(factor.values[k * m : (k + 1) * m] * scales[k] for k in range(len(orders))),
    )


def node_basis(kernel: TaskKernel, nodes: Array, weights: Array, rho: Array | None = None) -> TaskFeatures:
    """The basis of L²(ρμ) whose functions are (w_j ρ_j)^(−1/2) at one node and 0 at the others: s = m.

    A strictly positive definite kernel leaves h free at every node, however small the eigenvalues of its Gram matrix:
    what costs the integrated ridge is the size at the nodes, not the norm in the RKHS. Between the nodes the function
    is the one in the span of k(·, θ_j) with these values, ψ(θ) = k(θ, nodes) K⁻¹ diag(wρ)^(−1/2).

    Parameters
    ----------
    kernel : TaskKernel
        Resolved and strictly positive definite.
    nodes : array (m, d)
        Distinct.
    weights, rho : array (m,)
        As in :func:`integrated_basis`, positive.

    Examples
    --------
    >>> import numpy as np
    >>> from infinitask.kernels import Gaussian
    >>> nodes = np.linspace(0, 1, 8)
    >>> psi = node_basis(Gaussian(gamma=5.0), nodes, np.full(8, 1 / 8))
    >>> bool(np.allclose(psi.map(nodes), psi.values[0], atol=1e-6))
    True
    """
    tasks = as_tasks(nodes)
    density = np.asarray(to_host(weights), dtype=float)
    if rho is not None:
        density = density * np.asarray(to_host(rho), dtype=float)
    values = np.diag(1.0 / np.sqrt(density))
    # Backward stable: at the nodes the residual is rounding times the solution, however badly conditioned K is.
    transform = np.linalg.solve(np.asarray(kernel(tasks, tasks), dtype=float), values)
    return TaskFeatures(TaskMap(kernel, ((tasks, 0),), transform), (values,))


def integrated_basis(features: TaskFeatures, weights: Array, rho: Array | None = None) -> TaskFeatures:
    """A basis orthonormal in L²(ρμ): Ψ_0ᵀ diag(w ρ) Ψ_0 = I.

    With it the integrated ridge is a plain one: ½ Σ_j w_j ρ_j ‖h(·)(θ_j)‖² = ½‖C‖²_F.

    Parameters
    ----------
    features : TaskFeatures
        Its first order must be the values, 0.
    weights : array (m,)
        Quadrature weights w.
    rho : array (m,) or None
        ρ(θ_j); None is 1.

    Examples
    --------
    >>> import numpy as np
    >>> from infinitask.kernels import Gaussian
    >>> weights = np.full(20, 1 / 20)
    >>> psi = integrated_basis(task_features(Gaussian(gamma=1.0), np.linspace(0, 1, 20)), weights)
    >>> bool(np.allclose(psi.values[0].T @ (weights[:, None] * psi.values[0]), np.eye(psi.rank)))
    True
    """
    density = np.asarray(to_host(weights), dtype=float)
    if rho is not None:
        density = density * np.asarray(to_host(rho), dtype=float)
    if density.shape != features.values[0].shape[:1] or not np.all(density >= 0):
        raise ValueError(
            f"integrated_basis was given weights · rho of shape {density.shape} with smallest value "
            f"{np.min(density, initial=np.inf):.3g}; expected one number ≥ 0 for each of the "
            f"{features.values[0].shape[0]} nodes. Use a quadrature with positive weights."
        )
    # Singular values of √(wρ) Ψ_0 rather than eigenvalues of its square: the small ones keep twice the digits.
    root = np.sqrt(density)
    left, sizes, axes = np.linalg.svd(root[:, None] * features.values[0], full_matrices=False)
    # A direction that the integral does not see costs nothing and would be scaled up without bound. Ψ_0 is known
    # to about 1e-16, so singular values below 3e-7 of the largest would turn that into more than 1e-9 of noise.
    kept = np.square(sizes) > NEGLIGIBLE * np.max(np.square(sizes), initial=0.0)
    W = axes[kept].T / sizes[kept] if np.any(kept) else np.zeros((features.rank, 1))
    values = [order @ W for order in features.values]
    if np.any(kept):
        # On the nodes Ψ_0 W is the left singular vectors over √(wρ), known to rounding. Where s = m the nodes are then
        # uncoupled to rounding too, and a solver can see it.
        seen = root > 0.0
        values[0][seen] = left[seen][:, kept] / root[seen, None]
    return TaskFeatures(features.map.whiten(W), tuple(values))


def as_tasks(theta: Array) -> HostArray:
    """Tasks as a host array (q, d)."""
    tasks = np.asarray(to_host(theta), dtype=float)
    return tasks.reshape(-1, 1) if tasks.ndim < 2 else tasks
