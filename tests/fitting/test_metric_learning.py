"""Metrics learnt from the gradients of quick fits."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from scipy.stats import ortho_group
from sklearn.base import clone

from infinitask import (
    InfiniteCostSensitiveClassifier,
    InfiniteExpectileRegressor,
    InfiniteFunctionRegressor,
    InfiniteKernelRidge,
    InfiniteOneClassSVM,
    InfiniteQuantileRegressor,
    InfiniteSVR,
    fit_path,
    score_path,
)
from infinitask._base.arrays import HostArray
from infinitask.fitting import Data
from infinitask.fitting import _metric_learning as feature_learning
from infinitask.fitting._defaults import resolved, spreads
from infinitask.fitting._metric_learning import learnt_metric, learnt_metrics, leave_one_out_error
from infinitask.kernels import RBF, Additive, LearntMetric, Linear, Matern, Metric, Scaled, Sum, Warped

RECIPE = InfiniteQuantileRegressor().recipe()


def rows(n: int = 150, d: int = 6, seed: int = 0) -> tuple[HostArray, HostArray]:
    """Two inputs matter, and only together; all have a covariance of one, so that no direction has another spread."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X = (X - X.mean(axis=0)) @ np.linalg.inv(np.linalg.cholesky(np.cov(X.T, bias=True)).T)
    return X, np.sin(2.0 * X[:, 0]) * X[:, 1] + 0.1 * rng.normal(size=n)


def shares(kernel: Any, X: HostArray) -> HostArray:
    """The part of the metric on each input, in units of its spread."""
    root = np.diag(kernel.scales) if isinstance(kernel, Scaled) else kernel.root
    squares = np.sum((root / np.asarray(spreads(X))[:, None]) ** 2, axis=1)
    return np.asarray(squares / np.sum(squares))


@pytest.mark.quick(every=4)
@pytest.mark.parametrize("diagonal", [True, False])
@pytest.mark.parametrize("inner", [None, Matern(0.5), Matern(2.5)], ids=repr)
def test_irrelevant_features_get_little_weight(inner: Any, diagonal: bool) -> None:
    X, y = rows(200)
    kernel = learnt_metric(RECIPE, Data.canonical(X, y), LearntMetric(inner, diagonal=diagonal))
    assert isinstance(kernel, Scaled if diagonal else Metric)
    found = shares(kernel, X)
    assert np.sum(found[:2]) > 0.75
    assert np.min(found[:2]) > 2.0 * np.max(found[2:])


@pytest.mark.quick("True")
@pytest.mark.parametrize("diagonal", [True, False])
def test_units_of_features_and_targets_make_no_difference(diagonal: bool) -> None:
    X, y = rows()
    units = np.array([1.0, 1e3, 1e-2, 1.0, 5.0, 1.0])
    spec = LearntMetric(diagonal=diagonal)
    plain = learnt_metric(RECIPE, Data.canonical(X, y), spec)
    other = learnt_metric(RECIPE, Data.canonical(X * units, 100.0 - 7.0 * (10.0 - y)), spec)
    np.testing.assert_allclose(other(X * units, X * units), plain(X, X), atol=2e-2)


def test_a_whole_metric_rotates_with_the_features() -> None:
    X, y = rows()
    Q = ortho_group.rvs(6, random_state=0)
    spec = LearntMetric(Matern(1.5), diagonal=False)
    plain = learnt_metric(RECIPE, Data.canonical(X, y), spec)
    turned = learnt_metric(RECIPE, Data.canonical(X @ Q, y), spec)
    np.testing.assert_allclose(turned(X @ Q, X @ Q), plain(X, X), atol=2e-2)
    # and finds a direction that no input has by itself
    found = turned.root @ turned.root.T
    along = Q.T[:, :2]
    assert np.trace(along.T @ found @ along) > 0.6 * np.trace(found)


