"""Laws of the kernels: what every one of them must satisfy, and what each formula says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator, clone
from sklearn.gaussian_process.kernels import Matern as ReferenceMatern
from sklearn.metrics import pairwise

from infinitask import kernels
from infinitask.kernels import (
    RBF,
    CallableKernel,
    Chi2,
    ConstantTask,
    Diagonal,
    Gaussian,
    InputKernel,
    Laplacian,
    Linear,
    Matern,
    MaternTask,
    PiecewiseLinear,
    Polynomial,
    PolynomialTask,
    Precomputed,
    Product,
    Sum,
    TaskKernel,
    TaskMatrix,
    _distances,
    input_kernel,
    task_kernel,
)
from tests.support.arrays import to_host
from tests.support.each import each
from tests.support.names import case_name


def _linear(X: Any, Z: Any) -> Any:
    return X @ Z.T


INPUT = [
    RBF(),
    RBF(gamma=0.7),
    RBF(gamma="scale"),
    Laplacian(),
    Matern(nu=0.5),
    Matern(nu=1.5),
    Matern(nu=2.5, gamma=0.3),
    Chi2(),
    Linear(),
    Polynomial(),
    Polynomial(degree=2, gamma="median", coef0=0.0),
    RBF() + Linear(),
    RBF() * Laplacian(gamma=0.2),
    (RBF() + Linear()) * Polynomial(degree=1),
    CallableKernel(_linear),
]
TASK = [
    Gaussian(),
    Gaussian(gamma=20.0),
    MaternTask(),
    MaternTask(nu=2.5, gamma=3.0),
    PolynomialTask(),
    PolynomialTask(degree=1, coef0=0.0),
    ConstantTask(),
    PiecewiseLinear(),
    Diagonal(),
]
FINITE = [TaskMatrix([[1.0, 0.5], [0.5, 2.0]]), TaskMatrix([[1.0]], tasks=[0.5])]  # laws of their own: test_task_matrix
SMOOTH = [kernel for kernel in TASK if kernel.max_order == 1]
RANDOM_FOURIER = [
    RBF(0.4),
    Laplacian(0.3),
    Matern(0.5, 0.4),
    Matern(1.5, 0.4),
    Matern(2.5, 0.4),
    RBF(0.2) * Matern(1.5, 0.1),
]


def _points(n: int, d: int = 3, seed: int = 0) -> Any:
    """Non-negative, so that every kernel accepts them, with zeros and a repeated row."""
    X = np.random.default_rng(seed).gamma(1.0, size=(n, d))
    X[1, :] = X[0, :]
    X[2:5, 0] = 0.0
    return X


# --- input kernels


@pytest.fixture(params=["loops", "product"])
def distances(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Few rows are subtracted; the laws hold for the matrix product of many rows as well."""
    if request.param == "product":
        monkeypatch.setattr(_distances, "FEW_ROWS", 1)
    return str(request.param)


@pytest.mark.usefixtures("distances")
@each("d", [1, 3, 9, 12])
@each("kernel", INPUT, ids=case_name)
def test_input_gram_is_symmetric_psd_and_has_the_diagonal(kernel: InputKernel, d: int) -> None:
    X = _points(40, d)
    resolved = kernel.resolve(X)
    gram = resolved(X, X)
    assert gram.shape == (40, 40)
    np.testing.assert_allclose(gram, gram.T, rtol=1e-13, atol=1e-13 * np.abs(gram).max())
    assert np.linalg.eigvalsh(gram).min() > -1e-12 * np.abs(gram).max() * 40
    np.testing.assert_allclose(resolved.diag(X), np.diagonal(gram), rtol=1e-12)
    np.testing.assert_allclose(resolved(X[:7], X[7:]), gram[:7, 7:], rtol=1e-10, atol=1e-12)
    if resolved.stationary:
        np.testing.assert_array_equal(np.diagonal(gram), 1.0)
        np.testing.assert_allclose(resolved(X + 3.0, X + 3.0), gram, atol=1e-12)


