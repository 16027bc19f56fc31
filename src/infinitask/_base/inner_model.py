"""The model inside pipelines, searches, self-tuned models and transformed targets."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any


def inner_model(estimator: Any, stop: Callable[[Any], bool] | None = None) -> Any:
    """Return the model inside an estimator, through any number of wrappers; an estimator without wrappers is returned.

    ========================  =========================================================
    wrapper                   location of its model
    ========================  =========================================================
    pipeline                  the last of ``steps``
    transformed target        ``estimator_`` or ``regressor_``, before the fit ``estimator`` or ``regressor``
    self-tuned model          ``best_estimator_``; before the fit it contains none
    search                    ``best_estimator_``, before the fit ``search`` or ``estimator``
    ========================  =========================================================

    Wrappers are identified by these attributes, so those of other libraries are unwrapped too. Ensembles, which also
    have an ``estimator_``, are not unwrapped.

    Parameters
    ----------
    estimator : estimator
    stop : callable or None
        The first model for which ``stop(model)`` is true is returned, even if it contains another model.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sklearn.svm import SVR
    >>> inner_model(GridSearchCV(make_pipeline(StandardScaler(), SVR()), {}))
    SVR()
    """
    return steps_and_model(estimator, stop)[1]


def steps_and_model(estimator: Any, stop: Callable[[Any], bool] | None = None) -> tuple[list[tuple[str, Any]], Any]:
    """Return the named steps that transform rows before the model, and the model; see `inner_model` for parameters."""
    steps: list[tuple[str, Any]] = []
    while not (stop is not None and stop(estimator)) and (inside := _held(estimator)) is not None:
        before = getattr(estimator, "steps", ())[:-1]
        steps += [(name, step) for name, step in before if step is not None and step != "passthrough"]
        estimator = inside
    return steps, estimator


def _held(model: Any) -> Any:
    """Return the model directly inside; None if there is none."""
    # steps and transformed targets first: they forward ``best_estimator_`` of the inner model
    if getattr(model, "steps", None):
        return model.steps[-1][1]
    places = ["best_estimator_"]
    if hasattr(model, "inverse_func"):
        places = ["estimator_", "regressor_", "estimator", "regressor"]
    elif hasattr(model, "refit") or hasattr(model, "search"):
        places += ["search", "estimator"]
    return next((getattr(model, name) for name in places if getattr(model, name, None) is not None), None)


def takes(estimator: Any, name: str) -> bool:
    """Whether ``predict`` of the estimator has an argument of this name, or forwards it."""
    predict = getattr(estimator, "predict", None)
    known = {} if predict is None else inspect.signature(predict).parameters
    return name in known or any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values())
