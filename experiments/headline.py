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

__all__ = ["Count", "count", "headline", "p_value", "samples"]

SIGNIFICANT = 0.0025
"""The paper's level: 5% for twenty tests."""

OTHERS = {"jqr": "JQR", "ind": "IND"}
WHAT = {"pinball": "pinball", "crossing": "cross"}
"""A measure here, and its name in the printed table."""

CHOICES = {"itl": "one standard error", "itl_smallest": "smallest loss, the paper's choice"}
"""How the parameters of ∞-QR were chosen."""


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


def samples(records: list[Record], method: str, what: str) -> dict[str, list[float]]:
    """Set → the values of all splits."""
    found: dict[str, list[float]] = {}
    for record in records:
        if method in record["result"]:
            found.setdefault(record["unit"]["dataset"], []).append(record["result"][method][what])
    return found


def count(triples: Mapping[str, tuple[float, float, float]], level: float = SIGNIFICANT) -> Count:
    """Set → (∞-QR, the other, p) as numbers of sets."""
    ours, theirs = np.array([(a, b) for a, b, _ in triples.values()]).T
    sure = [tuple(n for n, (a, b, q) in triples.items() if q < level and sign * a < sign * b) for sign in (1.0, -1.0)]
    return Count(int(np.sum(ours < theirs)), int(np.sum(ours == theirs)), int(np.sum(ours > theirs)), *sure)


def headline(records: list[Record], printed: Mapping[str, Mapping[str, str]], names: Sequence[str]) -> str:
    """A table of the counts, and what it says about the headline."""
    counts: dict[tuple[str, str, str], Count] = {}
    means: dict[tuple[str, str], float] = {}
    for what, as_printed in WHAT.items():
        values = {method: samples(records, method, what) for method in (*CHOICES, *OTHERS)}
        means |= {(what, m): float(np.mean([np.mean(v[n]) for n in names])) for m, v in values.items()}
        for other in OTHERS:
            for choice in CHOICES:
                counts[what, other, choice] = count(
                    {
                        n: (
                            float(np.mean(values[choice][n])),
                            float(np.mean(values[other][n])),
                            p_value(values[choice][n], values[other][n]),
                        )
                        for n in names
                    }
                )
            numbers = (f"itl_{as_printed}", f"{other}_{as_printed}", f"{other}_{as_printed}_p")
            first, second, third = numbers
            counts[what, other, "printed"] = count(
                {n: (float(printed[n][first]), float(printed[n][second]), float(printed[n][third])) for n in names}
            )
    return "\n\n".join(
        [
            "The paper's own reading of its table is that ∞-QR is as good as the others by pinball loss and crosses "
            "less. Counted over the sets, by means over the splits; “significantly”: with two-sided p < "
            f"{SIGNIFICANT:g}, the paper's level. JQR and IND always have the parameters of one standard error. "
            "Printed numbers are rounded, so more of them are equal.",
            _table(counts),
            "\n".join(_verdicts(counts, means, len(names))),
        ]
    )


def _table(counts: Mapping[tuple[str, str, str], Count]) -> str:
    header = ["∞-QR against", "measure", "parameters of ∞-QR", "lower", "equal", "higher"]
    lines = []
    for (what, other, choice), found in sorted(counts.items(), key=lambda item: list(OTHERS).index(item[0][1])):
        shown = CHOICES.get(choice, "as printed in the paper")
        sure = [str(len(sets)) for sets in (found.surely_lower, found.surely_higher)]
        numbers = [str(found.lower), str(found.equal), str(found.higher), *sure]
        lines.append([OTHERS[other], what, shown, *numbers])
    return markdown([*header, "significantly lower", "significantly higher"], lines)


def _verdicts(
    counts: Mapping[tuple[str, str, str], Count], means: Mapping[tuple[str, str], float], sets: int
) -> list[str]:
    """One sentence for each claim and each other method, whichever way it comes out."""
    said = []
    for other, name in OTHERS.items():
        worse = [n for choice in CHOICES for n in counts["pinball", other, choice].surely_higher]
        ours = counts["pinball", other, "itl"]
        verdict = "not worse beyond chance on any set" if not worse else f"worse beyond chance on {_list(worse)}"
        said.append(
            f"- Pinball loss as good as {name}'s: {verdict}; lower in {ours.lower} and higher in {ours.higher} of "
            f"{sets} means. That no difference is seen in 20 splits is no proof that there is none."
        )
    for other, name in OTHERS.items():
        ours, smallest, printed = (counts["crossing", other, choice] for choice in (*CHOICES, "printed"))
        sure = len(ours.surely_lower)
        if sure > sets / 2 and not ours.surely_higher:
            verdict = "holds"
        elif ours.lower > ours.higher and not ours.surely_higher:
            verdict = "holds for the means only: most differences are within chance"
        else:
            verdict = "does not hold"
        average = ", ".join(
            f"{means['crossing', m]:.2f} {label}"
            for m, label in (("itl", "for ∞-QR"), ("itl_smallest", "with the smallest loss"), (other, f"for {name}"))
        )
        said.append(
            f"- Fewer crossings than {name}: {verdict}. Lower on {ours.lower} sets, significantly on {sure} "
            f"({_list(ours.surely_lower)}), higher on {ours.higher}, significantly on {len(ours.surely_higher)}; with "
            f"the paper's choice of parameters lower on {smallest.lower}, significantly on "
            f"{len(smallest.surely_lower)}, higher on {smallest.higher}, significantly on "
            f"{len(smallest.surely_higher)}; printed: significantly lower on {len(printed.surely_lower)} "
            f"({_list(printed.surely_lower)}), significantly higher on {len(printed.surely_higher)} "
            f"({_list(printed.surely_higher)}). Means over the sets: {average}."
        )
    return said


def _list(names: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(names)) or "none"
