"""What a user does with h(x)(·) after the fit: curves over θ are put in order and turned into predictions.

* :class:`Rearrangement`: the curves in order, for every x and every pair of tasks.
* :class:`QuantileDistribution`: distributions from their quantile functions: cdf, density, moments, samples, scores.
* :class:`Levels`: every quantile with its coverage on held-out rows, by a map of levels.
* :class:`ConformalCalibration`: intervals with a guaranteed coverage, from held-out rows;
  :class:`CrossCalibration`: from the out-of-fold predictions of several fits.
* :class:`Confusion`: the two errors of a classifier at every θ, for :class:`ROCCurve`, :class:`CostCurve` and
  :class:`NetBenefitCurve`.
* :func:`theta_from_costs`: the θ of two costs.
* :func:`choose_theta`: the cheapest θ, or one error below a bound and the other as small as possible, on the given data
  or with a guarantee for new data (``_neyman_pearson.py``).

Probabilities and p-values come from the task at which the sign of h(x)(·) changes
(``calibration/_sign_change.py``), and the order of points outside every level set, or inside every one, from
``_beyond.py``.
"""

from infinitask.calibration import ConformalCalibration, CrossCalibration, Levels, Rearrangement

from ._cost_curves import Confusion, CostCurve, NetBenefitCurve, ROCCurve, theta_from_costs
from ._distribution import QuantileDistribution
from ._neyman_pearson import choose_theta

__all__ = [
    "ConformalCalibration",
    "Confusion",
    "CostCurve",
    "CrossCalibration",
    "Levels",
    "NetBenefitCurve",
    "QuantileDistribution",
    "ROCCurve",
    "Rearrangement",
    "choose_theta",
    "theta_from_costs",
]
