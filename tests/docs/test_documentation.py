"""The documentation does what it says: each program runs by itself, and none is longer than promised."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from infinitask import InfiniteTaskEstimator
from infinitask.losses import BoxLoss, ConvexLoss, Row
from tests.support.each import each

ROOT = Path(__file__).parents[2]


def programs(*path: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", ROOT.joinpath(*path).read_text(encoding="utf-8"), re.DOTALL)


TEXT = (ROOT / "docs" / "add_a_task.md").read_text(encoding="utf-8")
PROGRAMS = programs("docs", "add_a_task.md")
OWN_TESTS = {"add_a_task.md", "command_line.md", "datasets.md"}
"""Pages whose programs are looked at more closely, below or in the tests of the experiments."""

GUIDE = [
    (page.relative_to(ROOT).as_posix(), program)
    for page in sorted([*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "guide").glob("*.md")])
    for program in programs(page.relative_to(ROOT).as_posix())
    if page.name not in OWN_TESTS
]
QUICK_PAGES = {"docs/explorer.md"}
"""Pages whose programs are tried by the quick tests; those of all others by the slow ones."""

OPTIONAL = ("crepes", "distributed", "mapie", "matplotlib", "mlflow", "onnxruntime", "optuna", "pandas")
OPTIONAL += ("pyarrow", "pyod", "safetensors", "shap", "skops", "skpro", "skrub", "sktime", "torch")
COMMAND_LINE = (ROOT / "docs" / "command_line.md").read_text(encoding="utf-8")
WARNING = re.search(r"```text\n(.*?)```", TEXT, re.DOTALL)
LINES = re.search(r"^# Add a task in (\d+) lines$", TEXT, re.MULTILINE)


def title(program: str) -> str:
    """The class or function that a program is about."""
    found = re.search(r"^(?:class|def) (\w+)", program, re.MULTILINE)
    assert found is not None
    return found[1]


@pytest.mark.parametrize("program", PROGRAMS, ids=title)
def test_every_program_runs_by_itself(program: str) -> None:
    if "import torch" in program and importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    # what the wrong one is told is looked at below
    assert "assert " in program or title(program) == "Wrong", "a program that checks nothing shows nothing"
    exec(compile(program, "docs/add_a_task.md", "exec"), {"__name__": "tutorial"})


@each("program", PROGRAMS, ids=title)
def test_no_program_is_longer_than_the_title_says(program: str) -> None:
    assert LINES is not None
    assert len(program.splitlines()) <= int(LINES[1])


def test_the_programs_show_all_ways_to_write_a_loss() -> None:
    together = "\n".join(PROGRAMS)
    for way in ("(BoxLoss)", "(ConvexLoss)", "import torch", "ProductMeasure"):
        assert way in together


def test_the_warning_that_is_shown_is_the_one_that_is_given() -> None:
    (program,) = (p for p in PROGRAMS if title(p) == "Wrong")
    space: dict[str, Any] = {"__name__": "tutorial"}
    exec(compile(program, "docs/add_a_task.md", "exec"), space)
    assert WARNING is not None
    # numbers may differ in their last digit from one library of mathematics to the next
    shown, given = (re.sub(r"[-\d.]+", "#", " ".join(text.split())) for text in (WARNING[1], space["warning"]))
    assert shown == given


def test_a_loss_may_fall_below_zero_as_the_tutorial_shows() -> None:
    assert "below 0 is refused" not in TEXT
    (program,) = (p for p in PROGRAMS if title(p) == "Poisson")
    space: dict[str, Any] = {"__name__": "tutorial"}
    exec(compile(program, "docs/add_a_task.md", "exec"), space)
    model, X, y = space["model"], space["X"], space["y"]
    loss, theta = space["Poisson"](), np.array([1.0])
    assert np.mean(loss.value(theta, y[:, None], model.predict(X, theta)) < 0.0) > 0.5


def test_which_losses_ask_for_a_measure_is_what_the_tutorial_says() -> None:
    text = " ".join(TEXT.split())
    assert "A `ConvexLoss` or a function that names no `domain` asks for a `measure`" in text
    assert "a `BoxLoss` that names none is taken to be defined on (0, 1)" in text

    class Half(ConvexLoss):
        def value(self, theta: Any, y: Any, h: Any) -> Any:
            return 0.5 * (y - h) ** 2 + 0.0 * theta

        def slope(self, theta: Any, y: Any, h: Any) -> Any:
            return h - y + 0.0 * theta

    class Tilted(BoxLoss):
        def row(self, theta: Any, y: Any) -> Row:
            return Row(theta - 1.0, theta)

    X, y = np.linspace(0.0, 1.0, 20)[:, None], np.sin(np.arange(20.0))
    with pytest.raises(ValueError, match="give a measure"):
        InfiniteTaskEstimator(Half(), n_nodes=4).fit(X, y)
    low, high = InfiniteTaskEstimator(Tilted(), n_nodes=4).fit(X, y).measure_.support
    assert (float(low[0]), float(high[0])) == (0.0, 1.0)


def anchors(page: Path) -> set[str]:
    """The anchors of a page, made from its headings as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
