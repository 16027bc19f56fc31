"""Level sets out of the box: fractions that hold on new rows, inputs in their own units."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from infinitask import InfiniteOneClassSVM, QOneClassSVM
from infinitask.calibration._thresholds import new_row_quantile
from infinitask.datasets import make_mixture
from infinitask.kernels import RBF, Scaled
from infinitask.measures import Discrete

LEVELS = np.array([0.05, 0.1, 0.25, 0.5, 0.75, 0.95])


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return make_mixture(100, random_state=0)


@pytest.fixture(scope="module")
def model(X: np.ndarray) -> InfiniteOneClassSVM:
    return InfiniteOneClassSVM(n_nodes=20).fit(X)


# ---------------------------------------------------------------------------------------------- the quantile
@pytest.mark.parametrize("theta", [0.05, 0.1, 0.5, 0.93])
def test_a_new_value_is_below_the_quantile_with_that_probability(theta: float) -> None:
    values = np.random.default_rng(0).uniform(size=(19, 20_000))  # uniform: the probability is the quantile itself
    found = new_row_quantile(values, np.full(19, 1 / 19), np.full(20_000, theta))
    assert np.mean(found) == pytest.approx(theta, abs=2e-3)
    # the plain quantile of as many values is off by far more at the ends
    assert theta == 0.5 or abs(np.mean(np.quantile(values, theta, axis=0)) - theta) > 5e-3


def test_the_quantile_respects_weights() -> None:
    values = np.array([[3.0], [1.0], [2.0]])
    light, heavy = (
        new_row_quantile(values, np.array(w), np.array([0.5]))[0] for w in ([0.3, 0.4, 0.3], [0.8, 0.1, 0.1])
    )
    assert light < heavy
    assert new_row_quantile(values[:1], np.ones(1), np.array([0.2]))[0] == 3.0


# ------------------------------------------------------------------------------------------------- fractions
@pytest.mark.parametrize("law", ["mixture", pytest.param("normal", marks=pytest.mark.slow)])
def test_fractions_hold_on_new_rows_with_a_hundred_of_them(law: str) -> None:
    def draw(n: int, seed: int) -> np.ndarray:
        return (
            make_mixture(n, random_state=seed)
            if law == "mixture"
            else np.random.default_rng(seed).standard_normal((n, 8))
        )

    seeds, shares, as_fitted = range(8), [], []
    for seed in seeds:
        model, new = InfiniteOneClassSVM(n_nodes=20).fit(draw(100, seed)), draw(2_000, 100 + seed)
        shares.append(np.mean(model.predict(new, LEVELS) == -1, axis=0))
        as_fitted.append(np.mean(model.field_(new, LEVELS) < 0.0, axis=0))
    spread = np.sqrt(LEVELS * (1.0 - LEVELS) * (1 / 100 + 1 / 2_000))
    assert np.all(np.abs(np.array(shares) - LEVELS) <= 3.5 * spread)
    assert np.all(np.abs(np.mean(shares, axis=0) - LEVELS) <= 2.6 * spread / np.sqrt(len(seeds)))
    assert np.mean(as_fitted, axis=0)[0] > 0.1  # the threshold as fitted leaves out more than twice as many


def test_the_certified_solution_stays_what_it_is(model: InfiniteOneClassSVM, X: np.ndarray) -> None:
    plain = InfiniteOneClassSVM(n_nodes=20, exact_fractions=False).fit(X)
    assert plain.objective_ == model.objective_
    assert np.array_equal(plain.field_(X, LEVELS), model.field_(X, LEVELS))
    assert not np.array_equal(plain.threshold(LEVELS), model.threshold(LEVELS))
    # at the levels where it is set; between them t as fitted bends a little
    assert np.all(np.diff(model.threshold(model.shift_.levels)) >= -1e-12)


def test_neither_the_order_of_the_rows_nor_the_seed_plays_a_role(model: InfiniteOneClassSVM, X: np.ndarray) -> None:
    other = InfiniteOneClassSVM(n_nodes=20, random_state=7).fit(X[::-1])
    assert np.array_equal(other.threshold(LEVELS), model.threshold(LEVELS))


def test_exact_fractions_auto_follows_alpha() -> None:
    def chosen(**params: Any) -> tuple[Any, float]:
        recipe = InfiniteOneClassSVM(**params).recipe()
        return recipe.task.exact_fractions, recipe.alpha_bias

    assert chosen() == ("held-out", 1e-6)
    assert chosen(alpha=1e-3) == (False, 1e-3)  # the paper's formula to the letter
    assert chosen(alpha=0.0, exact_fractions=True) == (True, 0.0)
    assert chosen(alpha=1e-3, exact_fractions="held-out") == ("held-out", 1e-3)
    assert chosen(exact_fractions=False) == (False, 1e-6)
    for wrong in ({"alpha": "small"}, {"alpha": -1.0}, {"exact_fractions": "loo"}, {"exact_fractions": None}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            InfiniteOneClassSVM(**wrong).recipe()


def test_the_ridge_that_was_used_is_an_attribute(model: InfiniteOneClassSVM, X: np.ndarray) -> None:
    assert model.alpha_ == 1e-6
    assert InfiniteOneClassSVM(alpha=0.1, n_nodes=5).fit(X).alpha_ == 0.1


@pytest.mark.parametrize("n", [1, 2, 3, 12])
def test_a_handful_of_rows(n: int) -> None:
    model = InfiniteOneClassSVM(n_nodes=5).fit(make_mixture(n, random_state=0))
    assert np.all(np.isfinite(model.threshold([0.05, 0.5, 1.0])))


def test_a_few_fractions_and_a_gram_matrix(X: np.ndarray) -> None:
    few = InfiniteOneClassSVM(nu=0.3, measure=Discrete([0.1, 0.3, 0.6]), task_kernel="diagonal").fit(X)
    new = make_mixture(2_000, random_state=5)
    np.testing.assert_allclose(np.mean(few.predict(new, [0.1, 0.3, 0.6]) == -1, axis=0), [0.1, 0.3, 0.6], atol=0.15)
    kernel = RBF(0.5)
    gram = InfiniteOneClassSVM(kernel="precomputed", n_nodes=20).fit(kernel(X, X))
    assert abs(np.mean(gram.predict(kernel(new, X), 0.25) == -1) - 0.25) < 0.15


def test_one_function_for_all_fractions_can_be_calibrated_on_held_out_rows() -> None:
    nus, seeds = np.array([0.1, 0.3, 0.5]), range(4)
    shares = {}
    for how in (False, "held-out"):
        found = []
        for seed in seeds:
            X, new = (np.random.default_rng(k).standard_normal((n, 8)) for k, n in ((seed, 80), (100 + seed, 2_000)))
            model = QOneClassSVM(nus=nus, gamma=0.15, exact_fractions=how).fit(X)
            assert np.all(np.diff(model.threshold(nus)) >= 0.0)
            found.append(np.mean(model.predict(new, nus) == -1, axis=0))
        shares[how] = np.mean(found, axis=0)
    assert shares[False][0] > 0.2
    np.testing.assert_allclose(shares["held-out"], nus, atol=0.06)
    with pytest.raises(ValueError, match="exact_fractions='auto'"):
        QOneClassSVM(exact_fractions="auto").recipe()


# ----------------------------------------------------------------------------------------------------- units
def test_the_units_of_a_feature_do_not_matter(model: InfiniteOneClassSVM, X: np.ndarray) -> None:
    units, new = np.array([1e-3, 2.0**20]), make_mixture(50, random_state=3)
    other = InfiniteOneClassSVM(n_nodes=20).fit(X * units)
    np.testing.assert_allclose(other.score_samples(new * units), model.score_samples(new), rtol=1e-2)
    assert isinstance(model.recipe_.kernel, Scaled)


def test_a_constant_feature_and_one_that_is_mostly_constant(X: np.ndarray) -> None:
    rare = np.where(np.arange(len(X)) % 10 == 0, 3.0, 0.0)
    Z = np.column_stack([X, np.full(len(X), 7.0), rare])
    model = InfiniteOneClassSVM(n_nodes=10).fit(Z)
    scales = np.array(model.recipe_.kernel.scales)
    assert scales[2] == pytest.approx(1.0 / 7.0)
    assert scales[3] == pytest.approx(1.0 / np.std(rare))
    assert np.all(np.isfinite(model.score_samples(Z)))
    changed = Z + np.array([0.0, 0.0, 14.0, 0.0])  # an input that never varied begins to
    assert np.all(model.score_samples(changed) < model.score_samples(Z))


@pytest.mark.parametrize("kernel", ["linear", "chi2", RBF(0.3)], ids=str)
def test_kernels_that_have_their_own_units_are_left_alone(X: np.ndarray, kernel: Any) -> None:
    model = InfiniteOneClassSVM(kernel=kernel, n_nodes=5).fit(np.abs(X))
    assert not isinstance(model.recipe_.kernel, Scaled)


@pytest.mark.slow
def test_sets_of_one_feature_are_nested() -> None:
    """A kernel that is flat where the rows are would leave rounding to decide; a wider one is taken."""
    rng = np.random.default_rng(0)
    X, new = rng.normal(20.0, 3.0, size=(300, 1)), rng.normal(20.0, 3.0, size=(5000, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # no boundary holds most of the rows
        model = InfiniteOneClassSVM(n_nodes=20).fit(X)
    inside = model.predict(new, nu=[0.1, 0.2, 0.5, 0.8]) == 1
    np.testing.assert_allclose(np.mean(~inside, axis=0), [0.1, 0.2, 0.5, 0.8], atol=0.08)
    for wide, narrow in zip(inside.T[:-1], inside.T[1:], strict=True):
        assert np.mean(narrow & ~wide) < 0.02
    assert model.kernel_.kernel.gamma < 0.5 * InfiniteOneClassSVM(n_nodes=20).fit(X[:90]).kernel_.kernel.gamma
