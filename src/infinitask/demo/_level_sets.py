"""Every density level set of three clouds.

One fit answers all outlier fractions; the figure draws nine sets.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from infinitask import InfiniteOneClassSVM
from infinitask.datasets import make_mixture
from infinitask.demo._show import Entry, Example, Size, timed_fit
from infinitask.plotting import LIGHT, LevelSetDisplay

FRACTIONS = np.linspace(0.1, 0.9, 9)


def fit(size: Size) -> Example:
    """Fit, and measure on unseen data how far the share of points outside is from θ."""
    X = make_mixture(size.n_train, random_state=0)
    X_test = make_mixture(size.n_test, random_state=10)
    model = InfiniteOneClassSVM(n_nodes=size.n_nodes, tol=size.tol)
    model, seconds = timed_fit(model, X)
    strayed = np.abs(np.mean(model.predict(X_test, nu=FRACTIONS) == -1, axis=0) - FRACTIONS)

    def draw(figure: Any, grid: int) -> None:
        axes = figure.add_subplot()
        LevelSetDisplay.from_estimator(model, X, nu=FRACTIONS, grid=grid, ax=axes, look=LIGHT)
        axes.set(xlabel="first feature", ylabel="second feature")
        axes.set_title("One fit, the level sets at nine outlier fractions")

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


# The share of points outside follows θ only near the optimum: this fit is solved more exactly than the others.
ENTRY = Entry("Level sets of three clouds", Size(1000, 4000, 50, 1e-5, 300), fit)
