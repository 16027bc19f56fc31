"""Gradients of what was learnt, their average outer product, and which inputs matter."""

from __future__ import annotations

import pickle
from functools import partial
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from infinitask import InfiniteCostSensitiveClassifier, InfiniteOneClassSVM, InfiniteQuantileRegressor
from infinitask._base.arrays import as_like, row_blocks
from infinitask.fitting import _gradients as gradients
from infinitask.fitting._gradients import Relevance, gradient_outer_product, input_gradients
from infinitask.kernels import RBF, Linear, Matern, Metric, Warped
from infinitask.measures import Quadrature

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = np.sin(2.0 * X[:, 0]) + (0.3 + 0.2 * np.abs(X[:, 1])) * RNG.normal(size=60)
LEVELS = np.array([0.1, 0.5, 0.8])
ROOT = RNG.normal(size=(3, 2))


def model(**parameters: Any) -> Any:
    return InfiniteQuantileRegressor(n_nodes=12, tol=1e-3, alpha=1e-3, random_state=0, **parameters).fit(X, Y)


def rule(fitted: Any) -> Quadrature:
    return Quadrature(fitted.nodes_[:, None], fitted.weights_)


CASES: dict[str, dict[str, Any]] = {
    "exact": {},
    "metric": {"kernel": Metric(Matern(1.5), ROOT)},
    "linear": {"kernel": Linear()},
    "nystroem": {"features": "nystroem", "rank": 20},
    "fourier": {"features": "fourier", "rank": 40},
}


