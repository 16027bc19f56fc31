"""Decisions between two classes: θ ∈ [−1, 1] is the trade-off between their errors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Self, final

import numpy as np

from infinitask._base.arrays import Array, HostArray, to_host
from infinitask.calibration._thresholds import Shift, decision_shift
from infinitask.calibration.held_out import HeldOut
from infinitask.losses import CostSensitiveHinge, Loss
from infinitask.measures import Measure, Uniform
from infinitask.tasks.base import FEWEST_ROWS, ROUGH_GAP, Defaults, Learnt, Task, some_rows

if TYPE_CHECKING:
    from infinitask.fitting import Fit


@final
@dataclass(frozen=True, eq=False)
class CostTask(Task):
    """Cost-sensitive decisions, the sign of h(x)(θ): a false negative costs (1 + θ)/2 and a false positive (1 − θ)/2.

    Parameters
    ----------
    calibrated : bool
        Whether decisions flip at probability (1 − θ)/2 of the positive class, calibrated on held-out rows.
    """

    loss: Loss = field(default_factory=CostSensitiveHinge)
    measure: Measure = field(default_factory=partial(Uniform, -1.0, 1.0))
    calibrated: bool = False

    defaults: ClassVar[Defaults] = Defaults(nodes=32, tolerated_errors=0.0)
    """The few rows of a rare class cannot distinguish two λ reliably: the best one is selected."""

    @property
    def may_hold_bias(self) -> bool:
        """Whether a free bias has a tiny ridge; True if decisions are calibrated.

        Without calibration b(θ) must be free to jump near an end of Θ, as it does with rare classes.
        """
        return self.calibrated or super().may_hold_bias

    def finish(self, fit: Fit, held_out: HeldOut) -> Shift | None:
        """Return the shift of decisions, calibrated on held-out rows."""
        if not self.calibrated:
            return None
        if held_out.count < FEWEST_ROWS:
            return Shift(np.array(self.measure.support).ravel(), np.zeros(2))
        targets = fit.problem.objective.integrals[0].targets
        assert targets is not None
        positive = to_host(targets)[:, 0] > 0.0
        fits = held_out.stratified(positive.astype(np.intp), 3.0 * ROUGH_GAP, whole=True)
        return decision_shift(held_out, fits, self.measure, positive)

    def uncalibrated(self) -> Self:
        """Return the same task without calibration."""
        return replace(self, calibrated=False)

    def warnings(self, fit: Fit) -> Iterator[str]:
        """Warn if there is only one decision for all rows and trade-offs."""
        if fit.calibration is not None:
            return
        nodes = fit.quadrature.nodes
        decisions = fit.problem.values(fit.solution.z, some_rows(fit)) > 0.0
        if np.min(nodes) < 0.0 < np.max(nodes) and (np.all(decisions) or not np.any(decisions)):
            yield (
                "the decision is the same for all training rows and all θ of nodes_; the ridge outweighs the errors. "
                "Take alpha='auto', lower alpha, or set calibrated=True."
            )

    def at_levels(self, learnt: Learnt, X: Array, levels: HostArray) -> Iterator[tuple[slice, HostArray]]:
        """See :meth:`Task.at_levels`; values are shifted."""
        shift = learnt.shift(levels)
        for rows, values in super().at_levels(learnt, X, levels):
            yield rows, values + shift

    def answer(self, learnt: Learnt, X: Array, theta: HostArray) -> HostArray:
        """See :meth:`Task.answer`; values are shifted."""
        return super().answer(learnt, X, theta) + learnt.shift(theta[:, 0])

    def answer_each(self, learnt: Learnt, X: Array, theta: HostArray) -> HostArray:
        """See :meth:`Task.answer_each`; all rows are predicted at once."""
        return learnt.field.paired(X, theta) + learnt.shift(theta[:, 0])
