"""Where ∞-QR crosses more than printed, why, and which settings meet the print.

The penalty asks for order at the training rows and at the nodes, with a finite weight; Table 1 chooses parameters by
the pinball loss alone. Each of these may be the reason, so each is changed alone, at the parameters that Table 1 chose
by the paper's rule: a heavier penalty, more nodes, and a penalty at other inputs as well. Then the paper's algorithm is
stopped early at the same parameters; and parameters are chosen by the loss of the objective, pinball and crossing,
instead of the pinball loss alone.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from . import table1
from .convergence import ROUNDING, stopped
from .headline import RULES, above_print
from .runner import Experiment, Failed, Record
from .store import folders, known, made, records_of
from .table1 import split
from .tables import TARGETS, markdown, read_csv, settings_used, write_csv
from .tuned import LEVELS, Values, best, crossing, model, pinball, tune

__all__ = ["EXPERIMENT", "ordered"]

TABLE1 = "as in Table 1"
BOTH = "chosen by pinball and crossing"
"""Parameters with the smallest loss of the objective on held-out rows: pinball, and crossing with its weight there."""

BETWEEN = 200
"""Rows drawn between pairs of training rows, at which the penalty acts as well."""

PAPER = "the paper's, {} evaluations"

CAUSES = {
    "λ_nc = 10": "the weight of the penalty",
    "λ_nc = 100": "the weight of the penalty",
    "400 nodes": "the number of nodes",
    "penalty between training rows too": "the rows at which the penalty acts",
    "penalty at the test rows too": "the rows at which the penalty acts",
}
"""What each variant of the fit changes."""

ENOUGH = 0.3
"""The decrease of the crossing, relative to Table 1's fits, that counts as a reason for it."""

ORIGINS = table1.ORIGINS | {
    "rounding": "ours: the paper does not print its κ for Table 1",
    "evaluations": "ours: the paper prints none",
    "between": "ours",
    "parameters": "ours: those of Table 1 by the paper's rule, box of σ",
    "sets": "ours",
}


def variants(X: Values, X_test: Values, seed: int) -> dict[str, dict[str, Any]]:
    """What is changed in the fit, and nothing else."""
    rng = np.random.default_rng(seed)
    pairs, share = rng.integers(len(X), size=(2, BETWEEN)), rng.uniform(size=(BETWEEN, 1))
    between = share * X[pairs[0]] + (1.0 - share) * X[pairs[1]]
    return {
        TABLE1: {},
        "λ_nc = 10": {"noncrossing": 10.0},
        "λ_nc = 100": {"noncrossing": 100.0},
        "400 nodes": {"n_nodes": 400},
        "penalty between training rows too": _penalty_also_at(X, between),
        "penalty at the test rows too": _penalty_also_at(X, X_test),
    }


def _penalty_also_at(X: Values, others: Values) -> dict[str, Any]:
    """The penalty at more rows: a mean over all of them, so its weight grows with them; at X nothing changes."""
    inputs = np.vstack([X, others])
    return {"noncrossing_inputs": inputs, "noncrossing": len(inputs) / len(X)}


def ordered(y: Values, h: Values) -> float:
    """Five times ∫ pinball dθ + λ_nc ∫ (−∂h/∂θ)₊ dθ with λ_nc = 1: the pinball loss is a sum over five levels."""
    return pinball(y, h) + LEVELS.size * crossing(h)


def sets(rows: list[dict[str, str]] | None = None) -> list[str]:
    """The sets on which ∞-QR crosses more than printed by over one printed standard deviation, in printed digits.

    By the table1.csv of this run's folder or else of docs/results, or rows like its own, in the box of σ, by either
    rule of choice.
    """
    printed = {row["dataset"]: row for row in read_csv(TARGETS / "table1.csv")}
    found = []
    for row in rows if rows is not None else _of_table1("table1.csv"):
        ours = row["box"] == "sigma" and row["method"] in {f"itl{rule}" for rule in RULES}
        if ours and above_print(float(row["crossing"]), printed[row["dataset"]], "itl_cross"):
            found.append(row["dataset"])
    return list(dict.fromkeys(found))


def _of_table1(name: str) -> list[dict[str, str]]:
    """The rows of a table of Table 1 that tells the boxes apart."""
    for path in made(name):
        rows = read_csv(path)
        if rows and "box" in rows[0]:
            return rows
    raise Failed(
        f"{name} of Table 1 is needed, with a column box, and it is not in "
        f"{' nor in '.join(map(str, folders()))}. Run `python -m experiments table1 --only sigma` first."
    )


def units(quick: bool) -> list[dict[str, Any]]:
    """Ordered by split, so that a run that was stopped has results for every set."""
    return [
        {"dataset": name, "split": i, "criterion": criterion}
        for i in range(1 if quick else 20)
        for name in (["topo"] if quick else sets())
        for criterion in ("pinball", BOTH)
    ]


