"""Every conditional quantile of a noisy sine whose noise fades from left to right.

One fit answers all levels; the figure draws 99 of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from infinitask import InfiniteQuantileRegressor
from infinitask.datasets import make_sine, sine_quantile
from infinitask.demo._show import Entry, Example, Size, timed_fit
from infinitask.losses import Pinball
from infinitask.plotting import LIGHT, QuantileFanDisplay

PERCENTILES = np.linspace(0.01, 0.99, 99)


def fit(size: Size) -> Example:
    """Fit, and measure the pinball loss on unseen data."""
    X, y = make_sine(size.n_train, random_state=0)
    X_test, y_test = make_sine(size.n_test, random_state=10)
    model = InfiniteQuantileRegressor(n_nodes=size.n_nodes, tol=size.tol)
    model, seconds = timed_fit(model, X, y)
    loss = Pinball().value(PERCENTILES, y_test[:, None], model.predict(X_test, quantiles=PERCENTILES))

    def draw(figure: Any, grid: int) -> None:
        axes = figure.add_subplot()
        fan = QuantileFanDisplay.from_estimator(
            model, X, y, quantiles=PERCENTILES, grid=grid, kind="lines", ax=axes, look=LIGHT
        )
        median = sine_quantile(fan.x, 0.5)[:, 0]
        axes.plot(fan.x, median, "--", color=LIGHT.ink, linewidth=1.5, label="true median")
        axes.set_title("One fit, the quantiles at 99 levels")
        axes.legend(loc="lower right")

    return Example(
        "quantiles", model, size.n_train, seconds, "pinball loss", float(loss.mean()), "quantiles.png", (8.0, 5.2), draw
    )


ENTRY = Entry("Quantiles of a noisy sine", Size(400, 4000, 50, 1e-4, 400), fit)
