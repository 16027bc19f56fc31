"""Curves as targets: InfiniteFunctionRegressor beside regressions of each point, of components, and of (x, θ).

Run ``python benchmarks/function_targets.py``; ``--quick`` is a small run to check that it works.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel

from infinitask import InfiniteFunctionRegressor
from infinitask.fitting._defaults import spreads
from pages import now, signed

Array = NDArray[Any]

RESULTS = Path(__file__).parents[1] / "docs" / "benchmarks" / "function_targets.md"
TRAINING, TEST, SEEDS = 100, 200, 5
FIRST_SEED = 100
"""The samples of seeds 0 to 2 were seen while the defaults were chosen; these were not."""
GRID = np.linspace(0.0, 1.0, 200)
"""Where true and predicted curves are compared."""


# ---------------------------------------------------------------------------------------------------------------- data
class Kind(NamedTuple):
    """Curves that depend on features: the truth, and what a measurement adds to it."""

    truth: Callable[[Array, Array], Array]
    """(n, 3) features and (q,) points → (n, q)."""
    own: Callable[[np.random.Generator, Array], Array]
    """What is the curve's own, and not known from its input, at points (k,)."""
    noise: float
    points: int
    """Of a common grid."""
    few: int
    """Of a curve with points of its own, in the mean."""


def growth(X: Array, theta: Array) -> Array:
    """Heights from 2 to 18 years: a spurt whose time and size depend on the features."""
    age = 2.0 + 16.0 * theta
    start, spurt = 85.0 + 3.0 * X[:, :1], 35.0 + 5.0 * np.tanh(X[:, 1:2])
    time = 12.5 + 1.2 * np.sin(X[:, 2:3])
    return start + 4.0 * (age - 2.0) + spurt / (1.0 + np.exp(-(age - time) / 1.2))


def spectra(X: Array, theta: Array) -> Array:
    """Seven narrow peaks whose heights depend on the features, and one that moves."""
    peaks = np.array([0.08, 0.2, 0.33, 0.45, 0.6, 0.74, 0.9])
    turns = np.random.default_rng(0).normal(size=(3, peaks.size))
    heights = 1.0 + np.tanh(X @ turns)
    shapes = np.exp(-0.5 * ((theta - peaks[:, None]) / 0.015) ** 2)
    return heights @ shapes + np.exp(-0.5 * ((theta - 0.52 - 0.01 * X[:, :1]) / 0.02) ** 2)


def step(X: Array, theta: Array) -> Array:
    """A step whose place and height depend on the features."""
    return (1.0 + 0.5 * X[:, 1:2]) * (theta > 0.5 + 0.12 * np.tanh(X[:, :1]))


def _level(rng: np.random.Generator, theta: Array) -> Array:
    return np.asarray(3.0 * rng.normal() + 2.0 * rng.normal() * (theta - 0.5))


def _wave(rng: np.random.Generator, theta: Array) -> Array:
    return np.asarray(0.1 * rng.normal() * np.sin(2.0 * np.pi * (theta + rng.uniform())))


DATA = {
    "growth": Kind(growth, _level, 1.0, 20, 5),
    "spectra": Kind(spectra, _wave, 0.1, 120, 30),
    "step": Kind(step, _wave, 0.2, 60, 8),
}

DESIGNS = ("grid", "gaps", "own points")


class Sample(NamedTuple):
    """Training curves: their features, and either a grid with values, or points and values of each."""

    X: Array
    theta: Any
    y: Any


