"""Infinite cost-sensitive classification: labels, costs, and the trade-off between the two errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.metrics import confusion_matrix, roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from infinitask import InfiniteCostSensitiveClassifier, field
from infinitask.calibration._sign_change import flip_probability, flip_score
from infinitask.kernels import RBF, Gaussian
from infinitask.measures import Discrete, Uniform
from infinitask.predictive import Confusion, CostCurve, NetBenefitCurve, ROCCurve


@pytest.fixture(scope="module")
def moons() -> tuple[np.ndarray, np.ndarray]:
    return make_moons(100, noise=0.3, random_state=0)


@pytest.fixture(scope="module")
def model(moons: tuple[np.ndarray, np.ndarray]) -> InfiniteCostSensitiveClassifier:
    return InfiniteCostSensitiveClassifier(n_nodes=12, alpha=1e-2).fit(*moons)


@pytest.mark.quick(every=3)
@pytest.mark.parametrize("labels", [("no", "yes"), (False, True), (-5, 7), (-1.0, 1.0)], ids=str)
def test_any_two_labels(labels: tuple[Any, Any], moons: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = moons
    reference = InfiniteCostSensitiveClassifier(n_nodes=6).fit(X, y)
    named = np.asarray(labels)[y]
    model = InfiniteCostSensitiveClassifier(n_nodes=6).fit(X, named)
    assert model.classes_.tolist() == list(labels)
    assert np.array_equal(model.decision_function(X), reference.decision_function(X))
    predicted = model.predict(X)
    assert predicted.dtype == named.dtype
    assert np.array_equal(predicted == labels[1], reference.predict(X) == 1)
    assert model.score(X, named) == reference.score(X, y) > 0.8


def test_lists_of_labels(moons: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = moons
    model = InfiniteCostSensitiveClassifier(n_nodes=6).fit(X.tolist(), ["ham" if label else "eggs" for label in y])
    assert set(model.predict(X.tolist())) == {"ham", "eggs"}


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        (np.ones(100), "1 class"),
        (np.linspace(0.0, 1.0, 100), "continuous"),
    ],
)
def test_targets_that_are_not_two_classes(
    target: np.ndarray, sentence: str, moons: tuple[np.ndarray, np.ndarray]
) -> None:
    with pytest.raises(ValueError, match=sentence):
        InfiniteCostSensitiveClassifier().fit(moons[0], target)


def test_a_class_may_not_vanish_by_its_weights(moons: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = moons
    with pytest.raises(ValueError, match="positive weight"):
        InfiniteCostSensitiveClassifier().fit(X, y, sample_weight=y)


def test_a_third_class_of_weight_zero_is_no_class(moons: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = moons
    three = np.where(np.arange(100) < 5, 2, y)
    one = InfiniteCostSensitiveClassifier(n_nodes=6, alpha=0.01).fit(X, three, sample_weight=1.0 * (three < 2))
    other = InfiniteCostSensitiveClassifier(n_nodes=6, alpha=0.01).fit(X[5:], y[5:])
    assert one.classes_.tolist() == [0, 1]
    np.testing.assert_array_equal(one.decision_function(X, 0.2), other.decision_function(X, 0.2))


def test_more_classes_one_against_the_rest() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 20)
    X = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]])[y] + 0.5 * rng.normal(size=(60, 2))
    assert OneVsRestClassifier(InfiniteCostSensitiveClassifier(n_nodes=6)).fit(X, y).score(X, y) > 0.95


def test_costs_that_differ_by_a_factor_of_three_hundred() -> None:
    """Equally spaced trade-offs end at 1/512: probabilities and decisions are told apart beyond it too."""
    rng = np.random.default_rng(0)
    X, X_new = rng.normal(size=(2_000, 2)), rng.normal(size=(4_000, 2))
    p, p_new = (1.0 / (1.0 + np.exp(3.0 - 6.0 * part[:, 0])) for part in (X, X_new))
    y, y_new = rng.uniform(size=2_000) < p, rng.uniform(size=4_000) < p_new
    model = InfiniteCostSensitiveClassifier(n_nodes=16).fit(X, y)
    assert 1.0 / 2_002.0 <= np.min(model.predict_proba(X_new)) < 0.003
    alarm = model.predict(X_new, model.theta_from_costs(300.0, 1.0))
    cost = np.mean(300.0 * (y_new & ~alarm) + (~y_new & alarm))
    assert np.mean(alarm) < 0.95
    assert cost < 0.9 * np.mean(~y_new)  # that of an alarm for every row


def test_exchanging_the_classes_exchanges_the_costs(moons: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = moons
    theta = np.array([-0.8, 0.0, 0.5])
    one, other = (
        InfiniteCostSensitiveClassifier(n_nodes=8, alpha=0.02, tol=1e-8).fit(X, target) for target in (y, 1 - y)
    )
    assert abs(one.objective_ - other.objective_) <= 3e-8 * one.objective_
    np.testing.assert_allclose(other.decision_function(X, theta), -one.decision_function(X, -theta), atol=2e-3)


def test_theta_trades_one_error_for_the_other(
    model: InfiniteCostSensitiveClassifier, moons: tuple[np.ndarray, np.ndarray]
) -> None:
    X, y = moons
    theta = [-0.9, -0.4, 0.0, 0.4, 0.9]
    alarms = model.predict(X, theta) == 1
    missed = np.mean(~alarms[y == 1], axis=0)
    false = np.mean(alarms[y == 0], axis=0)
    assert np.all(np.diff(missed) <= 0.0)
    assert np.all(np.diff(false) >= 0.0)
    assert missed[0] > missed[-1]
    assert false[0] < false[-1]


def test_at_the_ends_of_theta_one_kind_of_error_is_free(moons: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = moons
    model = InfiniteCostSensitiveClassifier(alpha=1e-5, bias_kernel=None, gamma=1.0).fit(X, y)
    only_negatives, only_positives = model.predict(X, [-1.0, 1.0]).T
    assert not np.any(only_negatives[y == 0])
    assert np.all(only_positives[y == 1])
    assert np.any(only_negatives)
    assert not np.all(only_positives)


def test_predict_is_the_sign_of_the_decision(
    model: InfiniteCostSensitiveClassifier, moons: tuple[np.ndarray, np.ndarray]
) -> None:
    X, _ = moons
    theta = [-0.5, 0.5]
    assert np.array_equal(model.predict(X, theta), (model.decision_function(X, theta) > 0.0).astype(int))
    assert np.array_equal(model.predict(X), model.predict(X, 0.0))
    assert model.predict(X).shape == (100,)


def test_the_constructor_says_what_predict_answers(moons: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = moons
    model = InfiniteCostSensitiveClassifier(theta=[-0.5, 0.5], n_nodes=6).fit(X, y)
    assert np.array_equal(model.predict(X), model.predict(X, [-0.5, 0.5]))
    assert np.array_equal(model.decision_function(X), model.decision_function(X, theta=[-0.5, 0.5]))


def test_the_domain_is_closed(model: InfiniteCostSensitiveClassifier, moons: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = moons
    assert np.all(np.isfinite(model.decision_function(X, [-1.0, 1.0])))
    for wrong in (-1.01, 1.01):
        with pytest.raises(ValueError, match=r"outside Θ = \[-1, 1\]"):
            model.predict(X, wrong)
    with pytest.raises(ValueError, match="CostSensitiveHinge is defined for θ in"):
        InfiniteCostSensitiveClassifier(measure=(-2.0, 0.0)).fit(X, y)


def test_some_costs_only(moons: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = moons
    part = InfiniteCostSensitiveClassifier(measure=Uniform(0.2, 0.6), theta=0.4, n_nodes=6).fit(X, y)
    assert part.predict(X).shape == (100,)
    with pytest.raises(ValueError, match="outside"):
        part.predict(X, 0.0)
    points = InfiniteCostSensitiveClassifier(measure=Discrete([-0.5, 0.0, 0.5]), task_kernel="diagonal").fit(X, y)
    assert points.predict(X, [-0.5, 0.5]).shape == (100, 2)


def test_separable_data_are_separated() -> None:
    X = np.concatenate([np.linspace(-2.0, -1.0, 10), np.linspace(1.0, 2.0, 10)])[:, None]
    y = np.repeat(["left", "right"], 10)
    model = InfiniteCostSensitiveClassifier(n_nodes=8, alpha=1e-4).fit(X, y)
    assert model.dual_gap_ <= model.tol
    assert np.all(model.predict(X, [-0.5, 0.0, 0.5]) == y[:, None])


@pytest.mark.parametrize(("fn", "fp", "theta"), [(1, 1, 0.0), (9.0, 1.0, 0.8), (0.0, 2.0, -1.0), (3, 0, 1.0)])
def test_costs_become_a_task(fn: float, fp: float, theta: float) -> None:
    assert InfiniteCostSensitiveClassifier.theta_from_costs(fn, fp) == pytest.approx(theta)
    assert InfiniteCostSensitiveClassifier.theta_from_costs(fp, fn) == pytest.approx(-theta)
    assert InfiniteCostSensitiveClassifier.theta_from_costs(8 * fn, 8 * fp) == pytest.approx(theta)


@pytest.mark.parametrize(
    ("fn", "fp", "named"),
    [(-1, 1, "fn_cost"), (1, -1, "fp_cost"), (0, 0, "both 0"), (1, np.inf, "fp_cost"), ("a", 1, "fn")],
)
def test_costs_that_are_none(fn: Any, fp: Any, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        InfiniteCostSensitiveClassifier.theta_from_costs(fn, fp)


@pytest.mark.slow
def test_a_search_over_kernel_and_ridge(moons: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = moons
    search = GridSearchCV(
        InfiniteCostSensitiveClassifier(task_kernel=Gaussian(), n_nodes=6),
        {"task_kernel__gamma": [0.1, 1.0]},
        cv=3,
        error_score="raise",
    ).fit(X, y)
    assert search.best_estimator_.task_kernel_.gamma == search.best_params_["task_kernel__gamma"]
    pipeline = make_pipeline(StandardScaler(), InfiniteCostSensitiveClassifier(n_nodes=6))
    name = "infinitecostsensitiveclassifier__alpha"
    search = GridSearchCV(pipeline, {name: [1e-3, 1e-1]}, cv=3, scoring="roc_auc", error_score="raise").fit(X, y)
    assert search.best_score_ > 0.85


# ------------------------------------------------------------------------------------------- one θ for each row
def test_each_row_may_have_its_own_trade_off(
    model: InfiniteCostSensitiveClassifier, moons: tuple[np.ndarray, np.ndarray]
) -> None:
    X, _ = moons
    theta = np.random.default_rng(0).uniform(-1.0, 1.0, size=100)
    paired = model.decision_function(X, theta, per_sample=True)
    np.testing.assert_allclose(paired, np.diag(model.decision_function(X, theta)), atol=1e-10)
    assert np.array_equal(model.predict(X, theta, per_sample=True), (paired > 0.0).astype(int))
    assert np.any(model.predict(X, theta, per_sample=True) != model.predict(X, 0.0))
    for wrong in (0.3, theta[:99], np.append(theta, 0.0)):
        with pytest.raises(ValueError, match="one task for each input"):
            model.predict(X, wrong, per_sample=True)
    with pytest.raises(ValueError, match="outside"):
        model.predict(X, theta + 1.5, per_sample=True)


def test_own_trade_offs_with_a_precomputed_gram(moons: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = moons
    kernel, weight = RBF(0.5), np.where(np.arange(100) % 4 == 0, 0.0, 1.0)
    # alpha: the rows of a Gram matrix keep their order, so calibrated decisions would leave out other rows together;
    # tol: with another order of the rows the solver takes another way, and only the objective is known to a gap
    choices: dict[str, Any] = {"n_nodes": 6, "alpha": 1e-3, "tol": 1e-6}
    known = InfiniteCostSensitiveClassifier(kernel="precomputed", **choices).fit(kernel(X, X), y, weight)
    direct = InfiniteCostSensitiveClassifier(kernel=kernel, **choices).fit(X, y, weight)
    theta = np.linspace(-1.0, 1.0, 100)
    ask = {"theta": theta, "per_sample": True}
    np.testing.assert_allclose(
        known.decision_function(kernel(X, X), **ask), direct.decision_function(X, **ask), atol=1e-3
    )
    np.testing.assert_allclose(known.predict_proba(kernel(X, X)), direct.predict_proba(X), atol=1e-3)


def test_costs_of_each_row_become_its_task() -> None:
    amounts = np.array([1.0, 4.0, 100.0, 0.0])
    theta = InfiniteCostSensitiveClassifier.theta_from_costs(amounts, 4.0)
    one_by_one = [InfiniteCostSensitiveClassifier.theta_from_costs(float(a), 4.0) for a in amounts]
    assert theta.tolist() == one_by_one == [-0.6, 0.0, pytest.approx(96.0 / 104.0), -1.0]
    assert isinstance(one_by_one[0], float)
    both = InfiniteCostSensitiveClassifier.theta_from_costs(amounts.tolist(), [0.0, 1e308, 1e-300, 2.0])
    assert np.all(np.abs(both) <= 1.0)
    huge = InfiniteCostSensitiveClassifier.theta_from_costs([1.7e308], [1.7e308 / 3.0])
    np.testing.assert_allclose(huge, [0.5])
    for wrong in ([1.0, -1.0], [1.0, np.nan], [0.0, 1.0], [[1.0]], [1.0, 2.0, 3.0]):
        with pytest.raises(ValueError, match="cost"):
            InfiniteCostSensitiveClassifier.theta_from_costs(wrong, [0.0, 1.0])


# -------------------------------------------------------------------------------------------------- probabilities
def test_probabilities_are_those_of_the_data() -> None:
    # P(y = 1 | x) is known: the flip of the decision finds it
    rng = np.random.default_rng(0)
    X = rng.uniform(-3.0, 3.0, size=(1500, 1))
    truth = 1.0 / (1.0 + np.exp(-2.0 * np.sin(X[:, 0]) - 0.5))
    y = rng.random(1500) < truth
    p = InfiniteCostSensitiveClassifier(alpha=1e-5).fit(X, y).predict_proba(X)[:, 1]
    assert np.mean(np.abs(p - truth)) < 0.05
    assert np.mean(np.abs(np.mean(truth) - truth)) > 0.25  # of one who does not look at x


@pytest.fixture(scope="module")
def restless(moons: tuple[np.ndarray, np.ndarray]) -> InfiniteCostSensitiveClassifier:
    """A model of labels that mean nothing, with a narrow kernel over θ: its decisions flip several times."""
    labels = np.random.default_rng(0).integers(0, 2, size=100)
    spec = {"alpha": 1e-4, "task_gamma": 50.0, "gamma": 1.0, "bias_kernel": None}
    return InfiniteCostSensitiveClassifier(n_nodes=12, **spec).fit(moons[0], labels)


def test_the_larger_probability_is_the_decision_at_equal_costs(
    model: InfiniteCostSensitiveClassifier, restless: InfiniteCostSensitiveClassifier
) -> None:
    new = np.random.default_rng(1).uniform(-3.0, 3.0, size=(2000, 2))
    levels = np.linspace(-1.0, 1.0, 257)
    for one in (model, restless):
        p = one.predict_proba(new)
        assert p.shape == (2000, 2)
        np.testing.assert_allclose(p.sum(axis=1), 1.0)
        assert np.array_equal(one.classes_[np.argmax(p, axis=1)], one.predict(new, 0.0))
        assert p.min() >= 1.0 / 102.0 - 1e-15
        assert np.array_equal(one.predict(new), one.decision_function(new) > 0.0)
    # the share of Θ alone would not do that
    share = flip_probability(levels, restless.decision_function(new, levels), 100)
    assert np.count_nonzero((share > 0.5) != (restless.predict(new, 0.0) == 1)) > 20


def test_the_probability_is_the_fraction_of_trade_offs_with_an_alarm(
    model: InfiniteCostSensitiveClassifier, moons: tuple[np.ndarray, np.ndarray]
) -> None:
    X, _ = moons
    fine = np.linspace(-1.0, 1.0, 20001)
    alarms = np.mean(model.decision_function(X, fine) > 0.0, axis=1)
    p = model.predict_proba(X)[:, 1]
    inside = (p > 1.0 / 102.0) & (p < 101.0 / 102.0)
    assert np.count_nonzero(inside) > 20
    np.testing.assert_allclose(p[inside], alarms[inside], atol=1e-3)


def test_exchanging_the_classes_exchanges_the_probabilities(moons: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = moons
    one, other = (InfiniteCostSensitiveClassifier(n_nodes=8, alpha=0.02, tol=1e-8).fit(X, t) for t in (y, 1 - y))
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X)[:, ::-1], atol=2e-3)


def test_probabilities_are_bounded_by_the_measure(moons: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = moons
    part = InfiniteCostSensitiveClassifier(measure=(-0.2, 0.6), n_nodes=6).fit(X, y).predict_proba(X)[:, 1]
    assert (part.min(), part.max()) == (pytest.approx(0.2), pytest.approx(0.6))
    side = InfiniteCostSensitiveClassifier(measure=(0.2, 0.6), theta=0.3, n_nodes=6).fit(X, y).predict_proba(X)[:, 1]
    assert (side.min(), side.max()) == (pytest.approx(0.2), pytest.approx(0.4))
    points = InfiniteCostSensitiveClassifier(measure=Discrete([-0.5, 0.0, 0.5]), task_kernel="diagonal").fit(X, y)
    p = points.predict_proba(X)[:, 1]
    assert (p.min(), p.max()) == (pytest.approx(0.25), pytest.approx(0.75))
    assert np.array_equal(p > 0.5, points.predict(X, 0.0) == 1)
    one = InfiniteCostSensitiveClassifier(measure=Discrete([0.0]), task_kernel="constant").fit(X, y)
    np.testing.assert_allclose(one.predict_proba(X), 0.5)
    assert np.array_equal(np.argmax(one.predict_proba(X), axis=1), one.predict(X))


def test_rows_count_for_the_rarest_event(moons: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = moons
    weight = np.random.default_rng(0).integers(0, 4, size=100)
    repeated = np.repeat(np.arange(100), weight)
    fit = InfiniteCostSensitiveClassifier(n_nodes=6, alpha=1e-2, alpha_bias=None).fit
    n, p = fit(X[repeated], y[repeated]).n_samples_fit_, fit(X[repeated], y[repeated]).predict_proba(X)
    assert n == repeated.size
    assert p.min() == pytest.approx(1.0 / (n + 2.0))
    np.testing.assert_allclose(fit(X, y, weight).predict_proba(X), p, atol=1e-9)
    assert fit(X, y, weight / 50.0).n_samples_fit_ == np.count_nonzero(weight)


def test_the_size_of_the_blocks_does_not_matter(
    model: InfiniteCostSensitiveClassifier, moons: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = moons
    p, score, tpr = model.predict_proba(X), model.decision_function(X), model.roc_curve(X, y).tpr
    monkeypatch.setattr(field, "IN_MEMORY", 7 * 257)
    np.testing.assert_allclose(model.predict_proba(X), p, atol=1e-9)
    np.testing.assert_allclose(model.decision_function(X), score, atol=1e-9)
    np.testing.assert_array_equal(model.roc_curve(X, y).tpr, tpr)


def test_without_a_trade_off_rows_are_ranked_as_by_the_probability(
    model: InfiniteCostSensitiveClassifier, moons: tuple[np.ndarray, np.ndarray]
) -> None:
    X, y = moons
    order = np.argsort(model.decision_function(X))
    assert np.all(np.diff(model.predict_proba(X)[order, 1]) >= 0.0)
    # also where the probabilities are cut off and all the same
    held = InfiniteCostSensitiveClassifier(n_nodes=12, alpha=1e-2, alpha_bias=None, gamma="median").fit(X, y)
    assert np.unique(held.decision_function(X)).size == 100 > np.unique(held.predict_proba(X)[:, 1]).size
    bold = InfiniteCostSensitiveClassifier(theta=0.7, n_nodes=12, alpha=1e-2).fit(X, y)
    assert np.array_equal(bold.decision_function(X) > 0.0, bold.predict(X) == 1)
    np.testing.assert_allclose(bold.decision_function(X) - model.decision_function(X), 0.7, atol=1e-9)


def test_the_score_of_curves_that_never_flip_is_beyond_those_that_do() -> None:
    levels = np.linspace(-1.0, 1.0, 5)
    curves = levels + np.array([-3.0, -1.5, -0.5, 0.0, 0.7, 1.5, 4.0])[:, None]
    score = flip_score(levels, curves)
    assert np.all(np.diff(score) > 0.0)
    np.testing.assert_allclose(score[2:5], [-0.5, 0.0, 0.7])
    assert score[1] < -1.0
    assert score[5] > 1.0


# ----------------------------------------------------------------------------------------------- choosing a θ
@pytest.fixture(scope="module")
def held_out() -> tuple[np.ndarray, np.ndarray]:
    return make_moons(150, noise=0.4, random_state=5)


def counted(model: Any, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """θ, false positive rate and sensitivity, counted by scikit-learn one θ at a time."""
    levels = model.roc_curve(X, y).theta
    assert {-1.0, 0.0, 1.0} <= set(levels)
    assert np.diff(levels).max() <= 1.0 / 128.0
    assert np.count_nonzero(levels > 0.9999) > 10  # one in ten thousand may be positive
    tables = [confusion_matrix(y, column) for column in model.predict(X, levels).T]
    return levels, *np.array([(t[0, 1] / t[0].sum(), t[1, 1] / t[1].sum()) for t in tables]).T


def test_no_trade_off_of_the_costs_is_cheaper_than_the_chosen_one() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2))
    y = rng.uniform(size=3000) < 0.05 / (1.0 + np.exp(-2.0 * X[:, 0] - 1.0))
    model = InfiniteCostSensitiveClassifier(n_nodes=12, tol=1e-3).fit(X[:1000], y[:1000])
    X, y = X[1000:], y[1000:]

    def cost(theta: float, missed: float) -> float:
        alarm = model.predict(X, theta)
        return float(np.mean(np.where(y, missed * ~alarm, alarm)))

    for missed in (3.0, 40.0, 300.0, 2000.0):
        chosen = cost(model.choose_theta(X, y, fn_cost=missed, fp_cost=1.0), missed)
        assert chosen <= cost(model.theta_from_costs(missed, 1.0), missed)


@pytest.mark.parametrize("bound", [0.05, 0.2])
def test_a_bound_on_one_error_makes_the_other_small(
    bound: float, model: InfiniteCostSensitiveClassifier, held_out: tuple[np.ndarray, np.ndarray]
) -> None:
    levels, fpr, tpr = counted(model, *held_out)
    at = np.flatnonzero(levels == model.choose_theta(*held_out, max_fpr=bound))
    assert fpr[at] <= bound
    assert tpr[at] == tpr[fpr <= bound].max() > 0.3
    at = np.flatnonzero(levels == model.choose_theta(*held_out, min_sensitivity=1.0 - bound))
    assert tpr[at] >= 1.0 - bound - 1e-12
    assert fpr[at] == fpr[tpr >= 1.0 - bound - 1e-12].min() < 0.7


@pytest.mark.parametrize(("fn", "fp"), [(1.0, 1.0), (9.0, 1.0), (1.0, 5.0), (0.0, 1.0)])
def test_costs_choose_the_cheapest_theta(
    fn: float, fp: float, model: InfiniteCostSensitiveClassifier, held_out: tuple[np.ndarray, np.ndarray]
) -> None:
    y = held_out[1]
    levels, fpr, tpr = counted(model, *held_out)
    cost = fn * (1.0 - tpr) * np.mean(y == 1) + fp * fpr * np.mean(y == 0)
    cheapest = levels[cost <= cost.min() + 1e-12]
    theta = model.choose_theta(*held_out, fn_cost=fn, fp_cost=fp)
    assert theta in cheapest
    wanted = model.theta_from_costs(fn, fp)
    assert abs(theta - wanted) == np.min(np.abs(cheapest - wanted))


@pytest.mark.parametrize(
    ("wish", "sentence"),
    [
        ({}, "exactly one wish"),
        ({"max_fpr": 0.1, "min_sensitivity": 0.9}, "exactly one wish"),
        ({"max_fpr": 0.1, "fn_cost": 1.0, "fp_cost": 1.0}, "exactly one wish"),
        ({"fn_cost": 1.0}, "both costs"),
        ({"fn_cost": 1.0, "fp_cost": 1.0, "confidence": 0.9}, "together with costs"),
        ({"fn_cost": [1.0, 2.0], "fp_cost": 1.0}, "two numbers"),
        ({"fn_cost": -1.0, "fp_cost": 1.0}, "fn_cost"),
        ({"max_fpr": 1.2}, "max_fpr=1.2"),
        ({"min_sensitivity": "high"}, "min_sensitivity='high'"),
        ({"max_fpr": 0.0, "confidence": 0.9}, "max_fpr=0.0 .* strictly between"),
        ({"max_fpr": 0.1, "confidence": 1.0}, "confidence=1.0 .* strictly between"),
    ],
    ids=str,
)
def test_wishes_that_cannot_be_met(
    wish: dict[str, Any],
    sentence: str,
    model: InfiniteCostSensitiveClassifier,
    held_out: tuple[np.ndarray, np.ndarray],
) -> None:
    with pytest.raises(ValueError, match=sentence):
        model.choose_theta(*held_out, **wish)


def test_labels_the_model_does_not_know(
    model: InfiniteCostSensitiveClassifier, held_out: tuple[np.ndarray, np.ndarray]
) -> None:
    X, y = held_out
    with pytest.raises(ValueError, match=r"the model knows the labels \[0, 1\]"):
        model.roc_curve(X, 2 * y)
    with pytest.raises(ValueError, match="one class only"):
        model.roc_curve(X[y == 1], y[y == 1])
    with pytest.raises(ValueError, match="inconsistent"):
        model.cost_curve(X, y[:-1])
    with pytest.raises(ValueError, match="at least one"):
        model.cost_curve(X, y, sample_weight=np.zeros(len(y)))


# ------------------------------------------------------------------------------------------------------ curves
def test_curves_are_what_one_counts_at_each_theta(
    model: InfiniteCostSensitiveClassifier, held_out: tuple[np.ndarray, np.ndarray]
) -> None:
    X, y = held_out
    levels, fpr, tpr = counted(model, X, y)
    roc, cost, benefit = model.roc_curve(X, y), model.cost_curve(X, y), model.net_benefit_curve(X, y)
    assert np.array_equal(roc.theta, levels)
    np.testing.assert_allclose(roc.fpr, fpr)
    np.testing.assert_allclose(roc.tpr, tpr)
    share = np.mean(y == 1)
    missed, false = (1.0 - tpr) * share, fpr * (1.0 - share)
    np.testing.assert_allclose(cost.cost, 0.5 * (1.0 + levels) * missed + 0.5 * (1.0 - levels) * false)
    t = 0.5 * (1.0 - levels[1:])
    np.testing.assert_allclose(benefit.threshold, t[::-1])
    np.testing.assert_allclose(benefit.net_benefit, (tpr[1:] * share - false[1:] * t / (1.0 - t))[::-1], atol=1e-12)
    np.testing.assert_allclose(benefit.treat_all, (share - (1.0 - share) * t / (1.0 - t))[::-1], atol=1e-12)
    assert not np.any(benefit.treat_none)
    # the cost is the net benefit in other units
    units = (1.0 - benefit.threshold) * (share - benefit.net_benefit)
    np.testing.assert_allclose(units[::-1], cost.cost[1:], atol=1e-12)


def test_the_area_is_the_auc_of_the_flip(
    model: InfiniteCostSensitiveClassifier, held_out: tuple[np.ndarray, np.ndarray]
) -> None:
    X, y = held_out
    weight = np.random.default_rng(0).uniform(0.5, 2.0, size=len(y))
    alarms = model.predict(X, np.linspace(-1.0, 1.0, 257)) == 1
    assert np.all(np.diff(alarms, axis=1) == (alarms[:, 1:] & ~alarms[:, :-1]))  # decisions rise with θ
    for w in (None, weight):
        expected = roc_auc_score(y, alarms.sum(axis=1), sample_weight=w)
        assert model.roc_curve(X, y, w).area == pytest.approx(expected, abs=1e-12)
    assert model.roc_curve(X, y).area != pytest.approx(model.roc_curve(X, y, weight).area, abs=1e-4)


def test_a_weight_counts_as_repetitions_in_the_curves(
    model: InfiniteCostSensitiveClassifier, held_out: tuple[np.ndarray, np.ndarray]
) -> None:
    X, y = held_out
    weight = np.random.default_rng(0).integers(0, 4, size=len(y))
    X_, y_ = np.repeat(X, weight, axis=0), np.repeat(y, weight)
    one, other = model.net_benefit_curve(X, y, weight), model.net_benefit_curve(X_, y_)
    np.testing.assert_allclose(one.net_benefit, other.net_benefit, atol=1e-12)
    np.testing.assert_allclose(model.cost_curve(X, y, weight).cost, model.cost_curve(X_, y_).cost, atol=1e-12)


THETA = np.linspace(-1.0, 1.0, 9)


def test_curves_of_one_who_is_never_wrong() -> None:
    counts = Confusion(THETA, np.zeros(9), np.zeros(9), positives=3.0, negatives=7.0)
    assert ROCCurve.of(counts).area == 1.0
    assert not np.any(CostCurve.of(counts).cost)
    np.testing.assert_allclose(NetBenefitCurve.of(counts).net_benefit, 0.3)


@pytest.mark.parametrize("alarm", [True, False])
def test_curves_of_one_who_does_not_look(alarm: bool) -> None:
    signs = np.array([True] * 3 + [False] * 7)
    counts = Confusion.count(THETA, [np.full((10, 9), 1.0 if alarm else 0.0)], signs)  # at h = 0: no alarm
    assert ROCCurve.of(counts).area == pytest.approx(0.5)
    cost, benefit = CostCurve.of(counts), NetBenefitCurve.of(counts)
    np.testing.assert_allclose(cost.cost, cost.cost_all_positive if alarm else cost.cost_all_negative)
    np.testing.assert_allclose(benefit.net_benefit, benefit.treat_all if alarm else benefit.treat_none, atol=1e-15)
    np.testing.assert_allclose(cost.best_constant, np.minimum(0.35 * (1.0 - THETA), 0.15 * (1.0 + THETA)))


def test_a_policy_that_is_beaten_does_not_lower_the_area() -> None:
    good = ROCCurve(np.array([-0.5, 0.5]), np.array([0.1, 0.3]), np.array([0.6, 0.9]))
    worse = ROCCurve(np.array([-0.5, 0.0, 0.5]), np.array([0.1, 0.2, 0.3]), np.array([0.6, 0.4, 0.9]))
    assert worse.area <= good.area
    assert worse.area >= good.area - 0.5 * 0.2 * 0.3  # it stays above the steps between the good ones
    line = ROCCurve(np.array([0.0]), np.array([0.5]), np.array([0.5]))
    assert line.area == 0.5


def test_as_many_trade_offs_as_rows_are_asked_about() -> None:
    X, y = make_moons(400, noise=0.3, random_state=0)
    model = InfiniteCostSensitiveClassifier(n_nodes=8, alpha=1e-2).fit(X, y)
    theta = model.theta_from_costs(np.linspace(1.0, 9.0, 400), 2.0)
    with pytest.warns(UserWarning, match="per_sample=True"):
        assert model.predict(X, theta).shape == (400, 400)
    assert model.predict(X, theta, per_sample=True).shape == (400,)
