"""Finitely many tasks whose similarity is a matrix: the kernels that it can stand for, and a closed form."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from infinitask import InfiniteTaskEstimator
from infinitask.datasets import make_sine
from infinitask.kernels import ConstantTask, Diagonal, Gaussian, TaskKernel, TaskMatrix
from infinitask.losses import Squared
from infinitask.measures import Discrete
from tests.support.arrays import to_host
from tests.support.each import each

LEVELS = np.array([0.1, 0.35, 0.9])


def similarity(T: int = 3, seed: int = 0) -> np.ndarray:
    """A matrix with entries of both signs, far from diagonal."""
    B = np.random.default_rng(seed).normal(size=(T, T))
    return B @ B.T / T


def gram(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    return np.exp(-2.0 * (X - Z.T) ** 2)


def closed_form(A: np.ndarray, X: np.ndarray, Y: np.ndarray, w: np.ndarray, alpha: float) -> np.ndarray:
    """β with h(x)(t) = k(x, X) β A_t for the squared loss: (K ⊗ A + λ diag(n/w)) vec β = vec Y."""
    n, T = Y.shape
    ridge = alpha * n / np.tile(w, n)
    return np.linalg.solve(np.kron(gram(X, X), A) + np.diag(ridge), Y.ravel()).reshape(n, T)


# ------------------------------------------------------------------------------------------------- the kernel
def test_entries_are_picked_by_name() -> None:
    A = similarity(4)
    assert np.array_equal(TaskMatrix(A)(np.arange(4), np.arange(4)), A)
    named = TaskMatrix(A, tasks=[7.0, -1.0, 0.1 + 0.2, 1e9])
    order = [2, 0, 3, 3, 1]
    assert np.array_equal(named(np.array([0.3, 7.0, 1e9, 1e9, -1.0]), np.array([7.0, 0.3])), A[np.ix_(order, [0, 2])])


def test_backends_and_precisions_agree(xp: Any) -> None:
    A = similarity()
    S = xp.asarray(LEVELS[[2, 0, 2, 1]])
    result = TaskMatrix(A.tolist(), tasks=LEVELS.tolist())(S, xp.asarray(LEVELS))
    assert type(result) is type(S)
    np.testing.assert_allclose(to_host(result), A[[2, 0, 2, 1]], rtol=1e-15)
    single = xp.astype(S, xp.float32)
    rough = TaskMatrix(A, tasks=LEVELS)(single, single)
    assert rough.dtype == xp.float32
    np.testing.assert_allclose(to_host(rough), A[np.ix_([2, 0, 2, 1], [2, 0, 2, 1])], rtol=1e-6)


def test_resolving_and_pickling_change_nothing() -> None:
    kernel = TaskMatrix(similarity(), tasks=LEVELS)
    expected = kernel(LEVELS, LEVELS)
    for other in (kernel.resolve(LEVELS), pickle.loads(pickle.dumps(kernel))):
        assert other is not kernel
        assert np.array_equal(other(LEVELS, LEVELS), expected)


@each(
    ("matrix", "tasks", "sentence"),
    [
        ([[1.0, 2.0], [2.0, 1.0]], None, "eigenvalue -1; a kernel must be positive"),
        ([[1.0, 0.5], [0.4, 1.0]], None, "differs from its transpose by 0.1"),
        ([[1.0, 0.5]], None, r"shape \(1, 2\); it must be square"),
        ([], None, "must be two-dimensional and not empty"),
        ([[np.nan]], None, "NaN"),
        ([[1.0], [1.0, 2.0]], None, "array of numbers"),
        ("similar", None, "array of numbers"),
        (np.eye(2), [0.0], "one number for each row"),
        (np.eye(2), [1.0, 1.0], "no number twice"),
        (np.eye(2), ["a", "b"], "tasks=.*array of numbers"),
    ],
    ids=str,
)
def test_a_matrix_that_is_no_kernel(matrix: Any, tasks: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=f"TaskMatrix.*{sentence}"):
        TaskMatrix(matrix, tasks).resolve(np.zeros(1))
    X, y = make_sine(20, random_state=0)
    with pytest.raises(ValueError, match=sentence):
        InfiniteTaskEstimator(Squared(), measure=Discrete([0, 1]), task_kernel=TaskMatrix(matrix, tasks)).fit(X, y)


def test_tasks_that_are_not_in_the_list() -> None:
    kernel = TaskMatrix(similarity())
    for wrong in (3.0, -1.0, 0.5, np.nan):
        with pytest.raises(ValueError, match=rf"asked for the task {wrong:g}, .*\(0, 1, 2\)"):
            kernel(np.array([0.0, wrong]), np.arange(3))
    with pytest.raises(ValueError, match="2 coordinates"):
        kernel(np.zeros((1, 2)), np.zeros((1, 2)))
    X, y = make_sine(20, random_state=0)
    model = InfiniteTaskEstimator(Squared(), measure=Discrete([0, 1, 2]), task_kernel=kernel).fit(X, y)
    with pytest.raises(ValueError, match=r"asked for the task 0\.5"):
        model.predict(X, 0.5)
    with pytest.raises(ValueError, match=r"asked for the task 0\.1"):
        InfiniteTaskEstimator(Squared(), measure=Discrete(LEVELS), task_kernel=kernel).fit(X, y)
    with pytest.raises(ValueError, match="TaskMatrix has no derivative"):
        model.set_params(noncrossing=1.0).fit(X, y)


# -------------------------------------------------------------------------------------- what it can stand for
@each(
    ("kernel", "bias"),
    [(ConstantTask(), "task"), (Diagonal(), "task"), (Diagonal(), None), (Gaussian(gamma=3.0), "task")],
    ids=repr,
)
def test_a_kernel_and_its_matrix_pose_the_same_problem(kernel: TaskKernel, bias: str | None) -> None:
    X, y = make_sine(40, random_state=0)
    matrix = TaskMatrix(kernel(LEVELS, LEVELS), tasks=LEVELS)
    one, other = (
        InfiniteTaskEstimator("pinball", measure=Discrete(LEVELS), task_kernel=k, bias_kernel=bias, tol=1e-7).fit(X, y)
        for k in (kernel, matrix)
    )
    assert other.objective_ == pytest.approx(one.objective_, rel=1e-7)
    np.testing.assert_allclose(other.predict(X, LEVELS), one.predict(X, LEVELS), atol=1e-6)


@each("rank", [1, 3])
def test_the_squared_loss_has_a_closed_form(rank: int) -> None:
    rng = np.random.default_rng(0)
    X, y = make_sine(30, random_state=0)
    # rank 1 is positive semi-definite only, as a matrix of similarities of few kinds is
    A = similarity() if rank == 3 else np.outer([1.0, -0.5, 2.0], [1.0, -0.5, 2.0])
    Y = np.column_stack([y, -y, rng.normal(size=30)])
    w = np.array([0.2, 0.3, 0.5])
    model = InfiniteTaskEstimator(
        Squared(),
        gamma=2.0,
        alpha=1e-2,
        measure=Discrete([0, 1, 2], weights=w),
        task_kernel=TaskMatrix(A),
        bias_kernel=None,
        tol=1e-9,
    ).fit(X, Y)
    new = np.linspace(0.0, 3.0, 20)[:, None]
    beta = closed_form(A, X, Y, w, 1e-2)
    np.testing.assert_allclose(model.predict(new, [0, 1, 2]), gram(new, X) @ beta @ A, atol=1e-6)
    H = gram(X, X) @ beta @ A
    expected = 0.5 * np.mean((Y - H) ** 2, axis=0) @ w + 0.5 * 1e-2 * np.sum(beta * H)
    assert model.objective_ == pytest.approx(expected, rel=1e-8)


@each("measure", [Discrete([0, 1, 2], weights=[0.4, 0.0, 0.6]), Discrete([0, 2], weights=[0.4, 0.6])], ids=repr)
def test_a_task_without_data_is_answered_through_the_others(measure: Discrete) -> None:
    X, y = make_sine(30, random_state=0)
    A = similarity(seed=2)
    model = InfiniteTaskEstimator(
        Squared(), gamma=2.0, alpha=1e-2, measure=measure, task_kernel=TaskMatrix(A), bias_kernel=None, tol=1e-9
    ).fit(X, y)
    seen = [0, 2]
    beta = closed_form(A[np.ix_(seen, seen)], X, np.column_stack([y, y]), np.array([0.4, 0.6]), 1e-2)
    expected = gram(X, X) @ beta @ A[seen]
    np.testing.assert_allclose(model.predict(X, [0, 1, 2]), expected, atol=1e-6)
    assert np.abs(expected[:, 1]).max() > 0.1
