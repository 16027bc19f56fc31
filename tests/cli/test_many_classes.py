"""More than two classes: their table of costs, decisions, probabilities, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from infinitask.cli._models import rows_of, rows_with_targets
from infinitask.cli._output import CommandError
from infinitask.cli._predictions import check_rule, evaluated, evaluation_lines, predicted
from infinitask.cli._tables import TableFile
from infinitask.cli._targets import Task, as_model_labels, read_costs

Run = Callable[..., Any]

CLASSES = np.array(["cat", "dog", "eel"], dtype=object)
MATRIX = np.array([[0.0, 1.0, 5.0], [1.0, 0.0, 9.0], [20.0, 30.0, 0.0]])


class Known:
    """A model whose probabilities are the columns of X; it decides as the library's does."""

    classes_ = CLASSES
    target_name_ = "kind"
    roc_curve = None  # models of costs have it

    def predict_proba(self, X: Any) -> Any:
        return np.asarray(X, dtype=np.float64)

    def predict(self, X: Any, theta: Any = None, *, costs: Any = None) -> Any:
        matrix = 1.0 - np.eye(3) if costs is None else np.asarray(costs)
        return self.classes_[np.argmin(self.predict_proba(X) @ matrix, axis=1)]


def pets(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n)})
    scores = np.column_stack([table["a"], table["b"], -table["a"] - table["b"]]) + rng.normal(0.0, 0.3, (n, 3))
    return table.assign(kind=CLASSES[np.argmax(scores, axis=1)])


# ---------------------------------------------------------------------------------------------------- the costs
@pytest.mark.parametrize(
    "text",
    [
        ",cat,dog,eel\ncat,0,1,5\ndog,1,0,9\neel,20,30,0\n",
        "truth;dog;eel;cat\neel;30;;20\ncat;1;5;\ndog;;9;1\n",  # any order; a right decision costs nothing
        "\n truth\tdog\teel\tcat\neel\t3e1\t0\t20\ncat\t1\t5\t0\ndog\t0\t9\t1\n",
    ],
)
def test_costs_are_read_in_the_order_of_the_classes(tmp_path: Path, text: str) -> None:
    (tmp_path / "costs.csv").write_text(text)
    np.testing.assert_array_equal(read_costs(tmp_path / "costs.csv", CLASSES), MATRIX)


def test_labels_may_be_numbers(tmp_path: Path) -> None:
    (tmp_path / "costs.csv").write_text(",1,0\n0,3,0\n1.0,0,4\n")
    np.testing.assert_array_equal(read_costs(tmp_path / "costs.csv", np.array([0, 1])), [[0.0, 3.0], [4.0, 0.0]])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        (",,\n , ,\n,,\n", "only empty cells; write the names of the classes .cat, dog, eel."),
        (",cat,dog,eel\ncat,0,1,5\ndog,1,0,9\n", "no rows for the class eel"),
        (",cat,dog\ncat,0,1\ndog,1,0\neel,2,3\n", "no columns for the class eel"),
        (",cat,dog,eel\ncat,0,1,5\ndog,1,0,9\neel,20,x,0\n", "'x' as the cost of deciding dog where eel is true"),
        (",cat,dog,eel\ncat,0,1,\ndog,1,0,9\neel,20,1,0\n", "'' as the cost of deciding eel where cat is true"),
        (",cat,dog,eel,emu\ncat,0,1,5,1\n", "column 'emu', and the classes of the model are cat, dog, eel"),
        (",cat,dog,eel\ncat,0,1,5\ncat,0,1,5\ndog,1,0,9\neel,2,3,0\n", "2 rows for the class cat"),
    ],
)
def test_costs_that_say_too_little_are_refused(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "costs.csv").write_text(text)
    with pytest.raises(CommandError, match=says):
        read_costs(tmp_path / "costs.csv", CLASSES)
    with pytest.raises(CommandError, match="There is no file"):
        read_costs(tmp_path / "cost.csv", CLASSES)


