"""Quantile curves along one feature, an index or time: as a fan, and where they cross."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, final

import numpy as np

from infinitask._base.arrays import HostArray
from infinitask._base.validation import choice
from infinitask.plotting._asked import CURVES, asked, by_level, name_of
from infinitask.plotting._look import Display, Look, colour_bar, percent

BANDS = np.array([0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95])
"""Default levels of a fan: intervals of 50, 80 and 90%, and the median."""

MANY_LEVELS = 12
"""From this number of levels on, the fan has lines instead of bands."""


@final
class QuantileFanDisplay(Display):
    """Plot quantiles as a fan around the median: along one feature, an index, or time.

    Parameters
    ----------
    x : array (k,)
        The positions of the quantiles: values of a feature, an index, or times.
    curves : ndarray (k, q)
        The quantiles.
    quantiles : ndarray (q,)
        Their levels, ascending.
    points : (array (n,), array (n,)) or None
        Positions and values of observations.
    x_name, y_name : str
        Labels of the axes.
    held : bool
        Whether other features are held constant; those of the points vary.

    Attributes
    ----------
    ax_, figure_
        Axes and figure of the last drawing.

    Examples
    --------
    >>> from infinitask import InfiniteQuantileRegressor
    >>> from infinitask.datasets import make_sine
    >>> from infinitask.plotting import QuantileFanDisplay
    >>> X, y = make_sine(100, random_state=0)
    >>> model = InfiniteQuantileRegressor(n_nodes=12).fit(X, y)
    >>> display = QuantileFanDisplay.from_estimator(model, X, y, quantiles=[0.1, 0.5, 0.9])
    >>> display.curves.shape
    (200, 3)
    """

    x: Any
    curves: HostArray
    quantiles: HostArray
    points: tuple[Any, Any] | None = None
    x_name: str = "x"
    y_name: str = "y"
    held: bool = False

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        feature: Any = 0,
        along: Any = None,
        at: Mapping[Any, Any] | None = None,
        quantiles: Any = None,
        grid: int = 200,
        **drawing: Any,
    ) -> Self:
        """Plot the quantiles of a model along one feature, or of the rows of X along an index or time.

        Parameters
        ----------
        estimator : estimator
            A fitted quantile model, or a pipeline that ends with one.
        X : table (n, d)
            Its column ``feature`` gives the range; the medians of the other columns give the values to hold them at.
        y : array (n,) or None
            Observations, drawn as points.
        feature : int or str
            The feature that changes, by position or name.
        along : array (n,) or None
            An index or times, one for each row of X; the quantiles of the rows are then drawn along it.
        at : mapping or None
            Maps names or positions of other features to the values at which they are held, instead of their medians.
        quantiles : array (q,) or None
            Levels; None: those of intervals of 50, 80 and 90%, and the median.
        grid : int
            The number of values of the feature.
        drawing
            Options passed to :meth:`plot`, such as ``ax``.
        """
        given = asked(estimator, CURVES, cls.__name__)
        levels = np.sort(given.tasks(quantiles, BANDS))
        if along is None:
            table = given.table(X)
            x, rows, name = table.slice(feature, at, grid)
            points = None if y is None else (table.columns[table.position(feature, "feature")], np.asarray(y))
            held = len(table.names) > 1
        else:
            x, order, name = _in_order(along, "along")
            if x.size != np.shape(X)[0]:
                raise ValueError(f"along holds {x.size} entries for {np.shape(X)[0]} rows of X; give one for each row.")
            rows = X.iloc[order] if hasattr(X, "iloc") else np.asarray(X)[order]
            points, held = None if y is None else (x, np.asarray(y)[order]), False
        curves = given.model.predict(given.inputs(rows), levels)
        return cls(x, curves, levels, points, name, name_of(y), held).plot(**drawing)

    @classmethod
    def from_predictions(cls, curves: Any, quantiles: Any, *, x: Any = None, y: Any = None, **drawing: Any) -> Self:
        """Plot given quantiles.

        Parameters
        ----------
        curves : array (n, q)
            Quantiles, one column for each level.
        quantiles : array (q,)
            The levels.
        x : array (n,) or None
            Positions: a feature, an index or times, in any order; None: 0, 1, 2, …
        y : array (n,) or None
            Observations at the same positions, drawn as points.
        drawing
            Options passed to :meth:`plot`, such as ``ax``.
        """
        n = np.shape(curves)[0] if np.ndim(curves) else 0
        curves, levels = by_level(curves, quantiles, n)
        place, order, name = _in_order(np.arange(n) if x is None else x, "x")
        if len(place) != n:
            raise ValueError(f"x holds {len(place)} entries for {n} rows of curves; give one for each row.")
        points = None if y is None else (place, np.asarray(y)[order])
        name = "row" if x is None else name
        return cls(place, curves[order], levels, points, name, name_of(y)).plot(**drawing)

    def plot(self, ax: Any = None, *, kind: str = "auto", look: Any = None) -> Self:
        """Plot the fan.

        Parameters
        ----------
        ax : matplotlib axes or None
            None: a new figure.
        kind : {"auto", "bands", "lines"}
            Bands between paired levels, or lines. "auto": lines from twelve levels on, or if levels have no pairs.
        look : {"light", "dark"}, Look or None
            None: the look that suits the axes, or the settings of matplotlib.
        """
        kind = choice("kind", kind, ("auto", "bands", "lines"))
        pairs = self.pairs
        if kind == "auto":
            left = self.quantiles.size - 2 * len(pairs)
            kind = "bands" if pairs and left <= 1 and self.quantiles.size < MANY_LEVELS else "lines"
        if kind == "bands" and not pairs:
            given = self.quantiles.tolist()
            raise ValueError(f"kind='bands' was given for the levels {given}; a band needs two, such as 0.1 and 0.9.")
        title = f"Quantiles of {self.y_name} along {self.x_name}" + self.held * ", other inputs held"
        with self._canvas(ax, look, title) as (axes, look_):
            if self.points is not None:
                words, alpha = ("data, all inputs\nas they are", 0.25) if self.held else ("data", 0.45)
                marks = {"markersize": 2.6, "markeredgewidth": 0, "alpha": alpha, "zorder": 3}
                axes.plot(*self.points, "o", color=look_.ink, label=words, **marks)
            (self._bands if kind == "bands" else self._lines)(axes, look_)
            axes.set(xlabel=self.x_name, ylabel=self.y_name, xlim=(self.x[0], self.x[-1]))
            if _is_time(self.x):
                from matplotlib.dates import ConciseDateFormatter  # it writes the year once

                axes.xaxis.set_major_formatter(ConciseDateFormatter(axes.xaxis.get_major_locator()))
            if kind == "bands":
                self._legend(axes)
            elif self.points is not None:
                axes.legend(loc="best")
        return self

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Positions of the pairs of levels q and 1 − q, the widest pair first."""
        levels, found = self.quantiles, []
        for k, level in enumerate(levels):
            other = np.flatnonzero(np.abs(levels - (1.0 - level)) < 1e-9)
            if level < 0.5 and other.size:
                found.append((k, int(other[0])))
        return found

    def _bands(self, axes: Any, look: Any) -> None:
        shades, pairs = look.colours(pale=0.35), self.pairs
        outer, inner = (0.08, 0.5) if look.is_dark else (0.8, 0.25)  # the innermost band has the strongest colour
        for k, (low, high) in enumerate(pairs):
            words = f"middle {percent(self.quantiles[high] - self.quantiles[low])}"
            place = inner if len(pairs) == 1 else outer + (inner - outer) * k / (len(pairs) - 1)
            area = {"color": shades(place), "linewidth": 0, "zorder": 1.0 + 0.1 * k, "label": words}
            axes.fill_between(self.x, self.curves[:, low], self.curves[:, high], **area)
        middle = np.flatnonzero(np.abs(self.quantiles - 0.5) < 1e-9)
        if middle.size:
            axes.plot(self.x, self.curves[:, middle[0]], color=look.ink, linewidth=1.6, label="median", zorder=2.5)

    def _lines(self, axes: Any, look: Any) -> None:
        from matplotlib.collections import LineCollection

        axes.xaxis.update_units(self.x)
        x = axes.convert_xunits(self.x)
        lines = LineCollection(
            [np.column_stack([x, curve]) for curve in self.curves.T],
            array=self.quantiles,
            cmap=look.colours(),
            linewidths=0.9 if self.quantiles.size > MANY_LEVELS else 1.5,
        )
        axes.add_collection(lines)
        axes.autoscale_view()
        if self.quantiles.size > 1:
            first, last = self.quantiles[[0, -1]]
            quartiles = [level for level in (0.25, 0.5, 0.75) if first < level < last]
            ticks = self.quantiles if self.quantiles.size < 8 else [first, *quartiles, last]
            colour_bar(axes, lines, "quantile level", ticks, look)


