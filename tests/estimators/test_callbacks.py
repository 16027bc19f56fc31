"""Callbacks of scikit-learn are told of a fit: once for each share of the way that the gap has fallen."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from infinitask import (
    InfiniteFunctionRegressor,
    InfiniteOneClassSVM,
    InfiniteQuantileRegressor,
    InfiniteQuantileRegressorCV,
    load,
    make_pipeline,
    save,
)
from infinitask._base.events import Solving
from infinitask.datasets import make_sine
from infinitask.estimators._callbacks import STEPS, GapSteps

pytest.importorskip("sklearn.callback", reason="this release of scikit-learn has no callbacks")

X, Y = make_sine(40, random_state=0)


class Diary:
    """Writes down what it is told; it goes with the estimators of a search."""

    max_propagation_depth = None

    def __init__(self) -> None:
        self.lines: list[tuple[str, str, int]] = []
        self.fitted: list[Any] = []

    def setup(self, estimator: Any, context: Any) -> None:
        self.lines.append(("setup", context.task_name, 0))

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        self.lines.append(("begin", context.task_name, context.task_id))

    def on_fit_task_end(self, estimator: Any, context: Any, *, fitted_estimator: Any = None) -> None:
        self.lines.append(("end", context.task_name, context.task_id))
        if fitted_estimator is not None:
            self.fitted.append(fitted_estimator)

    def teardown(self, estimator: Any, context: Any) -> None:
        self.lines.append(("teardown", context.task_name, 0))


class Steps:
    """A context that counts its subtasks."""

    def __init__(self) -> None:
        self.count = 0

    def subcontext(self, task_name: str) -> Any:
        self.count += 1
        return self

    def call_on_fit_task_begin(self, estimator: Any) -> None: ...

    def call_on_fit_task_end(self, estimator: Any) -> None: ...


def test_steps_are_equal_shares_of_the_way_of_the_logarithm() -> None:
    context = Steps()
    steps = GapSteps(None, context)
    steps(Solving(1, np.inf, 1e-4))
    assert context.count == 0
    told = ((1.0, 0), (0.5, 1), (9e-2, 5), (9e-2, 5), (1.1e-2, 9), (9e-4, 15), (2e-5, STEPS), (0.0, STEPS))
    for gap, expected in told:
        steps(Solving(1, gap, 1e-4))
        assert context.count == expected
    at_once = Steps()
    GapSteps(None, at_once)(Solving(1, 1e-9, 1e-4))
    assert at_once.count == STEPS


def test_a_fit_tells_how_far_it_is_and_changes_nothing() -> None:
    diary = Diary()
    plain = InfiniteQuantileRegressor(n_nodes=6, alpha=0.01)
    told = clone(plain).set_callbacks(diary).fit(X, Y)
    np.testing.assert_array_equal(told.predict(X), plain.fit(X, Y).predict(X))
    assert diary.lines[:2] == [("setup", "fit", 0), ("begin", "fit", 0)]
    assert diary.lines[-2:] == [("end", "fit", 0), ("teardown", "fit", 0)]
    inner = diary.lines[2:-2]
    assert inner == [(word, "gap", k) for k in range(STEPS) for word in ("begin", "end")]
    np.testing.assert_array_equal(diary.fitted[-1].predict(X), told.predict(X))


def test_a_fit_that_fails_is_torn_down() -> None:
    diary = Diary()
    with pytest.raises(ValueError, match="alpha"):
        InfiniteQuantileRegressor(alpha=-1.0).set_callbacks(diary).fit(X, Y)
    assert [word for word, *_ in diary.lines] == ["setup", "begin", "teardown"]


def test_a_search_hands_its_callbacks_to_the_fits() -> None:
    diary = Diary()
    model = InfiniteQuantileRegressor(n_nodes=5, tol=1e-2)
    search = GridSearchCV(model, {"alpha": [0.1, 1.0]}, cv=2).set_callbacks(diary).fit(X, Y)
    gaps = [line for line in diary.lines if line[:2] == ("end", "gap")]
    assert len(gaps) == 5 * STEPS  # two candidates and two folds, and the last fit
    assert search.best_params_["alpha"] in (0.1, 1.0)
    assert not hasattr(search.best_estimator_, "_parent_callback_ctx")


def test_level_sets_and_pipelines_tell_as_well() -> None:
    diary = Diary()
    InfiniteOneClassSVM(n_nodes=5, alpha=0.1).set_callbacks(diary).fit(X)
    assert ("end", "gap", STEPS - 1) in diary.lines
    diary = Diary()
    pipeline = make_pipeline(InfiniteQuantileRegressor(n_nodes=5, tol=1e-2, alpha=0.1))
    pipeline.set_callbacks(diary).fit(X, Y)
    assert ("end", "gap", STEPS - 1) in diary.lines


def test_fits_to_curves_tell_as_well() -> None:
    diary, points = Diary(), np.linspace(0.0, 1.0, 4)
    curves = np.sin(points + X[:, :1])
    plain = InfiniteFunctionRegressor(gamma=1.0, task_gamma=1.0, alpha=0.01)
    told = clone(plain).set_callbacks(diary).fit(X, curves, points)
    np.testing.assert_array_equal(told.predict(X), plain.fit(X, curves, points).predict(X))
    assert diary.lines[:2] == [("setup", "fit", 0), ("begin", "fit", 0)]
    assert ("end", "gap", STEPS - 1) in diary.lines
    assert diary.lines[-2:] == [("end", "fit", 0), ("teardown", "fit", 0)]
    np.testing.assert_array_equal(diary.fitted[-1].predict(X), told.predict(X))


def test_the_progress_bar_of_scikit_learn_ends_full() -> None:
    pytest.importorskip("rich")
    from sklearn.callback import ProgressBar

    screen = io.StringIO()
    with redirect_stdout(screen):
        InfiniteQuantileRegressor(n_nodes=6, alpha=0.1).set_callbacks(ProgressBar()).fit(X, Y)
    assert "InfiniteQuantileRegressor - fit" in screen.getvalue()
    assert "100%" in screen.getvalue()


def test_callbacks_are_not_saved_with_a_model(tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    model = InfiniteQuantileRegressor(n_nodes=5, alpha=0.1).set_callbacks(Diary()).fit(X, Y)
    save(model, tmp_path / "told.safetensors")
    again = load(tmp_path / "told.safetensors")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert not hasattr(again, "_skl_callbacks")


@pytest.mark.slow
def test_a_self_tuned_model_tells_of_each_kernel() -> None:
    diary = Diary()
    model = InfiniteQuantileRegressorCV(kernels=["rbf", "linear"], alphas=[0.1, 0.01], cv=3, n_nodes=6)
    model.set_callbacks(diary).fit(X, Y)
    kernels = [line for line in diary.lines if line[:2] == ("end", "kernel")]
    assert [k for *_, k in kernels] == list(range(len(model.cv_results_["kernels"])))
    assert diary.lines[-1] == ("teardown", "fit", 0)
