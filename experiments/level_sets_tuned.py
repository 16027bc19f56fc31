"""Outliers found by level sets that choose their own kernel, beside the defaults and what one would use instead."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from infinitask import InfiniteOneClassSVM
from infinitask.tuning import InfiniteOneClassSVMCV

from .defaults import measured
from .outlier_sets import CONTAMINATION, PROBLEMS, problem
from .runner import Experiment, Record
from .tables import markdown, settings_used, write_csv

__all__ = ["EXPERIMENT", "METHODS", "OURS", "REVISION", "table"]

SEEDS = 2
REVISION = 1
"""Of our models, raised with every change of them; it is part of their units, so that records of others stay valid."""

OURS = "cv"
METHODS: dict[str, tuple[str, Callable[[int], Any]]] = {
    OURS: ("InfiniteOneClassSVMCV", lambda seed: InfiniteOneClassSVMCV(random_state=seed)),
    "defaults": ("InfiniteOneClassSVM", lambda seed: InfiniteOneClassSVM()),
    "svm": ("OneClassSVM", lambda seed: make_pipeline(StandardScaler(), OneClassSVM())),
    "svm05": ("OneClassSVM, ν = 0.05", lambda seed: make_pipeline(StandardScaler(), OneClassSVM(nu=0.05))),
    "forest": ("IsolationForest", lambda seed: IsolationForest(random_state=seed)),
}
"""Labels, and seed → a model."""

ROWS = {False: "clean", True: "dirty"}


def units(quick: bool) -> list[dict[str, Any]]:
    """Ordered by seed, so that a run that was stopped has results for every problem."""
    return [
        {"problem": name, "rows": word, "seed": seed, "method": method}
        | ({"revision": REVISION} if method in (OURS, "defaults") else {})
        for seed in range(1 if quick else SEEDS)
        for word in ROWS.values()
        for name in (("iris 0", "moons") if quick else PROBLEMS)
        for method in METHODS
    ]


def settings(quick: bool) -> dict[str, Any]:
    """What all units have in common."""
    return {"contamination": CONTAMINATION}


def work(unit: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """The area under the ROC curve of the new rows, normal ones against outliers."""
    X, new, normal = problem(unit["problem"], unit["seed"], dirty=unit["rows"] == ROWS[True])
    model, seconds, _ = measured(lambda: METHODS[unit["method"]][1](unit["seed"]).fit(X))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        scores = model.score_samples(new)
    result = {"n": len(X), "d": X.shape[1], "auc": float(roc_auc_score(normal, scores)), "seconds": seconds}
    if unit["method"] == OURS:
        result["kernel"] = model.cv_results_["kernels"][model.cv_results_["best"]]
        result["compared"] = len(model.cv_results_["kernels"])
    return result


def table(records: list[Record]) -> list[dict[str, Any]]:
    """A row for each problem, kind of rows and method: means over the seeds."""
    found: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for record in records:
        unit = record["unit"]
        found.setdefault((unit["problem"], unit["rows"], unit["method"]), []).append(record["result"])
    return [
        {
            "problem": name,
            "rows": rows,
            "method": method,
            "seeds": len(results),
            "n": results[0]["n"],
            "d": results[0]["d"],
            "auc": float(np.mean([result["auc"] for result in results])),
            "seconds": float(np.mean([result["seconds"] for result in results])),
            "kernel": " / ".join(dict.fromkeys(result.get("kernel", "") for result in results)),
        }
        for (name, rows, method), results in found.items()
    ]


def report(records: list[Record], folder: Path, settings: dict[str, Any]) -> list[Path]:
    """Write level_sets_tuned.csv and level_sets_tuned.md."""
    rows = table(records)
    files = [write_csv(folder / "level_sets_tuned.csv", rows), folder / "level_sets_tuned.md"]
    files[1].write_text(_page(rows, settings), encoding="utf-8")
    return files


def _page(rows: list[dict[str, Any]], settings: dict[str, Any]) -> str:
    found = {(row["problem"], row["rows"], row["method"]): row for row in rows}
    methods = [method for method in METHODS if any(row["method"] == method for row in rows)]
    places = [
        (name, word)
        for word in ROWS.values()
        for name in PROBLEMS
        if all((name, word, method) in found for method in methods)
    ]
    lines = []
    for name, word in places:
        aucs = [found[name, word, method]["auc"] for method in methods]
        cells = [f"**{auc:.3f}**" if auc == max(aucs) else f"{auc:.3f}" for auc in aucs]
        first = found[name, word, methods[0]]
        lines.append([f"{name}, {word}", str(first["n"]), str(first["d"]), *cells, first["kernel"]])
    means = [
        [
            METHODS[method][0],
            *(
                f"{np.mean([found[name, word, method]['auc'] for name, word in places if word == kind]):.3f}"
                for kind in ROWS.values()
                if any(word == kind for _, word in places)
            ),
            str(sum(_is_best(found, methods, place, method) for place in places)),
            f"{np.median([found[(*place, method)]['seconds'] for place in places]):.2f}",
        ]
        for method in methods
    ]
    kinds = [kind for kind in ROWS.values() if any(word == kind for _, word in places)]
    return "\n\n".join(
        [
            "# Level sets that choose their own kernel",
            "A model learns from half of the normal rows of a problem, and `score_samples` ranks the other half and "
            "the outliers: the area under the ROC curve (AUC), mean of "
            f"{max(row['seeds'] for row in rows)} of {SEEDS} seeds. Dirty: {settings['contamination']:.0%} of the rows "
            "to learn from are outliers. No method sees a label. The problems were listed before the self-tuned model "
            "existed; digits, breast cancer, wine and iris had a part in setting the defaults of "
            "`InfiniteOneClassSVM`. `OneClassSVM` has standardised inputs.",
            settings_used(settings),
            "## Means",
            markdown(["method", *(f"AUC, {kind}" for kind in kinds), "best on", "seconds, median"], means),
            "## Problem by problem",
            markdown(["problem", "n", "d", *(METHODS[method][0] for method in methods), "chosen kernel"], lines),
            "Chosen kernel: the family, and γ as a multiple of the median rule; two where the seeds differ.",
            "",
        ]
    )


def _is_best(found: dict[Any, dict[str, Any]], methods: list[str], place: tuple[str, str], method: str) -> bool:
    return bool(found[(*place, method)]["auc"] >= max(found[(*place, other)]["auc"] for other in methods))


EXPERIMENT = Experiment("level-sets-tuned", "Self-tuned level sets", units, work, report, settings)
