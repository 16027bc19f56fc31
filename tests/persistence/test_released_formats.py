"""Files of every format that was ever released are loaded, and answer as they did then."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import InconsistentVersionWarning

from infinitask import load
from infinitask.kernels import RBF
from infinitask.losses import Pinball
from infinitask.measures import Uniform
from infinitask.penalties import Ridge
from infinitask.persistence._file import FORMAT_VERSION
from infinitask.problem import Recipe
from tests.support.saved import forged
from tools.saved_models import answers

FILES = sorted((Path(__file__).parent / "files").glob("format*_*.safetensors"))
LARGEST = 60_000
"""Bytes of a file that is kept for ever."""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
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
        ["object", "infinitask.losses.Pinball", []],
        ["object", "infinitask.penalties.Ridge", []],
        ["object", "infinitask.problem.Recipe", ["loss", [2], "measure", [1], "penalty", [3], "kernel", [0]]],
    ]
    recipe = load(forged(tmp_path / "m", {"entries": entries, "model": [4]}))
    assert repr(recipe) == repr(Recipe(Pinball(), Uniform(0.0, 1.0), Ridge(), kernel=RBF()))


def test_there_are_files_of_every_version() -> None:
    for version in range(1, FORMAT_VERSION + 1):
        kinds = {path.stem.partition("_")[2] for path in FILES if path.stem.startswith(f"format{version}_")}
        assert kinds >= {"quantiles", "classifier", "level_sets", "tuned", "pipeline"}
