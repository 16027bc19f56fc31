"""Rows on a Dask cluster; the only module that imports dask."""

from __future__ import annotations

from typing import Any

from infinitask.blocks import RowSource

__all__ = ["DaskRows", "is_dask"]


def is_dask(X: Any) -> bool:
    """Whether X is an array or a frame of Dask."""
    return False


class DaskRows:
    """Rows of a Dask array or frame."""

    @classmethod
    def of(cls, X: Any, y: Any, sample_weight: Any) -> RowSource:
        """From collections of Dask."""
        raise NotImplementedError
