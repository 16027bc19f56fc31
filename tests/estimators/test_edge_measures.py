"""Fits with measures at the edge: points without weight, points that nearly coincide, kernels that are nearly flat."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from infinitask import InfiniteKernelRidge, InfiniteOneClassSVM, InfiniteQuantileRegressor
from infinitask.measures import Discrete, TruncatedNormal
from tests.support.estimator_cases import sample

X, Y = sample(20)


@pytest.mark.filterwarnings("error")
def test_a_free_bias_with_a_point_of_weight_zero() -> None:
    full = InfiniteQuantileRegressor(measure=Discrete([0.1, 0.5, 0.9], weights=[1.0, 0.0, 1.0]), alpha_bias=0.0)
    few = InfiniteQuantileRegressor(measure=Discrete([0.1, 0.9]), alpha_bias=0.0, quantiles=[0.1, 0.9])
    model = full.set_params(quantiles=[0.1, 0.9]).fit(X, Y)
    assert model.dual_gap_ <= model.tol
    np.testing.assert_array_equal(model.predict(X), few.fit(X, Y).predict(X))


def test_a_point_keeps_its_place_while_its_weight_is_positive() -> None:
    measure = Discrete([0.1, 0.5, 0.9], weights=[1.0, 1e-12, 1.0])
    model = InfiniteQuantileRegressor(measure=measure, n_nodes=3).fit(X, Y)
    assert model.nodes_.tolist() == [0.1, 0.5, 0.9]


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (InfiniteOneClassSVM(measure=Discrete([0.1, 0.5, 0.5 + 1e-9])), None),
        (InfiniteOneClassSVM(task_gamma=1e-12, n_nodes=8), None),
        (InfiniteOneClassSVM(task_gamma=1e-300, n_nodes=8), None),
        (InfiniteKernelRidge(measure=Discrete([-3.0, -1.0, -1.0 + 1e-9])), Y),
        (InfiniteKernelRidge(task_gamma=1e-300, n_nodes=8), Y),
        (InfiniteQuantileRegressor(measure=Discrete([0.1, 0.5, 0.5 + 1e-9])), Y),
        (InfiniteQuantileRegressor(task_gamma=1e-300, n_nodes=8), Y),
    ],
    ids=str,
)
def test_tasks_that_the_kernel_cannot_tell_apart_have_one_answer(model: Any, y: Any) -> None:
    model.fit(X, y)
    assert model.dual_gap_ <= model.tol
    assert np.all(np.isfinite(model.predict(X)))
    answers = getattr(model, "decision_function", model.predict)(X, model.nodes_[-2:])
    np.testing.assert_allclose(answers[:, 0], answers[:, 1], atol=1e-5 if model.task_gamma is None else 0.1)


def test_a_truncated_normal_measure_is_accepted() -> None:
    # its lower end was −1e-16, outside the levels of a quantile
    model = InfiniteQuantileRegressor(measure=TruncatedNormal(0.7, 0.3, 0.0, 1.0), n_nodes=8).fit(X, Y)
    assert np.all(np.isfinite(model.predict(X, [0.01, 0.99])))
