"""Convert a model into a table of entries and its arrays, and back in one pass, without trusting the file.

Some entries create values that are larger than their text in the file; an :class:`Allowance` limits their number.
"""

from __future__ import annotations

import inspect
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np
from array_api_compat import is_cupy_array, is_jax_array, is_torch_array
from sklearn.base import BaseEstimator

from infinitask._base.arrays import HostArray, to_host
from infinitask.persistence._kinds import class_name, dtype_name, make_dict, unpacked
from infinitask.persistence._names import check_word, class_named, qualified, shown
from infinitask.persistence._rules import absent, check_state, completed
from infinitask.persistence._special import KINDS

MOST_ENTRIES: Mapping[str, int] = {
    "distribution": 2**9,
    "mapping": 2**16,
    "masked": 2**14,
    "object": 2**16,
    "pandas index": 2**12,
    "pandas type": 2**14,
    "partial": 2**14,
    "random": 2**12,
    "sparse": 2**14,
    "spline": 2**14,
}
"""The maximum number of entries of a kind that makes kilobytes from a few bytes of the file or is slow to make."""

MAX_REPEATED_BYTES = 2**26
"""The maximum number of bytes of arrays that are passed to several entries which may copy them, 64 MiB."""

MAX_UNFOLDED = 2**26
"""The maximum number of values in an entry, where shared values count each time they occur, as if it were printed; in
a step of skrub this is five times the values of its table, since several of its attributes hold the same."""


class Allowance:
    """Counts what the entries of a file use up."""

    def __init__(self) -> None:
        self._kinds: Counter[str] = Counter()
        self._sizes: list[int] = []
        self._seen: dict[int, Any] = {}  # arrays by address; they are kept, so that no other object gets that address
        self._bytes = 0

    def count(self, entry: Any) -> None:
        """Raise a ValueError if a kind has too many entries, or an entry has far more values than the file.

        Each entry may hold the previous one twice, so a kilobyte can describe 2^33 values, which print for years.
        """
        if type(entry) is not list or not entry or type(entry[0]) is not str:
            raise ValueError("an entry does not say what it is")
        kind, most = entry[0], MOST_ENTRIES.get(entry[0])
        self._kinds[kind] += 1
        if most is not None and self._kinds[kind] > most:
            raise ValueError(f"it has more than {most} entries of the kind {kind!r}")
        size = 1 + sum(self._size(one) for part in entry for one in (part if type(part) is list else (part,)))
        if size > MAX_UNFOLDED:
            raise ValueError(f"an entry refers to others so often that it has more than {MAX_UNFOLDED} values")
        self._sizes.append(size)

    def _size(self, value: Any) -> int:
        """The number of values in a part of an entry; a long text counts as several."""
        if type(value) is str:
            return 1 + len(value) // 8
        refers = type(value) is list and len(value) == 1 and type(value[0]) is int and 0 <= value[0] < len(self._sizes)
        return self._sizes[value[0]] if refers else 1

    def count_copies(self, parts: Iterable[Any]) -> None:
        """Raise a ValueError if arrays among the parts were copied too often; a reference to an array is free."""
        for part in parts:
            if isinstance(part, np.ndarray):
                self._bytes += part.nbytes if id(part) in self._seen else 0
                self._seen[id(part)] = part
        if self._bytes > MAX_REPEATED_BYTES:
            raise ValueError(f"arrays that several values share take more than {MAX_REPEATED_BYTES} bytes")