def sample(kind: Kind, design: str, n: int, seed: int) -> Sample:
    """Curves that were seen at all points of a grid, at most of them, or each at its own."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))

    def seen(x: Array, theta: Array) -> Array:
        return np.asarray(
            kind.truth(x[None], theta)[0] + kind.own(rng, theta) + kind.noise * rng.normal(size=theta.size)
        )

    if design == "own points":
        points = [np.sort(rng.uniform(size=max(2, rng.poisson(kind.few)))) for _ in X]
        return Sample(X, points, [seen(x, t) for x, t in zip(X, points, strict=True)])
    grid = np.linspace(0.0, 1.0, kind.points)
    Y = np.array([seen(x, grid) for x in X])
    if design == "gaps":  # a piece of each curve is missing, and some values more
        start = rng.uniform(-0.2, 1.0, size=(n, 1))
        Y[((grid > start) & (grid < start + 0.3)) | (rng.uniform(size=Y.shape) < 0.1)] = np.nan
    return Sample(X, grid, Y)


# --------------------------------------------------------------------------------------------------------------- peers
ALPHAS, GAMMAS, FOLDS = (1e-3, 1e-2, 1e-1, 1.0, 10.0), (1 / 48, 1 / 12, 1 / 3), 5
"""Of kernel ridge regressions, for features of spread one."""


MOST = 800
"""Observations that regressions of (x, θ) are tuned with."""


def _tuned(X: Array, Y: Array) -> Callable[[Array], Array]:
    """Kernel ridge regressions of the columns of Y around their means, each tuned by five folds."""
    scale, centre = np.asarray(spreads(X)), Y.mean(axis=0)
    X, Y, fold = X * scale, Y - centre, np.arange(len(X)) % FOLDS
    tried = [(alpha, gamma) for gamma in GAMMAS for alpha in ALPHAS]
    errors = np.zeros((len(tried), Y.shape[1]))
    for c, (alpha, gamma) in enumerate(tried):
        K = rbf_kernel(X, gamma=gamma)
        for k in range(FOLDS):  # KernelRidge itself, without its checks of arguments
            train, test = fold != k, fold == k
            found = np.linalg.solve(K[np.ix_(train, train)] + alpha * np.eye(int(np.sum(train))), Y[train])
            errors[c] += np.sum((Y[test] - K[np.ix_(test, train)] @ found) ** 2, axis=0)
    best = np.argmin(errors, axis=0)
    models = {c: KernelRidge(alpha=tried[c][0], kernel="rbf", gamma=tried[c][1]).fit(X, Y) for c in np.unique(best)}

    def predict(Z: Array) -> Array:
        found = {c: model.predict(Z * scale) for c, model in models.items()}
        return centre + np.column_stack([found[c][:, j] for j, c in enumerate(best)])

    return predict


def mean_curve(data: Sample) -> Callable[[Array], Array]:
    """The mean of all curves, without features; of points of their own in forty parts of Θ."""
    at, mean = (data.theta, np.nanmean(data.y, axis=0)) if isinstance(data.y, np.ndarray) else _binned(data)
    return lambda X: np.tile(np.interp(GRID, at, mean), (len(X), 1))


def _binned(data: Sample) -> tuple[Array, Array]:
    theta, y = np.concatenate(data.theta), np.concatenate(data.y)
    part = np.minimum((40 * theta).astype(int), 39)
    count = np.bincount(part, minlength=40)
    seen = count > 0
    return (np.arange(40)[seen] + 0.5) / 40, np.bincount(part, weights=y, minlength=40)[seen] / count[seen]


def each_point(data: Sample) -> Callable[[Array], Array]:
    """A kernel ridge regression of its own for each point of the grid, tuned; linear between the points."""
    seen = ~np.isnan(data.y)
    if np.all(seen):
        parts = [_tuned(data.X, data.y)]
    else:
        parts = [_tuned(data.X[own], column[own, None]) for own, column in zip(seen.T, data.y.T, strict=True)]

    def predict(X: Array) -> Array:
        at_grid = np.column_stack([part(X) for part in parts])
        return np.array([np.interp(GRID, data.theta, row) for row in at_grid])

    return predict


def components(data: Sample) -> Callable[[Array], Array]:
    """Principal components with 99% of the variance, and a tuned kernel ridge regression of each score."""
    Y = np.array(data.y)
    for row in Y:  # gaps are filled along the curve
        seen = ~np.isnan(row)
        row[~seen] = np.interp(data.theta[~seen], data.theta[seen], row[seen])
    pca = PCA(0.99).fit(Y)
    scores = _tuned(data.X, pca.transform(Y))
    return lambda X: np.array([np.interp(GRID, data.theta, y) for y in pca.inverse_transform(scores(X))])


def _pairs(data: Sample) -> tuple[Array, Array, Array]:
    """Inputs beside θ, values, and the row of each."""
    row = np.repeat(np.arange(len(data.X)), [t.size for t in data.theta])
    theta = np.concatenate(data.theta)
    return np.column_stack([data.X[row], theta]), np.concatenate(data.y), row


def _over_grid(predict: Callable[[Array], Array], X: Array) -> Array:
    return np.array([predict(np.column_stack([np.tile(x, (GRID.size, 1)), GRID])) for x in X])


def joint_ridge(data: Sample) -> Callable[[Array], Array]:
    """Kernel ridge regression of (x, θ) jointly, with a width for θ of its own; tuned by five folds of curves."""
    Z, y, row = _pairs(data)
    scale = np.append(np.asarray(spreads(data.X)), 1.0)
    best: tuple[float, Any, Any] = (np.inf, None, None)
    centre, fold = float(np.mean(y)), row % FOLDS
    fold[np.cumsum(np.bincount(row))[row] > MOST] = -1  # of many observations, the first curves tune
    for width in (0.3, 0.1, 0.03):
        scale[-1] = 1.0 / width
        for gamma in (0.02, 0.08, 0.3):
            for alpha in (1e-2, 1e-1, 1.0, 10.0):
                errors = 0.0
                for k in range(FOLDS):
                    model = KernelRidge(alpha=alpha, kernel="precomputed")
                    train, test = (fold != k) & (fold >= 0), fold == k
                    model.fit(_kernel(Z[train], Z[train], scale, gamma), y[train] - centre)
                    found = model.predict(_kernel(Z[test], Z[train], scale, gamma))
                    errors += float(np.sum((y[test] - centre - found) ** 2))
                if errors < best[0]:
                    best = errors, (scale.copy(), gamma), alpha
    scale, gamma = best[1]
    model = KernelRidge(alpha=best[2], kernel="precomputed").fit(_kernel(Z, Z, scale, gamma), y - centre)
    return lambda X: _over_grid(lambda z: centre + model.predict(_kernel(z, Z, scale, gamma)), X)


def _kernel(A: Array, B: Array, scale: Array, gamma: float) -> Array:
    A, B = A * scale, B * scale
    in_x = np.sum((A[:, None, :-1] - B[None, :, :-1]) ** 2, axis=2)
    return np.asarray(np.exp(-gamma * in_x - 0.5 * (A[:, None, -1] - B[None, :, -1]) ** 2))


def gaussian_process(data: Sample) -> Callable[[Array], Array]:
    """A Gaussian process of (x, θ) with a width for each coordinate, by marginal likelihood, two starts."""
    Z, y, _ = _pairs(data)
    some = np.random.default_rng(0).permutation(y.size)[:MOST]  # its cost is cubic
    kernel = ConstantKernel(1.0) * RBF([2.0, 2.0, 2.0, 0.2], (1e-2, 1e3)) + WhiteKernel(0.1)
    model = GaussianProcessRegressor(kernel, normalize_y=True, n_restarts_optimizer=1, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(Z[some], y[some])
    return lambda X: _over_grid(model.predict, X)


def infinite(data: Sample) -> Callable[[Array], Array]:
    """All defaults."""
    model = InfiniteFunctionRegressor().fit(data.X, data.y, data.theta)
    low, high = model.nodes_[[0, -1]]
    return lambda X: np.asarray(model.predict(X, np.clip(GRID, low, high)))


OURS = "InfiniteFunctionRegressor"
ON_GRID = {OURS: infinite, "mean curve": mean_curve, "each point": each_point, "components": components}
OF_POINTS = {OURS: infinite, "mean curve": mean_curve, "joint ridge": joint_ridge, "Gaussian process": gaussian_process}


# ------------------------------------------------------------------------------------------------------------- measure
def measure(kind: Kind, design: str, seeds: Sequence[int], n: int, test: int) -> dict[str, Array]:
    """For each method the error of new curves relative to that of the mean curve, and the seconds, (seeds, 2)."""
    methods = OF_POINTS if design == "own points" else ON_GRID
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in methods}
    for seed in seeds:
        data = sample(kind, design, n, seed)
        X = np.random.default_rng(1000 + seed).normal(size=(test, 3))
        truth = kind.truth(X, GRID)
        usual = float(np.sqrt(np.mean((truth - truth.mean(axis=0)) ** 2)))
        for name, method in methods.items():
            start = time.perf_counter()
            predict = method(data)
            seconds = time.perf_counter() - start
            found[name].append((float(np.sqrt(np.mean((predict(X) - truth) ** 2))) / usual, seconds))
    return {name: np.array(rows) for name, rows in found.items()}


# -------------------------------------------------------------------------------------------------------------- report
def report(results: dict[tuple[str, str], dict[str, Array]], seeds: int, n: int, test: int) -> str:
    """The tables, in Markdown."""
    lines = [
        "# Functions as targets",
        "",
        f"{n} curves for training, {test} new inputs, three inputs, {seeds} repetitions with new curves. The numbers "
        "are root mean squared errors of whole curves against the true ones, relative to the spread of the true curves "
        "around their mean, with the standard deviation over repetitions; smaller is better, the smallest is bold. "
        "Seconds are those of a fit with its tuning, the median. The kinds of curves are those that the defaults were "
        "chosen with, the draws are others.",
        "",
        "Growth: heights with a spurt, 20 points or about 5 of its own for each curve; spectra: narrow peaks, 120 "
        "points or about 30; step: a jump whose place moves, 60 points or about 8. Each measurement has noise, and "
        "each curve a deviation of its own that no input tells. With gaps, a piece of about a quarter of each curve is "
        "missing, and a tenth of the other values.",
        "",
        "InfiniteFunctionRegressor has all its defaults. Peers: the mean curve; a kernel ridge regression for each "
        "point of the grid by itself; principal components with 99% of the variance and a kernel ridge regression of "
        "their scores (gaps filled along the curve); for points of their own a kernel ridge regression of (x, θ) with "
        f"a width for θ, tuned by folds of curves with {MOST} observations and fitted to all, and a Gaussian process "
        f"of (x, θ) with a width for each coordinate, of at most {MOST} observations.",
    ]
    for design in DESIGNS:
        kinds = [name for name, seen in results if seen == design]
        if not kinds:
            continue
        lines += ["", f"## {design.capitalize()}", "", "| method | " + " | ".join(f"{k} | s" for k in kinds) + " |"]
        lines += ["|---|" + "---:|---:|" * len(kinds)]
        best = {k: min(float(rows[:, 0].mean()) for rows in results[k, design].values()) for k in kinds}
        for name in results[kinds[0], design]:
            cells = []
            for k in kinds:
                rows = results[k, design][name]
                mean, seconds = float(rows[:, 0].mean()), float(np.median(rows[:, 1]))
                shown = f"**{mean:.3f}**" if mean == best[k] else f"{mean:.3f}"
                cells += [f"{shown} ± {rows[:, 0].std():.3f}", f"{seconds:.2f}"]
            lines += [f"| {name} | " + " | ".join(cells) + " |"]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one repetition with few curves")
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--data", nargs="*", default=list(DATA), choices=list(DATA))
    parser.add_argument("--designs", nargs="*", default=list(DESIGNS), choices=list(DESIGNS))
    chosen = parser.parse_args(arguments)
    n, test, seeds = (16, 20, 1) if chosen.quick else (TRAINING, TEST, SEEDS)
    results, provenance = {}, now("make bench-functions")
    for name in chosen.data:
        for design in chosen.designs:
            results[name, design] = measure(DATA[name], design, range(FIRST_SEED, FIRST_SEED + seeds), n, test)
            for method, rows in results[name, design].items():
                error, seconds = rows.mean(axis=0)
                print(f"{name:8} {design:10} {method:26} {error:.3f} {seconds:.2f} s", flush=True)
    chosen.output.write_text(signed(report(results, seeds, n, test), provenance), encoding="utf-8")


if __name__ == "__main__":
    main()
