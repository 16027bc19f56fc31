"""Metrics and scorers: outside references, laws, and real searches."""

from __future__ import annotations

import pickle
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import make_moons
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import mean_pinball_loss, recall_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from infinitask import InfiniteCostSensitiveClassifier, InfiniteOneClassSVM, InfiniteQuantileRegressor
from infinitask.datasets import make_mixture, make_sine, sine_quantile
from infinitask.measures import Discrete, GaussLegendre, Uniform
from infinitask.metrics import (
    calibration_error,
    crossing_loss,
    crps,
    integrated_cost,
    integrated_pinball_loss,
    interval_coverage,
    interval_score,
    mass_volume_area,
    mass_volume_curve,
    mean_interval_width,
    scorer,
    sensitivity_specificity,
    theta_property_deviation,
)
from infinitask.metrics._scorers import SCORERS
from tests.support.each import each

LEVELS = np.array([0.1, 0.3, 0.5, 0.7, 0.9])


@pytest.fixture(scope="module")
def predicted() -> tuple[np.ndarray, np.ndarray]:
    """Targets and predictions that are neither in order nor calibrated."""
    rng = np.random.default_rng(0)
    return rng.standard_normal(40), np.sort(rng.standard_normal((40, 5)), axis=1) + 0.3 * rng.standard_normal((40, 5))


def density(Z: np.ndarray) -> np.ndarray:
    """The density of make_mixture."""
    centres = [[-2.0, 0.0], [1.5, 1.5], [1.5, -2.0]]
    roots = np.array([[[0.9, 0.0], [0.0, 1.1]], [[0.9, 0.0], [-0.5, 0.4]], [[0.35, 0.0], [0.0, 0.35]]])
    laws = [stats.multivariate_normal(c, r @ r.T) for c, r in zip(centres, roots, strict=True)]
    return sum(p * law.pdf(Z) for p, law in zip((0.5, 0.3, 0.2), laws, strict=True))


# ------------------------------------------------------------------------------------------------- quantiles
def test_pinball_is_that_of_scikit_learn(predicted: tuple[np.ndarray, np.ndarray]) -> None:
    y, q = predicted
    weight = np.random.default_rng(1).uniform(size=40)
    for sample_weight in (None, weight):
        each = [mean_pinball_loss(y, q[:, j], alpha=a, sample_weight=sample_weight) for j, a in enumerate(LEVELS)]
        assert integrated_pinball_loss(y, q, LEVELS, sample_weight=sample_weight) == pytest.approx(np.mean(each))
        assert integrated_pinball_loss(y, q[:, 1], 0.3, sample_weight=sample_weight) == pytest.approx(each[1])
        w = np.array([0.1, 0.2, 0.4, 0.2, 0.1])
        assert integrated_pinball_loss(y, q, LEVELS, w, sample_weight) == pytest.approx(np.array(each) @ w)


def test_crossing_is_the_sum_of_mean_falls(predicted: tuple[np.ndarray, np.ndarray]) -> None:
    _, q = predicted
    by_hand = sum(np.mean([max(row[j] - row[j + 1], 0.0) for row in q]) for j in range(4))
    assert by_hand > 0.0
    assert crossing_loss(q) == pytest.approx(by_hand)
    order = [3, 0, 4, 1, 2]
    assert crossing_loss(q[:, order], LEVELS[order]) == pytest.approx(by_hand)
    assert crossing_loss(np.sort(q, axis=1)) == 0.0
    assert crossing_loss(q[:, :1]) == 0.0


def test_crps_is_the_integral_of_its_definition() -> None:
    levels = np.arange(1, 100) / 100.0
    for y in (-2.0, 0.0, 0.7):
        exact, _ = integrate.quad(lambda z, y=y: (stats.norm.cdf(z) - (y <= z)) ** 2, -12.0, 12.0, points=[y])
        assert crps([y], stats.norm.ppf(levels)[None], levels) == pytest.approx(exact, rel=0.015)


def test_crps_needs_no_even_levels() -> None:
    rng = np.random.default_rng(0)
    levels = rng.permutation(np.sort(rng.uniform(size=400)))
    exact = 2.0 * stats.norm.pdf(0.0) - 1.0 / np.sqrt(np.pi)
    assert crps([0.0], stats.norm.ppf(levels)[None], levels) == pytest.approx(exact, rel=0.03)


