"""The study of κ: what smoothing the pinball loss costs and saves.

The paper learns 100 quantiles of 10 000 toy samples with the κ-smoothed loss. A large κ gives expectiles, a small κ
gives quantiles: the learnt curves (dashed) then lie on the true ones (solid). The paper prints the time of each fit on
a GTX 1070, in double precision, and the iterations and evaluations of L-BFGS-B.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

from infinitask import InfiniteQuantileRegressor
from infinitask.datasets import make_sine, sine_quantile

from .figures import colours, save
from .runner import Experiment, Record
from .store import curves_of
from .tables import markdown, settings_used, write_csv

__all__ = ["EXPERIMENT", "normal_expectile"]

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)

PRINTED = {10.0: (225, 258, 289), 0.1: (1313, 1438, 1571), 1e-3: (931, 1169, 1271), 0.0: (879, 1125, 1207)}
"""Seconds, iterations and evaluations for each κ, printed in the paper's supplement."""

FIXED = {
    "kappa": "10, 0.1, 0.001, 0",
    "quadrature": "Gauss–Legendre",
    "scaling": "inputs and target: mean 0, standard deviation 1",
    "kernels": "Gaussian, k_b = k_Θ",
    "bias": "λ_b = λ",
    "penalty": "that on crossing is smoothed with the same κ",
    "levels": f"{', '.join(map(str, LEVELS))} are drawn and measured",
}
"""Settings that no run changes."""

ORIGINS = {
    "n": "printed",
    "seed": "inferred: authors' programs",
    "nodes": "printed",
    "gamma": "inferred: authors' programs",
    "lambda": "inferred: authors' programs, beside a sum over the rows",
    "noncrossing": "inferred: authors' programs",
    "points": "ours",
    "tol": "ours",
    "kappa": "printed",
    "quadrature": "printed",
    "scaling": "inferred: authors' programs",
    "kernels": "inferred: authors' programs",
    "bias": "ours: nothing is printed",
    "penalty": "printed: Table S.1",
    "levels": "ours",
}


def units(quick: bool) -> list[dict[str, Any]]:
    """One fit for each unit."""
    return [{"kappa": kappa} for kappa in PRINTED]


def settings(quick: bool) -> dict[str, Any]:
    """Sizes as in the paper, all else as in its authors' programs; λ stands beside a sum, so alpha = λ/n."""
    return {
        "n": 1000 if quick else 10_000,
        "seed": 13,
        "nodes": 40 if quick else 100,
        "gamma": 1.0,
        "lambda": 1e-3,
        "noncrossing": 1.0,
        "points": 61 if quick else 151,
        "tol": 1e-3 if quick else 1e-4,
    }


