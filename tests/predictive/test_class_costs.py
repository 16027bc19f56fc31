"""Probabilities of many classes from their decisions, and how held-out rows change them."""

from __future__ import annotations

import numpy as np

from infinitask.calibration._class_probabilities import (
    ShareScale,
    away_from_zero,
    cost_points,
    winning_fractions,
    with_classes,
)
from infinitask.calibration._log_odds import multinomial_scaling
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
    tasks = with_classes(cost_points(4, 16))
    assert tasks.shape == (64, 5)
    np.testing.assert_array_equal(tasks[:4, 4], np.arange(4))


def test_no_probability_is_zero() -> None:
    p = away_from_zero(np.array([[1.0, 0.0, 0.0]]), 97)
    np.testing.assert_allclose(p.sum(), 1.0)
    np.testing.assert_allclose(p[0, 1], 1.0 / 200.0, rtol=0.05)


def test_scaling_finds_the_power_and_offsets_that_were_there() -> None:
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), size=20_000)
    a, b = 0.7, np.array([0.4, -0.1, -0.3])
    truth = ShareScale(a, b)(p, 1e9)
    label = np.array([rng.choice(3, p=row) for row in truth])
    found = ShareScale(*multinomial_scaling(p, label, np.full(len(p), 1.0 / len(p))))
    np.testing.assert_allclose(found.power, a, atol=0.05)
    np.testing.assert_allclose(found.offsets, b, atol=0.05)


def test_rows_that_are_right_change_little_and_weights_are_rows() -> None:
    p = np.random.default_rng(1).dirichlet(np.ones(3), size=60)
    label = np.argmax(p, axis=1)
    omega = np.where(np.arange(60) < 20, 2.0, 1.0)
    twice = np.repeat(np.arange(60), omega.astype(int))
    one = multinomial_scaling(p, label, omega / 80.0, 80.0)
    other = multinomial_scaling(p[twice], label[twice], np.full(80, 1.0 / 80.0))
    np.testing.assert_allclose(one[0], other[0], rtol=1e-3)
    np.testing.assert_allclose(one[1], other[1], atol=1e-3)
    few = multinomial_scaling(p[:2], label[:2], np.full(2, 0.5))
    assert abs(np.log(few[0])) < 1.0
    assert np.max(np.abs(few[1])) < 1.0