def test_crps_of_a_distribution_is_its_own() -> None:
    own = SimpleNamespace(crps=lambda y: np.abs(y))
    assert crps([1.0, -3.0], own) == 2.0
    assert crps([1.0, -3.0], own, sample_weight=[3.0, 1.0]) == 1.5


def test_the_truth_has_the_best_scores() -> None:
    X, y = make_sine(4_000, random_state=0)
    levels = np.arange(1, 20) / 20.0
    truth = sine_quantile(X, levels)
    shifted, wide = truth + 0.2, 1.5 * truth - 0.5 * sine_quantile(X, [0.5])
    for metric in (integrated_pinball_loss, crps, calibration_error):
        best = metric(y, truth, levels)
        assert best < metric(y, shifted, levels)
        assert best < metric(y, wide, levels)
    assert calibration_error(y, truth, levels) < 0.02
    ends = [1, 17]  # 0.1 and 0.9
    assert interval_coverage(y, truth[:, ends]) == pytest.approx(0.8, abs=0.02)
    assert interval_score(y, truth[:, ends], 0.8) < interval_score(y, wide[:, ends], 0.8)
    assert mean_interval_width(wide[:, ends]) == pytest.approx(1.5 * mean_interval_width(truth[:, ends]))


def test_the_interval_score_is_two_pinball_losses(predicted: tuple[np.ndarray, np.ndarray]) -> None:
    y, q = predicted
    ends = np.sort(q[:, [0, 4]], axis=1)
    expected = 2.0 / 0.2 * sum(mean_pinball_loss(y, ends[:, j], alpha=a) for j, a in enumerate((0.1, 0.9)))
    assert interval_score(y, ends, 0.8) == pytest.approx(expected)


def test_intervals_may_be_without_limits() -> None:
    y, infinite = [0.0, 5.0, -5.0], [[-1.0, 1.0], [-np.inf, 1.0], [-np.inf, np.inf]]
    assert interval_coverage(y, infinite) == pytest.approx(2.0 / 3.0)
    assert mean_interval_width(infinite) == np.inf
    assert interval_score(y, infinite, 0.9) == np.inf
    # what does not count does not make it infinite, nor NaN
    weight = [2.0, 0.0, 0.0]
    assert mean_interval_width(infinite, weight) == 2.0
    assert interval_score(y, infinite, 0.9, weight) == 2.0


@each(
    ("end", "words"),
    [([np.nan, 1.0], "NaN"), ([-np.inf, np.nan], "NaN"), ([np.inf, np.inf], "lower end"), ([-np.inf] * 2, "upper end")],
)
def test_ends_that_bound_nothing_are_refused(end: list[float], words: str) -> None:
    for metric in (interval_coverage, lambda _, i: mean_interval_width(i), lambda y, i: interval_score(y, i, 0.9)):
        with pytest.raises(ValueError, match=f"y_interval contains .*{words}"):
            metric([0.0, 0.0], [[-1.0, 1.0], end])


def test_intervals_calibrated_on_too_few_points_are_judged() -> None:
    X, y = make_sine(60, random_state=0)
    model = InfiniteQuantileRegressor(n_nodes=8).fit(X[:50], y[:50]).conformalize(X[50:55], y[50:55])
    with pytest.warns(UserWarning, match="infinite"):
        interval = model.predict_interval(X[55:], coverage=0.9)
    assert np.all(np.isinf(interval))
    assert interval_coverage(y[55:], interval) == 1.0
    assert mean_interval_width(interval) == interval_score(y[55:], interval, 0.9) == np.inf


