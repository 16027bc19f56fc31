"""What a pass over the rows adds up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from infinitask._array import Array
from infinitask.objective._balance import NodeSums

__all__ = ["RowSums", "both"]


@dataclass
class RowSums:
    """Sums over rows: of the losses, of their lower bounds, of κu², and the gradient of the data terms.

    ``nodes`` only where the bias is free.
    """

    value: list[Any]
    lower: list[Any]
    square: list[Any]
    C: Array
    c: Array | None
    nodes: NodeSums | None = None

    @classmethod
    def zeros(cls, C: Array, c: Array | None, count: int) -> RowSums:
        """Nothing summed yet, for ``count`` integrals."""
        return cls([0.0] * count, [0.0] * count, [0.0] * count, 0.0 * C, None if c is None else 0.0 * c)

    @classmethod
    def total(cls, parts: list[RowSums]) -> RowSums:
        """The sums over all parts, in their order."""
        first = parts[0]
        for part in parts[1:]:
            for mine, other in ((first.value, part.value), (first.lower, part.lower), (first.square, part.square)):
                mine[:] = [a + b for a, b in zip(mine, other, strict=True)]
            first.C += part.C
            first.c = None if first.c is None else first.c + part.c
            first.nodes = both(first.nodes, part.nodes)
        return first


def both(a: NodeSums | None, b: NodeSums | None) -> NodeSums | None:
    """The sums over both sets of rows, where there are any."""
    return b if a is None else a if b is None else a.plus(b)
