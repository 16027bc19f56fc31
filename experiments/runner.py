"""Run units of work in several processes, and store each result as soon as it is known."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TextIO

from .provenance import CODE, combined, now, reproduce, signed, unrecorded
from .store import FOLDER, Store, key, records_of

__all__ = ["Experiment", "Failed", "Record", "run"]

Unit = dict[str, Any]
Record = dict[str, Any]

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")

EVERY = 30.0
"""Seconds between two lines of progress where the output is not a terminal."""


class Failed(SystemExit):
    """Raised where some units failed; the results of all others are stored, and the report is written."""


@dataclass(frozen=True)
class Experiment:
    """A table or a figure.

    Parameters
    ----------
    name, title : str
    units : callable
        quick → the units, in the order in which they are done.
    work : callable
        unit, settings → the result to store, made of numbers, strings, lists and dictionaries.
    report : callable
        records, folder, settings → the files that were written. A quick run names the settings that it reduces.
    settings : callable
        quick → the settings that all units share.
    code : tuple of str
        Paths of the code that the figures depend on, relative to the root of the repository.
    """

    name: str
    title: str
    units: Callable[[bool], list[Unit]]
    work: Callable[[Unit, dict[str, Any]], dict[str, Any]]
    report: Callable[[list[Record], Path, dict[str, Any]], list[Path]]
    settings: Callable[[bool], dict[str, Any]] = field(default=lambda quick: {"quick": quick})
    code: tuple[str, ...] = CODE


def run(experiment: Experiment, folder: Path, *, quick: bool, jobs: int, only: str = "") -> list[Path]:
    """Run the units that are not done yet, then write the table or figure; pages are signed with their provenance.

    Parameters
    ----------
    experiment : Experiment
    folder : Path
        For the results; the records of the units go to ``units`` in it, or of ``experiments`` for the documentation.
    quick : bool
    jobs : int
        Processes, with one thread each.
    only : str
        Units that contain all of these words, separated by commas; a word may be several, "a|b", of which one is
        enough; "": all units.
    """
    with _environment({FOLDER: str(folder.resolve())}):
        return _run(experiment, folder, quick=quick, jobs=jobs, only=only)


def _run(experiment: Experiment, folder: Path, *, quick: bool, jobs: int, only: str) -> list[Path]:
    settings, units, told = experiment.settings(quick), experiment.units(quick), dict[str, Any]()
    if quick:
        full = experiment.settings(False)
        told["reduced"] = sorted(
            name for name, value in settings.items() if full.get(name) != value and name != "quick"
        )
        settings |= {"quick": True}
    words = [set(word.split("|")) for word in only.split(",") if word]
    chosen = [unit for unit in units if all(word & set(map(str, unit.values())) for word in words)]
    if not chosen:
        there = sorted({str(value) for unit in units for value in unit.values()})
        raise SystemExit(f"No unit of {experiment.name} has all words of --only {only}. There are: {', '.join(there)}.")
    here = now(reproduce(experiment.name, quick=quick), code=experiment.code)
    with Store(records_of(folder, experiment.name), settings, here).open() as store:
        left = [unit for unit in chosen if key(unit) not in store.records]
        print(f"{experiment.name}: {len(left)} of {len(chosen)} units are to be done", file=sys.stderr)
        failures = _finish(experiment, left, settings, store, jobs, Progress(experiment.name, chosen, store))
        known = {key(unit) for unit in units}
        records = [store.records[key(u)] for u in units if key(u) in store.records]
        runs = [store.provenances[name] or unrecorded(here) for name in store.records if name in known]
        strangers = len(store.records.keys() - known)
    if strangers:
        print(f"{strangers} records of units that no longer exist are ignored.", file=sys.stderr)
    files = experiment.report(records, folder, settings | told) if records else []
    for page in (path for path in files if path.suffix == ".md"):
        provenance = replace(combined(runs), command=here.command, code=here.code)
        page.write_text(signed(page.read_text(encoding="utf-8"), provenance), encoding="utf-8")
    if failures:
        # the same reason, such as a missing data set, is shown once
        reasons: dict[str, list[str]] = {}
        for unit, reason in failures:
            reasons.setdefault(reason, []).append(str(unit))
        lines = [
            f"  {units[0]}{f' and {len(units) - 1} others' * (len(units) > 1)}: {r}" for r, units in reasons.items()
        ]
        raise Failed("\n".join([f"{experiment.name}: {len(failures)} units failed; all others are kept:", *lines]))
    return files


def _finish(
    experiment: Experiment, units: Sequence[Unit], settings: dict[str, Any], store: Store, jobs: int, progress: Progress
) -> list[tuple[Unit, str]]:
    """Run the units; return those that failed, with the reasons."""
    failures: list[tuple[Unit, str]] = []
    if not units:
        return failures
    context = multiprocessing.get_context("spawn")
    with (
        _environment(dict.fromkeys(THREADS, "1")),
        ProcessPoolExecutor(min(jobs, len(units)), mp_context=context, initializer=_watch) as pool,
    ):
        try:
            asked: dict[Future[Record], Unit] = {
                pool.submit(_timed, experiment.work, unit, settings): unit for unit in units
            }
            for future in as_completed(asked):
                try:
                    store.add(future.result())
                except Exception as error:
                    failures.append((asked[future], f"{type(error).__name__}: {error}"))
                progress.show()
        except KeyboardInterrupt:
            for process in list(pool._processes.values()):
                process.terminate()
            pool.shutdown(wait=False, cancel_futures=True)
            raise SystemExit(f"\nStopped. What is done is kept in {store.path}: the same command goes on.") from None
    progress.end()
    return failures


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set variables for the processes that are started here: libraries read those of threads when they are loaded."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _timed(work: Callable[[Unit, dict[str, Any]], dict[str, Any]], unit: Unit, settings: dict[str, Any]) -> Record:
    start = time.perf_counter()
    result = work(unit, settings)
    return {"unit": unit, "result": result, "seconds": round(time.perf_counter() - start, 3)}


def _watch() -> None:
    """End this process when its parent ends: the parent may be killed, and nothing else would then stop the workers."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


