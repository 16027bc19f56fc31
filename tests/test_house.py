"""The rules of the house: what may know what, and how large things may grow."""

from __future__ import annotations

import ast
import inspect
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

from infinitask import InfiniteQuantileRegressor, losses
from infinitask.datasets import make_sine
from infinitask.fitting import Recipe
from infinitask.losses import _classes, _rows
from tests.support.package import SOURCE, modules, source_files
from tools.count_lines import constants, public_names
from tools.walks import walk

CONCRETE_LOSSES = {
    name
    for name in dir(losses)
    if getattr(getattr(losses, name), "__module__", "") in (_rows.__name__, _classes.__name__)
}
KNOW_LOSSES = {"losses", "tasks", "estimators"}
"""Folders that may name a concrete loss."""

COMPARE = {"tuning"}
"""Folders whose quick fits of many candidates pose their own problems."""

MAX_FIELDS_OF_A_RECIPE = 20
MAX_TOP_LEVEL_MODULES = 6
MAX_CHAIN = 3
MAX_PUBLIC_NAMES = 150
MAX_CONSTANTS = 350
MAX_LINES = 460


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(path: Path) -> set[str]:
    """Full names of all modules, and of all names of modules, that a file imports, wherever it does so."""
    package = ["infinitask", *path.relative_to(SOURCE).parts[:-1]]
    found = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            found |= {module} | {f"{module}.{alias.name}" for alias in node.names}
    return found


def losses_named(path: Path) -> set[str]:
    """Concrete losses that a file imports, takes from the module of losses, or compares with as texts."""
    found = {name.rpartition(".")[2] for name in imported(path) if name.startswith("infinitask.losses.")}
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "losses":
            found.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)  # whole texts only: a docstring may speak of a loss
    return found & CONCRETE_LOSSES


@cache
def chain(cls: type[Any]) -> int:
    """The number of our own classes on the longest way from a class to the top."""
    ours = cls.__module__.partition(".")[0] == "infinitask"
    return ours + max((chain(base) for base in cls.__bases__), default=0)


def test_the_losses_are_found() -> None:
    assert {"Pinball", "LevelSet", "Huber", "OneAgainstRest"} <= CONCRETE_LOSSES
    assert not {"Loss", "BoxLoss", "ConvexLoss", "Row"} & CONCRETE_LOSSES
    assert "Pinball" in losses_named(SOURCE / "tasks" / "quantile.py")


def test_only_tasks_and_estimators_name_a_concrete_loss() -> None:
    named = {
        path.relative_to(SOURCE).as_posix(): found
        for path in source_files()
        if path.relative_to(SOURCE).parts[0] not in KNOW_LOSSES and (found := losses_named(path))
    }
    assert not named, f"these files name a loss; let the task or the loss say what they ask: {named}"


def test_no_solver_imports_losses_or_kernels() -> None:
    above = ("infinitask.losses", "infinitask.kernels")
    found = {
        path.relative_to(SOURCE).as_posix(): bad
        for path in source_files("solvers")
        if (bad := sorted(name for name in imported(path) if name.startswith(above)))
    }
    assert not found, f"an objective says what it offers to the solvers, and these ask elsewhere: {found}"


def test_no_solver_reads_a_loss() -> None:
    found = {
        path.relative_to(SOURCE).as_posix(): lines
        for path in source_files("solvers")
        if (lines := [n.lineno for n in ast.walk(tree(path)) if isinstance(n, ast.Attribute) and n.attr == "loss"])
    }
    assert not found, f"an integral says what its loss offers, and these ask the loss itself: {found}"


def test_models_are_fitted_by_learn_only() -> None:
    below = {"infinitask.fitting._fit.fitted", "infinitask.fitting._pose.pose", "infinitask.solvers.solve"}
    may = {"fitting", "streaming", "calibration", "solvers"} | COMPARE
    found = {
        path.relative_to(SOURCE).as_posix(): bad
        for path in source_files()
        if path.relative_to(SOURCE).parts[0] not in may and (bad := sorted(imported(path) & below))
    }
    assert not found, f"fit by infinitask.fitting.learn: {found}"


def test_a_recipe_has_few_fields() -> None:
    names = [field.name for field in fields(Recipe)]
    assert len(names) <= MAX_FIELDS_OF_A_RECIPE, names


def test_few_modules_lie_at_the_top_level() -> None:
    names = sorted(path.name for path in SOURCE.glob("*.py"))
    assert len(names) <= MAX_TOP_LEVEL_MODULES, names


def test_no_chain_of_inheritance_is_long() -> None:
    classes = {
        thing
        for module in modules()
        for thing in vars(module).values()
        if inspect.isclass(thing) and thing.__module__ == module.__name__
    }
    long = {f"{cls.__module__}.{cls.__qualname__}": chain(cls) for cls in classes if chain(cls) > MAX_CHAIN}
    assert not long, f"more than {MAX_CHAIN} of our own classes one above the other: {long}"


def test_no_module_is_long() -> None:
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in source_files()}
    named = {path.relative_to(SOURCE).as_posix(): n for path, n in lines.items()}
    long = {name: n for name, n in named.items() if n > MAX_LINES}
    assert not long, f"more than {MAX_LINES} lines; cut them where two ideas meet: {long}"


def test_modules_on_the_way_of_a_fit_call_each_other_one_way_only() -> None:
    X, y = make_sine(30, random_state=0)
    model = InfiniteQuantileRegressor(n_nodes=5).fit(X, y)  # caches are filled by the first fit
    found = walk(lambda: model.fit(X, y))
    assert {"estimators", "fitting", "solvers", "objective"} <= {name.partition(".")[0] for name in found.modules}
    assert not found.both_ways, f"above the objective, who calls is not called back: {found.both_ways}"


def test_few_constants_are_named() -> None:
    names = [name for path in source_files() for name in constants(path)]
    assert len(names) <= MAX_CONSTANTS, "remove one that moves no benchmark: benchmarks/constants.py tries that"


def test_few_names_are_public() -> None:
    names = {name for path in source_files() for name in public_names(path)}
    assert len(names) <= MAX_PUBLIC_NAMES, "take one away for each new one: see CONTRIBUTING.md on what is public"