def test_a_weight_of_two_is_a_sample_twice(predicted: tuple[np.ndarray, np.ndarray]) -> None:
    y, q = predicted
    weight = np.where(np.arange(40) % 3 == 0, 2.0, 1.0)
    twice = np.repeat(np.arange(40), weight.astype(int))
    interval, labels = q[:, [0, 4]], np.where(q > 0.0, 1, 0)
    for metric in (
        lambda i, w: integrated_pinball_loss(y[i], q[i], LEVELS, sample_weight=w),
        lambda i, w: crossing_loss(q[i], sample_weight=w),
        lambda i, w: crps(y[i], q[i], LEVELS, sample_weight=w),
        lambda i, w: calibration_error(y[i], q[i], LEVELS, sample_weight=w),
        lambda i, w: interval_coverage(y[i], interval[i], sample_weight=w),
        lambda i, w: mean_interval_width(interval[i], sample_weight=w),
        lambda i, w: interval_score(y[i], interval[i], 0.8, sample_weight=w),
        lambda i, w: sensitivity_specificity(y[i] > 0, labels[i] > 0, sample_weight=w)[0][2],
        lambda i, w: integrated_cost(y[i] > 0, labels[i] > 0, LEVELS, sample_weight=w),
        lambda i, w: theta_property_deviation(LEVELS, labels[i] > 0, sample_weight=w),
        lambda i, w: mass_volume_area(lambda Z: -np.abs(Z[:, 0]), q[i], n_samples=200, random_state=0, sample_weight=w),
    ):
        plain = metric(np.arange(40), None)
        assert metric(np.arange(40), weight) == pytest.approx(metric(twice, None), abs=1e-12)
        assert metric(np.arange(40), weight) != plain


# ------------------------------------------------------------------------------------------ costs, level sets
def test_sensitivity_and_specificity_are_recalls() -> None:
    rng = np.random.default_rng(0)
    y, said = rng.choice(["no", "yes"], 60), rng.choice(["no", "yes"], (60, 3))
    sensitivity, specificity = sensitivity_specificity(y, said)
    for j in range(3):
        assert sensitivity[j] == pytest.approx(recall_score(y, said[:, j], pos_label="yes"))
        assert specificity[j] == pytest.approx(recall_score(y, said[:, j], pos_label="no"))
    one = sensitivity_specificity(y, said[:, 0])
    assert np.shape(one[0]) == ()
    assert one[0] == sensitivity[0]
    turned = sensitivity_specificity(y, said, pos_label="no")
    np.testing.assert_array_equal(turned, (specificity, sensitivity))


def test_sensitivity_and_specificity_are_fractions_of_counts() -> None:
    """Neither exceeds 1 by a rounding error, and equal counts are equal."""
    rng = np.random.default_rng(0)
    for n in range(2, 60):
        y = np.arange(n) % 2 == 0
        said = np.stack([y, ~y, y ^ (np.arange(n) < 2)], axis=1)
        yes, no = np.sum(y), np.sum(~y)
        for weight in (None, rng.uniform(0.1, 1.0, size=n)):
            sensitivity, specificity = sensitivity_specificity(y, said, sample_weight=weight)
            assert sensitivity[:2].tolist() == specificity[:2].tolist() == [1.0, 0.0]
        sensitivity, specificity = sensitivity_specificity(y, said)
        assert (sensitivity[2], specificity[2]) == ((yes - 1) / yes, (no - 1) / no)


def test_a_positive_label_that_is_not_there_is_named() -> None:
    y, said = np.array([0, 1, 1]), np.array([[0, 1], [1, 1], [0, 1]])
    words = r"pos_label=7 was given, and y_true and y_pred hold the labels \[0, 1\]"
    with pytest.raises(ValueError, match=words):
        sensitivity_specificity(y, said, pos_label=7)
    with pytest.raises(ValueError, match=words):
        integrated_cost(y, said, [-0.5, 0.5], pos_label=7)
    with pytest.raises(ValueError, match=r"pos_label='maybe' was given.*\['no', 'yes'\]"):
        sensitivity_specificity(["no", "yes"], ["no", "no"], pos_label="maybe")
    with pytest.raises(ValueError, match=r"pos_label=7.*its labels are \[1\]"):
        sensitivity_specificity([1, 1], [1, 1], pos_label=7)
    # a fold without positives, none of them foretold, costs nothing
    assert integrated_cost([0, 0], [[0], [0]], 0.5, pos_label=1) == 0.0


def test_costs_weigh_the_two_errors() -> None:
    y = np.array([0, 0, 0, 1])
    theta = [-0.8, 0.0, 0.8]
    always, never = np.ones((4, 3), dtype=int), np.zeros((4, 3), dtype=int)
    assert integrated_cost(y, np.repeat(y[:, None], 3, axis=1), theta) == 0.0
    assert integrated_cost(y, always, theta) == pytest.approx(0.75 * np.mean([0.9, 0.5, 0.1]))
    assert integrated_cost(y, never, theta, pos_label=1) == pytest.approx(0.25 * np.mean([0.1, 0.5, 0.9]))


