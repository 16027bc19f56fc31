"""The command ``infinitask``: from a table in a file to a model, predictions and a page (extra "cli").

``infinitask report data.csv --target price`` is enough for a page; ``infinitask --help`` lists the commands.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return 0 on success, 1 after an error, 2 for a wrong call, 130 after Ctrl-C.

    Parameters
    ----------
    arguments : sequence of str or None
        The words after the command; None: those of the process.
    """
    try:
        from infinitask.cli._app import app

        app(args=None if arguments is None else list(arguments), prog_name="infinitask")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("typer", "rich"):
            raise
        print("The command line needs typer and rich: pip install infinitask[cli]", file=sys.stderr)
        return 1
    except KeyboardInterrupt:  # during imports; commands report what became of their work
        return 130
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0
