"""The search that a person watches: what it compares, how it is ended, and what is kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from infinitask import cli, load
from infinitask._base.events import CutShort, Solving, Stage, Tried, Trying, listening, tell
from infinitask.cli import _models, _search
from infinitask.cli._models import rows_of
from infinitask.cli._output import ProgressLine, Screen
from infinitask.cli._search import Search, fitted, ranking_of
from infinitask.cli._tables import read_table
from infinitask.cli._targets import Task

Run = Callable[..., Any]

QUICK = {"kernels": ["rbf", "linear"], "alphas": [1e-4, 1e-6], "cv": 2, "n_nodes": 5, "calibrated": False}
"""A comparison of two kernels."""


@pytest.fixture
def few_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands compare two kernels."""
    models, sets = _models.MODELS, {"kernels": ["rbf", "laplacian"], "cv": 2, "n_nodes": 5}
    for task, parameters in ((Task.QUANTILE, QUICK), (Task.LEVEL_SET, sets)):
        monkeypatch.setitem(models, (task, True), models[task, True]._replace(parameters=parameters))


@pytest.mark.usefixtures("few_kernels", "files_of_models")
def test_a_search_shows_what_it_compared_and_keeps_the_best(run: Run, houses: Path, tmp_path: Path) -> None:
    out = tmp_path / "model.infinitask"
    done = run("tune", houses, "-t", "price", "-o", out)
    assert done.exit_code == 0, done.output
    assert "compared by the pinball loss of held-out rows" in done.stdout
    model = load(out)
    ranking = ranking_of(model, Task.QUANTILE)
    assert ranking is not None
    losses = [part["loss"] for part in ranking.candidates]
    assert losses == sorted(losses)
    assert ranking.ignoring_inputs == pytest.approx(np.mean(model.cv_results_["ignoring_x"]))
    assert ranking.ignoring_inputs > losses[0]
    (chosen,) = [part for part in ranking.candidates if part["chosen"]]
    assert chosen["kernel"] == model.cv_results_["kernels"][model.cv_results_["best"][0]]
    assert chosen["alpha"] == pytest.approx(model.alpha_)
    shown = run("info", out).stdout
    assert f"chosen from  {ranking.summary}" in shown
    found = json.loads(run("info", out, "--json").stdout)
    assert found["candidates"] == ranking.candidates


@pytest.mark.quick(every=2)
@pytest.mark.usefixtures("few_kernels")
@pytest.mark.parametrize("task", [Task.QUANTILE, Task.LEVEL_SET])
def test_a_search_whose_time_is_up_keeps_the_best_so_far(houses: Path, task: Task) -> None:
    rows = rows_of(read_table(houses), "price", task, ["note"])
    screen = Screen(as_json=True)
    model = fitted(rows, True, 0, screen, None, Search(timeout=1e-9))
    assert "The 1e-09 s were over after 0 kernels; the best so far is kept." in screen.notes
    ranking = ranking_of(model, task)
    assert ranking is not None
    assert [part["loss"] for part in ranking.candidates if part["chosen"]] == [None]
    assert ranking.summary.startswith("1 candidates")
    assert model.predict(rows.X).shape == (rows.X.shape[0],)


