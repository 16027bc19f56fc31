"""Rows on a Dask cluster: arrays and frames of Dask in, arrays of Dask out; the only module that imports dask.

>>> import dask.array as da
>>> from infinitask import InfiniteQuantileRegressor
>>> rng = da.random.default_rng(0)
>>> X = rng.uniform(-1.0, 1.0, size=(4_000, 1), chunks=(1_000, 1))
>>> y = X[:, 0] + 0.1 * rng.normal(size=4_000, chunks=1_000)
>>> model = InfiniteQuantileRegressor(n_nodes=10, tol=1e-3, random_state=0).fit(X, y)
>>> model.predict(X, quantiles=[0.1, 0.9])  # nothing is computed yet
dask.array<..., shape=(4000, 2), dtype=float64, chunksize=(1000, 2), chunktype=numpy.ndarray>

With a ``Client``, the features of some partitions are made on a worker and stay there; an evaluation sends the p × s
unknowns out and adds p × s numbers up, whatever the number of rows. All that workers hold are results of tasks, which
Dask computes again where a worker is lost. Without a ``Client`` no cluster is started: partitions are computed here,
one after the other.
"""

from __future__ import annotations

import copy
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from time import monotonic
from typing import Any, NamedTuple, TypeAlias, final
from uuid import uuid4

import numpy as np

from infinitask._base.arrays import HostArray, free_memory, one_blas_thread, to_host
from infinitask.objective import Parts, Sums, Visit, added
from infinitask.streaming._blocks import RowSource
from infinitask.streaming._parts import Block, LocalParts, PartMaker, budget_of, kept_fraction
from infinitask.streaming._sampling import Draw, Names, Survey, checked

WAIT_FOR_WORKERS = 300
"""Seconds that a fit waits for a first worker, or for another one when all are lost."""

FAN_IN = 8
"""Results that one task adds up. With 1000 partitions the last one is the fourth in a row."""

PATIENCE = 2.0
"""Seconds after which it is asked whether all workers are still there."""

Lazy: TypeAlias = Any
"""A Delayed of Dask."""


def is_dask(X: Any) -> bool:
    """Whether X is an array, a frame or a series of Dask."""
    return type(X).__module__.startswith(("dask.array", "dask.dataframe", "dask_expr")) and hasattr(X, "to_delayed")


def _is_frame(X: Any) -> bool:
    """Whether the partitions of a collection are of pandas."""
    return hasattr(X, "map_partitions")


def _check_matrix(X: Any) -> None:
    if X.ndim != 2:
        raise ValueError(
            f"X is a Dask {type(X).__name__.lower()} with {X.ndim} dimension(s); it must have two, rows and inputs."
        )


def _client() -> Any:
    """The client whose cluster is to be used, or None."""
    if "distributed" not in sys.modules:
        return None
    from distributed import default_client

    try:
        client = default_client()
    except ValueError:  # there is none
        return None
    if client.asynchronous:
        raise ValueError(
            "The Dask client is asynchronous, and a fit waits for what it asks for; use Client(...) without "
            "asynchronous=True, or run the fit in a thread."
        )
    return client


# ------------------------------------------------------------------------------------------------------------- rows
@final
class DaskRows(RowSource):
    """Rows of an array or a frame of Dask; ``fit(X, y)`` of every estimator makes it of them.

    Parameters
    ----------
    X : dask array (n, d) or dask frame
        In partitions of rows. The columns of a frame are the names of the features.
    y, sample_weight : dask array (n,), dask series, array (n,) or None
        Known chunks are changed to those of X. Where sizes are not known, as those of frames, there must be as many
        partitions as X has, of the same rows.
    memory : int or None
        Bytes that features may take on all workers together; None: two fifths of what is free there, on devices seven
        tenths. Where they do not fit, the inputs are kept and features made again in every pass; where these do not fit
        either, partitions are computed again from their source.
    """

    def __init__(self, X: Any, y: Any = None, sample_weight: Any = None, *, memory: int | None = None) -> None:
        import dask

        _check_matrix(X)
        self.memory, self.inputs = memory, int(X.shape[1])
        self.names = tuple(map(str, X.columns)) if _is_frame(X) else None
        parts, sizes = _partitions(X)
        block = dask.delayed(_block, pure=False)
        columns = (
            parts,
            *(_aligned(name, v, parts, sizes) for name, v in (("y", y), ("sample_weight", sample_weight))),
        )
        self.partitions: list[Lazy] = [block(k, *some) for k, some in enumerate(zip(*columns, strict=True))]
        """One :class:`~infinitask.streaming._blocks.Block` for each partition, not computed."""

    def __iter__(self) -> Iterator[Block]:
        import dask

        for partition in self.partitions:
            (block,) = dask.compute(partition)
            if block.X.shape[0]:
                yield block

    def survey(self, size: int, seed: int, *, labels: bool, targets: bool = True) -> Survey:
        """See :meth:`RowSource.survey`; every partition draws by itself, with a seed of its own."""
        import dask

        client = _client()
        draw = dask.delayed(_drawn, pure=False)
        kind = labels, targets
        draws = [draw(block, k, size, seed, kind, self.names) for k, block in enumerate(self.partitions)]
        if client is not None:
            found: Draw = client.compute(_tree(_joined, draws)).result()
        else:
            found = _joined(dask.compute(one)[0] for one in draws)  # two of them are held at a time
        return found.survey()

    def parts(self, make: PartMaker) -> Parts:
        """See :meth:`RowSource.parts`."""
        client = _client()
        if client is None:
            return LocalParts(self, make, budget_of(make.device, self.memory))
        budget = kept_fraction(make.device) * _free(client, make.device) if self.memory is None else float(self.memory)
        return DaskParts(client, self.partitions, make, self.inputs, budget)


