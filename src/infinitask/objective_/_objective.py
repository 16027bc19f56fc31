r"""The objective: a sum of integrals over the data and of quadratics in the unknowns.

With rows Φ (n, r), an :class:`Integral` with columns Ψ (m, s), and unknowns z = (C, c), C (r, s) and c (s_b),

.. math::

    P(z) = \sum_{\text{integrals}} \sum_{ij} \omega_i w_j \, \ell_{\theta_j}(y_i, H_{ij})
           + \langle v, c \rangle + \tfrac{\lambda}{2} \|C\|_F^2 + \tfrac{\lambda_b}{2} \|c\|^2 ,
    \qquad H = \Phi C \Psi^\top + 1 (\Psi_b c)^\top .

It is a sum over blocks of rows: a block fits the cache of a processor (or is a batch on a device), and nothing of size
n × m is stored for the whole data set. One pass yields the value, the gradient and a dual point. Because
the slopes of the smoothed losses are feasible dual points u, with g the gradient of the smoothed objective,

.. math::

    z_u = z - \Lambda^{-1} g, \qquad
    D(u) = \sum \omega w \, (-\ell^*(-u)) - \tfrac{1}{2} \|z_u\|_\Lambda^2 \le \min P ,

where Λ is λ on C and λ_b on c. The dual term needs no extra work: Σ ω w u h = ⟨z, −∇data⟩.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from infinitask._array import Array, HostArray, as_like, namespace, to_host
from infinitask.losses import Loss

__all__ = ["Evaluation", "Integral", "Objective", "Pairs", "Smoothing"]

BLOCK_ENTRIES = 65_536
"""Entries (rows × nodes) of a block: 512 KiB per float64 temporary. Measured on two cores with n = 10 000, m = 100 and
non-crossing: an evaluation takes 6.8 ms here, 11 ms at half of it (the threads wait for the interpreter more often) and
14 ms at twice (the temporaries leave the cache)."""

NEGLIGIBLE = 1e-100
"""Curvature below this is none: its inverse must not overflow."""

MOST_THREADS = 4
"""See :func:`_pool`."""

GROUPS = 16
"""Groups of blocks that threads share out among themselves."""


@dataclass(frozen=True)
class Integral:
    """One data term: Σ_ij ω_i w_j ℓ(θ_j, y_i, (rows · C · colsᵀ + 1 (bias_cols · c)ᵀ)_ij).

    Parameters
    ----------
    loss : Loss
    theta : array (m,) or (m, d)
    weights : array (m,)
        w, the quadrature weights.
    cols : array (m, s)
        ψ or one of its derivatives at the nodes.
    bias_cols : array (m, s_b) or None
    targets : array (n, 1) or None
    """

    loss: Loss
    theta: Array
    weights: Array
    cols: Array
    bias_cols: Array | None = None
    targets: Array | None = None

    @cached_property
    def width(self) -> Array:
        """Relative smoothing of the nodes, (m,)."""
        return self.loss.width(self.theta)

    @cached_property
    def weighted_cols(self) -> Array:
        """diag(w) Ψ: the weights enter the gradient here, once, and no array of size n × m is multiplied by them."""
        return self.weights[:, None] * self.cols


class Evaluation(NamedTuple):
    """What one pass over the data yields at a point z."""

    primal: float
    """P(z), of the losses themselves."""
    smoothed: float
    """P_κ(z)."""
    gradient: HostArray
    """∇P_κ(z), (r·s + s_b,)."""
    dual_data: float
    """Σ ω w (−ℓ*(−u)) at the dual point u made of the slopes."""
    slack: tuple[float, ...]
    """For each integral Σ ω w (ℓ − lower bound at u) ≥ 0: its share of the gap that is due to κ."""


class Pairs(NamedTuple):
    """Pairs (i, j) of one integral at which the smoothed loss is curved."""

    row: HostArray
    node: HostArray
    weight: HostArray
    """ω_i w_j ∂²ℓ^κ_ij."""


@dataclass(frozen=True)
class Smoothing:
    """How the losses are smoothed.

    Parameters
    ----------
    kappa : tuple of float
        κ of each integral; 0: none.
    centre : tuple of arrays (n, m) or None
        The dual point around which the envelope is taken, for each integral; None: around 0. This is the one place
        where a number per pair is kept, and only the last phase of a solver (small problems) asks for it.
    """

    kappa: tuple[float, ...]
    centre: tuple[Array | None, ...] | None = None

    def of(self, t: int, term: Integral, block: slice) -> tuple[Any, Array | None]:
        """What the loss of integral t receives on a block of rows: κ·width and the centre."""
        if self.kappa[t] == 0.0:
            return 0.0, None
        centre = None if self.centre is None else self.centre[t]
        return self.kappa[t] * term.width, None if centre is None else centre[block, :]


_Seen: TypeAlias = tuple[Integral, Array | None, Array]


@dataclass
class _Sums:
    """Sums over rows: of the losses, of their lower bounds, of κu², and the gradient of the data terms."""

    value: list[Any]
    lower: list[Any]
    square: list[Any]
    C: Array
    c: Array | None

    @classmethod
    def zeros(cls, C: Array, c: Array | None, count: int) -> _Sums:
        return cls([0.0] * count, [0.0] * count, [0.0] * count, 0.0 * C, None if c is None else 0.0 * c)

    @classmethod
    def total(cls, parts: list[_Sums]) -> _Sums:
        first = parts[0]
        for part in parts[1:]:
            for mine, other in ((first.value, part.value), (first.lower, part.lower), (first.square, part.square)):
                mine[:] = [a + b for a, b in zip(mine, other, strict=True)]
            first.C = first.C + part.C
            first.c = None if first.c is None else first.c + part.c
        return first


@lru_cache(maxsize=1)
def _pool() -> ThreadPoolExecutor:
    """Threads that visit groups of blocks side by side; NumPy lets go of the interpreter while it computes.

    Between two operations a thread waits for the interpreter, so that many threads hinder each other.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return ThreadPoolExecutor(min(MOST_THREADS, cores))


