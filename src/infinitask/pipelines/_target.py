"""Quantile regression of a transformed target, with predictions in the units of the target."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin, clone
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted, column_or_1d

from infinitask._base.arrays import HostArray
from infinitask._base.inner_model import inner_model, takes
from infinitask._base.validation import check_no_text, naming, numbers, seed
from infinitask.estimators import _frames
from infinitask.estimators._parameters import forget, targets_of
from infinitask.estimators._shared import d2_of_quantiles
from infinitask.estimators._sources import in_kind, in_memory
from infinitask.metrics._scorers import _levels
from infinitask.pipelines._passing import where_inside_has
from infinitask.predictive import QuantileDistribution

SAME = 1e-6
"""inverse_func(func(y)) may differ from y by this fraction of the size of the targets."""

ROUNDING = 1e-9
"""The rounding error of func and its inverse, relative to the size of their values."""

FAR = 1.0
"""Predictions of g(y) that exceed its range in the fit by more than this fraction of the range cause a warning."""


class TransformedTarget(RegressorMixin, MetaEstimatorMixin, BaseEstimator):
    """Quantile regression of a transformed target, such as log y, with predictions in the units of y.

    Use it for prices, loads and other positive targets whose spread grows with their size. A monotone function g maps
    quantiles to quantiles: if Q is the quantile function of g(y), that of y is g⁻¹(Q(τ)), or g⁻¹(Q(1 − τ)) if g is
    decreasing. Hence quantiles, intervals (also conformal ones) and distributions are right in the units of y, and
    intervals contain exactly the targets that they contain on the other scale. Means are not mapped to means:
    ``predict_distribution(X).mean()`` integrates the quantiles of y. Fitted attributes of the inner model
    (``relevance_``, ``dual_gap_``, ``field_``, …) are available here and refer to g(y). An interactive page can be made
    from ``estimator_``, in the units of g(y).

    Parameters
    ----------
    estimator : estimator
        A model with ``predict(X, quantiles=…)``, such as :class:`~infinitask.InfiniteQuantileRegressor`, alone,
        self-tuned, or at the end of a pipeline.
    func : function, default=np.log
        g, a function of an array. It must be strictly increasing or strictly decreasing on the targets; the fit checks
        this.
    inverse_func : function, default=np.exp
        g⁻¹. It is also evaluated beyond the range of the targets. If it does not continue in the same direction there,
        such as ``np.square`` below 0, a prediction raises an error.

    Attributes
    ----------
    estimator_ : estimator
        The fitted model of g(y).
    increasing_ : bool
        Whether g is increasing.

    Examples
    --------
    >>> import numpy as np
    >>> from infinitask import InfiniteQuantileRegressor, TransformedTarget
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(1.0, 2.0, size=(120, 1))
    >>> price = np.exp(X[:, 0] + 0.3 * rng.normal(size=120))
    >>> model = TransformedTarget(InfiniteQuantileRegressor(n_nodes=10)).fit(X, price)
    >>> on_log_scale = InfiniteQuantileRegressor(n_nodes=10).fit(X, np.log(price))
    >>> levels = [0.05, 0.5, 0.95]
    >>> np.array_equal(model.predict(X, quantiles=levels), np.exp(on_log_scale.predict(X, quantiles=levels)))
    True
    """

    def __init__(self, estimator: Any, *, func: Any = np.log, inverse_func: Any = np.exp) -> None:
        self.estimator = estimator
        self.func = func
        self.inverse_func = inverse_func

    set_output = _frames.set_output

    # ------------------------------------------------------------------------------------------- fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model to func(y).

        Parameters
        ----------
        X : array or table (n, d)
        y : array (n,)
        sample_weight : array (n,) or None
        """
        forget(self)
        for name in ("func", "inverse_func"):
            if not callable(getattr(self, name)):
                raise TypeError(f"{name}={getattr(self, name)!r} was given; it must be a function, such as np.log.")
        if not takes(inner_model(self.estimator), "quantiles"):
            raise TypeError(
                f"estimator={self.estimator!r} was given, whose predict takes no quantiles; a function of the target "
                "takes quantiles to quantiles and nothing else, so give a model that is asked predict(X, quantiles=…), "
                "such as InfiniteQuantileRegressor."
            )
        in_memory(X)
        check_no_text("y", y)
        with naming("y"):
            y = None if y is None else column_or_1d(y, warn=True)
        y = targets_of(X, y)
        z = self._scaled(y)
        increasing = _is_increasing(y, z) if np.ptp(y) > 0.0 else self._rises_at(float(z[0]))
        back = self._inverse(z)
        wrong = ~(np.abs(back - y) <= SAME * np.max(np.abs(y)))
        if np.any(wrong):
            k = int(np.argmax(wrong))
            raise ValueError(
                f"inverse_func(func(y)) is {back[k]:g} for the target {y[k]:g}; the two functions must be inverse to "
                "each other, such as np.log and np.exp."
            )
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        fitted = clone(self.estimator).fit(X, z, **weights)
        self.increasing_ = increasing
        self._range = float(z.min()), float(z.max())
        self.estimator_ = fitted
        return self

    def _scaled(self, y: HostArray) -> HostArray:
        """Return func(y); raise an error if it is not finite."""
        with np.errstate(all="ignore"):
            z = np.asarray(self.func(y), dtype=np.float64)
        if z.shape != y.shape:
            raise ValueError(f"func made {z.shape} of y of shape {y.shape}; it must return a number for each target.")
        if not np.all(np.isfinite(z)):
            wrong = float(y[~np.isfinite(z)][0])
            raise ValueError(
                f"func of the target {wrong:g} is not a finite number. Give a function that is defined for all "
                "targets: np.log needs positive ones, np.log1p those above −1, np.arcsinh takes any (with np.expm1 and "
                "np.sinh as inverse_func)."
            )
        return z

    def _rises_at(self, z: float) -> bool:
        """Whether inverse_func increases around a number, which gives the direction if all targets are equal."""
        low, high = self._inverse(z + 1e-3 * max(1.0, abs(z)) * np.array([-1.0, 1.0]))
        return bool(low <= high)

    # --------------------------------------------------------------------------------------- in the units of y
    def _inverse(self, z: HostArray) -> HostArray:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.inverse_func(z), dtype=np.float64)

    def _in_units(self, z: HostArray) -> HostArray:
        """Return inverse_func(z), which must keep its direction beyond the range of the fit; ±∞ may stay ±∞."""
        sign = 1.0 if self.increasing_ else -1.0
        u = sign * self._inverse(z)
        ends = sign * self._inverse(np.array(self._range))
        slack = ROUNDING * float(np.max(np.abs(ends)))
        least = np.where(z > self._range[1], ends[1] - slack, np.where(z < self._range[0], -np.inf, ends[0] - slack))
        most = np.where(z < self._range[0], ends[0] + slack, np.where(z > self._range[1], np.inf, ends[1] + slack))
        wrong = ~((u >= least) & (u <= most))
        infinite = wrong & np.isinf(z)  # infinite ends of intervals do not need inverse_func
        u[infinite] = z[infinite]
        wrong &= ~infinite
        if np.any(wrong):
            raise ValueError(
                f"The model predicts {z[wrong][0]:g} for func(y), and inverse_func of it is {sign * u[wrong][0]:g}: "
                "beyond the targets of the fit it is not the inverse of a monotone function. Give one that is monotone "
                "for all numbers, such as np.exp, or a function of your own, such as z ↦ max(z, 0)² for the square "
                "root."
            )
        return np.asarray(sign * u)

    def _warn_of_outliers(self, z: HostArray, y: HostArray) -> None:
        """Warn if the inner model predicts far beyond the targets of its fit, which an exponential makes huge."""
        low, high = self._range
        width = FAR * (high - low)
        far = np.isfinite(z) & ((z < low - width) | (z > high + width))
        if width > 0.0 and np.any(far):
            warnings.warn(
                f"{int(np.sum(far))} of {z.size} predictions of func(y) are further from the targets of the fit, "
                f"{low:.3g} to {high:.3g}, than these are from each other: {z[far][0]:.3g}, for example, which makes "
                f"y = {y[far][0]:.3g}. Do not rely on such answers: their rows are probably far from those of the fit.",
                UserWarning,
                stacklevel=5,  # the caller of predict
            )

    def _inside(self) -> Any:
        """Return the inner model of g(y), or the one that a search has chosen or varies."""
        model = vars(self).get("estimator_", self.estimator)
        return inner_model(model, stop=lambda candidate: takes(candidate, "quantiles"))

    @property
    def quantiles(self) -> Any:
        """The levels that ``predict`` returns by default: those of the inner model."""
        return getattr(inner_model(self._inside()), "quantiles", 0.5)

    def _at(self, X: Any, levels: HostArray) -> HostArray:
        """Return quantiles of y at levels (q,) or a single one."""
        # invalid levels are passed on unchanged, because the error names them
        turns = not self.increasing_ and bool(np.all((levels > 0.0) & (levels < 1.0)))
        turned = np.round(1.0 - levels, 15) if turns else levels
        asked = float(turned) if levels.ndim == 0 else turned
        z = np.asarray(self._inside().predict(X, quantiles=asked), dtype=np.float64)
        y = self._in_units(z)
        self._warn_of_outliers(z, y)  # not for intervals: conformal ones may end far outside
        return y

    # ---------------------------------------------------------------------------------------- predicting
    @in_kind
    def predict(self, X: Any, quantiles: Any = None) -> HostArray:
        """Predict conditional quantiles of y: (n,) for one level, (n, q) for several.

        Parameters
        ----------
        X : array or table (n, d)
        quantiles : float, array (q,) or None
            Levels in (0, 1); None: those of the constructor of the inner model.
        """
        check_is_fitted(self)
        return self._at(X, numbers("quantiles", self.quantiles if quantiles is None else quantiles))

    @where_inside_has("predict_interval")
    @in_kind
    def predict_interval(self, X: Any, coverage: Any = 0.9) -> HostArray:
        """Predict central intervals of y: (n, 2), or (n, q, 2) for q coverages; conformal after :meth:`conformalize`.

        Parameters
        ----------
        X : array or table (n, d)
        coverage : float or array (q,)
            In (0, 1).
        """
        check_is_fitted(self)
        ends = self._in_units(np.asarray(self._inside().predict_interval(X, coverage), dtype=np.float64))
        return ends if self.increasing_ else ends[..., ::-1]

    @where_inside_has("conformalize")
    def conformalize(self, X: Any, y: Any) -> Self:
        """Calibrate the intervals on held-out rows.

        An interval of y contains a target if and only if that of func(y) contains func(target); the guarantee is the
        same.

        Parameters
        ----------
        X : array or table (n, d)
        y : array (n,)
        """
        check_is_fitted(self)
        self._inside().conformalize(X, self._scaled(targets_of(X, y)))
        return self

    @where_inside_has("predict_distribution")
    def predict_distribution(self, X: Any) -> QuantileDistribution:
        """Predict conditional distributions of y, from their quantiles at the levels of the inner model.

        Parameters
        ----------
        X : array or table (n, d)
        """
        check_is_fitted(self)
        found = self._inside().predict_distribution(X)
        values = self._in_units(found.values)
        if self.increasing_:
            return QuantileDistribution(found.levels, values)
        return QuantileDistribution(1.0 - found.levels[::-1], values[:, ::-1])

    @where_inside_has("predict_distribution")
    def predict_cdf(self, X: Any, y: Any) -> HostArray:
        """Predict P(Y ≤ y | x): (n,) for one y for all rows or one for each, (n, q) for several; y may be any number.

        Parameters
        ----------
        X : array or table (n, d)
        y : float, array (n,), (n, q) or (1, q)
        """
        return self.predict_distribution(X).cdf(y)

    @where_inside_has("sample")
    def sample(self, X: Any, n_samples: int = 1, random_state: Any = None) -> HostArray:
        """Draw independent samples from the conditional distributions of y: (n, n_samples).

        Parameters
        ----------
        X : array or table (n, d)
        n_samples : int
        random_state : int, RandomState or None
        """
        check_is_fitted(self)
        rng = check_random_state(seed("random_state", random_state))
        return self._in_units(np.asarray(self._inside().sample(X, n_samples, rng)))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return D² of the integrated pinball loss in the units of y: 1 − loss / loss of the best constants.

        The levels are those of ``score`` of the inner model, so models of y and of func(y) can be compared.

        Parameters
        ----------
        X : array or table (n, d)
        y : array (n,)
        sample_weight : array (n,) or None

        Returns
        -------
        float
            At most 1; 0 for a model no better than the unconditional quantiles of y.
        """
        check_is_fitted(self)
        rule = self._rule()
        return d2_of_quantiles(rule, self._at(X, rule[0]), y, sample_weight)

    def _rule(self) -> tuple[HostArray, HostArray]:
        """Return levels of y and their weights: the nodes inside (0, 1), or percentiles for a model without nodes."""
        core = inner_model(self._inside())
        nodes = getattr(core, "nodes_", None)
        if nodes is None:
            levels = _levels(core, 0.0, 1.0)
            return levels, np.full(levels.size, 1.0 / levels.size)
        inside = (nodes > 0.0) & (nodes < 1.0)
        levels, weights = nodes[inside], core.weights_[inside]
        return (levels if self.increasing_ else 1.0 - levels), weights

    # --------------------------------------------------------------------------------------- scikit-learn
    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.input_tags, tags.regressor_tags = inner.input_tags, inner.regressor_tags
        tags.target_tags.required = True
        return tags

    def __getattr__(self, name: str) -> Any:
        # called only if this object has no such attribute: fitted attributes of the inner model, but not its methods,
        # whose results would be in other units
        if name.endswith("_") and not name.startswith("_") and "estimator_" in vars(self):
            return getattr(self.estimator_, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def _is_increasing(y: HostArray, z: HostArray) -> bool:
    """Whether z increases with y; raise an error if it neither increases nor decreases everywhere."""
    order = np.argsort(y, kind="stable")
    rise = np.diff(z[order]) * (np.diff(y[order]) > 0.0)
    rounding = 1e-12 * float(np.max(np.abs(z)))
    up, down = rise > rounding, rise < -rounding
    if np.any(up) and np.any(down):
        few = down if np.sum(down) <= np.sum(up) else up
        k = int(np.argmax(few))
        (low, high), (first, last) = y[order][[k, k + 1]], z[order][[k, k + 1]]
        raise ValueError(
            f"func takes the targets {low:g} and {high:g} to {first:g} and {last:g}, and others the other way round; "
            "it must be increasing, or decreasing, for quantiles of func(y) say nothing of quantiles of y otherwise."
        )
    return not np.any(down)
