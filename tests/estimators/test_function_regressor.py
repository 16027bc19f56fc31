"""Functions as targets: curves with gaps and with points of their own, judged by dense systems and by cvxpy."""

from __future__ import annotations

from functools import partial
from typing import Any

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.preprocessing import StandardScaler

import infinitask
from infinitask import InfiniteFunctionRegressor
from infinitask._base.arrays import row_blocks
from infinitask.estimators import _curves
from infinitask.estimators._curves import best_level
from infinitask.kernels import LearntMetric
from infinitask.losses import Pinball
from infinitask.losses._observed import AtTask
from infinitask.streaming import Blocks
from tests.support.scikit_learn_checks import run_checks

GAMMA, TASK_GAMMA = 0.4, 6.0
LOSSES: dict[str, dict[str, Any]] = {
    "squared": {},
    "huber": {"delta": 0.3},
    "epsilon-insensitive": {"epsilon": 0.2},
    "quantile": {"quantile": 0.7},
}


def fixed(loss: str = "squared", **more: Any) -> InfiniteFunctionRegressor:
    """A model in which the data decide nothing."""
    given = {"gamma": GAMMA, "task_gamma": TASK_GAMMA, "alpha": 1e-2, "alpha_bias": 0.1, "tol": 1e-7}
    return InfiniteFunctionRegressor(loss, **{**LOSSES[loss], **given, **more})


def truth(X: np.ndarray, theta: np.ndarray) -> np.ndarray:
    return 2.0 * np.sin(4.0 * theta + X[:, :1]) + X[:, 1:2] * theta


