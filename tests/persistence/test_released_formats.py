"""Files of every format that was ever released are loaded, and answer as they did then."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from sklearn.exceptions import InconsistentVersionWarning

from infinitask import load, save
from infinitask.fitting import Recipe
from infinitask.kernels import RBF
from infinitask.measures import Uniform
from infinitask.persistence import _file
from infinitask.persistence._file import FORMAT_VERSION
from infinitask.tasks import QuantileTask
from tests.support.each import each
from tests.support.saved import forged, opened, refused
from tools.saved_models import answers

FILES = sorted((Path(__file__).parent / "files").glob("format*_*.safetensors"))
LARGEST = 60_000
"""Bytes of a file that is kept for ever."""


@each("path", FILES, ids=lambda path: path.stem)
def test_a_file_of_a_released_format_answers_as_it_did(path: Path) -> None:
    assert path.stat().st_size < LARGEST
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InconsistentVersionWarning)  # the files stay, scikit-learn goes on
        model = load(path)
    with np.load(path.with_suffix(".npz"), allow_pickle=False) as kept:
        expected = dict(kept)
    found = answers(path.stem.partition("_")[2], model, expected.pop("X"))
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        if values.dtype.kind == "f":  # sums differ in their last bits from one library of mathematics to the next
            np.testing.assert_allclose(found[name], values, rtol=1e-12, atol=1e-12)
        else:
            np.testing.assert_array_equal(found[name], values)


def test_what_an_older_version_did_not_know_gets_its_default(tmp_path: Path) -> None:
    entries = [
        ["object", "infinitask.kernels.RBF", []],
        ["object", "infinitask.measures.Uniform", ["low", 0.0, "high", 1.0]],
        ["object", "infinitask.tasks.QuantileTask", ["measure", [1]]],
        ["object", "infinitask.fitting.Recipe", ["task", [2], "kernel", [0]]],
    ]
    recipe = load(forged(tmp_path / "m", {"entries": entries, "model": [3]}))
    assert repr(recipe) == repr(Recipe(QuantileTask(measure=Uniform(0.0, 1.0)), kernel=RBF()))


def test_there_are_files_of_every_version() -> None:
    for version in range(1, FORMAT_VERSION + 1):
        kinds = {path.stem.partition("_")[2] for path in FILES if path.stem.startswith(f"format{version}_")}
        assert kinds >= {"quantiles", "classifier", "level_sets", "tuned", "pipeline", "classes", "curves"}


class TestUpgrades:
    """A file of an older format takes one step after the other; the steps here are made up, the way is the real one."""

    ENTRIES: ClassVar = [["object", "infinitask.kernels.Bell", ["width", 0.5]], ["list", [[0], [0]]]]

    @staticmethod
    def renamed(table: dict[str, Any], arrays: Any) -> dict[str, Any]:
        entries = json.loads(json.dumps(table["entries"]).replace("kernels.Bell", "kernels.RBF"))
        return {**table, "entries": entries}

    @staticmethod
    def other_units(table: dict[str, Any], arrays: Any) -> dict[str, Any]:
        """γ instead of the width, and arrays in another unit."""
        for entry in table["entries"]:
            if entry[:2] == ["object", "infinitask.kernels.RBF"]:
                _, width = entry[2]
                entry[2] = ["gamma", 0.5 / width**2]
        for name in list(arrays):
            arrays[name] = 2.0 * arrays[name]
        return table

    @staticmethod
    def with_steps(patch: pytest.MonkeyPatch, *steps: Any) -> None:
        patch.setattr(_file, "FORMAT_VERSION", len(steps) + 1)
        patch.setattr(_file, "UPGRADES", dict(enumerate(steps, start=1)))

    @pytest.fixture
    def third_format(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.with_steps(monkeypatch, self.renamed, self.other_units)

    def test_one_after_the_other_from_the_version_of_the_file_on(self, tmp_path: Path, third_format: None) -> None:
        present = json.loads(json.dumps(self.ENTRIES).replace("Bell", "RBF").replace("width", "gamma"))
        for version, entries, gamma in (
            ("1", self.ENTRIES, 2.0),
            ("2", json.loads(json.dumps(self.ENTRIES).replace("Bell", "RBF")), 2.0),
            ("3", present, 0.5),
        ):
            table = {"entries": [*entries, ["array", "a", "C"], ["list", [[1], [2]]]], "model": [3]}
            path = forged(tmp_path / "m", table, {"a": np.ones(2)}, format_version=version)
            (kernel, same), array = load(path)
            assert kernel is same
            assert kernel.gamma == gamma
            assert array.tolist() == ([1.0, 1.0] if version == "3" else [2.0, 2.0])

    def test_files_are_written_in_the_last_format(self, tmp_path: Path, third_format: None) -> None:
        save(RBF(gamma=3.0), tmp_path / "m")
        assert opened(tmp_path / "m")[2]["format_version"] == "3"
        assert load(tmp_path / "m").gamma == 3.0

    @each("entries", [[["object", "infinitask.kernels.RBF", 3]], [3], 3, [["object"]]], ids=str)
    def test_a_step_that_fails_refuses_the_file(self, entries: Any, tmp_path: Path, third_format: None) -> None:
        refused(forged(tmp_path / "m", {"entries": entries, "model": [0]}), "")

    def test_a_step_cannot_bring_in_what_no_file_may_name(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.with_steps(monkeypatch, lambda table, arrays: {**table, "entries": [["function", "os.system"]]})
        refused(forged(tmp_path / "m", {"entries": [["list", []]], "model": [0]}), "it names the function 'os.system'")


def test_there_is_a_step_from_every_older_version() -> None:
    assert sorted(_file.UPGRADES) == list(range(1, FORMAT_VERSION))
