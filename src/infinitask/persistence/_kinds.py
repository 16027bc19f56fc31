"""Numbers, types, functions and containers: each kind of entry has a conversion to the file and one back."""

from __future__ import annotations

import base64
import math
import re
import sys
from collections import OrderedDict
from collections.abc import Callable
from enum import Enum
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, NamedTuple

import numpy as np

from infinitask._base.arrays import HostArray
from infinitask.persistence._names import (
    TYPES,
    check_word,
    class_named,
    function_named,
    is_named_tuple,
    name_of_class,
    name_of_function,
    qualified,
    shown,
)
from infinitask.persistence._rules import checked_keys, plain_key

DTYPE = re.compile(r"[<>=|](b1|[iu][1248]|f[248]|c8|c16|[mM]8(\[\d{0,6}[a-zA-Z]{1,2}\])?|[US]\d{1,9}|O)")
"""The names of NumPy types that a file may have; longer numbers differ between machines."""

FUNCTION_TYPES = (FunctionType, BuiltinFunctionType, MethodType, np.ufunc)


class Kind(NamedTuple):
    """A kind of entry: ``parts`` takes a value apart, ``make`` checks the parts and joins them.

    An entry is ``[kind, *words]`` or ``[kind, *words, [values]]``. Words are written directly as JSON; each value has
    an entry of its own.

    Parameters
    ----------
    fits : function
        Whether a value is of this kind.
    parts : function
        Returns the words, and then the list of values if the kind has some.
    make : function
        Takes the same parts.
    has_values : bool
    pairs : bool
        Whether the values are alternating keys and values of a mapping.
    copies : bool
        Whether the result may hold copies of its values.
    """

    fits: Callable[[Any], bool]
    parts: Callable[[Any], tuple[Any, ...]]
    make: Callable[..., Any]
    has_values: bool = False
    pairs: bool = False
    copies: bool = False


def is_exactly(*kinds: type[Any]) -> Callable[[Any], bool]:
    """Return a test for values of exactly one of these types, without subclasses."""
    return lambda value: type(value) in kinds


# ------------------------------------------------------------------------------------------- numbers, types, functions
def _make_float(text: str) -> float:
    check_word(text, ("nan", "inf", "-inf"), f"a number is {shown(text)}, which is none")
    return float(text)


def _make_type(name: str) -> Any:
    check_word(name, TYPES, f"it names the type {shown(name)}, which is not among those that a file may name")
    return TYPES[name]


def _type_name(value: Any) -> tuple[str]:
    name = qualified(value)
    if TYPES.get(name) is not value:
        raise TypeError(f"is the class {name} itself, which cannot be saved; give an object of it.")
    return (name,)


def _function_name(value: Any) -> tuple[str]:
    name = None if isinstance(value, MethodType) else name_of_function(value)
    if name is None:
        raise TypeError(
            f"is the function {getattr(value, '__qualname__', repr(value))!r}, and functions of your own cannot be "
            "saved without running code; write it as a class (a kernel as an InputKernel, a loss as a ConvexLoss, "
            "others with __call__), and call infinitask.persistence.register with the class."
        )
    return (name,)


def dtype_name(dtype: Any) -> str:
    """The name of a NumPy type."""
    if not DTYPE.fullmatch(dtype.str):
        raise TypeError(f"has the type {dtype} of NumPy, which cannot be saved; convert it, such as to float64.")
    return str(dtype.str)


def make_dtype(name: Any) -> Any:
    """The NumPy type of the given name."""
    if type(name) is not str or not DTYPE.fullmatch(name):
        raise ValueError(f"{shown(name)} is not the name of a type of numbers")
    return np.dtype(name)


def _make_scalar(name: str, text: str) -> Any:
    if type(text) is not str:
        raise ValueError("a number is not written as a text")
    return unpacked("a number", np.frombuffer(bytes.fromhex(text), np.uint8), name, [])[()]


# ------------------------------------------------------------------------------------------------- arrays from bytes
def unpacked(what: str, raw: HostArray, name: Any, shape: Any) -> HostArray:
    """Interpret bytes as an array of a type and a shape."""
    dtype, size = make_dtype(name), math.prod(checked_shape(shape))
    if raw.dtype != np.uint8 or raw.ndim != 1 or dtype.hasobject or size * dtype.itemsize != raw.size:
        raise ValueError(f"{what} does not have the size that it says")
    if size and dtype.itemsize == 0:
        raise ValueError(f"{what} has entries without a size")
    # texts with characters outside Unicode crash when they are read
    if dtype.kind == "U" and size and np.max(raw.view(dtype.byteorder + "u4")) > sys.maxunicode:
        raise ValueError(f"{what} has texts that are none")
    return np.frombuffer(raw.tobytes(), dtype=dtype).reshape(checked_shape(shape))


