"""The hinge of many classes: its formula, its dual, and what it does for two classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from infinitask.calibration._class_probabilities import with_classes
from infinitask.losses import CostSensitiveHinge, MultiClassHinge, OneAgainstRest
from tests.support.each import each


def sample(K: int, n: int = 30, m: int = 5, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Tasks, labels as numbers of classes, targets and values of the fields."""
    rng = np.random.default_rng(seed)
    tasks = with_classes(rng.dirichlet(np.ones(K), size=m), K)
    label = rng.integers(K, size=n)
    h = rng.normal(size=(n, m * K))
    h[::2] = -1.0 / (K - 1) + 0.02 * h[::2]  # half of them close to the kink
    return tasks, label, MultiClassHinge(K).codes[label][:, None], h


def formula(K: int, tasks: np.ndarray, label: np.ndarray, h: np.ndarray) -> np.ndarray:
    price = 0.5 * K**2 * tasks[:, :K][:, label].T * (tasks[:, K] != label[:, None])
    return price * np.maximum(h + 1.0 / (K - 1), 0.0)


@each("K", [2, 3, 6])
def test_value_is_the_formula(K: int, xp: Any) -> None:
    tasks, label, y, h = sample(K)
    found = MultiClassHinge(K).value(*(xp.asarray(part) for part in (tasks, y, h)))
    np.testing.assert_allclose(np.asarray(found), formula(K, tasks, label, h), rtol=1e-12, atol=1e-14)


@each("kappa", [0.0, 0.3])
def test_lower_bound_is_the_dual_term_and_below_the_loss(kappa: float) -> None:
    tasks, _, y, h = sample(4)
    for loss in (MultiClassHinge(4), MultiClassHinge(4, kappa=0.2)):
        point = loss.pointwise(tasks, y, h, kappa)
        assert np.all(point.value - point.lower >= -1e-12)
        np.testing.assert_allclose(loss.dual(tasks, y, point.dual) - point.dual * h, point.lower, atol=1e-12)


def test_sums_of_the_hot_path_are_those_of_the_pairs() -> None:
    tasks, _, y, h = sample(3)
    loss, w = MultiClassHinge(3), np.full(tasks.shape[0], 1.0 / tasks.shape[0])
    point = loss.pointwise(tasks, y, h, 0.1)
    sums = loss.sums(tasks, y, h, w, 0.1)
    np.testing.assert_allclose(sums.value, point.value @ w, atol=1e-14)
    np.testing.assert_allclose(sums.lower, point.lower @ w, atol=1e-14)
    np.testing.assert_allclose(sums.dual, point.dual)


def test_two_classes_have_the_cost_sensitive_hinge() -> None:
    rng = np.random.default_rng(0)
    theta, sign, f = rng.uniform(-1.0, 1.0, size=6), np.array([[-1.0], [1.0]]), rng.normal(size=(2, 6))
    costs = np.column_stack([0.5 * (1.0 - theta), 0.5 * (1.0 + theta)])
    pairs = np.repeat(f, 2, axis=1) * np.tile([-1.0, 1.0], 6)  # f_1 = −f, f_2 = f
    both = MultiClassHinge(2).value(with_classes(costs, 2), sign, pairs).reshape(2, 6, 2)
    # pairs weigh half as much as their costs
    np.testing.assert_allclose(0.5 * both.sum(axis=2), CostSensitiveHinge().value(theta, sign, f), atol=1e-14)


@each("K", [3, 5])
def test_the_cheapest_class_is_the_best_answer_in_expectation(K: int) -> None:
    """Fisher consistency: among the corners, the one of the largest θ_k p_k has the smallest expected loss."""
    rng = np.random.default_rng(1)
    loss = MultiClassHinge(K)
    for _ in range(20):
        theta, p = rng.dirichlet(np.ones(K)), rng.dirichlet(np.ones(K))
        corners = np.where(np.eye(K, dtype=bool), 1.0, -1.0 / (K - 1))
        values = [
            p @ loss.value(with_classes(theta[None], K), loss.codes[:, None], np.tile(corner, (K, 1))).sum(axis=1)
            for corner in corners
        ]
        assert np.argmin(values) == np.argmax(theta * p)


@each("kappa", [0.0, 0.3])
def test_each_class_has_the_cost_sensitive_hinge_against_the_rest(kappa: float, xp: Any) -> None:
    rng, K = np.random.default_rng(0), 4
    theta, label, h = rng.uniform(-1.0, 1.0, size=(6, 1)), rng.integers(K, size=20), rng.normal(size=(20, 6 * K))
    loss, tasks = OneAgainstRest(K, kappa), with_classes(theta, K)
    y = loss.codes[label][:, None]
    found = np.asarray(loss.value(*(xp.asarray(part) for part in (tasks, y, h)))).reshape(20, 6, K)
    for k in range(K):
        sign = np.where(label == k, 1.0, -1.0)[:, None]
        own = CostSensitiveHinge(kappa).value(theta[:, 0], sign, h.reshape(20, 6, K)[:, :, k])
        np.testing.assert_allclose(found[:, :, k], np.sqrt(K) * own, atol=1e-14)
    point = loss.pointwise(tasks, y, h, 0.2)
    assert np.all(point.value - point.lower >= -1e-12)
    np.testing.assert_allclose(loss.dual(tasks, y, point.dual) - point.dual * h, point.lower, atol=1e-12)
    sums = loss.sums(tasks, y, h, np.full(6 * K, 1.0 / (6 * K)), 0.2)
    np.testing.assert_allclose(sums.value, point.value.mean(axis=1), atol=1e-14)
    np.testing.assert_allclose(sums.lower, point.lower.mean(axis=1), atol=1e-14)


def test_wrong_targets_and_parameters_are_refused() -> None:
    with pytest.raises(ValueError, match="other than its codes"):
        OneAgainstRest(3).check_targets(np.array([[0.5]]))
    with pytest.raises(ValueError, match="no classes"):
        OneAgainstRest(3).row(with_classes(np.zeros((1, 1)), 3), None)
    tasks, *_ = sample(3)
    with pytest.raises(ValueError, match="other than its codes"):
        MultiClassHinge(3).check_targets(np.array([[0.5]]))
    with pytest.raises(ValueError, match="no classes"):
        MultiClassHinge(3).row(tasks, None)
    with pytest.raises(ValueError, match="n_classes=1"):
        _ = MultiClassHinge(1).codes
