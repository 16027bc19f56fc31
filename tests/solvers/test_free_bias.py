"""A bias without a ridge: what it makes invariant, and a certificate that still holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from infinitask import InfiniteOneClassSVM, InfiniteSVR, InfiniteTaskEstimator
from infinitask.kernels import ConstantTask, Diagonal, Gaussian
from infinitask.losses import CostSensitiveHinge, EpsilonInsensitive, Expectile, Loss, MQuantile, Pinball
from infinitask.losses._rows import NonCrossing
from infinitask.measures import Discrete
from infinitask.objective import Integral, Objective, Smoothing
from tests.support.random_problems import problem

LEVELS = [0.1, 0.35, 0.6, 0.9]
LOSSES: list[Loss] = [Pinball(), MQuantile(0.2), Expectile(), EpsilonInsensitive(), CostSensitiveHinge()]
BIASES = {"one per level": Diagonal(), "a constant": ConstantTask(), "smooth": Gaussian(gamma=4.0)}


def _has_bias(seed: int) -> bool:
    """Whether a random problem has a bias that ``alpha_bias`` weighs."""
    model = problem(seed)[0]
    return model.bias_kernel is not None and not isinstance(model, InfiniteOneClassSVM)


def sample(n: int = 47, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, np.sin(2.0 * X[:, 0]) + 0.5 * (1.0 + X[:, 1] ** 2) * rng.normal(size=n)


def estimator(loss: Any = "pinball", bias: Any = None, **params: Any) -> InfiniteTaskEstimator:
    settings: dict[str, Any] = {
        "measure": Discrete(LEVELS),
        "quadrature": "discrete",
        "task_kernel": Gaussian(gamma=2.0),
        "bias_kernel": Diagonal() if bias is None else bias,
        "alpha": 1e-2,
        "alpha_bias": 0.0,
    }
    return InfiniteTaskEstimator(loss, **{**settings, **params})


def targets(loss: Loss, y: np.ndarray) -> np.ndarray:
    return np.where(y > 0.3, 1.0, -1.0) if isinstance(loss, CostSensitiveHinge) else y


@pytest.mark.parametrize("bias", BIASES, ids=str)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("solver", ["auto", pytest.param("newton", marks=pytest.mark.slow)])
def test_every_fit_is_certified(loss: Loss, bias: str, solver: str) -> None:
    X, y = sample()
    model = estimator(loss, BIASES[bias], tol=1e-6, solver=solver).fit(X, targets(loss, y))
    assert model.dual_gap_ <= 1e-6
    # every dual bound lies below every primal value: not one of the points on the way was infeasible
    history = model.solution_.history
    assert np.max(history[:, 2]) <= np.min(history[:, 1]) + 1e-12


@pytest.mark.parametrize("loss", LOSSES[:4], ids=repr)
def test_a_shift_of_the_targets_shifts_the_model(loss: Loss) -> None:
    X, y = sample()
    here = estimator(loss, tol=1e-9).fit(X, y)
    there = estimator(loss, tol=1e-9).fit(X, y + 1000.0)
    assert there.objective_ == pytest.approx(here.objective_, rel=1e-8)
    np.testing.assert_allclose(
        there.decision_function(X, LEVELS) - 1000.0, here.decision_function(X, LEVELS), atol=2e-4
    )
    with pytest.warns(UserWarning, match="root mean square of 1e[+]03"):
        penalised = estimator(loss, tol=1e-9, alpha_bias=1e-2).fit(X, y + 1000.0)
    assert penalised.objective_ > 2.0 * here.objective_, "a ridge on the bias must matter, or this shows nothing"


def test_each_level_leaves_its_fraction_of_the_data_below() -> None:
    X, y = sample()
    fitted = estimator(tol=1e-9).fit(X, y).decision_function(X, LEVELS)
    below = np.mean(y[:, None] < fitted - 1e-6, axis=0)
    reached = np.mean(y[:, None] <= fitted + 1e-6, axis=0)
    assert np.all(below <= LEVELS)
    assert np.all(reached >= LEVELS)


def free_objective(n: int = 25, seed: int = 0) -> Objective:
    """Quantiles with a penalty on the derivative, and a free bias that enters both integrals."""
    rng = np.random.default_rng(seed)
    theta, weights = np.linspace(0.1, 0.9, 5), np.full(5, 0.2)
    rows, y = rng.normal(size=(n, 3)), rng.normal(size=(n, 1))
    psi, psi_bias = rng.normal(size=(2, 5, 4)), rng.normal(size=(2, 5, 2))
    terms = (
        Integral(Pinball(), theta, weights, psi[0], psi_bias[0], y),
        Integral(NonCrossing(0.3), theta, weights, psi[1], psi_bias[1]),
    )
    return Objective(rows, np.full(n, 1.0 / n), terms, 0.5, 0.0)


@pytest.mark.parametrize("seed", range(5))
def test_a_balanced_dual_point_lies_below_all_primal_values(seed: int) -> None:
    objective = free_objective(seed=seed)
    rng = np.random.default_rng(seed)
    points = [0.3 * rng.normal(size=objective.size) for _ in range(20)]
    found = [objective.evaluate(z, Smoothing((0.5, 0.5))) for z in points]
    bounds = [e.dual_data - 0.5 * float((objective.ridge * e.dual_z) @ e.dual_z) for e in found]
    assert np.sum(np.isfinite(bounds)) >= 5
    assert max(bounds) <= min(e.primal for e in found)


def test_targets_of_their_own_for_every_task_are_fitted_side_by_side() -> None:
    X, y = sample()
    Y = np.column_stack([y, -y, np.abs(y), y**2])
    options: dict[str, Any] = {"task_kernel": Diagonal(), "gamma": "median", "tol": 1e-9}
    together = estimator("expectile", measure=Discrete(LEVELS), **options).fit(X, Y)
    for k, level in enumerate(LEVELS):
        alone = estimator("expectile", measure=Discrete([level]), alpha=4e-2, **options)
        alone.fit(X, Y[:, k])
        np.testing.assert_allclose(together.decision_function(X, level), alone.decision_function(X, level), atol=1e-4)


@pytest.mark.quick(every=3)
@pytest.mark.parametrize("seed", [s for s in range(30) if _has_bias(s)])
def test_random_problems_are_certified(seed: int) -> None:
    model, arguments, name = problem(seed)
    model.set_params(alpha_bias=0.0).fit(*arguments)
    assert model.dual_gap_ <= 1e-4, name
    history = model.solution_.history
    assert np.max(history[:, 2]) <= np.min(history[:, 1]) + 1e-10 * abs(model.objective_), name


@pytest.mark.parametrize("unit", [1.0, 0.1, 0.01])
def test_tubes_wider_than_the_data_are_certified(unit: float) -> None:
    """Most half-widths swallow all targets: the loss is 0 there, and its dual point at rest."""
    X, y = sample()
    model = InfiniteSVR(alpha_bias=0.0, n_nodes=12).fit(X, unit * y)
    assert model.dual_gap_ <= 1e-4
