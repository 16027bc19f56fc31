"""The path of ridge regressions: θ is log₁₀ of the ridge weight."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Self, final

import numpy as np

from infinitask._base.arrays import HostArray
from infinitask.losses import Loss, Squared
from infinitask.measures import Measure, Uniform
from infinitask.penalties import IntegratedRidge
from infinitask.tasks.base import Defaults, Task

DECADES = 30.0
"""The maximum of |log₁₀ λ|: beyond it, a ridge weight is lost in the rounding of any Gram matrix of ordinary size."""

MATERN_GAPS, GAUSSIAN_GAPS = 8.0, 2.5
"""The default bandwidths over log₁₀ λ, in mean gaps between nodes. Along the path every component of the fit is a
logistic curve, which the 5/2-Matérn kernel interpolates between 30 nodes to 5e-5; a wider Gaussian kernel loses the
values at the nodes to rounding."""


@final
@dataclass(frozen=True, eq=False)
class RidgePathTask(Task):
    """Kernel ridge regression with weight 10^θ, h(x)(θ): half the squared loss, and an integrated ridge."""

    loss: Loss = field(default_factory=Squared)
    measure: Measure = field(default_factory=partial(Uniform, -6.0, 1.0))

    defaults: ClassVar[Defaults] = Defaults(nodes=30, any_alpha=True)
    """One kernel is used for all λ of the path."""

    @classmethod
    def over(cls, measure: Measure) -> Self:
        """Return the task for a measure on log₁₀ λ; raise an error if it is not a path of ridge weights."""
        low, high = (float(end(edge)) for end, edge in zip((np.min, np.max), measure.support, strict=True))
        if measure.dim != 1 or not (low >= -DECADES and high <= DECADES):
            raise ValueError(
                f"measure={measure!r} lives on [{low:g}, {high:g}] in {measure.dim} dimensions; log₁₀ λ is one number "
                f"between −{DECADES:g} and {DECADES:g}. Use for instance Uniform(-6, 1)."
            )
        return cls(measure=measure, penalty=IntegratedRidge(partial(_power_of_ten, low)))

    @property
    def smallest_ridge(self) -> float:
        """10^low: the ridge is this times ρ(θ) = 10^(θ − low), and features are built for the smallest λ."""
        return float(10.0 ** float(np.min(self.measure.support[0])))

    def interpolating_gamma(self, task_kernel: Any, n_nodes: int) -> float:
        """Return γ = 1/(2σ²) of the task kernel, with σ a number of gaps between nodes; 1 for a single node."""
        low, high = (float(np.ravel(end)[0]) for end in self.measure.support)
        atoms = self.measure.atoms()
        nodes = n_nodes if atoms is None else len(atoms.nodes)
        gaussian = isinstance(task_kernel, str) and task_kernel in ("rbf", "gaussian")
        sigma = (GAUSSIAN_GAPS if gaussian else MATERN_GAPS) * (high - low) / max(1, nodes - 1)
        return 0.5 / sigma**2 if sigma > 0.0 else 1.0


def _power_of_ten(low: float, nodes: HostArray) -> HostArray:
    """Return ρ(θ) = 10^(θ − low) at the nodes (m, 1)."""
    return np.asarray(10.0 ** (nodes[:, 0] - low))
