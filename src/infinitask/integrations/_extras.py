"""The error where the library of an integration is not installed."""

from __future__ import annotations


def not_installed(needs: str, extra: str) -> ImportError:
    """An error that says what needs which library, and which extra installs it."""
    return ImportError(f"{needs}, which is not installed; install the extra with `pip install infinitask[{extra}]`.")
