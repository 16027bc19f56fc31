"""What is kept between passes changes the work, not the answer."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from infinitask import InfiniteCostSensitiveClassifier, InfiniteQuantileRegressor
from infinitask.fitting import Units
from infinitask.objective import Objective, Smoothing
from infinitask.objective._parted import sums_of
from infinitask.streaming import Blocks
from infinitask.streaming import _parts as rooms
from infinitask.streaming._parts import Block, Kept, LocalParts, PartMaker, Targets
from tests.support.limits import use_threads, visit_in_parts

Floats = np.ndarray[Any, Any]
N, RANK, INPUTS = 1_000, 40, 2
COLUMNS = RANK + 1  # and the column of ones
FEATURES = 8 * N * COLUMNS
"""Bytes of all features in double precision."""


@pytest.fixture(scope="module")
def data() -> tuple[Floats, Floats, Floats]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, INPUTS))
    return X, np.sin(X[:, 0]) + 0.3 * rng.normal(size=N), rng.uniform(0.5, 2.0, size=N)


def makers(model: Any, data: Any, monkeypatch: pytest.MonkeyPatch) -> list[PartMaker]:
    """The makers of parts of a fit in parts."""
    found: list[PartMaker] = []
    parts = Blocks.parts

    def watched(self: Blocks, make: PartMaker) -> LocalParts:
        found.append(make)
        return parts(self, make)

    visit_in_parts(monkeypatch)
    with monkeypatch.context() as patch:
        patch.setattr(Blocks, "parts", watched)
        model.fit(Blocks([data]))
    return found


@pytest.fixture
def made(data: Any, monkeypatch: pytest.MonkeyPatch) -> PartMaker:
    """The maker of parts of a fit."""
    how: dict[str, Any] = {"n_nodes": 6, "tol": 1e-2, "alpha": 1e-3, "gamma": 0.5, "random_state": 0}
    model = InfiniteQuantileRegressor(features="nystroem", rank=RANK, **how)
    return makers(model, data, monkeypatch)[0]


def cut(data: Any, rows: int = 300) -> list[Block]:
    return [Block(*(values[k : k + rows] for values in data)) for k in range(0, N, rows)]


def summed(parts: LocalParts, make: PartMaker, seed: int = 0) -> Any:
    """The sums of a pass at some point."""
    s = make.objective.integrals[0].cols.shape[1]
    C = np.random.default_rng(seed).normal(size=(make.width, s))
    smoothing = Smoothing((0.1,) * len(make.objective.integrals))
    losses, gradient, *_ = parts.total(sums_of, C.ravel(), smoothing.kappa)
    return losses, gradient


def same(one: Any, other: Any, tolerance: float) -> None:
    scale = [np.max(np.abs(b)) for b in other]
    for a, b, size in zip(one, other, scale, strict=True):
        np.testing.assert_allclose(a, b, rtol=0.0, atol=tolerance * size)


def test_what_is_kept_is_what_fits(data: Any, made: PartMaker) -> None:
    inputs = 8 * N * (INPUTS + 2)
    assert made.width == COLUMNS
    assert inputs < FEATURES / 2
    for memory, kept, kind in ((FEATURES, Kept.FEATURES, Objective), (inputs, Kept.INPUTS, Block)):
        assert made.kept(memory) is kept
        assert made.kept(memory - 1) is not kept
        parts = LocalParts(cut(data), made, kept)
        summed(parts, made)
        assert parts._pieces is not None
        assert {type(piece) for piece in parts._pieces} == {kind}
    assert made.kept(inputs - 1) is Kept.NOTHING
    nothing = LocalParts(cut(data), made, Kept.NOTHING)
    summed(nothing, made)
    assert nothing._pieces is None


@pytest.mark.parametrize("kept", Kept)
def test_the_sums_are_the_same_whatever_is_kept(data: Any, made: PartMaker, kept: Kept) -> None:
    whole = summed(LocalParts(cut(data, N), made, Kept.FEATURES), made)
    parts = LocalParts(cut(data), made, kept)
    for passes in (1, 2, 3):
        same(summed(parts, made), whole, 1e-12)
        assert parts.passes == passes


def test_rows_are_read_once_if_they_are_kept(data: Any, made: PartMaker) -> None:
    for kept, reads in ((Kept.FEATURES, 1), (Kept.INPUTS, 1), (Kept.NOTHING, 3)):
        blocks = Blocks(cut(data))
        parts = LocalParts(blocks, made, kept)
        for _ in range(3):
            summed(parts, made)
        assert blocks.passes == reads


@pytest.mark.parametrize("rows", [1, 7, 333, N])
def test_the_cut_of_the_blocks_does_not_matter(data: Any, made: PartMaker, rows: int) -> None:
    whole = summed(LocalParts(cut(data, N), made, Kept.FEATURES), made)
    same(summed(LocalParts(cut(data, rows), made, Kept.FEATURES), made), whole, 1e-12)


@pytest.mark.parametrize("kept", [Kept.FEATURES, Kept.NOTHING])
def test_threads_do_not_change_a_bit(data: Any, made: PartMaker, kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rooms, "IN_MEMORY", 300 * COLUMNS)
    found = []
    with ThreadPoolExecutor(3) as pool:
        for threads in (None, pool):
            use_threads(monkeypatch, threads)
            parts = LocalParts(cut(data, 600), made, kept)
            found.append([summed(parts, made) for _ in range(2)])
    for one, other in zip(*found, strict=True):
        same(one, other, 0.0)


def run_out(patch: pytest.MonkeyPatch, above: int, error: Callable[[], Exception] = MemoryError) -> None:
    """Memory holds at most this number of rows."""
    make = PartMaker.__call__

    def limited(self: PartMaker, block: Block) -> Objective:
        if int(block.X.shape[0]) > above:
            raise error()
        return make(self, block)

    patch.setattr(PartMaker, "__call__", limited)


class OutOfMemoryError(RuntimeError):
    """As torch has one."""


@pytest.mark.parametrize("error", [MemoryError, OutOfMemoryError])
def test_running_out_of_memory_makes_smaller_pieces(
    data: Any, made: PartMaker, error: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = summed(LocalParts(cut(data, N), made, Kept.FEATURES), made)
    run_out(monkeypatch, 400, error)
    parts = LocalParts(cut(data, N), made, Kept.FEATURES)
    before = parts.rows
    same(summed(parts, made), whole, 1e-12)
    assert parts.rows <= 400 < before
    same(summed(parts, made), whole, 1e-12)


def test_memory_that_runs_out_in_a_later_pass_is_no_harm(
    data: Any, made: PartMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = LocalParts(cut(data, N), made, Kept.FEATURES)
    whole = summed(parts, made)

    def full(*_: Any) -> Any:
        patch.undo()
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(parts, "_pass", full)
        same(summed(parts, made), whole, 1e-12)
    assert parts.kept is Kept.INPUTS


def test_memory_for_no_piece_at_all_is_an_error(data: Any, made: PartMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    run_out(monkeypatch, 10)
    with pytest.raises(MemoryError):
        summed(LocalParts(cut(data, N), made, Kept.FEATURES), made)


def test_other_errors_pass_through(data: Any, made: PartMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    run_out(monkeypatch, 400, ZeroDivisionError)
    with pytest.raises(ZeroDivisionError):
        summed(LocalParts(cut(data, N), made, Kept.FEATURES), made)


def test_rows_of_weight_zero_may_hold_anything(data: Any, made: PartMaker) -> None:
    dead = np.zeros((5, INPUTS)) + np.nan, np.full(5, np.inf), np.zeros(5)
    blocks = [Block(*map(np.concatenate, zip(data, dead, strict=True))), Block(*dead)]
    whole = summed(LocalParts(cut(data, N), made, Kept.FEATURES), made)
    same(summed(LocalParts(blocks, made, Kept.FEATURES), made), whole, 1e-12)


@pytest.mark.parametrize("rows", [0, 500])
def test_a_pass_with_other_rows_is_told(data: Any, made: PartMaker, rows: int) -> None:
    blocks = [Block(*(values[:rows] for values in data))] if rows else []
    with pytest.raises(ValueError, match=f"held 1000 rows .* and {rows} when they were read again"):
        summed(LocalParts(blocks, made, Kept.FEATURES), made)


# ----------------------------------------------------------------------------------------------------------- targets
def test_labels_become_signs() -> None:
    targets = Targets(np.array(["no", "yes"]))
    np.testing.assert_array_equal(targets(["yes", "no"]), [[1.0], [-1.0]])
    with pytest.raises(ValueError, match=r"y holds .*maybe.*, which is none of the classes \['no', 'yes'\]"):
        targets(["yes", "maybe"])


def test_numbers_are_measured_in_their_units() -> None:
    targets = Targets(units=Units(centre=5.0, spread=2.0))
    np.testing.assert_array_equal(targets(np.array([5, 9])), [[0.0], [2.0]])
    np.testing.assert_array_equal(targets(np.array([[5.0, 9.0]])), [[0.0, 2.0]])


# -------------------------------------------------------------------------------------------------- bytes that are kept
def held(thing: Any, seen: set[int]) -> int:
    """Bytes of all arrays that are reached from an object, each counted once."""
    if id(thing) in seen:
        return 0
    seen.add(id(thing))
    if isinstance(thing, np.ndarray):
        return held(thing.base, seen) if isinstance(thing.base, np.ndarray) else thing.nbytes
    if isinstance(thing, dict):
        return sum(held(value, seen) for value in thing.values())
    if isinstance(thing, (list, tuple)):
        return sum(held(value, seen) for value in thing)
    return held(vars(thing), seen) if type(thing).__module__.startswith("infinitask") else 0


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", ["classes", "quantiles"])
def test_what_is_kept_takes_the_memory_that_was_given(
    data: Any, name: str, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of the size of rows × nodes, and no second copy of the features, stays after a pass."""
    X, y, weight = data
    nodes, common = (
        50,
        {"features": "nystroem", "rank": RANK, "tol": 1e-2, "alpha": 1e-3, "gamma": 0.5, "random_state": 0},
    )
    if name == "classes":
        model: Any = InfiniteCostSensitiveClassifier(n_nodes=nodes, calibrated=False, **common)
        y = np.where(y > 0.0, 1, 0)
    else:
        model = InfiniteQuantileRegressor(n_nodes=nodes, **common)
    (make,) = makers(model, (X, y, weight), monkeypatch)
    make = replace(make, objective=replace(make.objective, compiled=compiled))
    parts = LocalParts(cut((X, y, weight), 500), make, Kept.FEATURES)
    first = make.objective.integrals[0]
    size = make.width * first.cols.shape[1] + (0 if first.bias_cols is None else first.bias_cols.shape[1])
    parts.total(sums_of, np.zeros(size), (0.1,) * len(make.objective.integrals))
    assert parts._pieces is not None
    bytes_held = held(parts._pieces, set())
    beside = 4 * 8 * N  # targets, weights, and for compiled loops targets and kinds
    of_nodes = 8 * nodes * nodes * 4  # features of the tasks, not of the rows
    assert FEATURES <= bytes_held <= FEATURES + beside + of_nodes * len(parts._pieces) < 1.7 * FEATURES
    assert abs(parts.__sizeof__() - bytes_held) <= of_nodes * len(parts._pieces)


def test_the_description_says_what_is_kept(data: Any, made: PartMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    assert LocalParts(cut(data), made, Kept.FEATURES).description == "features kept"
    assert LocalParts(cut(data), made, Kept.NOTHING).description == "rows read again in every pass"
    run_out(monkeypatch, 400)
    parts = LocalParts(cut(data, N), made, Kept.FEATURES)
    summed(parts, made)
    assert parts.description == "rows read again in every pass"
