"""Docstrings of the parameters and attributes that the estimators share: written once, shown by every class."""

from __future__ import annotations

import inspect
import re
import textwrap


def _entries(text: str) -> dict[str, str]:
    """The entries of a numpydoc list, each under the name it opens with."""
    found = re.split(r"^(?=\S)", textwrap.dedent(text).strip("\n"), flags=re.MULTILINE)
    return {entry.split(" : ")[0].strip(): entry.rstrip("\n") for entry in found if entry.strip()}


def completed(cls: type, shared: str | None) -> str | None:
    """The docstring of an estimator with ``{parameters}`` and ``{attributes}`` written out.

    They stand for the entries of the ``shared`` docstring that this one does not give itself; of the parameters, those
    that the constructor takes.
    """
    doc = cls.__doc__
    if doc is None or shared is None or "{parameters}" not in doc:
        return doc
    parameters, attributes = re.split(r" +(?:Parameters|Attributes)\n +-+\n", shared)[1:]
    taken = inspect.signature(cls).parameters
    for mark, entries in (
        ("{parameters}", {k: v for k, v in _entries(parameters).items() if k in taken}),
        ("{attributes}", _entries(attributes)),
    ):
        missing = [entry for name, entry in entries.items() if not re.search(rf"^    {name} : ", doc, re.MULTILINE)]
        doc = doc.replace(f"    {mark}", textwrap.indent("\n".join(missing), "    "))
    return doc
