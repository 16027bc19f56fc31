r"""Level sets by one-class machines, whatever the ridge on t is.

For a given t the problem falls apart into its nodes. The best h of node θ is that of the one-class machine whose
threshold is t(θ). With b = θ times the dual point, the machine of a fraction s is

.. math:: \min_b \; \tfrac12 b^\top K b \quad \text{such that} \quad \sum_i b_i = s, \; 0 \le b_i \le \omega_i,

whose threshold ρ(s) is the field K b of rows strictly between their bounds; it grows with s. With h = K b/(αθ) the
threshold of node θ is ρ(s)/(αθ) for some s near θ. What is left is a problem in t alone,

    min over t   Σ_j w_j (S(α θ_j t_j)/(α θ_j²) − t_j) + (λ/2)‖t‖²,    S′(ρ) = s(ρ), the fraction whose threshold is ρ,

convex, with as many unknowns as t has. ρ is known at the fractions of some machines, and linear between is near enough
where these are the fractions that the nodes take: their machines join until the gap is reached.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn import config_context
from sklearn.svm import OneClassSVM

from infinitask._base.arrays import HostArray, as_like, to_host
from infinitask.objective import Objective, Smoothing
from infinitask.solvers._base import PERFECT_FIT, Ledger, Solution, Start

MACHINE_TOLERANCE = 1e-5
"""Tolerance of a machine: fields on its margin differ by as much, in terms of the largest entry of K times n."""

ROUNDS, AIM = 5, 0.15
"""Machines join up to five times, until the gap is at most 0.15 of the one asked for: folds of a calibration ask for
large gaps, and the levels at which points leave the sets need smaller ones."""

LOWER = 0.5
"""Fractions lie below their nodes where t is held by its ridge. At first they are known down to this part of the
smallest node; where that is not enough, three halvings further."""


def by_machines(objective: Objective, ledger: Ledger, start: Start | None) -> tuple[Solution, Start]:
    """One-class machines of the nodes, and the bias that joins them; no start is as good.

    The Gram matrix may be off by rounding: bounds are computed with Φ.
    """
    ledger.certificate.floor = PERFECT_FIT * min(objective.typical_loss, objective.scale)
    omega = to_host(objective.sample_weight)
    counted = np.flatnonzero(omega > 0.0)
    rows, omega_of = np.asarray(objective.rows)[counted], omega[counted]
    K = rows @ rows.T if objective.gram is None else objective.gram
    if K.shape[0] != counted.size:
        K = K[np.ix_(counted, counted)]
    machines = Machines(K, omega_of)
    problem = _Threshold(machines, objective)
    theta, weights, cols = problem.theta, problem.weights, objective.host_integrals[0].cols
    smoothing = Smoothing((1e-3 * objective.scale,))
    asked = np.append(np.sort(theta)[::2], LOWER * np.min(theta))  # half of the nodes are mostly enough
    for _ in range(ROUNDS):
        machines.add(asked)
        c = problem.best()
        asked = problem.fractions(c)
        b = np.column_stack([machines.machine(s) for s in asked])
        A = np.clip(b, 0.0, omega_of[:, None]) / theta  # rounding must not leave the dual's interval
        C = rows.T @ A @ (weights[:, None] * cols) / objective.alpha
        pull = (weights * np.sum(A, axis=0)) @ problem.cols - problem.linear
        dual = -0.5 * objective.alpha * float(np.sum(C**2)) - 0.5 * float(pull @ pull) / problem.ridge
        z = np.concatenate([C.ravel(), c])
        ledger.certificate.take(z, np.inf, dual)
        ledger.evaluate(z, smoothing, "machines")
        if ledger.exhausted or ledger.certificate.gap <= AIM * ledger.tol:
            break
        lowest = machines.fractions[0]
        asked = np.where(asked <= lowest, LOWER**3 * lowest, asked)
    U = np.zeros((omega.size, theta.size))
    U[counted] = A / omega_of[:, None]
    at = Start(z, Smoothing(smoothing.kappa, (as_like(U, objective.rows),)))
    found = replace(ledger.solution(), smoothing=smoothing, dual_at=at)
    return found, Start(z, smoothing, ledger.certificate.floor)


class Machines:
    """One-class machines of some fractions, and mixtures of neighbours between them.

    A mixture is a dual point of the fraction between its neighbours, and all but its machine.

    Parameters
    ----------
    K : ndarray (n, n)
        The Gram matrix.
    omega : ndarray (n,)
        Weights of the rows, positive and summing to one.

    Attributes
    ----------
    fractions, thresholds : ndarray (k,)
        s and ρ; both ascend.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(50, 1))
    >>> machines = Machines(np.exp(-((x - x.T) ** 2)), np.full(50, 1 / 50))
    >>> machines.add(np.linspace(0.1, 0.9, 9))
    >>> b = machines.machine(0.25)
    >>> bool(abs(np.sum(b) - 0.25) < 1e-9), bool(np.all(b <= 1 / 50 + 1e-12))
    (True, True)
    """

    def __init__(self, K: HostArray, omega: HostArray) -> None:
        self.K, self.omega = K, omega
        # at s = 1 all rows are outside
        self.fractions, self.thresholds = np.ones(1), np.array([np.max(K @ omega)])
        self._machines = omega[None, :]

    def add(self, fractions: HostArray) -> None:
        """Solve the machines of more fractions in (0, 1]."""
        fresh = [s for s in np.unique(fractions) if np.min(np.abs(self.fractions - s)) > 1e-12]
        for s in fresh:
            machine = OneClassSVM(kernel="precomputed", nu=float(s), tol=MACHINE_TOLERANCE)
            with config_context(assume_finite=True):
                machine.fit(self.K, sample_weight=self.omega.size * self.omega)
            b = np.zeros(self.omega.size)
            b[machine.support_] = machine.dual_coef_[0]
            scale = float(s) / float(np.sum(b))
            k = int(np.searchsorted(self.fractions, s))
            self.fractions = np.insert(self.fractions, k, s)
            self.thresholds = np.insert(self.thresholds, k, scale * float(machine.offset_[0]))
            self._machines = np.insert(self._machines, k, np.minimum(scale * b, self.omega), axis=0)
        self.thresholds = np.maximum.accumulate(self.thresholds)  # rounding must not turn the order

    def machine(self, fraction: float) -> HostArray:
        """b(s), (n,)."""
        k = int(np.clip(np.searchsorted(self.fractions, fraction), 1, len(self.fractions) - 1))
        low, high = self.fractions[k - 1 : k + 1]
        share = (fraction - low) / (high - low)
        return np.asarray((1.0 - share) * self._machines[k - 1] + share * self._machines[k])


class _Threshold:
    """The problem in t alone; its unknowns are the coefficients c of the bias b = −t.

    Parameters
    ----------
    machines : Machines
    objective : Objective
    """

    def __init__(self, machines: Machines, objective: Objective) -> None:
        term = objective.host_integrals[0]
        assert term.bias_cols is not None
        self.machines, self.theta, self.weights, self.cols = (
            machines,
            np.ravel(term.theta),
            term.weights,
            term.bias_cols,
        )
        self.linear = objective.linear[objective.size - objective.bias_size :]
        self.alpha, self.ridge = objective.alpha, objective.alpha_bias

    def fractions(self, c: HostArray) -> HostArray:
        """s of every node, (m,)."""
        return self._fraction(self._rho(c))

    def best(self) -> HostArray:
        """The best c."""
        s, rho = self.machines.fractions, self.machines.thresholds
        self.areas = np.concatenate([[0.0], np.cumsum(0.5 * np.diff(rho) * (s[1:] + s[:-1]))])
        target = -np.interp(self.theta, s, rho) / (self.alpha * self.theta)
        scaled = 10.0 * self.weights[:, None] * self.cols  # near the thresholds of the nodes at first
        c = np.linalg.solve(self.cols.T @ scaled + self.ridge * np.eye(self.linear.size), scaled.T @ target)
        value = self._value(c)
        for _ in range(50):
            step, found = self._step(c), value
            for length in 0.5 ** np.arange(12):
                new = c - length * step
                found = self._value(new)
                if found < value:
                    break
            if not found < value - 1e-10 * abs(value):
                return np.asarray(new if found < value else c)
            c, value = new, found
        return np.asarray(c)

    def _rho(self, c: HostArray) -> HostArray:
        return np.asarray(-self.alpha * self.theta * (self.cols @ c))

    def _fraction(self, rho: HostArray) -> HostArray:
        """s(ρ)."""
        return np.asarray(np.interp(rho, self.machines.thresholds, self.machines.fractions))

    def _value(self, c: HostArray) -> float:
        """The objective, up to a constant."""
        rho, known = self._rho(c), self.machines.thresholds
        k = np.clip(np.searchsorted(known, rho, side="right") - 1, 0, known.size - 1)
        area = self.areas[k] + 0.5 * (rho - known[k]) * (self._fraction(rho) + self._fraction(known[k]))
        risk = float(self.weights @ (area / (self.alpha * self.theta**2)))
        return risk + float(self.linear @ c + 0.5 * self.ridge * c @ c)

    def _step(self, c: HostArray) -> HostArray:
        """Newton's step."""
        rho = self._rho(c)
        width = 1e-3 * float(self.machines.thresholds[-1])  # s′ is the slope of a secant
        bend = (self._fraction(rho + width) - self._fraction(rho - width)) / (2.0 * width)
        gradient = self.linear + self.ridge * c - self.cols.T @ (self.weights * self._fraction(rho) / self.theta)
        bend = self.weights * self.alpha * np.maximum(bend, 1e-3 * np.max(bend))
        hessian = self.cols.T @ (bend[:, None] * self.cols)
        return np.asarray(np.linalg.solve(hessian + self.ridge * np.eye(c.size), gradient))
