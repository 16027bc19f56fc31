"""Costs that name their classes, as tables and dictionaries do, in the order of ``classes_``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from infinitask._base.arrays import HostArray


def check_one_type(y: Any) -> None:
    """Raise an error if labels cannot be sorted because they have several types, or if one is None.

    Examples
    --------
    >>> check_one_type(np.array(["dry", "fog"]))
    """
    labels = np.asarray(y)
    if labels.dtype != object or labels.ndim != 1:
        return
    try:
        np.unique(labels)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in labels})
        raise TypeError(
            f"y holds labels of the types {', '.join(kinds)}; they must be of one type, all texts or all numbers, and "
            "none missing. Convert them, say by str, and leave out rows without a label."
        ) from None


def costs_by_name(theta: Any, classes: HostArray) -> Any:
    """Costs of a dictionary, a series or the columns of a table, in the order of ``classes``.

    Everything else, and tables with the default names 0, 1, 2, …, is returned unchanged.

    Examples
    --------
    >>> costs_by_name({"fog": 9.0, "dry": 1.0}, np.array(["dry", "fog"])).tolist()
    [1.0, 9.0]
    """
    if isinstance(theta, Mapping):
        return _ordered(list(theta.values()), list(theta), classes, "the names of theta")
    columns = getattr(theta, "columns", None)
    if columns is not None:
        return _ordered(np.asarray(theta), columns, classes, "the columns of theta")
    return _ordered(theta, getattr(theta, "index", None), classes, "the index of theta")


def matrix_by_name(costs: Any, classes: HostArray) -> Any:
    """A matrix of costs with rows and columns in the order of ``classes`` if a table names them, else unchanged.

    A Polars table names only its columns; its rows must be in the order of ``classes``.
    """
    columns = getattr(costs, "columns", None)
    if columns is None:
        return costs
    rows = _ordered(np.asarray(costs), getattr(costs, "index", None), classes, "the index of costs", axis=0)
    return _ordered(rows, columns, classes, "the columns of costs")


def _ordered(values: Any, names: Any, classes: HostArray, what: str, axis: int = -1) -> Any:
    """Values in the order of ``classes`` along an axis; unchanged if they have no names, or only default ones."""
    if names is None or callable(names) or _unnamed(names):
        return values
    return np.take(np.asarray(values), _places(list(names), classes, what), axis=axis)


def _unnamed(names: Any) -> bool:
    """Whether names are the default numbers 0, 1, 2, … of a table."""
    return type(names).__name__ == "RangeIndex" and names.start == 0 and names.step == 1


def _places(names: list[Any], classes: HostArray, what: str) -> list[int]:
    """The position of each class among the names, which are labels or labels as text, each exactly once."""
    labels = classes.tolist()
    known = names if set(names) & set(labels) else [str(given) for given in names]
    asked = labels if known is names else [str(label) for label in labels]
    unknown = [names[i] for i, given in enumerate(known) if given not in asked]
    missing = [labels[i] for i, label in enumerate(asked) if label not in known]
    if unknown or missing or len(set(known)) < len(known):
        found = [f"holds {unknown}, which are no classes" if unknown else "", f"lacks {missing}" if missing else ""]
        found += ["" if unknown or missing else "holds a class twice"]
        raise ValueError(
            f"{what} must name each of the classes {labels} once: it {' and '.join(filter(None, found))}. Give the "
            "names of classes_, or an array in their order."
        )
    return [known.index(label) for label in asked]
