"""The objective: value, gradient and dual point in one pass over blocks of rows, and its curvature."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from infinitask._base.arrays import Array, HostArray, as_like, double, floats, host_double, namespace, to_host
from infinitask._base.threads import shared_out
from infinitask.losses import BoxLoss, Row
from infinitask.losses._base import Sums
from infinitask.objective._balance import Balance, NodeSums
from infinitask.objective._table import Table
from infinitask.objective._terms import (
    BLOCK_ENTRIES,
    Evaluation,
    Integral,
    RowSums,
    Smoothing,
    blocks_of,
    compiles,
    groups_of,
    product,
    subtract_product,
)

if TYPE_CHECKING:
    from infinitask.objective._parted import PartedRows

MAX_KNOWN_PAIRS = 500_000
"""Pairs up to which the rows of the table are stored between evaluations: 8 MB if they depend on the targets, which
saves a tenth of the time of a fit."""

_Part = TypeVar("_Part")


@dataclass(frozen=True)
class Objective:
    """The objective P(z) of the module's formula.

    Parameters
    ----------
    rows : array (n, r)
        Φ.
    sample_weight : array (n,)
        ω, summing to one; integrals other than the first may have their own.
    integrals : tuple of Integral
    alpha : float
        λ.
    alpha_bias : float
        λ_b; the bias is free if it is 0.
    bias_linear : ndarray (s_b,) or None
        v.
    block_entries : int
        Rows × nodes of a block.
    reach : ndarray (n,) of int, ascending, or None
        The number of entries of a row of Φ before its trailing zeros; None: all r.
    compiled : bool or None
        Whether compiled loops are used if they exist; None: :func:`compiles` decides.
    alone : bool
        Whether threads share the blocks, and small tables are kept between evaluations. False if this is one of many
        parts that are visited in parallel within a memory budget.
    gram : ndarray (n, n) or None
        Φ Φᵀ up to rounding, if known.
    elsewhere : PartedRows or None
        All rows, in parts, if ``rows`` is a sample of them. The sample gives the scale of the targets and the
        curvature; everything else is summed over the parts.
    """

    rows: Array
    sample_weight: Array
    integrals: tuple[Integral, ...]
    alpha: float
    alpha_bias: float = 1.0
    bias_linear: HostArray | None = None
    block_entries: int = BLOCK_ENTRIES
    reach: HostArray | None = None
    compiled: bool | None = None
    alone: bool = True
    gram: HostArray | None = None
    elsewhere: PartedRows | None = None

    def __getstate__(self) -> dict[str, Any]:
        # cached properties are computed again
        return {f.name: getattr(self, f.name) for f in fields(self)}

    # ------------------------------------------------------------------------------------------ shapes
    @property
    def shape(self) -> tuple[int, int]:
        """(r, s), the shape of C."""
        return self.rows.shape[1], self.integrals[0].cols.shape[1]

    @property
    def n_pairs(self) -> int:
        """Samples × nodes of all integrals."""
        n = int(self.rows.shape[0]) if self.elsewhere is None else self.elsewhere.parts.n
        return n * sum(int(term.theta.shape[0]) for term in self.integrals)

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

    @cached_property
    def host_integrals(self) -> list[Integral]:
        """The integrals without targets, with weights and columns as NumPy arrays of float64."""
        return [replace(term, targets=None, row_weight=None).mapped(host_double) for term in self.integrals]

    @property
    def relative_sizes(self) -> list[float]:
        """The scale of each integral's argument relative to the first: derivatives are large for a narrow kernel."""
        sizes = [float(np.sqrt(t.weights @ np.sum(t.cols**2, axis=1))) for t in self.host_integrals]
        return [size / sizes[0] if sizes[0] > 0.0 and size > 0.0 else 1.0 for size in sizes]

    # -------------------------------------------------------------------------------- properties used by solvers
    @property
    def free(self) -> bool:
        """Whether there is a bias without a ridge."""
        return self.bias_size > 0 and self.alpha_bias == 0.0

    @property
    def kinked(self) -> bool:
        """Whether each loss is an interval of slopes with a kink, and is defined at all pairs."""
        return all(term.kinked for term in self.integrals)

    @property
    def widest(self) -> Smoothing:
        """The initial smoothing of the losses; smooth losses need none.

        If the risk is rounded, the penalty on the derivative starts ten times wider; otherwise its curvature would be
        far larger than that of the risk.
        """
        first, terms = 0.1 * self.scale, self.integrals
        rest = first if terms[0].smooth(first) else self.scale
        sizes = [first, *(rest * size for size in self.relative_sizes[1:])]
        return Smoothing(tuple(0.0 if term.smooth(k) else k for term, k in zip(terms, sizes, strict=True)))

    @property
    def without_bias(self) -> bool:
        """Whether no bias has unknowns of its own, and all integrals use the same rows."""
        return self.bias_size == 0 and self.bias_linear is None and self._one_weight

    @property
    def two_targets(self) -> bool:
        """Whether the targets are two values."""
        return self.integrals[0].two_targets

    @cached_property
    def constant_first(self) -> bool:
        """Whether the first feature is a constant, which can represent a bias."""
        return bool(namespace(self.rows).all(self.rows[:, 0] == self.rows[0, 0]))

    @cached_property
    def free_levels(self) -> bool:
        """Whether every node has a free level, and the slopes of the only loss are intervals around 0."""
        plain = self.free and self.bias_linear is None and len(self.integrals) == 1 and self._one_weight
        return plain and self.rows.dtype == namespace(self.rows).float64 and self.integrals[0].free_levels

    @cached_property
    def one_class(self) -> bool:
        """Whether each node has its own h and slopes in [0, 1/θ], as the one-class machine of a fraction θ."""
        if not isinstance(self.rows, np.ndarray) or len(self.integrals) > 1 or self.alpha_bias <= 0.0:
            return False
        return self._one_weight and self.integrals[0].one_class

    def split(self, z: HostArray) -> tuple[Array, Array | None]:
        """Return C (r, s) and c (s_b,) in the library and on the device of the rows."""
        r, s = self.shape
        C = as_like(z[: r * s].reshape(r, s), self.rows)
        return C, (as_like(z[r * s :], self.rows) if self.bias_size else None)

    # ------------------------------------------------------------------------------------------ blocks
    def blocks(self) -> Iterator[slice]:
        """Slices of rows."""
        shape = self.shape if isinstance(self.rows, np.ndarray) else None
        return blocks_of(int(self.rows.shape[0]), self._most_nodes, shape, self.block_entries)

    @property
    def _most_nodes(self) -> int:
        return max(int(term.theta.shape[0]) for term in self.integrals)

    @cached_property
    def _groups(self) -> list[list[slice]]:
        """Groups of blocks that threads may visit in parallel; sums do not depend on the number of threads."""
        return groups_of(list(self.blocks()))

    def _shared_out(self, visit: Callable[[list[slice]], _Part]) -> list[_Part]:
        """Visit groups of blocks, with threads if the rows are on the host, and return the results."""
        if len(self._groups) > 1 and self.alone and isinstance(self.rows, np.ndarray):
            return shared_out(visit, self._groups)
        return [visit(blocks) for blocks in self._groups]

    def features(self, block: slice) -> Array:
        """Φ on a block of rows, without columns that are zero there."""
        return self.rows[block, :] if self.reach is None else self.rows[block, : self.reach[block.stop - 1]]

    def weight_of(self, term: Integral) -> Array:
        """ω of an integral, (n,)."""
        return self.sample_weight if term.row_weight is None else term.row_weight

    @cached_property
    def mean_weight(self) -> Array:
        """The mean of the ω of all integrals, (n,): the effective weight of each row."""
        if self._one_weight:
            return self.sample_weight
        parts = [self.weight_of(term) for term in self.integrals]
        return sum(parts[1:], parts[0]) / len(parts)

    @property
    def _one_weight(self) -> bool:
        """Whether all integrals have the same ω."""
        return all(term.row_weight is None for term in self.integrals)

    @cached_property
    def tables(self) -> tuple[Table | None, ...]:
        """The compiled table of each integral; None: NumPy is used."""
        if not (compiles(self.n_pairs) if self.compiled is None else self.compiled):
            return (None,) * len(self.integrals)
        n = int(self.rows.shape[0])
        return tuple(Table.of(term, n) for term in self.integrals)

    # ---------------------------------------------------------------------------------------- one pass
    def evaluate(self, z: HostArray, smoothing: Smoothing) -> Evaluation:
        """Value, gradient and dual point at z, for losses with this smoothing."""
        sums = self.row_sums(z, smoothing)
        losses = floats(sums.losses)
        values, lowers, squares = (losses[k::3] for k in range(3))
        data = host_double(sums.C).ravel()
        if sums.c is not None:
            data = np.concatenate([data, host_double(sums.c)])
        ridge_z = self.ridge * z
        penalty = float(self.linear @ z + 0.5 * ridge_z @ z)
        primal, gradient = sum(values) + penalty, data + self.linear + ridge_z
        lower, slack = sum(lowers), tuple(value - low for value, low in zip(values, lowers, strict=True))
        dual_data = lower - float(data @ z)
        if sums.nodes is None:
            step = gradient / self.ridge
            dual_z, error = z - step, 0.5 * float(step @ gradient)
        else:
            dual_data, dual_z = self.balance.dual(dual_data, -data, gradient, sums.nodes)
            error = primal - (dual_data - 0.5 * float((self.ridge * dual_z) @ dual_z)) - sum(slack)
        return Evaluation(
            primal=primal,
            smoothed=lower - 0.5 * sum(squares) + penalty,
            gradient=gradient,
            dual_data=dual_data,
            slack=slack,
            dual_z=dual_z,
            error=max(error, 0.0),
        )

    def row_sums(self, z: HostArray, smoothing: Smoothing) -> RowSums:
        """The sums over all rows from which :meth:`evaluate` is computed."""
        if self.elsewhere is not None:
            return self.elsewhere.row_sums(z, smoothing, self.shape)
        C, c = self.split(z)
        return RowSums.total(self._shared_out(lambda blocks: self._visit(blocks, C, c, smoothing)))

    def _visit(self, blocks: list[slice], C: Array, c: Array | None, smoothing: Smoothing) -> RowSums:
        """The sums over a group of blocks."""
        # sums over rows are in double precision, for any precision of the products
        zero_c = None if c is None else double(0.0 * c)
        sums = RowSums([0.0] * (3 * len(self.integrals)), double(0.0 * C), zero_c)
        one_weight, room = self._one_weight, None
        if isinstance(self.rows, np.ndarray):  # two buffers, each large enough for the fields of any block
            longest = max(block.stop - block.start for block in blocks)
            room = np.empty((2, longest * self._most_nodes), self.rows.dtype)
        for block in blocks:
            omega, phi = self.sample_weight[block], self.features(block)
            A = product(phi, C[: phi.shape[1], :])
            pulled, losses = None, []
            for t, term in enumerate(self.integrals):
                omega = omega if one_weight else self.weight_of(term)[block]
                point, data = self._sums(t, block, term.field(A, c, room), smoothing, room)
                if data is not None:
                    sums.nodes = NodeSums.of(self.rows[block, :], omega, point.dual, data).plus(sums.nodes)
                row_weights = double(omega)
                losses += [row_weights @ double(part) for part in (point.value, point.lower, point.square)]
                part = product(point.dual, term.weighted_cols)
                part = part if one_weight else omega[:, None] * part
                pulled = part if pulled is None else pulled + part
                if sums.c is not None and term.bias_cols is not None:
                    sums.c = sums.c - double(term.bias_cols.T) @ double(term.weights * (omega @ point.dual))
            sums.losses = [total + more for total, more in zip(sums.losses, losses, strict=True)]
            subtract_product(sums.C, phi, omega[:, None] * pulled if one_weight else pulled)
        return sums

    def _sums(
        self, t: int, block: slice, H: Array, smoothing: Smoothing, room: HostArray | None
    ) -> tuple[Sums, Array | None]:
        """The sums of integral t over its nodes and, if a dual point must balance, −ℓ*(−u); H is overwritten."""
        term, table, balances = self.integrals[t], self.tables[t], t == 0 and self.free
        kappa, centre = smoothing.of(t)
        if balances and not isinstance(term.loss, BoxLoss):
            return term.balanced_sums(block, H, kappa, centre)
        if table is not None:
            point = table.sums(H, block, kappa, None if centre is None else centre[block, :])
        else:
            other = None if room is None else room[1][: H.size].reshape(H.shape)
            point = term.sums(block, H, kappa, centre, self._known_rows.get((t, block.start)), other)
        return point, term.dual(term.targets_of(block), point.dual) if balances else None

    @cached_property
    def _known_rows(self) -> dict[tuple[int, int], Row | None]:
        """The rows of the table for each integral and the start of each block, if they are small enough to store."""
        if not self.alone or self.n_pairs > MAX_KNOWN_PAIRS:
            return {}
        compare = [(t, term) for t, term in enumerate(self.integrals) if term.compares]  # others have their own rows
        return {(t, block.start): term.row_of(block) for t, term in compare for block in self.blocks()}

    # ------------------------------------------------------------------------------------ dual and start
    @cached_property
    def balance(self) -> Balance:
        """The balance that makes dual points feasible if the bias is free."""
        return Balance.of(self)

    def origin(self) -> tuple[float, HostArray] | None:
        """The dual point u = 0, or a balanced one next to it if the bias is free; None if none balances."""
        data = self.resting_loss()
        data, z = self.balance.origin(data, self) if self.free else (data, -self.linear / self.ridge)
        return (data, z) if np.isfinite(data) else None

    def resting_loss(self) -> float:
        """Σ ω w (−ℓ*(0)) of all integrals: the smallest values of the losses."""
        terms = [term for term in self.integrals if not term.loss.rests_at_zero]
        if terms and self.elsewhere is not None:
            return self.elsewhere.resting_loss()
        return sum(term.resting_loss(b, self.weight_of(term)[b]) for term in terms for b in self.blocks()) + 0.0

    def start(self) -> HostArray:
        """The starting point of a solver: 0, and for a free bias the constant equal to the mean target; (size,)."""
        z = np.zeros(self.size)
        first = self.integrals[0]
        if self.free and first.targets is not None:
            cols = np.asarray(self.host_integrals[0].bias_cols)
            mean = np.full(cols.shape[0], first.mean_target(self.sample_weight))
            z[self.size - self.bias_size :] = np.linalg.lstsq(cols, mean)[0]
        return z

    @cached_property
    def scale(self) -> float:
        """The scale of the losses' arguments: the spread of the targets, or of the field if there are none."""
        first = self.integrals[0]
        xp = namespace(self.rows)
        if first.targets is not None:
            return first.spread(to_host(self.sample_weight))
        over_rows = self.rows @ (self.rows.T @ self.sample_weight)
        over_nodes = first.cols @ (first.cols.T @ first.weights)
        scale = float(xp.mean(xp.abs(over_rows))) * float(xp.mean(xp.abs(over_nodes))) / self.alpha
        return scale if scale > 0.0 else 1.0

    @cached_property
    def typical_loss(self) -> float:
        """The mean loss of h = 0, with an outlier counted as :data:`FAR` medians; ∞ if meaningless (level sets).

        One outlier may dominate the objective, and no h changes that. This is the part that a model can change.
        """
        return self.integrals[0].typical_loss(self.sample_weight, self.block_entries)

    # ------------------------------------------------------------------------------ fields and curvature
    def fields(self, z: HostArray, blocks: list[slice] | None = None) -> Iterator[tuple[slice, list[Array]]]:
        """Yield for each block of rows H of every integral, each (rows of the block, m)."""
        C, c = self.split(z)
        for block in self.blocks() if blocks is None else blocks:
            phi = self.features(block)
            A = product(phi, C[: phi.shape[1], :])
            yield block, [term.field(A, c) for term in self.integrals]

    def curvatures(
        self, z: HostArray, smoothing: Smoothing, blocks: list[slice] | None = None
    ) -> Iterator[tuple[slice, list[Array]]]:
        """Yield for each block of rows ω_i w_j ∂²ℓ^κ_ij of every integral, each (rows of the block, m)."""
        for block, seen in self.fields(z, blocks):
            found = []
            for t, (term, H) in enumerate(zip(self.integrals, seen, strict=True)):
                curvature = term.curvature(block, H, *smoothing.of(t))
                found.append(curvature * term.weights * self.weight_of(term)[block][:, None])
            yield block, found

    def node_curvature(self, z: HostArray, smoothing: Smoothing) -> list[HostArray]:
        """Σ_i ω_i w_j ∂²ℓ^κ_ij at every node, (m,) for each integral."""
        xp = namespace(self.rows)

        def visit(blocks: list[slice]) -> list[Array]:
            total = [xp.zeros_like(t.weights) for t in self.integrals]
            for _, weights in self.curvatures(z, smoothing, blocks):
                total = [v + xp.sum(weight, axis=0) for v, weight in zip(total, weights, strict=True)]
            return total

        return [host_double(sum(parts)) for parts in zip(*self._shared_out(visit), strict=True)]

    def duals(self, z: HostArray, smoothing: Smoothing) -> tuple[Array | None, ...]:
        """The dual point at z, (n, m) for each integral; None for integrals without smoothing."""
        found: list[list[Array]] = [[] for _ in self.integrals]
        for block, seen in self.fields(z):
            for t, H in enumerate(seen):
                if smoothing.kappa[t] != 0.0:
                    found[t].append(self.integrals[t].pointwise(block, H, *smoothing.of(t)).dual)
        return tuple(namespace(self.rows).concat(parts, axis=0) if parts else None for parts in found)

    # ------------------------------------------------------------------------------------------ modified copies
    def rotated(self, U: HostArray | None, V: HostArray, V_b: HostArray | None) -> Objective:
        """Return the objective for unknowns Uᵀ C V, V_bᵀ c and orthonormal U (r, k), V, V_b; None: the identity."""
        linear = None if self.bias_linear is None or V_b is None else V_b.T @ self.bias_linear
        rows, reach = (self.rows, self.reach) if U is None else (self.rows @ as_like(U, self.rows), None)
        terms = tuple(term.rotated(V, V_b) for term in self.integrals)
        elsewhere = None if self.elsewhere is None else self.elsewhere.rotated(U, V, V_b)
        return replace(self, rows=rows, reach=reach, integrals=terms, bias_linear=linear, elsewhere=elsewhere)

    def with_ridge(self, alpha: float, alpha_bias: float) -> Objective:
        """Return the same data terms with another λ and λ_b; quantities that depend only on the data are kept."""
        other = replace(self, alpha=alpha, alpha_bias=alpha_bias)
        known = ("tables", "_groups", "_known_rows", "typical_loss")
        vars(other).update({name: value for name, value in vars(self).items() if name in known})
        return other

    def only(self, index: HostArray) -> Objective:
        """Return the same objective with some of its rows."""
        some = self.picked(index)
        gram = None if self.gram is None else self.gram[np.ix_(index, index)]
        weight = some.sample_weight / namespace(self.rows).sum(some.sample_weight)
        return replace(some, sample_weight=weight, gram=gram)

    def picked(self, index: HostArray) -> Objective:
        """Return the same for some of the rows, or for all in another order; ω of the objective does not change."""
        return replace(
            self,
            rows=self.rows[index],
            sample_weight=self.sample_weight[index],
            integrals=tuple(term.picked(index) for term in self.integrals),
            reach=None,
            gram=None,
        )
