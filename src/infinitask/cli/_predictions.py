"""Predict as named columns, and evaluate a fitted model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.metrics import confusion_matrix

from infinitask.cli._models import task_of
from infinitask.cli._output import CommandError, formatted
from infinitask.cli._tables import pandas
from infinitask.cli._targets import Task, is_multiclass, read_costs
from infinitask.pipelines._tables import listed

COVERAGES = (0.5, 0.8, 0.9, 0.95)
"""The coverage of the intervals in an evaluation."""

LEVELS = (0.05, 0.5, 0.95)
"""The default quantiles of a prediction."""

FRACTIONS = (0.01, 0.05, 0.1, 0.2, 0.5)
"""The fractions of unusual rows in an evaluation, if the model knows them."""


Asked = Mapping[str, Any]
"""The given options by name; ``--fn-cost`` holds both costs."""

OPTIONS = {
    Task.QUANTILE: ("--quantiles", "--coverage"),
    Task.COST: ("--theta", "--fn-cost", "--costs"),
    Task.LEVEL_SET: ("--nu",),
}
"""The prediction options of each task."""

DECIDING = ("--theta", "--max-fpr", "--min-sensitivity", "--costs")
"""The options that decide between classes in an evaluation."""

BOUNDS = ("--max-fpr", "--min-sensitivity", "--confidence")


def predicted(model: Any, X: Any, asked: Asked) -> Any:
    """Predictions as a data frame with named columns; raise an error if an option belongs to another task."""
    task = task_of(model)
    for name in asked:
        if name not in OPTIONS[task]:
            known = " or ".join(OPTIONS[task])
            raise CommandError(f"{name} was given, and the model is one of {task}; it takes {known}.")
    predict = {Task.QUANTILE: _quantiles, Task.COST: _decisions, Task.LEVEL_SET: _level_sets}
    return pandas().DataFrame(predict[task](model, X, asked))


def _quantiles(model: Any, X: Any, asked: Asked) -> dict[str, Any]:
    name, coverage = getattr(model, "target_name_", "y"), asked.get("--coverage", ())
    columns: dict[str, Any] = {}
    if levels := asked.get("--quantiles", () if coverage else LEVELS):
        values = model.predict(X, quantiles=levels)
        columns |= {f"{name}_q{level:g}": values[:, k] for k, level in enumerate(levels)}
    if coverage:
        ends = model.predict_interval(X, coverage=coverage)
        for k, share in enumerate(coverage):
            columns |= {f"{name}_low_{share:g}": ends[:, k, 0], f"{name}_high_{share:g}": ends[:, k, 1]}
    return columns


def _decisions(model: Any, X: Any, asked: Asked) -> dict[str, Any]:
    name = getattr(model, "target_name_", "y")
    _check_one(asked, OPTIONS[Task.COST])
    p = model.predict_proba(X)
    probabilities = {f"probability_{label}": p[:, k] for k, label in enumerate(model.classes_)}
    if "--costs" in asked or is_multiclass(model):
        return {name: model.predict(X, costs=_costs_of_classes(model, asked))} | probabilities
    del probabilities[f"probability_{model.classes_[0]}"]
    if "--theta" in asked:
        values = model.predict(X, theta=asked["--theta"])
        return {f"{name}_theta_{t:g}": values[:, k] for k, t in enumerate(asked["--theta"])} | probabilities
    decision = {"theta": model.theta_from_costs(*asked["--fn-cost"])} if asked else {}
    return {name: model.predict(X, **decision)} | probabilities


def _check_one(asked: Asked, names: Sequence[str]) -> None:
    """Raise an error if several options decide."""
    several = [name for name in names if name in asked]
    if len(several) > 1:
        raise CommandError(f"{' and '.join(several)} were given; give one of them, which decides.")


def _costs_of_classes(model: Any, asked: Asked) -> Any:
    """The cost matrix, or None; raise an error if a model of more than two classes gets options for two."""
    if "--costs" in asked:
        return read_costs(asked["--costs"], model.classes_)
    if asked:
        raise CommandError(
            f"{next(iter(asked))} is about two classes, and the model has {len(model.classes_)}; give --costs with a "
            "table of what each decision costs where each class is true."
        )
    return None


def _level_sets(model: Any, X: Any, asked: Asked) -> dict[str, Any]:
    fractions, smallest = asked.get("--nu", [float(model.offset_)]), smallest_of(model)
    below = [share for share in fractions if 0.0 < share < smallest]
    if below:
        raise CommandError(
            f"--nu {below[0]:g} was asked for, and the model has learnt fractions from {smallest:.3g} on; ask for one "
            f"of these, or fit again with: infinitask fit ... --smallest {below[0]:g}"
        )
    values = model.predict(X, nu=fractions)
    columns = {f"unusual_{share:g}": values[:, k] < 0 for k, share in enumerate(fractions)}
    return columns | {"p_value": model.score_samples(X)}


def smallest_of(model: Any) -> float:
    """The smallest fraction that a level-set model has learnt."""
    return float(model.measure_.support[0][0])


# -------------------------------------------------------------------------------------------------- evaluation
def check_rule(asked: Asked) -> None:
    """Raise an error if the options for decisions are incompatible."""
    _check_one(asked, DECIDING)
    _check_one(asked, ("--fn-cost", "--costs"))
    if "--confidence" in asked and not _bound(asked):
        raise CommandError("--confidence is that of a bound; give --max-fpr or --min-sensitivity too.")


def _bound(asked: Asked) -> str:
    """The bound on an error, in words; empty if there is none."""
    sure = f", for new rows with confidence {asked['--confidence']:g}" if "--confidence" in asked else ""
    if "--max-fpr" in asked:
        return f"at most {asked['--max-fpr']:.3g} of the others raise an alarm{sure}"
    if "--min-sensitivity" in asked:
        return f"at least {asked['--min-sensitivity']:.3g} of the cases are found{sure}"
    return ""


def evaluated(model: Any, X: Any, y: Any, asked: Asked | None = None) -> dict[str, Any]:
    """Evaluate a model on some rows; return names and numbers."""
    task, asked = task_of(model), asked or {}
    if asked and task is not Task.COST:
        raise CommandError(f"Costs of errors, or bounds on them, were given, and the model is one of {task}.")
    if task is Task.QUANTILE:
        return _quality_of_quantiles(model, X, np.asarray(y, dtype=np.float64))
    if task is Task.COST and (is_multiclass(model) or "--costs" in asked):
        return _quality_of_classes(model, X, y, _costs_of_classes(model, asked))
    if task is Task.COST:
        return _quality_of_decisions(model, X, np.asarray(y), asked)
    values = model.predict(X, nu=(known := [nu for nu in FRACTIONS if nu >= smallest_of(model)]))
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


def _quality_of_decisions(model: Any, X: Any, y: Any, asked: Asked) -> dict[str, Any]:
    curve = model.roc_curve(X, y)  # raises an error for labels that the model does not know
    positive, p = y == model.classes_[1], model.predict_proba(X)[:, 1]
    theta, costs, bound = asked.get("--theta", 0.0), asked.get("--fn-cost"), _bound(asked)
    if bound:
        limits = {name[2:].replace("-", "_"): asked[name] for name in BOUNDS if name in asked}
        theta = float(model.choose_theta(X, y, **limits))
    elif costs is not None and "--theta" not in asked:
        theta = float(model.theta_from_costs(*costs))
    alarm = model.predict(X, theta=theta) == model.classes_[1]
    (quiet, false_alarms), (missed, hits) = confusion_matrix(positive, alarm, labels=[False, True]).tolist()
    cases, others = missed + hits, quiet + false_alarms
    found = {
        "positive": str(model.classes_[1]),
        "share_of_positive": cases / positive.size,
        "cases": cases,
        "roc_area": float(curve.area),
        "brier": float(np.mean((p - positive) ** 2)),
        "theta": theta,
        "alarms": hits + false_alarms,
        "found": hits,
        "missed": missed,
        "false_alarms": false_alarms,
        "accuracy": (hits + quiet) / positive.size,
        "sensitivity": hits / cases if cases else None,
        "specificity": quiet / others if others else None,
    }
    if costs is not None:
        found["mean_cost"] = (costs[0] * missed + costs[1] * false_alarms) / positive.size
    if bound:
        found["bound"] = bound
    return found


def _quality_of_classes(model: Any, X: Any, y: Any, costs: Any) -> dict[str, Any]:
    """The quality of labels and probabilities, with the cost of the labels if costs are known."""
    truth = pandas().Index(model.classes_).get_indexer(y)
    unknown = sorted({str(label) for label in np.asarray(y)[truth < 0]})
    if unknown:
        raise CommandError(f"The rows have classes that the model does not know ({listed(unknown, 5)}).")
    decision = pandas().Index(model.classes_).get_indexer(model.predict(X, costs=costs))
    counts = confusion_matrix(truth, decision, labels=np.arange(len(model.classes_)))
    p = model.predict_proba(X)[np.arange(truth.size), truth]
    found = {
        "accuracy": float(np.trace(counts) / truth.size),
        "log_loss": float(-np.mean(np.log(np.maximum(p, 1e-15)))),  # finite for a probability of 0 too
    }
    if costs is not None:
        found["mean_cost"] = float(np.mean(costs[truth, decision]))
    each = {"rows": counts.sum(axis=1), "decided": counts.sum(axis=0), "found": np.diag(counts)}
    table = pandas().DataFrame({"class": list(map(str, model.classes_)), **each})
    return found | {"classes": table.to_dict("records")}


def evaluation_lines(found: dict[str, Any]) -> list[tuple[str, Any]]:
    """The lines of an evaluation for the screen."""
    words = {
        "explained": "explained (D²)",
        "crps": "CRPS",
        "error_of_median": "mean error of the median",
        "roc_area": "area under the ROC curve",
        "brier": "Brier score",
        "theta": "θ of the decisions",
        "found": "cases found",
        "missed": "cases missed",
        "false_alarms": "false alarms",
        "log_loss": "log loss",
        "mean_cost": "cost for each row",
    }
    in_sentences = ("positive", "share_of_positive", "bound")  # printed in separate sentences
    found = found | {"theta": "0 (both errors cost the same)"} if found.get("theta") == 0.0 else found
    lines: list[tuple[str, Any]] = [
        (words.get(name, name), "none" if value is None else value)
        for name, value in found.items()
        if not isinstance(value, list) and name not in in_sentences
    ]
    for part in found.get("intervals", []):
        held = f"{part['held']:.1%}, median width {formatted(part['median_width'])}"
        lines.append((f"{part['asked']:.0%} intervals held", held))
    for part in found.get("unusual", []):
        lines.append((f"outside, {part['asked']:.0%} asked", f"{part['found']:.1%}"))
    return lines
