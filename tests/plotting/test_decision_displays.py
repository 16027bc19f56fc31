"""What displays of decisions draw is what the classifier says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from infinitask.metrics import sensitivity_specificity
from infinitask.plotting import (
    DecisionBoundaryDisplay,
    ExpectedCostDisplay,
    NetBenefitDisplay,
    ThetaROCDisplay,
)
from infinitask.predictive import ROCCurve


def test_the_boundary_is_where_the_decision_changes(moons: Any) -> None:
    display = DecisionBoundaryDisplay.from_estimator(moons.model, moons.X, moons.y, theta=[0.5, -0.5], grid=40)
    points = np.column_stack([display.a.ravel(), display.b.ravel()])
    expected = moons.model.decision_function(points, [-0.5, 0.5])
    np.testing.assert_array_equal(display.values.reshape(-1, 2), expected)
    np.testing.assert_array_equal(display.theta, [-0.5, 0.5])
    # every drawn vertex lies between points of either class
    vertices = display.ax_.collections[0].get_paths()[0].vertices
    spread = np.abs(moons.model.decision_function(points, -0.5)).max()
    assert np.all(np.abs(moons.model.decision_function(vertices, -0.5)) < 0.05 * spread)
    np.testing.assert_array_equal(display.positive, moons.y == 1)


def test_the_curve_of_policies_goes_from_no_alarm_to_an_alarm_for_all(moons: Any) -> None:
    display = ThetaROCDisplay.from_estimator(moons.model, moons.X, moons.y)
    np.testing.assert_array_equal(display.line[:, [0, -1]], [[0.0, 1.0], [0.0, 1.0]])
    assert np.all(np.diff(display.line[0]) >= 0.0)
    curve = moons.model.roc_curve(moons.X, moons.y)
    np.testing.assert_array_equal(display.curve.tpr, curve.tpr)
    assert display.curve.area == curve.area
    assert f"{curve.area:.3f}" in display.ax_.get_legend().get_texts()[1].get_text()


@pytest.mark.parametrize("theta", [None, 0.5, -0.8])
def test_the_chosen_policy_is_marked(moons: Any, theta: float | None) -> None:
    display = ThetaROCDisplay.from_estimator(moons.model, moons.X, moons.y, theta=theta)
    labels = moons.model.predict(moons.X, 0.0 if theta is None else display.curve.theta[display.position])
    sensitivity, specificity = sensitivity_specificity(moons.y, labels)
    (ring,) = (line for line in display.ax_.lines if "chosen" in str(line.get_label()))
    assert ring.get_ydata()[0] == pytest.approx(float(sensitivity))
    assert ring.get_xdata()[0] == pytest.approx(1.0 - float(specificity))


def test_several_policies_are_marked_and_named(moons: Any) -> None:
    theta = [0.5, -0.8, 0.0]
    display = ThetaROCDisplay.from_estimator(moons.model, moons.X, moons.y, theta=theta)
    curve = display.curve
    marks = [line for line in display.ax_.lines if "chosen" in str(line.get_label())]
    assert [line.get_label() for line in marks] == [f"chosen trade-off {curve.theta[k]:.3g}" for k in display.positions]
    np.testing.assert_allclose(curve.theta[display.positions], theta, atol=np.diff(curve.theta).max())
    for line, k in zip(marks, display.positions, strict=True):
        assert (line.get_xdata()[0], line.get_ydata()[0]) == (curve.fpr[k], curve.tpr[k])
    assert len({line.get_marker() for line in marks}) == 3
    assert curve.plot(chosen=theta).positions == display.positions
    assert curve.plot().positions == []


@pytest.mark.parametrize(("theta", "words"), [([0.1, 3.0], "contains 3"), ("high", "theta"), ([[0.1]], "theta")])
def test_a_wrong_policy_is_a_sentence(moons: Any, theta: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ThetaROCDisplay.from_estimator(moons.model, moons.X, moons.y, theta=theta)
    with pytest.raises(ValueError, match="chosen"):
        moons.model.roc_curve(moons.X, moons.y).plot(chosen=theta)


def test_policies_of_known_labels(moons: Any) -> None:
    theta = np.array([0.6, -0.6])
    labels = moons.model.predict(moons.X, theta)
    display = ThetaROCDisplay.from_predictions(moons.y, labels, theta, chosen=0.6)
    rates = sensitivity_specificity(moons.y, labels)
    np.testing.assert_allclose(display.curve.tpr, rates.sensitivity[::-1])
    np.testing.assert_allclose(display.curve.fpr, 1.0 - rates.specificity[::-1])
    assert display.position == 1
    drawn = rates.plot(theta, chosen=0.6)
    np.testing.assert_allclose(drawn.line, display.line)


def test_expected_costs_are_those_of_the_model(moons: Any) -> None:
    display = ExpectedCostDisplay.from_estimator(moons.model, moons.X, moons.y)
    lines = {line.get_label(): line.get_ydata() for line in display.ax_.lines}
    curve = moons.model.cost_curve(moons.X, moons.y)
    np.testing.assert_array_equal(lines["model"], curve.cost)
    np.testing.assert_array_equal(lines["alarm for all"], curve.cost_all_positive)
    np.testing.assert_array_equal(lines["alarm for none"], curve.cost_all_negative)


def test_net_benefit_is_that_of_the_model(moons: Any) -> None:
    display = NetBenefitDisplay.from_estimator(moons.model, moons.X, moons.y)
    (line,) = (line for line in display.ax_.lines if line.get_label() == "model")
    curve = moons.model.net_benefit_curve(moons.X, moons.y)
    np.testing.assert_array_equal(line.get_xdata(), curve.threshold)
    np.testing.assert_array_equal(line.get_ydata(), curve.net_benefit)
    low, high = display.ax_.get_ylim()
    assert low < 0.0 < curve.net_benefit.max() < high


@pytest.mark.parametrize(
    ("method", "display"),
    [
        ("roc_curve", ThetaROCDisplay),
        ("cost_curve", ExpectedCostDisplay),
        ("net_benefit_curve", NetBenefitDisplay),
    ],
)
def test_a_curve_draws_itself(moons: Any, method: str, display: type) -> None:
    curve = getattr(moons.model, method)(moons.X, moons.y)
    drawn = curve.plot()
    assert isinstance(drawn, display)
    assert drawn.curve is curve


def test_sensitivity_and_specificity_are_a_tuple_with_names() -> None:
    rates = sensitivity_specificity([0, 0, 1, 1], [[0, 1], [0, 0], [0, 1], [1, 1]])
    sensitivity, specificity = rates
    assert rates.sensitivity is sensitivity
    assert rates[1] is specificity
    with pytest.raises(AttributeError):
        rates.sensitivity = specificity  # type: ignore[misc]


def test_a_curve_of_policies_that_fall_back_is_drawn_in_order_of_false_alarms() -> None:
    curve = ROCCurve(np.array([-0.5, 0.0, 0.5]), fpr=np.array([0.2, 0.1, 0.6]), tpr=np.array([0.5, 0.6, 0.9]))
    line = ThetaROCDisplay(curve).plot().line
    np.testing.assert_array_equal(line[0], [0.0, 0.1, 0.2, 0.6, 1.0])