# ------------------------------------------------------------------------------------------------- the decisions
def test_decisions_have_a_probability_for_each_class_and_follow_the_costs(tmp_path: Path) -> None:
    (tmp_path / "costs.csv").write_text(",cat,dog,eel\ncat,0,1,5\ndog,1,0,9\neel,20,30,0\n")
    p = np.random.default_rng(0).dirichlet([1.0, 1.0, 1.0], 50)
    plain = predicted(Known(), p, {})
    assert list(plain.columns) == ["kind", "probability_cat", "probability_dog", "probability_eel"]
    np.testing.assert_array_equal(plain.iloc[:, 1:], p)
    np.testing.assert_array_equal(plain["kind"], CLASSES[np.argmax(p, axis=1)])
    careful = predicted(Known(), p, {"--costs": tmp_path / "costs.csv"})
    assert (careful["kind"] == "eel").sum() > (plain["kind"] == "eel").sum()  # a missed eel costs most
    y = np.array([CLASSES[k] for k in np.random.default_rng(1).integers(0, 3, 50)], dtype=object)
    found = evaluated(Known(), p, y, {"--costs": tmp_path / "costs.csv"})
    costs = [MATRIX[list(CLASSES).index(t), list(CLASSES).index(d)] for t, d in zip(y, careful["kind"], strict=True)]
    assert found["mean_cost"] == pytest.approx(np.mean(costs))
    assert found["accuracy"] == pytest.approx(np.mean(y == careful["kind"]))
    shares = p[np.arange(50), [list(CLASSES).index(label) for label in y]]
    assert found["log_loss"] == pytest.approx(-np.mean(np.log(shares)))
    assert [part["rows"] for part in found["classes"]] == [int(np.sum(y == label)) for label in CLASSES]
    assert ("log loss", found["log_loss"]) in evaluation_lines(found)
    assert evaluated(Known(), p, y)["accuracy"] == pytest.approx(np.mean(y == plain["kind"]))


def test_a_table_of_costs_of_two_classes_is_a_trade_off(run: Run, fraud: Path, payments: Path, tmp_path: Path) -> None:
    (tmp_path / "costs.csv").write_text(",fraud,ok\nfraud,0,20\nok,1,0\n")
    table = run("predict", fraud, payments, "--costs", tmp_path / "costs.csv").stdout.splitlines()
    pair = run("predict", fraud, payments, "--fn-cost", "20", "--fp-cost", "1").stdout.splitlines()
    assert table[0] == "status,probability_ok,probability_fraud"
    assert [line.split(",")[0] for line in table] == [line.split(",")[0] for line in pair]
    words = ["evaluate", fraud, payments, "--json"]
    by_table = json.loads(run(*words, "--costs", tmp_path / "costs.csv").stdout)["evaluation"]
    by_pair = json.loads(run(*words, "--fn-cost", "20", "--fp-cost", "1").stdout)["evaluation"]
    assert by_table["mean_cost"] == pytest.approx(by_pair["mean_cost"])
    assert by_table["classes"][1]["found"] == by_pair["found"]
    (tmp_path / "gain.csv").write_text(",fraud,ok\nfraud,-1,-1\nok,-5,0\n")
    always = run("predict", fraud, payments, "--costs", tmp_path / "gain.csv").stdout.splitlines()[1:]
    assert {line.split(",")[0] for line in always} == {"fraud"}


def test_labels_are_read_as_the_model_knows_them(tmp_path: Path) -> None:
    """A table with only some of the classes may hold numbers where that of the fit held texts."""
    model = Known()
    model.classes_ = np.array(["1", "2", "x"], dtype=object)
    frame = pd.DataFrame(np.random.default_rng(0).dirichlet([1.0, 1.0, 1.0], 6)).rename(columns=str)
    model.feature_names_in_ = frame.columns.to_numpy()
    for held in ([1, 2, 2, 1, 1, 2], [1.0, np.nan, 2.0, 1.0, 1.0, 2.0], ["1", "2", "2", "1", "1", "x"]):
        table = TableFile(tmp_path / "rows.csv", frame.assign(kind=held), "")
        X, y, _ = rows_with_targets(model, table, "kind")
        assert set(y) <= {"1", "2", "x"}
        assert sum(part["rows"] for part in evaluated(model, X, y)["classes"]) == len(X)
    numbers = as_model_labels(pd.Series(["1", "2", "x"]), np.array([1, 2, 3]))
    assert numbers.tolist() == [1, 2, "x"]
    assert as_model_labels(pd.Series(["True", "False"]), np.array([False, True])).tolist() == [True, False]


