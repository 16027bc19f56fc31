"""What the interpreter does while a file from a stranger is refused: it runs, imports, writes and takes nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.saved import forged, good_file, table

MOST_MEBIBYTES = 64

WATCHED = """
import json, resource, sys
from infinitask import load

good, *paths = sys.argv[1:]
load(good)  # libraries are imported, once

seen = []
def hook(event, arguments):
    if watching:
        seen.append((event, [str(one)[:200] for one in arguments]))

watching = False
sys.addaudithook(hook)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
outcomes = []
for path in paths:
    watching = True
    try:
        load(path)
        outcome = "loaded"
    except ValueError:
        outcome = "refused"
    watching = False
    outcomes.append(outcome)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"seen": seen, "outcomes": outcomes, "kilobytes": after - before}))
"""

HARMLESS = {"object.__getattr__", "object.__setattr__", "object.__delattr__", "os.stat", "pathlib.Path.glob"}
"""Events of looking at things."""


def lying(path: Path, shape: Any, offsets: Any) -> Path:
    header = json.dumps({"a": {"dtype": "F64", "shape": shape, "data_offsets": offsets}}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"\\0" * 8)
    return path


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is counted in kilobytes on Linux")
def test_nothing_is_run_and_nothing_is_allocated(tmp_path: Path) -> None:
    good = good_file(tmp_path / "good")
    names = ["os.system", "builtins.exec", "subprocess.Popen", "../../x", "antigravity.fly", "infinitask.cli.main"]
    hostile = [
        *(forged(tmp_path / f"object{k}", table(["object", name, ["x", 1]])) for k, name in enumerate(names)),
        *(forged(tmp_path / f"function{k}", table(["function", name])) for k, name in enumerate(names)),
        forged(tmp_path / "call", table(["function", "numpy.exp"], ["list", ["rm -rf /"]], ["partial", [[0], [1]]])),
        lying(tmp_path / "long", [10**12], [0, 8 * 10**12]),
        lying(tmp_path / "longer", [2**62], [0, 8]),
        lying(tmp_path / "wide", [10**6, 10**6], [0, 8 * 10**12]),
        forged(tmp_path / "raw", table(["raw", "a", "C", "<f8", [10**12]]), {"a": np.zeros(8, dtype=np.uint8)}),
        forged(tmp_path / "objects", table(["objects", [10**12], []])),
        forged(tmp_path / "range", table(["range", [0, 10**12, 1]])),
        forged(tmp_path / "text", table(["scalar", "<U999999999", "x"], ["list", [[0]] * 1000], ["nothing"])),
        forged(tmp_path / "factor", table(["object", "infinitask.features.Inverse", ["packed", 10**9]])),
    ]
    with (tmp_path / "header").open("wb") as file:
        file.write((2**40).to_bytes(8, "little") + b"{")
        file.truncate(2**30)  # holes: nothing is written
    hostile.append(tmp_path / "header")
    before = sorted(path.name for path in tmp_path.iterdir())
    found = subprocess.run(
        [sys.executable, "-c", WATCHED, str(good), *map(str, hostile)],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    said = json.loads(found.stdout)
    assert said["outcomes"] == ["refused"] * len(hostile)
    assert said["kilobytes"] < MOST_MEBIBYTES * 1024
    own = set(map(str, hostile))
    assert {arguments[0] for event, arguments in said["seen"] if event == "open"} == own  # the watch is awake
    for event, arguments in said["seen"]:
        if event == "open":
            path, mode, flags = arguments[:3]
            assert path in own, arguments
            assert mode in ("rb", "r", "None"), arguments
            assert int(flags) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) == 0, arguments
        else:
            assert event in HARMLESS, (event, arguments)
    assert sorted(path.name for path in tmp_path.iterdir()) == before
