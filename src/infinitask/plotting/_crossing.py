"""Where quantile curves cross."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np

from infinitask._base.arrays import HostArray
from infinitask._base.validation import levels_within, predictions
from infinitask.plotting._asked import CURVES, asked, sliced
from infinitask.plotting._canvas import Display, colour_bar


@final
@dataclass(eq=False, repr=False)
class CrossingDisplay(Display):
    """Where quantile curves cross: over a feature and the level, how far each curve lies below the one before it.

    Parameters
    ----------
    x : ndarray (k,)
        Values of the feature, ascending.
    quantiles : ndarray (q,)
        Levels, ascending.
    depth : ndarray (k, q − 1)
        (Q(θ_j) − Q(θ_j+1))₊: 0 where two neighbouring curves are in order.
    x_name, y_name : str

    Attributes
    ----------
    ax_, figure_
        Where it was drawn last.

    Examples
    --------
    >>> from infinitask import InfiniteQuantileRegressor
    >>> from infinitask.datasets import make_sine
    >>> from infinitask.plotting import CrossingDisplay
    >>> X, y = make_sine(60, random_state=0)
    >>> loose = InfiniteQuantileRegressor(n_nodes=12, noncrossing=0.0, gamma=100.0, alpha=1e-5).fit(X, y)
    >>> CrossingDisplay.from_estimator(loose, X).share > 0.0
    True
    >>> sorted_ = InfiniteQuantileRegressor(n_nodes=12, noncrossing="rearrange").fit(X, y)
    >>> CrossingDisplay.from_estimator(sorted_, X).share
    0.0
    """

    x: HostArray
    quantiles: HostArray
    depth: HostArray
    x_name: str = "x"
    y_name: str = "y"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        feature: Any = 0,
        at: Mapping[Any, Any] | None = None,
        quantiles: Any = None,
        grid: int = 200,
        ax: Any = None,
        look: Any = None,
    ) -> Self:
        """Compare the curves of a model along one feature, the others at their medians.

        Parameters
        ----------
        estimator : estimator
            A fitted model of quantiles, alone or at the end of a pipeline.
        X : table (n, d)
            Its column ``feature`` says from where to where.
        feature, at, grid
            As in :meth:`QuantileFanDisplay.from_estimator`.
        quantiles : array (q,) or None
            None: 0.01, 0.02, …, 0.99.
        ax, look
            As in :meth:`plot`.
        """
        given = asked(estimator, CURVES, cls.__name__)
        levels = np.sort(given.tasks(quantiles, np.arange(1, 100) / 100.0))
        x, rows, name = sliced(given.names(X), X, feature, at, grid)
        curves = given.model.predict(given.inputs(rows), levels)
        return cls._of(x, curves, levels, name).plot(ax, look=look)

    @classmethod
    def from_predictions(cls, x: Any, curves: Any, quantiles: Any, *, ax: Any = None, look: Any = None) -> Self:
        """Compare curves that are known already.

        Parameters
        ----------
        x : array (k,)
        curves : array (k, q)
        quantiles : array (q,)
        ax, look
            As in :meth:`plot`.
        """
        levels, x = levels_within("quantiles", quantiles, 0.0, 1.0), np.asarray(x)
        curves = predictions(curves, x.size, levels.size, "levels")
        order, by_level = np.argsort(x, kind="stable"), np.argsort(levels)
        return cls._of(x[order], curves[order][:, by_level], levels[by_level], "x").plot(ax, look=look)

    @classmethod
    def _of(cls, x: HostArray, curves: HostArray, levels: HostArray, name: str) -> Self:
        if levels.size < 2:
            raise ValueError(f"quantiles={levels.tolist()} was given; curves that may cross are at least two.")
        return cls(x, levels, np.maximum(-np.diff(curves, axis=1), 0.0), name)

    @property
    def share(self) -> float:
        """The fraction of the places (x, level) at which neighbouring curves have crossed."""
        return float(np.mean(self.depth > 0.0))

    def plot(self, ax: Any = None, *, look: Any = None) -> Self:
        """Draw the map.

        Parameters
        ----------
        ax : matplotlib axes or None
            None: a figure of its own.
        look : {"light", "dark"}, Look or None
            None: what suits the axes, or the settings of matplotlib.
        """
        crossed = f"Curves cross at {100.0 * self.share:.2g}% of the places"
        with self._canvas(ax, look, crossed if self.share else "No quantile curves cross") as (axes, look_):
            middle = 0.5 * (self.quantiles[1:] + self.quantiles[:-1])
            axes.set(xlabel=self.x_name, ylabel="quantile level", xlim=(self.x[0], self.x[-1]))
            axes.set_ylim(self.quantiles[0], self.quantiles[-1])
            axes.set_facecolor(look_.paper)
            if self.share == 0.0:
                words = f"in order at all {self.x.size} × {middle.size} places"
                axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", va="center", color=look_.muted)
                return self
            mesh = axes.pcolormesh(
                self.x,
                middle,
                np.ma.masked_less_equal(self.depth.T, 0.0),
                cmap=look_.colours() if look_.is_dark else look_.colours().reversed(),
                shading="nearest",
                rasterized=True,
            )
            colour_bar(axes, mesh, f"how far the higher level lies below, in units of {self.y_name}", None, look_)
        return self