@each("kernel", INPUT, ids=case_name)
@each("d", [2, 6, 12])  # differences everywhere, on NumPy only, nowhere
def test_input_backends_agree(kernel: InputKernel, d: int, xp: Any) -> None:
    X, Z = _points(12, d), _points(7, d, seed=1)
    reference = kernel.resolve(X)
    resolved = kernel.resolve(xp.asarray(X))
    gram = resolved(xp.asarray(X), xp.asarray(Z))
    assert type(gram) is type(xp.asarray(X))
    np.testing.assert_allclose(to_host(gram), reference(X, Z), rtol=1e-11)
    np.testing.assert_allclose(to_host(resolved.diag(xp.asarray(X))), reference.diag(X), rtol=1e-12)


@each("kernel", INPUT, ids=case_name)
def test_single_precision_stays_single_and_integers_become_floats(kernel: InputKernel, xp: Any) -> None:
    X = _points(10, 12)
    resolved = kernel.resolve(X)
    gram = resolved(xp.asarray(X, dtype=xp.float32), xp.asarray(X, dtype=xp.float32))
    assert gram.dtype == xp.float32
    np.testing.assert_allclose(to_host(gram), resolved(X, X), rtol=2e-3, atol=2e-3)
    mixed = resolved(xp.asarray(X, dtype=xp.float32), xp.asarray(X))
    assert mixed.dtype == xp.float64
    whole = np.round(X).astype(np.int64)
    gram = resolved(xp.asarray(whole), xp.asarray(whole))
    np.testing.assert_allclose(to_host(gram), resolved(whole.astype(float), whole.astype(float)))


@pytest.mark.usefixtures("distances")
@each("d", [2, 11])
@each(
    ("kernel", "reference"),
    [
        (RBF(0.3), lambda X, Z: pairwise.rbf_kernel(X, Z, gamma=0.3)),
        (Laplacian(0.3), lambda X, Z: pairwise.laplacian_kernel(X, Z, gamma=0.3)),
        (Chi2(0.3), lambda X, Z: pairwise.chi2_kernel(X, Z, gamma=0.3)),
        (Linear(), pairwise.linear_kernel),
        (Polynomial(3, 0.3, 2.0), lambda X, Z: pairwise.polynomial_kernel(X, Z, 3, gamma=0.3, coef0=2.0)),
        *[(Matern(nu, gamma=0.3), ReferenceMatern(length_scale=0.6**-0.5, nu=nu)) for nu in (0.5, 1.5, 2.5)],
    ],
    ids=case_name,
)
def test_scikit_learn_agrees(kernel: InputKernel, reference: Any, d: int) -> None:
    X, Z = _points(20, d), _points(15, d, seed=1)
    np.testing.assert_allclose(kernel(X, Z), reference(X, Z), rtol=1e-12)


def test_many_rows_and_columns_in_blocks(xp: Any) -> None:
    # Large enough for several blocks of rows, and in the second case of columns as well.
    rng = np.random.default_rng(0)
    for n, p, d in ((40, 3000, 20), (3, 300_000, 5)):
        X, Z = rng.random((n, d)), rng.random((p, d))
        gram = to_host(Laplacian(0.3)(xp.asarray(X), xp.asarray(Z)))
        np.testing.assert_allclose(gram, pairwise.laplacian_kernel(X, Z, gamma=0.3), rtol=1e-12)


def test_chi2_counts_zero_over_zero_as_zero() -> None:
    X = np.array([[0.0, 0.0, 1.0], [0.0, 2.0, 0.0]])
    np.testing.assert_allclose(Chi2(1.0)(X, X), [[1.0, np.exp(-3.0)], [np.exp(-3.0), 1.0]])
    np.testing.assert_array_equal(Chi2(1.0)(X * 0, X * 0), 1.0)
    with pytest.raises(ValueError, match="≥ 0"):
        Chi2(1.0)(X, -X)
    with pytest.raises(ValueError, match="≥ 0"):
        Chi2().resolve(-X)


@pytest.mark.usefixtures("distances")
@each("d", [1, 4, 5, 50])
def test_equal_rows_are_equal_and_near_rows_are_near(d: int) -> None:
    X = np.random.default_rng(0).standard_normal((30, d)) + 1e3
    # A copy, not the same object: equality must not depend on identity.
    np.testing.assert_array_equal(np.diagonal(Matern(nu=0.5, gamma=1.0)(X, X.copy())), 1.0)
    step = 1e-4
    Z = X.copy()
    Z[:, 0] += step
    np.testing.assert_allclose(1 - np.diagonal(RBF(1.0)(X, Z)), (Z - X)[:, 0] ** 2, rtol=1e-4)


