"""What fits cost: processor seconds beside their opponents, and held-out losses beside those of an earlier commit.

``python benchmarks/price.py`` runs three parts, or those that are named:

* ``price``: the fits of ROWS and their opponents, each in a process of its own with one thread. A small table is fitted
  first, so that imports and compilation are not timed.
* ``base``: the same fits of ours at the commit BASE, unless they need what that commit does not have.
* ``quality``: held-out losses of the small tables of ``price_tables.py``, at BASE and at HEAD.

Each result is stored at once in ``benchmarks/results/price.jsonl``: a run that was stopped goes on where it ended, and
the page is made of the newest results. A commit whose library is as before is not measured again. ``--quick`` is a
small run of the working tree to check that it works; it stores nothing.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from compare import HERE, ROOT, Side, copied, resolved
from pages import Store, combined, key, now, signed
from price_fits import OURS
from price_problems import PROBLEMS, Split
from price_report import page
from price_rows import QUALITY_FITS, ROWS
from price_tables import TABLES

PAGE = ROOT / "docs" / "benchmarks" / "price.md"
RECORDS = ROOT / "benchmarks" / "results" / "price.jsonl"
BASE = "c1ba2c2"
PARTS = ("price", "base", "quality")
VERSION = 1
"""Raise it when a table or a score changes: older results are refused then."""

QUICK_ROWS = 150
QUICK = {
    "quantiles": ("1 000 × 8", "diabetes"),
    "costs": ("3 000 × 15, 2% positives", "moons"),
    "classes": ("five classes, 1 000 × 8", "wine"),
    "level sets": ("level sets, 3 000 × 10", "wine 1"),
}
"""Kind → the problem and the table of a small run."""

Unit = dict[str, Any]


# ------------------------------------------------------------------------------------------------------------- the plan
def price_units(base: str, head: str, quick: bool = False, *, at_base: bool = False) -> Iterator[Unit]:
    """The fits of ROWS: at HEAD with their opponents, or at BASE those that it has."""
    problems = [problem for problem, _ in QUICK.values()]
    for row in ROWS:
        kind = PROBLEMS[row.problem].kind
        if quick and (row.problem not in problems or row.fit != "default"):
            continue
        unit = {"part": "price", "kind": kind, "table": row.problem, "seed": 0}
        if at_base:
            if row.at_base:
                yield {**unit, "fit": row.fit, "side": "base", "code": base}
            continue
        for seed in range(1 if quick else row.seeds):
            yield {**unit, "seed": seed, "fit": row.fit, "side": "head", "code": head}
        for peer in row.peers[: 1 if quick else None]:
            yield {**unit, "fit": peer, "side": "peer", "code": ""}


def quality_units(base: str, head: str, quick: bool = False) -> Iterator[Unit]:
    """Both sides in turns; all tables with one seed before the next, so that a run that is stopped shows all tables."""
    for seed in range(max(fit.seeds for fit in QUALITY_FITS)):
        for fit in QUALITY_FITS:
            if seed >= (1 if quick else fit.seeds) or (quick and fit.fit != "default"):
                continue
            for table in (QUICK[fit.kind][1],) if quick else TABLES[fit.kind]:
                unit = {"part": "quality", "kind": fit.kind, "table": table, "seed": seed, "fit": fit.fit}
                yield {**unit, "side": "base", "code": base}
                yield {**unit, "side": "head", "code": head}


# -------------------------------------------------------------------------------------------------------------- running
def stored(split: Split, path: Path) -> str:
    """The file of a table, which any side can read."""
    np.savez(path, **vars(split))
    return str(path)


class Runner:
    """Runs units with the libraries of two commits.

    Parameters
    ----------
    folders : dict
        "base" and "head" → the folder of the library.
    scratch : Path
        For the tables.
    quick : bool
    """

    def __init__(self, folders: dict[str, Path], scratch: Path, quick: bool = False) -> None:
        self.folders, self.scratch, self.quick = folders, scratch, quick
        self._open: dict[str, Side] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def run(self, unit: Unit) -> dict[str, Any]:
        """Processor seconds, seconds of the clock and scores; or why there are none."""
        folder = self.folders["base" if unit["side"] == "base" else "head"]
        if unit["part"] == "price":
            problem = PROBLEMS[unit["table"]]
            data = stored(problem.split(unit["seed"], QUICK_ROWS if self.quick else None), self.scratch / "data.npz")
            small = stored(problem.small(), self.scratch / "small.npz")
            with self._side(folder) as side:
                found = side.call([unit["kind"], unit["fit"], data, small])
        else:
            try:
                data = stored(TABLES[unit["kind"]][unit["table"]](unit["seed"]), self.scratch / "data.npz")
            except FileNotFoundError as missing:
                return {"missing": str(missing)}
            if unit["side"] not in self._open:
                self._open[unit["side"]] = self._stack.enter_context(self._side(folder))
            found = self._open[unit["side"]].call([unit["kind"], unit["fit"], data, None])
        assert isinstance(found, dict)
        return found

    def _side(self, folder: Path) -> Side:
        return Side(folder, str(Path(__file__).with_name("price_fits.py")))


def last_change(commit: str) -> str:
    """The last commit that changed the library: later ones need not be measured."""
    command = ["git", "log", "-1", "--format=%h", resolved(commit), "--", "src"]
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def told(unit: Unit, found: dict[str, Any]) -> str:
    """A line of progress."""
    name = f"{unit['kind']}, {unit['table']}: {unit['fit']}" + (f", {unit['side']}" if unit["fit"] in OURS else "")
    if "scores" not in found:
        return f"{name}: {found}"
    scores = ", ".join(f"{score} {value:.4f}" for score, value in found["scores"].items())
    return f"{name}: {found['seconds']:.2f} s, {found['wall']:.2f} s of the clock; {scores}"


def run(units: Sequence[Unit], runner: Runner, store: Store) -> None:
    """Run what is not stored yet."""
    for k, unit in enumerate(units, start=1):
        if key(unit) in store.records:
            continue
        found = runner.run(unit)
        print(f"[{k}/{len(units)}] {told(unit, found)}", flush=True)
        if "missing" not in found:
            store.add({"unit": unit, "result": found})


def newest(store: Store, base: str) -> list[dict[str, Any]]:
    """The newest record of each fit; those of other bases are left out."""
    found: dict[str, dict[str, Any]] = {}
    for record in store.records.values():
        unit = record["unit"]
        if unit["side"] != "base" or unit["code"] == base:
            name = key({k: v for k, v in unit.items() if k != "code"})
            found.pop(name, None)
            found[name] = record
    return list(found.values())


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help=f"any of {', '.join(PARTS)}; default: all")
    parser.add_argument("--base", default=BASE, help=f"the commit beside which losses stand; default: {BASE}")
    parser.add_argument("--head", default="HEAD", help="the commit that is measured; default: HEAD")
    parser.add_argument("--only", default="", help="fits of tables whose name contains this")
    parser.add_argument("--quick", action="store_true", help="a small run of the working tree: does it work?")
    parser.add_argument("--page", type=Path, default=PAGE, help="where the page goes")
    parser.add_argument("--records", type=Path, default=RECORDS, help="where results are stored")
    options = parser.parse_args(arguments)
    parts = options.parts or PARTS
    if wrong := set(parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(wrong))}; there are: {', '.join(PARTS)}")
    base, head = (HERE, HERE) if options.quick else (resolved(options.base), last_change(options.head))
    plans = {
        "price": lambda: price_units(base, head, options.quick),
        "base": lambda: price_units(base, head, options.quick, at_base=True),
        "quality": lambda: quality_units(base, head, options.quick),
    }
    units = [unit for part in parts for unit in plans[part]() if options.only in unit["table"]]
    provenance = now("make bench-price")
    if not options.quick:
        provenance = replace(provenance, commit=head, modified=False)
    with tempfile.TemporaryDirectory() as scratch:
        records = Path(scratch) / "price.jsonl" if options.quick else options.records
        folders = {name: copied(commit, Path(scratch) / name) for name, commit in (("base", base), ("head", head))}
        with (
            Store(records, {"version": VERSION}, provenance).open() as store,
            Runner(folders, Path(scratch), options.quick) as runner,
        ):
            run(units, runner, store)
            kept = newest(store, base)
            every = [store.provenances[key(record["unit"])] or provenance for record in kept]
            text = signed(page(kept, base), combined(every))
    print(f"\n{text}")
    if not options.quick or options.page != PAGE:
        options.page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
