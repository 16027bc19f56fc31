"""A search for a good model that a person can watch, end, and go on with later.

Without a number of trials the self-tuned models compare kernels and λ, see :mod:`infinitask.tuning`. With one, Optuna
tries kernels, widths and λ, by cross-validation as well, and keeps its trials in a file if there is one.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from infinitask import make_pipeline, tabular
from infinitask.cli._models import Plan, Rows, last, planned, say_if_ignoring
from infinitask.cli._multiclass import NO_COMPARISON
from infinitask.cli._output import CommandError, Screen, written
from infinitask.cli._targets import Task
from infinitask.fitting._recipe import Units
from infinitask.metrics import scorer
from infinitask.tuning import OptunaSearch

KERNELS = ["rbf", "matern52", "matern32", "laplacian"]
"""Input kernels that trials choose from."""

WIDTHS, RIDGES = (1e-3, 1e1), (1e-7, 1.0)
"""γ of standardised features, times their number; and λ, times the spread of the target."""

LOSSES = {Task.QUANTILE: "pinball loss", Task.COST: "log loss", Task.LEVEL_SET: "mean volume"}
"""By what kernels are compared, on held-out rows."""

LOSSES_OF_TRIALS = {Task.QUANTILE: "pinball loss", Task.COST: "mean cost"}
"""By what trials are."""


@dataclass(frozen=True)
class Search:
    """How long a search may take: trials of Optuna, seconds, and a file for the trials."""

    trials: int | None = None
    timeout: float | None = None
    storage: Path | None = None


@dataclass(frozen=True)
class Ranking:
    """What was compared: candidates with their losses on held-out rows, the best first.

    Parameters
    ----------
    loss_name : str
        The name of the loss.
    candidates : list of dict
        ``kernel``, ``alpha``, ``gamma`` (trials only), ``loss`` (None: it lost before all rows were used),
        ``standard_error`` and ``chosen``.
    ignoring_inputs : float or None
        The loss without features, where it is known.
    """

    loss_name: str
    candidates: list[dict[str, Any]]
    ignoring_inputs: float | None = None

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """The table for the screen."""
        known = [part["loss"] for part in self.candidates if part["loss"] is not None]
        best = min(known, default=float("nan"))
        return [_row(k, part, best) for k, part in enumerate(self.candidates, 1)]

    @property
    def summary(self) -> str:
        """One line: how many candidates, and the loss of the chosen one."""
        (chosen, *_) = [part for part in self.candidates if part["chosen"]]
        loss = "" if chosen["loss"] is None else f", {self.loss_name} {written(chosen['loss'])} on held-out rows"
        none = "" if self.ignoring_inputs is None else f" ({written(self.ignoring_inputs)} without inputs)"
        return f"{len(self.candidates)} candidates{loss}{none}"


def _row(k: int, part: dict[str, Any], best: float) -> tuple[str, ...]:
    name = part["kernel"] + ("" if part.get("gamma") is None else f", γ = {part['gamma']:.2g}")
    alpha = "" if part["alpha"] is None else f"{part['alpha']:.2g}"
    chosen = "chosen" if part["chosen"] else ""
    if part["loss"] is None:
        return str(k), name, alpha, "", "", "", chosen or "left out early"
    error = "" if part["standard_error"] is None else written(part["standard_error"])
    worse = "" if part["loss"] == best else f"{part['loss'] / best - 1.0:+.1%}"
    return str(k), name, alpha, written(part["loss"]), error, worse, chosen


def searched(rows: Rows, seed: int, screen: Screen, smallest: float | None, search: Search) -> Any:
    """The best model that a search finds; if it is ended early, the best so far.

    Parameters
    ----------
    rows : Rows
    seed : int
    screen : Screen
    smallest : float or None
        As of :func:`planned`.
    search : Search
    """
    by_trials = search.trials is not None
    if by_trials and rows.task is Task.LEVEL_SET:
        raise CommandError("--trials was given, and the task is level-set, which compares kernels; leave it out.")
    if by_trials and rows.classes > 2:
        raise CommandError(NO_COMPARISON.format(target=rows.target, count=rows.classes))
    changes = {} if by_trials else {"on_interrupt": "best"}
    plan = planned(rows, not by_trials, seed, screen, smallest, **changes)
    n = plan.rows.X.shape[0]
    text = f"{search.trials} trials on {n} rows" if by_trials else f"comparing kernels on {n} rows"
    with screen.step(text, search.timeout) as progress:
        if by_trials:
            plan = _by_trials(plan, seed, search)
        else:
            plan.model.fit(plan.rows.X, plan.y)
        model = plan.calibrated()
    if progress.cut_short:
        why = f"The {search.timeout:g} s were over" if progress.ran_out else "The search was interrupted"
        what = ("trial" if by_trials else "kernel") + ("" if progress.tried == 1 else "s")
        screen.note(f"{why} after {progress.tried} {what}; the best so far is kept.")
    say_if_ignoring(screen, model)
    return model


def _by_trials(plan: Plan, seed: int, search: Search) -> Plan:
    """The plan with the model that Optuna found, fitted to the rows of the plan."""
    assert search.trials is not None
    task, model = plan.rows.task, last(plan.model)
    pipeline = tabular(make_pipeline(StandardScaler(), model))
    Z = np.asarray(pipeline[:-1].fit_transform(plan.rows.X, plan.y))
    y, unit = np.asarray(plan.y), 1.0
    if task is Task.QUANTILE:
        unit = Units.of(y, np.full(len(Z), 1.0 / len(Z)), centred=True).spread
    found = OptunaSearch(
        model,
        {
            "kernel": KERNELS,
            "gamma": tuple(width / Z.shape[1] for width in WIDTHS),
            "alpha": tuple(ridge / unit for ridge in RIDGES),
        },
        n_trials=search.trials,
        scoring=scorer("pinball" if task is Task.QUANTILE else "cost"),
        storage=search.storage,
        on_interrupt="best",
        random_state=seed,
    ).fit(Z, y)
    results: dict[str, Any] = found.cv_results_
    folds = np.sqrt([len(splits) for splits in results["splits_test_score"]])
    trials = [
        {**params, "loss": -score, "standard_error": float(spread / root), "chosen": params == found.best_params_}
        for params, score, spread, root in zip(
            results["params"], results["mean_test_score"], results["std_test_score"], folds, strict=True
        )
    ]
    pipeline.steps[-1] = (pipeline.steps[-1][0], found.best_estimator_)
    if plan.rows.target is not None:
        pipeline.target_name_ = plan.rows.target
    pipeline.trials_ = sorted(trials, key=lambda trial: float(trial["loss"]))
    return Plan(pipeline, plan.rows, plan.y, plan.calibration)


def ranking_of(model: Any, task: Task) -> Ranking | None:
    """What a model was chosen from; None where nothing was compared."""
    trials = getattr(model, "trials_", None)
    if trials is not None:
        return Ranking(LOSSES_OF_TRIALS[task], trials)
    results = getattr(model, "cv_results_", None)
    if not isinstance(results, dict):
        return None
    if "areas" in results:
        found = [
            _candidate(name, None, float(area), None, k == results["best"])
            for k, (name, area) in enumerate(zip(results["kernels"], results["areas"], strict=True))
        ]
        return Ranking(LOSSES[task], sorted(found, key=lambda part: float(part["loss"])))
    losses, (chosen, at) = np.asarray(results["losses"]), results["best"]
    found = []
    for k, name in enumerate(results["kernels"]):
        means = losses[k].mean(axis=1)
        i = at if k == chosen and np.isfinite(means[at]) else int(np.argmin(means))
        known = bool(np.isfinite(means[i]))
        error = float(np.std(losses[k, i]) / np.sqrt(losses.shape[2])) if known else None
        alpha = float(results["alphas"][i]) if known else None
        found.append(_candidate(name, alpha, float(means[i]) if known else None, error, k == chosen))
    found.sort(key=lambda part: np.inf if part["loss"] is None else float(part["loss"]))
    return Ranking(LOSSES[task], found, float(np.mean(results["ignoring_x"])))


def _candidate(name: str, alpha: float | None, loss: float | None, error: float | None, chosen: bool) -> dict[str, Any]:
    return {"kernel": name, "alpha": alpha, "loss": loss, "standard_error": error, "chosen": bool(chosen)}


def show_ranking(screen: Screen, ranking: Ranking) -> None:
    """The candidates as a table."""
    rows, shown = ranking.rows, 12
    screen.say(f"\ncompared by the {ranking.loss_name} of held-out rows")
    screen.table(("", "kernel", "λ", "loss", "±", "", ""), rows[:shown])
    if len(rows) > shown:
        screen.say(f"… and {len(rows) - shown} more")
    if ranking.ignoring_inputs is not None:
        screen.say(f"without inputs: {written(ranking.ignoring_inputs)}")
