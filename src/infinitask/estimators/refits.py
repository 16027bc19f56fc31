"""Repeated fits: along a path of λ, each started from the previous one, and to the rows outside each fold."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import _num_samples

from infinitask._base.arrays import HostArray
from infinitask._base.validation import positive_numbers
from infinitask.calibration._folds import Folds, partition_of
from infinitask.calibration.held_out import out_of_fold
from infinitask.estimators._base import BaseInfiniteTask
from infinitask.fitting._warm_start import Memory

__all__ = ["fit_path", "out_of_fold_scores"]


def fit_path(estimator: Any, X: Any, y: Any = None, *, alphas: Any, sample_weight: Any = None) -> list[Any]:
    """Fit an estimator for several values of ``alpha``, each fit started from the previous one.

    Features, eigenvectors and quadrature are computed once, for the smallest λ. The largest λ is fitted first, so each
    fit is close to the next. Each fit has its own certified gap, and differs from a separate fit by no more than this
    gap allows.

    Parameters
    ----------
    estimator : estimator of this library
        It is not changed; clones are fitted.
    X : array (n, d)
    y : array (n,) or None
    alphas : array (k,)
        Values of λ, in any order.
    sample_weight : array (n,) or None

    Returns
    -------
    list of k fitted estimators, in the order of ``alphas``

    Examples
    --------
    >>> from infinitask import InfiniteQuantileRegressor, fit_path
    >>> from infinitask.datasets import make_sine
    >>> X, y = make_sine(100, random_state=0)
    >>> models = fit_path(InfiniteQuantileRegressor(), X, y, alphas=[1e-2, 1e-3, 1e-4])
    >>> [model.alpha for model in models]
    [0.01, 0.001, 0.0001]
    >>> all(model.dual_gap_ <= 1e-4 for model in models)
    True
    """
    _check_has_path(estimator)
    alphas = positive_numbers("alphas", alphas)
    memory = Memory(finest=float(np.min(alphas)))
    models: list[Any] = [None] * alphas.size
    for i in np.argsort(-alphas, kind="stable"):
        model = clone(estimator).set_params(alpha=float(alphas[i]))
        models[i] = model._learn(model._prepare(X, y, sample_weight), memory)
    return models


def _check_has_path(estimator: Any) -> None:
    """Raise an error if an estimator has no λ that a path could follow."""
    given = repr(estimator) if isinstance(estimator, (str, type)) else type(estimator).__name__
    if not isinstance(estimator, BaseInfiniteTask) or "alpha" not in estimator.get_params(deep=False):
        raise TypeError(
            f"{given} was given as estimator; a path needs an estimator of infinitask with a parameter alpha. "
            "Put the steps of a pipeline before the path: transform X first. A self-tuned model chooses alpha itself, "
            "InfiniteKernelRidge fits all of its path at once, and QOneClassSVM has no alpha."
        )


def out_of_fold_scores(estimator: Any, X: Any, *, cv: Any = 5, random_state: Any = None) -> HostArray:
    """Return out-of-fold p-values of the rows of a table; they are small for unusual rows.

    ``score_samples`` is too large for training rows, because the sets are fitted to them; an outlier among few rows may
    even be inside. Here each row is scored by a fit to the other folds.

    Parameters
    ----------
    estimator : estimator with ``score_samples``
        Such as :class:`~infinitask.InfiniteOneClassSVM`, alone or at the end of a pipeline; it is copied, and need not
        be fitted.
    X : table (n, d)
    cv : int, splitter or iterable of (train, test), default=5
        An integer: the number of shuffled folds. Every row must be held out once.
    random_state : None, int or numpy.random.RandomState
        Seed of the shuffled folds.

    Returns
    -------
    ndarray (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from infinitask import InfiniteOneClassSVM, out_of_fold_scores
    >>> from infinitask.datasets import make_mixture
    >>> X = np.vstack([make_mixture(200, random_state=0), [[9.0, 9.0]]])
    >>> p = out_of_fold_scores(InfiniteOneClassSVM(n_nodes=20), X, random_state=0)
    >>> int(np.argmin(p)), bool(abs(np.mean(p <= 0.2) - 0.2) < 0.08)
    (200, True)
    """
    n = _num_samples(X)
    splits = partition_of(cv, np.empty((n, 1)), random_state=random_state)
    scores = out_of_fold(_scores, estimator, X, None, splits)
    return Folds.of_splits(splits, n).assembled(np.concatenate(scores))


def _scores(model: Any, seen: dict[str, Any], X: Any, _: None) -> HostArray:
    """Return the scores of the held-out rows."""
    return np.asarray(model.fit(**seen).score_samples(X))
