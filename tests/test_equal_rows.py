"""Rows that occur many times: what leaves out a row leaves out one of them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from infinitask import InfiniteCostSensitiveClassifier, InfiniteOneClassSVM, InfiniteQuantileRegressor
from infinitask.fitting import Data
from infinitask.fitting._defaults import leave_one_out, resolved


def test_data_know_how_many_rows_they_stand_for() -> None:
    X, y = np.array([[0.0], [1.0], [0.0], [0.0]]), np.array([1.0, 2.0, 1.0, 3.0])
    merged = Data.canonical(X, y)
    assert merged.copies.tolist() == [2.0, 1.0, 1.0]
    assert Data.canonical(X[[0, 1, 3]], y[[0, 1, 3]], [2.0, 1.0, 1.0]).copies.tolist() == [2.0, 1.0, 1.0]
    assert Data.canonical(X, y, [0.5, 1.0, 0.25, 1.0]).copies.tolist() == [2.0, 1.0, 1.0]
    assert Data.canonical(X, y, [0.0, 1.0, 1.0, 1.0]).copies.tolist() == [1.0, 1.0, 1.0]


def test_one_of_equal_rows_is_left_out() -> None:
    rng = np.random.default_rng(0)
    phi, t, copies = rng.normal(size=(6, 3)), rng.normal(size=6), np.array([1, 3, 2, 1, 4, 1])
    weight, ridge = copies / copies.sum(), 0.1
    errors = leave_one_out(phi, t, weight, np.array([ridge]), copies.astype(float))[0]
    for i in range(6):
        rest = weight.copy()
        rest[i] -= 1.0 / copies.sum()
        features = np.column_stack([np.ones(6), phi])
        gram = (features.T * rest) @ features + ridge * np.eye(4)
        value = features[i] @ np.linalg.solve(gram, features.T @ (rest * t))
        assert errors[i] == pytest.approx((t[i] - value) ** 2, rel=1e-9)


def test_probabilities_of_categories_are_learnt() -> None:
    rng = np.random.default_rng(0)
    category, share = rng.integers(0, 4, 600), np.array([0.05, 0.3, 0.6, 0.95])
    y = rng.random(600) < share[category]
    model = InfiniteCostSensitiveClassifier().fit(np.eye(4)[category], y)
    np.testing.assert_allclose(model.predict_proba(np.eye(4))[:, 1], share, atol=0.12)
    binary = InfiniteCostSensitiveClassifier().fit((category > 1)[:, None].astype(float), category % 2 == 0)
    assert np.all(np.isfinite(binary.predict_proba([[0.0], [1.0]])))


def test_a_little_noise_on_the_inputs_changes_little() -> None:
    rng = np.random.default_rng(1)
    category = rng.integers(0, 4, 400)
    X, y = np.eye(4)[category], np.clip(np.round(category + 1 + 0.7 * rng.normal(size=400)), 1, 5)
    plain = InfiniteQuantileRegressor().fit(X, y).score(X, y)
    noisy = X + 1e-6 * rng.normal(size=X.shape)
    assert plain == pytest.approx(InfiniteQuantileRegressor().fit(noisy, y).score(noisy, y), abs=0.02)
    assert plain > 0.3


def test_few_different_rows_are_told() -> None:
    X = np.random.default_rng(2).poisson(2.0, size=(300, 2)).astype(float)
    with pytest.warns(UserWarning, match="300 rows are only 3[0-9] different ones"):
        InfiniteOneClassSVM(n_nodes=20).fit(X)


def test_fractions_of_counts_hold_on_new_rows() -> None:
    found = []
    for seed in range(2, 6):
        rng = np.random.default_rng(seed)
        X, new = (rng.poisson(2.0, size=(n, 2)).astype(float) for n in (300, 4000))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = InfiniteOneClassSVM(n_nodes=20).fit(X)
        found.append(np.mean(model.predict(new, nu=[0.1, 0.3, 0.5]) == -1, axis=0))
    np.testing.assert_allclose(np.mean(found, axis=0), [0.1, 0.3, 0.5], atol=0.08)


@pytest.mark.parametrize("cls", [InfiniteCostSensitiveClassifier, InfiniteQuantileRegressor])
def test_whole_weights_are_repeats(cls: type) -> None:
    rng = np.random.default_rng(3)
    X, count = rng.normal(size=(60, 2)), rng.integers(1, 4, 60)
    y = (X[:, 0] + rng.normal(size=60) > 0.5).astype(float)
    weighted = cls(n_nodes=10).fit(X, y, sample_weight=count.astype(float))
    repeated = cls(n_nodes=10).fit(np.repeat(X, count, axis=0), np.repeat(y, count))
    assert weighted.alpha_ == repeated.alpha_
    assert np.array_equal(weighted.predict(X, [0.3, 0.7]), repeated.predict(X, [0.3, 0.7]))


def test_the_ridge_does_not_grow_with_the_rows_where_noise_is_low() -> None:
    found = []
    for n in (500, 2000, 8000):
        rng = np.random.default_rng(4)
        X = rng.random((n, 2))
        y = np.sin(12.0 * X[:, 0]) * np.cos(12.0 * X[:, 1]) + 0.02 * rng.normal(size=n)
        found.append(resolved(InfiniteQuantileRegressor(gamma=50.0).recipe(), Data.canonical(X, y)).alpha)
    assert found[0] >= found[1] >= found[2]


def test_inputs_that_do_not_matter_have_small_scales() -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(1400, 5))
    y = X[:, 0] + np.sin(2.0 * X[:, 1]) + 0.3 * rng.normal(size=1400)
    model = InfiniteQuantileRegressor().fit(X[:400], y[:400])
    scales = np.array(model.kernel_.scales)
    assert np.min(scales[:2]) > 2.0 * np.max(scales[2:])
    low, high = model.predict_interval(X[400:], 0.9).T
    assert np.mean((low < y[400:]) & (y[400:] < high)) > 0.8


def test_outliers_among_the_rows_of_a_fit() -> None:
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(190, 3)), 6.0 * rng.choice([-1.0, 1.0], size=(10, 3))])
    lowest = np.argsort(InfiniteOneClassSVM(n_nodes=20).fit(X).score_samples(X))[:20]
    assert np.sum(lowest >= 190) >= 9


def test_one_outlier_does_not_hide_its_column() -> None:
    rng = np.random.default_rng(6)
    X = rng.normal(size=(500, 2))
    y = X[:, 0] + 0.5 * X[:, 1] + 0.3 * rng.normal(size=500)
    wild = X.copy()
    wild[3, 0] = 1e7
    clean, spoilt = (InfiniteQuantileRegressor().fit(Z[:300], y[:300]).score(X[300:], y[300:]) for Z in (X, wild))
    assert spoilt > clean - 0.05


def noisy(n: int = 150, seed: int = 7) -> tuple[np.ndarray, np.ndarray]:
    """Two inputs, and targets of which most is noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, np.sin(2.0 * X[:, 0]) + rng.normal(size=n)


