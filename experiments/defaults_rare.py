"""Rare positives that cost ten times a false alarm: the classifier as it comes, beside tuned thresholds.

The sets have 3 to 6% positives. They were listed before any result and must not be changed because of one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import TunedThresholdClassifierCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from infinitask import InfiniteCostSensitiveClassifier

from .defaults import REVISION, geometric_mean, measured
from .raw_tables import TEST_SHARE, encoded, raw_columns
from .runner import Experiment, Record
from .tables import markdown, settings_used, write_csv
from .tuned import Values

__all__ = ["EXPERIMENT", "FALSE_ALARM", "METHODS", "MISSED", "SETS", "mean_cost", "rare", "split"]

MISSED, FALSE_ALARM = 10.0, 1.0
SPLITS = 10
MOST_ROWS = 5_000
"""Larger sets are cut to this many rows, drawn with seed 0, so that ten splits of a set take minutes."""

Labels = NDArray[np.int_]


@dataclass(frozen=True)
class Source:
    """Rows with rare positives.

    Parameters
    ----------
    words : str
        For the page.
    load : callable
        () → columns of inputs, and labels 0 and 1.
    """

    words: str
    load: Callable[[], tuple[list[list[Any]], Labels]]


def rare(y: Labels, share: float, seed: int = 0) -> NDArray[np.int_]:
    """The rows that remain, in order: all negatives, and as many random positives as make up that share."""
    positives = np.flatnonzero(y == 1)
    negatives = np.flatnonzero(y == 0)
    count = round(share / (1.0 - share) * negatives.size)
    if count > positives.size:
        raise ValueError(f"share {share} needs {count} positives, and there are {positives.size}; give a smaller one.")
    kept = np.random.default_rng(seed).choice(positives, count, replace=False)
    return np.sort(np.concatenate([negatives, kept]))


def _thinned(X: Values, y: Labels, share: float) -> tuple[list[list[Any]], Labels]:
    rows = rare(y, share)
    return [column.tolist() for column in X[rows].T], y[rows]


def _cancer() -> tuple[list[list[Any]], Labels]:
    X, y = load_breast_cancer(return_X_y=True)
    return _thinned(X, 1 - y, 0.05)  # scikit-learn's 0 is malignant


def _digits() -> tuple[list[list[Any]], Labels]:
    X, y = load_digits(return_X_y=True)
    return _thinned(X, (y == 8).astype(int), 0.05)


def _from_r(package: str, item: str, target: str, positive: str, inputs: str) -> tuple[list[list[Any]], Labels]:
    columns = raw_columns(package, item)
    return [list(columns[name]) for name in inputs.split()], np.array([int(v == positive) for v in columns[target]])


SETS = {
    "cancer": Source("malignant tumours (breast cancer of scikit-learn), positives thinned to 5%", _cancer),
    "digits": Source("the digit 8 among all (digits of scikit-learn), positives thinned to 5%", _digits),
    "cards": Source(
        "credit cards that default (ISLR), 3.3% as they come",
        functools.partial(_from_r, "ISLR", "Default", "default", "Yes", "student balance income"),
    ),
    "crashes": Source(
        "occupants who died in a crash (nassCDS of DAAG), 4.5% as they come",
        functools.partial(
            _from_r,
            "DAAG",
            "nassCDS",
            "dead",
            "dead",
            "dvcat airbag seatbelt frontal sex ageOFocc yearacc yearVeh occRole deploy",
        ),
    ),
}


def split(name: str, i: int, most_rows: int = MOST_ROWS) -> tuple[Values, Values, Labels, Labels]:
    """X_train, X_test, y_train, y_test in raw units, with the same share of positives in both parts."""
    columns, y = SETS[name].load()
    rows = np.arange(y.size)
    if y.size > most_rows:
        rows, _ = train_test_split(rows, train_size=most_rows, stratify=y, random_state=0)
        rows = np.sort(rows)
    train, test = train_test_split(np.arange(rows.size), test_size=TEST_SHARE, stratify=y[rows], random_state=i)
    X = encoded([[column[k] for k in rows] for column in columns], train)
    return X[train], X[test], y[rows][train], y[rows][test]


def mean_cost(y: Any, decision: Any) -> float:
    """MISSED for each positive that is decided 0, FALSE_ALARM for each negative that is decided 1; mean over rows."""
    y, decision = np.asarray(y), np.asarray(decision)
    return float(np.mean(MISSED * ((y == 1) & (decision != 1)) + FALSE_ALARM * ((y != 1) & (decision == 1))))


# ----------------------------------------------------------------------------------------------------- the methods
Decide = Callable[[Values], Any]


def _ours(X: Values, y: Labels) -> Decide:
    model = InfiniteCostSensitiveClassifier().fit(X, y)
    theta = InfiniteCostSensitiveClassifier.theta_from_costs(MISSED, FALSE_ALARM)
    return lambda X: model.predict(X, theta=theta)


def _thresholded(make: Callable[[], Any]) -> Callable[[Values, Labels], Decide]:
    """A classifier whose threshold is tuned by the cost, in 5 folds of the training rows."""

    def fit(X: Values, y: Labels) -> Decide:
        cost = make_scorer(mean_cost, greater_is_better=False)
        model = TunedThresholdClassifierCV(make(), scoring=cost, cv=5, random_state=0).fit(X, y)
        return lambda X: model.predict(X)

    return fit


def _always(decision: int) -> Callable[[Values, Labels], Decide]:
    return lambda X, y: lambda X: np.full(len(X), decision)


OURS = "default"
METHODS: dict[str, tuple[str, Callable[[Values, Labels], Decide]]] = {
    OURS: ("default", _ours),
    "logistic": (
        "logistic regression",
        _thresholded(lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))),
    ),
    "boosting": ("HistGradientBoosting", _thresholded(lambda: HistGradientBoostingClassifier(random_state=0))),
    "never": ("no alarm", _always(0)),
    "always": ("always alarm", _always(1)),
}


# ------------------------------------------------------------------------------------------------------- the units
def units(quick: bool) -> list[dict[str, Any]]:
    """Ordered by split, so that a run that was stopped has results for every set."""
    return [
        {"set": name, "split": i, "method": method} | ({"revision": REVISION} if method == OURS else {})
        for i in range(2 if quick else SPLITS)
        for name in (("cancer",) if quick else SETS)
        for method in METHODS
    ]


def settings(quick: bool) -> dict[str, Any]:
    """What all units have in common."""
    return {"missed": MISSED, "false_alarm": FALSE_ALARM, "most_rows": 300 if quick else MOST_ROWS}


def work(unit: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """Fit, decide on the test rows, and count the costs."""
    X, X_test, y, y_test = split(unit["set"], unit["split"], settings["most_rows"])
    decide, seconds, seen = measured(lambda: METHODS[unit["method"]][1](X, y))
    decision = np.asarray(decide(X_test))
    return {
        "rows": y.size,
        "positives": int(y.sum()),
        "cost": mean_cost(y_test, decision),
        "missed": float(np.mean(decision[y_test == 1] != 1)),
        "false_alarms": float(np.mean(decision[y_test == 0] == 1)),
        "seconds": seconds,
        "warnings": seen,
    }


def report(records: list[Record], folder: Path, settings: dict[str, Any]) -> list[Path]:
    """Write defaults_rare.csv and defaults_rare.md."""
    found: dict[tuple[str, str], dict[int, dict[str, Any]]] = {}
    for record in records:
        unit = record["unit"]
        found.setdefault((unit["set"], unit["method"]), {})[unit["split"]] = record["result"]
    rows: list[dict[str, Any]] = []
    for name in SETS:
        for method, (label, _) in METHODS.items():
            results = list(found.get((name, method), {}).values())
            if results:
                row: dict[str, Any] = {"set": name, "method": label, "splits": len(results)}
                row |= {what: results[0][what] for what in ("rows", "positives")}
                for what in ("cost", "missed", "false_alarms", "seconds"):
                    row[what] = float(np.mean([result[what] for result in results]))
                row["cost_sd"] = float(np.std([result["cost"] for result in results]))
                rows.append(row)
    files = [write_csv(folder / "defaults_rare.csv", rows), folder / "defaults_rare.md"]
    files[1].write_text(_page(rows, found, settings), encoding="utf-8")
    return files


def _page(
    rows: list[dict[str, Any]], found: dict[tuple[str, str], dict[int, dict[str, Any]]], settings: dict[str, Any]
) -> str:
    lines = [
        [
            row["set"],
            row["method"],
            str(row["rows"]),
            str(row["positives"]),
            f"{row['cost']:.3f} ± {row['cost_sd']:.3f}",
        ]
        + [f"{row[what]:.3f}" for what in ("missed", "false_alarms")]
        + [f"{row['seconds']:.2f}"]
        for row in rows
    ]
    return "\n\n".join(
        [
            "# Rare positives",
            f"A missed positive costs {MISSED:g}, a false alarm {FALSE_ALARM:g}: mean cost on the test rows, 30% of "
            f"each set, over {max(row['splits'] for row in rows)} splits with equal shares of positives. Default: "
            f"`InfiniteCostSensitiveClassifier().fit(X, y).predict(X, theta=theta_from_costs({MISSED:g}, "
            f"{FALSE_ALARM:g}))` on raw inputs. The peers are in `TunedThresholdClassifierCV` with the cost as its "
            "score: logistic regression on standardised inputs, and `HistGradientBoostingClassifier`, both with their "
            "defaults. How decisions are calibrated was changed after a first run on these sets. "
            f"Sets: {'; '.join(f'{name}, {source.words}' for name, source in SETS.items())}.",
            settings_used(settings),
            *(_against(found, other) for other in METHODS if other != OURS),
            markdown(["set", "method", "rows", "positives", "cost", "missed", "false alarms", "seconds"], lines),
            "",
        ]
    )


def _against(found: dict[tuple[str, str], dict[int, dict[str, Any]]], other: str) -> str:
    """The ratios of mean costs, over the splits that both have; sets on which the other makes no mistake are named."""
    ratios: dict[str, float] = {}
    perfect = []
    for name in SETS:
        ours, theirs = found.get((name, OURS), {}), found.get((name, other), {})
        both = ours.keys() & theirs.keys()
        if both:
            total = sum(theirs[i]["cost"] for i in both)
            if total > 0.0:
                ratios[name] = sum(ours[i]["cost"] for i in both) / total
            else:
                perfect.append(name)
    parts = [f"{name} {ratio:.2f}" for name, ratio in ratios.items()]
    parts += [f"{name}: it makes no mistake" for name in perfect]
    nonzero = [ratio for ratio in ratios.values() if ratio > 0.0]
    mean = f" Geometric mean: {geometric_mean(nonzero):.2f}." if nonzero else ""
    return f"Cost of the default by that of {METHODS[other][0]}: {', '.join(parts) or 'unknown'}.{mean}"


EXPERIMENT = Experiment("defaults-rare", "Rare positives", units, work, report, settings)
