"""Quantile models as probabilistic regressors of skpro.

:class:`InfiniteQuantileProba` provides skpro's ``predict_proba``, ``predict_quantiles``, ``predict_interval`` and
``predict_var`` from one fit; it works in skpro's pipelines, searches and metrics.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone

from infinitask._base.arrays import HostArray
from infinitask._base.extras import not_installed
from infinitask._base.validation import number, numbers
from infinitask.estimators import InfiniteQuantileRegressor
from infinitask.predictive import QuantileDistribution

try:
    import pandas as pd
    from skpro.distributions.base import BaseDistribution
    from skpro.regression.base import BaseProbaRegressor
except ImportError as error:
    raise not_installed("infinitask.integrations.skpro needs skpro", "skpro") from error

__all__ = ["InfiniteQuantileProba"]

ASKED = ("fit", "predict", "predict_interval", "predict_distribution")
"""The methods that a model must have."""


class InfiniteQuantileProba(BaseProbaRegressor):
    """A probabilistic regressor of skpro: all quantiles, intervals and distributions from one quantile model.

    ``predict_quantiles`` and ``predict_interval`` are those of the model itself, for every level, without another fit.
    ``predict_proba`` is its ``predict_distribution`` as a distribution of skpro, with quantile functions that are
    sorted and linear between levels: ``cdf``, ``pdf``, ``mean``, ``var`` and the CRPS are those of
    :class:`~infinitask.predictive.QuantileDistribution`. ``predict`` is its mean and ``predict_var`` its variance.

    Parameters
    ----------
    estimator : estimator or None, default=None
        :class:`~infinitask.InfiniteQuantileRegressor`, :class:`~infinitask.InfiniteQuantileRegressorCV`, or a pipeline
        of :func:`~infinitask.make_pipeline` or :func:`~infinitask.tabular` that ends with one. It is cloned, not
        changed. None: :class:`~infinitask.InfiniteQuantileRegressor` with its defaults.

    Attributes
    ----------
    estimator_ : estimator
        The fitted model, for methods that skpro does not have.

    Examples
    --------
    >>> import pandas as pd
    >>> from infinitask import InfiniteQuantileRegressor
    >>> from infinitask.datasets import make_sine
    >>> from infinitask.integrations.skpro import InfiniteQuantileProba
    >>> X, y = make_sine(60, random_state=0)
    >>> X, y = pd.DataFrame(X, columns=["x"]), pd.DataFrame({"y": y})
    >>> model = InfiniteQuantileProba(InfiniteQuantileRegressor(n_nodes=10)).fit(X, y)
    >>> model.predict_interval(X, coverage=[0.5, 0.9]).shape
    (60, 4)
    >>> model.predict_proba(X).shape
    (60, 1)
    """

    _tags: ClassVar[dict[str, Any]] = {
        "capability:missing": False,
    }

    def __init__(self, estimator: Any = None) -> None:
        self.estimator = estimator
        super().__init__()

    def _fit(self, X: Any, y: Any) -> Self:
        model = InfiniteQuantileRegressor() if self.estimator is None else self.estimator
        missing = [name for name in ASKED if not hasattr(model, name)]
        if missing or isinstance(model, type):
            raise TypeError(
                f"estimator={model!r} was given"
                + (f"; it has no {', '.join(missing)}" if missing else ", which is a class")
                + ". Give a model of quantiles, such as InfiniteQuantileRegressor(), or a pipeline of make_pipeline "
                "that ends with one."
            )
        if y.shape[1] != 1:
            raise ValueError(
                f"y has {y.shape[1]} columns; a quantile model has one target. Fit one model for each column."
            )
        self.estimator_ = clone(model).fit(_named(X), y.iloc[:, 0].to_numpy())
        return self

    def _predict_proba(self, X: Any) -> QuantileCurveDistribution:
        found = self.estimator_.predict_distribution(_named(X))
        return QuantileCurveDistribution(found.levels, found.values, X.index, self._get_columns(method="predict"))

    def _predict_quantiles(self, X: Any, alpha: list[float]) -> Any:
        found = self.estimator_.predict(_named(X), quantiles=list(alpha))
        return pd.DataFrame(
            found, index=X.index, columns=self._get_columns(method="predict_quantiles", alpha=list(alpha))
        )

    def _predict_interval(self, X: Any, coverage: list[float]) -> Any:
        found = self.estimator_.predict_interval(_named(X), coverage=list(coverage)).reshape(len(X), -1)
        return pd.DataFrame(
            found, index=X.index, columns=self._get_columns(method="predict_interval", coverage=list(coverage))
        )

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Return parameters for skpro's tests, chosen for speed.

        Parameters
        ----------
        parameter_set : str
            Ignored: there is only one set.
        """
        quick: dict[str, Any] = {"n_nodes": 8, "tol": 1e-2, "task_gamma": 10.0}
        return [
            {"estimator": InfiniteQuantileRegressor(**quick)},
            {"estimator": InfiniteQuantileRegressor(noncrossing="rearrange", gamma="median", **quick)},
        ]


