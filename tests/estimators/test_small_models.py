"""A fitted model keeps what its predictions need, and no more."""

from __future__ import annotations

import pickle
from copy import deepcopy
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
import pytest

from infinitask import InfiniteCostSensitiveClassifier, InfiniteOneClassSVM, InfiniteQuantileRegressor
from infinitask.bounds import bound_of
from infinitask.features._cholesky import Inverse
from infinitask.fitting import Data, learn, representer_coefficients
from infinitask.kernels import (
    RBF,
    Additive,
    CallableKernel,
    InputKernel,
    Laplacian,
    Linear,
    Matern,
    Ranks,
    Scaled,
    Sum,
    Warped,
)
from infinitask.tuning import InfiniteQuantileRegressorCV

D, LEVELS = 4, np.linspace(0.01, 0.99, 99)
NUMBER = 8
"""Bytes of a number."""

REST = 60_000
"""Bytes for everything that does not grow with the rows."""


def sample(n: int, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    X[:, 3] = X[:, 3] > 0.3
    return X, X[:, 0] + np.sin(2.0 * X[:, 1]) + 0.3 * (1.0 + X[:, 2] ** 2) * rng.normal(size=n)


X, Y = sample(300)
NEW = sample(50, seed=1)[0]
SCALES = (1.0, 0.5, 2.0, 1.0)
PARTS: list[InputKernel] = [
    Scaled(RBF(gamma=0.3), SCALES),
    Scaled(Linear(), SCALES),
    Scaled(Additive(RBF(gamma=0.5)), SCALES),
    Warped(Scaled(Matern(gamma=0.3), SCALES)),
    Warped(Scaled(Laplacian(gamma=0.3), SCALES)),
]
KERNELS: dict[str, Any] = {
    "by default": "rbf",
    "Laplacian": Laplacian(),
    "Matérn": Matern(),
    "linear": Linear(),
    "additive": PARTS[2],
    "warped": PARTS[3],
    "a sum": reduce(Sum, PARTS),
    "nearly flat": RBF(gamma=1e-3),
    "a function": CallableKernel(np.inner),
}


def fitted(kernel: Any, **choices: Any) -> InfiniteQuantileRegressor:
    given = {"kernel": kernel, "alpha": 1e-4, "tol": 1e-2, "random_state": 0} | choices
    return InfiniteQuantileRegressor(**given).fit(X, Y)


@pytest.mark.quick(every=3)
@pytest.mark.parametrize("name", KERNELS)
def test_a_model_keeps_landmarks_and_coefficients(name: str) -> None:
    model = fitted(KERNELS[name])
    r, s = model.field_.coef.shape
    saved = pickle.dumps(model)
    # landmarks, C, T C and the unknowns of the solution
    assert len(saved) < NUMBER * r * (D + 3 * s) + REST
    if name in ("by default", "Laplacian", "warped", "a sum"):
        assert len(saved) < NUMBER * r * r / 2.0, "so small that a factor is not among it"
    again = pickle.loads(saved)
    for theta in (LEVELS, 0.5):
        np.testing.assert_array_equal(again.predict(NEW, theta), model.predict(NEW, theta))
        np.testing.assert_array_equal(again.predict(NEW[:1], theta), model.predict(NEW[:1], theta))
    np.testing.assert_array_equal(deepcopy(model).predict(NEW), model.predict(NEW))
    # neither does it grow by being asked
    assert len(pickle.dumps(model)) == len(saved)


@pytest.mark.quick(every=3)
@pytest.mark.parametrize("alpha", [1e-3, 1e-7])
@pytest.mark.parametrize("name", KERNELS)
def test_answers_are_those_of_the_features(name: str, alpha: float) -> None:
    recipe = InfiniteQuantileRegressor(kernel=KERNELS[name], alpha=alpha, tol=1e-3, max_iter=100).recipe()
    field = learn(recipe, Data.canonical(X, Y, np.ones(len(Y)))).field
    phi, psi = field.phi, field.psi(LEVELS)
    T = np.asarray(phi.transform)  # type: ignore[attr-defined]
    columns = phi.kernel(NEW, phi.landmarks)  # type: ignore[attr-defined]
    h = columns @ T @ field.coef @ psi.T + field.bias(LEVELS)
    small = field.compact()
    # T has large numbers that cancel: rounding errors are in proportion to them
    rounding = 1e-14 * float(np.max(np.abs(columns) @ np.abs(T @ field.coef)) * np.max(np.abs(psi)))
    slack = max(1e-10 * float(np.ptp(h)), rounding)
    for found in (small(NEW, LEVELS), np.concatenate([small(x[None, :], LEVELS) for x in NEW])):
        np.testing.assert_allclose(found, h, rtol=0.0, atol=slack)
    phi_again, coef = small.in_coordinates()
    np.testing.assert_allclose(phi_again(NEW) @ coef @ psi.T + small.bias(LEVELS), h, rtol=0.0, atol=slack)
    assert small.norm == field.norm
    assert float(np.linalg.norm(coef)) == pytest.approx(field.norm, rel=1e-6)


def test_features_are_still_orthonormal_after_a_fit() -> None:
    model = pickle.loads(pickle.dumps(fitted(KERNELS["a sum"])))
    phi = model.field_.phi
    assert isinstance(phi.transform, Inverse)
    assert "lower" not in vars(phi.transform), "it is not computed before it is needed"
    np.testing.assert_allclose(phi(X) @ phi(X).T, model.kernel_(X, X), rtol=0.0, atol=1e-5)
    assert phi.transform.shape == (phi.rank, phi.rank)


def test_a_factor_that_rounding_spoils_is_found_all_the_same() -> None:
    Z = np.linspace(0.0, 1.0, 60)[:, None]  # numerically of rank 8
    L = Inverse(spanned=(RBF(gamma=0.5), Z)).lower
    np.testing.assert_allclose(L @ L.T, RBF(gamma=0.5)(Z, Z), rtol=0.0, atol=1e-11)


def test_a_triangle_is_saved_without_its_zeros() -> None:
    L = np.tril(np.random.default_rng(0).normal(size=(40, 40)))
    saved = pickle.dumps(Inverse(L))
    assert len(saved) < NUMBER * 40 * 41 / 2 + 500
    np.testing.assert_array_equal(pickle.loads(saved).lower, L)


def test_bounds_and_representers_work_after_a_round_trip() -> None:
    model = InfiniteQuantileRegressor(alpha=0.01, alpha_bias=0.1, noncrossing=0.0, tol=1e-6).fit(X, Y)
    again = pickle.loads(pickle.dumps(model))
    low, high = float(np.min(Y)), float(np.max(Y))
    expected = bound_of(model, X, Y, y_bound=max(abs(low), abs(high)))
    assert bound_of(again, X, Y, y_bound=max(abs(low), abs(high))) == expected
    found = representer_coefficients(again, X)
    np.testing.assert_allclose(found(NEW, LEVELS), model.field_(NEW, LEVELS), rtol=0.0, atol=1e-5)


def test_a_precomputed_gram_has_landmarks_too() -> None:
    gram, new = RBF(gamma=0.2)(X, X), RBF(gamma=0.2)(NEW, X)
    model = InfiniteQuantileRegressor(kernel="precomputed", alpha=1e-3, tol=1e-2).fit(gram, Y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(new, LEVELS), model.predict(new, LEVELS))
    np.testing.assert_array_equal(again.field_.phi(new), model.field_.phi(new))


@pytest.mark.parametrize("features", ["nystroem", "fourier"])
def test_approximate_features_are_small_too(features: str) -> None:
    model = fitted("rbf", features=features, rank=100)
    saved = pickle.dumps(model)
    r, s = model.field_.coef.shape
    assert len(saved) < NUMBER * r * (D + 4 * s) + REST
    np.testing.assert_array_equal(pickle.loads(saved).predict(NEW, LEVELS), model.predict(NEW, LEVELS))


@pytest.mark.slow
def test_other_tasks_are_small_too() -> None:
    classifier = InfiniteCostSensitiveClassifier(random_state=0, tol=1e-2).fit(X, Y > 0.0)
    level_sets = InfiniteOneClassSVM(random_state=0, tol=1e-2).fit(X)
    for model in (classifier, level_sets):
        r, s = model.field_.coef.shape
        saved = pickle.dumps(model)
        # features of tasks and of the bias have a factor of their own each, (s, s)
        assert len(saved) < NUMBER * (r * (D + 3 * s) + 4 * len(X) + 2 * s * s) + REST
        np.testing.assert_array_equal(pickle.loads(saved).decision_function(NEW), model.decision_function(NEW))
    level_sets.score_samples(100.0 * NEW)
    assert "lower" not in vars(level_sets.field_.phi.transform), "scores need no factor"


def test_a_self_tuned_model_is_as_small() -> None:
    kernels = [reduce(Sum, PARTS)]
    model = InfiniteQuantileRegressorCV(kernels=kernels, alphas=[1e-3], cv=2, tol=1e-2, random_state=0).fit(X, Y)
    saved = pickle.dumps(model)
    r, s = model.field_.coef.shape
    assert r > 250
    assert len(saved) < NUMBER * r * (D + 3 * s) + REST < NUMBER * r * r / 2.0
    np.testing.assert_array_equal(pickle.loads(saved).predict(NEW, LEVELS), model.predict(NEW, LEVELS))


def test_copies_of_a_kernel_share_their_ranks() -> None:
    ranks = Ranks.of(X)
    kernel = Warped(RBF(gamma=1.0), ranks) + Warped(Linear(), ranks)
    twin = deepcopy(kernel)
    assert twin.left.ranks is twin.right.ranks
    one, both = (len(pickle.dumps(k)) for k in (kernel.left, kernel))
    assert both < 1.2 * one
    model = fitted(kernel)
    again = pickle.loads(pickle.dumps(model))
    assert again.kernel_.left.ranks is again.kernel_.right.ranks


def test_a_path_shares_its_landmarks() -> None:
    model = fitted("rbf")
    field = model.field_
    halved = replace(field, coef=0.5 * field.coef)
    assert halved.phi.landmarks is field.phi.landmarks
    np.testing.assert_allclose(
        halved(NEW, LEVELS) - halved.bias(LEVELS), 0.5 * (field(NEW, LEVELS) - field.bias(LEVELS)), atol=1e-8
    )
