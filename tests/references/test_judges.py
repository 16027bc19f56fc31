"""Outside judges: the published problems of the paper's relatives, solved by cvxpy and scikit-learn on small data."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import SVC, OneClassSVM

from infinitask import (
    IndependentCostSensitiveClassifier,
    IndependentQuantileRegressor,
    InfiniteExpectileRegressor,
    InfiniteKernelRidge,
    InfiniteOneClassSVM,
    InfiniteTaskEstimator,
    JointQuantileRegressor,
    QOneClassSVM,
)
from infinitask.measures import Discrete

LEVELS = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
GAMMA, TASK_GAMMA = 0.5, 2.0


def sample(n: int = 43, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """An odd number of rows: n·θ is then no integer, and the free biases are unique."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, np.sin(2.0 * X[:, 0]) + 0.3 * (1.0 + X[:, 1] ** 2) * rng.normal(size=n)


def gaussian(A: np.ndarray, B: np.ndarray, gamma: float) -> np.ndarray:
    return np.exp(-gamma * np.sum((A[:, None, :] - B[None, :, :]) ** 2, axis=2))


def root(K: np.ndarray) -> np.ndarray:
    """L with L Lᵀ = K, for matrices that are singular to rounding."""
    values, vectors = np.linalg.eigh(K)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def pinball(r: Any, levels: np.ndarray) -> Any:
    upper = np.broadcast_to(levels, r.shape)
    return cp.sum(cp.maximum(cp.multiply(upper, r), cp.multiply(upper - 1.0, r)))


def minimise(objective: Any) -> float:
    problem = cp.Problem(cp.Minimize(objective))
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    assert problem.status == "optimal"
    return float(problem.value)


def test_joint_quantile_regression_solves_its_published_problem() -> None:
    """Sangnier, Fercoq and d'Alché-Buc (2016): min ½‖h‖² + C Σ_ij ρ_j(y_i − h_j(x_i) − b_j), kernel k ⊗ exp(−γ d²)."""
    X, y = sample()
    n, m, alpha = len(y), len(LEVELS), 5e-3
    C = 1.0 / (alpha * n * m)
    left = root(gaussian(X, X, GAMMA))
    right = root(gaussian(LEVELS[:, None], LEVELS[:, None], TASK_GAMMA))
    coef, bias = cp.Variable((n, m)), cp.Variable((1, m))
    h = left @ coef @ right.T + np.ones((n, 1)) @ bias
    best = minimise(0.5 * cp.sum_squares(coef) + C * pinball(y[:, None] - h, LEVELS))
    model = JointQuantileRegressor(quantiles=LEVELS, gamma=GAMMA, task_gamma=TASK_GAMMA, alpha=alpha, tol=1e-8).fit(
        X, y
    )
    assert model.objective_ / alpha == pytest.approx(best, rel=1e-6)
    np.testing.assert_allclose(model.predict(X), h.value, atol=1e-3)
    assert np.ptp(bias.value) > 0.3, "biases that differ, or their freedom would not be tested"


def test_independent_quantile_regression_solves_its_published_problem() -> None:
    """Takeuchi, Le, Sears and Smola (2006): min ½‖f‖² + C Σ_i ρ_τ(y_i − f(x_i) − b), level by level."""
    X, y = sample()
    n, alpha = len(y), 2e-2
    C = 1.0 / (alpha * n)
    left = root(gaussian(X, X, GAMMA))
    model = IndependentQuantileRegressor(quantiles=LEVELS, gamma=GAMMA, alpha=alpha, tol=1e-8).fit(X, y)
    total = 0.0
    for j, level in enumerate(LEVELS):
        coef, bias = cp.Variable((n, 1)), cp.Variable()
        h = left @ coef + bias
        total += minimise(0.5 * cp.sum_squares(coef) + C * pinball(y[:, None] - h, np.array([level])))
        np.testing.assert_allclose(model.predict(X, level), h.value[:, 0], atol=1e-3)
        assert model.predict(X)[:, j] == pytest.approx(model.predict(X, level))
    assert model.objective_ * len(LEVELS) / alpha == pytest.approx(total, rel=1e-6)


