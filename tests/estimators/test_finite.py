"""The finite relatives: a few tasks, named before training. Their optima are judged in test_judges.py."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from infinitask import (
    IndependentCostSensitiveClassifier,
    IndependentQuantileRegressor,
    InfiniteQuantileRegressor,
    JointQuantileRegressor,
    QOneClassSVM,
)
from infinitask.datasets import make_sine
from infinitask.measures import Discrete
from tests.support.scikit_learn_checks import run_checks

QUANTILES: list[type[Any]] = [JointQuantileRegressor, IndependentQuantileRegressor]
FINITE: list[type[Any]] = [*QUANTILES, IndependentCostSensitiveClassifier, QOneClassSVM]


def sample(n: int = 47, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, np.sin(2.0 * X[:, 0]) + 0.3 * (1.0 + X[:, 1] ** 2) * rng.normal(size=n)


def fit(cls: type[Any], X: np.ndarray, y: np.ndarray, sample_weight: Any = None, **params: Any) -> Any:
    if cls is IndependentCostSensitiveClassifier:
        y, params = np.where(y > 0.2, "yes", "no"), {"thetas": (-0.5, 0.0, 0.5)} | params
    return cls(**params).fit(X, y, sample_weight=sample_weight)


def values(model: Any, X: np.ndarray) -> np.ndarray:
    """The answers of a model at all of its tasks."""
    return getattr(model, "decision_function", model.predict)(X, model.nodes_)


def _expected_failures(estimator: Any) -> dict[str, str]:
    if type(estimator) in QUANTILES:
        reason = "without a level asked for, predict answers all of them: (n, q)"
        about_shapes = ("check_regressors_train", "check_estimator_sparse_array", "check_estimator_sparse_matrix")
        return dict.fromkeys(about_shapes, reason)
    return {}


@pytest.mark.parametrize(
    "estimator",
    [
        JointQuantileRegressor(quantiles=[0.2, 0.5, 0.8], tol=1e-2),
        pytest.param(QOneClassSVM(nus=[0.2, 0.6]), marks=pytest.mark.slow),
    ],
)
def test_scikit_learn_accepts_it(estimator: Any) -> None:
    run_checks(estimator, _expected_failures(estimator))


@pytest.mark.slow  # one fit for each task
@pytest.mark.parametrize(
    "estimator",
    [
        IndependentQuantileRegressor(quantiles=[0.25, 0.75]),
        IndependentCostSensitiveClassifier(thetas=[-0.5, 0.0], calibrated=False),
    ],
)
def test_scikit_learn_accepts_independent_fits(estimator: Any) -> None:
    run_checks(estimator, _expected_failures(estimator))


@pytest.mark.quick(every=2)
@pytest.mark.parametrize("cls", FINITE)
def test_clones_and_pickles_answer_alike(cls: type[Any]) -> None:
    X, y = sample()
    model = fit(cls, X, y)
    assert model.dual_gap_ <= model.tol
    assert np.array_equal(values(pickle.loads(pickle.dumps(model)), X), values(model, X))
    again = fit(cls, X, y, **clone(model).get_params())
    assert np.array_equal(values(again, X), values(model, X))


@pytest.mark.quick(every=2)
@pytest.mark.parametrize("cls", FINITE)
def test_a_weight_of_two_is_a_row_repeated(cls: type[Any]) -> None:
    X, y = sample()
    weight = np.where(np.arange(len(y)) % 3 == 0, 2.0, 1.0)
    rows = np.repeat(np.arange(len(y)), weight.astype(int))
    assert np.array_equal(values(fit(cls, X, y, weight), X), values(fit(cls, X[rows], y[rows]), X))


@pytest.mark.parametrize("cls", FINITE)
def test_between_the_tasks_nothing_is_known(cls: type[Any]) -> None:
    X, y = sample()
    model = fit(cls, X, y)
    between = 0.5 * (model.nodes_[1] + model.nodes_[2])
    with pytest.raises(ValueError, match="the model knows"):
        model.predict(X, between)


@pytest.mark.parametrize(
    ("cls", "params", "sentence"),
    [
        (JointQuantileRegressor, {"quantiles": [0.5, 0.5]}, "quantiles=.*distinct"),
        (JointQuantileRegressor, {"quantiles": "many"}, "quantiles='many'.*numbers"),
        (IndependentQuantileRegressor, {"quantiles": [0.5, 1.5]}, r"quantiles contains 1\.5, outside \(0, 1\)"),
        (IndependentCostSensitiveClassifier, {"thetas": [-2.0, 0.0]}, r"thetas contains -2, outside \[-1, 1\]"),
        (QOneClassSVM, {"nus": [0.0, 0.5]}, r"nus contains 0, outside \(0, 1\]"),
    ],
)
def test_tasks_that_are_none_are_refused(cls: type[Any], params: dict[str, Any], sentence: str) -> None:
    X, y = sample()
    with pytest.raises(ValueError, match=sentence):
        fit(cls, X, y, **params)


@pytest.mark.parametrize("cls", QUANTILES)
def test_every_level_leaves_its_share_below(cls: type[Any]) -> None:
    X, y = sample(101)
    model = cls(tol=1e-8).fit(X, y + 500.0)
    below = np.mean(y[:, None] + 500.0 < model.predict(X) - 1e-5, axis=0)
    reached = np.mean(y[:, None] + 500.0 <= model.predict(X) + 1e-5, axis=0)
    assert np.all(below <= model.nodes_)
    assert np.all(reached >= model.nodes_)


def test_one_level_alone_is_the_same_by_all_names() -> None:
    X, y = sample()
    settings = {"gamma": 0.5, "alpha": 1e-2, "tol": 1e-9}
    infinite = InfiniteQuantileRegressor(
        measure=Discrete([0.3]),
        quadrature="discrete",
        noncrossing=0.0,
        alpha_bias=0.0,
        bias_kernel="diagonal",
        **settings,
    ).fit(X, y)
    for cls in QUANTILES:
        alone = cls(quantiles=[0.3], **settings).fit(X, y)
        assert alone.objective_ == pytest.approx(infinite.objective_, rel=1e-8)
        np.testing.assert_allclose(alone.predict(X, 0.3), infinite.predict(X, 0.3), atol=1e-4)


def test_levels_learnt_together_differ_from_levels_learnt_alone() -> None:
    X, y = sample()
    joint, alone = (cls(alpha=1e-4).fit(X, y).predict(X) for cls in QUANTILES)
    crossings = [float(np.mean(np.diff(found, axis=1) < 0.0)) for found in (joint, alone)]
    assert crossings[0] < crossings[1]


def test_intervals_and_distributions_come_from_the_levels() -> None:
    X, y = sample(200)
    model = JointQuantileRegressor(quantiles=[0.1, 0.5, 0.9]).fit(X[:100], y[:100])
    assert np.array_equal(model.predict_interval(X, coverage=0.8), model.predict(X, [0.1, 0.9]))
    law = model.predict_distribution(X)
    np.testing.assert_allclose(law.ppf(0.5), np.sort(model.predict(X), axis=1)[:, 1])
    held = model.conformalize(X[100:], y[100:]).predict_interval(X, coverage=0.9)
    assert np.all(held[:, 0] < held[:, 1])


def test_without_a_task_one_that_was_learnt_is_answered() -> None:
    X, y = sample()
    labels = y > 0.2
    classifier = IndependentCostSensitiveClassifier(thetas=[-0.9, 0.4]).fit(X, labels)
    assert np.array_equal(classifier.predict(X), classifier.predict(X, 0.4))
    assert np.array_equal(classifier.decision_function(X) > 0.0, classifier.predict(X))
    detector = QOneClassSVM(nus=[0.2, 0.5]).fit(X)
    assert np.array_equal(detector.predict(X), detector.predict(X, 0.2))
    assert detector.offset_ == 0.2
    assert detector.score_samples(X).shape == (len(X),)


def test_levels_may_be_an_array() -> None:
    X, y = make_sine(30, random_state=0)
    model = JointQuantileRegressor(quantiles=np.array([0.1, 0.5, 0.9])).fit(X, y)
    assert model.predict(X).shape == (30, 3)


@pytest.mark.parametrize("cls", [JointQuantileRegressor, IndependentQuantileRegressor])
def test_a_level_that_is_rounded_is_that_level(cls: type[Any]) -> None:
    """0.1 + 0.2 is not 0.3 to the last bit, and tasks without a coupling are told apart by every bit."""
    X, y = make_sine(40, random_state=0)
    model = cls(quantiles=[0.1, 0.3, 0.9], tol=1e-2).fit(X, y)
    assert 0.1 + 0.2 != 0.3
    np.testing.assert_array_equal(model.predict(X, [0.1 + 0.2, 0.9]), model.predict(X, [0.3, 0.9]))