def test_deviations_of_the_fraction_outside() -> None:
    inside = np.array([[True, True], [True, False], [True, False], [False, False]])
    assert theta_property_deviation([0.25, 0.5], inside) == 0.25
    assert theta_property_deviation([0.25, 0.5], np.where(inside, 1, -1)) == 0.25
    assert theta_property_deviation(0.25, inside[:, 0]) == 0.0


def test_masses_and_volumes_of_a_disc() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 2))
    mass, volume, t = mass_volume_curve(
        lambda Z: -np.sum(Z**2, axis=1), X, n_samples=100_000, box=([-5, -5], [5, 5]), random_state=0
    )
    assert np.all(np.diff(mass) > 0.0)
    assert np.all(np.diff(volume) >= 0.0)
    assert np.all(np.diff(t) < 0.0)
    assert mass[-1] == pytest.approx(1.0)
    inner = mass < 0.95
    np.testing.assert_allclose(volume[inner], -2.0 * np.pi * np.log1p(-mass[inner]), atol=0.5)  # of 18.8


def test_no_score_beats_the_density() -> None:
    X = make_mixture(2_000, random_state=0)
    best = mass_volume_area(density, X, random_state=0)
    for worse in (
        lambda Z: -np.sum(Z**2, axis=1),
        lambda Z: density(Z + 0.5),
        lambda Z: Z[:, 0],
        lambda Z: np.random.default_rng(0).uniform(size=len(Z)),
    ):
        assert mass_volume_area(worse, X, random_state=0) > 1.1 * best


def test_only_the_order_of_scores_counts() -> None:
    X = make_mixture(300, random_state=0)
    first = mass_volume_area(density, X, random_state=3)
    assert mass_volume_area(lambda Z: np.log(density(Z)), X, random_state=3) == pytest.approx(first)


def test_a_constant_score_has_the_whole_box() -> None:
    X = np.array([[0.0, 0.0], [2.0, 3.0], [1.0, 1.0]])
    mass, volume, _ = mass_volume_curve(lambda Z: np.zeros(len(Z)), X, n_samples=10)
    assert (mass.tolist(), volume.tolist()) == ([1.0], [6.0])
    assert mass_volume_area(lambda Z: np.zeros(len(Z)), X, masses=(0.25, 0.75)) == pytest.approx(3.0)


def test_areas_add_up() -> None:
    X = make_mixture(100, random_state=0)
    parts = [mass_volume_area(density, X, masses=m, random_state=0) for m in ((0.1, 0.37), (0.37, 0.9), (0.1, 0.9))]
    assert parts[0] + parts[1] == pytest.approx(parts[2])


# --------------------------------------------------------------------------------------------------- scorers
@each("name", ["pinball", "crossing", "crps", "calibration", "coverage"])
def test_quantile_scorers_work_where_models_are_wrapped(name: str) -> None:
    score = scorer(name)
    X, y = make_sine(60, random_state=0)
    model = InfiniteQuantileRegressor(n_nodes=10).fit(X, y)
    levels = np.arange(1, 100) / 100.0 if score.quantiles is None else np.array(score.quantiles)
    assert score(model, X, y) == -score.metric(y, model.predict(X, levels), levels)
    assert score(model, X, y) <= 0.0
    weight = np.arange(60.0)
    assert score(model, X, y, sample_weight=weight) == -score.metric(
        y, model.predict(X, levels), levels, sample_weight=weight
    )
    piped = make_pipeline(StandardScaler(), InfiniteQuantileRegressor(n_nodes=10)).fit(X, y)
    assert np.isfinite(score(piped, X, y))
    turned = TransformedTargetRegressor(InfiniteQuantileRegressor(n_nodes=10), transformer=StandardScaler()).fit(X, y)
    assert np.isfinite(score(turned, X, y))
    assert pickle.loads(pickle.dumps(score)) == score


