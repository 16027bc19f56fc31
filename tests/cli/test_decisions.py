"""Which class is the positive one, what its decisions cost, and which fractions level sets learn."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from infinitask import load
from infinitask.cli._models import MODELS, rows_of, smallest_fraction
from infinitask.cli._output import CommandError, Screen
from infinitask.cli._search import fitted
from infinitask.cli._steps import announce
from infinitask.cli._tables import read_table
from infinitask.cli._targets import Task, positive_of
from infinitask.report import explore

Run = Callable[..., Any]


def wrong(done: Any) -> str:
    assert done.exit_code == 1, done.output
    return str(done.stderr)


# --------------------------------------------------------------------------------------------- the positive class
@pytest.mark.parametrize(
    ("labels", "wanted", "positive"),
    [
        (["ok"] * 3 + ["fraud"], None, "fraud"),
        (["ok"] + ["fraud"] * 3, None, "ok"),
        (["ok"] * 3 + ["fraud"], "ok", "ok"),
        (["yes", "no"], None, "yes"),  # as frequent: as in the library
        ([1, 1, 0], None, 0),
        ([1, 1, 0], "1", 1),
        ([1, 1, 0], "1.0", 1),
        ([1.5, 0.5, 0.5], "0.5", 0.5),
        ([True, True, False], None, False),
        ([True, True, False], "true", True),
    ],
)
def test_the_positive_class_is_the_named_or_the_rarer_one(labels: list[Any], wanted: str | None, positive: Any) -> None:
    assert positive_of(pd.Series(labels, name="y"), wanted) == positive


def test_a_label_that_is_not_there_is_refused(run: Run, payments: Path, houses: Path) -> None:
    with pytest.raises(CommandError, match="status holds 'fraud' and 'ok'; name one of these"):
        rows_of(read_table(payments), "status", None, [], "frauds")
    assert "only costs have a positive class" in wrong(run("fit", houses, "-t", "price", "--positive", "1"))


def test_a_model_keeps_the_labels_and_gives_the_named_one_the_probability(payments: Path) -> None:
    """The two choices are one problem, mirrored: P(fraud) = 1 − P(ok) up to the accuracy of the fits."""
    table, screen = read_table(payments), Screen(as_json=True)
    table = table._replace(frame=table.frame[:100])
    by_label = {label: fitted(rows_of(table, "status", None, [], label), False, 0, screen) for label in ("fraud", "ok")}
    X = table.frame.drop(columns="status")
    for label, model in by_label.items():
        other = "ok" if label == "fraud" else "fraud"
        assert model.classes_.tolist() == [other, label]
        assert set(model.predict(X)) <= {"fraud", "ok"}
        assert set(model.predict(X, theta=1.0)) == {label}  # an alarm for all
        assert model.positive_share_ == pytest.approx(np.mean(table.frame["status"] == label))
    fraud, ok = (by_label[label].predict_proba(X)[:, 1] for label in ("fraud", "ok"))
    np.testing.assert_allclose(fraud, 1.0 - ok, atol=0.05)
    assert np.corrcoef(fraud, table.frame["status"] == "fraud")[0, 1] > 0.4


@pytest.mark.slow
def test_a_model_that_tunes_itself_keeps_the_labels_too(payments: Path, tmp_path: Path) -> None:
    from infinitask import save

    table = read_table(payments)
    model = fitted(rows_of(table, "status", None, []), True, 0, Screen(as_json=True))
    save(model, tmp_path / "model.infinitask")
    again, X = load(tmp_path / "model.infinitask"), table.frame.drop(columns="status")
    assert again.classes_.tolist() == ["ok", "fraud"]
    assert again.roc_curve(X, table.frame["status"].to_numpy(dtype=object)).area > 0.8
    np.testing.assert_array_equal(again.predict(X, theta=0.5), model.predict(X, theta=0.5))


def test_every_command_says_which_class_is_positive(run: Run, fraud: Path, payments: Path) -> None:
    for words in (["predict", fraud, payments], ["evaluate", fraud, payments]):
        assert "fraud is the positive class, " in run(*words).output
    shown = run("info", fraud).stdout
    assert "positive class" in shown
    assert "% of the rows of the fit" in shown
    assert json.loads(run("info", fraud, "--json").stdout)["positive"] == "fraud"
    assert json.loads(run("predict", fraud, payments, "--json").stdout)["positive"] == "fraud"


def test_predictions_evaluation_and_page_agree(run: Run, fraud: Path, payments: Path) -> None:
    costs = ["--fn-cost", "20", "--fp-cost", "1"]
    found = json.loads(run("evaluate", fraud, payments, *costs, "--json").stdout)["evaluation"]
    predicted = json.loads(run("predict", fraud, payments, *costs, "--json").stdout)
    assert predicted["columns"] == ["status", "probability_fraud"]
    alarm = np.array([row["status"] == "fraud" for row in predicted["predictions"]])
    frame = read_table(payments).frame
    case = (frame["status"] == "fraud").to_numpy()
    assert found["alarms"] == alarm.sum() > 0
    assert found["found"] == (alarm & case).sum() > 0
    assert found["missed"] == (case & ~alarm).sum()
    assert found["false_alarms"] == (alarm & ~case).sum()
    assert found["mean_cost"] == pytest.approx((20.0 * found["missed"] + found["false_alarms"]) / case.size)
    y = frame["status"].astype(object)
    page = explore(load(fraud), frame.drop(columns="status"), y).payload
    assert page["labels"] == ["ok", "fraud"]


# ------------------------------------------------------------------------------------------ choosing a trade-off
@pytest.mark.parametrize(
    ("words", "holds"),
    [
        (["--max-fpr", "0.05"], lambda e: e["specificity"] >= 0.95),
        (["--min-sensitivity", "0.9"], lambda e: e["sensitivity"] >= 0.9),
        (["--min-sensitivity", "0.5", "--confidence", "0.9"], lambda e: e["sensitivity"] > 0.5),
    ],
)
def test_a_trade_off_that_meets_a_bound(
    run: Run, fraud: Path, payments: Path, words: list[str], holds: Callable[[Any], bool]
) -> None:
    done = run("evaluate", fraud, payments, *words)
    assert done.exit_code == 0, done.output
    assert "θ was chosen on these rows" in done.stdout
    found = json.loads(run("evaluate", fraud, payments, *words, "--json").stdout)["evaluation"]
    assert holds(found)
    typed = done.stdout.rpartition("--theta ")[2].strip()
    assert float(typed) == found["theta"]
    at = json.loads(run("evaluate", fraud, payments, "--theta", typed, "--json").stdout)["evaluation"]
    assert [at[name] for name in ("alarms", "found")] == [found[name] for name in ("alarms", "found")]
    asked = json.loads(run("predict", fraud, payments, "--theta", typed, "--json").stdout)["predictions"]
    assert sum("fraud" in row.values() for row in asked) == found["alarms"]


def test_wishes_that_do_not_go_together_are_refused(
    run: Run, fraud: Path, payments: Path, loans: Path, saved: dict[str, Path]
) -> None:
    said = wrong(run("evaluate", fraud, payments, "--max-fpr", "0.1", "--min-sensitivity", "0.9"))
    assert "--max-fpr and --min-sensitivity were given" in said
    assert "--confidence is that of a bound" in wrong(run("evaluate", fraud, payments, "--confidence", "0.9"))
    assert "max_fpr" in wrong(run("evaluate", fraud, payments, "--max-fpr", "1e-9", "--confidence", "0.99"))
    assert "level-set" in wrong(run("evaluate", saved["level-set"], loans, "--theta", "0"))


# --------------------------------------------------------------------------------------------- smallest fraction
@pytest.mark.parametrize(("n", "smallest"), [(20, 0.05), (200, 0.05), (400, 0.025), (1000, 0.01), (90_000, 0.01)])
def test_the_smallest_fraction_follows_the_rows(n: int, smallest: float) -> None:
    assert smallest_fraction(n) == pytest.approx(smallest)


@pytest.mark.slow
def test_the_smallest_fraction_can_be_set_and_is_said(
    run: Run, files_of_models: None, loans: Path, tmp_path: Path
) -> None:
    out = tmp_path / "sets.infinitask"
    done = run("fit", loans, "--ignore", "paid", "--smallest", "0.02", "-o", out)
    assert done.exit_code == 0, done.output
    assert "fractions from 2.0% on" in done.stdout
    assert "smallest fraction  2.0%" in run("info", out).stdout
    assert run("predict", out, loans, "--nu", "0.02").exit_code == 0
    said = wrong(run("predict", out, loans, "--nu", "0.01"))
    assert "learnt fractions from 0.02 on" in said
    assert "--smallest 0.01" in said
    assert "only level sets" in wrong(run("fit", loans, "-t", "paid", "--no-tune", "--smallest", "0.02", "-o", out))
    assert run("fit", loans, "--smallest", "2", "-o", out).exit_code == 2


def test_a_large_smallest_fraction_is_the_default_at_prediction(loans: Path) -> None:
    rows = rows_of(read_table(loans), None, None, ["paid"])
    model = fitted(rows, False, 0, Screen(as_json=True), 0.2)
    np.testing.assert_array_equal(model.predict(rows.X), model.predict(rows.X, nu=0.2))


def test_the_table_of_a_level_set_gives_one_note_about_texts(run: Run, houses: Path, tmp_path: Path) -> None:
    done = run("fit", houses, "--task", "level-set", "-t", "price", "-o", tmp_path / "sets.infinitask")
    assert done.exit_code == 0, done.output
    assert done.stderr.count("leave out columns of text") == 1


# ------------------------------------------------------------------------------------------------------ the rest
def test_long_fits_are_announced_and_short_ones_are_not(payments: Path, capsys: pytest.CaptureFixture[str]) -> None:
    screen, rows = Screen(as_json=True), rows_of(read_table(payments), "status", None, [])
    announce(screen, rows, False)
    assert capsys.readouterr().err == ""
    announce(screen, rows._replace(X=pd.concat([rows.X] * 20)), False)
    assert "The fit may take" in capsys.readouterr().err
    assert screen.notes == []
    assert {task for task, _ in MODELS} == set(Task)


def test_what_only_a_fit_takes_is_refused_with_a_model(run: Run, fraud: Path, payments: Path, tmp_path: Path) -> None:
    said = wrong(run("report", fraud, payments, "--positive", "ok", "-o", tmp_path / "page.html"))
    assert "--positive is for a fit" in said