def test_full_shrinkage_is_the_plain_metric_and_shrinkage_falls_with_rows() -> None:
    X, y = rows()
    scales = learnt_metric(RECIPE, Data.canonical(X, y), LearntMetric(shrinkage=1.0)).scales
    np.testing.assert_allclose(np.asarray(scales) / spreads(X), 6.0**-0.5)
    first, *_ = learnt_metrics(RECIPE, Data.canonical(X, y), LearntMetric())
    np.testing.assert_allclose(first.scales, scales)
    few, many = (feature_learning._shrinkage(None, n, 6) for n in (30.0, 3000.0))
    assert 1.0 > few > 0.05 > 0.002 > many > 0.0


def test_the_metric_with_the_smallest_leave_one_out_error_is_taken() -> None:
    # an input that tells equal rows apart: a rough kernel learns noise along it, more with every iteration
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 2, size=(300, 4)).astype(float)
    X = np.column_stack([rng.normal(size=300), groups])
    y = groups @ [8.0, 4.0, 2.0, 1.0] + rng.normal(size=300)
    data = Data.canonical(X, y)
    spec = LearntMetric(Matern(0.5), iterations=3)
    errors = [leave_one_out_error(kernel, data) for kernel in learnt_metrics(RECIPE, data, spec)]
    assert leave_one_out_error(learnt_metric(RECIPE, data, spec), data) == min(errors) < errors[-1]


def test_features_that_a_first_fit_would_miss_are_found() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(350, 20))
    y = np.sin(2.0 * X[:, 0]) * X[:, 1] + 0.1 * rng.normal(size=350)
    found = shares(learnt_metric(RECIPE, Data.canonical(X, y), LearntMetric()), X)
    assert np.sum(found[:2]) > 0.8


def test_a_constant_feature_is_ignored() -> None:
    X, y = rows()
    constant = np.column_stack([X[:, :2], np.full(150, 7.0), X[:, 2:]])
    for spec in (LearntMetric(), LearntMetric(diagonal=False)):
        found = learnt_metric(RECIPE, Data.canonical(constant, y), spec)
        expected = learnt_metric(RECIPE, Data.canonical(X, y), spec)
        np.testing.assert_allclose(found(constant, constant), expected(X, X), atol=1e-6)
    nothing = learnt_metric(RECIPE, Data.canonical(np.ones((9, 2)), np.arange(9.0)), LearntMetric())
    np.testing.assert_array_equal(nothing(X[:4, :2], X[:4, :2]), 1.0)


def test_targets_that_do_not_vary_leave_the_plain_metric() -> None:
    X, _ = rows()
    found = learnt_metric(RECIPE, Data.canonical(X, np.zeros(150)), LearntMetric())
    assert np.all(np.isfinite(found.scales))


@pytest.mark.quick(every=3)
@pytest.mark.parametrize(
    "estimator",
    [
        InfiniteQuantileRegressor(n_nodes=10),
        InfiniteQuantileRegressor(n_nodes=10, alpha=1e-3, noncrossing="hard", tol=1e-2),
        InfiniteQuantileRegressor(n_nodes=10, features="fourier", rank=100, alpha=1e-3, random_state=0),
        InfiniteExpectileRegressor(n_nodes=10),
        InfiniteSVR(n_nodes=10),
        InfiniteFunctionRegressor(),
        InfiniteKernelRidge(n_nodes=10),
        InfiniteCostSensitiveClassifier(n_nodes=10),
        InfiniteCostSensitiveClassifier(n_nodes=10, alpha=1e-2),
    ],
    ids=repr,
)
def test_every_model_with_targets_takes_it_and_is_certified(estimator: Any) -> None:
    X, y = rows()
    y = np.where(y > 0.0, 1.0, -1.0) if isinstance(estimator, InfiniteCostSensitiveClassifier) else y
    fitted = clone(estimator).set_params(kernel=LearntMetric()).fit(X, y)
    assert fitted.dual_gap_ <= fitted.tol
    assert isinstance(fitted.kernel_, Scaled)
    assert np.sum(shares(fitted.kernel_, X)[:2]) > 0.5
    # the kernel alone gives the same model
    again = clone(estimator).set_params(kernel=fitted.kernel_).fit(X, y)
    np.testing.assert_allclose(again.predict(X), fitted.predict(X), atol=1e-6)
    saved = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(saved.predict(X), fitted.predict(X))


