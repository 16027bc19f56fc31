"""Run the examples of the demo: fit, draw, and sum up in one table.

The table goes to standard output, the progress to standard error.
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from infinitask.plotting import LIGHT


class ExampleError(Exception):
    """A reason why no example can run, as a sentence for the user."""


@dataclass(frozen=True)
class Size:
    """How large an example is: rows, nodes, tolerance of the fit, and points per axis of the figure."""

    n_train: int
    n_test: int
    n_nodes: int
    tol: float
    grid: int


QUICK = Size(120, 400, 12, 1e-3, 80)
"""The size of every example with ``--quick``."""


@dataclass(frozen=True)
class Example:
    """A fitted model, its result on unseen data, and a function that draws it."""

    task: str
    model: Any
    n_train: int
    seconds: float
    measure: str
    """The name of the number ``held_out``."""
    held_out: float
    filename: str
    figsize: tuple[float, float]
    draw: Callable[[Any, int], None]
    """Draws into an empty matplotlib figure, with the given number of points per axis."""

    @property
    def cells(self) -> tuple[str, ...]:
        """The row of the table."""
        r, s = self.model.field_.coef.shape
        return (
            self.task,
            f"{self.n_train} × {self.model.n_features_in_}",
            str(self.model.nodes_.size),
            f"{r} × {s}",
            str(self.model.solution_.n_evaluations),
            f"{self.model.dual_gap_:.1e}",
            f"{self.seconds:.1f}",
            f"{self.held_out:.4f} {self.measure}",
        )


@dataclass(frozen=True)
class Entry:
    """An example that can be run: its title, its full size, and the function that fits it."""

    title: str
    size: Size
    fit: Callable[[Size], Example]


def timed_fit(model: Any, *data: Any) -> tuple[Any, float]:
    """Fit; return the model and the seconds of its fit."""
    started = time.perf_counter()
    model.fit(*data)
    return model, time.perf_counter() - started


# --------------------------------------------------------------------------------------------------- the table
HEADER = ("task", "data n × d", "nodes m", "unknowns", "evaluations", "certified gap", "seconds", "on unseen data")

LEGEND = """\
unknowns        r × s coefficients that describe the whole continuum of tasks
certified gap   the objective is proven to lie within this fraction of its minimum
on unseen data  pinball loss, and cost of a wrong label, averaged over points and θ;
                |share of points outside − θ|, averaged over nine θ"""

NEXT = """\
Next: fit your own data once, then ask for any level
  from infinitask import InfiniteQuantileRegressor
  InfiniteQuantileRegressor().fit(X, y).predict(X, quantiles=[0.05, 0.5, 0.95])"""


def table(examples: Sequence[Example]) -> str:
    """One aligned row for each example."""
    rows = [HEADER, *(example.cells for example in examples)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]

    def aligned(row: tuple[str, ...]) -> str:
        middle = (cell.rjust(width) for cell, width in zip(row[1:-1], widths[1:-1], strict=True))
        return "  ".join([row[0].ljust(widths[0]), *middle, row[-1]]).rstrip()

    return "\n".join([aligned(HEADER), "  ".join("─" * width for width in widths), *map(aligned, rows[1:])])


# -------------------------------------------------------------------------------------------------- the figures
def require_matplotlib() -> None:
    """Name the extra that brings matplotlib if it is missing."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise ExampleError(
            "the figures are drawn with matplotlib, which is not installed; install the extra with "
            "`pip install infinitask[plot]`."
        ) from error


def prepare(folder: Path) -> None:
    """Make the folder and write to it once, before any time is spent on a fit."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ExampleError(
            f"the output folder {folder} cannot be written ({error.strerror}); name another one with --output."
        ) from error


def save_figure(example: Example, folder: Path, grid: int) -> Path:
    """Draw an example into a file of the folder."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    path = folder / example.filename
    with rc_context(LIGHT.settings() | {"figure.dpi": 150, "savefig.dpi": 150}):
        # A Figure without pyplot renders with Agg and leaves the backend of the session alone.
        figure = Figure(figsize=example.figsize, layout="compressed")
        example.draw(figure, grid)
        try:
            figure.savefig(path)
        except OSError as error:
            raise ExampleError(f"the figure {path} could not be written ({error.strerror}).") from error
    return path


# -------------------------------------------------------------------------------------------------- the progress
class Progress:
    """Shows the steps: on a terminal a line with running seconds, elsewhere a plain line when a step is done."""

    def __init__(self, stream: TextIO, n_steps: int) -> None:
        self._stream = stream
        self._n_steps = n_steps
        self._step = 0
        self._live = stream.isatty()

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Show the step while the body runs."""
        self._step += 1
        started = time.perf_counter()
        done = threading.Event()

        def line() -> str:
            return f"[{self._step}/{self._n_steps}] {name:<38} {time.perf_counter() - started:5.1f} s"

        def tick() -> None:
            while not done.wait(0.1):
                self._write(f"\r{line()}")

        clock = threading.Thread(target=tick, daemon=True)
        if self._live:
            self._write(f"\r{line()}")
            clock.start()
        finished = False
        try:
            yield
            finished = True
        finally:
            done.set()
            if self._live:
                clock.join()
            # The line is ended, so that the message of an error begins on a new one.
            self._write(("\r" if self._live else "") + line() + ("" if finished else "  stopped") + "\n")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


# ------------------------------------------------------------------------------------------------------- the run
def run(entries: Sequence[Entry], folder: Path, quick: bool) -> None:
    """Fit, measure and draw the examples; print the table."""
    require_matplotlib()
    prepare(folder)
    progress = Progress(sys.stderr, n_steps=2 * len(entries))
    examples, paths = [], []
    for entry in entries:
        size = QUICK if quick else entry.size
        with progress.step(f"{entry.title}: fit"):
            examples.append(entry.fit(size))
        with progress.step(f"{entry.title}: figure"):
            paths.append(save_figure(examples[-1], folder, size.grid))
    print("", table(examples), "", LEGEND, "", "Figures", *(f"  {path}" for path in paths), "", NEXT, sep="\n")


def main(entries: Sequence[Entry], arguments: Sequence[str] | None = None) -> int:
    """Run the examples as the command line says; 0 if all went well.

    Parameters
    ----------
    entries : sequence of Entry
    arguments : sequence of str or None
        The words after the command; None: those of the process.
    """
    parser = argparse.ArgumentParser(
        prog="python -m infinitask.demo",
        description="Fit three continua of tasks on built-in data, print how well it went, and draw what was learnt.",
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("figures"),
        metavar="FOLDER",
        help="where the figures go (default: ./figures)",
    )
    parser.add_argument("--quick", action="store_true", help="little data and coarse figures, for a first try")
    options = parser.parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without θ and × shows question marks
    try:
        run(entries, options.output, options.quick)
    except ExampleError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0
