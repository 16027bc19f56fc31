r"""Leave-one-out of one-class machines in closed form, from one fit.

If every node has an h of its own, h_j = Σ_i a_ij k(·, x_i) with 0 ≤ a_ij ≤ ω_i/(λθ_j) is a one-class machine. Without
row i the other rows on its boundary, F = {0 < a < bound}, take over the coefficient of the row. With M = [[K_FF, 1],
[1ᵀ, 0]], bordered by the threshold t, and m_i = (k_iF, 1), h − t then falls at x_i by a_i S_i²,

.. math:: S_i^2 = 1 / (M^{-1})_{ii} \text{ on the boundary}, \qquad
    S_i^2 = k_{ii} - m_i^\top M^{-1} m_i \text{ outside},

the span of Vapnik and Chapelle (2000), and does not change inside. Rows that reach the boundary on the way join it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from infinitask._base.arrays import HostArray, to_host
from infinitask.features import NodeMap
from infinitask.field import Field, Problem
from infinitask.solvers import Solution
from infinitask.solvers._one_class_path import JITTER

WRONG = 1e-2
"""The closed form is refused if Σ a k differs from h by more than this fraction of the largest |h − t| of a node."""

JOINS = 4
"""The number of rows that may join the boundary in place of a row. Without any, the fraction outside at ν = 0.05 is
0.025 with 200 rows in the plane."""

MANY = 0.8
"""The closed form is refused if a larger fraction of the rows moves on the boundary of a node. If all of 500 rows do,
the fraction outside at ν = 0.05 is 0."""


@final
@dataclass(frozen=True, eq=False)
class LeftOut:
    """h − t at every row by the fit without one copy of it.

    Parameters
    ----------
    field : Field
        The fit of all rows.
    rows : ndarray (n, r)
        φ of the rows.
    nodes : ndarray (m,)
    change : ndarray (n, m)
        The change of h − t at the nodes without the row; it is linear between them, and never positive.
    """

    field: Field
    rows: HostArray
    nodes: HostArray
    change: HostArray

    def values(self, levels: HostArray) -> HostArray:
        """h − t at the levels, (n, q)."""
        order = np.argsort(self.nodes)
        change = self.change[:, order] @ NodeMap(self.nodes[order])(levels).T
        return np.asarray(self.rows @ (self.field.coef @ self.field.psi(levels).T) + self.field.bias(levels) + change)


def leave_one_out(problem: Problem, solution: Solution, copies: HostArray) -> LeftOut | None:
    """Return h − t at every row without one copy of the row.

    Parameters
    ----------
    problem : Problem
    solution : Solution
        With its dual point.
    copies : ndarray (n,)
        The number of equal rows that each row represents.

    Returns
    -------
    LeftOut or None
        None if the closed form does not hold: nodes share their h, the dual point is unknown or not that of h, or a
        boundary has too many rows.
    """
    objective, at = problem.objective, solution.dual_at
    if not objective.one_class or at is None or at.smoothing.centre is None:
        return None
    rows, theta = np.asarray(objective.rows), np.ravel(objective.host_integrals[0].theta)
    omega = to_host(objective.sample_weight).astype(np.float64)[:, None]
    a, bound = omega * to_host(at.smoothing.centre[0]) / objective.alpha, omega / (objective.alpha * theta)
    boundary = np.minimum(a, bound - a) > 1e-6 * bound  # the rounding of a coefficient on a bound
    above = problem.values(solution.z, slice(None))
    field = problem.field(solution.z)
    # what the other copies of a row cannot take over
    lost = np.maximum(a - (1.0 - 1.0 / copies[:, None]) * bound, 0.0)
    wrong = np.max(np.abs(rows @ (rows.T @ a) + field.bias(theta) - above), axis=0)
    many = np.mean(boundary & (lost > 0.0), axis=0) > MANY
    if np.any(many | (wrong > WRONG * np.max(np.abs(above), axis=0))):
        return None
    K = rows @ rows.T if objective.gram is None else objective.gram
    columns = zip(boundary.T, lost.T, above.T, strict=True)
    change = np.column_stack([-_falls(K, np.flatnonzero(own), *rest) for own, *rest in columns])
    return LeftOut(field, rows, theta, change)


def _falls(K: HostArray, F: HostArray, lost: HostArray, above: HostArray) -> HostArray:
    """Return by how much h − t falls at each row of one machine without it, (n,); ``above`` is h − t."""
    fall = np.zeros_like(lost)
    if F.size == 0:
        return fall
    M = np.zeros((F.size + 1, F.size + 1))
    M[:, :-1] = _bordered(K, F, F)
    M[:-1, -1] = 1.0
    M[np.diag_indices(F.size)] += JITTER * np.max(np.diagonal(K))
    inverse = np.linalg.inv(M)
    outside = np.setdiff1d(np.flatnonzero(lost > 0.0), F)
    m = _bordered(K, F, outside)
    fall[outside] = lost[outside] * np.maximum(K[outside, outside] - np.sum(m * (inverse @ m), axis=0), 0.0)
    fall[F] = _on_boundary(K, F, inverse, lost[F], above)
    return fall


def _on_boundary(K: HostArray, F: HostArray, inverse: HostArray, lost: HostArray, above: HostArray) -> HostArray:
    """Return the falls of the rows on the boundary, (|F|,).

    While the coefficient of row i is taken away, h − t falls at x_i at the rate S², and at other rows at the inner
    product of their features with the part of φ(x_i) outside the span. A row inside that reaches the boundary joins the
    span, one after the other. Rows that leave the boundary are not followed.
    """
    # a row alone on the boundary has no span: the distance of two rows is at most this
    span = 1.0 / np.maximum(np.diagonal(inverse)[:-1], 0.25 / np.max(np.diagonal(K)))
    inside = np.setdiff1d(np.flatnonzero(above > 0.0), F)
    m = _bordered(K, F, inside)
    rate = span[:, None] * (inverse @ m)[:-1]
    reached = np.any(rate * lost[:, None] > above[inside], axis=0)
    if not np.any(reached):
        return np.asarray(lost * span)
    inside, m, rate = inside[reached], m[:, reached], rate[:, reached]
    # inner products of the features of the rows inside, without their parts in the span
    left, own = K[np.ix_(inside, inside)] - m.T @ inverse @ m, rate / np.sqrt(span)[:, None]
    size = np.diagonal(left) + own**2
    joined: list[HostArray] = []
    fall, height, every = np.zeros_like(lost), np.tile(above[inside], (F.size, 1)), np.arange(F.size)
    for _ in range(JOINS):
        times = np.divide(height, rate, out=np.full_like(rate, np.inf), where=rate > 1e-9)
        first = np.argmin(times, axis=1)
        step = np.minimum(times[every, first], lost)
        fall, lost, height = fall + step * span, lost - step, height - step[:, None] * rate
        product = left[first] + own[every, first][:, None] * own - sum(f[every, first][:, None] * f for f in joined)
        length = np.sqrt(np.maximum(size[every, first], 1e-9))
        joined.append(product / length[:, None])
        new = rate[every, first] / length
        span, size = np.maximum(span - new**2, 0.0), np.maximum(size - joined[-1] ** 2, 0.0)
        rate = rate - new[:, None] * joined[-1]
    return np.asarray(fall + lost * span)


def _bordered(K: HostArray, F: HostArray, rows: HostArray) -> HostArray:
    """Return the columns (k_iF, 1) of some rows, (|F| + 1, rows)."""
    return np.vstack([K[np.ix_(F, rows)], np.ones(rows.size)])
