"""Blocks of rows as parts of an objective: made once and kept, or made again in every pass.

What is kept between passes is decided by the memory that is free: features of all rows, the inputs alone, or nothing. A
device that runs out of memory gets smaller pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self, TypeAlias

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
from infinitask.objective import Integral, Objective, Parts, Sums, Visit, added

KEPT_FRACTION, KEPT_ON_DEVICE = 0.4, 0.7
"""Fractions of the free memory that are used to keep features or inputs between passes, on the host and on a device,
whose memory serves nothing else: on an H200 passes that make features again take almost three times as long."""

MIN_PIECE_ROWS = 256
"""Fewer rows of a piece do not save memory."""

MADE_AGAIN = "features made again in every pass"


class Block(NamedTuple):
    """Some rows."""

    X: Array
    """(k, d)."""
    y: Any = None
    """(k,), or None where the task has no targets."""
    weight: Any = None
    """(k,), not negative; None: all rows count the same."""

    def cut(self, rows: int) -> Iterator[Block]:
        """The block in pieces of at most ``rows`` rows."""
        for part in row_blocks(int(self.X.shape[0]), 1, rows):
            yield Block(*(None if values is None else values[part] for values in self))


@dataclass(frozen=True)
class Targets:
    """From targets as they are given to the numbers of the objective.

    Parameters
    ----------
    classes : ndarray (2,) or None
        The labels that become −1 and 1; None: targets are numbers.
    units : Units
        In which they are measured.
    """

    classes: HostArray | None = None
    units: Units = field(default_factory=Units)

    def __call__(self, y: Any) -> HostArray:
        """Targets (k, 1), or (k, m) where every node has its own."""
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
    """Makes of a block of rows its part of the objective.

    Parameters
    ----------
    columns : callable
        X (k, d) → the columns of features (k, p).
    constant : bool
        Whether a column of ones stands before them.
    integrals : tuple of Integral
        On the host, without targets.
    alpha, alpha_bias : float
    bias_linear : ndarray or None
    targets : Targets or None
    n : int
        Rows of all blocks.
    mass : float
        The sum of the weights of all rows.
    width : int
        p, with the column of ones.
    device : str or None
    compiled : bool
        Whether compiled loops are used on the host.
    """

    columns: Callable[[Array], Array]
    constant: bool
    integrals: tuple[Integral, ...]
    alpha: float
    alpha_bias: float
    bias_linear: HostArray | None
    targets: Targets | None
    n: int
    mass: float
    width: int
    device: str | None
    compiled: bool

    def placed(self, block: Block) -> Block:
        """A block where it is computed with: inputs in double precision, targets as numbers, weights.

        Rows of weight 0 are dropped: they may hold anything.
        """
        if block.weight is not None:
            counted = np.flatnonzero(to_host(block.weight) > 0.0)
            if counted.size < int(block.X.shape[0]):
                y = None if block.y is None else to_host(block.y)[counted]
                block = Block(take(block.X, counted, axis=0), y, to_host(block.weight)[counted])
        X = double(moved(block.X, self.device))
        k = int(X.shape[0])
        weight = np.ones(k) if block.weight is None else to_host(block.weight).astype(np.float64)
        y = None if self.targets is None else as_like(self.targets(block.y), X)
        return Block(X, y, as_like(weight / self.mass, X))

    def __call__(self, block: Block) -> Objective:
        """The part of a placed block."""
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
            for t, term in enumerate(self.integrals)
        )
        entries = IN_CACHE if isinstance(rows, np.ndarray) else ON_DEVICE
        return Objective(
            rows,
            as_like(block.weight, rows),
            terms,
            self.alpha,
            self.alpha_bias,
            self.bias_linear,
            entries,
            compiled=self.compiled,
            alone=False,
        )


Piece: TypeAlias = Block | Objective


class LocalParts(Parts):
    """Parts on this machine, from blocks that can be read again.

    Parameters
    ----------
    blocks : iterable of Block
        Read once if what is kept suffices, else in every pass.
    make : PartMaker
    budget : float
        Bytes that may be kept between passes.
    """

    def __init__(self, blocks: Iterable[Block], make: PartMaker, budget: float) -> None:
        self.blocks, self.make, self.n = blocks, make, make.n
        self.keeps_features = 8 * make.n * make.width <= budget
        # while features are made on a device, a piece takes about eight arrays of their size: an eighth of the memory
        most = IN_MEMORY if make.device is None else free_memory(make.device) // (8 * 8 * 8)
        self.rows = max(MIN_PIECE_ROWS, most // make.width)
        self._budget = budget
        self._kept: list[Piece] | None = None
        self.description = "features kept" if self.keeps_features else MADE_AGAIN
        self.passes = 0

    def filled(self) -> Self:
        """These parts, with what is to be kept made at once instead of in the first pass."""
        for _ in self._read():
            pass
        return self

    def __sizeof__(self) -> int:
        # Dask asks how large things are that it holds, and might move
        held = self.blocks if self._kept is None and isinstance(self.blocks, list) else self._kept
        return sum(_size(piece) for piece in held or ())

    def total(self, visit: Visit, *arguments: Any) -> Sums:
        """See :meth:`Parts.total`."""
        while True:
            try:
                found = self._pass(visit, arguments)
            except Exception as error:
                if not is_out_of_memory(error) or self.rows <= MIN_PIECE_ROWS:
                    raise
                # smaller pieces, and fewer things kept
                self.rows, self._kept, self.keeps_features = self.rows // 2, None, False
                self._budget /= 4
                self.description = MADE_AGAIN
                continue
            self.passes += 1
            return found

    def _pass(self, visit: Visit, arguments: tuple[Any, ...]) -> Sums:
        def one(piece: Piece) -> Sums:
            part = piece if isinstance(piece, Objective) else self.make(piece)
            return visit(part, *arguments)

        def several(pieces: list[Piece]) -> Sums:
            return added(*(one(piece) for piece in pieces))

        if self._kept is not None:
            kept = self._kept
            count = min(16, len(kept))  # fixed, so that sums do not depend on the number of threads
            groups = [kept[g * len(kept) // count : (g + 1) * len(kept) // count] for g in range(count)]
            return added(*self._side_by_side(several, groups))
        found: Sums | None = None
        for pieces in self._read():
            sums = self._side_by_side(one, pieces)
            found = added(*sums) if found is None else added(found, *sums)
        assert found is not None  # as many rows were read as there are, and these are not none
        return found

    def _side_by_side(self, visit: Callable[[Any], Any], items: list[Any]) -> list[Any]:
        return shared_out(visit, items) if self.make.device is None else [visit(item) for item in items]

    def _read(self) -> Iterator[list[Piece]]:
        """The blocks in pieces; those that are to be kept are kept when all have been read."""
        kept: list[Piece] | None = []
        used, n = 0.0, 0
        for block in self.blocks:
            placed = self.make.placed(block)
            if not int(placed.X.shape[0]):
                continue
            n += int(placed.X.shape[0])
            pieces: list[Piece] = list(placed.cut(self.rows))
            if self.keeps_features:
                pieces = self._side_by_side(self.make, pieces)
            else:
                used += sum(_bytes(piece) for piece in pieces if isinstance(piece, Block))
            kept = None if kept is None or used > self._budget else kept + pieces
            yield pieces
        if n != self.make.n:
            raise ValueError(
                f"The blocks held {self.make.n} rows of positive weight when they were first read and {n} when they "
                "were read again; every pass must give the same rows. A function that is given to Blocks must return "
                "a fresh iterator at every call."
            )
        self._kept = kept


def budget_of(device: str | None, memory: int | None = None) -> float:
    """Bytes that may be kept between passes: what was asked for, or a fraction of what is free."""
    return kept_fraction(device) * free_memory(device) if memory is None else float(memory)


def kept_fraction(device: str | None) -> float:
    """The fraction of the free memory that is used to keep features or inputs."""
    return KEPT_FRACTION if device is None else KEPT_ON_DEVICE


def _size(piece: Piece) -> int:
    if isinstance(piece, Block):
        return _bytes(piece)
    tables = sum(table.nbytes for table in piece.tables if table is not None)
    return tables + _bytes(Block(piece.rows, piece.integrals[0].targets, piece.sample_weight))


def _bytes(block: Block) -> int:
    return sum(int(np.prod(values.shape)) * values.dtype.itemsize for values in block if values is not None)
