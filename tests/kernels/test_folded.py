"""x ↦ k(x, Z) A from fewer numbers than k(x, Z)."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from infinitask.kernels import RBF, Additive, InputKernel, Laplacian, Linear, Matern, Ranks, Scaled, Sum, Warped
from infinitask.kernels._towards import NODES, Folded, Towards, _chebyshev, _weights
from tests.support.each import each

RNG = np.random.default_rng(0)
D = 5
Z = RNG.normal(size=(600, D))
Z[:, 3] = Z[:, 3] > 0.5  # two values
Z[:, 4] = 1.5  # one value
A = RNG.normal(size=(len(Z), 4))
INSIDE = np.clip(RNG.normal(size=(40, D)), -2.0, 2.0)
BEYOND = INSIDE + 30.0 * (np.arange(40) % 4 == 0)[:, None]
SCALES = (1.0, 0.3, 0.0, 2.0, 1.0)
RANKS = Ranks.of(Z)
SHORT: list[InputKernel] = [
    Linear(),
    Scaled(Linear(), SCALES) + Linear(),
    Additive(RBF(gamma=0.03)),
    Additive(RBF(gamma=8.0)),
    Scaled(Additive(RBF()).resolve(Z * SCALES), SCALES),
    Warped(Additive(RBF(gamma=0.5)), RANKS),
    Additive(RBF(gamma=0.5)) + Additive(RBF(gamma=2.0)) + Linear(),
]
LONG: list[InputKernel] = [
    RBF(gamma=0.3),
    Additive(Laplacian(gamma=1.0)),
    Additive(Matern(gamma=1.0)),
    Additive(RBF(gamma=1e5)),
    Linear() * Linear(),
]


@each("X", [INSIDE[:1], INSIDE, BEYOND[:1], BEYOND[:3], BEYOND], ids=lambda X: str(X[0, 0] > 5))
@each("kernel", [*SHORT, *LONG, reduce(Sum, SHORT + LONG)], ids=lambda kernel: type(kernel).__name__)
def test_the_folded_kernel_is_the_product(kernel: InputKernel, X: Any) -> None:
    gram = kernel(X, Z)
    folded = Folded(Towards(kernel, Z), A)
    # what rounding can do to a product
    slack = 1e-14 * np.max(np.abs(gram) @ np.abs(A))
    np.testing.assert_allclose(folded(X), gram @ A, rtol=0.0, atol=slack)
    R = np.array([[1.0, 0.0], [-1.0, 2.0], [0.5, 0.5], [0.0, 3.0]])
    np.testing.assert_allclose(folded.times(R)(X), gram @ A @ R, rtol=0.0, atol=10.0 * slack)


@each("kernel", SHORT, ids=lambda kernel: type(kernel).__name__)
def test_no_landmark_is_looked_at(kernel: InputKernel) -> None:
    assert Folded(Towards(kernel, Z), A).width < len(Z)


@each("kernel", LONG, ids=repr)
def test_kinks_and_narrow_kernels_are_not_interpolated(kernel: InputKernel) -> None:
    assert Folded(Towards(kernel, Z), A).width == len(Z)


def test_an_interpolation_passes_through_its_points() -> None:
    folded = Folded(Towards(Additive(RBF(gamma=0.5)), Z), A)
    points = folded.interpolated[0].points
    X = np.tile(Z[:1], (points.shape[1], 1))
    X[:, :3] = points[:3].T
    inside = np.clip(X, Z.min(axis=0), Z.max(axis=0))
    np.testing.assert_allclose(folded(inside), Additive(RBF(gamma=0.5))(inside, Z) @ A, rtol=0.0, atol=1e-11)


@each("count", list(NODES))
def test_a_gaussian_is_interpolated_to_the_last_digits(count: int) -> None:
    points, signs = _chebyshev(count)
    t, z = np.linspace(-1.0, 1.0, 4 * count + 1)[1:-1], np.linspace(-1.0, 1.0, 33)

    def gaussian(at: Any) -> Any:
        return np.exp(-(((at[:, None] - z) * (0.5 * NODES[count])) ** 2))

    error = np.max(np.abs(_weights(t[:, None] - points, signs) @ gaussian(points) - gaussian(t)))
    assert error <= 3e-15
