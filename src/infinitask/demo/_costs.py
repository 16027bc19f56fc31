"""Every trade-off between missed positives and false alarms on two overlapping moons.

One fit answers all costs; the figure draws nine boundaries.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import make_moons

from infinitask import InfiniteCostSensitiveClassifier
from infinitask.demo._show import Entry, Example, Size, timed_fit
from infinitask.plotting import LIGHT, DecisionBoundaryDisplay

COSTS = np.linspace(-0.8, 0.8, 9)


def fit(size: Size) -> Example:
    """Fit, and measure the mean cost of wrong labels on unseen data."""
    points, labels = make_moons(size.n_train + size.n_test, noise=0.35, random_state=0)
    X, X_test = points[: size.n_train], points[size.n_train :]
    y, y_test = labels[: size.n_train], labels[size.n_train :]
    model = InfiniteCostSensitiveClassifier(n_nodes=size.n_nodes, tol=size.tol)
    model, seconds = timed_fit(model, X, y)
    cost = np.where(y_test[:, None] == 1, 1.0 + model.nodes_, 1.0 - model.nodes_) / 2.0
    wrong = model.predict(X_test, theta=model.nodes_) != y_test[:, None]
    held_out = float(np.mean(cost * wrong, axis=0) @ model.weights_)

    def draw(figure: Any, grid: int) -> None:
        axes = figure.add_subplot()
        DecisionBoundaryDisplay.from_estimator(model, X, y, theta=COSTS, grid=grid, ax=axes, look=LIGHT)
        axes.set(xlabel="first feature", ylabel="second feature")
        axes.set_title("One fit, the boundaries at nine costs of error")

    return Example(
        "costs of error", model, size.n_train, seconds, "cost of errors", held_out, "costs.png", (8.0, 5.2), draw
    )


ENTRY = Entry("Costs of error on two moons", Size(400, 4000, 32, 1e-4, 300), fit)
