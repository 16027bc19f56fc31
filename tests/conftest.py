"""Fixtures shared by all tests."""

from __future__ import annotations

import importlib.util
import warnings
from collections import defaultdict
from typing import Any

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark as slow what a test marked ``quick`` does not name.

    ``@pytest.mark.quick("a", "b")`` names the ids of the instances of a test that stay quick, ``quick(every=3)`` keeps
    the first, the fourth and so on of those that are not slow by themselves.
    """
    instances: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("quick") and not item.get_closest_marker("slow"):
            instances[item.nodeid.partition("[")[0]].append(item)
    for test, same in instances.items():
        marker = same[0].get_closest_marker("quick")
        kept = same[:: marker.kwargs["every"]] if marker.kwargs else [item for item in same if _id(item) in marker.args]
        if not kept and not any("::" in argument for argument in config.args):
            raise pytest.UsageError(f"{test} has no quick instance: {marker} names none of {[*map(_id, same)]}")
        for item in same:
            if item not in kept:
                item.add_marker(pytest.mark.slow)


def _id(item: pytest.Item) -> str:
    """What stands in brackets after the name of a test."""
    return item.name.partition("[")[2].removesuffix("]")


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
