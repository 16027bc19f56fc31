"""Tables of libraries other than pandas, and column names in messages."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

import numpy as np

from infinitask.estimators._sources import not_blocks

LARGEST = float(np.finfo(np.float32).max)
"""The largest number of a table: tables are encoded in single precision."""


def as_table(X: Any) -> Any:
    """Return X, as a data frame of pandas if it is a table of Arrow."""
    not_blocks(X)
    is_arrow = _library(X) == "pyarrow" and hasattr(X, "to_pandas")
    return X.to_pandas(date_as_object=False) if is_arrow else X


def as_pandas(X: Any) -> Any:
    """Return X, as a data frame of pandas if it is a table of Arrow or a frame of polars."""
    if _library(X) != "polars" or not hasattr(X, "to_pandas"):
        return as_table(X)
    try:
        return X.to_pandas()
    except ImportError as error:
        raise ImportError(
            "A frame of polars is converted by pyarrow and pandas, which are not installed: "
            "pip install infinitask[table,parquet]"
        ) from error


def listed(names: Any, limit: int = 12) -> str:
    """Return at most ``limit`` names as text for a message."""
    known = [str(name) for name in names]
    more = f" and {len(known) - limit} more" if len(known) > limit else ""
    return ", ".join(known[:limit]) + more


def nearest(name: str, known: Iterable[Any]) -> list[str]:
    """Return at most three names similar to the given one, ignoring case, the most similar first."""
    by_small = {str(other).lower(): str(other) for other in known}
    return [by_small[small] for small in difflib.get_close_matches(name.lower(), by_small)]


def check_sizes(X: Any) -> None:
    """Raise an error that names a column with numbers too large for single precision."""
    if not hasattr(X, "iloc"):
        return
    for place, name in enumerate(X.columns):
        column = X.iloc[:, place]
        if getattr(column.dtype, "kind", "") != "f":
            continue
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        large = np.flatnonzero(np.abs(values) > LARGEST)
        if large.size:
            raise ValueError(
                f"The column {str(name)!r} holds {values[large[0]]:g} (infinity or a value too large for "
                f"dtype('float32')) in {large.size} of {values.size} rows; leave such cells empty, which counts as "
                "missing, or give its logarithm."
            )


def _library(X: Any) -> str:
    return type(X).__module__.partition(".")[0]
