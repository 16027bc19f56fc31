"""What becomes of the columns of a table: said on the screen, and kept with the model.

A model remembers it as ``learnt_from_``: the name of the file, when it was read, how many rows it had, and for each
column its kind, how many values were missing, what a missing one is filled with, and which categories are known. No row
of the table is kept.
"""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from sklearn.pipeline import Pipeline

from infinitask.cli._output import Screen
from infinitask.cli._tables import TableFile, pandas
from infinitask.pipelines._tables import listed

KINDS = {"numeric": "number", "datetime": "date", "low_cardinality": "category", "high_cardinality": "text"}
"""What a person calls skrub's kinds of columns."""


def encoded_columns(model: Any, X: Any = None) -> list[dict[str, Any]]:
    """Each column of the fit: its kind, its missing values, what these become, and what becomes of the column.

    Parameters
    ----------
    model : fitted model
    X : data frame or None
        The table of the fit; None: what the model itself knows, without counts.
    """
    vectorizer = model.named_steps.get("table") if isinstance(model, Pipeline) else None
    kinds = getattr(vectorizer, "column_to_kind_", {})
    outputs = getattr(vectorizer, "input_to_outputs_", {})
    steps = getattr(vectorizer, "transformers_", {})
    names = getattr(model, "feature_names_in_", ()) if X is None else X.columns
    found = []
    for name in map(str, names):
        kind = KINDS.get(kinds.get(name, ""), "number" if vectorizer is None else "empty")
        if X is not None and X[name].dtype.kind == "b":
            kind = "yes/no"
        encoded = [str(output) for output in outputs.get(name, [name])] if kind != "empty" else []
        known = _categories(steps.get(name)) if kind == "category" else None
        found.append(
            {
                "name": name,
                "kind": kind,
                "missing": None if X is None else int(X[name].isna().sum()),
                "filled": _filled(kind, steps.get(name), encoded),
                "encoded": encoded,
                "categories": None if known is None else [str(value) for value in known if value == value],
            }
        )
    return found


def _filled(kind: str, step: Any, encoded: list[str]) -> float | str | None:
    """What a missing value becomes."""
    if step is None or not encoded:
        return None
    if kind == "category":
        missing = [output for output, value in zip(encoded, _categories(step), strict=False) if value != value]
        return missing[0] if missing else "zeros"
    if kind == "date":
        return "medians"
    if kind == "text":
        return "empty text"
    medians = getattr(step, "statistics_", None)
    if medians is None:
        return None
    median = float(f"{float(medians[0]):.7g}")  # it was encoded in single precision
    return {0.0: "no", 1.0: "yes"}.get(median, median) if kind == "yes/no" else median


def _categories(step: Any) -> list[Any]:
    return list(step.categories_[0]) if hasattr(step, "categories_") else []


def remember(model: Any, table: TableFile, X: Any) -> None:
    """Let a model know which table it was learnt from.

    Parameters
    ----------
    model : fitted model
    table : TableFile
    X : data frame
        The columns and rows that were learnt from.
    """
    model.learnt_from_ = {
        "file": table.path.name,
        "format": table.format,
        "rows": int(X.shape[0]),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "version": version("infinitask"),
        "columns": encoded_columns(model, X),
    }


def cell_warnings(model: Any, X: Any) -> list[str]:
    """Sentences about cells that the model cannot use, which it would take for missing ones without a word.

    Text in a column of numbers is not among them: the step that encodes tables warns of it.

    Parameters
    ----------
    model : fitted model
    X : data frame
        New rows, with the columns of the fit.
    """
    found = []
    for part in encoded_columns(model):
        name, kind, known, what = part["name"], part["kind"], X[part["name"]].dropna(), ""
        if known.empty and kind != "empty":
            found.append(f"The column {name!r} has no values here.")
        elif kind == "category":
            known = known[~known.astype(str).isin(part["categories"])]
            what = f"categories that the fit has not seen ({listed(sorted(set(known.astype(str))), 3)})"
        elif kind == "date":
            known = known[pandas().to_datetime(known, errors="coerce", format="mixed").isna()]
            what = f"something else than dates, such as {listed(map(repr, map(str, known[:1])))}, taken as missing"
        if what and len(known):
            found.append(f"The column {name!r} has {what}, in {len(known)} of {X.shape[0]} rows.")
    return found


def show_columns(screen: Screen, columns: list[dict[str, Any]]) -> None:
    """The table of the columns."""
    rows = []
    for part in columns:
        known = ["" if part[name] is None else part[name] for name in ("name", "kind", "missing", "filled")]
        rows.append([*known, listed(part["encoded"], 4) or "left out"])
    screen.table(("column", "kind", "missing", "filled with", "becomes"), rows)
