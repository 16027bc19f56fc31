"""What both kinds of splitting share: how long steps are, when to look at the bounds, and when to stop.

The step σ of a node follows two residuals: how far the values that the losses see are from the field, and how far they
moved. Each is relative to the size of what it belongs to.
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
