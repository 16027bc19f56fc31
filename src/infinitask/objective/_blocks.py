"""How the rows are cut into blocks, and these shared out."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from infinitask._array import HostArray

__all__ = ["BLOCK_ENTRIES", "blocks_of", "groups_of", "staircase"]

BLOCK_ENTRIES = 65_536
"""Entries (rows × nodes) of a block: 512 KiB per float64 temporary. Measured on two cores with n = 10 000, m = 100 and
non-crossing: an evaluation takes 6.8 ms here, 11 ms at half of it (the threads wait for the interpreter more often) and
14 ms at twice (the temporaries leave the cache)."""

SMALL_PRODUCT, FEWEST_ROWS = 1_000_000, 24
"""Rows × r × s up to which OpenBLAS multiplies at 36 to 45 GFlop/s, not 11 to 18; and the fewest rows of a block."""

GROUPS = 16
"""Groups of blocks that threads share out among themselves."""

STEEP = 0.8
"""The mean part of a row before its zeros begin, up to which it pays to bring the rows in order."""


def blocks_of(n: int, nodes: int, product: tuple[int, int] | None, entries: int) -> Iterator[slice]:
    """Slices of n rows, for so many entries in a block and, on the host, for fast products with an (r, s) matrix."""
    step = max(1, entries // nodes)
    if product is not None:
        r, s = product
        step = min(step, max(FEWEST_ROWS, SMALL_PRODUCT // (r * s)))
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))


def groups_of(blocks: list[slice]) -> list[list[slice]]:
    """Blocks in groups, each a run of blocks."""
    count = min(GROUPS, len(blocks) // 2) or 1
    return [blocks[k * len(blocks) // count : (k + 1) * len(blocks) // count] for k in range(count)]


def staircase(rows: HostArray) -> tuple[HostArray, HostArray] | None:
    """An order in which the rows end in ever fewer zeros, and where the zeros begin; None where it would not pay.

    A Cholesky factor is triangular in the order of its pivots: half of its products are with zeros.

    Examples
    --------
    >>> import numpy as np
    >>> staircase(np.array([[1.0, 2.0, 3.0], [4.0, 0.0, 0.0], [5.0, 6.0, 0.0]]))
    (array([1, 2, 0]), array([1, 2, 3]))
    """
    r = rows.shape[1]
    filled = rows[:, ::-1] != 0.0
    reach = np.where(np.any(filled, axis=1), r - np.argmax(filled, axis=1), 1)
    if float(np.mean(reach)) > STEEP * r:
        return None
    order = np.argsort(reach, kind="stable")
    return order, reach[order]
