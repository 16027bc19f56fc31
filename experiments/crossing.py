"""Quantile curves with and without the penalty on crossing.

The paper's figure shows 100 quantile curves of the toy data, learnt from 40 points. With λ_nc = 0 many curves cross;
with λ_nc = 10 hardly any do, and only where there are no points at which the penalty acts. A second figure of its
authors' programs compares a piecewise linear task kernel, min(s, t) + 5, with the Gaussian one, both without the
penalty.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from infinitask import InfiniteQuantileRegressor
from infinitask.datasets import make_sine
from infinitask.kernels import Gaussian, PiecewiseLinear
from infinitask.metrics import crossing_loss

from .figures import INK, ORANGE, colour_bar, colours, save
from .runner import Experiment, Record
from .store import curves_of
from .tables import markdown, settings_used, write_csv

__all__ = ["EXPERIMENT", "falls"]

MODELS = ("penalty", "none", "piecewise")
FIGURES = {
    "crossing.png": {"penalty": "λ_nc = 10: order, where there are points", "none": "λ_nc = 0: curves cross"},
    "crossing_kernels.png": {
        "piecewise": "Piecewise linear task kernel, λ_nc = 0",
        "none": "Gaussian task kernel, λ_nc = 0",
    },
}
"""What each panel shows."""

FALL = 1e-6
"""A curve crosses that of a lower level if it lies below it by more; y has a standard deviation of about 1."""

FIXED = {
    "data": "the toy data, as it is",
    "kernels": "Gaussian, k_b = k_Θ",
    "bias": "λ_b = λ; none with the piecewise linear kernel",
    "quadrature": "Gauss–Legendre",
}
"""Settings that no run changes."""

ORIGINS = {
    "n": "printed",
    "seed": "inferred: authors' programs",
    "nodes": "printed",
    "gamma": "inferred: authors' programs",
    "lambda": "inferred: authors' programs, beside a sum over the rows",
    "noncrossing": "printed: 10, and 0",
    "offset": "inferred: authors' programs",
    "levels": "printed",
    "points": "ours",
    "tol": "ours",
    "data": "printed: its sign and its phase are those of the authors' programs",
    "kernels": "inferred: authors' programs",
    "bias": "ours: nothing is printed for this figure",
    "quadrature": "ours: nothing is printed for this figure",
}


def units(quick: bool) -> list[dict[str, Any]]:
    """One model for each unit."""
    return [{"model": name} for name in MODELS]


def settings(quick: bool) -> dict[str, Any]:
    """Sizes and λ_nc as in the paper, γ and λ as in its authors' programs; λ stands beside a sum, so alpha = λ/n."""
    return {
        "n": 40,
        "seed": 13,
        "nodes": 20,
        "gamma": 15.0,
        "lambda": 1e-3,
        "noncrossing": 10.0,
        "offset": 5.0,
        "levels": 100,
        "points": 51 if quick else 151,
        "tol": 1e-3 if quick else 1e-4,
    }


