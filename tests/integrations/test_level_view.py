"""One level of a model as an estimator: what it answers, and that other libraries take it."""

from __future__ import annotations

import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_outlier_detector, is_regressor
from sklearn.ensemble import StackingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.preprocessing import StandardScaler

from infinitask import (
    InfiniteCostSensitiveClassifier,
    InfiniteOneClassSVM,
    InfiniteQuantileRegressor,
    TaskSearch,
    load,
    make_pipeline,
    save,
)
from infinitask.integrations import at_level
from infinitask.integrations._level import LevelView

RNG = np.random.default_rng(1)
X = RNG.uniform(-2.0, 2.0, (700, 1))
Y = np.sin(2.0 * X[:, 0]) + (0.2 + 0.4 * np.abs(X[:, 0])) * RNG.normal(size=700)
FIT, CALIBRATE, NEW = slice(0, 100), slice(100, 400), slice(400, 700)


@pytest.fixture(scope="module")
def model() -> InfiniteQuantileRegressor:
    return InfiniteQuantileRegressor(n_nodes=12, alpha=0.01).fit(X[FIT], Y[FIT])


def covered(intervals: Any) -> float:
    low, high = np.asarray(intervals).reshape(-1, 2).T
    assert np.all(low < high)
    return float(np.mean((low <= Y[NEW]) & (Y[NEW] <= high)))


def test_a_view_answers_as_the_model_does_for_that_task(model: InfiniteQuantileRegressor) -> None:
    for level in (0.05, 0.5, [0.1, 0.9]):
        view = at_level(model, quantiles=level)
        np.testing.assert_array_equal(view.predict(X[NEW]), model.predict(X[NEW], quantiles=level))
    view = at_level(model, quantiles=0.05)
    assert view.n_features_in_ == 1
    assert view.score(X[NEW], Y[NEW]) == model.score(X[NEW], Y[NEW])
    np.testing.assert_array_equal(view.predict_interval(X[NEW], coverage=0.5), model.predict_interval(X[NEW], 0.5))


def test_a_search_is_seen_at_a_level_before_and_after_its_fit() -> None:
    small = InfiniteQuantileRegressor(n_nodes=6, tol=1e-2)
    for model in (small, make_pipeline(StandardScaler(), small)):
        name = "alpha" if model is small else "infinitequantileregressor__alpha"
        for search in (GridSearchCV(model, {name: [0.1, 1.0]}, cv=2), TaskSearch(GridSearchCV(model, {name: [0.1]}))):
            view = at_level(search, quantiles=0.9).fit(X[FIT], Y[FIT])
            best = view.estimator_.best_estimator_
            np.testing.assert_array_equal(view.predict(X[NEW]), best.predict(X[NEW], quantiles=0.9))
            again = at_level(view.estimator_, quantiles=0.1)
            np.testing.assert_array_equal(again.predict(X[NEW]), best.predict(X[NEW], quantiles=0.1))
            assert again.score(X[NEW], Y[NEW]) == view.estimator_.score(X[NEW], Y[NEW])
            with pytest.raises(TypeError, match="takes no such task"):
                at_level(search, theta=0.5)


def test_a_view_is_of_the_kind_of_its_model(model: InfiniteQuantileRegressor) -> None:
    assert is_regressor(at_level(model, quantiles=0.5))
    labels = np.where(X[FIT, 0] > 0.0, "yes", "no")
    classifier = InfiniteCostSensitiveClassifier(n_nodes=6, alpha=0.1).fit(X[FIT], labels)
    view = at_level(classifier, theta=0.6)
    assert is_classifier(view)
    assert list(view.classes_) == ["no", "yes"]
    np.testing.assert_array_equal(view.predict(X[NEW]), classifier.predict(X[NEW], theta=0.6))
    np.testing.assert_array_equal(view.decision_function(X[NEW]), classifier.decision_function(X[NEW], theta=0.6))
    np.testing.assert_array_equal(view.predict_proba(X[NEW]), classifier.predict_proba(X[NEW]))  # of every task
    detector = at_level(InfiniteOneClassSVM(n_nodes=6, alpha=0.1).fit(X[FIT]), nu=0.3)
    assert is_outlier_detector(detector)
    assert set(np.unique(detector.predict(X[FIT]))) == {-1, 1}


def test_fit_of_a_view_leaves_the_model_alone(model: InfiniteQuantileRegressor) -> None:
    before = model.predict(X[NEW])
    view = at_level(model, quantiles=0.9).fit(X[FIT], 10.0 + Y[FIT], sample_weight=np.ones(100))
    np.testing.assert_array_equal(model.predict(X[NEW]), before)
    assert np.all(view.predict(X[NEW]) > before + 5.0)
    assert view.estimator_ is not model


