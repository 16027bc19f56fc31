"""The page that reads the paper item by item: its lines are counted, their links lead to what they name."""

from __future__ import annotations

import ast
import csv
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from infinitask.datasets import make_mixture
from infinitask.fitting import Data, learn
from infinitask.fitting._recipe import Recipe
from infinitask.kernels import Gaussian
from infinitask.measures import Uniform
from infinitask.metrics import crossing_loss
from infinitask.penalties import IntegratedRidge, Ridge
from infinitask.tasks import LevelSetTask
from tests.support.each import each
from tests.support.package import ROOT

FOLDER = ROOT / "docs"
PAGE = (FOLDER / "reading-the-paper.md").read_text(encoding="utf-8")
TARGETS = ROOT / "experiments" / "targets"

LINES = "| no. | where | what it says | status | code | shown by |"
NOTES = "| note | kind | where | the paper | here | why |"
KINDS = ("error", "open", "choice", "result")
STATUSES = ("complete", "differs", "partial", "absent")


class Line(NamedTuple):
    """A line of the list."""

    number: str
    where: str
    says: str
    status: str
    code: str
    shown: str


def rows(text: str, header: str) -> list[list[str]]:
    """The cells of all tables that begin with a header; a bar within a cell is written with a backslash."""
    found, inside = [], False
    for line in text.splitlines():
        inside = line == header or (inside and line.startswith("|"))
        if inside and line != header and not line.startswith("|---"):
            found.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return found


def links(cell: str) -> list[tuple[str, str]]:
    """The text and the target of every link."""
    return re.findall(r"\[([^\]]+)\]\(([^)\s]+)\)", cell)


@cache
def names_in(path: Path) -> frozenset[str]:
    """What a module defines: functions, classes and variables, and what its classes define, as Class.name."""

    def targets(node: ast.stmt) -> list[str]:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            return [node.name]
        given = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        return [target.id for target in given if isinstance(target, ast.Name)]

    body = ast.parse(path.read_text(encoding="utf-8")).body
    own = {name for node in body for name in targets(node)}
    members = {
        f"{node.name}.{name}"
        for node in body
        if isinstance(node, ast.ClassDef)
        for sub in node.body
        for name in targets(sub)
    }
    return frozenset(own | members)


def broken_links(cell: str, folder: Path) -> list[str]:
    """Links to files that are not there, and to symbols or tests that their file does not define."""
    found = []
    for text, target in links(cell):
        path = (folder / target.partition("#")[0]).resolve()
        if not path.is_file():
            found.append(f"{target} is not there")
        elif path.suffix == ".py" and text.strip("`") not in names_in(path):
            found.append(f"{target} does not define {text}")
    return found


def faults(text: str, folder: Path = FOLDER) -> list[str]:
    """A sentence for everything that is wrong with the page."""
    found = []
    cells, notes = rows(text, LINES), rows(text, NOTES)
    for name, table, width in (("line", cells, 6), ("note", notes, 6)):
        found += [f"{name} {row[0]} has {len(row)} cells" for row in table if len(row) != width]
        numbers = [row[0] for row in table]
        if numbers != [str(k + 1) for k in range(len(table))]:
            found.append(f"the numbers of the {name}s are {numbers}")
    known, used = {row[0] for row in notes}, set()
    for note in notes:
        found += [f"note {note[0]}: {fault}" for cell in note for fault in broken_links(cell, folder)]
        found += [f"note {note[0]}: {note[1]!r} is no kind"] * (note[1] not in KINDS)
    lines = [Line(*row) for row in cells if len(row) == 6]
    for line in lines:
        status, colon, reason = line.status.partition(": ")
        told = [f"{status!r} is no status"] if status not in STATUSES else []
        if (status == "complete") == bool(colon and reason.strip()):
            told.append("a reason belongs to every status but complete")
        named = {n for part in re.findall(r"notes? ([\d, and]+)", reason) for n in re.findall(r"\d+", part)}
        used |= named
        if status == "differs" and not named:
            told.append("the note is not named")
        told += [f"there is no note {n}" for n in sorted(named - known)]
        if status != "absent" and not (links(line.code) and links(line.shown)):
            told.append("a line of code and a test or a page are missing")
        told += [
            f"{target} is no code"
            for _, target in links(line.code)
            if not re.match(r"\.\./(src|experiments|benchmarks)/", target)
        ]
        for name, target in links(line.shown):
            if not (target.partition("#")[0].endswith(".md") or (name.startswith("`test_") and "/tests/" in target)):
                told.append(f"{target} is neither a test nor a page")
        told += broken_links(f"{line.says} {line.status} {line.code} {line.shown}", folder)
        found += [f"line {line.number}: {fault}" for fault in told]
    found += [f"no line names note {n}" for n in sorted(known - used)]
    counts = Counter(line.status.partition(":")[0] for line in lines)
    summary = ", ".join(f"{counts[status]} {status}" for status in STATUSES)
    kinds = Counter(row[1] for row in notes)
    for sentence in (
        f"The list of items has {len(lines)} lines: {summary}. The {len(notes)} notes say",
        f"There are {kinds['error']} errors, {kinds['open']} open points, {kinds['choice']} choices and "
        f"{kinds['result']} results.",
    ):
        if sentence not in text:
            found.append(f"the page does not say {sentence!r}")
    return found


