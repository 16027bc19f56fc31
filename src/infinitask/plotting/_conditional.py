"""The quantile function and the density of y at chosen rows."""

from __future__ import annotations

from typing import Any, Self, final

import numpy as np

from infinitask._base.arrays import HostArray
from infinitask._base.validation import choice, count
from infinitask.plotting._asked import QUANTILES, asked
from infinitask.plotting._look import SIZE, Display
from infinitask.predictive import QuantileDistribution

MAX_POINTS = 8
"""The maximum number of rows whose curves can still be told apart."""


@final
class ConditionalQuantileDisplay(Display):
    """Plot the conditional distribution of y at chosen rows: its quantile function and its density.

    Parameters
    ----------
    levels : ndarray (q,)
    values : ndarray (k, q)
        The quantile functions at ``levels``.
    y : ndarray (g,)
    density : ndarray (k, g)
        The densities at ``y``.
    names : list of str
        Legend labels of the k rows.
    y_name : str

    Attributes
    ----------
    ax_ : axes, or a pair of axes
        Axes of the last drawing.
    figure_ : matplotlib.figure.Figure

    Examples
    --------
    >>> from infinitask import InfiniteQuantileRegressor
    >>> from infinitask.datasets import make_sine
    >>> from infinitask.plotting import ConditionalQuantileDisplay
    >>> X, y = make_sine(100, random_state=0)
    >>> model = InfiniteQuantileRegressor(n_nodes=12).fit(X, y)
    >>> display = ConditionalQuantileDisplay.from_estimator(model, [[0.2], [1.2]])
    >>> display.names, len(display.ax_)
    (['x = 0.2', 'x = 1.2'], 2)
    """

    levels: HostArray
    values: HostArray
    y: HostArray
    density: HostArray
    names: list[str]
    y_name: str = "y"

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, names: Any = None, y_name: str = "y", grid: int = 200, **drawing: Any
    ) -> Self:
        """Plot the distributions that a model predicts for some rows.

        Parameters
        ----------
        estimator : estimator
            A fitted quantile model, or a pipeline that ends with one.
        X : table (k, d)
            The chosen rows, at most eight.
        names : sequence of str or None
            Legend labels of the rows; None: the value of the feature if there is only one, otherwise the row number.
        y_name : str
            Name of the target.
        grid : int
            The number of levels and of values of y.
        drawing
            Options passed to :meth:`plot`, such as ``ax``.
        """
        given = asked(estimator, QUANTILES, cls.__name__)
        if names is None and int(given.whole.n_features_in_) == 1 and np.ndim(X) == 2:
            names = [f"{given.table(X).names[0]} = {value:g}" for value in np.asarray(X, dtype=np.float64)[:, 0]]
        elif names is None and hasattr(X, "index"):
            names = [f"row {label}" for label in X.index]
        distribution = given.model.predict_distribution(given.inputs(X))
        return cls.from_predictions(distribution, names=names, y_name=y_name, grid=grid, **drawing)

    @classmethod
    def from_predictions(
        cls,
        distribution: QuantileDistribution,
        *,
        names: Any = None,
        y_name: str = "y",
        grid: int = 200,
        **drawing: Any,
    ) -> Self:
        """Plot given distributions.

        Parameters
        ----------
        distribution : QuantileDistribution
            Of k rows, at most eight; see ``predict_distribution``.
        names, y_name, grid, drawing
            As in :meth:`from_estimator`.
        """
        if not isinstance(distribution, QuantileDistribution):
            raise TypeError(
                f"A {type(distribution).__name__} was given; distribution must be what predict_distribution returns."
            )
        k, grid = len(distribution), count("grid", grid, least=2)
        if k > MAX_POINTS:
            raise ValueError(f"{k} rows were given; at most {MAX_POINTS} curves can be told apart. Choose some rows.")
        names = [f"row {i}" for i in range(k)] if names is None else [str(name) for name in names]
        if len(names) != k:
            raise ValueError(f"names holds {len(names)} entries for {k} rows; give one for each.")
        low, high = distribution.levels[[0, -1]]
        levels = np.linspace(max(low, 0.005), min(high, 0.995), grid)  # skip the extreme tails
        values = distribution.ppf(levels)
        margin = 0.05 * float(np.ptp(values))
        y = np.linspace(values.min() - margin, values.max() + margin, grid)
        density = distribution.pdf(y[None, :])
        return cls(levels, values, y, density, names, y_name).plot(**drawing)

    def plot(self, ax: Any = None, *, kind: str | None = None, look: Any = None) -> Self:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib axes, two of them, or None
            None: a new figure.
        kind : {"both", "quantiles", "density"} or None
            None: both, or only the quantile functions if ``ax`` is a single axes.
        look : {"light", "dark"}, Look or None
            None: the look that suits the axes, or the settings of matplotlib.
        """
        given = 0 if ax is None else np.size(np.asarray(ax, dtype=object))
        default = "quantiles" if given == 1 else "both"
        kind = choice("kind", default if kind is None else kind, ("both", "quantiles", "density"))
        if given and given != (2 if kind == "both" else 1):
            raise ValueError(f"kind={kind!r} was given with {given} axes; both curves need two, one of them needs one.")
        columns, size = (2, (9.6, 4.2)) if kind == "both" else (1, SIZE)
        title = f"The distribution of {self.y_name} at chosen rows"
        with self._canvas(ax, look, title, size=size, columns=columns) as (axes, look_):
            each = list(np.ravel(np.asarray(axes, dtype=object)))
            styles = look_.series(len(self.names))
            if kind in ("both", "quantiles"):
                for values, name, style in zip(self.values, self.names, styles, strict=True):
                    each[0].plot(self.levels, values, **style, linewidth=1.8, label=name)
                each[0].set(xlabel="quantile level", ylabel=self.y_name, xlim=(0.0, 1.0))
            if kind in ("both", "density"):
                for heights, name, style in zip(self.density, self.names, styles, strict=True):
                    shown = np.where(np.isfinite(heights), heights, np.nan)
                    each[-1].plot(self.y, shown, **style, linewidth=1.8, label=name)
                each[-1].set(xlabel=self.y_name, ylabel="density", ylim=(0.0, None))
            each[0].legend(loc="best")
        return self
