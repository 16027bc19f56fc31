"""The command line: ``python -m experiments table1 --quick``."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time
from pathlib import Path

from .defaults import PARTS
from .runner import Experiment, Failed, run
from .store import PAGES

NAMES = (
    "table1",
    "table2",
    "level-sets",
    "level-set-defaults",
    "level-sets-tuned",
    "crossing",
    "nodes",
    "discrepancy",
    "smoothing",
    "robustness",
    "pinball",
    "true-quantiles",
    "csc-sets",
    "convergence",
    "peers",
    "peers-fresh",
    "classes-tuned",
    "peers-middle",
    "order",
    "properties",
    *(f"defaults-{part}" for part in PARTS),
)
HERE = Path(__file__).resolve().parent.parent


def experiment(name: str) -> Experiment:
    """The experiment of this name."""
    found = importlib.import_module(f"experiments.{name.replace('-', '_')}").EXPERIMENT
    assert isinstance(found, Experiment)
    return found


def _listed(given: list[str], defaults: list[str]) -> list[str]:
    """The experiments that are asked for, in that order, with the parts of ``defaults`` in its place."""
    return [one for name in given for one in (defaults if name == "defaults" else [name])]


def main(arguments: list[str] | None = None) -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments",
        description="Reproduce the paper's tables and figures. Every unit of work is kept as soon as it is done: a run "
        "that is stopped, or killed, is continued by the same command.",
    )
    names = [*NAMES, "defaults", "all"]
    parser.add_argument("name", nargs="+", choices=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--quick", action="store_true", help="a first look: few data sets, splits and evaluations")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one for each core)")
    parser.add_argument(
        "-o",
        "--out",
        "--output",
        type=Path,
        help="folder of the results (default: docs/results; build/quick if --quick)",
    )
    parser.add_argument(
        "--only", default="", metavar="WORDS", help="only units with these words, such as crabs,itl|jqr"
    )
    parser.add_argument(
        "--parts", default=",".join(PARTS), metavar="PARTS", help="studies of defaults (default: %(default)s)"
    )
    given = parser.parse_args(arguments)
    parts = given.parts.split(",")
    if unknown := [part for part in parts if part not in PARTS]:
        parser.error(f"--parts {','.join(unknown)} was given; the parts of defaults are {', '.join(PARTS)}.")
    if given.jobs < 1:
        parser.error(f"--jobs {given.jobs} was given; it must be at least 1.")
    folder = given.out or (HERE / "build/quick" if given.quick else PAGES)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"--out {folder} is no folder and cannot be made one ({error.strerror}); name another.")
    failures = []
    asked = [f"defaults-{part}" for part in parts]
    for name in NAMES if "all" in given.name else _listed(given.name, asked):
        start = time.monotonic()
        try:
            files = run(experiment(name), folder, quick=given.quick, jobs=given.jobs, only=given.only)
        except Failed as failed:  # a data set or a peer is missing; other experiments may not need it
            print(failed, file=sys.stderr)
            failures.append(name)
            continue
        print(f"{name}: {time.monotonic() - start:.0f} s", *(f"  {path}" for path in files), sep="\n", file=sys.stderr)
    if failures:
        raise SystemExit(f"Not all units could be done: {', '.join(failures)}.")


if __name__ == "__main__":
    main()
