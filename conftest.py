"""What all tests and doctests share: figures are drawn without a screen, and closed; guests need their libraries."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

os.environ.setdefault("MPLBACKEND", "agg")

# a module of the integrations has the name of its library, without which it cannot be imported
GUESTS = Path(__file__).parent / "src" / "infinitask" / "integrations"
collect_ignore = [str(path) for path in GUESTS.glob("[!_]*.py") if find_spec(path.stem) is None]


def pytest_collection_finish() -> None:
    """Take modules and tests, which stay to the end, from the garbage collector: it would look at a million objects."""
    gc.freeze()


@pytest.fixture(autouse=True)
def figures_are_closed() -> Iterator[None]:
    """Close what a test drew with pyplot."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
