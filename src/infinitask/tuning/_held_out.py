"""Scores of estimators at held-out rows, for one λ after the other.

Within a fold each fit starts from the one before it. With a known kernel, φ is computed once, for all rows, and a fold
takes its rows of it. The function that is learnt is the same, because it lies in the span of the rows that were seen.
If the rows decide the kernel (a bandwidth that is a rule) or the features (landmarks), a fold has its own.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring
from sklearn.utils import indexable
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.parallel import Parallel

from infinitask._base.arrays import HostArray
from infinitask._base.validation import naming
from infinitask.calibration._folds import Splits, out_of_fold, splits_of
from infinitask.estimators._base import Prepared
from infinitask.estimators._parameters import weights_of
from infinitask.estimators._sources import in_memory
from infinitask.features import Nystroem, feature_recipe
from infinitask.field import Problem
from infinitask.fitting._data import Data
from infinitask.fitting._defaults import resolved
from infinitask.fitting._learn import generator, learn
from infinitask.fitting._pose import pose
from infinitask.fitting._recipe import Recipe, in_units, in_units_of
from infinitask.fitting._warm_start import Memory, alike
from infinitask.kernels import input_kernel, takes_gamma


def shared_problem(recipe: Recipe, data: Data, rng: np.random.Generator | None = None) -> tuple[Recipe, Problem]:
    """The resolved recipe of fits that are only compared, and the problem of all rows, whose features folds share.

    Parameters
    ----------
    recipe : Recipe
    data : Data
        All rows; no fit sees those of weight 0.
    rng : numpy.random.Generator or None
        For random quadrature rules and features; None: of seed 0.
    """
    recipe = resolved(_compared(recipe), data)
    rng = np.random.default_rng(0) if rng is None else rng
    return recipe, pose(in_units(recipe), in_units_of(recipe, data), rng)


def _compared(recipe: Recipe) -> Recipe:
    """The recipe of fits that are only compared: nothing is certified beyond the duality gap, and no rank grows."""
    return replace(recipe, rank=None if recipe.rank == "auto" else recipe.rank, certify=None)


def checked(
    estimator: Any, X: Any, y: Any, sample_weight: Any, cv: Any, scoring: Any
) -> tuple[Any, Any, HostArray | None, Splits]:
    """X and y in memory, weights and folds of a cross-validation, or an error before anything is fitted."""
    in_memory(X)
    with naming("X" if y is None else "X and y"):
        X, y = indexable(X, y)
    weight = None if sample_weight is None else weights_of(sample_weight, X)
    with naming("scoring"):
        check_scoring(estimator, scoring)
    return X, y, weight, splits_of(cv, X, y, classifier=is_classifier(estimator))


def held_out_scores(
    models: Sequence[Any],
    X: Any,
    y: Any,
    weight: HostArray | None,
    splits: Splits,
    scoring: Any,
    parallel: Parallel,
) -> HostArray:
    """The scores at the held-out rows, (models, folds), of estimators of this library that differ in λ only.

    Parameters
    ----------
    models : sequence of estimators
        With falling λ: within a fold each fit starts from the one before it.
    X, y : array-like
    weight : ndarray (n,) or None
        Weights of the fits; scores are not weighted.
    splits : list of (train, test)
    scoring : str, callable or None
        As in scikit-learn.
    parallel : joblib.Parallel
        Folds are jobs. Nothing passes between them, so that their number does not change a score.
    """
    ridges = [(recipe.alpha, recipe.alpha_bias) for recipe in (model.recipe() for model in models)]
    prepared: Prepared = clone(models[-1])._prepare(X, y, weight)
    job = partial(_fold_scores, models[-1], X, y, weight, prepared.recipe, _shared(prepared), ridges, scoring)
    results = out_of_fold(job, splits, parallel)
    missed = sum(count for _, count in results)
    if missed:
        warnings.warn(
            f"{type(models[0]).__name__}: {missed} of {len(ridges) * len(splits)} fits did not reach the duality gap "
            "asked for, and their scores are those of models that are not solved; raise max_iter or tol.",
            ConvergenceWarning,
            stacklevel=3,
        )
    return np.array([scores for scores, _ in results]).T


def _shared(prepared: Prepared) -> tuple[Recipe, Data, Problem] | None:
    """What all folds share: the resolved recipe, all rows and their problem; None if each fold has its own."""
    recipe = prepared.recipe
    if not _features_are_fixed(recipe, prepared.X):
        return None
    data = Data(prepared.X, prepared.y, prepared.weight / np.sum(prepared.weight))
    resolved_recipe, problem = shared_problem(recipe, data, generator(recipe.random_state))
    return resolved_recipe, data, problem


def training_part(recipe: Recipe, data: Data, problem: Problem, train: HostArray) -> tuple[Recipe, Data, Memory]:
    """The recipe, the training rows of a fold, and a memory that holds their part of a shared problem."""
    rows = train[data.weight[train] > 0.0]
    weight = data.weight[rows]
    part = Data(data.X[rows], None if data.y is None else data.y[rows], weight / np.sum(weight))
    memory = Memory()
    memory.knows(in_units(recipe), in_units_of(recipe, part), problem.only(rows), exact=0.0)
    return recipe, part, memory


def _features_are_fixed(recipe: Recipe, X: HostArray) -> bool:
    """Whether kernel and features are the same whatever rows they are made from, so that folds may share them.

    Not so for a bandwidth that is a rule, for a learnt metric, for landmarks, and for a Gram matrix, whose columns are
    training rows.
    """
    if takes_gamma(recipe.kernel) and isinstance(recipe.gamma, str):
        return False
    kernel = input_kernel(recipe.kernel, recipe.gamma)
    if kernel.precomputed or kernel.needs_targets or isinstance(feature_recipe(recipe.features, recipe.rank), Nystroem):
        return False
    return alike(kernel, kernel.resolve(X))


def _fold_scores(
    model: Any,
    X: Any,
    y: Any,
    weight: HostArray | None,
    recipe: Recipe,
    shared: tuple[Recipe, Data, Problem] | None,
    ridges: list[tuple[float, float]],
    scoring: Any,
    train: HostArray,
    test: HostArray,
) -> tuple[list[float], int]:
    """The scores of a fold for every ridge, and how many fits missed the gap."""
    model = clone(model)
    X_train, y_train = _safe_split(model, X, y, train)
    X_test, y_test = _safe_split(model, X, y, test, train)
    rows: Prepared = model._prepare(X_train, y_train, None if weight is None else weight[train])
    if shared is None:
        data = Data.canonical(rows.X, rows.y, rows.weight, gram=model._is_precomputed())
        recipe, memory = _compared(recipe), Memory(finest=None if isinstance(recipe.alpha, str) else recipe.alpha)
    else:
        recipe, data, memory = training_part(*shared, train)
    scores, missed = [], 0
    for alpha, alpha_bias in ridges:
        fit = learn(replace(recipe, alpha=alpha, alpha_bias=alpha_bias), data, memory)
        fitted = copy(model)._adopt(fit, rows)
        missed += not fit.solution.converged
        scorer = check_scoring(fitted, scoring)
        scores.append(float(scorer(fitted, X_test) if y_test is None else scorer(fitted, X_test, y_test)))
    return scores, missed
