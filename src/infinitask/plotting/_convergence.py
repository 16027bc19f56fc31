"""How a solver closed the gap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np

from infinitask._base.arrays import HostArray
from infinitask.plotting._asked import ANY, asked
from infinitask.plotting._canvas import Display
from infinitask.solvers import Solution


@final
@dataclass(eq=False, repr=False)
class ConvergenceDisplay(Display):
    """How fast a fit was certified: the duality gap after each evaluation of the objective.

    Parameters
    ----------
    evaluations : ndarray (k,)
    gap : ndarray (k,)
        The best bounds so far, (P − D) relative to what the last gap is relative to. Infinite while no bound is known.
    tol : float
        The gap asked for.

    Attributes
    ----------
    ax_, figure_
        Where it was drawn last.

    Examples
    --------
    >>> from infinitask import InfiniteQuantileRegressor
    >>> from infinitask.datasets import make_sine
    >>> from infinitask.plotting import ConvergenceDisplay
    >>> model = InfiniteQuantileRegressor(n_nodes=12).fit(*make_sine(60, random_state=0))
    >>> display = ConvergenceDisplay.from_estimator(model)
    >>> bool(display.gap[-1] <= display.tol)
    True
    """

    evaluations: HostArray
    gap: HostArray
    tol: float

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, look: Any = None) -> Self:
        """Draw what ``solution_.history`` of a fitted model holds.

        Parameters
        ----------
        estimator : estimator
        ax, look
            As in :meth:`plot`.
        """
        return cls.from_solution(asked(estimator, ANY, cls.__name__).model.solution_, ax=ax, look=look)

    @classmethod
    def from_solution(cls, solution: Solution, *, ax: Any = None, look: Any = None) -> Self:
        """Draw the history of a solution.

        Parameters
        ----------
        solution : Solution
        ax, look
            As in :meth:`plot`.
        """
        evaluations, primal, dual = np.asarray(solution.history, dtype=np.float64).reshape(-1, 3).T
        if evaluations.size == 0:
            raise ValueError("The solution has no history; it was found without evaluations of the objective.")
        if not np.isfinite(solution.gap):
            raise ValueError(f"The solution proves no gap that could be drawn: {solution.message}")
        # bounds proved last may be better than those of any evaluation
        distance = np.minimum.accumulate(primal) - np.maximum.accumulate(dual)
        last = solution.objective - solution.dual
        scale = (
            last / solution.gap if solution.gap > 0.0 and last > 0.0 else max(abs(solution.objective), solution.floor)
        )
        gap = np.maximum(distance, 0.0) / scale if scale > 0.0 else np.zeros_like(distance)
        if gap[-1] > solution.gap:
            evaluations = np.append(evaluations, max(float(solution.n_evaluations), evaluations[-1]))
            gap = np.append(gap, solution.gap)
        return cls(evaluations, gap, float(solution.tol)).plot(ax, look=look)

    def plot(self, ax: Any = None, *, look: Any = None) -> Self:
        """Draw the gap on a logarithmic scale.

        Parameters
        ----------
        ax : matplotlib axes or None
            None: a figure of its own.
        look : {"light", "dark"}, Look or None
            None: what suits the axes, or the settings of matplotlib.
        """
        with self._canvas(ax, look, "How the gap closed") as (axes, look_):
            seen = np.isfinite(self.gap)
            shown = np.maximum(self.gap[seen], 1e-3 * self.tol)  # a gap of 0 has no logarithm
            marker = "o" if shown.size < 40 else None
            axes.plot(
                self.evaluations[seen],
                shown,
                marker=marker,
                markersize=3.5,
                color=look_.main,
                linewidth=1.6,
                drawstyle="steps-post",
                label="proved by the bounds so far",
            )
            axes.axhline(self.tol, linestyle="--", color=look_.ink, linewidth=1.2, label="asked for")
            axes.set(yscale="log", xlabel="evaluations of the objective", ylabel="duality gap, relative")
            axes.legend(loc="best")
        return self
