"""Laws of all tasks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from infinitask import (
    InfiniteCensoredQuantileRegressor,
    InfiniteCostSensitiveClassifier,
    InfiniteExpectileRegressor,
    InfiniteKernelRidge,
    InfiniteOneClassSVM,
    InfiniteQuantileRegressor,
    InfiniteQuantileRegressorCV,
    InfiniteSVR,
)
from infinitask.datasets import make_sine
from infinitask.kernels import Gaussian, TaskKernel
from infinitask.tasks import Learnt

X, Y = make_sine(60, random_state=0)
LABELS = np.where(Y > 0.2, 1, -1)
SMALL: dict[str, Any] = {"n_nodes": 8, "random_state": 0}


def models() -> dict[str, Any]:
    """A fitted model for each task, calibrated or sorted where the task can be."""
    event = np.arange(60) % 4 > 0
    return {
        "quantiles": InfiniteQuantileRegressor(**SMALL).fit(X, Y),
        "sorted quantiles": InfiniteQuantileRegressor(noncrossing="rearrange", **SMALL).fit(X, Y),
        "calibrated quantiles": InfiniteQuantileRegressorCV(kernels=["rbf"], **SMALL).fit(X, Y).best_estimator_,
        "censored quantiles": InfiniteCensoredQuantileRegressor(**SMALL).fit(X, Y - Y.min() + 0.1, event),
        "expectiles": InfiniteExpectileRegressor(**SMALL).fit(X, Y),
        "calibrated costs": InfiniteCostSensitiveClassifier(calibrated=True, **SMALL).fit(X, LABELS),
        "nested level sets": InfiniteOneClassSVM(exact_fractions="held-out", **SMALL).fit(X),
        "level sets": InfiniteOneClassSVM(nested=False, **SMALL).fit(X),
        "widths of a tube": InfiniteSVR(**SMALL).fit(X, Y),
        "ridges": InfiniteKernelRidge(**SMALL).fit(X, Y),
    }


@pytest.mark.filterwarnings("ignore")
def test_a_row_with_its_own_task_has_the_prediction_of_that_row_and_task() -> None:
    calibrations = 0
    for name, model in models().items():
        task = model.recipe_.task
        learnt = Learnt(model.field_, model.nodes_, getattr(model, task.calibrated_as, None))
        calibrations += learnt.calibration is not None
        low, high = (float(end[0]) for end in task.measure.support)
        theta = np.linspace(low + 0.1 * (high - low), high - 0.1 * (high - low), 7)[:, None]
        all_pairs, each = task.answer(learnt, X[:7], theta), task.answer_each(learnt, X[:7], theta)
        assert all_pairs.shape == (7, 7), name
        np.testing.assert_allclose(each, np.diagonal(all_pairs), rtol=1e-9, atol=1e-9, err_msg=name)
    assert calibrations >= 3, "quantiles, costs and level sets are calibrated, or little is tested"


class OwnKernel(TaskKernel):
    """A Gaussian that the library does not know."""

    strictly_positive = True

    def __init__(self, gamma: float = 1.0) -> None:
        self.gamma = gamma

    def _gram(self, S: Any, T: Any, orders: tuple[int, int]) -> Any:
        return Gaussian(self.gamma)(S, T, orders)


def test_a_kernel_that_the_library_does_not_know_has_the_same_free_bias() -> None:
    fits = [
        InfiniteCostSensitiveClassifier(task_kernel=kernel(gamma=2.0), calibrated=False, alpha=1e-2, **SMALL).fit(
            X, LABELS
        )
        for kernel in (Gaussian, OwnKernel)
    ]
    assert fits[0].alpha_bias_ == 0.0, "the bias is free, or nothing is tested"
    assert fits[1].objective_ == pytest.approx(fits[0].objective_, rel=1e-12)
    assert fits[1].n_iter_ == fits[0].n_iter_
