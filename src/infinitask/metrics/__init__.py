"""How good predictions for a continuum of tasks are, as numbers in the style of scikit-learn.

Functions take ``(y_true, y_pred, …, sample_weight=None)``; predictions for q tasks are (n, q). Scorers are callables
``(estimator, X, y)`` for ``scoring=`` of scikit-learn's searches: greater is better, so losses are negated.

=========================== ========================================================= ==============================
scorer                      returns                                                   at the levels
=========================== ========================================================= ==============================
integrated_pinball_scorer   −(1/q) Σ_j Σ_i ω_i ρ_θj(y_i − q_ij)                       θ = 0.01, 0.02, …, 0.99
crossing_scorer             −Σ_j Σ_i ω_i (q_ij − q_i(j+1))₊                           θ = 0.01, 0.02, …, 0.99
crps_scorer                 −2 Σ_i ω_i ∫ ρ_θ(y_i − q_i(θ)) dθ                         θ = 0.01, 0.02, …, 0.99
calibration_scorer          −(1/q) Σ_j |Σ_i ω_i 1[y_i ≤ q_ij] − θ_j|                  θ = 0.01, 0.02, …, 0.99
coverage_scorer             −|Σ_i ω_i 1[q_i1 ≤ y_i ≤ q_i2] − 0.9|                     θ = 0.05, 0.95
cost_scorer                 −(1/q) Σ_j Σ_i ω_i c_θj(y_i) 1[ŷ_ij ≠ y_i]                θ = −0.98, −0.96, …, 0.98
theta_property_scorer       −max_j |Σ_i ω_i 1[x_i outside at ν_j] − ν_j|              ν = 0.01, 0.02, …, 0.99
mass_volume_scorer          −∫ λ(t_α) dα                                              masses α from 0.1 to 0.9
=========================== ========================================================= ==============================

ω_i are the sample weights divided by their sum, ρ_θ(r) = max(θ r, (θ − 1) r) the pinball loss, q_ij the quantile and
ŷ_ij the label predicted for x_i at θ_j, c_θ = (1 + θ)/2 for positives and (1 − θ)/2 for negatives, λ(t_α) the volume of
the smallest set {s ≥ t} of the score that holds a fraction α of the data. A model is scored at the levels inside its Θ,
and at the points of a discrete measure. ``QuantileScorer`` scores quantiles by any metric, at any levels. Other scorers
take other levels by ``dataclasses.replace(cost_scorer, theta=(-0.5, 0.5))``.
"""

from infinitask.metrics._classification import integrated_cost, sensitivity_specificity
from infinitask.metrics._level_sets import (
    mass_volume_area,
    mass_volume_curve,
    theta_property_deviation,
)
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
