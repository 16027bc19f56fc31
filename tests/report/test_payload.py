"""What is written into a page is the model: a second reader of the written form gives the same answers."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from infinitask import InfiniteCostSensitiveClassifier, InfiniteOneClassSVM, InfiniteQuantileRegressor
from infinitask.kernels import (
    RBF,
    Additive,
    Diagonal,
    InputKernel,
    Laplacian,
    LearntMetric,
    Linear,
    Matern,
    Metric,
    Scaled,
    Warped,
)
from infinitask.measures import Discrete
from infinitask.report import explore
from infinitask.tuning import InfiniteQuantileRegressorCV
from tests.report import evaluator
from tests.support.each import each

THETA = np.array([0.07, 0.25, 0.5, 0.9])
QUICK: dict[str, Any] = {"n_nodes": 8, "alpha": 1e-2}


def rows(n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Inputs of very different size, and a target in large units."""
    rng = np.random.default_rng(0)
    X = np.abs(rng.normal(size=(n, 3)) + 3.0) * np.array([1.0, 40.0, 0.01])
    return X, 5_000.0 + 300.0 * np.sin(X[:, 0]) + 0.5 * X[:, 1] * rng.normal(size=n)


KERNELS: list[Any] = [
    "rbf",
    "laplacian",
    "matern12",
    "matern32",
    "matern52",
    "chi2",
    "linear",
    "polynomial",
    RBF() + Linear(),
    RBF() * Matern(),
    Scaled(RBF(), (1.0, 0.02, 50.0)),
    Metric(RBF(), np.array([[1.0, 0.0], [0.02, 0.01], [0.0, 50.0]])),
    Additive(RBF()),
    Warped(Additive(Laplacian()) + Linear()),
    LearntMetric(),
    LearntMetric(diagonal=False),
]


def written(model: Any, X: np.ndarray, y: Any = None) -> dict[str, Any]:
    """The data of a page, after a way through text."""
    payload: dict[str, Any] = json.loads(json.dumps(explore(model, X, y).payload))
    return payload


def close(found: np.ndarray, expected: np.ndarray) -> bool:
    return bool(np.all(np.abs(found - expected) <= 1e-6 * np.maximum(1.0, np.abs(expected))))


@each("kernel", KERNELS, ids=[str(kernel)[:40] for kernel in KERNELS])
def test_every_kernel_is_written_as_it_is(kernel: Any) -> None:
    X, y = rows()
    model = InfiniteQuantileRegressor(kernel=kernel, **QUICK).fit(X[:40], y[:40])
    found = evaluator.quantiles(written(model, X)["model"], X, THETA)
    assert close(found, model.predict(X, THETA))


@each("task_kernel", ["rbf", "matern32", "matern52", "polynomial", "constant", "piecewise-linear"])
@each("noncrossing", [0.0, 1.0])
def test_every_task_kernel_is_written_as_it_is(task_kernel: str, noncrossing: float) -> None:
    if task_kernel == "piecewise-linear" and noncrossing:
        pytest.skip("it has no derivative")
    X, y = rows()
    model = InfiniteQuantileRegressor(task_kernel=task_kernel, noncrossing=noncrossing, **QUICK).fit(X, y)
    assert close(evaluator.quantiles(written(model, X)["model"], X, THETA), model.predict(X, THETA))


@each("features", ["exact", "nystroem", "fourier"])
def test_all_features_are_written(features: str) -> None:
    X, y = rows()
    rank = None if features == "exact" else 20
    model = InfiniteQuantileRegressor(features=features, rank=rank, random_state=0, **QUICK).fit(X, y)
    assert close(evaluator.quantiles(written(model, X)["model"], X, THETA), model.predict(X, THETA))


def test_sorted_and_calibrated_quantiles() -> None:
    X, y = rows(80)
    model = InfiniteQuantileRegressorCV(kernels=["rbf"], random_state=0, n_nodes=8).fit(X, y)
    data = written(model, X)["model"]
    assert data["rearranged"]
    assert data["calibrated"] is not None
    theta = np.array([0.001, 0.1, 0.5, 0.99])  # beyond the outer levels too
    assert close(evaluator.quantiles(data, X, theta), model.predict(X, theta))


