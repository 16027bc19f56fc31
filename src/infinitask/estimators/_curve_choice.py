"""What the data decide for curves: the widths of both kernels, λ, and how a mean curve is held.

All of it has the smallest error of curves that are left out, see :mod:`~infinitask.estimators._curve_errors`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import numpy as np

from infinitask._base.arrays import HostArray, normal_scores
from infinitask.estimators._curve_errors import DEVIATION, Judge, OnGrid, OwnPoints, Question
from infinitask.estimators._curves import Design
from infinitask.fitting._data import Data
from infinitask.fitting._defaults import (
    CLEARLY_BETTER,
    GAMMA_FACTORS,
    shrinkage,
    spreads,
    with_own_scales,
    with_width,
)
from infinitask.kernels import Chi2, InputKernel, Scaled, input_kernel, takes_gamma, task_kernel

FILLED, MANY_POINTS = 0.4, 100
"""Gaps are filled where at least this part of the grid was seen, or rows have this many points in the mean."""

SEEN_OFTEN = 10
"""The mean curve is free where the usual node was seen in at least this many rows."""

WIDTHS = (0.3, 0.15, 0.08, 0.04, 0.02, 0.01)
"""σ of a task kernel, in parts of Θ; none that is less than :data:`NARROWEST` gaps between points."""

NARROWEST = 1.5
"""Narrower kernels fall back to the mean curve between the points of a grid."""

LEVEL_SHARES = (1e2, 1e4, 1.0)
"""ρ: by how much less than the other curves a mean curve is held."""

FEWEST_FOR_SCALES = 50
"""Rows from which a scale for each input is tried: a curve tells more than a number."""

WILD, FEWEST_AROUND = 5.0, 20
"""Values farther than this from the median of those at about the same θ, in deviations as their median distance has
it, are wild; and how many of these there are at least."""

SMALLEST_RIDGE = 1e-5
"""As for other targets, see :mod:`~infinitask.fitting._defaults`."""


@final
@dataclass(frozen=True, eq=False)
class Choice:
    """What the curves decided."""

    kernel: InputKernel
    task_gamma: float | str | None
    alpha: float
    """λ of half the square."""
    level_share: float | None
    """λ/λ_b; None: the mean curve is free."""
    noise: float
    """The standard deviation of the errors of curves left out, as their median distance from 0 has it."""


def chosen(question: Question, data: Data, design: Design) -> Choice:
    """The choice of some curves.

    Parameters
    ----------
    question : Question
    data : Data
        With targets of size one on the nodes of the design, (n, m), and their shares.
    design : Design
    """
    assert data.y is not None
    kernels = _input_kernels(question, data)
    seen = np.ones(data.y.shape, dtype=bool) if data.share is None else data.share > 0.0
    data = replace(data, y=_tamed(data.y, seen)) if question.robust else data
    gap = _usual_gap(design.nodes, seen)
    gammas = _task_gammas(question, design.nodes, gap)
    per_row = float(np.mean(np.sum(seen, axis=1)))
    free = float(np.median(np.sum(data.multiplicity[:, None] * seen, axis=0))) >= SEEN_OFTEN
    if np.mean(seen) >= FILLED or per_row >= MANY_POINTS:
        judge: Judge = OnGrid(question, data, design, kernels)
        levels: tuple[float | None, ...] = (None,) if free else LEVEL_SHARES[:1]
    else:
        judge, levels = OwnPoints(question, data, design, kernels), LEVEL_SHARES
    found = _search(judge, len(kernels), gammas, levels)
    for _ in range(judge.rounds):  # gaps and wild values as the best model so far has them
        judge.revise(*found)
        found = _search(judge, len(kernels), gammas, levels)
    k, gamma, share, alpha = found
    own = _with_own_scales(judge, judge.kernels[k])
    if own is not None:
        judge.kernels.append(own)
        errors, ridge = judge.best(len(judge.kernels) - 1, gamma, share)
        if errors @ judge.weight < CLEARLY_BETTER * float(judge.best(k, gamma, share)[0] @ judge.weight):
            k, alpha = len(judge.kernels) - 1, ridge
    ridge = max(alpha * shrinkage(judge.rows, data.weight.size), SMALLEST_RIDGE / data.weight.size)
    ridge = ridge if question.alpha is None else question.alpha
    return Choice(judge.kernels[k], gamma, ridge, share, judge.noise(k, gamma, share, alpha))


# ---------------------------------------------------------------------------------------------- candidates
def _input_kernels(question: Question, data: Data) -> list[InputKernel]:
    kernel, gamma = question.kernel, question.gamma
    auto = isinstance(gamma, str) and gamma == "auto" and takes_gamma(kernel)
    if not auto or isinstance(input_kernel(kernel), Chi2):
        found = input_kernel(kernel, "median" if auto else gamma)
        return [found if found.precomputed else found.resolve(data.X)]
    plain = Scaled(input_kernel(kernel), spreads(data.X)).resolve(data.X)
    return [plain if factor == 1.0 else with_width(plain, factor) for factor in GAMMA_FACTORS]


def _with_own_scales(judge: Judge, kernel: InputKernel) -> InputKernel | None:
    """The kernel with a scale for each input, by the leading component of the curves, as for other targets."""
    gamma = judge.question.gamma
    if not isinstance(kernel, Scaled) or not isinstance(gamma, str) or gamma != "auto":
        return None
    X, leading, copies = judge.leading()
    return with_own_scales(kernel, X, normal_scores(leading), copies, FEWEST_FOR_SCALES)


def _task_gammas(question: Question, nodes: HostArray, gap: float) -> list[float | str | None]:
    spec, given = question.task_kernel, question.task_gamma
    if given is not None or not isinstance(spec, str) or not hasattr(task_kernel(spec), "gamma"):
        return [given]
    length = float(nodes[-1] - nodes[0])
    if not length > 0.0:
        return [None]
    widths = [width for width in WIDTHS if width * length >= NARROWEST * gap] or [WIDTHS[0]]
    return [0.5 / (width * length) ** 2 for width in widths]


def _usual_gap(nodes: HostArray, seen: HostArray) -> float:
    """The median distance of neighbouring points of a row, over all rows; for rows of few points over the nodes."""
    gaps = [np.diff(nodes[row]) for row in seen[:: -(-len(seen) // 200)]]
    found = np.concatenate(gaps) if gaps else np.empty(0)
    if found.size == 0 or float(np.mean(np.sum(seen, axis=1))) < MANY_POINTS:
        found = np.diff(nodes)
    return float(np.median(found)) if found.size else 0.0


def _tamed(y: HostArray, seen: HostArray) -> HostArray:
    """Targets in which wild ones are as far from the others at about the same θ as :data:`WILD` says."""
    upto = np.cumsum(np.sum(seen, axis=0)) / FEWEST_AROUND
    part = np.minimum(np.ceil(upto), max(1.0, np.floor(upto[-1]))).astype(np.intp)  # runs of nodes
    tamed = np.array(y)
    for k in np.unique(part):
        here = (part == k) & seen
        middle = float(np.median(y[here]))
        far = WILD * float(np.median(np.abs(y[here] - middle))) / DEVIATION
        if far > 0.0:
            tamed[here] = np.clip(y[here], middle - far, middle + far)
    return tamed


def _search(
    judge: Judge, kernels: int, gammas: list[float | str | None], shares: tuple[float | None, ...]
) -> tuple[int, float | str | None, float | None, float]:
    """One choice after the other: the width over θ, then over x, then how the mean curve is held.

    Of widths over θ that are about as good the widest is taken, and of those over x the one with the largest λ.
    """
    share = shares[0]
    tried = [judge.best(0, gamma, share) for gamma in gammas]
    first = int(judge.good(np.array([errors for errors, _ in tried]))[0])
    gamma = gammas[first]
    by_kernel = [tried[first], *(judge.best(k, gamma, share) for k in range(1, kernels))]
    k = max(judge.good(np.array([errors for errors, _ in by_kernel])), key=lambda k: by_kernel[k][1])
    by_share = [by_kernel[k], *(judge.best(int(k), gamma, other) for other in shares[1:])]
    level = int(np.argmin([errors @ judge.weight for errors, _ in by_share]))
    return int(k), gamma, shares[level], by_share[level][1]
