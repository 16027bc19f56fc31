"""The page of a comparison of the peers, with where our model is worse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from .peer_figure import draw
from .peer_models import PEERS
from .peer_scores import (
    DEFAULT,
    INTERVALS,
    LABELS,
    LEAST,
    OURS,
    SCORES,
    Results,
    corrected_t_test,
    finished,
    ranking,
    table,
)
from .runner import Record
from .tables import markdown, settings_used, write_csv

__all__ = ["Contest", "report"]

SIMPLE = ("linear", "gp", "gp_scores")
"""Nowhere may ours be much worse than these: they are what one tries first."""

MUCH = 1.1

FAR = 4.0
"""Points by which an interval may be off before the page names the set."""

MEASURED = {
    "catboost": "1.2.10",
    "chimeraboost": "0.34.0",
    "lightgbm": "4.7.0",
    "liquidSVM": "1.0.1",
    "ngboost": "0.5.11",
    "quantile-forest": "1.4.2",
    "xrfm": "0.4.5",
}
"""Versions that made the records in experiments/units: a page is made from these without the peers, too."""

TIMES = ("seconds by the clock, median", "processor seconds, mean")

SIGNIFICANT = 0.05


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
    digits : int
        Of the pinball loss.
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
        "by the likelihood, and liquidSVM by its own five-fold cross-validation. The linear quantiles, Gaussian "
        "processes, xRFM and liquidSVM joined later, on the same splits, and were run once."
    )
    digits: int = 1


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
        settings_used(settings)
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
        *([f"Unfinished, and not ranked: {_names(results.unfinished)}."] if results.unfinished else []),
        *([f"Not done by ∞-QR CV, and not ranked: {', '.join(results.others)}."] if results.others else []),
        "## Ranks over the sets",
        _ranks(rows, results, ranks),
        f"Friedman's test that all methods are alike: {_friedman(results)}. p in the table: Wilcoxon's signed-rank "
        "test of ∞-QR CV against the method over the sets, after Holm's correction.",
        f"![Loss relative to the best method of each set]({contest.stem}.png)",
        "## Set by set: pinball loss",
        _losses(rows, results, ranks, "pinball", contest.digits),
        "## Set by set: CRPS",
        _losses(rows, results, ranks, "crps", 3),
        *_coverage(rows, results, ranks),
    ]  # fmt: skip
    if OURS in results.methods:
        parts += _weaknesses(results)
    return "\n\n".join([*parts, "## Findings", _findings(results, ranks), ""])


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


def _losses(rows: list[dict[str, Any]], results: Results, ranks: list[dict[str, Any]], score: str, digits: int) -> str:
    """All sets and methods, also the unfinished ones; a dash for what is missing."""
    found = {(row["dataset"], row["method"]): row[score] for row in rows}
    order = [*(row["method"] for row in ranks), *results.unfinished]
    lines = []
    for name in [*results.sets, *results.others]:
        there = {method: found[name, method] for method in order if (name, method) in found}
        cells = {method: f"{value:.{digits}f}" for method, value in there.items()}
        cells |= {method: f"**{cells[method]}**" for method, value in there.items() if value == min(there.values())}
        lines.append([name, *(cells.get(method, "–") for method in order)])
    return markdown(["data set", *(LABELS[method] for method in order)], lines)


def _coverage(rows: list[dict[str, Any]], results: Results, ranks: list[dict[str, Any]]) -> list[str]:
    """The share of test rows in central intervals, of the methods whose records have it."""
    columns = [f"coverage_{share}" for share in INTERVALS]
    lines, note = [], ""
    for row in ranks:
        mine = [r for r in rows if r["method"] == row["method"] and r["dataset"] in results.sets]
        if any(r[column] == "" for r in mine for column in columns):
            continue
        shares = np.array([[r[column] for column in columns] for r in mine])
        errors = 100.0 * shares - INTERVALS
        far = np.abs(errors).max(axis=1)
        worst = f"{mine[int(far.argmax())]['dataset']}, {far.max():.1f}"
        lines.append(
            [LABELS[row["method"]], *(f"{s:.3f}" for s in shares.mean(axis=0)), f"{np.abs(errors).mean():.1f}", worst]
        )
        if row["method"] == OURS:
            off = [f"{r['dataset']} ({value:.1f})" for r, value in zip(mine, far, strict=True) if value > FAR]
            note = (
                f"Sets on which an interval of ∞-QR CV is off by more than {FAR:g} points: {', '.join(off) or 'none'}. "
            )
    if not lines:
        return []
    header = ["method", *(f"{share}%" for share in INTERVALS), "mean distance, points", "furthest set, points"]
    chance = "With 30 test rows, chance alone moves a share by 7 points (one standard deviation at 80%), with 500 by 2."
    return ["## Coverage of central intervals", markdown(header, lines), note + chance]


def _weaknesses(results: Results) -> list[str]:
    """Where our model is worse than one that ignores the inputs, and where it is worse than the best peer."""
    means = dict(zip(results.methods, results.means("pinball"), strict=True))
    peers = [method for method in results.methods if method not in (OURS, DEFAULT, LEAST)]
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
    if splits == 1:  # no test of a single split
        header, reason = header[:5], ""
        lines = {which: [line[:5] for line in some] for which, some in lines.items()}
    found = [
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
    ]
    return [part for part in found if splits > 1 or not part.startswith("p: paired")]


def _worst_first(header: list[str], lines: list[list[str]]) -> str:
    return markdown(header, sorted(lines, key=lambda line: -float(line[4]))) if lines else "Nowhere."


def _comparison(results: Results, name: str, other: str) -> list[str]:
    ours, theirs = results.splits["pinball"][OURS][name], results.splits["pinball"][other][name]
    plain = float(stats.ttest_rel(ours, theirs).pvalue) if ours.size > 1 and np.ptp(ours - theirs) > 0.0 else np.nan
    return [
        name,
        LABELS[other],
        f"{ours.mean():.2f}",
        f"{theirs.mean():.2f}",
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
        lines += _against_peers(results)
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


def _against_peers(results: Results) -> list[str]:
    """How far ours is from the best peer, and where it is much worse than what one tries first."""
    found = []
    peers = [method for method in results.methods if method not in (OURS, DEFAULT, LEAST)]
    for score, words in SCORES.items():
        means = dict(zip(results.methods, results.means(score), strict=True))
        if peers:
            ratio = means[OURS] / np.min([means[method] for method in peers], axis=0)
            found.append(
                f"- {words[0].upper()}{words[1:]} of ∞-QR CV / that of the best peer of the set: median "
                f"{np.median(ratio):.3f}, from {ratio.min():.3f} ({results.sets[int(ratio.argmin())]}) to "
                f"{ratio.max():.3f} ({results.sets[int(ratio.argmax())]}); at most 1 on {int(np.sum(ratio <= 1.0))} of "
                f"{len(results.sets)} sets."
            )
    means = dict(zip(results.methods, results.means("pinball"), strict=True))
    for method in (method for method in SIMPLE if method in means):
        ratio = means[OURS] / means[method]
        much = [f"{name} ({r:.2f})" for name, r in zip(results.sets, ratio, strict=True) if r > MUCH]
        found.append(
            f"- Worse than {LABELS[method]} by more than {100.0 * (MUCH - 1.0):.0f}%: {', '.join(much) or 'nowhere'}; "
            f"worse at all on {int(np.sum(ratio > 1.0))} of {len(results.sets)} sets."
        )
    return found


def _figure(results: Results, order: list[str], path: Path) -> Path:
    order = [method for method in order if method != LEAST] or order  # up to 13 times the best: hides the rest
    places = [results.methods.index(method) for method in order]
    relative = {SCORES[score]: results.relative(score)[places] for score in SCORES}
    colours = {OURS: "#D55E00", DEFAULT: "#E69F00", LEAST: "#777777"}
    return draw(relative, results.sets, {method: LABELS[method] for method in order}, colours, path)
