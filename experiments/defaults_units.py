"""Do the answers depend on the units of the target? Dollars, cents or millions, counted from 0 or from elsewhere.

Every regression estimator is fitted to a y + b. Its predictions, brought back to the units of y, are compared with
those of the fit to y.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from infinitask import (
    IndependentQuantileRegressor,
    InfiniteExpectileRegressor,
    InfiniteKernelRidge,
    InfiniteQuantileRegressor,
    InfiniteSVR,
    InfiniteTaskEstimator,
    JointQuantileRegressor,
)
from infinitask.tuning import InfiniteQuantileRegressorCV

from .defaults import REVISION, measured
from .runner import Experiment, Record
from .tables import markdown, settings_used, write_csv
from .tuned import Values

__all__ = ["ESTIMATORS", "EXPERIMENT", "UNITS", "change"]

ESTIMATORS: dict[str, Callable[[], Any]] = {
    "InfiniteQuantileRegressor": InfiniteQuantileRegressor,
    "InfiniteExpectileRegressor": InfiniteExpectileRegressor,
    "InfiniteSVR": InfiniteSVR,
    "InfiniteKernelRidge": InfiniteKernelRidge,
    "JointQuantileRegressor": JointQuantileRegressor,
    "IndependentQuantileRegressor": IndependentQuantileRegressor,
    "InfiniteTaskEstimator": lambda: InfiniteTaskEstimator("pinball"),
    "InfiniteQuantileRegressorCV": lambda: InfiniteQuantileRegressorCV(random_state=0),
}

UNITS = [(1.0, 0.0), (1.0, 1e6), (1e-6, 0.0), (1e-6, 1.0), (1e6, 0.0), (1e6, 1e12)]
"""a and b of a y + b; b is 0 or 1e6 a. The first pair is y itself: its change says whether a fit repeats."""


def change(h: Values, reference: Values, a: float, b: float, spread: float) -> float:
    """The largest |(h − b)/a − reference| by the spread of y; infinite if a prediction is not finite."""
    difference = np.abs((h - b) / a - reference) / spread
    return float(np.max(difference)) if np.all(np.isfinite(difference)) else float("inf")


def units(quick: bool) -> list[dict[str, Any]]:
    """One for each estimator."""
    names = ("InfiniteQuantileRegressor", "InfiniteSVR") if quick else tuple(ESTIMATORS)
    return [{"estimator": name, "revision": REVISION} for name in names]


def settings(quick: bool) -> dict[str, Any]:
    """What all units have in common."""
    return {"rows": 60 if quick else 200, "new": 200, "units": [list(pair) for pair in UNITS]}


def data(rows: int, new: int) -> tuple[Values, Values, Values]:
    """X, y and new X: a wave in two dimensions, normal noise, targets of the order 1."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(rows + new, 2))
    y = np.sin(2.0 * np.pi * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=rows + new)
    return X[:rows], y[:rows], X[rows:]


def work(unit: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """Fit in all units. An error is a result here: a user in those units would have met it."""
    X, y, X_new = data(settings["rows"], settings["new"])
    make = ESTIMATORS[unit["estimator"]]
    reference = _fitted(make, X, y, X_new)["h"]  # not timed: this call may load and compile
    fits: list[dict[str, Any]] = []
    for a, b in settings["units"]:
        try:
            fit = _fitted(make, X, a * y + b, X_new)
        except Exception as error:
            fits.append({"a": a, "b": b, "error": f"{type(error).__name__}: {error}"})
        else:
            moved = change(fit.pop("h"), reference, a, b, float(np.std(y)))
            fits.append({"a": a, "b": b, "change": moved} | fit)
    return {"fits": fits}


def _fitted(make: Callable[[], Any], X: Values, y: Values, X_new: Values) -> dict[str, Any]:
    model, seconds, seen = measured(lambda: make().fit(X, y))
    return {"h": np.asarray(model.predict(X_new)), "seconds": seconds, "warnings": seen}


def report(records: list[Record], folder: Path, settings: dict[str, Any]) -> list[Path]:
    """Write defaults_units.csv and defaults_units.md."""
    rows = [
        {"estimator": record["unit"]["estimator"], "a": fit["a"], "b": fit["b"]}
        | {"change": fit.get("change"), "seconds": fit.get("seconds"), "error": fit.get("error", "")}
        | {"warnings": " ".join(fit.get("warnings", []))}
        for record in records
        for fit in record["result"]["fits"]
    ]
    files = [write_csv(folder / "defaults_units.csv", rows), folder / "defaults_units.md"]
    pairs = settings["units"]
    names = list(dict.fromkeys(row["estimator"] for row in rows))
    by = {(row["estimator"], row["a"], row["b"]): row for row in rows}

    def cell(name: str, a: float, b: float, what: str) -> str:
        value = by[name, a, b][what]
        return "error" if value is None else f"{value:.1e}" if what == "change" else f"{value:.2f}"

    def table(what: str, some: list[list[float]]) -> str:
        header = ["estimator", *(f"a = {a:g}, b = {b:g}" for a, b in some)]
        return markdown(header, [[name, *(cell(name, a, b, what) for a, b in some)] for name in names])

    largest = {
        name: max((np.inf if row["change"] is None else row["change"]) for row in rows if row["estimator"] == name)
        for name in names
    }
    noisy = sorted({row["estimator"] for row in rows if row["warnings"]})
    page = [
        "# Units of the target",
        f"Each estimator as it comes is fitted to a y + b, with {settings['rows']} rows of a wave in two dimensions. "
        f"The largest change of its predictions at {settings['new']} new rows, brought back to the units of y, beside "
        "the fit to y itself, in standard deviations of y. `predict` is called without a task.",
        settings_used({"rows": settings["rows"], "new": settings["new"]}),
        "Largest change: " + "; ".join(f"{name} {value:.1e}" for name, value in largest.items()) + ".",
        "## Change",
        table("change", pairs),
        "## Seconds of the fit",
        table("seconds", pairs),
        f"Warnings were issued by: {', '.join(noisy) or 'none'}; the CSV file has them.",
        "",
    ]
    files[1].write_text("\n\n".join(page), encoding="utf-8")
    return files


EXPERIMENT = Experiment("defaults-units", "Units of the target", units, work, report, settings)
