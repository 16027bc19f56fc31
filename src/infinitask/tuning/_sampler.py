"""Expected improvement under a Gaussian process, started from Sobol points: the sampler of the paper, for Optuna."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from optuna._transform import _SearchSpaceTransform
from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from infinitask.tuning._proposals import Proposals


class ExpectedImprovement(BaseSampler):
    """Sobol points, then the largest expected improvement.

    Parameters
    ----------
    space : dict of optuna distributions
        All parameters. Parameters that are neither floats nor integers are sampled at random.
    n_startup : int
        The number of Sobol points.
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
        self.space: dict[str, BaseDistribution] = {
            name: d
            for name, d in space.items()
            if isinstance(d, (FloatDistribution, IntDistribution)) and not d.single()
        }
        self.seed = seed
        self._proposals = Proposals(len(self.space), n_startup, seed)

    # ------------------------------------------------------------------------------------ required by Optuna
    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Return the numeric parameters, which are chosen together."""
        return dict(self.space)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return the next point."""
        if not self.space:
            return {}
        done = [t for t in study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)) if t.number < trial.number]
        done = [t for t in done if all(name in t.params for name in self.space)]
        sign = 1.0 if study.direction == StudyDirection.MAXIMIZE else -1.0
        cube = _SearchSpaceTransform(self.space, transform_0_1=True)
        points = [cube.transform({name: t.params[name] for name in self.space}) for t in done]
        scores = sign * np.array([t.value for t in done], dtype=float)
        return cube.untransform(self._proposals(trial.number, np.reshape(points, (-1, len(self.space))), scores))

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Sample one parameter at random."""
        random = RandomSampler(seed=(self.seed * 1_000_003 + trial.number) % 2**32)
        return random.sample_independent(study, trial, param_name, param_distribution)
