"""Metrics for predictions of a continuum of tasks, in the style of scikit-learn.

Functions have the signature ``(y_true, y_pred, …, sample_weight=None)``; predictions for q tasks are (n, q).
:func:`scorer` returns callables ``(estimator, X, y)`` for ``scoring=`` of scikit-learn's searches: greater is better,
so losses are negated.
"""

from infinitask.metrics._classification import integrated_cost, sensitivity_specificity
from infinitask.metrics._level_sets import mass_volume_area, mass_volume_curve, theta_property_deviation
from infinitask.metrics._quantile import (
    calibration_error,
    crossing_loss,
    crps,
    integrated_pinball_loss,
    interval_coverage,
    interval_score,
    mean_interval_width,
)
from infinitask.metrics._scorers import QuantileScorer as QuantileScorer  # saved files refer to it
from infinitask.metrics._scorers import scorer

__all__ = [
    "calibration_error",
    "crossing_loss",
    "crps",
    "integrated_cost",
    "integrated_pinball_loss",
    "interval_coverage",
    "interval_score",
    "mass_volume_area",
    "mass_volume_curve",
    "mean_interval_width",
    "scorer",
    "sensitivity_specificity",
    "theta_property_deviation",
]
