r"""Proof that curves are increasing: ∂h/∂θ ≥ 0 for *all* θ at the training rows.

A penalty only constrains the nodes. Between them a proof is needed. The reproducing property provides it: for a curve
g(θ) = ∂h(x)(θ)/∂θ = ⟨c, ψ'(θ)⟩ of the RKHS, |g''| ≤ ‖c‖ ‖ψ'''‖, and ‖ψ'''‖² = ∂₁³∂₂³k(θ, θ) is a constant for a
stationary kernel. On a grid of step δ therefore

.. math:: g(\theta) \ge \min(g(\theta_a), g(\theta_b)) - \tfrac{\delta^2}{8} \|c\| \, \|\psi'''\|

between neighbours θ_a, θ_b (:meth:`TaskKernel.slope_error <infinitask.kernels.TaskKernel.slope_error>`). If the
right-hand side is nonnegative everywhere, the order holds for every θ.

A fit proceeds in three steps: (1) minimise with a large penalty on negative slopes, at more nodes than the risk has and
at both ends of Θ; (2) measure the violation V of the proof; (3) add V times a bias whose slope is provably at least
one. The lower bound of step (1) also holds for the problem with the constraint because a penalty costs less than a
constraint. The reported gap is therefore the distance to the best model in these features that is in order for all θ.
If the gap is too large, the source of V decides what to refine: a finer grid of the proof, more nodes if the curves
fall between them, or a larger penalty and a smaller gap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from infinitask._base.arrays import Array, HostArray, as_like, to_host
from infinitask.features import TaskMap
from infinitask.objective import Integral, Objective, Smoothing
from infinitask.solvers._base import PERFECT_FIT, Reason, Solution, Start
from infinitask.solvers._solve import solve

FIRST_PENALTY = 16.0
"""The initial weight of the penalty, relative to the slopes of the loss. It suffices on data on which a tenth of the
curves would fall."""

FIRST_REFINEMENT = 4
"""The initial number of penalty nodes per node of the risk. With one, the slopes dip below zero between the nodes."""

MAX_REFINEMENT = 128
"""The maximum number of penalty nodes per node of the risk. Curves without noise need about a hundred."""

MAX_ROUNDS = 6
"""The maximum number of solves."""

MAX_STEPS = 256_000
"""The maximum number of steps of the grid of the proof, which is refined as needed."""

SLOPE_ROUNDING = 3e-8
"""Relative error of slopes computed through ψ. Its transform has entries of up to 1e7 (pivots down to 1e-14), and the
largest error measured with sixty digits was 9e-9."""


@dataclass(frozen=True, eq=False)
class Order:
    """Measure and repair the order of the curves of an objective.

    Parameters
    ----------
    source : Objective
        Its first integral is the risk; others are ignored. The order holds at all its rows, including those of weight
        0.
    falling : callable
        A weight → the loss that penalises negative slopes.
    psi : TaskMap
        The features of the tasks.
    bias_psi : TaskMap or None
        The features of the bias, if it has unknowns of its own.
    constant : float or None
        The value of the first column of Φ, if that column is constant and represents the bias.
    low, high : float
        The endpoints of Θ.
    steps : int
        The number of steps of the grid of the proof.
    """

    source: Objective
    falling: Callable[[float], Any]
    psi: TaskMap
    bias_psi: TaskMap | None
    constant: float | None
    low: float
    high: float
    steps: int

    @classmethod
    def of(
        cls,
        objective: Objective,
        falling: Callable[[float], Any],
        psi: TaskMap,
        bias_psi: TaskMap | None,
        constant: float | None,
        support: tuple[HostArray, HostArray],
    ) -> Order:
        """Check that a proof is possible: there is a bias, Θ is bounded, and the kernels bound higher derivatives."""
        maps = [psi] if bias_psi is None else [psi, bias_psi]
        for task_map in maps:
            if not np.isfinite(task_map.kernel.slope_error(1.0)):
                raise ValueError(
                    f"noncrossing='hard' was given with the task kernel {task_map.kernel!r}; the proof of order "
                    "needs a bound on higher derivatives, known for 'rbf' and 'matern52'. Use one of them, also for "
                    "the bias, or noncrossing='rearrange'."
                )
        if constant is None and bias_psi is None:
            raise ValueError(
                "noncrossing='hard' was given with bias_kernel=None; a bias is what puts the last bit of order right. "
                "Use bias_kernel='task', or noncrossing='rearrange'."
            )
        low, high = (float(np.ravel(end)[0]) for end in support)
        if not (np.isfinite(low) and np.isfinite(high)):
            raise ValueError(
                f"noncrossing='hard' was given with Θ = [{low:g}, {high:g}]; order for all θ can be proved on a "
                "bounded Θ only. Use a measure with a bounded support, or noncrossing='rearrange'."
            )
        return cls(objective, falling, psi, bias_psi, constant, low, high, steps=1_000)

    # ----------------------------------------------------------------------------------------- the penalty
    def penalised(self, weight: float, refinement: int) -> Objective:
        """The risk plus a penalty on negative slopes, at ``refinement`` nodes per node of the risk."""
        source = self.source
        count = refinement * int(source.integrals[0].theta.shape[0]) + 1
        grid = np.linspace(self.low, self.high, count)
        penalty = Integral(
            self.falling(weight),
            as_like(grid, source.rows),
            as_like(np.full(count, 1.0 / count), source.rows),
            as_like(self.psi(grid, 1), source.rows),
            None if self.bias_psi is None else as_like(self.bias_psi(grid, 1), source.rows),
            row_weight=self._row_weight,
        )
        return replace(source, integrals=(source.integrals[0], penalty))

    @cached_property
    def _row_weight(self) -> Array | None:
        """ω of the penalty: that of the risk, or the mean of the others for rows that the risk ignores."""
        omega = to_host(self.source.sample_weight).astype(np.float64)
        if np.all(omega > 0.0):
            return None
        omega = np.where(omega > 0.0, omega, np.mean(omega[omega > 0.0]))
        return as_like(omega / np.sum(omega), self.source.rows)

    def first_weight(self) -> float:
        """A weight of the penalty that matches the slopes of the loss at the start."""
        source = self.source
        block, fields = next(iter(source.fields(source.start())))
        slopes = to_host(source.integrals[0].pointwise(block, fields[0]).dual)
        return FIRST_PENALTY * (float(np.mean(np.abs(slopes))) or 1.0)

    # ------------------------------------------------------------------------------------------- the proof
    @cached_property
    def _grid(self) -> HostArray:
        return np.linspace(self.low, self.high, self.steps + 1)

    @cached_property
    def _slopes(self) -> HostArray:
        """ψ' on the grid, (steps + 1, s)."""
        return self.psi(self._grid, 1)

    @cached_property
    def _bias_slopes(self) -> HostArray:
        """ψ' of the bias on the grid, with or without unknowns of its own, (steps + 1, s_b)."""
        return self._slopes if self.bias_psi is None else self.bias_psi(self._grid, 1)

    def _proved(self, psi: TaskMap, slopes: HostArray, coef: HostArray) -> tuple[HostArray, HostArray]:
        """Slopes on the grid of curves with coefficients (n, s), and the error term of the proof for each, (n,)."""
        step = float(self._grid[1] - self._grid[0])
        # ψ is isometric up to a percent of rounding in its smallest pivots
        lost = 1.1 * psi.kernel.slope_error(step) + SLOPE_ROUNDING * float(np.max(np.linalg.norm(slopes, axis=1)))
        return coef @ slopes.T, lost * np.linalg.norm(coef, axis=1)

    def smallest_slope(self, z: HostArray) -> tuple[float, float]:
        """A lower bound of ∂h/∂θ over all training rows and all θ, and the part of it due to the step of the grid."""
        r, s = self.source.shape
        C = z[: r * s].reshape(r, s)
        rise, lost = 0.0, 0.0
        if self.bias_psi is not None:
            rise_b, lost_b = self._proved(self.bias_psi, self._bias_slopes, z[None, r * s :])
            rise, lost = rise_b[0], float(lost_b[0])
        rows = to_host(self.source.rows).astype(np.float64, copy=False)
        smallest, cost = np.inf, 0.0
        step = max(1, 2_000_000 // (self.steps + 1))  # 16 MB of slopes at a time
        for start in range(0, rows.shape[0], step):
            slopes, loss = self._proved(self.psi, self._slopes, rows[start : start + step] @ C)
            worst = np.min(slopes + rise, axis=1) - loss - lost
            if np.min(worst) < smallest:
                smallest, cost = float(np.min(worst)), float(loss[np.argmin(worst)]) + lost
        return smallest, cost

    @cached_property
    def lift(self) -> HostArray:
        """Unknowns of a bias whose slope is provably at least one everywhere."""
        psi, slopes = self.psi if self.bias_psi is None else self.bias_psi, self._bias_slopes
        s = slopes.shape[1]
        # the ridge keeps the norm small, and hence the error term of the proof
        c = np.linalg.lstsq(
            np.vstack([slopes, 1e-6 * np.eye(s)]), np.concatenate([np.ones(self._grid.size), np.zeros(s)])
        )[0]
        rise, lost = self._proved(psi, slopes, c[None, :])
        rate = float(np.min(rise)) - float(lost[0])
        if rate <= 0.0:
            raise ValueError(
                f"noncrossing='hard' was given with the task kernel {psi.kernel!r}, in which no bias rises "
                "everywhere; raise its length scale (lower task_gamma) or use more nodes."
            )
        z = np.zeros(self.source.size)
        if self.constant is not None:
            z[: np.prod(self.source.shape)].reshape(self.source.shape)[0] = c / (rate * self.constant)
        else:
            z[self.source.size - self.source.bias_size :] = c / rate
        return z


def solve_in_order(
    objective: Objective,
    falling: Callable[[float], Any],
    psi: TaskMap,
    bias_psi: TaskMap | None,
    constant: float | None,
    support: tuple[HostArray, HostArray],
    *,
    solver: str,
    tol: float,
    max_iter: int,
    verbose: int,
) -> tuple[Solution, float]:
    """Return the best model with ∂h/∂θ ≥ 0 for all θ at the training rows, and the smallest slope that was proved.

    Parameters
    ----------
    objective : Objective
        Its first integral is the risk; others are ignored.
    falling : callable
        A weight → the loss that penalises negative slopes.
    psi : TaskMap
        ψ of the tasks; the columns of the risk are its values at the nodes.
    bias_psi : TaskMap or None
        ψ_b, if the bias has unknowns of its own.
    constant : float or None
        The value of the first column of Φ, if that column is constant and represents the bias.
    support : pair of arrays
        The endpoints of Θ.
    solver, tol, max_iter, verbose
        As in :func:`~infinitask.solvers.solve`; ``max_iter`` limits all rounds together.
    """
    order = Order.of(objective, falling, psi, bias_psi, constant, support)
    weight, refinement, inner_tol = order.first_weight(), FIRST_REFINEMENT, 0.5 * tol
    bound, gap, steps, evaluations = -np.inf, np.inf, 0, 0
    best: Solution | None = None
    start: Start | None = None
    for _ in range(MAX_ROUNDS):
        penalised = order.penalised(weight, refinement)
        left = max(1, max_iter - evaluations)
        found = solve(penalised, solver=solver, tol=inner_tol, max_iter=left, verbose=verbose, start=start)
        start = Start(found.z, found.smoothing).elsewhere()
        steps, evaluations = steps + found.n_iter, evaluations + found.n_evaluations
        bound = max(bound, found.dual)
        smallest, cost = order.smallest_slope(found.z)
        # refine the grid while its step accounts for a large part of the violation
        while -smallest > 0.0 and cost > 0.2 * -smallest and order.steps < MAX_STEPS:
            order = replace(order, steps=2 * order.steps)
            smallest, cost = order.smallest_slope(found.z)
        missing, z = max(0.0, -smallest), found.z
        while smallest < 0.0:
            # slightly more, so that rounding does not leave the proof below zero
            z = z - smallest * (1.0 + 1e-6) * order.lift
            smallest, _ = order.smallest_slope(z)
        smoothing = Smoothing((0.0, 0.0))
        primal = penalised.evaluate(z, smoothing).primal
        if best is None or primal < best.objective:
            best = replace(found, z=z, objective=primal)
        first = abs(penalised.evaluate(penalised.start(), smoothing).primal)
        typical = objective.typical_loss
        scale = max(min(abs(best.objective), typical), PERFECT_FIT * min(first, typical))
        gap = max(best.objective - bound, 0.0) / scale if scale > 0.0 else 0.0
        if gap <= tol or not found.converged:
            break
        at_nodes = max(0.0, -min(float(np.min(to_host(fields[1]))) for _, fields in penalised.fields(found.z)))
        if at_nodes < 0.5 * missing and refinement < MAX_REFINEMENT:
            # the curves fall between the nodes, by about the square of their distance: the bias of step (3) is to cost
            # half of what a solve leaves of the tolerance
            factor = np.sqrt((primal - found.objective) / (0.5 * (tol - inner_tol) * scale))
            refinement = int(np.clip(np.ceil(factor * refinement), 2 * refinement, MAX_REFINEMENT))
        else:
            weight, inner_tol = 4.0 * weight, 0.1 * inner_tol
    assert best is not None
    solution = replace(
        best,
        dual=bound,
        gap=gap,
        n_iter=steps,
        n_evaluations=evaluations,
        reason=Reason.IN_ORDER if gap <= tol else Reason.ORDER_ABOVE_TOLERANCE,
        tol=tol,
        max_iter=max_iter,
    )
    return solution, order.smallest_slope(solution.z)[0]
