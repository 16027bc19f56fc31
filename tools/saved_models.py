"""Writes the files of the present format that tests/persistence loads for ever after, and what they should answer.

Run it once for a new version of the format: ``python tools/saved_models.py``. Files that are there already are kept.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from infinitask import (
    InfiniteCostSensitiveClassifier,
    InfiniteFunctionRegressor,
    InfiniteOneClassSVM,
    InfiniteQuantileRegressor,
    load,
    save,
)
from infinitask.persistence._file import FORMAT_VERSION
from infinitask.tuning import InfiniteQuantileRegressorCV

FOLDER = Path(__file__).parents[1] / "tests" / "persistence" / "files"

QUICK: dict[str, Any] = {"n_nodes": 8, "task_kernel": "matern32", "features": "nystroem", "rank": 12, "random_state": 0}
"""Few landmarks, and a rough kernel of tasks: answers are sums without large terms, which processors round alike."""


POINTS = np.linspace(0.0, 1.0, 6)
"""Where curves were seen."""


def answers(name: str, model: Any, X: Any) -> dict[str, Any]:
    """What a model of a file is asked."""
    if name == "classifier":
        return {"labels": model.predict(X, theta=[-0.5, 0.5]), "probabilities": model.predict_proba(X)}
    if name == "classes":
        costs = [[0.0, 1.0, 4.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]]
        return {"labels": model.predict(X, costs=costs), "probabilities": model.predict_proba(X)}
    if name == "curves":
        return {"curves": model.predict(X, theta=[0.1, 0.5, 0.9]), "slopes": model.derivative(X, theta=[0.25, 0.75])}
    if name == "level_sets":
        return {"labels": model.predict(X, nu=[0.1, 0.5]), "scores": model.score_samples(X)}
    found = {"quantiles": model.predict(X, quantiles=[0.1, 0.5, 0.9])}
    if name == "pipeline":
        return found
    return found | {"intervals": model.predict_interval(X, coverage=0.8), "slopes": model.relevance_.slope}


def models() -> dict[str, Any]:
    """Three tasks, many classes, curves, a model that tuned itself, and a pipeline."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.sin(2.0 * X[:, 0]) + 0.3 * rng.normal(size=60)
    labels = np.where(y > 0.0, "high", "low")
    return {
        "quantiles": InfiniteQuantileRegressor(**QUICK).fit(X, y).conformalize(*_more(rng)),
        "classifier": InfiniteCostSensitiveClassifier(**QUICK).fit(X, labels),
        "classes": InfiniteCostSensitiveClassifier(**QUICK).fit(X, np.digitize(y, [-0.4, 0.4])),
        "curves": InfiniteFunctionRegressor(**QUICK).fit(X, np.sin(X[:, :1] + 3.0 * POINTS), POINTS),
        "level_sets": InfiniteOneClassSVM(**QUICK).fit(X),
        "tuned": InfiniteQuantileRegressorCV(kernels=["matern12", "linear"], **QUICK).fit(X, y),
        "pipeline": make_pipeline(StandardScaler(), InfiniteQuantileRegressor(**QUICK)).fit(X, y),
    }


def main() -> None:
    """Write all files, and read them once."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    X = np.random.default_rng(1).normal(size=(12, 2))
    for name, model in models().items():
        path = FOLDER / f"format{FORMAT_VERSION}_{name}.safetensors"
        if path.exists():
            continue
        save(model, path)
        np.savez(path.with_suffix(".npz"), X=X, **answers(name, load(path), X))
        print(path.name, path.stat().st_size, "bytes")


def _more(rng: np.random.Generator) -> tuple[Any, Any]:
    X = rng.normal(size=(40, 2))
    return X, np.sin(2.0 * X[:, 0]) + 0.3 * rng.normal(size=40)


if __name__ == "__main__":
    main()
