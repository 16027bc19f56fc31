"""Level sets in PyOD: what its own tests ask of a detector, and a contamination that moves after the fit."""

from __future__ import annotations

import importlib
import pickle
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, clone, is_outlier_detector
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

pytest.importorskip("pyod", reason="PyOD is not installed: pip install infinitask[pyod]")

from pyod.models.base import BaseDetector
from pyod.models.knn import KNN
from pyod.utils.data import generate_data
from pyod.utils.utility import standardizer

from infinitask import InfiniteOneClassSVM, InfiniteOneClassSVMCV, make_pipeline, out_of_fold_scores
from infinitask.datasets import make_mixture
from infinitask.integrations.pyod import InfiniteOneClassDetector

CONTAMINATION = 0.1
MODEL = InfiniteOneClassSVM(nested=True, exact_fractions=True, n_nodes=10)
CONTAMINATIONS = (0.05, 0.1, 0.25, 0.5)


@pytest.fixture(scope="module")
def data() -> tuple[Any, Any, Any, Any]:
    return generate_data(n_train=60, n_test=50, n_features=2, contamination=CONTAMINATION, random_state=42)


def detector_of(**parameters: Any) -> InfiniteOneClassDetector:
    return InfiniteOneClassDetector(**({"estimator": MODEL, "cv": 3, "random_state": 0} | parameters))


@pytest.fixture(scope="module")
def fitted(data: tuple[Any, Any, Any, Any]) -> InfiniteOneClassDetector:
    return detector_of().fit(data[0])


@pytest.fixture
def detector(fitted: InfiniteOneClassDetector) -> InfiniteOneClassDetector:
    """A copy that a test may change."""
    return fitted.with_contamination(CONTAMINATION)


# ---------------------------------------------------------------------------------------- what PyOD asks of a detector
def test_what_a_fit_leaves_behind(detector: InfiniteOneClassDetector) -> None:
    assert isinstance(detector, BaseDetector)
    # detectors of PyOD 2.0 are no estimators of scikit-learn
    assert is_outlier_detector(detector) or not isinstance(detector, BaseEstimator)
    assert detector.decision_scores_.shape == detector.labels_.shape == (60,)
    assert set(np.unique(detector.labels_)) == {0, 1}
    assert np.sum(detector.labels_) == 6
    assert np.array_equal(detector.labels_, (detector.decision_scores_ > detector.threshold_).astype(int))
    assert detector._mu == pytest.approx(np.mean(detector.decision_scores_))
    assert detector._sigma == pytest.approx(np.std(detector.decision_scores_))
    assert detector.detector_.dual_gap_ <= 1e-4


def test_scores_find_the_outliers(data: tuple[Any, ...], detector: InfiniteOneClassDetector) -> None:
    _, X_test, y_train, y_test = data
    scores = detector.decision_function(X_test)
    assert scores.shape == y_test.shape
    assert roc_auc_score(y_test, scores) >= 0.95
    assert roc_auc_score(y_train, detector.decision_scores_) >= 0.95
    assert np.array_equal(scores, -detector.detector_.score_samples(X_test))


def test_labels_of_new_rows(data: tuple[Any, ...], detector: InfiniteOneClassDetector) -> None:
    _, X_test, _, y_test = data
    labels = detector.predict(X_test)
    assert labels.shape == y_test.shape
    assert np.array_equal(labels, (detector.decision_function(X_test) > detector.threshold_).astype(int))
    assert np.mean(labels == y_test) > 0.9


@pytest.mark.parametrize("method", ["linear", "unify"])
def test_probabilities(data: tuple[Any, ...], detector: InfiniteOneClassDetector, method: str) -> None:
    _, X_test, *_ = data
    share, confidence = detector.predict_proba(X_test, method=method, return_confidence=True)
    assert share.shape == (50, 2)
    assert np.all((share >= 0.0) & (share <= 1.0))
    assert np.allclose(share.sum(axis=1), 1.0)
    assert np.all(np.diff(share[np.argsort(detector.decision_function(X_test)), 1]) >= 0.0)
    assert np.array_equal(share, detector.predict_proba(X_test, method=method))
    assert confidence.shape == (50,)
    assert np.all((confidence >= 0.0) & (confidence <= 1.0))


def test_unknown_probabilities_are_refused(data: tuple[Any, ...], detector: InfiniteOneClassDetector) -> None:
    with pytest.raises(ValueError, match="something"):
        detector.predict_proba(data[1], method="something")


