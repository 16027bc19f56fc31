r"""Splitting where a free level stands at every node.

Rare classes and free biases go badly together: nearly all rows lie at the kink of their loss, and only the level of a
node decides on which side. Here a level is never a direction of a descent. With H = Φ C Ψᵀ + offset,

.. math:: \min_{H, C, b} \; \sum_{ij} \omega_i w_j \, \ell_j(y_i, H_{ij} + b_j) + \tfrac{\lambda}{2} \|C\|^2,

splitting (:mod:`~infinitask.solvers.splitting`) alternates between the ridge, which is closed form in the joint
eigenbasis, and the losses. The best level of a node is found together with its losses: the slopes
u_ij = clip(σ (y_i − v_ij − b_j)) must balance, Σ_i ω_i u_ij = 0, which is one monotone equation for each b_j. So every
dual point balances, and its bound is good at once: with one positive in twenty (n = 1000, two inputs) and λ = 1e-2,
1e-3 and 1e-4 a gap of 1e-4 takes 30, 77 and 351 iterations. With levels in the ridge step, and dual points that are
balanced afterwards, it took 270, 350 and more than 400.

Only the leading eigenvectors of the rows are split. In all other directions the ridge outweighs the losses, and C is
Φᵀ ω u w Ψ/λ, renewed whenever the bounds are computed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from infinitask._array import HostArray, as_like, namespace, to_host
from infinitask.losses import BoxLoss
from infinitask.objective import Objective, Smoothing, product
from infinitask.solvers.base import Ledger, Start

__all__ = ["by_levels", "suits_levels"]

MAX_PAIRS = 1_000_000
"""Rows × nodes; ten arrays of that size are held."""

MAX_STEPS, PATIENCE, FAR_GAP = 800, 200, 10.0
"""The most iterations. After PATIENCE of them, others take over where the gap is more than FAR_GAP times the one asked
for: so it is where λ is so small that the rows are all but interpolated (eight inputs, λ = 1e-6)."""

CHECK_EVERY, CHECK_SHARE, MAX_BETWEEN = 10, 4, 60
"""Iterations after which σ is looked at, and the bounds are computed; later a quarter of those done so far, up to
MAX_BETWEEN, go by between two bounds, each of which costs as much as five to ten iterations."""

RELAXATION = 1.8
"""How far an iteration goes beyond the ridge step; between 1 and 2. With 1.6 up to a fifth more iterations."""

FIRST_STEP, SMALL_RIDGE = 0.5, 1e-2
"""σ at the beginning, for targets of size one; below SMALL_RIDGE, in terms of the mean of k(x, x), it falls with √λ.
The last σ is about 4, 0.8 and 0.2 for λ = 1e-2, 1e-3 and 1e-4 (n = 1000); with the same beginning for all of them, a
fit with λ = 1e-4 takes 350 iterations instead of 240."""

UNBALANCED, MAX_CHANGE = 3.0, 3.0
"""σ follows the two residuals: it changes where one is this many times the other, by at most the second factor."""

FEW_FEATURES, FIRST_LEADING = 300, 64
"""With more than FEW_FEATURES features the leading eigenvectors of the rows are computed by subspace iteration:
FIRST_LEADING of them, and twice as many until they are enough."""

HELD, WELL_HELD = 0.02, 1.0
"""Directions with e f below HELD λ are held by the ridge. Leading eigenvectors are enough where all others have e f
below WELL_HELD λ: with 0.2, 0.5 and 1 the iterations are the same in number (n = 1000 and 2000, eight inputs)."""

STABLE = 0.5
"""σ stays below this part of λ/(e f) of the directions that are not split."""

NEARLY, BALANCED, MAX_HALVINGS = 1e-6, 1e-7, 60
"""Levels balance a node when the sum of its slopes is at most this part of what one side can pull: within an iteration
(with 1e-3 up to a half more iterations, with 1e-2 four times as many at λ = 1e-4; less costs nothing), and for a bound;
and the most steps towards such a level."""

FARTHEST = 0.3
"""The largest step of Newton's method for a level, for targets of size one."""

