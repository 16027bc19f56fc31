"""Pages say from which commit, on which day and with which versions their figures were made."""

from __future__ import annotations

import platform
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments import provenance, runner
from experiments.provenance import UNKNOWN, Provenance, combined, now, read, reproduce, signed, unrecorded
from experiments.runner import run
from tests.support import toy_experiment

ROOT = Path(__file__).resolve().parents[2]
ONE = Provenance("make bench", "abc1234", "2026-11-18", ("src/infinitask", "src/infinitask/losses"), "Python 3.11.7")


def git(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)


def has_history() -> bool:
    return (ROOT / ".git").exists() and git("rev-parse", "--is-shallow-repository").stdout.strip() == "false"


# ------------------------------------------------------------------------------------------------------------ the line
@pytest.mark.parametrize(
    "given",
    [
        ONE,
        replace(ONE, modified=True),
        replace(ONE, oldest="def5678", oldest_date="2026-11-15"),
        replace(ONE, commit=UNKNOWN, command=reproduce("table1", quick=True)),
        unrecorded(ONE),
        combined([unrecorded(ONE), ONE]),
    ],
)
def test_a_signed_page_is_read_back(given: Provenance) -> None:
    page = signed("# Title\n\n| a |\n|---|\n| 1 |\n\n", given)
    assert read(page) == given
    assert page.endswith(f"| 1 |\n\n{given}\n")


def test_a_page_without_the_line_has_no_provenance() -> None:
    assert read("# Title\n\nProvenance: not recorded.\n") is None


def test_the_provenance_of_now() -> None:
    found = now("make bench", device="a card")
    assert f"Python {platform.python_version()}, NumPy {np.__version__}, SciPy " in found.made
    assert "infinitask " in found.made
    assert " cores, a card" in found.made
    assert found == read(str(found))
    if has_history():
        assert git("rev-parse", "HEAD").stdout.startswith(found.commit)


def test_a_folder_without_a_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    monkeypatch.delenv("INFINITASK_COMMIT", raising=False)
    found = now("make bench")
    assert found.commit == UNKNOWN
    assert not found.modified
    monkeypatch.setenv("INFINITASK_COMMIT", "abc1234")
    assert now("make bench").commit == "abc1234"


def test_several_runs_name_the_newest_and_the_oldest() -> None:
    later = replace(ONE, commit="def5678", date="2026-11-19")
    both = replace(later, oldest="abc1234", oldest_date="2026-11-18")
    assert combined([ONE, later]) == combined([later, ONE, later]) == both
    assert combined([ONE, replace(ONE, date="2026-11-19")]) == replace(ONE, date="2026-11-19")
    assert combined([ONE, replace(ONE, modified=True), ONE]) == replace(ONE, modified=True)


# ---------------------------------------------------------------------------------------------------------- the runner
def test_an_experiment_signs_its_page_for_the_runs_of_its_units(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy = replace(toy_experiment.experiment(seconds=0.0), code=("src/infinitask/losses",))

    def done_at(commit: str, day: str, only: str) -> Provenance | None:
        monkeypatch.setattr(runner, "now", lambda command, code: Provenance(command, commit, day, tuple(code), "here"))
        run(toy, tmp_path, quick=False, jobs=1, only=only)
        return read((tmp_path / "toy.md").read_text())

    first = Provenance("make reproduce NAME=toy", "abc1234", "2026-11-18", ("src/infinitask/losses",), "here")
    assert done_at("abc1234", "2026-11-18", "a") == first
    both = replace(first, commit="def5678", date="2026-11-19", oldest="abc1234", oldest_date="2026-11-18")
    assert done_at("def5678", "2026-11-19", "b") == both
    assert done_at("fff0000", "2026-11-20", "") == both  # nothing was left to do
    # records of unknown provenance
    units = tmp_path / "units" / "toy.jsonl"
    units.write_text("".join(line for line in units.read_text().splitlines(True) if "abc1234" not in line))
    old = done_at("fff0000", "2026-11-20", "")
    assert old is not None
    assert (old.commit, old.oldest) == ("def5678", UNKNOWN)
