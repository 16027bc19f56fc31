"""Compare the speed of two states of the library: is anything slower than it was?

``python benchmarks/compare.py BASE`` compares a commit with the working tree, ``BASE HEAD`` two commits; ``.`` is the
working tree. Both sides are copied first and run by the Python that runs this script, so that only the library differs.
Runs alternate between the two sides, with one thread each. Times are processor seconds, which other work on the machine
affects least. The median of all runs counts; a case is called slower only if its fastest run is slower too.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_moons

import infinitask
from infinitask import (
    InfiniteCostSensitiveClassifier,
    InfiniteOneClassSVM,
    InfiniteQuantileRegressor,
    JointQuantileRegressor,
)
from infinitask.datasets import make_mixture, make_sine
from pages import now, signed
from paper_kappa import peak_mib
from suite.problems import LEVELS, Array, heteroscedastic

ROOT = Path(__file__).parents[1]
HERE = "."
LIMIT = 1.1
"""The ratio of times above which a case counts as slower."""
SHORTEST = 0.05
"""Shortest run in seconds; a case that takes less is repeated within a run."""


# --------------------------------------------------------------------------------------------------------------- cases
Work = Callable[[], Any]
"""Work to be timed; if it returns a fitted model, its evaluations are reported."""


def fits(make: Callable[[], Any], *data: Array) -> Work:
    return lambda: make().fit(*data)


def predicts(rows: int) -> Work:
    model = InfiniteQuantileRegressor(alpha=1e-4, random_state=0).fit(*heteroscedastic(1000, 8, seed=0))
    X = heteroscedastic(rows, 8, seed=1)[0]
    return lambda: model.predict(X, quantiles=LEVELS)


CASES: dict[str, Callable[[], Work]] = {
    "quantiles, 1 input, n = 1000": lambda: fits(
        lambda: InfiniteQuantileRegressor(random_state=0), *make_sine(1000, random_state=0)
    ),
    "quantiles, 8 inputs, n = 1000": lambda: fits(
        lambda: InfiniteQuantileRegressor(alpha=1e-4, random_state=0), *heteroscedastic(1000, 8, seed=0)
    ),
    "quantiles, 1 input, n = 100, tol = 1e-3": lambda: fits(
        lambda: InfiniteQuantileRegressor(tol=1e-3, random_state=0), *make_sine(100, random_state=0)
    ),
    "joint quantiles, 8 inputs, n = 400": lambda: fits(
        lambda: JointQuantileRegressor(quantiles=(0.1, 0.3, 0.5, 0.7, 0.9), tol=1e-6, random_state=0),
        *heteroscedastic(400, 8, seed=0),
    ),
    "level sets, 2 inputs, n = 500": lambda: fits(
        lambda: InfiniteOneClassSVM(alpha=1e-3, gamma="median", random_state=0), make_mixture(500, random_state=0)
    ),
    "level sets with defaults, 2 inputs, n = 1000": lambda: fits(
        lambda: InfiniteOneClassSVM(random_state=0), make_mixture(1000, random_state=0)
    ),
    "costs, 2 inputs, n = 2000": lambda: fits(
        lambda: InfiniteCostSensitiveClassifier(random_state=0), *make_moons(2000, noise=0.3, random_state=0)
    ),
    "prediction, 100 000 rows × 99 levels": lambda: predicts(100_000),
    "prediction, 1 row × 99 levels": lambda: predicts(1),
}
QUICK = ("quantiles, 1 input, n = 100, tol = 1e-3",)


# -------------------------------------------------------------------------------------------------------------- memory
def status(name: str) -> float:
    """An entry of Linux's account of this process, in MiB."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{name}:"))


