"""Conditional quantiles: θ is a level in (0, 1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, final

import numpy as np

from infinitask._base.arrays import Array, HostArray
from infinitask.calibration._levels import Levels, Rearrangement
from infinitask.losses import Loss, MQuantile, Pinball
from infinitask.measures import Measure, Uniform
from infinitask.tasks.base import Defaults, Learnt, Task


@final
@dataclass(frozen=True, eq=False)
class QuantileTask(Task):
    """Quantile regression with the pinball loss, or its smoothed form for M-quantiles, at levels θ.

    The order in θ prevents crossing. A map of levels (``Levels``) may calibrate
    the curves: level θ is then evaluated at the level whose quantile covers a fraction θ of held-out rows.
    """

    loss: Loss = field(default_factory=Pinball)
    measure: Measure = field(default_factory=partial(Uniform, 0.0, 1.0))

    defaults: ClassVar[Defaults] = Defaults(ridge=0.8)
    """The pinball loss on 24 data sets is smallest between 0.3 and 1; intervals are too narrow at the lower end."""
    calibrated_as: ClassVar[str] = "levels_"

    @staticmethod
    def loss_for(smoothing: float) -> Loss:
        """Return the loss of M-quantiles with this κ; 0: the loss of quantiles."""
        return MQuantile(float(smoothing)) if smoothing > 0.0 else Pinball()

    def curves(self, learnt: Learnt, X: Array) -> Iterator[tuple[slice, Rearrangement]]:
        """See :meth:`Task.curves`; the curves are calibrated."""
        levels: Levels | None = learnt.calibration
        for rows, curves in super().curves(learnt, X):
            yield rows, curves if levels is None else levels.curves(curves)

    def answer(self, learnt: Learnt, X: Array, theta: HostArray) -> HostArray:
        """See :meth:`Task.answer`; the values are calibrated."""
        levels: Levels | None = learnt.calibration
        if levels is None:
            return super().answer(learnt, X, theta)
        if not (self.order.rearranged or learnt.field.knows_nodes_only):
            return levels.at(partial(learnt.field, X), theta[:, 0])
        blocks = [levels.at(curves, theta[:, 0]) for _, curves in super().curves(learnt, X)]
        return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)
