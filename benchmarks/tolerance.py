"""How accurate must a fit be? Held-out losses and processor seconds of the defaults for several ``tol``.

``python benchmarks/tolerance.py`` fits the small tables of ``price_tables.py`` with each tolerance of TOLERANCES and
writes the page. ``features="auto"`` follow ``tol`` as well: both effects are measured together.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from infinitask import InfiniteCostSensitiveClassifier, InfiniteQuantileRegressor
from pages import now, signed
from price_fits import FITS, Fit, Values, measured
from price_tables import TABLES

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks" / "tolerance.md"
TOLERANCES = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5)
MODELS = {
    "quantiles": (InfiniteQuantileRegressor, "integrated", "pinball loss over 99 levels"),
    "costs": (InfiniteCostSensitiveClassifier, "log loss", "log loss"),
    "classes": (InfiniteCostSensitiveClassifier, "log loss", "log loss"),
}
"""Kind → estimator, the score that is compared, and its name."""

SEEDS = 2
Table = dict[float, list[tuple[float, float]]]
"""Tolerance → (loss, seconds) of every table and seed."""


def fit_of(kind: str, tol: float) -> Fit:
    """The default of a kind with another tolerance."""
    make, words = MODELS[kind][0], FITS[kind]["default"]
    return Fit(words.words, lambda data: make(tol=tol, random_state=0).fit(data["X"], data["y"]), words.score)


def losses(kind: str, seeds: int, tables: Sequence[str]) -> Table:
    """Losses and seconds of all tables; those that are not installed are skipped."""
    found: Table = {tol: [] for tol in TOLERANCES}
    score = MODELS[kind][1]
    for name in tables:
        for seed in range(seeds):
            try:
                data: Values = vars(TABLES[kind][name](seed))
            except (FileNotFoundError, ImportError) as missing:
                print(f"{name}: {missing}", flush=True)
                break
            row = []
            for tol in TOLERANCES:
                FITS[kind]["tol"] = fit_of(kind, tol)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    result = measured(kind, "tol", data, None)
                if "scores" not in result:
                    raise RuntimeError(f"{kind}, {name}, tol={tol:g}: {result}")
                row.append((result["scores"][score], result["seconds"]))
            for tol, each in zip(TOLERANCES, row, strict=True):
                found[tol].append(each)
            print(
                f"{kind}, {name}: "
                + ", ".join(f"{tol:g} {loss:.4f}" for tol, (loss, _) in zip(TOLERANCES, row, strict=True)),
                flush=True,
            )
    return found


def section(kind: str, found: Table) -> str:
    """The table of one kind: ratios of losses to those of the smallest tolerance, and seconds."""
    best = np.array([loss for loss, _ in found[TOLERANCES[-1]]])
    lines = [
        f"## {kind.capitalize()}: {MODELS[kind][2]}\n",
        f"`{MODELS[kind][0].__name__}(tol=…)`, {best.size} splits.\n",
        "| tol | loss, geometric mean | worst | seconds, sum |",
        "|---|---:|---:|---:|",
    ]
    for tol in TOLERANCES:
        loss, seconds = np.array(found[tol]).T
        ratio = loss / best
        lines.append(
            f"| {tol:g} | {np.exp(np.mean(np.log(ratio))):.4f} | {np.max(ratio):.3f} | {np.sum(seconds):.1f} |"
        )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one table of each kind, which is only printed")
    options = parser.parse_args(arguments)
    seeds = 1 if options.quick else SEEDS
    tables = {kind: list(TABLES[kind])[: 1 if options.quick else None] for kind in MODELS}
    sections = [section(kind, losses(kind, seeds, tables[kind])) for kind in MODELS]
    text = "\n\n".join(
        [
            "# How accurate a fit must be",
            "Held-out losses of the defaults relative to those with the smallest tolerance, on the small tables of "
            "`benchmarks/price_tables.py` (at most 600 rows to learn from), and processor seconds with one thread. "
            '`features="auto"` leave out more with a larger `tol`, so both effects are measured together.',
            *sections,
            "",
        ]
    )
    print(f"\n{text}")
    if not options.quick:
        PAGE.write_text(signed(text, now("make bench-tolerance")), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
