"""Which of the random problems are left to the slow run."""

from __future__ import annotations

import pytest

QUICK_STRIDE, QUICK_OFFSET, SECONDS = 3, 2, {38, 62, 194, 227, 266, 272}
"""The quick run tries every third problem, but for those that take seconds."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if isinstance(item, pytest.Function) and item.nodeid.startswith("tests/laws/test_laws.py::test_certificate["):
            seed = item.callspec.params["seed"]
            if seed % QUICK_STRIDE != QUICK_OFFSET or seed in SECONDS:
                item.add_marker(pytest.mark.slow)
        elif item.name == "test_result_does_not_depend_on_the_number_of_threads":
            item.add_marker(pytest.mark.slow)
