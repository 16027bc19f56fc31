"""Every conditional quantile of a noisy sine whose noise fades from left to right.

One fit answers all levels; the figure draws 99 of them. Run it with ``python examples/quantiles.py``.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from _gallery import Entry, Example, Size, main, timed_fit
from _style import INK, colour_bar, colours
from infinitask import InfiniteQuantileRegressor
from infinitask.datasets import make_sine, sine_quantile
from infinitask.losses import Pinball

PERCENTILES = np.linspace(0.01, 0.99, 99)


def fit(size: Size) -> Example:
    """Fit, and measure the pinball loss on unseen data."""
    X, y = make_sine(size.n_train, random_state=0)
    X_test, y_test = make_sine(size.n_test, random_state=10)
    model = InfiniteQuantileRegressor(n_nodes=size.n_nodes, tol=size.tol)
    model, seconds = timed_fit(model, X, y)
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


ENTRY = Entry("Quantiles of a noisy sine", Size(400, 4000, 50, 1e-4, 400), fit)

if __name__ == "__main__":
    sys.exit(main([ENTRY]))
