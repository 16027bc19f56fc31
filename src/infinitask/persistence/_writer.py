"""A model as a table of entries and its arrays."""

from __future__ import annotations

import base64
import math
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import Enum
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np
from array_api_compat import is_cupy_array, is_jax_array, is_torch_array

from infinitask._base.arrays import HostArray, to_host
from infinitask.fitting._recipe import Recipe
from infinitask.persistence._allowance import Repeats
from infinitask.persistence._harmless import check_parameters
from infinitask.persistence._names import (
    TYPES,
    is_named_tuple,
    name_of_class,
    name_of_function,
    qualified,
)
from infinitask.persistence._rules import DTYPE, absent, check_keys, check_names, check_types, plain_key
from infinitask.persistence._special import SPECIAL

NATIVE = frozenset(["b1", "f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])
"""Numbers that safetensors knows; arrays of others are written as bytes, with the name of their type."""


class Writer:
    """Turns a model into entries: lists ``[kind, ...]`` that refer to entries before them as ``[number]``.

    An object that appears twice is written once.

    Attributes
    ----------
    entries : list
    arrays : dict
        Arrays by their names.
    """

    def __init__(self) -> None:
        self.entries: list[list[Any]] = []
        self.arrays: dict[str, HostArray] = {}
        self._known: dict[int, tuple[int, Any]] = {}
        self._repeats = Repeats()
        self._open: dict[int, Any] = {}

    def value(self, value: Any, path: str) -> Any:
        """What stands for a value inside an entry: itself, or ``[number]``; ``path`` is where it was found."""
        kind = type(value)
        if value is None or kind is bool or kind is int or kind is str:
            return value
        if kind is float and math.isfinite(value):
            return value
        if id(value) in self._known:
            return [self._known[id(value)][0]]
        if id(value) in self._open:
            raise ValueError(f"{path} holds itself, and cannot be saved; break the circle before you save.")
        self._open[id(value)] = value
        entry = self._entry(value, path)
        del self._open[id(value)]
        self.entries.append(entry)
        # with the object, so that no other gets its address while we write
        self._known[id(value)] = len(self.entries) - 1, value
        return [len(self.entries) - 1]

    def _values(self, values: Any, path: str) -> list[Any]:
        return [self.value(one, f"{path}[{k}]") for k, one in enumerate(values)]

    def _pairs(self, pairs: Any, path: str) -> list[Any]:
        found: list[Any] = []
        _checked(check_keys, path, [key for key, _ in pairs])
        for key, one in pairs:
            found += [self.value(plain_key(key), f"{path}.key"), self.value(one, f"{path}[{key!r}]")]
        return found

    def _entry(self, value: Any, path: str) -> list[Any]:
        kind = type(value)
        if kind is float:
            return ["float", repr(value)]
        if kind is complex:
            return ["complex", value.real.hex(), value.imag.hex()]
        if kind is bytes:
            return ["bytes", base64.b64encode(value).decode("ascii")]
        if kind in (list, tuple, set, frozenset):
            if kind in (set, frozenset):
                _checked(check_keys, path, value)
            return [kind.__name__, self._values(value, path)]
        if kind is dict:
            return ["dict", self._pairs(value.items(), path)]
        if isinstance(value, np.dtype):
            return ["dtype", _checked_dtype(value, path).str]
        if isinstance(value, np.generic):
            number = np.asarray(value)
            return ["scalar", _checked_dtype(number.dtype, path).str, number.tobytes().hex()]
        if kind is np.ndarray:
            return self._array(value, path)
        if is_torch_array(value) or is_cupy_array(value) or is_jax_array(value):
            return self._array(to_host(value), path)
        if isinstance(value, type):
            return ["type", _name_of_type(value, path)]
        if isinstance(value, (FunctionType, BuiltinFunctionType, MethodType, np.ufunc)):
            return ["function", _function(value, path)]
        for name, special in SPECIAL.items():
            if special.fits(value):
                parts = _checked(special.parts, path, value)
                _checked(special.make, path, *parts)  # what a load would refuse is not saved
                _checked(self._repeats.count, path, parts)
                return [name, self._values(parts, path)]
        return self._object(value, path)

    def _object(self, value: Any, path: str) -> list[Any]:
        cls = type(value)
        name = name_of_class(cls)
        if name is None:
            raise TypeError(
                f"{path} is of the class {qualified(cls)}, which infinitask does not save; if its objects are made of "
                "attributes, call infinitask.persistence.register with the class first, here and where you load."
            )
        if isinstance(value, Enum):
            return ["enum", name, value.name]
        if is_named_tuple(cls):
            return ["named", name, self._values(value, path)]
        if isinstance(value, dict):
            if cls is not OrderedDict and getattr(value, "__dict__", None):
                raise TypeError(f"{path} is a {cls.__name__} with attributes of its own, which cannot be saved.")
            return ["mapping", name, self._pairs(value.items(), path)]
        state = _state(value, path)
        _checked(check_names, path, cls, state)
        unset = absent(cls)
        written = {key: one for key, one in state.items() if key not in unset}
        _checked(check_parameters, path, cls, written)
        _checked(check_types, path, cls, written)  # what a load would refuse is not saved
        found: list[Any] = []
        for attribute, one in written.items():
            found += [attribute, self.value(one, f"{path}.{attribute}")]
        return ["object", name, found]

    def _array(self, value: HostArray, path: str) -> list[Any]:
        if value.dtype.kind == "O":
            return ["objects", list(value.shape), self._values(value.ravel().tolist(), path)]
        dtype = _checked_dtype(value.dtype, path)
        # products of matrices round by the order of their numbers
        order = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
        plain = np.asarray(value.T if order == "F" else value, order="C")
        name = self._named(path)
        if dtype.isnative and dtype.str[1:] in NATIVE:
            self.arrays[name] = plain
            return ["array", name, order]
        self.arrays[name] = np.frombuffer(plain.tobytes(), dtype=np.uint8)
        return ["raw", name, order, dtype.str, list(plain.shape)]

    def _named(self, path: str) -> str:
        """A name for an array: where it was found, as far as that is short and new."""
        short = path if len(path) <= 120 else f"{path[:60]}…{path[-60:]}"
        name, k = short, 1
        while name in self.arrays:
            k += 1
            name = f"{short} ({k})"
        return name


def _checked(look: Callable[..., Any], path: str, *what: Any) -> Any:
    """``look(*what)``, whose errors get a sentence that says where."""
    try:
        return look(*what)
    except ValueError as error:
        raise ValueError(f"{path} cannot be saved: {error}.") from error


def _state(value: Any, path: str) -> dict[str, Any]:
    """The attributes of an object, as it gives them for copies."""
    cls = type(value)
    plain = all(getattr(cls, name) is getattr(object, name) for name in ("__reduce__", "__reduce_ex__"))
    if not plain or hasattr(cls, "__getnewargs__") or hasattr(cls, "__getnewargs_ex__"):
        raise TypeError(f"{path} is a {qualified(cls)}, whose objects are not made of attributes and cannot be saved.")
    if is_dataclass(cls) and cls.__getstate__ is object.__getstate__:
        state = {field.name: getattr(value, field.name) for field in fields(cls)}  # without what is computed and kept
    else:
        state = value.__getstate__()
    if isinstance(state, tuple) and len(state) == 2:  # attributes, and those in slots
        state = {**(state[0] or {}), **(state[1] or {})}
    if state is None:
        state = {}
    if not isinstance(state, dict):
        raise TypeError(f"{path} is a {qualified(cls)}, whose __getstate__ gives a {type(state).__name__}, not a dict.")
    if isinstance(value, Recipe) and value.device is not None:
        return {**state, "device": None}  # arrays come back on the host
    # callbacks of scikit-learn belong to a process, not to a model
    return {name: kept for name, kept in state.items() if name != "_skl_callbacks"}


def _checked_dtype(dtype: Any, path: str) -> Any:
    if not DTYPE.fullmatch(dtype.str):
        raise TypeError(f"{path} has the type {dtype} of NumPy, which cannot be saved; convert it, such as to float64.")
    return dtype


def _name_of_type(value: Any, path: str) -> str:
    name = qualified(value)
    if TYPES.get(name) is not value:
        raise TypeError(f"{path} is the class {name} itself, which cannot be saved; give an object of it.")
    return name


def _function(value: Any, path: str) -> str:
    name = None if isinstance(value, MethodType) else name_of_function(value)
    if name is None:
        shown = getattr(value, "__qualname__", repr(value))
        raise TypeError(
            f"{path} is the function {shown!r}, and functions of your own cannot be saved without running code; write "
            "it as a class (a kernel as an InputKernel, a loss as a ConvexLoss, others with __call__), and call "
            "infinitask.persistence.register with the class."
        )
    return name
