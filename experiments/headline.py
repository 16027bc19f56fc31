"""The headline of the paper's Table 1: ∞-QR is as good as JQR and IND by pinball loss, and crosses less.

Each claim is counted over the data sets, in both directions and with the paper's two-sided test, for our fits and for
the printed numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import mannwhitneyu

from .runner import Record
from .tables import markdown

__all__ = ["BOXES", "RULES", "Count", "above_print", "count", "counted", "headline", "p_value"]

SIGNIFICANT = 0.0025
"""The paper's level: 5% for twenty tests."""

OTHERS = {"jqr": "JQR", "ind": "IND"}
WHAT = {"pinball": "pinball", "crossing": "cross"}
"""A measure here, and its name in the printed table."""

CLAIMED = {"jqr": 2, "ind": 11}
"""The number of sets on which ∞-QR crosses significantly less, by the paper's text."""

RULES = {"_smallest": "smallest loss, the paper's rule", "": "one standard error"}
"""How the parameters of all methods were chosen, by the ending of a method's name in the results."""

BOXES = {"sigma": "box of σ, as printed", "gamma": "box of γ, as in the authors' programs"}
"""Which parameter of a Gaussian kernel has the box [1e-6, 1e6]; γ = 1/(2σ²)."""


@dataclass(frozen=True)
class Count:
    """On how many sets ∞-QR is lower, equal or higher, and on which of them beyond chance."""

    lower: int
    equal: int
    higher: int
    surely_lower: tuple[str, ...]
    surely_higher: tuple[str, ...]


def p_value(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Two-sided Mann–Whitney–Wilcoxon; 1 where nothing differs."""
    if len(set(ours) | set(theirs)) == 1:
        return 1.0
    return float(mannwhitneyu(ours, theirs, alternative="two-sided").pvalue)


def above_print(value: float, printed: Mapping[str, str], what: str) -> bool:
    """Whether a value, in the digits that are printed, is above the printed mean by over one printed deviation."""
    mean, spread = printed[what], printed[f"{what}_sd"]
    digits = len(mean.partition(".")[2])
    return round(value, digits) > float(mean) + float(spread) + 1e-9


def samples(records: list[Record], method: str, what: str, box: str) -> dict[str, list[float]]:
    """Set → the values of all splits."""
    found: dict[str, list[float]] = {}
    for record in records:
        if method in record["result"] and record["unit"]["box"] == box:
            found.setdefault(record["unit"]["dataset"], []).append(record["result"][method][what])
    return found


def count(triples: Mapping[str, tuple[float, float, float]], level: float = SIGNIFICANT) -> Count:
    """Set → (∞-QR, the other, p) as numbers of sets."""
    ours, theirs = np.array([(a, b) for a, b, _ in triples.values()]).T
    sure = [tuple(n for n, (a, b, q) in triples.items() if q < level and sign * a < sign * b) for sign in (1.0, -1.0)]
    return Count(int(np.sum(ours < theirs)), int(np.sum(ours == theirs)), int(np.sum(ours > theirs)), *sure)


def counted(records: list[Record], names: Sequence[str], what: str, other: str, rule: str, box: str) -> Count:
    """∞-QR against another method, both with parameters of the same rule."""
    ours, theirs = (samples(records, f"{method}{rule}", what, box) for method in ("itl", other))
    return count({n: (float(np.mean(ours[n])), float(np.mean(theirs[n])), p_value(ours[n], theirs[n])) for n in names})


def printed_count(printed: Mapping[str, Mapping[str, str]], what: str, other: str) -> Count:
    """The same from the printed means and p-values."""
    first, second, third = f"itl_{WHAT[what]}", f"{other}_{WHAT[what]}", f"{other}_{WHAT[what]}_p"
    return count({n: (float(row[first]), float(row[second]), float(row[third])) for n, row in printed.items()})


def headline(
    records: list[Record], printed: Mapping[str, Mapping[str, str]], boxes: Mapping[str, Sequence[str]]
) -> str:
    """A table of the counts, and what it says about the paper's claims; ``boxes``: the sets that are done in each."""
    lines: list[list[str]] = []
    found: dict[tuple[str, str, str, str], Count] = {}
    for other, name in OTHERS.items():
        for what in WHAT:
            lines.append([name, what, "as printed in the paper", *_numbers(printed_count(printed, what, other))])
            for box, names in boxes.items():
                for rule, shown in RULES.items():
                    found[what, other, rule, box] = here = counted(records, names, what, other, rule, box)
                    lines.append([name, what, f"{shown}; {BOXES[box]}", *_numbers(here)])
    header = ["∞-QR against", "measure", "parameters of both", "lower", "equal", "higher"]
    return "\n\n".join(
        [
            "The paper reads its table as: by pinball loss ∞-QR is comparable to JQR on all sets but crabs and cpus; "
            "it crosses less than IND on eleven sets and less than JQR on two. Counted over the sets, by means over "
            f"the splits; “significantly”: with two-sided p < {SIGNIFICANT:g}, the paper's level. Printed numbers are "
            "rounded, so more of them are equal.",
            markdown([*header, "significantly lower", "significantly higher"], lines),
            "\n".join(_verdicts(found, printed, boxes)),
        ]
    )


def _numbers(found: Count) -> list[str]:
    sure = [f"{len(sets)}: {_list(sets)}" if sets else "0" for sets in (found.surely_lower, found.surely_higher)]
    return [str(found.lower), str(found.equal), str(found.higher), *sure]


def _verdicts(
    found: Mapping[tuple[str, str, str, str], Count],
    printed: Mapping[str, Mapping[str, str]],
    boxes: Mapping[str, Sequence[str]],
) -> list[str]:
    """One sentence for each claim, each other method and each box: numbers of sets, claimed, printed and ours."""
    said = []
    for box, names in boxes.items():
        for other, name in OTHERS.items():
            parts = [
                f"{shown}: significantly better on {_list(here.surely_lower)}, worse on {_list(here.surely_higher)}"
                for rule, shown in RULES.items()
                for here in (found["pinball", other, rule, box],)
            ]
            said.append(
                f"- Pinball loss beside {name} ({BOXES[box]}): {'; '.join(parts)}. That no difference is seen in 20 "
                "splits is no proof that there is none."
            )
        for other, name in OTHERS.items():
            marked = printed_count(printed, "crossing", other)
            parts = [
                f"{shown}: lower on {here.lower} of {len(names)}, significantly on {len(here.surely_lower)}, higher on "
                f"{here.higher}, significantly on {len(here.surely_higher)}"
                for rule, shown in RULES.items()
                for here in (found["crossing", other, rule, box],)
            ]
            said.append(
                f"- Fewer crossings than {name} ({BOXES[box]}): the text claims {CLAIMED[other]} sets, the table marks "
                f"{len(marked.surely_lower)} with a lower mean and {len(marked.surely_higher)} others. Ours, "
                f"{'; '.join(parts)}."
            )
    return said


def _list(names: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(names)) or "none"
