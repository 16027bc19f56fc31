"""What a self-tuned model compared before it chose."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np

from infinitask._base.arrays import HostArray
from infinitask._base.validation import choice, count
from infinitask.plotting._asked import SELF_TUNED, asked
from infinitask.plotting._canvas import Display
from infinitask.plotting._look import Look


@final
@dataclass(eq=False, repr=False)
class ContestDisplay(Display):
    """What a self-tuned model compared: the loss of every kernel on held-out rows, and the one that was chosen.

    Parameters
    ----------
    names : list of str
        The kernels that competed.
    losses : ndarray (kernels, k)
        The mean loss of each kernel at each ``alphas``, infinite where a fit could not win and was skipped; for level
        sets (kernels, 1), the fraction of the reference points in the sets.
    best : (int, int)
        The position of the choice.
    alphas : ndarray (k,) or None
        The weights λ that competed; None for level sets.
    errors : ndarray (kernels, k) or None
        The standard error of a loss over the folds, as far as it differs from that of ignoring the features.
    ignoring : float or None
        The mean loss of predictions that ignore the features.
    measure : str
        What a loss is.

    Attributes
    ----------
    ax_, figure_
        Where it was drawn last.

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
    def from_estimator(
        cls, estimator: Any, *, kind: str = "kernels", max_kernels: int = 12, ax: Any = None, look: Any = None
    ) -> Self:
        """Draw ``cv_results_`` of a self-tuned model.

        Parameters
        ----------
        estimator : estimator
            A fitted model that tuned itself, such as ``InfiniteQuantileRegressorCV``.
        kind, max_kernels, ax, look
            As in :meth:`plot`.
        """
        results = asked(estimator, SELF_TUNED, cls.__name__).model.cv_results_
        if "areas" in results:
            losses = np.asarray(results["areas"])[:, None]
            words = "mean fraction of reference points in the sets"
            found = cls(list(results["kernels"]), losses, (int(results["best"]), 0), measure=words)
        else:
            table, ignoring = np.asarray(results["losses"]), np.asarray(results["ignoring_x"])
            seen = np.all(np.isfinite(table), axis=2)
            whole = np.where(seen[..., None], table, 0.0)
            # folds differ more than models do: the error is that of the difference
            errors = np.std(whole - ignoring, axis=2, ddof=min(1, ignoring.size - 1)) / np.sqrt(ignoring.size)
            losses = np.where(seen, whole.mean(axis=2), np.inf)
            k, i = results["best"]
            found = cls(
                list(results["kernels"]),
                losses,
                (int(k), int(i)),
                np.asarray(results["alphas"]),
                np.where(seen, errors, np.nan),
                float(ignoring.mean()),
            )
        return found.plot(ax, kind=kind, max_kernels=max_kernels, look=look)

    @property
    def order(self) -> HostArray:
        """The kernels that were compared to the end, the best first: positions (k,)."""
        smallest = self.losses.min(axis=1)
        order = np.argsort(smallest, kind="stable")
        return np.asarray(order[np.isfinite(smallest[order])])

    @property
    def chosen_loss(self) -> float:
        """The loss of the choice.

        A λ that all but ignores the features need not have been fitted: its loss is that of ignoring them. One that was
        refined with more rows is drawn at the best of its kernel.
        """
        k, i = self.best
        if np.isfinite(self.losses[k, i]):
            return float(self.losses[k, i])
        return float(self.losses[k].min()) if i > 0 or self.ignoring is None else self.ignoring

    def plot(self, ax: Any = None, *, kind: str = "kernels", max_kernels: int = 12, look: Any = None) -> Self:
        """Draw the comparison.

        Parameters
        ----------
        ax : matplotlib axes or None
            None: a figure of its own.
        kind : {"kernels", "path"}
            The best loss of each kernel, or the losses of each along λ.
        max_kernels : int
            How many kernels are shown at most, the best ones.
        look : {"light", "dark"}, Look or None
            None: what suits the axes, or the settings of matplotlib.
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
        errors = None if self.errors is None else self.errors[order, column[order]]
        if errors is not None:
            axes.hlines(
                places, losses - errors, losses + errors, color=look.muted, linewidth=1.2, label="one standard error"
            )
        axes.plot(losses, places, "o", color=look.main, markersize=6, linestyle="none", label="best of a kernel")
        row = int(np.flatnonzero(order == self.best[0])[0])
        axes.plot(self.chosen_loss, row, **_ring(look))
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
        axes.plot(self.alphas[self.best[1]], self.chosen_loss, zorder=4, **_ring(look))
        low, high = np.nanmin(table[order]), max(np.nanmax(table[order]), self.chosen_loss)
        margin = 0.08 * (high - low) if high > low else 0.05 * abs(high)
        self._line_of_ignoring(axes.axhline, look, farthest=high + 10.0 * margin)
        axes.set(xscale="log", xlabel="weight of the ridge (alpha)", ylabel=self.measure)
        if self.ignoring is None or self.ignoring > high + 10.0 * margin:
            axes.set_ylim(low - margin, high + margin)
        self._legend(axes)

    def _line_of_ignoring(self, draw: Any, look: Look, farthest: float = np.inf) -> None:
        """The loss without features; where that is so far off that all else would look alike, in words alone."""
        if self.ignoring is None:
            return
        line = {"linestyle": "--", "color": look.muted, "linewidth": 1.2}
        if self.ignoring <= farthest:
            draw(self.ignoring, **line, label="inputs ignored")
        else:
            draw(np.nan, **(line | {"linestyle": "none"}), label=f"inputs ignored: {self.ignoring:.3g}")


def _ring(look: Look) -> dict[str, Any]:
    ring = {"markerfacecolor": "none", "markeredgecolor": look.ink, "markeredgewidth": 1.8, "markersize": 11}
    return {"marker": "o", "linestyle": "none", "label": "chosen", **ring}


def _short(name: str) -> str:
    """A name in at most two lines."""
    return textwrap.fill(name.strip("'"), 40, max_lines=2, placeholder="…")