def test_confidence(data: tuple[Any, ...], detector: InfiniteOneClassDetector) -> None:
    _, X_test, *_ = data
    labels, confidence = detector.predict(X_test, return_confidence=True)
    assert np.array_equal(labels, detector.predict(X_test))
    assert confidence.shape == labels.shape
    assert np.all((confidence >= 0.0) & (confidence <= 1.0))
    # rows near the threshold are the doubtful ones
    distance = np.abs(detector.decision_function(X_test) - detector.threshold_)
    assert confidence[np.argmax(distance)] > confidence[np.argmin(distance)]


@pytest.mark.skipif(not hasattr(BaseDetector, "predict_with_rejection"), reason="PyOD 2.0 rejects nothing")
def test_rejection(data: tuple[Any, ...], detector: InfiniteOneClassDetector) -> None:
    _, X_test, *_ = data
    labels, stats = detector.predict_with_rejection(X_test, return_stats=True, c_r=CONTAMINATION)
    assert set(np.unique(labels)) <= {-2, 0, 1}
    kept = labels != -2
    assert np.any(kept)
    assert np.array_equal(labels[kept], detector.predict(X_test)[kept])
    assert len(stats) == 3
    assert 0.0 <= stats[0] <= 1.0


def test_ranks(data: tuple[Any, ...], detector: InfiniteOneClassDetector) -> None:
    _, X_test, *_ = data
    scores = detector.decision_function(X_test)
    ranks = detector._predict_rank(X_test)
    assert np.array_equal(ranks, [np.sum(detector.decision_scores_ < score) for score in scores])
    assert np.all((ranks >= 0) & (ranks <= 60))
    assert np.corrcoef(rankdata(ranks), rankdata(scores))[0, 1] > 0.99
    normalised = detector._predict_rank(X_test, normalized=True)
    assert np.min(normalised) >= 0.0
    assert np.max(normalised) == 1.0


def test_fit_and_predict_at_once(data: tuple[Any, ...], detector: InfiniteOneClassDetector) -> None:
    X, _, y, _ = data
    with pytest.warns(FutureWarning, match="fit_predict"):
        labels = detector_of().fit_predict(X)
    assert np.array_equal(labels, detector.labels_)
    with pytest.warns(UserWarning, match="unsupervised"):
        again = detector_of().fit(X, y)
    assert np.array_equal(again.decision_scores_, detector.decision_scores_)


def test_a_detector_is_combined_with_others(data: tuple[Any, ...], detector: InfiniteOneClassDetector) -> None:
    X, X_test, _, y_test = data
    other = KNN().fit(X)
    train = np.column_stack([detector.decision_scores_, other.decision_scores_])
    test = np.column_stack([detector.decision_function(X_test), other.decision_function(X_test)])
    _, scaled = standardizer(train, test)
    assert roc_auc_score(y_test, scaled.mean(axis=1)) >= 0.95


def test_copies(data: tuple[Any, ...], detector: InfiniteOneClassDetector, tmp_path: Path) -> None:
    _, X_test, *_ = data
    fresh = clone(detector)
    assert not hasattr(fresh, "decision_scores_")
    assert fresh.get_params(deep=False) | {"estimator": None} == detector.get_params(deep=False) | {"estimator": None}
    fresh.set_params(estimator__n_nodes=12, cv=4, contamination=0.3)
    assert (fresh.estimator.n_nodes, fresh.cv, fresh.contamination) == (12, 4, 0.3)
    assert MODEL.n_nodes == 10
    again = pickle.loads(pickle.dumps(detector))
    assert np.array_equal(again.predict(X_test), detector.predict(X_test))
    again.contamination = 0.3
    assert np.sum(again.labels_) == 18
    persistence = pytest.importorskip("pyod.utils.persistence")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        persistence.save(detector, tmp_path / "detector.joblib")
        loaded = persistence.load(tmp_path / "detector.joblib", trusted=True)
    assert np.array_equal(loaded.decision_function(X_test), detector.decision_function(X_test))


# ------------------------------------------------------------------------------------------ contamination after the fit
@pytest.mark.parametrize("contamination", CONTAMINATIONS)
def test_a_contamination_set_later_is_one_set_before(
    data: tuple[Any, ...], detector: InfiniteOneClassDetector, contamination: float
) -> None:
    _, X_test, *_ = data
    # the scores of a fit do not depend on the contamination: those of `detector` are those of any other fit
    before = detector_of(contamination=contamination)
    before.detector_, before.decision_scores_ = detector.detector_, detector.decision_scores_
    before._set_n_classes(None)._process_decision_scores()
    once = detector.predict(X_test, True, contamination)
    assert detector.contamination == CONTAMINATION
    fits = detector.detector_
    assert detector.set_params(contamination=contamination) is detector
    assert detector.detector_ is fits
    assert detector.threshold_ == before.threshold_
    assert np.array_equal(detector.labels_, before.labels_)
    assert np.sum(detector.labels_) == round(60 * contamination)
    assert np.array_equal(detector.predict(X_test), before.predict(X_test))
    assert np.array_equal(detector.predict_confidence(X_test), before.predict_confidence(X_test))
    assert np.array_equal(once[0], before.predict(X_test))
    assert np.array_equal(once[1], before.predict_confidence(X_test))


