"""Fits with little regularisation: beside an older commit, on a path of λ, and with many rows.

``python benchmarks/small_ridge.py BASE`` compares with the commit BASE; ``--quick`` is a small run to check that it
works. Both sides solve the same problem to the same duality gap, one after the other, each in its own process with one
thread; times are processor seconds. A run of the base is stopped after two minutes and counts as that.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from compare import HERE, copied, resolved
from infinitask import InfiniteQuantileRegressor
from pages import now, signed

RESULTS = Path(__file__).parents[1] / "docs" / "benchmarks" / "small_ridge.md"

SIZES, RIDGES, WEIGHTS, LIMIT = (300, 3_000), (1e-5, 1e-6, 1e-7), (0.0, 1.0), 120
"""Rows, λ, λ_nc, and the most seconds of a run."""

SAME: dict[str, Any] = {"gamma": 0.035, "task_gamma": 5.0, "alpha_bias": 1e-8, "n_nodes": 50, "tol": 1e-4}
"""What defaults of older commits would choose otherwise; γ is that of the median rule."""

PATHS, N_RIDGES = ((300, 8), (1_000, 8), (300, 1)), 20
"""Rows and inputs of the paths, and values of λ from 1e-2 to 1e-7."""

MANY = (38_000, 26, 1_500)
"""Rows, inputs and features of the large fit."""


def sample(n: int, d: int) -> tuple[Any, Any]:
    """A mean that is not linear, noise whose size follows an input; y standardised."""
    rng = np.random.default_rng(0)
    X, seen = rng.normal(size=(n, d)), min(2, d - 1)
    mean = np.sin(2.0 * X[:, 0]) + (0.5 * X[:, 1] if d > 1 else 0.0)
    y = mean + (0.2 + 0.5 / (1.0 + np.exp(-2.0 * X[:, seen]))) * rng.normal(size=n)
    return X, (y - y.mean()) / y.std()


def fitted(data: tuple[Any, Any], **params: Any) -> tuple[float, Any]:
    """Processor seconds of a fit, and the model."""
    start = time.process_time()
    model = InfiniteQuantileRegressor(random_state=0, **params).fit(*data)
    return time.process_time() - start, model


# --------------------------------------------------------------------------------------------------------- one process
def worker(task: dict[str, Any]) -> None:
    """Do what a task says, and print what was found."""
    warnings.simplefilter("ignore")
    fitted(sample(40, 2), n_nodes=5)  # loads what it needs
    data = sample(task["n"], task["d"])
    if task["kind"] == "fit":
        seconds, model = fitted(data, **task["params"])
        found = {"seconds": seconds, "gap": model.dual_gap_, "objective": model.objective_}
    else:
        from infinitask import fit_path

        alphas, start = np.geomspace(1e-2, 1e-7, task["count"]), time.process_time()
        models = fit_path(InfiniteQuantileRegressor(random_state=0, **task["params"]), *data, alphas=alphas)
        path = time.process_time() - start
        alone = [fitted(data, alpha=float(alpha), **task["params"]) for alpha in alphas]
        gaps = [model.dual_gap_ for model in (*models, *(model for _, model in alone))]
        found = {"path": path, "alone": sum(seconds for seconds, _ in alone), "gap": max(gaps)}
    print(json.dumps(found), flush=True)


def asked(folder: Path, task: dict[str, Any], limit: float | None = None, threads: int = 1) -> dict[str, Any] | None:
    """What a process with the library of a folder finds; None where it takes too long."""
    env = {**os.environ, "OMP_NUM_THREADS": str(threads), "PYTHONPATH": os.pathsep.join([str(folder), _here()])}
    command = [sys.executable, __file__, "--worker", json.dumps(task)]
    try:
        done = subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return None
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _here() -> str:
    return str(Path(__file__).parent)


# -------------------------------------------------------------------------------------------------------------- tables
def beside(folders: tuple[Path, Path], sizes: tuple[int, ...]) -> list[str]:
    """Old and new side by side."""
    lines = ["| rows | λ | λ_nc | base, s | now, s | ratio | gap | P now : base |", "|---:|---:|---:|" + "---:|" * 5]
    for n in sizes:
        for weight in WEIGHTS:
            for alpha in RIDGES:
                task = {"kind": "fit", "n": n, "d": 8, "params": {**SAME, "alpha": alpha, "noncrossing": weight}}
                base, now = asked(folders[0], task, LIMIT), asked(folders[1], task)
                assert now is not None
                old = LIMIT if base is None else base["seconds"]
                same = "" if base is None else f"{now['objective'] / base['objective']:.5f}"
                lines.append(
                    f"| {n} | {alpha:.0e} | {weight:g} | {'> ' if base is None else ''}{old:.2f} | "
                    f"{now['seconds']:.2f} | {old / now['seconds']:.1f} | {now['gap']:.0e} | {same} |"
                )
                print(lines[-1], flush=True)
    return lines


def paths(folder: Path, problems: tuple[tuple[int, int], ...], count: int) -> list[str]:
    """A path beside separate fits."""
    lines = [
        "| rows | inputs | λ_nc | path, s | alone, s | ratio | largest gap |",
        "|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for n, d in problems:
        for weight in WEIGHTS:
            task = {"kind": "path", "n": n, "d": d, "count": count, "params": {"noncrossing": weight}}
            r = asked(folder, task)
            assert r is not None
            ratio = r["path"] / r["alone"]
            lines.append(
                f"| {n} | {d} | {weight:g} | {r['path']:.2f} | {r['alone']:.2f} | {ratio:.2f} | {r['gap']:.0e} |"
            )
            print(lines[-1], flush=True)
    return lines


def large(folder: Path, n: int, d: int, rank: int) -> list[str]:
    """Many rows, on two threads, wall-clock."""
    lines = ["| rows | inputs | features | λ_nc | wall-clock, s | gap |", "|---:|---:|---:|---:|---:|---:|"]
    for weight in WEIGHTS:
        params = {"alpha": 1e-6, "rank": rank, "tol": 1e-3, "noncrossing": weight}
        start = time.perf_counter()
        r = asked(folder, {"kind": "fit", "n": n, "d": d, "params": params}, threads=2)
        assert r is not None
        lines.append(f"| {n} | {d} | {rank} | {weight:g} | {time.perf_counter() - start:.0f} | {r['gap']:.0e} |")
        print(lines[-1], flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("base", nargs="?", default="HEAD", help="a commit; default: HEAD")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", choices=("beside", "paths", "large"))
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker(json.loads(options.worker))
        return
    quick, base = options.quick, resolved(options.base)
    provenance = now(f"make bench-small-ridge BASE={base}")
    with tempfile.TemporaryDirectory() as scratch:
        folders = copied(base, Path(scratch) / "base"), copied(HERE, Path(scratch) / "now")
        tables = {
            "beside": lambda: beside(folders, SIZES[:1] if quick else SIZES),
            "paths": lambda: paths(folders[1], PATHS[:1] if quick else PATHS, 4 if quick else N_RIDGES),
            "large": lambda: large(folders[1], *((2_000, 4, 200) if quick else MANY)),
        }
        found = {name: make() for name, make in tables.items() if options.only in (None, name)}
    if quick or options.only:
        return
    lines = [
        "# Fits with little regularisation",
        "",
        f"Quantile regression with 50 nodes to a duality gap of 1e-4, 8 inputs, beside commit {base}; one thread, "
        f"processor seconds, a run of the base stopped after {LIMIT} s.",
        "",
        *found["beside"],
        "",
        f"## A path of {N_RIDGES} values of λ from 1e-2 to 1e-7, and as many separate fits",
        "",
        *found["paths"],
        "",
        "## Many rows: λ = 1e-6, a gap of 1e-3, two threads",
        "",
        *found["large"],
    ]
    RESULTS.write_text(signed("\n".join(lines), provenance), encoding="utf-8")


if __name__ == "__main__":
    main()
