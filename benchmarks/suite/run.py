"""Run every contender in its own process, limited to its threads, and write all results to one file."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pages import now
from suite import machine

FOLDER = Path(__file__).parents[1]
RESULTS = FOLDER.parent / "docs" / "benchmarks"
PROBLEMS = ("quantiles", "joint", "cost-sensitive", "level-sets", "small", "path")
BUDGET, QUICK_BUDGET = 60.0, 1.0


def measure(problem: str, name: str, case: Any, budget: float, cores: int) -> dict[str, Any]:
    """One contender in one case, in this process: a row of the results."""
    from suite.clock import Clock
    from suite.contenders import contender

    found = contender(problem, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        measured = found.run(case, Clock(budget, cores))
    return asdict(measured)


@dataclass(frozen=True)
class Plan:
    """What is run: sizes, the seconds after which a contender starts nothing more in a case, and the contenders."""

    quick: bool = False
    sizes: tuple[int, ...] = ()
    budget: float = BUDGET
    who: tuple[str, ...] = ()

    def contenders(self, problem: str) -> list[Any]:
        """The contenders of a problem: all, or our reference and those whose name contains one of ``who``."""
        from suite.contenders import CONTENDERS

        first, *others = CONTENDERS[problem]
        return [first, *(c for c in others if not self.who or any(part in c.name for part in self.who))]

    def cases(self, problem: str) -> list[Any]:
        """The cases of a problem, smallest first."""
        from suite.problems import cases

        return cases(self.quick, self.sizes)[problem]


def work(problem: str, name: str, plan: Plan, threads: int, file: Path) -> None:
    """All cases of one contender, in its own process: a line of JSON for each as soon as it is done."""
    if not plan.quick:
        machine.confine(threads)
    from suite.contenders import contender

    # loading at the first call is not measured; it is done on one core, so that forked processes inherit it
    if not plan.quick:
        measure(problem, name, Plan(quick=True).cases(problem)[0], 0.0, 1)
    largest = contender(problem, name).largest
    for case in plan.cases(problem):
        if largest is None or case.n <= largest:
            row = measure(problem, name, case, plan.budget, threads)
            with file.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps({"case": case.label, **row}) + "\n")


def employ(problem: str, name: str, plan: Plan, threads: int) -> tuple[list[dict[str, Any]], str]:
    """The rows of a contender from a fresh process, and why it did not finish ("" if it did).

    A case is stopped after twice its budget plus half a minute for the start.
    """
    patience = 2.0 * plan.budget + 30.0
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.jsonl"
        file.touch()
        command = [sys.executable, "-m", "suite", "--worker", problem, name, str(threads), str(file)]
        command += ["--budget", repr(plan.budget)] + ["--quick"] * plan.quick
        if plan.sizes:
            command += ["--sizes", *map(str, plan.sizes)]
        with (Path(folder) / "errors").open("w+", encoding="utf-8", errors="replace") as errors:
            process = subprocess.Popen(
                command,
                cwd=FOLDER,
                env=machine.environment(threads),
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,  # with its children, so that they are stopped together
            )
            why, size, begun = "", 0, time.monotonic()
            while process.poll() is None:
                time.sleep(0.05)
                if file.stat().st_size > size:
                    size, begun = file.stat().st_size, time.monotonic()
                if time.monotonic() - begun > patience:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
                    done = len(file.read_text(encoding="utf-8").splitlines())
                    why = f"stopped after {patience:.0f} s in case {done + 1}, {threads} threads"
            if process.returncode != 0 and not why:
                errors.seek(0)
                said = [line.strip() for line in errors if line.strip()]
                why = said[-1] if said else f"the process ended with {process.returncode}"
        rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return rows, why


def run(
    problems: Sequence[str], threads: Sequence[int], plan: Plan, save: Callable[[dict[str, Any]], None] | None = None
) -> dict[str, Any]:
    """All results as they will be written; ``save`` is called after each contender, so that nothing is lost."""
    from suite.contenders import SINGLE_THREAD

    found: dict[str, Any] = {
        "provenance": str(now("make bench")),
        "machine": machine.description(),
        "versions": machine.versions(),
        "settings": {
            **asdict(plan),
            "only": list(problems),
            "threads": list(threads),
            "cases": {problem: [asdict(case) for case in plan.cases(problem)] for problem in problems},
        },
        "rows": [],
        "skipped": [],
        "seconds": {},
    }
    # a quick run checks that everything works and measures nothing: contenders run in parallel, one per core
    with ThreadPoolExecutor(machine.cores() if plan.quick else 1) as pool:
        for problem in problems:
            started = time.monotonic()
            counts = [min(threads)] if problem in SINGLE_THREAD else threads
            jobs = [(contender, count) for contender in plan.contenders(problem) for count in counts]
            answers = pool.map(partial(_job, problem, plan), *zip(*jobs, strict=True))
            for (contender, count), (rows, why) in zip(jobs, answers, strict=True):
                about = {"problem": problem, "contender": contender.name, "threads": count}
                for row in rows:
                    found["rows"].append(about | {"ours": contender.ours, "solves": contender.solves} | row)
                    print(f"{problem} {row['case']}, {contender.name}, {count}: {row['seconds']:.3g} s", flush=True)
                if why:
                    found["skipped"].append(about | {"why": why})
                    print(f"skipped: {contender.name} ({why})", flush=True)
                if save is not None:
                    save(found)
            found["seconds"][problem] = round(time.monotonic() - started, 1)
    return found


def _job(problem: str, plan: Plan, contender: Any, threads: int) -> tuple[list[dict[str, Any]], str]:
    why = contender.missing()
    return employ(problem, contender.name, plan, threads) if why is None else ([], why)


def parser() -> argparse.ArgumentParser:
    """The options."""
    found = argparse.ArgumentParser(prog="python -m suite", description=__doc__)
    found.add_argument(
        "--only", nargs="+", choices=PROBLEMS, default=PROBLEMS, metavar="PROBLEM", help=", ".join(PROBLEMS)
    )
    found.add_argument(
        "--threads", nargs="+", help='numbers of threads, or "all"; default: 1 all, with --quick 1', metavar="COUNT"
    )
    found.add_argument(
        "--who", nargs="+", default=(), metavar="NAME", help="ours, and those whose name contains one of these"
    )
    found.add_argument(
        "--sizes", nargs="+", type=int, default=(), metavar="N", help="these n instead of the usual ones"
    )
    found.add_argument("--quick", action="store_true", help="tiny sizes: does it run?")
    found.add_argument(
        "--budget",
        type=float,
        help=f"seconds after which a contender begins nothing more in a case; default {BUDGET:g}, with --quick "
        f"{QUICK_BUDGET:g}",
    )
    found.add_argument(
        "--output", type=Path, help="a folder for suite.json and suite.md; default: results, with --quick none"
    )
    found.add_argument("--report", type=Path, metavar="JSON", help="write the report of a run that is done")
    found.add_argument("--worker", nargs=4, help=argparse.SUPPRESS)
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Run, write suite.json and suite.md, print the report."""
    options = parser().parse_args(arguments)
    budget = options.budget or (QUICK_BUDGET if options.quick else BUDGET)
    plan = Plan(options.quick, tuple(options.sizes), budget, tuple(options.who))
    if options.worker:
        problem, name, count, file = options.worker
        work(problem, name, plan, int(count), Path(file))
        return
    from suite.report import report

    output = options.output or (None if options.quick else RESULTS)
    if options.report:
        results = json.loads(options.report.read_text(encoding="utf-8"))
    else:
        wanted = options.threads or (["1"] if options.quick else ["1", "all"])
        threads = sorted({machine.cores() if count == "all" else int(count) for count in wanted})
        results = run(options.only, threads, plan, None if output is None else partial(_save, output))
    text = report(results)
    print(f"\n{text}")
    if output is not None:
        _save(output, results)
        (output / "suite.md").write_text(text, encoding="utf-8")


def _save(output: Path, results: dict[str, Any]) -> None:
    output.mkdir(parents=True, exist_ok=True)
    numbers = FOLDER / "results" if output == RESULTS else output  # readers of the documentation do not need them
    (numbers / "suite.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
