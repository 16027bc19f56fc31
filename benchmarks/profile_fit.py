"""Where the time of a fit goes: quantiles for 1, 8 and 50 features, from a hundred rows to a hundred thousand.

Run ``python benchmarks/profile_fit.py``; ``--quick`` is a small run to check that it works. The library contains no
clocks: this process replaces some of its functions by versions that measure their time.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import reduce
from importlib import import_module
from pathlib import Path
from statistics import fmean
from typing import Any
from unittest import mock

from infinitask import InfiniteQuantileRegressor
from infinitask._base import threads
from pages import now, signed
from paper_kappa import numbers_of
from suite.problems import Array, heteroscedastic

RESULTS = Path(__file__).parents[1] / "docs" / "benchmarks" / "profile.md"
DOCUMENT = Path(__file__).parents[1] / "docs" / "performance.md"
BEGIN, END = "<!-- made by make bench-profile -->", "<!-- until here -->"

REST = "Python and the rest"

SPANS = {
    "checks and order": (
        "infinitask.estimators._base:BaseInfiniteTask._rows",
        "infinitask.fitting._pose:Data.canonical",
    ),
    "nodes and ψ": (
        "infinitask.fitting._pose:quadrature_rule",
        "infinitask.measures._rules:Rule.__call__",
        "infinitask.fitting._pose:task_features",
    ),
    "kernel": (
        "infinitask.kernels._base:InputKernel.__call__",
        "infinitask.kernels._base:InputKernel.diag",
        "infinitask.kernels._input:_GammaKernel.resolve",
    ),
    "factorisation": ("infinitask.features._recipes:factorise_rows",),
    "eigenbasis": ("infinitask.solvers._basis:Eigenbasis.of",),
    "products": (
        "infinitask.objective._objective:Objective._visit",
        "infinitask.objective._terms:Integral.field",
    ),
    "loss": (
        "infinitask.objective._table:Table.sums",
        "infinitask.losses._base:BoxLoss.pointwise",
        "infinitask.losses._base:BoxLoss.sums",
        "infinitask.losses._base:BoxLoss.curvature",
    ),
    "L-BFGS": ("infinitask.solvers._solve:_Path.by_lbfgs",),
    "Newton": ("infinitask.solvers._solve:_Path.by_newton",),
    REST: ("infinitask.objective._objective:Objective.evaluate",),
}
"""The functions of each part. Their time counts without that of the listed functions which they call."""


@dataclass(frozen=True)
class Scale:
    """How large a run is."""

    n: tuple[int, ...]
    d: tuple[int, ...]
    m: tuple[int, ...]
    fits: int
    """The most fits of a case; the median counts."""
    seconds: float
    """No further fit of a case begins after this number of seconds."""


FULL = Scale(n=(100, 1_000, 10_000, 100_000), d=(1, 8, 50), m=(5, 100), fits=5, seconds=2.0)
QUICK = Scale(n=(60, 400), d=(1, 4), m=(5,), fits=1, seconds=0.0)


@dataclass(frozen=True)
class Case:
    """What is measured for one size."""

    n: int
    d: int
    m: int
    rank: tuple[int, int]
    """r and s."""
    evaluations: int
    gap: float
    fits: int
    seconds: float
    """Processor time with one thread: the median."""
    elapsed: float
    """Wall-clock time of the same fit."""
    all_threads: float
    """Wall-clock time with the library's default threads and without clocks: the median."""
    parts: dict[str, float]
    """Seconds of each part of the fit whose time is the median."""


