"""Threads that work on blocks of rows side by side."""

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
"""How the names of the threads begin."""

MAX_THREADS = 4
"""More threads would wait for the interpreter; see :func:`shared_out`."""


def shared_out(visit: Callable[[_Item], _Part], items: Sequence[_Item]) -> list[_Part]:
    """``visit`` of every item, by threads side by side; NumPy releases the interpreter while it computes.

    Between two operations of NumPy a thread waits for the interpreter, and many threads hinder each other. Compiled
    passes do not wait.
    """
    # a thread of the pool that waited for the pool might wait for ever
    outside = not current_thread().name.startswith(NAME)
    threads = _pool() if len(items) > 1 and outside else None
    return [visit(item) for item in items] if threads is None else list(threads.map(visit, items))


@lru_cache(maxsize=1)
def _pool() -> ThreadPoolExecutor | None:
    """The threads; None with one core, where waiting for a second thread would cost a tenth of the time.

    OMP_NUM_THREADS limits their number; joblib sets it in the processes it starts.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if asked.isdigit() and int(asked) > 0:
        cores = min(cores, int(asked))
    return ThreadPoolExecutor(min(MAX_THREADS, cores), thread_name_prefix=NAME) if cores > 1 else None


if hasattr(os, "register_at_fork"):
    # threads do not survive a fork: a child process makes its own
    os.register_at_fork(after_in_child=_pool.cache_clear)
