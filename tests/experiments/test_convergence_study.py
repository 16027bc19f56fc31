"""The study of convergence runs at the parameters that the tuning found, and tells what it measured."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from experiments import convergence, store
from experiments.runner import Experiment, Failed, run
from experiments.store import known, records_of
from experiments.tables import read_csv, write_csv

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results"
NAMES = ("gamma", "task_gamma", "lambda")


def toy(name: str, i: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(i)
    X = rng.uniform(-1.0, 1.0, size=(30, 1))
    y = np.sin(3.0 * X[:, 0]) + 0.3 * rng.normal(size=30)
    return X[:20], X[20:], y[:20], y[20:]


def test_the_parameters_are_the_medians_of_table_1() -> None:
    """Computed from the units of Table 1, not from the table that the study reads."""
    used = convergence.tuned_parameters()
    assert set(used) == set(convergence.SETS)
    records = known(records_of(RESULTS, "table1"))
    if not records:
        pytest.skip("the units of Table 1 are not here")
    for name in convergence.SETS:
        found = [
            record["result"]["itl_smallest"]["parameters"]
            for record in records
            if (record["unit"]["dataset"], record["unit"]["box"]) == (name, "sigma")
            and "itl_smallest" in record["result"]
        ]
        assert len(found) == 20
        for parameter in NAMES:
            assert used[name][parameter] == pytest.approx(np.median([one[parameter] for one in found]), abs=0.006)


def test_the_page_was_made_with_these_parameters() -> None:
    with records_of(RESULTS, "convergence").open(encoding="utf-8") as file:
        assert json.loads(file.readline())["settings"]["parameters"] == convergence.tuned_parameters()
    page = (RESULTS / "convergence.md").read_text(encoding="utf-8")
    for name, used in convergence.tuned_parameters().items():
        assert f"| {name} | {' | '.join(f'{used[parameter]:.2f}' for parameter in NAMES)} |" in page


def test_the_folder_of_a_run_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that has all the sets is taken, that of the run if it is one of them."""
    documentation, mine = tmp_path / "pages", tmp_path / "mine"
    seen: list[object] = []

    def settings(quick: bool) -> dict[str, object]:
        seen.append(convergence.tuned_parameters(["crabs"])["crabs"]["lambda"])
        return {}

    def write(folder: Path, name: str, value: float, **place: str) -> None:
        row = {"dataset": name, "method": "itl_smallest"} | place
        write_csv(folder / "table1_parameters.csv", [row | dict.fromkeys(NAMES, value)])

    study = Experiment("none", "None", lambda quick: [{"i": 0}], lambda unit, settings: {}, lambda *_: [], settings)
    monkeypatch.setattr(store, "PAGES", documentation)
    monkeypatch.setattr("experiments.runner._finish", lambda *_: [])
    with pytest.raises(Failed, match=r"is needed for crabs, and it is not in any folder\. Run `python -m experiments"):
        settings(False)
    write(documentation, "crabs", -2.0)  # from before the boxes were told apart
    with pytest.raises(Failed, match=r"not in .*pages/table1_parameters\.csv\. Run"):
        settings(False)
    write(documentation, "crabs", -3.0, box="sigma")
    write(mine, "cpus", -4.0, box="sigma")
    run(study, mine, quick=False, jobs=1)
    write(mine, "crabs", -5.0, box="sigma")
    run(study, mine, quick=False, jobs=1)
    settings(False)
    assert seen == [-3.0, -5.0, -3.0]


def test_a_unit_and_its_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convergence, "split", toy)
    parameters = {"crabs": {"gamma": 0.0, "task_gamma": 0.0, "lambda": -2.0}}
    settings = {"evaluations": [5, 40], "rounding": 1e-3, "parameters": parameters}
    unit = {"dataset": "crabs", "split": 0}
    result = convergence.work(unit, settings)
    few, more = (row["gap"] for row in result["paper"])
    assert few > more > result["ours"]["gap"]  # both minimise one objective, and the library is closer
    assert result["ours"]["gap"] <= 1e-4
    files = convergence.report([{"unit": unit, "result": result, "seconds": 1.0}], tmp_path, settings)
    assert [row["evaluations"] for row in read_csv(files[0])][:2] == ["5", "40"]
    page = files[1].read_text(encoding="utf-8")
    assert "| crabs | 0.00 | 0.00 | -2.00 |" in page
    ratio = result["paper"][1]["pinball"] / result["ours"]["pinball"]
    assert f"{abs(ratio - 1.0):.0%} {'higher' if ratio > 1.0 else 'lower'} than the solution's" in page
