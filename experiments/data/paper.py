"""Loaders that return the data sets of the paper's tables and figures as arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets

from .sources import verified_rows
from .specs import QUANTILE_SETS, SETS, Spec

__all__ = [
    "DataSet",
    "cost_sets",
    "load_cost_set",
    "load_quantile_set",
    "load_spambase",
    "load_wilt",
    "quantile_sets",
]


Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class DataSet:
    """Inputs and target of one set, with their names and their source.

    Attributes
    ----------
    name : str
    X : ndarray of shape (n, d)
    y : ndarray of shape (n,)
        Numbers, or the classes 0 and 1.
    feature_names : tuple of str
        One for each column of X.
    target_name : str
    source : str
        A sentence that says where the set comes from and where it was read.
    class_names : tuple of str
        What 0 and 1 mean; empty if the target is a number.

    Examples
    --------
    >>> iris = load_cost_set("iris")
    >>> iris.X.shape, iris.class_names
    ((100, 4), ('versicolor', 'virginica'))
    """

    name: str
    X: Array = field(repr=False)
    y: Array = field(repr=False)
    feature_names: tuple[str, ...]
    target_name: str
    source: str
    class_names: tuple[str, ...] = ()


# --------------------------------------------------------------------------------------------------- quantiles
def quantile_sets() -> tuple[str, ...]:
    """The names of the regression sets of the paper's Table 1, in its order.

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> len(quantile_sets())
    20
    >>> quantile_sets()[:3]
    ('cobar_ore', 'engel', 'boston_housing')
    """
    return QUANTILE_SETS


@overload
def load_quantile_set(
    name: str, *, missing: str = ..., scaled: bool = ..., return_X_y: Literal[False] = ...
) -> DataSet: ...
@overload
def load_quantile_set(
    name: str, *, missing: str = ..., scaled: bool = ..., return_X_y: Literal[True]
) -> tuple[Array, Array]: ...
def load_quantile_set(
    name: str, *, missing: str = "drop", scaled: bool = False, return_X_y: bool = False
) -> DataSet | tuple[Array, Array]:
    """A regression set of the paper's Table 1: numeric columns only, as its authors used them.

    Parameters
    ----------
    name : str
        One of :func:`quantile_sets`.
    missing : {"drop", "mean", "keep"}
        What to do with a row that has a missing input: leave it out, fill in the mean of the column, or keep NaN.
        Only un3 has missing inputs, in 85 of its 210 rows. The paper does not say what it did: 125 rows are the size
        that is usually quoted, but its authors' programs fill in the mean.
    scaled : bool
        Scale inputs and target to mean 0 and (population) standard deviation 1 over the whole set, after ``missing``.
        The paper did so before it split the sets.
    return_X_y : bool
        Return ``X, y`` only.

    Returns
    -------
    DataSet, or X of shape (n, d) and y of shape (n,)

    Raises
    ------
    FileNotFoundError
        If the set is neither in the folder INFINITASK_DATA nor in an installed package. The message says how to get it.
    ValueError
        If the values found are not those of the set.

    Notes
    -----
    A file in INFINITASK_DATA comes before an installed package, because the user named that folder. Both are compared
    with the same checksum, so the arrays are the same.

    Examples
    --------
    >>> X, y = load_quantile_set("engel", return_X_y=True)  # doctest: +SKIP
    >>> X.shape, y.shape  # doctest: +SKIP
    ((235, 1), (235,))
    >>> load_quantile_set("angel")
    Traceback (most recent call last):
    ValueError: There is no set 'angel'; give one of cobar_ore, engel, boston_housing, ...
    """
    spec = SETS[_known(name, QUANTILE_SETS)]
    if missing not in ("drop", "mean", "keep"):
        raise ValueError(f'missing={missing!r} is not known; give "drop", "mean" or "keep".')
    rows, place = verified_rows(spec)
    table = np.asarray([[float(cell or "nan") for cell in row] for row in _pick(spec, rows)])
    gaps = np.isnan(table)
    if missing == "drop":
        table = table[~np.any(gaps, axis=1)]
    elif missing == "mean":
        table = np.where(gaps, np.nanmean(table, axis=0), table)
    if scaled:
        table = (table - np.nanmean(table, axis=0)) / np.nanstd(table, axis=0)
    return _answer(_data_set(spec, table[:, :-1].copy(), table[:, -1].copy(), place), return_X_y)


# -------------------------------------------------------------------------------------------------- level sets
@overload
def load_wilt(*, return_X_y: Literal[False] = ...) -> DataSet: ...
@overload
def load_wilt(*, return_X_y: Literal[True]) -> tuple[Array, Array]: ...
def load_wilt(*, return_X_y: bool = False) -> DataSet | tuple[Array, Array]:
    """Wilt: 4839 segments of a satellite image by 5 inputs; 261 are diseased trees (1), the others are not (0).

    The paper draws density level sets of X and does not look at y. Rows 0 to 4338 are the source's training part.

    Parameters
    ----------
    return_X_y : bool
        Return ``X, y`` only.

    Returns
    -------
    DataSet, or X of shape (4839, 5) and y of shape (4839,)

    See Also
    --------
    load_quantile_set : where the loaders search, and which errors they raise.

    Examples
    --------
    >>> load_wilt().X.shape  # doctest: +SKIP
    (4839, 5)
    """
    return _answer(_load_classes(SETS["wilt"]), return_X_y)


@overload
def load_spambase(*, return_X_y: Literal[False] = ...) -> DataSet: ...
@overload
def load_spambase(*, return_X_y: Literal[True]) -> tuple[Array, Array]: ...
def load_spambase(*, return_X_y: bool = False) -> DataSet | tuple[Array, Array]:
    """Spambase: 4601 mails by 57 frequencies and lengths; 1813 are spam (1), the others are not (0).

    The paper draws density level sets of X and does not look at y. Most entries of X are 0.

    Parameters
    ----------
    return_X_y : bool
        Return ``X, y`` only.

    Returns
    -------
    DataSet, or X of shape (4601, 57) and y of shape (4601,)

    See Also
    --------
    load_quantile_set : where the loaders search, and which errors they raise.

    Examples
    --------
    >>> load_spambase().X.shape  # doctest: +SKIP
    (4601, 57)
    """
    return _answer(_load_classes(SETS["spambase"]), return_X_y)


# ------------------------------------------------------------------------------------------------------- costs
@dataclass(frozen=True)
class _Made:
    """A classification set that a function of scikit-learn generates."""

    make: Callable[..., tuple[Array, Array]]
    params: Mapping[str, Any]


_COST_SETS = {
    "two_moons": _Made(datasets.make_moons, {"n_samples": 1000, "noise": 0.4}),
    "circles": _Made(datasets.make_circles, {"n_samples": 1000, "noise": 0.1}),
    "iris": None,
    "toy": _Made(
        datasets.make_classification,
        {"n_samples": 1000, "n_features": 20, "n_informative": 10, "n_redundant": 4, "class_sep": 0.5},
    ),
}


def cost_sets() -> tuple[str, ...]:
    """The names of the classification sets of the paper's Table 2, in its order.

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> cost_sets()
    ('two_moons', 'circles', 'iris', 'toy')
    """
    return tuple(_COST_SETS)


@overload
def load_cost_set(name: str, *, random_state: Any = ..., return_X_y: Literal[False] = ...) -> DataSet: ...
@overload
def load_cost_set(name: str, *, random_state: Any = ..., return_X_y: Literal[True]) -> tuple[Array, Array]: ...
def load_cost_set(name: str, *, random_state: Any = 13, return_X_y: bool = False) -> DataSet | tuple[Array, Array]:
    """A classification set of the paper's Table 2, generated by scikit-learn, or iris without its first class.

    Parameters
    ----------
    name : str
        One of :func:`cost_sets`.
    random_state : int, numpy.random.RandomState or None
        13 is the seed of the authors' programs. Iris is not random.
    return_X_y : bool
        Return ``X, y`` only.

    Returns
    -------
    DataSet, or X of shape (n, d) and y of shape (n,) with the classes 0 and 1

    Examples
    --------
    >>> X, y = load_cost_set("two_moons", return_X_y=True)
    >>> X.shape, y.shape
    ((1000, 2), (1000,))
    >>> load_cost_set("toy").source
    "scikit-learn's make_classification(n_samples=1000, n_features=20, n_informative=10, ..., random_state=13)."
    """
    made = _COST_SETS[_known(name, cost_sets())]
    if made is None:
        iris = datasets.load_iris()
        rows = iris.target > 0
        names, classes = tuple(iris.feature_names), tuple(str(word) for word in iris.target_names[1:])
        source = "scikit-learn's load_iris(), the classes 1 and 2."
        return _answer(
            DataSet(name, iris.data[rows], iris.target[rows] - 1, names, "class", source, classes), return_X_y
        )
    X, y = made.make(**made.params, random_state=random_state)
    names = tuple(f"x{k}" for k in range(X.shape[1]))
    arguments = ", ".join(f"{key}={value!r}" for key, value in {**made.params, "random_state": random_state}.items())
    source = f"scikit-learn's {made.make.__name__}({arguments})."
    return _answer(DataSet(name, X, y, names, "class", source, ("0", "1")), return_X_y)


# ----------------------------------------------------------------------------------------------------- helpers
def _known(name: str, names: tuple[str, ...]) -> str:
    if name not in names:
        raise ValueError(f"There is no set {name!r}; give one of {', '.join(names)}.")
    return name


def _answer(data: DataSet, return_X_y: bool) -> DataSet | tuple[Array, Array]:
    return (data.X, data.y) if return_X_y else data


def _load_classes(spec: Spec) -> DataSet:
    rows, place = verified_rows(spec)
    rows = _pick(spec, rows)
    labels = list(spec.labels)
    X = np.asarray([[float(cell) for cell in row[:-1]] for row in rows])
    y = np.asarray([labels.index(row[-1]) for row in rows])
    return _data_set(spec, X, y, place)


def _data_set(spec: Spec, X: Array, y: Array, place: str) -> DataSet:
    source = f"{spec.name} is {spec.citation}, read from {place}."
    return DataSet(spec.name, X, y, tuple(spec.inputs), spec.target, source, tuple(spec.labels.values()))


def _pick(spec: Spec, rows: list[list[str]]) -> list[list[str]]:
    """The cells of inputs and target, without columns of words."""
    kept = [spec.columns.index(name) for name in (*spec.inputs, spec.target)]
    return [[row[k] for k in kept] for row in rows]
