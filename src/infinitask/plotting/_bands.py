"""How far a fraction of n rows deviates by chance."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from infinitask._base.arrays import HostArray
from infinitask._base.validation import count, fraction


def binomial_band(share: Any, n: int, confidence: float) -> tuple[HostArray, HostArray]:
    """Where the fraction of n rows lies with at least this probability, if each counts with probability ``share``.

    P(low ≤ K/n ≤ high) ≥ ``confidence`` for K binomial; at every share by itself, not for all of them together.

    Parameters
    ----------
    share : float or array (q,)
    n : int
    confidence : float in (0, 1)

    Examples
    --------
    >>> low, high = binomial_band(0.5, 100, 0.9)
    >>> float(low), float(high)
    (0.42, 0.58)
    """
    n, outside = count("n", n), 0.5 * (1.0 - fraction("confidence", confidence))
    share = np.asarray(share, dtype=np.float64)
    low, high = stats.binom.ppf(outside, n, share), stats.binom.ppf(1.0 - outside, n, share)
    return np.maximum(low, 0.0) / n, np.asarray(high / n)
