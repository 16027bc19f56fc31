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
from .headline import SIGNIFICANT, headline, p_value
from .runner import Experiment, Record
from .store import known, records_of
from .tables import TARGETS, markdown, read_csv, settings_used, write_csv
from .tuned import (
    BIAS_RIDGE,
    CLOSEST,
    FINE,
    LEVELS,
    NODES,
    PROMISING,
    ROUGH,
    WIDTHS,
    Trial,
    best,
    crossing,
    model,
    one_se,
    pinball,
    tune,
)

__all__ = ["EXPERIMENT", "split"]

METHODS = ("itl", "jqr", "ind")
SHOWN = ("itl", "itl_rearranged", "jqr", "ind", "itl_smallest")
CHOSEN = ("itl", "itl_smallest", "jqr", "ind")
BOXES = tuple(WIDTHS)
QUICK = ("cobar_ore", "crabs", "mcycle")

MAX_ITER = 5000
"""The most evaluations of the final fit. Where it misses the gap, the gap reached is in the record."""


def units(quick: bool) -> list[dict[str, Any]]:
    """Ordered by box and split, so that a run that was stopped has results for every set."""
    return [
        {"dataset": name, "split": i, "method": method, "box": box}
        for box in BOXES[: 1 if quick else None]
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
def table(records: list[Record], peers: list[Record]) -> list[dict[str, Any]]:
    """A row for each set and method: means, standard deviations, and two-sided Mann–Whitney–Wilcoxon tests against
    ∞-QR.
    """
    found: dict[tuple[str, str], list[dict[str, float]]] = {}
    for record in records:
        for method in SHOWN:
            if method in record["result"]:
                found.setdefault((record["unit"]["dataset"], method), []).append(record["result"][method])
    for record in peers:
        found.setdefault((record["unit"]["dataset"], record["unit"]["method"]), []).append(record["result"])
    rows = []
    for name in quantile_sets():
        ours = found.get((name, "itl"), [])
        for method in dict.fromkeys([*SHOWN, *(record["unit"]["method"] for record in peers)]):
            theirs = found.get((name, method), [])
            if not theirs:
                continue
            row: dict[str, Any] = {"dataset": name, "method": method}
            for what in ("pinball", "crossing"):
                values = [result[what] for result in theirs]
                row |= {what: float(np.mean(values)), f"{what}_sd": float(np.std(values))}
            for what in ("pinball", "crossing"):
                compared = method != "itl" and ours
                row[f"p_{what}"] = p_value([r[what] for r in ours], [r[what] for r in theirs]) if compared else ""
            rows.append(row)
    return rows


def tuned_parameters(records: list[Record]) -> list[dict[str, Any]]:
    """A row for each set and method: median and quartiles, over the splits, of log₁₀ of the parameters chosen."""
    found: dict[tuple[str, str], list[dict[str, float]]] = {}
    for record in records:
        for method in CHOSEN:
            if method in record["result"]:
                place = record["unit"]["dataset"], method
                found.setdefault(place, []).append(record["result"][method]["parameters"])
    rows = []
    for place in ((name, method) for name in quantile_sets() for method in CHOSEN):
        if place in found:
            row: dict[str, Any] = {"dataset": place[0], "method": place[1], "splits": len(found[place])}
            for parameter in ("gamma", "task_gamma", "lambda"):
                values = [chosen[parameter] for chosen in found[place] if parameter in chosen]
                quartiles = np.quantile(values, [0.5, 0.25, 0.75]).tolist() if values else ["", "", ""]
                row |= dict(zip((parameter, f"{parameter}_q25", f"{parameter}_q75"), quartiles, strict=True))
            rows.append(row)
    return rows


def report(records: list[Record], folder: Path, settings: dict[str, Any]) -> list[Path]:
    """Write table1.csv, with the peers that are done, table1_parameters.csv and table1.md."""
    latest: dict[tuple[Any, ...], Record] = {}  # if a peer was run again in another version, the last record counts
    for record in known(records_of(folder, "peers")):
        latest[tuple(record["unit"][name] for name in ("dataset", "split", "method"))] = record
    rows = table(records, list(latest.values()))
    files = [
        write_csv(folder / "table1.csv", rows),
        write_csv(folder / "table1_parameters.csv", tuned_parameters(records)),
        folder / "table1.md",
    ]
    files[-1].write_text(_page(rows, records, settings), encoding="utf-8")
    return files


def _page(rows: list[dict[str, Any]], records: list[Record], settings: dict[str, Any]) -> str:
    printed = {row["dataset"]: row for row in read_csv(TARGETS / "table1.csv")}
    by = {(row["dataset"], row["method"]): row for row in rows}
    names = [name for name in quantile_sets() if all((name, method) in by for method in METHODS)]
    return "\n\n".join(
        [
            "# Table 1: quantile regression on twenty data sets",
            "Pinball loss (sum over the levels 0.1, 0.3, 0.5, 0.7, 0.9, × 100) and crossing (sum of the mean decreases "
            "between neighbouring levels, × 100) on the test rows: mean ± standard deviation over the splits, ours and "
            "as printed in the paper; p: two-sided Mann–Whitney–Wilcoxon against our ∞-QR. Parameters are the simplest "
            "within one standard error of the smallest cross-validated loss; “smallest” is ∞-QR with those of the "
            "smallest loss itself, the paper's choice. What was chosen: "
            "[table1_parameters.csv](table1_parameters.csv), log₁₀, medians and quartiles over the splits.",
            _extent(records),
            settings_used(settings),
            "## Pinball loss",
            _side_by_side(by, printed, names, "pinball", "pinball"),
            "## Crossing",
            _side_by_side(by, printed, names, "crossing", "cross"),
            "## The paper's headline",
            headline(records, printed, names) if names else "No set is done by all methods yet.",
            "## What is to be seen",
            "\n".join(_findings(by, printed, names)),
            "## Where the time goes",
            _times(records),
            "",
        ]
    )


def _extent(records: list[Record]) -> str:
    """How much of the table is done, and how well its fits are solved."""
    done = Counter((r["unit"]["dataset"], r["unit"]["method"]) for r in records)
    fewest = min((done[name, method] for name in quantile_sets() for method in METHODS), default=0)
    gaps = [r["result"][name]["gap"] for r in records for name in SHOWN if name in r["result"]]
    return (
        f"{len(records)} of {len(units(False))} units are done, at least {fewest} splits of every set and method. The "
        f"largest duality gap of the {len(gaps)} fits that are reported is {max(gaps):.2g}."
    )


def _side_by_side(
    by: dict[tuple[str, str], dict[str, Any]],
    printed: dict[str, dict[str, str]],
    names: list[str],
    what: str,
    as_printed: str,
) -> str:
    header = ["data set", "∞-QR", "paper", "rearranged", "smallest", "JQR", "paper", "p", "IND", "paper", "p"]
    lines = []
    for name in names:
        line = [name]
        for method in ("itl", "itl_rearranged", "itl_smallest", "jqr", "ind"):
            line.append(_mean(by[name, method], what))
            if method in METHODS:
                line.append(f"{printed[name][f'{method}_{as_printed}']} ± {printed[name][f'{method}_{as_printed}_sd']}")
            if method in ("jqr", "ind"):
                line.append(f"{by[name, method][f'p_{what}']:.1g}")
        lines.append(line)
    return markdown(header, lines)


def _mean(row: dict[str, Any], what: str) -> str:
    digits = 1 if what == "pinball" else 2
    return f"{row[what]:.{digits}f} ± {row[f'{what}_sd']:.{digits}f}"


def _findings(
    by: dict[tuple[str, str], dict[str, Any]], printed: dict[str, dict[str, str]], names: list[str]
) -> list[str]:
    """Sentences about the table, from its numbers."""

    def where(condition: Any) -> str:
        return ", ".join(name for name in names if condition(name)) or "none"

    def ours(name: str, what: str) -> float:
        return float(by[name, "itl"][what])

    def paper(name: str, what: str) -> float:
        return float(printed[name][what])

    def lost(name: str, method: str) -> bool:
        row = by.get((name, method))
        return row is not None and row["p_pinball"] < SIGNIFICANT and row["pinball"] < ours(name, "pinball")

    def far(name: str, method: str) -> bool:
        return float(by[name, method]["pinball"]) > paper(name, "itl_pinball") + paper(name, "itl_pinball_sd")

    return [
        "- ∞-QR above the printed loss by more than one printed standard deviation: "
        + where(lambda n: far(n, "itl")) + "; with the parameters of the smallest loss: "
        + where(lambda n: far(n, "itl_smallest")) + ".",
        "- ∞-QR above the printed loss of JQR, in the digits that are printed: "
        + where(lambda n: round(ours(n, "pinball")) > paper(n, "jqr_pinball"))
        + "; our JQR, tuned in the same way, above it: "
        + where(lambda n: round(float(by[n, "jqr"]["pinball"])) > paper(n, "jqr_pinball")) + ".",
        f"- JQR better than ∞-QR with p < {SIGNIFICANT:g}: " + where(lambda n: lost(n, "jqr")) + "; IND: "
        + where(lambda n: lost(n, "ind")) + ".",
        "- ∞-QR crosses more than printed, in the digits that are printed: "
        + where(lambda n: round(ours(n, "crossing"), 1) > paper(n, "itl_cross"))
        + "; [a study of that](order.md).",
        "- Crossing after rearrangement: at most "
        + f"{max((by[n, 'itl_rearranged']['crossing'] for n in names), default=0.0):g}.",
    ]  # fmt: skip


def _times(records: list[Record]) -> str:
    rows, usual = [], 0.0
    for name in quantile_sets():
        mine = [r for r in records if r["unit"]["dataset"] == name]
        if mine:
            seconds = [[r["seconds"] for r in mine if r["unit"]["method"] == method] for method in METHODS]
            rows.append([name, *(f"{np.median(s):.1f}" if s else "" for s in seconds)])
            usual += sum(len(units(False)) / len(quantile_sets()) / len(METHODS) * np.median(s) for s in seconds if s)
    total, tuning = sum(r["seconds"] for r in records), sum(r["result"]["tuning_seconds"] for r in records)
    return (
        f"All times are by the clock (wall clock), of processes with one thread, on a machine with two cores. The "
        f"seconds of the {len(records)} units add up to {total / 3600:.1f} hours, {tuning / total:.0%} of them for "
        f"tuning: with two processes, {total / 7200:.1f} hours. At times the machine did other work as well; if every "
        f"unit took the median of its set and method, it would be {usual / 3600:.1f} hours, or {usual / 7200:.1f} "
        "with two processes. Seconds of a unit, medians over the splits:\n\n" + markdown(["data set", *METHODS], rows)
    )


EXPERIMENT = Experiment("table1", "Table 1", units, work, report, settings)
