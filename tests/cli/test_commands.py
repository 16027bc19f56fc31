"""Commands from the first word to the last: what they write, what they say, and how they end."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from infinitask import cli
from infinitask.cli import _app, _models
from infinitask.cli._models import rows_of
from infinitask.cli._output import SHOW_TRACEBACKS, CommandError, Screen
from infinitask.cli._search import fitted
from infinitask.cli._tables import read_table
from infinitask.cli._targets import Task
from tests.support.mixed_tables import mixed_table

Run = Callable[..., Any]


def wrong(done: Any) -> str:
    """The one sentence with which a command failed."""
    assert done.exit_code == 1, done.output
    assert done.stdout == "" or "page" not in done.stdout
    assert "Traceback" not in done.output
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error ")]
    return line


# ------------------------------------------------------------------------------------------------- tasks
def test_the_task_is_guessed_from_the_target(houses: Path, loans: Path) -> None:
    prices, paid = read_table(houses), read_table(loans)
    guessed = [
        (rows_of(prices, "price", None, []), Task.QUANTILE, "price holds numbers"),
        (rows_of(prices, "garden", None, []), Task.COST, "garden has two values"),
        (rows_of(paid, "paid", None, []), Task.COST, "paid has two values"),
        (rows_of(paid, None, None, []), Task.LEVEL_SET, "no target was named"),
    ]
    for rows, task, reason in guessed:
        assert (rows.task, rows.reason) == (task, reason)
    assert rows_of(prices, "garden", Task.QUANTILE, []).y.dtype == np.float64


def test_rows_without_a_target_are_dropped_with_a_note(houses: Path) -> None:
    table = read_table(houses)
    rows = rows_of(table, "price", None, ["note"])
    known = table.frame["price"].notna()
    pd.testing.assert_series_equal(rows.y, table.frame["price"][known].reset_index(drop=True))
    assert list(rows.X.columns) == [name for name in table.frame.columns if name not in ("price", "note")]
    assert rows.notes == ["2 of 160 rows have no 'price'; they are left out."]


def test_level_sets_leave_texts_out_and_say_so(houses: Path) -> None:
    rows = rows_of(read_table(houses), None, None, [])
    assert "note" not in rows.X.columns
    assert any("note" in note for note in rows.notes)
    assert "note" in rows_of(read_table(houses), "price", None, []).X.columns


def test_whole_numbers_with_holes_are_two_classes(tmp_path: Path) -> None:
    X, y = mixed_table(60)
    case = (y > y.median()).astype(float)
    case[4] = np.nan
    X.assign(case=case).to_csv(tmp_path / "data.csv", index=False)
    rows = rows_of(read_table(tmp_path / "data.csv"), "case", None, [])
    assert rows.task is Task.COST
    assert set(rows.y.unique()) == {0, 1}


def test_targets_of_parquet_files_have_plain_types(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install infinitask[parquet]")
    X, y = mixed_table(60)
    high = y > y.median()
    given = {
        "whole": (pd.array(high.astype(int), dtype="Int64"), {0, 1}),
        "yes": (pd.array(high, dtype="boolean"), {False, True}),
        "holes": (high.astype(object).where(y > y.min(), None), {False, True}),
        "kind": (pd.Categorical(high.map({True: "b", False: "a"})), {"a", "b"}),
    }
    X.assign(**{name: values for name, (values, _) in given.items()}).to_parquet(tmp_path / "data.parquet")
    table = read_table(tmp_path / "data.parquet")
    for name, (_, labels) in given.items():
        rows = rows_of(table, name, None, [])
        assert rows.task is Task.COST
        assert set(rows.y.tolist()) == labels
        assert isinstance(rows.y.dtype, np.dtype)
    X.assign(tags=[[1, 2]] * 60).to_parquet(tmp_path / "lists.parquet")
    with pytest.raises(CommandError, match=r"'tags' .* holds lists"):
        rows_of(read_table(tmp_path / "lists.parquet"), None, None, [])


def test_intervals_of_a_model_that_does_not_tune_itself_are_conformal(houses: Path) -> None:
    rows = rows_of(read_table(houses), "price", None, [])
    screen = Screen(as_json=True)
    model = fitted(rows, False, 0, screen)
    assert model.target_name_ == "price"
    assert _models.calibration(model, Task.QUANTILE) == "intervals are conformal, by rows kept aside"
    few = _models.Rows(rows.task, rows.X[:60], rows.y[:60], "price", "")
    assert _models.calibration(fitted(few, False, 0, screen), Task.QUANTILE) == "nothing was calibrated"
    assert any("too few rows to calibrate" in note for note in screen.notes)


@pytest.mark.slow
def test_models_that_tune_themselves_say_how_they_are_calibrated(houses: Path, loans: Path) -> None:
    screen = Screen(as_json=True)
    quantiles = fitted(rows_of(read_table(houses), "price", None, []), True, 0, screen)
    assert _models.calibration(quantiles, Task.QUANTILE) == "levels were calibrated on held-out rows"
    rows = rows_of(read_table(loans), "paid", None, [])
    costs = fitted(rows, True, 0, screen)
    assert _models.calibration(costs, Task.COST) == "decisions were calibrated on held-out rows"
    assert costs.roc_curve(rows.X, rows.y).area > 0.8


# ------------------------------------------------------------------------------------------------- errors
def test_errors_of_data_are_one_sentence(run: Run, houses: Path, tmp_path: Path) -> None:
    X, y = mixed_table(40)
    page = ["-o", tmp_path / "page.html"]

    def of(frame: Any, *words: Any) -> str:
        frame.to_csv(tmp_path / "data.csv", index=False)
        return wrong(run("report", tmp_path / "data.csv", *words, *page))

    assert "no file" in wrong(run("report", tmp_path / "none.csv", *page))
    assert "Did you mean price?" in wrong(run("report", houses, "--target", "Prices", *page))
    assert "between two classes, and city has 3" in wrong(run("report", houses, "-t", "city", *page))
    assert "quantiles need numbers" in wrong(run("report", houses, "-t", "city", "--task", "quantile", *page))
    assert "at most 20 classes" in wrong(run("report", houses, "-t", "price", "--task", "cost", *page))
    assert "needs a target" in wrong(run("report", houses, "--task", "quantile", *page))
    assert "no column 'id' to ignore" in wrong(run("report", houses, "--ignore", "id", *page))
    assert "in all rows; there is nothing to learn" in wrong(run("report", houses, "-t", "same", *page))
    assert "missing in all rows" in of(X.assign(y=np.nan), "-t", "y")
    assert "are constant" in of(pd.DataFrame({"a": [1.0] * 40, "b": ["x"] * 40, "y": y}), "-t", "y")
    assert "no columns besides the target" in of(pd.DataFrame({"y": y}), "-t", "y")
    assert "at least 20 are needed" in of(X[:12].assign(y=y[:12]), "-t", "y")
    assert "Only 2 rows have y = 1" in of(X.assign(y=[1, 1] + [0] * 38), "-t", "y")
    assert "infinite" in of(X.assign(y=y.where(y > y.min(), np.inf)), "-t", "y")
    assert "no folder" in wrong(run("report", houses, "-t", "price", "-o", tmp_path / "no" / "page.html"))
    assert "is a folder" in wrong(run("report", houses, "-t", "price", "-o", tmp_path))
    assert not (tmp_path / "page.html").exists()


def test_a_wrong_call_ends_with_two(run: Run, houses: Path) -> None:
    for words in (
        ["report"],
        ["report", houses, "--task", "cluster"],
        ["report", houses, "--test-share", "2"],
        ["report", "model.infinitask"],
        ["predict", "model.infinitask", houses, "--quantiles", "a,b"],
        ["predict", "model.infinitask", houses, "--quantiles", ","],
        ["predict", "model.infinitask", houses, "--quantiles", "0.5,90"],
        ["predict", "model.infinitask", houses, "--theta", "-2"],
        ["predict", "model.infinitask", houses, "-o", "predictions.xlsx"],
        ["dance"],
    ):
        done = run(*words)
        assert done.exit_code == 2, words
        assert "Traceback" not in done.output


def test_an_interrupt_ends_with_130(run: Run, houses: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(_app, "held_out", interrupted)
    done = run("report", houses, "--target", "price", "-o", tmp_path / "page.html")
    assert done.exit_code == 130
    assert "Interrupted" in done.stderr
    assert not (tmp_path / "page.html").exists()


def test_an_interrupt_outside_of_a_command_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(**_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("infinitask.cli._app.app", interrupted)
    assert cli.main(["info", "model.infinitask"]) == 130


def test_tracebacks_are_there_for_those_who_ask(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SHOW_TRACEBACKS, "1")
    assert "no file" in str(run("report", tmp_path / "none.csv").exception)


def test_without_typer_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name in [name for name in sys.modules if name.startswith("infinitask.cli.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "typer", None)
    assert cli.main(["--help"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "The command line needs typer and rich: pip install infinitask[cli]\n"


def test_main_returns_how_it_ended(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    assert "report" in capsys.readouterr().out
    assert cli.main(["dance"]) == 2


def test_a_process_of_its_own(houses: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "infinitask", "report", str(houses), "--target", "prize"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, encoding="utf-8", check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.splitlines()[-1] == f"error {houses} has no column 'prize'. Did you mean price?"


def test_the_demo_is_the_demo(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from infinitask import demo

    asked: list[Any] = []
    monkeypatch.setattr(demo, "main", lambda words: asked.append(words) or 1)
    assert run("demo", "--quick", "--output", "figures").exit_code == 1
    assert asked == [["--quick", "--output", "figures"]]


# -------------------------------------------------------------------------------------------------- pages
def test_one_command_makes_a_page(run: Run, houses: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = run("report", houses, "--target", "price", "--no-tune", "--title", "Houses & <prices>", "-o", page)
    assert done.exit_code == 0, done.output
    assert "160 rows, 8 columns, CSV with commas" in done.stdout
    assert "quantile (price holds numbers)" in done.stdout
    assert "2 of 160 rows have no 'price'" in done.stderr
    assert "missingindicator_area" in done.stdout
    assert "on 40 rows held out" in done.stdout
    text = page.read_text(encoding="utf-8")
    assert "<html" in text
    assert "prices" in text


@pytest.mark.parametrize("task", ["cost", "level-set"])
@pytest.mark.slow
def test_pages_of_other_tasks_and_what_is_said_as_json(run: Run, loans: Path, tmp_path: Path, task: str) -> None:
    words = ["--target", "paid", "--no-tune"] if task == "cost" else ["--ignore", "paid"]
    done = run("report", loans, *words, "--json", "-o", tmp_path / "page.html")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["task"] == task
    assert (found["rows"], found["fitted_rows"], found["held_out_rows"]) == (160, 120, 40)
    assert {part["name"]: part["kind"] for part in found["columns"]} == {
        "area": "number",
        "rooms": "number",
        "city": "category",
        "garden": "yes/no",
        "sold": "date",
        "same": "number",
    }
    assert found["dual_gap"] <= 1e-4
    assert found["bytes"] == (tmp_path / "page.html").stat().st_size
    if task == "cost":
        assert found["evaluation"]["roc_area"] > 0.8
    else:
        assert [part["asked"] for part in found["evaluation"]["unusual"]] == [0.05, 0.1, 0.2, 0.5]


@pytest.mark.slow
def test_a_page_by_a_process_of_its_own(houses: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "infinitask", "report", str(houses), "-t", "price"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "report.html").stat().st_size > 100_000


# ------------------------------------------------------------------------------------------------- models
def test_predictions_of_quantiles_have_names(run: Run, saved: dict[str, Path], houses: Path, tmp_path: Path) -> None:
    from infinitask.persistence import load

    out = tmp_path / "out.csv"
    done = run("predict", saved["quantile"], houses, "--quantiles", "0.05,0.5", "--coverage", "0.9", "-o", out)
    assert done.exit_code == 0, done.output
    written, model, table = pd.read_csv(out), load(saved["quantile"]), read_table(houses).frame
    assert list(written.columns) == ["price_q0.05", "price_q0.5", "price_low_0.9", "price_high_0.9"]
    np.testing.assert_allclose(written.iloc[:, :2], model.predict(table.drop(columns="price"), quantiles=[0.05, 0.5]))
    np.testing.assert_allclose(written.iloc[:, 2:], model.predict_interval(table.drop(columns="price"), coverage=0.9))


def test_predictions_on_standard_output(run: Run, saved: dict[str, Path], loans: Path) -> None:
    done = run("predict", saved["cost"], loans, "--fn-cost", "9", "--fp-cost", "1")
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0] == "paid,probability_yes"
    assert len(lines) == 161
    found = json.loads(run("predict", saved["cost"], loans, "--theta", "-0.5,0.5", "--json").stdout)
    assert found["columns"] == ["paid_theta_-0.5", "paid_theta_0.5", "probability_yes"]
    assert len(found["predictions"]) == 160


def test_predictions_as_parquet_with_the_columns_of_the_table(
    run: Run, saved: dict[str, Path], loans: Path, tmp_path: Path
) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install infinitask[parquet]")
    out = tmp_path / "out.parquet"
    assert run("predict", saved["level-set"], loans, "--nu", "0.1,0.3", "--with-inputs", "-o", out).exit_code == 0
    written = pd.read_parquet(out)
    assert list(written.columns) == [*read_table(loans).frame.columns, "unusual_0.1", "unusual_0.3", "p_value"]
    assert written["unusual_0.3"].mean() == pytest.approx(0.3, abs=0.15)
    both = run("predict", saved["cost"], loans, "--with-inputs").stdout.splitlines()[0]
    assert both.endswith("paid,paid_predicted,probability_yes")


def test_columns_may_stand_in_any_order_and_others_beside_them(
    run: Run, saved: dict[str, Path], houses: Path, tmp_path: Path
) -> None:
    table = read_table(houses).frame
    table[table.columns[::-1]].assign(more=1).to_csv(tmp_path / "new.csv", index=False, sep=";")
    assert (
        run("predict", saved["quantile"], tmp_path / "new.csv").stdout
        == run("predict", saved["quantile"], houses).stdout
    )
    table.drop(columns="area").rename(columns={"rooms": "Rooms"}).to_csv(tmp_path / "less.csv", index=False)
    assert "no column 'area', which the model was fitted to" in wrong(
        run("predict", saved["quantile"], tmp_path / "less.csv")
    )


def test_questions_for_another_task_are_refused(run: Run, saved: dict[str, Path], houses: Path, loans: Path) -> None:
    said = wrong(run("predict", saved["quantile"], houses, "--nu", "0.1"))
    assert "it takes --quantiles or --coverage" in said
    assert "give both" in wrong(run("predict", saved["cost"], loans, "--fn-cost", "2"))
    assert "give one of them" in wrong(
        run("predict", saved["cost"], loans, "--theta", "0", "--fn-cost", "2", "--fp-cost", "1")
    )
    assert "Costs of errors" in wrong(run("evaluate", saved["quantile"], houses, "--fn-cost", "2", "--fp-cost", "1"))


def test_an_evaluation(run: Run, saved: dict[str, Path], houses: Path, loans: Path, tmp_path: Path) -> None:
    found = json.loads(run("evaluate", saved["quantile"], houses, "--json").stdout)
    assert (found["target"], found["rows"]) == ("price", 158)
    assert found["evaluation"]["explained"] > 0.5
    assert [part["asked"] for part in found["evaluation"]["intervals"]] == [0.5, 0.8, 0.9, 0.95]
    costs = json.loads(run("evaluate", saved["cost"], loans, "--fn-cost", "9", "--fp-cost", "1", "--json").stdout)
    assert costs["evaluation"]["theta"] == 0.8
    assert costs["evaluation"]["mean_cost"] < 0.5
    done = run("evaluate", saved["level-set"], loans)
    assert "outside, 10% asked" in done.stdout
    read_table(loans).frame.rename(columns={"paid": "back"}).to_csv(tmp_path / "other.csv", index=False)
    assert "no column 'paid', the target" in wrong(run("evaluate", saved["cost"], tmp_path / "other.csv"))
    assert run("evaluate", saved["cost"], tmp_path / "other.csv", "--target", "back").exit_code == 0


def test_what_a_model_is(run: Run, saved: dict[str, Path]) -> None:
    found = json.loads(run("info", saved["quantile"], "--json").stdout)
    assert (found["task"], found["target"]) == ("quantile", "price")
    assert found["columns"] == ["area", "rooms", "city", "garden", "sold", "note", "same"]
    assert found["relevance"][0]["input"] == "area"
    shown = run("info", saved["cost"]).stdout
    assert "no, yes" in shown
    assert "decisions were calibrated on held-out rows" in shown


def test_what_became_of_the_columns_is_saved_with_the_model(run: Run, saved: dict[str, Path], houses: Path) -> None:
    from infinitask.persistence import load

    table, known = read_table(houses).frame, load(saved["quantile"]).learnt_from_
    assert (known["file"], known["rows"], known["format"]) == (houses.name, 158, "CSV with commas")
    columns = {part["name"]: part for part in known["columns"]}
    used = table[table["price"].notna()]
    assert {name: part["missing"] for name, part in columns.items()} == used.isna().sum().drop("price").to_dict()
    assert columns["area"]["missing"] > 0
    assert columns["area"]["filled"] == pytest.approx(used["area"].median(), rel=0.05)  # of the rows of the fit
    assert columns["city"]["categories"] == ["Lima", "Oslo", "Rome"]
    found = json.loads(run("info", saved["quantile"], "--json").stdout)
    assert found["encoding"] == known["columns"]
    shown = [line.split() for line in run("info", saved["quantile"]).stdout.splitlines()]
    assert ["column", "kind", "missing", "filled", "with", "becomes"] in shown
    (area,) = [line for line in shown if line[:2] == ["area", "number"]]
    assert int(area[2]) == columns["area"]["missing"]
    assert str(houses.parent) not in str(known)  # where the file was is nobody's business


@pytest.mark.slow
def test_a_page_of_a_saved_model(run: Run, saved: dict[str, Path], houses: Path, loans: Path, tmp_path: Path) -> None:
    done = run("report", saved["quantile"], houses, "--json", "-o", tmp_path / "page.html")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["rows"] == 158
    unlabelled = tmp_path / "new.csv"
    read_table(loans).frame.drop(columns="paid").to_csv(unlabelled, index=False)
    assert run("report", saved["cost"], unlabelled, "-o", tmp_path / "page.html").exit_code == 0
    assert run("report", saved["level-set"], loans, "-o", tmp_path / "page.html").exit_code == 0


def test_a_file_that_is_no_model_is_said(run: Run, files_of_models: None, houses: Path, tmp_path: Path) -> None:
    assert "with a model" in wrong(run("info", tmp_path / "none.infinitask"))
    wrong(run("info", houses))


def test_a_file_that_is_read_is_never_written(run: Run, houses: Path, saved: dict[str, Path], tmp_path: Path) -> None:
    table = tmp_path / "mine.csv"
    table.write_bytes(houses.read_bytes())
    before = table.read_bytes()
    model = saved["quantile"]
    kept = model.read_bytes()
    calls = [
        ["report", str(table), "--target", "price", "-o", str(table)],
        ["fit", str(table), "--target", "price", "-o", str(table.parent / "." / table.name)],
        ["predict", str(model), str(table), "-o", str(table)],
        ["predict", str(model), str(table), "-o", str(model)],
        ["report", str(model), str(table), "-o", str(model)],
    ]
    for call in calls:
        done = run(*call)
        assert done.exit_code == 1
        assert "would be lost" in done.stderr
    assert table.read_bytes() == before
    assert model.read_bytes() == kept


def test_info_names_kernels_with_the_kernels_inside(run: Run, saved: dict[str, Path]) -> None:
    described = run("info", saved["quantile"])
    assert "Scaled(RBF)" in described.stdout
    assert json.loads(run("info", saved["quantile"], "--json").stdout)["kernel_name"] == "Scaled(RBF)"


def test_nothing_is_half_written(run: Run, saved: dict[str, Path], houses: Path, tmp_path: Path) -> None:
    done = run("predict", str(saved["quantile"]), str(houses), "-o", str(tmp_path / "out.csv"))
    assert done.exit_code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]


def test_what_only_a_fit_decides_is_refused_beside_a_saved_model(
    run: Run, saved: dict[str, Path], houses: Path, tmp_path: Path
) -> None:
    for option in (["--no-tune"], ["--test-share", "0.5"], ["--seed", "3"], ["--ignore", "area"]):
        done = run("report", str(saved["quantile"]), str(houses), *option, "-o", str(tmp_path / "page.html"))
        assert done.exit_code == 1
        assert option[0].replace("no-", "") in done.stderr


def test_dates_of_a_file_are_dates_of_the_page(run: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 500, 120), "D")
    table = pd.DataFrame({"area": rng.uniform(20, 90, 120), "sold": days.strftime("%d/%m/%Y")})
    table["price"] = table["area"] + rng.normal(size=120)
    table.to_csv(tmp_path / "houses.csv", index=False)
    done = run("report", str(tmp_path / "houses.csv"), "-t", "price", "--no-tune", "-o", str(tmp_path / "page.html"))
    assert done.exit_code == 0, done.output
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    data = json.loads(re.search(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL)[1])
    sold = next(column for column in data["columns"] if column["name"] == "sold")
    assert sold["kind"] == "number"
    assert sold["date"]


def test_the_version_is_said(run: Run) -> None:
    done = run("--version")
    assert done.exit_code == 0
    assert done.stdout.startswith("infinitask ")
