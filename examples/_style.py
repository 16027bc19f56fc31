"""The look that all figures share: settings of matplotlib, one colour map for θ, a grid over the data."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["INK", "PAPER", "STYLE", "colour_bar", "colours", "plane", "steps"]

Array = NDArray[Any]

INK, PAPER = "#22272e", "#ffffff"
STYLE = {
    "figure.facecolor": PAPER,
    "figure.dpi": 150,
    "savefig.dpi": 150,
    "font.size": 10,
    "axes.titlesize": 12.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 10,
    "axes.edgecolor": "#8a929c",
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "text.color": INK,
    "xtick.color": "#5a636e",
    "ytick.color": "#5a636e",
    "legend.edgecolor": "none",
    "legend.framealpha": 0.9,
}
"""Settings of matplotlib, active only while a figure is drawn."""


def colours(pale: float = 0.0) -> Any:
    """The colour map for θ in all figures, without the end that is too light on white, mixed with a share of white."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    return ListedColormap(pale + (1.0 - pale) * colormaps["plasma"](np.linspace(0.0, 0.92, 256)))


def steps(levels: Array, pale: float = 0.0) -> Any:
    """One colour for each of some evenly spaced levels."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import BoundaryNorm

    half = 0.5 * (levels[1] - levels[0])
    return ScalarMappable(BoundaryNorm(np.append(levels - half, levels[-1] + half), 256), colours(pale))


def colour_bar(figure: Any, mapping: Any, axes: Any, label: str, ticks: Any) -> None:
    """Add a colour bar without a frame beside the axes."""
    bar = figure.colorbar(mapping, ax=axes, ticks=ticks, pad=0.02, aspect=30)
    bar.set_label(label, labelpad=8)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0, which="both")


def plane(X: Array, grid: int) -> tuple[Array, Array, Array]:
    """A grid over the data with a margin: both coordinates (grid, grid) and the points (grid², 2)."""
    low, high = X.min(axis=0), X.max(axis=0)
    margin = 0.04 * (high - low)
    a, b = np.meshgrid(*np.linspace(low - margin, high + margin, grid).T)
    return a, b, np.column_stack([a.ravel(), b.ravel()])
