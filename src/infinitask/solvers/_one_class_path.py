r"""All one-class machines by one walk over the fraction outside the level set.

If every node has an h of its own, the level set problem separates, up to the ridge on t, into the one-class machines of
its nodes. With b = θ times the dual point, the machine of θ is

.. math:: \min_b \; \tfrac12 b^\top K b \quad \text{such that} \quad \sum_i b_i = \theta, \; 0 \le b_i \le \omega_i,

a programme in the single number θ, whose solution is piecewise linear. The walk begins at θ = 1 with b = ω and goes
down. Rows strictly between their bounds, the margin M, move along K_MM⁻¹ 1, and their fields remain equal, K b = ρ. A
row joins or leaves the margin at each event. All machines together cost about as much as ten separate ones (n = 2 000).
ρ grows with θ, and is linear between events.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.svm import OneClassSVM

from infinitask._base.arrays import HostArray

JITTER = 1e-6
"""Added to the diagonal of K, relative to its largest entry. It distinguishes nearly equal rows, and makes fields of
rows on the margin equal only to a millionth of b, so that a threshold can separate them. The objective changes by a
relative 1e-6."""

RENEWED = 300
"""K b is recomputed every 300 events because updates accumulate rounding errors."""

WORK_PER_PAIR = 400.0
"""The walk stops early after n² times this number of operations, with n at least 1 000. With a narrow kernel most rows
are on the margin, and separate machines are faster."""

REMEMBERED = 64
"""b is stored at every 64th event; the steps in between are repeated from there."""

KNOT_TOL = 1e-5
"""Tolerance of a machine: the largest difference of fields on its margin, relative to n times the maximum of K."""


class Path:
    """The machines of all fractions from one down to ``smallest``.

    Parameters
    ----------
    K : ndarray (n, n)
        The Gram matrix.
    omega : ndarray (n,)
        Weights of the rows, positive and summing to one.
    smallest : float
        In (0, 1).

    Attributes
    ----------
    fractions, thresholds : ndarray (k,)
        θ and ρ of the events; both ascend, and ρ is linear in between.
    too_wide : bool
        Whether the walk ended early because the margin had too many rows: ``fractions`` begin at its end.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(50, 1))
    >>> K = np.exp(-((x - x.T) ** 2))
    >>> path = Path(K, np.full(50, 1 / 50), 0.05)
    >>> b, rho = path.machine(0.1), path.threshold(0.1)
    >>> bool(np.mean(K @ b < rho - 1e-6) <= 0.1 <= np.mean(K @ b < rho + 1e-6))
    True
    """

    def __init__(self, K: HostArray, omega: HostArray, smallest: float) -> None:
        walk = _Walk(K, omega)
        while walk.theta > smallest and not walk.too_wide:
            walk.event(smallest)
        self.too_wide = walk.theta > smallest
        self._steps, self._kept = walk.steps, walk.kept
        self._begun = np.array([step.theta for step in walk.steps])  # θ at which each step begins, descending
        ends = [(step.theta, step.rho) for step in walk.steps] + [(walk.theta, walk.rho)]
        self.fractions, self.thresholds = np.array(ends[::-1]).T
        # rounding must not change the order
        self.fractions, self.thresholds = (np.maximum.accumulate(a) for a in (self.fractions, self.thresholds))

    def threshold(self, fraction: Any) -> HostArray:
        """ρ(θ)."""
        return np.asarray(np.interp(fraction, self.fractions, self.thresholds))

    def machine(self, fraction: float) -> HostArray:
        """b(θ), (n,)."""
        last = int(np.clip(np.searchsorted(-self._begun, -fraction, side="right") - 1, 0, len(self._steps) - 1))
        first = last - last % REMEMBERED
        b = self._kept[first // REMEMBERED].copy()
        for step in self._steps[first:last]:
            b[step.rows] = step.after
        step = self._steps[last]
        b[step.rows] = step.before + (step.theta - fraction) * step.rate
        return b


class _Step(NamedTuple):
    """The changes between two events."""

    theta: float
    """θ at the beginning."""
    rho: float
    """ρ at the beginning."""
    rows: HostArray
    """The rows on the margin."""
    before: HostArray
    """b of these rows."""
    rate: HostArray
    """The change of b per unit by which θ falls."""
    after: HostArray
    """b at the end, on a bound if a row leaves."""


class _Margin:
    """The rows between their bounds, with their columns of K, their Gram matrix and its inverse."""

    def __init__(self, K: HostArray, jitter: float) -> None:
        self.K, self.jitter = K, jitter
        self.rows: list[int] = []
        self._gram, self._inverse, self._columns = np.empty((64, 64)), np.empty((64, 64)), np.empty((64, len(K)))

    @property
    def gram(self) -> HostArray:
        """K_MM."""
        m = len(self.rows)
        return self._gram[:m, :m]

    @property
    def inverse(self) -> HostArray:
        """K_MM⁻¹, up to rounding."""
        m = len(self.rows)
        return self._inverse[:m, :m]

    @property
    def columns(self) -> HostArray:
        """The columns of K for the rows of the margin, (m, n)."""
        return self._columns[: len(self.rows)]

    def add(self, row: int) -> None:
        """Add a row."""
        m = len(self.rows)
        if m == len(self._gram):
            self._gram, self._inverse = (np.pad(matrix, (0, m)) for matrix in (self._gram, self._inverse))
            self._columns = np.pad(self._columns, ((0, m), (0, 0)))
        self._columns[m] = self.K[row]
        along, own = self.K[row][self.rows], float(self.K[row, row]) + self.jitter
        self._gram[m, :m] = self._gram[:m, m] = along
        self._gram[m, m] = own
        u = self.inverse @ along
        rest = own - float(along @ u)
        self.rows.append(row)
        if rest <= 10.0 * self.jitter:  # nearly a linear combination of the others
            self._invert()
            return
        self._inverse[:m, :m] += np.multiply.outer(u, u / rest)
        self._inverse[m, :m] = self._inverse[:m, m] = -u / rest
        self._inverse[m, m] = 1.0 / rest

    def drop(self, k: int) -> int:
        """Remove the row at position k; the last one takes its place."""
        m, last = len(self.rows), len(self.rows) - 1
        for matrix in (self._gram, self._inverse):
            matrix[[k, last], :m] = matrix[[last, k], :m]
            matrix[:m, [k, last]] = matrix[:m, [last, k]]
        self._columns[k] = self._columns[last]
        self.rows[k], row = self.rows[last], self.rows[k]
        self.rows.pop()
        column = self._inverse[:last, last].copy()
        self.inverse[...] -= np.multiply.outer(column, column / self._inverse[last, last])
        return row

    def direction(self) -> HostArray:
        """K_MM⁻¹ 1."""
        v = self._solved()
        if np.max(np.abs(1.0 - self.gram @ v)) > 1e-7:
            self._invert()
            v = self._solved()
        return v

    def _solved(self) -> HostArray:
        v = np.sum(self.inverse, axis=1)
        return np.asarray(v + self.inverse @ (1.0 - self.gram @ v))

    def _invert(self) -> None:
        self.inverse[...] = np.linalg.inv(self.gram)


class _Walk:
    """The state of the walk: b, the sides of the rows, and the distance of their fields from ρ."""

    def __init__(self, K: HostArray, omega: HostArray) -> None:
        self.K, self.omega = K, omega
        self.largest = float(np.max(np.diagonal(K))) or 1.0  # every machine is optimal if K is 0
        self.b, self.theta = omega.copy(), float(np.sum(omega))
        self.side = np.ones(omega.size)
        """1 outside the level set (b = ω), −1 inside (b = 0), 0 on its boundary."""
        self.margin = _Margin(K, JITTER * self.largest)
        self.above, self.rho, self.work = K @ self.b, 0.0, 0.0
        self.steps: list[_Step] = []
        self.kept: list[HostArray] = []
        self._begin()

    def _begin(self) -> None:
        """Begin with a margin of one row, the nearest one outside."""
        first = int(np.argmax(np.where(self.side > 0.0, self.above, -np.inf)))
        self.margin.add(first)
        self.side[first] = 0.0
        self._measure(self.above + self.rho)

    def _measure(self, field: HostArray) -> None:
        """Compute ρ and K b − ρ."""
        rows = self.margin.rows
        self.rho = float(np.mean(field[rows] + self.margin.jitter * self.b[rows]))
        self.above = field - self.rho

    @property
    def too_wide(self) -> bool:
        """Whether the margin is so wide that other methods are faster."""
        return self.work > WORK_PER_PAIR * max(self.b.size, 1_000) ** 2

    def event(self, fraction: float) -> None:
        """Walk from one event to the next, or to a fraction."""
        margin, rows = self.margin, np.array(self.margin.rows)
        self.work += 12.0 * rows.size**2 + 2.0 * rows.size * self.b.size
        if len(self.steps) % RENEWED == RENEWED - 1:
            self._measure(self.K @ self.b)
        if len(self.steps) % REMEMBERED == 0:
            self.kept.append(self.b.copy())
        v = margin.direction()
        total = float(np.sum(v))
        db, drho = -v / total, -1.0 / total  # per unit by which θ falls
        above = db @ margin.columns - drho
        leaves, joins = _time(self.b[rows], db, self.omega[rows]), self._meetings(above)
        k, j = int(np.argmin(leaves)), int(np.argmin(joins))
        step = min(self.theta - fraction, leaves[k], joins[j])
        before, theta, rho = self.b[rows], self.theta, self.rho
        self.b[rows] = before + step * db
        self.above += step * above
        self.rho += step * drho
        self.theta -= step
        if step == joins[j]:
            margin.add(j)
            self.side[j] = 0.0
        elif step == leaves[k]:
            self._leave(k)
        self.steps.append(_Step(theta, rho, rows, before, db, self.b[rows]))

    def _meetings(self, rate: HostArray) -> HostArray:
        """When each row reaches the margin, whose fields change at this rate; inf for rows that do not reach it."""
        times = np.full(rate.size, np.inf)
        comes = self.side * rate > 1e-12 * self.largest  # smaller values are rounding
        np.divide(-self.above, rate, out=times, where=comes)
        return np.asarray(np.maximum(times, 0.0))

    def _leave(self, k: int) -> None:
        row = self.margin.drop(k)
        up = self.b[row] > 0.5 * self.omega[row]
        self.b[row] = self.omega[row] if up else 0.0
        self.side[row] = 1.0 if up else -1.0
        if not self.margin.rows:
            self._begin()


def _time(b: HostArray, db: HostArray, omega: HostArray) -> HostArray:
    """When moving entries reach one of their bounds."""
    times = np.full(b.size, np.inf)
    np.divide(-b, db, out=times, where=db < 0.0)
    np.divide(omega - b, db, out=times, where=db > 0.0)
    return np.asarray(np.maximum(times, 0.0))


class Knots:
    """One-class machines of some fractions, solved separately, with mixtures of neighbours in between.

    For kernels so narrow that most rows are on the margin: a walk inverts the Gram matrix of the margin, while the
    machines of scikit-learn change two rows at a time. A mixture is a dual point of the fraction between its
    neighbours, and nearly optimal. The attributes are those of :class:`Path`. A walk that ended early serves the
    fractions it covered.

    Parameters
    ----------
    K : ndarray (n, n)
    omega : ndarray (n,)
        Positive, summing to one.
    fractions : ndarray (k,)
        Ascending, in (0, 1), and below the fractions of the walk.
    walk : Path or None
        The machines of larger fractions.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(50, 1))
    >>> K = np.exp(-((x - x.T) ** 2))
    >>> knots = Knots(K, np.full(50, 1 / 50), np.linspace(0.1, 0.9, 9))
    >>> b, rho = knots.machine(0.25), knots.threshold(0.25)
    >>> bool(abs(np.sum(b) - 0.25) < 1e-9), bool(np.all(b <= 1 / 50 + 1e-12))
    (True, True)
    """

    def __init__(self, K: HostArray, omega: HostArray, fractions: HostArray, walk: Path | None = None) -> None:
        n, self._walk = omega.size, walk
        machines, thresholds = [], []
        for fraction in fractions:
            machine = OneClassSVM(kernel="precomputed", nu=float(fraction), tol=KNOT_TOL, cache_size=1_000)
            machine.fit(K, sample_weight=n * omega)
            b = np.zeros(n)
            b[machine.support_] = machine.dual_coef_[0]
            scale = float(fraction) / float(np.sum(b))
            machines.append(np.minimum(scale * b, omega))
            thresholds.append(scale * float(machine.offset_[0]))
        if walk is None:  # all rows are outside at θ = 1
            last, above = [1.0], [float(np.max(K @ omega))]
            machines.append(omega)
        else:
            last, above = walk.fractions, walk.thresholds
            machines.append(walk.machine(float(last[0])))
        self._machines = np.array(machines)
        self.fractions = np.array([*fractions, *last])
        self.thresholds = np.maximum.accumulate([*thresholds, *above])

    def threshold(self, fraction: Any) -> HostArray:
        """ρ(θ)."""
        return np.asarray(np.interp(fraction, self.fractions, self.thresholds))

    def machine(self, fraction: float) -> HostArray:
        """b(θ), (n,)."""
        if self._walk is not None and fraction >= self._walk.fractions[0]:
            return self._walk.machine(fraction)
        k = int(np.clip(np.searchsorted(self.fractions, fraction), 1, len(self._machines) - 1))
        low, high = self.fractions[k - 1 : k + 1]
        weight = (fraction - low) / (high - low)
        return np.asarray((1.0 - weight) * self._machines[k - 1] + weight * self._machines[k])
