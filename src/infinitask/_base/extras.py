"""Late imports: libraries that come with an extra, and displays."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def needed(module: str, what: str, extra: str) -> Any:
    """Import a module of a library that an extra installs; ``what`` names the feature that needs it in the error."""
    try:
        return import_module(module)
    except ImportError as error:
        raise not_installed(what, extra) from error


def not_installed(what: str, extra: str) -> ImportError:
    """Return the error that states which feature needs a library, and which extra installs it."""
    return ImportError(f"{what}, which is not installed; install the extra with `pip install infinitask[{extra}]`.")


def display(name: str) -> Any:
    """Return the class of :mod:`infinitask.plotting` with this name.

    Results such as :class:`~infinitask.predictive.ROCCurve` are defined in lower layers than the plots. Their ``plot``
    looks up the display when it is called, so ``import infinitask`` loads no display.
    """
    return getattr(import_module("infinitask.plotting"), name)
