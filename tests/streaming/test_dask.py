"""Rows on a Dask cluster: the same fit as in memory, wherever the rows are and whatever happens to the workers."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import weakref
from collections.abc import Iterator
from typing import Any

import joblib
import numpy as np
import pytest

from infinitask import (
    InfiniteCostSensitiveClassifier,
    InfiniteExpectileRegressor,
    InfiniteOneClassSVM,
    InfiniteQuantileRegressor,
)
from infinitask.streaming import Blocks
from infinitask.streaming import _dask as distributed
from infinitask.tuning import InfiniteQuantileRegressorCV

pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

import dask  # noqa: E402
from distributed import Client, LocalCluster  # noqa: E402

from infinitask.streaming import _dask  # noqa: E402
from infinitask.streaming._dask import DaskRows, is_dask  # noqa: E402
from tests.support.limits import sample_rows, visit_in_parts  # noqa: E402

N = 600
COMMON: dict[str, Any] = {"gamma": 0.5, "n_nodes": 6, "random_state": 0}
PROBLEM: dict[str, Any] = COMMON | {"alpha": 1e-2, "alpha_bias": 1e-2, "tol": 1e-2}
PATIENT: dict[str, Any] = PROBLEM | {"tol": 1e-3}  # the rough solution of the sample does not suffice


@pytest.fixture(autouse=True)
def parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows stay in parts though there are so few of them that a sample is all."""
    visit_in_parts(monkeypatch)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with LocalCluster(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0") as found:
        yield found


@pytest.fixture
def client(cluster: Any) -> Iterator[Any]:
    with Client(cluster) as found:
        yield found


def data(n: int = N, seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, size=(n, 2))
    return X, np.sin(3.0 * X[:, 0]) + 0.2 * rng.normal(size=n), rng.integers(0, 3, size=n).astype(float)


def frame(partitions: int = 4) -> Any:
    X, y, weight = data()
    return dd.from_pandas(pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y, "w": weight}), npartitions=partitions)


def assert_same_optimum(one: Any, other: Any) -> None:
    """Both are certified to be within their gaps of the same smallest objective."""
    assert max(one.dual_gap_, other.dual_gap_) <= one.tol
    assert one.objective_ <= other.objective_ + one.dual_gap_ * abs(one.objective_)
    assert other.objective_ <= one.objective_ + other.dual_gap_ * abs(other.objective_)


# -------------------------------------------------------------------------------------------------------------- fits
@pytest.mark.parametrize(
    "kind", ["quantiles", "expectiles", "classes", pytest.param("level sets", marks=pytest.mark.slow)]
)
def test_a_fit_on_a_cluster_is_that_of_blocks_and_of_memory(client: Any, kind: str) -> None:
    X, y, weight = data()
    model: Any = {
        "quantiles": InfiniteQuantileRegressor(**PATIENT),
        "expectiles": InfiniteExpectileRegressor(**PATIENT | {"tol": 1e-9}),
        "classes": InfiniteCostSensitiveClassifier(**PATIENT),
        "level sets": InfiniteOneClassSVM(**COMMON, tol=0.1),
    }[kind]
    target = np.where(y > 0.0, "up", "down") if kind == "classes" else None if kind == "level sets" else y
    lazy = [None if v is None else da.from_array(v, chunks=170) for v in (target, weight)]
    on_cluster = pickle.loads(pickle.dumps(model.fit(da.from_array(X, chunks=(150, 1)), *lazy)))
    in_blocks = pickle.loads(pickle.dumps(model.fit(Blocks.of_arrays(X, target, weight, rows=150))))
    np.testing.assert_allclose(on_cluster.objective_, in_blocks.objective_, rtol=1e-8)
    np.testing.assert_allclose(on_cluster.field_.coef, in_blocks.field_.coef, rtol=0.0, atol=1e-7)
    assert_same_optimum(on_cluster, model.fit(X, target, weight))


def test_a_fit_without_a_client_is_the_same(cluster: Any) -> None:
    X, y, _ = data()
    rows = da.from_array(X, chunks=(100, 2)), da.from_array(y, chunks=100)
    with Client(cluster):
        on_cluster = InfiniteQuantileRegressor(**PATIENT).fit(*rows)
    alone = InfiniteQuantileRegressor(**PATIENT).fit(*rows)
    np.testing.assert_allclose(alone.field_.coef, on_cluster.field_.coef, rtol=0.0, atol=1e-8)


