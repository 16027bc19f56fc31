"""Late imports: libraries that come with an extra, and displays."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def needed(module: str, what: str, extra: str) -> Any:
    """A module of a library that an extra installs; ``what`` says in the error what needs it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise not_installed(what, extra) from error


def not_installed(what: str, extra: str) -> ImportError:
    """The error that says what needs which library, and which extra installs it."""
    return ImportError(f"{what}, which is not installed; install the extra with `pip install infinitask[{extra}]`.")


def display(name: str) -> Any:
    """The class of :mod:`infinitask.plotting` with this name.

    Results such as :class:`~infinitask.predictive.ROCCurve` are defined far below the plots. Their ``plot`` looks the
    display up when it is called, so that ``import infinitask`` loads none of them.
    """
    return getattr(import_module("infinitask.plotting"), name)