def work(unit: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """The curves at evenly spaced inputs, and how they cross there and at the training inputs."""
    X, y = make_sine(settings["n"], random_state=settings["seed"])
    levels = (np.arange(settings["levels"]) + 0.5) / settings["levels"]
    piecewise = unit["model"] == "piecewise"
    model = InfiniteQuantileRegressor(
        gamma=settings["gamma"],
        task_kernel=PiecewiseLinear(settings["offset"]) if piecewise else Gaussian(settings["gamma"]),
        bias_kernel=None if piecewise else "task",
        noncrossing=settings["noncrossing"] if unit["model"] == "penalty" else 0.0,
        alpha=settings["lambda"] / settings["n"],
        alpha_bias=settings["lambda"] / settings["n"],
        n_nodes=settings["nodes"],
        tol=settings["tol"],
    ).fit(X, y)
    grid = np.linspace(X.min(), X.max(), settings["points"])
    curves = model.predict(grid[:, None], levels)
    return {
        "x": grid.round(6).tolist(),
        "levels": levels.tolist(),
        "curves": curves.round(5).tolist(),
        "between": falls(curves),
        "training": falls(model.predict(X, levels)),
        "gap": model.dual_gap_,
    }


def falls(curves: np.ndarray) -> dict[str, float]:
    """How curves (n, q) of ascending levels cross."""
    steps = np.diff(curves, axis=1)
    return {
        "crossing": crossing_loss(curves),
        "share_of_pairs": float(np.mean(steps < -FALL)),
        "share_of_inputs": float(np.mean(np.any(steps < -FALL, axis=1))),
        "deepest": float(max(0.0, -steps.min())),
    }


def report(records: list[Record], folder: Path, settings: dict[str, Any]) -> list[Path]:
    """Write crossing.csv, crossing_curves.csv, a figure for each pair of models that are done, and crossing.md."""
    found = {record["unit"]["model"]: record["result"] for record in records}
    rows = [
        {"model": name, "inputs": where, **result[where], "gap": result["gap"]}
        for name, result in found.items()
        for where in ("between", "training")
    ]
    curves = [
        {"model": name, "x": x} | {f"q{t:.3f}": value for t, value in zip(result["levels"], values, strict=True)}
        for name, result in found.items()
        for x, values in zip(result["x"], result["curves"], strict=True)
    ]
    files = [write_csv(folder / "crossing.csv", rows), write_csv(curves_of(folder, "crossing_curves.csv"), curves)]
    X, y = make_sine(settings["n"], random_state=settings["seed"])
    drawn = [file for file, titles in FIGURES.items() if titles.keys() <= found.keys()]
    for file in drawn:
        panels = {title: found[name] for name, title in FIGURES[file].items()}
        files.append(save(folder / file, (10.0, 6.0), partial(_draw, panels=panels, X=X, y=y)))
    files.append(folder / "crossing.md")
    table = [
        [
            row["model"],
            "training inputs" if row["inputs"] == "training" else "evenly spaced",
            f"{row['crossing']:.4f}",
            f"{row['share_of_pairs']:.1%}",
            f"{row['share_of_inputs']:.0%}",
            f"{row['deepest']:.4f}",
        ]
        for row in rows
    ]
    page = [
        "# Crossing quantile curves",
        f"{settings['levels']} quantile curves of the toy data, learnt from {settings['n']} points with and without "
        "the penalty on crossing, and with another task kernel.",
        settings_used(settings | FIXED, ORIGINS),
        *(f"![{'; '.join(FIGURES[file].values())}]({file})" for file in drawn),
        markdown(["model", "inputs", "crossing", "pairs that cross", "inputs with a crossing", "deepest fall"], table),
        _findings(found),
        "Crossing: the sum over neighbouring levels of the mean decrease; under the curves it is drawn for each x, "
        "with the training inputs as ticks. Pairs: of neighbouring levels, over all "
        f"inputs; a decrease counts from {FALL:g} on. Numbers: [crossing.csv](crossing.csv), curves: "
        "`experiments/curves/crossing_curves.csv`.",
        "",
    ]
    files[-1].write_text("\n\n".join(page), encoding="utf-8")
    return files


def _findings(found: dict[str, Any]) -> str:
    """Sentences about those models of the paper's figure that are done."""
    if not {"penalty", "none"} <= found.keys():
        return "The models of the paper's figure are not all there yet."
    less = {w: found["penalty"][w]["crossing"] / found["none"][w]["crossing"] for w in ("training", "between")}
    return (
        f"The penalty leaves {less['training']:.0%} of the crossing at the training inputs, where it acts, and "
        f"{less['between']:.0%} of it over all inputs: as in the paper's figure, what is left lies mostly between the "
        "points. It is a penalty and not a constraint, and it looks at the levels of the nodes only: small falls "
        'remain at the training inputs, too. The library\'s `noncrossing="hard"` leaves none there, and '
        '`noncrossing="rearrange"` none anywhere.'
    )


def _draw(figure: Any, *, panels: dict[str, Any], X: np.ndarray, y: np.ndarray) -> None:
    axes, below = figure.subplots(2, len(panels), sharex=True, sharey="row", height_ratios=[4, 1])
    for k, (ax, low, (title, result)) in enumerate(zip(axes, below, panels.items(), strict=True)):
        values = np.array(result["curves"])
        low.fill_between(result["x"], np.maximum(-np.diff(values), 0.0).sum(axis=1), color=ORANGE, linewidth=0)
        low.plot(X[:, 0], np.zeros(len(X)), "|", color=INK, markersize=7, clip_on=False)
        low.set_xlabel("x")
        for curve, colour in zip(values.T, colours(values.shape[1]), strict=True):
            ax.plot(result["x"], curve, color=colour, linewidth=0.8)
        ax.plot(X[:, 0], y, "o", color=INK, markersize=3.6, markeredgewidth=0, label="training data")
        ax.set_title(title)
        ax.margins(x=0.01)
        if k == 0:
            ax.set_ylabel("y")
            low.set_ylabel("crossing")
            ax.legend(loc="lower right")
    below[0].set_ylim(bottom=0.0)
    colour_bar(figure, axes, 0.0, 1.0, "quantile level θ", ticks=[0.0, 0.25, 0.5, 0.75, 1.0])


EXPERIMENT = Experiment("crossing", "Crossing quantile curves", units, work, report, settings)
