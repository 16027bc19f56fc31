"""The benchmark of many rows measures what it reports."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("larger_than_memory")


def test_the_slope_is_the_power_of_the_rows(bench: Any) -> None:
    assert bench.slope([(n, 3.0 * n**1.1) for n in (1e4, 1e5, 1e6)]) == pytest.approx(1.1)


def test_the_loss_is_smallest_at_the_quantiles(bench: Any) -> None:
    y, levels = np.random.default_rng(0).normal(size=500), np.array([0.1, 0.9])
    best = np.quantile(y, levels)
    at = [bench.pinball(levels, y, np.broadcast_to(best + shift, (500, 2))) for shift in (-0.2, 0.0, 0.2)]
    assert at[1] < min(at[0], at[2])


def test_an_unknown_part_is_told(bench: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        bench.main(["sideways"])
    assert "sideways is no part; the parts are beside, growth, file" in capsys.readouterr().err


@pytest.mark.slow
def test_the_parts_can_be_run_one_after_the_other(
    bench: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install infinitask[parquet]")
    output = tmp_path / "many.md"
    for part in bench.PARTS:
        bench.main([part, "--quick", "--output", str(output)])
    text = output.read_text(encoding="utf-8")
    assert text in capsys.readouterr().out
    assert text.count("\n## ") == 3
    known = json.loads(output.with_suffix(".json").read_text(encoding="utf-8"))
    fits = [known["beside"]["ours"], known["file"]["fit"], *(fit for _, fit in known["growth"]["fits"])]
    for fit in fits:
        assert fit["gap"] <= bench.QUICK.tol
        assert fit["peak"] >= fit["before"] > 0.0
    assert known["file"]["fit"]["passes"] == known["file"]["fit"]["evaluations"] + 1


@pytest.mark.slow
def test_workers_that_are_killed_cost_time_and_change_nothing() -> None:
    """The benchmark of a cluster, with few rows, in a process of its own: it kills its workers."""
    command = [sys.executable, str(BENCHMARKS / "dask_workers.py"), "--quick"]
    told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=BENCHMARKS).stdout
    away = re.search(r"largest difference of a coefficient is ([-+.e\d]+)\.\n", told)
    assert away is not None
    assert float(away[1]) <= 1e-8
    assert "| all that the two workers send |" in told
