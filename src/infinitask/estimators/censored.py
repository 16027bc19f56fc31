"""Infinite quantile regression for right-censored targets, such as survival times."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from infinitask._base.arrays import HostArray, to_host
from infinitask._base.validation import choice, coverages, fraction
from infinitask.estimators._base import Prepared
from infinitask.estimators._parameters import order_in_theta, stack_level, targets_of, weights_of
from infinitask.estimators._shared import Continuum, estimator
from infinitask.estimators._sources import in_memory, on_host
from infinitask.estimators.quantile import _QuantileEstimator
from infinitask.streaming._blocks import RowSource
from infinitask.tasks import CensoredQuantileTask, Censoring, QuantileTask, Task

__all__ = ["InfiniteCensoredQuantileRegressor"]


def _known_censoring(name: str, value: Any) -> Any:
    """Return ``value`` if it is a censoring model or names one; raise an error otherwise."""
    also = ", or a function of (X, t) that returns the probability P(C ≥ t | x) that a row is not censored before t"
    return value if callable(value) else choice(name, value, ("kaplan-meier",), also)


@estimator
class InfiniteCensoredQuantileRegressor(Continuum, _QuantileEstimator):
    """Conditional quantiles of every level for right-censored targets, which are only known to exceed a bound.

    min ∫ Σ_i w_i max(θr_i, (θ−1)r_i) dθ / Σ_i w_i + λ_nc ∫ E (−∂f/∂θ)₊ dθ + (λ/2)‖h‖² + (λ_b/2)‖b‖² over h and b, with
    the quantile f = h(x)(θ) + b(θ), r_i = min(t_i, τ_i) − f(x_i), and inverse-probability-of-censoring weights
    w_i = 1/G(min(t_i, τ_i)⁻ | x_i) if the event of row i was observed or t_i ≥ τ_i, else 0.
    t_i is the time of the event or of the censoring, whichever comes first. G(t⁻ | x) = P(C ≥ t | x) is the probability
    that a row is not censored before t. The horizon τ_i is the largest event time t of the training rows with G(t⁻ |
    x_i) ≥ ``floor``.

    The estimate assumes that the times of the event and of the censoring are independent given x. With "kaplan-meier",
    the censoring must be independent of x as well. The data do not identify quantiles beyond the horizon; predictions
    of these are lower bounds. Without censored rows, the model is :class:`~infinitask.InfiniteQuantileRegressor`.

    Parameters
    ----------
    censoring : "kaplan-meier" or callable (X, t) → array (n,), default="kaplan-meier"
        G. "kaplan-meier": the Kaplan–Meier estimate from the training rows, the same for every x; at equal times,
        events precede censorings. A callable takes rows (n, d) and times (n,), and returns P(C ≥ t | x).
    floor : float, default=0.1
        The smallest G in a denominator: no weight exceeds 1/floor. Between 0 and 1.
    noncrossing : float, "rearrange" or "hard", default=1.0
        As in :class:`~infinitask.InfiniteQuantileRegressor`; rows of weight 0 do not count.
    noncrossing_loss : {"hinge", "smoothed", "squared"}, default="hinge"
        As in :class:`~infinitask.InfiniteQuantileRegressor`.
    noncrossing_inputs : array (k, d) or None, default=None
        As in :class:`~infinitask.InfiniteQuantileRegressor`.
    smoothing : float, default=0.0
        κ of M-quantiles: the kink of the pinball loss is rounded on [−κ, κ].
    quantiles : float or array, default=0.5
        The levels that ``predict`` returns by default.
    {parameters}

    Attributes
    ----------
    censoring_ : Censoring
        The censoring of the training rows: ``horizon`` is the largest τ_i that a row is known to exceed, ``identified``
        is the highest level that the data identify, on average over x or for the tenth of the rows with the shortest
        follow-up, and ``effective`` is the effective sample size of the weights.
    calibration_ : ConformalCalibration
        Only after :meth:`conformalize`.
    smallest_slope_ : float
        Only with ``noncrossing="hard"``: a proved lower bound of ∂h/∂θ, for all θ and all training rows of positive
        weight (and ``noncrossing_inputs``).
    {attributes}

    See Also
    --------
    infinitask.InfiniteQuantileRegressor : The model without censoring.

    Examples
    --------
    >>> import numpy as np
    >>> from infinitask import InfiniteCensoredQuantileRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(300, 1))
    >>> lifetime = np.exp(X[:, 0] + 0.3 * rng.normal(size=300))
    >>> end = rng.uniform(0.5, 8.0, size=300)  # of the follow-up
    >>> model = InfiniteCensoredQuantileRegressor(n_nodes=20)
    >>> model = model.fit(X, np.minimum(lifetime, end), event=lifetime <= end)
    >>> model.predict(X, quantiles=[0.25, 0.5, 0.75]).shape
    (300, 3)
    >>> float(model.predict([[0.5]])[0].round(1)), float(np.exp(0.5).round(1))  # the median and its estimate
    (1.7, 1.6)
    """

    _constraints: ClassVar = {"censoring": _known_censoring, "floor": fraction}

    censoring: Any = "kaplan-meier"
    floor: float = 0.1
    noncrossing: float | str = 1.0
    noncrossing_loss: str = "hinge"
    noncrossing_inputs: Any = None
    smoothing: float = 0.0
    quantiles: Any = 0.5

    # ------------------------------------------------------------------------------------------- fitting
    def _task(self) -> Task:
        order = order_in_theta(self, weight_if_rearranged=1.0)
        return CensoredQuantileTask(QuantileTask.loss_for(self.smoothing), order=order)

    # event precedes the weights, so that fit(X, y, event) cannot be mistaken for a fit without censored rows
    def fit(  # type: ignore[override]
        self, X: Any, y: Any = None, event: Any = None, sample_weight: Any = None
    ) -> Self:
        """Learn the quantile function from rows in memory.

        Parameters
        ----------
        X : array (n, d)
        y : array (n,), or structured array (n,)
            Times of the event or of the censoring, whichever comes first. A structured array has a boolean field, the
            event, and a field of times, like those of scikit-survival.
        event : array (n,) or None
            True if the event was observed, False if the row was censored at y. None: all events were observed, or y is
            a structured array.
        sample_weight : array (n,) or None
            Multiplies the weights, and weights the rows in the Kaplan–Meier estimate.
        """
        if isinstance(X, RowSource):
            raise TypeError(
                f"{type(X).__name__} were given; the censoring weights need all rows. Give arrays, with y and event "
                "beside X."
            )
        in_memory(X)
        time, observed = _times_and_events(X, y, event)
        # one array carries both through the fit of the base class
        target = (
            time if observed is None else np.rec.fromarrays([observed, time], dtype=[("event", bool), ("time", float)])
        )
        return super().fit(X, target, sample_weight)

    def _in_whole(self, y: Any, sample_weight: Any) -> bool:
        return True

    def _prepare(self, X: Any, y: Any, sample_weight: Any) -> Prepared:
        time, event = _times_and_events(X, y, None)
        prepared = super()._prepare(X, time, sample_weight)
        X, time, weight = prepared.X, prepared.y, prepared.weight
        assert time is not None
        event = np.ones(time.shape, dtype=np.bool_) if event is None else event
        survival = self.censoring if callable(self.censoring) else None
        censoring = Censoring.of(survival, float(self.floor), X, time, event, weight)
        target, weight = censoring.complete(X, time, event, weight)
        recipe = prepared.recipe.with_task(censoring=censoring)
        return prepared._replace(recipe=recipe, y=target, weight=weight, learnt={"censoring_": censoring})

    # ---------------------------------------------------------------------------------------- prediction
    def predict(self, X: Any, quantiles: Any = None) -> HostArray:
        """Predict conditional quantiles: (n,) for one level, (n, q) for several.

        It warns of levels above ``censoring_.identified``, because their predictions are lower bounds.

        Parameters
        ----------
        X : array (n, d)
        quantiles : float, array (q,) or None
            Levels in (0, 1); None: the constructor's ``quantiles``.
        """
        found = super().predict(X, quantiles)
        self._warn_of(np.max(self.quantiles if quantiles is None else quantiles))
        return found

    def predict_interval(self, X: Any, coverage: Any = 0.9) -> HostArray:
        """Predict the interval from level (1 − coverage)/2 to (1 + coverage)/2: (n, 2), or (n, q, 2) for q coverages.

        It warns if the upper level is above ``censoring_.identified``. The coverage is guaranteed only after
        :meth:`conformalize`.

        Parameters
        ----------
        X : array (n, d)
        coverage : float or array (q,)
            In (0, 1).
        """
        found = super().predict_interval(X, coverage)
        if not hasattr(self, "calibration_"):
            self._warn_of(0.5 + 0.5 * np.max(coverages(coverage)[0]))
        return found

    def _warn_of(self, level: float) -> None:
        """Warn if the data do not identify a requested level."""
        if level > self.censoring_.identified:
            warnings.warn(
                f"{type(self).__name__}: the quantile of level {level:g} was asked for; the data identify levels up to "
                f"{self.censoring_.identified:.2g}: {self.censoring_.reason}. The prediction is a lower bound.",
                UserWarning,
                stacklevel=stack_level(),
            )

    def _known_events(self, X: Any, y: Any, event: Any) -> tuple[Any, HostArray | None]:
        """Return times and events; raise an error if events are missing and training rows were censored."""
        check_is_fitted(self)
        structured = getattr(getattr(y, "dtype", None), "names", None) is not None
        if event is None and not structured and self.censoring_.censored > 0.0:
            raise ValueError(
                f"The events of y were not given, and {self.censoring_.censored:.0%} of the rows of the fit were "
                "censored. Give event beside y, or a structured y of events and times; if all events were observed, "
                "event=np.ones(len(y))."
            )
        return _times_and_events(X, y, event)

    def conformalize(self, X: Any, y: Any, event: Any = None) -> Self:
        """Calibrate the intervals of every coverage at once, on held-out rows without censoring.

        See :meth:`InfiniteQuantileRegressor.conformalize <infinitask.InfiniteQuantileRegressor.conformalize>`. The
        guarantee needs rows that are exchangeable with new ones. The uncensored rows of a censored sample are not.

        Parameters
        ----------
        X : array (n, d)
            Held-out rows; scores of training rows are too small.
        y : array (n,), or structured array (n,)
        event : array (n,) or None
            True for every row; other values raise an error.
        """
        time, observed = self._known_events(X, y, event)
        if observed is not None:
            raise ValueError(
                f"event is False for {np.sum(~observed)} of {observed.size} rows; conformalize needs rows whose events "
                "were all observed, and leaving out the others would bias the intervals. Use the intervals as fitted, "
                "or rows with a complete follow-up."
            )
        return super().conformalize(X, time)

    def score(  # type: ignore[override]
        self, X: Any, y: Any, event: Any = None, sample_weight: Any = None
    ) -> float:
        """Return D² of the integrated pinball loss, weighted for censoring: 1 − loss / loss of the best constants.

        The weights and targets are those of the formula of the class, with G and the event times of the fit. Without
        censoring, it is the score of :class:`~infinitask.InfiniteQuantileRegressor`.

        Parameters
        ----------
        X : array (n, d)
        y : array (n,), or structured array (n,)
        event : array (n,) or None
            As in ``fit``.
        sample_weight : array (n,) or None
            Multiplies the weights.
        """
        time, event = self._known_events(X, y, event)
        time = targets_of(X, time)
        event = np.ones(time.shape, dtype=np.bool_) if event is None else event
        weight = weights_of(sample_weight, time)
        rows = np.concatenate([to_host(block) for _, block in self._dense_blocks(self._inputs(X))])
        target, weight = self.censoring_.complete(rows, time, event, weight)
        return super().score(X, target, weights_of(weight, time))


# ------------------------------------------------------------------------------------------------- targets
def _times_and_events(X: Any, y: Any, event: Any) -> tuple[Any, HostArray | None]:
    """Return times, and whether their events were observed; None if all were."""
    if getattr(getattr(y, "dtype", None), "names", None) is not None:
        if event is not None:
            raise ValueError("y is a structured array and event was given too; give the events once.")
        y, event = _fields(y)
    if event is None:
        return y, None
    time, observed = targets_of(X, y), _events(event)
    if observed.shape != time.shape:
        raise ValueError(
            f"event of shape {observed.shape} was given for {time.size} targets; give one True or False for each row."
        )
    return time, None if np.all(observed) else observed


def _fields(y: Any) -> tuple[Any, Any]:
    """Return the times and events of a structured array."""
    names = [name for name in y.dtype.names if y.dtype[name].kind == "b"]
    others = [name for name in y.dtype.names if y.dtype[name].kind in "fiu"]
    if len(names) != 1 or len(others) != 1 or len(y.dtype.names) != 2:
        raise ValueError(
            f"y has the fields {y.dtype}; a structured array needs two, a boolean one (True: the event was observed) "
            "and one of times. Or give times as y, and event beside them."
        )
    return y[others[0]], y[names[0]]


def _events(event: Any) -> HostArray:
    """Return whether events were observed, (n,)."""
    found = np.asarray(on_host(event))
    known = np.isin(found, (0, 1)) if found.dtype.kind in "biufO" else np.zeros(found.shape, dtype=np.bool_)
    if not np.all(known):
        raise ValueError(
            f"event contains {found[~known].ravel()[0]!r}; it must be True (1) where the event was observed and False "
            "(0) where the row was censored."
        )
    return found.astype(np.bool_)
