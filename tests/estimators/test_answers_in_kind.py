"""Tensors in, tensors out: an answer is of the library, on the device and in the precision of the rows."""

from __future__ import annotations

import inspect
from typing import Any

import array_api_compat as compat
import numpy as np
import pytest

from infinitask import InfiniteCostSensitiveClassifier, InfiniteOneClassSVM, InfiniteQuantileRegressor
from tests.support.arrays import to_host
from tests.support.each import each

COMMON: dict[str, Any] = {"gamma": 0.5, "n_nodes": 6, "tol": 0.1, "random_state": 0}


def rows() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(60, 2))
    return X, X[:, 0] + 0.2 * rng.normal(size=60)


X, Y = rows()
QUANTILES = InfiniteQuantileRegressor(**COMMON).fit(X, Y)
SIGNS = InfiniteCostSensitiveClassifier(**COMMON).fit(X, np.where(Y > 0.0, 1, -1))
SETS = InfiniteOneClassSVM(**COMMON).fit(X)

ANSWERS: dict[str, Any] = {
    "quantile": lambda X: QUANTILES.predict(X),
    "quantiles": lambda X: QUANTILES.predict(X, quantiles=[0.1, 0.9]),
    "intervals": lambda X: QUANTILES.predict_interval(X=X, coverage=[0.5, 0.8]),
    "labels": lambda X: SIGNS.predict(X),
    "decisions": lambda X: SIGNS.decision_function(X, theta=[-0.5, 0.5]),
    "probabilities": lambda X: SIGNS.predict_proba(X),
    "insides": lambda X: SETS.predict(X),
    "scores": lambda X: SETS.score_samples(X),
}


@each("precision", ["float64", "float32"])
@each("answer", ANSWERS.values(), ids=ANSWERS)
def test_a_tensor_is_answered_by_one_of_its_kind(xp: Any, answer: Any, precision: str) -> None:
    given = xp.asarray(X.astype(precision))
    expected, found = answer(to_host(given)), answer(given)
    assert compat.array_namespace(found) is compat.array_namespace(given)
    assert compat.device(found) == compat.device(given)
    assert tuple(found.shape) == expected.shape
    if not isinstance(given, np.ndarray) and expected.dtype.kind == "f":
        assert found.dtype == given.dtype
    np.testing.assert_allclose(to_host(found), expected, rtol=1e-6 if precision == "float32" else 1e-12)


def test_labels_that_are_no_numbers_stay_as_they_are(xp: Any) -> None:
    model = InfiniteCostSensitiveClassifier(**COMMON).fit(X, np.where(Y > 0.0, "up", "down"))
    assert model.predict(xp.asarray(X)).tolist() == model.predict(X).tolist()


def test_signatures_and_documentation_are_those_of_the_method() -> None:
    assert list(inspect.signature(InfiniteQuantileRegressor.predict).parameters) == ["self", "X", "quantiles"]
    assert "conditional quantiles" in (InfiniteQuantileRegressor.predict.__doc__ or "")


def test_half_precision_of_torch_is_read() -> None:
    torch = pytest.importorskip("torch", reason="no torch installed: pip install infinitask[torch]")
    X, y = torch.linspace(-1.0, 1.0, 40)[:, None], torch.linspace(0.0, 1.0, 40)
    model = InfiniteQuantileRegressor(n_nodes=5).fit(X.bfloat16(), y)
    assert model.predict(X.bfloat16()).dtype == torch.bfloat16
