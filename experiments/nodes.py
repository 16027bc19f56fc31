"""How many nodes are enough.

The paper learns the quantiles of 1000 toy samples with more and more nodes and finds that from m = 34 ≈ √1000 on the
curves at the levels 0.05, 0.25, 0.5, 0.75 and 0.95 no longer change on 2000 test points. Here that is measured for
three rules: the distance of the curves from those of many nodes on the same data, their distance from the true
quantiles, and their loss on the test points.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from infinitask import InfiniteQuantileRegressor
from infinitask.datasets import make_sine, sine_quantile
from infinitask.metrics import integrated_pinball_loss

from .figures import BLUE, GREEN, INK, ORANGE, save
from .runner import Experiment, Record
from .tables import markdown, settings_used, write_csv

__all__ = ["EXPERIMENT", "summary"]

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
RULES = {"gauss-legendre": BLUE, "sobol": ORANGE, "monte-carlo": GREEN}
ENOUGH = 34
"""The paper's number of nodes."""
MEASURES = ("from_many", "from_truth", "pinball")

FIXED = {
    "levels": ", ".join(map(str, LEVELS)),
    "rules": "Gauss–Legendre, Sobol, Monte Carlo",
    "scaling": "inputs and target: mean 0, standard deviation 1",
    "kernels": "Gaussian, k_b = k_Θ",
    "bias": "λ_b = λ",
}
"""Settings that no run changes."""

ORIGINS = {
    "n": "printed",
    "n_test": "printed",
    "nodes": "ours: printed is that 34 are enough",
    "many": "ours",
    "gamma": "inferred: that of the authors' study of κ",
    "lambda": "inferred: that of the authors' study of κ, beside a sum over the rows",
    "noncrossing": "inferred: that of the authors' study of κ",
    "tol": "ours",
    "levels": "printed",
    "rules": "ours: nothing is printed for this figure",
    "repetitions": "ours: the figure has one training set",
    "scaling": "inferred: that of the authors' study of κ",
    "kernels": "inferred: those of the authors' study of κ",
    "bias": "ours: nothing is printed for this figure",
}


def units(quick: bool) -> list[dict[str, Any]]:
    """One training set and one rule for each unit, at all numbers of nodes."""
    return [{"rule": rule, "repetition": i} for i in range(2 if quick else 10) for rule in RULES]


def settings(quick: bool) -> dict[str, Any]:
    """Sizes as in the paper; kernels and λ as in its authors' study of κ, with alpha = λ/n."""
    return {
        "n": 300 if quick else 1000,
        "n_test": 2000,
        "nodes": [2, 4, 8, 34] if quick else [2, 3, 4, 6, 8, 12, 16, 24, ENOUGH, 50, 70, 100],
        "many": 60 if quick else 200,
        "gamma": 1.0,
        "lambda": 1e-3,
        "noncrossing": 1.0,
        "tol": 1e-3 if quick else 1e-4,
    }


