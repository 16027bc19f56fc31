"""The iterations of splitting, see :mod:`~infinitask.solvers._splitting`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from infinitask._base.arrays import Array, HostArray, as_like, namespace, to_host
from infinitask._base.threads import shared_out
from infinitask.objective import Integral
from infinitask.solvers._bundle import Bundle
from infinitask.solvers._columns import Columns, stairs
from infinitask.solvers._steps import RELAXATION, change, within_range

if TYPE_CHECKING:
    from infinitask.solvers._splitting import Splitting, State

APART = 0.1
"""Steps of nodes aim at this ratio of the residuals, at which a small λ takes far fewer iterations. With a large λ and
for a gap of a percent, as in cross-validation, one step for all nodes and a ratio of 1 take fewer."""

BLOCK_ENTRIES = 2**19
"""Entries of Φ in a block of rows on the host: 4 MiB stay near between the two halves of an iteration."""

DEVICE_ENTRIES = 2**26
"""Rows × nodes × problems in a block of rows on a device."""


class Run:
    """The iterations of one call.

    Parameters
    ----------
    basis : Splitting
    alpha : float
    mass : ndarray (B,)
        The weight of the rows that count in each problem.
    counts : array (n, B, 1) or None
        1 for these rows, 0 for others.
    bounds_only : bool
        Whether it only computes bounds, for the iterations of another one.
    """

    def __init__(
        self, basis: Splitting, alpha: float, mass: HostArray, counts: Array | None, bounds_only: bool = False
    ) -> None:
        self.basis, self.mass, self.counts = basis, mass, counts
        self.ridge = alpha * mass
        self.bundle = Bundle(self.ridge)
        n, m, host = int(basis.rows.shape[0]), int(basis.columns.cols.shape[0]), isinstance(basis.rows, np.ndarray)
        size = BLOCK_ENTRIES // max(basis.e.size, m * mass.size) if host else DEVICE_ENTRIES // (m * mass.size)
        self.blocks = [slice(i, min(i + max(64, size), n)) for i in range(0, n, max(64, size))]
        ends = np.cumsum([0, *(int(term.theta.shape[0]) for term in basis.terms)])
        self.parts = [(term, slice(*ends[t : t + 2])) for t, term in enumerate(basis.terms)]
        exact = basis if basis.exact is None else basis.exact
        self.bounds = self if bounds_only else Run(exact, alpha, mass, counts, bounds_only=True)
        self.take_steps(None)

    def take_steps(self, nodes: HostArray | None) -> None:
        """From now on the step of each node is σ ρ times ``nodes``, (m,), and the ridge step has its eigenbasis.

        Bounds stay in the basis of the splitting itself: what they leave out must be the same for all points that are
        mixed.
        """
        self.columns, self.turn, exact = self.basis.columns, None, self.bounds.basis
        if nodes is not None:
            columns = Columns.of(exact.terms, exact.columns.balance * as_like(nodes, exact.columns.balance))
            columns = columns.without(self.basis.least / float(self.basis.e[-1]))
            self.turn = columns.W.T @ exact.columns.W
            self.columns = columns if exact is self.basis else columns.single()
        self.stairs = stairs(self.basis.e, self.columns.f, self.basis.least)
        self.products = self.basis.e[:, None, None] * self.columns.f
        self.weighted_cols = self.columns.weights[:, None] * self.columns.cols

    def _visit(self, visit: Callable[[slice], tuple[Any, ...]]) -> list[Any]:
        """What the blocks yield, added up."""

        def total(blocks: list[slice]) -> list[Any]:
            sums = list(visit(blocks[0]))
            for block in blocks[1:]:
                sums = [a + b for a, b in zip(sums, visit(block), strict=True)]
            return sums

        groups = [self.blocks[g::4] for g in range(min(4, len(self.blocks)))]  # whatever the number of threads
        host = isinstance(self.basis.rows, np.ndarray)
        found = shared_out(total, groups) if host else [total(group) for group in groups]
        return [sum(parts[1:], parts[0]) for parts in zip(*found, strict=True)]

    def _inner(self, values: Array) -> Array:
        """X w ρ Ψ of values X (rows, B, m), (rows, B, l)."""
        xp, (n, count, m) = namespace(values), values.shape
        return xp.reshape(xp.reshape(values, (n * count, m)) @ self.weighted_cols, (n, count, -1))

    def _pulled(self, block: slice, inner: Array) -> Array:
        """(ΦV)ᵀ ω of values at the rows (rows, B, l) of a block, (k, B, l)."""
        xp, (n, count, _), rows = namespace(inner), inner.shape, self.basis.rows[block]
        inner = inner * self.basis.omega[block][:, None, None]
        found = []
        for first, part in self.stairs[::-1]:
            pulled = rows[:, first:].T @ xp.reshape(inner[:, :, part], (n, -1))
            pulled = xp.reshape(pulled, (self.basis.e.size - first, count, -1))
            if first:
                nothing = xp.zeros_like(pulled[:1, :, :])
                pulled = xp.concat([xp.broadcast_to(nothing, (first, *pulled.shape[1:])), pulled], axis=0)
            found.append(pulled)
        return found[0] if len(found) == 1 else xp.concat(found, axis=2)

    def pull(self, state: State) -> Array:
        """What the next ridge step needs."""
        return self._visit(lambda block: (self._pulled(block, self._inner(state.H[block] + state.D[block])),))[0]

    def step(self, state: State, pulled: Array, *, measured: bool) -> tuple[State, Array, HostArray | None]:
        """One iteration; what the next one needs is made in the same pass over the rows."""
        sigma = state.sigma[None, :, None]
        coef = pulled * as_like(sigma / (self.ridge[None, :, None] + sigma * self.products), pulled)
        kappa = 1.0 / as_like(state.sigma[:, None], coef) / self.columns.balance  # (B, m)

        def visit(block: slice) -> tuple[Any, ...]:
            F = field(self.basis.rows[block], coef, self.columns, self.stairs)
            H, D = state.H[block], state.D[block]
            v = RELAXATION * F
            v -= (RELAXATION - 1.0) * H
            v -= D
            fresh = self._slopes(block, v, kappa)
            v += fresh
            if measured:
                norms = self._squares(block, v - F, v - H, F, fresh)
            H[...], D[...] = v, fresh
            v += fresh
            pulled = self._pulled(block, self._inner(v))
            return (pulled, norms) if measured else (pulled,)

        sums = self._visit(visit)
        return state._replace(coef=coef), sums[0], sums[1] if measured else None

    def _slopes(self, block: slice, v: Array, kappa: Array) -> Array:
        """κ times −∂ℓ of the losses smoothed by κ at v (rows, B, m); 0 at held-out rows."""
        xp = namespace(v)
        found = [self._of_term(term, block, v[:, :, part], kappa[:, part]) for term, part in self.parts]
        D = found[0] if len(found) == 1 else xp.concat(found, axis=2)
        return D if self.counts is None else D * self.counts[block]

    @staticmethod
    def _of_term(term: Integral, block: slice, v: Array, kappa: Array) -> Array:
        xp, (n, count, m) = namespace(v), v.shape
        y, loss = term.targets_of(block), term.loss
        row = term.row_of(block)
        if row is not None and row.plain:
            D = loss.residual(None if y is None else y[:, None, :], v)
            D = D if row.low is None else xp.maximum(D, _between(row.low) * kappa)
            return D if row.high is None else xp.minimum(D, _between(row.high) * kappa)
        flat, targets = xp.reshape(v, (n * count, m)), _repeated(y, count)
        each = xp.reshape(xp.broadcast_to(kappa, (n, count, m)), (n * count, m))
        return xp.reshape(each * loss.pointwise(term.theta, targets, flat, each, None).dual, (n, count, m))

    def _squares(self, block: slice, *values: Array) -> HostArray:
        """Sums over the rows of ω times the squares of arrays (rows, B, m), (count, B, m)."""
        omega = self.basis.omega[block]
        found = [namespace(value).tensordot(omega, value * value, axes=((0,), (0,))) for value in values]
        return np.array([to_host(each) for each in found])

    def certified(self, state: State) -> State:
        """The state with both bounds, of the losses themselves."""
        eps = float(namespace(state.coef).finfo(state.coef.dtype).eps)
        # a little less, so that rounding does not put a dual point outside of its interval
        steps = (1.0 - 8.0 * eps) * state.sigma[:, None] * to_host(self.columns.balance)
        return self.bounds._certified(state._replace(coef=self._turned(state.coef)), steps)

    def _turned(self, coef: Array) -> Array:
        """C in the basis of the splitting, without what is left out there."""
        if self.turn is None:
            return coef
        coef = namespace(coef).astype(coef, self.turn.dtype) @ self.turn
        for first, part in self.basis.stairs:
            coef[:first, :, part] = 0.0
        return coef

    def _certified(self, state: State, steps: HostArray) -> State:
        xp, basis = namespace(state.coef), self.basis
        coef = xp.astype(state.coef, basis.rows.dtype)
        slope = as_like(steps, coef)

        def dual(block: slice) -> Array:
            return self._within(block, xp.astype(state.D[block], coef.dtype) * slope)

        sides = self._balance(dual(slice(None))) if basis.free_level else None

        def visit(block: slice) -> tuple[Any, ...]:
            value = self._integrated(block, "value", basis.field(block, coef))
            u = dual(block)
            duals = [u] if sides is None else [u, xp.where(u > 0.0, u * sides[0], u * sides[1])]
            found: list[Any] = []
            for each in duals:
                inner = self._inner(each / basis.columns.balance)
                found += [self._integrated(block, "dual", each), self._pulled(block, inner)]
                if not basis.complete:
                    energy = xp.tensordot(basis.omega[block], inner * inner, axes=((0,), (0,)))
                    found += [
                        energy,
                        self._squares(block, each / basis.columns.balance)[0] @ to_host(basis.columns.weights),
                    ]
            return value, *found

        value, *found = self._visit(visit)
        found = [np.asarray(to_host(part), dtype=np.float64) for part in found]
        width = 2 if basis.complete else 4
        lowers, pulls = found[::width], found[1::width]
        if not basis.complete:
            lost = [basis.lost(e, q, p) for e, q, p in zip(found[2::width], found[3::width], pulls, strict=True)]
            lowers = [lower - 0.5 * most / self.ridge for lower, most in zip(lowers, lost, strict=True)]
        norm = np.sum(to_host(coef) ** 2, axis=(0, 2))
        primal = (value + 0.5 * self.ridge * norm) / self.mass
        return state._replace(primal=primal, dual=self.bundle.bound(lowers, pulls) / self.mass)

    def _within(self, block: slice, u: Array) -> Array:
        """A dual point found in single precision, where 1 − θ may be off by a part in a thousand, within its bounds."""
        if self.basis.least == 0.0:
            return u
        xp, found = namespace(u), []
        for term, part in self.parts:
            row, some = term.row_of(block), u[:, :, part]
            low, high = (None, None) if row is None else (row.low, row.high)
            some = some if low is None else xp.maximum(some, _between(low))
            found.append(some if high is None else xp.minimum(some, _between(high)))
        return found[0] if len(found) == 1 else xp.concat(found, axis=2)

    def _integrated(self, block: slice, what: str, at: Array) -> HostArray:
        """The weighted sum of a loss, or of its dual, over the pairs of a block, (B,)."""
        xp, (n, count, _) = namespace(at), at.shape
        total = 0.0
        for term, part in self.parts:
            flat, y = xp.reshape(at[:, :, part], (n * count, -1)), _repeated(term.targets_of(block), count)
            total = total + xp.reshape(getattr(term.loss, what)(term.theta, y, flat) @ term.weights, (n, count))
        total = total if self.counts is None else total * self.counts[block][:, :, 0]
        return np.asarray(to_host(self.basis.omega[block] @ total))

    def _balance(self, u: Array) -> tuple[Array, Array]:
        """Factors (B, m), at most 1, of the positive and negative entries of u that make its sum over the rows 0.

        A level that hardly any ridge holds takes a dual point that sums to 0, or its lower bound is poor: with
        λ_b = λ/10⁴ that cost up to three times as many iterations as with λ/100, for the same h.
        """
        xp = namespace(u)
        total = xp.tensordot(self.basis.omega, u, axes=((0,), (0,)))
        tied = self.parts[0][0].loss.zero_sum
        if tied > 1:
            return self._equal_sums(total, tied)
        size = xp.tensordot(self.basis.omega, xp.abs(u), axes=((0,), (0,)))
        plus, minus = 0.5 * (size + total), 0.5 * (size - total)
        least = xp.minimum(plus, minus)
        # other integrals see a derivative: their part of the sum is small, and their u may have one sign
        least = xp.concat([least[:, self.parts[0][1]], 0.0 * least[:, self.parts[0][1].stop :] + np.inf], axis=1)
        tiny = 1e-30  # single precision knows it as well
        return tuple(xp.minimum((least + tiny) / (side + tiny), xp.ones_like(side)) for side in (plus, minus))

    @staticmethod
    def _equal_sums(total: Array, tied: int) -> tuple[Array, Array]:
        """The same where levels of ``tied`` neighbouring nodes sum to 0: sums over the rows (B, m) shall be equal."""
        xp, tiny = namespace(total), 1e-30
        groups = xp.reshape(xp.abs(total), (total.shape[0], -1, tied))
        factors = (xp.min(groups, axis=2, keepdims=True) + tiny) / (groups + tiny)
        factors = xp.reshape(factors, total.shape)
        return factors, factors

    def balanced(self, state: State, squares: Any) -> State:
        """The state with σ changed where one residual is much larger than the other."""
        factor = change(squares @ to_host(self.columns.weights))
        if np.all(factor == 1.0):
            return state
        return state._replace(sigma=state.sigma * factor, D=state.D / as_like(factor[:, None], state.D))

    def balanced_by_node(self, state: State, squares: Any) -> State:
        """The state with σ and steps of nodes changed; the columns follow."""
        factor = change(squares[:, 0, :], APART)
        if np.all(factor == 1.0):
            return state
        nodes = (1.0 if state.nodes is None else state.nodes) * factor
        for _, part in self.parts:
            nodes[part] = within_range(nodes[part])
        middle = np.median(nodes[self.parts[0][1]])
        nodes, sigma = nodes / middle, state.sigma * middle
        before = to_host(self.columns.balance) * state.sigma
        self.take_steps(nodes)
        scale = before / (to_host(self.columns.balance) * sigma)
        return state._replace(sigma=sigma, D=state.D * as_like(scale, state.D), nodes=nodes)


def field(rows: Array, coef: Array, columns: Columns, stairs: list[tuple[int, slice]]) -> Array:
    """Φ C Ψᵀ (rows, B, m) for Φ in the eigenbasis and C (k, B, l), which is 0 below the stairs."""
    (k, count, s), xp, n = coef.shape, namespace(coef), rows.shape[0]
    parts = [
        xp.reshape(rows[:, first:] @ xp.reshape(coef[first:, :, part], (k - first, -1)), (n, count, -1))
        for first, part in stairs[::-1]
    ]
    inner = parts[0] if len(parts) == 1 else xp.concat(parts, axis=2)
    return xp.reshape(xp.reshape(inner, (n * count, s)) @ columns.cols.T, (n, count, -1))


def row_blocks(rows: Array) -> list[slice]:
    """Blocks of rows that stay near."""
    step = max(1, (BLOCK_ENTRIES if isinstance(rows, np.ndarray) else DEVICE_ENTRIES) // int(rows.shape[1]))
    return [slice(i, i + step) for i in range(0, int(rows.shape[0]), step)]


def weighted_gram(rows: Array, omega: Array) -> Array:
    """Φᵀ diag(ω) Φ, without a copy of all rows."""
    blocks = row_blocks(rows)
    total = (rows[blocks[0]] * omega[blocks[0]][:, None]).T @ rows[blocks[0]]
    for block in blocks[1:]:
        total += (rows[block] * omega[block][:, None]).T @ rows[block]
    return total


def _between(side: Any) -> Any:
    """A bound that broadcasts against (n, m) as one that does against (n, B, m)."""
    return side[:, None, :] if len(getattr(side, "shape", ())) == 2 else side


def _repeated(y: Array | None, count: int) -> Array | None:
    """Targets of every row ``count`` times."""
    return y if y is None or count == 1 else namespace(y).repeat(y, count, axis=0)
