"""Which task a target is for, and its values as a model takes them."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Any

import numpy as np

from infinitask.cli._output import CommandError
from infinitask.cli._tables import pandas
from infinitask.fitting._recipe import TOO_FAR, USUAL_SHARE
from infinitask.pipelines._tables import listed

MAX_CLASSES = 20
"""The most classes of a target; more texts than that are rather names."""

MIN_OF_A_CLASS = 6
"""Rows of the rarest class: five folds and the rows held out need one each."""

FAR = 1e6
"""A target is named before the fit if its distance from the median is more than FAR times the usual one."""

FEW = 0.2
"""Cells that are no numbers are taken for mistakes if they are at most this fraction of a column."""

WITH_UNITS = re.compile(r"[\s\d.,'’%$€£¥+−-]*\d[\s\d.,'’%$€£¥+−-]*")
"""A number with a unit, a sign or separators of thousands."""


class Task(StrEnum):
    """What is learnt."""

    QUANTILE = "quantile"
    COST = "cost"
    LEVEL_SET = "level-set"


def task_and_targets(y: Any, task: Task | None) -> tuple[Task, Any, str]:
    """The task, its targets as the model takes them, and why it is this task.

    Parameters
    ----------
    y : pandas Series
        Without missing values.
    task : Task or None
        As asked; None: a target of two values or of texts is for costs, one of numbers for quantiles.
    """
    numbers, values = as_numbers(y), y.unique().tolist()
    if len(values) == 1:
        raise CommandError(f"The target {y.name!r} is {values[0]!r} in all rows; there is nothing to learn.")
    reason = "as asked"
    if task is None:
        two = len(values) == 2
        task = Task.COST if two or numbers is None else Task.QUANTILE
        reason = f"{y.name} has {'two' if two else len(values)} values"
        reason = reason if task is Task.COST else f"{y.name} holds numbers"
        meant = "" if two or numbers is not None else _nearly_numbers(y)
        if meant:
            raise CommandError(meant)
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
    """The sentence about an outlier among the targets; empty where there is none, an error if it is too far.

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
    """The sentence about a target that was meant to hold numbers, or dates; empty where it was not."""
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
    """Words about a column of texts most of which are numbers; empty where it is none."""
    if y.dtype.kind not in "OTUS" and str(y.dtype) not in ("str", "string"):
        return ""
    known = y.dropna()
    wrong = known[pandas().to_numeric(known, errors="coerce").isna()]
    if not 0 < wrong.size <= FEW * known.size:
        return ""
    where = int(wrong.index[0]) + 1
    return f"numbers, but not in {wrong.size} of {known.size} rows, such as {wrong.iloc[0]!r} in row {where}"


def as_numbers(y: Any) -> Any:
    """Numbers, also those written as text; None where some are none."""
    if y.dtype.kind == "M":
        return None
    try:
        return pandas().to_numeric(y).astype("float64")
    except OverflowError:
        raise CommandError(f"The target {y.name!r} holds numbers above 1e308, which no computer adds up.") from None
    except (ValueError, TypeError):
        return None


def labels(y: Any) -> Any:
    """Labels as plain numbers, booleans or strings; numbers with holes were no integers when they were read."""
    kind = y.dtype.kind
    if kind == "b":
        return y.astype(bool)
    if kind in "iuf":
        return y.astype("int64" if np.all(y == np.round(y)) else "float64")
    known = {type(value) for value in y}
    return y.astype(bool) if known <= {bool, np.bool_} else y.astype(str).astype(object)
