"""Convex penalties on curves: the estimator finds the optimum of the problem that the docstring states, by cvxpy."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest

from infinitask import InfiniteTaskEstimator
from infinitask.losses import Huber, Pinball
from infinitask.penalties import IntegratedPenalty, IntegratedRidge, Penalty, Ridge

GAMMA, TASK_GAMMA, ALPHA = 1.0, 6.0, 2e-3
NEW = np.linspace(1.2, 2.0, 5)[:, None]
"""Inputs beyond the data."""

VARIATION = IntegratedPenalty((0, 0), of="slope")
CEILING = IntegratedPenalty((-np.inf, 5.4))


class NoUnits(Pinball):
    """The pinball loss without a degree: y is taken as it is, and a free bias is a number at every node."""

    degree = None


def sample(n: int = 20) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(0.0, 1.0, size=(n, 1))
    return X, 5.0 + np.sin(5.0 * X[:, 0]) + 0.5 * rng.normal(size=n)


def root(K: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(K)
    kept = values > 1e-13 * values[-1]
    return np.asarray(vectors[:, kept] * np.sqrt(values[kept]))


def risk_of(loss: str, r: Any, levels: np.ndarray) -> Any:
    """ℓ_θ of residuals (n, m)."""
    if loss == "squared":
        return 0.5 * cp.square(r)
    if loss == "expectile":
        return cp.multiply(levels, cp.square(cp.pos(r))) + cp.multiply(1.0 - levels, cp.square(cp.neg(r)))
    return cp.maximum(cp.multiply(levels, r), cp.multiply(levels - 1.0, r))


def best(
    model: Any, parts: Any, loss: str = "pinball", omega: Any = None, ridge: float = 1.0, rho: float = 0.0
) -> float:
    """min risk + Σ_k a_k Σ ω w p_k(v) + (λ/2)(ridge ‖h‖² + rho ∫‖h(·)(θ)‖²) + (λ_b/2)‖b − offset‖².

    ``parts`` are pairs of a function p of the expressions v, and what it sees: "value", "slope" or "new" for values at
    :data:`NEW`.
    """
    X, y = sample()
    n, theta, w, g = len(X), model.nodes_, model.weights_, TASK_GAMMA
    m, t, both = theta.size, theta[:, None] - theta, np.vstack([X, NEW])
    omega = np.full(n, 1.0 / n) if omega is None else omega / omega.sum()
    phi, gram = root(np.exp(-GAMMA * (both - both.T) ** 2)), np.exp(-g * t**2)
    psi = root(np.block([[gram, 2 * g * t * gram], [-2 * g * t * gram, 2 * g * (1 - 2 * g * t**2) * gram]]))
    C, ones = cp.Variable((phi.shape[1], psi.shape[1])), np.ones((len(both), 1))
    quadratic = ridge * cp.sum_squares(C) + rho * cp.sum(cp.multiply(w, cp.sum(cp.square(C @ psi[:m].T), axis=0)))
    if model.alpha_bias_ == 0.0:  # a number at every node
        seen = phi @ C @ psi[:m].T + ones @ cp.Variable((1, m))
        slopes, held = None, 0.0
    else:
        c = cp.Variable((1, psi.shape[1]))
        f = (phi @ C + ones @ c) @ psi.T
        seen, slopes, held = f[:, :m] + model.recipe_.offset, f[:n, m:], model.alpha_bias_ * cp.sum_squares(c)
    pairs, levels = np.outer(omega, w), np.broadcast_to(theta, (n, m))
    total = cp.sum(cp.multiply(pairs, risk_of(loss, y[:, None] - seen[:n], levels)))
    views = {"value": (seen[:n], pairs), "slope": (slopes, pairs), "new": (seen[n:], np.outer(np.full(5, 0.2), w))}
    for p, name in parts:
        v, weights = views[name]
        total += cp.sum(cp.multiply(weights, p(v)))
    problem = cp.Problem(cp.Minimize(total + 0.5 * model.alpha_ * quadratic + 0.5 * held))
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return float(problem.value)


def variation(weight: float) -> Any:
    return lambda v: weight * cp.abs(v)


def above(weight: float, cap: float = 5.4) -> Any:
    return lambda v: weight * cp.pos(v - cap)


def fitted(penalty: Penalty, loss: Any = "pinball", weight: Any = None, **params: Any) -> Any:
    common = {"gamma": GAMMA, "task_gamma": TASK_GAMMA, "alpha": ALPHA, "alpha_bias": ALPHA, "n_nodes": 5, "tol": 1e-7}
    model = InfiniteTaskEstimator(loss, penalty=penalty, measure=(0.1, 0.9), **(common | params))
    return model.fit(*sample(), sample_weight=weight)


BOTH = Ridge() + 0.05 * VARIATION + 0.3 * CEILING
CASES: dict[str, tuple[Penalty, list[Any], dict[str, Any]]] = {
    "total variation": (Ridge() + 0.05 * VARIATION, [(variation(0.05), "slope")], {}),
    "total variation, free bias": (Ridge() + 0.05 * VARIATION, [(variation(0.05), "slope")], {"alpha_bias": 0.0}),
    "total variation of expectiles": (
        Ridge() + 0.02 * VARIATION,
        [(variation(0.02), "slope")],
        {"loss": "expectile", "alpha_bias": 0.0},
    ),
    "ceiling": (Ridge() + 0.3 * CEILING, [(above(0.3), "value")], {}),
    "ceiling, free bias": (Ridge() + 0.3 * CEILING, [(above(0.3), "value")], {"alpha_bias": 0.0}),
    "floor elsewhere": (
        Ridge() + 0.3 * IntegratedPenalty((5.4, np.inf), inputs=NEW),
        [(lambda v: 0.3 * cp.pos(5.4 - v), "new")],
        {"alpha_bias": 0.0},
    ),
    "both": (BOTH, [(variation(0.05), "slope"), (above(0.3), "value")], {}),
    "both, with the penalty on crossing": (
        BOTH,
        [(variation(0.05), "slope"), (above(0.3), "value"), (lambda v: 0.2 * cp.neg(v), "slope")],
        {"noncrossing": 0.2, "alpha_bias": 0.0},
    ),
    "a band with a width, of squares": (
        Ridge() + 0.3 * IntegratedPenalty((4.8, 5.2)),
        [(lambda v: 0.3 * (cp.pos(v - 5.2) + cp.pos(4.8 - v)), "value")],
        {"loss": "squared"},
    ),
    "Huber's function of the slope": (
        Ridge() + 0.1 * IntegratedPenalty(Huber(0.5), of="slope"),
        [(lambda v: 0.05 * cp.huber(v, 0.5), "slope")],
        {"alpha_bias": 0.0},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_it_finds_the_optimum(name: str) -> None:
    penalty, parts, params = CASES[name]
    model = fitted(penalty, **params)
    assert model.dual_gap_ <= 1e-7
    smallest = best(model, parts, params.get("loss", "pinball"))
    assert model.objective_ == pytest.approx(smallest, rel=1e-6)
    plain = best(model, [], params.get("loss", "pinball"))
    assert smallest > 1.01 * plain, "the penalty costs something, or nothing is tested"


def test_it_joins_both_ridges() -> None:
    model = fitted(0.5 * Ridge() + 2.0 * IntegratedRidge() + 0.05 * VARIATION + 0.3 * CEILING)
    smallest = best(model, [(variation(0.05), "slope"), (above(0.3), "value")], ridge=0.5, rho=2.0)
    assert model.objective_ == pytest.approx(smallest, rel=1e-6)


def test_it_joins_a_bias_that_is_free_at_every_node() -> None:
    model = fitted(Ridge() + 0.3 * CEILING, NoUnits(), alpha_bias=0.0)
    assert model.alpha_bias_ == 0.0
    assert model.objective_ == pytest.approx(best(model, [(above(0.3), "value")]), rel=1e-6)


def test_weights_of_rows_weigh_the_penalty() -> None:
    omega = np.random.default_rng(1).integers(1, 4, size=20).astype(float)
    model = fitted(BOTH, weight=omega)
    smallest = best(model, [(variation(0.05), "slope"), (above(0.3), "value")], omega=omega)
    assert model.objective_ == pytest.approx(smallest, rel=1e-6)


def exponential(theta: Any, v: Any) -> Any:
    """A function of θ and the derivative that torch differentiates."""
    return 0.1 * (1.0 + theta) * (0.5 * v).exp()


@pytest.mark.parametrize("bias", [ALPHA, 0.0])
def test_it_takes_a_function_of_theta_and_the_derivative(bias: float) -> None:
    pytest.importorskip("torch")
    model = fitted(Ridge() + 0.4 * IntegratedPenalty(exponential, of="slope"), alpha_bias=bias)

    def written(v: Any) -> Any:
        return 0.04 * cp.multiply(np.broadcast_to(1.0 + model.nodes_, v.shape), cp.exp(0.5 * v))

    assert model.dual_gap_ <= 1e-7
    assert model.objective_ == pytest.approx(best(model, [(written, "slope")]), rel=1e-6)


# ---------------------------------------------------------------------------------------------------- closed forms
def of_equal_rows(penalty: Penalty) -> np.ndarray:
    """Quantiles of the uniform distribution, whose quantile of level θ is θ, from rows with the same x."""
    y = (np.arange(200) + 0.5) / 200.0
    params: dict[str, Any] = {"kernel": "linear", "n_nodes": 60, "alpha": 1e-4, "task_gamma": 80.0}
    model = InfiniteTaskEstimator(penalty=penalty, **params).fit(np.ones((200, 1)), y)
    return np.asarray(model.predict(np.ones((1, 1)), FINE)[0])


FINE = np.linspace(0.02, 0.98, 97)


@pytest.mark.parametrize("merged", [0.1, 0.2, 0.35])
def test_total_variation_merges_the_outer_quantiles(merged: float) -> None:
    """Inside, the derivative of λ|∂h/∂θ| in θ is 0 and quantiles stay. At the ends, ∫ (F(h) − θ) dθ = λ over [0, a] for
    the constant part: a = √(2λ)."""
    found = of_equal_rows(Ridge() + 0.5 * merged**2 * VARIATION)
    np.testing.assert_allclose(found, np.clip(FINE, merged, 1.0 - merged), atol=0.01)


@pytest.mark.parametrize("weight", [0.1, 0.3])
def test_a_soft_ceiling_lowers_levels_by_its_weight(weight: float) -> None:
    """F(h) − θ + λ = 0 above the ceiling: there the answer is the quantile of level θ − λ, or the ceiling."""
    found = of_equal_rows(Ridge() + weight * IntegratedPenalty((-np.inf, 0.5)))
    np.testing.assert_allclose(found, np.minimum(FINE, np.maximum(0.5, FINE - weight)), atol=0.01)
