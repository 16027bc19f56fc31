"""Laws of measures and rules: mass one, polynomial exactness, convergence to the true expectation."""

from __future__ import annotations

import itertools
import math
import pickle
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone

from infinitask.measures import (
    Beta,
    ClenshawCurtis,
    Discrete,
    GaussLegendre,
    Halton,
    Measure,
    MonteCarlo,
    ProductMeasure,
    Quadrature,
    Rule,
    Sobol,
    TruncatedNormal,
    Uniform,
)
from infinitask.measures._rules import Atoms, quadrature_rule
from infinitask.measures._spaces import ScipyMeasure, as_measure
from tests.support.each import each

LINE = {
    "uniform": (Uniform(-1.0, 2.0), stats.uniform(-1.0, 3.0)),
    "beta": (Beta(2.0, 3.0, low=0.5, high=2.0), stats.beta(2.0, 3.0, 0.5, 1.5)),
    "truncated normal": (TruncatedNormal(0.3, 0.5, 0.0, 1.0), stats.truncnorm(-0.6, 1.4, 0.3, 0.5)),
    "scipy": (ScipyMeasure(stats.triang(0.4)), stats.triang(0.4)),
}
UNBOUNDED = ScipyMeasure(stats.norm(1.0, 0.5))
DISCRETE = Discrete([0.9, 0.1, 0.4], weights=[1.0, 2.0, 5.0])
DISCRETE_PLANE = Discrete([[0.0, 1.0], [2.0, -1.0], [0.0, 3.0]])
PRODUCT = ProductMeasure([Uniform(0.0, 1.0), Beta(2.0, 2.0, low=-1.0, high=1.0)])
MIXED = ProductMeasure([DISCRETE, Uniform(-1.0, 1.0), Uniform(2.0, 3.0)])
MEASURES = [*(mu for mu, _ in LINE.values()), UNBOUNDED, DISCRETE, DISCRETE_PLANE, PRODUCT, MIXED]

CLOUDS = [MonteCarlo(), Sobol(), Sobol(scramble=False), Halton(), Halton(scramble=False)]
GRIDS = [GaussLegendre(), ClenshawCurtis()]
RULES = [*CLOUDS, *GRIDS]


@each("rule", RULES, ids=repr)
@each("measure", MEASURES, ids=lambda mu: type(mu).__name__)
@each("n_nodes", [1, 2, 9])
def test_weights_sum_to_one_and_nodes_lie_in_the_support(rule: Rule, measure: Measure, n_nodes: int) -> None:
    if measure is UNBOUNDED and isinstance(rule, ClenshawCurtis) and n_nodes > 1:
        pytest.skip("places nodes at infinity, which has its own test")
    quadrature = rule(measure, n_nodes, np.random.default_rng(0))
    m = quadrature.weights.shape[0]
    assert quadrature.nodes.shape == (m, measure.dim)
    assert quadrature.weights.shape == (m,)
    assert np.all(quadrature.weights > 0.0)
    assert math.isclose(np.sum(quadrature.weights), 1.0, rel_tol=1e-13)
    assert np.all(np.isfinite(quadrature.nodes))
    assert np.all(measure.contains(quadrature.nodes))
    if measure.dim == 1:
        assert np.all(np.diff(quadrature.nodes[:, 0]) > 0.0)


