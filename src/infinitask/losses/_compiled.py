"""Whether the rows of the table are compiled."""

from __future__ import annotations

import os
from functools import lru_cache
from importlib.util import find_spec
from types import ModuleType

__all__ = ["SWITCH", "kernels"]

SWITCH = "INFINITASK_COMPILED"
"""Environment variable; "0" leaves numba alone although it is installed."""


@lru_cache(maxsize=1)
def kernels() -> ModuleType | None:
    """The module of compiled functions; None without numba, which is in the extra "fast"."""
    if os.environ.get(SWITCH, "1") == "0" or find_spec("numba") is None:
        return None
    from infinitask.losses import _kernels

    return _kernels
