"""Small fitted models for all tests of plots, fitted once."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.model_selection import KFold

from infinitask import InfiniteCostSensitiveClassifier, InfiniteOneClassSVM, InfiniteQuantileRegressor
from infinitask.datasets import make_mixture, make_sine
from infinitask.tuning import InfiniteOneClassSVMCV, InfiniteQuantileRegressorCV

pytest.importorskip("matplotlib", reason="plots need the extra `plot`")


FOLDS = KFold(3, shuffle=True, random_state=0)


class Fitted(NamedTuple):
    """A model, and rows that it has not seen."""

    model: Any
    X: Any
    y: Any = None


@pytest.fixture(scope="session")
def sine() -> Fitted:
    X, y = make_sine(160, random_state=0)
    return Fitted(InfiniteQuantileRegressor(n_nodes=12).fit(X[::2], y[::2]), X[1::2], y[1::2])


@pytest.fixture(scope="session")
def crossed() -> Fitted:
    X, y = make_sine(60, random_state=0)
    return Fitted(InfiniteQuantileRegressor(n_nodes=12, noncrossing=0.0, gamma=100.0, alpha=1e-5).fit(X, y), X, y)


@pytest.fixture(scope="session")
def houses() -> Fitted:
    """Columns with names."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = pandas.DataFrame({"area": rng.lognormal(4.5, 0.3, 120), "age": rng.uniform(0.0, 80.0, 120)})
    y = pandas.Series(3.0 * X["area"] - 1.2 * X["age"] + rng.normal(0.0, 20.0, 120), name="price")
    return Fitted(InfiniteQuantileRegressor(n_nodes=10).fit(X[:80], y[:80]), X[80:], y[80:])


@pytest.fixture(scope="session")
def moons() -> Fitted:
    X, y = make_moons(240, noise=0.3, random_state=0)
    return Fitted(InfiniteCostSensitiveClassifier(n_nodes=8).fit(X[:120], y[:120]), X[120:], y[120:])


@pytest.fixture(scope="session")
def clouds() -> Fitted:
    X = make_mixture(300, random_state=0)
    return Fitted(InfiniteOneClassSVM(n_nodes=20).fit(X[:120]), X[120:])


@pytest.fixture(scope="session")
def tuned() -> Fitted:
    X, y = make_sine(80, random_state=0)
    model = InfiniteQuantileRegressorCV(kernels=["rbf", "linear", "laplacian"], n_nodes=10, cv=FOLDS, random_state=0)
    return Fitted(model.fit(X, y), X, y)


@pytest.fixture(scope="session")
def tuned_sets() -> Fitted:
    X = make_mixture(80, random_state=0)
    return Fitted(InfiniteOneClassSVMCV(kernels=["rbf", "laplacian"], n_nodes=15, cv=2, random_state=0).fit(X), X)
