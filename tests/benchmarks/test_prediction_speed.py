"""The benchmark of predictions runs, and says what it measured."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("prediction")


@pytest.mark.slow
def test_the_whole_script_runs(benchmark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "table.md"
    benchmark.main(["--quick", "--output", str(output)])
    text = output.read_text(encoding="utf-8")
    assert text in capsys.readouterr().out
    methods, kernels = text.split("## Kernels")
    assert len([line for line in kernels.splitlines() if "µs" in line]) == 10
    rows = [line.split("|")[1:-1] for line in methods.splitlines() if "µs" in line]
    assert [row[0].split()[0] for row in rows] == [
        "InfiniteQuantileRegressor",
        "HistGradientBoostingRegressor",
        "SVR",
        "KernelRidge,",
    ]
    for row in rows:
        numbers = [float(cell.split()[0].replace(",", "")) for cell in row[1:]]
        assert len(numbers) == 6
        assert all(number > 0.0 for number in numbers[:3] + numbers[4:])


def test_all_levels_are_answered(benchmark: Any) -> None:
    X, _ = benchmark.sample(4, seed=2)
    for name, (everything, one) in benchmark.methods(benchmark.QUICK).items():
        answer = np.column_stack(everything.predict(X)) if "Boosting" in name else everything.predict(X)
        answered = answer.shape[1] if answer.ndim == 2 else 1
        assert answered * everything.times == pytest.approx(99.0), name
        assert one.predict(X).shape == (4,)


def test_memory_is_counted_beyond_the_answer(benchmark: Any) -> None:
    def wasteful(X: Any) -> Any:
        return np.concatenate([np.zeros(100_000), np.ones(100_000)])  # the parts are held as well

    found = benchmark.beyond(benchmark.Ask(wasteful, 1), np.zeros((1, 1)))
    assert 1.6e6 <= found < 1.7e6


def test_every_kernel_is_measured(benchmark: Any) -> None:
    found = benchmark.kept(benchmark.QUICK)
    assert [row.kernel for row in found] == list(benchmark.kernels(np.random.default_rng(0).normal(size=(5, 4))))
    for row in found:
        assert row.size > 8 * row.rank * row.columns
        assert row.all_levels > 0.0 < row.speed
