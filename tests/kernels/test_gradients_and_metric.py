"""Gradients of the functions of every kernel, and kernels with a metric of their own."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from scipy.stats import ortho_group
from sklearn.base import clone

from infinitask import kernels
from infinitask.fitting._warm_start import alike
from infinitask.kernels import (
    RBF,
    Additive,
    CallableKernel,
    Chi2,
    InputKernel,
    Laplacian,
    Linear,
    Matern,
    Metric,
    Polynomial,
    Precomputed,
    Scaled,
    Warped,
)
from tests.support.arrays import as_like, to_host
from tests.support.each import each

RNG = np.random.default_rng(0)
X, Z = RNG.gamma(2.0, size=(9, 3)), RNG.gamma(2.0, size=(30, 3))  # not negative: all kernels accept them
A = RNG.normal(size=(30, 2))
ROOT = RNG.normal(size=(3, 2))
KERNELS = [
    RBF(0.3),
    Matern(0.5, 0.3),
    Matern(1.5, 0.3),
    Matern(2.5, 0.3),
    Laplacian(0.3),
    Chi2(0.3),
    Linear(),
    Polynomial(3, 0.2, 1.0),
    Polynomial(1, 0.2, 0.0),
    RBF(0.3) + Linear(),
    RBF(0.3) * Laplacian(0.2),
    (RBF(0.3) + Linear()) * Matern(0.5, 0.1),
    Scaled(Matern(1.5, 0.3), (2.0, 0.0, 0.5)),
    Metric(Matern(0.5, 0.3), ROOT),
    Metric(Laplacian(0.3), ROOT) + Linear(),
    Additive(RBF(0.3)),
    Warped(RBF(0.3)).resolve(Z),
    Warped(Metric(Matern(2.5, 0.3), ROOT)).resolve(Z),
]


def test_every_kernel_with_a_formula_is_here() -> None:
    def parts(kernel: InputKernel) -> set[str]:
        inner = [v for v in kernel.get_params(deep=True).values() if isinstance(v, InputKernel)]
        return {type(k).__name__ for k in (kernel, *inner)}

    known = {n for n in kernels.__all__ if isinstance(v := getattr(kernels, n), type) and issubclass(v, InputKernel)}
    assert set().union(*map(parts, KERNELS)) == known - {"InputKernel", "LearntMetric"} | {"Sum", "Product"}


@each("kernel", KERNELS, ids=repr)
def test_gradients_are_the_limits_of_differences(kernel: InputKernel) -> None:
    found = kernel.gradient(X, Z, A)
    assert found.shape == (2, 9, 3)
    step = 1e-6
    for k in range(3):
        shift = step * np.eye(3)[k]
        expected = (kernel(X + shift, Z) - kernel(X - shift, Z)) @ A / (2.0 * step)
        np.testing.assert_allclose(found[:, :, k], expected.T, rtol=1e-6, atol=1e-8)


@each("kernel", KERNELS, ids=repr)
def test_gradients_of_all_libraries_agree(kernel: InputKernel, xp: Any) -> None:
    like = xp.zeros(1, dtype=xp.float64)
    found = kernel.gradient(as_like(X, like), as_like(Z, like), as_like(A, like))
    assert type(found) is type(like)
    np.testing.assert_allclose(to_host(found), kernel.gradient(X, Z, A), rtol=1e-10, atol=1e-12)


@each("kernel", KERNELS, ids=repr)
def test_rows_do_not_know_of_each_other(kernel: InputKernel) -> None:
    whole = kernel.gradient(X, Z, A)
    for i in range(len(X)):
        np.testing.assert_allclose(kernel.gradient(X[i : i + 1], Z, A), whole[:, i : i + 1], rtol=1e-12, atol=1e-14)


@each("kernel", [RBF(0.3), Matern(0.5, 0.3), Laplacian(0.3), Matern(2.5, 0.3)], ids=repr)
def test_at_its_own_point_a_kernel_has_no_slope(kernel: InputKernel) -> None:
    np.testing.assert_array_equal(kernel.gradient(X[:1], X[:1], np.ones((1, 1))), 0.0)


def test_a_kernel_of_ranks_takes_the_mean_of_both_slopes_at_a_rank() -> None:
    values = np.array([[1.0], [2.0], [4.0]])
    kernel, one = Warped(Linear()).resolve(values), np.array([[4.0]])
    left, at, right, beyond = kernel.gradient(np.array([[1.5], [2.0], [3.0], [9.0]]), one, np.ones((1, 1)))[0, :, 0]
    assert left > right > 0.0 == beyond
    assert at == pytest.approx(0.5 * (left + right))


def test_the_slope_of_chi2_where_both_are_zero_is_that_to_the_right() -> None:
    zero, one, step = np.zeros((1, 1)), np.ones((1, 1)), 1e-7
    expected = (Chi2(0.3)(zero + step, zero) - Chi2(0.3)(zero, zero)) / step
    np.testing.assert_allclose(Chi2(0.3).gradient(zero, zero, one)[0], expected, rtol=1e-6)


@each("kernel", [CallableKernel(lambda X, Z: X @ Z.T), Precomputed()], ids=lambda k: type(k).__name__)
def test_a_kernel_without_a_gradient_says_so(kernel: InputKernel) -> None:
    with pytest.raises(TypeError, match=f"{type(kernel).__name__} has no gradient"):
        (RBF(0.3) + kernel).gradient(X, Z, A)


def test_coefficients_of_the_wrong_shape() -> None:
    with pytest.raises(ValueError, match=r"\(30, s\)"):
        RBF(0.3).gradient(X, Z, A[:, 0])
    with pytest.raises(ValueError, match=r"\(30, s\)"):
        RBF(0.3).gradient(X, Z, A[:4])


# --- a metric


@each("inner", [RBF(), Matern(0.5), Laplacian(), Linear()], ids=repr)
def test_a_metric_is_the_kernel_of_rotated_features(inner: InputKernel, xp: Any) -> None:
    kernel = Metric(inner, ROOT).resolve(Z)
    resolved = inner.resolve(Z @ ROOT)
    np.testing.assert_allclose(kernel(X, Z), resolved(X @ ROOT, Z @ ROOT), rtol=1e-13)
    np.testing.assert_allclose(kernel.diag(X), np.diagonal(kernel(X, X)), rtol=1e-13)
    assert kernel.stationary == inner.stationary
    like = xp.zeros(1, dtype=xp.float64)
    found = Metric(inner, ROOT).resolve(as_like(Z, like))(as_like(X, like), as_like(Z, like))
    np.testing.assert_allclose(to_host(found), kernel(X, Z), rtol=1e-11)


def test_a_diagonal_metric_is_a_scale_for_each_feature_and_a_rotation_changes_nothing() -> None:
    scales, Q = (2.0, 0.0, 0.5), ortho_group.rvs(3, random_state=0)
    scaled = Scaled(Matern(0.5, 0.3), scales)(X, Z)
    np.testing.assert_allclose(Metric(Matern(0.5, 0.3), np.diag(scales))(X, Z), scaled, rtol=1e-12)
    np.testing.assert_allclose(Metric(Matern(0.5, 0.3), np.diag(scales) @ Q)(X, Z), scaled, rtol=1e-12)


def test_frequencies_of_a_metric() -> None:
    kernel = Metric(RBF(gamma=0.3), ROOT)
    W = kernel.spectral(3, 40_000, np.random.default_rng(1))
    np.testing.assert_allclose(np.mean(np.cos((X[:1] - Z) @ W), axis=1), kernel(X[:1], Z)[0], atol=0.03)


def test_a_metric_is_copied_saved_compared_and_printed() -> None:
    kernel = Metric(RBF(gamma=0.3), ROOT)
    for again in (clone(kernel), pickle.loads(pickle.dumps(kernel))):
        assert alike(kernel, again)
        np.testing.assert_array_equal(again(X, Z), kernel(X, Z))
    assert not alike(kernel, Metric(RBF(gamma=0.3), ROOT + 1.0))
    assert repr(kernel) == "Metric(kernel=RBF(gamma=0.3), root=<3 × 2>)"


@each("root", [np.ones(3), np.ones((2, 2)), np.full((3, 2), np.nan), np.ones((3, 0)), "abc"])
def test_wrong_roots(root: Any) -> None:
    with pytest.raises(ValueError, match=r"\(3, p\) of finite numbers|root='abc'.*numbers"):
        Metric(RBF(gamma=1.0), root)(X, Z)
