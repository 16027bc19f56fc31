r"""Splitting: the ridge in closed form, the losses separately for each pair.

Write H for the values of the losses' arguments at all rows and nodes, and treat H and C as separate variables:

.. math:: \min_{H, C} \; \sum_{ij} \omega_i w_j \, \ell_j(y_i, H_{ij}) + \tfrac{\lambda}{2} \|C\|^2
    \quad \text{such that} \quad H = \Phi C \Psi^\top .

With multipliers u and a step σ (the alternating direction method of multipliers), both halves of an iteration have a
closed form. In the joint eigenbasis of rows and columns (eigenvalues e of ΦᵀωΦ and f of ΨᵀwΨ) the ridge step divides by
λ + σ e_k f_l. The other half evaluates the slope of the loss smoothed by 1/σ at each pair, which every loss provides.
One iteration costs as much as an evaluation of the objective, and their number hardly depends on λ: 20 to 70 for a gap
of 1e-2 for both λ = 1e-2 and 1e-6 (300 to 2 000 rows), while L-BFGS takes ten times as many at 1e-6.

Problems that differ only in their training rows share the eigenbasis: a held-out row keeps its value H_ij = h_ij and
has no multiplier. So all folds of a cross-validation are solved at once, and yield h at the held-out rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from infinitask._base.arrays import Array, HostArray, as_like, namespace, to_host
from infinitask.objective import Integral, Objective
from infinitask.solvers._base import Start
from infinitask.solvers._basis import MAX_FEATURES_FOR_ALL, Eigenbasis, dominated

NEGLIGIBLE = 1e-13
"""Eigenvalues of rows and columns below this fraction of the largest count as 0; the dual is reduced by their bound."""

BLOCK_ENTRIES = 2**19
"""Entries of Φ in a block of rows on the host: 4 MiB stay in the cache between the two halves of an iteration."""

DEVICE_ENTRIES = 2**26
"""Rows × nodes × problems in a block of rows on a device."""

SHORT_START = 0.3
"""The initial σ if a derivative is penalised, relative to the usual one. With 1 000 rows and λ = 1e-6, 200 iterations
from it give a gap of 3e-3; from the usual σ the gap is above 1."""

MIN_SINGLE_ENTRIES = 500_000
"""Entries of ΦV from which iterations use single precision. Below it, calls of NumPy dominate an iteration; in double
precision, y and y + 1000 have the same predictions to many digits."""


class State(NamedTuple):
    """The end of B problems, from which similar ones may start."""

    H: Array
    """(n, B, m): values at rows and nodes."""
    D: Array
    """(n, B, m): the dual point u = −∂ℓ, divided by the step."""
    sigma: HostArray
    """(B,): σ."""
    coef: Array
    """(k, B, l): C in the eigenbasis."""
    primal: HostArray
    """(B,): P."""
    dual: HostArray
    """(B,): lower bounds of min P."""
    n_iter: int
    nodes: HostArray | None = None
    """(m,): the step of each node is σ ρ times this; None: 1."""

    @property
    def gap(self) -> HostArray:
        """(P − D) / |P|, (B,)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            gap = (self.primal - self.dual) / np.abs(self.primal)
        # a NaN bound certifies nothing
        return np.where(self.primal <= self.dual, 0.0, np.where(np.isnan(gap), np.inf, gap))


