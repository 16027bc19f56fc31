"""What displays of level sets draw is what the model says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from infinitask.metrics import mass_volume_curve, theta_property_deviation
from infinitask.metrics._level_sets import MassVolumeCurve
from infinitask.plotting import LevelSetDisplay, MassVolumeDisplay, ThetaPropertyDisplay


def test_the_sets_are_those_of_the_decision_function(clouds: Any) -> None:
    display = LevelSetDisplay.from_estimator(clouds.model, clouds.X, nu=[0.5, 0.1], grid=30)
    points = np.column_stack([display.a.ravel(), display.b.ravel()])
    np.testing.assert_array_equal(display.values.reshape(-1, 2), clouds.model.decision_function(points, [0.1, 0.5]))
    np.testing.assert_array_equal(display.nu, [0.1, 0.5])
    assert display.a.min() < clouds.X[:, 0].min() < clouds.X[:, 0].max() < display.a.max()


def test_fractions_below_those_of_the_model_are_left_out(clouds: Any) -> None:
    from infinitask import InfiniteOneClassSVM

    model = InfiniteOneClassSVM(n_nodes=12, measure=(0.3, 1.0)).fit(clouds.X)
    display = LevelSetDisplay.from_estimator(model, clouds.X, grid=20)
    np.testing.assert_allclose(display.nu, [0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9])


def test_the_fractions_outside_are_those_of_predict(clouds: Any) -> None:
    display = ThetaPropertyDisplay.from_estimator(clouds.model, clouds.X, nu=[0.6, 0.2])
    inside = clouds.model.predict(clouds.X, [0.2, 0.6])
    np.testing.assert_array_equal(display.outside, np.mean(inside == -1, axis=0))
    deviation = theta_property_deviation([0.2, 0.6], inside)
    assert np.max(np.abs(display.outside - display.nu)) == pytest.approx(deviation)
    line = display.ax_.lines[-1]
    np.testing.assert_array_equal(line.get_xdata(), [0.2, 0.6])


def test_fractions_begin_at_the_smallest_of_the_model(clouds: Any) -> None:
    from infinitask import InfiniteOneClassSVM

    model = InfiniteOneClassSVM(n_nodes=8, alpha=1e-2, measure=(0.01, 1.0)).fit(clouds.X)
    display = ThetaPropertyDisplay.from_estimator(model, clouds.X)
    np.testing.assert_allclose(display.nu, [0.01, *np.arange(5, 100, 5) / 100])
    assert display.ax_.get_xlim() == display.ax_.get_ylim() == (0.0, 1.0)


def test_the_axes_are_those_of_the_fractions_asked_for(clouds: Any) -> None:
    for nu in ([0.05, 0.06, 0.08], [0.9, 0.95], [0.3]):
        display = ThetaPropertyDisplay.from_estimator(clouds.model, clouds.X, nu=nu)
        low, high = display.ax_.get_xlim()
        assert display.ax_.get_ylim() == (low, high)
        shown = np.concatenate([display.nu, display.outside])
        assert 0.0 <= low <= shown.min() <= shown.max() <= high <= 1.0
        assert high - low <= 1.3 * max(np.ptp(shown), 0.02)


def test_bands_of_the_fractions_have_their_coverage() -> None:
    rng, nu = np.random.default_rng(0), np.array([0.05, 0.5])
    uniform = rng.uniform(size=(4000, 80))
    display = ThetaPropertyDisplay.from_predictions(uniform[0][:, None] > nu, nu, confidence=0.9)
    outside = np.mean(uniform[:, :, None] <= nu, axis=1)
    covered = np.mean((display.low <= outside) & (outside <= display.high), axis=0)
    assert np.all(covered > 0.88)
    assert np.all(covered < 0.99)


def test_the_mass_volume_curve_is_a_tuple_with_names(clouds: Any) -> None:
    curve = clouds.model.mass_volume_curve(clouds.X, n_samples=200, random_state=0)
    assert isinstance(curve, MassVolumeCurve)
    mass, volume, thresholds = curve
    assert mass is curve.mass
    assert volume is curve[1]
    assert len(curve) == 3
    assert thresholds.shape == mass.shape
    assert repr(curve).startswith(f"MassVolumeCurve({mass.size} sets")
    np.testing.assert_array_equal(
        mass, mass_volume_curve(clouds.model.score_samples, clouds.X, n_samples=200, random_state=0).mass
    )


def test_the_curve_that_is_drawn_begins_at_nothing_and_rises(clouds: Any) -> None:
    display = MassVolumeDisplay.from_estimator(clouds.model, clouds.X, n_samples=500, random_state=0)
    (line,) = display.ax_.lines
    assert line.get_xdata()[0] == line.get_ydata()[0] == 0.0
    np.testing.assert_array_equal(line.get_ydata()[1:], display.curve.volume)
    assert np.all(np.diff(line.get_ydata()) >= 0.0)
    second = MassVolumeDisplay.from_predictions(
        lambda Z: Z[:, 0], clouds.X, n_samples=500, random_state=0, name="first input", ax=display.ax_
    )
    styles = {line.get_linestyle() for line in second.ax_.lines}
    assert len(styles) == 2
    assert display.curve.plot(second.ax_, name="again").ax_ is display.ax_
