"""The weight of an ℓ¹ norm as a task: the path of the lasso, with a small ridge, in one fit.

With the linear kernel h(x)(θ) = ⟨β_θ, x⟩, so the coefficients are the values of h at the unit vectors. An integrated
penalty of these values is an ℓ¹ norm whose weight, 10^θ, is the task. Each node is then an elastic net.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import ElasticNet, Lasso

from infinitask import InfiniteTaskEstimator
from infinitask.losses import BoxLoss, Row
from infinitask.measures import Uniform
from infinitask.penalties import IntegratedPenalty, IntegratedRidge


class WeightedDistance(BoxLoss):
    """10^θ |v|."""

    def row(self, theta: Any, y: Any) -> Row:
        return Row(-(10.0**theta), 10.0**theta)


def path(ridge: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float]:
    """X, y, the nodes, the coefficients β (d, m), and the objective."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 6))
    y = X @ [2.0, -1.0, 0.5, 0.0, 0.0, 0.0] + 0.3 * rng.normal(size=60)
    y -= np.mean(y)
    l1 = 6.0 * IntegratedPenalty(WeightedDistance(), inputs=np.eye(6))  # a sum over 6 values, not their mean
    model = InfiniteTaskEstimator(
        "squared",
        kernel="linear",
        bias_kernel=None,
        penalty=IntegratedRidge() + l1,
        alpha=ridge,
        measure=Uniform(-3.0, 0.3),
        n_nodes=12,
        tol=1e-8,
    ).fit(X, y)
    return X, y, model.nodes_, model.field_(np.eye(6), model.nodes_), model.objective_


@pytest.mark.parametrize("ridge", [1e-1, 1e-3])
def test_every_node_is_an_elastic_net(ridge: float) -> None:
    X, y, nodes, found, objective = path(ridge)
    total, weights = 0.0, np.polynomial.legendre.leggauss(12)[1] / 2.0
    for theta, beta, weight in zip(nodes, found.T, weights, strict=True):
        l1 = 10.0**theta
        judge = ElasticNet(
            alpha=l1 + ridge, l1_ratio=l1 / (l1 + ridge), fit_intercept=False, tol=1e-12, max_iter=100_000
        ).fit(X, y)
        np.testing.assert_allclose(beta, judge.coef_, atol=1e-4)
        b = judge.coef_
        total += weight * (0.5 * np.mean((y - X @ b) ** 2) + l1 * np.sum(np.abs(b)) + 0.5 * ridge * b @ b)
    assert objective == pytest.approx(total, rel=1e-7)


def test_a_vanishing_ridge_leaves_the_lasso_and_its_zeros() -> None:
    X, y, nodes, found, _ = path(1e-5)
    zeros = np.sum(np.abs(found) < 1e-6, axis=0)
    assert zeros[0] == 0
    assert zeros[-1] >= 4
    for theta, beta in zip(nodes, found.T, strict=True):
        judge = Lasso(alpha=10.0**theta, fit_intercept=False, tol=1e-12, max_iter=100_000).fit(X, y)
        np.testing.assert_allclose(beta, judge.coef_, atol=1e-3)
