"""Meta-estimators that delegate to an inner model, such as a search to its best model."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import wraps
from typing import Any, Self, TypeVar, cast

from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from infinitask.pipelines._tables import as_table

Method = TypeVar("Method", bound=Callable[..., Any])


def where_inside_has(name: str) -> Callable[[Method], Method]:
    """Decorate a method that is available only if the inner model has a method of that name."""

    def check(model: Any) -> bool:
        getattr(model._inside(), name)  # raises the AttributeError of the inner model
        return True

    return cast(Callable[[Method], Method], available_if(check))


class PassesOn(ABC):
    """Base class of meta-estimators with all methods and fitted attributes of the inner model that they do not define.

    A subclass defines the inner model and how a call with rows X reaches it. It must inherit from this class before
    those of scikit-learn.
    """

    @abstractmethod
    def _inside(self) -> Any:
        """Return the inner model; None if this one has no parameters yet."""

    @abstractmethod
    def _asked(self, method: str, X: Any, arguments: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Call a method of the inner model on rows X; return this model if the method returns the inner one."""

    def __getattr__(self, name: str) -> Any:
        # called only if this object has no such attribute, or if a property of its class raised an AttributeError
        missing = AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if name.startswith("_") or name.endswith("_request") or hasattr(type(self), name):
            raise missing
        inside = self._inside()
        found = getattr(inside, name, missing)
        if found is missing:
            raise missing
        if name.endswith("_"):
            return found
        if not callable(found) or name in getattr(inside, "get_params", dict)():
            raise missing
        return self._passed_on(name, found)

    def _passed_on(self, name: str, method: Any) -> Any:
        """Wrap a method of the inner model as a method of this model."""
        takes_rows = next(iter(inspect.signature(method).parameters), None) == "X"

        @wraps(method)
        def passed_on(*arguments: Any, **params: Any) -> Any:
            if takes_rows and (arguments or "X" in params):
                X = params.pop("X") if "X" in params else arguments[0]
                return self._asked(name, X, arguments[1:], params)
            result = method(*arguments, **params)  # without rows, it raises its own error
            return self if result is self._inside() else result

        return passed_on

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(name for name in dir(self._inside()) if not name.startswith("_"))})


class TaskSearch(PassesOn, MetaEstimatorMixin, BaseEstimator):
    """A search of scikit-learn with all methods and fitted attributes of its best model.

    ``GridSearchCV(...).predict(X)`` takes no levels, costs or fractions, and a search has no ``predict_interval``.
    A ``TaskSearch`` around it has both: ``predict(X, quantiles=…)``, ``conformalize``, ``roc_curve``, … are those of
    ``best_estimator_``, and ``best_params_``, ``cv_results_``, … are those of the search.

    Parameters
    ----------
    search : search
        ``GridSearchCV``, ``RandomizedSearchCV``, ``HalvingGridSearchCV``,
        :class:`~infinitask.tuning.OptunaSearch`, … with ``refit``. It is cloned.

    Attributes
    ----------
    search_ : search
        The fitted search.

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
        """Search for the best parameters, and fit the best model to all rows.

        Parameters
        ----------
        X : array or table (n, d)
        y : array (n,) or None
        **params
            Parameters of ``fit`` of the search, such as ``sample_weight`` or ``groups``.
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
        """Return the score of the best model, by the ``scoring`` of the search.

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
        result = getattr(best, method)(as_table(X), *arguments, **params)
        return self if result is best else result

    def __getattr__(self, name: str) -> Any:
        if name.endswith("_") and not name.startswith("_") and "search_" in vars(self) and hasattr(self.search_, name):
            return getattr(self.search_, name)
        return super().__getattr__(name)

    def __sklearn_tags__(self) -> Any:
        return get_tags(self.search)
