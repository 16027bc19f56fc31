"""Which model inside pipelines and searches answers a method, and which arguments the method takes."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from sklearn.model_selection._search import BaseSearchCV

from infinitask._base.inner_model import inner_model


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