def checked_shape(shape: Any) -> tuple[int, ...]:
    """The shape of an array, given in the file as a list."""
    if type(shape) is not list or len(shape) > 32 or not all(type(k) is int and 0 <= k < 2**62 for k in shape):
        raise ValueError("an array has no shape")
    return tuple(shape)


def _make_objects(shape: Any, values: list[Any]) -> HostArray:
    if math.prod(checked_shape(shape)) != len(values):
        raise ValueError("an array of objects does not have the size that it says")
    array = np.empty(len(values), dtype=object)
    for k, one in enumerate(values):  # one by one: NumPy would unpack lists
        array[k] = one
    return array.reshape(checked_shape(shape))


# --------------------------------------------------------------------------------------------------------- containers
def class_name(cls: type[Any]) -> str:
    """The name of a class in a file."""
    name = name_of_class(cls)
    if name is None:
        raise TypeError(
            f"is of the class {qualified(cls)}, which infinitask does not save; if its objects are made of "
            "attributes, call infinitask.persistence.register with the class first, here and where you load."
        )
    return name


def _make_enum(name: str, member: Any) -> Any:
    cls = class_named(name)
    check_word(member, cls.__members__ if issubclass(cls, Enum) else (), f"{name!r} has no member {shown(member)}")
    return cls[member]


def _make_named(name: str, values: list[Any]) -> Any:
    cls = class_named(name)
    if not is_named_tuple(cls) or len(values) != len(cls._fields):
        raise ValueError(f"{name!r} is no tuple of {len(values)} names")
    return tuple.__new__(cls, values)


def _flat(pairs: dict[Any, Any]) -> list[Any]:
    return [part for key, one in pairs.items() for part in (plain_key(key), one)]


def make_dict(values: list[Any]) -> dict[Any, Any]:
    """A dict from alternating keys and values."""
    if len(values) % 2:
        raise ValueError("a dict has a key without a value")
    return {plain_key(key): one for key, one in zip(checked_keys(values[::2]), values[1::2], strict=True)}


def _mapping_parts(value: Any) -> tuple[Any, ...]:
    cls = type(value)
    if cls is not OrderedDict and getattr(value, "__dict__", None):
        raise TypeError(f"is a {cls.__name__} with attributes of its own, which cannot be saved.")
    return class_name(cls), _flat(value)


def _make_mapping(name: str, values: list[Any]) -> Any:
    cls = class_named(name)
    if not issubclass(cls, dict):
        raise ValueError(f"{name!r} is no mapping")
    found = cls()
    found.update(make_dict(values))
    return found


SIMPLE = {
    "float": Kind(is_exactly(float), lambda v: (repr(v),), _make_float),
    "complex": Kind(
        is_exactly(complex),
        lambda v: (v.real.hex(), v.imag.hex()),
        lambda real, imag: complex(float.fromhex(real), float.fromhex(imag)),
    ),
    "bytes": Kind(
        is_exactly(bytes),
        lambda v: (base64.b64encode(v).decode("ascii"),),
        lambda text: base64.b64decode(text, validate=True),
    ),
    "list": Kind(is_exactly(list), lambda v: (v,), list, has_values=True),
    "tuple": Kind(is_exactly(tuple), lambda v: (v,), tuple, has_values=True),
    "set": Kind(is_exactly(set), lambda v: (list(v),), lambda values: set(checked_keys(values)), has_values=True),
    "frozenset": Kind(
        is_exactly(frozenset), lambda v: (list(v),), lambda values: frozenset(checked_keys(values)), has_values=True
    ),
    "dict": Kind(is_exactly(dict), lambda v: (_flat(v),), make_dict, has_values=True, pairs=True),
    "dtype": Kind(lambda v: isinstance(v, np.dtype), lambda v: (dtype_name(v),), make_dtype),
    "scalar": Kind(
        lambda v: isinstance(v, np.generic),
        lambda v: (dtype_name(np.asarray(v).dtype), np.asarray(v).tobytes().hex()),
        _make_scalar,
    ),
    "objects": Kind(
        is_exactly(np.ndarray), lambda v: (list(v.shape), v.ravel().tolist()), _make_objects, has_values=True
    ),
    "type": Kind(lambda v: isinstance(v, type), _type_name, _make_type),
    "function": Kind(lambda v: isinstance(v, FUNCTION_TYPES), _function_name, function_named),
    "enum": Kind(lambda v: isinstance(v, Enum), lambda v: (class_name(type(v)), v.name), _make_enum),
    "named": Kind(lambda v: is_named_tuple(type(v)), lambda v: (class_name(type(v)), v), _make_named, has_values=True),
    "mapping": Kind(lambda v: isinstance(v, dict), _mapping_parts, _make_mapping, has_values=True, pairs=True),
}
"""Numbers, types, functions and containers, by the name of the kind in a file."""
