"""Displays of a fit: relevant features, the duality gap, and the candidates of the tuning."""

from __future__ import annotations

import textwrap
from typing import Any, Self, final

import numpy as np

from infinitask._base.arrays import HostArray
from infinitask._base.validation import choice, count
from infinitask.fitting._gradients import Relevance
from infinitask.plotting._asked import ANY, SELF_TUNED, asked
from infinitask.plotting._look import Display, Look
from infinitask.solvers import Solution


@final
class RelevanceDisplay(Display):
    """Plot which features matter: how much the prediction changes per standard deviation of each feature.

    Parameters
    ----------
    relevance : Relevance
        ``relevance_`` of a fitted model.
    max_inputs : int
        The maximum number of features to show, the most relevant ones.

    Attributes
    ----------
    ax_, figure_
        Axes and figure of the last drawing.

    Examples
    --------
    >>> import numpy as np
    >>> from infinitask import InfiniteQuantileRegressor
    >>> from infinitask.plotting import RelevanceDisplay
    >>> X = np.random.default_rng(0).normal(size=(80, 2))
    >>> display = RelevanceDisplay.from_estimator(InfiniteQuantileRegressor(n_nodes=8).fit(X, X[:, 1]))
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]  # from below
    ['x0', 'x1']
    """

    relevance: Relevance
    max_inputs: int = 20

    @classmethod
    def from_estimator(cls, estimator: Any, *, max_inputs: int = 20, **drawing: Any) -> Self:
        """Plot ``relevance_`` of a fitted model; for a pipeline, of the features of its last step.

        Parameters
        ----------
        estimator : estimator
        max_inputs : int
            The maximum number of features to show, the most relevant ones.
        drawing
            Options passed to :meth:`plot`, such as ``ax``.
        """
        given = asked(estimator, ANY, cls.__name__)
        return cls(given.model.relevance_, count("max_inputs", max_inputs)).plot(**drawing)

    _title = "Which inputs matter"

    @property
    def _size(self) -> tuple[float, float]:
        return 6.8, max(2.4, 1.5 + 0.34 * min(self.max_inputs, self.relevance.order.size))

    def _draw(self, axes: Any, look: Look) -> None:
        order = self.relevance.order[: self.max_inputs][::-1]
        effect, places = self.relevance.effect[order], np.arange(order.size)
        axes.hlines(places, 0.0, effect, color=look.main, linewidth=2.2)
        axes.plot(effect, places, "o", color=look.main, markersize=6.5)
        axes.set_yticks(places, [self.relevance.names[int(j)] for j in order])
        axes.set(xlim=(0.0, None), ylim=(-0.7, order.size - 0.3))
        axes.set_xlabel("change of the answer for one standard deviation of the input")
        left = len(self.relevance.names) - order.size
        if left:
            words = f"and {left} more that matter less"
            axes.text(1.0, 0.03, words, transform=axes.transAxes, ha="right", color=look.muted)


