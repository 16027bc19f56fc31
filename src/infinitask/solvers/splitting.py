r"""Splitting: the ridge in closed form, the losses pair by pair.

Write H for the values that the losses see at all rows and nodes, and let H and C part for a while:

.. math:: \min_{H, C} \; \sum_{ij} \omega_i w_j \, \ell_j(y_i, H_{ij}) + \tfrac{\lambda}{2} \|C\|^2
    \quad \text{such that} \quad H = \Phi C \Psi^\top .

With multipliers u and a step σ (the alternating direction method of multipliers), both halves of an iteration are
closed form. In the joint eigenbasis of rows and columns (eigenvalues e of ΦᵀωΦ and f of ΨᵀwΨ) the ridge step divides by
λ + σ e_k f_l; the other half is the slope of the loss smoothed by 1/σ, at each pair by itself, which every loss has.
One iteration costs as much as an evaluation of the objective, and their number hardly feels λ: 30 to 110 for a gap of
1e-2 whether λ = 1e-2 or 1e-6 (tables of 280 to 1 500 rows), where L-BFGS takes ten times as many at the small end.

Problems that differ in the rows that count share the eigenbasis: a row that is left out keeps its value H_ij = h_ij and
has no multiplier. So all folds of a cross-validation are solved at once, and h at the rows left out is known then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from infinitask._array import Array, HostArray, as_like, namespace, to_host
from infinitask._threads import shared_out
from infinitask.losses import BoxLoss
from infinitask.objective import Integral, Objective

__all__ = ["Splitting", "State"]

RELAXATION = 1.6
"""How far an iteration goes beyond the ridge step; between 1 and 2."""

CHECK_EVERY = 10
"""Iterations between two looks at the gap, each of which costs half an iteration."""

UNBALANCED, MAX_CHANGE = 5.0, 3.0
"""σ follows the two residuals: it changes where one is this many times the other, by at most the second factor."""

NEGLIGIBLE = 1e-13
"""Eigenvalues of rows and columns below this part of the largest are 0; what that may cost is taken off the dual."""

HELD = 0.02
"""Directions with e f below this part of λ are held by the ridge."""

BLOCK_ENTRIES = 2**19
"""Entries of Φ in a block of rows on the host: 4 MiB stay near between the two halves of an iteration."""

DEVICE_ENTRIES = 2**26
"""Rows × nodes × problems in a block of rows on a device."""

GROUPS = 4
"""Groups of blocks that threads share out; sums do not depend on the number of threads."""


class State(NamedTuple):
    """Where B problems ended, and similar ones may begin."""

    H: Array
    """(n, B, m): values at rows and nodes."""
    D: Array
    """(n, B, m): the dual point u = −∂ℓ, divided by σ."""
    sigma: HostArray
    """(B,): the step."""
    coef: Array
    """(k, B, l): C in the eigenbasis."""
    primal: HostArray
    """(B,): P."""
    dual: HostArray
    """(B,): a lower bound of min P."""
    n_iter: int

    @property
    def gap(self) -> HostArray:
        """(P − D) / |P|, (B,)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            gap = (self.primal - self.dual) / np.abs(self.primal)
        # a bound that is not a number certifies nothing
        return np.where(self.primal <= self.dual, 0.0, np.where(np.isnan(gap), np.inf, gap))


