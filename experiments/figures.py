"""The style of all figures, the same as in the demo, and how figures are saved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from infinitask.plotting import LIGHT

__all__ = ["BLUE", "GREEN", "INK", "ORANGE", "PURPLE", "colour_bar", "colour_map", "colours", "save"]

INK = LIGHT.ink
STYLE = LIGHT.settings() | {"figure.dpi": 150, "savefig.dpi": 150}

BLUE, ORANGE, GREEN, PURPLE = "#0072b2", "#d55e00", "#009e73", "#cc79a7"
"""Colours that colour-blind readers can tell apart (Okabe and Ito)."""


def colour_map() -> Any:
    """The colour map for θ, without the end that is too light on white paper."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    return ListedColormap(colormaps["plasma"](np.linspace(0.0, 0.88, 256)))


def colours(count: int) -> list[Any]:
    """``count`` colours of the map, from end to end."""
    return [colour_map()(position) for position in np.linspace(0.0, 1.0, count)]


def colour_bar(figure: Any, axes: Any, low: float, high: float, label: str, ticks: Sequence[float]) -> None:
    """Add the colour bar for θ beside the axes."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    bar = figure.colorbar(ScalarMappable(Normalize(low, high), colour_map()), ax=axes, ticks=ticks, pad=0.02, aspect=30)
    bar.set_label(label)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0)


def save(path: Path, size: tuple[float, float], draw: Callable[[Any], None]) -> Path:
    """Draw into an empty figure of that size, in inches, and write it to the file.

    The figure is its own, not pyplot's: it renders with Agg and leaves the backend of the session alone.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    path.parent.mkdir(parents=True, exist_ok=True)
    with rc_context(STYLE):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure)
        figure.savefig(path)
    return path