@each("d", [4, 8, 10, 30])
def test_distances_of_many_rows_are_exact(d: int) -> None:
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(200, d))
    X = np.concatenate([rng.normal(size=(100, d)), Z[:5], Z[5:10] + 1e-9 * rng.normal(size=(5, d))])
    gamma = RBF().resolve(Z).gamma
    found = _distances.squared_distances(X, Z, gamma)
    exact = gamma * cdist(X, Z, "sqeuclidean")
    np.testing.assert_allclose(found, exact, rtol=1e-11, atol=1e-24)
    np.testing.assert_allclose(found, exact, rtol=0.0, atol=1e-14)
    np.testing.assert_array_equal(np.diagonal(found[100:105]), 0.0)
    # a root magnifies the error of what is nearly 0
    np.testing.assert_allclose(Matern(0.5, gamma=gamma)(X, Z), np.exp(-np.sqrt(2.0 * exact)), rtol=0.0, atol=1e-12)


@each("case", ["far", "narrow", "repeated", "single precision"])
def test_distances_are_exact_where_a_matrix_product_would_not_be(case: str) -> None:
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(100, 6)), rng.normal(size=(80, 6))
    gamma = 0.05
    if case == "far":
        X[0], Z[0] = 100.0, 100.0 + 1e-3
    elif case == "narrow":
        gamma = 5.0
    elif case == "repeated":
        X, Z = np.sign(X), np.sign(Z)
    else:
        X, Z = X.astype(np.float32), Z.astype(np.float32)
    found = _distances.squared_distances(X, Z, gamma)
    np.testing.assert_array_equal(found, (cdist(X, Z, "sqeuclidean").astype(X.dtype) * gamma).astype(X.dtype))


def test_many_equal_rows_of_many_columns_are_equal() -> None:
    # too many to be subtracted after the matrix product
    X = np.sign(np.random.default_rng(0).normal(size=(100, 20)))
    X[:, 3:] = 1.0
    distances = _distances.squared_distances(X + 0.1, X.copy() + 0.1, 0.3)
    exact = 0.3 * cdist(X, X, "sqeuclidean")
    assert np.mean(exact == 0.0) > 0.05
    np.testing.assert_array_equal(distances[exact == 0.0], 0.0)
    np.testing.assert_allclose(distances, exact, rtol=1e-13)


def _median_distance(X: Any, metric: str) -> float:
    chi2 = metric == "chi2"
    D = -pairwise.additive_chi2_kernel(X) if chi2 else pairwise.pairwise_distances(X, metric=metric)
    return float(np.median(D[np.triu_indices(len(X), 1)]))


@each("factor", [1.0, 1e-30, 1e30])
def test_gamma_median(factor: float) -> None:
    X = _points(31, 4)
    scaled = X * factor
    sigma = _median_distance(X, "euclidean") * factor
    for kernel in (RBF(), Matern()):
        assert kernel.resolve(scaled).gamma == pytest.approx(1 / (2 * sigma**2))
    assert Laplacian().resolve(scaled).gamma == pytest.approx(1 / _median_distance(X, "manhattan") / factor)
    assert Chi2().resolve(scaled).gamma == pytest.approx(1 / _median_distance(X, "chi2") / factor)
    squares = np.median(np.sum(X**2, axis=1)) * factor**2
    assert Polynomial(gamma="median").resolve(scaled).gamma == pytest.approx(1 / squares)


def test_gamma_median_of_many_rows_uses_evenly_spaced_ones(xp: Any) -> None:
    X = np.random.default_rng(0).standard_normal((10_000, 2))
    assert RBF().resolve(xp.asarray(X)).gamma == RBF().resolve(X).gamma
    assert RBF().resolve(X).gamma == RBF().resolve(X[::10]).gamma
    # Twice the median of a χ² variable with 2 degrees of freedom is the median squared distance.
    assert RBF().resolve(X).gamma == pytest.approx(1 / (2 * 2 * 2 * np.log(2)), rel=0.05)


