"""Proposition S.1 of the paper: no function has a smaller integrated risk than the true conditional quantiles.

For conditional distributions that are known the risk is integrated numerically over y, without noise. The proof writes
the excess of h over q as E[(t − s)(y − h)] with s = 1[y ≤ h] and t = 1[y ≤ q], which is also ∫_q^h (F(y) − θ) dy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from infinitask import InfiniteQuantileRegressor
from infinitask.datasets import make_sine, sine_quantile
from infinitask.losses import Pinball
from infinitask.measures import Beta, GaussLegendre, Measure, Uniform
from tests.support.each import each

Values = np.ndarray
X = np.linspace(0.05, 1.45, 6)[:, None]
PANEL = np.polynomial.legendre.leggauss(24)


def sine(x: Values) -> Any:
    """The distribution of make_sine: Gaussian, with a median and a spread that depend on x."""
    centre = sine_quantile(x, [0.5])
    return stats.norm(centre, sine_quantile(x, [stats.norm.cdf(1.0)]) - centre)


DISTRIBUTIONS: dict[str, Callable[[Values], Any]] = {
    "sine": sine,
    "exponential": lambda x: stats.expon(scale=0.5 + x),
    "logistic": lambda x: stats.logistic(np.cos(3.0 * x), 0.3),
}

MEASURES: dict[str, Measure] = {"uniform": Uniform(0.0, 1.0), "middle": Beta(3.0, 2.0, 0.1, 0.9)}

CHANGES: dict[str, Callable[[Values, Values, Values], Values]] = {
    "shift": lambda x, theta, q: np.ones_like(q),
    "tilt in x": lambda x, theta, q: (x - 0.75) + 0.0 * q,
    "tilt in θ": lambda x, theta, q: (theta - 0.5) + 0.0 * q,
    "waves in x and θ": lambda x, theta, q: np.sin(7.0 * x) * np.cos(9.0 * theta),
    "at few levels": lambda x, theta, q: (np.abs(theta - 0.3) < 0.15) + 0.0 * q,
    "wider": lambda x, theta, q: q - np.mean(q, axis=1, keepdims=True),
    "crossing": lambda x, theta, q: -2.0 * q,
    "another family": lambda x, theta, q: stats.laplace.ppf(theta) - q,
}


def over_panels(f: Callable[[Values], Values], ends: Values) -> Values:
    """∫ f(y) dy at each (x, θ), over the intervals between ends (k, n, m) that ascend: f is smooth on each of them."""
    half, middle = 0.5 * np.diff(ends, axis=0), 0.5 * (ends[1:] + ends[:-1])
    return np.asarray(
        sum(weight * np.sum(half * f(middle + node * half), axis=0) for node, weight in zip(*PANEL, strict=True))
    )


class Known:
    """A known distribution of y given x, at the inputs X and the levels of a rule."""

    def __init__(self, distribution: str, measure: str, nodes: int = 10) -> None:
        self.rule = GaussLegendre()(MEASURES[measure], nodes)
        self.theta = self.rule.nodes[:, 0]
        self.distribution = DISTRIBUTIONS[distribution](X)
        self.q = self.distribution.ppf(self.theta)

    def ends(self, h: Values) -> Values:
        """Cuts of the real line at q, at h, at levels far into both tails, and beyond them at the outer of all."""
        levels = (1e-15, 1e-10, 1e-6, 1e-3, 0.1, 0.5, 0.9, 1.0 - 1e-3, 1.0 - 1e-6, 1.0 - 1e-10, 1.0 - 1e-15)
        cuts = [self.distribution.ppf(p) + 0.0 * self.q for p in levels]
        return np.sort(np.stack([self.q, h, *cuts]), axis=0)

    def mean(self, values: Values) -> float:
        """Over x and over θ."""
        return float(np.mean(values @ self.rule.weights))

    def risk(self, h: Values) -> float:
        """R(h) = ∫ E v_θ(Y, h(X)(θ)) dμ(θ) with the pinball loss of the library."""

        def integrand(y: Values) -> Values:
            losses = np.stack([Pinball().value(self.theta, part, h) for part in y])
            return losses * self.distribution.pdf(y)

        return self.mean(over_panels(integrand, self.ends(h)))

    def excess_of_the_proof(self, h: Values) -> float:
        """∫ E[(t − s)(Y − h)] dμ(θ)."""

        def integrand(y: Values) -> Values:
            return ((y <= self.q) * 1.0 - (y <= h)) * (y - h) * self.distribution.pdf(y)

        return self.mean(over_panels(integrand, self.ends(h)))

    def excess_by_the_distribution(self, h: Values) -> float:
        """∫∫_q^h (F(y) − θ) dy dμ(θ)."""
        between = np.clip(self.ends(h), np.minimum(self.q, h), np.maximum(self.q, h))
        return self.mean(np.sign(h - self.q) * over_panels(lambda y: self.distribution.cdf(y) - self.theta, between))


@each("change", CHANGES)
@each("measure", MEASURES)
@pytest.mark.quick("sine")
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_no_function_has_a_smaller_risk_than_the_true_quantiles(distribution: str, measure: str, change: str) -> None:
    known = Known(distribution, measure)
    direction = CHANGES[change](X, known.theta, known.q)
    at_the_truth, excesses = known.risk(known.q), []
    for size in (-1.0, -0.05, 0.05, 1.0):
        h = known.q + size * direction
        excess = known.risk(h) - at_the_truth
        assert excess > 1e-9  # strictly: F rises strictly at q, so no other function is as good
        assert excess == pytest.approx(known.excess_of_the_proof(h), rel=1e-6, abs=1e-10)
        assert excess == pytest.approx(known.excess_by_the_distribution(h), rel=1e-6, abs=1e-10)
        excesses.append(excess)
    # the risk is convex in h, so it grows with the size of the change on both sides
    assert excesses[0] > excesses[1]
    assert excesses[2] < excesses[3]


def test_the_risk_of_the_true_quantiles_in_closed_form() -> None:
    known = Known("sine", "uniform", nodes=30)
    # E v_θ(Y, q_θ) = σ φ(Φ⁻¹(θ)) for a Gaussian distribution
    expected = np.mean(known.distribution.std()) * np.sum(
        known.rule.weights * stats.norm.pdf(stats.norm.ppf(known.theta))
    )
    assert known.risk(known.q) == pytest.approx(expected, rel=1e-9)


@each("kind", ["poisson", "coin"])
def test_the_proposition_holds_where_the_proof_does_not_apply(kind: str) -> None:
    """P(Y ≤ q | X) = θ, which the proof uses, needs that θ is a value of the distribution function, as it always is if
    that is continuous. The minimum is at q all the same.
    """
    distribution = stats.poisson(2.3) if kind == "poisson" else stats.bernoulli(0.4)
    y = np.arange(60.0)
    mass, theta = distribution.pmf(y), (np.arange(37) + 0.5) / 37.0
    q = distribution.ppf(theta)
    assert np.all(distribution.cdf(q) > theta + 1e-4)

    def risk(h: Values) -> float:
        return float(np.mean(mass @ Pinball().value(theta, y[:, None], h[None, :])))

    rng = np.random.default_rng(0)
    for h in (
        q + 0.3,
        q - 0.3,
        q + rng.normal(size=37),
        np.full(37, distribution.mean()),
        stats.norm.ppf(theta, distribution.mean()),
    ):
        s, t = y[:, None] <= h, y[:, None] <= q
        first = (theta - distribution.cdf(q)) * (q - h)  # 0 for continuous distributions
        second = mass @ ((t * 1.0 - s) * (y[:, None] - h))
        assert risk(h) - risk(q) == pytest.approx(np.mean(first + second))
        assert np.min(second) >= 0.0
        assert risk(h) > risk(q)
    assert np.min((theta - distribution.cdf(q)) * 0.3) < -1e-3  # the first term alone may be negative


def test_fits_come_closer_to_the_smallest_risk_with_more_rows() -> None:
    known = Known("sine", "middle")
    smallest, excesses = known.risk(known.q), []
    for n in (50, 200, 800):
        rows = [make_sine(n, random_state=seed) for seed in range(3)]
        models = [InfiniteQuantileRegressor(gamma=5.0, alpha=1e-2 / n, n_nodes=15).fit(*row) for row in rows]
        excesses.append(np.mean([known.risk(model.predict(X, known.theta)) for model in models]) - smallest)
    assert np.all(np.diff(excesses) < 0.0)
    assert 0.0 < excesses[-1] < 0.3 * excesses[0]
