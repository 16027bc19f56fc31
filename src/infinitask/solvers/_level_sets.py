"""Level sets by a walk over the fraction: exact up to rounding, for any ridge on t.

For a given t the problem separates into its nodes. The best h of node θ is that of the one-class machine with
threshold t(θ). This is the machine of some fraction s near θ: with h = K b/(αθ) its threshold is ρ(s)/(αθ), see
:mod:`~infinitask.solvers._one_class_path`. The remaining problem is in t alone,

    min over t   Σ_j w_j (S(α θ_j t_j)/(α θ_j²) − t_j) + (λ/2)‖t‖²,    S′(ρ) = s(ρ), the fraction whose threshold is ρ,

convex, with the unknowns of t. The walk gives s, and Newton's method takes a few milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from infinitask._base.arrays import HostArray, as_like, to_host
from infinitask.objective import Objective, Smoothing
from infinitask.solvers._base import PERFECT_FIT, Ledger, Solution, Start
from infinitask.solvers._one_class_path import Knots, Path

BELOW = (0.5, 0.001)
"""The walk continues down to this fraction of the smallest node: the ridge on t makes fractions smaller than their
nodes. The second number applies if the ridge is so large that the first is not enough."""


def by_walk(objective: Objective, ledger: Ledger, start: Start | None) -> tuple[Solution, Start]:
    """Solve all one-class machines by one walk, and find the bias that joins them; ``start`` is ignored.

    The Gram matrix may be inexact due to rounding, so bounds are computed with Φ.
    """
    ledger.certificate.floor = PERFECT_FIT * min(objective.typical_loss, objective.scale)
    omega = to_host(objective.sample_weight)
    counted = np.flatnonzero(omega > 0.0)
    rows, omega_of = np.asarray(objective.rows)[counted], omega[counted]
    K = rows @ rows.T if objective.gram is None else objective.gram
    if K.shape[0] != counted.size:
        K = K[np.ix_(counted, counted)]
    theta, cols = np.ravel(objective.host_integrals[0].theta), objective.host_integrals[0].cols
    smoothing = Smoothing((1e-3 * objective.scale,))
    for path in _paths(K, omega_of, theta):
        problem = _Threshold(path, objective)
        weights, c = problem.weights, problem.best()
        machines = np.column_stack([path.machine(s) for s in problem.fractions(c)])
        A = np.clip(machines, 0.0, omega_of[:, None]) / theta  # rounding must not leave the dual interval
        C = rows.T @ A @ (weights[:, None] * cols) / objective.alpha
        pull = (weights * np.sum(A, axis=0)) @ problem.cols - problem.linear
        dual = -0.5 * objective.alpha * float(np.sum(C**2)) - 0.5 * float(pull @ pull) / problem.ridge
        z = np.concatenate([C.ravel(), c])
        ledger.certificate.take(z, np.inf, dual)
        ledger.evaluate(z, smoothing, "walk")
        if ledger.converged or ledger.exhausted:
            break
    U = np.zeros((omega.size, theta.size))
    U[counted] = A / omega_of[:, None]
    at = Start(z, Smoothing(smoothing.kappa, (as_like(U, objective.rows),)))
    found = replace(ledger.solution(), smoothing=smoothing, dual_at=at)
    return found, Start(z, smoothing, ledger.certificate.floor)


def _paths(K: HostArray, omega: HostArray, theta: HostArray) -> Iterator[Path | Knots]:
    """Yield the machines of all fractions that the nodes may need, then those of more fractions if necessary."""
    smallest = float(np.min(theta))
    for below in BELOW:
        path = Path(K, omega, below * smallest)
        if path.too_wide and path.fractions[0] > BELOW[0] * smallest:
            break
        yield path
        if path.too_wide:  # it covers more fractions than the first one, and may need no further machine
            return
    else:
        return
    rest = np.sort(theta[theta < path.fractions[0]])
    for knots in (rest[::2], rest):  # half of them take less time and usually suffice
        yield Knots(K, omega, np.unique([BELOW[0] * smallest, *knots]), path)


class _Threshold:
    """The problem in t alone; its unknowns are the coefficients c of the bias b = −t.

    Parameters
    ----------
    path : Path or Knots
    objective : Objective
    """

    def __init__(self, path: Path | Knots, objective: Objective) -> None:
        term = objective.host_integrals[0]
        assert term.bias_cols is not None
        self.path, self.theta, self.weights, self.cols = path, np.ravel(term.theta), term.weights, term.bias_cols
        self.linear = objective.linear[objective.size - objective.bias_size :]
        self.alpha, self.ridge = objective.alpha, objective.alpha_bias
        rho, s = path.thresholds, path.fractions
        self.areas = np.concatenate([[0.0], np.cumsum(0.5 * np.diff(rho) * (s[1:] + s[:-1]))])

    def fractions(self, c: HostArray) -> HostArray:
        """s of every node, (m,)."""
        return self._fraction(self._rho(c))

    def best(self) -> HostArray:
        """The best c."""
        target = -self.path.threshold(self.theta) / (self.alpha * self.theta)
        scaled = 10.0 * self.weights[:, None] * self.cols  # starts near the thresholds of the nodes
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
        return np.asarray(np.interp(rho, self.path.thresholds, self.path.fractions))

    def _value(self, c: HostArray) -> float:
        """The objective, up to a constant."""
        rho, known = self._rho(c), self.path.thresholds
        k = np.clip(np.searchsorted(known, rho, side="right") - 1, 0, known.size - 1)
        area = self.areas[k] + 0.5 * (rho - known[k]) * (self._fraction(rho) + self._fraction(known[k]))
        risk = float(self.weights @ (area / (self.alpha * self.theta**2)))
        return risk + float(self.linear @ c + 0.5 * self.ridge * c @ c)

    def _step(self, c: HostArray) -> HostArray:
        """One step of Newton's method."""
        rho = self._rho(c)
        # s′ is the slope of a secant; thresholds of a narrow kernel differ by factors of a thousand
        width = 1e-3 * np.clip(rho, self.path.thresholds[0], self.path.thresholds[-1])
        bend = (self._fraction(rho + width) - self._fraction(rho - width)) / (2.0 * width)
        gradient = self.linear + self.ridge * c - self.cols.T @ (self.weights * self._fraction(rho) / self.theta)
        bend = self.weights * self.alpha * np.maximum(bend, 1e-3 * np.max(bend))
        hessian = self.cols.T @ (bend[:, None] * self.cols)
        return np.asarray(np.linalg.solve(hessian + self.ridge * np.eye(c.size), gradient))
