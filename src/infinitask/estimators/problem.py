"""From specs and data to an objective, and from its solution to a field.

This is where the choices of φ, ψ, loss and penalty meet; nothing here depends on scikit-learn's face.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist

from infinitask._array import Array, HostArray, as_like, namespace, place
from infinitask.features import (
    Features,
    TaskFeatures,
    feature_recipe,
    integrated_basis,
    node_basis,
    task_features,
)
from infinitask.field import Field
from infinitask.kernels import Gaussian, MaternTask, TaskKernel, input_kernel, task_kernel
from infinitask.losses import Loss
from infinitask.measures import Measure, Quadrature, quadrature_rule
from infinitask.objective import BLOCK_ENTRIES, Integral, Objective
from infinitask.penalties import IntegratedRidge, NonCrossing, Ridge

__all__ = ["Data", "Problem", "Recipe", "pose", "tolerance"]

DEVICE_ENTRIES = 16_000_000
"""Rows × nodes of a batch on a device: 128 MB per temporary. Its cost is the number of kernels started, not the
cache."""

NODE_ERROR = 2e-3
"""The integrated ridge leaves h free at every node, as the mathematics has it, where ψ gives the values at the nodes
back to this accuracy: the worst function's; solutions are ten times better. With many nodes the Gram matrix of a smooth
kernel is singular to rounding, and h lives in what the kernel spans numerically."""

TASK_TOLERANCE = 1e-14
"""Tasks are few: ψ is always as exact as rounding allows."""

FREE_TOLERANCE = 1e-8
"""Nothing but the data holds a free bias: directions of ψ_b that the nodes hardly see are left out."""


@dataclass(frozen=True)
class Data:
    """Rows in a canonical order, each once.

    Parameters
    ----------
    X : ndarray (n, d)
        Inputs, or rows of the Gram matrix.
    y : ndarray (n,), or (n, m) for a target of its own at every node, or None
    weight : ndarray (n,)
        Positive, summing to one.
    """

    X: HostArray
    y: HostArray | None
    weight: HostArray

    @classmethod
    def canonical(cls, X: HostArray, y: HostArray | None, weight: HostArray, *, gram: bool = False) -> Data:
        """Drop rows of weight 0, merge equal rows, sort.

        A row that occurs twice and a row of weight two pose the same problem, and so do two orders of the rows. Here
        they become the same numbers as well, so that the fit is the same to the last bit. Rows of a Gram matrix stay as
        they are.
        """
        kept = weight > 0.0
        if not np.all(kept):
            X, weight = X[kept], weight[kept]
            y = None if y is None else y[kept]
            if gram:
                X = X[:, kept]
        if not gram:
            table = X if y is None else np.column_stack([X, y])
            # the weight decides last, so that sums of weights do not depend on the order either
            order = np.lexsort((weight, *table.T[::-1]))
            table = table[order]
            fresh = np.ones(order.size, dtype=bool)
            fresh[1:] = np.any(table[1:] != table[:-1], axis=1)
            first = order[fresh]
            weight = np.bincount(np.cumsum(fresh) - 1, weights=weight[order])
            X, y = X[first], (None if y is None else y[first])
        weight = weight / np.max(weight)  # so that the sum cannot overflow
        return cls(X, y, weight / np.sum(weight))


@dataclass(frozen=True)
class Recipe:
    """What to learn with; the names are those of the estimators' parameters."""

    loss: Loss
    measure: Measure
    penalty: Ridge | IntegratedRidge
    kernel: Any = "rbf"
    gamma: Any = "median"
    task_kernel: Any = "rbf"
    task_gamma: Any = None
    task_gaps: float | None = None
    """Where ``task_gamma`` is None, σ = (2γ)^(−1/2) is so many mean gaps between neighbouring nodes, but not more than
    the median distance of all nodes; None: it is the latter."""
    bias_kernel: Any = "task"
    alpha: float = 1e-3
    alpha_bias: float = 1e-3
    bias_slope: float = 0.0
    """v(θ) of the term ∫ v b dμ that is linear in the bias: 1 for level sets, where b = −t."""
    noncrossing: float = 0.0
    hard: bool = False
    """Whether order in θ at the training inputs is a constraint; see :mod:`~infinitask.estimators.order`."""
    quadrature: Any = "gauss-legendre"
    n_nodes: int = 50
    features: Any = "auto"
    rank: int | None = None
    tol: float = 1e-4
    device: str | None = None
    random_state: Any = None


