"""Which rows a page shows, and what is known of its columns."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from infinitask._base.arrays import HostArray
from infinitask.report._export import Exported

MAX_ROWS = 2_500
"""Rows on a page. All of the model is there whatever this is; more rows would be drawn on top of each other."""

MAX_NUMBERS = 250_000
"""Numbers that the rows of a page may take, 2.7 MB as text: with many columns there are fewer rows."""

MAX_LOOKED_AT = 20_000
"""Rows of a larger table that are read, evenly spaced: fractions are then known to half a percent."""


class Shown(NamedTuple):
    """Rows of a table that a page shows.

    Parameters
    ----------
    rows : ndarray (k,) of int
        Positions, ascending.
    weight : ndarray (k,)
        How many rows each stands for.
    """

    rows: HostArray
    weight: HostArray

    @classmethod
    def of(cls, n: int, width: int, rare: HostArray | None = None) -> Shown:
        """Of n rows, each of which takes ``width`` numbers, all or some.

        Parameters
        ----------
        n, width : int
        rare : ndarray (r,) of int or None
            Rows that count more than others do: up to half of those shown are these, and the rest stands for the rest.
        """
        limit = most_rows(width)
        if n <= limit:
            return cls(np.arange(n), np.ones(n))
        first = np.array([], dtype=np.intp) if rare is None else np.asarray(rare, dtype=np.intp)
        kept = first[evenly(first.size, limit // 2)]
        others = np.setdiff1d(np.arange(n), first)
        rest = others[evenly(others.size, limit - kept.size)]
        shares = [first.size / max(1, kept.size), others.size / max(1, rest.size)]
        rows, weight = np.concatenate([kept, rest]), np.repeat(shares, [kept.size, rest.size])
        order = np.argsort(rows)
        return cls(rows[order], weight[order])


def most_rows(width: int) -> int:
    """How many rows a page shows, each of which takes ``width`` numbers."""
    return max(100, min(MAX_ROWS, MAX_NUMBERS // max(1, width)))


def evenly(n: int, limit: int) -> HostArray:
    """Positions of at most ``limit`` of n things."""
    return np.unique(np.linspace(0, n - 1, min(n, limit)).astype(np.intp)) if n and limit else np.arange(0)


def numbers_column(name: str, values: HostArray, typical: Any, date: bool = False) -> Exported:
    """Name, range and a typical value of a column of numbers; a typical value is one that occurs."""
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
    """What the columns are called: as given, or as the model or the table calls them."""
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
    """What a data frame calls its rows; None where it only numbers them from 0, or has no names for them."""
    index: Any = getattr(X, "index", None)
    if not hasattr(X, "columns") or not hasattr(index, "nlevels"):
        return None
    if index.nlevels > 1:
        return [", ".join(str(part) for part in entry) for entry in index]
    names = [str(entry) for entry in index.astype(str)]
    return None if names == [str(k) for k in range(len(names))] else names
