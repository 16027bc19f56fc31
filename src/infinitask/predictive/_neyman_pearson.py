"""Neyman–Pearson classification: minimise one error while the other is bounded, on given data or for new data."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from infinitask._base.arrays import HostArray
from infinitask._base.validation import fraction
from infinitask.predictive._cost_curves import Confusion


def allowed_errors(n: int, bound: float, confidence: float) -> int:
    """Return max{k : P[Bin(n, α) ≤ k] ≤ δ}, or −1: at most k errors in n samples show that the rate is at most α.

    If the rate were above α, a sample would have at most k errors with probability at most δ.

    Parameters
    ----------
    n : int
    bound : float in (0, 1)
        α.
    confidence : float in (0, 1)
        1 − δ.

    Examples
    --------
    >>> allowed_errors(100, bound=0.05, confidence=0.95), allowed_errors(50, bound=0.05, confidence=0.95)
    (1, -1)
    """
    # a tail equal to δ is accepted, although 1 − confidence has a rounding error
    level = (1.0 - confidence) * (1.0 + 1e-12)
    return int(np.searchsorted(stats.binom.cdf(np.arange(n), n, bound), level, side="right")) - 1


def smallest_sample(bound: float, confidence: float) -> int:
    """Return ⌈log δ / log(1 − α)⌉; with fewer samples, even zero errors do not show that the rate is at most α.

    Examples
    --------
    >>> smallest_sample(bound=0.05, confidence=0.95)
    59
    """
    return math.ceil(math.log(1.0 - confidence) / math.log1p(-bound) * (1.0 - 1e-12))


def fixed_sequence(errors: HostArray, n: int, bound: float, confidence: float) -> int:
    """Return how many policies, from the first on, have error rates at most α, all with probability 1 − δ.

    The order of the policies is fixed before sampling, the most cautious first. Each is tested at level δ,
    and the first failure stops the procedure. Only the first policy whose true rate is above α can cause a false
    result, and it passes with probability at most δ. The policies are arbitrary. If they are nested (the errors
    increase along the order), the procedure stops at the threshold of Neyman–Pearson classification (Tong, Feng and Li,
    2018), the k*-th of n ordered scores of the class with k* = n − ``allowed_errors(n, bound, confidence)``.

    Parameters
    ----------
    errors : ndarray (k,)
        The errors of each policy on the same n samples.
    n : int
    bound : float in (0, 1)
        α.
    confidence : float in (0, 1)
        1 − δ.

    Examples
    --------
    >>> import numpy as np
    >>> fixed_sequence(np.array([0, 0, 1, 3, 1]), n=100, bound=0.05, confidence=0.95)
    3
    """
    failed = errors > allowed_errors(n, bound, confidence)
    return int(np.argmax(failed)) if np.any(failed) else errors.size


def choose_theta(
    counts: Confusion,
    *,
    min_sensitivity: float | None = None,
    max_fpr: float | None = None,
    fn_cost: float | None = None,
    fp_cost: float | None = None,
    confidence: float | None = None,
) -> float:
    """argmin FN(θ) with FP(θ)/negatives ≤ ``max_fpr``; or argmin FP(θ) with 1 − FN(θ)/positives ≥ ``min_sensitivity``;
    or argmin fn_cost·FN(θ) + fp_cost·FP(θ).

    With a confidence, the bound holds for new data. In this case :func:`fixed_sequence` starts at the end of Θ where
    this error is rarest, and the choice is among all θ that passed.

    Parameters
    ----------
    counts : Confusion
        The counts, without weights if ``confidence`` is given.
    min_sensitivity, max_fpr : float in [0, 1] or None
    fn_cost, fp_cost : float or None
        Pass exactly one of three: ``max_fpr``, ``min_sensitivity``, or both costs.
    confidence : float in (0, 1) or None
        1 − δ, for a bound on one error.

    Examples
    --------
    >>> import numpy as np
    >>> theta = np.array([-0.5, 0.0, 0.5])
    >>> counts = Confusion(theta, np.array([60.0, 9.0, 1.0]), np.array([0.0, 1.0, 30.0]), positives=90, negatives=100)
    >>> choose_theta(counts, max_fpr=0.05), choose_theta(counts, max_fpr=0.02, confidence=0.85)
    (0.0, -0.5)
    >>> choose_theta(counts, min_sensitivity=0.95), choose_theta(counts, fn_cost=1.0, fp_cost=1.0)
    (0.5, 0.0)
    """
    if not isinstance(counts, Confusion):
        raise TypeError(f"counts={counts!r} was given; it must be a Confusion, which Confusion.count makes.")
    costs = fn_cost is not None or fp_cost is not None
    if (max_fpr is not None) + (min_sensitivity is not None) + costs != 1 or (fn_cost is None) != (fp_cost is None):
        raise ValueError(
            f"max_fpr={max_fpr}, min_sensitivity={min_sensitivity}, fn_cost={fn_cost}, fp_cost={fp_cost} were given; "
            "give exactly one wish: max_fpr, or min_sensitivity, or both costs."
        )
    if fn_cost is not None and fp_cost is not None:
        if confidence is not None:
            raise ValueError(
                f"confidence={confidence} was given together with costs; it guards a bound: max_fpr or min_sensitivity."
            )
        return counts.cheapest(fn_cost, fp_cost)
    name, given = ("max_fpr", max_fpr) if min_sensitivity is None else ("min_sensitivity", min_sensitivity)
    if confidence is None:
        given = fraction(name, given, open_low=False, open_high=False)
    else:
        hint = "For a guarantee it lies strictly between them."
        given, confidence = fraction(name, given, hint=hint), fraction("confidence", confidence, hint=hint)
    return _bounded(counts, name, given, confidence)


def _bounded(counts: Confusion, name: str, given: float, confidence: float | None) -> float:
    """Return the θ with one error below its bound and the other as small as possible."""
    if name == "max_fpr":
        held, other, n, bound = counts.false_alarms, counts.missed, counts.negatives, given
        rows, errors, end, order = "negatives", "false alarms", -1.0, slice(None)
    else:
        held, other, n, bound = counts.missed, counts.false_alarms, counts.positives, 1.0 - given
        rows, errors, end, order = "positives", "misses", 1.0, slice(None, None, -1)
    wish = f"{name}={given:g}"
    if n == 0:
        raise ValueError(f"y holds no {rows}; {wish} cannot be checked without them.")
    # from the end of Θ where the bounded error is rarest
    theta, held, other = counts.theta[order], held[order], other[order]
    if confidence is None:
        allowed = bound * n * (1.0 + 1e-12)
        passed = np.flatnonzero(held <= allowed)
        reason = f"the fewest {errors} are {held.min():g} of {n:g} {rows}, at θ = {theta[np.argmin(held)]:g}"
    else:
        passed = np.arange(fixed_sequence(held, int(n), bound, confidence))
        allowed = allowed_errors(int(n), bound, confidence)
        if allowed < 0:
            needed = smallest_sample(bound, confidence)
            raise ValueError(
                f"{wish} with confidence={confidence:g} needs at least {needed} {rows}, and y holds {n:g}; give more "
                "held-out data, a weaker bound or less confidence."
            )
        reason = (
            f"at θ = {theta[0]:g}, the most cautious, there are {held[0]:g} {errors} among {n:g} {rows}, and "
            f"{allowed:g} are allowed for confidence={confidence:g}"
        )
    if passed.size == 0:
        advice = "Weaken the bound, or fit on more data or with a larger alpha."
        if theta[0] != end:
            low, high = counts.theta[[0, -1]]
            advice += (
                f" The model was trained on Θ = [{low:g}, {high:g}], which may be the limit: fit with a measure that "
                f"reaches to {end:g}."
            )
        raise ValueError(f"No θ reaches {wish}: {reason}. {advice}")
    best = passed[other[passed] == other[passed].min()]
    if confidence is not None:
        return float(theta[best[-1]])  # the least cautious
    return float(theta[best[np.argmin(held[best])]])
