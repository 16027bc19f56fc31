"""Self-tuned models with many rows: a sample chooses, and the last fit visits all rows as the plain estimator does."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from infinitask import InfiniteOneClassSVM, InfiniteQuantileRegressor
from infinitask.estimators import _sources
from infinitask.fitting import Fit
from infinitask.fitting._defaults import shrinkage
from infinitask.kernels import RBF, Scaled
from infinitask.streaming import Blocks
from infinitask.tuning import (
    InfiniteCostSensitiveClassifierCV,
    InfiniteOneClassSVMCV,
    InfiniteQuantileRegressorCV,
    _self_tuned,
)
from tests.support.limits import large_from, sample_rows

N, SAMPLE = 600, 150
RANKED: dict[str, Any] = {"n_nodes": 6, "tol": 1e-2, "random_state": 0, "features": "nystroem", "rank": 30}


@pytest.fixture(scope="module")
def data() -> Any:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 2))
    return X, np.sin(2.0 * X[:, 0]) + 0.3 * rng.normal(size=N)


@pytest.fixture
def visited(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of rows of every fit in parts; samples are small."""
    sample_rows(monkeypatch, SAMPLE)
    seen: list[int] = []
    fit = _sources.learn_stream

    def watched(recipe: Any, source: Any, survey: Any, *others: Any) -> Any:
        seen.append(survey.n)
        return fit(recipe, source, survey, *others)

    monkeypatch.setattr(_sources, "learn_stream", watched)
    return seen


def models() -> list[tuple[Any, bool]]:
    """Quick models, and whether their targets are classes."""
    one = {"kernels": ["rbf"], "alphas": [1e-2], "cv": 2, **RANKED}
    return [
        (InfiniteQuantileRegressorCV(calibrated=False, **one), False),
        (InfiniteCostSensitiveClassifierCV(**one), True),
    ]


@pytest.mark.parametrize(("model", "classes"), models(), ids=lambda given: type(given).__name__)
def test_plain_arrays_are_fitted_in_parts_where_the_plain_estimator_does(
    model: Any, classes: bool, data: Any, visited: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = data
    y = np.where(y > 0.0, "up", "down") if classes else y
    memory = model.fit(X, y).objective_
    assert visited == []
    large_from(monkeypatch, N, N * RANKED["rank"])
    model.fit(X, y)
    assert visited == [N]
    assert "landmarks from a sample" in model.features_
    assert model.objective_ == pytest.approx(memory, rel=0.2)
    model.set_params(rank=RANKED["rank"] - 1).fit(X, y)
    assert visited == [N]


def test_level_sets_in_parts_choose_in_memory(data: Any, visited: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    large_from(monkeypatch, N, N * RANKED["rank"])
    InfiniteOneClassSVMCV(kernels=["rbf"], cv=2, alpha=0.1, **RANKED).fit(data[0])
    assert visited == [N]


def test_the_ridge_of_a_sample_becomes_that_of_all_rows(data: Any, visited: list[int]) -> None:
    """λ falls with the number of rows; a λ that the user named stays."""
    X, y = data
    common = {"kernels": ["rbf"], "cv": 2, "calibrated": False, **RANKED}
    of_sample: list[float] = []
    choose = _self_tuned.chosen

    def watched(*arguments: Any) -> Any:
        found = choose(*arguments)
        of_sample.append(found.alpha)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_self_tuned, "chosen", watched)
        model = InfiniteQuantileRegressorCV(**common).fit(Blocks.of_arrays(X, y))
        named = InfiniteQuantileRegressorCV(alphas=[1e-2], **common).fit(Blocks.of_arrays(X, y))
    assert visited == [N, N]
    assert shrinkage(SAMPLE, N) < 0.9
    assert model.alpha_ == pytest.approx(shrinkage(SAMPLE, N) * of_sample[0], rel=1e-12)
    assert named.alpha_ == of_sample[1] == 1e-2


def test_what_needs_all_rows_is_refused_before_anything_is_chosen(
    data: Any, visited: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_self_tuned, "chosen", lambda *_: pytest.fail("something was chosen"))
    for option in ({"features": "exact"}, {"solver": "newton"}):
        model = InfiniteQuantileRegressorCV(**option)
        with pytest.raises(ValueError, match="was given for rows that are visited in parts"):
            model.fit(Blocks.of_arrays(*data))
    assert visited == []


@pytest.mark.parametrize("kind", ["arrays", "blocks"])
def test_no_warning_about_what_the_model_chose_itself(kind: str, data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        Fit, "warnings", lambda self, of_model=True: iter([UserWarning("a warning.")] if of_model else [])
    )
    X, y = data[0][:60], data[1][:60]
    quick = {"kernels": ["rbf"], "cv": 2, **RANKED}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        InfiniteOneClassSVMCV(alpha=0.1, **quick).fit(X if kind == "arrays" else Blocks([(X,)]))
        model = InfiniteQuantileRegressorCV(alphas=[1e-2], calibrated=False, **quick)
        model.fit(*((X, y) if kind == "arrays" else (Blocks([(X, y)]),)))
    with pytest.warns(UserWarning, match="a warning"):  # the plain estimator would give it
        InfiniteQuantileRegressor(**RANKED).fit(X, y)


@pytest.mark.slow
def test_a_width_that_was_chosen_is_not_changed_by_a_fit() -> None:
    """Level sets whose rows are on a boundary widen the default kernel, not one that competes with others."""
    X = np.random.default_rng(0).normal(size=(150, 2))
    model = InfiniteOneClassSVMCV(kernels="auto", n_nodes=6, random_state=0, exact_fractions=False).fit(X)
    assert repr(model.kernel_) == repr(model.best_estimator_.kernel_)
    narrow = Scaled(RBF(gamma=500.0), [1.0, 1.0])
    with pytest.warns(UserWarning, match="on the boundary"):
        given = InfiniteOneClassSVM(kernel=narrow, n_nodes=6).fit(X)
    assert "500" in repr(given.kernel_)