if hasattr(os, "register_at_fork"):
    # threads do not survive a fork: a child process makes its own
    os.register_at_fork(after_in_child=_pool.cache_clear)


@dataclass(frozen=True)
class Objective:
    """P(z), see the module's formula.

    Parameters
    ----------
    rows : array (n, r)
        Φ.
    sample_weight : array (n,)
        ω, summing to one.
    integrals : tuple of Integral
    alpha : float
        λ.
    alpha_bias : float
        λ_b.
    bias_linear : ndarray (s_b,) or None
        v.
    block_entries : int
        Rows × nodes of a block.
    """

    rows: Array
    sample_weight: Array
    integrals: tuple[Integral, ...]
    alpha: float
    alpha_bias: float = 1.0
    bias_linear: HostArray | None = None
    block_entries: int = BLOCK_ENTRIES

    # ------------------------------------------------------------------------------------------ shapes
    @property
    def shape(self) -> tuple[int, int]:
        """(r, s), the shape of C."""
        return self.rows.shape[1], self.integrals[0].cols.shape[1]

    @property
    def bias_size(self) -> int:
        """s_b."""
        cols = self.integrals[0].bias_cols
        return 0 if cols is None else int(cols.shape[1])

    @property
    def size(self) -> int:
        """Number of unknowns."""
        r, s = self.shape
        return r * s + self.bias_size

    @cached_property
    def ridge(self) -> HostArray:
        """The diagonal of Λ, (size,)."""
        r, s = self.shape
        return np.concatenate([np.full(r * s, self.alpha), np.full(self.bias_size, self.alpha_bias)])

    @cached_property
    def linear(self) -> HostArray:
        """v, padded with zeros to all unknowns, (size,)."""
        v = np.zeros(self.size)
        if self.bias_linear is not None:
            v[self.size - self.bias_size :] = self.bias_linear
        return v

    def split(self, z: HostArray) -> tuple[Array, Array | None]:
        """C (r, s) and c (s_b,) in the library and on the device of the rows."""
        r, s = self.shape
        C = as_like(z[: r * s].reshape(r, s), self.rows)
        return C, (as_like(z[r * s :], self.rows) if self.bias_size else None)

    # ---------------------------------------------------------------------------------------- one pass
    def blocks(self) -> Iterator[slice]:
        """Slices of rows."""
        n = self.rows.shape[0]
        nodes = max(int(term.theta.shape[0]) for term in self.integrals)
        step = max(1, self.block_entries // nodes)
        for start in range(0, n, step):
            yield slice(start, min(start + step, n))

    def _bias(self, c: Array | None) -> list[Array | None]:
        """Ψ_b c for each integral, (m,)."""
        return [None if c is None or t.bias_cols is None else t.bias_cols @ c for t in self.integrals]

    def evaluate(self, z: HostArray, smoothing: Smoothing) -> Evaluation:
        """Value, gradient and dual point at z, for losses smoothed as told."""
        C, c = self.split(z)
        bias = self._bias(c)
        groups = self._groups

        def visit(blocks: list[slice]) -> _Sums:
            sums = _Sums.zeros(C, c, len(self.integrals))
            for block in blocks:
                self._visit(block, C, bias, smoothing, sums)
            return sums

        if len(groups) > 1 and isinstance(self.rows, np.ndarray):
            parts = list(_pool().map(visit, groups))
        else:
            parts = [visit(blocks) for blocks in groups]
        return self._evaluation(z, _Sums.total(parts))

    @cached_property
    def _groups(self) -> list[list[slice]]:
        """Blocks in groups that may be visited side by side. Neither depends on the number of threads, so nor does a
        sum.
        """
        blocks = list(self.blocks())
        count = min(GROUPS, len(blocks) // 2) or 1
        return [blocks[k * len(blocks) // count : (k + 1) * len(blocks) // count] for k in range(count)]

    def _visit(self, block: slice, C: Array, bias: list[Array | None], smoothing: Smoothing, sums: _Sums) -> None:
        """Add what a block of rows contributes."""
        omega = self.sample_weight[block]
        pulled = None
        for t, (term, y, H) in enumerate(self._block_fields(block, C, bias)):
            kappa, centre = smoothing.of(t, term, block)
            point = term.loss.sums(term.theta, y, H, term.weights, kappa, centre)
            sums.value[t] = sums.value[t] + omega @ point.value
            sums.lower[t] = sums.lower[t] + omega @ point.lower
            sums.square[t] = sums.square[t] + omega @ point.square
            part = point.dual @ term.weighted_cols
            pulled = part if pulled is None else pulled + part
            if sums.c is not None and term.bias_cols is not None:
                sums.c = sums.c - term.bias_cols.T @ (term.weights * (omega @ point.dual))
        sums.C = sums.C - (self.rows[block, :].T * omega) @ pulled

    def _evaluation(self, z: HostArray, sums: _Sums) -> Evaluation:
        """From sums over the data to the objective and its dual."""
        values, lowers, squares = (np.array([float(v) for v in part]) for part in (sums.value, sums.lower, sums.square))
        data = to_host(sums.C).astype(np.float64).ravel()
        if sums.c is not None:
            data = np.concatenate([data, to_host(sums.c).astype(np.float64)])
        penalty = float(self.linear @ z + 0.5 * (self.ridge * z) @ z)
        return Evaluation(
            primal=float(values.sum()) + penalty,
            smoothed=float(lowers.sum()) - 0.5 * float(squares.sum()) + penalty,
            gradient=data + self.linear + self.ridge * z,
            dual_data=float(lowers.sum()) - float(data @ z),
            slack=tuple(float(v) for v in values - lowers),
        )

    # ------------------------------------------------------------------------------------ second order
    def fields(self, z: HostArray) -> Iterator[tuple[slice, list[_Seen]]]:
        """For each block of rows and every integral: the integral, its targets and H, (rows of the block, m)."""
        C, c = self.split(z)
        bias = self._bias(c)
        for block in self.blocks():
            yield block, self._block_fields(block, C, bias)

    def _block_fields(self, block: slice, C: Array, bias: list[Array | None]) -> list[_Seen]:
        A = self.rows[block, :] @ C
        seen = []
        for term, shift in zip(self.integrals, bias, strict=True):
            H = A @ term.cols.T
            if shift is not None:
                H = H + shift
            seen.append((term, None if term.targets is None else term.targets[block, :], H))
        return seen

    def curvatures(self, z: HostArray, smoothing: Smoothing) -> Iterator[tuple[slice, list[Array]]]:
        """For each block of rows, ω_i w_j ∂²ℓ^κ_ij of every integral, each (rows of the block, m)."""
        for block, seen in self.fields(z):
            omega = self.sample_weight[block][:, None]
            yield (
                block,
                [
                    term.loss.curvature(term.theta, y, H, *smoothing.of(t, term, block)) * term.weights * omega
                    for t, (term, y, H) in enumerate(seen)
                ],
            )

    def node_curvature(self, z: HostArray, smoothing: Smoothing) -> list[HostArray]:
        """Σ_i ω_i w_j ∂²ℓ^κ_ij at every node, (m,) for each integral."""
        xp = namespace(self.rows)
        total = [xp.zeros_like(t.weights) for t in self.integrals]
        for _, weights in self.curvatures(z, smoothing):
            for t, weight in enumerate(weights):
                total[t] = total[t] + xp.sum(weight, axis=0)
        return [to_host(v).astype(np.float64) for v in total]

    def pairs(self, z: HostArray, smoothing: Smoothing) -> list[Pairs]:
        """The pairs of every integral at which the smoothed loss is curved."""
        found: list[list[Pairs]] = [[] for _ in self.integrals]
        for block, seen in self.fields(z):
            omega = to_host(self.sample_weight[block])
            for t, (term, y, H) in enumerate(seen):
                curved = to_host(term.loss.curvature(term.theta, y, H, *smoothing.of(t, term, block)))
                mass = omega[:, None] * to_host(term.weights)
                weight = mass * curved
                row, node = np.nonzero(weight > NEGLIGIBLE)
                found[t].append(Pairs(row + block.start, node, weight[row, node]))
        return [Pairs(*(np.concatenate(part) for part in zip(*parts, strict=True))) for parts in found]

    def duals(self, z: HostArray, smoothing: Smoothing) -> tuple[Array | None, ...]:
        """The dual point at z, (n, m) for each integral; None for those that are not smoothed."""
        xp = namespace(self.rows)
        found: list[list[Array]] = [[] for _ in self.integrals]
        for block, seen in self.fields(z):
            for t, (term, y, H) in enumerate(seen):
                if smoothing.kappa[t] != 0.0:
                    found[t].append(term.loss.pointwise(term.theta, y, H, *smoothing.of(t, term, block)).dual)
        return tuple(xp.concat(parts, axis=0) if parts else None for parts in found)

    def hessian_product(self, z: HostArray, smoothing: Smoothing, v: HostArray) -> HostArray:
        """∇²P_κ(z) v, (size,), by one more pass over the data."""
        xp = namespace(self.rows)
        V, b = self.split(v)
        shift = self._bias(b)
        out_C = 0.0 * V
        out_c = None if b is None else 0.0 * b
        for block, weights in self.curvatures(z, smoothing):
            phi = self.rows[block, :]
            A = phi @ V
            pulled = None
            for t, term in enumerate(self.integrals):
                moved = A @ term.cols.T
                if shift[t] is not None:
                    moved = moved + shift[t]
                moved = moved * weights[t]
                part = moved @ term.cols
                pulled = part if pulled is None else pulled + part
                if out_c is not None and term.bias_cols is not None:
                    out_c = out_c + term.bias_cols.T @ xp.sum(moved, axis=0)
            out_C = out_C + phi.T @ pulled
        product = to_host(xp.reshape(out_C, (-1,))).astype(np.float64)
        if out_c is not None:
            product = np.concatenate([product, to_host(out_c).astype(np.float64)])
        return np.asarray(product + self.ridge * v)

    # ------------------------------------------------------------------------------------------ change
    def rotated(self, U: HostArray, V: HostArray, V_b: HostArray | None) -> Objective:
        """The same objective in the unknowns Uᵀ C V and V_bᵀ c, for orthogonal U, V, V_b."""
        terms = tuple(
            replace(
                term,
                cols=term.cols @ as_like(V, term.cols),
                bias_cols=None if term.bias_cols is None else term.bias_cols @ as_like(V_b, term.cols),
            )
            for term in self.integrals
        )
        linear = None if self.bias_linear is None or V_b is None else V_b.T @ self.bias_linear
        return replace(self, rows=self.rows @ as_like(U, self.rows), integrals=terms, bias_linear=linear)
