"""The estimators as cases of one contract: small problems, and one way to ask each of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from infinitask import (
    InfiniteCensoredQuantileRegressor,
    InfiniteCostSensitiveClassifier,
    InfiniteExpectileRegressor,
    InfiniteKernelRidge,
    InfiniteOneClassSVM,
    InfiniteQuantileRegressor,
    InfiniteSVR,
    InfiniteTaskEstimator,
)

LEVELS = [0.1, 0.5, 0.9]  # inside every Θ
ESTIMATORS = [
    InfiniteQuantileRegressor,
    InfiniteCensoredQuantileRegressor,
    InfiniteExpectileRegressor,
    InfiniteCostSensitiveClassifier,
    InfiniteOneClassSVM,
    InfiniteTaskEstimator,
    InfiniteSVR,
    InfiniteKernelRidge,
]
# Where the default task lies outside the measures around LEVELS that some tests give; the Θ that the tests speak of.
DEFAULTS: dict[type[Any], dict[str, Any]] = {
    InfiniteCostSensitiveClassifier: {"theta": 0.5},
    InfiniteKernelRidge: {"log_alpha": 0.5, "measure": (0.0, 1.0)},
    InfiniteSVR: {"measure": (0.0, 1.0)},
}


def sample(n: int = 40, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows in lexicographic order, so that a Gram matrix of them has the order of the canonical rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    X = X[np.lexsort(X.T[::-1])]
    return X, np.sin(2.0 * X[:, 0]) + 0.3 * (1.0 + X[:, 1] ** 2) * rng.normal(size=n)


@dataclass(frozen=True)
class Case:
    """One estimator, small enough to be fitted often, and how to ask it for values at ``LEVELS``."""

    cls: type[Any]

    def make(self, **params: Any) -> Any:
        if not self.takes("alpha"):  # whose ridge weight is the task
            params.pop("alpha", None)
        return self.cls(**{"n_nodes": 8, "random_state": 0, **DEFAULTS.get(self.cls, {}), **params})

    def takes(self, name: str) -> bool:
        """Whether the constructor has this parameter."""
        return name in inspect.signature(self.cls).parameters

    def target(self, y: np.ndarray) -> Any:
        if self.cls is InfiniteCostSensitiveClassifier:
            return np.where(y > np.median(y), "yes", "no")
        return None if self.cls is InfiniteOneClassSVM else y

    def fit(self, X: np.ndarray, y: np.ndarray, sample_weight: Any = None, **params: Any) -> Any:
        return self.make(**params).fit(X, self.target(y), sample_weight=sample_weight)

    @staticmethod
    def values(model: Any, X: Any, theta: Any = LEVELS) -> np.ndarray:
        ask: Callable[..., np.ndarray] = getattr(model, "decision_function", model.predict)
        return ask(X, theta)
