r"""The list of engines, the order in which they run, and the last engine, which solves any objective.

Four engines require some structure of the objective: splitting for targets of two values, for a small λ and for free
levels, and one-class machines. The last one follows a path of decreasing smoothing.

At a point z, with the slopes of the κ-smoothed losses as dual point, the duality gap of the *non-smooth* problem has
two parts:

.. math::

    P(z) - D(u) = \underbrace{\sum \omega w \,(\ell - \text{lower bound at } u)}_{\text{slack: due to } \kappa}
                + \underbrace{\tfrac{1}{2} \|\nabla P_\kappa(z)\|^2_{\Lambda^{-1}}}_{\text{optimisation error}} .

Steps at the same κ reduce the second part, a smaller κ reduces the first. The engine steps until the second part is
below the first, shrinks the κ of every integral whose slack is above its fraction of the tolerance, and repeats.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from infinitask._base.arrays import HostArray, namespace, to_host
from infinitask.objective import Evaluation, Objective, Smoothing
from infinitask.solvers._base import MAX_CENTRE_PAIRS, Ledger, Reason, Solution, Start, cost_by_unknowns, curved_pairs
from infinitask.solvers._basis import Eigenbasis
from infinitask.solvers._free_levels import by_levels
from infinitask.solvers._lbfgs import lbfgs_stage
from infinitask.solvers._leading import by_leading_directions
from infinitask.solvers._level_sets import by_walk
from infinitask.solvers._newton import CHEAP_SOLVE, MAX_SOLVE_COST, NewtonSystem, newton_stage
from infinitask.solvers._splitting_run import by_splitting

SOLVERS = ("auto", "lbfgs", "newton")

MAX_LEVEL_PAIRS = 1_000_000
"""The maximum of rows × nodes for splitting levels, which holds ten arrays of that size."""

MAX_MACHINE_ROWS = 8_000
"""The maximum number of rows of one-class machines: their Gram matrix takes 512 MB."""

MAX_SPLIT_PAIRS = 10_000_000
"""The maximum of rows × nodes × problems for splitting, which holds four arrays of that size."""

SPLITTING_COST = 125.0
"""Splitting costs about 125 evaluations per integral: a gap of 1e-4 takes 140 to 300 iterations of half an evaluation
each, and twice as many with a penalty on crossing."""

LBFGS_EVALUATIONS, LBFGS_GROWTH = 15.0, 0.55
"""L-BFGS takes about the first number of evaluations per integral if nλ = 1. The number grows with this power of 1/nλ,
for λ relative to the mean of k(x, x) and to the scale of y."""

FEW_UNKNOWNS = 1_000
"""Newton steps are cheap up to this number of unknowns, and splitting for a small λ is not faster."""

MAX_IDLE_EVALUATIONS = 400
"""L-BFGS is stuck if this number of evaluations did not halve the optimisation error."""

NEWTON_STEPS_TO_FINISH, MAX_GAP_TO_FINISH = 4, 1e-2
"""Newton's method needs about this number of steps to finish. L-BFGS stops if it has cost the same and the gap is below
the second number: with a larger gap, few pairs may be curved here and thousands along the path."""

FAR_START = 300.0
"""A start is far from the solution if the optimisation error is more than this number times the slack. The path then
begins with more smoothing."""

MAX_FAILURES = 10
"""The number of Newton stages that may fail before L-BFGS tries again, or the solver stops."""

SHRINK, SHRINK_NEWTON = 0.3, 0.5
"""Factors by which κ shrinks between stages of L-BFGS and, at the least, between Newton's proximal steps: with 0.1, few
pairs are curved, and Newton steps are short."""

MAX_CENTRED_LBFGS_PAIRS = 500_000
"""L-BFGS smooths around its last dual point up to this number of pairs, which saves a fifth of the evaluations."""


# ------------------------------------------------------------------------------------------------------- engines
class Engine(NamedTuple):
    """A method for objectives with some structure."""

    needs: tuple[str, ...]
    """Properties of ``Objective`` that must be true."""
    cost: Callable[[Objective], float]
    """The approximate cost in evaluations of the objective; ∞ if the engine should not be tried."""
    run: Callable[[Objective, Ledger, Start | None], tuple[Solution, Start | None]]
    """Find a solution from the end of a similar problem, if known, and a start for the next engine if needed."""
    uses_start: bool = True
    """Whether the engine may run if the solution of a similar problem is known."""
    lbfgs_next: bool = False
    """Whether L-BFGS continues from its end, and not the next engine or Newton's method."""

    def worthwhile(self, objective: Objective, most: float = np.inf) -> bool:
        """Whether the objective meets all needs, and the expected cost is at most ``most`` evaluations."""
        if not all(getattr(objective, need) for need in self.needs):
            return False
        cost = self.cost(objective)
        return cost < np.inf and cost <= most