@final
class ConvergenceDisplay(Display):
    """Plot how fast a fit was certified: the duality gap after each evaluation of the objective.

    Parameters
    ----------
    evaluations : ndarray (k,)
    gap : ndarray (k,)
        The best bounds so far, P − D relative to the scale of the final gap; infinite while no bound is known.
    tol : float
        The requested gap.

    Attributes
    ----------
    ax_, figure_
        Axes and figure of the last drawing.

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
    def from_estimator(cls, estimator: Any, **drawing: Any) -> Self:
        """Plot ``solution_.history`` of a fitted model.

        Parameters
        ----------
        estimator : estimator
        drawing
            Options passed to :meth:`plot`, such as ``ax``.
        """
        return cls.from_solution(asked(estimator, ANY, cls.__name__).model.solution_, **drawing)

    @classmethod
    def from_solution(cls, solution: Solution, **drawing: Any) -> Self:
        """Plot the history of a solution.

        Parameters
        ----------
        solution : Solution
        drawing
            Options passed to :meth:`plot`, such as ``ax``.
        """
        evaluations, primal, dual = np.asarray(solution.history, dtype=np.float64).reshape(-1, 3).T
        if evaluations.size == 0:
            raise ValueError("The solution has no history; it was found without evaluations of the objective.")
        if not np.isfinite(solution.gap):
            raise ValueError(f"The solution proves no gap that could be drawn: {solution.message}")
        # bounds proved at the end may be better than those of any evaluation
        distance = np.minimum.accumulate(primal) - np.maximum.accumulate(dual)
        last = solution.objective - solution.dual
        scale = (
            last / solution.gap if solution.gap > 0.0 and last > 0.0 else max(abs(solution.objective), solution.floor)
        )
        gap = np.maximum(distance, 0.0) / scale if scale > 0.0 else np.zeros_like(distance)
        if gap[-1] > solution.gap:
            evaluations = np.append(evaluations, max(float(solution.n_evaluations), evaluations[-1]))
            gap = np.append(gap, solution.gap)
        return cls(evaluations, gap, float(solution.tol)).plot(**drawing)

    _title = "How the gap closed"

    def _draw(self, axes: Any, look: Look) -> None:
        seen = np.isfinite(self.gap)
        shown = np.maximum(self.gap[seen], 1e-3 * self.tol)  # a gap of 0 has no logarithm
        line = {"marker": "o" if shown.size < 40 else None, "markersize": 3.5, "color": look.main, "linewidth": 1.6}
        words = "proved by the bounds so far"
        axes.plot(self.evaluations[seen], shown, drawstyle="steps-post", label=words, **line)
        axes.axhline(self.tol, **look.dashed("asked for"))
        axes.set(yscale="log", xlabel="evaluations of the objective", ylabel="duality gap, relative")
        axes.legend(loc="best")


@final
class ContestDisplay(Display):
    """Plot the comparison of a self-tuned model: the held-out loss of every kernel, and the chosen one.

    Parameters
    ----------
    names : list of str
        The kernels that were compared.
    losses : ndarray (kernels, k)
        The mean loss of each kernel at each of ``alphas``, infinite if a fit could not win and was skipped; for level
        sets (kernels, 1), the fraction of the reference points in the sets.
    best : (int, int)
        The position of the choice.
    alphas : ndarray (k,) or None
        The weights λ that were compared; None for level sets.
    errors : ndarray (kernels, k) or None
        The standard error, over the folds, of the difference between a loss and the loss that ignores the features.
    ignoring : float or None
        The mean loss of predictions that ignore the features.
    measure : str
        The name of the loss.

    Attributes
    ----------
    ax_, figure_
        Axes and figure of the last drawing.

    Examples
    --------
    >>> from infinitask.datasets import make_sine
    >>> from infinitask.plotting import ContestDisplay
    >>> from infinitask import InfiniteQuantileRegressorCV
    >>> X, y = make_sine(80, random_state=0)
    >>> model = InfiniteQuantileRegressorCV(kernels=["rbf", "linear"], random_state=0).fit(X, y)
    >>> display = ContestDisplay.from_estimator(model)
    >>> display.losses.shape, display.names[display.best[0]]
    ((2, 20), "'rbf'")
    """

    names: list[str]
    losses: HostArray
    best: tuple[int, int]
    alphas: HostArray | None = None
    errors: HostArray | None = None
    ignoring: float | None = None
    measure: str = "loss on held-out rows"

    @classmethod
    def from_estimator(cls, estimator: Any, **drawing: Any) -> Self:
        """Plot ``cv_results_`` of a self-tuned model.

        Parameters
        ----------
        estimator : estimator
            A fitted self-tuned model, such as ``InfiniteQuantileRegressorCV``.
        drawing
            Options passed to :meth:`plot`, such as ``ax``.
        """
        results = asked(estimator, SELF_TUNED, cls.__name__).model.cv_results_
        names = list(results["kernels"])
        if "areas" in results:
            losses = np.asarray(results["areas"])[:, None]
            words = "mean fraction of reference points in the sets"
            found = cls(names, losses, (int(results["best"]), 0), measure=words)
        else:
            table, ignoring = np.asarray(results["losses"]), np.asarray(results["ignoring_x"])
            seen = np.all(np.isfinite(table), axis=2)
            whole = np.where(seen[..., None], table, 0.0)
            # losses differ more between folds than between models: the error is that of the difference
            errors = np.std(whole - ignoring, axis=2, ddof=min(1, ignoring.size - 1)) / np.sqrt(ignoring.size)
            losses = np.where(seen, whole.mean(axis=2), np.inf)
            k, i = results["best"]
            alphas, errors = np.asarray(results["alphas"]), np.where(seen, errors, np.nan)
            found = cls(names, losses, (int(k), int(i)), alphas, errors, float(ignoring.mean()))
        return found.plot(**drawing)

    @property
    def order(self) -> HostArray:
        """Positions (k,) of the kernels that were compared to the end, the best first."""
        smallest = self.losses.min(axis=1)
        order = np.argsort(smallest, kind="stable")
        return np.asarray(order[np.isfinite(smallest[order])])

    @property
    def chosen_loss(self) -> float:
        """The loss of the chosen candidate.

        A λ that almost ignores the features may not have been fitted; its loss is then that of ignoring them. A λ
        refined with more rows is drawn at the best loss of its kernel.
        """
        k, i = self.best
        if np.isfinite(self.losses[k, i]):
            return float(self.losses[k, i])
        return float(self.losses[k].min()) if i > 0 or self.ignoring is None else self.ignoring

    def plot(self, ax: Any = None, *, kind: str = "kernels", max_kernels: int = 12, look: Any = None) -> Self:
        """Plot the comparison.

        Parameters
        ----------
        ax : matplotlib axes or None
            None: a new figure.
        kind : {"kernels", "path"}
            The best loss of each kernel, or the losses of each kernel along λ.
        max_kernels : int
            The maximum number of kernels to show, the best ones.
        look : {"light", "dark"}, Look or None
            None: the look that suits the axes, or the settings of matplotlib.
        """
        kind = choice("kind", kind, ("kernels", "path"))
        if kind == "path" and self.alphas is None:
            raise ValueError("kind='path' was given; level sets are compared without a path of alphas: 'kernels'.")
        order = self.order[: count("max_kernels", max_kernels)]
        if self.best[0] not in order:
            order = np.append(order, self.best[0])
        size = (8.4, max(2.6, 1.6 + 0.42 * order.size)) if kind == "kernels" else (8.8, 4.6)
        with self._canvas(ax, look, "What the tuning compared", size=size) as (axes, look_):
            (self._kernels if kind == "kernels" else self._path)(axes, look_, order)
        return self

    def _kernels(self, axes: Any, look: Look, order: HostArray) -> None:
        order = order[::-1]
        table = np.where(np.isfinite(self.losses), self.losses, np.nan)
        column = np.where(np.all(np.isnan(table), axis=1), 0, np.argmin(self.losses, axis=1))
        losses, places = table[order, column[order]], np.arange(order.size)
        if self.errors is not None:
            errors = self.errors[order, column[order]]
            line = {"color": look.muted, "linewidth": 1.2, "label": "one standard error"}
            axes.hlines(places, losses - errors, losses + errors, **line)
        axes.plot(losses, places, "o", color=look.main, markersize=6, linestyle="none", label="best of a kernel")
        row = int(np.flatnonzero(order == self.best[0])[0])
        axes.plot(self.chosen_loss, row, **look.ring("chosen"))
        self._line_of_ignoring(axes.axvline, look)
        axes.set_yticks(places, [_short(self.names[int(k)]) for k in order])
        lost = len(self.names) - self.order.size
        if lost:
            axes.plot([], [], linestyle="none", label=f"{lost} more lost\nan earlier heat")
        axes.set(xlabel=self.measure, ylim=(-0.7, order.size - 0.3))
        self._legend(axes)

    def _path(self, axes: Any, look: Look, order: HostArray) -> None:
        assert self.alphas is not None
        table = np.where(np.isfinite(self.losses), self.losses, np.nan)
        for k, style in zip(order, look.series(order.size), strict=True):
            name = _short(self.names[int(k)])
            if int(k) == self.best[0]:
                main = {"color": look.main, "linewidth": 2.6, "zorder": 3}
                axes.plot(self.alphas, table[k], marker="o", markersize=4, label=name, **main)
            else:
                axes.plot(self.alphas, table[k], marker=".", linewidth=1.2, alpha=0.8, label=name, **style)
        axes.plot(self.alphas[self.best[1]], self.chosen_loss, zorder=4, **look.ring("chosen"))
        low, high = np.nanmin(table[order]), max(np.nanmax(table[order]), self.chosen_loss)
        margin = 0.08 * (high - low) if high > low else 0.05 * abs(high)
        self._line_of_ignoring(axes.axhline, look, farthest=high + 10.0 * margin)
        axes.set(xscale="log", xlabel="weight of the ridge (alpha)", ylabel=self.measure)
        if self.ignoring is None or self.ignoring > high + 10.0 * margin:
            axes.set_ylim(low - margin, high + margin)
        self._legend(axes)

    def _line_of_ignoring(self, draw: Any, look: Look, farthest: float = np.inf) -> None:
        """Draw the loss without features; write it as text only if it is so far off that all else would look alike."""
        if self.ignoring is None:
            return
        near = self.ignoring <= farthest
        words = "inputs ignored" if near else f"inputs ignored: {self.ignoring:.3g}"
        line = {"linestyle": "--" if near else "none", "color": look.muted, "linewidth": 1.2}
        draw(self.ignoring if near else np.nan, label=words, **line)


def _short(name: str) -> str:
    """A name on at most two lines."""
    return textwrap.fill(name.strip("'"), 40, max_lines=2, placeholder="…")