@each("kernel", [Gaussian(), MaternTask(), MaternTask(nu=2.5)], ids=case_name)
def test_a_kernel_of_tasks_measures_each_coordinate_in_its_own_spread(kernel: Any) -> None:
    """Units of a coordinate of θ do not matter; on a line the rule is that of distances."""
    nodes = _points(31, 3)
    units, shift = np.array([1e-3, 1.0, 1e5]), np.array([1.0, -2.0, 3e5])
    plain, moved = kernel.resolve(nodes), kernel.resolve(nodes * units + shift)
    gram = plain(nodes, nodes[:5])
    np.testing.assert_allclose(moved(nodes * units + shift, nodes[:5] * units + shift), gram, rtol=1e-6)
    assert 0.2 < np.median(gram) < 0.9
    spread = nodes.std(axis=0)
    alike = kernel.set_params(gamma=0.5 / _median_distance(nodes / spread, "euclidean") ** 2)
    np.testing.assert_allclose(alike(nodes / spread, nodes[:5] / spread), gram, rtol=1e-9)
    line = nodes[:, :1]
    assert kernel.set_params(gamma=None).resolve(line).gamma == RBF().resolve(line).gamma


@each("family", [Gaussian, MaternTask])
def test_widths_of_tasks_are_positive_numbers(xp: Any, family: Any) -> None:
    S = xp.asarray(_points(6, 2))
    np.testing.assert_allclose(to_host(family(gamma=(0.5, 0.5))(S, S)), to_host(family(gamma=0.5)(S, S)), atol=1e-14)
    for still in (np.full((6, 2), 0.1), np.ones((1, 2)), np.array([[0.5, 300.0], [0.5, 500.0]])):
        found = family().resolve(still)
        assert np.all(np.isfinite(found.gamma))
        assert np.min(found.gamma) > 0.0
        assert np.all(np.isfinite(found(still, still)))
    with pytest.raises(ValueError, match="tasks with 2 coordinates; give one number for each coordinate"):
        family(gamma=(1.0, 2.0, 3.0))(S, S)


def test_gamma_scale() -> None:
    X = _points(30, 4)
    for kernel in (RBF("scale"), Laplacian("scale"), Matern(gamma="scale"), Chi2("scale"), Polynomial(gamma="scale")):
        assert kernel.resolve(X).gamma == pytest.approx(1 / (4 * X.var()))
        assert kernel.resolve(np.ones((5, 2))).gamma == 1.0


@each("kernel", [RBF(), Laplacian(), Matern(), Chi2()], ids=case_name)
def test_gamma_median_of_repeated_rows(kernel: Any) -> None:
    assert kernel.resolve(np.full((6, 5), 0.1)).gamma == 1.0
    assert kernel.resolve(np.ones((1, 5))).gamma == 1.0
    X = np.full((20, 5), 0.1)
    X[0] = 2.1
    alone = kernel.resolve(X[:2]).gamma
    # Most pairs coincide: the mean of the positive distances, which are all those of the odd one out.
    assert kernel.resolve(X).gamma == pytest.approx(alone)
    assert alone != 1.0


@pytest.mark.usefixtures("distances")
@each("d", [1, 3, 8, 12])
@each("magnitude", [1e-150, 1e-100, 1e100, 1e150])
@each(
    "kernel",
    [RBF(), Laplacian(), Matern(0.5), Matern(1.5), Matern(2.5), Chi2(), Polynomial(gamma="median")],
    ids=case_name,
)
def test_extreme_magnitudes(kernel: InputKernel, magnitude: float, d: int) -> None:
    X = _points(20, d)
    expected = kernel.resolve(X)(X, X)
    np.testing.assert_allclose(kernel.resolve(X * magnitude)(X * magnitude, X * magnitude), expected, rtol=1e-9)
    # A fixed gamma cannot follow, but must neither overflow nor make a NaN.
    if kernel.stationary:
        fixed = clone(kernel).set_params(gamma=1.0)
        assert np.all(np.isfinite(fixed(X * magnitude, X * magnitude)))
        assert np.all(np.isfinite(fixed(np.float32(X) * np.float32(1e36), np.float32(X))))