@dataclass(frozen=True, eq=False)
class Splitting:
    """The eigenbasis of rows and columns of an objective without a separate bias, and iterations in it.

    Parameters
    ----------
    rows : array (n, k)
        Φ V.
    V : array (r, k)
        Eigenvectors of ΦᵀωΦ.
    e : ndarray (k,)
    omega : array (n,)
        Weights of the rows, summing to one.
    terms : tuple of Integral
    cols : array (m, l)
        Ψ W, the nodes of all integrals below each other.
    weights : array (m,)
        w ρ.
    balance : array (m,)
        ρ, the step of each integral in terms of the first one's: a derivative is larger than what it belongs to.
    W : array (s, l)
        Eigenvectors of Ψᵀ w ρ Ψ.
    f : ndarray (l,)
    free_level : bool
        Whether the first feature is a constant: a bias, which hardly any ridge may hold.

    Examples
    --------
    >>> import numpy as np
    >>> from infinitask.losses import Pinball
    >>> x, theta, one = np.linspace(-1.0, 1.0, 40)[:, None], np.array([0.25, 0.75]), np.ones((2, 1))
    >>> term = Integral(Pinball(), theta, np.array([0.5, 0.5]), one, targets=x**3)
    >>> problem = Objective(np.hstack([np.ones((40, 1)), x]), np.full(40, 1 / 40), (term,), alpha=1e-2)
    >>> solver = Splitting.of(problem)
    >>> bool(solver.solve(1e-2, tol=1e-3).gap <= 1e-3)
    True
    """

    rows: Array
    V: Array
    e: HostArray
    omega: Array
    terms: tuple[Integral, ...]
    cols: Array
    weights: Array
    balance: Array
    W: Array
    f: HostArray
    free_level: bool

    @staticmethod
    def solves(objective: Objective) -> bool:
        """Whether an objective is of the kind above: no separate bias, and all integrals see the same rows."""
        one_weight = all(term.row_weight is None for term in objective.integrals)
        return objective.bias_size == 0 and objective.bias_linear is None and one_weight

    @classmethod
    def of(cls, objective: Objective, *, single: bool = False) -> Splitting:
        """Diagonalise rows and columns; ``single``: iterate in single precision, for gaps of a percent."""
        rows, omega = objective.rows, objective.sample_weight
        xp = namespace(rows)
        e, V = xp.linalg.eigh(_gram(rows, omega))
        kept = e > NEGLIGIBLE * xp.max(e)
        V = V[:, kept]
        level = bool(xp.all(rows[:, 0] == rows[0, 0])) and len(objective.integrals) == 1
        found = cls._with(objective, rows @ V, V, to_host(e[kept]).astype(np.float64), omega, level)
        return found._single() if single else found

    def _single(self) -> Splitting:
        xp = namespace(self.rows)

        def cast(part: Any) -> Any:
            return None if part is None else xp.astype(part, xp.float32)

        terms = tuple(
            replace(t, theta=cast(t.theta), weights=cast(t.weights), cols=cast(t.cols), targets=cast(t.targets))
            for t in self.terms
        )
        parts: dict[str, Any] = {
            name: cast(getattr(self, name)) for name in ("rows", "V", "omega", "cols", "weights", "balance", "W")
        }
        return replace(self, terms=terms, **parts)

    def leading(self, alpha: float) -> Splitting:
        """Without the directions of the rows that a ridge λ holds anyway."""
        first = min(int(np.searchsorted(self.e * self.f[-1], HELD * alpha)), self.e.size - 1)
        if first == 0:
            return self
        return replace(self, rows=1.0 * self.rows[:, first:], V=self.V[:, first:], e=self.e[first:])

    def with_integrals(self, objective: Objective) -> Splitting:
        """The same rows with other integrals, in the same precision."""
        found = self._with(objective, self.rows, self.V, self.e, self.omega, self.free_level)
        same = found.cols.dtype == self.cols.dtype
        return found if same else found._single()

    @classmethod
    def _with(cls, objective: Objective, rows: Array, V: Array, e: HostArray, omega: Array, level: bool) -> Splitting:
        terms, xp = objective.integrals, namespace(rows)
        sizes = [float(size) for size in objective.relative_sizes]
        balance = xp.concat([xp.ones_like(t.weights) / size**2 for t, size in zip(terms, sizes, strict=True)])
        weights = xp.concat([term.weights for term in terms]) * balance
        cols = xp.concat([term.cols for term in terms], axis=0)
        f, W = np.linalg.eigh(to_host(cols.T @ (weights[:, None] * cols)).astype(np.float64))
        leading = f > NEGLIGIBLE * f[-1]
        W = as_like(W[:, leading], cols)
        return cls(rows, V, e, omega, terms, cols @ W, weights, balance, W, f[leading], level)

    def coefficients(self, state: State, b: int = 0) -> HostArray:
        """C (r, s) of problem b."""
        return np.asarray(to_host(self.V @ state.coef[:, b, :] @ self.W.T), dtype=np.float64)

    def values(self, state: State) -> Array:
        """Φ C Ψᵀ at the rows and all nodes, (n, B, m)."""
        return self.field(slice(None), state.coef)

    def field(self, block: slice, coef: Array) -> Array:
        """Φ C Ψᵀ of a block of rows."""
        (k, count, s), xp, rows = coef.shape, namespace(coef), self.rows[block]
        inner = rows @ xp.reshape(coef, (k, count * s))
        return xp.reshape(xp.reshape(inner, (rows.shape[0] * count, s)) @ self.cols.T, (rows.shape[0], count, -1))

    def start(self, count: int) -> State:
        """A start for ``count`` problems: h = 0."""
        xp, shape = namespace(self.rows), (int(self.rows.shape[0]), count, int(self.cols.shape[0]))
        H, unknown = as_like(np.zeros(shape), self.rows), np.full(count, np.inf)
        nothing = as_like(np.zeros((self.e.size, count, self.f.size)), self.rows)
        return State(H, xp.zeros_like(H), np.full(count, 1.0 / self._spread), nothing, unknown, -unknown, 0)

    @cached_property
    def _spread(self) -> float:
        """The typical size of a target."""
        y = self.terms[0].targets
        if y is None:
            return 1.0
        away = np.abs(to_host(y))
        return float(np.median(away)) or float(np.mean(away)) or 1.0

    def solve(
        self,
        alpha: float,
        *,
        live: HostArray | None = None,
        start: State | None = None,
        tol: float = 1e-2,
        max_iter: int = 400,
        every: int = CHECK_EVERY,
        floor: float = 0.0,
        seen: Callable[[State], bool] | None = None,
    ) -> State:
        """Iterate until all gaps are at most ``tol``.

        Parameters
        ----------
        alpha : float
            λ.
        live : ndarray (B, n) of bool, or None
            The rows that count in each of B problems, whose weights are then divided by their sum; None: one problem
            with all rows.
        start : State or None
            The end of similar problems.
        tol : float
        max_iter : int
        every : int
            Iterations between two looks at the gap.
        floor : float
            Where |P| is less, gaps are relative to this.
        seen : callable or None
            Told of every such look; it returns whether that is enough.
        """
        n = int(self.rows.shape[0])
        mask = np.ones((1, n), dtype=bool) if live is None else live
        counts = (
            None if live is None else as_like(np.ascontiguousarray(mask.T, dtype=np.float64)[:, :, None], self.rows)
        )
        state = self.start(len(mask)) if start is None else start
        # steps write in place: what a caller holds must not change
        state = state._replace(H=1.0 * state.H, D=state.D * (1.0 if counts is None else counts))
        run = _Run(self, alpha, mask @ to_host(self.omega).astype(np.float64), counts)
        pulled = run.pull(state)
        for it in range(1, max_iter + 1):
            look = it % every == 0 or it == max_iter
            state, pulled, residuals = run.step(state, pulled, measured=look)
            if look:
                state = run.certified(state)._replace(n_iter=it)
                gap = state.gap * np.abs(state.primal) / np.maximum(np.abs(state.primal), max(floor, 1e-300))
                if np.all(gap <= tol) if seen is None else seen(state):
                    break
                state = run.balanced(state, residuals)
                pulled = run.pull(state)
        return state


