"""A field is φ(x)ᵀ C ψ(θ) + b(θ), with the norm of the RKHS it lives in."""

from __future__ import annotations

import pickle
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from copy import copy, deepcopy
from dataclasses import FrozenInstanceError, replace
from typing import Any, ClassVar

import numpy as np
import pytest

from infinitask import Field, InfiniteQuantileRegressor, field
from infinitask.features import KernelMap, PivotedCholesky, TaskMap, task_features
from infinitask.features._maps import CombinedMap
from infinitask.kernels import RBF, CallableKernel, ConstantTask, Gaussian
from tests.support.limits import use_threads

INPUT, TASK = RBF(gamma=0.8), Gaussian(gamma=2.0)
X = np.random.default_rng(0).normal(size=(15, 2))
NODES = np.linspace(0.1, 0.9, 6)
NEW = np.random.default_rng(1).normal(size=(11, 2))
THETA = np.array([0.05, 0.33, 0.5, 0.97])

Floats = np.ndarray[Any, Any]


def entries_per_thread(patch: pytest.MonkeyPatch, entries: int) -> None:
    """Few rows at a time, so that there are several chunks."""
    patch.setattr(field, "IN_MEMORY", entries)


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
        entries_per_thread(monkeypatch, chunk * 15)
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
        entries_per_thread(monkeypatch, chunk * 15)
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


# ------------------------------------------------------------------------------------------------ fast predictions
@pytest.mark.parametrize("q", [1, 2, 200])
@pytest.mark.parametrize("order", [0, 1])
def test_both_orders_of_multiplication_give_the_formula(q: int, order: int) -> None:
    h = build()
    theta = np.linspace(0.0, 1.0, q)
    expected = h.phi(NEW) @ (h.coef @ h.psi(theta, order).T) + h.bias(theta, order)
    assert (h._section(theta[:, None], order).map.rank, h.left.rank) == (q, h.psi.rank)
    direct = not isinstance(h._section(theta[:, None], order).map, CombinedMap)
    assert direct == (q < 200)
    np.testing.assert_allclose(h(NEW, theta, order), expected, atol=1e-11)


@pytest.mark.parametrize("tolerance", [1e-12, 1e-14])
@pytest.mark.parametrize("gamma", [1.0, 10.0, 100.0])
def test_folding_an_ill_conditioned_transform_loses_nothing(gamma: float, tolerance: float) -> None:
    rng = np.random.default_rng(0)
    rows = np.sort(rng.uniform(0.0, 1.5, size=(300, 1)), axis=0)
    features = PivotedCholesky().build(RBF(gamma=gamma), rows, tolerance, rng)
    psi = task_features(TASK, NODES).map
    h = Field(features.map, psi, rng.normal(size=(features.rank, psi.rank)))
    T = np.asarray(features.map.transform)
    assert np.max(np.abs(T)) > 1e4  # numbers that cancel in φ
    new = rng.uniform(-0.1, 1.6, size=(50, 1))
    k, right = features.map.kernel(new, features.map.landmarks), h.coef @ psi(THETA).T
    folded = right.astype(np.longdouble)  # becomes L⁻ᵀ right
    lower = features.map.transform.lower
    for i in reversed(range(features.rank)):
        folded[i] = (folded[i] - lower[i + 1 :, i].astype(np.longdouble) @ folded[i + 1 :]) / lower[i, i]
    exact = k.astype(np.longdouble) @ folded
    before, now = (float(np.max(np.abs(values - exact))) for values in ((k @ T) @ right, h(new, THETA)))
    assert now <= 5.0 * before + 1e-14
    np.testing.assert_allclose(h(rows, THETA), features.values @ right, atol=1e-7)


def test_fitted_values_are_those_of_the_training_features() -> None:
    rng = np.random.default_rng(0)
    rows = rng.uniform(0.0, 1.5, size=(200, 1))
    y = np.sin(6.0 * rows[:, 0]) + 0.3 * rng.normal(size=200)
    model = InfiniteQuantileRegressor(alpha=1e-6, gamma=10.0).fit(rows, y)
    h = model.field_
    assert np.max(np.abs(np.asarray(h.phi.transform))) > 1e4
    trained = h.phi(rows) @ h.coef @ h.psi(THETA).T + h.bias(THETA)
    np.testing.assert_allclose(model.predict(rows, THETA), trained, atol=1e-9)


class Counted(Gaussian):
    """A kernel that knows how often it was asked."""

    asked: ClassVar[list[int]] = []

    def _gram(self, S: Any, T: Any, orders: tuple[int, int]) -> Any:
        self.asked.append(len(S))
        return super()._gram(S, T, orders)


