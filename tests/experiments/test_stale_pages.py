"""The list of pages that are older than their code, on a small repository made for the purpose."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from experiments.provenance import Provenance, signed
from tools import stale_pages

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


class Repository:
    """Commits of single files."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.git("init", "--quiet")

    def git(self, *arguments: str) -> str:
        identity = ["-c", "user.name=someone", "-c", "user.email=someone@example.org", "-c", "commit.gpgsign=false"]
        command = ["git", *identity, *arguments]
        return subprocess.run(command, cwd=self.root, capture_output=True, text=True, check=True).stdout.strip()

    def commit(self, path: str, text: str) -> str:
        """Write and commit a file; return the short hash."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        self.git("add", path)
        self.git("commit", "--quiet", "--message", f"{path}: {text[:9]}")
        return self.git("rev-parse", "--short", "HEAD")

    def page(self, path: str, commit: str, *code: str, **more: Any) -> None:
        made = Provenance("make it", commit, "2026-11-18", code or ("src/infinitask",), "by hand", **more)
        self.commit(path, signed("# Page", made))


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


def test_only_commits_to_the_code_of_a_page_count(repository: Repository) -> None:
    first = repository.commit("src/infinitask/losses/pinball.py", "1")
    second = repository.commit("src/infinitask/solvers/newton.py", "1")
    repository.page("docs/results/all.md", first)
    repository.page("docs/results/losses.md", first, "src/infinitask/losses")
    repository.page("docs/results/outer.md", first, "src/infinitask/cli")
    repository.page("docs/benchmarks/late.md", second)
    repository.page("docs/benchmarks/mixed.md", second, oldest=first, oldest_date="2026-11-17")
    repository.commit("src/infinitask/cli/main.py", "an outer room")
    repository.commit("src/infinitask/losses/pinball.py", "2")
    repository.commit("README.md", "no code")
    found = {page.path: (page.since, page.since_oldest) for page in stale_pages.pages(repository.root)}
    assert found == {
        "docs/benchmarks/late.md": (1, 1),
        "docs/benchmarks/mixed.md": (1, 2),
        "docs/results/all.md": (2, 2),
        "docs/results/losses.md": (1, 1),
        "docs/results/outer.md": (1, 1),
    }
    assert list(found)[:2] == ["docs/benchmarks/late.md", "docs/benchmarks/mixed.md"]  # the newest first


def test_the_table_says_what_is_missing(repository: Repository) -> None:
    repository.page("docs/results/strange.md", "abc1234")
    repository.commit("docs/results/bare.md", "# Bare\n")
    commit = repository.commit("src/infinitask/field.py", "1")
    repository.page("docs/results/fresh.md", commit, modified=True)
    lines = stale_pages.table(stale_pages.pages(repository.root)).splitlines()
    assert [line.split() for line in lines] == [
        ["page", "commit", "date", "commits", "since", "since", "the", "oldest", "figures"],
        ["docs/results/fresh.md", f"{commit}+", "2026-11-18", "0"],
        ["docs/results/bare.md", "no", "provenance"],
        ["docs/results/strange.md", "abc1234", "2026-11-18", "not", "in", "this", "history"],
    ]


@pytest.mark.slow
def test_the_command_lists_the_pages_of_the_documentation(capsys: pytest.CaptureFixture[str]) -> None:
    stale_pages.main([])
    assert "docs/results/table1.md" in capsys.readouterr().out
