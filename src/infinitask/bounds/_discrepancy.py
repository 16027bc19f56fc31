"""How evenly nodes are spread, and how many of them are enough."""

from __future__ import annotations

import math
import sys
from bisect import bisect_left

import numpy as np

from infinitask._base.arrays import HostArray
from infinitask._base.validation import count, number


def star_discrepancy(u: HostArray, weights: HostArray) -> float:
    """D_m = sup_t |Σ_j w_j 1[u_j ≤ t] − t| = max_j max(W_j − u_j, u_j − W_(j−1)), W_j = w_1 + … + w_j, u ascending.

    For every f of bounded variation on [0, 1], |∫f − Σ w_j f(u_j)| ≤ V(f)·D_m (Koksma; for weights by the same
    integration by parts). Equal weights: max_j max(j/m − u_j, u_j − (j − 1)/m).

    Parameters
    ----------
    u : ndarray (m,)
        Points in [0, 1].
    weights : ndarray (m,)
        They sum to one.

    Examples
    --------
    >>> star_discrepancy(np.array([0.125, 0.375, 0.625, 0.875]), np.full(4, 0.25))
    0.125
    """
    order = np.argsort(u, kind="stable")
    u, mass = u[order], np.cumsum(weights[order])
    return float(max(np.max(np.abs(mass - u)), np.max(np.abs(u - np.append(0.0, mass[:-1])))))


def sequence_discrepancy(m: int) -> float:
    """log(m)/(3m log 2) + 1/m: a bound for the discrepancy of m points of van der Corput's sequence.

    Parameters
    ----------
    m : int

    Examples
    --------
    >>> round(sequence_discrepancy(100), 4)
    0.0321
    """
    return math.log(m) / (3.0 * m * math.log(2.0)) + 1.0 / m


def propose_nodes(n: int, *, statistical: float | None = None, variation: float = 1.0) -> int:
    """The smallest m with V·(log(m)/(3m log 2) + 1/m) ≤ the statistical term of n samples: more nodes do not pay.

    Without further arguments this is the trade-off of the paper, log(m)/m ~ 1/√n, so that m grows like √n log n. Pass
    the terms of a :class:`Bound` to use its constants. Where λ is small these propose few nodes, because the
    statistical term is then so large that the quadrature hardly matters to the bound.

    Parameters
    ----------
    n : int
        Samples.
    statistical : float or None
        The statistical term; None: 1/√n.
    variation : float
        V.

    Returns
    -------
    int

    Examples
    --------
    >>> [propose_nodes(n) for n in (100, 1_000, 10_000)]
    [26, 102, 387]
    >>> from infinitask.bounds import quantile_bound
    >>> bound = quantile_bound(1_000, 100, 1.0, y_bound=1.0)
    >>> propose_nodes(bound.n, statistical=bound.statistical, variation=bound.variation)
    45
    """
    n = count("n", n)
    target = 1.0 / math.sqrt(n) if statistical is None else number("statistical", statistical, low=0.0)
    target /= number("variation", variation, low=0.0)
    # the discrepancy falls with m, so the m that are enough come last
    return bisect_left(range(sys.maxsize), True, lo=1, key=lambda m: sequence_discrepancy(m) <= target)