def test_it_may_be_a_part_of_a_kernel() -> None:
    X, y = rows()
    found = InfiniteQuantileRegressor(kernel=LearntMetric() + Linear(), n_nodes=10).fit(X, y).kernel_
    assert isinstance(found, Sum)
    alone = learnt_metric(RECIPE, Data.canonical(X, y), LearntMetric())
    np.testing.assert_allclose(found.left(X, X), alone(X, X))
    skewed = np.exp(X)
    found = InfiniteQuantileRegressor(kernel=Warped(LearntMetric()), n_nodes=10).fit(skewed, y).kernel_
    assert isinstance(found, Warped)
    assert isinstance(found.kernel, Scaled)
    assert set(np.argsort(found.kernel.scales)[-2:]) == {0, 1}


def test_a_bandwidth_that_is_given_is_kept() -> None:
    X, y = rows()
    found = learnt_metric(RECIPE, Data.canonical(X, y), LearntMetric(RBF(gamma=0.7)))
    assert found.kernel.gamma == 0.7


def test_a_path_learns_once_and_a_fold_learns_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = rows()
    seen: list[int] = []
    plain = feature_learning.learnt_metric

    def counted(recipe: Any, data: Any, spec: Any) -> Any:
        seen.append(data.weight.size)
        return plain(recipe, data, spec)

    monkeypatch.setattr(feature_learning, "learnt_metric", counted)
    model = InfiniteQuantileRegressor(kernel=LearntMetric(iterations=1), n_nodes=8, tol=1e-2)
    first, second = fit_path(model, X, y, alphas=[1e-2, 1e-3])
    assert first.kernel_.scales == second.kernel_.scales
    assert seen == [150]
    seen.clear()
    score_path(model, X, y, alphas=[1e-2, 1e-3], cv=3)
    assert seen == [100, 100, 100]


def test_models_without_targets_refuse_a_learnt_metric() -> None:
    X, y = rows()
    with pytest.raises(ValueError, match="learnt from targets"):
        InfiniteOneClassSVM(kernel=LearntMetric()).fit(X)
    with pytest.raises(TypeError, match="learns from targets"):
        LearntMetric().resolve(X)
    with pytest.raises(TypeError, match="Additive was given a LearntMetric"):
        InfiniteQuantileRegressor(kernel=Additive(LearntMetric())).fit(X, y)
    with pytest.raises(TypeError, match="learns from targets"):
        resolved(InfiniteQuantileRegressor(kernel=LearntMetric()).recipe(), Data.canonical(X, y))


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"iterations": 0}, "iterations"),
        ({"shrinkage": 1.5}, "shrinkage"),
        ({"kernel": "rbf"}, "kernel='rbf'"),
    ],
)
def test_wrong_parameters(parameters: dict[str, Any], sentence: str) -> None:
    X, y = rows()
    with pytest.raises((ValueError, TypeError), match=sentence):
        InfiniteQuantileRegressor(kernel=LearntMetric(**parameters)).fit(X, y)


def test_a_device_learns_the_same() -> None:
    pytest.importorskip("torch")
    X, y = rows()
    found = InfiniteQuantileRegressor(kernel=LearntMetric(), n_nodes=10, device="cpu").fit(X, y)
    expected = InfiniteQuantileRegressor(kernel=LearntMetric(), n_nodes=10).fit(X, y)
    np.testing.assert_allclose(found.kernel_(X, X), expected.kernel_(X, X), atol=2e-2)
