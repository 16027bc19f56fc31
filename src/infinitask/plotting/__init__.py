"""Plots of fitted models, in the style of scikit-learn's displays (extra "plot").

A display is made from a model, ``Display.from_estimator(model, X, …)``, or from given numbers,
``Display.from_predictions(…)``. It stores the plotted data, can be drawn again with ``plot(ax)``, and keeps its axes
and figure as ``ax_`` and ``figure_``. To show it, call ``matplotlib.pyplot.show``; to keep it, save ``figure_``.

======================================= ===========================================================================
quantiles
:class:`QuantileFanDisplay`             along one feature, an index or time
:class:`ConditionalQuantileDisplay`     quantile function and density at chosen rows
:class:`ReliabilityDisplay`             does a fraction θ of the rows lie below the quantile of level θ?
:class:`PITDisplay`                     are the predicted distributions right?
:class:`CrossingDisplay`                where do curves cross?
decisions
:class:`DecisionBoundaryDisplay`        boundaries at several costs of error, two features
:class:`ThetaROCDisplay`                every policy of one fit, the chosen one marked
:class:`ExpectedCostDisplay`            what decisions cost
:class:`NetBenefitDisplay`              what decisions are worth
level sets
:class:`LevelSetDisplay`                nested sets, two features
:class:`ThetaPropertyDisplay`           does a fraction ν of the rows lie outside the set of level ν?
:class:`MassVolumeDisplay`              how small are the sets?
all models
:class:`RelevanceDisplay`               which features matter?
:class:`ConvergenceDisplay`             how the duality gap closed
:class:`ContestDisplay`                 what a self-tuned model compared
======================================= ===========================================================================

Colours come from a :class:`Look`: :data:`LIGHT`, :data:`DARK`, or one that fits the axes and matplotlib's settings.
"""

from infinitask.plotting._conditional import ConditionalQuantileDisplay
from infinitask.plotting._curves import ExpectedCostDisplay, MassVolumeDisplay, NetBenefitDisplay, ThetaROCDisplay
from infinitask.plotting._fan import CrossingDisplay, QuantileFanDisplay
from infinitask.plotting._fits import ContestDisplay, ConvergenceDisplay, RelevanceDisplay
from infinitask.plotting._look import DARK as DARK
from infinitask.plotting._look import LIGHT as LIGHT
from infinitask.plotting._look import Look
from infinitask.plotting._planes import DecisionBoundaryDisplay, LevelSetDisplay
from infinitask.plotting._reliability import PITDisplay, ReliabilityDisplay, ThetaPropertyDisplay

__all__ = [
    "ConditionalQuantileDisplay",
    "ContestDisplay",
    "ConvergenceDisplay",
    "CrossingDisplay",
    "DecisionBoundaryDisplay",
    "ExpectedCostDisplay",
    "LevelSetDisplay",
    "Look",
    "MassVolumeDisplay",
    "NetBenefitDisplay",
    "PITDisplay",
    "QuantileFanDisplay",
    "RelevanceDisplay",
    "ReliabilityDisplay",
    "ThetaPropertyDisplay",
    "ThetaROCDisplay",
]
