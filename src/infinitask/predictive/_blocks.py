"""h at many levels for many rows, a block of rows at a time, so that memory does not grow with the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from infinitask._array import HostArray

__all__ = ["level_blocks", "over_levels"]

ENTRIES_PER_BLOCK = 1_000_000
"""Rows times levels of a block: 8 MB."""


def level_blocks(
    field: Callable[[Any, HostArray], HostArray], X: Any, levels: HostArray
) -> Iterator[tuple[HostArray, slice]]:
    """h at the levels, (rows, k), for successive blocks of rows, and which rows they are.

    Parameters
    ----------
    field : callable
        (X, levels) → h(x)(θ), (n, k).
    X : array (n, d)
    levels : ndarray (k,)
    """
    size = max(1, ENTRIES_PER_BLOCK // levels.size)
    for start in range(0, X.shape[0], size):
        rows = slice(start, start + size)
        yield field(X[rows, :], levels), rows


def over_levels(
    field: Callable[[Any, HostArray], HostArray],
    X: Any,
    levels: HostArray,
    answer: Callable[[HostArray, slice], HostArray],
) -> HostArray:
    """The answers for all rows, from h at the levels: (n, …).

    Parameters
    ----------
    field, X, levels
        As in :func:`level_blocks`.
    answer : callable
        (values, rows) → answers, one for each row: ``values`` is h at the levels, (rows, k), for a slice of rows.

    Examples
    --------
    >>> import numpy as np
    >>> line = lambda X, levels: X + levels
    >>> over_levels(line, np.array([[1.0], [2.0]]), np.array([0.0, 0.5]), lambda h, rows: h.max(axis=1))
    array([1.5, 2.5])
    """
    return np.concatenate([answer(values, rows) for values, rows in level_blocks(field, X, levels)])
