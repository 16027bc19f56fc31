"""Data on a Dask cluster: Dask arrays and data frames in, Dask arrays out. Only this module imports dask.

>>> import dask.array as da
>>> from infinitask import InfiniteQuantileRegressor
>>> rng = da.random.default_rng(0)
>>> X = rng.uniform(-1.0, 1.0, size=(4_000, 1), chunks=(1_000, 1))
>>> y = X[:, 0] + 0.1 * rng.normal(size=4_000, chunks=1_000)
>>> model = InfiniteQuantileRegressor(n_nodes=10, tol=1e-3, random_state=0).fit(X, y)
>>> model.predict(X, quantiles=[0.1, 0.9])  # nothing is computed yet
dask.array<..., shape=(4000, 2), dtype=float64, chunksize=(1000, 2), chunktype=numpy.ndarray>

With a ``Client``, the features of some partitions are computed on a worker and stay there. An evaluation sends the
p × s unknowns and sums p × s numbers, for any number of rows. Workers only hold results of tasks, which Dask computes
again if a worker is lost. Without a ``Client`` no cluster is started: partitions are computed locally, one after the
other.
"""

from __future__ import annotations

import copy
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial, reduce
from itertools import islice, pairwise
from operator import methodcaller
from typing import Any, TypeAlias, final
from uuid import uuid4

import numpy as np

from infinitask._base.arrays import HostArray, free_memory, one_blas_thread, to_host
from infinitask.objective import Parts, Sums, Visit, added
from infinitask.streaming._blocks import RowSource
from infinitask.streaming._parts import Block, Kept, LocalParts, PartMaker, budget_of
from infinitask.streaming._sampling import BlockSample, Names, Survey, checked, joined, sample_block, survey_of

WAIT_FOR_WORKERS = 300
"""Seconds that a fit waits for a first worker, or for a new one if all are lost."""

FAN_IN = 8
"""The number of results that one task sums. With 1000 partitions the last task is the fourth in a row."""

PATIENCE = 2.0
"""Seconds between checks that all workers are still there."""

Lazy: TypeAlias = Any
"""A Delayed object of Dask."""


def is_dask(X: Any) -> bool:
    """Whether X is a Dask array, data frame or series."""
    return type(X).__module__.startswith(("dask.array", "dask.dataframe", "dask_expr")) and hasattr(X, "to_delayed")


def _is_frame(X: Any) -> bool:
    """Whether the partitions of a collection are pandas objects."""
    return hasattr(X, "map_partitions")


def _check_matrix(X: Any) -> None:
    if X.ndim != 2:
        raise ValueError(
            f"X is a Dask {type(X).__name__.lower()} with {X.ndim} dimension(s); it must have two, rows and inputs."
        )


def _client() -> Any:
    """Return the active client, or None."""
    if "distributed" not in sys.modules:
        return None
    from distributed import default_client

    try:
        client = default_client()
    except ValueError:  # there is no client
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
    """Rows of a Dask array or data frame; ``fit(X, y)`` of every estimator creates it.

    Parameters
    ----------
    X : dask array (n, d) or dask frame
        Partitioned by rows. The columns of a data frame give the names of the features.
    y, sample_weight : dask array (n,), dask series, array (n,) or None
        Known chunks are changed to those of X. If sizes are unknown, as for data frames, the partitions must be those
        of X, with the same rows.
    memory : int or None
        The number of bytes that features may use on all workers together; None: two fifths of the free memory, or seven
        tenths on devices. If they do not fit, X is kept and features are computed again in every pass. If X does not
        fit either, partitions are computed again from their source.
    """

    def __init__(self, X: Any, y: Any = None, sample_weight: Any = None, *, memory: int | None = None) -> None:
        import dask

        _check_matrix(X)
        self.memory = memory
        self.names = tuple(map(str, X.columns)) if _is_frame(X) else None
        parts, sizes = _partitions(X)
        block = dask.delayed(_block, pure=False)
        beside = (_aligned(name, v, parts, sizes) for name, v in (("y", y), ("sample_weight", sample_weight)))
        self.partitions: list[Lazy] = [block(k, *some) for k, some in enumerate(zip(parts, *beside, strict=True))]
        """One :class:`~infinitask.streaming._blocks.Block` for each partition, not computed."""

    def __iter__(self) -> Iterator[Block]:
        import dask

        for partition in self.partitions:
            yield from dask.compute(partition)

    def survey(self, size: int, seed: int, *, labels: bool, targets: bool = True) -> Survey:
        """See :meth:`RowSource.survey`; every partition is sampled independently, with its own seed."""
        import dask

        client = _client()
        sample = dask.delayed(sample_block, pure=False)
        how = {"labels": labels, "targets": targets, "names": Names(self.names)}
        samples = [sample(block, f"Partition {k}", (seed, k), size, **how) for k, block in enumerate(self.partitions)]
        if client is None:
            return survey_of(_joined(dask.compute(one)[0] for one in samples))  # two of them are in memory at a time
        return survey_of(client.compute(_tree(_joined, samples)).result())

    def parts(self, make: PartMaker) -> Parts:
        """See :meth:`RowSource.parts`."""
        client = _client()
        if client is None:
            return super().parts(make)
        budget = budget_of(make.device, self.memory, partial(_free, client))
        return DaskParts(client, self.partitions, make, make.kept(budget))