@each("calibrated", [False, True])
def test_decisions(calibrated: bool) -> None:
    X, y = rows()
    model = InfiniteCostSensitiveClassifier(calibrated=calibrated, **QUICK).fit(X, y > 5_100.0)
    data, theta = written(model, X)["model"], np.array([-0.9, 0.0, 0.4])
    assert (data["shift"] is None) != calibrated
    found = evaluator.field(data["field"], X, theta) + evaluator.shifted(data, theta)
    assert close(found, model.decision_function(X, theta))


@each("exact_fractions", [False, "held-out"])
def test_level_sets(exact_fractions: Any) -> None:
    X, _ = rows()
    model = InfiniteOneClassSVM(exact_fractions=exact_fractions, n_nodes=10).fit(X)
    payload = written(model, X)
    data, levels = payload["model"], evaluator.unpack(payload["model"]["levels"])
    # at levels that are asked together, ψ is written as it is
    psi, bias = (evaluator.unpack(data["field"]["together"][name]) for name in ("psi", "bias"))
    found = evaluator.left(data["field"]["left"], X) @ psi.T + bias - evaluator.shifted(data, levels)
    assert close(found, model.decision_function(X, levels))
    assert np.array_equal(evaluator.unpack(payload["rows"]["p"]), model.score_samples(X))


def test_rows_know_their_features() -> None:
    X, y = rows()
    model = InfiniteQuantileRegressor(**QUICK).fit(X, y)
    payload = written(model, X, y)
    shown = {name: evaluator.unpack(payload["rows"][name]) for name in ("X", "left", "y", "number", "weight")}
    assert np.array_equal(shown["X"], X)
    assert np.array_equal(shown["y"], y)
    assert np.array_equal(shown["number"], np.arange(60.0))
    assert np.all(shown["weight"] == 1.0)
    assert close(evaluator.left(payload["model"]["field"]["left"], X), shown["left"])


def test_reliability_is_that_of_the_given_rows() -> None:
    X, y = rows()
    model = InfiniteQuantileRegressor(**QUICK).fit(X[::2], y[::2])
    found = written(model, X, y)["reliability"]
    coverages, held = evaluator.unpack(found["coverages"]), evaluator.unpack(found["held"])
    low, high = model.predict_interval(X, 0.8).T
    assert held[np.argmin(np.abs(coverages - 0.8))] == np.mean((low <= y) & (y <= high))
    levels, below = evaluator.unpack(found["levels"]), evaluator.unpack(found["below"])
    assert below[np.argmin(np.abs(levels - 0.3))] == np.mean(y <= model.predict(X, 0.3))


# ------------------------------------------------------------------------------------------ what cannot be written
class Odd(InputKernel):
    """A kernel of a user."""

    def __call__(self, X: Any, Z: Any) -> Any:
        return X @ Z.T + 1.0

    def diag(self, X: Any) -> Any:
        return np.sum(X * X, axis=1) + 1.0


@each(
    ("options", "words"),
    [
        ({"kernel": lambda X, Z: X @ Z.T}, "a function of Python"),
        ({"kernel": Odd()}, "the kernel Odd"),
        ({"kernel": RBF() + Odd()}, "the kernel Odd"),
        ({"task_kernel": Diagonal(), "noncrossing": 0.0, "measure": Discrete([0.1, 0.5])}, "the task kernel Diagonal"),
        ({"measure": Discrete([0.5])}, "the single level 0.5"),
    ],
    ids=["function", "own kernel", "own kernel in a sum", "diagonal", "one level"],
)
def test_a_part_that_cannot_be_written_is_named(options: dict[str, Any], words: str) -> None:
    X, y = rows()
    model = InfiniteQuantileRegressor(**(QUICK | options)).fit(X, y)
    with pytest.raises(ValueError, match=words) as error:
        explore(model, X, y)
    assert "Fit with" in str(error.value)


def test_a_precomputed_kernel_is_named() -> None:
    X, y = rows()
    gram = X @ X.T
    model = InfiniteQuantileRegressor(kernel="precomputed", **QUICK).fit(gram, y)
    with pytest.raises(ValueError, match="computed beforehand"):
        explore(model, gram, y)
