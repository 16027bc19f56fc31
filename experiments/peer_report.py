"""Comparison of the peers: ranks over the sets, tests, and where our model is worse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from .peer_figure import draw
from .peer_models import PEERS
from .runner import Record
from .tables import made_by, markdown, write_csv

__all__ = ["Contest", "Results", "corrected_t_test", "finished", "holm", "ranking", "report", "table"]

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

SIMPLE = ("linear", "gp", "gp_scores")
"""Nowhere may ours be much worse than these: they are what one tries first."""

MUCH = 1.1

SCORES = {"pinball": "pinball loss", "crps": "CRPS"}
MEASURED = {
    "catboost": "1.2.10",
    "chimeraboost": "0.34.0",
    "lightgbm": "4.7.0",
    "liquidSVM": "1.0.1",
    "ngboost": "0.5.11",
    "quantile-forest": "1.4.2",
    "xrfm": "0.4.5",
}
"""Versions that made the records in docs/results/units: a page is made from these without the peers, too."""

TIMES = ("seconds by the clock, median", "processor seconds, mean")

INTERVALS = (50, 80, 90, 95)
"""The central intervals, in percent."""

SIGNIFICANT = 0.05
HELD_OUT = 0.3 / 0.7
"""Test rows for each training row."""


@dataclass(frozen=True)
class Contest:
    """A comparison of the peers.

    Parameters
    ----------
    stem : str
        Of the names of its files.
    title : str
    sets : tuple of str
        In the order of the tables.
    origin : str
        What the sets are, after "of".
    history : str
        What part they had in the development of ours.
    losses : str
        What the pinball loss is.
    search : str
        How the peers are tuned; "{evaluations}" and "{folds}" are settings.
    """

    stem: str
    title: str
    sets: tuple[str, ...]
    origin: str
    history: str
    losses: str = "pinball loss (sum over the levels 0.1, 0.3, 0.5, 0.7, 0.9, × 100)"
    search: str = (
        "Each peer with parameters has its best of {evaluations} settings, its own defaults and random ones, by "
        "{folds}-fold cross-validation of the pinball loss on the training rows; the Gaussian processes choose theirs "
        "by the likelihood, and liquidSVM by its own five-fold cross-validation."
    )


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
    """

    methods: list[str]
    sets: list[str]
    splits: dict[str, dict[str, dict[str, Values]]]
    unfinished: list[str]

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
    sets = [name for name in sets if any(dataset == name for dataset, _ in asked)]
    splits = {
        score: {
            method: {name: np.array([by[method, *pair][score] for pair in asked if pair[0] == name]) for name in sets}
            for method in methods
        }
        for score in SCORES
    }
    return Results(methods, sets, splits, [method for method in begun if method not in methods])


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


def report(contest: Contest, records: list[Record], folder: Path, settings: dict[str, Any]) -> list[Path]:
    """Write STEM.csv, STEM_ranks.csv, STEM_relative.csv, STEM.png and STEM.md."""
    rows, results, stem = table(contest.sets, records), finished(contest.sets, records), contest.stem
    files = [write_csv(folder / f"{stem}.csv", rows)]
    if not results.methods:
        return files
    ranks = ranking(results)
    relative = [
        {"dataset": name, "method": method}
        | {f"{score}_over_best": float(results.relative(score)[i, j]) for score in SCORES}
        for j, name in enumerate(results.sets)
        for i, method in enumerate(results.methods)
    ]
    files += [write_csv(folder / f"{stem}_ranks.csv", ranks), write_csv(folder / f"{stem}_relative.csv", relative)]
    files += [_figure(results, [row["method"] for row in ranks], folder / f"{stem}.png"), folder / f"{stem}.md"]
    files[-1].write_text(_page(contest, rows, results, ranks, settings), encoding="utf-8")
    return files


# ---------------------------------------------------------------------------------------------------- the page
SMOOTH = (
    "Linear quantiles are linear quantile regression with a ridge. The Gaussian process has a Matérn kernel (5/2) with "
    "one scale for each input, a linear part and noise; its quantiles are those of its normal law, for y and for "
    "normal scores of y. xRFM predicts means: its quantiles are its mean plus the quantiles of the residuals of "
    "left-out rows."
)


