"""The peers without trees, against what they are said to be."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct, Matern, WhiteKernel
from sklearn.linear_model import QuantileRegressor
from threadpoolctl import threadpool_limits

from experiments import smooth_peers as smooth
from experiments.peer_models import PEERS, fitted

LEVELS = np.array([0.1, 0.5, 0.9])


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with threadpool_limits(1):
        yield


def skewed(n: int = 150) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, X @ [1.0, -0.5, 0.0] + (0.2 + 0.3 * np.abs(X[:, 1])) * rng.standard_exponential(n)


@pytest.mark.parametrize("level", [0.05, 0.5, 0.9])
def test_linear_quantiles_are_those_of_highs(level: float) -> None:
    X, y = skewed()
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    exact = QuantileRegressor(quantile=level, alpha=0.0).fit(Z, y)

    def loss(coef: np.ndarray) -> float:
        r = y - coef[0] - Z @ coef[1:]
        return float(np.mean(np.maximum(level * r, (level - 1.0) * r)))

    ours = smooth.linear_quantile(Z, y, level, 0.0)
    assert loss(ours) == pytest.approx(loss(np.r_[exact.intercept_, exact.coef_]), rel=1e-3)
    shrunk = smooth.linear_quantile(Z, y, level, 10.0)
    assert np.abs(shrunk[1:]).max() < 0.1 * np.abs(ours[1:]).max()
    assert shrunk[0] == pytest.approx(np.quantile(y, level), abs=0.2)  # the bias has no penalty


def test_the_gaussian_process_is_that_of_scikit_learn() -> None:
    X, y = skewed(80)
    process = smooth._Process(X, y, 0)
    s, v, noise = np.exp(process.log[:3])
    kernel = ConstantKernel(s) * Matern(np.exp(process.log[3:]), nu=2.5) + ConstantKernel(v) * DotProduct(1e-9)
    kernel += ConstantKernel(1.0) + WhiteKernel(noise)
    Z, t = process.standard(X), (y - y.mean()) / y.std()
    theirs = GaussianProcessRegressor(kernel, optimizer=None, alpha=1e-8).fit(Z, t)
    mean, deviation = theirs.predict(Z[:5] + 0.3, return_std=True)
    ours = process(X[:5] + 0.3 * X.std(axis=0))
    np.testing.assert_allclose(ours[0], y.mean() + y.std() * mean, rtol=1e-6)
    np.testing.assert_allclose(ours[1], y.std() * deviation, rtol=1e-5)


def test_the_gaussian_process_finds_a_better_likelihood_than_it_began_with() -> None:
    X, y = skewed(80)
    process = smooth._Process(X, y, 0)
    scales = np.exp(process.log[3:])
    assert scales[2] > scales[:2].min()  # the third input has no part in y
    assert 0.01 < np.exp(process.log[2]) < 0.5


def test_scores_follow_a_monotone_map_of_y() -> None:
    X, y = skewed(80)
    h, g = (fitted(PEERS["gp_scores"], {}, X, t, LEVELS, 0)(X[:9], LEVELS) for t in (y, np.exp(3.0 * y)))
    places = [np.searchsorted(np.sort(t), q) for t, q in ((y, h), (np.exp(3.0 * y), g))]
    assert np.abs(places[0] - places[1]).max() <= 1


def test_a_peer_of_means_has_the_spread_of_its_held_out_residuals() -> None:
    pytest.importorskip("xrfm")
    X, y = skewed(200)
    peer = PEERS["xrfm"]
    h = fitted(peer, peer.defaults(200) | peer.last, X, y, LEVELS, 0)(X, LEVELS)
    widths = h[:, 2] - h[:, 0]
    np.testing.assert_allclose(widths, widths[0], rtol=1e-6)
    assert 0.7 < np.mean((y > h[:, 0]) & (y < h[:, 2])) <= 1.0
    assert np.corrcoef(h[:, 1], y)[0, 1] > 0.8
