"""The report: a table for every problem, and a sentence on which method wins, both from the rows of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pages import signed
from suite.problems import QREG
from suite.verdicts import verdicts

Row = dict[str, Any]


def number(value: float) -> str:
    """Three digits, without an exponent where that is short."""
    return f"{value:.3g}" if 1e-4 <= abs(value) < 1e5 or value == 0.0 else f"{value:.1e}"


def share(value: float) -> str:
    """As a percentage."""
    return f"{100.0 * value:.3g}%"


def count(value: float) -> str:
    """A whole number."""
    return f"{value:.0f}"


Columns = tuple[tuple[str, str, Callable[[float], str]], ...]

GAP = ("gap", "gap", lambda value: f"{max(value, 1e-16):.0e}")
COLUMNS: dict[str, Columns] = {
    "quantiles": (
        GAP,
        ("pinball, 5 levels", "pinball 5", number),
        ("pinball, 99", "pinball 99", number),
        ("crossing loss", "crossing loss", number),
        ("crossing pairs", "crossing pairs", share),
        ("levels", "levels", count),
    ),
    "joint": (GAP, ("objective", "objective", lambda value: f"{value:.9f}"), ("pinball", "pinball 5", number)),
    "cost-sensitive": (GAP, ("test cost", "cost", lambda value: f"{value:.4f}"), ("reversals", "reversals", count)),
    "level-sets": (
        GAP,
        ("train, largest", "train max", share),
        ("train, mean", "train mean", share),
        ("test, largest", "test max", share),
        ("test, mean", "test mean", share),
        ("re-entries", "re-entries", share),
    ),
    "small": (GAP, ("quantile 0.9, s", "quantile 0.9", number), ("largest, s", "largest", number)),
    "path": (GAP,),
}

ABOUT = {
    "quantiles": "Eight inputs, three of which matter; 99 levels on {n_test} test rows, fit and prediction. Ours: one "
    "fit with m = {m}, a gap of {tol:g}. The others answer level by level: min (1/n) Σ ρ_θ(y − q_θ − "
    "f(x)) + (λ/2)‖f‖² with the same Gaussian kernel and the same λ, q_θ the sample quantile "
    "(fixed bias) or free; or another problem. Gap: certified from their own coefficients, the largest of"
    " 5 levels. Loose: tolerances of 1e-4; tight: a threshold of 1e-6 instead of 1e-3. Rotated: Gaussian "
    "kernels do not see a rotation of the inputs, trees do. Crossing: neighbours among the levels that "
    "were answered; the fewer, the less they can cross.",
    "joint": "Joint quantile regression, 5 levels, free biases, λ = {alpha:g}, to a gap of {tol:g}; the others "
    "solve its dual, a dense quadratic program.",
    "cost-sensitive": "Ours: one fit with m = {m}, free bias, a gap of {tol:g}. The others: a machine with class "
    "weights for each of the m costs, λ = {alpha:g}. Test cost: of an error, averaged over rows and costs. "
    "Reversals: decisions that turn negative while a missed positive gets dearer. Gap: of the single "
    "machines, the largest of 5.",
    "level-sets": "Ours: one fit with m = {m}, a gap of {tol:g}. The others: a machine for each of the m fractions ν. "
    "Train, test: how far the share outside is from ν. Re-entries: rows that are inside again at a larger"
    " ν, of all neighbouring pairs on the test rows. Gap: of the single machines, the largest of 5.",
    "small": "One thread; d in {dimensions}, λ in {alphas}, ours with non-crossing weights {noncrossing}, m = {m},"
    " a gap of {tol:g}. Seconds: of the median fit; for the others of 99 levels, each by itself. Middle: a "
    "threshold of 1e-5.",
    "path": "One thread; d = {d}, m = {m}, a gap of {tol:g}, non-crossing weight {noncrossing:g}. Seconds: of all"
    " fits.",
}


def report(results: dict[str, Any]) -> str:
    """The report, in Markdown."""
    lines = ["# Side by side", "", *opening(results)]
    for problem, seconds in results["seconds"].items():
        rows = [row for row in results["rows"] if row["problem"] == problem]
        lines += ["", f"## {problem.capitalize()}", ""]
        case = results["settings"]["cases"][problem][-1]
        lines += [ABOUT[problem].format(**case), ""]
        lines += table(problem, rows)
        lines += ["", " ".join(verdicts(problem, rows))]
        skipped = [f"skipped: {s['contender']} ({s['why']})" for s in results["skipped"] if s["problem"] == problem]
        for line in distinct(skipped):
            lines += ["", line]
        lines += ["", f"This part took {seconds:.0f} s."]
    return signed("\n".join(lines), results["provenance"])


def opening(results: dict[str, Any]) -> list[str]:
    """How the figures were measured, and how to read them."""
    about, settings = results["machine"], results["settings"]
    system = (
        f"{about['system']} {about['machine']}, {about.get('processor', 'processor unknown')}, {about['cores']} cores"
    )
    load = f", load {about['load']} at the start" if "load" in about else ""
    packages = ", ".join(f"{name} {found}" for name, found in results["versions"].items())
    others = sorted({row["metrics"]["about"] for row in results["rows"] if "about" in row["metrics"]})
    counts = " and with ".join(f"{many} thread{'s' if many > 1 else ''}" for many in settings["threads"])
    return [
        f"`{command(settings)}` in `benchmarks/`. {system}{load}; {'; '.join([packages, *others])}.",
        "",
        "Seeded synthetic data, standardised; the same γ, from the median distance, for all Gaussian kernels. Every "
        f"contender runs in processes of its own, with {counts}; solvers of one thread solve one task per core. Ratio: "
        "the time to that of the first row, larger than 1 where ours is faster. ≈: extrapolated from the tasks that "
        f"were timed within {settings['budget']:g} s. Medians of up to three repetitions where the whole is repeated. "
        "Gap: relative to the objective.",
    ]


def command(settings: dict[str, Any]) -> str:
    """The command, with the options that differ from the defaults."""
    words = ["python -m suite", *["--quick"] * settings["quick"]]
    if set(settings["only"]) != set(ABOUT):
        words += ["--only", *settings["only"]]
    for option in ("who", "sizes", "threads"):
        if settings[option]:
            words += [f"--{option}", *map(str, settings[option])]
    return " ".join([*words, f"--budget {settings['budget']:g}"])


def table(problem: str, rows: list[Row]) -> list[str]:
    """Cases one after the other, contenders in their order, every number of threads in its columns."""
    threads = sorted({row["threads"] for row in rows})
    columns = [c for c in COLUMNS[problem] if any(c[1] in row["metrics"] for row in rows)]
    labels = list(rows[0]["case"]) if rows else []
    heads = [*labels, "", "solves"]
    for many in threads:
        heads += [f"s, {many} thread{'s' if many > 1 else ''}", "ratio"]
    heads += [head for head, _, _ in columns]
    lines = [f"| {' | '.join(heads)} |", f"|{'---:|' * len(labels)}---|---|{'---:|' * (len(heads) - len(labels) - 2)}"]
    for case in distinct(row["case"] for row in rows):
        here = [row for row in rows if row["case"] == case]
        for name in distinct(row["contender"] for row in here):
            one = {row["threads"]: row for row in here if row["contender"] == name}
            cells = [str(value) for value in case.values()] + [name, next(iter(one.values()))["solves"]]
            for many in threads:
                cells += timing(one.get(many), reference(here, many))
            metrics = next(iter(one.values()))["metrics"]
            cells += [form(metrics[key]) if key in metrics else "" for _, key, form in columns]
            lines.append(f"| {' | '.join(cells)} |")
        if problem == "joint" and case["n"] == QREG[0]:
            base = reference(here, threads[0])
            cells = [
                *map(str, case.values()),
                "qreg, measured elsewhere",
                here[0]["solves"],
                f"{QREG[1]:g}",
                ratio(QREG[1], base),
            ]
            lines.append(f"| {' | '.join(cells + [''] * (len(heads) - len(cells)))} |")
    return lines


def reference(rows: list[Row], threads: int) -> Row | None:
    """The first of our rows, with which the others are compared."""
    return next((row for row in rows if row["ours"] and row["threads"] == threads), None)


def timing(row: Row | None, base: Row | None) -> list[str]:
    """Seconds and ratio."""
    if row is None:
        return ["", ""]
    mark = "≈ " if row["timed"] < row["tasks"] else ""
    return [mark + number(row["seconds"]), ratio(row["seconds"], base)]


def ratio(seconds: float, base: Row | None) -> str:
    """The ratio to the time of the first row."""
    return "" if base is None else number(seconds / base["seconds"])


def distinct(values: Iterable[Any]) -> list[Any]:
    """In the order of their first appearance."""
    found: list[Any] = []
    for value in values:
        if value not in found:
            found.append(value)
    return found
