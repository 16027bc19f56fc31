"""The task of a target, its values as a model takes them, and its classes.

The positive class is the class of interest, whose misses and false alarms have costs. The library takes the second
label in sorted order. A command takes the named label, or the rarer one, and a saved model stores it: ``classes_``
holds the other label and then the positive one. Costs of more than two classes are read from a table in a file.
"""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np

from infinitask._base.inner_model import inner_model
from infinitask.cli._output import CommandError
from infinitask.cli._tables import cells_of, pandas
from infinitask.fitting._recipe import TOO_FAR, USUAL_SHARE
from infinitask.pipelines._tables import listed

MAX_CLASSES = 20
"""The maximum number of classes of a target; more distinct texts are probably names."""

MIN_OF_A_CLASS = 6
"""The minimum number of rows of the rarest class: five folds and the held-out rows need one each."""

FAR = 1e6
"""A target is reported before the fit if its distance from the median is more than FAR times the usual one."""

FEW = 0.2
"""Cells that are not numbers are treated as mistakes if they are at most this fraction of a column."""

WITH_UNITS = re.compile(r"[\s\d.,'’%$€£¥+−-]*\d[\s\d.,'’%$€£¥+−-]*")
"""A number with a unit, a sign or separators of thousands."""


class Task(StrEnum):
    """The tasks that a command can learn."""

    QUANTILE = "quantile"
    COST = "cost"
    LEVEL_SET = "level-set"


def task_and_targets(y: Any, task: Task | None) -> tuple[Task, Any, str]:
    """The task, its targets as the model takes them, and the reason for this task.

    Parameters
    ----------
    y : pandas Series
        Targets without missing values.
    task : Task or None
        The requested task; None: costs for a target with two values or texts, quantiles for a numeric one.
    """
    numbers, values = as_numbers(y), y.unique().tolist()
    if len(values) == 1:
        raise CommandError(f"The target {y.name!r} is {values[0]!r} in all rows; there is nothing to learn.")
    reason = "as asked"
    if task is None:
        two = len(values) == 2
        if numbers is None and not two and (meant := _nearly_numbers(y)):
            raise CommandError(meant)
        task = Task.COST if two or numbers is None else Task.QUANTILE
        what = f"has {'two' if two else len(values)} values" if task is Task.COST else "holds numbers"
        reason = f"{y.name} {what}"
    if task is Task.QUANTILE:
        if numbers is None:
            sentence = f"The target {y.name!r} holds text, such as {values[0]!r}; quantiles need numbers."
            raise CommandError(_nearly_numbers(y) or sentence)
        if not np.all(np.isfinite(numbers)):
            raise CommandError(f"The target {y.name!r} holds infinite numbers; remove these rows.")
        return task, numbers, reason
    if len(values) > MAX_CLASSES:
        raise CommandError(
            f"The target {y.name!r} has {len(values)} different values ({listed(sorted(map(str, values)), 5)}); costs "
            f"are about at most {MAX_CLASSES} classes. Choose another target, or --task quantile for numbers."
        )
    counts = {value: int((y == value).sum()) for value in values}
    rarer, count = min(counts.items(), key=lambda pair: pair[1])
    if count < MIN_OF_A_CLASS:
        raise CommandError(f"Only {count} rows have {y.name} = {rarer!r}; at least {MIN_OF_A_CLASS} are needed.")
    return task, labels(y), reason


def outlier_among_targets(y: Any) -> str:
    """A sentence about an outlier among the targets; empty if there is none. Raise an error if it is too far.

    Parameters
    ----------
    y : pandas Series
        Numbers, with the rows of the table as index.
    """
    away = (y - y.median()).abs()
    usual = float(away.quantile(USUAL_SHARE))
    row, most = away.idxmax(), float(away.max())
    if usual <= 0.0 or most <= FAR * usual:
        return ""
    what = (
        f"Row {int(row) + 1}: the target {y.name!r} is {y[row]:g}, {most / usual:.0e} times as far from the median as "
        "nine of ten others"
    )
    if most > TOO_FAR * usual:
        raise CommandError(f"{what}, and no computer sees these beside it; correct this cell, or empty it.")
    return f"{what}; empty this cell if it is a mistake."


def _nearly_numbers(y: Any) -> str:
    """A sentence about a target that should probably hold numbers or dates; empty if it should not."""
    if y.dtype.kind == "M":
        return f"The target {y.name!r} holds dates; quantiles need numbers, such as the days since one of them."
    mistakes = mistakes_among_numbers(y)
    if mistakes:
        return f"The target {y.name!r} holds {mistakes}; correct these cells, or empty them."
    wrong = y[pandas().to_numeric(y, errors="coerce").isna()]
    first = wrong.iloc[0]
    if all(WITH_UNITS.fullmatch(str(value)) for value in wrong):
        return (
            f"The target {y.name!r} holds texts such as {first!r}; write plain numbers, without units and without "
            "separators of thousands."
        )
    return ""


def mistakes_among_numbers(y: Any) -> str:
    """A phrase about a text column that holds mostly numbers; empty if it does not."""
    known = y.dropna()
    wrong = known[pandas().to_numeric(known, errors="coerce").isna()]
    if not 0 < wrong.size <= FEW * known.size:
        return ""
    where = int(wrong.index[0]) + 1
    return f"numbers, but not in {wrong.size} of {known.size} rows, such as {wrong.iloc[0]!r} in row {where}"


def as_numbers(y: Any) -> Any:
    """Numbers, also those written as text; None if some values are not numbers."""
    if y.dtype.kind == "M":
        return None
    try:
        return pandas().to_numeric(y).astype("float64")
    except OverflowError:
        raise CommandError(f"The target {y.name!r} holds numbers above 1e308, which no computer adds up.") from None
    except (ValueError, TypeError):
        return None


