"""Data larger than memory: rows are read in blocks, in as many passes as a fit needs.

>>> import numpy as np
>>> from infinitask import InfiniteQuantileRegressor
>>> from infinitask.streaming._blocks import Blocks
>>> rng = np.random.default_rng(0)
>>> X = rng.uniform(-1.0, 1.0, size=(5_000, 1))
>>> y = X[:, 0] + 0.1 * rng.normal(size=5_000)
>>> rows = Blocks([(X[:2_000], y[:2_000]), (X[2_000:], y[2_000:])])
>>> model = InfiniteQuantileRegressor(n_nodes=10, tol=1e-3).fit(rows)
>>> model.predict(X[:3], quantiles=[0.1, 0.9]).shape
(3, 2)

A fit chooses its hyperparameters (bandwidth, λ, landmarks) on a sample of the rows; see
:mod:`~infinitask.streaming._fit`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, final

import numpy as np

from infinitask._base.arrays import owned, row_blocks
from infinitask._base.validation import count, number
from infinitask.objective import Parts
from infinitask.streaming._parts import Block, LocalParts, PartMaker, budget_of
from infinitask.streaming._sampling import UNNAMED, Names, Survey, checked, joined, kind_of, sample_block, survey_of


class RowSource(ABC):
    """A source of rows, which a fit surveys once and then visits in parts."""

    names: tuple[str, ...] | None = None
    """The names of the features, if known."""

    memory: int | None = None
    """The number of bytes that may be kept between passes."""

    @abstractmethod
    def __iter__(self) -> Iterator[Block]:
        """Yield the rows in one pass on this machine."""

    @abstractmethod
    def survey(self, size: int, seed: int, *, labels: bool, targets: bool = True) -> Survey:
        """Count and check the rows, and sample about ``size`` of them.

        ``labels``: the targets are classes; rare ones are sampled more often, with smaller weights.
        ``targets``: whether the task has targets. Otherwise y may have any content, and the survey has none.
        """

    def parts(self, make: PartMaker) -> Parts:
        """Return the rows as parts of an objective, each created by ``make``."""
        return LocalParts(self, make, make.kept(budget_of(make.device, self.memory)))


@final
class Blocks(RowSource):
    """Data in blocks that can be read repeatedly, for ``fit`` in place of X, y and weights.

    Parameters
    ----------
    blocks : iterable of tuples, or callable
        Tuples (X,), (X, y) or (X, y, weight) of arrays: a list, any object that can be iterated more than once, or a
        function without arguments that returns a new iterator. X (k, d) may be an array, a tensor, a sparse matrix or a
        data frame; y and weight have an entry for each of its k rows. Either all blocks have weights or none does. A
        function may reuse the same arrays for every block because they are copied.
    names : sequence of str or None
        Names of the features; None: the column names of data frames.
    memory : int or None
        The number of bytes that features of the rows may use between passes; None: two fifths of the free memory, or
        seven tenths on a device. Rows whose features do not fit are read again in every pass, and their features are
        computed again.

    Examples
    --------
    A list of tuples:

    >>> import numpy as np
    >>> X, y = np.arange(6.0).reshape(6, 1), np.zeros(6)
    >>> rows = Blocks([(X[:4], y[:4]), (X[4:], y[4:])], names=["length"])
    >>> [block.X.shape for block in rows], rows.passes
    ([(4, 1), (2, 1)], 1)

    A function that is called for every pass, and reads or generates the blocks:

    >>> def read():
    ...     for k in range(3):
    ...         yield np.full((2, 1), k), np.zeros(2)
    >>> [int(block.X[0, 0]) for block in Blocks(read)]
    [0, 1, 2]

    Arrays or a memory map, split into blocks:

    >>> [block.X.shape for block in Blocks.of_arrays(X, y, rows=5)]
    [(5, 1), (1, 1)]

    A Parquet file with some columns as features:

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import pyarrow.parquet
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "houses.parquet"
    ...     table = pyarrow.table({"id": range(6), "length": X[:, 0], "price": y})
    ...     pyarrow.parquet.write_table(table, path)
    ...     rows = Blocks.of_parquet(path, "price", inputs=["length"])
    ...     [block.X.shape for block in rows], rows.names
    ([(6, 1)], ('length',))
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
                f"Blocks were given as {kind_of(blocks)}, which can be read only once; give a list, or a "
                "function that returns a fresh iterator, such as Blocks(lambda: read_my_blocks())."
            )
        if not callable(blocks) and not isinstance(blocks, Iterable):
            raise TypeError(
                f"Blocks were given as {kind_of(blocks)}; give an iterable of tuples (X, y), or a function "
                "that returns one."
            )
        self._read = blocks
        # parts of a fit may keep the arrays they get, and a reader may overwrite them; the arrays of a list do not
        # change
        self._copies = not isinstance(blocks, (list, tuple))
        self._called = UNNAMED
        self.names = None if names is None else tuple(map(str, names))
        self.memory = None if memory is None else int(number("memory", memory, low=0.0, open_low=False))
        self.passes = 0
        """The number of complete passes over the rows."""

    def __iter__(self) -> Iterator[Block]:
        return (block for _, block in self._numbered())

    def _numbered(self) -> Iterator[tuple[int, Block]]:
        """Yield the nonempty blocks, each with its position among all blocks."""
        fresh = self._read() if callable(self._read) else self._read
        if not isinstance(fresh, Iterable):
            raise TypeError(
                f"The function given to Blocks returned {kind_of(fresh)}; it must return an iterator of blocks."
            )
        known: list[Any] | None = None
        for position, block in enumerate(fresh):
            found = checked(block, f"Block {position}")
            columns = getattr(block[0], "columns", None)
            if columns is not None:
                known = list(columns) if known is None else known
                if list(columns) != known:
                    raise ValueError(
                        f"Block {position} has the columns {list(columns)}, and the blocks before it {known}; give all "
                        "blocks the same columns in the same order."
                    )
                self.names = tuple(map(str, known)) if self.names is None else self.names
            if self.names is not None and len(self.names) != found.X.shape[1]:
                raise ValueError(
                    f"{len(self.names)} names were given for {found.X.shape[1]} inputs; give one for each."
                )
            if found.X.shape[0]:
                yield position, Block(*(None if v is None else owned(v) for v in found)) if self._copies else found
        self.passes += 1

    @classmethod
    def of_arrays(
        cls,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        rows: int = 65_536,
        memory: int | None = None,
    ) -> Blocks:
        """Create blocks from arrays that can be sliced: memory maps, tensors, NumPy arrays.

        Parameters
        ----------
        X : array (n, d)
            Not copied: do not change it before the fit ends.
        y, sample_weight : array (n,) or None
        rows : int
            The number of rows of a block.
        memory : int or None
            See :class:`Blocks`.
        """
        rows = count("rows", rows)
        if len(getattr(X, "shape", ())) != 2:
            raise ValueError(f"X of type {type(X).__name__} was given; it must be an array (rows, inputs).")
        n = int(X.shape[0])
        if sample_weight is not None and np.ndim(sample_weight) == 0:
            number("sample_weight", sample_weight.item() if hasattr(sample_weight, "item") else sample_weight, low=0.0)
            sample_weight = None  # the same for all rows
        for name, values in (("y", y), ("sample_weight", sample_weight)):
            if values is not None and int(np.shape(values)[0]) != n:
                raise ValueError(f"X has {n} rows and {name} {np.shape(values)[0]}; they must have the same number.")

        def read() -> Iterator[Block]:
            for part in row_blocks(n, 1, rows):
                yield Block(*(None if v is None else v[part] for v in (X, y, sample_weight)))

        found = cls(read, memory=memory)
        found._copies = False  # nobody writes to these arrays
        return found

    @classmethod
    def of_parquet(
        cls,
        path: Any,
        target: str | None = None,
        *,
        inputs: Any = None,
        weight: str | None = None,
        rows: int = 65_536,
        memory: int | None = None,
    ) -> Blocks:
        """Create blocks from a Parquet file or a folder of them. Requires the extra ``parquet``.

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
            The number of rows of a block.
        memory : int or None
            See :class:`Blocks`.
        """
        try:
            import pyarrow
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
        if not known:
            raise ValueError(
                f"{path} holds no columns; give a Parquet file, a list of them, or a folder that has some."
            )
        for fragment in table.get_fragments():
            odd = sorted(set(known).symmetric_difference(fragment.physical_schema.names))
            if odd and inputs is None:
                raise ValueError(
                    f"The files of {path} have different columns: {fragment.path} differs in "
                    f"{', '.join(map(repr, odd))}. "
                    "Name columns that all of them have, inputs=[…], or fix the files."
                )
        others = [name for name in known if name not in (target, weight)]
        chosen = others if inputs is None else [str(name) for name in inputs]
        missing = [name for name in (*chosen, target, weight) if name is not None and name not in known]
        if missing:
            raise ValueError(f"{path} has no column {missing[0]!r}; its columns are {', '.join(map(repr, known))}.")
        if not chosen:
            raise ValueError(f"{path} has no columns but the target and the weight; a fit needs at least one input.")
        columns = [*chosen, *(name for name in (target, weight) if name is not None)]
        for use, name in (("target", target), ("weight", weight)):
            if name in chosen:
                raise ValueError(f"{use}={name!r} is named in inputs too; leave it out there.")
        if target is not None and target == weight:
            raise ValueError(f"target={target!r} and weight={weight!r} are the same column; give weights of their own.")
        again = next((name for name in chosen if chosen.count(name) > 1), None)
        if again is not None and inputs is not None:
            raise ValueError(f"inputs names the column {again!r} more than once; name every input once.")
        twice = next((name for name in columns if known.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"{path} has several columns {twice!r}; give them different names in the file.")

        def read() -> Iterator[Block]:
            # read a few blocks ahead of the one in use: more would only use memory
            for batch in table.to_batches(columns=columns, batch_size=rows, batch_readahead=2, fragment_readahead=1):
                held = {name: batch.column(name) for name in columns}
                for name in chosen:  # True, False and null become 1, 0 and NaN, as null does among numbers
                    if held[name].null_count and held[name].type in (pyarrow.bool_(), pyarrow.null()):
                        held[name] = held[name].cast(pyarrow.uint8())
                values = {name: column.to_numpy(zero_copy_only=False) for name, column in held.items()}
                bad = next((name for name in chosen if values[name].dtype.kind not in "fiub"), None)
                if bad is not None:
                    raise ValueError(
                        f"The column {bad!r} of {path} holds {batch.column(bad).type}; encode it as numbers first, or "
                        "leave it out with inputs=[…]."
                    )
                X = np.column_stack([values[name] for name in chosen])
                yield Block(X, *(None if name is None else values[name] for name in (target, weight)))

        found = cls(read, names=chosen, memory=memory)
        found._copies = False  # every block is read into new memory
        found._called = Names(None, f"The column {target!r}", f"The column {weight!r}")
        return found

    def survey(self, size: int, seed: int, *, labels: bool, targets: bool = True) -> Survey:
        """See :meth:`RowSource.survey`."""
        found, rng = None, np.random.default_rng(seed)
        for position, block in self._numbered():
            names, place = self._called._replace(inputs=self.names), f"Block {position}"
            found = joined(found, sample_block(block, place, rng, size, labels=labels, targets=targets, names=names))
        return survey_of(found)
