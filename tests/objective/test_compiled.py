"""The compiled way through the pairs is the written one: the same numbers, from any thread, or none at all."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import infinitask
from infinitask.losses import (
    CostSensitiveHinge,
    EpsilonInsensitive,
    LevelSet,
    Loss,
    Pinball,
    Row,
)
from infinitask.losses._rows import NonCrossing
from infinitask.objective import (
    Evaluation,
    Integral,
    Objective,
    Smoothing,
)
from infinitask.objective._table import Table, compiled_functions
from infinitask.objective._terms import MIN_COMPILED_PAIRS, SWITCH, compiles
from infinitask.solvers._base import Ledger, curved_pairs
from infinitask.solvers._newton import hessian_product, pairs
from tests.support.each import each
from tests.support.random_objectives import LOSSES, SIGNED, Given, compiled_only, point, posed

Floats = np.ndarray[Any, Any]


@pytest.fixture(autouse=True)
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small problems would not be compiled by themselves."""
    if os.environ.get(SWITCH) != "0":
        monkeypatch.setenv(SWITCH, "1")


def is_compiled(objective: Objective) -> bool:
    return all(table is not None for table in objective.tables)


every_loss = each("loss", LOSSES.values(), ids=LOSSES)
KAPPAS = (0.0, 1e-3, 1.0, 1e3)


