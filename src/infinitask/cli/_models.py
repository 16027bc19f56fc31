"""Choose the model for a table, fit it, and prepare its data for predictions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline

from infinitask import (
    InfiniteCostSensitiveClassifier,
    InfiniteOneClassSVM,
    InfiniteQuantileRegressor,
    tabular,
)
from infinitask._base.inner_model import inner_model
from infinitask.cli._output import CommandError
from infinitask.cli._tables import TableFile, check_column
from infinitask.cli._targets import (
    Task,
    as_model_labels,
    as_numbers,
    labels,
    mistakes_among_numbers,
    outlier_among_targets,
    positive_of,
    task_and_targets,
)
from infinitask.pipelines._tables import check_sizes, listed
from infinitask.tuning import (
    InfiniteCostSensitiveClassifierCV,
    InfiniteOneClassSVMCV,
    InfiniteQuantileRegressorCV,
)

MIN_ROWS = 20
"""The minimum number of rows for a fit and for calibrating intervals: 19 rows allow coverages up to 0.95."""


class Model(NamedTuple):
    """The model of a task, its parameters, and the time of a fit.

    Parameters
    ----------
    make : type
    parameters : dict
    seconds : float
        Seconds on one core, for 1 000 rows and 8 features.
    growth : float
        The exponent with which the time grows in the number of rows.
    harder : float
        The factor by which difficult tables take longer, those with rare classes or many features.
    """

    make: type[Any]
    parameters: dict[str, Any]
    seconds: float
    growth: float
    harder: float


MODELS = {
    (Task.QUANTILE, False): Model(InfiniteQuantileRegressor, {"noncrossing": "rearrange"}, 1.0, 0.7, 10.0),
    (Task.QUANTILE, True): Model(InfiniteQuantileRegressorCV, {}, 13.0, 0.5, 4.0),
    (Task.COST, False): Model(InfiniteCostSensitiveClassifier, {}, 4.0, 0.7, 10.0),
    (Task.COST, True): Model(InfiniteCostSensitiveClassifierCV, {}, 19.0, 0.5, 4.0),
    (Task.LEVEL_SET, False): Model(InfiniteOneClassSVM, {}, 3.0, 1.2, 4.0),
    (Task.LEVEL_SET, True): Model(InfiniteOneClassSVMCV, {}, 24.0, 0.5, 4.0),
}
"""Models by task and by whether the model tunes itself."""


class Rows(NamedTuple):
    """Features and targets of a task, with notes for the user."""

    task: Task
    X: Any
    y: Any
    target: str | None
    reason: str
    notes: Sequence[str] = ()
    positive: Any = None
    """The label of the positive class, if there are two classes."""

    @property
    def classes(self) -> int:
        """The number of classes; 0 if the target is not a class."""
        return int(self.y.nunique()) if self.task is Task.COST else 0


def rows_of(
    table: TableFile, target: str | None, task: Task | None, ignored: list[str], positive: str | None = None
) -> Rows:
    """Prepare the training rows; guess the task if none is given.

    Parameters
    ----------
    table : TableFile
    target : str or None
        Name of the target column; None: level sets.
    task : Task or None
    ignored : list of str
        Columns that are not used as features.
    positive : str or None
        The label of the positive class; None: the rarer one.
    """
    for name in ignored:
        check_column(table, name, " to ignore")
    frame, y, reason = table.frame, None, "as asked"
    notes: list[str] = []
    if target is None:
        if task not in (None, Task.LEVEL_SET):
            raise CommandError(f"--task {task} needs a target: name its column with --target.")
        task, reason = Task.LEVEL_SET, "no target was named" if task is None else reason
    elif task is Task.LEVEL_SET:
        check_column(table, target, "")
        notes.append(f"Level sets have no target; the column {target!r} is left out of the inputs.")
    else:
        frame = frame[_has_target(table, target, "", notes)]
    n = frame.shape[0]
    if n < MIN_ROWS:
        raise CommandError(
            f"{table.path} has {n} row{'' if n == 1 else 's'} to learn from; at least {MIN_ROWS} are needed."
        )
    if task is not Task.LEVEL_SET:
        task, y, reason = task_and_targets(frame[target], task)
        if task is Task.QUANTILE and (sentence := outlier_among_targets(y)):
            notes.append(sentence)
        y = y.reset_index(drop=True)
    X = frame.drop(columns=[*ignored, *([target] if target is not None else [])], errors="ignore")
    _check_inputs(table, X)
    for name in X.columns:
        if mistakes := mistakes_among_numbers(X[name]):
            notes.append(f"The column {name!r} holds {mistakes}; it is taken as text. Empty these cells to fix it.")
    if task is Task.LEVEL_SET:
        X, target = _without_texts(X, notes), None
    rows = Rows(task, X.reset_index(drop=True), y, target, reason, notes)
    if rows.classes == 2:
        return rows._replace(positive=positive_of(y, positive))
    if positive is not None:
        what = f"{target} has {rows.classes} classes; only one of two is positive"
        what = what if task is Task.COST else f"the task is {task}; only costs have a positive class"
        raise CommandError(f"--positive {positive} was given, and {what}.")
    return rows


def _has_target(table: TableFile, target: str, why: str, notes: list[str]) -> Any:
    """Whether each row has a target; a note reports the rows without one."""
    check_column(table, target, why)
    known = table.frame[target].notna().to_numpy()
    if not known.any():
        raise CommandError(f"The target {target!r} is missing in all rows of {table.path}; choose another column.")
    if not known.all():
        notes.append(f"{int((~known).sum())} of {known.size} rows have no {target!r}; they are left out.")
    return known


def _without_texts(X: Any, notes: list[str]) -> Any:
    """Drop text columns with many values: texts that the encoder has not seen would all be unusual."""
    texts = tabular(None).named_steps["table"].fit(X).kind_to_columns_["high_cardinality"]
    if not texts:
        return X
    if len(texts) == X.shape[1]:
        raise CommandError(
            f"All columns hold text of many values ({listed(texts)}), of which every new one is unusual; level sets "
            "need numbers, dates or few categories."
        )
    notes.append(f"Level sets leave out columns of text, of which every new one is unusual: {listed(texts)}.")
    return X.drop(columns=list(texts))


def _check_inputs(table: TableFile, X: Any) -> None:
    if X.shape[1] == 0:
        raise CommandError(f"{table.path} has no columns besides the target; inputs are needed.")
    constant = [_is_constant(table, X[name]) for name in X.columns]
    if all(constant):
        raise CommandError(
            f"The inputs of {table.path} ({listed(X.columns)}) are constant; there is nothing to learn from."
        )
    check_sizes(X)


def _is_constant(table: TableFile, column: Any) -> bool:
    try:
        return int(column.nunique(dropna=False)) <= 1
    except TypeError:
        message = f"The column {column.name!r} of {table.path} holds lists or the like; leave it out with --ignore."
        raise CommandError(message) from None


# ----------------------------------------------------------------------------------------------------- fitting
def held_out(rows: Rows, share: float, seed: int) -> tuple[Rows, Rows]:
    """Split into training rows and held-out rows; a class has the same fraction in both."""
    labels = rows.y if rows.task is Task.COST else None
    train, test = train_test_split(np.arange(rows.X.shape[0]), test_size=share, random_state=seed, stratify=labels)
    return _part(rows, np.sort(train)), _part(rows, np.sort(test))


def _part(rows: Rows, taken: Any) -> Rows:
    y = None if rows.y is None else rows.y.iloc[taken].reset_index(drop=True)
    return rows._replace(X=rows.X.iloc[taken].reset_index(drop=True), y=y, notes=())


def smallest_fraction(n: int) -> float:
    """The smallest fraction that level sets of n rows learn: ten rows, limited to the range from 1% to 5%."""
    return float(np.clip(10.0 / n, 0.01, 0.05))


# ------------------------------------------------------------------------------------------------ a fitted model
def task_of(model: Any) -> Task:
    """The task that a fitted model has learnt."""
    own = {"predict_distribution": Task.QUANTILE, "roc_curve": Task.COST, "mass_volume_curve": Task.LEVEL_SET}
    for method, task in own.items():
        if hasattr(model, method):
            return task
    raise CommandError(
        f"The model is a {type(last(model)).__name__}; commands take models of quantiles, costs or level sets."
    )


def last(model: Any) -> Any:
    """The last step of a pipeline; a self-tuned model is not opened."""
    return inner_model(model, stop=lambda inner: not isinstance(inner, Pipeline))


def calibration(model: Any, task: Task) -> str:
    """The kind of post-fit calibration of the model."""
    if task is not Task.QUANTILE:
        what = "decisions" if task is Task.COST else "fractions"
        calibrated = any(hasattr(model, name) for name in ("shift_", "class_scale_", "share_scale_"))
        return f"{what} were calibrated on held-out rows" if calibrated else f"{what} were not calibrated"
    if hasattr(model, "calibration_"):
        return "intervals are conformal, by rows kept aside"
    return "levels were calibrated on held-out rows" if hasattr(model, "levels_") else "nothing was calibrated"


def inputs_of(model: Any, table: TableFile) -> Any:
    """The columns of a table that a model was fitted to."""
    known = getattr(model, "feature_names_in_", None)
    names = list(table.frame.columns) if known is None else list(map(str, known))
    for name in names:
        check_column(table, name, ", which the model was fitted to")
    return table.frame[names]


def rows_with_targets(model: Any, table: TableFile, target: str | None) -> tuple[Any, Any, list[str]]:
    """Features and targets of the rows with known targets, and notes; level sets have no targets."""
    task, X = task_of(model), inputs_of(model, table)
    notes: list[str] = []
    if task is Task.LEVEL_SET:
        return X, None, notes
    if target is None:
        raise CommandError("The model does not say what its target is called; name the column with --target.")
    known = _has_target(table, target, ", the target", notes)
    y = table.frame[target][known]
    y = as_model_labels(labels(y), model.classes_) if task is Task.COST else as_numbers(y)
    if y is None:
        raise CommandError(f"The target {target!r} of {table.path} holds text; the model's are numbers.")
    return X[known].reset_index(drop=True), y.reset_index(drop=True), notes
