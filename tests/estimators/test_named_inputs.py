"""Curves that shall not cross at inputs that the user names."""

from __future__ import annotations

import pickle
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold, cross_val_score

from infinitask import (
    InfiniteExpectileRegressor,
    InfiniteQuantileRegressor,
    InfiniteTaskEstimator,
    fit_path,
    score_path,
)
from infinitask.fitting import Data, learn
from infinitask.fitting._pose import pose
from infinitask.losses import CostSensitiveHinge
from infinitask.objective import Smoothing
from infinitask.penalties import IntegratedPenalty, Ridge
from infinitask.solvers import Eigenbasis, solve

Floats = np.ndarray[Any, Any]

GAMMA, TASK_GAMMA, ALPHA = 1.0, 10.0, 1e-3
CHOICES: dict[str, Any] = {
    "gamma": GAMMA,
    "task_gamma": TASK_GAMMA,
    "alpha": ALPHA,
    "alpha_bias": ALPHA,
    "n_nodes": 6,
}
FAR = np.linspace(1.0, 2.0, 9)[:, None]
"""Inputs beyond the data."""


def sample(n: int = 24, seed: int = 0) -> tuple[Floats, Floats]:
    """Noise that shrinks to nothing at x = 1: learnt curves meet there and cross beyond."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.0, 1.0, size=(n, 1))
    return X, np.sin(3.0 * X[:, 0]) + (1.05 - X[:, 0]) * rng.normal(size=n)


def falls(model: Any, X: Floats) -> float:
    """∫ E (−∂h/∂θ)₊ over these inputs."""
    return float(np.mean(np.maximum(-model.field_(X, model.nodes_, order=1), 0.0) @ model.weights_))


def root(K: Floats) -> Floats:
    values, vectors = np.linalg.eigh(K)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


@pytest.mark.parametrize("weighted", [False, True])
def test_it_solves_the_problem_that_is_written_down(weighted: bool) -> None:
    """min Σ ω w ρ(y − f) + λ_nc (1/k) Σ_l Σ_j w_j (−∂f(x_l)(θ_j))₊ + (λ/2)(‖h‖² + ‖b‖²), by cvxpy."""
    X, y = sample()
    n, k, weight = len(X), len(FAR), 0.05
    omega = np.random.default_rng(1).integers(1, 4, size=n).astype(float) if weighted else np.ones(n)
    model = InfiniteQuantileRegressor(noncrossing=weight, noncrossing_inputs=FAR, tol=1e-8, **CHOICES)
    model.fit(X, y, sample_weight=omega)
    theta, w, g = model.nodes_, model.weights_, TASK_GAMMA
    both, t = np.vstack([X, FAR]), theta[:, None] - theta
    phi, gram = root(np.exp(-GAMMA * (both - both.T) ** 2)), np.exp(-g * t**2)
    joint = root(np.block([[gram, 2 * g * t * gram], [-2 * g * t * gram, 2 * g * (1 - 2 * g * t**2) * gram]]))
    C, c = cp.Variable((n + k, joint.shape[1])), cp.Variable((1, joint.shape[1]))
    f = (phi @ C + np.ones((n + k, 1)) @ c) @ joint.T
    r, levels = y[:, None] - f[:n, : theta.size], np.broadcast_to(theta, (n, theta.size))
    pinball = cp.maximum(cp.multiply(levels, r), cp.multiply(levels - 1.0, r))
    risk = cp.sum(cp.multiply(np.outer(omega / omega.sum(), w), pinball))
    crossing = cp.sum(cp.multiply(np.outer(np.full(k, 1.0 / k), w), cp.pos(-f[n:, theta.size :])))
    ridge = 0.5 * ALPHA * (cp.sum_squares(C) + cp.sum_squares(c))
    problem = cp.Problem(cp.Minimize(risk + weight * crossing + ridge))
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    assert model.objective_ == pytest.approx(float(problem.value), rel=1e-6)
    np.testing.assert_allclose(model.field_(both, theta), f.value[:, : theta.size], atol=5e-3)


@pytest.mark.parametrize("estimator", [InfiniteQuantileRegressor, InfiniteExpectileRegressor, InfiniteTaskEstimator])
def test_curves_cross_less_where_they_are_looked_at(estimator: Any) -> None:
    X, y = sample()
    plain, named = (estimator(noncrossing=0.5, noncrossing_inputs=at, **CHOICES).fit(X, y) for at in (None, FAR))
    assert falls(plain, FAR) > 0.1, "curves that cross beyond the data, or nothing is tested"
    assert falls(named, FAR) < 1e-3 * falls(plain, FAR)


def test_to_name_the_training_inputs_changes_nothing() -> None:
    X, y = sample()
    plain, named = (
        InfiniteQuantileRegressor(noncrossing=0.5, noncrossing_inputs=at, tol=1e-8, **CHOICES).fit(X, y)
        for at in (None, X)
    )
    assert named.objective_ == pytest.approx(plain.objective_, rel=1e-7)
    np.testing.assert_allclose(named.predict(X, [0.1, 0.9]), plain.predict(X, [0.1, 0.9]), atol=2e-3)


def test_without_a_penalty_they_are_ignored() -> None:
    X, y = sample()
    plain, named = (
        InfiniteQuantileRegressor(noncrossing=0.0, noncrossing_inputs=at, **CHOICES).fit(X, y) for at in (None, FAR)
    )
    np.testing.assert_array_equal(plain.field_.coef, named.field_.coef)


def test_the_bandwidth_is_that_of_the_training_inputs() -> None:
    X, y = sample()
    options = CHOICES | {"gamma": "median"}
    plain, named = (InfiniteQuantileRegressor(noncrossing_inputs=at, **options).fit(X, y) for at in (None, 100.0 + FAR))
    assert plain.field_.phi.kernel.gamma == named.field_.phi.kernel.gamma


def test_order_can_be_proved_there() -> None:
    X, y = sample()
    levels = np.linspace(0.0, 1.0, 2001)
    plain, named = (
        InfiniteQuantileRegressor(noncrossing="hard", noncrossing_inputs=at, **CHOICES).fit(X, y) for at in (None, FAR)
    )
    assert plain.field_(FAR, levels, order=1).min() < -0.1
    assert named.field_(np.vstack([X, FAR]), levels, order=1).min() >= named.smallest_slope_ >= 0.0
    assert named.dual_gap_ <= named.tol


def test_compiled_loops_find_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = sample()
    found = []
    for switch in ("0", "1"):
        monkeypatch.setenv("INFINITASK_COMPILED", switch)
        found.append(InfiniteQuantileRegressor(noncrossing_inputs=FAR, tol=1e-7, **CHOICES).fit(X, y))
    assert found[0].objective_ == pytest.approx(found[1].objective_, rel=1e-7)


def test_a_free_bias_is_certified_too() -> None:
    X, y = sample()
    model = InfiniteQuantileRegressor(noncrossing_inputs=FAR, **(CHOICES | {"alpha_bias": 0.0})).fit(X, y)
    assert model.dual_gap_ <= model.tol


def test_labels_may_be_targets() -> None:
    X, y = sample()
    model = InfiniteTaskEstimator(CostSensitiveHinge(), noncrossing=0.5, noncrossing_inputs=FAR, **CHOICES)
    assert model.fit(X, np.where(y > 0.0, 1.0, -1.0)).dual_gap_ <= model.tol


def test_folds_share_features_and_keep_the_inputs() -> None:
    X, y = sample(40)
    model = InfiniteQuantileRegressor(noncrossing_inputs=FAR, tol=1e-7, **CHOICES)
    folds = KFold(4, shuffle=True, random_state=0)
    shared = score_path(model, X, y, alphas=[ALPHA], cv=folds)
    alone = cross_val_score(model, X, y, cv=folds)
    np.testing.assert_allclose(np.ravel(shared), alone, atol=1e-4)


def test_a_path_is_that_of_separate_fits() -> None:
    X, y = sample()
    model = InfiniteQuantileRegressor(noncrossing_inputs=FAR, tol=1e-6, **CHOICES)
    for fitted in fit_path(model, X, y, alphas=[1e-2, 1e-3]):
        alone = clone(model).set_params(alpha=fitted.alpha, alpha_bias=fitted.alpha_bias).fit(X, y)
        assert fitted.objective_ == pytest.approx(alone.objective_, rel=3e-6)


def test_a_warm_start_notices_other_inputs() -> None:
    X, y = sample()
    model = InfiniteQuantileRegressor(noncrossing=0.0, tol=1e-6, warm_start=True, **CHOICES).fit(X, y)
    for change in ({"noncrossing": 0.5}, {"noncrossing_inputs": FAR}, {"noncrossing_inputs": FAR[::2]}):
        model.set_params(**change).fit(X, y)
        cold = clone(model).set_params(warm_start=False).fit(X, y)
        assert model.objective_ == pytest.approx(cold.objective_, rel=3e-6)


def test_they_are_copied_and_pickled_with_the_recipe() -> None:
    X, y = sample()
    named = FAR.copy()
    model = InfiniteQuantileRegressor(noncrossing_inputs=named, **CHOICES).fit(X, y)
    named[:] = 0.0
    np.testing.assert_array_equal(model.recipe_.task.order.at, FAR)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    data = Data.canonical(X, y, np.ones(len(X)))
    np.testing.assert_array_equal(learn(again.recipe_, data).field.coef, model.field_.coef)


def test_inputs_that_do_not_fit_are_named() -> None:
    X, y = sample()
    with pytest.raises(ValueError, match=r"noncrossing_inputs of shape \(9, 2\) was given for X with 1 features"):
        InfiniteQuantileRegressor(noncrossing_inputs=np.hstack([FAR, FAR])).fit(X, y)
    with pytest.raises(ValueError, match=r"noncrossing_inputs of shape \(9,\) was given; it must be two-dimensional"):
        InfiniteQuantileRegressor(noncrossing_inputs=FAR[:, 0]).fit(X, y)
    with pytest.raises(ValueError, match="noncrossing_inputs contains NaN or infinity"):
        InfiniteExpectileRegressor(noncrossing_inputs=[[np.nan]]).fit(X, y)
    with pytest.raises(ValueError, match="noncrossing_inputs was given with kernel='precomputed'"):
        InfiniteQuantileRegressor(noncrossing_inputs=FAR, kernel="precomputed").fit(np.eye(len(X)), y)


def test_named_columns_must_be_those_of_X() -> None:
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = pandas.DataFrame({"age": rng.uniform(size=30), "dose": 10.0 * rng.uniform(size=30)})
    y = X["age"] + 0.1 * rng.normal(size=30)
    choices: dict[str, Any] = {"n_nodes": 5, "tol": 1e-3, "alpha": 1e-2}

    def models(at: Any) -> list[Any]:
        ceiling = Ridge() + 10.0 * (0.5 * IntegratedPenalty((-np.inf, 0.2), inputs=at))
        return [
            InfiniteQuantileRegressor(noncrossing_inputs=at, **choices),
            InfiniteTaskEstimator(penalty=ceiling, **choices),
        ]

    for named, plain in zip(models(X[:5]), models(X[:5].to_numpy()), strict=True):
        np.testing.assert_array_equal(named.fit(X, y).predict(X, [0.5]), plain.fit(X, y).predict(X, [0.5]))
    for wrong in models(X[["dose", "age"]][:5]):
        with pytest.raises(ValueError, match=r"inputs was refused\. The feature names should match"):
            wrong.fit(X, y)


def test_rows_that_a_solver_brings_in_another_order_keep_their_weights() -> None:
    rng = np.random.default_rng(0)
    inputs, named = rng.normal(size=(400, 5)), 2.0 * rng.normal(size=(60, 5))
    y = inputs[:, 0] + rng.normal(size=400)
    options = CHOICES | {"gamma": "median", "kernel": "laplacian", "task_gamma": 40.0}
    recipe = InfiniteQuantileRegressor(noncrossing_inputs=named, **options).recipe()
    objective = pose(recipe, Data.canonical(inputs, y, np.ones(400)), np.random.default_rng(0)).objective
    assert Eigenbasis.of(objective).order is not None, "an order of its own, or nothing is tested"
    found = solve(objective)
    assert found.converged
    assert objective.evaluate(found.z, Smoothing((0.0, 0.0))).primal == pytest.approx(found.objective, rel=1e-12)
