"""A plane through the features of a model: two of them change, the others are held."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from infinitask._base.arrays import HostArray
from infinitask._base.validation import count
from infinitask.pipelines._tables import as_table
from infinitask.plotting._asked import Asked, columns_of, finite_range, held_at, holds_numbers, like, listed, position


class Plane(NamedTuple):
    """A grid over two features.

    Parameters
    ----------
    a, b : ndarray (g, g)
        The two coordinates.
    points : table (g², d)
        The features there, of the type of the given rows.
    data : ndarray (n, 2)
        The two features of the given rows.
    names : (str, str)
    held : dict
        Names of the other features, and where they are held.
    """

    a: HostArray
    b: HostArray
    points: Any
    data: HostArray
    names: tuple[str, ...]
    held: dict[str, Any]


def plane_of(given: Asked, X: Any, features: Any, at: Mapping[Any, Any] | None, grid: int, display: str) -> Plane:
    """A grid over two features of a model, from the smallest to the largest value of some rows.

    Parameters
    ----------
    given : Asked
    X : table (n, d)
    features : pair of int or str, or None
        Which two features change; None: those of a model with two.
    at : mapping or None
        Names or positions of other features, and values to hold them at instead of typical ones.
    grid : int
    display : str
        Who asks, for errors.
    """
    X = as_table(X)
    columns = columns_of(X)
    # the columns of a data frame may be in another order than those of the fit
    names = tuple(str(name) for name in X.columns) if hasattr(X, "columns") else given.names(X)
    d = int(getattr(given.whole, "n_features_in_", len(columns)))
    if not given.before and len(columns) != d:
        raise ValueError(f"X with {len(columns)} columns was given; the model has {d} input{'s' * (d != 1)}.")
    i, j = axes = _axes(features, names, columns, display)
    low, high = np.array([_ends(columns[k], names[k]) for k in axes]).T
    margin = np.where(high > low, 0.04 * (high - low), 0.5)
    a, b = np.meshgrid(*np.linspace(low - margin, high + margin, count("grid", grid, least=2)).T)
    values = held_at(X, names, at)
    for k in axes:
        if any(position(name, names, "at") == k for name in at or {}):
            raise ValueError(f"at holds a value for {names[k]!r}, which is an axis of the plane; leave it out.")
    rows = [np.full(a.size, value) for value in values]
    rows[i], rows[j] = a.ravel(), b.ravel()
    held = {name: value for k, (name, value) in enumerate(zip(names, values, strict=True)) if k not in axes}
    data = np.column_stack([columns[k].astype(np.float64) for k in axes])
    return Plane(a, b, like(X, rows), data, tuple(names[k] for k in axes), held)


def _axes(features: Any, names: tuple[str, ...], columns: list[HostArray], display: str) -> tuple[int, int]:
    """The positions of the two features that change."""
    d = len(names)
    numbers = [name for name, column in zip(names, columns, strict=True) if holds_numbers(column)]
    example = tuple(numbers[:2] if len(numbers) > 1 else names[:2])
    if d < 2:
        raise ValueError(f"The model has {d} input; {display} draws a plane and needs two at least.")
    if features is None:
        if d == 2:
            return 0, 1
        raise ValueError(
            f"The model has {d} inputs; {display} draws a plane of two. Say which: "
            f"features={example!r}; the others are held at typical values, or where at= says. The "
            f"inputs are {listed(names)}."
        )
    pair = () if isinstance(features, str) or not np.iterable(features) else tuple(features)
    if len(pair) != 2:
        raise ValueError(f"features={features!r} was given; it must be a pair, such as {example!r}.")
    i, j = (position(feature, names, "features") for feature in pair)
    if i == j:
        raise ValueError(f"features={features!r} was given; the two must be different inputs.")
    return i, j


def _ends(column: HostArray, name: str) -> tuple[float, float]:
    """The smallest and the largest value of a column of numbers."""
    if not holds_numbers(column):
        raise ValueError(
            f"features names {name!r}, which is no column of numbers; a plane goes along two columns of numbers. Hold "
            f"it instead: at={{{name!r}: {column[0]!r}}}."
        )
    return finite_range(column, f"features names {name!r}")
