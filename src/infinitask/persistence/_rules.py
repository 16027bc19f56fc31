"""Which attributes an object in a file may have, for writing and for reading alike.

An attribute never hides a method, a property or a name with two underscores. Dataclasses of this library have exactly
their declared fields, with values of the declared types.

Some parameters would let the author of a file act on the machine of its reader, since methods of a loaded model obey
its parameters: text vectorizers open files if ``input="filename"``, ``n_jobs`` starts processes, ``pre_dispatch`` is
evaluated, patterns can take forever. The rules apply to parameters by name, so they hold for every listed class that
has one, and for its subclasses.
"""

from __future__ import annotations

import inspect
import os
import re
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cached_property, lru_cache
from numbers import Integral, Real
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from infinitask.calibration import ClassScale, ConformalCalibration, CrossCalibration, Levels, ShareScale, Shift
from infinitask.field import Field
from infinitask.fitting._recipe import Recipe
from infinitask.kernels import InputKernel, TaskKernel
from infinitask.measures import Measure
from infinitask.persistence._names import is_listed, shown
from infinitask.solvers import Solution
from infinitask.tuning import OptunaSearch

ABSENT: Mapping[type[Any], Mapping[str, Any]] = {
    BaseEstimator: {"_skl_callbacks": MISSING},
    Pipeline: {"memory": None},
    OptunaSearch: {"storage": None, "study_": MISSING},
    Recipe: {"device": None},
}
"""Attributes that are never saved, and their values after a load. Callbacks belong to a process; two parameters name a
place on this machine; the study belongs to Optuna, and ``cv_results_`` has its trials; arrays come back on the
host."""

