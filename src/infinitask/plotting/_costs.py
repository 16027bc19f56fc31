"""What the decisions of a classifier cost, and what they are worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self, final

from infinitask.plotting._asked import DECISIONS, asked
from infinitask.plotting._canvas import Display
from infinitask.predictive import CostCurve, NetBenefitCurve


@dataclass(eq=False, repr=False)
class DecisionCurveDisplay(Display):
    """What both displays share: a curve that a classifier makes from rows with labels."""

    curve: Any
    _method: ClassVar[str]
    """The method of the classifier that makes the curve."""

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, sample_weight: Any = None, ax: Any = None, look: Any = None
    ) -> Self:
        """Draw the curve of a model on rows that it has not seen.

        Parameters
        ----------
        estimator : estimator
            A fitted classifier, alone or at the end of a pipeline.
        X : table (n, d)
        y : array (n,)
        sample_weight : array (n,) or None
        ax, look
            As in :meth:`plot`.
        """
        given = asked(estimator, DECISIONS, cls.__name__)
        return cls(getattr(given.model, cls._method)(given.inputs(X), y, sample_weight)).plot(ax, look=look)

    def plot(self, ax: Any = None, *, look: Any = None) -> Self:
        """Draw the curve; every display has its own."""
        raise NotImplementedError


@final
@dataclass(eq=False, repr=False)
class ExpectedCostDisplay(DecisionCurveDisplay):
    """What decisions cost for every true trade-off, beside the two policies that do not look at the features.

    Parameters
    ----------
    curve : CostCurve
        ``cost_curve(X, y)`` of a classifier.

    Attributes
    ----------
    ax_, figure_
        Where it was drawn last.

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

    def plot(self, ax: Any = None, *, look: Any = None) -> Self:
        """Draw the costs.

        Parameters
        ----------
        ax : matplotlib axes or None
            None: a figure of its own.
        look : {"light", "dark"}, Look or None
            None: what suits the axes, or the settings of matplotlib.
        """
        curve = self.curve
        with self._canvas(ax, look, "What the decisions cost") as (axes, look_):
            axes.fill_between(
                curve.theta,
                curve.cost,
                curve.best_constant,
                where=curve.cost <= curve.best_constant,
                color=look_.main,
                alpha=look_.veil,
                linewidth=0,
                label="saved by the model",
            )
            axes.plot(curve.theta, curve.cost_all_positive, "--", color=look_.ink, linewidth=1.2, label="alarm for all")
            axes.plot(curve.theta, curve.cost_all_negative, ":", color=look_.ink, linewidth=1.6, label="alarm for none")
            axes.plot(curve.theta, curve.cost, color=look_.main, linewidth=2.0, label="model")
            top = 1.25 * max(float(curve.best_constant.max()), float(curve.cost.max()))
            axes.set(xlim=(curve.theta[0], curve.theta[-1]), ylim=(0.0, top), ylabel="expected cost of a decision")
            axes.set_xlabel("trade-off (above 0 a missed positive costs more)")
            self._legend(axes)
        return self


@final
@dataclass(eq=False, repr=False)
class NetBenefitDisplay(DecisionCurveDisplay):
    """What decisions are worth to someone who acts from a given probability on: decision-curve analysis.

    Parameters
    ----------
    curve : NetBenefitCurve
        ``net_benefit_curve(X, y)`` of a classifier.

    Attributes
    ----------
    ax_, figure_
        Where it was drawn last.

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

    def plot(self, ax: Any = None, *, look: Any = None) -> Self:
        """Draw the net benefit.

        Parameters
        ----------
        ax : matplotlib axes or None
            None: a figure of its own.
        look : {"light", "dark"}, Look or None
            None: what suits the axes, or the settings of matplotlib.
        """
        curve = self.curve
        with self._canvas(ax, look, "What the decisions are worth") as (axes, look_):
            axes.plot(curve.threshold, curve.treat_all, "--", color=look_.ink, linewidth=1.2, label="act for all")
            axes.plot(curve.threshold, curve.treat_none, ":", color=look_.ink, linewidth=1.6, label="act for none")
            axes.plot(curve.threshold, curve.net_benefit, color=look_.main, linewidth=2.0, label="model")
            top = max(float(curve.net_benefit.max()), float(curve.treat_all.max()), 1e-3)
            # acting for all falls without a bound towards one; and so may a poor model
            axes.set(xlim=(0.0, 1.0), ylim=(-0.25 * top, 1.1 * top), ylabel="net benefit, in cases found per row")
            axes.set_xlabel("probability from which one acts")
            axes.legend(loc="best")
        return self
