"""Where a display draws: axes that were given, or a figure of its own in the house style."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Self

import numpy as np

from infinitask._base.arrays import HostArray
from infinitask.plotting._look import SIZE, Look, look_of


class Display:
    """Base of all displays: one way to draw, and where it was drawn last.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
    figure_ : matplotlib.figure.Figure
    """

    ax_: Any
    figure_: Any
    _own = True
    _equal = False
    """Whether a unit is as long on both axes."""

    @property
    def _title(self) -> str:
        """The title of a figure of its own."""
        raise NotImplementedError

    @property
    def _size(self) -> tuple[float, float]:
        """Width and height of a figure of its own, in inches."""
        return SIZE

    def _draw(self, axes: Any, look: Look) -> None:
        """Draw into these axes."""
        raise NotImplementedError

    def plot(self, ax: Any = None, *, look: Any = None) -> Self:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib axes or None
            None: a figure of its own.
        look : {"light", "dark"}, Look or None
            None: what suits the axes, or the settings of matplotlib.
        """
        with self._canvas(ax, look, self._title, size=self._size, equal=self._equal) as (axes, look_):
            self._draw(axes, look_)
        return self

    def __repr__(self) -> str:
        """Which picture it is; its numbers would fill a screen."""
        return f"<{type(self).__name__}{', drawn' if hasattr(self, 'ax_') else ''}>"

    def _legend(self, axes: Any, **place: Any) -> None:
        """A legend beside the axes, or at a given place; within axes that someone else made, where it hides least."""
        place = place or {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
        axes.legend(**(place if self._own else {"loc": "best"}))

    @contextmanager
    def _canvas(
        self, ax: Any, look: Any, title: str, *, size: tuple[float, float] = SIZE, columns: int = 1, equal: bool = False
    ) -> Iterator[tuple[Any, Look]]:
        """The axes to draw into, and their look: ``ax``, or those of a new figure, which alone gets the title.

        Parameters
        ----------
        ax : Axes, several of them, or None
        look : Look, {"light", "dark"} or None
            None: the look that suits the axes, or the settings of matplotlib.
        title : str
        size : (float, float)
        columns : int
            How many axes beside each other.
        equal : bool
            Whether a unit is as long on both axes.
        """
        self._own = ax is None
        if ax is not None:
            matplotlib, first = _matplotlib("matplotlib"), _first_axes(ax)
            if look is None:
                paper = first.get_facecolor() if first.get_facecolor()[3] > 0.0 else first.figure.get_facecolor()
                look = Look.on(paper, matplotlib.rcParams["text.color"])
            with matplotlib.rc_context(look_of(look).colour_settings()):
                yield ax, look_of(look)
            self.ax_, self.figure_ = ax, first.figure
            return
        plt = _matplotlib("matplotlib.pyplot")
        look = Look.of_settings() if look is None else look_of(look)
        title = "\n".join(textwrap.wrap(title, int(7.5 * size[0])))  # letters to an inch of the figure
        with plt.rc_context(look.settings()):
            layout = "compressed" if equal else "constrained"
            figure, axes = plt.subplots(1, columns, figsize=size, layout=layout)
            try:
                yield axes, look
            except BaseException:
                plt.close(figure)
                raise
            for each in np.ravel(np.asarray(axes, dtype=object)):
                # ticks are made when they are first drawn, with the settings of that moment
                each.tick_params(which="both", colors=look.muted, labelcolor=look.muted)
            if columns > 1:
                figure.suptitle(title, x=0.01, ha="left", weight="bold", size=12.5, color=look.ink)
            else:
                axes.set_title(title)
        self.ax_, self.figure_ = axes, figure


def _matplotlib(module: str) -> Any:
    """A module of matplotlib, or an error that names the extra."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            "Plots are drawn with matplotlib, which is not installed; install it with the extra: "
            'pip install "infinitask[plot]".'
        ) from error


def _first_axes(given: Any) -> Any:
    """The first of one or several axes; an error where something is no axes."""
    several = np.ravel(np.asarray(given, dtype=object))
    for ax in several:
        if not isinstance(ax, _matplotlib("matplotlib.axes").Axes):
            raise TypeError(f"ax={ax!r} was given; it must be axes of matplotlib, or None for a new figure.")
    return several[0]


def colour_bar(axes: Any, mapping: Any, label: str, ticks: Any, look: Look) -> None:
    """Add a colour bar without a frame beside the axes."""
    letters = max(int(12.5 * _height(axes)), 12)  # at least 12 to a line
    lines = len(textwrap.wrap(label, letters))
    balanced = next(w for w in range(-(-len(label) // lines), letters + 1) if len(textwrap.wrap(label, w)) <= lines)
    bar = axes.figure.colorbar(mapping, ax=axes, ticks=ticks, pad=0.02, aspect=30)
    bar.set_label("\n".join(textwrap.wrap(label, balanced)), labelpad=8, color=look.ink)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0, which="both", colors=look.muted)


def _height(axes: Any) -> float:
    """About the height of axes, in inches; with units of equal length it is less than their place has room for."""
    box = axes.get_position(original=True)
    width, height = axes.figure.get_size_inches() * np.array([box.width, box.height])
    if axes.get_aspect() != "auto":
        (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
        height = min(height, axes.get_aspect() * 0.92 * width * abs(high - low) / abs(right - left))
    return float(height) * 10.0 / float(_matplotlib("matplotlib").rcParams["font.size"])


def few(levels: HostArray, most: int = 9) -> HostArray:
    """At most ``most`` of some levels, evenly picked, for the ticks of a colour bar."""
    if levels.size <= most:
        return levels
    step = -(-(levels.size - 1) // (most - 1))
    return levels[::step]


def percent(share: float) -> str:
    """A fraction as a percentage: 0.9 as "90%".

    Examples
    --------
    >>> percent(0.9), percent(0.995)
    ('90%', '99.5%')
    """
    return f"{100.0 * share:.4g}%"
