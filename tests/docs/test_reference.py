"""The reference has a page for every public name, and the tool that checks links finds the broken ones."""

from __future__ import annotations

import importlib
import importlib.util
import re
from pathlib import Path

from tests.support.each import each

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "api").glob("*.rst"))

# Modules that a reader calls by themselves. The rest is described, and only parts of it have pages.
MODULES = ("", "plotting", "report", "predictive", "metrics", "bounds", "kernels", "measures", "losses", "penalties")
MODULES += ("features", "datasets", "tuning", "pipelines", "persistence")
# modules of the integrations that have the name of their library
GUESTS = ("mlflow", "onnx", "pyod", "skops", "skpro", "sktime")
MODULES += tuple(f"integrations.{name}" for name in GUESTS if importlib.util.find_spec(name) is not None)
VALUES = {"LIGHT", "DARK"}


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


@each("name", MODULES)
def test_every_public_name_has_a_page(name: str) -> None:
    module = importlib.import_module(f"infinitask.{name}" if name else "infinitask")
    for public in set(module.__all__) - VALUES:
        assert {f"{module.__name__}.{public}", f"infinitask.{public}"} & LISTED, f"{module.__name__}.{public}"


def test_every_entry_exists() -> None:
    assert len(LISTED) > 150
    for entry in LISTED:
        if entry.rpartition(".")[2] in {page.stem for page in PAGES}:  # the list of pages
            continue
        module, _, name = entry.rpartition(".")
        if module.startswith("infinitask.integrations.") and module.removeprefix("infinitask.") not in MODULES:
            continue  # its library is not installed
        assert hasattr(importlib.import_module(module), name), entry


def test_links_that_lead_nowhere_are_found(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("check_links", ROOT / "tools" / "check_links.py")
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    (tmp_path / "a.html").write_text('<h1 id="top">A</h1><a href="b.html#here">b</a> <a href="https://x.org/">x</a>')
    (tmp_path / "b.html").write_text('<p id="here"><a href="a.html#top">a</a> <img src="no.png"> <a href="#gone">g</a>')
    assert tool.broken(tmp_path) == ["b.html: no.png is not there", "b.html: #gone has no such heading"]
    (tmp_path / "no.png").write_bytes(b"")
    (tmp_path / "b.html").write_text('<p id="here gone"></p><p id="here"></p>')
    assert tool.broken(tmp_path) == []
