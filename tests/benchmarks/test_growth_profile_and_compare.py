"""The benchmarks of a fit run, add up, and compare what they say they compare."""

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(autouse=True)
def on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def cells(text: str, width: int) -> list[list[str]]:
    """The rows of tables with so many columns, without their heads."""
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]
    return [row for row in rows if len(row) == width][2:]


# ---------------------------------------------------------------------------------------------------------- the profile
def test_the_profile_runs_and_its_fractions_add_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile = importlib.import_module("profile_fit")
    output = tmp_path / "profile.md"
    profile.main(["--quick", "--output", str(output)])
    text = output.read_text(encoding="utf-8")
    assert text in capsys.readouterr().out
    parts = len(profile.SPANS)
    rows = cells(text, 7 + parts)
    assert len(rows) == 4
    for row in rows:
        assert sum(map(float, row[7:])) == pytest.approx(100.0, abs=0.5 * parts)
    for case in json.loads(output.with_suffix(".json").read_text(encoding="utf-8"))["cases"]:
        assert sum(case["parts"].values()) == pytest.approx(case["seconds"])
        assert case["gap"] <= 1e-4
        # what is named is found where it is said to be: every fit does all of this
        always = set(case["parts"]) - {"Newton"}
        assert all(case["parts"][part] > 0.0 for part in always)


def test_a_moment_belongs_to_the_innermost_part(monkeypatch: pytest.MonkeyPatch) -> None:
    profile = importlib.import_module("profile_fit")
    now = [0.0]
    monkeypatch.setattr(profile.time, "process_time", lambda: now[0])
    clock = profile.Clock()

    def wait(seconds: float) -> None:
        now[0] += seconds

    inner = clock.timed("loss", lambda: wait(2.0))

    def outer() -> None:
        wait(1.0)
        inner()
        wait(4.0)

    wait(0.5)
    clock.timed("products", outer)()
    wait(0.25)
    clock._charge()
    assert {part: s for part, s in clock.seconds.items() if s} == {"loss": 2.0, "products": 5.0, profile.REST: 0.75}


def test_nothing_stays_replaced() -> None:
    profile, objective = importlib.import_module("profile_fit"), importlib.import_module("infinitask.objective")
    before, pool = objective.Objective._visit, profile.threads._pool
    with profile.one_thread(), profile.Clock().watching():
        assert objective.Objective._visit is not before
        assert profile.threads._pool() is None
    assert objective.Objective._visit is before
    assert profile.threads._pool is pool


