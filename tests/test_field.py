"""A field is φ(x)ᵀ C ψ(θ) + b(θ), with the norm of the RKHS it lives in."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pytest

from infinitask import Field, field
from infinitask.features import PivotedCholesky, TaskMap, task_features
from infinitask.kernels import RBF, ConstantTask, Gaussian

INPUT, TASK = RBF(gamma=0.8), Gaussian(gamma=2.0)
X = np.random.default_rng(0).normal(size=(15, 2))
NODES = np.linspace(0.1, 0.9, 6)
NEW = np.random.default_rng(1).normal(size=(11, 2))
THETA = np.array([0.05, 0.33, 0.5, 0.97])

Floats = np.ndarray[Any, Any]


def build(bias: bool = True) -> Field:
    rng = np.random.default_rng(2)
    phi = PivotedCholesky().build(INPUT, X, 1e-12, rng).map
    psi = task_features(TASK, NODES, orders=(0, 1)).map
    coef = rng.normal(size=(phi.rank, psi.rank))
    if not bias:
        return Field(phi, psi, coef)
    psi_b = task_features(Gaussian(gamma=0.5), NODES).map
    return Field(phi, psi, coef, psi_b, rng.normal(size=psi_b.rank))


@pytest.mark.parametrize("order", [0, 1])
def test_value_is_the_formula(order: int) -> None:
    h = build()
    assert isinstance(h.bias_psi, TaskMap)
    assert h.bias_coef is not None
    expected = np.einsum("ia,ab,jb->ij", h.phi(NEW), h.coef, h.psi(THETA, order))
    expected = expected + h.bias_psi(THETA, order) @ h.bias_coef
    np.testing.assert_allclose(h(NEW, THETA, order), expected, atol=1e-12)


@pytest.mark.parametrize("bias", [True, False])
def test_derivative_is_the_finite_difference(bias: bool) -> None:
    h = build(bias)
    step = 1e-5
    difference = (h(NEW, THETA + step) - h(NEW, THETA - step)) / (2 * step)
    np.testing.assert_allclose(h(NEW, THETA, order=1), difference, rtol=1e-5, atol=1e-5)
    slope = (h.bias(THETA + step) - h.bias(THETA - step)) / (2 * step)
    np.testing.assert_allclose(h.bias(THETA, order=1), slope, rtol=1e-5, atol=1e-5)


def test_bias_is_what_all_inputs_share() -> None:
    h = build()
    without = replace(h, bias_psi=None, bias_coef=None)
    np.testing.assert_allclose(h(NEW, THETA) - without(NEW, THETA), np.tile(h.bias(THETA), (11, 1)), atol=1e-12)
    np.testing.assert_array_equal(without.bias(THETA), np.zeros(4))
    assert np.any(h.bias(THETA) != 0.0)


def test_field_is_linear_in_its_coefficients() -> None:
    a, b = build(False), build(False)
    b = replace(b, coef=b.coef[::-1])
    both = replace(a, coef=2.0 * a.coef - 3.0 * b.coef)
    np.testing.assert_allclose(both(NEW, THETA), 2.0 * a(NEW, THETA) - 3.0 * b(NEW, THETA), atol=1e-9)


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("bias", [True, False])
def test_paired_values_are_the_diagonal(order: int, bias: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    h = build(bias)
    theta = np.linspace(0.0, 1.0, 11)
    expected = np.diag(h(NEW, theta, order))
    for chunk in (1, 4, 11, 4096):
        monkeypatch.setattr(field, "CHUNK", chunk)
        np.testing.assert_allclose(h.paired(NEW, theta, order), expected, atol=1e-11)
    np.testing.assert_array_equal(h.paired(NEW, list(theta), order), h.paired(NEW, theta[:, None], order))


@pytest.mark.parametrize("count", [1, 4, 12])
def test_pairs_need_a_task_for_each_input(count: int) -> None:
    with pytest.raises(ValueError, match=r"for 11 inputs; .* an array of shape \(11,\)"):
        build().paired(NEW, np.full(count, 0.5))


def test_norm_is_the_norm_of_the_rkhs() -> None:
    # h = Σ_ij A_ij k_X(·, x_i) k_Θ(·, θ_j) has the squared norm tr(Aᵀ K_X A K_Θ), and C = Φᵀ A Ψ
    A = np.random.default_rng(3).normal(size=(15, 6))
    features = PivotedCholesky().build(INPUT, X, 1e-14, np.random.default_rng(0))
    psi = task_features(TASK, NODES, tolerance=1e-14)
    h = Field(features.map, psi.map, features.values.T @ A @ psi.values[0])
    squared = np.einsum("ij,ik,kl,jl->", A, INPUT(X, X), A, TASK(NODES[:, None], NODES[:, None]))
    assert h.norm == pytest.approx(np.sqrt(squared), rel=1e-6)
    sections = INPUT(NEW, X) @ A @ TASK(NODES[:, None], THETA[:, None])
    np.testing.assert_allclose(h(NEW, THETA), sections, atol=1e-5)
    # the reproducing property: |h(x)(θ)| ≤ ‖h‖ for kernels with k(x, x) = 1
    assert np.max(np.abs(h(NEW, THETA))) <= h.norm


def test_norm_is_that_of_the_part_without_bias() -> None:
    h = build()
    assert h.norm == replace(h, bias_psi=None, bias_coef=None).norm == pytest.approx(np.linalg.norm(h.coef))


def test_size_of_the_chunks_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    h = build()
    whole = h(NEW, THETA)
    for chunk in (1, 4, 11):
        monkeypatch.setattr(field, "CHUNK", chunk)
        np.testing.assert_allclose(h(NEW, THETA), whole, atol=1e-12)


def test_tasks_may_be_a_list_a_vector_or_a_column() -> None:
    h = build()
    expected = h(NEW, THETA)
    np.testing.assert_array_equal(h(NEW, list(THETA)), expected)
    np.testing.assert_array_equal(h(NEW, THETA[:, None]), expected)
    assert h(NEW, THETA[:1]).shape == (11, 1)


def test_no_input_gives_no_value() -> None:
    assert build()(NEW[:0], THETA).shape == (0, 4)
    assert build().paired(NEW[:0], THETA[:0]).shape == (0,)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_libraries_agree(xp: Any, dtype: str) -> None:
    # well conditioned, so that single precision is enough
    phi = PivotedCholesky(rank=4).build(INPUT, X, 1e-12, np.random.default_rng(0)).map
    psi = task_features(ConstantTask(), NODES).map
    h = Field(phi, psi, np.arange(4.0)[:, None], psi, np.ones(1))
    there = h(xp.asarray(NEW, dtype=getattr(xp, dtype)), THETA)
    assert isinstance(there, np.ndarray)
    tolerance = 1e-12 if dtype == "float64" else 1e-4
    np.testing.assert_allclose(there, h(NEW, THETA), atol=tolerance)
    theta = np.linspace(0.1, 0.9, len(NEW))
    pairs = h.paired(xp.asarray(NEW, dtype=getattr(xp, dtype)), theta)
    assert isinstance(pairs, np.ndarray)
    np.testing.assert_allclose(pairs, h.paired(NEW, theta), atol=tolerance)


def test_a_field_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        build().coef = np.zeros((1, 1))  # type: ignore[misc]