class Progress:
    """How much is done, the time spent, and the time left, estimated from the units of the same kind that are done."""

    def __init__(self, name: str, units: Sequence[Unit], store: Store, out: TextIO = sys.stderr) -> None:
        self.name, self.units, self.store, self.out = name, units, store, out
        self.start = self.last = time.monotonic()
        self.before = sum(key(u) in store.records for u in units)

    def show(self) -> None:
        """Show one line: on a terminal it replaces the last one, elsewhere it is printed from time to time."""
        now = time.monotonic()
        if not self.out.isatty() and now - self.last < EVERY:
            return
        self.last = now
        done = sum(key(u) in self.store.records for u in self.units)
        line = f"{self.name}: {done} of {len(self.units)} units, {_span(now - self.start)}, {self._left(done, now)}"
        print(f"\r{line:<79}" if self.out.isatty() else line, end="" if self.out.isatty() else "\n", file=self.out)
        self.out.flush()

    def _left(self, done: int, now: float) -> str:
        records = self.store.records
        kinds: dict[str, list[float]] = {}
        for unit in self.units:
            if key(unit) in records:
                kinds.setdefault(_kind(unit), []).append(records[key(unit)]["seconds"])
        if done == self.before:
            return "time left unknown"
        every = [s for seconds in kinds.values() for s in seconds]
        mean = sum(every) / len(every)
        work_left = sum(
            sum(kinds.get(_kind(u), [mean])) / len(kinds.get(_kind(u), [mean]))
            for u in self.units
            if key(u) not in records
        )
        work_done = mean * (done - self.before)
        return f"about {_span(work_left * (now - self.start) / work_done)} left" if work_done else "nearly done"

    def end(self) -> None:
        """End the line."""
        if self.out.isatty():
            print(file=self.out)


def _kind(unit: Unit) -> str:
    return key({name: value for name, value in unit.items() if name != "split"})


def _span(seconds: float) -> str:
    minutes, hours = seconds / 60.0, seconds / 3600.0
    return f"{seconds:.0f} s" if minutes < 2.0 else f"{minutes:.0f} min" if hours < 2.0 else f"{hours:.1f} h"