@pytest.fixture
def counted() -> Field:
    psi = task_features(Counted(gamma=2.0), NODES).map
    h = replace(build(False), psi=psi)
    h = replace(h, coef=h.coef[:, : psi.rank])
    Counted.asked.clear()
    return h


def test_the_same_tasks_are_not_computed_again(counted: Field) -> None:
    first = counted(NEW, THETA)
    assert Counted.asked == [4]
    for again in (THETA, THETA.copy(), list(THETA), THETA[:, None]):  # the values count, not the object
        np.testing.assert_array_equal(counted(NEW, again), first)
    assert Counted.asked == [4]
    counted(NEW, THETA, order=1)
    assert Counted.asked == [4, 4]


def test_tasks_that_changed_in_place_are_new_tasks(counted: Field) -> None:
    theta = THETA.copy()
    before = counted(NEW, theta)
    theta[0] = 0.9
    after = counted(NEW, theta)
    assert np.all(before[:, 0] != after[:, 0])
    np.testing.assert_array_equal(after[:, 1:], before[:, 1:])


def test_a_field_keeps_little(counted: Field, monkeypatch: pytest.MonkeyPatch) -> None:
    for shift in range(20):
        counted(NEW, THETA + shift)
    assert len(vars(counted)["_kept"]) == field.KEPT_SECTIONS
    counted(NEW, THETA + 19)
    assert len(Counted.asked) == 20
    counted(NEW, THETA)
    assert len(Counted.asked) == 21
    monkeypatch.setattr(field, "LONGEST_KEPT", 3)
    for _ in range(2):  # a list of tasks that is too long to be kept
        counted(NEW, THETA + 50)
    assert len(Counted.asked) == 23


def test_a_pickle_and_a_copy_carry_no_sections() -> None:
    h = build()
    small = len(pickle.dumps(h))
    expected = h(NEW, np.linspace(0.0, 1.0, 500))
    assert {"left", "_kept"} <= set(vars(h))
    for twin in (pickle.loads(pickle.dumps(h)), copy(h), deepcopy(h), replace(h)):
        assert "_kept" not in vars(twin)
        np.testing.assert_array_equal(twin(NEW, np.linspace(0.0, 1.0, 500)), expected)
    assert len(pickle.dumps(h)) == small


@pytest.mark.parametrize("workers", [1, 3])
def test_the_number_of_threads_does_not_matter(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    h = build()
    many = np.random.default_rng(3).normal(size=(500, 2))
    expected, pairs = h(many, THETA), h.paired(many, np.linspace(0.0, 1.0, 500))
    with ThreadPoolExecutor(workers) as pool:
        use_threads(monkeypatch, pool)
        entries_per_thread(monkeypatch, 7 * 15)
        np.testing.assert_allclose(h(many, THETA), expected, rtol=0.0, atol=1e-12)
        np.testing.assert_allclose(h.paired(many, np.linspace(0.0, 1.0, 500)), pairs, rtol=0.0, atol=1e-12)


def test_several_threads_may_ask_at_once() -> None:
    h = build()
    tasks = [THETA + 0.01 * i for i in range(2 * field.KEPT_SECTIONS)]
    expected = [h(NEW, theta) for theta in tasks]
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda i: h(NEW, tasks[i % len(tasks)]), range(400)))
    for i, values in enumerate(found):
        np.testing.assert_array_equal(values, expected[i % len(tasks)])


def test_what_goes_wrong_in_a_thread_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def kernel(left: Floats, right: Floats) -> Floats:
        if np.any(left > 100.0):
            raise ValueError("too far away")
        return left @ right.T

    h = Field(KernelMap(CallableKernel(kernel), X, np.eye(15)), build().psi, np.ones((15, build().psi.rank)))
    entries_per_thread(monkeypatch, 15)
    far = np.concatenate([NEW, [[1e3, 1e3]]])
    with pytest.raises(ValueError, match="too far away"):
        h(far, THETA)


def test_memory_is_that_of_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    entries_per_thread(monkeypatch, 2**14)
    h, n, theta = build(), 20_000, np.linspace(0.0, 1.0, 50)
    many = np.random.default_rng(3).normal(size=(n, 2))
    h(many[:10], theta)
    tracemalloc.start()
    try:
        values = h(many, theta)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # each of at most 4 threads holds a few arrays of 2**14 numbers
    assert values.nbytes == 8 * n * 50
    assert peak - values.nbytes < 2e6 < 0.3 * values.nbytes
