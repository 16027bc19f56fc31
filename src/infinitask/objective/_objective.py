"""The objective: value, gradient and dual point in one pass over blocks of rows, and its curvature."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

import numpy as np

from infinitask._array import Array, HostArray, as_like, namespace, to_host
from infinitask._threads import shared_out
from infinitask.losses import BoxLoss, Sums
from infinitask.objective._balance import Balance, NodeSums
from infinitask.objective._blocks import BLOCK_ENTRIES, blocks_of, groups_of
from infinitask.objective._fused import Fused
from infinitask.objective._sums import RowSums, both
from infinitask.objective._terms import Evaluation, Integral, Pairs, Smoothing

__all__ = ["Objective"]

NEGLIGIBLE = 1e-100
"""Curvature below this is none: its inverse must not overflow."""

REACH = 4.0
"""How far from every target the corners of a free bias look, in units of :attr:`Objective.scale`, where the slopes of
the loss have no end: a longer reach would only cost more of the dual."""

_Seen: TypeAlias = tuple[Integral, Array | None, Array]
_Part = TypeVar("_Part")


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
        λ_b; 0: the bias is free.
    bias_linear : ndarray (s_b,) or None
        v.
    block_entries : int
        Rows × nodes of a block.
    reach : ndarray (n,) of int, ascending, or None
        How many entries a row of Φ has before zeros begin; None: all r.
    """

    rows: Array
    sample_weight: Array
    integrals: tuple[Integral, ...]
    alpha: float
    alpha_bias: float = 1.0
    bias_linear: HostArray | None = None
    block_entries: int = BLOCK_ENTRIES
    reach: HostArray | None = None

    def __getstate__(self) -> dict[str, Any]:
        # what is computed from the fields is computed again
        return {f.name: getattr(self, f.name) for f in fields(self)}

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

    @property
    def free(self) -> bool:
        """Whether there is a bias without a ridge."""
        return self.bias_size > 0 and self.alpha_bias == 0.0

    @cached_property
    def ridge(self) -> HostArray:
        """The diagonal of Λ, (size,); 0 for a free bias."""
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
        if isinstance(self.rows, np.ndarray) and self.rows.dtype == z.dtype:
            return z[: r * s].reshape(r, s), (z[r * s :] if self.bias_size else None)
        C = as_like(z[: r * s].reshape(r, s), self.rows)
        return C, (as_like(z[r * s :], self.rows) if self.bias_size else None)

    # ---------------------------------------------------------------------------------------- one pass
    def blocks(self) -> Iterator[slice]:
        """Slices of rows."""
        nodes = max(int(term.theta.shape[0]) for term in self.integrals)
        product = self.shape if isinstance(self.rows, np.ndarray) else None
        return blocks_of(int(self.rows.shape[0]), nodes, product, self.block_entries)

    def features(self, block: slice) -> Array:
        """Φ on a block of rows, without columns that are zero there."""
        return self.rows[block, :] if self.reach is None else self.rows[block, : self.reach[block.stop - 1]]

    def _bias(self, c: Array | None) -> list[Array | None]:
        """Ψ_b c for each integral, (m,)."""
        return [None if c is None or t.bias_cols is None else t.bias_cols @ c for t in self.integrals]

    def evaluate(self, z: HostArray, smoothing: Smoothing) -> Evaluation:
        """Value, gradient and dual point at z, for losses smoothed as told."""
        C, c = self.split(z)
        bias = self._bias(c)
        fused = self.fused
        joint = None if fused is None or fused.bias_cols is None else fused.bias_cols @ c

        def visit(blocks: list[slice]) -> RowSums:
            if fused is not None:
                return fused.visit(blocks, C, joint, smoothing)
            sums = RowSums.zeros(C, c, len(self.integrals))
            for block in blocks:
                self._visit(block, C, bias, smoothing, sums)
            return sums

        return self._evaluation(z, RowSums.total(self._shared_out(visit)))

    def _shared_out(self, visit: Callable[[list[slice]], _Part]) -> list[_Part]:
        """What groups of blocks yield, visited by threads where the rows are on the host."""
        if len(self._groups) > 1 and isinstance(self.rows, np.ndarray):
            return shared_out(visit, self._groups)
        return [visit(blocks) for blocks in self._groups]

    @cached_property
    def fused(self) -> Fused | None:
        """The compiled way through the pairs, where there is one."""
        return Fused.of(self)

    @cached_property
    def _groups(self) -> list[list[slice]]:
        """Blocks in groups that may be visited side by side. Neither depends on the number of threads, so nor does a
        sum.
        """
        return groups_of(list(self.blocks()))

    def _visit(self, block: slice, C: Array, bias: list[Array | None], smoothing: Smoothing, sums: RowSums) -> None:
        """Add what a block of rows contributes."""
        omega = self.sample_weight[block]
        pulled = None
        for t, (term, y, H) in enumerate(self._block_fields(block, C, bias)):
            kappa, centre = smoothing.of(t, term, block)
            if t == 0 and self.free:
                seen = term.loss.pointwise(term.theta, y, H, kappa, centre)
                point = Sums.of(seen, term.weights, kappa, centre)
                # −ℓ*(−u) is the lower bound of the loss at h, and u h; a row of the table knows it without h
                known = isinstance(term.loss, BoxLoss)
                data = term.loss.dual(term.theta, y, point.dual) if known else seen.lower + point.dual * H
                sums.nodes = both(sums.nodes, self._node_sums(block, point.dual, data))
            else:
                point = term.loss.sums(term.theta, y, H, term.weights, kappa, centre)
            sums.value[t] = sums.value[t] + omega @ point.value
            sums.lower[t] = sums.lower[t] + omega @ point.lower
            sums.square[t] = sums.square[t] + omega @ point.square
            part = point.dual @ term.weighted_cols
            pulled = part if pulled is None else pulled + part
            if sums.c is not None and term.bias_cols is not None:
                sums.c = sums.c - term.bias_cols.T @ (term.weights * (omega @ point.dual))
        sums.C = sums.C - (self.rows[block, :].T * omega) @ pulled

    def _node_sums(self, block: slice, u: Array, data: Array) -> NodeSums:
        omega = self.sample_weight[block]
        return NodeSums(omega @ u, omega @ data, (self.rows[block, :].T * omega) @ u)

    def _evaluation(self, z: HostArray, sums: RowSums) -> Evaluation:
        """From sums over the data to the objective and its dual."""
        values, lowers, squares = (np.array([float(v) for v in part]) for part in (sums.value, sums.lower, sums.square))
        data = to_host(sums.C).astype(np.float64).ravel()
        if sums.c is not None:
            data = np.concatenate([data, to_host(sums.c).astype(np.float64)])
        penalty = float(self.linear @ z + 0.5 * (self.ridge * z) @ z)
        primal, gradient = float(values.sum()) + penalty, data + self.linear + self.ridge * z
        dual_data, slack = float(lowers.sum()) - float(data @ z), values - lowers
        if self.free and sums.nodes is not None:
            if self._rest_at_zero:
                # the same number without h, which may be far from the data
                dual_data = float(to_host(self.integrals[0].weights @ as_like(sums.nodes.data, self.rows)))
            dual_data, dual_z = self._balanced(dual_data, -data, gradient, sums.nodes)
            error = primal - (dual_data - 0.5 * float((self.ridge * dual_z) @ dual_z)) - float(slack.sum())
        else:
            dual_z = z - gradient / self.ridge
            error = 0.5 * float((gradient / self.ridge) @ gradient)
        return Evaluation(
            primal=primal,
            smoothed=float(lowers.sum()) - 0.5 * float(squares.sum()) + penalty,
            gradient=gradient,
            dual_data=dual_data,
            slack=tuple(float(v) for v in slack),
            dual_z=dual_z,
            error=max(error, 0.0),
        )

    # --------------------------------------------------------------------------------------- free bias
    def _balanced(
        self, dual_data: float, pulled: HostArray, gradient: HostArray, nodes: NodeSums
    ) -> tuple[float, HostArray]:
        """The dual point on the constraint that a free bias adds: its data term, −∞ where there is none, and z_u."""
        r, s = self.shape
        C = pulled[: r * s].copy()
        shift = self.balance.shift(nodes.on_host(), gradient[r * s :])
        if shift is None:
            dual_data = -np.inf
        else:
            dual_data += shift[0]
            C += shift[1].ravel()
        return dual_data, np.concatenate([C / self.alpha, np.zeros(self.bias_size)])

    @cached_property
    def _rest_at_zero(self) -> bool:
        """Whether the dual term of all integrals but the first is 0: kinks at 0, without targets."""
        rows = [t.loss.row(t.theta, None) for t in self.integrals[1:] if isinstance(t.loss, BoxLoss)]
        bare = all(row.dead_zone is row.soft_low is row.soft_high is None for row in rows)
        return bare and len(rows) == len(self.integrals) - 1 and all(t.targets is None for t in self.integrals[1:])

    @cached_property
    def balance(self) -> Balance:
        """What makes dual points feasible where the bias is free."""
        first = self.integrals[0]
        host = [to_host(part).astype(np.float64) for part in (first.weights, first.cols, first.bias_cols)]
        return Balance(self._corner(1.0), self._corner(-1.0), *host)

    def _corner(self, side: float) -> NodeSums:
        """The dual point of a field far above (1) or far below (−1) every target."""
        first = self.integrals[0]
        total = None
        for block in self.blocks():
            y = None if first.targets is None else first.targets[block, :]
            zero = 0.0 * self.sample_weight[block][:, None] * first.weights
            u, data = first.loss.corner(first.theta, y, zero, side, REACH * self.scale)
            total = both(total, self._node_sums(block, u, data))
        assert total is not None
        return total.on_host()

    def _at_rest(self) -> float:
        """Σ ω w (−ℓ*(0)): the smallest values of the losses."""
        total = 0.0
        for term in self.integrals:
            if term.loss.rests_at_zero:
                continue
            for block in self.blocks():
                omega = self.sample_weight[block]
                y = None if term.targets is None else term.targets[block, :]
                total += float(
                    omega @ term.loss.dual(term.theta, y, 0.0 * omega[:, None] * term.weights) @ term.weights
                )
        return total

    def origin(self) -> tuple[float, HostArray] | None:
        """The dual point u = 0, or where the bias is free what balances next to it; None where nothing does."""
        data = self._at_rest()
        if not self.free:
            return (data, -self.linear / self.ridge) if np.isfinite(data) else None
        r, m = self.rows.shape[1], int(self.integrals[0].weights.shape[0])
        nothing = NodeSums(*(as_like(np.zeros(shape), self.rows) for shape in ((m,), (m,), (r, m))))
        data, z = self._balanced(data, np.zeros(self.size), self.linear, nothing)
        return (data, z) if np.isfinite(data) else None

    def start(self) -> HostArray:
        """0, and for a free bias the constant that is the mean target."""
        z = np.zeros(self.size)
        first = self.integrals[0]
        if self.free and first.targets is not None:
            mean = float(np.mean(to_host(self.sample_weight @ first.targets)))
            cols = to_host(first.bias_cols).astype(np.float64)
            z[self.size - self.bias_size :] = np.linalg.lstsq(cols, np.full(cols.shape[0], mean))[0]
        return z

    @cached_property
    def scale(self) -> float:
        """The size of what the losses look at: spread of the targets, or of the field where there are none."""
        first = self.integrals[0]
        xp = namespace(self.rows)
        if first.targets is not None:
            y = first.targets
            size = float(xp.mean(self.sample_weight @ xp.abs(y)))
            spread = float(xp.mean(self.sample_weight @ xp.abs(y - self.sample_weight @ y)))
            # the spread of a constant target is rounding
            return spread if spread > 1e-12 * size else size if size > 0.0 else 1.0
        over_rows = self.rows @ (self.rows.T @ self.sample_weight)
        over_nodes = first.cols @ (first.cols.T @ first.weights)
        scale = float(xp.mean(xp.abs(over_rows))) * float(xp.mean(xp.abs(over_nodes))) / self.alpha
        return scale if scale > 0.0 else 1.0

    # ------------------------------------------------------------------------------------ second order
    def fields(self, z: HostArray, blocks: list[slice] | None = None) -> Iterator[tuple[slice, list[_Seen]]]:
        """For each block of rows and every integral: the integral, its targets and H, (rows of the block, m)."""
        C, c = self.split(z)
        bias = self._bias(c)
        for block in self.blocks() if blocks is None else blocks:
            yield block, self._block_fields(block, C, bias)

    def _block_fields(self, block: slice, C: Array, bias: list[Array | None]) -> list[_Seen]:
        phi = self.features(block)
        A = phi @ C[: phi.shape[1], :]
        seen = []
        for term, shift in zip(self.integrals, bias, strict=True):
            H = A @ term.cols.T
            if shift is not None:
                H = H + shift
            seen.append((term, None if term.targets is None else term.targets[block, :], H))
        return seen

    def curvatures(
        self, z: HostArray, smoothing: Smoothing, blocks: list[slice] | None = None
    ) -> Iterator[tuple[slice, list[Array]]]:
        """For each block of rows, ω_i w_j ∂²ℓ^κ_ij of every integral, each (rows of the block, m)."""
        if self.fused is not None:
            C, c = self.split(z)
            joint = None if self.fused.bias_cols is None else self.fused.bias_cols @ c
            for block in self.blocks() if blocks is None else blocks:
                yield block, self.fused.curvatures(block, C, joint, smoothing)
            return
        for block, seen in self.fields(z, blocks):
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

        def visit(blocks: list[slice]) -> list[Array]:
            total = [xp.zeros_like(t.weights) for t in self.integrals]
            for _, weights in self.curvatures(z, smoothing, blocks):
                total = [v + xp.sum(weight, axis=0) for v, weight in zip(total, weights, strict=True)]
            return total

        return [to_host(sum(parts)).astype(np.float64) for parts in zip(*self._shared_out(visit), strict=True)]

    def curved_pairs(self, z: HostArray, smoothing: Smoothing) -> int:
        """At how many pairs the smoothed losses are curved."""
        xp = namespace(self.rows)
        return sum(
            int(xp.sum(xp.astype(part > NEGLIGIBLE, xp.int64)))
            for _, parts in self.curvatures(z, smoothing)
            for part in parts
        )

    def pairs(self, z: HostArray, smoothing: Smoothing) -> list[Pairs]:
        """The pairs of every integral at which the smoothed loss is curved."""
        found: list[list[Pairs]] = [[] for _ in self.integrals]
        for block, parts in self.curvatures(z, smoothing):
            for t, part in enumerate(parts):
                weight = to_host(part)
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
    def rotated(self, U: HostArray | None, V: HostArray, V_b: HostArray | None) -> Objective:
        """The same objective in the unknowns Uᵀ C V and V_bᵀ c, for orthogonal U, V, V_b; None is the identity."""
        terms = tuple(
            replace(
                term,
                cols=term.cols @ as_like(V, term.cols),
                bias_cols=None if term.bias_cols is None else term.bias_cols @ as_like(V_b, term.cols),
            )
            for term in self.integrals
        )
        linear = None if self.bias_linear is None or V_b is None else V_b.T @ self.bias_linear
        rows, reach = (self.rows, self.reach) if U is None else (self.rows @ as_like(U, self.rows), None)
        return replace(self, rows=rows, reach=reach, integrals=terms, bias_linear=linear)

    def with_ridge(self, alpha: float, alpha_bias: float) -> Objective:
        """The same data terms with another λ and λ_b; what is known of the data stays known."""
        other = replace(self, alpha=alpha, alpha_bias=alpha_bias)
        if other.free == self.free:
            for name in ("fused", "_groups"):
                if name in vars(self):
                    vars(other)[name] = vars(self)[name]
        return other

    def reordered(self, order: HostArray, reach: HostArray) -> Objective:
        """The same objective with its rows in another order, in which they have this reach."""
        terms = tuple(replace(t, targets=None if t.targets is None else t.targets[order]) for t in self.integrals)
        return replace(
            self, rows=self.rows[order], sample_weight=self.sample_weight[order], integrals=terms, reach=reach
        )

    def only(self, index: HostArray) -> Objective:
        """The same objective with some of its rows."""
        terms = tuple(replace(t, targets=None if t.targets is None else t.targets[index]) for t in self.integrals)
        weight = self.sample_weight[index]
        xp = namespace(weight)
        return replace(self, rows=self.rows[index], sample_weight=weight / xp.sum(weight), integrals=terms, reach=None)
