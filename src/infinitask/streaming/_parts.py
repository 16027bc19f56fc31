"""Blocks of rows as parts of an objective: created once and kept, or created again in every pass.

The free memory determines what is kept between passes: the features of all rows, only X, or nothing. A device that runs
out of memory gets smaller pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from infinitask._base.arrays import (
    IN_CACHE,
    IN_MEMORY,
    ON_DEVICE,
    Array,
    HostArray,
    as_like,
    double,
    free_memory,
    is_out_of_memory,
    moved,
    namespace,
    row_blocks,
    take,
    to_host,
)
from infinitask._base.threads import shared_out
from infinitask.fitting._recipe import Units
from infinitask.objective import Objective, Parts, Sums, Visit, added

KEPT_FRACTION, KEPT_ON_DEVICE = 0.4, 0.7
"""Fractions of the free memory used to keep features or X between passes, on the host and on a device. The memory of a
device has no other use: passes that compute features again take almost three times as long on an H200."""

MIN_PIECE_ROWS = 256
"""Smaller pieces than this number of rows do not save memory."""


class Kept(Enum):
    """What is kept of the rows between passes, from the most bytes to none."""

    FEATURES = "features kept"
    INPUTS = "inputs kept, features made again in every pass"
    NOTHING = "rows read again in every pass"


class Block(NamedTuple):
    """Some rows."""

    X: Array
    """(k, d)."""
    y: Any = None
    """(k,), or None if the task has no targets."""
    weight: Any = None
    """(k,), not negative; None: all rows have equal weights."""

    def counted(self) -> Block:
        """Return the rows with nonzero weight; the others may have any content."""
        if self.weight is None:
            return self
        weight = to_host(self.weight)
        rows = np.flatnonzero(weight != 0.0)
        if rows.size == weight.size:
            return self
        return Block(take(self.X, rows, axis=0), None if self.y is None else to_host(self.y)[rows], weight[rows])

    def cut(self, rows: int) -> Iterator[Block]:
        """Yield the block in pieces of at most ``rows`` rows."""
        for part in row_blocks(int(self.X.shape[0]), 1, rows):
            yield Block(*(None if values is None else values[part] for values in self))


@dataclass(frozen=True)
class Targets:
    """Convert the given targets to the numbers of the objective.

    Parameters
    ----------
    classes : ndarray (2,) or None
        The labels that become −1 and 1; None: targets are numbers.
    units : Units
        Units of the targets.
    """

    classes: HostArray | None = None
    units: Units = field(default_factory=Units)

    def __call__(self, y: Any) -> HostArray:
        """Return targets (k, 1), or (k, m) if every node has its own."""
        values = to_host(y)
        if self.classes is not None:
            known = (values == self.classes[0]) | (values == self.classes[1])
            if not np.all(known):
                raise ValueError(
                    f"y holds {values[~known].tolist()[0]!r}, which is none of the classes {self.classes.tolist()}."
                )
            return np.where(values == self.classes[1], 1.0, -1.0)[:, None]
        values = self.units.inside(values.astype(np.float64))
        return values if values.ndim == 2 else values[:, None]


@dataclass(frozen=True, eq=False)
class PartMaker:
    """Create the part of the objective for a block of rows.

    Parameters
    ----------
    columns : callable
        Maps X (k, d) to the columns of features (k, p).
    constant : bool
        Whether a column of ones precedes them.
    objective : Objective
        Without rows and targets, on the host.
    targets : Targets or None
    n : int
        The number of rows of all blocks.
    mass : float
        The sum of the weights of all rows.
    given : int
        The number of values per row as it is read: features of the data, targets and weight.
    width : int
        p, including the column of ones.
    device : str or None
    """

    columns: Callable[[Array], Array]
    constant: bool
    objective: Objective
    targets: Targets | None
    n: int
    mass: float
    given: int
    width: int
    device: str | None

    def bytes_kept(self, kept: Kept) -> int:
        """The number of bytes of all rows kept between passes."""
        columns = {Kept.FEATURES: self.width, Kept.INPUTS: self.given, Kept.NOTHING: 0}
        return 8 * self.n * columns[kept]

    def kept(self, budget: float) -> Kept:
        """The largest choice that fits into ``budget`` bytes."""
        return next(kept for kept in Kept if self.bytes_kept(kept) <= budget)

    def placed(self, block: Block) -> Block:
        """Move a block to its device: features of the data in double precision, targets as numbers, weights.

        Rows of weight 0 are dropped.
        """
        block = block.counted()
        X = double(moved(block.X, self.device))
        k = int(X.shape[0])
        weight = np.ones(k) if block.weight is None else to_host(block.weight).astype(np.float64)
        y = None if self.targets is None else as_like(self.targets(block.y), X)
        return Block(X, y, as_like(weight / self.mass, X))

    def __call__(self, block: Block) -> Objective:
        """Create the part of a placed block."""
        columns = self.columns(block.X)
        xp = namespace(columns)
        rows = xp.concat([xp.ones_like(columns[:, :1]), columns], axis=1) if self.constant else columns
        terms = tuple(
            replace(
                term,
                **{name: as_like(getattr(term, name), rows) for name in ("theta", "weights", "cols")},
                bias_cols=None if term.bias_cols is None else as_like(term.bias_cols, rows),
                targets=None if block.y is None or t else as_like(block.y, rows),
            )
            for t, term in enumerate(self.objective.integrals)
        )
        return replace(
            self.objective,
            rows=rows,
            sample_weight=as_like(block.weight, rows),
            integrals=terms,
            block_entries=IN_CACHE if isinstance(rows, np.ndarray) else ON_DEVICE,
        )


Piece: TypeAlias = Block | Objective


class LocalParts(Parts):
    """Parts on this machine, from blocks that can be read again.

    Parameters
    ----------
    blocks : iterable of Block
        Read once if anything is kept, otherwise in every pass.
    make : PartMaker
    kept : Kept
        What is kept between passes.
    """

    def __init__(self, blocks: Iterable[Block], make: PartMaker, kept: Kept) -> None:
        self.blocks, self.make, self.n, self.kept = blocks, make, make.n, kept
        # computing features on a device takes about eight arrays of the size of a piece: use an eighth of the memory
        most = IN_MEMORY if make.device is None else free_memory(make.device) // (8 * 8 * 8)
        self.rows = max(MIN_PIECE_ROWS, most // make.width)
        self._pieces: list[Piece] | None = None
        self.description, self.passes = kept.value, 0

    def fill(self) -> None:
        """Create everything that is kept now instead of in the first pass."""
        for _ in self._read():
            pass

    def __sizeof__(self) -> int:
        # Dask uses the size of objects to decide whether to move them
        return self.make.bytes_kept(self.kept)

    def total(self, visit: Visit, *arguments: Any) -> Sums:
        """See :meth:`Parts.total`."""
        while True:
            try:
                found = self._pass(visit, arguments)
            except Exception as error:
                if not is_out_of_memory(error) or self.rows <= MIN_PIECE_ROWS:
                    raise
                # smaller pieces, and fewer bytes are kept
                self.rows, self._pieces = self.rows // 2, None
                self.kept = Kept.INPUTS if self.kept is Kept.FEATURES else Kept.NOTHING
                self.description = self.kept.value
                continue
            self.passes += 1
            return found

    def _pass(self, visit: Visit, arguments: tuple[Any, ...]) -> Sums:
        def several(pieces: list[Piece]) -> Sums:
            parts = (piece if isinstance(piece, Objective) else self.make(piece) for piece in pieces)
            return added(*(visit(part, *arguments) for part in parts))

        found: list[Sums] = []  # the sums so far; empty at the beginning
        for pieces in self._read() if self._pieces is None else [self._pieces]:
            count = min(16, len(pieces))  # fixed, so that sums do not depend on the number of threads
            groups = [pieces[g * len(pieces) // count : (g + 1) * len(pieces) // count] for g in range(count)]
            found = [added(*found, *self._side_by_side(several, groups))]
        return found[0]

    def _side_by_side(self, visit: Callable[[Any], Any], items: list[Any]) -> list[Any]:
        return shared_out(visit, items) if self.make.device is None else [visit(item) for item in items]

    def _read(self) -> Iterator[list[Piece]]:
        """Yield the blocks in pieces; store those to be kept after all have been read."""
        kept: list[Piece] = []
        n = 0
        for block in self.blocks:
            placed = self.make.placed(block)
            if not int(placed.X.shape[0]):
                continue
            n += int(placed.X.shape[0])
            pieces: list[Piece] = list(placed.cut(self.rows))
            if self.kept is Kept.FEATURES:
                pieces = self._side_by_side(self.make, pieces)
            if self.kept is not Kept.NOTHING:
                kept += pieces
            yield pieces
        if n != self.make.n:
            raise ValueError(
                f"The blocks held {self.make.n} rows of positive weight when they were first read and {n} when they "
                "were read again; every pass must give the same rows. A function that is given to Blocks must return "
                "a fresh iterator at every call."
            )
        self._pieces = kept or None


def budget_of(device: str | None, memory: int | None, free: Callable[[str | None], float] = free_memory) -> float:
    """The number of bytes that may be kept between passes: ``memory``, or a fraction of the free memory."""
    if memory is not None:
        return float(memory)
    return (KEPT_FRACTION if device is None else KEPT_ON_DEVICE) * free(device)