def test_every_line_has_its_code_and_what_shows_it() -> None:
    assert faults(PAGE) == []


LIST = PAGE.split("## Every item")[1]


def changed(old: str, new: str) -> list[str]:
    """The faults of the page with one change in its list."""
    assert old in LIST
    return faults(PAGE.replace(LIST, LIST.replace(old, new, 1)))


@each(
    ("old", "new", "fault"),
    [
        ("| 2 | ", "| 3 | ", "the numbers of the lines are"),
        (" | complete | ", " | done | ", "'done' is no status"),
        (" | complete | ", " | complete: nearly | ", "a reason belongs to every status but complete"),
        (" | partial: ", " | partial | ", "has 7 cells"),
        (" | differs: note ", " | differs: notes 999, ", "there is no note 999"),
        (" | differs: note ", " | differs: ", "the note is not named"),
        ("src/infinitask/losses/_rows.py", "src/infinitask/losses/_row.py", "_row.py is not there"),
        ("[`Pinball`]", "[`Pinbal`]", "does not define `Pinbal`"),
        ("[`Pinball.row`]", "[`Pinball.column`]", "does not define `Pinball.column`"),
        ("[`test_reference`]", "[`test_referred`]", "does not define `test_referred`"),
        ("[`test_reference`](../tests", "[`test_reference`](../test", "is not there"),
        ("(results/table1.md", "(results/table0.md", "table0.md is not there"),
    ],
)
def test_a_broken_line_is_found(old: str, new: str, fault: str) -> None:
    assert any(fault in told for told in changed(old, new))


def test_lines_without_links_and_notes_without_lines_are_found() -> None:
    first = next(line for line in LIST.splitlines() if line.startswith("| 1 | "))
    bare = "| 1 | here | something | complete |  |  |"
    assert changed(first, bare) == ["line 1: a line of code and a test or a page are missing"]
    swapped = "| 1 | here | something | complete | [a](results/table1.md) | [`Ridge`](../src/infinitask/penalties.py) |"
    assert changed(first, swapped) == [
        "line 1: results/table1.md is no code",
        "line 1: ../src/infinitask/penalties.py is neither a test nor a page",
    ]
    assert "no line names note 4" in faults(PAGE.replace(LIST, re.sub(r"\b4\b", "5", LIST)))
    assert "the page does not say" in faults(PAGE.replace(" complete, ", " done, ", 1))[-1]
    assert "the page does not say" in faults(PAGE.replace(" open points", " points", 1))[-1]


def test_every_numbered_equation_has_its_line() -> None:
    numbers = [int(n) for row in rows(PAGE, LINES) for n in re.findall(r"^\((\d+)\)", row[1])]
    assert numbers == list(range(1, 32))


