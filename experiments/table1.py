"""Table 1: ∞-QR, JQR and IND on twenty data sets, twenty splits each, all tuned as in the paper."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split

from infinitask.datasets import load_quantile_set, quantile_sets

from .runner import Experiment, Record
from .tuned import FINE, LEVELS, NODES, PROMISING, ROUGH, crossing, model, pinball, tune

__all__ = ["EXPERIMENT", "split"]

METHODS = ("itl", "jqr", "ind")
QUICK = ("cobar_ore", "crabs", "mcycle")

MAX_ITER = 5000
"""Evaluations of the last fit. Where that does not reach the gap, the gap reached is in the record."""


def units(quick: bool) -> list[dict[str, Any]]:
    """Split by split, so that a run that was stopped has something of every set."""
    return [
        {"dataset": name, "split": i, "method": method}
        for i in range(2 if quick else 20)
        for name in (QUICK if quick else quantile_sets())
        for method in METHODS
    ]


def settings(quick: bool) -> dict[str, Any]:
    """What all units have in common."""
    return {
        "startup": 9 if quick else 27,
        "iterations": 6 if quick else 50,
        "nodes": NODES,
        "rough": list(ROUGH),
        "fine": list(FINE),
        "promising": PROMISING,
        "tol": 1e-4,
    }


def split(name: str, i: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """X_train, X_test, y_train, y_test of a set, standardised as a whole as in the paper."""
    X, y = load_quantile_set(name, missing="mean", scaled=True, return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=i)
    return X_train, X_test, y_train, y_test


def work(unit: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """Tune, fit, and measure on the rows left out."""
    X, X_test, y, y_test = split(unit["dataset"], unit["split"])
    start = time.perf_counter()
    parameters, loss = tune(
        unit["method"], X, y, startup=settings["startup"], iterations=settings["iterations"], seed=unit["split"]
    )
    tuned = time.perf_counter() - start
    results: dict[str, Any] = {"parameters": parameters, "cv": loss, "tuning_seconds": round(tuned, 2)}
    for method in ("itl", "itl_rearranged") if unit["method"] == "itl" else (unit["method"],):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the record says so
            fitted = model(method, parameters, y.size, tol=settings["tol"], max_iter=MAX_ITER).fit(X, y)
        h = fitted.predict(X_test, LEVELS)
        results[method] = {"pinball": pinball(y_test, h), "crossing": crossing(h), "gap": fitted.dual_gap_}
    return results


def report(records: list[Record], folder: Path, settings: dict[str, Any]) -> list[Path]:
    """Nothing yet."""
    return []


EXPERIMENT = Experiment("table1", "Table 1", units, work, report, settings)
