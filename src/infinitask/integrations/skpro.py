"""Quantile models as probabilistic regressors of skpro.

:class:`InfiniteQuantileProba` has skpro's ``predict_proba``, ``predict_quantiles``, ``predict_interval`` and
``predict_var`` from one fit; its pipelines, searches and metrics take it as one of their own.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

from sklearn.base import clone

from infinitask.estimators import InfiniteQuantileRegressor
from infinitask.integrations._extras import not_installed

try:
    import pandas as pd
    from skpro.regression.base import BaseProbaRegressor

    from infinitask.integrations._quantile_curves import QuantileCurveDistribution as QuantileCurveDistribution
except ImportError as error:
    raise not_installed("infinitask.integrations.skpro needs skpro", "skpro") from error

__all__ = ["InfiniteQuantileProba"]

ASKED = ("fit", "predict", "predict_interval", "predict_distribution")
"""What a model must answer."""


class InfiniteQuantileProba(BaseProbaRegressor):
    """A quantile model as a probabilistic regressor of skpro: all quantiles, intervals and distributions from one fit.

    ``predict_quantiles`` and ``predict_interval`` are those of the model itself, for every level, without another fit.
    ``predict_proba`` is its ``predict_distribution`` as a distribution of skpro, in which quantile functions are sorted
    and linear between levels: ``cdf``, ``pdf``, ``mean``, ``var`` and the CRPS are those of
    :class:`~infinitask.predictive.QuantileDistribution`. ``predict`` is its mean and ``predict_var`` its variance.

    Parameters
    ----------
    estimator : estimator or None, default=None
        :class:`~infinitask.InfiniteQuantileRegressor`, :class:`~infinitask.InfiniteQuantileRegressorCV`, or a pipeline
        of :func:`~infinitask.make_pipeline` or :func:`~infinitask.tabular` that ends with one. It is copied, not
        changed. None: :class:`~infinitask.InfiniteQuantileRegressor` with its defaults.

    Attributes
    ----------
    estimator_ : estimator
        The fitted model, which can be asked for all that skpro has no name for.

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
        "capability:multioutput": False,
        "X_inner_mtype": "pd_DataFrame_Table",
        "y_inner_mtype": "pd_DataFrame_Table",
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

    def _predict(self, X: Any) -> Any:
        mean = self.estimator_.predict_distribution(_named(X)).mean()
        return pd.DataFrame(mean, index=X.index, columns=self._get_columns(method="predict"))

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
        """Parameters for skpro's tests, quick ones.

        Parameters
        ----------
        parameter_set : str
            Ignored: there is one set.
        """
        quick: dict[str, Any] = {"n_nodes": 8, "tol": 1e-2, "task_gamma": 10.0}
        return [
            {"estimator": InfiniteQuantileRegressor(**quick)},
            {"estimator": InfiniteQuantileRegressor(noncrossing="rearrange", gamma="median", **quick)},
        ]


def _named(X: Any) -> Any:
    """X, with strings as names where some are strings and some are not, which scikit-learn refuses."""
    of_text = [isinstance(name, str) for name in X.columns]
    return X.set_axis([str(name) for name in X.columns], axis=1) if any(of_text) and not all(of_text) else X