@each("n_nodes", [1, 2, 3, 4, 5, 8, 13, 30])
@each(
    ("rule", "degree"),
    [(GaussLegendre(), lambda m: 2 * m - 1), (ClenshawCurtis(), lambda m: m - 1)],
    ids=["gauss-legendre", "clenshaw-curtis"],
)
def test_grids_integrate_polynomials_exactly_and_no_further(rule: Rule, degree: Any, n_nodes: int) -> None:
    quadrature = rule(Uniform(-1.0, 1.0), n_nodes)
    for k in range(degree(n_nodes) + 1):
        # Legendre polynomials span the degree without the cancellation of powers.
        values = np.polynomial.legendre.Legendre.basis(k)(quadrature.nodes[:, 0])
        assert abs(float(quadrature.integrate(values)) - (k == 0)) < 1e-13
    if n_nodes <= 5:
        # The next even power is missed: the law above is sharp (odd ones vanish by symmetry).
        k = 2 * (degree(n_nodes) // 2) + 2
        error = float(quadrature.integrate(quadrature.nodes[:, 0] ** k)) - 1.0 / (k + 1)
        assert abs(error) > 1e-6


@cache
def expectation(name: str, function: Any) -> float:
    """The integral by SciPy."""
    return float(LINE[name][1].expect(function))


@each("name", LINE)
@each("function", [np.exp, np.cos, np.square], ids=lambda f: f.__name__)
@each(
    ("rule", "n_nodes", "tolerance"),
    [
        (GaussLegendre(), 200, 1e-4),
        (ClenshawCurtis(), 201, 1e-4),
        (Sobol(), 4096, 1e-3),
        (Sobol(scramble=False), 4096, 1e-3),
        (Halton(), 4096, 2e-3),
        (Halton(scramble=False), 4096, 2e-3),
        (MonteCarlo(), 20_000, 5e-2),
    ],
    ids=lambda value: repr(value) if isinstance(value, Rule) else "",
)
def test_expectations_converge(name: str, function: Any, rule: Rule, n_nodes: int, tolerance: float) -> None:
    quadrature = rule(LINE[name][0], n_nodes, np.random.default_rng(0))
    found = float(quadrature.integrate(function(quadrature.nodes[:, 0])))
    assert abs(found - expectation(name, function)) < tolerance


def test_gauss_legendre_converges_geometrically_for_the_uniform_measure() -> None:
    errors = [
        abs(float(q.integrate(np.exp(q.nodes[:, 0]))) - (math.e - 1.0))
        for q in (GaussLegendre()(Uniform(0.0, 1.0), m) for m in (1, 2, 3, 4, 5))
    ]
    assert all(later < earlier / 50.0 for earlier, later in itertools.pairwise(errors))


# ------------------------------------------------------------------------------------- weights by the density
BY_DENSITY = [(GaussLegendre(density=True), lambda m: 2 * m - 1), (ClenshawCurtis(density=True), lambda m: m - 1)]


@each(("rule", "degree"), BY_DENSITY, ids=["gauss-legendre", "clenshaw-curtis"])
@each(("a", "b"), [(2.0, 2.0), (1.0, 3.0), (4.0, 2.0)])
@each("n_nodes", [6, 9, 14])
def test_weights_by_density_integrate_polynomials_against_a_beta(
    rule: Rule, degree: Any, a: float, b: float, n_nodes: int
) -> None:
    quadrature = rule(Beta(a, b, low=0.5, high=2.0), n_nodes)
    t = (quadrature.nodes[:, 0] - 0.5) / 1.5
    assert math.isclose(np.sum(quadrature.weights), 1.0, rel_tol=1e-13)
    # the density is a polynomial of degree a + b − 2
    for k in range(degree(n_nodes) - int(a + b - 2) + 1):
        expected = math.prod((a + i) / (a + b + i) for i in range(k))
        assert float(quadrature.integrate(t**k)) == pytest.approx(expected, rel=1e-12)


@each(("rule", "degree"), BY_DENSITY, ids=["gauss-legendre", "clenshaw-curtis"])
def test_weights_by_density_integrate_polynomials_against_a_truncated_normal(rule: Rule, degree: Any) -> None:
    measure, law = TruncatedNormal(0.3, 0.5, 0.0, 1.0), stats.truncnorm(-0.6, 1.4, 0.3, 0.5)
    quadrature = rule(measure, 24)
    for k in range(8):
        expected = law.expect(lambda t, k=k: t**k, epsabs=1e-13)
        assert float(quadrature.integrate(quadrature.nodes[:, 0] ** k)) == pytest.approx(expected, rel=1e-11)


def test_weights_by_density_are_better_where_the_inverse_of_the_distribution_is_steep() -> None:
    # F⁻¹ of a Beta(2, 2) behaves like a square root at both ends, its density is a polynomial
    exact = stats.beta(2.0, 2.0).moment(2)
    by_density, by_inverse = (
        abs(float(q.integrate(q.nodes[:, 0] ** 2)) - exact)
        for q in (GaussLegendre(density=density)(Beta(2.0, 2.0), 10) for density in (True, False))
    )
    assert by_density < 1e-14
    assert by_inverse > 1e-6


@each("rule", GRIDS, ids=repr)
def test_both_ways_agree_for_a_uniform_measure(rule: Any) -> None:
    one, other = rule(Uniform(-1.0, 2.0), 9), clone(rule).set_params(density=True)(Uniform(-1.0, 2.0), 9)
    np.testing.assert_allclose(one.nodes, other.nodes, atol=1e-15)
    np.testing.assert_allclose(one.weights, other.weights, rtol=1e-14)


def test_weights_by_density_multiply_over_the_axes() -> None:
    quadrature = GaussLegendre(density=True)(ProductMeasure([Beta(2.0, 2.0), DISCRETE, Beta(3.0, 1.0)]), 300)
    x, t, y = quadrature.nodes.T
    atoms = DISCRETE.atoms()
    expected = 0.5 * float(atoms.integrate(atoms.nodes[:, 0])) * 0.75
    assert float(quadrature.integrate(x * t * y)) == pytest.approx(expected, rel=1e-13)


def test_densities_that_cannot_be_used_are_named() -> None:
    class OnlyInverse(Uniform):
        pdf = Measure.pdf

    rule = GaussLegendre(density=True)
    with pytest.raises(ValueError, match=r"\[-inf, inf\]; it must be bounded"):
        rule(UNBOUNDED, 5)
    with pytest.raises(ValueError, match="has no density"):
        rule(OnlyInverse(), 5)
    with pytest.raises(ValueError, match="infinite at a node"):
        ClenshawCurtis(density=True)(Beta(0.5, 0.5), 5)
    with pytest.raises(ValueError, match="density='yes' was given; it must be True or False"):
        GaussLegendre(density="yes")(Uniform(), 5)


@each("rule", RULES, ids=repr)
def test_product_measures_multiply_expectations(rule: Rule) -> None:
    quadrature = rule(PRODUCT, 2500, np.random.default_rng(0))
    x, y = quadrature.nodes.T
    expected = (math.e - 1.0) * stats.beta(2.0, 2.0, -1.0, 2.0).expect(np.cos)
    tolerance = 5e-2 if isinstance(rule, MonteCarlo) else 3e-3
    assert abs(float(quadrature.integrate(np.exp(x) * np.cos(y))) - expected) < tolerance


@each("rule", GRIDS, ids=repr)
@each(("n_nodes", "expected"), [(1, 1), (2, 8), (8, 8), (9, 27), (64, 64), (125, 125)])
def test_grids_round_the_number_per_axis_up(rule: Rule, n_nodes: int, expected: int) -> None:
    cube = ProductMeasure([Uniform()] * 3)
    assert rule(cube, n_nodes).weights.shape == (expected,)


@each("rule", CLOUDS, ids=repr)
@each("n_nodes", [1, 3, 5, 100])
def test_clouds_have_the_number_asked_for_and_equal_weights(rule: Rule, n_nodes: int) -> None:
    quadrature = rule(PRODUCT, n_nodes, 0)
    np.testing.assert_array_equal(quadrature.weights, np.full(n_nodes, 1.0 / n_nodes))


@each("rule", CLOUDS, ids=repr)
@each("dim", [1, 3])
def test_clouds_stay_off_the_border(rule: Rule, dim: int) -> None:
    cube = ProductMeasure([Uniform()] * dim)
    nodes = rule(cube, 1000, 0).nodes
    assert nodes.min() > 0.0
    assert nodes.max() < 1.0


def test_grids_keep_the_point_masses_of_a_factor() -> None:
    quadrature = GaussLegendre()(MIXED, 12)
    # Three points are given, so the two other axes share four nodes.
    assert quadrature.weights.shape == (12,)
    atoms = DISCRETE.atoms()
    np.testing.assert_allclose(np.unique(quadrature.nodes[:, 0]), atoms.nodes[:, 0])
    for point, weight in zip(atoms.nodes[:, 0], atoms.weights, strict=True):
        assert math.isclose(np.sum(quadrature.weights[quadrature.nodes[:, 0] == point]), weight)


@each("rule", [MonteCarlo(), Sobol(), Halton()], ids=repr)
def test_the_seed_decides(rule: Rule) -> None:
    measure = Uniform(0.0, 1.0)
    first = rule(measure, 10, np.random.default_rng(3)).nodes
    np.testing.assert_array_equal(first, rule(measure, 10, np.random.default_rng(3)).nodes)
    np.testing.assert_array_equal(first, rule(measure, 10, 3).nodes)
    assert not np.allclose(first, rule(measure, 10, np.random.default_rng(4)).nodes)
    old = [rule(measure, 10, np.random.RandomState(3)).nodes for _ in range(2)]
    np.testing.assert_array_equal(old[0], old[1])
    shared = np.random.default_rng(3)
    assert not np.allclose(rule(measure, 10, shared).nodes, rule(measure, 10, shared).nodes)


@each("rule", [*GRIDS, Sobol(scramble=False), Halton(scramble=False)], ids=repr)
def test_deterministic_rules_need_no_seed(rule: Rule) -> None:
    np.testing.assert_array_equal(rule(PRODUCT, 10).nodes, rule(PRODUCT, 10).nodes)


@each("rule", [*RULES, Atoms()], ids=repr)
def test_discrete_measures_keep_their_points_whatever_the_rule(rule: Rule) -> None:
    for n_nodes in (1, 50):
        quadrature = rule(DISCRETE, n_nodes, 0)
        np.testing.assert_array_equal(quadrature.nodes[:, 0], [0.1, 0.4, 0.9])
        np.testing.assert_allclose(quadrature.weights, [0.25, 0.625, 0.125])
        plane = rule(DISCRETE_PLANE, n_nodes, 0)
        np.testing.assert_array_equal(plane.nodes, DISCRETE_PLANE.points)
        np.testing.assert_allclose(plane.weights, 1.0 / 3.0)
    square = rule(ProductMeasure([DISCRETE, Discrete([0.0, 1.0])]), 1, 0)
    assert square.nodes.shape == (6, 2)
    np.testing.assert_allclose(square.weights, np.kron([0.25, 0.625, 0.125], [0.5, 0.5]))


def test_discrete_ppf_inverts_the_distribution_function() -> None:
    u = np.asarray([[0.0], [0.2], [0.25], [0.2501], [0.875], [0.9], [1.0]])
    np.testing.assert_array_equal(DISCRETE.ppf(u)[:, 0], [0.1, 0.1, 0.1, 0.4, 0.4, 0.9, 0.9])


@each("name", LINE)
def test_ppf_and_support_agree_with_the_distribution(name: str) -> None:
    measure, distribution = LINE[name]
    u = np.linspace(0.0, 1.0, 11)[:, None]
    np.testing.assert_allclose(measure.ppf(u), distribution.ppf(u), atol=1e-12)
    low, high = measure.support
    np.testing.assert_allclose([low[0], high[0]], distribution.support(), atol=1e-12)
    np.testing.assert_allclose(measure.ppf(np.asarray([[0.0], [1.0]]))[:, 0], [low[0], high[0]], atol=1e-12)


def test_supports_are_closed_boxes() -> None:
    theta = np.asarray([-1.0, 0.1, np.float32(0.1), 2.0, 2.0 + 1e-3, -1.0 - 1e-3, np.nan, np.inf])
    expected = [True, True, True, True, False, False, False, False]
    np.testing.assert_array_equal(Uniform(-1.0, 2.0).contains(theta), expected)
    np.testing.assert_array_equal(Uniform(-1.0, 2.0).contains(theta[:, None]), expected)
    np.testing.assert_array_equal(Uniform(0.0, 0.1).contains(np.asarray([0.1], dtype=np.float32)), [True])
    np.testing.assert_array_equal(DISCRETE.contains(np.asarray([0.05, 0.1, 0.5, 0.95])), [False, True, True, False])
    np.testing.assert_array_equal(DISCRETE_PLANE.contains(np.asarray([[1.0, 0.0], [1.0, 4.0]])), [True, False])
    np.testing.assert_array_equal(PRODUCT.contains(np.asarray([[0.5, -1.0], [-0.5, 0.0]])), [True, False])
    assert np.all(UNBOUNDED.contains(np.asarray([-1e9, 1e9])))


def test_integrate_keeps_further_axes() -> None:
    quadrature = Quadrature(np.asarray([[0.0], [1.0]]), np.asarray([0.25, 0.75]))
    np.testing.assert_allclose(quadrature.integrate(np.asarray([[1.0, 2.0], [3.0, 4.0]])), [2.5, 3.5])


@each("spec", [*MEASURES, *RULES, Atoms()], ids=lambda spec: type(spec).__name__)
def test_specs_clone_and_pickle_and_stay_as_they_were(spec: Any) -> None:
    def nodes(other: Any) -> Any:
        rule, measure = (other, DISCRETE) if isinstance(other, Rule) else (GaussLegendre(), other)
        return rule(measure, 5, 0).nodes

    before = spec.get_params(deep=False)
    expected = nodes(spec)
    after = spec.get_params(deep=False)
    assert all(after[name] is before[name] for name in before)
    np.testing.assert_array_equal(nodes(clone(spec)), expected)
    np.testing.assert_array_equal(nodes(pickle.loads(pickle.dumps(spec))), expected)
    assert isinstance(repr(spec), str)


def test_parameters_are_reachable_by_name() -> None:
    measure = Uniform(0.0, 1.0).set_params(high=3.0)
    np.testing.assert_array_equal(measure.support[1], [3.0])


def test_as_measure_reads_what_it_is_given() -> None:
    default = Uniform(0.05, 1.0)
    assert as_measure(None, default) is default
    assert as_measure(DISCRETE, default) is DISCRETE
    pair = as_measure((0, np.float64(2.0)), default)
    assert isinstance(pair, Uniform)
    assert (pair.low, pair.high) == (0.0, 2.0)
    frozen = stats.norm(0.0, 1.0)
    wrapped = as_measure(frozen, default)
    assert isinstance(wrapped, ScipyMeasure)
    assert wrapped.distribution is frozen


@each(
    ("name", "kind"),
    [
        ("monte-carlo", MonteCarlo),
        ("sobol", Sobol),
        ("halton", Halton),
        ("gauss-legendre", GaussLegendre),
        ("clenshaw-curtis", ClenshawCurtis),
        ("discrete", Atoms),
    ],
)
def test_rules_have_names(name: str, kind: type[Rule]) -> None:
    assert isinstance(quadrature_rule(name), kind)
    rule = kind()
    assert quadrature_rule(rule) is rule


@each("spec", ["uniform", 3.0, [0.0, 1.0], (0.0, 1.0, 2.0), ("a", "b"), Uniform, stats.norm])
def test_as_measure_refuses_anything_else(spec: Any) -> None:
    with pytest.raises(ValueError, match="is not a measure on the tasks"):
        as_measure(spec, Uniform())


@each("spec", ["simpson", None, GaussLegendre])
def test_quadrature_rule_refuses_anything_else(spec: Any) -> None:
    with pytest.raises(ValueError, match="'gauss-legendre', 'clenshaw-curtis'"):
        quadrature_rule(spec)


@each("rule", RULES, ids=repr)
@each("n_nodes", [0, -1, 2.0, None, True, "10"])
def test_the_number_of_nodes_is_a_positive_integer(rule: Rule, n_nodes: Any) -> None:
    with pytest.raises(ValueError, match="integer of at least 1"):
        rule(Uniform(), n_nodes)


def test_the_number_of_nodes_may_be_an_integer_of_numpy() -> None:
    n_nodes: Any = np.int64(3)
    assert GaussLegendre()(Uniform(), n_nodes).weights.shape == (3,)


def test_a_node_at_infinity_is_refused() -> None:
    with pytest.raises(ValueError, match="places a node at infinity"):
        ClenshawCurtis()(UNBOUNDED, 5)


def test_the_discrete_rule_asks_for_a_discrete_measure() -> None:
    with pytest.raises(ValueError, match="measure=Discrete"):
        quadrature_rule("discrete")(Uniform(), 5)


@each(
    ("measure", "sentence"),
    [
        (Uniform(1.0, 1.0), "low < high"),
        (Uniform(0.0, math.inf), "low < high"),
        (Uniform(math.nan, 1.0), "low < high"),
        (Beta(0.0, 1.0), "a=0.0"),
        (Beta(1.0, -1.0), "b=-1.0"),
        (TruncatedNormal(scale=0.0), "scale=0.0"),
        (TruncatedNormal(loc=math.inf), "loc=inf"),
        (ScipyMeasure(stats.poisson(1.0)), "frozen and continuous"),
        (ScipyMeasure(stats.norm), "frozen and continuous"),
        (ScipyMeasure(stats.norm([0.0, 1.0])), "frozen and continuous"),
        (Discrete([]), "not empty"),
        (Discrete([0.0, math.nan]), "NaN or infinity"),
        (Discrete(np.zeros((2, 2, 2))), "shape"),
        (Discrete([0.5, 0.1, 0.5]), "twice"),
        (Discrete([0.1, 0.5], [1.0]), "one nonnegative number for each"),
        (Discrete([0.1, 0.5], [1.0, -0.5]), "nonnegative"),
        (Discrete([0.1, 0.5], [0.0, 0.0]), "not all of them 0"),
        (Discrete([0.1, 0.5], [1.0, math.nan]), "NaN or infinity"),
        (ProductMeasure([]), "one-dimensional"),
        (ProductMeasure([Uniform(), 3.0]), "one-dimensional"),  # type: ignore[list-item]
        (ProductMeasure([PRODUCT]), "one-dimensional"),
    ],
)
def test_wrong_parameters_are_answered_when_used(measure: Measure, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        GaussLegendre()(measure, 3)


def test_wrong_shapes_are_answered_with_a_sentence() -> None:
    with pytest.raises(ValueError, match=r"\(q, 2\)"):
        PRODUCT.contains(np.zeros(3))
    with pytest.raises(ValueError, match="no inverse distribution function"):
        DISCRETE_PLANE.ppf(np.zeros((3, 2)))
    with pytest.raises(ValueError, match=r"weights of shape \(m,\)"):
        Quadrature(np.zeros((2, 1)), np.zeros(3))


def test_huge_weights_of_a_discrete_measure_do_not_overflow() -> None:
    np.testing.assert_array_equal(Discrete([0.1, 0.5], [1e308, 1e308]).atoms().weights, [0.5, 0.5])


def test_the_support_is_exactly_the_bounds_given() -> None:
    # SciPy keeps (low − loc)/scale and gives low back with a rounding error: −1e-16 for the first of these
    rng = np.random.default_rng(0)
    draws = [(0.7, 0.3), *zip(rng.uniform(0.0, 1.0, 300), rng.uniform(0.05, 1.0, 300), strict=True)]
    assert any(stats.truncnorm(-m / s, (1.0 - m) / s, m, s).support() != (0.0, 1.0) for m, s in draws)
    ends = np.array([[0.0], [1e-300], [1.0]])
    for loc, scale in draws:
        measure = TruncatedNormal(loc, scale, 0.0, 1.0)
        assert (measure.support[0][0], measure.support[1][0]) == (0.0, 1.0)
        assert measure.ppf(ends).min() >= 0.0
        assert measure.ppf(ends).max() <= 1.0


@each("measure", [Uniform(0.1, 0.7), Beta(2.0, 3.0, 0.1, 0.7), TruncatedNormal(0.3, 0.2, 0.1, 0.7)])
def test_bounds_are_met_to_the_last_bit(measure: Measure) -> None:
    assert (measure.support[0][0], measure.support[1][0]) == (0.1, 0.7)
    assert measure.ppf([[0.0], [1.0]]).tolist() == [[0.1], [0.7]]


def test_a_truncated_distribution_of_scipy_ends_where_it_was_cut() -> None:
    cut = stats.truncnorm(-0.7 / 0.3, 0.3 / 0.3, 0.7, 0.3)
    assert cut.support()[0] < 0.0
    assert [float(end[0]) for end in ScipyMeasure(cut).support] == [0.0, 1.0]


def test_a_point_of_weight_zero_is_no_task() -> None:
    atoms = Discrete([0.9, 0.1, 0.5], weights=[1.0, 3.0, 0.0]).atoms()
    assert atoms.nodes[:, 0].tolist() == [0.1, 0.9]
    assert atoms.weights.tolist() == [0.75, 0.25]
    assert Discrete([0.1, 0.5, 0.9], weights=[0.0, 1.0, 1.0]).support[0].tolist() == [0.5]
