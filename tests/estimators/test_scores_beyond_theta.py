"""Scores of points beyond the trained fractions: no ties, and the order of the sets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from infinitask import InfiniteOneClassSVM, QOneClassSVM
from infinitask.datasets import make_mixture
from infinitask.kernels import RBF
from infinitask.predictive._beyond import Beyond

WIDE: dict[str, Any] = {"alpha": 1e-3, "gamma": "median"}
"""Sets of a wide kernel are nested as they come."""

MODELS = {
    "as they come": InfiniteOneClassSVM(n_nodes=20, **WIDE),
    "nested": InfiniteOneClassSVM(n_nodes=20, nested=True),
    "exact": InfiniteOneClassSVM(n_nodes=20, exact_fractions=True, **WIDE),
    "a few": QOneClassSVM(),
    "half of Θ": InfiniteOneClassSVM(n_nodes=20, measure=(0.1, 0.5), nested=True),
}


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return make_mixture(150, random_state=0)


@pytest.fixture(scope="module", params=list(MODELS))
def model(request: pytest.FixtureRequest, X: np.ndarray) -> Any:
    return MODELS[request.param].fit(X)


@pytest.fixture(scope="module")
def plane() -> np.ndarray:
    return np.random.default_rng(0).uniform(-15.0, 15.0, (2_000, 2))


@pytest.mark.quick(every=2)
def test_there_are_no_ties_outside(model: Any, plane: np.ndarray) -> None:
    score, low = model.score_samples(plane), np.min(model.measure_.support[0])
    outside = score < low
    assert np.sum(outside) > 1_000
    assert np.unique(score[outside]).size == np.sum(outside)
    assert np.all(score > 0.0)


def test_the_order_outside_is_that_of_h(model: Any, plane: np.ndarray) -> None:
    low = float(np.min(model.measure_.support[0]))
    score, t = model.score_samples(plane), float(model.threshold(low))
    h = model.decision_function(plane, low) + t
    clear = (score < low) & (h > 1e-2 * t)
    assert np.sum(clear) > 50
    if getattr(model, "nested", False):  # the largest ratio over all fractions counts
        assert np.all(score[clear] >= low * h[clear] / t * (1.0 - 1e-9))
    else:
        np.testing.assert_allclose(score[clear], low * h[clear] / t, rtol=1e-9)


def test_scores_fall_along_a_ray_to_the_end_of_floating_point(model: Any, X: np.ndarray) -> None:
    lengths = np.append(np.linspace(5.0, 60.0, 80), 10.0 ** np.arange(2, 99, 4))
    for direction in ([1.0, 0.0], [-0.3, 1.0], [1.0, 1.0]):
        score = model.score_samples(np.outer(lengths, direction))
        assert np.all(np.diff(score[score < 0.05]) < 0.0)
        assert 0.0 < score[-1] < 1e-90


def test_the_score_is_continuous_where_it_leaves_theta(model: Any) -> None:
    low = float(np.min(model.measure_.support[0]))
    inner, outer = np.array([-2.0, 0.0]), np.array([30.0, 5.0])
    assert model.score_samples(inner[None, :])[0] > low
    for _ in range(50):
        middle = 0.5 * (inner + outer)
        inner, outer = (middle, outer) if model.score_samples(middle[None, :])[0] >= low else (inner, middle)
    assert model.score_samples(outer[None, :])[0] == pytest.approx(low, rel=1e-2)


def test_the_default_decision_keeps_its_sign(model: Any, X: np.ndarray, plane: np.ndarray) -> None:
    points = np.concatenate([X, plane])
    decision = model.decision_function(points)
    assert np.array_equal(decision, model.score_samples(points) - model.offset_)
    assert np.array_equal(decision >= 0.0, model.decision_function(points, model.offset_) >= 0.0)


def test_points_inside_of_every_set_are_ordered_where_there_is_room(X: np.ndarray) -> None:
    for model in (InfiniteOneClassSVM(n_nodes=10, measure=(0.1, 0.5), nested=True), QOneClassSVM(nus=[0.1, 0.3])):
        score, high = model.fit(X).score_samples(X), float(np.max(model.measure_.support[1]))
        deep = score >= high
        assert np.sum(deep) > 40
        assert np.unique(score[deep]).size == np.sum(deep)
        assert np.max(score) < 1.0
        assert np.array_equal(deep, model.decision_function(X, high) >= 0.0)


@pytest.mark.parametrize("kernel", ["linear", "polynomial"])
def test_kernels_that_do_not_decay(kernel: str, plane: np.ndarray) -> None:
    X = make_mixture(60, random_state=0) + 6.0  # away from 0, so that a half-space can hold it
    model = InfiniteOneClassSVM(kernel=kernel, n_nodes=10).fit(X)
    score, h = model.score_samples(plane), model.decision_function(plane, 0.05)
    outside = score < 0.05
    assert np.sum(outside) > 100
    assert np.min(h + model.threshold(0.05)) < 0.0 or kernel == "polynomial"
    assert np.unique(score[outside]).size == np.sum(outside)
    if kernel == "linear":
        assert np.array_equal(np.argsort(score[outside]), np.argsort(h[outside]))


def test_a_gram_matrix_has_no_rays(X: np.ndarray) -> None:
    model = InfiniteOneClassSVM(kernel="precomputed", n_nodes=10).fit(RBF(0.5)(X, X))
    gram = RBF(0.5)(np.outer(np.linspace(3.0, 60.0, 200), [1.0, 1.0]), X)
    score = model.score_samples(gram)
    assert np.all(score > 0.0)
    assert np.all(np.diff(score[:20]) < 0.0)
    assert np.all(score[np.max(gram, axis=1) == 0.0] <= np.min(score[:20]))  # nothing is known of these


def test_a_ratio_that_cannot_be_taken_gives_way_to_a_difference() -> None:
    beyond = Beyond(lambda X: X, np.array([-1.0]), np.array([2.0]))
    share = beyond.outside(np.array([[-1.0 - 1e-9], [-1.5], [-3.0], [-50.0]]))
    assert share[0] == pytest.approx(1.0)
    assert np.all(np.diff(share) < 0.0)
    assert np.all(share > 0.0)
    assert beyond.inside(np.array([[-1.0], [0.0], [4.0]])).tolist() == [1.0, 0.5, pytest.approx(1.0 / 6.0)]
