"""Laws of the synthetic sets: shapes, seeds, and agreement with their closed-form truth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from infinitask.datasets import make_mixture, make_sine, sine_quantile
from tests.support.each import each


def test_sine_has_sorted_rows_on_its_interval() -> None:
    X, y = make_sine(300, random_state=0)
    assert X.shape == (300, 1)
    assert y.shape == (300,)
    assert np.all(np.diff(X[:, 0]) >= 0.0)
    assert X.min() >= 0.0
    assert X.max() <= 1.5


def test_seeds_decide() -> None:
    def sine(seed: int) -> Any:
        return np.column_stack(make_sine(20, random_state=seed))

    def mixture(seed: int) -> Any:
        return make_mixture(20, random_state=seed)

    for make in (sine, mixture):
        np.testing.assert_array_equal(make(0), make(0))
        assert not np.allclose(make(0), make(1))


@each("theta", [0.05, 0.25, 0.5, 0.9])
@each("half", ["left", "right"])
def test_sine_quantiles_have_their_coverage(theta: float, half: str) -> None:
    X, y = make_sine(20_000, random_state=1)
    below = y <= sine_quantile(X, theta)[:, 0]
    below = below[X[:, 0] < 0.75] if half == "left" else below[X[:, 0] >= 0.75]
    # Four standard deviations of a binomial share.
    assert abs(below.mean() - theta) < 4.0 * np.sqrt(theta * (1.0 - theta) / below.size)


def test_sine_quantiles_agree_with_the_normal_distribution_at_the_ends() -> None:
    theta = np.asarray([0.1, 0.5, 0.99])
    expected = np.stack([stats.norm(0.0, 1.2).ppf(theta), stats.norm(0.0, 0.2).ppf(theta)])
    np.testing.assert_allclose(sine_quantile(np.asarray([0.0, 1.5]), theta), expected, atol=1e-12)


def test_sine_quantiles_increase_with_the_level() -> None:
    q = sine_quantile(np.linspace(0.0, 1.5, 7), np.linspace(0.01, 0.99, 9))
    assert np.all(np.diff(q, axis=1) > 0.0)


def test_sine_quantile_takes_vectors_and_columns() -> None:
    x = np.linspace(0.0, 1.5, 5)
    np.testing.assert_array_equal(sine_quantile(x, [0.2, 0.8]), sine_quantile(x[:, None], [0.2, 0.8]))
    assert sine_quantile(x, 0.3).shape == (5, 1)


@each("n_features", [1, 2, 5])
def test_mixture_has_the_features_asked_for(n_features: int) -> None:
    X = make_mixture(40, n_features=n_features, random_state=0)
    assert X.shape == (40, n_features)
    assert np.all(np.isfinite(X))


def test_mixture_has_three_clouds_of_unequal_spread() -> None:
    X = make_mixture(20_000, random_state=0)
    centres = np.asarray([[-2.0, 0.0], [1.5, 1.5], [1.5, -2.0]])
    distance = np.linalg.norm(X[:, None, :] - centres, axis=2)
    cloud = np.argmin(distance, axis=1)
    share = np.bincount(cloud, minlength=3) / X.shape[0]
    np.testing.assert_allclose(share, [0.5, 0.3, 0.2], atol=0.03)
    spread = [np.median(distance[cloud == c, c]) for c in range(3)]
    assert spread[0] > 1.2 * spread[1] > 1.5 * spread[2]


@each(
    ("call", "sentence"),
    [
        (lambda: make_sine(0), "n_samples=0"),
        (lambda: make_sine(2.5), "n_samples=2.5"),  # type: ignore[arg-type]
        (lambda: make_mixture(10, n_features=0), "n_features=0"),
        (lambda: sine_quantile(np.zeros((3, 2)), 0.5), r"shape \(3, 2\)"),
        (lambda: sine_quantile(np.zeros(3), [0.5, 1.0]), "strictly"),
        (lambda: sine_quantile(np.zeros(3), [[0.5]]), "theta of shape"),
    ],
)
def test_wrong_arguments_are_answered_with_a_sentence(call: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        call()
