"""Several coverages or fractions at once: the same answers as one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from infinitask import InfiniteOneClassSVM, InfiniteQuantileRegressor, JointQuantileRegressor, QOneClassSVM
from infinitask.metrics import interval_coverage, interval_score, mean_interval_width
from infinitask.tuning import InfiniteQuantileRegressorCV
from tests.support.estimator_cases import sample

X, Y = sample()
COVERAGES = [0.5, 0.9, 0.2]


@pytest.mark.parametrize("calibrated", [False, True])
@pytest.mark.parametrize("noncrossing", [1.0, "rearrange"])
def test_intervals_of_several_coverages(calibrated: bool, noncrossing: Any) -> None:
    model = InfiniteQuantileRegressor(n_nodes=8, noncrossing=noncrossing).fit(X[::2], Y[::2])
    if calibrated:
        model.conformalize(X[1::2], Y[1::2])
    found = model.predict_interval(X, COVERAGES)
    assert found.shape == (len(X), 3, 2)
    for k, coverage in enumerate(COVERAGES):
        one = model.predict_interval(X, coverage)
        assert one.shape == (len(X), 2)
        np.testing.assert_allclose(found[:, k], one, rtol=1e-12, atol=1e-12)
    assert model.predict_interval(X, [0.5]).shape == (len(X), 1, 2)


def test_intervals_of_a_few_levels_and_of_a_self_tuned_model() -> None:
    joint = JointQuantileRegressor(quantiles=[0.05, 0.25, 0.75, 0.95]).fit(X, Y)
    np.testing.assert_array_equal(
        joint.predict_interval(X, [0.5, 0.9])[:, 1], joint.predict(X, [0.05, 0.95]).reshape(-1, 2)
    )
    tuned = InfiniteQuantileRegressorCV(kernels=["rbf"], alphas=[0.1], cv=2, n_nodes=8, random_state=0).fit(X, Y)
    assert tuned.predict_interval(X, [0.5, 0.9]).shape == (len(X), 2, 2)


def test_a_coverage_beyond_the_calibration_is_infinite_by_itself() -> None:
    model = InfiniteQuantileRegressor(n_nodes=8).fit(X[::2], Y[::2]).conformalize(X[1::2], Y[1::2])
    with pytest.warns(UserWarning, match=r"coverage=0\.99 needs at least 99 calibration points"):
        found = model.predict_interval(X, [0.5, 0.99])
    assert np.all(np.isfinite(found[:, 0]))
    assert np.all(np.isinf(found[:, 1]))


def test_intervals_of_a_distribution() -> None:
    law = InfiniteQuantileRegressor(n_nodes=8).fit(X, Y).predict_distribution(X)
    found = law.interval(COVERAGES)
    assert found.shape == (len(X), 3, 2)
    for k, coverage in enumerate(COVERAGES):
        np.testing.assert_array_equal(found[:, k], law.interval(coverage))


def test_metrics_of_several_coverages() -> None:
    model = InfiniteQuantileRegressor(n_nodes=8).fit(X, Y)
    ends, weight = model.predict_interval(X, COVERAGES), np.arange(len(X))
    scores = interval_score(Y, ends, COVERAGES, weight)
    shares, widths = interval_coverage(Y, ends, weight), mean_interval_width(ends, weight)
    for k, coverage in enumerate(COVERAGES):
        one = ends[:, k]
        assert isinstance(interval_score(Y, one, coverage), float)
        np.testing.assert_allclose(scores[k], interval_score(Y, one, coverage, weight), rtol=1e-12)
        np.testing.assert_allclose(shares[k], interval_coverage(Y, one, weight), rtol=1e-12)
        np.testing.assert_allclose(widths[k], mean_interval_width(one, weight), rtol=1e-12)


@pytest.mark.parametrize(
    "model",
    [
        InfiniteOneClassSVM(n_nodes=8),
        InfiniteOneClassSVM(n_nodes=8, nested=True),
        InfiniteOneClassSVM(n_nodes=8, exact_fractions=True),
        QOneClassSVM(nus=[0.1, 0.3, 0.5]),
    ],
    ids=str,
)
def test_level_sets_of_several_fractions(model: Any) -> None:
    model.fit(X)
    fractions = [0.5, 0.1]
    for ask in (model.predict, model.decision_function):
        found = ask(X, fractions)
        assert found.shape == (len(X), 2)
        for k, nu in enumerate(fractions):
            np.testing.assert_allclose(found[:, k], ask(X, nu), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(model.threshold(fractions), [model.threshold(nu) for nu in fractions], rtol=1e-9)


@pytest.mark.parametrize(
    ("ask", "meant"),
    [
        (lambda model: model.predict(X, 95), "0.95"),
        (lambda model: model.predict(X, [0.5, 2.5]), "0.025"),
        (lambda model: model.predict_interval(X, 90), "0.9"),
        (lambda model: model.predict_interval(X, [0.5, 90]), "0.9"),
        (lambda model: model.predict_distribution(X).ppf(5), "0.05"),
        (lambda model: InfiniteQuantileRegressor(quantiles=95).fit(X, Y), "0.95"),
        (lambda model: JointQuantileRegressor(quantiles=[5, 95]).fit(X, Y), "0.05"),
        (lambda model: InfiniteOneClassSVM(nu=5).fit(X), "0.05"),
        (lambda model: QOneClassSVM(nus=[5, 10]).fit(X), "0.05"),
        (lambda model: interval_score(Y, model.predict_interval(X), 90), "0.9"),
    ],
)
def test_a_percentage_is_suspected(ask: Any, meant: str) -> None:
    model = InfiniteQuantileRegressor(n_nodes=8).fit(X, Y)
    with pytest.raises(ValueError, match=rf"Did you mean {meant}\?$"):
        ask(model)


def test_a_percentage_is_not_suspected_where_it_makes_no_sense() -> None:
    narrow = InfiniteQuantileRegressor(n_nodes=8, measure=(0.2, 0.8)).fit(X, Y)
    for wrong in (95, 120, -5):  # 0.95 is outside as well
        with pytest.raises(ValueError, match=r"covers it\.$"):
            narrow.predict(X, wrong)
