"""Files of older formats: what they say, in the words of the present format.

A format changes where a class is renamed, or where its fields change their meaning; new fields with a default need no
new format. Each step leads from one version to the next, and a file takes all steps from its own version on, so that a
step is written once and never again.

To make version v + 1: write a function that turns the table of a model as version v has it into that of version v + 1,
put it into :data:`UPGRADES` under v, raise :data:`FORMAT_VERSION`, and keep files of the new version with
``tools/saved_models.py``. Steps see files from strangers: they change words, and make nothing.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import Any

from infinitask._base.arrays import HostArray

Table = dict[str, Any]
"""``{"entries": [...], "model": ...}``, as it is in a file."""

Upgrade = Callable[[Table, MutableMapping[str, HostArray]], Table]

FORMAT_VERSION = 1
"""The version of the format that is written; older ones are read as well."""

UPGRADES: dict[int, Upgrade] = {}
"""Under v: the step from version v to v + 1, a function of the table and of the arrays by their names."""


def upgraded(version: int, table: Table, arrays: MutableMapping[str, HostArray]) -> Table:
    """The table of a file of that version as one of the present version; the arrays are changed in their place.

    Parameters
    ----------
    version : int
    table : dict
    arrays : mapping

    Examples
    --------
    >>> upgraded(FORMAT_VERSION, {"entries": [], "model": None}, {})
    {'entries': [], 'model': None}
    """
    for known in range(version, FORMAT_VERSION):
        table = UPGRADES[known](table, arrays)
    return table
