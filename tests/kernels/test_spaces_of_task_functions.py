"""What holds in the space of a task kernel where the paper's supplement claims more: coercivity, and derivatives.

The lemma of coercivity: I(h) = Σ_j ‖h(θ_j)‖² ≥ γ‖h‖² on the span of the nodes. The proof takes γ = min_j k(θ_j, θ_j);
the largest γ that is valid is the smallest positive eigenvalue of the Gram matrix of the nodes. The proof of the
representer theorem for derivatives says that ∂f is in the space of f. What it needs, and what holds, is that f ↦ ∂f(θ)
is a continuous functional.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.linalg import eigh

from infinitask.features import task_features
from infinitask.kernels import RBF, ConstantTask, Gaussian, MaternTask, PolynomialTask, TaskKernel, TaskMatrix
from infinitask.measures import Quadrature
from infinitask.penalties import IntegratedRidge
from tests.support.each import each

NODES = np.linspace(0.1, 0.9, 5)

KERNELS = [
    Gaussian(gamma=5.0),
    Gaussian(gamma=500.0),
    MaternTask(1.5, gamma=1.0),
    MaternTask(2.5, gamma=5.0),
    PolynomialTask(degree=2),  # of rank 3: singular on five nodes
    ConstantTask(),
    TaskMatrix(np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 2.0]])),
]


def nodes_of(kernel: TaskKernel) -> np.ndarray:
    return np.arange(3.0) if isinstance(kernel, TaskMatrix) else NODES


def smallest_positive(sizes: np.ndarray) -> float:
    return float(np.min(sizes[sizes > 1e-8 * np.max(sizes)]))


def energies(A: np.ndarray, K: np.ndarray, G: np.ndarray) -> tuple[float, float]:
    """I(h) and ‖h‖² of h = Σ_ij a_ij k_X(·, x_i) k_Θ(·, θ_j)."""
    norms = G @ A.T @ K @ A
    return float(np.trace(norms @ G)), float(np.trace(norms))


@each("kernel", KERNELS[:4], ids=str)
def test_what_vanishes_at_the_nodes_is_orthogonal_to_their_span(kernel: TaskKernel) -> None:
    between = 0.5 * (NODES[1:] + NODES[:-1])
    psi = task_features(kernel, np.concatenate([NODES, between]), tolerance=1e-14).values[0]
    rng, at_nodes = np.random.default_rng(0), psi[: len(NODES)]
    in_span = rng.normal(size=(3, len(NODES))) @ at_nodes
    g = rng.normal(size=(3, psi.shape[1]))
    g -= np.linalg.lstsq(at_nodes, at_nodes @ g.T, rcond=None)[0].T
    assert np.max(np.abs(at_nodes @ g.T)) < 1e-9
    assert np.max(np.abs(psi[len(NODES) :] @ g.T)) > 1e-3, "it is another function"
    np.testing.assert_allclose(np.linalg.norm(in_span + g) ** 2, np.linalg.norm(in_span) ** 2 + np.linalg.norm(g) ** 2)


@each("kernel", KERNELS, ids=str)
def test_the_constant_of_coercivity_is_the_smallest_positive_eigenvalue(kernel: TaskKernel) -> None:
    nodes = nodes_of(kernel)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4, 2))
    K, G = RBF(gamma=0.5)(X, X), kernel(nodes, nodes)
    sizes, axes = np.linalg.eigh(G)
    constant = smallest_positive(sizes)
    for _ in range(50):
        energy, norm = energies(rng.normal(size=(4, len(nodes))), K, G)
        assert energy >= constant * norm * (1.0 - 1e-9)
    worst = axes[:, np.flatnonzero(np.isclose(sizes, constant))[0]]
    energy, norm = energies(np.outer(rng.normal(size=4), worst), K, G)
    assert energy == pytest.approx(constant * norm, rel=1e-6)  # no larger constant is valid


@each("kernel", KERNELS, ids=str)
def test_the_integrated_ridge_has_this_constant(kernel: TaskKernel) -> None:
    nodes = nodes_of(kernel)
    rule = Quadrature(nodes[:, None], np.full(len(nodes), 1.0 / len(nodes)))
    psi = task_features(kernel, nodes)
    found = np.linalg.eigvalsh(IntegratedRidge().matrix(psi, rule)) * len(nodes)
    assert smallest_positive(found) == pytest.approx(smallest_positive(np.linalg.eigvalsh(kernel(nodes, nodes))))


def test_the_printed_constant_is_not_valid() -> None:
    G = Gaussian(gamma=5.0)(NODES[1:4], NODES[1:4])
    sizes, axes = np.linalg.eigh(G)
    printed = np.min(np.diag(G))
    assert printed == 1.0
    assert 0.0 < sizes[0] < 0.06
    energy, norm = energies(axes[:, :1].T, np.ones((1, 1)), G)  # functions of θ alone: one row, k_X = 1
    assert energy / norm == pytest.approx(sizes[0])
    # a single node of the span is enough for the claim within the proof: h(θ_j) is nearly 0 at each of them
    assert np.max(np.square(G @ axes[:, 0])) < 0.06 * norm < printed * norm


def test_the_nodes_make_the_constant_as_small_as_one_likes() -> None:
    constants = []
    for distance in (0.4, 0.2, 0.1, 0.05):
        pair = np.array([0.5, 0.5 + distance])
        constants.append(np.linalg.eigvalsh(Gaussian(gamma=5.0)(pair, pair))[0])
        assert constants[-1] == pytest.approx(1.0 - np.exp(-5.0 * distance**2))
    assert constants[-1] < 0.02


def test_the_derivative_of_a_function_may_leave_its_space() -> None:
    """k(s, t) = s²t² is smooth. Its functions are multiples of θ², and 2θ is none of them."""
    kernel, grid = PolynomialTask(degree=2, coef0=0.0), np.linspace(0.1, 1.0, 10)
    values, slopes = kernel(grid, [1.0])[:, 0], kernel(grid, [1.0], orders=(1, 0))[:, 0]
    np.testing.assert_allclose(values, grid**2)
    np.testing.assert_allclose(slopes, 2.0 * grid)
    G = kernel(grid, grid)
    for wanted, inside in ((values, True), (slopes, False)):
        closest = G @ np.linalg.lstsq(G, wanted, rcond=1e-12)[0]
        assert (np.max(np.abs(closest - wanted)) < 1e-10) == inside


@each(("kernel", "sizes"), [(Gaussian(gamma=40.0), (4, 8, 12)), (MaternTask(1.5, gamma=1.0), (10, 40, 160))], ids=str)
def test_differentiation_is_not_bounded(kernel: TaskKernel, sizes: Any) -> None:
    """For f = Σ_j c_j k(·, θ_j) of a stationary kernel ∂f = −Σ_j c_j ∂₂k(·, θ_j), so ‖∂f‖² = cᵀ ∂₁∂₂K c.

    If ∂f were in the space for all f, ‖∂f‖ ≤ C‖f‖ would hold for some C by the closed graph theorem.
    """
    largest = []
    for m in sizes:
        nodes = np.linspace(0.0, 1.0, m)
        slopes, values = kernel(nodes, nodes, orders=(1, 1)), kernel(nodes, nodes)
        largest.append(float(eigh(slopes, values, eigvals_only=True)[-1]))
    assert largest[1] > 1.5 * largest[0]
    assert largest[2] > 1.5 * largest[1]


@each("kernel", [*KERNELS[:5], PolynomialTask(degree=2, coef0=0.0)], ids=str)
def test_the_derivative_at_a_point_is_a_continuous_functional(kernel: TaskKernel) -> None:
    rng = np.random.default_rng(1)
    centres, points = np.linspace(0.0, 1.0, 6), np.linspace(0.05, 0.95, 7)
    bound = np.sqrt(np.diag(kernel(points, points, orders=(1, 1))))
    G, slopes = kernel(centres, centres), kernel(points, centres, orders=(1, 0))
    # ∂₂k(·, θ) has the inner product ∂f(θ) with every f: it is in the space, whatever ∂f is
    np.testing.assert_allclose(slopes.T, kernel(centres, points, orders=(0, 1)))
    step = 1e-5
    difference = (kernel(points + step, centres) - kernel(points - step, centres)) / (2.0 * step)
    np.testing.assert_allclose(slopes, difference, rtol=1e-4, atol=1e-5)
    for _ in range(50):
        c = rng.normal(size=6)
        assert np.all(np.abs(slopes @ c) <= np.sqrt(max(c @ G @ c, 0.0)) * bound * (1.0 + 1e-9) + 1e-9)
