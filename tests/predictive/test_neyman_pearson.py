"""One error held below a bound: the order statistic, the walk over θ, and what they promise of new data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from infinitask import InfiniteCostSensitiveClassifier
from infinitask.predictive import Confusion, choose_theta
from infinitask.predictive._neyman_pearson import allowed_errors, fixed_sequence, smallest_sample
from tests.support.each import each

Floats = np.ndarray[Any, Any]

CASES = [(20, 0.2, 0.9), (59, 0.05, 0.95), (100, 0.05, 0.95), (137, 0.1, 0.8), (400, 0.01, 0.99), (500, 0.3, 0.5)]

# ------------------------------------------------------------------------------------------- the binomial tail


def tail(n: int, k: int, alpha: float) -> float:
    """Σ_{j≥k} C(n, j) (1 − α)^j α^(n−j), as it is printed."""
    return math.fsum(math.comb(n, j) * (1.0 - alpha) ** j * alpha ** (n - j) for j in range(k, n + 1))


@each(("n", "alpha", "confidence"), CASES)
def test_the_rank_is_the_smallest_whose_tail_is_small(n: int, alpha: float, confidence: float) -> None:
    k = n - allowed_errors(n, alpha, confidence)
    delta = 1.0 - confidence
    if k <= n:
        assert tail(n, k, alpha) <= delta * (1.0 + 1e-9)
    assert tail(n, k - 1, alpha) > delta


@each(("alpha", "confidence"), [(0.05, 0.95), (0.1, 0.9), (0.01, 0.99), (0.5, 0.75), (0.3, 0.2)])
def test_the_smallest_sample_is_enough_and_one_row_less_is_not(alpha: float, confidence: float) -> None:
    n = smallest_sample(alpha, confidence)
    assert allowed_errors(n, alpha, confidence) >= 0
    assert allowed_errors(n - 1, alpha, confidence) == -1


@each("wrong", [0.0, 1.0, -0.1, float("nan"), "half"])
def test_fractions_outside_the_unit_interval_are_refused(wrong: Any) -> None:
    theta = np.array([-0.5, 0.5])
    counts = Confusion(theta, np.array([60.0, 1.0]), np.array([0.0, 30.0]), positives=90, negatives=100)
    with pytest.raises(ValueError, match=r"max_fpr=.*strictly between"):
        choose_theta(counts, max_fpr=wrong, confidence=0.9)
    with pytest.raises(ValueError, match=r"confidence=.*strictly between"):
        choose_theta(counts, max_fpr=0.1, confidence=wrong)


# ------------------------------------------------------------------------------------------------------ the walk
@each("seed", range(5))
def test_for_nested_decisions_the_walk_ends_at_the_order_statistic(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, alpha, confidence = 150, 0.1, 0.9
    levels = np.linspace(-1.0, 1.0, 4001)
    flips = rng.uniform(-0.9, 1.0, size=n)  # θ*(x_i) of negatives: false alarms at every θ above
    errors = np.sum(levels > flips[:, None], axis=0)
    last = levels[fixed_sequence(errors, n, alpha, confidence) - 1]
    score = np.sort(-flips)  # ascending; what scores above the k*-th raises an alarm
    threshold = score[n - allowed_errors(n, alpha, confidence) - 1]
    assert last == levels[levels <= -threshold].max()
    assert np.sum(-flips > threshold) == allowed_errors(n, alpha, confidence)


def test_the_walk_needs_no_order_of_the_errors() -> None:
    # rates that go up and down; a policy above the bound must not pass, not even behind one that is fine again
    rates = np.array([0.02, 0.06, 0.13, 0.03, 0.25, 0.01])
    n, alpha, confidence = 200, 0.1, 0.9
    errors = np.random.default_rng(0).binomial(n, rates, size=(4000, rates.size))
    passed = np.array([fixed_sequence(row, n, alpha, confidence) for row in errors])
    wrong = passed > 2  # the third policy is the first that is above the bound
    assert 0.0 < np.mean(wrong) <= 1.0 - confidence
    assert np.mean(passed >= 1) > 0.95
    # whoever tests all and takes any that passes is wrong more often than one who stops at the first failure
    alone = np.any((errors <= allowed_errors(n, alpha, confidence))[:, rates > alpha], axis=1)
    assert np.mean(alone) >= np.mean(wrong)


def test_all_may_pass_or_none() -> None:
    assert fixed_sequence(np.zeros(7), 100, 0.1, 0.9) == 7
    assert fixed_sequence(np.full(7, 100.0), 100, 0.1, 0.9) == 0
    assert fixed_sequence(np.zeros(7), 10, 0.1, 0.9) == 0  # too few samples for any


# ---------------------------------------------------------------------------------------------- what is promised
def draw(rng: np.random.Generator, n: int) -> tuple[Floats, Floats]:
    """Negatives from N(0, 1), positives from N(1.5, 1)."""
    y = (rng.random(n) < 0.5).astype(int)
    return (rng.normal(size=n) + 1.5 * y)[:, None], y


CELLS = stats.norm.ppf((np.arange(2000) + 0.5) / 2000)[:, None]
"""Cells of N(0, 1) of equal mass: the share of them in an interval is its probability, within 1/2000 for each end."""

REPETITIONS = 250


@pytest.mark.parametrize("wish", ["max_fpr", pytest.param("min_sensitivity", marks=pytest.mark.slow)])
def test_the_true_error_exceeds_the_bound_as_rarely_as_promised(wish: str) -> None:
    alpha, delta = 0.1, 0.1
    bound = {"max_fpr": alpha} if wish == "max_fpr" else {"min_sensitivity": 1.0 - alpha}
    label = 1 if wish == "max_fpr" else 0  # the answer that is the held error
    ours, theirs = (CELLS, CELLS + 1.5) if wish == "max_fpr" else (CELLS + 1.5, CELLS)
    held, found, naive, refused = [], [], [], 0
    for repetition in range(REPETITIONS):
        rng = np.random.default_rng(repetition)
        if repetition % 20 == 0:
            model = InfiniteCostSensitiveClassifier(n_nodes=8, alpha=1e-2).fit(*draw(rng, 200))
        X, y = draw(rng, 200)
        naive.append(np.mean(model.predict(ours, model.choose_theta(X, y, **bound)) == label))
        try:
            theta = model.choose_theta(X, y, **bound, confidence=1.0 - delta)
        except ValueError:
            refused += 1
            continue
        held.append(np.mean(model.predict(ours, theta) == label))
        found.append(np.mean(model.predict(theirs, theta) == label))
    exceeded = np.count_nonzero(np.asarray(held) > alpha)
    assert 0 < exceeded <= delta * REPETITIONS
    # without a confidence the bound is broken about every second time
    assert np.count_nonzero(np.asarray(naive) > alpha) > 0.3 * REPETITIONS
    # the promise is not bought by silence: the best rule with an error of 0.1 finds 59%, one that does not look 10%
    assert refused < 0.05 * REPETITIONS
    assert np.mean(found) > 0.4


def test_too_few_rows_are_told_how_many_are_needed() -> None:
    X, y = draw(np.random.default_rng(0), 80)
    model = InfiniteCostSensitiveClassifier(n_nodes=8).fit(X, y)
    with pytest.raises(ValueError, match="needs at least 299 negatives, and y holds"):
        model.choose_theta(X, y, max_fpr=0.01, confidence=0.95)
    with pytest.raises(ValueError, match="needs at least 299 positives, and y holds"):
        model.choose_theta(X, y, min_sensitivity=0.99, confidence=0.95)


def test_where_every_policy_errs_too_often_no_theta_is_named() -> None:
    theta = np.linspace(-1.0, 1.0, 5)
    counts = Confusion(theta, np.array([90.0, 80, 50, 30, 20]), np.array([10.0, 20, 50, 60, 70]), 100, 100)
    with pytest.raises(ValueError, match=r"No θ reaches max_fpr=0.1: at θ = -1, the most cautious, there are 10 false"):
        choose_theta(counts, max_fpr=0.1, confidence=0.9)
    assert choose_theta(counts, max_fpr=0.1) == -1.0
    with pytest.raises(ValueError, match=r"No θ reaches min_sensitivity=0.9: the fewest misses are 20 of 100"):
        choose_theta(counts, min_sensitivity=0.9)
    assert choose_theta(counts, min_sensitivity=0.7, confidence=0.9) == 1.0


@each("confidence", [None, 0.9])
def test_a_theta_that_was_not_learnt_may_be_what_is_missing(confidence: float | None) -> None:
    X, y = draw(np.random.default_rng(0), 200)
    narrow, whole = (InfiniteCostSensitiveClassifier(n_nodes=8, measure=m).fit(X, y) for m in ((-0.2, 0.2), None))
    X, y = draw(np.random.default_rng(1), 400)
    said = r"No θ reaches .*trained on Θ = \[-0.2, 0.2\], which may be the limit: fit with a measure that reaches to {}"
    with pytest.raises(ValueError, match=said.format("-1")):
        narrow.choose_theta(X, y, max_fpr=0.1, confidence=confidence)
    with pytest.raises(ValueError, match=said.format("1")):
        narrow.choose_theta(X, y, min_sensitivity=0.9, confidence=confidence)
    # and so it was: a model of all θ has one that serves
    assert whole.choose_theta(X, y, max_fpr=0.1, confidence=confidence) < -0.2
    assert whole.choose_theta(X, y, min_sensitivity=0.9, confidence=confidence) > 0.2


def test_where_theta_reaches_the_cautious_end_it_is_not_to_blame() -> None:
    theta = np.linspace(-1.0, 0.5, 4)
    counts = Confusion(theta, np.full(4, 50.0), np.full(4, 50.0), positives=100, negatives=100)
    with pytest.raises(ValueError, match="No θ reaches") as caught:
        choose_theta(counts, max_fpr=0.1)
    assert "trained on" not in str(caught.value)
    with pytest.raises(ValueError, match=r"trained on Θ = \[-1, 0.5\]"):
        choose_theta(counts, min_sensitivity=0.9)


# -------------------------------------------------------------------------------------------- what a person sees
def test_counts_and_curves_are_shown_in_one_line() -> None:
    X, y = draw(np.random.default_rng(0), 300)
    model = InfiniteCostSensitiveClassifier(n_nodes=8).fit(X[:100], y[:100])
    X, y = X[100:], y[100:]
    roc, cost, benefit = model.roc_curve(X, y), model.cost_curve(X, y), model.net_benefit_curve(X, y)
    assert repr(roc) == f"ROCCurve(385 levels from -1 to 1, area={roc.area:.4g})"
    assert repr(cost).startswith(f"CostCurve(385 levels from -1 to 1, mean cost {cost.cost.mean():.4g}, ")
    assert repr(benefit) == f"NetBenefitCurve(384 thresholds from 0 to {benefit.threshold[-1]:g})"
    one = Confusion(np.array([0.5]), np.array([3.0]), np.array([2.0]), positives=4.5, negatives=8)
    assert repr(one) == "Confusion(1 level at 0.5, 4.5 positives, 8 negatives)"


def test_data_of_the_held_class_alone_are_enough() -> None:
    X, y = draw(np.random.default_rng(1), 300)
    model = InfiniteCostSensitiveClassifier(n_nodes=8).fit(X[:100], y[:100])
    X, y = X[100:], y[100:]
    both = model.choose_theta(X, y, max_fpr=0.1, confidence=0.9)
    assert model.choose_theta(X[y == 0], y[y == 0], max_fpr=0.1, confidence=0.9) == pytest.approx(both, abs=0.05)
    with pytest.raises(ValueError, match="y holds no positives"):
        model.choose_theta(X[y == 0], y[y == 0], min_sensitivity=0.9, confidence=0.9)
