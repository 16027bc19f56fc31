"""Table 1: ∞-QR, JQR and IND on twenty data sets, twenty splits each, all tuned as in the paper."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split

from .data import load_quantile_set, quantile_sets
from .headline import BOXES, NAMES, RULES, above_print, headline, in_box, p_value
from .runner import Experiment, Record
from .tables import TARGETS, markdown, read_csv, settings_used, write_csv
from .tuned import (
    BIAS_RIDGE,
    CLOSEST,
    FINE,
    LEVELS,
    NODES,
    PROMISING,
    ROUGH,
    Trial,
    best,
    crossing,
    limits,
    model,
    one_se,
    pinball,
    tune,
)

__all__ = ["EXPERIMENT", "split"]

METHODS = ("itl", "jqr", "ind")
CHOSEN = tuple(f"{method}{rule}" for method in METHODS for rule in RULES)
SHOWN = (*CHOSEN, "itl_rearranged")
QUICK = ("cobar_ore", "crabs", "mcycle")

EDGE = 0.02
"""A choice counts as at the edge of the box if its log₁₀ is closer to it than this."""

MAX_ITER = 5000
"""The most evaluations of the final fit. Where it misses the gap, the gap reached is in the record."""


def units(quick: bool) -> list[dict[str, Any]]:
    """Ordered by box and split, so that a run that was stopped has results for every set."""
    return [
        {"dataset": name, "split": i, "method": method, "box": box}
        for box in list(BOXES)[: 1 if quick else None]
        for i in range(2 if quick else 20)
        for name in (QUICK if quick else quantile_sets())
        for method in METHODS
    ]


def settings(quick: bool) -> dict[str, Any]:
    """What all units have in common."""
    return {
        "startup": 9 if quick else 27,
        "iterations": 6 if quick else 50,
        "nodes": NODES,
        "rough": list(ROUGH),
        "fine": list(FINE),
        "promising": PROMISING,
        "tol": 1e-4,
        "rules": ["one standard error", "smallest loss"],
        "closest": CLOSEST,
        "bias_ridge": BIAS_RIDGE,
        "max_iter": MAX_ITER,
    }


def split(name: str, i: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """X_train, X_test, y_train, y_test of a set, standardised as a whole as in the paper."""
    X, y = load_quantile_set(name, missing="mean", scaled=True, return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=i)
    return X_train, X_test, y_train, y_test


def work(unit: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """Tune, fit, and measure on the test rows."""
    X, X_test, y, y_test = split(unit["dataset"], unit["split"])
    method, start = unit["method"], time.perf_counter()
    search = {name: settings[name] for name in ("startup", "iterations")}
    trials = tune(method, X, y, seed=unit["split"], box=unit["box"], **search)
    tuned = time.perf_counter() - start
    return {"tuning_seconds": round(tuned, 2)} | measured(method, trials, X, y, X_test, y_test, settings["tol"])


def measured(
    method: str,
    trials: list[Trial],
    X: np.ndarray,
    y: np.ndarray,
    X_test: np.ndarray,
    y_test: np.ndarray,
    tol: float,
) -> dict[str, Any]:
    """The test losses of the parameters chosen by each rule: one standard error, and the smallest loss."""
    chosen, smallest = one_se(trials, method, X, y), best(trials)
    wanted = {method: (method, chosen.parameters), f"{method}_smallest": (method, smallest.parameters)}
    if method == "itl":
        wanted["itl_rearranged"] = "itl_rearranged", chosen.parameters
    results: dict[str, Any] = {}
    for name, (kind, parameters) in wanted.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the record has the gap
            fitted = model(kind, parameters, y.size, tol=tol, max_iter=MAX_ITER).fit(X, y)
        h = fitted.predict(X_test, LEVELS)
        results[name] = {
            "pinball": pinball(y_test, h),
            "crossing": crossing(h),
            "gap": fitted.dual_gap_,
            "parameters": {key: round(value, 4) for key, value in parameters.items()},
        }
    return results


# ---------------------------------------------------------------------------------------------------- the report
ORIGINS = {
    "startup": "printed",
    "iterations": "printed",
    "nodes": "printed",
    "rough": "ours",
    "fine": "ours",
    "promising": "ours",
    "tol": "ours",
    "rules": "printed: the smallest loss; the other is ours",
    "closest": "ours",
    "bias_ridge": "ours",
    "max_iter": "ours",
    "splits": "printed: their seeds 0 to 19 are those of the authors' programs",
    "test rows": "printed",
    "folds": "printed: unshuffled as in the authors' programs",
    "box": "printed: for σ; the authors' programs have it for γ",
    "scaling": "printed: over the whole set, as in the authors' programs",
    "noncrossing": "printed",
    "kernels": "printed",
    "bias": "ours: no λ_b is printed; those of JQR and IND are free in their own papers",
    "levels": "printed",
    "lambda": "printed: its box; beside a sum over the rows, and for IND too, as in the authors' programs",
    "columns": "inferred: authors' programs; the means are ours",
    "search": "printed: but for the ranks of the losses, which are modelled here",
    "IND": "inferred: one (γ, λ) for its five levels, as in the authors' programs",
}


def table(records: list[Record]) -> list[dict[str, Any]]:
    """A row for each box, set and method: means, standard deviations (divisor: the number of splits), and two-sided
    Mann–Whitney–Wilcoxon tests against ∞-QR by the same rule.
    """
    found: dict[tuple[str, str, str], list[dict[str, float]]] = {}
    for record in records:
        for method in SHOWN:
            if method in record["result"]:
                place = record["unit"]["box"], record["unit"]["dataset"], method
                found.setdefault(place, []).append(record["result"][method])
    rows = []
    for box, name, method in ((b, n, m) for b in BOXES for n in quantile_sets() for m in SHOWN):
        theirs = found.get((box, name, method), [])
        ours = found.get((box, name, "itl_smallest" if method.endswith("_smallest") else "itl"), [])
        if not theirs:
            continue
        row: dict[str, Any] = {"box": box, "dataset": name, "method": method, "splits": len(theirs)}
        for what in ("pinball", "crossing"):
            values = [result[what] for result in theirs]
            row |= {what: float(np.mean(values)), f"{what}_sd": float(np.std(values))}
        for what in ("pinball", "crossing"):
            compared = not method.startswith("itl") and ours
            row[f"p_{what}"] = p_value([r[what] for r in ours], [r[what] for r in theirs]) if compared else ""
        rows.append(row)
    return rows


def tuned_parameters(records: list[Record]) -> list[dict[str, Any]]:
    """A row for each box, set and method: of log₁₀ of the parameters chosen, median and quartiles over the splits, and
    how many are at the lower and at the upper edge of the box.
    """
    found: dict[tuple[str, str, str], list[dict[str, float]]] = {}
    for record in records:
        for method in CHOSEN:
            if method in record["result"]:
                place = record["unit"]["box"], record["unit"]["dataset"], method
                found.setdefault(place, []).append(record["result"][method]["parameters"])
    rows = []
    for place in ((box, name, method) for box in BOXES for name in quantile_sets() for method in CHOSEN):
        if place in found:
            row: dict[str, Any] = dict(zip(("box", "dataset", "method"), place, strict=True))
            row["splits"] = len(found[place])
            for parameter in ("gamma", "task_gamma", "lambda"):
                values = np.array([chosen[parameter] for chosen in found[place] if parameter in chosen])
                low, high = limits(parameter, place[0])
                quartiles = np.quantile(values, [0.5, 0.25, 0.75]).tolist() if values.size else ["", "", ""]
                edges = (
                    [int(np.sum(values < low + EDGE)), int(np.sum(values > high - EDGE))] if values.size else ["", ""]
                )
                names = (parameter, *(f"{parameter}_{end}" for end in ("q25", "q75", "low", "high")))
                row |= dict(zip(names, [*quartiles, *edges], strict=True))
            rows.append(row)
    return rows


def report(records: list[Record], folder: Path, settings: dict[str, Any]) -> list[Path]:
    """Write table1.csv, table1_parameters.csv and table1.md."""
    rows, chosen = table(records), tuned_parameters(records)
    files = [
        write_csv(folder / "table1.csv", rows),
        write_csv(folder / "table1_parameters.csv", chosen),
        folder / "table1.md",
    ]
    files[-1].write_text(_page(rows, chosen, records, settings), encoding="utf-8")
    return files


def _page(
    rows: list[dict[str, Any]], chosen: list[dict[str, Any]], records: list[Record], settings: dict[str, Any]
) -> str:
    printed = {row["dataset"]: row for row in read_csv(TARGETS / "table1.csv")}
    by = {(row["box"], row["dataset"], row["method"]): row for row in rows}
    run = _boxes(records)
    boxes = {
        box: names
        for box in run
        if (names := [name for name in quantile_sets() if all((box, name, method) in by for method in METHODS)])
    }
    fixed = {
        "splits": "20",
        "test rows": "30%",
        "folds": "5",
        "box": "[1e-6, 1e6] for " + " and, apart from it, for ".join({"sigma": "σ", "gamma": "γ"}[box] for box in run),
        "scaling": "inputs and target: mean 0, standard deviation 1",
        "noncrossing": "λ_nc = 1",
        "kernels": "Gaussian, k_b = k_Θ",
        "bias": "λ_b = λ; JQR and IND: free, one for each level",
        "levels": "0.1, 0.3, 0.5, 0.7, 0.9",
        "lambda": "alpha = λ/n, λ in [1e-6, 1e6]",
        "columns": "numeric ones; missing inputs (UN3) are means",
        "search": "expected improvement",
        "IND": "tuned once",
    }
    tables = []
    for title, what, as_printed in (("Pinball loss", "pinball", "pinball"), ("Crossing", "crossing", "cross")):
        for box, names in boxes.items():
            for rule, shown in RULES.items():
                tables += [
                    f"## {title}; parameters: {shown}{in_box(box, boxes)}",
                    _side_by_side(by, printed, names, box, rule, what, as_printed),
                ]
    return "\n\n".join(
        [
            "# Table 1: quantile regression on twenty data sets",
            "Pinball loss (sum over the levels 0.1, 0.3, 0.5, 0.7, 0.9, × 100) and crossing (sum of the mean decreases "
            "between neighbouring levels, × 100) on the test rows: mean ± standard deviation (divisor k) over k "
            "splits, ours and as printed in the paper; p: two-sided Mann–Whitney–Wilcoxon against our ∞-QR by the same "
            f"rule{' and in the same box' * (len(boxes) > 1)}.",
            _extent(records),
            settings_used(settings | fixed, ORIGINS),
            "## What the paper claims, and what comes out",
            headline(records, printed, boxes) if boxes else "No set is done by all methods yet.",
            "## Findings",
            "\n".join(_findings(by, printed, boxes)),
            "## At the edges of the box",
            _edges(chosen, run),
            *tables,
            "## Where the time goes",
            _times(records),
            "",
        ]
    )


def _boxes(records: list[Record]) -> list[str]:
    """The boxes of which there are records."""
    found = {record["unit"]["box"] for record in records}
    return [box for box in BOXES if box in found]


def _extent(records: list[Record]) -> str:
    """How much of the table is done, and how well its fits are solved."""
    done = Counter(tuple(r["unit"][part] for part in ("box", "dataset", "method")) for r in records)
    of_each, said = len(units(False)) // len(BOXES), []
    for box, shown in BOXES.items():
        counts = [done[box, name, method] for name in quantile_sets() for method in METHODS]
        splits = f"{min(counts)} splits of every set and method"
        if not sum(counts):
            said.append(f"The {shown}, was not run.")
        elif sum(counts) == of_each:
            said.append(f"The {shown}: all {of_each} units are done, {splits}.")
        else:
            said.append(f"The {shown}: {sum(counts)} of {of_each} units are done, at least {splits}.")
    gaps = [r["result"][name]["gap"] for r in records for name in SHOWN if name in r["result"]]
    return (
        f"{' '.join(said)} The largest duality gap of the {len(gaps)} fits that are reported is {max(gaps):.2g}. "
        "Numbers: [table1.csv](table1.csv), and the parameters that were chosen, log₁₀, with medians and quartiles "
        "over the splits: [table1_parameters.csv](table1_parameters.csv)."
    )


def _side_by_side(
    by: dict[tuple[str, str, str], dict[str, Any]],
    printed: dict[str, dict[str, str]],
    names: list[str],
    box: str,
    rule: str,
    what: str,
    as_printed: str,
) -> str:
    header = ["data set", "∞-QR", "paper", "JQR", "paper", "p", "p, paper", "IND", "paper", "p", "p, paper"]
    lines = []
    for name in names:
        line = [name]
        for method in METHODS:
            row = by[box, name, f"{method}{rule}"]
            line.append(_mean(row, what))
            line.append(f"{printed[name][f'{method}_{as_printed}']} ± {printed[name][f'{method}_{as_printed}_sd']}")
            if method != "itl":
                line += [f"{row[f'p_{what}']:.1g}", f"{float(printed[name][f'{method}_{as_printed}_p']):.1g}"]
        lines.append(line)
    return markdown(header, lines)


def _mean(row: dict[str, Any], what: str) -> str:
    digits = 1 if what == "pinball" else 2
    return f"{row[what]:.{digits}f} ± {row[f'{what}_sd']:.{digits}f}"


def _findings(
    by: dict[tuple[str, str, str], dict[str, Any]],
    printed: dict[str, dict[str, str]],
    boxes: dict[str, list[str]],
) -> list[str]:
    """Sentences about the table, from its numbers."""

    def beyond(box: str, method: str, what: str, as_printed: str) -> str:
        """The sets where a mean is above print by more than one printed standard deviation."""
        here = [
            f"{name} ({by[box, name, method][what]:.3g}, printed {printed[name][as_printed]} ± "
            f"{printed[name][f'{as_printed}_sd']})"
            for name in boxes[box]
            if above_print(by[box, name, method][what], printed[name], as_printed)
        ]
        return ", ".join(here) or "none"

    said = []
    for measure, what, as_printed in (
        ("pinball loss", "pinball", "itl_pinball"),
        ("crossing", "crossing", "itl_cross"),
    ):
        parts = (
            f"{RULES[rule]}{in_box(box, boxes, ' ({})')}: {beyond(box, f'itl{rule}', what, as_printed)}"
            for box in boxes
            for rule in RULES
        )
        said.append(
            f"- ∞-QR, {measure} above print by more than one printed standard deviation, in the digits that are "
            f"printed; {'; '.join(parts)}."
        )
    sorted_ones = [row["crossing"] for (_, _, method), row in by.items() if method == "itl_rearranged"]
    return [
        *said,
        "- [A study of the crossing](order.md) says where it comes from, and which settings meet the print.",
        f"- Crossing of ∞-QR after rearrangement: at most {max(sorted_ones, default=0.0):g}.",
    ]


def _edges(chosen: list[dict[str, Any]], run: list[str]) -> str:
    """How many choices are at an edge of the box, by box, method and rule."""
    lines = []
    for box in run:
        for method in CHOSEN:
            mine = [row for row in chosen if (row["box"], row["method"]) == (box, method)]
            if mine:
                line = [
                    f"{NAMES[method[:3]]}, {RULES[method[3:]]}{in_box(box, run)}",
                    str(sum(r["splits"] for r in mine)),
                ]
                for parameter in ("gamma", "task_gamma", "lambda"):
                    for end in ("low", "high"):
                        counts = [row[f"{parameter}_{end}"] for row in mine]
                        line.append("" if "" in counts else str(sum(counts)))
                lines.append(line)
    header = ["method and rule", "choices", "γ_X low", "γ_X high", "γ_Θ low", "γ_Θ high", "λ low", "λ high"]
    return (
        f"A choice counts as at the edge if its log₁₀ is within {EDGE:g} of it. A wide kernel (low γ) with a small λ "
        "is a polynomial, and where γ_Θ is large for the distances of JQR's five levels, nothing depends on it.\n\n"
        + markdown(header, lines)
    )


def _times(records: list[Record]) -> str:
    rows, usual, of_each = [], 0.0, len(_boxes(records)) * (len(units(False)) // len(BOXES))
    for name in quantile_sets():
        mine = [r for r in records if r["unit"]["dataset"] == name]
        if mine:
            seconds = [[r["seconds"] for r in mine if r["unit"]["method"] == method] for method in METHODS]
            rows.append([name, *(f"{np.median(s):.1f}" if s else "" for s in seconds)])
            usual += sum(of_each / len(quantile_sets()) / len(METHODS) * np.median(s) for s in seconds if s)
    total, tuning = sum(r["seconds"] for r in records), sum(r["result"]["tuning_seconds"] for r in records)
    return (
        f"All times are by the clock (wall clock), of processes with one thread, on a machine with two cores. The "
        f"seconds of the {len(records)} units add up to {total / 3600:.1f} hours, {tuning / total:.0%} of them for "
        f"tuning: with two processes, {total / 7200:.1f} hours. The machine did other work at the same time; if every "
        f"unit took the median of its set and method, it would be {usual / 3600:.1f} hours, or "
        f"{usual / 7200:.1f} with two processes. Seconds of a unit, medians over the splits:\n\n"
        + markdown(["data set", *(NAMES[method] for method in METHODS)], rows)
    )


EXPERIMENT = Experiment("table1", "Table 1", units, work, report, settings)
