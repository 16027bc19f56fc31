"""What is asked of h beyond the data: to be small, and to be in order."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.polynomial.legendre import leggauss
from sklearn.base import clone

from infinitask import InfiniteTaskEstimator
from infinitask.features import integrated_basis, task_features
from infinitask.fitting import Data, Recipe
from infinitask.fitting._pose import pose
from infinitask.kernels import Gaussian
from infinitask.losses._rows import NonCrossing
from infinitask.measures import Quadrature
from infinitask.penalties import IntegratedPenalty, IntegratedRidge, Penalty, Ridge, SumPenalty
from infinitask.solvers import solve
from infinitask.tasks import Order, QuantileTask
from tests.support.each import each
from tests.support.names import case_name

Floats = np.ndarray[Any, Any]


def increasing(nodes: Floats) -> Floats:
    return np.asarray(10.0 ** (nodes[:, 0] - 1.0))


# ----------------------------------------------------------------------------------------------- non-crossing
@each("weight", [0.1, 1.0, 7.0])
def test_only_what_decreases_is_penalised(weight: float) -> None:
    theta = np.linspace(0.0, 1.0, 5)
    d = np.random.default_rng(0).normal(size=(20, 5))
    value = NonCrossing(weight).value(theta, None, d)
    np.testing.assert_array_equal(value[d >= 0.0], 0.0)
    np.testing.assert_allclose(value[d < 0.0], -weight * d[d < 0.0])


def test_the_smoothed_part_is_as_wide_for_every_weight() -> None:
    theta = np.array([0.5])
    d = np.linspace(-1.0, 1.0, 2001)[:, None]
    for weight in (0.1, 1.0, 7.0):
        loss = NonCrossing(weight)
        curved = np.sum(loss.curvature(theta, None, d, 0.25 * loss.width(theta)) > 0.0)
        assert curved == pytest.approx(250, abs=2)


BAD_WEIGHTS = [0, 0.0, -1.0, np.inf, np.nan, "much", None]
SENTENCE = r"NonCrossing: weight=.*; it must be a finite number above 0\. Leave the penalty out for a weight of 0\."


@each("weight", BAD_WEIGHTS)
def test_a_weight_must_be_positive(weight: Any) -> None:
    loss = NonCrossing(weight)  # storing is not using
    theta, d = np.array([0.5]), np.array([[-1.0], [1.0]])
    for use in (loss.value, loss.slope, loss.pointwise, loss.curvature, loss.dual):
        with pytest.raises(ValueError, match=SENTENCE):
            use(theta, None, d)


@each("weight", [0, 0.0, -1.0, np.inf, np.nan])
def test_the_width_wants_a_positive_weight_as_well(weight: float) -> None:
    with pytest.raises(ValueError, match=SENTENCE):
        NonCrossing(weight).width(np.array([0.5]))


@each("weight", [2, np.float32(2.0), np.int64(2), 2.0])
def test_a_weight_may_be_any_real_number(weight: Any) -> None:
    np.testing.assert_array_equal(NonCrossing(weight).value(np.array([0.5]), None, np.array([[-1.0]])), 2.0)


def test_crossing_never_grows_with_its_weight() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(40, 1))
    y = np.sin(3.0 * X[:, 0]) + 0.3 * rng.normal(size=40)
    data = Data.canonical(X, y, np.ones(40))
    options: dict[str, Any] = {"task_gamma": 30.0, "gamma": 20.0, "alpha": 1e-3, "alpha_bias": 1e-3, "n_nodes": 12}
    weights, crossing, others, errors = [0.0, 0.05, 1.0], [], [], []
    for weight in weights:
        recipe = Recipe(QuantileTask(order=Order(weight)), **options)
        problem = pose(recipe, data, np.random.default_rng(0))
        found = solve(problem.objective, tol=1e-4)
        slopes = problem.field(found.z)(data.X, problem.quadrature.nodes, order=1)
        crossing.append(float(data.weight @ np.maximum(-slopes, 0.0) @ problem.quadrature.weights))
        others.append(found.objective - weight * crossing[-1])
        errors.append(found.objective - found.dual)
    assert crossing[0] > 0.02  # without the penalty the quantiles do cross
    assert crossing[-1] < 0.01 * crossing[0]
    for k, j in pairwise(range(len(weights))):
        # each solution is within its certified gap of the best for its own weight
        slack = (errors[k] + errors[j]) / (weights[j] - weights[k])
        assert crossing[j] <= crossing[k] + slack
        assert others[j] >= others[k] - errors[k] - weights[k] * slack  # order has its price


# ------------------------------------------------------------------------------------------- integrated ridge
@each("weight", [None, increasing])
def test_integrated_ridge_is_a_plain_ridge_in_its_basis(weight: Any) -> None:
    points, w = leggauss(9)
    nodes, w = (points[:, None] + 1.0) / 2.0, w / 2.0
    rho = IntegratedRidge(weight).rho(nodes)
    psi = integrated_basis(task_features(Gaussian(gamma=5.0), nodes), w, rho)
    C = np.random.default_rng(0).normal(size=(4, psi.rank))
    # ‖h(·)(θ)‖² in the RKHS of k_X is ‖C ψ(θ)‖², because φ is isometric
    at_nodes = np.sum((C @ psi.map(nodes).T) ** 2, axis=0)
    assert np.sum(w * rho * at_nodes) == pytest.approx(np.sum(C**2), rel=1e-6)


def test_rho_is_one_by_default_and_the_weight_else() -> None:
    nodes = np.array([[0.1], [0.7]])
    np.testing.assert_array_equal(IntegratedRidge().rho(nodes), 1.0)
    np.testing.assert_array_equal(IntegratedRidge(increasing).rho(nodes), increasing(nodes))


@each(
    "weight",
    [
        lambda nodes: nodes,  # (m, 1) in place of (m,)
        lambda nodes: -np.ones(nodes.shape[0]),
        lambda nodes: np.zeros(nodes.shape[0]),
        lambda nodes: np.full(nodes.shape[0], np.nan),
        lambda nodes: 1.0,
    ],
)
def test_rho_must_be_positive_numbers(weight: Any) -> None:
    with pytest.raises(ValueError, match=r"must return positive finite numbers of shape \(3,\)"):
        IntegratedRidge(weight).rho(np.array([[0.2], [0.5], [0.8]]))


@each("penalty", [Ridge(), IntegratedRidge(), IntegratedRidge(increasing), NonCrossing(2.0)], ids=case_name)
def test_clone_has_the_same_parameters(penalty: Any) -> None:
    twin = clone(penalty)
    assert type(twin) is type(penalty)
    assert twin.get_params() == penalty.get_params()


# ------------------------------------------------------------------------------------------------------ sums
def quadrature(m: int = 9) -> Quadrature:
    points, w = leggauss(m)
    return Quadrature((points[:, None] + 1.0) / 2.0, w / 2.0)


SUMS = [
    Ridge() + IntegratedRidge(),
    0.3 * Ridge() + 4.0 * IntegratedRidge(increasing),
    2.0 * (Ridge() + 0.5 * IntegratedRidge()) + IntegratedRidge(increasing),
    1.0 * Ridge(),
]


@each("penalty", SUMS, ids=lambda penalty: f"{len(penalty.penalties)} terms")
def test_a_sum_is_a_plain_ridge_in_its_basis(penalty: SumPenalty) -> None:
    rule, kernel = quadrature(), Gaussian(gamma=5.0)
    plain = task_features(kernel, rule.nodes, orders=(0, 1))
    turned = penalty.basis(plain, kernel, rule)
    C = np.random.default_rng(0).normal(size=(4, turned.rank))
    # the same function in the coordinates of ψ, where ‖h‖² is the sum of squares
    W = np.linalg.lstsq(plain.map.transform, turned.map.transform, rcond=None)[0]
    in_plain = C @ W.T
    expected = 0.0
    for part, a in zip(penalty.penalties, penalty.weights, strict=True):
        if isinstance(part, Ridge):
            expected += a * np.sum(in_plain**2)
        else:
            at_nodes = np.sum((C @ turned.map(rule.nodes).T) ** 2, axis=0)
            expected += a * np.sum(rule.weights * part.rho(rule.nodes) * at_nodes)
    assert expected == pytest.approx(np.sum(C**2), rel=1e-5)
    # values and derivatives are turned alike
    for order in (0, 1):
        np.testing.assert_allclose(turned.map(rule.nodes, order), turned.values[order], atol=1e-6)


def test_weights_of_sums_multiply_and_lists_join() -> None:
    total = 2.0 * (Ridge() + 0.5 * IntegratedRidge()) + Ridge()
    assert [type(part) for part in total.penalties] == [Ridge, IntegratedRidge, Ridge]
    assert total.weights == [2.0, 1.0, 1.0]
    twin = clone(total)
    assert repr(twin) == repr(total)
    assert not total.sees_nodes_only
    assert (IntegratedRidge() + IntegratedRidge()).sees_nodes_only


@each(
    ("params", "sentence"),
    [
        ({"weights": [1.0, -5.0]}, r"The weight of a penalty=-5\.0 was given; it must be a finite number above 0"),
        ({"weights": [1.0, np.nan]}, r"The weight of a penalty=nan was given"),
        ({"weights": [-1.0, 1.0]}, r"The weight of a penalty=-1\.0 was given"),
        ({"weights": [1.0]}, r"SumPenalty: 2 penalties and 1 weights were given; .* a weight for each"),
        ({"penalties": [Ridge(), "ridge"]}, r"SumPenalty: penalties hold 'ridge'; each must be a penalty"),
    ],
)
def test_weights_that_a_search_sets_are_checked(params: dict[str, Any], sentence: str) -> None:
    """The constructor stores what it is given, so that ``set_params`` may change it later."""
    integrated = IntegratedPenalty((-np.inf, 0.3))
    X = np.linspace(0.0, 1.0, 20)[:, None]
    for other in (IntegratedRidge(), integrated):
        model = InfiniteTaskEstimator(penalty=Ridge() + other, n_nodes=4, alpha=1e-2)
        model.set_params(**{f"penalty__{name}": value for name, value in params.items()})
        with pytest.raises((ValueError, TypeError), match=sentence):
            model.fit(X, X[:, 0])


def test_only_a_penalty_without_a_ridge_has_no_quadratic_part() -> None:
    integrated = IntegratedPenalty((-np.inf, 0.3))
    assert integrated.quadratic is None
    assert (2.0 * integrated + integrated).quadratic is None
    assert isinstance((integrated + Ridge()).quadratic, Ridge)
    nested = SumPenalty([Ridge() + integrated, 2.0 * IntegratedRidge()], [1.0, 3.0])
    assert repr(nested.quadratic) == repr(SumPenalty([Ridge(), 2.0 * IntegratedRidge()], [1.0, 3.0]))
    with pytest.raises(ValueError, match="was given without a ridge"):
        integrated.basis(task_features(Gaussian(gamma=5.0), quadrature().nodes), Gaussian(gamma=5.0), quadrature())


def test_sums_that_make_no_sense_are_named() -> None:
    class Own(Penalty):
        def basis(self, psi: Any, kernel: Any, quadrature: Any) -> Any:
            return psi

    rule, kernel = quadrature(), Gaussian(gamma=5.0)
    psi = task_features(kernel, rule.nodes)
    with pytest.raises(ValueError, match=r"a sum needs a Ridge\(\)"):
        (IntegratedRidge() + IntegratedRidge()).basis(psi, kernel, rule)
    with pytest.raises(TypeError, match="implement its method matrix"):
        (Ridge() + Own()).basis(psi, kernel, rule)
    with pytest.raises(ValueError, match=r"The weight of a penalty=0 was given.* Leave out a penalty of weight 0;"):
        0 * Ridge()
    with pytest.raises(TypeError):
        Ridge() + 1.0