def test_scores_do_not_depend_on_the_contamination(data: tuple[Any, ...], detector: InfiniteOneClassDetector) -> None:
    X, X_test, *_ = data
    other = detector_of(contamination=0.3).fit(X)
    assert np.array_equal(other.decision_scores_, detector.decision_scores_)
    assert np.array_equal(other.decision_scores_, -out_of_fold_scores(MODEL, X, cv=3, random_state=0))
    detector.contamination = 0.3
    assert np.array_equal(other.predict(X_test), detector.predict(X_test))


def test_outliers_stay_outliers_where_contamination_grows(
    data: tuple[Any, ...], detector: InfiniteOneClassDetector
) -> None:
    _, X_test, *_ = data
    labels = np.array([detector.predict(X_test, contamination=c) for c in CONTAMINATIONS])
    assert np.all(np.diff(labels, axis=0) >= 0)
    assert np.all(np.diff(labels.sum(axis=1)) >= 0)
    assert labels[-1].sum() > labels[0].sum()


def test_every_threshold_is_a_level_set_of_the_model(data: tuple[Any, ...], detector: InfiniteOneClassDetector) -> None:
    _, X_test, *_ = data
    by_level = detector.with_contamination(CONTAMINATION)
    by_level.threshold = "level"
    assert by_level.threshold_ == -CONTAMINATION
    for contamination in CONTAMINATIONS:
        by_level.contamination = contamination
        assert by_level.threshold_ == -contamination
        outside = detector.detector_.predict(X_test, nu=contamination) == -1
        assert np.array_equal(by_level.predict(X_test), outside.astype(int))
        other = detector.with_contamination(contamination)
        if other.threshold_ <= -0.05:
            outside = detector.detector_.predict(X_test, nu=-other.threshold_) == -1
            assert np.array_equal(other.predict(X_test), outside.astype(int))


def test_thresholds_hold_for_new_rows() -> None:
    X, new = make_mixture(120, random_state=0), make_mixture(1000, random_state=1)
    left_out, seen = (detector_of(cv=cv).fit(X) for cv in (3, None))
    for contamination in (0.1, 0.2, 0.3):
        rate, rate_of_seen = (np.mean(d.predict(new, contamination=contamination)) for d in (left_out, seen))
        assert rate == pytest.approx(contamination, abs=0.07)
        assert np.sum(seen.with_contamination(contamination).labels_) == round(120 * contamination)
        assert rate_of_seen > rate


@pytest.mark.slow
def test_level_sets_hold_for_new_rows() -> None:
    X, new = make_mixture(120, random_state=0), make_mixture(1000, random_state=1)
    detector = InfiniteOneClassDetector(threshold="level", cv=3, random_state=0).fit(X)
    for contamination in (0.1, 0.2, 0.3):
        detector.contamination = contamination
        assert detector.threshold_ == -contamination
        assert np.mean(detector.predict(new)) == pytest.approx(contamination, abs=0.07)
        assert np.mean(detector.labels_) == pytest.approx(contamination, abs=0.07)


def test_an_object_may_find_the_threshold(data: tuple[Any, ...], detector: InfiniteOneClassDetector) -> None:
    class Middle:
        """As the objects of PyThresh: everything above the middle is an outlier."""

        def fit(self, scores: Any) -> None:
            self.thresh_ = float(np.median(scores))
            self.labels_ = self.predict(scores)

        def eval(self, scores: Any) -> Any:  # what PyOD 2.0 calls
            self.fit(scores)
            return self.labels_

        def predict(self, scores: Any) -> Any:
            return (np.asarray(scores) > self.thresh_).astype(int)

    moved = detector.with_contamination(Middle())
    expected = detector.decision_scores_ > np.median(detector.decision_scores_)
    assert np.array_equal(moved.labels_, expected.astype(int))
    assert set(np.unique(moved.predict(data[1]))) == {0, 1}