def _named(X: Any) -> Any:
    """X with all names as strings if only some are strings, which scikit-learn refuses."""
    of_text = [isinstance(name, str) for name in X.columns]
    return X.set_axis([str(name) for name in X.columns], axis=1) if any(of_text) and not all(of_text) else X


# ------------------------------------------------------------------------------------------------------ distributions
class QuantileCurveDistribution(BaseDistribution):
    """Distributions with piecewise linear quantile functions, as a distribution of skpro.

    skpro's own classes cannot hold a quantile function of a thousand levels without loss: ``QPD_Empirical`` turns it
    into steps, and ``HistogramQPD`` needs strictly increasing values and, for the CRPS, puts the mass of a bin at its
    middle.

    Each entry is one row of a :class:`~infinitask.predictive.QuantileDistribution`, which computes ``cdf``, ``pdf``,
    ``mean``, ``var`` and the CRPS. The mass beyond the first and the last level is at the first and the last value,
    where ``ppf`` is constant. ``energy`` is exact, so skpro's ``CRPS`` is exact too.

    Parameters
    ----------
    levels : array (k,)
        τ, ascending, in [0, 1], at least two; the same for all entries.
    values : array (k,), (n, k) or (n, c, k)
        Q(τ), nondecreasing along the last axis: for a single number, for n rows with one column, or for n rows with c
        columns.
    index : index of pandas or None
        Index of the n rows; None: 0, 1, …
    columns : index of pandas or None
        Index of the c columns; None: 0, 1, …

    Notes
    -----
    ``pmf`` is the jump of the cdf: at the ends if the levels do not reach 0 and 1, and wherever a quantile function is
    flat. The tag ``distr:measuretype`` is "continuous" if there is no jump, and "mixed" otherwise. ``pdf`` is the
    slope of the cdf over a window, which smooths jumps between the ends.

    Examples
    --------
    >>> from infinitask.integrations.skpro import QuantileCurveDistribution
    >>> uniform = QuantileCurveDistribution([0.0, 1.0], [[0.0, 1.0], [2.0, 6.0]], columns=["price"])
    >>> uniform.mean()
       price
    0    0.5
    1    4.0
    >>> uniform.iloc[[1]].ppf(0.25)
       price
    1    3.0
    >>> float(uniform.iat[1, 0].cdf(5.0))
    0.75
    """

    _tags: ClassVar[dict[str, Any]] = {
        "capabilities:approx": ["pdfnorm"],
        "capabilities:exact": ["mean", "var", "energy", "pdf", "log_pdf", "pmf", "cdf", "ppf"],
        "distr:paramtype": "nonparametric",
    }

    def __init__(self, levels: Any, values: Any, index: Any = None, columns: Any = None) -> None:
        self.levels, self.values = levels, values
        table = numbers("values", values)
        if table.ndim not in (1, 2, 3):
            raise ValueError(
                f"values of shape {table.shape} were given; they must have the shape (k,), (n, k) or (n, c, k), with "
                "the levels along the last axis."
            )
        self._curves = QuantileDistribution(levels, table.reshape(-1, table.shape[-1]))
        if table.ndim > 1:
            n, c = len(table), 1 if table.ndim == 2 else table.shape[1]
            index = pd.RangeIndex(n) if index is None else index
            columns = pd.RangeIndex(c) if columns is None else columns
            if (len(index), len(columns)) != (n, c):
                raise ValueError(
                    f"values for {n} rows and {c} columns were given with an index of {len(index)} and columns of "
                    f"{len(columns)}; the numbers must agree."
                )
        elif index is not None or columns is not None:
            raise ValueError("values of one number, (k,), were given with an index or columns; leave them out.")
        super().__init__(index=index, columns=columns)
        if not np.any(self._jumps()):
            exact = [name for name in self.get_tag("capabilities:exact") if name != "pmf"]
            self.set_tags(**{"distr:measuretype": "continuous", "capabilities:exact": exact})

    # ---------------------------------------------------------------------------------------------------- subsets
    def _loc(self, rowidx: Any = None, colidx: Any = None) -> Any:
        asked = [(key, own) for key, own in ((rowidx, self.index), (colidx, self.columns)) if key is not None]
        if all(isinstance(key, pd.Index) and key.is_unique and key.equals(own) for key, own in asked):
            return self  # skpro calls this before each function of a frame, and a copy has all levels
        for key, own in asked:
            labels = pd.Index([key] if np.isscalar(key) else key)
            comparable = labels.nlevels == own.nlevels  # partial labels of a MultiIndex are left to skpro
            if comparable and not labels.isin(own).all():  # skpro would take the last one
                missing = labels[~labels.isin(own)][0]
                raise KeyError(f"{missing!r} was asked for; it is not among the labels {own.to_list()[:5]!r}, ….")
        return super()._loc(rowidx, colidx)

    def _iloc(self, rowidx: Any = None, colidx: Any = None) -> Any:
        rows, columns = (
            None if places is None else np.arange(size)[places]  # skpro itself supports neither slices nor masks
            for size, places in zip(self._shape, (rowidx, colidx), strict=True)
        )
        return super()._iloc(rows, columns)

    def _subset_params(self, rowidx: Any, colidx: Any, coerce_scalar: bool = False) -> dict[str, Any]:
        values = self._curves.values.reshape(*self._shape, -1)
        values = values if rowidx is None else values[rowidx]
        return {"levels": self.levels, "values": values if colidx is None else values[..., colidx, :]}

    def _jumps(self) -> HostArray:
        """The jumps where the quantile functions are flat, with the mass beyond the levels: (entries, pieces)."""
        width, values = self._curves._pieces()
        return np.asarray((width > 0.0) & (values[:, 1:] == values[:, :-1]))

    # -------------------------------------------------------------------------------------------------- functions
    def _of_each(self, numbers_of_entries: HostArray) -> HostArray:
        return np.asarray(numbers_of_entries).reshape(self._shape)

    def _ppf(self, p: HostArray) -> HostArray:
        level = np.asarray(p, dtype=np.float64)
        if not np.all((level >= 0.0) & (level <= 1.0)):
            raise ValueError("p holds numbers outside of [0, 1], or NaN; a quantile has a level between 0 and 1.")
        return self._of_each(self._curves._curve.paired(level.ravel()))

    def _cdf(self, x: HostArray) -> HostArray:
        return self._of_each(self._curves.cdf(np.ravel(x)))

    def _pdf(self, x: HostArray) -> HostArray:
        return self._of_each(self._curves.pdf(np.ravel(x)))

    def _log_pdf(self, x: HostArray) -> HostArray:
        return _log(self._pdf(x))

    def _pmf(self, x: HostArray) -> HostArray:
        width, values = self._curves._pieces()
        return self._of_each((self._jumps() & (values[:, 1:] == np.ravel(x)[:, None])) @ width)

    def _log_pmf(self, x: HostArray) -> HostArray:
        return _log(self._pmf(x))

    def _mean(self) -> HostArray:
        return self._of_each(self._curves.mean())

    def _var(self) -> HostArray:
        return self._of_each(self._curves.variance())

    def _energy_self(self) -> HostArray:
        return self._of_rows(self._spread())

    def _energy_x(self, x: HostArray) -> HostArray:
        # CRPS(y) = E|X − y| − ½ E|X − Y|
        return self._of_rows(self._curves.crps(np.ravel(x)) + 0.5 * self._spread())

    def pdfnorm(self, a: float = 2) -> Any:
        """Compute ∫ f(x)^a dx = E f(X)^(a − 1), with f of :meth:`pdf`: by the midpoint rule over the levels.

        Parameters
        ----------
        a : float

        Returns
        -------
        data frame (n, c), or a number
        """
        number("a", a, low=0.0, open_low=False)
        low, high = self._curves.levels[[0, -1]]
        middle = low + (high - low) * (np.arange(200) + 0.5) / 200.0
        found = self._of_each((high - low) * np.mean(self._curves.pdf(self._curves.ppf(middle)) ** (a - 1.0), axis=1))
        return found[()] if self.ndim == 0 else pd.DataFrame(found, index=self.index, columns=self.columns)

    def _sample(self, n_samples: Any = None) -> Any:
        if n_samples is None:
            return super()._sample()
        sampled = self._curves.sample(n_samples).T  # all at once, from the state of np.random as in skpro
        if self.ndim == 0:
            return pd.DataFrame(sampled)
        index = pd.concat([pd.DataFrame(index=self.index)] * n_samples, keys=range(n_samples)).index
        return pd.DataFrame(sampled.reshape(-1, self._shape[1]), index=index, columns=self.columns)

    def _spread(self) -> HostArray:
        """E|X − Y| of each entry, from the CRPS at the first value v, E|X − v| − ½ E|X − Y|."""
        first = self._curves.values[:, 0]
        return np.asarray(np.maximum(2.0 * (self._curves.mean() - first - self._curves.crps(first)), 0.0))

    def _of_rows(self, numbers_of_entries: HostArray) -> HostArray:
        """The sum over the columns of each row, as in skpro's energy."""
        found = self._of_each(numbers_of_entries)
        return found if self.ndim == 0 else found.sum(axis=1, keepdims=True)

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Return parameters for skpro's tests: a table, one with mass at the ends, and a single number.

        Parameters
        ----------
        parameter_set : str
            Ignored: there is only one set.
        """
        levels = np.linspace(0.0, 1.0, 5)
        table = np.cumsum(np.arange(1.0, 31.0).reshape(3, 2, 5) % 7.0 + 0.5, axis=2)
        return [
            {"levels": levels, "values": table, "index": pd.Index([2, 5, 7]), "columns": pd.Index(["a", "b"])},
            {"levels": 0.1 + 0.8 * levels, "values": table[:, 0], "index": pd.RangeIndex(3), "columns": ["a"]},
            {"levels": levels, "values": table[0, 0]},
        ]


def _log(values: HostArray) -> HostArray:
    with np.errstate(divide="ignore"):
        return np.log(values)
