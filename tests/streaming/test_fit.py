"""Fits of rows that are visited in parts reach the gap, and the objective, of fits in memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from infinitask import (
    IndependentQuantileRegressor,
    InfiniteCostSensitiveClassifier,
    InfiniteExpectileRegressor,
    InfiniteKernelRidge,
    InfiniteOneClassSVM,
    InfiniteQuantileRegressor,
    InfiniteSVR,
    InfiniteTaskEstimator,
    QOneClassSVM,
)
from infinitask.features import Nystroem, PivotedCholesky
from infinitask.fitting import _learn
from infinitask.fitting._defaults import shrinkage
from infinitask.losses import ConvexLoss
from infinitask.measures import Discrete, Uniform
from infinitask.streaming import Blocks
from infinitask.streaming import _fit as large
from infinitask.streaming._parts import Kept, LocalParts, PartMaker
from tests.support.limits import large_from, sample_rows, visit_in_parts

Floats = np.ndarray[Any, Any]
N, TOL = 240, 1e-3


@pytest.fixture
def in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are visited in parts although the sample holds all of them: choices and features are those of memory."""
    visit_in_parts(monkeypatch)


@pytest.fixture(scope="module")
def data() -> tuple[Floats, Floats, Floats]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 2))
    return X, np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.4 * rng.normal(size=N), rng.integers(0, 3, size=N).astype(float)


def cut(*arrays: Any, rows: int = 70, **options: Any) -> Blocks:
    n = len(arrays[0])
    return Blocks([tuple(a[k : k + rows] for a in arrays) for k in range(0, n, rows)], **options)


class Weighted(ConvexLoss):
    """(1 + θ)(y − h)²/2."""

    def value(self, theta: Any, y: Any, h: Any) -> Any:
        return 0.5 * (1.0 + theta) * (y - h) ** 2

    def slope(self, theta: Any, y: Any, h: Any) -> Any:
        return (1.0 + theta) * (h - y)


MODELS: dict[str, Any] = {
    "quantiles": InfiniteQuantileRegressor(n_nodes=8, tol=TOL),
    "quantiles in order": InfiniteQuantileRegressor(n_nodes=8, tol=TOL, noncrossing="rearrange"),
    "quantiles, bias of its own": InfiniteQuantileRegressor(
        n_nodes=8, tol=TOL, bias_kernel="matern52", alpha_bias=1e-3
    ),
    "quantiles, no bias": InfiniteQuantileRegressor(n_nodes=8, tol=TOL, bias_kernel=None),
    "M-quantiles": InfiniteQuantileRegressor(n_nodes=8, tol=TOL, smoothing=0.2),
    "quantiles, random features": InfiniteQuantileRegressor(
        n_nodes=8, tol=TOL, features="fourier", rank=40, random_state=0
    ),
    "quantiles one by one": IndependentQuantileRegressor(quantiles=[0.1, 0.6], tol=TOL),
    "expectiles": InfiniteExpectileRegressor(n_nodes=8, tol=TOL),
    "tubes": InfiniteSVR(n_nodes=8, tol=TOL),
    "ridges": InfiniteKernelRidge(n_nodes=8, tol=TOL),
    "a loss by name": InfiniteTaskEstimator("pinball", n_nodes=8, tol=TOL),
    "a loss of one's own": InfiniteTaskEstimator(Weighted(), measure=Uniform(), n_nodes=8, tol=TOL),
    "classes": InfiniteCostSensitiveClassifier(n_nodes=8, tol=TOL),
    "classes, free bias": InfiniteCostSensitiveClassifier(n_nodes=8, tol=TOL, alpha=1e-2),
    "level sets": InfiniteOneClassSVM(n_nodes=8, tol=1e-2, alpha=0.1),
    "level sets, free thresholds": QOneClassSVM(tol=1e-2),
}


def given(name: str, data: Any) -> tuple[Any, ...]:
    X, y, weight = data
    if name.startswith("level"):
        return X, None, weight
    return X, np.where(y > 0.5, "yes", "no") if name.startswith("classes") else y, weight


