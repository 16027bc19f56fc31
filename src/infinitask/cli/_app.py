"""The commands."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from infinitask.cli import _tables
from infinitask.cli._screen import CommandError, Screen, ends_well

MODEL_SUFFIXES = (".infinitask", ".safetensors")

TUNED_ROWS_OF_COSTS = 1_000
"""Up to this many rows, a model of costs tunes itself by default; 2 000 rows and 33 inputs take 75 s of one core."""

NAMED_INPUTS = 5
"""Of those that matter most, on the screen."""

SHOWN_CHARACTERS = 60
"""Of a kernel, on the screen."""

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Fit once, choose the task at prediction: every quantile, every cost of errors, every share of outliers.",
)

Data = Annotated[Path, typer.Argument(help="A table: CSV (any separator) or Parquet.", show_default=False)]
Model = Annotated[Path, typer.Argument(help="A file made by `infinitask fit`.", show_default=False)]
Target = Annotated[
    str | None, typer.Option("--target", "-t", help="The column to learn; none: which rows are unusual.")
]
TaskName = Annotated[
    str | None, typer.Option("--task", help="quantile, cost or level-set; guessed from the target if not given.")
]
Tune = Annotated[
    bool | None,
    typer.Option("--tune/--no-tune", help="Compare some fifty kernels; by default where that takes seconds."),
]
Ignore = Annotated[list[str] | None, typer.Option("--ignore", help="A column that is no input; may be repeated.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="For the rows held out and the folds.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
FnCost = Annotated[float | None, typer.Option("--fn-cost", help="What a missed positive costs.")]
FpCost = Annotated[float | None, typer.Option("--fp-cost", help="What a false alarm costs.")]


@app.command()
@ends_well
def report(
    data: Annotated[Path, typer.Argument(help="A table (CSV or Parquet), or a saved model.", show_default=False)],
    rows: Annotated[Path | None, typer.Argument(help="After a saved model: the table to look at.")] = None,
    target: Target = None,
    task: TaskName = None,
    tune: Tune = None,
    ignore: Ignore = None,
    title: Annotated[str | None, typer.Option("--title", help="Of the page.")] = None,
    test_share: Annotated[
        float, typer.Option("--test-share", min=0.05, max=0.9, help="The share of rows held out and looked at.")
    ] = 0.25,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page.")] = Path("report.html"),
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """From a table to a page in which a person moves the task: one HTML file, without a server."""
    screen = Screen(as_json)
    _tables.check_output(output)
    if rows is not None:
        found = _report_of_model(screen, data, rows, target, title, output)
    elif data.suffix.lower() in MODEL_SUFFIXES:
        raise typer.BadParameter(f"{data} is a model; name the table to look at after it.")
    else:
        found = _report_of_table(screen, data, target, task, tune, ignore, title, test_share, output, seed)
    screen.say(f"\npage  {output} ({found['bytes'] / 1e6:.1f} MB)")
    screen.result(found)


def _report_of_table(
    screen: Screen,
    data: Path,
    target: str | None,
    task: str | None,
    tune: bool | None,
    ignore: list[str] | None,
    title: str | None,
    test_share: float,
    output: Path,
    seed: int,
) -> dict[str, Any]:
    from infinitask.cli._models import fitted, held_out

    given, table = _learnt_from(screen, data, target, task, ignore)
    train, test = held_out(given, test_share, seed)
    model = fitted(train, _tuned(tune, given), seed, screen)
    found = _shown_fit(screen, model, given, table)
    found |= {"rows": given.X.shape[0], "fitted_rows": train.X.shape[0], "held_out_rows": test.X.shape[0]}
    found["evaluation"] = _shown_evaluation(screen, model, test.X, test.y, f"{test.X.shape[0]} rows held out")
    return found | _page(screen, model, test.X, test.y, title, output)


def _report_of_model(
    screen: Screen, path: Path, data: Path, target: str | None, title: str | None, output: Path
) -> dict[str, Any]:
    from infinitask.cli._models import Task, answers_of, inputs_of, load_model, task_of

    with screen.step(f"reading {path.name}"):
        model = load_model(path)
    table = _read(screen, data)
    named = getattr(model, "target_name_", None) if target is None else target
    knows = task_of(model) is not Task.LEVEL_SET and named is not None and named in table.frame.columns
    if target is not None and not knows:
        _tables.check_column(table, target, ", the target")
    found: dict[str, Any] = {"model": str(path), "data": str(data), "task": str(task_of(model)), "target": named}
    if knows:
        X, y, _, notes = answers_of(model, table, named)
        _noted(screen, notes)
        found["evaluation"] = _shown_evaluation(screen, model, X, y, f"{X.shape[0]} rows")
    else:
        X, y = inputs_of(model, table), None
    return found | {"rows": int(X.shape[0])} | _page(screen, model, X, y, title, output)


@app.command()
@ends_well
def fit(
    data: Data,
    target: Target = None,
    task: TaskName = None,
    tune: Tune = None,
    ignore: Ignore = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file of the model.")] = Path("model.infinitask"),
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Learn from all rows of a table, and save the model."""
    from infinitask.cli._models import fitted, save_model

    screen = Screen(as_json)
    _tables.check_output(output)
    given, table = _learnt_from(screen, data, target, task, ignore)
    model = fitted(given, _tuned(tune, given), seed, screen)
    found = _shown_fit(screen, model, given, table) | {"rows": given.X.shape[0]}
    save_model(model, output)
    screen.say(f"\nmodel  {output} ({output.stat().st_size / 1e6:.1f} MB)")
    screen.result(found | {"saved": str(output), "bytes": output.stat().st_size})


