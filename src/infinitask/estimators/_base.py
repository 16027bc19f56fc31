"""The base class of all estimators: from parameters and rows to a fit, and from a fit to predictions.

An estimator is thin. Its ``_prepare`` turns parameters and data into a :class:`Prepared` fit, and :meth:`_learn
<BaseInfiniteTask._learn>` passes it to :func:`~infinitask.fitting.learn` and stores the result. The methods of the
estimator use the result: ``field_``, ``recipe_`` and the quadrature.
"""

from __future__ import annotations

import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from infinitask._base.arrays import HostArray, place, row_blocks
from infinitask._base.validation import LARGEST, Constraint, check_magnitude, check_no_text, naming, parse_tasks
from infinitask.calibration._levels import Rearrangement
from infinitask.estimators import _frames
from infinitask.estimators._callbacks import CallbackSupportMixin, reported
from infinitask.estimators._parameters import (
    check_default,
    check_given,
    check_inside,
    check_nodes,
    forget,
    is_fraction,
    named_tables,
    recipe_of,
    stack_level,
    weights_of,
)
from infinitask.estimators._shared import estimator
from infinitask.estimators._sources import device_of, fit_to, in_memory, not_blocks, on_host, source_of
from infinitask.field import Field
from infinitask.fitting._data import Data
from infinitask.fitting._fit import Fit
from infinitask.fitting._gradients import Relevance, mean_square_slopes
from infinitask.fitting._learn import learn
from infinitask.fitting._recipe import Recipe
from infinitask.fitting._warm_start import Memory
from infinitask.kernels import Precomputed
from infinitask.measures import Quadrature
from infinitask.streaming._sampling import Survey
from infinitask.tasks import Learnt, Task

MAX_KEPT_ROWS = 300
"""The number of evenly spaced training rows that a model keeps, for ``relevance_`` and other uses of typical rows."""


class Prepared(NamedTuple):
    """Everything that a fit needs: a recipe, rows, and quantities computed from the rows before."""

    recipe: Recipe
    X: HostArray
    y: HostArray | None
    weight: HostArray
    learnt: dict[str, Any]
    """Fitted attributes that are known already, such as ``classes_``."""
    data: Data | None = None
    """The rows in canonical order, if already computed."""


