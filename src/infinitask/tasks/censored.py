"""Conditional quantiles of right-censored targets: for some rows y is only known to exceed a bound."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self, final

import numpy as np

from infinitask._base.arrays import HostArray, weighted_quantiles
from infinitask._base.validation import numbers
from infinitask.losses import Loss, Pinball
from infinitask.measures import Measure, Uniform
from infinitask.tasks.base import Defaults, Task
from infinitask.tasks.quantile import QuantileTask

if TYPE_CHECKING:
    from infinitask.fitting import Fit


FEW_ROWS = 0.2
"""A fit warns if the effective number of rows is below this fraction of the rows."""

HEAVY_ROWS, HEAVY_WEIGHT = 0.05, 0.5
"""A fit warns if this fraction of the rows has more than the second fraction of the weight."""

UNIDENTIFIED = 0.05
"""A fit warns if the levels that the data do not identify are more than this fraction of the measure."""

SHORTEST = 0.1
"""Levels are identified if this fraction of the rows, those with the shortest follow-up, identifies them: censored
targets at some x also bias the quantiles at others."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class KaplanMeier:
    """The survival function of the censoring time C, by the product-limit formula.

    G(t⁻) = P(C ≥ t) = ∏_{u < t} (1 − c(u)/r(u)) over the censoring times u, with c(u) the weight of the rows censored
    at u and r(u) that of the rows at risk: those with a later time, and those censored at u. A row whose event occurs
    at u is not at risk: if times are equal, events come before censorings.

    Parameters
    ----------
    times : ndarray (k,)
        The censoring times, in ascending order.
    survival : ndarray (k + 1,)
        G before the first censoring time, and from each of them on.

    Examples
    --------
    >>> import numpy as np
    >>> G = KaplanMeier.of(np.array([1.0, 2.0, 2.0, 3.0]), np.array([True, True, False, True]))
    >>> G(None, np.array([1.0, 2.0, 3.0]))  # of the two rows at risk at 2, one is censored
    array([1. , 1. , 0.5])
    """

    times: HostArray
    survival: HostArray

    @classmethod
    def of(cls, time: HostArray, event: HostArray, weight: HostArray | None = None) -> Self:
        """Estimate G from times (n,), whether their events were observed (n,), and weights (n,), by default equal."""
        weight = np.ones(np.shape(time)) if weight is None else weight
        values, place = np.unique(time, return_inverse=True)
        total = np.bincount(place, weights=weight)
        censored = np.bincount(place, weights=np.where(event, 0.0, weight))
        later = np.append(np.cumsum(total[::-1])[::-1][1:], 0.0)
        there = censored > 0.0
        stay = later[there] / (later[there] + censored[there])
        return cls(values[there], np.append(1.0, np.cumprod(stay)))

    def __repr__(self) -> str:
        return f"KaplanMeier({self.times.size} censoring times)"

    def __call__(self, X: Any, time: HostArray) -> HostArray:
        """Return G(t⁻) for times (n,); it is the same for every x."""
        return np.asarray(self.survival[np.searchsorted(self.times, time, side="left")])