@pytest.mark.parametrize(
    ("memory", "kept"),
    [
        (10**9, "features kept"),
        pytest.param(50_000, "inputs kept", marks=pytest.mark.slow),
        (0, "rows read again in every pass"),
    ],
)
def test_what_is_kept_does_not_change_the_fit(
    client: Any, capsys: pytest.CaptureFixture[str], memory: int, kept: str
) -> None:
    X, y, weight = data()
    rows = da.from_array(X, chunks=(200, 2)), da.from_array(y, chunks=200), da.from_array(weight, chunks=200)
    usual = InfiniteQuantileRegressor(**PATIENT).fit(*rows)
    model = InfiniteQuantileRegressor(**PATIENT, verbose=1, rank=60).fit(DaskRows(*rows, memory=memory))
    assert f"3 partitions on 2 workers; {kept}" in capsys.readouterr().err
    assert model.n_iter_ > 5
    np.testing.assert_allclose(model.field_.coef, usual.field_.coef, rtol=0.0, atol=1e-8)


@pytest.mark.parametrize(
    ("rows", "targets"), [("frame", "series"), ("frame", "numpy"), ("unknown", "array"), ("unknown", "pandas")]
)
def test_frames_and_unknown_sizes(client: Any, rows: str, targets: str) -> None:
    whole = frame()
    X, y, _ = data()
    inputs = whole[["a", "b"]] if rows == "frame" else whole[["a", "b"]].to_dask_array()
    given = {"series": whole.y, "array": whole.y.to_dask_array(), "numpy": y, "pandas": pd.Series(y)}[targets]
    model = InfiniteQuantileRegressor(**PROBLEM).fit(inputs, given, whole.w)
    expected = InfiniteQuantileRegressor(**PROBLEM).fit(Blocks.of_arrays(X, y, data()[2]))
    np.testing.assert_allclose(model.objective_, expected.objective_, rtol=1e-8)
    if rows == "frame":
        assert model.feature_names_in_.tolist() == ["a", "b"]
        answer = model.predict(inputs, quantiles=[0.2, 0.8])
        np.testing.assert_allclose(answer.compute(), model.predict(inputs.compute(), quantiles=[0.2, 0.8]), rtol=1e-9)


def test_partitions_without_rows_and_rows_without_weight_do_not_count(client: Any) -> None:
    X, y, weight = data()
    whole = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y, "w": weight, "i": np.arange(N)})
    whole.loc[whole.w == 0.0, ["a", "y"]] = np.nan  # nobody looks at them
    lazy = dd.from_pandas(whole, npartitions=6)
    lazy = lazy[(lazy.i < 150) | (lazy.i >= 400)]  # two partitions become empty
    model = InfiniteQuantileRegressor(**PROBLEM).fit(lazy[["a", "b"]], lazy.y, lazy.w)
    left = ((np.arange(N) < 150) | (np.arange(N) >= 400)) & (weight > 0.0)
    assert_same_optimum(model, InfiniteQuantileRegressor(**PROBLEM).fit(X[left], y[left], weight[left]))
    answer = model.predict(lazy[["a", "b"]].fillna(0.0)).compute()
    assert answer.shape == (350,)


