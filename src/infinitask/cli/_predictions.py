"""What a fitted model is asked: predictions as named columns, and how good it is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from infinitask.cli._models import task_of
from infinitask.cli._output import CommandError, formatted
from infinitask.cli._tables import pandas
from infinitask.cli._targets import Task, class_quality, is_multiclass, predicted_classes, read_costs

COVERAGES = (0.5, 0.8, 0.9, 0.95)
"""Of the intervals that an evaluation looks at."""

LEVELS = (0.05, 0.5, 0.95)
"""Quantiles that are predicted where none are asked for."""

FRACTIONS = (0.01, 0.05, 0.1, 0.2, 0.5)
"""Shares of unusual rows that an evaluation looks at, where the model knows them."""


@dataclass(frozen=True)
class Query:
    """What is asked of a model, beside the rows: levels, trade-offs, costs or fractions."""

    quantiles: list[float] | None = None
    coverage: list[float] | None = None
    theta: list[float] | None = None
    costs: tuple[float, float] | None = None
    matrix: Path | None = None
    nu: list[float] | None = None


def predicted(model: Any, X: Any, asked: Query) -> Any:
    """Predictions as a data frame with named columns; what suits another task is refused."""
    task = task_of(model)
    options: dict[Task, dict[str, Any]] = {
        Task.QUANTILE: {"--quantiles": asked.quantiles, "--coverage": asked.coverage},
        Task.COST: {"--theta": asked.theta, "--fn-cost and --fp-cost": asked.costs, "--costs": asked.matrix},
        Task.LEVEL_SET: {"--nu": asked.nu},
    }
    for kind, given in options.items():
        for name, value in given.items():
            if value is not None and kind is not task:
                known = " or ".join(options[task])
                raise CommandError(f"{name} was given, and the model is one of {task}; it takes {known}.")
    answers = {Task.QUANTILE: _quantiles, Task.COST: _decisions, Task.LEVEL_SET: _level_sets}
    return pandas().DataFrame(answers[task](model, X, asked))


def _quantiles(model: Any, X: Any, asked: Query) -> dict[str, Any]:
    name, levels, coverage = getattr(model, "target_name_", "y"), asked.quantiles, asked.coverage
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


def _decisions(model: Any, X: Any, asked: Query) -> dict[str, Any]:
    name, theta, costs, matrix = getattr(model, "target_name_", "y"), asked.theta, asked.costs, asked.matrix
    _check_one({"--theta": theta, "--fn-cost": costs, "--costs": matrix})
    _check_two(model, {"--theta": theta, "--fn-cost": costs})
    if matrix is not None or is_multiclass(model):
        return predicted_classes(model, X, None if matrix is None else read_costs(matrix, model.classes_))
    if costs is not None:
        columns = {name: model.predict(X, theta=model.theta_from_costs(*costs))}
    elif theta is not None:
        values = model.predict(X, theta=theta)
        columns = {f"{name}_theta_{t:g}": values[:, k] for k, t in enumerate(theta)}
    else:
        columns = {name: model.predict(X)}
    return columns | {f"probability_{model.classes_[1]}": model.predict_proba(X)[:, 1]}


def _check_one(given: dict[str, Any]) -> None:
    """An error where several options decide."""
    several = [name for name, value in given.items() if value is not None]
    if len(several) > 1:
        raise CommandError(f"{' and '.join(several)} were given; give one of them, which decides.")


def _check_two(model: Any, given: dict[str, Any]) -> None:
    """An error where more than two classes are asked what two are."""
    asked = [name for name, value in given.items() if value is not None]
    if asked and is_multiclass(model):
        raise CommandError(
            f"{asked[0]} is about two classes, and the model has {len(model.classes_)}; give --costs with a table of "
            "what each decision costs where each class is true."
        )


def _level_sets(model: Any, X: Any, asked: Query) -> dict[str, Any]:
    fractions, smallest = [float(model.offset_)] if asked.nu is None else asked.nu, smallest_of(model)
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
    """The smallest fraction that a model of level sets has learnt."""
    return float(model.measure_.support[0][0])


# ---------------------------------------------------------------------------------------------------- how good
@dataclass(frozen=True)
class DecisionRule:
    """What is wanted of decisions: one of a trade-off, two bounds and a table of costs, and what errors cost."""

    costs: tuple[float, float] | None = None
    theta: float | None = None
    max_fpr: float | None = None
    min_sensitivity: float | None = None
    confidence: float | None = None
    matrix: Path | None = None

    def __post_init__(self) -> None:
        _check_one(self.deciding | {"--costs": self.matrix})
        _check_one({"--fn-cost": self.costs, "--costs": self.matrix})
        if self.confidence is not None and not self.bound:
            raise CommandError("--confidence is that of a bound; give --max-fpr or --min-sensitivity too.")

    @property
    def deciding(self) -> dict[str, float | None]:
        """What decides, by the name of its option."""
        return {"--theta": self.theta, "--max-fpr": self.max_fpr, "--min-sensitivity": self.min_sensitivity}

    @property
    def bound(self) -> str:
        """The bound on an error, in words; empty where there is none."""
        sure = "" if self.confidence is None else f", for new rows with confidence {self.confidence:g}"
        if self.max_fpr is not None:
            return f"at most {self.max_fpr:.3g} of the others raise an alarm{sure}"
        return (
            "" if self.min_sensitivity is None else f"at least {self.min_sensitivity:.3g} of the cases are found{sure}"
        )

    def decides(self, model: Any, X: Any, y: Any) -> float:
        """The trade-off θ, chosen on these rows where there is a bound."""
        if self.bound:
            bounds = {"max_fpr": self.max_fpr, "min_sensitivity": self.min_sensitivity, "confidence": self.confidence}
            return float(model.choose_theta(X, y, **bounds))
        if self.theta is not None:
            return self.theta
        return 0.0 if self.costs is None else float(model.theta_from_costs(*self.costs))


def evaluated(model: Any, X: Any, y: Any, wish: DecisionRule | None = None) -> dict[str, Any]:
    """How good a model is on some rows, in names and numbers."""
    task, wish = task_of(model), DecisionRule() if wish is None else wish
    if wish != DecisionRule() and task is not Task.COST:
        raise CommandError(f"Costs of errors, or bounds on them, were given, and the model is one of {task}.")
    if task is Task.QUANTILE:
        return _quality_of_quantiles(model, X, np.asarray(y, dtype=np.float64))
    if task is Task.COST and (is_multiclass(model) or wish.matrix is not None):
        _check_two(model, {"--fn-cost": wish.costs, **wish.deciding})
        return class_quality(model, X, y, None if wish.matrix is None else read_costs(wish.matrix, model.classes_))
    if task is Task.COST:
        return _quality_of_decisions(model, X, np.asarray(y), wish)
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


def _quality_of_decisions(model: Any, X: Any, y: Any, wish: DecisionRule) -> dict[str, Any]:
    curve = model.roc_curve(X, y)  # labels that the model does not know are refused here
    positive, p = y == model.classes_[1], model.predict_proba(X)[:, 1]
    theta = wish.decides(model, X, y)
    alarm = model.predict(X, theta=theta) == model.classes_[1]
    missed, false_alarms = int(np.sum(positive & ~alarm)), int(np.sum(alarm & ~positive))
    found = {
        "positive": str(model.classes_[1]),
        "share_of_positive": float(np.mean(positive)),
        "cases": int(np.sum(positive)),
        "roc_area": float(curve.area),
        "brier": float(np.mean((p - positive) ** 2)),
        "theta": theta,
        "alarms": int(np.sum(alarm)),
        "found": int(np.sum(positive & alarm)),
        "missed": missed,
        "false_alarms": false_alarms,
        "accuracy": float(np.mean(alarm == positive)),
        "sensitivity": _mean(alarm[positive]),
        "specificity": _mean(~alarm[~positive]),
    }
    if wish.costs is not None:
        found["mean_cost"] = (wish.costs[0] * missed + wish.costs[1] * false_alarms) / positive.size
    if wish.bound:
        found["bound"] = wish.bound
    return found


def _mean(values: Any) -> float | None:
    return float(np.mean(values)) if values.size else None


def evaluation_lines(found: dict[str, Any]) -> list[tuple[str, Any]]:
    """An evaluation as lines for the screen."""
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
    said = ("positive", "share_of_positive", "bound")  # in a sentence of their own
    found = found | {"theta": "0 (both errors cost the same)"} if found.get("theta") == 0.0 else found
    lines: list[tuple[str, Any]] = [
        (words.get(name, name), "none" if value is None else value)
        for name, value in found.items()
        if not isinstance(value, list) and name not in said
    ]
    for part in found.get("intervals", []):
        held = f"{part['held']:.1%}, median width {formatted(part['median_width'])}"
        lines.append((f"{part['asked']:.0%} intervals held", held))
    for part in found.get("unusual", []):
        lines.append((f"outside, {part['asked']:.0%} asked", f"{part['found']:.1%}"))
    return lines
