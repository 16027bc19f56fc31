r"""The next point to evaluate, by expected improvement under a Gaussian process.

With f the score in the unit cube of (logarithmic) parameters, and f* the best one so far, the next point maximises

.. math:: E[(f - f^*)_+] = (\mu - f^*) \, \Phi(u) + \sigma \, \varphi(u), \qquad u = (\mu - f^*) / \sigma .

Every choice depends only on the seed and the points before it: a search that is interrupted and continued proposes the
same points.
"""

from __future__ import annotations

import warnings
from functools import cached_property

import numpy as np
from scipy.stats import norm, qmc
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from infinitask._base.arrays import HostArray, normal_scores

CANDIDATES = 1024
"""The number of random points from which the next one is chosen; the same number is sampled near the five best ones."""

GROWTH = 1.1
"""Length scales are estimated again if the number of points has grown by this factor: this takes most of the time."""


class Proposals:
    """Sobol points, then the largest expected improvement.

    Parameters
    ----------
    dimension : int
        The dimension of the unit cube.
    n_startup : int
        The number of Sobol points.
    seed : int

    Examples
    --------
    >>> proposals, points, scores = Proposals(2, n_startup=8), np.empty((0, 2)), np.empty(0)
    >>> for number in range(30):
    ...     point = proposals(number, points, scores)
    ...     points = np.vstack([points, point])
    ...     scores = np.append(scores, -np.sum((point - 0.3) ** 2))
    >>> bool(np.all(np.abs(points[np.argmax(scores)] - 0.3) < 0.05))
    True
    """

    def __init__(self, dimension: int, n_startup: int = 27, seed: int = 0) -> None:
        self.dimension, self.n_startup, self.seed = dimension, n_startup, seed
        self._scales: tuple[int, HostArray] | None = None

    def __call__(self, number: int, points: HostArray, scores: HostArray) -> HostArray:
        """Return the point with this number, (dimension,), given others (k, dimension) and their scores (k,)."""
        if number < self.n_startup:
            return np.asarray(self._startup[number])
        rng = np.random.default_rng([self.seed, number])
        if len(points) < 2:
            return rng.random(self.dimension)
        goal = normal_scores(scores)
        process = self._process(points, scores)
        near = points[np.argsort(-goal)[:5]]
        around = near[rng.integers(len(near), size=CANDIDATES)] + 0.05 * rng.standard_normal(
            (CANDIDATES, self.dimension)
        )
        candidates = np.vstack([rng.random((CANDIDATES, self.dimension)), np.clip(around, 0.0, 1.0)])
        mean, deviation = process.predict(candidates, return_std=True)
        deviation = np.maximum(deviation, 1e-9)
        u = (mean - goal.max()) / deviation
        return np.asarray(candidates[np.argmax(deviation * (u * norm.cdf(u) + norm.pdf(u)))])

    @cached_property
    def _startup(self) -> HostArray:
        power = int(np.ceil(np.log2(self.n_startup)))
        return np.asarray(qmc.Sobol(self.dimension, seed=self.seed).random_base2(power))

    def _process(self, points: HostArray, scores: HostArray) -> GaussianProcessRegressor:
        """The process of the normal scores, with current or recent length scales.

        Far from the optimum a score may be a thousand times worse, which is not informative; its rank is.
        """
        kernel = ConstantKernel(1.0, (0.05, 20.0)) * Matern(
            np.full(self.dimension, 0.3), (0.03, 10.0), nu=2.5
        ) + WhiteKernel(0.05, (1e-4, 1.0))
        # the points used for the estimate depend only on the count: an interruption changes nothing
        last = _last_estimate(points.shape[0])
        if self._scales is None or self._scales[0] != last:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # a length scale at its bound is a valid result
                estimated = GaussianProcessRegressor(kernel).fit(points[:last], normal_scores(scores[:last]))
            self._scales = last, estimated.kernel_.theta
        return GaussianProcessRegressor(kernel.clone_with_theta(self._scales[1]), optimizer=None).fit(
            points, normal_scores(scores)
        )


def _last_estimate(count: int) -> int:
    """The number of trials at which length scales were last estimated."""
    last = 2
    while max(last + 1, int(last * GROWTH)) <= count:
        last = max(last + 1, int(last * GROWTH))
    return last
