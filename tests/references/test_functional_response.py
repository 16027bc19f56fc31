"""Function-valued ridge regression (Kadri et al., 2016) is this library's problem with the squared loss on curves.

Its outputs are functions y_i in L²(μ), and its kernel K(x, z) = k_X(x, z) T has the integral operator
(T u)(θ) = ∫ k_Θ(θ, τ) u(τ) dμ(τ). The minimiser of Σ_i ‖y_i − h(x_i)‖² + λ‖h‖² is h(x) = Σ_i k_X(x, x_i) T u_i with
(K + λ) u = y. Here that is solved for a measure on finitely many points, with NumPy alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from infinitask import InfiniteFunctionRegressor, InfiniteTaskEstimator
from infinitask.measures import Discrete
from tests.support.each import each

GAMMA, TASK_GAMMA, LAM = 0.7, 8.0, 0.05
N, T = 15, 12


def gaussian(A: np.ndarray, B: np.ndarray, gamma: float) -> np.ndarray:
    return np.exp(-gamma * np.sum((A[:, None] - B[None]) ** 2, axis=2))


class FunctionRidge:
    """The solution of Kadri et al. from the eigenvalues of the Gram matrix and of T, of which the largest are kept."""

    def __init__(self, X: np.ndarray, Y: np.ndarray, theta: np.ndarray, weights: np.ndarray, kept: int = T) -> None:
        self.X, self.theta, self.weights = X, theta, weights
        root = np.sqrt(weights)  # T is symmetric in L²(μ): √w k √w is, as a matrix
        e, V = np.linalg.eigh(gaussian(X, X, GAMMA))
        f, S = np.linalg.eigh(root[:, None] * gaussian(theta[:, None], theta[:, None], TASK_GAMMA) * root)
        f, S = f[-kept:], S[:, -kept:]
        self.u = V @ ((V.T @ (Y * root) @ S) / (np.outer(e, f) + LAM)) @ S.T / root

    def __call__(self, X: np.ndarray, theta: np.ndarray) -> np.ndarray:
        T_u = gaussian(theta[:, None], self.theta[:, None], TASK_GAMMA) @ (self.weights * self.u).T
        return gaussian(X, self.X, GAMMA) @ T_u.T

    @property
    def squared_norm(self) -> float:
        """Σ_il k_X(x_i, x_l) ⟨T u_i, u_l⟩."""
        T_u = gaussian(self.theta[:, None], self.theta[:, None], TASK_GAMMA) @ (self.weights * self.u).T
        return float(np.sum(gaussian(self.X, self.X, GAMMA) * (self.u * self.weights @ T_u)))


def curves(even: bool = False) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 2))
    theta = (np.arange(T) + 0.5) / T if even else np.sort(rng.uniform(size=T))
    weights = np.full(T, 1.0 / T) if even else rng.dirichlet(np.full(T, 3.0))
    Y = np.sin(5.0 * theta + X[:, :1]) + X[:, 1:] * theta + 0.1 * rng.normal(size=(N, T))
    return X, Y, theta, weights


def ours(X: np.ndarray, Y: np.ndarray, theta: np.ndarray, weights: np.ndarray, **params: Any) -> Any:
    """The same problem: 1/n Σ_i Σ_j w_j ½(y_ij − h(x_i)(θ_j))² + (α/2)‖h‖², with α = λ/n."""
    return InfiniteTaskEstimator(
        "squared",
        measure=Discrete(theta, weights),
        quadrature="discrete",
        gamma=GAMMA,
        task_gamma=TASK_GAMMA,
        alpha=LAM / len(X),
        bias_kernel=None,
        features="exact",
        tol=1e-12,
        **params,
    ).fit(X, Y)


def test_the_reference_solves_the_linear_system_of_the_operator() -> None:
    X, Y, theta, weights = curves()
    operator = np.kron(gaussian(X, X, GAMMA), gaussian(theta[:, None], theta[:, None], TASK_GAMMA) * weights)
    u = np.linalg.solve(operator + LAM * np.eye(N * T), Y.ravel()).reshape(N, T)
    np.testing.assert_allclose(FunctionRidge(X, Y, theta, weights).u, u, rtol=1e-8, atol=1e-8)


def test_our_fit_is_the_function_valued_ridge_regression() -> None:
    X, Y, theta, weights = curves()
    reference, model = FunctionRidge(X, Y, theta, weights), ours(X, Y, theta, weights)
    rng = np.random.default_rng(1)
    X_new = rng.normal(size=(20, 2))
    assert np.std(reference(X_new, theta)) > 0.3
    np.testing.assert_allclose(model.decision_function(X_new, theta), reference(X_new, theta), atol=1e-6)
    between = np.linspace(0.0, 1.0, 31)  # both have a prediction at every θ
    np.testing.assert_allclose(model.field_(X_new, between), reference(X_new, between), atol=1e-6)
    assert model.field_.norm**2 == pytest.approx(reference.squared_norm, rel=1e-6)  # one space, with one norm
    fit = np.sum(weights * (Y - reference(X, theta)) ** 2)
    assert model.objective_ == pytest.approx((fit + LAM * reference.squared_norm) / (2.0 * N), rel=1e-6)


def test_the_regressor_of_curves_is_it_on_an_even_grid() -> None:
    X, Y, theta, weights = curves(even=True)
    model = InfiniteFunctionRegressor(
        gamma=GAMMA, task_gamma=TASK_GAMMA, alpha=LAM / N, bias_kernel=None, tol=1e-12, random_state=0
    ).fit(X, Y, theta)
    reference = FunctionRidge(X, Y, theta, weights)
    np.testing.assert_allclose(model.predict(X, theta), reference(X, theta), atol=1e-6)


@each("wave", [3.0, 9.0])
def test_a_truncated_operator_comes_closer_with_each_eigenfunction(wave: float) -> None:
    """Kadri et al. keep the largest eigenvalues of T; the representer theorem needs no such approximation."""
    X, Y, theta, weights = curves()
    Y = np.sin(wave * theta + X[:, :1])
    exact = ours(X, Y, theta, weights).decision_function(X, theta)
    errors = []
    for kept in (1, 2, 4, 8, T):  # the eigenfunctions are orthogonal in L²(μ), where the error is measured
        away = FunctionRidge(X, Y, theta, weights, kept)(X, theta) - exact
        errors.append(np.sqrt(np.mean(away**2 @ weights)))
    assert errors[0] > 0.1
    assert errors[-1] < 1e-6
    assert np.all(np.diff(errors) < 0.0)


def test_more_nodes_come_closer_to_the_curves_that_are_functions() -> None:
    """Of curves that are known everywhere, the integral over θ is replaced by a rule: its error vanishes with m."""
    X, *_ = curves()
    found = []
    for m in (3, 6, 12, 24, 96):
        theta = (np.arange(m) + 0.5) / m
        model = ours(X, np.sin(5.0 * theta + X[:, :1]), theta, np.full(m, 1.0 / m))
        found.append(model.field_(X, np.linspace(0.0, 1.0, 50)))
    errors = [np.max(np.abs(one - found[-1])) for one in found[:-1]]
    assert np.all(np.array(errors[1:]) < 0.5 * np.array(errors[:-1]))
    assert errors[-1] < 5e-3


def test_a_loss_with_a_parameter_is_not_a_curve() -> None:
    """The constant curves y_i have one mean for all θ; the pinball loss of the same y_i has a quantile for each θ."""
    rng = np.random.default_rng(0)
    X, theta, weights = rng.uniform(size=(80, 2)), (np.arange(T) + 0.5) / T, np.full(T, 1.0 / T)
    y = X[:, 0] + rng.normal(size=80)
    ridge = FunctionRidge(X, np.repeat(y[:, None], T, axis=1), theta, weights)(X, theta)
    quantiles = InfiniteTaskEstimator(
        "pinball", measure=Discrete(theta, weights), quadrature="discrete", gamma=GAMMA, task_gamma=TASK_GAMMA
    ).fit(X, y)
    spread = np.ptp(quantiles.decision_function(X, theta), axis=1)
    assert np.all(np.ptp(ridge, axis=1) < 0.3 * spread)
    below = np.mean(y[:, None] < quantiles.decision_function(X, theta), axis=0)
    assert np.max(np.abs(below - theta)) < 0.1
