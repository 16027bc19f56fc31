"""What the data decide: leave-one-out errors, λ and bandwidths."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import LeaveOneOut, cross_val_predict

from infinitask import InfiniteCostSensitiveClassifier, InfiniteOneClassSVM, InfiniteQuantileRegressor, fit_path
from infinitask.fitting import Data
from infinitask.fitting._defaults import leave_one_out, normal_scores, resolved, some_features, spreads
from infinitask.fitting._warm_start import alike
from infinitask.kernels import RBF, Scaled


def sample(n: int, d: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(2.0 * X[:, 0]) + 0.5 * rng.normal(size=n)


def recipe_of(X: np.ndarray, y: np.ndarray, **params: Any) -> Any:
    return resolved(InfiniteQuantileRegressor(**params).recipe(), Data.canonical(X, y))


# --------------------------------------------------------------------------------------------------- leave one out
@pytest.mark.parametrize("weighted", [False, True])
def test_leave_one_out_is_what_leaving_one_out_gives(weighted: bool) -> None:
    rng = np.random.default_rng(0)
    phi, t = rng.normal(size=(25, 4)), rng.normal(size=25)
    weight = rng.gamma(1.0, size=25) if weighted else np.ones(25)
    weight = weight / weight.sum()
    full, ridges = np.column_stack([np.ones(25), phi]), np.array([1e-6, 0.01, 1.0])
    found = leave_one_out(phi, t, weight, ridges)
    assert found.shape == (3, 25)
    for ridge, errors in zip(ridges, found, strict=True):
        for i in range(25):
            kept = np.delete(np.arange(25), i)
            # the weights of the others stay what they are, and so does λ
            gram = (full[kept].T * weight[kept]) @ full[kept] + ridge * np.eye(5)
            coef = np.linalg.solve(gram, full[kept].T @ (weight[kept] * t[kept]))
            assert errors[i] == pytest.approx((t[i] - full[i] @ coef) ** 2, rel=1e-8)


def test_without_a_ridge_it_is_that_of_least_squares() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(40, 1))
    t = 2.0 * x[:, 0] + rng.normal(size=40)
    expected = (t - cross_val_predict(LinearRegression(), x, t, cv=LeaveOneOut())) ** 2
    np.testing.assert_allclose(leave_one_out(x, t, np.full(40, 1 / 40), np.array([1e-11]))[0], expected, rtol=1e-6)


def test_features_that_span_less_than_they_are_change_nothing() -> None:
    rng = np.random.default_rng(2)
    phi, t, weight = rng.normal(size=(30, 3)), rng.normal(size=30), np.full(30, 1 / 30)
    # the same inner products from twice as many columns
    twice = np.column_stack([phi, phi]) / np.sqrt(2.0)
    np.testing.assert_allclose(leave_one_out(twice, t, weight), leave_one_out(phi, t, weight), rtol=1e-7)


def test_normal_scores_depend_on_the_order_alone() -> None:
    y = np.array([3.0, -1.0, 2.0, 2.0, 50.0])
    scores = normal_scores(y)
    np.testing.assert_array_equal(normal_scores(np.exp(0.1 * y)), scores)
    np.testing.assert_allclose(normal_scores(-y), -scores, atol=1e-12)
    assert scores[2] == scores[3]


def test_features_reproduce_the_kernel() -> None:
    X, _ = sample(60)
    phi = some_features(RBF(gamma=0.5), X)
    np.testing.assert_allclose(phi @ phi.T, RBF(gamma=0.5)(X, X), atol=1e-6)


# --------------------------------------------------------------------------------------------------------------- λ
def test_the_ridge_falls_with_the_number_of_rows() -> None:
    found = []
    for n in (50, 400, 1600, 6400):
        alphas = [recipe_of(*sample(n, seed=seed), gamma=1.0).alpha for seed in range(5)]
        found.append(float(np.median(alphas)))
    assert np.all(np.diff(found) < 0.0)


def test_noise_gets_a_larger_ridge_than_a_signal() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    alphas = [recipe_of(X, y, gamma=1.0).alpha for y in (np.sin(2.0 * X[:, 0]), rng.normal(size=200))]
    assert alphas[1] > 100.0 * alphas[0]


def test_the_ridge_is_in_the_units_of_y() -> None:
    X, y = sample(100)
    here, there = recipe_of(X, y), recipe_of(X, 1000.0 * y)
    assert there.alpha == pytest.approx(here.alpha / 1000.0, rel=1e-9)
    assert there.alpha_bias == pytest.approx(here.alpha_bias / 1000.0, rel=1e-9)


def test_outliers_do_not_choose_the_ridge() -> None:
    X, y = sample(200)
    far = y.copy()
    far[np.argmax(y)] = 1e9
    one, other = recipe_of(X, far), recipe_of(X, y)
    assert alike(one.kernel, other.kernel)
    assert (one.alpha, one.alpha_bias, one.units) == (other.alpha, other.alpha_bias, other.units)


def test_numbers_stay_as_they_are_given() -> None:
    X, y = sample(50)
    found = recipe_of(X, y, gamma=2.0, alpha=0.3, alpha_bias=0.1)
    assert (found.gamma, found.alpha, found.alpha_bias) == (2.0, 0.3, 0.1)
    assert resolved(found, Data.canonical(X, y)) == found
    assert recipe_of(X, y, gamma=2.0, alpha=0.3, alpha_bias=None).alpha_bias == 0.3


def test_a_ridge_from_data_needs_targets() -> None:
    X, _ = sample(20)
    recipe = replace(InfiniteOneClassSVM().recipe(), alpha="auto")
    with pytest.raises(ValueError, match=r"alpha='auto' was given without targets; give alpha a number\."):
        resolved(recipe, Data.canonical(X))


# ---------------------------------------------------------------------------------------------------------- inputs
@pytest.mark.parametrize("alpha", ["auto", 1e-3])
def test_the_units_of_a_column_do_not_matter(alpha: Any) -> None:
    X, y = sample(80, 3)
    other = X * np.array([1e6, 1.0, 2.0**-20]) + np.array([5.0, -1.0, 0.0])
    models = [InfiniteQuantileRegressor(n_nodes=6, alpha=alpha, tol=1e-6).fit(Z, y) for Z in (X, other)]
    assert models[1].kernel_.kernel.gamma == pytest.approx(models[0].kernel_.kernel.gamma, rel=1e-6)
    assert models[1].alpha_ == pytest.approx(models[0].alpha_, rel=1e-6)
    np.testing.assert_allclose(models[1].predict(other, 0.5), models[0].predict(X, 0.5), atol=1e-3)


def test_a_constant_column_is_ignored() -> None:
    X, y = sample(80)
    other = np.column_stack([X[:, 0], np.full(80, 1e9), X[:, 1]])
    one, two = (InfiniteQuantileRegressor(n_nodes=6).fit(Z, y) for Z in (X, other))
    assert two.kernel_.scales[1] == 0.0
    assert two.kernel_.kernel.gamma == one.kernel_.kernel.gamma
    np.testing.assert_allclose(two.predict(other, 0.5), one.predict(X, 0.5), atol=1e-6)


def test_spreads_of_columns() -> None:
    X = np.random.default_rng(0).normal(size=(4000, 2)) * [1e-100, 1e100]
    X[:5, 1] = 1e104
    plain, robust = spreads(X), spreads(X, robust=True)
    assert plain[0] == pytest.approx(1.0 / X[:, 0].std(), rel=1e-9)
    np.testing.assert_allclose(robust, [1e100, 1e-100], rtol=0.05)
    assert 0.5 * robust[1] < plain[1] < robust[1]  # a few wild values count as less so
    assert spreads(np.full((5, 1), 3.0)) == spreads(np.zeros((5, 1))) == (0.0,)


def test_only_columns_that_vary_scale_the_kernel() -> None:
    X, y = sample(60)
    found = recipe_of(X, y)
    assert isinstance(found.kernel, Scaled)
    assert recipe_of(X, y, gamma=3.0).kernel == "rbf"


def test_a_path_over_alpha_has_one_kernel() -> None:
    X, y = sample(60)
    path = fit_path(InfiniteQuantileRegressor(n_nodes=5), X, y, alphas=[1e-1, 1e-3, 1e-5])
    assert len({model.kernel_.kernel.gamma for model in path}) == 1


# ------------------------------------------------------------------------------------------------------------ bias
def test_how_a_free_bias_is_held() -> None:
    X, y = sample(60)
    labels = (y > 0.0).astype(int)
    assert 0.0 < recipe_of(X, y).alpha_bias < 1e-7
    assert recipe_of(X, y + 50.0).units.centre == pytest.approx(50.0 + np.median(y))
    assert recipe_of(X, y + 50.0, alpha_bias=1e-3).offset == 0.0
    assert recipe_of(X, y + 50.0, bias_kernel=None).offset == 0.0
    free = InfiniteCostSensitiveClassifier(n_nodes=5, alpha=1e-2).fit(X, labels)
    held = InfiniteCostSensitiveClassifier(n_nodes=5).fit(X, labels)
    assert (free.alpha_bias_, held.alpha_bias_ > 0.0) == (0.0, True)


def test_the_rounding_of_an_encoded_category_is_no_spread() -> None:
    rng = np.random.default_rng(0)
    noise = 1e-7 * rng.normal(size=400)
    encoded = np.where(rng.uniform(size=400) < 0.7, 0.0, rng.choice([-0.5, 0.3, 0.8], 400)) + noise
    wild = rng.normal(size=400)
    wild[7] = 1e9
    for robust in (False, True):
        first, second = spreads(np.column_stack([encoded, wild]), robust=robust)
        assert 1.0 < first < 10.0  # not 1e7: most rows differ by rounding, and the others are no outliers
        assert 0.3 < second < 1.5