# -------------------------------------------------------------------------------------------------------------- clocks
class Clock:
    """Seconds by part; time counts for the innermost part that is running.

    It is processor time, which does not contain other work on the machine.
    """

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(SPANS, 0.0)
        self._open = [REST]
        self._since = time.process_time()

    def _charge(self) -> None:
        now = time.process_time()
        self.seconds[self._open[-1]] += now - self._since
        self._since = now

    def timed(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, with its time added to a part."""

        def call(*arguments: Any, **options: Any) -> Any:
            self._charge()
            self._open.append(part)
            try:
                return function(*arguments, **options)
            finally:
                self._charge()
                self._open.pop()

        return call

    @contextmanager
    def watching(self) -> Iterator[None]:
        """A context in which all that :data:`SPANS` names is timed."""
        with ExitStack() as stack:
            for part, places in SPANS.items():
                for place in places:
                    self._patch(part, place, stack)
            self._since = time.process_time()
            yield
            self._charge()

    def _patch(self, part: str, place: str, stack: ExitStack) -> None:
        module, path = place.split(":")
        *names, last = path.split(".")
        owner = reduce(getattr, names, import_module(module))
        found = vars(owner).get(last)
        if found is None:
            raise AttributeError(f"SPANS names {place}, which does not exist; name what took its place.")
        timed = self.timed(part, getattr(found, "__func__", found))
        stack.enter_context(
            mock.patch.object(owner, last, classmethod(timed) if isinstance(found, classmethod) else timed)
        )


@contextmanager
def one_thread() -> Iterator[None]:
    """A context in which the library computes in the calling thread only."""
    with mock.patch.object(threads, "_pool", return_value=None):
        yield


# ----------------------------------------------------------------------------------------------------------- measuring
def data(n: int, d: int) -> tuple[Array, Array]:
    """Seeded rows, standardised."""
    X, y = heteroscedastic(n, d, seed=0)
    return (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()


def fit(X: Array, y: Array, m: int) -> InfiniteQuantileRegressor:
    return InfiniteQuantileRegressor(n_nodes=m, random_state=0).fit(X, y)


def repeated(work: Callable[[], tuple[float, Any]], scale: Scale) -> list[tuple[float, Any]]:
    """Seconds and result of repeated work, the fastest first; the median counts."""
    started, runs = time.perf_counter(), [work()]
    while len(runs) < scale.fits and time.perf_counter() - started < scale.seconds:
        runs.append(work())
    return sorted(runs, key=lambda run: run[0])


def measure(n: int, d: int, m: int, scale: Scale) -> Case:
    """One size."""
    X, y = data(n, d)

    def watched() -> tuple[float, Any]:
        clock = Clock()
        with clock.watching():
            started = time.perf_counter()
            model = fit(X, y, m)
            elapsed = time.perf_counter() - started
        return sum(clock.seconds.values()), (elapsed, clock.seconds, model)

    def unwatched() -> tuple[float, Any]:
        started = time.perf_counter()
        fit(X, y, m)
        return time.perf_counter() - started, None

    with one_thread():
        runs = repeated(watched, scale)
    seconds, (elapsed, parts, model) = runs[len(runs) // 2]
    others = repeated(unwatched, scale)
    return Case(
        n=n,
        d=d,
        m=m,
        rank=model.field_.coef.shape,
        evaluations=model.solution_.n_evaluations,
        gap=model.dual_gap_,
        fits=len(runs),
        seconds=seconds,
        elapsed=elapsed,
        all_threads=others[len(others) // 2][0],
        parts=parts,
    )


def warm_up() -> None:
    """Load libraries before anything is measured."""
    for n in (50, 3_100):  # the factorisations of few and of many rows
        fit(*data(n, 1), 5)


# -------------------------------------------------------------------------------------------------------------- report
def report(cases: Sequence[Case], scale: Scale, load: float) -> str:
    """The table, in Markdown."""
    columns = ["n", "d", "m", "r × s", "evaluations", "s, one thread", "s, all threads", *SPANS]
    lines = [
        "# Where the time of a fit goes",
        "",
        "`InfiniteQuantileRegressor(n_nodes=m)`, all else by default, on y = sin(2x₁) + ½x₂ + (0.2 + ½ s(2x₃))ε with "
        f"standard normal inputs, standardised. The median of up to {scale.fits} fits, of which none begins after "
        f"{scale.seconds:g} s. With one thread the seconds are those of the processor, and the shares are of them, in "
        "percent. With all threads they are on the wall, and what else runs on the machine counts: its load was "
        f"{load:.1f} on average. Matrix products have one thread in any fit.",
        "",
        "*kernel*: its values and its bandwidth; *factorisation*: the pivoted Cholesky without them; *products* and "
        "*loss*: of evaluations and of curvatures, with the NumPy calls around them; *L-BFGS* and *Newton*: the steps "
        "between evaluations, with the metric, the certificate and the Newton systems.",
        "",
        "| " + " | ".join(columns) + " |",
        "|" + "---:|" * len(columns),
    ]
    for case in cases:
        total = sum(case.parts.values())
        shares = [f"{100.0 * part / total:.0f}" for part in case.parts.values()]
        size = [f"{case.n}", f"{case.d}", f"{case.m}", f"{case.rank[0]} × {case.rank[1]}", f"{case.evaluations}"]
        times = [f"{seconds:.3g}" for seconds in (case.seconds, case.all_threads)]
        lines.append("| " + " | ".join(size + times + shares) + " |")
    return "\n".join(lines) + "\n"


def into_document(text: str, document: Path) -> None:
    """Replace the table in a document, and the explanation of its columns."""
    body = text.split("\n", 1)[1].strip()  # without the headline
    before, rest = document.read_text(encoding="utf-8").split(BEGIN)
    document.write_text(f"{before}{BEGIN}\n\n{body}\n\n{END}{rest.split(END)[1]}", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small numbers of rows: does it run?")
    parser.add_argument(
        "--output", type=Path, help=f"where the table goes, and a .json beside it; default: {RESULTS.name}, --quick: no"
    )
    options = parser.parse_args(arguments)
    scale = QUICK if options.quick else FULL
    started, provenance = time.perf_counter(), now("make bench-profile")
    warm_up()
    cases, load = [], []
    for n, d, m in [(n, d, m) for n in scale.n for d in scale.d for m in scale.m]:
        cases.append(measure(n, d, m, scale))
        load.append(os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan"))
        largest = max(cases[-1].parts, key=lambda part: cases[-1].parts[part])
        print(f"n {n}, d {d}, m {m}: {cases[-1].seconds:.3g} s, most of it: {largest}", flush=True)
    text = signed(report(cases, scale, fmean(load)), provenance)
    print(f"\n{text}\n({time.perf_counter() - started:.0f} s in all)")
    output = options.output or (None if options.quick else RESULTS)
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text, encoding="utf-8")
        found = {"provenance": str(provenance), "load": fmean(load), "cases": [asdict(case) for case in cases]}
        numbers_of(output).write_text(json.dumps(found, indent=1), encoding="utf-8")
    if options.output is None and output is not None:
        into_document(text, DOCUMENT)


if __name__ == "__main__":
    main()
