"""Which of two classes is the positive one: that of the cases, whose misses and false alarms have costs.

The library takes the second label in sorted order. A command takes the label that was named, or the rarer one, and a
saved model remembers it: ``classes_`` holds the other label and then the positive one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from infinitask._base.inner_model import inner_model
from infinitask.cli._output import CommandError


def positive_of(y: Any, wanted: str | None) -> Any:
    """The label of the positive class.

    Parameters
    ----------
    y : pandas Series
        Two labels.
    wanted : str or None
        As it was typed; None: the rarer one, and of two that are as frequent the second in sorted order.
    """
    first, second = sorted(y.unique().tolist())
    if wanted is None:
        return first if 2 * int((y == first).sum()) < y.size else second
    for label in (first, second):
        if is_meant(label, wanted):
            return label
    raise CommandError(
        f"--positive {wanted} was given, and {y.name} holds {str(first)!r} and {str(second)!r}; name one of these."
    )


def is_meant(label: Any, wanted: str) -> bool:
    """Whether a label is the one that was typed."""
    text = wanted.strip()
    if isinstance(label, str):
        return label in (wanted, text)
    if isinstance(label, bool):
        return str(label).lower() == text.lower()
    try:
        return bool(float(text) == label)
    except ValueError:
        return False


def as_known(y: Any, classes: Any) -> Any:
    """Labels of a table as a model has them: 1 of a table without texts is the class "1" of one with some.

    Parameters
    ----------
    y : pandas Series
    classes : ndarray (K,)
        Of the model.

    Returns
    -------
    pandas Series
        A label that the model does not know stays as it is.
    """
    known = classes.tolist()
    meant = {
        value: next((label for label in known if is_meant(label, str(value))), value) for value in y.unique().tolist()
    }
    found = y.map(meant)
    return found.astype(classes.dtype) if set(meant.values()) <= set(known) else found.astype(object)


def keep_labels(model: Any, y: Any, positive: Any) -> None:
    """Give a model that was fitted to ``y == positive`` the labels of the user, and the fraction of the positive one.

    Parameters
    ----------
    model : fitted pipeline
    y : pandas Series
        The labels of the rows of the fit.
    positive : label
    """
    (other,) = [label for label in y.unique().tolist() if label != positive]
    inner_model(model).classes_ = np.array([other, positive], dtype=y.dtype)
    model.positive_share_ = float(np.mean(y == positive))


def which_is_positive(label: Any, share: float | None, rows: str = "the rows") -> str:
    """The sentence about it."""
    return f"{label} is the positive class" + ("" if share is None else f", {share:.1%} of {rows}")
