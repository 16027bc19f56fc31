"""A small experiment for the tests of the runner: ``python tests/support/toy_experiment.py FOLDER SECONDS``.

It imports nothing that takes long: it is started many times.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from experiments.runner import Experiment, Record, run


def units(quick: bool) -> list[dict[str, Any]]:
    return [{"name": name, "split": i} for i in range(6) for name in ("a", "b")]


def work(unit: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    time.sleep(settings["seconds"])
    if unit["split"] == settings.get("fails"):
        raise ValueError("no such split")
    return {"value": 1.0 / 3.0 * (unit["split"] + 10 * (unit["name"] == "b"))}


def report(records: list[Record], folder: Path, settings: dict[str, Any]) -> list[Path]:
    rows = [f"{r['unit']['name']},{r['unit']['split']},{r['result']['value']}" for r in records]
    (folder / "toy.csv").write_text("\n".join(["name,split,value", *rows, ""]))
    (folder / "toy.md").write_text(f"# Toy\n\n{len(rows)} rows.\n")
    return [folder / "toy.csv", folder / "toy.md"]


def experiment(**settings: Any) -> Experiment:
    return Experiment("toy", "Toy", units, work, report, lambda quick: settings)


if __name__ == "__main__":
    run(experiment(seconds=float(sys.argv[2])), Path(sys.argv[1]), quick=False, jobs=2)
