"""All public estimators, fitted to a few rows: those that come later are found by themselves."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, is_classifier, is_outlier_detector
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler

import infinitask
from infinitask import (
    CrossConformal,
    IndependentQuantileRegressor,
    InfiniteQuantileRegressor,
    InfiniteTaskEstimator,
    JointQuantileRegressor,
)
from infinitask.pipelines import TaskPipeline, TaskSearch, TransformedTarget
from infinitask.tuning import OptunaSearch
from tests.support.estimator_cases import sample

X, Y = sample(40)
NEW = sample(15, seed=1)[0]
LABELS = np.where(np.median(Y) < Y, "yes", "no")

QUICK: dict[str, Any] = {"n_nodes": 6, "tol": 1e-2, "random_state": 0, "kernels": ["rbf"]}
"""What makes a fit quick, where a constructor takes it."""

LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9)

BUILT: dict[str, Callable[[], Any]] = {
    "IndependentQuantileRegressor": lambda: IndependentQuantileRegressor(quantiles=LEVELS, tol=1e-2),
    "JointQuantileRegressor": lambda: JointQuantileRegressor(quantiles=LEVELS, tol=1e-2),
    "CrossConformal": lambda: CrossConformal(_quantiles(), cv=3, random_state=0),
    "InfiniteTaskEstimator": lambda: InfiniteTaskEstimator("pinball", n_nodes=6, tol=1e-2),
    "OptunaSearch": lambda: OptunaSearch(
        _quantiles(), {"alpha": (1e-4, 1.0)}, n_trials=2, cv=2, random_state=0, progress=False
    ),
    "TaskSearch": lambda: TaskSearch(GridSearchCV(_quantiles(), {"alpha": [0.1, 0.01]}, cv=2)),
    "TransformedTarget": lambda: TransformedTarget(_quantiles(), func=np.arcsinh, inverse_func=np.sinh),
    "TaskPipeline": lambda: TaskPipeline([("scale", StandardScaler()), ("model", _quantiles())]),
}
"""Estimators whose constructors need more, or whose few tasks must be those that all are asked."""

TARGETS: dict[str, Any] = {}
"""Targets of estimators that take neither numbers nor labels."""


def _quantiles() -> InfiniteQuantileRegressor:
    return InfiniteQuantileRegressor(n_nodes=6, tol=1e-2)


def public_estimators() -> dict[str, type[Any]]:
    """Classes of estimators that are public, by name, and what ``make_pipeline`` returns."""
    modules = (infinitask, infinitask.estimators, infinitask.tuning, infinitask.pipelines)
    things = {name: getattr(module, name) for module in modules for name in module.__all__}
    things["TaskPipeline"] = TaskPipeline
    found = {name: thing for name, thing in things.items() if inspect.isclass(thing)}
    return {name: cls for name, cls in sorted(found.items()) if issubclass(cls, BaseEstimator)}


def built(name: str) -> Any:
    """An estimator of that name, not yet fitted."""
    cls = public_estimators()[name]
    if name in BUILT:
        return BUILT[name]()
    known = inspect.signature(cls).parameters
    return cls(**{key: value for key, value in QUICK.items() if key in known})


@cache
def fitted(name: str) -> Any:
    """An estimator of that name, fitted."""
    model = built(name)
    if name in TARGETS:
        return model.fit(X, TARGETS[name])
    if is_outlier_detector(model):
        return model.fit(X)
    return model.fit(X, LABELS if is_classifier(model) else Y)
