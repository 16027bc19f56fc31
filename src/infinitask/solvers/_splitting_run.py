"""The iterations of splitting, see :mod:`~infinitask.solvers._splitting`, and the engine for a small λ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from infinitask._base.arrays import Array, HostArray, as_like, namespace, to_host
from infinitask._base.budget import current_budget
from infinitask._base.threads import shared_out
from infinitask.objective import Integral, Objective, Smoothing
from infinitask.solvers._base import MAX_CENTRE_PAIRS, Ledger, Solution, Start
from infinitask.solvers._splitting import BLOCK_ENTRIES, DEVICE_ENTRIES, Columns, Splitting, State, field
from infinitask.solvers._steps import CHANGE_LATER, HAND_OVER, RELAXATION, Bundle, Looks, change, within_range

APART = 0.1
"""Steps of nodes aim at this ratio of the residuals, which needs far fewer iterations for a small λ. One step for all
nodes and a ratio of 1 need fewer for a large λ and a gap of a percent, as in cross-validation."""

MAX_STEPS = 8_000
"""The maximum number of iterations."""

LEFT_OUT, SMALL_OBJECTIVE = 0.2, 0.1
"""Splitting omits directions with e f up to LEFT_OUT times the tolerance times λ. They account for 1/60 of the gap if P
is as large as a typical target and ‖u‖² = 1/6, as for quantiles. If P is less than the fraction SMALL_OBJECTIVE of it,
the limit shrinks in proportion to P: without this, 300 rows with hardly any noise and λ = 1e-7 stayed at 3e-4."""


class Run:
    """The iterations of one call.

    Parameters
    ----------
    basis : Splitting
    alpha : float
    mass : ndarray (B,)
        The weight of the training rows of each problem.
    counts : array (n, B, 1) or None
        1 for these rows, 0 for others.
    bounds_only : bool
        Whether this run only computes bounds, for the iterations of another one.
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
        """Set the step of each node to σ ρ times ``nodes``, (m,), and use its eigenbasis for the ridge step.

        Bounds remain in the basis of the splitting itself: they must omit the same directions for all points that are
        mixed.
        """
        self.columns, self.turn, exact = self.basis.columns, None, self.bounds.basis
        if nodes is not None:
            columns = Columns.of(exact.terms, exact.columns.balance * as_like(nodes, exact.columns.balance))
            columns = columns.without(self.basis.least / float(self.basis.e[-1]))
            self.turn = columns.W.T @ exact.columns.W
            self.columns = columns if exact is self.basis else columns.single()
        self.products = self.basis.e[:, None, None] * self.columns.f
        self.weighted_cols = self.columns.weights[:, None] * self.columns.cols

    def _visit(self, visit: Callable[[slice], tuple[Any, ...]]) -> list[Any]:
        """Sum the results of ``visit`` over the blocks."""

        def total(blocks: list[slice]) -> list[Any]:
            sums = list(visit(blocks[0]))
            for block in blocks[1:]:
                sums = [a + b for a, b in zip(sums, visit(block), strict=True)]
            return sums

        groups = [self.blocks[g::4] for g in range(min(4, len(self.blocks)))]  # independent of the number of threads
        host = isinstance(self.basis.rows, np.ndarray)
        found = shared_out(total, groups) if host else [total(group) for group in groups]
        return [sum(parts[1:], parts[0]) for parts in zip(*found, strict=True)]

    def _inner(self, values: Array) -> Array:
        """Compute X w ρ Ψ of values X (rows, B, m), (rows, B, l)."""
        xp, (n, count, m) = namespace(values), values.shape
        return xp.reshape(xp.reshape(values, (n * count, m)) @ self.weighted_cols, (n, count, -1))

    def _pulled(self, block: slice, inner: Array) -> Array:
        """Compute (ΦV)ᵀ ω times values at the rows (rows, B, l) of a block, (k, B, l)."""
        xp, (n, count, _), rows = namespace(inner), inner.shape, self.basis.rows[block]
        inner = inner * self.basis.omega[block][:, None, None]
        return xp.reshape(rows.T @ xp.reshape(inner, (n, -1)), (self.basis.e.size, count, -1))

    def pull(self, state: State) -> Array:
        """Compute the right-hand side of the next ridge step."""
        return self._visit(lambda block: (self._pulled(block, self._inner(state.H[block] + state.D[block])),))[0]

    def step(self, state: State, pulled: Array, *, measured: bool) -> tuple[State, Array, HostArray | None]:
        """Run one iteration, and prepare the next ridge step in the same pass over the rows."""
        sigma = state.sigma[None, :, None]
        coef = pulled * as_like(sigma / (self.ridge[None, :, None] + sigma * self.products), pulled)
        kappa = 1.0 / as_like(state.sigma[:, None], coef) / self.columns.balance  # (B, m)

        def visit(block: slice) -> tuple[Any, ...]:
            F = field(self.basis.rows[block], coef, self.columns)
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
        D = _beside([self._of_term(term, block, v[:, :, part], kappa[:, part]) for term, part in self.parts])
        return D if self.counts is None else D * self.counts[block]

    @staticmethod
    def _of_term(term: Integral, block: slice, v: Array, kappa: Array) -> Array:
        xp, (n, count, m) = namespace(v), v.shape
        y, row = term.targets_of(block), term.row_of(block)
        if row is not None and row.plain:
            return _clipped(term.residual(None if y is None else y[:, None, :], v), row, kappa)
        flat, targets = xp.reshape(v, (n * count, m)), _repeated(y, count)
        each = xp.reshape(xp.broadcast_to(kappa, (n, count, m)), (n * count, m))
        return xp.reshape(each * term.slopes(targets, flat, each), (n, count, m))

    def _squares(self, block: slice, *values: Array) -> HostArray:
        """Sums over the rows of ω times the squares of arrays (rows, B, m), (count, B, m)."""
        omega = self.basis.omega[block]
        found = [namespace(value).tensordot(omega, value * value, axes=((0,), (0,))) for value in values]
        return np.array([to_host(each) for each in found])

    def certified(self, state: State) -> State:
        """Return the state with both bounds, for the original losses."""
        eps = float(namespace(state.coef).finfo(state.coef.dtype).eps)
        # slightly smaller, so that rounding does not move a dual point outside its interval
        steps = (1.0 - 8.0 * eps) * state.sigma[:, None] * to_host(self.columns.balance)
        return self.bounds._certified(state._replace(coef=self._turned(state.coef)), steps)

    def _turned(self, coef: Array) -> Array:
        """Return C in the basis of the splitting."""
        if self.turn is None:
            return coef
        return namespace(coef).astype(coef, self.turn.dtype) @ self.turn

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
                    energy, square = (self._squares(block, v)[0] for v in (inner, each / basis.columns.balance))
                    found += [energy, square @ to_host(basis.columns.weights)]
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
        """Clip a single-precision dual point to its bounds, since 1 − θ may have a relative error of a thousandth."""
        if self.basis.least == 0.0:
            return u
        found = []
        for term, part in self.parts:
            row, some = term.row_of(block), u[:, :, part]
            found.append(some if row is None else _clipped(some, row, 1.0))
        return _beside(found)

    def _integrated(self, block: slice, what: str, at: Array) -> HostArray:
        """The weighted sum of a loss, or of its dual, over the pairs of a block, (B,)."""
        xp, (n, count, _) = namespace(at), at.shape
        total = 0.0
        for term, part in self.parts:
            flat, y = xp.reshape(at[:, :, part], (n * count, -1)), _repeated(term.targets_of(block), count)
            total = total + xp.reshape(getattr(term, what)(y, flat) @ term.weights, (n, count))
        total = total if self.counts is None else total * self.counts[block][:, :, 0]
        return np.asarray(to_host(self.basis.omega[block] @ total))

    def _balance(self, u: Array) -> tuple[Array, Array]:
        """Factors (B, m), at most 1, of the positive and negative entries of u that make its sum over the rows 0.

        A level with hardly any ridge needs a dual point that sums to 0, or its lower bound is poor: for the same h,
        λ_b = λ/10⁴ took up to three times as many iterations as λ/100.
        """
        xp = namespace(u)
        total = xp.tensordot(self.basis.omega, u, axes=((0,), (0,)))
        tiny = 1e-30  # it also exists in single precision
        size = xp.tensordot(self.basis.omega, xp.abs(u), axes=((0,), (0,)))
        plus, minus = 0.5 * (size + total), 0.5 * (size - total)
        least = xp.minimum(plus, minus)
        # other integrals contain a derivative: their part of the sum is small, and their u may have one sign
        least = xp.concat([least[:, self.parts[0][1]], 0.0 * least[:, self.parts[0][1].stop :] + np.inf], axis=1)
        return tuple(xp.minimum((least + tiny) / (side + tiny), xp.ones_like(side)) for side in (plus, minus))

    def balanced(self, state: State, squares: Any) -> State:
        """Change σ if one residual is much larger than the other."""
        factor = change(squares @ to_host(self.columns.weights))
        if np.all(factor == 1.0):
            return state
        return state._replace(sigma=state.sigma * factor, D=state.D / as_like(factor[:, None], state.D))

    def balanced_by_node(self, state: State, squares: Any) -> State:
        """Change σ and the steps of nodes, and update the columns."""
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