@dataclass(frozen=True)
class Problem:
    """A posed problem: the objective, and how its unknowns become a field."""

    objective: Objective
    quadrature: Quadrature
    phi: Features
    psi: TaskFeatures
    psi_bias: TaskFeatures | None
    kernel: TaskKernel
    constant: float | None
    """Value of the constant feature by which a bias with the task kernel joins φ; None if it did not."""

    def field(self, z: HostArray) -> Field:
        """Unknowns → h."""
        r, s = self.objective.shape
        C, c = z[: r * s].reshape(r, s), z[r * s :]
        if self.constant is not None:
            return Field(self.phi.map, self.psi.map, C[1:], self.psi.map, self.constant * C[0])
        bias_map = None if self.psi_bias is None else self.psi_bias.map
        return Field(self.phi.map, self.psi.map, C, bias_map, None if bias_map is None else c)


def tolerance(recipe: Recipe, data: Data) -> float:
    """How exact φ must be, relative to the largest k(x, x) or to 1.

    Replacing k by φφᵀ changes the optimum by at most residual/(2λ), because the dual variables sum to at most about
    one: a hundredth of the tolerance is out of sight.
    """
    y = data.y
    size = 1.0 if y is None else min(1.0, float(np.mean(data.weight @ np.abs(y - data.weight @ y))) or 1.0)
    return 1e-2 * recipe.tol * recipe.alpha * size


def pose(
    recipe: Recipe,
    data: Data,
    rng: np.random.Generator,
    *,
    phi: Features | None = None,
    tol: float | None = None,
) -> Problem:
    """Choose nodes and features, and write down the objective.

    Parameters
    ----------
    recipe : Recipe
    data : Data
    rng : numpy.random.Generator
    phi : Features or None
        Features of these inputs that are exact enough; None: they are built.
    tol : float or None
        How exact they shall be; None: :func:`tolerance`.

    Returns
    -------
    Problem
    """
    quadrature = quadrature_rule(recipe.quadrature)(recipe.measure, recipe.n_nodes, rng)
    nodes = quadrature.nodes
    task_gamma = _node_gamma(nodes, recipe.task_gaps) if recipe.task_gamma is None else recipe.task_gamma
    k_task = task_kernel(recipe.task_kernel, task_gamma).resolve(nodes)
    orders = (0, 1) if recipe.noncrossing > 0.0 or recipe.hard else (0,)
    psi = task_features(k_task, nodes, orders, TASK_TOLERANCE)
    plain = psi
    if isinstance(recipe.penalty, IntegratedRidge):
        if recipe.noncrossing > 0.0 or recipe.hard:
            given = "'hard'" if recipe.hard else f"{recipe.noncrossing:g}"
            raise ValueError(
                f"noncrossing={given} was given with the integrated ridge; that ridge sees h at the "
                "nodes only, and functions that vanish there could undo the penalty at no cost. Use the plain ridge."
            )
        psi = _orthonormal(psi, k_task, quadrature, recipe.penalty.rho(nodes))

    X = place(data.X, recipe.device)
    omega = as_like(data.weight, X)
    if phi is None:
        phi = _features(recipe, X, tolerance(recipe, data) if tol is None else tol, rng)

    rows: Array = phi.values
    constant: float | None = None
    psi_bias: TaskFeatures | None = None
    as_task = isinstance(recipe.bias_kernel, str) and recipe.bias_kernel == "task"
    if recipe.bias_kernel is not None:
        free = recipe.alpha_bias == 0.0
        exact = FREE_TOLERANCE if free else TASK_TOLERANCE
        if as_task and psi is plain and recipe.bias_slope == 0.0 and not free:
            # the same ψ for h and b: the bias is the coefficient of one more, constant, feature of x
            constant = float(np.sqrt(recipe.alpha / recipe.alpha_bias))
            rows = _with_constant(rows, constant)
        elif as_task and not free:
            psi_bias = plain
        else:
            try:
                k_bias = k_task if as_task else task_kernel(recipe.bias_kernel, task_gamma).resolve(nodes)
            except ValueError as error:
                raise ValueError(f"bias_kernel={recipe.bias_kernel!r} was given. {error}") from None
            # what vanishes at the nodes is left out of a free bias: a penalty on the derivative alone would hold it
            psi_bias = task_features(k_bias, nodes, (0,) if free else orders, exact)
            if free and len(orders) > 1:
                psi_bias = replace(psi_bias, values=(*psi_bias.values, psi_bias.map(nodes, 1)))

    theta = as_like(nodes[:, 0] if nodes.shape[1] == 1 else nodes, rows)
    weights = as_like(quadrature.weights, rows)
    targets = None if data.y is None else as_like(data.y if data.y.ndim == 2 else data.y[:, None], rows)

    recipe.loss.check(theta, targets)

    def integral(loss: Loss, order: int, y: Array | None) -> Integral:
        bias_cols = None if psi_bias is None else as_like(psi_bias.values[order], rows)
        return Integral(loss, theta, weights, as_like(psi.values[order], rows), bias_cols, y)

    integrals = [integral(recipe.loss, 0, targets)]
    if recipe.noncrossing > 0.0:
        integrals.append(integral(NonCrossing(recipe.noncrossing), 1, None))
    linear = None
    if recipe.bias_slope != 0.0 and psi_bias is not None:
        linear = recipe.bias_slope * (psi_bias.values[0].T @ quadrature.weights)
    entries = BLOCK_ENTRIES if recipe.device is None else DEVICE_ENTRIES
    objective = Objective(rows, omega, tuple(integrals), recipe.alpha, recipe.alpha_bias, linear, entries)
    return Problem(objective, quadrature, phi, psi, psi_bias, k_task, constant)


