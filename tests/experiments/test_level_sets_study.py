"""The experiment on level sets: deviations, bandwidths, both methods on data of our own, the report."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments import level_sets
from infinitask.datasets import make_mixture

SMALL = {"rows": 100, "levels": 12, "nodes": 20, "tol": 1e-4}


def synthetic(return_X_y: bool) -> tuple[np.ndarray, np.ndarray]:
    """A mixture, moved to where the χ² kernel is defined, with one row 21 times."""
    X = make_mixture(200, random_state=0)
    X = np.concatenate([X, np.repeat(X[:1], 20, axis=0)])
    return X - X.min(), np.zeros(len(X))


@pytest.fixture
def ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(level_sets, "SETS", dict.fromkeys(level_sets.SETS, synthetic))


def test_deviations_by_hand() -> None:
    theta, proportion = np.array([0.05, 0.25, 0.5, 1.0]), np.array([0.75, 0.8, np.nan, 0.125])
    assert level_sets.deviation(theta, proportion) == pytest.approx(0.2)
    assert level_sets.deviation(theta, proportion, low=0.1) == 0.125
    assert level_sets.deviation(theta[:2], proportion[:2], low=0.1) == pytest.approx(0.05)
    assert np.isnan(level_sets.deviation(theta, np.full(4, np.nan)))


def test_rows_on_the_boundary_are_inside() -> None:
    assert level_sets.inliers(np.array([[1.0, -1.0], [0.0, -1e-300], [-2.0, 3.0], [5.0, -1.0]])) == [0.75, 0.25]


def test_bandwidths_by_hand() -> None:
    # χ² distances 2, 1 and 1; a column of zeros adds 0/0 = 0
    X = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0]])
    assert level_sets.bandwidth("1/median", X) == 1.0
    assert level_sets.bandwidth("1/median", 4.0 * X) == 0.25
    assert level_sets.bandwidth("1/d", X) == pytest.approx(1.0 / 3.0)
    assert level_sets.bandwidth("0.25", X) == 0.25
    # two nodes of Gauss–Legendre on [0.05, 1] lie 0.95/√3 apart
    assert level_sets.task_bandwidth(2) == pytest.approx(0.5 * 3.0 / 0.95**2)


@pytest.mark.usefixtures("ours")
def test_half_of_the_rows_are_new() -> None:
    X, Z = level_sets.split("wilt", None)
    assert len(X) == len(Z) == 110
    assert np.array_equal(np.sort(np.concatenate([X, Z]), axis=0), np.sort(synthetic(True)[0], axis=0))
    assert np.array_equal(level_sets.split("wilt", 30)[1], Z[:30])


@pytest.mark.usefixtures("ours")
def test_both_methods_see_the_property_and_each_other() -> None:
    found = {
        method: level_sets.work({"dataset": "wilt", "gamma": "1/median", "method": method}, SMALL)
        for method in level_sets.METHODS
    }
    itl, ocsvm = found["itl"], found["ocsvm"]
    theta = np.array(itl["theta"])
    assert theta[[0, -1]].tolist() == [0.05, 1.0]
    assert len(itl["train"]) == len(itl["test"]) == len(theta) == 12
    assert itl["gap"] <= SMALL["tol"]
    # equal rows leave at once: half of them too early or too late, and one for rounding
    X, _ = level_sets.split("wilt", 100)
    equal = np.max(np.unique(X, axis=0, return_counts=True)[1])
    assert equal >= 5
    assert level_sets.deviation(theta, np.array(itl["train"])) <= (0.5 * equal + 1.0) / 100
    assert level_sets.deviation(theta, np.array(itl["train_as_fitted"])) > 0.02
    assert ocsvm["train"][-1] is None, "scikit-learn refuses ν = 1"
    assert None not in ocsvm["train"][:-1]
    between = np.array(ocsvm["test"][:-1]) - itl["test"][:-1]
    assert np.max(np.abs(between)) < 0.12
    assert np.max(np.abs(np.array(itl["test"]) - (1.0 - theta))) > 0.0


def record(dataset: str, gamma: str, method: str) -> dict[str, Any]:
    theta = [0.05, 0.5, 1.0]
    result = {
        "theta": theta,
        "gamma": 0.1,
        "rows": [50, 50],
        "train": [0.95, 0.5, None if method == "ocsvm" else 0.0],
        "test": [0.9, 0.5, None if method == "ocsvm" else 0.25],
        "fit_seconds": 2.0 if method == "itl" else 4.0,
        "processor_seconds": 1.0,
    }
    if method == "itl":
        result |= {"train_as_fitted": [0.9, 0.4, 0.0], "test_as_fitted": [0.9, 0.4, 0.0], "gap": 5e-5}
    return {"unit": {"dataset": dataset, "gamma": gamma, "method": method}, "result": result, "seconds": 1.0}


def test_the_report_writes_its_columns(tmp_path: Path) -> None:
    every = [record(**unit) for unit in level_sets.units(False)]
    files = level_sets.report(every, tmp_path, level_sets.settings(False))
    assert [path.name for path in files] == ["level_sets.csv", "level_sets.png", "level_sets.md"]
    assert files[1].read_bytes().startswith(b"\x89PNG")
    with files[0].open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["dataset", "gamma", "theta", "train", "test", "ocsvm_train", "ocsvm_test"]
    assert len(rows) == 2 * 3 * 3
    assert rows[2] == {
        "dataset": "wilt",
        "gamma": "1/median",
        "theta": "1",
        "train": "0",
        "test": "0.25",
        "ocsvm_train": "",
        "ocsvm_test": "",
    }
    page = files[2].read_text()
    assert page.count("\n# ") + page.startswith("# ") == 1
    assert "| Wilt | 1/median | 0.000 | 0.250 | 0.250 | 0.000 | 0.050 | 0.000 | 0.100 | 0.100 | 2.00 | 4.00 |" in page
    assert "takes 0.5 to 0.5 times as long as all fits of OneClassSVM together by the clock, 1.0 to 1.0" in page
    assert "by the clock (wall clock)" in page
    assert "the processor spent 25% to 50% on these fits" in page


@pytest.mark.quick("ocsvm")
@pytest.mark.parametrize("method", level_sets.METHODS)
def test_a_report_of_what_is_done_so_far(tmp_path: Path, method: str) -> None:
    some = [record("spambase", "1/d", method)]
    files = level_sets.report(some, tmp_path, level_sets.settings(True))
    with files[0].open() as file:
        assert {row["dataset"] for row in csv.DictReader(file)} == {"spambase"}
    assert "–" in files[2].read_text()


def test_the_property_on_some_rows_of_wilt() -> None:
    try:
        level_sets.split("wilt", 1)
    except FileNotFoundError as error:
        pytest.skip(f"Wilt is not here: {error}")
    found = level_sets.work({"dataset": "wilt", "gamma": "1/median", "method": "itl"}, SMALL)
    assert level_sets.deviation(np.array(found["theta"]), np.array(found["train"])) <= 0.01
