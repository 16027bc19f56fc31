"""Draw the pictures of the README and of the documentation's first pages: ``make pictures``.

They are kept in ``docs/_static``, so that the README shows them without anything being built.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from sklearn.datasets import load_diabetes, make_moons
from sklearn.model_selection import train_test_split

from infinitask import (
    InfiniteCostSensitiveClassifier,
    InfiniteOneClassSVM,
    InfiniteQuantileRegressor,
    InfiniteQuantileRegressorCV,
)
from infinitask.datasets import make_mixture, make_sine
from infinitask.plotting import DARK, LIGHT, DecisionBoundaryDisplay, LevelSetDisplay, Look, QuantileFanDisplay

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "_static"
LEVELS = np.linspace(0.05, 0.95, 19)
COSTS = np.linspace(-0.8, 0.8, 9)
FRACTIONS = (0.05, 0.2, 0.35, 0.5, 0.65, 0.8)
BAND, MISSED = "#31688e", "#d1495b"


def fitted() -> tuple[Any, ...]:
    """Three models with their data."""
    X, y = make_sine(400, random_state=0)
    points, labels = make_moons(400, noise=0.3, random_state=0)
    cloud = make_mixture(400, random_state=0)
    return (
        (InfiniteQuantileRegressor().fit(X, y), X, y),
        (InfiniteCostSensitiveClassifier().fit(points, labels), points, labels),
        (InfiniteOneClassSVM().fit(cloud), cloud),
    )


def three_panels(figure: Any, models: tuple[Any, ...], look: Look, size: float) -> None:
    """Every quantile, every cost, every fraction."""
    quantiles, costs, sets = models
    left, middle, right = figure.subplots(1, 3)
    QuantileFanDisplay.from_estimator(*quantiles, quantiles=LEVELS, kind="lines", ax=left, look=look)
    DecisionBoundaryDisplay.from_estimator(*costs, theta=COSTS, ax=middle, look=look)
    LevelSetDisplay.from_estimator(*sets, nu=FRACTIONS, ax=right, look=look)
    titles = ("every quantile level", "every cost of errors", "every outlier fraction")
    for axes, title in zip((left, middle, right), titles, strict=True):
        axes.set_title(title, fontsize=size)
        axes.set(xlabel="", ylabel="", xticks=[], yticks=[], aspect="auto")
        if axes.get_legend() is not None:
            axes.get_legend().remove()
    for axes in figure.axes[3:]:  # the bars of colours say what the titles say
        axes.remove()


def save(name: str, look: Look, inches: tuple[float, float], dpi: int, draw: Any) -> None:
    """One picture."""
    with rc_context(look.settings()):
        figure = Figure(figsize=inches, layout="constrained")
        draw(figure)
        figure.savefig(FOLDER / name, dpi=dpi)
    print(FOLDER / name)


def intervals(figure: Any) -> None:
    """The quick start: 90% intervals of patients that the model has not seen."""
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    X, X_new, y, y_new = train_test_split(X, y, random_state=0)
    model = InfiniteQuantileRegressorCV(random_state=0).fit(X, y)
    low, high = model.predict_interval(X_new, coverage=0.9).T
    middle = model.predict(X_new, quantiles=0.5)
    order = np.argsort(middle)
    held = ((low <= y_new) & (y_new <= high)).to_numpy()[order]
    place = np.arange(order.size)
    axes = figure.add_subplot()
    axes.vlines(place, low[order], high[order], color=BAND, alpha=0.25, linewidth=3, label="90% interval")
    axes.plot(place, middle[order], color=BAND, linewidth=2, label="median")
    truth = y_new.to_numpy()[order]
    axes.plot(place[held], truth[held], ".", color=LIGHT.ink, markersize=6, label=f"inside: {held.mean():.0%}")
    axes.plot(place[~held], truth[~held], "x", color=MISSED, markersize=7, label=f"outside: {1 - held.mean():.0%}")
    axes.set(xlabel="patients that the model has not seen, by predicted median", ylabel="disease progression")
    axes.set_xticks([])
    axes.legend(loc="upper left", ncols=2)


def preview(figure: Any, models: tuple[Any, ...]) -> None:
    """The picture that a link to the project shows."""
    top, bottom = figure.subfigures(2, 1, height_ratios=[1.0, 2.6])
    top.text(0.007, 0.6, "infinitask", fontsize=50, fontweight="bold", va="center")
    top.text(0.008, 0.12, "Fit once. Choose the question at prediction.", fontsize=22, va="center", color=LIGHT.ink)
    three_panels(bottom, models, LIGHT, 17)


def main() -> None:
    """Draw all of them."""
    FOLDER.mkdir(exist_ok=True)
    models = fitted()
    for look, name in ((LIGHT, "three_tasks.png"), (DARK, "three_tasks_dark.png")):
        save(name, look, (12.0, 3.9), 130, lambda figure, look=look: three_panels(figure, models, look, 15))
    save("intervals.png", LIGHT, (9.0, 4.2), 130, intervals)
    save("social_preview.png", LIGHT, (12.8, 6.4), 100, lambda figure: preview(figure, models))


if __name__ == "__main__":
    sys.exit(main())
