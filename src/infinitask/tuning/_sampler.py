r"""Expected improvement under a Gaussian process, started from Sobol points: the sampler of the paper, for Optuna.

With f the score in the unit cube of (logarithmic) parameters, and f* the best one so far, the next point maximises

.. math:: E[(f - f^*)_+] = (\mu - f^*) \, \Phi(u) + \sigma \, \varphi(u), \qquad u = (\mu - f^*) / \sigma .

Every choice depends on the seed, the number of the trial and the trials before it, and on nothing else: a search that
was interrupted goes on as if it had not been.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState
from scipy.special import ndtri
from scipy.stats import norm, qmc, rankdata
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from infinitask._array import HostArray

__all__ = ["ExpectedImprovement"]

CANDIDATES = 1024
"""Points of the cube among which the next one is chosen, and as many near the best trials."""

NEAR, RADIUS = 5, 0.05
"""How many of the best trials candidates surround, and how closely."""

GROWTH = 1.1
"""Length scales are estimated anew when there are so many times as many trials: most of the time is spent there."""


class ExpectedImprovement(BaseSampler):
    """Sobol points, then the largest expected improvement.

    Parameters
    ----------
    space : dict of optuna distributions
        All parameters. Those that are neither floats nor integers are drawn at random.
    n_startup : int
        Sobol points.
    seed : int

    Examples
    --------
    >>> import optuna
    >>> space = {"x": optuna.distributions.FloatDistribution(1e-3, 1e3, log=True)}
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> study = optuna.create_study(direction="maximize", sampler=ExpectedImprovement(space, n_startup=5))
    >>> for _ in range(15):
    ...     trial = study.ask(space)
    ...     _ = study.tell(trial, -abs(np.log10(trial.params["x"]) - 1.0))
    >>> bool(abs(np.log10(study.best_params["x"]) - 1.0) < 0.1)
    True
    """

    def __init__(self, space: Mapping[str, BaseDistribution], n_startup: int = 27, seed: int = 0) -> None:
        self.space = {
            name: d
            for name, d in space.items()
            if isinstance(d, (FloatDistribution, IntDistribution)) and not d.single()
        }
        self.n_startup, self.seed = n_startup, seed
        self._scales: tuple[int, HostArray] | None = None

    # ------------------------------------------------------------------------------------ what Optuna asks for
    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """The numbers among the parameters: they are chosen together."""
        return dict(self.space)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The next point."""
        if not self.space:
            return {}
        if trial.number < self.n_startup:
            point = _sobol(len(self.space), self.n_startup, self.seed)[trial.number]
        else:
            point = self._improvement(study, trial.number)
        return {name: _value(d, float(u)) for (name, d), u in zip(self.space.items(), point, strict=True)}

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """One parameter at random."""
        random = RandomSampler(seed=(self.seed * 1_000_003 + trial.number) % 2**32)
        return random.sample_independent(study, trial, param_name, param_distribution)

    # ------------------------------------------------------------------------------------------- the next point
    def _improvement(self, study: Study, number: int) -> HostArray:
        rng = np.random.default_rng([self.seed, number])
        done = [t for t in study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)) if t.number < number]
        done = [t for t in done if all(name in t.params for name in self.space)]
        if len(done) < 2:
            return rng.random(len(self.space))
        sign = 1.0 if study.direction == StudyDirection.MAXIMIZE else -1.0
        points = np.array([[_unit(d, t.params[name]) for name, d in self.space.items()] for t in done])
        scores = sign * np.array([t.value for t in done], dtype=float)
        goal = _normal(scores)
        process = self._process(points, scores)
        near = points[np.argsort(-goal)[:NEAR]]
        around = near[rng.integers(len(near), size=CANDIDATES)] + RADIUS * rng.standard_normal(
            (CANDIDATES, points.shape[1])
        )
        candidates = np.vstack([rng.random((CANDIDATES, points.shape[1])), np.clip(around, 0.0, 1.0)])
        mean, deviation = process.predict(candidates, return_std=True)
        deviation = np.maximum(deviation, 1e-9)
        u = (mean - goal.max()) / deviation
        return np.asarray(candidates[np.argmax(deviation * (u * norm.cdf(u) + norm.pdf(u)))])

    def _process(self, points: HostArray, scores: HostArray) -> GaussianProcessRegressor:
        """The process, with length scales from now or from not long ago."""
        scales = np.full(points.shape[1], 0.3)
        kernel = ConstantKernel(1.0, (0.05, 20.0)) * Matern(scales, (0.03, 10.0), nu=2.5) + WhiteKernel(
            0.05, (1e-4, 1.0)
        )
        # the trials they were estimated from follow from the count alone: an interruption changes nothing
        last = _last_estimate(points.shape[0])
        if self._scales is None or self._scales[0] != last:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # a length scale at its end is an answer
                estimated = GaussianProcessRegressor(kernel).fit(points[:last], _normal(scores[:last]))
            self._scales = last, estimated.kernel_.theta
        return GaussianProcessRegressor(kernel.clone_with_theta(self._scales[1]), optimizer=None).fit(
            points, _normal(scores)
        )


def _normal(scores: HostArray) -> HostArray:
    """Scores by their ranks: far from the optimum they may be a thousand times worse, which tells nothing of it."""
    return np.asarray(ndtri((rankdata(scores) - 0.5) / scores.size))


def _last_estimate(count: int) -> int:
    """At how many trials length scales were last estimated."""
    last = 2
    while max(last + 1, int(last * GROWTH)) <= count:
        last = max(last + 1, int(last * GROWTH))
    return last


@lru_cache(maxsize=8)
def _sobol(dimension: int, count: int, seed: int) -> HostArray:
    power = max(0, int(np.ceil(np.log2(max(count, 1)))))
    return np.asarray(qmc.Sobol(dimension, seed=seed).random_base2(power)[:count])


def _unit(distribution: BaseDistribution, value: float) -> float:
    """A parameter's place between its ends."""
    assert isinstance(distribution, (FloatDistribution, IntDistribution))
    low, high = float(distribution.low), float(distribution.high)
    if distribution.log:
        return float(np.log(value / low) / np.log(high / low))
    return (float(value) - low) / (high - low)


def _value(distribution: BaseDistribution, u: float) -> float | int:
    """The parameter at a place between the ends."""
    assert isinstance(distribution, (FloatDistribution, IntDistribution))
    low, high = float(distribution.low), float(distribution.high)
    value = low * (high / low) ** u if distribution.log else low + u * (high - low)
    if distribution.step is not None and not distribution.log:
        value = low + distribution.step * round((value - low) / distribution.step)
    value = min(max(value, low), high)
    return round(value) if isinstance(distribution, IntDistribution) else float(value)
