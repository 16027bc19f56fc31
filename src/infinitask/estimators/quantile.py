"""Infinite quantile regression: the whole conditional quantile function from one fit."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import _num_samples, check_is_fitted

from infinitask._base.arrays import HostArray
from infinitask._base.validation import coverages, seed
from infinitask.calibration._conformal import ConformalCalibration
from infinitask.calibration._levels import Rearrangement
from infinitask.estimators._base import BaseInfiniteTask, tags_of_poor_score
from infinitask.estimators._parameters import order_in_theta, targets_of
from infinitask.estimators._shared import Continuum, Explorable, d2_of_quantiles, estimator
from infinitask.estimators._sources import in_kind
from infinitask.predictive import QuantileDistribution
from infinitask.predictive._distribution import as_points
from infinitask.tasks import QuantileTask, Task

__all__ = ["InfiniteQuantileRegressor"]


class _QuantileEstimator(RegressorMixin, BaseInfiniteTask):
    """Base class of quantile regressors: quantiles, intervals, distributions and samples."""

    quantiles: Any

    _asked_by = "quantiles"
    _open_ends = True

    __sklearn_tags__ = tags_of_poor_score

    @in_kind
    def predict(self, X: Any, quantiles: Any = None) -> HostArray:
        """Predict conditional quantiles: (n,) for one level, (n, q) for several.

        Parameters
        ----------
        X : array (n, d)
        quantiles : float, array (q,) or None
            Levels in (0, 1); None: the constructor's ``quantiles``.
        """
        return self._values(X, self.quantiles if quantiles is None else quantiles, "quantiles", strict=True)

    @in_kind
    def predict_interval(self, X: Any, coverage: Any = 0.9) -> HostArray:
        """Predict the interval from level (1 − coverage)/2 to (1 + coverage)/2: (n, 2), or (n, q, 2) for q coverages.

        After :meth:`conformalize`, it is the conformal interval. This contains a new y with probability ``coverage``,
        even if the fit is poor.

        Parameters
        ----------
        X : array (n, d)
        coverage : float or array (q,)
            In (0, 1).

        Returns
        -------
        ndarray (n, 2), or (n, q, 2) for a list of q coverages
            Lower and upper ends along the last axis.

        Examples
        --------
        >>> from infinitask import InfiniteQuantileRegressor
        >>> from infinitask.datasets import make_sine
        >>> X, y = make_sine(100, random_state=0)
        >>> low, high = InfiniteQuantileRegressor(n_nodes=20).fit(X, y).predict_interval(X, coverage=0.8).T
        >>> bool((low < high).all())
        True
        """
        asked, single = coverages(coverage)
        if hasattr(self, "calibration_"):
            X = self._inputs(X)
            radius = self.calibration_.radius(asked)
            found = np.concatenate([self.calibration_.interval(curves, radius) for _, curves in self._curves(X)])
        else:
            ends = np.round(np.stack([0.5 - 0.5 * asked, 0.5 + 0.5 * asked], axis=1), 15)
            name = f"coverage={coverage!r} needs the quantiles at both ends, and this"
            found = self._values(X, ends.ravel(), name, strict=True).reshape(-1, asked.size, 2)
        return found[:, 0] if single else found

    def conformalize(self, X: Any, y: Any) -> Self:
        """Calibrate the intervals of every coverage at once, on held-out rows.

        Afterwards ``predict_interval(X, coverage)`` is [Q_x(½ − q), Q_x(½ + q)], where Q_x is the sorted quantile
        function of x, and q the ⌈(n + 1)·coverage⌉-th smallest score of the n calibration pairs; see
        ``ConformalCalibration``. If these and the new pair are exchangeable, the interval contains the new y with
        probability at least ``coverage``, for any n; it is infinite if ``coverage`` exceeds n/(n + 1). Other
        predictions do not change, and the next ``fit`` removes the calibration. Sample weights are not supported,
        because weighted pairs are not exchangeable.

        Parameters
        ----------
        X : array (n, d)
            Held-out rows; scores of training rows are too small.
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
        # the objective is in the units of y and independent of the calibration data
        scale = self.objective_ if self.objective_ > 0.0 else 1.0
        blocks = self._curves(self._inputs(X))
        scores = [ConformalCalibration.score(curves, y[rows], scale) for rows, curves in blocks]
        self.calibration_ = ConformalCalibration(np.sort(np.concatenate(scores)), scale)
        return self

    def predict_distribution(self, X: Any) -> QuantileDistribution:
        """Predict conditional distributions, with cdf, pdf, ppf, moments, intervals, samples and scores.

        They are given by the quantile functions at 1001 levels of Θ (at the nodes if the model predicts no others),
        and sorted, for any ``noncrossing``; :meth:`conformalize` does not change them. The mass beyond Θ is unknown:
        see :class:`~infinitask.predictive.QuantileDistribution`.

        Parameters
        ----------
        X : array (n, d)

        Examples
        --------
        >>> from infinitask import InfiniteQuantileRegressor
        >>> from infinitask.datasets import make_sine
        >>> X, y = make_sine(100, random_state=0)
        >>> distribution = InfiniteQuantileRegressor(n_nodes=20).fit(X, y).predict_distribution(X)
        >>> distribution.mean().shape, distribution.crps(y).shape, distribution.ppf([0.1, 0.9]).shape
        ((100,), (100,), (100, 2))
        """
        values = np.concatenate([curves.values for _, curves in self._curves(self._inputs(X))])
        return _distribution(Rearrangement(self._curve_levels(), values))

    def predict_cdf(self, X: Any, y: Any) -> HostArray:
        """Predict P(Y ≤ y | x): (n,) for one y for all rows or one for each, (n, q) for several.

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
        points, flat = as_points(y, _num_samples(X))
        blocks = self._curves(self._inputs(X))
        values = np.concatenate([_distribution(curves).cdf(points[rows]) for rows, curves in blocks])
        return values[:, 0] if flat else values

    def sample(self, X: Any, n_samples: int = 1, random_state: Any = None) -> HostArray:
        """Draw independent samples from the conditional distributions: (n, n_samples).

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
        rng = check_random_state(seed("random_state", random_state))
        blocks = self._curves(self._inputs(X))
        return np.concatenate([_distribution(curves).sample(n_samples, rng) for _, curves in blocks])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return D² of the integrated pinball loss: 1 − loss / loss of the best constants.

        The integral uses the nodes and weights of the fit, so models with few nodes are scored at other levels than
        models with many; ``infinitask.metrics`` has scorers with their own levels.

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
        check_is_fitted(self)
        predicted = self._values(X, self.nodes_, "quantiles")
        return d2_of_quantiles((self.nodes_, self.weights_), predicted, y, sample_weight)


