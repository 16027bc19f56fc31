"""A table of entries and arrays as a model again, in one pass and with nothing taken on trust."""

from __future__ import annotations

import base64
import inspect
import math
import sys
from collections.abc import Mapping
from enum import Enum
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from infinitask._base.arrays import HostArray
from infinitask.features._inverse import Inverse
from infinitask.persistence._allowance import Repeats, check_counts
from infinitask.persistence._names import TYPES, class_named, function_named, is_named_tuple
from infinitask.persistence._rules import DTYPE, check_keys, completed, plain_key
from infinitask.persistence._shown import check_word, shown
from infinitask.persistence._special import SPECIAL

NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
"""Numbers that JSON does not have."""

CONTAINERS = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}


class Reader:
    """Turns entries into values, one after the other; an entry may refer to those before it only.

    Parameters
    ----------
    arrays : mapping
        The arrays of the file by their names.
    """

    def __init__(self, arrays: Mapping[str, HostArray]) -> None:
        self.arrays = arrays
        self.unread = set(arrays)
        self._made: list[Any] = []
        self._repeats = Repeats()

    def read(self, entries: Any, last: Any) -> Any:
        """The value that ``last`` stands for, after all entries are made."""
        if type(entries) is not list:
            raise ValueError("its table is no list")
        check_counts(entries)
        for entry in entries:
            self._made.append(self._value_of(entry))
        if self.unread:
            raise ValueError(f"{len(self.unread)} of its arrays belong to nothing")
        return self._value(last)

    def _value(self, encoded: Any) -> Any:
        if encoded is None or isinstance(encoded, (bool, int, float, str)):
            return encoded
        if type(encoded) is not list or len(encoded) != 1 or type(encoded[0]) is not int:
            raise ValueError("a value is neither a number, a text nor a reference")
        if not 0 <= encoded[0] < len(self._made):
            raise ValueError(f"a value refers to entry {encoded[0]}, and {len(self._made)} come before it")
        return self._made[encoded[0]]

    def _values(self, encoded: Any) -> list[Any]:
        if type(encoded) is not list:
            raise ValueError("an entry has no list of values")
        return [self._value(one) for one in encoded]

    def _parts(self, kind: str, encoded: Any) -> list[Any]:
        """The parts of a special value, none of which is longer than the file says."""
        parts = self._values(encoded)
        if any(type(part) is range for part in parts):
            raise ValueError(f"a range is a part of a value of the kind {kind!r}")
        self._repeats.count(parts)
        return parts

    def _value_of(self, entry: Any) -> Any:
        if type(entry) is not list or not entry or type(entry[0]) is not str:
            raise ValueError("an entry does not say what it is")
        kind, *rest = entry
        if kind in SPECIAL:
            (parts,) = rest
            return SPECIAL[kind].make(*self._parts(kind, parts))
        if kind in CONTAINERS:
            (parts,) = rest
            values = self._values(parts)
            if kind in ("set", "frozenset"):
                check_keys(values)
            return CONTAINERS[kind](values)
        make = getattr(self, f"_make_{kind}", None) if kind in KINDS else None
        if make is None:
            raise ValueError(f"an entry is of the unknown kind {shown(kind)}")
        return make(*rest)

    # ----------------------------------------------------------------------------------------------------- numbers
    def _make_float(self, text: str) -> float:
        check_word(text, NOT_FINITE, f"a number is {shown(text)}, which is none")
        return NOT_FINITE[text]

    def _make_complex(self, real: str, imag: str) -> complex:
        return complex(float.fromhex(real), float.fromhex(imag))

    def _make_bytes(self, text: str) -> bytes:
        return base64.b64decode(text, validate=True)

    def _make_dtype(self, name: str) -> Any:
        return _dtype(name)

    def _make_type(self, name: str) -> Any:
        check_word(name, TYPES, f"it names the type {shown(name)}, which is not among those that a file may name")
        return TYPES[name]

    def _make_function(self, name: str) -> Any:
        return function_named(name)

    def _make_scalar(self, dtype_name: str, text: str) -> Any:
        if type(text) is not str:
            raise ValueError("a number is not written as a text")
        return _unpacked("a number", np.frombuffer(bytes.fromhex(text), np.uint8), dtype_name, [])[()]

    # ------------------------------------------------------------------------------------------------------ arrays
    def _make_array(self, name: str, order: str) -> HostArray:
        return _ordered(self._array(name), order)

    def _make_raw(self, name: str, order: str, dtype_name: str, shape: Any) -> HostArray:
        return _ordered(_unpacked(f"the array {shown(name)}", self._array(name), dtype_name, shape), order)

    def _make_objects(self, shape: Any, values: Any) -> HostArray:
        found = self._values(values)
        if math.prod(_shape(shape)) != len(found):
            raise ValueError("an array of objects does not have the size that it says")
        array = np.empty(len(found), dtype=object)
        for k, one in enumerate(found):  # one by one: NumPy would look into lists
            array[k] = one
        return array.reshape(_shape(shape))

    def _array(self, name: Any) -> HostArray:
        check_word(name, self.arrays, f"it has no array {shown(name)}")
        check_word(name, self.unread, f"the array {shown(name)} belongs to two entries")
        self.unread.discard(name)
        return self.arrays[name]

    # ----------------------------------------------------------------------------------------------------- objects
    def _make_dict(self, pairs: Any) -> dict[Any, Any]:
        values = self._values(pairs)
        if len(values) % 2:
            raise ValueError("a dict has a key without a value")
        check_keys(values[::2])
        return {plain_key(key): one for key, one in zip(values[::2], values[1::2], strict=True)}

    def _make_mapping(self, name: str, pairs: Any) -> Any:
        cls = _class(name)
        if not issubclass(cls, dict):
            raise ValueError(f"{name!r} is no mapping")
        found = cls()
        found.update(self._make_dict(pairs))
        return found

    def _make_enum(self, name: str, member: Any) -> Any:
        cls = _class(name)
        check_word(member, cls.__members__ if issubclass(cls, Enum) else (), f"{name!r} has no member {shown(member)}")
        return cls[member]

    def _make_named(self, name: str, values: Any) -> Any:
        cls, found = _class(name), self._values(values)
        if not is_named_tuple(cls) or len(found) != len(cls._fields):
            raise ValueError(f"{name!r} is no tuple of {len(found)} names")
        return tuple.__new__(cls, found)

    def _make_object(self, name: str, attributes: Any) -> Any:
        cls = _class(name)
        if issubclass(cls, (Enum, tuple, dict)) or inspect.isabstract(cls):
            raise ValueError(f"{name!r} is not a class of objects with attributes")
        state = completed(cls, self._make_dict(attributes))
        made = object.__new__(cls)
        if hasattr(cls, "__setstate__"):
            if not issubclass(cls, BaseEstimator):
                self._check_state(name, state)
            made.__setstate__(state)
            return made
        for key, one in state.items():
            object.__setattr__(made, key, one)
        return made

    def _check_state(self, name: str, state: dict[str, Any]) -> None:
        """A ValueError where a class that packs its arrays would make much of little."""
        if issubclass(_class(name), Inverse) and "packed" in state:
            packed = state["packed"]
            if not isinstance(packed, np.ndarray) or packed.ndim != 1 or packed.dtype != np.float64:
                raise ValueError(f"{name!r} has a factor that is no array of floats")
        self._repeats.count(state.values())