def settings(quick: bool) -> dict[str, Any]:
    """What all units have in common."""
    return table1.settings(quick) | {
        "rounding": ROUNDING,
        "evaluations": [30] if quick else [100, 1000],
        "between": BETWEEN,
    }


def chosen(unit: dict[str, Any]) -> dict[str, float] | None:
    """What Table 1 chose on this split by the paper's rule; None if it was not run."""
    place = {"dataset": unit["dataset"], "split": unit["split"], "method": "itl", "box": "sigma"}
    for record in (record for folder in folders() for record in known(records_of(folder, "table1"))):
        if record["unit"] == place:
            parameters: dict[str, float] = record["result"]["itl_smallest"]["parameters"]
            return parameters
    return None


def work(unit: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """Fit, and measure on the training rows and on the test rows; one result for each variant or algorithm."""
    X, X_test, y, y_test = split(unit["dataset"], unit["split"])
    alone = unit["criterion"] == "pinball"
    parameters = chosen(unit) if alone else None
    if parameters is None:
        search = {name: settings[name] for name in ("startup", "iterations")}
        trials = tune("itl", X, y, seed=unit["split"], criterion=pinball if alone else ordered, **search)
        parameters = best(trials).parameters
    results: dict[str, Any] = {}

    def measure(name: str, h: Values, **more: float) -> None:
        results[name] = {
            "pinball": pinball(y_test, h[: y_test.size]),
            "crossing": crossing(h[: y_test.size]),
            "crossing_train": crossing(h[y_test.size :]),
        } | more

    rows = np.vstack([X_test, X])
    for name, changes in variants(X, X_test, unit["split"]).items() if alone else [(BOTH, {})]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the record has the gap
            fitted = model("itl", parameters, y.size, tol=settings["tol"], max_iter=settings["max_iter"], **changes)
            fitted.fit(X, y)
        measure(name, fitted.predict(rows, LEVELS), gap=fitted.dual_gap_)
        if name == TABLE1:
            early = stopped(X, y, rows, fitted.nodes_, parameters, settings["evaluations"])
            for stop, (_, h) in zip(settings["evaluations"], early, strict=True):
                measure(PAPER.format(stop), h)
    return results | {"parameters": {key: round(value, 4) for key, value in parameters.items()}}


# ---------------------------------------------------------------------------------------------------- the report
def report(records: list[Record], folder: Path, settings: dict[str, Any]) -> list[Path]:
    """Write order.csv and order.md."""
    found: dict[tuple[str, str], list[dict[str, float]]] = {}
    for record in records:
        for variant, result in record["result"].items():
            if variant != "parameters":
                found.setdefault((record["unit"]["dataset"], variant), []).append(result)
    rows: list[dict[str, Any]] = []
    for name in dict.fromkeys(place[0] for place in found):
        for variant in (variant for place, variant in found if place == name):
            here = found[name, variant]
            row: dict[str, Any] = {"dataset": name, "variant": variant, "splits": len(here)}
            for what in ("pinball", "crossing", "crossing_train"):
                values = [result[what] for result in here]
                row |= {what: float(np.mean(values)), f"{what}_sd": float(np.std(values))}
            rows.append(row)
    files = [write_csv(folder / "order.csv", rows), folder / "order.md"]
    files[1].write_text(_page(rows, settings), encoding="utf-8")
    return files


def _page(rows: list[dict[str, Any]], settings: dict[str, Any]) -> str:
    printed = {row["dataset"]: row for row in read_csv(TARGETS / "table1.csv")}
    names, lines = list(dict.fromkeys(row["dataset"] for row in rows)), []
    for name in names:
        for row in (row for row in rows if row["dataset"] == name):
            digits = {"pinball": 1, "crossing": 2, "crossing_train": 2}
            means = [f"{row[what]:.{k}f} ± {row[f'{what}_sd']:.{k}f}" for what, k in digits.items()]
            lines.append([name, row["variant"], *means])
        target = [f"{printed[name][what]} ± {printed[name][f'{what}_sd']}" for what in ("itl_pinball", "itl_cross")]
        lines.append([name, "as printed", *target, ""])
    splits = sorted({row["splits"] for row in rows})
    fixed = {"parameters": "of each split", "sets": ", ".join(names)}
    return "\n\n".join(
        [
            "# Where ∞-QR crosses",
            "Pinball loss and crossing as in [Table 1](table1.md), on the sets where ∞-QR crosses more than the paper "
            "says by over one printed standard deviation; means and standard deviations (divisor k) over k = "
            f"{' to '.join(map(str, splits[:1] + splits[1:][-1:]))} splits. In each variant one thing differs from "
            "Table 1: the weight of the penalty on crossing, the number of nodes, the inputs at which the penalty acts "
            f"({BETWEEN} rows between pairs of training rows, or the test rows, which only a study knows), the "
            "algorithm (the paper's, L-BFGS-B on the coefficients of the representer theorem, stopped after some "
            "evaluations), or the loss on held-out rows by which parameters are chosen (pinball and crossing with the "
            "weights of the objective).",
            settings_used(settings | fixed, ORIGINS),
            "## Which settings meet the print",
            *_summary(rows, printed),
            "## Whether the box decides",
            *_edges(names, _of_table1("table1_parameters.csv")),
            "## All sets",
            markdown(["data set", "variant", "pinball", "crossing, test", "crossing, train"], lines),
            "The penalty asks for order at the rows of the fit; at new rows nothing enforces it. If order is needed "
            'everywhere, use `noncrossing="rearrange"`, the default of `InfiniteQuantileRegressorCV`: no crossing at '
            "all, at any row and for any pair of levels.",
            "",
        ]
    )


def _summary(rows: list[dict[str, Any]], printed: dict[str, dict[str, str]]) -> list[str]:
    """On how many sets each variant is within the print, and the reason that this suggests."""
    lines, met, means, changes = [], {}, {}, dict[str, float]()
    names = list(dict.fromkeys(row["dataset"] for row in rows))
    of_table1 = {row["dataset"]: row["crossing"] for row in rows if row["variant"] == TABLE1}
    for variant in dict.fromkeys(row["variant"] for row in rows):
        mine = [row for row in rows if row["variant"] == variant]
        above, worse = (
            [row["dataset"] for row in mine if above_print(row[what], printed[row["dataset"]], as_printed)]
            for what, as_printed in (("crossing", "itl_cross"), ("pinball", "itl_pinball"))
        )
        met[variant] = len(mine) == len(names) and not above
        ratios = [row["crossing"] / of_table1[row["dataset"]] for row in mine if of_table1.get(row["dataset"], 0.0) > 0]
        changes |= {variant: float(np.median(ratios)) - 1.0} if ratios and variant != TABLE1 else {}
        change = f"{np.median(ratios) - 1.0:+.0%}" if ratios else ""
        means[variant] = [float(np.median([row[what] for row in mine])) for what in ("crossing", "crossing_train")]
        shown = [f"{value:.2f}" for value in means[variant]]
        lines.append([variant, f"{len(mine) - len(above)} of {len(mine)}", *shown, change, ", ".join(worse) or "none"])
    header = ["variant", "crossing within", "crossing, test", "crossing, train", "change", "pinball loss above on"]
    said = [
        "Crossing within: the sets on which the mean is at most one printed standard deviation above the printed one, "
        "in printed digits; pinball loss above: those on which that is not so for the loss. Crossing: medians over "
        "the sets; change: of the crossing on the test rows from Table 1's fits, median over the sets.",
        markdown(header, lines),
    ]
    if TABLE1 in means:
        test, train = means[TABLE1]
        said.append(_reason(test, train, changes))
    meeting = [variant for variant, all_of_them in met.items() if all_of_them]
    return [*said, f"The printed crossing is met on all these sets with: {'; '.join(meeting) or 'no variant'}."]


def _reason(test: float, train: float, changes: dict[str, float]) -> str:
    """Where the crossing comes from, by the crossing of Table 1's fits on both parts and by the changes of it."""
    said = [
        f"At the training rows, where the penalty acts, the crossing of Table 1's fits is {train:.2f} (median over the "
        f"sets), at the test rows {test:.2f}."
    ]
    tried = {variant: changes[variant] for variant in CAUSES if variant in changes}
    if tried:
        told = "; ".join(f"{change:+.0%} ({variant})" for variant, change in tried.items())
        most = min(tried, key=lambda variant: tried[variant])
        said.append(
            f"With one change of the fit the crossing at the test rows changes by {told}. "
            + (
                f"The largest decrease suggests that it comes mostly from {CAUSES[most]}."
                if tried[most] <= -ENOUGH
                else f"None removes more than {ENOUGH:.0%} of it, so no single one of them is the reason."
            )
        )
    return " ".join(said)


def _edges(names: list[str], chosen: list[dict[str, str]]) -> list[str]:
    """How many of the choices of Table 1 on these sets are at an edge of the box."""
    mine = {row["dataset"]: row for row in chosen if (row["box"], row["method"]) == ("sigma", "itl_smallest")}
    header, lines = ["data set", "choices"], []
    ends = [(p, end) for p in ("gamma", "task_gamma", "lambda") for end in ("low", "high")]
    for name in (name for name in names if name in mine):
        lines.append([name, mine[name]["splits"], *(mine[name][f"{p}_{end}"] for p, end in ends)])
    letters = {"gamma": "γ_X", "task_gamma": "γ_Θ", "lambda": "λ"}
    header += [f"{letters[p]} {end}" for p, end in ends]
    return ["How many of Table 1's choices on these sets are at the edges of the box:", markdown(header, lines)]


EXPERIMENT = Experiment("order", "Where ∞-QR crosses", units, work, report, settings)
