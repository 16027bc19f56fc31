"""The default of the plain estimator as a candidate: its kernel with its own λ.

It competes with the ranked kernels, such that a self-tuned model is not worse than the default on held-out rows, and is
chosen if a comparison ends before any candidate was tried.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from infinitask._base.arrays import HostArray
from infinitask.fitting._data import Data
from infinitask.fitting._defaults import resolved, spreads
from infinitask.fitting._metric_learning import with_learnt_kernels
from infinitask.fitting._recipe import Recipe
from infinitask.kernels import InputKernel, Scaled
from infinitask.tuning._candidates import Candidate, Kind
from infinitask.tuning._contest import Contest


def default_candidate(contest: Contest, kernel: Any = None) -> Candidate:
    """Return the kernel of the plain estimator, with its λ in the units of the contest as ridge.

    Parameters
    ----------
    contest : Contest
    kernel : kernel or None
        A kernel of the user in place of the default.
    """
    recipe = contest.rows.recipe if kernel is None else replace(contest.rows.recipe, kernel=kernel)
    counted = contest.counted

    def on(rows: HostArray) -> InputKernel:
        return _resolved(recipe, contest, counted[rows]).kernel  # type: ignore[no-any-return]

    found = _resolved(recipe, contest, counted)
    plain = kernel is not None or (
        isinstance(found.kernel, Scaled) and tuple(found.kernel.scales) == spreads(contest.rows.X[counted])
    )
    kind = Kind.fixed(found.kernel) if plain else Kind(on, learns=True)  # scales of its own are learnt from targets
    return Candidate("default", kind, float("nan"), float(found.alpha) * contest.units.spread, not contest.listed)


def _resolved(recipe: Recipe, contest: Contest, rows: HostArray) -> Recipe:
    X, y, weight = (values[rows] for values in (contest.rows.X, np.asarray(contest.rows.y), contest.rows.weight))
    data = Data.canonical(X, y, weight)
    return resolved(with_learnt_kernels(replace(recipe, alpha="auto"), data), data)