class _Run:
    """The iterations of one call."""

    def __init__(self, basis: Splitting, alpha: float, mass: HostArray, counts: Array | None) -> None:
        self.basis, self.mass, self.counts = basis, mass, counts
        self.ridge = alpha * mass
        self.products = basis.e[:, None, None] * basis.f
        n, m, host = int(basis.rows.shape[0]), int(basis.cols.shape[0]), isinstance(basis.rows, np.ndarray)
        size = BLOCK_ENTRIES // max(basis.e.size, m * mass.size) if host else DEVICE_ENTRIES // (m * mass.size)
        self.blocks = [slice(i, min(i + max(64, size), n)) for i in range(0, n, max(64, size))]
        self.weighted_cols = basis.weights[:, None] * basis.cols
        ends = np.cumsum([0, *(int(term.theta.shape[0]) for term in basis.terms)])
        self.parts = [(term, slice(*ends[t : t + 2])) for t, term in enumerate(basis.terms)]

    def _visit(self, visit: Callable[[slice], tuple[Any, ...]]) -> list[Any]:
        """What the blocks yield, added up."""

        def total(blocks: list[slice]) -> list[Any]:
            sums = list(visit(blocks[0]))
            for block in blocks[1:]:
                sums = [a + b for a, b in zip(sums, visit(block), strict=True)]
            return sums

        groups = [self.blocks[g::GROUPS] for g in range(min(GROUPS, len(self.blocks)))]
        host = isinstance(self.basis.rows, np.ndarray)
        found = shared_out(total, groups) if host else [total(group) for group in groups]
        return [sum(parts[1:], parts[0]) for parts in zip(*found, strict=True)]

    def _pulled(self, block: slice, values: Array) -> Array:
        """(ΦV)ᵀ ω X w ρ Ψ of the values X (rows, B, m) of a block, (k, B, l)."""
        xp, (n, count, m) = namespace(values), values.shape
        inner = xp.reshape(xp.reshape(values, (n * count, m)) @ self.weighted_cols, (n, -1))
        inner = inner * self.basis.omega[block][:, None]
        return xp.reshape(self.basis.rows[block].T @ inner, (self.basis.e.size, count, -1))

    def pull(self, state: State) -> Array:
        """What the next ridge step needs."""
        return self._visit(lambda block: (self._pulled(block, state.H[block] + state.D[block]),))[0]

    def step(self, state: State, pulled: Array, *, measured: bool) -> tuple[State, Array, HostArray | None]:
        """One iteration; what the next one needs is made in the same pass over the rows."""
        sigma = state.sigma[None, :, None]
        coef = pulled * as_like(sigma / (self.ridge[None, :, None] + sigma * self.products), pulled)
        kappa = 1.0 / as_like(state.sigma[:, None], coef) / self.basis.balance  # (B, m)

        def visit(block: slice) -> tuple[Any, ...]:
            F = self.basis.field(block, coef)
            H, D = state.H[block], state.D[block]
            v = RELAXATION * F
            v -= (RELAXATION - 1.0) * H
            v -= D
            fresh = self._slopes(block, v, kappa)
            v += fresh
            if measured:
                norms = self._norms(block, v - F, v - H, F, fresh)
            H[...], D[...] = v, fresh
            v += fresh
            return (self._pulled(block, v), norms) if measured else (self._pulled(block, v),)

        sums = self._visit(visit)
        return state._replace(coef=coef), sums[0], sums[1] if measured else None

    def _slopes(self, block: slice, v: Array, kappa: Array) -> Array:
        """κ times −∂ℓ of the losses smoothed by κ at v (rows, B, m); 0 where a row is left out."""
        xp = namespace(v)
        found = [self._of_term(term, block, v[:, :, part], kappa[:, part]) for term, part in self.parts]
        D = found[0] if len(found) == 1 else xp.concat(found, axis=2)
        return D if self.counts is None else D * self.counts[block]

    @staticmethod
    def _of_term(term: Integral, block: slice, v: Array, kappa: Array) -> Array:
        xp, (n, count, m) = namespace(v), v.shape
        y, loss = term.targets_of(block), term.loss
        if isinstance(loss, BoxLoss):
            row = loss.row(term.theta, y)
            if row.soft_low is None and row.soft_high is None and row.dead_zone is None:
                D = loss.residual(None if y is None else y[:, None, :], v)
                D = D if row.low is None else xp.maximum(D, _between(row.low) * kappa)
                return D if row.high is None else xp.minimum(D, _between(row.high) * kappa)
        flat, targets = xp.reshape(v, (n * count, m)), _repeated(y, count)
        each = xp.reshape(xp.broadcast_to(kappa, (n, count, m)), (n * count, m))
        return xp.reshape(each * loss.pointwise(term.theta, targets, flat, each, None).dual, (n, count, m))

    def _norms(self, block: slice, *values: Array) -> HostArray:
        """Squared norms of arrays (rows, B, m), (count, B)."""
        omega, weights = self.basis.omega[block], self.basis.weights
        return np.array([to_host(omega @ ((value * value) @ weights)) for value in values])

    def certified(self, state: State) -> State:
        """The state with both bounds, of the losses themselves."""
        xp = namespace(state.coef)
        # a little less, so that rounding does not put a dual point outside of its interval
        inside = 1.0 - 8.0 * float(xp.finfo(state.coef.dtype).eps)
        slope = as_like(inside * state.sigma[:, None], state.coef) * self.basis.balance
        sides = self._balance(state.D * slope) if self.basis.free_level else None

        def visit(block: slice) -> tuple[Any, ...]:
            value = self._integrated(block, "value", self.basis.field(block, state.coef))
            u = state.D[block] * slope
            duals = [u] if sides is None else [u, xp.where(u > 0.0, u * sides[0], u * sides[1])]
            lowers = [self._integrated(block, "dual", dual) for dual in duals]
            pulls = [self._pulled(block, dual / self.basis.balance) for dual in duals]
            return value, *lowers, *pulls

        value, *found = self._visit(visit)
        found = [np.asarray(to_host(part), dtype=np.float64) for part in found]
        lowers, pulls = found[: len(found) // 2], found[len(found) // 2 :]
        norm = np.sum(to_host(state.coef) ** 2, axis=(0, 2))
        primal = (value + 0.5 * self.ridge * norm) / self.mass
        return state._replace(primal=primal, dual=self._best_dual(lowers, pulls) / self.mass)

    def _integrated(self, block: slice, what: str, at: Array) -> HostArray:
        """The weighted sum of a loss, or of its dual, over the pairs of a block, (B,)."""
        xp, (n, count, _) = namespace(at), at.shape
        total = 0.0
        for term, part in self.parts:
            flat, y = xp.reshape(at[:, :, part], (n * count, -1)), _repeated(term.targets_of(block), count)
            total = total + xp.reshape(getattr(term.loss, what)(term.theta, y, flat) @ term.weights, (n, count))
        total = total if self.counts is None else total * self.counts[block][:, :, 0]
        return np.asarray(to_host(self.basis.omega[block] @ total))

    def _best_dual(self, lowers: list[HostArray], pulls: list[HostArray]) -> HostArray:
        """D of the best point between two dual points, or of a single one, (B,)."""
        lower, pull = lowers[0], pulls[0]
        if len(lowers) == 2:
            step = pulls[1] - pull
            length = np.maximum(np.sum(step**2, axis=(0, 2)), 1e-300)
            s = (self.ridge * (lowers[1] - lower) - np.sum(pull * step, axis=(0, 2))) / length
            s = np.clip(s, 0.0, 1.0)
            lower, pull = (1.0 - s) * lower + s * lowers[1], pull + s[None, :, None] * step
        return np.asarray(lower - 0.5 * np.sum(pull**2, axis=(0, 2)) / self.ridge)

    def _balance(self, u: Array) -> tuple[Array, Array]:
        """Factors (B, m), at most 1, of the positive and negative entries of u that make its sum over the rows 0.

        A level that hardly any ridge holds takes a dual point that sums to 0, or its lower bound is poor: with
        λ_b = λ/10⁴ that cost up to three times as many iterations as with λ/100, for the same h.
        """
        xp = namespace(u)
        total = xp.tensordot(self.basis.omega, u, axes=((0,), (0,)))
        size = xp.tensordot(self.basis.omega, xp.abs(u), axes=((0,), (0,)))
        plus, minus = 0.5 * (size + total), 0.5 * (size - total)
        least = xp.minimum(plus, minus)
        tiny = 1e-30  # single precision knows it as well
        return (least + tiny) / (plus + tiny), (least + tiny) / (minus + tiny)

    def balanced(self, state: State, residuals: Any) -> State:
        """The state with σ changed where one residual is much larger than the other."""
        apart, moved, size, slope = np.sqrt(np.maximum(residuals, 1e-30))
        ratio = (apart / size) / (moved / slope)
        change = np.clip(np.sqrt(ratio), 1.0 / MAX_CHANGE, MAX_CHANGE)
        change = np.where((ratio > UNBALANCED) | (ratio < 1.0 / UNBALANCED), change, 1.0)
        return state._replace(sigma=state.sigma * change, D=state.D / as_like(change[:, None], state.D))


def _gram(rows: Array, omega: Array) -> Array:
    """Φᵀ diag(ω) Φ, without a copy of all rows."""
    step = max(1, (BLOCK_ENTRIES if isinstance(rows, np.ndarray) else DEVICE_ENTRIES) // int(rows.shape[1]))
    blocks = [slice(i, i + step) for i in range(0, int(rows.shape[0]), step)]
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