def test_scorers_ask_for_what_the_model_knows() -> None:
    X, y = make_sine(60, random_state=0)
    some = InfiniteQuantileRegressor(measure=Uniform(0.2, 0.4), n_nodes=6).fit(X, y)
    levels = np.arange(20, 41) / 100.0
    assert scorer("pinball")(some, X, y) == pytest.approx(-integrated_pinball_loss(y, some.predict(X, levels), levels))
    few = InfiniteQuantileRegressor(measure=Discrete([0.1, 0.5]), task_kernel="diagonal", noncrossing=0.0).fit(X, y)
    assert scorer("pinball")(few, X, y) == pytest.approx(
        -integrated_pinball_loss(y, few.predict(X, [0.1, 0.5]), [0.1, 0.5])
    )
    rule = GaussLegendre()(Uniform(0.0, 1.0), 10)
    model = InfiniteQuantileRegressor(n_nodes=10, noncrossing=0.0, tol=1e-6).fit(X, y)
    risk = integrated_pinball_loss(y, model.predict(X, rule.nodes[:, 0]), rule.nodes[:, 0], rule.weights)
    assert 0.0 < risk < model.objective_  # the objective is this and a penalty


def test_a_search_over_quantile_models() -> None:
    X, y = make_sine(120, random_state=0)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), InfiniteQuantileRegressor(n_nodes=10)),
        {"infinitequantileregressor__alpha": [1e-4, 1e-2, 1.0]},
        scoring={"pinball": scorer("pinball"), "crps": scorer("crps"), "coverage": scorer("coverage")},
        refit="pinball",
        cv=KFold(3, shuffle=True, random_state=0),
        error_score="raise",
    )
    clone(search)
    results = search.fit(X, y).cv_results_
    assert search.best_params_["infinitequantileregressor__alpha"] < 1.0
    # the score with a bent scale puts the models in the same order
    assert np.argsort(results["mean_test_pinball"]).tolist() == np.argsort(results["mean_test_crps"]).tolist()
    np.testing.assert_allclose(results["mean_test_crps"], 2.0 * results["mean_test_pinball"], rtol=0.03)
    assert np.isfinite(scorer("pinball")(search, X, y))


def test_a_search_prefers_models_that_do_not_cross() -> None:
    X, y = make_sine(40, random_state=0)
    search = GridSearchCV(
        InfiniteQuantileRegressor(alpha=1e-5, gamma=15.0, task_gamma=15.0, n_nodes=10),
        {"noncrossing": [0.0, 3.0]},
        scoring=scorer("crossing"),
        cv=2,
        error_score="raise",
    ).fit(X, y)
    assert search.best_params_ == {"noncrossing": 3.0}
    assert search.cv_results_["mean_test_score"][0] < -0.1  # the other one does cross


def test_a_search_over_costs() -> None:
    X, y = make_moons(120, noise=0.25, random_state=0)
    labels = np.array(["no", "yes"])[y]
    search = GridSearchCV(
        make_pipeline(StandardScaler(), InfiniteCostSensitiveClassifier(n_nodes=10)),
        {"infinitecostsensitiveclassifier__gamma": [1e-3, 2.0]},
        scoring=scorer("cost"),
        cv=3,
        error_score="raise",
    ).fit(X, labels)
    assert search.best_params_ == {"infinitecostsensitiveclassifier__gamma": 2.0}
    assert -0.15 < search.best_score_ < 0.0
    theta = (-0.5, 0.5)
    model = search.best_estimator_
    expected = -integrated_cost(labels, model.predict(X, theta=theta), theta)
    assert scorer("cost", theta=theta)(search, X, labels) == pytest.approx(expected)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:InfiniteOneClassSVM")  # the narrowest kernel is too narrow, and the fit says so
def test_unsupervised_tuning_finds_a_bandwidth_near_the_truth() -> None:
    X, new = make_mixture(150, random_state=0), make_mixture(2_000, random_state=77)
    gammas = [1e-3, 0.3]  # one that is far too narrow ranks by the distance from the rows, which is not bad at all
    search = GridSearchCV(
        InfiniteOneClassSVM(n_nodes=10, alpha=1e-3),
        {"gamma": gammas},
        scoring=scorer("mass_volume", n_samples=2_000),
        cv=KFold(3, shuffle=True, random_state=0),
        error_score="raise",
    ).fit(X)
    assert search.best_params_ == {"gamma": 0.3}
    truth = density(new)
    agreement = [
        stats.spearmanr(InfiniteOneClassSVM(n_nodes=10, alpha=1e-3, gamma=g).fit(X).score_samples(new), truth).statistic
        for g in gammas
    ]
    assert agreement[1] > 0.5 > 2.0 * agreement[0]
    tuned = search.best_estimator_.mass_volume_area(new, random_state=0)
    assert mass_volume_area(density, new, random_state=0) < tuned < 1.6 * mass_volume_area(density, new, random_state=0)


