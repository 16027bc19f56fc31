"""Splitting with a free level at every node."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.svm import SVC

from infinitask import InfiniteCostSensitiveClassifier
from infinitask.kernels import RBF
from infinitask.losses import CostSensitiveHinge, Expectile, Loss, Pinball
from infinitask.objective import Integral, Objective
from infinitask.solvers import _free_levels, solve, suits_levels
from infinitask.solvers._base import Ledger

Floats = np.ndarray[Any, Any]


def classes(n: int, d: int = 2, rare: int = 10) -> tuple[Floats, Floats]:
    y = np.where(np.arange(n) % rare == 0, 1.0, -1.0)
    X = np.random.default_rng(n + d).normal(size=(n, d))
    X[y > 0.0] += 1.0
    return X, y


def posed(
    n: int, theta: Floats, alpha: float, loss: Loss | None = None, *, gamma: float = 0.5, d: int = 2
) -> Objective:
    """Tasks that share a Gaussian kernel over θ, each with a level of its own."""
    X, y = classes(n, d)
    rows = np.linalg.cholesky(RBF(gamma)(X, X) + 1e-9 * np.eye(n))
    cols = np.linalg.cholesky(np.exp(-((theta[:, None] - theta) ** 2)) + 1e-9 * np.eye(theta.size))
    weights = np.full(theta.size, 1.0 / theta.size)
    term = Integral(loss or CostSensitiveHinge(), theta, weights, cols, np.eye(theta.size), y[:, None])
    return Objective(rows, np.full(n, 1.0 / n), (term,), alpha, 0.0)


def by_levels(objective: Objective, tol: float = 1e-4) -> Ledger:
    ledger = Ledger(objective, tol, 2_000)
    _free_levels.by_levels(objective, ledger, None)
    return ledger


@pytest.mark.parametrize("alpha", [1e-1, 1e-2])
@pytest.mark.parametrize("theta", [-0.8, 0.0, 0.9])
def test_one_task_is_a_support_vector_machine(theta: float, alpha: float) -> None:
    n = 120
    objective = posed(n, np.array([theta]), alpha)
    X, y = classes(n)
    costs = {1.0: 0.5 * (1.0 + theta), -1.0: 0.5 * (1.0 - theta)}
    machine = SVC(gamma=0.5, C=1.0 / (n * alpha), class_weight=costs, tol=1e-8).fit(X, y)
    cost = np.where(y > 0.0, costs[1.0], costs[-1.0])
    a = machine.dual_coef_[0]
    norm = float(a @ RBF(0.5)(machine.support_vectors_, machine.support_vectors_) @ a)
    best = float(np.mean(cost * np.maximum(0.0, 1.0 - y * machine.decision_function(X)))) + 0.5 * alpha * norm
    certificate = by_levels(objective).certificate
    assert certificate.gap <= 1e-4
    assert certificate.dual <= best * (1.0 + 1e-6)
    assert best * (1.0 - 1e-6) <= certificate.primal <= best * (1.0 + 1.01e-4)


@pytest.mark.parametrize("loss", [CostSensitiveHinge(), Pinball()], ids=["hinge", "pinball"])
@pytest.mark.parametrize("alpha", [1e-1, 1e-4])
def test_bounds_hold_for_another_solver(loss: Loss, alpha: float) -> None:
    theta = np.linspace(0.1, 0.9, 5)
    objective = posed(60, theta, alpha, loss)
    slow = solve(objective, solver="newton", tol=1e-7)
    found = by_levels(objective).certificate
    assert slow.gap <= 1e-7
    assert found.gap <= (1e-3 if alpha > 1e-2 else 0.1)  # others finish where its steps become small
    assert found.dual <= slow.objective + 1e-12
    assert slow.dual <= found.primal + 1e-12
    assert objective.evaluate(found.z, slow.smoothing).primal == pytest.approx(found.primal, rel=1e-10)


def test_others_finish_what_it_leaves() -> None:
    objective = posed(60, np.linspace(-0.8, 0.8, 5), 1e-6)
    alone = by_levels(objective)
    assert alone.certificate.gap > 1e-4
    found = solve(objective)
    assert found.gap <= 1e-4
    assert found.n_evaluations > alone.n_evaluations
    assert len(found.history) > len(alone.history)


def test_directions_that_the_ridge_holds_are_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    objective = posed(420, np.linspace(-0.9, 0.9, 6), 3e-3, d=8, gamma=0.1)
    run = _free_levels._Run(objective)
    assert 10 < run.V.shape[1] < 200  # few of 420
    part = by_levels(objective).certificate
    monkeypatch.setattr(_free_levels, "DOMINATED", 0.0)
    monkeypatch.setattr(_free_levels, "MAX_FEATURES_FOR_ALL", 1_000)
    assert _free_levels._Run(objective).V.shape[1] == 420
    whole = by_levels(objective).certificate
    for one, other in ((part, whole), (whole, part)):
        assert one.gap <= 1e-4
        assert one.dual <= other.primal + 1e-12


def test_levels_are_the_best_ones() -> None:
    objective = posed(80, np.linspace(-0.8, 0.8, 4), 1e-2)
    run, rng = _free_levels._Run(objective), np.random.default_rng(0)
    field = rng.normal(size=(80, 4))

    def losses(level: Floats) -> Floats:
        return np.asarray(run.omega @ run.term.loss.value(run.term.theta, run.targets, field + level))

    best = run._best_level(field.T)
    for step in (-1.0, -1e-3, 1e-3, 1.0):
        assert np.all(losses(best) <= losses(best + step) + 1e-14)


@pytest.mark.parametrize("share", [_free_levels.BALANCED, 0.2], ids=["as it is", "levels that hardly balance"])
def test_every_dual_point_balances(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_free_levels, "BALANCED", share)
    objective = posed(100, np.linspace(-0.9, 0.9, 5), 1e-2)
    run = _free_levels._Run(objective)
    for _ in range(7):
        run.step()
        u = run._balanced()
        np.testing.assert_allclose(u @ run.omega, 0.0, atol=1e-16)
        assert np.all((run.low <= u) & (u <= run.high))
        assert np.any(u != 0.0)


def test_bounds_hold_while_rows_are_held_out() -> None:
    objective = posed(300, np.linspace(-0.9, 0.9, 6), 1e-3, d=8, gamma=0.1)
    best = solve(objective, solver="newton", tol=1e-6)
    run = _free_levels._Run(objective)

    def gap(steps: int) -> float:
        for _ in range(steps):
            run.step()
        _, primal, dual = run.bounds()
        np.testing.assert_allclose(run.u @ run.omega, 0.0, atol=1e-16)
        assert np.all((run.low <= run.u) & (run.u <= run.high))
        assert dual <= best.objective + 1e-12
        assert best.dual <= primal + 1e-12
        return (primal - dual) / primal

    first = gap(60)
    run.skip_rows()
    assert 0 < run.kept.size < 200
    second = gap(60)
    run.visit_all()
    assert run.kept.size == 300
    assert gap(60) < second < 0.5 * first
    run.skip_rows()
    assert run.kept.size == 300  # for good


def test_what_it_does_not_solve() -> None:
    theta = np.array([0.2, 0.8])
    objective = posed(30, theta, 1e-2)
    assert suits_levels(objective)
    assert not suits_levels(objective.with_ridge(1e-2, 1e-6))
    assert not suits_levels(posed(30, theta, 1e-2, Expectile()))
    assert not suits_levels(posed(30, theta, 1e-2, CostSensitiveHinge(0.1)))


def test_rows_of_weight_two_are_two_rows() -> None:
    X, y = classes(150)
    weight = np.random.default_rng(0).integers(0, 3, 150)
    one = InfiniteCostSensitiveClassifier(alpha=1e-3, gamma=0.5).fit(X, y, sample_weight=weight)
    two = InfiniteCostSensitiveClassifier(alpha=1e-3, gamma=0.5).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert one.dual_gap_ <= 1e-4
    assert one.objective_ == pytest.approx(two.objective_, rel=2e-4)


def test_a_limit_of_iterations_is_kept() -> None:
    X, y = classes(200)
    with pytest.warns(UserWarning, match="evaluations"):
        model = InfiniteCostSensitiveClassifier(alpha=1e-4, gamma=0.5, max_iter=15).fit(X, y)
    assert model.solution_.n_evaluations == 15
    assert 1e-4 < model.dual_gap_ < np.inf


def test_rows_that_are_all_alike() -> None:
    objective = posed(30, np.linspace(-0.8, 0.8, 5), 0.1)
    flat = replace(objective, rows=0.0 * objective.rows)
    found, slow = by_levels(flat).certificate, solve(flat, solver="newton")
    assert found.gap <= 1e-4
    assert found.primal == pytest.approx(slow.objective, rel=1e-4)
