"""The kernel that ties the fields of many classes."""

from __future__ import annotations

import numpy as np
import pytest

from infinitask.calibration._class_probabilities import with_classes
from infinitask.calibration._winning_fractions import cost_points
from infinitask.features import task_features
from infinitask.kernels import ClassTask, Diagonal, Gaussian
from tests.support.each import each


@each("K", [2, 3, 5])
def test_functions_of_all_classes_sum_to_zero(K: int) -> None:
    tasks = with_classes(cost_points(K, 7), K)
    kernel = ClassTask(Gaussian(), K).resolve(tasks)
    gram = kernel(tasks, tasks)
    np.testing.assert_allclose(np.diag(gram), 1.0)
    np.testing.assert_allclose(gram.reshape(-1, 7, K).sum(axis=2), 0.0, atol=1e-12)
    assert np.linalg.eigvalsh(gram)[0] > -1e-10
    assert task_features(kernel, tasks).rank <= 7 * (K - 1)


def test_fields_that_are_not_coupled_share_nothing() -> None:
    theta = np.linspace(-1.0, 1.0, 5)[:, None]
    tasks = with_classes(theta, 3)
    gram = ClassTask(Gaussian(0.7), 3, coupled=False)(tasks, tasks).reshape(5, 3, 5, 3)
    plain = Gaussian(0.7)(theta, theta)
    for k in range(3):
        np.testing.assert_allclose(gram[:, k, :, k], plain)
        np.testing.assert_array_equal(gram[:, k, :, (k + 1) % 3], 0.0)


def test_costs_decide_the_width_as_they_do_without_classes() -> None:
    costs = cost_points(4, 9)
    wrapped = ClassTask(Gaussian(), 4).resolve(with_classes(costs, 4))
    np.testing.assert_allclose(wrapped.kernel.gamma, Gaussian().resolve(costs).gamma)


def test_two_classes_have_one_function() -> None:
    tasks = with_classes(cost_points(2, 3), 2)
    gram = ClassTask(Gaussian(1.0), 2)(tasks, tasks)
    plain = Gaussian(1.0)(tasks[::2, :2], tasks[::2, :2])
    np.testing.assert_allclose(gram[1::2, 1::2], plain)
    np.testing.assert_allclose(gram[::2, 1::2], -plain)


def test_it_knows_whether_costs_share_anything_and_what_a_task_is() -> None:
    assert ClassTask(Diagonal(), 3).diagonal
    assert not ClassTask("rbf", 3).diagonal
    with pytest.raises(ValueError, match="number of the class"):
        ClassTask(Gaussian(1.0), 3)(np.array([0.1]), np.array([0.2]))