def test_questions_for_two_classes_are_refused(tmp_path: Path) -> None:
    p = np.full((4, 3), 1.0 / 3.0)
    for asked in ({"--theta": [0.5]}, {"--fn-cost": (1.0, 2.0)}):
        with pytest.raises(CommandError, match="about two classes, and the model has 3; give --costs"):
            predicted(Known(), p, asked)
    with pytest.raises(CommandError, match="--max-fpr is about two classes"):
        evaluated(Known(), p, CLASSES[[0, 1, 2, 0]], {"--max-fpr": 0.1})
    with pytest.raises(CommandError, match=r"does not know \(emu\)"):
        evaluated(Known(), p, np.array(["emu", "cat", "cat", "dog"], dtype=object))
    with pytest.raises(CommandError, match="--theta and --costs were given"):
        check_rule({"--theta": 0.0, "--costs": tmp_path})


# ---------------------------------------------------------------------------------------------------- the targets
def test_targets_of_texts_or_of_few_values_are_classes(run: Run, tmp_path: Path) -> None:
    table = TableFile(
        tmp_path / "pets.csv", pets().assign(number=np.arange(60) % 4, name=[f"n{k}" for k in range(60)]), ""
    )
    kinds = rows_of(table, "kind", None, ["name"])
    assert (kinds.task, kinds.reason, kinds.classes, kinds.positive) == (Task.COST, "kind has 3 values", 3, None)
    assert rows_of(table, "number", None, ["name"]).task is Task.QUANTILE
    assert rows_of(table, "number", Task.COST, ["name"]).classes == 4
    with pytest.raises(CommandError, match="at most 20 classes"):
        rows_of(table, "name", None, [])
    with pytest.raises(CommandError, match="only one of two is positive"):
        rows_of(table, "kind", None, [], "cat")
    table.frame.to_csv(tmp_path / "pets.csv", index=False)
    words = [tmp_path / "pets.csv", "-t", "kind", "-o", tmp_path / "out"]
    for command in (["report"], ["fit", "--tune"], ["tune"], ["tune", "--trials", "2"]):
        done = run(command[0], *words, *command[1:])
        assert done.exit_code == 1
        assert "two classes, and kind has 3. infinitask fit learns them" in done.stderr
        assert done.stdout == ""  # nothing is announced that will not be done


@pytest.mark.slow
def test_many_classes_from_the_table_to_the_decisions(run: Run, files_of_models: None, tmp_path: Path) -> None:
    table = pets()
    table.to_csv(tmp_path / "pets.csv", index=False)
    (tmp_path / "costs.csv").write_text(",cat,dog,eel\ncat,0,1,5\ndog,1,0,9\neel,20,30,0\n")
    model = tmp_path / "pets.infinitask"
    done = run("fit", tmp_path / "pets.csv", "-t", "kind", "-o", model)
    assert done.exit_code == 0, done.output
    assert "class  rows  share" in done.stdout
    answers = json.loads(run("predict", model, tmp_path / "pets.csv", "--json").stdout)["predictions"]
    p = np.array([[row[f"probability_{label}"] for label in CLASSES] for row in answers])
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    costs = ["--costs", tmp_path / "costs.csv"]
    found = json.loads(run("evaluate", model, tmp_path / "pets.csv", *costs, "--json").stdout)["evaluation"]
    plain = json.loads(run("evaluate", model, tmp_path / "pets.csv", "--json").stdout)["evaluation"]
    assert plain["accuracy"] > 0.7
    assert found["classes"][2]["decided"] >= plain["classes"][2]["decided"]
    assert json.loads(run("info", model, "--json").stdout)["classes"] == CLASSES.tolist()
    assert "two classes" in run("report", model, tmp_path / "pets.csv").stderr