LEAST_FREE = 1e-3
"""The least share of the rows of a node that is taken to lie at the kink in such a step."""


def suits_levels(objective: Objective) -> bool:
    """Whether the only bias is a free level at every node, and the losses are intervals of slopes around 0."""
    term, *others = objective.integrals
    if others or not objective.free or objective.bias_linear is not None or objective.n_pairs > MAX_PAIRS:
        return False
    m, loss = int(term.theta.shape[0]), term.loss
    if term.bias_cols is None or term.bias_cols.shape != (m, m) or term.row_weight is not None:
        return False
    if objective.rows.dtype != namespace(objective.rows).float64 or term.targets is None:
        return False
    if not isinstance(loss, BoxLoss) or loss.smooth(1.0) or np.linalg.cond(to_host(term.bias_cols)) > 1e3:
        return False
    row = loss.row(term.theta, term.targets)
    if not row.soft_low is row.soft_high is row.dead_zone is None or row.low is None or row.high is None:
        return False
    return bool(np.all(to_host(row.low) <= 0.0) and np.all(to_host(row.high) >= 0.0))


def by_levels(objective: Objective, ledger: Ledger) -> tuple[Start, Start]:
    """Iterate until the ledger is done, or the iterations are used up; where to go on then, and the last dual point.

    Parameters
    ----------
    objective : Objective
    ledger : Ledger
        Of it; it takes in the bounds.
    """
    run, look = _Run(objective.on_host()), CHECK_EVERY  # so few pairs keep no device busy
    last = min(ledger.max_iter, MAX_STEPS)
    for step in range(1, last + 1):
        run.step()
        if step in (look, last):
            z, primal, dual = run.bounds()
            ledger.take(z, primal, dual, step, f"splitting with levels, σ {run.sigma:.1e}")
            if ledger.done or (step >= PATIENCE and ledger.certificate.gap > FAR_GAP * ledger.tol):
                break
            look = step + max(CHECK_EVERY, min(MAX_BETWEEN, step // CHECK_SHARE))
        if step % CHECK_EVERY == 0:
            run.adapt()
    z = ledger.certificate.z
    around = Smoothing((1.0 / run.sigma,), (as_like(run.sigma * run.D, objective.rows),))
    return Start(z, Smoothing((0.1 / run.sigma,)), ledger.certificate.floor), Start(z, around)


class _Leading(NamedTuple):
    """Eigenvectors of ΦᵀωΦ."""

    e: HostArray
    """(k,)."""
    V: HostArray
    """(r, k)."""
    rest: float
    """All other eigenvalues are at most about this."""


def _leading(rows: HostArray, omega: HostArray, ridge: float) -> _Leading:
    """Those directions that a ridge does not hold, or enough of them."""
    scaled, r = rows * np.sqrt(omega)[:, None], rows.shape[1]
    count, rng = FIRST_LEADING, np.random.default_rng(0)
    while r > FEW_FEATURES and count <= r // 3:
        # one step of subspace iteration: they need not be exact, for what they miss is held by the ridge
        Q = np.linalg.qr(scaled.T @ (scaled @ rng.standard_normal((r, count))))[0]
        Z = scaled @ Q
        e, S = np.linalg.eigh(Z.T @ Z)
        if e[0] <= WELL_HELD * ridge:
            kept = e > min(HELD * ridge, 0.5 * float(e[-1]))
            return _Leading(e[kept], Q @ S[:, kept], max(float(e[0]), HELD * ridge))
        count *= 2
    e, V = np.linalg.eigh(scaled.T @ scaled)
    kept = e > min(HELD * ridge, 0.5 * float(e[-1]))
    kept[-1] = True  # also where all rows are alike, and no direction has any size
    return _Leading(e[kept], np.ascontiguousarray(V[:, kept]), HELD * ridge)


class _Run:
    """The state of the iterations: H (without levels), D = u/σ, b, C, all n × m but the last two."""

    def __init__(self, objective: Objective) -> None:
        self.term = term = objective.integrals[0]
        self.rows, self.omega, self.ridge = np.asarray(objective.rows), objective.sample_weight, objective.alpha
        assert term.targets is not None
        self.weights, self.targets = term.weights, term.targets
        f, W = np.linalg.eigh(term.cols.T @ (self.weights[:, None] * term.cols))
        kept = f > 1e-13 * f[-1]
        f, self.W = f[kept], W[:, kept]
        e, self.V, rest = _leading(self.rows, self.omega, self.ridge / float(f[-1]))
        self.partial = self.V.shape[1] < self.rows.shape[1]
        self.products = e[:, None] * f
        self.leading = self.rows @ self.V
        self.pulling = np.ascontiguousarray((self.leading * self.omega[:, None]).T)
        cols = term.cols @ self.W
        self.cols, self.weighted = np.ascontiguousarray(cols.T), self.weights[:, None] * cols
        n, m = self.rows.shape[0], self.weights.size
        assert isinstance(term.loss, BoxLoss)
        row = term.loss.row(term.theta, term.targets)
        low, high = row.low, row.high
        assert low is not None
        assert high is not None
        self.low, self.high = (np.ascontiguousarray(np.broadcast_to(end, (n, m))) for end in (low, high))
        size = float(np.median(np.abs(term.targets))) or 1.0
        self.y = np.ascontiguousarray(np.broadcast_to(term.targets, (n, m)))
        self.H, self.D, self.S, self.T, self.F, self.offset = (np.zeros((n, m)) for _ in range(6))
        self.before = np.zeros((n, m))
        self.level = np.zeros(m)
        self.coef = np.zeros(self.products.shape)
        mean = float(self.omega @ np.einsum("ij,ij->i", self.rows, self.rows)) or 1.0
        self.sigma = FIRST_STEP * min(1.0, float(np.sqrt(self.ridge / (SMALL_RIDGE * mean)))) / size
        self.largest = STABLE * self.ridge / (rest * float(f[-1])) if self.partial else np.inf
        self.farthest = FARTHEST * size
        self.ends = self._ends()
        # the most that either side of a node can pull
        self.reach = np.minimum(self.omega @ self.high, -(self.omega @ self.low))

    def step(self) -> None:
        """One iteration."""
        H, D, S, T, F = self.H, self.D, self.S, self.T, self.F
        np.add(H, D, out=S)
        if self.partial:
            S -= self.offset
        self.coef = self.pulling @ (S @ self.weighted)
        self.coef *= self.sigma / (self.ridge + self.sigma * self.products)
        product(product(self.leading, self.coef), self.cols, F)
        if self.partial:
            F += self.offset
        # T = y − v for v = a F − (a − 1) H − D, a the relaxation
        np.multiply(F, -RELAXATION, out=T)
        T += D
        T += self.y
        np.multiply(H, RELAXATION - 1.0, out=S)
        T += S
        self._slopes()
        self._settle(NEARLY)
        self.before, self.H = H, self.before
        np.subtract(D, T, out=self.H)
        self.H += self.y

    def _ends(self) -> tuple[HostArray, HostArray]:
        """The intervals of D."""
        return self.low / self.sigma, self.high / self.sigma

    def _slopes(self) -> None:
        """D = u/σ at the levels."""
        np.subtract(self.T, self.level, out=self.D)
        np.clip(self.D, *self.ends, out=self.D)

    def _settle(self, share: float) -> None:
        """Levels at which D balances, up to a share of what can be: Newton's method, and halving where it strays."""
        low, high = np.full(self.level.size, -np.inf), np.full(self.level.size, np.inf)
        for _ in range(MAX_HALVINGS):
            total = self.omega @ self.D
            # a node that balances stays: halving would move it away, and rounding decide whether
            off = np.abs(total) > share * self.reach / self.sigma
            if not np.any(off):
                break
            inside = (self.ends[0] < self.D) & (self.ends[1] > self.D)
            free = np.maximum(self.omega @ inside.astype(np.float64), LEAST_FREE)
            low, high = np.where(total > 0.0, self.level, low), np.where(total < 0.0, self.level, high)
            level = self.level + np.clip(total / free, -self.farthest, self.farthest)
            both = np.isfinite(low) & np.isfinite(high)
            halfway = 0.5 * (np.where(both, low, 0.0) + np.where(both, high, 0.0))
            level = np.where(both & ((level <= low) | (level >= high)), halfway, level)
            self.level = np.where(off, level, self.level)
            self._slopes()

    def bounds(self) -> tuple[HostArray, float, float]:
        """Unknowns, P there, and a lower bound of min P."""
        u = self._balanced()
        dual_coef = self.rows.T @ ((self.omega[:, None] * u) @ self.term.weighted_cols) / self.ridge  # (r, s)
        dual = float(self.omega @ self.term.loss.dual(self.term.theta, self.targets, u) @ self.weights)
        dual -= 0.5 * self.ridge * float(np.sum(dual_coef**2))
        C = self.V @ self.coef
        if self.partial:
            rest = dual_coef @ self.W
            rest -= self.V @ (self.V.T @ rest)
            self.offset = (self.rows @ rest) @ self.cols
            C += rest
        field = (self.leading @ self.coef) @ self.cols + self.offset
        level = self._best_level(field)
        field += level
        primal = float(self.omega @ self.term.loss.value(self.term.theta, self.targets, field) @ self.weights)
        primal += 0.5 * self.ridge * float(np.sum(C**2))
        c = np.linalg.solve(np.asarray(self.term.bias_cols), level)
        return np.concatenate([(C @ self.W.T).ravel(), c]), primal, dual

    def _balanced(self) -> HostArray:
        """u with Σ_i ω_i u_ij = 0 at every node."""
        self._settle(BALANCED)
        # rounding must not leave the interval; what is left of a sum goes by making the larger side smaller
        u = ((1.0 - 1e-15) * self.sigma) * self.D
        more, less = self.omega @ np.maximum(u, 0.0), -(self.omega @ np.minimum(u, 0.0))
        least = np.minimum(more, less)
        shares = [np.divide(least, side, out=np.ones_like(side), where=side > 0.0) for side in (more, less)]
        return np.asarray(np.where(u > 0.0, u * shares[0], u * shares[1]))

    def _best_level(self, field: HostArray) -> HostArray:
        """The b_j that minimise P for this field: there the slopes of the rows above and below a kink balance."""
        kinks = self.y - field
        order = np.argsort(kinks, axis=0)
        # a level beyond a kink takes its slope from the upper to the lower end
        jumps = np.take_along_axis(self.omega[:, None] * (self.high - self.low), order, axis=0)
        most = self.omega @ self.high
        slope, rounding = np.cumsum(jumps, axis=0) - most, 1e-12 * most
        # where no slope is left between two kinks, the level is halfway, which rounding does not change
        first, column = np.argmax(slope >= -rounding, axis=0), np.arange(most.size)
        second = np.where(np.any(slope > rounding, axis=0), np.argmax(slope > rounding, axis=0), first)
        return np.asarray(0.5 * (kinks[order[first, column], column] + kinks[order[second, column], column]))

    def adapt(self) -> None:
        """Change σ where one residual is much larger than the other."""

        def norm(values: HostArray) -> float:
            return float(np.sqrt(self.omega @ (values * values) @ self.weights)) + 1e-30

        apart, moved = norm(self.H - self.F) / norm(self.F), norm(self.H - self.before) / norm(self.D)
        change = float(np.clip(np.sqrt(apart / moved), 1.0 / MAX_CHANGE, MAX_CHANGE))
        change = min(change, self.largest / self.sigma)
        if max(change, 1.0 / change) ** 2 > UNBALANCED:
            self.sigma *= change
            self.D /= change
            self.ends = self._ends()
