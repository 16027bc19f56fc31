"""Three continua of tasks, learnt, measured and drawn: ``python -m infinitask.demo``.

It runs the scripts of the folder ``examples`` one after the other. Each makes its data, fits one estimator, measures
it on unseen data, and draws what was learnt. A wheel carries the scripts inside the package; a clone has them beside
``src``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

__all__ = ["main"]

EXAMPLES = ("quantiles", "costs", "level_sets")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; 0 if all went well.

    Parameters
    ----------
    arguments : sequence of str or None
        The words after the command; None: those of the process.
    """
    here = Path(__file__).resolve().parent
    folder = next(folder for folder in (here / "_examples", here.parents[1] / "examples") if folder.is_dir())
    sys.path.insert(0, str(folder))  # the scripts import their neighbours by name, so that each also runs by itself
    try:
        gallery = import_module("_gallery")
        entries = [import_module(name).ENTRY for name in EXAMPLES]
    finally:
        sys.path.remove(str(folder))
    status: int = gallery.main(
        entries,
        arguments,
        prog="python -m infinitask.demo",
        description="Fit three continua of tasks on built-in data, print how well it went, and draw what was learnt.",
    )
    return status


if __name__ == "__main__":
    sys.exit(main())
