"""Features give their kernel back: on the rows, at new inputs, and for derivatives in θ."""

from __future__ import annotations

import pickle
from typing import Any

import array_api_strict
import numpy as np
import pytest
from sklearn.base import clone

from infinitask import InfiniteQuantileRegressor
from infinitask.features import (
    Auto,
    FeatureRecipe,
    Features,
    KernelMap,
    Nystroem,
    PivotedCholesky,
    PrecomputedMap,
    RandomFourier,
    TaskMap,
    _cholesky,
    feature_recipe,
    integrated_basis,
    node_basis,
    task_features,
)
from infinitask.features import _cholesky as cholesky_module
from infinitask.features._cholesky import Inverse
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
    TaskKernel,
)
from tests.support.arrays import to_host
from tests.support.each import each

KERNELS = [
    RBF(gamma=0.5),
    RBF(gamma="median"),
    Laplacian(gamma=0.3),
    Matern(nu=2.5, gamma=0.5),
    Chi2(gamma=0.5),
    Linear(),
    Polynomial(degree=3),
]
SMOOTH_TASKS = [Gaussian(gamma=2.0), Gaussian(gamma=50.0), MaternTask(nu=2.5, gamma=3.0), PolynomialTask(degree=3)]
ROUGH_TASKS = [PiecewiseLinear(), Diagonal(), ConstantTask()]
LANDMARKS = ["uniform", "k-means++", "leverage"]


