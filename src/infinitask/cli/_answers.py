"""What a fitted model is asked: predictions as named columns, how good it is, and what it is."""

from __future__ import annotations

from typing import Any

import numpy as np

from infinitask.cli._models import Task, calibration, last, task_of
from infinitask.cli._screen import CommandError, written
from infinitask.cli._tables import pandas

COVERAGES = (0.5, 0.8, 0.9, 0.95)
"""Of the intervals that an evaluation looks at."""

LEVELS = (0.05, 0.5, 0.95)
"""Quantiles that are predicted where none are asked for."""

FRACTIONS = (0.01, 0.05, 0.1, 0.2, 0.5)
"""Shares of unusual rows that an evaluation looks at, where the model knows them."""

MOST_RELEVANT = 10
"""Inputs that are named."""


def predicted(
    model: Any,
    X: Any,
    *,
    quantiles: list[float] | None,
    coverage: list[float] | None,
    theta: list[float] | None,
    costs: tuple[float, float] | None,
    nu: list[float] | None,
) -> Any:
    """Predictions as a data frame with named columns; what suits another task is refused."""
    task = task_of(model)
    asked = {
        "--quantiles": (quantiles, Task.QUANTILE),
        "--coverage": (coverage, Task.QUANTILE),
        "--theta": (theta, Task.COST),
        "--fn-cost and --fp-cost": (costs, Task.COST),
        "--nu": (nu, Task.LEVEL_SET),
    }
    for name, (value, suits) in asked.items():
        if value is not None and suits is not task:
            options = [other for other, (_, kind) in asked.items() if kind is task]
            raise CommandError(f"{name} was given, and the model is one of {task}; it takes {' or '.join(options)}.")
    if task is Task.QUANTILE:
        columns = _quantiles(model, X, quantiles, coverage)
    elif task is Task.COST:
        columns = _decisions(model, X, theta, costs)
    else:
        columns = _level_sets(model, X, nu)
    return pandas().DataFrame(columns)


def _quantiles(model: Any, X: Any, levels: list[float] | None, coverage: list[float] | None) -> dict[str, Any]:
    name = getattr(model, "target_name_", "y")
    if levels is None and coverage is None:
        levels = list(LEVELS)
    columns: dict[str, Any] = {}
    if levels is not None:
        values = model.predict(X, quantiles=levels)
        columns |= {f"{name}_q{level:g}": values[:, k] for k, level in enumerate(levels)}
    if coverage is not None:
        ends = model.predict_interval(X, coverage=coverage)
        for k, share in enumerate(coverage):
            columns |= {f"{name}_low_{share:g}": ends[:, k, 0], f"{name}_high_{share:g}": ends[:, k, 1]}
    return columns


def _decisions(model: Any, X: Any, theta: list[float] | None, costs: tuple[float, float] | None) -> dict[str, Any]:
    name = getattr(model, "target_name_", "y")
    if theta is not None and costs is not None:
        raise CommandError("Both --theta and the two costs were given; give one of them.")
    if costs is not None:
        columns = {name: model.predict(X, theta=model.theta_from_costs(*costs))}
    elif theta is not None:
        values = model.predict(X, theta=theta)
        columns = {f"{name}_theta_{t:g}": values[:, k] for k, t in enumerate(theta)}
    else:
        columns = {name: model.predict(X)}
    return columns | {f"probability_{model.classes_[1]}": model.predict_proba(X)[:, 1]}


def _level_sets(model: Any, X: Any, nu: list[float] | None) -> dict[str, Any]:
    fractions = [float(model.offset_)] if nu is None else nu
    values = model.predict(X, nu=fractions)
    columns = {f"unusual_{share:g}": values[:, k] < 0 for k, share in enumerate(fractions)}
    return columns | {"p_value": model.score_samples(X)}


