"""Density level sets: θ ∈ (0, 1] is the fraction of the data outside."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Self, final

import numpy as np

from infinitask._base.arrays import Array, HostArray, to_host
from infinitask.calibration._leave_one_out import leave_one_out
from infinitask.calibration._levels import Rearrangement
from infinitask.calibration._sign_change import sign_change
from infinitask.calibration._thresholds import Shift, held_out_quantiles, left_out_quantiles, training_quantiles
from infinitask.calibration.held_out import HeldOut
from infinitask.losses import LevelSet, Loss
from infinitask.measures import Measure, Uniform
from infinitask.penalties import IntegratedRidge, Penalty
from infinitask.tasks.base import Defaults, Learnt, Order, Task, some_rows

if TYPE_CHECKING:
    from infinitask.fitting import Fit


SORTING_LEVELS = 257
"""The number of levels at which nested sets are sorted, and between which the level of a row is interpolated."""

HELD_OUT_GAP = 1e-3
"""The duality gap of held-out fits. The ends of Θ have little weight in the objective: with 1e-2 the fraction outside
at ν = 0.05 is 0.08."""

ON_BOUNDARY = 1e-4
"""A row is on the boundary of a level set if |h − t| is below this fraction of t."""

FEWEST_ROWS = 100
"""With fewer rows, many rows on a boundary are expected."""

MANY_ON_BOUNDARY, WIDENING = 0.3, 3.0
"""If more than this fraction of the rows is on a boundary, γ is divided by the second number and the fit is
repeated."""

WIDE_BOUNDARY, WIDE_TIE = 0.5, 0.25
"""A fit warns if a larger fraction of rows is on a boundary; the second applies if at most half are distinct."""


@final
@dataclass(frozen=True, eq=False)
class LevelSetTask(Task):
    """Level sets {x: h(x)(θ) ≥ t(θ)} that exclude a fraction θ of the data; the objective rewards the threshold t = −b.

    Parameters
    ----------
    exact_fractions : "held-out", True or False
        Whether to calibrate the threshold: a fraction θ of new rows ("held-out") or of the training rows (True)
        is then outside.
    """

    loss: Loss = field(default_factory=LevelSet)
    measure: Measure = field(default_factory=partial(Uniform, 0.05, 1.0))
    penalty: Penalty = field(default_factory=IntegratedRidge)
    exact_fractions: bool | str = False

    defaults: ClassVar[Defaults] = Defaults(robust=True, width=5.0, node_gaps=5.0)
    """A narrower kernel than for regressions, robust spreads, and nodes that also determine h between them.

    The mean AUC of 12 anomaly problems is 0.88 with the median rule and 0.91 with four times its γ."""
    bias_slope: ClassVar[float] = 1.0

    @classmethod
    def over(cls, measure: Measure, **parts: object) -> Self:
        """Return the task for a measure on the fractions; raise an error if they are not in (0, 1]."""
        low, high = (float(np.ravel(end)[0]) for end in measure.support)
        if measure.dim != 1 or not (low > 0.0 and high <= 1.0):
            raise ValueError(
                f"measure={measure!r} lives on [{low:g}, {high:g}]; the fraction left out must lie in (0, 1], away "
                "from 0. Use for instance Uniform(0.01, 1)."
            )
        return cls(measure=measure, **parts)  # type: ignore[arg-type]

    # ---------------------------------------------------------------------------------------- after the fit
    def widened(self, fit: Fit) -> float | None:
        """Return the factor of γ for a wider kernel if many rows are on a boundary.

        With one feature a narrow kernel can be flat wherever there are rows, and rounding determines which of them are
        outside.
        """
        few = fit.problem.objective.rows.shape[0] < FEWEST_ROWS
        return None if few or np.max(_on_boundary(fit)) <= MANY_ON_BOUNDARY else 1.0 / WIDENING

    def finish(self, fit: Fit, held_out: HeldOut) -> Shift | None:
        """Return the shift of the threshold."""
        if not self.exact_fractions:
            return None
        # if there are many rows, those of a sample are as good as new rows
        if self.exact_fractions is True or held_out.sampled or held_out.count < 2:
            return training_quantiles(fit.problem, fit.field, self.measure)
        left_out = leave_one_out(held_out.problem, held_out.solution, held_out.copies)
        if left_out is not None:
            return left_out_quantiles(held_out, left_out, self.measure)
        return held_out_quantiles(held_out, held_out.fits(max(held_out.tol, HELD_OUT_GAP)), self.measure)

    def uncalibrated(self) -> Self:
        """Return the same task without calibration and order."""
        return replace(self, exact_fractions=False, order=Order())

    def warnings(self, fit: Fit) -> Iterator[str]:
        """Warn if many rows are on a boundary."""
        if fit.n_rows < FEWEST_ROWS:
            return
        fraction = _on_boundary(fit)
        worst = int(np.argmax(fraction))
        told = (
            f"at ν = {fit.quadrature.nodes[worst, 0]:.2g}, {fraction[worst]:.0%} of the training rows lie on the "
            "boundary of the set itself, to the accuracy of the fit"
        )
        distinct = int(fit.problem.objective.rows.shape[0])
        # equal rows were merged within the sample, not among all rows
        posed = fit.n_rows if fit.n_sampled is None else fit.n_sampled
        if posed >= 2.0 * distinct and fraction[worst] > WIDE_TIE:
            rows = f"the {posed:.0f} rows" + ("" if fit.n_sampled is None else " of the sample")
            yield (
                f"{told}: {rows} are only {distinct} different ones, and equal rows fall to one side together, so that "
                "the fraction outside can be far from ν. Add features in which these rows differ, or count how often "
                "each of them occurs instead."
            )
        elif fraction[worst] > WIDE_BOUNDARY:
            yield (
                f"{told}; rounding decides their side, and so the fraction outside, as in any one-class SVM whose "
                "kernel is too narrow for the data, or cannot enclose them. Try a smaller gamma, or another kernel."
            )

    # ------------------------------------------------------------------------------------------- prediction
    def sorting_levels(self, learnt: Learnt) -> HostArray:
        """Return the levels at which curves are sorted; for few fractions only these, as h is arbitrary elsewhere."""
        atoms = self.measure.atoms()
        return np.unique(learnt.levels(self.ends, SORTING_LEVELS) if atoms is None else atoms.nodes)

    @property
    def ends(self) -> tuple[float, float]:
        """The ends of Θ."""
        low, high = (float(np.ravel(end)[0]) for end in self.measure.support)
        return low, high

    def at_levels(self, learnt: Learnt, X: Array, levels: HostArray) -> Iterator[tuple[slice, HostArray]]:
        """Yield h − t at many levels."""
        shift = learnt.shift(levels)
        for rows, values in super().at_levels(learnt, X, levels):
            yield rows, values - shift

    def curves(self, learnt: Learnt, X: Array) -> Iterator[tuple[slice, Rearrangement]]:
        """Yield the curves θ ↦ h(x)(θ) − t(θ), in descending order for every x."""
        levels = self.sorting_levels(learnt)
        for rows, values in self.at_levels(learnt, X, levels):
            if levels.size == 1:  # one set is nested; a curve needs two points
                ends = np.append(levels, np.nextafter(levels, np.inf))
                yield rows, Rearrangement(ends, np.repeat(values, 2, axis=1), increasing=False)
            else:
                yield rows, Rearrangement.of(levels, values, increasing=False)

    def answer(self, learnt: Learnt, X: Array, theta: HostArray) -> HostArray:
        """Return h − t: nonnegative inside, and in descending order over θ if the sets are nested."""
        if not self.order.rearranged:
            return learnt.field(X, theta) - learnt.shift(theta[:, 0])
        fractions = np.clip(theta[:, 0], *self.ends)
        return np.concatenate([self._signed(curves, fractions) for _, curves in self.curves(learnt, X)])

    def leaves_at(self, curves: Rearrangement) -> HostArray:
        """Return θ*, the level at which rows with sorted curves leave the set; just below Θ if always outside."""
        low, high = self.ends
        found = np.clip(sign_change(curves.levels, curves.values), low, high)
        return np.asarray(np.where(curves.values[:, 0] >= 0.0, found, np.nextafter(low, -np.inf)))

    def _signed(self, curves: Rearrangement, fractions: HostArray) -> HostArray:
        """Evaluate sorted curves with exactly the sign of θ* − ν, which interpolation may round to 0."""
        values, inside = curves(fractions), fractions <= self.leaves_at(curves)[:, None]
        return np.where(inside, np.maximum(values, 0.0), np.minimum(values, np.nextafter(0.0, -1.0)))


def _on_boundary(fit: Fit) -> HostArray:
    """Return the fraction of the training rows on the boundary of the set of each node, (m,)."""
    z, rows = fit.solution.z, some_rows(fit)
    values, omega = fit.problem.values(z, rows), to_host(fit.problem.objective.sample_weight)[rows]
    mean_threshold = abs(float(fit.problem.objective.linear @ z))
    near = np.abs(values) <= ON_BOUNDARY * mean_threshold
    return np.asarray((omega @ near) / np.sum(omega))