def inputs(n: int, d: int = 2, seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(0, 2, size=(n, d))


def build(recipe: FeatureRecipe, kernel: InputKernel, X: Any, tolerance: float = 1e-12, seed: int = 0) -> Features:
    return recipe.build(kernel, X, tolerance, np.random.default_rng(seed))


def gram(kernel: InputKernel, X: Any, Z: Any = None) -> Any:
    return to_host(kernel.resolve(X)(X, X if Z is None else Z))


@pytest.fixture(params=["direct", "blocks"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to factorise: LAPACK on the whole Gram, and blocks of pivots."""
    if request.param == "blocks":
        monkeypatch.setattr(_cholesky, "DIRECT_ROWS", 10)
        monkeypatch.setattr(_cholesky, "BLOCK_PIVOTS", 20)
    return str(request.param)


@each("kernel", KERNELS, ids=repr)
def test_exact_features_reproduce_the_kernel(kernel: InputKernel, path: str) -> None:
    X = inputs(150)
    features = build(PivotedCholesky(), kernel, X)
    expected = gram(kernel, X)
    scale = expected.diagonal().max()
    assert features.exact
    assert features.residual <= 2e-12
    np.testing.assert_allclose(features.values @ features.values.T, expected, atol=3e-12 * scale)
    np.testing.assert_allclose(features.map(X), features.values, atol=1e-7 * scale**0.5)
    assert features.values.shape == (150, features.rank)


@each("kernel", [RBF(gamma=0.5), Linear(), Polynomial(degree=3)], ids=repr)
def test_exact_features_reproduce_smooth_kernels_between_the_rows(kernel: InputKernel, path: str) -> None:
    X, Z = inputs(400), inputs(30, seed=1)
    phi = build(PivotedCholesky(), kernel, X).map
    expected = kernel(Z, Z)
    np.testing.assert_allclose(phi(Z) @ phi(Z).T, expected, atol=1e-7 * expected.max())


def test_the_span_of_a_rough_kernel_is_that_of_its_rows(path: str) -> None:
    """At a new input, φ(z)ᵀφ(x_i) = k(z, x_i): φ is the projection on the span of the rows."""
    X, Z, kernel = inputs(120), inputs(30, seed=1), Laplacian(gamma=1.0)
    features = build(PivotedCholesky(), kernel, X)
    assert features.rank == 120
    np.testing.assert_allclose(features.map(Z) @ features.values.T, kernel(Z, X), atol=1e-10)


def test_few_features_suffice_for_many_rows() -> None:
    X = np.random.default_rng(0).uniform(-1, 1, size=(4000, 1))
    features = build(Auto(), RBF(gamma=2.0), X)
    some = slice(0, 4000, 7)
    assert features.rank < 30
    assert features.description == f"pivoted Cholesky: exact to 1e-12 with {features.rank} features for 4000 rows"
    np.testing.assert_allclose(
        features.values[some] @ features.values[some].T, gram(RBF(gamma=2.0), X[some]), atol=3e-12
    )
    np.testing.assert_allclose(features.map(X), features.values, atol=1e-8)


def test_both_paths_need_about_the_same_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    X = inputs(1500)
    direct = build(PivotedCholesky(), RBF(gamma=1.0), X)
    monkeypatch.setattr(_cholesky, "DIRECT_ROWS", 100)
    blocks = build(PivotedCholesky(), RBF(gamma=1.0), X)
    assert abs(direct.rank - blocks.rank) <= 0.05 * direct.rank
    np.testing.assert_allclose(direct.values @ direct.values.T, blocks.values @ blocks.values.T, rtol=0, atol=5e-12)


@pytest.mark.parametrize("recipe", [PivotedCholesky(), Auto(), Nystroem(rank=60, landmarks="leverage")], ids=repr)
def test_array_libraries_agree(recipe: FeatureRecipe, path: str, xp: Any) -> None:
    X, Z = inputs(100), inputs(20, seed=1)
    features = build(recipe, RBF(gamma=0.5), xp.asarray(X))
    there = features.map(xp.asarray(Z))
    assert isinstance(there, type(xp.asarray(X)))
    assert there.dtype == xp.float64
    here = build(recipe, RBF(gamma=0.5), X)
    np.testing.assert_allclose(to_host(there) @ to_host(there).T, here.map(Z) @ here.map(Z).T, atol=1e-8)
    # a map fitted in one library answers in that of its argument
    assert isinstance(features.map(Z), np.ndarray)


def test_random_features_agree_between_libraries(xp: Any) -> None:
    X = inputs(30)
    there = build(RandomFourier(rank=40), RBF(gamma=0.5), xp.asarray(X)).values
    np.testing.assert_allclose(to_host(there), build(RandomFourier(rank=40), RBF(gamma=0.5), X).values, atol=1e-12)


def test_precomputed_equals_computed(path: str, xp: Any) -> None:
    X, Z, kernel = inputs(80), inputs(15, seed=1), RBF(gamma=0.5)
    computed = build(PivotedCholesky(), kernel, X)
    given = build(PivotedCholesky(), Precomputed(), xp.asarray(gram(kernel, X)))
    assert isinstance(given.map, PrecomputedMap)
    assert isinstance(computed.map, KernelMap)
    rows = given.map(xp.asarray(kernel(Z, X)))
    np.testing.assert_allclose(to_host(rows) @ to_host(rows).T, computed.map(Z) @ computed.map(Z).T, atol=1e-8)


def test_single_precision_asks_for_what_it_can_resolve(path: str, xp: Any) -> None:
    X = xp.asarray(inputs(100), dtype=xp.float32)
    features = build(PivotedCholesky(), RBF(gamma=0.5), X, tolerance=1e-14)
    assert features.values.dtype == xp.float32
    assert features.exact
    Phi = to_host(features.values)
    np.testing.assert_allclose(Phi @ Phi.T, gram(RBF(gamma=0.5), inputs(100)), atol=3e-5)
    np.testing.assert_allclose(to_host(features.map(X)), Phi, atol=5e-3)


@pytest.mark.parametrize("recipe", [PivotedCholesky(), *(Nystroem(landmarks=name) for name in LANDMARKS)], ids=repr)
def test_duplicated_rows_add_no_features(recipe: FeatureRecipe, path: str) -> None:
    distinct = inputs(12)
    X = np.tile(distinct, (10, 1))
    features = build(recipe, Laplacian(gamma=1.0), X)
    assert features.rank <= 12
    if not isinstance(recipe, Nystroem) or recipe.landmarks != "k-means++":  # which may see fewer distinct rows
        assert features.rank == 12
        np.testing.assert_allclose(features.values @ features.values.T, gram(Laplacian(gamma=1.0), X), atol=1e-10)
    assert np.all(np.isfinite(features.map(X)))


@pytest.mark.parametrize("recipe", [PivotedCholesky(), Auto(), Nystroem(), Nystroem(landmarks="leverage")], ids=repr)
def test_rank_one_and_rank_zero(recipe: FeatureRecipe, path: str) -> None:
    line = np.arange(1.0, 31.0)[:, None]
    one = build(recipe, Linear(), line)
    assert one.rank == 1
    np.testing.assert_allclose(one.values @ one.values.T, line @ line.T, rtol=1e-10)
    zero = build(recipe, Linear(), np.zeros((30, 3)))
    assert zero.values.shape == (30, 1)
    assert zero.exact
    assert not np.any(zero.values)
    assert not np.any(zero.map(np.ones((4, 3))))


def test_a_cap_is_kept_and_told(path: str) -> None:
    X = inputs(200, d=5)
    features = build(Auto(rank=30), Laplacian(gamma=1.0), X)
    left = np.diagonal(gram(Laplacian(gamma=1.0), X) - features.values @ features.values.T)
    assert features.rank == 30
    assert not features.exact
    assert features.residual == pytest.approx(left.max(), abs=1e-12)
    assert features.residual > 0.1
    assert features.description.startswith("pivoted Cholesky: 30 features for 200 rows leave out ")


@each("kernel", [Laplacian(gamma=1.0), Polynomial(degree=2)])
def test_what_may_be_left_out_is_left_out_on_average(kernel: InputKernel, path: str) -> None:
    X = inputs(400, d=5)
    ranks = []
    for left_out in (0.3, 0.1, 0.01, 0.0):
        features = build(Auto(left_out=left_out), kernel, X)
        left = np.diagonal(gram(kernel, X) - features.values @ features.values.T)
        diagonal = np.diagonal(gram(kernel, X))
        assert np.mean(left) <= left_out * np.mean(diagonal) + 1e-10
        assert features.residual == pytest.approx(max(np.max(left), 0.0) / np.max(diagonal), abs=1e-11)
        assert features.exact or left_out > 0.0
        ranks.append(features.rank)
    assert ranks[0] < ranks[-1]
    assert ranks == sorted(ranks)


def test_outliers_need_no_feature_if_little_is_left_out() -> None:
    X = np.vstack([inputs(990), 1e3 * np.arange(1.0, 11.0)[:, None] * np.ones((1, 2))])
    features = build(Auto(left_out=0.02), RBF(gamma=1.0), X)
    left = np.diagonal(gram(RBF(gamma=1.0), X) - features.values @ features.values.T)
    assert np.mean(left) <= 0.02
    assert np.max(left) > 0.99  # the greedy rule would have taken all ten first
    assert build(Auto(), RBF(gamma=1.0), X).rank > features.rank


@each("landmarks", LANDMARKS)
def test_nystroem_never_exceeds_the_kernel_and_converges(landmarks: str) -> None:
    X, kernel = inputs(300), RBF(gamma=1.0)
    errors = []
    for rank in (5, 20, 80, 300):
        features = build(Nystroem(rank=rank, landmarks=landmarks), kernel, X)
        left = gram(kernel, X) - features.values @ features.values.T
        assert np.linalg.eigvalsh(left).min() > -1e-9
        assert features.residual == pytest.approx(np.diagonal(left).max(), abs=1e-9)
        errors.append(np.trace(left) / 300)
    assert errors[0] > 1e-2
    assert errors[0] > errors[1] > errors[2]
    assert errors[3] < 1e-10


def test_leverage_finds_what_uniform_sampling_misses() -> None:
    """Twenty lonely rows beside a dense cluster: each needs its own landmark."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(scale=0.05, size=(1000, 2)), rng.uniform(3, 30, size=(20, 2))])
    left = {
        name: np.mean(
            [
                20 - np.sum(build(Nystroem(60, name), RBF(gamma=1.0), X, seed=seed).values[-20:] ** 2)
                for seed in range(5)
            ]
        )
        for name in ("uniform", "leverage")
    }
    assert left["uniform"] > 10
    assert left["leverage"] < 0.3 * left["uniform"]


@each("kernel", [RBF(gamma=0.5), Laplacian(gamma=0.5), Matern(nu=1.5, gamma=0.5)], ids=repr)
def test_random_features_have_a_monte_carlo_error(kernel: InputKernel) -> None:
    X = inputs(60)
    expected = gram(kernel, X)
    q = 4000
    features = build(RandomFourier(rank=2 * q), kernel, X)
    error = features.values @ features.values.T - expected
    # cos is bounded by 1, so each entry is a mean of q terms with variance at most 1
    assert np.sqrt(np.mean(error**2)) < 1.5 * q**-0.5
    np.testing.assert_allclose(np.sum(features.values**2, axis=1), 1.0)
    assert not features.exact
    assert build(RandomFourier(rank=7), kernel, X).rank == 8


@each(
    "recipe", [Auto(), PivotedCholesky(), RandomFourier(rank=20), *(Nystroem(20, name) for name in LANDMARKS)], ids=repr
)
def test_the_seed_decides(recipe: FeatureRecipe, path: str) -> None:
    X = inputs(100)
    first, again = (build(recipe, RBF(gamma=1.0), X, seed=3) for _ in range(2))
    np.testing.assert_array_equal(first.values, again.values)
    assert clone(recipe).get_params() == recipe.get_params()


def test_indefinite_kernels_are_refused(path: str) -> None:
    X = inputs(50)
    minus = CallableKernel(lambda A, B: RBF(gamma=1.0)(A, B) - 0.5)
    with pytest.raises(ValueError, match="not positive semi-definite"):
        build(PivotedCholesky(), minus, X)
    with pytest.raises(ValueError, match="not positive semi-definite"):
        build(PivotedCholesky(), CallableKernel(lambda A, B: -(A @ B.T)), X)


@each("given", [[[0.0, 1.0], [1.0, 0.0]], [[1.0, 3.0], [3.0, 1.0]], [[-1.0, 0.0], [0.0, 1.0]]])
def test_indefinite_matrices_are_refused(given: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="not positive semi-definite"):
        build(PivotedCholesky(), Precomputed(), np.array(given))


@pytest.mark.parametrize("recipe", [PivotedCholesky(), Nystroem(), Nystroem(landmarks="leverage")], ids=repr)
@each("xp", [np, array_api_strict], ids=["numpy", "strict"])
def test_overflow_is_told_in_words(recipe: FeatureRecipe, path: str, xp: Any) -> None:
    with pytest.raises(ValueError, match=r"Polynomial.*not finite.*Standardise the inputs"):
        build(recipe, Polynomial(degree=3), xp.asarray(1e150 * inputs(40)))


def test_what_was_given_is_told() -> None:
    K = gram(RBF(gamma=1.0), inputs(20))
    with pytest.raises(ValueError, match=r"shape \(20, 19\).*square"):
        build(Auto(), Precomputed(), K[:, :-1])
    with pytest.raises(ValueError, match="symmetric"):
        build(Auto(), Precomputed(), K + np.triu(K))
    with pytest.raises(ValueError, match=r"k-means\+\+.*use landmarks='uniform' or 'leverage'"):
        build(Nystroem(landmarks="k-means++"), Precomputed(), K)
    with pytest.raises(ValueError, match="functions of the inputs"):
        build(RandomFourier(), Precomputed(), K)
    with pytest.raises(ValueError, match="landmarks='random' is given"):
        build(Nystroem(landmarks="random"), RBF(gamma=1.0), inputs(20))
    with pytest.raises(ValueError, match="tolerance=-1"):
        build(Auto(), Precomputed(), K, tolerance=-1)
    for rank in (0, -3, 2.5, True):
        with pytest.raises(ValueError, match=f"rank={rank} was given"):
            build(PivotedCholesky(rank=rank), Precomputed(), K)  # type: ignore[arg-type]


def test_names_stand_for_recipes() -> None:
    kinds = {
        "auto": Auto,
        "exact": PivotedCholesky,
        "nystroem": Nystroem,
        "fourier": RandomFourier,
        "random-fourier": RandomFourier,
    }
    for name, kind in kinds.items():
        recipe = feature_recipe(name, rank=17)
        assert type(recipe) is kind
        assert recipe.get_params()["rank"] == 17
    own = Nystroem(rank=5)
    assert feature_recipe(own, rank=17) is own
    assert own.rank == 5
    with pytest.raises(ValueError, match=r"features='nystrom' is given; expected one of 'auto'"):
        feature_recipe("nystrom")


NODES = np.polynomial.legendre.leggauss(30)[0] * 0.5 + 0.5
WEIGHTS = np.polynomial.legendre.leggauss(30)[1] * 0.5


@each("kernel", SMOOTH_TASKS, ids=repr)
def test_task_features_reproduce_values_and_derivatives(kernel: TaskKernel) -> None:
    features = task_features(kernel, NODES, orders=(0, 1))
    sizes = [np.max(kernel(NODES, NODES, orders=(a, a)).diagonal()) ** 0.5 for a in (0, 1)]
    for a in (0, 1):
        np.testing.assert_allclose(features.map(NODES, order=a), features.values[a], atol=1e-7 * sizes[a])
        for b in (0, 1):
            np.testing.assert_allclose(
                features.values[a] @ features.values[b].T,
                kernel(NODES, NODES, orders=(a, b)),
                atol=1e-11 * sizes[a] * sizes[b],
            )


@each("kernel", [*SMOOTH_TASKS, *ROUGH_TASKS], ids=repr)
def test_task_features_of_values_alone(kernel: TaskKernel) -> None:
    features = task_features(kernel, NODES[:, None])
    (Psi,) = features.values
    np.testing.assert_allclose(Psi @ Psi.T, kernel(NODES, NODES), atol=1e-10)
    np.testing.assert_allclose(features.map(NODES), Psi, atol=1e-7)
    assert features.rank == Psi.shape[1]


@each("orders", [(0,), (0, 1)])
@each("kernel", SMOOTH_TASKS, ids=repr)
def test_the_derivative_of_the_map_is_its_slope(kernel: TaskKernel, orders: tuple[int, ...]) -> None:
    # a looser tolerance: finite differences magnify the rounding in the transform
    psi = task_features(kernel, NODES, orders=orders, tolerance=1e-8).map
    theta, step = np.linspace(0.05, 0.95, 17), 1e-4
    slope = (psi(theta + step) - psi(theta - step)) / (2 * step)
    exact = psi(theta, order=1)
    np.testing.assert_allclose(slope, exact, atol=2e-4 * np.abs(exact).max())


def test_a_constant_kernel_has_one_feature_without_slope() -> None:
    features = task_features(ConstantTask(), NODES, orders=(0, 1))
    assert features.rank == 1
    np.testing.assert_allclose(features.values[0], 1.0)
    assert not np.any(features.values[1])


def test_tasks_in_the_plane_and_bandwidths_from_nodes() -> None:
    nodes = inputs(40)
    features = task_features(Gaussian(gamma="median"), nodes)
    widths = features.map.kernel.gamma  # type: ignore[attr-defined]
    assert len(widths) == 2  # one for each number of a task
    assert min(widths) > 0.0
    np.testing.assert_allclose(
        features.values[0] @ features.values[0].T, Gaussian().resolve(nodes)(nodes, nodes), atol=1e-11
    )


def test_task_maps_take_arrays_of_any_library(xp: Any) -> None:
    psi = task_features(Gaussian(gamma=2.0), xp.asarray(NODES), orders=(0, 1)).map
    values = psi(xp.asarray(NODES))
    assert isinstance(values, np.ndarray)
    np.testing.assert_array_equal(values, psi(NODES[:, None]))


def test_whitening_composes_on_the_right() -> None:
    psi = task_features(Gaussian(gamma=2.0), NODES).map
    W = np.random.default_rng(0).normal(size=(psi.rank, 3))
    narrow = psi.whiten(W)
    assert isinstance(narrow, TaskMap)
    assert narrow.rank == 3
    np.testing.assert_allclose(narrow(NODES, order=1), psi(NODES, order=1) @ W, rtol=1e-6, atol=1e-6)


@each("kernel", [Gaussian(gamma=2.0), MaternTask(nu=1.5), PiecewiseLinear()], ids=repr)
@each("weighted", [False, True])
def test_integrated_ridge_is_a_plain_ridge(kernel: TaskKernel, weighted: bool) -> None:
    rho = 10.0 ** (4 * NODES - 2) if weighted else None
    basis = integrated_basis(task_features(kernel, NODES), WEIGHTS, rho)
    density = WEIGHTS if rho is None else WEIGHTS * rho
    Psi = basis.values[0]
    np.testing.assert_allclose(Psi.T @ (density[:, None] * Psi), np.eye(basis.rank), atol=1e-10)
    C = np.random.default_rng(0).normal(size=(7, basis.rank))
    integral = np.sum(density * np.sum((C @ Psi.T) ** 2, axis=0))
    assert integral == pytest.approx(np.sum(C**2), rel=1e-9)
    np.testing.assert_allclose(basis.map(NODES), Psi, atol=1e-3 * np.abs(Psi).max())


def test_the_integrated_basis_keeps_the_functions_and_their_slopes() -> None:
    features = task_features(Gaussian(gamma=2.0), NODES, orders=(0, 1), tolerance=1e-8)
    basis = integrated_basis(features, WEIGHTS)
    # the same functions on the nodes: the columns of Ψ_0 lie in the span of the new basis, with their slopes
    coefficients = basis.values[0].T @ (WEIGHTS[:, None] * features.values[0])
    np.testing.assert_allclose(basis.values[0] @ coefficients, features.values[0], atol=1e-6)
    np.testing.assert_allclose(basis.map(NODES, order=1), basis.values[1], atol=1e-5 * np.abs(basis.values[1]).max())


def test_negative_weights_are_refused() -> None:
    features = task_features(Gaussian(gamma=2.0), NODES)
    with pytest.raises(ValueError, match=r"expected one number ≥ 0 for each of the 30 nodes"):
        integrated_basis(features, -WEIGHTS)
    with pytest.raises(ValueError, match=r"shape \(29,\)"):
        integrated_basis(features, WEIGHTS[1:])


# --- what is multiplied from the right


@each("recipe", [PivotedCholesky(), Nystroem(rank=9), RandomFourier(rank=6)], ids=repr)
def test_a_map_takes_a_factor_on_its_right(recipe: FeatureRecipe, xp: Any) -> None:
    rng = np.random.default_rng(0)
    X, new = xp.asarray(rng.normal(size=(20, 2))), xp.asarray(rng.normal(size=(7, 2)))
    phi = recipe.build(RBF(gamma=0.5), X, 1e-12, rng).map
    R, S = rng.normal(size=(phi.rank, 4)), rng.normal(size=(4, 3))
    once, twice = phi.then(R), phi.then(R).then(S)
    assert (once.rank, twice.rank) == (4, 3)
    assert phi.width == once.width == twice.width >= phi.rank
    assert type(twice(new)) is type(X)
    expected = np.asarray(to_host(phi(new))) @ R
    np.testing.assert_allclose(to_host(once(new)), expected, atol=1e-9)
    np.testing.assert_allclose(to_host(twice(new)), expected @ S, atol=1e-9)


def test_a_precomputed_map_takes_a_factor_on_its_right() -> None:
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(20, 2)), rng.normal(size=(7, 2))
    kernel = RBF(gamma=0.5)
    phi = PivotedCholesky(rank=6).build(Precomputed(), kernel(X, X), 1e-12, rng).map
    assert isinstance(phi, PrecomputedMap)
    R = rng.normal(size=(phi.rank, 2))
    rows = kernel(new, X)
    np.testing.assert_allclose(phi.then(R)(rows), phi(rows) @ R, atol=1e-10)
    assert phi.then(R).width == phi.width == 6


def test_a_folded_factor_is_made_in_double_precision(xp: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2))
    phi = PivotedCholesky(rank=8).build(RBF(gamma=0.5), X, 1e-12, rng).map
    assert isinstance(phi, KernelMap)
    single = KernelMap(phi.kernel, phi.landmarks, xp.asarray(np.asarray(phi.transform), dtype=xp.float32))
    folded = single.then(np.full((phi.rank, 1), 1e-3)).transform
    assert folded.dtype == xp.float32
    exact = np.float64(np.asarray(phi.transform, np.float32)) @ np.full((phi.rank, 1), 1e-3)
    np.testing.assert_array_equal(to_host(folded), np.float32(exact))


# ------------------------------------------------------------------------------------------------ an inverse at need
@each("r", [1, 7, 60])
def test_inverse_and_what_it_makes_without_its_numbers(r: int) -> None:
    rng = np.random.default_rng(r)
    lower = np.tril(rng.normal(size=(r, r))) + 3.0 * np.eye(r)
    T, R = Inverse(lower), rng.normal(size=(r, 4))
    assert T.shape == (r, r)
    np.testing.assert_allclose(T.times(R), np.linalg.solve(lower.T, R), atol=1e-12)
    assert "matrix" not in vars(T), "the inverse was computed"
    np.testing.assert_allclose(T.matrix @ lower.T, np.eye(r), atol=1e-12)
    np.testing.assert_array_equal(np.asarray(T), T.matrix)
    assert np.asarray(T, dtype=np.float32).dtype == np.float32


def test_a_prediction_needs_no_inverse() -> None:
    X = np.random.default_rng(0).normal(size=(40, 2))
    phi = PivotedCholesky().build(RBF(gamma=1.0), X, 1e-10, np.random.default_rng(0)).map
    assert isinstance(phi, KernelMap)
    R = np.random.default_rng(1).normal(size=(phi.rank, 3))
    folded = phi.then(R)(X)
    assert isinstance(phi.transform, Inverse)
    assert "matrix" not in vars(phi.transform)
    np.testing.assert_allclose(folded, phi(X) @ R, atol=1e-6)
    assert np.asarray(pickle.loads(pickle.dumps(phi)).transform).shape == (phi.rank, phi.rank)


def test_a_model_does_not_keep_the_whole_factor() -> None:
    X = np.random.default_rng(0).normal(size=(200, 1))
    phi = PivotedCholesky(rank=5).build(RBF(gamma=1.0), X, 1e-12, np.random.default_rng(0)).map
    assert phi.transform.lower.base is None
    copied = np.array(phi.transform)
    copied[:] = 0.0
    assert np.any(phi.transform.matrix), "a copy is a copy"
    assert len(pickle.dumps(phi.transform)) < 5 * 5 * 8 + 500, "the inverse does not travel"


# ------------------------------------------------------------------------------------------------- few pivots of many
def columns_asked_for(kernel: Any, n: int, monkeypatch: pytest.MonkeyPatch, **options: Any) -> tuple[Any, int]:
    """The features of n rows on a line, and the largest block of the Gram that was computed for them."""
    sizes: list[int] = []
    block = cholesky_module.Rows.block

    def watched(self: Any, rows: Any, columns: Any) -> Any:
        found = block(self, rows, columns)
        sizes.append(int(np.prod(found.shape)))
        return found

    monkeypatch.setattr(cholesky_module.Rows, "block", watched)
    X = np.linspace(0.0, 1.0, n)[:, None] ** 2
    found = PivotedCholesky(**options).build(kernel, X, 1e-10, np.random.default_rng(0))
    np.testing.assert_allclose(found.values @ found.values.T, kernel(X, X), atol=1e-9 if not options else 2.0)
    return found, max(sizes)


@pytest.mark.parametrize("n", [1280, 1281, 1500])
def test_the_gram_of_many_rows_with_few_pivots_is_not_formed(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    features, largest = columns_asked_for(RBF(gamma=3.0), n, monkeypatch)
    assert features.exact
    assert features.rank < 20
    assert largest == n * n if n <= 1280 else largest < 0.5 * n * n
    again, _ = columns_asked_for(RBF(gamma=3.0), n, monkeypatch)
    np.testing.assert_array_equal(again.values, features.values)


def test_a_cap_is_reached_by_greed(monkeypatch: pytest.MonkeyPatch) -> None:
    features, largest = columns_asked_for(RBF(gamma=500.0), 1300, monkeypatch, rank=20)
    assert largest == 1300**2
    assert features.rank == 20


@pytest.mark.slow
def test_fits_of_many_rows_are_the_same_each_time() -> None:
    X = np.random.default_rng(0).uniform(size=(1300, 1))
    models = [InfiniteQuantileRegressor(n_nodes=8).fit(X, X[:, 0]) for _ in range(2)]
    assert models[0].objective_ == models[1].objective_


@each("n", [300, 1300])
def test_a_kernel_that_is_none_is_refused_whatever_the_number_of_rows(n: int) -> None:
    X = np.random.default_rng(0).normal(size=(n, 2))

    def negative(A: Any, B: Any) -> Any:
        return -((A[:, None] - B[None]) ** 2).sum(2)

    with pytest.raises(ValueError, match="not positive semi-definite"):
        InfiniteQuantileRegressor(kernel=negative, n_nodes=5).fit(X, X[:, 0])
    gram = np.zeros((n, n))
    gram[:5, :5] = 1.0
    gram[100, 101] = gram[101, 100] = 5.0
    with pytest.raises(ValueError, match="not positive semi-definite"):
        InfiniteQuantileRegressor(kernel="precomputed", n_nodes=5).fit(gram, X[:, 0])


@each("gamma", [1e-12, 1e-300])
def test_a_node_basis_of_tasks_that_the_kernel_cannot_tell_apart(gamma: float) -> None:
    # K is a matrix of ones to the last bit, or nearly: an equation with it has no solution
    nodes = np.linspace(0.1, 0.9, 5)
    psi = node_basis(Gaussian(gamma=gamma), nodes, np.full(5, 0.2))
    assert np.all(np.isfinite(psi.map(nodes)))


def test_a_node_basis_of_nearly_equal_nodes() -> None:
    nodes = np.array([0.1, 0.5, 0.5 + 1e-9])
    psi = node_basis(Gaussian(gamma=1.0), nodes, np.full(3, 1 / 3))
    assert np.all(np.isfinite(psi.map(nodes)))
