"""Measures on the tasks Θ, and the rules that replace an integral over Θ by a weighted sum.

    ∫ f(θ) dμ(θ)  ≈  Σ_j w_j f(θ_j),      θ_j = F⁻¹(u_j)

F⁻¹ is the inverse distribution function of μ, so each rule on the unit interval applies to every measure. The rule
supplies u_j and w_j, and the measure maps the points to Θ. Rules on a grid can also spread their nodes over Θ and weigh
them by the density (``density=True``), w_j ∝ w'_j f_μ(θ_j). In d dimensions F⁻¹ acts on each coordinate. There are few
nodes, and they stay on the host; estimators copy them to the device of the data.

Measures are in ``_spaces.py`` and ``_simplex.py``, rules and :class:`Quadrature` in ``_rules.py``.
"""

from infinitask.measures._rules import ClenshawCurtis as ClenshawCurtis
from infinitask.measures._rules import GaussLegendre, Quadrature, Rule, Sobol
from infinitask.measures._rules import Halton as Halton
from infinitask.measures._rules import MonteCarlo as MonteCarlo
from infinitask.measures._simplex import ClassCosts
from infinitask.measures._spaces import Beta, Discrete, Measure, ProductMeasure, TruncatedNormal, Uniform

__all__ = [
    "Beta",
    "ClassCosts",
    "Discrete",
    "GaussLegendre",
    "Measure",
    "ProductMeasure",
    "Quadrature",
    "Rule",
    "Sobol",
    "TruncatedNormal",
    "Uniform",
]