def _partitions(X: Any) -> tuple[list[Lazy], tuple[int, ...] | None]:
    """The partitions of rows, and how many rows they have where that is known."""
    if _is_frame(X):
        return list(X.to_delayed()), None
    X = X.rechunk({1: -1}) if X.ndim == 2 and X.numblocks[1] > 1 else X
    sizes = X.chunks[0]
    return list(X.to_delayed().ravel()), None if any(np.isnan(k) for k in sizes) else sizes


def _aligned(name: str, values: Any, parts: list[Lazy], sizes: tuple[int, ...] | None) -> list[Any]:
    """Targets or weights, one item for each partition of X."""
    import dask

    if values is None:
        return [None] * len(parts)
    if is_dask(values):
        found, known = _partitions(values)
        if known is not None and sizes is not None:
            if sum(known) != sum(sizes):
                raise ValueError(f"X has {sum(sizes)} rows and {name} {sum(known)}; they must have the same number.")
            return found if known == sizes else _partitions(values.rechunk({0: sizes}))[0]
        if len(found) != len(parts):
            raise ValueError(
                f"X has {len(parts)} partitions and {name} {len(found)}, and the numbers of their rows are not known; "
                "take both from the same frame, or call compute_chunk_sizes() of the arrays first."
            )
        return found
    values = values.to_numpy() if hasattr(values, "iloc") else to_host(values)
    if sizes is None:
        sizes = dask.compute(*(dask.delayed(len, pure=False)(part) for part in parts))
    if values.shape[:1] != (sum(sizes),):
        raise ValueError(f"X has {sum(sizes)} rows and {name} has the shape {values.shape}; give one for each row.")
    pieces = [_leaf(f"{name}-of-rows", piece) for piece in np.split(values, np.cumsum(sizes)[:-1])]
    client = _client()
    return pieces if client is None else list(client.persist(pieces))  # sent once


def _leaf(name: str, value: Any) -> Lazy:
    """A value as a node of a graph: it travels once, and is not lost with the worker that holds it."""
    import dask

    return dask.delayed(value, name=f"{name}-{uuid4().hex}", traverse=False)


def _tree(join: Callable[[list[Any]], Any], items: list[Lazy]) -> Lazy:
    """``join`` of all items, a few at a time, always in the same order."""
    import dask

    task = dask.delayed(join, pure=False)
    while True:
        items = [task(items[k : k + FAN_IN]) for k in range(0, len(items), FAN_IN)]
        if len(items) == 1:
            return items[0]


# ------------------------------------------------------------------------------------------------------------ parts
class _Asked(NamedTuple):
    # not a plain tuple, which Dask takes for a call if it begins with a function
    visit: Visit
    arguments: tuple[Any, ...]


