"""Curves as targets: θ is the point at which a curve is observed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

from infinitask.losses import Loss, Squared
from infinitask.measures import Measure, Uniform
from infinitask.tasks.base import Defaults, Task


@final
@dataclass(frozen=True, eq=False)
class CurveTask(Task):
    """Function-valued regression: h(x)(θ) is the value at θ of the curve of x; every row has its own targets."""

    loss: Loss = field(default_factory=Squared)
    measure: Measure = field(default_factory=Uniform)

    @property
    def defaults(self) -> Defaults:  # type: ignore[override]
        """Bandwidths are selected as for the squared loss for any λ; other losses have their own λ."""
        return Defaults(any_alpha=isinstance(self.loss, Squared))
