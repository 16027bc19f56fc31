"""Displays of the fit itself: which inputs matter, how the gap closed, what the tuning compared."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from infinitask import InfiniteQuantileRegressor
from infinitask.datasets import make_sine
from infinitask.plotting import ContestDisplay, ConvergenceDisplay, RelevanceDisplay


def test_bars_are_the_effects_of_the_features(houses: Any) -> None:
    display = RelevanceDisplay.from_estimator(houses.model)
    relevance = houses.model.relevance_
    names = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert names == [relevance.names[j] for j in relevance.order[::-1]]
    np.testing.assert_array_equal(display.ax_.lines[0].get_xdata(), np.sort(relevance.effect))


def test_features_that_are_not_shown_are_counted(houses: Any) -> None:
    display = RelevanceDisplay.from_estimator(houses.model, max_inputs=1)
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == ["area"]
    assert "1 more" in display.ax_.texts[0].get_text()


@pytest.mark.parametrize("name", ["sine", "moons", "clouds", "tuned"])
def test_the_last_gap_is_the_certified_one(name: str, request: pytest.FixtureRequest) -> None:
    model = request.getfixturevalue(name).model
    display = ConvergenceDisplay.from_estimator(model)
    assert display.gap[-1] == pytest.approx(model.dual_gap_, rel=1e-6, abs=1e-12)
    assert np.all(np.diff(display.gap[np.isfinite(display.gap)]) <= 1e-12)
    assert np.all(np.diff(display.evaluations) >= 0)
    assert display.tol == model.solution_.tol
    assert display.ax_.get_yscale() == "log"


@pytest.mark.parametrize("kind", ["kernels", "path"])
def test_the_contest_shows_the_losses_and_the_choice(tuned: Any, kind: str) -> None:
    display = ContestDisplay.from_estimator(tuned.model, kind=kind)
    results = tuned.model.cv_results_
    np.testing.assert_allclose(display.losses, results["losses"].mean(axis=2))
    assert np.isfinite(display.losses[display.best])
    assert display.best == tuple(results["best"])
    assert display.ignoring == pytest.approx(results["ignoring_x"].mean())
    (ring,) = (line for line in display.ax_.lines if line.get_label() == "chosen")
    drawn = ring.get_xdata()[0] if kind == "kernels" else ring.get_ydata()[0]
    assert drawn == pytest.approx(display.losses[display.best])
    if kind == "path":
        assert ring.get_xdata()[0] == pytest.approx(results["alphas"][display.best[1]])


def test_kernels_stand_in_the_order_of_their_losses(tuned: Any) -> None:
    display = ContestDisplay.from_estimator(tuned.model)
    (dots,) = (line for line in display.ax_.lines if line.get_label() == "best of a kernel")
    assert np.all(np.diff(dots.get_xdata()) <= 0.0)  # the best one on top
    few = ContestDisplay.from_estimator(tuned.model, max_kernels=1)
    assert len(few.ax_.get_yticks()) == 1


def test_kernels_that_lost_a_heat_are_counted() -> None:
    losses = np.array([[1.0, 0.5], [np.inf, np.inf], [0.8, np.inf]])
    display = ContestDisplay(["one", "two", "three"], losses, (0, 1), np.array([1.0, 0.1]), None, 1.0).plot()
    np.testing.assert_array_equal(display.order, [0, 2])
    assert any("1 more lost" in text.get_text() for text in display.ax_.get_legend().get_texts())


def test_a_choice_that_ignores_the_features_is_marked_at_their_line() -> None:
    losses = np.array([[np.inf, 1.2], [np.inf, 1.1]])
    contest = ContestDisplay(["one", "two"], losses, (1, 0), np.array([10.0, 0.1]), None, 1.0)
    assert contest.chosen_loss == 1.0
    for kind in ("kernels", "path"):
        contest.plot(kind=kind)
        (ring,) = (line for line in contest.ax_.lines if line.get_label() == "chosen")
        assert 1.0 in (ring.get_xdata()[0], ring.get_ydata()[0])
        contest.figure_.draw_without_rendering()


def test_level_sets_are_compared_by_their_areas(tuned_sets: Any) -> None:
    display = ContestDisplay.from_estimator(tuned_sets.model)
    np.testing.assert_array_equal(display.losses[:, 0], tuned_sets.model.cv_results_["areas"])
    assert display.losses[display.best] == display.losses.min()
    with pytest.raises(ValueError, match="path"):
        display.plot(kind="path")


def test_a_fit_that_proves_nothing_has_no_gap_to_draw() -> None:
    X, y = make_sine(60, random_state=0)
    solution = InfiniteQuantileRegressor(n_nodes=8).fit(X, y).solution_
    with pytest.raises(ValueError, match="proves no gap"):
        ConvergenceDisplay.from_solution(replace(solution, gap=float("inf")))
