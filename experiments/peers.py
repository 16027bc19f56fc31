"""One modern peer of each kind on the twenty regression sets of Table 1: who predicts distributions better?"""

from __future__ import annotations

import functools
import time
from typing import Any

import numpy as np

from infinitask.datasets import make_sine, quantile_sets

from .peer_models import PEERS, Values, fitted, tune
from .peer_report import report
from .runner import Experiment
from .table1 import split
from .tuned import LEVELS, crossing, pinball

__all__ = ["EXPERIMENT", "crps"]

QUICK = ("cobar_ore", "mcycle")

REVISION = 2
"""Of what itl_cv chooses: raised with every change of it, so that older records are not taken for it."""

GRID = np.arange(1, 20) / 20
"""The levels of the CRPS."""


def units(quick: bool) -> list[dict[str, Any]]:
    """Split by split, so that a run that was stopped has something of every set."""
    return [
        {"dataset": name, "split": i, "method": method}
        for i in range(2 if quick else 5)
        for name in (QUICK if quick else quantile_sets())
        for method in PEERS
    ]


def settings(quick: bool) -> dict[str, Any]:
    """What all units have in common."""
    return {"evaluations": 3 if quick else 20, "folds": 3, "itl_cv": REVISION}


def crps(y: Values, h: Values) -> float:
    """Twice the mean pinball loss over GRID: the CRPS as a sum over levels."""
    r = y[:, None] - h
    return float(2.0 * np.mean(np.maximum(GRID * r, (GRID - 1.0) * r)))


def work(unit: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """Tune, fit, and measure on the rows left out.

    Seconds are those of the processor: with one thread they do not depend on what else the machine does.
    """
    X, X_test, y, y_test = split(unit["dataset"], unit["split"])
    peer, seed = PEERS[unit["method"]], unit["split"]
    _warm(unit["method"])
    start = time.process_time()
    parameters, loss = tune(peer, X, y, evaluations=settings["evaluations"], folds=settings["folds"], seed=seed)
    tuned = time.process_time()
    answer = fitted(peer, parameters, X, y, LEVELS, seed)
    done = time.process_time()
    h = answer(X_test, LEVELS)
    dense = answer if peer.any_level else fitted(peer, parameters, X, y, GRID, seed)
    return {
        "parameters": parameters,
        "cv": loss,
        "pinball": pinball(y_test, h),
        "crossing": crossing(h),
        "crps": crps(y_test, dense(X_test, GRID)),
        "tuning_seconds": round(tuned - start, 3),
        "fit_seconds": round(done - tuned, 4),
    }


@functools.cache
def _warm(method: str) -> None:
    """Load what the method imports and compiles, so that no unit's seconds contain it."""
    PEERS[method].load()
    X, y = make_sine(40, random_state=0)
    fitted(PEERS[method], PEERS[method].defaults(40), X, y, LEVELS, 0)(X, LEVELS)


EXPERIMENT = Experiment("peers", "One modern peer of each kind", units, work, report, settings)
