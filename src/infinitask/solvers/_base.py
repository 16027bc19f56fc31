r"""The certificate, the ledger that keeps it, and the solution: common to all solvers.

A solver moves through points z. Each evaluation of the objective gives an upper bound P(z). Its slopes give a dual
point u with data term A(u) and coefficients z_u. The dual

.. math:: D(u) = A(u) - \tfrac{1}{2} \|z_u\|_\Lambda^2

is concave in u, A is concave and z_u is affine. Hence for any two dual points and 0 ≤ s ≤ 1

.. math:: D((1-s) u_1 + s u_2) \ge (1-s) A(u_1) + s A(u_2) - \tfrac{1}{2} \|(1-s) z_{u_1} + s z_{u_2}\|_\Lambda^2 .

The best s has a closed form. Each new dual point is first mixed with u = 0 (feasible for every loss; with a free bias,
with a balanced dual point next to it), then with the best one so far. The best P and D are kept, so P − D never grows.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

import numpy as np

from infinitask._base.arrays import HostArray, namespace
from infinitask._base.budget import current_budget
from infinitask._base.events import LISTENER, Solving, tell
from infinitask.objective import Evaluation, Objective, Smoothing
from infinitask.objective._terms import NO_CURVATURE

MAX_SOLVE_SIZE = 8_000
"""The maximum number of equations of one dense solve: 512 MB."""

PERFECT_FIT = 1e-6
"""If |P| is below this fraction of the initial P, the gap is relative to the latter: a perfect fit must not loop."""

MAX_CENTRE_PAIRS = 20_000_000
"""The maximum number of entries of a centre: 160 MB. Beyond it, Newton's method follows κ → 0 without a centre."""

_ABOVE = "at a duality gap of {gap:.1e}, above the tolerance {tol:.1e}"


class Reason(Enum):
    """Why a solver stopped. The value is the sentence shown to the user, with placeholders for the numbers.

    Examples
    --------
    >>> Reason.CONVERGED.sentence(gap=3e-5, tol=1e-4, max_iter=1000)
    'The duality gap 3.0e-05 is within the tolerance 1.0e-04.'
    """

    CONVERGED = "The duality gap {gap:.1e} is within the tolerance {tol:.1e}."
    OUT_OF_EVALUATIONS = f"The {{max_iter}} evaluations allowed were used up {_ABOVE}; raise max_iter or tol."
    ENDED_EARLY = f"The fit was ended by an interrupt or by max_seconds {_ABOVE}; allow more time, or raise tol."
    LBFGS_STALLED = f"L-BFGS made no further progress {_ABOVE}; raise tol or alpha, or rescale the data."
    NEWTON_STALLED = f"Newton's method made no further progress {_ABOVE}; raise tol or alpha, or rescale the data."
    STALLED = f"No further progress was possible {_ABOVE}; raise tol or alpha, or rescale the data."
    NOT_CERTIFIED = "{note} The fit ended early: dual_gap_ is infinite."
    NOT_SMOOTH = f"{{note}} The solver stopped {_ABOVE}."
    IN_ORDER = "All curves are in order, at a duality gap of {gap:.1e}, within the tolerance {tol:.1e}."
    ORDER_ABOVE_TOLERANCE = f"All curves are in order, {_ABOVE}; raise tol or alpha."

    def __repr__(self) -> str:
        return f"<Reason.{self.name}>"  # the sentence has placeholders that only a solution fills

    def __reduce__(self) -> tuple[type[Reason], tuple[str]]:
        return type(self), (self.name,)  # required by skops; a name outlives its sentence

    @classmethod
    def _missing_(cls, value: object) -> Reason | None:
        return cls.__members__.get(value) if isinstance(value, str) else None

    @property
    def converged(self) -> bool:
        """Whether the requested gap was reached."""
        return self in (Reason.CONVERGED, Reason.IN_ORDER)

    def sentence(self, *, gap: float, tol: float, max_iter: int, note: str = "") -> str:
        """Return the sentence with its numbers; ``note`` says what is wrong with the loss if that is the reason."""
        return self.value.format(gap=gap, tol=tol, max_iter=max_iter, note=note)


