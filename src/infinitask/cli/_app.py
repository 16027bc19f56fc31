"""The commands."""

from __future__ import annotations

import sys
import tomllib
from contextlib import suppress
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer

from infinitask.cli import _steps, _tables
from infinitask.cli._models import held_out, inputs_of
from infinitask.cli._output import FAILED, INTERRUPTED, Command, CommandError, Screen
from infinitask.cli._predictions import check_rule, predicted
from infinitask.cli._search import Search, fitted, ranking_of
from infinitask.cli._steps import cell_warnings, show_model
from infinitask.cli._targets import NO_COMPARISON, NO_PAGE, Task
from infinitask.pipelines._tables import listed
from infinitask.report import explore

MODEL_SUFFIXES = (".infinitask", ".safetensors")

TEST_FRACTION = 0.25
"""The fraction of rows that a report holds out."""

PROJECT = "infinitask"
"""The name of this project in its ``pyproject.toml``."""

NOT_HERE = (
    "The experiments are in the repository of infinitask, and not in the installed package. Get a clone of it, and run "
    "this command in its folder: cd infinitask && pip install -e '.[cli,data]' && infinitask reproduce"
)

PASSED_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
"""Context settings of a command that passes its words on to another one."""

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Fit once, choose the task at prediction: every quantile, every cost of errors, every fraction of outliers.",
)


def _numbers(name: str, low: float, meaning: str) -> Any:
    """An option for a comma-separated list of numbers from ``low`` to 1."""

    def read(text: str) -> list[float]:
        try:
            found = [float(part) for part in text.split(",") if part.strip()]
        except ValueError:
            found = []
        if not found:
            raise typer.BadParameter(f"{text!r} is not a list of numbers with commas between them, such as 0.1,0.9.")
        outside = [value for value in found if not low <= value <= 1.0]
        if outside:
            percent = f" Did you mean {outside[0] / 100:g}?" if 1.0 < outside[0] <= 100.0 else ""
            raise typer.BadParameter(f"{outside[0]:g} was given; it is a number from {low:g} to 1.{percent}")
        return found

    return typer.Option(name, parser=read, metavar="NUMBERS", help=meaning)


def _fraction(smallest: float | None) -> float | None:
    if smallest is not None and not 0.0 < smallest <= 0.5:
        raise typer.BadParameter(
            f"{smallest:g} was given; it is a fraction of the rows above 0 and at most 0.5, such as 0.01."
        )
    return smallest


def _seconds(given: float | None) -> float | None:
    if given is not None and not given > 0.0:
        raise typer.BadParameter(f"{given:g} was given; it is a number of seconds above 0.")
    return given


