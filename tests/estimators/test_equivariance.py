"""y → a·y + b changes predictions by just that."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from infinitask import (
    IndependentQuantileRegressor,
    InfiniteExpectileRegressor,
    InfiniteFunctionRegressor,
    InfiniteKernelRidge,
    InfiniteQuantileRegressor,
    InfiniteSVR,
    InfiniteTaskEstimator,
    JointQuantileRegressor,
)
from infinitask.kernels import RBF
from infinitask.tuning import InfiniteQuantileRegressorCV

# scales of y: powers of two, so that a·y has the digits of y, next to 1e-6 and 1e6
SCALES = [2.0**-20, 1e-6, 1.0, 1e6]


def sample(n: int = 40, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, np.sin(2.0 * X[:, 0]) + 0.3 * (1.5 + np.tanh(X[:, 1])) * rng.normal(size=n)


def answers(model: Any, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Values at nodes, whatever they are called; half-widths of a tube have the units of y too."""
    model.fit(X, y)
    return np.asarray(model.field_(X, model.nodes_[[0, len(model.nodes_) // 2, -1]]))


MODELS = [
    InfiniteQuantileRegressor(n_nodes=6),
    InfiniteExpectileRegressor(n_nodes=6),
    InfiniteSVR(n_nodes=6),
    InfiniteKernelRidge(n_nodes=6),
    InfiniteFunctionRegressor(),
    *(
        pytest.param(model, marks=pytest.mark.slow)  # the same problem, posed otherwise
        for model in (
            InfiniteQuantileRegressor(n_nodes=6, noncrossing=0.0, bias_kernel="constant"),
            JointQuantileRegressor(quantiles=[0.1, 0.5, 0.9]),
            IndependentQuantileRegressor(quantiles=[0.1, 0.5, 0.9]),
            InfiniteTaskEstimator("pinball", n_nodes=6),
        )
    ),
]


@pytest.mark.quick(every=2)
@pytest.mark.parametrize("model", MODELS, ids=lambda m: repr(m)[:60])
def test_predictions_follow_the_units_of_y(model: Any) -> None:
    X, y = sample()
    y = np.round(y * 2.0**20) / 2.0**20  # so that y + 1e6 holds all digits of y
    model.set_params(tol=1e-6)
    expected = answers(model, X, y)
    objective, power = model.objective_, model.recipe_.task.loss.degree
    assert np.ptp(expected) > 0.5
    for a in SCALES:
        for b in (0.0, 1e6 * a):
            found = answers(model, X, a * y + b)
            np.testing.assert_allclose((found - b) / a, expected, atol=1e-6, err_msg=f"{a}, {b}")
            assert model.objective_ == pytest.approx(a**power * objective, rel=1e-6)


def test_the_self_tuned_model_follows_the_units_of_y() -> None:
    X, y = sample(30)
    y = np.round(y * 2.0**20) / 2.0**20
    model = InfiniteQuantileRegressorCV(kernels=[RBF(gamma=0.3), RBF(gamma=3.0)], cv=2, n_nodes=6, random_state=0)
    levels = [0.1, 0.5, 0.9]
    expected = model.fit(X, y).predict(X, levels)
    for a, b in ((1e-6, 0.0), (1e6, 1e12), (1.0, 1e6)):
        found = model.fit(X, a * y + b).predict(X, levels)
        np.testing.assert_allclose((found - b) / a, expected, atol=1e-5)  # rounding decides where a fit to 1e-4 ends


@pytest.mark.parametrize("cls", [InfiniteQuantileRegressor, InfiniteExpectileRegressor])
def test_turning_y_around_turns_the_levels_around_with_all_defaults(cls: type[Any]) -> None:
    X, y = sample()
    levels = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
    up, down = cls(n_nodes=8, tol=1e-7).fit(X, y), cls(n_nodes=8, tol=1e-7).fit(X, -y)
    assert (up.alpha_, up.alpha_bias_) == (pytest.approx(down.alpha_), pytest.approx(down.alpha_bias_))
    np.testing.assert_allclose(down.predict(X, levels), -up.predict(X, 1.0 - levels), atol=2e-3)
    assert down.objective_ == pytest.approx(up.objective_, rel=3e-7)
