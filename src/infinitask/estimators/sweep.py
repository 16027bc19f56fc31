"""Many fits that differ little, for less than their price one by one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import indexable
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import _check_sample_weight

from infinitask._array import HostArray
from infinitask.estimators.base import _PATH, BaseInfiniteTask
from infinitask.estimators.warm import Warm
from infinitask.kernels import input_kernel

__all__ = ["fit_path", "score_path"]


def fit_path(estimator: Any, X: Any, y: Any = None, *, alphas: Any, sample_weight: Any = None) -> list[Any]:
    """The fits for several values of ``alpha``, each started from the one before it.

    Features, eigenvectors and quadrature are made once, for the smallest λ, and the largest λ is fitted first: each
    fit is then close to the next. Every one has its own certified gap, and differs from a fit by itself no more than
    that allows.

    Parameters
    ----------
    estimator : estimator of this library
        Left as it is; clones are fitted.
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
    _check_estimator(estimator)
    alphas = _checked(alphas, "alphas")
    return _fitted(estimator, X, y, alphas, sample_weight, Warm(finest=float(np.min(alphas))))


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
) -> HostArray:
    """Cross-validated scores for every ``gamma``, ``alpha`` and fold.

    Within a fold λ falls, and each fit starts from the one before it. Every fold makes features of its own: those of
    all rows would be more of them, and every step with them dearer.

    Parameters
    ----------
    estimator : estimator of this library
    X : array (n, d)
    y : array (n,) or None
    alphas : array (k,)
    gammas : array (g,) or None
        Bandwidths of the input kernel; None: the estimator's own.
    cv : int, splitter or iterable of (train, test), default=5
        As in scikit-learn: folds are stratified for classifiers.
    scoring : str, callable or None
        As in scikit-learn; None: the estimator's ``score``.
    sample_weight : array (n,) or None
        Weights of the fit; scores are not weighted.

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
    _check_estimator(estimator)
    alphas = _checked(alphas, "alphas")
    if gammas is not None and input_kernel(estimator.kernel, estimator.gamma).precomputed:
        raise ValueError("gammas was given with kernel='precomputed', which has none. Leave it out.")
    check_scoring(estimator, scoring)  # what cannot be scored should not be fitted
    X, y = indexable(X, y)
    weight = None if sample_weight is None else _check_sample_weight(sample_weight, X)
    folds = list(check_cv(cv, y, classifier=is_classifier(estimator)).split(X, y))
    scores = []
    for gamma in [None] if gammas is None else _checked(gammas, "gammas"):
        model = clone(estimator) if gamma is None else clone(estimator).set_params(gamma=float(gamma))
        finest = float(np.min(alphas))
        table = np.empty((alphas.size, len(folds)))
        for k, (train, test) in enumerate(folds):
            X_train, y_train = _safe_split(model, X, y, train)
            X_test, y_test = _safe_split(model, X, y, test, train)
            part = None if weight is None else weight[train]
            for i, fitted in enumerate(_fitted(model, X_train, y_train, alphas, part, Warm(finest))):
                scorer = check_scoring(fitted, scoring)
                table[i, k] = scorer(fitted, X_test) if y is None else scorer(fitted, X_test, y_test)
        scores.append(table)
    return scores[0] if gammas is None else np.stack(scores)


def _fitted(estimator: Any, X: Any, y: Any, alphas: HostArray, sample_weight: Any, warm: Warm) -> list[Any]:
    """Clones fitted in the order of falling λ, with a common memory."""
    models: list[Any] = [None] * alphas.size
    with _remembering(warm):
        for i in np.argsort(-alphas, kind="stable"):
            models[i] = clone(estimator).set_params(alpha=float(alphas[i]))
            arguments = {} if sample_weight is None else {"sample_weight": sample_weight}
            models[i].fit(X, y, **arguments)
    return models


@contextmanager
def _remembering(warm: Warm) -> Iterator[None]:
    token = _PATH.set(warm)
    try:
        yield
    finally:
        _PATH.reset(token)


def _check_estimator(estimator: Any) -> None:
    if not isinstance(estimator, BaseInfiniteTask):
        raise TypeError(
            f"{type(estimator).__name__} was given; a path needs an estimator of infinitask, with a parameter alpha. "
            "Put the steps of a pipeline before the path: transform X first."
        )


def _checked(values: Any, name: str) -> HostArray:
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.empty(0)
    if numbers.ndim != 1 or numbers.size == 0 or not np.all(np.isfinite(numbers) & (numbers > 0.0)):
        raise ValueError(f"{name}={values!r} was given; it must be a list of positive finite numbers.")
    return numbers
