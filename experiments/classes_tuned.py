"""Costs of decisions on six sets at four costs of a miss: the self-tuned classifier beside tuned peers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from infinitask import InfiniteCostSensitiveClassifier
from infinitask.tuning import InfiniteCostSensitiveClassifierCV

from .class_peers import PEERS, decisions, mean_cost
from .class_sets import SETS, split
from .defaults import geometric_mean, measured
from .runner import Experiment, Record
from .tables import markdown, settings_used, write_csv
from .tuned import Values

__all__ = ["COSTS", "EXPERIMENT", "OURS", "REVISION", "table"]

COSTS = (1.0, 3.0, 10.0, 30.0)
"""What a missed positive costs; a false alarm costs 1."""

SPLITS = 5
BAR = 1.03
"""The mean cost may be this many times that of the best peer."""

REVISION = 4
"""Of our models, raised with every change of them; it is part of their units, so that records of peers stay valid."""

OURS, DEFAULT = "itl_cv", "itl_default"
MODELS = {OURS: InfiniteCostSensitiveClassifierCV, DEFAULT: InfiniteCostSensitiveClassifier}
LABELS = {OURS: "∞-CSC CV", DEFAULT: "∞-CSC, defaults", **{name: peer.label for name, peer in PEERS.items()}}
CONSTANT = {"never": 0, "always": 1}
LABELS |= {"never": "no alarm", "always": "always alarm"}
RULES = {"": "", "calibrated": ", calibrated", "tuned": ", tuned threshold"}


def units(quick: bool) -> list[dict[str, Any]]:
    """Ordered by split, so that a run that was stopped has results for every set."""
    return [
        {"set": name, "split": i, "method": method} | ({"revision": REVISION} if method in MODELS else {})
        for i in range(1 if quick else SPLITS)
        for name in (("injuries",) if quick else SETS)
        for method in (*MODELS, *PEERS, *CONSTANT)
    ]


def settings(quick: bool) -> dict[str, Any]:
    """What all units have in common."""
    return {"costs": list(COSTS), "evaluations": 3 if quick else 20, "folds": 5, "max_rows": 300 if quick else 5000}


def work(unit: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """Fit, decide on the test rows at every cost, and count the costs."""
    X, X_test, y, y_test = split(unit["set"], unit["split"], settings["max_rows"])
    method = unit["method"]

    def costs(decide: Any) -> dict[str, list[float]]:
        found: dict[str, list[float]] = {}
        for missed in settings["costs"]:
            for rule, decision in decide(X_test, missed).items():
                found.setdefault(rule, []).append(mean_cost(y_test, decision, missed))
        return found

    if method in PEERS:
        PEERS[method].load()
        search = {"evaluations": settings["evaluations"], "folds": settings["folds"], "seed": unit["split"]}
        decide, seconds, seen = measured(lambda: decisions(PEERS[method], X, y, **search))
    elif method in MODELS:
        model, seconds, seen = measured(lambda: MODELS[method](random_state=0).fit(X, y))

        def decide(X: Values, missed: float) -> dict[str, Any]:
            return {"": model.predict(X, theta=model.theta_from_costs(missed, 1.0))}
    else:
        seconds, seen = 0.0, []

        def decide(X: Values, missed: float) -> dict[str, Any]:
            return {"": np.full(len(X), CONSTANT[method])}

    return {"rows": y.size, "positives": int(y.sum()), "costs": costs(decide), "seconds": seconds, "warnings": seen}


def table(records: list[Record]) -> list[dict[str, Any]]:
    """A row for each set, cost and method: the mean over its splits, and their standard deviation."""
    found: dict[tuple[str, str, str], list[list[float]]] = {}
    for record in records:
        unit = record["unit"]
        for rule, costs in record["result"]["costs"].items():
            found.setdefault((unit["set"], unit["method"], rule), []).append(costs)
    return [
        {
            "set": name,
            "missed": missed,
            "method": method,
            "threshold": rule,
            "splits": len(costs),
            "cost": float(np.mean([each[k] for each in costs])),
            "cost_sd": float(np.std([each[k] for each in costs])),
        }
        for (name, method, rule), costs in found.items()
        for k, missed in enumerate(COSTS)
    ]


def _label(way: tuple[str, str]) -> str:
    return LABELS[way[0]] + RULES[way[1]]


def _finished(records: list[Record]) -> tuple[list[Record], list[str]]:
    """The records of methods that have done all sets and splits that any has, and the methods that have not."""
    done: dict[str, set[tuple[str, int]]] = {}
    for record in records:
        done.setdefault(record["unit"]["method"], set()).add((record["unit"]["set"], record["unit"]["split"]))
    asked = set().union(*done.values())
    late = [method for method in done if done[method] != asked]
    return [record for record in records if record["unit"]["method"] not in late], late


def _cells(rows: list[dict[str, Any]]) -> dict[tuple[str, str], dict[tuple[str, float], float]]:
    """Way to decide → cell → mean cost."""
    found: dict[tuple[str, str], dict[tuple[str, float], float]] = {}
    for row in rows:
        found.setdefault((row["method"], row["threshold"]), {})[row["set"], row["missed"]] = row["cost"]
    return found


def report(records: list[Record], folder: Path, settings: dict[str, Any]) -> list[Path]:
    """Write classes_tuned.csv and classes_tuned.md."""
    files = [write_csv(folder / "classes_tuned.csv", table(records)), folder / "classes_tuned.md"]
    compared, late = _finished(records)
    files[1].write_text(_page(table(compared), compared, late, settings), encoding="utf-8")
    return files


def _page(rows: list[dict[str, Any]], records: list[Record], late: list[str], settings: dict[str, Any]) -> str:
    cells = _cells(rows)
    means = {way: float(np.mean(list(costs.values()))) for way, costs in cells.items()}
    peers = [way for way in cells if way[0] in PEERS]
    order = sorted(cells, key=means.__getitem__)
    places = sorted({place for costs in cells.values() for place in costs})
    best = {place: min((cells[way][place] for way in peers), default=np.nan) for place in places}
    seconds = {
        method: float(np.median([r["result"]["seconds"] for r in records if r["unit"]["method"] == method]))
        for method in {way[0] for way in cells}
    }

    def ratio(way: tuple[str, str]) -> str:
        ratios = [cells[way][place] / best[place] for place in places if best[place] > 0.0 and cells[way][place] > 0.0]
        return f"{geometric_mean(ratios):.3f}"

    summary = [
        [_label(way), f"{means[way]:.4f}", ratio(way), *_by_cost(cells[way]), f"{seconds[way[0]]:.1f}"] for way in order
    ]
    by_set = [
        [f"{name}, {missed:g}", *(_bold(cells[way][name, missed], best[name, missed]) for way in order)]
        for name, missed in places
    ]
    lengths = {record["unit"]["set"]: record["result"] for record in records}
    about = "; ".join(
        f"{name}: {SETS[name].words} ({lengths[name]['positives']} of {lengths[name]['rows']} training rows)"
        for name in SETS
        if name in lengths
    )
    return "\n\n".join(
        [
            "# Self-tuned classifier: costs of its decisions",
            f"A missed positive costs {', '.join(f'{c:g}' for c in COSTS[:-1])} or {COSTS[-1]:g}, a false alarm 1: "
            f"mean cost on the test rows, 30% of each set, over {max(row['splits'] for row in rows)} splits with equal "
            "shares of positives. Inputs are raw: text as columns of 0 and 1, missing numbers as medians. ∞-CSC CV is "
            "`InfiniteCostSensitiveClassifierCV(random_state=0)`: one fit, and "
            "`predict(X, theta=theta_from_costs(missed, 1))` for each cost. The sets were listed before any method had "
            f"seen them. {about}.",
            f"Each peer has the best of {settings['evaluations']} settings, its defaults and random ones, by the "
            f"log-likelihood loss of {settings['folds']} folds after a logistic fit to the left-out scores. "
            "Calibrated: an alarm where the probability of that fit is above 1/(1 + cost). Tuned threshold: the one "
            "with the smallest cost of the left-out scores. Logistic regression and SVC (RBF) have standardised "
            "inputs.",
            settings_used(settings),
            *([f"Unfinished, and not compared: {', '.join(LABELS[method] for method in late)}."] if late else []),
            "## All cells",
            _verdict(means, peers),
            markdown(
                ["method", "mean cost", "ratio to the best peer", *(f"cost {c:g}" for c in COSTS), "seconds"], summary
            ),
            f"Mean cost: over the {len(places)} cells (set × cost). Ratio: the geometric mean over the cells of the "
            "cost by that of the best peer of the cell, which is known only after the test. Seconds: the median of "
            "search and fit, one thread, on a machine that did other work as well.",
            "## Set by set",
            markdown(["set, cost of a miss", *map(_label, order)], by_set),
            "Bold: not above any peer.",
            "",
        ]
    )


def _by_cost(costs: dict[tuple[str, float], float]) -> list[str]:
    found = [[cost for (_, missed), cost in costs.items() if missed == c] for c in COSTS]
    return [f"{np.mean(each):.4f}" if each else "" for each in found]


def _bold(cost: float, best: float) -> str:
    return f"**{cost:.4f}**" if cost <= best else f"{cost:.4f}"


def _verdict(means: dict[tuple[str, str], float], peers: list[tuple[str, str]]) -> str:
    ours = (OURS, "")
    if ours not in means or not peers:
        return "∞-CSC CV has not done all sets yet."
    best = min(peers, key=means.__getitem__)
    share = means[ours] / means[best]
    word = "within" if share <= BAR else "beyond"
    return (
        f"Mean cost of ∞-CSC CV by that of the best peer ({_label(best)}): {share:.3f}, which is {word} the bar of "
        f"{BAR:g}."
    )


EXPERIMENT = Experiment("classes-tuned", "Costs of a self-tuned classifier", units, work, report, settings)
