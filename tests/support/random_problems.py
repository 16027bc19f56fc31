"""Seeded random problems over all tasks, kernels and weights: what the laws are tried on.

As a script it solves all of them and prints the slowest: ``python tests/support/random_problems.py [first] [last]``.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

from infinitask import (
    InfiniteCostSensitiveClassifier,
    InfiniteExpectileRegressor,
    InfiniteOneClassSVM,
    InfiniteQuantileRegressor,
    InfiniteTaskEstimator,
)

COUNT = 300

TASKS = ("quantile", "m-quantile", "expectile", "epsilon-insensitive", "cost-sensitive", "level set")
KERNELS = ("rbf", "laplacian", "matern12", "matern32", "matern52", "chi2", "linear", "polynomial")
TASK_KERNELS = ("rbf", "matern32", "matern52", "polynomial", "constant", "piecewise-linear", "diagonal")
NO_DERIVATIVE = ("piecewise-linear", "diagonal")


def problem(seed: int) -> tuple[Any, tuple[Any, ...], str]:
    """An unfitted estimator, the arguments of its ``fit``, and what it is.

    λ ∈ [1e-6, 1e2], λ_nc ∈ {0, 0.1, 1, 10}, n ∈ [5, 400], m ∈ [1, 100].
    """
    rng = np.random.default_rng(seed)
    task, kernel, task_kernel = (str(rng.choice(names)) for names in (TASKS, KERNELS, TASK_KERNELS))
    n, m, d = (int(rng.integers(low, high + 1)) for low, high in ((5, 400), (1, 100), (1, 5)))
    X = rng.standard_normal((n, d))
    if kernel == "chi2":
        X = np.abs(X)
    noise = rng.choice([0.0, 0.1, 1.0])
    y = np.sin(2 * X[:, 0]) + 0.5 * X[:, -1] + noise * (1 + 0.5 * np.abs(X[:, 0])) * rng.standard_normal(n)
    common: dict[str, Any] = {
        "kernel": kernel,
        "gamma": "scale" if kernel == "polynomial" else 10 ** rng.uniform(-2, 1) if rng.random() < 0.5 else "median",
        "task_kernel": task_kernel,
        "task_gamma": 10 ** rng.uniform(-0.5, 2.5) if rng.random() < 0.7 else None,
        "bias_kernel": rng.choice(np.array(["task", "rbf", None], dtype=object)),
        "alpha": float(10 ** rng.uniform(-6, 2)),
        "n_nodes": m,
    }
    noncrossing = float(rng.choice([0.0, 0.1, 1.0, 10.0])) if task_kernel not in NO_DERIVATIVE else 0.0
    smoothing = float(10 ** rng.uniform(-3, 1))
    name = f"{task}, n={n}, m={m}, d={d}, λ_nc={noncrossing:g}, {common}"
    if task == "level set":
        common["bias_kernel"] = common["bias_kernel"] or "task"
        return InfiniteOneClassSVM(**common), (X,), name
    if task == "cost-sensitive":
        labels = (y > np.median(y)).astype(int)
        return InfiniteCostSensitiveClassifier(**common), (X, labels), name
    common["noncrossing"] = noncrossing
    if task == "quantile":
        return InfiniteQuantileRegressor(**common), (X, y), name
    if task == "m-quantile":
        return InfiniteQuantileRegressor(smoothing=smoothing, **common), (X, y), name
    if task == "expectile":
        return InfiniteExpectileRegressor(**common), (X, y), name
    return InfiniteTaskEstimator(loss=task, **common), (X, y), name


def main(first: int, last: int) -> None:
    rows = []
    for seed in range(first, last):
        model, arguments, name = problem(seed)
        started = time.perf_counter()
        model.fit(*arguments)
        rows.append((time.perf_counter() - started, seed, model.dual_gap_, model.solution_.n_evaluations, name))
        if model.dual_gap_ > model.tol:
            print(f"NOT REACHED  seed {seed}  gap {model.dual_gap_:.1e}  {name}", flush=True)
    rows.sort(reverse=True)
    seconds = np.array([row[0] for row in rows])
    largest = max(row[2] for row in rows)
    print(f"{len(rows)} problems, {seconds.sum():.0f} s, median {np.median(seconds):.3f} s, largest gap {largest:.1e}")
    print("slowest:")
    for second, seed, gap, evaluations, name in rows[:10]:
        print(f"{second:7.2f} s  seed {seed}  gap {gap:.1e}  {evaluations} evaluations  {name}")


if __name__ == "__main__":
    main(*(int(argument) for argument in [*sys.argv[1:], *("0", str(COUNT))[len(sys.argv) - 1 :]]))
