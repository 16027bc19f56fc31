"""The threads that share out the blocks of rows."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

__all__ = ["pool"]

MOST_THREADS = 4
"""See :func:`pool`."""


@lru_cache(maxsize=1)
def pool() -> ThreadPoolExecutor:
    """Threads that visit groups of blocks side by side; NumPy lets go of the interpreter while it computes.

    Between two operations a thread waits for the interpreter, so that many threads hinder each other.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return ThreadPoolExecutor(min(MOST_THREADS, cores))


if hasattr(os, "register_at_fork"):
    # threads do not survive a fork: a child process makes its own
    os.register_at_fork(after_in_child=pool.cache_clear)
