"""How time is measured: whole answers, repeated, or single tasks within a budget, in sequence or one per core."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import threadpoolctl

REPETITIONS = 3


@dataclass(frozen=True)
class Clock:
    """How much time a contender may take in a case, and how many cores it has.

    Parameters
    ----------
    budget : float
        Seconds. Running work is finished; no repetition or task starts after it.
    cores : int
    whole : float
        A fraction of the budget: if all tasks take no longer than this, all are solved, not only a sample.
    """

    budget: float = 60.0
    cores: int = 1
    whole: float = 1.0 / 6.0


@dataclass(frozen=True)
class Measured:
    """What a contender did in a case.

    Parameters
    ----------
    seconds : float
        For all tasks of the case, fit and prediction; the median where the whole was repeated.
    raw : list of float
        The measured times: of repetitions of the whole, or of single tasks.
    tasks, timed : int
        Tasks of the case, and those that were timed; if fewer were timed, ``seconds`` is extrapolated.
    metrics : dict
    """

    seconds: float
    raw: list[float]
    tasks: int = 1
    timed: int = 1
    metrics: dict[str, Any] = field(default_factory=dict)


def repeated(answer: Callable[[], Any], clock: Clock) -> tuple[list[float], Any]:
    """Times of one to three repetitions, started within half the budget, and the last answer."""
    raw: list[float] = []
    found = None
    while not raw or (len(raw) < REPETITIONS and sum(raw) < 0.5 * clock.budget):
        started = time.perf_counter()
        found = answer()
        raw.append(time.perf_counter() - started)
    return raw, found


@dataclass(frozen=True)
class Tasks:
    """Answers to single tasks: results by task, the seconds of each, and the seconds of what they share."""

    results: dict[Any, Any]
    raw: list[float]
    shared: float
    asked: int
    cores: int

    @property
    def seconds(self) -> float:
        """Seconds for all tasks: the shared part, plus the mean task times their number, shared by the cores."""
        return self.shared + float(np.mean(self.raw)) * self.asked / self.cores

    def measured(self, **metrics: Any) -> Measured:
        """The measurement, with the metrics of the answers."""
        return Measured(self.seconds, self.raw, self.asked, len(self.raw), metrics)


def one_by_one(
    solve: Callable[[Any], Any], tasks: Sequence[Any], first: int, clock: Clock, *, shared: float = 0.0, fork: bool
) -> Tasks:
    """Solve the ``first`` tasks, and all others if that takes only a small part of the budget.

    Parameters
    ----------
    solve : callable
        Of one task.
    tasks : sequence
        The first ones stand for all of them.
    first : int
    clock : Clock
    shared : float
        Seconds already spent on what the tasks share.
    fork : bool
        True for a solver of one thread: one process per core solves a task each. Starting the processes and idle cores
        at the end are not counted: the seconds are those of the tasks, divided by the cores.
    """
    global _SOLVE
    cores = clock.cores if fork and "fork" in multiprocessing.get_all_start_methods() else 1
    started = time.perf_counter()
    _SOLVE = solve  # a forked process inherits it; a closure could not be sent to it otherwise
    context = multiprocessing.get_context("fork") if cores > 1 else None
    pool = None if context is None else ProcessPoolExecutor(cores, context, threadpoolctl.threadpool_limits, (1,))
    try:
        answers: dict[Any, tuple[float, Any]] = {}
        for begun in (tasks[:first], tasks[first:]):
            if answers and _mean(answers) * len(tasks) / cores > clock.whole * clock.budget:
                break
            _solve_all(begun, answers, pool, cores, started + clock.budget)
    finally:
        if pool is not None:
            pool.shutdown(cancel_futures=True)
    results = {task: result for task, (_, result) in answers.items()}
    return Tasks(results, [seconds for seconds, _ in answers.values()], shared, len(tasks), cores)


_SOLVE: Callable[[Any], Any]


def _timed(task: Any) -> tuple[float, Any]:
    started = time.perf_counter()
    result = _SOLVE(task)
    return time.perf_counter() - started, result


def _mean(answers: dict[Any, tuple[float, Any]]) -> float:
    return sum(seconds for seconds, _ in answers.values()) / len(answers)


def _solve_all(
    tasks: Sequence[Any],
    answers: dict[Any, tuple[float, Any]],
    pool: ProcessPoolExecutor | None,
    cores: int,
    until: float,
) -> None:
    """Solve tasks into ``answers`` until the time is over, at least one."""
    if pool is None:
        for task in tasks:
            if answers and time.perf_counter() > until:
                return
            answers[task] = _timed(task)
        return
    waiting, running = list(tasks), dict[Future[tuple[float, Any]], Any]()
    while running or waiting:
        while waiting and len(running) < cores and (not answers or time.perf_counter() < until):
            task = waiting.pop(0)
            running[pool.submit(_timed, task)] = task
        if not running:
            return
        for done in wait(running, return_when=FIRST_COMPLETED).done:
            answers[running.pop(done)] = done.result()
