"""Decisions that are set last: logistic fits to rows left out, and what they do to alarms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from infinitask import IndependentCostSensitiveClassifier, InfiniteCostSensitiveClassifier, InfiniteOneClassSVM
from infinitask.calibration._log_odds import Scale, logistic_lines
from infinitask.calibration._thresholds import Shift
from tests.support.each import each


def scores(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Three columns that know the class more or less well, and the class."""
    rng = np.random.default_rng(seed)
    positive = rng.uniform(size=n) < 0.3
    h = positive[:, None] * np.array([2.0, 0.5, 4.0]) + rng.normal(size=(n, 3)) * np.array([1.0, 1.0, 1.5])
    return 1e-3 * (h - 1.0), positive


def platt_targets(positive: np.ndarray) -> np.ndarray:
    n, ones = positive.size, int(positive.sum())
    return np.where(positive, (ones + 1.0) / (ones + 2.0), 1.0 / (n - ones + 2.0))


# --------------------------------------------------------------------------------------------------- logistic fits
def test_lines_are_the_logistic_regressions_of_scikit_learn() -> None:
    h, positive = scores(300)
    slope, intercept, _ = logistic_lines(h, positive, np.full(300, 1 / 300))
    target = platt_targets(positive)
    for k in range(3):
        # a soft target is a row of each class, with weights
        rows, labels = np.concatenate([h[:, [k]], h[:, [k]]]) * 1e3, np.repeat([1, 0], 300)
        judge = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000)
        judge.fit(rows, labels, sample_weight=np.concatenate([target, 1.0 - target]))
        assert slope[k] == pytest.approx(1e3 * judge.coef_[0, 0], rel=1e-4)
        assert intercept[k] == pytest.approx(judge.intercept_[0], rel=1e-4, abs=1e-4)


def test_weights_take_part() -> None:
    h, positive = scores(120, 1)
    omega = np.random.default_rng(1).gamma(1.0, size=120)
    omega /= omega.sum()
    slope, intercept, _ = logistic_lines(h, positive, omega)
    count = 1.0 / np.sum(omega**2)
    ones = count * np.sum(omega[positive])
    target = np.where(positive, (ones + 1.0) / (ones + 2.0), 1.0 / (count - ones + 2.0))
    for k in range(3):

        def loss(v: np.ndarray, k: int = k) -> float:
            odds = 1e3 * v[0] * h[:, k] + v[1]
            return float(omega @ (np.logaddexp(0.0, odds) - target * odds))

        best = minimize(loss, [0.0, 0.0], method="BFGS", options={"gtol": 1e-9})
        assert loss(np.array([slope[k] / 1e3, intercept[k]])) <= best.fun + 1e-12
        assert slope[k] == pytest.approx(1e3 * best.x[0], rel=1e-4)


def test_units_and_origin_of_the_scores_do_not_matter() -> None:
    h, positive = scores(80, 2)
    omega = np.full(80, 1 / 80)
    slope, intercept, _ = logistic_lines(h, positive, omega)
    for a, b in ((1e6, 0.0), (1e-6, 0.0), (1.0, 5.0)):
        other, moved, _ = logistic_lines(a * h + b, positive, omega)
        np.testing.assert_allclose(a * other, slope, rtol=1e-5)
        np.testing.assert_allclose(moved + other * b, intercept, rtol=1e-5, atol=1e-5)


def test_a_column_that_tells_nothing_has_the_log_odds_of_the_classes() -> None:
    h, positive = scores(100, 3)
    omega = np.full(100, 0.01)
    flat = logit(omega @ platt_targets(positive))
    useless = np.column_stack([np.full(100, 7.0), np.zeros(100), -h[:, 2], h[:, 2]])
    slope, intercept, _ = logistic_lines(useless, positive, omega)
    # constant, 0, and one that is wrong way round: a larger h never means a smaller probability
    assert slope[:3].tolist() == [0.0, 0.0, 0.0]
    np.testing.assert_allclose(intercept[:3], flat, rtol=1e-9)
    assert slope[3] > 0.0


def test_separable_classes_have_finite_lines() -> None:
    h = np.linspace(-1.0, 1.0, 40)[:, None]
    positive = h[:, 0] > 0.4
    slope, intercept, _ = logistic_lines(h, positive, np.full(40, 1 / 40))
    assert 0.0 < slope[0] < 1e4
    p = expit(slope * h[:, 0] + intercept)
    assert np.all((p > 0.5) == positive)
    assert omega_mean(p) == pytest.approx(omega_mean(platt_targets(positive)), rel=1e-6)


def omega_mean(values: np.ndarray) -> float:
    return float(np.mean(values))


def test_one_class_alone_is_no_error() -> None:
    h = np.random.default_rng(0).normal(size=(20, 2))
    slope, intercept, _ = logistic_lines(h, np.zeros(20, dtype=bool), np.full(20, 0.05))
    assert np.all(np.isfinite(slope))
    assert np.all(intercept < 0.0)


