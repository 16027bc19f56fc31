"""The study of the quantile property and the θ-property: its measures, the laws in it, its page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="the figures are drawn with the extra `plot`")

from experiments import properties
from experiments.runner import Record
from experiments.tables import read_csv

SETTINGS = properties.settings(True) | {"step": 0.1, "tol": 1e-6}
PAIRS = [(name, method) for name, methods in properties.METHODS.items() for method in methods]


def record(name: str, method: str, n: int, seed: int = 0, settings: dict[str, Any] = SETTINGS) -> Record:
    unit = {"property": name, "method": method, "n": n, "seed": seed}
    found: Record = json.loads(json.dumps({"unit": unit, "result": properties.work(unit, settings), "seconds": 1.0}))
    return found


@pytest.fixture(scope="module")
def few() -> dict[str, Record]:
    return {method: record(name, method, 60) for name, method in PAIRS}


def test_deviations_by_hand() -> None:
    """Four rows and three curves: shares below of 1/4, 1/4 and 1; with the rows on the curve 1/4, 1/2 and 1."""
    distance = np.array([[-1.0, -1.0, -1.0], [1.0, 0.0, -1.0], [1.0, 1.0, -1.0], [1.0, 1.0, -1.0]])
    found = properties.deviations(np.array([0.25, 0.4, 0.9]), distance, on=0.01)
    assert found["train_sup"] == pytest.approx(0.15)
    assert found["train_mean"] == pytest.approx((0.0 + 0.15 + 0.1) / 3)
    assert found["train_signed"] == pytest.approx((0.0 - 0.15 + 0.1) / 3)
    assert found["off_bounds"] == pytest.approx(0.1)  # 0.25 ≤ 0.4 ≤ 0.5 holds, 1 ≤ 0.9 does not
    assert found["on_curve"] == pytest.approx(0.25 / 3)
    missed = properties.deviations(np.array([0.7, 0.4, 1.0]), distance, on=0.01)
    assert missed["off_bounds"] == pytest.approx(0.45)  # 0.7 ≤ 0.25 does not hold


def test_the_levels_of_level_sets_begin_within_the_tasks() -> None:
    assert properties.levels("quantile", {"step": 0.01, "low": 0.05}).size == 99
    theta = properties.levels("level-set", {"step": 0.01, "low": 0.05})
    assert (theta[0], theta[-1], theta.size) == (pytest.approx(0.05), pytest.approx(0.99), 95)


@pytest.mark.parametrize("method", ["independent", "ocsvm"])
def test_the_bounds_hold_where_the_theorems_do(few: dict[str, Record], method: str) -> None:
    result = few[method]["result"]
    assert result["off_bounds"] == 0.0
    assert result["on_curve"] > 0.02  # rows on the curve are what the bounds are about
    assert result["train_sup"] > 0.0  # so that they are bounds and not an equation


def test_a_smooth_bias_keeps_the_mean_over_the_levels(few: dict[str, Record]) -> None:
    """∞-QR with a free bias is off at single levels, but hardly in the mean over them."""
    result = few["free"]["result"]
    assert result["off_bounds"] > 0.0
    assert abs(result["train_signed"]) < 0.25 * result["train_sup"]


def test_exact_fractions_are_exact_on_the_training_rows(few: dict[str, Record]) -> None:
    assert few["exact"]["result"]["train_sup"] <= 1.0 / 60
    assert few["exact"]["result"]["train_sup"] < few["fitted"]["result"]["train_sup"]


@pytest.mark.quick("exact")
@pytest.mark.parametrize("method", ["penalty", "exact"])
def test_new_rows_come_closer_with_more_training_rows(method: str) -> None:
    name = next(name for name, method_ in PAIRS if method_ == method)
    rough = SETTINGS | {"tol": 1e-3}
    less, more = (
        np.median([record(name, method, n, seed, rough)["result"]["new_mean"] for seed in range(3)]) for n in (30, 480)
    )
    assert more < 0.6 * less


@pytest.mark.parametrize("method", ["independent", "free", "penalty", "ridge", "fitted", "exact"])
def test_no_parameter_is_left_to_a_default_that_is_no_number(method: str) -> None:
    given = properties.model(method, 50, np.array([0.5]), SETTINGS).get_params()
    for name in ("gamma", "task_gamma", "alpha", "tol"):
        assert isinstance(given.get(name, 0.0), float)
    if "noncrossing" in given:
        assert isinstance(given["alpha_bias"], float)
        assert isinstance(given["noncrossing"], float)


def test_the_page_and_its_files(few: dict[str, Record], tmp_path: Path) -> None:
    records = [*few.values(), *(record(name, method, 30) for name, method in PAIRS)]
    files = properties.report(records, tmp_path, SETTINGS)
    assert [path.name for path in files] == [
        *("properties.csv", "properties_curves.csv", "properties.png", "properties.md")
    ]
    rows = read_csv(files[0])
    assert [(row["property"], row["method"], row["n"]) for row in rows] == [
        (name, method, n) for name, method in PAIRS for n in ("30", "60")
    ]
    assert len(read_csv(files[1])) == 2 * (4 * 9 + 3 * 9)
    assert files[2].read_bytes().startswith(b"\x89PNG")
    page = files[3].read_text(encoding="utf-8")
    assert "\n| lambda | 0.001 | ours |\n" in page
    assert "each level by itself, free bias: the bounds hold in every fit" in page
    new = few["ridge"]["result"]["new_sup"]
    assert f"to {new:.4f} at n = 60" in page


def test_a_report_copes_with_the_first_unit_only(few: dict[str, Record], tmp_path: Path) -> None:
    files = properties.report([few["independent"]], tmp_path, SETTINGS)
    assert all(path.stat().st_size > 0 for path in files)


def test_medians_and_the_worst_of_the_bounds() -> None:
    def one(seed: int, value: float) -> Record:
        unit = {"property": "quantile", "method": "free", "n": 50, "seed": seed}
        return {"unit": unit, "result": dict.fromkeys(properties.MEASURES, value), "seconds": 1.0}

    (row,) = properties.summary([one(0, 0.1), one(1, 0.2), one(2, 0.6)])
    assert (row["seeds"], row["new_sup"], row["off_bounds"], row["off_bounds_max"]) == (3, 0.2, 0.2, 0.6)