def resident() -> float:
    """Resident MiB of this process. Its peak is reset where the system can do so; elsewhere the peak is returned."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        return status("VmRSS")
    except OSError:
        return peak_mib()


def peak() -> float:
    """Peak MiB of this process, since :func:`resident` where the system can reset it."""
    try:
        return status("VmHWM")
    except OSError:
        return peak_mib()


# ------------------------------------------------------------------------------------------------- one side, a process
def worker() -> None:
    """Run the cases named on the standard input, line by line, on one core."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    ready: dict[str, Work] = {}
    answer(str(Path(infinitask.__file__).parent))
    for line in sys.stdin:
        name, times, fresh = json.loads(line)
        if name not in ready:
            ready[name] = CASES[name]()
            if not fresh:
                ready[name]()  # loads libraries and compiles, outside the measurement
        before, started = resident() if fresh else 0.0, time.process_time()
        for _ in range(times):
            found = ready[name]()
        seconds = (time.process_time() - started) / times
        solution = getattr(found, "solution_", None)
        evaluations = None if solution is None else int(solution.n_evaluations)
        answer([seconds, evaluations, peak() - before if fresh else 0.0])


def answer(found: Any) -> None:
    print(json.dumps(found), flush=True)


class Side:
    """A process that runs cases with the library of a folder."""

    def __init__(self, folder: Path, script: str = __file__) -> None:
        one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        self._process = subprocess.Popen(
            [sys.executable, script, "--worker"],
            env={**os.environ, **one, "PYTHONPATH": str(folder)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._folder = folder
        self._known = False

    def __enter__(self) -> Side:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def ask(self, name: str, times: int, fresh: bool = False) -> tuple[float, int | None, float]:
        """Mean seconds and evaluations of a case over ``times`` runs; for a ``fresh`` process its memory as well."""
        seconds, evaluations, memory = self.call([name, times, fresh])
        return seconds, evaluations, memory

    def call(self, message: Any) -> Any:
        """The answer to a line, from a process that loaded the library of the folder and no other."""
        if not self._known and (loaded := Path(self._answer()).parent) != self._folder:
            raise RuntimeError(f"The library of {self._folder} was asked for, and that of {loaded} was loaded.")
        self._known = True
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"The process that runs {self._folder} ended; what it said stands above.")
        return json.loads(line)


# ----------------------------------------------------------------------------------------------------------- comparing
@dataclass
class Row:
    """The measurements of a case, for base and head."""

    seconds: tuple[list[float], list[float]] = field(default_factory=lambda: ([], []))
    evaluations: tuple[int | None, int | None] = (None, None)
    first: tuple[float, float] | None = None
    """Seconds of the first call in a process."""
    memory: tuple[float, float] | None = None
    """MiB of the first call."""

    @property
    def ratios(self) -> tuple[float, float]:
        """head : base, by medians and by the fastest runs."""
        base, head = self.seconds
        return float(np.median(head) / np.median(base)), min(head) / min(base)

    @property
    def verdict(self) -> str:
        """The verdict; slower or faster only where both ratios agree."""
        low, high = sorted(self.ratios)
        return "slower" if low > LIMIT else "faster" if high < 1.0 / LIMIT else ""


def compare(folders: tuple[Path, Path], cases: Sequence[str], processes: int, runs: int) -> dict[str, Row]:
    """Alternate between the two sides, in pairs of processes, with ``runs`` runs of a case in each process."""
    rows = {name: Row() for name in cases}
    for _ in range(processes):
        with ExitStack() as stack:
            sides = [stack.enter_context(Side(folder)) for folder in folders]
            for name, row in rows.items():
                first = [side.ask(name, 1) for side in sides]
                row.evaluations = first[0][1], first[1][1]
                times = max(1, round(SHORTEST / max(min(seconds for seconds, _, _ in first), 1e-9)))
                for turn in range(runs):
                    for k in (0, 1) if turn % 2 == 0 else (1, 0):
                        row.seconds[k].append(sides[k].ask(name, times)[0])
                print(f"{name}: {row.ratios[0]:.3f}, {row.ratios[1]:.3f}", file=sys.stderr, flush=True)
    return rows


def weigh(folders: tuple[Path, Path], rows: dict[str, Row]) -> None:
    """Time and peak memory of the first call of every case, each in its own process."""
    for name, row in rows.items():
        found = []
        for folder in folders:
            with Side(folder) as side:
                found.append(side.ask(name, 1, fresh=True))
        row.first, row.memory = (found[0][0], found[1][0]), (found[0][2], found[1][2])


def resolved(commit: str) -> str:
    """The hash of a commit: what HEAD or a branch stands for may change while the two sides run."""
    if commit == HERE:
        return HERE
    command = ["git", "rev-parse", "--short", f"{commit}^{{commit}}"]
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def copied(commit: str, into: Path) -> Path:
    """Copy the library of a commit or of the working tree into a folder, because the working tree may change."""
    if commit == HERE:
        shutil.copytree(ROOT / "src", into / "src", ignore=shutil.ignore_patterns("__pycache__"))
    else:
        packed = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(into, filter="data")
    return into / "src"


# -------------------------------------------------------------------------------------------------------------- report
def report(base: str, head: str, rows: dict[str, Row]) -> str:
    """The table, in Markdown."""
    runs = len(next(iter(rows.values())).seconds[0])
    lines = [
        f"# {named(base)} and {named(head)}",
        "",
        f"Milliseconds of the processor, one thread, the median of {runs} runs in turns. Ratios are of {named(head)} "
        f"to {named(base)}, by medians and by the fastest runs; where both are above {LIMIT:g} it says slower. First "
        "call: in a fresh process, with all that is loaded on the way, and the peak of its resident size beyond what "
        "it had before; a single measurement.",
        "",
        "| case | base, ms | head, ms | ratio | of the fastest | evaluations | first call, ms | peak memory, MiB | |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---|",
    ]
    for name, row in rows.items():
        times = " | ".join(milliseconds(float(np.median(seconds))) for seconds in row.seconds)
        ratios = " | ".join(f"{ratio:.2f}" for ratio in row.ratios)
        counts = " → ".join("–" if count is None else f"{count}" for count in row.evaluations)
        first = "–" if row.first is None else " → ".join(map(milliseconds, row.first))
        memory = "–" if row.memory is None else " → ".join(f"{size:.0f}" for size in row.memory)
        lines.append(f"| {name} | {times} | {ratios} | {counts} | {first} | {memory} | {row.verdict} |")
    return "\n".join(lines) + "\n"


def milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.0f}" if seconds >= 0.1 else f"{1e3 * seconds:.3g}"


