"""Intervals with guaranteed coverage around any quantile regressor: the whole fit is repeated for each fold."""

from __future__ import annotations

from dataclasses import field
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel
from sklearn.utils.validation import check_is_fitted

from infinitask._base.arrays import HostArray
from infinitask._base.inner_model import inner_model, takes
from infinitask._base.validation import check_parameters, coverages
from infinitask.calibration._conformal import ConformalCalibration, CrossCalibration
from infinitask.calibration._folds import partition_of
from infinitask.calibration._levels import Rearrangement
from infinitask.calibration.held_out import out_of_fold
from infinitask.estimators import _frames
from infinitask.estimators._parameters import targets_of
from infinitask.estimators._shared import estimator
from infinitask.estimators._sources import in_kind, in_memory
from infinitask.fitting._recipe import Units
from infinitask.metrics._scorers import _levels

__all__ = ["CrossConformal"]


@estimator
class CrossConformal(RegressorMixin, BaseEstimator):
    """Prediction intervals with guaranteed coverage around any quantile regressor, calibrated on all rows.

    The model is fitted once for each fold, to the rows outside the fold. Everything that it learns from data is
    repeated, including tuning and the calibration of levels. Each row is scored by the fit that held it out, and
    intervals use the scores of all rows (CV+, or the jackknife+ for ``cv=n``); see ``CrossCalibration``. The coverage
    is about the requested one. It is proved to be at least ``calibration_.guaranteed(coverage)``, about 2·coverage − 1,
    for any model. If ``coverage`` itself must be guaranteed, hold out rows and call
    :meth:`InfiniteQuantileRegressor.conformalize <infinitask.InfiniteQuantileRegressor.conformalize>`.

    Parameters
    ----------
    estimator : estimator
        A model with ``predict(X, quantiles=…)``, such as :class:`~infinitask.InfiniteQuantileRegressor` or
        :class:`~infinitask.InfiniteQuantileRegressorCV`, alone or at the end of a pipeline.
    cv : int, splitter or iterable of (train, test), default=10
        The folds; every row must be held out once. An integer: the number of shuffled folds.
    quantiles : float or array, default=0.5
        The levels that ``predict`` returns by default.
    n_jobs : int or None, default=None
        The number of folds fitted in parallel processes.
    random_state : int, RandomState or None, default=None
        Seed of the folds.

    Attributes
    ----------
    estimators_ : list of estimators
        The fit of each fold.
    calibration_ : CrossCalibration
        The scores of all rows.

    Examples
    --------
    >>> from infinitask import CrossConformal, InfiniteQuantileRegressor
    >>> from infinitask.datasets import make_sine
    >>> X, y = make_sine(100, random_state=0)
    >>> model = CrossConformal(InfiniteQuantileRegressor(n_nodes=10), cv=5, random_state=0).fit(X, y)
    >>> model.predict_interval(X, coverage=0.9).shape
    (100, 2)
    >>> round(model.calibration_.guaranteed(0.9), 3)
    0.733
    """

    estimator: Any = field(kw_only=False)
    cv: Any = 10
    quantiles: Any = 0.5
    n_jobs: int | None = None
    random_state: Any = None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the model to the rows outside each fold, and score the held-out rows.

        Sample weights are not supported, because weighted rows are not exchangeable.

        Parameters
        ----------
        X : array (n, d)
        y : array (n,)
        """
        check_parameters(self.get_params(deep=False), {})
        if not takes(inner_model(self.estimator), "quantiles"):
            raise TypeError(
                f"estimator={self.estimator!r} was given, whose predict takes no quantiles; give a model that is asked "
                "predict(X, quantiles=…), such as InfiniteQuantileRegressor."
            )
        in_memory(X)
        y = targets_of(X, y)
        splits = partition_of(self.cv, X, y, random_state=check_random_state(self.random_state))
        fitted = out_of_fold(_fold, self.estimator, X, y, splits, parallel=Parallel(n_jobs=self.n_jobs))
        self.estimators_ = [model for model, _ in fitted]
        self.calibration_ = CrossCalibration(tuple(part for _, part in fitted))
        return self

    @in_kind
    def predict(self, X: Any, quantiles: Any = None) -> HostArray:
        """Predict the mean of the quantiles of all fits: (n,) for one level, (n, q) for several.

        Parameters
        ----------
        X : array (n, d)
        quantiles : float, array (q,) or None
            Levels in (0, 1); None: the constructor's ``quantiles``.
        """
        check_is_fitted(self)
        asked = self.quantiles if quantiles is None else quantiles
        return np.asarray(np.mean([_quantiles(model, X, asked) for model in self.estimators_], axis=0))

    @in_kind
    def predict_interval(self, X: Any, coverage: Any = 0.9) -> HostArray:
        """Predict intervals that contain a new y with probability about ``coverage``, and at least the guaranteed one.

        Parameters
        ----------
        X : array (n, d)
        coverage : float or array (q,)
            In (0, 1).

        Returns
        -------
        ndarray (n, 2), or (n, q, 2) for a list of q coverages
            Lower and upper ends along the last axis.
        """
        check_is_fitted(self)
        coverages(coverage)
        return self.calibration_.interval([_curves(model, X) for model in self.estimators_], coverage)

    set_output = _frames.set_output


def _fold(model: Any, seen: dict[str, Any], X: Any, y: HostArray) -> tuple[Any, ConformalCalibration]:
    """Return the fit to the training rows, and the scores of the held-out rows."""
    model.fit(**seen)
    # a scale from the training rows: scores of a fold must not depend on its rows in any other way
    count = seen["y"].size
    scale = Units.of(seen["y"], np.full(count, 1.0 / count), centred=True).spread
    return model, ConformalCalibration.of(_curves(model, X), y, scale)


def _curves(model: Any, X: Any) -> Rearrangement:
    """Return the quantile functions of the rows, at the percentiles that the model knows."""
    levels = _levels(inner_model(model), 0.0, 1.0)
    values = _quantiles(model, X, levels)
    return Rearrangement.of(levels, values.reshape(-1, levels.size))


def _quantiles(model: Any, X: Any, levels: Any) -> HostArray:
    """Return quantiles as an array, predicted by the inner model: ``predict`` of a search takes no levels."""
    asked = inner_model(model, stop=lambda candidate: takes(candidate, "quantiles"))
    return np.asarray(asked.predict(X, quantiles=levels))
