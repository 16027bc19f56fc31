"""The progress of a self-tuned model: what is done, how long the rest takes, and how much time remains to compare."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Mapping
from math import inf

from sklearn.exceptions import ConvergenceWarning

from infinitask._base.budget import Budget, OutOfTimeError
from infinitask._base.events import Chosen, CutShort, Event, Stage, Tried, Trying, tell
from infinitask.tuning._defaults import RANKS

LEAST, SAFETY = 0.2, 1.5
"""The comparison, the final fit and its calibration each have at least this fraction of the time, although it may be
over. The factor on the estimate of the final fit and its calibration."""


class Forecast:
    """An estimate of the time left in a run of several stages.

    The costs of the stages relative to each other are known approximately, in any unit. A completed part determines
    how long a unit takes; a unit of an earlier stage counts half as much as one of the next.

    Parameters
    ----------
    costs : mapping
        The expected cost of each stage, in their order.
    clock : callable
        Returns seconds.

    Examples
    --------
    >>> now = [0.0]
    >>> forecast = Forecast({"race": 2.0, "fit": 1.0}, lambda: now[0])
    >>> forecast.begin("race")
    >>> now[0] = 30.0
    >>> forecast.done(0.5)
    >>> forecast.left
    60.0
    """

    def __init__(self, costs: Mapping[str, float], clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.costs = dict(costs)
        self.stage: str | None = None
        self._begun = self._at = clock()
        self._fraction = 0.0
        self._seconds, self._work = 0.0, 0.0

    def begin(self, stage: str | None) -> None:
        """Begin a stage; the previous one is complete, and stages in between are skipped."""
        self.done(1.0)
        self._seconds, self._work = self._known()
        names = list(self.costs)
        known = names.index(stage) if stage in names else len(names)
        self.costs = {name: self.costs[name] for name in names[known:]}
        self.stage, self._fraction, self._begun, self._at = stage, 0.0, self.clock(), self.clock()

    def done(self, fraction: float) -> None:
        """A fraction of the current stage is complete."""
        self._fraction, self._at = fraction, self.clock()

    def _known(self) -> tuple[float, float]:
        """The seconds and the work that are complete, earlier stages with less weight."""
        work = self._fraction * self.costs.get(self.stage or "", 0.0)
        if work <= 0.0:
            return self._seconds, self._work
        return 0.5 * self._seconds + self._at - self._begun, 0.5 * self._work + work

    @property
    def pace(self) -> float | None:
        """Seconds per unit of cost; None if nothing is complete."""
        seconds, work = self._known()
        return seconds / work if work > 0.0 else None

    def seconds(self, *stages: str) -> float | None:
        """The expected seconds of some stages; None if nothing is complete."""
        pace = self.pace
        return None if pace is None else pace * sum(self.costs.get(stage, 0.0) for stage in stages)

    @property
    def left(self) -> float | None:
        """The expected seconds until the end of all stages; None if nothing is complete."""
        later = self.seconds(*(name for name in self.costs if name != self.stage))
        own = self.seconds(self.stage) if self.stage is not None else 0.0
        if later is None or own is None:
            return None
        since = self.clock() - self._at
        if self._fraction > 0.0:
            own = (self._at - self._begun) / self._fraction
        return later + max((1.0 - self._fraction) * own - since, 0.0)


class Progress:
    """Progress reports of a self-tuned model: lines on standard error, and events for a listener.

    Parameters
    ----------
    name : str
        The name of the model.
    verbose : int
        0: silent.
    seconds : float or None
        The seconds that the whole run may take; None: no limit.
    """

    LAST = ("kernel", "fit", "calibration")
    """The stages after the comparison."""

    def __init__(self, name: str, verbose: int, seconds: float | None = None) -> None:
        self.name, self.verbose = name, verbose
        self.seconds = inf if seconds is None else float(seconds)
        self.budget, self.forecast = Budget(self.seconds), Forecast({})
        self._begun = time.monotonic()

    # ------------------------------------------------------------------------------------------------------ the time
    def expect(self, costs: Mapping[str, float]) -> None:
        """Set the expected costs of the stages that have not begun, relative to each other."""
        self.forecast.costs |= costs

    def expect_next(self, stage: str, ratio: float) -> None:
        """Insert a stage after the current one, with a cost relative to it."""
        costs, current = self.forecast.costs, self.forecast.stage or ""
        cost = costs.get(current, 0.0)
        later = {name: each for name, each in costs.items() if name != current}
        self.forecast.costs = {current: cost, stage: ratio * cost} | later

    def comparing(self) -> Budget:
        """The time left for comparisons: without what the final fit and its calibration are expected to take."""
        if self.seconds == inf:
            return Budget()
        last = self.forecast.seconds(*self.LAST)
        if last is None:  # the costs are seconds of one thread
            last = sum(self.forecast.costs.get(stage, 0.0) for stage in self.LAST)
        return self.budget.before(min(SAFETY * last, (1.0 - LEAST) * self.seconds))

    def worthwhile(self, stage: str) -> bool:
        """Whether a stage of the comparison is expected to end in time."""
        expected = self.forecast.seconds(stage)
        return expected is None or expected <= self.comparing().left

    def finishing(self, *, keeps_best: bool) -> Budget:
        """The time of the final fit: what is left without the calibration, but at least some."""
        if self.seconds == inf:
            return Budget(keeps_best=keeps_best)
        return Budget(max(self.budget.left - LEAST * self.seconds, LEAST * self.seconds), keeps_best=keeps_best)

    def calibrating(self) -> Budget:
        """The time of the calibration: what is left, but at least some."""
        return Budget(max(self.budget.left, LEAST * self.seconds))

    def rank_in_time(self, n: int) -> int | None:
        """The number of landmarks for n rows whose fit is expected to end in time; None if the usual number is."""
        expected, left = self.forecast.seconds("fit"), self.finishing(keeps_best=False).left
        if expected is None or SAFETY * expected <= left:
            return None
        return min(n, max(RANKS[0], int(RANKS[1] * left / (SAFETY * expected))))

    # --------------------------------------------------------------------------------------------------- the reports
    def begin(self, stage: str, line: str, event: type[Stage | Chosen] = Stage) -> None:
        """Begin a stage, and report it."""
        self.forecast.begin(stage)
        tell(event(line))
        self._print(line)

    def say(self, line: str) -> None:
        """Report a line within a stage."""
        tell(Stage(line))
        self._print(line)

    def stopped(
        self, stop: KeyboardInterrupt | OutOfTimeError, *, keeps_best: bool, then: str = "the best so far is taken"
    ) -> None:
        """Report why a comparison ends early; an interrupt is raised again unless the best is kept."""
        if isinstance(stop, KeyboardInterrupt) and not keeps_best:
            raise stop
        self.cut_short(then, interrupted=isinstance(stop, KeyboardInterrupt))

    def nothing_compared(self, stop: KeyboardInterrupt | OutOfTimeError, *, keeps_best: bool) -> None:
        """Report that a comparison ends before it has compared any kernel; if there was no time, a warning says so."""
        self.stopped(stop, keeps_best=keeps_best, then="nothing was compared, the default is taken")
        if isinstance(stop, OutOfTimeError):
            warnings.warn(
                f"{self.name}: max_seconds={self.seconds:g} ended the comparison before its first kernel; the model is "
                "the default. Allow more time.",
                ConvergenceWarning,
                stacklevel=2,
            )

    def cut_short(self, then: str, *, interrupted: bool) -> None:
        """Report that a stage ends early, and what follows."""
        line = f"{'interrupted' if interrupted else 'out of time'}: {then}"
        tell(CutShort(line, interrupted))
        self._print(line)

    def heard(self, event: Event) -> None:
        """Report a held-out fit of the calibration, which is a part of the final fit."""
        if isinstance(event, Stage) and event.done is not None:
            if self.forecast.stage != "calibration":
                self.forecast.begin("calibration")
            self.forecast.done(event.done)
            self._print(event.text)

    def ranked(self, fraction: float) -> None:
        """A fraction of the ranking is complete; raise an error if the time for comparisons is over."""
        self.forecast.done(fraction)
        self.comparing().check()

    def trying(self, count: int, total: int | None, kernel: str) -> None:
        """Send an event: a kernel is about to be tried."""
        tell(Trying(count, total, kernel))

    def visited(self, count: int, total: int, ridges: int) -> None:
        """Report how many λ of a kernel have been tried; most paths have three to six."""
        self.forecast.done((count - 0.7**ridges) / total)

    def tried(
        self, count: int, total: int | None, kernel: str, loss: float, best: float, of: int | None = None
    ) -> None:
        """Report a kernel that was tried, its loss, and the best so far.

        ``of`` is the expected total, if the total is not known.
        """
        event: Event = Tried(count, total, kernel, loss, best)
        tell(event)
        self.forecast.done(min(1.0, count / (of or total or count)))
        counted = f"kernel {count}" if total is None else f"{count} of {total} kernels"
        self._print(f"{counted}, {kernel}: loss {loss:.4g}, best {best:.4g}")

    def _print(self, line: str) -> None:
        if self.verbose:
            left = self.forecast.left
            rest = "" if left is None else f"; about {left:.0f} s left"
            print(f"{self.name}: {time.monotonic() - self._begun:6.1f} s  {line}{rest}", file=sys.stderr, flush=True)
