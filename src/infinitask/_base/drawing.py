"""How a result finds the display that draws it.

Results such as :class:`~infinitask.predictive.ROCCurve` live far below :mod:`infinitask.plotting`, which knows them and
not the other way round. Their ``plot`` looks the display up by name when it is called, so that nothing below depends on
the plots and ``import infinitask`` loads none of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def display(name: str) -> Any:
    """The class of :mod:`infinitask.plotting` with this name."""
    return getattr(import_module("infinitask.plotting"), name)
