"""Support vector regression: θ is the half-width ε of the tube."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self, final

from infinitask.losses import EpsilonInsensitive, Loss
from infinitask.measures import Measure, Uniform
from infinitask.tasks.base import Defaults, Task

WIDEST_TUBE = 2.0
"""The largest half-width by default, in units of the spread of y."""


@final
@dataclass(frozen=True, eq=False)
class EpsilonTask(Task):
    """h(x)(θ) is the regression that ignores errors up to θ: the ε-insensitive loss."""

    loss: Loss = field(default_factory=EpsilonInsensitive)
    measure: Measure = field(default_factory=Uniform)

    defaults: ClassVar[Defaults] = Defaults(ridge=0.8)
    """As of the pinball loss, which is as flat."""

    def up_to(self, spread: float) -> Self:
        """The task for tubes of targets with this spread."""
        return replace(self, measure=Uniform(0.0, WIDEST_TUBE * spread))
