"""Mixtures of dual points."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from infinitask.solvers._steps import SIZE, Bundle, mixture

Floats = np.ndarray[Any, Any]


def value(lower: Floats, gram: Floats, weights: Floats) -> float:
    return float(lower @ weights - 0.5 * weights @ gram @ weights)


def test_a_mixture_is_nearly_the_best_one() -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(5, 4, 7))
    gram, lower = points @ np.swapaxes(points, 1, 2), rng.normal(size=(5, 4))
    found = mixture(lower, gram)
    assert np.all(found >= 0.0)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    for a, G, c in zip(lower, gram, found, strict=True):
        best = minimize(
            lambda w, a=a, G=G: -value(a, G, w),
            np.full(4, 0.25),
            bounds=[(0.0, 1.0)] * 4,
            constraints={"type": "eq", "fun": lambda w: w.sum() - 1.0},
        )
        single = max(value(a, G, w) for w in np.eye(4))
        assert value(a, G, c) >= single
        assert value(a, G, c) >= -best.fun - 0.02 * abs(best.fun)


def test_the_bound_never_falls_and_never_exceeds_the_optimum() -> None:
    """max over u in [-1, 1]^n of u·y - |A u|²/2λ: every bound is the value of a point in the box."""
    rng = np.random.default_rng(1)
    A, y, ridge = rng.normal(size=(3, 8)), rng.normal(size=8), np.array([0.5, 2.0])

    def dual(u: Floats, b: int) -> float:
        return float(u @ y - 0.5 * np.sum((A @ u) ** 2) / ridge[b])

    best = [
        -minimize(lambda u, b=b: -dual(u, b), np.zeros(8), bounds=[(-1.0, 1.0)] * 8, tol=1e-12).fun for b in range(2)
    ]
    bundle, before, singles = Bundle(ridge), np.full(2, -np.inf), np.full(2, -np.inf)
    for _ in range(3 * SIZE):
        u = rng.uniform(-1.0, 1.0, size=8)
        bound = bundle.bound([np.full(2, u @ y)], [np.repeat((A @ u)[:, None], 2, axis=1)[:, :, None]])
        singles = np.maximum(singles, [dual(u, b) for b in range(2)])
        assert np.all(bound >= before - 1e-12)
        assert np.all(bound <= np.array(best) + 1e-9)
        before = bound
    assert np.all(before >= singles - 1e-12)
    assert np.any(before > singles + 1e-3)


@pytest.mark.parametrize("worthless", [-np.inf, np.nan])
def test_a_point_that_proves_nothing_has_no_part(worthless: float) -> None:
    bundle, pull = Bundle(np.ones(1)), np.ones((2, 1, 1))
    assert bundle.bound([np.array([worthless])], [pull])[0] == -np.inf
    known = bundle.bound([np.array([3.0])], [pull])[0]
    assert known == 2.0
    assert bundle.bound([np.array([worthless])], [np.full((2, 1, 1), np.nan)])[0] == known
    assert bundle.bound([np.array([3.0])], [pull])[0] == known  # the same point once more
    assert bundle.bound([np.array([4.0])], [pull])[0] == 3.0
