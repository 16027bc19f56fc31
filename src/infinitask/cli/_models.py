"""Which model a table gets, how it is fitted, and what it is asked."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline

from infinitask import (
    InfiniteCostSensitiveClassifier,
    InfiniteOneClassSVM,
    InfiniteQuantileRegressor,
    load,
    save,
    tabular,
)
from infinitask._base.inner_model import inner_model
from infinitask.cli._classes import as_known, keep_labels, positive_of
from infinitask.cli._columns import surprises
from infinitask.cli._multiclass import NO_COMPARISON
from infinitask.cli._output import CommandError, Screen
from infinitask.cli._tables import TableFile, check_column, columns_of, saying_what_cannot_be_written
from infinitask.cli._targets import Task, as_numbers, far_target, labels, numbers_but, task_and_targets
from infinitask.estimators._frames import as_arrays
from infinitask.pipelines._tables import LARGEST, listed
from infinitask.tuning import (
    InfiniteCostSensitiveClassifierCV,
    InfiniteOneClassSVMCV,
    InfiniteQuantileRegressorCV,
)

MIN_ROWS = 20
"""The fewest rows that are learnt from, and that calibrate intervals: 19 rows allow coverages up to 0.95."""

CALIBRATION_SHARE = 0.2
"""The fraction of rows that calibrates the intervals of a model of quantiles that does not tune itself."""

DEFAULT_FRACTION = 0.1
"""The fraction of unusual rows that is predicted by default, if the model knows it."""


MODELS: dict[tuple[Task, bool], tuple[type[Any], dict[str, Any]]] = {
    (Task.QUANTILE, False): (InfiniteQuantileRegressor, {"noncrossing": "rearrange"}),
    (Task.QUANTILE, True): (InfiniteQuantileRegressorCV, {}),
    (Task.COST, False): (InfiniteCostSensitiveClassifier, {}),
    (Task.COST, True): (InfiniteCostSensitiveClassifierCV, {}),
    (Task.LEVEL_SET, False): (InfiniteOneClassSVM, {}),
    (Task.LEVEL_SET, True): (InfiniteOneClassSVMCV, {}),
}
"""The model of a task, and of one that tunes itself, with its parameters."""


@dataclass
class Rows:
    """Inputs and targets of a task, and what a person should know about them."""

    task: Task
    X: Any
    y: Any
    target: str | None
    reason: str
    notes: list[str] = field(default_factory=list)
    positive: Any = None
    """The label of the positive class, where there are two."""

    @property
    def classes(self) -> int:
        """How many there are; 0 where the target is no class."""
        return int(self.y.nunique()) if self.task is Task.COST else 0


def rows_of(
    table: TableFile, target: str | None, task: Task | None, ignored: list[str], positive: str | None = None
) -> Rows:
    """The rows to learn from; the task is guessed where none is given.

    Parameters
    ----------
    table : TableFile
    target : str or None
        Of the column that is learnt; None: level sets.
    task : Task or None
    ignored : list of str
        Columns that are no features.
    positive : str or None
        The label of the positive class; None: the rarer one.
    """
    for name in ignored:
        check_column(table, name, " to ignore")
    frame, y = table.frame, None
    notes: list[str] = []
    if target is None:
        if task not in (None, Task.LEVEL_SET):
            raise CommandError(f"--task {task} needs a target: name its column with --target.")
        task, reason = Task.LEVEL_SET, "no target was named" if task is None else "as asked"
    else:
        check_column(table, target, "")
        if task is Task.LEVEL_SET:
            notes.append(f"Level sets have no target; the column {target!r} is left out of the inputs.")
            reason = "as asked"
        else:
            missing = int(frame[target].isna().sum())
            if missing == frame.shape[0]:
                raise CommandError(
                    f"The target {target!r} is missing in all rows of {table.path}; choose another column."
                )
            if missing:
                notes.append(f"{missing} of {frame.shape[0]} rows have no {target!r}; they are left out.")
            frame = frame[frame[target].notna()]
            _check_count(table, frame)
            task, y, reason = task_and_targets(frame[target], task)
            if task is Task.QUANTILE and (far := far_target(y)):
                notes.append(far)
    X = frame.drop(columns=[*ignored, *([target] if target is not None else [])], errors="ignore")
    _check_inputs(table, X)
    _check_count(table, X)
    for name in X.columns:
        if mistakes := numbers_but(X[name]):
            notes.append(f"The column {name!r} holds {mistakes}; it is taken as text. Empty these cells to fix it.")
    if task is Task.LEVEL_SET:
        X = _without_texts(X, notes)
    if positive is not None and task is not Task.COST:
        raise CommandError(
            f"--positive {positive} was given, and the task is {task}; only costs have a positive class."
        )
    found = Rows(task, X.reset_index(drop=True), None if y is None else y.reset_index(drop=True), None, reason, notes)
    found.target = None if task is Task.LEVEL_SET else target
    if task is Task.COST and found.classes == 2:
        found.positive = positive_of(found.y, positive)
    elif positive is not None:
        raise CommandError(
            f"--positive {positive} was given, and {target} has {found.classes} classes; only one of two is positive."
        )
    return found


def _without_texts(X: Any, notes: list[str]) -> Any:
    """The columns without texts of many values: texts that an encoding has not seen would all be unusual."""
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


def _check_count(table: TableFile, frame: Any) -> None:
    n = frame.shape[0]
    if n < MIN_ROWS:
        raise CommandError(
            f"{table.path} has {n} row{'' if n == 1 else 's'} to learn from; at least {MIN_ROWS} are needed."
        )


def _check_inputs(table: TableFile, X: Any) -> None:
    if X.shape[1] == 0:
        raise CommandError(f"{table.path} has no columns besides the target; inputs are needed.")
    constant = [_is_constant(table, X[name]) for name in X.columns]
    if all(constant):
        raise CommandError(
            f"The inputs of {table.path} ({listed(X.columns)}) are constant; there is nothing to learn from."
        )
    check_finite(table, X)


def check_finite(table: TableFile, X: Any) -> None:
    """An error where a column of numbers holds some that no model can take."""
    for name in X.columns:
        if X[name].dtype.kind in "iuf":
            values = X[name].to_numpy(dtype=np.float64, na_value=np.nan)
            wrong = int(np.sum(np.abs(values) > LARGEST))
            if wrong:
                raise CommandError(
                    f"The column {str(name)!r} of {table.path} holds infinite numbers, or some above {LARGEST:.0e}, in "
                    f"{wrong} of {values.size} rows; correct these cells, or empty them."
                )


def _is_constant(table: TableFile, column: Any) -> bool:
    try:
        return int(column.nunique(dropna=False)) <= 1
    except TypeError:
        message = f"The column {column.name!r} of {table.path} holds lists or the like; leave it out with --ignore."
        raise CommandError(message) from None


# ----------------------------------------------------------------------------------------------------- fitting
def held_out(rows: Rows, share: float, seed: int) -> tuple[Rows, Rows]:
    """Rows to learn from and rows to look at; classes have the same share in both."""
    labels = rows.y if rows.task is Task.COST else None
    train, test = train_test_split(np.arange(rows.X.shape[0]), test_size=share, random_state=seed, stratify=labels)
    return _part(rows, np.sort(train)), _part(rows, np.sort(test))


def _part(rows: Rows, taken: Any) -> Rows:
    y = None if rows.y is None else rows.y.iloc[taken].reset_index(drop=True)
    return replace(rows, X=rows.X.iloc[taken].reset_index(drop=True), y=y, notes=[])


def smallest_fraction(n: int) -> float:
    """The smallest fraction that level sets of n rows learn: ten rows, and from 1% to 5% of them."""
    return float(np.clip(10.0 / n, 0.01, 0.05))


@dataclass(frozen=True)
class Plan:
    """A model that is to be fitted, and what to."""

    model: Any
    rows: Rows
    y: Any
    """Targets as the model takes them."""
    calibration: Rows | None
    """Rows that calibrate intervals after the fit."""

    def calibrated(self) -> Any:
        """The model after its fit, with its intervals calibrated and with the labels of the user."""
        if self.calibration is not None:
            self.model.conformalize(self.calibration.X, self.calibration.y)
        if self.rows.classes == 2:
            keep_labels(self.model, self.rows.y, self.rows.positive)
        return self.model


def planned(rows: Rows, tune: bool, seed: int, screen: Screen, smallest: float | None = None, **changes: Any) -> Plan:
    """The model that suits these rows, before its fit.

    Parameters
    ----------
    rows : Rows
    tune : bool
        Whether the model compares kernels.
    seed : int
    screen : Screen
    smallest : float or None
        The smallest fraction of level sets; None: by the number of rows.
    **changes
        Further parameters of the model.
    """
    if tune and rows.classes > 2:
        raise CommandError(NO_COMPARISON.format(target=rows.target, count=rows.classes))
    make, parameters = MODELS[rows.task, tune]
    if rows.task is Task.LEVEL_SET:
        low = smallest_fraction(rows.X.shape[0]) if smallest is None else smallest
        parameters = parameters | {"measure": (low, 1.0), "nu": max(low, DEFAULT_FRACTION)}
    elif smallest is not None:
        raise CommandError(f"--smallest {smallest:g} was given, and the task is {rows.task}; only level sets have it.")
    model, calibration = tabular(make(random_state=seed, **parameters, **changes)), None
    if rows.task is Task.QUANTILE and not tune:
        if rows.X.shape[0] * CALIBRATION_SHARE >= MIN_ROWS:
            rows, calibration = held_out(rows, CALIBRATION_SHARE, seed)
        else:
            screen.note("There are too few rows to calibrate intervals; they may cover too little. Try --tune.")
    y = rows.y == rows.positive if rows.classes == 2 else rows.y
    return Plan(model, rows, y, calibration)


def fitted(rows: Rows, tune: bool, seed: int, screen: Screen, smallest: float | None = None) -> Any:
    """The model of these rows; what a person should know about it becomes notes. Parameters as of :func:`planned`."""
    plan = planned(rows, tune, seed, screen, smallest)
    with screen.step(f"fitting {plan.rows.X.shape[0]} rows" + (", comparing kernels" if tune else "")):
        plan.model.fit(plan.rows.X, plan.y)
        model = plan.calibrated()
    say_if_ignoring(screen, model)
    return model


def say_if_ignoring(screen: Screen, model: Any) -> None:
    """A note where a comparison found that no feature helps."""
    if getattr(model, "ignores_inputs_", False):
        screen.note("No column was found to help: the model answers nearly the same for every row.")


def task_of(model: Any) -> Task:
    """What a fitted model has learnt."""
    for task, method in (
        (Task.QUANTILE, "predict_distribution"),
        (Task.COST, "roc_curve"),
        (Task.LEVEL_SET, "mass_volume_curve"),
    ):
        if hasattr(model, method):
            return task
    raise CommandError(
        f"The model is a {type(last(model)).__name__}; commands take models of quantiles, costs or level sets."
    )


def last(model: Any) -> Any:
    """The model itself, without the steps before it; a self-tuned model is not opened."""
    return inner_model(model, stop=lambda inner: not isinstance(inner, Pipeline))


def calibration(model: Any, task: Task) -> str:
    """Which post-fit calibration the model had."""
    if task is not Task.QUANTILE:
        what = "decisions" if task is Task.COST else "fractions"
        calibrated = hasattr(model, "shift_") or hasattr(model, "share_scale_")  # of more than two classes
        return f"{what} were calibrated on held-out rows" if calibrated else f"{what} were not calibrated"
    if hasattr(model, "calibration_"):
        return "intervals are conformal, by rows kept aside"
    return "levels were calibrated on held-out rows" if hasattr(model, "levels_") else "nothing was calibrated"


def inputs_of(model: Any, table: TableFile) -> Any:
    """The columns of a table that a model was fitted to."""
    known = getattr(model, "feature_names_in_", None)
    X = table.frame if known is None else columns_of(table, map(str, known), ", which the model was fitted to")
    check_finite(table, X)
    return X


def rows_with_targets(model: Any, table: TableFile, target: str | None) -> tuple[Any, Any, str | None, list[str]]:
    """Inputs and targets of rows whose targets are known, the name of the target, and notes."""
    task, X = task_of(model), inputs_of(model, table)
    notes: list[str] = []
    if task is Task.LEVEL_SET:
        return X, None, None, notes + surprises(model, X)
    target = getattr(model, "target_name_", None) if target is None else target
    if target is None:
        raise CommandError("The model does not say what its target is called; name the column with --target.")
    check_column(table, target, ", the target")
    known = table.frame[target].notna().to_numpy()
    if not known.any():
        raise CommandError(f"The target {target!r} is missing in all rows of {table.path}.")
    if not known.all():
        notes.append(f"{int((~known).sum())} of {known.size} rows have no {target!r}; they are left out.")
    y = table.frame[target][known]
    y = as_known(labels(y), model.classes_) if task is Task.COST else as_numbers(y)
    if y is None:
        raise CommandError(f"The target {target!r} of {table.path} holds text; the model's are numbers.")
    X = X[known].reset_index(drop=True)
    return X, y.reset_index(drop=True), target, notes + surprises(model, X)


# --------------------------------------------------------------------------------------------- files of models
def load_model(path: Path) -> Any:
    """A model from a file."""
    if path.is_dir():
        raise CommandError(f"{path} is a folder; give the file of a model, made with: infinitask fit data.csv")
    if not path.is_file():
        raise CommandError(
            f"There is no file {path} with a model; make one with: infinitask fit data.csv -o {path.name}"
        )
    return as_arrays(load(path))


def save_model(model: Any, path: Path) -> None:
    """A model into a file."""
    with saying_what_cannot_be_written(path):
        save(model, path)
