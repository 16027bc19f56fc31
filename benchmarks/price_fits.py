"""The fits whose price and held-out losses are compared: ours, and what one would use instead.

Run as a script with ``--worker`` this is one side of a comparison: it reads fits from the standard input, one a line,
and answers with seconds and scores. It imports nothing of this repository but the library: an older one will do.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, make_scorer, roc_auc_score
from sklearn.model_selection import TunedThresholdClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, OneClassSVM

import infinitask
from infinitask import (
    InfiniteCostSensitiveClassifier,
    InfiniteCostSensitiveClassifierCV,
    InfiniteOneClassSVM,
    InfiniteOneClassSVMCV,
    InfiniteQuantileRegressor,
    InfiniteQuantileRegressorCV,
)

LEVELS = np.array([0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95])
"""The quantiles that all models predict."""

FINE = np.arange(1, 100) / 100
"""The quantiles over which the pinball loss of our models is integrated."""

THETAS = np.linspace(-0.95, 0.95, 20)
"""Trade-offs between the two kinds of mistakes."""

MISSED, FALSE_ALARM = 20.0, 1.0
"""What mistakes cost where a threshold is tuned."""

NUS = np.array([0.05, 0.1, 0.2, 0.5, 0.9])
"""Fractions outside of level sets."""

BUDGET = 20
"""Seconds of the fits with ``max_seconds``."""

Values = Any
Scores = dict[str, float]


# --------------------------------------------------------------------------------------------------------------- scores
def pinball(y: Values, q: Values, levels: Values) -> float:
    """The mean of max(τ (y − q), (τ − 1)(y − q)) over rows and levels."""
    away = y[:, None] - q
    return float(np.mean(np.maximum(levels * away, (levels - 1.0) * away)))


def quantile_scores(predict: Callable[[Values, Values], Values], data: Values, fine: bool) -> Scores:
    """Pinball losses of new rows, divided by those of the quantiles of the training rows.

    ``predict`` maps X and levels to (n, levels). With ``fine`` the loss is integrated over 99 levels as well, and where
    targets are positive with a heavy tail the loss of their logarithms is told too.
    """
    X, y, new, levels = data["y"], data["y_new"], data["X_new"], LEVELS
    q = predict(new, levels)
    found = {"pinball": pinball(y, q, levels) / pinball(y, np.quantile(X, levels)[None], levels)}
    if fine:
        found["integrated"] = pinball(y, predict(new, FINE), FINE) / pinball(y, np.quantile(X, FINE)[None], FINE)
    if np.min(X) > 0.0 and np.max(X) > 1e3 * np.median(X):
        low = np.min(X)
        plain = pinball(np.log(y), np.log(np.quantile(X, levels))[None], levels)
        found["logarithms"] = pinball(np.log(y), np.log(np.maximum(q, low)), levels) / plain
    return found


def decision_cost(y: Values, decisions: Values, missed: Values, false_alarm: Values) -> float:
    """The mean over rows (and columns) of what wrong decisions cost."""
    y, decisions = np.asarray(y), np.asarray(decisions)
    if decisions.ndim == 2:
        y = y[:, None]
    return float(np.mean(missed * ((y == 1) & (decisions != 1)) + false_alarm * ((y != 1) & (decisions == 1))))


def tuned_cost(y: Values, decisions: Values) -> float:
    return decision_cost(y, decisions, MISSED, FALSE_ALARM)


def class_scores(p: Values, y: Values, one: Values, many: Values) -> Scores:
    """Scores of two classes: decisions ``one`` for the stated cost, ``many`` (rows, θ) for all trade-offs."""
    return {
        "cost": tuned_cost(y, one),
        "costs": decision_cost(y, many, 0.5 * (1.0 + THETAS), 0.5 * (1.0 - THETAS)),
        "log loss": float(log_loss(y, p)),
        "AUC": float(roc_auc_score(y, p[:, 1])),
    }


def outside_scores(outside: Values, normality: Values, y: Values) -> Scores:
    """Scores of level sets: fractions of new normal rows ``outside`` (rows, NUS), and outliers against normal rows."""
    fractions = np.mean(outside[y == 1], axis=0)
    found = {"deviation": float(np.max(np.abs(fractions - NUS))), "at .1": float(fractions[NUS == 0.1][0])}
    if np.unique(y).size == 2:
        found["AUC"] = float(roc_auc_score(y, normality))
    return found


# ----------------------------------------------------------------------------------------------------------------- fits
@dataclass(frozen=True)
class Fit:
    """A model, and how its predictions are scored.

    Parameters
    ----------
    words : str
        For the page.
    fit : callable
        The data → a model. This is timed.
    score : callable
        A model and the data → scores.
    prepare : callable, optional
        What is done to the data beforehand.
    """

    words: str
    fit: Callable[[Values], Any]
    score: Callable[[Any, Values], Scores]
    prepare: Callable[[Values], Values] = lambda data: data


def _quantiles(model: Any, data: Values) -> Scores:
    return quantile_scores(lambda X, levels: model.predict(X, quantiles=levels), data, fine=True)


def _fixed(model: Any, data: Values) -> Scores:
    return quantile_scores(lambda X, _: model(X), data, fine=False)


def _as_sparse(data: Values) -> Values:
    return data | {"X": sparse.csr_matrix(data["X"]), "X_new": sparse.csr_matrix(data["X_new"])}


def _lightgbm(data: Values) -> Any:
    """One booster for each level, as it comes."""
    from lightgbm import LGBMRegressor

    models = [
        LGBMRegressor(objective="quantile", alpha=level, n_jobs=1, verbose=-1, random_state=0).fit(data["X"], data["y"])
        for level in LEVELS
    ]
    return lambda X: np.column_stack([model.predict(X) for model in models])


def _catboost(data: Values) -> Any:
    """One model of all levels, as it comes."""
    from catboost import CatBoostRegressor

    loss = "MultiQuantile:alpha=" + ",".join(f"{level:g}" for level in LEVELS)
    model = CatBoostRegressor(
        loss_function=loss, thread_count=1, verbose=False, allow_writing_files=False, random_seed=0
    )
    model.fit(data["X"], data["y"])
    return lambda X: np.asarray(model.predict(X, thread_count=1))


def _costs(model: Any, data: Values) -> Scores:
    new, y = data["X_new"], data["y_new"]
    theta = InfiniteCostSensitiveClassifier.theta_from_costs(MISSED, FALSE_ALARM)
    return class_scores(model.predict_proba(new), y, model.predict(new, theta=theta), model.predict(new, theta=THETAS))


def _probabilities(model: Any, data: Values) -> Scores:
    """The decisions of another classifier: its own for the cost whose threshold it tuned, else by its probabilities."""
    p = model.predict_proba(data["X_new"])
    own = model.predict(data["X_new"]) if isinstance(model, TunedThresholdClassifierCV) else None
    one = (MISSED * p[:, 1] > FALSE_ALARM * p[:, 0]).astype(int) if own is None else own
    return class_scores(p, data["y_new"], one, (p[:, [1]] * (1.0 + THETAS) > p[:, [0]] * (1.0 - THETAS)).astype(int))


def _classes(model: Any, data: Values) -> Scores:
    """Log loss and errors of many classes; errors only of a model without probabilities."""
    new, y = data["X_new"], data["y_new"]
    found = {"errors": float(np.mean(model.predict(new) != y))}
    if hasattr(model, "predict_proba"):
        found = {"log loss": float(log_loss(y, model.predict_proba(new), labels=model.classes_))} | found
    return found


def _level_sets(model: Any, data: Values) -> Scores:
    new = data["X_new"]
    return outside_scores(model.predict(new, nu=NUS) < 0, model.score_samples(new), data["y_new"])


def _machines(models: Any, data: Values) -> Scores:
    new = data["X_new"]
    outside = np.column_stack([models[float(nu)].predict(new) < 0 for nu in NUS])
    return outside_scores(outside, models[0.1].score_samples(new), data["y_new"])


def _machine(model: Any, data: Values) -> Scores:
    """One level says nothing about the others."""
    y = data["y_new"]
    found = outside_scores(np.repeat((model.predict(data["X_new"]) < 0)[:, None], NUS.size, 1), np.zeros(y.size), y)
    scores = model.score_samples(data["X_new"])
    return {"at .1": found["at .1"]} | ({"AUC": float(roc_auc_score(y, scores))} if np.unique(y).size == 2 else {})


def _supervised(make: Callable[..., Any], **options: Any) -> Callable[[Values], Any]:
    return lambda data: make(**options).fit(data["X"], data["y"])


def _rows(make: Callable[..., Any], **options: Any) -> Callable[[Values], Any]:
    return lambda data: make(**options).fit(data["X"])


def _boosted() -> Any:
    cost = make_scorer(tuned_cost, greater_is_better=False)
    return TunedThresholdClassifierCV(HistGradientBoostingClassifier(random_state=0), scoring=cost, random_state=0)


def _logistic() -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=2_000))


def _svc() -> Any:
    return make_pipeline(StandardScaler(), SVC())


def _one_class(nu: float) -> Any:
    return make_pipeline(StandardScaler(), OneClassSVM(nu=nu))


FITS: dict[str, dict[str, Fit]] = {
    "quantiles": {
        "default": Fit(
            "`InfiniteQuantileRegressor()`", _supervised(InfiniteQuantileRegressor, random_state=0), _quantiles
        ),
        "sparse": Fit(
            "`InfiniteQuantileRegressor()`, X in CSR format",
            _supervised(InfiniteQuantileRegressor, random_state=0),
            _quantiles,
            prepare=_as_sparse,
        ),
        "tuned": Fit(
            "`InfiniteQuantileRegressorCV()`",
            _supervised(InfiniteQuantileRegressorCV, random_state=0),
            _quantiles,
        ),
        "tuned in time": Fit(
            f"`InfiniteQuantileRegressorCV(max_seconds={BUDGET})`",
            _supervised(InfiniteQuantileRegressorCV, random_state=0, max_seconds=BUDGET),
            _quantiles,
        ),
        "LightGBM": Fit(f"LightGBM, {LEVELS.size} levels", _lightgbm, _fixed),
        "CatBoost": Fit(f"CatBoost, MultiQuantile of {LEVELS.size} levels", _catboost, _fixed),
    },
    "costs": {
        "default": Fit(
            "`InfiniteCostSensitiveClassifier()`", _supervised(InfiniteCostSensitiveClassifier, random_state=0), _costs
        ),
        "rank 300": Fit(
            '`InfiniteCostSensitiveClassifier(features="nystroem", rank=300, tol=1e-3)`',
            _supervised(InfiniteCostSensitiveClassifier, features="nystroem", rank=300, tol=1e-3, random_state=0),
            _costs,
        ),
        "tuned": Fit(
            "`InfiniteCostSensitiveClassifierCV()`",
            _supervised(InfiniteCostSensitiveClassifierCV, random_state=0),
            _costs,
        ),
        "tuned in time": Fit(
            f"`InfiniteCostSensitiveClassifierCV(max_seconds={BUDGET})`",
            _supervised(InfiniteCostSensitiveClassifierCV, random_state=0, max_seconds=BUDGET),
            _costs,
        ),
        "boosting": Fit("HistGradientBoosting, TunedThresholdClassifierCV", _supervised(_boosted), _probabilities),
        "logistic": Fit("logistic regression", _supervised(_logistic), _probabilities),
    },
    "classes": {
        "default": Fit(
            "`InfiniteCostSensitiveClassifier()`",
            _supervised(InfiniteCostSensitiveClassifier, random_state=0),
            _classes,
        ),
        "SVC": Fit("SVC", _supervised(_svc), _classes),
        "calibrated SVC": Fit(
            "SVC, CalibratedClassifierCV",
            _supervised(lambda: CalibratedClassifierCV(_svc(), ensemble=False)),
            _classes,
        ),
        "logistic": Fit("logistic regression", _supervised(_logistic), _classes),
    },
    "level sets": {
        "default": Fit("`InfiniteOneClassSVM()`", _rows(InfiniteOneClassSVM, random_state=0), _level_sets),
        "tuned": Fit("`InfiniteOneClassSVMCV()`", _rows(InfiniteOneClassSVMCV, random_state=0), _level_sets),
        "tuned in time": Fit(
            f"`InfiniteOneClassSVMCV(max_seconds={BUDGET})`",
            _rows(InfiniteOneClassSVMCV, random_state=0, max_seconds=BUDGET),
            _level_sets,
        ),
        "OneClassSVM": Fit("OneClassSVM, ν = .1", _rows(lambda: _one_class(0.1)), _machine),
        "99 × OneClassSVM": Fit(
            "OneClassSVM, ν = .01, .02, …, .99",
            lambda data: {k / 100: _one_class(k / 100).fit(data["X"]) for k in range(1, 100)},
            _machines,
        ),
    },
}
"""Kind of problem → name → fit; those of ours are the first ones."""

OURS = ("default", "sparse", "rank 300", "tuned", "tuned in time")


# ------------------------------------------------------------------------------------------------------ one side's work
def read(path: str) -> Values:
    """The arrays of a file."""
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


def measured(kind: str, name: str, data: Values, small: Values | None) -> dict[str, Any]:
    """Fit, and score the predictions; first a small table, if there is one, so that imports are not timed.

    Returns processor seconds, seconds of the clock, scores, the certified gap if there is one, and warnings; or why
    there is nothing: a package is missing, or the fit failed.
    """
    fit = FITS[kind][name]
    try:
        return _timed(fit, data, small)
    except ImportError as missing:
        return {"missing": str(missing)}
    except Exception as error:  # one fit that fails must not end a run of an hour
        return {"failed": f"{type(error).__name__}: {error}"}


def _timed(fit: Fit, data: Values, small: Values | None) -> dict[str, Any]:
    with warnings.catch_warnings(record=True) as seen:
        if small is not None:
            warnings.simplefilter("ignore")
            ready = fit.prepare(small)
            fit.score(fit.fit(ready), ready)
        warnings.simplefilter("always")
        data = fit.prepare(data)
        clock, processor = time.perf_counter(), time.process_time()
        model = fit.fit(data)
        seconds, wall = time.process_time() - processor, time.perf_counter() - clock
        told = sorted({f"{w.category.__name__}: {w.message}" for w in seen})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scores = fit.score(model, data)
    gap = getattr(model, "dual_gap_", None)
    return {
        "seconds": seconds,
        "wall": wall,
        "scores": scores,
        "gap": None if gap is None else float(np.max(gap)),
        "warnings": told,
    }


def worker() -> None:
    """Answer the lines of the standard input: the kind of a problem, a fit, files with a large and a small table."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    print(json.dumps(str(Path(infinitask.__file__).parent)), flush=True)
    for line in sys.stdin:
        kind, name, data, small = json.loads(line)
        found = measured(kind, name, read(data), None if small is None else read(small))
        print(json.dumps(found), flush=True)


if __name__ == "__main__" and sys.argv[1:] == ["--worker"]:
    worker()
