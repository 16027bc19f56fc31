"""Run the examples of the demo: fit, draw, and sum up in one table.

The table goes to standard output, the progress to standard error.
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from infinitask._base.extras import needed
from infinitask.demo._examples import EXAMPLES, QUICK, Example, Result
from infinitask.plotting import LIGHT

# --------------------------------------------------------------------------------------------------- the table
HEADER = ("task", "data n × d", "nodes m", "unknowns", "evaluations", "certified gap", "seconds", "on unseen data")

LEGEND = """\
unknowns        r × s coefficients that describe the whole continuum of tasks
certified gap   the objective is proven to lie within this fraction of its minimum
on unseen data  pinball loss, and cost of a wrong label, averaged over points and θ;
                |fraction of points outside − θ|, averaged over nine θ"""

NEXT = """\
Next: fit your own data once, then ask for any level
  from infinitask import InfiniteQuantileRegressor
  InfiniteQuantileRegressor().fit(X, y).predict(X, quantiles=[0.05, 0.5, 0.95])"""


def cells(example: Example, result: Result, n_train: int) -> tuple[str, ...]:
    """The row of an example in the table."""
    model, (r, s) = result.model, result.model.field_.coef.shape
    problem = (f"{n_train} × {model.n_features_in_}", str(model.nodes_.size), f"{r} × {s}")
    solved = (str(model.solution_.n_evaluations), f"{model.dual_gap_:.1e}", f"{result.seconds:.1f}")
    return (example.task, *problem, *solved, f"{result.held_out:.4f} {example.measure}")


def table(rows: Sequence[tuple[str, ...]]) -> str:
    """One aligned row for each example."""
    rows = [HEADER, *rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]

    def aligned(row: tuple[str, ...]) -> str:
        middle = (cell.rjust(width) for cell, width in zip(row[1:-1], widths[1:-1], strict=True))
        return "  ".join([row[0].ljust(widths[0]), *middle, row[-1]]).rstrip()

    return "\n".join([aligned(HEADER), "  ".join("─" * width for width in widths), *map(aligned, rows[1:])])


# -------------------------------------------------------------------------------------------------- the figures
def save_figure(example: Example, result: Result, folder: Path, grid: int) -> Path:
    """Draw an example into a file of the folder."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    path = folder / f"{example.fit.__name__}.png"
    with rc_context(LIGHT.settings() | {"figure.dpi": 150, "savefig.dpi": 150}):
        # A Figure without pyplot renders with Agg and leaves the backend of the session alone.
        figure = Figure(figsize=(8.0, 5.4), layout="compressed")
        result.draw(figure.add_subplot(), grid)
        figure.savefig(path)
    return path


# -------------------------------------------------------------------------------------------------- the progress
@contextmanager
def progress(stream: TextIO, step: str, name: str) -> Iterator[None]:
    """Show a step of several, such as "1/6": its name before the body runs, and its seconds when it is done."""
    started, end = time.perf_counter(), "  stopped"
    print(f"[{step}] {name:<38}", end="", file=stream, flush=True)
    try:
        yield
        end = ""
    finally:  # the line is ended, so that the message of an error begins on a new one
        print(f" {time.perf_counter() - started:5.1f} s{end}", file=stream, flush=True)


# ------------------------------------------------------------------------------------------------------- the run
def run(folder: Path, quick: bool) -> None:
    """Fit, measure and draw the examples; print the table."""
    needed("matplotlib.figure", "the figures are drawn with matplotlib", "plot")
    folder.mkdir(parents=True, exist_ok=True)
    tempfile.TemporaryFile(dir=folder).close()
    rows, paths, steps = [], [], 2 * len(EXAMPLES)
    for k, example in enumerate(EXAMPLES):
        size = QUICK if quick else example.size
        with progress(sys.stderr, f"{2 * k + 1}/{steps}", f"{example.title}: fit"):
            result = example.fit(size)
        rows.append(cells(example, result, size.n_train))
        with progress(sys.stderr, f"{2 * k + 2}/{steps}", f"{example.title}: figure"):
            paths.append(save_figure(example, result, folder, size.grid))
    print("", table(rows), "", LEGEND, "", "Figures", *(f"  {path}" for path in paths), "", NEXT, sep="\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the examples as the command line says; 0 if all went well.

    Parameters
    ----------
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
        run(options.output, options.quick)
    except ImportError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        reason = f"the output folder {options.output} cannot be written ({error.strerror or error})"
        print(f"Error: {reason}; name another one with --output.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0
