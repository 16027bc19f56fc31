"""How far each method is from the best of each data set, drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

__all__ = ["draw"]


def draw(
    relative: Mapping[str, NDArray[np.float64]],
    sets: Sequence[str],
    labels: Mapping[str, str],
    colours: Mapping[str, str],
    path: Path,
) -> Path:
    """Draw a dot for each method and set, and the median of each method.

    Parameters
    ----------
    relative : mapping
        The name of a score → loss / smallest of the set, (methods, sets), best method first.
    sets : sequence of str
    labels : mapping
        Method → its name on the axis, in the order of the rows of ``relative``.
    colours : mapping
        Method → its colour; others are blue.
    path : Path
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import FixedLocator, NullLocator

    figure = Figure(figsize=(11, 0.62 * len(labels) + 1.7), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, 2, sharey=True)
    for axis, (score, rows) in zip(axes, relative.items(), strict=True):
        top = rows.max() * 1.25
        for y, (method, values) in enumerate(zip(labels, rows, strict=True)):
            colour = colours.get(method, "#0072B2")
            spread = 0.52 * (np.arange(values.size) * 0.618 % 1.0 - 0.5)  # so that equal values do not hide each other
            axis.scatter(values, y + spread, s=22, color=colour, alpha=0.65, linewidths=0, zorder=3)
            axis.plot([np.median(values)] * 2, [y - 0.36, y + 0.36], color="black", linewidth=2.2, zorder=4)
            last = int(np.argmax(values))
            axis.annotate(f" {sets[last]}", (values[last], y + spread[last]), fontsize=8, va="center",
                          xytext=(3, 0), textcoords="offset points", color="#444444")  # fmt: skip
        ticks = [t for t in (1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0) if t <= top]
        axis.set_xscale("log")
        axis.set_xlim(0.985, top)
        axis.xaxis.set_major_locator(FixedLocator(ticks))
        axis.xaxis.set_minor_locator(NullLocator())
        axis.set_xticklabels([f"{t:g}" for t in ticks])
        axis.set_xlabel(f"{score} / smallest of the set")
        axis.grid(axis="x", color="#dddddd", zorder=0)
        axis.spines[["top", "right", "left"]].set_visible(False)
        axis.tick_params(left=False)
    axes[0].set_yticks(range(len(labels)), list(labels.values()), fontsize=11)
    axes[0].invert_yaxis()
    figure.suptitle("How far from the best of each data set: a dot for each set, the median as a bar, by mean rank")
    figure.savefig(path, dpi=100)
    return path
