"""One answer, whatever library the arrays are of: through features, field, objectives and whole fits.

Kernels, losses, features, field and both objectives have laws of their own, with the fixture ``xp``; here they work
together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from infinitask import (
    Field,
    InfiniteCostSensitiveClassifier,
    InfiniteExpectileRegressor,
    InfiniteOneClassSVM,
    InfiniteQuantileRegressor,
)
from infinitask._base.arrays import as_like, namespace, to_host
from infinitask.features import Nystroem, PivotedCholesky, RandomFourier, task_features
from infinitask.kernels import RBF, Gaussian
from infinitask.losses import Pinball
from infinitask.objective import Integral, Objective, Smoothing
from infinitask.streaming import Blocks
from tests.support.limits import visit_in_parts

Floats = np.ndarray[Any, Any]
N, NODES = 120, np.linspace(0.1, 0.9, 5)
TOLERANCE = {"float64": 1e-8, "float32": 1e-3}
MODELS: dict[str, Any] = {
    "quantiles": InfiniteQuantileRegressor(n_nodes=6, alpha=1e-3, gamma=0.5),
    "expectiles": InfiniteExpectileRegressor(n_nodes=6, alpha=1e-3, gamma=0.5),
    "classes": InfiniteCostSensitiveClassifier(n_nodes=6, alpha=1e-2, gamma=0.5),
    "level sets": InfiniteOneClassSVM(n_nodes=6, alpha=0.1, gamma=0.5, tol=1e-3),
}


@pytest.fixture(scope="module")
def data() -> tuple[Floats, Floats, Floats]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 2))
    return X, np.sin(2.0 * X[:, 0]) + 0.4 * rng.normal(size=N), rng.uniform(0.5, 2.0, size=N)


def fitted(name: str, *rows: Any, **options: Any) -> Any:
    return type(MODELS[name])(**MODELS[name].get_params(deep=False) | options).fit(*rows)


def targets(name: str, y: Floats) -> Floats:
    return np.where(y > 0.0, 1.0, 0.0) if name == "classes" else y


def asked(model: Any, X: Floats) -> Floats:
    """h at some rows and nodes."""
    return np.asarray(model.field_(X[:10], model.nodes_[:, None]))


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("recipe", [PivotedCholesky(), Nystroem(20), RandomFourier(20)], ids=lambda r: type(r).__name__)
def test_features_field_and_objective_in_a_row(data: Any, recipe: Any, dtype: str, xp: Any) -> None:
    """From inputs to the value and the gradient, with nothing leaving the library on the way."""
    X, y, weight = data
    psi = task_features(Gaussian(gamma=2.0), NODES)
    C = 0.5 * np.random.default_rng(1).normal(size=(400, psi.map.rank))
    found = []
    for like in (np.empty(0), xp.empty(0, dtype=getattr(xp, dtype))):
        features = recipe.build(RBF(gamma=0.5), as_like(X, like), 1e-4, np.random.default_rng(2))
        phi = features.map(as_like(X, like))
        assert namespace(phi) is namespace(like)
        r = features.map.rank
        term = Integral(Pinball(), *(as_like(a, like) for a in (NODES, np.full(5, 0.2), psi.values[0])))
        term = Integral(term.loss, term.theta, term.weights, term.cols, None, as_like(y[:, None], like))
        objective = Objective(phi, as_like(weight / weight.sum(), like), (term,), 0.05)
        field = Field(features.map, psi.map, C[:r])
        evaluation = objective.evaluate(C[:r].ravel(), Smoothing((0.3,)))
        gram = to_host(phi) @ to_host(phi).T
        found.append((evaluation.primal, gram, np.sum(evaluation.gradient**2), to_host(field(as_like(X, like), NODES))))
    # in single precision other pivots may be chosen: only φᵀφ is the same then
    compared = found if dtype == "float64" else [(gram,) for _, gram, _, _ in found]
    tolerance = TOLERANCE[dtype]
    for one, other in zip(*compared, strict=True):
        np.testing.assert_allclose(other, one, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", MODELS)
def test_arrays_of_any_library_are_fitted(name: str, data: Any, xp: Any) -> None:
    X, y, weight = data
    y = targets(name, y)
    first = fitted(name, X, y, weight)
    other = fitted(name, *(xp.asarray(values) for values in (X, y, weight)))
    assert other.objective_ == pytest.approx(first.objective_, rel=1e-8)
    np.testing.assert_allclose(asked(other, X), asked(first, X), atol=1e-8)


@pytest.mark.quick(every=5)
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("visited", ["in memory", "in parts"])
def test_blocks_of_any_library_are_fitted(
    data: Any, visited: str, dtype: str, xp: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if visited == "in parts":
        visit_in_parts(monkeypatch)
    options = {"features": "nystroem", "rank": 30, "random_state": 0, "tol": 1e-3}

    def blocks(there: Any) -> Blocks:
        return Blocks([tuple(there(values[k : k + 50]) for values in data) for k in range(0, N, 50)])

    first = fitted("quantiles", blocks(lambda values: values), **options)
    other = fitted("quantiles", blocks(lambda values: xp.asarray(values, dtype=getattr(xp, dtype))), **options)
    assert other.dual_gap_ <= 1e-3
    assert other.objective_ == pytest.approx(first.objective_, rel=TOLERANCE[dtype])


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch", reason="torch is not installed: pip install infinitask[torch]")


@pytest.mark.usefixtures("torch")
@pytest.mark.parametrize("visited", ["in memory", "in parts"])
@pytest.mark.parametrize("name", MODELS)
def test_a_device_gives_the_answer_of_numpy(
    name: str, data: Any, visited: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y, weight = data
    rows: tuple[Any, ...] = X, targets(name, y), weight
    if visited == "in parts":
        visit_in_parts(monkeypatch)
        rows = (Blocks([rows]),)
    first, other = fitted(name, *rows), fitted(name, *rows, device="cpu")
    assert other.dual_gap_ <= other.tol
    assert other.objective_ == pytest.approx(first.objective_, rel=2.0 * first.tol)
    np.testing.assert_allclose(asked(other, X), asked(first, X), atol=0.05)


def test_a_device_agrees_to_rounding(data: Any, torch: Any) -> None:
    """Where no path of a solver parts from another: a strongly convex problem of few steps."""
    X, y, _ = data
    first, other = (fitted("expectiles", X, y, device=device, tol=1e-9) for device in (None, "cpu"))
    assert other.objective_ == pytest.approx(first.objective_, rel=1e-8)
    np.testing.assert_allclose(asked(other, X), asked(first, X), atol=1e-6)
    tensors = fitted("expectiles", torch.asarray(X), torch.asarray(y), device="cpu", tol=1e-9)
    np.testing.assert_array_equal(asked(tensors, X), asked(other, X))
