"""The three examples: quantiles of a noisy sine, costs of error on two moons, level sets of three clouds.

One fit answers all levels, all costs and all outlier fractions; the figures draw 99 curves, nine boundaries, nine sets.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import make_moons

from infinitask import InfiniteCostSensitiveClassifier, InfiniteOneClassSVM, InfiniteQuantileRegressor
from infinitask.datasets import make_mixture, make_sine, sine_quantile
from infinitask.metrics import integrated_pinball_loss
from infinitask.plotting import LIGHT, DecisionBoundaryDisplay, LevelSetDisplay, QuantileFanDisplay


class Size(NamedTuple):
    """How large an example is: rows, nodes, tolerance of the fit, and points per axis of the figure."""

    n_train: int
    n_test: int
    n_nodes: int
    tol: float
    grid: int


class Result(NamedTuple):
    """A fitted model, the seconds of its fit, its result on unseen data, and a function that draws it."""

    model: Any
    seconds: float
    held_out: float
    draw: Callable[[Any, int], None]
    """Draws into empty axes of matplotlib, with the given number of points per axis."""


class Example(NamedTuple):
    """An example that can be run: its names, its full size, and the function that fits it."""

    title: str
    task: str
    measure: str
    """The name of the number ``held_out``."""
    size: Size
    fit: Callable[[Size], Result]


def _timed_fit(model: Any, size: Size, *data: Any) -> tuple[Any, float]:
    """Fit at this size; return the model and the seconds of its fit."""
    started = time.perf_counter()
    model.set_params(n_nodes=size.n_nodes, tol=size.tol).fit(*data)
    return model, time.perf_counter() - started


def quantiles(size: Size) -> Result:
    """Every quantile of a sine whose noise fades from left to right, measured by the pinball loss."""
    X, y = make_sine(size.n_train, random_state=0)
    X_test, y_test = make_sine(size.n_test, random_state=10)
    levels = np.arange(1, 100) / 100.0
    model, seconds = _timed_fit(InfiniteQuantileRegressor(), size, X, y)
    loss = integrated_pinball_loss(y_test, model.predict(X_test, quantiles=levels), levels)

    def draw(axes: Any, grid: int) -> None:
        options = {"kind": "lines", "ax": axes, "look": LIGHT}
        fan = QuantileFanDisplay.from_estimator(model, X, y, quantiles=levels, grid=grid, **options)
        median = sine_quantile(fan.x, 0.5)[:, 0]
        axes.plot(fan.x, median, "--", color=LIGHT.ink, linewidth=1.5, label="true median")
        axes.set_title("One fit, the quantiles at 99 levels")
        axes.legend(loc="lower right")

    return Result(model, seconds, loss, draw)


def costs(size: Size) -> Result:
    """Every trade-off between missed positives and false alarms, measured by the mean cost of wrong labels."""
    points, labels = make_moons(size.n_train + size.n_test, noise=0.35, random_state=0)
    X, X_test = points[: size.n_train], points[size.n_train :]
    y, y_test = labels[: size.n_train], labels[size.n_train :]
    model, seconds = _timed_fit(InfiniteCostSensitiveClassifier(), size, X, y)
    cost = np.where(y_test[:, None] == 1, 1.0 + model.nodes_, 1.0 - model.nodes_) / 2.0
    wrong = model.predict(X_test, theta=model.nodes_) != y_test[:, None]
    held_out = float(np.mean(cost * wrong, axis=0) @ model.weights_)

    def draw(axes: Any, grid: int) -> None:
        DecisionBoundaryDisplay.from_estimator(model, X, y, grid=grid, ax=axes, look=LIGHT)
        axes.set(xlabel="first feature", ylabel="second feature")
        axes.set_title("One fit, the boundaries at nine costs of error")

    return Result(model, seconds, held_out, draw)


def level_sets(size: Size) -> Result:
    """Every density level set, measured by how far the fraction of points outside is from θ."""
    X = make_mixture(size.n_train, random_state=0)
    X_test = make_mixture(size.n_test, random_state=10)
    model, seconds = _timed_fit(InfiniteOneClassSVM(), size, X)
    fractions = np.arange(1, 10) / 10.0
    deviation = np.abs(np.mean(model.predict(X_test, nu=fractions) == -1, axis=0) - fractions)

    def draw(axes: Any, grid: int) -> None:
        LevelSetDisplay.from_estimator(model, X, grid=grid, ax=axes, look=LIGHT)
        axes.set(xlabel="first feature", ylabel="second feature")
        axes.set_title("One fit, the level sets at nine outlier fractions")

    return Result(model, seconds, float(deviation.mean()), draw)


QUICK = Size(120, 400, 12, 1e-3, 80)
"""The size of every example with ``--quick``."""

EXAMPLES = (
    Example("Quantiles of a noisy sine", "quantiles", "pinball loss", Size(400, 4000, 50, 1e-4, 400), quantiles),
    Example("Costs of error on two moons", "costs of error", "cost of errors", Size(400, 4000, 32, 1e-4, 300), costs),
    # The fraction of points outside follows θ only near the optimum: this fit is solved more exactly than the others.
    Example("Level sets of three clouds", "level sets", "|outside − θ|", Size(1000, 4000, 50, 1e-5, 300), level_sets),
)
"""What the demo runs, in this order."""
