r"""Order that is proved: ∂h/∂θ ≥ 0 for *all* θ at the training inputs.

A penalty looks at nodes. Between them a proof is needed, and the reproducing property gives one: for a curve
g(θ) = ∂h(x)(θ)/∂θ = ⟨c, ψ'(θ)⟩ of the RKHS, |g''| ≤ ‖c‖ ‖ψ'''‖, and ‖ψ'''‖² = ∂₁³∂₂³k(θ, θ) is one number for a
stationary kernel. On a grid of step δ therefore

.. math:: g(\theta) \ge \min(g(\theta_a), g(\theta_b)) - \tfrac{\delta^2}{8} \|c\| \, \|\psi'''\|

between neighbours θ_a, θ_b (:meth:`TaskKernel.slope_error <infinitask.kernels.TaskKernel.slope_error>`): where the
right-hand side is nonnegative everywhere, the order holds for every θ.

How a fit gets there: (1) minimise with a heavy penalty on negative slopes, at more nodes than the risk has and at both
ends of Θ; (2) measure by how much the proof fails, V; (3) add V times a bias that provably rises at a rate of one.
The lower bound of step (1) is one for the problem with the constraint too, because a penalty costs less than a
constraint. So the gap that is reported is the distance to the best model in these features that is in order, for all θ.
Where it is too large, what V is made of decides: a finer grid of the proof, more nodes if the curves fall between them,
or a heavier penalty and a smaller gap.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from infinitask._array import HostArray, as_like, to_host
from infinitask.estimators.problem import Problem
from infinitask.features import TaskMap
from infinitask.kernels import TaskKernel
from infinitask.objective import Integral, Objective, Smoothing
from infinitask.penalties import NonCrossing
from infinitask.solvers import Reason, Solution, solve

__all__ = ["Order", "solve_in_order"]

REFINEMENT = 4
"""Nodes of the penalty for each node of the risk, at first. With one, the slopes dip below zero between the nodes by
some 1e-2."""

ROUNDS = 6
"""Solutions tried."""

ENTRIES = 2_000_000
"""Slopes that are held at a time."""

WEIGHT = 16.0
"""The first penalty, in units of the slope of the loss: on data where a tenth of the curves would fall, enough."""

RESOLUTION = 1e-5
"""What the proof may lose to the step of its grid at first, relative to the norm of a curve."""

FEWEST, MOST = 500, 256_000
"""Steps of the grid of the proof."""

FINEST = 32
"""The most nodes of the penalty for each node of the risk."""

ROUNDING = 3e-8
"""Relative error of slopes computed through ψ: its transform has entries of up to 1e7 (pivots down to 1e-14), and the
largest error measured in sixty digits was 9e-9."""

FLOOR = 1e-6
"""As in the solver: where the objective is below this part of its value at 0, the gap is relative to the latter."""


def _steps(kernel: TaskKernel, length: float) -> int:
    """Steps of the grid at which the proof loses no more than it may, within reason."""
    steps = FEWEST
    while steps < 16_000 and kernel.slope_error(length / steps) > RESOLUTION:
        steps *= 2
    return steps


@dataclass(frozen=True, eq=False)
class Order:
    """What is known of the slopes of a posed problem.

    Parameters
    ----------
    problem : Problem
        With a bias, and Gaussian or twice differentiable Matérn kernels of the tasks.
    low, high : float
        The ends of Θ.
    steps : int
        Steps of the grid of the proof.
    """

    problem: Problem
    low: float
    high: float
    steps: int

    @classmethod
    def of(cls, problem: Problem, support: tuple[HostArray, HostArray]) -> Order:
        """Check that a proof is possible."""
        maps = [problem.psi.map] + ([] if problem.psi_bias is None else [problem.psi_bias.map])
        for task_map in maps:
            if not np.isfinite(task_map.kernel.slope_error(1.0)):
                raise ValueError(
                    f"noncrossing='hard' was given with the task kernel {task_map.kernel!r}; the proof of order "
                    "needs a bound on higher derivatives, known for 'rbf' and 'matern52'. Use one of them, also for "
                    "the bias, or noncrossing='rearrange'."
                )
        if problem.constant is None and problem.psi_bias is None:
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
        return cls(problem, low, high, max(_steps(task_map.kernel, high - low) for task_map in maps))

    def objective(self, weight: float, refinement: int) -> Objective:
        """The problem with a penalty on negative slopes, on a grid so many times finer than the nodes."""
        objective = self.problem.objective
        count = refinement * int(objective.integrals[0].theta.shape[0]) + 1
        grid = np.linspace(self.low, self.high, count)
        bias = self.problem.psi_bias
        penalty = Integral(
            NonCrossing(weight),
            as_like(grid, objective.rows),
            as_like(np.full(count, 1.0 / count), objective.rows),
            as_like(self.problem.psi.map(grid, 1), objective.rows),
            None if bias is None else as_like(bias.map(grid, 1), objective.rows),
        )
        return replace(objective, integrals=(objective.integrals[0], penalty))

    def weight(self) -> float:
        """The size of the slopes of the loss at the start."""
        objective = self.problem.objective
        first = objective.integrals[0]
        _, seen = next(iter(objective.fields(objective.start())))
        slopes = to_host(first.loss.slope(first.theta, seen[0][1], seen[0][2]))
        return WEIGHT * (float(np.mean(np.abs(slopes))) or 1.0)

    @cached_property
    def _grid(self) -> HostArray:
        return np.linspace(self.low, self.high, self.steps + 1)

    def _features(self, task_map: TaskMap) -> HostArray:
        """ψ' on the grid, (steps + 1, s)."""
        known = self._known
        if id(task_map) not in known:
            known[id(task_map)] = task_map(self._grid, 1)
        return known[id(task_map)]

    @cached_property
    def _known(self) -> dict[int, HostArray]:
        return {}

    def _proved(self, task_map: TaskMap, coef: HostArray) -> tuple[HostArray, HostArray]:
        """Slopes of curves with coefficients (n, s) on the grid, and what the proof loses of each, (n,)."""
        step = float(self._grid[1] - self._grid[0])
        slopes = self._features(task_map)
        # ψ is isometric up to a percent of rounding in its smallest pivots
        lost = 1.1 * task_map.kernel.slope_error(step) + ROUNDING * float(np.max(np.linalg.norm(slopes, axis=1)))
        return coef @ slopes.T, lost * np.linalg.norm(coef, axis=1)

    def smallest_slope(self, z: HostArray) -> tuple[float, float]:
        """A lower bound of ∂h/∂θ over all training inputs and all θ, and what of it the step of the grid costs."""
        objective, bias = self.problem.objective, self.problem.psi_bias
        r, s = objective.shape
        C = z[: r * s].reshape(r, s)
        rise, lost = 0.0, 0.0
        if bias is not None:
            rise_b, lost_b = self._proved(bias.map, z[None, r * s :])
            rise, lost = rise_b[0], float(lost_b[0])
        rows = to_host(objective.rows).astype(np.float64, copy=False)
        smallest, cost = np.inf, 0.0
        step = max(1, ENTRIES // (self.steps + 1))
        for start in range(0, rows.shape[0], step):
            slopes, loss = self._proved(self.problem.psi.map, rows[start : start + step] @ C)
            worst = np.min(slopes + rise, axis=1) - loss - lost
            if np.min(worst) < smallest:
                smallest, cost = float(np.min(worst)), float(loss[np.argmin(worst)]) + lost
        return smallest, cost

    @cached_property
    def lift(self) -> HostArray:
        """Unknowns of a bias that provably rises at a rate of at least one everywhere."""
        objective, bias = self.problem.objective, self.problem.psi_bias
        task_map = self.problem.psi.map if bias is None else bias.map
        slopes = task_map(self._grid, 1)
        s = slopes.shape[1]
        # the ridge keeps the norm, hence the loss of the proof, small
        c = np.linalg.lstsq(
            np.vstack([slopes, 1e-6 * np.eye(s)]), np.concatenate([np.ones(self._grid.size), np.zeros(s)])
        )[0]
        rise, lost = self._proved(task_map, c[None, :])
        rate = float(np.min(rise)) - float(lost[0])
        if rate <= 0.0:
            raise ValueError(
                f"noncrossing='hard' was given with the task kernel {task_map.kernel!r}, in which no bias rises "
                "everywhere; raise its length scale (lower task_gamma) or use more nodes."
            )
        z = np.zeros(objective.size)
        if self.problem.constant is not None:
            z[: np.prod(objective.shape)].reshape(objective.shape)[0] = c / (rate * self.problem.constant)
        else:
            z[objective.size - objective.bias_size :] = c / rate
        return z


def solve_in_order(
    problem: Problem,
    support: tuple[HostArray, HostArray],
    *,
    solver: str,
    tol: float,
    max_iter: int,
    verbose: int,
) -> tuple[Solution, float]:
    """The best model with ∂h/∂θ ≥ 0 for all θ at the training inputs, and the smallest slope that was proved.

    Parameters
    ----------
    problem : Problem
    support : pair of arrays
        The ends of Θ.
    solver, tol, max_iter, verbose
        As in :func:`~infinitask.solvers.solve`; ``max_iter`` for all rounds together.
    """
    order = Order.of(problem, support)
    weight, refinement, inner = order.weight(), REFINEMENT, 0.5 * tol
    bound, gap, steps, evaluations = -np.inf, np.inf, 0, 0
    best: Solution | None = None
    for _ in range(ROUNDS):
        objective = order.objective(weight, refinement)
        left = max(1, max_iter - evaluations)
        found = solve(objective, solver=solver, tol=inner, max_iter=left, verbose=verbose)
        steps, evaluations = steps + found.n_iter, evaluations + found.n_evaluations
        bound = max(bound, found.dual)
        smallest, cost = order.smallest_slope(found.z)
        while -smallest > 0.0 and cost > 0.2 * -smallest and order.steps < MOST:
            order = replace(order, steps=2 * order.steps)
            smallest, cost = order.smallest_slope(found.z)
        missing, z = max(0.0, -smallest), found.z
        while smallest < 0.0:
            # a hair more, so that rounding does not leave the proof short of zero
            z = z - smallest * (1.0 + 1e-6) * order.lift
            smallest, _ = order.smallest_slope(z)
        smoothing = Smoothing((0.0, 0.0))
        primal = objective.evaluate(z, smoothing).primal
        if best is None or primal < best.objective:
            best = replace(found, z=z, objective=primal)
        scale = max(abs(best.objective), FLOOR * abs(objective.evaluate(objective.start(), smoothing).primal))
        before, gap = gap, max(best.objective - bound, 0.0) / scale if scale > 0.0 else 0.0
        if gap <= tol or not found.converged or gap > 0.8 * before:
            break
        at_nodes = max(0.0, -min(float(np.min(to_host(seen[1][2]))) for _, seen in objective.fields(found.z)))
        if at_nodes < 0.5 * missing and refinement < FINEST:
            refinement *= 2
        else:
            weight, inner = 4.0 * weight, 0.1 * inner
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