def _beside(parts: list[Array]) -> Array:
    """Concatenate arrays (rows, B, ·) along their last axis."""
    return parts[0] if len(parts) == 1 else namespace(parts[0]).concat(parts, axis=2)


def _clipped(u: Array, row: Any, kappa: Any) -> Array:
    """Clip u (n, B, m) to κ times an interval of slopes, whose ends broadcast against (n, m)."""
    xp = namespace(u)
    low, high = (s[:, None, :] if len(getattr(s, "shape", ())) == 2 else s for s in (row.low, row.high))
    u = u if low is None else xp.maximum(u, low * kappa)
    return u if high is None else xp.minimum(u, high * kappa)


def _repeated(y: Array | None, count: int) -> Array | None:
    """Repeat the targets of every row ``count`` times."""
    return y if y is None or count == 1 else namespace(y).repeat(y, count, axis=0)


def iterate(
    splitting: Splitting,
    alpha: float,
    *,
    live: HostArray | None = None,
    start: State | None = None,
    tol: float = 1e-2,
    max_iter: int = 400,
    every: int = 10,
    floor: float = 0.0,
    seen: Callable[[State], int] | None = None,
    by_node: bool = False,
) -> State:
    """Iterate until all gaps are at most ``tol``, or no time is left.

    Parameters
    ----------
    splitting : Splitting
    alpha : float
        λ.
    live : ndarray (B, n) of bool, or None
        The training rows of each of B problems, whose weights are then divided by their sum; None: one problem with
        all rows.
    start : State or None
        The end of similar problems.
    tol : float
    max_iter : int
    every : int
        The number of iterations between two computations of the gap.
    floor : float
        Gaps are relative to this value if |P| is smaller.
    seen : callable or None
        Called after every such computation; returns the number of iterations until the next one, or 0 to stop.
    by_node : bool
        Whether every node has its own step, which suits one problem with a small λ.
    """
    n = int(splitting.rows.shape[0])
    mask = np.ones((1, n), dtype=bool) if live is None else live
    counts = (
        None if live is None else as_like(np.ascontiguousarray(mask.T, dtype=np.float64)[:, :, None], splitting.rows)
    )
    state = splitting.start(len(mask)) if start is None else start
    # steps write in place: arrays of the caller must not change
    state = state._replace(H=1.0 * state.H, D=state.D * (1.0 if counts is None else counts))
    omega = to_host((splitting if splitting.exact is None else splitting.exact).omega).astype(np.float64)
    run = Run(splitting, alpha, mask @ omega, counts)
    run.take_steps(state.nodes)
    pulled, due, change, budget = run.pull(state), every, every, current_budget()
    for it in range(1, max_iter + 1):
        measured = it % every == 0 or it == max_iter
        state, pulled, residuals = run.step(state, pulled, measured=measured)
        if it >= due or it == max_iter or (measured and budget.over):
            state = run.certified(state)._replace(n_iter=it)
            gap = state.gap * np.abs(state.primal) / np.maximum(np.abs(state.primal), max(floor, 1e-300))
            wait = (0 if np.all(gap <= tol) else every) if seen is None else seen(state)
            if not wait or budget.over:
                break
            due = it + wait
        if measured and it >= change:
            fresh = run.balanced_by_node(state, residuals) if by_node else run.balanced(state, residuals)
            if fresh is not state:
                state, pulled = fresh, run.pull(fresh)
            change = int(np.ceil(CHANGE_LATER * it)) if by_node else it + every
    return state