@app.command()
@ends_well
def predict(
    model: Model,
    data: Data,
    quantiles: Annotated[str | None, typer.Option("--quantiles", help="Levels, such as 0.05,0.5,0.95.")] = None,
    coverage: Annotated[str | None, typer.Option("--coverage", help="Of intervals, such as 0.9 or 0.5,0.9.")] = None,
    theta: Annotated[str | None, typer.Option("--theta", help="Trade-offs from -1 (no alarm) to 1.")] = None,
    fn_cost: FnCost = None,
    fp_cost: FpCost = None,
    nu: Annotated[str | None, typer.Option("--nu", help="Shares of unusual rows, such as 0.05,0.1.")] = None,
    with_inputs: Annotated[bool, typer.Option("--with-inputs", help="Write the columns of the table too.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="CSV, or .parquet; none: CSV on standard output.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Ask a saved model about the rows of a table."""
    from infinitask.cli._answers import predicted
    from infinitask.cli._models import inputs_of, load_model

    screen = Screen(as_json)
    _tables.check_output(output)
    asked: dict[str, Any] = {
        "quantiles": _numbers("--quantiles", quantiles),
        "coverage": _numbers("--coverage", coverage),
        "theta": _numbers("--theta", theta),
        "nu": _numbers("--nu", nu),
        "costs": _costs(fn_cost, fp_cost),
    }
    with screen.step(f"reading {model.name}"):
        fitted = load_model(model)
    table = _read(screen, data)
    X = inputs_of(fitted, table)
    with screen.step(f"predicting {X.shape[0]} rows"):
        answers = predicted(fitted, X, **asked)
    if with_inputs:
        new = [name for name in answers.columns if name not in table.frame.columns]
        clash = [name for name in answers.columns if name not in new]
        answers = table.frame.join(answers[new].join(answers[clash].add_suffix("_predicted")))
    found = {"model": str(model), "data": str(data), "rows": int(answers.shape[0]), "columns": list(answers.columns)}
    if output is not None:
        _tables.write_table(answers, output)
        screen.say(f"{answers.shape[0]:,} rows, columns {_tables.listed(answers.columns)}: {output}")
        screen.result(found | {"written": str(output)})
    elif as_json:
        screen.result(found | {"predictions": answers.to_dict("records")})
    else:
        answers.to_csv(sys.stdout, index=False)


@app.command()
@ends_well
def evaluate(
    model: Model,
    data: Data,
    target: Annotated[str | None, typer.Option("--target", "-t", help="If not called as in the fit.")] = None,
    fn_cost: FnCost = None,
    fp_cost: FpCost = None,
    as_json: AsJson = False,
) -> None:
    """How good a saved model is on rows whose targets are known."""
    from infinitask.cli._models import answers_of, load_model, task_of

    screen, costs = Screen(as_json), _costs(fn_cost, fp_cost)
    with screen.step(f"reading {model.name}"):
        fitted = load_model(model)
    X, y, named, notes = answers_of(fitted, _read(screen, data), target)
    _noted(screen, notes)
    quality = _shown_evaluation(screen, fitted, X, y, data.name, costs)
    found = {"model": str(model), "data": str(data), "task": str(task_of(fitted)), "target": named}
    screen.result(found | {"rows": int(X.shape[0]), "evaluation": quality})


@app.command()
@ends_well
def info(model: Model, as_json: AsJson = False) -> None:
    """What a saved model is, and which inputs matter to it."""
    from infinitask.cli._answers import described
    from infinitask.cli._models import load_model

    screen = Screen(as_json)
    found = described(load_model(model)) | {"bytes": model.stat().st_size}
    lines = [(name.replace("_", " "), value) for name, value in found.items() if name not in ("relevance", "columns")]
    lines = [(name, _short(value) if name == "kernel" else value) for name, value in lines]
    lines.insert(3, ("columns", _tables.listed(found["columns"] or [])))
    shown = [(name, _tables.listed(value) if isinstance(value, list) else value) for name, value in lines]
    screen.table(("", ""), [(name, value) for name, value in shown if value not in (None, "")])
    if found["relevance"]:
        screen.say("")
        screen.table(("input", "effect"), [(part["input"], part["effect"]) for part in found["relevance"]])
    screen.result(found)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []})
@ends_well
def demo(context: typer.Context) -> None:
    """Fit three examples, print how well it went, and draw what was learnt; options are those of infinitask.demo."""
    from infinitask.demo import main

    raise typer.Exit(main(context.args))


# --------------------------------------------------------------------------------------------- what commands share
def _read(screen: Screen, path: Path) -> _tables.TableFile:
    with screen.step(f"reading {path.name}"):
        table = _tables.read_table(path)
    _noted(screen, table.notes)
    return table


def _noted(screen: Screen, notes: list[str]) -> None:
    for note in notes:
        screen.note(note)


def _learnt_from(
    screen: Screen, data: Path, target: str | None, task: str | None, ignore: list[str] | None
) -> tuple[Any, _tables.TableFile]:
    """The rows to learn from, with what was found said."""
    from infinitask.cli._models import Task, rows_of

    known = [str(kind) for kind in Task]
    if task is not None and task not in known:
        raise typer.BadParameter(f"{task!r} is none of {', '.join(known)}.", param_hint="--task")
    table = _read(screen, data)
    given = rows_of(table, target, None if task is None else Task(task), ignore or [])
    _noted(screen, given.notes)
    screen.say(f"data  {data}: {table.frame.shape[0]:,} rows, {table.frame.shape[1]} columns, {table.format}")
    screen.say(f"task  {given.task} ({given.reason})" + (f", target {given.target}" if given.target else ""))
    if given.task is Task.COST:
        labels = sorted(given.y.unique())
        screen.say(f"      {labels[1]} is the positive class, {(given.y == labels[1]).mean():.1%} of the rows")
    return given, table


def _tuned(tune: bool | None, given: Any) -> bool:
    """As asked, or where the comparison takes less than a minute: level sets take longest, then costs."""
    from infinitask.cli._models import Task

    if tune is not None:
        return tune
    return given.task is Task.QUANTILE or (given.task is Task.COST and given.X.shape[0] <= TUNED_ROWS_OF_COSTS)


def _shown_fit(screen: Screen, model: Any, given: Any, table: _tables.TableFile) -> dict[str, Any]:
    """What became of the columns, and how the fit ended."""
    from infinitask.cli._answers import described
    from infinitask.cli._models import encoded_columns

    columns, found = encoded_columns(model, given.X), described(model)
    screen.say("")
    screen.table(
        ("column", "kind", "missing", "becomes"),
        [
            (part["name"], part["kind"], part["missing"], _tables.listed(part["encoded"], 4) or "left out")
            for part in columns
        ],
    )
    screen.say(f"\nfit   {found['model']}, {_short(found['kernel'])}, certified gap {found['dual_gap']:.1e}")
    screen.say(f"      {found['calibration']}")
    if found["relevance"] and not getattr(model, "ignores_inputs_", False):
        screen.say(f"      what matters most: {', '.join(part['input'] for part in found['relevance'][:NAMED_INPUTS])}")
    return {
        "data": str(table.path),
        "format": table.format,
        **found,
        "reason": given.reason,
        "columns": columns,
    }


def _shown_evaluation(
    screen: Screen, model: Any, X: Any, y: Any, where: str, costs: tuple[float, float] | None = None
) -> dict[str, Any]:
    from infinitask.cli._answers import evaluated, evaluation_lines

    with screen.step("evaluating"):
        found = evaluated(model, X, y, costs)
    screen.say("")
    screen.table((f"on {where}", ""), evaluation_lines(found))
    return found


def _page(screen: Screen, model: Any, X: Any, y: Any, title: str | None, output: Path) -> dict[str, Any]:
    from infinitask.report import explore

    with screen.step("making the page"):
        explore(model, X, y, title=title).save(output)
    return {"page": str(output), "bytes": output.stat().st_size}


def _short(text: str) -> str:
    """The beginning of a long text; the kernel of many inputs has many numbers."""
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"


def _numbers(name: str, text: str | None) -> list[float] | None:
    """Numbers with commas between them."""
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        message = f"{text!r} is not a list of numbers with commas between them, such as 0.1,0.9."
        raise typer.BadParameter(message, param_hint=name) from None


def _costs(fn_cost: float | None, fp_cost: float | None) -> tuple[float, float] | None:
    if fn_cost is None and fp_cost is None:
        return None
    if fn_cost is None or fp_cost is None:
        raise CommandError("A decision weighs two costs; give both --fn-cost and --fp-cost.")
    return fn_cost, fp_cost
