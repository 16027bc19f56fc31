"""Rows that are read block by block, as often as a fit asks for them: data larger than memory.

>>> import numpy as np
>>> from infinitask import InfiniteQuantileRegressor
>>> from infinitask.blocks import Blocks
>>> rng = np.random.default_rng(0)
>>> X = rng.uniform(-1.0, 1.0, size=(5_000, 1))
>>> y = X[:, 0] + 0.1 * rng.normal(size=5_000)
>>> rows = Blocks([(X[:2_000], y[:2_000]), (X[2_000:], y[2_000:])])
>>> model = InfiniteQuantileRegressor(n_nodes=10, tol=1e-3).fit(rows)
>>> model.predict(X[:3], quantiles=[0.1, 0.9]).shape
(3, 2)

What a fit has to choose (bandwidth, λ, landmarks) it chooses from a sample of the rows; see
:mod:`~infinitask.large`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple, final

import numpy as np
from scipy import sparse

from infinitask._array import HostArray, namespace, take, to_host
from infinitask._validation import check_magnitude, count, number
from infinitask.objective import Parts
from infinitask.parts import Block, LocalParts, PartMaker, budget_of

__all__ = ["Block", "Blocks", "Draw", "RowSource", "Survey", "checked"]

ROWS_OF_BLOCK = 65_536
"""Rows that are read at a time: 4 MiB of eight inputs."""


class Survey(NamedTuple):
    """What one pass over all rows tells."""

    n: int
    """The number of rows of positive weight."""
    mass: float
    """The sum of the weights."""
    X: HostArray
    """Inputs of a sample, (k, d)."""
    y: HostArray | None
    """Its targets, as they were given."""
    weight: HostArray
    """(k,): how much weight of all rows each of them stands for."""


class RowSource(ABC):
    """Rows that are somewhere: a fit surveys them once, then visits them in parts."""

    names: tuple[str, ...] | None = None
    """Names of the inputs, where they are known."""

    @abstractmethod
    def survey(self, size: int, seed: int, *, labels: bool) -> Survey:
        """Count and check the rows, and draw about ``size`` of them.

        ``labels``: the targets are classes, of which rare ones are drawn more often, with less weight each.
        """

    @abstractmethod
    def budget(self, device: str | None) -> float:
        """Bytes that features may take between passes, on all machines together."""

    @abstractmethod
    def parts(self, make: PartMaker) -> Parts:
        """The rows as parts of an objective, each made by ``make``."""


# ------------------------------------------------------------------------------------------------------- one block
def checked(block: Any, names: str = "a block") -> Block:
    """A block as arrays, or an error that says what is wrong with it."""
    if not isinstance(block, tuple) or not 1 <= len(block) <= 3:
        raise TypeError(
            f"{names} is a {type(block).__name__}; a block is a tuple (X,), (X, y) or (X, y, weight) of arrays."
        )
    X, y, weight = (*block, None, None)[:3]
    if sparse.issparse(X):
        X = X.toarray()
    X = X if hasattr(X, "ndim") and hasattr(X, "shape") and not hasattr(X, "iloc") else np.asarray(X)
    if isinstance(X, np.ndarray) and X.dtype.kind == "O":
        with suppress(TypeError, ValueError):  # text is told later
            X = X.astype(np.float64)
    if X.ndim != 2:
        raise ValueError(f"{names} has X of shape {tuple(X.shape)}; it must be a matrix (rows, inputs).")
    for name, values in (("y", y), ("weights", weight)):
        if values is not None and tuple(np.shape(values))[:1] != (X.shape[0],):
            raise ValueError(
                f"{names} has {X.shape[0]} rows of X and {name} of shape {tuple(np.shape(values))}; give one for each "
                "row."
            )
    if y is not None and len(np.shape(y)) == 2 and np.shape(y)[1] == 1:
        y = to_host(y)[:, 0]
    if weight is not None and len(np.shape(weight)) != 1:
        raise ValueError(f"{names} has weights of shape {tuple(np.shape(weight))}; give one number for each row.")
    return Block(X, y, weight)


def _check_numbers(name: str, values: Any) -> None:
    """An error where values are no numbers, not finite, or too large; where they live."""
    if isinstance(values, np.ndarray) and values.dtype.kind not in "fiub":
        raise ValueError(f"{name} holds values of type {values.dtype}; encode them as numbers first.")
    if 0 in values.shape:
        return
    xp = namespace(values)
    largest = max(abs(float(xp.max(values))), abs(float(xp.min(values))))
    if not np.isfinite(largest):
        raise ValueError(f"Input {name} contains NaN or infinity; impute or drop such rows before they are read.")
    check_magnitude(name, np.array(largest), smallest=0.0)


def _weights_on_host(block: Block) -> HostArray:
    """The weights of a block, (k,); an error where one is negative or not finite."""
    if block.weight is None:
        return np.ones(int(block.X.shape[0]))
    weight = to_host(block.weight).astype(np.float64)
    if not np.all(np.isfinite(weight)) or np.any(weight < 0.0):
        raise ValueError("sample_weight holds numbers that are negative or not finite; weights are at least 0.")
    return weight


class _Drawn(NamedTuple):
    """Rows that were drawn, in the order of their keys."""

    keys: HostArray
    positions: HostArray
    X: HostArray
    y: HostArray | None
    weight: HostArray

    def only(self, rows: HostArray) -> _Drawn:
        return _Drawn(*(None if part is None else part[rows] for part in self))  # type: ignore[arg-type]

    def after(self, other: _Drawn) -> _Drawn:
        """The rows of ``other``, then these."""
        pairs = zip(other, self, strict=True)
        return _Drawn(*(None if a is None or b is None else np.concatenate([a, b]) for a, b in pairs))  # type: ignore[arg-type]


@final
class Draw:
    """Draws rows with equal chances while they pass by; the draw does not depend on how they are cut into blocks.

    Every row gets a random key, and the rows with the smallest keys are kept.

    Parameters
    ----------
    size : int
        The most rows that are kept; for labels this many in all, shared between them.
    seed : int
    labels : bool
    """

    def __init__(self, size: int, seed: Any, *, labels: bool) -> None:
        self.size, self.labels = size, labels
        self.rng = np.random.default_rng(seed)
        self.n, self.mass, self.inputs = 0, 0.0, -1
        self.known = self.targets = False
        self.found: dict[Any, _Drawn] = {}
        self.counts: dict[Any, int] = {}
        self.seen = 0

    def take(self, block: Block) -> None:
        """Look at some rows; of those on a device only the ones that are drawn are moved."""
        n, inputs = (int(size) for size in block.X.shape)
        if self.inputs not in (-1, inputs):
            raise ValueError(f"A block with {inputs} inputs follows blocks with {self.inputs}; all need the same.")
        self.inputs = inputs
        weight = _weights_on_host(block)
        keys, positions, counted = self.rng.random(n), self.seen + np.arange(n), weight > 0.0
        self.seen += n
        self.n += int(np.count_nonzero(counted))
        self.mass += float(np.sum(weight))
        _check_numbers("X", block.X if np.all(counted) else block.X[np.flatnonzero(counted)])
        y = None if block.y is None else to_host(block.y)
        if y is not None and y.dtype.kind == "f":
            _check_numbers("y", y[counted])
        if self.labels and y is None:
            raise ValueError("No y was given; this task needs targets: fit(X, y), or blocks (X, y).")
        if self.labels and y is not None and y.ndim != 1:
            raise ValueError(f"Blocks with y of shape {y.shape} were given; give one label for each row.")
        if self.known and (y is None) is self.targets:
            raise ValueError("Some blocks were given with y and some without; give all of them in the same way.")
        self.known, self.targets = True, y is not None
        for label in np.unique(y[counted]) if self.labels and y is not None else [None]:
            rows = np.flatnonzero(counted if label is None else counted & (y == label))
            self._merge(label, block.X, y, rows, keys, positions, weight)

    def _merge(
        self, label: Any, X: Any, y: Any, rows: HostArray, keys: HostArray, positions: HostArray, weight: HostArray
    ) -> None:
        """Take in those of some rows whose keys are among the smallest."""
        self.counts[label] = self.counts.get(label, 0) + rows.size
        if len(self.counts) > 2:
            found = ", ".join(str(value) for value in self.counts)
            raise ValueError(f"y holds more than two classes ({found}, …); only two are supported.")
        most = self.size // 2 if self.labels else self.size
        old = self.found.get(label)
        if old is not None and old.keys.size >= most:  # few rows of a later block are among the smallest
            rows = rows[keys[rows] < old.keys[-1]]
        if rows.size > most:
            rows = rows[np.argpartition(keys[rows], most - 1)[:most]]
        fresh = _Drawn(
            keys[rows], positions[rows], to_host(take(X, rows, 0)), None if y is None else y[rows], weight[rows]
        )
        both = fresh if old is None else fresh.after(old)
        self.found[label] = both.only(np.argsort(both.keys, kind="stable")[:most])

    def join(self, other: Draw) -> None:
        """Take over what another draw has found in the rows that follow."""
        if -1 not in (self.inputs, other.inputs) and self.inputs != other.inputs:
            raise ValueError(
                f"A block with {other.inputs} inputs follows blocks with {self.inputs}; all need the same."
            )
        if self.known and other.known and self.targets is not other.targets:
            raise ValueError("Some blocks were given with y and some without; give all of them in the same way.")
        for label, drawn in other.found.items():
            every = np.arange(drawn.keys.size)
            self._merge(label, drawn.X, drawn.y, every, drawn.keys, self.seen + drawn.positions, drawn.weight)
            self.counts[label] += other.counts[label] - drawn.keys.size  # those that were not drawn
        self.known, self.targets = self.known or other.known, self.targets or other.targets
        self.inputs = max(self.inputs, other.inputs)
        self.n, self.mass, self.seen = self.n + other.n, self.mass + other.mass, self.seen + other.seen

    def survey(self) -> Survey:
        """What was seen, with the rows drawn in the order in which they came."""
        if self.n == 0:
            raise ValueError("No rows of positive weight were given; a fit needs at least one.")
        drawn = [
            part._replace(weight=part.weight * (self.counts[k] / part.keys.size)) for k, part in self.found.items()
        ]
        whole = drawn[0] if len(drawn) == 1 else drawn[1].after(drawn[0])
        whole = whole.only(np.argsort(whole.positions, kind="stable"))
        return Survey(self.n, self.mass, whole.X, whole.y, whole.weight)


# -------------------------------------------------------------------------------------------------------- all blocks
@final
class Blocks(RowSource):
    """Rows of data in blocks that can be read again and again.

    Parameters
    ----------
    blocks : iterable of tuples, or callable
        Tuples (X,), (X, y) or (X, y, weight) of arrays: a list, any object that can be iterated more than once, or a
        function without arguments that returns a fresh iterator.
    names : sequence of str or None
        Names of the inputs.
    memory : int or None
        Bytes that features of the rows may take between passes; None: two fifths of what is free. Rows whose features
        do not fit are read, and their features computed, again in every pass.

    Examples
    --------
    >>> import numpy as np
    >>> rows = Blocks(lambda: ((np.full((2, 1), k), np.zeros(2)) for k in range(3)))
    >>> [int(block.X[0, 0]) for block in rows], rows.passes
    ([0, 1, 2], 1)
    """

    def __init__(
        self,
        blocks: Iterable[Any] | Callable[[], Iterable[Any]],
        *,
        names: Any = None,
        memory: int | None = None,
    ) -> None:
        if isinstance(blocks, Iterator):
            raise TypeError(
                f"Blocks were given as a {type(blocks).__name__}, which can be read only once; give a list, or a "
                "function that returns a fresh iterator, such as Blocks(lambda: read_my_blocks())."
            )
        if not callable(blocks) and not isinstance(blocks, Iterable):
            raise TypeError(
                f"Blocks were given as a {type(blocks).__name__}; give an iterable of tuples (X, y), or a function "
                "that returns one."
            )
        self._read = blocks
        self.names = None if names is None else tuple(map(str, names))
        self.memory = None if memory is None else int(number("memory", memory, low=0.0, open_low=False))
        self.passes = 0
        """How often the rows were read to their end."""

    def __iter__(self) -> Iterator[Block]:
        fresh = self._read() if callable(self._read) else self._read
        if not isinstance(fresh, Iterable):
            raise TypeError(
                f"The function that was given to Blocks returned a {type(fresh).__name__}; it must return an iterator "
                "of blocks."
            )
        known: list[Any] | None = None
        for position, block in enumerate(fresh):
            found = checked(block, f"block {position}")
            columns = getattr(block[0], "columns", None)
            if columns is not None:
                known = list(columns) if known is None else known
                if list(columns) != known:
                    raise ValueError(
                        f"block {position} has the columns {list(columns)}, and the blocks before it {known}; give all "
                        "blocks the same columns in the same order."
                    )
                self.names = tuple(map(str, known)) if self.names is None else self.names
            if self.names is not None and len(self.names) != found.X.shape[1]:
                raise ValueError(
                    f"{len(self.names)} names were given for {found.X.shape[1]} inputs; give one for each."
                )
            if found.X.shape[0]:
                yield found
        self.passes += 1

    @classmethod
    def of_arrays(
        cls,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        rows: int = ROWS_OF_BLOCK,
        memory: int | None = None,
    ) -> Blocks:
        """Blocks of arrays that can be sliced: memory maps, tensors, arrays of NumPy.

        Parameters
        ----------
        X : array (n, d)
        y, sample_weight : array (n,) or None
        rows : int
            Rows of a block.
        memory : int or None
        """
        rows = count("rows", rows)
        if len(getattr(X, "shape", ())) != 2:
            raise ValueError(f"X of type {type(X).__name__} was given; it must be an array (rows, inputs).")
        n = int(X.shape[0])
        if sample_weight is not None and np.ndim(sample_weight) == 0:
            number("sample_weight", float(sample_weight), low=0.0)
            sample_weight = None  # the same for all rows
        for name, values in (("y", y), ("sample_weight", sample_weight)):
            if values is not None and int(np.shape(values)[0]) != n:
                raise ValueError(f"X has {n} rows and {name} {np.shape(values)[0]}; they must have the same number.")

        def read() -> Iterator[Block]:
            for start in range(0, n, rows):
                part = slice(start, min(start + rows, n))
                yield Block(X[part], *(None if v is None else v[part] for v in (y, sample_weight)))

        return cls(read, memory=memory)

    @classmethod
    def of_parquet(
        cls,
        path: Any,
        target: str | None = None,
        *,
        inputs: Any = None,
        weight: str | None = None,
        rows: int = ROWS_OF_BLOCK,
        memory: int | None = None,
    ) -> Blocks:
        """Blocks of a Parquet file, or of a folder of them; needs the extra ``parquet``.

        Parameters
        ----------
        path : str or path
        target : str or None
            The column of y.
        inputs : sequence of str or None
            The columns of X; None: all others.
        weight : str or None
            The column of weights.
        rows : int
            Rows of a block.
        memory : int or None
        """
        try:
            from pyarrow import dataset
        except ImportError as error:
            raise ImportError(
                "Blocks.of_parquet reads with pyarrow, which is not installed; install the extra with "
                "`pip install infinitask[parquet]`."
            ) from error
        rows = count("rows", rows)
        if isinstance(inputs, str):
            raise TypeError(f"inputs={inputs!r} was given; give a list of columns, such as inputs=[{inputs!r}].")
        table = dataset.dataset(path, format="parquet")
        known = list(table.schema.names)
        for fragment in table.get_fragments():
            odd = sorted(set(known).symmetric_difference(fragment.physical_schema.names))
            if odd and inputs is None:
                raise ValueError(
                    f"The files of {path} have different columns: {fragment.path} differs in "
                    f"{', '.join(map(repr, odd))}. "
                    "Name columns that all of them have, inputs=[…], or mend the files."
                )
        others = [name for name in known if name not in (target, weight)]
        chosen = others if inputs is None else [str(name) for name in inputs]
        missing = [name for name in (*chosen, target, weight) if name is not None and name not in known]
        if missing:
            raise ValueError(f"{path} has no column {missing[0]!r}; its columns are {', '.join(map(repr, known))}.")
        if not chosen:
            raise ValueError(f"{path} has no columns but the target and the weight; a fit needs at least one input.")

        def read() -> Iterator[Block]:
            columns = [*chosen, *(name for name in (target, weight) if name is not None)]
            # a few blocks ahead of the one in use: more would only take memory
            for batch in table.to_batches(columns=columns, batch_size=rows, batch_readahead=2, fragment_readahead=1):
                values = {name: batch.column(name).to_numpy(zero_copy_only=False) for name in columns}
                bad = next((name for name in chosen if values[name].dtype.kind not in "fiub"), None)
                if bad is not None:
                    raise ValueError(
                        f"The column {bad!r} of {path} holds {batch.column(bad).type}; encode it as numbers first, or "
                        "leave it out with inputs=[…]."
                    )
                X = np.column_stack([values[name] for name in chosen])
                yield Block(X, *(None if name is None else values[name] for name in (target, weight)))

        return cls(read, names=chosen, memory=memory)

    def survey(self, size: int, seed: int, *, labels: bool) -> Survey:
        """See :meth:`RowSource.survey`."""
        draw = Draw(size, seed, labels=labels)
        for position, block in enumerate(self):
            try:
                draw.take(block)
            except ValueError as error:
                raise ValueError(f"block {position}: {error}") from None
        return draw.survey()

    def parts(self, make: PartMaker) -> LocalParts:
        """See :meth:`RowSource.parts`."""
        return LocalParts(self, make, self.budget(make.device))

    def budget(self, device: str | None) -> float:
        """See :meth:`RowSource.budget`."""
        return budget_of(device, self.memory)
