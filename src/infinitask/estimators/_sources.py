"""Rows that are not fitted in memory: what is one, and how an estimator is fitted to it."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import array_api_compat as compat
import numpy as np
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning

from infinitask._array import to_host
from infinitask.blocks import Blocks, RowSource
from infinitask.features import Auto, Nystroem, RandomFourier, feature_recipe
from infinitask.features._recipes import AUTO_CAP
from infinitask.kernels import Precomputed
from infinitask.large import check_parts, holds_all, learn_large, sample_size
from infinitask.learn import generator
from infinitask.problem import Data, Recipe

if TYPE_CHECKING:
    from infinitask.estimators.base import BaseInfiniteTask

LARGE_ROWS, LARGE_ENTRIES = 20_000, 120_000_000
"""At least this many rows, and rows × features, are fitted in parts: 1 GB of features in double precision."""

ROWS_ON_DEVICE = 2**20
"""Rows of a block of a tensor."""


def source_of(X: Any, y: Any, sample_weight: Any, recipe: Callable[[], Recipe]) -> RowSource | None:
    """The rows as a source of blocks, or None where they are fitted in memory."""
    if isinstance(X, RowSource):
        if y is not None or sample_weight is not None:
            raise ValueError(
                f"{type(X).__name__} were given together with y or sample_weight; targets and weights belong into the "
                "blocks: (X, y, weight)."
            )
        return X
    if "dask" in sys.modules:
        from infinitask.distributed import DaskRows, is_dask

        if is_dask(X):
            return DaskRows.of(X, y, sample_weight)
    if sparse.issparse(X) or getattr(X, "ndim", 0) != 2 or hasattr(X, "iloc") or not hasattr(X, "dtype"):
        return None
    if int(X.shape[0]) < LARGE_ROWS or int(X.shape[0]) * _features(recipe()) < LARGE_ENTRIES:
        return None
    targets = y if compat.is_array_api_obj(y) or y is None else np.asarray(y)
    if isinstance(X, np.ndarray):
        return Blocks.of_arrays(X, targets, sample_weight)
    return Blocks.of_arrays(X, targets, sample_weight, rows=ROWS_ON_DEVICE)


def _features(recipe: Recipe) -> int:
    """About how many features many rows will have; 0 where the fit needs all rows at once."""
    features = feature_recipe(recipe.features, recipe.rank)
    kernel = recipe.kernel
    precomputed = isinstance(kernel, Precomputed) or (isinstance(kernel, str) and kernel == "precomputed")
    compared = recipe.certify is not None or recipe.rank == "auto"
    if precomputed or compared or recipe.hard or recipe.named_inputs is not None:
        return 0
    if not isinstance(features, (Auto, Nystroem, RandomFourier)):
        return 0
    return int(features.rank or AUTO_CAP)


def device_of(X: Any, device: str | None) -> str | None:
    """The device on which rows are fitted: the one that was asked for, or that of a tensor."""
    if device is None and compat.is_torch_array(X) and X.device.type != "cpu":
        return str(X.device)
    return device


def on_host(values: Any) -> Any:
    """Tensors of any device as NumPy arrays; all else as it is."""
    if isinstance(values, np.ndarray) or not compat.is_array_api_obj(values):
        return values
    return to_host(values)


def in_memory(X: Any) -> None:
    """An error where rows that are read block by block were given to what needs them in memory."""
    if isinstance(X, RowSource):
        raise TypeError(
            f"{type(X).__name__} were given; only `fit` of an estimator that does not tune itself reads rows block by "
            "block. Give arrays: choose parameters with rows that fit into memory, and predict one block at a time."
        )


def fit_to(model: BaseInfiniteTask, source: RowSource, device: str | None = None) -> Any:
    """Fit an estimator to rows that are somewhere."""
    name = type(model).__name__
    recipe = model.recipe()
    check_parts(recipe)
    seed = int(generator(recipe.random_state).integers(2**31))
    if recipe.verbose:
        print(f"{name}: first pass over the rows", file=sys.stderr)
    survey = source.survey(sample_size(recipe), seed, labels=is_classifier(model))
    prepared = model._prepare(survey.X, survey.y, survey.weight)
    if source.names is not None:
        model.feature_names_in_ = np.array(source.names, dtype=object)
    if device is not None:
        prepared = prepared._replace(recipe=replace(prepared.recipe, device=device))
    if "n_samples_fit_" in prepared.learnt:
        prepared.learnt["n_samples_fit_"] = max(float(survey.n), survey.mass)
    # a row of a sample stands for many others, but is no copy of itself
    weight = prepared.weight if holds_all(survey) else prepared.weight / np.max(prepared.weight)
    sample = Data.canonical(prepared.X, prepared.y, weight)
    fit = learn_large(prepared.recipe, source, survey, sample, prepared.learnt.get("classes_"))
    if recipe.verbose and isinstance(source, Blocks):
        print(f"{name}: the rows were read {source.passes} times", file=sys.stderr)
    if not fit.solution.converged:
        warnings.warn(f"{name}: {fit.solution.message}", ConvergenceWarning, stacklevel=4)
    return model._adopt(fit, prepared)
