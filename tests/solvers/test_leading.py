"""Splitting in the leading directions, for targets of two values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from infinitask._base.budget import Budget, within
from infinitask.losses import CostSensitiveHinge, Pinball
from infinitask.objective import Integral, Objective, Smoothing
from infinitask.solvers import _leading, solve
from infinitask.solvers._base import Ledger, Start
from infinitask.solvers._basis import DOMINATED, Eigenbasis

THETA = np.array([-0.5, 0.0, 0.8])


def decisions(n: int = 480, r: int = 450, alpha: float = 1e-3, positives: float = 0.05) -> Objective:
    """Two classes of which one is rare, with features whose size falls; the first one is a constant."""
    rng = np.random.default_rng(0)
    phi = rng.normal(size=(n, r)) * 0.97 ** np.arange(r)
    score = phi[:, 0] + 0.5 * phi[:, 1] + rng.normal(size=n)
    y = np.where(score > np.quantile(score, 1.0 - positives), 1.0, -1.0)[:, None]
    cols = np.linalg.cholesky(np.exp(-((THETA[:, None] - THETA) ** 2)))
    term = Integral(CostSensitiveHinge(), THETA, np.full(3, 1.0 / 3.0), cols, targets=y)
    return Objective(np.hstack([np.full((n, 1), 30.0), phi]), np.full(n, 1.0 / n), (term,), alpha)


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of directions in which splitting runs."""
    seen: list[int] = []
    plain = _leading.by_splitting

    def by_splitting(objective: Objective, *more: Any) -> Any:
        seen.append(objective.shape[0])
        return plain(objective, *more)

    monkeypatch.setattr(_leading, "by_splitting", by_splitting)
    return seen


@pytest.mark.parametrize("alpha", [1e-1, 1e-3])
def test_the_other_directions_are_added(alpha: float, monkeypatch: pytest.MonkeyPatch) -> None:
    objective, seen = decisions(alpha=alpha), counted(monkeypatch)
    found, other = solve(objective, tol=1e-4), solve(objective, solver="newton", tol=1e-6)
    assert len(seen) == 1
    assert 1 < seen[0] < 451
    assert found.converged
    assert other.converged
    assert other.dual - 1e-9 <= found.objective <= (1.0 + 2e-4) * other.objective
    assert found.dual <= other.objective + 1e-9
    # and they matter: without them the gap is larger
    U = Eigenbasis.of(objective).leading()
    assert U is not None
    thin = objective.rotated(U[1], np.eye(3), None)
    assert solve(thin, tol=1e-7).dual > (1.0 + 1e-5) * other.objective


def test_directions_that_the_ridge_dominates_are_omitted() -> None:
    objective = decisions()
    e, U = Eigenbasis.of(objective).leading() or (None, None)
    assert e is not None
    assert U is not None
    np.testing.assert_allclose(U.T @ U, np.eye(e.size), atol=1e-9)
    gram = objective.rows.T @ objective.rows / len(objective.rows)
    first = objective.integrals[0]
    f = np.linalg.eigvalsh((first.cols.T * first.weights) @ first.cols)[-1]
    kept = int(np.sum(np.linalg.eigvalsh(gram) * f > 2.0 * DOMINATED * objective.alpha))
    assert kept <= e.size < objective.shape[0]
    assert np.min(e) * f > DOMINATED * objective.alpha


def test_more_than_two_targets_and_known_starts_are_solved_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    objective, seen = decisions(n=60, r=20), counted(monkeypatch)
    assert objective.two_targets
    found = solve(objective)
    assert found.converged
    assert len(seen) == 1
    assert solve(objective, start=Start(found.z, Smoothing(found.smoothing.kappa))).converged
    term = objective.integrals[0]
    three = np.where(np.arange(60)[:, None] % 3 == 0, 0.0, np.asarray(term.targets))
    other = Integral(Pinball(), np.array([0.2, 0.5, 0.8]), term.weights, term.cols, targets=three)
    assert solve(Objective(objective.rows, objective.sample_weight, (other,), objective.alpha)).converged
    assert len(seen) == 1
    rows = np.zeros_like(objective.rows)
    nothing = Objective(rows, objective.sample_weight, objective.integrals, objective.alpha)
    assert solve(nothing).converged  # there are no directions
    assert len(seen) == 1


def test_an_interrupt_keeps_the_best_point_of_the_leading_directions(monkeypatch: pytest.MonkeyPatch) -> None:
    objective, plain = decisions(), Ledger.take

    def interrupting(ledger: Ledger, *found: Any) -> None:
        plain(ledger, *found)
        if ledger.objective.shape[0] < 451 and ledger.certificate.gap < 0.1:
            raise KeyboardInterrupt

    monkeypatch.setattr(Ledger, "take", interrupting)
    with within(Budget(keeps_best=True)):
        kept = solve(objective)
    assert not kept.converged
    assert kept.objective < 0.9 * objective.evaluate(np.zeros(objective.size), objective.widest).primal
