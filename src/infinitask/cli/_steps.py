"""Steps that commands have in common, with their output, and the description of a fitted model.

A model stores a description of its training table as ``learnt_from_``: the name of the file, when it was read, the
number of rows, and for each column its kind, the number of missing values, the value that replaces them, and the known
categories. It stores no row of the table.
"""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sklearn.pipeline import Pipeline

from infinitask import load, save
from infinitask.cli import _tables
from infinitask.cli._models import MODELS, Rows, calibration, inputs_of, last, rows_of, rows_with_targets, task_of
from infinitask.cli._output import CommandError, Screen
from infinitask.cli._predictions import Asked, evaluated, evaluation_lines, smallest_of
from infinitask.cli._search import Ranking, ranking_of, show_ranking
from infinitask.cli._targets import NO_PAGE, Task, is_multiclass, shares_of, which_is_positive
from infinitask.estimators._frames import as_arrays
from infinitask.pipelines._tables import listed

TUNED_ROWS_OF_COSTS = 1_000
"""The most rows for which a cost model is tuned by default; 2 000 rows and 33 columns take 75 s of a core."""

LONG = 60.0
"""Fits that take at least this number of seconds are announced."""


def read(screen: Screen, path: Path) -> _tables.TableFile:
    """Read a table from a file, and print notes about it."""
    with screen.step(f"reading {path.name}"):
        table = _tables.read_table(path)
    screen.note(*table.notes)
    return table


def read_model(screen: Screen, path: Path) -> Any:
    """Read a model from a file; its predictions are arrays."""
    _tables.check_there(path, "a model, as `infinitask fit` makes it")
    with screen.step(f"reading {path.name}"):
        return as_arrays(load(path))


def rows_to_learn(
    screen: Screen,
    data: Path,
    target: str | None,
    task: Task | None,
    ignore: list[str] | None,
    positive: str | None,
    only_two: str = "",
) -> tuple[Any, _tables.TableFile]:
    """Prepare the training rows, and print notes about them.

    Parameters
    ----------
    screen : Screen
    data : Path
    target, task, ignore, positive
        The options of the user.
    only_two : str
        The error for more than two classes, with placeholders for the target and their number; empty: none.
    """
    table = read(screen, data)
    given = rows_of(table, target, task, ignore or [], positive)
    if only_two and given.classes > 2:  # before printing anything about the work
        raise CommandError(only_two.format(target=given.target, count=given.classes))
    screen.note(*given.notes)
    screen.say(f"data  {data}: {table.frame.shape[0]:,} rows, {table.frame.shape[1]} columns, {table.format}")
    screen.say(f"task  {given.task} ({given.reason})" + (f", target {given.target}" if given.target else ""))
    if given.classes > 2:
        screen.say("")
        rows = [(part["class"], part["rows"], f"{part['share']:.1%}") for part in shares_of(given.y)]
        screen.table(("class", "rows", "share"), rows)
    elif given.task is Task.COST:
        screen.say("      " + which_is_positive(given.positive, float((given.y == given.positive).mean())))
    return given, table


def whether_to_tune(tune: bool | None, given: Any) -> bool:
    """The choice of the user, or whether the comparison takes under a minute: level sets take longest, then costs."""
    if tune is not None:
        return tune
    return given.task is Task.QUANTILE or (given.classes == 2 and given.X.shape[0] <= TUNED_ROWS_OF_COSTS)


def announce(screen: Screen, given: Rows, tune: bool, faster: str = "--no-tune is faster") -> None:
    """Print the estimated time of a long fit, and how to shorten it."""
    *_, seconds, growth, harder = MODELS[given.task, tune]
    # 800 rows of three classes took 5.5 s of processor time, of two 0.9 s
    least = seconds * (given.X.shape[0] / 1_000.0) ** growth * max(1, given.classes - 1)
    if least * harder >= LONG:
        advice = f"; {faster}" if tune else ""
        screen.hint(f"The fit may take {duration(least)} to {duration(least * harder)}{advice}.")


def duration(seconds: float) -> str:
    """A duration in words, rounded."""
    if seconds < 90.0:
        return f"{max(1.0, float(f'{seconds:.1g}')):.0f} seconds"
    return f"{seconds / 60.0:.0f} minutes"


