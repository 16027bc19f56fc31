"""Defaults that follow the curves: the widths of both kernels, λ, and the ridge of the mean curve.

They have the smallest error of held-out curves, see :mod:`~infinitask.estimators._curve_errors`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from infinitask._base.arrays import HostArray, normal_scores
from infinitask.estimators._curve_errors import (
    OUTLIER,
    Candidate,
    CurveErrors,
    GridErrors,
    ScatteredErrors,
    deviation,
)
from infinitask.estimators._curves import Design
from infinitask.fitting._data import Data
from infinitask.fitting._defaults import (
    CLEARLY_BETTER,
    GAMMA_FACTORS,
    SMALLEST_RIDGE,
    kernel_by_rule,
    shrinkage,
    with_own_scales,
    with_width,
)
from infinitask.fitting._recipe import Recipe
from infinitask.kernels import InputKernel, Scaled, takes_gamma, task_kernel
from infinitask.losses import Squared

SEEN_FRACTION, MANY_POINTS = 0.4, 100
"""Gaps are filled if at least this fraction of the grid was seen, or if the rows have 100 points on average."""

ENOUGH_VALUES = 10
"""Observations from which a mean or a median is formed: the mean curve is free if the median node has ten of them."""

WIDTHS = (0.3, 0.15, 0.08, 0.04, 0.02, 0.01)
"""Values of σ of the task kernel that are tried, relative to the length of Θ."""

BIAS_RATIOS = (1e2, 1e4, 1.0)
"""Ratios λ/λ_b that are tried if the mean curve is smoothed."""

MIN_ROWS_FOR_SCALES = 50
"""Rows from which a scale for each feature is tried: a curve tells more than a number."""


def chosen(recipe: Recipe, data: Data, design: Design) -> tuple[Candidate, float, float]:
    """The choices with the smallest error of held-out curves, λ, and a robust standard deviation of their errors.

    Parameters
    ----------
    recipe : Recipe
        With the λ of half the square where it is known, in the units of the data.
    data : Data
        With targets of size one on the nodes of the design, (n, m), and their shares.
    design : Design
    """
    assert data.y is not None
    seen = np.ones(data.y.shape, dtype=bool) if data.share is None else data.share > 0.0
    robust = not isinstance(recipe.task.loss, Squared)
    data = replace(data, y=_clipped(data.y, seen)) if robust else data
    kernels, gammas = _input_kernels(recipe, data), _task_gammas(recipe, design.nodes)
    free = float(np.median(np.sum(data.copies[:, None] * seen, axis=0))) >= ENOUGH_VALUES
    if np.mean(seen) >= SEEN_FRACTION or float(np.mean(np.sum(seen, axis=1))) >= MANY_POINTS:
        held_out: CurveErrors = GridErrors(recipe, data, design, seen)
        ratios: tuple[float | None, ...] = (None,) if free else BIAS_RATIOS[:1]
        revised = robust or not np.all(seen)
    else:
        held_out, ratios, revised = ScatteredErrors(recipe, data, design), BIAS_RATIOS, robust
    best, alpha = _search(held_out, kernels, gammas, ratios)
    if revised:
        held_out.revise(best, alpha)
        best, alpha = _search(held_out, kernels, gammas, ratios)
    own = _with_own_scales(held_out, best.kernel)
    if own is not None:
        errors, ridge = held_out.best(best._replace(kernel=own))
        if errors @ held_out.weight < CLEARLY_BETTER * float(held_out.best(best)[0] @ held_out.weight):
            best, alpha = best._replace(kernel=own), ridge
    n = data.weight.size
    ridge = recipe.alpha
    if isinstance(ridge, str):
        ridge = max(alpha * shrinkage(held_out.weight.size, n), SMALLEST_RIDGE / n)
    return best, ridge, deviation(held_out.at_points(best, alpha))


# ---------------------------------------------------------------------------------------------- candidates
def _input_kernels(recipe: Recipe, data: Data) -> list[InputKernel]:
    kernel = kernel_by_rule(recipe, data.X)
    kernel = kernel if kernel.precomputed else kernel.resolve(data.X)
    wide = takes_gamma(recipe.kernel) and isinstance(kernel, Scaled)
    return [with_width(kernel, factor) for factor in (GAMMA_FACTORS if wide else ())] or [kernel]


def _with_own_scales(held_out: CurveErrors, kernel: InputKernel) -> InputKernel | None:
    """The kernel with a scale for each feature, by the leading component of the curves, as for other targets."""
    gamma = held_out.recipe.gamma
    if not isinstance(kernel, Scaled) or not isinstance(gamma, str) or gamma != "auto":
        return None
    X, leading, copies = held_out.leading()
    return with_own_scales(kernel, X, normal_scores(leading), copies, MIN_ROWS_FOR_SCALES)


def _task_gammas(recipe: Recipe, nodes: HostArray) -> list[float | str | None]:
    """Bandwidths over θ, with σ no less than the usual gap between points.

    A narrower kernel falls back to the mean curve between the points of a grid.
    """
    spec, given = recipe.task_kernel, recipe.task_gamma
    if given is not None or not isinstance(spec, str) or not hasattr(task_kernel(spec), "gamma"):
        return [given]
    length = float(nodes[-1] - nodes[0])
    if not length > 0.0:
        return [None]
    gap = float(np.median(np.diff(nodes)))
    widths = [width for width in WIDTHS if width * length >= gap] or [WIDTHS[0]]
    return [0.5 / (width * length) ** 2 for width in widths]


def _clipped(y: HostArray, seen: HostArray) -> HostArray:
    """Targets whose outliers are moved towards the median of the other targets at about the same θ."""
    upto = np.cumsum(np.sum(seen, axis=0)) / ENOUGH_VALUES
    part = np.minimum(np.ceil(upto), max(1.0, np.floor(upto[-1]))).astype(np.intp)  # runs of nodes
    clipped = np.array(y)
    for k in np.unique(part):
        here = (part == k) & seen
        middle = float(np.median(y[here]))
        far = OUTLIER * deviation(y[here] - middle)
        if far > 0.0:
            clipped[here] = np.clip(y[here], middle - far, middle + far)
    return clipped


def _search(
    held_out: CurveErrors,
    kernels: list[InputKernel],
    gammas: list[float | str | None],
    ratios: tuple[float | None, ...],
) -> tuple[Candidate, float]:
    """Choose the width over θ, then that over x, then the ridge of the mean curve; returns the choices and λ.

    Of widths over θ that are about as good, the widest is taken; of those over x, the one with the largest λ.
    """
    by_gamma = [Candidate(kernels[0], gamma, ratios[0]) for gamma in gammas]
    tried = [held_out.best(candidate) for candidate in by_gamma]
    first = int(held_out.good(np.array([errors for errors, _ in tried]))[0])
    by_kernel = [by_gamma[first]._replace(kernel=kernel) for kernel in kernels]
    tried = [tried[first], *(held_out.best(candidate) for candidate in by_kernel[1:])]
    k = max(held_out.good(np.array([errors for errors, _ in tried])), key=lambda k: tried[k][1])
    by_ratio = [by_kernel[k]._replace(bias_ratio=ratio) for ratio in ratios]
    tried = [tried[k], *(held_out.best(candidate) for candidate in by_ratio[1:])]
    last = int(np.argmin([errors @ held_out.weight for errors, _ in tried]))
    return by_ratio[last], tried[last][1]