PAGES += sorted(page for page in (ROOT / "docs").rglob("*.md") if "_build" not in page.parts)


@each("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_within_the_repository_leads_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if "://" in link or "gallery/" in link:  # the gallery is there when the documentation is built
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"{page.name} links to {link}"
        assert not anchor or anchor in anchors(target), f"{page.name} links to {link}"


def test_the_page_on_the_architecture_names_files_and_names_that_exist() -> None:
    package = ROOT / "src" / "infinitask"
    code = {path: path.read_text(encoding="utf-8") for path in package.rglob("*.py")}
    known = set(re.findall(r"\w+", " ".join(code.values()))) | {path.name for path in package.iterdir()}
    for quoted in re.findall(r"`([^`\n]+)`", (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")):
        if quoted.endswith(".py"):
            assert any(path.as_posix().endswith(f"/{quoted}") for path in code), quoted
        elif re.fullmatch(r"[\w.]+(\(\))?", quoted) and not quoted.endswith(".toml"):
            assert all(word in known for word in re.findall(r"\w+", quoted)), quoted


@pytest.mark.parametrize(
    ("page", "program"),
    [
        pytest.param(page, program, id=f"{page} {k + 1}", marks=[] if page in QUICK_PAGES else pytest.mark.slow)
        for k, (page, program) in enumerate(GUIDE)
    ],
)
def test_every_program_runs_by_itself_and_checks_something(page: str, program: str) -> None:
    assert re.search(r"^\s*assert ", program, re.MULTILINE), "a program that checks nothing shows nothing"
    for name in OPTIONAL:
        if re.search(rf"^\s*(import|from) {name}\b", program, re.MULTILINE) and "except ImportError" not in program:
            pytest.importorskip(name)
    exec(compile(program, page, "exec"), {"__name__": "page"})


def in_a_folder_with_the_table(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the programs of the page on the command line, which write the tables of its sessions."""
    pytest.importorskip("pandas")
    monkeypatch.chdir(folder)
    for program in programs("docs", "command_line.md"):
        assert "assert " in program, "a program that checks nothing shows nothing"
        exec(compile(program, "docs/command_line.md", "exec"), {"__name__": "command_line"})


def test_what_the_session_of_the_command_line_says_of_its_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_a_folder_with_the_table(tmp_path, monkeypatch)
    pytest.importorskip("typer", reason="typer is not installed: pip install infinitask[cli]")
    from infinitask.cli._models import rows_of
    from infinitask.cli._tables import read_table

    table = read_table(Path("houses.csv"))
    rows = rows_of(table, "price", None, [])
    n, d = table.frame.shape
    assert f"data  houses.csv: {n} rows, {d} columns, {table.format}" in COMMAND_LINE
    assert f"task  {rows.task} ({rows.reason}), target {rows.target}" in COMMAND_LINE
    assert all(f"note {note}" in COMMAND_LINE for note in rows.notes)
    past = rows_of(read_table(Path("past.csv")), "status", None, [])
    assert f"{past.positive} is the positive class, {(past.y == past.positive).mean():.1%} of the rows" in COMMAND_LINE


@pytest.mark.slow
def test_the_commands_of_the_session_run_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_a_folder_with_the_table(tmp_path, monkeypatch)
    pytest.importorskip("typer", reason="typer is not installed: pip install infinitask[cli]")
    pytest.importorskip("safetensors", reason="safetensors is not installed: pip install infinitask[save]")
    from infinitask.cli import main

    commands = re.findall(r"^\$ infinitask (.*)$", COMMAND_LINE, re.MULTILINE)
    assert len(commands) == 10
    assert [main(command.split()) for command in commands] == [0, 0, 0, 0, 1, 0, 0, 0, 0, 0]


def test_the_page_on_plots_has_every_display() -> None:
    from infinitask import plotting

    page = (ROOT / "docs" / "plots.md").read_text(encoding="utf-8")
    for name in plotting.__all__:
        assert name in page, name


@pytest.mark.slow
def test_the_program_of_the_readme_prints_what_it_shows(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pandas")
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (program,) = programs("README.md")
    (shown,) = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    exec(compile(program, "README.md", "exec"), {"__name__": "readme"})
    printed = capsys.readouterr().out
    number = r"\d+\.?"
    assert re.sub(number, "#", " ".join(printed.split())) == re.sub(number, "#", " ".join(shown.split()))
    # the last digit may differ from one library of mathematics to the next
    ours, theirs = ([float(n) for n in re.findall(number, lines)] for lines in (printed, shown))
    assert np.allclose(ours, theirs, atol=2.0)