def _features(recipe: Recipe, X: Array, exact: float, rng: np.random.Generator) -> Features:
    """φ of the inputs."""
    xp = namespace(X)
    k_input = input_kernel(recipe.kernel, recipe.gamma)
    if not k_input.precomputed:
        k_input = k_input.resolve(X)
    largest = float(xp.max(xp.linalg.diagonal(X) if k_input.precomputed else k_input.diag(X)))
    exact = min(1e-9, max(1e-15, exact / max(1.0, largest)))
    return feature_recipe(recipe.features, recipe.rank).build(k_input, X, exact, rng)


def _orthonormal(psi: TaskFeatures, kernel: TaskKernel, quadrature: Quadrature, rho: HostArray) -> TaskFeatures:
    """A basis orthonormal in L²(ρμ): of all functions on the nodes if rounding allows, else of the spanned ones."""
    if isinstance(kernel, (Gaussian, MaternTask)) and np.all(quadrature.weights > 0.0):
        free = node_basis(kernel, quadrature.nodes, quadrature.weights, rho)
        error = np.max(np.abs(free.map(quadrature.nodes) - free.values[0])) / np.max(free.values[0])
        if error <= NODE_ERROR:
            return free
    return integrated_basis(psi, quadrature.weights, rho)


def _node_gamma(nodes: HostArray, gaps: float | None) -> float:
    """γ = 1/(2σ²) with σ from the distances between nodes; 1 where there is one node only."""
    distances = pdist(nodes)
    sigma = float(np.median(distances)) if distances.size else 0.0
    if gaps is not None and distances.size:
        sigma = min(sigma, gaps * float(np.max(distances)) / (len(nodes) - 1))
    return 0.5 / sigma**2 if sigma > 0.0 else 1.0


def _with_constant(rows: Array, value: float) -> Array:
    xp = namespace(rows)
    return xp.concat([as_like(np.full((rows.shape[0], 1), value), rows), rows], axis=1)
