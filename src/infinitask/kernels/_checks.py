"""What kernels of both families refuse: wrong shapes, and parameters that make no kernel."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

from infinitask._array import Array, namespace

__all__ = ["matrices", "matrix", "polynomial_parameters", "positive"]


def matrix(X: Array) -> Array:
    """``X`` as an (n, d) array of floats."""
    xp = namespace(X)
    X = xp.asarray(X)
    if X.ndim != 2:
        raise ValueError(
            f"A kernel compares rows of a matrix (n, d), and was given an array of shape {tuple(X.shape)}; "
            "use X.reshape(-1, 1) for a single column, X.reshape(1, -1) for a single row."
        )
    return X if xp.isdtype(X.dtype, "real floating") else xp.astype(X, xp.float64)


def matrices(X: Array, Z: Array) -> tuple[Array, Array]:
    """Two matrices with as many columns each, in their common dtype."""
    xp = namespace(X, Z)
    X, Z = matrix(X), matrix(Z)
    if X.shape[1] != Z.shape[1]:
        raise ValueError(
            f"A kernel compares rows of equal length, and was given {X.shape[1]} columns on the left and "
            f"{Z.shape[1]} on the right; pass data with the columns seen in fit."
        )
    dtype = xp.result_type(X, Z)
    return xp.astype(X, dtype, copy=False), xp.astype(Z, dtype, copy=False)


def positive(value: Any, name: str, owner: str) -> float:
    """``value`` as a positive, finite float; an unresolved rule or nonsense is refused by a sentence."""
    if value is None or isinstance(value, str):
        raise ValueError(
            f"{owner}({name}={value!r}) has no number yet; call resolve(data) first, which returns a kernel whose "
            f"{name} is one, or pass a positive number."
        )
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 < float(value) < math.inf:
        raise ValueError(f"{owner} needs a positive, finite {name}, and was given {value!r}.")
    return float(value)


def polynomial_parameters(degree: Any, coef0: Any, owner: str) -> tuple[int, float]:
    """A degree ≥ 1 and a constant ≥ 0, without which (u + c)^degree is no kernel."""
    if not isinstance(degree, Integral) or isinstance(degree, bool) or degree < 1:
        raise ValueError(f"{owner} needs a whole degree ≥ 1, and was given degree={degree!r}.")
    if not isinstance(coef0, Real) or not 0 <= float(coef0) < math.inf:
        raise ValueError(f"{owner} needs a finite coef0 ≥ 0 to be a kernel, and was given coef0={coef0!r}.")
    return int(degree), float(coef0)
