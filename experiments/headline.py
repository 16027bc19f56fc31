"""The headline of the paper's Table 1: ∞-QR is as good as JQR and IND by pinball loss, and crosses less.

Each claim is counted over the data sets, in both directions and with the paper's two-sided test, for our fits and for
the printed numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import mannwhitneyu

from .runner import Record
from .tables import markdown

__all__ = [
    "BOXES",
    "NAMES",
    "RULES",
    "Count",
    "above_print",
    "count",
    "counted",
    "headline",
    "in_box",
    "in_words",
    "p_value",
]

SIGNIFICANT = 0.0025
"""The paper's level: 5% for twenty tests."""

OTHERS = {"jqr": "JQR", "ind": "IND"}
NAMES = {"itl": "∞-QR"} | OTHERS
WHAT = {"pinball": "pinball", "crossing": "cross"}
"""A measure here, and its name in the printed table."""

CLAIMED = {
    ("jqr", "pinball"): ("none", "2: crabs, cpus"),
    ("ind", "pinball"): ("not said", "not said"),
    ("jqr", "crossing"): ("2", "not said"),
    ("ind", "crossing"): ("11", "not said"),
}
"""The sets on which ∞-QR is significantly lower and higher, by the paper's text."""

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


def in_box(box: str, boxes: Collection[str], form: str = "; {}") -> str:
    """The name of a box in words; nothing if it is the only one."""
    return form.format(BOXES[box]) if len(boxes) > 1 else ""


def headline(
    records: list[Record], printed: Mapping[str, Mapping[str, str]], boxes: Mapping[str, Sequence[str]]
) -> str:
    """A table of the paper's claims and of the counts, and what it says; ``boxes``: the sets that are done in each."""
    lines: list[list[str]] = []
    found: dict[tuple[str, str, str, str], Count] = {}
    for other, name in OTHERS.items():
        for what in WHAT:
            lines.append([name, what, "claimed in the paper's text", "", "", "", *CLAIMED[other, what]])
            lines.append([name, what, "printed in its table", *_numbers(printed_count(printed, what, other))])
            for box, names in boxes.items():
                for rule, shown in RULES.items():
                    found[what, other, rule, box] = here = counted(records, names, what, other, rule, box)
                    lines.append([name, what, f"ours, {shown}{in_box(box, boxes)}", *_numbers(here)])
    header = ["∞-QR against", "measure", "numbers", "lower", "equal", "higher"]
    return "\n\n".join(
        [
            "On how many of the sets ∞-QR is lower than another method, as the paper's text claims, as its table "
            "prints, and in our fits, by means over the splits; “significantly”: with two-sided p < "
            f"{SIGNIFICANT:g}, the paper's level. Parameters of both methods are chosen by the same rule. Printed "
            "numbers are rounded, so more of them are equal.",
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
            said.append(f"- Pinball loss beside {name}{in_box(box, boxes, ' ({})')}: {'; '.join(parts)}.")
        for other, name in OTHERS.items():
            marked = printed_count(printed, "crossing", other)
            parts = [
                f"{shown}: lower on {here.lower} of {len(names)}, significantly on {len(here.surely_lower)}, higher on "
                f"{here.higher}, significantly on {len(here.surely_higher)}"
                for rule, shown in RULES.items()
                for here in (found["crossing", other, rule, box],)
            ]
            said.append(
                f"- Fewer crossings than {name}{in_box(box, boxes, ' ({})')}: the text claims "
                f"{CLAIMED[other, 'crossing'][0]} sets, the table marks {len(marked.surely_lower)} with a lower mean "
                f"and {len(marked.surely_higher)} with a higher one. Ours, {'; '.join(parts)}."
            )
    said.append("- That no difference is seen in at most 20 splits is no proof that there is none.")
    return said


def in_words(records: list[Record], names: Sequence[str], box: str) -> list[str]:
    """The sentences by which a page of the documentation repeats the counts."""
    said = []
    for other, name in OTHERS.items():
        paper, ours = (counted(records, names, "pinball", other, rule, box) for rule in RULES)
        said.append(
            f"By pinball loss ∞-QR is better than {name} beyond chance on {len(paper.surely_lower)} sets by the "
            f"paper's rule, and worse on {len(paper.surely_higher)}; by one standard error these are "
            f"{len(ours.surely_lower)} and {len(ours.surely_higher)}."
        )
        paper, ours = (counted(records, names, "crossing", other, rule, box) for rule in RULES)
        said.append(
            f"Against {name}, ∞-QR crosses less on {paper.lower} sets by the paper's rule, on "
            f"{len(paper.surely_lower)} of them beyond chance, and more on {paper.higher}, on "
            f"{len(paper.surely_higher)} beyond chance; by one standard error these are {ours.lower}, "
            f"{len(ours.surely_lower)}, {ours.higher} and {len(ours.surely_higher)}."
        )
    return said


def _list(names: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(names)) or "none"
