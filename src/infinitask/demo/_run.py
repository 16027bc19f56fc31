"""The three examples of the demo: fit them, draw them, and summarise them in one table.

The examples are quantiles of a noisy sine, costs of error on two moons, and level sets of three clouds. One fit learns
all levels, all costs and all outlier fractions; the figures draw 99 curves, nine boundaries, nine sets. The table goes
to standard output, the progress to standard error.
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np
from sklearn.datasets import make_moons

from infinitask import InfiniteCostSensitiveClassifier, InfiniteOneClassSVM, InfiniteQuantileRegressor
from infinitask._base.extras import needed
from infinitask.datasets import make_mixture, make_sine, sine_quantile
from infinitask.metrics import integrated_pinball_loss
from infinitask.plotting import LIGHT, DecisionBoundaryDisplay, LevelSetDisplay, QuantileFanDisplay


class Size(NamedTuple):
    """The size of an example: rows, nodes, tolerance of the fit, and points per axis of the figure."""

    n_train: int
    n_test: int
    n_nodes: int
    tol: float
    grid: int


class Result(NamedTuple):
    """A fitted model, the seconds of its fit, its result on held-out data, and a function that draws it."""

    model: Any
    seconds: float
    held_out: float
    draw: Callable[[Any, int], None]
    """Draws into empty axes of matplotlib, with the given number of points per axis."""


class Example(NamedTuple):
    """An example of the demo: its names, its full size, and the function that fits it."""

    title: str
    task: str
    measure: str
    """The name of the number ``held_out``."""
    size: Size
    fit: Callable[[Size], Result]


def _timed_fit(model: Any, size: Size, *data: Any) -> tuple[Any, float]:
    """Fit at this size; return the model and the seconds of its fit."""
    started = time.perf_counter()
    model.set_params(n_nodes=size.n_nodes, tol=size.tol).fit(*data)
    return model, time.perf_counter() - started


def quantiles(size: Size) -> Result:
    """Fit every quantile of a sine whose noise fades from left to right, and measure the pinball loss."""
    X, y = make_sine(size.n_train, random_state=0)
    X_test, y_test = make_sine(size.n_test, random_state=10)
    levels = np.arange(1, 100) / 100.0
    model, seconds = _timed_fit(InfiniteQuantileRegressor(), size, X, y)
    loss = integrated_pinball_loss(y_test, model.predict(X_test, quantiles=levels), levels)

    def draw(axes: Any, grid: int) -> None:
        options = {"kind": "lines", "ax": axes, "look": LIGHT}
        fan = QuantileFanDisplay.from_estimator(model, X, y, quantiles=levels, grid=grid, **options)
        median = sine_quantile(fan.x, 0.5)[:, 0]
        axes.plot(fan.x, median, "--", color=LIGHT.ink, linewidth=1.5, label="true median")
        axes.set_title("One fit, the quantiles at 99 levels")
        axes.legend(loc="lower right")

    return Result(model, seconds, loss, draw)


def costs(size: Size) -> Result:
    """Fit every trade-off between missed positives and false alarms, and measure the mean cost of wrong labels."""
    points, labels = make_moons(size.n_train + size.n_test, noise=0.35, random_state=0)
    X, X_test = points[: size.n_train], points[size.n_train :]
    y, y_test = labels[: size.n_train], labels[size.n_train :]
    model, seconds = _timed_fit(InfiniteCostSensitiveClassifier(), size, X, y)
    cost = np.where(y_test[:, None] == 1, 1.0 + model.nodes_, 1.0 - model.nodes_) / 2.0
    wrong = model.predict(X_test, theta=model.nodes_) != y_test[:, None]
    held_out = float(np.mean(cost * wrong, axis=0) @ model.weights_)

    def draw(axes: Any, grid: int) -> None:
        DecisionBoundaryDisplay.from_estimator(model, X, y, grid=grid, ax=axes, look=LIGHT)
        axes.set(xlabel="first feature", ylabel="second feature")
        axes.set_title("One fit, the boundaries at nine costs of error")

    return Result(model, seconds, held_out, draw)


def level_sets(size: Size) -> Result:
    """Fit every density level set, and measure how far the fraction of points outside is from θ."""
    X = make_mixture(size.n_train, random_state=0)
    X_test = make_mixture(size.n_test, random_state=10)
    model, seconds = _timed_fit(InfiniteOneClassSVM(), size, X)
    fractions = np.arange(1, 10) / 10.0
    deviation = np.abs(np.mean(model.predict(X_test, nu=fractions) == -1, axis=0) - fractions)

    def draw(axes: Any, grid: int) -> None:
        LevelSetDisplay.from_estimator(model, X, grid=grid, ax=axes, look=LIGHT)
        axes.set(xlabel="first feature", ylabel="second feature")
        axes.set_title("One fit, the level sets at nine outlier fractions")

    return Result(model, seconds, float(deviation.mean()), draw)


QUICK = Size(120, 400, 12, 1e-3, 80)
"""The size of every example with ``--quick``."""

EXAMPLES = (
    Example("Quantiles of a noisy sine", "quantiles", "pinball loss", Size(400, 4000, 50, 1e-4, 400), quantiles),
    Example("Costs of error on two moons", "costs of error", "cost of errors", Size(400, 4000, 32, 1e-4, 300), costs),
    # The fraction of points outside follows θ only near the optimum: this fit is solved more exactly than the others.
    Example("Level sets of three clouds", "level sets", "|outside − θ|", Size(1000, 4000, 50, 1e-5, 300), level_sets),
)
"""The examples of the demo, in this order."""


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
    """The table as aligned text, with one row for each example."""
    rows = [HEADER, *rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]

    def aligned(row: tuple[str, ...]) -> str:
        middle = (cell.rjust(width) for cell, width in zip(row[1:-1], widths[1:-1], strict=True))
        return "  ".join([row[0].ljust(widths[0]), *middle, row[-1]]).rstrip()

    return "\n".join([aligned(HEADER), "  ".join("─" * width for width in widths), *map(aligned, rows[1:])])


# -------------------------------------------------------------------------------------------------- the figures
def save_figure(example: Example, result: Result, folder: Path, grid: int) -> Path:
    """Draw an example and save the figure in a folder."""
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
    """Show one of several steps, such as "1/6": its name before the body runs, and its seconds afterwards."""
    started, end = time.perf_counter(), "  stopped"
    print(f"[{step}] {name:<38}", end="", file=stream, flush=True)
    try:
        yield
        end = ""
    finally:  # end the line, so that an error message begins on a new one
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
    """Run the examples as requested on the command line; return 0 on success.

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