@pytest.mark.usefixtures("files_of_models")
def test_trials_go_on_from_their_file(run: Run, houses: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("optuna", reason="optuna is not installed: pip install infinitask[tune]")
    monkeypatch.setattr(_search, "KERNELS", ["rbf"])
    words = ["tune", houses, "-t", "price", "--ignore", "note", "-o", tmp_path / "model.infinitask"]
    words += ["--storage", tmp_path / "trials.log", "--json"]
    first = json.loads(run(*words, "--trials", "1").stdout)
    second = json.loads(run(*words, "--trials", "2").stdout)
    assert (len(first["candidates"]), len(second["candidates"])) == (1, 2)
    losses = {part["alpha"]: part["loss"] for part in second["candidates"]}
    assert losses[first["candidates"][0]["alpha"]] == first["candidates"][0]["loss"]
    assert second["alpha"] == pytest.approx(min(losses, key=lambda alpha: losses[alpha]))
    assert second["calibration"] == "intervals are conformal, by rows kept aside"
    predicted = run("predict", tmp_path / "model.infinitask", houses, "--coverage", "0.8")
    assert predicted.stdout.splitlines()[0] == "price_low_0.8,price_high_0.8"


@pytest.mark.usefixtures("files_of_models")
def test_decisions_of_the_best_trial_are_calibrated(run: Run, loans: Path, tmp_path: Path) -> None:
    pytest.importorskip("optuna", reason="optuna is not installed: pip install infinitask[tune]")
    done = run("tune", loans, "-t", "paid", "-o", tmp_path / "model.infinitask", "--trials", "1", "--json")
    assert json.loads(done.stdout)["calibration"] == "decisions were calibrated on held-out rows"


def test_searches_that_make_no_sense_are_refused(run: Run, houses: Path, tmp_path: Path) -> None:
    out = ["-o", tmp_path / "model.infinitask"]
    assert run("tune", houses, "-t", "price", "--storage", tmp_path / "trials.log", *out).exit_code == 2
    assert run("tune", houses, "-t", "price", "--trials", "0", *out).exit_code == 2
    done = run("tune", houses, "--trials", "3", *out)
    assert done.exit_code == 1
    assert "level-set, which compares kernels" in done.stderr
    assert not (tmp_path / "model.infinitask").exists()


# ------------------------------------------------------------------------------------------------------ the line
def test_the_line_says_what_is_done_and_how_far_it_is() -> None:
    from rich.console import Console

    console = Console(force_terminal=True, width=80)
    line = ProgressLine(console, "fitting 40 rows")
    with line.bar, listening(line.heard):
        task = line.bar.tasks[0]
        tell(Solving(3, 0.02, 1e-4))
        assert task.fields["detail"] == "gap 2e-02, 1e-04 wanted"
        tell(Trying(1, 4, "[Gaussian] of a name that is far too long for one line"))
        tell(Tried(1, 4, "Gaussian", 0.5, 0.5))
        assert (task.fields["done"], task.fields["of"]) == (1, 4)
        assert task.fields["detail"] == "1 done, best 0.5"
        assert len(console.render_lines(line.bar.get_renderable())) == 1
        tell(Solving(1, 0.9, 1e-2))  # a fit of a candidate
        assert task.fields["detail"] == "1 done, best 0.5"
        tell(Stage("calibrating levels"))
        assert (task.description, task.fields["of"]) == ("calibrating levels", None)
        tell(CutShort(""))
    assert line.cut_short
    assert not line.ran_out


def test_nothing_moves_where_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(as_json=False)
    assert not screen.shows_progress  # standard error is no terminal here
    with screen.step("reading"):
        tell(Solving(1, 0.5, 1e-4))
    assert capsys.readouterr() == ("", "")


# ------------------------------------------------------------------------------------------------- reproduction
def test_experiments_of_a_clone_are_found_and_run(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from experiments import __main__ as experiments

    monkeypatch.chdir(tmp_path)
    assert run("reproduce", "tabel1").exit_code == 2
    assert run("reproduce", "--help").exit_code == 0
    asked: list[Any] = []
    monkeypatch.setattr(experiments, "main", asked.append)
    assert run("reproduce", "table1", "nodes", "--quick", "--only", "crabs", "-o", "made").exit_code == 0
    assert "The experiments are those of " in run("reproduce").stderr
    assert asked == [["table1", "nodes", "--quick", "--only", "crabs", "-o", "made"]]
    assert set(experiments.NAMES) < set(run("reproduce").stdout.split())

    def stopped(_: Any) -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            raise SystemExit("Stopped. What is done is kept.") from None

    monkeypatch.setattr(experiments, "main", stopped)
    assert cli.main(["reproduce", "table1"]) == 130
    assert "What is done is kept." in capsys.readouterr().err


def test_code_of_a_stranger_is_not_run(tmp_path: Path) -> None:
    from infinitask.cli._app import clone_of
    from infinitask.cli._output import CommandError

    def folder(name: str, project: str | None) -> Path:
        place = tmp_path / name
        (place / "experiments").mkdir(parents=True)
        (place / "src" / "infinitask").mkdir(parents=True)
        (place / "experiments" / "__main__.py").touch()
        if project is not None:
            (place / "pyproject.toml").write_text(project)
        return place

    package = tmp_path / "site-packages" / "infinitask"
    for name, project in {
        "none": None,
        "other": '[project]\nname = "other"\n',
        "torn": "[project",
        "odd": "project = 1",
    }.items():
        with pytest.raises(CommandError, match="Get a clone of it"):
            clone_of(folder(name, project), package)
    ours, other = (folder(name, '[project]\nname = "infinitask"\n') for name in ("ours", "another"))
    (ours / "inside").mkdir()
    assert clone_of(ours / "inside", package) == ours
    assert clone_of(other, ours / "src" / "infinitask") == ours  # the clone that the package itself is of comes first


def test_without_a_clone_it_is_said_how_to_get_one(tmp_path: Path) -> None:
    from infinitask.cli._app import clone_of
    from infinitask.cli._output import CommandError

    with pytest.raises(CommandError, match="Get a clone of it"):
        clone_of(tmp_path, tmp_path / "site-packages" / "infinitask")