@dataclass(frozen=True)
class Solution:
    """The result of a solver.

    Parameters
    ----------
    z : ndarray (size,)
        The unknowns: C row by row, then c.
    objective, dual : float
        P(z) of the original losses, and the best lower bound of min P.
    gap : float
        (P − D) relative to |P|, or to the loss of a typical row if that is smaller; see :class:`Certificate`.
    n_iter, n_evaluations : int
        The numbers of steps and of evaluations of the objective.
    reason : Reason
        Why the solver stopped.
    tol : float
        The requested gap.
    max_iter : int
        The maximum number of evaluations.
    history : ndarray (k, 3)
        Number of evaluations, P and the best D known so far, for every evaluation.
    smoothing : Smoothing
        How the integrals are smoothed at the end.
    floor : float
        The gap is relative to this value if |P| is smaller.
    dual_at : Start or None
        The point whose slopes were the best single dual point, with the smoothing used there; None if unknown. It may
        hold a number for every pair and is not kept after a fit.
    note : str
        What is wrong with the loss, if that is the reason.

    Examples
    --------
    >>> from infinitask import InfiniteQuantileRegressor
    >>> from infinitask.datasets import make_sine
    >>> solution = InfiniteQuantileRegressor(n_nodes=20).fit(*make_sine(100, random_state=0)).solution_
    >>> solution.dual <= solution.objective <= solution.dual + 1e-4 * solution.objective
    True
    """

    z: HostArray
    objective: float
    dual: float
    gap: float
    n_iter: int
    n_evaluations: int
    reason: Reason
    tol: float
    max_iter: int
    history: HostArray
    smoothing: Smoothing = field(default_factory=lambda: Smoothing(()))
    floor: float = 0.0
    dual_at: Start | None = None
    note: str = ""

    @property
    def converged(self) -> bool:
        """Whether the requested gap was reached."""
        return self.reason.converged

    @property
    def message(self) -> str:
        """The reason for stopping, as a sentence."""
        return self.reason.sentence(gap=self.gap, tol=self.tol, max_iter=self.max_iter, note=self.note)


class Start(NamedTuple):
    """A starting point of a solver: the solution of a similar problem."""

    z: HostArray
    """The unknowns, (size,)."""
    smoothing: Smoothing
    """How the integrals are smoothed at that point."""
    floor: float | None = None
    """See :class:`Certificate`; None if unknown."""

    def elsewhere(self) -> Start:
        """Return the start for other data, without the parts that depend on these data."""
        return Start(self.z, Smoothing(self.smoothing.kappa))


@dataclass(frozen=True)
class DualPoint:
    """A(u) and z_u of a dual point u."""

    data: float
    z: HostArray

    def value(self, ridge: HostArray) -> float:
        """D(u)."""
        return self.data - 0.5 * float((ridge * self.z) @ self.z)

    def mixed(self, other: DualPoint, ridge: HostArray) -> DualPoint:
        """Return the best point of the segment from this one to ``other``."""
        step = other.z - self.z
        length = float((ridge * step) @ step)
        if length == 0.0:
            return self if self.data >= other.data else other
        s = (other.data - self.data - float((ridge * self.z) @ step)) / length
        s = min(1.0, max(0.0, s))
        return DualPoint((1.0 - s) * self.data + s * other.data, self.z + s * step)


