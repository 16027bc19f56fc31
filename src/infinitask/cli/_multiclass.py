"""More than two classes: their costs from a file, decisions with a probability for each, and how good these are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from infinitask.cli._classes import is_meant
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
        if not any(is_meant(label, name) for label in classes):
            raise CommandError(
                f"{path} has a {what} {name.strip()!r}, and the classes of the model are {listed(classes)}."
            )
    found = []
    for label in classes:
        places = [k for k, name in enumerate(names) if is_meant(label, name)]
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
