"""One HTML file: the text, the style, the program and the data."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
import re
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import final

from infinitask.report._export import Exported

SCRIPTS = (
    "kernels.js",
    "field.js",
    "models.js",
    "charts.js",
    "fields.js",
    "controls.js",
    "plane.js",
    "categories.js",
    "quantiles.js",
    "cost_controls.js",
    "costs.js",
    "level_sets.js",
    "start.js",
)
"""The program, in this order; plain scripts that share one scope."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class Page:
    """A page in which a person explores a model; :func:`~infinitask.report.explore` makes it.

    In a notebook it is shown when it is the last line of a cell.

    Parameters
    ----------
    payload : dict
        The model, rows and words, as plain data.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from infinitask import InfiniteQuantileRegressor
    >>> from infinitask.datasets import make_sine
    >>> X, y = make_sine(60, random_state=0)
    >>> page = InfiniteQuantileRegressor(n_nodes=8).fit(X, y).explore(X, y)
    >>> page.save(Path(tempfile.mkdtemp()) / "report.html").name
    'report.html'
    """

    payload: Exported

    def __repr__(self) -> str:
        return f"Page({self.payload['title']!r}, {len(self.html.encode()) / 1e6:.2g} MB; page.save('report.html'))"

    @property
    def html(self) -> str:
        """The whole file."""
        # a "<" of the data must not end the script, whatever follows it
        data = json.dumps(self.payload, allow_nan=False, separators=(",", ":"))
        for sign in "<>&":
            data = data.replace(sign, f"\\u{ord(sign):04x}")
        program = _program()
        digest = base64.b64encode(hashlib.sha256(program.encode()).digest()).decode("ascii")
        parts = {
            "title": html.escape(str(self.payload["title"])),
            "policy": f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'",
            "style": _asset("page.css"),
            "heading": html.escape(str(self.payload["title"])),
            "data": data,
            "program": program,
        }
        # one pass, so that no part is searched for marks
        return re.sub(r"\{\{(\w+)\}\}", lambda mark: parts[mark[1]], _asset("page.html"))

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the file, and say where it is.

        Parameters
        ----------
        path : str or path
            Usually ends in ``.html``; the folder must exist.
        """
        target = Path(path)
        target.write_text(self.html, encoding="utf-8", newline="\n")
        return target

    def _repr_html_(self) -> str:
        """The page in a frame of its own: its style and a notebook's do not meet."""
        source, title = html.escape(self.html), html.escape(str(self.payload["title"]))
        style = "width:100%;height:900px;border:0"
        return f'<iframe srcdoc="{source}" title="{title}" style="{style}"></iframe>'


@lru_cache(maxsize=16)
def _asset(name: str) -> str:
    return files("infinitask.report").joinpath("assets", name).read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def _program() -> str:
    return '"use strict";\n(() => {\n' + "\n".join(_asset(name) for name in SCRIPTS) + "\n})();\n"
