"""Values of NumPy, SciPy and pandas that are not made of attributes: each has its own parts and its own conversion.

Parts have exact types, so nothing longer than its text in the file is expanded or hashed here: a range of a billion
numbers takes 20 bytes in a file, and so does a tuple that holds another one ten times.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from types import BuiltinFunctionType, FunctionType, NoneType
from typing import Any

import numpy as np
from scipy import sparse

from infinitask.persistence._kinds import SIMPLE, Kind, is_exactly
from infinitask.persistence._names import check_word, shown
from infinitask.persistence._rules import MAX_PARTS, SCALARS, check_keywords, checked_keys

MAX_RANGE = 2**20
"""The maximum length of a range: methods that take one make a list of it."""

BIT_GENERATORS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")
"""NumPy generators whose state may be saved."""

POSITIONS = {"MT19937": ("state", "pos", 624), "Philox": (None, "buffer_pos", 4)}
"""The position of a generator in its own numbers, and its limit: NumPy reads there without checking the bounds."""

MASKED_KINDS = frozenset("biufcmMO")
"""Kinds of masked arrays: a text as fill value would take as much memory as its type declares."""

PANDAS_TYPES = re.compile(
    r"(datetime64\[(s|ms|us|ns), [\w+/:-]{1,64}\]|U?Int(8|16|32|64)|Float(32|64)|boolean|str|string(\[\w+\])?)"
)
"""Types of pandas columns that are known by name."""

INDEX_TYPES = {np.dtype(np.int32), np.dtype(np.int64)}
"""Index types of sparse matrices."""

SPLINE_TYPES = (np.dtype(np.float64), np.dtype(np.complex128))
"""Number types of splines; others would be copied into larger ones."""


# ------------------------------------------------------------------------------------------------------- of Python
def _make_partial(function: Any, args: Any, keywords: Any) -> Any:
    if not isinstance(function, (FunctionType, BuiltinFunctionType, np.ufunc)):
        raise ValueError("a partial call is of something that is no function")
    _check_arguments(args, keywords, "a partial call")
    check_keywords(keywords, "a partial call")
    return partial(function, *args, **keywords)


def _check_arguments(args: Any, keywords: Any, what: str) -> None:
    if type(args) is not tuple or type(keywords) is not dict or not all(type(key) is str for key in keywords):
        raise ValueError(f"{what} has arguments that are no tuple, or keywords that are no dict with texts as keys")
    if len(args) + len(keywords) > MAX_PARTS:
        raise ValueError(f"{what} has {len(args) + len(keywords)} arguments, and at most {MAX_PARTS} are allowed")


def _make_slice(start: Any, stop: Any, step: Any) -> Any:
    if not all(isinstance(one, SCALARS) for one in (start, stop, step)):
        raise ValueError("a slice is not made of numbers or texts")
    return slice(start, stop, step)


def _make_range(start: Any, stop: Any, step: Any) -> Any:
    if not all(type(one) is int for one in (start, stop, step)):
        raise ValueError("a range is not made of whole numbers")
    if step == 0:
        raise ValueError("a range has the step 0")
    if (stop - start) // step > MAX_RANGE:
        raise ValueError(f"a range has {shown((stop - start) // step)} numbers, and at most {MAX_RANGE} are allowed")
    return range(start, stop, step)


# -------------------------------------------------------------------------------------------------------- of NumPy
def _make_masked(data: Any, mask: Any, fill_value: Any) -> Any:
    if not isinstance(data, np.ndarray) or not isinstance(mask, np.ndarray) or data.shape != mask.shape:
        raise ValueError("a masked array has parts of different shapes")
    if data.dtype.kind not in MASKED_KINDS or mask.dtype != bool or not isinstance(fill_value, SCALARS):
        raise ValueError("a masked array has parts of wrong types")
    return np.ma.MaskedArray(data, mask, fill_value=fill_value)


def _random_parts(value: Any) -> tuple[Any, ...]:
    if isinstance(value, np.random.Generator):
        return "Generator", value.bit_generator.state
    return "RandomState", value.get_state(legacy=False)


def _make_random(kind: str, state: Any) -> Any:
    _check_state(state)
    name = state.get("bit_generator")
    check_word(kind, ("Generator", "RandomState"), f"a random generator is of the kind {shown(kind)}")
    check_word(name, BIT_GENERATORS, f"the random generator {shown(name)} is not one of NumPy's")
    if name in POSITIONS:
        part, key, last = POSITIONS[name]
        inner = state if part is None else state.get(part)
        at = inner.get(key) if type(inner) is dict else None
        if type(at) is not int or not 0 <= at <= last:
            raise ValueError(f"the random generator {name} is at {shown(at)}, beyond its {last} numbers")
    bits = getattr(np.random, name)(0)
    if kind == "Generator":
        bits.state = state
        return np.random.Generator(bits)
    random = np.random.RandomState(bits)
    random.set_state(state)
    return random


def _check_state(state: Any, *, nested: bool = False) -> None:
    """Raise a ValueError if the state of a generator is not made of single numbers and short arrays."""
    if type(state) is not dict:
        raise ValueError("the state of a random generator is no dict")
    for one in state.values():
        if type(one) is dict and not nested:
            _check_state(one, nested=True)
        elif isinstance(one, np.ndarray):
            if one.ndim != 1 or one.size > POSITIONS["MT19937"][2] or one.dtype.kind not in "iu":
                raise ValueError("the state of a random generator has an array that is none of its own")
        elif not isinstance(one, SCALARS):
            raise ValueError(f"the state of a random generator has a {type(one).__name__}")


# -------------------------------------------------------------------------------------------------------- of SciPy
def _sparse_parts(value: Any) -> tuple[Any, ...]:
    is_array = isinstance(value, sparse.sparray)
    return value.format, is_array, tuple(map(int, value.shape)), value.data, value.indices, value.indptr


def _make_sparse(form: str, is_array: bool, shape: Any, data: Any, indices: Any, indptr: Any) -> Any:
    makers = {"csr": (sparse.csr_matrix, sparse.csr_array), "csc": (sparse.csc_matrix, sparse.csc_array)}
    parts = (data, indices, indptr)
    whole = type(shape) is tuple and len(shape) == 2 and all(type(k) is int and k >= 0 for k in shape)
    check_word(form, makers, f"a sparse matrix has the form {shown(form)}, which is neither csr nor csc")
    if not whole or not all(isinstance(part, np.ndarray) and part.ndim == 1 for part in parts):
        raise ValueError("a sparse matrix has parts of wrong types")
    # other types would be copied into larger ones
    if type(is_array) is not bool or data.dtype.kind not in "biufc" or {p.dtype for p in parts[1:]} - INDEX_TYPES:
        raise ValueError("a sparse matrix has numbers of wrong types")
    found = makers[form][bool(is_array)](parts, shape=shape)
    found.check_format(full_check=True)
    return found


def _is_frozen(value: Any) -> bool:
    module, name = type(value).__module__, type(value).__name__
    return module.startswith("scipy.stats.") and name.endswith("_frozen") and hasattr(value, "dist")


def _frozen_parts(value: Any) -> tuple[Any, ...]:
    if type(_distribution(value.dist.name)) is not type(value.dist):
        raise ValueError(f"the distribution {value.dist.name!r} is not one of scipy.stats")
    return value.dist.name, tuple(value.args), dict(value.kwds)


def _make_frozen(name: str, args: Any, keywords: Any) -> Any:
    _check_arguments(args, keywords, "a distribution")
    # SciPy would make a table of two arrays
    if not all(isinstance(one, (int, float, np.number, np.bool_)) for one in (*args, *keywords.values())):
        raise ValueError(f"the distribution {shown(name)} has parameters that are no numbers")
    return _distribution(name)(*args, **keywords)


def _distribution(name: Any) -> Any:
    """The distribution of the given name."""
    from scipy import stats

    found = getattr(stats, name, None) if type(name) is str and not name.startswith("_") else None
    if not isinstance(found, (stats.rv_continuous, stats.rv_discrete)):
        raise ValueError(f"the distribution {shown(name)} is not one of scipy.stats")
    return found


def _is_spline(value: Any) -> bool:
    return type(value).__name__ == "BSpline" and type(value).__module__.startswith("scipy.interpolate")


def _make_spline(t: Any, c: Any, k: int, extrapolate: Any, axis: int) -> Any:
    from scipy.interpolate import BSpline

    if not all(isinstance(one, np.ndarray) and one.dtype in SPLINE_TYPES for one in (t, c)):
        raise ValueError("a spline has knots or coefficients that are no arrays of floats")
    known = type(extrapolate) in (NoneType, bool) or (type(extrapolate) is str and extrapolate == "periodic")
    if type(k) is not int or type(axis) is not int or not known:
        raise ValueError("a spline has a degree, an axis or a way to extrapolate that is none")
    # the constructor expects the axis of the coefficients at its original position
    return BSpline(t, np.moveaxis(c, 0, axis), k, extrapolate, axis)


# ------------------------------------------------------------------------------------------------------- of pandas
def _from_pandas(value: Any, name: str) -> bool:
    """Whether a value has a class of pandas, which may not be installed."""
    return any(base.__name__ == name and base.__module__.startswith("pandas") for base in type(value).__mro__)


def _pandas_type_parts(value: Any) -> tuple[Any, ...]:
    if _from_pandas(value, "CategoricalDtype"):
        return "category", None if value.categories is None else np.asarray(value.categories), value.ordered
    if _make_pandas_type(str(value), None, None) != value:
        raise ValueError(f"the type {value!r} of pandas cannot be saved")
    return str(value), None, None


def _make_pandas_type(name: str, categories: Any, ordered: Any) -> Any:
    import pandas

    if type(name) is str and name == "category":
        if ordered is not None and type(ordered) is not bool:
            raise ValueError("categories of pandas are neither in order nor without one")
        if categories is not None:
            _check_labels(categories)
        return pandas.CategoricalDtype(categories, ordered)
    if type(name) is not str or not PANDAS_TYPES.fullmatch(name):
        raise ValueError(f"the type {shown(name)} of pandas cannot be saved")
    return pandas.api.types.pandas_dtype(name)


def _index_parts(value: Any) -> tuple[Any, ...]:
    parts = np.asarray(value), value.dtype, value.name
    if not _make_index(*parts).equals(value):
        raise ValueError(f"an index of type {type(value).__name__} of pandas cannot be saved")
    return parts


def _make_index(values: Any, dtype: Any, name: Any) -> Any:
    import pandas

    _check_labels(values)
    if not isinstance(dtype, (np.dtype, pandas.api.extensions.ExtensionDtype)) or getattr(dtype, "kind", "O") in "US":
        raise ValueError("an index of pandas has a type that is none")
    if not isinstance(name, SCALARS):
        raise ValueError("an index of pandas has a name that is neither a number nor a text")
    return pandas.Index(values, dtype=dtype, name=name)


def _check_labels(values: Any) -> None:
    """Raise a ValueError if pandas would take long to hash labels: object labels must be single numbers or texts."""
    if not isinstance(values, np.ndarray) or values.ndim != 1:
        raise ValueError("labels of pandas are no array")
    if values.dtype.kind == "O":
        labels = values.tolist()
        checked_keys(labels)
        if not all(isinstance(one, SCALARS) for one in labels):
            raise ValueError("labels of pandas are neither numbers nor texts")


def _special(fits: Callable[[Any], bool], parts: Callable[[Any], tuple[Any, ...]], make: Callable[..., Any]) -> Kind:
    return Kind(fits, lambda v: (parts(v),), lambda values: make(*values), has_values=True, copies=True)


KINDS = SIMPLE | {
    "partial": _special(is_exactly(partial), lambda v: (v.func, v.args, v.keywords), _make_partial),
    "slice": _special(is_exactly(slice), lambda v: (v.start, v.stop, v.step), _make_slice),
    "range": _special(is_exactly(range), lambda v: (v.start, v.stop, v.step), _make_range),
    "masked": _special(
        is_exactly(np.ma.MaskedArray), lambda v: (v.data, np.ma.getmaskarray(v), v.fill_value), _make_masked
    ),
    "random": _special(is_exactly(np.random.Generator, np.random.RandomState), _random_parts, _make_random),
    "sparse": _special(lambda v: sparse.issparse(v) and v.format in ("csr", "csc"), _sparse_parts, _make_sparse),
    "distribution": _special(_is_frozen, _frozen_parts, _make_frozen),
    "spline": _special(_is_spline, lambda v: (v.t, v.c, int(v.k), v.extrapolate, int(v.axis)), _make_spline),
    "pandas type": _special(lambda v: _from_pandas(v, "ExtensionDtype"), _pandas_type_parts, _make_pandas_type),
    "pandas index": _special(lambda v: _from_pandas(v, "Index"), _index_parts, _make_index),
}
"""Kinds by their name in a file; the first one that fits a value is its kind."""
