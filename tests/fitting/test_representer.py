"""The solution written as the representer theorem writes it is the same function."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from infinitask import (
    InfiniteCostSensitiveClassifier,
    InfiniteExpectileRegressor,
    InfiniteKernelRidge,
    InfiniteOneClassSVM,
    InfiniteQuantileRegressor,
    InfiniteTaskEstimator,
    JointQuantileRegressor,
)
from infinitask.fitting import Representer, representer_coefficients
from infinitask.kernels import RBF

Floats = np.ndarray[Any, Any]


def sample(n: int = 40, seed: int = 0) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, size=(n, 2))
    return X, np.sin(3.0 * X[:, 0]) + 0.3 * (1.5 + X[:, 1]) * rng.normal(size=n)


X, Y = sample()
NEW = np.random.default_rng(1).uniform(-1.2, 1.2, size=(15, 2))
LIKELY: dict[str, Any] = {"gamma": 2.0, "alpha": 1e-3, "n_nodes": 9}
MODELS: dict[str, Any] = {
    "quantiles": InfiniteQuantileRegressor(**LIKELY),
    "quantiles without a penalty on the derivative": InfiniteQuantileRegressor(noncrossing=0.0, **LIKELY),
    "quantiles without a bias": InfiniteQuantileRegressor(bias_kernel=None, **LIKELY),
    "quantiles with a free bias": InfiniteQuantileRegressor(alpha_bias=0.0, **LIKELY),
    "quantiles with another kernel of the bias": InfiniteQuantileRegressor(bias_kernel="polynomial", **LIKELY),
    "quantiles in order": InfiniteQuantileRegressor(noncrossing="hard", **LIKELY),
    "quantiles that look elsewhere": InfiniteQuantileRegressor(noncrossing_inputs=NEW, **LIKELY),
    "expectiles": InfiniteExpectileRegressor(noncrossing=0.1, noncrossing_loss="squared", **LIKELY),
    "both ridges": InfiniteTaskEstimator("pinball", penalty="both", noncrossing=0.1, **LIKELY),
    "integrated ridge": InfiniteTaskEstimator("squared", penalty="integrated", measure=(0.0, 1.0), **LIKELY),
    "a rough kernel": InfiniteQuantileRegressor(kernel="laplacian", task_kernel="matern32", **LIKELY),
    "joint quantiles": JointQuantileRegressor(gamma=2.0, alpha=1e-3),
}


def tasks_of(model: Any) -> Floats:
    """The nodes and, unless the model knows nothing else, tasks between them."""
    nodes = np.asarray(model.nodes_)
    return nodes if model.field_.knows_nodes_only else np.concatenate([nodes, 0.5 * (nodes[1:] + nodes[:-1])])


@pytest.mark.quick(every=3)
@pytest.mark.parametrize("name", MODELS)
def test_the_representer_is_the_learnt_function(name: str) -> None:
    model = MODELS[name].fit(X, Y)
    found = representer_coefficients(model, X)
    theta = tasks_of(model)
    scale = float(np.max(np.abs(model.field_(X, theta))))
    np.testing.assert_allclose(found(NEW, theta), model.field_(NEW, theta), atol=1e-8 * scale)
    assert found.error <= 1e-8 * scale
    assert found.alpha.shape == (len(found.inputs), len(found.nodes))
    assert (found.beta is None) == (len(model.recipe_.task.derivatives) == 1)


def test_the_norm_is_the_quadratic_form_of_the_coefficients() -> None:
    """‖h‖² = Σ k_X(x_i, x_k) (α_ij, β_ij) G_jl (α_kl, β_kl)ᵀ, G the Gram matrix of k_Θ(·, θ_j) and ∂₂k_Θ(·, θ_j)."""
    model = InfiniteQuantileRegressor(gamma=2.0, alpha=1e-2, n_nodes=6, bias_kernel=None, tol=1e-8).fit(X, Y)
    found = representer_coefficients(model, X)
    assert found.beta is not None
    assert np.max(np.abs(found.beta)) > 1e-3 * np.max(np.abs(found.alpha)), "or the derivatives would not be tested"
    coefficients = np.hstack([found.alpha, found.beta])
    blocks = [[found.task_kernel(found.nodes, found.nodes, orders=(i, j)) for j in (0, 1)] for i in (0, 1)]
    G, K = np.block(blocks), model.kernel_(found.inputs, found.inputs)
    squared = np.sum((K @ coefficients @ G) * coefficients)
    assert np.sqrt(squared) == pytest.approx(model.field_.norm, rel=1e-6)


def test_other_tasks_have_coefficients_too() -> None:
    labels = np.where(Y > 0.0, 1, 0)
    for model in (
        InfiniteCostSensitiveClassifier(**LIKELY).fit(X, labels),
        InfiniteOneClassSVM(gamma=2.0, n_nodes=9).fit(X),
        InfiniteKernelRidge(gamma=2.0, n_nodes=9).fit(X, Y),
    ):
        found, theta = representer_coefficients(model, X), tasks_of(model)
        scale = float(np.max(np.abs(model.field_(X, theta))))
        np.testing.assert_allclose(found(NEW, theta), model.field_(NEW, theta), atol=1e-5 * scale)
        assert found.beta is None


def test_unique_coefficients_are_the_dual_variables() -> None:
    """With narrow kernels nothing depends on anything else: α = ω w u/λ with u in the interval of the loss."""
    options = {"gamma": 400.0, "task_gamma": 60.0, "alpha": 0.02, "n_nodes": 5, "bias_kernel": None, "tol": 1e-9}
    model = InfiniteQuantileRegressor(noncrossing=0.5, **options).fit(X, Y)
    found = representer_coefficients(model, X)
    scale = model.weights_ / (len(X) * 0.02)
    u, v = found.alpha / scale, found.beta / scale
    assert np.all((u >= model.nodes_ - 1.0 - 1e-3) & (u <= model.nodes_ + 1e-3))
    assert np.all((v >= -1e-3) & (v <= 0.5 + 1e-3))
    assert np.mean(np.abs(v) > 1e-2) > 0.01, "a penalty that is felt, or β would not be tested"
    r = Y[:, None] - model.field_(X, model.nodes_)
    beyond = np.abs(r) > 1e-3  # off the kink the slope is an end of the interval
    ends = np.where(r > 0.0, model.nodes_, model.nodes_ - 1.0)
    np.testing.assert_allclose(u[beyond], ends[beyond], atol=1e-3)


class Steps:
    """A bias that is a number on each half of Θ: no function of an RKHS."""

    diagonal = False

    def __call__(self, theta: Any, order: int = 0) -> Floats:
        low = np.reshape(theta, -1) < 0.5
        return np.column_stack([low, ~low]) * (1.0 if order == 0 else 0.0)


def test_a_bias_without_a_kernel_stays_a_function() -> None:
    model = copy(MODELS["quantiles"].fit(X, Y))
    model.field_ = replace(model.field_, bias_psi=Steps(), bias_coef=np.array([-1.0, 2.0]), offset=5.0)
    found = representer_coefficients(model, X)
    theta = [0.1, 0.9]
    np.testing.assert_allclose(found(NEW, theta), model.field_(NEW, theta), atol=1e-8)
    assert found.bias_alpha is None


def test_equal_rows_share_their_coefficients() -> None:
    model = MODELS["quantiles"].fit(X, Y)
    once, twice = representer_coefficients(model, X), representer_coefficients(model, np.vstack([X, X]))
    np.testing.assert_allclose(twice.alpha[: len(X)], twice.alpha[len(X) :], atol=1e-9 * np.max(np.abs(once.alpha)))
    np.testing.assert_allclose(twice(NEW, [0.3]), once(NEW, [0.3]), atol=1e-5)


def test_a_gram_matrix_takes_the_place_of_inputs() -> None:
    gram, rows = RBF(2.0)(X, X), RBF(2.0)(NEW, X)
    model = InfiniteQuantileRegressor(kernel="precomputed", alpha=1e-3, n_nodes=9).fit(gram, Y)
    found = representer_coefficients(model, gram)
    np.testing.assert_allclose(found(rows, [0.2, 0.7]), model.predict(rows, [0.2, 0.7]), atol=1e-5)


def test_models_without_representer_coefficients_are_refused() -> None:
    model = InfiniteQuantileRegressor(features="fourier", rank=20, **LIKELY).fit(X, Y)
    with pytest.raises(ValueError, match="kind FourierMap, which are no sums"):
        representer_coefficients(model, X)
    model = InfiniteQuantileRegressor(features="nystroem", rank=5, random_state=0, **LIKELY).fit(X, Y)
    with pytest.raises(ValueError, match="the features are not exact"):
        representer_coefficients(model, X)
    model = InfiniteQuantileRegressor(**LIKELY).fit(X, Y)
    with pytest.raises(ValueError, match="these are not the training inputs"):
        representer_coefficients(model, 5.0 * X)
    with pytest.raises(ValueError, match=r"X of shape \(40, 1\) was given; the model was fitted to 2 features"):
        representer_coefficients(model, X[:, :1])
    with pytest.raises(TypeError, match="takes a fitted estimator"):
        representer_coefficients(InfiniteQuantileRegressor(), X)


def test_a_part_of_the_inputs_is_refused() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    model = InfiniteQuantileRegressor(n_nodes=8).fit(X, np.sin(2.0 * X[:, 0]))
    with pytest.raises(ValueError, match=r"The 40 inputs given cannot express .*% of the model"):
        representer_coefficients(model, X[:40])


def test_the_result_is_a_value() -> None:
    found = representer_coefficients(MODELS["quantiles"].fit(X, Y), X)
    assert isinstance(found, Representer)
    with pytest.raises(AttributeError):
        found.alpha = None  # type: ignore[misc, assignment]