def by_splitting(objective: Objective, ledger: Ledger, start: Start | None) -> tuple[Solution, Start]:
    """Splitting in the joint eigenbasis of rows and columns."""
    ledger.begin(Smoothing((0.1 * objective.scale,) * len(objective.integrals)))
    tol, whole, size = ledger.tol, Splitting.of(objective), objective.scale
    splitting = whole.without(LEFT_OUT * tol * size * objective.alpha)
    most, done = min(ledger.max_iter, MAX_STEPS), 0
    looks = Looks(ledger.aim)

    def small() -> bool:
        return ledger.certificate.scale < SMALL_OBJECTIVE * size

    def seen(state: State) -> int:
        z, steps = splitting.coefficients(state).ravel(), done + state.n_iter
        ledger.take(z, float(state.primal[0]), float(state.dual[0]), steps, f"splitting, σ {state.sigma[0]:.1e}")
        looks.add(steps, ledger.certificate.gap)
        return 0 if ledger.done or looks.idle or small() else looks.wait

    first = None if start is None else splitting.begun(objective, start)
    how: dict[str, Any] = {"tol": 0.0, "seen": seen, "by_node": True}
    state = iterate(splitting, objective.alpha, start=first, max_iter=most, **how)
    while not (ledger.done or looks.idle) and small() and state.n_iter < most:
        done, most, size = done + state.n_iter, most - state.n_iter, ledger.certificate.scale
        splitting = whole.without(LEFT_OUT * tol * size * objective.alpha)
        state = iterate(splitting, objective.alpha, start=state, max_iter=most, **how)
    kappa, centre = splitting.centre(state)
    found, smoothing = ledger.solution(), Smoothing(kappa, centre)
    near = Smoothing(tuple(HAND_OVER * k for k in kappa), centre if objective.n_pairs <= MAX_CENTRE_PAIRS else None)
    return replace(found, smoothing=smoothing, dual_at=Start(found.z, smoothing)), Start(found.z, near, found.floor)
