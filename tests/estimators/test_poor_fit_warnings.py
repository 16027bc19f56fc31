"""Remarks of a fit: certified, and yet of little use."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.preprocessing import scale

from infinitask import (
    InfiniteCostSensitiveClassifier,
    InfiniteExpectileRegressor,
    InfiniteOneClassSVM,
    InfiniteQuantileRegressor,
    InfiniteSVR,
)
from infinitask.datasets import make_sine


def quietly(model: Any, *data: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return model.fit(*data)


@pytest.mark.parametrize("kind", [InfiniteQuantileRegressor, InfiniteSVR])
def test_targets_too_large_for_the_ridge_on_the_bias_warn(kind: type[Any]) -> None:
    X, y = make_sine(80, random_state=0)
    held_bias: dict[str, Any] = {"n_nodes": 8, "alpha": 1e-3, "alpha_bias": None, "measure": (0.0, 1.0)}
    for unit in (1.0, 0.01):
        quietly(kind(**held_bias), X, unit * y)
    prices = 250_000.0 + 60_000.0 * y
    with pytest.warns(UserWarning, match="alpha_bias=0, which leaves the bias free"):
        held = kind(**held_bias).fit(X, prices)
    free = quietly(kind(**{**held_bias, "alpha_bias": 0.0}), X, prices)
    middle = 0.5 if kind is InfiniteQuantileRegressor else 0.1
    assert np.mean(held.predict(X, middle)) < 10_000.0
    assert np.mean(free.predict(X, middle)) == pytest.approx(np.mean(prices), rel=0.1)


def test_squared_losses_follow_their_targets_without_a_warning() -> None:
    X, y = make_sine(80, random_state=0)
    model = quietly(InfiniteExpectileRegressor(n_nodes=8), X, 250_000.0 + 60_000.0 * y)
    assert np.mean(model.predict(X)) == pytest.approx(250_000.0, rel=0.1)


def test_a_decision_that_never_changes_warns() -> None:
    X, y = make_classification(2000, n_features=8, n_informative=4, weights=[0.97], flip_y=0.01, random_state=0)
    X, y = scale(X)[:1000], y[:1000]
    with pytest.warns(UserWarning, match="the decision is the same for all training rows"):
        useless = InfiniteCostSensitiveClassifier(n_nodes=8, alpha=1e-3, alpha_bias=None).fit(X, y)
    assert len(np.unique(useless.predict(X, [-0.9, 0.0, 0.9]))) == 1
    free = quietly(InfiniteCostSensitiveClassifier(n_nodes=8, alpha=1e-3), X, y)
    assert len(np.unique(free.predict(X, [-0.9, 0.9]))) == 2


def test_equal_rows_that_fall_to_one_side_together_warn() -> None:
    X = np.random.default_rng(0).integers(0, 2, size=(200, 4)).astype(float)
    with pytest.warns(UserWarning, match=r"the 200 rows are only 16 different ones, .*Add features"):
        model = InfiniteOneClassSVM(alpha=1e-6).fit(X)
    outside = np.mean(model.predict(X, nu=[0.05, 0.2]) < 0, axis=0)
    assert np.max(np.abs(outside - [0.05, 0.2])) > 0.1
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the same number of rows, without ties
        InfiniteOneClassSVM(alpha=1e-6).fit(X + np.random.default_rng(1).normal(size=X.shape))


def test_rows_on_the_boundary_warn() -> None:
    X = np.random.default_rng(0).standard_normal((100, 1))
    with pytest.warns(UserWarning, match=r"at ν = .*% of the training rows lie on the boundary"):
        InfiniteOneClassSVM(gamma=20.0, n_nodes=10).fit(X)
    quietly(InfiniteOneClassSVM(n_nodes=10), np.random.default_rng(0).standard_normal((100, 2)))
