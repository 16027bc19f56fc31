"""How far a model in Nyström features is from the model of the kernel itself, by its rank, and what knowing costs.

Run ``python benchmarks/kernel_gap.py``; ``--quick`` is a small run to check that it works. Times are seconds of the
processor with one thread, of one fit each; the pass is the part of the fit that ``certify="kernel"`` adds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from infinitask import InfiniteQuantileRegressor
from infinitask.fitting import _fit
from pages import now, signed
from profile_fit import one_thread
from suite.problems import Array, D, heteroscedastic

RESULTS = Path(__file__).parents[1] / "docs" / "benchmarks" / "kernel_gap.md"

RIDGES = (1e-2, 1e-3, 1e-4)
"""λ, for targets of variance one."""


@dataclass(frozen=True)
class Point:
    """One fit."""

    alpha: float
    rank: int
    evaluations: int
    dual_gap: float
    kernel_gap: float
    seconds: float
    """Of the fit without the pass."""
    passed: float
    """Of the pass."""

    @property
    def share(self) -> float:
        """What the pass adds to the fit."""
        return self.passed / self.seconds


def measure(X: Array, y: Array, alpha: float, rank: int) -> Point:
    """Fit once."""
    inside, plain = [0.0], _fit.kernel_gap

    def timed(*arguments: Any) -> float:
        started = time.process_time()
        found = plain(*arguments)
        inside[0] += time.process_time() - started
        return found

    model = InfiniteQuantileRegressor(
        alpha=alpha, gamma="median", features="nystroem", rank=rank, certify="kernel", random_state=0
    )
    with one_thread(), mock.patch.object(_fit, "kernel_gap", timed):
        started = time.process_time()
        model.fit(X, y)
        seconds = time.process_time() - started
    return Point(
        alpha,
        rank,
        model.solution_.n_evaluations,
        model.dual_gap_,
        model.kernel_gap_,
        seconds - inside[0],
        inside[0],
    )


def report(n: int, points: Sequence[Point]) -> str:
    """The table, in Markdown."""
    shares = [point.share for point in points]
    lines = [
        "# How far from the kernel's own model",
        "",
        f'`InfiniteQuantileRegressor(gamma="median", features="nystroem", certify="kernel")`, n = {n}, d = {D}, '
        "m = 50, non-crossing; the data of `suite/problems.py`, standardised. `kernel_gap_` bounds how far the "
        "objective is above the smallest one with the kernel itself, `dual_gap_` above the smallest one with these "
        "features. The pass is what `certify` adds: seconds of the processor, with one thread, one fit each.",
        "",
        f"The pass takes between {min(shares):.2f} and {max(shares):.2f} of the time of the fit.",
        "",
        "| λ | rank | evaluations | dual gap | kernel gap | fit, s | pass, s | pass / fit |",
        "|" + "---:|" * 8,
    ]
    lines += [
        f"| {p.alpha:g} | {p.rank} | {p.evaluations} | {p.dual_gap:.1e} | {p.kernel_gap:.2g} | {p.seconds:.3g} "
        f"| {p.passed:.3g} | {p.share:.2f} |"
        for p in points
    ]
    return "\n".join(lines) + "\n"


def draw(n: int, points: Sequence[Point], path: Path) -> None:
    """The gap against the rank, and the time of the pass beside that of the fit."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    ranks = sorted({p.rank for p in points})
    for k, alpha in enumerate(sorted({p.alpha for p in points}, reverse=True)):
        line = sorted((p for p in points if p.alpha == alpha), key=lambda p: p.rank)
        x, colour = [p.rank for p in line], f"C{k}"
        left.loglog(x, [p.kernel_gap for p in line], "o-", color=colour, label=f"λ = {alpha:g}")
        right.loglog(x, [p.seconds for p in line], "o-", color=colour, label=f"fit, λ = {alpha:g}")
        right.loglog(x, [p.passed for p in line], "s--", color=colour, alpha=0.7)
    left.axhline(1e-4, color="grey", linewidth=1.0, linestyle=":")
    left.annotate("tol", (ranks[0], 1e-4), xytext=(0, 3), textcoords="offset points", color="grey", fontsize="small")
    left.set_ylabel("certified distance, relative")
    left.set_title(f"kernel gap, n = {n}, d = {D}", fontsize="medium")
    right.plot([], [], "s--", color="grey", label="pass, each λ")
    right.set_ylabel("seconds of the processor")
    right.set_title("fit and pass", fontsize="medium")
    for axis in (left, right):
        axis.set_xlabel("landmarks")
        axis.set_xticks(ranks, [str(rank) for rank in ranks])
        axis.minorticks_off()
        axis.grid(alpha=0.3)
        axis.legend(fontsize="small")
    figure.savefig(path, dpi=110)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few small sizes: does it run?")
    parser.add_argument("--output", type=Path, help="where the table goes, with .png beside; --quick: nowhere")
    options = parser.parse_args(arguments)
    provenance = now("make bench-kernel-gap")
    n, ranks = (300, (10, 40)) if options.quick else (20_000, (100, 200, 400, 800, 1_500, 3_000))
    X, y = heteroscedastic(n, D, seed=0)
    X, y = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
    measure(X[:200], y[:200], 1e-3, 10)  # loads the libraries
    points = []
    for rank in ranks:
        for alpha in RIDGES:
            points.append(measure(X, y, alpha, rank))
            print(points[-1], flush=True)
    points.sort(key=lambda p: (-p.alpha, p.rank))
    text = signed(report(n, points), provenance)
    print(f"\n{text}")
    output = options.output or (None if options.quick else RESULTS)
    if output is not None:
        output.write_text(text, encoding="utf-8")
        draw(n, points, output.with_suffix(".png"))


if __name__ == "__main__":
    main()
