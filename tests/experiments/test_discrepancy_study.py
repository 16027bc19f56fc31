"""The study of discrepancies: exact numbers, and a page that says what they show."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments import discrepancy
from experiments.runner import Record
from experiments.tables import read_csv

SETTINGS: dict[str, Any] = {"scrambles": 2, "between": 4, "most": 32}


@pytest.fixture(scope="module")
def records() -> list[Record]:
    units = [unit for unit in discrepancy.units(True) if unit["m"] <= 32 or unit["dim"] in discrepancy.MANY]
    return [{"unit": unit, "result": discrepancy.work(unit, SETTINGS), "seconds": 1.0} for unit in units]


def test_the_integral_of_the_kink_is_the_one_of_a_sum_of_uniform_variables() -> None:
    u = (np.arange(200) + 0.5) / 200
    for dim in discrepancy.DIMENSIONS:
        sums = sum(np.meshgrid(*[u] * dim))
        assert np.mean(np.maximum(0.0, sums - dim / 2.0)) == pytest.approx(discrepancy.kink_integral(dim), abs=1e-4)
    # the sum of many is normal, with the variance s/12: the mean of its positive part is σ/√(2π)
    assert discrepancy.kink_integral(100) == pytest.approx(np.sqrt(100 / 12.0 / (2.0 * np.pi)), rel=1e-3)


def test_random_nodes_are_better_in_many_dimensions_unless_the_sequence_is_scrambled() -> None:
    def errors(dim: int, name: str) -> dict[str, float]:
        rules = discrepancy.RULES_FOR_MANY
        return {rule: discrepancy.work({"dim": dim, "rule": rule, "m": 256}, {})[name] for rule in rules}

    for name in ("product", "kink"):
        few, many = errors(5, name), errors(100, name)
        assert few["Sobol"] < 0.5 * few["Monte Carlo"]
        assert many["Sobol"] > 1.5 * many["Monte Carlo"]
        assert many["Sobol, scrambled"] < 0.7 * many["Monte Carlo"]
        assert many["Monte Carlo"] == pytest.approx(256**-0.5, rel=0.5)


def test_the_records_obey_hlawka_and_the_rate(records: list[Record]) -> None:
    few = [record for record in records if record["unit"]["dim"] in discrepancy.DIMENSIONS]
    for record in few:
        unit, result = record["unit"], record["result"]
        if unit["dim"] == 2:
            assert result["kink"] <= 3.0 * result["discrepancy"]
        if unit["rule"] in discrepancy.SEQUENCES:
            rate = math.log(unit["m"]) ** unit["dim"] / unit["m"]
            assert result["discrepancy"] / rate <= result["largest"] + 1e-12 < 1.0


def test_the_page_has_the_numbers_of_the_records(records: list[Record], tmp_path: Path) -> None:
    files = discrepancy.report(records, tmp_path, SETTINGS)
    assert all(path.stat().st_size > 0 for path in files)
    rows, page = read_csv(files[0]), files[-1].read_text(encoding="utf-8")
    assert len(rows) == len(records)
    for dim in (2, 3):
        (row,) = (r for r in rows if (r["dim"], r["rule"], r["m"]) == (str(dim), "Sobol", "32"))
        assert f"| 32 | {float(row['discrepancy']):.4f} |" in page
        assert f"## dim Θ = {dim}" in page
    assert "## Many coordinates" in page
    alone = discrepancy.report(records[:1], tmp_path / "alone", SETTINGS)  # a run that was stopped
    assert "## dim Θ" not in alone[-1].read_text(encoding="utf-8")
    assert "## Many coordinates" not in alone[-1].read_text(encoding="utf-8")
