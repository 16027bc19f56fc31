"""A posed problem: an objective, and how its unknowns become h(x)(θ)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from infinitask._base.arrays import HostArray, as_like, namespace, to_host
from infinitask.features import Features, TaskFeatures
from infinitask.field import Field
from infinitask.kernels import TaskKernel
from infinitask.losses._findings import Finding
from infinitask.measures import Quadrature
from infinitask.objective import Objective

__all__ = ["Problem"]


@dataclass(frozen=True)
class Problem:
    """A posed problem: the objective, and how its unknowns become a field."""

    objective: Objective
    quadrature: Quadrature
    phi: Features
    psi: TaskFeatures
    psi_bias: TaskFeatures | None
    task_kernel: TaskKernel
    constant: float | None
    """Value of the constant feature by which a bias with the task kernel joins φ; None if it did not."""
    finding: Finding | None = None
    """What was found wrong with the loss; None: nothing."""
    named: int = 0
    """How many of the last rows are no data: inputs that were named for the penalty on crossing, see `_integrals`."""

    def field(self, z: HostArray) -> Field:
        """Unknowns → h."""
        r, s = self.objective.shape
        C, c = z[: r * s].reshape(r, s), z[r * s :]
        if self.constant is not None:
            return Field(self.phi.map, self.psi.map, C[1:], self.psi.map, self.constant * C[0])
        bias_map = None if self.psi_bias is None else self.psi_bias.map
        return Field(self.phi.map, self.psi.map, C, bias_map, None if bias_map is None else c)

    def only(self, rows: HostArray) -> Problem:
        """The same problem with some of its rows, and all inputs that were named; the feature maps stay the same."""
        n = int(self.objective.rows.shape[0])
        rows = np.concatenate([rows, np.arange(n - self.named, n)]) if self.named else rows
        gram = None if self.phi.gram is None else self.phi.gram[np.ix_(rows, rows)]
        phi = replace(self.phi, values=self.phi.values[rows], gram=gram)
        return replace(self, objective=self.objective.only(rows), phi=phi)

    def with_ridge(self, alpha: float, alpha_bias: float) -> Problem:
        """The same problem with another λ and λ_b."""
        objective = self.objective.with_ridge(alpha, alpha_bias)
        constant = None if self.constant is None else float(np.sqrt(alpha / alpha_bias))
        if constant == self.constant:
            return replace(self, objective=objective)
        rows = self.objective.rows
        ones = as_like(np.full((rows.shape[0], 1), constant), rows)
        rows = namespace(rows).concat([ones, rows[:, 1:]], axis=1)
        return replace(self, objective=replace(objective, rows=rows), constant=constant)

    def values(self, z: HostArray, rows: Any) -> HostArray:
        """h at the nodes for some rows of the problem, (rows, m)."""
        objective, term = self.objective, self.objective.integrals[0]
        r, s = objective.shape
        phi = to_host(objective.rows[rows, :]).astype(np.float64)
        h = phi @ z[: r * s].reshape(r, s) @ to_host(term.cols).T
        return np.asarray(h if term.bias_cols is None else h + to_host(term.bias_cols) @ z[r * s :])
