"""Feature maps ψ of the task kernel, for its values and its derivatives.

There are few tasks (the nodes of a quadrature), so these computations are on the host for data of any library.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import numpy as np

from infinitask._base.arrays import Array, HostArray, to_host
from infinitask.features._cholesky import factorise, tolerance_for
from infinitask.kernels import TaskKernel

SMALLEST_SINGULAR = 1e-13
"""Singular values of a Gram matrix of tasks below this fraction of the largest are rounding errors: functions that need
them are huge between the nodes."""

NEGLIGIBLE_ENERGY = 1e-11
"""Squared singular values below this fraction of the largest are dropped; see :func:`integrated_basis`. Features of
that size have a relative error of about 1e-16 over this number. On level sets, the error of the objective
of the field is up to 6e-8 with 1e-13 and 6e-10 with 1e-11."""


@final
@dataclass(frozen=True, eq=False)
class TaskMap:
    """The feature map ψ of the task kernel and its derivatives in θ, for any task.

    ψ^(o)(θ) = [∂₁^o ∂₂^(o_k) k(θ, z)  for z in Z_k, for each k] T.

    Parameters
    ----------
    kernel : TaskKernel
        A resolved kernel: its bandwidth is a number.
    landmarks : tuple of (nodes (p_k, d), order o_k)
        The tasks at which the kernel spans the features, and the derivative in its second argument; Σ p_k = p.
    transform : ndarray (p, s)
        T.
    rest : (NodeMap, ndarray (m, s)) or None
        Functions that are linear between nodes, and the coefficients with which they are added; see :func:`node_basis`.

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
    rest: tuple[NodeMap, HostArray] | None = None

    @property
    def diagonal(self) -> bool:
        """Whether the features are defined only at the landmarks."""
        return self.kernel.diagonal

    def __call__(self, theta: Array, order: int = 0) -> HostArray:
        """Return features (q, s), or their derivative of that order in θ, at tasks (q, d) or (q,); on the host."""
        tasks = as_tasks(theta)
        columns = [self.kernel(tasks, nodes, orders=(order, inner)) for nodes, inner in self.landmarks]
        values = np.asarray(np.concatenate(columns, axis=1) @ self.transform)
        return values if self.rest is None else values + self.rest[0](tasks, order) @ self.rest[1]

    @property
    def rank(self) -> int:
        """The number s of features."""
        return int(self.transform.shape[1])

    def whiten(self, W: HostArray) -> TaskMap:
        """Return θ ↦ ψ(θ) W, for W of shape (s, s')."""
        rest = None if self.rest is None else (self.rest[0], self.rest[1] @ W)
        return replace(self, transform=self.transform @ W, rest=rest)


@final
@dataclass(frozen=True, eq=False)
class NodeMap:
    """Functions that have given values at the nodes and are linear between nodes: ψ_j(θ_k) = 1 if j = k, else 0.

    Beyond the first and the last node they are extrapolated linearly.

    Parameters
    ----------
    nodes : ndarray (m,)
        The nodes, ascending.

    Examples
    --------
    >>> import numpy as np
    >>> NodeMap(np.array([0.0, 1.0]))(np.array([0.0, 0.25, 2.0]))
    array([[ 1.  ,  0.  ],
           [ 0.75,  0.25],
           [-1.  ,  2.  ]])
    """

    nodes: HostArray

    diagonal: ClassVar[bool] = False

    def __call__(self, theta: Array, order: int = 0) -> HostArray:
        """Return features (q, m), or their derivative of that order in θ, at tasks (q, 1) or (q,)."""
        tasks, nodes = as_tasks(theta)[:, 0], self.nodes
        out, rows = np.zeros((tasks.size, nodes.size)), np.arange(tasks.size)
        if nodes.size == 1:
            out[:, 0] = 1.0 if order == 0 else 0.0
            return out
        right = np.clip(np.searchsorted(nodes, tasks), 1, nodes.size - 1)
        gap = nodes[right] - nodes[right - 1]
        if order == 0:
            share = (tasks - nodes[right - 1]) / gap
            out[rows, right - 1], out[rows, right] = 1.0 - share, share
        elif order == 1:
            out[rows, right - 1], out[rows, right] = -1.0 / gap, 1.0 / gap
        return out

    @property
    def rank(self) -> int:
        """The number m of features."""
        return int(self.nodes.size)


