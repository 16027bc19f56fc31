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
    costs, w = model.nodes_, model.weights_
    m = len(w)

    inputs, tasks = root(gaussian(X, X, GAMMA)), root(gaussian(costs, costs, TASK_GAMMA))
    # fields that sum to zero: corners of a simplex around 0, with norm one and inner products −1/(K − 1)
    corners = root((K * np.eye(K) - 1.0) / (K - 1.0))
    # f_k = inputs Z_k tasksᵀ + b_k, where Z_k and b_k are combinations of K free matrices by the corners
    Z, c = [cp.Variable((n, m)) for _ in range(K)], [cp.Variable(m) for _ in range(K)]
    risk: cp.Expression = cp.Constant(0.0)
    for k in range(K):
        h = sum(corners[k, a] * (inputs @ Z[a] @ tasks.T) for a in range(K))
        b = sum(corners[k, a] * (tasks @ c[a]) for a in range(K))
        f = h + np.ones((n, 1)) @ cp.reshape(b, (1, m), order="C")
        price = 0.5 * K * costs[:, y].T * (y != k)[:, None] * w * (weight / weight.sum())[:, None]
        risk += cp.sum(cp.multiply(price, cp.pos(f + 1.0 / (K - 1))))
    ridge = sum(cp.sum_squares(Z[a]) + cp.sum_squares(c[a]) for a in range(K))
    problem = cp.Problem(cp.Minimize(risk + 0.5 * ALPHA * ridge))
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    assert problem.status == "optimal"
    assert model.dual_gap_ <= 1e-7
    np.testing.assert_allclose(model.objective_, problem.value, rtol=1e-6)
