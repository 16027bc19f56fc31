"""Cross-validated scores along a path of λ."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.parallel import Parallel

from infinitask._base.arrays import HostArray
from infinitask._base.validation import jobs, positive_numbers
from infinitask.estimators.path import _check_has_path
from infinitask.kernels import takes_gamma
from infinitask.tuning._held_out import checked, held_out_scores


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
    """Cross-validated scores for every ``gamma``, ``alpha`` and fold.

    Folds share φ of all rows if the kernel is known beforehand; within a fold λ falls, and each fit
    starts from the one before it.

    Parameters
    ----------
    estimator : estimator of this library
        With a parameter ``alpha``.
    X : array (n, d)
    y : array (n,) or None
    alphas : array (k,)
    gammas : array (g,) or None
        Bandwidths of the input kernel, which must then be given by a name; None: the estimator's own.
    cv : int, splitter or iterable of (train, test), default=5
        As in scikit-learn: folds are stratified for classifiers.
    scoring : str, callable or None
        As in scikit-learn; None: the estimator's ``score``.
    sample_weight : array (n,) or None
        Weights of the fit; scores are not weighted.
    n_jobs : int or None
        Folds that are fitted in parallel processes; the scores do not depend on it.

    Returns
    -------
    ndarray (g, k, folds), or (k, folds) where ``gammas`` is None

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
    falling = np.argsort(-alphas, kind="stable")
    tables = []
    with Parallel(n_jobs=n_jobs) as parallel:
        for gamma in [None] if gammas is None else gammas:
            model = clone(estimator) if gamma is None else clone(estimator).set_params(gamma=float(gamma))
            models = [clone(model).set_params(alpha=float(alphas[i])) for i in falling]
            table = np.empty((alphas.size, len(splits)))
            table[falling] = held_out_scores(models, X, y, weight, splits, scoring, parallel)
            tables.append(table)
    return tables[0] if gammas is None else np.stack(tables)
