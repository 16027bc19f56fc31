"""Three continua of tasks, learnt, measured and drawn: ``python -m infinitask.demo``.

Each example makes its data, fits one estimator, measures it on data it has not seen, and draws what it learnt. The
table on standard output sums them up; the progress display goes to standard error.
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

import numpy as np
from sklearn.datasets import make_moons
from sklearn.preprocessing import StandardScaler

from infinitask._array import HostArray
from infinitask.datasets import make_mixture, make_sine, sine_quantile
from infinitask.estimators import InfiniteCostSensitiveClassifier, InfiniteOneClassSVM, InfiniteQuantileRegressor
from infinitask.losses import Pinball

__all__ = ["main"]

PERCENTILES = np.linspace(0.01, 0.99, 99)
COSTS = np.linspace(-0.8, 0.8, 9)
FRACTIONS = np.linspace(0.1, 0.9, 9)

INK, PAPER = "#22272e", "#ffffff"
STYLE = {
    "figure.facecolor": PAPER,
    "figure.dpi": 150,
    "savefig.dpi": 150,
    "font.size": 10,
    "axes.titlesize": 12.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 10,
    "axes.edgecolor": "#8a929c",
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "text.color": INK,
    "xtick.color": "#5a636e",
    "ytick.color": "#5a636e",
    "legend.edgecolor": "none",
    "legend.framealpha": 0.9,
}
"""Settings of matplotlib, in force only while a figure is drawn."""


class DemoError(Exception):
    """What keeps the demo from running, as a sentence for the person who started it."""


# ------------------------------------------------------------------------------------------------ the examples
@dataclass(frozen=True)
class Size:
    """How much data an example trains on and is measured on, how closely it is solved, and how finely drawn."""

    n_train: int
    n_test: int
    n_nodes: int
    tol: float
    grid: int


FULL = {
    "quantile": Size(400, 4000, 50, 1e-4, 400),
    "cost": Size(400, 4000, 32, 1e-4, 300),
    # the fraction left out follows θ only near the optimum
    "level": Size(1000, 4000, 50, 1e-5, 300),
}
QUICK = {name: Size(120, 400, 12, 1e-3, 80) for name in FULL}


@dataclass(frozen=True)
class Example:
    """A fitted model, how it does on data it has not seen, and how to draw it."""

    task: str
    model: Any
    n_train: int
    seconds: float
    measure: str
    """What ``held_out`` is."""
    held_out: float
    filename: str
    figsize: tuple[float, float]
    draw: Callable[[Any, int], None]
    """Draws into an empty matplotlib figure, at the given number of points per axis."""

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


def _timed_fit(model: Any, *data: HostArray) -> tuple[Any, float]:
    started = time.perf_counter()
    model.fit(*data)
    return model, time.perf_counter() - started


def quantile_example(size: Size) -> Example:
    """Every conditional quantile of a noisy sine whose noise fades from left to right."""
    X, y = make_sine(size.n_train, random_state=0)
    X_test, y_test = make_sine(size.n_test, random_state=10)
    model = InfiniteQuantileRegressor(gamma=5.0, alpha=1e-4, noncrossing=1.0, n_nodes=size.n_nodes, tol=size.tol)
    model, seconds = _timed_fit(model, X, y)
    loss = Pinball().value(PERCENTILES, y_test[:, None], model.predict(X_test, quantiles=PERCENTILES))

    def draw(figure: Any, grid: int) -> None:
        from matplotlib.collections import LineCollection

        axes = figure.add_subplot()
        x = np.linspace(X.min(), X.max(), grid)
        curves = model.predict(x[:, None], quantiles=PERCENTILES)
        lines = LineCollection(
            [np.column_stack([x, curve]) for curve in curves.T], array=PERCENTILES, cmap=_colours(), linewidths=0.9
        )
        axes.add_collection(lines)
        axes.plot(X[:, 0], y, "o", color=INK, markersize=2.6, markeredgewidth=0, alpha=0.45, label="training data")
        axes.plot(x, sine_quantile(x, 0.5)[:, 0], "--", color=INK, linewidth=1.5, label="true median")
        axes.set(xlabel="x", ylabel="y", xlim=(x[0], x[-1]), title="One fit, the quantiles at 99 levels")
        axes.legend(loc="lower right")
        _colour_bar(figure, lines, axes, "quantile level θ", ticks=[0.01, 0.25, 0.5, 0.75, 0.99])

    return Example(
        "quantiles", model, size.n_train, seconds, "pinball loss", float(loss.mean()), "quantiles.png", (8.0, 5.2), draw
    )


def cost_example(size: Size) -> Example:
    """Every trade-off between missed positives and false alarms on two overlapping moons."""
    points, labels = make_moons(size.n_train + size.n_test, noise=0.35, random_state=0)
    X, X_test = points[: size.n_train], points[size.n_train :]
    y, y_test = labels[: size.n_train], labels[size.n_train :]
    scaler = StandardScaler().fit(X)
    X, X_test = scaler.transform(X), scaler.transform(X_test)
    model = InfiniteCostSensitiveClassifier(gamma=0.5, alpha=3e-4, n_nodes=size.n_nodes, tol=size.tol)
    model, seconds = _timed_fit(model, X, y)
    cost = np.where(y_test[:, None] == 1, 1.0 + model.nodes_, 1.0 - model.nodes_) / 2.0
    wrong = model.predict(X_test, theta=model.nodes_) != y_test[:, None]
    held_out = float(np.mean(cost * wrong, axis=0) @ model.weights_)

    def draw(figure: Any, grid: int) -> None:
        axes = figure.add_subplot()
        a, b, plane = _plane(X, grid)
        scores = model.decision_function(plane, theta=COSTS)
        mapping = _steps(COSTS)
        for theta, score in zip(COSTS, scores.T, strict=True):
            axes.contour(a, b, score.reshape(a.shape), levels=[0.0], colors=[mapping.to_rgba(theta)], linewidths=1.8)
        marks = {"marker": "o", "linestyle": "none", "markersize": 4.2, "markeredgecolor": INK, "markeredgewidth": 0.7}
        axes.plot(*X[y == 0].T, **marks, color=PAPER, alpha=0.8, label="negative", zorder=1)
        axes.plot(*X[y == 1].T, **marks, color=INK, alpha=0.8, label="positive", zorder=1)
        axes.set(xlabel="first feature", ylabel="second feature", aspect="equal")
        axes.set_title("One fit, the boundaries at nine costs of error")
        axes.legend(loc="lower right")
        _colour_bar(figure, mapping, axes, "trade-off θ  (above 0 a missed positive costs more)", ticks=COSTS)

    return Example(
        "costs of error", model, size.n_train, seconds, "cost of errors", held_out, "costs.png", (6.6, 6.0), draw
    )


def level_example(size: Size) -> Example:
    """Every density level set of three clouds."""
    X = make_mixture(size.n_train, random_state=0)
    X_test = make_mixture(size.n_test, random_state=10)
    model = InfiniteOneClassSVM(gamma=0.5, n_nodes=size.n_nodes, tol=size.tol)
    model, seconds = _timed_fit(model, X)
    strayed = np.abs(np.mean(model.predict(X_test, nu=FRACTIONS) == -1, axis=0) - FRACTIONS)

    def draw(figure: Any, grid: int) -> None:
        axes = figure.add_subplot()
        a, b, plane = _plane(X, grid)
        scores = model.decision_function(plane, nu=FRACTIONS)
        mapping = _steps(FRACTIONS, pale=0.3)
        # Painted from the largest set to the smallest: a point shows the largest fraction at which it is still inside.
        for order, (theta, score) in enumerate(zip(FRACTIONS, scores.T, strict=True)):
            height, colour = score.reshape(a.shape), mapping.to_rgba(theta)
            axes.contourf(a, b, height, levels=[0.0, np.inf], colors=[colour], zorder=1.0 + 0.1 * order)
            axes.contour(a, b, height, levels=[0.0], colors=[PAPER], linewidths=0.8, zorder=1.05 + 0.1 * order)
        axes.plot(*X.T, "o", color=INK, markersize=2.2, markeredgewidth=0, alpha=0.5)
        axes.set(xlabel="first feature", ylabel="second feature", aspect="equal")
        axes.set_title("One fit, the level sets at nine outlier fractions")
        _colour_bar(figure, mapping, axes, "fraction θ of the data left outside", ticks=FRACTIONS)

    return Example(
        "level sets",
        model,
        size.n_train,
        seconds,
        "|outside − θ|",
        float(strayed.mean()),
        "level_sets.png",
        (8.0, 5.6),
        draw,
    )


EXAMPLES: dict[str, tuple[str, Callable[[Size], Example]]] = {
    "quantile": ("Quantiles of a noisy sine", quantile_example),
    "cost": ("Costs of error on two moons", cost_example),
    "level": ("Level sets of three clouds", level_example),
}


# ------------------------------------------------------------------------------------------------- drawing
def _require_matplotlib() -> None:
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise DemoError(
            "the figures are drawn with matplotlib, which is not installed; install the extra with "
            "`pip install infinitask[plot]`."
        ) from error


def _colours(pale: float = 0.0) -> Any:
    """One colour map for θ in all figures, without the end that is lost on white paper, mixed with a share of white."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    return ListedColormap(pale + (1.0 - pale) * colormaps["plasma"](np.linspace(0.0, 0.92, 256)))


