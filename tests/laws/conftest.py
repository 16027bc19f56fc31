"""Which of the random problems are left to the slow run."""

from __future__ import annotations

import pytest

QUICK_STRIDE, QUICK_OFFSET = 3, 2
"""The quick run tries every third problem. This third holds none of the problems that take seconds."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if isinstance(item, pytest.Function) and item.nodeid.startswith("tests/laws/test_laws.py::test_certificate["):
            seed = item.callspec.params["seed"]
            if seed % QUICK_STRIDE != QUICK_OFFSET:
                item.add_marker(pytest.mark.slow)
