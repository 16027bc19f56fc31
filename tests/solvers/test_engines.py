"""The list of engines: what each needs, and that solvers see objectives by what they offer."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import infinitask.objective
import infinitask.solvers
from infinitask import InfiniteQuantileRegressor
from infinitask.losses import BoxLoss, Expectile, LevelSet, Pinball, Row
from infinitask.objective import Integral, Objective
from infinitask.solvers._solve import ENGINES

X = np.random.default_rng(0).normal(size=(30, 2))
THETA = np.array([0.25, 0.5, 0.75])
WEIGHTS = np.full(3, 1.0 / 3.0)
OWN = np.sqrt(3.0) * np.eye(3)
"""Columns with an h of its own for every node."""


class Machine(BoxLoss):
    """The slopes of level sets, written by somebody else."""

    def row(self, theta: Any, y: Any) -> Row:
        """u ∈ [0, 1/θ]."""
        return Row(0.0, 1.0 / theta)


def posed(loss: Any, targets: bool = True, bias: float | None = None, **more: Any) -> Objective:
    """An objective with a bias at every node, with this ridge, or without one."""
    y = X[:, :1] ** 2 if targets else None
    term = Integral(loss, THETA, WEIGHTS, OWN, None if bias is None else np.eye(3), y)
    return Objective(X, np.full(30, 1.0 / 30.0), (term,), 1e-3, 1.0 if bias is None else bias, **more)


def imported(package: Any) -> Iterator[tuple[str, str]]:
    """Files of a package, and the names that they import."""
    for path in Path(package.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                yield from ((path.name, f"{node.module}.{name.name}") for name in node.names)
            elif isinstance(node, ast.Import):
                yield from ((path.name, name.name) for name in node.names)


def test_solvers_import_neither_losses_nor_kernels() -> None:
    seen = list(imported(infinitask.solvers))
    assert len(seen) > 50
    assert not [pair for pair in seen if pair[1].startswith(("infinitask.losses", "infinitask.kernels"))]


def test_objectives_name_no_concrete_loss() -> None:
    names = {name for _, name in imported(infinitask.objective) if name.startswith("infinitask.losses")}
    general = ("BoxLoss", "Loss", "Row", "_base.Pointwise", "_base.Sums")
    assert names <= {f"infinitask.losses.{name}" for name in general}


def test_each_need_is_a_property_of_an_objective() -> None:
    for need in (need for engine in ENGINES for need in engine.needs):
        assert getattr(posed(Pinball()), need) in (True, False)


def test_what_objectives_offer() -> None:
    names = ("kinked", "without_bias", "free_levels", "one_class")
    linear = {"bias_linear": np.full(3, -1.0 / 3.0)}
    cases = {
        "quantiles": (posed(Pinball()), (True, True, False, False)),
        "a bias with a ridge": (posed(Pinball(), bias=1.0), (True, False, False, False)),
        "free levels": (posed(Pinball(), bias=0.0), (True, False, True, False)),
        "a smooth loss": (posed(Expectile(), bias=0.0), (False, False, False, False)),
        "level sets": (posed(LevelSet(), targets=False, bias=1.0, **linear), (True, False, False, True)),
        "the same slopes": (posed(Machine(), targets=False, bias=1.0, **linear), (True, False, False, True)),
        "a free threshold": (posed(LevelSet(), targets=False, bias=0.0, **linear), (True, False, False, False)),
    }
    for name, (objective, expected) in cases.items():
        assert tuple(bool(getattr(objective, each)) for each in names) == expected, name
    shared = replace(cases["level sets"][0].integrals[0], cols=np.ones((3, 3)))
    assert not replace(cases["level sets"][0], integrals=(shared,)).one_class


def test_features_without_size_are_solved() -> None:
    """No constant feature, or features of size 0: the size of k(x, x) must not be divided by."""
    y = np.random.default_rng(1).normal(size=300)
    for X in (np.linspace(-1.0, 1.0, 300)[:, None], np.zeros((300, 2)), np.ones((1, 1))):
        for bias in (None, "task"):
            model = InfiniteQuantileRegressor(kernel="linear", bias_kernel=bias, n_nodes=20).fit(X, y[: len(X)])
            assert model.dual_gap_ <= model.tol
    # as many unknowns as a costly fit has, and features that say nothing
    term = Integral(Pinball(), THETA, WEIGHTS, OWN, targets=y[:, None])
    wide = Objective(np.zeros((300, 400)), np.full(300, 1.0 / 300.0), (term,), 1e-3)
    assert infinitask.solvers.solve(wide).converged
    assert wide.constant_first
    assert not posed(Pinball()).constant_first


def test_the_gram_matrix_follows_the_rows() -> None:
    objective = posed(LevelSet(), targets=False, bias=1.0, bias_linear=np.full(3, -1.0 / 3.0))
    known, some = replace(objective, gram=X @ X.T), np.random.default_rng(0).permutation(30)[:20]
    part = known.only(some)
    assert part.gram is not None
    np.testing.assert_allclose(part.gram, part.rows @ part.rows.T, atol=1e-12)
    one, other = infinitask.solvers.solve(part), infinitask.solvers.solve(objective.only(some))
    assert one.n_evaluations == other.n_evaluations
    assert one.objective == pytest.approx(other.objective, rel=1e-9)
