"""The functional core: the only function that fits.

    learn(recipe, data, memory=None, stream=None) → Fit

Estimators, self-tuned models, paths and experiments all use it, for rows in memory and for streamed rows. A
:class:`Recipe` defines what to learn and how. :class:`Data` are rows with weights. A :class:`Memory`, if there is one,
contains results of earlier fits, and a :class:`Stream` are rows that are visited in parts. All results of a
fit are in its :class:`Fit`.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from infinitask._base.arrays import one_blas_thread
from infinitask.calibration.held_out import HeldOut
from infinitask.features import FeatureRecipe
from infinitask.fitting._data import Data
from infinitask.fitting._defaults import resolved, with_width
from infinitask.fitting._fit import Fit, Stream, fitted
from infinitask.fitting._kernel_gap import check_certifiable
from infinitask.fitting._metric_learning import with_learnt_kernels
from infinitask.fitting._recipe import Recipe
from infinitask.fitting._warm_start import Memory
from infinitask.objective import Smoothing

FIRST_RANK, LARGEST_RANK, STILL_MOVES = 250, 4_000, 0.98
"""The first rank of "auto", the last one after doubling, and the fraction of the last kernel gap below which the next
one must be to continue."""

SMALL_KERNEL_GAP = 1e-2
"""A rank is large enough if the kernel gap is at most this, or ten times the tolerance."""


def learn(recipe: Recipe, data: Data, memory: Memory | None = None, stream: Stream | None = None) -> Fit:
    """Pose the problem of a recipe on some data, solve it, and calibrate the fit.

    Parameters
    ----------
    recipe : Recipe
    data : Data
    memory : Memory or None
        The results of earlier fits; this one is added.
    stream : Stream or None
        All rows, if the data are a sample of them.

    Returns
    -------
    Fit

    Examples
    --------
    >>> from infinitask import InfiniteQuantileRegressor
    >>> from infinitask.datasets import make_sine
    >>> X, y = make_sine(50, random_state=0)
    >>> fit = learn(InfiniteQuantileRegressor(n_nodes=10).recipe(), Data.canonical(X, y))
    >>> fit.field(X[:2], [0.1, 0.9]).shape
    (2, 2)
    >>> fit.solution.gap <= fit.recipe.tol
    True
    """
    if not isinstance(recipe, Recipe):
        raise TypeError(
            f"{type(recipe).__name__} was given; learn takes a Recipe. Of an estimator, pass estimator.recipe()."
        )
    if recipe.certify is not None or recipe.rank == "auto":
        check_certifiable(recipe)
    rng, given = generator(recipe.random_state), recipe
    with one_blas_thread():
        if getattr(recipe.kernel, "needs_targets", False):
            recipe = with_learnt_kernels(recipe, data, memory)
        # a kernel that is given as an object has its width already
        open_width = isinstance(recipe.kernel, str) and recipe.gamma == "auto" and stream is None
        recipe = resolved(recipe, data, rows=None if stream is None else stream.n)
        if recipe.rank == "auto":
            fit = _with_grown_rank(recipe, data, memory, rng)
        else:
            fit = fitted(recipe, data, memory, copy.deepcopy(rng), stream)
            for _ in range(4 if open_width and hasattr(recipe.kernel, "kernel") else 0):
                factor = recipe.task.widened(fit)
                if factor is None:
                    break
                recipe = replace(recipe, kernel=with_width(recipe.kernel, factor))
                fit = fitted(recipe, data, memory, copy.deepcopy(rng), stream)
        return _calibrated(replace(fit, given=given), data, sampled=stream is not None)


def _calibrated(fit: Fit, data: Data, *, sampled: bool) -> Fit:
    """Return the fit with the post-fit calibration of its task."""
    recipe = fit.recipe
    held_out = HeldOut(
        fit.problem,
        fit.field,
        fit.solution,
        data.copies,
        recipe.solver,
        recipe.tol,
        recipe.max_iter,
        recipe.verbose,
        sampled,
    )
    # a smoothing with a centre, and a dual point, contain a number for every pair, which is not kept
    solution = replace(fit.solution, smoothing=Smoothing(fit.solution.smoothing.kappa), dual_at=None)
    return replace(fit, calibration=recipe.task.finish(fit, held_out), solution=solution)


def _with_grown_rank(recipe: Recipe, data: Data, memory: Memory | None, rng: np.random.Generator) -> Fit:
    """Return the fit with the number of features that a small kernel gap requires.

    The generator is the same for every rank. Sampled landmarks, or pivots, therefore include those of the
    rank before.
    """
    enough = max(10.0 * recipe.tol, SMALL_KERNEL_GAP)
    ranks, gaps = [FIRST_RANK], []
    while True:
        fit = fitted(_with_rank(recipe, ranks[-1]), data, memory, copy.deepcopy(rng))
        assert fit.kernel_gap is not None
        gaps.append(fit.kernel_gap)
        moves = len(gaps) < 2 or gaps[-1] < STILL_MOVES * gaps[-2]
        largest = min(LARGEST_RANK, int(fit.problem.phi.values.shape[0]))
        if gaps[-1] <= enough or fit.problem.phi.exact or ranks[-1] >= largest or not moves:
            break
        ranks.append(min(2 * ranks[-1], largest))
    way = ", ".join(f"{gap:.1e} at {rank}" for rank, gap in zip(ranks, gaps, strict=True))
    phi = replace(fit.problem.phi, description=f"{fit.problem.phi.description}; kernel gap {way}")
    return replace(fit, problem=replace(fit.problem, phi=phi))


def _with_rank(recipe: Recipe, rank: int) -> Recipe:
    """Return the recipe with a number of features, and a certificate."""
    features = recipe.features
    if isinstance(features, FeatureRecipe):
        if features.rank is not None:
            raise ValueError(
                f"rank='auto' was given with features={features!r}, which have a rank of their own. Leave one of them "
                "out."
            )
        features = clone(features).set_params(rank=rank)
    return replace(recipe, features=features, rank=rank, certify="kernel")


def generator(random_state: Any) -> np.random.Generator:
    """Return the generator of a fit for a ``random_state`` as in scikit-learn."""
    return np.random.default_rng(check_random_state(random_state).randint(2**31))
