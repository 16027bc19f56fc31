"""Which attributes an object may have in a file, for writing and for reading alike.

An attribute never hides a method, a property or a name with two underscores. Dataclasses of this library have their
declared fields and nothing else, of the types that they declare.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cached_property, lru_cache
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from infinitask.calibration._thresholds import Shift
from infinitask.field import Field
from infinitask.fitting._recipe import Recipe
from infinitask.kernels import InputKernel, TaskKernel
from infinitask.measures import Measure
from infinitask.persistence._harmless import bounded, check_parameters
from infinitask.persistence._shown import shown
from infinitask.predictive import ConformalCalibration, CrossCalibration, Levels, ShareScale
from infinitask.solvers import Solution
from infinitask.tuning import OptunaSearch

LEFT_OUT: tuple[tuple[type[Any], Mapping[str, Any]], ...] = (
    (Pipeline, {"memory": None}),
    (OptunaSearch, {"storage": None}),
)
"""Parameters that say where on this machine something is kept, and what they are after a load; no file has them."""

DROPPED: tuple[tuple[type[Any], frozenset[str]], ...] = ((OptunaSearch, frozenset({"study_"})),)
"""Fitted attributes that are not saved: the study belongs to Optuna, and ``cv_results_`` has its trials."""

FITTED: Mapping[str, tuple[type[Any], ...]] = {
    "best_estimator_": (BaseEstimator,),
    "calibration_": (ConformalCalibration, CrossCalibration),
    "share_scale_": (ShareScale,),
    "field_": (Field,),
    "kernel_": (InputKernel,),
    "levels_": (Levels,),
    "measure_": (Measure,),
    "nodes_": (np.ndarray,),
    "recipe_": (Recipe,),
    "shift_": (Shift,),
    "solution_": (Solution,),
    "task_kernel_": (TaskKernel,),
    "weights_": (np.ndarray,),
}
"""What fitted attributes of this library's estimators are, besides None."""

LONGEST_KEY = 16
"""Parts of a tuple that is a key of a dict: Python hashes a tuple anew each time."""

MAX_NUMBER_KEYS = 2**10
"""The most keys of a dict that are not texts: numbers can be chosen so that each is compared with all others."""

SCALARS = (type(None), bool, int, float, complex, str, bytes, np.generic)
"""What a key is made of."""

LONGEST_TEXT_KEY = 1000
"""Characters of a key that is a text of NumPy."""

LONGEST_NAME = 200
"""Characters of an attribute's name."""


def check_names(cls: type[Any], names: Any) -> None:
    """A ValueError where an attribute may not be set, because it would hide what the class does."""
    declared = _declared(cls) if is_own(cls) and is_dataclass(cls) else None
    for name in names:
        if type(name) is not str or not name.isidentifier() or len(name) > LONGEST_NAME:
            raise ValueError(f"{cls.__name__} has an attribute {shown(name)}, which is no name")
        if declared is not None:
            if name not in declared:
                raise ValueError(f"{cls.__name__} has an attribute {name!r}, which is not a field of it")
            continue
        found = inspect.getattr_static(cls, name, MISSING)
        kept = found is MISSING or isinstance(found, (cached_property, types.MemberDescriptorType))
        if name.startswith("__") or not (kept or _is_value(name, found)):
            raise ValueError(f"{cls.__name__} has an attribute {name!r}, which would replace a part of its class")


def _is_value(name: str, found: Any) -> bool:
    """Whether what a class has under a name is a value that its objects may replace."""
    return not (name.startswith("_") or hasattr(type(found), "__get__") or callable(found))


def check_keys(keys: Any) -> None:
    """A ValueError where values cannot be the keys of a dict or a set in a file."""
    numbers = 0
    for key in keys:
        parts = key if type(key) is tuple else (key,)
        if len(parts) > LONGEST_KEY or not all(isinstance(part, SCALARS) for part in parts):
            raise ValueError("a key of a dict, or a member of a set, is not made of a few numbers and texts")
        if isinstance(key, np.str_) and len(key) > LONGEST_TEXT_KEY:
            raise ValueError(f"a key of a dict is a text of NumPy with {len(key)} characters, which is too long")
        numbers += type(key) is not str
    if numbers > MAX_NUMBER_KEYS:
        raise ValueError(
            f"a dict or a set has {numbers} keys that are not texts, and at most {MAX_NUMBER_KEYS} are allowed"
        )