@final
@dataclass(frozen=True, eq=False)
class Censoring:
    """The censoring of a sample, and the weights of rows that result from it.

    The horizon τ(x) is the largest event time t with G(t⁻ | x) ≥ floor. A row is complete if its event was observed or
    if its time reaches the horizon. It has the target min(t, τ(x)) and the weight 1/G(min(t, τ(x))⁻ | x); all
    other rows have weight 0. Quantiles below the horizon are those of the uncensored target, and quantiles
    beyond it are unknown.

    Parameters
    ----------
    survival : callable (X, t) → ndarray (n,)
        G(t⁻ | x) = P(C ≥ t | x).
    floor : float
        The smallest G used as a divisor.
    events : ndarray (k,)
        The event times, in ascending order; the last one is infinite if no row is known to exceed it.
    horizon : float
        The largest τ(x) that a row is known to exceed; infinite if there is no such row.
    average : float
        The fraction of the weight at or below the horizon.
    identified : float
        The same for the tenth of the rows with the shortest follow-up, if that is less: quantiles of higher levels are
        not identified.
    effective : float
        (Σw)²/Σw², the number of equally weighted rows that is equivalent to the complete rows.
    rows : float
        The same for the weights without censoring: the number of rows, if all weights are equal.
    heavy : float
        The fraction of the weight on the heaviest twentieth of the complete rows.
    censored : float
        The fraction of rows whose event was not observed.
    """

    survival: Callable[[Any, HostArray], HostArray]
    floor: float
    events: HostArray
    horizon: float = np.inf
    average: float = 1.0
    identified: float = 1.0
    effective: float = np.inf
    rows: float = np.inf
    heavy: float = 0.0
    censored: float = 0.0

    @classmethod
    def of(cls, survival: Any, floor: float, X: Any, time: HostArray, event: HostArray, weight: HostArray) -> Self:
        """Compute it from rows X (n, d), times (n,), whether their events were observed (n,), and weights (n,).

        ``survival`` is G, or None for the Kaplan–Meier estimate from these rows.
        """
        weight = weight / np.max(weight)  # no sum can overflow
        counted = weight > 0.0
        events = np.unique(time[event & counted])
        if events.size == 0:
            raise ValueError(
                "event is False for every row that counts; at least one event must be observed. True means that the "
                "event was seen, False that the row was censored: check that the indicator is not inverted."
            )
        if not np.any(counted & ((time > events[-1]) | ((time == events[-1]) & ~event))):
            events = np.append(events[:-1], np.inf)
        found = cls(KaplanMeier.of(time, event, weight) if survival is None else survival, floor, events)
        first = np.full(time.shape, np.min(time[event & counted]))
        if not np.any(found._survival(X, first)[counted] >= floor):
            raise ValueError(
                f"The first event occurs at {first[0]:g}, which less than floor={floor:g} of the rows reach "
                "uncensored. Use a smaller floor, or rows with a longer follow-up."
            )
        if survival is not None:
            found._check_decreasing(X, time)
        horizon = found._horizons(X, time)
        _, w = found.complete(X, time, event, weight)
        total, heaviest = np.sum(w), np.sort(w[w > 0.0])[::-1]
        few = max(int(HEAVY_ROWS * heaviest.size), 1)
        beyond = (time > horizon) | ((time == horizon) & ~event)
        exceeded = horizon[beyond & counted]
        short = horizon <= weighted_quantiles(horizon[counted], weight[counted] / np.sum(weight), np.array([SHORTEST]))
        groups = [rows for rows in (counted, short) if np.any(w[rows] > 0.0)]
        identified = [np.sum(w[rows & ~beyond]) / np.sum(w[rows]) for rows in groups]
        return replace(
            found,
            horizon=float(np.max(exceeded)) if exceeded.size else np.inf,
            average=float(identified[0]),
            identified=float(min(identified)),
            effective=_effective(w),
            rows=_effective(weight),
            heavy=float(np.sum(heaviest[:few]) / total),
            censored=float(np.sum(weight[~event]) / np.sum(weight)),
        )

    def complete(self, X: Any, time: HostArray, event: HostArray, weight: HostArray) -> tuple[HostArray, HostArray]:
        """Return the targets (n,) and weights (n,) of rows; the weight of an incomplete row is 0."""
        horizon = self._horizons(X, time)
        target = np.minimum(time, horizon)
        seen = event | (time >= horizon)
        return target, np.where(seen, weight / np.maximum(self._survival(X, target), self.floor), 0.0)

    def _survival(self, X: Any, time: HostArray) -> HostArray:
        """Check and return G(t⁻ | x)."""
        found = numbers("censoring(X, t)", self.survival(X, time))
        if found.shape != time.shape or not np.all((found >= 0.0) & (found <= 1.0)):
            raise ValueError(
                f"censoring(X, t) gave an array of shape {found.shape} with values from {np.min(found):g} to "
                f"{np.max(found):g} for {time.size} rows; it must give P(C ≥ t | x) in [0, 1], one number for each row."
            )
        return found

    def _check_decreasing(self, X: Any, time: HostArray) -> None:
        """Raise an error if G increases in t."""
        times = np.quantile(time, np.linspace(0.0, 1.0, 9))
        values = np.stack([self._survival(X, np.full(time.shape, t)) for t in times])
        later, row = np.unravel_index(np.argmax(np.diff(values, axis=0)), (8, time.size))
        if values[later + 1, row] > values[later, row] + 1e-9:
            raise ValueError(
                f"censoring(X, t) rises from {values[later, row]:.3g} at t = {times[later]:.3g} to "
                f"{values[later + 1, row]:.3g} at t = {times[later + 1]:.3g} in row {row}; it must give P(C ≥ t | x), "
                "which falls with t. Of P(C < t | x), give 1 minus it."
            )

    @property
    def reason(self) -> str:
        """The reason, in words, why higher levels are not identified."""
        beyond = f"{1.0 - self.identified:.0%} of the rows"
        if self.identified < self.average:
            return f"{beyond} with the shortest follow-up outlive it"
        return f"{beyond} outlive the follow-up, which ends at {self.horizon:.4g}"

    def _horizons(self, X: Any, time: HostArray) -> HostArray:
        """Return τ(x) of each row, by bisection, because G decreases in t."""
        finite = np.append(self.events[:-1], min(self.events[-1], np.max(time)))
        low, high = np.zeros(time.shape, dtype=np.intp), np.full(time.shape, self.events.size)
        while np.any(high - low > 1):
            middle = (low + high) // 2
            reached = self._survival(X, finite[middle]) >= self.floor
            # if they are neighbours, the middle is the lower one, which is reached or the first
            low, high = np.where(reached, middle, low), np.where(reached, high, np.maximum(middle, low + 1))
        return np.asarray(self.events[low])


