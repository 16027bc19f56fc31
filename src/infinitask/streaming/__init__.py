"""Data that are not in memory: blocks of files, Dask collections, and samples of both."""

from ._blocks import Blocks
from ._blocks import RowSource as RowSource

__all__ = ["Blocks"]
