"""Rows that are not NumPy arrays in memory: blocks, Dask collections, tensors and tables."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import array_api_compat as compat
import numpy as np
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.utils import get_tags

from infinitask._base.arrays import namespace, to_host
from infinitask.estimators._frames import as_arrays, framed, output_of
from infinitask.features import Auto, Nystroem, RandomFourier, feature_recipe
from infinitask.features._recipes import DEFAULT_RANK
from infinitask.fitting._data import Data
from infinitask.fitting._learn import generator
from infinitask.fitting._recipe import Recipe
from infinitask.streaming._blocks import Blocks, RowSource
from infinitask.streaming._fit import check_parts, holds_all, learn_stream, needs_all_rows, sample_size
from infinitask.streaming._sampling import Survey

if TYPE_CHECKING:
    from infinitask.estimators._base import BaseInfiniteTask

LARGE_ROWS, LARGE_ENTRIES = 20_000, 120_000_000
"""Arrays with at least 20 000 rows are streamed in blocks if their φ takes at least 1 GB in double precision."""

ROWS_ON_DEVICE = 2**20
"""The number of rows in a block of a tensor."""


_Method = TypeVar("_Method", bound=Callable[..., Any])


def far_rows(X: Any, y: Any, sample_weight: Any) -> RowSource | None:
    """Return blocks and Dask collections as a source of blocks; None for rows in memory."""
    if isinstance(X, (str, Path)):
        raise TypeError(
            f"X={str(X)!r} was given, a path; give infinitask.streaming.Blocks.of_parquet(path, target), which reads "
            "the file block by block, or read it first."
        )
    if isinstance(y, str):
        raise TypeError(f"y={y!r} was given, a name; give the column itself: y=table[{y!r}].")
    if isinstance(X, RowSource):
        if y is not None or sample_weight is not None:
            raise ValueError(
                f"{type(X).__name__} were given together with y or sample_weight; targets and weights belong into the "
                "blocks: (X, y, weight)."
            )
        return X
    if _is_dask(X):
        from infinitask.streaming._dask import DaskRows

        return DaskRows(X, y, sample_weight)
    return None


def source_of(
    X: Any,
    y: Any,
    sample_weight: Any,
    recipe: Callable[[], Recipe],
    in_whole: Callable[[Any, Any], bool] = lambda y, sample_weight: False,
) -> RowSource | None:
    """Return the rows as a source of blocks; None if fitted in memory, which ``in_whole`` requires for some targets."""
    far = far_rows(X, y, sample_weight)
    if far is not None:
        return far
    if inspect.isfunction(X) or isinstance(X, Iterator):
        raise TypeError(
            f"X is a {type(X).__name__}; to read rows block by block, give infinitask.streaming.Blocks(function), of a "
            "function that returns a fresh iterator of tuples (X, y)."
        )
    if sparse.issparse(X) or getattr(X, "ndim", 0) != 2 or hasattr(X, "iloc") or not hasattr(X, "dtype"):
        return None
    if int(X.shape[0]) < LARGE_ROWS or in_whole(on_host(y), on_host(sample_weight)):
        return None
    if int(X.shape[0]) * _features(recipe()) < LARGE_ENTRIES:
        return None
    targets = y if compat.is_array_api_obj(y) or y is None else np.asarray(y)
    if isinstance(X, np.ndarray):
        return Blocks.of_arrays(X, targets, sample_weight)
    return Blocks.of_arrays(X, targets, sample_weight, rows=ROWS_ON_DEVICE)


def _is_dask(X: Any) -> bool:
    if "dask" not in sys.modules:
        return False
    from infinitask.streaming._dask import is_dask

    return is_dask(X)


def _features(recipe: Recipe) -> int:
    """The approximate number of components of φ; 0 if the fit needs all rows at once."""
    features = feature_recipe(recipe.features, recipe.rank)
    if needs_all_rows(recipe) is not None or not isinstance(features, (Auto, Nystroem, RandomFourier)):
        return 0
    return int(features.rank or DEFAULT_RANK)


def device_of(X: Any, device: str | None) -> str | None:
    """The device on which rows are fitted: the given one, or that of a tensor."""
    if device is None and compat.is_torch_array(X) and X.device.type != "cpu":
        return str(X.device)
    if device is None and compat.is_cupy_array(X):
        return f"cuda:{X.device.id}"
    return device


def on_host(values: Any) -> Any:
    """Convert tensors of any device to NumPy arrays, and Arrow batches to tables with names; keep everything else."""
    if type(values).__name__ == "RecordBatch" and type(values).__module__.startswith("pyarrow"):
        return import_module("pyarrow").Table.from_batches([values])
    if isinstance(values, np.ndarray) or not compat.is_array_api_obj(values):
        return values
    return to_host(values)


def in_memory(X: Any) -> None:
    """Raise an error if rows are read in blocks or stored on a cluster, but are needed in memory."""
    if _is_dask(X):
        raise TypeError(
            f"{type(X).__module__}.{type(X).__name__} was given; `fit`, the self-tuned models and predictions take "
            "collections of Dask. Give arrays here: X.compute()."
        )
    not_blocks(X)


def not_blocks(X: Any) -> None:
    """Raise an error if rows are read in blocks, or are not read yet."""
    if type(X).__name__ == "LazyFrame":
        raise TypeError("A LazyFrame was given, whose rows are not read yet; give the frame: X.collect().")
    if isinstance(X, RowSource):
        raise TypeError(
            f"{type(X).__name__} were given; only `fit` of an estimator reads rows block by block. Give arrays: "
            "predict, or choose parameters, with rows that fit into memory."
        )


def in_kind(method: _Method) -> _Method:
    """Decorate a method of an estimator so that its predictions have the type of X.

    For a Dask collection: a lazy Dask array. For a tensor: a tensor of the same library, device and precision. For
    everything else: a NumPy array, as the method returns it. With ``set_output``: a data frame.
    """

    @wraps(method)
    def predicted(self: Any, X: Any, *arguments: Any, **options: Any) -> Any:
        kind = output_of(self)
        if kind is not None:
            found = predicted(as_arrays(self), X, *arguments, **options)  # a method may call another one
            if _is_dask(X) or isinstance(found, list):
                return found
            return framed(to_host(found), kind, self, method.__name__, X, arguments, options)
        if type(X) is np.ndarray:
            return method(self, X, *arguments, **options)
        if _is_dask(X):
            from infinitask.streaming._dask import lazily

            return lazily(self, method.__name__, X, *arguments, **options)
        if isinstance(X, np.ndarray) or not compat.is_array_api_obj(X):
            return method(self, X, *arguments, **options)
        return _beside(method(self, to_host(X), *arguments, **options), X)

    return cast(_Method, predicted)


def _beside(values: Any, X: Any) -> Any:
    """Move predictions to the library and device of a tensor; labels that are not numbers remain NumPy arrays."""
    if isinstance(values, list):
        return [_beside(part, X) for part in values]
    if values.dtype.kind not in "fiub":
        return values
    xp = namespace(X)
    real = values.dtype.kind == "f" and xp.isdtype(X.dtype, "real floating")
    return xp.asarray(values, dtype=X.dtype if real else None, device=compat.device(X))


def surveyed(model: BaseInfiniteTask, source: RowSource) -> Survey:
    """Compute statistics and a sample of the rows in a first pass."""
    recipe = model.recipe()
    check_parts(recipe, sampled=False)
    seed = int(generator(recipe.random_state).integers(2**31))
    if recipe.verbose:
        print(f"{type(model).__name__}: first pass over the rows", file=sys.stderr)
    needed = get_tags(model).target_tags.required
    survey = source.survey(sample_size(recipe), seed, labels=is_classifier(model), targets=needed)
    check_parts(recipe, sampled=not holds_all(survey))
    return survey


def fit_to(
    model: BaseInfiniteTask,
    source: RowSource,
    device: str | None = None,
    survey: Survey | None = None,
    warn: bool = True,
    **changes: Any,
) -> Any:
    """Fit an estimator to a source of blocks.

    Parameters
    ----------
    model : estimator
    source : RowSource
    device : str or None
    survey : Survey or None
        The result of a first pass, if there was one.
    warn : bool
        Whether to warn if a certified optimum is still a poor model.
    changes
        Fields of the recipe to replace.
    """
    name = type(model).__name__
    survey = surveyed(model, source) if survey is None else survey
    if survey.y is None and get_tags(model).target_tags.required:
        raise ValueError(
            f"{name} needs targets, and the rows have none. Give blocks (X, y), the column of a file by its name "
            "(Blocks.of_parquet(path, target)), or y beside a collection of Dask."
        )
    prepared = model._prepare(survey.X, survey.y, survey.weight)
    if source.names is not None:
        model.feature_names_in_ = np.array(source.names, dtype=object)
    if device is not None:
        changes["device"] = device
    prepared = prepared._replace(recipe=replace(prepared.recipe, **changes))
    if not holds_all(survey):
        prepared = model._prepared_for_all(prepared, survey)
    if "n_samples_fit_" in prepared.learnt:
        prepared.learnt["n_samples_fit_"] = max(float(survey.n), survey.mass)
    # a sampled row represents many different rows, not copies of itself
    weight = prepared.weight if holds_all(survey) else prepared.weight / np.max(prepared.weight)
    sample = Data.canonical(prepared.X, prepared.y, weight)
    fit = learn_stream(prepared.recipe, source, survey, sample, prepared.learnt.get("classes_"))
    if prepared.recipe.verbose and isinstance(source, Blocks):
        print(f"{name}: the rows were read {source.passes} times", file=sys.stderr)
    return model._keep(fit, prepared, warn=warn)
