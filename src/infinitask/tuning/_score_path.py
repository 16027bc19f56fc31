"""Cross-validated scores along a path of λ, and helpers shared with the parameter search."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring
from sklearn.utils import indexable
from sklearn.utils.parallel import Parallel

from infinitask._base.arrays import HostArray
from infinitask._base.validation import jobs, naming, positive_numbers
from infinitask.calibration._folds import Splits, splits_of
from infinitask.calibration.held_out import out_of_fold
from infinitask.estimators._parameters import weights_of
from infinitask.estimators._sources import in_memory
from infinitask.estimators.refits import _check_has_path, fit_path
from infinitask.kernels import takes_gamma


def score_path(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    alphas: Any,
    gammas: Any = None,
    cv: Any = 5,
    scoring: Any = None,
    sample_weight: Any = None,
    n_jobs: int | None = None,
) -> HostArray:
    """Return cross-validated scores for every ``gamma``, ``alpha`` and fold.

    λ decreases within a fold, and each fit starts from the previous one, see :func:`~infinitask.fit_path`.

    Parameters
    ----------
    estimator : estimator of this library
        Must have a parameter ``alpha``.
    X : array (n, d)
    y : array (n,) or None
    alphas : array (k,)
    gammas : array (g,) or None
        Bandwidths of the input kernel, which must be given by name; None: that of the estimator.
    cv : int, splitter or iterable of (train, test), default=5
        As in scikit-learn: folds are stratified for classifiers.
    scoring : str, callable or None
        As in scikit-learn; None: the estimator's ``score``.
    sample_weight : array (n,) or None
        Weights of the fit; scores are not weighted.
    n_jobs : int or None
        The number of folds fitted in parallel processes; the scores do not depend on it.

    Returns
    -------
    ndarray (g, k, folds), or (k, folds) if ``gammas`` is None

    Examples
    --------
    >>> import numpy as np
    >>> from infinitask import InfiniteQuantileRegressor, score_path
    >>> from infinitask.datasets import make_sine
    >>> X, y = make_sine(200, random_state=0)
    >>> alphas = [1.0, 1e-2, 1e-4]
    >>> scores = score_path(InfiniteQuantileRegressor(tol=1e-3), X, y, alphas=alphas, gammas=[0.1, 10.0])
    >>> scores.shape
    (2, 3, 5)
    >>> best = np.unravel_index(np.argmax(np.mean(scores, axis=2)), (2, 3))
    """
    _check_has_path(estimator)
    alphas = positive_numbers("alphas", alphas)
    if gammas is not None and not takes_gamma(estimator.kernel):
        raise ValueError(
            f"gammas was given with kernel={estimator.kernel!r}, which takes no bandwidth from the estimator. Leave "
            "gammas out, name a kernel that has one, such as 'rbf', or search over kernel__gamma with GridSearchCV."
        )
    if gammas is not None:
        gammas = positive_numbers("gammas", gammas)
    n_jobs = jobs("n_jobs", n_jobs)
    X, y, weight, splits = checked(estimator, X, y, sample_weight, cv, scoring)
    # only the duality gap is certified, and the rank does not grow
    plain = {"certify": None} | ({"rank": None} if estimator.rank == "auto" else {})
    job = partial(_scores_of_path, alphas=alphas, scoring=scoring)
    tables, missed = [], 0
    with Parallel(n_jobs=n_jobs) as parallel:
        for gamma in [{}] if gammas is None else [{"gamma": float(gamma)} for gamma in gammas]:
            model = clone(estimator).set_params(**plain, **gamma)
            found = out_of_fold(job, model, X, y, splits, weight=weight, parallel=parallel)
            tables.append(np.array([scores for scores, _ in found]).T)
            missed += sum(count for _, count in found)
    table = tables[0] if gammas is None else np.stack(tables)
    if missed:
        warnings.warn(
            f"{type(estimator).__name__}: {missed} of {table.size} fits did not reach the duality gap asked for, and "
            "their scores are those of models that are not solved; raise max_iter or tol.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return table


def _scores_of_path(
    model: Any, seen: dict[str, Any], X: Any, y: Any, *, alphas: HostArray, scoring: Any
) -> tuple[list[float], int]:
    """Return the score of each λ on the held-out rows, and the number of fits that did not reach the gap."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # most of these models are not chosen
        models = fit_path(model, **seen, alphas=alphas)
    return [score_of(fitted, X, y, scoring) for fitted in models], sum(not m.solution_.converged for m in models)


def checked(
    estimator: Any, X: Any, y: Any, sample_weight: Any, cv: Any, scoring: Any
) -> tuple[Any, Any, HostArray | None, Splits]:
    """Return X and y in memory, weights and folds of a cross-validation, or raise an error before any fit."""
    in_memory(X)
    with naming("X" if y is None else "X and y"):
        X, y = indexable(X, y)
    weight = None if sample_weight is None else weights_of(sample_weight, X)
    with naming("scoring"):
        check_scoring(estimator, scoring)
    return X, y, weight, splits_of(cv, X, y, classifier=is_classifier(estimator))


def score_of(model: Any, X: Any, y: Any, scoring: Any) -> float:
    """Return the score of a fitted model."""
    scorer = check_scoring(model, scoring)
    return float(scorer(model, X) if y is None else scorer(model, X, y))