def test_expectiles_solve_their_problem() -> None:
    X, y = sample()
    n, m, alpha = len(y), len(LEVELS), 1e-2
    left = root(gaussian(X, X, GAMMA) + 1.0)  # the bias with the task kernel is a constant feature
    right = root(gaussian(LEVELS[:, None], LEVELS[:, None], TASK_GAMMA))
    coef = cp.Variable((n, m))
    h = left @ coef @ right.T
    r = y[:, None] - h
    above = np.broadcast_to(LEVELS, (n, m))
    loss = cp.sum(cp.multiply(above, cp.square(cp.pos(r))) + cp.multiply(1.0 - above, cp.square(cp.neg(r)))) / (n * m)
    best = minimise(loss + 0.5 * alpha * cp.sum_squares(coef))
    model = InfiniteExpectileRegressor(
        measure=Discrete(LEVELS),
        quadrature="discrete",
        gamma=GAMMA,
        task_gamma=TASK_GAMMA,
        alpha=alpha,
        alpha_bias=None,
        tol=1e-8,
    ).fit(X, y)
    assert model.objective_ == pytest.approx(best, rel=1e-6)
    np.testing.assert_allclose(model.predict(X, LEVELS), h.value, atol=1e-3)


@pytest.mark.parametrize("seed", [0, 1])
def test_independent_cost_sensitive_classifiers_are_support_vector_machines_with_class_weights(seed: int) -> None:
    X, y = sample(80, seed)
    labels = np.where(y > 0.4, 1, 0)
    n, alpha, thetas = len(y), 1e-2, np.array([-0.7, -0.2, 0.0, 0.6])
    model = IndependentCostSensitiveClassifier(thetas=thetas, gamma=GAMMA, alpha=alpha, tol=1e-9).fit(X, labels)
    for theta in thetas:
        weights = {0: (1.0 - theta) / 2.0, 1: (1.0 + theta) / 2.0}
        judge = SVC(kernel="rbf", gamma=GAMMA, C=1.0 / (alpha * n), class_weight=weights, tol=1e-9).fit(X, labels)
        np.testing.assert_allclose(model.decision_function(X, theta), judge.decision_function(X), atol=1e-3)


def test_independent_level_sets_are_one_class_support_vector_machines() -> None:
    X, _ = sample(81)
    nus = np.array([0.1, 0.3, 0.6])
    model = InfiniteOneClassSVM(
        measure=Discrete(nus), quadrature="discrete", task_kernel="diagonal", gamma=GAMMA, alpha=0.0, tol=1e-9
    ).fit(X)
    for nu in nus:
        judge = OneClassSVM(kernel="rbf", gamma=GAMMA, nu=nu, tol=1e-9).fit(X)
        # libsvm scales its problem by ν n
        np.testing.assert_allclose(
            model.decision_function(X, nu), judge.decision_function(X) / (nu * len(X)), atol=1e-3 / (nu * len(X))
        )


def test_q_one_class_solves_its_published_problem() -> None:
    """Glazer, Lindenbaum and Markovitch (2013): one w and a threshold per level.

    min (q/2)‖w‖² + Σ_j [Σ_i ξ_ij/(n ν_j) − ρ_j] with ⟨w, φ(x_i)⟩ ≥ ρ_j − ξ_ij, ξ ≥ 0.
    """
    X, _ = sample(53)
    nus = np.array([0.15, 0.4, 0.7])
    n, q = len(X), len(nus)
    left = root(gaussian(X, X, GAMMA))
    w, rho = cp.Variable((n, 1)), cp.Variable((1, q))
    h = left @ w @ np.ones((1, q))
    excess = cp.pos(np.ones((n, 1)) @ rho - h)
    loss = cp.sum(cp.multiply(np.broadcast_to(1.0 / (n * nus), (n, q)), excess)) - cp.sum(rho)
    best = minimise(0.5 * q * cp.sum_squares(w) + loss)
    model = QOneClassSVM(nus=nus, gamma=GAMMA, tol=1e-8).fit(X)
    assert q * model.objective_ == pytest.approx(best, rel=1e-6)
    np.testing.assert_allclose(model.decision_function(X, nus), (h - np.ones((n, 1)) @ rho).value, atol=1e-3)
    inside = model.predict(X, nus) == 1
    assert np.all(inside[:, :-1] >= inside[:, 1:]), "one w and ordered thresholds: nested sets"