def _page(
    contest: Contest,
    rows: list[dict[str, Any]],
    results: Results,
    ranks: list[dict[str, Any]],
    settings: dict[str, Any],
) -> str:
    splits = max(values.size for values in results.splits["pinball"][results.methods[0]].values())
    parts = [
        f"# {contest.title}",
        f"{len(results.methods)} methods predict conditional quantiles on {len(results.sets)} of {contest.origin}, "
        f"{splits} split{'s' * (splits > 1)} each: {contest.losses}, crossing (sum of "
        "the mean decreases between neighbouring levels, × 100) and CRPS (twice the mean pinball loss over 0.05, …, "
        "0.95) on the test rows; targets have standard deviation 1.",
        made_by(f"python -m experiments {contest.stem.replace('_', '-')}", settings)
        + f" Peers: {_versions(results.methods)}.",
        f"∞-QR CV is `InfiniteQuantileRegressorCV(random_state=0)`, which chooses for itself. {contest.history}",
        f"{contest.search.format(**settings)} {SMOOTH} “Ignoring x” predicts the quantiles of the training targets. "
        "Losses are those of the quantiles of each row sorted, whatever the method; crossing is that "
        "of its answers as they come.",
        "Seconds by the clock (wall clock) are those of everything in a unit: search, last fit, predictions, and a "
        "second fit for the CRPS where a method must be told the levels before it; medians over sets and splits. Two "
        "processes of one thread each ran on a machine with two cores, which also did other work, more of it during "
        "some methods than during others. Processor seconds are those of search and last fit alone; they hardly depend "
        "on other work, and compare methods better.",
        *([f"Unfinished, and not compared: {_names(results.unfinished)}."] if results.unfinished else []),
        "## Ranks over the sets",
        _ranks(rows, results, ranks),
        f"Friedman's test that all methods are alike: {_friedman(results)}. p in the table: Wilcoxon's signed-rank "
        "test of ∞-QR CV against the method over the sets, after Holm's correction.",
        f"![Loss relative to the best method of each set]({contest.stem}.png)",
        *(part for score in SCORES for part in (f"## Set by set: {SCORES[score]}", _losses(results, ranks, score))),
    ]  # fmt: skip
    if OURS in results.methods:
        parts += _weaknesses(results)
    return "\n\n".join([*parts, "## What is to be seen", _findings(results, ranks), ""])


def _names(methods: Sequence[str]) -> str:
    return ", ".join(LABELS[method] for method in methods)


def _versions(methods: Sequence[str]) -> str:
    peers = [PEERS[method] for method in methods if method in PEERS]
    packages = sorted({peer.package for peer in peers if peer.package not in ("infinitask", "numpy", "scipy")})
    return ", ".join(f"{package} {_version(package)}" for package in packages)


