"""A file with changed bytes is refused, or gives a model: there is no third outcome."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.saved import forged, good_file, opened, same, tried


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return good_file(tmp_path_factory.mktemp("good") / "m")


def test_a_changed_byte_is_found(good: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    content = good.read_bytes()
    outcomes = []
    for _ in range(300):
        changed = bytearray(content)
        for place in rng.integers(0, len(content), rng.integers(1, 4)):
            changed[place] ^= rng.integers(1, 256)
        if rng.uniform() < 0.3:
            changed = changed[: rng.integers(0, len(changed))]
        (tmp_path / "m").write_bytes(changed)
        outcomes.append(tried(tmp_path / "m"))
        if outcomes[-1] == "loaded":  # the change was in what only people read
            assert same(opened(tmp_path / "m")[:2], opened(good)[:2])
    assert outcomes.count("refused") > 280


@pytest.mark.slow
def test_a_changed_table_with_the_right_checksum(good: Path, tmp_path: Path) -> None:
    """What a checksum hides from the test above: any change of the table is refused, or gives a model."""
    rng = np.random.default_rng(1)
    found, arrays, _ = opened(good)
    outcomes = []
    for _ in range(300):
        text = _changed(rng, found)
        outcomes.append(tried(forged(tmp_path / "m", text, arrays)))
    assert set(outcomes) == {"loaded", "refused"}
    assert outcomes.count("refused") > 100


def _changed(rng: np.random.Generator, found: dict[str, Any]) -> str:
    """A table with some characters, or some whole values, changed."""
    if rng.uniform() < 0.5:
        characters = list(json.dumps(found))
        for place in rng.integers(0, len(characters), rng.integers(1, 4)):
            characters[place] = chr(rng.integers(32, 127))
        return "".join(characters)
    table = json.loads(json.dumps(found))
    values = [None, True, -1, 10**20, 1e300, "", "x", [0], [10**9], [], [[]], {}, ["list", []]]
    for _ in range(rng.integers(1, 4)):
        at: Any = table["entries"]
        while True:
            k = int(rng.integers(len(at)))
            if isinstance(at[k], list) and at[k] and rng.uniform() < 0.8:
                at = at[k]
                continue
            at[k] = values[rng.integers(len(values))]
            break
    return json.dumps(table)
