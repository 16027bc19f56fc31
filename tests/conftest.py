"""Fixtures shared by all tests."""

from __future__ import annotations

import importlib.util
from typing import Any

import array_api_compat.numpy
import array_api_strict
import pytest


def _backends() -> list[Any]:
    found = [pytest.param(array_api_compat.numpy, id="numpy"), pytest.param(array_api_strict, id="strict")]
    if importlib.util.find_spec("torch") is None:
        missing = pytest.mark.skip(reason="torch is not installed: pip install infinitask[torch]")
        return [*found, pytest.param(None, id="torch", marks=missing)]
    from array_api_compat import torch as torch_namespace

    return [*found, pytest.param(torch_namespace, id="torch")]


@pytest.fixture(params=_backends())
def xp(request: pytest.FixtureRequest) -> Any:
    """Each array library in turn: NumPy, the strict reference of the standard, torch where installed."""
    return request.param
