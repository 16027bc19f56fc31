"""Circles and Two-Moons, with the decision functions at three costs.

The paper shows the two sets of its Table 2 that have two inputs. Here they are drawn with h(x)(θ) at θ ∈ {−0.9, 0,
0.9}, from one fit of a training half, with the settings of Table 2.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from infinitask.metrics import sensitivity_specificity

from . import table2
from .figures import INK, save
from .runner import Experiment, Record
from .store import curves_of
from .tables import markdown, settings_used, write_csv
from .trade_offs import THETAS, model, split

__all__ = ["EXPERIMENT"]

TITLES = {"circles": "Circles", "two_moons": "Two-Moons"}

FIXED = {name: table2.FIXED[name] for name in ("kernel", "quadrature", "bias", "inputs", "noise")}
"""Settings that no run changes."""

ORIGINS = table2.ORIGINS | {
    "split": "ours: the paper draws no split",
    "points": "ours",
}


def units(quick: bool) -> list[dict[str, Any]]:
    """One data set for each unit."""
    return [{"dataset": name} for name in TITLES]


def settings(quick: bool) -> dict[str, Any]:
    """The settings of Table 2, on its first split, and how fine the plane is drawn."""
    shared = {name: table2.settings(quick)[name] for name in ("lambda", "nodes", "task_gamma", "tol")}
    return shared | {"split": 0, "points": 41 if quick else 71}


def work(unit: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """The decision functions on a grid over the data."""
    X, X_test, y, y_test = split(unit["dataset"], settings["split"], scaled=False)
    fitted = model("itl", X, settings).fit(X, y)
    low, high = X.min(axis=0), X.max(axis=0)
    margin = 0.05 * (high - low)
    axes = np.linspace(low - margin, high + margin, settings["points"])
    plane = np.stack(np.meshgrid(*axes.T), axis=-1).reshape(-1, 2)
    sensitivity, specificity = sensitivity_specificity(y_test, fitted.predict(X_test, THETAS))
    return {
        "axes": axes.round(5).tolist(),
        "decisions": fitted.decision_function(plane, THETAS).round(4).tolist(),
        "sensitivity": sensitivity.tolist(),
        "specificity": specificity.tolist(),
        "gap": fitted.dual_gap_,
    }


def report(records: list[Record], folder: Path, settings: dict[str, Any]) -> list[Path]:
    """Write csc_sets.csv, csc_sets_plane.csv, csc_sets.png and csc_sets.md."""
    rows, plane = [], []
    for record in records:
        name, result = record["unit"]["dataset"], record["result"]
        for k, theta in enumerate(THETAS):
            measured = {what: result[what][k] for what in ("sensitivity", "specificity")}
            rows.append({"dataset": name, "theta": f"{theta:g}", **measured, "gap": result["gap"]})
        for point, values in zip(_points(result), result["decisions"], strict=True):
            named = {f"h_{theta:g}": value for theta, value in zip(THETAS, values, strict=True)}
            plane.append({"dataset": name, "x0": float(point[0]), "x1": float(point[1]), **named})
    height = 3.5 * len(records) + 0.4
    files = [
        write_csv(folder / "csc_sets.csv", rows),
        write_csv(curves_of(folder, "csc_sets_plane.csv"), plane),
        save(folder / "csc_sets.png", (10.0, height), lambda figure: _draw(figure, records, settings)),
        folder / "csc_sets.md",
    ]
    lines = [[r["dataset"], r["theta"], f"{r['sensitivity']:.2f}", f"{r['specificity']:.2f}"] for r in rows]
    page = [
        "# The sets of Table 2 with two inputs",
        "Decision functions of one fit at three costs, on a training half of each set.",
        settings_used(settings | FIXED, ORIGINS),
        "![Decision functions on Circles and Two-Moons](csc_sets.png)",
        markdown(["data set", "θ", "sensitivity", "specificity"], lines),
        "From left to right a missed positive costs more and a false alarm less, and the side on which h is positive "
        "grows. Circles overlap so much that at θ = ±0.9 nearly everything is on one side; Two-Moons keep a core "
        "of their own. The paper draws the sets only. Sensitivity and specificity are those of the test half of this "
        "one split; [Table 2](table2.md) has the means. Numbers: [csc_sets.csv](csc_sets.csv), "
        "`experiments/curves/csc_sets_plane.csv`.",
        "",
    ]
    files[-1].write_text("\n\n".join(page), encoding="utf-8")
    return files


def _points(result: dict[str, Any]) -> np.ndarray:
    """The grid, in the order of the decisions: (points², 2)."""
    return np.asarray(np.stack(np.meshgrid(*np.array(result["axes"]).T), axis=-1).reshape(-1, 2))


def _draw(figure: Any, records: list[Record], settings: dict[str, Any]) -> None:
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap, TwoSlopeNorm

    grid = figure.subplots(len(records), len(THETAS), sharex="row", sharey="row", squeeze=False)
    norm = TwoSlopeNorm(0.0, -2.0, 2.0)
    pale = ListedColormap(colormaps["PuOr"](np.linspace(0.32, 0.68, 256)))  # the points stay visible
    for row, record in zip(grid, records, strict=True):
        name, result = record["unit"]["dataset"], record["result"]
        X, _, y, _ = split(name, settings["split"], scaled=False)
        a, b = np.array(result["axes"]).T
        heights = np.array(result["decisions"]).reshape(b.size, a.size, len(THETAS))
        for k, (ax, theta) in enumerate(zip(row, THETAS, strict=True)):
            shown = ax.imshow(
                heights[..., k],
                cmap=pale,
                norm=norm,
                interpolation="bilinear",
                extent=(a[0], a[-1], b[0], b[-1]),
                origin="lower",
                aspect="auto",
            )
            ax.contour(a, b, heights[..., k], levels=[0.0], colors=[INK], linewidths=1.6)
            marks: dict[str, Any] = {"linestyle": "none", "markersize": 2.8, "markeredgewidth": 0}
            ax.plot(*X[y == 0].T, "o", color="#b35806", label="negative", **marks)
            ax.plot(*X[y == 1].T, "^", color="#542788", label="positive", **marks)
            measured = f"{result['sensitivity'][k]:.2f} / {result['specificity'][k]:.2f}"
            ax.set_title(f"θ = {theta:g}:  {measured}", fontsize=11, fontweight="normal")
            ax.set(xlim=(a[0], a[-1]), ylim=(b[0], b[-1]), xticks=[], yticks=[])
        row[0].set_ylabel(TITLES[name], fontsize=12, fontweight="bold")
    grid[0, 0].legend(loc="lower left", fontsize=8, markerscale=1.6)
    bar = figure.colorbar(shown, ax=grid, pad=0.02, aspect=40, ticks=[-2, -1, 0, 1, 2], extend="both")
    bar.set_label("h(x)(θ), positive where a positive is predicted")
    bar.outline.set_visible(False)
    figure.suptitle(
        "One fit, three costs: the predicted positives grow with θ (sensitivity / specificity)",
        x=0.01,
        ha="left",
        fontweight="bold",
        fontsize=12.5,
    )


EXPERIMENT = Experiment("csc-sets", "Circles and Two-Moons", units, work, report, settings)
