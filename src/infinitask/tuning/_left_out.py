"""Left-out predictions of one fold after the other.

A :class:`Fold` fits the rows of its training part, for one λ after the other, and predicts the rows left out. With a
known kernel, features are made once, from the inputs of all rows, and a fold takes its rows of Φ: the function that is
learnt is the same, because it lies in the span of the rows that were seen, and all folds have the same unknowns. Where
the rows decide the kernel (a bandwidth that is a rule) or the features (landmarks), a fold has features of its own.
Every fold has a memory of its own, so each fit starts from the one before it. Self-tuned level sets compare kernels by
:meth:`Fold.values`, :func:`~infinitask.score_path` and the search on top of Optuna by :func:`left_out_scores`.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import KFold, StratifiedKFold, check_cv
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.parallel import Parallel, delayed

from infinitask._base.arrays import Array, HostArray, to_host
from infinitask._base.validation import naming
from infinitask.estimators._base import BaseInfiniteTask, Prepared
from infinitask.features import Nystroem, feature_recipe
from infinitask.fitting._data import Data
from infinitask.fitting._defaults import resolved
from infinitask.fitting._fit import Fit, in_units_of
from infinitask.fitting._learn import generator, learn
from infinitask.fitting._pose import pose
from infinitask.fitting._recipe import Recipe, in_units
from infinitask.fitting._warm_start import Memory, alike
from infinitask.kernels import input_kernel, takes_gamma
from infinitask.problem import Problem
from infinitask.solvers import Start

Splits = list[tuple[HostArray, HostArray]]
"""Positions of the training rows and of the rows left out, for each fold."""

ROWS_TO_LEAVE_OUT, MAX_REPEATS = 150, 4
"""Folds are repeated until this many rows have been left out in all, at most this many times."""


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
    rows_left_out : array (n_test, r) or None
        Φ of the rows left out; None where the fold has features of its own.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import KFold
    >>> from infinitask.datasets import make_sine
    >>> from infinitask.losses import Pinball
    >>> from infinitask.measures import Uniform
    >>> from infinitask.penalties import Ridge
    >>> X, y = make_sine(100, random_state=0)
    >>> data = Data(X, y, np.full(100, 0.01))
    >>> folds = shared_folds(Recipe(Pinball(), Uniform(), Ridge(), tol=1e-2), data, list(KFold(5).split(X)))
    >>> [fold.values(fold.fit(alpha=1e-3), [0.1, 0.9]).shape for fold in folds]
    [(20, 2), (20, 2), (20, 2), (20, 2), (20, 2)]
    """

    recipe: Recipe
    data: Data
    memory: Memory
    rows_left_out: Array | None = None

    def fit(self, near: Start | None = None, **changes: Any) -> Fit:
        """The fit with some choices of the recipe changed; a first one may start from the end of a fit that is near."""
        if self.memory.last is None:
            self.memory.last = near
        return learn(replace(self.recipe, **changes), self.data, self.memory)

    def values(self, fit: Fit, theta: Any) -> HostArray:
        """h at the rows left out, (n_test, q)."""
        field = fit.field
        h = to_host(self.rows_left_out) @ field.coef @ field.psi(theta).T + field.offset
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
        All rows; those of weight 0 are left out of every fit.
    splits : list of (train, test)
    exact : float or None
        How exact the features are; None: enough for the λ of the recipe.
    rng : numpy.random.Generator or None
        For quadrature rules and features that draw; None: of seed 0.
    extrapolates : bool
        See :class:`~infinitask.fitting.Memory`.
    """
    recipe = resolved(_compared(recipe), data)
    rng = np.random.default_rng(0) if rng is None else rng
    whole = pose(in_units(recipe), in_units_of(recipe, data), rng, tol=exact)
    return [_shared_fold(recipe, data, whole, train, test, extrapolates) for train, test in splits]


def _compared(recipe: Recipe) -> Recipe:
    """The recipe of fits that are only compared: nothing is certified beyond the duality gap, and no rank grows."""
    return replace(recipe, rank=None if recipe.rank == "auto" else recipe.rank, certify=None)


def _shared_fold(
    recipe: Recipe, data: Data, whole: Problem, train: HostArray, test: HostArray, extrapolates: bool
) -> Fold:
    rows = train[data.weight[train] > 0.0]
    weight = data.weight[rows]
    part = Data(data.X[rows], None if data.y is None else data.y[rows], weight / np.sum(weight))
    memory = Memory(extrapolates=extrapolates)
    memory.knows(in_units(recipe), in_units_of(recipe, part), whole.only(rows), exact=0.0)
    return Fold(recipe, part, memory, whole.phi.values[test])


def repeated_splits(
    cv: Any, X: HostArray, y: HostArray, weight: HostArray, random_state: Any, *, classes: bool
) -> list[Splits]:
    """The folds of a cross-validation, repeated where there are few rows.

    Parameters
    ----------
    cv : int, splitter, iterable or None
        As in scikit-learn, taken once; None: five shuffled folds, repeated.
    X, y, weight : ndarray
    random_state : int, RandomState or None
    classes : bool
        Whether y holds the signs of two classes, of which each fold should have its share.
    """
    n = y.size
    if cv is not None:
        with naming("cv"):
            repeats = [_given_folds(cv, X, y, classes)]
    elif n < 2:
        raise ValueError(f"{n} row was given; a cross-validation needs at least 2.")
    else:
        rng = check_random_state(random_state)
        size, telling, splitter = min(5, n), n, KFold
        if classes:
            # the rows of a rare class decide how much chance there is in a fold
            positive = int(np.count_nonzero(y > 0.0))
            rare = min(positive, n - positive)
            splitter, telling = StratifiedKFold if rare >= size else KFold, max(1, 2 * rare)
        count = int(np.clip(np.ceil(ROWS_TO_LEAVE_OUT / telling), 1, MAX_REPEATS))
        splitters = [splitter(size, shuffle=True, random_state=rng.randint(2**31 - 1)) for _ in range(count)]
        repeats = [list(found.split(X, y)) for found in splitters]
    if any(not np.any(weight[train] > 0.0) for splits in repeats for train, _ in splits):
        raise ValueError(
            f"{np.count_nonzero(weight)} rows have a positive sample_weight, and a fold is left without any to "
            "train on. Give weight to more rows, or other folds as cv."
        )
    return repeats


def _positions(part: Any) -> HostArray:
    """Rows that were given as positions or as a mask."""
    part = np.asarray(part)
    return np.flatnonzero(part) if part.dtype == bool else part


def _given_folds(cv: Any, X: HostArray, y: HostArray, classes: bool) -> Splits:
    """Folds that a user gave, as positions of rows that exist."""
    splitter = check_cv(cv, y, classifier=classes)
    try:
        folds = list(splitter.split(X, y))
    except ValueError as error:
        if "groups" not in str(error):
            raise
        raise ValueError(
            f"cv={cv!r} was given; it needs groups, which fit does not take. Give its folds: "
            "cv=list(splitter.split(X, y, groups))."
        ) from error
    found = [(_positions(train), _positions(test)) for train, test in folds]
    for position in (int(end) for fold in found for part in fold if part.size for end in (part.min(), part.max())):
        if not -y.size <= position < y.size:
            raise ValueError(f"cv holds the position {position}, but X has {y.size} rows; the first one is 0.")
    return found


# --------------------------------------------------------------------------------------- scores of estimators
def left_out_scores(
    models: Sequence[Any],
    X: Any,
    y: Any,
    weight: HostArray | None,
    splits: Splits,
    scoring: Any,
    parallel: Parallel,
) -> HostArray:
    """The scores on the rows left out, (models, folds), of estimators of this library that differ in λ only.

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
    jobs = (delayed(_fold_scores)(*job, ridges, scoring) for job in _jobs(models[-1], X, y, weight, splits))
    results = list(parallel(jobs))
    missed = sum(count for _, count in results)
    if missed:
        warnings.warn(
            f"{type(models[0]).__name__}: {missed} of {len(ridges) * len(splits)} fits did not reach the duality gap "
            "asked for, and their scores are those of models that are not solved; raise max_iter or tol.",
            ConvergenceWarning,
            stacklevel=3,
        )
    return np.array([scores for scores, _ in results]).T