# ------------------------------------------------------------------------------------------------------- the sample
@pytest.mark.parametrize("labels", [False, True], ids=["numbers", "classes"])
def test_the_sample_comes_from_all_partitions(cluster: Any, labels: bool) -> None:
    n, parts, size = 40_000, 10, 2_000
    X = np.arange(float(n))[:, None]
    y = np.arange(n) % 100 == 7 if labels else np.arange(float(n))  # one row of a hundred
    weight = 1.0 + np.arange(n) % 2
    rows = DaskRows(*(da.from_array(values, chunks=(n // parts, *values.shape[1:])) for values in (X, y, weight)))
    with Client(cluster):
        survey, again = (rows.survey(size, 3, labels=labels) for _ in range(2))
    assert survey.n == n
    np.testing.assert_allclose(survey.mass, weight.sum(), rtol=1e-12)
    at = survey.X[:, 0].astype(int)
    assert np.all(np.diff(at) > 0)
    np.testing.assert_array_equal(survey.y, y[at])
    if labels:
        assert np.count_nonzero(survey.y) == 400  # all there are
        np.testing.assert_allclose(survey.weight[survey.y], weight[at[survey.y]], rtol=1e-12)
        at = at[~survey.y]
    share = at.size / parts
    counts = np.bincount(at // (n // parts), minlength=parts)
    assert np.all(np.abs(counts - share) < 5.0 * np.sqrt(share))
    assert abs(survey.weight.sum() / weight.sum() - 1.0) < 0.05
    alone = rows.survey(size, 3, labels=labels)
    for other in (again, alone):
        np.testing.assert_array_equal(survey.X, other.X)
        np.testing.assert_array_equal(survey.weight, other.weight)
    assert not np.array_equal(survey.X, rows.survey(size, 4, labels=labels).X)


def test_a_sample_without_a_client_holds_few_partitions_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    draws: list[weakref.ref[Any]] = []
    alive: list[int] = []

    def watched(*arguments: Any, **options: Any) -> Any:
        alive.append(sum(draw() is not None for draw in draws))
        found = sample_block(*arguments, **options)
        draws.append(weakref.ref(found.keys))
        return found

    sample_block = distributed.sample_block
    monkeypatch.setattr(distributed, "sample_block", watched)
    X, y, _ = data()
    with dask.config.set(scheduler="synchronous"):
        DaskRows(da.from_array(X, chunks=(50, 2)), y).survey(100, 0, labels=False)
    assert len(alive) == 12
    assert max(alive) <= 2


# ----------------------------------------------------------------------------------------------------------- errors
def test_what_does_not_fit_together_is_refused_with_a_sentence(client: Any) -> None:
    X, y, _ = data()
    rows, whole = da.from_array(X, chunks=(200, 2)), frame()
    model = InfiniteQuantileRegressor(**PROBLEM)
    with pytest.raises(ValueError, match="X has 600 rows and y 599; they must have the same number"):
        model.fit(rows, da.from_array(y[:-1], chunks=200))
    with pytest.raises(ValueError, match=r"X has 600 rows and y has the shape \(599,\)"):
        model.fit(rows, y[:-1])
    with pytest.raises(ValueError, match="X has 4 partitions and y 3, and the numbers of their rows are not known"):
        model.fit(whole[["a", "b"]], frame(3).y)
    with pytest.raises(ValueError, match=r"Partition \d has \d+ rows of X and y of shape \(150,\)"):
        model.fit(whole.repartition(divisions=[0, 100, 300, 450, 599])[["a", "b"]], whole.y)
    with pytest.raises(ValueError, match=r"X is a Dask array with 1 dimension\(s\)"):
        model.fit(da.from_array(y, chunks=100), y)
    with pytest.raises(ValueError, match="No rows of positive weight"):
        model.fit(rows, y, np.zeros(N))
    with pytest.raises(ValueError, match=r"Partition \d: Column \d of X contains NaN"):
        model.fit(da.where(rows > 0.9, np.nan, rows), y)
    with pytest.raises(ValueError, match=r"Partition \d: The column 'b' contains NaN"):
        model.fit(whole[["a", "b"]].assign(b=whole.b.where(whole.b < 0.9)), whole.y)
    with pytest.raises(ValueError, match="Partition 2: y has missing values"):
        model.fit(rows, np.where(np.arange(N) == 500, None, y.astype(object)))
    with pytest.raises(ValueError, match="Partition 2: y has missing values"):
        InfiniteCostSensitiveClassifier(**PROBLEM).fit(rows, np.where(np.arange(N) == 500, None, "a"))
    with pytest.raises(ValueError, match=r"Partition \d: sample_weight holds '1', which is not a real number"):
        model.fit(rows, y, np.full(N, "1"))
    with pytest.raises(ValueError, match="The weights of all rows add up to more than the largest number"):
        model.fit(rows, y, np.full(N, 5e305))  # no partition alone does
    with pytest.raises(ValueError, match="more than two classes"):
        InfiniteCostSensitiveClassifier(**PROBLEM).fit(rows, np.arange(N) % 3)
    with pytest.raises(ValueError, match="noncrossing='hard'"):
        InfiniteQuantileRegressor(noncrossing="hard").fit(rows, y)


def test_collections_of_dask_are_recognised() -> None:
    X, _, _ = data()
    assert is_dask(da.from_array(X))
    assert is_dask(frame())
    assert is_dask(frame().y)
    assert not any(is_dask(other) for other in (X, pd.DataFrame(X), dask.delayed(X), None))


# ------------------------------------------------------------------------------------------------------ predictions
def test_predictions_are_lazy_and_those_of_arrays(client: Any) -> None:
    X, y, _ = data(200)
    rows = da.from_array(X, chunks=(70, 1))
    quantiles = InfiniteQuantileRegressor(**PROBLEM).fit(X, y)
    classes = InfiniteCostSensitiveClassifier(**PROBLEM).fit(X, np.where(y > 0.0, "up", "down"))
    sets = InfiniteOneClassSVM(**COMMON, tol=0.1).fit(X)
    for answer in (
        lambda X: quantiles.predict(X),
        lambda X: quantiles.predict(X, quantiles=[0.1, 0.9]),
        lambda X: quantiles.predict_interval(X, coverage=0.8),
        lambda X: quantiles.predict_interval(X, coverage=[0.5, 0.8, 0.9]),
        lambda X: classes.predict(X),
        lambda X: classes.predict(X, theta=[-0.5, 0.5]),
        lambda X: classes.decision_function(X),
        lambda X: classes.predict_proba(X),
        lambda X: sets.predict(X),
        lambda X: sets.decision_function(X, nu=[0.1, 0.5]),
        lambda X: sets.score_samples(X),
    ):
        expected, found = answer(X), answer(rows)
        assert isinstance(found, da.Array)
        assert (found.shape, found.dtype, found.chunks[0]) == (expected.shape, expected.dtype, rows.chunks[0])
        if expected.dtype.kind == "f":
            np.testing.assert_allclose(found.compute(), expected, rtol=1e-9, atol=1e-9)
        else:
            np.testing.assert_array_equal(found.compute(), expected)


def test_a_prediction_computes_nothing_before_it_is_asked_for_and_keeps_its_model(client: Any) -> None:
    X, y, _ = data(100)

    def unreadable() -> Any:
        raise OSError("this partition is on fire")

    model = InfiniteQuantileRegressor(**PROBLEM).fit(X, y)
    later = model.predict(da.from_delayed(dask.delayed(unreadable)(), shape=(5, 2), dtype=float))
    with pytest.raises(OSError, match="on fire"):
        later.compute()
    expected, found = model.predict(X), model.predict(da.from_array(X, chunks=(30, 2)))
    model.fit(X, -y)
    np.testing.assert_allclose(found.compute(), expected, rtol=1e-9)


def test_a_prediction_of_many_chunks_carries_one_model(client: Any) -> None:
    import cloudpickle

    X, y, _ = data()
    model = InfiniteQuantileRegressor(**PROBLEM | {"gamma": 20.0}).fit(X, y)
    size = len(pickle.dumps(model))

    def sent(chunks: int) -> int:
        rows = da.zeros((10 * chunks, 2), chunks=(10, 2))
        return len(cloudpickle.dumps(dict(model.predict(rows).__dask_graph__())))

    assert size < sent(2) < 1.5 * size
    assert sent(40) - sent(2) < size  # a few hundred bytes for each chunk


def test_a_task_for_each_row_is_refused(client: Any) -> None:
    X, y, _ = data(100)
    model = InfiniteCostSensitiveClassifier(**PROBLEM).fit(X, y > 0.0)
    with pytest.raises(ValueError, match="per_sample=True was given with rows of Dask"):
        model.predict(da.from_array(X), theta=np.zeros(100), per_sample=True)
    with pytest.raises(ValueError, match="X has 3 features"):
        model.predict(da.zeros((10, 3)))


# ---------------------------------------------------------------------------------------------------------- traffic
def test_an_evaluation_sends_as_much_for_few_rows_as_for_many(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import cloudpickle

    sent: dict[int, list[tuple[int, int]]] = {}

    def watched(graph: Any, *arguments: Any, **options: Any) -> Any:
        future = compute(graph, *arguments, **options)
        size = len(cloudpickle.dumps(dict(graph.__dask_graph__())))
        sent[n].append((size, len(pickle.dumps(future.result()))))
        return future

    X, y, _ = data(4 * N)
    landmarks = {"features": "nystroem", "rank": 30, "tol": 1e-3}
    compute = client.compute
    for n in (N, 4 * N):
        sent[n] = []
        rows = da.from_array(X[:n], chunks=(n // 4, 2)), da.from_array(y[:n], chunks=n // 4)
        monkeypatch.setattr(client, "compute", watched)
        model = InfiniteQuantileRegressor(**PROBLEM | landmarks).fit(*rows)
    few, many = (sent[n][1:] for n in (N, 4 * N))  # the first is the sample
    assert len(few) > 5
    unknowns = 8 * model.solution_.z.size
    for found in (few, many):
        for graph, answer in found:
            assert graph < unknowns + 8_000  # four tasks, and their sum
            assert answer < unknowns + 1_000
    # tasks of a kind have the same size, and there are few kinds: names and numbers of them differ by a few bytes
    assert abs(max(few)[0] - max(many)[0]) < 200
    assert max(few)[1] == max(many)[1]


# ------------------------------------------------------------------------------------------------------------ tuning
@pytest.mark.slow
def test_a_self_tuned_model_chooses_by_a_sample(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, _ = data(6_000)
    sample_rows(monkeypatch, 1_000)
    rows = da.from_array(X, chunks=(1_500, 2)), da.from_array(y, chunks=1_500)
    model = InfiniteQuantileRegressorCV(kernels=["rbf"], n_nodes=8, rank=60, random_state=0).fit(*rows)
    assert model.best_estimator_.solution_.converged
    assert sum(map(len, model.cv_results_["ignoring_x"][None])) > 0
    new, target, _ = data(4_000, seed=1)
    for level in (0.1, 0.5, 0.9):
        assert abs(np.mean(target <= model.predict(new, level)) - level) < 0.03
    assert isinstance(model.predict(rows[0], [0.1, 0.9]), da.Array)


@pytest.mark.slow
def test_kernels_are_compared_on_the_cluster(client: Any) -> None:
    X, y, _ = data(300)
    kernels, common = ["rbf", "laplacian"], {"n_nodes": 8, "random_state": 0}
    with joblib.parallel_config(backend="dask"):
        there = InfiniteQuantileRegressorCV(kernels=kernels, n_jobs=2, **common).fit(X, y)
    here = InfiniteQuantileRegressorCV(kernels=kernels, **common).fit(X, y)
    assert repr(there.kernel_) == repr(here.kernel_)
    assert there.alpha_ == here.alpha_


# ------------------------------------------------------------------------------------------------------ lost workers
@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_killed_worker_costs_a_recomputation_and_not_the_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, weight = data(4_000)
    landmarks = {"features": "nystroem", "rank": 40, "tol": 1e-4}
    rows = [da.from_array(values, chunks=(500, *values.shape[1:])) for values in (X, y, weight)]
    killed: list[str] = []
    with (
        LocalCluster(processes=True, n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        expected = InfiniteQuantileRegressor(**PROBLEM | landmarks).fit(*rows)

        def kill(moment: str) -> None:
            pids = client.run(os.getpid)
            os.kill(pids[sorted(pids)[len(killed) % len(pids)]], signal.SIGKILL)
            killed.append(moment)

        calls = {"compute": 0, "persist": 0}

        def watched(name: str, method: Any, moments: dict[int, str]) -> Any:
            def call(*arguments: Any, **options: Any) -> Any:
                found = method(*arguments, **options)
                calls[name] += 1
                if calls[name] in moments:
                    kill(moments[calls[name]])
                return found

            return call

        computed = {1: "while the sample is drawn", 6: "in an evaluation"}
        monkeypatch.setattr(client, "compute", watched("compute", client.compute, computed))
        monkeypatch.setattr(client, "persist", watched("persist", client.persist, {2: "while features are made"}))
        found = InfiniteQuantileRegressor(**PROBLEM | landmarks).fit(*rows)
    assert killed == ["while the sample is drawn", "while features are made", "in an evaluation"]
    np.testing.assert_allclose(found.field_.coef, expected.field_.coef, rtol=0.0, atol=1e-8)


# ------------------------------------------------------------------------------------------------------------ workers
class Comings:
    """A client whose workers come and go: a list of what ``nthreads`` says, one after the other; then none come."""

    def __init__(self, *threads: dict[str, int]) -> None:
        self.threads = list(threads)

    def wait_for_workers(self, n_workers: int, timeout: float) -> None:
        if not self.threads:
            raise TimeoutError

    def nthreads(self) -> dict[str, int]:
        return self.threads.pop(0)


def test_a_worker_lost_while_parts_are_placed_is_waited_for() -> None:
    assert _dask._threads(Comings({}, {}, {"there": 2})) == {"there": 2}
    with pytest.raises(RuntimeError, match=r"had no worker for \d+ s; start workers, and fit again"):
        _dask._threads(Comings({}))