def _effective(weight: HostArray) -> float:
    """Return (Σw)²/Σw²."""
    return float(np.sum(weight) ** 2 / np.sum(weight**2))


@final
@dataclass(frozen=True, eq=False)
class CensoredQuantileTask(Task):
    """Quantile regression with right-censored targets: h(x)(θ) is the quantile of level θ.

    The loss is that of :class:`QuantileTask`; the rows are weighted by the inverse probability of being uncensored.

    Parameters
    ----------
    censoring : Censoring or None
        The censoring of the training rows; None before a fit.
    """

    loss: Loss = field(default_factory=Pinball)
    measure: Measure = field(default_factory=partial(Uniform, 0.0, 1.0))
    censoring: Censoring | None = None

    defaults: ClassVar[Defaults] = QuantileTask.defaults

    def warnings(self, fit: Fit) -> Iterator[str]:
        """Warn if few rows have most of the weight, or the data do not identify some levels."""
        yield from super().warnings(fit)
        found = self.censoring
        if found is None or found.censored == 0.0:
            return
        if found.effective < FEW_ROWS * found.rows or found.heavy > HEAVY_WEIGHT:
            yield (
                f"{found.censored:.0%} of the rows are censored, and the weights of the others are worth only "
                f"{found.effective:.0f} of {found.rows:.0f} equal rows; the heaviest {HEAVY_ROWS:.0%} of them hold "
                f"{found.heavy:.0%} of the weight. Use a floor above {found.floor:g}, or rows with a longer follow-up."
            )
        unknown = float(np.sum(fit.quadrature.weights[fit.quadrature.nodes[:, 0] > found.identified]))
        if unknown > UNIDENTIFIED:
            yield (
                f"quantiles of levels above {found.identified:.2g} are not identified: {found.reason}. Predictions of "
                f"these levels are lower bounds. Ask for lower levels, for instance with "
                f"measure=(0, {found.identified:.2g})."
            )
