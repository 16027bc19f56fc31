"""Infinite cost-sensitive classification: labels, costs, and the trade-off between the two errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from infinitask import InfiniteCostSensitiveClassifier
from infinitask.kernels import Gaussian
from infinitask.measures import Discrete, Uniform


@pytest.fixture(scope="module")
def moons() -> tuple[np.ndarray, np.ndarray]:
    return make_moons(100, noise=0.3, random_state=0)


@pytest.fixture(scope="module")
def model(moons: tuple[np.ndarray, np.ndarray]) -> InfiniteCostSensitiveClassifier:
    return InfiniteCostSensitiveClassifier(n_nodes=12, alpha=1e-2).fit(*moons)


@pytest.mark.parametrize(
    "labels", [("no", "yes"), (False, True), (-5, 7), (0, 1), (1, 2), (-1.0, 1.0), ("a", "b")], ids=str
)
def test_any_two_labels(labels: tuple[Any, Any], moons: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = moons
    reference = InfiniteCostSensitiveClassifier(n_nodes=6).fit(X, y)
    named = np.asarray(labels)[y]
    model = InfiniteCostSensitiveClassifier(n_nodes=6).fit(X, named)
    assert model.classes_.tolist() == list(labels)
    assert np.array_equal(model.decision_function(X), reference.decision_function(X))
    predicted = model.predict(X)
    assert predicted.dtype == named.dtype
    assert np.array_equal(predicted == labels[1], reference.predict(X) == 1)
    assert model.score(X, named) == reference.score(X, y) > 0.8


def test_lists_of_labels(moons: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = moons
    model = InfiniteCostSensitiveClassifier(n_nodes=6).fit(X.tolist(), ["ham" if label else "eggs" for label in y])
    assert set(model.predict(X.tolist())) == {"ham", "eggs"}


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        (np.ones(100), "1 class"),
        (np.arange(100) % 3, "Only binary classification"),
        (np.linspace(0.0, 1.0, 100), "continuous"),
    ],
)
def test_targets_that_are_not_two_classes(
    target: np.ndarray, sentence: str, moons: tuple[np.ndarray, np.ndarray]
) -> None:
    with pytest.raises(ValueError, match=sentence):
        InfiniteCostSensitiveClassifier().fit(moons[0], target)


def test_a_class_may_not_vanish_by_its_weights(moons: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = moons
    with pytest.raises(ValueError, match="positive weight"):
        InfiniteCostSensitiveClassifier().fit(X, y, sample_weight=y)


def test_a_third_class_of_weight_zero_is_still_a_third_class(moons: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = moons
    three = np.where(np.arange(100) < 5, 2, y)
    with pytest.raises(ValueError, match="OneVsRestClassifier"):
        InfiniteCostSensitiveClassifier().fit(X, three, sample_weight=(three < 2).astype(float))


def test_more_classes_one_against_the_rest() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 20)
    X = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]])[y] + 0.5 * rng.normal(size=(60, 2))
    assert OneVsRestClassifier(InfiniteCostSensitiveClassifier(n_nodes=6)).fit(X, y).score(X, y) > 0.95


def test_exchanging_the_classes_exchanges_the_costs(moons: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = moons
    theta = np.array([-0.8, 0.0, 0.5])
    one, other = (
        InfiniteCostSensitiveClassifier(n_nodes=8, alpha=0.02, tol=1e-8).fit(X, target) for target in (y, 1 - y)
    )
    assert abs(one.objective_ - other.objective_) <= 3e-8 * one.objective_
    np.testing.assert_allclose(other.decision_function(X, theta), -one.decision_function(X, -theta), atol=2e-3)


def test_theta_trades_one_error_for_the_other(
    model: InfiniteCostSensitiveClassifier, moons: tuple[np.ndarray, np.ndarray]
) -> None:
    X, y = moons
    theta = [-0.9, -0.4, 0.0, 0.4, 0.9]
    alarms = model.predict(X, theta) == 1
    missed = np.mean(~alarms[y == 1], axis=0)
    false = np.mean(alarms[y == 0], axis=0)
    assert np.all(np.diff(missed) <= 0.0)
    assert np.all(np.diff(false) >= 0.0)
    assert missed[0] > missed[-1]
    assert false[0] < false[-1]


def test_predict_is_the_sign_of_the_decision(
    model: InfiniteCostSensitiveClassifier, moons: tuple[np.ndarray, np.ndarray]
) -> None:
    X, _ = moons
    theta = [-0.5, 0.5]
    assert np.array_equal(model.predict(X, theta), (model.decision_function(X, theta) > 0.0).astype(int))
    assert np.array_equal(model.predict(X), model.predict(X, 0.0))
    assert model.predict(X).shape == (100,)


def test_the_constructor_says_what_predict_answers(moons: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = moons
    model = InfiniteCostSensitiveClassifier(theta=[-0.5, 0.5], n_nodes=6).fit(X, y)
    assert np.array_equal(model.predict(X), model.predict(X, [-0.5, 0.5]))
    assert np.array_equal(model.decision_function(X), model.decision_function(X, theta=[-0.5, 0.5]))


def test_the_domain_is_closed(model: InfiniteCostSensitiveClassifier, moons: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = moons
    assert np.all(np.isfinite(model.decision_function(X, [-1.0, 1.0])))
    for wrong in (-1.01, 1.01):
        with pytest.raises(ValueError, match=r"outside Θ = \[-1, 1\]"):
            model.predict(X, wrong)
    with pytest.raises(ValueError, match="CostSensitiveHinge is defined for θ in"):
        InfiniteCostSensitiveClassifier(measure=(-2.0, 0.0)).fit(X, y)


def test_some_costs_only(moons: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = moons
    part = InfiniteCostSensitiveClassifier(measure=Uniform(0.2, 0.6), theta=0.4, n_nodes=6).fit(X, y)
    assert part.predict(X).shape == (100,)
    with pytest.raises(ValueError, match="outside"):
        part.predict(X, 0.0)
    points = InfiniteCostSensitiveClassifier(measure=Discrete([-0.5, 0.0, 0.5]), task_kernel="diagonal").fit(X, y)
    assert points.predict(X, [-0.5, 0.5]).shape == (100, 2)


def test_separable_data_are_separated() -> None:
    X = np.concatenate([np.linspace(-2.0, -1.0, 10), np.linspace(1.0, 2.0, 10)])[:, None]
    y = np.repeat(["left", "right"], 10)
    model = InfiniteCostSensitiveClassifier(n_nodes=8, alpha=1e-4).fit(X, y)
    assert model.dual_gap_ <= model.tol
    assert np.all(model.predict(X, [-0.5, 0.0, 0.5]) == y[:, None])


@pytest.mark.parametrize(("fn", "fp", "theta"), [(1, 1, 0.0), (9.0, 1.0, 0.8), (0.0, 2.0, -1.0), (3, 0, 1.0)])
def test_costs_become_a_task(fn: float, fp: float, theta: float) -> None:
    assert InfiniteCostSensitiveClassifier.theta_from_costs(fn, fp) == pytest.approx(theta)
    assert InfiniteCostSensitiveClassifier.theta_from_costs(fp, fn) == pytest.approx(-theta)
    assert InfiniteCostSensitiveClassifier.theta_from_costs(8 * fn, 8 * fp) == pytest.approx(theta)


@pytest.mark.parametrize(
    ("fn", "fp", "named"),
    [(-1, 1, "fn_cost"), (1, -1, "fp_cost"), (0, 0, "both 0"), (1, np.inf, "fp_cost"), ("a", 1, "fn")],
)
def test_costs_that_are_none(fn: Any, fp: Any, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        InfiniteCostSensitiveClassifier.theta_from_costs(fn, fp)


def test_a_search_over_kernel_and_ridge(moons: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = moons
    search = GridSearchCV(
        InfiniteCostSensitiveClassifier(task_kernel=Gaussian(), n_nodes=6),
        {"task_kernel__gamma": [0.1, 1.0]},
        cv=3,
        error_score="raise",
    ).fit(X, y)
    assert search.best_estimator_.task_kernel_.gamma == search.best_params_["task_kernel__gamma"]
    pipeline = make_pipeline(StandardScaler(), InfiniteCostSensitiveClassifier(n_nodes=6))
    name = "infinitecostsensitiveclassifier__alpha"
    search = GridSearchCV(pipeline, {name: [1e-3, 1e-1]}, cv=3, scoring="roc_auc", error_score="raise").fit(X, y)
    assert search.best_score_ > 0.85
