"""Where λ is so small that L-BFGS takes many evaluations: splitting instead, or before."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from infinitask.objective import Objective, Smoothing
from infinitask.solvers._base import MAX_CENTRE_PAIRS, Ledger, Solution, Start, evaluation_cost
from infinitask.solvers._engine import Engine, Given
from infinitask.solvers._splitting import Splitting, State
from infinitask.solvers._steps import HAND_OVER, Looks

MAX_STEPS = 8_000
"""The most iterations."""

SPLITTING_COST = 125.0
"""Splitting costs about 125 evaluations for each integral: 140 to 300 iterations for a gap of 1e-4, twice as many
with a penalty on crossing, each of half an evaluation."""

LEFT_OUT, SMALL_OBJECTIVE = 0.2, 0.1
"""Splitting leaves out directions with e f up to LEFT_OUT times the tolerance times λ. Where P is as large as a
typical target and ‖u‖² = 1/6, as for quantiles, a part in 60 of the gap is theirs. Where P turns out to be less than
SMALL_OBJECTIVE of it, the limit is that many times smaller: 300 rows with hardly any noise and λ = 1e-7 stayed at a
gap of 3e-4."""


class SmallRidge(Engine):
    """Splitting in the joint eigenbasis of rows and columns; its iterations hardly feel λ."""

    # each step asks a loss of one's own for its slope by a search: L-BFGS asks less often
    needs = ("kinked", "without_bias")

    def cost(self, objective: Objective, given: Given) -> float:
        """See :meth:`Engine.cost`."""
        n, r = objective.rows.shape
        # eigenvectors take more operations than a product, but these run three times as fast as those of an evaluation;
        # with 3 000 rows and features all of it takes 6 to 7 s, as much as 300 evaluations
        set_up = (3.6 * r**3 + 1.2 * n * r**2) / evaluation_cost(objective)
        return float(set_up + SPLITTING_COST * len(objective.integrals))

    def run(self, objective: Objective, ledger: Ledger, given: Given) -> tuple[Solution, Start]:
        """See :meth:`Engine.run`."""
        ledger.begin(Smoothing((0.1 * objective.scale,) * len(objective.integrals)))
        tol, start, whole, size = ledger.tol, given.start, Splitting.of(objective), objective.scale
        splitting = whole.without(LEFT_OUT * tol * size * objective.alpha)
        most, done = min(ledger.max_iter, MAX_STEPS), 0
        looks = Looks(ledger.aim)

        def small() -> bool:
            return ledger.certificate.scale < SMALL_OBJECTIVE * size

        def seen(state: State) -> int:
            z, steps = splitting.coefficients(state).ravel(), done + state.n_iter
            ledger.take(z, float(state.primal[0]), float(state.dual[0]), steps, f"splitting, σ {state.sigma[0]:.1e}")
            looks.add(steps, ledger.certificate.gap)
            return 0 if ledger.done or looks.idle or small() else looks.wait

        first = None
        if start is not None:
            near = start.smoothing
            # a way of L-BFGS and Newton's method ends with little smoothing: its 1/κ would be far too long a step
            inverse, known = (
                (0.0, objective.duals(start.z, near)) if near.centre is None else (near.kappa[0], near.centre)
            )
            duals = tuple(np.zeros((1, 1)) if part is None else part for part in known)
            first = splitting.begun(start.z, inverse, duals)
        how: dict[str, Any] = {"tol": 0.0, "seen": seen, "by_node": True}
        state = splitting.solve(objective.alpha, start=first, max_iter=most, **how)
        while not (ledger.done or looks.idle) and small() and state.n_iter < most:
            done, most, size = done + state.n_iter, most - state.n_iter, ledger.certificate.scale
            splitting = whole.without(LEFT_OUT * tol * size * objective.alpha)
            state = splitting.solve(objective.alpha, start=state, max_iter=most, **how)
        kappa, centre = splitting.centre(state)
        solution = replace(ledger.solution(), smoothing=Smoothing(kappa, centre))
        solution = replace(solution, dual_at=Start(solution.z, solution.smoothing))
        near = Smoothing(tuple(HAND_OVER * k for k in kappa), centre if objective.n_pairs <= MAX_CENTRE_PAIRS else None)
        return solution, Start(solution.z, near, ledger.certificate.floor)