@dataclass(frozen=True, eq=False)
class Columns:
    """Ψ W, where W diagonalises Ψᵀ w ρ Ψ.

    Parameters
    ----------
    cols : array (m, l)
        Ψ W, with the nodes of all integrals stacked.
    weights : array (m,)
        w ρ.
    balance : array (m,)
        ρ, the step of each node relative to σ.
    W : array (s, l)
        Eigenvectors of Ψᵀ w ρ Ψ.
    f : ndarray (l,)
        Its eigenvalues, ascending.
    lost : float
        The largest omitted eigenvalue.
    """

    cols: Array
    weights: Array
    balance: Array
    W: Array
    f: HostArray
    lost: float

    @classmethod
    def of(cls, terms: Sequence[Integral], balance: Array) -> Columns:
        """Diagonalise."""
        xp = namespace(balance)
        weights = xp.concat([term.weights for term in terms]) * balance
        cols = xp.concat([term.cols for term in terms], axis=0)
        f, W = np.linalg.eigh(to_host(cols.T @ (weights[:, None] * cols)).astype(np.float64))
        kept = f > NEGLIGIBLE * f[-1]
        W = as_like(W[:, kept], cols)
        return cls(cols @ W, weights, balance, W, f[kept], max(0.0, float(np.max(f[~kept], initial=0.0))))

    def without(self, least: float) -> Columns:
        """Return the columns without those with f below ``least``; the last one is always kept."""
        first = min(int(np.searchsorted(self.f, least)), self.f.size - 1)
        if first == 0:
            return self
        lost = float(self.f[first - 1])
        return replace(self, cols=self.cols[:, first:], W=self.W[:, first:], f=self.f[first:], lost=lost)

    def single(self) -> Columns:
        """Return the columns in single precision."""
        xp = namespace(self.cols)
        cols, weights, balance, W = (xp.astype(a, xp.float32) for a in (self.cols, self.weights, self.balance, self.W))
        return replace(self, cols=cols, weights=weights, balance=balance, W=W)


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
    columns : Columns
        Ψ in the eigenbasis of Ψᵀ w ρ Ψ. ρ is 1 for the first integral, and smaller for a derivative, which is larger.
    free_level : bool
        Whether the first feature is a constant: a bias, which needs a very small ridge.
    lost_rows : float
        The largest omitted eigenvalue of rows.
    least : float
        Directions with e f up to this value are omitted; the dual is reduced by their bound.
    exact : Splitting or None
        The same in double precision, for the bounds; None: bounds have the precision of the iterations.

    Examples
    --------
    >>> import numpy as np
    >>> from infinitask.solvers._splitting_run import iterate
    >>> from infinitask.tasks import QuantileTask
    >>> x, theta, one = np.linspace(-1.0, 1.0, 40)[:, None], np.array([0.25, 0.75]), np.ones((2, 1))
    >>> term = Integral(QuantileTask().loss, theta, np.array([0.5, 0.5]), one, targets=x**3)
    >>> problem = Objective(np.hstack([np.ones((40, 1)), x]), np.full(40, 1 / 40), (term,), alpha=1e-2)
    >>> solver = Splitting.of(problem)
    >>> bool(iterate(solver, 1e-2, tol=1e-3).gap <= 1e-3)
    True
    """

    rows: Array
    V: Array
    e: HostArray
    omega: Array
    terms: tuple[Integral, ...]
    columns: Columns
    free_level: bool
    lost_rows: float = 0.0
    least: float = 0.0
    exact: Splitting | None = None

    @property
    def complete(self) -> bool:
        """Whether no direction was omitted."""
        return self.least == self.lost_rows == self.columns.lost == 0.0

    def lost(self, energy: HostArray, square: HostArray, pull: HostArray) -> HostArray:
        """A bound of ‖Φᵀ u Ψ‖² in the omitted directions, (B,).

        There Φᵀ u Ψ is √(e f) times a part of u orthogonal to the kept directions.

        Parameters
        ----------
        energy : ndarray (B, l)
            Squared norms of u Ψ.
        square : ndarray (B,)
            ‖u‖².
        pull : ndarray (k, B, l)
            Φᵀ u Ψ in the kept directions.
        """
        seen = np.sum(energy / self.columns.f, axis=1)
        total = float(self.e[-1]) * self.columns.lost * np.maximum(square - seen, 0.0)
        known = np.sum(pull**2 / self.e[:, None, None], axis=0)
        return np.asarray(total + self.lost_rows * np.sum(np.maximum(energy - known, 0.0), axis=1))

    @staticmethod
    def solves(objective: Objective) -> bool:
        """Whether the objective has no separate bias, and all its integrals use the same rows."""
        return objective.without_bias

    @classmethod
    def of(cls, objective: Objective, *, single: bool = False, leading: bool = False) -> Splitting:
        """Diagonalise rows and columns.

        Parameters
        ----------
        objective : Objective
        single : bool
            Whether to iterate in single precision, for gaps of a percent.
        leading : bool
            Whether directions of the rows that the ridge dominates are omitted, and bounds ignore them: for rough fits.
        """
        rows, omega = objective.rows, objective.sample_weight
        xp = namespace(rows)
        terms, sizes = objective.integrals, [float(size) for size in objective.relative_sizes]
        balance = xp.concat([xp.ones_like(t.weights) / size**2 for t, size in zip(terms, sizes, strict=True)])
        columns = Columns.of(terms, balance)
        known, lost = None, 0.0
        if leading and isinstance(rows, np.ndarray) and rows.shape[1] > MAX_FEATURES_FOR_ALL:
            known = Eigenbasis.of(objective).leading()
        if known is None:
            e, V = xp.linalg.eigh(weighted_gram(rows, omega))
            kept = e > NEGLIGIBLE * xp.max(e)
            lost = max(0.0, float(to_host(xp.max(e[~kept])))) if bool(xp.any(~kept)) else 0.0
            if leading:
                kept = kept & (e > dominated(to_host(e), float(columns.f[-1]), objective.alpha))
            kept[-1] = True  # the largest one, also if all are 0
            e, V = e[kept], V[:, kept]
        else:
            e, V = known
        level = objective.constant_first
        turned = _in_single(rows, V) if single and isinstance(rows, np.ndarray) else rows @ V
        e = to_host(e).astype(np.float64)
        found = cls(turned, V, e, omega, terms, columns, level, lost)
        return found._single() if single else found

    def _single(self) -> Splitting:
        xp = namespace(self.rows)

        def cast(part: Any) -> Any:
            return None if part is None else xp.astype(part, xp.float32)

        terms = tuple(
            replace(t, theta=cast(t.theta), weights=cast(t.weights), cols=cast(t.cols), targets=cast(t.targets))
            for t in self.terms
        )
        parts: dict[str, Any] = {name: cast(getattr(self, name)) for name in ("rows", "V", "omega")}
        return replace(self, terms=terms, columns=self.columns.single(), **parts)

    def without(self, least: float) -> Splitting:
        """Omit directions with e f up to ``least``. Many rows use single precision, with bounds in double."""
        first = min(int(np.searchsorted(self.e * self.columns.f[-1], least)), self.e.size - 1)
        exact = replace(
            self,
            rows=self.rows[:, first:],
            V=self.V[:, first:],
            e=self.e[first:],
            columns=self.columns.without(least / float(self.e[-1])),
            lost_rows=float(self.e[first - 1]) if first else self.lost_rows,
            least=least,
        )
        few = int(np.prod(exact.rows.shape)) < MIN_SINGLE_ENTRIES
        return exact if few else replace(exact._single(), exact=exact)

    def leading(self, alpha: float) -> Splitting:
        """Omit directions of the rows that a ridge λ dominates."""
        first = int(np.searchsorted(self.e, dominated(self.e, float(self.columns.f[-1]), alpha)))
        if first == 0:
            return self
        return replace(self, rows=1.0 * self.rows[:, first:], V=self.V[:, first:], e=self.e[first:])

    def coefficients(self, state: State, b: int = 0) -> HostArray:
        """C (r, s) of problem b."""
        basis = self if self.exact is None else self.exact  # the bounds are those of the exact basis
        return np.asarray(
            to_host(basis.V @ as_like(state.coef[:, b, :], basis.V) @ basis.columns.W.T), dtype=np.float64
        )

    def centre(self, state: State, b: int = 0) -> tuple[tuple[float, ...], tuple[Array, ...]]:
        """One over the typical step of each integral, and the dual point u of problem b, (n, m) of each integral."""
        ends = np.cumsum([0, *(int(term.theta.shape[0]) for term in self.terms)])
        steps = state.sigma[b] * to_host(self.columns.balance).astype(np.float64)
        steps = steps if state.nodes is None else steps * state.nodes
        u = (state.D if self.exact is None else namespace(state.D).astype(state.D, self.exact.rows.dtype))[:, b, :]
        u = u * as_like(steps, u)
        parts = [slice(*ends[t : t + 2]) for t in range(len(self.terms))]
        return tuple(float(1.0 / np.median(steps[part])) for part in parts), tuple(u[:, part] for part in parts)

    def begun(self, objective: Objective, near: Start, count: int = 1) -> State:
        """A start for ``count`` problems from the solution of a similar one: its C, its dual point and 1/σ = κ."""
        xp, state, smoothing = namespace(self.rows), self.start(count), near.smoothing
        # L-BFGS and Newton's method end with little smoothing: 1/κ would be far too long a step
        kappa, known = 0.0, smoothing.centre
        if known is None:
            known = objective.duals(near.z, smoothing)
        else:
            kappa = smoothing.kappa[0]
        sigma = 1.0 / kappa if kappa > 0.0 else float(state.sigma[0])
        C = as_like(near.z.reshape(self.V.shape[0], -1), self.rows)
        coef = (self.V.T @ C @ self.columns.W)[:, None, :]
        n, zero = int(self.rows.shape[0]), np.zeros((1, 1))
        parts = [
            xp.broadcast_to(as_like(zero if part is None else part, self.rows), (n, int(term.theta.shape[0])))
            for part, term in zip(known, self.terms, strict=True)
        ]
        D = (xp.concat(parts, axis=1) / self.columns.balance / sigma)[:, None, :]
        H, D, coef = (xp.concat([part] * count, axis=1) for part in (self.field(slice(None), coef), D, coef))
        return state._replace(H=H, D=xp.astype(D, H.dtype), sigma=np.full(count, sigma), coef=coef)

    def values(self, state: State) -> Array:
        """Φ C Ψᵀ at the rows and all nodes, (n, B, m)."""
        return self.field(slice(None), state.coef)

    def field(self, block: slice, coef: Array) -> Array:
        """Φ C Ψᵀ of a block of rows."""
        return field(self.rows[block], coef, self.columns)

    def start(self, count: int) -> State:
        """A start with h = 0 for ``count`` problems."""
        xp, shape = namespace(self.rows), (int(self.rows.shape[0]), count, int(self.columns.cols.shape[0]))
        H, unknown = as_like(np.zeros(shape), self.rows), np.full(count, np.inf)
        nothing = as_like(np.zeros((self.e.size, count, self.columns.f.size)), self.rows)
        sigma = (1.0 if len(self.terms) == 1 else SHORT_START) / self.terms[0].target_size
        return State(H, xp.zeros_like(H), np.full(count, sigma), nothing, unknown, -unknown, 0)


def _in_single(rows: HostArray, V: HostArray) -> HostArray:
    """Φ V in single precision, without a copy of all rows in double precision."""
    found = np.empty((rows.shape[0], V.shape[1]), dtype=np.float32)
    for block in row_blocks(rows):
        found[block] = rows[block] @ V
    return found


def field(rows: Array, coef: Array, columns: Columns) -> Array:
    """Φ C Ψᵀ (rows, B, m) for Φ in the eigenbasis and C (k, B, l)."""
    (k, count, s), xp, n = coef.shape, namespace(coef), rows.shape[0]
    inner = rows @ xp.reshape(coef, (k, -1))
    return xp.reshape(xp.reshape(inner, (n * count, s)) @ columns.cols.T, (n, count, -1))


def row_blocks(rows: Array) -> list[slice]:
    """Blocks of rows that fit in the cache."""
    step = max(1, (BLOCK_ENTRIES if isinstance(rows, np.ndarray) else DEVICE_ENTRIES) // int(rows.shape[1]))
    return [slice(i, i + step) for i in range(0, int(rows.shape[0]), step)]


def weighted_gram(rows: Array, omega: Array) -> Array:
    """Φᵀ diag(ω) Φ, without a copy of all rows."""
    blocks = row_blocks(rows)
    total = (rows[blocks[0]] * omega[blocks[0]][:, None]).T @ rows[blocks[0]]
    for block in blocks[1:]:
        total += (rows[block] * omega[block][:, None]).T @ rows[block]
    return total
