"""Step lengths, the schedule of the bounds, and the best dual point: common to both kinds of splitting.

The step σ of a node follows two residuals: the distance between the arguments of the losses and the field, and their
last change. Each is relative to the size of its own quantity.

A dual point u has a lower bound D(u) = Σ −ℓ*(u) − ‖Φᵀ u Ψ‖²/2λ. Iterates oscillate around the best one. A mixture of
them is a dual point too, and its bound is often far better. With −ℓ* concave,

    D(Σ_i c_i u_i) ≥ Σ_i c_i l_i − ‖Σ_i c_i p_i‖²/2λ,    l_i = Σ −ℓ*(u_i),  p_i = Φᵀ u_i Ψ,  c ≥ 0, Σ_i c_i = 1,

so only the numbers l_i and the small matrices p_i are stored. A gap of 1e-4 was certified after 80 iterations instead
of 180 (n = 2 000, λ = 1e-4), and after 160 instead of 230 (λ = 1e-6).
"""

from __future__ import annotations

import numpy as np

from infinitask._base.arrays import HostArray

RELAXATION = 1.8
"""The over-relaxation of the ridge step, between 1 and 2."""

UNBALANCED, MAX_RANGE = 2.0, 30.0
"""A step changes if one residual is twice the other, and steps of nodes stay within a factor of 30 of their median.
With one step for all nodes, a small λ takes up to four times as many iterations."""

CHANGE_LATER = 1.5
"""Steps change at the first iteration measured after this multiple of the last change, because each change diagonalises
the columns again."""

MAX_GROWTH = 1.25
"""The bounds are computed again before the number of iterations has grown by this factor."""

IDLE_STEPS = 600
"""Iterations stop if this number of them hardly reduced the gap."""

HAND_OVER = 0.1
"""Other engines continue from splitting with this fraction of its 1/σ."""


SIZE = 6
"""The number of stored points: the best mixture so far, and the last points."""

NOTHING = -1e300
"""Replaces −∞: times a weight of 0 it is 0."""


def change(squares: HostArray, apart_to_moved: float = 1.0) -> HostArray:
    """Factors of steps, from squared norms (4, …) of H − F, of the change of H, of F and of D."""
    apart, moved, size, slope = np.sqrt(np.maximum(squares, 1e-30))
    apart, moved = apart / size, moved / slope
    # if both are rounding errors the ratio is meaningless, and σ would diverge
    ratio = np.where(np.maximum(apart, moved) > 1e-13, apart / moved / apart_to_moved, 1.0)
    factor = np.clip(np.sqrt(ratio), 1.0 / 3.0, 3.0)
    return np.asarray(np.where((ratio > UNBALANCED) | (ratio < 1.0 / UNBALANCED), factor, 1.0))


def within_range(steps: HostArray) -> HostArray:
    """Clip the steps of nodes to a range around their median."""
    middle = np.median(steps)
    return np.asarray(np.clip(steps, middle / MAX_RANGE, middle * MAX_RANGE))


class Looks:
    """The gaps so far, and the iteration at which to compute the next one.

    Parameters
    ----------
    aim : float
        The requested gap.
    """

    def __init__(self, aim: float) -> None:
        self.aim = aim
        self.seen: list[tuple[int, float]] = []

    def add(self, step: int, gap: float) -> None:
        """Add the gap after ``step`` iterations."""
        self.seen.append((step, gap))

    @property
    def idle(self) -> bool:
        """Whether the last iterations hardly changed the gap."""
        step, gap = self.seen[-1]
        before = [gap for earlier, gap in self.seen if earlier <= step - IDLE_STEPS]
        return bool(before) and gap > 0.9 * before[-1]

    @property
    def expected(self) -> float:
        """The iteration at which the gap is expected to be reached, assuming that it falls as a power law."""
        (step, gap), power = self.seen[-1], 2.0
        if len(self.seen) > 1 and 0.0 < gap < self.seen[-2][1] < np.inf:
            before, was = self.seen[-2]
            power = max(1.0, float(np.log(was / gap) / np.log(step / before)))
        return float(step * (gap / self.aim) ** (1.0 / power)) if self.aim > 0.0 and np.isfinite(gap) else np.inf

    @property
    def wait(self) -> int:
        """The number of iterations until the next computation of the gap."""
        step = self.seen[-1][0]
        return max(4, int(np.ceil(min(self.expected, MAX_GROWTH * step))) - step)