@pytest.mark.quick(every=3)
@pytest.mark.usefixtures("in_parts")
@pytest.mark.parametrize("name", MODELS)
def test_the_objective_is_that_of_memory_within_both_gaps(name: str, data: Any) -> None:
    X, y, weight = given(name, data)
    memory, ours = (type(MODELS[name])(**MODELS[name].get_params(deep=False)) for _ in range(2))
    memory.fit(X, y, sample_weight=weight)
    # a level set has no use for targets, but blocks with weights have a place for them
    ours.fit(cut(X, np.zeros(N) if y is None else y, weight))
    assert ours.dual_gap_ <= ours.tol
    assert ours.alpha_ == memory.alpha_
    scale = max(abs(memory.objective_), abs(ours.objective_))
    assert abs(ours.objective_ - memory.objective_) <= 2.0 * ours.tol * scale


@pytest.mark.usefixtures("in_parts")
def test_the_choices_of_memory_are_made(data: Any) -> None:
    X, y, _ = data
    models = [InfiniteQuantileRegressor(n_nodes=8, tol=TOL) for _ in range(2)]
    memory, ours = models[0].fit(X, y), models[1].fit(cut(X, y))
    assert ours.alpha_ == memory.alpha_
    assert ours.features_ == memory.features_
    np.testing.assert_allclose(ours.predict(X, [0.1, 0.9]), memory.predict(X, [0.1, 0.9]), atol=0.05)


@pytest.mark.usefixtures("in_parts")
def test_labels_stay_what_they_are_and_probabilities_are_calibrated(data: Any) -> None:
    X, y, _ = given("classes", data)
    model = InfiniteCostSensitiveClassifier(n_nodes=16, tol=TOL).fit(cut(X, y))
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.n_samples_fit_ == N
    assert hasattr(model, "shift_")
    assert np.mean(model.predict(X) == y) > 0.85
    p = model.predict_proba(X)[:, 1]
    assert abs(p.mean() - np.mean(y == "yes")) < 0.05


@pytest.mark.usefixtures("in_parts")
def test_targets_of_their_own_at_every_node(data: Any) -> None:
    X, y, _ = data
    both = np.column_stack([y, y + 1.0])
    models = [InfiniteTaskEstimator("pinball", measure=Discrete([0.3, 0.6]), alpha=1e-3, tol=TOL) for _ in range(2)]
    memory, ours = models[0].fit(X, both), models[1].fit(cut(X, both))
    assert ours.objective_ == pytest.approx(memory.objective_, rel=2 * TOL)


# ----------------------------------------------------------------------------------------------------------- weights
def fixed(**options: Any) -> InfiniteQuantileRegressor:
    return InfiniteQuantileRegressor(**{"n_nodes": 8, "tol": TOL, "alpha": 1e-3, "gamma": 0.5} | options)


