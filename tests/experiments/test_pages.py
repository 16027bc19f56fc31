"""Every page of results and of benchmarks says where its figures come from."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from experiments.provenance import UNKNOWN, read

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
