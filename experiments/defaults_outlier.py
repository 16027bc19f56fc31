"""One wrong row: what a single target of 1e4, 1e6 or 1e9 among 200 does to the quantiles of all others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from infinitask import InfiniteQuantileRegressor
from infinitask.tuning import InfiniteQuantileRegressorCV

from .defaults import REVISION, measured, shares_below, within
from .runner import Experiment, Record
from .tables import markdown, settings_used, write_csv
from .tuned import Values

__all__ = ["EXPERIMENT", "LEVELS", "TOLERANCE", "rows_with_outlier"]

LEVELS = (0.05, 0.5, 0.95)
TOLERANCE = 0.04
"""How far the mean share of new targets below a quantile may be from its level."""

OUTLIERS = (0.0, 1e4, 1e6, 1e9)
"""The target of the one row; 0: all rows are right."""

MODELS: dict[str, tuple[str, Callable[[], Any]]] = {
    "default": ("default", InfiniteQuantileRegressor),
    "cv": ("self-tuned", lambda: InfiniteQuantileRegressorCV(random_state=0)),
}


def _law(rng: np.random.Generator, n: int) -> tuple[Values, Values]:
    """y = sin 2πx + 0.3 e, x uniform, e normal: targets between about −2 and 2."""
    X = rng.uniform(size=(n, 1))
    return X, np.sin(2.0 * np.pi * X[:, 0]) + 0.3 * rng.normal(size=n)


def rows_with_outlier(rng: np.random.Generator, n: int, outlier: float) -> tuple[Values, Values]:
    """n rows of the law; the target of the first is replaced, unless the outlier is 0."""
    X, y = _law(rng, n)
    if outlier:
        y[0] = outlier
    return X, y


def units(quick: bool) -> list[dict[str, Any]]:
    """Ordered by seed."""
    return [
        {"outlier": outlier, "seed": seed, "method": method, "revision": REVISION}
        for seed in range(1 if quick else 5)
        for outlier in ((0.0, 1e6) if quick else OUTLIERS)
        for method in MODELS
    ]


def settings(quick: bool) -> dict[str, Any]:
    """What all units have in common."""
    return {"rows": 80 if quick else 200, "new": 2_000 if quick else 20_000, "levels": list(LEVELS)}


def work(unit: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """Fit with the wrong row, and count on new rows that are right."""
    rng = np.random.default_rng(unit["seed"])
    X, y = rows_with_outlier(rng, settings["rows"], unit["outlier"])
    X_new, y_new = _law(rng, settings["new"])
    model, seconds, seen = measured(lambda: MODELS[unit["method"]][1]().fit(X, y))
    h = np.asarray(model.predict(X_new, settings["levels"]))
    return {"shares": shares_below(y_new, h), "seconds": seconds, "warnings": seen}


def report(records: list[Record], folder: Path, settings: dict[str, Any]) -> list[Path]:
    """Write defaults_outlier.csv and defaults_outlier.md."""
    rows: list[dict[str, Any]] = []
    for method, (label, _) in MODELS.items():
        for outlier in OUTLIERS:
            results = [
                record["result"]
                for record in records
                if (record["unit"]["method"], record["unit"]["outlier"]) == (method, outlier)
            ]
            if not results:
                continue
            means = np.mean([result["shares"] for result in results], axis=0)
            fits = [
                within(share, (level - TOLERANCE, level + TOLERANCE))
                for share, level in zip(means, LEVELS, strict=True)
            ]
            rows.append(
                {"model": label, "outlier": outlier, "seeds": len(results)}
                | {f"below_{level:g}": float(share) for level, share in zip(LEVELS, means, strict=True)}
                | {"seconds": float(np.mean([result["seconds"] for result in results])), "passes": all(fits)}
            )
    files = [write_csv(folder / "defaults_outlier.csv", rows), folder / "defaults_outlier.md"]
    lines = [
        [row["model"], f"{row['outlier']:.0e}" if row["outlier"] else "none"]
        + [f"{row[f'below_{level:g}']:.3f}" for level in LEVELS]
        + [f"{row['seconds']:.2f}", "yes" if row["passes"] else "no"]
        for row in rows
    ]
    page = [
        "# One wrong row",
        f"{settings['rows']} rows of y = sin 2πx + 0.3 e, x uniform on [0, 1], e normal; the target of one row is "
        f"replaced. The share of {settings['new']} new y, all right, below three quantiles, mean over "
        f"{max(row['seeds'] for row in rows)} seeds; a row passes if each share is within {TOLERANCE:g} of its level. "
        "Default: `InfiniteQuantileRegressor()`; self-tuned: `InfiniteQuantileRegressorCV(random_state=0)`.",
        settings_used(settings),
        f"{sum(row['passes'] for row in rows)} of {len(rows)} cases pass.",
        markdown(["model", "outlier", *(f"below {level:g}" for level in LEVELS), "seconds", "passes"], lines),
        "",
    ]
    files[1].write_text("\n\n".join(page), encoding="utf-8")
    return files


EXPERIMENT = Experiment("defaults-outlier", "One wrong row", units, work, report, settings)
