"""Limits that only large data reach, lowered for one test: the one place that knows where they are."""

from __future__ import annotations

from typing import Any

import pytest

from infinitask._base import threads
from infinitask.estimators import _sources
from infinitask.streaming import _fit


def visit_in_parts(patch: pytest.MonkeyPatch) -> None:
    """Rows are visited in parts although the sample holds all of them: choices and features are those of memory."""
    patch.setattr(_fit, "holds_all", lambda survey: False)


def sample_rows(patch: pytest.MonkeyPatch, rows: int) -> None:
    """Samples of rows that are not in memory have this number of rows."""
    patch.setattr(_fit, "SAMPLE_ROWS", rows)
    patch.setattr(_fit, "SAMPLE_ROWS_PER_FEATURE", 1)


def large_from(patch: pytest.MonkeyPatch, rows: int, entries: int = 1) -> None:
    """Arrays of this number of rows, and of entries of the features, are visited in parts."""
    patch.setattr(_sources, "LARGE_ROWS", rows)
    patch.setattr(_sources, "LARGE_ENTRIES", entries)


def use_threads(patch: pytest.MonkeyPatch, pool: Any) -> None:
    """Work is shared out to the threads of this pool; to none if it is None."""
    patch.setattr(threads, "_pool", lambda: pool)
