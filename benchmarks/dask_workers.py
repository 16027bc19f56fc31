"""A fit on a Dask cluster: two workers beside one, what an evaluation sends, and what a killed worker costs.

Run ``python benchmarks/dask_workers.py``; ``--quick`` is a small run to check that it works. Workers are processes with
one thread each. Rows are made on the workers. Evaluations with one and with two workers take turns, and the fastest of
each count, because other work on the machine slows down both.
"""

from __future__ import annotations

import argparse
import os
import pickle
import signal
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

os.environ.setdefault("OMP_NUM_THREADS", "1")

import cloudpickle
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from infinitask import InfiniteQuantileRegressor
from infinitask.objective._parted import sums_of
from infinitask.streaming import _fit
from infinitask.streaming._dask import DaskParts
from pages import now, signed

RESULTS = Path(__file__).parents[1] / "docs" / "benchmarks" / "dask_workers.md"

ROWS, INPUTS, LANDMARKS, NODES, PARTITIONS = 400_000, 8, 300, 20, 8
MANY_THREADS = 64
"""Of a worker in this process, to see what a task costs by itself: an evaluation has one for each thread."""

ROUNDS = 24
"""Evaluations with one and with two workers, in turn."""

GREAT_ROWS, GREAT_MACHINES, GREAT_CORES = 10**9, 100, 32
"""The cluster for which times are estimated."""

NETWORK = 1e9
"""Bytes per second that are assumed between its machines."""


@contextmanager
def cluster(workers: int, threads: int = 1, *, processes: bool = True) -> Any:
    options: dict[str, Any] = {"threads_per_worker": threads, "dashboard_address": ":0", "processes": processes}
    with LocalCluster(n_workers=workers, **options) as found, Client(found, set_as_default=False) as client:
        yield client