def test_level_set_scorers() -> None:
    X = make_mixture(80, random_state=0)
    model = InfiniteOneClassSVM(n_nodes=20).fit(X)
    levels = np.arange(5, 100) / 100.0
    assert scorer("theta_property")(model, X) == -theta_property_deviation(levels, model.predict(X, levels))
    assert scorer("theta_property", nu=0.3)(model, X) == -theta_property_deviation([0.3], model.predict(X, [0.3]))
    assert scorer("mass_volume")(model, X) == -mass_volume_area(model.score_samples, X, random_state=0)
    piped = make_pipeline(StandardScaler(), InfiniteOneClassSVM(n_nodes=10))
    scores = cross_val_score(piped, X, scoring=scorer("mass_volume"), cv=2, error_score="raise")
    assert np.all(scores < 0.0)


def test_the_table_of_scorers_has_a_formula_for_each() -> None:
    rows = [line.split(maxsplit=1) for line in (scorer.__doc__ or "").splitlines() if line.strip().startswith('"')]
    assert [name.strip('"') for name, _ in rows] == list(SCORERS)
    assert all(formula.startswith("−") for _, formula in rows)
    assert all(repr(found).startswith(f"{type(found).__name__}(−") for found in SCORERS.values())


def test_scorers_show_what_they_are() -> None:
    assert repr(scorer("crossing")) == "QuantileScorer(−crossing_loss, quantiles=0.01, 0.02, …, 0.99)"
    assert repr(scorer("coverage")) == "QuantileScorer(−coverage_error, quantiles=0.05, 0.95)"
    assert repr(scorer("cost")) == "CostScorer(−integrated_cost, theta=-0.98, -0.96, …, 0.98)"
    assert repr(scorer("theta_property", nu=(0.1, 0.5))) == "LevelSetScorer(−theta_property_deviation, nu=0.1, 0.5)"
    assert "masses=(0.1, 0.9), n_samples=10000" in repr(scorer("mass_volume"))


def test_the_coverage_scorer_is_the_distance_from_nine_tenths() -> None:
    X, y = make_sine(80, random_state=0)
    model = InfiniteQuantileRegressor(n_nodes=8).fit(X, y)
    low, high = model.predict(X, [0.05, 0.95]).T
    assert scorer("coverage")(model, X, y) == pytest.approx(-abs(np.mean((low <= y) & (y <= high)) - 0.9))


@each("name", SCORERS)
def test_a_model_that_cannot_answer_is_told_so(name: str) -> None:
    X, y = make_moons(30, random_state=0)
    score = scorer(name)
    needs = {"CostScorer": "theta", "LevelSetScorer": "nu", "MassVolumeScorer": "score_samples"}
    wanted = needs.get(type(score).__name__, "quantiles")
    for model in (Ridge(), LogisticRegression()):
        fitted = model.fit(X, y)
        for wrapped in (fitted, make_pipeline(StandardScaler(), fitted), GridSearchCV(model, {}, cv=2).fit(X, y)):
            with pytest.raises(TypeError, match=f"Scorer.* was given a .*no {wanted}.*such as Infinite"):
                score(wrapped, X, y)


