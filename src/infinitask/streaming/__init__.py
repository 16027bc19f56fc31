"""Rows that are not in memory: blocks of files, arrays of Dask, samples of both."""

from ._blocks import Blocks
from ._blocks import RowSource as RowSource

__all__ = ["Blocks"]
