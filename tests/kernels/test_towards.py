"""k(x, Z) for rows Z that stay: the same numbers as the kernel, from less work."""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

import numpy as np
import pytest

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
    Product,
    Ranks,
    Scaled,
    Sum,
    Warped,
)
from infinitask.kernels._composed import _piecewise_linear
from infinitask.kernels._towards import Towards
from tests.support.each import each
from tests.support.names import case_name

RNG = np.random.default_rng(0)
D = 6
Z = RNG.normal(size=(90, D))
Z[:, 3] = Z[:, 3] > 0.5  # two values
Z[:, 4] = 1.5  # one value
X = np.concatenate([RNG.normal(size=(150, D)), Z[:10], 30.0 * RNG.normal(size=(5, D))])
SCALES, OTHERS = (1.0, 0.3, 0.0, 2.0, 1.0, 0.5), (0.2, 1.0, 1.0, 0.1, 3.0, 1.0)
ROOT = RNG.normal(size=(D, D)) / D
RANKS = Ranks.of(Z)
WARPED = Warped(Scaled(Matern(gamma=0.4, nu=1.5), SCALES), RANKS)
ADDITIVE = Scaled(Additive(RBF()).resolve(Z * SCALES), SCALES)
PARTS = [
    Scaled(RBF(gamma=0.2), SCALES),
    WARPED,
    ADDITIVE,
    Scaled(Laplacian(gamma=0.1), SCALES),
    Warped(Additive(Laplacian(gamma=0.7)), RANKS),
]
KERNELS: list[InputKernel] = [
    RBF(gamma=0.3),
    Matern(gamma=0.3, nu=0.5),
    Matern(gamma=0.3, nu=1.5),
    Matern(gamma=0.3, nu=2.5),
    Laplacian(gamma=0.3),
    Linear(),
    Polynomial(degree=2),
    CallableKernel(lambda A, B: A @ B.T),
    *PARTS,
    Metric(RBF(gamma=0.2), ROOT) + Metric(Matern(gamma=0.2, nu=0.5), ROOT) + Metric(Laplacian(gamma=0.2), ROOT[:, :2]),
    Warped(Metric(RBF(gamma=0.2), ROOT), RANKS),
    Additive(RBF(gamma=0.5)),
    Additive(Matern(gamma=0.5, nu=2.5)),
    Additive(Linear()),
    Additive(RBF(gamma=0.5), parts=(RBF(gamma=0.5), *[Laplacian(gamma=0.5)] * (D - 1))),
    reduce(Sum, PARTS),
    Scaled(RBF(gamma=0.2), SCALES) + Scaled(RBF(gamma=3.0), SCALES) + Scaled(Matern(gamma=0.2), SCALES) + Linear(),
    Scaled(Additive(RBF(gamma=0.1)) + Additive(Matern(gamma=2.0)) + Laplacian(gamma=0.2), OTHERS),
    Scaled(Laplacian(gamma=0.2), SCALES) + Scaled(Laplacian(gamma=2.0), SCALES),
    Product(Scaled(RBF(gamma=0.2), SCALES) + Linear(), WARPED) + Scaled(Linear(), OTHERS),
    Warped(Scaled(Linear() + RBF(gamma=0.1), SCALES), RANKS),
]


@each("rows", [1, 3, 20, len(X)])
@each("kernel", KERNELS, ids=lambda kernel: case_name(kernel)[:60])
def test_towards_is_the_kernel(kernel: InputKernel, rows: int) -> None:
    towards, some = Towards(kernel, Z), X[-rows:]
    assert towards.takes(some)
    expected = kernel(some, Z)
    np.testing.assert_allclose(towards(some), expected, rtol=0.0, atol=1e-13 * np.max(np.abs(expected)))


def test_every_answer_is_an_array_of_its_own() -> None:
    kept = np.ones((1, len(Z)))
    towards = Towards(CallableKernel(lambda A, B: kept) + Linear(), Z)
    first = towards(X[:1])
    np.testing.assert_array_equal(kept, 1.0)
    np.testing.assert_array_equal(towards(X[:1]), first)


def test_equal_rows_are_at_distance_zero() -> None:
    for kernel in (Scaled(Matern(gamma=5.0, nu=0.5), SCALES), Additive(Matern(gamma=5.0, nu=0.5))):
        towards = Towards(kernel, Z)
        assert all(towards(Z[i : i + 1])[0, i] == pytest.approx(1.0, abs=1e-15) for i in range(20))


@each("kernel", [RBF(gamma=1.0), Matern(gamma=1.0), Additive(Laplacian(gamma=1.0))], ids=case_name)
def test_what_could_overflow_is_left_to_the_kernel(kernel: InputKernel) -> None:
    towards = Towards(kernel, Z)
    for bad in (X * 1e200, X + math.nan, X[:, :2], X[0], X.astype(np.float32), X[:0], X.tolist()):
        assert not towards.takes(bad)
    assert not Towards(kernel, Z * 1e200).takes(X)
    assert not Towards(kernel, Z * 1e-200).takes(X)
    assert np.all(np.isfinite(Towards(kernel, Z)(X / np.max(np.abs(X)) * 1e30)))


def test_a_class_of_a_user_is_called_as_it_is() -> None:
    class Shifted(Scaled):
        def __call__(self, A: Any, B: Any) -> Any:
            return super().__call__(A, B) + 1.0

    class Wider(RBF):
        def __call__(self, A: Any, B: Any) -> Any:
            return super().__call__(A, B) ** 0.5

    for kernel in (Shifted(RBF(gamma=1.0), SCALES), Wider(gamma=1.0), Wider(gamma=1.0) + Linear()):
        np.testing.assert_allclose(Towards(kernel, Z)(X), kernel(X, Z), rtol=1e-12, atol=1e-13)


def test_chi2_still_refuses_negative_entries() -> None:
    with pytest.raises(ValueError, match="negative"):
        Towards(Chi2(gamma=1.0) + Linear(), np.abs(Z))(X)


# -------------------------------------------------------------------------------------------------------------- ranks
@each("rows", [1, 5, len(X)])
def test_scores_are_those_of_each_feature(rows: int) -> None:
    some = np.concatenate([X[-rows:], Z[:2], Z[:1] - 100.0, Z[:1] + 100.0])
    expected = np.stack([_piecewise_linear(some[:, j], *known) for j, known in enumerate(RANKS.columns)], axis=1)
    np.testing.assert_allclose(RANKS(some), expected, rtol=0.0, atol=1e-14)
    np.testing.assert_allclose(np.concatenate([RANKS(row[None, :]) for row in some]), expected, rtol=0.0, atol=1e-14)


# -------------------------------------------------------------------------------------------------- sums over inputs
@each("inner", [RBF(gamma=0.5), Matern(gamma=0.5, nu=2.5), Laplacian(gamma=0.5)], ids=case_name)
@each("size", [1.0, 1e150, 1e-150])
def test_a_sum_over_features_is_that_of_its_parts(inner: InputKernel, size: float) -> None:
    expected = np.mean([inner(size * X[:, [j]], size * Z[:, [j]]) for j in range(D)], axis=0)
    np.testing.assert_allclose(Additive(inner)(size * X, size * Z), expected, rtol=0.0, atol=1e-14)
    gram = Additive(inner)(Z, Z)
    np.testing.assert_array_equal(np.diagonal(gram), 1.0)
    np.testing.assert_allclose(gram, gram.T, rtol=0.0, atol=1e-15)