def printed(name: str) -> list[dict[str, str]]:
    with (TARGETS / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_every_row_of_the_papers_tables_has_its_line() -> None:
    says = {row[1]: row[2] for row in rows(PAGE, LINES)}
    for row in printed("table1.csv"):
        parts = []
        for key, label in (("itl", "∞-QR"), ("jqr", "JQR"), ("ind", "IND")):
            pinball, crossing = (f"{row[f'{key}_{kind}']} ± {row[f'{key}_{kind}_sd']}" for kind in ("pinball", "cross"))
            parts.append(f"{label} {pinball}, {crossing}")
        assert says[f"Table 1, {row['dataset']}"] == "; ".join(parts)
    rows_of = {"itl": "∞-CSC", "ind": "IND"}
    for name, method in {(row["dataset"], row["method"]) for row in printed("table2.csv")}:
        parts = [
            f"θ = {row['theta']}: {row['sensitivity']} / {row['specificity']}"
            for row in printed("table2.csv")
            if (row["dataset"], row["method"]) == (name, method)
        ]
        assert says[f"Table 2, {name}, {rows_of[method]}"] == "; ".join(parts)
    assert len([where for where in says if where.startswith("Table S.1, ")]) == 6


def test_what_the_page_calls_exists() -> None:
    code = [path for folder in ("src", "experiments", "benchmarks", "tests") for path in (ROOT / folder).rglob("*.py")]
    words = set(re.findall(r"\w+", " ".join(path.read_text(encoding="utf-8") for path in code)))
    for quoted in re.findall(r"`([^`\n]+)`", PAGE):
        if "/" not in quoted:
            assert all(word in words for word in re.findall(r"[A-Za-z_]\w*", quoted)), quoted


# ------------------------------------------------------------------------------------------ notes, by numbers
def test_the_sets_on_which_the_table_marks_a_difference() -> None:
    def marked(measure: str) -> list[dict[str, str]]:
        return [row for row in printed("table1.csv") if float(row[f"{measure}_p"]) < 0.0025]

    def lower(measure: str) -> int:
        kind = measure.partition("_")[2]
        return sum(float(row[f"itl_{kind}"]) < float(row[measure]) for row in marked(measure))

    assert (len(marked("ind_cross")), lower("ind_cross")) == (13, 12)
    assert (len(marked("jqr_cross")), lower("jqr_cross")) == (3, 2)
    for measure in ("jqr_pinball", "ind_pinball"):
        assert [row["dataset"] for row in marked(measure)] == ["crabs", "cpus"]
        assert lower(measure) == 0


def test_the_table_does_not_show_that_joint_levels_are_more_accurate() -> None:
    def counts(what: str) -> tuple[int, int]:
        pairs = [(float(row[f"jqr_{what}"]), float(row[f"ind_{what}"])) for row in printed("table1.csv")]
        return sum(a < b for a, b in pairs), sum(a > b for a, b in pairs)

    assert counts("pinball") == (7, 7)
    assert counts("cross") == (17, 1)


def test_the_deviations_on_spambase_are_those_of_the_page() -> None:
    page = (FOLDER / "results" / "level_sets.md").read_text(encoding="utf-8")
    found = [
        re.findall(r"0\.\d{3}", line) for line in page.splitlines() if re.match(r"\| Spambase \| (0\.25|1/d)", line)
    ]
    (cells,) = (cells for cells in rows(PAGE, NOTES) if "on Spambase" in cells[4])
    named = re.findall(r"0\.\d{3}", f"{cells[4]} {cells[5]}")
    assert len(named) == 7
    assert set(named) <= {number for line in found for number in line}


def test_the_deviations_of_level_sets_are_those_of_their_page() -> None:
    page = (FOLDER / "results" / "level_sets.md").read_text(encoding="utf-8")
    of = {tuple(line.split(" | ")[:2]): re.findall(r"0\.\d{3}", line) for line in page.splitlines() if "|" in line}
    text = (FOLDER / "reproduction.md").read_text(encoding="utf-8")
    (told,) = (part for part in text.split("\n\n") if part.startswith("Of level sets"))
    spambase, wilt = (of[f"| {name}", "0.25 (printed)"] for name in ("Spambase", "Wilt"))
    columns = (0, 1, 3, 4)  # ours on the training rows and on new ones, one-class SVMs on both
    expected = [spambase[k] for k in columns] + wilt[:2]
    expected += [max(of[f"| {name}", "1/d"][k] for name in ("Spambase", "Wilt")) for k in (0, 1)]
    assert re.findall(r"0\.\d{3}", told) == expected


def test_the_printed_algorithm_stops_as_far_from_the_optimum_as_its_page_says() -> None:
    def read(name: str) -> list[dict[str, str]]:
        with (FOLDER / "results" / name).open(encoding="utf-8", newline="") as file:
            return [row for row in csv.DictReader(file) if float(row["kappa"]) <= 0.1]

    far: dict[str, list[float]] = {}
    for row in read("robustness_starts.csv"):
        if (row["algorithm"], row["evaluations"]) == ("the paper's", "1000") and float(row["size"]) <= 1.0:
            far.setdefault(row["dataset"], []).append(100.0 * float(row["excess"]))
    few, many = far["sine"] + far["mcycle"], far["boston_housing"]
    (cells,) = (cells for cells in rows(PAGE, NOTES) if "results/robustness.md" in cells[4])
    assert f"{min(few):.0f}% to {max(few):.0f}% above the optimum on the sine curve and mcycle" in cells[4]
    assert f"{min(many):.0f}% to {max(many):.0f}% on boston_housing" in cells[4]
    change = max(abs(float(row["largest_change"])) for row in read("robustness.csv") if row["largest_change"])
    assert f"its test loss changes by at most {100.0 * change:.1f}%" in cells[4]


def test_only_one_set_has_the_full_specificity_that_the_text_names() -> None:
    for theta, side in (("-0.9", "specificity"), ("0.9", "sensitivity")):
        full = Counter(
            row["dataset"] for row in printed("table2.csv") if row["theta"] == theta and float(row[side]) == 1
        )
        assert [name for name, count in full.items() if count == 2] == ["circles"]


def test_printed_weights_are_no_probabilities_and_some_are_negative() -> None:
    u = (np.arange(64) + 0.5) / 64
    levels, costs = (Uniform(low, 1.0).ppf(u[:, None])[:, 0] / 64 for low in (0.0, -1.0))
    assert np.sum(levels) == pytest.approx(0.5)
    assert np.sum(costs) == pytest.approx(0.0, abs=1e-12)
    assert np.sum(costs < 0.0) == 32  # a hinge loss with a negative weight is concave


def test_the_infimal_convolution_is_kappa_times_the_piecewise_form() -> None:
    kappa, p, q = 0.3, np.linspace(-2.0, 2.0, 81), np.linspace(-3.0, 3.0, 6_001)
    convolved = np.min(kappa * np.abs(p[:, None] - q) + 0.5 * q**2, axis=1)
    piecewise = np.where(np.abs(p) <= kappa, p**2 / (2.0 * kappa), np.abs(p) - kappa / 2.0)
    np.testing.assert_allclose(convolved, kappa * piecewise, atol=1e-6)
    positive = np.min(kappa * np.maximum(p[:, None] - q, 0.0) + 0.5 * q**2, axis=1)
    piecewise = np.where(p <= kappa, np.maximum(p, 0.0) ** 2 / (2.0 * kappa), p - kappa / 2.0)
    np.testing.assert_allclose(positive, kappa * piecewise, atol=1e-6)


def test_a_value_is_bounded_by_the_root_of_the_kernel() -> None:
    # k_b = ¼ everywhere: the constant t = ½ has norm 1, as t = 2 k_b(·, θ) and ‖t‖² = 4 k_b(θ, θ)
    k, t, norm = 0.25, 0.5, 1.0
    assert norm == pytest.approx(np.sqrt(4.0 * k))
    assert k * norm < t <= np.sqrt(k) * norm


def test_the_sum_of_roots_over_a_subdivision_grows_without_bound() -> None:
    sums = [np.sum(np.sqrt(np.diff(np.linspace(0.0, 1.0, p + 1)))) for p in (1, 4, 16, 64)]
    np.testing.assert_allclose(sums, [1.0, 2.0, 4.0, 8.0])


def test_the_constant_of_coercivity_of_the_example() -> None:
    nodes = [0.3, 0.5, 0.7]
    constant = np.linalg.eigvalsh(Gaussian(gamma=5.0)(nodes, nodes))[0]
    (cells,) = (cells for cells in rows(PAGE, NOTES) if cells[2] == "lemma on coercivity")
    assert f"γ = 5 at 0.3, 0.5 and 0.7 the constant is {constant:.3f}, not 1" in cells[5]


def test_the_theta_property_is_one_of_the_threshold_and_not_of_the_penalty() -> None:
    X = make_mixture(120, random_state=0)
    data = Data.canonical(X, None, np.ones(120))
    free: dict[str, Any] = {"alpha": 1.0, "alpha_bias": 0.0, "bias_kernel": "diagonal"}
    decisions = []
    for penalty in (Ridge(), IntegratedRidge()):
        task = LevelSetTask(penalty=penalty)
        fit = learn(Recipe(task, gamma=1.0, task_gamma=20.0, n_nodes=8, tol=1e-7, **free), data)
        nodes = fit.quadrature.nodes[:, 0]
        decisions.append(fit.field(data.X, nodes))
        assert np.all(np.mean(decisions[-1] < -1e-5, axis=0) <= nodes)
        assert np.all(np.mean(decisions[-1] <= 1e-5, axis=0) >= nodes)
    # the sets are others all the same
    assert np.mean((decisions[0] > 0.0) != (decisions[1] > 0.0)) > 0.01


def test_a_sum_over_levels_is_what_the_crossing_loss_is() -> None:
    curves = np.array([[0.0, 1.0, 0.5], [3.0, 1.0, 2.0]])
    assert crossing_loss(curves) == pytest.approx((0.0 + 2.0) / 2.0 + (0.5 + 0.0) / 2.0)
