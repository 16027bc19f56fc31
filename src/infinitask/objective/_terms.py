"""The data terms of an objective, the division of rows into blocks, and the result of a pass over the data."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from infinitask._base.arrays import Array, HostArray, as_like, namespace, to_host
from infinitask.losses import BoxLoss, Loss, Row
from infinitask.losses._base import Pointwise, Sums

if TYPE_CHECKING:
    from infinitask.objective._balance import NodeSums


# ----------------------------------------------------------------------------------------------------- compiled or not
SWITCH = "INFINITASK_COMPILED"
"""Environment variable: "0" never uses compiled loops, "1" always uses them if numba is installed; otherwise
:func:`compiles` decides."""

NO_CURVATURE = 1e-100
"""Curvature below this value counts as 0: its inverse must not overflow."""

FAR = 20.0
"""The loss of an outlier, or its distance from the others, counts as at most this multiple of the median."""

MIN_COMPILED_PAIRS = 10_000_000
"""The number of pairs (samples × nodes of all integrals) from which compiled loops are used.

Loading numba takes 0.5 s, and compiling 2 s, once per machine. With this number of pairs a fit of quantiles with
non-crossing takes 1.0 s with NumPy and 0.7 s compiled (15 evaluations, one thread), and of M-quantiles 1.8 s and 1.1 s.
Compiled loops cost more than they save below it, and soon pay above it."""


def compiles(pairs: int) -> bool:
    """Whether compiled loops are used for a problem of this size.

    The decision depends only on the size, so the same problem gives the same numbers whatever was compiled before.
    """
    asked = os.environ.get(SWITCH)
    return asked == "1" or (asked != "0" and pairs >= MIN_COMPILED_PAIRS)


# --------------------------------------------------------------------------------------------------------------- terms
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
    targets : array (n, 1), or (n, m) for separate targets at every node, or None
    row_weight : array (n,) or None
        ω of this integral, summing to one; None: that of the objective, as required of the first integral. Rows of
        weight 0 are ignored.
    """

    loss: Loss
    theta: Array
    weights: Array
    cols: Array
    bias_cols: Array | None = None
    targets: Array | None = None
    row_weight: Array | None = None

    @cached_property
    def weighted_cols(self) -> Array:
        """diag(w) Ψ. The gradient includes the weights through it, so no array of size n × m is multiplied by them."""
        return self.weights[:, None] * self.cols

    def targets_of(self, block: slice) -> Array | None:
        """The targets of a block of rows."""
        return None if self.targets is None else self.targets[block, ...]

    def row_of(self, block: slice) -> Row | None:
        """The row of the table for a block: the interval of slopes and its parameters; None if the loss has no row."""
        return self.loss.row(self.theta, self.targets_of(block)) if isinstance(self.loss, BoxLoss) else None

    @cached_property
    def two_targets(self) -> bool:
        """Whether targets are two values: most losses may then have their kink at the same value of h."""
        return self.targets is not None and self.targets.shape[1] == 1 and np.unique(to_host(self.targets)).size == 2

    @cached_property
    def width(self) -> Array:
        """Relative smoothing of the nodes, (m,)."""
        return self.loss.width(self.theta)

    # ------------------------------------------------------------------------------- field and loss on a block of rows
    def field(self, A: Array, c: Array | None, room: HostArray | None = None) -> Array:
        """H = A Ψᵀ + 1 (Ψ_b c)ᵀ for A = Φ C, in the first array of ``room`` if given."""
        shape = (A.shape[0], self.cols.shape[0])
        H = product(A, self.cols.T, None if room is None else room[0][: shape[0] * shape[1]].reshape(shape))
        if c is not None and self.bias_cols is not None:
            H += self.bias_cols @ c
        return H

    def _smoothed(self, block: slice, kappa: float, centre: Array | None) -> tuple[Any, Array | None]:
        """The arguments of the loss: κ·width, and the centre of these rows."""
        if kappa == 0.0:
            return 0.0, None
        return kappa * self.width, None if centre is None else centre[block, :]

    def pointwise(self, block: slice, H: Array, kappa: float = 0.0, centre: Array | None = None) -> Pointwise:
        """Loss, lower bound and dual point at every pair of a block, from its field; κ and centre are for all rows."""
        return self.loss.pointwise(self.theta, self.targets_of(block), H, *self._smoothed(block, kappa, centre))

    def curvature(self, block: slice, H: Array, kappa: float, centre: Array | None) -> Array:
        """∂²ℓ^κ/∂h² at every pair of a block."""
        return self.loss.curvature(self.theta, self.targets_of(block), H, *self._smoothed(block, kappa, centre))

    def sums(
        self, block: slice, H: Array, kappa: float, centre: Array | None, row: Row | None, room: HostArray | None
    ) -> Sums:
        """The sums over the nodes, see :meth:`~infinitask.losses.Loss.sums`."""
        smoothed = self._smoothed(block, kappa, centre)
        return self.loss.sums(self.theta, self.targets_of(block), H, self.weights, *smoothed, row=row, room=room)

    def balanced_sums(self, block: slice, H: Array, kappa: float, centre: Array | None) -> tuple[Sums, Array]:
        """The sums, and −ℓ*(−u) at every pair, computed as the lower bound of the loss at h plus u h."""
        seen = self.pointwise(block, H, kappa, centre)
        return Sums.of(seen, self.weights, *self._smoothed(block, kappa, centre)), seen.lower + seen.dual * H

    def resting_loss(self, block: slice, omega: Array) -> float:
        """Σ ω w (−ℓ*(0)) over a block: the smallest values of the loss."""
        resting = self.dual(self.targets_of(block), 0.0 * omega[:, None] * self.weights) @ self.weights
        # −∞ for a linear loss, also in rows that do not count
        return float(omega @ namespace(omega).where(omega > 0.0, resting, 0.0 * omega))

    def value(self, y: Array | None, h: Array) -> Array:
        """ℓ at the targets y of some rows, (k, m)."""
        return self.loss.value(self.theta, y, h)

    def dual(self, y: Array | None, u: Array) -> Array:
        """−ℓ*(−u) at the targets y of some rows, (k, m)."""
        return self.loss.dual(self.theta, y, u)

    def slopes(self, y: Array | None, h: Array, kappa: Array) -> Array:
        """u = −∂ℓ^κ/∂h at the targets y of some rows, with a κ for each pair, (k, m)."""
        return self.loss.pointwise(self.theta, y, h, kappa, None).dual

    def residual(self, y: Array | None, h: Array) -> Array:
        """What an interval of slopes is a function of: y − h, or −h without targets."""
        assert isinstance(self.loss, BoxLoss)
        return self.loss.residual(self.theta, y, h)

    # ----------------------------------------------------------------------------------------------- properties
    @property
    def compares(self) -> bool:
        """Whether the loss is an interval of slopes and depends only on h, or on h minus the target."""
        return isinstance(self.loss, BoxLoss) and not self.loss.weighted

    @property
    def has_goal(self) -> bool:
        """Whether the loss compares h with something else than 0 even without targets."""
        return isinstance(self.loss, BoxLoss) and self.loss.goal(self.theta, None) is not None

    def smooth(self, scale: float) -> bool:
        """Whether the loss needs no smoothing because its slope changes slowly over distances of ``scale``."""
        return self.loss.smooth(scale)

    @property
    def kinked(self) -> bool:
        """Whether the loss is an interval of slopes with a kink, and is defined at all pairs."""
        return isinstance(self.loss, BoxLoss) and not self.smooth(1.0) and not self.loss.few

    @property
    def free_levels(self) -> bool:
        """Whether every node has a free level, and the slopes are intervals around 0."""
        m, loss = int(self.theta.shape[0]), self.loss
        if self.bias_cols is None or self.bias_cols.shape != (m, m) or self.targets is None:
            return False
        row = self.row_of(slice(None))
        if row is None or not row.plain or row.low is None or row.high is None or self.smooth(1.0):
            return False
        around = np.all(to_host(row.low) <= 0.0) and np.all(to_host(row.high) >= 0.0)
        return bool(around and np.linalg.cond(to_host(self.bias_cols)) <= 1e3) and loss.shares_of(self.targets) is None

    @property
    def one_class(self) -> bool:
        """Whether each node has its own h, slopes in [0, 1/θ] and no target, and a bias joins the nodes."""
        m, s = self.cols.shape
        if self.targets is not None or self.bias_cols is None or m != s or np.size(self.theta) != m:
            return False
        theta, row = np.ravel(to_host(self.theta)), self.row_of(slice(None)) if self.compares else None
        if row is None or not row.plain or row.low is None or row.high is None:
            return False
        if np.any(row.low) or np.any(theta <= 0.0):
            return False
        gram = to_host(self.cols.T @ (self.weights[:, None] * self.cols))
        own = np.max(np.abs(gram - np.eye(s))) < 1e-8
        return bool(own and np.allclose(np.ravel(row.high) * theta, 1.0))

    @property
    def separate_fields(self) -> int:
        """The number of groups of nodes whose fields share nothing but φ."""
        return self.loss.separate_fields

    @cached_property
    def target_size(self) -> float:
        """The typical |y|; 1 without targets."""
        if self.targets is None:
            return 1.0
        size, weight = np.abs(to_host(self.loss.values_of(self.targets))), self.loss.shares_of(self.targets)
        size = size if weight is None else size[to_host(weight) > 0.0]
        return float(np.median(size)) or float(np.mean(size)) or 1.0

    def mean_target(self, omega: Array) -> float:
        """The mean of the targets of all rows and nodes."""
        assert self.targets is not None
        values, share = self.loss.values_of(self.targets), self.loss.shares_of(self.targets)
        if share is None:
            return float(np.mean(to_host(omega @ values)))
        means, mass = to_host(omega @ (share * values)), to_host(omega @ share)
        return float(np.mean(means / np.where(mass > 0.0, mass, 1.0)))

    def spread(self, omega: HostArray) -> float:
        """The mean distance of the targets from their mean; an outlier counts as at most :data:`FAR` medians."""
        assert self.targets is not None
        y, share = to_host(self.loss.values_of(self.targets)), self.loss.shares_of(self.targets)
        some, weight = _few_rows(omega), omega[:, None]
        few = y[some]
        if share is not None:  # targets have fractional weights, or none
            share = to_host(share)
            weight, few = weight * share * to_host(self.weights), few[share[some] > 0.0]
            weight = weight / np.sum(weight)
            size, spread = (float(np.sum(weight * np.abs(v))) for v in (y, y - np.sum(weight * y)))
        else:
            size, spread = (float(np.mean(omega @ np.abs(v))) for v in (y, y - omega @ y))
        typical = float(np.median(np.abs(few - np.median(few))))
        spread = min(spread, FAR * typical) if typical > 1e-12 * size else spread
        # the spread of a constant target is a rounding error
        return spread if spread > 1e-12 * size else size if size > 0.0 else 1.0

    def typical_loss(self, omega: Array, entries: int) -> float:
        """See :attr:`Objective.typical_loss`; at most this number of entries is computed at a time."""
        rows = _few_rows(to_host(omega))
        if self.targets is None:
            return np.inf
        y, some, losses = self.targets[rows, ...], omega[rows], []
        for block in blocks_of(rows.size, int(self.theta.shape[0]), None, entries):
            zero = 0.0 * some[block][:, None] * self.weights
            losses.append(to_host(self.loss.value(self.theta, y[block, ...], zero) @ self.weights))
        loss, weight = np.concatenate(losses), to_host(some).astype(np.float64)
        middle = float(np.median(loss))
        if not (middle > 0.0 and np.all(np.isfinite(loss))):
            return np.inf
        return float(weight @ np.clip(loss, 0.0, FAR * middle)) / float(np.sum(weight))

    # ----------------------------------------------------------------------------------------------- modified copies
    def mapped(self, convert: Callable[[Array], Array]) -> Integral:
        """Return the same integral with converted arrays."""
        arrays = {name: getattr(self, name) for name in ARRAYS}
        return replace(self, **{name: convert(array) for name, array in arrays.items() if array is not None})

    def rotated(self, V: HostArray, V_b: HostArray | None) -> Integral:
        """Return the same integral for the unknowns Uᵀ C V and V_bᵀ c; None is the identity."""
        bias_cols = self.bias_cols
        if bias_cols is not None and V_b is not None:
            bias_cols = bias_cols @ as_like(V_b, bias_cols)
        return replace(self, cols=self.cols @ as_like(V, self.cols), bias_cols=bias_cols)

    def picked(self, index: HostArray) -> Integral:
        """Return the same for some rows, or for all in another order; the row weights still sum to one."""
        targets = None if self.targets is None else self.targets[index]
        weight = None if self.row_weight is None else self.row_weight[index]
        if weight is not None:
            weight = weight / namespace(weight).sum(weight)
        return replace(self, targets=targets, row_weight=weight)


