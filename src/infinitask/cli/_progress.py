"""What a person sees while a fit works: what it does, how far it is, the certified gap, and the time."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from rich.console import Console, RenderableType
from rich.progress import Progress, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeElapsedColumn
from rich.progress_bar import ProgressBar
from rich.table import Column
from rich.text import Text

from infinitask._base.events import Chosen, CutShort, Event, Solving, Stage, Tried, Trying, listening

REFRESH = 0.1
"""Seconds between two changes of the line: a solver tells of thousands of evaluations in a second."""

LONGEST = 36
"""Characters of what is done now, so that the line fits a screen of 80 columns."""


class ProgressLine:
    """One line on a terminal about the work that goes on, and a clock that ends a comparison.

    Parameters
    ----------
    console : Console
    text : str
        What is done.
    shown : bool
        Whether there is a line at all.
    seconds : float or None
        After this time a comparison ends with the best so far, at least one; None: it ends by itself.
    """

    def __init__(self, console: Console, text: str, *, shown: bool, seconds: float | None = None) -> None:
        self.text, self.seconds = text, seconds
        self.tried = 0
        self.cut_short = self.ran_out = False
        self._begun, self._next = time.perf_counter(), 0.0
        self._stage = self._detail = ""
        fields: dict[str, Any] = {"of": None, "done": 0, "detail": ""}
        column = Column(max_width=LONGEST, no_wrap=True, overflow="ellipsis")
        self._bar = (
            Progress(
                SpinnerColumn(),
                TextColumn("{task.description}", markup=False, table_column=column),
                _Bar(),
                TextColumn("[dim]{task.fields[detail]}"),
                TimeElapsedColumn(),
                console=console,
                transient=True,
            )
            if shown
            else None
        )
        self._task = None if self._bar is None else self._bar.add_task(text, total=None, **fields)

    @contextmanager
    def working(self) -> Iterator[None]:
        """Show the line while the work goes on."""
        with nullcontext() if self._bar is None else self._bar, listening(self._heard):
            yield

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return time.perf_counter() - self._begun

    def _heard(self, event: Event) -> None:
        if isinstance(event, Trying):
            if self.seconds is not None and self.tried and self.elapsed > self.seconds:
                self.ran_out = True
                raise KeyboardInterrupt
            self._stage = f"trying {event.name}" if event.name else f"trial {event.count}"
            self._show(event.count - 1, event.total, now=True)
        elif isinstance(event, Tried):
            self.tried += 1
            self._detail = f"{event.count} done, best {event.best:.4g}"
            self._show(event.count, event.total, now=True)
        elif isinstance(event, (Stage, Chosen)):
            self._stage = event.text if isinstance(event, Stage) else "fitting the best to all rows"
            self._detail = ""
            self._show(now=True)
        elif isinstance(event, CutShort):
            self.cut_short, self._stage = True, "interrupted, fitting the best so far"
            self._show(now=True)
        elif isinstance(event, Solving) and not self._stage.startswith("try"):
            self._detail = f"gap {event.gap:.0e}, {event.tol:.0e} wanted" if math.isfinite(event.gap) else ""
            self._show()

    def _show(self, count: int = 0, total: int | None = None, *, now: bool = False) -> None:
        clock = time.perf_counter()
        if self._bar is None or self._task is None or not (now or clock >= self._next):
            return
        self._next = clock + REFRESH
        self._bar.update(self._task, description=self._stage or self.text, done=count, of=total, detail=self._detail)


class _Bar(ProgressColumn):
    """A bar where it is known how much there is to do, and nothing elsewhere.

    The whole of the work has no length: a comparison that is done is followed by a fit, and the clock must go on.
    """

    max_refresh = None

    def render(self, task: Task) -> RenderableType:
        of: int | None = task.fields["of"]
        return Text("") if of is None else ProgressBar(total=of, completed=task.fields["done"], width=12)
