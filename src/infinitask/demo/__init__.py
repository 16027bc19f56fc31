"""Three continua of tasks, learnt, measured and drawn: ``python -m infinitask.demo``.

Each example makes its data, fits one estimator, measures it on data it has not seen, and draws what it learnt. The
table on standard output sums them up; the progress display goes to standard error.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from infinitask.demo._drawing import DemoError, require_matplotlib
from infinitask.demo._examples import EXAMPLES, FULL, QUICK, Example, Size, quantile_example, save_figure
from infinitask.demo._progress import Progress

__all__ = ["FULL", "QUICK", "Progress", "main", "quantile_example", "save_figure"]


def _prepare(folder: Path) -> None:
    """Make the folder and try it, before any time is spent on fitting."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise DemoError(
            f"the output folder {folder} cannot be written ({error.strerror}); name another one with --output."
        ) from error


HEADER = ("task", "data n × d", "nodes m", "unknowns", "evaluations", "certified gap", "seconds", "on unseen data")

LEGEND = """\
unknowns        r × s coefficients that describe the whole continuum of tasks
certified gap   the objective is proven to lie within this fraction of its minimum
on unseen data  pinball loss, and cost of a wrong label, averaged over points and θ;
                |share of points outside − θ|, averaged over nine θ"""


def table(examples: Sequence[Example]) -> str:
    """The examples, one aligned row each."""
    rows = [HEADER, *(example.cells for example in examples)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]

    def aligned(row: tuple[str, ...]) -> str:
        middle = (cell.rjust(width) for cell, width in zip(row[1:-1], widths[1:-1], strict=True))
        return "  ".join([row[0].ljust(widths[0]), *middle, row[-1]]).rstrip()

    return "\n".join([aligned(HEADER), "  ".join("─" * width for width in widths), *map(aligned, rows[1:])])


def _parser() -> argparse.ArgumentParser:
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
    return parser


def _run(folder: Path, sizes: dict[str, Size]) -> None:
    require_matplotlib()
    _prepare(folder)
    progress = Progress(sys.stderr, n_steps=2 * len(EXAMPLES))
    examples, paths = [], []
    for name, (title, build) in EXAMPLES.items():
        with progress.step(f"{title}: fit"):
            examples.append(build(sizes[name]))
        with progress.step(f"{title}: figure"):
            paths.append(save_figure(examples[-1], folder, sizes[name].grid))
    print()
    print(table(examples))
    print()
    print(LEGEND)
    print("\nFigures")
    for path in paths:
        print(f"  {path}")
    print("\nNext: fit your own data once, then ask for any level")
    print("  from infinitask import InfiniteQuantileRegressor")
    print("  InfiniteQuantileRegressor(alpha=1e-4).fit(X, y).predict(X, quantiles=[0.05, 0.5, 0.95])")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; 0 if all went well.

    Parameters
    ----------
    arguments : sequence of str or None
        The words after the command; None: those of the process.
    """
    options = _parser().parse_args(arguments)
    try:
        _run(options.output, QUICK if options.quick else FULL)
    except DemoError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0