def own_curves(n: int = 12, seed: int = 0, most: int = 5) -> tuple[np.ndarray, list[np.ndarray], list[np.ndarray]]:
    """Inputs, points and values of curves that have no point in common."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    points = [np.sort(rng.uniform(size=rng.integers(2, most + 1))) for _ in X]
    values = [truth(x[None], t)[0] + 0.2 * rng.normal(size=t.size) for x, t in zip(X, points, strict=True)]
    return X, points, values


def on_grid(n: int = 14, T: int = 6, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X, theta = rng.normal(size=(n, 2)), np.linspace(0.0, 1.0, T)
    return X, truth(X, theta) + 0.2 * rng.normal(size=(n, T)), theta


def with_gaps(Y: np.ndarray, share: float = 0.3, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    gaps = rng.uniform(size=Y.shape) < share
    gaps[:, 0] &= np.arange(len(Y)) % 2 == 0
    gaps[np.all(gaps, axis=1), 1] = False
    return np.where(gaps, np.nan, Y)


def gaussian(A: np.ndarray, B: np.ndarray, gamma: float) -> np.ndarray:
    A, B = (np.asarray(a, dtype=float).reshape(len(a), -1) for a in (A, B))
    return np.exp(-gamma * np.sum((A[:, None] - B[None]) ** 2, axis=2))


def documented_weights(points: list[np.ndarray], every: np.ndarray) -> list[np.ndarray]:
    """c of the docstring: half the distance of both neighbours, in parts of Θ, at most a tenth or the widest of all."""

    def cells(t: np.ndarray) -> np.ndarray:
        gaps = np.diff(t)
        return np.array([np.mean([gaps[max(k - 1, 0)], gaps[min(k, t.size - 2)]]) for k in range(t.size)])

    whole = cells(every)
    most = max(0.1 * np.sum(whole), np.max(whole))
    return [np.minimum(cells(t) if t.size > 1 else [np.inf], most) / np.sum(whole) for t in points]


def loss_of(name: str, r: Any) -> Any:
    if name == "squared":
        return 0.5 * cp.square(r)
    if name == "huber":
        return 0.5 * cp.huber(r, 0.3)
    if name == "epsilon-insensitive":
        return cp.pos(cp.abs(r) - 0.2)
    return cp.maximum(0.7 * r, -0.3 * r)


def judged(model: Any, X: np.ndarray, points: Any, values: Any, omega: np.ndarray | None = None) -> tuple[float, Any]:
    """The smallest objective by cvxpy, of the observations alone, and f at them."""
    omega = np.full(len(X), 1.0) if omega is None else omega
    row = np.repeat(np.arange(len(X)), [t.size for t in points])
    theta, y = np.concatenate(points), np.concatenate(values)
    c = np.concatenate(documented_weights(points, np.unique(theta))) * (omega / np.sum(omega))[row]
    tasks = gaussian(theta, theta, TASK_GAMMA)

    def root(K: np.ndarray) -> np.ndarray:
        e, V = np.linalg.eigh(K)
        return V[:, e > 1e-13 * e[-1]] * np.sqrt(e[e > 1e-13 * e[-1]])

    L, M = root(gaussian(X, X, GAMMA)[np.ix_(row, row)] * tasks), root(tasks)
    a, b = cp.Variable(L.shape[1]), cp.Variable(M.shape[1])
    f = L @ a + M @ b
    ridge = 0.5 * model.alpha_ * cp.sum_squares(a) + 0.5 * model.alpha_bias_ * cp.sum_squares(b)
    problem = cp.Problem(cp.Minimize(c @ loss_of(model.loss, y - f) + ridge))
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return float(problem.value), np.split(f.value, np.cumsum([t.size for t in points])[:-1])


# ------------------------------------------------------------------------------------------------- references
def test_squares_on_a_grid_are_the_closed_form() -> None:
    X, Y, theta = on_grid()
    omega = np.arange(1.0, len(X) + 1.0)
    model = fixed(bias_kernel=None, alpha_bias=0.0).fit(X, Y, theta, sample_weight=omega)
    # (diag(1/(ω w)) + K ⊗ K_Θ / λ) u = y, by the eigenvectors of both factors
    root, w = np.sqrt(omega / np.sum(omega)), np.full(6, 1 / 6)
    e, U = np.linalg.eigh(root[:, None] * gaussian(X, X, GAMMA) * root)
    f, V = np.linalg.eigh(np.sqrt(np.outer(w, w)) * gaussian(theta, theta, TASK_GAMMA))
    turned = U.T @ (root[:, None] * Y * np.sqrt(w)) @ V
    expected = (U @ (np.outer(e, f) / (np.outer(e, f) + 1e-2) * turned) @ V.T) / root[:, None] / np.sqrt(w)
    np.testing.assert_allclose(model.predict(X), expected, atol=1e-5)
    np.testing.assert_allclose(model.weights_, w)
    assert model.dual_gap_ <= 1e-7


@pytest.mark.parametrize("loss", LOSSES)
def test_gaps_leave_their_terms_out(loss: str) -> None:
    X, Y, theta = on_grid()
    Y = with_gaps(Y)
    model = fixed(loss).fit(X, Y, theta)
    seen = ~np.isnan(Y)
    assert np.sum(~seen) > 10
    assert np.all(np.any(seen, axis=0))
    best, f = judged(model, X, [theta[row] for row in seen], [y[row] for y, row in zip(Y, seen, strict=True)])
    assert -1e-8 <= model.objective_ - best <= 2e-7 * best
    assert best - 1e-8 <= model.objective_
    assert model.solution_.dual <= best + 1e-8
    if loss in ("squared", "huber"):  # where the optimum is sharp
        np.testing.assert_allclose(model.predict(X)[seen], np.concatenate(f), atol=1e-3)


@pytest.mark.parametrize("loss", LOSSES)
def test_curves_with_points_of_their_own(loss: str) -> None:
    X, points, values = own_curves()
    every = np.concatenate(points)
    assert np.unique(every).size == every.size  # no point in common
    model = fixed(loss).fit(X, values, points)
    best, f = judged(model, X, points, values)
    assert -1e-8 <= model.objective_ - best <= 2e-7 * best
    assert model.solution_.dual <= best + 1e-8
    if loss == "squared":
        np.testing.assert_allclose(np.concatenate(model.predict(X, points)), np.concatenate(f), atol=1e-3)


def test_weights_of_long_and_short_curves_are_the_documented_ones() -> None:
    rng = np.random.default_rng(0)
    X, lengths = rng.normal(size=(6, 2)), [1, 2, 3, 40, 40, 12]
    points = [np.sort(rng.uniform(size=k)) for k in lengths]
    values = [truth(x[None], t)[0] for x, t in zip(X, points, strict=True)]
    weights = [float(np.sum(c)) for c in documented_weights(points, np.unique(np.concatenate(points)))]
    assert weights[0] == pytest.approx(0.1)
    assert weights[1] == pytest.approx(0.2)
    assert weights[3] > 0.8
    model = fixed().fit(X, values, points)
    best, _ = judged(model, X, points, values)
    assert abs(model.objective_ - best) <= 2e-7 * best + 1e-10


def test_the_dual_bound_is_certified_without_targets_at_most_pairs() -> None:
    X, points, values = own_curves(n=40, most=3)
    model = fixed("quantile", tol=1e-5).fit(X, values, points)
    assert np.sum([t.size for t in points]) < 0.2 * len(X) * model.nodes_.size  # so that few pairs are gathered
    best, _ = judged(model, X, points, values)
    assert model.solution_.dual <= best + 1e-8 <= model.objective_ + 2e-8
    assert model.dual_gap_ <= 1e-5


# ------------------------------------------------------------------------------------------------------ laws
@pytest.mark.parametrize("loss", ["squared", "quantile"])
def test_a_weight_of_two_is_a_repeated_row(loss: str) -> None:
    X, points, values = own_curves()
    weight = np.where(np.arange(len(X)) < 3, 2.0, 1.0)
    weighted = fixed(loss, tol=1e-8).fit(X, values, points, sample_weight=weight)
    repeated = fixed(loss, tol=1e-8).fit(np.vstack([X, X[:3]]), values + values[:3], points + points[:3])
    grid = np.linspace(*weighted.nodes_[[0, -1]], 7)
    np.testing.assert_allclose(weighted.predict(X, grid), repeated.predict(X, grid), atol=1e-5)
    left_out = fixed(loss).fit(X, values, points, sample_weight=np.where(np.arange(len(X)) < 3, 0.0, 1.0))
    without = fixed(loss).fit(X[3:], values[3:], points[3:])
    np.testing.assert_array_equal(left_out.nodes_, without.nodes_)
    np.testing.assert_allclose(left_out.predict(X, without.nodes_), without.predict(X, without.nodes_), atol=1e-9)


def test_all_ways_to_write_the_same_curves() -> None:
    X, Y, theta = on_grid()
    expected = InfiniteFunctionRegressor(tol=1e-6).fit(X, Y, theta)
    T = len(theta)
    table = pd.DataFrame(Y, columns=[str(t) for t in theta])
    order = np.random.default_rng(0).permutation(T)
    ways = {
        "lists": InfiniteFunctionRegressor(tol=1e-6).fit(X, list(Y), [theta] * len(X)),
        "pairs": InfiniteFunctionRegressor(tol=1e-6).fit(X, [np.column_stack([theta, y]) for y in Y]),
        "table": InfiniteFunctionRegressor(tol=1e-6).fit(X, table),
        "constructor": InfiniteFunctionRegressor(tol=1e-6, theta=theta).fit(X, Y),
        "points": InfiniteFunctionRegressor(tol=1e-6).fit(X, Y, np.tile(theta, (len(X), 1))),
        "default": InfiniteFunctionRegressor(tol=1e-6).fit(X, Y),
        "nested lists": InfiniteFunctionRegressor(tol=1e-6).fit(X.tolist(), Y.tolist(), theta.tolist()),
        "permuted": InfiniteFunctionRegressor(tol=1e-6).fit(X, Y[:, order], theta[order]),
    }
    for name, model in ways.items():
        np.testing.assert_array_equal(model.predict(X, theta), expected.predict(X, theta), err_msg=name)
    np.testing.assert_array_equal(ways["permuted"].predict(X), expected.predict(X)[:, order])  # in the order given


def test_the_order_of_observations_and_rows_does_not_matter() -> None:
    X, points, values = own_curves(n=25)
    rng = np.random.default_rng(0)
    orders = [rng.permutation(t.size) for t in points]
    mixed = [
        InfiniteFunctionRegressor().fit(X, v, t)
        for v, t in (
            (values, points),
            ([v[o] for v, o in zip(values, orders, strict=True)], [t[o] for t, o in zip(points, orders, strict=True)]),
        )
    ]
    np.testing.assert_array_equal(mixed[0].predict(X), mixed[1].predict(X))
    rows = rng.permutation(len(X))
    turned = InfiniteFunctionRegressor().fit(X[rows], [values[i] for i in rows], [points[i] for i in rows])
    np.testing.assert_array_equal(mixed[0].predict(X), turned.predict(X))


def test_values_at_the_same_point_of_a_row_are_averaged() -> None:
    X, points, values = own_curves()
    twice = fixed().fit(X, [np.r_[v, v[0] + 1.0] for v in values], [np.r_[t, t[0]] for t in points])
    once = fixed().fit(X, [np.r_[v[0] + 0.5, v[1:]] for v in values], points)
    np.testing.assert_allclose(twice.predict(X), once.predict(X), atol=1e-10)


@pytest.mark.parametrize(
    "loss", ["squared", *(pytest.param(loss, marks=pytest.mark.slow) for loss in list(LOSSES)[1:])]
)
def test_predictions_follow_the_units_of_y_and_theta(loss: str) -> None:
    X, points, values = own_curves(n=25)
    grid = np.linspace(0.2, 0.8, 5)
    expected = InfiniteFunctionRegressor(loss, tol=1e-7).fit(X, values, points).predict(X, grid)
    assert np.ptp(expected) > 0.5
    for a, b, scale, shift in ((1e3, 5e4, 1.0, 0.0), (-1e-3, 2.0, 1.0, 0.0), (1.0, 0.0, 100.0, -30.0)):
        if loss == "quantile" and a < 0.0:
            continue
        model = InfiniteFunctionRegressor(loss, tol=1e-7)
        model.fit(X, [a * v + b for v in values], [scale * t + shift for t in points])
        found = (model.predict(X, scale * grid + shift) - b) / a
        np.testing.assert_allclose(found, expected, atol=2e-3, err_msg=f"{a}, {b}, {scale}")


def test_the_slope_is_that_of_the_curves() -> None:
    X, points, values = own_curves()
    model = fixed().fit(X, values, points)
    grid, step = np.linspace(0.3, 0.7, 5), 1e-5
    slope = (model.predict(X, grid + step) - model.predict(X, grid - step)) / (2.0 * step)
    np.testing.assert_allclose(model.derivative(X, grid), slope, atol=1e-6)
    own = model.derivative(X, [np.array([0.5])] * len(X))
    np.testing.assert_allclose(np.concatenate(own), model.derivative(X, 0.5), atol=1e-10)


def test_many_points_are_merged() -> None:
    X, points, values = own_curves(n=60)
    whole, few = (fixed(n_nodes=k).fit(X, values, points) for k in (None, 40))
    assert whole.nodes_.size == sum(t.size for t in points) > 40 >= few.nodes_.size
    np.testing.assert_allclose(few.nodes_[[0, -1]], whole.nodes_[[0, -1]])
    grid = np.linspace(0.1, 0.9, 9)
    assert np.max(np.abs(few.predict(X, grid) - whole.predict(X, grid))) < 0.1 * np.std(whole.predict(X, grid))


# ------------------------------------------------------------------------------------------------- choices
def width(model: InfiniteFunctionRegressor) -> float:
    """σ of the task kernel, in parts of Θ."""
    return float((2.0 * model.task_kernel_.gamma) ** -0.5 / np.ptp(model.nodes_))


@pytest.mark.parametrize("gaps", [False, True])
def test_the_width_over_theta_follows_the_curves(gaps: bool) -> None:
    rng = np.random.default_rng(0)
    X, theta = rng.normal(size=(40, 1)), np.linspace(0.0, 1.0, 80)
    peak = np.exp(-0.5 * ((theta - 0.3) / 0.02) ** 2) + np.exp(-0.5 * ((theta - 0.7) / 0.02) ** 2)
    widths = []
    for shape in (peak, theta**2):
        Y = np.tanh(X) * shape + 0.05 * rng.normal(size=(40, 80))
        widths.append(width(InfiniteFunctionRegressor().fit(X, with_gaps(Y) if gaps else Y)))
    assert widths[0] <= 0.04
    assert widths[1] >= 0.15


def test_irrelevant_features_lose_their_scale() -> None:
    rng = np.random.default_rng(0)
    X, theta = rng.normal(size=(80, 5)), np.linspace(0.0, 1.0, 10)
    Y = np.sin(6.0 * theta + 2.0 * X[:, :1]) + 0.1 * rng.normal(size=(80, 10))
    for y in (Y, with_gaps(Y)):
        model = InfiniteFunctionRegressor().fit(X, y)
        assert model.kernel_.scales[0] > 5.0 * max(model.kernel_.scales[1:])
        new = rng.normal(size=(50, 5))
        assert np.std(model.predict(new) - np.sin(6.0 * theta + 2.0 * new[:, :1])) < 0.2


def test_the_mean_curve_of_points_seen_once_is_smoothed() -> None:
    rng = np.random.default_rng(0)
    X, points = rng.normal(size=(60, 1)), [np.sort(rng.uniform(size=3)) for _ in range(60)]
    values = [np.sin(6.0 * t) + 0.5 * rng.normal(size=3) for t in points]  # the inputs say nothing
    model = InfiniteFunctionRegressor().fit(X, values, points)
    grid = np.linspace(0.05, 0.95, 50)
    assert np.sqrt(np.mean((model.predict(X, grid) - np.sin(6.0 * grid)) ** 2)) < 0.25
    assert model.alpha_bias_ > 1e-6
    X, Y, _ = on_grid(n=30)
    assert InfiniteFunctionRegressor().fit(X, Y).alpha_bias_ == pytest.approx(1e-8)  # next to free


@pytest.mark.parametrize("loss", ["huber", "quantile", "epsilon-insensitive"])
def test_outliers_do_not_decide(loss: str) -> None:
    X, Y, theta = on_grid(n=60, T=12)
    wild = np.random.default_rng(2).uniform(size=Y.shape) < 0.05
    truth_at = truth(X, theta)
    errors = [
        np.sqrt(np.mean((InfiniteFunctionRegressor(loss, quantile=0.5).fit(X, y).predict(X) - truth_at) ** 2))
        for y in (Y, np.where(wild, Y + 1e3, Y))
    ]
    assert errors[0] < errors[1] < 0.1 * np.std(truth_at)


def test_the_kernel_gap_is_certified_with_gaps() -> None:
    X, Y, theta = on_grid(n=30)
    model = InfiniteFunctionRegressor(certify="kernel", rank=6, alpha=1e-3).fit(X, with_gaps(Y), theta)
    exact = InfiniteFunctionRegressor(alpha=1e-3, kernel=model.kernel_, task_gamma=model.task_kernel_.gamma)
    exact.fit(X, with_gaps(Y), theta)
    assert model.dual_gap_ < 1e-4 < model.kernel_gap_
    assert model.objective_ * (1.0 - model.kernel_gap_) <= exact.objective_ <= model.objective_


@pytest.mark.slow
def test_a_metric_is_learnt_from_curves() -> None:
    rng = np.random.default_rng(0)
    X, theta = rng.normal(size=(80, 4)), np.linspace(0.0, 1.0, 10)
    Y = np.sin(6.0 * theta + 2.0 * X[:, :1]) + 0.1 * rng.normal(size=(80, 10))
    for y in (Y, with_gaps(Y)):
        model = InfiniteFunctionRegressor(kernel=LearntMetric()).fit(X, y, theta)
        scales = np.abs(model.kernel_.scales)
        assert scales[0] > 3.0 * np.max(scales[1:])
        assert model.dual_gap_ <= model.tol


def test_data_on_a_device() -> None:
    torch = pytest.importorskip("torch")
    X, points, values = own_curves(n=40, most=3)
    for loss in ("squared", "quantile"):
        there, here = fixed(loss, device="cpu").fit(X, values, points), fixed(loss).fit(X, values, points)
        np.testing.assert_allclose(there.predict(X), here.predict(X), atol=1e-3)
    answers = there.predict(torch.tensor(X), points)
    assert all(isinstance(answer, torch.Tensor) for answer in answers)


# ----------------------------------------------------------------------------------------------- answers
def test_shapes_of_answers() -> None:
    X, points, values = own_curves()
    model = fixed().fit(X, values, points)
    n, m = len(X), model.nodes_.size
    assert model.predict(X).shape == (n, m)
    assert model.theta_.shape == (m,)
    assert model.predict(X, 0.5).shape == (n,)
    assert model.predict(X, [0.5]).shape == (n, 1)
    own = model.predict(X, points)
    assert [v.shape for v in own] == [t.shape for t in points]
    for x, t, v in zip(X, points, own, strict=True):
        np.testing.assert_allclose(model.predict(x[None], t)[0], v, atol=1e-10)
    same = np.tile(points[0][:2], (n, 1))
    np.testing.assert_allclose(model.predict(X, same), model.predict(X, points[0][:2]), atol=1e-10)
    assert model.mean_curve([0.2, 0.5]).shape == (2,)
    np.testing.assert_allclose(model.mean_curve([0.2, 0.5]), model.predict(X, [0.2, 0.5]).mean(axis=0), atol=1e-10)


def test_the_grid_may_end_where_nothing_was_seen() -> None:
    X, Y, theta = on_grid()
    Y[:, -1] = np.nan
    model = fixed().fit(X, Y, theta)
    assert model.nodes_.size == 5
    assert model.predict(X).shape == Y.shape
    assert np.all(np.isfinite(model.predict(X)))


def test_the_score_compares_with_the_mean_curve() -> None:
    X, Y, theta = on_grid(n=40)
    model = InfiniteFunctionRegressor(theta=theta).fit(X, Y)
    mean = model.mean_curve(theta)
    level = np.mean(Y - mean)
    expected = 1.0 - np.mean((Y - model.predict(X)) ** 2) / np.mean((Y - mean - level) ** 2)
    assert model.score(X, Y) == pytest.approx(expected)
    assert model.score(X, list(Y), [theta] * len(X)) == pytest.approx(expected)
    assert model.score(X, Y[:, ::2], theta[::2]) > 0.5
    gaps = with_gaps(Y)
    assert model.score(X, gaps, sample_weight=np.ones(40)) == pytest.approx(expected, abs=0.1)
    flat = clone(model).fit(X, np.ones_like(Y))
    assert flat.score(X, np.ones_like(Y)) == 1.0


@pytest.mark.parametrize("loss", LOSSES)
def test_the_score_has_no_units(loss: str) -> None:
    X, Y, theta = on_grid(n=30)
    params = {"gamma": GAMMA, "task_gamma": TASK_GAMMA, "tol": 1e-7}
    params |= {"quantile": 0.7} if loss == "quantile" else {}
    expected = InfiniteFunctionRegressor(loss, **params).fit(X, Y, theta).score(X, Y)
    assert 0.3 < expected < 1.0
    for a, b in ((1e-6, 3e-6), (1e6, -1e6)):
        scaled = a * Y + b
        assert InfiniteFunctionRegressor(loss, **params).fit(X, scaled, theta).score(X, scaled) == pytest.approx(
            expected, rel=1e-4
        )


@pytest.mark.parametrize("tau", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_the_best_constant_of_a_quantile_loss_is_the_quantile(tau: float, unit: float) -> None:
    rng = np.random.default_rng(0)
    r, weight = unit * rng.normal(size=201), np.ones(201)
    level = best_level(AtTask(Pinball(), tau), r, weight)
    assert level == pytest.approx(np.quantile(r, tau, method="inverted_cdf"), abs=1e-7 * unit)


def test_curves_in_a_frame_are_scored_at_their_columns() -> None:
    X, Y, theta = on_grid(n=30, T=8)
    model = InfiniteFunctionRegressor(gamma=GAMMA, task_gamma=TASK_GAMMA).fit(X, pd.DataFrame(Y, columns=theta))
    between = 0.5 * (theta + np.roll(theta, 1))
    others = truth(X, between)
    expected = model.score(X, others, theta=between)
    assert expected != pytest.approx(model.score(X, others, theta=theta), abs=0.1)
    assert model.score(X, pd.DataFrame(others, columns=between)) == expected
    # without names, and with those of a table that was given none, at the grid of the fit
    expected = model.score(X, Y, theta=theta)
    for same in (Y, pd.DataFrame(Y), list(Y), pd.DataFrame(Y, columns=list("abcdefgh"))):
        assert model.score(X, same) == expected


def test_points_are_not_made_up_for_a_score() -> None:
    X, Y, theta = on_grid(n=30, T=8)
    model = InfiniteFunctionRegressor(gamma=GAMMA, task_gamma=TASK_GAMMA).fit(X, Y, theta)
    with pytest.raises(ValueError, match=r"y of shape \(30, 5\) was given without theta.*of 8 points; give theta"):
        model.score(X, Y[:, :5])
    with pytest.raises(ValueError, match=r"y of shape \(30,\) was given without theta.*fitted to curves.*; give theta"):
        model.score(X, Y[:, 0])
    assert model.score(X, Y[:, :5], theta[:5]) > 0.3
    own = InfiniteFunctionRegressor(gamma=GAMMA, task_gamma=TASK_GAMMA, theta=theta[:5]).fit(X, Y, theta)
    assert own.score(X, Y[:, :5]) == own.score(X, Y[:, :5], theta[:5])
    one = InfiniteFunctionRegressor(gamma=GAMMA).fit(X, Y[:, :1], [5.0])
    assert one.score(X, Y[:, 0]) == one.score(X, Y[:, :1])


def test_curves_in_tables_of_any_kind() -> None:
    pl = pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    X, Y, theta = on_grid(n=20)
    Y = with_gaps(Y)
    names = [str(point) for point in theta]
    expected = fixed().fit(X, Y, theta)
    polars = pl.DataFrame(Y, schema=names).fill_nan(None)
    for table in (polars, polars.to_arrow(), polars.to_pandas()):
        model = fixed().fit(X, table)
        np.testing.assert_array_equal(model.theta_, theta)
        np.testing.assert_array_equal(model.predict(X), expected.predict(X))
        assert model.score(X, table) == expected.score(X, Y)
    with pytest.raises(ValueError, match="does not hold numbers only"):
        fixed().fit(X, polars.with_columns(pl.lit("high").alias("1.0")))


def test_dates_are_days() -> None:
    X, Y, _ = on_grid(n=20)
    dates = pd.date_range("2024-01-01", periods=6)
    number = np.arange(19723.0, 19729.0)  # since 1970
    params = {"task_gamma": 0.1, "tol": 1e-7}
    expected = fixed(**params).fit(X, Y, number)
    second = dates.to_numpy().astype("datetime64[s]")
    for points in (dates, second, dates.tz_localize("UTC"), list(dates), dates.date.tolist(), [dates] * 20):
        model = fixed(**params).fit(X, Y if len(points) == 6 else list(Y), points)
        np.testing.assert_array_equal(model.nodes_, number)
        model = fixed(theta=points[0] if len(points) == 20 else points, **params)
        np.testing.assert_array_equal(model.fit(X, list(Y), [number] * 20).theta_, number)
        np.testing.assert_array_equal(model.fit(X, Y).theta_, number)
    model = fixed(**params).fit(X, pd.DataFrame(Y, columns=dates))
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))
    np.testing.assert_array_equal(model.predict(X, [dates[1]]), expected.predict(X, number[1:2]))
    np.testing.assert_array_equal(model.predict(X, dates[1]), expected.predict(X, number[1]))
    np.testing.assert_array_equal(model.mean_curve(second), expected.mean_curve())
    polars = pytest.importorskip("polars").Series(dates.date.tolist())
    np.testing.assert_array_equal(model.predict(X, polars), expected.predict(X))
    np.testing.assert_array_equal(fixed(**params).fit(X, Y, polars).theta_, number)
    np.testing.assert_allclose(model.predict(X[:1], [dates[:2]])[0], expected.predict(X[:1], number[:2])[0], rtol=1e-12)


def test_curves_are_evaluated_in_blocks_of_any_size_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    X, Y, theta = on_grid(n=20)
    model = fixed().fit(X, Y, theta)
    whole, slopes = model.predict(X, theta), model.derivative(X, theta)
    mean, score = model.mean_curve(), model.score(X, with_gaps(Y))
    assert score == pytest.approx(model.score(X, with_gaps(Y), sample_weight=np.ones(20)))
    for entries in (2**20, 30):
        monkeypatch.setattr(_curves, "row_blocks", partial(row_blocks, entries=entries))
        np.testing.assert_allclose(model.predict(X, [theta] * 20), whole, rtol=0.0, atol=1e-12)
        np.testing.assert_allclose(model.derivative(X, [theta[::-1]] * 20), slopes[:, ::-1], rtol=0.0, atol=1e-11)
        np.testing.assert_allclose(model.mean_curve(), mean, rtol=0.0, atol=1e-12)
        assert model.score(X, with_gaps(Y)) == pytest.approx(score, abs=1e-12)
    np.testing.assert_allclose(mean, np.mean(whole, axis=0), rtol=0.0, atol=1e-12)


def test_the_warning_of_a_heavy_ridge_does_not_count_gaps() -> None:
    X, Y, theta = on_grid(n=60, T=10)
    params = {"gamma": GAMMA, "task_gamma": TASK_GAMMA, "alpha": 1e-2}
    rng = np.random.default_rng(3)
    gaps = np.where(rng.uniform(size=Y.shape) < 0.85, np.nan, Y)
    gaps[np.arange(60), np.arange(60) % 10] = Y[np.arange(60), np.arange(60) % 10]
    for values in (Y, gaps):
        with pytest.warns(UserWarning, match="the ridge holds the bias") as told:
            InfiniteFunctionRegressor(alpha_bias=1.0, **params).fit(X, values + 10.0, theta)
        size = float(str(told[0].message).split("root mean square of ")[1].split(",")[0])
        assert 9.0 < size < 13.0
        InfiniteFunctionRegressor(alpha_bias=1e-4, **params).fit(X, values + 10.0, theta)  # a warning is an error


def test_one_number_for_each_row_is_a_curve_of_one_point() -> None:
    X, Y, _ = on_grid(n=30)
    model = InfiniteFunctionRegressor().fit(X, Y[:, 2])
    assert model.predict(X).shape == (30,)
    assert model.score(X, Y[:, 2]) > 0.7
    own = InfiniteFunctionRegressor(alpha=1e-3).fit(X, Y[:, 2], np.linspace(0.0, 1.0, 30))
    assert own.predict(X).shape == (30, 30)


# ------------------------------------------------------------------------------------------------ scikit-learn
def test_grids_with_gaps_are_cross_validated() -> None:
    X, Y, theta = on_grid(n=40)
    Y = with_gaps(Y)
    search = GridSearchCV(InfiniteFunctionRegressor(theta=theta), {"alpha": [1e-3, 1e1]}, cv=3).fit(X, Y)
    assert search.best_params_ == {"alpha": 1e-3}
    curves = [np.column_stack([theta, y]) for y in Y]
    scores = cross_val_score(InfiniteFunctionRegressor(alpha=1e-3), X, curves, cv=3)
    np.testing.assert_allclose(scores, cross_val_score(search.best_estimator_, X, Y, cv=3), atol=1e-6)
    scaled = infinitask.make_pipeline(StandardScaler(), InfiniteFunctionRegressor(theta=theta, alpha=1e-3)).fit(X, Y)
    assert scaled.predict(X, theta=[0.5]).shape == (40, 1)
    assert scaled.derivative(X).shape == Y.shape


def test_curves_with_points_of_their_own_are_cross_validated() -> None:
    X, points, values = own_curves(n=40)
    curves = [np.column_stack([t, v]) for t, v in zip(points, values, strict=True)]
    first = int(np.argmin([t[0] for t in points]))  # a fold without it does not reach as far
    scores = cross_val_score(fixed(alpha=1e-3), X, curves, cv=4, error_score="raise")
    assert np.all(scores > 0.0)
    without = fixed().fit(np.delete(X, first, 0), curves[:first] + curves[first + 1 :])
    assert points[first][0] < without.nodes_[0]
    assert np.isfinite(without.score(X[[first]], [curves[first]]))
    with pytest.raises(ValueError, match="outside"):
        without.predict(X, points[first][0])
    wider = fixed(theta=[0.0, 0.5, 1.0]).fit(X, curves)
    assert wider.predict(X).shape == (40, 3)


def test_sparse_inputs_and_precomputed_kernels() -> None:
    X, Y, theta = on_grid()
    Y = with_gaps(Y)
    expected = fixed().fit(X, Y, theta)
    np.testing.assert_array_equal(fixed().fit(sparse.csr_array(X), Y, theta).predict(X), expected.predict(X))
    np.testing.assert_allclose(expected.predict(sparse.csr_array(X), [theta] * len(X)), expected.predict(X))
    gram = gaussian(X, X, GAMMA)
    weight = np.where(np.arange(len(X)) == 3, 0.0, 1.0)
    by_gram = fixed(kernel="precomputed").fit(gram, Y, theta, sample_weight=weight)
    by_rows = fixed().fit(X, Y, theta, sample_weight=weight)
    np.testing.assert_allclose(by_gram.predict(gram), by_rows.predict(X), atol=1e-5)
    auto = InfiniteFunctionRegressor(kernel="precomputed").fit(gram, Y, theta)
    assert auto.score(gram, Y) > 0.5


@pytest.mark.parametrize("own", [False, True])
def test_a_saved_model_answers_the_same(own: bool, tmp_path: Any) -> None:
    X, points, values = own_curves()
    model = InfiniteFunctionRegressor("huber")
    if own:
        model.fit(X, values, points)
    else:
        model.fit(*on_grid()[:2])
    infinitask.save(model, tmp_path / "model.infinitask")
    loaded = infinitask.load(tmp_path / "model.infinitask")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded.mean_curve(), model.mean_curve())
    assert loaded.delta_ == model.delta_


def test_scikit_learn_accepts_it() -> None:
    run_checks(InfiniteFunctionRegressor(max_iter=1000))


# ----------------------------------------------------------------------------------------------------- errors
X0, Y0, THETA0 = on_grid(n=5)
WRONG = [
    ({"y": Y0[:4]}, "X has 5 rows and y 4 curves"),
    ({"y": Y0, "theta": THETA0[:-1]}, r"y of shape \(5, 6\) was given with theta of shape \(5,\)"),
    ({"y": np.where(Y0[2, 3] == Y0, np.inf, Y0)}, "Input y contains infinity, in row 2"),
    ({"y": np.where(np.arange(5)[:, None] == 1, np.nan, Y0)}, "in row 1: a curve without any observation"),
    ({"y": [*list(Y0[:, :3])], "theta": [THETA0[:3]] * 4}, "theta of shape"),
    ({"y": [Y0[0], Y0[1, :2], *Y0[2:]], "theta": [THETA0] * 4}, "a list of 5 arrays and theta holds 4"),
    ({"y": [Y0[0], Y0[1, :2], *Y0[2:]], "theta": [THETA0] * 5}, r"Row 1 has \(2,\) values of y and \(6,\) of theta"),
    ({"y": [Y0[0], Y0[1, :2], *Y0[2:]]}, "theta was not given"),
    ({"y": Y0, "theta": np.where(np.arange(6) == 2, np.nan, THETA0)}, "theta contains NaN or infinity"),
    ({"y": Y0[:, 0], "theta": THETA0}, r"theta must be \(5,\) too, a θ for each row"),
    ({"y": Y0[:, :, None]}, r"y of shape \(5, 6, 1\)"),
    ({"y": [["a", "b"]] * 5}, "does not hold numbers only"),
    ({"y": None}, "requires y to be passed"),
]


@pytest.mark.parametrize(("given", "sentence"), WRONG)
def test_wrong_curves_are_told_in_a_sentence(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        fixed().fit(X0, **given)


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"loss": "cubic"}, "loss='cubic' was given"),
        ({"quantile": 95.0}, "quantile=95.0 was given"),
        ({"delta": 0.0}, "delta=0.0 was given"),
        ({"epsilon": -1.0}, "epsilon=-1.0 was given"),
        ({"alpha_bias": "free"}, "alpha_bias='free' was given"),
    ],
)
def test_wrong_parameters_are_told_in_a_sentence(params: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        InfiniteFunctionRegressor(**params).fit(X0, Y0)


def test_blocks_are_refused() -> None:
    with pytest.raises(TypeError, match="curves are fitted in memory"):
        InfiniteFunctionRegressor().fit(Blocks(lambda: iter([(X0, Y0)])), Y0)


def test_wrong_questions_are_told_in_a_sentence() -> None:
    model = fixed().fit(X0, Y0, 10.0 * THETA0)
    with pytest.raises(ValueError, match=r"theta contains 11\.0, outside"):
        model.predict(X0, 11.0)
    with pytest.raises(ValueError, match="a list of 2 arrays for 5 rows"):
        model.predict(X0, [[0.0, 1.0], [1.0]])
    with pytest.raises(ValueError, match="the points of a row must be a list of numbers"):
        model.predict(X0, [[]] * 5)
    with pytest.raises(ValueError, match="theta lies outside of Θ"):
        model.score(X0, Y0, 100.0 + THETA0)
    with pytest.raises(ValueError, match="X has 5 rows and y 4 curves"):
        model.score(X0, Y0[:4])
