"""Threads that process blocks of rows in parallel."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from threading import current_thread
from typing import TypeVar

_Item = TypeVar("_Item")
_Part = TypeVar("_Part")

NAME = "infinitask"
"""The prefix of the names of the threads."""

MAX_THREADS = 4
"""The maximum number of threads: more would wait for the interpreter; see :func:`shared_out`."""


def shared_out(visit: Callable[[_Item], _Part], items: Sequence[_Item]) -> list[_Part]:
    """Return ``visit`` of every item, by parallel threads; NumPy releases the interpreter while it computes.

    Between two operations of NumPy a thread waits for the interpreter, and many threads slow each other down. Compiled
    loops do not wait.
    """
    # a thread of the pool that waits for the pool may wait forever
    outside = not current_thread().name.startswith(NAME)
    threads = _pool() if len(items) > 1 and outside else None
    return [visit(item) for item in items] if threads is None else list(threads.map(visit, items))


@lru_cache(maxsize=1)
def _pool() -> ThreadPoolExecutor | None:
    """Return the threads; None with one core, where waiting for a second thread would cost a tenth of the time.

    OMP_NUM_THREADS limits their number; joblib sets this variable in the processes that it starts.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if asked.isdigit() and int(asked) > 0:
        cores = min(cores, int(asked))
    return ThreadPoolExecutor(min(MAX_THREADS, cores), thread_name_prefix=NAME) if cores > 1 else None


if hasattr(os, "register_at_fork"):
    # threads do not survive a fork: a child process creates its own
    os.register_at_fork(after_in_child=_pool.cache_clear)