def evaluation_cost(objective: Objective) -> float:
    """The cost of an evaluation, in operations of a matrix product."""
    n, (r, s) = objective.rows.shape[0], objective.shape
    length = r if objective.reach is None else float(np.mean(objective.reach))
    nodes = sum(int(term.theta.shape[0]) for term in objective.integrals)
    # a loss costs about forty operations per pair, and the calls of an evaluation 5e5
    return 5e5 + 4.0 * float(n) * (length * s + nodes * s + 10 * nodes)


def splitting_cost(objective: Objective) -> float:
    """The cost of splitting in the joint eigenbasis of rows and columns, which hardly depends on λ."""
    n, r = objective.rows.shape
    # Eigenvectors take more operations than a product, but these run three times as fast as those of an evaluation.
    # With 3 000 rows and features the total is 6 to 7 s, the time of 300 evaluations.
    set_up = (3.6 * r**3 + 1.2 * n * r**2) / evaluation_cost(objective)
    return float(set_up + SPLITTING_COST * len(objective.integrals))


def continuation_cost(objective: Objective) -> float:
    """The cost of L-BFGS and Newton's method with decreasing smoothing."""
    if objective.size <= FEW_UNKNOWNS:
        return 0.0
    if objective.integrals[0].separate_fields > 1:  # Newton's method has the curved pairs of all fields in one system
        return np.inf
    n = int(objective.rows.shape[0])
    # a constant feature represents the bias, which is not part of k(x, x)
    some = objective.rows[:: -(-n // 1_000), int(objective.constant_first) :]
    size = float(np.mean(to_host(namespace(some).sum(some**2, axis=1))))
    if size == 0.0:
        return 0.0
    # kinks are those of losses that grow linearly in y: λ times the scale of y has no units
    ridge = objective.alpha * objective.scale / size
    return float(LBFGS_EVALUATIONS * len(objective.integrals) * (n * ridge) ** -LBFGS_GROWTH)


def leading_cost(objective: Objective) -> float:
    """The cost of splitting in the leading directions: it is tried if its arrays fit in memory."""
    return 0.0 if objective.n_pairs <= MAX_SPLIT_PAIRS else np.inf


def level_cost(objective: Objective) -> float:
    """The cost of splitting levels: it is tried if its arrays fit in memory."""
    return 0.0 if objective.n_pairs <= MAX_LEVEL_PAIRS else np.inf


def machine_cost(objective: Objective) -> float:
    """The cost of one-class machines: they are tried if their Gram matrix fits in memory."""
    return 0.0 if objective.rows.shape[0] <= MAX_MACHINE_ROWS else np.inf


# Splitting needs the slope of each loss at every step, which a custom loss finds by a search. L-BFGS needs it less
# often.
TWO_TARGETS = Engine(
    ("kinked", "without_bias", "two_targets"),
    leading_cost,
    by_leading_directions,
    uses_start=False,
    lbfgs_next=True,
)
SMALL_RIDGE = Engine(("kinked", "without_bias"), splitting_cost, by_splitting)
FREE_LEVELS = Engine(("free_levels",), level_cost, by_levels, uses_start=False)
ONE_CLASS = Engine(("one_class",), machine_cost, by_walk)
ENGINES = (TWO_TARGETS, SMALL_RIDGE, FREE_LEVELS, ONE_CLASS)


def suits_levels(objective: Objective) -> bool:
    """Whether splitting for free levels solves the objective if no start is known."""
    return FREE_LEVELS.worthwhile(objective)


def solve(
    objective: Objective,
    *,
    solver: str = "auto",
    tol: float = 1e-4,
    max_iter: int = 10_000,
    verbose: int = 0,
    start: Start | None = None,
    basis: Eigenbasis | None = None,
) -> Solution:
    """Minimise P to a relative duality gap of ``tol``.

    Parameters
    ----------
    objective : Objective
        An objective with rows in parts needs a ``basis`` and uses L-BFGS.
    solver : {"auto", "lbfgs", "newton"}
        "auto" starts with L-BFGS and lets Newton finish if L-BFGS is slow; it starts with splitting if λ is small, or
        if targets have two values.
    tol : float
        Between 1e-9 and 1e-6 the solver aims at a hundredth of it on small problems, where that is cheap.
    max_iter : int
        The maximum number of evaluations of the objective.
    verbose : int
    start : Start or None
        The end of a solve of a similar problem; None: start at 0.
    basis : Eigenbasis or None
        The basis of this objective; None: it is computed.

    Returns
    -------
    Solution
    """
    if solver not in SOLVERS:
        raise ValueError(f"solver={solver!r} was given; it must be one of {', '.join(map(repr, SOLVERS))}.")
    ledger = Ledger(objective, tol, max_iter, verbose=verbose, aim=aim_at(objective, tol))
    newton_next = False
    if objective.elsewhere is not None:
        solver = "lbfgs"
    elif solver == "auto" and max_iter > 1:  # one evaluation only evaluates the start
        known, most = start is not None or basis is not None, continuation_cost(objective)
        for engine in ENGINES:
            if (engine.uses_start or not known) and engine.worthwhile(objective, most):
                try:
                    found, start = engine.run(objective, ledger, start)
                    newton_next = not engine.lbfgs_next
                except KeyboardInterrupt as interrupt:
                    ledger.interrupted(interrupt)
                    return replace(ledger.solution(), smoothing=objective.widest)
                if ledger.converged or ledger.exhausted:
                    return found
                if engine.lbfgs_next:
                    break
    return by_continuation(objective, ledger, start, basis, solver, newton_next=newton_next)


def aim_at(objective: Objective, tol: float) -> float:
    """Return the gap to aim at.

    A function is less well determined than its objective: values are off by up to 1e-3 at a gap of 1e-7 (60 random
    problems with n ≤ 60). A user who requests such a gap needs accurate values, and a hundredth of it costs only a few
    more steps on a small problem.
    """
    small = objective.size <= 2_000 and objective.n_pairs <= 200_000
    return 1e-2 * tol if 1e-9 <= tol <= 1e-6 and small else tol


# -------------------------------------------------------------------------------------------------- the last engine
def by_continuation(
    objective: Objective,
    ledger: Ledger,
    start: Start | None,
    basis: Eigenbasis | None,
    method: str,
    *,
    newton_next: bool = False,
) -> Solution:
    """L-BFGS and Newton's method with decreasing smoothing; "auto" uses Newton's method only if L-BFGS is slow.

    With ``newton_next``, "auto" starts with Newton's method.
    """
    after, basis = ledger.n_evaluations, Eigenbasis.of(objective) if basis is None else basis
    ledger.turn(basis.objective, basis.forth(ledger.certificate.z))
    smoothing = objective.widest
    if start is None or start.floor is None:
        z, here = basis.objective.start(), ledger.begin(smoothing)
    if start is not None:
        ledger.certificate.floor = ledger.certificate.floor if start.floor is None else start.floor
        near = basis.smoothing_forth(start.smoothing)
        z, here, smoothing = _near(ledger, basis.forth(start.z), near, smoothing)
    path = _Path(ledger, basis, z, smoothing, after)
    try:
        path.follow(here, method, newton_next=newton_next)
    except KeyboardInterrupt as interrupt:
        ledger.interrupted(interrupt)
    found = ledger.solution(Reason.LBFGS_STALLED if method == "lbfgs" else Reason.NEWTON_STALLED)
    at = found.dual_at
    return replace(
        found,
        z=basis.back(found.z),
        smoothing=basis.smoothing_back(path.smoothing),
        dual_at=None if at is None else Start(basis.back(at.z), basis.smoothing_back(at.smoothing)),
    )


class _Path:
    """The state of a solve: the point, its smoothing, and the ledger."""

    def __init__(self, ledger: Ledger, basis: Eigenbasis, z: HostArray, smoothing: Smoothing, begun: int) -> None:
        self.ledger = ledger
        self.basis, self.objective = basis, basis.objective
        self.z = z
        self.smoothing = smoothing
        self.begun = begun

    def follow(self, here: Evaluation, method: str, *, newton_next: bool) -> None:
        """Run L-BFGS, Newton's method, or both in turn, until the gap is reached or none of them makes progress."""
        ledger = self.ledger
        if method == "lbfgs":
            self.by_lbfgs(here, None)
        elif method == "newton":
            self.by_newton(MAX_SOLVE_COST)
        else:
            if newton_next:
                self.by_newton(CHEAP_SOLVE)
                here = here if ledger.done else ledger.evaluate(self.z, self.smoothing)
            # each may succeed if the other is stuck
            for gives_up in (self.expensive, self.stuck):
                if not ledger.done:
                    self.by_lbfgs(here, gives_up)
                if not ledger.done:
                    self.by_newton(CHEAP_SOLVE)
                if not ledger.done:
                    here = ledger.evaluate(self.z, self.smoothing)

    @cached_property
    def evaluation(self) -> float:
        """The cost of an evaluation, in operations of a matrix product."""
        return evaluation_cost(self.objective)

    def newton_step(self, z: HostArray, smoothing: Smoothing) -> float:
        """The cost of a Newton step at a point, in evaluations."""
        objective = self.objective
        n, r = objective.rows.shape[0], objective.shape[0]
        pairs = float(curved_pairs(objective, z, smoothing))
        by_pairs = pairs**3 / 3.0 + 100.0 * pairs**2 + 0.8 * min(pairs, n) ** 2 * r
        step = 3e6 + min(cost_by_unknowns(objective, n), by_pairs, MAX_SOLVE_COST)
        return float(2.0 + step / self.evaluation)

    def expensive(self, z: HostArray, stalled: int) -> bool:
        """Whether L-BFGS is stuck, or has already cost as much as finishing with Newton's method from here."""
        step = self.newton_step(z, self.smoothing)
        close, finish = self.ledger.certificate.gap <= MAX_GAP_TO_FINISH, NEWTON_STEPS_TO_FINISH * step
        slow = stalled >= min(MAX_IDLE_EVALUATIONS, finish)
        return slow or (close and self.ledger.n_evaluations - self.begun >= finish)

    @staticmethod
    def stuck(z: HostArray, stalled: int) -> bool:
        """Whether L-BFGS is stuck after Newton's method got stuck."""
        return stalled >= MAX_IDLE_EVALUATIONS

    def by_lbfgs(self, here: Evaluation, give_up: Callable[[HostArray, int], bool] | None) -> None:
        """Run stages of L-BFGS with decreasing smoothing from ``here`` until the gap is reached or no stage helps.

        Small problems smooth around the dual point of the last stage, which makes the slack fall faster than κ.
        """
        ledger, objective = self.ledger, self.objective
        centred = objective.elsewhere is None and objective.n_pairs <= MAX_CENTRED_LBFGS_PAIRS
        while not ledger.done:
            for z, evaluation, stalled in lbfgs_stage(ledger, self.z, here, self.smoothing, self.basis.metric):
                self.z, here = z, evaluation
                if give_up is not None and stalled is not None and give_up(self.z, stalled):
                    break
            if ledger.done:
                return
            kappa = self.smoothing.kappa
            allowed = 0.5 * ledger.aim * ledger.certificate.scale / len(kappa)
            smaller = tuple(k if slack <= allowed else SHRINK * k for k, slack in zip(kappa, here.slack, strict=True))
            if not ledger.enough(here) or (smaller == kappa and not centred):
                return
            self.smoothing = Smoothing(smaller, objective.duals(self.z, self.smoothing) if centred else None)
            here = ledger.evaluate(self.z, self.smoothing)

    def by_newton(self, limit: float) -> None:
        """Run proximal steps of the dual, each solved by Newton, until the gap is reached or too many fail.

        Each step takes the envelope around the dual point of the last one, so the slack vanishes at any κ. A smaller κ
        makes a longer proximal step and a harder problem. ``factor``, by which κ shrinks from step to step, adapts to
        the difficulty of the last step. Without a centre, the slack vanishes only with κ. ``limit`` is that of a dense
        solve.
        """
        ledger, system = self.ledger, NewtonSystem(self.objective, self.basis.damping, limit)
        smoothing = self.smoothing
        centred = self.objective.n_pairs <= MAX_CENTRE_PAIRS
        factor, failures = SHRINK_NEWTON, 0
        while not ledger.done:
            metric = self.basis.metric(self.z, smoothing)
            before = ledger.n_iter
            self.z, fine = newton_stage(ledger, system, self.z, smoothing, metric)
            if ledger.done:
                return
            steps = ledger.n_iter - before
            if fine:
                factor = max(SHRINK_NEWTON, factor**1.5) if steps <= 3 else factor**0.5 if steps > 8 else factor
                centre = self.objective.duals(self.z, smoothing) if centred else None
                smoothing = Smoothing(tuple(factor * k for k in smoothing.kappa), centre)
            else:
                failures += 1
                if failures > MAX_FAILURES:
                    return
                factor = min(0.8, factor**0.5)
                smoothing = replace(smoothing, kappa=tuple(4.0 * k for k in smoothing.kappa))


def _near(ledger: Ledger, z: HostArray, near: Smoothing, wide: Smoothing) -> tuple[HostArray, Evaluation, Smoothing]:
    """Evaluate at the solution z of a similar problem, with its smoothing or more if z is far from the optimum."""
    kappa = near.kappa
    while True:
        # an integral without smoothing there may need it here
        kappa = tuple(min(k, widest) if k > 0.0 else widest for k, widest in zip(kappa, wide.kappa, strict=True))
        smoothing = Smoothing(kappa, near.centre)
        here = ledger.evaluate(z, smoothing, "start")
        if ledger.done or kappa == wide.kappa or here.error <= FAR_START * sum(here.slack):
            return z, here, smoothing
        kappa = tuple(4.0 * k for k in kappa)
