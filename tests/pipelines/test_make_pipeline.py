"""A pipeline answers as its parts do, one after the other, and has what its model has."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import StandardScaler

from infinitask import (
    InfiniteCostSensitiveClassifier,
    InfiniteFunctionRegressor,
    InfiniteOneClassSVM,
    InfiniteQuantileRegressor,
    make_pipeline,
)
from infinitask.pipelines import TaskPipeline
from infinitask.tuning import InfiniteQuantileRegressorCV

rng = np.random.default_rng(0)
X = rng.normal([5.0, -3.0], [4.0, 0.1], size=(90, 2))
y = X[:, 0] + rng.normal(size=90)
labels = np.where(y > 5.0, "case", "none")
weight = rng.uniform(0.5, 2.0, 90)


def parts(model: Any, target: Any) -> tuple[Any, Any, Any]:
    """A fitted pipeline, and its two parts, fitted by hand."""
    scaler = StandardScaler().fit(X)
    by_hand = clone(model).fit(scaler.transform(X), target)
    return make_pipeline(StandardScaler(), model).fit(X, target), by_hand, scaler.transform(X)


def test_quantiles_are_those_of_the_parts() -> None:
    whole, model, Z = parts(InfiniteQuantileRegressor(n_nodes=8), y)
    assert isinstance(whole, TaskPipeline)
    np.testing.assert_array_equal(whole.predict(X, quantiles=[0.1, 0.9]), model.predict(Z, quantiles=[0.1, 0.9]))
    np.testing.assert_array_equal(whole.predict(X, 0.3), model.predict(Z, 0.3))
    np.testing.assert_array_equal(whole.predict_interval(X, coverage=0.8), model.predict_interval(Z, coverage=0.8))
    np.testing.assert_array_equal(whole.predict_interval(coverage=0.8, X=X), model.predict_interval(Z, coverage=0.8))
    np.testing.assert_array_equal(whole.predict_cdf(X, y), model.predict_cdf(Z, y))
    np.testing.assert_array_equal(whole.predict_distribution(X).mean(), model.predict_distribution(Z).mean())
    np.testing.assert_array_equal(whole.sample(X, 2, random_state=0), model.sample(Z, 2, random_state=0))
    assert whole.score(X, y, sample_weight=weight) == model.score(Z, y, sample_weight=weight)
    assert whole.dual_gap_ == model.dual_gap_


def test_a_calibration_is_kept_and_the_answer_is_the_pipeline() -> None:
    whole, model, Z = parts(InfiniteQuantileRegressor(n_nodes=8), y)
    assert not hasattr(whole, "calibration_")
    assert whole.conformalize(X, y) is whole
    model.conformalize(Z, y)
    np.testing.assert_array_equal(whole.predict_interval(X, 0.9), model.predict_interval(Z, 0.9))
    assert whole.calibration_.radius(np.array([0.5])) == model.calibration_.radius(np.array([0.5]))


def test_decisions_are_those_of_the_parts() -> None:
    whole, model, Z = parts(InfiniteCostSensitiveClassifier(n_nodes=8), labels)
    for theta in (0.3, [-0.5, 0.5]):
        np.testing.assert_array_equal(whole.predict(X, theta=theta), model.predict(Z, theta=theta))
        np.testing.assert_array_equal(whole.decision_function(X, theta), model.decision_function(Z, theta))
    np.testing.assert_array_equal(whole.predict_proba(X), model.predict_proba(Z))
    assert whole.roc_curve(X, labels).area == model.roc_curve(Z, labels).area
    costs = {"fn_cost": 3.0, "fp_cost": 1.0}
    assert whole.choose_theta(X, labels, **costs) == model.choose_theta(Z, labels, **costs)
    assert whole.theta_from_costs(9.0, 1.0) == 0.8
    assert list(whole.classes_) == ["case", "none"]


def test_level_sets_are_those_of_the_parts() -> None:
    whole, model, Z = parts(InfiniteOneClassSVM(n_nodes=8), None)
    np.testing.assert_array_equal(whole.predict(X, nu=[0.1, 0.4]), model.predict(Z, nu=[0.1, 0.4]))
    np.testing.assert_array_equal(whole.score_samples(X), model.score_samples(Z))
    np.testing.assert_array_equal(whole.decision_function(X, nu=0.2), model.decision_function(Z, nu=0.2))
    again = make_pipeline(StandardScaler(), InfiniteOneClassSVM(n_nodes=8)).fit_predict(X)
    np.testing.assert_array_equal(again, model.predict(Z))


def test_a_model_that_tunes_itself_is_passed_on_too() -> None:
    model = InfiniteQuantileRegressorCV(kernels=["linear"], n_nodes=8, random_state=0)
    whole = make_pipeline(StandardScaler(), model).fit(X, y)
    np.testing.assert_array_equal(
        whole.predict_interval(X, coverage=0.9), model.predict_interval(whole[0].transform(X), coverage=0.9)
    )
    assert whole.best_estimator_ is model.best_estimator_
    assert whole.cv_results_ is model.cv_results_


def test_weights_reach_the_model() -> None:
    model = InfiniteQuantileRegressor(n_nodes=8)
    whole = make_pipeline(StandardScaler(), model).fit(X, y, sample_weight=weight)
    by_hand = clone(model).fit(StandardScaler().fit_transform(X), y, sample_weight=weight)
    unweighted = make_pipeline(StandardScaler(), clone(model)).fit(X, y)
    np.testing.assert_array_equal(whole.predict(X), by_hand.predict(StandardScaler().fit_transform(X)))
    assert np.max(np.abs(whole.predict(X) - unweighted.predict(X))) > 1e-3
    name = {"infinitequantileregressor__sample_weight": weight}
    np.testing.assert_array_equal(clone(whole).fit(X, y, **name).predict(X), whole.predict(X))


def test_what_the_model_lacks_is_lacking() -> None:
    quantiles = make_pipeline(StandardScaler(), InfiniteQuantileRegressor(n_nodes=8)).fit(X, y)
    for name in (
        "predict_proba",
        "roc_curve",
        "score_samples",
        "decision_function",
        "classes_",
        "fit_predict",
        "steep_",
    ):
        assert not hasattr(quantiles, name), name
    other = make_pipeline(StandardScaler(), GaussianNB()).fit(X, labels)
    for name in ("predict_interval", "explore", "relevance_", "conformalize", "dual_gap_"):
        assert not hasattr(other, name), name
    assert hasattr(other, "predict_log_proba")
    assert not hasattr(quantiles, "quantiles")  # a parameter of the model is no attribute of the pipeline
    assert "predict_interval" in dir(quantiles)


def test_before_the_fit_an_answer_is_refused_as_the_parts_refuse_it() -> None:
    whole = make_pipeline(StandardScaler(), InfiniteQuantileRegressor())
    assert not hasattr(whole, "dual_gap_")
    assert not hasattr(whole, "relevance_")
    with pytest.raises(NotFittedError):
        whole.predict_interval(X)


def test_names_of_features_are_those_of_the_encoded_columns() -> None:
    table = pd.DataFrame(X, columns=["age", "mass"])
    whole = make_pipeline(StandardScaler(), InfiniteQuantileRegressor(n_nodes=8)).fit(table, y)
    assert whole.relevance_.names == ("age", "mass")
    assert list(whole.feature_names_in_) == ["age", "mass"]
    chosen = make_pipeline(StandardScaler(), SelectKBest(f_regression, k=1), InfiniteQuantileRegressor(n_nodes=8)).fit(
        table, y
    )
    assert chosen.relevance_.names == ("age",)
    assert make_pipeline(InfiniteQuantileRegressor(n_nodes=8)).fit(table, y).relevance_.names == ("age", "mass")
    assert make_pipeline(StandardScaler(), InfiniteQuantileRegressor(n_nodes=8)).fit(X, y).relevance_.names == (
        "x0",
        "x1",
    )


def test_the_name_of_the_target_is_kept() -> None:
    whole = make_pipeline(StandardScaler(), InfiniteQuantileRegressor(n_nodes=8))
    assert whole.fit(X, pd.Series(y, name="price")).target_name_ == "price"
    assert not hasattr(whole.fit(X, y), "target_name_")


def test_clone_parameters_and_pickle() -> None:
    whole = make_pipeline(StandardScaler(), InfiniteQuantileRegressor(n_nodes=8)).fit(X, y)
    fresh = clone(whole)
    assert isinstance(fresh, TaskPipeline)
    assert not hasattr(fresh, "dual_gap_")
    fresh.set_params(infinitequantileregressor__n_nodes=6)
    assert fresh.get_params()["infinitequantileregressor__n_nodes"] == 6
    again = pickle.loads(pickle.dumps(whole))
    np.testing.assert_array_equal(again.predict_interval(X), whole.predict_interval(X))


def test_searches_and_cross_validation() -> None:
    whole = make_pipeline(StandardScaler(), InfiniteQuantileRegressor(n_nodes=6))
    search = GridSearchCV(whole, {"infinitequantileregressor__alpha": [1e-3, 1e3]}, cv=3).fit(
        X, y, sample_weight=weight
    )
    assert search.best_params_ == {"infinitequantileregressor__alpha": 1e-3}
    assert search.best_estimator_.predict_interval(X).shape == (90, 2)
    assert cross_val_predict(search.best_estimator_, X, y, cv=3).shape == (90,)


def test_scikit_learn_may_route_the_weights() -> None:
    with sklearn.config_context(enable_metadata_routing=True):
        model = InfiniteQuantileRegressor(n_nodes=8).set_fit_request(sample_weight=True)
        whole = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), model)
        routed = whole.fit(X, y, sample_weight=weight).predict(X)
    np.testing.assert_array_equal(
        routed, make_pipeline(StandardScaler(), clone(model)).fit(X, y, sample_weight=weight).predict(X)
    )


def test_steps_that_do_nothing_are_passed() -> None:
    whole = make_pipeline("passthrough", InfiniteQuantileRegressor(n_nodes=8)).fit(X, y)
    np.testing.assert_array_equal(whole.predict(X), InfiniteQuantileRegressor(n_nodes=8).fit(X, y).predict(X))


def test_what_the_last_step_takes_by_name_reaches_it() -> None:
    theta = np.array([1.0, 2.0, 4.0, 7.0])
    curves = np.sin(theta + y[:, None] / 5.0)
    model = InfiniteFunctionRegressor(gamma=0.5, task_gamma=0.1, alpha=0.01)
    scaled = StandardScaler().fit_transform(X)
    by_hand = clone(model).fit(scaled, curves, theta=theta, sample_weight=weight)
    pipeline = make_pipeline(StandardScaler(), model).fit(X, curves, theta=theta, sample_weight=weight)
    np.testing.assert_array_equal(pipeline.theta_, theta)
    np.testing.assert_array_equal(pipeline.predict(X, theta=[3.0]), by_hand.predict(scaled, theta=[3.0]))
    some, few = curves[:, :2], theta[:2]
    assert pipeline.score(X, some, theta=few) == by_hand.score(scaled, some, theta=few)
    assert pipeline.score(X, some, weight, theta=few) == by_hand.score(scaled, some, few, weight)
    own = make_pipeline(StandardScaler(), clone(model))
    own.fit(X, curves, infinitefunctionregressor__theta=theta)  # as in scikit-learn
    np.testing.assert_array_equal(own.theta_, theta)
    with pytest.raises((TypeError, ValueError), match="points"):
        own.fit(X, curves, points=theta)
    with pytest.raises(TypeError, match="points"):
        own.score(X, curves, points=theta)