def rows(n: int, partitions: int) -> tuple[Any, Any]:
    """Rows that the workers make themselves, the same ones every time."""
    rng = da.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(n, INPUTS), chunks=(n // partitions, INPUTS))
    noise = rng.normal(size=n, chunks=n // partitions)
    return X, da.sin(3.0 * X[:, 0]) + X[:, 1] ** 2 + (0.2 + 0.1 * X[:, 2]) * noise


def model(landmarks: int, **options: Any) -> Any:
    return InfiniteQuantileRegressor(
        gamma=0.3, alpha=1e-4, features="nystroem", rank=landmarks, n_nodes=NODES, tol=1e-3, random_state=0, **options
    )


class Fitted:
    """A fit on a cluster, its parts, and the arguments of its last evaluation."""

    def __init__(self, client: Any, n: int, landmarks: int, partitions: int = PARTITIONS) -> None:
        self.client, self.n = client, n
        total = DaskParts.total

        def watched(parts: DaskParts, visit: Any, *arguments: Any) -> Any:
            if visit is sums_of:
                self.parts, self.arguments = parts, arguments
            return total(parts, visit, *arguments)

        start = time.perf_counter()
        # few rows would be fitted in memory; here they stay where they are
        in_parts = mock.patch.object(_fit, "holds_all", return_value=False)
        with client.as_current(), mock.patch.object(DaskParts, "total", watched), in_parts:
            self.model = model(landmarks).fit(*rows(n, partitions))
        self.seconds = time.perf_counter() - start

    def evaluate(self) -> float:
        """Seconds of one evaluation."""
        start = time.perf_counter()
        self.parts.total(sums_of, *self.arguments)
        return time.perf_counter() - start

    def processor(self, rounds: int) -> float:
        """Processor seconds of an evaluation, of the worker that takes longest."""
        before = self.client.run(time.process_time)
        for _ in range(rounds):
            self.evaluate()
        after = self.client.run(time.process_time)
        return max(after[worker] - before[worker] for worker in before) / rounds

    def traffic(self, rounds: int) -> tuple[int, int, float]:
        """Bytes of an evaluation: of the graph that is sent, of the answer, and all that workers send."""
        sizes: list[tuple[int, int]] = []
        compute = self.client.compute

        def watched(graph: Any, **options: Any) -> Any:
            future = compute(graph, **options)
            sizes.append((len(cloudpickle.dumps(dict(graph.__dask_graph__()))), len(pickle.dumps(future.result()))))
            return future

        with mock.patch.object(self.client, "compute", watched):
            self.evaluate()
        before = sum(self.client.run(_outgoing).values())
        for _ in range(rounds):
            self.evaluate()
        between = (sum(self.client.run(_outgoing).values()) - before) / rounds
        return (*sizes[-1], between)


def _outgoing(dask_worker: Any) -> int:
    return int(dask_worker.transfer_outgoing_bytes_total)


def killed(n: int, landmarks: int) -> tuple[float, float, float]:
    """Seconds of a fit without and with three kills, and the largest difference of a coefficient."""
    with cluster(2) as client:
        usual = Fitted(client, n, landmarks)
        calls = {"compute": 0, "persist": 0}

        def watched(name: str, moments: tuple[int, ...]) -> Any:
            method = getattr(client, name)

            def call(*arguments: Any, **options: Any) -> Any:
                found = method(*arguments, **options)
                calls[name] += 1
                if calls[name] in moments:
                    pids = client.run(os.getpid)
                    os.kill(pids[max(pids)], signal.SIGKILL)
                return found

            return call

        # while the sample is drawn, while features are made, in the third evaluation
        computes, persists = watched("compute", (1, 4)), watched("persist", (2,))
        with mock.patch.object(client, "compute", computes), mock.patch.object(client, "persist", persists):
            struck = Fitted(client, n, landmarks)
    away = np.max(np.abs(struck.model.field_.coef - usual.model.field_.coef))
    return usual.seconds, struck.seconds, float(away)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args(arguments).quick
    provenance = now("make bench-dask")
    n, landmarks, rounds = (4_000, 40, 3) if quick else (ROWS, LANDMARKS, ROUNDS)
    with cluster(1) as alone, cluster(2) as pair:
        one, two = Fitted(alone, n, landmarks), Fitted(pair, n, landmarks)
        times = np.array([(one.evaluate(), two.evaluate()) for _ in range(rounds)])
        busy = [min(fit.processor(max(rounds // 8, 1)) for _ in range(3)) for fit in (one, two)]
        small = Fitted(pair, n // 4, landmarks)
        tiny = Fitted(pair, 8 * MANY_THREADS, 10, MANY_THREADS)
        latency = min(tiny.evaluate() for _ in range(rounds))
        sent = {fit.n: fit.traffic(max(rounds // 4, 2)) for fit in (small, two)}
    with cluster(1, MANY_THREADS, processes=False) as wide:
        many = Fitted(wide, 8 * MANY_THREADS, 10, MANY_THREADS)
        waiting = min(many.evaluate() for _ in range(rounds))
    single, double = np.min(times, axis=0)
    usual, struck, away = killed(n // 4, landmarks)
    cost, each = busy[0] / n, (waiting - latency) / (MANY_THREADS - 2)
    p, s = landmarks + 1, two.arguments[0].size // (landmarks + 1)
    share = GREAT_ROWS / (GREAT_MACHINES * GREAT_CORES)
    levels = int(np.ceil(np.log(GREAT_MACHINES * GREAT_CORES) / np.log(8)))
    wire = 2 * levels * 8 * p * s / NETWORK
    kept = GREAT_ROWS * p * 8 / GREAT_MACHINES / 1e9
    evaluations = two.model.n_iter_
    text = f"""# A fit on a Dask cluster

{n} rows of {INPUTS} inputs in {PARTITIONS} partitions, {landmarks} landmarks, {NODES} levels with the default \
penalty on crossings ({p} × {s} unknowns), `tol=1e-3`: {evaluations} evaluations. Workers are processes with one \
thread; the fastest of {rounds} evaluations, with one and two workers in turn.

| | one worker | two workers | ratio |
|---|---:|---:|---:|
| one evaluation, fastest, s | {single:.3f} | {double:.3f} | {single / double:.2f} |
| one evaluation, median, s | {np.median(times[:, 0]):.3f} | {np.median(times[:, 1]):.3f} | \
{np.median(times[:, 0]) / np.median(times[:, 1]):.2f} |
| one evaluation, processor seconds of the busiest worker | {busy[0]:.3f} | {busy[1]:.3f} | \
{busy[0] / busy[1]:.2f} |
| the fit, s | {one.seconds:.1f} | {two.seconds:.1f} | {one.seconds / two.seconds:.2f} |

The client and the scheduler use the same two cores; processor seconds of the workers do not depend on that.

An evaluation of {tiny.n} rows, which is all waiting for messages, takes {1e3 * latency:.0f} ms with these two \
workers and {1e3 * waiting:.0f} ms with {MANY_THREADS} threads, each of which gets a task: {1e3 * each:.2f} ms for a \
task.

| bytes of an evaluation | {small.n} rows | {two.n} rows |
|---|---:|---:|
| tasks and unknowns, sent once | {sent[small.n][0]:,} | {sent[two.n][0]:,} |
| the answer | {sent[small.n][1]:,} | {sent[two.n][1]:,} |
| all that the two workers send | {sent[small.n][2]:,.0f} | {sent[two.n][2]:,.0f} |

Three workers killed by SIGKILL, while the sample is drawn, while features are made and in the third evaluation \
({n // 4} rows): {struck:.1f} s instead of {usual:.1f} s; the largest difference of a coefficient is {away:.1e}.

## {GREAT_ROWS:.0e} rows on {GREAT_MACHINES} machines of {GREAT_CORES} cores: an estimate

Measured: {1e6 * cost:.2f} µs for each row and evaluation on one core of this machine, {1e3 * latency:.0f} ms for \
messages. Then {share:.2g} rows on a core take {share * cost:.2f} s, and {2 * 8 * p * s / 1e3:.0f} kB through \
{levels} levels of a tree at {NETWORK / 1e9:g} GB/s {1e3 * wire:.1f} ms: {share * cost + wire + latency:.2f} s for an \
evaluation, {evaluations * (share * cost + wire + latency):.0f} s for {evaluations} of them. Features take {kept:.0f} \
GB on each machine; where that is too much they are made again in every pass. Not in this estimate: reading the rows \
twice, the slowest of {GREAT_MACHINES} machines, cores that share memory, and the scheduler: with a task for each core \
it would take {GREAT_MACHINES * GREAT_CORES * each:.1f} s of an evaluation, if tasks cost what they cost here; with \
workers that compute with four threads in one task, {GREAT_MACHINES * GREAT_CORES * each / 4:.1f} s.
"""
    print(text)
    if not quick:
        RESULTS.write_text(signed(text, provenance), encoding="utf-8")


if __name__ == "__main__":
    main()