FITTED: Mapping[str, Any] = {
    "best_estimator_": BaseEstimator | None,
    "calibration_": ConformalCalibration | CrossCalibration | None,
    "class_scale_": ClassScale | None,
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
"""The types of fitted attributes of this library's estimators."""

NUMBERS: Mapping[Any, Any] = {bool: (bool, np.bool_), int: Integral, float: Real}
"""The types that are accepted as a number of the given type."""

LONGEST_TEXT = 200
"""The maximum length of an attribute's name, of a regular expression, and of a key that is a NumPy text."""

MAX_PARTS = 2**6
"""The maximum number of arguments of a partial call or of a distribution, and of parts of a dict key."""

MAX_NUMBER_KEYS = 2**10
"""The maximum number of dict keys that are not texts: numbers can be chosen such that all are compared pairwise."""

SCALARS = (type(None), bool, int, float, complex, str, bytes, np.generic)
"""The types that a key is made of."""


def check_state(cls: type[Any], state: Mapping[str, Any]) -> None:
    """Raise a ValueError if an object may not have these attributes."""
    _check_names(cls, state)
    check_parameters(cls, state)
    _check_types(cls, state)


def _check_names(cls: type[Any], names: Any) -> None:
    """Raise a ValueError if an attribute may not be set because it would hide a part of the class."""
    # an estimator has more attributes than its fields, which are its parameters
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
    """Whether a class attribute is a plain value that its objects may replace."""
    return not (name.startswith("_") or hasattr(type(found), "__get__") or callable(found))


def checked_keys(keys: list[Any]) -> list[Any]:
    """Return the keys; raise a ValueError if they cannot be the keys of a dict or a set in a file."""
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
    """A key in plain form: a NumPy text becomes the equal Python text, so that no rule for names misses it."""
    return str(key) if isinstance(key, np.str_) else key


def absent(cls: type[Any]) -> dict[str, Any]:
    """Attributes that are never saved, and their values after a load; MISSING: they are not set."""
    return {name: value for base, names in ABSENT.items() if issubclass(cls, base) for name, value in names.items()}


def completed(cls: type[Any], state: dict[str, Any]) -> dict[str, Any]:
    """The checked attributes of an object, with defaults for those that a file of an older version lacks."""
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
    """Raise a ValueError if an attribute of an object of this library has a wrong type; others are not checked."""
    if not is_own(cls):
        return
    hints = FITTED if issubclass(cls, BaseEstimator) else _hints(cls)
    for name, one in state.items():
        if name in hints and not fits(one, hints[name]):
            raise ValueError(f"{cls.__name__}.{name} is of type {type(one).__name__}")


def _with_defaults(cls: Any, state: dict[str, Any]) -> dict[str, Any]:
    """The attributes of an object of this library, completed by defaults."""
    makers: dict[str, Any] = {one.name: one.default_factory for one in fields(cls)} if is_dataclass(cls) else {}
    for name, parameter in _parameters(cls).items():
        if name not in state:
            if parameter.default is parameter.empty:
                raise ValueError(f"{cls.__name__} has no {name!r}")
            state[name] = parameter.default if makers.get(name, MISSING) is MISSING else makers[name]()
    return state


def fits(value: Any, hint: Any) -> bool:
    """Whether a value has the annotated type; the elements of containers are not checked."""
    if get_origin(hint) in (Union, types.UnionType):
        return any(fits(value, one) for one in get_args(hint))
    kind = get_origin(hint) or hint
    return hint is Any or not isinstance(kind, type) or isinstance(value, NUMBERS.get(kind, kind))


def is_own(cls: type[Any]) -> bool:
    """Whether a class is defined by this library."""
    return cls.__module__.partition(".")[0] == "infinitask"


@lru_cache(maxsize=256)
def _parameters(cls: type[Any]) -> Mapping[str, inspect.Parameter]:
    """The parameters of a class; finding them takes 50 µs."""
    return inspect.signature(cls).parameters


@lru_cache(maxsize=256)
def _hints(cls: type[Any]) -> dict[str, Any]:
    return get_type_hints(cls)


# ------------------------------------------------------------------ parameters that act on the machine
ENCODINGS = frozenset(
    ["ascii", "cp1252", "iso-8859-1", "iso-8859-15", "latin-1", "latin1", "utf-16", "utf-8", "utf-8-sig", "utf8"],
)
"""Allowed text encodings; Python imports a module for any other name."""

RESPONSES = frozenset(
    ["default", "predict", "predict_proba", "predict_log_proba", "decision_function", "score_samples"]
)
"""Methods that a scorer may call."""

DEVICE = re.compile(r"(cpu|cuda|mps|xpu)(:\d{1,3})?")
"""Device names of torch."""

VERSION = re.compile(r"[\w.+!-]{1,50}")
"""A version of scikit-learn; a warning shows it if it is not the installed one."""

PRE_DISPATCH = re.compile(r"all|(\d{1,3} ?\* ?)?n_jobs")
"""The number of waiting jobs of a search; joblib evaluates other texts."""

NEW_NAME = re.compile(r"([^{}]++|\{\{|\}\}|\{\})*+")
NAME_OUT = re.compile(r"([^{}]++|\{\{|\}\}|\{(transformer_name|feature_name)\})*+")
"""Format strings with names only: other fields read attributes or pad with spaces. Repetitions are possessive, since
others keep 150 bytes for each letter."""

MAX_REPEATS = 2
"""Repetitions in one alternative of a regular expression: each multiplies its time by the length of the text."""

TOKEN = re.compile(
    r"\\\D"  # an escaped character; a digit would refer to a group
    r"|\[\^?\]?(?:\\.|[^\]\\\[])*\]"  # a set of characters
    r"|\{\d{0,3}(?:,\d{0,3})?\}"  # number of repetitions
    r"|\(\?[ui]\)|\(\?(?:[:=!]|<[=!])|\((?!\?)"  # a flag, or the start of a group
    r"|[^\\\[{(]"
)
"""A token of a regular expression; a pattern with other tokens is not plain."""

PROCESSES = "n_jobs"
"""The parameter that sets the number of processes."""

SEARCHED = ("param_grid", "param_distributions", "space")
"""Parameters that define which other parameters a search sets."""

KEYWORDS = ("kw_args", "inv_kw_args", "kwargs", "_kwargs", "kernel_params")
"""Parameters that hold the keywords of a call."""


class Rule(NamedTuple):
    """What a parameter may be in a file: ``allows`` tests a value, ``expected`` describes it in an error."""

    allows: Callable[[Any], bool]
    expected: str


def is_plain_pattern(text: str) -> bool:
    """Whether a regular expression repeats only single characters and sets of them, at most twice per alternative.

    Repeated groups, repeated repetitions and references to groups can take time exponential in the length of the text.
    A pattern that is not understood here is not plain.
    """
    if len(text) > LONGEST_TEXT:
        return False
    depth, repeats, at, after_group = 0, 0, 0, False
    while at < len(text):
        found = TOKEN.match(text, at)
        if found is None:
            return False
        token, at = found.group(), found.end()
        if token[0] in "*+?{":
            repeats += 1
            if after_group or repeats > MAX_REPEATS:
                return False
        elif token == "|":
            repeats = repeats + 1 if depth else 0
        elif token[0] == "(" and not token.endswith(")"):
            depth += 1
        elif token == ")":
            depth -= 1
        # a repetition applies to one character or one set; lazy and possessive ones ("+?", "++") are not plain
        after_group = token[0] in ")(|*+?{"
    return depth == 0 and repeats <= MAX_REPEATS


def _is_number(value: Any) -> bool:
    return value is None or isinstance(value, (Real, np.bool_))


def _one_of(*values: Any) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, (str, type(None))) and value in values


