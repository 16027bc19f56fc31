"""The problem of many classes, written down for cvxpy from its formula."""

from __future__ import annotations

import cvxpy as cp
import numpy as np

from infinitask import InfiniteCostSensitiveClassifier

GAMMA, TASK_GAMMA, ALPHA = 0.5, 2.0, 0.02


def gaussian(A: np.ndarray, B: np.ndarray, gamma: float) -> np.ndarray:
    return np.exp(-gamma * np.sum((A[:, None, :] - B[None, :, :]) ** 2, axis=2))


def root(K: np.ndarray) -> np.ndarray:
    """L with L Lᵀ = K, for matrices that are singular to rounding."""
    values, vectors = np.linalg.eigh(K)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def test_the_optimum_is_that_of_the_written_problem() -> None:
    rng = np.random.default_rng(0)
    K, n = 3, 18
    y = np.arange(n) % K
    X = rng.normal(size=(n, 2)) + np.array([[0.0, 0.0], [1.5, 0.0], [0.0, 1.5]])[y]
    weight = rng.integers(1, 4, size=n).astype(float)
    model = InfiniteCostSensitiveClassifier(
        kernel="rbf", gamma=GAMMA, task_gamma=TASK_GAMMA, alpha=ALPHA, alpha_bias=None, n_nodes=4, tol=1e-7
    ).fit(X, y, sample_weight=weight)
    theta, w = model.nodes_, model.weights_
    m = len(w)

    inputs = root(gaussian(X, X, GAMMA))
    tasks = root(gaussian(theta[:, None], theta[:, None], TASK_GAMMA))
    objective: cp.Expression = cp.Constant(0.0)
    for k in range(K):
        Z, c, s = cp.Variable((n, m)), cp.Variable(m), np.where(y == k, 1.0, -1.0)[:, None]
        f = inputs @ Z @ tasks.T + np.ones((n, 1)) @ cp.reshape(tasks @ c, (1, m), order="C")
        price = 0.5 * (1.0 + theta * s) * w * (weight / weight.sum())[:, None]
        objective += cp.sum(cp.multiply(price, cp.pos(1.0 - cp.multiply(s @ np.ones((1, m)), f)))) / np.sqrt(K)
        objective += 0.5 * ALPHA * (cp.sum_squares(Z) + cp.sum_squares(c))
    problem = cp.Problem(cp.Minimize(objective))
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    assert problem.status == "optimal"
    assert model.dual_gap_ <= 1e-7
    assert model.solution_.dual <= problem.value * (1.0 + 1e-7)
    np.testing.assert_allclose(model.objective_, problem.value, rtol=1e-6)
