"""What a user does with h(x)(·) after the fit: curves over θ are put in order and turned into predictions.

* :class:`QuantileDistribution`: distributions from their quantile functions: cdf, density, moments, samples, scores.
* :class:`Confusion`: the two errors of a classifier at every θ, for :class:`ROCCurve`, :class:`CostCurve` and
  :class:`NetBenefitCurve`.
* :func:`theta_from_costs`: the θ of two costs.
* :func:`choose_theta`: the cheapest θ, or one error below a bound and the other as small as possible, on the given data
  or with a guarantee for new data (``_neyman_pearson.py``).

Sorted curves, calibrated levels and conformal intervals are in :mod:`infinitask.calibration`, and so are probabilities
and p-values, which come from the task at which the sign of h(x)(·) changes. ``_beyond.py`` orders points outside every
level set, or inside every one.
"""

from infinitask.calibration._levels import Levels as Levels  # the guide makes one

from ._cost_curves import Confusion, CostCurve, NetBenefitCurve, ROCCurve, theta_from_costs
from ._distribution import QuantileDistribution
from ._neyman_pearson import choose_theta

__all__ = [
    "Confusion",
    "CostCurve",
    "NetBenefitCurve",
    "QuantileDistribution",
    "ROCCurve",
    "choose_theta",
    "theta_from_costs",
]
