"""How fast are predictions at 99 levels: a million rows at once, and one row at a time; and how large is a saved model?

Run ``python benchmarks/prediction.py``; ``--quick`` is a small run to check that it works. One model for all levels is
compared with gradient boosting and a support vector machine, which have a model for each level, and with a kernel ridge
regression that has an output for each level. A second table has one model for each kind of kernel that a self-tuned
model may choose.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import pickle
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import SVR

from infinitask import InfiniteQuantileRegressor
from infinitask.kernels import RBF, Additive, InputKernel, Laplacian, Linear, Matern, Metric, Scaled, Sum, Warped
from pages import now, signed

Array = NDArray[Any]

RESULTS = Path(__file__).parents[1] / "docs" / "benchmarks" / "prediction.md"
LEVELS = np.linspace(0.01, 0.99, 99)
COLUMNS = 8
BOOSTED = 5
"""Levels for which gradient boosting is fitted; its times are scaled to all of them."""


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    training: int
    rows: int
    peer_rows: int
    calls: int
    repetitions: int
    trees: int
    kernels: tuple[tuple[int, int], ...]
    """Training rows and columns of the models with many kernels."""


FULL = Size(
    training=1000,
    rows=1_000_000,
    peer_rows=20_000,
    calls=1000,
    repetitions=3,
    trees=100,
    kernels=((1000, 8), (3000, 30)),
)
QUICK = Size(training=60, rows=3_000, peer_rows=300, calls=5, repetitions=1, trees=3, kernels=((60, 4),))


@dataclass(frozen=True)
class Ask:
    """A way to predict all levels: ``predict(X)``, the rows it is measured on, and how many such models are needed."""

    predict: Callable[[Array], Any]
    rows: int
    times: float = 1.0


@dataclass(frozen=True)
class Figures:
    """Rows per second, memory beyond the answer, and microseconds for a single row, at one level and at all."""

    rows: int
    speed: float
    memory: float
    one_level: float
    all_levels: float


@dataclass(frozen=True)
class Kept:
    """Features of a model with some kernel, bytes of its pickle, microseconds for a single row, and rows per second."""

    training: int
    columns: int
    kernel: str
    rank: int
    size: int
    all_levels: float
    speed: float


# ------------------------------------------------------------------------------------------------------------- methods
def sample(n: int, seed: int, columns: int = COLUMNS) -> tuple[Array, Array]:
    """Standard normal features, and a target whose spread depends on them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, columns))
    return X, X[:, 0] + np.sin(2.0 * X[:, 1]) + 0.3 * (1.0 + np.abs(X[:, 2])) * rng.normal(size=n)


