"""What a user does with h(x)(·) after the fit: curves over θ are put in order and turned into answers.

* :class:`Rearrangement`: the curves in order, for every x and every pair of tasks.
* :class:`QuantileDistribution`: distributions from their quantile functions: cdf, density, moments, samples, scores.
* :class:`Levels`: every quantile with its coverage on rows left out, by a map of levels.
* :class:`ConformalCalibration`: intervals with a guaranteed coverage, from rows kept aside;
  :class:`CrossCalibration`: from rows that several fits leave out.
* :func:`sign_change`: the task at which the sign of h(x)(·) changes, which gives probabilities and p-values
  (:func:`change_next_to`, :func:`flip_probability`, :func:`flip_score`, :func:`on_side`).
* :func:`shares`: the probabilities of many classes, from their decisions at all costs (:func:`cost_points`,
  :func:`with_classes`, :func:`away_from_zero`); :class:`ShareScale` sets these decisions last.
* :class:`Beyond`: the order of points outside of every level set, or inside of every one.
* :class:`Confusion`: the two errors of a classifier at every θ, for :class:`ROCCurve`, :class:`CostCurve` and
  :class:`NetBenefitCurve`.
* :func:`choose_theta`: the cheapest θ, or one error below a bound and the other as small as possible; guaranteed by
  :func:`fixed_sequence`, which for nested decisions is the :func:`order_statistic` of Neyman–Pearson classification
  (:func:`allowed_errors`, :func:`smallest_sample`).
"""

from infinitask.calibration._class_probabilities import (
    ShareScale,
    away_from_zero,
    cost_points,
    shares,
    shares_in_parts,
    with_classes,
)
from infinitask.calibration._conformal import ConformalCalibration
from infinitask.calibration._cross_conformal import CrossCalibration
from infinitask.calibration._levels import Levels
from infinitask.calibration._rearrangement import Rearrangement
from infinitask.calibration._sign_change import change_next_to, flip_probability, flip_score, on_side, sign_change

from ._beyond import Beyond
from ._cost_curves import Confusion, CostCurve, NetBenefitCurve, ROCCurve, theta_from_costs
from ._distribution import QuantileDistribution
from ._neyman_pearson import allowed_errors, choose_theta, fixed_sequence, order_statistic, smallest_sample

__all__ = [
    "Beyond",
    "ConformalCalibration",
    "Confusion",
    "CostCurve",
    "CrossCalibration",
    "Levels",
    "NetBenefitCurve",
    "QuantileDistribution",
    "ROCCurve",
    "Rearrangement",
    "ShareScale",
    "allowed_errors",
    "away_from_zero",
    "change_next_to",
    "choose_theta",
    "cost_points",
    "fixed_sequence",
    "flip_probability",
    "flip_score",
    "on_side",
    "order_statistic",
    "shares",
    "shares_in_parts",
    "sign_change",
    "smallest_sample",
    "theta_from_costs",
    "with_classes",
]