NATIVE = frozenset(["b1", "f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])
"""Number types that safetensors supports; arrays of other types are written as bytes, with the name of their type."""


class Writer:
    """Convert a model into entries: lists ``[kind, ...]`` that refer to earlier entries as ``[number]``.

    An object that occurs twice is written once.

    Attributes
    ----------
    entries : list
    arrays : dict
        The arrays by name.
    """

    def __init__(self) -> None:
        self.entries: list[list[Any]] = []
        self.arrays: dict[str, HostArray] = {}
        # entries by the address of the object, None while it is being written; the object is kept, so that no other
        # object gets its address
        self._known: dict[int, tuple[int | None, Any]] = {}
        self._allowance = Allowance()

    def value(self, value: Any, path: str) -> Any:
        """The encoding of a value inside an entry: itself, or ``[number]``; ``path`` is the place of the value."""
        if value is None or type(value) in (bool, int, str) or (type(value) is float and math.isfinite(value)):
            return value
        if id(value) not in self._known:
            self._known[id(value)] = None, value
            self.entries.append(self._entry(value, path))
            _checked(self._allowance.count, path, self.entries[-1])
            self._known[id(value)] = len(self.entries) - 1, value
        number, _ = self._known[id(value)]
        if number is None:
            raise ValueError(f"{path} holds itself, and cannot be saved; break the circle before you save.")
        return [number]

    def _entry(self, value: Any, path: str) -> list[Any]:
        if is_torch_array(value) or is_cupy_array(value) or is_jax_array(value):
            return self._array(to_host(value), path)
        if type(value) is np.ndarray and value.dtype.kind != "O":
            return self._array(value, path)
        for name, kind in KINDS.items():
            if kind.fits(value):
                parts = _checked(kind.parts, path, value)
                _checked(kind.make, path, *parts)  # do not save what a load would refuse
                if kind.copies:
                    _checked(self._allowance.count_copies, path, parts[-1])
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
        """The encodings of several values; the path of a dict's value contains its key."""
        names = [values[k - 1] if pairs and k % 2 else k for k in range(len(values))]
        return [self.value(one, f"{path}[{name!r}]") for name, one in zip(names, values, strict=True)]

    def _array(self, value: HostArray, path: str) -> list[Any]:
        dtype = _checked(dtype_name, path, value.dtype)
        # matrix products round according to the memory order
        order = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
        plain = np.asarray(value.T if order == "F" else value, order="C")
        name = self._named(path)
        if value.dtype.isnative and dtype[1:] in NATIVE:
            self.arrays[name] = plain
            return ["array", name, order]
        self.arrays[name] = np.frombuffer(plain.tobytes(), dtype=np.uint8)
        return ["raw", name, order, dtype, list(plain.shape)]

    def _named(self, path: str) -> str:
        """A unique name for an array: its path, shortened if necessary."""
        short = path if len(path) <= 120 else f"{path[:60]}…{path[-60:]}"
        names = itertools.chain([short], (f"{short} ({k})" for k in itertools.count(2)))
        return next(name for name in names if name not in self.arrays)


def _checked(look: Callable[..., Any], path: str, *what: Any) -> Any:
    """Return ``look(*what)`` and prefix its errors with the path."""
    try:
        return look(*what)
    except ValueError as error:
        raise ValueError(f"{path} cannot be saved: {error}.") from error
    except TypeError as error:
        raise TypeError(f"{path} {error}") from None


def _state(value: Any, path: str) -> dict[str, Any]:
    """The attributes of an object, as its own copying protocol returns them."""
    cls = type(value)
    plain = all(getattr(cls, name) is getattr(object, name) for name in ("__reduce__", "__reduce_ex__"))
    if not plain or hasattr(cls, "__getnewargs__") or hasattr(cls, "__getnewargs_ex__"):
        raise TypeError(f"{path} is a {qualified(cls)}, whose objects are not made of attributes and cannot be saved.")
    if is_dataclass(cls) and cls.__getstate__ is object.__getstate__:
        state = {field.name: getattr(value, field.name) for field in fields(cls)}  # without cached properties
    else:
        state = value.__getstate__()
    if isinstance(state, tuple) and len(state) == 2:  # attributes, and those in slots
        state = {**(state[0] or {}), **(state[1] or {})}
    if state is None:
        state = {}
    if not isinstance(state, dict):
        raise TypeError(f"{path} is a {qualified(cls)}, whose __getstate__ gives a {type(state).__name__}, not a dict.")
    return state


# ------------------------------------------------------------------------------------------------------------ reading
class Reader:
    """Convert entries into values in order; an entry may refer to earlier entries only.

    Parameters
    ----------
    arrays : mapping
        The arrays of the file by name.
    """

    def __init__(self, arrays: Mapping[str, HostArray]) -> None:
        self.arrays = arrays
        self.unread = set(arrays)
        self._made: list[Any] = []
        self._allowance = Allowance()

    def read(self, entries: Any, last: Any) -> Any:
        """The value that ``last`` refers to, after all entries are made."""
        if type(entries) is not list:
            raise ValueError("its table is no list")
        for entry in entries:  # before any of them is made
            self._allowance.count(entry)
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

    def _value_of(self, entry: list[Any]) -> Any:
        kind, *parts = entry
        if kind in ("array", "object", "raw"):  # these need what was read before them
            return (self._make_object if kind == "object" else self._make_array)(*parts)
        if kind not in KINDS:
            raise ValueError(f"an entry is of the unknown kind {shown(kind)}")
        if KINDS[kind].has_values:
            parts[-1] = self._values(parts[-1])
        if KINDS[kind].copies:
            if any(type(part) is range for part in parts[-1]):
                raise ValueError(f"a range is a part of a value of the kind {kind!r}")
            self._allowance.count_copies(parts[-1])
        return KINDS[kind].make(*parts)

    def _make_array(self, name: str, order: str, *raw: Any) -> HostArray:
        check_word(name, self.arrays, f"it has no array {shown(name)}")
        check_word(name, self.unread, f"the array {shown(name)} belongs to two entries")
        check_word(order, ("C", "F"), "an array has no order")
        self.unread.discard(name)
        values = unpacked(f"the array {shown(name)}", self.arrays[name], *raw) if raw else self.arrays[name]
        copied = np.array(values, order="C")  # matrix products round according to the memory order
        return copied.T if order == "F" else copied

    def _make_object(self, name: str, attributes: Any) -> Any:
        cls = class_named(name)
        if issubclass(cls, (Enum, tuple, dict)) or inspect.isabstract(cls):
            raise ValueError(f"{name!r} is not a class of objects with attributes")
        state = completed(cls, make_dict(self._values(attributes)))
        made = object.__new__(cls)
        if hasattr(cls, "__setstate__"):
            if not issubclass(cls, BaseEstimator):
                self._allowance.count_copies(state.values())
            made.__setstate__(state)
            return made
        for key, one in state.items():
            object.__setattr__(made, key, one)
        return made
