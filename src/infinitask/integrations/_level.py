"""One task of a multi-task model as a separate estimator."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import partial
from typing import Any, Self

from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import _is_fitted

from infinitask._base.inner_model import inner_model

ANSWERS = ("decision_function", "predict", "sample", "score")
"""Prefixes of the methods that a view also has; none of them changes the model."""


class LevelView(MetaEstimatorMixin, BaseEstimator):
    """View a model at one task: its ``predict`` takes X alone, as other libraries call it.

    Parameters
    ----------
    estimator : estimator
        An estimator of this library, or a pipeline or search around one. If it is fitted, the view predicts at once;
        ``fit`` of the view fits a clone and does not change it.
    task : dict
        Arguments passed to each method that takes them, such as ``{"quantiles": 0.05}``.

    Attributes
    ----------
    estimator_ : estimator
        The fitted clone, only after ``fit`` of the view. Fitted attributes of the model, such as ``n_features_in_``,
        are available on the view.

    See Also
    --------
    infinitask.integrations.at_level : A shorter way to create a view.
    """

    def __init__(self, estimator: Any, task: dict[str, Any]) -> None:
        self.estimator = estimator
        self.task = task

    def fit(self, X: Any, y: Any = None, **fit_params: Any) -> Self:
        """Fit a clone of the model.

        Parameters
        ----------
        X : array (n, d)
        y : array (n,) or None
        fit_params
            Passed to ``fit`` of the model, such as ``sample_weight``.
        """
        self.estimator_ = clone(self.estimator).fit(X, y, **fit_params)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return bool(_is_fitted(self._model()))

    def __sklearn_tags__(self) -> Tags:
        return get_tags(self.estimator)

    def _model(self) -> Any:
        return vars(self).get("estimator_", self.estimator)

    def predict(self, X: Any) -> Any:
        """Predict for this task.

        Parameters
        ----------
        X : array (n, d)
        """
        return self._asked("predict")(X)

    def _asked(self, name: str) -> Any:
        """A method of the model, with the task as arguments if it takes them."""
        model, taken = self._model(), _taken(self._model(), name, self.task)
        return partial(getattr(without_search(model) if taken else model, name), **taken)

    def __getattr__(self, name: str) -> Any:
        # called only if the view has no such attribute: prediction methods and fitted attributes of the model
        asks, learnt = name.startswith(ANSWERS), name.endswith("_") and not name.startswith("_")
        if "estimator" not in vars(self) or not (asks or learnt) or not hasattr(self._model(), name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return self._asked(name) if asks else getattr(self._model(), name)


def at_level(model: Any, **task: Any) -> LevelView:
    """Wrap one level of a model as an estimator, for libraries that only call ``predict(X)``.

    Conformal wrappers, SHAP, stacking, ``cross_val_predict`` and scorers of scikit-learn call ``predict(X)``. The view
    adds the task given here. All views of one fitted model share one fit.

    Parameters
    ----------
    model : estimator
        An estimator of this library, or a pipeline or search around one.
    task
        The task, under its name in the model's ``predict``: ``quantiles=0.05``, ``expectiles=0.9``, ``theta=-0.5`` or
        ``nu=0.1``. One task, or a list for several columns.

    Returns
    -------
    LevelView
        A regressor if the model is one, and likewise for a classifier or an outlier detector.

    Examples
    --------
    >>> from infinitask import InfiniteQuantileRegressor
    >>> from infinitask.datasets import make_sine
    >>> from infinitask.integrations import at_level
    >>> X, y = make_sine(80, random_state=0)
    >>> model = InfiniteQuantileRegressor(n_nodes=10).fit(X, y)
    >>> low, high = at_level(model, quantiles=0.05), at_level(model, quantiles=0.95)
    >>> bool((low.predict(X) < high.predict(X)).all())
    True
    """
    if not task:
        raise TypeError("at_level(model) was called without a task; name one, as in at_level(model, quantiles=0.05).")
    if not callable(getattr(model, "predict", None)):
        raise TypeError(f"{type(model).__name__} was given, which has no predict; give an estimator of this library.")
    unknown = set(task) - set(_taken(model, "predict", task))
    if unknown:
        raise TypeError(
            f"{', '.join(sorted(unknown))} was given, and predict of {type(model).__name__} takes no such task; name "
            "the task as its predict does, such as quantiles, expectiles, theta or nu."
        )
    return LevelView(model, task)


def _taken(model: Any, name: str, task: dict[str, Any]) -> dict[str, Any]:
    """The part of a task that a method takes; for a pipeline or a search, the method of the model inside."""
    known = model_and_arguments(model, name)[1]
    return {key: value for key, value in task.items() if key in known}


# --------------------------------------------------------------------------------------------------- the model inside
def without_search(model: Any) -> Any:
    """The model itself; for a search of scikit-learn, whose ``predict`` takes X alone, the model that it selected."""
    return inner_model(model, stop=lambda candidate: not isinstance(candidate, BaseSearchCV))


def model_and_arguments(model: Any, method: str) -> tuple[Any, Mapping[str, inspect.Parameter]]:
    """The model that names the arguments of a method, and these arguments; empty if it has no such method.

    Pipelines, searches and transformed targets pass arguments on.
    """

    def names_them(candidate: Any) -> bool:
        passes_on = any(one.kind is one.VAR_KEYWORD for one in _arguments(candidate, method).values())
        return not (passes_on or isinstance(candidate, BaseSearchCV))

    found = inner_model(model, stop=names_them)
    return found, _arguments(found, method)


def _arguments(model: Any, method: str) -> Mapping[str, inspect.Parameter]:
    own = getattr(model, method, None)
    return inspect.signature(own).parameters if callable(own) else {}
