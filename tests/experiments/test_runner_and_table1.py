"""Experiments: what is done is kept, whatever happens, and the tables say what the records hold."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from experiments import __main__ as command
from experiments import headline, pinball, table1, tuned
from experiments.data import quantile_sets
from experiments.runner import run
from experiments.store import Store, known
from experiments.tables import TARGETS, read_csv, settings_used
from infinitask.datasets import make_sine
from infinitask.kernels import RBF, Gaussian
from infinitask.measures import Uniform
from tests.support import toy_experiment
from tests.support.each import each

ROOT = Path(__file__).resolve().parents[2]
UNIT = {"name": "a", "split": 0}


# ---------------------------------------------------------------------------------------------------------- the store
def test_what_was_kept_is_found_again(tmp_path: Path) -> None:
    path = tmp_path / "units" / "x.jsonl"
    with Store(path, {"m": 3}).open() as store:
        store.add({"unit": UNIT, "result": {"value": 0.1}, "seconds": 1.0})
    with Store(path, {"m": 3}).open() as store:
        assert [record["result"] for record in store.records.values()] == [{"value": 0.1}]


def test_half_a_line_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    with Store(path, {}).open() as store:
        store.add({"unit": UNIT, "result": {}, "seconds": 1.0})
    whole = path.read_bytes()
    for cut in range(len(whole) - 1, len(whole) - 20, -1):  # a process may be killed in the middle of any line
        path.write_bytes(whole[:cut])
        with Store(path, {}).open() as store:
            assert not store.records
            store.add({"unit": UNIT, "result": {}, "seconds": 1.0})
        assert path.read_bytes() == whole


def test_results_of_other_settings_are_refused(tmp_path: Path) -> None:
    with Store(tmp_path / "x.jsonl", {"m": 3, "n": 1}).open():
        pass
    with pytest.raises(SystemExit, match=r"other settings \(m\)"), Store(tmp_path / "x.jsonl", {"m": 4, "n": 1}).open():
        pass


def test_two_runs_do_not_write_to_one_file(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    with Store(tmp_path / "x.jsonl", {}).open():
        other = (
            "import sys, pathlib; from experiments.store import Store\n"
            "with Store(pathlib.Path(sys.argv[1]), {}).open(): pass"
        )
        command = [sys.executable, "-c", other, str(tmp_path / "x.jsonl")]
        found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.returncode != 0
    assert "Another run is writing" in found.stderr


# --------------------------------------------------------------------------------------------------------- the runner
def toy(folder: Path, seconds: float) -> subprocess.Popen[bytes]:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(ROOT / "tests" / "support" / "toy_experiment.py"), str(folder), str(seconds)]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE)


@pytest.mark.slow
def test_a_run_that_is_killed_goes_on(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    uninterrupted = toy(whole, 0.0)
    _, said = uninterrupted.communicate(timeout=120)
    assert uninterrupted.returncode == 0, said
    units = killed / "units" / "toy.jsonl"
    seen = 0
    for _ in range(3):
        process = toy(killed, 0.3)
        deadline = time.monotonic() + 120.0
        while time.monotonic() < deadline:
            lines = units.read_bytes().count(b"\n") if units.exists() else 0
            if lines > seen + 1 or process.poll() is not None:
                break
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        now = units.read_bytes().count(b"\n")
        assert now > seen
        seen = now
    process = toy(killed, 0.3)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert (killed / "toy.csv").read_text() == (whole / "toy.csv").read_text()
    kept = known(units)
    assert len(kept) == len({json.dumps(record["unit"]) for record in kept}) == 12  # nothing was done twice


def test_a_unit_that_fails_does_not_take_the_others_along(tmp_path: Path) -> None:
    with pytest.raises(
        SystemExit, match=r"2 units failed; all others are kept:\n.*'split': 3.* and 1 others: .*no such split"
    ):
        run(toy_experiment.experiment(seconds=0.0, fails=3), tmp_path, quick=False, jobs=2)
    assert len(known(tmp_path / "units" / "toy.jsonl")) == 10
    assert len(read_csv(tmp_path / "toy.csv")) == 10  # a report of what is there


def test_other_experiments_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    whole = replace(toy_experiment.experiment(seconds=0.0), name="whole")
    kinds = {"table1": toy_experiment.experiment(seconds=0.0, fails=3), "table2": whole}
    monkeypatch.setattr(command, "experiment", lambda name: kinds[name])
    folders = ["--out", str(tmp_path), "--jobs", "1"]
    with pytest.raises(SystemExit, match=r"^Not all units could be done: table1\.$"):
        command.main(["table1", "table2", *folders])
    assert "toy: 2 units failed" in capsys.readouterr().err
    assert len(read_csv(tmp_path / "toy.csv")) == 12


def test_only_some_units(tmp_path: Path) -> None:
    run(toy_experiment.experiment(seconds=0.0), tmp_path, quick=False, jobs=1, only="b,4")
    assert [row["name"] + row["split"] for row in read_csv(tmp_path / "toy.csv")] == ["b4"]
    run(toy_experiment.experiment(seconds=0.0), tmp_path, quick=False, jobs=1, only="a|b,2|5")
    assert [row["name"] + row["split"] for row in read_csv(tmp_path / "toy.csv")] == ["a2", "b2", "b4", "a5", "b5"]
    with pytest.raises(SystemExit, match=r"No unit of toy has all words of --only c. There are: 0, 1, .*, a, b\."):
        run(toy_experiment.experiment(seconds=0.0), tmp_path, quick=False, jobs=1, only="c")


# --------------------------------------------------------------------------------------------------------- Table 1
def test_the_measures_of_table_1() -> None:
    y = np.array([0.0, 1.0])
    h = np.array([[0.0, 0.0, 0.0, 0.0, 0.0], [2.0, 1.0, 1.5, 1.0, 1.0]])
    # the first row is met; the second is missed at .1 by −1 and at .5 by −.5
    assert tuned.pinball(y, h) == pytest.approx(100 * (0.9 * 1.0 + 0.5 * 0.5) / 2)
    assert tuned.crossing(h) == pytest.approx(100 * (1.0 + 0.5) / 2)


@pytest.mark.quick("ind")
@pytest.mark.parametrize("method", [pytest.param("itl", marks=pytest.mark.slow), "jqr", "ind"])
def test_a_unit_of_table_1(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = make_sine(60, random_state=0)
    monkeypatch.setattr(table1, "split", lambda name, i: (X[::2], X[1::2], y[::2], y[1::2]))
    unit = {"dataset": "engel", "split": 0, "method": method, "box": "sigma"}
    settings = table1.settings(True) | {"startup": 4, "iterations": 2}
    found = table1.work(unit, settings)
    again = table1.work(unit, settings)
    for rule in headline.RULES:
        assert found[f"{method}{rule}"]["gap"] <= 1e-4
        assert found[f"{method}{rule}"] == again[f"{method}{rule}"]
        for name, value in found[f"{method}{rule}"]["parameters"].items():
            low, high = tuned.limits(name, "sigma")
            assert low - 1e-4 <= value <= high + 1e-4
    if method == "itl":
        assert found["itl_rearranged"]["crossing"] == 0.0


def test_the_continuum_of_table_1_is_that_of_the_supplement() -> None:
    X, y = make_sine(40, random_state=0)
    fitted = tuned.model("itl", {"gamma": 0.0, "task_gamma": 1.0, "lambda": -1.0}, len(y), tol=1e-2).fit(X, y)
    task = fitted.recipe_.task
    assert task.order.weight == 1.0
    assert str(task.measure) == str(Uniform(0.0, 1.0))
    assert fitted.recipe_.quadrature == "sobol"
    np.testing.assert_allclose(fitted.weights_, np.full(100, 0.01))
    assert str(fitted.task_kernel_) == str(Gaussian(gamma=10.0))
    assert str(fitted.kernel_) == str(RBF(gamma=1.0))
    assert fitted.recipe_.bias_kernel == "task"
    assert fitted.recipe_.alpha == fitted.recipe_.alpha_bias == pytest.approx(0.1 / len(y))


def test_the_box_of_sigma_is_that_of_gamma_for_the_kernel() -> None:
    """γ = 1/(2σ²) for σ = 1e-6 and 1e6."""
    low, high = tuned.limits("gamma", "sigma")
    assert 10.0**high == pytest.approx(0.5 / 1e-6**2)
    assert 10.0**low == pytest.approx(0.5 / 1e6**2)
    assert tuned.limits("lambda", "sigma") == tuned.limits("gamma", "gamma") == (-6.0, 6.0)


def test_the_choice_is_the_simplest_of_the_good_ones() -> None:
    X, y = make_sine(40, random_state=0)

    def trial(gamma: float, losses: list[float]) -> tuned.Trial:
        return tuned.Trial({"gamma": gamma, "task_gamma": 0.0, "lambda": -2.0}, np.array(losses))

    narrow = trial(2.0, [10.0, 11.0, 12.0, 10.0, 11.0])
    wide = trial(-1.0, [11.0, 10.0, 12.5, 10.0, 11.0])  # worse by 0.1, with a standard error of 0.4
    bad = trial(-4.0, [20.0, 21.0, 22.0, 20.0, 21.0])
    assert tuned.best([wide, narrow, bad]) is narrow
    assert tuned.one_se([wide, narrow, bad], "itl", X, y) is wide
    dimension = [tuned.effective_dimension("itl", t.parameters, X, y) for t in (narrow, wide, bad)]
    assert dimension[0] > dimension[1] > dimension[2]


def records_of_crabs() -> list[dict[str, Any]]:
    """Six splits of one set, with random losses."""
    rng = np.random.default_rng(0)
    records: list[dict[str, Any]] = []
    for i in range(6):
        for method in ("itl", "jqr", "ind"):
            result: dict[str, Any] = {"tuning_seconds": 1.0}
            for name in (method, f"{method}_smallest", *(["itl_rearranged"] if method == "itl" else [])):
                result[name] = {"pinball": float(rng.random()), "crossing": float(rng.random()), "gap": 1e-5}
                result[name]["parameters"] = {"gamma": -1.0 * i, "lambda": 6.0 if i < 2 else 2.0}
                if method != "ind":
                    result[name]["parameters"]["task_gamma"] = 3.0
            unit = {"dataset": "crabs", "split": i, "method": method, "box": "sigma"}
            records.append({"unit": unit, "result": result, "seconds": 2.0})
    return records


def test_the_table_is_that_of_the_records(tmp_path: Path) -> None:
    records = records_of_crabs()
    files = table1.report(records, tmp_path, table1.settings(True))
    rows = {row["method"]: row for row in read_csv(files[0])}
    assert {row["splits"] for row in rows.values()} == {"6"}
    for rule in headline.RULES:
        values = {
            method: [r["result"][f"{method}{rule}"]["pinball"] for r in records if f"{method}{rule}" in r["result"]]
            for method in ("itl", "jqr")
        }
        assert float(rows[f"itl{rule}"]["pinball"]) == pytest.approx(np.mean(values["itl"]), rel=1e-5)
        assert float(rows[f"itl{rule}"]["pinball_sd"]) == pytest.approx(np.std(values["itl"]), rel=1e-5)
        theirs = mannwhitneyu(values["itl"], values["jqr"], alternative="two-sided").pvalue
        assert float(rows[f"jqr{rule}"]["p_pinball"]) == pytest.approx(theirs, rel=1e-4)
    chosen = {row["method"]: row for row in read_csv(files[1])}
    assert (chosen["itl_smallest"]["gamma"], chosen["itl_smallest"]["gamma_q25"]) == ("-2.5", "-3.75")
    assert (chosen["jqr"]["task_gamma"], chosen["ind"]["task_gamma"], chosen["ind"]["lambda"]) == ("3", "", "2")
    assert (chosen["ind"]["lambda_low"], chosen["ind"]["lambda_high"], chosen["ind"]["gamma_high"]) == ("0", "2", "0")
    page = files[-1].read_text()
    assert page.count("| crabs |") == 5  # two measures by two rules, and the times
    assert "13 ± 3" in page  # as printed
    assert "by the clock (wall clock)" in page
    assert "The box of σ, as printed: 18 of 1200 units are done, at least 0 splits of every set and method." in page
    assert "The box of γ, as in the authors' programs, was not run." in page
    assert "| box | [1e-6, 1e6] for σ | printed: for σ;" in page
    assert "| rules | one standard error, smallest loss | " in page
    assert "; box of" not in page
    assert "\n| ∞-QR, smallest loss, the paper's rule | 6 | " in page
    assert "\n| data set | ∞-QR | JQR | IND |\n" in page
    assert "if every unit took the median of its set and method, it would be 0.0 hours" in page
    for name in table1.settings(False):
        assert f"\n| {name} | " in page


def test_every_setting_needs_an_origin() -> None:
    assert "| m | 3 | printed |" in settings_used({"m": 3}, {"m": "printed"})
    with pytest.raises(ValueError, match="The settings m need an origin"):
        settings_used({"m": 3}, {"m": "somewhere"})
    with pytest.raises(ValueError, match="The settings m need an origin"):
        settings_used({"m": 3}, {})


def test_a_quick_run_marks_what_it_reduces(tmp_path: Path) -> None:
    """A page whose settings have origins must not call a reduced value printed."""

    def settings(quick: bool) -> dict[str, Any]:
        return pinball.EXPERIMENT.settings(quick) | {"points": 31 if quick else 301}

    drawn = replace(pinball.EXPERIMENT, settings=settings)
    page = run(drawn, tmp_path, quick=True, jobs=1)[-1].read_text(encoding="utf-8")
    assert "\nThis is a quick run" in page
    assert "| points | 31 | reduced |" in page
    assert "| theta | 0.8 | printed |" in page
    assert "| quick |" not in page
    plain = settings_used(settings(True) | {"quick": True, "reduced": ["points"]})
    assert plain.endswith(" Settings: theta = 0.8, reach = 1.5, points = 31 (reduced).")
    full = settings_used(settings(False), pinball.ORIGINS)
    assert "quick" not in full
    assert "| points | 301 | ours |" in full


def test_the_ridge_of_the_bias_does_not_hang_on_a_default() -> None:
    assert tuned.model("itl", {"gamma": 0.0, "task_gamma": 0.0, "lambda": -1.0}, 50).alpha_bias == 0.1 / 50


# ---------------------------------------------------------------------------------------------------- the headline
def test_sets_are_counted_in_both_directions() -> None:
    found = headline.count({"a": (1.0, 2.0, 0.001), "b": (1.0, 2.0, 0.5), "c": (2.0, 1.0, 0.001), "d": (1.0, 1.0, 1.0)})
    assert (found.lower, found.equal, found.higher) == (2, 1, 1)
    assert (found.surely_lower, found.surely_higher) == (("a",), ("c",))


@each(
    ("ours", "lower", "higher"),
    [(0.0, 2, 0), (1.0, 0, 2), (0.5, 0, 0)],
    ids=["fewer", "more", "equal"],
)
def test_the_headline_says_what_the_records_hold(ours: float, lower: int, higher: int) -> None:
    """The other two cross by 0.5 on average; ∞-QR by ``ours``."""
    names = ["crabs", "mcycle"]
    records = [
        {
            "unit": {"dataset": name, "split": i, "method": method, "box": "sigma"},
            "result": {
                f"{method}{rule}": {
                    "pinball": 1.0 + 0.01 * i,
                    "crossing": (0.5 if method != "itl" else ours) + 0.01 * (i % 5),
                }
                for rule in headline.RULES
            },
            "seconds": 1.0,
        }
        for name in names
        for i in range(20)
        for method in ("itl", "jqr", "ind")
    ]
    printed = {row["dataset"]: row for row in read_csv(TARGETS / "table1.csv")}
    text = headline.headline(records, printed, {"sigma": names})
    counted = f"lower on {lower} of 2, significantly on {lower}, higher on {higher}, significantly on {higher}"
    for other, claimed, marked, higher_ones in (("JQR", 2, 2, 1), ("IND", 11, 12, 0)):
        assert (
            f"Fewer crossings than {other}: the text claims {claimed} sets, the table marks "
            f"{marked} with a lower mean and {higher_ones} with a higher one. Ours, smallest loss, the paper's rule: "
            f"{counted}; one standard error: {counted}."
        ) in text
    equal = "significantly better on none, worse on none"
    assert (f"Pinball loss beside JQR: smallest loss, the paper's rule: {equal}; one standard error: {equal}.") in text
    # claims, printed numbers and ours stand in one table
    assert "\n| JQR | pinball | claimed in the paper's text |  |  |  | none | 2: crabs, cpus |\n" in text
    assert "\n| JQR | crossing | claimed in the paper's text |  |  |  | 2 | not said |\n" in text
    assert "\n| IND | crossing | claimed in the paper's text |  |  |  | 11 | not said |\n" in text
    assert text.count(" | printed in its table | ") == 4
    assert text.count("| ours, smallest loss, the paper's rule | ") == 4
    both = [record | {"unit": record["unit"] | {"box": box}} for record in records for box in headline.BOXES]
    text = headline.headline(both, printed, dict.fromkeys(headline.BOXES, names))
    assert text.count("ours, one standard error; box of γ, as in the authors' programs |") == 4
    assert "Pinball loss beside JQR (box of σ, as printed): " in text


def test_all_of_table_1_is_there() -> None:
    units = table1.units(False)
    assert len(units) == 2 * 20 * 20 * 3
    assert {unit["dataset"] for unit in units} == set(quantile_sets())


def test_the_documentation_tells_the_headline_of_the_records() -> None:
    """docs/reproduction.md repeats the counts in words."""
    records = known(ROOT / "experiments" / "units" / "table1.jsonl")
    if not records:
        pytest.skip("the units of Table 1 are not here")
    text = " ".join((ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8").split())
    for sentence in headline.in_words(records, quantile_sets(), "sigma"):
        assert sentence in text


def test_the_counts_in_words_are_those_of_the_records() -> None:
    """∞-QR crosses less than JQR on both sets, and more than IND; it loses on mcycle by one rule."""
    records = [
        {
            "unit": {"dataset": name, "split": i, "method": method, "box": "sigma"},
            "result": {
                f"{method}{rule}": {
                    "pinball": 1.0 + 0.01 * i + (rule == "" and (method, name) == ("itl", "mcycle")),
                    "crossing": 1.0 + 0.01 * i + {"itl": 0.0, "jqr": 1.0, "ind": -1.0}[method],
                }
                for rule in headline.RULES
            },
            "seconds": 1.0,
        }
        for name in ("crabs", "mcycle")
        for i in range(20)
        for method in ("itl", "jqr", "ind")
    ]
    assert headline.in_words(records, ["crabs", "mcycle"], "sigma") == [
        "By pinball loss ∞-QR is better than JQR beyond chance on 0 sets by the paper's rule, and worse on 0; by one "
        "standard error these are 0 and 1.",
        "Against JQR, ∞-QR crosses less on 2 sets by the paper's rule, on 2 of them beyond chance, and more on 0, on 0 "
        "beyond chance; by one standard error these are 2, 2, 0 and 0.",
        "By pinball loss ∞-QR is better than IND beyond chance on 0 sets by the paper's rule, and worse on 0; by one "
        "standard error these are 0 and 1.",
        "Against IND, ∞-QR crosses less on 0 sets by the paper's rule, on 0 of them beyond chance, and more on 2, on 2 "
        "beyond chance; by one standard error these are 0, 0, 2 and 2.",
    ]