class Certificate:
    """The best upper and lower bounds so far.

    The gap is relative to |P|, or to the typical loss if that is smaller: one outlier may dominate P and must not stop
    the solver early. ``floor`` replaces both if they are smaller than it: rounding dominates there, and a perfect fit
    must not loop.
    """

    def __init__(self, objective: Objective) -> None:
        self.ridge = objective.ridge
        self.floor = 0.0
        self.typical = objective.typical_loss
        self.primal = np.inf
        self.z = np.zeros(objective.size)
        self.dual = -np.inf
        """The lower bound; −∞ until a feasible dual point is known."""
        # Computed with the first evaluation: a free bias makes it as expensive as one, and other bounds do not need it.
        self._find_origin: Callable[[], tuple[float, HostArray] | None] | None = objective.origin
        self._origin: DualPoint | None = None
        self._dual: DualPoint | None = None
        self._single = -np.inf

    def update(self, z: HostArray, evaluation: Evaluation) -> bool:
        """Add one evaluation; return whether its dual point is the best single one so far."""
        if self._find_origin is not None:
            origin, self._find_origin = self._find_origin(), None
            self._origin = None if origin is None else DualPoint(*origin)
            if self._origin is not None and self._origin.value(self.ridge) > self.dual:
                self._dual, self.dual = self._origin, self._origin.value(self.ridge)
        if evaluation.primal < self.primal:
            self.primal = evaluation.primal
            self.z = z.copy()
        fresh = DualPoint(evaluation.dual_data, evaluation.dual_z)
        if np.isfinite(fresh.data):
            fresh = fresh if self._origin is None else self._origin.mixed(fresh, self.ridge)
            self._dual = fresh if self._dual is None else self._dual.mixed(fresh, self.ridge)
            self.dual = max(self.dual, self._dual.value(self.ridge))
            value = fresh.value(self.ridge)
            if value > self._single:
                self._single = value
                return True
        return False

    def take(self, z: HostArray, primal: float, dual: float) -> None:
        """Add a point and bounds that were proved elsewhere."""
        if primal < self.primal:
            self.primal, self.z = primal, z.copy()
        if dual > self.dual:
            self.dual, self._dual = dual, None

    @property
    def scale(self) -> float:
        """The denominator of the gap."""
        return max(min(abs(self.primal), self.typical), self.floor)

    @property
    def gap(self) -> float:
        """(P − D) relative to the scale. Negative values are due to rounding and count as 0."""
        gap = max(self.primal - self.dual, 0.0)
        return 0.0 if gap == 0.0 else gap / self.scale if self.scale > 0.0 else np.inf


