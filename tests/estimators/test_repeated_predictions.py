"""Predictions are quick without a change in what is checked, and without a memory that shows."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from infinitask import InfiniteOneClassSVM, InfiniteQuantileRegressor, JointQuantileRegressor
from tests.support.each import each
from tests.support.estimator_cases import ESTIMATORS, LEVELS, Case, sample

CASES = [Case(cls) for cls in ESTIMATORS]
X, Y = sample()


@pytest.fixture(scope="module", params=CASES, ids=lambda case: case.cls.__name__)
def fitted(request: pytest.FixtureRequest) -> tuple[Case, Any]:
    return request.param, request.param.fit(X, Y)


def test_arrays_that_need_no_check_are_answered_like_others(fitted: tuple[Case, Any]) -> None:
    case, model = fitted
    expected = case.values(model, X)
    assert model._is_plain(X)
    for other in (X.tolist(), np.asfortranarray(X), X.astype(">f8")):
        np.testing.assert_allclose(case.values(model, other), expected, atol=1e-13)
    for other in (X.tolist(), X.astype(np.float32), X[0], X[:0], X[:, :1], X.astype(">f8"), X.astype(object)):
        assert not model._is_plain(other)


@each("wrong", [np.nan, np.inf, -np.inf, 1e120, -1e120])
def test_one_wrong_number_is_found(fitted: tuple[Case, Any], wrong: float) -> None:
    case, model = fitted
    new = X.copy()
    new[7, 1] = wrong
    with pytest.raises(ValueError, match=r"NaN|infinity|magnitude"):
        case.values(model, new)


def test_a_single_row_is_answered_as_among_others(fitted: tuple[Case, Any]) -> None:
    case, model = fitted
    together = case.values(model, X)
    alone = np.concatenate([case.values(model, X[i : i + 1]) for i in range(len(X))])
    np.testing.assert_allclose(alone, together, atol=1e-10)


def test_the_tasks_of_the_caller_stay_the_callers(fitted: tuple[Case, Any]) -> None:
    case, model = fitted
    theta = np.array(LEVELS)
    first = case.values(model, X, theta)
    theta[:] = LEVELS[::-1]
    np.testing.assert_allclose(case.values(model, X, theta), first[:, ::-1], atol=1e-12)
    np.testing.assert_array_equal(case.values(model, X, LEVELS), first)
    np.testing.assert_array_equal(theta, LEVELS[::-1])


def test_one_task_and_a_list_of_one_differ_in_shape_only(fitted: tuple[Case, Any]) -> None:
    case, model = fitted
    for _ in range(2):  # the second time from memory
        flat, column = case.values(model, X, 0.5), case.values(model, X, [0.5])
        assert (flat.shape, column.shape) == ((40,), (40, 1))
        np.testing.assert_array_equal(flat, column[:, 0])


def test_tasks_are_refused_however_often_they_are_asked_for(fitted: tuple[Case, Any]) -> None:
    case, model = fitted
    for wrong in (7.0, [0.5, np.nan], [[0.1, 0.5]], [], "half"):
        for _ in range(2):
            with pytest.raises(ValueError, match=r"was given|contains"):
                case.values(model, X, wrong)


def test_what_one_method_allows_is_not_allowed_to_another() -> None:
    model = InfiniteQuantileRegressor(n_nodes=8).fit(X, Y)
    model._tasks([0.0, 1.0], "theta")
    with pytest.raises(ValueError, match="strictly between"):
        model.predict(X, [0.0, 1.0])


def test_asking_leaves_no_trace_in_the_estimator(fitted: tuple[Case, Any]) -> None:
    case, model = fitted
    names, size = set(vars(model)), len(pickle.dumps(model))
    case.values(model, X, np.linspace(0.1, 0.9, 500))
    assert set(vars(model)) == names
    assert len(pickle.dumps(model)) == size


def test_names_of_columns_are_still_compared() -> None:
    pandas = pytest.importorskip("pandas")
    model = InfiniteQuantileRegressor(n_nodes=8).fit(pandas.DataFrame(X, columns=["a", "b"]), Y)
    with pytest.warns(UserWarning, match="feature names"):
        model.predict(X)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(pandas.DataFrame(X, columns=["a", "c"]))


@each("single", [True, False])
def test_rearranged_answers_have_the_shape_of_the_question(single: bool) -> None:
    model = InfiniteQuantileRegressor(n_nodes=8, noncrossing="rearrange").fit(X, Y)
    asked: Any = 0.3 if single else [0.3, 0.7]
    assert model.predict(X, asked).shape == ((40,) if single else (40, 2))
    with pytest.raises(ValueError, match="strictly between"):
        model.predict(X, [0.0, 0.5])


def test_a_refit_forgets_what_was_asked() -> None:
    model = InfiniteQuantileRegressor(n_nodes=8).fit(X, Y)
    before = model.predict(X, LEVELS)
    np.testing.assert_allclose(model.fit(X, Y + 1.0).predict(X, LEVELS).mean() - before.mean(), 1.0, atol=0.2)
    narrow = model.set_params(measure=(0.4, 0.6)).fit(X, Y)
    with pytest.raises(ValueError, match="outside Θ"):
        narrow.predict(X, LEVELS)


def test_finite_models_know_their_tasks_only() -> None:
    model = JointQuantileRegressor(quantiles=[0.1, 0.9]).fit(X, Y)
    for _ in range(2):
        assert model.predict(X, [0.9, 0.1]).shape == (40, 2)
        with pytest.raises(ValueError, match="nothing between"):
            model.predict(X, [0.5])


@each("nested", [True, False])
def test_scores_of_single_rows_are_those_of_all(nested: bool) -> None:
    model = InfiniteOneClassSVM(n_nodes=8, nested=nested).fit(X)
    alone = [model.score_samples(X[i : i + 1])[0] for i in range(10)]
    np.testing.assert_allclose(alone, model.score_samples(X)[:10], atol=1e-8)
