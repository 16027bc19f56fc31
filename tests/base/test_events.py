"""A fit tells a listener how far it is, and a listener may end a comparison."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from infinitask import (
    InfiniteCostSensitiveClassifier,
    InfiniteOneClassSVMCV,
    InfiniteQuantileRegressor,
    InfiniteQuantileRegressorCV,
)
from infinitask._base.events import LISTENER, Chosen, CutShort, Event, Solving, Stage, Tried, Trying, listening, tell
from infinitask.datasets import make_mixture, make_sine


def test_a_solver_tells_the_gap_that_the_model_certifies() -> None:
    X, y = make_sine(40, random_state=0)
    heard: list[Event] = []
    with listening(heard.append):
        assert LISTENER.get() is not None
        model = InfiniteQuantileRegressor(n_nodes=8).fit(X, y)
    assert LISTENER.get() is None
    gaps = [event.gap for event in heard if isinstance(event, Solving)]
    assert gaps[-1] == pytest.approx(model.dual_gap_)
    assert all(later <= earlier for earlier, later in pairwise(gaps))
    silent = InfiniteQuantileRegressor(n_nodes=8).fit(X, y)
    np.testing.assert_array_equal(silent.predict(X), model.predict(X))


def test_held_out_fits_are_told() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = X[:, 0] + rng.normal(size=40) > 0

    def stages(**parameters: Any) -> list[str]:
        heard: list[Event] = []
        with listening(heard.append):
            InfiniteCostSensitiveClassifier(n_nodes=5, calibrated=True, **parameters).fit(X, y)
        return [event.text for event in heard if isinstance(event, Stage)]

    assert stages(alpha=1e-3) == ["held-out fits without each of 10 folds"]
    # a bias with its own unknowns
    assert stages(alpha=1e-3, bias_kernel="constant") == [f"held-out fit {k + 1} of 10" for k in range(10)]


class Impatient:
    """Ends a comparison before the second candidate."""

    def __init__(self) -> None:
        self.heard: list[Event] = []

    def __call__(self, event: Event) -> None:
        self.heard.append(event)
        if isinstance(event, Trying) and any(isinstance(before, Tried) for before in self.heard):
            raise KeyboardInterrupt

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.heard if isinstance(event, kind)]


def compared(n: int = 40) -> tuple[Any, Any, Any]:
    X, y = make_sine(n, random_state=0)
    return InfiniteQuantileRegressorCV(kernels=["rbf", "laplacian"], alphas=[1e-2], n_nodes=5, random_state=0), X, y


def test_a_listener_may_end_a_comparison_with_the_best_so_far() -> None:
    model, X, y = compared()
    listener = Impatient()
    with listening(listener):
        model.set_params(on_interrupt="best").fit(X, y)
    losses = model.cv_results_["losses"].mean(axis=2).min(axis=1)
    assert np.isfinite(losses[0])
    assert np.isinf(losses[1])
    (tried,) = listener.of(Tried)
    assert (tried.count, tried.total, tried.loss) == (1, 2, pytest.approx(losses[0]))
    assert len(listener.of(CutShort)) == len(listener.of(Chosen)) == 1
    with pytest.raises(KeyboardInterrupt), listening(Impatient()):
        model.set_params(on_interrupt="raise").fit(X, y)


def test_level_sets_keep_the_best_so_far_too() -> None:
    X = make_mixture(60, random_state=0)
    model = InfiniteOneClassSVMCV(kernels=["rbf", "laplacian"], n_nodes=5, on_interrupt="best", random_state=0)
    listener = Impatient()
    with listening(listener):
        model.fit(X)
    assert model.cv_results_["kernels"] == [listener.of(Tried)[0].name]
    assert model.cv_results_["areas"] == pytest.approx([listener.of(Tried)[0].best])
    assert listener.of(CutShort)
    with pytest.raises(KeyboardInterrupt), listening(Impatient()):
        model.set_params(on_interrupt="raise").fit(X)
    with pytest.raises(ValueError, match="on_interrupt='stop' was given"):
        model.set_params(on_interrupt="stop").fit(X)


def test_who_listened_first_hears_what_a_second_listener_hears() -> None:
    outer: list[Event] = []
    inner: list[Event] = []
    with listening(outer.append):
        with listening(inner.append):
            tell(Stage("a fit with callbacks inside a bar"))
        tell(Stage("afterwards"))
    assert inner == outer[:1]
    assert len(outer) == 2
