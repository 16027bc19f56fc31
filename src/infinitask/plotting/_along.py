"""An index or times along which something is drawn."""

from __future__ import annotations

from typing import Any

import numpy as np

from infinitask._base.arrays import HostArray
from infinitask.plotting._asked import name_of


def in_order(along: Any, argument: str) -> tuple[HostArray, HostArray, str]:
    """An index or times in ascending order, that order, and their name."""
    values = np.asarray(along)
    if values.ndim != 1 or values.size < 2:
        raise ValueError(f"{argument} of shape {values.shape} was given; it must be (n,) with two entries at least.")
    order = np.argsort(values, kind="stable")
    return values[order], order, name_of(along, "time" if is_time(values) else "index")


def is_time(x: Any) -> bool:
    """Whether these are times."""
    return bool(np.issubdtype(np.asarray(x).dtype, np.datetime64))


def numbers_of(x: Any) -> HostArray:
    """Places on an axis as numbers; times as matplotlib counts them."""
    if not is_time(x):
        return np.asarray(x, dtype=np.float64)
    from matplotlib.dates import date2num

    return np.asarray(date2num(x))


def short_dates(axes: Any) -> Any:
    """A formatter that writes the year once."""
    from matplotlib.dates import ConciseDateFormatter

    return ConciseDateFormatter(axes.xaxis.get_major_locator())
