"""liquidSVM: a fast solver of support vector machines without a bias.

Its quantile machine solves, for the levels τ of one call,

    min λ_l ‖f‖² + (1/n) Σ ρ_τ((y − q_τ − f(x)) / s)      k(x, x') = exp(−‖x − x'‖² / γ_l²)

where q_τ is a sample quantile of y, between two neighbours, and s half the range of y: found by comparing its
coefficients c, which stay in the box (s/(2 λ_l n)) [τ−1, τ], and its predictions, K c + q_τ clipped at max |y|, with
those of a dense quadratic program. Times s it is the problem of :func:`suite.duality.one_level` for y − q_τ, with

    λ_l = s λ / 2        γ_l = γ^(−1/2)

and the duality gap computed there goes to 0 with its threshold, as it would for no other problem.

It is old: it uses names that Python no longer has, which are set here before it is imported. It pins its process to
certain cores, and therefore runs in a separate one.
"""

from __future__ import annotations

import ctypes
import importlib.util
import sys
import sysconfig
import tempfile
import types
import warnings
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import rbf_kernel

from suite.clock import Clock, Measured, repeated
from suite.duality import one_level
from suite.peers.qp import summary
from suite.problems import CHECKED, LEVELS, Regression, Small
from suite.scores import quantile_scores

Array = NDArray[np.float64]

TIGHT, MIDDLE = 1e-6, 1e-5
"""Thresholds of its runs; its own is 1e-3, at which relative gaps of 1e-2 to 1e-1 remain. Tight: below 1e-4 at n = 500
and λ = 1e-4. Middle: about 1e-3 on the many small problems, where our fits end too; less takes it minutes there."""


def library() -> Any:
    """The module, with the names it needs."""
    sysconfig.get_config_vars().setdefault("SO", sysconfig.get_config_var("EXT_SUFFIX"))
    missing = "pkg_resources" not in sys.modules and importlib.util.find_spec("pkg_resources") is None
    if missing:  # needed for its example data only
        sys.modules["pkg_resources"] = types.ModuleType("pkg_resources")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import liquidSVM
    finally:
        if missing:  # other modules would take it for the real one
            del sys.modules["pkg_resources"]
    return liquidSVM


def plain(number: float) -> str:
    """Without an exponent, which its parser does not read."""
    return f"{number:.20f}"


def fit(X: Array, y: Array, levels: Array, alpha: float, gamma: float, *, stop: float | None, threads: int) -> Any:
    """A fitted machine for all levels at once: one γ, one λ, all rows for training."""
    half_range = 0.5 * (y.max() - y.min())
    machine = library().SVM(
        X,
        y,
        scenario="QT",
        display=0,
        threads=threads,
        scale=0,
        folds=1,
        gammas=[plain(gamma**-0.5)],
        lambdas=[plain(0.5 * half_range * alpha)],
        clipping=0,
        random_seed=1,
    )
    machine.set("WEIGHTS", [plain(level) for level in levels])
    machine.train(**({} if stop is None else {"s": (0, plain(stop))}))
    for number in range(1, levels.size + 1):
        machine.set("WEIGHT_NUMBER", number)
        machine.select()
    return machine


def predict(machine: Any, X: Array) -> Array:
    """The quantiles, (n, levels)."""
    return np.array(machine.test(X, np.zeros(X.shape[0]))[0])


def solutions(machine: Any, n: int) -> list[tuple[Array, float]]:
    """c, (n,), and q_τ of every level, from the file that it writes.

    In that file, a line of index:coefficient pairs follows a line of numbers; the tenth of these is q_τ.
    """
    write = library()._libliquidSVM.liquid_svm_write_solution
    write.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "solution.fsol"
        write(machine.cookie, str(file).encode(), 0, None)
        lines = [line.split() for line in file.read_text(encoding="utf-8").splitlines()]
    found = []
    for before, pairs in pairwise(lines):
        if pairs and all(":" in pair for pair in pairs):
            c = np.zeros(n)
            for index, value in (pair.split(":") for pair in pairs):
                c[int(index)] = float(value)
            found.append((c, float(before[9])))
    return found


def every_level(case: Regression, clock: Clock, stop: float | None) -> Measured:
    """All 99 levels in one call, each by itself, sharing the kernel matrix."""
    X, y, X_test, y_test = case.data

    def answer() -> tuple[Any, Array]:
        machine = fit(X, y, LEVELS, case.alpha, case.gamma, stop=stop, threads=clock.cores)
        return machine, predict(machine, X_test)

    raw, (machine, curves) = repeated(answer, clock)
    K, found = rbf_kernel(X, gamma=case.gamma), solutions(machine, y.size)
    bounds = []
    for level in CHECKED:
        c, q = found[int(np.searchsorted(LEVELS, level))]
        bounds.append(one_level(K, y - q, c * case.alpha * y.size, level, case.alpha))
    metrics = quantile_scores(dict(zip(LEVELS.tolist(), curves.T, strict=True)), y_test)
    metrics["gap"] = max(b.gap for b in bounds)  # its objective uses its own q_τ, so it is not compared with others
    return Measured(float(np.median(raw)), raw, LEVELS.size, LEVELS.size, metrics)


def small(case: Small, clock: Clock) -> Measured:
    """All 99 levels in one call for every data set and λ, once; the seconds of the median."""
    return summary([every_level(one, replace(clock, budget=0.0), stop=MIDDLE) for one in case.regressions()])