def named(commit: str) -> str:
    return "the working tree" if commit == HERE else commit


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("base", nargs="?", help="a commit, or . for the working tree")
    parser.add_argument("head", nargs="?", default=HERE, help="the same; default: the working tree")
    parser.add_argument("--processes", type=int, default=3, help="pairs of processes, one after the other; default: 3")
    parser.add_argument("--runs", type=int, default=5, help="runs of a case in each of them; default: 5")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--quick", action="store_true", help="one case, one run, no memory: does it run?")
    parser.add_argument("--output", type=Path, help="where the table goes as well")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.worker:
        worker()
        return 0
    if options.base is None:
        parser.error("which commit to compare with?")
    cases = [name for name in (QUICK if options.quick else CASES) if options.only in name]
    if not cases:
        parser.error(f"no case has {options.only!r} in its name; there are: {'; '.join(CASES)}")
    processes, runs = (1, 1) if options.quick else (options.processes, options.runs)
    base, head = resolved(options.base), resolved(options.head)
    provenance = now(f"make bench-compare BASE={base}")
    if head != HERE:
        provenance = replace(provenance, commit=head, modified=False)
    with tempfile.TemporaryDirectory() as scratch:
        folders = copied(base, Path(scratch) / "base"), copied(head, Path(scratch) / "head")
        rows = compare(folders, cases, processes, runs)
        if not options.quick:
            weigh(folders, rows)
    text = signed(report(base, head, rows), provenance)
    print(f"\n{text}")
    if options.output is not None:
        options.output.write_text(text, encoding="utf-8")
    return int(any(row.verdict == "slower" for row in rows.values()))


if __name__ == "__main__":
    sys.exit(main())
