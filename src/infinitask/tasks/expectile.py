"""Conditional expectiles: θ is a level in (0, 1)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import final

from infinitask.losses import Expectile, Loss
from infinitask.measures import Measure, Uniform
from infinitask.tasks.base import Task


@final
@dataclass(frozen=True, eq=False)
class ExpectileTask(Task):
    """Expectile regression with the asymmetric squared loss: h(x)(θ) is the expectile of level θ of y given x."""

    loss: Loss = field(default_factory=Expectile)
    measure: Measure = field(default_factory=partial(Uniform, 0.0, 1.0))
