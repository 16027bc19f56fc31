"""Classes of a target: which of two is the positive one, and what decisions between them cost.

The positive class is that of the cases, whose misses and false alarms have costs. The library takes the second label in
sorted order. A command takes the label that was named, or the rarer one, and a saved model remembers it: ``classes_``
holds the other label and then the positive one. Costs of more classes are a table in a file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from infinitask._base.inner_model import inner_model
from infinitask.cli._output import CommandError, Screen
from infinitask.cli._tables import cells_of
from infinitask.pipelines._tables import listed

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
        Two labels.
    wanted : str or None
        As it was typed; None: the rarer one, and of two that are as frequent the second in sorted order.
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


def as_model_labels(y: Any, classes: Any) -> Any:
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
        value: next((label for label in known if matches(label, str(value))), value) for value in y.unique().tolist()
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


# ------------------------------------------------------------------------------------------- more than two classes
def is_multiclass(model: Any) -> bool:
    """Whether a fitted model decides between more than two classes."""
    return hasattr(model, "classes_") and len(model.classes_) > 2


def read_costs(path: Path, classes: Any) -> Any:
    """What each decision costs where each class is true, in the order of the classes: (K, K).

    Parameters
    ----------
    path : Path
        A table with the names of the classes as header and in the first column: rows are the truth, columns the
        decision. An empty cell of a right decision is 0.
    classes : sequence of labels
    """
    table = [row for row in cells_of(path) if any(cell.strip() for cell in row)]
    if not table:
        raise CommandError(
            f"{path} has only empty cells; write the names of the classes ({listed(classes)}) as header and in the "
            "first column, and what each decision costs between them."
        )
    head, *rows = table
    columns = _places(path, head[1:], classes, "column")
    lines = _places(path, [row[0] for row in rows], classes, "row")
    found = np.zeros((len(classes), len(classes)))
    for i, truth in enumerate(classes):
        row = rows[lines[i]]
        for j, decision in enumerate(classes):
            cell = row[columns[j] + 1].strip() if columns[j] + 1 < len(row) else ""
            try:
                found[i, j] = 0.0 if cell == "" and i == j else float(cell)
            except ValueError:
                found[i, j] = np.nan
            if not np.isfinite(found[i, j]):
                raise CommandError(
                    f"{path} has {cell!r} as the cost of deciding {decision} where {truth} is true; a number is needed."
                )
    return found


def _places(path: Path, names: list[str], classes: Any, what: str) -> list[int]:
    """Where each class stands among the names."""
    for name in names:
        if not any(matches(label, name) for label in classes):
            raise CommandError(
                f"{path} has a {what} {name.strip()!r}, and the classes of the model are {listed(classes)}."
            )
    found = []
    for label in classes:
        places = [k for k, name in enumerate(names) if matches(label, name)]
        if len(places) != 1:
            often = "no" if not places else f"{len(places)}"
            raise CommandError(
                f"{path} has {often} {what}{'s' * (len(places) != 1)} for the class {label}; it is a table with the "
                "names of the classes as header and in the first column, rows the truth and columns the decision."
            )
        found.append(places[0])
    return found


def predicted_classes(model: Any, X: Any, costs: Any) -> dict[str, Any]:
    """The labels that cost least and the probability of each class, as named columns.

    Parameters
    ----------
    model : fitted model
    X : data frame (n, d)
    costs : ndarray (K, K) or None
        None: all errors cost the same.
    """
    name, p = getattr(model, "target_name_", "y"), model.predict_proba(X)
    probabilities = {f"probability_{label}": p[:, k] for k, label in enumerate(model.classes_)}
    return {name: model.predict(X, costs=costs)} | probabilities


def class_quality(model: Any, X: Any, y: Any, costs: Any) -> dict[str, Any]:
    """How good labels and probabilities are, with what the labels cost if that is known."""
    classes = list(model.classes_)
    unknown = sorted({str(label) for label in y} - {str(label) for label in classes})
    if unknown:
        raise CommandError(f"The rows have classes that the model does not know ({listed(unknown, 5)}).")
    truth = np.array([classes.index(label) for label in y])
    decision = np.array([classes.index(label) for label in model.predict(X, costs=costs)])
    p = model.predict_proba(X)[np.arange(truth.size), truth]
    found = {
        "accuracy": float(np.mean(truth == decision)),
        "log_loss": float(-np.mean(np.log(np.maximum(p, 1e-15)))),  # finite for a probability of 0 too
    }
    if costs is not None:
        found["mean_cost"] = float(np.mean(costs[truth, decision]))
    return found | {
        "classes": [
            {
                "class": str(label),
                "rows": int(np.sum(truth == k)),
                "decided": int(np.sum(decision == k)),
                "found": int(np.sum((truth == k) & (decision == k))),
            }
            for k, label in enumerate(classes)
        ]
    }


def shares_of(y: Any) -> list[dict[str, Any]]:
    """How many rows each class has, the most frequent first."""
    counts = y.value_counts()
    return [
        {"class": str(label), "rows": int(count), "share": float(count / y.size)} for label, count in counts.items()
    ]


def show_shares(screen: Screen, shares: list[dict[str, Any]]) -> None:
    """The table of the classes."""
    screen.table(("class", "rows", "share"), [(part["class"], part["rows"], f"{part['share']:.1%}") for part in shares])
