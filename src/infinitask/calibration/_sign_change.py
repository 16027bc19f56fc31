"""The task at which a curve changes sign, and the resulting probability."""

from __future__ import annotations

import numpy as np

from infinitask._base.arrays import HostArray


def sign_change(levels: HostArray, values: HostArray) -> HostArray:
    """θ* of curves that fall through zero, (n,): low + ∫ 1[h(x)(θ) ≥ 0] dθ over Θ = [low, high].

    A curve that changes sign once, from plus to minus, does so at θ*. With several changes, its rearrangement does.
    Curves are interpolated linearly between levels.

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
    # a piece from top to bottom is nonnegative on the fraction top/(top − bottom) of its length, clipped to [0, 1]
    fall = top - bottom
    fraction = np.divide(top, fall, out=(top >= 0.0).astype(np.float64), where=fall > 0.0)
    return np.asarray(levels[0] + np.clip(fraction, 0.0, 1.0) @ np.diff(levels))


def flip_score(levels: HostArray, values: HostArray) -> HostArray:
    """s(x) = −θ*(x) + max(min_θ h(x)(θ), 0) + min(max_θ h(x)(θ), 0), (n,), where h(x)(·) rises through zero at θ*(x).

    The earlier a decision flips, the higher the score. If it never does, θ* is an end of Θ, and the distance of h from
    zero determines the order.

    Parameters
    ----------
    levels : ndarray (k,)
        Ascending.
    values : ndarray (n, k)
        h(x)(θ) at the levels.

    Examples
    --------
    >>> import numpy as np
    >>> flip_score(np.array([-1.0, 0.0, 1.0]), np.array([[-1.0, 1.0, 3.0], [0.5, 1.0, 2.0], [-3.0, -2.0, -1.0]]))
    array([ 0.5,  1.5, -2. ])
    """
    # sign_change counts zeros as nonnegative, which here means the negative class: predict is positive where h > 0
    beyond = np.maximum(values.min(axis=1), 0.0) + np.minimum(values.max(axis=1), 0.0)
    return np.asarray(beyond - sign_change(levels, -values))


def flip_probability(levels: HostArray, values: HostArray, n_samples: float) -> HostArray:
    """p(x) = (1 − θ*(x))/2, (n,), where h(x)(·) rises through zero at θ*(x).

    At a trade-off θ the errors cost (1 + θ)/2 and (1 − θ)/2, and the positive class is the cheaper decision if and only
    if its probability is above (1 − θ)/2. Hence the θ at which the decision flips gives the probability (Wang, Shen and
    Liu, 2008, with a grid of separate machines).

    Parameters
    ----------
    levels : ndarray (k,)
        Ascending, in [−1, 1].
    values : ndarray (n, k)
        h(x)(θ) at the levels.
    n_samples : float
        p is at least 1/(n_samples + 2) away from 0 and 1: n samples contain no information on rarer events.

    Examples
    --------
    >>> import numpy as np
    >>> levels = np.array([-1.0, 0.0, 1.0])
    >>> curves = np.array([[-1.0, 1.0, 3.0], [-3.0, -1.0, 1.0], [-3.0, -2.0, -1.0]])
    >>> flip_probability(levels, curves, n_samples=98)
    array([0.75, 0.25, 0.01])
    """
    least = 1.0 / (n_samples + 2.0)
    return np.asarray(np.clip(0.5 - 0.5 * sign_change(levels, -values), least, 1.0 - least))


def on_side(score: HostArray, positive: HostArray, centre: float) -> HostArray:
    """The nearest values with score > centre if and only if ``positive``, (n,).

    A curve that changes its sign several times may be positive at a task although its θ* says otherwise.

    Examples
    --------
    >>> import numpy as np
    >>> on_side(np.array([0.3, -0.1]), np.array([False, True]), centre=0.0) > 0.0
    array([False,  True])
    """
    return np.where(positive, np.maximum(score, np.nextafter(centre, np.inf)), np.minimum(score, centre))


def change_next_to(nu: float, levels: HostArray, values: HostArray) -> tuple[HostArray, HostArray, HostArray]:
    """The task next to ``nu``, one of the levels, at which curves (n, k) change sign: (n,), at least ν if inside there.

    Also returns whether each curve is negative at all levels up to ν, and whether at no level from ν on.

    Parameters
    ----------
    nu : float
    levels : ndarray (k,)
        Ascending.
    values : ndarray (n, k)

    Examples
    --------
    >>> import numpy as np
    >>> curves = np.array([[1.0, 1.0, -1.0], [-1.0, -2.0, -3.0], [3.0, 2.0, 1.0]])
    >>> change_next_to(0.5, np.array([0.0, 0.5, 1.0]), curves)
    (array([0.75, 0.  , 1.  ]), array([False,  True, False]), array([False, False,  True]))
    """
    at = int(np.flatnonzero(levels == nu)[0])
    inside = values >= 0.0
    onwards, back = slice(at, None), slice(at, None, -1)
    leaves = _first_change(levels[onwards], values[:, onwards], inside[:, onwards])
    enters = _first_change(levels[back], values[:, back], ~inside[:, back])
    # rounding must not move the root across nu
    below = np.nextafter(nu, -np.inf)
    found = np.where(inside[:, at], np.maximum(leaves, nu), np.minimum(enters, below))
    return found, np.asarray(~inside[:, back].any(axis=1)), np.asarray(inside[:, onwards].all(axis=1))


def _first_change(levels: HostArray, values: HostArray, before: HostArray) -> HostArray:
    """The task at which curves (n, k) first leave their side ``before``, by linear interpolation: (n,).

    The last level for a curve that never leaves it.
    """
    if levels.size == 1:
        return np.full(values.shape[0], levels[0])
    k, rows = np.maximum(before.argmin(axis=1), 1), np.arange(values.shape[0])
    v0, v1 = values[rows, k - 1], values[rows, k]
    fraction = np.clip(np.divide(v0, v0 - v1, out=np.zeros_like(v0), where=v0 != v1), 0.0, 1.0)
    found = levels[k - 1] + fraction * (levels[k] - levels[k - 1])
    return np.asarray(np.where(before.all(axis=1), levels[-1], found))
