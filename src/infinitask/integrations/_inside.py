"""The model inside pipelines and searches: who answers, and what its methods can be asked."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from sklearn.model_selection._search import BaseSearchCV

HELD = ("best_estimator_", "regressor_", "search", "estimator", "regressor")
"""Where a wrapper has its model; fitted ones first."""


def answering(model: Any) -> Any:
    """The model itself; of a search of scikit-learn, whose ``predict`` takes X alone, the one that it has chosen."""
    while isinstance(model, BaseSearchCV) and hasattr(model, "best_estimator_"):
        model = model.best_estimator_
    return model


def asked(model: Any, method: str) -> tuple[Any, Mapping[str, inspect.Parameter]]:
    """The model that names the arguments of a method, and these; none where it has no such method.

    Pipelines, searches and transformed targets hand arguments on.
    """
    own = getattr(model, method, None)
    known = {} if not callable(own) else inspect.signature(own).parameters
    hands_on = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in known.values())
    inside = _held(model) if hands_on or isinstance(model, BaseSearchCV) else None
    return (model, known) if inside is None else asked(inside, method)


def _held(model: Any) -> Any:
    steps = getattr(model, "steps", None)
    if steps:
        return steps[-1][1]
    return next((getattr(model, name) for name in HELD if getattr(model, name, None) is not None), None)