def _partitions(X: Any) -> tuple[list[Lazy], tuple[int, ...] | None]:
    """Return the partitions of rows, and their numbers of rows if known."""
    if _is_frame(X):
        return list(X.to_delayed()), None
    X = X.rechunk({1: -1}) if X.ndim == 2 and X.numblocks[1] > 1 else X
    sizes = X.chunks[0]
    return list(X.to_delayed().ravel()), None if any(np.isnan(k) for k in sizes) else sizes


def _aligned(name: str, values: Any, parts: list[Lazy], sizes: tuple[int, ...] | None) -> list[Any]:
    """Return the targets or weights, one item for each partition of X."""
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
    """Wrap a value as a node of a graph: it is sent once, and not lost with the worker that holds it."""
    import dask

    return dask.delayed(value, name=f"{name}-{uuid4().hex}", traverse=False)


def _tree(join: Callable[[list[Any]], Any], items: list[Lazy]) -> Lazy:
    """Apply ``join`` to all items, a few at a time, always in the same order."""
    import dask

    task = dask.delayed(join, pure=False)
    while True:
        items = [task(items[k : k + FAN_IN]) for k in range(0, len(items), FAN_IN)]
        if len(items) == 1:
            return items[0]


# ------------------------------------------------------------------------------------------------------------ parts
@final
class DaskParts(Parts):
    """Parts on the workers of a cluster.

    Neighbouring partitions are combined, so that each thread of the cluster has one part. With more parts some wait
    while a worker is busy, and Dask copies them to idle workers including their features: with eight parts on two
    workers of a busy machine, an evaluation moved 24 MB instead of 0.12. Each task also costs time in the scheduler.

    Parameters
    ----------
    client : distributed.Client
    partitions : list of Delayed
        Each a :class:`~infinitask.streaming._blocks.Block`.
    make : PartMaker
    kept : Kept
        What the workers keep between passes.
    """

    def __init__(self, client: Any, partitions: list[Lazy], make: PartMaker, kept: Kept) -> None:
        import dask
        from distributed import futures_of

        self.client, self.n, self._kept = client, make.n, kept
        (self._make,) = futures_of(client.persist([_leaf("maker-of-parts", make)]))
        count = len(partitions)
        if kept is not Kept.NOTHING:
            count = min(sum(_threads(client).values()), count)
        ends = [k * len(partitions) // count for k in range(count + 1)]
        self._groups = [partitions[low:high] for low, high in pairwise(ends)]
        self._parts: list[Lazy] = [dask.delayed(_made, pure=False)(group, self._make, kept) for group in self._groups]
        self._where = [""] * (count if kept is not Kept.NOTHING else 0)
        """The worker of each part; empty if parts are not kept."""
        self._place()
        self.description = f"{len(partitions)} partitions on {len(client.nthreads())} workers; {kept.value}"
        self.passes = 0

    def _place(self) -> bool:
        """Create the parts of missing workers, each on the worker with the fewest parts per thread; return if any.

        By default Dask decides by the location of the rows, but features are much larger.
        """
        from distributed import futures_of

        threads = _threads(self.client)
        lost = [k for k, address in enumerate(self._where) if address not in threads]
        if not lost:
            return False
        # no worker restrictions: they would also apply to everything the rows depend on, and outlive a lost worker
        rows = iter(futures_of(self.client.persist([block for k in lost for block in self._groups[k]])))
        for k in lost:
            self._where[k] = min(threads, key=lambda address: (self._where.count(address) + 1) / threads[address])
            wish = {"workers": [self._where[k]], "allow_other_workers": True}
            blocks = list(islice(rows, len(self._groups[k])))
            self._parts[k] = self.client.submit(_made, blocks, self._make, self._kept, pure=False, **wish)
        return True

    def total(self, visit: Visit, *arguments: Any) -> Sums:
        """See :meth:`Parts.total`; one task for each part, and a tree of sums.

        Dask recreates the parts of lost workers by itself. But a part that was restricted to a lost worker when there
        was no other one waits for that worker forever.
        """
        import dask

        task, asked = dask.delayed(_visited, pure=False), _leaf("asked", methodcaller("total", visit, *arguments))
        while True:
            sums = [task(part, asked) for part in self._parts]
            future = self.client.compute(_tree(_summed, sums), optimize_graph=False)
            placed = False
            while not placed:
                try:
                    found: Sums = future.result(timeout=PATIENCE)
                    self.passes += 1
                    return found
                except TimeoutError:
                    if future.done():  # an error of the task itself
                        raise
                    placed = self._place()


def _threads(client: Any) -> dict[str, int]:
    """Return the number of threads of each worker; wait for a first one, and raise an error if none arrives."""
    try:
        client.wait_for_workers(1, timeout=WAIT_FOR_WORKERS)
    except TimeoutError:
        raise RuntimeError(
            f"The Dask cluster had no worker for {WAIT_FOR_WORKERS} s; start workers, and fit again."
        ) from None
    return client.nthreads() or _threads(client)  # a worker may be lost between the two calls


def _free(client: Any, device: str | None) -> float:
    """The free bytes on all workers together."""
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


# ----------------------------------------------------------------------------------------------- run by workers
def _block(number: int, X: Any, y: Any, weight: Any) -> Block:
    """Convert a partition to arrays; rows of weight 0 are dropped."""
    X, y, weight = (v.to_numpy() if hasattr(v, "iloc") else v for v in (X, y, weight))
    y, weight = (v[:, 0] if v is not None and np.ndim(v) == 2 and v.shape[1] == 1 else v for v in (y, weight))
    return checked((X, y, weight), f"Partition {number}").counted()


def _joined(samples: Iterable[BlockSample]) -> BlockSample | None:
    """Join all samples, each as soon as it is available."""
    return reduce(joined, samples, None)


def _made(blocks: list[Block], make: PartMaker, kept: Kept) -> LocalParts:
    """Create the part of some partitions, including everything that is kept."""
    parts = LocalParts(blocks, replace(make, n=sum(int(block.X.shape[0]) for block in blocks)), kept)
    if kept is not Kept.NOTHING:
        with one_blas_thread():
            parts.fill()
    return parts


def _visited(parts: LocalParts, asked: Callable[[LocalParts], Sums]) -> Sums | None:
    """The sums of a part; None if it has no rows."""
    with one_blas_thread():
        return asked(parts) if parts.n else None


def _summed(sums: list[Sums | None]) -> Sums | None:
    found = [one for one in sums if one is not None]
    return added(*found) if found else None


# ------------------------------------------------------------------------------------------------------ predictions
def lazily(model: Any, method: str, X: Any, *arguments: Any, **options: Any) -> Any:
    """Return ``model.method(X, ...)`` as a lazy Dask array, chunk by chunk.

    Parameters
    ----------
    model : estimator
        Fitted. Later changes to it do not affect the result.
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
    asked = method, arguments, options
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings about the rows are issued with the rows
        like: HostArray = _answer(X._meta if _is_frame(X) else np.empty((0, X.shape[1])), model, asked)
    held = _leaf("model", copy.copy(model))
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
    if not X.shape[0]:  # models need at least one row
        row = np.zeros((1, X.shape[1]))
        row = type(X)(row, columns=X.columns) if hasattr(X, "iloc") else row
        return getattr(model, method)(row, *arguments, **options)[:0]
    with one_blas_thread():
        return getattr(model, method)(X, *arguments, **options)
