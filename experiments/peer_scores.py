"""Comparison of the peers: ranks over the sets, and tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from .runner import Record

__all__ = ["INTERVALS", "LABELS", "SCORES", "Results", "corrected_t_test", "finished", "holm", "ranking", "table"]

Values = NDArray[np.float64]

OURS, DEFAULT, LEAST = "itl_cv", "itl_default", "ignoring_x"
LABELS = {
    LEAST: "ignoring x",
    OURS: "∞-QR CV",
    DEFAULT: "∞-QR, default",
    "lightgbm": "LightGBM",
    "hist_gradient_boosting": "scikit-learn HGB",
    "catboost": "CatBoost",
    "quantile_forest": "quantile forest",
    "ngboost": "NGBoost",
    "chimeraboost": "ChimeraBoost",
    "linear": "linear quantiles",
    "gp": "Gaussian process",
    "gp_scores": "Gaussian process, scores",
    "xrfm": "xRFM",
    "liquidsvm": "liquidSVM CV",
}
"""All methods, in the order of the tables."""

SCORES = {"pinball": "pinball loss", "crps": "CRPS"}

INTERVALS = (50, 80, 90, 95)
"""The central intervals, in percent."""

HELD_OUT = 0.3 / 0.7
"""Test rows for each training row."""


@dataclass(frozen=True, eq=False)
class Results:
    """The scores of the methods that have done the same sets and splits.

    Parameters
    ----------
    methods, sets : list of str
    splits : dict
        Score → method → set → (splits,), in the order of the splits.
    unfinished : list of str
        Methods that are left out because some of their splits are missing.
    others : list of str
        Sets that are left out because ours has not done them.
    """

    methods: list[str]
    sets: list[str]
    splits: dict[str, dict[str, dict[str, Values]]]
    unfinished: list[str]
    others: list[str]

    def means(self, score: str) -> Values:
        """Means over the splits, (methods, sets)."""
        found = self.splits[score]
        return np.array([[found[method][name].mean() for name in self.sets] for method in self.methods])

    def relative(self, score: str) -> Values:
        """The means divided by the smallest of their set, (methods, sets)."""
        means = self.means(score)
        return np.asarray(means / means.min(axis=0))


def table(sets: Sequence[str], records: list[Record]) -> list[dict[str, Any]]:
    """A row for each set and method: means and standard deviations over its splits.

    ``seconds`` are by the clock, the median over the splits of everything in a unit; ``processor_seconds`` are those of
    the search and the last fit.
    """
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    clock: dict[tuple[str, str], list[float]] = {}
    for record in records:
        place = record["unit"]["dataset"], record["unit"]["method"]
        found.setdefault(place, []).append(record["result"])
        clock.setdefault(place, []).append(record["seconds"])
    rows = []
    for name, method in ((n, m) for n in sets for m in LABELS if (n, m) in found):
        row: dict[str, Any] = {"dataset": name, "method": method}
        for what in ("pinball", "crossing", "crps"):
            values = [result[what] for result in found[name, method]]
            row |= {what: float(np.mean(values)), f"{what}_sd": float(np.std(values))}
        row["seconds"] = float(np.median(clock[name, method]))
        processor = [r["tuning_seconds"] + r["fit_seconds"] for r in found[name, method]]
        row["processor_seconds"] = float(np.mean(processor))
        covered = _mean_coverage(found[name, method])
        row |= {f"coverage_{share}": value for share, value in zip(INTERVALS, covered, strict=True)}
        rows.append(row)
    return rows


def _mean_coverage(results: Sequence[Mapping[str, Any]]) -> Sequence[float | str]:
    """Of INTERVALS; older records do not have it, and a mean over some splits would mislead."""
    covered = [result["coverage"] for result in results if "coverage" in result]
    return np.mean(covered, axis=0).tolist() if len(covered) == len(results) else [""] * len(INTERVALS)


def finished(sets: Sequence[str], records: list[Record]) -> Results:
    """The methods that have done all sets and splits that ours has, or that any of them has where ours has none."""
    by = {(r["unit"]["method"], r["unit"]["dataset"], r["unit"]["split"]): r["result"] for r in records}
    ours = {(dataset, split) for method, dataset, split in by if method == OURS}
    asked = sorted(ours or {(dataset, split) for _, dataset, split in by})
    begun = [method for method in LABELS if any(m == method for m, _, _ in by)]
    methods = [method for method in begun if all((method, *pair) in by for pair in asked)]
    begun_sets = {dataset for _, dataset, _ in by}
    others = [name for name in sets if name in begun_sets and all(dataset != name for dataset, _ in asked)]
    sets = [name for name in sets if any(dataset == name for dataset, _ in asked)]
    splits = {
        score: {
            method: {name: np.array([by[method, *pair][score] for pair in asked if pair[0] == name]) for name in sets}
            for method in methods
        }
        for score in SCORES
    }
    return Results(methods, sets, splits, [method for method in begun if method not in methods], others)


def holm(p: Sequence[float]) -> list[float]:
    """Holm's correction: the k-th smallest of m p-values times m − k + 1, never below the one before it, at most 1."""
    order = np.argsort(p, kind="stable")
    corrected = np.asarray(p, dtype=float)[order] * np.arange(len(p), 0, -1)
    out = np.empty(len(p))
    out[order] = np.minimum(np.maximum.accumulate(corrected), 1.0)
    return [float(value) for value in out]


def corrected_t_test(a: Values, b: Values) -> float:
    """Two-sided p-value of a paired t-test over J overlapping splits (Nadeau and Bengio, 2003).

    t = mean(d) / √((1/J + n_test/n_train) var(d)), d = a − b, with J − 1 degrees of freedom.
    """
    d = a - b
    if d.size < 2 or not d.any():
        return 1.0
    t = d.mean() / np.sqrt((1.0 / d.size + HELD_OUT) * d.var(ddof=1)) if d.var() > 0.0 else np.inf
    return float(2.0 * stats.t.sf(abs(t), d.size - 1))


def ranking(results: Results) -> list[dict[str, Any]]:
    """A row for each method, best first: mean ranks, wins, and Wilcoxon's signed-rank test against ours."""
    rows: list[dict[str, Any]] = [{"method": method} for method in results.methods]
    for score in SCORES:
        means = results.means(score)
        ranks = stats.rankdata(means, axis=0)
        for row, rank, mean in zip(rows, ranks, means, strict=True):
            row[f"mean_rank_{score}"] = float(rank.mean())
            row[f"wins_{score}"] = int(np.sum(mean == means.min(axis=0)))
    for score in SCORES:
        by = dict(zip(results.methods, results.means(score), strict=True))
        others = [method for method in results.methods if method != OURS] if OURS in results.methods else []
        p = [_wilcoxon(by[OURS], by[method]) for method in others]
        tests = dict(zip(others, zip(p, holm(p), strict=True), strict=True))
        for row in rows:
            row[f"p_{score}"], row[f"holm_{score}"] = tests.get(row["method"], ("", ""))
    return sorted(rows, key=lambda row: row["mean_rank_pinball"])


def _wilcoxon(a: Values, b: Values) -> float:
    return float(stats.wilcoxon(a, b).pvalue) if np.any(a != b) else 1.0
