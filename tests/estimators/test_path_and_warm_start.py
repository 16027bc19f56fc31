"""Paths and warm starts: the same answers as separate fits, for less."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, cross_val_score

from infinitask import (
    InfiniteCostSensitiveClassifier,
    InfiniteKernelRidge,
    InfiniteOneClassSVM,
    InfiniteQuantileRegressor,
    JointQuantileRegressor,
    QOneClassSVM,
    fit_path,
    score_path,
)
from infinitask.datasets import make_sine
from infinitask.features import Nystroem
from infinitask.kernels import RBF, Gaussian
from infinitask.tuning import InfiniteCostSensitiveClassifierCV, InfiniteOneClassSVMCV, InfiniteQuantileRegressorCV
from tests.support.names import case_name

ALPHAS = np.array([1e-3, 1e-1, 1e-2, 1e-4, 3e-4])


def data(n: int = 60, seed: int = 0) -> tuple[Any, Any]:
    return make_sine(n, random_state=seed)


def moons() -> tuple[Any, Any]:
    return make_moons(80, noise=0.3, random_state=0)


CASES = [
    (InfiniteQuantileRegressor(n_nodes=12), data()),
    (InfiniteQuantileRegressor(n_nodes=12, noncrossing=0.0, alpha_bias=1e-2), data()),
    (InfiniteQuantileRegressor(n_nodes=12, alpha_bias=0.0), data()),
    (InfiniteQuantileRegressor(n_nodes=12, bias_kernel=None, kernel="laplacian"), data()),
    (InfiniteQuantileRegressor(n_nodes=8, noncrossing="hard"), data(30)),
    (InfiniteQuantileRegressor(n_nodes=12, smoothing=0.5, features="nystroem", rank=20, random_state=0), data()),
    (JointQuantileRegressor(), data()),
    (InfiniteCostSensitiveClassifier(n_nodes=10), moons()),
    (InfiniteOneClassSVM(n_nodes=12), (moons()[0], None)),
]


@pytest.mark.quick(every=3)
@pytest.mark.parametrize(("estimator", "sample"), CASES, ids=lambda case: repr(case)[:60])
def test_a_path_gives_the_objectives_of_separate_fits(estimator: Any, sample: tuple[Any, Any]) -> None:
    X, y = sample
    path = fit_path(estimator, X, y, alphas=ALPHAS)
    assert [model.alpha for model in path] == list(ALPHAS)
    for model in path:
        alone = clone(model).fit(X, y)
        assert model.dual_gap_ <= model.tol
        # each certifies the other: both objectives are above the better lower bound
        lower = max(model.solution_.dual, alone.solution_.dual)
        scale = max(abs(model.objective_), abs(alone.objective_))
        assert min(model.objective_, alone.objective_) >= lower - 1e-9 * scale
        assert abs(model.objective_ - alone.objective_) <= 2.0 * model.tol * scale


def test_a_path_takes_fewer_evaluations() -> None:
    X, y = data(200)
    estimator = InfiniteQuantileRegressor(tol=1e-3, alpha_bias=None, gamma="median")
    alphas = np.logspace(0, -3, 20)
    path = fit_path(estimator, X, y, alphas=alphas)
    alone = [clone(model).fit(X, y) for model in path]
    assert sum(m.solution_.n_evaluations for m in path) < 0.7 * sum(m.solution_.n_evaluations for m in alone)


def test_a_path_leaves_the_estimator_alone_and_nothing_behind() -> None:
    X, y = data()
    estimator = InfiniteQuantileRegressor(n_nodes=10)
    models = fit_path(estimator, X, y, alphas=[1e-2, 1e-3])
    assert not hasattr(estimator, "field_")
    # a fit after the path is as if there had been none
    np.testing.assert_array_equal(
        InfiniteQuantileRegressor(n_nodes=10, alpha=1e-3).fit(X, y).predict(X),
        clone(models[1]).fit(X, y).predict(X),
    )


def test_an_error_on_the_path_ends_its_memory() -> None:
    X, y = data()
    with pytest.raises(ValueError, match="n_nodes"):
        fit_path(InfiniteQuantileRegressor(n_nodes=0), X, y, alphas=[1e-2, 1e-3])
    test_a_path_leaves_the_estimator_alone_and_nothing_behind()


def test_sample_weights_travel_along_the_path() -> None:
    X, y = data()
    weight = np.random.default_rng(0).uniform(0.0, 2.0, len(y))
    weight[:5] = 0.0
    estimator = InfiniteQuantileRegressor(n_nodes=10)
    path = fit_path(estimator, X, y, alphas=ALPHAS, sample_weight=weight)
    for model in path:
        alone = clone(model).fit(X, y, sample_weight=weight)
        assert model.objective_ == pytest.approx(alone.objective_, rel=2e-4)


@pytest.mark.parametrize("alphas", [[], [0.0], [-1.0, 1.0], [np.nan], 1.0, [[1.0]]])
def test_alphas_must_be_positive_numbers(alphas: Any) -> None:
    with pytest.raises(ValueError, match="alphas"):
        fit_path(InfiniteQuantileRegressor(), *data(), alphas=alphas)


def test_other_estimators_are_refused() -> None:
    from sklearn.linear_model import Ridge

    with pytest.raises(TypeError, match="Ridge"):
        fit_path(Ridge(), *data(), alphas=[1.0])


# -------------------------------------------------------------------------------------------------------------- folds
def test_scores_of_folds_are_those_of_separate_fits() -> None:
    X, y = data(90)
    folds = KFold(3, shuffle=True, random_state=0)
    estimator = InfiniteQuantileRegressor(n_nodes=8, tol=1e-5)
    alphas, gammas = [1e-2, 1e-4], [0.5, 5.0]
    scores = score_path(estimator, X, y, alphas=alphas, gammas=gammas, cv=folds)
    assert scores.shape == (2, 2, 3)
    for g, gamma in enumerate(gammas):
        for a, alpha in enumerate(alphas):
            alone = cross_val_score(clone(estimator).set_params(alpha=alpha, gamma=gamma), X, y, cv=folds)
            np.testing.assert_allclose(scores[g, a], alone, atol=1e-3)


def test_scores_without_gammas_and_with_a_scorer() -> None:
    X, y = moons()
    scores = score_path(
        InfiniteCostSensitiveClassifier(n_nodes=8), X, y, alphas=[1e-2, 1e-3], cv=4, scoring="balanced_accuracy"
    )
    assert scores.shape == (2, 4)
    assert np.all(np.mean(scores, axis=1) > 0.7)


def test_scores_with_a_precomputed_kernel() -> None:
    X, y = data(60)
    gram = np.exp(-2.0 * (X - X.T) ** 2)
    estimator = InfiniteQuantileRegressor(n_nodes=10, tol=1e-6, alpha_bias=None)
    folds = KFold(3)
    expected = score_path(clone(estimator).set_params(gamma=2.0), X, y, alphas=[1e-3], cv=folds)
    found = score_path(clone(estimator).set_params(kernel="precomputed"), gram, y, alphas=[1e-3], cv=folds)
    np.testing.assert_allclose(found, expected, atol=1e-3)


# --------------------------------------------------------------------------------------------------------- warm_start
def test_models_that_cannot_be_scored_are_refused_before_a_fit() -> None:
    X = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.raises(TypeError, match="score"):
        score_path(InfiniteOneClassSVM(n_nodes=5), X, alphas=[1.0])
    with pytest.raises(ValueError, match="takes no bandwidth"):
        score_path(InfiniteQuantileRegressor(kernel="precomputed"), X @ X.T, X[:, 0], alphas=[1.0], gammas=[1.0])


def test_a_warm_start_gives_the_same_answer_sooner() -> None:
    X, y = data(150)
    warm = InfiniteQuantileRegressor(warm_start=True, alpha=1e-3).fit(X, y)
    first = warm.solution_.n_evaluations
    warm.set_params(alpha=9e-4).fit(X, y)
    cold = InfiniteQuantileRegressor(alpha=9e-4).fit(X, y)
    assert warm.solution_.n_evaluations < first
    assert warm.objective_ == pytest.approx(cold.objective_, rel=2e-4)


@pytest.mark.quick(every=2)
@pytest.mark.parametrize(
    "change",
    [
        {"gamma": 3.0},
        {"kernel": "laplacian"},
        {"task_gamma": 4.0},
        {"n_nodes": 25},
        {"noncrossing": 0.0},
        {"alpha_bias": 1e-4},
        {"alpha_bias": 0.0},
        {"bias_kernel": None},
        {"smoothing": 0.3},
        {"tol": 1e-6},
        {"measure": (0.1, 0.9)},
    ],
    ids=str,
)
def test_a_warm_start_after_any_change_is_a_fit_of_its_own(change: dict[str, Any]) -> None:
    X, y = data()
    warm = InfiniteQuantileRegressor(warm_start=True, n_nodes=20).fit(X, y)
    warm.set_params(**change).fit(X, y)
    cold = InfiniteQuantileRegressor(n_nodes=20).set_params(**change).fit(X, y)
    assert warm.dual_gap_ <= warm.tol
    assert warm.objective_ == pytest.approx(cold.objective_, rel=2e-4)


def test_a_warm_start_with_other_data_is_a_fit_of_its_own() -> None:
    X, y = data()
    warm = InfiniteQuantileRegressor(warm_start=True, n_nodes=20).fit(X, y)
    for other in ((X, 2.0 * y + 1.0), (X[:40], y[:40]), (X + 0.1, y), (np.column_stack([X, X**2]), y)):
        warm.fit(*other)
        cold = InfiniteQuantileRegressor(n_nodes=20).fit(*other)
        assert warm.objective_ == pytest.approx(cold.objective_, rel=2e-4)
        np.testing.assert_allclose(warm.predict(other[0]), cold.predict(other[0]), atol=0.05)


def test_a_warm_start_may_find_features_that_are_too_coarse() -> None:
    """Features exact enough for a large λ are not for a small one: they are built anew."""
    X, y = data(100)
    warm = InfiniteQuantileRegressor(warm_start=True, alpha=1.0).fit(X, y)
    warm.set_params(alpha=1e-6).fit(X, y)
    cold = InfiniteQuantileRegressor(alpha=1e-6).fit(X, y)
    assert warm.objective_ == pytest.approx(cold.objective_, rel=2e-4)


def test_what_a_fit_leaves_to_the_next_does_not_travel() -> None:
    X, y = data()
    warm = InfiniteQuantileRegressor(warm_start=True, n_nodes=10).fit(X, y)
    cold = InfiniteQuantileRegressor(n_nodes=10).fit(X, y)
    assert b"Warm" not in pickle.dumps(warm)
    assert len(pickle.dumps(warm)) < 1.5 * len(pickle.dumps(cold)), "a few more features"
    again = pickle.loads(pickle.dumps(warm))
    np.testing.assert_array_equal(again.predict(X), warm.predict(X))
    assert again.fit(X, y).dual_gap_ <= 1e-4


@pytest.mark.quick(every=2)
@pytest.mark.parametrize(
    ("parameters", "change"),
    [
        ({"kernel": RBF(gamma=0.1)}, {"kernel__gamma": 200.0}),
        ({"task_kernel": Gaussian(gamma=0.1)}, {"task_kernel__gamma": 30.0}),
        ({"features": Nystroem(rank=4), "random_state": 0}, {"features__rank": 20}),
        ({"features": "nystroem", "rank": 5, "random_state": 0}, {"random_state": 1}),
        ({"quadrature": "monte-carlo", "random_state": 0}, {"random_state": 1}),
    ],
    ids=str,
)
def test_a_warm_start_sees_parameters_changed_in_place(parameters: dict[str, Any], change: dict[str, Any]) -> None:
    X, y = data()
    fixed = {"n_nodes": 20, "alpha": 1e-3}
    warm = InfiniteQuantileRegressor(warm_start=True, **fixed, **clone_all(parameters)).fit(X, y)
    before = warm.objective_
    warm.set_params(**change).fit(X, y)
    cold = InfiniteQuantileRegressor(**fixed, **clone_all(parameters)).set_params(**change).fit(X, y)
    assert abs(before - cold.objective_) > 1e-3 * cold.objective_, "the change must matter"
    assert warm.objective_ == pytest.approx(cold.objective_, rel=2e-4)


def clone_all(parameters: dict[str, Any]) -> dict[str, Any]:
    return {name: clone(value, safe=False) for name, value in parameters.items()}


def test_a_warm_start_sees_arrays_changed_in_place() -> None:
    X, y = data()
    y = y.copy()
    gram = np.exp(-0.1 * (X - X.T) ** 2)
    warm = InfiniteQuantileRegressor(warm_start=True, n_nodes=10, kernel="precomputed").fit(gram, y)
    gram[:] = np.exp(-20.0 * (X - X.T) ** 2)
    y *= 2.0
    cold = InfiniteQuantileRegressor(n_nodes=10, kernel="precomputed")
    assert warm.fit(gram, y).objective_ == pytest.approx(cold.fit(gram, y).objective_, rel=2e-4)


def test_a_warm_start_where_the_loss_was_smooth_enough_and_is_not_any_more() -> None:
    X, y = data()
    warm = InfiniteQuantileRegressor(smoothing=0.3, noncrossing=0.0, warm_start=True, n_nodes=20)
    warm.fit(X, 0.01 * y).fit(X, 30.0 * y)
    assert warm.dual_gap_ <= 1e-4
    assert warm.solution_.n_evaluations < 500


def test_a_warm_start_measures_the_gap_against_its_own_problem() -> None:
    """A constant target: with a ridge on the bias the objective is large, without it tiny, and so is the gap."""
    X, y = data()
    y = 1000.0 + 1e-5 * y
    warm = InfiniteQuantileRegressor(warm_start=True, n_nodes=10, alpha_bias=1e-3, bias_kernel="constant")
    with pytest.warns(UserWarning, match="ridge"):
        warm.fit(X, y)
    warm.set_params(alpha_bias=0.0).fit(X, y)
    solution = warm.solution_
    assert solution.objective - solution.dual <= 1.01e-4 * abs(solution.objective)


def test_a_path_of_warm_estimators_is_a_path() -> None:
    X, y = data(100)
    counts = [
        sum(m.solution_.n_evaluations for m in fit_path(estimator, X, y, alphas=ALPHAS))
        for estimator in (InfiniteQuantileRegressor(), InfiniteQuantileRegressor(warm_start=True))
    ]
    assert counts[0] == counts[1]


@pytest.mark.parametrize(
    "estimator",
    [
        InfiniteQuantileRegressorCV(),
        InfiniteCostSensitiveClassifierCV(),
        InfiniteOneClassSVMCV(),
        InfiniteKernelRidge(),
        QOneClassSVM(),
        InfiniteQuantileRegressor,
        "path",
    ],
    ids=case_name,
)
def test_an_estimator_without_a_path_is_refused_by_a_sentence(estimator: Any) -> None:
    X, y = data()
    with pytest.raises(TypeError, match="a path needs an estimator of infinitask with a parameter alpha"):
        fit_path(estimator, X, y, alphas=[1.0, 0.1])
    with pytest.raises(TypeError, match="a path needs an estimator of infinitask with a parameter alpha"):
        score_path(estimator, X, y, alphas=[1.0, 0.1])


@pytest.mark.parametrize(
    "kernel", [RBF(gamma=2.0), "linear", "precomputed", lambda a, b: a @ b.T, RBF() + RBF()], ids=case_name
)
def test_gammas_that_would_be_ignored_are_refused(kernel: Any) -> None:
    X, y = data()
    with pytest.raises(ValueError, match="takes no bandwidth"):
        score_path(InfiniteQuantileRegressor(kernel=kernel), X, y, alphas=[1e-2], gammas=[1.0, 10.0])


@pytest.mark.quick("threading")  # processes import everything again
@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_scores_do_not_depend_on_the_number_of_jobs(backend: str) -> None:
    X, y = data(90)
    options: dict[str, Any] = {"alphas": [1e-1, 1e-3], "gammas": [1.0, 10.0], "cv": 3}
    model = InfiniteQuantileRegressor(n_nodes=8)
    with parallel_config(backend):
        found = score_path(model, X, y, **options, n_jobs=2)
    np.testing.assert_array_equal(score_path(model, X, y, **options), found)


def test_fits_that_miss_the_gap_are_counted() -> None:
    X, y = data()
    with pytest.warns(ConvergenceWarning, match="4 of 4 fits did not reach the duality gap"):
        score_path(InfiniteQuantileRegressor(n_nodes=8, max_iter=2, tol=1e-9), X, y, alphas=[1e-3, 1e-4], cv=2)


@pytest.mark.quick(every=2)
@pytest.mark.parametrize(
    "options",
    [{}, {"gamma": "scale"}, {"gamma": 3.0}, {"features": "nystroem", "rank": 15}, {"kernel": RBF() + RBF(gamma=1.0)}],
    ids=case_name,
)
def test_scores_are_those_of_scikit_learn(options: dict[str, Any]) -> None:
    X, y = data(90)
    model = InfiniteQuantileRegressor(n_nodes=8, alpha=1e-3, random_state=0, **options)
    folds = KFold(3, shuffle=True, random_state=0)
    found = score_path(model, X, y, alphas=[1e-3], cv=folds)[0]
    np.testing.assert_allclose(found, cross_val_score(model, X, y, cv=folds), atol=2e-3)


def test_a_flag_may_be_a_number_and_a_level_a_flag() -> None:
    X, y = data(30)
    model = InfiniteQuantileRegressor(n_nodes=5, verbose=False, warm_start=1).fit(X, y)
    assert model.fit(X, y).dual_gap_ <= 1e-4
