"""Which attributes an object may have in a file, for writing and for reading alike.

An attribute never hides a method, a property or a name with two underscores. Dataclasses of this library have their
declared fields and nothing else, of the types that they declare.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cached_property, lru_cache
from numbers import Integral, Real
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from infinitask.calibration import ConformalCalibration, CrossCalibration, Levels, ShareScale, Shift
from infinitask.field import Field
from infinitask.fitting._recipe import Recipe
from infinitask.kernels import InputKernel, TaskKernel
from infinitask.measures import Measure
from infinitask.persistence._harmless import LONGEST_TEXT, bounded, check_parameters
from infinitask.persistence._names import shown
from infinitask.solvers import Solution
from infinitask.tuning import OptunaSearch

ABSENT: Mapping[type[Any], Mapping[str, Any]] = {
    BaseEstimator: {"_skl_callbacks": MISSING},
    Pipeline: {"memory": None},
    OptunaSearch: {"storage": None, "study_": MISSING},
    Recipe: {"device": None},
}
"""Attributes that no file has, and what they are after a load. Callbacks belong to a process; two parameters say where
on this machine something is kept; the study belongs to Optuna, and ``cv_results_`` has its trials; arrays come back on
the host."""

FITTED: Mapping[str, Any] = {
    "best_estimator_": BaseEstimator | None,
    "calibration_": ConformalCalibration | CrossCalibration | None,
    "share_scale_": ShareScale | None,
    "field_": Field | None,
    "kernel_": InputKernel | None,
    "levels_": Levels | None,
    "measure_": Measure | None,
    "nodes_": np.ndarray | None,
    "recipe_": Recipe | None,
    "shift_": Shift | None,
    "solution_": Solution | None,
    "task_kernel_": TaskKernel | None,
    "weights_": np.ndarray | None,
}
"""What fitted attributes of this library's estimators are."""

NUMBERS: Mapping[Any, Any] = {bool: (bool, np.bool_), int: Integral, float: Real}
"""What counts as a number of a type."""

MAX_PARTS = 2**6
"""The most arguments of a partial call or of a distribution, and parts of a key of a dict."""

MAX_NUMBER_KEYS = 2**10
"""The most keys of a dict that are not texts: numbers can be chosen so that each is compared with all others."""

SCALARS = (type(None), bool, int, float, complex, str, bytes, np.generic)
"""What a key is made of."""


def check_state(cls: type[Any], state: Mapping[str, Any]) -> None:
    """A ValueError where an object may not have these attributes."""
    _check_names(cls, state)
    check_parameters(cls, state)
    _check_types(cls, state)


def _check_names(cls: type[Any], names: Any) -> None:
    """A ValueError where an attribute may not be set, because it would hide what the class does."""
    # an estimator holds more than its fields, which are its parameters
    has_fields = is_own(cls) and is_dataclass(cls) and not issubclass(cls, BaseEstimator)
    declared = [field.name for field in fields(cls)] if has_fields else []
    for name in names:
        if type(name) is not str or not name.isidentifier() or len(name) > LONGEST_TEXT:
            raise ValueError(f"{cls.__name__} has an attribute {shown(name)}, which is no name")
        found = inspect.getattr_static(cls, name, MISSING)
        if name in declared or isinstance(found, (cached_property, types.MemberDescriptorType)):
            continue
        if has_fields:
            raise ValueError(f"{cls.__name__} has an attribute {name!r}, which is not a field of it")
        if name.startswith("__") or not (found is MISSING or _is_value(name, found)):
            raise ValueError(f"{cls.__name__} has an attribute {name!r}, which would replace a part of its class")


def _is_value(name: str, found: Any) -> bool:
    """Whether what a class has under a name is a value that its objects may replace."""
    return not (name.startswith("_") or hasattr(type(found), "__get__") or callable(found))


def checked_keys(keys: list[Any]) -> list[Any]:
    """The same; a ValueError where values cannot be the keys of a dict or a set in a file."""
    numbers = 0
    for key in keys:
        parts = key if type(key) is tuple else (key,)
        if len(parts) > MAX_PARTS or not all(isinstance(part, SCALARS) for part in parts):
            raise ValueError("a key of a dict, or a member of a set, is not made of a few numbers and texts")
        if isinstance(key, np.str_) and len(key) > LONGEST_TEXT:
            raise ValueError(f"a key of a dict is a text of NumPy with {len(key)} characters, which is too long")
        numbers += type(key) is not str
    if numbers > MAX_NUMBER_KEYS:
        raise ValueError(
            f"a dict or a set has {numbers} keys that are not texts, and at most {MAX_NUMBER_KEYS} are allowed"
        )
    return keys


def plain_key(key: Any) -> Any:
    """A key as it is kept: a text of NumPy is Python's, to which it is equal, so that no rule for names misses it."""
    return str(key) if isinstance(key, np.str_) else key


def absent(cls: type[Any]) -> dict[str, Any]:
    """Attributes that no file has, and what they are after a load; MISSING: they are not set."""
    return {name: value for base, names in ABSENT.items() if issubclass(cls, base) for name, value in names.items()}


def completed(cls: type[Any], state: dict[str, Any]) -> dict[str, Any]:
    """The attributes of an object, checked, with defaults where a file of an older version has none."""
    unset = absent(cls)
    if forbidden := sorted(unset.keys() & state.keys()):
        raise ValueError(f"{cls.__name__} has {', '.join(forbidden)}, which a file may not set")
    check_state(cls, state)
    fixed = {name: value for name, value in unset.items() if value is not MISSING}
    state = bounded(cls, {**state, **fixed})
    return (
        _with_defaults(cls, state) if is_own(cls) and (is_dataclass(cls) or issubclass(cls, BaseEstimator)) else state
    )


def _check_types(cls: Any, state: Mapping[str, Any]) -> None:
    """A ValueError where an attribute of an object of this library is not what it must be; those of others are free."""
    if not is_own(cls):
        return
    hints = FITTED if issubclass(cls, BaseEstimator) else _hints(cls)
    for name, one in state.items():
        if name in hints and not fits(one, hints[name]):
            raise ValueError(f"{cls.__name__}.{name} is of type {type(one).__name__}")


def _with_defaults(cls: Any, state: dict[str, Any]) -> dict[str, Any]:
    """The attributes of an object of this library."""
    makers: dict[str, Any] = {one.name: one.default_factory for one in fields(cls)} if is_dataclass(cls) else {}
    for name, parameter in _parameters(cls).items():
        if name not in state:
            if parameter.default is parameter.empty:
                raise ValueError(f"{cls.__name__} has no {name!r}")
            state[name] = parameter.default if makers.get(name, MISSING) is MISSING else makers[name]()
    return state


def fits(value: Any, hint: Any) -> bool:
    """Whether a value has the type of an annotation; of containers, what they hold is not looked at."""
    if get_origin(hint) in (Union, types.UnionType):
        return any(fits(value, one) for one in get_args(hint))
    kind = get_origin(hint) or hint
    return hint is Any or not isinstance(kind, type) or isinstance(value, NUMBERS.get(kind, kind))


def is_own(cls: type[Any]) -> bool:
    """Whether this library defines a class."""
    return cls.__module__.partition(".")[0] == "infinitask"


@lru_cache(maxsize=256)
def _parameters(cls: type[Any]) -> Mapping[str, inspect.Parameter]:
    """The parameters of a class; to find them takes 50 µs."""
    return inspect.signature(cls).parameters


@lru_cache(maxsize=256)
def _hints(cls: type[Any]) -> dict[str, Any]:
    return get_type_hints(cls)
