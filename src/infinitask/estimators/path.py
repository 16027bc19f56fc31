"""A path of fits that differ in λ only, each started from the one before it."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from infinitask._base.validation import positive_numbers
from infinitask.estimators._base import BaseInfiniteTask
from infinitask.fitting._warm_start import Memory

__all__ = ["fit_path"]


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
    _check_has_path(estimator)
    alphas = positive_numbers("alphas", alphas)
    memory = Memory(finest=float(np.min(alphas)))
    models: list[Any] = [None] * alphas.size
    for i in np.argsort(-alphas, kind="stable"):
        model = clone(estimator).set_params(alpha=float(alphas[i]))
        models[i] = model._learn(model._prepare(X, y, sample_weight), memory)
    return models


def _check_has_path(estimator: Any) -> None:
    """An error where an estimator has no λ that a path could follow."""
    given = repr(estimator) if isinstance(estimator, (str, type)) else type(estimator).__name__
    if not isinstance(estimator, BaseInfiniteTask) or "alpha" not in estimator.get_params(deep=False):
        raise TypeError(
            f"{given} was given as estimator; a path needs an estimator of infinitask with a parameter alpha. "
            "Put the steps of a pipeline before the path: transform X first. A self-tuned model chooses alpha itself, "
            "InfiniteKernelRidge fits all of its path at once, and QOneClassSVM has no alpha."
        )