def show_fit(screen: Screen, model: Any, given: Any, table: _tables.TableFile) -> dict[str, Any]:
    """Print the encoding of the columns, and how the fit ended."""
    columns, found = encoded_columns(model, given.X), described(model)
    screen.say("")
    show_columns(screen, columns)
    screen.say(f"\nfit   {found['model']} ({found['kernel_name']}), certified gap {found['dual_gap']:.1e}")
    screen.say(f"      {found['calibration']}")
    if found["smallest_fraction"] is not None:
        screen.say(f"      fractions from {found['smallest_fraction']:.1%} on were learnt; --smallest sets it")
    if found["relevance"] and not getattr(model, "ignores_inputs_", False):
        screen.say(f"      what matters most: {', '.join(part['input'] for part in found['relevance'][:5])}")
    return {
        "data": str(table.path),
        "format": table.format,
        **found,
        "reason": given.reason,
        "columns": columns,
    } | ({"shares": shares_of(given.y)} if given.classes > 2 else {})


def save_fit(
    screen: Screen, model: Any, given: Any, table: _tables.TableFile, output: Path, ranking: Ranking | None = None
) -> None:
    """Save a model, and print how its fit ended.

    Parameters
    ----------
    screen : Screen
    model : fitted model
    given : Rows
        The training rows.
    table : TableFile
    output : Path
    ranking : Ranking or None
        The compared candidates, to be printed.
    """
    model.learnt_from_ = {
        "file": table.path.name,
        "format": table.format,
        "rows": given.X.shape[0],
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "version": version("infinitask"),
        "columns": encoded_columns(model, given.X),
    }
    with _tables.writing(output) as beside:
        save(model, beside)  # before anything is printed: the reader of the output may stop reading
    found = show_fit(screen, model, given, table) | {"rows": given.X.shape[0]}
    if ranking is not None:
        show_ranking(screen, ranking)
        found |= {"judged_by": ranking.loss_name, "ignoring_inputs": ranking.ignoring_inputs}
        found["candidates"] = ranking.candidates
    size = output.stat().st_size
    screen.say(f"\nmodel  {output} ({size / 1e6:.1f} MB)")
    screen.result(found | {"saved": str(output), "bytes": size})


def show_evaluation(
    screen: Screen, model: Any, X: Any, y: Any, where: str, asked: Asked | None = None
) -> dict[str, Any]:
    """Evaluate a model on some rows; print and return the result."""
    with screen.step("evaluating"):
        found = evaluated(model, X, y, asked)
    screen.say("")
    if "positive" in found:
        screen.say(which_is_positive(found["positive"], found["share_of_positive"]))
    screen.table((f"on {where}", ""), evaluation_lines(found))
    if "classes" in found:
        screen.say("")
        screen.table(("class", "rows", "decided", "found"), [tuple(part.values()) for part in found["classes"]])
    if "bound" in found:
        screen.say(f"\nθ was chosen on these rows: {found['bound']}. To decide so: predict --theta {found['theta']!r}")
    return found


def say_positive(screen: Screen, model: Any) -> dict[str, Any]:
    """Print the positive class of a model for two classes, as a note, since the output may be a table."""
    if task_of(model) is not Task.COST or is_multiclass(model):
        return {}
    label, share = model.classes_[1], getattr(model, "positive_share_", None)
    screen.note(which_is_positive(label, share, "the rows of the fit"))
    return {"positive": str(label), "share_of_positive": share}


def model_and_rows(
    screen: Screen, path: Path, data: Path, target: str | None, asked: Asked | None = None, *, page: bool = False
) -> tuple[Any, Any, Any, dict[str, Any]]:
    """A saved model, the rows of a table with their targets, and the results so far; a page needs no targets."""
    model = read_model(screen, path)
    named = getattr(model, "target_name_", None) if target is None else target
    if page and is_multiclass(model):
        raise CommandError(NO_PAGE.format(target=named or "the target", count=len(model.classes_)))
    table = read(screen, data)
    if target is not None:
        _tables.check_column(table, target, ", the target")
    found: dict[str, Any] = {"model": str(path), "data": str(data), "task": str(task_of(model)), "target": named}
    if page and (task_of(model) is Task.LEVEL_SET or named not in table.frame.columns):
        say_positive(screen, model)
        X, y = inputs_of(model, table), None
        screen.note(*cell_warnings(model, X))
    else:
        X, y, notes = rows_with_targets(model, table, named)
        found["target"] = None if y is None else named
        screen.note(*notes, *cell_warnings(model, X))
        where = f"{X.shape[0]} rows of {data.name}"
        found["evaluation"] = show_evaluation(screen, model, X, y, where, asked)
    return model, X, y, found | {"rows": int(X.shape[0])}


# -------------------------------------------------------------------------------------------- describe a fitted model
MOST_RELEVANT = 10
"""The maximum number of features that are listed."""


