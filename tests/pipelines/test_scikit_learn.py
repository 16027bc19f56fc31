"""scikit-learn's searches, wrappers and tools around our models and pipelines answer what they should."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import BaggingRegressor, StackingClassifier, StackingRegressor, VotingClassifier, VotingRegressor
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import r2_score
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    HalvingGridSearchCV,
    KFold,
    RandomizedSearchCV,
    StratifiedKFold,
    TunedThresholdClassifierCV,
    cross_val_predict,
    cross_validate,
    learning_curve,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputRegressor
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_html_repr

from infinitask import (
    InfiniteCostSensitiveClassifier,
    InfiniteOneClassSVM,
    InfiniteQuantileRegressor,
    load,
    make_pipeline,
    save,
)
from infinitask.metrics import scorer
from infinitask.pipelines import TaskPipeline, TaskSearch
from tests.support.scikit_learn_checks import run_checks

rng = np.random.default_rng(0)
X = rng.normal([5.0, -3.0], [4.0, 0.1], size=(72, 2))
Y = X[:, 0] + rng.normal(size=72)
LABELS = np.where(Y > 5.0, "case", "none")
WEIGHT = rng.uniform(0.5, 2.0, 72)
QUICK: dict[str, Any] = {"n_nodes": 6, "gamma": 0.5, "tol": 0.05, "random_state": 0}
QUANTILES = make_pipeline(StandardScaler(), InfiniteQuantileRegressor(**QUICK, alpha=1e-3))
COSTS = make_pipeline(StandardScaler(), InfiniteCostSensitiveClassifier(**QUICK, alpha=1e-3))
SETS = make_pipeline(StandardScaler(), InfiniteOneClassSVM(**QUICK, alpha=1e-3))
ALPHA = "infinitequantileregressor__alpha"
FOLDS = KFold(3, shuffle=True, random_state=0)


# ------------------------------------------------------------------------------------------------------- searches
SEARCHES = {
    "grid": lambda: GridSearchCV(QUANTILES, {ALPHA: [1e-3, 1e3]}, cv=FOLDS),
    "random": lambda: RandomizedSearchCV(QUANTILES, {ALPHA: [1e-3, 1e3]}, n_iter=2, random_state=0, cv=FOLDS),
    "halving": lambda: HalvingGridSearchCV(QUANTILES, {ALPHA: [1e-3, 1e3]}, cv=FOLDS, min_resources=36, random_state=0),
}


@pytest.mark.parametrize(
    "search",
    [pytest.param(make, id=name, marks=() if name == "grid" else pytest.mark.slow) for name, make in SEARCHES.items()],
)
def test_a_search_compares_by_all_levels(search: Any) -> None:
    found = search().fit(X, Y)
    assert found.best_params_ == {ALPHA: 1e-3}
    assert found.score(X, Y) == found.best_estimator_.score(X, Y)
    assert found.score(X, Y) != r2_score(Y, found.predict(X))  # D² of all levels, not R² of the median
    whole = TaskSearch(search()).fit(X, Y)
    levels = [0.1, 0.9]
    np.testing.assert_array_equal(
        whole.predict(X, quantiles=levels), found.best_estimator_.predict(X, quantiles=levels)
    )


def test_a_search_that_can_be_asked_everything() -> None:
    whole = TaskSearch(GridSearchCV(QUANTILES, {ALPHA: [1e-3, 1e3]}, scoring=scorer("crps"), cv=FOLDS))
    assert hasattr(whole, "predict_interval")
    assert not hasattr(whole, "roc_curve")
    assert not hasattr(whole, "best_params_")
    whole.fit(X, Y, sample_weight=WEIGHT)
    best = whole.best_estimator_
    assert whole.best_params_ == {ALPHA: 1e-3}
    assert len(whole.cv_results_["params"]) == 2
    np.testing.assert_array_equal(whole.predict_interval(X, coverage=0.8), best.predict_interval(X, coverage=0.8))
    assert whole.conformalize(X, Y) is whole
    assert whole.calibration_ is best.calibration_
    assert whole.score(X, Y) == scorer("crps")(best, X, Y)
    assert whole.dual_gap_ == best.dual_gap_
    assert whole.predict_distribution(X).mean().shape == (72,)
    assert "conformalize" in dir(whole)
    again = pickle.loads(pickle.dumps(whole))
    np.testing.assert_array_equal(again.predict_interval(X), whole.predict_interval(X))
    fresh = clone(whole)
    assert not hasattr(fresh, "dual_gap_")
    assert fresh.get_params()[f"search__estimator__{ALPHA}"] == 1e-3
    with pytest.raises(ValueError, match="which fits no best model; give one with refit=True"):
        TaskSearch(GridSearchCV(QUANTILES, {ALPHA: [1e-3]}, cv=FOLDS, refit=False)).fit(X, Y)
    with pytest.raises(TypeError, match=r"which is no search; give one around the model, such as GridSearchCV"):
        TaskSearch(QUANTILES).fit(X, Y)


def test_a_search_comes_back_from_a_file_and_answers_with_frames(tmp_path: Any) -> None:
    pd = pytest.importorskip("pandas")
    pytest.importorskip("safetensors")
    whole = TaskSearch(GridSearchCV(QUANTILES, {ALPHA: [1e-3]}, cv=2)).fit(X, Y)
    save(whole, tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_interval(X), whole.predict_interval(X))
    assert again.set_output(predict="pandas") is again
    assert again.predict(pd.DataFrame(X), quantiles=[0.1, 0.9]).columns.tolist() == ["q0.1", "q0.9"]


@pytest.mark.slow
def test_searches_over_steps_and_costs() -> None:
    search = GridSearchCV(COSTS, {"standardscaler": [StandardScaler(), "passthrough"]}, cv=3).fit(X, LABELS)
    assert search.predict_proba(X).shape == (72, 2)
    whole = TaskSearch(search).fit(X, LABELS)
    assert whole.predict(X, theta=[-0.5, 0.5]).shape == (72, 2)
    assert list(whole.classes_) == ["case", "none"]
    unusual = TaskSearch(GridSearchCV(SETS, {"infiniteoneclasssvm__gamma": [0.1, 1.0]}, scoring=_typical, cv=3)).fit(X)
    assert unusual.score_samples(X).shape == (72,)


def _typical(model: Any, X: Any, y: Any = None) -> float:
    return float(np.mean(model.score_samples(X)))


# ------------------------------------------------------------------------------------------------ cross-validation
def test_levels_of_the_constructor_are_predicted_out_of_fold() -> None:
    many = clone(QUANTILES).set_params(infinitequantileregressor__quantiles=[0.1, 0.5, 0.9])
    found = cross_val_predict(many, X, Y, cv=FOLDS)
    assert found.shape == (72, 3)
    for train, test in FOLDS.split(X):
        fold = clone(QUANTILES).fit(X[train], Y[train])
        np.testing.assert_array_equal(found[test], fold.predict(X[test], quantiles=[0.1, 0.5, 0.9]))


def test_probabilities_and_decisions_are_predicted_out_of_fold() -> None:
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    p = cross_val_predict(COSTS, X, LABELS, cv=folds, method="predict_proba")
    h = cross_val_predict(COSTS, X, LABELS, cv=folds, method="decision_function")
    for train, test in folds.split(X, LABELS):
        fold = clone(COSTS).fit(X[train], LABELS[train])
        np.testing.assert_array_equal(p[test], fold.predict_proba(X[test]))
        np.testing.assert_array_equal(h[test], fold.decision_function(X[test]))


@pytest.mark.slow
def test_scores_of_several_kinds_and_growing_samples() -> None:
    found = cross_validate(
        QUANTILES, X, Y, cv=FOLDS, scoring={"crps": scorer("crps"), "r2": "r2"}, return_estimator=True
    )
    for (_, test), model, score in zip(FOLDS.split(X), found["estimator"], found["test_crps"], strict=True):
        assert score == scorer("crps")(model, X[test], Y[test])
    sizes, _, scores = learning_curve(QUANTILES, X, Y, cv=FOLDS, train_sizes=[12, 48])
    assert sizes.tolist() == [12, 48]
    assert scores.mean(axis=1)[1] > scores.mean(axis=1)[0]


# ------------------------------------------------------------------------------------------------------ ensembles
@pytest.mark.slow
def test_ensembles_of_regressions() -> None:
    stack = StackingRegressor([("q", QUANTILES), ("line", LinearRegression())], LinearRegression(), cv=FOLDS).fit(X, Y)
    assert stack.score(X, Y) > 0.9
    both = VotingRegressor([("q", QUANTILES), ("line", LinearRegression())]).fit(X, Y)
    np.testing.assert_allclose(
        both.predict(X), 0.5 * (clone(QUANTILES).fit(X, Y).predict(X) + LinearRegression().fit(X, Y).predict(X))
    )
    bag = BaggingRegressor(QUANTILES, n_estimators=3, random_state=0).fit(X, Y)
    np.testing.assert_allclose(bag.predict(X), np.mean([model.predict(X) for model in bag.estimators_], axis=0))
    # each member can still be asked for levels
    assert np.mean([model.predict(X, quantiles=[0.1, 0.9]) for model in bag.estimators_], axis=0).shape == (72, 2)


@pytest.mark.slow
def test_ensembles_of_classifiers() -> None:
    others = [("c", COSTS), ("line", LogisticRegression())]
    assert StackingClassifier(others, LogisticRegression(), cv=3).fit(X, LABELS).score(X, LABELS) > 0.8
    soft = VotingClassifier(others, voting="soft").fit(X, LABELS)
    mean = 0.5 * sum(model.fit(X, LABELS).predict_proba(X) for model in (clone(COSTS), LogisticRegression()))
    np.testing.assert_allclose(soft.predict_proba(X), mean)


@pytest.mark.slow
def test_thresholds_and_calibration() -> None:
    fixed = FixedThresholdClassifier(COSTS, threshold=0.8, pos_label="none", response_method="predict_proba")
    fixed.fit(X, LABELS)
    p = clone(COSTS).fit(X, LABELS).predict_proba(X)[:, 1]
    np.testing.assert_array_equal(fixed.predict(X) == "none", p >= 0.8)
    tuned = TunedThresholdClassifierCV(COSTS, scoring="balanced_accuracy", cv=3).fit(X, LABELS)
    assert tuned.score(X, LABELS) > 0.7
    calibrated = CalibratedClassifierCV(COSTS, cv=3).fit(X, LABELS)
    np.testing.assert_allclose(calibrated.predict_proba(X).sum(axis=1), 1.0)


@pytest.mark.slow
def test_more_classes_and_more_targets() -> None:
    three = np.digitize(X[:, 0], [3.0, 7.0])
    found = OneVsRestClassifier(COSTS).fit(X, three)
    assert found.score(X, three) > 0.8
    two = MultiOutputRegressor(QUANTILES).fit(X, np.column_stack([Y, -Y]))
    assert two.predict(X).shape == (72, 2)
    assert two.estimators_[1].predict(X, quantiles=[0.1, 0.9]).shape == (72, 2)


def test_what_a_transformed_target_of_scikit_learn_does() -> None:
    price = np.exp(Y / 5.0)
    model = TransformedTargetRegressor(QUANTILES, func=np.log, inverse_func=np.exp).fit(X, price)
    inner = clone(QUANTILES).fit(X, np.log(price))
    np.testing.assert_allclose(model.predict(X), np.exp(inner.predict(X)))
    assert model.score(X, price) == pytest.approx(r2_score(price, model.predict(X)))  # of the median alone
    assert not hasattr(model, "predict_interval")


# -------------------------------------------------------------------------------------------------------- looking
def test_inspection_of_columns() -> None:
    model = clone(QUANTILES).fit(X, Y)
    importance = permutation_importance(model, X, Y, n_repeats=3, random_state=0).importances_mean
    assert importance[0] > 0.3 > abs(importance[1])
    assert partial_dependence(model, X, [0], grid_resolution=5)["average"].shape == (1, 5)


@pytest.mark.parametrize("model", [QUANTILES, COSTS, TaskSearch(GridSearchCV(QUANTILES, {ALPHA: [1.0]}))])
def test_a_notebook_shows_it(model: Any) -> None:
    for each in (clone(model), clone(model).fit(X, LABELS if model is COSTS else Y)):
        shown = estimator_html_repr(each)
        assert type(each).__name__ in shown
        assert "StandardScaler" in shown


# --------------------------------------------------------------------------------------- scikit-learn's own checks
SAME_AS_A_PIPELINE_OF_SCIKIT_LEARN = {
    "check_estimators_overwrite_params": "a pipeline fits the steps that it was given, not copies",
    "check_dont_overwrite_parameters": "a pipeline fits the steps that it was given, not copies",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator",
    [
        make_pipeline(StandardScaler(), InfiniteQuantileRegressor(n_nodes=5)),
        make_pipeline(StandardScaler(), InfiniteCostSensitiveClassifier(n_nodes=8, alpha=1e-2, alpha_bias=None)),
        make_pipeline(StandardScaler(), InfiniteOneClassSVM(n_nodes=10, alpha=1e-3)),
        TaskSearch(
            GridSearchCV(InfiniteQuantileRegressor(n_nodes=5), {"alpha": [0.01, 0.1]}, cv=2, error_score="raise")
        ),
    ],
)
def test_scikit_learn_accepts_it(estimator: Any) -> None:
    run_checks(estimator, SAME_AS_A_PIPELINE_OF_SCIKIT_LEARN if isinstance(estimator, TaskPipeline) else {})
