"""Forecast every quantile in sktime: a series becomes a regression, and one fit predicts all steps and levels.

A row has an origin t and a step k. With the season sp, its reference is the last value of the same season, y at
t + k − sp⌈k/sp⌉ (the last value itself if sp is 1), plus the mean change over ⌈k/sp⌉ seasons. Features are differences
of values, and so is the target: with a trend they stay in the range of the fit, and kernels need not extrapolate.

It needs sktime: ``pip install infinitask[sktime]``.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import clone

from infinitask._base.arrays import HostArray
from infinitask._base.extras import not_installed
from infinitask._base.validation import count
from infinitask.estimators import InfiniteQuantileRegressor
from infinitask.kernels import RBF, Linear
from infinitask.predictive import QuantileDistribution
from infinitask.tuning import InfiniteQuantileRegressorCV
from infinitask.tuning._defaults import MAX_ROWS

try:
    import pandas as pd
    from sktime.forecasting.base import BaseForecaster
except ImportError as error:
    raise not_installed("infinitask.integrations.sktime makes a forecaster of sktime", "sktime") from error

__all__ = ["InfiniteQuantileForecaster"]

FOLDS = 4
"""The number of blocks of consecutive times that are held out in turn."""


class _Rows(NamedTuple):
    """Rows of a regression, made from a series.

    Parameters
    ----------
    inputs : ndarray (n, d)
        Differences y(t−j) − y(t−j−sp) for j = 0, 1, …, the reference minus the mean of the last values, the step, and
        the exogenous variables at the time t + k and at the time of the reference.
    reference : ndarray (n,)
        The values subtracted from the targets.
    times : ndarray of int (n,)
        The position t + k of each target in the series.
    """

    inputs: HostArray
    reference: HostArray
    times: HostArray


class _Window(NamedTuple):
    """The part of a series that is known at an origin.

    Parameters
    ----------
    length : int
        The number of differences.
    season : int
        The lag of the differences.
    drift : float
        The mean change of the series over a season.
    """

    length: int
    season: int
    drift: float = 0.0

    @classmethod
    def of(cls, values: HostArray, length: int, season: int) -> _Window:
        """The window with the drift of a series."""
        rises = values[season:] - values[:-season]
        return cls(length, season, float(np.mean(rises)) if rises.size else 0.0)

    @property
    def reach(self) -> int:
        """The number of values that the features need, up to and including the origin."""
        return self.length + self.season

    def rows(self, values: HostArray, origin: HostArray, step: HostArray, known: HostArray | None = None) -> _Rows:
        """The rows of the given origins and steps, (n,) each; ``known`` (times, k) has a row for each time.

        Examples
        --------
        >>> import numpy as np
        >>> rows = _Window(length=2, season=1).rows(np.arange(10.0), np.array([7, 7]), np.array([1, 2]))
        >>> rows.inputs  # two differences, the last value less the mean of two, the step
        array([[1. , 1. , 0.5, 1. ],
               [1. , 1. , 0.5, 2. ]])
        >>> rows.reference, rows.times
        (array([7., 7.]), array([8, 9]))
        """
        lagged = origin[:, None] - np.arange(self.length)
        span = max(self.length, self.season)
        means = np.convolve(values, np.full(span, 1.0 / span), mode="valid")[origin - span + 1]
        seasons = -(-step // self.season)
        before, then = origin + step - self.season * seasons, origin + step
        reference = values[before] + self.drift * seasons
        parts = [values[lagged] - values[lagged - self.season], (reference - means)[:, None], step[:, None]]
        # the target is a difference between two times, and the exogenous variables of both explain it
        parts += [] if known is None else [known[then], known[before]]
        return _Rows(np.hstack(parts).astype(np.float64), reference, then)

    def training(self, values: HostArray, steps: HostArray, known: HostArray | None = None) -> _Rows:
        """The rows of every origin and step whose target is in the series, origin by origin."""
        origins = np.arange(self.reach - 1, values.size - int(steps.min()))
        if origins.size < 2:
            raise ValueError(
                f"The series has {values.size} values; with window_length={self.length}, sp={self.season} and a first "
                f"step of {int(steps.min())} at least {self.reach + int(steps.min()) + 1} are needed. Give a longer "
                "series, or a smaller window_length or sp."
            )
        origin, step = np.repeat(origins, steps.size), np.tile(steps, origins.size)
        there = origin + step < values.size
        return self.rows(values, origin[there], step[there], known)

    def scales(self, inputs: HostArray) -> HostArray:
        """The divisors of the features, (d,): their standard deviations, times 1 + j for the j-th difference.

        Older values count less, because a short series has too few data to learn this.
        """
        spread = np.std(inputs, axis=0)
        spread[: self.length] = np.sqrt(np.mean(spread[: self.length] ** 2)) * (1.0 + np.arange(self.length))
        return np.where(spread > 0.0, spread, 1.0)


def _blocks_of_time(times: HostArray) -> list[tuple[HostArray, HostArray]]:
    """Folds (train, test) that hold out the targets of consecutive times.

    Rows of several steps share a target. If one of them were held out alone, the others would reveal its target.
    """
    blocks = np.array_split(np.unique(times), min(FOLDS, np.unique(times).size))
    held_out = [np.isin(times, block) for block in blocks]
    return [(np.flatnonzero(~test), np.flatnonzero(test)) for test in held_out]


def _tuned_fit(inputs: HostArray, targets: HostArray, times: HostArray, n_steps: int) -> Any:
    """Fit a regressor whose kernel and λ are best on held-out blocks of times, which also calibrate its levels.

    Parameters
    ----------
    inputs : ndarray (n, d)
        Features in units of their spread.
    targets, times : ndarray (n,)
    n_steps : int
        The number of rows per origin, which are consecutive; the last origins may have fewer.
    """
    if np.unique(times).size < 2 * FOLDS:
        return InfiniteQuantileRegressor(noncrossing="rearrange", alpha=1.0, tol=1e-3).fit(inputs, targets)
    # about the rows on which kernels are compared: whole origins, evenly spaced
    stride = max(1, -(-targets.size // MAX_ROWS))
    chosen = np.flatnonzero((np.arange(targets.size) // n_steps) % stride == 0)
    first, second = np.array_split(inputs[chosen], 2)
    gamma = 0.5 / (float(np.median(np.sum((first[:, None] - second) ** 2, axis=2))) or 1.0)
    # Gaussian kernels of half, once and twice the median distance
    kernels = [*(RBF(gamma / width**2) for width in (0.5, 1.0, 2.0)), Linear()]
    tuned = InfiniteQuantileRegressorCV(
        kernels=kernels, cv=_blocks_of_time(times[chosen]), rule="best", tol=1e-3, random_state=0
    )
    model: Any = tuned.fit(inputs[chosen], targets[chosen]).best_estimator_
    if stride > 1:
        levels = getattr(model, "levels_", None)
        model.fit(inputs, targets)
        if levels is not None:
            model.levels_ = levels
    return model


class InfiniteQuantileForecaster(BaseForecaster):
    """A forecaster of sktime that predicts every step of the horizon and every quantile with one model.

    The quantile of level θ at the step k after the origin t is r_k + h(x)(θ) with x = (differences of the last values,
    r_k minus their mean, k, exogenous variables at the time t + k and at that of the reference). The reference r_k is
    the last value of the same season, y at t + k − sp⌈k/sp⌉ (for ``sp=1`` the last value), plus the mean change of the
    seasons in between: the seasonal naive forecast with drift. The rows of all origins and steps are fitted together
    (the direct strategy of reduction, with the step as a feature). Only differences are learnt, so trends need no
    extrapolation. If the size of changes grows with the level of the series, put a transformer before the forecaster,
    as in ``LogTransformer() * InfiniteQuantileForecaster(sp=12)``.

    Parameters
    ----------
    window_length : int, default=4
        The number of differences y(t−j) − y(t−j−sp), j = 0, 1, …, used as features. The j-th one has weight 1/(1 + j).
    sp : int, default=1
        The length of the season, in steps; 1: no season.
    estimator : estimator or None, default=None
        A quantile model whose ``predict`` takes ``quantiles``; its features are in units of their spread. A model with
        a parameter ``cv`` gets folds of consecutive times, unless ``cv`` is set. None: an
        :class:`~infinitask.InfiniteQuantileRegressor` whose kernel and λ are best on such folds, which also calibrate
        its levels. Random folds, and the leave-one-out of ``alpha="auto"``, mislead here because steps share targets.

    Attributes
    ----------
    estimator_ : estimator
        The fitted model.
    window_ : _Window
        The window of values that the features use.

    See Also
    --------
    infinitask.InfiniteQuantileRegressor : The default model of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from infinitask import InfiniteQuantileRegressor
    >>> from infinitask.integrations.sktime import InfiniteQuantileForecaster
    >>> time = pd.period_range("2020-01", periods=60, freq="M")
    >>> noise = np.random.default_rng(0).normal(size=60)
    >>> y = pd.Series(0.5 * np.arange(60) + 5.0 * np.sin(np.arange(60) * np.pi / 6) + noise, index=time)
    >>> model = InfiniteQuantileRegressor(alpha=0.1, n_nodes=10)
    >>> forecaster = InfiniteQuantileForecaster(window_length=2, sp=12, estimator=model).fit(y, fh=[1, 2, 3])
    >>> forecaster.predict_quantiles(alpha=[0.1, 0.5, 0.9]).shape
    (3, 3)
    """

    _tags: ClassVar[dict[str, Any]] = {
        "authors": ["the infinitask developers"],
        "capability:insample": False,
        "capability:pred_int": True,
        "capability:pred_int:insample": False,
        "capability:categorical_in_X": False,
        "capability:update": True,
    }

    _config: ClassVar[dict[str, Any]] = {"remember_data": False}  # this class stores the series itself

    def __init__(self, window_length: int = 4, sp: int = 1, estimator: Any = None) -> None:
        self.window_length = window_length
        self.sp = sp
        self.estimator = estimator
        super().__init__()
        self._y = self._X = None  # sktime fills them if it is told to remember data

    def _fit(self, y: Any, X: Any, fh: Any) -> Self:
        count("window_length", self.window_length)
        count("sp", self.sp)
        _check_gaps(y.index)
        self._seen_y, self._seen_X = y, X
        self._learn(_steps(fh, self.cutoff))
        return self

    def _update(self, y: Any, X: Any = None, update_params: bool = True) -> Self:
        seen = _joined(self._seen_y, y)
        _check_gaps(seen.index)
        if self._seen_X is not None and X is None:
            raise ValueError(
                "The forecaster was fitted with exogenous variables; give X of the new times to update too."
            )
        self._seen_X = None if self._seen_X is None else _joined(self._seen_X, self._named(X))
        self._seen_y = seen
        if update_params:
            self._learn(self._steps)
        return self

    def _learn(self, steps: HostArray) -> None:
        """Fit the model to the rows of the series seen so far."""
        values = self._seen_y.to_numpy(dtype=np.float64)
        window = _Window.of(values, int(self.window_length), int(self.sp))
        rows = window.training(values, steps, self._past())
        scales = window.scales(rows.inputs)
        inputs, targets = rows.inputs / scales, values[rows.times] - rows.reference
        if self.estimator is None:
            self.estimator_ = _tuned_fit(inputs, targets, rows.times, steps.size)
        else:
            model = clone(self.estimator)
            if model.get_params().get("cv", "") is None:
                model.set_params(cv=_blocks_of_time(rows.times))
            self.estimator_ = model.fit(inputs, targets)
        self.window_, self._scales, self._steps = window, scales, steps

    def _predict(self, fh: Any, X: Any) -> Any:
        return self._predict_quantiles(fh, X, [0.5]).iloc[:, 0].rename(self._seen_y.name)

    def _predict_quantiles(self, fh: Any, X: Any, alpha: Any) -> Any:
        index, reference, inputs = self._asked(fh, X)
        values = reference[:, None] + self.estimator_.predict(inputs, quantiles=list(alpha))
        columns = pd.MultiIndex.from_product([self._get_varnames(), list(alpha)])
        return pd.DataFrame(values, index=index, columns=columns)

    def _predict_var(self, fh: Any, X: Any, cov: bool = False) -> Any:
        index, found = self._distribution(fh, X)
        return pd.DataFrame(found.variance(), index=index, columns=self._get_varnames())

    def _predict_proba(self, fh: Any, X: Any, marginal: bool = True) -> Any:
        from infinitask.integrations.skpro import QuantileCurveDistribution

        index, found = self._distribution(fh, X)
        return QuantileCurveDistribution(found.levels, found.values, index, pd.Index(self._get_varnames()))

    def _distribution(self, fh: Any, X: Any) -> tuple[Any, QuantileDistribution]:
        """The index of the forecasts, and their distributions: the quantile functions of the model."""
        index, reference, inputs = self._asked(fh, X)
        if hasattr(self.estimator_, "predict_distribution"):
            found = self.estimator_.predict_distribution(inputs)
            levels, curves = found.levels, found.values
        else:
            levels = np.arange(1, 100) / 100.0
            curves = np.sort(self.estimator_.predict(inputs, quantiles=levels), axis=1)
        return index, QuantileDistribution(levels, reference[:, None] + curves)

    def _asked(self, fh: Any, X: Any) -> tuple[Any, HostArray, HostArray]:
        """The index of the forecasts, their references, and the features of the model."""
        steps, index = _steps(fh, self.cutoff), fh.to_absolute_index(self.cutoff)
        low, high = int(self._steps.min()), int(self._steps.max())
        if steps.min() < low or steps.max() > high:
            raise ValueError(
                f"Steps {steps.tolist()} after {self.cutoff[0]} were asked for, and steps from {low} to {high} were "
                "learnt; fit again with this fh."
            )
        values = self._seen_y.to_numpy(dtype=np.float64)
        rows = self.window_.rows(values, np.full(steps.size, values.size - 1), steps, self._known(X, index, steps))
        return index, rows.reference, rows.inputs / self._scales

    def _known(self, X: Any, index: Any, steps: HostArray) -> HostArray | None:
        """Exogenous variables at all times up to the last forecast; NaN for times without a forecast."""
        past = self._past()
        if past is None:
            return None
        if X is None or not index.isin(X.index).all():
            names, times = (", ".join(map(str, these)) for these in (self._seen_X.columns, index))
            raise ValueError(
                f"The forecaster was fitted with exogenous variables {names}; give X with their values at {times}."
            )
        future = np.full((int(steps.max()), past.shape[1]), np.nan)
        future[steps - 1] = self._named(X).loc[index]
        return np.vstack([past, future])

    def _past(self) -> HostArray | None:
        """The exogenous variables of the series seen so far, as numbers."""
        X = self._seen_X
        return None if X is None else np.asarray(X.loc[self._seen_y.index], dtype=np.float64)

    def _named(self, X: Any) -> Any:
        """The exogenous variables of the fit, in the same order."""
        names = self._seen_X.columns
        missing = names[~names.isin(X.columns)]
        if len(missing):
            raise ValueError(
                f"X has the columns {', '.join(map(str, X.columns))}, and lacks {', '.join(map(str, missing))}; give "
                f"the exogenous variables of the fit: {', '.join(map(str, names))}."
            )
        return X[names]

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Return parameters for sktime's tests: small models."""
        model = InfiniteQuantileRegressor(alpha=0.1, n_nodes=4, tol=1e-2, noncrossing="rearrange")
        return [{"window_length": 2, "estimator": model}, {"window_length": 1, "sp": 2, "estimator": model}]


def _steps(fh: Any, cutoff: Any) -> HostArray:
    """The horizon as steps after the cutoff."""
    return np.asarray(fh.to_relative(cutoff).to_numpy(), dtype=np.intp)


def _check_gaps(index: Any) -> None:
    """Raise an error if a time is missing, since rows are counted as steps of time."""
    ahead = np.diff(index.asi8 if hasattr(index, "asi8") else index.to_numpy())
    if isinstance(index, pd.DatetimeIndex):
        whole = len(index) < 3 or (index.freq or index.inferred_freq) is not None
    else:
        step = getattr(getattr(index, "freq", None), "n", 1)  # of periods; integers count by one
        whole = bool(np.all(ahead == step))
    if not whole:
        raise ValueError(
            f"The times of the series have a gap, such as that after {index[np.argmax(ahead)]}; the forecaster counts "
            "rows as steps of time. Give a value for each time: y.asfreq(...) or y.reindex(...) shows the gaps, and an "
            "imputer of sktime fills them."
        )


def _joined(old: Any, new: Any) -> Any:
    """The old data joined with the new data, which replaces values at the same times."""
    return pd.concat([old.loc[~old.index.isin(new.index)], new]).sort_index()
