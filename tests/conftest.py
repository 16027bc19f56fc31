"""Fixtures shared by all tests."""

from __future__ import annotations

import importlib.util
import warnings
from typing import Any

import pytest

BACKENDS = {"numpy": "array_api_compat.numpy", "strict": "array_api_strict", "torch": "array_api_compat.torch"}


def _backend(name: str) -> Any:
    missing = name == "torch" and importlib.util.find_spec("torch") is None
    reason = "torch is not installed: pip install infinitask[torch]"
    return pytest.param(name, marks=pytest.mark.skip(reason=reason) if missing else ())


@pytest.fixture(params=[_backend(name) for name in BACKENDS])
def xp(request: pytest.FixtureRequest) -> Any:
    """Each array library in turn: NumPy, the strict reference of the standard, torch where installed."""
    # Imported where it is used: the process that only hands out the tests does not wait for torch.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of libraries while they are imported
        return importlib.import_module(BACKENDS[request.param])
