"""The reference has a page for every public name, and the tool that checks links finds the broken ones."""

from __future__ import annotations

import importlib
import re
from importlib.util import find_spec
from pathlib import Path

from tests.support.package import ROOT, source_files
from tools import check_links
from tools.count_lines import public_names

PAGES = sorted((ROOT / "docs" / "api").glob("*.rst"))


def listed() -> set[str]:
    """Full names of everything that a table of the reference has."""
    found = set()
    for page in PAGES:
        module = "infinitask"
        for line in page.read_text(encoding="utf-8").splitlines():
            if change := re.match(r"\.\. currentmodule:: (\S+)", line):
                module = change[1]
            elif entry := re.fullmatch(r"   ([A-Za-z_][\w.]*)", line):
                found.add(f"{module}.{entry[1]}")
    return found


LISTED = listed()


def test_every_public_name_has_a_page() -> None:
    names = {name for path in source_files() for name in public_names(path)}
    unlisted = names - {entry.rpartition(".")[2] for entry in LISTED} - {"main"}  # of the commands
    assert not unlisted, f"no table of docs/api has {sorted(unlisted)}"


def test_every_entry_exists() -> None:
    assert len(LISTED) > 100
    for entry in LISTED:
        if entry.rpartition(".")[2] in {page.stem for page in PAGES}:  # the list of pages
            continue
        module, _, name = entry.rpartition(".")
        if module.startswith("infinitask.integrations.") and find_spec(module.rpartition(".")[2]) is None:
            continue  # its library is not installed
        assert hasattr(importlib.import_module(module), name), entry


def test_links_that_lead_nowhere_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<h1 id="top">A</h1><a href="b.html#here">b</a> <a href="https://x.org/">x</a>')
    (tmp_path / "b.html").write_text('<p id="here"><a href="a.html#top">a</a> <img src="no.png"> <a href="#gone">g</a>')
    assert check_links.broken(tmp_path) == ["b.html: no.png is not there", "b.html: #gone has no such heading"]
    (tmp_path / "no.png").write_bytes(b"")
    (tmp_path / "b.html").write_text('<p id="here gone"></p><p id="here"></p>')
    assert check_links.broken(tmp_path) == []
