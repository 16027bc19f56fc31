r"""Splitting with a free level at every node.

Rare classes and free biases are hard to combine: nearly all rows are at the kink of their loss, and only the level of
a node decides on which side. Here no level is part of a descent direction. With H = Φ C Ψᵀ + offset,

.. math:: \min_{H, C, b} \; \sum_{ij} \omega_i w_j \, \ell_j(y_i, H_{ij} + b_j) + \tfrac{\lambda}{2} \|C\|^2,

splitting (:mod:`~infinitask.solvers._splitting`) alternates between the ridge, which has a closed form in the joint
eigenbasis, and the losses. The best level of a node is found together with its losses: the slopes
u_ij = clip(σ_j (y_i − v_ij − b_j)) must balance, Σ_i ω_i u_ij = 0, which is one monotone equation for each b_j. Hence
every dual point balances, and its bound is good immediately. With 5 % positives (n = 1000, two features) and
λ = 1e-2, 1e-3 and 1e-4, a gap of 1e-4 takes 24, 56 and 141 iterations. With levels in the ridge step, and dual points
balanced afterwards, it took 270, 350 and more than 400.

Only the leading eigenvectors of the rows are split. The ridge dominates the losses in all other directions, and C is
Φᵀ ω u w Ψ/λ there, updated whenever the bounds are computed. Rows whose u are at the ends of their intervals at all
nodes are skipped after a while: their losses are linear there, and they add a constant term to C.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from infinitask._base.arrays import HostArray, as_like, host_double
from infinitask.objective import Objective, Smoothing
from infinitask.solvers._base import PERFECT_FIT, Ledger, Solution, Start
from infinitask.solvers._basis import DOMINATED, MAX_FEATURES_FOR_ALL
from infinitask.solvers._steps import CHANGE_LATER, HAND_OVER, RELAXATION, Looks, change, within_range

MAX_STEPS, PATIENCE = 1_600, 200
"""The maximum number of iterations. After PATIENCE iterations other engines take over if the gap is not expected to be
reached within this maximum. This happens if λ is so small that the rows are nearly interpolated."""

SMALL_RIDGE = 1e-2
"""The initial σ is one over the scale of the targets. It falls with λ if λ, relative to the mean of k(x, x), is below
this value."""

PAIRS_TOGETHER = 2**14
"""Nodes are visited in groups of about 16 000 pairs, whose arrays fit in the cache."""

FIRST_CHOICE, WORTH = 50, 0.7
"""From iteration FIRST_CHOICE on, rows are skipped if at most the fraction WORTH of them remains. All rows return for
good if the gap then stays above this fraction of the last one. Skipping halves the time for a small λ."""

DAMPING = 0.7
"""The step of the directions that are not split towards their best values, whenever the bounds are computed. With 1
the gap grows again if bounds are rare."""

BALANCED = 1e-7
"""Levels balance a node if the sum of its slopes is at most this fraction of the maximum sum of one side."""


def by_levels(objective: Objective, ledger: Ledger, start: Start | None) -> tuple[Solution, Start]:
    """Splitting with the level of each node found together with its losses; it always begins at 0."""
    ledger.certificate.floor = PERFECT_FIT * min(objective.typical_loss, objective.scale)
    run, looks, look = _Run(objective), Looks(ledger.aim), 20
    last, due, gap = min(ledger.max_iter, MAX_STEPS), 10, np.inf
    best, u, sigma = -np.inf, run.u, 1.0
    for step in range(1, last + 1):
        if step == due:
            run.adapting_step()
            due = int(np.ceil(CHANGE_LATER * step))
        else:
            run.step()
        if step in (look, last) or ledger.budget.over:
            z, primal, dual = run.bounds()
            if dual > best:
                best, u, sigma = dual, run.u, float(np.median(run.sigma))
            ledger.take(z, primal, dual, step, f"splitting with levels, σ {np.median(run.sigma):.1e}")
            before, gap = gap, ledger.certificate.gap
            looks.add(step, gap)
            if ledger.done or (step >= PATIENCE and looks.expected > MAX_STEPS):
                break
            if gap > WORTH * before:
                run.visit_all()
            elif step >= FIRST_CHOICE and gap > 3.0 * ledger.aim:
                run.skip_rows()
            look = step + looks.wait
    z, around = ledger.certificate.z, Smoothing((1.0 / sigma,), (as_like(u.T, objective.rows),))
    found = replace(ledger.solution(), smoothing=Smoothing((0.0,)), dual_at=Start(z, around))
    return found, Start(z, Smoothing((HAND_OVER / sigma,)), ledger.certificate.floor)


class _Run:
    """The state of the iterations: T = y − v, where v is the smoothing point of the losses, and D = u/σ, both (m, k).

    k rows are visited. All others keep u at an end of its interval at every node.
    """

    def __init__(self, objective: Objective) -> None:
        # everything is on the host: so few pairs cannot keep a device busy
        self.term = term = objective.integrals[0].mapped(host_double)
        self.rows, self.omega = host_double(objective.rows), host_double(objective.sample_weight)
        self.ridge = objective.alpha
        assert term.targets is not None
        self.weights, self.targets, self.cols = term.weights, term.targets, np.asarray(term.cols)
        self.largest_col = float(np.linalg.eigvalsh(self.cols.T @ (self.weights[:, None] * self.cols))[-1])
        n, m = self.rows.shape[0], self.weights.size
        row = term.row_of(slice(None))
        assert row is not None
        known = (np.broadcast_to(part, (n, m)).T for part in (row.low, row.high, term.targets))
        self.low, self.high, self.y = map(np.ascontiguousarray, known)
        size = float(np.median(np.abs(term.targets))) or 1.0
        self.farthest = 0.3 * size
        # the maximum sum of slopes on either side of a node
        self.reach = np.minimum(self.high @ self.omega, -(self.low @ self.omega))
        mean = float(self.omega @ np.einsum("ij,ij->i", self.rows, self.rows)) or 1.0
        first = min(1.0, self.ridge / (SMALL_RIDGE * mean)) / size
        self.level, self.u, self.final = np.zeros(m), np.zeros((m, n)), False
        self.rest = np.zeros((self.cols.shape[1], self.rows.shape[1]))
        self._choose_rows(np.arange(n), self.y, np.zeros((m, n)), np.full(m, first))
        for group in self.groups:
            self._balance_levels(group)
        self._aim_at(np.zeros((m, n)))

    def _choose_rows(self, kept: HostArray, T: HostArray, D: HostArray, sigma: HostArray) -> None:
        """Choose the rows to visit, given T and D of all rows."""
        self.kept, some = kept, slice(None) if kept.size == self.omega.size else kept
        self.some_omega = self.omega[some]
        self.e, self.V, self.leading, rest = leading(self.rows[some], self.some_omega, self.ridge / self.largest_col)
        self.pulling = np.ascontiguousarray((self.leading * self.some_omega).T)
        complete = self.V.shape[1] == min(kept.size, self.rows.shape[1])
        # the ridge dominates the losses in the directions that are not split
        self.largest = np.inf if complete else 0.5 * self.ridge / (rest * self.largest_col)
        self.T, self.D, self.between = T[:, some].copy(), D[:, some].copy(), (self.low[:, some], self.high[:, some])
        # the sum of slopes of the skipped rows at every node
        self.pull_of_others = self.u @ self.omega - self.u[:, some] @ self.some_omega
        count = max(4, PAIRS_TOGETHER // kept.size)
        self.groups = [slice(i, min(i + count, sigma.size)) for i in range(0, sigma.size, count)]
        self.raw, self.field = np.empty((count, kept.size)), np.empty((count, kept.size))
        self.inner = np.zeros((self.cols.shape[1], kept.size))
        self._change(np.minimum(sigma, self.largest), sigma)

    def _use(self, sigma: HostArray) -> None:
        """Set the steps σ_j (m,) and the corresponding eigenvectors of the columns."""
        self.sigma, weights = sigma, sigma * self.weights
        f, W = np.linalg.eigh(self.cols.T @ (weights[:, None] * self.cols))
        kept = f > 1e-13 * f[-1]
        self.W = W[:, kept]
        self.weighted = np.ascontiguousarray((weights[:, None] * (self.cols @ self.W)).T)
        self.shrink = 1.0 / (self.ridge + f[kept, None] * self.e)
        self.ends = self.between[0] / sigma[:, None], self.between[1] / sigma[:, None]

    def _aim_at(self, offset: HostArray) -> None:
        """Subtract the part of the field that is not split from the targets."""
        self.goal = self.y[:, self.kept] - offset
        self._pull()

    def _pull(self) -> None:
        """Compute (H + D − offset) σ w Ψ W transposed, for the ridge step, and its constant part."""
        self.pulled = self.weighted @ (self.goal - self.T + 2.0 * self.D)
        self.fixed = self.weighted @ self.goal

    def step(self) -> None:
        """One iteration."""
        self.coef = self.W @ ((self.pulled @ self.pulling) * self.shrink)
        self.inner = self.coef @ self.leading
        self.pulled = self.fixed.copy()
        for group in self.groups:
            T, D, size = self.T[group], self.D[group], group.stop - group.start
            raw, field = self.raw[:size], self.field[:size]
            # v = a F − (a − 1) H − D with H = v + D, a the relaxation
            np.matmul(self.cols[group], self.inner, out=field)
            np.subtract(self.goal[group], field, out=field)
            field += D
            field *= RELAXATION
            T *= 1.0 - RELAXATION
            T += field
            self._balance_levels(group)
            np.multiply(D, -2.0, out=raw)
            raw += T
            self.pulled -= self.weighted[:, group] @ raw

    def _balance_levels(self, group: slice) -> None:
        """Find levels at which D balances, by Newton's method with bisection as a safeguard."""
        nodes = np.arange(group.start, group.stop)
        T, D, (lowest, highest) = self.T[group], self.D[group], (end[group] for end in self.ends)
        level, enough = self.level[group].copy(), BALANCED * self.reach[group] / self.sigma[group]
        others = self.pull_of_others[group] / self.sigma[group]
        below, above = np.full(nodes.size, -np.inf), np.full(nodes.size, np.inf)
        for step in range(60):
            raw = np.subtract(T, level[:, None], out=self.raw[: nodes.size])
            np.maximum(raw, lowest, out=D)
            np.minimum(D, highest, out=D)
            total = D @ self.some_omega + others
            # a balanced node stays as it is: halving would move it, and the result would depend on rounding
            off = np.abs(total) > enough
            count = np.count_nonzero(off)
            if 2 * count <= nodes.size:  # the others are done
                self.level[nodes] = level
                if nodes.size < group.stop - group.start:
                    self.D[nodes] = D
                if not count:
                    return
                nodes, T, D, raw, lowest, highest = (part[off] for part in (nodes, T, D, raw, lowest, highest))
                level, enough, others, total = (part[off] for part in (level, enough, others, total))
                below, above = below[off], above[off]
                off = off[off]
            free = np.maximum((raw == D).astype(np.float64) @ self.some_omega, 1e-3)
            np.copyto(below, level, where=total > 0.0)
            np.copyto(above, level, where=total < 0.0)
            fresh = level + np.maximum(np.minimum(total / free, self.farthest), -self.farthest)
            strays = (fresh <= below) | (fresh >= above)
            if step and np.any(strays):
                both = np.isfinite(below) & np.isfinite(above) & strays
                fresh[both] = 0.5 * (below[both] + above[both])
            np.copyto(level, fresh, where=off)
        self.level[nodes] = level
        self.D[nodes] = D

    def bounds(self) -> tuple[HostArray, float, float]:
        """Return the unknowns, P at them, and a lower bound of min P."""
        self.u, term = self._balanced(), self.term
        dual = float(self.omega @ term.dual(self.targets, self.u.T) @ self.weights)
        dual_coef, rest = self._rest()
        dual -= 0.5 * self.ridge * float(np.sum(dual_coef**2))
        self.rest += DAMPING * (rest - self.rest)
        C = self.coef @ self.V.T + self.rest
        self.all = self.cols @ (C @ self.rows.T)
        self._aim_at(self.all[:, self.kept] - self.cols @ self.inner)
        level = self._best_level(self.all)
        field = self.all + level[:, None]
        primal = float(self.omega @ term.value(self.targets, field.T) @ self.weights)
        primal += 0.5 * self.ridge * float(np.sum(C**2))
        c = np.linalg.solve(np.asarray(term.bias_cols), level)
        return np.concatenate([C.T.ravel(), c]), primal, dual

    def _rest(self) -> tuple[HostArray, HostArray]:
        """C of the dual point, and its part outside the directions that are split, each (s, r)."""
        pulls = np.asarray(self.term.weighted_cols).T @ (self.u * self.omega) / self.ridge
        dual_coef = pulls @ self.rows
        return dual_coef, dual_coef - (pulls[:, self.kept] @ self.leading.T) @ self.V.T

    def skip_rows(self) -> None:
        """Visit only rows with a u inside its interval."""
        inside = np.any((self.ends[0] < self.D) & (self.ends[1] > self.D), axis=0)
        if not self.final and 0 < np.count_nonzero(inside) <= WORTH * inside.size:
            self._go_on_with(self.kept[inside])

    def visit_all(self) -> None:
        """Visit all rows from now on, if some were skipped."""
        if self.kept.size < self.omega.size:
            self.final = True
            self._go_on_with(np.arange(self.omega.size))

    def _go_on_with(self, kept: HostArray) -> None:
        D = self.u / self.sigma[:, None]
        T = self.y - self.all + D
        T[:, self.kept], D[:, self.kept] = self.T, self.D
        self._choose_rows(kept, T, D, self.sigma)
        self.rest = self._rest()[1]
        self._aim_at(self.cols @ (self.rest @ self.rows[kept].T))

    def _balanced(self) -> HostArray:
        """Return u of all rows with Σ_i ω_i u_ij = 0 at every node, (m, n)."""
        for group in self.groups:
            self._balance_levels(group)
        # rounding must not leave the interval; a remaining imbalance is removed by shrinking the larger side
        u = self.u.copy()
        u[:, self.kept] = ((1.0 - 1e-15) * self.sigma)[:, None] * self.D
        more, less = np.maximum(u, 0.0) @ self.omega, -(np.minimum(u, 0.0) @ self.omega)
        least = np.minimum(more, less)
        factors = [np.divide(least, side, out=np.ones_like(side), where=side > 0.0) for side in (more, less)]
        return np.asarray(np.where(u > 0.0, u * factors[0][:, None], u * factors[1][:, None]))

    def _best_level(self, field: HostArray) -> HostArray:
        """The b_j that minimise P for this field: the slopes of the rows above and below a kink balance there."""
        kinks = self.y - field
        order = np.argsort(kinks, axis=1)
        # a level beyond a kink moves its slope from the upper to the lower end
        jumps = np.take_along_axis(self.omega * (self.high - self.low), order, axis=1)
        most = self.high @ self.omega
        slope, rounding = np.cumsum(jumps, axis=1) - most[:, None], 1e-12 * most[:, None]
        # if the slope vanishes between two kinks, the level is their midpoint, which is stable under rounding
        first, node = np.argmax(slope >= -rounding, axis=1), np.arange(most.size)
        second = np.where(np.any(slope > rounding, axis=1), np.argmax(slope > rounding, axis=1), first)
        return np.asarray(0.5 * (kinks[node, order[node, first]] + kinks[node, order[node, second]]))

    def adapting_step(self) -> None:
        """Run one iteration; change σ_j if one residual of a node is much larger than the other."""
        before = self.D - self.T
        self.step()
        now, field = self.D - self.T, self.cols @ self.inner
        values = (self.goal + now - field, now - before, self.y[:, self.kept] - self.goal + field, self.D)
        sigma = within_range(self.sigma * change(np.array([(value * value) @ self.some_omega for value in values])))
        self._change(np.minimum(sigma, self.largest), self.sigma)
        self._pull()

    def _change(self, sigma: HostArray, before: HostArray) -> None:
        """Change the steps; keep H and u."""
        fresh = self.D * (before / sigma)[:, None]
        self.T += fresh - self.D
        self.D = fresh
        self._use(sigma)


