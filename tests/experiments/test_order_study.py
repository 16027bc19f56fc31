"""The study of order chooses by what it says, and measures both sides."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from experiments import order, store, tuned
from experiments.runner import Failed
from experiments.store import FOLDER
from experiments.tables import write_csv
from tests.support.each import each


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a run in which Table 1 was made for crabs."""
    monkeypatch.setenv(FOLDER, str(tmp_path))
    place = {"dataset": "crabs", "method": "itl_smallest", "box": "sigma"}
    ends = {f"{p}_{end}": 3 for p in ("gamma", "task_gamma", "lambda") for end in ("low", "high")}
    write_csv(tmp_path / "table1.csv", [place | {"crossing": 9.0}])
    write_csv(tmp_path / "table1_parameters.csv", [place | {"splits": 7} | ends])
    return tmp_path


def toy(name: str, i: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(i)
    X = rng.uniform(-1.0, 1.0, size=(40, 1))
    y = np.sin(3.0 * X[:, 0]) + 0.3 * rng.normal(size=40)
    return X[:28], X[28:], y[:28], y[28:]


def test_the_criterion_is_the_sum_of_both_losses() -> None:
    y = np.array([0.0, 1.0])
    rising, falling = np.tile(np.arange(5.0), (2, 1)), np.tile(np.arange(5.0)[::-1], (2, 1))
    assert order.ordered(y, rising) == tuned.pinball(y, rising)
    assert order.ordered(y, falling) == pytest.approx(tuned.pinball(y, falling) + 5 * 400.0)


@pytest.mark.slow
def test_trials_are_compared_by_the_criterion() -> None:
    X, _, y, _ = toy("", 0)
    plain = tuned.tune("itl", X, y, startup=3, iterations=0, seed=0)
    more = tuned.tune("itl", X, y, startup=3, iterations=0, seed=0, criterion=lambda y, h: tuned.pinball(y, h) + 7.0)
    for a, b in zip(plain, more, strict=True):
        assert a.parameters == b.parameters
    assert more[0].losses == pytest.approx(plain[0].losses + 7.0)  # later ones may be solved more or less exactly


@pytest.mark.slow
def test_a_unit_and_its_report(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order, "split", toy)
    monkeypatch.setattr(order, "chosen", lambda unit: None)
    units, settings = order.units(True), order.settings(True) | {"startup": 3, "iterations": 1}
    records = [{"unit": unit, "result": order.work(unit, settings), "seconds": 1.0} for unit in units]
    plain, both = (record["result"] for record in records)
    assert plain.keys() - {"parameters"} == {*order.variants(*np.zeros((2, 3, 1)), 0), order.PAPER.format(30)}
    assert both.keys() == {order.BOTH, "parameters"}
    for result in (plain[order.TABLE1], both[order.BOTH]):
        assert result["crossing_train"] <= 0.5  # the penalty is felt at the rows of the fit
        assert result["gap"] <= 1e-4
    assert plain["λ_nc = 100"]["crossing_train"] <= plain[order.TABLE1]["crossing_train"] + 1e-6
    files = order.report(records, results, settings)
    assert [path.name for path in files] == ["order.csv", "order.md"]
    page = files[1].read_text()
    assert page.count("| topo | ") == len(plain) - 1 + 3  # and as printed, chosen by both, and among the settings
    assert f"{plain[order.TABLE1]['pinball']:.1f} ± 0.0" in page


def test_the_sets_cross_more_than_printed() -> None:
    """Printed: crabs 0.0 ± 0.0, highway 0.1 ± 0.4, and topo 0.0 ± 0.0."""

    def row(name: str, method: str, crossing: str, box: str = "sigma") -> dict[str, str]:
        return {"dataset": name, "method": method, "crossing": crossing, "box": box}

    within = [row("crabs", "itl", "0.04"), row("highway", "itl_smallest", "0.54"), row("topo", "jqr", "9.0")]
    assert order.sets([*within, row("crabs", "itl", "9.0", "gamma")]) == []
    above = [row("topo", "itl_smallest", "0.06"), row("highway", "itl", "0.56"), row("highway", "itl_smallest", "9.0")]
    assert order.sets(within + above) == ["topo", "highway"]


def test_a_penalty_at_more_rows_weighs_the_training_rows_as_before() -> None:
    X = np.random.default_rng(0).uniform(size=(30, 1))
    for change in ("penalty between training rows too", "penalty at the test rows too"):
        changes = order.variants(X, X[:10] + 1.0, 0)[change]
        rows = len(changes["noncrossing_inputs"])
        assert rows > len(X)
        assert changes["noncrossing"] / rows == 1.0 / len(X)


def test_a_report_of_one_unit(results: Path) -> None:
    result = {"pinball": 3.0, "crossing": 0.2, "crossing_train": 0.0, "gap": 1e-5}
    unit = {"dataset": "topo", "split": 0, "criterion": order.BOTH}
    record = {"unit": unit, "result": {order.BOTH: result, "parameters": {}}}
    page = order.report([record], results, order.settings(True))[1].read_text()
    assert f"| topo | {order.BOTH} | 3.0 ± 0.0 | 0.20 ± 0.00 | 0.00 ± 0.00 |" in page
    assert "met on all these sets with: no variant" in page  # the printed crossing of topo is 0.0 ± 0.0


@each(
    ("changed", "sentence"),
    [
        (
            {"400 nodes": 0.4, "penalty at the test rows too": 0.02},
            "comes mostly from the rows at which the penalty acts.",
        ),
        ({"400 nodes": 0.1, "λ_nc = 100": 0.3}, "comes mostly from the number of nodes."),
        ({"λ_nc = 10": 0.2, "400 nodes": 0.5}, "comes mostly from the weight of the penalty."),
        ({"λ_nc = 10": 0.45, "400 nodes": 0.5}, "None removes more than 30% of it"),
    ],
)
def test_the_reason_follows_the_numbers(changed: dict[str, float], sentence: str) -> None:
    rows = [
        {"dataset": name, "variant": variant, "splits": 1, "pinball": 1.0, "crossing": crossing, "crossing_train": 0.01}
        for name in ("topo", "crabs")
        for variant, crossing in ({order.TABLE1: 0.5} | changed).items()
    ]
    printed = dict.fromkeys(("topo", "crabs"), dict.fromkeys(("itl_cross", "itl_cross_sd"), "0.0"))
    printed = {name: row | dict.fromkeys(("itl_pinball", "itl_pinball_sd"), "9.0") for name, row in printed.items()}
    text = " ".join(order._summary(rows, printed))
    assert "the crossing of Table 1's fits is 0.01 (median over the sets), at the test rows 0.50. With one" in text
    assert sentence in text


def test_sets_and_choices_are_those_of_the_folder_of_the_run(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert order.sets() == ["crabs"]
    (edges,) = (part for part in order._edges(["crabs"], order._of_table1("table1_parameters.csv")) if "|" in part)
    assert "| crabs | 7 | 3 | 3 | 3 | 3 | 3 | 3 |" in edges
    # tables that do not tell the boxes apart are no help
    monkeypatch.setattr(store, "PAGES", results)
    write_csv(results / "table1.csv", [{"dataset": "crabs", "method": "itl_smallest", "crossing": 9.0}])
    with pytest.raises(Failed, match=r"table1\.csv of Table 1 is needed, with a column box, .* --only sigma` first"):
        order.sets()
