"""The ROC curve of the continuum, with chosen trade-offs marked."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import cycle
from typing import Any, Self, final

import numpy as np

from infinitask._base.arrays import HostArray
from infinitask._base.validation import levels_within
from infinitask.metrics import sensitivity_specificity
from infinitask.plotting._asked import DECISIONS, asked
from infinitask.plotting._canvas import Display, colour_bar
from infinitask.predictive import ROCCurve

MARKERS = ("o", "s", "D", "^", "v", "p")
"""Chosen trade-offs differ by their marks."""


@final
@dataclass(eq=False, repr=False)
class ThetaROCDisplay(Display):
    """The policies that one fit offers: sensitivity against false alarms for every trade-off, chosen ones marked.

    Parameters
    ----------
    curve : ROCCurve
        ``roc_curve(X, y)`` of a classifier.
    chosen : float, array (k,) or None
        Trade-offs that are marked, each at the nearest one of the curve.

    Attributes
    ----------
    ax_, figure_
        Where it was drawn last.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from infinitask import InfiniteCostSensitiveClassifier
    >>> from infinitask.plotting import ThetaROCDisplay
    >>> X, y = make_moons(200, noise=0.3, random_state=0)
    >>> model = InfiniteCostSensitiveClassifier(n_nodes=8).fit(X[:100], y[:100])
    >>> display = ThetaROCDisplay.from_estimator(model, X[100:], y[100:], theta=0.5)
    >>> display.line[:, 0].tolist(), display.line[:, -1].tolist()
    ([0.0, 0.0], [1.0, 1.0])
    """

    curve: ROCCurve
    chosen: Any = None

    def __post_init__(self) -> None:
        if self.chosen is not None:
            levels_within("chosen", self.chosen, -1.0, 1.0)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        theta: Any = None,
        sample_weight: Any = None,
        ax: Any = None,
        look: Any = None,
    ) -> Self:
        """Draw the policies of a model on rows that it has not seen.

        Parameters
        ----------
        estimator : estimator
            A fitted classifier, alone or at the end of a pipeline.
        X : table (n, d)
        y : array (n,)
        theta : float, array (k,) or None
            The trade-offs that are marked, such as ``choose_theta`` finds; None: the default of the model.
        sample_weight : array (n,) or None
        ax, look
            As in :meth:`plot`.
        """
        given = asked(estimator, DECISIONS, cls.__name__)
        if theta is not None:
            levels_within("theta", theta, -1.0, 1.0)
        curve = given.model.roc_curve(given.inputs(X), y, sample_weight)
        default: Any = given.model.theta
        chosen = (default if np.ndim(default) == 0 else None) if theta is None else theta
        return cls(curve, chosen).plot(ax, look=look)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_pred: Any,
        theta: Any,
        *,
        chosen: Any = None,
        pos_label: Any = None,
        sample_weight: Any = None,
        ax: Any = None,
        look: Any = None,
    ) -> Self:
        """Draw the policies of labels that are known already.

        Parameters
        ----------
        y_true : array (n,)
        y_pred : array (n, q)
            Labels, one column for each trade-off.
        theta : array (q,)
        chosen : float, array (k,) or None
            The trade-offs that are marked.
        pos_label, sample_weight
            As in :func:`~infinitask.metrics.sensitivity_specificity`.
        ax, look
            As in :meth:`plot`.
        """
        levels = levels_within("theta", theta, -1.0, 1.0)
        rates = sensitivity_specificity(y_true, y_pred, pos_label, sample_weight)
        if np.shape(rates.sensitivity) != levels.shape:
            raise ValueError(
                f"y_pred of shape {np.shape(y_pred)} was given for {levels.size} values of theta; give one column each."
            )
        found: Self = rates.plot(levels, ax, chosen=chosen, look=look)
        return found

    @property
    def line(self) -> HostArray:
        """The curve from (0, 0) through the policies to (1, 1): (2, k + 2), in ascending order of false alarms."""
        order = np.lexsort((self.curve.tpr, self.curve.fpr))
        return np.column_stack([[0.0, 0.0], np.stack([self.curve.fpr, self.curve.tpr])[:, order], [1.0, 1.0]])

    @property
    def positions(self) -> list[int]:
        """The positions of the chosen trade-offs on the curve, in the order in which they were given."""
        chosen = np.ravel(np.asarray([] if self.chosen is None else self.chosen, dtype=np.float64))
        return [int(np.argmin(np.abs(self.curve.theta - theta))) for theta in chosen]

    @property
    def position(self) -> int | None:
        """The position of the chosen trade-off on the curve, the first of several."""
        return next(iter(self.positions), None)

    def plot(self, ax: Any = None, *, look: Any = None) -> Self:
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib axes or None
            None: a figure of its own.
        look : {"light", "dark"}, Look or None
            None: what suits the axes, or the settings of matplotlib.
        """
        with self._canvas(ax, look, "One fit, every policy", size=(6.6, 5.2), equal=True) as (axes, look_):
            axes.plot([0.0, 1.0], [0.0, 1.0], "--", color=look_.muted, linewidth=1.0, label="no use of the inputs")
            words = f"policies of the model (area {self.curve.area:.3f})"
            axes.plot(*self.line, color=look_.edge, linewidth=1.0, zorder=1.9, label=words)
            dots = axes.scatter(
                self.curve.fpr, self.curve.tpr, c=self.curve.theta, cmap=look_.colours(), s=14, linewidths=0, zorder=2
            )
            for k, marker in zip(self.positions, cycle(MARKERS)):
                axes.plot(
                    self.curve.fpr[k],
                    self.curve.tpr[k],
                    marker,
                    linestyle="none",
                    markersize=11,
                    markerfacecolor="none",
                    markeredgecolor=look_.ink,
                    markeredgewidth=1.8,
                    zorder=3,
                    clip_on=False,
                    label=f"chosen trade-off {self.curve.theta[k]:.3g}",
                )
            axes.set(xlabel="fraction of negatives that raise an alarm", ylabel="fraction of positives that are found")
            axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
            axes.legend(loc="lower right")
            colour_bar(axes, dots, "trade-off (above 0 a missed positive costs more)", None, look_)
        return self