def plain_key(key: Any) -> Any:
    """A key as it is kept: a text of NumPy is Python's, to which it is equal, so that no rule for names misses it."""
    return str(key) if isinstance(key, np.str_) else key


def left_out(cls: type[Any]) -> tuple[Mapping[str, Any], frozenset[str]]:
    """Attributes that no file has: those that are set to a value when an object is made, and all of them."""
    fixed = {name: value for base, names in LEFT_OUT if issubclass(cls, base) for name, value in names.items()}
    dropped = frozenset(name for base, names in DROPPED if issubclass(cls, base) for name in names)
    return fixed, dropped | fixed.keys()


def completed(cls: type[Any], state: dict[str, Any]) -> dict[str, Any]:
    """The attributes of an object, checked, with defaults where a file of an older version has none."""
    check_names(cls, state)
    fixed, absent = left_out(cls)
    if absent & state.keys():
        raise ValueError(f"{cls.__name__} has {', '.join(sorted(absent & state.keys()))}, which a file may not set")
    check_parameters(cls, state)
    check_types(cls, state)
    state = bounded(cls, {**state, **fixed})
    if is_own(cls) and is_dataclass(cls):
        missing = [field for field in fields(cls) if field.name not in state]
        return state | {field.name: _default(cls, field) for field in missing}
    return _with_defaults(cls, state) if is_own(cls) and issubclass(cls, BaseEstimator) else state


def check_types(cls: type[Any], state: Mapping[str, Any]) -> None:
    """A ValueError where an attribute of an object of this library is not what it must be; those of others are free."""
    if not is_own(cls):
        return
    wrong: list[str] = []
    if is_dataclass(cls):
        hints = _hints(cls)
        known = [field.name for field in fields(cls) if field.name in state]
        wrong = [name for name in known if not fits(state[name], hints.get(name, Any))]
    elif issubclass(cls, BaseEstimator):
        wrong = [name for name, kinds in FITTED.items() if not isinstance(state.get(name), (*kinds, type(None)))]
    if wrong:
        raise ValueError(f"{cls.__name__}.{wrong[0]} is of type {type(state[wrong[0]]).__name__}")


def _with_defaults(cls: Any, state: dict[str, Any]) -> dict[str, Any]:
    """The attributes of an estimator of this library."""
    for name, parameter in _parameters(cls).items():
        if name not in state:
            if parameter.default is parameter.empty:
                raise ValueError(f"{cls.__name__} has no {name!r}")
            state[name] = parameter.default
    return state


def fits(value: Any, hint: Any) -> bool:
    """Whether a value has the type of an annotation; of containers, what they hold is not looked at."""
    if hint is Any or hint is object:
        return True
    if hint is None:
        return value is None
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return any(fits(value, one) for one in get_args(hint))
    if origin is Callable:
        return callable(value)
    if hint is float:
        return isinstance(value, (float, int, np.floating, np.integer)) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, (int, np.integer))
    if hint is bool:
        return isinstance(value, (bool, np.bool_))
    kind = hint if origin is None else origin
    return isinstance(value, kind) if isinstance(kind, type) else True


def is_own(cls: type[Any]) -> bool:
    """Whether this library defines a class."""
    return cls.__module__.partition(".")[0] == "infinitask"


@lru_cache(maxsize=256)
def _declared(cls: type[Any]) -> frozenset[str]:
    """The fields of a dataclass, and what it computes once and keeps."""
    kept = (name for base in cls.__mro__ for name, found in vars(base).items() if isinstance(found, cached_property))
    return frozenset(field.name for field in fields(cls)) | frozenset(kept)


@lru_cache(maxsize=256)
def _parameters(cls: type[Any]) -> Mapping[str, inspect.Parameter]:
    """The parameters of a class; to find them takes 50 µs."""
    return inspect.signature(cls).parameters


@lru_cache(maxsize=256)
def _hints(cls: type[Any]) -> dict[str, Any]:
    return get_type_hints(cls)


def _default(cls: type[Any], field: Any) -> Any:
    if field.default is not MISSING:
        return field.default
    if field.default_factory is not MISSING:
        return field.default_factory()
    raise ValueError(f"{cls.__name__} has no {field.name!r}")
