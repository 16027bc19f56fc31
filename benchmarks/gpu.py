"""Fits on a GPU: the paper's study, and 10⁶, 10⁷ and 10⁸ rows, beside what the memory of the card allows.

Run ``python benchmarks/gpu.py`` on a machine with a CUDA device, ``--help`` for the options. It runs from the source
tree and needs NumPy, SciPy, scikit-learn and torch.
"""

from __future__ import annotations

import argparse
import cProfile
import importlib
import pstats
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))
COPIES = ("array_api_compat", "sklearn.externals.array_api_compat", "scipy._lib.array_api_compat")
"""Where the array API layer is found: scikit-learn and SciPy bring copies of it."""

for copy in COPIES:
    try:
        sys.modules["array_api_compat"] = importlib.import_module(copy)
        break
    except ImportError:
        continue

from infinitask import InfiniteQuantileRegressor  # noqa: E402
from infinitask.datasets import make_sine  # noqa: E402
from infinitask.streaming import Blocks  # noqa: E402
from pages import now, signed  # noqa: E402

RESULTS = Path(__file__).parents[1] / "docs" / "benchmarks" / "gpu.md"
GIB = 2.0**30


class Line(NamedTuple):
    """One fit."""

    name: str
    seconds: float
    evaluations: int
    gap: float
    gib: float
    floor: float
    """Seconds that the card would need for the bytes of these evaluations."""


class Card(NamedTuple):
    """What the card can do, measured."""

    name: str
    bytes_per_second: float
    double: float
    single: float
    """Operations per second of matrix products."""
    upload: float
    """Bytes per second from the host."""


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    torch.cuda.synchronize()
    start = time.perf_counter()
    found = work()
    torch.cuda.synchronize()
    return time.perf_counter() - start, found


def card() -> Card:
    def best(work: Callable[[], Any]) -> float:
        work()
        return min(timed(work)[0] for _ in range(5))

    one = torch.ones(2**30, device="cuda")
    other = torch.empty_like(one)
    copied = 2 * 4 * one.numel() / best(lambda: other.copy_(one))
    rates = []
    for dtype in (torch.float64, torch.float32):
        a = torch.ones((8192, 8192), device="cuda", dtype=dtype)
        rates.append(2 * 8192.0**3 / best(lambda a=a: a @ a))
    host = torch.ones(2**28)
    upload = 4 * host.numel() / best(lambda: host.to("cuda"))
    return Card(torch.cuda.get_device_name(), copied, *rates, upload)


def rows(n: int, d: int, dtype: Any, where: str = "cuda", seed: int = 0) -> tuple[Any, Any]:
    """Inputs and targets with a nonlinear mean and a spread that varies."""
    draw = torch.Generator(device=where).manual_seed(seed)
    # the same rows in either precision, but for 10⁸ of them, which would take 7 GB more
    drawn = torch.float64 if n < 10**8 else dtype
    X = torch.randn((n, d), generator=draw, device=where, dtype=drawn).to(dtype)
    noise = torch.randn(n, generator=draw, device=where, dtype=drawn).to(dtype)
    y = torch.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + (0.2 + 0.5 / (1 + torch.exp(-2 * X[:, 2]))) * noise
    return X, y


def fitted(name: str, model: Any, X: Any, y: Any, bytes_per_evaluation: float, known: Card, profile: bool) -> Line:
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    profiler = cProfile.Profile() if profile else None

    def work() -> Any:
        if profiler is None:
            return model.fit(X, y)
        return profiler.runcall(model.fit, X, y)

    seconds, found = timed(work)
    if profiler is not None:
        print(f"\n--- {name}: {seconds:.2f} s")
        pstats.Stats(profiler).sort_stats("tottime").print_stats(14)
    evaluations = found.solution_.n_evaluations
    floor = evaluations * bytes_per_evaluation / known.bytes_per_second
    line = Line(name, seconds, evaluations, found.dual_gap_, torch.cuda.max_memory_allocated() / GIB, floor)
    print(line, flush=True)
    return line


