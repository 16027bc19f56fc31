"""The study of self-tuned level sets: problems are seeded, rows are clean or dirty, the page has means."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import experiments.__main__ as command
from experiments import level_sets_tuned
from experiments.outlier_sets import CONTAMINATION, PROBLEMS, problem
from experiments.tables import read_csv
from tests.support.each import each


def test_the_study_is_a_command() -> None:
    assert command.experiment("level-sets-tuned") is level_sets_tuned.EXPERIMENT
    quick, whole = level_sets_tuned.units(True), level_sets_tuned.units(False)
    assert 0 < len(quick) < len(whole)
    assert all(unit in whole for unit in quick)


@each("name", PROBLEMS)
def test_a_problem_is_seeded_and_dirty_on_demand(name: str) -> None:
    X, new, normal = problem(name, 0, dirty=False)
    again = problem(name, 0, dirty=False)
    np.testing.assert_array_equal(X, again[0])
    np.testing.assert_array_equal(new, again[1])
    assert set(np.unique(normal)) == {0.0, 1.0}
    assert normal.size == len(new)
    dirty, rest, _ = problem(name, 0, dirty=True)
    assert len(dirty) - len(X) == pytest.approx(CONTAMINATION * len(dirty), abs=1.0)
    assert len(dirty) + len(rest) == len(X) + len(new)


def test_a_unit_ranks_normal_rows_above_outliers() -> None:
    unit = {"problem": "iris 0", "rows": "clean", "seed": 0, "method": "forest"}
    result = level_sets_tuned.work(unit, level_sets_tuned.settings(True))
    assert 0.9 < result["auc"] <= 1.0
    assert (result["n"], result["d"]) == (25, 4)


def test_the_page_has_means_and_names_the_best(tmp_path: Path) -> None:
    def result(unit: dict[str, Any]) -> dict[str, Any]:
        found = {"n": 10, "d": 2, "auc": 0.9 if unit["method"] == "cv" else 0.8, "seconds": 1.0}
        return found | ({"kernel": "Gaussian, 5", "compared": 3} if unit["method"] == "cv" else {})

    records: list[dict[str, Any]] = [
        {"unit": unit, "result": result(unit), "seconds": 1.0} for unit in level_sets_tuned.units(False)
    ]
    files = level_sets_tuned.report(records, tmp_path, level_sets_tuned.settings(False))
    page = files[1].read_text(encoding="utf-8")
    assert f"| InfiniteOneClassSVMCV | 0.900 | 0.900 | {2 * len(PROBLEMS)} | 1.00 |" in page
    assert "| moons, dirty | 10 | 2 | **0.900** |" in page
    assert len(read_csv(files[0])) == 2 * len(PROBLEMS) * len(level_sets_tuned.METHODS)
