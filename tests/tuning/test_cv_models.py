"""Models that choose their kernel and λ themselves."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_moons
from sklearn.ensemble import StackingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold
from sklearn.multiclass import OneVsRestClassifier

from infinitask import InfiniteCostSensitiveClassifier, InfiniteQuantileRegressor
from infinitask.datasets import make_sine
from infinitask.kernels import RBF, Scaled
from infinitask.measures import Discrete
from infinitask.tuning import InfiniteCostSensitiveClassifierCV, InfiniteQuantileRegressorCV, score_path
from infinitask.tuning._candidates import (
    Candidate,
    Kind,
    Learner,
    candidates,
    contenders,
    normal_scores,
    ranked,
    relevance,
)
from infinitask.tuning._rules import walk
from tests.support.scikit_learn_checks import run_checks

LEVELS = np.array([0.1, 0.3, 0.5, 0.7, 0.9])


def pinball(y: Any, predicted: Any) -> float:
    r = y[:, None] - predicted
    return float(np.mean(np.maximum(LEVELS * r, (LEVELS - 1.0) * r)))


def without_inputs(y: Any, new: Any) -> float:
    return pinball(new, np.broadcast_to(np.quantile(y, LEVELS), (new.size, LEVELS.size)))


# ------------------------------------------------------------------------------------------------------- the ranking
def test_irrelevant_features_get_small_scales() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(120, 4))
    scales = relevance(X, normal_scores(np.sin(2.0 * X[:, 1]) + 0.1 * rng.normal(size=120)))
    assert np.argmax(scales) == 1
    assert np.max(np.delete(scales, 1)) < 0.2 * scales[1]


def test_units_do_not_matter_and_constants_are_ignored() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(50, 3))
    t = normal_scores(X[:, 0] + rng.normal(size=50))
    X[:, 2] = 7.0
    wide = X * [1000.0, 0.001, 1.0]
    rows = np.arange(50)
    for one, other in zip(candidates(X, t).values(), candidates(wide, t).values(), strict=True):
        np.testing.assert_allclose(one.on(rows)(X, X), other.on(rows)(wide, wide), atol=1e-3)
        if isinstance(one.on(rows), Scaled):
            assert one.on(rows).scales[2] == 0.0


def test_kernels_that_know_targets_know_those_of_their_rows_alone() -> None:
    rng = np.random.default_rng(0)
    X, t, rows = rng.normal(size=(60, 5)), rng.normal(size=60), np.arange(0, 60, 2)
    other = t.copy()
    other[1::2] = rng.normal(size=30)

    recipe = InfiniteQuantileRegressor(n_nodes=5).recipe()
    first, second = (candidates(X, targets, Learner(recipe, targets)) for targets in (t, other))
    assert {name for name, kind in first.items() if kind.learns} == {
        name for name in first if "each input" in name or "learnt" in name
    }
    for name, kind in first.items():
        np.testing.assert_array_equal(kind.on(rows)(X, X), second[name].on(rows)(X, X))
        if kind.learns:
            every = np.arange(60)
            assert np.max(np.abs(kind.on(every)(X, X) - second[name].on(every)(X, X))) > 1e-3


def test_a_rare_target_takes_part_in_the_ranking() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(4000, 2)), np.full(4000, -1.0)
    y[1:9] = 1.0
    X[1:9] += 5.0
    assert ranked(X, y)[0].error > 0.0


@pytest.mark.slow
def test_the_ranking_sees_what_the_data_are_made_of() -> None:
    rng = np.random.default_rng(4)
    X = rng.uniform(-2.0, 2.0, size=(150, 6))
    noise = 0.05 * rng.normal(size=150)
    one = np.sin(3.0 * X[:, 0]) + noise
    assert "each input" in ranked(X, one)[0].name
    summed = np.sum(np.sin(2.0 * X), axis=1) + noise
    names = [candidate.name for candidate in ranked(X, summed)]
    assert any("additive" in name for name in names[:3])
    smooth = X[:, 0] + noise
    chosen = ranked(X[:, :1], smooth, {"rough": RBF(gamma=1e4), "smooth": RBF(gamma=0.1)})
    assert [candidate.name for candidate in chosen] == ["smooth", "rough"]
    assert chosen[0].error < chosen[1].error
    tailed = np.exp(3.0 * X[:, :1])
    assert "ranks" in ranked(tailed, np.sin(2.0 * X[:, 0]) + noise)[0].name


@pytest.mark.parametrize(
    ("names", "sums"),
    [
        (("a, 1",), 0),
        (("a, 1", "a, 2", "b, 1"), 1),
        (("a, 1", "Gaussian, 1"), 1),
        (("a, 1", "b, 1", "Gaussian, 1"), 2),
        (("Gaussian, 1", "linear"), 1),
    ],
)
def test_the_same_sum_does_not_compete_twice(names: tuple[str, ...], sums: int) -> None:
    ranking = [Candidate(name, Kind.fixed(RBF(gamma=1.0 + k)), 1.0, 0.1) for k, name in enumerate(names)]
    found = contenders(ranking, singles=5, joined=5)
    assert [candidate.name for candidate in found[: len(names)]] == list(names)
    assert len(found) == len(names) + sums


# ------------------------------------------------------------------------------------------------------- the contest
class Valley:
    """Folds whose loss falls from 2 on a plateau of large λ to 1 at λ = 10**bottom, and rises to a lower plateau.

    The plateaus are flat up to differences on which all folds agree and which mean nothing.
    """

    def __init__(self, bottom: float, lambdas: np.ndarray) -> None:
        self.bottom, self.lambdas, self.looked = bottom, lambdas, list[float]()

    def losses(self, i: int) -> list[float]:
        self.looked.append(float(self.lambdas[i]))
        away = np.log10(self.lambdas[i]) - self.bottom
        loss = 1.0 + min(max(away, 0.0), 1.0) + 0.2 * min(max(-away, 0.0), 1.0) + 1e-3 * np.sin(40.0 * away)
        return [float(loss * (1.0 + 0.3 * fold)) for fold in range(5)]


@pytest.mark.parametrize("bottom", [-4.0, -1.0, 1.0])
@pytest.mark.parametrize("per_decade", [1, 2, 10])
@pytest.mark.parametrize("begin", [0.0, 0.4, 1.0])
def test_a_path_finds_the_bottom_and_goes_little_beyond(bottom: float, per_decade: int, begin: float) -> None:
    lambdas = 10.0 ** (np.arange(4 * per_decade, -7 * per_decade - 1, -1) / per_decade)
    start, valley = round(begin * (lambdas.size - 1)), Valley(bottom, lambdas)
    table = walk(valley.losses, lambdas.size, start, 2.0 * (1.0 + 0.3 * np.arange(5)))
    best, looked = int(np.argmin(table.mean(axis=1))), valley.looked
    assert abs(np.log10(lambdas[best]) - bottom) <= 0.1 + 1e-9
    assert len(looked) == len(set(looked))
    if lambdas[start] > 10.0**bottom:
        assert min(looked) > 10.0 ** (bottom - 2.5)


@pytest.mark.parametrize("count", [21, pytest.param(100, marks=pytest.mark.slow)])
def test_all_values_of_a_long_grid_compete(count: int) -> None:
    X, y = make_sine(200, random_state=0)
    new, targets = make_sine(2000, random_state=1)
    alphas = np.logspace(3.0, -7.0, count)
    model = InfiniteQuantileRegressorCV(kernels=["rbf"], alphas=alphas, random_state=0).fit(X, y)
    assert pinball(targets, model.predict(new, LEVELS)) < 0.65 * without_inputs(y, targets)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_features_that_move_the_spread_alone_are_found(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, size=4300)
    y = (0.05 + 2.0 * np.abs(x) ** 1.5) * rng.normal(size=x.size)
    model = InfiniteQuantileRegressorCV(random_state=0).fit(x[:300, None], y[:300])
    assert pinball(y[300:], model.predict(x[300:, None], LEVELS)) < 0.97 * without_inputs(y[:300], y[300:])


# ------------------------------------------------------------------------------------------------------ scikit-learn
QUICK: dict[str, Any] = {"kernels": ["rbf"], "alphas": [1e-1, 1e-3], "cv": 2, "n_nodes": 4, "tol": 1e-2}
QUICK_FIT: dict[str, Any] = {"n_nodes": 8, "tol": 1e-2, "random_state": 0}


def without_a_map_of_levels(estimator: Any, check: str) -> Any:
    # the map is the smoother the fewer rows there are: twice as many equal ones are not one of weight 2
    if "sample_weight_equivalence" in check and isinstance(estimator, InfiniteQuantileRegressorCV):
        return estimator.set_params(calibrated=False)
    return estimator


@pytest.mark.parametrize(
    "cls", [InfiniteQuantileRegressorCV, pytest.param(InfiniteCostSensitiveClassifierCV, marks=pytest.mark.slow)]
)
def test_scikit_learn_accepts_it(cls: type[Any]) -> None:
    run_checks(cls(**QUICK | {"alphas": [1e-1]}), prepare=without_a_map_of_levels)


# --------------------------------------------------------------------------------------------------------- the model
@pytest.fixture(scope="module")
def best_of_a_grid() -> float:
    """The loss of the best of six models, in units of 1."""
    X, y = make_sine(150, random_state=0)
    new, target = make_sine(1000, random_state=1)
    return min(
        pinball(target, InfiniteQuantileRegressor(alpha=a, gamma=g).fit(X, y).predict(new, LEVELS))
        for a in (1e-2, 1e-3, 1e-4)
        for g in (1.0, 10.0)
    )


@pytest.mark.quick("units2")
@pytest.mark.parametrize("units", [(1.0, 0.0), pytest.param((1e-3, 0.0), marks=pytest.mark.slow), (50.0, 1e4)])
def test_the_choice_is_good_in_all_units(units: tuple[float, float], best_of_a_grid: float) -> None:
    X, y = make_sine(150, random_state=0)
    new, target = make_sine(1000, random_state=1)
    size, shift = units
    model = InfiniteQuantileRegressorCV(random_state=0).fit(300.0 * X, size * y + shift)
    found = (model.predict(300.0 * new, LEVELS) - shift) / size
    assert pinball(target, found) < 0.75 * without_inputs(y, target)
    assert pinball(target, found) < 1.1 * best_of_a_grid
    assert model.dual_gap_ <= 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("d", [3, 10])
def test_noise_is_not_learnt(d: int) -> None:
    rng = np.random.default_rng(0)
    worse = []
    for seed in range(4):
        X, y = rng.normal(size=(30, d)), rng.normal(size=30)
        target = rng.normal(size=2000)
        model = InfiniteQuantileRegressorCV(random_state=seed, n_nodes=10, tol=1e-2).fit(X, y)
        found = pinball(target, model.predict(rng.normal(size=(2000, d)), LEVELS))
        worse.append(found / without_inputs(y, target))
    assert np.mean(worse) < 1.06
    assert np.max(worse) < 1.25


def test_folds_give_what_fits_to_their_rows_give() -> None:
    X, y = make_sine(60, random_state=0)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 60)
    splits = list(KFold(3, shuffle=True, random_state=0).split(X))
    # a free bias is held near the median, in units of the spread: of all rows in folds, of its own in a fit
    for options, atol in (({"alpha_bias": 1e-3}, 2e-3), ({"alpha_bias": 0.0}, 5e-3), ({"bias_kernel": None}, 2e-3)):
        model = InfiniteQuantileRegressor(alpha=1e-3, n_nodes=10, gamma=3.0, tol=1e-6, **options)
        predicted: list[Any] = []

        def scoring(fitted: Any, rows: Any, _: Any, predicted: list[Any] = predicted) -> float:
            predicted.append(fitted.predict(rows, LEVELS))
            return 0.0

        score_path(model, X, y, alphas=[1e-3], cv=splits, scoring=scoring, sample_weight=weight)
        for (train, test), h in zip(splits, predicted, strict=True):
            alone = clone(model).fit(X[train], y[train], sample_weight=weight[train])
            np.testing.assert_allclose(h, alone.predict(X[test], LEVELS), atol=atol)


@pytest.mark.slow
def test_most_targets_nearly_equal() -> None:
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(size=(100, 1)), axis=0)
    y = np.where(x[:, 0] < 0.55, 1e-6 * rng.normal(size=100), 10.0 * x[:, 0])
    model = InfiniteQuantileRegressorCV(random_state=0).fit(x, y)
    assert np.mean(np.abs(model.predict(x, 0.5) - y)) < 0.3


def test_smoothing_is_measured_in_units_of_y() -> None:
    X, y = make_sine(80, random_state=0)
    options: dict[str, Any] = {"kernels": ["rbf"], "random_state": 0, "n_nodes": 10}
    one = InfiniteQuantileRegressorCV(smoothing=0.1, **options).fit(X, y)
    other = InfiniteQuantileRegressorCV(smoothing=100.0, **options).fit(X, 1000.0 * y)
    assert other.alpha_ * 1000.0 == pytest.approx(one.alpha_)


def test_the_comparison_is_made_where_the_measure_is() -> None:
    X, y = make_sine(80, random_state=0)
    model = InfiniteQuantileRegressorCV(measure=(0.85, 0.99), quantiles=0.9, kernels=["rbf"], random_state=0).fit(X, y)
    tail = np.mean(np.quantile(y, 0.92) - np.quantile(y, 0.5))
    assert np.mean(model.cv_results_["ignoring_x"]) < 0.25 * tail  # at 0.9 and about, not at 0.5
    few = InfiniteQuantileRegressorCV(measure=Discrete([0.1, 0.9]), quantiles=0.9, kernels=["rbf"], random_state=0)
    assert np.all(np.isfinite(few.fit(X, y).predict(X, [0.1, 0.9])))


def test_the_choice_follows_the_table() -> None:
    X, y = make_sine(80, random_state=0)
    alphas = [1.0, 1e-2, 1e-4]
    folds = KFold(3, shuffle=True, random_state=0)
    options: dict[str, Any] = {"kernels": ["rbf", "matern32"], "alphas": alphas, "cv": folds, "random_state": 0}
    best = InfiniteQuantileRegressorCV(rule="best", **options).fit(X, y)
    losses = best.cv_results_["losses"]
    assert losses.shape == (2, 4, 3)
    k, i = best.cv_results_["best"]
    assert losses.mean(axis=2)[k, i] == losses.mean(axis=2).min()
    assert np.all(np.isfinite(losses[k, : i + 1]))
    # one that ignores the inputs competes as well
    np.testing.assert_allclose(best.cv_results_["alphas"][1:], alphas)
    assert best.cv_results_["alphas"][0] > 10.0
    assert best.alpha_ == pytest.approx(alphas[i - 1])
    careful = InfiniteQuantileRegressorCV(rule="one-se", **options).fit(X, y)
    np.testing.assert_array_equal(careful.cv_results_["losses"], losses)
    assert careful.alpha_ >= best.alpha_
    # the losses are those of fits
    train, test = next(folds.split(X))
    alone = InfiniteQuantileRegressor(kernel=best.kernel_, alpha=best.alpha_, alpha_bias=1e-6, noncrossing=0.0)
    h = alone.fit(X[train], y[train]).predict(X[test], np.arange(1, 10) / 10)
    r = y[test][:, None] - h
    expected = np.mean(np.maximum(np.arange(1, 10) / 10 * r, (np.arange(1, 10) / 10 - 1.0) * r))
    assert losses[k, i, 0] == pytest.approx(expected, rel=0.05)


@pytest.mark.slow
def test_quantiles_are_in_order_far_from_all_rows() -> None:
    rng = np.random.default_rng(0)
    X, levels = rng.normal(size=(40, 3)), np.arange(1, 20) / 20
    y = np.sin(X[:, 0]) + 0.5 * (1.0 + np.abs(X[:, 1])) * rng.normal(size=40)
    far = 3.0 * rng.normal(size=(300, 3))
    falls = {}
    for noncrossing in (1.0, "rearrange"):
        model = InfiniteQuantileRegressorCV(noncrossing=noncrossing, random_state=0).fit(X, y)
        falls[noncrossing] = np.diff(model.predict(far, levels), axis=1).min()
    assert falls[1.0] < -0.01  # the penalty alone acts at the rows of the fit
    assert falls["rearrange"] >= 0.0
    assert InfiniteQuantileRegressorCV().noncrossing == "rearrange"


def test_predictions_are_those_of_the_chosen_model() -> None:
    X, y = make_sine(60, random_state=0)
    model = InfiniteQuantileRegressorCV(kernels=["rbf", "linear"], random_state=0, n_nodes=20, tol=1e-6).fit(X, y)
    again = clone(model).fit(X, y)
    np.testing.assert_array_equal(model.predict(X, LEVELS), again.predict(X, LEVELS))
    options: dict[str, Any] = {"alpha": model.alpha_, "n_nodes": 20, "tol": 1e-6, "random_state": 0}
    # answers are put in order, and the fit needs no penalty for that
    same = InfiniteQuantileRegressor(kernel=model.kernel_, noncrossing=0.0, **options).fit(X, y)
    np.testing.assert_allclose(model.field_(X, LEVELS), same.field_(X, LEVELS), atol=5e-3)
    assert model.objective_ == pytest.approx(same.objective_, rel=2e-6)
    assert set(model.get_params()).isdisjoint({"kernel", "gamma", "alpha", "alpha_bias"})


@pytest.mark.quick("1000000.0")
@pytest.mark.parametrize("offset", [2.0, 1e3, 1e6])
def test_a_constant_moves_the_answers_by_itself(offset: float) -> None:
    X, y = make_sine(80, random_state=0)
    levels = np.array([0.01, 0.1, 0.5, 0.9, 0.99])
    here, there = (InfiniteQuantileRegressorCV(kernels=["rbf"], random_state=0).fit(X, y + c) for c in (0.0, offset))
    assert there.offset_ - here.offset_ == pytest.approx(offset)
    np.testing.assert_allclose(there.predict(X, levels) - offset, here.predict(X, levels), atol=1e-7)
    assert there.score(X, y + offset) == pytest.approx(here.score(X, y), abs=1e-7)


@pytest.mark.slow
def test_outer_quantiles_leave_out_about_what_they_say() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-2.0, 2.0, size=4800)
    y = np.sin(2.0 * x) + (0.2 + 0.3 * np.abs(x)) * rng.normal(size=x.size)
    model = InfiniteQuantileRegressorCV(random_state=0).fit(x[:800, None], y[:800])
    low, high = model.predict(x[800:, None], [0.01, 0.99]).T
    assert np.mean(y[800:] < low) < 0.03
    assert np.mean(y[800:] > high) < 0.03


@pytest.mark.slow
def test_a_model_says_whether_it_ignores_the_features() -> None:
    X, y = make_sine(60, random_state=0)
    assert not InfiniteQuantileRegressorCV(random_state=0).fit(X, y).ignores_inputs_
    noise = np.random.default_rng(0).normal(size=(4, 60))
    ignored = [InfiniteQuantileRegressorCV(random_state=0, n_nodes=8).fit(X, t).ignores_inputs_ for t in noise]
    assert np.count_nonzero(ignored) >= 2  # what chance finds costs little: see test_targets_that_are_noise_cost_little


def test_weights_count() -> None:
    X, y = make_sine(60, random_state=0)
    far = np.vstack([X, X]), np.concatenate([y, y + 100.0])
    weight = np.repeat([1.0, 0.0], 60)
    model = InfiniteQuantileRegressorCV(random_state=0, cv=KFold(3, shuffle=True, random_state=0))
    assert np.max(model.fit(*far, sample_weight=weight).predict(X, LEVELS)) < 10.0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rule": "last"}, "'one-se', 'best'"),
        ({"kernels": "rbf"}, "'auto' or a list"),
        ({"kernels": []}, "at least one kernel"),
        ({"alphas": [1.0, -1.0]}, "positive finite numbers"),
        ({"alphas": []}, "positive finite numbers"),
        ({"alphas": ["a"]}, "positive finite numbers"),
        ({"kernels": RBF()}, "'auto' or a list"),
        ({"kernels": ["precomputed"]}, "computed from X"),
    ],
)
def test_wrong_arguments(options: dict[str, Any], words: str) -> None:
    X, y = make_sine(20, random_state=0)
    with pytest.raises(ValueError, match=words):
        InfiniteQuantileRegressorCV(**options).fit(X, y)


def test_a_fold_without_weight_is_refused() -> None:
    X, y = make_sine(20, random_state=0)
    weight = np.zeros(20)
    weight[0] = 1.0
    with pytest.raises(ValueError, match="1 rows have a positive sample_weight"):
        InfiniteQuantileRegressorCV(random_state=0).fit(X, y, sample_weight=weight)


@pytest.mark.slow
def test_one_outlier_among_the_targets_does_not_decide() -> None:
    X, y = make_sine(100, random_state=0)
    far = y.copy()
    far[7] = 100.0
    new, target = make_sine(500, random_state=1)
    found = InfiniteQuantileRegressorCV(random_state=0).fit(X, far).predict(new, LEVELS)
    assert pinball(target, found) < 0.8 * without_inputs(y, target)


def test_other_features() -> None:
    X, y = make_sine(60, random_state=0)
    model = InfiniteQuantileRegressorCV(features="fourier", rank=200, random_state=0).fit(X, y)
    assert model.kernel_.stationary


@pytest.mark.slow
def test_odd_data() -> None:
    X, y = make_sine(40, random_state=0)
    noise = np.random.default_rng(0).normal(size=30)
    ignored = InfiniteQuantileRegressorCV(alphas=[1e-4, 1e-5], random_state=0).fit(X[:30], noise)
    assert np.std(ignored.predict(X, 0.5)) < 0.05
    constant = InfiniteQuantileRegressorCV(random_state=0).fit(X, np.full(40, 3.0))
    np.testing.assert_allclose(constant.predict(X, LEVELS), 3.0, atol=0.05)
    flat = InfiniteQuantileRegressorCV(random_state=0).fit(np.ones((40, 2)), y)
    assert np.all(np.isfinite(flat.predict(np.ones((3, 2)), LEVELS)))
    few = InfiniteQuantileRegressorCV(random_state=0).fit(X[:5], y[:5])
    assert np.all(np.isfinite(few.predict(X, LEVELS)))


# ---------------------------------------------------------------------------------------------------- the classifier
THETAS = np.array([-0.6, 0.0, 0.6])


def cost(y: Any, decisions: Any) -> float:
    """The mean over THETAS of what wrong decisions (n, 3) cost."""
    wrong = (decisions > 0) != (y[:, None] > 0)
    return float(np.mean(np.where(y[:, None] > 0, 1.0 + THETAS, 1.0 - THETAS) / 2.0 * wrong))


@pytest.mark.slow
def test_the_classifier_is_as_good_as_the_best_of_a_grid() -> None:
    X, y = make_moons(150, noise=0.3, random_state=0)
    new, target = make_moons(2000, noise=0.3, random_state=1)
    model = InfiniteCostSensitiveClassifierCV(random_state=0).fit(X, y)
    grid = [
        cost(target, InfiniteCostSensitiveClassifier(alpha=a, gamma=g).fit(X, y).decision_function(new, THETAS))
        for a in (1e-2, 1e-3, 1e-4)
        for g in (0.5, 5.0)
    ]
    assert cost(target, model.decision_function(new, THETAS)) < 1.15 * min(grid)
    assert model.dual_gap_ <= 1e-4
    assert set(model.classes_) == {0, 1}
    k, i = model.cv_results_["best"]
    assert model.alpha_ == model.cv_results_["alphas"][i]
    assert np.all(np.isfinite(model.cv_results_["losses"][k, i]))


@pytest.mark.slow
def test_the_classifier_finds_a_rare_class() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat(["often", "rare"], [190, 10])
    X = rng.normal(size=(200, 2)) + 3.0 * (y == "rare")[:, None]
    model = InfiniteCostSensitiveClassifierCV(n_nodes=15, random_state=0).fit(X, y)
    found = model.predict(X, theta=0.9) == "rare"
    assert np.mean(found[y == "rare"]) > 0.9
    assert np.mean(found[y == "often"]) < 0.1


@pytest.mark.parametrize(("n", "share"), [pytest.param(200, 0.06, marks=pytest.mark.slow), (100, 0.94)])
def test_a_rare_class_with_irrelevant_features(n: int, share: float) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, 1)), np.arange(n) < n * share
    model = InfiniteCostSensitiveClassifierCV(kernels=["rbf"], cv=3, n_nodes=10, tol=1e-2, random_state=0).fit(X, y)
    alarms = model.predict(X, [-0.99, 0.99]).mean(axis=0)
    assert alarms[0] < 0.1  # wherever the classes lie, the decision moves all the way with θ
    assert alarms[1] > 0.9
    assert abs(np.mean(model.predict_proba(X)[:, 1]) - share) < 0.04


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["one-se", "best"])
def test_labels_with_irrelevant_features(rule: str) -> None:
    rng = np.random.default_rng(0)
    X, y, new = rng.normal(size=(60, 3)), np.arange(60) % 3 == 0, rng.normal(size=(500, 3))
    model = InfiniteCostSensitiveClassifierCV(rule=rule, random_state=0).fit(X, y)
    assert np.mean(model.predict(new, theta=-0.8)) < 0.15  # one in three is positive, whatever the inputs say
    assert np.mean(model.predict(new, theta=0.8)) > 0.85


# ---------------------------------------------------------------------------------------------------- the composition
@pytest.fixture(scope="module")
def tuned() -> Any:
    X, y = make_sine(80, random_state=0)
    return InfiniteQuantileRegressorCV(**QUICK, random_state=0).fit(X, y)


def test_the_model_inside_answers(tuned: Any) -> None:
    X, y = make_sine(30, random_state=1)
    best = tuned.best_estimator_
    assert type(best) is InfiniteQuantileRegressor
    assert best.get_params()["alpha"] == tuned.alpha_
    assert repr(best.recipe_.kernel) == repr(tuned.kernel_)
    for ask in (
        lambda m: m.predict(X, LEVELS),
        lambda m: m.predict_interval(X, 0.8),
        lambda m: m.predict_distribution(X).mean(),
        lambda m: m.predict_cdf(X, y),
        lambda m: m.sample(X, 3, random_state=0),
        lambda m: m.field_(X, LEVELS),
        lambda m: m.nodes_,
        lambda m: m.score(X, y),
    ):
        np.testing.assert_array_equal(ask(tuned), ask(best))
    assert {"predict_interval", "predict_distribution", "sample"} <= set(dir(tuned))


def test_a_calibration_stays_with_the_model(tuned: Any) -> None:
    X, y = make_sine(60, random_state=2)
    before = tuned.predict_interval(X, 0.9)
    assert tuned.conformalize(X, y) is tuned
    assert np.any(tuned.predict_interval(X, 0.9) != before)


def test_before_the_fit_nothing_answers_and_all_say_why() -> None:
    model = InfiniteQuantileRegressorCV()
    with pytest.raises(AttributeError, match="no attribute 'predict_weather'"):
        _ = model.predict_weather
    for ask in (model.predict, model.predict_interval, model.predict_distribution):
        with pytest.raises(NotFittedError):
            ask(np.zeros((2, 1)))
    assert not hasattr(model, "field_")


def test_the_methods_of_the_model_are_methods_of_the_class() -> None:
    for tuned, model in (
        (InfiniteQuantileRegressorCV, InfiniteQuantileRegressor),
        (InfiniteCostSensitiveClassifierCV, InfiniteCostSensitiveClassifier),
    ):
        public = {name for name in dir(model) if not name.startswith("_") and not name.endswith("_")}
        assert public - set(model._get_param_names()) <= set(dir(tuned))
        assert tuned.score.__doc__
    assert InfiniteCostSensitiveClassifierCV.theta_from_costs(9.0, 1.0) == 0.8
    assert inspect.signature(InfiniteQuantileRegressorCV.predict_interval).parameters["coverage"].default == 0.9


def test_meta_estimators_find_the_probabilities() -> None:
    X, y = make_moons(120, noise=0.3, random_state=0)
    model = InfiniteCostSensitiveClassifierCV(**QUICK, random_state=0)
    assert hasattr(OneVsRestClassifier(model), "predict_proba")
    calibrated = CalibratedClassifierCV(model, cv=2).fit(X, y)
    assert calibrated.predict_proba(X).shape == (120, 2)
    stacked = StackingClassifier([("tuned", model)], cv=2).fit(X, y)
    assert stacked.stack_method_ == ["predict_proba"]


def test_a_fit_that_fails_leaves_no_earlier_one() -> None:
    X, y = make_sine(40, random_state=0)
    model = InfiniteQuantileRegressorCV(**QUICK, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full_like(X, np.nan), y)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_the_default_task_is_read_when_it_is_asked_for(tuned: Any) -> None:
    X, _ = make_sine(10, random_state=4)
    model = pickle.loads(pickle.dumps(tuned)).set_params(quantiles=[0.2, 0.8])
    np.testing.assert_array_equal(model.predict(X), tuned.predict(X, [0.2, 0.8]))


@pytest.mark.slow
def test_the_choice_does_not_depend_on_the_number_of_jobs() -> None:
    X, y = make_sine(60, random_state=0)
    # the second kernel is far from the first one, and left early
    options: dict[str, Any] = {"kernels": [RBF(gamma=3.0), RBF(gamma=3e4)], "random_state": 0, "n_nodes": 8}
    one, two = (InfiniteQuantileRegressorCV(n_jobs=n_jobs, **options).fit(X, y) for n_jobs in (None, 2))
    assert np.count_nonzero(np.isfinite(one.cv_results_["losses"][1, :, 0])) == 2
    np.testing.assert_array_equal(one.cv_results_["losses"], two.cv_results_["losses"])
    np.testing.assert_array_equal(one.predict(X, LEVELS), two.predict(X, LEVELS))


def test_no_kernel_is_left_because_of_given_values_that_are_large() -> None:
    X, y = make_sine(80, random_state=0)
    kernels = [RBF(gamma=3.0), RBF(gamma=4.0)]
    model = InfiniteQuantileRegressorCV(kernels=kernels, alphas=[10.0, 1.0, 1e-3], **QUICK_FIT).fit(X, y)
    losses = model.cv_results_["losses"]
    assert losses[0].mean(axis=1).min() < 0.9 * losses[1, :2].mean(axis=1).min()
    assert np.all(np.isfinite(losses))


def test_a_pickle_predicts_alike(tuned: Any) -> None:
    X, _ = make_sine(20, random_state=3)
    again = pickle.loads(pickle.dumps(tuned))
    np.testing.assert_array_equal(again.predict(X, LEVELS), tuned.predict(X, LEVELS))
    assert again.cv_results_["best"] == tuned.cv_results_["best"]


def test_named_kernels_see_no_units() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(120, 2))
    y = np.sin(9.0 * X[:, 0]) + 0.1 * rng.normal(size=120)
    here, there = (
        InfiniteQuantileRegressorCV(kernels=["rbf", "linear"], random_state=0, n_nodes=8).fit(X * units, y)
        for units in ([1.0, 1.0], [1.0, 1e6])
    )
    assert np.allclose(there.predict(X * [1.0, 1e6], 0.5), here.predict(X, 0.5), atol=1e-6)
