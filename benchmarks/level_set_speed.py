"""Level sets for every fraction by one fit, beside one hundred refits of scikit-learn's one-class SVM.

Run ``python benchmarks/level_set_speed.py``; ``--quick`` is a small run to check that it works. Both have one thread,
and processor seconds hardly depend on other work on the machine. The fractions are those of new rows of the same
distribution.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from sklearn.svm import OneClassSVM

from infinitask import InfiniteOneClassSVM
from infinitask.kernels import RBF
from pages import now, signed

RESULTS = Path(__file__).parents[1] / "docs" / "benchmarks" / "level_set_speed.md"

SIZES = ((500, 2), (2_000, 2), (5_000, 2), (500, 8), (2_000, 8), (5_000, 8))
"""Rows and features."""

WIDTHS = {"median": 1.0, "5 × median": 5.0}
"""γ of the kernel, in terms of the median rule."""

REFITS, NEW_ROWS, LOW, ALPHA = 100, 5_000, 0.05, 1e-6


def sample(n: int, d: int, rng: np.random.Generator, centres: Any) -> Any:
    """A mixture of four clouds of different widths."""
    return centres[rng.integers(0, 4, n)] + rng.normal(size=(n, d)) * rng.uniform(0.3, 1.0, size=(n, 1))


def measure(n: int, d: int, factor: float, refits: int) -> dict[str, Any]:
    rng = np.random.default_rng(n + d)
    centres = 2.0 * rng.normal(size=(4, d))
    X, new = sample(n, d, rng, centres), sample(NEW_ROWS, d, rng, centres)
    gamma = factor * float(RBF().resolve(X).gamma)
    levels = np.linspace(LOW, 0.99, refits)
    start = time.process_time()
    model = InfiniteOneClassSVM(alpha=ALPHA, gamma=gamma).fit(X)
    ours = time.process_time() - start
    start = time.process_time()
    InfiniteOneClassSVM(alpha=ALPHA, gamma=gamma, exact_fractions="held-out").fit(X)
    calibrated = time.process_time() - start
    away = np.max(np.abs(np.mean(model.predict(new, nu=levels) < 0, axis=0) - levels))
    start = time.process_time()
    machines = [OneClassSVM(gamma=gamma, nu=nu).fit(X) for nu in levels]
    theirs = time.process_time() - start
    peer = max(abs(float(np.mean(m.predict(new) < 0)) - nu) for m, nu in zip(machines, levels, strict=True))
    return {
        "ours": ours,
        "calibrated": calibrated,
        "theirs": theirs,
        "gap": model.dual_gap_,
        "away": away,
        "peer": peer,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    provenance = now("make bench-level-sets")
    InfiniteOneClassSVM(alpha=ALPHA).fit(np.random.default_rng(0).normal(size=(40, 2)))  # loads what it needs
    lines = [
        "# Level sets: one fit, and one hundred refits",
        "",
        f"`InfiniteOneClassSVM(alpha={ALPHA:g}, gamma=γ)` for all fractions in [{LOW}, 1], and `OneClassSVM(gamma=γ, "
        f"nu=ν)` for {REFITS} of them; mixtures of four clouds, one thread, processor seconds. Fractions: the largest "
        f"distance between ν and the share of {NEW_ROWS} new rows outside. "
        'Calibrated: the same fit with `exact_fractions="held-out"`.',
        "",
        "| rows | inputs | γ | one fit, s | calibrated, s | refits, s | ratio | duality gap | fractions, one fit | "
        "refits |",
        "|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for n, d in SIZES[:1] if quick else SIZES:
        for name, factor in WIDTHS.items():
            r = measure(n, d, factor, 10 if quick else REFITS)
            lines.append(
                f"| {n} | {d} | {name} | {r['ours']:.2f} | {r['calibrated']:.2f} | "
                f"{r['theirs']:.2f} | {r['theirs'] / r['ours']:.1f} | "
                f"{r['gap']:.0e} | {r['away']:.3f} | {r['peer']:.3f} |"
            )
            print(lines[-1], flush=True)
    if not quick:
        RESULTS.write_text(signed("\n".join(lines), provenance), encoding="utf-8")


if __name__ == "__main__":
    main()
