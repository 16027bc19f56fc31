"""Support vector regression: θ is the half-width ε of the tube."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self, final

from infinitask.losses import EpsilonInsensitive, Loss
from infinitask.measures import Measure, Uniform
from infinitask.tasks.base import Defaults, Task

WIDEST_TUBE = 2.0
"""The default maximum of the half-width, in units of the spread of y."""


@final
@dataclass(frozen=True, eq=False)
class EpsilonTask(Task):
    """Support vector regression with the ε-insensitive loss: h(x)(θ) ignores errors up to θ."""

    loss: Loss = field(default_factory=EpsilonInsensitive)
    measure: Measure = field(default_factory=Uniform)

    defaults: ClassVar[Defaults] = Defaults(ridge=0.8)
    """The same as for the pinball loss, whose curvature is similar."""

    def up_to(self, spread: float) -> Self:
        """Return the task for tubes of targets with this spread."""
        return replace(self, measure=Uniform(0.0, WIDEST_TUBE * spread))