# ---------------------------------------------------------------------------------------------- bad requests
@each(
    ("call", "words"),
    [
        (lambda: integrated_pinball_loss([1.0, 2.0], [[1.0, 2.0]], [0.1, 0.9]), "y_pred of shape"),
        (lambda: integrated_pinball_loss([1.0], [[1.0, np.nan]], [0.1, 0.9]), "NaN"),
        (lambda: integrated_pinball_loss([1.0], [[1.0, 2.0]], [0.1, 1.9]), "quantiles"),
        (lambda: integrated_pinball_loss([1.0], [[1.0, 2.0]], [0.1, 0.9], weights=[1.0]), "weights"),
        (lambda: integrated_pinball_loss([1.0], [1.0], 0.5, sample_weight=[-1.0]), "sample_weight"),
        (lambda: integrated_pinball_loss("abc", [1.0], 0.5), "y_true"),
        (lambda: crossing_loss([1.0, 2.0]), "y_pred of shape .* must be two-dimensional"),
        (lambda: interval_coverage([[1.0, 2.0]], [[1.0, 2.0]]), "y_true of shape .* must be one-dimensional"),
        (lambda: interval_score(["a"], [[1.0, 2.0]], 0.9), r"y_true=\['a'\] was given; it must be a number or"),
        (lambda: interval_score([1.0], [["a", 2.0]], 0.9), r"y_interval=\[\['a', 2.0\]\] was given"),
        (lambda: interval_score([1.0], [[1.0, 2.0]], "most"), "coverage='most' was given"),
        (lambda: interval_score([1.0], [[1.0, 2.0]], None), "coverage=None was given"),
        (lambda: interval_score([1.0, 2.0], [[1.0, 2.0], [1.0]], 0.9), "y_interval=.* was given"),
        (lambda: crps([None], [[{}]], 0.5), "y_true|y_pred"),
        (lambda: calibration_error([1.0], [["b"]], 0.5), r"y_pred=\[\['b'\]\] was given"),
        (lambda: calibration_error([1.0], [[1.0]], "half"), "quantiles='half' was given"),
        (lambda: mean_interval_width([[1.0, 2.0]], sample_weight=["c"]), r"sample_weight=\['c'\] was given"),
        (lambda: theta_property_deviation(0.1, ["in", "out"]), r"inside=\['in', 'out'\] was given"),
        (lambda: theta_property_deviation(0.1, [1.0, np.nan]), "inside contains NaN"),
        (lambda: mass_volume_area(density, np.ones((3, 2)), masses=(0.1, 0.5, 0.9)), "masses"),
        (lambda: crps([1.0], [[1.0]]), "quantiles=None"),
        (lambda: interval_coverage([1.0], [[1.0, 2.0, 3.0]]), "y_interval"),
        (lambda: interval_coverage([1.0, 2.0], [[1.0, 2.0]]), "y_interval"),
        (lambda: interval_score([1.0], [[1.0, 2.0]], 1.0), "coverage"),
        (lambda: sensitivity_specificity([1, 1], [1, 0]), "one class"),
        (lambda: sensitivity_specificity([1, 2, 3], [1, 2, 3]), "two"),
        (lambda: sensitivity_specificity([1, 0], [1, 0, 0]), "y_pred of shape"),
        (lambda: integrated_cost([1, 0], [[1, 0], [1, 0]], [0.5]), "theta"),
        (lambda: theta_property_deviation([0.1, 0.2], [True, False]), "inside"),
        (lambda: mass_volume_curve(lambda Z: Z, np.ones((3, 2))), "score"),
        (lambda: mass_volume_curve(lambda Z: Z[:1, 0], np.ones((3, 2))), "score"),
        (lambda: mass_volume_curve(density, np.ones((3, 2)), n_samples=0), "n_samples"),
        (lambda: mass_volume_curve(density, np.ones((3, 2)), box=([0], [1])), "box"),
        (lambda: mass_volume_area(density, np.ones((3, 2)), masses=(0.9, 0.1)), "masses"),
    ],
)
def test_bad_requests_are_sentences(call: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()


def test_a_scorer_of_ones_own() -> None:
    X, y = make_sine(50, random_state=0)
    model = InfiniteQuantileRegressor(n_nodes=8).fit(X, y)
    five = scorer(integrated_pinball_loss, quantiles=LEVELS)
    # the paper reports the sum over these levels
    each = [mean_pinball_loss(y, model.predict(X, a), alpha=a) for a in LEVELS]
    assert -5.0 * five(model, X, y) == pytest.approx(sum(each))
    assert pickle.loads(pickle.dumps(five)) == five


@each(
    ("call", "error", "words"),
    [
        (lambda: scorer("accuracy"), ValueError, "one of 'pinball', 'crossing', .*'mass_volume', or a function"),
        (lambda: scorer(3), ValueError, "metric=3 was given"),
        (
            lambda: scorer("cost", quantiles=[0.5]),
            TypeError,
            "quantiles was given with metric='cost', which takes theta",
        ),
    ],
)
def test_a_wrong_scorer_is_a_sentence(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()
