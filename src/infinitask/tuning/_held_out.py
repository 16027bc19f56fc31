"""Fits to the training rows of folds that differ in λ only, and scores of estimators at held-out rows.

A :class:`Fold` fits its training rows for one λ after the other; each fit starts from the one before it. With a known
kernel, features are computed once, from the features X of all rows, and a fold takes its rows of Φ. The function that
is learnt is the same, because it lies in the span of the rows that were seen, and all folds have the same unknowns.
If the rows decide the kernel (a bandwidth that is a rule) or the features (landmarks), a fold has features of its own.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.parallel import Parallel

from infinitask._base.arrays import Array, HostArray, to_host
from infinitask.calibration._folds import Splits, out_of_fold
from infinitask.estimators._base import Prepared
from infinitask.features import Nystroem, feature_recipe
from infinitask.fitting._data import Data
from infinitask.fitting._defaults import resolved
from infinitask.fitting._learn import Fit, generator, in_units_of, learn
from infinitask.fitting._pose import pose
from infinitask.fitting._recipe import Recipe, in_units
from infinitask.fitting._warm_start import Memory, alike
from infinitask.kernels import input_kernel, takes_gamma
from infinitask.problem import Problem
from infinitask.solvers import Start


@dataclass(eq=False)
class Fold:
    """The fits to the training rows of one fold.

    Parameters
    ----------
    recipe : Recipe
        Of every fit, but for λ, λ_b and the tolerance.
    data : Data
        The training rows.
    memory : Memory
        What the fits leave to each other.
    held_out_rows : array (n_test, r) or None
        Φ of the held-out rows; None if the fold has features of its own.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import KFold
    >>> from infinitask.datasets import make_sine
    >>> from infinitask.tasks import QuantileTask
    >>> X, y = make_sine(100, random_state=0)
    >>> data = Data(X, y, np.full(100, 0.01))
    >>> folds = shared_folds(Recipe(QuantileTask(), tol=1e-2), data, list(KFold(5).split(X)))
    >>> [fold.values(fold.fit(alpha=1e-3), [0.1, 0.9]).shape for fold in folds]
    [(20, 2), (20, 2), (20, 2), (20, 2), (20, 2)]
    """

    recipe: Recipe
    data: Data
    memory: Memory
    held_out_rows: Array | None = None

    def fit(self, near: Start | None = None, **changes: Any) -> Fit:
        """The fit with changes of the recipe; the first one may start at the end of a similar fit."""
        if self.memory.last is None:
            self.memory.last = near
        return learn(replace(self.recipe, **changes), self.data, self.memory)

    def values(self, fit: Fit, theta: Any) -> HostArray:
        """h at the held-out rows, (n_test, q)."""
        field = fit.field
        h = to_host(self.held_out_rows) @ field.coef @ field.psi(theta).T + field.offset
        return np.asarray(h if field.bias_psi is None else h + field.bias_psi(theta) @ field.bias_coef)


def shared_folds(
    recipe: Recipe,
    data: Data,
    splits: Splits,
    *,
    exact: float | None = None,
    rng: np.random.Generator | None = None,
    extrapolates: bool = True,
) -> list[Fold]:
    """Folds that share the features of all rows.

    Parameters
    ----------
    recipe : Recipe
    data : Data
        All rows; no fit sees those of weight 0.
    splits : list of (train, test)
    exact : float or None
        How exact the features are; None: enough for the λ of the recipe.
    rng : numpy.random.Generator or None
        For random quadrature rules and features; None: of seed 0.
    extrapolates : bool
        See :class:`~infinitask.fitting.Memory`.
    """
    recipe, problem = shared_problem(recipe, data, exact=exact, rng=rng)
    return [_shared_fold(recipe, data, problem, *fold, extrapolates=extrapolates) for fold in splits]


def _shared_fold(
    recipe: Recipe, data: Data, problem: Problem, train: HostArray, test: HostArray, *, extrapolates: bool = True
) -> Fold:
    rows = train[data.weight[train] > 0.0]
    weight = data.weight[rows]
    part = Data(data.X[rows], None if data.y is None else data.y[rows], weight / np.sum(weight))
    memory = Memory(extrapolates=extrapolates)
    memory.knows(in_units(recipe), in_units_of(recipe, part), problem.only(rows), exact=0.0)
    return Fold(recipe, part, memory, problem.phi.values[test])


def shared_problem(
    recipe: Recipe, data: Data, *, exact: float | None = None, rng: np.random.Generator | None = None
) -> tuple[Recipe, Problem]:
    """The resolved recipe of fits that are only compared, and the problem of all rows; see :func:`shared_folds`."""
    recipe = resolved(_compared(recipe), data)
    rng = np.random.default_rng(0) if rng is None else rng
    return recipe, pose(in_units(recipe), in_units_of(recipe, data), rng, tol=exact)


def _compared(recipe: Recipe) -> Recipe:
    """The recipe of fits that are only compared: nothing is certified beyond the duality gap, and no rank grows."""
    return replace(recipe, rank=None if recipe.rank == "auto" else recipe.rank, certify=None)


# --------------------------------------------------------------------------------------- scores of estimators
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
    if not _inputs_do_not_matter(recipe, prepared.X):
        return None
    data = Data(prepared.X, prepared.y, prepared.weight / np.sum(prepared.weight))
    resolved_recipe, problem = shared_problem(recipe, data, rng=generator(recipe.random_state))
    return resolved_recipe, data, problem


def _inputs_do_not_matter(recipe: Recipe, X: HostArray) -> bool:
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
        finest = None if isinstance(recipe.alpha, str) else recipe.alpha
        fold = Fold(_compared(recipe), data, Memory(finest=finest))
    else:
        fold = _shared_fold(*shared, train, test)
    scores, missed = [], 0
    for alpha, alpha_bias in ridges:
        fit = fold.fit(alpha=alpha, alpha_bias=alpha_bias)
        fitted = copy(model)._adopt(fit, rows)
        missed += not fit.solution.converged
        scorer = check_scoring(fitted, scoring)
        scores.append(float(scorer(fitted, X_test) if y_test is None else scorer(fitted, X_test, y_test)))
    return scores, missed
