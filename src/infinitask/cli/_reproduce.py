"""The paper's tables and figures, by the experiments of a clone.

They need data, peers and hours, and are no part of the installed package. A clone has them: the folder that this
package is in, if it was installed with ``pip install -e .``, or else the current folder or one around it. Code of a
folder is run only if its ``pyproject.toml`` says that it is this project.
"""

from __future__ import annotations

import sys
import tomllib
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from infinitask.cli._output import FAILED, INTERRUPTED, CommandError

PROJECT = "infinitask"
"""The name of this project in its ``pyproject.toml``."""

NOT_HERE = (
    "The experiments are in the repository of infinitask, and not in the installed package. Get a clone of it, and run "
    "this command in its folder: cd infinitask && pip install -e '.[cli,data]' && infinitask reproduce"
)


def clone_of(here: Path, package: Path) -> Path:
    """The folder of a clone: the one that this package is in, else the current one or the nearest around it.

    Parameters
    ----------
    here : Path
        The current folder.
    package : Path
        The folder of the package, ``src/infinitask`` of a clone.
    """
    for folder in (package.parent.parent, here, *here.parents):
        if not (folder / "experiments" / "__main__.py").is_file() or not (folder / "src" / "infinitask").is_dir():
            continue
        with suppress(OSError, ValueError, LookupError, TypeError):  # it cannot be read, or is no such file
            if tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]["name"] == PROJECT:
                return folder
    raise CommandError(NOT_HERE)


def run(words: list[str]) -> int:
    """Run experiments, or list them if nothing is asked for; the exit code.

    Parameters
    ----------
    words : list of str
        For the command line of the experiments.
    """
    folder = clone_of(Path.cwd(), Path(__file__).resolve().parent.parent)
    print(f"The experiments are those of {folder}.", file=sys.stderr)
    sys.path.insert(0, str(folder))  # for processes that are started too
    experiments: Any = import_module("experiments.__main__")
    if not words:
        print("\n".join([*experiments.NAMES, "defaults", "all"]))
        print(f"\nRun one: infinitask reproduce {experiments.NAMES[0]} --quick", file=sys.stderr)
        return 0
    try:
        experiments.main(words)
    except SystemExit as end:
        if isinstance(end.code, int) or end.code is None:
            return end.code or 0
        print(end.code, file=sys.stderr)
        # experiments turn an interrupt into a sentence about what is kept
        return INTERRUPTED if isinstance(end.__context__, KeyboardInterrupt) else FAILED
    return 0
