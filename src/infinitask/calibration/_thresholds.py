"""Thresholds and decisions calibrated for new rows, by a shift of h for every θ.

* Level sets: the fraction of rows outside equals θ for the training rows (:func:`training_quantiles`) or for new rows
  (:func:`held_out_quantiles`). New rows are outside more often than training rows; the second accounts for this.
* Decisions (:func:`decision_shift`): they flip where the probability of the positive class equals the value given by
  the trade-off. The ridge pulls h(x)(θ) towards the decision that suits most rows. With rare classes it may never flip
  although it ranks the rows correctly by their probability.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.special import logit

from infinitask._base.arrays import HostArray, as_like, row_blocks, to_host
from infinitask.calibration._leave_one_out import LeftOut
from infinitask.calibration._log_odds import Scale, logistic_lines
from infinitask.calibration.held_out import HeldOut, HeldOutFits
from infinitask.field import Field, Problem
from infinitask.measures import Measure

THRESHOLD_LEVELS = 513
"""The number of equally spaced levels of a shift, besides the nodes. Equal rows leave a set together, at a level known
up to the distance of two levels."""

EXTREME_TRADE_OFFS = np.outer((-1.0, 1.0), np.tanh(0.5 * np.linspace(np.log(256.0), np.log(1e5), 64))).ravel()
"""Trade-offs of costs that differ by factors of 256 to 100 000, between which equally spaced levels would be too far
apart."""


@final
@dataclass(frozen=True, eq=False)
class Shift:
    """A correction of a threshold t(θ), or of a decision, linear between levels.

    Parameters
    ----------
    levels : ndarray (k,)
        Ascending.
    values : ndarray (k,)
    """

    levels: HostArray
    values: HostArray

    def __call__(self, theta: HostArray) -> HostArray:
        """The shift at each θ: (q,)."""
        return np.interp(theta, self.levels, self.values)


def threshold_levels(problem: Problem, field: Field, measure: Measure, also: HostArray | None = None) -> HostArray:
    """The levels of a shift, (k,), and those of ``also`` in Θ."""
    levels = problem.quadrature.nodes[:, 0]
    if measure.atoms() is None and not field.knows_nodes_only:
        low, high = (float(np.ravel(end)[0]) for end in measure.support)
        levels = np.append(levels, np.linspace(low, high, THRESHOLD_LEVELS))
        if also is not None:
            levels = np.append(levels, also[(low <= also) & (also <= high)])
    return np.unique(levels)


# ------------------------------------------------------------------------------------------------- level sets
def training_quantiles(problem: Problem, field: Field, measure: Measure) -> Shift:
    """The shift after which a fraction θ of the rows of the problem is outside.

    Given h, the θ-quantile of h(x_i)(θ) minimises E (1/θ)(t − h)₊ − t, which is the objective as a function of t except
    for its ridge. Hence the shift decreases the data term of the objective.
    """
    levels = threshold_levels(problem, field, measure)
    rows, omega = problem.objective.rows, to_host(problem.objective.sample_weight)
    h, psi = to_host(rows @ as_like(field.coef, rows)), field.psi(levels).T  # fewer functions than levels
    parts = row_blocks(levels.size, len(h))
    t = np.concatenate([halfway(h @ psi[:, part], omega, levels[part]) for part in parts])
    return Shift(levels, t + field.bias(levels))


def held_out_quantiles(held_out: HeldOut, fits: HeldOutFits, measure: Measure) -> Shift:
    """The shift after which the expected fraction of new rows outside is θ.

    The threshold is the θ-quantile of h over held-out rows, as in conformal prediction; it never decreases with θ. It
    is at most the threshold with a fraction θ of the training rows outside: they are inside more often than new rows.
    If equal rows make h flat, fits differ more in their level than h differs between rows.

    Uses values of h, not of h − t: with a narrow kernel t is of the order of 1/n, and larger in a fit with fewer rows,
    while h at a new row is not.
    """
    problem, field = held_out.problem, held_out.field
    levels, rows = threshold_levels(problem, field, measure), problem.objective.rows
    t = [
        new_row_quantile(fits.with_medians_of(field, rows, levels[part]), fits.omega, levels[part], fits.count)
        for part in row_blocks(levels.size, int(rows.shape[0]))
    ]
    own = training_quantiles(problem, field, measure)
    return Shift(levels, np.minimum(np.maximum.accumulate(np.concatenate(t)) + field.bias(levels), own(levels)))


def left_out_quantiles(held_out: HeldOut, left_out: LeftOut, measure: Measure) -> Shift:
    """The same from leave-one-out of every row, :func:`~infinitask.calibration._leave_one_out.leave_one_out`."""
    problem, field = held_out.problem, held_out.field
    levels, omega = threshold_levels(problem, field, measure), to_host(problem.objective.sample_weight)
    t = [
        new_row_quantile(left_out.values(levels[part]), omega, levels[part], held_out.count)
        for part in row_blocks(levels.size, omega.size)
    ]
    own, bias = training_quantiles(problem, field, measure), field.bias(levels)
    return Shift(levels, np.minimum(np.maximum.accumulate(np.concatenate(t) - bias) + bias, own(levels)))


def new_row_quantile(values: HostArray, omega: HostArray, theta: HostArray, count: float | None = None) -> HostArray:
    """The value below which a new row is with probability θ, for each column: (k,).

    Of n exchangeable values and a new one, all n + 1 ranks of the new one are equally likely: it is below the i-th
    smallest with probability i/(n + 1). Between order statistics the quantile is linear, and beyond the first and the
    last one it continues by at most the distance to its neighbour.

    Parameters
    ----------
    values : ndarray (n, k)
    omega : ndarray (n,)
        Weights that sum to one.
    theta : ndarray (k,)
    count : float or None
        n, if rows represent several; None: 1/Σω².

    Examples
    --------
    >>> import numpy as np
    >>> new_row_quantile(np.arange(1.0, 10.0)[:, None], np.full(9, 1 / 9), np.array([0.25]))
    array([2.5])
    """
    order = np.argsort(values, axis=0)
    values = np.take_along_axis(values, order, axis=0).astype(np.float64)
    count = 1.0 / float(np.sum(omega**2)) if count is None else count
    below = np.cumsum(omega[order], axis=0) * (count / (count + 1.0))
    first, last = 2.0 * values[0] - values[min(1, len(values) - 1)], 2.0 * values[-1] - values[max(-2, -len(values))]
    ends = np.zeros(theta.size), np.ones(theta.size)
    values, below = np.vstack([first, values, last]), np.vstack([ends[0], below, ends[1]])
    return np.array([np.interp(theta[j], below[:, j], values[:, j]) for j in range(theta.size)])


def halfway(h: HostArray, omega: HostArray, theta: HostArray) -> HostArray:
    """t_j, halfway between two neighbouring h_ij, with Σ_i ω_i 1[h_ij < t_j] as close to θ_j as possible: (k,).

    With the midpoint no row is on the boundary, and the result does not depend on rounding.

    Parameters
    ----------
    h : ndarray (n, k)
    omega : ndarray (n,)
        Weights that sum to one.
    theta : ndarray (k,)

    Examples
    --------
    >>> import numpy as np
    >>> halfway(np.array([[3.0], [1.0], [2.0], [5.0]]), np.full(4, 0.25), np.array([0.7]))
    array([4.])
    """
    order = np.argsort(h, axis=0)
    values = np.take_along_axis(h, order, axis=0).astype(np.float64)
    scale = np.max(np.abs(values), axis=0)
    beyond = 1e-3 * scale  # beyond the last row, any t would do
    values = np.vstack([values[0] - beyond, values, values[-1] + beyond])
    below = np.vstack([np.zeros(theta.size), np.cumsum(omega[order], axis=0)])
    # values closer than this are equal: their order is due to rounding
    stray = np.where(np.diff(values, axis=0) > 1e-10 * scale, np.abs(below - theta), np.inf)
    place, column = np.argmin(stray, axis=0), np.arange(theta.size)
    return np.asarray(0.5 * (values[place, column] + values[place + 1, column]))


# -------------------------------------------------------------------------------------------------- decisions
def decision_shift(held_out: HeldOut, fits: HeldOutFits, measure: Measure, positive: HostArray) -> Shift:
    """The shift of decisions after which they flip where P(y = 1 | h(x)(θ)) = (1 − θ)/2.

    The probability is a logistic function of h(x)(θ) (Platt, 1999), or of its normal scores, fitted to held-out values
    at every node. The likelihood selects one of the two. If classes are well separated, h itself is better. If they
    overlap, h is −1 for most rows, and its ranks are more informative. The shift is added to h, not to a threshold.

    Parameters
    ----------
    held_out : HeldOut
    fits : HeldOutFits
    measure : Measure
        μ on the trade-offs.
    positive : ndarray (n,) of bool
        The class of each row of the problem.
    """
    problem, field, omega = held_out.problem, held_out.field, fits.omega
    levels = threshold_levels(problem, field, measure, EXTREME_TRADE_OFFS)
    nodes = np.unique(problem.quadrature.nodes[:, 0])
    h = fits.on_scale_of(field, nodes)
    p = np.clip(0.5 * (1.0 - levels), 1e-12, 1.0 - 1e-12)
    # a decision that never flips gets a value far beyond the largest |h|
    farthest = 10.0 * (1.0 + float(np.max(np.abs(h))))
    scales = [Scale.of(h, omega, by_order) for by_order in (False, True)]
    lines = [logistic_lines(scale.scores, positive[fits.rows], omega, fits.count) for scale in scales]
    best = int(np.argmin([np.sum(loss) for *_, loss in lines]))
    slope, intercept = (np.interp(levels, nodes, line) for line in lines[best][:2])
    rise = logit(p) - intercept
    # without information in h, the decision is that of the base rate
    score = np.divide(rise, slope, out=np.copysign(np.inf, rise), where=slope > 0.0)
    flips = []
    for part in row_blocks(levels.size, fits.rows.size):
        scale = Scale.of(fits.on_scale_of(field, levels[part]), omega, scales[best].by_order)
        flips.append(scale.values(score[part]))
    return Shift(levels, -np.clip(np.concatenate(flips), -farthest, farthest))
