"""The metric is a symmetric positive matrix whose powers multiply; some eigenvectors serve as well as all of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from infinitask.losses import CostSensitiveHinge, Expectile, Loss, MQuantile, Pinball, Squared
from infinitask.losses._rows import NonCrossing
from infinitask.objective import Objective, Smoothing
from infinitask.solvers import _basis as basis_module
from infinitask.solvers import solve
from infinitask.solvers._base import Start
from infinitask.solvers._basis import Eigenbasis, Metric
from infinitask.solvers._newton import NewtonSystem, hessian_product
from tests.support.arrays import as_like
from tests.support.random_objectives import LOSSES, point, posed

Floats = np.ndarray[Any, Any]
BIASES = [None, "penalised", "free"]


def orthonormal(r: int, k: int, seed: int = 0) -> Floats:
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(r, k)))[0]


def metrics() -> dict[str, Metric]:
    """In all directions of the rows, or with leading ones, with and without unknowns of a bias after them."""
    rng = np.random.default_rng(0)
    r, s, k = 7, 3, 4
    W, same, nothing = orthonormal(s, s, seed=1), 10.0 ** rng.uniform(-3, 3, size=s), np.zeros((0, 0))
    leading, U, Q = 10.0 ** rng.uniform(-3, 3, size=(k, s)), orthonormal(r, k), rng.normal(size=(2, 2))
    return {
        "all": Metric(W, 10.0 ** rng.uniform(-4, 4, size=(r, s)), nothing),
        "leading": Metric(W, same, nothing, leading, U),
        "leading, with a bias": Metric(W, same, Q @ Q.T + np.eye(2), leading, U),
        "every direction leads": Metric(W, same, nothing, 10.0 ** rng.uniform(-3, 3, size=(r, s)), orthonormal(r, r)),
    }


@pytest.fixture(params=metrics().items(), ids=lambda item: item[0])
def metric(request: pytest.FixtureRequest) -> Any:
    return request.param[1]


def dense(metric: Metric, r: int = 7) -> Floats:
    """M as written: diagonal in the coordinates C W, but for the directions u_a ⊗ w_b, where it is leading_ab."""
    s = metric.W.shape[0]
    size = r * s + metric.bias.shape[0]
    M, turn = np.zeros((size, size)), np.kron(np.eye(r), metric.W)
    M[r * s :, r * s :] = metric.bias
    rows = np.broadcast_to(metric.rows, (r, s))
    M[: r * s, : r * s] = (turn * rows.ravel()) @ turn.T
    if metric.U is not None and metric.leading is not None:
        for u, entries in zip(metric.U.T, metric.leading, strict=True):
            for w, entry, before in zip(metric.W.T, entries, metric.rows, strict=True):
                direction = np.kron(u, w)
                M[: r * s, : r * s] += (entry - before) * np.outer(direction, direction)
    return M


# -------------------------------------------------------------------------------------------------- its inverse
def test_the_metric_is_the_matrix_it_is_written_as(metric: Metric) -> None:
    values, vectors = np.linalg.eigh(dense(metric))
    assert np.min(values) > 0.0
    expected = (vectors / values) @ vectors.T
    found = np.stack([metric.solve(e) for e in np.eye(len(expected))])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * np.max(np.abs(expected)))
    np.testing.assert_allclose(found, found.T, rtol=0, atol=1e-13 * np.max(np.abs(found)))


def test_the_vector_stays_as_it_is(metric: Metric) -> None:
    v = np.random.default_rng(1).normal(size=len(dense(metric)))
    before = v.copy()
    first = metric.solve(v)
    np.testing.assert_array_equal(v, before)
    np.testing.assert_array_equal(metric.solve(v), first)


# ------------------------------------------------------------------------------------------- some eigenvectors
def tall(loss: Loss, r: int = 30, n: int = 80, bias: str | None = "penalised", decay: float = 0.8) -> Objective:
    """As :func:`posed`, with r features of which each is smaller than the one before."""
    others = () if isinstance(loss, (Squared, CostSensitiveHinge)) else ((NonCrossing(0.7), 4),)
    objective = posed(loss, bias=bias, others=others, n=n)
    rows = np.random.default_rng(2).normal(size=(n, r)) * decay ** np.arange(r)
    return replace(objective, rows=rows)


def leading(patch: pytest.MonkeyPatch, count: int, all_up_to: int | None = None) -> None:
    """Take this number of eigenvectors, or all of them up to a number of features."""
    patch.setattr(basis_module, "LEADING_VECTORS", count)
    patch.setattr(basis_module, "MAX_FEATURES_FOR_ALL", all_up_to or count)


@pytest.mark.parametrize("count", [1, 5, 29])
@pytest.mark.parametrize("n", [3, 80])
@pytest.mark.parametrize("decay", [0.5, 1.0])
def test_leading_eigenvectors(count: int, n: int, decay: float, monkeypatch: pytest.MonkeyPatch) -> None:
    objective = tall(Pinball(), n=n, decay=decay)
    gram = (objective.rows.T * objective.sample_weight) @ objective.rows
    values = np.sort(np.linalg.eigvalsh(gram))[::-1]
    leading(monkeypatch, count)
    basis = Eigenbasis.of(objective)
    assert not basis.whole
    assert basis.U.shape == (30, count)
    np.testing.assert_allclose(basis.U.T @ basis.U, np.eye(count), atol=1e-12)
    assert np.min(basis.e) >= 0.0
    assert np.max(basis.e) <= values[0] * (1.0 + 1e-12)
    # Ritz values: each lies below the eigenvalue of its rank, and together with the rest they are all there is
    found = np.sort(basis.e)[::-1]
    assert np.all(found <= values[:count] + 1e-12 * values[0])
    assert found.sum() + (30 - count) * basis.rest == pytest.approx(np.trace(gram), rel=1e-12)
    np.testing.assert_allclose(basis.U.T @ gram @ basis.U, np.diag(basis.e), atol=1e-12 * values[0])
    if decay == 0.5:
        assert found[0] > 0.95 * values[0]


def test_up_to_a_size_all_eigenvectors_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    leading(monkeypatch, 5, all_up_to=30)
    objective = tall(Pinball())
    basis = Eigenbasis.of(objective)
    assert basis.whole
    assert basis.rest == 0.0
    gram = (basis.objective.rows.T * objective.sample_weight) @ basis.objective.rows
    np.testing.assert_allclose(gram, np.diag(basis.e), atol=1e-12 * np.max(basis.e))


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("count", [4, 30])
def test_there_and_back(bias: str | None, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    leading(monkeypatch, count)
    objective = tall(MQuantile(0.3), bias=bias)
    basis = Eigenbasis.of(objective)
    z = point(objective)
    np.testing.assert_allclose(basis.forth(basis.back(z)), z, atol=1e-12)
    np.testing.assert_allclose(basis.back(basis.forth(z)), z, atol=1e-12)
    smoothing = Smoothing((0.3, 0.1))
    here, there = basis.objective.evaluate(z, smoothing), objective.evaluate(basis.back(z), smoothing)
    assert here.primal == pytest.approx(there.primal, rel=1e-12)
    np.testing.assert_allclose(basis.back(here.gradient), there.gradient, atol=1e-12)


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("count", [4, 30])
def test_the_metric_is_the_hessian_of_an_even_curvature(
    bias: str | None, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Least squares curve the same everywhere: in the known directions the metric is their Hessian."""
    leading(monkeypatch, count)
    objective = tall(Squared(), bias=bias)
    basis = Eigenbasis.of(objective)
    (r, s), nothing, z = objective.shape, Smoothing((0.0,)), point(objective)
    metric = basis.metric(z, nothing)
    damped = basis.objective.ridge + basis.damping
    for a, b in ((0, 0), (count // 2, 1), (count - 1, s - 1)):
        v = np.zeros(objective.size)
        v[: r * s] = np.kron(np.eye(r)[a] if basis.whole else basis.U[:, a], np.eye(s)[b])
        product = hessian_product(basis.objective, z, nothing, v) + basis.damping * v
        assert v @ dense(metric, r) @ v == pytest.approx(v @ product, rel=1e-10)
    # no metric is below the ridge
    M = dense(metric, r)
    assert np.min(np.linalg.eigvalsh(M - np.diag(damped))) >= -1e-10 * np.max(M)


def test_the_metric_is_the_hessian_of_a_curvature_for_each_node() -> None:
    """Expectiles of targets far above the field have the curvature 2θ w, which spans decades."""
    objective = tall(Expectile(), bias=None)
    first, *others = objective.integrals
    assert first.targets is not None
    theta, weights = np.logspace(-4.0, -0.1, first.theta.size), np.logspace(0.0, -3.0, first.theta.size)
    far = replace(first, theta=theta, weights=weights, targets=first.targets + 1e3)
    objective = replace(objective, integrals=(far, *others))
    basis, nothing, z = Eigenbasis.of(objective), Smoothing((0.0, 0.0)), point(objective)
    M = dense(basis.metric(z, nothing), objective.shape[0])
    H = np.stack([hessian_product(basis.objective, z, nothing, e) for e in np.eye(objective.size)])
    np.testing.assert_allclose(M, H, rtol=0, atol=1e-12 * np.max(np.abs(H)))
    # where the nodes have one curvature, a diagonal says the same
    assert np.max(np.abs(H - np.diag(np.diag(H)))) > 1e-2 * np.max(H)


@pytest.mark.quick(every=5)
@pytest.mark.parametrize("name", ["pinball", "expectile", "hinge"])
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("solver", ["auto", "lbfgs"])
def test_some_eigenvectors_serve_as_well(
    name: str, bias: str | None, solver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    objective = tall(LOSSES[name], bias=bias, n=40)
    tol = 1e-5
    whole = solve(objective, solver=solver, tol=tol)
    leading(monkeypatch, 6)
    assert not Eigenbasis.of(objective).whole
    part = solve(objective, solver=solver, tol=tol)
    assert whole.converged
    assert part.converged
    assert max(whole.dual, part.dual) <= min(whole.objective, part.objective) * (1.0 + 1e-12)
    assert part.objective == pytest.approx(whole.objective, rel=tol)


def test_conjugate_gradients_in_a_metric_of_some_eigenvectors(monkeypatch: pytest.MonkeyPatch) -> None:
    leading(monkeypatch, 6)
    objective = tall(MQuantile(0.3))
    basis = Eigenbasis.of(objective)
    smoothing, z = Smoothing((0.5, 0.5)), point(objective)
    metric, system = basis.metric(z, smoothing), NewtonSystem(basis.objective)
    g = basis.objective.evaluate(z, smoothing).gradient
    direction = system.by_products(z, smoothing, g, metric)
    left = g + hessian_product(basis.objective, z, smoothing, direction)
    assert np.linalg.norm(left) <= 0.1 * np.linalg.norm(g) * (1.0 + 1e-9)
    assert g @ direction < 0.0


@pytest.mark.parametrize("count", [6, 30])
def test_libraries_find_the_same_basis(xp: Any, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    leading(monkeypatch, count)
    objective, like = tall(Squared()), xp.zeros(1, dtype=xp.float64)
    expected = basis_module._of_rows(objective)
    there = replace(objective, rows=as_like(objective.rows, like), sample_weight=as_like(objective.sample_weight, like))
    U, e, rest = basis_module._of_rows(there)
    assert isinstance(U, np.ndarray)
    np.testing.assert_allclose(np.abs(U.T @ expected[0]), np.eye(count), atol=1e-9)
    np.testing.assert_allclose(e, expected[1], atol=1e-12)
    assert rest == pytest.approx(expected[2], rel=1e-12)


# ------------------------------------------------------------------------------------------- the basis of another
@pytest.mark.quick(every=5)
@pytest.mark.parametrize("count", [6, 30])
@pytest.mark.parametrize("bias", BIASES)
def test_a_basis_of_another_problem_solves_this_one(
    bias: str | None, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    leading(monkeypatch, count)
    objective = tall(Pinball(), bias=bias, n=40)
    first = objective.integrals[0]
    # another ridge; other rows and targets
    near = replace(objective, alpha=0.5 * objective.alpha, alpha_bias=0.5 * objective.alpha_bias)
    assert first.targets is not None
    other = replace(
        near, rows=near.rows + 0.1, integrals=(replace(first, targets=first.targets[::-1]), *objective.integrals[1:])
    )
    known = Eigenbasis.of(objective)
    for problem in (near, other):
        basis = Eigenbasis.of(problem, known)
        z, smoothing = point(problem), Smoothing((0.3, 0.1))
        here, there = basis.objective.evaluate(z, smoothing), problem.evaluate(basis.back(z), smoothing)
        assert here.primal == pytest.approx(there.primal, rel=1e-12)
        np.testing.assert_allclose(basis.U.T @ basis.U, np.eye(count), atol=1e-12)
        expected, found = solve(problem, tol=1e-5), solve(problem, tol=1e-5, basis=basis)
        assert found.converged
        assert found.objective == pytest.approx(expected.objective, rel=1e-5)
        assert max(found.dual, expected.dual) <= min(found.objective, expected.objective) * (1.0 + 1e-12)


# ------------------------------------------------------------------------------------------------- rows in a staircase
def triangular(bias: str | None, n: int = 80, r: int = 60) -> Objective:
    """Rows as a Cholesky factor has them, in an order of their own."""
    objective = tall(Pinball(), r, n, bias, decay=0.97)
    rows = np.vstack([np.tril(objective.rows[:r]), objective.rows[r:]])
    order = np.random.default_rng(5).permutation(n)
    rows[3] = 0.0  # an input that no feature sees
    return replace(objective, rows=rows[order], block_entries=40)


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("centred", [False, True])
def test_zeros_of_the_rows_are_left_out_and_nothing_changes(
    bias: str | None, centred: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    leading(monkeypatch, 6)
    objective = triangular(bias)
    basis = Eigenbasis.of(objective)
    turned = basis.objective
    assert basis.order is not None
    assert turned.reach is not None
    assert np.all(np.diff(turned.reach) >= 0)
    for row, reach in zip(turned.rows, turned.reach, strict=True):
        assert row[reach - 1] != 0.0 or not np.any(row)
        assert not np.any(row[reach:])
    z = point(objective)
    smoothing = Smoothing((0.1, 0.2))
    if centred:
        smoothing = Smoothing((0.05, 0.1), objective.duals(z, smoothing))
    there, smoothed = basis.forth(z), basis.smoothing_forth(smoothing)
    np.testing.assert_allclose(basis.back(there), z, atol=1e-12)
    expected, found = objective.evaluate(z, smoothing), turned.evaluate(there, smoothed)
    assert found.primal == pytest.approx(expected.primal, rel=1e-12)
    assert found.smoothed == pytest.approx(expected.smoothed, rel=1e-12)
    assert found.dual_data == pytest.approx(expected.dual_data, rel=1e-10)
    np.testing.assert_allclose(basis.back(found.gradient), expected.gradient, atol=1e-12)
    for a, b in zip(turned.node_curvature(there, smoothed), objective.node_curvature(z, smoothing), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)
    for a, b in zip(turned.duals(there, smoothed), objective.duals(z, smoothing), strict=True):
        assert a is not None
        assert b is not None
        np.testing.assert_allclose(a, b[basis.order], atol=1e-9)
    again = basis.smoothing_back(smoothed)
    assert again.kappa == smoothing.kappa
    for a, b in zip(again.centre or (), smoothing.centre or (), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.quick("free")
@pytest.mark.parametrize("bias", BIASES)
def test_rows_in_a_staircase_are_solved_as_any(bias: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    objective = triangular(bias)
    expected = solve(objective, tol=1e-8)
    leading(monkeypatch, 6)
    found = solve(objective, tol=1e-8)
    assert found.converged
    assert found.objective == pytest.approx(expected.objective, rel=2e-8)
    # and a start there is a start here: its first evaluation is that of the solution
    start = Start(found.z, found.smoothing, found.floor)
    again = solve(objective, tol=1e-8, start=start)
    assert again.history[0, 1] == pytest.approx(found.objective, rel=1e-12)
    assert again.converged


def test_full_rows_stay_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    leading(monkeypatch, 6)
    basis = Eigenbasis.of(tall(Pinball()))
    assert basis.order is None
    assert basis.objective.reach is None


@pytest.mark.parametrize("bias", BIASES)
def test_another_ridge_is_another_objective(bias: str | None) -> None:
    objective = tall(Pinball(), bias=bias)
    smoothing, z = Smoothing((0.1, 0.2)), point(objective)
    objective.evaluate(z, smoothing)
    for alpha_bias in (objective.alpha_bias, 0.0, 3.0):
        found = objective.with_ridge(0.3, alpha_bias)
        expected = replace(objective, alpha=0.3, alpha_bias=alpha_bias)
        for a, b in zip(found.evaluate(z, smoothing), expected.evaluate(z, smoothing), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)
