"""Every line of the table of objectives in the paper's supplement, solved by cvxpy on small data."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest

from infinitask import (
    InfiniteCostSensitiveClassifier,
    InfiniteExpectileRegressor,
    InfiniteQuantileRegressor,
    InfiniteTaskEstimator,
)
from infinitask.losses import MQuantile
from infinitask.penalties import IntegratedRidge, Ridge

Floats = np.ndarray[Any, Any]

GAMMA, TASK_GAMMA, ALPHA, NODES = 4.0, 30.0, 1e-3, 6
LIGHT = 0.003  # a weight that leaves curves falling, or the form of the penalty would not show
CHOICES: dict[str, Any] = {
    "gamma": GAMMA,
    "task_gamma": TASK_GAMMA,
    "alpha": ALPHA,
    "alpha_bias": ALPHA,
    "n_nodes": NODES,
    "tol": 1e-8,
}


def sample(n: int = 20, seed: int = 0) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, size=(n, 1))
    return X, np.sin(3.0 * X[:, 0]) + 0.5 * rng.normal(size=n)


def root(K: Floats) -> Floats:
    """L with L Lᵀ = K, for matrices that are singular to rounding."""
    values, vectors = np.linalg.eigh(K)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def inputs(X: Floats) -> Floats:
    return root(np.exp(-GAMMA * (X - X.T) ** 2))


def tasks(theta: Floats) -> tuple[Floats, Floats]:
    """Ψ and ∂Ψ from the joint Gram of values and derivatives, written out."""
    g, t = TASK_GAMMA, theta[:, None] - theta
    k = np.exp(-g * t**2)
    joint = root(np.block([[k, 2 * g * t * k], [-2 * g * t * k, 2 * g * (1 - 2 * g * t**2) * k]]))
    return joint[: theta.size], joint[theta.size :]


def levels(low: float = 0.0, high: float = 1.0) -> tuple[Floats, Floats]:
    points, weights = np.polynomial.legendre.leggauss(NODES)
    return low + (high - low) * (points + 1.0) / 2.0, weights / 2.0


def minimise(objective: Any) -> float:
    problem = cp.Problem(cp.Minimize(objective))
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    assert problem.status == "optimal"
    return float(problem.value)


def smoothed_positive(p: Any, kappa: float) -> Any:
    """ψ₊^κ, as the minimum over the part that is counted linearly."""
    return cp.huber(cp.pos(p), kappa) / (2.0 * kappa)


def smoothed_pinball(r: Any, theta: Floats, kappa: float) -> Any:
    upper = np.broadcast_to(theta, r.shape)
    return cp.multiply(upper, smoothed_positive(r, kappa)) + cp.multiply(1.0 - upper, smoothed_positive(-r, kappa))


def expectile(r: Any, theta: Floats) -> Any:
    upper = np.broadcast_to(theta, r.shape)
    return cp.multiply(upper, cp.square(cp.pos(r))) + cp.multiply(1.0 - upper, cp.square(cp.pos(-r)))


class Judge:
    """min Σ ω w ℓ + λ_nc Σ ω w p(−∂f) + (λ/2)(‖h‖² + ‖b‖²) over f = h + b, by cvxpy."""

    def __init__(self, X: Floats, theta: Floats, weights: Floats) -> None:
        rows, (psi, slopes) = inputs(X), tasks(theta)
        self.coef, self.bias = cp.Variable((rows.shape[1], psi.shape[1])), cp.Variable((1, psi.shape[1]))
        both = rows @ self.coef + np.ones((len(X), 1)) @ self.bias
        self.values, self.fall = both @ psi.T, -both @ slopes.T
        self.weights = np.broadcast_to(weights / len(X), (len(X), theta.size))
        self.ridge = 0.5 * ALPHA * (cp.sum_squares(self.coef) + cp.sum_squares(self.bias))

    def mean(self, entries: Any) -> Any:
        return cp.sum(cp.multiply(self.weights, entries))


@pytest.mark.quick("0.05")
@pytest.mark.parametrize("kappa", [0.05, 0.6])
def test_m_quantiles_with_the_smoothed_penalty(kappa: float) -> None:
    X, y = sample()
    model = InfiniteQuantileRegressor(smoothing=kappa, noncrossing=LIGHT, noncrossing_loss="smoothed", **CHOICES)
    model.fit(X, y)
    judge = Judge(X, model.nodes_, model.weights_)
    loss = judge.mean(smoothed_pinball(y[:, None] - judge.values, model.nodes_, kappa))
    crossing = judge.mean(smoothed_positive(judge.fall, kappa))
    assert model.objective_ == pytest.approx(minimise(loss + LIGHT * crossing + judge.ridge), rel=1e-6)
    assert np.mean(judge.fall.value > 1e-3) > 0.03, "curves that fall, or the penalty would not be tested"
    hinge = InfiniteQuantileRegressor(smoothing=kappa, noncrossing=LIGHT, **CHOICES).fit(X, y)
    assert hinge.objective_ > model.objective_ * (1.0 + 1e-5)


@pytest.mark.quick("0.3")
@pytest.mark.parametrize("weight", [0.003, 0.3])
def test_expectiles_with_the_squared_penalty(weight: float) -> None:
    X, y = sample()
    model = InfiniteExpectileRegressor(noncrossing=weight, noncrossing_loss="squared", **CHOICES).fit(X, y)
    judge = Judge(X, model.nodes_, model.weights_)
    loss = judge.mean(expectile(y[:, None] - judge.values, model.nodes_))
    crossing = judge.mean(cp.square(cp.pos(judge.fall)))
    assert model.objective_ == pytest.approx(minimise(loss + weight * crossing + judge.ridge), rel=1e-6)
    assert np.mean(judge.fall.value > 1e-3) > 0.03, "curves that fall, or the penalty would not be tested"


def test_the_general_estimator_takes_the_kappa_of_its_loss() -> None:
    X, y = sample()
    options = {"noncrossing": 0.2, "noncrossing_loss": "smoothed", **CHOICES}
    general = InfiniteTaskEstimator(MQuantile(0.6), **options).fit(X, y)
    special = InfiniteQuantileRegressor(smoothing=0.6, **options).fit(X, y)
    assert general.objective_ == pytest.approx(special.objective_, rel=1e-12)


def test_without_a_kappa_the_smoothed_penalty_is_the_hinge() -> None:
    X, y = sample()
    one, other = (
        InfiniteQuantileRegressor(noncrossing=0.2, noncrossing_loss=kind, **CHOICES).fit(X, y)
        for kind in ("smoothed", "hinge")
    )
    np.testing.assert_array_equal(one.field_.coef, other.field_.coef)


@pytest.mark.parametrize("estimator", [InfiniteQuantileRegressor, InfiniteExpectileRegressor, InfiniteTaskEstimator])
def test_a_penalty_that_is_not_known_is_named(estimator: Any) -> None:
    X, y = sample()
    with pytest.raises(ValueError, match=r"noncrossing_loss='cubed' was given; it must be one of 'hinge'"):
        estimator(noncrossing_loss="cubed").fit(X, y)


def test_expectiles_have_no_kappa_to_smooth_with() -> None:
    with pytest.raises(
        ValueError, match=r"noncrossing_loss='smoothed' was given; it must be one of 'hinge', 'squared'"
    ):
        InfiniteExpectileRegressor(noncrossing_loss="smoothed").recipe()


def test_a_squared_penalty_has_no_bound_of_stability() -> None:
    from infinitask.bounds import bound_of

    X, y = sample()
    model = InfiniteQuantileRegressor(noncrossing=0.2, noncrossing_loss="squared", **CHOICES).fit(X, y)
    with pytest.raises(ValueError, match="slopes have no bound"):
        bound_of(model, X, y)


@pytest.mark.quick(every=2)
@pytest.mark.parametrize("kappa", [0.0, 0.3, 2.0])
def test_costs_with_the_smoothed_hinge(kappa: float) -> None:
    X, y = sample(24)
    y = np.where(y > np.median(y), 1.0, -1.0)
    model = InfiniteCostSensitiveClassifier(smoothing=kappa, **CHOICES).fit(X, y)
    judge = Judge(X, model.nodes_, model.weights_)
    cost = np.abs((model.nodes_ + 1.0) / 2.0 - (y[:, None] == -1.0))
    margin = 1.0 - cp.multiply(np.broadcast_to(y[:, None], cost.shape), judge.values)
    loss = cp.multiply(cost, smoothed_positive(margin, kappa) if kappa > 0.0 else cp.pos(margin))
    assert model.objective_ == pytest.approx(minimise(judge.mean(loss) + judge.ridge), rel=1e-6)
    assert model.recipe_.task.loss.kappa == kappa
    general = InfiniteTaskEstimator(model.recipe_.task.loss, **CHOICES).fit(X, y)
    assert general.objective_ == pytest.approx(model.objective_, rel=1e-7)


@pytest.mark.quick(every=3)
@pytest.mark.parametrize("noncrossing", [0.0, LIGHT])
@pytest.mark.parametrize("share", [1.0, 25.0])
def test_ridge_and_integrated_ridge_together(share: float, noncrossing: float) -> None:
    """The weighted sum of penalties that the paper allows, with the non-crossing penalty beside it."""
    X, y = sample()
    penalty = "both" if share == 1.0 else Ridge() + share * IntegratedRidge()
    model = InfiniteTaskEstimator("pinball", penalty=penalty, noncrossing=noncrossing, **CHOICES).fit(X, y)
    judge = Judge(X, model.nodes_, model.weights_)
    levels = np.broadcast_to(model.nodes_, (len(X), NODES))
    r = y[:, None] - judge.values
    loss = judge.mean(cp.maximum(cp.multiply(levels, r), cp.multiply(levels - 1.0, r)))
    at_nodes = cp.sum(cp.square(judge.coef @ tasks(model.nodes_)[0].T), axis=0)
    integrated = 0.5 * ALPHA * share * (at_nodes @ model.weights_)
    total = loss + noncrossing * judge.mean(cp.pos(judge.fall)) + judge.ridge + integrated
    assert model.objective_ == pytest.approx(minimise(total), rel=1e-6)
    assert integrated.value > 0.01 * model.objective_, "a penalty that weighs something, or it would not be tested"


def test_the_integrated_ridge_alone_still_refuses_non_crossing() -> None:
    X, y = sample()
    with pytest.raises(ValueError, match="Use the plain ridge, or the sum of both"):
        InfiniteTaskEstimator(penalty="integrated", noncrossing=1.0).fit(X, y)


def test_m_quantiles_become_quantiles_as_the_smoothing_shrinks() -> None:
    X, y = sample()
    sharp = InfiniteQuantileRegressor(noncrossing=0.05, **CHOICES).fit(X, y)
    options: dict[str, Any] = {"noncrossing": 0.05, "noncrossing_loss": "smoothed", **CHOICES}
    away = []
    for kappa in (1.0, 0.1, 0.01):
        smooth = InfiniteQuantileRegressor(smoothing=kappa, **options).fit(X, y)
        # the smoothed losses are at most κ/2 below, that of the penalty with its weight
        assert 0.0 <= sharp.objective_ - smooth.objective_ <= 0.5 * kappa * (1.0 + 0.05)
        away.append(np.max(np.abs(smooth.predict(X, [0.2, 0.8]) - sharp.predict(X, [0.2, 0.8]))))
    assert away[0] > 1.5 * away[1] > 2.25 * away[2]


def test_m_quantiles_become_expectiles_as_the_smoothing_grows() -> None:
    """ψ^κ(p) is p²/(2κ) up to |p| = κ: times 2κ it is the objective of expectiles, with the ridge 2κλ."""
    X, y = sample()
    kappa = 1e4
    expectiles = InfiniteExpectileRegressor(noncrossing=0.05, noncrossing_loss="squared", **CHOICES).fit(X, y)
    ridge = {"alpha": ALPHA / (2.0 * kappa), "alpha_bias": ALPHA / (2.0 * kappa)}
    options: dict[str, Any] = {"noncrossing": 0.05, "noncrossing_loss": "smoothed", **(CHOICES | ridge)}
    wide = InfiniteQuantileRegressor(smoothing=kappa, **options).fit(X, y)
    assert 2.0 * kappa * wide.objective_ == pytest.approx(expectiles.objective_, rel=1e-6)
    np.testing.assert_allclose(wide.predict(X, [0.2, 0.8]), expectiles.predict(X, [0.2, 0.8]), atol=1e-3)
