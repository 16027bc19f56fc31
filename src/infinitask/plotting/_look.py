"""What all displays share: their look (ink, paper, one colour map for tasks), and the axes they are drawn into."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Self, dataclass_transform, final

import numpy as np

from infinitask._base.arrays import HostArray
from infinitask._base.extras import needed

LINE_STYLES = ("-", "--", "-.", ":")
"""Curves differ by line style as well as colour, for print and for colour-blind readers."""

DARK_PAPER = 0.35
"""Paper with a luminance below this is dark."""

READABLE = 4.5
"""The minimum contrast of text on its paper (WCAG 2, level AA)."""

SIZE = (6.8, 4.4)
"""Width and height of a figure in inches."""


@final
@dataclass(frozen=True)
class Look:
    """The colours of a figure: :data:`LIGHT` as in the demo, :data:`DARK`, or any other ink and paper.

    Parameters
    ----------
    ink, paper : str
        Colours of text and points, and of the background.
    muted : str
        Colour of tick labels and reference lines.
    edge : str
        Colour of the axes.

    Examples
    --------
    >>> Look(ink="white", paper="black", muted="0.7", edge="0.4").is_dark
    True
    >>> LIGHT.settings()["axes.titlelocation"]
    'left'
    """

    ink: str
    paper: str
    muted: str
    edge: str

    @property
    def is_dark(self) -> bool:
        """Whether the paper is dark."""
        return luminance(self.paper) < DARK_PAPER

    def settings(self) -> dict[str, Any]:
        """Settings of matplotlib for a figure of this look; they are active only while it is drawn."""
        return self.colour_settings() | {
            "font.size": 10,
            "axes.titlesize": 12.5,
            "axes.titleweight": "bold",
            "axes.titlelocation": "left",
            "axes.titlepad": 10,
            "axes.linewidth": 0.8,
            "axes.grid": False,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "legend.fontsize": 9,
            "figure.constrained_layout.h_pad": 0.08,
            "figure.constrained_layout.w_pad": 0.08,
        }

    def colour_settings(self) -> dict[str, Any]:
        """The colours alone, for drawing into axes of the caller."""
        return {
            "figure.facecolor": self.paper,
            "figure.edgecolor": self.paper,
            "savefig.facecolor": "auto",
            "axes.facecolor": self.paper,
            "axes.edgecolor": self.edge,
            "axes.labelcolor": self.ink,
            "axes.titlecolor": self.ink,
            "text.color": self.ink,
            "xtick.color": self.muted,
            "ytick.color": self.muted,
            "legend.facecolor": self.paper,
            "legend.labelcolor": self.ink,
            "legend.edgecolor": "none",
            "legend.framealpha": 0.9,
        }

    # ---------------------------------------------------------------------------------------------- colours
    def colours(self, pale: float = 0.0) -> Any:
        """The colour map of tasks: plasma without the end that blends into paper, mixed with a fraction of paper."""
        from matplotlib import colormaps
        from matplotlib.colors import ListedColormap, to_rgba

        ends, pale = ((0.28, 1.0), 0.5 * pale) if self.is_dark else ((0.0, 0.92), pale)  # black dims more than white
        tasks = colormaps["plasma"](np.linspace(*ends, 256))
        return ListedColormap(pale * np.array(to_rgba(self.paper)) + (1.0 - pale) * tasks)

    def steps(self, levels: HostArray, pale: float = 0.0) -> Any:
        """A mapping with one colour for each of the ascending levels."""
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import BoundaryNorm

        gaps = np.diff(levels) if len(levels) > 1 else np.ones(1)
        edges = np.append(levels[0] - 0.5 * gaps[0], levels + 0.5 * np.append(gaps, gaps[-1])[: len(levels)])
        return ScalarMappable(BoundaryNorm(edges, 256), self.colours(pale))

    def series(self, count: int) -> list[dict[str, Any]]:
        """A colour and a line style for each of ``count`` curves."""
        map_ = self.colours()
        places = np.linspace(0.08, 0.85, count) if count > 1 else np.array([self.middle])
        return [{"color": map_(float(p)), "linestyle": LINE_STYLES[k % len(LINE_STYLES)]} for k, p in enumerate(places)]

    @property
    def main(self) -> Any:
        """The colour of the main curve of a figure."""
        return self.colours()(self.middle)

    def band(self, label: str) -> dict[str, Any]:
        """The style of a band in the main colour, transparent enough to see lines through it."""
        return {"color": self.main, "alpha": 0.38 if self.is_dark else 0.2, "linewidth": 0, "label": label}

    def dashed(self, label: str) -> dict[str, Any]:
        """The style of a reference line."""
        return {"linestyle": "--", "color": self.ink, "linewidth": 1.2, "label": label}

    def ring(self, label: str, marker: str = "o") -> dict[str, Any]:
        """The style of a marker around the chosen one of several points."""
        ring = {"markerfacecolor": "none", "markeredgecolor": self.ink, "markeredgewidth": 1.8, "markersize": 11}
        return {"marker": marker, "linestyle": "none", "label": label, **ring}

    def curve(self, k: int) -> dict[str, Any]:
        """The colour and style of the k-th of a few curves drawn one after the other, the main one first."""
        places = (self.middle, 0.2, 1.0, 0.4) if self.is_dark else (self.middle, 0.75, 0.5, 0.95)
        return {"color": self.colours()(places[k % 4]), "linestyle": LINE_STYLES[k % 4]}

    @property
    def middle(self) -> float:
        """The position of the main colour on the map of :meth:`colours`."""
        return 0.65 if self.is_dark else 0.25

    # -------------------------------------------------------------------------------------------------- origin
    @classmethod
    def of_settings(cls) -> Look:
        """The look that fits the settings of matplotlib; its defaults give :data:`LIGHT`."""
        from matplotlib import rcParams

        return cls.on(rcParams["axes.facecolor"], rcParams["text.color"])

    @classmethod
    def on(cls, paper: Any, ink: Any = None) -> Look:
        """A look for the given paper; it uses the given ink if that is readable there.

        Examples
        --------
        >>> Look.on("black", "black").ink == DARK.ink
        True
        """
        from matplotlib.colors import to_hex

        paper = to_hex(paper)
        base = DARK if luminance(paper) < DARK_PAPER else LIGHT
        if ink is None or contrast(ink, paper) < READABLE or to_hex(ink) == "#000000":
            return replace(base, paper=paper)
        return cls(to_hex(ink), paper, _mixed(ink, paper, 0.3), _mixed(ink, paper, 0.6))


LIGHT = Look(ink="#22272e", paper="#ffffff", muted="#5a636e", edge="#8a929c")
"""Dark ink on white paper, the look of the demo."""

DARK = Look(ink="#e6e9ee", paper="#14181f", muted="#a9b1bc", edge="#6b7480")
"""Light ink on dark paper."""

LOOKS = {"light": LIGHT, "dark": DARK}


def look_of(look: Any) -> Look:
    """A look given by its name or as an object."""
    found = LOOKS.get(look) if isinstance(look, str) else look
    if isinstance(found, Look):
        return found
    raise ValueError(f"look={look!r} was given; it must be 'light', 'dark' or a Look of infinitask.plotting.")


def luminance(colour: Any) -> float:
    """The relative luminance of a colour, from 0 for black to 1 for white."""
    from matplotlib.colors import to_rgb

    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return float(np.dot([0.2126, 0.7152, 0.0722], linear))


def contrast(one: Any, other: Any) -> float:
    """The contrast of two colours, from 1 to 21.

    Examples
    --------
    >>> round(contrast("black", "white"))
    21
    """
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _mixed(ink: Any, paper: Any, share: float) -> str:
    from matplotlib.colors import to_hex, to_rgb

    return str(to_hex((1.0 - share) * np.array(to_rgb(ink)) + share * np.array(to_rgb(paper))))


# ---------------------------------------------------------------------------------------------------------- canvas
@dataclass_transform(eq_default=False, field_specifiers=(field,))
class Display:
    """Base class of all displays: a dataclass of the plotted data, with one method that draws them.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
    figure_ : matplotlib.figure.Figure
    """

    ax_: Any
    figure_: Any
    _own = True
    _equal = False
    """Whether a unit has the same length on both axes."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        dataclass(eq=False, repr=False)(cls)

    @property
    def _title(self) -> str:
        """The title of a new figure."""
        raise NotImplementedError

    @property
    def _size(self) -> tuple[float, float]:
        """Width and height of a new figure, in inches."""
        return SIZE

    def _draw(self, axes: Any, look: Look) -> None:
        """Draw into the given axes."""
        raise NotImplementedError

    def plot(self, ax: Any = None, *, look: Any = None) -> Self:
        """Plot the display.

        Parameters
        ----------
        ax : matplotlib axes or None
            None: a new figure.
        look : {"light", "dark"}, Look or None
            None: the look that suits the axes, or the settings of matplotlib.
        """
        with self._canvas(ax, look, self._title, size=self._size, equal=self._equal) as (axes, look_):
            self._draw(axes, look_)
        return self

    def __repr__(self) -> str:
        """The name of the class; the data would fill a screen."""
        return f"<{type(self).__name__}{', drawn' if hasattr(self, 'ax_') else ''}>"

    def _legend(self, axes: Any, **place: Any) -> None:
        """Add a legend beside the axes or at a given place; in axes of the caller, where it hides least."""
        place = place or {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
        axes.legend(**(place if self._own else {"loc": "best"}))

    @contextmanager
    def _canvas(
        self, ax: Any, look: Any, title: str, *, size: tuple[float, float] = SIZE, columns: int = 1, equal: bool = False
    ) -> Iterator[tuple[Any, Look]]:
        """The axes to draw into, and their look: ``ax``, or those of a new figure, which also gets the title.

        Parameters
        ----------
        ax : Axes, several of them, or None
        look : Look, {"light", "dark"} or None
            None: the look that suits the axes, or the settings of matplotlib.
        title : str
        size : (float, float)
        columns : int
            The number of axes next to each other.
        equal : bool
            Whether a unit has the same length on both axes.
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
                # ticks are created at the first drawing, with the settings of that moment
                each.tick_params(which="both", colors=look.muted, labelcolor=look.muted)
            if columns > 1:
                figure.suptitle(title, x=0.01, ha="left", weight="bold", size=12.5, color=look.ink)
            else:
                axes.set_title(title)
        self.ax_, self.figure_ = axes, figure


def _matplotlib(module: str) -> Any:
    return needed(module, "Plots are drawn with matplotlib", "plot")


def _first_axes(given: Any) -> Any:
    """The first of one or several axes; raise an error if an object is not an axes."""
    several = np.ravel(np.asarray(given, dtype=object))
    for ax in several:
        if not isinstance(ax, _matplotlib("matplotlib.axes").Axes):
            raise TypeError(f"ax={ax!r} was given; it must be axes of matplotlib, or None for a new figure.")
    return several[0]


def colour_bar(axes: Any, mapping: Any, label: str, ticks: Any, look: Look) -> None:
    """Add a colour bar without a frame beside the axes."""
    letters = max(int(12.5 * _height(axes)), 12)  # at least 12 per line
    lines = len(textwrap.wrap(label, letters))
    balanced = next(w for w in range(-(-len(label) // lines), letters + 1) if len(textwrap.wrap(label, w)) <= lines)
    bar = axes.figure.colorbar(mapping, ax=axes, ticks=ticks, pad=0.02, aspect=30)
    bar.set_label("\n".join(textwrap.wrap(label, balanced)), labelpad=8, color=look.ink)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0, which="both", colors=look.muted)


def _height(axes: Any) -> float:
    """The approximate height of axes, in inches; with units of equal length, axes are smaller than their place."""
    box = axes.get_position(original=True)
    width, height = axes.figure.get_size_inches() * np.array([box.width, box.height])
    if axes.get_aspect() != "auto":
        (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
        height = min(height, axes.get_aspect() * 0.92 * width * abs(high - low) / abs(right - left))
    return float(height) * 10.0 / float(_matplotlib("matplotlib").rcParams["font.size"])


def few(levels: HostArray, most: int = 9) -> HostArray:
    """At most ``most`` of the levels, evenly spaced, for the ticks of a colour bar."""
    if levels.size <= most:
        return levels
    step = -(-(levels.size - 1) // (most - 1))
    return levels[::step]


def percent(share: float) -> str:
    """Format a fraction as a percentage: 0.9 as "90%".

    Examples
    --------
    >>> percent(0.9), percent(0.995)
    ('90%', '99.5%')
    """
    return f"{100.0 * share:.4g}%"
