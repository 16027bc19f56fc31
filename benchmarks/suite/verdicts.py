"""Which method wins, in words, from the rows of one problem."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]

BETTER = {
    "quantiles": (("pinball 5", "test loss at 5 levels"), ("pinball 99", "test loss at 99 levels")),
    "joint": (),
    "cost-sensitive": (("cost", "test cost"), ("reversals", "number of reversals")),
    "level-sets": (
        ("train mean", "mean deviation on the training rows"),
        ("test mean", "mean deviation on the test rows"),
        ("re-entries", "share of re-entries"),
    ),
    "small": (),
    "path": (),
}
"""What is compared besides time; smaller is better."""
ROTATED = " (rotated)"


def verdicts(problem: str, rows: list[Row]) -> list[str]:
    """A sentence for each case."""
    cases: list[dict[str, Any]] = []
    for row in rows:
        if row["case"] not in cases:
            cases.append(row["case"])
    return [verdict(problem, case, [row for row in rows if row["case"] == case]) for case in cases]


def verdict(problem: str, case: dict[str, Any], rows: list[Row]) -> str:
    """Which methods are faster, slower or better than our first row, and how well objectives of one problem agree."""
    parts = [
        speed([row for row in rows if row["threads"] == many]) for many in sorted({row["threads"] for row in rows})
    ]
    one = [row for row in rows if row["threads"] == rows[0]["threads"]]
    for key, label in BETTER[problem]:
        parts.append(best([row for row in one if ROTATED not in row["contender"]], key, label))
        rotated = {row["contender"] for row in one if ROTATED in row["contender"]}
        if rotated:
            there = [row for row in one if row["contender"] + ROTATED not in rotated]
            parts.append(best(there, key, f"{label}, where trees see rotated inputs"))
    parts += agreement(one)
    where = ", ".join(str(value) if isinstance(value, str) else f"{name} = {value}" for name, value in case.items())
    return f"{where}: {'; '.join(part for part in parts if part)}."


def speed(rows: list[Row]) -> str:
    """The time of our first row, and which methods are slower or faster."""
    ours = next((row for row in rows if row["ours"]), None)
    if ours is None:
        return ""
    text = f"{ours['contender']} takes {ours['seconds']:.3g} s with {ours['threads']} thread"
    text += "s" if ours["threads"] > 1 else ""
    peers = [row for row in rows if row is not ours and ROTATED not in row["contender"]]
    ratios = sorted((row["seconds"] / ours["seconds"], row["contender"]) for row in peers)
    faster = [f"{name} {1.0 / ratio:.3g}×" for ratio, name in ratios if ratio < 1.0]
    slower = [f"{name} {ratio:.3g}×" for ratio, name in ratios if ratio >= 1.0]
    text += f", faster: {', '.join(faster) or 'none'}"
    return f"{text}, slower: {', '.join(slower) or 'none'}"


def best(rows: list[Row], key: str, label: str) -> str:
    """The smallest value and the methods that have it, and our value if it is not among them."""
    found = [row for row in rows if key in row["metrics"]]
    if len(found) < 2:
        return ""
    least = min(row["metrics"][key] for row in found)
    winners = [row for row in found if row["metrics"][key] == least]
    text = f"smallest {label}: {least:.3g} by {' and '.join(row['contender'] for row in winners)}"
    ours = next((row for row in found if row["ours"]), None)
    if ours is None or ours in winners:
        return text
    return f"{text}, {ours['metrics'][key]:.3g} by {ours['contender']}"


def agreement(rows: list[Row]) -> list[str]:
    """For every problem that we and another method solve: the distance of our objective from the smallest one."""
    found = []
    for solves in dict.fromkeys(row["solves"] for row in rows):
        same = [row for row in rows if row["solves"] == solves and "objective" in row["metrics"]]
        ours = next((row for row in same if row["ours"]), None)
        if ours is None or all(row["ours"] for row in same):
            continue
        least = min(same, key=lambda row: row["metrics"]["objective"])
        if least is ours:
            least = min((row for row in same if row is not ours), key=lambda row: row["metrics"]["objective"])
        difference = ours["metrics"]["objective"] / least["metrics"]["objective"] - 1.0
        found.append(
            f"{solves}: the objective of {ours['contender']} and the smallest of the others, by {least['contender']}, "
            f"are the same to {abs(difference):.0e}"
        )
    return found
