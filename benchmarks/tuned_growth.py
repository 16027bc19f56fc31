"""What the self-tuned quantile regressor costs as the rows grow: processor seconds, its last fit, memory, pickle.

Run ``python benchmarks/tuned_growth.py``; ``--quick`` is a small run to check that it works. Every point is measured in
a process of its own with one thread; processor seconds hardly depend on other work on the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from pages import now, signed

RESULTS = Path(__file__).parents[1] / "docs" / "benchmarks" / "tuned_growth.md"

SIZES = ((5, 2), (100, 8), (300, 8), (1_000, 8), (3_000, 8), (5_000, 8), (10_000, 30), (50_000, 30))
"""Rows and features."""

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

LEVELS = np.arange(1, 100) / 100


def sample(n: int, d: int, seed: int) -> tuple[Any, Any]:
    """Features and targets: a wave, a product of two features, and noise whose size depends on a fourth."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, max(d, 4)))
    y = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + (0.2 + 0.3 * np.abs(X[:, 3])) * rng.standard_t(4, size=n)
    return X[:, :d], y


def measure(n: int, d: int) -> dict[str, Any]:
    """One fit."""
    from infinitask.tuning import InfiniteQuantileRegressorCV

    X, y = sample(n, d, 0)
    model = InfiniteQuantileRegressorCV(random_state=0)
    parts: list[float] = []
    plain = model._refit

    def refit(*arguments: Any, **options: Any) -> Any:
        start = time.process_time()
        found = plain(*arguments, **options)
        parts.append(time.process_time() - start)
        return found

    model._refit = refit  # type: ignore[method-assign]
    start = time.process_time()
    model.fit(X, y)
    seconds = time.process_time() - start
    del model._refit
    X_new, y_new = sample(2_000, d, 1)
    low, high = model.predict_interval(X_new, 0.9).T
    one = X_new[:1]
    model.predict(one, LEVELS)
    start = time.perf_counter()
    for _ in range(200):
        model.predict(one, LEVELS)
    row = (time.perf_counter() - start) / 200
    return {
        "n": n,
        "d": d,
        "seconds": seconds,
        "last": parts[0],
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10,
        "pickle": len(pickle.dumps(model)) / 2**20,
        "row": 1e3 * row,
        "coverage": float(np.mean((low <= y_new) & (y_new <= high))),
        "gap": float(model.dual_gap_),
    }


def main() -> None:
    """Measure and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--one", nargs=2, type=int, metavar=("N", "D"))
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(*arguments.one)))
        return
    found, provenance = [], now("make bench-tuned")
    for n, d in SIZES[:2] if arguments.quick else SIZES:
        command = [sys.executable, __file__, "--one", str(n), str(d)]
        done = subprocess.run(command, env=os.environ | ONE_THREAD, capture_output=True, text=True, check=True)
        found.append(json.loads(done.stdout.splitlines()[-1]))
        print(found[-1], flush=True)
    lines = [
        "# What the self-tuned quantile regressor costs",
        "",
        "`InfiniteQuantileRegressorCV(random_state=0)`, one thread, processor seconds.",
        "",
        "| rows | inputs | seconds | its last fit, s | ratio | peak memory, MiB | pickle, MiB | one row × 99 levels, ms"
        " | 90% intervals cover | duality gap |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {r['n']} | {r['d']} | {r['seconds']:.2f} | {r['last']:.2f} | {r['seconds'] / max(r['last'], 1e-9):.0f}"
        f" | {r['peak']:.0f} | {r['pickle']:.2f} | {r['row']:.2f} | {r['coverage']:.3f} | {r['gap']:.0e} |"
        for r in found
    ]
    arguments.out.write_text(signed("\n".join(lines), provenance), encoding="utf-8")
    _plot(found, arguments.out.with_suffix(".png"))


def _plot(found: list[dict[str, Any]], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.0, 4.0), layout="constrained")
    axes = figure.add_subplot()
    n = [r["n"] for r in found]
    axes.loglog(n, [r["seconds"] for r in found], "o-", label="choice and last fit")
    axes.loglog(n, [r["last"] for r in found], "s--", label="last fit alone")
    axes.set(xlabel="rows", ylabel="processor seconds, one thread", title="InfiniteQuantileRegressorCV")
    axes.legend(frameon=False)
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
