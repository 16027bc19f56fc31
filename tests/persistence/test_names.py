"""The lists of what a file may name: they exist, lead back to themselves, and nothing else is in them."""

from __future__ import annotations

import inspect
from importlib.util import find_spec

import pytest

from infinitask.persistence._names import (
    class_named,
    function_named,
    known_classes,
    known_functions,
    name_of_class,
    name_of_function,
)
from tests.support.each import each

OFTEN_MOVED = ("sklearn.compose._", "skrub")
"""Names that other versions of a library do not have."""


def is_here(name: str) -> bool:
    return find_spec(name.partition(".")[0]) is not None and not name.startswith(OFTEN_MOVED)


@each("name", sorted(filter(is_here, known_classes())))
def test_every_class_leads_back_to_its_name(name: str) -> None:
    cls = class_named(name)
    assert inspect.isclass(cls)
    assert class_named(str(name_of_class(cls))) is cls


@each("name", sorted(filter(is_here, known_functions())))
def test_every_function_leads_back_to_its_name(name: str) -> None:
    function = function_named(name)
    assert callable(function)
    assert not inspect.isclass(function)
    assert function_named(str(name_of_function(function))) is function


def test_all_that_skrub_has_here_is_found() -> None:
    pytest.importorskip("skrub")
    for name in ("skrub.TableVectorizer", "skrub.StringEncoder", "skrub.DatetimeEncoder"):
        assert name_of_class(class_named(name)) == name


def test_no_name_leads_out_of_the_lists() -> None:
    allowed = (
        "infinitask.",
        "sklearn.",
        "skrub.",
        "optuna.distributions.",
        "collections.OrderedDict",
        "numpy.",
        "scipy.special.",
    )
    assert all(name.startswith(allowed) for name in known_classes() | known_functions())
    assert not any(word in name for name in known_classes() for word in ("Blocks", "Memory", "Dask"))
