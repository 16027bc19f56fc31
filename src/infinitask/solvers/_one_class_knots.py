"""One-class machines of some fractions, solved separately, for kernels so narrow that most rows are on the margin.

A walk (:mod:`~infinitask.solvers._one_class_path`) inverts the Gram matrix of the margin. The machines of scikit-learn
change two rows at a time, at a cost that does not depend on the width of the margin.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.svm import OneClassSVM

from infinitask._base.arrays import HostArray
from infinitask.solvers._one_class_path import Path

TOL = 1e-5
"""Tolerance of a machine: the largest difference of fields on its margin, relative to n times the maximum of K."""


class Knots:
    """One-class machines of some fractions, with mixtures of neighbours in between.

    A mixture is a dual point of the fraction between its neighbours, and nearly optimal. The attributes are those of
    :class:`~infinitask.solvers._one_class_path.Path`. A walk that ended early serves the fractions it covered.

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
            machine = OneClassSVM(kernel="precomputed", nu=float(fraction), tol=TOL, cache_size=1_000)
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
