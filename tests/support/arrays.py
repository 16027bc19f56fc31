"""From one array library to another, written apart from the package that is tested."""

from __future__ import annotations

from typing import Any

import array_api_compat as compat
import numpy as np


def namespace(values: Any) -> Any:
    """The array library of an array."""
    return compat.array_namespace(values)


def to_host(values: Any) -> np.ndarray:
    """The numbers as an array of NumPy."""
    return np.asarray(values.detach().cpu() if compat.is_torch_array(values) else values)


def as_like(values: Any, like: Any) -> Any:
    """The numbers in the library, on the device and with the type of another array."""
    host = to_host(values) if compat.is_array_api_obj(values) else values
    return namespace(like).asarray(host, dtype=like.dtype, device=compat.device(like))
