"""Quantile functions: what every estimator of quantiles is asked for, however many levels it knows."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import (
    _num_samples,
    check_is_fitted,
)

from infinitask._array import HostArray
from infinitask.estimators._checks import check_number
from infinitask.estimators._ordered import OrderedTask, targets_of
from infinitask.losses import Pinball
from infinitask.predictive import ConformalCalibration, QuantileDistribution, Rearrangement
from infinitask.predictive._distribution import as_points

__all__ = ["QuantileRegression"]


class QuantileRegression(RegressorMixin, OrderedTask):
    """A regressor whose tasks are the levels of quantiles; its constructor names the ``quantiles`` of ``predict``."""

    quantiles: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # scikit-learn's check of "a good score" sets alpha = 0.01 and wants more than 0.5, with R² in mind. D² of
        # absolute losses is about 1 − √(1 − R²): at that alpha the check's data give 0.36, at the default alpha 0.61.
        tags.regressor_tags.poor_score = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the quantile function.

        Parameters
        ----------
        X : array (n, d)
        y : array (n,)
        sample_weight : array (n,) or None
        """
        recipe = self._recipe()
        self._check_default("quantiles", recipe)
        X, y, weight = self._validated(X, y, sample_weight, y_numeric=True)
        return self._fit(recipe, X, y.astype("float64"), weight)

    def predict(self, X: Any, quantiles: Any = None) -> HostArray:
        """The conditional quantiles: (n,) for one level, (n, q) for several.

        Parameters
        ----------
        X : array (n, d)
        quantiles : float, array (q,) or None
            Levels in (0, 1); None: the constructor's ``quantiles``.
        """
        return self._values(X, self.quantiles if quantiles is None else quantiles, "quantiles", strict=True)

    def predict_interval(self, X: Any, coverage: float = 0.9) -> HostArray:
        """The central interval from level (1 − coverage)/2 to (1 + coverage)/2: (n, 2).

        After :meth:`conformalize` it is the conformal interval, which holds a new y with probability ``coverage``
        whatever the quality of the fit.

        Parameters
        ----------
        X : array (n, d)
        coverage : float in (0, 1)

        Examples
        --------
        >>> from infinitask import InfiniteQuantileRegressor
        >>> from infinitask.datasets import make_sine
        >>> X, y = make_sine(100, random_state=0)
        >>> low, high = InfiniteQuantileRegressor(n_nodes=20).fit(X, y).predict_interval(X, coverage=0.8).T
        >>> bool((low < high).all())
        True
        """
        if check_number("coverage", coverage, low=0.0, high=1.0) == 1.0:
            raise ValueError("coverage=1 was given; no finite interval is sure to hold y: ask for less than 1.")
        if hasattr(self, "calibration_"):
            calibration, radius = self.calibration_, self.calibration_.radius(coverage)
            return self._by_curve(X, lambda curves, _: calibration.interval(curves, radius))
        ends = [round(0.5 - 0.5 * coverage, 15), round(0.5 + 0.5 * coverage, 15)]
        return self._values(X, ends, f"coverage={coverage:g} needs the quantiles at both ends, and this", strict=True)

    def conformalize(self, X: Any, y: Any) -> Self:
        """Calibrate the intervals of every coverage at once, on data that the fit has not seen.

        Afterwards ``predict_interval(X, coverage)`` is [Q_x(½ − q), Q_x(½ + q)] with Q_x the quantile function of x,
        sorted, and q the ⌈(n + 1)·coverage⌉-th smallest score of the n calibration pairs; see
        :class:`~infinitask.predictive.ConformalCalibration`. If these and the new pair are exchangeable, it holds the
        new y with probability at least ``coverage``, for any n; more than n/(n + 1) takes an infinite interval. No
        other prediction changes, and the next ``fit`` forgets the calibration. There are no sample weights here:
        weighted pairs are not exchangeable.

        Parameters
        ----------
        X : array (n, d)
            Not the training inputs: their scores are too small.
        y : array (n,)

        Examples
        --------
        >>> from infinitask import InfiniteQuantileRegressor
        >>> from infinitask.datasets import make_sine
        >>> X, y = make_sine(300, random_state=0)
        >>> model = InfiniteQuantileRegressor(n_nodes=20).fit(X[::2], y[::2]).conformalize(X[1::2], y[1::2])
        >>> model.calibration_
        ConformalCalibration(n=150, coverage up to 0.9934)
        >>> model.predict_interval(X, coverage=0.9).shape
        (300, 2)
        """
        check_is_fitted(self)
        y = targets_of(X, y)
        # the objective is in the units of y and knows nothing of the calibration data
        scale = self.objective_ if self.objective_ > 0.0 else 1.0
        scores = self._by_curve(X, lambda curves, rows: ConformalCalibration.score(curves, y[rows], scale))
        self.calibration_ = ConformalCalibration(np.sort(scores), scale)
        return self

    def predict_distribution(self, X: Any) -> QuantileDistribution:
        """The conditional distributions: cdf, pdf, ppf, moments, intervals, samples, scores.

        They are given by the quantile functions at 1001 levels of Θ (at the nodes, where the model knows no more),
        sorted, whatever ``noncrossing`` is; calibration does not change them. Of the mass beyond Θ nothing is known:
        see :class:`~infinitask.predictive.QuantileDistribution`.

        Parameters
        ----------
        X : array (n, d)

        Examples
        --------
        >>> from infinitask import InfiniteQuantileRegressor
        >>> from infinitask.datasets import make_sine
        >>> X, y = make_sine(100, random_state=0)
        >>> law = InfiniteQuantileRegressor(n_nodes=20).fit(X, y).predict_distribution(X)
        >>> law.mean().shape, law.crps(y).shape, law.ppf([0.1, 0.9]).shape
        ((100,), (100,), (100, 2))
        """
        check_is_fitted(self)
        values = self._by_curve(X, lambda curves, _: curves.values)
        return _distribution(Rearrangement(self._levels(), values))

    def predict_cdf(self, X: Any, y: Any) -> HostArray:
        """P(Y ≤ y | x): (n,) for one y for all or for each row, (n, q) for several.

        Parameters
        ----------
        X : array (n, d)
        y : float, array (n,), (n, q) or (1, q)

        Examples
        --------
        >>> from infinitask import InfiniteQuantileRegressor
        >>> from infinitask.datasets import make_sine
        >>> X, y = make_sine(100, random_state=0)
        >>> InfiniteQuantileRegressor(n_nodes=20).fit(X, y).predict_cdf(X, y).shape
        (100,)
        """
        check_is_fitted(self)
        points, flat = as_points(y, _num_samples(X))
        values = self._by_curve(X, lambda curves, rows: _distribution(curves).cdf(points[rows]))
        return values[:, 0] if flat else values

    def sample(self, X: Any, n_samples: int = 1, random_state: Any = None) -> HostArray:
        """Independent draws from the conditional distributions: (n, n_samples).

        Parameters
        ----------
        X : array (n, d)
        n_samples : int
        random_state : int, RandomState or None

        Examples
        --------
        >>> from infinitask import InfiniteQuantileRegressor
        >>> from infinitask.datasets import make_sine
        >>> X, y = make_sine(100, random_state=0)
        >>> InfiniteQuantileRegressor(n_nodes=20).fit(X, y).sample(X, n_samples=5, random_state=0).shape
        (100, 5)
        """
        rng = check_random_state(random_state)
        return self._by_curve(X, lambda curves, _: _distribution(curves).sample(n_samples, rng))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """D² of the integrated pinball loss: 1 − loss / loss of the best constants.

        Parameters
        ----------
        X : array (n, d)
        y : array (n,)
        sample_weight : array (n,) or None

        Returns
        -------
        float
            At most 1; 0 for a model no better than the unconditional quantiles of y.
        """

        def constants(y: HostArray, weight: HostArray) -> HostArray:
            return np.quantile(y, self.nodes_, method="inverted_cdf", weights=weight)

        return self._d2(X, y, sample_weight, Pinball(), constants, "quantiles")


def _distribution(curves: Rearrangement) -> QuantileDistribution:
    if curves.levels.size < 2:
        raise ValueError(
            f"The model knows the quantile of level {curves.levels[0]:g} only; a distribution needs more. Fit with a "
            "measure on an interval, or with several levels."
        )
    return QuantileDistribution(curves.levels, curves.values)
