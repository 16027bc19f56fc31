"""Curves over all tasks of one fit: ROC, costs, net benefit, and the volume of level sets."""

from __future__ import annotations

from itertools import cycle
from typing import Any, ClassVar, Self, final

import numpy as np

from infinitask._base.arrays import HostArray
from infinitask._base.validation import levels_within
from infinitask.metrics import mass_volume_curve, sensitivity_specificity
from infinitask.metrics._level_sets import MassVolumeCurve
from infinitask.plotting._asked import DECISIONS, LEVEL_SETS, asked
from infinitask.plotting._look import Display, Look, colour_bar
from infinitask.predictive import CostCurve, NetBenefitCurve, ROCCurve

MARKERS = ("o", "s", "D", "^", "v", "p")
"""Chosen trade-offs differ by their markers."""


@final
class ThetaROCDisplay(Display):
    """Plot the policies of one fit: sensitivity against false alarms for every trade-off, with chosen ones marked.

    Parameters
    ----------
    curve : ROCCurve
        ``roc_curve(X, y)`` of a classifier.
    chosen : float, array (k,) or None
        Trade-offs to mark, each at the nearest one of the curve.

    Attributes
    ----------
    ax_, figure_
        Axes and figure of the last drawing.

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
        cls, estimator: Any, X: Any, y: Any, *, theta: Any = None, sample_weight: Any = None, **drawing: Any
    ) -> Self:
        """Plot the policies of a model on held-out rows.

        Parameters
        ----------
        estimator : estimator
            A fitted classifier, or a pipeline that ends with one.
        X : table (n, d)
        y : array (n,)
        theta : float, array (k,) or None
            Trade-offs to mark, such as the result of ``choose_theta``; None: the default of the model.
        sample_weight : array (n,) or None
        drawing
            Options passed to :meth:`plot`, such as ``ax``.
        """
        given = asked(estimator, DECISIONS, cls.__name__)
        if theta is not None:
            levels_within("theta", theta, -1.0, 1.0)
        curve = given.model.roc_curve(given.inputs(X), y, sample_weight)
        default: Any = given.model.theta
        chosen = (default if np.ndim(default) == 0 else None) if theta is None else theta
        return cls(curve, chosen).plot(**drawing)

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
        **drawing: Any,
    ) -> Self:
        """Plot the policies of given labels.

        Parameters
        ----------
        y_true : array (n,)
        y_pred : array (n, q)
            Labels, one column for each trade-off.
        theta : array (q,)
        chosen : float, array (k,) or None
            Trade-offs to mark.
        pos_label, sample_weight
            As in :func:`~infinitask.metrics.sensitivity_specificity`.
        drawing
            Options passed to :meth:`plot`, such as ``ax``.
        """
        levels = levels_within("theta", theta, -1.0, 1.0)
        rates = sensitivity_specificity(y_true, y_pred, pos_label, sample_weight)
        if np.shape(rates.sensitivity) != levels.shape:
            raise ValueError(
                f"y_pred of shape {np.shape(y_pred)} was given for {levels.size} values of theta; give one column each."
            )
        found: Self = rates.plot(levels, chosen=chosen, **drawing)
        return found

    @property
    def line(self) -> HostArray:
        """The curve from (0, 0) through the policies to (1, 1): (2, k + 2), sorted by false alarms."""
        order = np.lexsort((self.curve.tpr, self.curve.fpr))
        return np.column_stack([[0.0, 0.0], np.stack([self.curve.fpr, self.curve.tpr])[:, order], [1.0, 1.0]])

    @property
    def positions(self) -> list[int]:
        """The positions of the chosen trade-offs on the curve, in the given order."""
        chosen = np.ravel(np.asarray([] if self.chosen is None else self.chosen, dtype=np.float64))
        return [int(np.argmin(np.abs(self.curve.theta - theta))) for theta in chosen]

    @property
    def position(self) -> int | None:
        """The position of the chosen trade-off on the curve; the first one if there are several."""
        return next(iter(self.positions), None)

    _title = "One fit, every policy"
    _size = (6.6, 5.2)
    _equal = True

    def _draw(self, axes: Any, look: Look) -> None:
        axes.plot([0.0, 1.0], [0.0, 1.0], "--", color=look.muted, linewidth=1.0, label="no use of the inputs")
        words = f"policies of the model (area {self.curve.area:.3f})"
        axes.plot(*self.line, color=look.edge, linewidth=1.0, zorder=1.9, label=words)
        marks = {"c": self.curve.theta, "cmap": look.colours(), "s": 14, "linewidths": 0, "zorder": 2}
        dots = axes.scatter(self.curve.fpr, self.curve.tpr, **marks)
        for k, marker in zip(self.positions, cycle(MARKERS)):
            ring = look.ring(f"chosen trade-off {self.curve.theta[k]:.3g}", marker)
            axes.plot(self.curve.fpr[k], self.curve.tpr[k], zorder=3, clip_on=False, **ring)
        axes.set(xlabel="fraction of negatives that raise an alarm", ylabel="fraction of positives that are found")
        axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
        axes.legend(loc="lower right")
        colour_bar(axes, dots, "trade-off (above 0 a missed positive costs more)", None, look)


class DecisionCurveDisplay(Display):
    """Base class of the two displays whose curve a classifier computes from labelled rows."""

    curve: Any
    _method: ClassVar[str]
    """The method of the classifier that computes the curve."""

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, sample_weight: Any = None, **drawing: Any) -> Self:
        """Plot the curve of a model on held-out rows.

        Parameters
        ----------
        estimator : estimator
            A fitted classifier, or a pipeline that ends with one.
        X : table (n, d)
        y : array (n,)
        sample_weight : array (n,) or None
        drawing
            Options passed to :meth:`plot`, such as ``ax``.
        """
        given = asked(estimator, DECISIONS, cls.__name__)
        return cls(getattr(given.model, cls._method)(given.inputs(X), y, sample_weight)).plot(**drawing)


@final
class ExpectedCostDisplay(DecisionCurveDisplay):
    """Plot the cost of decisions for every true trade-off, next to the two policies that ignore the features.

    Parameters
    ----------
    curve : CostCurve
        ``cost_curve(X, y)`` of a classifier.

    Attributes
    ----------
    ax_, figure_
        Axes and figure of the last drawing.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from infinitask import InfiniteCostSensitiveClassifier
    >>> from infinitask.plotting import ExpectedCostDisplay
    >>> X, y = make_moons(200, noise=0.3, random_state=0)
    >>> model = InfiniteCostSensitiveClassifier(n_nodes=8).fit(X[:100], y[:100])
    >>> display = ExpectedCostDisplay.from_estimator(model, X[100:], y[100:])
    >>> len(display.ax_.lines)
    3
    """

    curve: CostCurve
    _method = "cost_curve"

    _title = "What the decisions cost"

    def _draw(self, axes: Any, look: Look) -> None:
        curve = self.curve
        saved = curve.cost <= curve.best_constant
        axes.fill_between(curve.theta, curve.cost, curve.best_constant, where=saved, **look.band("saved by the model"))
        axes.plot(curve.theta, curve.cost_all_positive, **look.dashed("alarm for all"))
        axes.plot(curve.theta, curve.cost_all_negative, ":", color=look.ink, linewidth=1.6, label="alarm for none")
        axes.plot(curve.theta, curve.cost, color=look.main, linewidth=2.0, label="model")
        top = 1.25 * max(float(curve.best_constant.max()), float(curve.cost.max()))
        axes.set(xlim=(curve.theta[0], curve.theta[-1]), ylim=(0.0, top), ylabel="expected cost of a decision")
        axes.set_xlabel("trade-off (above 0 a missed positive costs more)")
        self._legend(axes)


@final
class NetBenefitDisplay(DecisionCurveDisplay):
    """Plot the net benefit of decisions over the probability from which one acts: decision-curve analysis.

    Parameters
    ----------
    curve : NetBenefitCurve
        ``net_benefit_curve(X, y)`` of a classifier.

    Attributes
    ----------
    ax_, figure_
        Axes and figure of the last drawing.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from infinitask import InfiniteCostSensitiveClassifier
    >>> from infinitask.plotting import NetBenefitDisplay
    >>> X, y = make_moons(200, noise=0.3, random_state=0)
    >>> model = InfiniteCostSensitiveClassifier(n_nodes=8).fit(X[:100], y[:100])
    >>> display = NetBenefitDisplay.from_estimator(model, X[100:], y[100:])
    >>> display.ax_.get_xlabel()
    'probability from which one acts'
    """

    curve: NetBenefitCurve
    _method = "net_benefit_curve"

    _title = "What the decisions are worth"

    def _draw(self, axes: Any, look: Look) -> None:
        curve = self.curve
        axes.plot(curve.threshold, curve.treat_all, **look.dashed("act for all"))
        axes.plot(curve.threshold, curve.treat_none, ":", color=look.ink, linewidth=1.6, label="act for none")
        axes.plot(curve.threshold, curve.net_benefit, color=look.main, linewidth=2.0, label="model")
        top = max(float(curve.net_benefit.max()), float(curve.treat_all.max()), 1e-3)
        # the benefit of acting for all is unbounded below towards 1, and so may be that of a poor model
        axes.set(xlim=(0.0, 1.0), ylim=(-0.25 * top, 1.1 * top), ylabel="net benefit, in cases found per row")
        axes.set_xlabel("probability from which one acts")
        axes.legend(loc="best")


@final
class MassVolumeDisplay(Display):
    """Plot the volume of a score's sets against the mass that they hold; a lower curve means a better score.

    Parameters
    ----------
    curve : MassVolumeCurve
        ``mass_volume_curve(X)`` of a model.
    name : str
        Legend label.

    Attributes
    ----------
    ax_, figure_
        Axes and figure of the last drawing.

    Examples
    --------
    >>> from infinitask import InfiniteOneClassSVM
    >>> from infinitask.datasets import make_mixture
    >>> from infinitask.plotting import MassVolumeDisplay
    >>> X = make_mixture(150, random_state=0)
    >>> model = InfiniteOneClassSVM(n_nodes=20).fit(X)
    >>> display = MassVolumeDisplay.from_estimator(model, make_mixture(150, random_state=1), random_state=0)
    >>> display.ax_.get_ylabel()
    'volume of the set'
    """

    curve: MassVolumeCurve
    name: str = "model"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        n_samples: int = 10_000,
        random_state: Any = None,
        name: str = "model",
        **drawing: Any,
    ) -> Self:
        """Plot the curve of a model, preferably on held-out rows.

        Parameters
        ----------
        estimator : estimator
            A fitted level-set model, or a pipeline that ends with one; volumes are measured in the features of the
            model itself.
        X : table (n, d)
        n_samples : int
            The number of Monte Carlo points.
        random_state : int, RandomState or None
        name : str
            Legend label; to compare two models, draw the second one into the same axes.
        drawing
            Options passed to :meth:`plot`, such as ``ax``.
        """
        given = asked(estimator, LEVEL_SETS, cls.__name__)
        curve = given.model.mass_volume_curve(given.inputs(X), n_samples=n_samples, random_state=random_state)
        return cls(curve, name).plot(**drawing)

    @classmethod
    def from_predictions(
        cls,
        score: Any,
        X: Any,
        *,
        n_samples: int = 10_000,
        random_state: Any = None,
        name: str = "score",
        **drawing: Any,
    ) -> Self:
        """Plot the curve of any score, such as that of another model.

        Parameters
        ----------
        score : callable
            Maps (n, d) to (n,); larger for points that are more normal.
        X : array (n, d)
        n_samples, random_state, name, drawing
            As in :meth:`from_estimator`.
        """
        curve = mass_volume_curve(score, X, n_samples=n_samples, random_state=random_state)
        return cls(curve, name).plot(**drawing)

    _title = "How small are the sets?"

    def _draw(self, axes: Any, look: Look) -> None:
        style = look.curve(len(axes.lines))
        mass, volume = np.append(0.0, self.curve.mass), np.append(0.0, self.curve.volume)
        axes.step(mass, volume, where="pre", linewidth=1.8, label=self.name, **style)
        axes.set(xlabel="fraction of the data in the set", ylabel="volume of the set")
        axes.set(xlim=(0.0, 1.0), ylim=(0.0, None))
        axes.legend(loc="upper left")
