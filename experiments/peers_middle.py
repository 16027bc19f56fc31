"""Which method predicts distributions of middle-sized tables best; see :mod:`experiments.middle_tables`."""

from __future__ import annotations

import functools
import time
from typing import Any

import numpy as np

from . import middle_tables
from .middle_models import LEVELS, MIDDLE, Booster, mean_pinball, search
from .peer_report import Contest, report
from .peer_search import Answer, Parameters, Values, fitted, tune
from .peers import FINE, REVISION, coverage, crps, warm
from .runner import Experiment
from .smooth_peers import BAGGED_ROWS, LEAF_ROWS, LIKELIHOOD_ROWS, POSTERIOR_ROWS
from .tuned import crossing

__all__ = ["EXPERIMENT", "MIDDLE_TABLES"]

FOLD_ROWS = 2_000
"""Below so many training rows a search has folds, from there on one hold-out of a fifth."""

SEARCH_ROWS = {"lightgbm": 8_000, "catboost": 8_000, "linear": 8_000, "quantile_forest": 4_000, "xrfm": 3_000}
"""At most so many random rows take part in a search; the last fit has all."""

SEARCH_SECONDS = 120.0
"""No further parameters are tried after so much processor time."""

MIDDLE_TABLES = Contest(
    "peers_middle",
    "The peers on middle-sized tables",
    tuple(middle_tables.TABLES),
    "the tables of `experiments/middle_tables.py`",
    "`InfiniteQuantileRegressor()` is the model without any choice. The list of tables was committed before any method "
    "had seen one of them, and all methods were run once on one split of each table (30% test rows), "
    "but ∞-QR CV. A run of its seventh version was broken off, and its losses were not read; the eighth had mean "
    "rank 2.60 by pinball loss on fifteen of the tables; the ninth, shown here, was changed for small tables and for "
    "speed.",
    digits=2,
    losses="pinball loss (mean over the levels 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95 and the test rows, × 100)",
    search="LightGBM and CatBoost know categories and missing values, and have up to 1 500 trees, stopped by left-out "
    "rows; the others see a column of 0 and 1 for each category and the median for a missing number. Each peer with "
    "parameters has its best of {evaluations} settings, its own defaults and random ones, by {folds}-fold "
    f"cross-validation below {FOLD_ROWS} training rows, by one hold-out of a fifth from there on. At most "
    f"{SEARCH_ROWS['lightgbm']} random rows take part in the search of LightGBM, CatBoost and the linear quantiles, "
    f"{SEARCH_ROWS['quantile_forest']} in that of the forest, {SEARCH_ROWS['xrfm']} in that of xRFM, and it ends after "
    f"{SEARCH_SECONDS:.0f} processor seconds; the last fit has all rows. The Gaussian processes choose their "
    f"parameters on at most {LIKELIHOOD_ROWS} rows and are conditioned on at most {POSTERIOR_ROWS}; xRFM has leaves "
    f"of at most {LEAF_ROWS} rows, five bags up to {BAGGED_ROWS} rows and one beyond. liquidSVM is not on this page: "
    "its cross-validation takes minutes from 3 000 rows on.",
)


def units(quick: bool) -> list[dict[str, Any]]:
    """Small tables first, so that a run that was stopped has results of all methods for them."""
    names = list(middle_tables.TABLES)
    return [
        {"dataset": name, "split": 0, "method": method} | ({"revision": REVISION} if method.startswith("itl_") else {})
        for name in (names[:1] if quick else names)
        for method in MIDDLE
    ]


def settings(quick: bool) -> dict[str, Any]:
    """What all units have in common."""
    return {"evaluations": 3 if quick else 20, "folds": 3, "sorted": True}


def work(unit: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """Tune, fit, and measure on the test rows, with the quantiles of each row sorted; seconds are processor time."""
    table, method, seed = middle_tables.split(unit["dataset"], unit["split"]), unit["method"], unit["split"]
    peer, y = MIDDLE[method], table.y
    folds = settings["folds"] if y.size < FOLD_ROWS else 1
    rows = SEARCH_ROWS.get(method, y.size)
    common = {"evaluations": settings["evaluations"], "folds": folds, "seed": seed, "seconds": SEARCH_SECONDS}
    loss: float | None
    if isinstance(peer, Booster):
        X, X_test = table.native, table.native_test
        start = time.process_time()
        parameters, loss, tried = search(peer, X, y, table.categories, rows=rows, **common)

        def fit(levels: Values) -> Answer:
            return peer.fit(parameters, X, y, table.categories, levels, seed)
    else:
        X, X_test = table.X, table.X_test
        warm(peer)
        start = time.process_time()
        some = np.random.default_rng(seed).permutation(y.size)[:rows]
        parameters, loss = tune(peer, X[some], y[some], levels=LEVELS, loss=mean_pinball, **common)
        last: Parameters = parameters | peer.last
        tried = common["evaluations"] if peer.draw and time.process_time() - start < SEARCH_SECONDS else 0

        def fit(levels: Values) -> Answer:
            return fitted(peer, last, X, y, levels, seed)

    tuned = time.process_time()
    answer = fit(LEVELS)
    done = time.process_time()
    h = answer(X_test, LEVELS)
    predicted = time.process_time()
    dense = answer if getattr(peer, "any_level", False) else fit(FINE)
    fine = np.sort(dense(X_test, FINE), axis=1)
    return {
        "parameters": parameters,
        "tried": tried,
        "cv": loss,
        "pinball": mean_pinball(table.y_test, np.sort(h, axis=1)),
        "crossing": crossing(h),
        "crps": crps(table.y_test, fine[:, 1:-1]),
        "coverage": coverage(table.y_test, fine),
        "tuning_seconds": round(tuned - start, 3),
        "fit_seconds": round(done - tuned, 4),
        "predict_seconds": round(predicted - done, 4),
    }


EXPERIMENT = Experiment(
    "peers-middle",
    MIDDLE_TABLES.title,
    units,
    work,
    functools.partial(report, MIDDLE_TABLES),
    settings,
)
