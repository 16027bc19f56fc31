"""Where λ is so small that L-BFGS takes many evaluations: splitting instead, or before."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from infinitask._base.arrays import namespace, to_host
from infinitask.losses import BoxLoss
from infinitask.objective import Objective, Smoothing
from infinitask.solvers._base import (
    MAX_CENTRE_PAIRS,
    PERFECT_FIT,
    Ledger,
    Solution,
    Start,
    aim_at,
    evaluation_cost,
)
from infinitask.solvers._splitting import Splitting, State

MAX_SPLITTING_STEPS = 8_000
"""The most steps of splitting."""

IDLE_SPLITTING_STEPS, IDLE_SPLITTING_GAIN = 600, 0.9
"""Splitting ends where this number of steps left more than this part of the gap."""

LBFGS_EVALUATIONS, LBFGS_EVALUATIONS_IN_ORDER, LBFGS_GROWTH = 15.0, 30.0, 0.55
"""L-BFGS takes about the first number of evaluations where nλ = 1, the second with a penalty on crossing, and more as
this power of 1/nλ; λ in terms of the mean of k(x, x) and of the size of y. With 300, 1 000 and 3 000 rows and eight
inputs: 74 to 126 for nλ = 0.03, 150 to 190 for 0.01, 230 to 380 for 0.003, 510 to 700 for 0.001; with the penalty
160 to 270 for 0.01, 450 to 710 for 0.003, 1 400 to 1 530 for 0.001."""

SPLITTING_STEPS, SPLITTING_STEPS_IN_ORDER, STEP_COST = 250.0, 500.0, 0.5
"""Splitting takes about this many iterations for a gap of 1e-4 (140 to 300; with a penalty on crossing 300 to 700),
each of this part of an evaluation."""

FEW_UNKNOWNS = 1_000
"""Up to this number of unknowns Newton's steps are cheap, and splitting is not tried: 400 rows with one input
and λ = 1.4e-6 take 0.07 s, and 0.4 s by splitting."""

LEFT_OUT, SMALL_OBJECTIVE = 0.2, 0.1
"""Splitting leaves out directions with e f up to LEFT_OUT times the tolerance times λ. Where P is as large as a
typical target and ‖u‖² = 1/6, as for quantiles, a part in 60 of the gap is theirs. Where P turns out to be less than
SMALL_OBJECTIVE of it, the limit is that many times smaller: 300 rows with hardly any noise and λ = 1e-7 stayed at a
gap of 3e-4."""

LESS_SMOOTH = 0.03
"""Newton's method goes on from splitting with this part of its 1/σ, around its dual point."""

MAX_SIZED_ROWS = 1_000
"""At most about this many rows decide how large k(x, x) is."""


def suits_splitting(objective: Objective) -> bool:
    """Whether the problem is of the kind, and λ so small, that splitting takes fewer evaluations."""
    losses = [term.loss for term in objective.integrals]
    # each step asks a loss of one's own for its slope by a search: L-BFGS asks less often
    if not all(isinstance(loss, BoxLoss) and not loss.smooth(1.0) for loss in losses):
        return False
    if not Splitting.solves(objective) or any(getattr(loss, "few", False) for loss in losses):
        return False
    some = objective.rows[:: -(-int(objective.rows.shape[0]) // MAX_SIZED_ROWS), 1:]
    size = float(np.mean(to_host(namespace(some).sum(some**2, axis=1))))
    # kinks are those of losses that grow as y does: λ times the size of y has no units
    ridge = objective.alpha * objective.scale / size
    n, r = objective.rows.shape
    if objective.size <= FEW_UNKNOWNS:
        return False
    if losses[0].zero_sum > 1:
        # one kink for each class, 1/(K − 1) from 0: on digits (1 300 rows, 72 unknowns for each feature) L-BFGS takes
        # 830 evaluations for a gap of 1e-3, and splitting 70 steps
        return True
    # eigenvectors take more operations than a product, but these run three times as fast as those of an evaluation;
    # with 3 000 rows and features all of it takes 6 to 7 s, as much as 300 evaluations
    set_up = (3.6 * r**3 + 1.2 * n * r**2) / evaluation_cost(objective)
    one = len(losses) == 1
    steps = set_up + STEP_COST * (SPLITTING_STEPS if one else SPLITTING_STEPS_IN_ORDER)
    evaluations = LBFGS_EVALUATIONS if one else LBFGS_EVALUATIONS_IN_ORDER
    return bool(steps * (n * ridge) ** LBFGS_GROWTH <= evaluations)


def _begun(objective: Objective, tol: float, max_iter: int, verbose: int) -> Ledger:
    """A ledger that has seen the start, and knows how large the objective is."""
    ledger = Ledger(objective, tol, max_iter, verbose=verbose, aim=aim_at(objective, tol))
    here = ledger.evaluate(objective.start(), Smoothing((0.1 * objective.scale,) * len(objective.integrals)))
    ledger.certificate.floor = PERFECT_FIT * (min(abs(here.primal), objective.typical_loss) or objective.scale)
    return ledger


def by_splitting(
    objective: Objective, tol: float, max_iter: int, verbose: int, start: Start | None
) -> tuple[Solution, Start]:
    """The solution by splitting from a start, and where to go on if it is not one."""
    ledger = _begun(objective, tol, max_iter, verbose)
    whole, size = Splitting.of(objective), objective.scale
    splitting = whole.without(LEFT_OUT * tol * size * objective.alpha)
    most, done = min(max_iter, MAX_SPLITTING_STEPS), 0
    gaps: list[tuple[int, float]] = []

    def idle() -> bool:
        steps, gap = gaps[-1]
        before = [gap for step, gap in gaps if step <= steps - IDLE_SPLITTING_STEPS]
        return bool(before) and gap > IDLE_SPLITTING_GAIN * before[-1]

    def small() -> bool:
        return ledger.certificate.scale < SMALL_OBJECTIVE * size

    def seen(state: State) -> bool:
        z, steps = splitting.coefficients(state).ravel(), done + state.n_iter
        ledger.take(z, float(state.primal[0]), float(state.dual[0]), steps, f"splitting, σ {state.sigma[0]:.1e}")
        gaps.append((steps, ledger.certificate.gap))
        return ledger.done or idle() or small()

    first = None
    if start is not None:
        near = start.smoothing
        # a way of L-BFGS and Newton's method ends with little smoothing: its 1/κ would be far too long a step
        inverse, known = (0.0, objective.duals(start.z, near)) if near.centre is None else (near.kappa[0], near.centre)
        duals = tuple(np.zeros((1, 1)) if part is None else part for part in known)
        first = splitting.begun(start.z, inverse, duals)
    how: dict[str, Any] = {"tol": 0.0, "seen": seen, "aim": ledger.aim, "by_node": True}
    state = splitting.solve(objective.alpha, start=first, max_iter=most, **how)
    while not (ledger.done or idle()) and small() and state.n_iter < most:
        done, most, size = done + state.n_iter, most - state.n_iter, ledger.certificate.scale
        splitting = whole.without(LEFT_OUT * tol * size * objective.alpha)
        state = splitting.solve(objective.alpha, start=state, max_iter=most, **how)
    kappa, centre = splitting.centre(state)
    solution = replace(ledger.solution(), smoothing=Smoothing(kappa, centre))
    solution = replace(solution, dual_at=Start(solution.z, solution.smoothing))
    near = Smoothing(tuple(LESS_SMOOTH * k for k in kappa), centre if objective.n_pairs <= MAX_CENTRE_PAIRS else None)
    return solution, Start(solution.z, near, ledger.certificate.floor)
