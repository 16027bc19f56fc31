"""Probabilities of many classes from their decisions, and how held-out rows change them."""

from __future__ import annotations

import numpy as np

from infinitask.calibration._class_probabilities import ClassScale, class_scores, with_classes
from infinitask.calibration._log_odds import multinomial_scaling
from infinitask.calibration._winning_fractions import away_from_zero, cost_points, winning_fractions
from tests.support.each import each


@each("K", [2, 3, 6])
def test_fractions_of_the_best_decisions_are_the_probabilities(K: int) -> None:
    points, p = cost_points(K), np.random.default_rng(0).dirichlet(np.ones(K), size=20)
    found = winning_fractions(points[None, :, :] * p[:, None, :])
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert np.max(np.abs(found - p)) < 0.02


def test_points_are_always_the_same_and_begin_with_equal_costs() -> None:
    np.testing.assert_array_equal(cost_points(4, 16), cost_points(4, 16))
    np.testing.assert_allclose(cost_points(4, 16)[0], 0.25)
    tasks = with_classes(cost_points(4, 16), 4)
    assert tasks.shape == (64, 5)
    np.testing.assert_array_equal(tasks[:4, 4], np.arange(4))


def test_no_probability_is_zero() -> None:
    p = away_from_zero(np.array([[1.0, 0.0, 0.0]]), 97)
    np.testing.assert_allclose(p.sum(), 1.0)
    np.testing.assert_allclose(p[0, 1], 1.0 / 200.0, rtol=0.05)


def test_scaling_finds_the_power_and_offsets_that_were_there() -> None:
    rng = np.random.default_rng(0)
    scores = tuple(rng.normal(size=(20_000, 3)) for _ in range(2))
    b = np.array([0.4, -0.1, -0.3])
    truth = ClassScale(0.7, 0.3, b)(scores, 1e9)
    label = np.array([rng.choice(3, p=row) for row in truth])
    weights, offsets = multinomial_scaling(scores, label, np.full(20_000, 1.0 / 20_000))
    np.testing.assert_allclose(weights, [0.7, 0.3], atol=0.05)
    np.testing.assert_allclose(offsets, b, atol=0.05)


def test_scores_of_the_best_decisions_are_the_log_odds() -> None:
    p = np.random.default_rng(0).dirichlet(np.ones(3), size=20)
    levels = np.linspace(-1.0, 1.0, 65)
    edge = p[:, None, :] - 0.5 * (1.0 - levels)[:, None]  # its sign is the best decision
    odds, mean = class_scores(levels, edge, 1e6)
    np.testing.assert_allclose(odds, np.log(p / (1.0 - p)), atol=1e-6)
    np.testing.assert_allclose(mean, 2.0 * p - 1.0, atol=1e-12)
    many = class_scores(levels, 0.0 * edge - 1.0, 98.0)[0]
    np.testing.assert_allclose(many, np.log(0.01 / 0.99))  # 98 rows know no rarer event


def test_rows_that_are_right_change_little_and_weights_are_rows() -> None:
    p = np.random.default_rng(1).dirichlet(np.ones(3), size=60)
    label = np.argmax(p, axis=1)
    omega = np.where(np.arange(60) < 20, 2.0, 1.0)
    twice = np.repeat(np.arange(60), omega.astype(int))
    one = multinomial_scaling((np.log(p),), label, omega / 80.0, 80.0)
    other = multinomial_scaling((np.log(p[twice]),), label[twice], np.full(80, 1.0 / 80.0))
    np.testing.assert_allclose(one[0], other[0], rtol=1e-3)
    np.testing.assert_allclose(one[1], other[1], atol=1e-3)
    few = multinomial_scaling((np.log(p[:2]),), label[:2], np.full(2, 0.5))
    assert abs(np.log(few[0][0])) < 1.0
    assert np.max(np.abs(few[1])) < 1.0
