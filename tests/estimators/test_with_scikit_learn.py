"""What scikit-learn can be told to do: dispatch to the library of an array, and route metadata to where it belongs."""

from __future__ import annotations

from typing import Any

import array_api_compat as compat
import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

from infinitask import InfiniteCostSensitiveClassifier, InfiniteOneClassSVM, InfiniteQuantileRegressor
from infinitask.datasets import make_sine
from tests.support.arrays import to_host

X, Y = make_sine(40, random_state=0)
WEIGHT = np.random.default_rng(0).integers(0, 3, 40).astype(float)
QUANTILES = InfiniteQuantileRegressor(n_nodes=5, alpha=0.1)
MODELS: dict[str, Any] = {
    "quantiles": (QUANTILES, Y, ("predict", "predict_interval")),
    "costs": (InfiniteCostSensitiveClassifier(n_nodes=5, alpha=0.1), 1 * (Y > 0.0), ("predict", "predict_proba")),
    "sets": (InfiniteOneClassSVM(n_nodes=5, alpha=0.1), None, ("predict", "score_samples")),
}


@pytest.mark.parametrize("dispatch", [pytest.param(False, marks=pytest.mark.slow), True])
@pytest.mark.parametrize(("model", "targets", "methods"), MODELS.values(), ids=MODELS)
def test_answers_are_of_the_kind_of_the_rows_with_and_without_dispatch(
    xp: Any, model: Any, targets: Any, methods: tuple[str, ...], dispatch: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # scikit-learn asks for it
    plain = clone(model).fit(X, targets, sample_weight=WEIGHT)
    rows, weight = xp.asarray(X), xp.asarray(WEIGHT)
    y = None if targets is None else xp.asarray(targets)
    with sklearn.config_context(array_api_dispatch=dispatch):
        fitted = clone(model).fit(rows, y, sample_weight=weight)
        for method in methods:
            found = getattr(fitted, method)(rows)
            assert compat.array_namespace(found) is compat.array_namespace(rows)
            np.testing.assert_allclose(to_host(found), getattr(plain, method)(X), rtol=1e-9)
        if y is not None:
            expected = plain.score(X, targets, sample_weight=WEIGHT)
            assert fitted.score(rows, y, sample_weight=weight) == pytest.approx(expected)
        assert isinstance(fitted.nodes_, np.ndarray)


def test_the_tag_says_that_fitted_attributes_stay_with_numpy() -> None:
    # scikit-learn's tag promises fitted attributes in the library of the rows
    assert not get_tags(QUANTILES).array_api_support


@pytest.mark.parametrize("dispatch", [pytest.param(False, marks=pytest.mark.slow), True])
def test_conformal_calibration_takes_tensors(xp: Any, dispatch: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    expected = clone(QUANTILES).fit(X[::2], Y[::2]).conformalize(X[1::2], Y[1::2]).predict_interval(X, coverage=0.8)
    with sklearn.config_context(array_api_dispatch=dispatch):
        model = clone(QUANTILES).fit(xp.asarray(X[::2]), xp.asarray(Y[::2]))
        model.conformalize(xp.asarray(X[1::2]), xp.asarray(Y[1::2]))
        np.testing.assert_allclose(to_host(model.predict_interval(xp.asarray(X), coverage=0.8)), expected)


def test_weights_are_routed_through_a_search_to_fits_and_scores() -> None:
    with sklearn.config_context(enable_metadata_routing=True):
        model = clone(QUANTILES).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        search = GridSearchCV(model, {"alpha": [0.01, 1.0]}, cv=2).fit(X, Y, sample_weight=WEIGHT)
        expected = []
        for alpha in (0.01, 1.0):
            one, scores = clone(QUANTILES).set_params(alpha=alpha), []
            for train, test in ((np.arange(20, 40), np.arange(20)), (np.arange(20), np.arange(20, 40))):
                one.fit(X[train], Y[train], sample_weight=WEIGHT[train])
                scores.append(one.score(X[test], Y[test], sample_weight=WEIGHT[test]))
            expected.append(np.mean(scores))
        np.testing.assert_allclose(search.cv_results_["mean_test_score"], expected, atol=1e-3)
        fitted = clone(QUANTILES).set_params(**search.best_params_).fit(X, Y, sample_weight=WEIGHT)
        np.testing.assert_allclose(search.predict(X), fitted.predict(X))


def test_weights_that_nobody_asked_for_are_refused() -> None:
    with sklearn.config_context(enable_metadata_routing=True), pytest.raises(UnsetMetadataPassedError):
        cross_val_score(QUANTILES, X, Y, cv=2, params={"sample_weight": WEIGHT})


def test_levels_are_routed_through_a_pipeline() -> None:
    with sklearn.config_context(enable_metadata_routing=True):
        model = clone(QUANTILES).set_predict_request(quantiles=True).set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, model).fit(X, Y, sample_weight=WEIGHT)
        found = pipeline.predict(X, quantiles=[0.1, 0.9])
        inside = clone(QUANTILES).fit(scaler.transform(X), Y, sample_weight=WEIGHT)
        np.testing.assert_allclose(found, inside.predict(scaler.transform(X), quantiles=[0.1, 0.9]))


def test_a_search_has_no_levels_and_its_best_model_has() -> None:
    search = GridSearchCV(QUANTILES, {"alpha": [0.1, 1.0]}, cv=2).fit(X, Y)
    with pytest.raises(TypeError, match="quantiles"):
        search.predict(X, quantiles=0.9)
    assert search.best_estimator_.predict(X, quantiles=[0.1, 0.9]).shape == (40, 2)