def _in_order(along: Any, argument: str) -> tuple[HostArray, HostArray, str]:
    """An index or times in ascending order, the sorting permutation, and their name."""
    values = np.asarray(along)
    if values.ndim != 1 or values.size < 2:
        raise ValueError(f"{argument} of shape {values.shape} was given; it must be (n,) with two entries at least.")
    order = np.argsort(values, kind="stable")
    return values[order], order, name_of(along, "time" if _is_time(values) else "index")


def _is_time(x: Any) -> bool:
    return bool(np.issubdtype(np.asarray(x).dtype, np.datetime64))


@final
class CrossingDisplay(Display):
    """Plot where quantile curves cross: over a feature and the level, how far each curve lies below the previous one.

    Parameters
    ----------
    x : ndarray (k,)
        Values of the feature, ascending.
    quantiles : ndarray (q,)
        Levels, ascending.
    depth : ndarray (k, q − 1)
        (Q(θ_j) − Q(θ_j+1))₊: 0 if two neighbouring curves do not cross.
    x_name, y_name : str

    Attributes
    ----------
    ax_, figure_
        Axes and figure of the last drawing.

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
        **drawing: Any,
    ) -> Self:
        """Compare the curves of a model along one feature, with the others at their medians.

        Parameters
        ----------
        estimator : estimator
            A fitted quantile model, or a pipeline that ends with one.
        X : table (n, d)
            Its column ``feature`` gives the range.
        feature, at, grid
            As in :meth:`QuantileFanDisplay.from_estimator`.
        quantiles : array (q,) or None
            None: 0.01, 0.02, …, 0.99.
        drawing
            Options passed to :meth:`plot`, such as ``ax``.
        """
        given = asked(estimator, CURVES, cls.__name__)
        levels = np.sort(given.tasks(quantiles, np.arange(1, 100) / 100.0))
        x, rows, name = given.table(X).slice(feature, at, grid)
        curves = given.model.predict(given.inputs(rows), levels)
        return cls._of(x, curves, levels, name).plot(**drawing)

    @classmethod
    def from_predictions(cls, x: Any, curves: Any, quantiles: Any, **drawing: Any) -> Self:
        """Compare given curves.

        Parameters
        ----------
        x : array (k,)
        curves : array (k, q)
        quantiles : array (q,)
        drawing
            Options passed to :meth:`plot`, such as ``ax``.
        """
        x = np.asarray(x)
        curves, levels = by_level(curves, quantiles, x.size)
        order = np.argsort(x, kind="stable")
        return cls._of(x[order], curves[order], levels, "x").plot(**drawing)

    @classmethod
    def _of(cls, x: HostArray, curves: HostArray, levels: HostArray, name: str) -> Self:
        if levels.size < 2:
            raise ValueError(f"quantiles={levels.tolist()} was given; curves that may cross are at least two.")
        return cls(x, levels, np.maximum(-np.diff(curves, axis=1), 0.0), name)

    @property
    def share(self) -> float:
        """The fraction of the positions (x, level) at which neighbouring curves have crossed."""
        return float(np.mean(self.depth > 0.0))

    @property
    def _title(self) -> str:
        return f"Curves cross at {100.0 * self.share:.2g}% of the places" if self.share else "No quantile curves cross"

    def _draw(self, axes: Any, look: Look) -> None:
        middle = 0.5 * (self.quantiles[1:] + self.quantiles[:-1])
        axes.set(xlabel=self.x_name, ylabel="quantile level", xlim=(self.x[0], self.x[-1]))
        axes.set_ylim(self.quantiles[0], self.quantiles[-1])
        axes.set_facecolor(look.paper)
        if self.share == 0.0:
            words = f"in order at all {self.x.size} × {middle.size} places"
            axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", va="center", color=look.muted)
            return
        colours = look.colours() if look.is_dark else look.colours().reversed()
        crossed = np.ma.masked_less_equal(self.depth.T, 0.0)
        mesh = axes.pcolormesh(self.x, middle, crossed, cmap=colours, shading="nearest", rasterized=True)
        colour_bar(axes, mesh, f"how far the higher level lies below, in units of {self.y_name}", None, look)
