"""Metrics of level sets, for data without targets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from infinitask._base.arrays import HostArray
from infinitask._base.extras import display
from infinitask._base.validation import count, finite, levels_within, numbers, seed, shares


class MassVolumeCurve(NamedTuple):
    """Mass against volume of the level sets of a score; it unpacks as ``mass, volume, thresholds``.

    Parameters
    ----------
    mass : ndarray (k,)
        P(s(X) ≥ t), ascending.
    volume : ndarray (k,)
        Leb{x: s(x) ≥ t}, ascending.
    thresholds : ndarray (k,)
        t, descending.

    Examples
    --------
    >>> import numpy as np
    >>> curve = MassVolumeCurve(np.array([0.5, 1.0]), np.array([1.0, 4.0]), np.array([0.0, -1.0]))
    >>> curve
    MassVolumeCurve(2 sets, volume up to 4)
    >>> mass, volume, thresholds = curve
    """

    mass: HostArray
    volume: HostArray
    thresholds: HostArray

    def __repr__(self) -> str:
        return f"MassVolumeCurve({self.mass.size} sets, volume up to {self.volume[-1]:.4g})"

    def plot(self, ax: Any = None, *, name: str = "model", look: Any = None) -> Any:
        """Plot the curve; return a :class:`~infinitask.plotting.MassVolumeDisplay` (extra "plot").

        Parameters
        ----------
        ax : matplotlib axes or None
            None: a new figure.
        name : str
            The name in the legend.
        look : {"light", "dark"}, Look or None
        """
        return display("MassVolumeDisplay")(self, name).plot(ax, look=look)


def theta_property_deviation(nu: Any, inside: Any, sample_weight: Any = None) -> float:
    """Compute max_j |Σ_i ω_i 1[x_i outside at ν_j] − ν_j|, the largest error of the fractions outside.

    Parameters
    ----------
    nu : float or array (q,)
        The nominal fractions.
    inside : array (n, q), or (n,) for one fraction
        Booleans, or the +1 and −1 of ``predict``.
    sample_weight : array (n,) or None

    Returns
    -------
    float

    Examples
    --------
    >>> theta_property_deviation([0.25, 0.5], [[1, 1], [1, 1], [1, -1], [1, -1]])
    0.25
    """
    levels = levels_within("nu", nu, 0.0, 1.0)
    said = numbers("inside", inside)
    if np.any(np.isnan(said)):
        raise ValueError("inside contains NaN; give booleans, or +1 inside and −1 outside.")
    said = (said > 0.0).reshape(said.shape[0], -1) if said.size and said.ndim else said
    if said.ndim != 2 or said.shape[0] == 0 or said.shape[1] != levels.size:
        raise ValueError(
            f"inside of shape {np.shape(inside)} was given for {levels.size} fractions; it must be (n, {levels.size})."
        )
    return float(np.max(np.abs(shares(sample_weight, said.shape[0]) @ ~said - levels)))


def mass_volume_curve(
    score: Callable[[HostArray], Any],
    X: Any,
    *,
    n_samples: int = 10_000,
    box: Any = None,
    random_state: Any = None,
    sample_weight: Any = None,
) -> MassVolumeCurve:
    """Compute the mass α(t) = P(s(X) ≥ t) and the volume λ(t) = Leb{x: s(x) ≥ t} of the level sets of a score.

    No set of mass α is smaller than the level set of the density, so a lower curve indicates a better score. Only the
    order of the scores matters (Clémençon and Thomas, 2018). The mass is that of the data; the volume is estimated by
    Monte Carlo in a box.

    Parameters
    ----------
    score : callable
        s, from (n, d) to (n,); larger for more normal points, such as ``model.score_samples``.
    X : array (n, d)
        The data, preferably held-out rows.
    n_samples : int
        The number of Monte Carlo points. The relative error of the volume is about (n_samples · fraction of the
        box)^(−1/2): in many dimensions no number of points suffices.
    box : (low, high) or None
        The corners of the box, (d,) each; None: the bounding box of X.
    random_state : int, RandomState or None
    sample_weight : array (n,) or None

    Returns
    -------
    MassVolumeCurve
        ``mass``, ``volume`` and ``thresholds``, (k,) each, one entry per distinct score of the data; mass and volume
        are ascending, thresholds are descending.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((5000, 2))
    >>> mass, volume, _ = mass_volume_curve(lambda Z: -np.sum(Z**2, axis=1), X, random_state=0)
    >>> half = volume[np.searchsorted(mass, 0.5)]
    >>> bool(abs(half - 2 * np.pi * np.log(2)) < 0.2)  # the disc that holds half of a normal distribution
    True
    """
    X = finite("X", X, 2)
    low, high = _box(X, box)
    if not callable(score):
        raise TypeError(f"score={score!r} was given; it must be a function of (n, d), such as model.score_samples.")
    uniform = check_random_state(seed("random_state", random_state)).uniform(
        size=(count("n_samples", n_samples), X.shape[1])
    )
    background = np.sort(_scores(score, low + uniform * (high - low)))
    scores = _scores(score, X)
    thresholds, place = np.unique(-scores, return_inverse=True)
    mass = np.cumsum(np.bincount(place, weights=shares(sample_weight, X.shape[0])))
    in_box = 1.0 - np.searchsorted(background, -thresholds, side="left") / background.size
    return MassVolumeCurve(np.minimum(mass, 1.0), in_box * float(np.prod(high - low)), -thresholds)


def mass_volume_area(
    score: Callable[[HostArray], Any],
    X: Any,
    *,
    masses: tuple[float, float] = (0.1, 0.9),
    n_samples: int = 10_000,
    box: Any = None,
    random_state: Any = None,
    sample_weight: Any = None,
) -> float:
    """Compute ∫ λ(t_α) dα over a range of masses, with t_α the largest t for which P(s(X) ≥ t) ≥ α.

    Smaller is better. It compares scores without labels (Goix, 2016). Use the same data, box and ``random_state`` for
    all scores.

    Parameters
    ----------
    score, X, n_samples, box, random_state, sample_weight
        See :func:`mass_volume_curve`.
    masses : (float, float)
        The range of α, inside [0, 1]. Exclude masses that a score does not resolve: a score that ends at a fraction
        ε is uninformative beyond 1 − ε.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((500, 2))
    >>> good = mass_volume_area(lambda Z: -np.sum(Z**2, axis=1), X, random_state=0)
    >>> bad = mass_volume_area(lambda Z: Z[:, 0], X, random_state=0)
    >>> good < bad
    True
    """
    ends = levels_within("masses", masses, 0.0, 1.0)
    if ends.size != 2 or not ends[0] < ends[1]:
        raise ValueError(f"masses={masses!r} was given; it must be (low, high) with low below high.")
    mass, volume, _ = mass_volume_curve(
        score, X, n_samples=n_samples, box=box, random_state=random_state, sample_weight=sample_weight
    )
    # the curve is a step function of α: volume k applies to the masses between k − 1 and k; rounding may shorten the
    # last interval
    steps = np.clip(np.append(0.0, np.append(mass[:-1], 1.0)), *ends)
    return float(volume @ np.diff(steps))


def _scores(score: Callable[[HostArray], Any], X: HostArray) -> HostArray:
    found = finite("score(X)", score(X), 1)
    if found.shape != X.shape[:1]:
        raise ValueError(f"score returned shape {found.shape} for {X.shape[0]} points; it must return one number each.")
    return found


def _box(X: HostArray, box: Any) -> tuple[HostArray, HostArray]:
    if box is None:
        return np.min(X, axis=0), np.max(X, axis=0)
    corners = finite("box", box, 2)
    if corners.shape != (2, X.shape[1]) or np.any(corners[0] > corners[1]):
        raise ValueError(
            f"box={box!r} was given; it must be the corners (low, high) with {X.shape[1]} coordinates each."
        )
    return corners[0], corners[1]
