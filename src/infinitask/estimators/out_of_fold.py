"""Out-of-fold scores: each row of a table is scored by a fit that has not seen it."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import _num_samples

from infinitask._base.arrays import HostArray
from infinitask.calibration._folds import Folds, partition_of
from infinitask.calibration.held_out import out_of_fold

__all__ = ["out_of_fold_scores"]


def out_of_fold_scores(estimator: Any, X: Any, *, cv: Any = 5, random_state: Any = None) -> HostArray:
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
        An integer: the number of shuffled folds. Every row must be held out once.
    random_state : None, int or numpy.random.RandomState
        For the shuffle.

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
    """The scores of the held-out rows."""
    return np.asarray(model.fit(**seen).score_samples(X))