def _steps(levels: HostArray, pale: float = 0.0) -> Any:
    """Colours for evenly spaced levels, one step of the colour bar each."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import BoundaryNorm

    half = 0.5 * (levels[1] - levels[0])
    return ScalarMappable(BoundaryNorm(np.append(levels - half, levels[-1] + half), 256), _colours(pale))


def _colour_bar(figure: Any, mapping: Any, axes: Any, label: str, ticks: Any) -> None:
    bar = figure.colorbar(mapping, ax=axes, ticks=ticks, pad=0.02, aspect=30)
    bar.set_label(label, labelpad=8)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0, which="both")


def _plane(X: HostArray, grid: int) -> tuple[HostArray, HostArray, HostArray]:
    """A grid over the data with a margin: the two coordinates (grid, grid), and the points (grid², 2)."""
    low, high = X.min(axis=0), X.max(axis=0)
    margin = 0.04 * (high - low)
    a, b = np.meshgrid(*np.linspace(low - margin, high + margin, grid).T)
    return a, b, np.column_stack([a.ravel(), b.ravel()])


def save_figure(example: Example, folder: Path, grid: int) -> Path:
    """Draw an example into a file of the folder."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    path = folder / example.filename
    with rc_context(STYLE):
        # a Figure of its own, not pyplot's: it renders with Agg and leaves the backend of the session alone
        figure = Figure(figsize=example.figsize, layout="compressed")
        example.draw(figure, grid)
        try:
            figure.savefig(path)
        except OSError as error:
            raise DemoError(f"the figure {path} could not be written ({error.strerror}).") from error
    return path


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


# ------------------------------------------------------------------------------------------------ reporting
class Progress:
    """Names the steps: a line with running seconds on a terminal, a plain line when each is done elsewhere."""

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
            # an error that follows starts on a line of its own
            self._write(("\r" if self._live else "") + line() + ("" if finished else "  stopped") + "\n")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


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
    _require_matplotlib()
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


if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # a terminal without θ and × shows a question mark instead of failing
            stream.reconfigure(errors="replace")
    sys.exit(main())
