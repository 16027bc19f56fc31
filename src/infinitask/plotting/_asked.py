"""Open the model and the table that a display is given: kind of model, tasks, features that change or are held."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from infinitask._base.arrays import HostArray
from infinitask._base.inner_model import steps_and_model, takes
from infinitask._base.validation import count, is_number, levels_within, predictions
from infinitask.estimators._base import BaseInfiniteTask
from infinitask.estimators._frames import as_arrays
from infinitask.pipelines._tables import as_table, listed
from infinitask.tuning._self_tuned import SelfTuned


class Kind(NamedTuple):
    """A family of models: what they provide, an example for error messages, and a test for membership."""

    have: str
    example: str
    holds: Callable[[Any], bool]


def _with_method(name: str) -> Callable[[Any], bool]:
    return lambda model: hasattr(model, name)


CURVES = Kind("quantiles", "InfiniteQuantileRegressor", lambda model: takes(model, "quantiles"))
QUANTILES = Kind("predicted distributions", "InfiniteQuantileRegressor", _with_method("predict_distribution"))
DECISIONS = Kind("decisions for all costs of error", "InfiniteCostSensitiveClassifier", _with_method("roc_curve"))
LEVEL_SETS = Kind("level sets", "InfiniteOneClassSVM", _with_method("mass_volume_curve"))
ANY = Kind("a fit", "InfiniteQuantileRegressor", lambda model: isinstance(model, (BaseInfiniteTask, SelfTuned)))
SELF_TUNED = Kind("a choice", "InfiniteQuantileRegressorCV", lambda model: isinstance(model, SelfTuned))


class Asked(NamedTuple):
    """A fitted model, split into the last step of a pipeline and the steps before it.

    Parameters
    ----------
    model : estimator
        The last step: the model of this library.
    whole : estimator
        The object that the user passed; it knows the names of the features.
    before : tuple of transformers
        The transformers that are applied before the model.
    """

    model: Any
    whole: Any
    before: tuple[Any, ...]

    def inputs(self, X: Any) -> Any:
        """X after the transformers before the model."""
        for step in self.before:
            X = step.transform(X)
        return X

    def table(self, X: Any) -> Features:
        """X with column names: its own, or those of the fit; otherwise "x0", "x1", …, or "x" for a single column."""
        X = as_table(X)
        # the columns of a data frame may be ordered differently than in the fit
        known = getattr(X, "columns", getattr(self.whole, "feature_names_in_", None))
        if known is None:
            d = int(getattr(self.whole, "n_features_in_", 0)) or len(columns_of(X))
            known = ["x"] if d == 1 else [f"x{j}" for j in range(d)]
        return Features(X, tuple(map(str, known)))

    def tasks(self, wanted: Any, otherwise: HostArray) -> Any:
        """The requested tasks; by default those of ``otherwise`` in Θ, or the nodes if the model knows no others."""
        if wanted is not None:
            return np.atleast_1d(np.asarray(wanted, dtype=np.float64))
        if not hasattr(self.model, "field_"):  # of another library, or several models
            return otherwise
        if self.model.field_.knows_nodes_only:
            return np.unique(self.model.nodes_)
        low, high = (float(end[0]) for end in self.model.measure_.support)
        return otherwise[(otherwise >= low) & (otherwise <= high)]


def asked(model: Any, kind: Kind, display: str) -> Asked:
    """Open a fitted model of the given kind; raise an error that names a suitable model otherwise."""
    whole = model
    # a pipeline forwards the methods of its last step, but the display needs that step itself
    before, model = steps_and_model(whole, stop=lambda inner: not isinstance(inner, Pipeline) and kind.holds(inner))
    if isinstance(model, type) or not kind.holds(model):
        given = f"The class {model.__name__}" if isinstance(model, type) else f"A model of type {type(model).__name__}"
        raise TypeError(
            f"{given} was given; {display} shows {kind.have} and needs a fitted model, such as {kind.example}."
        )
    check_is_fitted(whole)
    return Asked(as_arrays(model), whole, tuple(step for _, step in before))


def by_level(curves: Any, quantiles: Any, n: int, name: str = "curves") -> tuple[HostArray, HostArray]:
    """The given quantiles (n, q) and their levels (q,), sorted by level."""
    levels = levels_within("quantiles", quantiles, 0.0, 1.0)
    order = np.argsort(levels)
    return predictions(curves, n, levels.size, "levels", name)[:, order], levels[order]


# ------------------------------------------------------------------------------------------------- features
class Features:
    """A table with column names; it makes other tables of the same type.

    Parameters
    ----------
    X : table (n, d)
    names : tuple of str
    """

    def __init__(self, X: Any, names: tuple[str, ...]) -> None:
        self.X = as_table(X)
        self.columns = columns_of(self.X)
        self.names = names

    def position(self, feature: Any, argument: str) -> int:
        """The position of a feature given by its name or position."""
        if isinstance(feature, str) and feature in self.names:
            return self.names.index(feature)
        d = len(self.names)
        if isinstance(feature, (int, np.integer)) and not isinstance(feature, bool) and 0 <= feature < d:
            return int(feature)
        raise ValueError(
            f"{argument} names {feature!r}, which is no feature of the model; give a position below {d} or one of the "
            f"names: {listed(self.names, 8)}."
        )

    def ends(self, j: int, argument: str) -> tuple[float, float]:
        """The smallest and the largest finite value of a column."""
        column, given = self.columns[j], f"{argument} names {self.names[j]!r}"
        if not holds_numbers(column):
            raise ValueError(
                f"{given}, which is no column of numbers; pictures go along columns of numbers. Hold it instead: "
                f"at={{{self.names[j]!r}: {column[0]!r}}}."
            )
        known = column[np.isfinite(column.astype(np.float64))]  # a pipeline may impute missing values
        if known.size == 0:
            raise ValueError(f"{given}, of which X holds no finite value; give rows that have some.")
        return float(np.min(known)), float(np.max(known))

    def held(self, at: Mapping[Any, Any] | None) -> list[Any]:
        """A value for each column: the one in ``at``, by name or position, or a typical one."""
        given = {self.position(name, "at"): value for name, value in (at or {}).items()}
        for k, value in given.items():
            categories = getattr(self.X.iloc[:, k].dtype, "categories", None) if hasattr(self.X, "iloc") else None
            if categories is not None and value == value and value not in categories:
                known = ", ".join(repr(category) for category in list(categories)[:8])
                raise ValueError(f"at holds {value!r} for {self.names[k]!r}; its categories are {known}.")
            # NaN: a pipeline may impute missing values
            if holds_numbers(self.columns[k]) and not is_number(value) and value == value:
                raise ValueError(f"at holds {value!r} for {self.names[k]!r}, a column of numbers; give a number.")
        return [given[k] if k in given else _typical(column) for k, column in enumerate(self.columns)]

    def rows(self, values: list[Any], changing: dict[int, HostArray]) -> Any:
        """A table of the type of X, with its names and categories: some columns change, the others are constant."""
        k = max(column.size for column in changing.values())
        columns = [changing.get(j, np.full(k, value)) for j, value in enumerate(values)]
        if not hasattr(self.X, "columns"):
            return np.column_stack(columns)
        table = type(self.X)(dict(zip(self.X.columns, columns, strict=True)))
        if not hasattr(self.X, "iloc"):
            return table
        words = [name for name, column in zip(self.X.columns, self.columns, strict=True) if not holds_numbers(column)]
        return table.astype({name: self.X[name].dtype for name in words})

    def slice(self, feature: Any, at: Mapping[Any, Any] | None, grid: int) -> tuple[HostArray, Any, str]:
        """Values of one feature from its minimum to its maximum, rows with the other features held, and its name.

        Parameters
        ----------
        feature : int or str
            The feature that changes.
        at : mapping or None
            Maps names or positions of other features to the values at which they are held.
        grid : int
            The number of values.
        """
        j = self.position(feature, "feature")
        low, high = self.ends(j, "feature")
        if not low < high:
            raise ValueError(f"feature names {self.names[j]!r}, which is {low:g} in all rows of X; nothing changes.")
        x = np.linspace(low, high, count("grid", grid, least=2))
        return x, self.rows(self.held(at), {j: x}), self.names[j]


def columns_of(X: Any) -> list[HostArray]:
    """The columns of a table, each an array (n,)."""
    X = as_table(X)
    if hasattr(X, "columns"):
        return [_values(X[name]) for name in X.columns]
    X = np.asarray(X.toarray() if sparse.issparse(X) else X)
    if X.ndim != 2 or X.shape[0] == 0:
        raise ValueError(f"X of shape {X.shape} was given; it must be (n, d) and not empty.")
    return list(X.T)


def _values(column: Any) -> HostArray:
    """A column of a data frame; pandas' nullable numbers become floats."""
    found = np.asarray(column)
    if found.dtype == object and getattr(column.dtype, "kind", "O") in "iuf":
        return np.asarray(column.to_numpy(np.float64, na_value=np.nan))
    return found


def holds_numbers(column: HostArray) -> bool:
    """Whether a column is numeric; booleans are not."""
    return bool(np.issubdtype(column.dtype, np.number))


def _typical(column: HostArray) -> Any:
    """The median of numbers, or the most frequent category."""
    if holds_numbers(column):
        return float(np.nanmedian(column)) if np.any(column == column) else np.nan
    words = column.astype(str)
    known = ~np.isin(words, ("None", "nan", "NaT", "<NA>"))
    values, counts = np.unique(words[known] if np.any(known) else words, return_counts=True)
    return column[words == values[np.argmax(counts)]][0]


def name_of(y: Any, otherwise: str = "y") -> str:
    """The name of a target column, if it has one."""
    name = getattr(y, "name", None)
    return str(name) if isinstance(name, str) and name else otherwise
