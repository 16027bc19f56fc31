r"""L-BFGS at one level of smoothing, in the metric of :mod:`~infinitask.solvers._basis`.

Needs of the objective: value and gradient. The metric M is close to the Hessian, and the first step is −M⁻¹ g, of
length one; SciPy's L-BFGS-B, made for unknown scales, tries a shorter one at every level of smoothing. The last steps s
and changes of the gradient y, the rows of S and Y, enter in the compact form

.. math::

    H = \gamma M^{-1} + \begin{pmatrix} S \\ Y M^{-1} \end{pmatrix}^\top
        \begin{pmatrix} R^{-\top} (D + \gamma Y M^{-1} Y^\top) R^{-1} & -\gamma R^{-\top} \\
                        -\gamma R^{-1} & 0 \end{pmatrix}
        \begin{pmatrix} S \\ Y M^{-1} \end{pmatrix},
    \qquad R = \mathrm{triu}(S Y^\top), \; D = \mathrm{diag}(S Y^\top),

a handful of products with matrices instead of eighty operations on vectors. A step asks M once, for M⁻¹ g: M⁻¹ y is the
difference of two of these.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg.blas import dtrsm

from infinitask._base.arrays import HostArray
from infinitask.objective import Evaluation, Smoothing
from infinitask.solvers._base import Ledger
from infinitask.solvers._basis import Metric
from infinitask.solvers._line_search import line_search

STEPS_REMEMBERED = 20
"""Steps from which the inverse Hessian is estimated."""

EVALUATIONS_BEFORE_ASKING = 25
"""Evaluations between two questions whether to give up: the answer costs about one evaluation."""


class StepMemory:
    """An estimate of the inverse Hessian from the last steps.

    Parameters
    ----------
    size : int
        Number of unknowns.
    length : int
        Steps that are remembered.
    """

    def __init__(self, size: int, length: int = STEPS_REMEMBERED) -> None:
        self.length = length
        self.count = 0
        self._S, self._MY = np.empty((length, size)), np.empty((length, size))
        self._SY, self._YMY = np.zeros((length, length)), np.zeros((length, length))

    def add(self, s: HostArray, y: HostArray, My: HostArray) -> None:
        """Remember a step, what it did to the gradient and M⁻¹ of that, unless it tells nothing of the curvature."""
        if not float(s @ y) > 1e-14 * float(y @ My):
            return
        k = self.count % self.length  # in place of the oldest
        self._S[k], self._MY[k] = s, My
        self.count += 1
        known = slice(min(self.count, self.length))
        self._SY[known, k] = self._S[known] @ y
        self._YMY[known, k] = self._YMY[k, known] = self._MY[known] @ y

    def direction(self, g: HostArray, Mg: HostArray) -> HostArray:
        """−H g, from g and M⁻¹ g."""
        if self.count == 0:
            return -Mg
        known = min(self.count, self.length)
        oldest_first = np.arange(self.count - known, self.count) % self.length
        square = np.ix_(oldest_first, oldest_first)
        R, YMY = np.triu(self._SY[square]), self._YMY[square]
        curve = np.diag(R)
        gamma = curve[-1] / YMY[-1, -1]
        along, across = (self._S[:known] @ g)[oldest_first], (self._MY[:known] @ g)[oldest_first]
        a = dtrsm(1.0, R, along[:, None])[:, 0]
        b = dtrsm(1.0, R, (curve * a + gamma * (YMY @ a - across))[:, None], trans_a=1)[:, 0]
        in_place = np.empty((2, known))
        in_place[:, oldest_first] = gamma * a, b
        return np.asarray(in_place[0] @ self._MY[:known] - in_place[1] @ self._S[:known] - gamma * Mg)


def lbfgs_stage(
    ledger: Ledger,
    z: HostArray,
    here: Evaluation,
    smoothing: Smoothing,
    measure: Callable[[HostArray, Smoothing], Metric],
    give_up: Callable[[HostArray, int], bool],
) -> tuple[HostArray, Evaluation]:
    """Minimise P_κ from z until the ledger finds an evaluation good enough; returns the new z and its evaluation.

    Parameters
    ----------
    ledger : Ledger
    z : ndarray (size,)
    here : Evaluation
        At z.
    smoothing : Smoothing
    measure : callable
        The metric at a point.
    give_up : callable
        Whether to stop at a point, some evaluations after the optimisation error was last halved; asked now and then.
    """
    label = f"L-BFGS, smoothing {smoothing.kappa[0]:.1e}"
    memory, metric, age = StepMemory(z.size), measure(z, smoothing), 0
    best, since, asked = np.inf, ledger.n_evaluations, ledger.n_evaluations
    downhill = metric.solve(here.gradient)
    while not (ledger.done or ledger.enough(here)):
        if here.error < 0.5 * best:
            best, since = here.error, ledger.n_evaluations
        if ledger.n_evaluations - asked >= EVALUATIONS_BEFORE_ASKING:
            if give_up(z, ledger.n_evaluations - since):
                break
            asked = ledger.n_evaluations
        along = memory.direction(here.gradient, downhill)
        step, fresh = line_search(ledger, z, smoothing, here, along, label, curvature=0.9)
        if fresh is None:
            if memory.count == 0:
                break
            memory = StepMemory(z.size)  # the steps remembered are spoilt by rounding
            continue
        change, before = fresh.gradient - here.gradient, downhill
        z, here = z + step * along, fresh
        age += 1
        ledger.n_iter += 1
        if step < 0.5 and age >= 4:  # a short step says that a metric of some age no longer fits
            memory, metric, age = StepMemory(z.size), measure(z, smoothing), 0
            downhill = metric.solve(here.gradient)
            continue
        downhill = metric.solve(here.gradient)
        memory.add(step * along, change, downhill - before)
    return z, here
