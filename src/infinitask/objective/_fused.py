"""All integrals of an objective as one table, whose pairs compiled functions visit.

The nodes of all integrals stand side by side: one product gives H of all, one pass makes of it the sums and the dual
point, and one product pulls that back. A thread has arrays of its own for this, and no evaluation makes new ones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from infinitask._array import HostArray
from infinitask.losses import BoxLoss
from infinitask.losses._compiled import kernels
from infinitask.objective._balance import NodeSums
from infinitask.objective._sums import RowSums
from infinitask.objective._terms import Smoothing

if TYPE_CHECKING:
    from infinitask.objective._objective import Objective

__all__ = ["Fused"]

KINDS = 16
"""The most different targets for which a table is kept: a loss whose interval follows a continuous target has none."""

DERIVED = ("residual", "pointwise", "sums", "curvature")
"""What the compiled functions do in place of a loss: one that overrides it goes its own way."""

ENTRIES = ("low", "high", "dead_zone", "soft_low", "soft_high")


@dataclass(frozen=True, eq=False)
class _Buffers:
    """The arrays of a thread, for so many rows at a time."""

    A: HostArray
    H: HostArray
    pulled: HostArray
    C: HostArray
    weighted: HostArray
    pull: HostArray


@dataclass(frozen=True, eq=False)
class Fused:
    """The compiled way through an objective.

    Parameters
    ----------
    objective : Objective
        On the host, with rows of the table as losses.
    functions : module
        :mod:`infinitask.losses._kernels`.
    kind : ndarray (n,)
        The line of the table of every sample.
    lines : ndarray (5, kinds, nodes)
        low, high, dead zone and softness on either side.
    """

    objective: Objective
    functions: ModuleType
    kind: HostArray
    lines: HostArray
    _spare: deque[_Buffers] = field(default_factory=deque, repr=False)
    _tables: dict[tuple[float, ...], tuple[HostArray, HostArray]] = field(default_factory=dict, repr=False)
    _centres: list[tuple[Smoothing, HostArray]] = field(default_factory=list, repr=False)

    @classmethod
    def of(cls, objective: Objective) -> Fused | None:
        """The table of an objective; None where there is none, or nothing compiled."""
        functions = kernels()
        terms = objective.integrals
        if functions is None or not all(isinstance(a, np.ndarray) for a in (objective.rows, terms[0].cols)):
            return None
        for t, term in enumerate(terms):
            plain = isinstance(term.loss, BoxLoss)
            plain = plain and all(getattr(type(term.loss), name) is getattr(BoxLoss, name) for name in DERIVED)
            if not plain or (t > 0 and term.targets is not None):
                return None
        found = _lines(objective, terms[0].targets)
        # a copy, because the objective keeps what is made here: in a circle they would outlive the fit
        return None if found is None else cls(replace(objective), functions, *found)

    # ------------------------------------------------------------------------------------------- fixed
    @cached_property
    def ends(self) -> HostArray:
        """Where the nodes of an integral begin, and the last end, (integrals + 1,)."""
        return np.cumsum([0] + [int(term.theta.shape[0]) for term in self.objective.integrals])

    @cached_property
    def cols(self) -> HostArray:
        """Ψᵀ of all integrals, (s, nodes)."""
        return np.concatenate([term.cols for term in self.objective.integrals]).T.copy()

    @cached_property
    def weight(self) -> HostArray:
        """w of all integrals, (nodes,)."""
        return np.concatenate([term.weights for term in self.objective.integrals])

    @cached_property
    def weighted_cols(self) -> HostArray:
        """diag(w) Ψ of all integrals, (nodes, s)."""
        return self.weight[:, None] * self.cols.T

    @cached_property
    def bias_cols(self) -> HostArray | None:
        """Ψ_b of all integrals, (nodes, s_b)."""
        if not self.objective.bias_size:
            return None
        shape = (self.objective.bias_size,)
        parts = [
            np.zeros((int(t.theta.shape[0]), *shape), self.weight.dtype) if t.bias_cols is None else t.bias_cols
            for t in self.objective.integrals
        ]
        return np.concatenate(parts)

    @cached_property
    def targets(self) -> HostArray:
        """y, (n, 1) or (n, m); (n, 0) without."""
        y = self.objective.integrals[0].targets
        rows = self.objective.rows
        return np.empty((rows.shape[0], 0), rows.dtype) if y is None else np.ascontiguousarray(y)

    # ----------------------------------------------------------------------------------- level of smoothing
    def table(self, kappa: tuple[float, ...]) -> tuple[HostArray, HostArray]:
        """The table for these κ, (13, kinds, nodes), and which loop each integral takes, (integrals,).

        See :mod:`infinitask.losses._kernels`.
        """
        found = self._tables.get(kappa)
        if found is None:
            at_nodes = [k * term.width for k, term in zip(kappa, self.objective.integrals, strict=True)]
            rounding = np.concatenate(at_nodes).astype(self.weight.dtype, copy=False)
            low, high, _, *soft = self.lines
            steepest = self.functions.STEEPEST
            with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
                inverse = [np.minimum(1.0 / (q + k), steepest) for k in (rounding, 0.0) for q in soft]
                halves = [0.5 * self.weight * (high - low), 0.5 * self.weight * (high + low)]
            parts = [*self.lines, *inverse, self.weight, rounding, *halves]
            found = np.stack([np.broadcast_to(part, low.shape) for part in parts]), self._shapes(kappa)
            self._tables.clear()  # a solver stays at one level for many evaluations and does not come back
            self._tables[kappa] = found
        return found

    def _shapes(self, kappa: tuple[float, ...]) -> HostArray:
        loops = self.functions
        kinks = [
            not np.any(self.lines[2:, :, a:b]) and bool(np.all(np.isfinite(self.lines[:2, :, a:b])))
            for a, b in zip(self.ends, self.ends[1:], strict=False)
        ]
        return np.array(
            [
                loops.KINKED if kink else loops.SHARP if k == 0.0 else loops.ROUNDED
                for kink, k in zip(kinks, kappa, strict=True)
            ]
        )

    def _centre(self, smoothing: Smoothing) -> HostArray:
        """The centres of all integrals side by side, (n, nodes); (0, nodes) without."""
        if smoothing.centre is None or all(centre is None for centre in smoothing.centre):
            return np.empty((0, self.weight.size), self.weight.dtype)
        for known, centre in self._centres:
            if known is smoothing:
                return centre
        n = self.kind.size
        parts = [
            np.zeros((n, b - a), self.weight.dtype) if centre is None or kappa == 0.0 else centre
            for kappa, centre, a, b in zip(smoothing.kappa, smoothing.centre, self.ends, self.ends[1:], strict=False)
        ]
        found = np.concatenate(parts, axis=1).astype(self.weight.dtype, copy=False)
        self._centres[:] = [(smoothing, found)]
        return found

    # ----------------------------------------------------------------------------------------- one pass
    def visit(self, blocks: Sequence[slice], C: HostArray, bias: HostArray | None, smoothing: Smoothing) -> RowSums:
        """What these blocks of rows contribute to an evaluation at C, with b at all nodes."""
        objective, (table, shapes) = self.objective, self.table(smoothing.kappa)
        dtype, m = self.weight.dtype, int(self.ends[1])
        totals = np.zeros((len(objective.integrals), 3))
        nodes = np.zeros((2, m if objective.free else 0))
        mass = np.zeros(0 if bias is None else self.weight.size, dtype)
        gradient = np.zeros(C.shape, dtype)
        pull = np.zeros((C.shape[0] if objective.free else 0, m), dtype)
        buffers = self._borrow(C.shape)
        self.functions.visit_blocks(
            self._plan(blocks),
            self.packed[0],
            C,
            self.cols,
            self.weighted_cols,
            np.empty(0, dtype) if bias is None else bias,
            self.targets,
            objective.sample_weight,
            self.kind,
            self.ends,
            shapes,
            table,
            self._centre(smoothing),
            totals,
            nodes,
            mass,
            gradient,
            pull,
            *vars(buffers).values(),
        )
        self._spare.append(buffers)
        c = None if self.bias_cols is None else -(self.bias_cols.T @ (self.weight * mass))
        sums = RowSums(list(totals[:, 0]), list(totals[:, 1]), list(totals[:, 2]), gradient, c)
        if objective.free:
            sums.nodes = NodeSums(nodes[0], nodes[1], pull)
        return sums

    def curvatures(self, block: slice, C: HostArray, bias: HostArray | None, smoothing: Smoothing) -> list[HostArray]:
        """ω w ∂²ℓ^κ of every integral on a block of rows."""
        objective, (table, _) = self.objective, self.table(smoothing.kappa)
        phi = objective.features(block)
        H = np.empty((phi.shape[0], self.weight.size), self.weight.dtype)
        self._field(phi, C, bias, np.empty((phi.shape[0], C.shape[1]), C.dtype), H)
        centre = self._centre(smoothing)
        centre = centre[block] if centre.shape[0] else centre
        self.functions.curvatures(H, self.targets[block], self.kind[block], self.ends, table, centre)
        H *= self.weight
        H *= objective.sample_weight[block][:, None]
        return [H[:, a:b] for a, b in zip(self.ends, self.ends[1:], strict=False)]

    def _field(self, phi: HostArray, C: HostArray, bias: HostArray | None, A: HostArray, H: HostArray) -> None:
        """H = Φ C Ψᵀ + 1 bᵀ."""
        np.matmul(phi, C[: phi.shape[1]], out=A)
        np.matmul(A, self.cols, out=H)
        if bias is not None:
            H += bias

    def _borrow(self, shape: tuple[int, ...]) -> _Buffers:
        """Buffers that no other thread uses."""
        try:
            return self._spare.pop()
        except IndexError:
            rows, (r, s), dtype = self._longest, shape, self.weight.dtype
            m = int(self.ends[1]) if self.objective.free else 0
            sizes = ((rows, s), (rows, self.weight.size), (rows, s), (r, s), (rows, m), (r, m))
            return _Buffers(*(np.empty(size, dtype) for size in sizes))

    @cached_property
    def packed(self) -> tuple[HostArray, dict[int, int]]:
        """Φ without the zeros at the ends of its rows, block by block, and where the block of a row begins in it."""
        rows, reach = np.ascontiguousarray(self.objective.rows), self.objective.reach
        if reach is None:
            return rows.ravel(), {block.start: block.start * rows.shape[1] for block in self.objective.blocks()}
        parts = {block.start: self.objective.features(block) for block in self.objective.blocks()}
        begins = np.cumsum([0, *(part.size for part in parts.values())])
        flat = np.empty(begins[-1], rows.dtype)
        for part, begin in zip(parts.values(), begins, strict=False):
            flat[begin : begin + part.size] = part.ravel()
        return flat, dict(zip(parts, begins.tolist(), strict=False))

    def _plan(self, blocks: Sequence[slice]) -> HostArray:
        """The blocks as compiled functions take them, (blocks, 4)."""
        key = blocks[0].start, len(blocks)
        if key not in self._plans:
            begins, reach, r = self.packed[1], self.objective.reach, self.objective.shape[0]
            self._plans[key] = np.array(
                [
                    (block.start, block.stop, r if reach is None else reach[block.stop - 1], begins[block.start])
                    for block in blocks
                ],
                dtype=np.int64,
            )
        return self._plans[key]

    @cached_property
    def _plans(self) -> dict[tuple[int, int], HostArray]:
        return {}

    @cached_property
    def _longest(self) -> int:
        return max(int(block.stop - block.start) for block in self.objective.blocks())


def _lines(objective: Objective, y: HostArray | None) -> tuple[HostArray, HostArray] | None:
    """The kind of every sample, and the table; None where there would be too many kinds.

    A row of the table follows the target, if at all, through its value: samples with equal targets are of one kind.
    """
    n, terms = objective.rows.shape[0], objective.integrals
    kind = np.zeros(n, dtype=np.int64)
    few = None
    rows = [term.loss.row(term.theta, None if y is None else y[:1]) for term in terms]
    if any(np.ndim(getattr(row, name)) == 2 for row in rows for name in ENTRIES if getattr(row, name) is not None):
        if y is None or y.shape[1] > 1:
            return None
        few, kind = np.unique(y[:, 0], return_inverse=True)
        if few.size > KINDS:
            return None
        rows = [term.loss.row(term.theta, few[:, None]) for term in terms]
    kinds, dtype = 1 if few is None else few.size, terms[0].weights.dtype
    missing = {"low": -np.inf, "high": np.inf, "dead_zone": 0.0, "soft_low": 0.0, "soft_high": 0.0}
    lines = []
    for name in ENTRIES:
        parts = []
        for row, term in zip(rows, terms, strict=True):
            entry = getattr(row, name)
            shape = (kinds, int(term.theta.shape[0]))
            parts.append(np.broadcast_to(np.asarray(missing[name] if entry is None else entry, dtype), shape))
        lines.append(np.concatenate(parts, axis=1))
    return np.asarray(kind, dtype=np.int64), np.stack(lines)