def work(unit: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """The three measures for every number of nodes; data and random nodes follow the repetition."""
    X, y = make_sine(settings["n"], random_state=unit["repetition"])
    X_test, y_test = make_sine(settings["n_test"], random_state=1000 + unit["repetition"])
    (x0, dx), (y0, dy) = (X.mean(), X.std()), (y.mean(), y.std())

    def curves(rule: str, nodes: int) -> np.ndarray:
        model = InfiniteQuantileRegressor(
            gamma=settings["gamma"],
            task_gamma=settings["gamma"],
            alpha=settings["lambda"] / settings["n"],
            alpha_bias=settings["lambda"] / settings["n"],
            noncrossing=settings["noncrossing"],
            quadrature=rule,
            n_nodes=nodes,
            random_state=unit["repetition"],
            tol=settings["tol"],
        ).fit((X - x0) / dx, (y - y0) / dy)
        return np.asarray(y0 + dy * model.predict((X_test - x0) / dx, LEVELS))

    many, truth = curves("gauss-legendre", settings["many"]), sine_quantile(X_test, LEVELS)
    rows = []
    for nodes in settings["nodes"]:
        h = curves(unit["rule"], nodes)
        rows.append(
            {
                "nodes": nodes,
                "from_many": float(np.sqrt(np.mean((h - many) ** 2))),
                "from_truth": float(np.sqrt(np.mean((h - truth) ** 2))),
                "pinball": integrated_pinball_loss(y_test, h, LEVELS),
            }
        )
    return {"rows": rows, "best_pinball": integrated_pinball_loss(y_test, truth, LEVELS)}


def summary(records: list[Record]) -> list[dict[str, Any]]:
    """A row for each rule and number of nodes: median and quartiles over the repetitions."""
    found: dict[tuple[str, int], list[dict[str, float]]] = {}
    for record in records:
        for one in record["result"]["rows"]:
            excess = one | {"pinball": one["pinball"] - record["result"]["best_pinball"]}
            found.setdefault((record["unit"]["rule"], one["nodes"]), []).append(excess)
    rows = []
    for rule, nodes in sorted(found, key=lambda pair: (list(RULES).index(pair[0]), pair[1])):
        row: dict[str, Any] = {"rule": rule, "nodes": nodes, "repetitions": len(found[rule, nodes])}
        for measure in MEASURES:
            low, middle, high = np.quantile([r[measure] for r in found[rule, nodes]], [0.25, 0.5, 0.75]).tolist()
            name = "excess_pinball" if measure == "pinball" else measure
            row |= {name: middle, f"{name}_q25": low, f"{name}_q75": high}
        rows.append(row)
    return rows


def report(records: list[Record], folder: Path, settings: dict[str, Any]) -> list[Path]:
    """Write nodes.csv, nodes.png and nodes.md."""
    rows = summary(records)
    files = [
        write_csv(folder / "nodes.csv", rows),
        save(folder / "nodes.png", (10.0, 4.8), lambda figure: _draw(figure, rows, settings)),
        folder / "nodes.md",
    ]
    by = {(row["rule"], row["nodes"]): row for row in rows}
    rules = [rule for rule in RULES if any(row["rule"] == rule for row in rows)]
    lines = [
        [str(m)]
        + [f"{by[rule, m][what]:.4f}" for what in ("from_many", "from_truth", "excess_pinball") for rule in rules]
        for m in settings["nodes"]
    ]
    shown = ("off many nodes", "off the truth", "excess loss")
    fixed = FIXED | {"repetitions": max(row["repetitions"] for row in rows)}
    page = [
        "# How many nodes are enough",
        f"Quantile curves of {settings['n']} toy samples at the levels {', '.join(f'{t:g}' for t in LEVELS)}, learnt "
        f"with m nodes of three rules; medians over {fixed['repetitions']} training sets.",
        settings_used(settings | fixed, ORIGINS),
        "![Distances against the number of nodes](nodes.png)",
        markdown(["m", *(f"{what}: {rule}" for what in shown for rule in rules)], lines),
        f"Off many nodes: root mean square distance, on {settings['n_test']} test points, from the curves of "
        f"{settings['many']} Gauss–Legendre nodes and the same data; off the truth: from the true quantiles; excess "
        "loss: mean pinball loss on the test points beyond that of the true quantiles. The noise has a standard "
        "deviation between 0.2 and 1.2.",
        _findings(by, rules),
        "All numbers, with quartiles: [nodes.csv](nodes.csv).",
        "",
    ]
    files[-1].write_text("\n\n".join(page), encoding="utf-8")
    return files


def _findings(by: dict[tuple[str, int], dict[str, Any]], rules: list[str]) -> str:
    """For each rule, the m beyond which more nodes reduce the distance from the truth by less than 5%."""
    said = []
    for rule in rules:
        counts = sorted(m for r, m in by if r == rule)
        best = min(by[rule, m]["from_truth"] for m in counts)
        enough = next(m for m in counts if all(by[rule, k]["from_truth"] <= 1.05 * best for k in counts if k >= m))
        at = by[rule, ENOUGH]["from_many"] if (rule, ENOUGH) in by else float("nan")
        said.append(f"{rule} from m = {enough} on (at m = {ENOUGH} its curves are {at:.4f} off those of many nodes)")
    return (
        f"The paper finds little benefit beyond {ENOUGH} nodes. Here the distance from the truth is within 5% of its "
        f"smallest median with {'; '.join(said)}. More nodes go on to change the curves, but by less than the "
        "noise of the data does."
    )


def _draw(figure: Any, rows: list[dict[str, Any]], settings: dict[str, Any]) -> None:
    titles = {
        "from_many": f"Off the curves of {settings['many']} nodes",
        "from_truth": "Off the true quantiles",
    }
    for ax, (measure, title) in zip(figure.subplots(1, 2), titles.items(), strict=True):
        for rule, colour in RULES.items():
            mine = [row for row in rows if row["rule"] == rule]
            if not mine:
                continue
            m = [row["nodes"] for row in mine]
            ax.fill_between(
                m, *([row[f"{measure}_{q}"] for row in mine] for q in ("q25", "q75")), color=colour, alpha=0.16, lw=0
            )
            ax.plot(m, [row[measure] for row in mine], "o-", color=colour, markersize=3.5, linewidth=1.8, label=rule)
        ax.axvline(ENOUGH, color=INK, linewidth=0.9, linestyle=":")
        place = {"transform": ax.get_xaxis_transform(), "va": "top", "ha": "right"}
        ax.text(ENOUGH * 0.96, 0.99, f"the paper's m = {ENOUGH}", color=INK, **place)
        ax.set(xscale="log", yscale="log", xlabel="number of nodes m", title=title)
        ticks = [m for m in (2, 4, 8, 16, 34, 100) if m in settings["nodes"]]
        ax.set_xticks(ticks, [str(m) for m in ticks])
        ax.minorticks_off()
        from matplotlib.ticker import FuncFormatter, LogLocator

        ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    figure.axes[0].set_ylabel("root mean square distance (y)")
    figure.axes[0].legend(loc="lower left", frameon=False)


EXPERIMENT = Experiment("nodes", "The number of nodes", units, work, report, settings)
