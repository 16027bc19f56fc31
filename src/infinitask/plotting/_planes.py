"""Displays over two features, with the others held: decision boundaries of trade-offs, and nested level sets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, ClassVar, Self, final

import numpy as np

from infinitask._base.arrays import HostArray
from infinitask._base.validation import count
from infinitask.pipelines._tables import listed
from infinitask.plotting._asked import DECISIONS, LEVEL_SETS, Asked, Features, asked, holds_numbers
from infinitask.plotting._look import Display, Look, colour_bar, few


def plane_of(
    given: Asked, tasks: HostArray, X: Any, features: Any, at: Mapping[Any, Any] | None, grid: int, display: str
) -> tuple[dict[str, Any], HostArray]:
    """Decisions of a model on a grid over two features, from their minimum to their maximum in the given rows.

    Parameters
    ----------
    given : Asked
    tasks : ndarray (q,)
    X : table (n, d)
    features : pair of int or str, or None
        The two features that change; None: those of a model with two.
    at : mapping or None
        Names or positions of other features, and values to hold them at instead of typical ones.
    grid : int
    display : str
        The name of the display, for error messages.

    Returns
    -------
    plane : dict
        The parameters that displays of planes share: the coordinates ``a`` and ``b``, the ``values``, the ``names``
        of the two features, and the values at which the others are ``held``.
    data : ndarray (n, 2)
        The two features in the given rows.
    """
    table = given.table(X)
    d = int(getattr(given.whole, "n_features_in_", len(table.columns)))
    if not given.before and len(table.columns) != d:
        raise ValueError(f"X with {len(table.columns)} columns was given; the model has {d} feature{'s' * (d != 1)}.")
    i, j = axes = _axes(features, table, display)
    low, high = np.array([table.ends(k, "features") for k in axes]).T
    margin = np.where(high > low, 0.04 * (high - low), 0.5)
    a, b = np.meshgrid(*np.linspace(low - margin, high + margin, count("grid", grid, least=2)).T)
    values = table.held(at)
    for k in axes:
        if any(table.position(name, "at") == k for name in at or {}):
            raise ValueError(f"at holds a value for {table.names[k]!r}, which is an axis of the plane; leave it out.")
    held = {name: value for k, (name, value) in enumerate(zip(table.names, values, strict=True)) if k not in axes}
    data = np.column_stack([table.columns[k].astype(np.float64) for k in axes])
    points = given.inputs(table.rows(values, {i: a.ravel(), j: b.ravel()}))
    decisions = given.model.decision_function(points, tasks).reshape(*a.shape, -1)
    return {"a": a, "b": b, "values": decisions, "names": (table.names[i], table.names[j]), "held": held}, data


def _axes(features: Any, table: Features, display: str) -> tuple[int, int]:
    """The positions of the two features that change."""
    d, names = len(table.names), table.names
    numbers = [name for name, column in zip(names, table.columns, strict=True) if holds_numbers(column)]
    example = tuple(numbers[:2] if len(numbers) > 1 else names[:2])
    if d < 2:
        raise ValueError(f"The model has {d} feature; {display} draws a plane and needs two at least.")
    if features is None:
        if d == 2:
            return 0, 1
        raise ValueError(
            f"The model has {d} features; {display} draws a plane of two. Say which: "
            f"features={example!r}; the others are held at typical values, or where at= says. The "
            f"features are {listed(names, 8)}."
        )
    pair = () if isinstance(features, str) or not np.iterable(features) else tuple(features)
    if len(pair) != 2:
        raise ValueError(f"features={features!r} was given; it must be a pair, such as {example!r}.")
    i, j = (table.position(feature, "features") for feature in pair)
    if i == j:
        raise ValueError(f"features={features!r} was given; the two must be different features.")
    return i, j


TRADE_OFFS = np.round(np.linspace(-0.8, 0.8, 9), 12)
FRACTIONS = np.round(np.linspace(0.1, 0.9, 9), 12)
"""The default tasks."""


class PlaneDisplay(Display):
    """Base class of both displays: values on a grid over two features, and axes that show the whole grid."""

    a: HostArray
    b: HostArray
    values: HostArray
    held: dict[str, Any] = field(default_factory=dict, kw_only=True)
    _words: ClassVar[tuple[str, str]]
    """The title for one task, and for several."""
    _equal = True

    @property
    def _title(self) -> str:
        several = self.values.shape[-1]
        others = f", {'the other input' if len(self.held) == 1 else 'other inputs'} held" if self.held else ""
        return self._words[several > 1].format(several) + others

    def _finish(self, axes: Any, names: tuple[str, ...]) -> None:
        """Label the axes, end them with the grid, and use equal units on both if they stay readable."""
        axes.set(xlabel=names[0], ylabel=names[1])
        axes.set(xlim=(self.a.min(), self.a.max()), ylim=(self.b.min(), self.b.max()))
        ratio = float(np.ptp(self.a)) / float(np.ptp(self.b))
        axes.set_aspect("equal" if 1.0 / 1.6 <= ratio <= 1.6 else "auto")


@final
class DecisionBoundaryDisplay(PlaneDisplay):
    """Plot the decision boundary of a classifier over two features, at several trade-offs between its errors.

    Parameters
    ----------
    a, b : ndarray (g, g)
        The two coordinates of a grid.
    values : ndarray (g, g, q)
        ``decision_function`` on the grid: above 0 for the positive class.
    theta : ndarray (q,)
        The trade-offs, ascending.
    X : ndarray (n, 2) or None
        Rows drawn as points.
    positive : ndarray (n,) of bool or None
        Which of these rows are positive.
    names : (str, str)
        Names of the two features.
    labels : (str, str)
        Legend labels of the classes.
    held : dict
        Names of other features, and the values at which they are held.

    Attributes
    ----------
    ax_, figure_
        Axes and figure of the last drawing.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from infinitask import InfiniteCostSensitiveClassifier
    >>> from infinitask.plotting import DecisionBoundaryDisplay
    >>> X, y = make_moons(80, noise=0.3, random_state=0)
    >>> model = InfiniteCostSensitiveClassifier(n_nodes=8).fit(X, y)
    >>> DecisionBoundaryDisplay.from_estimator(model, X, y, theta=[-0.5, 0.0, 0.5], grid=50).values.shape
    (50, 50, 3)
    """

    theta: HostArray
    X: HostArray | None = None
    positive: HostArray | None = None
    names: tuple[str, ...] = ("x0", "x1")
    labels: tuple[str, ...] = ("negative", "positive")

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        features: Any = None,
        at: Mapping[Any, Any] | None = None,
        theta: Any = None,
        grid: int = 200,
        **drawing: Any,
    ) -> Self:
        """Plot the boundaries of a model over the range of the given rows.

        Parameters
        ----------
        estimator : estimator
            A fitted classifier, or a pipeline that ends with one.
        X : table (n, d)
            Its two columns ``features`` give the range.
        y : array (n,) or None
            The labels; None: the rows are not drawn.
        features : pair of int or str, or None
            The two features that change, by position or name; they must be numeric. None: those of a model with two.
        at : mapping or None
            Maps names or positions of other features to the values at which they are held, instead of typical ones:
            medians of numbers, the most frequent category. Rows are drawn regardless of their other features.
        theta : array (q,) or None
            Trade-offs; None: −0.8, −0.6, …, 0.8.
        grid : int
            The number of grid points along each feature.
        drawing
            Options passed to :meth:`plot`, such as ``ax``.
        """
        given = asked(estimator, DECISIONS, cls.__name__)
        trade_offs = np.sort(given.tasks(theta, TRADE_OFFS))
        plane, data = plane_of(given, trade_offs, X, features, at, grid, cls.__name__)
        classes = given.model.classes_
        positive = None if y is None else np.asarray(y) == classes[1]
        if positive is not None and positive.shape != data.shape[:1]:
            raise ValueError(
                f"y of shape {positive.shape} was given for {data.shape[0]} rows of X; give one label each."
            )
        words = ("negative", "positive")
        labels = words if set(classes.tolist()) <= {-1, 0, 1} else tuple(str(label) for label in classes)
        rows = None if y is None else data
        return cls(**plane, theta=trade_offs, X=rows, positive=positive, labels=labels).plot(**drawing)

    _words = ("The decision boundary", "The boundary at {} costs of error")
    _size = (8.0, 5.2)

    def _draw(self, axes: Any, look: Look) -> None:
        mapping = look.steps(self.theta)
        for k, theta in enumerate(self.theta):
            height = self.values[..., k]
            if height.min() < 0.0 < height.max():
                axes.contour(self.a, self.b, height, levels=[0.0], colors=[mapping.to_rgba(theta)], linewidths=1.8)
        if self.X is not None and self.positive is not None:
            marks = {"linestyle": "none", "markersize": 4.2, "markeredgecolor": look.ink, "markeredgewidth": 0.7}
            classes = (~self.positive, self.positive)
            for name, rows, colour in zip(self.labels, classes, (look.paper, look.ink), strict=True):
                axes.plot(*self.X[rows].T, marker="o", **marks, color=colour, alpha=0.8, label=name, zorder=1)
            if self._own:  # boundaries may be anywhere: a legend within the axes would hide some
                axes.figure.legend(*axes.get_legend_handles_labels(), loc="outside lower right", ncols=2)
            else:
                axes.legend(loc="best")
        self._finish(axes, self.names)
        label = "trade-off (above 0 a missed positive costs more)"
        colour_bar(axes, mapping, label, few(self.theta), look)


@final
class LevelSetDisplay(PlaneDisplay):
    """Plot nested density level sets of a model over two features, one for each outlier fraction.

    Parameters
    ----------
    a, b : ndarray (g, g)
        The two coordinates of a grid.
    values : ndarray (g, g, q)
        ``decision_function`` on the grid: at least 0 inside the set.
    nu : ndarray (q,)
        The fractions outside the sets, ascending.
    X : ndarray (n, 2)
        Rows drawn as points.
    names : (str, str)
        Names of the two features.
    held : dict
        Names of other features, and the values at which they are held.

    Attributes
    ----------
    ax_, figure_
        Axes and figure of the last drawing.

    Examples
    --------
    >>> from infinitask import InfiniteOneClassSVM
    >>> from infinitask.datasets import make_mixture
    >>> from infinitask.plotting import LevelSetDisplay
    >>> X = make_mixture(100, random_state=0)
    >>> model = InfiniteOneClassSVM(n_nodes=20).fit(X)
    >>> LevelSetDisplay.from_estimator(model, X, nu=[0.1, 0.5], grid=40).values.shape
    (40, 40, 2)
    """

    nu: HostArray
    X: HostArray
    names: tuple[str, ...] = ("x0", "x1")

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        features: Any = None,
        at: Mapping[Any, Any] | None = None,
        nu: Any = None,
        grid: int = 200,
        **drawing: Any,
    ) -> Self:
        """Plot the sets of a model over the range of the given rows.

        Parameters
        ----------
        estimator : estimator
            A fitted level-set model, or a pipeline that ends with one.
        X : table (n, d)
            Rows drawn as points, regardless of their other features.
        features, at
            As in :meth:`DecisionBoundaryDisplay.from_estimator`.
        nu : array (q,) or None
            Fractions outside the sets; None: 0.1, 0.2, …, 0.9.
        grid : int
            The number of grid points along each feature.
        drawing
            Options passed to :meth:`plot`, such as ``ax``.
        """
        given = asked(estimator, LEVEL_SETS, cls.__name__)
        fractions = np.sort(given.tasks(nu, FRACTIONS))
        plane, data = plane_of(given, fractions, X, features, at, grid, cls.__name__)
        return cls(**plane, nu=fractions, X=data).plot(**drawing)

    _words = ("The level set", "The level sets at {} outlier fractions")
    _size = (8.0, 5.6)

    def _draw(self, axes: Any, look: Look) -> None:
        mapping = look.steps(self.nu, pale=0.3)
        step = 0.9 / (self.nu.size + 1)  # all below the points
        drawn = [k for k in range(self.nu.size) if self.values[..., k].max() >= 0.0]
        for k in drawn:
            height, colour = self.values[..., k], mapping.to_rgba(self.nu[k])
            axes.contourf(self.a, self.b, height, levels=[0.0, np.inf], colors=[colour], zorder=1.0 + step * k)
            if height.min() < 0.0:
                # a line in the colour of the paper separates two sets; around the outermost one it would be invisible
                outermost = k == drawn[0]
                edge, place = (look.muted, self.nu.size) if outermost else (look.paper, k)
                lines = {"levels": [0.0], "colors": [edge], "linewidths": 1.0 if outermost else 0.8}
                axes.contour(self.a, self.b, height, zorder=1.0 + step * (place + 0.5), **lines)
        axes.plot(*self.X.T, "o", color=look.ink, markersize=2.2, markeredgewidth=0, alpha=0.5)
        self._finish(axes, self.names)
        colour_bar(axes, mapping, "fraction of the data left outside", few(self.nu), look)
