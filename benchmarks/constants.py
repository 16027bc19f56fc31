"""Which named constants matter: each is doubled and halved, and a panel of fits is repeated.

``python benchmarks/constants.py fitting tasks`` patches every named number of these folders of ``src/infinitask``, one
at a time, and prints the largest relative change of a held-out loss, of its mean over the panel, and of the
evaluations. A constant that moves nothing by 1% either way is a candidate for removal.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_friedman1, make_moons

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))

from count_lines import SOURCE, constants  # noqa: E402

from infinitask import (  # noqa: E402
    InfiniteCostSensitiveClassifier,
    InfiniteFunctionRegressor,
    InfiniteKernelRidge,
    InfiniteOneClassSVM,
    InfiniteQuantileRegressor,
)
from infinitask.datasets import make_mixture, make_sine  # noqa: E402
from infinitask.kernels import LearntMetric  # noqa: E402
from infinitask.metrics import integrated_pinball_loss  # noqa: E402
from infinitask.streaming import Blocks  # noqa: E402

LEVELS = np.linspace(0.02, 0.98, 25)

Panel = dict[str, Callable[[], tuple[float, float]]]
"""Held-out loss and evaluations of each fit."""


def pinball(model: Any, X: Any, y: Any) -> float:
    """The mean pinball loss over the levels."""
    return float(integrated_pinball_loss(y, model.predict(X, quantiles=LEVELS), LEVELS))


def panel() -> Panel:
    """About two seconds of fits of every kind."""
    X, y = make_sine(300, random_state=0)
    F, f = make_friedman1(400, n_features=6, noise=1.0, random_state=0)
    f = f + np.random.default_rng(0).standard_t(2.0, size=400)
    M, m = make_moons(600, noise=0.35, random_state=0)
    rare = np.flatnonzero((m == 0) | (np.arange(600) % 6 == 0))
    M, m = M[rare], m[rare]
    C = make_mixture(600, random_state=0)
    grid = np.linspace(0.0, 1.0, 12)
    rng = np.random.default_rng(1)
    curves = np.sin(3.0 * grid + F[:, :1]) * F[:, 1:2] + 0.2 * rng.normal(size=(400, 12))

    def quantiles(X: Any, y: Any, **options: Any) -> tuple[float, float]:
        model = InfiniteQuantileRegressor(random_state=0, **options).fit(X[::2], y[::2])
        return pinball(model, X[1::2], y[1::2]), model.n_iter_

    def costs(labels: Any, **options: Any) -> tuple[float, float]:
        half = len(labels) // 2
        model = InfiniteCostSensitiveClassifier(random_state=0, **options).fit(M[:half], labels[:half])
        p = model.predict_proba(M[half:])
        place = np.searchsorted(model.classes_, labels[half:])
        return float(-np.mean(np.log(p[np.arange(len(p)), place]))), model.n_iter_

    def sets() -> tuple[float, float]:
        model = InfiniteOneClassSVM(random_state=0).fit(C[:300])
        nu = np.array([0.05, 0.1, 0.3, 0.5, 0.8])
        stray = np.mean(np.abs(np.mean(model.predict(C[300:], nu) < 0, axis=0) - nu))
        return 1.0 + float(stray) + model.mass_volume_area(C[300:], random_state=0, n_samples=2_000), model.n_iter_

    def seen() -> tuple[float, float]:
        model = InfiniteFunctionRegressor(theta=grid).fit(F[:60], curves[:60])
        return float(np.mean((model.predict(F[200:]) - curves[200:]) ** 2)), model.n_iter_

    def path() -> tuple[float, float]:
        model = InfiniteKernelRidge().fit(F[:200], f[:200])
        return float(np.mean((model.predict(F[200:], [-4.0, -2.0, 0.0]) - f[200:, None]) ** 2)), model.n_iter_

    def streamed() -> tuple[float, float]:
        X, y = make_sine(21_000, random_state=3)
        model = InfiniteQuantileRegressor(n_nodes=8, rank=30, features="nystroem", random_state=0, tol=1e-2)
        model.fit(Blocks.of_arrays(X, y))
        return pinball(model, X[:500], y[:500]), model.n_iter_

    return {
        "sine": lambda: quantiles(X, y),
        "friedman": lambda: quantiles(F, f),
        "friedman, exact order": lambda: quantiles(F[:200], f[:200], noncrossing="rearrange", n_nodes=12),
        "learnt metric": lambda: quantiles(F[:240], f[:240], kernel=LearntMetric(), n_nodes=12, tol=1e-3),
        "two classes": lambda: costs(m),
        "three classes": lambda: costs(m + (M[:, 0] > 1.0), n_nodes=8, tol=1e-3),
        "level sets": sets,
        "curves": seen,
        "ridge path": path,
        "streamed": streamed,
    }


def measured(fits: Panel) -> tuple[np.ndarray, float]:
    """Losses of the panel, and evaluations."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [fit() for fit in fits.values()]
    return np.array([loss for loss, _ in found]), float(sum(evaluations for _, evaluations in found))


def scaled(value: Any, factor: float) -> Any:
    """A number, or a tuple or array of them, times a factor; whole numbers stay whole."""
    if isinstance(value, (bool, str)) or value is None:
        return value
    if isinstance(value, int):
        return max(1, round(factor * value))
    if isinstance(value, (float, np.ndarray)):
        return factor * value
    if isinstance(value, (tuple, frozenset)):
        return type(value)(scaled(part, factor) for part in value)
    return value


def main() -> int:
    """Print a row for each constant."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+")
    options = parser.parse_args()
    fits = panel()
    losses, evaluations = measured(fits)
    print(f"{'constant':<55} {'largest':>9} {'mean':>9} {'evaluations':>11}   (changes when doubled or halved, %)")
    for path in sorted(path for folder in options.folders for path in (SOURCE / folder).rglob("*.py")):
        name = ".".join(("infinitask", *path.relative_to(SOURCE).with_suffix("").parts))
        module = importlib.import_module(name)
        for constant in constants(path):
            value, rows = getattr(module, constant), []
            for factor in (2.0, 0.5):
                setattr(module, constant, scaled(value, factor))
                try:
                    now, steps = measured(fits)
                    change = 100.0 * (now / losses - 1.0)
                    rows.append((np.max(np.abs(change)), np.mean(change), 100.0 * (steps / evaluations - 1.0)))
                except Exception as error:  # a constant that cannot have another value stays
                    rows.append((np.inf, np.inf, np.inf))
                    print(f"  {type(error).__name__}: {str(error)[:80]}")
                finally:
                    setattr(module, constant, value)
            largest, mean, steps = (max((row[k] for row in rows), key=abs) for k in range(3))
            print(
                f"{name.removeprefix('infinitask.') + '.' + constant:<55} {largest:9.2f} {mean:9.2f} {steps:11.1f}",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
