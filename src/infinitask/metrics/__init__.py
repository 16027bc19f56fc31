"""How good the answers for a continuum of tasks are, as numbers in the style of scikit-learn.

Functions take ``(y_true, y_pred, …, sample_weight=None)``; predictions for q tasks are (n, q). Scorers are callables
``(estimator, X, y)`` for ``scoring=`` of scikit-learn's searches: greater is better, so losses are negated.
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
from infinitask.metrics._scorers import (
    CostScorer,
    LevelSetScorer,
    MassVolumeScorer,
    QuantileScorer,
    calibration_scorer,
    cost_scorer,
    coverage_scorer,
    crossing_scorer,
    crps_scorer,
    integrated_pinball_scorer,
    mass_volume_scorer,
    theta_property_scorer,
)

__all__ = [
    "CostScorer",
    "LevelSetScorer",
    "MassVolumeScorer",
    "QuantileScorer",
    "calibration_error",
    "calibration_scorer",
    "cost_scorer",
    "coverage_scorer",
    "crossing_loss",
    "crossing_scorer",
    "crps",
    "crps_scorer",
    "integrated_cost",
    "integrated_pinball_loss",
    "integrated_pinball_scorer",
    "interval_coverage",
    "interval_score",
    "mass_volume_area",
    "mass_volume_curve",
    "mass_volume_scorer",
    "mean_interval_width",
    "sensitivity_specificity",
    "theta_property_deviation",
    "theta_property_scorer",
]
