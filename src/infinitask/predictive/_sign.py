"""The task at which a curve changes its sign."""

from __future__ import annotations

import numpy as np

from infinitask._array import HostArray

__all__ = ["sign_change"]


def sign_change(levels: HostArray, values: HostArray) -> HostArray:
    """θ* of curves that fall through zero, (n,): low + ∫ 1[h(x)(θ) ≥ 0] dθ over Θ = [low, high].

    For a curve that changes its sign once, from plus to minus, this is where; for one that does so several times it is
    where its rearrangement does. Between levels a curve is taken as linear.

    Parameters
    ----------
    levels : ndarray (k,)
        Ascending.
    values : ndarray (n, k)
        h(x)(θ) at the levels. For curves that rise through zero, pass −h.

    Examples
    --------
    >>> import numpy as np
    >>> sign_change(np.array([0.0, 0.5, 1.0]), np.array([[2.0, 1.0, -1.0], [1.0, 1.0, 1.0], [-1.0, -1.0, -2.0]]))
    array([0.75, 1.  , 0.  ])
    """
    start, end = values[:, :-1], values[:, 1:]
    top, bottom = np.maximum(start, end), np.minimum(start, end)
    # a piece from top to bottom is nonnegative on the share top/(top − bottom) of its length, cut to [0, 1]
    fall = top - bottom
    share = np.divide(top, fall, out=(top >= 0.0).astype(np.float64), where=fall > 0.0)
    return np.asarray(levels[0] + np.clip(share, 0.0, 1.0) @ np.diff(levels))
