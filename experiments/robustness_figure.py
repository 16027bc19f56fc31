"""The picture of the study of robustness."""

from __future__ import annotations

from typing import Any

import numpy as np

from .figures import BLUE, GREEN, INK, ORANGE
from .tuned import LEVELS

__all__ = ["PREDICTED", "draw"]

PREDICTED = float(np.sqrt(np.mean((0.5 - LEVELS) ** 2)))
"""The distance of M-quantiles from quantiles for each unit of a small κ: the root mean square of (1 − 2θ)/2."""


def draw(figure: Any, kappas: list[dict[str, Any]], starts: list[dict[str, Any]], settings: dict[str, Any]) -> None:
    """Above: evaluations, distance and loss against κ; below: the distance from the optimum for each set and start."""
    figure.suptitle(
        "Above: the library for each κ. Below: the paper's algorithm for each κ and start",
        x=0.01,
        ha="left",
        fontweight="bold",
        fontsize=12.5,
    )
    above, below = figure.subplots(2, 3)
    colours = dict(zip(settings["parameters"], (BLUE, ORANGE, GREEN), strict=False))
    positive = [kappa for kappa in settings["kappas"] if kappa > 0.0]
    none = 0.2 * min(positive)  # the place of κ = 0 on a logarithmic axis
    for name, colour in colours.items():
        mine = [row for row in kappas if row["dataset"] == name]
        if not mine:
            continue
        x = [row["kappa"] or none for row in mine]
        style = {"color": colour, "markersize": 3.5, "linewidth": 1.7, "label": name}
        above[0].fill_between(
            x, *([row[end] for row in mine] for end in ("fewest", "most")), color=colour, alpha=0.15, lw=0
        )
        above[0].plot(x, [row["evaluations"] for row in mine], "o-", **style)
        above[1].plot(x[:-1], [row["distance"] for row in mine[:-1]], "o-", **style)
        change = [100.0 * (row["pinball"] / mine[-1]["pinball"] - 1.0) for row in mine]
        above[2].plot(x, change, "o-", **style)
    small = np.array([min(positive), 1.0])
    above[1].plot(small, PREDICTED * small, ":", color=INK, linewidth=1.2, label=f"{PREDICTED:.2f} κ")
    above[2].axhline(0.0, color=INK, linewidth=0.8, linestyle=":")
    titles = (
        "Evaluations to a gap of " + f"{settings['tol']:g}",
        "Distance from κ = 0 (sd of y)",
        "Test loss against κ = 0 (%)",
    )
    for ax, title in zip(above, titles, strict=True):
        ax.set(xscale="log", xlabel="κ", title=title)
        ticks = [kappa for kappa in positive if np.isclose(np.log10(kappa) % 1.0, 0.0)]
        ax.set_xticks([none, *ticks], ["0", *(f"{kappa:g}" for kappa in ticks)])
        ax.minorticks_off()
    above[0].set_yscale("log")
    above[1].set_yscale("log")
    above[1].legend(loc="upper left", frameon=False)
    sizes = dict(zip([0.0, *settings["sizes"]], (INK, BLUE, GREEN, ORANGE), strict=False))
    for ax, name in zip(below, colours, strict=False):
        _draw_starts(ax, [row for row in starts if row["dataset"] == name], sizes, settings)
        ax.set_title(name)
    for ax in below[len(colours) :]:
        ax.set_axis_off()
    below[0].set_ylabel("distance from the optimum (relative)")
    from matplotlib.lines import Line2D

    first, last = (settings["evaluations"][i] for i in (0, -1))
    handles = [Line2D([], [], color=c, marker="o", ls="", label=f"size {size:g}") for size, c in sizes.items()]
    handles.append(Line2D([], [], color=INK, marker="o", ls="", fillstyle="none", label=f"{first} evaluations"))
    handles.append(Line2D([], [], color=INK, marker="o", ls="", label=f"{last} evaluations"))
    figure.legend(handles=handles, loc="outside lower center", ncols=6, frameon=False)


def _draw_starts(ax: Any, rows: list[dict[str, Any]], sizes: dict[float, str], settings: dict[str, Any]) -> None:
    kappas = list(dict.fromkeys(row["kappa"] for row in rows))
    for row in (row for row in rows if row["algorithm"] != "infinitask"):
        x = kappas.index(row["kappa"]) + 0.18 * (list(sizes).index(row["size"]) - 1.5)
        full, colour = row["evaluations"] == settings["evaluations"][-1], sizes[row["size"]]
        ax.plot(
            [x, x], [row["excess_min"], row["excess_max"]], color=colour, linewidth=2.0, alpha=1.0 if full else 0.45
        )
        ax.plot(x, row["excess"], "o", color=colour, markersize=5.0, fillstyle="full" if full else "none")
    ax.axhline(settings["tol"], color=INK, linewidth=1.0, linestyle=":")
    place = {"transform": ax.get_yaxis_transform(), "ha": "right", "va": "bottom", "fontsize": 8.5}
    ax.text(0.98, settings["tol"], "certified gap of infinitask", color=INK, **place)
    ax.set(yscale="log", xlabel="κ")
    ax.set_xticks(range(len(kappas)), [f"{kappa:g}" for kappa in kappas])
