"""Infinite one-class SVM: levels, scores, and scikit-learn's conventions for outliers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from infinitask import InfiniteOneClassSVM
from infinitask.calibration._thresholds import halfway
from infinitask.datasets import make_mixture
from infinitask.kernels import RBF, Gaussian
from infinitask.measures import Discrete, ProductMeasure, Uniform
from infinitask.metrics import mass_volume_area, mass_volume_curve, theta_property_deviation

AS_FITTED: dict[str, Any] = {"alpha": 1e-3, "gamma": "median"}
"""With a number for alpha the sets are the solution of the problem; the threshold is not set last."""


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return make_mixture(120, random_state=0)


@pytest.fixture(scope="module")
def grid() -> np.ndarray:
    """Inside the clouds, between them and far away."""
    axis = np.linspace(-8.0, 8.0, 15)
    return np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)


@pytest.fixture(scope="module")
def model(X: np.ndarray) -> InfiniteOneClassSVM:
    return InfiniteOneClassSVM(n_nodes=20, **AS_FITTED).fit(X)


def test_predictions_are_the_sign_of_the_decision(model: InfiniteOneClassSVM, grid: np.ndarray) -> None:
    levels = [0.05, 0.1, 0.3, 0.7, 1.0]
    decision = model.decision_function(grid, levels)
    assert decision.shape == (len(grid), 5)
    predicted = model.predict(grid, levels)
    assert set(np.unique(predicted)) == {-1, 1}
    assert np.array_equal(predicted == 1, decision >= 0.0)


@pytest.mark.quick("0.1", "1.0")
@pytest.mark.parametrize("nu", [0.05, 0.1, 0.237, 0.5, 1.0])
def test_the_default_fraction_is_that_of_the_constructor(X: np.ndarray, grid: np.ndarray, nu: float) -> None:
    model = InfiniteOneClassSVM(nu=nu, n_nodes=10).fit(X)
    points = np.concatenate([X, grid])
    assert np.array_equal(model.predict(points), model.predict(points, nu=nu))
    score = model.score_samples(points)
    assert np.array_equal(score >= nu, model.decision_function(points, nu) >= 0.0)
    assert model.offset_ == nu
    assert np.array_equal(model.decision_function(points), score - nu)
    assert np.all(score > 0.0)
    assert np.all(score <= 1.0)


@pytest.mark.quick("0.3")
@pytest.mark.parametrize("nu", [0.06, 0.3, 1.0])
def test_scores_lie_between_0_and_1(X: np.ndarray, grid: np.ndarray, nu: float) -> None:
    score = InfiniteOneClassSVM(nu=nu, n_nodes=10).fit(X).score_samples(grid)
    assert 0.0 < np.min(score) < 0.05  # the grid does reach outside of all sets
    assert np.max(score) <= 1.0


def test_at_the_lower_end_of_theta_outsiders_score_below_it(X: np.ndarray, grid: np.ndarray) -> None:
    model = InfiniteOneClassSVM(nu=0.05, n_nodes=10).fit(X)
    score = model.score_samples(grid)
    outside = model.decision_function(grid, 0.05) < 0.0
    assert 0 < np.sum(outside) < len(grid)
    assert np.all(score[outside] < 0.05)
    assert np.all(score[~outside] >= 0.05)


def test_scores_order_points_from_the_outside_inwards(model: InfiniteOneClassSVM, X: np.ndarray) -> None:
    score = model.score_samples(np.concatenate([X, [[40.0, 40.0], [-2.0, 0.0]]]))
    assert score[-2] == np.min(score) < 0.05
    assert score[-1] > np.median(score)


def test_the_score_is_where_the_decision_changes_sign(model: InfiniteOneClassSVM, X: np.ndarray) -> None:
    score = model.score_samples(X)
    inner = np.flatnonzero((score > 0.06) & (score < 0.99))
    assert inner.size > 50
    for i in inner[::7]:
        just = model.decision_function(X[i : i + 1], [score[i] - 2e-3, score[i] + 2e-3])[0]
        # twenty nodes, each free: between them h − t may touch 0
        assert just[0] >= -1e-4
        assert just[1] <= 1e-4


def test_the_sets_leave_out_their_fraction(model: InfiniteOneClassSVM, X: np.ndarray) -> None:
    levels = [0.1, 0.25, 0.5, 0.75]
    outside = np.mean(model.predict(X, levels) == -1, axis=0)
    np.testing.assert_allclose(outside, levels, atol=0.06)
    stray = theta_property_deviation(levels, model.predict(X, levels))
    assert stray == pytest.approx(np.max(np.abs(outside - levels)))


def test_the_threshold_is_a_function_of_the_fraction(model: InfiniteOneClassSVM, X: np.ndarray) -> None:
    levels = [0.1, 0.5, 0.9]
    t = model.threshold(levels)
    assert t.shape == (3,)
    assert np.shape(model.threshold(0.5)) == ()
    assert np.shape(model.threshold()) == ()
    assert float(model.threshold()) == pytest.approx(float(model.threshold(0.1)))
    np.testing.assert_allclose(model.threshold(0.5), t[1], rtol=1e-10)
    # decision = h − t, and h alone vanishes far away
    far = model.decision_function(np.array([[1e6, 1e6]]), levels)[0]
    np.testing.assert_allclose(far, -t, rtol=1e-10)
    assert np.all(t > 0.0)


@pytest.mark.parametrize("method", ["predict", "decision_function", "threshold"])
def test_fractions_outside_theta(model: InfiniteOneClassSVM, X: np.ndarray, method: str) -> None:
    arguments = () if method == "threshold" else (X,)
    for wrong in (0.01, 1.5, np.nan, "few", [], [[0.1, 0.2]]):
        with pytest.raises(ValueError, match="nu"):
            getattr(model, method)(*arguments, nu=wrong)


@pytest.mark.parametrize("nu", [5.0, -0.1, np.nan, "few", [0.1, 0.2]], ids=str)
def test_a_bad_default_fraction_is_named(X: np.ndarray, nu: Any) -> None:
    with pytest.raises(ValueError, match="nu"):
        InfiniteOneClassSVM(nu=nu, n_nodes=5).fit(X).predict(X)


def test_nothing_without_a_fit(X: np.ndarray) -> None:
    model = InfiniteOneClassSVM()
    for call in (model.predict, model.decision_function, model.score_samples, lambda _: model.threshold()):
        with pytest.raises(NotFittedError):
            call(X)
    assert not hasattr(model, "offset_")


def test_y_is_ignored(model: InfiniteOneClassSVM, X: np.ndarray) -> None:
    with_y = InfiniteOneClassSVM(n_nodes=20, **AS_FITTED).fit(X, np.arange(len(X)))
    assert np.array_equal(with_y.score_samples(X), model.score_samples(X))
    assert np.array_equal(InfiniteOneClassSVM(n_nodes=20, **AS_FITTED).fit_predict(X), model.predict(X))


def test_smaller_fractions_on_demand(X: np.ndarray) -> None:
    model = InfiniteOneClassSVM(nu=0.02, measure=Uniform(0.01, 1), n_nodes=20).fit(X)
    assert model.dual_gap_ <= model.tol
    assert np.mean(model.predict(X) == -1) < 0.1
    score = model.score_samples(X)
    assert np.min(score) > 0.0
    assert np.max(score) <= 1.0


@pytest.mark.parametrize(
    "measure",
    [Uniform(0.0, 1.0), (0.0, 0.5), (0.5, 1.5), ProductMeasure([Uniform(0.1, 1.0), Uniform(0.1, 1.0)]), "all"],
    ids=str,
)
def test_measures_that_are_no_fractions(X: np.ndarray, measure: Any) -> None:
    with pytest.raises(ValueError, match="measure"):
        InfiniteOneClassSVM(measure=measure).fit(X)


def test_a_threshold_needs_a_kernel(X: np.ndarray) -> None:
    with pytest.raises(ValueError, match="bias_kernel=None"):
        InfiniteOneClassSVM(bias_kernel=None).fit(X)
    model = InfiniteOneClassSVM(bias_kernel="constant", n_nodes=6, **AS_FITTED).fit(X)
    assert np.ptp(model.threshold([0.1, 0.5, 0.9])) < 1e-12


def test_alpha_bias_plays_no_role(X: np.ndarray) -> None:
    one, other = (InfiniteOneClassSVM(alpha_bias=a, n_nodes=6).fit(X).decision_function(X, 0.3) for a in (None, 3.0))
    assert np.array_equal(one, other)


def test_a_heavier_threshold_is_smaller(X: np.ndarray) -> None:
    sizes = [np.sum(InfiniteOneClassSVM(alpha=a, n_nodes=8).fit(X).field_.bias_coef ** 2) for a in (1e-3, 1e-1, 10.0)]
    assert sizes[0] > sizes[1] > sizes[2]


def test_a_few_levels_only(X: np.ndarray) -> None:
    levels = [0.1, 0.3, 0.6]
    model = InfiniteOneClassSVM(nu=0.3, measure=Discrete(levels)).fit(X)
    assert np.array_equal(model.predict(X), model.predict(X, 0.3))
    assert model.predict(X, levels).shape == (len(X), 3)


def test_separate_levels_by_name(X: np.ndarray) -> None:
    levels = [0.1, 0.3, 0.6]
    model = InfiniteOneClassSVM(nu=0.3, measure=Discrete(levels), task_kernel="diagonal", **AS_FITTED).fit(X)
    outside = np.mean(model.predict(X, levels) == -1, axis=0)
    np.testing.assert_allclose(outside, levels, atol=0.06)
    with pytest.raises(ValueError, match="not a node"):
        model.predict(X, 0.2)


def test_separate_levels_by_default(X: np.ndarray) -> None:
    model = InfiniteOneClassSVM(nu=0.3, measure=Discrete([0.1, 0.3, 0.6]), task_kernel="diagonal").fit(X)
    assert np.array_equal(model.predict(X), model.predict(X, 0.3))


@pytest.mark.slow
def test_a_search_with_a_score_of_its_own(X: np.ndarray) -> None:
    def stray(model: Any, Z: np.ndarray, y: Any = None) -> float:
        return -abs(float(np.mean(model.predict(Z) == -1)) - 0.1)

    search = GridSearchCV(
        InfiniteOneClassSVM(task_kernel=Gaussian(), kernel=RBF(), n_nodes=6),
        {"task_kernel__gamma": [1.0, 10.0], "kernel__gamma": [0.1, 1.0]},
        scoring=stray,
        cv=3,
        error_score="raise",
    ).fit(X)
    assert search.best_score_ > -0.1
    assert search.best_estimator_.task_kernel_.gamma == search.best_params_["task_kernel__gamma"]
    piped = make_pipeline(StandardScaler(), InfiniteOneClassSVM(n_nodes=6)).fit(X)
    assert piped.predict(X).shape == (len(X),)


# ----------------------------------------------------------------------------------------------- nested sets
@pytest.fixture(scope="module")
def scattered() -> np.ndarray:
    """The data, new data, points between the clouds and far away."""
    rng = np.random.default_rng(1)
    near, far = rng.uniform(-6.0, 6.0, (400, 2)), rng.uniform(-1e3, 1e3, (100, 2))
    return np.concatenate([make_mixture(120, random_state=0), make_mixture(380, random_state=9), near, far])


@pytest.fixture(scope="module")
def narrow(X: np.ndarray) -> dict[bool, InfiniteOneClassSVM]:
    """Sets of a narrow kernel, as they come and nested."""
    with pytest.warns(UserWarning, match="on the boundary of the set itself"):
        return {
            nested: InfiniteOneClassSVM(gamma=5.0, alpha=1e-3, n_nodes=20, nested=nested).fit(X)
            for nested in (False, True)
        }


def test_nested_sets_are_nested_for_every_point_and_pair(
    narrow: dict[bool, InfiniteOneClassSVM], scattered: np.ndarray
) -> None:
    rng = np.random.default_rng(0)
    levels = np.sort(rng.uniform(0.05, 1.0, 46))
    first, second = np.triu_indices(46, k=1)
    assert len(scattered) * first.size >= 1_000_000

    def reentries(nested: bool) -> int:
        inside = narrow[nested].predict(scattered, levels) == 1
        return int(np.sum(~inside[:, first] & inside[:, second]))

    assert reentries(False) > 10_000  # as they come, the sets do re-enter
    assert reentries(True) == 0
    decision = narrow[True].decision_function(scattered, levels)
    assert np.all(np.diff(decision, axis=1) <= 0.0)


def test_nested_scores_and_predictions_agree_at_every_fraction(
    narrow: dict[bool, InfiniteOneClassSVM], scattered: np.ndarray
) -> None:
    model = narrow[True]
    score = model.score_samples(scattered)
    # the scores themselves and their neighbours are where rounding could tell
    own = np.unique(np.clip(score, 0.05, 1.0))[::5]
    levels = np.concatenate([own, np.nextafter(own, 0.0), np.nextafter(own, 2.0), [0.05, 0.1, 0.5, 1.0]])
    levels = levels[(levels >= 0.05) & (levels <= 1.0)]
    inside = score[:, None] >= levels
    assert np.array_equal(model.predict(scattered, levels) == 1, inside)
    assert np.array_equal(model.decision_function(scattered, levels) >= 0.0, inside)
    assert np.array_equal(model.predict(scattered), model.predict(scattered, 0.1))
    assert np.array_equal(model.decision_function(scattered), score - 0.1)
    # one fraction at a time or many: the same answer
    one = np.array([model.predict(scattered[:20], float(nu)) for nu in levels[:30]]).T
    assert np.array_equal(one, model.predict(scattered[:20], levels[:30]))


def test_nested_scores_of_points_in_no_set_lie_below_theta(
    narrow: dict[bool, InfiniteOneClassSVM], X: np.ndarray
) -> None:
    score = narrow[True].score_samples(np.concatenate([[[1e3, 1e3]], X]))
    assert 0.0 < score[0] < 1e-4
    assert 0.05 <= np.median(score) <= np.max(score) <= 1.0


def test_sets_that_are_nested_already_stay_what_they_are(X: np.ndarray, grid: np.ndarray) -> None:
    plain, nested = (
        InfiniteOneClassSVM(n_nodes=20, task_gamma=1.0, nested=nested, **AS_FITTED).fit(X) for nested in (False, True)
    )
    levels = np.linspace(0.05, 1.0, 200)
    curves = plain.decision_function(grid, levels)
    falling = np.all(np.diff(curves, axis=1) <= 0.0, axis=1)
    assert np.sum(falling) > 50
    scale = np.max(np.abs(curves))
    np.testing.assert_allclose(nested.decision_function(grid[falling], levels), curves[falling], atol=1e-3 * scale)
    inside = plain.predict(grid, levels) == 1
    single = ~np.any(~inside[:, :-1] & inside[:, 1:], axis=1)
    scores = (np.maximum(some.score_samples(grid[single]), 0.05) for some in (nested, plain))
    np.testing.assert_allclose(*scores, atol=5e-3)


def test_nesting_keeps_the_fractions(X: np.ndarray) -> None:
    levels = np.linspace(0.1, 0.9, 17)
    for nested in (False, True):
        model = InfiniteOneClassSVM(n_nodes=40, nested=nested, **AS_FITTED).fit(X)
        assert theta_property_deviation(levels, model.predict(X, levels)) < 0.05


@pytest.mark.parametrize("kernel", ["rbf", "diagonal"])
@pytest.mark.parametrize("levels", [[0.3], [0.1, 0.3, 0.6]], ids=str)
def test_a_few_levels_can_be_nested(X: np.ndarray, grid: np.ndarray, kernel: str, levels: list[float]) -> None:
    plain, model = (
        InfiniteOneClassSVM(
            nu=0.3, measure=Discrete(levels), task_kernel=kernel, gamma=3.0, alpha=1e-3, nested=nested
        ).fit(X)
        for nested in (False, True)
    )
    points = np.concatenate([X, grid])
    inside = model.predict(points, levels) == 1
    assert np.all(inside[:, :-1] >= inside[:, 1:])
    assert np.array_equal(inside, model.score_samples(points)[:, None] >= levels)
    if len(levels) == 1:
        assert np.array_equal(inside, plain.predict(points, levels) == 1)
    else:
        before = plain.predict(points, levels) == 1
        assert np.any(before[:, :-1] < before[:, 1:])
        # the same number of (point, fraction) pairs, up to the points that lie on a border
        assert abs(np.mean(before[: len(X)]) - np.mean(inside[: len(X)])) < 0.02


def test_nested_is_true_or_false(X: np.ndarray) -> None:
    with pytest.raises(ValueError, match="nested='yes'"):
        InfiniteOneClassSVM(nested="yes").fit(X)


# ------------------------------------------------------------------------------------------- exact fractions
@pytest.fixture(scope="module")
def exact(X: np.ndarray) -> InfiniteOneClassSVM:
    return InfiniteOneClassSVM(n_nodes=20, exact_fractions=True, **AS_FITTED).fit(X)


def test_halfway_comes_as_near_to_the_fraction_as_the_rows_allow() -> None:
    rng = np.random.default_rng(0)
    h = np.round(rng.normal(size=(40, 60)), 1)  # many ties
    omega = rng.dirichlet(np.ones(40))
    theta = np.append(rng.uniform(0.0, 1.0, 58), [0.0, 1.0])
    outside = omega @ (h < halfway(h, omega, theta))
    for j in range(theta.size):
        attainable = np.append([omega @ (h[:, j] < v) for v in h[:, j]], 1.0)
        assert abs(outside[j] - theta[j]) == pytest.approx(np.min(np.abs(attainable - theta[j])), abs=1e-12)
    assert np.min(np.abs(h - halfway(h, omega, theta))) > 1e-5  # and no row lies on the boundary


def test_exact_fractions_hold_at_the_nodes_and_between(
    model: InfiniteOneClassSVM, exact: InfiniteOneClassSVM, X: np.ndarray
) -> None:
    between = np.random.default_rng(0).uniform(0.05, 1.0, 300)
    stray = [
        [theta_property_deviation(levels, some.predict(X, levels)) for levels in (exact.nodes_, between)]
        for some in (model, exact)
    ]
    assert min(stray[0]) > 0.03  # without, they do stray
    assert stray[1][0] <= 0.5 / len(X) + 1e-12
    assert stray[1][1] <= 2.0 / len(X)


def test_a_row_that_is_there_many_times_leaves_at_once(X: np.ndarray) -> None:
    Z = np.concatenate([X, np.repeat(X[:1], 11, axis=0)])
    model = InfiniteOneClassSVM(n_nodes=20, exact_fractions=True, **AS_FITTED).fit(Z)
    levels = np.linspace(0.05, 1.0, 400)
    inside = model.predict(Z, levels) == 1
    outside = np.mean(~inside, axis=0)
    assert np.max(np.diff(outside)) > 11.5 / len(Z)
    assert np.max(np.abs(outside - levels)) <= 12 / len(Z) + 1.5 / len(Z)
    weighted = InfiniteOneClassSVM(n_nodes=20, exact_fractions=True, **AS_FITTED)
    weighted.fit(X, sample_weight=np.where(np.arange(len(X)) == 0, 12.0, 1.0))
    assert np.array_equal(weighted.decision_function(Z, levels), model.decision_function(Z, levels))


def test_exact_fractions_leave_the_certified_solution_alone(
    model: InfiniteOneClassSVM, exact: InfiniteOneClassSVM, X: np.ndarray
) -> None:
    assert exact.dual_gap_ == model.dual_gap_
    assert exact.objective_ == model.objective_
    assert np.array_equal(exact.field_(X, exact.nodes_), model.field_(X, model.nodes_))

    def risk(some: InfiniteOneClassSVM) -> float:
        z, t = some.decision_function(X, some.nodes_), some.threshold(some.nodes_)
        return float(some.weights_ @ (np.mean(np.maximum(-z, 0.0), axis=0) / some.nodes_ - t))

    assert risk(exact) < risk(model)  # the quantile is the best threshold for this h
    assert np.max(np.abs(exact.threshold(exact.nodes_) - model.threshold(exact.nodes_))) > 1e-4


@pytest.mark.parametrize("nested", [False, True])
def test_scores_and_decisions_agree_with_exact_fractions(X: np.ndarray, grid: np.ndarray, nested: bool) -> None:
    model = InfiniteOneClassSVM(nu=0.237, n_nodes=20, nested=nested, exact_fractions=True, **AS_FITTED).fit(X)
    points, levels = np.concatenate([X, grid]), np.linspace(0.06, 0.98, 47)
    assert np.array_equal(model.predict(points), model.predict(points, nu=0.237))
    assert np.array_equal(model.score_samples(points) >= 0.237, model.decision_function(points, 0.237) >= 0.0)
    if nested:
        inside = model.predict(points, levels) == 1
        assert np.all(inside[:, :-1] >= inside[:, 1:])
        assert theta_property_deviation(levels, inside[: len(X)]) < 0.03
    else:
        far = model.decision_function(np.array([[1e6, 1e6]]), levels)[0]
        np.testing.assert_allclose(far, -model.threshold(levels), rtol=1e-10)


@pytest.mark.parametrize("kernel", ["rbf", "diagonal"])
def test_a_few_levels_can_be_exact(X: np.ndarray, kernel: str) -> None:
    levels = [0.1, 0.3, 0.6]
    model = InfiniteOneClassSVM(nu=0.3, measure=Discrete(levels), task_kernel=kernel, exact_fractions=True).fit(X)
    assert theta_property_deviation(levels, model.predict(X, levels)) <= 0.5 / len(X) + 1e-12


def test_exact_fractions_are_forgotten_by_the_next_fit(model: InfiniteOneClassSVM, X: np.ndarray) -> None:
    other = InfiniteOneClassSVM(n_nodes=20, exact_fractions=True, **AS_FITTED).fit(X)
    other.set_params(exact_fractions=False).fit(X)
    assert np.array_equal(other.decision_function(X, 0.3), model.decision_function(X, 0.3))
    with pytest.raises(ValueError, match="exact_fractions='yes'"):
        InfiniteOneClassSVM(exact_fractions="yes").fit(X)


# -------------------------------------------------------------------------------------- p-values and volumes
@pytest.mark.parametrize("nested", [pytest.param(False, marks=pytest.mark.slow), True])
def test_the_score_of_new_data_is_a_p_value(nested: bool) -> None:
    X, new = make_mixture(400, random_state=0), make_mixture(4_000, random_state=1)
    levels = np.linspace(0.06, 0.98, 47)
    score = InfiniteOneClassSVM(n_nodes=25, nested=nested).fit(X).score_samples(new)
    deviation = np.mean(score[:, None] <= levels, axis=0) - levels
    assert np.max(np.abs(deviation)) < 1.63 / np.sqrt(400)  # as an empirical distribution function, at 1%
    # a kernel that learns the samples by heart gives none
    with pytest.warns(UserWarning, match="on the boundary of the set itself"):
        by_heart = (
            InfiniteOneClassSVM(n_nodes=20, gamma=100.0, alpha=1e-3, nested=nested).fit(X[:100]).score_samples(new)
        )
    assert np.max(np.mean(by_heart[:, None] <= levels, axis=0) - levels) > 0.3


def test_the_mass_volume_methods_are_the_metrics_of_the_score(model: InfiniteOneClassSVM, X: np.ndarray) -> None:
    curve = model.mass_volume_curve(X, n_samples=500, random_state=0)
    expected = mass_volume_curve(model.score_samples, X, n_samples=500, random_state=0)
    assert all(np.array_equal(a, b) for a, b in zip(curve, expected, strict=True))
    area = model.mass_volume_area(X, masses=(0.2, 0.8), n_samples=500, random_state=0)
    assert area == mass_volume_area(model.score_samples, X, masses=(0.2, 0.8), n_samples=500, random_state=0)


def test_volumes_need_a_kernel_of_inputs(X: np.ndarray) -> None:
    gram = RBF(0.5)(X, X)
    model = InfiniteOneClassSVM(kernel="precomputed", n_nodes=6).fit(gram)
    for method in (model.mass_volume_curve, model.mass_volume_area):
        with pytest.raises(ValueError, match="precomputed"):
            method(gram)
    with pytest.raises(NotFittedError):
        InfiniteOneClassSVM().mass_volume_area(X)