# ----------------------------------------------------------------------------------------------------------- the growth
@pytest.mark.slow
def test_the_growth_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    growth = importlib.import_module("growth")
    output = tmp_path / "growth.md"
    growth.main(["--quick", "--output", str(output)])
    text = output.read_text(encoding="utf-8")
    assert text in capsys.readouterr().out
    assert [row[0] for row in cells(text, 6)] == [curve.title for curve in growth.QUICK]
    found = json.loads(output.with_suffix(".json").read_text(encoding="utf-8"))["curves"]
    assert [point["x"] for point in found[2]["points"]] == [5, 20]
    assert [point["rank"][0] for point in found[3]["points"]] == [10, 40]
    assert all(0.0 < p["per_evaluation"] * p["evaluations"] < p["seconds"] for c in found for p in c["points"])
    assert output.with_suffix(".png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_a_fresh_process_measures_one_point(monkeypatch: pytest.MonkeyPatch) -> None:
    growth = importlib.import_module("growth")
    monkeypatch.setenv("INFINITASK_COMPILED", "0")  # loading what is compiled takes longer than the fit
    point = growth.probed(growth.Setting(n=4_000, d=8, m=5, features="nystroem", rank=400), 4_000, budget=0.0)
    assert (point.x, point.fits, point.rank[0]) == (4_000, 1, 400)
    assert point.seconds > 0.0
    assert point.peak > 8 * 4_000 * 400 / 2**20, "the features are held"


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_a_power_is_a_line(power: float) -> None:
    growth = importlib.import_module("growth")
    points = [growth.Point(x, (1, 1), 1, 1, 3.0 * x**power, 0.0, 1.0) for x in (10, 100, 1_000)]
    line = growth.Line.through(points, "seconds")
    assert (line.slope, line.last) == pytest.approx((power, power))
    assert line(np.array([7.0])) == pytest.approx(3.0 * 7.0**power)
    assert growth.Line.through(points, "per_evaluation") is None
    curve = replace(growth.FULL[0], limit=1.1)
    assert growth.steep(curve, points) == (["seconds"] if power > 1.1 else [])


# ------------------------------------------------------------------------------------------------------- the comparison
@pytest.mark.slow
def test_the_working_tree_is_compared_with_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    compare = importlib.import_module("compare")
    monkeypatch.setenv("INFINITASK_COMPILED", "0")  # a fresh copy would have to be compiled
    output = tmp_path / "table.md"
    slower = compare.main([".", "--quick", "--output", str(output)])
    text = output.read_text(encoding="utf-8")
    assert text in capsys.readouterr().out
    (row,) = cells(text, 9)
    assert row[0] == compare.QUICK[0]
    before, after = row[5].split(" → ")
    assert before == after
    assert slower == (row[-1] == "slower")


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_the_table_names_what_was_run_although_head_moves_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compare = importlib.import_module("compare")
    monkeypatch.setattr(compare, "ROOT", tmp_path)
    identity = ["-c", "user.name=somebody", "-c", "user.email=somebody@example.org", "-c", "commit.gpgsign=false"]
    file, seen = tmp_path / "src" / "state.txt", []

    def commit(state: str) -> str:
        file.parent.mkdir(exist_ok=True)
        file.write_text(state, encoding="utf-8")
        for command in (["add", "src"], [*identity, "commit", "--quiet", "-m", state]):
            subprocess.run(["git", *command], cwd=tmp_path, check=True)
        return str(compare.resolved("HEAD"))

    def run(folders: tuple[Path, Path], cases: list[str], *_: int) -> dict[str, object]:
        seen.extend((folder / "state.txt").read_text(encoding="utf-8") for folder in folders)
        commit("third")
        return {name: compare.Row(([1.0], [1.0])) for name in cases}

    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    first, second = commit("first"), commit("second")
    monkeypatch.setattr(compare, "compare", run)
    output = tmp_path / "table.md"
    compare.main([first, "HEAD", "--quick", "--output", str(output)])
    assert seen == ["first", "second"]
    assert output.read_text(encoding="utf-8").splitlines()[0] == f"# {first} and {second}"
    assert compare.resolved("HEAD") != second, "it did move on"


def test_slower_is_what_both_ratios_say() -> None:
    compare = importlib.import_module("compare")
    assert compare.Row(([1.0, 1.0, 1.0], [1.2, 1.2, 1.3])).verdict == "slower"
    assert compare.Row(([1.0, 1.0, 1.0], [1.0, 1.2, 1.3])).verdict == ""
    assert compare.Row(([1.0, 1.0, 1.0], [0.8, 0.8, 1.3])).verdict == "faster"
    assert compare.Row(([1.0, 1.0, 1.0], [1.05, 1.05, 1.05])).verdict == ""


def test_a_side_that_loads_another_library_is_refused(tmp_path: Path) -> None:
    compare = importlib.import_module("compare")
    script = tmp_path / "worker.py"
    script.write_text("print('\"/elsewhere/infinitask\"')", encoding="utf-8")
    with compare.Side(tmp_path, str(script)) as side, pytest.raises(RuntimeError, match="of /elsewhere was loaded"):
        side.ask(compare.QUICK[0], 1)


def test_a_side_that_ends_is_not_waited_for(tmp_path: Path) -> None:
    compare = importlib.import_module("compare")
    script = tmp_path / "worker.py"
    script.write_text("", encoding="utf-8")
    with compare.Side(tmp_path, str(script)) as side, pytest.raises(RuntimeError, match="ended"):
        side.ask(compare.QUICK[0], 1)


def test_the_document_holds_the_last_profile(tmp_path: Path) -> None:
    profile = importlib.import_module("profile_fit")
    document = tmp_path / "page.md"
    document.write_text(f"before\n{profile.BEGIN}\nold\n{profile.END}\nafter\n", encoding="utf-8")
    for _ in range(2):
        profile.into_document("# Headline\n\n| n |\n|---|\n| 1 |\n", document)
    text = document.read_text(encoding="utf-8")
    assert text == f"before\n{profile.BEGIN}\n\n| n |\n|---|\n| 1 |\n\n{profile.END}\nafter\n"
    kept = profile.DOCUMENT.read_text(encoding="utf-8")
    table = profile.RESULTS.read_text(encoding="utf-8").split("\n", 1)[1].strip()
    assert table in kept, "run make bench-profile"


# ----------------------------------------------------------------------------------------------------------- level sets
def test_one_fit_and_refits_are_measured_side_by_side() -> None:
    found = importlib.import_module("level_set_speed").measure(80, 2, 1.0, 5)
    assert found["gap"] <= 1e-4
    assert found["ours"] > 0.0
    assert found["theirs"] > 0.0
    assert abs(found["away"] - found["peer"]) < 0.1


# ----------------------------------------------------------------------------------------------------------- kernel gap
def test_the_kernel_gap_is_drawn_beside_what_it_costs(tmp_path: Path) -> None:
    benchmark = importlib.import_module("kernel_gap")
    benchmark.main(["--quick", "--output", str(tmp_path / "gap.md")])
    text = (tmp_path / "gap.md").read_text(encoding="utf-8")
    assert text.count("\n| 0.001 |") == 2
    assert (tmp_path / "gap.png").stat().st_size > 10_000


# -------------------------------------------------------------------------------------------------------------- small λ
def test_fits_and_paths_of_a_small_ridge_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    small = importlib.import_module("small_ridge")
    params = {"n_nodes": 5, "noncrossing": 0.0}
    small.worker({"kind": "fit", "n": 40, "d": 2, "params": {**params, "alpha": 1e-6}})
    small.worker({"kind": "path", "n": 40, "d": 1, "count": 2, "params": params})
    fit, path = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert max(fit["gap"], path["gap"]) <= 1e-4
    assert min(fit["seconds"], path["path"], path["alone"]) > 0.0
