"""Which features matter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np

from infinitask._base.validation import count
from infinitask.fitting._gradients import Relevance
from infinitask.plotting._asked import ANY, asked
from infinitask.plotting._canvas import Display


@final
@dataclass(eq=False, repr=False)
class RelevanceDisplay(Display):
    """Which features matter: how much the answer changes when one of them changes by its standard deviation.

    Parameters
    ----------
    relevance : Relevance
        ``relevance_`` of a fitted model.
    max_inputs : int
        How many are shown, those that matter most.

    Attributes
    ----------
    ax_, figure_
        Where it was drawn last.

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
    def from_estimator(cls, estimator: Any, *, max_inputs: int = 20, ax: Any = None, look: Any = None) -> Self:
        """Draw ``relevance_`` of a fitted model; in a pipeline, of the features of its last step.

        Parameters
        ----------
        estimator : estimator
        max_inputs : int
            How many are shown, those that matter most.
        ax, look
            As in :meth:`plot`.
        """
        given = asked(estimator, ANY, cls.__name__)
        return cls(given.model.relevance_, count("max_inputs", max_inputs)).plot(ax, look=look)

    def plot(self, ax: Any = None, *, look: Any = None) -> Self:
        """Draw a bar for each feature, the one that matters most on top.

        Parameters
        ----------
        ax : matplotlib axes or None
            None: a figure of its own.
        look : {"light", "dark"}, Look or None
            None: what suits the axes, or the settings of matplotlib.
        """
        order = self.relevance.order[: self.max_inputs][::-1]
        effect, places = self.relevance.effect[order], np.arange(order.size)
        height = 1.5 + 0.34 * order.size
        with self._canvas(ax, look, "Which inputs matter", size=(6.8, max(2.4, height))) as (axes, look_):
            axes.hlines(places, 0.0, effect, color=look_.main, linewidth=2.2)
            axes.plot(effect, places, "o", color=look_.main, markersize=6.5)
            axes.set_yticks(places, [self.relevance.names[int(j)] for j in order])
            axes.set(xlim=(0.0, None), ylim=(-0.7, order.size - 0.3))
            axes.set_xlabel("change of the answer for one standard deviation of the input")
            left = len(self.relevance.names) - order.size
            if left:
                words = f"and {left} more that matter less"
                axes.text(1.0, 0.03, words, transform=axes.transAxes, ha="right", color=look_.muted)
        return self
