"""Every density level set of three clouds.

One fit answers all outlier fractions; the figure draws nine sets. Run it with ``python examples/level_sets.py``.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from _gallery import Entry, Example, Size, main, timed_fit
from _style import INK, PAPER, colour_bar, plane, steps
from infinitask import InfiniteOneClassSVM
from infinitask.datasets import make_mixture

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


# The share of points outside follows θ only near the optimum: this fit is solved more exactly than the others.
ENTRY = Entry("Level sets of three clouds", Size(1000, 4000, 50, 1e-5, 300), fit)

if __name__ == "__main__":
    sys.exit(main([ENTRY]))
