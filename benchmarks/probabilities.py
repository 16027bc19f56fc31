"""Probabilities from the cost at which a decision flips, compared with calibrated SVMs and logistic regression.

Run ``python benchmarks/probabilities.py``; ``--quick`` is a small run to check that it works.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from infinitask import InfiniteCostSensitiveClassifier
from infinitask.kernels import RBF
from pages import now, signed

Array = NDArray[Any]

RESULTS = Path(__file__).parents[1] / "docs" / "benchmarks" / "probabilities.md"
BINS = 10
TRAINING = 400

GAMMAS = (0.3, 1.0, 3.0)
"""Bandwidths in multiples of the γ of the median distance of the training rows; the same for all kernel methods."""


# -------------------------------------------------------------------------------------------------------------- scores
def calibration_error(y: Array, p: Array, bins: int = BINS) -> float:
    """Σ_b (n_b/n) |mean of y − mean of p| over bins of equal mass, in the order of p."""
    parts = np.array_split(np.argsort(p, kind="stable"), bins)
    return float(sum(part.size * abs(y[part].mean() - p[part].mean()) for part in parts if part.size) / y.size)


SCORES: dict[str, Callable[[Array, Array], float]] = {
    "log-loss": log_loss,
    "Brier": brier_score_loss,
    "calibration error": calibration_error,
    "errors at ½": lambda y, p: float(np.mean((p > 0.5) != y)),
}


# ------------------------------------------------------------------------------------------------------------- methods
@dataclass(frozen=True)
class Method:
    """A classifier with probabilities, and the grid on which its parameters are searched."""

    name: str
    make: Callable[[], Any]
    grid: dict[str, tuple[float, ...]]
    gamma: str | None = None
    """The parameter that takes the bandwidth."""

    def fit(self, X: Array, y: Array) -> Any:
        """The best of the grid by the log-loss of three folds, fitted to all rows."""
        grid: dict[str, Sequence[float]] = dict(self.grid)
        if self.gamma is not None:
            median = RBF().resolve(X).gamma
            grid[self.gamma] = [factor * median for factor in GAMMAS]
        folds = StratifiedKFold(3, shuffle=True, random_state=0)
        return GridSearchCV(self.make(), grid, scoring="neg_log_loss", cv=folds, error_score="raise").fit(X, y)


C = (0.1, 1.0, 10.0, 100.0)
METHODS = (
    Method(
        "InfiniteCostSensitiveClassifier",
        InfiniteCostSensitiveClassifier,
        {"alpha": (1e-5, 1e-4, 1e-3, 1e-2)},
        "gamma",
    ),
    Method("SVC, sigmoid", lambda: CalibratedClassifierCV(SVC()), {"estimator__C": C}, "estimator__gamma"),
    Method(
        "SVC, isotonic",
        lambda: CalibratedClassifierCV(SVC(), method="isotonic"),
        {"estimator__C": C},
        "estimator__gamma",
    ),
    Method("LogisticRegression", lambda: LogisticRegression(max_iter=2000), {"C": (0.01, *C)}),
)


# ---------------------------------------------------------------------------------------------------------------- data
def two_moons(seed: int) -> tuple[Array, Array]:
    """2000 points; those not used for training are test rows."""
    X, y = make_moons(2000, noise=0.3, random_state=seed)
    return X, y


def breast_cancer(seed: int) -> tuple[Array, Array]:
    """569 tumours with 30 measurements each; the positive class is benign."""
    X, y = load_breast_cancer(return_X_y=True)
    return X, y


DATA = {"two moons": two_moons, "breast cancer": breast_cancer}


def measure(data: Callable[[int], tuple[Array, Array]], method: Method, repetitions: int, training: int) -> Array:
    """The scores on the test rows, (repetitions, scores)."""
    found = []
    for seed in range(repetitions):
        X, y = data(seed)
        X, X_test, y, y_test = train_test_split(X, y, train_size=training, stratify=y, random_state=seed)
        scaler = StandardScaler().fit(X)
        model = method.fit(scaler.transform(X), y)
        p = model.predict_proba(scaler.transform(X_test))[:, 1]
        found.append([score(y_test, p) for score in SCORES.values()])
    return np.asarray(found)


# -------------------------------------------------------------------------------------------------------------- report
def report(results: dict[str, dict[str, Array]], repetitions: int, training: int) -> str:
    """The tables, in Markdown."""
    lines = [
        "# Probabilities",
        "",
        f"Means over {repetitions} stratified splits, {training} rows for training, and their standard deviation. "
        "Inputs are standardised. Every method is tuned by the log-loss of three folds on the training rows: C over "
        "0.1 to 100, `alpha` over the same range (C = 1/(2nλ)), logistic regression also at C = 0.01, the Gaussian "
        f"kernels over {', '.join(f'{g:g}' for g in GAMMAS)} times the γ of the median distance. The SVMs are "
        f"calibrated by `CalibratedClassifierCV` with its five folds. Calibration error: {BINS} bins of equal mass. "
        "Smaller is better everywhere; the smallest mean is bold.",
    ]
    for data, rows in results.items():
        means = np.array([scores.mean(axis=0) for scores in rows.values()])
        lines += [
            "",
            f"## {data.capitalize()}",
            "",
            "| method | " + " | ".join(SCORES) + " |",
            "|---|" + "---:|" * len(SCORES),
        ]
        for (name, scores), mean in zip(rows.items(), means, strict=True):
            cells = [
                f"{'**' * bool(m == best)}{m:.4f}{'**' * bool(m == best)} ± {s:.4f}"
                for m, best, s in zip(mean, means.min(axis=0), scores.std(axis=0, ddof=1), strict=True)
            ]
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two small repetitions: does it run?")
    parser.add_argument(
        "--output", type=Path, help=f"where the tables go; default: {RESULTS.name}, with --quick nowhere"
    )
    options = parser.parse_args(arguments)
    repetitions, training = (2, 60) if options.quick else (5, TRAINING)
    provenance = now("make bench-probabilities")
    results: dict[str, dict[str, Array]] = {}
    for name, data in DATA.items():
        results[name] = {}
        for method in METHODS:
            results[name][method.name] = measure(data, method, repetitions, training)
            print(f"{name}, {method.name}: {results[name][method.name].mean(axis=0).round(4)}", flush=True)
    text = signed(report(results, repetitions, training), provenance)
    print(f"\n{text}")
    output = options.output or (None if options.quick else RESULTS)
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
