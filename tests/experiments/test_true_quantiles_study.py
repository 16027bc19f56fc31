"""The study of the true quantiles: its closed form is the risk, and the page says where the minimum is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments import true_quantiles
from experiments.runner import Record
from experiments.tables import read_csv
from infinitask.datasets import make_sine, sine_quantile
from infinitask.losses import Pinball
from infinitask.measures import GaussLegendre, Uniform


@pytest.fixture(scope="module")
def settings() -> dict[str, Any]:
    return true_quantiles.settings(True) | {"inputs": 30, "nodes": 12}


@pytest.fixture(scope="module")
def records(settings: dict[str, Any]) -> list[Record]:
    units = [unit for unit in true_quantiles.units(True) if unit["value"] != 200]
    return [{"unit": unit, "result": true_quantiles.work(unit, settings), "seconds": 1.0} for unit in units]


def test_the_closed_form_is_the_mean_loss_of_many_targets() -> None:
    rule = GaussLegendre()(Uniform(0.0, 1.0), 10)
    theta = rule.nodes[:, 0]
    X, y = make_sine(100_000, random_state=0)
    h = sine_quantile(X, theta) + 0.4 * np.cos(3.0 * X)
    sampled = np.mean(Pinball().value(theta, y[:, None], h) @ rule.weights)
    assert float(true_quantiles.integrated_risk(X, theta, rule.weights, h)) == pytest.approx(sampled, rel=0.01)


def test_every_change_raises_the_risk_and_so_does_a_fit(records: list[Record]) -> None:
    for record in records:
        excess = np.array(record["result"]["excess"])
        if record["unit"]["kind"] == "direction":
            assert record["result"]["sizes"][len(excess) // 2] == 0.0
            assert excess[len(excess) // 2] == pytest.approx(0.0, abs=1e-15)
            excess = np.delete(excess, len(excess) // 2)
        assert np.min(excess) > 1e-5


def test_the_page_says_where_the_minimum_is(records: list[Record], settings: dict[str, Any], tmp_path: Path) -> None:
    files = true_quantiles.report(records, tmp_path, settings)
    assert all(path.stat().st_size > 0 for path in files)
    page = files[-1].read_text(encoding="utf-8")
    assert "has its minimum, 0, where nothing is changed" in page
    (row,) = (r for r in read_csv(files[0]) if (r["value"], r["size"]) == ("shift", "1"))
    assert f" {float(row['excess']):.5f} |" in page
    moved = [record | {"result": record["result"] | {"excess": record["result"]["excess"][::-1]}} for record in records]
    moved[0]["result"]["excess"] = np.linspace(0.0, 1.0, settings["sizes"]).tolist()
    assert "Minima: shift at -1" in true_quantiles.report(moved, tmp_path, settings)[-1].read_text(encoding="utf-8")
    alone = true_quantiles.report(records[-1:], tmp_path / "alone", settings)  # a run that was stopped
    assert all(path.exists() for path in alone)
