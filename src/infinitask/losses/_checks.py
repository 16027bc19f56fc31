"""Checks of a custom loss: its row of the table, or its convexity, slope and units at samples of θ, y and h.

A check raises an error if no fit is possible. It returns a :class:`Finding` if a fit is possible, but slow or without a
certificate.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from infinitask._base.arrays import Array, HostArray, as_like, host_double, namespace, to_host
from infinitask.losses._base import FINEST, BoxLoss, Loss, Row, as_entry

if TYPE_CHECKING:
    from infinitask.losses._convex import ConvexLoss

ENDS = ("low", "soft_low"), ("high", "soft_high")
"""The ends of the interval of slopes, with the softness on the same side."""

MAX_STEPS = 60
"""The maximum number of steps of a search that doubles or narrows an interval, with one evaluation of the loss each."""

CHECKED = 40
"""The number of values of θ, and of y, at which a loss is tested."""

CHECKED_OFFSETS = (1e-3, 1e-2, 0.1, 0.4, 1.0, 3.0, 10.0)
"""The distances from y at which a loss is tested, in units of the spread of y."""

CHECKED_VALUES = (-3.0, -1.0, -0.1, 0.1, 1.0, 3.0)
"""Further values of h at which a loss is tested."""

SINGLE_SHARE = 0.1
"""The tolerance for a tangent above the loss, as a fraction of the square root of a rounding error."""

NOISE = 1e3
"""The tolerated error of a sum, as a number of rounding errors of its terms."""


class Finding(NamedTuple):
    """A problem of a loss that can still be fitted."""

    sentence: str
    """The problem, and what to do."""
    certified: bool
    """Whether a duality gap is still valid."""
    endless: bool = False
    """Whether the loss has no minimiser without a ridge."""

    @classmethod
    def of(cls, findings: list[Finding | None]) -> Finding | None:
        """Return all of several problems as one; a duality gap is valid if it is for each."""
        found = list(dict.fromkeys(one for one in findings if one is not None))
        if len(found) < 2:
            return found[0] if found else None
        return cls(" ".join(one.sentence for one in found), all(one.certified for one in found))


# --------------------------------------------------------------------------------------------------------- rows
def check_row(loss: BoxLoss, theta: Array, y: Array | None) -> Finding | None:
    """Check that entries broadcast, the interval contains 0, nothing is negative, and the loss is finite.

    Return a finding if the loss has a kink but claims to be smooth.
    """
    name, row = type(loss).__name__, loss.row(theta, y)
    if not isinstance(row, Row):
        raise TypeError(f"{name}.row returned {_named(row)}; it must return a Row, such as Row(theta - 1.0, theta).")
    # without targets n is unknown to a row
    xp, m, n = namespace(theta), theta.shape[0], 1 if y is None else y.shape[0]
    entries: dict[str, Any] = row._asdict()
    for entry_name, entry in entries.items():
        if entry is None:
            continue
        if not isinstance(entry, (int, float)) and not hasattr(entry, "shape"):
            raise TypeError(
                f"{name}.row gave a {entry_name} of type {type(entry).__name__}; it must be a number, an array of the "
                "library of theta, or None."
            )
        shape = tuple(getattr(entry, "shape", ()))
        if any(size not in (1, full) for size, full in zip(shape[::-1], (m, n), strict=False)) or len(shape) > 2:
            of_sample = "" if y is None else f", ({n}, 1) for one value per sample, or ({n}, {m})"
            raise ValueError(
                f"{name}.row gave a {entry_name} of shape {shape} for {m} tasks"
                f"{'' if y is None else f' and {n} samples'}; expected a number, ({m},) for one value per task"
                f"{of_sample}."
            )
        sign, values = -1.0 if entry_name == "low" else 1.0, as_entry(entry, theta)
        if bool(xp.any(xp.isnan(values))):
            raise ValueError(
                f"{name}.row gave a {entry_name} that is NaN somewhere; it must be a number at every θ and y. Look for "
                "a division by 0, or for θ outside the domain of the loss."
            )
        if not bool(xp.all(sign * values >= 0.0)):
            raise ValueError(
                f"{name}.row gave a {entry_name} that is {'above' if sign < 0 else 'below'} 0 somewhere; the interval "
                "of slopes must contain 0 (low ≤ 0 ≤ high), dead zone and softness be at least 0."
            )
    for end, soft in ENDS:
        if bool(xp.any((_length(entries[end], theta) == math.inf) & (as_entry(entries[soft], theta) == 0.0))):
            raise ValueError(
                f"{name}.row gave no finite {end} and no {soft}; the loss is then infinite wherever y and h differ. "
                f"Give a finite {end}, or a {soft} above 0."
            )
    for end, soft in ENDS if loss.smooth(FINEST) else ():
        if bool(xp.any((_length(entries[end], theta) > 0.0) & (as_entry(entries[soft], theta) == 0.0))):
            return _kinked(name, f"its row has a slope without softness ({soft} is 0), which is a kink")
    return None


def _length(end: Any, like: Array) -> Array:
    """Return the distance from 0 to an end of the interval of slopes; None is ∞."""
    return as_entry(math.inf if end is None else abs(as_entry(end, like)), like)


def _named(value: Any) -> str:
    """Describe in words what a method returned instead of an array."""
    return "None" if value is None else f"a {type(value).__name__}"


def _kinked(name: str, found: str) -> Finding:
    """Return the finding that a loss has a kink but claims to have none."""
    return Finding(
        f"{name} says that it needs no smoothing, but {found}; a solver that trusts it gets stuck there. Leave out "
        "`smooth_scale`, or the method `smooth`: the kink is then smoothed at first, and not at the end.",
        certified=True,
    )


# --------------------------------------------------------------------------------------------- value and slope
def _check_array(method: str, found: Any, h: Array, theta: Array, y: Array | None, *, finite: bool = True) -> None:
    """Check that a method returned an array with the shape of h, without NaN, and finite at h = 0.

    ``finite``: whether to check the values.
    """
    if not hasattr(found, "shape") and not isinstance(found, (int, float)):
        raise TypeError(
            f"{method} returned {_named(found)}; it must return an array of the shape of h, here {tuple(h.shape)}, and "
            "of the library of h."
        )
    shape = tuple(getattr(found, "shape", ()))
    if shape != tuple(h.shape):
        raise ValueError(
            f"{method} returned {'an array' if hasattr(found, 'shape') else 'a number, an array'} of shape {shape} for "
            f"θ of shape {tuple(theta.shape)}, y of shape {None if y is None else tuple(y.shape)} and h of shape "
            f"{tuple(h.shape)}; it must have the shape of h."
        )
    if not finite:
        return
    numbers, at = to_host(found), to_host(h)
    wrong = np.isnan(numbers) | (~np.isfinite(numbers) & (at == 0.0))
    if np.any(wrong):
        k = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
        raise ValueError(
            f"{method} returned {numbers[k]} at {_where(theta, y, k)}, h = {at[k]:.4g}; it must be a finite number. "
            "Write the loss so that it does not overflow there, or rescale y."
        )


def check_convex(loss: ConvexLoss, theta: Array, y: Array | None, near: Array | None = None) -> Finding | None:
    """Return a finding if a tangent is above the loss, or the slope jumps although the loss claims to be smooth.

    Raise an error if shapes or values are wrong, or the loss has no minimum.

    Parameters
    ----------
    loss : ConvexLoss
    theta : array (m,) or (m, d)
    y : array (n, 1) or (n, m), or None
    near : array (n, 1) or (n, m), or None
        Of a loss without targets, the values of h around which it is checked, beside those around 0.
    """
    name = type(loss).__name__
    theta, near = _some(theta, y if near is None else near)
    y = None if y is None else near
    points = _points(theta, near)
    at = [as_like(h, theta) for h in points]
    with np.errstate(all="ignore"):  # far from y a loss may overflow
        seen = [loss._value_and_slope(theta, y, h) for h in at]
        for method, index in (("value", 0), ("slope", 1)):
            for h, pair in zip(at, seen, strict=True):
                _check_array(f"{name}.{method}", pair[index], h, theta, y)
        P, V, S = (np.stack([host_double(a) for a in part]) for part in (at, *zip(*seen, strict=True)))
        eps = _rounding(theta, *seen[0])
        endless = _endless(name, P, V, NOISE * eps, theta, y)
        # h = 0 reveals the size of the terms, which may cancel close to y
        size = np.abs(V[0]) + np.median(np.where(np.isfinite(V), np.abs(V), 0.0), axis=0)
        above = _tangent_above(name, (P, V, S), (SINGLE_SHARE * eps**0.5, NOISE * eps * size), theta, y)
    found = above or endless
    return _slope_jump(loss, theta, y, points) if found is None and loss.smooth(FINEST) else found


def _endless(name: str, P: HostArray, V: HostArray, slack: float, theta: Array, y: Array | None) -> Finding | None:
    """Return a finding if the mean loss decreases as fast far away as nearby; raise an error if both sides do."""
    reach = P - P[1]
    far = [np.argmin(reach, axis=0)[None], np.argmax(reach, axis=0)[None]]
    left, right = (np.take_along_axis(V - V[1], k, axis=0)[0] for k in far)
    to_left, to_right = (np.take_along_axis(reach, k, axis=0)[0] for k in far)
    before, beyond = np.mean(left / to_left, axis=0), np.mean(right / to_right, axis=0)
    bends = beyond - before > slack * (np.abs(before) + np.abs(beyond))
    unbent = np.isfinite(before) & np.isfinite(beyond) & ~bends
    concave, endless = unbent & (beyond < 0.0) & (before > 0.0), unbent & ((beyond < 0.0) | (before > 0.0))
    if not np.any(endless):
        return None
    j = int(np.argmax(concave if np.any(concave) else endless))
    its, centre = ("its", f"{np.median(P[1][:, j]):.3g}") if y is None else ("in the mean over y its", "y")
    slopes = f"{its} slope is {before[j]:.3g} far below {centre} and {beyond[j]:.3g} far above"
    place, advice = _where(theta, None, (0, j)), "Write a loss that is convex in h and has a smallest value"
    if np.any(concave):
        raise ValueError(f"{name} is not convex in h: at {place}, {slopes}. {advice}.")
    return Finding(
        f"{name} falls without end at {place}: {slopes}, so there is no minimiser. {advice}, or hold the bias by a "
        "ridge, for instance alpha_bias=None.",
        certified=True,
        endless=True,
    )


def check_sum(losses: list[Loss], theta: Array, y: Array | None) -> str | None:
    """Describe a side on which the sum of convex losses of the same h falls without end; None if there is none.

    The first one has the targets y, the others have none. A sum falls without end if it still does at a distance of 10⁶
    spreads from the targets.
    """
    theta, y = _some(theta, y)
    zero, *_ = _points(theta, y)
    centre, spread = (0.0, 1.0) if y is None else (float(np.mean(to_host(y))), float(np.std(to_host(y))) or 1.0)
    for sign, side in ((1.0, "above"), (-1.0, "below")):
        total, size = np.zeros(zero.shape[1]), np.zeros(zero.shape[1])
        for k, loss in enumerate(losses):
            with np.errstate(all="ignore"):  # far away a loss may overflow: it rises
                h = as_like(zero + centre + sign * 1e6 * spread, theta)
                slope = sign * np.mean(host_double(loss.slope(theta, None if k else y, h)), axis=0)
            slope = np.where(np.isnan(slope), np.inf, slope)
            total, size = total + slope, size + np.abs(slope)
        falls = total < -1e-6 * size
        if np.any(falls):
            j = int(np.argmax(falls))
            return f"at {_where(theta, None, (0, j))} the slope of their sum is {sign * total[j]:.3g} far {side} y"
    return None


def _tangent_above(
    name: str, seen: tuple[HostArray, HostArray, HostArray], slack: tuple[float, HostArray], theta: Array, y: Any
) -> Finding | None:
    """A finding if a tangent at one of the points P (k, n, m) is above the loss at another point."""
    (P, V, S), (relative, floor) = seen, slack
    step = P[None] - P[:, None]
    move = S[:, None] * step
    allowed = relative * (np.abs(V[:, None]) + np.abs(V[None]) + np.abs(move)) + floor
    above = V[:, None] + move - V[None]
    excess = np.where(np.isfinite(above) & np.isfinite(allowed) & (above > allowed), above / allowed, 0.0)
    a, b, *k = (int(i) for i in np.unravel_index(int(np.argmax(excess)), excess.shape))
    if excess[a, b, *k] == 0.0:
        return None
    return Finding(
        f"{name} is not convex in h, or its slope is not its derivative: at {_where(theta, y, tuple(k))} the tangent "
        f"at h = {P[a, *k]:.4g} lies above the loss at h = {P[b, *k]:.4g} by {above[a, b, *k]:.2g}. The duality gap is "
        "no certificate for such a loss, and the answer may be far from the best one. Correct the slope, or choose a "
        "convex loss.",
        certified=False,
    )


def _slope_jump(loss: ConvexLoss, theta: Array, y: Array | None, points: list[HostArray]) -> Finding | None:
    """Return a finding if the slope jumps, by repeatedly halving an interval around the jump."""
    P = np.sort(np.stack(points), axis=0)

    def at(h: HostArray) -> HostArray:
        return host_double(loss.slope(theta, y, as_like(h, theta)))

    with np.errstate(all="ignore"):
        S = np.stack([at(h) for h in P])
        rises = np.where(np.isfinite(S[1:]) & np.isfinite(S[:-1]), S[1:] - S[:-1], -np.inf)
        k = np.argmax(rises, axis=0)[None]
        low, high = (np.take_along_axis(p, k, axis=0)[0] for p in (P[:-1], P[1:]))
        at_low, at_high = (np.take_along_axis(s, k, axis=0)[0] for s in (S[:-1], S[1:]))
        first, narrow = at_high - at_low, NOISE * _rounding(theta)
        for _ in range(MAX_STEPS):
            middle = 0.5 * (low + high)
            if np.all(high - low <= narrow * (np.abs(middle) + np.max(high - low))):
                break
            here = at(middle)
            left = here - at_low > at_high - here
            low, at_low = np.where(left, low, middle), np.where(left, at_low, here)
            high, at_high = np.where(left, middle, high), np.where(left, here, at_high)
        # without a jump, almost nothing of the increase remains
        jump = at_high - at_low
        jumps = np.isfinite(jump) & (jump > 0.2 * first) & (first > 0.0)
    if not np.any(jumps):
        return None
    pair = tuple(int(i) for i in np.unravel_index(int(np.argmax(np.where(jumps, jump, 0.0))), jump.shape))
    found = f"its slope jumps from {at_low[pair]:.4g} to {at_high[pair]:.4g} at {_where(theta, y, pair)}"
    return _kinked(type(loss).__name__, f"{found}, h = {high[pair]:.4g}")


# --------------------------------------------------------------------------------------------------------- units
def check_units(loss: Loss, theta: Array, y: HostArray, centre: float, spread: float) -> None:
    """Raise an error if a loss with a degree does not scale with the units of y as its degree claims.

    Parameters
    ----------
    loss : Loss
    theta : array (m,) or (m, d)
        In the library in which the loss is computed.
    y : ndarray (n, 1) or (n, m)
    centre : float
        Subtracted from y and h.
    spread : float
        The divisor of y and h.
    """
    name, degree = type(loss).__name__, loss.degree
    if degree is None:
        return
    if isinstance(degree, bool) or not isinstance(degree, (int, float)) or not math.isfinite(degree):
        raise ValueError(f"{name} has degree = {degree!r}; it must be a number p, or None where there is none.")
    theta, chosen = _some(theta, y)
    assert chosen is not None
    y, p = chosen, float(degree)
    at = np.stack(_points(theta, y))
    with np.errstate(all="ignore"):
        plain = _values(loss, theta, y, at)
        size = float(np.median(np.abs(plain[np.isfinite(plain)]))) if np.any(np.isfinite(plain)) else 0.0
        eps = _rounding(loss.value(theta, as_like(y, theta), as_like(at[0], theta)))
        near = max(1e-6, eps**0.5) + 1e2 * eps * float(np.max(np.abs(y))) / spread
        if centre != 0.0:
            shifted = _values(loss, theta, y - centre, at - centre)
            k = _worst(plain, shifted, near, size)
            if k is not None:
                raise ValueError(
                    f"{name} has a degree, but it does not depend on y − h alone: at {_where(theta, y, k[1:])}, h = "
                    f"{at[k]:.4g} it is {plain[k]:.4g}, and {shifted[k]:.4g} where y and h are both less by "
                    f"{centre:.4g}. Set degree = None; y is then taken as it is."
                )
        for a in (spread, 2.0 * spread):
            inside = loss.in_units(a)
            if not hasattr(inside, "pointwise"):
                raise TypeError(f"{name}.in_units returned {_named(inside)}; it must return a loss, such as {name}(…).")
            scaled = _values(inside, theta, y / a, at / a)
            k = _worst(plain, a**p * scaled, near, size)
            if k is not None:
                counted = np.isfinite(plain) & np.isfinite(scaled) & (plain > near * size) & (scaled > 0.0)
                raise ValueError(
                    f"{name} has degree = {degree:g}, but in units of {a:.4g} it is not {a:.4g}^{degree:g} times "
                    f"smaller: at {_where(theta, y, k[1:])}, h = {at[k]:.4g} it is {plain[k]:.4g}, and with y and h "
                    f"divided by {a:.4g} it is {scaled[k]:.4g}, which stands for {a**p * scaled[k]:.4g}. "
                    f"{_degree_advice(loss, plain[counted] / scaled[counted], a)}"
                )


def _values(loss: Loss, theta: Array, y: HostArray, at: HostArray) -> HostArray:
    targets = as_like(y, theta)
    found = [loss.value(theta, targets, as_like(h, theta)) for h in at]
    for value in found:
        _check_array(f"{type(loss).__name__}.value", value, as_like(at[0], theta), theta, targets, finite=False)
    return np.stack([host_double(value) for value in found])


def _worst(a: HostArray, b: HostArray, near: float, size: float) -> tuple[int, ...] | None:
    """Return the index where two arrays of values differ most; None if they agree."""
    both = np.isfinite(a) & np.isfinite(b)
    excess = np.where(both, np.abs(a - b) / (near * (np.abs(a) + np.abs(b) + size) + 1e-300), 0.0)
    k = tuple(int(i) for i in np.unravel_index(int(np.argmax(excess)), excess.shape))
    return k if excess[k] > 1.0 else None


def _degree_advice(loss: Loss, ratios: HostArray, a: float) -> str:
    """Return advice for a loss that is smaller by these factors in units of ``a``."""
    if ratios.size and a != 1.0:
        exponents = np.log(ratios) / math.log(a)
        seen = float(np.median(exponents))
        if float(np.max(np.abs(exponents - seen))) < 1e-3:
            return f"The samples have the degree {round(seen, 3):g}: set degree = {round(seen, 3):g}."
    writer = next(cls for cls in type(loss).__mro__ if "in_units" in vars(cls))
    written = "Write a method in_units(spread)" if writer.__name__ == "Loss" else "Correct in_units(spread)"
    return (
        f"It has a length of its own. {written}, which returns the loss for a y that was divided by spread (a length δ "
        "of the loss becomes δ/spread), or set degree = None; y is then taken as it is."
    )


# ------------------------------------------------------------------------------------------------------- samples
def _where(theta: Array, y: Array | None, k: tuple[Any, ...]) -> str:
    """Describe the pair k in words."""
    i, j = int(k[0]), int(k[1])
    task = ", ".join(f"{t:.4g}" for t in np.atleast_1d(to_host(theta)[j]))
    task = f"({task})" if theta.ndim == 2 else task
    return f"θ = {task}" + ("" if y is None else f", y = {to_host(y)[i, min(j, y.shape[1] - 1)]:.4g}")


def _some(theta: Array, y: Array | None) -> tuple[Array, Array | None]:
    """Return a sample of θ and y, always the same, with the smallest and the largest values.

    The two sample sizes differ, which reveals a result of the wrong shape.
    """
    rng = np.random.default_rng(0)
    tasks = to_host(theta)
    nodes = _chosen(tasks, rng)
    if y is None:
        return as_like(tasks[nodes], theta), None
    targets = to_host(y)
    rows = _chosen(targets, rng)
    if rows.size == nodes.size:
        rows = np.append(rows, rows[-1])
    if targets.shape[1] > 1:
        targets = targets[:, nodes]
    return as_like(tasks[nodes], theta), as_like(targets[rows], y)


def _chosen(values: HostArray, rng: np.random.Generator) -> HostArray:
    """Return the indices of about :data:`CHECKED` rows of ``values``, with the extremes of every column."""
    columns = values.reshape(values.shape[0], -1)[:, :8]
    extremes = np.concatenate([np.argmin(columns, axis=0), np.argmax(columns, axis=0)])
    return np.unique(np.concatenate([extremes, rng.permutation(values.shape[0])[:CHECKED]]))


def _points(theta: Array, y: Array | None) -> list[HostArray]:
    """Return values of h, (n, m) each: 0, close to 0, close to y and far from y, at random distances."""
    m = theta.shape[0]
    rng = np.random.default_rng(1)
    centre = np.zeros((2 if m == 1 else 1, 1)) if y is None else to_host(y).astype(np.float64)
    spread = float(np.std(centre)) or float(np.max(np.abs(centre))) or 1.0
    zero = np.zeros((centre.shape[0], m))

    def scattered(size: float) -> HostArray:
        return np.asarray(size * rng.uniform(0.5, 1.0, size=zero.shape))

    found = [zero, zero + centre]
    for offset in CHECKED_OFFSETS:
        found += [centre + scattered(sign * spread * offset) for sign in (-1.0, 1.0)]
    return found + [scattered(size) for size in CHECKED_VALUES]


def _rounding(*arrays: Array) -> float:
    """Return the largest rounding error of some dtypes, because a loss may be computed in single precision."""
    floats = [array for array in arrays if namespace(array).isdtype(array.dtype, "real floating")]
    return max((float(namespace(array).finfo(array.dtype).eps) for array in floats), default=0.0)
