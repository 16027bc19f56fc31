"""A threshold that is set last, so that the fraction of the training rows outside a level set is the one asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from infinitask._array import HostArray, as_like, to_host
from infinitask.field import Field
from infinitask.measures import Measure
from infinitask.problem import Problem

__all__ = ["Shift", "halfway"]

THRESHOLD_LEVELS = 513
"""Evenly spread levels at which the threshold is set, besides the nodes. Equal rows leave the set together, and the
level at which they do is known up to the distance of two levels: on Spambase (35 equal rows of 2300, 1.5%) the fraction
strays by 0.008 with 513 levels, as it must by 35/2300/2, and by 0.015 with 257."""

ENTRIES_AT_A_TIME = 1_000_000
"""Rows × levels that are held in memory."""

TIE = 1e-10
"""Values closer than this part of the largest count as equal: their order is rounding."""


@final
@dataclass(frozen=True, eq=False)
class Shift:
    """A correction of the threshold t(θ), linear between levels.

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

    @classmethod
    def of(cls, problem: Problem, field: Field, measure: Measure) -> Shift:
        """The shift after which a fraction θ of the rows of the problem lies outside.

        Given h, the θ-quantile of h(x_i)(θ) minimises E (1/θ)(t − h)₊ − t, which is all that the objective says of t
        but for its ridge: as far as it sees the data, the shift makes the objective smaller.

        Parameters
        ----------
        problem : Problem
        field : Field
            Its solution.
        measure : Measure
            μ on the fractions.
        """
        levels = problem.quadrature.nodes[:, 0]
        if measure.atoms() is None and not field.knows_nodes_only:
            low, high = (float(np.ravel(end)[0]) for end in measure.support)
            levels = np.append(levels, np.linspace(low, high, THRESHOLD_LEVELS))
        levels = np.unique(levels)
        rows, omega = problem.objective.rows, to_host(problem.objective.sample_weight)
        coef = field.coef @ field.psi(levels).T
        size = max(1, ENTRIES_AT_A_TIME // rows.shape[0])
        t = [
            halfway(to_host(rows @ as_like(coef[:, k : k + size], rows)), omega, levels[k : k + size])
            for k in range(0, levels.size, size)
        ]
        return cls(levels, np.concatenate(t) + field.bias(levels))


def halfway(h: HostArray, omega: HostArray, theta: HostArray) -> HostArray:
    """t_j, halfway between two neighbours among the h_ij, with Σ_i ω_i 1[h_ij < t_j] as near to θ_j as can be: (k,).

    Halfway, so that no row lies on the boundary and rounding decides nothing.

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
    beyond = 1e-3 * scale  # past the last row, any t would do
    values = np.vstack([values[0] - beyond, values, values[-1] + beyond])
    below = np.vstack([np.zeros(theta.size), np.cumsum(omega[order], axis=0)])
    stray = np.where(np.diff(values, axis=0) > TIE * scale, np.abs(below - theta), np.inf)
    place, column = np.argmin(stray, axis=0), np.arange(theta.size)
    return np.asarray(0.5 * (values[place, column] + values[place + 1, column]))