def described(model: Any) -> dict[str, Any]:
    """Describe a fitted model: its task, columns, kernel, certificate, and relevant features."""
    task, inner = task_of(model), last(model)
    two, ranking = task is Task.COST and not is_multiclass(model), ranking_of(model, task)
    try:
        relevance = model.relevance_
        order = [int(j) for j in relevance.order[:MOST_RELEVANT]]
        matters = [{"input": str(relevance.names[j]), "effect": float(relevance.effect[j])} for j in order]
    except (AttributeError, ValueError):  # the kernel has no derivative
        matters = []
    known = getattr(model, "feature_names_in_", None)
    return {
        "task": str(task),
        "model": type(inner).__name__,
        "target": getattr(model, "target_name_", None),
        "classes": [str(label) for label in model.classes_] if task is Task.COST else None,
        "positive": str(model.classes_[1]) if two else None,
        "share_of_positive": getattr(model, "positive_share_", None) if two else None,
        "smallest_fraction": smallest_of(model) if task is Task.LEVEL_SET else None,
        "columns": None if known is None else [str(name) for name in known],
        "learnt_from": getattr(model, "learnt_from_", None),
        "inputs": int(inner.n_features_in_),
        "kernel": repr(inner.kernel_),
        "kernel_name": str(ranking.chosen["kernel"] if ranking else inner.kernel_.describe().outline),
        "alpha": float(inner.alpha_),
        "features": str(inner.features_),
        "dual_gap": float(inner.dual_gap_),
        "calibration": calibration(model, task),
        "relevance": matters,
    }


def show_model(screen: Screen, model: Any, size: int) -> dict[str, Any]:
    """Print the most important part of a model's description, and return all of it.

    Parameters
    ----------
    screen : Screen
    model : fitted model
    size : int
        Size of its file in bytes.
    """
    found, ranking = described(model), ranking_of(model, task_of(model))
    origin = found["learnt_from"]
    encoding = encoded_columns(model) if origin is None else origin["columns"]
    share = found["share_of_positive"]
    of_rows = "" if share is None else f", {share:.1%} of the rows of the fit"
    lines = {
        "task": found["task"],
        "model": found["model"],
        "target": found["target"],
        "learnt from": origin and f"{origin['file']}, {origin['rows']:,} rows, {origin['date'][:10]}",
        "columns": listed(found["columns"] or []),
        "classes": listed(found["classes"] or []),
        "positive class": found["positive"] and found["positive"] + of_rows,
        "smallest fraction": None if found["smallest_fraction"] is None else f"{found['smallest_fraction']:.1%}",
        "inputs": found["inputs"],
        "kernel": found["kernel_name"],
        "alpha": found["alpha"],
        "features": found["features"],
        "dual gap": found["dual_gap"],
        "calibration": found["calibration"],
        "chosen from": ranking and ranking.summary,
        "bytes": size,
    }
    screen.table(("", ""), [(name, value) for name, value in lines.items() if value not in (None, "")])
    if encoding:
        screen.say("")
        show_columns(screen, encoding)
    if found["relevance"]:
        screen.say("")
        screen.table(("input", "effect"), [(part["input"], part["effect"]) for part in found["relevance"]])
    return found | {"encoding": encoding, "candidates": ranking and ranking.candidates, "bytes": size}


# ------------------------------------------------------------------------------------------ columns of the table
KINDS = {"numeric": "number", "datetime": "date", "low_cardinality": "category", "high_cardinality": "text"}
"""User-facing names of skrub's kinds of columns."""


def encoded_columns(model: Any, X: Any = None) -> list[dict[str, Any]]:
    """Describe each column of the fit: its kind, missing values, the value that replaces them, and its encoding.

    Parameters
    ----------
    model : fitted model
    X : data frame or None
        The training table; None: only what the model itself knows, without counts.
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
    """The value that replaces a missing value."""
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


def cell_warnings(model: Any, X: Any) -> list[str]:
    """Warnings about cells that the model cannot use and would silently treat as missing.

    Text in a numeric column is not included: the step that encodes tables warns about it.

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
            known = known[_tables.pandas().to_datetime(known, errors="coerce", format="mixed").isna()]
            what = f"something else than dates, such as {listed(map(repr, map(str, known[:1])))}, taken as missing"
        if what and len(known):
            found.append(f"The column {name!r} has {what}, in {len(known)} of {X.shape[0]} rows.")
    return found


def show_columns(screen: Screen, columns: list[dict[str, Any]]) -> None:
    """Print the table of the columns."""
    rows = []
    for part in columns:
        known = ["" if part[name] is None else part[name] for name in ("name", "kind", "missing", "filled")]
        rows.append([*known, listed(part["encoded"], 4) or "left out"])
    screen.table(("column", "kind", "missing", "filled with", "becomes"), rows)
