r"""The way from a very smooth problem to the certified solution of the problem itself.

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

import numpy as np

from infinitask._base.arrays import HostArray, namespace, to_host
from infinitask.objective import Evaluation, Objective, Smoothing
from infinitask.solvers._base import (
    MAX_CENTRE_PAIRS,
    Ledger,
    Reason,
    Solution,
    Start,
    cost_by_unknowns,
    evaluation_cost,
)
from infinitask.solvers._basis import Eigenbasis
from infinitask.solvers._engine import Engine, Given
from infinitask.solvers._lbfgs import lbfgs_stage
from infinitask.solvers._newton import CHEAP_SOLVE, MAX_SOLVE_COST, NewtonSystem, newton_stage

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


class Continuation(Engine):
    """L-BFGS and Newton's method with ever less smoothing.

    Parameters
    ----------
    method : {"auto", "lbfgs", "newton"}
        "auto": L-BFGS first, and Newton's method where that is slow.
    """

    def __init__(self, method: str) -> None:
        self.method = method

    def cost(self, objective: Objective, given: Given) -> float:
        """See :meth:`Engine.cost`."""
        if objective.size <= FEW_UNKNOWNS:
            return 0.0
        if objective.tied > 1:
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

    def run(self, objective: Objective, ledger: Ledger, given: Given) -> tuple[Solution, Start]:
        """See :meth:`Engine.run`."""
        basis, start, after = given.basis, given.start, ledger.n_evaluations
        if basis is None:
            basis = Eigenbasis.of(objective)
        ledger.turn(basis.objective, basis.forth(ledger.certificate.z))
        smoothing = _widest(objective)
        if start is None or start.floor is None:
            z, here = basis.objective.start(), ledger.begin(smoothing)
        if start is not None:
            ledger.certificate.floor = ledger.certificate.floor if start.floor is None else start.floor
            near = basis.smoothing_forth(start.smoothing)
            z, here, smoothing = _near(ledger, basis.forth(start.z), near, smoothing)
        path = _Path(ledger, basis, z, smoothing, after)
        if self.method == "lbfgs":
            path.by_lbfgs(here, lambda z, stalled: False)
        elif self.method == "newton":
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
        found = ledger.solution(Reason.LBFGS_STALLED if self.method == "lbfgs" else Reason.NEWTON_STALLED)
        smoothing, at = basis.smoothing_back(path.smoothing), found.dual_at
        at = None if at is None else Start(basis.back(at.z), basis.smoothing_back(at.smoothing))
        found = replace(found, z=basis.back(found.z), smoothing=smoothing, dual_at=at)
        return found, Start(found.z, smoothing, found.floor)


def _widest(objective: Objective) -> Smoothing:
    """How the losses are smoothed at first.

    Where the risk is rounded, the penalty on the derivative starts ten times wider, or it bends far more than the risk.
    A risk that is smooth by itself gains nothing.
    """
    first = 0.1 * objective.scale
    rest = first if objective.integrals[0].loss.smooth(first) else objective.scale
    sizes = [first, *(rest * size for size in objective.relative_sizes[1:])]
    return Smoothing(tuple(0.0 if t.loss.smooth(k) else k for t, k in zip(objective.integrals, sizes, strict=True)))


def joined(first: Solution, then: Solution) -> Solution:
    """The solution of a run that went on where the first one stopped, with the evaluations of both."""
    return replace(
        then,
        n_iter=first.n_iter + then.n_iter,
        n_evaluations=first.n_evaluations + then.n_evaluations,
        max_iter=first.n_evaluations + then.max_iter,
        history=np.vstack([first.history, then.history + np.array([first.n_evaluations, 0.0, 0.0])]),
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
        pairs = float(objective.curved_pairs(z, smoothing))
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

    def by_lbfgs(self, here: Evaluation, give_up: Callable[[HostArray, int], bool]) -> None:
        """Stages of L-BFGS with ever less smoothing, the first from ``here``, until the gap is reached or none helps.

        Small problems smooth around the dual point of the last stage, so that the slack falls faster than κ.
        """
        ledger, objective = self.ledger, self.objective
        centred = objective.elsewhere is None and objective.n_pairs <= MAX_CENTRED_LBFGS_PAIRS
        while not ledger.done:
            self.z, here = lbfgs_stage(ledger, self.z, here, self.smoothing, self.basis.metric, give_up)
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