class Bundle:
    """Dual points of B problems.

    Parameters
    ----------
    ridge : ndarray (B,)
        λ.
    """

    def __init__(self, ridge: HostArray) -> None:
        self.ridge = ridge
        self._lowers: list[HostArray] = []
        self._pulls: list[HostArray] = []

    def bound(self, lowers: list[HostArray], pulls: list[HostArray]) -> HostArray:
        """Add points and return the best bound, (B,), which never falls.

        Parameters
        ----------
        lowers : list of ndarray (B,)
            l_i.
        pulls : list of ndarray (k, B, l)
            p_i.
        """
        lower, pull = np.array(self._lowers + lowers), np.array(self._pulls + pulls)
        # a point with an infinite bound gets no weight
        proves = np.isfinite(lower) & np.all(np.isfinite(pull), axis=(1, 3))
        lower, pull = np.where(proves, lower, NOTHING), np.where(proves[:, None, :, None], pull, 0.0)
        along = np.moveaxis(pull, 2, 0).reshape(self.ridge.size, len(pull), -1)
        weights = mixture(lower.T, along @ np.swapaxes(along, 1, 2) / self.ridge[:, None, None])
        best, point = np.sum(weights * lower.T, axis=1), np.einsum("bi,ikbl->kbl", weights, pull)
        self._lowers = [best, *(each.copy() for each in lower[-(SIZE - 1) :])]
        self._pulls = [point, *(each.copy() for each in pull[-(SIZE - 1) :])]
        bound = best - 0.5 * np.sum(point**2, axis=(0, 2)) / self.ridge
        return np.where(best > NOTHING, bound, -np.inf)


def mixture(lower: HostArray, gram: HostArray) -> HostArray:
    """c (B, K) that maximises l·c − ½ cᵀ G c, for l (B, K) and G (B, K, K).

    Weight moves to the point with the largest gain, then to the best mixture of all points with positive weight.
    """
    every = np.arange(len(lower))
    weights = np.zeros_like(lower)
    weights[every, np.argmax(lower - 0.5 * np.einsum("bii->bi", gram), axis=1)] = 1.0
    enough = 1e-10 * np.max(np.abs(np.where(lower > NOTHING, lower, 0.0)), axis=1)
    for _ in range(12):
        slope = lower - np.einsum("bij,bj->bi", gram, weights)
        to, off = np.argmax(slope, axis=1), np.argmin(np.where(weights > 0.0, slope, np.inf), axis=1)
        gain = slope[every, to] - slope[every, off]
        if np.all(gain <= enough):
            break
        bend = gram[every, to, to] + gram[every, off, off] - 2.0 * gram[every, to, off]
        moved = np.clip(gain / np.maximum(bend, 1e-300), 0.0, weights[every, off])
        weights[every, to] += moved
        weights[every, off] -= moved
        weights = _within(lower, gram, weights)
    return weights


def _within(lower: HostArray, gram: HostArray, weights: HostArray) -> HostArray:
    """Move towards the best mixture of the points with positive weight until one of the weights is zero."""
    inside = weights > 0.0
    part = np.where(inside[:, :, None] & inside[:, None, :], gram, 0.0)
    size = np.maximum(np.max(np.einsum("bii->bi", part), axis=1), 1e-300)
    # equal points have equal rows: a tiny ridge divides the weight between them
    ridge = np.where(inside, (1e-11 * size)[:, None], size[:, None])
    solved = np.linalg.solve(
        part + ridge[:, :, None] * np.eye(gram.shape[1]), np.stack([np.where(inside, lower, 0.0), 1.0 * inside], axis=2)
    )
    free, shift = solved[:, :, 0], solved[:, :, 1]
    best = free - ((np.sum(free, axis=1) - 1.0) / np.sum(shift, axis=1))[:, None] * shift
    step = np.where(inside, best - weights, 0.0)
    falls = step < 0.0
    far = np.min(np.divide(weights, -step, out=np.full_like(step, np.inf), where=falls), axis=1)
    moved = np.maximum(weights + np.minimum(1.0, far)[:, None] * step, 0.0)
    moved = np.where(falls & (far[:, None] <= 1.0) & (moved <= 1e-15), 0.0, moved)
    moved /= np.sum(moved, axis=1, keepdims=True)

    def value(c: HostArray) -> HostArray:
        return np.asarray(np.sum(c * lower, axis=1) - 0.5 * np.einsum("bi,bij,bj->b", c, gram, c))

    better = value(moved) >= value(weights)  # false if rounding spoilt the solve
    return np.where(better[:, None], moved, weights)
