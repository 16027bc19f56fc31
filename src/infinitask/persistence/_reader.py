"""A table of entries and arrays as a model again, in one pass and with nothing taken on trust."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from infinitask._base.arrays import HostArray
from infinitask.features._cholesky import Inverse
from infinitask.persistence._allowance import Repeats, check_counts
from infinitask.persistence._kinds import make_dict, unpacked
from infinitask.persistence._names import class_named
from infinitask.persistence._rules import completed
from infinitask.persistence._shown import check_word, shown
from infinitask.persistence._special import KINDS


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

    def _value_of(self, entry: Any) -> Any:
        if type(entry) is not list or not entry or type(entry[0]) is not str:
            raise ValueError("an entry does not say what it is")
        kind, *parts = entry
        if kind in OWN:
            return OWN[kind](self, *parts)
        if kind not in KINDS:
            raise ValueError(f"an entry is of the unknown kind {shown(kind)}")
        if KINDS[kind].has_values:
            parts[-1] = self._values(parts[-1])
        if KINDS[kind].copies:
            if any(type(part) is range for part in parts[-1]):
                raise ValueError(f"a range is a part of a value of the kind {kind!r}")
            self._repeats.count(parts[-1])
        return KINDS[kind].make(*parts)

    # ------------------------------------------------------------------------------------------------------ arrays
    def _make_array(self, name: str, order: str) -> HostArray:
        return _ordered(self._array(name), order)

    def _make_raw(self, name: str, order: str, dtype: str, shape: Any) -> HostArray:
        return _ordered(unpacked(f"the array {shown(name)}", self._array(name), dtype, shape), order)

    def _array(self, name: Any) -> HostArray:
        check_word(name, self.arrays, f"it has no array {shown(name)}")
        check_word(name, self.unread, f"the array {shown(name)} belongs to two entries")
        self.unread.discard(name)
        return self.arrays[name]

    def _make_object(self, name: str, attributes: Any) -> Any:
        cls = class_named(name)
        if issubclass(cls, (Enum, tuple, dict)) or inspect.isabstract(cls):
            raise ValueError(f"{name!r} is not a class of objects with attributes")
        state = completed(cls, make_dict(self._values(attributes)))
        made = object.__new__(cls)
        if hasattr(cls, "__setstate__"):
            if not issubclass(cls, BaseEstimator):
                self._repeats.count(state.values())
            # a class that packs its arrays could make much of little
            if issubclass(cls, Inverse) and "packed" in state:
                packed = state["packed"]
                if not isinstance(packed, np.ndarray) or packed.ndim != 1 or packed.dtype != np.float64:
                    raise ValueError(f"{name!r} has a factor that is no array of floats")
            made.__setstate__(state)
            return made
        for key, one in state.items():
            object.__setattr__(made, key, one)
        return made


OWN: dict[str, Callable[..., Any]] = {
    "array": Reader._make_array,
    "object": Reader._make_object,
    "raw": Reader._make_raw,
}
"""Kinds of entries that need what was read before them."""


def _ordered(values: HostArray, order: Any) -> HostArray:
    """A copy in the order in which the array was, since products of matrices round by it."""
    check_word(order, ("C", "F"), "an array has no order")
    return np.array(values, order="C").T if order == "F" else np.array(values, order="C")