@each("magnitude", [1e-150, 1e150])
@each("kernel", [Gaussian(), MaternTask()], ids=case_name)
def test_extreme_tasks(kernel: TaskKernel, magnitude: float) -> None:
    theta = np.linspace(0, 1, 9)
    np.testing.assert_allclose(
        kernel.resolve(theta * magnitude)(theta * magnitude, theta * magnitude), kernel.resolve(theta)(theta, theta)
    )


@pytest.mark.usefixtures("distances")
@each("d", [2, 8, 12])
@each("kernel", [RBF(0.5), Laplacian(0.5), Matern(gamma=0.5), Chi2(0.5)], ids=case_name)
def test_an_outlier_leaves_the_others_alone(kernel: InputKernel, d: int) -> None:
    X = _points(10, d)
    far = np.concatenate([X, np.full((1, d), 1e90)])
    gram = kernel(far, X)
    np.testing.assert_allclose(gram[:10], kernel(X, X), rtol=1e-9)
    np.testing.assert_array_equal(gram[10], 0.0)


@pytest.mark.usefixtures("distances")
@each("d", [3, 12])
def test_nan_is_not_hidden(d: int, xp: Any) -> None:
    X = np.ones((3, d))
    X[1, 2] = np.nan
    for kernel in (RBF(1.0), Laplacian(1.0), Chi2(1.0)):
        gram = to_host(kernel(xp.asarray(X), xp.ones((2, d), dtype=xp.float64)))
        np.testing.assert_array_equal(gram, [[1.0, 1.0], [np.nan, np.nan], [1.0, 1.0]])
    for rule in ("median", "scale"):
        with pytest.raises(ValueError, match="NaN"):
            RBF(rule).resolve(X)


def test_sums_and_products() -> None:
    X, Z = _points(8), _points(6, seed=1)
    left, right = RBF(0.3), Linear()
    np.testing.assert_allclose((left + right)(X, Z), left(X, Z) + right(X, Z))
    np.testing.assert_allclose((left * right)(X, Z), left(X, Z) * right(X, Z))
    nested = (RBF() + Linear()) * Laplacian()
    assert isinstance(nested, Product)
    assert isinstance(nested.left, Sum)
    assert nested.get_params()["left__left__gamma"] == "median"
    resolved = nested.resolve(X)
    assert resolved.left.left.gamma == RBF().resolve(X).gamma
    assert resolved.right.gamma == Laplacian().resolve(X).gamma
    assert not (RBF() + RBF()).stationary
    assert (RBF() * Laplacian()).stationary
    assert not (RBF() * Linear()).stationary
    with pytest.raises(TypeError):
        RBF() + 1.0  # type: ignore[operator]
    with pytest.raises(TypeError, match="its right is 'rbf'"):
        Sum(RBF(), "rbf").resolve(X)  # type: ignore[arg-type]


@each("kernel", RANDOM_FOURIER, ids=case_name)
def test_spectral_frequencies_reproduce_the_kernel(kernel: InputKernel) -> None:
    rng = np.random.default_rng(0)
    X, size = rng.standard_normal((6, 2)), 200_000
    W = kernel.spectral(2, size, rng)
    assert W.shape == (2, size)
    P = X @ W
    estimate = (np.cos(P) @ np.cos(P).T + np.sin(P) @ np.sin(P).T) / size
    # cos has variance at most 1: five standard errors.
    np.testing.assert_allclose(estimate, kernel(X, X), atol=5 / np.sqrt(size))


@each("kernel", [Linear(), Chi2(1.0), Polynomial(), RBF(1.0) + RBF(1.0), Precomputed()], ids=case_name)
def test_kernels_without_frequencies_say_so(kernel: InputKernel) -> None:
    with pytest.raises(TypeError, match=f"{type(kernel).__name__} has no random Fourier features; RBF, Laplacian"):
        kernel.spectral(2, 3, np.random.default_rng(0))