def as_tasks(theta: Array) -> HostArray:
    """Return tasks as a host array (q, d)."""
    tasks = np.asarray(to_host(theta), dtype=float)
    return tasks.reshape(-1, 1) if tasks.ndim < 2 else tasks


@final
@dataclass(frozen=True, eq=False)
class TaskFeatures:
    """ψ together with its values on the nodes.

    Parameters
    ----------
    map : TaskMap
        ψ, for any θ; a :class:`~infinitask.features.NodeMap` for a bias without a kernel.
    values : tuple of ndarray (m, s)
        Ψ_0, Ψ_1, …, one for each order.

    Examples
    --------
    >>> import numpy as np
    >>> from infinitask.kernels import ConstantTask
    >>> features = task_features(ConstantTask(), np.array([0.1, 0.9]))
    >>> features.rank, features.values[0].tolist()
    (1, [[1.0], [1.0]])
    """

    map: Any
    values: tuple[HostArray, ...]

    @property
    def rank(self) -> int:
        """The number s of features."""
        return int(self.map.rank)


def task_features(
    kernel: TaskKernel, nodes: Array, orders: Sequence[int] = (0,), tolerance: float = 1e-12
) -> TaskFeatures:
    """Return features with Ψ_a Ψ_bᵀ = ∂₁^a ∂₂^b k(nodes, nodes) for all a, b in ``orders``.

    The joint Gram of values and derivatives, [[k, ∂₂k], [∂₁k, ∂₁∂₂k]], is factorised by one pivoted Cholesky. A
    derivative is larger than a value by the inverse length scale of the kernel, so each order is first divided by
    its largest norm: the relative tolerance then applies to each order in its own units.

    Parameters
    ----------
    kernel : TaskKernel
        A data-dependent bandwidth is resolved on the nodes; the map keeps the resolved kernel.
    nodes : array (m, d) or (m,)
    orders : sequence of int
        The derivatives in the objective.
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
    if not isinstance(kernel, TaskKernel):
        raise TypeError(f"kernel={kernel!r} was given; it must be a task kernel such as Gaussian(gamma=0.5).")
    tasks = as_tasks(nodes)
    kernel = kernel.resolve(tasks)
    m = tasks.shape[0]
    blocks = [[np.asarray(kernel(tasks, tasks, orders=(a, b)), dtype=float) for b in orders] for a in orders]
    largest = [np.max(np.diagonal(blocks[k][k]), initial=0.0) for k in range(len(orders))]
    # a derivative that is zero everywhere keeps its scale
    scales = np.array([size**0.5 if size > 0 else 1.0 for size in largest])
    spread = np.repeat(scales, m)
    joint = np.block(blocks) / (spread[:, None] * spread)
    factor = factorise(joint, tolerance_for(tolerance, joint), name=kernel)
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
    """Return the basis of L²(ρμ) whose functions are (w_j ρ_j)^(−1/2) at one node and 0 at the others: s = m.

    With a strictly positive definite kernel h is arbitrary at every node, however small the eigenvalues of its Gram
    matrix: the integrated ridge penalises the size at the nodes, not the norm in the RKHS. Between the nodes the
    function is the one in the span of k(·, θ_j) with these values, ψ(θ) = k(θ, nodes) K⁻¹ diag(wρ)^(−1/2). On the line,
    where K is singular in floating point, the part that the kernel cannot reproduce is added by functions that are
    linear between nodes. The certificate applies to the values at the nodes, which are those of the map.

    Parameters
    ----------
    kernel : TaskKernel
        A resolved and strictly positive definite kernel.
    nodes : array (m, d)
        Distinct nodes.
    weights, rho : array (m,)
        Positive; see :func:`integrated_basis`.

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
    density = _density(weights, rho)
    if density.shape != tasks.shape[:1] or not np.all(density > 0.0):
        raise ValueError(
            f"node_basis was given weights · rho of shape {density.shape} with smallest value "
            f"{np.min(density, initial=np.inf):.3g}; expected one number > 0 for each of the {tasks.shape[0]} nodes."
        )
    values = np.diag(1.0 / np.sqrt(density))
    gram = np.asarray(kernel(tasks, tasks), dtype=float)
    transform = np.linalg.lstsq(gram, values, rcond=SMALLEST_SINGULAR)[0]
    psi, rest = TaskMap(kernel, ((tasks, 0),), transform), None
    if tasks.shape[1] == 1:
        hats = NodeMap(np.unique(tasks[:, 0]))
        rest = hats, hats(tasks).T @ (values - psi(tasks))
    return TaskFeatures(replace(psi, rest=rest), (values,))


