"""One task of a model of many, as an estimator by itself."""

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
"""How the names of methods begin that a view has as well; none of them changes the model."""


class LevelView(MetaEstimatorMixin, BaseEstimator):
    """A model seen at one task: its ``predict`` takes X alone, as other libraries call it.

    Parameters
    ----------
    estimator : estimator
        Of this library, or a pipeline or search around one. A fitted one answers at once; ``fit`` of the view fits a
        clone and leaves it as it is.
    task : dict
        What is handed to each method that takes it, such as ``{"quantiles": 0.05}``.

    Attributes
    ----------
    estimator_ : estimator
        After ``fit`` of the view only: the clone. Fitted attributes of the model, such as ``n_features_in_``, can be
        read from the view.

    See Also
    --------
    infinitask.integrations.at_level : the short way to write it.
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
            Handed on, such as ``sample_weight``.
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
        """What the model predicts for this task.

        Parameters
        ----------
        X : array (n, d)
        """
        return self._asked("predict")(X)

    def _asked(self, name: str) -> Any:
        """A method of the model, with the task where it takes one."""
        model, taken = self._model(), _taken(self._model(), name, self.task)
        return partial(getattr(without_search(model) if taken else model, name), **taken)

    def __getattr__(self, name: str) -> Any:
        # called only where the view has no such attribute: answers of the model, and what its fit has learnt
        asks, learnt = name.startswith(ANSWERS), name.endswith("_") and not name.startswith("_")
        if "estimator" not in vars(self) or not (asks or learnt) or not hasattr(self._model(), name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return self._asked(name) if asks else getattr(self._model(), name)


def at_level(model: Any, **task: Any) -> LevelView:
    """One level of a model as an estimator, for libraries whose estimators have a ``predict(X)`` and no more.

    Conformal wrappers, SHAP, stacking, ``cross_val_predict`` and scorers of scikit-learn ask for ``predict(X)``. A view
    answers it with the task that is named here. All views of one fitted model share that one fit.

    Parameters
    ----------
    model : estimator
        Of this library, or a pipeline or search around one.
    task
        The task under the name that the model's ``predict`` has for it: ``quantiles=0.05``, ``expectiles=0.9``,
        ``theta=-0.5`` or ``nu=0.1``. One task, or a list for several columns.

    Returns
    -------
    LevelView
        A regressor where the model is one, likewise a classifier or a detector of outliers.

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
    """The part of a task that a method takes; of a pipeline or a search, that of the model inside."""
    known = model_and_arguments(model, name)[1]
    return {key: value for key, value in task.items() if key in known}


# ------------------------------------------------------------------------------------------------ which model answers
def without_search(model: Any) -> Any:
    """The model itself; of a search of scikit-learn, whose ``predict`` takes X alone, the one that it has chosen."""
    return inner_model(model, stop=lambda candidate: not isinstance(candidate, BaseSearchCV))


def model_and_arguments(model: Any, method: str) -> tuple[Any, Mapping[str, inspect.Parameter]]:
    """The model that names the arguments of a method, and these; none where it has no such method.

    Pipelines, searches and transformed targets hand arguments on.
    """

    def names_them(candidate: Any) -> bool:
        hands_on = any(one.kind is one.VAR_KEYWORD for one in _arguments(candidate, method).values())
        return not (hands_on or isinstance(candidate, BaseSearchCV))

    found = inner_model(model, stop=names_them)
    return found, _arguments(found, method)


def _arguments(model: Any, method: str) -> Mapping[str, inspect.Parameter]:
    own = getattr(model, method, None)
    return inspect.signature(own).parameters if callable(own) else {}
