"""Tables: select the rows of a page and describe the columns.

A :class:`Table` has mixed columns. It makes other tables cell by cell, to test how a pipeline encodes them.
"""

from __future__ import annotations

from numbers import Real
from typing import Any, NamedTuple, final

import numpy as np
from scipy.sparse import issparse

from infinitask._base.arrays import HostArray
from infinitask.report._export import Exported

MAX_LABEL = 60
"""The maximum number of characters shown of a value."""


def is_missing(value: Any) -> bool:
    """Whether a cell is missing: None, NaN, NaT or pandas' NA."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)


class Distinct(NamedTuple):
    """The distinct values of a column, sorted, with a missing value last.

    Parameters
    ----------
    codes : ndarray (n,) of int
        The position of each row's value.
    first, counts : ndarray (m,) of int
        The position of one row with each value, and the number of its rows.
    labels : list of str
    missing : int
        The position of the missing value; −1 if there is none.
    """

    codes: HostArray
    first: HostArray
    counts: HostArray
    labels: list[str]
    missing: int

    @classmethod
    def of(cls, cells: list[Any], order: list[Any] | None = None) -> Distinct:
        """Count the cells of a column; ``order`` gives the order of its values, if they have one."""
        nothing = object()
        keys = [nothing if is_missing(cell) else cell for cell in cells]
        known: list[Any] = [value for value in dict.fromkeys(keys) if value is not nothing]
        rank = None if order is None else {value: place for place, value in enumerate(order)}.__getitem__
        try:
            known = sorted(known, key=rank)
        except TypeError:
            known = sorted(known, key=str)
        places = {value: place for place, value in enumerate(known)}
        codes = np.array([places.get(key, len(known)) for key in keys], dtype=np.intp)
        _, first, counts = np.unique(codes, return_index=True, return_counts=True)
        labels = [*map(_label, known), *([""] if counts.size > len(known) else [])]
        return cls(codes, first, counts, labels, len(known) if counts.size > len(known) else -1)

    def most_frequent(self, limit: int) -> HostArray:
        """Positions of the most frequent values, at most ``limit``, sorted."""
        return np.sort(np.argsort(-self.counts, kind="stable")[:limit])


def _label(value: Any) -> str:
    text = f"{value:g}" if isinstance(value, float) else str(value).removesuffix(" 00:00:00")
    return text if len(text) <= MAX_LABEL else text[: MAX_LABEL - 1] + "…"


@final
class Table:
    """Rows and columns of a data frame or an array; tables made from it keep the types of its columns.

    Parameters
    ----------
    X : pandas DataFrame or array (n, d)
        An array may hold text.
    """

    def __init__(self, X: Any) -> None:
        self.framed = hasattr(X, "iloc")
        if issparse(X) or (hasattr(X, "columns") and not self.framed):
            raise TypeError(
                f"The table is a {type(X).__name__}; a page of a pipeline takes a pandas DataFrame or an array. "
                "Convert it first."
            )
        if not self.framed:
            X = np.asarray(X)
            X = X.astype(np.float64 if X.dtype.kind in "iuf" else object)
        self.X = X
        if self.X.ndim != 2:
            raise ValueError(f"The table has {self.X.ndim} axes; rows and columns are expected.")
        self.n, self.d = self.X.shape

    def column(self, j: int) -> Any:
        """Column j as it is stored."""
        return self.X.iloc[:, j] if self.framed else self.X[:, j]

    def distinct(self, j: int) -> Distinct:
        """The distinct values of column j; categories count as their values."""
        categories = getattr(self.column(j).dtype, "categories", None)
        return Distinct.of(self.column(j).tolist(), None if categories is None else categories.tolist())

    def numbers(self, j: int) -> HostArray | None:
        """Column j as numbers, NaN if missing; None if it holds anything else, such as booleans."""
        column = self.column(j)
        kind = column.dtype.kind
        if kind in "iuf" and not hasattr(column.dtype, "categories"):
            plain = column.to_numpy(dtype=np.float64, na_value=np.nan) if self.framed else column
            return np.asarray(plain, dtype=np.float64)
        if kind != "O" or hasattr(column.dtype, "categories"):
            return None
        cells = [np.nan if is_missing(value) else value for value in column.tolist()]
        plain = all(isinstance(cell, Real) and not isinstance(cell, bool) for cell in cells)
        return np.array(cells, dtype=np.float64) if plain else None

    def days(self, j: int) -> HostArray | None:
        """Column j as days since 1970, NaN if missing; None if it holds anything but dates without a time."""
        column = self.column(j)
        if not self.framed or column.dtype.kind != "M" or hasattr(column.dtype, "tz"):
            return None
        dates = column.to_numpy()
        whole, missing = dates.astype("datetime64[D]"), np.isnat(dates)
        if not np.all((whole == dates) | missing):
            return None
        return np.where(missing, np.nan, whole.astype(np.int64))

    def made(self, rows: HostArray, changed: dict[int, Any] | None = None) -> Any:
        """The table whose cell (i, j) is that of row ``rows[i, j]``; the columns in ``changed`` are replaced."""
        new = changed or {}
        if self.framed:
            kept = {name: self.column(j).array.take(rows[:, j]) for j, name in enumerate(self.X.columns)}
            return type(self.X)(kept | {self.X.columns[j]: cells for j, cells in new.items()})
        cells = self.X[rows, np.arange(self.d)[None, :]]
        for j, values in new.items():
            cells[:, j] = values
        return cells

    def missing(self, j: int) -> Any:
        """A missing cell of column j."""
        if not self.framed or self.column(j).dtype.kind in "iuf":
            return np.array([np.nan])
        return self.column(j).array.take([-1], allow_fill=True)

    def dates(self, j: int, days: HostArray) -> Any:
        """Cells of column j that hold the given days."""
        return (np.datetime64(0, "D") + days.astype(np.int64) * np.timedelta64(1, "D")).astype(self.column(j).dtype)


MAX_ROWS = 2_500
"""The maximum number of rows on a page. The model does not depend on it; more rows would overlap in the plots."""

MAX_NUMBERS = 250_000
"""The maximum number of numbers in the rows of a page, 2.7 MB as text; with many columns there are fewer rows."""

MAX_LOOKED_AT = 20_000
"""The maximum number of rows read from a larger table, evenly spaced: fractions are accurate to half a percent."""


class Shown(NamedTuple):
    """The rows of a table that a page shows.

    Parameters
    ----------
    rows : ndarray (k,) of int
        Positions, ascending.
    weight : ndarray (k,)
        The number of rows that each row represents.
    """

    rows: HostArray
    weight: HostArray

    @classmethod
    def of(cls, n: int, width: int, rare: HostArray | None = None) -> Shown:
        """Select from n rows, with ``width`` numbers per row, all or some.

        Parameters
        ----------
        n, width : int
        rare : ndarray (r,) of int or None
            Rows with priority: they take up to half of the rows shown, and the other half represents all others.
        """
        limit = most_rows(width)
        if n <= limit:
            return cls(np.arange(n), np.ones(n))
        first = np.array([], dtype=np.intp) if rare is None else np.asarray(rare, dtype=np.intp)
        kept = first[evenly(first.size, limit // 2)]
        others = np.setdiff1d(np.arange(n), first)
        rest = others[evenly(others.size, limit - kept.size)]
        weights = [first.size / max(1, kept.size), others.size / max(1, rest.size)]
        rows, weight = np.concatenate([kept, rest]), np.repeat(weights, [kept.size, rest.size])
        order = np.argsort(rows)
        return cls(rows[order], weight[order])


def most_rows(width: int) -> int:
    """The number of rows that a page shows if each row takes ``width`` numbers."""
    return max(100, min(MAX_ROWS, MAX_NUMBERS // max(1, width)))


def evenly(n: int, limit: int) -> HostArray:
    """Positions of at most ``limit`` of n items, evenly spaced."""
    return np.unique(np.linspace(0, n - 1, min(n, limit)).astype(np.intp)) if n and limit else np.arange(0)


def numbers_column(name: str, values: HostArray, typical: Any, date: bool = False) -> Exported:
    """Name, range and a typical value of a numeric column; the typical value is one that occurs."""
    known = values[~np.isnan(values)]
    return {
        "name": name,
        "kind": "number",
        "low": float(known.min()),
        "high": float(known.max()),
        "typical": float(typical),
        "whole": bool(np.all(known == np.round(known))),
        "date": date,
    }


def names_of(X: Any, model: Any, names: Any, d: int) -> list[str]:
    """The names of the columns: the given ones, or those of the model or the table."""
    if names is None:
        names = getattr(model, "feature_names_in_", getattr(X, "columns", None))
    if names is None:
        return [f"x{j}" for j in range(d)]
    if isinstance(names, str):
        raise ValueError(f"names={names!r} was given; it must be a list with a name for each of the {d} columns.")
    found = [str(name) for name in names]
    if len(found) != d:
        raise ValueError(f"{len(found)} names were given for {d} columns; give one for each.")
    return found


def row_names(X: Any) -> list[str] | None:
    """The row names of a data frame; None if it only numbers its rows from 0, or has no names for them."""
    index: Any = getattr(X, "index", None)
    if not hasattr(X, "columns") or not hasattr(index, "nlevels"):
        return None
    if index.nlevels > 1:
        return [", ".join(str(part) for part in entry) for entry in index]
    names = [str(entry) for entry in index.astype(str)]
    return None if names == [str(k) for k in range(len(names))] else names
