"""Whether the rows of the table are compiled."""

from __future__ import annotations

import os
import warnings
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
    try:
        from infinitask.losses import _kernels
    except (ImportError, AttributeError) as error:  # the latter where an import was interrupted before
        warnings.warn(
            f"numba is installed but cannot be loaded ({error}); fits are slower without it. Install a version that "
            f"suits this NumPy, or set {SWITCH}=0 to do without.",
            RuntimeWarning,
            stacklevel=2,
        )
        return None
    return _kernels
