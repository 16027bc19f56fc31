"""The three examples: their data, their models, and how they are drawn."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_moons
from sklearn.preprocessing import StandardScaler

from infinitask._array import HostArray
from infinitask.datasets import make_mixture, make_sine, sine_quantile
from infinitask.demo._drawing import INK, PAPER, STYLE, DemoError, colour_bar, colours, plane, steps
from infinitask.estimators import InfiniteCostSensitiveClassifier, InfiniteOneClassSVM, InfiniteQuantileRegressor
from infinitask.losses import Pinball

__all__ = [
    "EXAMPLES",
    "FULL",
    "QUICK",
    "Example",
    "Size",
    "cost_example",
    "level_example",
    "quantile_example",
    "save_figure",
]

PERCENTILES = np.linspace(0.01, 0.99, 99)
COSTS = np.linspace(-0.8, 0.8, 9)
FRACTIONS = np.linspace(0.1, 0.9, 9)


@dataclass(frozen=True)
class Size:
    """How much data an example trains on and is measured on, how closely it is solved, and how finely drawn."""

    n_train: int
    n_test: int
    n_nodes: int
    tol: float
    grid: int


FULL = {
    "quantile": Size(400, 4000, 50, 1e-4, 400),
    "cost": Size(400, 4000, 32, 1e-4, 300),
    # the fraction left out follows θ only near the optimum
    "level": Size(1000, 4000, 50, 1e-5, 300),
}
QUICK = {name: Size(120, 400, 12, 1e-3, 80) for name in FULL}


@dataclass(frozen=True)
class Example:
    """A fitted model, how it does on data it has not seen, and how to draw it."""

    task: str
    model: Any
    n_train: int
    seconds: float
    measure: str
    """What ``held_out`` is."""
    held_out: float
    filename: str
    figsize: tuple[float, float]
    draw: Callable[[Any, int], None]
    """Draws into an empty matplotlib figure, at the given number of points per axis."""

    @property
    def cells(self) -> tuple[str, ...]:
        """The row of the table."""
        r, s = self.model.field_.coef.shape
        return (
            self.task,
            f"{self.n_train} × {self.model.n_features_in_}",
            str(self.model.nodes_.size),
            f"{r} × {s}",
            str(self.model.solution_.n_evaluations),
            f"{self.model.dual_gap_:.1e}",
            f"{self.seconds:.1f}",
            f"{self.held_out:.4f} {self.measure}",
        )


def _timed_fit(model: Any, *data: HostArray) -> tuple[Any, float]:
    started = time.perf_counter()
    model.fit(*data)
    return model, time.perf_counter() - started


def quantile_example(size: Size) -> Example:
    """Every conditional quantile of a noisy sine whose noise fades from left to right."""
    X, y = make_sine(size.n_train, random_state=0)
    X_test, y_test = make_sine(size.n_test, random_state=10)
    model = InfiniteQuantileRegressor(gamma=5.0, alpha=1e-4, noncrossing=1.0, n_nodes=size.n_nodes, tol=size.tol)
    model, seconds = _timed_fit(model, X, y)
    loss = Pinball().value(PERCENTILES, y_test[:, None], model.predict(X_test, quantiles=PERCENTILES))

    def draw(figure: Any, grid: int) -> None:
        from matplotlib.collections import LineCollection

        axes = figure.add_subplot()
        x = np.linspace(X.min(), X.max(), grid)
        curves = model.predict(x[:, None], quantiles=PERCENTILES)
        lines = LineCollection(
            [np.column_stack([x, curve]) for curve in curves.T], array=PERCENTILES, cmap=colours(), linewidths=0.9
        )
        axes.add_collection(lines)
        axes.plot(X[:, 0], y, "o", color=INK, markersize=2.6, markeredgewidth=0, alpha=0.45, label="training data")
        axes.plot(x, sine_quantile(x, 0.5)[:, 0], "--", color=INK, linewidth=1.5, label="true median")
        axes.set(xlabel="x", ylabel="y", xlim=(x[0], x[-1]), title="One fit, the quantiles at 99 levels")
        axes.legend(loc="lower right")
        colour_bar(figure, lines, axes, "quantile level θ", ticks=[0.01, 0.25, 0.5, 0.75, 0.99])

    return Example(
        "quantiles", model, size.n_train, seconds, "pinball loss", float(loss.mean()), "quantiles.png", (8.0, 5.2), draw
    )


def cost_example(size: Size) -> Example:
    """Every trade-off between missed positives and false alarms on two overlapping moons."""
    points, labels = make_moons(size.n_train + size.n_test, noise=0.35, random_state=0)
    X, X_test = points[: size.n_train], points[size.n_train :]
    y, y_test = labels[: size.n_train], labels[size.n_train :]
    scaler = StandardScaler().fit(X)
    X, X_test = scaler.transform(X), scaler.transform(X_test)
    model = InfiniteCostSensitiveClassifier(gamma=0.5, alpha=3e-4, n_nodes=size.n_nodes, tol=size.tol)
    model, seconds = _timed_fit(model, X, y)
    cost = np.where(y_test[:, None] == 1, 1.0 + model.nodes_, 1.0 - model.nodes_) / 2.0
    wrong = model.predict(X_test, theta=model.nodes_) != y_test[:, None]
    held_out = float(np.mean(cost * wrong, axis=0) @ model.weights_)

    def draw(figure: Any, grid: int) -> None:
        axes = figure.add_subplot()
        a, b, points = plane(X, grid)
        scores = model.decision_function(points, theta=COSTS)
        mapping = steps(COSTS)
        for theta, score in zip(COSTS, scores.T, strict=True):
            axes.contour(a, b, score.reshape(a.shape), levels=[0.0], colors=[mapping.to_rgba(theta)], linewidths=1.8)
        marks = {"marker": "o", "linestyle": "none", "markersize": 4.2, "markeredgecolor": INK, "markeredgewidth": 0.7}
        axes.plot(*X[y == 0].T, **marks, color=PAPER, alpha=0.8, label="negative", zorder=1)
        axes.plot(*X[y == 1].T, **marks, color=INK, alpha=0.8, label="positive", zorder=1)
        axes.set(xlabel="first feature", ylabel="second feature", aspect="equal")
        axes.set_title("One fit, the boundaries at nine costs of error")
        axes.legend(loc="lower right")
        colour_bar(figure, mapping, axes, "trade-off θ  (above 0 a missed positive costs more)", ticks=COSTS)

    return Example(
        "costs of error", model, size.n_train, seconds, "cost of errors", held_out, "costs.png", (6.6, 6.0), draw
    )


def level_example(size: Size) -> Example:
    """Every density level set of three clouds."""
    X = make_mixture(size.n_train, random_state=0)
    X_test = make_mixture(size.n_test, random_state=10)
    model = InfiniteOneClassSVM(gamma=0.5, n_nodes=size.n_nodes, tol=size.tol)
    model, seconds = _timed_fit(model, X)
    strayed = np.abs(np.mean(model.predict(X_test, nu=FRACTIONS) == -1, axis=0) - FRACTIONS)

    def draw(figure: Any, grid: int) -> None:
        axes = figure.add_subplot()
        a, b, points = plane(X, grid)
        scores = model.decision_function(points, nu=FRACTIONS)
        mapping = steps(FRACTIONS, pale=0.3)
        # Painted from the largest set to the smallest: a point shows the largest fraction at which it is still inside.
        for order, (theta, score) in enumerate(zip(FRACTIONS, scores.T, strict=True)):
            height, colour = score.reshape(a.shape), mapping.to_rgba(theta)
            axes.contourf(a, b, height, levels=[0.0, np.inf], colors=[colour], zorder=1.0 + 0.1 * order)
            axes.contour(a, b, height, levels=[0.0], colors=[PAPER], linewidths=0.8, zorder=1.05 + 0.1 * order)
        axes.plot(*X.T, "o", color=INK, markersize=2.2, markeredgewidth=0, alpha=0.5)
        axes.set(xlabel="first feature", ylabel="second feature", aspect="equal")
        axes.set_title("One fit, the level sets at nine outlier fractions")
        colour_bar(figure, mapping, axes, "fraction θ of the data left outside", ticks=FRACTIONS)

    return Example(
        "level sets",
        model,
        size.n_train,
        seconds,
        "|outside − θ|",
        float(strayed.mean()),
        "level_sets.png",
        (8.0, 5.6),
        draw,
    )


EXAMPLES: dict[str, tuple[str, Callable[[Size], Example]]] = {
    "quantile": ("Quantiles of a noisy sine", quantile_example),
    "cost": ("Costs of error on two moons", cost_example),
    "level": ("Level sets of three clouds", level_example),
}


def save_figure(example: Example, folder: Path, grid: int) -> Path:
    """Draw an example into a file of the folder."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    path = folder / example.filename
    with rc_context(STYLE):
        # a Figure of its own, not pyplot's: it renders with Agg and leaves the backend of the session alone
        figure = Figure(figsize=example.figsize, layout="compressed")
        example.draw(figure, grid)
        try:
            figure.savefig(path)
        except OSError as error:
            raise DemoError(f"the figure {path} could not be written ({error.strerror}).") from error
    return path