Data = Annotated[Path, typer.Argument(help="A table: CSV (any separator) or Parquet.", show_default=False)]
SavedModel = Annotated[Path, typer.Argument(help="A file made by `infinitask fit`.", show_default=False)]
Target = Annotated[
    str | None, typer.Option("--target", "-t", help="The column to learn; none: which rows are unusual.")
]
TaskName = Annotated[Task | None, typer.Option("--task", help="Guessed from the target if not given.")]
Tune = Annotated[
    bool | None,
    typer.Option(
        "--tune/--no-tune", help="Choose among some fifty kernels; by default where that takes about a minute."
    ),
]
Ignore = Annotated[list[str] | None, typer.Option("--ignore", help="A column that is no input; may be repeated.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="For the rows held out and the folds.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
FnCost = Annotated[float | None, typer.Option("--fn-cost", help="What a false negative costs.")]
FpCost = Annotated[float | None, typer.Option("--fp-cost", help="What a false positive costs.")]
Costs = Annotated[
    Path | None, typer.Option("--costs", help="A table of costs: rows the true class, columns the decision.")
]
Positive = Annotated[
    str | None, typer.Option("--positive", help="The label of the cases, for costs; none: the rarer one.")
]
Smallest = Annotated[
    float | None,
    typer.Option(
        "--smallest", callback=_fraction, help="The smallest fraction of level sets; none: by the number of rows."
    ),
]
MaxSeconds = Annotated[
    float | None,
    typer.Option(
        "--max-seconds",
        "--timeout",
        callback=_seconds,
        help="Seconds that comparing kernels, and the fit, may take; the best so far is taken then.",
    ),
]
ModelFile = Annotated[Path, typer.Option("--output", "-o", help="The file of the model.")]


def _version(asked: bool) -> None:
    if asked:
        print(f"infinitask {version('infinitask')}")
        raise typer.Exit


@app.callback()
def main(
    show: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version.")] = False,
) -> None:
    """Fit once, choose the task at prediction: every quantile, every cost of errors, every fraction of outliers."""


@app.command(cls=Command)
def report(
    data: Annotated[Path, typer.Argument(help="A table (CSV or Parquet), or a saved model.", show_default=False)],
    rows: Annotated[Path | None, typer.Argument(help="After a saved model: the table to look at.")] = None,
    target: Target = None,
    task: TaskName = None,
    tune: Tune = None,
    ignore: Ignore = None,
    positive: Positive = None,
    smallest: Smallest = None,
    title: Annotated[str | None, typer.Option("--title", help="Of the page.")] = None,
    test_share: Annotated[
        float, typer.Option("--test-share", min=0.05, max=0.9, help="The fraction of rows held out and looked at.")
    ] = TEST_FRACTION,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page.")] = Path("report.html"),
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """From a table to a page in which a person moves the task: one HTML file, without a server."""
    screen = Screen(as_json)
    _tables.check_output(output, data, rows)
    if rows is not None:
        given = {"task": task, "ignore": ignore, "positive": positive, "smallest": smallest, "tune": tune is not None}
        given |= {"test-share": test_share != TEST_FRACTION, "seed": seed != 0}
        if names := [f"--{name}" for name, value in given.items() if value]:
            what = "is for a fit, and a saved model was given; the model decides it."
            raise CommandError(f"{' and '.join(names)} {what}")
        model, X, y, found = _steps.model_and_rows(screen, data, rows, target, page=True)
    elif data.suffix.lower() in MODEL_SUFFIXES:
        raise typer.BadParameter(f"{data} is a model; name the table to look at after it.")
    else:
        learnt, table = _steps.rows_to_learn(screen, data, target, task, ignore, positive, only_two=NO_PAGE)
        train, test = held_out(learnt, test_share, seed)
        tunes = _steps.whether_to_tune(tune, learnt)
        _steps.announce(screen, train, tunes)
        model, X, y = fitted(train, tunes, seed, screen, smallest), test.X, test.y
        found = _steps.show_fit(screen, model, learnt, table)
        found |= {"rows": learnt.X.shape[0], "fitted_rows": train.X.shape[0], "held_out_rows": X.shape[0]}
        found["evaluation"] = _steps.show_evaluation(screen, model, X, y, f"{X.shape[0]} rows held out")
    with screen.step("making the page"):
        page = explore(model, X, y, title=title)
        with _tables.writing(output) as beside:
            page.save(beside)
    found |= {"page": str(output), "bytes": output.stat().st_size}
    screen.say(f"\npage  {output} ({found['bytes'] / 1e6:.1f} MB)")
    screen.result(found)


@app.command(cls=Command)
def fit(
    data: Data,
    target: Target = None,
    task: TaskName = None,
    tune: Tune = None,
    ignore: Ignore = None,
    positive: Positive = None,
    smallest: Smallest = None,
    max_seconds: MaxSeconds = None,
    output: ModelFile = Path("model.infinitask"),
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Learn from all rows of a table, and save the model."""
    screen = Screen(as_json)
    _tables.check_output(output, data)
    only_two = NO_COMPARISON if tune else ""
    given, table = _steps.rows_to_learn(screen, data, target, task, ignore, positive, only_two)
    tunes = _steps.whether_to_tune(tune, given)
    _steps.announce(screen, given, tunes)
    model = fitted(given, tunes, seed, screen, smallest, None if max_seconds is None else Search(None, max_seconds))
    _steps.save_fit(screen, model, given, table, output)


@app.command(cls=Command)
def tune(
    data: Data,
    target: Target = None,
    task: TaskName = None,
    trials: Annotated[
        int | None,
        typer.Option("--trials", min=1, help="Trials of Optuna; none: some fifty kernels are compared."),
    ] = None,
    timeout: MaxSeconds = None,
    storage: Annotated[
        Path | None, typer.Option("--storage", help="A file for the trials; the same command goes on from it.")
    ] = None,
    ignore: Ignore = None,
    positive: Positive = None,
    smallest: Smallest = None,
    output: ModelFile = Path("model.infinitask"),
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Search for a good model, show what was compared, and save the best; Ctrl-C keeps the best so far."""
    screen = Screen(as_json)
    _tables.check_output(output, data, storage)
    _tables.check_output(storage, data, output, option="--storage")
    if storage is not None and trials is None:
        raise typer.BadParameter("a file for trials was given; say how many with --trials.", param_hint="--storage")
    given, table = _steps.rows_to_learn(screen, data, target, task, ignore, positive, NO_COMPARISON)
    if trials is None and timeout is None:
        _steps.announce(screen, given, True, "--max-seconds 60 ends it after a minute")
    if screen.shows_progress:
        screen.hint("Ctrl-C ends the search, and the best so far is fitted and saved.")
    model = fitted(given, True, seed, screen, smallest, Search(trials, timeout, storage))
    _steps.save_fit(screen, model, given, table, output, ranking_of(model, given.task))


@app.command(cls=Command)
def predict(
    model: SavedModel,
    data: Data,
    quantiles: Annotated[Any, _numbers("--quantiles", 0.0, "Levels, such as 0.05,0.5,0.95.")] = None,
    coverage: Annotated[Any, _numbers("--coverage", 0.0, "Of intervals, such as 0.9 or 0.5,0.9.")] = None,
    theta: Annotated[Any, _numbers("--theta", -1.0, "Trade-offs from -1 (no alarm) to 1.")] = None,
    fn_cost: FnCost = None,
    fp_cost: FpCost = None,
    costs: Costs = None,
    nu: Annotated[Any, _numbers("--nu", 0.0, "Fractions of unusual rows, such as 0.05,0.1.")] = None,
    with_inputs: Annotated[bool, typer.Option("--with-inputs", help="Write the columns of the table too.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="CSV, or .parquet; none: CSV on standard output.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Ask a saved model about the rows of a table."""
    screen = Screen(as_json)
    _tables.check_output(output, model, data, costs)
    _tables.check_format(output)
    asked = {"--quantiles": quantiles, "--coverage": coverage, "--theta": theta, "--nu": nu}
    asked = _given(asked | {"--fn-cost": _costs(fn_cost, fp_cost), "--costs": costs})
    loaded = _steps.read_model(screen, model)
    table = _steps.read(screen, data)
    X = inputs_of(loaded, table)
    screen.note(*cell_warnings(loaded, X))
    found = _steps.say_positive(screen, loaded)
    with screen.step(f"predicting {X.shape[0]} rows"):
        frame = predicted(loaded, X, asked)
    if with_inputs:
        frame = table.frame.join(frame, rsuffix="_predicted")
    found |= {"model": str(model), "data": str(data), "rows": int(frame.shape[0]), "columns": list(frame.columns)}
    if output is not None:
        _tables.write_table(frame, output)
        screen.say(f"{frame.shape[0]:,} rows, columns {listed(frame.columns)}: {output}")
        screen.result(found | {"written": str(output)})
    elif as_json:
        screen.result(found | {"predictions": frame.to_dict("records")})
    else:
        frame.to_csv(sys.stdout, index=False)


@app.command(cls=Command)
def evaluate(
    model: SavedModel,
    data: Data,
    target: Annotated[str | None, typer.Option("--target", "-t", help="If not called as in the fit.")] = None,
    fn_cost: FnCost = None,
    fp_cost: FpCost = None,
    costs: Costs = None,
    theta: Annotated[float | None, typer.Option("--theta", help="The trade-off of the decisions.")] = None,
    max_fpr: Annotated[
        float | None, typer.Option("--max-fpr", help="Choose θ: at most this fraction of the others raises an alarm.")
    ] = None,
    min_sensitivity: Annotated[
        float | None, typer.Option("--min-sensitivity", help="Choose θ: at least this fraction of the cases is found.")
    ] = None,
    confidence: Annotated[
        float | None, typer.Option("--confidence", help="With which the bound holds for new rows, such as 0.95.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """How good a saved model is on rows whose targets are known; for costs also: which trade-off meets a bound."""
    screen = Screen(as_json)
    bounds = {"--max-fpr": max_fpr, "--min-sensitivity": min_sensitivity, "--confidence": confidence}
    asked = _given({"--theta": theta, **bounds, "--fn-cost": _costs(fn_cost, fp_cost), "--costs": costs})
    check_rule(asked)
    *_, found = _steps.model_and_rows(screen, model, data, target, asked)
    screen.result(found)


@app.command(cls=Command)
def info(model: SavedModel, as_json: AsJson = False) -> None:
    """What a saved model is, what became of the columns, and which inputs matter to it."""
    screen = Screen(as_json)
    screen.result(show_model(screen, _steps.read_model(screen, model), model.stat().st_size))


@app.command(cls=Command, context_settings=PASSED_ON)
def demo(context: typer.Context) -> None:
    """Fit three examples, print how well it went, and draw what was learnt; options are those of infinitask.demo."""
    from infinitask.demo import main

    raise typer.Exit(main(context.args))


@app.command(cls=Command, context_settings=PASSED_ON)
def reproduce(context: typer.Context) -> None:
    """Make the tables and figures of the paper again, in a clone of the repository; options are those of experiments.

    Without a name, the tables and figures are listed.
    """
    folder = clone_of(Path.cwd(), Path(__file__).resolve().parent.parent)
    print(f"The experiments are those of {folder}.", file=sys.stderr)
    sys.path.insert(0, str(folder))  # also for child processes
    experiments: Any = import_module("experiments.__main__")
    if not context.args:
        print("\n".join([*experiments.NAMES, "defaults", "all"]))
        print(f"\nRun one: infinitask reproduce {experiments.NAMES[0]} --quick", file=sys.stderr)
        return
    try:
        experiments.main(context.args)
    except SystemExit as end:
        if isinstance(end.code, int) or end.code is None:
            raise
        print(end.code, file=sys.stderr)
        # experiments report an interrupt themselves, with a sentence about what is kept
        raise typer.Exit(INTERRUPTED if isinstance(end.__context__, KeyboardInterrupt) else FAILED) from None


# -------------------------------------------------------------------------------------------------------- options
def _given(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _costs(fn_cost: float | None, fp_cost: float | None) -> tuple[float, float] | None:
    if fn_cost is None and fp_cost is None:
        return None
    if fn_cost is None or fp_cost is None:
        raise CommandError("A decision weighs two costs; give both --fn-cost and --fp-cost.")
    return fn_cost, fp_cost


def clone_of(here: Path, package: Path) -> Path:
    """The folder of the clone: the one of this package, otherwise the current folder or the nearest parent that is one.

    Experiments need data, other libraries and hours, and are not part of the installed package. The code of a folder is
    run only if its ``pyproject.toml`` says that it is this project.

    Parameters
    ----------
    here : Path
        The current folder.
    package : Path
        The folder of the package, ``src/infinitask`` of a clone.
    """
    for folder in (package.parent.parent, here, *here.parents):
        if not (folder / "experiments" / "__main__.py").is_file() or not (folder / "src" / "infinitask").is_dir():
            continue
        with suppress(OSError, ValueError, LookupError, TypeError):  # it cannot be read, or is not such a file
            if tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]["name"] == PROJECT:
                return folder
    raise CommandError(NOT_HERE)