@pytest.mark.parametrize("case", CASES)
def test_gradients_are_the_limits_of_differences(case: str) -> None:
    field, step = model(**CASES[case]).field_, 1e-5
    found = input_gradients(field, X[:7], LEVELS)
    assert found.shape == (3, 7, 3)
    for k in range(3):
        shift = step * np.eye(3)[k]
        expected = (field(X[:7] + shift, LEVELS) - field(X[:7] - shift, LEVELS)) / (2.0 * step)
        np.testing.assert_allclose(found[:, :, k], expected.T, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("case", CASES)
def test_the_average_is_the_sum_over_rows_and_nodes(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = model(**CASES[case])
    weight = RNG.random(60)
    weight /= np.sum(weight)
    each = input_gradients(fitted.field_, X, fitted.nodes_)
    expected = np.einsum("q,n,qnj,qnk->jk", fitted.weights_, weight, each, each)
    found = gradient_outer_product(fitted.field_, rule(fitted), X, weight)
    np.testing.assert_allclose(found, expected, atol=1e-4 * np.trace(expected))
    diagonal = gradient_outer_product(fitted.field_, rule(fitted), X, weight, diagonal=True)
    np.testing.assert_allclose(diagonal, np.diagonal(found), rtol=1e-12)
    monkeypatch.setattr(gradients, "row_blocks", partial(row_blocks, entries=50))
    np.testing.assert_allclose(gradient_outer_product(fitted.field_, rule(fitted), X, weight), found, rtol=1e-10)


def test_components_of_little_energy_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted, found = model(), []
    for accuracy in (0.0, 0.05):
        monkeypatch.setattr(gradients, "ACCURACY", accuracy)
        found.append(gradient_outer_product(fitted.field_, rule(fitted), X))
    exact, rough = found
    assert 0.0 < np.trace(exact - rough) < 0.3 * np.trace(exact)


@pytest.mark.parametrize("case", CASES)
def test_all_libraries_agree(case: str, xp: Any) -> None:
    fitted = model(**CASES[case])
    found = gradient_outer_product(fitted.field_, rule(fitted), as_like(X, xp.zeros(1, dtype=xp.float64)))
    np.testing.assert_allclose(found, gradient_outer_product(fitted.field_, rule(fitted), X), rtol=1e-8, atol=1e-12)


# --- which inputs matter


def test_the_relevance_of_a_straight_line_is_its_slopes() -> None:
    scale = np.array([1.0, 10.0, 0.1])
    line = X @ [3.0, 2.0, 0.0] + 0.01 * RNG.normal(size=60)
    found = InfiniteQuantileRegressor(kernel=Linear(), n_nodes=10, alpha=1e-6).fit(X * scale, line).relevance_
    np.testing.assert_allclose(found.slope * scale, [3.0, 2.0, 0.0], atol=2e-2)
    np.testing.assert_allclose(found.effect, found.slope * np.std(X * scale, axis=0))
    assert found.names == ("x0", "x1", "x2")
    np.testing.assert_array_equal(found.order[:2], np.argsort(-found.effect)[:2])
    assert repr(found).splitlines()[1].startswith("x0")


def test_units_of_inputs_and_targets_change_relevance_by_just_that() -> None:
    plain = InfiniteQuantileRegressor(n_nodes=10, tol=1e-6).fit(X, Y).relevance_
    other = InfiniteQuantileRegressor(n_nodes=10, tol=1e-6).fit(X * [1.0, 10.0, 0.1], 5.0 + 7.0 * Y).relevance_
    np.testing.assert_allclose(other.effect, 7.0 * plain.effect, rtol=2e-2)
    np.testing.assert_allclose(other.slope, 7.0 * plain.slope / [1.0, 10.0, 0.1], rtol=2e-2)


def test_names_of_columns_are_kept() -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X, columns=["age", "weight", "height"])
    found = InfiniteQuantileRegressor(n_nodes=10).fit(table, Y).relevance_
    assert found.names == ("age", "weight", "height")
    assert "age" in repr(found).splitlines()[1]


def test_relevance_is_computed_once_saved_and_forgotten_by_the_next_fit() -> None:
    fitted = model()
    saved = pickle.loads(pickle.dumps(fitted))
    assert fitted.relevance_ is fitted.relevance_
    np.testing.assert_array_equal(saved.relevance_.slope, fitted.relevance_.slope)
    before = fitted.relevance_
    fitted.fit(X[:, [1, 0, 2]], Y)
    assert np.argmax(before.effect) == 0
    assert np.argmax(fitted.relevance_.effect) == 1


def test_few_rows_are_kept_for_it() -> None:
    rng = np.random.default_rng(0)
    many = rng.normal(size=(2_000, 3))
    fitted = InfiniteQuantileRegressor(n_nodes=6, tol=1e-2, alpha=1e-2, gamma=0.1).fit(many, many[:, 0])
    assert fitted._looked_at[0].shape[0] <= 300
    rows = gradient_outer_product(fitted.field_, rule(fitted), many, diagonal=True)
    np.testing.assert_allclose(fitted.relevance_.slope[0], np.sqrt(rows[0]), rtol=0.1)


def test_rows_of_weight_zero_do_not_count() -> None:
    wild = np.vstack([X, 1e3 * np.ones((2, 3))])
    weight = np.r_[np.ones(60), 0.0, 0.0]
    found = InfiniteQuantileRegressor(n_nodes=10).fit(wild, np.r_[Y, 0.0, 0.0], sample_weight=weight).relevance_
    expected = InfiniteQuantileRegressor(n_nodes=10).fit(X, Y).relevance_
    np.testing.assert_allclose(found.effect, expected.effect, rtol=1e-8)


def test_classes_and_level_sets_have_a_relevance() -> None:
    classes = np.where(X[:, 1] > 0.0, 1.0, -1.0)
    found = InfiniteCostSensitiveClassifier(n_nodes=10).fit(X, classes).relevance_
    assert np.argmax(found.effect) == 1
    assert np.all(InfiniteOneClassSVM(n_nodes=10).fit(X).relevance_.effect > 0.0)


def test_where_there_is_no_relevance_it_is_said_why() -> None:
    with pytest.raises(NotFittedError):
        InfiniteQuantileRegressor().relevance_  # noqa: B018
    gram = RBF(0.3)(X, X)
    fitted = InfiniteQuantileRegressor(kernel="precomputed", n_nodes=10).fit(gram, Y)
    with pytest.raises(AttributeError, match="needs inputs"):
        fitted.relevance_  # noqa: B018
    with pytest.raises(TypeError, match="PrecomputedMap"):
        input_gradients(InfiniteQuantileRegressor(kernel="precomputed", n_nodes=10).fit(gram, Y).field_, gram, [0.5])


def test_a_long_relevance_is_cut_when_it_is_printed() -> None:
    long = Relevance(tuple(f"x{j}" for j in range(30)), np.ones(30), np.arange(30.0))
    lines = repr(long).splitlines()
    assert lines[1].startswith("x29")
    assert lines[-1] == "... and 10 more"
    assert len(lines) == 22


def test_ranks_and_functions_have_a_relevance_of_the_size_of_the_answers() -> None:
    x = np.random.default_rng(0).lognormal(size=(200, 2))
    y = np.log(x[:, 0])
    for kernel in (Warped(RBF()), lambda a, b: np.tanh(a) @ np.tanh(b).T):
        found = InfiniteQuantileRegressor(kernel=kernel, n_nodes=10).fit(x, y).relevance_
        assert found.effect[1] < 0.3 * found.effect[0] < 3.0 * np.std(y)
