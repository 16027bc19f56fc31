"""Paths of regressions: each of their points is a regression that others can fit as well."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import r2_score
from sklearn.svm import SVR, LinearSVR

from infinitask import InfiniteKernelRidge, InfiniteSVR, InfiniteTaskEstimator
from infinitask.datasets import make_sine
from infinitask.measures import Discrete, ProductMeasure, Uniform

WIDTHS = [0.0, 0.1, 0.3, 0.6]
BETWEEN = np.linspace(-6.0, 1.0, 43)


def diabetes(n: int = 150) -> tuple[np.ndarray, np.ndarray]:
    X, y = load_diabetes(return_X_y=True)
    return X[:n] / X[:n].std(axis=0), (y[:n] - y[:n].mean()) / y[:n].std()


def some_weights(n: int) -> np.ndarray:
    weight = np.random.default_rng(0).gamma(1.0, size=n)
    weight[:5] = 0.0
    return weight


# ------------------------------------------------------------------------------------------------------- SVR
def test_without_coupling_every_width_is_the_support_vector_regression_of_scikit_learn() -> None:
    X, y = make_sine(60, random_state=0)
    new = np.linspace(X.min(), X.max(), 50)[:, None]
    model = InfiniteSVR(
        gamma=5.0,
        alpha=1e-3,
        alpha_bias=0.0,
        task_kernel="diagonal",
        bias_kernel="diagonal",
        measure=Discrete(WIDTHS, weights=[1, 2, 3, 4]),
        tol=1e-8,
    ).fit(X, y)
    total = 0.0
    for epsilon, w in zip(WIDTHS, model.weights_, strict=True):
        reference = SVR(gamma=5.0, epsilon=epsilon, C=w / (60 * 1e-3), tol=1e-8).fit(X, y)
        np.testing.assert_allclose(model.predict(new, epsilon), reference.predict(new), atol=1e-4)
        beta = reference.dual_coef_[0]
        support = reference.support_vectors_
        norm = beta @ np.exp(-5.0 * (support - support.T) ** 2) @ beta
        tube = np.maximum(np.abs(y - reference.predict(X)) - epsilon, 0.0)
        total += w * tube.mean() + 0.5 * 1e-3 * norm
        assert 10 < support.size <= 60
    assert model.objective_ == pytest.approx(total, rel=1e-6)


def test_a_support_vector_regression_without_bias_and_with_weights() -> None:
    X, y = make_sine(60, random_state=1)
    weight = some_weights(60)
    # liblinear solves the linear problem in features whose inner products are the kernel
    features = np.linalg.cholesky(np.exp(-5.0 * (X - X.T) ** 2) + 1e-11 * np.eye(60))
    model = InfiniteSVR(
        gamma=5.0, alpha=1e-3, task_kernel="diagonal", bias_kernel=None, measure=Discrete(WIDTHS), tol=1e-8
    ).fit(X, y, sample_weight=weight)
    for epsilon in WIDTHS:
        C = 0.25 / (weight.sum() * 1e-3)
        reference = LinearSVR(epsilon=epsilon, C=C, fit_intercept=False, tol=1e-9, max_iter=10**6, random_state=0)
        reference.fit(features, y, sample_weight=weight)
        np.testing.assert_allclose(model.predict(X, epsilon), reference.predict(features), atol=1e-5)


def test_a_tube_that_holds_everything_asks_for_nothing() -> None:
    X, y = make_sine(50, random_state=0)
    size = np.abs(y).max()
    model = InfiniteSVR(
        epsilon=2.0 * size, measure=Uniform(size, 3.0 * size), n_nodes=8, alpha=1e-3, alpha_bias=None
    ).fit(X, y)
    assert model.objective_ == pytest.approx(0.0, abs=1e-6 * size)
    np.testing.assert_allclose(model.predict(X), 0.0, atol=0.01 * size)


def test_the_general_estimator_with_that_loss_is_the_same() -> None:
    X, y = make_sine(50, random_state=0)
    params: dict[str, Any] = {"n_nodes": 10, "alpha": 1e-2}
    general = InfiniteTaskEstimator("epsilon-insensitive", **params).fit(X, y)
    model = InfiniteSVR(measure=(0.0, 1.0), **params).fit(X, y)
    assert np.array_equal(model.predict(X, WIDTHS), general.predict(X, WIDTHS))


# ----------------------------------------------------------------------------------------------- kernel ridge
@pytest.mark.quick(every=3)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("gamma", [0.02, 2.0])
def test_every_point_of_the_path_is_the_kernel_ridge_of_scikit_learn(gamma: float, weighted: bool) -> None:
    X, y = diabetes()
    new = load_diabetes(return_X_y=True)[0][150:200] / load_diabetes(return_X_y=True)[0][:150].std(axis=0)
    weight = some_weights(150) if weighted else None
    omega = np.full(150, 1.0 / 150) if weight is None else weight / weight.sum()
    path = InfiniteKernelRidge(gamma=gamma, centred=False).fit(X, y, sample_weight=weight)
    assert 0.0 <= path.dual_gap_ <= path.tol

    def refitted(log_alpha: float) -> KernelRidge:
        return KernelRidge(alpha=10.0**log_alpha, kernel="rbf", gamma=gamma).fit(X, y, sample_weight=omega)

    K = np.exp(-gamma * np.sum((X[:, None, :] - X[None, :, :]) ** 2, axis=2))
    total = 0.0
    for node, w in zip(path.nodes_, path.weights_, strict=True):
        reference = refitted(node)
        np.testing.assert_allclose(path.predict(new, node), reference.predict(new), atol=1e-6)
        beta = reference.dual_coef_
        total += w * (0.5 * omega @ (y - K @ beta) ** 2 + 0.5 * 10.0**node * beta @ K @ beta)
    assert path.objective_ == pytest.approx(total, rel=1e-6)

    distance = np.min(np.abs(BETWEEN[:, None] - path.nodes_), axis=1)
    assert np.max(distance) > 0.15  # far from all nodes, which are some 0.25 apart
    truth = np.column_stack([refitted(log_alpha).predict(X) for log_alpha in BETWEEN])
    assert np.ptp(truth, axis=1).max() > 0.5  # and the path is no constant
    np.testing.assert_allclose(path.predict(X, BETWEEN), truth, atol=2e-4)


def test_equal_weights_multiply_the_ridge_of_scikit_learn_by_n() -> None:
    X, y = diabetes(80)
    path = InfiniteKernelRidge(gamma=0.1, log_alpha=-2.0, centred=False).fit(X, y)
    reference = KernelRidge(alpha=80 * 10**-2.0, kernel="rbf", gamma=0.1).fit(X, y)
    np.testing.assert_allclose(path.predict(X), reference.predict(X), atol=2e-4)
    assert path.score(X, y) == pytest.approx(reference.score(X, y), abs=1e-3)


@pytest.mark.parametrize(
    "params",
    [
        {"n_nodes": 60},
        {"measure": (-10.0, 2.0), "n_nodes": 50},
        {"measure": (-2.0, -1.0), "n_nodes": 8},
        {"task_kernel": "rbf", "n_nodes": 25},
        {"quadrature": "clenshaw-curtis"},
        {"kernel": "linear"},
    ],
    ids=str,
)
def test_other_nodes_follow_the_path_as_well(params: dict[str, Any]) -> None:
    X, y = diabetes(100)
    kernel = params.get("kernel", "rbf")
    path = InfiniteKernelRidge(gamma=0.1, centred=False, **params).fit(X, y)
    low, high = path.measure_.support
    for log_alpha in np.linspace(low[0], high[0], 30):
        reference = KernelRidge(alpha=100 * 10.0**log_alpha, kernel=kernel, gamma=0.1).fit(X, y)
        np.testing.assert_allclose(path.predict(X, log_alpha), reference.predict(X), atol=1e-3)


def test_a_smaller_ridge_never_fits_worse() -> None:
    X, y = make_sine(80, random_state=0)
    path = InfiniteKernelRidge().fit(X, y)
    errors = np.mean((y[:, None] - path.predict(X, np.linspace(-6.0, 1.0, 200))) ** 2, axis=0)
    assert np.all(np.diff(errors) >= -1e-5)
    assert errors[-1] > 1.5 * errors[0]


def test_constant_targets_shrink_and_no_bias_holds_them() -> None:
    X, _ = make_sine(30, random_state=0)
    path = InfiniteKernelRidge(measure=(-6.0, 3.0), centred=False).fit(X, np.ones(30))
    ends = path.predict(X, [-6.0, 3.0])
    np.testing.assert_allclose(ends[:, 0], 1.0, atol=1e-3)
    assert np.all(np.abs(ends[:, 1]) < 2e-3)


def test_the_ridge_weight_is_the_task_and_no_parameter() -> None:
    names = InfiniteKernelRidge().get_params()
    assert not {"alpha", "alpha_bias", "bias_kernel"} & set(names)
    with pytest.raises(TypeError, match="alpha"):
        InfiniteKernelRidge(alpha=1.0)  # type: ignore[call-arg]


@pytest.mark.parametrize("cls", [InfiniteSVR, InfiniteKernelRidge])
def test_the_score_is_r_squared_of_the_default(cls: type[Any]) -> None:
    X, y = make_sine(60, random_state=0)
    model = cls(n_nodes=10).fit(X, y)
    assert model.score(X, y) == r2_score(y, model.predict(X))
    assert model.score(X, y) > 0.5


# --------------------------------------------------------------------------------------------------- sentences
@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (InfiniteSVR(epsilon=-0.1), "epsilon=-0.1 was given"),
        (InfiniteSVR(epsilon=[0.1, 0.2]), r"epsilon=\[0.1, 0.2\] was given"),
        (InfiniteSVR(measure=(-1.0, 1.0)), "EpsilonInsensitive is defined for"),
        (InfiniteKernelRidge(log_alpha="small"), "log_alpha='small' was given"),
        (InfiniteKernelRidge(log_alpha=np.nan), "log_alpha=nan was given"),
        (InfiniteKernelRidge(measure=(-400.0, 0.0)), "between −30 and 30"),
        (InfiniteKernelRidge(measure=ProductMeasure([Uniform(), Uniform()])), "in 2 dimensions"),
    ],
    ids=repr,
)
def test_wrong_values_are_refused(model: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        model.fit(*make_sine(20, random_state=0))