def _version(package: str) -> str:
    """Of what is installed; if it is not, the records come from another machine."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return MEASURED[package]


def _ranks(rows: list[dict[str, Any]], results: Results, ranks: list[dict[str, Any]]) -> str:
    lines = []
    for row in ranks:
        mine = [r for r in rows if r["method"] == row["method"]]
        medians = [np.median(results.relative(score)[results.methods.index(row["method"])]) for score in SCORES]
        p = [row[f"holm_{score}"] for score in SCORES]
        lines.append(
            [
                LABELS[row["method"]],
                *(f"{row[f'mean_rank_{score}']:.2f}" for score in SCORES),
                *(str(row[f"wins_{score}"]) for score in SCORES),
                *(f"{median:.3f}" for median in medians),
                " / ".join(f"{value:.2g}" for value in p) if p[0] != "" else "",
                f"{np.mean([r['crossing'] for r in mine]):.2f}",
                f"{np.median([r['seconds'] for r in mine]):.2g}",
                f"{np.mean([r['processor_seconds'] for r in mine]):.2g}",
            ]
        )
    header = ["method", "rank, pinball", "rank, CRPS", "best, pinball", "best, CRPS", "pinball / best, median"]
    return markdown([*header, "CRPS / best, median", "p, pinball / CRPS", "crossing, mean", *TIMES], lines)


def _friedman(results: Results) -> str:
    if len(results.methods) < 3 or len(results.sets) < 2:
        return "too few methods or sets"
    p = [float(stats.friedmanchisquare(*results.means(score)).pvalue) for score in SCORES]
    return f"p = {p[0]:.2g} by pinball loss, {p[1]:.2g} by CRPS"


def _losses(results: Results, ranks: list[dict[str, Any]], score: str) -> str:
    means, digits = results.means(score), 1 if score == "pinball" else 3
    order = [results.methods.index(row["method"]) for row in ranks]
    lines = []
    for j, name in enumerate(results.sets):
        cells = []
        for i in order:
            cell = f"{means[i, j]:.{digits}f}"
            cells.append(f"**{cell}**" if means[i, j] == means[:, j].min() else cell)
        lines.append([name, *cells])
    return markdown(["data set", *(LABELS[results.methods[i]] for i in order)], lines)


def _weaknesses(results: Results) -> list[str]:
    """Where our model is worse than one that ignores the inputs, and where it is worse than the best peer."""
    means = dict(zip(results.methods, results.means("pinball"), strict=True))
    peers = [method for method in results.methods if method not in (OURS, LEAST)]
    lines: dict[str, list[list[str]]] = {"nothing": [], "peers": []}
    for j, name in enumerate(results.sets):
        if LEAST in means and means[OURS][j] > means[LEAST][j]:
            lines["nothing"].append(_comparison(results, name, LEAST))
        best = min(peers, key=lambda method: means[method][j], default=OURS)
        if means[best][j] < means[OURS][j]:
            lines["peers"].append(_comparison(results, name, best))
    header = ["data set", "other", "∞-QR CV", "the other", "ratio", "splits worse", "p, t-test", "p, corrected"]
    splits = max(values.size for values in results.splits["pinball"][OURS].values())
    sure = [line[0] for line in lines["peers"] if float(line[-1]) < SIGNIFICANT]
    reason = (
        f"Beyond chance (corrected p < {SIGNIFICANT:g}): {', '.join(sure)}."
        if sure
        else f"None of these differences has a corrected p < {SIGNIFICANT:g}: chance is enough to explain each of them."
    )
    return [
        "## Where ∞-QR CV is worse than ignoring x",
        _worst_first(header, lines["nothing"]),
        f"p: paired t-tests over the {splits} splits. A sign or signed-rank test of {splits} splits cannot go below "
        f"p = {min(1.0, 2.0 ** (1 - splits)):.2g}. The splits share training rows, which the plain t-test ignores and "
        "Nadeau and Bengio's correction allows for; with a table of many sets, some small p arise by chance.",
        "## Where ∞-QR CV loses to the best peer",
        _worst_first(header, lines["peers"]),
        "The best peer of a set is known only after the test: this compares with the luckiest of them. If the "
        f"{len(peers) + 1} methods that look at x were equally good, each would be the best of them on "
        f"{len(results.sets) / (len(peers) + 1):.1f} of the {len(results.sets)} sets; ∞-QR CV is on "
        f"{len(results.sets) - len(lines['peers'])}. {reason}",
    ]  # fmt: skip


def _worst_first(header: list[str], lines: list[list[str]]) -> str:
    return markdown(header, sorted(lines, key=lambda line: -float(line[4]))) if lines else "Nowhere."


def _comparison(results: Results, name: str, other: str) -> list[str]:
    ours, theirs = results.splits["pinball"][OURS][name], results.splits["pinball"][other][name]
    plain = float(stats.ttest_rel(ours, theirs).pvalue) if ours.size > 1 and np.ptp(ours - theirs) > 0.0 else np.nan
    return [
        name,
        LABELS[other],
        f"{ours.mean():.1f}",
        f"{theirs.mean():.1f}",
        f"{ours.mean() / theirs.mean():.3f}",
        f"{np.sum(ours > theirs)} of {ours.size}",
        f"{plain:.2g}",
        f"{corrected_t_test(ours, theirs):.2g}",
    ]


def _findings(results: Results, ranks: list[dict[str, Any]]) -> str:
    """Sentences about the tables, from their numbers."""
    best = {score: min(ranks, key=itemgetter(f"mean_rank_{score}")) for score in SCORES}
    lines = [
        f"- Lowest mean rank: {LABELS[best['pinball']['method']]} by pinball loss "
        f"({best['pinball']['mean_rank_pinball']:.2f}), {LABELS[best['crps']['method']]} by CRPS "
        f"({best['crps']['mean_rank_crps']:.2f})."
    ]
    means = dict(zip(results.methods, results.means("pinball"), strict=True))
    if LEAST in means:
        worse = {
            method: [name for name, a, b in zip(results.sets, means[method], means[LEAST], strict=True) if a > b]
            for method in results.methods
        }
        named = "; ".join(f"{LABELS[method]} on {', '.join(sets)}" for method, sets in worse.items() if sets)
        lines.append(f"- Worse than ignoring x, by mean pinball loss: {named or 'no method on any set'}.")
    if OURS in means:
        pinball = results.splits["pinball"]
        sure = [
            name
            for name in (worse[OURS] if LEAST in means else [])
            if corrected_t_test(pinball[OURS][name], pinball[LEAST][name]) < SIGNIFICANT
        ]
        lines.append(
            f"- ∞-QR CV worse than ignoring x with corrected p < {SIGNIFICANT:g}: {', '.join(sure) or 'none'}."
        )
        tested = [row["method"] for row in ranks if row["method"] != OURS and row["holm_pinball"] < SIGNIFICANT]
        for word, sign in (("better", 1.0), ("worse", -1.0)):
            named = _names([m for m in tested if sign * np.median(means[m] - means[OURS]) > 0.0])
            lines.append(f"- Over the sets, by pinball loss with Holm's p < {SIGNIFICANT:g}, ∞-QR CV is {word} than: "
                         f"{named or 'none'}.")  # fmt: skip
    return "\n".join(lines)


def _figure(results: Results, order: list[str], path: Path) -> Path:
    order = [method for method in order if method != LEAST] or order  # up to 13 times the best: hides the rest
    places = [results.methods.index(method) for method in order]
    relative = {SCORES[score]: results.relative(score)[places] for score in SCORES}
    colours = {OURS: "#D55E00", DEFAULT: "#E69F00", LEAST: "#777777"}
    return draw(relative, results.sets, {method: LABELS[method] for method in order}, colours, path)
