r"""The list of engines, the walk over it, and the last engine, which solves any objective.

Three engines need some structure of the objective: splitting for a small λ, splitting for free levels, and one-class
machines. The last one follows a path of ever less smoothed problems.

At a point z with slopes of the κ-smoothed losses as dual point, the duality gap of the *non-smooth* problem splits in
two:

.. math::

    P(z) - D(u) = \underbrace{\sum \omega w \,(\ell - \text{lower bound at } u)}_{\text{slack: due to } \kappa}
                + \underbrace{\tfrac{1}{2} \|\nabla P_\kappa(z)\|^2_{\Lambda^{-1}}}_{\text{optimisation error}} .

Steps at the same κ remove the second part, a smaller κ the first. So: step until the second is below the first, then
shrink the κ of every integral whose slack is above its share of the tolerance, and so on until the gap is reached.
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
from infinitask.solvers._level_sets import by_walk
from infinitask.solvers._newton import CHEAP_SOLVE, MAX_SOLVE_COST, NewtonSystem, newton_stage
from infinitask.solvers._splitting_run import by_splitting

SOLVERS = ("auto", "lbfgs", "newton")

MAX_LEVEL_PAIRS = 1_000_000
"""The most rows × nodes for which levels are split; ten arrays of that size are held."""

MAX_MACHINE_ROWS = 8_000
"""With more rows the Gram matrix of one-class machines is too large: 512 MB here."""

SPLITTING_COST = 125.0
"""Splitting costs about 125 evaluations for each integral: 140 to 300 iterations for a gap of 1e-4, twice as many
with a penalty on crossing, each of half an evaluation."""

LBFGS_EVALUATIONS, LBFGS_GROWTH = 15.0, 0.55
"""L-BFGS takes about the first number of evaluations for each integral where nλ = 1, and more as this power of 1/nλ; λ
in terms of the mean of k(x, x) and of the size of y."""

FEW_UNKNOWNS = 1_000
"""Up to this number of unknowns Newton's steps are cheap, and no other engine takes less time."""

MAX_IDLE_EVALUATIONS = 400
"""L-BFGS is stuck after this number of evaluations that did not halve the optimisation error."""

NEWTON_STEPS_TO_FINISH, MAX_GAP_TO_FINISH = 4, 1e-2
"""Newton's method needs about this number of steps to finish. L-BFGS hands over when it has cost as much and the gap is
below the second number: farther off, few pairs may be curved here and thousands on the way."""

FAR_START = 300.0
"""A start is far from the solution where the optimisation error is more than this number times the slack: the way then
begins with more smoothing."""

MAX_FAILURES = 10
"""Newton stages that may fail before L-BFGS tries again, or the solver gives up."""

SHRINK, SHRINK_NEWTON = 0.3, 0.5
"""Factors by which κ shrinks between stages of L-BFGS and, at the least, between Newton's proximal steps: with 0.1, few
pairs are curved, and Newton's steps are short."""

MAX_CENTRED_LBFGS_PAIRS = 500_000
"""Up to this number of pairs L-BFGS smooths around its last dual point, which saves a fifth of the evaluations."""


# ------------------------------------------------------------------------------------------------------- engines
class Engine(NamedTuple):
    """One way to the solution of objectives that have some structure."""

    needs: tuple[str, ...]
    """Properties of ``Objective`` that must hold."""
    cost: Callable[[Objective], float]
    """About how many evaluations of the objective it takes; ∞: it should not be tried."""
    run: Callable[[Objective, Ledger, Start | None], tuple[Solution, Start]]
    """Finds a point from the end of a similar problem, if one is known, and where to go on if it is not good enough."""
    uses_start: bool = True
    """Whether it may be tried where something is known of a similar problem."""

    def worthwhile(self, objective: Objective, most: float = np.inf) -> bool:
        """Whether the objective meets all needs, and the engine is expected to take at most ``most`` evaluations."""
        if not all(getattr(objective, need) for need in self.needs):
            return False
        cost = self.cost(objective)
        return cost < np.inf and cost <= most


def evaluation_cost(objective: Objective) -> float:
    """What an evaluation costs, in operations of a matrix product."""
    n, (r, s) = objective.rows.shape[0], objective.shape
    length = r if objective.reach is None else float(np.mean(objective.reach))
    nodes = sum(int(term.theta.shape[0]) for term in objective.integrals)
    # a loss costs about forty operations a pair, and the calls of an evaluation 5e5
    return 5e5 + 4.0 * float(n) * (length * s + nodes * s + 10 * nodes)