@final
class DaskParts(Parts):
    """Parts on the workers of a cluster.

    Neighbouring partitions are put together, so that there is one part for each thread of the cluster. With more of
    them some wait while a worker is busy, and Dask copies what waits to idle workers, features and all: with eight
    parts on two workers of a busy machine, 24 MB in an evaluation instead of 0.12. And every task costs the scheduler
    time.

    Parameters
    ----------
    client : distributed.Client
    partitions : list of Delayed
        Each a :class:`~infinitask.streaming._blocks.Block`.
    make : PartMaker
    inputs : int
        d.
    budget : float
        Bytes that may be kept on all workers together.
    """

    def __init__(self, client: Any, partitions: list[Lazy], make: PartMaker, inputs: int, budget: float) -> None:
        from distributed import futures_of

        self.client, self.n = client, make.n
        (self._make,) = futures_of(client.persist([_leaf("maker-of-parts", make)]))
        how, self._keeps = "rows read again in every pass", 8 * make.n * make.width <= budget
        self._parts: list[Any] = [[part] for part in partitions]
        self._where: list[str] = []
        """The worker that each part was made for; empty where parts are not kept."""
        if self._keeps or 8 * make.n * (inputs + 2) <= budget:
            count = min(max(1, sum(client.nthreads().values())), len(partitions))
            ends = [k * len(partitions) // count for k in range(count + 1)]
            self._groups = [partitions[low:high] for low, high in pairwise(ends)]
            self._parts, self._where = [None] * count, [""] * count
            self._place(range(count))
            how = "features kept" if self._keeps else "inputs kept, features made again in every pass"
        self.description = f"{len(partitions)} partitions on {len(client.nthreads())} workers; {how}"
        self.passes = 0

    def _place(self, some: Sequence[int]) -> None:
        """Make some parts, each on the worker that has the fewest for its threads.

        Dask by itself decides by where inputs are, and features are much larger.
        """
        from distributed import futures_of

        threads = _threads(self.client)
        # without wishes, which would hold for all that rows are made of, and stay when a worker is lost
        rows = futures_of(self.client.persist([block for k in some for block in self._groups[k]]))
        for k in some:
            load = {address: (self._where.count(address) + 1) / count for address, count in threads.items()}
            self._where[k] = min(load, key=lambda address: load[address])
            blocks, rows = rows[: len(self._groups[k])], rows[len(self._groups[k]) :]
            wish = {"workers": [self._where[k]], "allow_other_workers": True}
            self._parts[k] = self.client.submit(_kept, blocks, self._make, self._keeps, pure=False, **wish)

    def total(self, visit: Visit, *arguments: Any) -> Sums:
        """See :meth:`Parts.total`; one task for each part, and a tree of sums."""
        import dask

        task = dask.delayed(_visited, pure=False)
        while True:
            asked = _leaf("asked", _Asked(visit, arguments))
            sums = [task(part, self._make, asked) for part in self._parts]
            future = self.client.compute(_tree(_summed, sums), optimize_graph=False)
            found = self._awaited(future)
            if found is not None:
                self.passes += 1
                return found

    def _awaited(self, future: Any) -> Sums | None:
        """The result; None if workers were lost meanwhile, and their parts are made elsewhere.

        Dask makes them again itself. But a part that was meant for a lost worker, when there was no other one, waits
        for that worker for ever.
        """
        while True:
            try:
                found: Sums = future.result(timeout=PATIENCE)
                return found
            except TimeoutError:
                if future.done():  # an error of the task itself
                    raise
            threads = self.client.nthreads()
            lost = [k for k, address in enumerate(self._where) if address not in threads]
            if lost:
                self._place(lost)
                return None


def _threads(client: Any) -> dict[str, int]:
    """The number of threads of each worker; waits for a first one, or an error where none comes."""
    end = monotonic() + WAIT_FOR_WORKERS
    while True:
        try:
            client.wait_for_workers(1, timeout=max(0.0, end - monotonic()))
        except TimeoutError:
            raise RuntimeError(
                f"The Dask cluster had no worker for {WAIT_FOR_WORKERS} s; start workers, and fit again."
            ) from None
        # a worker may be lost between the two questions
        threads: dict[str, int] = client.nthreads()
        if threads:
            return threads


def _free(client: Any, device: str | None) -> float:
    """Bytes that are free on all workers together."""
    if device is not None:
        return float(sum(client.run(free_memory, device).values()))
    workers = client.scheduler_info(n_workers=-1)["workers"]
    limited = {a: w for a, w in workers.items() if w.get("memory_limit")}
    free = sum(max(0.0, w["memory_limit"] - w["metrics"]["memory"]) for w in limited.values())
    others = [address for address in workers if address not in limited]
    if others:
        hosts = {workers[address]["host"]: address for address in others}
        free += sum(client.run(free_memory, None, workers=[*hosts.values()]).values())
    return float(free)


# ----------------------------------------------------------------------------------------------- what workers do
def _block(number: int, X: Any, y: Any, weight: Any) -> Block:
    """A partition as arrays; rows of weight 0 are dropped."""
    X, y, weight = (v.to_numpy() if hasattr(v, "iloc") else v for v in (X, y, weight))
    y, weight = (v[:, 0] if v is not None and np.ndim(v) == 2 and v.shape[1] == 1 else v for v in (y, weight))
    block = checked((X, y, weight), f"Partition {number}")
    counted = None if weight is None else to_host(weight) != 0.0  # a NaN is looked at later
    if counted is None or np.all(counted):
        return block
    return Block(*(None if v is None else v[counted] for v in block))


def _drawn(
    block: Block, number: int, size: int, seed: int, kind: tuple[bool, bool], names: tuple[str, ...] | None
) -> Draw:
    """The draw of a partition, with a seed of its own; ``kind``: whether y are labels, and whether it counts."""
    labels, targets = kind
    draw = Draw(size, (seed, number), labels=labels, targets=targets)
    if block.X.shape[0]:
        draw.take(block, Names(names), f"Partition {number}")
    return draw


def _joined(draws: Iterable[Draw]) -> Draw:
    """All draws as one, each taken in when it comes."""
    found: Draw | None = None
    for draw in draws:
        if found is None:  # results of tasks are not written to
            found = Draw(draw.size, 0, labels=draw.labels, targets=draw.targets)
        found.join(draw)
    assert found is not None  # a collection has a partition
    return found


def _kept(blocks: list[Block], make: PartMaker, features: bool) -> LocalParts:
    """What stays on a worker: features, or the blocks alone."""
    blocks = [block for block in blocks if block.X.shape[0]]
    n = sum(int(block.X.shape[0]) for block in blocks)
    parts = LocalParts(blocks, replace(make, n=n), 8 * n * make.width if features else 0)
    with one_blas_thread():
        return parts.filled() if features else parts


def _visited(part: LocalParts | list[Block], make: PartMaker, asked: _Asked) -> Sums | None:
    """The sums of a part; None where it has no rows."""
    parts = part if isinstance(part, LocalParts) else _kept(part, make, False)
    with one_blas_thread():
        return parts.total(asked.visit, *asked.arguments) if parts.n else None


def _summed(sums: list[Sums | None]) -> Sums | None:
    found = [one for one in sums if one is not None]
    return added(*found) if found else None


# ------------------------------------------------------------------------------------------------------ predictions
def lazily(model: Any, method: str, X: Any, *arguments: Any, **options: Any) -> Any:
    """``model.method(X, ...)`` as an array of Dask, chunk by chunk, computed when it is asked for.

    Parameters
    ----------
    model : estimator
        Fitted. What happens to it later does not change the answer.
    method : str
    X : dask array (n, d) or dask frame
    arguments, options
        The same for all rows.
    """
    import dask
    import dask.array as da

    if options.get("per_sample"):
        raise ValueError(
            "per_sample=True was given with rows of Dask, whose tasks would have to be cut as the rows are; use "
            "X.map_blocks with a function of your own."
        )
    _check_matrix(X)
    example = np.zeros((1, X.shape[1]))
    if _is_frame(X):
        import pandas as pd

        example = pd.DataFrame(example, columns=X.columns)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of the rows are given with them
        like: HostArray = getattr(model, method)(example, *arguments, **options)[:0]
    held = _leaf("model", copy.copy(model))
    asked = method, arguments, options
    if not _is_frame(X):
        X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
        chunks = (X.chunks[0], *((k,) for k in like.shape[1:]))
        axes = {"drop_axis": 1, "new_axis": list(range(1, like.ndim)) or None}
        name = f"{method}-{uuid4().hex}"
        return X.map_blocks(_answer, held, asked, name=name, chunks=chunks, dtype=like.dtype, meta=like, **axes)
    task, shape = dask.delayed(_answer, pure=False), (np.nan, *like.shape[1:])
    blocks = [da.from_delayed(task(part, held, asked), shape, like.dtype, like) for part in X.to_delayed()]
    return da.concatenate(blocks, allow_unknown_chunksizes=True)


def _answer(X: Any, model: Any, asked: tuple[str, tuple[Any, ...], dict[str, Any]]) -> Any:
    method, arguments, options = asked
    if not X.shape[0]:
        example = np.zeros((1, X.shape[1])) if not hasattr(X, "iloc") else X.reindex([0], fill_value=0.0)
        return getattr(model, method)(example, *arguments, **options)[:0]
    with one_blas_thread():
        return getattr(model, method)(X, *arguments, **options)