def _matches(pattern: re.Pattern[str]) -> Callable[[Any], bool]:
    return lambda value: value is None or (type(value) is str and pattern.fullmatch(value) is not None)


def _is_pattern(value: Any) -> bool:
    return value is None or (type(value) is str and is_plain_pattern(value))


def _are_responses(value: Any) -> bool:
    names = value if type(value) in (tuple, list) else (value,)
    return all(type(name) is str and name in RESPONSES for name in names)


PLAIN_PATTERN = Rule(_is_pattern, "a pattern without repeated groups, with at most two repetitions")

RULES: Mapping[str, Rule] = {
    "_response_method": Rule(_are_responses, f"one of {', '.join(sorted(RESPONSES))}"),
    "device": Rule(_matches(DEVICE), "None or a device such as 'cpu' or 'cuda:0'"),
    "encoding": Rule(_one_of(*ENCODINGS), f"one of {', '.join(sorted(ENCODINGS))}"),
    "input": Rule(_one_of("content"), "'content', since a model from a file opens no files"),
    PROCESSES: Rule(lambda value: value is None or isinstance(value, Integral), "None or a whole number"),
    "on_interrupt": Rule(_one_of("raise", "best"), "'raise' or 'best'"),
    "pattern": PLAIN_PATTERN,
    "pre_dispatch": Rule(
        lambda value: isinstance(value, Integral) or _matches(PRE_DISPATCH)(value), "a number or such as '2*n_jobs'"
    ),
    "progress": Rule(_is_number, "True or False"),
    "rename_columns": Rule(
        lambda value: callable(value) or _matches(NEW_NAME)(value), "a function, or a text with {} for the name"
    ),
    "token_pattern": PLAIN_PATTERN,
    "verbose": Rule(_is_number, "a number"),
    "verbose_feature_names_out": Rule(
        lambda value: _is_number(value) or callable(value) or _matches(NAME_OUT)(value),
        "True, False, a function, or a text with {transformer_name} and {feature_name}",
    ),
}
"""The allowed values of parameters in a file, by name."""

NOT_SEARCHED = frozenset(
    name
    for name in {*RULES, "memory", "storage", *KEYWORDS} - {"verbose", "progress"}
    if not name.startswith("_")  # not a parameter of a constructor
)
"""Parameters that no search from a file may set: it would set them to values that no rule has checked."""


def check_parameters(cls: Any, state: Mapping[str, Any]) -> None:
    """Raise a ValueError if an object of a listed class has a parameter that would act on the machine of a reader."""
    version = state.get("_sklearn_version", "0")  # for any class, since scikit-learn prints it
    if type(version) is not str or not VERSION.fullmatch(version):
        raise ValueError(f"{cls.__name__} says that it is of scikit-learn {shown(version)}, which is no version")
    if not _is_guarded(cls):
        return
    for name in RULES.keys() & state.keys():
        if not RULES[name].allows(state[name]):
            raise ValueError(
                f"{cls.__name__}.{name} is {shown(state[name])}; in a file it must be {RULES[name].expected}"
            )
    for name in state.keys() & set(SEARCHED):
        for key in _keys(state[name]):
            if key.rpartition("__")[2] in NOT_SEARCHED:
                raise ValueError(
                    f"{cls.__name__}.{name} would set {shown(key)}, which no search in a file may set; save its "
                    "best_estimator_ instead"
                )
    for name in state.keys() & set(KEYWORDS):
        check_keywords(state[name], f"{cls.__name__}.{name}")


def check_keywords(keywords: Any, where: str) -> None:
    """Raise a ValueError if the keywords of a call would start processes."""
    if isinstance(keywords, dict) and PROCESSES in keywords:
        raise ValueError(f"{where} has {PROCESSES}, which no call in a file may have")


def bounded(cls: Any, state: dict[str, Any]) -> dict[str, Any]:
    """The attributes, with at most as many processes as this machine has cores: -1 stands for all of them."""
    jobs = state.get(PROCESSES) if _is_guarded(cls) else None
    if jobs is not None and jobs > (os.cpu_count() or 1):
        return {**state, PROCESSES: -1}
    return state


def _keys(searched: Any) -> Iterator[str]:
    """The names of parameters in the space of a search: a dict, or a list of dicts."""
    if searched is None or callable(searched):
        return
    for one in searched if type(searched) in (list, tuple) else (searched,):
        if not isinstance(one, dict):
            raise ValueError("the space of a search is neither a dict nor a list of dicts")
        for key in one:
            # scikit-learn also accepts other text types, such as NumPy's, as names of parameters
            if not isinstance(key, str):
                raise ValueError(f"the space of a search has the key {shown(key)}, which is no text")
            yield str.__str__(key)


@lru_cache(maxsize=512)
def _is_guarded(cls: Any) -> bool:
    return any(map(is_listed, cls.__mro__))
