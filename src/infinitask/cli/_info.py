"""What a fitted model is: its task, its columns, its kernel, its certificate, and what matters."""

from __future__ import annotations

from typing import Any

from infinitask.cli._classes import is_multiclass
from infinitask.cli._columns import encoded_columns, show_columns
from infinitask.cli._models import calibration, last, task_of
from infinitask.cli._output import Screen
from infinitask.cli._predictions import smallest_of
from infinitask.cli._search import ranking_of
from infinitask.cli._targets import Task
from infinitask.pipelines._tables import listed

MOST_RELEVANT = 10
"""Inputs that are named."""


def described(model: Any) -> dict[str, Any]:
    """What a fitted model is: its task, its columns, its kernel, its certificate, and what matters."""
    task, inner = task_of(model), last(model)
    two = task is Task.COST and not is_multiclass(model)
    try:
        relevance = model.relevance_
        order = [int(j) for j in relevance.order[:MOST_RELEVANT]]
        matters = [{"input": str(relevance.names[j]), "effect": float(relevance.effect[j])} for j in order]
    except (AttributeError, ValueError):  # a kernel that has no derivative
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
        "kernel_name": kernel_name(model, task),
        "alpha": float(inner.alpha_),
        "features": str(inner.features_),
        "dual_gap": float(inner.dual_gap_),
        "calibration": calibration(model, task),
        "relevance": matters,
    }


def kernel_name(model: Any, task: Task) -> str:
    """What a kernel is called: as in the comparison that it won, or else by its parts, without their numbers."""
    ranking = ranking_of(model, task)
    chosen = [] if ranking is None else [part["kernel"] for part in ranking.candidates if part["chosen"]]
    return str(chosen[0]) if chosen else str(last(model).kernel_.describe().outline)


def show_model(screen: Screen, model: Any, size: int) -> dict[str, Any]:
    """Say what a model is; all of it is returned.

    Parameters
    ----------
    screen : Screen
    model : fitted model
    size : int
        Bytes of its file.
    """
    found, ranking = described(model), ranking_of(model, task_of(model))
    origin = found["learnt_from"]
    encoding = encoded_columns(model) if origin is None else origin["columns"]
    positive, share = found["positive"], found["share_of_positive"]
    of_rows = "" if share is None else f", {share:.1%} of the rows of the fit"
    lines = {
        "task": found["task"],
        "model": found["model"],
        "target": found["target"],
        "learnt from": origin and f"{origin['file']}, {origin['rows']:,} rows, {origin['date'][:10]}",
        "columns": listed(found["columns"] or []),
        "classes": listed(found["classes"] or []),
        "positive class": positive and f"{positive}{of_rows}",
        "smallest fraction": None if found["smallest_fraction"] is None else f"{found['smallest_fraction']:.1%}",
        "inputs": found["inputs"],
        "kernel": found["kernel_name"],
        "alpha": found["alpha"],
        "features": found["features"],
        "dual gap": found["dual_gap"],
        "calibration": found["calibration"],
        "chosen from": None if ranking is None else ranking.summary,
        "bytes": size,
    }
    screen.table(("", ""), [(name, value) for name, value in lines.items() if value not in (None, "")])
    if encoding:
        screen.say("")
        show_columns(screen, encoding)
    if found["relevance"]:
        screen.say("")
        screen.table(("input", "effect"), [(part["input"], part["effect"]) for part in found["relevance"]])
    candidates = None if ranking is None else ranking.candidates
    return found | {"encoding": encoding, "candidates": candidates, "bytes": size}