KINDS = frozenset(name.removeprefix("_make_") for name in vars(Reader) if name.startswith("_make_"))
"""The kinds of entries beside containers and special values."""


def _class(name: Any) -> type[Any]:
    if type(name) is not str:
        raise ValueError("the name of a class is no text")
    return class_named(name)


def _dtype(name: Any) -> Any:
    if type(name) is not str or not DTYPE.fullmatch(name):
        raise ValueError(f"{shown(name)} is not the name of a type of numbers")
    return np.dtype(name)


def _unpacked(what: str, raw: HostArray, dtype_name: Any, shape: Any) -> HostArray:
    """Bytes as an array of a type and a shape."""
    dtype, size = _dtype(dtype_name), math.prod(_shape(shape))
    if raw.dtype != np.uint8 or raw.ndim != 1 or dtype.hasobject or size * dtype.itemsize != raw.size:
        raise ValueError(f"{what} does not have the size that it says")
    if size and dtype.itemsize == 0:
        raise ValueError(f"{what} has entries without a size")
    # texts with other characters than those of Unicode crash when they are read
    if dtype.kind == "U" and size and np.max(raw.view(dtype.byteorder + "u4")) > sys.maxunicode:
        raise ValueError(f"{what} has texts that are none")
    return np.frombuffer(raw.tobytes(), dtype=dtype).reshape(_shape(shape))


def _shape(shape: Any) -> tuple[int, ...]:
    if type(shape) is not list or len(shape) > 32 or not all(type(k) is int and 0 <= k < 2**62 for k in shape):
        raise ValueError("an array has no shape")
    return tuple(shape)


def _ordered(values: HostArray, order: Any) -> HostArray:
    """A copy in the order in which the array was, since products of matrices round by it."""
    check_word(order, ("C", "F"), "an array has no order")
    return np.array(values, order="C").T if order == "F" else np.array(values, order="C")