@pytest.mark.parametrize("weight", [2.0, 10.0, 0.3], ids=str)
def test_equal_weights_change_nothing(weight: float) -> None:
    X, y = noisy()
    plain = InfiniteQuantileRegressor(n_nodes=10).fit(X, y)
    weighted = InfiniteQuantileRegressor(n_nodes=10).fit(X, y, sample_weight=np.full(len(y), weight))
    assert weighted.alpha_ == plain.alpha_
    np.testing.assert_allclose(weighted.predict(X, [0.1, 0.9]), plain.predict(X, [0.1, 0.9]), rtol=1e-6)


def test_rows_written_twice_are_not_interpolated() -> None:
    X, y = noisy()
    plain = InfiniteQuantileRegressor(n_nodes=10).fit(X, y)
    twice = InfiniteQuantileRegressor(n_nodes=10).fit(np.repeat(X, 2, axis=0), np.repeat(y, 2))
    assert twice.alpha_ == plain.alpha_
    some = np.random.default_rng(8).integers(1, 6, len(y)).astype(float)
    weighted = InfiniteQuantileRegressor(n_nodes=10).fit(X, y, sample_weight=some)
    assert weighted.alpha_ > 0.1 * plain.alpha_


def test_copies_of_numbers_are_one_observation_and_cells_of_a_table_many() -> None:
    X, y = noisy(40)
    assert np.all(Data.canonical(np.repeat(X, 3, axis=0), np.repeat(y, 3)).copies == 1.0)
    assert np.all(Data.canonical(np.vstack([X, X[:9]])).copies == 1.0)
    rng = np.random.default_rng(9)
    cells = rng.integers(0, 3, size=(200, 3)).astype(float)
    assert np.sum(Data.canonical(cells).copies) == 200.0
    # an input with many values, observed more than once at each: rows differ in y alone
    ages, sick = rng.integers(20, 80, size=(400, 1)).astype(float), rng.random(400) < 0.5
    assert np.sum(Data.canonical(ages, sick.astype(float)).copies) == 400.0


def test_level_sets_of_rows_written_twice_leave_out_as_many() -> None:
    rng = np.random.default_rng(10)
    X, new = rng.normal(size=(150, 3)), rng.normal(size=(2000, 3))
    once, twice = (InfiniteOneClassSVM(n_nodes=20).fit(np.repeat(X, k, axis=0)) for k in (1, 2))
    outside = [np.mean(model.predict(new, nu=[0.1, 0.3]) == -1, axis=0) for model in (once, twice)]
    np.testing.assert_allclose(outside[0], outside[1], atol=0.01)


def test_no_set_leaves_out_all_rows_of_a_flat_table() -> None:
    """64 cells that are equally likely: fits differ more in their level than h does from cell to cell."""
    rng = np.random.default_rng(0)
    X, new = (rng.integers(0, 2, size=(n, 6)).astype(float) for n in (500, 2000))
    with pytest.warns(UserWarning, match="only 64 different ones"):
        model = InfiniteOneClassSVM(n_nodes=20).fit(X)
    nu = np.array([0.05, 0.1, 0.2, 0.5])
    assert np.all(np.mean(model.predict(new, nu=nu) == -1, axis=0) <= nu + 0.3)