def paper(known: Card, quick: bool, profile: bool) -> list[Line]:
    """The study of κ: n = 10 000, m = 100, λ = 1e-3 and 1e-7."""
    n, m = (1_000, 20) if quick else (10_000, 100)
    X, y = make_sine(n, random_state=0)
    lines = []
    for alpha in (1e-3, 1e-7):
        for kappa in (10.0, 0.1, 1e-3, 0.0):
            model = InfiniteQuantileRegressor(
                alpha=alpha,
                alpha_bias=alpha,
                smoothing=kappa,
                gamma=1.0,
                task_gamma=1.0,
                n_nodes=m,
                noncrossing=0.0,
                tol=1e-4,
                device="cuda",
            )
            name = f"study, n = {n}, m = {m}, λ = {alpha:g}, κ = {kappa:g}"
            found = [fitted(name, model, X, y, 8.0 * 8 * n * m, known, profile and kappa == 0.1) for _ in range(5)]
            lines.append(sorted(found, key=lambda line: line.seconds)[2])
    return lines


def large(n: int, p: int, m: int, dtype: Any, known: Card, profile: bool, *, tol: float, host: bool = False) -> Line:
    X, y = rows(n, 8, dtype, "cpu" if host else "cuda")
    item = 8 if dtype is torch.float64 else 4
    given: tuple[Any, Any] = (X, y)
    if host:
        given = (Blocks.of_arrays(X.numpy(), y.numpy(), rows=2**21), None)
    model = InfiniteQuantileRegressor(
        alpha=1e-4,
        gamma=1 / 16,
        rank=p,
        features="nystroem",
        n_nodes=m,
        noncrossing=0.0,
        tol=tol,
        device="cuda",
        random_state=0,
    )
    kind = "float64" if item == 8 else "float32"
    name = f"n = {n:.0e}, {p} landmarks, m = {m}, inputs in {kind}{', streamed from the host' if host else ''}"
    # features are read twice (h, gradient), values at the nodes written and read four times; in double precision
    # unless they do not fit
    kept = 4 if 8.0 * n * p > 0.4 * torch.cuda.mem_get_info()[0] else 8
    visited = n * float(kept) * (2 * p + 8 * m)
    return fitted(name, model, *given, visited, known, profile)


def page(known: Card, lines: list[Line]) -> str:
    head = [
        "# On a GPU",
        "",
        f"{known.name}: copies {known.bytes_per_second / 1e12:.2f} TB/s, matrix products "
        f"{known.double / 1e12:.0f} (float64) and {known.single / 1e12:.0f} (float32) TFlop/s, "
        f"{known.upload / 1e9:.0f} GB/s from the host; all measured in the same run. torch {torch.__version__}.",
        "",
        "“Memory alone” is the time in which the card could move the bytes of the evaluations: the features twice, and "
        "eight arrays of rows × nodes. Times are whole fits, from the call of `fit` to the end, with landmarks, "
        "factorisation and solver; arrays are on the card before, but for the study and the streamed rows. Of the "
        "study the median of five fits, of a million rows and more the second fit.",
        "",
        "| fit | seconds | evaluations | gap | GiB | memory alone, s |",
        "|---|---|---|---|---|---|",
    ]
    body = [
        f"| {a.name} | {a.seconds:.2f} | {a.evaluations} | {a.gap:.1e} | {a.gib:.1f} | {a.floor:.3f} |" for a in lines
    ]
    return "\n".join([*head, *body, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=["paper", "1e6", "1e7", "1e8"])
    parser.add_argument("--quick", action="store_true", help="a hundredth of the rows")
    parser.add_argument("--profile", action="store_true", help="print where the time goes")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("torch finds no CUDA device here; this benchmark needs one.")
    known = card()
    provenance = now("python benchmarks/gpu.py", device=known.name)
    print(known, flush=True)
    less = 100 if given.quick else 1
    X, y = rows(20_000, 8, torch.float64)
    # the first use of a device takes seconds that no later fit sees
    InfiniteQuantileRegressor(alpha=1e-3, n_nodes=5, rank=100, tol=1e-2, device="cuda").fit(X, y)
    lines: list[Line] = []
    if "paper" in given.parts:
        lines += paper(known, given.quick, given.profile)
    for part, n, p, m, tol in (("1e6", 10**6, 2_000, 100, 1e-3), ("1e7", 10**7, 1_000, 32, 1e-3)):
        for dtype in (torch.float64, torch.float32) if part in given.parts else ():
            if part == "1e7" and dtype is torch.float64:
                continue
            for _ in range(2):  # the second fit finds the libraries loaded
                line = large(n // less, p, m, dtype, known, given.profile, tol=tol)
            lines.append(line)
    if "1e8" in given.parts:
        lines.append(large(10**8 // less, 500, 16, torch.float32, known, given.profile, tol=1e-2, host=True))
    given.out.write_text(signed(page(known, lines), provenance))
    print(given.out.read_text())
    print(np.__version__)


if __name__ == "__main__":
    main()
