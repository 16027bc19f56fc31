"""Fit a model, or search for a good one: the search can be watched, stopped, and continued later.

Without a number of trials, the self-tuned models compare kernels and λ, see :mod:`infinitask.tuning`. With one, Optuna
tries kernels, widths and λ, also by cross-validation, and stores its trials in a file if one is given.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from infinitask import make_pipeline, tabular
from infinitask.cli._models import MIN_ROWS, MODELS, Rows, held_out, last, smallest_fraction
from infinitask.cli._output import CommandError, Screen, formatted
from infinitask.cli._targets import Task, keep_labels
from infinitask.fitting._recipe import Units
from infinitask.metrics import scorer
from infinitask.tuning import OptunaSearch

CALIBRATION_FRACTION = 0.2
"""The fraction of rows that calibrates the intervals of a quantile model that does not tune itself."""

DEFAULT_FRACTION = 0.1
"""The fraction of unusual rows that is predicted by default, if the model knows it."""

KERNELS = ["rbf", "matern52", "matern32", "laplacian"]
"""Input kernels that trials choose from."""

WIDTHS, RIDGES = (1e-3, 1e1), (1e-7, 1.0)
"""Ranges of γ for standardised features, times their number, and of λ, times the spread of the target."""

LOSSES = {Task.QUANTILE: "pinball loss", Task.COST: "log loss", Task.LEVEL_SET: "mean volume"}
"""The held-out loss by which kernels are compared."""

LOSSES_OF_TRIALS = {Task.QUANTILE: "pinball loss", Task.COST: "mean cost"}
"""The loss by which trials are compared."""


class Search(NamedTuple):
    """The limits of a search: trials of Optuna, seconds, and a file for the trials."""

    trials: int | None = None
    timeout: float | None = None
    storage: Path | None = None


class Ranking(NamedTuple):
    """The compared candidates with their held-out losses, the best first.

    Parameters
    ----------
    loss_name : str
        The name of the loss.
    candidates : list of dict
        ``kernel``, ``alpha``, ``gamma`` (trials only), ``loss`` (None: it was eliminated before all rows were used),
        ``standard_error`` and ``chosen``.
    ignoring_inputs : float or None
        The loss without features, if it is known.
    """

    loss_name: str
    candidates: list[dict[str, Any]]
    ignoring_inputs: float | None = None

    @property
    def chosen(self) -> dict[str, Any]:
        """The candidate that was fitted to all rows."""
        return next(part for part in self.candidates if part["chosen"])

    @property
    def summary(self) -> str:
        """One line: the number of candidates, and the loss of the chosen one."""
        best = self.chosen["loss"]
        loss = "" if best is None else f", {self.loss_name} {formatted(best)} on held-out rows"
        none = "" if self.ignoring_inputs is None else f" ({formatted(self.ignoring_inputs)} without inputs)"
        return f"{len(self.candidates)} candidates{loss}{none}"


def fitted(
    rows: Rows, tune: bool, seed: int, screen: Screen, smallest: float | None = None, search: Search | None = None
) -> Any:
    """Fit the model that suits some rows, and print notes about it.

    Parameters
    ----------
    rows : Rows
    tune : bool
        Whether to compare kernels.
    seed : int
    screen : Screen
    smallest : float or None
        The smallest fraction of level sets; None: by the number of rows.
    search : Search or None
        A comparison that the user may stop, with the best candidate so far; or trials instead.
    """
    limits = Search() if search is None else search
    trials = limits.trials
    if trials is not None and rows.task is Task.LEVEL_SET:
        raise CommandError("--trials was given, and the task is level-set, which compares kernels; leave it out.")
    tune = tune and trials is None
    make, parameters, *_ = MODELS[rows.task, tune]
    if rows.task is Task.LEVEL_SET:
        low = smallest_fraction(rows.X.shape[0]) if smallest is None else smallest
        parameters = parameters | {"measure": (low, 1.0), "nu": max(low, DEFAULT_FRACTION)}
    elif smallest is not None:
        raise CommandError(f"--smallest {smallest:g} was given, and the task is {rows.task}; only level sets have it.")
    if limits.timeout is not None and not tune and trials is None:
        screen.note("--max-seconds limits a comparison of kernels, and nothing is compared here. Take --tune.")
    if search is not None and tune:
        parameters = parameters | {"on_interrupt": "best", "max_seconds": limits.timeout}
    model, calibration = tabular(make(random_state=seed, **parameters)), None
    if rows.task is Task.QUANTILE and not tune:
        if rows.X.shape[0] * CALIBRATION_FRACTION >= MIN_ROWS:
            rows, calibration = held_out(rows, CALIBRATION_FRACTION, seed)
        else:
            screen.note("There are too few rows to calibrate intervals; they may cover too little. Try --tune.")
    y, n = rows.y == rows.positive if rows.classes == 2 else rows.y, rows.X.shape[0]
    text = f"fitting {n} rows" + ", comparing kernels" * tune if trials is None else f"{trials} trials on {n} rows"
    with screen.step(text) as progress:
        model = model.fit(rows.X, y) if trials is None else _by_trials(model, rows, y, seed, trials, limits)
        if calibration is not None:
            model.conformalize(calibration.X, calibration.y)
        if rows.classes == 2:
            keep_labels(model, rows.y, rows.positive)
    if progress.cut_short:
        why = f"The {limits.timeout:g} s were over" if progress.ran_out else "The search was interrupted"
        what = ("kernel" if trials is None else "trial") + ("" if progress.tried == 1 else "s")
        screen.note(f"{why} after {progress.tried} {what}; the best so far is kept.")
    if getattr(model, "ignores_inputs_", False):
        screen.note("No column was found to help: the model answers nearly the same for every row.")
    return model


def _by_trials(model: Any, rows: Rows, y: Any, seed: int, trials: int, limits: Search) -> Any:
    """Fit the model that Optuna finds."""
    pipeline = tabular(make_pipeline(StandardScaler(), last(model)))
    Z, y = np.asarray(pipeline[:-1].fit_transform(rows.X, y)), np.asarray(y)
    quantiles = rows.task is Task.QUANTILE
    unit = Units.of(y, np.full(len(Z), 1.0 / len(Z)), centred=True).spread if quantiles else 1.0
    found = OptunaSearch(
        last(model),
        {
            "kernel": KERNELS,
            "gamma": tuple(width / Z.shape[1] for width in WIDTHS),
            "alpha": tuple(ridge / unit for ridge in RIDGES),
        },
        n_trials=trials,
        timeout=limits.timeout,
        scoring=scorer("pinball" if quantiles else "cost"),
        storage=limits.storage,
        on_interrupt="best",
        random_state=seed,
    ).fit(Z, y)
    results: dict[str, Any] = found.cv_results_
    compared = [
        {
            **params,
            "loss": -float(np.mean(scores)),
            "standard_error": float(np.std(scores) / np.sqrt(len(scores))),
            "chosen": params == found.best_params_,
        }
        for params, scores in zip(results["params"], results["splits_test_score"], strict=True)
    ]
    best = found.best_estimator_
    if not quantiles:  # trials give λ as a number, with which a classifier by itself calibrates nothing
        best = clone(best).set_params(calibrated=True).fit(Z, y)
    pipeline.steps[-1] = (pipeline.steps[-1][0], best)
    pipeline.target_name_ = str(rows.target)
    pipeline.trials_ = sorted(compared, key=lambda trial: float(trial["loss"]))
    return pipeline


def ranking_of(model: Any, task: Task) -> Ranking | None:
    """The candidates among which a model was chosen; None if nothing was compared."""
    trials = getattr(model, "trials_", None)
    if trials is not None:
        return Ranking(LOSSES_OF_TRIALS[task], trials)
    results = getattr(model, "cv_results_", None)
    if not isinstance(results, dict):
        return None
    losses, best, alphas = results.get("losses"), results["best"], results.get("alphas", [None])
    if losses is None:  # level sets are compared without λ and without folds
        losses, best = np.asarray(results["areas"])[:, None, None], (best, 0)
    found = []
    for k, (name, folds) in enumerate(zip(results["kernels"], np.asarray(losses), strict=True)):
        means, chosen = folds.mean(axis=1), bool(k == best[0])
        i = best[1] if chosen and np.isfinite(means[best[1]]) else int(np.argmin(means))
        part = {"kernel": name, "alpha": None, "loss": None, "standard_error": None, "chosen": chosen}
        if np.isfinite(means[i]):
            part |= {"alpha": alphas[i], "loss": float(means[i])}
            if folds.shape[1] > 1:
                part["standard_error"] = float(np.std(folds[i]) / np.sqrt(folds.shape[1]))
        found.append(part)
    found.sort(key=lambda part: np.inf if part["loss"] is None else part["loss"])
    ignoring = float(np.mean(results["ignoring_x"])) if "ignoring_x" in results else None
    return Ranking(LOSSES[task], found, ignoring)


def show_ranking(screen: Screen, ranking: Ranking) -> None:
    """Print the candidates as a table."""
    rows, shown, best = [], 12, ranking.candidates[0]["loss"]
    for k, part in enumerate(ranking.candidates[:shown], 1):
        name = part["kernel"] + ("" if part.get("gamma") is None else f", γ = {part['gamma']:.2g}")
        alpha = "" if part["alpha"] is None else f"{part['alpha']:.2g}"
        loss, error = ("" if part[of] is None else formatted(part[of]) for of in ("loss", "standard_error"))
        worse = "" if part["loss"] in (None, best) else f"{part['loss'] / best - 1.0:+.1%}"
        chosen = "chosen" if part["chosen"] else "left out early" if part["loss"] is None else ""
        rows.append((str(k), name, alpha, loss, error, worse, chosen))
    screen.say(f"\ncompared by the {ranking.loss_name} of held-out rows")
    screen.table(("", "kernel", "λ", "loss", "±", "", ""), rows)
    if len(ranking.candidates) > shown:
        screen.say(f"… and {len(ranking.candidates) - shown} more")
    if ranking.ignoring_inputs is not None:
        screen.say(f"without inputs: {formatted(ranking.ignoring_inputs)}")
