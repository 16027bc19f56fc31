"""The certificate of level sets is about the field that is returned, not only about what the solver saw."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from infinitask import InfiniteOneClassSVM
from infinitask.datasets import make_mixture

ROUNDING = 2e-9
"""What evaluating ψ costs the objective, relative to it; a node basis at its limit would cost 1e-4."""


def objective_of_the_field(model: InfiniteOneClassSVM, X: np.ndarray) -> float:
    """The problem's objective, from what ``field_`` answers at the nodes."""
    field, theta, w = model.field_, model.nodes_, model.weights_
    inside, t = field(X, theta), -field.bias(theta)
    sections = field.coef @ field.psi(theta).T  # φ is isometric: column j has the norm of h(·)(θ_j)
    risk = w @ (np.mean(np.maximum(-inside, 0.0), axis=0) / theta - t)
    return float(risk + 0.5 * w @ np.sum(sections**2, axis=0) + 0.5 * model.alpha * np.sum(field.bias_coef**2))


@pytest.mark.quick(every=5)
@pytest.mark.parametrize("task_kernel", ["rbf", "matern32", "matern52"])
@pytest.mark.parametrize("task_gamma", [None, 1.0, 20.0, 300.0], ids=str)
@pytest.mark.parametrize(
    "n_nodes", [4, pytest.param(10, marks=pytest.mark.slow), 30, pytest.param(100, marks=pytest.mark.slow)]
)
def test_the_field_attains_the_certified_objective(n_nodes: int, task_gamma: Any, task_kernel: str) -> None:
    X = make_mixture(20, random_state=n_nodes)
    model = InfiniteOneClassSVM(
        n_nodes=n_nodes, task_gamma=task_gamma, task_kernel=task_kernel, gamma=0.3, alpha=1e-4, tol=1e-7
    ).fit(X)
    again = objective_of_the_field(model, X)
    assert again == pytest.approx(model.objective_, rel=ROUNDING)
    assert again - model.solution_.dual <= (model.dual_gap_ + ROUNDING) * abs(model.objective_)
