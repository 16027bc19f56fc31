"""A search that answers every question that the model it has chosen answers."""

from __future__ import annotations

from typing import Any, Self

from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from infinitask.pipelines._passing import PassesOn
from infinitask.pipelines._tables import as_table


class TaskSearch(PassesOn, MetaEstimatorMixin, BaseEstimator):
    """A search of scikit-learn with all methods and fitted attributes of the model that it chooses.

    ``GridSearchCV(...).predict(X)`` takes no levels, costs or fractions, and a search has no ``predict_interval``.
    Around it, this one has both: ``predict(X, quantiles=…)``, ``conformalize``, ``roc_curve``, … are those of
    ``best_estimator_``, and ``best_params_``, ``cv_results_``, … those of the search.

    Parameters
    ----------
    search : search
        ``GridSearchCV``, ``RandomizedSearchCV``, ``HalvingGridSearchCV``,
        :class:`~infinitask.tuning.OptunaSearch`, … with ``refit``. It is copied.

    Attributes
    ----------
    search_ : search
        The fitted one.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from infinitask import InfiniteQuantileRegressor, TaskSearch
    >>> from infinitask.datasets import make_sine
    >>> X, y = make_sine(90, random_state=0)
    >>> grid = GridSearchCV(InfiniteQuantileRegressor(n_nodes=8), {"alpha": [1e-3, 10.0]}, cv=3)
    >>> model = TaskSearch(grid).fit(X[:60], y[:60])
    >>> model.best_params_, model.predict(X, quantiles=[0.1, 0.9]).shape
    ({'alpha': 0.001}, (90, 2))
    >>> model.conformalize(X[60:], y[60:]).predict_interval(X, coverage=0.8).shape
    (90, 2)
    """

    def __init__(self, search: Any) -> None:
        self.search = search

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Search, and fit the best model to all rows.

        Parameters
        ----------
        X : array or table (n, d)
        y : array (n,) or None
        **params
            Of ``fit`` of the search, such as ``sample_weight`` or ``groups``.
        """
        self.__dict__.pop("search_", None)
        if not (hasattr(self.search, "fit") and hasattr(self.search, "estimator")):
            raise TypeError(
                f"search={self.search!r} was given, which is no search; give one around the model, such as "
                "GridSearchCV(model, grid)."
            )
        search = clone(self.search).fit(as_table(X), y, **params)
        if not hasattr(search, "best_estimator_"):
            raise ValueError(f"search={self.search!r} was given, which fits no best model; give one with refit=True.")
        self.search_ = search
        return self

    def score(self, X: Any, y: Any = None) -> float:
        """The score of the best model, by the ``scoring`` of the search.

        Parameters
        ----------
        X : array or table (n, d)
        y : array (n,) or None
        """
        check_is_fitted(self)
        return float(self.search_.score(as_table(X), y))

    def _inside(self) -> Any:
        if "search_" in vars(self):
            return self.search_.best_estimator_
        return getattr(vars(self).get("search"), "estimator", None)

    def _asked(self, method: str, X: Any, arguments: tuple[Any, ...], params: dict[str, Any]) -> Any:
        check_is_fitted(self)
        best = self._inside()
        answer = getattr(best, method)(as_table(X), *arguments, **params)
        return self if answer is best else answer

    def __getattr__(self, name: str) -> Any:
        if name.endswith("_") and not name.startswith("_") and "search_" in vars(self) and hasattr(self.search_, name):
            return getattr(self.search_, name)
        return super().__getattr__(name)

    def __sklearn_tags__(self) -> Any:
        return get_tags(self.search)