# ------------------------------------------------------------------------------------------------------- decisions
def rare(n: int, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Classes of which one is rare; no x is sure to belong to it."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = rng.uniform(size=n) < expit(logit(share) - 0.8 + 1.6 * X[:, 0])
    y[:2] = [False, True]
    return X, y.astype(int)


@each("share", [0.01, 0.03])
def test_alarms_go_from_none_to_all(share: float) -> None:
    X, y = rare(300, share, 0)
    assert 0 < y.sum() < 0.05 * 300
    model = InfiniteCostSensitiveClassifier(n_nodes=8).fit(X, y)
    theta = np.linspace(-1.0, 1.0, 21)
    alarms = np.mean(model.predict(X, theta) == 1, axis=0)
    assert (alarms[0], alarms[-1]) == (0.0, 1.0)
    assert np.all(np.diff(alarms) >= -0.03)
    assert 0.05 < np.mean(alarms[-4:]) < 1.0


@each("cls", [InfiniteCostSensitiveClassifier, IndependentCostSensitiveClassifier])
def test_decisions_are_calibrated_where_the_data_choose_the_ridge(cls: type[Any]) -> None:
    X, y = rare(120, 0.2, 1)
    settings: dict[str, Any] = (
        {"n_nodes": 6} if cls is InfiniteCostSensitiveClassifier else {"thetas": [-0.5, 0.0, 0.5]}
    )
    auto = cls(**settings).fit(X, y)
    assert isinstance(auto.shift_, Shift)
    assert not hasattr(cls(alpha=1e-2, **settings).fit(X, y), "shift_")
    assert not hasattr(cls(calibrated=False, **settings).fit(X, y), "shift_")
    assert hasattr(cls(alpha=1e-2, calibrated=True, **settings).fit(X, y), "shift_")


def test_the_shift_is_added_to_the_field() -> None:
    X, y = rare(120, 0.2, 1)
    model = InfiniteCostSensitiveClassifier(n_nodes=6).fit(X, y)
    theta = np.array([-0.7, 0.1, 0.8])
    np.testing.assert_allclose(
        model.decision_function(X, theta), model.field_(X, theta) + model.shift_(theta), atol=1e-12
    )
    assert np.any(np.abs(model.shift_(theta)) > 1e-3)


def test_a_shift_is_linear_between_levels() -> None:
    shift = Shift(np.array([-1.0, 0.0, 1.0]), np.array([2.0, 0.0, 4.0]))
    np.testing.assert_allclose(shift(np.array([-0.5, 0.25, 1.0])), [1.0, 1.0, 4.0])


def test_alarms_pay_on_new_rows() -> None:
    """At θ an alarm pays where P(y = 1 | x) > (1 − θ)/2; decisions cost no more than the better of never and always."""
    X, y = rare(400, 0.1, 2)
    X_new, y_new = rare(4000, 0.1, 3)
    model = InfiniteCostSensitiveClassifier(n_nodes=8).fit(X, y)
    for theta in (-0.6, 0.0, 0.5, 0.8):
        miss, alarm = 0.5 * (1.0 + theta), 0.5 * (1.0 - theta)
        said = model.predict(X_new, theta) == 1
        cost = np.mean(np.where(y_new == 1, miss * ~said, alarm * said))
        assert cost <= 1.05 * min(miss * y_new.mean(), alarm * (1.0 - y_new.mean()))


def test_nothing_is_known_beyond_the_scores_of_the_rows() -> None:
    h = np.array([[1.0], [2.0], [30.0]])
    for by_order in (False, True):
        scale = Scale.of(h, np.full(3, 1.0 / 3.0), by_order)
        low, high = np.min(scale.scores), np.max(scale.scores)
        np.testing.assert_allclose([scale.values(np.array([at]))[0] for at in (low, high)], [1.0, 30.0])
        for at, end in ((low - 1e-6, -np.inf), (high + 1e-6, np.inf), (-np.inf, -np.inf), (np.inf, np.inf)):
            assert scale.values(np.array([at]))[0] == end


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*on the boundary:UserWarning")
def test_fits_of_one_feature_are_levelled() -> None:
    """There h is all but flat where the rows are, and fits without a fold differ by more than rows do.

    Quantiles over fits that were not levelled left out 0.92 of new rows in one of these draws.
    """
    for seed in (0, 1, 2, 3):
        rng = np.random.default_rng(seed)
        model = InfiniteOneClassSVM().fit(rng.normal(size=(200, 1)))
        found = np.mean(model.predict(rng.normal(size=(4000, 1)), nu=[0.05, 0.2, 0.5]) == -1, axis=0)
        np.testing.assert_allclose(found, [0.05, 0.2, 0.5], atol=0.2)
