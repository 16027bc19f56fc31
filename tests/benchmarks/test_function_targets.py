"""The comparison of functions as targets runs, and all methods learn something."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.slow
def test_the_comparison_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    output = tmp_path / "table.md"
    designs = ["--designs", "grid", "own points"]
    importlib.import_module("function_targets").main(["--quick", "--data", "step", *designs, "--output", str(output)])
    rows = [line.split("|")[1:-1] for line in output.read_text(encoding="utf-8").splitlines() if "±" in line]
    assert len(rows) == 8, "four methods in two designs"
    errors = {row[0].strip(): float(row[1].replace("*", "").split("±")[0]) for row in rows}
    assert all(error < 0.9 for name, error in errors.items() if name != "mean curve")