def test_callable_kernel_checks_the_shape() -> None:
    X = _points(40)
    np.testing.assert_allclose(CallableKernel(pairwise.linear_kernel)(X, X[:3]), X @ X[:3].T)
    with pytest.raises(ValueError, match=r"returned shape \(40,\).*expected \(40, 40\)"):
        CallableKernel(lambda X, Z: X[:, 0])(X, X)
    # diag works block by block; a block boundary must not show.
    np.testing.assert_allclose(CallableKernel(_linear).diag(X), np.sum(X**2, axis=1))


def test_precomputed_is_never_evaluated() -> None:
    gram = np.eye(3)
    kernel = Precomputed().resolve(gram)
    assert kernel.precomputed
    assert not RBF().precomputed
    for evaluate in (lambda: kernel(gram, gram), lambda: kernel.diag(gram)):
        with pytest.raises(TypeError, match="columns"):
            evaluate()


def test_input_kernel_reads_names_objects_and_functions() -> None:
    names = [
        "rbf",
        "laplacian",
        "matern12",
        "matern32",
        "matern52",
        "chi2",
        "linear",
        "poly",
        "polynomial",
        "precomputed",
    ]
    for name in names:
        kernel = input_kernel(name, gamma=0.25)
        assert isinstance(kernel, InputKernel)
        assert kernel.get_params().get("gamma", 0.25) == 0.25
    assert [input_kernel(f"matern{k}2").nu for k in (1, 3, 5)] == [0.5, 1.5, 2.5]  # type: ignore[attr-defined]
    spec = RBF(3.0)
    assert input_kernel(spec, gamma=1.0) is spec
    assert isinstance(input_kernel(_linear), CallableKernel)
    for wrong in ("gauss", RBF, Gaussian(), None, 3):
        with pytest.raises(ValueError, match=r"expected one of 'rbf'.*'precomputed'"):
            input_kernel(wrong)


# --- task kernels


@each("kernel", TASK, ids=case_name)
@each("d", [1, 2, 6])
def test_task_gram_is_symmetric_psd(kernel: TaskKernel, d: int) -> None:
    if isinstance(kernel, PiecewiseLinear) and d > 1:
        pytest.skip("orders tasks on a line")
    theta = np.random.default_rng(0).random((15, d))
    gram = kernel.resolve(theta)(theta, theta)
    np.testing.assert_allclose(gram, gram.T)
    assert np.linalg.eigvalsh(gram).min() > -1e-12 * np.abs(gram).max()
    if d == 1:
        np.testing.assert_array_equal(kernel.resolve(theta[:, 0])(theta[:, 0], theta[:, 0]), gram)


@each("kernel", SMOOTH, ids=case_name)
def test_joint_gram_of_values_and_derivatives_is_psd(kernel: TaskKernel) -> None:
    theta = np.random.default_rng(0).random(12)
    kernel = kernel.resolve(theta)
    blocks = [[kernel(theta, theta, orders=(i, j)) for j in (0, 1)] for i in (0, 1)]
    joint = np.block(blocks)
    np.testing.assert_allclose(joint, joint.T)
    assert np.linalg.eigvalsh(joint).min() > -1e-11 * np.abs(joint).max()


@each("kernel", SMOOTH, ids=case_name)
def test_derivatives_are_finite_differences(kernel: TaskKernel) -> None:
    S = np.array([-0.5, 0.0, 0.1, 0.3, 0.9])
    T = np.array([-0.2, 0.1, 0.3, 0.3001, 2.0])  # 0.1 and 0.3 meet s = t
    kernel = kernel.resolve(T)
    assert set(S) & set(T)
    h = 1e-6
    size = np.abs(kernel(T, T, orders=(1, 1))).max() + 1.0
    for other in (0, 1):
        difference = (kernel(S + h, T, orders=(0, other)) - kernel(S - h, T, orders=(0, other))) / (2 * h)
        np.testing.assert_allclose(kernel(S, T, orders=(1, other)), difference, atol=1e-5 * size)
        difference = (kernel(S, T + h, orders=(other, 0)) - kernel(S, T - h, orders=(other, 0))) / (2 * h)
        np.testing.assert_allclose(kernel(S, T, orders=(other, 1)), difference, atol=1e-5 * size)