def _jobs(model: Any, X: Any, y: Any, weight: HostArray | None, splits: Splits) -> list[tuple[Any, ...]]:
    """For every fold: the estimator, its rows, the fold, and the rows left out."""
    whole = clone(model)
    prepared: Prepared = whole._prepare(X, y, weight)
    recipe = prepared.recipe
    shared = _inputs_do_not_matter(recipe, prepared.X)
    folds: list[Fold] = []
    if shared:
        total = prepared.weight / np.sum(prepared.weight)
        data = Data(prepared.X, prepared.y, total)
        folds = shared_folds(recipe, data, splits, rng=generator(recipe.random_state))
    jobs = []
    for k, (train, test) in enumerate(splits):
        own = clone(model)
        X_train, y_train = _safe_split(own, X, y, train)
        X_test, y_test = _safe_split(own, X, y, test, train)
        rows = own._prepare(X_train, y_train, None if weight is None else weight[train])
        if not shared:
            data = Data.canonical(rows.X, rows.y, rows.weight, gram=whole._is_precomputed())
            finest = None if isinstance(recipe.alpha, str) else recipe.alpha
            folds.append(Fold(_compared(recipe), data, Memory(finest=finest)))
        jobs.append((own, rows, folds[k], X_test, y_test))
    return jobs


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
    model: BaseInfiniteTask,
    rows: Prepared,
    fold: Fold,
    X_test: Any,
    y_test: Any,
    ridges: list[tuple[float, float]],
    scoring: Any,
) -> tuple[list[float], int]:
    """The scores of a fold for every ridge, and how many fits missed the gap."""
    scores, missed = [], 0
    for alpha, alpha_bias in ridges:
        fit = fold.fit(alpha=alpha, alpha_bias=alpha_bias)
        fitted = copy.copy(model)._adopt(fit, rows)
        missed += not fit.solution.converged
        scorer = check_scoring(fitted, scoring)
        scores.append(float(scorer(fitted, X_test) if y_test is None else scorer(fitted, X_test, y_test)))
    return scores, missed