@estimator
class BaseInfiniteTask(CallbackSupportMixin, BaseEstimator, ABC):
    """Base class of the estimators: one fit for every θ.

    A subclass defines its task (:meth:`_task`) and the parameter that names the tasks predicted by default;
    the decorator :func:`~infinitask.estimators._shared.estimator` makes its constructor from its fields.
    """

    # attributes of a fit, which are not parameters
    field_: Field = field(init=False)
    recipe_: Recipe = field(init=False)
    nodes_: HostArray = field(init=False)
    weights_: HostArray = field(init=False)
    _support: tuple[HostArray, HostArray] = field(init=False)
    _relevance: Relevance | None = field(init=False)

    _constraints: ClassVar[Mapping[str, Constraint]] = {}
    """Checks of parameters that differ from the common table."""

    _asked_by: ClassVar[str | None] = None
    """The parameter that names the tasks predicted by default."""

    _open_ends: ClassVar[bool] = False
    """Whether the ends of the loss's domain are excluded."""

    _needs_targets: ClassVar[bool] = False
    """Whether ``fit`` needs y although no mixin of scikit-learn implies it."""

    kernel: Any = "rbf"
    gamma: Any = "auto"
    features: Any = "auto"
    rank: int | str | None = None
    certify: str | None = None
    solver: str = "auto"
    tol: float = 1e-4
    max_iter: int = 10_000
    device: str | None = None
    random_state: Any = None
    verbose: int = 0
    warm_start: bool = False

    # ------------------------------------------------------------------------------------- scikit-learn
    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "field_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_precomputed()
        tags.input_tags.sparse = True
        tags.target_tags.required = tags.target_tags.required or self._needs_targets
        return tags

    def __getstate__(self) -> Any:
        # the start of a later fit is not pickled
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_memory"}

    set_output = _frames.set_output

    def _is_precomputed(self) -> bool:
        return isinstance(self.kernel, Precomputed) or (isinstance(self.kernel, str) and self.kernel == "precomputed")

    # ------------------------------------------------------------------------------------------- fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn h(x)(θ) for every θ.

        Parameters
        ----------
        X : array (n, d), Blocks, or array or frame of Dask
            Blocks contain rows that do not fit into memory, with their targets and weights; see
            :mod:`infinitask.streaming`.
        y : array (n,), or (n, T) if the estimator takes a target for each of T tasks
            Numbers or labels; ignored by models without targets.
        sample_weight : array (n,) or None
        """
        with reported(self, X, y, sample_weight):
            source = source_of(X, y, sample_weight, self.recipe, self._in_whole)
            if source is not None:
                return fit_to(self, source, device_of(X, self.device))  # type: ignore[no-any-return]
            return self._fit_prepared(X, self._prepare(*(on_host(values) for values in (X, y, sample_weight))))

    def _fit_prepared(self, X: Any, prepared: Prepared) -> Self:
        """Fit rows in memory, on the device of X if it is a tensor."""
        device = device_of(X, self.device)
        if device != self.device:
            prepared = prepared._replace(recipe=replace(prepared.recipe, device=device))
        return self._learn(prepared)

    @abstractmethod
    def _task(self) -> Task:
        """The task that the parameters define."""

    def _choices(self) -> dict[str, Any]:
        """Choices of the recipe that the estimator makes itself."""
        return {}

    def recipe(self) -> Recipe:
        """Check the parameters and return them as a recipe, which :func:`~infinitask.fitting.learn` takes."""
        given = self.get_params(deep=False)
        check_given(given, self._constraints)
        recipe = recipe_of(given, self._task(), **self._choices())
        if self._asked_by is not None:
            check_default(self, self._asked_by, recipe, strict=self._open_ends)
        return recipe

    def _prepare(self, X: Any, y: Any, sample_weight: Any) -> Prepared:
        """Check parameters and data, by default those of a regression, and forget the previous fit."""
        return self._regression(self.recipe(), X, y, sample_weight)

    def _prepared_for_all(self, prepared: Prepared, survey: Survey) -> Prepared:
        """Complete what was prepared from a sample by statistics of all rows."""
        return prepared

    def _rows(self, X: Any, y: Any, sample_weight: Any, **options: Any) -> tuple[HostArray, Any, HostArray]:
        """X, y and nonnegative weights as arrays; the previous fit, if any, is forgotten."""
        in_memory(X)
        forget(self)
        with naming("X" if y is None else "X and y"):
            if y is None and "y_numeric" not in options:
                X, y = validate_data(self, X, dtype=np.float64, accept_sparse="csr"), None
            else:
                X, y = validate_data(self, X, y, dtype=np.float64, accept_sparse="csr", **options)
        for name, table in named_tables(self):
            with naming(name):  # columns in another order would be other features
                validate_data(self, table, dtype=np.float64, reset=False)
        X = X.toarray() if sparse.issparse(X) else X
        if self._is_precomputed() and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"kernel='precomputed' was given with X of shape {X.shape}; fit needs the square Gram matrix of the "
                "training inputs, and predict the rows k(x, training inputs)."
            )
        weight = weights_of(sample_weight, X)
        check_magnitude("X", X[weight > 0.0])
        return X, y, weight

    def _regression(self, recipe: Recipe, X: Any, y: Any, sample_weight: Any, **options: Any) -> Prepared:
        """The rows of a regression, with targets that are numbers."""
        check_no_text("y", y)
        X, y, weight = self._rows(X, y, sample_weight, y_numeric=True, **options)
        with naming("y"):
            y = y.astype("float64")
        check_magnitude("y", y[weight > 0.0])
        return Prepared(recipe, X, y, weight, {})

    def _in_whole(self, y: Any, sample_weight: Any) -> bool:
        """Whether arrays with these targets are fitted in memory for any number of rows."""
        return False

    def _learn(self, prepared: Prepared, memory: Memory | None = None, *, warn: bool = True) -> Self:
        """Fit, warn if necessary, and store the result.

        Parameters
        ----------
        prepared : Prepared
        memory : Memory or None
            The start of the fit; None: the estimator's own with ``warm_start``, otherwise none.
        warn : bool
            Whether to warn if a certified optimum is still a poor model.
        """
        recipe, X, y, weight, _, data = prepared
        if data is None:
            data = Data.canonical(X, y, weight, gram=self._is_precomputed())
        if recipe.verbose:
            print(f"{type(self).__name__}: {data.weight.size} rows", file=sys.stderr)
        fit = learn(recipe, data, self._own_memory() if memory is None else memory)
        return self._keep(fit, prepared, warn=warn)

    def _keep(self, fit: Fit, prepared: Prepared, *, warn: bool) -> Self:
        """Warn if necessary, and store a fit."""
        level = stack_level()
        for warning in fit.warnings(of_model=warn):
            warnings.warn(f"{type(self).__name__}: {warning}", type(warning), stacklevel=level)
        return self._adopt(fit, prepared)

    def _own_memory(self) -> Memory | None:
        """The memory of the previous fit, with ``warm_start``."""
        if not self.warm_start:
            self.__dict__.pop("_memory", None)
            return None
        return self.__dict__.setdefault("_memory", Memory())  # type: ignore[no-any-return]

    def _adopt(self, fit: Fit, prepared: Prepared) -> Self:
        """Store a fit, all attributes at once: after an interrupt the estimator is either fitted or not."""
        counted, precomputed = prepared.weight > 0.0, self._is_precomputed()
        found = fit.attributes() | prepared.learnt
        if precomputed and not np.all(counted):
            found["training_rows_"] = np.flatnonzero(counted)
        found["_looked_at"] = None if precomputed else _looked_at(prepared.X[counted], prepared.weight[counted])
        found["_relevance"] = None
        self.__dict__.update(found)
        return self

    @property
    def kernel_gap_(self) -> float:
        """The certified distance to the model of the kernel itself."""
        check_is_fitted(self)
        if self._kernel_gap is None:
            raise AttributeError('kernel_gap_ was not computed; fit with certify="kernel" or rank="auto".')
        return float(self._kernel_gap)

    @property
    def relevance_(self) -> Relevance:
        """The relevance of each feature; computed on first access."""
        check_is_fitted(self)
        if self._relevance is None:
            if self._looked_at is None:
                raise AttributeError("kernel='precomputed' was given; relevance_ needs inputs, not a Gram matrix.")
            rows, weight, spread = self._looked_at
            rule = self._node_rule()
            squares = mean_square_slopes(self.field_, rule, rows, weight, spread, self.recipe_.device)
            names = tuple(getattr(self, "feature_names_in_", (f"x{j}" for j in range(spread.size))))
            slope = np.sqrt(squares)
            self._relevance = Relevance(names, slope, slope * spread)
        return self._relevance

    def _node_rule(self) -> Quadrature:
        """The nodes as tasks of the field."""
        return Quadrature(self.nodes_.reshape(len(self.nodes_), -1), self.weights_)

    # ---------------------------------------------------------------------------------------- prediction
    def _inputs(self, X: Any) -> Any:
        """Return checked X on the device of the fit; a sparse X stays sparse on the host, see :meth:`_dense_blocks`."""
        check_is_fitted(self)
        if not self._is_plain(X):
            not_blocks(X)
            with naming("X"):
                X = validate_data(self, on_host(X), dtype=np.float64, accept_sparse="csr", reset=False)
            values = X.data if sparse.issparse(X) else X
            if values.size:
                check_magnitude("X", values, smallest=0.0)
        if hasattr(self, "training_rows_"):
            X = X[:, self.training_rows_]
        return X if sparse.issparse(X) else place(X, self.recipe_.device)

    def _dense_blocks(self, X: Any) -> Iterator[tuple[slice, Any]]:
        """A checked X on the device of the fit: all of it, or a few rows at a time if it is sparse."""
        n = X.shape[0]
        if not sparse.issparse(X):
            yield slice(0, n), X
            return
        for rows in row_blocks(n, X.shape[1]):
            yield rows, place(X[rows].toarray(), self.recipe_.device)

    def _learnt(self) -> Learnt:
        """The learnt quantities that predictions need."""
        task = self.recipe_.task
        return Learnt(self.field_, self.nodes_, getattr(self, task.calibrated_as, None))

    def _at_levels(self, X: Any, levels: HostArray) -> Iterator[HostArray]:
        """Predictions of a checked X at levels (k,), (rows, k), block by block."""
        for _, block in self._dense_blocks(X):
            for _, values in self.recipe_.task.at_levels(self._learnt(), block, levels):
                yield values

    def _is_plain(self, X: Any) -> bool:
        """Whether X passes all checks for certain; they take longer than the prediction of a single row."""
        return (
            type(X) is np.ndarray
            and X.dtype == np.float64
            and X.ndim == 2
            and X.shape[0] > 0
            and X.shape[1] == self.n_features_in_
            and not hasattr(self, "feature_names_in_")  # the checks warn of an array without names
            and bool(X.max() <= LARGEST and X.min() >= -LARGEST)  # False for a NaN
        )

    def _values(self, X: Any, theta: Any, name: str, *, strict: bool = False, per_sample: bool = False) -> HostArray:
        """h(x)(θ): (n,) for a single θ or one for each row, (n, q) for several; sorted over θ if the recipe says so."""
        X = self._inputs(X)
        tasks, single = self._tasks(theta, name, strict=strict)
        if per_sample and tasks.shape[0] != X.shape[0]:
            raise ValueError(
                f"{name} holds {tasks.shape[0]} tasks for {X.shape[0]} rows of X; with per_sample=True give one "
                "task for each input."
            )
        task, learnt = self.recipe_.task, self._learnt()
        blocks = [
            task.answer_each(learnt, block, tasks[rows]) if per_sample else task.answer(learnt, block, tasks)
            for rows, block in self._dense_blocks(X)
        ]
        values = blocks[0] if len(blocks) == 1 else np.concatenate(blocks)
        return np.asarray(values[:, 0] if single and not per_sample else values)

    def _tasks(self, theta: Any, name: str, *, strict: bool = False) -> tuple[HostArray, bool]:
        """θ as (q, d), checked, and whether it was a single task without a list around it.

        ``strict``: the ends of the loss's domain are excluded.
        """
        tasks, single = parse_tasks(theta, name, self._support, percent=is_fraction(self.recipe_.task.loss))
        if self.field_.knows_nodes_only:
            # a kernel defined only on nodes compares every bit, and 0.1 + 0.2 must be the node 0.3
            tasks = check_nodes(name, tasks, self.nodes_.reshape(len(self.nodes_), -1))
        if strict:
            check_inside(name, tasks, self.recipe_.task.loss)
        return tasks, single

    def _ends(self) -> tuple[float, float]:
        """The ends of Θ ⊂ ℝ."""
        low, high = self._support
        return float(low[0]), float(high[0])

    def _levels(self, count: int) -> HostArray:
        """Equally spaced levels of Θ, or the nodes if the model is defined only there."""
        return self._learnt().levels(self._ends(), count)

    def _curve_levels(self) -> HostArray:
        """The levels at which curves are sorted."""
        return self.recipe_.task.sorting_levels(self._learnt())

    def _curves(self, X: Any) -> Iterator[tuple[slice, Rearrangement]]:
        """Rows of a checked X and their sorted curves θ ↦ prediction, block by block."""
        for outer, block in self._dense_blocks(X):
            for rows, curves in self.recipe_.task.curves(self._learnt(), block):
                yield slice(outer.start + rows.start, outer.start + min(rows.stop, block.shape[0])), curves


def _looked_at(X: HostArray, weight: HostArray) -> tuple[HostArray, HostArray, HostArray]:
    """At most 300 rows, their weights, and the standard deviation of each feature over all rows."""
    some = np.linspace(0, weight.size - 1, min(weight.size, MAX_KEPT_ROWS)).astype(np.intp)
    omega = weight / np.sum(weight)
    spread = np.sqrt(np.maximum(omega @ (X - omega @ X) ** 2, 0.0))
    return X[some], weight[some] / np.sum(weight[some]), spread


def tags_of_poor_score(estimator: Any) -> Any:
    """The tags of a regressor whose score is D² of absolute losses, for scikit-learn's check of "a good score".

    The check sets alpha = 0.01 and expects more than 0.5, with R² in mind. D² is about 1 − √(1 − R²): on the data of
    the check it is 0.36 with this alpha, and 0.61 with the default alpha.
    """
    tags = RegressorMixin.__sklearn_tags__(estimator)
    tags.regressor_tags.poor_score = True
    return tags