@pytest.mark.quick("in parts")
@pytest.mark.parametrize("visited", ["in memory", "in parts"])
def test_a_weight_is_a_repeated_row_and_none_is_no_row(
    data: Any, visited: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if visited == "in parts":
        visit_in_parts(monkeypatch)
    X, y, weight = data
    assert set(weight) == {0.0, 1.0, 2.0}
    again = np.repeat(np.arange(N), weight.astype(int))
    kept = weight > 0.0
    fits = [fixed().fit(b) for b in (cut(X, y, weight), cut(X[again], y[again]), cut(X[kept], y[kept], weight[kept]))]
    for other in fits[1:]:
        assert other.objective_ == pytest.approx(fits[0].objective_, rel=2 * TOL)


def test_a_sample_of_all_rows_is_the_fit_in_memory(data: Any) -> None:
    X, y, weight = data
    for model in (InfiniteQuantileRegressor(n_nodes=8), InfiniteOneClassSVM(n_nodes=8, alpha=0.1)):
        memory = type(model)(**model.get_params()).fit(X, y, sample_weight=weight)
        blocks = cut(X, y, weight)
        ours = type(model)(**model.get_params()).fit(blocks)
        assert blocks.passes == 1
        assert (ours.objective_, ours.alpha_) == (memory.objective_, memory.alpha_)
        np.testing.assert_array_equal(ours.field_.coef, memory.field_.coef)


# ------------------------------------------------------------------------------------------------- what does not matter
@pytest.mark.quick("33")
@pytest.mark.usefixtures("in_parts")
@pytest.mark.parametrize("rows", [pytest.param(1, marks=pytest.mark.slow), 33, 80])
def test_the_size_of_blocks_does_not_matter(data: Any, rows: int) -> None:
    X, y = data[0][:80], data[1][:80]
    first = fixed().fit(cut(X, y))
    other = fixed().fit(cut(X, y, rows=rows))
    assert other.objective_ == pytest.approx(first.objective_, rel=2 * TOL)
    np.testing.assert_allclose(other.predict(X), first.predict(X), atol=0.05)


@pytest.mark.usefixtures("in_parts")
def test_memory_changes_the_passes_and_not_the_answer(data: Any) -> None:
    X, y, _ = data
    found = {}
    for memory in (None, 4 * N * 41, 8 * N * 4, 0):
        blocks = cut(X, y, memory=memory)
        model = fixed(features="nystroem", rank=40, random_state=0).fit(blocks)
        assert model.dual_gap_ <= TOL
        found[memory] = model.objective_, blocks.passes, model.solution_.n_evaluations
    objectives = [objective for objective, _, _ in found.values()]
    assert max(objectives) - min(objectives) <= 2.0 * TOL * min(objectives)
    assert found[None][1] == found[8 * N * 4][1] == 2  # the first look, and what is kept
    _, passes, evaluations = found[0]
    assert passes == 1 + evaluations


@pytest.mark.usefixtures("in_parts")
@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_features_in_single_precision_agree(data: Any, kind: str) -> None:
    X, y, _ = data
    if kind == "torch":
        torch = pytest.importorskip("torch", reason="pip install infinitask[torch]")
        X, y = torch.asarray(X), torch.asarray(y)
        half = cut(X.to(torch.float32), y.to(torch.float32))
    else:
        half = cut(X.astype(np.float32), y.astype(np.float32))
    options = {"features": "nystroem", "rank": 40, "random_state": 0}
    first, other = fixed(**options).fit(cut(X, y)), fixed(**options).fit(half)
    assert other.dual_gap_ <= TOL
    assert other.objective_ == pytest.approx(first.objective_, rel=1e-3)


@pytest.fixture
def seen_parts(monkeypatch: pytest.MonkeyPatch) -> list[LocalParts]:
    """The parts of all fits in parts, in their order."""
    found: list[LocalParts] = []
    parts = Blocks.parts

    def watched(self: Blocks, make: PartMaker) -> LocalParts:
        found.append(parts(self, make))
        return found[-1]

    monkeypatch.setattr(Blocks, "parts", watched)
    return found


# --------------------------------------------------------------------------------------------------- more than a sample
def rows_in_blocks(n: int, size: int, inputs: int = 3) -> Any:
    def read() -> Iterator[Any]:
        for start in range(0, n, size):
            rng = np.random.default_rng(start)
            X = rng.normal(size=(min(size, n - start), inputs))
            yield X, np.sin(2.0 * X[:, 0]) + X[:, 1] + (0.3 + 0.2 * np.abs(X[:, 2])) * rng.normal(size=len(X))

    return read


def test_the_certificate_is_that_of_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    sample_rows(monkeypatch, 300)
    read = rows_in_blocks(3_000, 700)
    model = fixed(features="nystroem", rank=60, random_state=0).fit(Blocks(read))
    X, y = (np.concatenate(parts) for parts in zip(*read(), strict=True))
    assert model.dual_gap_ <= TOL
    # the exact objective at the solution, from all rows and predictions alone
    u, w = model.nodes_, model.weights_
    h = model.field_(X, u[:, None])
    loss = np.mean(np.maximum(u * (y[:, None] - h), (u - 1.0) * (y[:, None] - h)), axis=0) @ w
    slope = np.mean(np.maximum(-model.field_(X, u[:, None], order=1), 0.0), axis=0) @ w
    ridges = 0.5 * model.alpha_ * model.field_.norm**2 + 0.5 * model.alpha_bias_ * np.sum(model.field_.bias_coef**2)
    value = loss + model.noncrossing * slope + ridges
    assert model.objective_ == pytest.approx(value, rel=1e-10)
    # the sample alone would not do
    some = fixed(features="nystroem", rank=60, random_state=0).fit(X[:300], y[:300])
    assert abs(some.objective_ - model.objective_) > 10.0 * TOL * model.objective_


RANKED = {"features": "nystroem", "rank": 40, "random_state": 0}


def test_features_on_a_device_serve_many_rows(monkeypatch: pytest.MonkeyPatch, seen_parts: list[LocalParts]) -> None:
    pytest.importorskip("torch", reason="pip install infinitask[torch]")
    sample_rows(monkeypatch, 1_000)
    n = 20_000
    read = rows_in_blocks(n, 6_000)
    room = 8 * n * (RANKED["rank"] + 1)
    kept, again = (Blocks(read, memory=memory) for memory in (room, room - 1))
    first, *others = (
        fixed(device=d, **RANKED).fit(rows) for d, rows in ((None, Blocks(read)), ("cpu", kept), ("cpu", again))
    )
    assert [parts.kept for parts in seen_parts] == [Kept.FEATURES, Kept.FEATURES, Kept.INPUTS]
    assert kept.passes == 2
    for other in others:
        assert other.dual_gap_ <= TOL
        assert other.objective_ == pytest.approx(first.objective_, rel=1e-3)


def peak(memory: int | None, n: int, size: int) -> int:
    options = {"features": "nystroem", "rank": 60, "tol": 1e-2, "random_state": 0, "max_iter": 40}
    blocks = Blocks(rows_in_blocks(n, size), memory=memory)
    tracemalloc.start()
    try:
        fixed(**options).fit(blocks)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_a_fit_without_memory_holds_a_few_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    sample_rows(monkeypatch, 500)
    n, size, columns = 30_000, 500, 61
    all_features, block = 8 * n * columns, 8 * size * columns
    assert peak(None, n, size) > all_features
    assert peak(0, n, size) < 12 * block < all_features / 4


def test_arrays_with_many_features_are_fitted_in_parts(data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    of_arrays = Blocks.of_arrays

    def watched(*arguments: Any, **options: Any) -> Blocks:
        seen.append(of_arrays(*arguments, **options))
        return seen[-1]

    X, y, weight = data
    expected = [fixed(rank=40).fit(X, y, w) for w in (None, weight, 2.0)]
    assert not seen
    monkeypatch.setattr(Blocks, "of_arrays", watched)
    large_from(monkeypatch, N, 40 * N)
    for w, memory in zip((None, weight, 2.0), expected, strict=True):
        assert fixed(rank=40).fit(X, y, w).objective_ == memory.objective_
        assert fixed(rank=40).fit(X, y[:, None], w).objective_ == memory.objective_
    assert len(seen) == 6
    fixed(rank=39).fit(X, y)
    assert len(seen) == 6


# ----------------------------------------------------------------------------------------------- what a sample decides
def sampled(n: int = 4_000, inputs: int = 2) -> Floats:
    return np.random.default_rng(0).normal(size=(n, inputs))


def test_the_ridge_follows_the_number_of_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """alpha="auto" for a sample is λ of its rows; there are more, and λ falls with their number."""
    sample_rows(monkeypatch, 400)
    rows: list[Any] = []
    resolve = _learn.resolved

    def watched(*arguments: Any, **options: Any) -> Any:
        found = resolve(*arguments, **options)
        rows.append((found.alpha, resolve(*arguments).alpha))
        return found

    monkeypatch.setattr(_learn, "resolved", watched)
    model = fixed(alpha="auto", gamma="auto", **RANKED).fit(Blocks(rows_in_blocks(4_000, 1_000)))
    ((ours, of_the_sample),) = rows
    assert model.alpha_ == ours
    assert ours == pytest.approx(of_the_sample * shrinkage(400, 4_000), rel=1e-6)


@pytest.mark.slow
def test_the_fractions_of_level_sets_are_calibrated(monkeypatch: pytest.MonkeyPatch) -> None:
    sample_rows(monkeypatch, 1_000)
    X, nu = sampled(), np.array([0.1, 0.3, 0.6])
    for fractions in (True, "held-out"):
        model = InfiniteOneClassSVM(alpha=1.0, n_nodes=8, tol=1e-2, exact_fractions=fractions, **RANKED)
        model.fit(Blocks.of_arrays(X))
        assert hasattr(model, "shift_")
        outside = np.mean(model.predict(X, nu) < 0, axis=0)
        assert np.max(np.abs(outside - nu)) < 0.05  # three standard errors of a thousand rows
        plain = InfiniteOneClassSVM(alpha=1.0, n_nodes=8, tol=1e-2, exact_fractions=False, **RANKED)
        moved = np.mean(plain.fit(Blocks.of_arrays(X)).predict(X, nu) < 0, axis=0)
        assert np.max(np.abs(moved - nu)) > 0.05  # without it they are others
        assert not hasattr(plain, "shift_")


def test_the_number_of_rows_is_that_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    sample_rows(monkeypatch, 400)
    X = sampled(2_000)
    model = InfiniteCostSensitiveClassifier(n_nodes=6, tol=0.1, alpha=1e-2, gamma=0.5, **RANKED)
    assert model.fit(Blocks.of_arrays(X, X[:, 0] > 0.0)).n_samples_fit_ == 2_000
    for weight, expected in ((3.0, 6_000), (0.01, 2_000)):
        blocks = Blocks.of_arrays(X, X[:, 0] > 0.0, np.full(2_000, weight))
        assert model.fit(blocks).n_samples_fit_ == expected


def test_the_mean_that_is_taken_off_is_that_of_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    sample_rows(monkeypatch, 200)
    X, rng = sampled(3_000), np.random.default_rng(1)
    y, weight = np.exp(2.0 * rng.normal(size=3_000)) + X[:, 0], rng.uniform(0.5, 2.0, size=3_000)
    model = InfiniteKernelRidge(n_nodes=8, tol=TOL, gamma=0.3, **RANKED)
    for memory in (None, 0):
        model.fit(Blocks.of_arrays(X, y, weight, rows=700, memory=memory))
        assert model.recipe_.units.centre == pytest.approx(np.average(y, weights=weight), rel=1e-12)
        far = np.full((1, 2), 1e3)  # where the kernel is 0 the mean is left
        assert model.predict(far) == pytest.approx(np.average(y, weights=weight), rel=1e-12)
    plain = model.set_params(centred=False).fit(Blocks.of_arrays(X, y, weight, rows=700))
    assert plain.predict(far) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.slow
def test_a_sample_is_not_told_to_be_equal_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    sample_rows(monkeypatch, 300)
    common = {"alpha": 1e-3, "n_nodes": 6, "exact_fractions": False, "tol": 1e-4, "random_state": 0}
    with pytest.warns(UserWarning, match=r"lie on the boundary of the set itself.*; rounding decides"):
        InfiniteOneClassSVM(gamma=10.0, **common).fit(Blocks.of_arrays(sampled(3_000, 1)))
    equal = np.random.default_rng(0).integers(0, 2, size=(3_000, 4)).astype(float)
    with pytest.warns(UserWarning, match=r"the 300 rows of the sample are only 16 different ones"):
        InfiniteOneClassSVM(**common | {"alpha": 1e-6}).fit(Blocks.of_arrays(equal))


@pytest.mark.parametrize("features", ["exact", PivotedCholesky(20)])
def test_exact_features_of_a_sample_are_refused(features: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X = sampled(1_000)
    blocks = Blocks.of_arrays(X, X[:, 0])
    assert "exact" in fixed(features="exact", gamma=0.05, tol=0.1).fit(blocks).features_  # the sample is all rows
    sample_rows(monkeypatch, 300)
    with pytest.raises(ValueError, match=r"^features=.* visited in parts; landmarks come from a sample"):
        fixed(features=features).fit(blocks)


def test_landmarks_say_where_they_come_from(monkeypatch: pytest.MonkeyPatch) -> None:
    X = sampled(1_000)
    blocks = Blocks.of_arrays(X, X[:, 0])
    assert "sample" not in fixed(rank=20, tol=0.1).fit(blocks).features_
    sample_rows(monkeypatch, 300)
    for features in ("auto", "nystroem"):
        told = fixed(features=features, rank=20, tol=0.1).fit(blocks).features_
        assert told.endswith("; landmarks from a sample of 300 of 1000 rows")
    assert "landmarks" not in fixed(features="fourier", rank=20, tol=0.1).fit(blocks).features_


def test_newton_is_refused_where_it_would_not_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    X = sampled(1_000)
    blocks = Blocks.of_arrays(X, X[:, 0])
    quick = {"gamma": 0.05, "tol": 0.1}
    fixed(solver="newton", rank=20, **quick).fit(blocks)  # the sample is all rows
    sample_rows(monkeypatch, 300)
    with pytest.raises(ValueError, match=r"^solver='newton' was given for rows that are visited in parts"):
        fixed(solver="newton").fit(blocks)
    large_from(monkeypatch, 1, 1)
    for in_memory in ({"solver": "newton"}, {"features": "exact"}):
        assert "sample" not in fixed(rank=20, **in_memory, **quick).fit(X, X[:, 0]).features_


def test_the_sample_grows_with_the_rank_wherever_it_is_given() -> None:
    sizes = [large.sample_size(fixed(**given).recipe()) for given in ({"rank": 5_000}, {"features": Nystroem(5_000)})]
    assert sizes == [40_000, 40_000]
    assert large.sample_size(fixed(rank=40).recipe()) == large.SAMPLE_ROWS
    assert large.sample_size(fixed(features=Nystroem()).recipe()) == large.SAMPLE_ROWS


# ------------------------------------------------------------------------------------------------------------ odd ends
@pytest.mark.usefixtures("in_parts")
def test_one_row() -> None:
    model = fixed().fit(Blocks([(np.ones((1, 2)), np.array([3.0]))]))
    assert model.predict(np.ones((1, 2))) == pytest.approx(3.0)


@pytest.mark.quick(every=2)
@pytest.mark.usefixtures("in_parts")
@pytest.mark.parametrize(
    ("inputs", "targets"),
    [(0.0, 1.0), (1.0, 0.0), (1e90, 1e90), (1e-60, 1e-60)],
    ids=["constant inputs", "constant targets", "huge", "tiny"],
)
def test_constant_huge_and_tiny_numbers(data: Any, inputs: float, targets: float) -> None:
    X, y, _ = data
    model = InfiniteQuantileRegressor(n_nodes=8, tol=TOL).fit(cut(inputs * X + (inputs == 0.0), targets * y))
    assert model.dual_gap_ <= TOL
    assert np.all(np.isfinite(model.predict(inputs * X)))


@pytest.mark.usefixtures("in_parts")
def test_fewer_rows_than_landmarks(data: Any) -> None:
    X, y, _ = data
    assert fixed(features="nystroem", rank=500).fit(cut(X[:50], y[:50], rows=20)).dual_gap_ <= TOL


@pytest.mark.usefixtures("in_parts")
@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_an_error_in_a_later_pass_leaves_the_model_unfitted(data: Any, error: type[Exception]) -> None:
    X, y, _ = data
    calls = []

    def read() -> Iterator[Any]:
        calls.append(0)
        yield X, y
        if len(calls) > 3:
            raise error("the disk is gone")

    model = fixed().fit(X, y)
    with pytest.raises(error, match="the disk is gone"):
        model.fit(Blocks(read, memory=0))
    assert len(calls) == 4
    assert not hasattr(model, "field_")


@pytest.mark.usefixtures("in_parts")
def test_an_iterator_that_ends_is_told(data: Any) -> None:
    X, y, _ = data
    once = iter([(X, y)])
    with pytest.raises(ValueError, match="must return a fresh iterator at every call"):
        fixed().fit(Blocks(lambda: once))


@pytest.mark.usefixtures("in_parts")
def test_a_label_that_appears_later_is_told(data: Any) -> None:
    X, y, _ = given("classes", data)
    passes = []

    def read() -> Iterator[Any]:
        passes.append(0)
        yield X, y if len(passes) == 1 else np.where(X[:, 0] > 0.0, "maybe", y)

    with pytest.raises(ValueError, match=r"maybe.* none of the classes \['no', 'yes'\]"):
        InfiniteCostSensitiveClassifier(n_nodes=4, tol=0.1).fit(Blocks(read))


def test_progress_is_shown(data: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    visit_in_parts(monkeypatch)
    X, y, _ = data
    fixed(tol=0.1, verbose=1).fit(cut(X, y))
    shown = capsys.readouterr().err
    assert "first pass over the rows" in shown
    assert f"{N} rows" in shown
    assert "features kept" in shown