@estimator
class InfiniteQuantileRegressor(Continuum, Explorable, _QuantileEstimator):
    """Conditional quantiles of every level from one fit, in order; the level is chosen at prediction.

    min ∫ E max(θr, (θ−1)r) dθ + λ_nc ∫ E (−∂f/∂θ)₊ dθ + (λ/2)‖h‖² + (λ_b/2)‖b‖² over h and b, with the quantile
    f = h(x)(θ) + b(θ), r = y − f and levels θ ∈ (0, 1).

    Parameters
    ----------
    noncrossing : float, "rearrange" or "hard", default=1.0
        λ_nc, the weight of the penalty on crossing quantile curves. It needs a task kernel with a derivative.
        "rearrange": weight 1 (0 for a kernel without a derivative), and predictions come from the quantile function of
        each x, sorted on a fine grid of levels; no two levels cross, at any x. "hard": the fit has the constraint that
        ∂h/∂θ ≥ 0 for all θ at the training rows of positive weight, which is proved to hold (kernels "rbf" and
        "matern52"); see ``smallest_slope_``.
    noncrossing_loss : {"hinge", "smoothed", "squared"}, default="hinge"
        The penalty where ∂f/∂θ < 0. "hinge": (−∂f/∂θ)₊; "smoothed": ψ₊^κ of it, rounded on [0, κ] with the κ of
        ``smoothing`` as in the paper's table of M-quantiles (for κ = 0 the same as "hinge"); "squared": its square.
        With "hinge", a large enough weight can make curves increase everywhere; with the others, only nearly so.
    noncrossing_inputs : array (k, d) or None, default=None
        The points x at which crossing is penalised, each with weight 1/k, such as a grid or unlabelled rows. They
        replace the training rows in the mean of the penalty; include the training rows to keep the order there as well.
        With "hard", the constraint holds at these points and at the training rows. None: the training rows.
    smoothing : float, default=0.0
        κ of M-quantiles: the kink of the pinball loss is rounded on [−κ, κ]. This is a statistical choice; the solver
        does not need it.
    quantiles : float or array, default=0.5
        The levels that ``predict`` uses by default.
    {parameters}

    Attributes
    ----------
    levels_ : Levels
        Only if levels are calibrated: the map of levels used by every prediction; ``field_`` is h itself. See
        ``Levels``.
    calibration_ : ConformalCalibration
        Only after :meth:`conformalize`.
    smallest_slope_ : float
        Only with ``noncrossing="hard"``: a proved lower bound of ∂h/∂θ, for all θ and all training rows of positive
        weight (and ``noncrossing_inputs``). Rows of ``sample_weight`` 0 are ignored, and curves may cross there.
    {attributes}

    Examples
    --------
    >>> from infinitask import InfiniteQuantileRegressor
    >>> from infinitask.datasets import make_sine
    >>> X, y = make_sine(100, random_state=0)
    >>> model = InfiniteQuantileRegressor().fit(X, 250_000.0 + 60_000.0 * y)  # in any units
    >>> model.predict(X, quantiles=[0.05, 0.5, 0.95]).shape
    (100, 3)
    >>> model.dual_gap_ <= 1e-4
    True
    >>> model.predict_distribution(X)
    QuantileDistribution(n=100, 1001 levels from 0 to 1)
    """

    noncrossing: float | str = 1.0
    noncrossing_loss: str = "hinge"
    noncrossing_inputs: Any = None
    smoothing: float = 0.0
    quantiles: Any = 0.5

    def _task(self) -> Task:
        order = order_in_theta(self, weight_if_rearranged=1.0)
        return QuantileTask(QuantileTask.loss_for(self.smoothing), order=order)


def _distribution(curves: Rearrangement) -> QuantileDistribution:
    if curves.levels.size < 2:
        raise ValueError(
            f"The model knows the quantile of level {curves.levels[0]:g} only; a distribution needs more. Fit with a "
            "measure on an interval, or with several levels."
        )
    return QuantileDistribution(curves.levels, curves.values)
