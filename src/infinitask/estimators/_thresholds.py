"""The threshold that leaves out of the training rows the fraction asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from infinitask._array import HostArray, as_like, to_host
from infinitask.estimators.problem import Problem
from infinitask.field import Field

__all__ = ["Shift", "halfway"]

LEVELS = 513
"""Evenly spread levels at which the threshold is set, besides the nodes. A row that is there many times leaves all at
once, and the level at which it does is known up to the distance of two: on Spambase (35 equal rows of 2300, 1.5%) the
fraction strays by 0.008 with 513 levels, as it must by 35/2300/2, and by 0.015 with 257."""

ENTRIES = 1_000_000
"""Rows × levels that are held at a time."""

TIE = 1e-10
"""Values closer than this part of the largest count as one: their order is rounding."""


@final
@dataclass(frozen=True, eq=False)
class Shift:
    """What is added to t(θ): linear between levels.

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
    def of(cls, problem: Problem, field: Field, ends: tuple[float, float] | None) -> Shift:
        """The shift after which the rows of the problem are left out as asked.

        Given h, the θ-quantile of h(x_i)(θ) minimises E (1/θ)(t − h)₊ − t, which is all that the objective says of t
        but for its ridge: the shift makes the objective smaller, not larger, as far as it sees the data.

        Parameters
        ----------
        problem : Problem
        field : Field
            Its solution.
        ends : (float, float) or None
            The ends of Θ; None where the nodes are all there is.
        """
        nodes = problem.quadrature.nodes[:, 0]
        levels = np.unique(nodes if ends is None else np.append(nodes, np.linspace(*ends, LEVELS)))
        rows, omega = problem.objective.rows, to_host(problem.objective.sample_weight)
        coef = field.coef @ field.psi(levels).T
        size = max(1, ENTRIES // rows.shape[0])
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