# --------------------------------------------------------------------------------------------------------- other models
def test_steps_before_the_model(data: tuple[Any, ...]) -> None:
    X, X_test, *_ = data
    steps = make_pipeline(StandardScaler(), MODEL)
    detector = InfiniteOneClassDetector(steps, cv=None, threshold="level").fit(X)
    assert np.array_equal(detector.predict(X_test), (detector.detector_.predict(X_test, nu=0.1) == -1).astype(int))


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [None, InfiniteOneClassSVMCV(kernels=["rbf", "laplacian"], random_state=0)])
def test_default_and_self_tuned_models(data: tuple[Any, ...], estimator: Any) -> None:
    X, X_test, _, y_test = data
    detector = InfiniteOneClassDetector(estimator, cv=3, random_state=0).fit(X)
    assert np.sum(detector.labels_) == 6
    assert roc_auc_score(y_test, detector.decision_function(X_test)) >= 0.95


# ------------------------------------------------------------------------------------------------------------- refusals
@pytest.mark.parametrize("contamination", [0.0, -0.1, 0.51, 10, float("nan"), True])
def test_wrong_contaminations_are_refused(detector: InfiniteOneClassDetector, contamination: Any) -> None:
    with pytest.raises(ValueError, match="contamination"):
        InfiniteOneClassDetector(contamination=contamination)
    threshold = detector.threshold_
    with pytest.raises(ValueError, match="contamination"):
        detector.contamination = contamination
    with pytest.raises(ValueError, match="contamination"):
        detector.predict([[0.0, 0.0]], contamination=contamination)
    assert (detector.contamination, detector.threshold_) == (CONTAMINATION, threshold)


def test_percentages_are_suspected() -> None:
    with pytest.raises(ValueError, match=r"Did you mean 0\.05\?"):
        InfiniteOneClassDetector(contamination=5)


@pytest.mark.parametrize("contamination", ["auto", None, np.float32(0.1)])
def test_a_wrong_contamination_is_refused(contamination: Any) -> None:
    with pytest.raises(TypeError, match="contamination"):
        InfiniteOneClassDetector(contamination=contamination)


def test_levels_beyond_those_of_the_model_are_refused(detector: InfiniteOneClassDetector) -> None:
    detector.set_params(threshold="level")
    with pytest.raises(ValueError, match=r"from 0\.05 to 1"):
        detector.contamination = 0.02
    assert detector.contamination == CONTAMINATION
    detector.set_params(contamination=0.03, threshold="scores")
    assert np.sum(detector.labels_) == 2
    with pytest.raises(ValueError, match="threshold='scores'"):
        detector.threshold = "level"
    assert detector.threshold == "scores"
    detector.set_params(threshold="level", contamination=0.2)
    assert detector.threshold_ == -0.2


def test_a_level_that_the_fit_does_not_know_leaves_an_old_fit_alone(data: tuple[Any, ...]) -> None:
    detector = detector_of(threshold="level", cv=None).fit(data[0])
    before = detector.detector_
    detector.estimator = InfiniteOneClassSVM(measure=(0.3, 1.0), nu=0.4, exact_fractions=True, n_nodes=8)
    with pytest.raises(ValueError, match=r"from 0\.3 to 1"):
        detector.fit(data[0])
    assert detector.detector_ is before


def test_anything_but_a_model_of_level_sets_is_refused(data: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError, match="score_samples"):
        InfiniteOneClassDetector(StandardScaler()).fit(data[0])
    with pytest.raises(TypeError, match="score_samples"):
        InfiniteOneClassDetector(InfiniteOneClassSVM).fit(data[0])
    with pytest.raises(ValueError, match="threshold="):
        InfiniteOneClassDetector(threshold="median")


def test_more_folds_than_rows_are_refused_with_a_way_out() -> None:
    rows = np.random.default_rng(0).normal(size=(3, 2))
    with pytest.raises(ValueError, match=r"cv=5 was given for 3 rows.* a cv of at most 3, or cv=None"):
        InfiniteOneClassDetector().fit(rows)
    assert InfiniteOneClassDetector(cv=None).fit(rows).labels_.shape == (3,)


def test_a_detector_that_is_not_fitted_says_so() -> None:
    from sklearn.exceptions import NotFittedError

    for ask in (InfiniteOneClassDetector().predict, InfiniteOneClassDetector().decision_function):
        with pytest.raises(NotFittedError):
            ask([[0.0]])


def test_without_pyod_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "infinitask.integrations.pyod")
    monkeypatch.setitem(sys.modules, "pyod.models.base", None)
    with pytest.raises(ImportError, match=r"pip install infinitask\[pyod\]"):
        importlib.import_module("infinitask.integrations.pyod")
