"""The page of prices: what came out, beside what is expected."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from price_fits import BUDGET, FALSE_ALARM, FITS, MISSED, NUS
from price_problems import PROBLEMS
from price_rows import QUALITY_FITS, ROWS, QualityFit, Row

__all__ = ["Comparison", "compared", "page"]

MEAN_BAR, WORST_BAR = 1.005, 1.02
"""Losses may grow by this factor in the mean over tables, and on one table."""

OVERTIME = 5.0
"""Seconds of the clock by which a fit may exceed ``max_seconds``."""

Record = dict[str, Any]
Found = Callable[[str, str, str], dict[int, Record]]
"""Table, fit and side → the results by seed."""


WORDS = {
    "pinball": "pinball",
    "integrated": "pinball over 99 levels",
    "logarithms": "pinball of logarithms",
    "cost": f"cost {MISSED:g} : {FALSE_ALARM:g}",
    "costs": "mean cost",
    "log loss": "log loss",
    "errors": "errors",
    "AUC": "AUC",
    "deviation": "largest deviation",
    "at .1": "outside at ν = .1",
}
"""The names of scores on the page."""


# ---------------------------------------------------------------------------------------------------------- comparisons
@dataclass(frozen=True)
class Comparison:
    """A score of one table at both commits.

    Parameters
    ----------
    base, head : float
        Means over the seeds.
    ratio : float
        Of the means, so that more than 1 is worse at HEAD.
    error : float
        The standard error of the ratio over the seeds; nan for one seed.
    count : int
        Seeds.
    """

    base: float
    head: float
    ratio: float
    error: float
    count: int = 1

    @property
    def beyond(self) -> bool:
        """Worse by more than the bar and two standard errors."""
        return bool(self.ratio - 2.0 * self.error > WORST_BAR)


def compared(base: Sequence[float], head: Sequence[float], more_is_better: bool = False) -> Comparison:
    """Compare the scores of equal seeds: the ratio of means, with the standard error of the differences from it."""
    before, after = np.asarray(base, dtype=float), np.asarray(head, dtype=float)
    bad, good = (before, after) if more_is_better else (after, before)
    ratio = float(np.mean(bad) / np.mean(good)) if np.mean(good) > 0.0 else 1.0 if np.mean(bad) == 0.0 else np.inf
    left = (bad - ratio * good) / np.mean(good) if np.isfinite(ratio) and np.mean(good) > 0.0 else np.zeros(bad.size)
    error = float(np.std(left, ddof=1) / np.sqrt(left.size)) if left.size > 1 else np.nan
    return Comparison(float(np.mean(before)), float(np.mean(after)), ratio, error, before.size)


def told(one: Comparison) -> str:
    """A ratio with its standard error, if there is one."""
    return f"{one.ratio:.3f}" + ("" if np.isnan(one.error) else f" ± {one.error:.3f}")


def geometric(ratios: Iterable[Comparison]) -> tuple[float, float]:
    """The geometric mean of ratios over tables, and the standard error that the seeds leave to it."""
    every = [one for one in ratios if 0.0 < one.ratio < np.inf]
    mean = float(np.exp(np.mean([np.log(one.ratio) for one in every])))
    errors = np.array([0.0 if np.isnan(one.error) else one.error / one.ratio for one in every])
    return mean, float(mean * np.sqrt(np.sum(errors**2)) / len(every))


# --------------------------------------------------------------------------------------------------------------- prices
def number(value: float) -> str:
    """Three digits, or all before the point."""
    return f"{value:.0f}" if value >= 99.5 else f"{value:.3g}"


def slowest(results: dict[int, Record], what: str) -> str:
    """Seconds of the first sample, and of the slowest one if there are several."""
    seconds = [result[what] for _, result in sorted(results.items()) if what in result]
    if not seconds:
        return "–"
    return number(seconds[0]) + (f", at most {number(max(seconds))}" if len(seconds) > 1 else "")


def losses(result: Record) -> str:
    """The scores of a result in words."""
    if "scores" not in result:
        return result["failed"]
    return ", ".join(f"{WORDS[name]} {value:.4g}" for name, value in result["scores"].items())


def verdict(row: Row, found: Found) -> bool | None:
    """Whether a row keeps its goal; None if it has none or has not been run.

    The slowest sample counts. A fit with a budget must end by the clock, and be no worse than the default on the new
    rows, up to two standard errors over the seeds.
    """
    results = found(row.problem, row.fit, "head")
    if not results or (row.goal is None and row.fit != "tuned in time"):
        return None
    if not all("scores" in result for result in results.values()):
        return False
    if row.goal is not None:
        return bool(max(result["seconds"] for result in results.values()) <= row.goal)
    beside = no_worse(row, found)
    late = max(result["wall"] for result in results.values()) > BUDGET + OVERTIME
    return not late and (beside is None or not beside.ratio - 2.0 * np.nan_to_num(beside.error) > 1.0)


def no_worse(row: Row, found: Found) -> Comparison | None:
    """A self-tuned fit beside the default: its main loss on the new rows, over the seeds that both have."""
    tuned, plain = found(row.problem, row.fit, "head"), found(row.problem, "default", "head")
    seeds = [seed for seed in tuned if "scores" in tuned[seed] and "scores" in plain.get(seed, {})]
    if not seeds:
        return None
    name = {"quantiles": "integrated", "costs": "costs", "level sets": "AUC"}[PROBLEMS[row.problem].kind]
    before, after = ([each[seed]["scores"][name] for seed in seeds] for each in (plain, tuned))
    return compared(before, after, more_is_better=name == "AUC")


def price_lines(found: Found, base: str) -> list[str]:
    """The table of prices, and how many goals are kept."""
    lines = [
        f"| table | fit | s | goal | kept | at {base}, s | by the clock, s | new rows | new rows at {base} |",
        "|---|---|---:|---:|---|---:|---:|---|---|",
    ]
    kept: list[bool] = []
    for row in ROWS:
        results = found(row.problem, row.fit, "head")
        result, before = results.get(0), found(row.problem, row.fit, "base").get(0)
        if result is None:
            continue
        kind, met = PROBLEMS[row.problem].kind, verdict(row, found)
        if met is not None:
            kept.append(met)
        goal = f"{row.goal:g}" if row.goal is not None else ""
        if row.fit == "tuned in time":
            goal = f"{BUDGET + OVERTIME:g} by the clock"
        cells = [
            row.problem,
            FITS[kind][row.fit].words,
            slowest(results, "seconds"),
            goal,
            {True: "yes", False: "**no**", None: ""}[met],
            "" if before is None or "seconds" not in before else number(before["seconds"]),
            slowest(results, "wall"),
            losses(result),
            "" if before is None else losses(before),
        ]
        lines.append(f"| {' | '.join(cells)} |")
        for peer in row.peers:
            other = found(row.problem, peer, "peer").get(0)
            if other is not None:
                seconds, wall = (number(other[what]) if what in other else "–" for what in ("seconds", "wall"))
                lines.append(f"| | *{FITS[kind][peer].words}* | {seconds} | | | | {wall} | {losses(other)} | |")
    lines += ["", f"{sum(kept)} of {len(kept)} goals are kept."]
    beside = [(row, no_worse(row, found)) for row in ROWS if row.fit in ("tuned", "tuned in time")]
    known = [(row, one) for row, one in beside if one is not None]
    if known:
        lines += [
            "",
            "Self-tuned models beside the default, by their loss on the new rows (pinball over 99 levels, mean cost, "
            "AUC); more than 1 is worse:",
            "",
            "| table | fit | samples | default | self-tuned | ratio |",
            "|---|---|---:|---:|---:|---:|",
            *(
                f"| {row.problem} | {FITS[PROBLEMS[row.problem].kind][row.fit].words} | {one.count} | {one.base:.4g} | "
                f"{one.head:.4g} | {told(one)} |"
                for row, one in known
            ),
        ]
    return lines


# -------------------------------------------------------------------------------------------------------------- quality
def scores_of(records: list[Record], fit: QualityFit, table: str, side: str) -> dict[int, Record]:
    """Seed → the result of a side."""
    wanted = {"part": "quality", "kind": fit.kind, "fit": fit.fit, "table": table, "side": side}
    return {
        record["unit"]["seed"]: record["result"]
        for record in records
        if wanted.items() <= record["unit"].items() and "scores" in record["result"]
    }


def quality_lines(records: list[Record], base: str) -> list[str]:
    """Tables of losses at both commits, by kind, and their means."""
    summary = [
        "| models | loss | tables | mean of ratios | worst table | worse by more than 2% | also by 2 errors |",
        "|---|---|---:|---:|---|---|---|",
    ]
    details: list[str] = []
    for fit in QUALITY_FITS:
        part = {"part": "quality", "kind": fit.kind, "fit": fit.fit}
        names = dict.fromkeys(r["unit"]["table"] for r in records if part.items() <= r["unit"].items())
        both = {}
        for name in names:
            before, after = (scores_of(records, fit, name, side) for side in ("base", "head"))
            if seeds := sorted(before.keys() & after.keys()):
                both[name] = [before[k] for k in seeds], [after[k] for k in seeds]
        if not both:
            continue
        ratios: dict[str, dict[str, Comparison]] = {}
        for score in fit.scores:
            ratios[score] = {
                name: compared(*([r["scores"][score] for r in side] for side in sides), more_is_better=score == "AUC")
                for name, sides in both.items()
            }
        label = f"{fit.kind}, {'self-tuned' if fit.fit == 'tuned' else fit.fit}"
        summary += [_summary(label, score, each) for score, each in ratios.items()]
        details += ["", f"### {label.capitalize()}", "", *_details(fit, both, ratios, base)]
    return [*summary, *details] if details else []


def _summary(label: str, score: str, each: dict[str, Comparison]) -> str:
    mean, error = geometric(each.values())
    worst = max(each, key=lambda name: each[name].ratio)
    worse = [name for name, one in each.items() if one.ratio > WORST_BAR]
    beyond = [name for name, one in each.items() if one.beyond]
    holds = "" if mean <= MEAN_BAR else ", **more than .5%**"
    return (
        f"| {label} | {WORDS[score]} | {len(each)} | {mean:.4f} ± {error:.4f}{holds} | {worst} "
        f"{each[worst].ratio:.3f} | {', '.join(worse) or 'none'} | {', '.join(beyond) or 'none'} |"
    )


def _details(
    fit: QualityFit,
    both: dict[str, tuple[list[Record], list[Record]]],
    ratios: dict[str, dict[str, Comparison]],
    base: str,
) -> list[str]:
    deviates = fit.kind == "level sets"
    heads = [f"{WORDS[score]}: {base} | today | ratio" for score in fit.scores]
    heads += ["largest deviation of fractions: " + f"{base} | today"] if deviates else []
    header = ["table", "seeds", *heads, f"s: {base} | today"]
    width = " | ".join(header).count("|") + 1
    lines = [f"| {' | '.join(header)} |", "|---|" + "---:|" * (width - 1)]
    for name, (before, after) in both.items():
        cells = [name, str(len(before))]
        for score in fit.scores:
            one = ratios[score][name]
            cells.append(f"{one.base:.4g} | {one.head:.4g} | {told(one)}")
        if deviates:
            cells += [f"{np.mean([r['scores']['deviation'] for r in side]):.3f}" for side in (before, after)]
        cells += [f"{np.mean([r['seconds'] for r in side]):.2f}" for side in (before, after)]
        lines.append(f"| {' | '.join(cells)} |")
    if deviates:
        means = [np.mean([r["scores"]["deviation"] for sides in both.values() for r in sides[k]]) for k in (0, 1)]
        lines += ["", f"The mean of the largest deviations is {means[0]:.4f} at {base} and {means[1]:.4f} today."]
    return lines


def page(records: list[Record], base: str) -> str:
    """The page, in Markdown."""
    prices: dict[tuple[str, str, str], dict[int, Record]] = {}
    for record in records:
        unit = record["unit"]
        if unit["part"] == "price":
            prices.setdefault((unit["table"], unit["fit"], unit["side"]), {})[unit["seed"]] = record["result"]
    lines = [
        "# What fits cost",
        "",
        "## Seconds, beside what one would use instead",
        "",
        "Processor seconds with one thread. Each fit has a process of its own, which fits a small table first, so that "
        "imports and compilation are not timed; a single measurement. Tables are simulated, and described in "
        "`benchmarks/price_problems.py`; most fits of ours are timed on three samples, and the slowest must keep the "
        "goal. Losses are those of 5 000 new rows of the first sample. Pinball losses are divided by those of "
        "the quantiles of the training rows alone. The cost of a missed positive is "
        f"{MISSED:g} and of a false alarm {FALSE_ALARM:g}; the mean cost is over twenty trade-offs. Deviations of "
        "level sets are the largest distances between ν and the fraction of new normal rows outside, over ν = "
        f"{', '.join(f'{nu:g}' for nu in NUS)}. All models have `random_state=0`. Opponents (in italics) have their "
        "other defaults; SVMs and logistic regression have standardised features.",
        "",
        *price_lines(lambda table, fit, side: prices.get((table, fit, side), {}), base),
    ]
    if quality := quality_lines(records, base):
        lines += [
            "",
            f"## Held-out losses beside {base}",
            "",
            "Equal splits at both commits; ratios of mean losses (of AUC: before by after), so that more than 1 is "
            "worse today, ± the standard error over the seeds; their geometric means over tables. The bar: the mean at "
            f"most {MEAN_BAR:g}, no table above {WORST_BAR:g}.",
            "",
            *quality,
        ]
    return "\n".join(lines)
