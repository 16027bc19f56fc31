"""A model around another one: what it does not do itself, the one inside answers."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from sklearn.utils.metaestimators import available_if

Method = TypeVar("Method", bound=Callable[..., Any])


def where_inside_has(name: str) -> Callable[[Method], Method]:
    """A method that is there only where the model inside has one of that name."""

    def check(model: Any) -> bool:
        getattr(model._inside(), name)  # its own AttributeError is the one to see
        return True

    return cast(Callable[[Method], Method], available_if(check))


class PassesOn(ABC):
    """Has all methods and fitted attributes of the model inside, but for those that it has itself.

    A subclass says which model that is, and how a question with rows X reaches it. It names this class before those of
    scikit-learn.
    """

    @abstractmethod
    def _inside(self) -> Any:
        """The model that answers; None while this one has no parameters yet."""

    @abstractmethod
    def _asked(self, method: str, X: Any, arguments: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """The answer of the model inside to a question about rows X; this model where it answers with itself."""

    def __getattr__(self, name: str) -> Any:
        # called only where there is no such attribute here; properties of the class may say so themselves
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
        """A method of the model inside as one of this model."""
        takes_rows = next(iter(inspect.signature(method).parameters), None) == "X"

        @wraps(method)
        def passed_on(*arguments: Any, **params: Any) -> Any:
            if takes_rows and (arguments or "X" in params):
                X = params.pop("X") if "X" in params else arguments[0]
                return self._asked(name, X, arguments[1:], params)
            answer = method(*arguments, **params)  # without rows, its own error is the one to see
            return self if answer is self._inside() else answer

        return passed_on

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(name for name in dir(self._inside()) if not name.startswith("_"))})
