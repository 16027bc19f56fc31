"""Docstrings are written to be read as they are; here they become valid reStructuredText."""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

LITERAL = re.compile(r"(``.*?``)")
LABEL = re.compile(r":ref:`([^<`]+?)\s*(?:<[^>]*>)?`")


def readable(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Absolute values are no substitutions, and labels of other projects' pages are plain words."""
    for k, line in enumerate(lines):
        if line.lstrip().startswith((">>>", "...")):
            continue
        parts = LITERAL.split(line)
        parts[::2] = [LABEL.sub(r"\1", part).replace("|", r"\|") for part in parts[::2]]
        lines[k] = "".join(parts)


def setup(app: Sphinx) -> dict[str, Any]:
    """Look at every docstring, after numpydoc has put it into its form."""
    app.connect("autodoc-process-docstring", readable, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