def labels(y: Any) -> Any:
    """Labels as plain numbers, booleans or strings; integers with missing values were read as floats."""
    kind = y.dtype.kind
    if kind == "b":
        return y.astype(bool)
    if kind in "iuf":
        return y.astype("int64" if np.all(y == np.round(y)) else "float64")
    known = {type(value) for value in y}
    return y.astype(bool) if known <= {bool, np.bool_} else y.astype(str).astype(object)


# ------------------------------------------------------------------------------------------------------------ classes
NO_PAGE = (
    "A page moves the trade-off between two classes, and {target} has {count}. infinitask fit learns them; "
    "then predict --costs and evaluate --costs decide by what errors cost."
)

NO_COMPARISON = (
    "Kernels are compared for two classes, and {target} has {count}. infinitask fit learns them, without --tune."
)


def positive_of(y: Any, wanted: str | None) -> Any:
    """The label of the positive class.

    Parameters
    ----------
    y : pandas Series
        Targets with two distinct labels.
    wanted : str or None
        The label as typed; None: the rarer one, or the second in sorted order if both are equally frequent.
    """
    first, second = sorted(y.unique().tolist())
    if wanted is None:
        return first if 2 * int((y == first).sum()) < y.size else second
    for label in (first, second):
        if matches(label, wanted):
            return label
    raise CommandError(
        f"--positive {wanted} was given, and {y.name} holds {str(first)!r} and {str(second)!r}; name one of these."
    )


def matches(label: Any, wanted: str) -> bool:
    """Whether a label equals the typed one."""
    text = wanted.strip()
    if isinstance(label, str):
        return label in (wanted, text)
    if isinstance(label, bool):
        return str(label).lower() == text.lower()
    try:
        return bool(float(text) == label)
    except ValueError:
        return False


def as_model_labels(y: Any, classes: Any) -> Any:
    """Convert labels of a table to those of a model: the number 1 matches the class "1" of a table with texts.

    Parameters
    ----------
    y : pandas Series
    classes : ndarray (K,)
        The classes of the model.

    Returns
    -------
    pandas Series
        Labels that the model does not know are unchanged.
    """
    known = classes.tolist()
    meant = {
        value: next((label for label in known if matches(label, str(value))), value) for value in y.unique().tolist()
    }
    found = y.map(meant)
    return found.astype(classes.dtype) if set(meant.values()) <= set(known) else found.astype(object)


def keep_labels(model: Any, y: Any, positive: Any) -> None:
    """Give a model fitted to ``y == positive`` the labels of the user, and the fraction of the positive one.

    Parameters
    ----------
    model : fitted pipeline
    y : pandas Series
        The labels of the training rows.
    positive : label
    """
    (other,) = [label for label in y.unique().tolist() if label != positive]
    inner_model(model).classes_ = np.array([other, positive], dtype=y.dtype)
    model.positive_share_ = float(np.mean(y == positive))


def which_is_positive(label: Any, share: float | None, rows: str = "the rows") -> str:
    """A sentence about the positive class."""
    return f"{label} is the positive class" + ("" if share is None else f", {share:.1%} of {rows}")


# ------------------------------------------------------------------------------------------- more than two classes
def is_multiclass(model: Any) -> bool:
    """Whether a fitted model decides between more than two classes."""
    return hasattr(model, "classes_") and len(model.classes_) > 2


def read_costs(path: Path, classes: Any) -> Any:
    """Read the cost of each decision for each true class, in the order of the classes: (K, K).

    Parameters
    ----------
    path : Path
        A table with the names of the classes as header and in the first column: rows are the truth, columns the
        decision. An empty cell on the diagonal is 0.
    classes : sequence of labels
    """
    table = [row for row in cells_of(path) if any(cell.strip() for cell in row)]
    if not table:
        raise CommandError(
            f"{path} has only empty cells; write the names of the classes ({listed(classes)}) as header and in the "
            "first column, and what each decision costs between them."
        )
    columns = _places(path, table[0][1:], classes, "column")
    lines = _places(path, [row[0] for row in table[1:]], classes, "row")
    cells = pandas().DataFrame(table).fillna("").map(str.strip).iloc[1 + lines, 1 + columns]
    found = cells.apply(pandas().to_numeric, errors="coerce").to_numpy(np.float64, copy=True)
    found[np.eye(len(classes), dtype=bool) & (cells == "").to_numpy()] = 0.0
    for i, j in np.argwhere(~np.isfinite(found)):
        what = f"the cost of deciding {classes[j]} where {classes[i]} is true"
        raise CommandError(f"{path} has {cells.iat[i, j]!r} as {what}; a number is needed.")
    return found


def _places(path: Path, names: list[str], classes: Any, what: str) -> Any:
    """The position of each class among the names."""
    alike: Any = np.array([[matches(label, name) for label in classes] for name in names]).reshape(-1, len(classes))
    for name, known in zip(names, alike.any(axis=1), strict=True):
        if not known:
            raise CommandError(
                f"{path} has a {what} {name.strip()!r}, and the classes of the model are {listed(classes)}."
            )
    for label, count in zip(classes, alike.sum(axis=0), strict=True):
        if count != 1:
            raise CommandError(
                f"{path} has {count or 'no'} {what}s for the class {label}; it is a table with the names of the "
                "classes as header and in the first column, rows the truth and columns the decision."
            )
    return alike.argmax(axis=0)


def shares_of(y: Any) -> list[dict[str, Any]]:
    """The number and fraction of rows of each class, the most frequent first."""
    counts = y.value_counts()
    return [
        {"class": str(label), "rows": int(count), "share": float(count / y.size)} for label, count in counts.items()
    ]
