r"""Semismooth Newton at one level of smoothing.

The objective must provide value, gradient, and the pairs (i, j) at which the smoothed losses are curved. With Z the
rows
z_ij = (φ_i ⊗ ψ_j, ψ_b,j) of the curved pairs and W their weights, the generalised Hessian is Λ + Zᵀ W Z. There are
three ways to solve with it:

* **pairs**: (Λ + ZᵀWZ)⁻¹ = Λ⁻¹ − Λ⁻¹Zᵀ (W⁻¹ + ZΛ⁻¹Zᵀ)⁻¹ ZΛ⁻¹, and ZΛ⁻¹Zᵀ is k_X(x_i, x_i')·k_Θ(θ_j, θ_j')/λ plus the
  bias: one equation per curved pair, for any r and s. Nodes with orthogonal features (a diagonal task kernel) give
  separate, small systems.
* **unknowns**: the r·s + s_b equations themselves, summed over blocks of rows, without a list of pairs.
* **conjugate gradients**: products only, preconditioned by the diagonal in the joint eigenbasis.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import LinearOperator, cg

from infinitask._base.arrays import HostArray, namespace, to_host
from infinitask.objective import Objective, Smoothing
from infinitask.objective._terms import NO_CURVATURE
from infinitask.solvers._base import MAX_SOLVE_SIZE, Ledger, cost_by_unknowns
from infinitask.solvers._basis import Metric
from infinitask.solvers._lbfgs import line_search

MAX_SOLVE_COST = 3e11
"""The maximum number of operations of one dense solve: several seconds on two cores."""

CHEAP_SOLVE = 1e10
"""The maximum number of operations of a dense solve if there is an alternative."""

MIN_PAIRS_UNLISTED = 200_000
"""From this number of pairs on, a cheap step is solved by unknowns: the list of curved pairs may have millions."""

PAIRS_AT_A_TIME = 16_384
"""The number of pairs whose features are gathered at a time."""


class Pairs(NamedTuple):
    """Pairs (i, j) at which the smoothed loss is curved."""

    row: HostArray
    node: HostArray
    weight: HostArray
    """ω_i w_j ∂²ℓ^κ_ij."""


def pairs(objective: Objective, z: HostArray, smoothing: Smoothing) -> list[Pairs]:
    """Return the pairs of every integral at which the smoothed loss is curved."""
    found: list[list[Pairs]] = [[] for _ in objective.integrals]
    for block, parts in objective.curvatures(z, smoothing):
        for t, part in enumerate(parts):
            weight = to_host(part)
            row, node = np.nonzero(weight > NO_CURVATURE)
            found[t].append(Pairs(row + block.start, node, weight[row, node]))
    return [Pairs(*(np.concatenate(part) for part in zip(*parts, strict=True))) for parts in found]


def hessian_product(objective: Objective, z: HostArray, smoothing: Smoothing, v: HostArray) -> HostArray:
    """∇²P_κ(z) v, (size,), computed in one pass over the data."""
    xp = namespace(objective.rows)
    V, b = objective.split(v)
    out_C, out_c = 0.0 * V, None if b is None else 0.0 * b
    # the field is linear in the unknowns: its derivative along v is the field at v
    for (block, weights), (_, along) in zip(objective.curvatures(z, smoothing), objective.fields(v), strict=True):
        pulled = None
        for term, weight, moved in zip(objective.integrals, weights, along, strict=True):
            force = weight * moved
            part = force @ term.cols
            pulled = part if pulled is None else pulled + part
            if out_c is not None and term.bias_cols is not None:
                out_c = out_c + term.bias_cols.T @ xp.sum(force, axis=0)
        out_C = out_C + objective.rows[block, :].T @ pulled
    product = to_host(xp.reshape(out_C, (-1,))).astype(np.float64)
    if out_c is not None:
        product = np.concatenate([product, to_host(out_c).astype(np.float64)])
    return np.asarray(product + objective.ridge * v)


class NewtonSystem:
    """Solve with the generalised Hessian of an objective.

    Parameters
    ----------
    objective : Objective
    damping : ndarray (size,) or None
        Added to the ridge of a free bias, which is zero.
    limit : float
        The maximum number of operations of one dense solve.
    """

    def __init__(self, objective: Objective, damping: HostArray | None = None, limit: float = MAX_SOLVE_COST) -> None:
        self.objective = objective
        self.limit = limit
        self.ridge = objective.ridge if damping is None else objective.ridge + damping

    # -- independent of the point
    @cached_property
    def rows(self) -> HostArray:
        """Φ on the host."""
        return to_host(self.objective.rows).astype(np.float64, copy=False)

    @cached_property
    def cols(self) -> HostArray:
        """ψ of all integrals, stacked, (nodes of all integrals, s)."""
        return np.concatenate([t.cols for t in self.objective.host_integrals])

    @cached_property
    def bias_cols(self) -> HostArray:
        """ψ_b of all integrals, stacked, (nodes of all integrals, s_b)."""
        terms, width = self.objective.host_integrals, self.objective.bias_size
        parts = [np.zeros((t.cols.shape[0], width)) if t.bias_cols is None else t.bias_cols for t in terms]
        return np.concatenate(parts)

    @cached_property
    def task_gram(self) -> HostArray:
        """ψψᵀ over the nodes of all integrals."""
        return self.cols @ self.cols.T

    @cached_property
    def component(self) -> HostArray:
        """The group of every node, as a number: nodes of different groups have orthogonal features."""
        gram = np.abs(self.task_gram)
        scale = np.sqrt(np.outer(np.diag(gram), np.diag(gram)))
        return np.asarray(connected_components(gram > 1e-13 * scale, directed=False)[1])

    def active(self, z: HostArray, smoothing: Smoothing) -> Pairs:
        """The curved pairs at z, with node numbers over all integrals."""
        found = pairs(self.objective, z, smoothing)
        sizes = [t.cols.shape[0] for t in self.objective.integrals]
        starts = np.cumsum([0, *sizes])
        return Pairs(
            row=np.concatenate([p.row for p in found]),
            node=np.concatenate([p.node + s for p, s in zip(found, starts, strict=False)]),
            weight=np.concatenate([p.weight for p in found]).astype(np.float64, copy=False),
        )

    def pull(self, row: HostArray, node: HostArray, x: HostArray) -> HostArray:
        """Zᵀ x for one number per pair, (size,)."""
        per_node = scipy.sparse.coo_array((x, (row, node)), shape=(self.rows.shape[0], self.cols.shape[0])).tocsr()
        C = self.rows.T @ (per_node @ self.cols)
        return np.concatenate([C.ravel(), self.bias_cols.T @ per_node.sum(axis=0)])

    # -- the three ways to solve
    def direction(self, z: HostArray, smoothing: Smoothing, g: HostArray, metric: Metric) -> tuple[HostArray, str]:
        """−(Λ + ZᵀWZ)⁻¹ g, and the name of the method; conjugate gradients if a dense system would be too large."""
        n, p = self.rows.shape[0], self.objective.size
        if n * self.cols.shape[0] > MIN_PAIRS_UNLISTED and cost_by_unknowns(self.objective, n) < CHEAP_SOLVE:
            return self.by_unknowns(z, smoothing, g), f"{p} unknowns"
        active = self.active(z, smoothing)
        if active.row.size == 0:
            return -g / self.ridge, "no curved pair"
        sizes = np.bincount(self.component[active.node]).astype(float)
        by_pairs = float(np.sum(sizes**3)) / 3 + 30.0 * float(np.sum(sizes**2))
        by_unknowns = cost_by_unknowns(self.objective, np.unique(active.row).size)
        if np.max(sizes) > MAX_SOLVE_SIZE:
            by_pairs = np.inf
        if min(by_pairs, by_unknowns) > self.limit:
            return self.by_products(z, smoothing, g, metric), "conjugate gradients"
        solve, name = partial(self.by_pairs, active), f"{active.row.size} pairs"
        # Many more pairs than unknowns make the pairs' system nearly singular: avoiding that is worth some operations.
        redundant = active.row.size > 4 * p and by_unknowns < 20.0 * by_pairs
        if by_unknowns < by_pairs or redundant:
            solve, name = partial(self.by_unknowns, z, smoothing), f"{p} unknowns"
        direction = solve(g)
        residual = g + self.apply(active, direction)
        if _size(residual, self.ridge) > 1e-4 * _size(g, self.ridge):
            direction = direction + solve(residual)
        return direction, name

    def apply(self, active: Pairs, v: HostArray) -> HostArray:
        """(Λ + ZᵀWZ) v."""
        moved = self.push(active.row, active.node, v)
        return self.ridge * v + self.pull(active.row, active.node, active.weight * moved)

    def push(self, row: HostArray, node: HostArray, v: HostArray) -> HostArray:
        """Z v: one number per pair."""
        r, s = self.objective.shape
        at_nodes = self.cols @ v[: r * s].reshape(r, s).T
        moved = (self.bias_cols @ v[r * s :])[node]
        for start in range(0, row.size, PAIRS_AT_A_TIME):
            part = slice(start, start + PAIRS_AT_A_TIME)
            moved[part] += np.einsum("kr,kr->k", self.rows[row[part]], at_nodes[node[part]])
        return np.asarray(moved)

    def by_pairs(self, active: Pairs, g: HostArray) -> HostArray:
        """Solve M q − B d_c = −Z_C g_C/λ and Bᵀq + Λ_b d_c = −g_c, where q = W Z d are the forces at the pairs."""
        objective, row, node, weight = self.objective, active.row, active.node, active.weight
        count = objective.size - objective.bias_size
        held = np.concatenate([g[:count] / objective.alpha, np.zeros(objective.bias_size)])
        # right-hand sides: Z_C g_C/λ at the pairs, and the columns of B
        sides = np.column_stack([self.push(row, node, held), self.bias_cols[node]])
        solved = np.empty_like(sides)
        for group in np.unique(self.component[node]):
            k = np.flatnonzero(self.component[node] == group)
            used, local = np.unique(row[k], return_inverse=True)
            phi = self.rows[used]
            M = (phi @ phi.T)[np.ix_(local, local)]
            M *= self.task_gram[np.ix_(node[k], node[k])]
            M /= objective.alpha
            M[np.diag_indices_from(M)] += 1.0 / weight[k]
            solved[k] = scipy.linalg.cho_solve(_factor(M), sides[k], check_finite=False)
        forces, d_c = -solved[:, 0], np.empty(0)
        if objective.bias_size:
            B = sides[:, 1:]
            inner = np.diag(self.ridge[count:]) + B.T @ solved[:, 1:]
            d_c = scipy.linalg.solve(inner, B.T @ solved[:, 0] - g[count:], assume_a="pos", check_finite=False)
            forces = forces + solved[:, 1:] @ d_c
        pulled = self.pull(row, node, forces)[:count]
        return np.concatenate([-(g[:count] + pulled) / objective.alpha, d_c])

    def by_unknowns(self, z: HostArray, smoothing: Smoothing, g: HostArray) -> HostArray:
        """Solve with the Hessian Λ + Σ_i φ_i φ_iᵀ ⊗ Ψᵀ diag(W_i) Ψ, and the bias, from the weights W (n, nodes)."""
        objective = self.objective
        (r, s), b = objective.shape, objective.bias_size
        joint = np.concatenate([self.cols, self.bias_cols], axis=1)
        outer = (joint[:, :, None] * joint[:, None, :]).reshape(joint.shape[0], -1)
        CC = np.zeros((r * r, s * s))
        Cb = np.zeros((r, s * b))
        bb = np.zeros((b, b))
        step = max(1, 2_000_000 // (r * r + (s + b) ** 2))
        for block, parts in objective.curvatures(z, smoothing):
            weights = np.concatenate([to_host(part) for part in parts], axis=1)
            curved = np.flatnonzero(np.any(weights > 0.0, axis=1))
            for start in range(0, curved.size, step):
                some = curved[start : start + step]
                phi, count = self.rows[block][some], some.size
                per_row = (weights[some] @ outer).reshape(count, s + b, s + b)
                CC += (phi[:, :, None] * phi[:, None, :]).reshape(count, -1).T @ per_row[:, :s, :s].reshape(count, -1)
                if b:
                    Cb += phi.T @ per_row[:, :s, s:].reshape(count, -1)
                    bb += per_row[:, s:, s:].sum(axis=0)
        H = np.empty((objective.size, objective.size))
        H[: r * s, : r * s] = CC.reshape(r, r, s, s).transpose(0, 2, 1, 3).reshape(r * s, r * s)
        if b:
            H[: r * s, r * s :] = Cb.reshape(r * s, b)
            H[r * s :, : r * s] = H[: r * s, r * s :].T
            H[r * s :, r * s :] = bb
        H[np.diag_indices_from(H)] += self.ridge
        return -np.asarray(scipy.linalg.cho_solve(_factor(H), g, check_finite=False))

    def by_products(self, z: HostArray, smoothing: Smoothing, g: HostArray, metric: Metric) -> HostArray:
        """Run conjugate gradients, preconditioned by the metric, until the residual is a tenth of the gradient."""

        def product(v: HostArray) -> HostArray:
            return np.asarray(
                hessian_product(self.objective, z, smoothing, v) + (self.ridge - self.objective.ridge) * v
            )

        hessian, inverse = (LinearOperator((g.size, g.size), apply, dtype=float) for apply in (product, metric.solve))
        return np.asarray(cg(hessian, -g, rtol=0.1, maxiter=200, M=inverse)[0])


def _size(g: HostArray, ridge: HostArray) -> float:
    return float(np.sqrt((g / ridge) @ g))


def _factor(M: HostArray) -> tuple[HostArray, bool]:
    """Cholesky factor. A matrix that rounding made indefinite gets the smallest jitter that makes it definite."""
    jitter = 0.0
    top = float(np.max(np.diag(M)))
    for exponent in range(-15, -5):
        try:
            factor, lower = scipy.linalg.cho_factor(M, lower=True, check_finite=False)
            return np.asarray(factor), bool(lower)
        except scipy.linalg.LinAlgError:
            more = 10.0**exponent * top
            M[np.diag_indices_from(M)] += more - jitter
            jitter = more
    raise scipy.linalg.LinAlgError("the Newton system is not positive definite to working precision")


def newton_stage(
    ledger: Ledger,
    system: NewtonSystem,
    z: HostArray,
    smoothing: Smoothing,
    metric: Metric,
) -> tuple[HostArray, bool]:
    """Minimise P_κ from z until the ledger finds an evaluation good enough; return the new z and whether it did.

    Parameters
    ----------
    ledger : Ledger
    system : NewtonSystem
    z : ndarray (size,)
    smoothing : Smoothing
    metric : Metric
        An estimate of the Hessian, for conjugate gradients.
    """
    label = f"Newton, smoothing {smoothing.kappa[0]:.1e}"
    here = ledger.evaluate(z, smoothing, label)
    short, idle, goal = 0, 0, 0.5 * here.error
    for _ in range(15):  # afterwards a level of smoothing closer to the last one is tried
        if ledger.done or ledger.enough(here):
            return z, True
        try:
            direction, how = system.direction(z, smoothing, here.gradient, metric)
        except scipy.linalg.LinAlgError:
            return z, False
        step, fresh = line_search(ledger, z, smoothing, here, direction, f"{label}, {how}")
        if fresh is None:
            return z, False
        z, here = z + step * direction, fresh
        ledger.n_iter += 1
        # kinks along the direction shorten the steps; several short steps in a row mean that more smoothing is needed
        short = short + 1 if step < 0.25 else 0
        # full steps that do not reduce the error are useless: hardly any pair determines a free bias
        idle = 0 if step < 1.0 or here.error <= goal else idle + 1
        goal = min(goal, 0.5 * here.error) if idle == 0 else goal
        if max(short, idle) >= 4:
            break
    return z, ledger.done or ledger.enough(here)
