r"""L-BFGS at one level of smoothing, in the metric of :mod:`~infinitask.solvers.basis`.

Needs of the objective: value and gradient. In the variables x = M^{1/2} z the Hessian is close to the identity, and the
first step is the gradient itself, of length one; SciPy's L-BFGS-B, made for unknown scales, tries a shorter one at
every level of smoothing. The last steps s and changes of the gradient y, the rows of S and Y, enter in the compact form

.. math::

    H = \gamma I + \begin{pmatrix} S \\ Y \end{pmatrix}^\top
        \begin{pmatrix} R^{-\top} (D + \gamma Y Y^\top) R^{-1} & -\gamma R^{-\top} \\ -\gamma R^{-1} & 0 \end{pmatrix}
        \begin{pmatrix} S \\ Y \end{pmatrix},
    \qquad R = \mathrm{triu}(S Y^\top), \; D = \mathrm{diag}(S Y^\top),

a handful of products with matrices instead of eighty operations on vectors.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg.blas import dtrsm

from infinitask._array import HostArray
from infinitask.objective import Evaluation, Smoothing
from infinitask.solvers.base import Ledger
from infinitask.solvers.basis import Metric
from infinitask.solvers.newton import line_search

__all__ = ["Memory", "lbfgs_stage"]

MEMORY = 20
"""Steps that are remembered."""

ASK = 25
"""Evaluations after which it is asked whether to give up: the answer costs about one."""

SHORT, OLD = 0.5, 4
"""A step shorter than this says that the metric no longer fits: it is measured again if it has served for so many
steps. On 120 small fits that saves a twentieth of the time; at the first short step in any case it would cost more."""


class Memory:
    """The inverse Hessian that the last steps tell of.

    Parameters
    ----------
    size : int
        Number of unknowns.
    length : int
        Steps that are remembered.
    """

    def __init__(self, size: int, length: int = MEMORY) -> None:
        self.length = length
        self.count = 0
        self._S, self._Y = np.empty((length, size)), np.empty((length, size))
        self._SY, self._YY = np.zeros((length, length)), np.zeros((length, length))

    def add(self, s: HostArray, y: HostArray) -> None:
        """Remember a step and what it did to the gradient, unless it tells nothing of the curvature."""
        if not float(s @ y) > 1e-14 * float(y @ y):
            return
        if self.count == self.length:
            for stored in (self._S, self._Y):
                stored[:-1] = stored[1:]
            for product in (self._SY, self._YY):
                product[:-1, :-1] = product[1:, 1:]
            self.count -= 1
        k = self.count
        self._S[k], self._Y[k] = s, y
        self.count += 1
        self._SY[: k + 1, k] = self._S[: k + 1] @ y
        self._YY[: k + 1, k] = self._YY[k, : k + 1] = self._Y[: k + 1] @ y

    def direction(self, g: HostArray) -> HostArray:
        """−H g."""
        k = self.count
        if k == 0:
            return -g
        S, Y, YY = self._S[:k], self._Y[:k], self._YY[:k, :k]
        R = np.triu(self._SY[:k, :k])
        curve = np.diag(R)
        gamma = curve[-1] / YY[-1, -1]
        along, across = S @ g, Y @ g
        a = dtrsm(1.0, R, along[:, None])[:, 0]
        b = dtrsm(1.0, R, (curve * a + gamma * (YY @ a - across))[:, None], trans_a=1)[:, 0]
        return np.asarray(gamma * (a @ Y - g) - b @ S)


def lbfgs_stage(
    ledger: Ledger,
    z: HostArray,
    here: Evaluation,
    smoothing: Smoothing,
    measure: Callable[[HostArray, Smoothing], Metric],
    enough: Callable[[Evaluation], bool],
    give_up: Callable[[HostArray, int], bool],
) -> tuple[HostArray, Evaluation]:
    """Minimise P_κ from z until ``enough`` of an evaluation holds; returns the new z and its evaluation.

    Parameters
    ----------
    ledger : Ledger
    z : ndarray (size,)
    here : Evaluation
        At z.
    smoothing : Smoothing
    measure : callable
        The metric at a point.
    enough : callable
        Whether an evaluation is good enough to stop at.
    give_up : callable
        Whether to stop at a point, some evaluations after the optimisation error was last halved; asked now and then.
    """
    label = f"L-BFGS, smoothing {smoothing.kappa[0]:.1e}"
    memory, metric, age = Memory(z.size), measure(z, smoothing), 0
    best, since, asked = np.inf, ledger.n_evaluations, ledger.n_evaluations
    slope = metric.power(here.gradient, -0.5)
    while not (ledger.done or enough(here)):
        if here.error < 0.5 * best:
            best, since = here.error, ledger.n_evaluations
        if ledger.n_evaluations - asked >= ASK:
            if give_up(z, ledger.n_evaluations - since):
                break
            asked = ledger.n_evaluations
        direction = memory.direction(slope)
        along = metric.power(direction, -0.5)
        step, fresh = line_search(ledger, z, smoothing, here, along, label, curvature=0.9)
        if fresh is None:
            if memory.count == 0:
                break
            memory = Memory(z.size)  # rounding spoilt what is remembered
            continue
        z, here = z + step * along, fresh
        age += 1
        if step < SHORT and age >= OLD:
            memory, metric, age = Memory(z.size), measure(z, smoothing), 0
            slope = metric.power(here.gradient, -0.5)
            continue
        turned = metric.power(fresh.gradient, -0.5)
        memory.add(step * direction, turned - slope)
        slope = turned
        ledger.n_iter += 1
    return z, here
