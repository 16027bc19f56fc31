"""Self-tuned models that end early: at the end of their time, or after an interrupt in any stage."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from infinitask import (
    InfiniteCostSensitiveClassifier,
    InfiniteCostSensitiveClassifierCV,
    InfiniteOneClassSVM,
    InfiniteOneClassSVMCV,
    InfiniteQuantileRegressor,
    InfiniteQuantileRegressorCV,
)
from infinitask._base.budget import Budget, current_budget, within
from infinitask._base.events import Chosen, CutShort, Event, Solving, Stage, Tried, Trying, listening
from infinitask.datasets import make_mixture, make_sine
from infinitask.solvers import Reason
from infinitask.tuning import _race
from infinitask.tuning._progress import Forecast

SMALL: dict[str, Any] = {"n_nodes": 8, "random_state": 0}


def problem(kind: type[Any], n: int = 80) -> tuple[Any, Any]:
    if kind is InfiniteOneClassSVMCV:
        return make_mixture(n, random_state=0), None
    X, y = make_sine(n, random_state=0)
    return X, (y > 0.3 if kind is InfiniteCostSensitiveClassifierCV else y)


def finite(model: Any, X: Any) -> bool:
    return bool(np.all(np.isfinite(np.asarray(model.predict(X), dtype=float))))


KINDS = [InfiniteQuantileRegressorCV, InfiniteCostSensitiveClassifierCV, InfiniteOneClassSVMCV]


# ------------------------------------------------------------------------------------------------ the estimated time
COSTS = {"ranking": 3.0, "race": 7.0, "fit": 4.0, "calibration": 2.0}


def lefts(factors: dict[str, float], steps: int = 10) -> list[tuple[float, float, float]]:
    """The fraction done, the estimate, and the seconds left, of a run whose stages cost so many times the expected."""
    now = [0.0]
    forecast, seconds = Forecast(COSTS, lambda: now[0]), {name: factors[name] * cost for name, cost in COSTS.items()}
    total, found = sum(seconds.values()), []
    for name, cost in seconds.items():
        forecast.begin(name)
        for step in range(1, steps + 1):
            now[0] += cost / steps
            forecast.done(step / steps)
            assert forecast.left is not None
            found.append((now[0] / total, forecast.left, total - now[0]))
    return found


def test_the_time_left_is_exact_if_the_costs_are_known() -> None:
    for pace in (0.01, 1.0, 30.0):
        for _, estimate, left in lefts(dict.fromkeys(COSTS, pace)):
            assert estimate == pytest.approx(left, abs=1e-9 * pace)


def test_the_time_left_is_within_half_if_the_costs_are_known_to_a_fifth() -> None:
    worst = 1.0
    for bits in range(16):
        factors = {name: 1.2 if bits >> k & 1 else 1.0 / 1.2 for k, name in enumerate(COSTS)}
        for done, estimate, left in lefts(factors):
            if 1.0 / 3.0 <= done < 0.99:
                worst = max(worst, estimate / left, left / estimate)
    assert 1.1 < worst <= 1.5


def test_stages_that_are_skipped_take_no_time() -> None:
    now = [0.0]
    forecast = Forecast(COSTS, lambda: now[0])
    assert forecast.left is None
    forecast.begin("ranking")
    now[0] = 6.0
    forecast.begin("fit")
    assert forecast.left == pytest.approx(12.0)
    assert forecast.seconds("calibration") == pytest.approx(4.0)
    now[0] = 9.0
    assert forecast.left == pytest.approx(9.0)


# ----------------------------------------------------------------------------------------------------------- the budget
def test_a_budget_ends_a_solver_with_its_best_point() -> None:
    X, y = make_sine(200, random_state=0)
    with within(Budget(0.0)), pytest.warns(ConvergenceWarning, match="max_seconds"):
        model = InfiniteQuantileRegressor(n_nodes=8, alpha=1e-4).fit(X, y)
    assert current_budget().left == np.inf
    assert model.solution_.reason is Reason.ENDED_EARLY
    assert 1e-4 < model.dual_gap_ < np.inf
    exact = InfiniteQuantileRegressor(n_nodes=8, alpha=1e-4, tol=1e-6).fit(X, y)
    assert model.solution_.dual <= exact.objective_ <= model.objective_  # the certificate holds


@pytest.mark.parametrize("kind", KINDS)
def test_without_time_the_default_is_fitted(kind: type[Any]) -> None:
    X, y = problem(kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = kind(max_seconds=1e-3, **SMALL).fit(X, y)
    assert finite(model, X)
    assert model.dual_gap_ < np.inf
    plain = {
        InfiniteQuantileRegressorCV: InfiniteQuantileRegressor,
        InfiniteCostSensitiveClassifierCV: InfiniteCostSensitiveClassifier,
        InfiniteOneClassSVMCV: InfiniteOneClassSVM,
    }[kind](**SMALL).fit(X, y)
    assert repr(model.kernel_) == repr(plain.kernel_)
    assert model.alpha_ == pytest.approx(plain.alpha_)


@pytest.mark.parametrize("kind", KINDS)
def test_enough_time_changes_nothing(kind: type[Any]) -> None:
    X, y = problem(kind, 40)
    first, second = (kind(kernels=["rbf"], max_seconds=limit, **SMALL).fit(X, y) for limit in (None, 600.0))
    np.testing.assert_array_equal(first.predict(X), second.predict(X))


@pytest.mark.parametrize("seconds", [0.0, -1.0, np.inf, "20"])
def test_a_limit_is_a_positive_number(seconds: Any) -> None:
    with pytest.raises(ValueError, match="max_seconds"):
        InfiniteQuantileRegressorCV(max_seconds=seconds).fit(*make_sine(20, random_state=0))


# --------------------------------------------------------------------------------------------------------- the default
@pytest.mark.parametrize("kind", [InfiniteQuantileRegressorCV, InfiniteCostSensitiveClassifierCV])
def test_the_default_competes_with_its_own_ridge(kind: type[Any]) -> None:
    X, y = problem(kind)
    model = kind(**SMALL).fit(X, y)
    plain = InfiniteQuantileRegressor if kind is InfiniteQuantileRegressorCV else InfiniteCostSensitiveClassifier
    default = plain(**SMALL).fit(X, y)
    results = model.cv_results_
    losses = results["losses"].mean(axis=2)
    (own,) = np.flatnonzero(np.isfinite(losses[0]))
    assert results["kernels"][0] == "default"
    assert results["alphas"][own] == pytest.approx(default.alpha_)
    assert np.all(np.isinf(losses[1:, own]))
    assert losses[results["best"]] <= losses[0, own]
    assert np.all(np.diff(results["alphas"]) < 0.0)


def test_the_default_keeps_its_ridge_when_a_choice_is_refined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_race, "MAX_ROWS", 100)
    monkeypatch.setattr(_race, "KERNELS", 0)  # no other kernel is ranked: only linear ones, which lose
    X, y = make_sine(300, random_state=0)
    model = InfiniteQuantileRegressorCV(rule="best", tol=1e-2, **SMALL).fit(X, y)
    results = model.cv_results_
    assert results["kernels"][results["best"][0]] == "default"
    assert np.all(np.diff(results["alphas"]) < 0.0)
    (own,) = np.flatnonzero(np.isfinite(results["losses"][0].mean(axis=1)))
    assert np.isfinite(results["refined"][0, own])


def test_only_given_kernels_compete() -> None:
    X, y = make_sine(60, random_state=0)
    model = InfiniteQuantileRegressorCV(kernels=["rbf", "linear"], **SMALL).fit(X, y)
    assert sorted(model.cv_results_["kernels"]) == ["'linear'", "'rbf'"]


# ------------------------------------------------------------------------------------------------------- interrupts
class Interrupting:
    """Raises KeyboardInterrupt once, at the first event that meets a condition."""

    def __init__(self, when: Callable[[Event], bool]) -> None:
        self.when, self.raised, self.heard = when, False, list[Event]()

    def __call__(self, event: Event) -> None:
        self.heard.append(event)
        if not self.raised and self.when(event):
            self.raised = True
            raise KeyboardInterrupt


def stage(text: str) -> Callable[[], Callable[[Event], bool]]:
    return lambda: lambda event: isinstance(event, Stage) and event.text.startswith(text)


def in_the_fit() -> Callable[[Event], bool]:
    begun = []

    def when(event: Event) -> bool:
        begun.extend([event] if isinstance(event, Chosen) else [])
        return bool(begun) and isinstance(event, Solving) and event.evaluations >= 5

    return when


def of(kind: type[Event]) -> Callable[[], Callable[[Event], bool]]:
    return lambda: lambda event: isinstance(event, kind)


PHASES: dict[str, Callable[[], Callable[[Event], bool]]] = {
    "ranking": stage("ranking kernels"),
    "comparing": stage("comparing kernels"),
    "first": of(Trying),
    "second": of(Tried),
    "chosen": stage("chosen:"),
    "before the fit": of(Chosen),
    "fit": lambda: in_the_fit(),
    "levels": stage("calibrating"),
    "folds": stage("held-out fits without"),
}
SUPERVISED = ("ranking", "first", "second", "chosen", "before the fit", "fit")
CASES = [
    *((InfiniteQuantileRegressorCV, phase) for phase in (*SUPERVISED, "levels")),
    *((InfiniteCostSensitiveClassifierCV, phase) for phase in (*SUPERVISED, "folds")),
    *((InfiniteOneClassSVMCV, phase) for phase in ("comparing", "first", "second", "before the fit")),
]


@pytest.mark.parametrize(
    ("kind", "phase"), CASES, ids=lambda value: value if isinstance(value, str) else value.__name__
)
def test_an_interrupt_in_any_stage_returns_a_fitted_model(kind: type[Any], phase: str) -> None:
    X, y = problem(kind, 50)
    options: dict[str, Any] = SMALL | ({"exact_fractions": "held-out"} if kind is InfiniteOneClassSVMCV else {})
    if phase not in ("ranking", "first", "comparing"):
        options = options | {"kernels": ["rbf", "laplacian"]}
    listener = Interrupting(PHASES[phase]())
    with listening(listener), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = kind(on_interrupt="best", **options).fit(X, y)
    assert listener.raised
    assert finite(model, X)
    assert 0.0 <= model.dual_gap_ < np.inf
    assert any(isinstance(event, CutShort) for event in listener.heard)
    if phase in ("ranking", "first", "comparing"):
        best = model.cv_results_["best"]
        assert np.isinf(model.cv_results_["losses" if "losses" in model.cv_results_ else "volumes"]).all()
        assert best == 0 or best[0] == 0
    if phase == "chosen":
        assert np.isfinite(model.cv_results_["losses"][model.cv_results_["best"]]).all()
    if phase == "fit":
        assert model.solution_.reason in (Reason.ENDED_EARLY, Reason.CONVERGED)
    if phase == "levels":
        assert not hasattr(model.best_estimator_, "levels_")
    with pytest.raises(KeyboardInterrupt), listening(Interrupting(PHASES[phase]())):
        kind(**options).fit(X, y)


@pytest.mark.parametrize("at", ["refining λ", "rows, 375 features: loss"])
def test_an_interrupt_while_the_ridge_is_refined(at: str) -> None:
    """With many rows, a kernel chosen on some of them is kept, whether λ is being refined or was refined once."""
    X, y = make_sine(2_300, random_state=0)
    options: dict[str, Any] = SMALL | {"kernels": ["rbf"], "alphas": [1e-2, 1e-3]}
    listener = Interrupting(lambda event: isinstance(event, Stage) and at in event.text)
    with listening(listener), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = InfiniteQuantileRegressorCV(on_interrupt="best", **options).fit(X, y)
    assert listener.raised
    assert finite(model, X[:50])
    assert len(model.cv_results_["refined"]) == (0 if at == "refining λ" else 1)


@pytest.mark.parametrize("reason", ["interrupt", "time"])
def test_a_fit_that_has_hardly_begun_is_replaced_by_a_rough_one(reason: str) -> None:
    X, y = make_sine(300, random_state=0)
    X_new, y_new = make_sine(1_000, random_state=1)
    options = SMALL | ({"max_seconds": 0.001} if reason == "time" else {"on_interrupt": "best"})
    listener = Interrupting(in_the_fit() if reason == "interrupt" else lambda event: False)
    model = InfiniteQuantileRegressorCV(kernels=["rbf"], alphas=[1e-3], rule="best", **options)
    with listening(listener), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    solving = [event for event in listener.heard if isinstance(event, Solving)]
    assert solving[0].gap > 0.5  # what was interrupted
    assert model.dual_gap_ < 0.1
    assert model.score(X_new, y_new) > 0.2
    assert any(isinstance(event, CutShort) and "rough" in event.text for event in listener.heard)


def test_decisions_are_calibrated_even_if_the_folds_are_interrupted() -> None:
    X, y = problem(InfiniteCostSensitiveClassifierCV, 300)
    found = []
    for when in (lambda event: False, PHASES["folds"]()):
        model = InfiniteCostSensitiveClassifierCV(kernels=["rbf"], on_interrupt="best", **SMALL)
        with listening(Interrupting(when)):
            found.append(model.fit(X, y).predict_proba(X)[:, 1])
    loss = [float(-np.mean(np.where(y, np.log(p), np.log1p(-p)))) for p in found]
    assert not np.allclose(found[0], found[1])
    assert loss[1] < 1.3 * loss[0]