def test_parametric_tasks_solve_their_problem() -> None:
    """Takeuchi, Hongo, Sugiyama and Nakajima (2013): h affine in x, piecewise linear in θ between knots."""
    X, y = sample()
    knots = np.linspace(0.1, 0.9, 5)
    n, m, alpha = len(y), len(knots), 1e-2
    # in the RKHS of min(s, t) + 1 a function is its value at the first knot and its increments
    steps = np.diff(np.concatenate([[-1.0], knots]))
    increments = np.tril(np.ones((m, m))) * np.sqrt(steps)
    features = np.column_stack([X, np.ones(n)])
    coef = cp.Variable((3, m))
    h = features @ coef @ increments.T
    best = minimise(pinball(y[:, None] - h, knots) / (n * m) + 0.5 * alpha * cp.sum_squares(coef))
    model = InfiniteTaskEstimator(
        "pinball",
        measure=Discrete(knots),
        quadrature="discrete",
        kernel="linear",
        task_kernel="piecewise-linear",
        alpha=alpha,
        alpha_bias=None,
        tol=1e-8,
    ).fit(X, y)
    assert model.objective_ == pytest.approx(best, rel=1e-6)
    np.testing.assert_allclose(model.decision_function(X, knots), h.value, atol=1e-3)
    # between knots it is the straight line, and it is affine in x
    middle = 0.5 * (knots[1] + knots[2])
    between = 0.5 * (model.decision_function(X, knots[1]) + model.decision_function(X, knots[2]))
    np.testing.assert_allclose(model.decision_function(X, middle), between, atol=1e-9)
    residual = between - features @ np.linalg.lstsq(features, between, rcond=None)[0]
    np.testing.assert_allclose(residual, 0.0, atol=1e-8)


def test_parametric_tasks_take_a_metric() -> None:
    """The same authors: Σ_j w_j ⟨α_j, D α_j⟩ with a metric D that all tasks share, the norm of k_X(x, z) = xᵀD⁻¹z."""
    X, y = sample()
    knots, alpha = np.linspace(0.1, 0.9, 5), 1e-2
    n, m = len(y), len(knots)
    metric = np.array([[2.0, 0.9], [0.9, 0.5]])
    coef, bias = cp.Variable((2, m)), cp.Variable((1, m))
    h = X @ coef + np.ones((n, 1)) @ bias
    ridge = cp.sum_squares(np.linalg.cholesky(np.linalg.inv(metric)).T @ coef) / m
    best = minimise(pinball(y[:, None] - h, knots) / (n * m) + 0.5 * alpha * ridge)
    model = InfiniteTaskEstimator(
        "pinball",
        measure=Discrete(knots),
        quadrature="discrete",
        kernel=lambda X, Z: X @ metric @ Z.T,
        penalty="integrated",
        task_kernel="piecewise-linear",
        bias_kernel="piecewise-linear",
        alpha=alpha,
        alpha_bias=0.0,
        tol=1e-8,
    ).fit(X, y)
    assert model.objective_ == pytest.approx(best, rel=1e-6)
    tasks = model.decision_function(np.eye(2), knots) - model.decision_function(np.zeros((1, 2)), knots)
    np.testing.assert_allclose(tasks, coef.value, atol=1e-3)


@pytest.mark.parametrize("log_alpha", [-4.0, -2.5, -1.0])
def test_the_ridge_path_is_kernel_ridge_at_every_weight(log_alpha: float) -> None:
    X, y = sample(60)
    judge = KernelRidge(alpha=len(y) * 10.0**log_alpha, kernel="rbf", gamma=GAMMA).fit(X, y)
    model = InfiniteKernelRidge(gamma=GAMMA, centred=False).fit(X, y)
    np.testing.assert_allclose(model.predict(X, log_alpha), judge.predict(X), atol=1e-3)