def methods(size: Size) -> dict[str, tuple[Ask, Ask]]:
    """By name: how a method predicts all levels, and how it predicts one."""
    X, y = sample(size.training, seed=0)
    infinite = InfiniteQuantileRegressor(gamma="median", alpha=1e-4, random_state=0).fit(X, y)
    gamma = infinite.field_.phi.kernel.gamma
    asked = LEVELS[:: len(LEVELS) // BOOSTED][:BOOSTED]
    boosted = [
        HistGradientBoostingRegressor(loss="quantile", quantile=q, max_iter=size.trees, random_state=0).fit(X, y)
        for q in asked
    ]
    machine = SVR(gamma=gamma, epsilon=0.05).fit(X, y)
    single, several = (
        KernelRidge(kernel="rbf", gamma=gamma, alpha=0.1).fit(X, target).predict for target in (y, y[:, None] + LEVELS)
    )
    return {
        "InfiniteQuantileRegressor": (
            Ask(lambda rows: infinite.predict(rows, quantiles=LEVELS), size.rows),
            Ask(lambda rows: infinite.predict(rows, quantiles=0.5), size.rows),
        ),
        f"HistGradientBoostingRegressor × {len(LEVELS)}": (
            Ask(lambda rows: [model.predict(rows) for model in boosted], size.peer_rows, len(LEVELS) / BOOSTED),
            Ask(boosted[0].predict, size.peer_rows),
        ),
        f"SVR × {len(LEVELS)}": (
            Ask(machine.predict, size.peer_rows, float(len(LEVELS))),
            Ask(machine.predict, size.peer_rows),
        ),
        f"KernelRidge, {len(LEVELS)} outputs": (Ask(several, size.peer_rows), Ask(single, size.peer_rows)),
    }


def kernels(X: Array) -> dict[str, InputKernel]:
    """Kernels that a self-tuned model may choose, by name."""
    d = X.shape[1]
    rng = np.random.default_rng(0)
    unit, other = (tuple(scales.tolist()) for scales in (1.0 / np.std(X, axis=0), rng.uniform(0.0, 1.0, size=d)))
    near, narrow = RBF(gamma=0.5 / d), RBF(gamma=2.0 / d)
    rough, taxicab, each = Matern(gamma=0.5 / d), Laplacian(gamma=0.5 / d), Additive(RBF(gamma=0.5))
    same = [Scaled(kernel, unit) for kernel in (near, narrow, rough, Linear())] + [Scaled(near, other)]
    families = [
        Scaled(near, other),
        Scaled(each, unit),
        Scaled(taxicab, unit),
        Warped(Scaled(rough, unit)),
        Warped(Scaled(each, unit)),
    ]
    return {
        "Gaussian": Scaled(near, unit),
        "Matérn 3/2": Scaled(rough, unit),
        "Laplacian": Scaled(taxicab, unit),
        "linear": Scaled(Linear(), unit),
        "Gaussian in a metric": Metric(near, rng.normal(size=(d, d)) / d**0.5),
        "a sum over inputs": Scaled(each, unit),
        "Gaussian of ranks": Warped(Scaled(near, unit)),
        "a sum over inputs, of ranks": Warped(Scaled(each, unit)),
        "a sum of five": reduce(Sum, same),
        "a sum of five families": reduce(Sum, families),
    }


# ----------------------------------------------------------------------------------------------------------- measuring
def seconds(work: Callable[[], Any], repetitions: int) -> list[float]:
    """The times of ``work``, after a first run that does not count."""
    work()
    found = []
    for _ in range(repetitions):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return found


def beyond(ask: Ask, X: Array) -> float:
    """Peak bytes of a prediction beyond those of its answer."""
    tracemalloc.start()
    try:
        answer = ask.predict(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    return float(peak - (sum(part.nbytes for part in answer) if isinstance(answer, list) else answer.nbytes))


def measure(everything: Ask, one: Ask, size: Size) -> Figures:
    """The figures of one method, in this process."""
    X = sample(everything.rows, seed=1)[0]
    row = X[:1]
    bulk = min(seconds(lambda: everything.predict(X), size.repetitions)) * everything.times
    single, every = (np.median(seconds(lambda a=ask: a.predict(row), size.calls)) for ask in (one, everything))
    return Figures(
        rows=everything.rows,
        speed=everything.rows / bulk,
        memory=beyond(everything, X),
        one_level=1e6 * float(single),
        all_levels=1e6 * float(every) * everything.times,
    )


def measured(threads: str, quick: bool) -> dict[str, Figures]:
    """The figures of all methods, measured in a separate process, with one thread or with all."""
    environment = dict(os.environ)
    if threads == "one":
        environment |= {"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--threads", threads] + (["--quick"] if quick else [])
    output = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
    return {name: Figures(**figures) for name, figures in json.loads(output).items()}


def kept(size: Size) -> list[Kept]:
    """The figures of every kernel, in this process."""
    found = []
    for n, d in size.kernels:
        for name, kernel in kernels(sample(n, seed=0, columns=d)[0]).items():
            found.append(measure_kernel(name, kernel, n, d, size))
            print(found[-1], file=sys.stderr, flush=True)
    return found


def measure_kernel(name: str, kernel: InputKernel, n: int, d: int, size: Size) -> Kept:
    """The figures of one kernel."""
    X, y = sample(n, seed=0, columns=d)
    new = sample(size.peer_rows // 10, seed=1, columns=d)[0]
    # sorted curves, as those of the self-tuned model; how exact the fit is makes no difference here
    model = InfiniteQuantileRegressor(kernel=kernel, alpha=1e-3, tol=1e-2, noncrossing="rearrange").fit(X, y)
    rows = itertools.cycle(new[i : i + 1] for i in range(len(new)))
    single = seconds(lambda: model.predict(next(rows), quantiles=LEVELS), size.calls)
    bulk = seconds(lambda: model.predict(new, quantiles=LEVELS), size.repetitions)
    return Kept(
        training=n,
        columns=d,
        kernel=name,
        rank=model.field_.coef.shape[0],
        size=len(pickle.dumps(model)),
        all_levels=1e6 * float(np.median(single)),
        speed=len(new) / min(bulk),
    )


def measured_kernels(quick: bool) -> list[Kept]:
    """The figures of every kernel, measured in a separate process."""
    command = [sys.executable, __file__, "--kernels"] + (["--quick"] if quick else [])
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [Kept(**figures) for figures in json.loads(output)]


def child(threads: str, size: Size) -> None:
    """Measure, and write the figures to the standard output."""
    if threads == "one" and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    found = {}
    for name, (everything, one) in methods(size).items():
        found[name] = asdict(measure(everything, one, size))
        print(f"{threads}: {name}: {found[name]}", file=sys.stderr, flush=True)
    print(json.dumps(found))


# -------------------------------------------------------------------------------------------------------------- report
def load() -> float:
    """The number of processes that want a core, averaged over the last minute."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")


def report(one: dict[str, Figures], every: dict[str, Figures], by_kernel: list[Kept], size: Size, before: float) -> str:
    """The tables, in Markdown."""
    lines = [
        "# Predictions",
        "",
        f"Other processes wanted {before:.1f} cores when it began.",
        "",
        f"All models are fitted to the same {size.training} rows with {COLUMNS} columns and answer {len(LEVELS)} "
        f"levels; the kernel methods have these rows as centres, and one bandwidth. "
        f"In bulk: the best of {size.repetitions} runs over so many rows, with one thread and with all. "
        f"One row: the median of {size.calls} calls of `predict` with a single row, all threads. "
        "Memory: the peak of what Python and NumPy hold beyond the answer, all threads. "
        f"Gradient boosting has {BOOSTED} models of {size.trees} trees, whose times are scaled to {len(LEVELS)}; the "
        "support vector machine "
        f"has one, whose time is multiplied by {len(LEVELS)}, and its memory is that of one. The ridge regression and "
        "the support vector machine estimate no quantiles: they stand for what a kernel method costs.",
        "",
        "| method | rows in bulk | rows/s, one thread | rows/s, all threads | memory beyond the answer | "
        f"one row, one level | one row, {len(LEVELS)} levels |",
        "|---|" + "---:|" * 6,
    ]
    for name, figures in every.items():
        lines.append(
            f"| {name} | {figures.rows:,} | {one[name].speed:,.0f} | {figures.speed:,.0f} | "
            f"{figures.memory / 2**20:,.1f} MiB | {figures.one_level:,.0f} µs | {figures.all_levels:,.0f} µs |"
        )
    lines += [
        "",
        "## Kernels",
        "",
        "`InfiniteQuantileRegressor` with kernels that a self-tuned model may choose, and sorted curves. Pickle: the "
        f"whole fitted model. One row: the median of {size.calls} calls of `predict` with a single row, each time "
        f"another one, at {len(LEVELS)} levels. In bulk: {size.peer_rows // 10:,} rows, the best of {size.repetitions} "
        "runs. All threads.",
        "",
        f"| rows × columns of the fit | kernel | features | pickle | one row, {len(LEVELS)} levels | rows/s in bulk |",
        "|---|---|" + "---:|" * 4,
    ]
    for row in by_kernel:
        lines.append(
            f"| {row.training} × {row.columns} | {row.kernel} | {row.rank:,} | {row.size / 1e6:.2f} MB | "
            f"{row.all_levels:,.0f} µs | {row.speed:,.0f} |"
        )
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small numbers of rows: does it run?")
    parser.add_argument("--output", type=Path, help=f"where the table goes; default: {RESULTS.name}, --quick: nowhere")
    parser.add_argument("--threads", choices=("one", "all"), help="measure in this process and print the figures")
    parser.add_argument("--kernels", action="store_true", help="measure the kernels in this process and print them")
    options = parser.parse_args(arguments)
    size = QUICK if options.quick else FULL
    if options.kernels:
        print(json.dumps([asdict(row) for row in kept(size)]))
        return
    if options.threads is not None:
        child(options.threads, size)
        return
    before, provenance = load(), now("make bench-prediction")
    one, every = (measured(threads, options.quick) for threads in ("one", "all"))
    text = signed(report(one, every, measured_kernels(options.quick), size, before), provenance)
    print(f"\n{text}")
    output = options.output or (None if options.quick else RESULTS)
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
