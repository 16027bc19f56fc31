"""How time and memory of a fit grow with the rows n, the nodes m and the features r.

Run ``python benchmarks/growth.py``; ``--quick`` is a small run to check that it works. Every point is measured in its
own process, with one thread. On doubly logarithmic axes a power is a straight line whose slope is the exponent. The
table has the slopes and their limits.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from compare import peak, resident
from infinitask import InfiniteQuantileRegressor
from infinitask.datasets import make_sine
from infinitask.objective import Objective
from pages import now, signed
from paper_kappa import numbers_of
from profile_fit import one_thread
from suite.problems import Array, heteroscedastic

RESULTS = Path(__file__).parents[1] / "docs" / "benchmarks" / "growth.md"

MEASURED = {"seconds": "time, s", "per_evaluation": "time per evaluation, s", "peak": "peak memory, MiB"}


@dataclass(frozen=True)
class Setting:
    """One fit."""

    n: int
    d: int
    m: int
    features: str = "auto"
    rank: int | None = None


@dataclass(frozen=True)
class Curve:
    """Fits in which one size grows."""

    title: str
    x: str
    settings: tuple[Setting, ...]
    limit: float | None = None
    """The largest slope that is allowed; None: any."""


@dataclass(frozen=True)
class Point:
    """What was measured."""

    x: int
    rank: tuple[int, int]
    evaluations: int
    fits: int
    seconds: float
    per_evaluation: float
    peak: float


def curves(rows: Sequence[int], nodes: Sequence[int], ranks: Sequence[int], n: int, rank: int) -> tuple[Curve, ...]:
    """The four curves; the second one has a fixed number of features, the last two a fixed number of rows."""
    return (
        Curve("rows, exact features, 1 input", "n", tuple(Setting(n, 1, 50) for n in rows), 1.1),
        Curve(
            f"rows, {rank} Nyström features, 8 inputs",
            "n",
            tuple(Setting(n, 8, 50, "nystroem", rank) for n in rows),
            1.1,
        ),
        Curve(f"nodes, {n} rows, 1 input", "m", tuple(Setting(n, 1, m) for m in nodes), 1.0),
        Curve(f"Nyström features, {n} rows, 8 inputs", "r", tuple(Setting(n, 8, 50, "nystroem", r) for r in ranks)),
    )


FULL = curves(
    rows=(1_000, 3_000, 10_000, 30_000, 100_000, 300_000),
    nodes=(10, 30, 100, 300, 1_000),
    ranks=(50, 100, 200, 400, 800, 1_600),
    n=5_000,
    rank=200,
)
QUICK = curves(rows=(100, 400), nodes=(5, 20), ranks=(10, 40), n=200, rank=20)


# ----------------------------------------------------------------------------------------------------------- one point
def data(setting: Setting) -> tuple[Array, Array]:
    """Sine data for one input, else those of the suite; standardised."""
    X, y = make_sine(setting.n, random_state=0) if setting.d == 1 else heteroscedastic(setting.n, setting.d, seed=0)
    return (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()


def fit(setting: Setting, X: Array, y: Array) -> InfiniteQuantileRegressor:
    model = InfiniteQuantileRegressor(
        n_nodes=setting.m, features=setting.features, rank=setting.rank, random_state=0, max_iter=1_000
    )
    return model.fit(X, y)


def measure(setting: Setting, x: int, budget: float) -> Point:
    """Fit until the budget is spent: the memory of the first fit, and the median time of all."""
    fit(Setting(60, setting.d, 5), *data(Setting(60, setting.d, 5)))  # loads the libraries
    X, y = data(setting)
    evaluate, seconds, inside = Objective.evaluate, [], []

    def timed(*arguments: Any) -> Any:
        started = time.process_time()
        found = evaluate(*arguments)
        inside[-1] += time.process_time() - started
        return found

    before, memory = resident(), []
    with one_thread(), mock.patch.object(Objective, "evaluate", timed):
        while not seconds or (len(seconds) < 5 and sum(seconds) < budget):
            inside.append(0.0)
            started = time.process_time()
            model = fit(setting, X, y)
            seconds.append(time.process_time() - started)
            memory.append(max(peak() - before, 0.0))
    evaluations = model.solution_.n_evaluations
    return Point(
        x=x,
        rank=model.field_.coef.shape,
        evaluations=evaluations,
        fits=len(seconds),
        seconds=float(np.median(seconds)),
        per_evaluation=float(np.median(inside)) / evaluations,
        peak=memory[0],
    )


def probed(setting: Setting, x: int, budget: float) -> Point:
    """The same in a fresh process."""
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    command = [sys.executable, __file__, "--probe", json.dumps([asdict(setting), x, budget])]
    answer = subprocess.run(command, env={**os.environ, **one}, check=True, stdout=subprocess.PIPE, text=True).stdout
    found = json.loads(answer.splitlines()[-1])
    return Point(**{**found, "rank": tuple(found["rank"])})


# -------------------------------------------------------------------------------------------------------------- slopes
@dataclass(frozen=True)
class Line:
    """log value = slope · log x + offset by least squares, and the slope of the last two points."""

    slope: float
    offset: float
    last: float

    @classmethod
    def through(cls, points: Sequence[Point], name: str) -> Line | None:
        """The line through the points; None where fewer than two count."""
        pairs = [(p.x, getattr(p, name)) for p in points if getattr(p, name) > 0.0]
        if len(pairs) < 2:
            return None
        x, value = np.log(pairs).T
        slope, offset = np.polyfit(x, value, 1)
        return cls(float(slope), float(offset), float((value[-1] - value[-2]) / (x[-1] - x[-2])))

    def __call__(self, x: Array) -> Array:
        """The line at x."""
        return np.asarray(np.exp(self.offset) * x**self.slope)


# -------------------------------------------------------------------------------------------------------------- report
def report(found: Sequence[tuple[Curve, list[Point]]]) -> str:
    """The tables, in Markdown."""
    lines = [
        "# How a fit grows",
        "",
        "`InfiniteQuantileRegressor`, all that is not said by default; sine data for 1 input, for 8 those of "
        "`suite/problems.py`, standardised; m = 50 where it does not grow. Every line from a process of its own, with "
        "one thread: the median time of up to 5 fits in seconds of the processor, and the peak of the resident memory "
        "during the first one beyond what the process had before it.",
        "",
        "Slopes on doubly logarithmic axes, by least squares, which are those that are held to a limit; in brackets "
        "between the last two points.",
        "",
        "| what grows | time | time per evaluation | peak memory | at most |  |",
        "|---|---:|---:|---:|---:|---|",
    ]
    for curve, points in found:
        slopes = [Line.through(points, name) for name in MEASURED]
        cells = ["–" if line is None else f"{line.slope:.2f} ({line.last:.2f})" for line in slopes]
        limit = "" if curve.limit is None else f"{curve.limit:g}"
        verdict = "" if curve.limit is None else "holds" if not steep(curve, points) else "does not hold"
        lines.append(f"| {curve.title} | {' | '.join(cells)} | {limit} | {verdict} |")
    for curve, points in found:
        lines += [
            "",
            f"## {curve.title[0].upper()}{curve.title[1:]}",
            "",
            f"| {curve.x} | r × s | evaluations | fits | time, s | per evaluation, ms | peak memory, MiB |",
            "|" + "---:|" * 7,
        ]
        lines += [
            f"| {p.x} | {p.rank[0]} × {p.rank[1]} | {p.evaluations} | {p.fits} | {p.seconds:.3g} "
            f"| {1e3 * p.per_evaluation:.3g} | {p.peak:.0f} |"
            for p in points
        ]
    return "\n".join(lines) + "\n"


def steep(curve: Curve, points: Sequence[Point]) -> list[str]:
    """The measured quantities of a curve that grow faster than allowed."""
    slopes = {name: Line.through(points, name) for name in MEASURED}
    limit = np.inf if curve.limit is None else curve.limit
    return [name for name, line in slopes.items() if line is not None and line.slope > limit]


def draw(found: Sequence[tuple[Curve, list[Point]]], path: Path) -> None:
    """Points and lines of all curves, time above and memory below."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2 * len(found), 7.0), layout="constrained")
    axes = figure.subplots(2, len(found), sharex="col")
    colours = {"seconds": "C0", "per_evaluation": "C1", "peak": "C2"}
    for column, (curve, points) in zip(axes.T, found, strict=True):
        x = np.array([p.x for p in points], dtype=float)
        for name, label in MEASURED.items():
            line = Line.through(points, name)
            if line is None:
                continue
            axis = column[1 if name == "peak" else 0]
            axis.loglog(x, [getattr(p, name) for p in points], "o", color=colours[name])
            axis.loglog(x, line(x), color=colours[name], label=f"{label.split(',')[0]}: slope {line.slope:.2f}")
            axis.legend(fontsize="small", loc="lower right")
            axis.grid(alpha=0.3)
            low, high = axis.dataLim.intervaly
            axis.set_ylim(0.5 * low, 2.0 * high)  # equal values leave a logarithmic axis without a length
        column[0].set_title(curve.title, fontsize="medium")
        column[1].set_xlabel(curve.x)
    axes[0, 0].set_ylabel("seconds")
    axes[1, 0].set_ylabel("MiB")
    figure.savefig(path, dpi=110)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few small sizes, in this process: does it run?")
    parser.add_argument(
        "--output",
        type=Path,
        help=f"where the tables go, with .json and .png beside; default: {RESULTS.name}, --quick: nowhere",
    )
    parser.add_argument("--probe", metavar="JSON", help="measure one setting in this process and print the figures")
    options = parser.parse_args(arguments)
    if options.probe:
        setting, x, budget = json.loads(options.probe)
        print(json.dumps(asdict(measure(Setting(**setting), x, budget))))
        return
    started, found, provenance = time.perf_counter(), [], now("make bench-growth")
    for curve in QUICK if options.quick else FULL:
        points = []
        for setting in curve.settings:
            x = {"n": setting.n, "m": setting.m, "r": setting.rank or 0}[curve.x]
            points.append(measure(setting, x, 0.0) if options.quick else probed(setting, x, 3.0))
            print(f"{curve.title}: {points[-1]}", flush=True)
        found.append((curve, points))
    text = signed(report(found), provenance)
    print(f"\n{text}\n({time.perf_counter() - started:.0f} s in all)")
    output = options.output or (None if options.quick else RESULTS)
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text, encoding="utf-8")
        numbers = [{**asdict(curve), "points": [asdict(p) for p in points]} for curve, points in found]
        listed = json.dumps({"provenance": str(provenance), "curves": numbers}, indent=1)
        numbers_of(output).write_text(listed, encoding="utf-8")
        draw(found, output.with_suffix(".png"))


if __name__ == "__main__":
    main()
