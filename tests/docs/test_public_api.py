"""What is public is written down, documented, and nothing else."""

from __future__ import annotations

import importlib
import inspect
import re
import tomllib
from types import ModuleType
from typing import Any

import infinitask
from tests.support.each import each
from tests.support.package import ROOT, modules

# The demo is a program: only its `main` is public.
PROGRAMS = {"infinitask.demo"}
FOR_NEIGHBOURS = {
    "infinitask.calibration.held_out": {"out_of_fold"},
    "infinitask.field": {"Problem"},
    "infinitask.integrations.skpro": {"QuantileCurveDistribution"},
    "infinitask.penalties": {"SumPenalty", "Term", "quadratic_part"},
}
"""What public modules define for other folders, or as what calls return, and do not offer."""


def defined(module: ModuleType) -> set[str]:
    """Classes and functions without an underscore that the module itself defines."""
    return {
        name
        for name, thing in vars(module).items()
        if not name.startswith("_")
        and (inspect.isclass(thing) or inspect.isfunction(thing))
        and thing.__module__ == module.__name__
    }


def is_private(module: ModuleType) -> bool:
    return any(part.startswith("_") for part in module.__name__.split("."))


def public() -> list[ModuleType]:
    """Modules that offer names: one without a list leaves that to its package."""
    return [m for m in modules() if hasattr(m, "__all__") and m.__name__ not in PROGRAMS]


def packages() -> list[ModuleType]:
    return [m for m in modules() if hasattr(m, "__path__") and not is_private(m)]


def name_of(module: ModuleType) -> str:
    return module.__name__


each_module = each("module", modules, ids=name_of)


@each_module
def test_every_module_says_what_it_is_for(module: ModuleType) -> None:
    assert module.__doc__


@each_module
def test_public_packages_list_what_they_offer_and_private_modules_do_not(module: ModuleType) -> None:
    if is_private(module):
        assert not hasattr(module, "__all__")  # the package's list is the only one
    else:
        assert hasattr(module, "__all__") or not hasattr(module, "__path__")
    offered = getattr(module, "__all__", [])
    assert len(set(offered)) == len(offered)
    for name in offered:
        assert getattr(module, name) is not None, f"{module.__name__} offers {name} and does not have it"


@each("module", public, ids=name_of)
def test_what_a_public_module_defines_is_what_it_offers(module: ModuleType) -> None:
    # a private module may keep helpers for its neighbours
    assert defined(module) - FOR_NEIGHBOURS.get(module.__name__, set()) <= set(module.__all__)


@each_module
def test_what_a_module_offers_is_documented(module: ModuleType) -> None:
    for name in getattr(module, "__all__", defined(module)):
        thing = getattr(module, name)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            assert inspect.getdoc(thing), f"{module.__name__}.{name} has no docstring"


@each("package", packages, ids=name_of)
def test_what_a_package_offers_is_offered_where_it_is_defined(package: ModuleType) -> None:
    for name in package.__all__:
        thing = getattr(package, name)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            home = importlib.import_module(thing.__module__)
            assert name in getattr(home, "__all__", defined(home))


def test_everything_can_be_imported_by_star() -> None:
    space: dict[str, Any] = {}
    exec("from infinitask import *", space)
    assert set(infinitask.__all__) <= set(space)


def test_version_is_that_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert infinitask.__version__ == project["version"]
    assert f"\nversion: {project['version']}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert infinitask.__name__ == project["name"]


@each("estimator", [thing for thing in vars(infinitask).values() if hasattr(thing, "get_params")])
def test_every_parameter_is_documented_once(estimator: Any) -> None:
    sections = inspect.getdoc(estimator).split("Examples\n")[0].split("Parameters\n----------\n")[1]
    heads = [line.partition(" : ")[0] for line in sections.splitlines() if re.match(r"\w[\w, ]*(?: : |$)", line)]
    entries = [name for head in heads for name in head.split(", ") if head not in ("Attributes", "Notes", "References")]
    assert len(entries) == len(set(entries))
    assert set(inspect.signature(estimator).parameters) <= set(entries)
    assert not re.search(r"\{(parameters|attributes)\}", inspect.getdoc(estimator))
