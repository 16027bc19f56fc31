"""The star discrepancy of nodes in several dimensions: what it is, what it bounds, and where its bound ends."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone

from infinitask import InfiniteTaskEstimator
from infinitask.bounds import _fitted, _formula, bound_of, propose_nodes
from infinitask.bounds._formula import star_discrepancy
from infinitask.kernels import Gaussian
from infinitask.losses import ConvexLoss, CostSensitiveHinge, Pinball
from infinitask.losses._rows import Stability
from infinitask.measures import Beta, GaussLegendre, Halton, MonteCarlo, ProductMeasure, Quadrature, Sobol, Uniform
from tests.support.each import each

RULES = [GaussLegendre(), Sobol(), Sobol(scramble=False), Halton(scramble=False), MonteCarlo()]


def cube(dim: int) -> ProductMeasure:
    return ProductMeasure([Uniform(0.0, 1.0)] * dim)


def counted(u: np.ndarray, weights: np.ndarray) -> float:
    """The largest error over the closed and the half-open boxes whose corners have coordinates of the nodes."""
    worst = 0.0
    for corner in itertools.product(*(np.append(np.unique(column), 1.0) for column in u.T)):
        closed, half_open = np.all(u <= corner, axis=1), np.all(u < corner, axis=1)
        volume = math.prod(corner)
        worst = max(worst, float(weights[closed].sum()) - volume, volume - float(weights[half_open].sum()))
    return worst


@each("m", [1, 2, 7])
@each("dim", [1, 2, 3, 4])
def test_the_discrepancy_is_the_largest_deviation_over_all_boxes(dim: int, m: int) -> None:
    rng = np.random.default_rng(10 * dim + m)
    on_a_grid = rng.integers(0, 5, size=(m, dim)) / 4.0  # coordinates that coincide, and some on the border
    for u in (rng.uniform(size=(m, dim)), on_a_grid):
        for weights in (np.full(m, 1.0 / m), rng.dirichlet(np.ones(m)), np.append(1.5, np.full(m - 1, -0.5 / m))):
            weights = weights / np.sum(weights)
            found = star_discrepancy(u, weights)
            assert found == pytest.approx(counted(u, weights), abs=1e-12)
            t = rng.uniform(size=(500, dim))
            errors = (u[None] <= t[:, None]).all(axis=2) @ weights - np.prod(t, axis=1)
            assert np.max(np.abs(errors)) <= found + 1e-12


@each("dim", [1, 2, 3])
def test_the_discrepancy_of_a_centred_grid(dim: int) -> None:
    # the box that ends at the last nodes has all of the mass, on less than the whole cube: 1 − (1 − 1/(2k))^d
    for k in (1, 2, 5, 8):
        line = Quadrature(((np.arange(k) + 0.5) / k)[:, None], np.full(k, 1.0 / k))
        grid = Quadrature.tensor([line] * dim)
        edge = 1.0 - 0.5 / k
        assert star_discrepancy(grid.nodes, grid.weights) == pytest.approx(1.0 - edge**dim)


def test_one_point_has_the_discrepancy_that_is_known() -> None:
    # of all single points (a, …, a) the best one has a^d = 1 − a: in two dimensions the golden section
    a = (math.sqrt(5.0) - 1.0) / 2.0
    assert star_discrepancy(np.array([[a, a]]), np.ones(1)) == pytest.approx(1.0 - a**2) == pytest.approx(a)
    for other in (a - 0.01, a + 0.01):
        assert star_discrepancy(np.array([[other, other]]), np.ones(1)) > a + 1e-3


def test_coordinates_that_tell_nothing_change_nothing() -> None:
    rng = np.random.default_rng(0)
    u, weights = rng.uniform(size=(12, 2)), rng.dirichlet(np.ones(12))
    one = star_discrepancy(u, weights)
    assert star_discrepancy(u[:, ::-1], weights) == pytest.approx(one)  # nor does the order of coordinates
    assert star_discrepancy(np.repeat(u, 2, axis=0), np.repeat(weights, 2) / 2.0) == pytest.approx(one)
    for axis in (0, 1):  # boxes as long as the cube along the other axis are among those that are compared
        assert star_discrepancy(u[:, axis], weights) <= one
    flat = np.column_stack([u, np.zeros(12)])  # at 0, every box of any length has the nodes
    assert star_discrepancy(flat, weights) >= one


@each("rule", RULES, ids=str)
@each("dim", [2, 3])
def test_fewer_cuts_give_an_upper_bound(dim: int, rule: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = rule(cube(dim), 60, rng=0)
    exact, bounds = star_discrepancy(nodes.nodes, nodes.weights), []
    for cuts in (4, 7, 13, 25, 49, 97):
        with monkeypatch.context() as patch:
            patch.setattr(_formula, "MOST_CELLS", (cuts + 0.5) ** dim)
            bounds.append(star_discrepancy(nodes.nodes, nodes.weights))
    assert bounds[-1] == exact  # 60 nodes have at most 62 cuts
    assert min(bounds) >= exact
    assert max(bounds) > exact + 0.01  # it does leave some out
    assert all(coarse >= fine - 1e-12 for coarse, fine in itertools.pairwise(bounds[2:]))


@each("rule", RULES, ids=str)
@each("dim", [1, 2, 3])
def test_hlawka(dim: int, rule: Any) -> None:
    """f = Σ_S c_S Π_(k in S) (1 − θ_k) has the variation Σ_S |c_S|, and a box that ends inside the cube has 1."""
    nodes = rule(cube(dim), 30, rng=1)
    found, u = star_discrepancy(nodes.nodes, nodes.weights), nodes.nodes
    rng = np.random.default_rng(0)
    sets = [s for size in range(1, dim + 1) for s in itertools.combinations(range(dim), size)]
    for _ in range(20):
        c = rng.normal(size=len(sets))
        values = sum(a * np.prod(1.0 - u[:, s], axis=1) for a, s in zip(c, sets, strict=True))
        integral = sum(a * 0.5 ** len(s) for a, s in zip(c, sets, strict=True))
        assert abs(nodes.integrate(values) - integral) <= np.sum(np.abs(c)) * found + 1e-12
    boxes = rng.uniform(size=(4000, dim))
    errors = (u[None] <= boxes[:, None]).all(axis=2) @ nodes.weights - np.prod(boxes, axis=1)
    assert 0.7 * found < np.max(np.abs(errors)) <= found + 1e-12  # no smaller number would do


@each("dim", [2, 3])
def test_proinov_bounds_the_error_of_a_kink_by_its_slope(dim: int) -> None:
    for m in (8, 32, 128):
        for rule in (Sobol(scramble=False), Halton(scramble=False), MonteCarlo()):
            nodes = rule(cube(dim), m, rng=0)
            bound = 4.0 * star_discrepancy(nodes.nodes, nodes.weights) ** (1.0 / dim)
            fine = GaussLegendre()(cube(dim), 40**dim)
            for centre in np.random.default_rng(m).uniform(size=(5, dim)):
                # the distance from a point has the Lipschitz constant 1 in the maximum norm
                error = nodes.integrate(np.max(np.abs(nodes.nodes - centre), axis=1)) - fine.integrate(
                    np.max(np.abs(fine.nodes - centre), axis=1)
                )
                assert abs(error) <= bound


def mixed_differences(dim: int, k: int) -> float:
    """Σ over k^d cells of |the mixed difference of max(0, θ_1 + … + θ_d − d/2)|: a lower bound of its variation."""
    axis = np.linspace(0.0, 1.0, k + 1)
    values = np.maximum(0.0, sum(np.meshgrid(*[axis] * dim, indexing="ij")) - dim / 2.0)
    for along in range(dim):
        values = np.diff(values, axis=along)
    return float(np.sum(np.abs(values)))


def test_a_kink_has_no_variation_of_hardy_and_krause_from_three_dimensions_on() -> None:
    two, three = ([mixed_differences(dim, k) for k in (8, 16, 32, 64)] for dim in (2, 3))
    np.testing.assert_allclose(two, 1.0, atol=1e-9)  # the length of the kink, as a mass of ∂₁∂₂f
    ratios = np.array(three[1:]) / np.array(three[:-1])
    np.testing.assert_allclose(ratios, 2.0, atol=0.1)  # twice as many cells along each axis, twice the sum


@each("dim", [2, 3])
def test_the_nodes_of_sobol_follow_the_printed_rate_and_those_of_a_grid_do_not(dim: int) -> None:
    m = 2 ** np.arange(4, 9)
    sobol, grid = (
        np.array([star_discrepancy(q.nodes, q.weights) * k / math.log(k) ** dim for k, q in zip(m, rule, strict=True)])
        for rule in ([r(cube(dim), int(k)) for k in m] for r in (Sobol(scramble=False), GaussLegendre()))
    )
    assert np.all(np.diff(sobol) < 0.0)
    assert np.max(sobol) < 0.3
    assert grid[-1] > 4.0 * sobol[-1]


@each("dim", [2, 3, 4])
def test_the_nodes_proposed_for_several_dimensions_are_the_fewest_that_suffice(dim: int) -> None:
    for statistical in (0.6, 0.2, 0.12):
        m = propose_nodes(7, statistical=statistical, dim=dim)
        half, full = (Sobol(scramble=False)(cube(dim), k) for k in (m // 2, m))
        assert star_discrepancy(full.nodes, full.weights) <= statistical < star_discrepancy(half.nodes, half.weights)
        assert propose_nodes(7, statistical=3.0 * statistical, variation=3.0, dim=dim) == m
    assert propose_nodes(100, dim=dim) == propose_nodes(7, statistical=0.1, dim=dim)
    assert propose_nodes(100, dim=dim) >= propose_nodes(100, dim=dim - 1)


def test_what_is_too_large_to_be_computed_is_refused() -> None:
    with pytest.raises(ValueError, match=r"dim=5 was given; .* at most 4 dimensions"):
        propose_nodes(100, dim=5)
    with pytest.raises(ValueError, match=r"at most 1e-05, and 128 nodes.*Give a larger `statistical`"):
        propose_nodes(100, statistical=1e-5, dim=4)


def test_the_discrepancy_of_many_nodes_of_a_line_takes_no_square_of_their_number() -> None:
    u, m = np.random.default_rng(0).uniform(size=200_000), 200_000
    assert star_discrepancy(u, np.full(m, 1.0 / m)) == pytest.approx(stats.kstest(u, "uniform").statistic)


def test_the_largest_n_whose_nodes_are_computed_is_that_of_the_documentation() -> None:
    nodes = Sobol(scramble=False)(cube(4), 128)
    assert int(star_discrepancy(nodes.nodes, nodes.weights) ** -2) == 273


class TwoLevels(ConvexLoss):
    """The pinball loss at the level θ_1, times 1 + θ_2."""

    dim = 2
    domain = (0.0, 1.0)

    def value(self, theta: Any, y: Any, h: Any) -> Any:
        r = y - h
        return np.maximum(theta[:, 0] * r, (theta[:, 0] - 1.0) * r) * (1.0 + theta[:, 1])

    def slope(self, theta: Any, y: Any, h: Any) -> Any:
        return ((y < h) - theta[:, 0]) * (1.0 + theta[:, 1])

    def stability(self, theta: Any, weights: Any, ends: Any, y_bound: float) -> Stability:
        steepest = np.maximum(theta[:, 0], 1.0 - theta[:, 0]) * (1.0 + theta[:, 1])
        mean = float(weights @ steepest)
        return Stability(slope=mean, zero=y_bound * mean, reach=y_bound, value_rate=3.0, slope_rate=2.0)


def plane(n: int, seed: int, **params: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 1))
    y = np.clip(np.sin(5.0 * X[:, 0]) + 0.2 * rng.normal(size=n), -1.0, 1.0)
    common: dict[str, Any] = {"measure": cube(2), "quadrature": Sobol(scramble=False), "n_nodes": 64, "alpha": 0.5}
    common |= {"bias_kernel": None, "gamma": 2.0, "task_gamma": 0.5, "tol": 1e-6}
    return InfiniteTaskEstimator(TwoLevels(), **(common | params)).fit(X, y), X, y


def risks(model: Any, X: np.ndarray, y: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """The empirical risk at each θ, (m,)."""
    return np.asarray(np.mean(TwoLevels().value(theta, y[:, None], model.field_(X, theta)), axis=0))


def test_the_bound_of_a_model_with_two_coordinates_holds_and_shrinks() -> None:
    model, X, y = plane(200, 0)
    bound = bound_of(model, X, y, y_bound=1.0)
    assert bound.discrepancy == pytest.approx(4.0 * star_discrepancy(model.nodes_, model.weights_) ** 0.5)
    assert any("Proinov" in note for note in bound.notes)
    fine = Sobol(scramble=False)(cube(2), 4096)
    assert abs(np.mean(risks(model, X, y, fine.nodes)) - bound.empirical_risk) <= bound.quadrature
    _, X_new, y_new = plane(2000, 1, n_nodes=4, tol=0.1)
    assert bound.risk is not None
    assert np.mean(risks(model, X_new, y_new, fine.nodes)) <= bound.risk
    more = bound_of(plane(200, 0, n_nodes=1024)[0], X, y, y_bound=1.0)
    assert more.quadrature < 0.5 * bound.quadrature
    assert more.statistical == pytest.approx(bound.statistical, rel=0.02)


def test_the_variation_in_two_coordinates_is_a_lipschitz_constant() -> None:
    model, X, y = plane(60, 0)
    bound, rng = bound_of(model, X, y, y_bound=1.0), np.random.default_rng(0)
    u = rng.uniform(size=(300, 2))
    v = np.clip(u + rng.uniform(-0.05, 0.05, size=u.shape), 0.0, 1.0)
    steepness = np.abs(risks(model, X, y, u) - risks(model, X, y, v)) / np.max(np.abs(u - v), axis=1)
    assert 0.05 * bound.variation < np.max(steepness) <= bound.variation
    # the sides of Θ stretch the distances between tasks
    stretched = InfiniteTaskEstimator(TwoLevels(), measure=cube(2), quadrature="sobol", random_state=0, n_nodes=8)
    stretched.set_params(alpha=0.1, bias_kernel=None, gamma=2.0, task_gamma=0.5)
    slopes = []
    for side in (1.0, 0.5):
        wide = ProductMeasure([Uniform(0.0, 1.0), Uniform(0.0, side)])
        fitted = clone(stretched).set_params(measure=wide, task_gamma=0.5).fit(X, y)
        slopes.append(_fitted._sizes(fitted, None, derivative=True)[1])
    assert slopes[1] / slopes[0] == pytest.approx(np.sqrt(1.25 / 2.0))


@pytest.mark.parametrize("bias_kernel", [None, "task"])
def test_each_coordinate_may_have_its_own_bandwidth(bias_kernel: Any) -> None:
    """With γ_k for coordinate k, the slope over the sides s of Θ is that of one γ for distances √Σ γ_k s_k²."""
    same, X, y = plane(60, 0, task_kernel=Gaussian(gamma=0.5), bias_kernel=bias_kernel, alpha_bias=None)
    each, *_ = plane(60, 0, task_kernel=Gaussian(gamma=(0.5, 0.5)), bias_kernel=bias_kernel, alpha_bias=None)
    own, *_ = plane(60, 0, task_kernel=Gaussian(gamma=(0.2, 0.8)), bias_kernel=bias_kernel, alpha_bias=None)
    sizes = [_fitted._sizes(model, None, derivative=True) for model in (same, each, own)]
    assert sizes[1] == pytest.approx(sizes[0])
    assert sizes[2] == pytest.approx(sizes[0])  # γ_1 + γ_2 is the same
    default, *_ = plane(60, 0, task_gamma=None, bias_kernel=bias_kernel, alpha_bias=None)
    assert np.isfinite(bound_of(default, X, y, y_bound=1.0).risk or 0.0)


@each(
    ("params", "sentence"),
    [
        ({"quadrature": "gauss-legendre"}, "different weights; in 2 dimensions the bound is for equal ones"),
        ({"measure": ProductMeasure([Uniform(0.0, 1.0), Beta(2.0, 2.0)])}, "products of uniform measures"),
        ({"task_kernel": "polynomial"}, "kernels of the distance alone"),
    ],
)
def test_what_has_no_bound_in_two_coordinates_is_refused(params: dict[str, Any], sentence: str) -> None:
    model, X, y = plane(20, 0, n_nodes=9, **params)
    with pytest.raises(ValueError, match=sentence):
        bound_of(model, X, y)


def test_a_loss_without_constants_has_no_bound_in_two_coordinates() -> None:
    model, X, y = plane(20, 0, n_nodes=8)
    model.recipe_.task.loss.stability = lambda *args: None
    with pytest.raises(ValueError, match=r"whose method stability\(\) gives no constants"):
        bound_of(model, X, y)


class FirstLevel(Pinball):
    """The pinball loss at the first of two coordinates, whose constants are unknown."""

    dim = 2

    def row(self, theta: Any, y: Any) -> Any:
        return super().row(theta[:, 0], y)


class FirstCost(CostSensitiveHinge):
    """The same of the hinge loss."""

    dim = 2

    def row(self, theta: Any, y: Any) -> Any:
        return super().row(theta[:, 0], y)


@each("loss", [FirstLevel(), FirstCost()], ids=repr)
def test_a_loss_derived_from_one_of_a_line_has_no_bound_in_two_coordinates(loss: Any) -> None:
    _, X, y = plane(20, 0, n_nodes=8)
    y = np.where(y > 0.5, 1.0, -1.0)
    model = InfiniteTaskEstimator(loss, measure=cube(2), quadrature="sobol", n_nodes=8, alpha=0.1, bias_kernel=None)
    with pytest.raises(ValueError, match=r"whose method stability\(\) gives no constants"):
        bound_of(model.fit(X, y), X, y)
