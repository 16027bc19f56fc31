r"""L-BFGS at one level of smoothing, in the metric of :mod:`~infinitask.solvers._basis`.

The objective must provide value and gradient. The metric M is close to the Hessian, and the first step is −M⁻¹ g, of
length one; SciPy's L-BFGS-B, made for unknown scales, tries a shorter one at every level of smoothing. The last steps s
and gradient changes y, the rows of S and Y, enter in the compact form

.. math::

    H = \gamma M^{-1} + \begin{pmatrix} S \\ Y M^{-1} \end{pmatrix}^\top
        \begin{pmatrix} R^{-\top} (D + \gamma Y M^{-1} Y^\top) R^{-1} & -\gamma R^{-\top} \\
                        -\gamma R^{-1} & 0 \end{pmatrix}
        \begin{pmatrix} S \\ Y M^{-1} \end{pmatrix},
    \qquad R = \mathrm{triu}(S Y^\top), \; D = \mathrm{diag}(S Y^\top),

This takes a few matrix products instead of eighty vector operations. Each step applies M⁻¹ once, to g: M⁻¹ y is the
difference of two such results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy.linalg.blas import dtrsm

from infinitask._base.arrays import HostArray
from infinitask.objective import Evaluation, Smoothing
from infinitask.solvers._base import Ledger
from infinitask.solvers._basis import Metric

STEPS_REMEMBERED = 20
"""The number of steps from which the inverse Hessian is estimated."""

EVALUATIONS_BEFORE_ASKING = 25
"""The number of evaluations between two points at which a caller may stop: deciding costs about one evaluation."""


class StepMemory:
    """An estimate of the inverse Hessian from the last steps.

    Parameters
    ----------
    size : int
        Number of unknowns.
    length : int
        The number of steps to remember.
    """

    def __init__(self, size: int, length: int = STEPS_REMEMBERED) -> None:
        self.length = length
        self.count = 0
        self._S, self._MY = np.empty((length, size)), np.empty((length, size))
        self._SY, self._YMY = np.zeros((length, length)), np.zeros((length, length))

    def add(self, s: HostArray, y: HostArray, My: HostArray) -> None:
        """Store a step, its gradient change and M⁻¹ of that, unless it contains no information on the curvature."""
        if not float(s @ y) > 1e-14 * float(y @ My):
            return
        k = self.count % self.length  # replaces the oldest
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
) -> Iterator[tuple[HostArray, Evaluation, int | None]]:
    """Minimise P_κ from z until the ledger finds an evaluation good enough.

    Yields z and its evaluation every few evaluations and at the end, with the number of evaluations since the
    optimisation error was last halved; this number is None at the end.

    Parameters
    ----------
    ledger : Ledger
    z : ndarray (size,)
    here : Evaluation
        At z.
    smoothing : Smoothing
    measure : callable
        The metric at a point.
    """
    label = f"L-BFGS, smoothing {smoothing.kappa[0]:.1e}"
    memory, metric, age = StepMemory(z.size), measure(z, smoothing), 0
    best, since, asked = np.inf, ledger.n_evaluations, ledger.n_evaluations
    downhill = metric.solve(here.gradient)
    while not (ledger.done or ledger.enough(here)):
        if here.error < 0.5 * best:
            best, since = here.error, ledger.n_evaluations
        if ledger.n_evaluations - asked >= EVALUATIONS_BEFORE_ASKING:
            yield z, here, ledger.n_evaluations - since
            asked = ledger.n_evaluations
        along = memory.direction(here.gradient, downhill)
        step, fresh = line_search(ledger, z, smoothing, here, along, label, curvature=0.9)
        if fresh is None:
            if memory.count == 0:
                break
            memory = StepMemory(z.size)  # the stored steps are spoilt by rounding
            continue
        change, before = fresh.gradient - here.gradient, downhill
        z, here = z + step * along, fresh
        age += 1
        ledger.n_iter += 1
        if step < 0.5 and age >= 4:  # a short step indicates that an old metric no longer fits
            memory, metric, age = StepMemory(z.size), measure(z, smoothing), 0
            downhill = metric.solve(here.gradient)
            continue
        downhill = metric.solve(here.gradient)
        memory.add(step * along, change, downhill - before)
    yield z, here, None


def line_search(
    ledger: Ledger,
    z: HostArray,
    smoothing: Smoothing,
    here: Evaluation,
    direction: HostArray,
    label: str,
    curvature: float = 0.5,
) -> tuple[float, Evaluation | None]:
    """Make a step along a descent direction to a point at which the slope is small relative to that at the start.

    P_κ is convex and piecewise quadratic along the line. The zero of its slope is bracketed and found by regula falsi;
    rounding hides the decrease of P_κ near the minimum, but not the slope.
    """
    slope = float(here.gradient @ direction)
    if not slope < 0.0:
        return 0.0, None
    low, low_slope, high, high_slope, last = 0.0, slope, np.inf, np.inf, 0.0
    step = 1.0
    rounding = 1e-13 * abs(here.smoothed)
    for _ in range(30):
        fresh = ledger.evaluate(z + step * direction, smoothing, label)
        end = float(fresh.gradient @ direction)
        descended = fresh.smoothed <= here.smoothed + 1e-4 * step * slope + rounding
        if descended and (abs(end) <= curvature * abs(slope) or (step == 1.0 and end < 0.0)):
            return step, fresh
        if ledger.exhausted:
            break
        if end < 0.0 and not np.isfinite(high):
            return (step, fresh) if fresh.smoothed <= here.smoothed + rounding else (0.0, None)
        # an end that stays while the other moves twice gets half its value: plain regula falsi creeps up to a kink
        if end < 0.0:
            high_slope = 0.5 * high_slope if last < 0.0 else high_slope
            low, low_slope = step, end
        else:
            low_slope = 0.5 * low_slope if last > 0.0 else low_slope
            high, high_slope = step, end
        last = end
        fraction = -low_slope / (high_slope - low_slope) if np.isfinite(high_slope) else 0.1
        step = low + min(0.9, max(0.1, fraction)) * (high - low)
    return 0.0, None