def written(objective: Objective) -> Objective:
    """The same objective, whose pairs NumPy visits."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(SWITCH, "0")
        other = replace(objective)
        assert not is_compiled(other)
    return other


def smoothings(objective: Objective, kappas: tuple[float, ...] = KAPPAS) -> list[Smoothing]:
    """All levels around 0, and around the dual point of elsewhere."""
    found = []
    for kappa in kappas:
        plain = Smoothing((kappa,) * len(objective.integrals))
        found += [plain, replace(plain, centre=objective.duals(point(objective, 5), plain))]
    return found


def assert_close(a: Any, b: Any, tolerance: float, scale: float = 0.0, name: str = "") -> None:
    """Equal up to a part of the largest entry, or of ``scale``."""
    a, b = np.asarray(a), np.asarray(b)
    finite = np.isfinite(b)
    assert np.array_equal(np.isfinite(a), finite), name
    largest = max(scale, float(np.max(np.abs(b[finite]), initial=0.0)))
    assert float(np.max(np.abs(a[finite] - b[finite]), initial=0.0)) <= tolerance * largest, name


def assert_same_evaluation(a: Evaluation, b: Evaluation, tolerance: float = 1e-12) -> None:
    # what is a difference is as exact as its parts
    parts = (b.primal, b.smoothed, b.dual_data, b.error, float(np.max(np.abs(b.gradient))))
    scale = max([abs(v) for v in parts if np.isfinite(v)], default=0.0)
    for name, one, other in zip(Evaluation._fields, a, b, strict=True):
        assert_close(one, other, tolerance, scale, name)


def assert_same_curvature(a: Objective, b: Objective, z: Floats, smoothing: Smoothing, tolerance: float) -> None:
    for (_, ours), (_, theirs) in zip(a.curvatures(z, smoothing), b.curvatures(z, smoothing), strict=True):
        for one, two in zip(ours, theirs, strict=True):
            assert_close(one, two, tolerance)
    for one, two in zip(a.node_curvature(z, smoothing), b.node_curvature(z, smoothing), strict=True):
        assert_close(one, two, tolerance)
    assert curved_pairs(a, z, smoothing) == curved_pairs(b, z, smoothing)
    for ours, theirs in zip(pairs(a, z, smoothing), pairs(b, z, smoothing), strict=True):
        np.testing.assert_array_equal(ours.row, theirs.row)
        np.testing.assert_array_equal(ours.node, theirs.node)
        assert_close(ours.weight, theirs.weight, tolerance)
    v = point(a, 1)
    assert_close(hessian_product(a, z, smoothing, v), hessian_product(b, z, smoothing, v), tolerance)


def assert_same(a: Objective, b: Objective, z: Floats, smoothing: Smoothing, tolerance: float = 1e-12) -> None:
    """Everything that is asked of an objective."""
    assert_same_evaluation(a.evaluate(z, smoothing), b.evaluate(z, smoothing), tolerance)
    assert_same_curvature(a, b, z, smoothing, tolerance)
    for one, two in zip(a.duals(z, smoothing), b.duals(z, smoothing), strict=True):
        assert (one is None) == (two is None)
        if one is not None and two is not None:
            assert_close(one, two, tolerance)


# ------------------------------------------------------------------------------------------ the same numbers
@compiled_only
@every_loss
@each("bias", [None, "penalised", "free"])
def test_compiled_agrees_with_the_written_formula(loss: Loss, bias: str | None) -> None:
    others: dict[str | None, tuple[tuple[Loss, int], ...]] = {
        None: (),
        "penalised": ((NonCrossing(2.0), 9), (EpsilonInsensitive(), 2)),
        "free": ((NonCrossing(0.7), 4),),
    }
    objective = posed(loss, bias=bias, others=others[bias])
    other = written(objective)
    assert is_compiled(objective)
    assert curved_pairs(objective, point(objective), Smoothing((1.0,) * len(objective.integrals))) > 0
    for smoothing in smoothings(objective):
        assert_same(objective, other, point(objective), smoothing)
    # each integral at a level of its own, some of them not smoothed
    for levels in ((0.0, 1.0, 0.1), (0.5, 0.0, 2.0)):
        smoothing = Smoothing(levels[: len(objective.integrals)])
        centred = replace(smoothing, centre=objective.duals(point(objective, 5), smoothing))
        for one in (smoothing, centred):
            assert_same(objective, other, point(objective), one)


@compiled_only
@every_loss
@each("targets", ["own", "none"])
def test_compiled_agrees_for_all_kinds_of_targets(loss: Loss, targets: str) -> None:
    if loss in SIGNED and targets == "none":
        return
    for bias in (None, "free"):
        objective = posed(loss, bias=bias, targets=targets)
        other = written(objective)
        for smoothing in smoothings(objective, (0.0, 0.3)):
            assert_same(objective, other, point(objective), smoothing)


@compiled_only
@every_loss
def test_compiled_agrees_at_the_ends_of_the_domain(loss: Loss) -> None:
    objective = posed(loss, bias="penalised", at_ends=True)
    for smoothing in smoothings(objective):
        assert_same(objective, written(objective), point(objective), smoothing)


def at_kinks(loss: Loss) -> Objective:
    """Residuals of 0, at the end of a dead zone and of the interval at z = 0: all of them numbers without rounding."""
    objective = posed(loss, n=18)
    first = objective.integrals[0]
    y = None if first.targets is None else np.repeat([-2.0, -1.0, -0.5, -0.25, 0.0, 0.25, 0.5, 1.0, 2.0], 2)[:, None]
    if isinstance(loss, CostSensitiveHinge):
        y = np.where(np.arange(18) % 2 == 0, 1.0, -1.0)[:, None]
    theta = np.array([0.0 if loss.domain[0] == 0.0 else -1.0, 0.25, 0.5, 0.75, 0.5, 1.0])
    theta = np.maximum(theta, 0.25) if isinstance(loss, LevelSet) else theta
    return replace(objective, integrals=(replace(first, theta=theta, targets=y),))


@compiled_only
@every_loss
def test_compiled_agrees_at_kinks_and_edges(loss: Loss) -> None:
    objective = at_kinks(loss)
    other, z = written(objective), np.zeros(objective.size)
    for kappa in (0.0, 0.25, 0.5, 1.0):
        assert_same_evaluation(*(o.evaluate(z, Smoothing((kappa,))) for o in (objective, other)))
    for kappa in (0.25, 0.5, 1.0):
        assert_same_curvature(objective, other, z, Smoothing((kappa,)), 1e-12)


def single(objective: Objective) -> Objective:
    """The same in single precision."""

    def cut(a: Any) -> Any:
        return None if a is None else a.astype(np.float32)

    terms = tuple(
        Integral(t.loss, cut(t.theta), cut(t.weights), cut(t.cols), cut(t.bias_cols), cut(t.targets))
        for t in objective.integrals
    )
    return replace(objective, rows=cut(objective.rows), sample_weight=cut(objective.sample_weight), integrals=terms)


@compiled_only
@every_loss
def test_compiled_agrees_in_single_precision(loss: Loss) -> None:
    objective = single(posed(loss, bias="penalised", others=((NonCrossing(0.7), 4),)))
    other = written(objective)
    for smoothing in smoothings(objective, (0.0, 0.1, 10.0)):
        found, expected = (o.evaluate(point(objective), smoothing) for o in (objective, other))
        assert found.gradient.dtype == np.float64
        assert_same_evaluation(found, expected, 1e-5)
        curved = (o.node_curvature(point(objective), smoothing) for o in (objective, other))
        for a, b in zip(*curved, strict=True):
            assert_close(a, b, 1e-5)


@compiled_only
@each("precision", [replace, single])
def test_a_kink_is_not_curved(precision: Any) -> None:
    objective = precision(at_kinks(Pinball()))
    assert curved_pairs(objective, np.zeros(objective.size), Smoothing((0.0,))) == 0


@compiled_only
@every_loss
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numbers overflow, as they should
def test_compiled_agrees_far_away_and_at_nan(loss: Loss) -> None:
    objective = posed(loss, bias="penalised", others=((NonCrossing(0.7), 4),))
    other = written(objective)
    z = point(objective)
    for smoothing in smoothings(objective, (0.0, 1e-3, 1.0)):
        for size in (1e8, 1e100):
            a, b = (o.evaluate(size * z, smoothing) for o in (objective, other))
            for one, two in zip((a.primal, a.smoothed, *a.slack), (b.primal, b.smoothed, *b.slack), strict=True):
                assert_close(one, two, 1e-12, b.primal)
            assert_close(a.gradient, b.gradient, 1e-12)
        for place in (0, objective.size - 1):
            for value in (np.nan, np.inf, -np.inf, 1e200):
                spoilt = z.copy()
                spoilt[place] = value
                assert not np.isfinite(objective.evaluate(spoilt, smoothing).primal)
                assert not np.isfinite(other.evaluate(spoilt, smoothing).primal)


@compiled_only
def test_rows_that_follow_the_target() -> None:
    """Few different targets make a table, many do not."""
    many = posed(Given(lambda theta, y: Row(theta - 1.0, theta, dead_zone=0.1 * np.abs(y))))
    assert not is_compiled(many)
    y = np.random.default_rng(1).integers(-3, 4, size=(23, 1)).astype(float)
    few = replace(many, integrals=(replace(many.integrals[0], targets=y),))
    assert is_compiled(few)
    for smoothing in smoothings(few):
        assert_same(few, written(few), point(few), smoothing)


@compiled_only
def test_a_loss_that_goes_its_own_way_is_followed() -> None:
    class Steeper(Pinball):
        def curvature(self, *arguments: Any, **options: Any) -> Any:
            return 2.0 * super().curvature(*arguments, **options)

    objective = posed(Steeper())
    assert_same_curvature(objective, written(objective), point(objective), Smoothing((1.0,)), 1e-12)


# --------------------------------------------------------------------------------------- one objective, many users
def test_different_levels_at_the_same_time() -> None:
    objective = replace(posed(LOSSES["tube"], bias="free", others=((NonCrossing(0.7), 4),), n=200), block_entries=60)
    assert len(objective._groups) > 1
    jobs = [(point(objective, k), s) for k, s in enumerate(smoothings(objective, (0.0, 0.1, 1.0, 10.0)) * 6)]
    expected = [objective.evaluate(*job) for job in jobs]
    fresh = replace(objective)  # nothing is computed yet: all start at once
    with ThreadPoolExecutor(6) as callers:
        found = list(callers.map(lambda job: fresh.evaluate(*job), jobs))
        curved = list(callers.map(lambda job: fresh.node_curvature(*job), jobs))
    for one, other in zip(found, expected, strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)
    for one, job in zip(curved, jobs, strict=True):
        for a, b in zip(one, objective.node_curvature(*job), strict=True):
            np.testing.assert_array_equal(a, b)


@compiled_only
@pytest.mark.parametrize("failure", [KeyboardInterrupt, MemoryError])
def test_an_interruption_does_no_harm(failure: type[BaseException], monkeypatch: pytest.MonkeyPatch) -> None:
    objective = replace(posed(Pinball(), bias="penalised", n=200), block_entries=60)
    smoothing, z = Smoothing((0.3,)), point(objective)
    expected = objective.evaluate(z, smoothing)
    loops, calls = compiled_functions(), []
    assert loops is not None
    assert len(objective._groups) > 5

    def visit(*arguments: Any) -> None:
        calls.append(1)
        if len(calls) == 5:
            raise failure
        real(*arguments)

    real = loops.visit
    with monkeypatch.context() as patch:
        patch.setattr(loops, "visit", visit)
        with pytest.raises(failure):
            objective.evaluate(z, smoothing)
    for _ in range(3):
        for a, b in zip(objective.evaluate(z, smoothing), expected, strict=True):
            np.testing.assert_array_equal(a, b)


@compiled_only
@each("copied", [copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))], ids=["copy", "pickle"])
def test_an_objective_can_be_copied(copied: Any) -> None:
    objective = posed(Pinball(), bias="free")
    smoothing, z = Smoothing((0.3,)), point(objective)
    expected = objective.evaluate(z, smoothing)
    for a, b in zip(copied(objective).evaluate(z, smoothing), expected, strict=True):
        np.testing.assert_array_equal(a, b)


@compiled_only
def test_an_objective_goes_with_its_last_user() -> None:
    """Its rows may be gigabytes: they must not wait for the garbage collector."""
    objective = posed(Pinball())
    objective.evaluate(point(objective), Smoothing((0.3,)))
    gone = weakref.ref(objective)
    gc.disable()
    try:
        del objective
        assert gone() is None
    finally:
        gc.enable()


def test_all_that_is_compiled_is_in_one_file() -> None:
    """numba looks at the file of a function to see whether what it keeps on disk is out of date, and at no other."""
    folder = Path(infinitask.__file__).parent
    found = [file.name for file in folder.rglob("*.py") if "numba.njit" in file.read_text(encoding="utf-8")]
    assert found == ["_compiled.py"]


# ------------------------------------------------------------------------------------------------- the first call
def test_the_size_of_a_problem_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    for asked, expected in ((None, (False, True)), ("0", (False, False)), ("1", (True, True))):
        monkeypatch.delenv(SWITCH) if asked is None else monkeypatch.setenv(SWITCH, asked)
        assert (compiles(MIN_COMPILED_PAIRS - 1), compiles(MIN_COMPILED_PAIRS)) == expected


@compiled_only
@pytest.mark.parametrize("loaded", [False, True])
def test_the_first_use_is_announced(
    loaded: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Table, "loaded", loaded)
    Ledger(posed(Pinball()), 1e-4, 10, verbose=1)
    assert ("numba compiles them" in capsys.readouterr().err) is not loaded
