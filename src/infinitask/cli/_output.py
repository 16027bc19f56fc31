"""Output for the user: results on standard output, progress and notes on standard error, errors as one sentence."""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import typer
from rich.console import Console, RenderableType
from rich.markup import escape
from rich.progress import Progress, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeElapsedColumn
from rich.progress_bar import ProgressBar
from rich.table import Column, Table
from rich.text import Text
from typer.core import TyperCommand

from infinitask._base.events import Chosen, CutShort, Event, Solving, Stage, Tried, Trying, listening

FAILED, INTERRUPTED = 1, 130
"""Exit codes; 0 means success and 2, set by typer, a wrong call."""

SHOW_TRACEBACKS = "INFINITASK_TRACEBACK"
"""If this environment variable is set, errors keep their traceback."""

LONGEST = 36
"""The maximum number of characters that describe the current step: the line then fits a screen of 80 columns."""


class CommandError(Exception):
    """An error that the user can do something about, as a sentence."""


class ProgressLine:
    """A terminal line that shows the progress of some work.

    Parameters
    ----------
    console : Console
    text : str
        Description of the work.
    """

    def __init__(self, console: Console, text: str) -> None:
        self.tried = 0
        self.cut_short = self.ran_out = False
        column = Column(max_width=LONGEST, no_wrap=True, overflow="ellipsis")
        self.bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False, table_column=column),
            _Bar(),
            TextColumn("[dim]{task.fields[detail]}"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )
        self._task = self.bar.add_task(text, total=None, of=None, done=0, detail="")

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return self.bar.tasks[0].elapsed or 0.0

    def heard(self, event: Event) -> None:
        """Show an event."""
        shown: dict[str, Any] = {}
        if isinstance(event, Trying):
            what = f"trying {event.name}" if event.name else f"trial {event.count}"
            shown = {"description": what, "done": event.count - 1, "of": event.total}
        elif isinstance(event, Tried):
            self.tried += 1
            shown = {"detail": f"{event.count} done, best {event.best:.4g}", "done": event.count, "of": event.total}
        elif isinstance(event, (Stage, Chosen)):
            what = event.text if isinstance(event, Stage) else "fitting the best to all rows"
            shown = {"description": what, "detail": "", "of": None}
        elif isinstance(event, CutShort):
            self.cut_short, self.ran_out = True, self.ran_out or not event.interrupted
            shown = {"description": event.text, "of": None}
        elif isinstance(event, Solving) and self.bar.tasks[0].fields["of"] is None:  # not the fit of a candidate
            shown = {"detail": f"gap {event.gap:.0e}, {event.tol:.0e} wanted" if math.isfinite(event.gap) else ""}
        self.bar.update(self._task, **shown)


class _Bar(ProgressColumn):
    """A bar if the amount of work is known, otherwise nothing.

    The total is unknown: after a comparison comes a fit, and the clock must go on.
    """

    max_refresh = None

    def render(self, task: Task) -> RenderableType:
        of: int | None = task.fields["of"]
        return Text("") if of is None else ProgressBar(total=of, completed=task.fields["done"], width=12)


class Screen:
    """The output streams of a command.

    Parameters
    ----------
    as_json : bool
        Whether standard output consists of one JSON object.
    """

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self.out, self.err = Console(highlight=False), Console(stderr=True, highlight=False)
        if not self.out.is_terminal:
            self.out.width = max(self.out.width, 160)  # tables in a file are not wrapped as on a screen
        self.notes: list[str] = []

    @property
    def shows_progress(self) -> bool:
        """Whether the progress is visible: on a terminal, and not with JSON output."""
        return self.err.is_terminal and not self.as_json

    @contextmanager
    def step(self, text: str) -> Iterator[ProgressLine]:
        """Show a line on a terminal during work that takes a while; warnings become notes.

        Parameters
        ----------
        text : str
            Description of the work.
        """
        progress = ProgressLine(self.err, text)
        line = progress.bar if self.shows_progress else nullcontext()
        with warnings.catch_warnings(record=True) as caught, line, listening(progress.heard):
            warnings.simplefilter("always")
            yield progress
        if self.shows_progress:
            self.err.print(f"[dim]{escape(text)}: {progress.elapsed:.1f} s[/dim]")
        self.note(*dict.fromkeys(str(w.message) for w in caught if issubclass(w.category, UserWarning)))

    def note(self, *sentences: str) -> None:
        """Print what the user should know about the data or the fit."""
        for sentence in sentences:
            self.notes.append(sentence)
            self.err.print(f"[yellow]note[/yellow] {escape(sentence)}", soft_wrap=True)

    def hint(self, sentence: str) -> None:
        """Print what helps only while a command runs."""
        self.err.print(f"[dim]{escape(sentence)}[/dim]", soft_wrap=True)

    def say(self, text: str) -> None:
        """Print a line of the result."""
        if not self.as_json:
            self.out.print(escape(text), soft_wrap=True)

    def table(self, head: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Print a table of results; numbers are aligned to the right."""
        if self.as_json:
            return
        shown = Table(box=None, pad_edge=False)
        for k, name in enumerate(head):
            numbers = bool(rows) and all(isinstance(row[k], (int, float)) for row in rows)
            shown.add_column(escape(name), justify="right" if numbers else "left", header_style="dim")
        for row in rows:
            shown.add_row(*(escape(formatted(value)) for value in row))
        self.out.print(shown)

    def result(self, found: Mapping[str, Any]) -> None:
        """Print the whole result as a JSON object, if requested; numbers that are not finite become null."""

        def plain(value: Any) -> Any:
            return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else str(value)

        if self.as_json:
            text = json.dumps({**found, "notes": self.notes}, default=plain)
            print(json.dumps(json.loads(text, parse_constant=lambda _: None), ensure_ascii=False, indent=2))


def formatted(value: Any) -> str:
    """Format a value for the screen; numbers have four digits, and those from 1e4 to 1e9 all before the point."""
    if isinstance(value, (float, np.floating)):
        return f"{value:,.0f}" if 1e4 <= abs(float(value)) < 1e9 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


class Command(TyperCommand):
    """A command that reports an error as one sentence on standard error, with an exit code."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except (typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except KeyboardInterrupt:
            Console(stderr=True).print("Interrupted; nothing was written.")
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:  # the reader of the output has stopped reading
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            raise typer.Exit(FAILED) from None
        except Exception as error:
            if os.environ.get(SHOW_TRACEBACKS):
                raise
            Console(stderr=True, highlight=False).print(f"[red]error[/red] {escape(sentence(error))}", soft_wrap=True)
            raise typer.Exit(FAILED) from None


def sentence(error: Exception) -> str:
    """The message of an error, on one line; if it is not a sentence, the type of the error is added."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'The output'}: {error.strerror.lower()}."
    text = " ".join(str(error).split())
    if isinstance(error, OverflowError):
        return f"A number of the table is too large ({text})."
    is_sentence = isinstance(error, (CommandError, ValueError, ImportError, TypeError)) and " " in text
    return text if is_sentence else f"{type(error).__name__}: {text}" if text else type(error).__name__