def node_values(nodes: Array) -> TaskFeatures:
    """Return functions of θ with given values at the nodes of a line, linear between them; s = m.

    Examples
    --------
    >>> import numpy as np
    >>> node_values(np.array([[0.8], [0.2]])).values[0]
    array([[0., 1.],
           [1., 0.]])
    """
    psi = NodeMap(np.unique(as_tasks(nodes)[:, 0]))
    return TaskFeatures(psi, (psi(nodes),))


def integrated_basis(features: TaskFeatures, weights: Array, rho: Array | None = None) -> TaskFeatures:
    """Return a basis that is orthonormal in L²(ρμ): Ψ_0ᵀ diag(w ρ) Ψ_0 = I.

    With it the integrated ridge is a plain one: ½ Σ_j w_j ρ_j ‖h(·)(θ_j)‖² = ½‖C‖²_F.

    Parameters
    ----------
    features : TaskFeatures
        Its first order must be the values, 0.
    weights : array (m,)
        Quadrature weights w.
    rho : array (m,) or None
        ρ(θ_j); None means 1.

    Examples
    --------
    >>> import numpy as np
    >>> from infinitask.kernels import Gaussian
    >>> weights = np.full(20, 1 / 20)
    >>> psi = integrated_basis(task_features(Gaussian(gamma=1.0), np.linspace(0, 1, 20)), weights)
    >>> bool(np.allclose(psi.values[0].T @ (weights[:, None] * psi.values[0]), np.eye(psi.rank)))
    True
    """
    density = _density(weights, rho)
    if density.shape != features.values[0].shape[:1] or not np.all(density >= 0):
        raise ValueError(
            f"integrated_basis was given weights · rho of shape {density.shape} with smallest value "
            f"{np.min(density, initial=np.inf):.3g}; expected one number ≥ 0 for each of the "
            f"{features.values[0].shape[0]} nodes. Use a quadrature with positive weights."
        )
    # Singular values of √(wρ) Ψ_0, not eigenvalues of its square: small ones are accurate to twice the number of
    # digits.
    root = np.sqrt(density)
    left, sizes, axes = np.linalg.svd(root[:, None] * features.values[0], full_matrices=False)
    # A direction in the null space of the integral costs nothing and would be scaled up without bound, and rounding
    # with it: the values of the map at the nodes would then differ from ``values``, which a solver uses.
    kept = np.square(sizes) > NEGLIGIBLE_ENERGY * np.max(np.square(sizes), initial=0.0)
    W = axes[kept].T / sizes[kept] if np.any(kept) else np.zeros((features.rank, 1))
    values = [order @ W for order in features.values]
    if np.any(kept):
        # On the nodes Ψ_0 W equals the left singular vectors over √(wρ), which are exact to rounding. If s = m, the
        # nodes are then uncoupled to rounding, and a solver can use that.
        seen = root > 0.0
        values[0][seen] = left[seen][:, kept] / root[seen, None]
    return TaskFeatures(features.map.whiten(W), tuple(values))


def _density(weights: Array, rho: Array | None) -> HostArray:
    """Return w_j ρ_j, (m,), on the host."""
    w = np.asarray(to_host(weights), dtype=float)
    return w if rho is None else w * np.asarray(to_host(rho), dtype=float)