ARRAYS = ("theta", "weights", "cols", "bias_cols", "targets", "row_weight")
"""The fields of an integral that hold arrays."""


def _few_rows(omega: HostArray) -> HostArray:
    """Positions of at most about 2 000 rows with positive weight."""
    counted = np.flatnonzero(omega > 0.0)
    return counted[:: -(-counted.size // 2_000)]


@dataclass(frozen=True)
class Smoothing:
    """The smoothing of the losses.

    Parameters
    ----------
    kappa : tuple of float
        κ of each integral; 0: none.
    centre : tuple of arrays (n, m) or None
        The dual point around which the envelope is taken, for each integral; None: around 0. This is the only array
        with a number per pair, and only the last phase of a solver (small problems) needs it.
    """

    kappa: tuple[float, ...]
    centre: tuple[Array | None, ...] | None = None

    def of(self, t: int) -> tuple[float, Array | None]:
        """Return κ and the centre of integral t."""
        return self.kappa[t], None if self.centre is None else self.centre[t]

    def reordered(self, order: HostArray) -> Smoothing:
        """Return the same smoothing for rows in another order."""
        if self.centre is None:
            return self
        return replace(self, centre=tuple(None if part is None else part[order] for part in self.centre))


# ----------------------------------------------------------------------------------------------------- a pass over data
class Evaluation(NamedTuple):
    """The result of one pass over the data at a point z."""

    primal: float
    """P(z), for the original losses."""
    smoothed: float
    """P_κ(z)."""
    gradient: HostArray
    """∇P_κ(z), (r·s + s_b,)."""
    dual_data: float
    """Σ ω w (−ℓ*(−u)) at the dual point u given by the slopes; −∞ if no feasible one was found."""
    slack: tuple[float, ...]
    """For each integral Σ ω w (ℓ − lower bound at u) ≥ 0: its part of the gap due to κ."""
    dual_z: HostArray
    """z_u, the coefficients of the dual point, (r·s + s_b,); 0 for a free bias."""
    error: float
    """P(z) − D(u) − Σ slack ≥ 0: the part of the gap that more steps at the same κ remove. It is ‖∇P_κ‖²/2 in the
    metric of Λ⁻¹ if no bias is free."""


@dataclass
class RowSums:
    """Sums over rows: for each integral in turn the loss, its lower bound and κu², and the gradient of the data terms.

    ``nodes`` is present only if the bias is free.
    """

    losses: list[Any]
    C: Array
    c: Array | None
    nodes: NodeSums | None = None

    @classmethod
    def total(cls, parts: list[RowSums]) -> RowSums:
        """Add the sums of all parts, in their order."""
        first = parts[0]
        for part in parts[1:]:
            first.losses = [a + b for a, b in zip(first.losses, part.losses, strict=True)]
            first.C += part.C
            first.c = None if first.c is None else first.c + part.c
            first.nodes = part.nodes if first.nodes is None else first.nodes.plus(part.nodes)
        return first


# ------------------------------------------------------------------------------------------------------ blocks of rows
BLOCK_ENTRIES = 65_536
"""Entries (rows × nodes) of a block: 512 KiB per float64 temporary. Measured on two cores with n = 10 000, m = 100 and
non-crossing: an evaluation takes 6.8 ms, 11 ms with half as many (threads wait for the interpreter more often), and
14 ms with twice as many (the temporaries exceed the cache)."""

FAST_PRODUCT = 1_000_000
"""Multiplications of a product up to which OpenBLAS reaches 36 to 45 GFlop/s instead of 11 to 18."""

PIECES_OF_BLOCK = 4
"""The maximum number of pieces of Φ C in one block: more leave threads too few blocks, fewer need more calls."""


def _piece(inner: int, columns: int) -> int:
    """The number of rows of a fast product with an (inner, columns) matrix."""
    return max(24, FAST_PRODUCT // (inner * columns))


def product(left: Array, right: Array, out: HostArray | None = None) -> Array:
    """Compute left @ right, on the host in pieces, and in ``out`` if given."""
    if not isinstance(left, np.ndarray):
        return left @ right
    (rows, inner), columns = left.shape, right.shape[1]
    step = _piece(inner, columns)
    if rows <= step:
        return np.matmul(left, right, out=out)
    out = np.empty((rows, columns), left.dtype) if out is None else out
    for start in range(0, rows, step):
        np.matmul(left[start : start + step], right, out=out[start : start + step])
    return out


def subtract_product(total: Array, left: Array, right: Array) -> None:
    """Subtract leftᵀ @ right (k, s) from the first rows of ``total`` (r, s), on the host in pieces."""
    step = _piece(left.shape[1], right.shape[1]) if isinstance(left, np.ndarray) else left.shape[0]
    first = total[: left.shape[1], :]
    for start in range(0, left.shape[0], step):
        first -= left[start : start + step, :].T @ right[start : start + step, :]


def blocks_of(n: int, nodes: int, shape: tuple[int, int] | None, entries: int) -> Iterator[slice]:
    """Yield slices of n rows: up to ``entries`` entries and, on the host, few pieces of a product with C (r, s)."""
    step = max(1, entries // nodes)
    if shape is not None:
        step = min(step, PIECES_OF_BLOCK * _piece(*shape))
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))


def groups_of(blocks: list[slice]) -> list[list[slice]]:
    """Divide the blocks into groups of consecutive blocks."""
    count = min(16, len(blocks) // 2) or 1
    return [blocks[k * len(blocks) // count : (k + 1) * len(blocks) // count] for k in range(count)]