# ---------------------------------------------------------------------------------------------------- how good
def evaluated(model: Any, X: Any, y: Any, costs: tuple[float, float] | None = None) -> dict[str, Any]:
    """How good a model is on some rows, in names and numbers."""
    task = task_of(model)
    if costs is not None and task is not Task.COST:
        raise CommandError(f"Costs of errors were given, and the model is one of {task}.")
    if task is Task.QUANTILE:
        return _quality_of_quantiles(model, X, np.asarray(y, dtype=np.float64))
    if task is Task.COST:
        return _quality_of_decisions(model, X, np.asarray(y), costs)
    values = model.predict(X, nu=(known := [nu for nu in FRACTIONS if nu >= model.measure_.support[0][0]]))
    outside = np.mean(values < 0, axis=0)
    return {"unusual": [{"asked": nu, "found": float(share)} for nu, share in zip(known, outside, strict=True)]}


def _quality_of_quantiles(model: Any, X: Any, y: Any) -> dict[str, Any]:
    ends = model.predict_interval(X, coverage=list(COVERAGES))
    low, high = ends[..., 0], ends[..., 1]
    held = np.mean((low <= y[:, None]) & (y[:, None] <= high), axis=0)
    width = np.median(high - low, axis=0)
    return {
        "explained": float(model.score(X, y)),
        "crps": float(np.mean(model.predict_distribution(X).crps(y))),
        "error_of_median": float(np.mean(np.abs(y - model.predict(X, quantiles=0.5)))),
        "intervals": [
            {"asked": share, "held": float(h), "median_width": float(w)}
            for share, h, w in zip(COVERAGES, held, width, strict=True)
        ],
    }


def _quality_of_decisions(model: Any, X: Any, y: Any, costs: tuple[float, float] | None) -> dict[str, Any]:
    curve = model.roc_curve(X, y)  # labels that the model does not know are refused here
    positive, p = y == model.classes_[1], model.predict_proba(X)[:, 1]
    theta = 0.0 if costs is None else float(model.theta_from_costs(*costs))
    alarm = model.predict(X, theta=theta) == model.classes_[1]
    found = {
        "positive": str(model.classes_[1]),
        "share_of_positive": float(np.mean(positive)),
        "roc_area": float(curve.area),
        "brier": float(np.mean((p - positive) ** 2)),
        "theta": theta,
        "accuracy": float(np.mean(alarm == positive)),
        "sensitivity": _mean(alarm[positive]),
        "specificity": _mean(~alarm[~positive]),
    }
    if costs is not None:
        found["mean_cost"] = float(np.mean(costs[0] * (positive & ~alarm) + costs[1] * (alarm & ~positive)))
    return found


def _mean(values: Any) -> float | None:
    return float(np.mean(values)) if values.size else None


def evaluation_lines(found: dict[str, Any]) -> list[tuple[str, Any]]:
    """An evaluation as lines for the screen."""
    words = {
        "explained": "explained (D²)",
        "crps": "CRPS",
        "error_of_median": "mean error of the median",
        "positive": "positive class",
        "share_of_positive": "its share",
        "roc_area": "area under the ROC curve",
        "brier": "Brier score",
        "theta": "θ of the decisions",
        "mean_cost": "mean cost",
    }
    lines: list[tuple[str, Any]] = [
        (words.get(name, name), "none" if value is None else value)
        for name, value in found.items()
        if not isinstance(value, list)
    ]
    for part in found.get("intervals", []):
        lines.append(
            (f"{part['asked']:.0%} intervals held", f"{part['held']:.1%}, median width {written(part['median_width'])}")
        )
    for part in found.get("unusual", []):
        lines.append((f"outside, {part['asked']:.0%} asked", f"{part['found']:.1%}"))
    return lines


# ------------------------------------------------------------------------------------------------- what it is
def described(model: Any) -> dict[str, Any]:
    """What a fitted model is: its task, its columns, its kernel, its certificate, and what matters."""
    task, inner = task_of(model), last(model)
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
        "columns": None if known is None else [str(name) for name in known],
        "inputs": int(inner.n_features_in_),
        "kernel": repr(inner.kernel_),
        "alpha": float(inner.alpha_),
        "features": str(inner.features_),
        "dual_gap": float(inner.dual_gap_),
        "calibration": calibration(model, task),
        "relevance": matters,
    }
