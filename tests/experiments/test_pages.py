"""Every page of results says where its figures come from, and what its program makes of its records."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib", reason="pages have figures, which are drawn with the extra `plot`")

from matplotlib.figure import Figure

from experiments import __main__ as command
from experiments.provenance import UNKNOWN, read
from experiments.runner import Failed
from experiments.store import PAGES as FOLDER
from experiments.store import curves_of, key, known, records_of

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("docs/results/*.md"), *ROOT.glob("docs/benchmarks/*.md")])


def git(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def history() -> bool:
    """Whether the history is here: a shallow clone or an unpacked archive has none."""
    return (ROOT / ".git").exists() and git("rev-parse", "--is-shallow-repository").stdout.strip() == "false"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_page_ends_with_its_provenance(page: Path, history: bool) -> None:
    text = page.read_text(encoding="utf-8")
    found = read(text)
    assert found is not None, f"{page} does not say where its figures come from; the program that makes it signs it"
    assert text.endswith(f"\n\n{found}\n")
    assert UNKNOWN not in (found.commit, found.oldest)
    assert all((ROOT / path).exists() for path in found.code), found.code
    if history:
        for commit in filter(None, (found.commit, found.oldest)):
            done = git("merge-base", "--is-ancestor", commit, "HEAD")
            assert done.returncode == 0, f"{page} names {commit}, which is not in the history of HEAD"


def test_there_are_pages() -> None:
    assert {page.parent.name for page in PAGES} == {"results", "benchmarks"}


UNFINISHED = {"level-sets-tuned"}
"""Studies whose records go on beyond their page."""


@pytest.mark.parametrize("name", [name for name in command.NAMES if name not in UNFINISHED])
def test_a_page_is_what_its_program_makes_of_its_records(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Words and tables; a change of a report is seen on its page at once."""
    path = records_of(FOLDER, name)
    if not path.exists():
        pytest.skip(f"the records of {name} are not here")
    experiment = command.experiment(name)
    try:
        settings = json.loads(json.dumps(experiment.settings(False)))
    except Failed as failed:
        pytest.skip(str(failed))
    if json.loads(path.read_text(encoding="utf-8").splitlines()[0])["settings"] != settings:
        pytest.skip(f"the records of {name} are of other settings")
    records = {key(record["unit"]): record for record in known(path)}

    def not_drawn(figure: Any, file: Any, **options: Any) -> None:
        Path(file).touch()

    monkeypatch.setattr(Figure, "savefig", not_drawn)
    units = [key(unit) for unit in experiment.units(False)]
    files = experiment.report([records[unit] for unit in units if unit in records], tmp_path, settings)
    seen = []
    for file in (file for file in files if file.suffix in (".md", ".csv")):
        kept = FOLDER / file.name if (FOLDER / file.name).exists() else curves_of(FOLDER, file.name)
        written, text = (path.read_text(encoding="utf-8").partition("\n\nProvenance: ")[0] for path in (kept, file))
        assert text.rstrip() == written.rstrip(), f"{kept} is not what `make reproduce NAME={name}` writes"
        seen.append(file.suffix)
    assert {".md", ".csv"} == set(seen)