def test_a_clone_of_a_view_is_not_fitted_and_a_copy_is(model: InfiniteQuantileRegressor) -> None:
    view = at_level(model, quantiles=0.9)
    again = pickle.loads(pickle.dumps(view))
    np.testing.assert_array_equal(again.predict(X[NEW]), view.predict(X[NEW]))
    with pytest.raises(NotFittedError):
        clone(view).predict(X[NEW])
    assert not hasattr(view, "conformalize")  # it would change the model that others look at
    assert not hasattr(view, "_explored")


def test_a_view_can_be_saved(model: InfiniteQuantileRegressor, tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    view = at_level(model, quantiles=0.9)
    save(view, tmp_path / "high.safetensors")
    np.testing.assert_array_equal(load(tmp_path / "high.safetensors").predict(X[NEW]), view.predict(X[NEW]))


def test_a_view_of_a_pipeline_is_that_of_its_last_step() -> None:
    pipeline = make_pipeline(StandardScaler(), InfiniteQuantileRegressor(n_nodes=6, alpha=0.1)).fit(X[FIT], Y[FIT])
    expected = pipeline.predict(X[NEW], quantiles=0.2)
    np.testing.assert_array_equal(at_level(pipeline, quantiles=0.2).predict(X[NEW]), expected)


def test_wrong_views_are_refused_with_a_sentence(model: InfiniteQuantileRegressor) -> None:
    with pytest.raises(TypeError, match=r"without a task; name one"):
        at_level(model)
    with pytest.raises(TypeError, match=r"nu was given, and predict of InfiniteQuantileRegressor takes no such task"):
        at_level(model, nu=0.1)
    with pytest.raises(TypeError, match=r"StandardScaler was given, which has no predict"):
        at_level(StandardScaler(), quantiles=0.1)


def test_scikit_learn_crosses_and_stacks_views() -> None:
    model = InfiniteQuantileRegressor(n_nodes=6, alpha=0.01, tol=1e-2)
    high, low = at_level(model, quantiles=0.9), LevelView(model, {"quantiles": 0.1})
    below = np.mean(cross_val_predict(high, X[FIT], Y[FIT], cv=3) > Y[FIT])
    assert 0.8 <= below <= 0.98
    stack = StackingRegressor([("high", high), ("low", low)], LinearRegression()).fit(X[FIT], Y[FIT])
    assert stack.score(X[NEW], Y[NEW]) > 0.3


def test_mapie_makes_its_intervals_of_three_views(model: InfiniteQuantileRegressor) -> None:
    mapie = pytest.importorskip("mapie.regression")
    views = [at_level(model, quantiles=level) for level in (0.1, 0.9, 0.5)]
    conformal = mapie.ConformalizedQuantileRegressor(views, confidence_level=0.8, prefit=True)
    points, intervals = conformal.conformalize(X[CALIBRATE], Y[CALIBRATE]).predict_interval(X[NEW])
    np.testing.assert_array_equal(points, model.predict(X[NEW], quantiles=0.5))
    # 300 and 300 rows: two standard deviations of the share are about 0.065
    assert 0.735 <= covered(intervals) <= 0.865


def test_crepes_makes_distributions_of_our_median_and_spread(model: InfiniteQuantileRegressor) -> None:
    crepes = pytest.importorskip("crepes")

    def spread(rows: Any) -> Any:
        return np.ptp(model.predict_interval(rows, coverage=0.5), axis=1)

    wrapped = crepes.WrapRegressor(model)
    wrapped.calibrate(X[CALIBRATE], Y[CALIBRATE], de=SimpleNamespace(apply=spread))
    intervals = wrapped.predict_int(X[NEW], confidence=0.8)
    assert 0.735 <= covered(intervals) <= 0.865
    # wider where the noise is
    widths, calm = np.ptp(intervals, axis=1), np.abs(X[NEW, 0]) < 0.5
    assert np.mean(widths[~calm]) > 1.15 * np.mean(widths[calm])
    system = crepes.ConformalPredictiveSystem()
    system.fit(Y[CALIBRATE] - model.predict(X[CALIBRATE]), sigmas=spread(X[CALIBRATE]))
    chances = system.predict(model.predict(X[NEW]), sigmas=spread(X[NEW]), y=Y[NEW], seed=0)
    assert np.max(np.abs(np.sort(chances) - np.linspace(0.0, 1.0, 300))) < 0.12