@each("kernel", TASK, ids=case_name)
def test_task_backends_agree(kernel: TaskKernel, xp: Any) -> None:
    S, T = np.linspace(0, 1, 7), np.linspace(0, 1, 4)
    reference = kernel.resolve(S)
    resolved = kernel.resolve(xp.asarray(S))
    for orders in [(i, j) for i in range(kernel.max_order + 1) for j in range(kernel.max_order + 1)]:
        gram = resolved(xp.asarray(S), xp.asarray(T), orders=orders)
        assert type(gram) is type(xp.asarray(S))
        np.testing.assert_allclose(to_host(gram), reference(S, T, orders=orders), rtol=1e-12, atol=1e-14)


def test_task_formulas() -> None:
    S, T = np.array([0.0, 0.4, 1.0]), np.array([0.4, 0.8])
    D = np.abs(S[:, None] - T)
    np.testing.assert_allclose(Gaussian(2.0)(S, T), np.exp(-2 * D**2))
    for nu in (1.5, 2.5):
        np.testing.assert_allclose(MaternTask(nu, 2.0)(S, T), Matern(nu, 2.0)(S[:, None], T[:, None]))
    np.testing.assert_allclose(PolynomialTask(2, 0.5)(S, T), (S[:, None] * T + 0.5) ** 2)
    np.testing.assert_array_equal(ConstantTask()(S, T), np.ones((3, 2)))
    np.testing.assert_array_equal(ConstantTask()(S, T, orders=(0, 1)), np.zeros((3, 2)))
    np.testing.assert_allclose(PiecewiseLinear(0.5)(S, T), np.minimum(S[:, None], T) + 0.5)
    np.testing.assert_array_equal(Diagonal()(S, T), [[0, 0], [1, 0], [0, 0]])
    pairs = np.array([[0.0, 1.0], [0.0, 2.0]])
    np.testing.assert_array_equal(Diagonal()(pairs, pairs), np.eye(2))
    assert Diagonal().diagonal
    assert not Gaussian().diagonal


def test_task_gamma_none_is_the_median() -> None:
    nodes = np.linspace(0, 1, 10)
    assert Gaussian(None).resolve(nodes).gamma == Gaussian("median").resolve(nodes).gamma
    assert task_kernel("rbf").resolve(nodes).gamma == Gaussian().resolve(nodes).gamma  # type: ignore[attr-defined]


@each(
    ("kernel", "orders", "name"),
    [
        (PiecewiseLinear(), (1, 1), "∂₁∂₂k"),
        (PiecewiseLinear(), (1, 0), "∂₁k"),
        (Diagonal(), (0, 1), "∂₂k"),
        (TaskMatrix(np.eye(2)), (0, 1), "∂₂k"),
    ],
)
def test_missing_derivatives_are_named(kernel: TaskKernel, orders: tuple[int, int], name: str) -> None:
    with pytest.raises(ValueError, match=f"{type(kernel).__name__} has no derivative {name} .*use 'rbf'"):
        kernel(np.zeros(2), np.zeros(2), orders=orders)


def test_task_errors_are_sentences() -> None:
    theta = np.array([-2.0, 0.5])
    with pytest.raises(ValueError, match=r"θ = -2 with offset=1.0; use a larger offset"):
        PiecewiseLinear()(theta, theta)
    PiecewiseLinear(offset=2.0)(theta, theta)
    with pytest.raises(ValueError, match="each of the two is 0 or 1"):
        Gaussian(1.0)(theta, theta, orders=(2, 0))
    with pytest.raises(ValueError, match="tasks with 2 coordinates"):
        Gaussian(1.0)(np.ones((3, 2)), np.ones((3, 2)), orders=(0, 1))
    with pytest.raises(ValueError, match="2 coordinates"):
        PiecewiseLinear()(np.ones((3, 2)), np.ones((3, 2)))
    with pytest.raises(ValueError, match=r"nu=0.5"):
        MaternTask(nu=0.5, gamma=1.0)(theta, theta)
    for unresolved in (Gaussian(), Gaussian(None)):
        with pytest.raises(ValueError, match="call resolve"):
            unresolved(theta, theta)
    with pytest.raises(ValueError, match="'scale'; expected 'median'"):
        Gaussian("scale").resolve(theta)
    for degree, coef0 in ((0, 1.0), (1.5, 1.0), (2, -1.0)):
        with pytest.raises(ValueError, match="PolynomialTask needs"):
            PolynomialTask(degree, coef0)(theta, theta)  # type: ignore[arg-type]


