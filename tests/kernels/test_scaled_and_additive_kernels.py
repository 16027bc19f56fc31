"""Kernels with a length scale for each input, and sums over the inputs."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.base import clone

from infinitask import InfiniteQuantileRegressor
from infinitask.kernels import RBF, Additive, InputKernel, Laplacian, Linear, Matern, Precomputed, Scaled, Warped
from tests.support.arrays import as_like, to_host
from tests.support.each import each

RNG = np.random.default_rng(0)
X, Z = RNG.normal(size=(20, 3)), RNG.normal(size=(7, 3))
SCALES = (2.0, 0.0, 0.5)
INNER = [RBF(gamma=0.7), Laplacian(gamma=0.4), Matern(gamma=0.3, nu=1.5), Linear()]


@each("inner", INNER, ids=repr)
def test_scaled_is_the_kernel_of_scaled_features(inner: InputKernel) -> None:
    kernel = Scaled(inner, SCALES)
    np.testing.assert_allclose(kernel(X, Z), inner(X * SCALES, Z * SCALES), rtol=1e-13)
    np.testing.assert_allclose(kernel.diag(X), np.diagonal(kernel(X, X)), rtol=1e-13)
    assert kernel.stationary == inner.stationary
    moved = Z.copy()
    moved[:, 1] += 100.0
    np.testing.assert_array_equal(kernel(X, moved), kernel(X, Z))


@each("inner", INNER, ids=repr)
def test_additive_is_the_mean_over_the_features(inner: InputKernel) -> None:
    kernel = Additive(inner)
    expected = np.mean([inner(X[:, [j]], Z[:, [j]]) for j in range(3)], axis=0)
    np.testing.assert_allclose(kernel(X, Z), expected, rtol=1e-13)
    np.testing.assert_allclose(kernel.diag(X), np.diagonal(kernel(X, X)), rtol=1e-13)
    assert np.min(np.linalg.eigvalsh(kernel(X, X))) > -1e-12


def test_bandwidths_follow_what_the_inner_kernel_sees() -> None:
    wide = X * [1.0, 10.0, 100.0]
    parts = Additive(RBF()).resolve(wide).parts
    assert parts is not None
    for j, part in enumerate(parts):
        assert part.gamma == pytest.approx(RBF().resolve(wide[:, [j]]).gamma)
    assert Scaled(RBF(), (1.0, 0.1, 0.01)).resolve(wide).kernel.gamma == pytest.approx(RBF().resolve(X).gamma)
    # so that units do not matter
    np.testing.assert_allclose(Additive(RBF()).resolve(wide)(wide, wide), Additive(RBF()).resolve(X)(X, X), rtol=1e-10)


@each(
    "kernel",
    [Scaled(RBF(gamma=0.7), SCALES), Additive(Laplacian(gamma=0.4)), Warped(RBF(gamma=0.5)).resolve(X[:5])],
    ids=lambda kernel: type(kernel).__name__,
)
def test_libraries_agree(kernel: InputKernel, xp: Any) -> None:
    like = xp.zeros(1, dtype=xp.float64)
    found = kernel(as_like(X, like), as_like(Z, like))
    np.testing.assert_allclose(to_host(found), kernel(X, Z), rtol=1e-12)
    np.testing.assert_allclose(to_host(kernel.diag(as_like(X, like))), kernel.diag(X), rtol=1e-12)


def test_frequencies_of_a_scaled_kernel() -> None:
    kernel = Scaled(RBF(gamma=0.3), SCALES)
    W = kernel.spectral(3, 40_000, np.random.default_rng(1))
    found = np.mean(np.cos((X[:1] - Z) @ W), axis=1)
    np.testing.assert_allclose(found, kernel(X[:1], Z)[0], atol=0.03)
    assert not np.any(W[1])


@each("scales", [(1.0, 2.0), (1.0, -1.0, 1.0), (1.0, np.nan, 1.0), "abc"])
def test_wrong_scales(scales: Any) -> None:
    with pytest.raises(ValueError, match=r"3 finite numbers ≥ 0|scales='abc'.*numbers"):
        Scaled(RBF(gamma=1.0), scales)(X, Z)


@each("inner", [Precomputed(), "rbf", None])
def test_wrong_inner_kernels(inner: Any) -> None:
    for kernel in (Additive(inner), Scaled(inner, SCALES), Warped(inner)):
        with pytest.raises(TypeError, match="an input kernel that is computed"):
            kernel.resolve(X)


def test_another_number_of_columns() -> None:
    with pytest.raises(ValueError, match="resolved on 3 columns and is given 2"):
        Additive(RBF()).resolve(X)(X[:, :2], Z[:, :2])
    with pytest.raises(ValueError, match="resolved on 3 columns and is given 2"):
        Warped(RBF()).resolve(X)(X[:, :2], Z[:, :2])
    with pytest.raises(ValueError, match=r"call resolve\(X\) first"):
        Warped(RBF())(X, Z)


def test_a_warped_kernel_sees_ranks_only() -> None:
    kernel = Warped(RBF()).resolve(X)
    bent = X.copy()
    bent[:, 0], bent[:, 1] = np.exp(3.0 * X[:, 0]), X[:, 1] ** 3 * 1e6
    np.testing.assert_allclose(Warped(RBF()).resolve(bent)(bent, bent), kernel(X, X), rtol=1e-12)
    far = np.vstack([np.full(3, 1e9), X.max(axis=0)])
    np.testing.assert_allclose(kernel(far[:1], Z), kernel(far[1:], Z), rtol=1e-12)
    assert np.min(np.linalg.eigvalsh(kernel(X, X))) > -1e-12
    np.testing.assert_allclose(kernel.diag(X), np.diagonal(kernel(X, X)), rtol=1e-13)


def test_scores_of_a_warped_kernel() -> None:
    column = np.array([[3.0], [1.0], [1.0], [2.0]])
    scores = Warped(RBF()).resolve(column).warp(np.array([[1.0], [1.5], [2.0], [3.0], [7.0], [-7.0]]))[:, 0]
    at = norm.ppf([0.25, 0.625, 0.875])  # two of four rows are 1: their middle rank is 1 of 4
    np.testing.assert_allclose(scores, [at[0], (at[0] + at[1]) / 2.0, at[1], at[2], at[2], at[0]], atol=1e-12)
    known = Warped(RBF(gamma=1.0)).resolve(column)
    np.testing.assert_array_equal(known.resolve(10.0 * column).warp(column), known.warp(column))
    constant = Warped(RBF()).resolve(np.ones((5, 1)))
    np.testing.assert_array_equal(constant.warp(np.array([[0.0], [9.0]])), np.zeros((2, 1)))


@each("kernel", [Scaled(RBF(), SCALES), Additive(Matern(nu=2.5)), Warped(RBF())], ids=repr)
def test_models_take_them(kernel: InputKernel) -> None:
    y = np.sin(X[:, 0]) + 0.1 * X[:, 2]
    model = InfiniteQuantileRegressor(kernel=kernel, n_nodes=10).fit(X, y)
    assert model.dual_gap_ <= 1e-4
    expected = model.predict(Z, [0.2, 0.8])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(Z, [0.2, 0.8]), expected)
    np.testing.assert_array_equal(clone(model).fit(X, y).predict(Z, [0.2, 0.8]), expected)
