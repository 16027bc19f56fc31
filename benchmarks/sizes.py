"""How long each model takes, and how much memory, for 100 to 100 000 rows: the table of the page "How to choose".

Run ``make bench-sizes``; ``--quick`` is a small run to check that it works. Every point is measured in a process of its
own with one thread; processor seconds hardly depend on other work on the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from pages import now, signed

RESULTS = Path(__file__).parents[1] / "docs" / "benchmarks" / "sizes.md"
SIZES = (100, 1_000, 10_000, 100_000)
INPUTS = 8
MOST_SECONDS = 400
"""A fit that takes more seconds of the processor is stopped."""
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
MODELS = (
    "InfiniteQuantileRegressor",
    "InfiniteQuantileRegressorCV",
    "InfiniteCostSensitiveClassifier",
    "InfiniteCostSensitiveClassifierCV",
    "InfiniteOneClassSVM",
    "InfiniteOneClassSVMCV",
)


def sample(n: int) -> tuple[Any, Any]:
    """Features and targets: a wave, a product of two features, and noise whose size depends on a fourth."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, INPUTS))
    y = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + (0.2 + 0.3 * np.abs(X[:, 3])) * rng.standard_t(4, size=n)
    return X, y


def measure(name: str, n: int) -> dict[str, Any]:
    """One fit with the defaults; of the targets of classifiers one in five is positive."""
    import infinitask

    resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS + 5))
    X, y = sample(n)
    model = getattr(infinitask, name)(random_state=0)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    start = time.process_time()
    if "OneClass" in name:
        model.fit(X)
    else:
        model.fit(X, y > np.quantile(y, 0.8) if "Classifier" in name else y)
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    return {"seconds": seconds, "memory": peak - before, "gap": float(model.dual_gap_)}


def timed(name: str, n: int) -> dict[str, Any] | None:
    """The same in a process of its own; None where it takes too long."""
    command = [sys.executable, __file__, "--one", name, str(n)]
    done = subprocess.run(command, env=os.environ | ONE_THREAD, capture_output=True, text=True, check=False)
    if done.returncode == -signal.SIGXCPU:
        return None
    done.check_returncode()
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def cell(found: dict[str, Any] | None) -> str:
    """Seconds and memory."""
    if found is None:
        return f"> {MOST_SECONDS} s"
    seconds, memory = found["seconds"], found["memory"]
    size = f"{memory / 1024:.1f} GiB" if memory >= 1024 else f"{memory:.0f} MiB"
    return f"{seconds:.2g} s, {size}" if seconds < 10 else f"{seconds:.0f} s, {size}"


def main() -> None:
    """Measure and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--one", nargs=2, metavar=("MODEL", "N"))
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.one[0], int(arguments.one[1]))))
        return
    provenance = now("make bench-sizes")
    sizes = SIZES[:1] if arguments.quick else SIZES
    table = []
    for name in MODELS:
        found = [timed(name, n) for n in sizes]
        print(name, *map(cell, found), sep=" | ", flush=True)
        table.append(f"| `{name}` | " + " | ".join(map(cell, found)) + " |")
    text = "\n".join(
        [
            "# Seconds and memory by the number of rows",
            "",
            f"{INPUTS} inputs, everything by default. Processor seconds of one thread, and memory beyond what the"
            " process had before the fit.",
            "",
            "<!-- table -->",
            "| rows | " + " | ".join(f"{n:,}".replace(",", " ") for n in sizes) + " |",
            "|---|" + "---:|" * len(sizes),
            *table,
            "<!-- end of the table -->",
        ]
    )
    output = arguments.output or (None if arguments.quick else RESULTS)
    if output is not None:
        output.write_text(signed(text, provenance), encoding="utf-8")


if __name__ == "__main__":
    main()