def leading(rows: HostArray, omega: HostArray, ridge: float) -> tuple[HostArray, HostArray, HostArray, float]:
    """The eigenvectors whose eigenvalues are not small relative to the ridge; at least one.

    Returns
    -------
    e : ndarray (k,)
        Eigenvalues of ΦᵀωΦ.
    V : ndarray (r, k)
    values : ndarray (k, n)
        Φ V transposed.
    rest : float
        An approximate upper bound of all other eigenvalues.
    """
    n, r = rows.shape
    count, rng, few = 64, np.random.default_rng(0), min(n, r) <= MAX_FEATURES_FOR_ALL
    single = rows if few else rows.astype(np.float32)
    while not few and count <= min(n, r) // 3:
        # One step of subspace iteration: the vectors need not be exact because the ridge dominates the remainder.
        probes = single @ rng.standard_normal((r, count), dtype=np.float32)
        probes *= omega[:, None].astype(np.float32)
        Q = np.linalg.qr((single.T @ probes).astype(np.float64))[0]
        Z = rows @ Q
        e, S = np.linalg.eigh(Z.T @ (omega[:, None] * Z))
        if e[0] <= ridge:  # the ridge dominates the losses in all other directions
            kept = e > min(DOMINATED * ridge, 0.5 * float(e[-1]))
            S = S[:, kept]
            return e[kept], Q @ S, np.ascontiguousarray((Z @ S).T), max(float(e[0]), DOMINATED * ridge)
        count *= 2
    scaled = rows * np.sqrt(omega)[:, None]
    e, V = np.linalg.eigh(scaled @ scaled.T if n < r else scaled.T @ scaled)
    kept = e > min(DOMINATED * ridge, 0.5 * float(e[-1]))
    kept[-1] = True  # also if all rows are equal and every direction has size zero
    e, V = e[kept], np.ascontiguousarray(V[:, kept])
    if n < r:
        V = (scaled.T @ V) / np.sqrt(np.maximum(e, np.finfo(float).tiny))
    return e, V, np.ascontiguousarray((rows @ V).T), DOMINATED * ridge
