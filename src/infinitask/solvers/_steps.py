"""What both kinds of splitting share: how long steps are, when to look at the bounds, and the best dual point.

The step σ of a node follows two residuals: how far the values that the losses see are from the field, and how far they
moved. Each is relative to the size of what it belongs to.

A dual point u has a lower bound D(u) = Σ −ℓ*(u) − ‖Φᵀ u Ψ‖²/2λ. Iterates swing around the best one: a mixture of them
is a dual point too, and its bound is often far better. With −ℓ* concave,

    D(Σ_i c_i u_i) ≥ Σ_i c_i l_i − ‖Σ_i c_i p_i‖²/2λ,    l_i = Σ −ℓ*(u_i),  p_i = Φᵀ u_i Ψ,  c ≥ 0, Σ_i c_i = 1,

so that numbers l_i and small matrices p_i are all that is kept of the points. A gap of 1e-4 was certified after 80
iterations instead of 180 (n = 2 000, λ = 1e-4), and after 160 instead of 230 (λ = 1e-6).
"""

from __future__ import annotations

import numpy as np

from infinitask._base.arrays import HostArray

RELAXATION = 1.8
"""How far an iteration goes beyond the ridge step; between 1 and 2."""

UNBALANCED, MAX_RANGE = 2.0, 30.0
"""A step changes where one residual is twice the other, and steps of nodes stay within a factor of 30 of their median.
With one step for all nodes a small λ takes up to four times as many
iterations."""

CHANGE_LATER = 1.5
"""Steps change at the first iteration measured after this multiple of the last change: each time the columns are
diagonalised again."""

MAX_GROWTH = 1.25
"""The bounds are computed again before the iterations have grown by this factor."""

IDLE_STEPS = 600
"""Iterations end where this number of them left nearly all of the gap."""

HAND_OVER = 0.1
"""Other engines go on from splitting with this part of its 1/σ."""


SIZE = 6
"""Points that are kept: the best mixture so far, and the last ones."""

NOTHING = -1e300
"""In place of −∞: times a weight of 0 it is 0."""


def change(squares: HostArray, apart_to_moved: float = 1.0) -> HostArray:
    """Factors of steps, from squared norms (4, …) of H − F, of the move of H, of F and of D."""
    apart, moved, size, slope = np.sqrt(np.maximum(squares, 1e-30))
    apart, moved = apart / size, moved / slope
    # where both are rounding they say nothing, and σ would run away
    ratio = np.where(np.maximum(apart, moved) > 1e-13, apart / moved / apart_to_moved, 1.0)
    factor = np.clip(np.sqrt(ratio), 1.0 / 3.0, 3.0)
    return np.asarray(np.where((ratio > UNBALANCED) | (ratio < 1.0 / UNBALANCED), factor, 1.0))


def within_range(steps: HostArray) -> HostArray:
    """Steps of nodes, none far from their median."""
    middle = np.median(steps)
    return np.asarray(np.clip(steps, middle / MAX_RANGE, middle * MAX_RANGE))


class Looks:
    """The gaps seen so far, and when to look again.

    Parameters
    ----------
    aim : float
        The gap to be reached.
    """

    def __init__(self, aim: float) -> None:
        self.aim = aim
        self.seen: list[tuple[int, float]] = []

    def add(self, step: int, gap: float) -> None:
        """The gap after ``step`` iterations."""
        self.seen.append((step, gap))

    @property
    def idle(self) -> bool:
        """Whether the last iterations hardly changed the gap."""
        step, gap = self.seen[-1]
        before = [gap for earlier, gap in self.seen if earlier <= step - IDLE_STEPS]
        return bool(before) and gap > 0.9 * before[-1]

    @property
    def expected(self) -> float:
        """Iterations at which the gap is expected to be reached, by the power of their number with which it falls."""
        (step, gap), power = self.seen[-1], 2.0
        if len(self.seen) > 1 and 0.0 < gap < self.seen[-2][1] < np.inf:
            before, was = self.seen[-2]
            power = max(1.0, float(np.log(was / gap) / np.log(step / before)))
        return float(step * (gap / self.aim) ** (1.0 / power)) if self.aim > 0.0 and np.isfinite(gap) else np.inf

    @property
    def wait(self) -> int:
        """Iterations until the next look."""
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
        """The best bound after some points have joined, (B,); it never falls.

        Parameters
        ----------
        lowers : list of ndarray (B,)
            l_i.
        pulls : list of ndarray (k, B, l)
            p_i.
        """
        lower, pull = np.array(self._lowers + lowers), np.array(self._pulls + pulls)
        # a point that proves nothing has no part
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

    Weight is moved to the point that gains most, then to the best mixture of all points that have weight.
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
    """Towards the best mixture of the points that have weight, until one of them has none."""
    inside = weights > 0.0
    part = np.where(inside[:, :, None] & inside[:, None, :], gram, 0.0)
    size = np.maximum(np.max(np.einsum("bii->bi", part), axis=1), 1e-300)
    # equal points have equal rows: a trace of a ridge shares the weight between them
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

    better = value(moved) >= value(weights)  # not so where rounding spoilt the solve
    return np.where(better[:, None], moved, weights)