def splitting_cost(objective: Objective) -> float:
    """The cost of splitting in the joint eigenbasis of rows and columns; it hardly feels λ."""
    n, r = objective.rows.shape
    # eigenvectors take more operations than a product, but these run three times as fast as those of an evaluation;
    # with 3 000 rows and features all of it takes 6 to 7 s, as much as 300 evaluations
    set_up = (3.6 * r**3 + 1.2 * n * r**2) / evaluation_cost(objective)
    return float(set_up + SPLITTING_COST * len(objective.integrals))


def continuation_cost(objective: Objective) -> float:
    """The cost of L-BFGS and Newton's method with ever less smoothing."""
    if objective.size <= FEW_UNKNOWNS:
        return 0.0
    if objective.integrals[0].loss.zero_sum > 1:
        return np.inf
    n = int(objective.rows.shape[0])
    # a constant feature carries the bias: it is no part of k(x, x)
    some = objective.rows[:: -(-n // 1_000), int(objective.constant_first) :]
    size = float(np.mean(to_host(namespace(some).sum(some**2, axis=1))))
    if size == 0.0:
        return 0.0
    # kinks are those of losses that grow as y does: λ times the size of y has no units
    ridge = objective.alpha * objective.scale / size
    return float(LBFGS_EVALUATIONS * len(objective.integrals) * (n * ridge) ** -LBFGS_GROWTH)


# splitting asks each loss for its slope at every step, one of one's own by a search: L-BFGS asks less often
SMALL_RIDGE = Engine(("kinked", "without_bias"), splitting_cost, by_splitting)
FREE_LEVELS = Engine(
    ("free_levels",), lambda it: 0.0 if it.n_pairs <= MAX_LEVEL_PAIRS else np.inf, by_levels, uses_start=False
)
ONE_CLASS = Engine(("one_class",), lambda it: 0.0 if it.rows.shape[0] <= MAX_MACHINE_ROWS else np.inf, by_walk)
ENGINES = (SMALL_RIDGE, FREE_LEVELS, ONE_CLASS)


def suits_levels(objective: Objective) -> bool:
    """Whether splitting for free levels solves an objective for which no start is known."""
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
        One whose rows are in parts needs a ``basis`` and takes L-BFGS.
    solver : {"auto", "lbfgs", "newton"}
        "auto" starts with L-BFGS and lets Newton finish where L-BFGS is slow; for a small λ it starts with splitting.
    tol : float
        From 1e-6 down to 1e-9 the aim is a hundredth of it on small problems, where that is cheap.
    max_iter : int
        The most evaluations of the objective.
    verbose : int
    start : Start or None
        The end of the way of a problem that is close to this one; None: from 0.
    basis : Eigenbasis or None
        Of this objective; None: it is computed.

    Returns
    -------
    Solution
    """
    if solver not in SOLVERS:
        raise ValueError(f"solver={solver!r} was given; it must be one of {', '.join(map(repr, SOLVERS))}.")
    ledger = Ledger(objective, tol, max_iter, verbose=verbose, aim=aim_at(objective, tol))
    if objective.elsewhere is not None:
        solver = "lbfgs"
    elif solver == "auto" and max_iter > 1:  # one evaluation is a look at the start
        known, most = start is not None or basis is not None, continuation_cost(objective)
        for engine in ENGINES:
            if (engine.uses_start or not known) and engine.worthwhile(objective, most):
                found, start = engine.run(objective, ledger, start)
                if ledger.converged or ledger.exhausted:
                    return found
    return by_continuation(objective, ledger, start, basis, solver)


def aim_at(objective: Objective, tol: float) -> float:
    """The gap to aim at.

    A function is less well determined than its objective: at a gap of 1e-7 values are off by up to 1e-3 (60 random
    problems with n ≤ 60). Whoever asks for such a gap wants the values; on a small problem a hundredth of it costs a
    few steps more.
    """
    small = objective.size <= 2_000 and objective.n_pairs <= 200_000
    return 1e-2 * tol if 1e-9 <= tol <= 1e-6 and small else tol


# -------------------------------------------------------------------------------------------------- the last engine
def by_continuation(
    objective: Objective, ledger: Ledger, start: Start | None, basis: Eigenbasis | None, method: str
) -> Solution:
    """L-BFGS and Newton's method with ever less smoothing; "auto": Newton's method only where L-BFGS is slow."""
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
    if method == "lbfgs":
        path.by_lbfgs(here, None)
    elif method == "newton":
        path.by_newton(MAX_SOLVE_COST)
    else:
        if after:
            path.by_newton(CHEAP_SOLVE)
            here = here if ledger.done else ledger.evaluate(path.z, path.smoothing)
        # each gets stuck where the other may not
        for gives_up in (path.expensive, path.stuck):
            if not ledger.done:
                path.by_lbfgs(here, gives_up)
            if not ledger.done:
                path.by_newton(CHEAP_SOLVE)
            if not ledger.done:
                here = ledger.evaluate(path.z, path.smoothing)
    found = ledger.solution(Reason.LBFGS_STALLED if method == "lbfgs" else Reason.NEWTON_STALLED)
    at = found.dual_at
    return replace(
        found,
        z=basis.back(found.z),
        smoothing=basis.smoothing_back(path.smoothing),
        dual_at=None if at is None else Start(basis.back(at.z), basis.smoothing_back(at.smoothing)),
    )


class _Path:
    """The state of a solve: the point, how the losses are smoothed there, and the ledger."""

    def __init__(self, ledger: Ledger, basis: Eigenbasis, z: HostArray, smoothing: Smoothing, begun: int) -> None:
        self.ledger = ledger
        self.basis, self.objective = basis, basis.objective
        self.z = z
        self.smoothing = smoothing
        self.begun = begun

    @cached_property
    def evaluation(self) -> float:
        """What an evaluation costs, in operations of a matrix product."""
        return evaluation_cost(self.objective)

    def newton_step(self, z: HostArray, smoothing: Smoothing) -> float:
        """What a Newton step costs at a point, in evaluations."""
        objective = self.objective
        n, r = objective.rows.shape[0], objective.shape[0]
        pairs = float(curved_pairs(objective, z, smoothing))
        by_pairs = pairs**3 / 3.0 + 100.0 * pairs**2 + 0.8 * min(pairs, n) ** 2 * r
        step = 3e6 + min(cost_by_unknowns(objective, n), by_pairs, MAX_SOLVE_COST)
        return float(2.0 + step / self.evaluation)

    def expensive(self, z: HostArray, stalled: int) -> bool:
        """Whether L-BFGS got stuck, or has cost as much as it would to finish with Newton's method from here."""
        step = self.newton_step(z, self.smoothing)
        close, finish = self.ledger.certificate.gap <= MAX_GAP_TO_FINISH, NEWTON_STEPS_TO_FINISH * step
        slow = stalled >= min(MAX_IDLE_EVALUATIONS, finish)
        return slow or (close and self.ledger.n_evaluations - self.begun >= finish)

    @staticmethod
    def stuck(z: HostArray, stalled: int) -> bool:
        """Whether L-BFGS got stuck, where Newton's method did so before."""
        return stalled >= MAX_IDLE_EVALUATIONS

    def by_lbfgs(self, here: Evaluation, give_up: Callable[[HostArray, int], bool] | None) -> None:
        """Stages of L-BFGS with ever less smoothing, the first from ``here``, until the gap is reached or none helps.

        Small problems smooth around the dual point of the last stage, so that the slack falls faster than κ.
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
            share = 0.5 * ledger.aim * ledger.certificate.scale / len(kappa)
            smaller = tuple(k if slack <= share else SHRINK * k for k, slack in zip(kappa, here.slack, strict=True))
            if not ledger.enough(here) or (smaller == kappa and not centred):
                return
            self.smoothing = Smoothing(smaller, objective.duals(self.z, self.smoothing) if centred else None)
            here = ledger.evaluate(self.z, self.smoothing)

    def by_newton(self, limit: float) -> None:
        """Proximal steps of the dual, each one solved by Newton, until the gap is reached or too many fail.

        Each step takes the envelope around the dual point of the last one, so that the slack vanishes at any κ. A
        smaller κ makes a longer proximal step and a harder problem: ``factor``, by which κ shrinks from step to step,
        follows how hard the last one was. Without a centre, only κ makes the slack vanish. ``limit`` is that of a
        dense solve.
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
    """How to smooth at a point that solves another problem: as it was there, or more where it is far from this one."""
    kappa = near.kappa
    while True:
        # an integral that needed no smoothing there may need it here
        kappa = tuple(min(k, widest) if k > 0.0 else widest for k, widest in zip(kappa, wide.kappa, strict=True))
        smoothing = Smoothing(kappa, near.centre)
        here = ledger.evaluate(z, smoothing, "start")
        if ledger.done or kappa == wide.kappa or here.error <= FAR_START * sum(here.slack):
            return z, here, smoothing
        kappa = tuple(4.0 * k for k in kappa)
