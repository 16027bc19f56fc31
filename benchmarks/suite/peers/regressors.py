"""Quantile regressors that a user might take instead, although they solve other problems: trees, and an L1 penalty.

A rotation of the inputs changes nothing for Gaussian kernels, but it does for trees. The data suit trees, because three
of eight inputs matter; so trees are also run on rotated inputs, where all inputs matter a little.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suite.clock import Clock, Measured, one_by_one, repeated
from suite.problems import CHECKED, LEVELS, Regression, rotation
from suite.scores import quantile_scores

Array = NDArray[np.float64]

COMPONENTS = 200


def _inputs(case: Regression, rotated: bool) -> tuple[Array, Array, Array, Array]:
    X, y, X_test, y_test = case.data
    Q = rotation(case.d) if rotated else np.eye(case.d)
    return X @ Q, y, X_test @ Q, y_test


def _each_level(
    case: Regression, clock: Clock, make: Callable[[float], Any], *, rotated: bool = False, fork: bool = False
) -> Measured:
    """A model for every level, with its own threads or one per core."""
    X, y, X_test, y_test = _inputs(case, rotated)

    def solve(level: float) -> Array:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.asarray(make(level).fit(X, y).predict(X_test))

    order = [*CHECKED, *np.setdiff1d(LEVELS, CHECKED).tolist()]
    answers = one_by_one(solve, order, len(CHECKED), clock, fork=fork)
    return answers.measured(**quantile_scores(answers.results, y_test))


def boosting(case: Regression, clock: Clock, rotated: bool) -> Measured:
    """scikit-learn's histogram gradient boosting."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    return _each_level(
        case,
        clock,
        lambda level: HistGradientBoostingRegressor(loss="quantile", quantile=level, random_state=0),
        rotated=rotated,
    )


def lightgbm(case: Regression, clock: Clock, rotated: bool) -> Measured:
    """LightGBM's gradient boosting."""
    from lightgbm import LGBMRegressor

    return _each_level(
        case,
        clock,
        lambda level: LGBMRegressor(objective="quantile", alpha=level, verbose=-1, n_jobs=clock.cores, random_state=0),
        rotated=rotated,
    )


def forest(case: Regression, clock: Clock, rotated: bool) -> Measured:
    """A quantile regression forest: one fit for all levels."""
    from quantile_forest import RandomForestQuantileRegressor

    X, y, X_test, y_test = _inputs(case, rotated)
    model = RandomForestQuantileRegressor(min_samples_leaf=5, n_jobs=clock.cores, random_state=0)
    raw, curves = repeated(lambda: model.fit(X, y).predict(X_test, quantiles=LEVELS.tolist()), clock)
    scores = quantile_scores(dict(zip(LEVELS.tolist(), curves.T, strict=True)), y_test)
    return Measured(float(np.median(raw)), raw, LEVELS.size, LEVELS.size, scores)


def l1_on_landmarks(case: Regression, clock: Clock) -> Measured:
    """scikit-learn's linear quantile regression on Nyström features: a linear program with an L1 penalty."""
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import QuantileRegressor

    X, y, X_test, y_test = case.data
    started = time.perf_counter()
    features = Nystroem(gamma=case.gamma, n_components=min(COMPONENTS, case.n // 2), random_state=0).fit(X)
    Z, Z_test = features.transform(X), features.transform(X_test)
    shared = time.perf_counter() - started

    def solve(level: float) -> Array:
        return np.asarray(QuantileRegressor(quantile=level, alpha=case.alpha, solver="highs").fit(Z, y).predict(Z_test))

    order = [*CHECKED, *np.setdiff1d(LEVELS, CHECKED).tolist()]
    answers = one_by_one(solve, order, len(CHECKED), clock, shared=shared, fork=True)
    return answers.measured(**quantile_scores(answers.results, y_test))
