"""A model as a table of entries and its arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from array_api_compat import is_cupy_array, is_jax_array, is_torch_array

from infinitask._base.arrays import HostArray, to_host
from infinitask.fitting._recipe import Recipe
from infinitask.persistence._allowance import Repeats
from infinitask.persistence._kinds import UnknownTypeError, class_name, dtype_name
from infinitask.persistence._names import qualified
from infinitask.persistence._rules import absent, check_state
from infinitask.persistence._special import KINDS

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

    def _entry(self, value: Any, path: str) -> list[Any]:
        if is_torch_array(value) or is_cupy_array(value) or is_jax_array(value):
            return self._array(to_host(value), path)
        if type(value) is np.ndarray and value.dtype.kind != "O":
            return self._array(value, path)
        for name, kind in KINDS.items():
            if kind.fits(value):
                parts = _checked(kind.parts, path, value)
                _checked(kind.make, path, *parts)  # what a load would refuse is not saved
                if kind.copies:
                    _checked(self._repeats.count, path, parts[-1])
                if kind.has_values:
                    parts = (*parts[:-1], self._values(parts[-1], path, kind.pairs))
                return [name, *parts]
        cls = type(value)
        name = _checked(class_name, path, cls)
        state = _state(value, path)
        unset = absent(cls)
        state = {key: one for key, one in state.items() if key not in unset}
        _checked(check_state, path, cls, state)
        values = [self.value(part, f"{path}.{key}") for key, one in state.items() for part in (key, one)]
        return ["object", name, values]

    def _values(self, values: Any, path: str, pairs: bool) -> list[Any]:
        """What stands for values; one that a key leads to is found by its key."""
        names = [values[k - 1] if pairs and k % 2 else k for k in range(len(values))]
        return [self.value(one, f"{path}[{name!r}]") for name, one in zip(names, values, strict=True)]

    def _array(self, value: HostArray, path: str) -> list[Any]:
        dtype = _checked(dtype_name, path, value.dtype)
        # products of matrices round by the order of their numbers
        order = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
        plain = np.asarray(value.T if order == "F" else value, order="C")
        name = self._named(path)
        if value.dtype.isnative and dtype[1:] in NATIVE:
            self.arrays[name] = plain
            return ["array", name, order]
        self.arrays[name] = np.frombuffer(plain.tobytes(), dtype=np.uint8)
        return ["raw", name, order, dtype, list(plain.shape)]

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
    except UnknownTypeError as error:
        raise TypeError(f"{path} {error}") from None


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
