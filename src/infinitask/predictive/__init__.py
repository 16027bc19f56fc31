"""Predictions from h(x)(·) after the fit: curves over θ are sorted and converted to predictions.

* :class:`QuantileDistribution`: distributions given by their quantile functions: cdf, density, moments, samples,
  scores.
* :class:`Confusion`: the two errors of a classifier at every θ, for :class:`ROCCurve`, :class:`CostCurve` and
  :class:`NetBenefitCurve`.
* :func:`theta_from_costs`: the θ of two costs.
* :func:`choose_theta`: the θ of least cost, or the θ that minimises one error while the other is bounded, on the given
  data or with a guarantee for new data (``_neyman_pearson.py``).

Sorted curves, calibrated levels and conformal intervals are in :mod:`infinitask.calibration`, as are probabilities
and p-values, which come from the task at which the sign of h(x)(·) changes. ``_beyond.py`` ranks points outside every
level set, or inside every one.
"""

from infinitask.calibration._levels import Levels as Levels  # the user guide creates one

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
