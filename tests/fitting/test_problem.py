"""From data and specs to an objective: canonical rows, and what ``pose`` makes of a recipe."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from infinitask.field import Problem
from infinitask.fitting import Data, Recipe
from infinitask.fitting._pose import pose
from infinitask.kernels import RBF, Gaussian
from infinitask.losses import Expectile, LevelSet, Pinball
from infinitask.measures import Discrete, Uniform
from infinitask.objective import Smoothing
from infinitask.penalties import IntegratedRidge, Ridge
from infinitask.tasks import LevelSetTask, Order, Task


def rows(n: int = 20, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)), rng.normal(size=n)


def same(one: Data, other: Data) -> bool:
    pairs = ((one.X, other.X), (one.y, other.y), (one.weight, other.weight))
    return all((a is None and b is None) or np.array_equal(a, b) for a, b in pairs)


# -------------------------------------------------------------------------------------------------------- Data
def test_canonical_rows_are_sorted_distinct_and_weigh_one() -> None:
    X, y = rows()
    X, y = np.concatenate([X, X[:5]]), np.concatenate([y, y[:5]])
    data = Data.canonical(X, y, np.ones(25))
    assert data.X.shape == (20, 2)
    assert np.isclose(data.weight.sum(), 1.0)
    assert np.all(data.weight > 0.0)
    table = np.column_stack([data.X, data.y])
    assert np.array_equal(table, np.unique(np.column_stack([X, y]), axis=0))


def test_canonical_is_a_fixed_point() -> None:
    X, y = rows()
    once = Data.canonical(X, y, np.full(20, 2.0))
    twice = Data.canonical(once.X, once.y, np.full(20, 2.0))
    assert same(once, twice)


@pytest.mark.parametrize("with_y", [True, False])
def test_weights_are_repetitions(with_y: bool) -> None:
    X, y = rows()
    times = np.random.default_rng(1).integers(0, 4, size=20)
    weighted = Data.canonical(X, y if with_y else None, times.astype(float))
    X, y = np.repeat(X, times, axis=0), np.repeat(y, times)
    assert same(weighted, Data.canonical(X, y if with_y else None, np.ones(len(y))))


@pytest.mark.parametrize("repeats", [1, 2, 3])
def test_the_order_of_rows_leaves_no_trace(repeats: int) -> None:
    X, y = rows()
    X, y = np.repeat(X, repeats, axis=0), np.repeat(y, repeats)
    rng = np.random.default_rng(2)
    weight, order = rng.random(len(y)), rng.permutation(len(y))
    assert same(Data.canonical(X, y, weight), Data.canonical(X[order], y[order], weight[order]))


def test_equal_inputs_with_different_targets_stay_apart() -> None:
    X = np.zeros((4, 1))
    y = np.array([1.0, 0.0, 1.0, 2.0])
    data = Data.canonical(X, y, np.ones(4))
    assert data.y is not None
    assert data.y.tolist() == [0.0, 1.0, 2.0]
    assert data.weight.tolist() == [0.25, 0.5, 0.25]
    assert Data.canonical(X, None, np.ones(4)).X.shape == (1, 1)


def test_zeros_of_either_sign_are_equal() -> None:
    data = Data.canonical(np.array([[0.0], [-0.0]]), np.array([-0.0, 0.0]), np.ones(2))
    assert data.X.shape == (1, 1)


def test_rows_of_a_gram_matrix_stay_where_they_are() -> None:
    X, y = rows()
    K = RBF(0.5)(X, X)
    weight = np.ones(20)
    weight[[3, 7]] = 0.0
    data = Data.canonical(K, y, weight, gram=True)
    kept = np.flatnonzero(weight)
    assert np.array_equal(data.X, K[np.ix_(kept, kept)])
    assert np.array_equal(data.y, y[kept])


@pytest.mark.parametrize("scale", [5e-324, 1e-300, 1e308])
def test_weights_of_any_size(scale: float) -> None:
    X, y = rows()
    data = Data.canonical(X, y, np.full(20, scale))
    np.testing.assert_allclose(data.weight, 0.05)


def test_the_arguments_are_left_alone() -> None:
    X, y = rows()
    weight = np.arange(20.0)
    copies = X.copy(), y.copy(), weight.copy()
    Data.canonical(X, y, weight)
    assert all(np.array_equal(a, b) for a, b in zip((X, y, weight), copies, strict=True))


# -------------------------------------------------------------------------------------------------------- pose
def recipe(**changes: Any) -> Recipe:
    names = {part.name for part in fields(Task)}
    parts = {"loss": Expectile(), "measure": Uniform()} | {k: v for k, v in changes.items() if k in names}
    if "noncrossing" in changes:
        parts["order"] = Order(changes["noncrossing"])
    kind = LevelSetTask if isinstance(parts["loss"], LevelSet) else Task
    others = {name: value for name, value in changes.items() if name not in names | {"noncrossing"}}
    return Recipe(kind(**parts), **({"n_nodes": 6, "alpha": 0.3, "alpha_bias": 0.7} | others))


def posed(spec: Recipe, n: int = 20) -> tuple[Problem, Data]:
    X, y = rows(n)
    data = Data.canonical(X, None if isinstance(spec.task.loss, LevelSet) else y, np.ones(n))
    return pose(spec, data, np.random.default_rng(0)), data


def norm(problem: Problem, z: np.ndarray, spec: Recipe) -> float:
    """(λ/2)‖h‖² + (λ_b/2)‖b‖², from the field alone: norms by Gram matrices on its landmarks."""
    field = problem.field(z)
    c = np.zeros(0) if field.bias_coef is None else field.bias_coef
    return 0.5 * spec.alpha * float(np.sum(field.coef**2)) + 0.5 * spec.alpha_bias * float(c @ c)


@pytest.mark.parametrize("bias", [None, "task", "polynomial", Gaussian(5.0)], ids=str)
@pytest.mark.parametrize(
    ("penalty", "noncrossing"), [(Ridge(), 0.0), (Ridge(), 0.4), (IntegratedRidge(), 0.0)], ids=str
)
def test_the_objective_is_the_formula_of_the_field(noncrossing: float, bias: Any, penalty: Any) -> None:
    spec = recipe(noncrossing=noncrossing, bias_kernel=bias, penalty=penalty)
    problem, data = posed(spec)
    z = np.random.default_rng(1).normal(size=problem.objective.size)
    nodes, w = problem.quadrature.nodes[:, 0], problem.quadrature.weights
    field = problem.field(z)
    H, slope = field(data.X, nodes), field(data.X, nodes, order=1) if noncrossing else None
    assert data.y is not None
    expected = data.weight @ Expectile().value(nodes, data.y[:, None], H) @ w + norm(problem, z, spec)
    if slope is not None:
        expected += noncrossing * (data.weight @ np.maximum(-slope, 0.0) @ w)
    found = problem.objective.evaluate(z, Smoothing((0.0,) * len(problem.objective.integrals))).primal
    assert found == pytest.approx(expected, rel=1e-6)


def test_the_level_set_objective_is_the_formula_of_the_field() -> None:
    spec = recipe(
        loss=LevelSet(),
        measure=Uniform(0.05, 1.0),
        penalty=IntegratedRidge(),
        alpha=1.0,
        alpha_bias=0.2,
    )
    problem, data = posed(spec)
    z = np.random.default_rng(1).normal(size=problem.objective.size)
    nodes, w = problem.quadrature.nodes[:, 0], problem.quadrature.weights
    field = problem.field(z)
    t = -field.bias(nodes)
    outside = np.maximum(-field(data.X, nodes), 0.0) / nodes  # the field is h − t already
    expected = data.weight @ outside @ w - w @ t + norm(problem, z, spec)
    found = problem.objective.evaluate(z, Smoothing((0.0,))).primal
    assert found == pytest.approx(expected, rel=1e-6)


def test_the_features_give_back_the_kernels() -> None:
    problem, data = posed(recipe(kernel=RBF(0.5), task_kernel=Gaussian(2.0)))
    phi, psi = problem.phi.values, problem.psi.values[0]
    nodes = problem.quadrature.nodes
    np.testing.assert_allclose(phi @ phi.T, RBF(0.5)(data.X, data.X), atol=1e-8)
    np.testing.assert_allclose(psi @ psi.T, Gaussian(2.0)(nodes, nodes), atol=1e-8)
    assert problem.task_kernel.gamma == 2.0  # type: ignore[attr-defined]


def test_a_penalty_on_the_derivative_brings_its_features() -> None:
    without, _ = posed(recipe())
    with_it, _ = posed(recipe(noncrossing=1.0))
    assert len(without.objective.integrals) == 1
    assert len(with_it.objective.integrals) == 2
    assert with_it.psi.rank >= without.psi.rank


def test_a_bias_with_the_task_kernel_is_one_more_feature() -> None:
    alone, _ = posed(recipe(bias_kernel=None))
    joined, _ = posed(recipe(bias_kernel="task"))
    apart, _ = posed(recipe(bias_kernel=Gaussian(1.0)))
    r, s = alone.objective.shape
    assert joined.objective.shape == (r + 1, s)
    assert joined.objective.bias_size == 0
    assert apart.objective.shape == (r, s)
    assert apart.objective.bias_size > 0


def test_a_discrete_measure_brings_its_own_nodes() -> None:
    problem, _ = posed(recipe(loss=Pinball(), measure=Discrete([0.9, 0.1], weights=[3.0, 1.0]), n_nodes=50))
    assert problem.quadrature.nodes[:, 0].tolist() == [0.1, 0.9]
    assert problem.quadrature.weights.tolist() == [0.25, 0.75]


def test_posing_does_not_touch_the_specs() -> None:
    kernel, task = RBF(), Gaussian()
    posed(recipe(kernel=kernel, task_kernel=task))
    assert (kernel.gamma, task.gamma) == ("median", "median")


@pytest.mark.parametrize(
    "wrong",
    [{"alpha": -1.0}, {"alpha_bias": -1.0}, {"tol": -1.0}, {"noncrossing": -1.0}, {"max_iter": 0}, {"n_nodes": 0}],
    ids=repr,
)
def test_a_recipe_made_by_hand_is_checked_as_parameters_are(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))}=.* was given; it must be"):
        recipe(**wrong)


def test_weights_that_do_not_sum_to_one_are_refused() -> None:
    with pytest.raises(ValueError, match="must sum to one"):
        Data(np.zeros((4, 1)), np.zeros(4), np.ones(4))


def test_data_take_lists_and_no_weights() -> None:
    data = Data.canonical([[1.0], [0.0]], [2.0, 3.0])
    np.testing.assert_array_equal(data.X[:, 0], [0.0, 1.0])
    np.testing.assert_array_equal(data.weight, [0.5, 0.5])
    with pytest.raises(ValueError, match="Data of shapes"):
        Data.canonical([[1.0], [0.0]], [2.0])
