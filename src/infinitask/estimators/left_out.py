"""Scores of the rows of a table itself, each from a fit that has not seen it."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold, check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from infinitask._base.arrays import HostArray
from infinitask._base.validation import naming

__all__ = ["left_out_scores"]


def left_out_scores(estimator: Any, X: Any, *, cv: Any = 5, random_state: Any = None) -> HostArray:
    """p-values of the rows of a table: which of them are unusual, by fits that have not seen them.

    ``score_samples`` of the rows of a fit is too large, because the sets have grown around them; an outlier among few
    rows may even be inside. Here each row is scored by a fit to the other folds.

    Parameters
    ----------
    estimator : estimator with ``score_samples``
        Such as :class:`~infinitask.InfiniteOneClassSVM`, alone or behind the steps of a pipeline; it is copied, and
        need not be fitted.
    X : table (n, d)
    cv : int, splitter or iterable of (train, test), default=5
        A number: that many shuffled folds. Every row must be left out once.
    random_state : None, int or numpy.random.RandomState
        For the shuffle.

    Returns
    -------
    ndarray (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from infinitask import InfiniteOneClassSVM, left_out_scores
    >>> from infinitask.datasets import make_mixture
    >>> X = np.vstack([make_mixture(200, random_state=0), [[9.0, 9.0]]])
    >>> p = left_out_scores(InfiniteOneClassSVM(n_nodes=20), X, random_state=0)
    >>> int(np.argmin(p)), bool(abs(np.mean(p <= 0.2) - 0.2) < 0.08)
    (200, True)
    """
    n = _num_samples(X)
    with naming("cv"):
        splitter = KFold(int(cv), shuffle=True, random_state=random_state) if isinstance(cv, Integral) else check_cv(cv)
        folds = list(splitter.split(np.empty((n, 1))))
    if not np.array_equal(np.sort(np.concatenate([test for _, test in folds])), np.arange(n)):
        raise ValueError(f"cv={cv!r} was given; each of the {n} rows must be left out by exactly one of its folds.")
    scores = np.empty(n)
    for train, test in folds:
        scores[test] = clone(estimator).fit(_safe_indexing(X, train)).score_samples(_safe_indexing(X, test))
    return scores