def test_task_kernel_reads_names_and_objects() -> None:
    for name in [
        "rbf",
        "gaussian",
        "matern32",
        "matern52",
        "polynomial",
        "poly",
        "constant",
        "piecewise-linear",
        "diagonal",
    ]:
        kernel = task_kernel(name, gamma=0.25)
        assert isinstance(kernel, TaskKernel)
        assert kernel.get_params().get("gamma", 0.25) == 0.25
    spec = Gaussian(3.0)
    assert task_kernel(spec, gamma=1.0) is spec
    for wrong in ("linear", Gaussian, RBF(), None, _linear):
        with pytest.raises(ValueError, match=r"expected one of 'rbf'.*'diagonal'"):
            task_kernel(wrong)


# --- both families


@each("kernel", [*INPUT, *TASK, *FINITE, Precomputed()], ids=case_name)
def test_specs_are_parameter_objects_that_nothing_writes_to(kernel: BaseEstimator) -> None:
    before = repr(kernel)
    params = kernel.get_params()
    copy = clone(kernel)
    assert repr(copy) == before
    resolved = kernel.resolve(_points(9, 1))
    assert type(resolved) is type(kernel)
    assert resolved is not kernel
    assert repr(kernel) == before
    assert kernel.get_params() == params
    for name in params:
        if name.split("__")[-1] == "gamma":
            assert isinstance(resolved.get_params()[name], float)
            copy.set_params(**{name: 0.125})
            assert copy.get_params()[name] == 0.125
    assert repr(kernel) == before
    # Resolving twice changes nothing.
    assert repr(resolved.resolve(_points(5, 1, seed=3))) == repr(resolved)


@each("gamma", [0, -1.0, np.inf, np.nan, True, [1.0], (-1.0,), "auto"])
@each("family", [RBF, Laplacian, Chi2, Matern, Polynomial, Gaussian, MaternTask])
def test_bad_gamma_is_refused(family: Any, gamma: Any) -> None:
    kernel = family(gamma=gamma)
    with pytest.raises(ValueError, match="gamma"):
        kernel.resolve(_points(5, 1))
    with pytest.raises(ValueError, match="gamma"):
        kernel(_points(5, 1), _points(5, 1))


def test_input_errors_are_sentences() -> None:
    X = _points(5, 2)
    with pytest.raises(ValueError, match=r"RBF\(gamma='median'\) has no number yet; call resolve"):
        RBF()(X, X)
    with pytest.raises(ValueError, match=r"shape \(2,\)"):
        RBF(1.0)(X[0], X)
    with pytest.raises(ValueError, match="2 columns on the left and 1 on the right"):
        RBF(1.0)(X, X[:, :1])
    with pytest.raises(ValueError, match=r"nu=2"):
        Matern(nu=2, gamma=1.0)(X, X)
    for degree, coef0 in ((0, 1.0), (1.5, 1.0), (2, -1.0)):
        with pytest.raises(ValueError, match="Polynomial needs"):
            Polynomial(degree, 1.0, coef0)(X, X)  # type: ignore[arg-type]


@each("d", [6, 12])
def test_no_rows_give_an_empty_gram_matrix(d: int) -> None:
    X = _points(5, d)
    for kernel in INPUT:
        assert kernel.resolve(X)(X[:0], X).shape == (0, 5)
        assert kernel.resolve(X)(X, X[:0]).shape == (5, 0)


def test_data_are_left_alone_and_may_be_read_only() -> None:
    X = _points(5, 12)
    before = X.copy()
    X.flags.writeable = False
    for kernel in INPUT:
        assert np.all(np.isfinite(kernel.resolve(X)(X, X)))
    assert np.array_equal(X, before)


def test_public_names() -> None:
    assert sorted(kernels.__all__) == sorted(set(kernels.__all__))
    assert all(hasattr(kernels, name) for name in kernels.__all__)