class Ledger:
    """Evaluate the objective for a solver; keep the certificate and the counts, and show the progress.

    Parameters
    ----------
    objective : Objective
    tol : float
        The requested relative gap.
    max_iter : int
        The maximum number of evaluations.
    verbose : int
        0: silent; 1: a line of progress about twice a second; 2: a line for every evaluation. Lines are written to
        standard error.
    aim : float or None
        The relative gap to aim at, at most ``tol``. The solver may miss it without failing. None: ``tol``.
    """

    def __init__(
        self,
        objective: Objective,
        tol: float,
        max_iter: int,
        verbose: int = 0,
        aim: float | None = None,
    ) -> None:
        self.objective = objective
        self.tol = tol
        self.aim = tol if aim is None else aim
        self.max_iter = max_iter
        self.verbose = verbose
        self.certificate = Certificate(objective)
        self.n_evaluations = 0
        self.n_iter = 0
        self.history: list[tuple[int, float, float]] = []
        self.dual_at: Start | None = None
        self.budget = current_budget()
        self._started = time.perf_counter()
        self._shown = 0.0
        self._first: tuple[float, float] | None = None
        if verbose:
            tables = objective.tables if objective.elsewhere is None else ()
            if any(table is not None and not table.loaded for table in tables):
                self._write("Loading compiled loops; at their first use on a machine numba compiles them, about 2 s.")
            self._write(f"{'evaluations':>11}  {'objective':>13}  {'gap':>8}  {'seconds':>7}  {'left':>6}  step")

    def begin(self, smoothing: Smoothing) -> Evaluation:
        """Evaluate the objective at its start; the floor of the gap is a fraction of its value there."""
        here = self.evaluate(self.objective.start(), smoothing)
        # an objective without targets is 0 there: its scale is that of h
        self.certificate.floor = PERFECT_FIT * (min(abs(here.primal), self.certificate.typical) or self.objective.scale)
        return here

    def turn(self, objective: Objective, z: HostArray) -> None:
        """Continue with the same objective in other unknowns, whose best point is z; bounds and counts are kept."""
        before, self.objective, self.dual_at = self.certificate, objective, None
        self.certificate = Certificate(objective)
        self.certificate.floor = before.floor
        self.certificate.take(z, before.primal, before.dual)

    def evaluate(self, z: HostArray, smoothing: Smoothing, label: str = "") -> Evaluation:
        """Evaluate the objective in one pass over the data; update the certificate, the counts and the history."""
        evaluation = self.objective.evaluate(z, smoothing)
        self.n_evaluations += 1
        if not np.isfinite(evaluation.primal) or not np.all(np.isfinite(evaluation.gradient)):
            return evaluation
        if self.certificate.update(z, evaluation):
            self.dual_at = Start(z.copy(), smoothing)
        self._record(evaluation.primal, label)
        return evaluation

    def take(self, z: HostArray, primal: float, dual: float, n_evaluations: int, label: str) -> None:
        """Add a point and its bounds, found after ``n_evaluations`` evaluations; see :meth:`Certificate.take`."""
        self.certificate.take(z, primal, dual)
        self.n_evaluations = self.n_iter = n_evaluations
        self._record(primal, label)

    def _record(self, primal: float, label: str) -> None:
        self.history.append((self.n_evaluations, primal, self.certificate.dual))
        if LISTENER.get() is not None:
            tell(Solving(self.n_evaluations, float(self.certificate.gap), self.tol))
        now = time.perf_counter()
        if self.verbose and (self.verbose > 1 or now - self._shown > 0.5 or self.n_evaluations == 1):
            self._shown = now
            self.show(label)

    def show(self, label: str) -> None:
        """Write one line of progress."""
        if self.verbose:
            c = self.certificate
            seconds = time.perf_counter() - self._started
            left = self._time_left(seconds)
            self._write(
                f"{self.n_evaluations:>11}  {c.primal:>13.6e}  {c.gap:>8.1e}  {seconds:>7.2f}  {left:>6}  {label}"
            )

    def _time_left(self, seconds: float) -> str:
        """Estimate the remaining seconds from the rate at which the gap has fallen so far."""
        gap = self.certificate.gap
        if not np.isfinite(gap) or gap <= self.tol:
            return ""
        if self._first is None:
            self._first = seconds, gap
        start, widest = self._first
        if gap >= 0.5 * widest:  # too early to tell
            return ""
        return f"~{np.log(gap / self.tol) / np.log(widest / gap) * (seconds - start):.0f}"

    def _write(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    @property
    def converged(self) -> bool:
        """Whether the requested gap is reached."""
        return self.certificate.gap <= self.tol

    @property
    def exhausted(self) -> bool:
        """Whether the allowed evaluations, or the time, are used up."""
        return self.n_evaluations >= self.max_iter or self.budget.over

    @property
    def done(self) -> bool:
        """Whether the aim is reached, or nothing is left to reach it with."""
        return self.certificate.gap <= self.aim or self.exhausted

    def interrupted(self, interrupt: KeyboardInterrupt) -> None:
        """Keep the best point after an interrupt; raise it again if there is none, or if it ends the whole fit."""
        if not np.isfinite(self.certificate.primal):
            raise interrupt
        self.budget.ended_by(interrupt)

    def enough(self, evaluation: Evaluation) -> bool:
        """Whether the optimisation error is below the slack, or too small to affect the gap."""
        return evaluation.error <= max(0.3 * sum(evaluation.slack), 0.2 * self.aim * self.certificate.scale)

    def solution(self, stalled: Reason = Reason.STALLED) -> Solution:
        """Return the solution; its reason is ``stalled`` if neither the gap nor a limit was reached."""
        c = self.certificate
        ended = Reason.OUT_OF_EVALUATIONS if self.n_evaluations >= self.max_iter else Reason.ENDED_EARLY
        reason = Reason.CONVERGED if self.converged else ended if self.exhausted else stalled
        self.show("done")
        return Solution(
            z=c.z,
            objective=c.primal,
            dual=c.dual,
            gap=c.gap,
            n_iter=max(1, self.n_iter),
            n_evaluations=self.n_evaluations,
            reason=reason,
            tol=self.tol,
            max_iter=self.max_iter,
            history=np.asarray(self.history, dtype=np.float64).reshape(-1, 3),
            floor=c.floor,
            dual_at=self.dual_at,
        )


def cost_by_unknowns(objective: Objective, n: int) -> float:
    """Operations of a Newton step that factorises the Hessian, for n rows of data."""
    (_, s), p = objective.shape, objective.size
    nodes = sum(int(term.theta.shape[0]) for term in objective.integrals)
    return p**3 / 3 + 2.0 * n * p**2 + 2.0 * n * nodes * s**2 if p <= MAX_SOLVE_SIZE else np.inf


def curved_pairs(objective: Objective, z: HostArray, smoothing: Smoothing) -> int:
    """The number of pairs at which the smoothed losses have curvature."""
    xp = namespace(objective.rows)
    found = (part > NO_CURVATURE for _, parts in objective.curvatures(z, smoothing) for part in parts)
    return sum(int(xp.sum(xp.astype(part, xp.int64))) for part in found)
