"""The only module that names array libraries.

Everything below the estimators is written against the Python array API standard: it asks
:func:`namespace` for the library of its arguments and calls nothing else. A GPU is then a device on
which the arrays live, not a second implementation.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from threading import Lock
from typing import Any, TypeAlias

import array_api_compat as compat
import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

__all__ = ["Array", "HostArray", "as_like", "namespace", "one_blas_thread", "place", "to_host"]

Array: TypeAlias = Any
"""An array of any library that follows the array API standard."""

HostArray: TypeAlias = NDArray[Any]
"""A NumPy array."""


def namespace(*arrays: Array) -> Any:
    """The array library common to all arguments; Python scalars and ``None`` have none."""
    found = [a for a in arrays if a is not None and compat.is_array_api_obj(a)]
    return compat.array_namespace(*found) if found else compat.array_namespace(np.empty(0))


def as_like(values: Any, like: Array) -> Array:
    """``values`` in the library, on the device and with the dtype of ``like``."""
    xp = namespace(like)
    if compat.is_array_api_obj(values) and namespace(values) is not xp:
        values = to_host(values)
    return xp.asarray(values, dtype=like.dtype, device=compat.device(like))


def to_host(values: Array) -> HostArray:
    """``values`` as a NumPy array, wherever they live."""
    if isinstance(values, np.ndarray):
        return values
    if compat.is_torch_array(values):
        return np.asarray(values.detach().cpu())
    if compat.is_cupy_array(values):
        return np.asarray(values.get())
    return np.asarray(values)


def place(values: HostArray, device: str | None) -> Array:
    """Move host values to where the data shall live.

    Parameters
    ----------
    values : ndarray
    device : str or None
        None keeps NumPy; any device that torch knows ("cpu", "cuda", "cuda:1", "mps") makes a tensor there.
    """
    if device is None:
        return values
    try:
        import torch
    except ImportError as error:
        raise ImportError(
            f"device={device!r} keeps the data in torch tensors, and torch is not installed; "
            "install the extra with `pip install infinitask[torch]`, or use device=None for NumPy."
        ) from error
    try:
        # a copy of what is read-only: torch has no such tensors
        return torch.asarray(values if values.flags.writeable else values.copy(), device=device)
    except (RuntimeError, AssertionError, TypeError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ValueError(
            f"device={device!r} cannot hold the data ({reason}); use device=None for NumPy, "
            "or a device that torch finds on this machine, such as 'cpu' or 'cuda'."
        ) from error


@lru_cache(maxsize=1)
def _threadpools() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """A context in which matrix products of NumPy and SciPy use one thread.

    The products of a fit are small: a second thread brings little, and where other processes want the cores it waits
    for most of the time (measured: a fit of 0.6 s took 18 s). And a sum that one thread makes is the same on every
    machine.
    """
    global _inside, _limiter
    # fits may overlap in time: the first one in sets the limit, the last one out lifts it
    with _lock:
        if _inside == 0:
            _limiter = _threadpools().limit(limits=1, user_api="blas")
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                _limiter.restore_original_limits()


_lock = Lock()
_inside = 0
_limiter: Any = None