def work(unit: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """Fit the standardised data; the learnt curves in the units of the data."""
    X, y = make_sine(settings["n"], random_state=settings["seed"])
    (x0, dx), (y0, dy) = (X.mean(), X.std()), (y.mean(), y.std())
    model = InfiniteQuantileRegressor(
        gamma=settings["gamma"],
        task_gamma=settings["gamma"],
        alpha=settings["lambda"] / settings["n"],
        alpha_bias=settings["lambda"] / settings["n"],
        noncrossing=settings["noncrossing"],
        smoothing=unit["kappa"],
        noncrossing_loss="smoothed",
        n_nodes=settings["nodes"],
        tol=settings["tol"],
    )
    # A first, small fit loads the libraries, so that the timed one does not.
    model.fit((X[::20] - x0) / dx, (y[::20] - y0) / dy)
    start = time.perf_counter()
    model.fit((X - x0) / dx, (y - y0) / dy)
    seconds = time.perf_counter() - start
    grid = np.linspace(0.0, 1.5, settings["points"])
    learnt = y0 + dy * model.predict((grid[:, None] - x0) / dx, LEVELS)
    quantiles = sine_quantile(grid, LEVELS)
    spread = sine_quantile(grid, norm.cdf(1.0)) - sine_quantile(grid, 0.5)
    expectiles = sine_quantile(grid, 0.5) + spread * np.array([normal_expectile(theta) for theta in LEVELS])
    return {
        "seconds": round(seconds, 3),
        "evaluations": model.solution_.n_evaluations,
        "gap": model.dual_gap_,
        "unknowns": model.field_.coef.size,
        "from_quantiles": float(np.sqrt(np.mean((learnt - quantiles) ** 2))),
        "from_expectiles": float(np.sqrt(np.mean((learnt - expectiles) ** 2))),
        "x": grid.tolist(),
        "learnt": learnt.round(5).tolist(),
    }


def normal_expectile(theta: float) -> float:
    """The e with θ E(Z − e)₊ = (1 − θ) E(e − Z)₊ for a standard normal Z."""

    def balance(e: float) -> float:
        above = norm.pdf(e) - e * norm.sf(e)
        return float(theta * above - (1.0 - theta) * (above + e))

    return float(brentq(balance, -10.0, 10.0))


def report(records: list[Record], folder: Path, settings: dict[str, Any]) -> list[Path]:
    """Write smoothing.csv, smoothing_curves.csv, smoothing.png and smoothing.md."""
    rows, curves = [], []
    for record in records:
        kappa, result = record["unit"]["kappa"], record["result"]
        names = ("seconds", "evaluations", "gap", "unknowns", "from_quantiles", "from_expectiles")
        printed = dict(zip(("paper_seconds", "paper_iterations", "paper_evaluations"), PRINTED[kappa], strict=True))
        rows.append({"kappa": kappa} | {name: result[name] for name in names} | printed)
        true = sine_quantile(result["x"], LEVELS)
        for x, learnt, right in zip(result["x"], result["learnt"], true, strict=True):
            for theta, value, quantile in zip(LEVELS, learnt, right, strict=True):
                curves.append({"kappa": kappa, "theta": theta, "x": x, "learnt": value, "true": float(quantile)})
    files = [
        write_csv(folder / "smoothing.csv", rows),
        write_csv(curves_of(folder, "smoothing_curves.csv"), curves),
        save(folder / "smoothing.png", (10.0, 7.6), lambda figure: _draw(figure, records, settings)),
        folder / "smoothing.md",
    ]
    lines = [
        [
            f"{row['kappa']:g}",
            f"{row['seconds']:.2f}",
            str(row["evaluations"]),
            f"{row['gap']:.0e}",
            *(str(row[f"paper_{what}"]) for what in ("seconds", "evaluations", "iterations")),
            f"{row['paper_seconds'] / max(row['seconds'], 1e-3):.0f}",
            f"{row['from_quantiles']:.3f}",
            f"{row['from_expectiles']:.3f}",
        ]
        for row in rows
    ]
    header = ["κ", "seconds", "evaluations", "gap", "paper: seconds", "evaluations", "iterations", "ratio of times"]
    page = [
        "# The study of κ",
        f"Quantiles of {settings['n']} toy samples, learnt with the κ-smoothed pinball loss at {settings['nodes']} "
        "Gauss–Legendre nodes, and what that took.",
        settings_used(settings | FIXED, ORIGINS),
        "![Learnt and true quantiles for four κ](smoothing.png)",
        markdown([*header, "off the true quantiles", "off the true expectiles"], lines),
        "Seconds are by the clock (wall clock), of one fit after a first small one that loads the libraries. Ours: one "
        "thread on a machine with two cores, to a certified relative gap; the paper's: a GTX 1070; both in double "
        "precision. The last two columns are root mean squares over x and the levels "
        f"{', '.join(f'{level:g}' for level in LEVELS)}, in the units of y.",
        _findings(rows, settings),
        "Numbers: [smoothing.csv](smoothing.csv), curves: `experiments/curves/smoothing_curves.csv`. "
        "[The benchmark](../benchmarks/paper_kappa.md) runs the paper's own algorithm on the same machine.",
        "",
    ]
    files[-1].write_text("\n\n".join(page), encoding="utf-8")
    return files


def _findings(rows: list[dict[str, Any]], settings: dict[str, Any]) -> str:
    expectiles = [f"{row['kappa']:g}" for row in rows if row["from_expectiles"] < row["from_quantiles"]]
    quantiles = [f"{row['kappa']:g}" for row in rows if row["from_quantiles"] <= row["from_expectiles"]]
    said = f"Closer to the true expectiles than to the true quantiles: κ = {', '.join(expectiles) or 'none'}; "
    said += f"closer to the quantiles: κ = {', '.join(quantiles) or 'none'}. "
    slowest = max(rows, key=lambda row: row["seconds"])
    said += f"The slowest is κ = {slowest['kappa']:g} with {slowest['seconds']:.2f} s"
    if settings["n"] != 10_000:
        return f"{said}; the paper's times are for 10 000 samples and not comparable with this quick run."
    return f"{said}, {slowest['paper_seconds'] / slowest['seconds']:.0f} times less than the paper's."


def _draw(figure: Any, records: list[Record], settings: dict[str, Any]) -> None:
    X, y = make_sine(settings["n"], random_state=settings["seed"])
    few = slice(None, None, max(1, settings["n"] // 2000))
    grid = figure.subplots(2, 2, sharex=True, sharey=True)
    figure.suptitle(
        "A large κ learns expectiles, a small one quantiles", x=0.01, ha="left", fontweight="bold", fontsize=12.5
    )
    for ax in grid.flat[len(records) :]:
        ax.set_axis_off()
    for ax, record in zip(grid.flat, records, strict=False):
        result, kappa = record["result"], record["unit"]["kappa"]
        ax.plot(X[few, 0], y[few], ".", color="#c3c8ce", markersize=2, zorder=0, rasterized=True)
        true, learnt = sine_quantile(result["x"], LEVELS), np.array(result["learnt"])
        for j, colour in enumerate(colours(len(LEVELS))):
            ax.plot(result["x"], true[:, j], color=colour, linewidth=1.4, alpha=0.75)
            ax.plot(result["x"], learnt[:, j], "--", color=colour, linewidth=2.0)
        seconds, evaluations = result["seconds"], result["evaluations"]
        ax.set_title(f"κ = {kappa:g}: {seconds:.2f} s, {evaluations} evaluations", fontweight="normal", fontsize=11)
        ax.set(xlim=(0.0, 1.5), ylim=(-4.0, 4.0))
    for ax in grid[-1]:
        ax.set_xlabel("x")
    for ax in grid[:, 0]:
        ax.set_ylabel("y")
    from matplotlib.lines import Line2D

    levels = [Line2D([], [], color=c, label=f"θ = {t:g}") for t, c in zip(LEVELS, colours(len(LEVELS)), strict=True)]
    styles = [Line2D([], [], color="#5a636e", label="true quantile")]
    styles.append(Line2D([], [], color="#5a636e", linestyle="--", linewidth=2.0, label="learnt"))
    figure.legend(handles=[*styles, *reversed(levels)], loc="outside right center", frameon=False)


EXPERIMENT = Experiment("smoothing", "The study of κ", units, work, report, settings)
